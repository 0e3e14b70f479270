"""Code as users write it, checked by both type checkers; `assert_type` holds what they see."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, assert_type

from mcp_core import Client, RequestContext, Server
from mcp_core.types import (
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prepared,
    TextContent,
    Tool,
)
from mcp_typed import Context, MCPServer


@dataclass
class State:
    """What a lifespan yields."""

    books: int


@asynccontextmanager
async def lifespan(server: Server[State]) -> AsyncGenerator[State, None]:
    yield State(3)


async def list_tools(ctx: RequestContext[State], params: PaginatedRequestParams | None) -> ListToolsResult:
    assert_type(ctx.lifespan_context, State)
    assert_type(ctx.protocol_version, str)
    return ListToolsResult(tools=[Tool(name="x", input_schema={"type": "object"})])


async def call_tool(ctx: RequestContext[State], params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
    assert_type(params.arguments, dict[str, Any] | None)
    if params.request_state is None:
        return InputRequiredResult(request_state="s")
    return CallToolResult(content=[TextContent(type="text", text="x")], _meta={"a/b": 1})


def list_inline(ctx: RequestContext, params: PaginatedRequestParams) -> Prepared[ListToolsResult]:
    assert_type(ctx.lifespan_context, dict[str, Any])
    return Prepared(ListToolsResult(tools=[]))


stateful = Server("a", lifespan=lifespan, on_list_tools=list_tools, on_call_tool=call_tool)
assert_type(stateful, Server[State])

plain = Server("b", on_list_tools=list_inline)
assert_type(plain, Server[dict[str, Any]])


async def as_a_client() -> None:
    async with Client(stateful) as client:
        result = await client.call_tool("x", {"a": 1})
        assert_type(result, CallToolResult)
        assert_type(result.content, list[ContentBlock])
        assert_type(result.is_error, bool)
        assert_type(result.meta, dict[str, Any] | None)
        assert_type(await client.list_tools(), ListToolsResult)


mcp = MCPServer("typed")


@mcp.tool()
async def add(a: int, b: int, ctx: Context) -> int:
    return a + b


@mcp.tool
def double(a: int) -> int:
    return 2 * a


@mcp.tool("renamed", title="Renamed")
def named(a: int) -> int:
    return a


assert_type(double(1), int)
assert_type(named(1), int)

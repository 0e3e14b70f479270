"""The server that is fuzzed: tools that do one of everything. `python -m tests.fuzz.program` serves it on stdio."""

from __future__ import annotations

import sys
from typing import Any

import anyio

from mcp_core import MCPError, RequestContext, Server
from mcp_core import types as t

__all__ = ["make_server", "server"]


async def call_tool(ctx: RequestContext, params: t.CallToolRequestParams) -> Any:
    """Tools that do one of everything."""
    if params.name == "slow":
        await anyio.sleep(0.001)
    elif params.name == "stuck":
        await anyio.sleep_forever()
    elif params.name == "raise":
        raise ValueError("no")
    elif params.name == "exit":
        raise SystemExit(3)
    elif params.name == "error":
        raise MCPError(1, "one", params.arguments)
    elif params.name == "wrong":
        return ["no result"]
    elif params.name == "ask":
        return t.InputRequiredResult(request_state="s")
    elif params.name == "roots":
        await ctx.list_roots(timeout=0.01)
    elif params.name == "plain":
        return t.CallToolResult(content=[t.TextContent(text="plain")])
    await ctx.report_progress(1, 2, "half")
    await ctx.log("error", params.arguments)
    return t.CallToolResult(content=[t.TextContent(text=params.name)], structured_content=params.arguments or {})


def list_tools(ctx: RequestContext, params: t.PaginatedRequestParams) -> t.ListToolsResult:
    return t.ListToolsResult(tools=[t.Tool(name="x", input_schema={"type": "object"})], next_cursor=params.cursor)


def read_resource(ctx: RequestContext, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
    return t.ReadResourceResult(contents=[t.TextResourceContents(uri=params.uri, text=params.uri)])


def set_level(ctx: RequestContext, params: t.SetLevelRequestParams) -> t.EmptyResult:
    return t.EmptyResult()


def make_server() -> Server:
    """A server with a handler for most of it."""
    return Server(
        "fuzzed",
        subscriptions=True,
        on_call_tool=call_tool,
        on_list_tools=list_tools,
        on_read_resource=read_resource,
        on_set_logging_level=set_level,
    )


server = make_server()

if __name__ == "__main__":
    server.run(loop="trio" if "trio" in sys.argv else "asyncio", drain_timeout=1.0)

"""The official client checks structured content against the schema that was listed: it finds no fault.

One process serves all shapes, in each era one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import mcp_types as t
import pytest
from mcp import Client, StdioServerParameters
from mcp.server import Server, ServerRequestContext

from tests.interop import bookshop as b
from tests.property.type_shapes import SHAPES, Shape, same_json

REVISIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=REVISIONS)
async def client(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncGenerator[Client, None]:
    parameters = StdioServerParameters(**b.launch("typed_shapes_server"))
    async with Client(parameters, mode=request.param, read_timeout_seconds=60) as client:
        assert client.protocol_version == REVISIONS[request.param]
        yield client


@pytest.fixture(scope="module")
async def tools(client: Client) -> dict[str, t.Tool]:
    """All tools. The client has their schemas in mind from here on."""
    tools: dict[str, t.Tool] = {}
    listed = await client.list_tools()
    tools.update({tool.name: tool for tool in listed.tools})
    while listed.next_cursor is not None:
        listed = await client.list_tools(cursor=listed.next_cursor)
        tools.update({tool.name: tool for tool in listed.tools})
    return tools


async def test_every_shape_is_listed_with_its_schema(tools: dict[str, t.Tool]) -> None:
    assert list(tools) == [shape.name for shape in SHAPES]
    assert [tool.name for tool in tools.values() if tool.output_schema is None] == []


@pytest.mark.requirement("R-OUT-01")
@pytest.mark.parametrize("shape", [pytest.param(shape, id=shape.name) for shape in SHAPES])
async def test_structured_content_passes_the_clients_own_check(
    shape: Shape, client: Client, tools: dict[str, t.Tool]
) -> None:
    assert tools[shape.name].output_schema is not None
    result = await client.call_tool(shape.name, {})
    assert not result.is_error, result.content
    wanted = shape.example[1] if shape.bare else {"result": shape.example[1]}
    assert same_json(result.structured_content, wanted)


async def test_the_client_does_check() -> None:
    """What all of the above rests on."""

    async def list_tools(
        context: ServerRequestContext[Any], params: t.PaginatedRequestParams | None
    ) -> t.ListToolsResult:
        schema = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}
        return t.ListToolsResult(
            tools=[t.Tool(name="wrong", input_schema={"type": "object"}, output_schema=schema)], ttl_ms=0
        )

    async def call_tool(context: ServerRequestContext[Any], params: t.CallToolRequestParams) -> t.CallToolResult:
        return t.CallToolResult(content=[], structured_content={"result": "1"})

    server = Server("wrong", on_list_tools=list_tools, on_call_tool=call_tool)
    async with Client(server) as client:
        with pytest.raises(RuntimeError, match="Invalid structured content returned by tool wrong"):
            await client.call_tool("wrong", {})

"""A low-level server, statement by statement: what its author writes is what is sent."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest

from mcp_core import Client, RequestContext, Server
from mcp_core.testing import RawPeer, flush_logs
from mcp_core.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

STAMP = {"io.modelcontextprotocol/serverInfo": {"name": "Bookshop", "version": ""}}
SEARCH: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["query", "limit"],
}
ADD: dict[str, Any] = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}


async def list_tools(ctx: RequestContext, params: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(
        tools=[
            Tool(name="search_books", description="Search the catalog.", input_schema=SEARCH),
            Tool(name="add_book", description="Add a book.", input_schema=ADD),
        ]
    )


async def call_tool(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    arguments = params.arguments or {}
    if params.name == "search_books":
        text = f"Found 3 books matching {arguments['query']!r} (showing up to {arguments['limit']})."
        return CallToolResult(content=[TextContent(type="text", text=text)])
    if params.name == "add_book":
        return CallToolResult(content=[TextContent(text=f"Added {arguments['title']!r}.")])
    raise ValueError(f"the secret of {params.name}")


def bookshop(**more: Any) -> Server:
    return Server("Bookshop", on_list_tools=list_tools, on_call_tool=call_tool, **more)


async def modern(server: Server, method: str, params: dict[str, Any] | None = None) -> Any:
    async with RawPeer.of(server) as peer:
        return await peer.modern(3, method, params)


@pytest.mark.observed("S-063")
@pytest.mark.requirement("R-VER-11")
async def test_discover_says_what_the_server_is() -> None:
    answer = await modern(bookshop(), "server/discover")
    assert answer == {
        "jsonrpc": "2.0",
        "id": 3,
        "result": {
            "supportedVersions": ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
            "capabilities": {"tools": {"listChanged": False}},
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": STAMP,
        },
    }
    with pytest.raises(TypeError):
        Server("x", "1.0")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


@pytest.mark.observed("S-067")
@pytest.mark.observed("S-075")
@pytest.mark.requirement("R-TOOL-03")
async def test_schemas_are_sent_as_written_in_the_order_written() -> None:
    answer = await modern(bookshop(), "tools/list")
    assert answer["result"] == {
        "tools": [
            {"name": "search_books", "description": "Search the catalog.", "inputSchema": SEARCH},
            {"name": "add_book", "description": "Add a book.", "inputSchema": ADD},
        ],
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": STAMP,
    }


@pytest.mark.observed("S-068")
@pytest.mark.observed("S-075")
@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("search_books", {"query": "dune", "limit": 5}, "Found 3 books matching 'dune' (showing up to 5)."),
        ("add_book", {"title": "Dune"}, "Added 'Dune'."),
    ],
)
async def test_a_result_is_sent_as_built(name: str, arguments: dict[str, Any], text: str) -> None:
    answer = await modern(bookshop(), "tools/call", {"name": name, "arguments": arguments})
    assert answer["result"] == {
        "content": [{"type": "text", "text": text}],
        "isError": False,
        "resultType": "complete",
        "_meta": STAMP,
    }


@pytest.mark.observed("S-069")
@pytest.mark.parametrize(("given", "seen"), [({}, None), ({"arguments": None}, None), ({"arguments": {}}, {})])
async def test_what_a_handler_sees(given: dict[str, Any], seen: Any) -> None:
    saw: list[Any] = []

    async def look(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        saw.extend([params.name, params.arguments, ctx.request_id, ctx.method, ctx.protocol_version, ctx.meta["k"]])
        return CallToolResult(content=[])

    async with RawPeer.of(Server("x", on_call_tool=look)) as peer:
        await peer.modern("id-é", "tools/call", {"name": "n", **given}, k=1)
    assert saw == ["n", seen, "id-é", "tools/call", "2026-07-28", 1]


@pytest.mark.observed("S-071")
@pytest.mark.observed("S-072")
@pytest.mark.observed("S-074")
@pytest.mark.parametrize("params", [{"name": "search_books", "arguments": {}}, {"name": "nope"}])
async def test_arguments_are_not_checked_and_a_crash_says_nothing(params: dict[str, Any]) -> None:
    async with RawPeer.of(bookshop()) as peer:
        await peer.initialize()
        answers = [await peer.modern(1, "tools/call", params), await peer.call(2, "tools/call", params)]
    assert [a["error"] for a in answers] == [{"code": -32603, "message": "Internal server error"}] * 2


@pytest.mark.observed("S-076")
@pytest.mark.observed("S-077")
@pytest.mark.observed("S-081")
@pytest.mark.observed("S-082")
@pytest.mark.requirement("R-OUT-05")
async def test_structured_content_and_meta_are_the_authors() -> None:
    schema = {"type": "object", "properties": {"matches": {"type": "integer"}}, "required": ["matches"]}

    async def tools(ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="x", input_schema={"type": "object"}, output_schema=schema)])

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        meta = {"bookshop/record_ids": ["bk_17", None], "io.modelcontextprotocol/mine": 1}
        return CallToolResult(content=[], structured_content={"matches": "three"}, _meta=meta)

    server = Server("Bookshop", on_list_tools=tools, on_call_tool=call)
    # A client that looks would refuse it (X-30); what the server sends is what the author said.
    async with Client(server, validate_structured_content=False) as client:
        assert (await client.list_tools()).tools[0].output_schema == schema
        result = await client.call_tool("x")
    assert result.structured_content == {"matches": "three"}
    assert result.meta == {"bookshop/record_ids": ["bk_17", None], "io.modelcontextprotocol/mine": 1, **STAMP}


@pytest.mark.observed("S-079")
@pytest.mark.requirement("R-JS-06")
async def test_any_schema_vocabulary_passes() -> None:
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"isbn": {"type": "string", "pattern": "^[0-9]{13}$", "x-mine": None}},
        "oneOf": [{"required": ["isbn"]}, {"required": ["title", "author"]}],
        "$defs": {"a": {"$anchor": "a"}},
        "additionalProperties": False,
    }

    def tools(ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="find_book", input_schema=schema)])

    answer = await modern(Server("x", on_list_tools=tools), "tools/list")
    assert answer["result"]["tools"][0]["inputSchema"] == schema


@pytest.mark.observed("S-080")
@pytest.mark.requirement("R-TOOL-04")
@pytest.mark.parametrize("broken", [{}, {"type": "array"}, {"anyOf": []}])
async def test_one_tool_with_an_impossible_schema_does_not_take_the_others_along(
    broken: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    def tools(ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
        good = Tool(name="good", input_schema={"type": "object"})
        return ListToolsResult(tools=[Tool(name="bad", input_schema=broken), good])

    with caplog.at_level(logging.ERROR, "mcp_core"):
        answer = await modern(Server("x", on_list_tools=tools), "tools/list")
        flush_logs()
    assert [tool["name"] for tool in answer["result"]["tools"]] == ["good"]
    assert "tool 'bad' is not listed" in caplog.text


@pytest.mark.observed("S-084")
async def test_the_lifespan_is_entered_once_for_all_connections() -> None:
    moments: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server[list[str]]) -> AsyncGenerator[list[str], None]:
        moments.append("entered")
        yield moments
        moments.append("left")

    async def call(ctx: RequestContext[list[str]], params: CallToolRequestParams) -> CallToolResult:
        ctx.lifespan_context.append("called")
        return CallToolResult(content=[])

    server = Server("x", lifespan=lifespan, on_call_tool=call)
    async with Client(server) as one, Client(server) as two:
        await one.call_tool("a")
        await two.call_tool("b")
    assert moments == ["entered", "called", "called", "left"]


class Renamed(msgspec.Struct):
    """Params of a notification of the author's own."""

    title: str = "untitled"


@pytest.mark.observed("S-088")
async def test_notifications_of_the_authors_own(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []
    last = anyio.Event()

    def hear(ctx: RequestContext, params: Renamed) -> None:
        heard.append(params.title)
        if params.title == "last":
            last.set()

    server = bookshop()
    server.add_notification_handler("notifications/mine", Renamed, hear)
    with caplog.at_level(logging.WARNING, "mcp_core"):
        async with RawPeer.of(server) as peer:
            peer.send({"jsonrpc": "2.0", "method": "notifications/mine", "params": {"title": "a"}})
            peer.send({"jsonrpc": "2.0", "method": "notifications/mine"})
            peer.send({"jsonrpc": "2.0", "method": "notifications/mine", "params": {"title": 5}})
            peer.send({"jsonrpc": "2.0", "method": "notifications/mine", "params": {"title": "last"}})
            with anyio.fail_after(60):
                await last.wait()
            assert (await peer.modern(1, "tools/list"))["id"] == 1
        flush_logs()
    assert heard == ["a", "untitled", "last"]
    assert "notifications/mine was dropped" in caplog.text


@pytest.mark.observed("S-089")
async def test_a_request_state_is_passed_through_as_it_came() -> None:
    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        return CallToolResult(content=[], structured_content=[params.request_state, params.input_responses])

    server = Server("x", on_call_tool=call)
    params = {"name": "x", "requestState": "not signed", "inputResponses": {"a": {"action": "cancel", "x": None}}}
    answer = await modern(server, "tools/call", params)
    assert answer["result"]["structuredContent"] == ["not signed", {"a": {"action": "cancel", "x": None}}]


@pytest.mark.observed("S-463")
@pytest.mark.requirement("R-VER-14")
async def test_both_eras_mix_on_one_connection_request_by_request() -> None:
    async with RawPeer.of(bookshop()) as peer:
        first = await peer.modern(1, "tools/list")
        await peer.initialize("2025-03-26")
        second = await peer.call(2, "tools/list")
        third = await peer.modern(3, "tools/list")
    assert [("resultType" in a["result"]) for a in (first, second, third)] == [True, False, True]


@pytest.mark.observed("S-468")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{bad", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list"', -32700),
        (b"\xff\xfe", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
    ],
)
async def test_whatever_arrives_is_answered(line: bytes, code: int) -> None:
    async with RawPeer.of(bookshop()) as peer:
        assert (await peer.answer(line))["error"]["code"] == code
        assert "result" in await peer.modern("next", "tools/list")

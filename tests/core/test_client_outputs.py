"""Structured content that does not fit the output schema of its tool, and schemas of servers that mean harm."""

from __future__ import annotations

import json
import socket
import sys
import time
from typing import Any, Final, NoReturn

import anyio
import pytest

from mcp_core import Client, RequestContext, Server
from mcp_core import types as t
from mcp_core.client import Mode, outputs
from mcp_core.errors import InvalidResult
from mcp_core.subscriptions import ToolsListChanged
from mcp_core.testing import WireRecorder

NUMBER: Final = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def serving(schema: Any, content: Any, *, is_error: bool = False) -> tuple[Server, WireRecorder]:
    """A server whose tool `x` gives this under that schema, and what goes over its wire."""

    def tools(ctx: RequestContext, params: t.PaginatedRequestParams) -> t.ListToolsResult:
        return t.ListToolsResult(tools=[t.Tool(name="x", input_schema={"type": "object"}, output_schema=schema)])

    def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        return t.CallToolResult(content=[], structured_content=content, is_error=is_error)

    server = Server("s", on_list_tools=tools, on_call_tool=call)
    recorder = WireRecorder()
    server.observers.add(recorder)
    return server, recorder


def lists(recorder: WireRecorder) -> int:
    return sum('"method":"tools/list"' in line for line in recorder.lines)


@pytest.mark.fault("X-30")
@pytest.mark.requirement("R-OUT-02")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"n": "three"}, '$.n: "three" is not of type "integer"'),
        ({}, '$: "n" is a required property'),
        ({"n": None}, '$.n: null is not of type "integer"'),
    ],
)
async def test_content_that_does_not_fit_is_refused(mode: Mode, listed: bool, content: Any, told: str) -> None:
    server, recorder = serving(NUMBER, content)
    async with Client(server, mode=mode) as client:
        if listed:
            await client.list_tools()
        for _ in range(2):
            with pytest.raises(InvalidResult) as caught:
                await client.call_tool("x")
            assert str(caught.value) == f"the structured content of tool 'x' does not fit its output schema: {told}"
    assert lists(recorder) == 1


@pytest.mark.fault("X-30")
@pytest.mark.parametrize("content", [{"n": 3}, {"n": 3, "more": [None]}, None])
async def test_content_that_fits_passes(content: Any) -> None:
    server, _ = serving(NUMBER, content)
    async with Client(server) as client:
        assert (await client.call_tool("x")).structured_content == content


async def test_an_error_may_have_any_content() -> None:
    server, recorder = serving(NUMBER, {"why": "because"}, is_error=True)
    async with Client(server) as client:
        assert (await client.call_tool("x")).structured_content == {"why": "because"}
    assert lists(recorder) == 0


@pytest.mark.fault("X-30")
async def test_it_can_be_switched_off() -> None:
    server, recorder = serving(NUMBER, {"n": "three"})
    async with Client(server, validate_structured_content=False) as client:
        await client.list_tools()
        assert (await client.call_tool("x")).structured_content == {"n": "three"}
    assert lists(recorder) == 1


async def test_without_the_library_it_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    outputs._load.cache_clear()  # pyright: ignore[reportPrivateUsage]
    server, recorder = serving(NUMBER, {"n": "three"})
    try:
        async with Client(server) as client:
            assert (await client.call_tool("x")).structured_content == {"n": "three"}
    finally:
        outputs._load.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert lists(recorder) == 0


async def test_a_list_that_has_changed_is_read_anew() -> None:
    schema: dict[str, Any] = dict(NUMBER)

    def tools(ctx: RequestContext, params: t.PaginatedRequestParams) -> t.ListToolsResult:
        return t.ListToolsResult(tools=[t.Tool(name="x", input_schema={"type": "object"}, output_schema=dict(schema))])

    async def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        schema["properties"] = {"n": {"type": "string"}}
        await ctx.notify("notifications/tools/list_changed")
        return t.CallToolResult(content=[], structured_content={"n": "three"})

    server = Server("s", on_list_tools=tools, on_call_tool=call, subscriptions=True)
    async with Client(server, mode="legacy") as client:
        await client.list_tools()
        assert (await client.call_tool("x")).structured_content == {"n": "three"}
        await server.publish(ToolsListChanged())


async def test_tools_that_cannot_be_listed_are_not_compared() -> None:
    def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        return t.CallToolResult(content=[], structured_content={"n": 1})

    async with Client(Server("s", on_call_tool=call)) as client:
        for _ in range(2):
            assert (await client.call_tool("x")).structured_content == {"n": 1}


async def test_tools_that_are_not_listed_in_time_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "LIST_SECONDS", 0.05)

    async def tools(ctx: RequestContext, params: t.PaginatedRequestParams) -> t.ListToolsResult:
        await anyio.sleep_forever()
        raise AssertionError

    def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        return t.CallToolResult(content=[], structured_content={"n": 1})

    async with Client(Server("s", on_list_tools=tools, on_call_tool=call)) as client:
        for _ in range(2):
            assert (await client.call_tool("x")).structured_content == {"n": 1}


# --- schemas that mean harm ---------------------------------------------------------------------------


def doubling(levels: int) -> dict[str, Any]:
    """A schema that doubles its work with every level."""
    definitions: dict[str, Any] = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{levels}": {"type": "object"}}}


HARMFUL: Final[dict[str, tuple[Any, Any]]] = {
    "a regular expression": ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 40 + "b"}),
    "names by a regular expression": ({"patternProperties": {"^(a+)+$": {}}}, {"a" * 40 + "b": 1}),
    "doubled work": (doubling(60), {}),
    "a schema in itself": ({"$ref": "#"}, {}),
    "in itself by a definition": ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, {}),
    "dynamic references": ({"$dynamicAnchor": "a", "anyOf": [{"$dynamicRef": "#a"}]}, {}),
    "items compared with each other": (
        {"properties": {"a": {"uniqueItems": True}}},
        {"a": [{"a": n} for n in range(50_000)]},
    ),
    "many alternatives": ({"anyOf": [*[{"type": "integer"}] * 8000, {}]}, {"a": "x" * 900_000}),
    "unevaluated": ({**doubling(60), "unevaluatedProperties": False}, {"a": 1}),
    "a schema that is none": ({"type": 5, "properties": [], "required": 7, "allOf": {}}, {"a": 1}),
    "types that are none": ({"properties": {"a": {"type": "nonsense"}}}, {"a": 1}),
    "a huge schema": ({"properties": {f"p{n}": {"type": "string"} for n in range(50_000)}}, {"p1": 1}),
    "huge content": (NUMBER, {"n": "x" * 2_000_000}),
    "deep content": ({"properties": {"a": {"$ref": "#"}}}, json.loads('{"a":' * 200 + "1" + "}" * 200)),
}


@pytest.mark.requirement("R-JS-05")
@pytest.mark.fault("X-30")
@pytest.mark.parametrize("name", list(HARMFUL))
async def test_a_schema_cannot_keep_the_client_busy(name: str) -> None:
    schema, content = HARMFUL[name]
    async with Client(serving(schema, content)[0]) as client:
        await client.list_tools()
        began = time.process_time()
        for _ in range(3):
            assert (await client.call_tool("x")).structured_content == content
    assert time.process_time() - began < 10


@pytest.mark.requirement("R-JS-03")
@pytest.mark.fault("X-30")
@pytest.mark.parametrize(
    "place", ["http://127.0.0.1:9/schema.json", "https://example.com/x", "file:///etc/passwd", "//x/y", "x.json"]
)
@pytest.mark.parametrize("member", ["$ref", "$dynamicRef", "$schema", "$id"])
async def test_no_other_schema_is_fetched(place: str, member: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*args: Any, **options: Any) -> NoReturn:
        fetched.append(args)
        raise OSError

    fetched: list[Any] = []
    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.setattr("urllib.request.urlopen", connect)
    async with Client(serving({member: place, "type": "object"}, {"a": 1})[0]) as client:
        await client.list_tools()
        assert (await client.call_tool("x")).structured_content == {"a": 1}
    assert fetched == []


@pytest.mark.requirement("R-JS-01")
@pytest.mark.parametrize(
    "dialect", ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
)
async def test_schemas_of_known_dialects_are_used(dialect: str) -> None:
    async with Client(serving({"$schema": dialect, **NUMBER}, {"n": "x"})[0]) as client:
        with pytest.raises(InvalidResult):
            await client.call_tool("x")
    whole = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
    async with Client(serving(whole, {"type": 5})[0]) as client:
        with pytest.raises(InvalidResult):
            await client.call_tool("x")


@pytest.mark.parametrize(
    ("items", "fits"), [([1, 2], True), ([1, 1], False), ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], False)]
)
async def test_unique_items_are_compared(items: list[Any], fits: bool) -> None:
    schema = {"type": "object", "properties": {"a": {"uniqueItems": True}}}
    async with Client(serving(schema, {"a": items})[0]) as client:
        if fits:
            await client.call_tool("x")
            return
        with pytest.raises(InvalidResult, match="has non-unique elements"):
            await client.call_tool("x")


async def test_what_is_kept_of_schemas_is_bounded() -> None:
    known = outputs.OutputSchemas(True)
    large = {"type": "object", "description": "x" * 100_000}
    for number in range(400):
        known.learn([t.Tool(name=f"t{number}", input_schema={}, output_schema=large)])
    kept = known._schemas  # pyright: ignore[reportPrivateUsage]
    assert 130 < len(kept) < 170
    assert sum(len(schema or b"") for schema in kept.values()) <= outputs.MAX_SCHEMAS

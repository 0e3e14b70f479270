"""Content blocks and results as their authors write them, and as both eras get them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest

from mcp_core import Client, MCPError, Server
from mcp_core import types as t
from mcp_core.client import Mode
from mcp_core.codec import encode
from mcp_core.errors import InvalidResult
from mcp_core.testing import RawPeer

STAMP: Final = {"io.modelcontextprotocol/serverInfo": {"name": "Low", "version": "1"}}
WRONG: Final = {"error": {"code": -32603, "message": "Handler returned an invalid result"}}
BROKEN: Final = {"error": {"code": -32603, "message": "Internal server error"}}

_LINK: Final = {"uri": "u://x", "name": "n"}
_PART: Final = t.TextResourceContents(uri="u://t", text="t")

TAGGED: Final[list[tuple[Any, str, dict[str, Any]]]] = [
    (t.TextContent, "text", {"text": "t"}),
    (t.ImageContent, "image", {"data": "AA==", "mime_type": "image/png"}),
    (t.AudioContent, "audio", {"data": "AA==", "mime_type": "audio/wav"}),
    (t.ResourceLink, "resource_link", _LINK),
    (t.EmbeddedResource, "resource", {"resource": _PART}),
    (t.ToolUseContent, "tool_use", {"id": "u1", "name": "n", "input": {}}),
    (t.ToolResultContent, "tool_result", {"tool_use_id": "u1", "content": []}),
    (t.PromptReference, "ref/prompt", {"name": "p"}),
    (t.ResourceTemplateReference, "ref/resource", {"uri": "u://{x}"}),
]
CARRIERS: Final = [case for case in TAGGED if issubclass(case[0], t.MetaObject)]


# --- construction ---------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "tag", "fields"), TAGGED)
def test_the_type_may_be_given_or_left_out(kind: Any, tag: str, fields: dict[str, Any]) -> None:
    assert kind(type=tag, **fields) == kind(**fields)
    assert kind(**fields).type == tag


@pytest.mark.parametrize(("kind", "tag", "fields"), TAGGED)
def test_the_type_is_sent_once(kind: Any, tag: str, fields: dict[str, Any]) -> None:
    data = encode(kind(type=tag, **fields))
    assert json.loads(data)["type"] == tag
    assert data.count(b'"type":') == 1


@pytest.mark.parametrize(("kind", "tag", "fields"), TAGGED)
def test_a_wrong_type_is_refused_with_both_names(kind: Any, tag: str, fields: dict[str, Any]) -> None:
    with pytest.raises(TypeError) as caught:
        kind(type="video", **fields)
    assert repr(tag) in str(caught.value)
    assert "'video'" in str(caught.value)


@pytest.mark.parametrize(("kind", "tag", "fields"), TAGGED)
def test_a_missing_member_is_named_with_and_without_type(kind: Any, tag: str, fields: dict[str, Any]) -> None:
    absent = next(iter(fields))
    rest = {name: value for name, value in fields.items() if name != absent}
    for given in (rest, {"type": tag, **rest}):
        with pytest.raises(TypeError, match=absent):
            kind(**given)


@pytest.mark.parametrize(("kind", "tag", "fields"), TAGGED)
def test_an_unknown_keyword_is_refused(kind: Any, tag: str, fields: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="colour"):
        kind(type=tag, colour="red", **fields)


@pytest.mark.parametrize(("kind", "tag", "fields"), CARRIERS)
def test_meta_is_given_as_on_the_wire_and_read_without_underscore(kind: Any, tag: str, fields: dict[str, Any]) -> None:
    block = kind(_meta={"a/b": [1, None]}, **fields)
    assert block.meta == {"a/b": [1, None]}
    assert json.loads(encode(block))["_meta"] == {"a/b": [1, None]}
    assert kind(**fields).meta is None
    assert "_meta" not in json.loads(encode(kind(**fields)))


@pytest.mark.parametrize("kind", [t.CallToolResult, t.GetPromptResult, t.Tool, t.Resource, t.Prompt, t.Root])
def test_meta_is_a_keyword_of_what_is_no_block_too(kind: Any) -> None:
    fields: dict[str, dict[str, Any]] = {
        "CallToolResult": {"content": []},
        "GetPromptResult": {"messages": []},
        "Tool": {"name": "n", "input_schema": {"type": "object"}},
        "Resource": _LINK,
        "Prompt": {"name": "n"},
        "Root": {"uri": "file:///"},
    }
    assert kind(_meta={"k": None}, **fields[kind.__name__]).meta == {"k": None}


@pytest.mark.requirement("R-CONT-04")
def test_an_embedded_resource_knows_text_from_blob() -> None:
    read = msgspec.json.Decoder(t.EmbeddedResource).decode
    text = read(b'{"type":"resource","resource":{"uri":"u://t","text":""}}')
    blob = read(b'{"type":"resource","resource":{"uri":"u://b","blob":"","_meta":{"z":null}}}')
    assert text.resource == t.TextResourceContents(uri="u://t", text="")
    assert blob.resource == t.BlobResourceContents(uri="u://b", blob="", _meta={"z": None})
    with pytest.raises(msgspec.ValidationError):
        read(b'{"type":"resource","resource":{"uri":"u://n"}}')


# --- through a server -----------------------------------------------------------------

Answer = dict[str, Any]


def _without_stamp(answer: Answer) -> Answer:
    """A modern answer less the server's name, which must be there."""
    if "result" not in answer:
        return answer
    result = dict(answer["result"])
    meta = dict(result.pop("_meta"))
    assert {key: meta.pop(key) for key in STAMP} == STAMP
    return {"result": {**result, "_meta": meta} if meta else result}


async def _both(server: Server, method: str, params: dict[str, Any], revision: str = "2025-11-25") -> list[Answer]:
    """The answers to a modern client, and to one of the handshake era."""
    async with RawPeer.of(server) as peer:
        await peer.initialize(revision=revision)
        answers = [
            await peer.modern(1, method, params, capabilities={"elicitation": {}}),
            await peer.call(2, method, params),
        ]
    bodies = [{key: body for key, body in answer.items() if key in ("result", "error")} for answer in answers]
    return [_without_stamp(bodies[0]), bodies[1]]


async def _call(made: Callable[[], Any]) -> list[Answer]:
    """What a tool answers both eras whose handler returns, or raises, what this call does."""

    async def call_tool(ctx: object, params: t.CallToolRequestParams) -> Any:
        return made()

    return await _both(Server("Low", version="1", on_call_tool=call_tool), "tools/call", {"name": "x"})


async def _listed(result: Any) -> list[Answer]:
    """What both eras are answered with this list of tools."""

    async def list_tools(ctx: object, params: t.PaginatedRequestParams) -> Any:
        return result

    return await _both(Server("Low", version="1", on_list_tools=list_tools), "tools/list", {})


def _complete(**result: Any) -> list[Answer]:
    """A result as both eras get it."""
    return [{"result": {**result, "resultType": "complete"}}, {"result": result}]


def _raise(error: Exception) -> Any:
    raise error


@pytest.mark.observed("S-091")
@pytest.mark.requirement("R-TOOL-09")
async def test_none_is_no_result() -> None:
    assert await _call(lambda: None) == [WRONG, WRONG]


@pytest.mark.observed("S-092")
async def test_a_dict_is_completed() -> None:
    assert await _call(lambda: {"content": []}) == _complete(content=[], isError=False)


@pytest.mark.observed("S-093")
async def test_a_dict_keeps_its_blocks() -> None:
    content = [{"type": "text", "text": "x"}]
    assert await _call(lambda: {"content": content, "isError": False}) == _complete(content=content, isError=False)


@pytest.mark.observed("S-094")
@pytest.mark.parametrize("key", ["is_error", "structured_content", "result_type"])
async def test_a_dict_with_python_names_is_refused(key: str) -> None:
    value = {"is_error": True, "structured_content": {"a": 1}, "result_type": "complete"}[key]
    assert await _call(lambda: {"content": [], key: value}) == [WRONG, WRONG]


@pytest.mark.observed("S-095")
@pytest.mark.requirement("R-OUT-06")
async def test_a_dict_without_content_is_refused() -> None:
    assert await _call(lambda: {"structuredContent": {"a": 1}}) == [WRONG, WRONG]


@pytest.mark.observed("S-096")
async def test_a_dict_keeps_meta_and_unknown_keys() -> None:
    got = await _call(lambda: {"content": [], "_meta": {"k": 1}, "weird": None})
    assert got == _complete(content=[], isError=False, _meta={"k": 1}, weird=None)


@pytest.mark.observed("S-097")
async def test_a_dict_with_an_unknown_block_is_refused() -> None:
    assert await _call(lambda: {"content": [{"type": "video", "data": "AA=="}]}) == [WRONG, WRONG]


@pytest.mark.observed("S-098")
@pytest.mark.observed("S-099")
@pytest.mark.parametrize(
    "value", [[], [t.TextContent(text="x")], "text", 5, True, b"{}", object()], ids=lambda value: type(value).__name__
)
async def test_what_is_no_result_at_all_is_refused_in_both_eras(value: Any) -> None:
    assert await _call(lambda: value) == [WRONG, WRONG]


@pytest.mark.observed("S-100")
async def test_error_data_may_be_returned() -> None:
    error = {"code": -32000, "message": "ed", "data": {"q": 1}}
    got = await _call(lambda: t.ErrorData(code=-32000, message="ed", data={"q": 1}))
    assert got == [{"error": error}, {"error": error}]


@pytest.mark.observed("S-101")
@pytest.mark.observed("S-102")
@pytest.mark.requirement("R-BASE-06")
@pytest.mark.parametrize("data", [None, [1], {"deep": [None]}, "text", False, 0])
async def test_an_error_raised_goes_out_as_it_is(data: Any) -> None:
    error = {"code": -32001, "message": "me"} | ({} if data is None else {"data": data})
    got = await _call(lambda: _raise(MCPError(-32001, "me", data)))
    assert got == [{"error": error}, {"error": error}]


@pytest.mark.observed("S-103")
async def test_an_error_result_may_be_structured() -> None:
    made = t.CallToolResult(content=[t.TextContent(text="bad")], is_error=True, structured_content={"a": 1})
    assert await _call(lambda: made) == _complete(
        content=[{"type": "text", "text": "bad"}], isError=True, structuredContent={"a": 1}
    )


@pytest.mark.observed("S-104")
async def test_nulls_in_structured_content_stay() -> None:
    made = t.CallToolResult(content=[], structured_content={"a": None})
    assert await _call(lambda: made) == _complete(content=[], isError=False, structuredContent={"a": None})


@pytest.mark.observed("S-105")
@pytest.mark.observed("S-106")
@pytest.mark.observed("S-107")
@pytest.mark.requirement("R-OUT-04")
@pytest.mark.requirement("R-OUT-05")
@pytest.mark.parametrize(
    "value",
    [[1], 5, False, "", "text", 0, 1.5, [], [None], msgspec.Raw(b"[1]"), msgspec.Raw(b" 5 ")],
    ids=lambda value: f"raw {bytes(value)!r}" if isinstance(value, msgspec.Raw) else repr(value),
)
async def test_structured_content_that_is_no_object_is_for_modern_clients(value: Any) -> None:
    shown = json.loads(bytes(value)) if isinstance(value, msgspec.Raw) else value
    got = await _call(lambda: t.CallToolResult(content=[], structured_content=value))
    assert got[0] == {"result": {"content": [], "isError": False, "resultType": "complete", "structuredContent": shown}}
    assert got[1] == {"result": {"content": [], "isError": False}}


@pytest.mark.requirement("R-OUT-05")
async def test_a_structured_null_is_present_for_modern_clients_only() -> None:
    got = await _call(lambda: t.CallToolResult(content=[], structured_content=t.NULL))
    assert got[0] == {"result": {"content": [], "isError": False, "resultType": "complete", "structuredContent": None}}
    assert got[1] == {"result": {"content": [], "isError": False}}


@pytest.mark.requirement("R-OUT-05")
async def test_a_null_in_a_dict_result_is_present_too() -> None:
    got = await _call(lambda: {"content": [], "structuredContent": None})
    assert got[0] == {"result": {"content": [], "isError": False, "resultType": "complete", "structuredContent": None}}
    assert got[1] == {"result": {"content": [], "isError": False}}


async def test_structured_content_that_is_absent_is_not_sent() -> None:
    assert await _call(lambda: t.CallToolResult(content=[])) == _complete(content=[], isError=False)


@pytest.mark.observed("S-108")
@pytest.mark.requirement("R-META-04")
async def test_meta_is_untouched_and_stamped_for_modern_clients() -> None:
    made = t.CallToolResult(content=[], _meta={"a/b": [1, {"c": None}]})
    assert await _call(lambda: made) == _complete(content=[], isError=False, _meta={"a/b": [1, {"c": None}]})
    assert made.meta == {"a/b": [1, {"c": None}]}


@pytest.mark.observed("S-109")
@pytest.mark.requirement("R-CONT-01")
@pytest.mark.requirement("R-CONT-02")
@pytest.mark.requirement("R-CONT-03")
@pytest.mark.requirement("R-CONT-04")
async def test_every_kind_of_block() -> None:
    made = t.CallToolResult(
        content=[
            t.TextContent(text="t"),
            t.ImageContent(data="AA==", mime_type="image/png"),
            t.AudioContent(data="AA==", mime_type="audio/wav"),
            t.ResourceLink(
                uri="u://x",
                name="n",
                title="T",
                description="d",
                mime_type="text/plain",
                size=3,
                icons=[t.Icon(src="s")],
            ),
            t.EmbeddedResource(
                resource=t.BlobResourceContents(uri="u://b", blob="AA==", mime_type="a/b", _meta={"z": 1})
            ),
        ]
    )
    assert await _call(lambda: made) == _complete(
        content=[
            {"type": "text", "text": "t"},
            {"type": "image", "data": "AA==", "mimeType": "image/png"},
            {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
            {
                "type": "resource_link",
                "uri": "u://x",
                "name": "n",
                "title": "T",
                "description": "d",
                "mimeType": "text/plain",
                "size": 3,
                "icons": [{"src": "s"}],
            },
            {"type": "resource", "resource": {"uri": "u://b", "blob": "AA==", "mimeType": "a/b", "_meta": {"z": 1}}},
        ],
        isError=False,
    )


@pytest.mark.observed("S-110")
async def test_a_result_type_of_its_own_is_for_modern_clients() -> None:
    own = {"resultType": "receipt", "token": "abc", "weird": 1}
    assert await _call(lambda: own) == [{"result": own}, WRONG]


@pytest.mark.observed("S-111")
@pytest.mark.requirement("R-MRTR-01")
@pytest.mark.requirement("R-MRTR-02")
async def test_input_required_is_for_modern_clients() -> None:
    asked = {"type": "object", "properties": {"x": {"type": "string"}}}
    params = t.ElicitRequestFormParams(message="m", requested_schema=asked, mode="form")
    made = t.InputRequiredResult(
        input_requests={"q": t.InputRequest(method="elicitation/create", params=params)}, request_state="S"
    )
    shown = {
        "resultType": "input_required",
        "inputRequests": {
            "q": {
                "method": "elicitation/create",
                "params": {"mode": "form", "message": "m", "requestedSchema": asked},
            }
        },
        "requestState": "S",
    }
    assert await _call(lambda: made) == [{"result": shown}, WRONG]
    assert await _call(lambda: shown) == [{"result": shown}, WRONG]


LINK_REQUEST: Final[dict[str, Any]] = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "m", "url": "https://x.example/"},
}


@pytest.mark.requirement("R-MRTR-04")
@pytest.mark.requirement("R-ERR-04")
@pytest.mark.parametrize("as_dict", [False, True], ids=["struct", "dict"])
async def test_input_is_not_asked_for_by_undeclared_means(as_dict: bool) -> None:
    request = t.InputRequest(method="elicitation/create", params=LINK_REQUEST["params"])
    made: Any = t.InputRequiredResult(input_requests={"q": request})
    if as_dict:
        made = {"resultType": "input_required", "inputRequests": {"q": LINK_REQUEST}}
    modern, _ = await _call(lambda: made)
    assert modern["error"]["code"] == -32021
    assert modern["error"]["data"] == {"requiredCapabilities": {"elicitation": {"url": {}}}}


@pytest.mark.requirement("R-MRTR-02")
@pytest.mark.parametrize("as_dict", [False, True], ids=["struct", "dict"])
async def test_input_required_asks_for_something(as_dict: bool) -> None:
    made: Any = {"resultType": "input_required"} if as_dict else t.InputRequiredResult()
    assert await _call(lambda: made) == [WRONG, WRONG]


@pytest.mark.requirement("R-MRTR-02")
@pytest.mark.parametrize("as_dict", [False, True], ids=["struct", "dict"])
async def test_input_required_with_a_state_alone(as_dict: bool) -> None:
    made: Any = t.InputRequiredResult(request_state="")
    if as_dict:
        made = {"resultType": "input_required", "requestState": ""}
    modern, legacy = await _call(lambda: made)
    assert modern == {"result": {"resultType": "input_required", "requestState": ""}}
    assert legacy == WRONG


@pytest.mark.requirement("R-MRTR-03")
async def test_input_is_asked_for_by_one_of_three_methods() -> None:
    request: dict[str, Any] = {"method": "tools/call", "params": {}}
    made: dict[str, Any] = {"resultType": "input_required", "inputRequests": {"q": request}}
    assert await _call(lambda: made) == [WRONG, WRONG]


@pytest.mark.observed("S-112")
async def test_an_exception_tells_nothing_in_either_era() -> None:
    assert await _call(lambda: _raise(ValueError("sec ret"))) == [BROKEN, BROKEN]


@pytest.mark.observed("S-113")
@pytest.mark.parametrize(
    "value",
    [
        t.ListToolsResult(tools=[]),
        t.EmptyResult(),
        t.Result(),
        t.Tool(name="n", input_schema={}),
        t.TextContent(text="x"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_struct_of_another_kind_is_refused(value: Any) -> None:
    assert await _call(lambda: value) == [WRONG, WRONG]


@pytest.mark.observed("S-114")
async def test_a_dict_may_say_that_it_is_complete() -> None:
    content = [{"type": "text", "text": "x"}]
    got = await _call(lambda: {"content": content, "resultType": "complete"})
    assert got == _complete(content=content, isError=False)


@pytest.mark.observed("S-115")
@pytest.mark.requirement("R-JS-06")
async def test_an_input_schema_is_untouched() -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "x": 1, "y": None}
    got = await _listed(t.ListToolsResult(tools=[t.Tool(name="a", input_schema=schema)]))
    listed = {"tools": [{"name": "a", "inputSchema": schema}]}
    assert got == [
        {"result": {**listed, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}},
        {"result": listed},
    ]


@pytest.mark.observed("S-116")
@pytest.mark.observed("S-117")
@pytest.mark.observed("S-118")
@pytest.mark.requirement("R-OUT-04")
@pytest.mark.parametrize("schema", [{"type": "array"}, {}, {"anyOf": [{"type": "object"}]}, {"type": ["object"]}])
@pytest.mark.parametrize("as_dict", [False, True], ids=["struct", "dict"])
async def test_an_output_schema_without_object_root_is_for_modern_clients(
    schema: dict[str, Any], as_dict: bool
) -> None:
    plain = {"name": "a", "inputSchema": {"type": "object"}}
    made = t.ListToolsResult(tools=[t.Tool(name="a", input_schema={"type": "object"}, output_schema=schema)])
    got = await _listed({"tools": [{**plain, "outputSchema": schema}]} if as_dict else made)
    hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    assert got == [{"result": {"tools": [{**plain, "outputSchema": schema}], **hints}}, {"result": {"tools": [plain]}}]


@pytest.mark.observed("S-119")
@pytest.mark.requirement("R-CACHE-01")
async def test_every_member_of_a_tool_and_its_list() -> None:
    made = t.ListToolsResult(
        tools=[
            t.Tool(
                name="a",
                title="T",
                description="D",
                input_schema={"type": "object"},
                annotations=t.ToolAnnotations(title="x"),
                icons=[t.Icon(src="s")],
                execution=t.ToolExecution(task_support="optional"),
                _meta={"k": 1},
            )
        ],
        next_cursor="c",
        ttl_ms=5,
        cache_scope="public",
        _meta={"q": 1},
    )
    tool = {
        "name": "a",
        "title": "T",
        "description": "D",
        "inputSchema": {"type": "object"},
        "annotations": {"title": "x"},
        "icons": [{"src": "s"}],
        "_meta": {"k": 1},
    }
    page = {"nextCursor": "c", "_meta": {"q": 1}}
    assert await _listed(made) == [
        {"result": {"tools": [tool], **page, "resultType": "complete", "ttlMs": 5, "cacheScope": "public"}},
        {"result": {"tools": [{**tool, "execution": {"taskSupport": "optional"}}], **page}},
    ]


@pytest.mark.observed("S-120")
@pytest.mark.observed("S-121")
@pytest.mark.parametrize("tools", [[], [t.Tool(name="a", input_schema={"type": "object"})]], ids=["none", "one"])
async def test_what_is_not_said_of_a_tool_is_not_sent(tools: list[t.Tool]) -> None:
    listed = {"tools": [{"name": "a", "inputSchema": {"type": "object"}} for _ in tools]}
    hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    assert await _listed(t.ListToolsResult(tools=tools)) == [{"result": {**listed, **hints}}, {"result": listed}]


@pytest.mark.observed("S-122")
@pytest.mark.requirement("R-PAGE-02")
@pytest.mark.parametrize("cursor", ["c", "", "größe"])
async def test_the_cursor_reaches_the_handler(cursor: str) -> None:
    seen: list[str | None] = []

    async def list_tools(ctx: object, params: t.PaginatedRequestParams) -> t.ListToolsResult:
        seen.append(params.cursor)
        return t.ListToolsResult(tools=[])

    server = Server("Low", version="1", on_list_tools=list_tools)
    await _both(server, "tools/list", {"cursor": cursor})
    await _both(server, "tools/list", {})
    assert seen == [cursor, cursor, None, None]


# --- isError --------------------------------------------------------------------------


@pytest.mark.parametrize("is_error", [True, False])
async def test_is_error_is_always_sent(is_error: bool) -> None:
    assert await _call(lambda: t.CallToolResult(content=[], is_error=is_error)) == _complete(
        content=[], isError=is_error
    )


async def test_is_error_is_always_sent_of_a_result_kept_ready() -> None:
    ready = t.Prepared(t.CallToolResult(content=[]))
    assert await _call(lambda: ready) == _complete(content=[], isError=False)


# --- what passes untouched ------------------------------------------------------------

OPEN: Final[dict[str, Any]] = {
    "": None,
    "null": None,
    "list": [None, [], {}, {"deep": None}],
    "snake_key": {"is_error": None, "camelKey": 1},
    "big": 2**70,
    "float": 1.0,
    "text": 'größe \u2028 "\\',
    "no": False,
}


async def test_structured_content_passes_untouched() -> None:
    made = t.CallToolResult(content=[], structured_content=OPEN)
    assert await _call(lambda: made) == _complete(content=[], isError=False, structuredContent=OPEN)
    as_dict: dict[str, Any] = {"content": [], "structuredContent": OPEN}
    assert await _call(lambda: as_dict) == _complete(content=[], isError=False, structuredContent=OPEN)


async def test_meta_passes_untouched() -> None:
    made = t.CallToolResult(content=[t.TextContent(text="x", _meta=OPEN)], _meta=OPEN)
    block = {"type": "text", "text": "x", "_meta": OPEN}
    assert await _call(lambda: made) == _complete(content=[block], isError=False, _meta=OPEN)


async def test_arguments_reach_the_handler_untouched() -> None:
    seen: list[Any] = []

    async def call_tool(ctx: object, params: t.CallToolRequestParams) -> t.CallToolResult:
        seen.append((params.arguments, (params.meta or {}).get("own")))
        return t.CallToolResult(content=[])

    server = Server("Low", version="1", on_call_tool=call_tool)
    async with RawPeer.of(server) as peer:
        await peer.modern(1, "tools/call", {"name": "x", "arguments": OPEN}, own=OPEN)
    assert seen == [(OPEN, OPEN)]
    assert isinstance(seen[0][0]["float"], float)


# --- as a client reads it -------------------------------------------------------------

MODES: Final = pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])


def _raw_server(result: bytes) -> Server:
    """A server whose tools and prompts answer with these bytes."""
    ready = msgspec.Raw(result)
    return Server("Low", on_call_tool=lambda ctx, params: ready, on_get_prompt=lambda ctx, params: ready)


VIDEO: Final[dict[str, Any]] = {
    "type": "video",
    "data": "AA==",
    "poster": {"type": "image", "n": None},
    "_meta": {"k": None},
}


@MODES
async def test_a_client_keeps_blocks_of_unknown_kinds_in_their_place(mode: Mode) -> None:
    known = {"type": "text", "text": "x"}
    result = encode({"content": [VIDEO, known, VIDEO, {"type": "hologram"}], "structuredContent": {"a": None}})
    async with Client(_raw_server(result), mode=mode) as client:
        got = await client.call_tool("x")
    assert got.content == [
        t.UnknownContent(VIDEO),
        t.TextContent(text="x"),
        t.UnknownContent(VIDEO),
        t.UnknownContent({"type": "hologram"}),
    ]
    assert got.content[0].type == "video"
    assert got.structured_content == {"a": None}
    assert got.is_error is False


@MODES
async def test_a_client_keeps_unknown_blocks_of_prompts(mode: Mode) -> None:
    messages = [{"role": "user", "content": VIDEO}, {"role": "assistant", "content": {"type": "text", "text": "x"}}]
    async with Client(_raw_server(encode({"messages": messages, "description": "d"})), mode=mode) as client:
        got = await client.get_prompt("x")
    assert got.messages == [
        t.PromptMessage(role="user", content=t.UnknownContent(VIDEO)),
        t.PromptMessage(role="assistant", content=t.TextContent(text="x")),
    ]
    assert got.description == "d"


@MODES
async def test_a_null_beside_an_unknown_block_is_told_from_its_absence(mode: Mode) -> None:
    async with Client(_raw_server(encode({"content": [VIDEO]})), mode=mode) as client:
        assert (await client.call_tool("x")).structured_content is None
    if mode != "legacy":
        with_null = encode({"content": [VIDEO], "structuredContent": None})
        async with Client(_raw_server(with_null), mode=mode) as client:
            assert (await client.call_tool("x")).structured_content == t.NULL


@MODES
@pytest.mark.parametrize(
    "content",
    [
        pytest.param([{"type": "text"}], id="known kind, member missing"),
        pytest.param([{"type": "text", "text": 5}], id="known kind, wrong type"),
        pytest.param(["text"], id="no object"),
        pytest.param([None], id="null"),
        pytest.param({"type": "text", "text": "x"}, id="no list"),
        pytest.param(None, id="null instead of a list"),
    ],
)
async def test_a_block_that_is_none_is_an_invalid_result(mode: Mode, content: Any) -> None:
    async with Client(_raw_server(encode({"content": content})), mode=mode) as client:
        with pytest.raises(InvalidResult):
            await client.call_tool("x")


async def test_an_unknown_block_goes_out_as_it_came() -> None:
    made = t.CallToolResult(content=[t.UnknownContent(VIDEO), t.TextContent(text="x")])
    assert await _call(lambda: made) == _complete(content=[VIDEO, {"type": "text", "text": "x"}], isError=False)


def test_unknown_blocks_compare_by_content() -> None:
    assert t.UnknownContent({"type": "a"}) == t.UnknownContent({"type": "a"})
    assert t.UnknownContent({"type": "a"}) != t.UnknownContent({"type": "b"})
    assert t.UnknownContent({"type": "a"}) != {"type": "a"}
    assert "'a'" in repr(t.UnknownContent({"type": "a"}))
    with pytest.raises(TypeError):
        hash(t.UnknownContent({"type": "a"}))


@pytest.mark.requirement("R-OUT-05")
async def test_a_client_tells_null_from_absence() -> None:
    results: dict[str, Any] = {"null": t.NULL, "absent": None, "object": {"a": None}, "false": False}

    async def call_tool(ctx: object, params: t.CallToolRequestParams) -> t.CallToolResult:
        text = [t.TextContent(text='{"structuredContent":null}')]
        return t.CallToolResult(content=[*text], structured_content=results[params.name])

    async with Client(Server("Low", on_call_tool=call_tool), mode="2026-07-28") as client:
        got = {name: (await client.call_tool(name)).structured_content for name in results}
    assert got == results


@pytest.mark.requirement("R-BASE-10")
async def test_a_client_refuses_a_result_type_that_nobody_announced() -> None:
    async with Client(_raw_server(b'{"content":[],"resultType":"receipt"}'), mode="2026-07-28") as client:
        with pytest.raises(InvalidResult, match="receipt"):
            await client.call_tool("x")


@pytest.mark.requirement("R-TOOL-09")
async def test_a_client_reads_a_missing_is_error_as_false() -> None:
    async with Client(_raw_server(b'{"content":[]}'), mode="2026-07-28") as client:
        assert (await client.call_tool("x")).is_error is False

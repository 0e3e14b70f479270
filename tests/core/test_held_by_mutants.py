"""What each answer is, whole, where a small change of the code once went unseen."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
import pytest
from msgspec import Raw

from mcp_core import MCPError, RequestContext, Server
from mcp_core import types as t
from mcp_core.revisions import V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25
from mcp_core.testing import RawPeer, modern_meta
from tests.core.peers import line, modern, notification

STAMP: Final = {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}
INVALID: Final = {"code": -32603, "message": "Handler returned an invalid result"}
SAID: Final = t.TextContent(text="said")


def wrong(value: Any) -> Any:
    """A value that the type of its place does not allow."""
    return value


def returning(result: Any, hook: str = "on_call_tool") -> Server:
    """A server whose handlers return this."""

    def handle(ctx: RequestContext, params: Any) -> Any:
        return result

    hooks: dict[str, Any] = {hook: handle}
    return Server("s", version="1", **hooks)


async def legacy_answer(server: Server, method: str, params: Any = None, revision: str = V2025_11_25) -> Any:
    """What a client of an older revision is answered, without the id."""
    async with RawPeer.of(server) as peer:
        await peer.initialize(revision)
        answer = await peer.call(1, method, params)
    return {key: value for key, value in answer.items() if key not in ("jsonrpc", "id")}


async def modern_answer(server: Server, method: str, params: Any = None, capabilities: Any = None) -> Any:
    """What a client of 2026-07-28 is answered, without the id."""
    meta = modern_meta(capabilities)
    answer = json.loads(await server.handle(line(modern(1, method, params, **meta))) or b"")
    return {key: value for key, value in answer.items() if key not in ("jsonrpc", "id")}


# --- results --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "result",
    [
        t.CallToolResult(content=[], result_type="vendor/x"),
        {"content": [], "resultType": "vendor/x"},
        Raw(b'{"content":[],"resultType":"vendor/x"}'),
    ],
    ids=["struct", "dict", "bytes"],
)
async def test_a_result_type_that_a_revision_lacks_is_an_invalid_result_there(result: Any) -> None:
    server = returning(result)
    assert await legacy_answer(server, "tools/call", {"name": "x"}) == {"error": INVALID}
    sent = (await modern_answer(server, "tools/call", {"name": "x"}))["result"]
    sent.pop("isError", None)  # of ready bytes, no default is filled in
    assert sent == {"content": [], "resultType": "vendor/x", "_meta": STAMP}


@pytest.mark.parametrize(
    "result",
    [
        t.CallToolResult(content=[], _meta=wrong([1])),
        t.CallToolResult(content=[], result_type=wrong(5)),
        t.CallToolResult(content=[SAID], _meta=wrong("meta")),
    ],
    ids=["meta", "type", "meta of text"],
)
async def test_a_wrong_member_beside_the_content_is_an_invalid_result(result: t.CallToolResult) -> None:
    server = returning(result)
    assert await legacy_answer(server, "tools/call", {"name": "x"}) == {"error": INVALID}
    assert await modern_answer(server, "tools/call", {"name": "x"}) == {"error": INVALID}


async def test_a_list_that_is_no_list_is_an_invalid_result() -> None:
    server = returning(t.ListToolsResult(tools=wrong("ab")), "on_list_tools")
    assert await legacy_answer(server, "tools/list") == {"error": INVALID}
    assert await modern_answer(server, "tools/list") == {"error": INVALID}


async def test_ready_bytes_that_name_the_ordinary_type_are_sent_without_it_to_older_clients() -> None:
    server = returning(Raw(b'{"content":[],"resultType":"complete"}'))
    assert await legacy_answer(server, "tools/call", {"name": "x"}) == {"result": {"content": []}}


@pytest.mark.parametrize("result_type", ["complete", "vendor/x"])
async def test_ready_bytes_in_which_the_words_of_a_request_for_input_are_text_ask_for_none(result_type: str) -> None:
    content = [{"type": "text", "text": "input_required"}]
    server = returning(Raw(line({"content": content, "resultType": result_type})))
    sent = await modern_answer(server, "tools/call", {"name": "x"})
    assert sent == {"result": {"content": content, "resultType": result_type, "_meta": STAMP}}


class Own(msgspec.Struct):
    """A result of the author's own, that knows nothing of MCP's."""

    number: int


async def test_a_struct_of_the_authors_own_is_the_result_of_a_method_of_their_own() -> None:
    server = Server("s", version="1")
    server.add_request_handler("x/own", dict[str, Any], lambda ctx, params: Own(5))
    assert await legacy_answer(server, "x/own", {}) == {"result": {"number": 5}}
    sent = await modern_answer(server, "x/own")
    assert sent == {"result": {"number": 5, "resultType": "complete", "_meta": STAMP}}


@pytest.mark.parametrize("result", [None, t.Result(), t.EmptyResult(), {}], ids=repr)
async def test_an_empty_result_may_be_any_that_says_nothing(result: Any) -> None:
    assert await legacy_answer(returning(result, "on_ping"), "ping") == {"result": {}}


async def test_a_scope_that_is_equal_to_the_default_but_not_the_same_text_is_sent_once() -> None:
    scope: Any = "".join(["pri", "vate"])
    server = returning(t.ListToolsResult(tools=[], cache_scope=scope), "on_list_tools")
    answer = await server.handle(line(modern(1, "tools/list"))) or b""
    assert answer.count(b'"cacheScope":"private"') == 1


async def test_a_dict_that_asks_for_input_is_held_to_the_names_of_the_wire() -> None:
    server = returning({"resultType": "input_required", "requestState": "s", "input_requests": {}})
    assert await modern_answer(server, "tools/call", {"name": "x"}) == {"error": INVALID}


async def test_a_choice_of_tools_alone_takes_a_client_that_samples_with_tools() -> None:
    asked: dict[str, Any] = {"messages": [], "maxTokens": 1, "toolChoice": {"mode": "none"}}
    request = {"method": "sampling/createMessage", "params": asked}
    server = returning({"resultType": "input_required", "inputRequests": {"a": request}})
    answer = await modern_answer(server, "tools/call", {"name": "x"}, {"sampling": {}})
    assert answer["error"]["data"] == {"requiredCapabilities": {"sampling": {"tools": {}}}}


async def test_a_call_may_be_answered_with_a_task_and_a_prompt_may_not() -> None:
    now = "2026-01-01T00:00:00Z"
    task = t.Task(task_id="1", status="working", created_at=now, last_updated_at=now, ttl=None)
    shown = {"taskId": "1", "status": "working", "createdAt": now, "lastUpdatedAt": now, "ttl": None}
    result = t.CreateTaskResult(task=task)
    assert await legacy_answer(returning(result), "tools/call", {"name": "x"}) == {"result": {"task": shown}}
    prompt = returning(result, "on_get_prompt")
    assert await legacy_answer(prompt, "prompts/get", {"name": "x"}) == {"error": INVALID}


# --- what older revisions are sent ------------------------------------------------------------


@pytest.mark.parametrize("revision", [V2025_06_18, V2025_11_25])
async def test_ready_structured_content_goes_to_an_older_client_byte_for_byte(revision: str) -> None:
    server = returning(t.CallToolResult(content=[], structured_content=Raw(b'{"b":1.00,"a":1e2}')))
    async with RawPeer.of(server) as peer:
        await peer.initialize(revision)
        await peer.call(1, "tools/call", {"name": "x"})
    assert b'"structuredContent":{"b":1.00,"a":1e2}' in peer.messages[-1]


@pytest.mark.parametrize("revision", [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25])
@pytest.mark.parametrize("held", ["[1]", '"text"', "5", "null"])
async def test_structured_content_in_ready_bytes_that_is_no_object_is_for_no_older_client(
    revision: str, held: str
) -> None:
    server = returning(Raw(b'{"content":[],"structuredContent":%b}' % held.encode()))
    sent = await legacy_answer(server, "tools/call", {"name": "x"}, revision)
    assert sent == {"result": {"content": []}}


async def test_audio_that_a_revision_lacks_keeps_its_annotations_where_a_text_stands_for_it() -> None:
    sound = t.AudioContent(data="AAAA", mime_type="audio/wav", annotations=t.Annotations(priority=1))

    async def ask(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        await ctx.create_message([t.SamplingMessage(role="user", content=sound)], max_tokens=1)
        return t.CallToolResult(content=[])

    async with RawPeer.of(Server("s", on_call_tool=ask)) as peer:
        await peer.initialize(V2024_11_05, {"sampling": {}})
        asked = await peer.call(1, "tools/call", {"name": "x"})
    content = {"type": "text", "text": "[audio/wav]", "annotations": {"priority": 1}}
    assert asked["params"]["messages"] == [{"role": "user", "content": content}]


async def test_audio_that_a_revision_lacks_is_a_resource_named_by_the_beginning_of_its_data() -> None:
    server = returning(t.CallToolResult(content=[t.AudioContent(data="A" * 32, mime_type="audio/wav")]))
    sent = await legacy_answer(server, "tools/call", {"name": "x"}, V2024_11_05)
    resource = {"uri": "audio:" + "41" * 24, "mimeType": "audio/wav", "blob": "A" * 32}
    assert sent == {"result": {"content": [{"type": "resource", "resource": resource}], "isError": False}}


# --- dispatch ---------------------------------------------------------------------------------


async def test_an_interrupt_in_the_handler_of_a_notification_ends_the_program() -> None:
    def interrupted(ctx: RequestContext, params: Any) -> None:
        raise KeyboardInterrupt

    server = Server("s")
    server.add_notification_handler("x/heard", dict[str, Any], interrupted)
    with pytest.raises(KeyboardInterrupt):
        await server.handle(line(notification("x/heard", {})))


class Unspeakable:
    """What cannot even be made a text."""

    def __str__(self) -> str:
        raise ValueError("no words")


class Refusing(msgspec.Struct):
    """Params that refuse themselves, without a word."""

    def __post_init__(self) -> None:
        raise MCPError(-5, wrong(Unspeakable()))


async def test_an_error_whose_message_cannot_be_made_a_text_is_an_internal_error() -> None:
    server = Server("s")
    server.add_request_handler("x/params", Refusing, lambda ctx, params: {})
    server.add_request_handler("x/handler", dict[str, Any], lambda ctx, params: Refusing())
    internal = {"error": {"code": -32603, "message": "Internal server error"}}
    for method in ("x/params", "x/handler"):
        assert await modern_answer(server, method) == internal


async def test_middleware_may_answer_the_handshake_itself() -> None:
    own = {"protocolVersion": V2025_11_25, "capabilities": {}, "serverInfo": {"name": "other", "version": "2"}}

    async def answer(ctx: RequestContext, call_next: Any) -> Any:
        return own if ctx.method == "initialize" else await call_next(ctx)

    server = Server("s")
    server.middleware.append(answer)
    async with RawPeer.of(server) as peer:
        assert await peer.initialize() == own


class Seen:
    """Keeps the revision of each request that has ended, and its answer."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, bytes | None]] = []

    def request_finished(self, ctx: RequestContext, answer: bytes | None) -> None:
        self.ended.append((ctx.protocol_version, answer))


async def test_observers_see_a_refused_request_in_the_revision_that_it_claims() -> None:
    server, seen = returning({"content": []}), Seen()
    server.observers.add(seen)
    async with RawPeer.of(server) as peer:
        await peer.initialize(V2025_06_18)
        seen.ended.clear()
        await peer.modern(1, "tools/call", {"name": 5})
        await peer.call(2, "tools/call", {"name": 5})
    assert seen.ended == list(zip(["2026-07-28", V2025_06_18], peer.messages[1:], strict=True))

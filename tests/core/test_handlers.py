"""Handlers of every shape, what they return and raise, and what surrounds them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import msgspec
import pytest

from mcp_core import MCPError, RequestContext, ResourceNotFound, Server
from mcp_core.errors import MissingClientCapability, UrlElicitationRequired
from mcp_core.testing import RawPeer, WireRecorder, flush_logs, modern_meta
from mcp_core.types import (
    NULL,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ErrorData,
    GetPromptResult,
    InputRequest,
    InputRequiredResult,
    ListToolsResult,
    Prepared,
    RawCallToolParams,
    ReadResourceResult,
    TextContent,
    Tool,
)
from tests.core.peers import answers, code_of, echo, echo_now, echo_server, legacy, line, modern, notification

CallNext = Callable[[RequestContext[Any]], Awaitable[Any]]
CALL = {"name": "x"}


def returning(value: Any) -> Any:
    """A `tools/call` handler that returns this."""

    def handler(ctx: RequestContext, params: CallToolRequestParams) -> Any:
        return value

    return handler


def returning_each(make: Callable[[], Any]) -> Any:
    """A `tools/call` handler that returns a new one each time."""

    def handler(ctx: RequestContext, params: CallToolRequestParams) -> Any:
        return make()

    return handler


def raising(make: Callable[[], BaseException], *, waits: bool = False) -> Any:
    """A `tools/call` handler that raises this."""

    def now(ctx: RequestContext, params: CallToolRequestParams) -> Any:
        raise make()

    async def later(ctx: RequestContext, params: CallToolRequestParams) -> Any:
        await anyio.lowlevel.checkpoint()
        raise make()

    return later if waits else now


async def both_eras(server: Server[Any], method: str = "tools/call", params: Any = None) -> tuple[Any, Any]:
    """The answers to one call, in 2026-07-28 and in 2025-11-25; the server must live on."""
    async with RawPeer.of(server) as peer:
        new = await peer.modern("new", method, CALL if params is None else params)
        await peer.initialize()
        old = await peer.call("old", method, CALL if params is None else params)
        assert await peer.call("alive", "ping") == {"jsonrpc": "2.0", "id": "alive", "result": {}}
        assert await answers(peer) == []
    assert (new["id"], old["id"]) == ("new", "old")
    return new, old


# --- shapes of a handler ---------------------------------------------------------------


class Tools:
    """Handlers as methods and as an object."""

    async def method(self, ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        return CallToolResult(content=[TextContent(text="method")])

    def __call__(self, ctx: RequestContext, params: CallToolRequestParams) -> Awaitable[CallToolResult]:
        return self.method(ctx, params)


class Later:
    """Something awaitable that is no coroutine."""

    def __await__(self) -> Any:
        yield from anyio.lowlevel.checkpoint().__await__()
        return CallToolResult(content=[TextContent(text="later")])


@pytest.mark.parametrize(
    ("handler", "text"),
    [
        (echo, "x"),
        (echo_now, "x"),
        (Tools().method, "method"),
        (Tools(), "method"),
        (partial(echo), "x"),
        (returning_each(Later), "later"),
        (returning({"content": [{"type": "text", "text": "dict"}]}), "dict"),
        (returning(msgspec.Raw(b'{"content":[{"type":"text","text":"raw"}],"isError":false}')), "raw"),
        (returning(msgspec.Raw(b'{\n "content" : [{"type":"text","text":"raw"}],\r\n "isError":false}')), "raw"),
        (returning(Prepared(CallToolResult(content=[TextContent(text="ready")]))), "ready"),
    ],
)
async def test_a_handler_may_have_any_shape(handler: Any, text: str) -> None:
    new, old = await both_eras(Server("shapes", on_call_tool=handler))
    assert new["result"]["content"] == old["result"]["content"] == [{"type": "text", "text": text}]
    assert new["result"]["isError"] is old["result"]["isError"] is False
    assert new["result"]["resultType"] == "complete"
    assert "resultType" not in old["result"]


async def test_handlers_run_side_by_side() -> None:
    running = 0
    all_there = anyio.Event()

    async def meet(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        nonlocal running
        running += 1
        if running == 10:
            all_there.set()
        await all_there.wait()
        return CallToolResult(content=[])

    async with RawPeer.of(Server("meet", on_call_tool=meet)) as peer:
        for i in range(10):
            peer.send(modern(i, "tools/call", CALL))
        got = [await peer.receive_next() for _ in range(10)]
    assert sorted(answer["id"] for answer in got) == list(range(10))


# --- what they return --------------------------------------------------------------------


@pytest.mark.observed("S-086")
@pytest.mark.observed("S-091")
@pytest.mark.observed("S-095")
@pytest.mark.observed("S-097")
@pytest.mark.observed("S-098")
@pytest.mark.observed("S-113")
@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "text",
        5,
        b"bytes",
        object(),
        TextContent(text="a block"),
        ListToolsResult(tools=[]),
        GetPromptResult(messages=[]),
        Prepared(ListToolsResult(tools=[])),
        {},
        {"content": "text"},
        {"content": [{"type": "nonsense"}]},
        {"content": [{"type": "text"}]},
        {"content": [], "is_error": True},
        {"content": [], "isError": "yes"},
        msgspec.Raw(b"[]"),
        msgspec.Raw(b"{bad"),
        msgspec.Raw(b'{"content":["\xff"]}'),
        msgspec.Raw(b""),
    ],
)
async def test_a_result_of_the_wrong_shape_is_a_server_error(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    new, old = await both_eras(Server("wrong", on_call_tool=returning(value)))
    for answer in (new, old):
        assert answer["error"] == {"code": -32603, "message": "Handler returned an invalid result"}
    flush_logs()
    assert "tools/call" in caplog.text


@pytest.mark.observed("S-092")
@pytest.mark.observed("S-093")
@pytest.mark.observed("S-114")
@pytest.mark.parametrize(
    "value", [{"content": []}, {"content": [], "isError": False}, {"content": [], "resultType": "complete"}], ids=str
)
async def test_a_dict_is_completed(value: dict[str, Any]) -> None:
    new, old = await both_eras(Server("dicts", version="1", on_call_tool=returning(value)))
    stamp = {"io.modelcontextprotocol/serverInfo": {"name": "dicts", "version": "1"}}
    assert old["result"] == {"content": [], "isError": False}
    assert new["result"] == {"content": [], "isError": False, "resultType": "complete", "_meta": stamp}
    assert value in ({"content": []}, {"content": [], "isError": False}, {"content": [], "resultType": "complete"})


def circular() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "structured", [{"x": object()}, {"x": {1j}}, circular(), {"x": circular()}, {("a", "b"): 1}, NotImplemented]
)
@pytest.mark.parametrize("form", ["struct", "dict", "prepared"])
async def test_a_result_that_cannot_be_encoded_is_a_server_error(
    structured: Any, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    value: Any = CallToolResult(content=[], structured_content=structured)
    if form == "dict":
        value = {"content": [], "structuredContent": structured}
    elif form == "prepared":
        value = Prepared(value)
    new, old = await both_eras(Server("odd", on_call_tool=returning(value)))
    for answer in (new, old):
        assert code_of(answer) == -32603
        assert "object at 0x" not in json.dumps(answer)
    flush_logs()
    assert "tools/call" in caplog.text


@pytest.mark.requirement("R-OUT-05")
@pytest.mark.observed("S-104")
@pytest.mark.observed("S-105")
@pytest.mark.observed("S-106")
@pytest.mark.observed("S-107")
@pytest.mark.parametrize("structured", [{"a": None}, [1], 5, False, "s", 0.5, NULL])
async def test_structured_content_goes_where_it_is_known(structured: Any) -> None:
    new, old = await both_eras(
        Server("structured", on_call_tool=returning(CallToolResult(content=[], structured_content=structured)))
    )
    wanted = None if structured is NULL else structured
    assert "structuredContent" in new["result"]
    assert new["result"]["structuredContent"] == wanted
    assert type(new["result"]["structuredContent"]) is type(wanted)
    assert ("structuredContent" in old["result"]) == isinstance(structured, dict)


async def test_what_is_not_finite_becomes_null() -> None:
    value = CallToolResult(content=[], structured_content={"n": float("nan"), "i": float("inf")})
    new, old = await both_eras(Server("nan", on_call_tool=returning(value)))
    assert new["result"]["structuredContent"] == old["result"]["structuredContent"] == {"n": None, "i": None}


@pytest.mark.case("C035")
@pytest.mark.requirement("R-CONT-07")
async def test_meta_survives_at_every_level() -> None:
    value = CallToolResult(
        content=[TextContent(text="hi", _meta={"tm": 2, "n": None})],
        structured_content={"n": 1},
        _meta={"k": {"deep": [1, None]}},
    )
    new, old = await both_eras(Server("meta", version="", on_call_tool=returning(value)))
    assert old["result"]["_meta"] == {"k": {"deep": [1, None]}}
    assert new["result"]["_meta"]["k"] == {"deep": [1, None]}
    for answer in (new, old):
        assert answer["result"]["content"] == [{"type": "text", "text": "hi", "_meta": {"tm": 2, "n": None}}]


async def test_a_prepared_result_is_the_same_each_time() -> None:
    ready = Prepared(ListToolsResult(tools=[Tool(name="é", input_schema={"type": "object"})], _meta={"a": 1}))
    server = Server("ready", on_list_tools=lambda ctx, params: ready)
    first, second = await both_eras(server, "tools/list"), await both_eras(server, "tools/list")
    assert first == second
    assert first[1]["result"] == {"tools": [{"name": "é", "inputSchema": {"type": "object"}}], "_meta": {"a": 1}}
    assert first[0]["result"]["ttlMs"] == 0
    assert first[0]["result"]["_meta"]["a"] == 1


async def test_raw_arguments_reach_who_asks_for_them() -> None:
    seen: list[bytes] = []

    def note(ctx: RequestContext, params: RawCallToolParams) -> CallToolResult:
        seen.append(bytes(params.arguments))
        return CallToolResult(content=[])

    server = Server("raw")
    server.add_request_handler("tools/call", RawCallToolParams, note)
    async with RawPeer.of(server) as peer:
        await peer.initialize()
        for arguments in (b'{"a": 1}', b"null", b"{ }"):
            request = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":%b}}'
            assert "result" in await peer.answer(request % arguments)
        assert "result" in await peer.call(2, "tools/call", CALL)
        for wrong in ([], "", 5, [1]):
            assert code_of(await peer.call(3, "tools/call", {**CALL, "arguments": wrong})) == -32602
    assert seen == [b'{"a": 1}', b"{}", b"{ }", b"{}"]


class Odd(BaseException):
    """Cannot even be shown."""

    def __str__(self) -> str:
        raise ZeroDivisionError


# --- what they raise -----------------------------------------------------------------------


@pytest.mark.requirement("R-ERR-01")
@pytest.mark.requirement("R-LOG-05")
@pytest.mark.case("C042")
@pytest.mark.case("C043")
@pytest.mark.observed("S-112")
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda: ValueError("the secret"),
        lambda: SystemExit("the secret"),
        lambda: asyncio.CancelledError("the secret"),
        lambda: StopAsyncIteration("the secret"),
        lambda: TimeoutError("the secret"),
        lambda: ExceptionGroup("the secret", [ValueError("the secret"), MCPError(5, "the secret")]),
        lambda: BaseExceptionGroup("the secret", [SystemExit("the secret")]),
        lambda: RecursionError("the secret"),
        lambda: MemoryError("the secret"),
        lambda: UnicodeDecodeError("utf-8", b"the secret", 0, 1, "the secret"),
        lambda: msgspec.ValidationError("the secret"),
        lambda: msgspec.DecodeError("the secret"),
        lambda: Odd("the secret"),
    ],
)
async def test_any_other_exception_ends_its_request_only(
    make: Callable[[], BaseException], waits: bool, caplog: pytest.LogCaptureFixture
) -> None:
    new, old = await both_eras(Server("raises", on_call_tool=raising(make, waits=waits)))
    for answer in (new, old):
        assert answer["error"] == {"code": -32603, "message": "Internal server error"}
    flush_logs()
    assert "Traceback" in caplog.text
    if not isinstance(make(), Odd):
        assert "the secret" in caplog.text


@pytest.mark.requirement("R-BASE-06")
@pytest.mark.requirement("R-ERR-09")
@pytest.mark.observed("S-100")
@pytest.mark.observed("S-101")
@pytest.mark.observed("S-102")
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    ("code", "message", "data"),
    [(-32001, "me", None), (-32001, "me", [1]), (0, "", 0), (1234, "é\n", {"a": None}), (-32602, "no", False)],
)
async def test_an_mcp_error_goes_out_as_it_is(code: int, message: str, data: Any, waits: bool) -> None:
    wanted = {"code": code, "message": message} if data is None else {"code": code, "message": message, "data": data}
    raised = Server("errors", on_call_tool=raising(lambda: MCPError(code, message, data), waits=waits))
    returned = Server("errors", on_call_tool=returning(ErrorData(code=code, message=message, data=data)))
    for server in (raised, returned):
        for answer in await both_eras(server):
            assert answer["error"] == wanted


@pytest.mark.parametrize("data", [object(), circular(), {"a": {1j}}])
async def test_error_data_that_cannot_be_encoded_is_left_out(data: Any) -> None:
    for answer in await both_eras(Server("errors", on_call_tool=raising(lambda: MCPError(7, "seven", data)))):
        assert answer["error"] == {"code": 7, "message": "seven"}


@pytest.mark.requirement("R-ERR-08")
@pytest.mark.requirement("R-RES-04")
@pytest.mark.requirement("R-ELIC-10")
async def test_errors_are_worded_for_the_revision() -> None:
    def of(error: MCPError) -> Server[Any]:
        return Server("eras", on_read_resource=raising(lambda: error))

    uri = {"uri": "x://y"}
    new, old = await both_eras(of(ResourceNotFound("x://y")), "resources/read", uri)
    assert new["error"] == {"code": -32602, "message": "Unknown resource: x://y", "data": uri}
    assert old["error"] == {"code": -32002, "message": "Unknown resource: x://y", "data": uri}

    new, old = await both_eras(of(MCPError(-32002, "gone", uri)), "resources/read", uri)
    assert [new["error"]["code"], old["error"]["code"]] == [-32602, -32002]

    asked = ElicitRequestURLParams(message="m", url="https://x", elicitation_id="e1")
    new, old = await both_eras(of(UrlElicitationRequired([asked])), "resources/read", uri)
    assert old["error"]["code"] == -32042
    wanted = {"mode": "url", "message": "m", "url": "https://x", "elicitationId": "e1"}
    assert old["error"]["data"] == {"elicitations": [wanted]}
    assert code_of(new) == -32603

    missing = MissingClientCapability("needs sampling", {"sampling": {}})
    new, old = await both_eras(of(missing), "resources/read", uri)
    assert new["error"] == {
        "code": -32021,
        "message": "needs sampling",
        "data": {"requiredCapabilities": {"sampling": {}}},
    }
    assert code_of(old) == -32602


@pytest.mark.requirement("R-ERR-01")
@pytest.mark.requirement("R-TOOL-10")
@pytest.mark.case("C015")
@pytest.mark.observed("S-467")
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": 5},
        {"name": None},
        {"name": "x", "arguments": []},
        {"name": "x", "arguments": ""},
        {"name": "x", "arguments": 5},
        {"name": "x", "inputResponses": []},
        {"name": "x", "requestState": 5},
    ],
    ids=str,
)
async def test_params_that_do_not_fit_are_minus_32602_and_run_nothing(params: Any) -> None:
    for answer in await both_eras(Server("fit", on_call_tool=raising(AssertionError)), params=params):
        assert code_of(answer) == -32602


@pytest.mark.case("C015")
@pytest.mark.observed("S-467")
@pytest.mark.parametrize(
    "params", [CALL, {**CALL, "arguments": None}, {**CALL, "arguments": {}}, {**CALL, "more": [1]}], ids=str
)
async def test_absent_null_and_empty_arguments_run_the_tool(params: Any) -> None:
    for answer in await both_eras(echo_server(), params=params):
        assert answer["result"]["structuredContent"] == {}


# --- client input in 2026-07-28 ---------------------------------------------------------------


FORM = ElicitRequestFormParams(message="m", requested_schema={"type": "object", "properties": {}}, mode="form")
URL = ElicitRequestURLParams(message="m", url="https://x")


def ask(method: str, params: Any = None, **more: Any) -> Any:
    request: Any = InputRequest(method=method, params=params)  # type: ignore[arg-type]
    return InputRequiredResult(input_requests={"q": request}, **more)


@pytest.mark.requirement("R-MRTR-01")
@pytest.mark.requirement("R-MRTR-02")
@pytest.mark.requirement("R-CACHE-02")
@pytest.mark.observed("S-111")
@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read"])
async def test_input_may_be_asked_for_by_a_result(method: str) -> None:
    value = ask("elicitation/create", FORM, request_state="S")
    on: dict[str, Any] = {
        "on_call_tool": returning(value),
        "on_get_prompt": returning(value),
        "on_read_resource": returning(value),
    }
    async with RawPeer.of(Server("asks", version="1", **on)) as peer:
        answer = await peer.modern(1, method, {**CALL, "uri": "u://x"}, capabilities={"elicitation": {}})
        await peer.initialize("2025-11-25", {"elicitation": {}})
        old = await peer.call(2, method, {**CALL, "uri": "u://x"})
    result = answer["result"]
    assert result.pop("_meta") == {"io.modelcontextprotocol/serverInfo": {"name": "asks", "version": "1"}}
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    request = {"method": "elicitation/create", "params": {"message": "m", "mode": "form", "requestedSchema": schema}}
    assert result == {"resultType": "input_required", "inputRequests": {"q": request}, "requestState": "S"}
    assert code_of(old) == -32603


@pytest.mark.requirement("R-MRTR-01")
@pytest.mark.parametrize("form", ["struct", "dict", "raw"])
@pytest.mark.parametrize("method", ["tools/list", "completion/complete"])
async def test_other_methods_may_not_ask(method: str, form: str) -> None:
    value: Any = InputRequiredResult(request_state="S")
    if form == "dict":
        value = {"resultType": "input_required", "requestState": "S"}
    elif form == "raw":
        value = msgspec.Raw(b'{"resultType":"input_required","requestState":"S"}')
    on: dict[str, Any] = {"on_list_tools": returning(value), "on_completion": returning(value)}
    ref = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
    new, _ = await both_eras(Server("asks", **on), method, ref if method == "completion/complete" else {})
    assert code_of(new) == -32603


@pytest.mark.requirement("R-MRTR-02")
@pytest.mark.requirement("R-MRTR-03")
@pytest.mark.parametrize(
    "value",
    [
        InputRequiredResult(),
        InputRequiredResult(input_requests={}),
        ask("tools/call"),
        ask("ping"),
        {"resultType": "input_required"},
        {"resultType": "input_required", "inputRequests": {}},
        {"resultType": "input_required", "inputRequests": {"q": {"method": "ping"}}},
        {"resultType": "input_required", "inputRequests": [{"method": "roots/list"}]},
        msgspec.Raw(b'{"resultType":"input_required"}'),
        msgspec.Raw(b'{"resultType":"input_required","inputRequests":{"q":{"method":"ping"}}}'),
    ],
)
async def test_what_asks_for_nothing_or_for_the_impossible_is_a_server_error(value: Any) -> None:
    new, old = await both_eras(Server("asks", on_call_tool=returning(value)))
    assert code_of(new) == -32603
    assert code_of(old) == -32603


@pytest.mark.requirement("R-MRTR-04")
@pytest.mark.requirement("R-META-06")
@pytest.mark.requirement("R-ERR-04")
@pytest.mark.requirement("R-ELIC-01")
@pytest.mark.parametrize(
    ("method", "params", "declared", "missing"),
    [
        ("roots/list", None, {}, {"roots": {}}),
        ("roots/list", None, {"roots": {}}, None),
        ("elicitation/create", FORM, {}, {"elicitation": {"form": {}}}),
        ("elicitation/create", FORM, {"elicitation": {}}, None),
        ("elicitation/create", FORM, {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        ("elicitation/create", URL, {"elicitation": {}}, {"elicitation": {"url": {}}}),
        ("elicitation/create", URL, {"elicitation": {"url": {}}}, None),
        ("sampling/createMessage", {"messages": [], "maxTokens": 1}, {}, {"sampling": {}}),
        ("sampling/createMessage", {"messages": [], "maxTokens": 1}, {"sampling": {}}, None),
        (
            "sampling/createMessage",
            {"messages": [], "maxTokens": 1, "tools": []},
            {"sampling": {}},
            {"sampling": {"tools": {}}},
        ),
        ("sampling/createMessage", {"messages": [], "maxTokens": 1, "tools": []}, {"sampling": {"tools": {}}}, None),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["struct", "dict", "raw"])
async def test_a_client_is_asked_only_for_what_it_declared(
    method: str, params: Any, declared: Any, missing: Any, form: str
) -> None:
    value = ask(method, params)
    if form != "struct":
        value = json.loads(msgspec.json.encode({"resultType": "input_required", **msgspec.to_builtins(value)}))
    if form == "raw":
        value = msgspec.Raw(line(value))
    async with RawPeer.of(Server("asks", on_call_tool=returning(value))) as peer:
        answer = await peer.modern(1, "tools/call", CALL, capabilities=declared)
    if missing is None:
        assert answer["result"]["resultType"] == "input_required"
        assert answer["result"]["inputRequests"]["q"]["method"] == method
    else:
        assert code_of(answer) == -32021
        assert answer["error"]["data"] == {"requiredCapabilities": missing}


@pytest.mark.requirement("R-MRTR-07")
@pytest.mark.requirement("R-MRTR-08")
async def test_answers_and_state_reach_the_handler_as_they_came() -> None:
    def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        given = {"responses": params.input_responses, "state": params.request_state}
        return CallToolResult(content=[], structured_content=given)

    responses = {"q": {"action": "accept", "content": {"a": 1}}, "unknown": None}
    async with RawPeer.of(Server("asks", on_call_tool=call)) as peer:
        retried = {**CALL, "inputResponses": responses, "requestState": "é"}
        answer = await peer.modern(1, "tools/call", retried)
    assert answer["result"]["structuredContent"] == {"responses": responses, "state": "é"}


# --- middleware ------------------------------------------------------------------------------------


@pytest.mark.observed("S-090")
async def test_the_first_middleware_is_the_outermost_and_sees_everything() -> None:
    seen: list[str] = []
    done = anyio.Event()

    def named(name: str) -> Any:
        async def middleware(ctx: RequestContext[Any], call_next: CallNext) -> Any:
            seen.append(f"{name} {ctx.method}")
            try:
                return await call_next(ctx)
            finally:
                seen.append(f"{name} done")
                if ctx.method == "notifications/unknown" and name == "outer":
                    done.set()

        return middleware

    server = echo_server()
    server.middleware += [named("outer"), named("inner")]
    async with RawPeer.of(server) as peer:
        for request in (modern(1, "server/discover"), modern(2, "bogus"), legacy(3, "ping")):
            await peer.answer(request)
        peer.send(notification("notifications/unknown", {"a": 1}))
        with anyio.fail_after(60):
            await done.wait()
    for method in ("server/discover", "bogus", "ping", "notifications/unknown"):
        at = seen.index(f"outer {method}")
        assert seen[at : at + 4] == [f"outer {method}", f"inner {method}", "inner done", "outer done"]
    assert len(seen) == 16


async def test_middleware_wraps_the_handshake_and_each_element_of_a_batch() -> None:
    seen: list[str] = []

    async def watch(ctx: RequestContext[Any], call_next: CallNext) -> Any:
        seen.append(ctx.method)
        return await call_next(ctx)

    server = echo_server()
    server.middleware.append(watch)
    async with RawPeer.of(server) as peer:
        assert (await peer.initialize("2025-03-26"))["protocolVersion"] == "2025-03-26"
        batch = await peer.answer_batch([legacy(1, "ping"), legacy(2, "tools/call", CALL), legacy(3, "bogus")])
    assert {a["id"]: a.get("error", {}).get("code") for a in batch} == {1: None, 2: None, 3: -32601}
    assert seen[0] == "initialize"
    assert sorted(seen[1:]) == ["bogus", "notifications/initialized", "ping", "tools/call"]


@pytest.mark.observed("S-090")
async def test_middleware_may_answer_itself_or_refuse() -> None:
    async def guard(ctx: RequestContext[Any], call_next: CallNext) -> Any:
        if ctx.method == "x/own":
            return {"own": True}
        if ctx.params.get("name") == "refused":
            raise MCPError(403, "not for you", {"n": 1})
        if ctx.params.get("name") == "crash":
            raise ValueError("the secret")
        if ctx.params.get("name") == "short":
            return {"content": []}
        return await call_next(ctx)

    server = Server("guarded", on_call_tool=echo)
    server.middleware.append(guard)
    for answer in await both_eras(server, "x/own", {}):
        assert answer["result"]["own"] is True
    for answer in await both_eras(server, params={"name": "refused"}):
        assert answer["error"] == {"code": 403, "message": "not for you", "data": {"n": 1}}
    for answer in await both_eras(server, params={"name": "crash"}):
        assert answer["error"] == {"code": -32603, "message": "Internal server error"}
    new, old = await both_eras(server, params={"name": "short"})
    assert new["result"]["resultType"] == "complete"
    assert old["result"] == {"content": [], "isError": False}
    for answer in await both_eras(server):
        assert answer["result"]["content"][0]["text"] == "x"
    for answer in await both_eras(server, params={"name": 5}):
        assert code_of(answer) == -32602


async def test_middleware_may_replace_params_and_results() -> None:
    async def change(ctx: RequestContext[Any], call_next: CallNext) -> Any:
        if ctx.method != "tools/call":
            return await call_next(ctx)
        result = await call_next(ctx.replace(params={**ctx.params, "name": "replaced"}))
        assert isinstance(result, CallToolResult)
        return msgspec.structs.replace(result, is_error=True)

    server = Server("changed", on_call_tool=echo)
    server.middleware.append(change)
    for answer in await both_eras(server):
        assert answer["result"]["content"][0]["text"] == "replaced"
        assert answer["result"]["isError"] is True


async def test_middleware_that_replaces_params_of_initialize_changes_no_revision() -> None:
    async def change(ctx: RequestContext[Any], call_next: CallNext) -> Any:
        return await call_next(ctx.replace(params=ctx.params))

    server = Server("titled", title="Title")
    server.middleware.append(change)
    async with RawPeer.of(server) as peer:
        agreed = await peer.initialize("2025-11-25")
    assert agreed["serverInfo"] == {"name": "titled", "version": "", "title": "Title"}


async def test_middleware_sees_the_value_of_a_prepared_result() -> None:
    ready = Prepared(ListToolsResult(tools=[]))
    seen: list[Any] = []

    async def watch(ctx: RequestContext[Any], call_next: CallNext) -> Any:
        result = await call_next(ctx)
        if ctx.method == "tools/list":
            seen.append(result)
        return result

    async def swap(ctx: RequestContext[Any], call_next: CallNext) -> Any:
        result = await call_next(ctx)
        if ctx.params.get("cursor") == "swap":
            return ListToolsResult(tools=[Tool(name="other", input_schema={"type": "object"})])
        return result

    server = Server("ready", on_list_tools=lambda ctx, params: ready)
    server.middleware += [watch, swap]
    for answer in await both_eras(server, "tools/list", {}):
        assert answer["result"]["tools"] == []
    for answer in await both_eras(server, "tools/list", {"cursor": "swap"}):
        assert [tool["name"] for tool in answer["result"]["tools"]] == ["other"]
    assert seen[0] is ready.value


async def test_a_notification_that_fails_is_logged_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    done = anyio.Event()

    async def fail(ctx: RequestContext[Any], call_next: CallNext) -> Any:
        if ctx.request_id is not None:
            return await call_next(ctx)
        done.set()
        raise SystemExit("the reason")

    server = echo_server()
    server.middleware.append(fail)
    async with RawPeer.of(server) as peer:
        peer.send(notification("x/told"))
        with anyio.fail_after(60):
            await done.wait()
        assert (await peer.call(1, "ping"))["result"] == {}
    flush_logs()
    assert "the reason" in caplog.text


# --- observers ---------------------------------------------------------------------------------------


class Watcher:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def request_started(self, ctx: RequestContext[Any]) -> None:
        self.seen.append(("started", ctx.method))

    def request_finished(self, ctx: RequestContext[Any], answer: bytes) -> None:
        self.seen.append(("finished", json.loads(answer)["id"]))

    def handler_failed(self, ctx: RequestContext[Any], exc: BaseException) -> None:
        self.seen.append(("failed", type(exc).__name__))


async def test_observers_are_told_each_moment() -> None:
    watcher, wire = Watcher(), WireRecorder()

    def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        if params.name == "bad":
            raise ValueError
        return CallToolResult(content=[])

    server = Server("watched", on_call_tool=call)
    server.observers.add(watcher)
    server.observers.add(wire)
    async with RawPeer.of(server) as peer:
        await peer.modern(1, "tools/call", {"name": "good"})
        await peer.modern(2, "tools/call", {"name": "bad"})
        await peer.answer(b"{bad")
        server.observers.remove(watcher)
        await peer.modern(3, "tools/call", {"name": "good"})
    assert watcher.seen == [
        ("started", "tools/call"),
        ("finished", 1),
        ("started", "tools/call"),
        ("failed", "ValueError"),
        ("finished", 2),
    ]
    assert [text[0] for text in wire.lines] == [">", "<"] * 4
    assert wire.lines[4] == "> {bad"
    assert wire.lines[0] == "> " + json.dumps(modern(1, "tools/call", {"name": "good"}))


async def test_an_observer_that_raises_is_logged_and_dropped(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[str] = []

    class Broken:
        def message_received(self, data: bytes) -> None:
            calls.append("received")
            raise ValueError("broken observer")

        def request_finished(self, ctx: RequestContext[Any], answer: bytes) -> None:
            calls.append("finished")

    watcher = Watcher()
    server = echo_server()
    server.observers.add(Broken())
    server.observers.add(watcher)
    async with RawPeer.of(server) as peer:
        for i in (1, 2):
            assert "result" in await peer.modern(i, "tools/call", CALL)
    assert calls == ["received"]
    assert watcher.seen == [("started", "tools/call"), ("finished", 1), ("started", "tools/call"), ("finished", 2)]
    flush_logs()
    assert "broken observer" in caplog.text


def test_an_observer_of_nothing_is_refused() -> None:
    with pytest.raises(TypeError, match="observer"):
        echo_server().observers.add(object())


# --- the context and the lifespan ---------------------------------------------------------------------


async def test_the_context_says_who_asks_and_what() -> None:
    seen: list[dict[str, Any]] = []

    def note(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        info = ctx.client_info
        seen.append(
            {
                "id": ctx.request_id,
                "method": ctx.method,
                "params": ctx.params,
                "version": ctx.protocol_version,
                "client": None if info is None else info.name,
                "elicitation": ctx.client_capabilities.elicitation is not None,
                "headers": ctx.headers,
                "server": ctx.server.name,
                "session": ctx.session is ctx,
                "lifespan": ctx.lifespan_context,
            }
        )
        return CallToolResult(content=[])

    info = {"io.modelcontextprotocol/clientInfo": {"name": "new", "version": "1"}}
    async with RawPeer.of(Server("context", on_call_tool=note)) as peer:
        request = modern("a", "tools/call", CALL, **info)
        await peer.answer(request)
        await peer.initialize("2025-06-18", {"elicitation": {}})
        await peer.call(0, "tools/call", CALL)
    same: dict[str, Any] = {
        "method": "tools/call",
        "headers": None,
        "server": "context",
        "session": True,
        "lifespan": {},
    }
    new = {"id": "a", "params": request["params"], "version": "2026-07-28", "client": "new", "elicitation": False}
    old = {"id": 0, "params": CALL, "version": "2025-06-18", "client": "raw", "elicitation": True}
    assert seen == [{**same, **new}, {**same, **old}]


@pytest.mark.requirement("R-META-05")
@pytest.mark.parametrize("info", [5, {}, {"name": "n"}, {"name": 1, "version": "1"}], ids=str)
async def test_client_info_of_the_wrong_shape_harms_only_who_reads_it(info: Any) -> None:
    def read(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        if params.name == "read":
            return CallToolResult(content=[TextContent(text=str(ctx.client_info))])
        return CallToolResult(content=[])

    given = {"io.modelcontextprotocol/clientInfo": info}
    async with RawPeer.of(Server("context", on_call_tool=read)) as peer:
        assert code_of(await peer.answer(modern(1, "tools/call", {"name": "read"}, **given))) == -32602
        assert "result" in await peer.answer(modern(2, "tools/call", CALL, **given))


@pytest.mark.observed("S-084")
async def test_the_lifespan_is_entered_once_while_anyone_needs_it() -> None:
    moments: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server[list[str]]) -> AsyncGenerator[list[str], None]:
        moments.append("entered")
        # A task group across the `yield` must be no trouble, whoever opens and closes.
        async with anyio.create_task_group():
            yield [server.name]
        moments.append("left")

    def call(ctx: RequestContext[list[str]], params: CallToolRequestParams) -> CallToolResult:
        return CallToolResult(content=[], structured_content={"state": ctx.lifespan_context})

    server: Server[list[str]] = Server("alive", lifespan=lifespan, on_call_tool=call)
    async with RawPeer.of(server) as one, RawPeer.of(server) as two:
        for peer in (one, two, one):
            answer = await peer.modern(1, "tools/call", CALL)
            assert answer["result"]["structuredContent"] == {"state": ["alive"]}
        assert moments == ["entered"]
    assert moments == ["entered", "left"]
    async with RawPeer.of(server):
        assert moments == ["entered", "left", "entered"]
    assert moments == ["entered", "left", "entered", "left"]


async def test_a_lifespan_that_fails_says_so_to_who_serves() -> None:
    @asynccontextmanager
    async def lifespan(server: Server[None]) -> AsyncGenerator[None, None]:
        raise OSError("no database")
        yield  # type: ignore[unreachable]

    server: Server[None] = Server("dead", lifespan=lifespan)
    with pytest.raises(OSError, match="no database"):
        await server.handle(line(modern(1, "server/discover")))
    with pytest.raises(OSError, match="no database"):
        async with server.running():
            pass


# --- bytes in, bytes out ---------------------------------------------------------------------------------


async def test_handle_answers_bytes_with_bytes() -> None:
    for server in (echo_server(), Server("echo", version="1", on_call_tool=echo)):
        answer = await server.handle(line(modern(1, "tools/call", {**CALL, "arguments": {"é": 1}})))
        assert answer is not None
        assert json.loads(answer)["result"]["structuredContent"] == {"é": 1}
        assert b"\n" not in answer


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"{bad", -32700),
        (b"", -32700),
        (b"[]", -32600),
        (b"42", -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', None),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', -32602),
    ],
)
async def test_handle_refuses_what_is_no_2026_07_28_request(message: bytes, code: int | None) -> None:
    answer = await echo_server().handle(message)
    assert answer is not None
    if code is not None:
        assert code_of(json.loads(answer)) == code


async def test_handle_has_no_handshake() -> None:
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    answer = await echo_server().handle(line(legacy(1, "initialize", client)))
    assert answer is not None
    assert json.loads(answer)["error"]["code"] == -32022
    assert json.loads(answer)["error"]["data"]["supported"] == ["2026-07-28"]


@pytest.mark.requirement("R-BASE-08")
async def test_handle_answers_no_notification() -> None:
    seen: list[Any] = []

    async def note(ctx: RequestContext, params: dict[str, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        seen.append(params)

    server = echo_server()
    server.add_notification_handler("x/told", dict[str, Any], note)
    assert await server.handle(line(notification("x/told", {"a": 1}))) is None
    assert await server.handle(line(notification("x/unknown"))) is None
    assert await server.handle(b'{"jsonrpc":"2.0","method":"x/told","params":[]}') is None
    assert seen == [{"a": 1}]


async def test_handle_hands_notifications_to_who_takes_them() -> None:
    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await ctx.report_progress(1, 2)
        await ctx.notify("x/note", {"a": 1})
        return CallToolResult(content=[TextContent(text=str((ctx.headers or {}).get("x-who")))])

    server = Server("notes", on_call_tool=call)
    request = line(modern(1, "tools/call", CALL, progressToken=0))
    told: list[Any] = []
    heard = await server.handle(request, notify=lambda data: told.append(json.loads(data)), headers={"x-who": "me"})
    unheard = await server.handle(request)
    assert heard is not None
    assert unheard is not None
    assert json.loads(heard)["result"]["content"][0]["text"] == "me"
    assert json.loads(unheard)["result"]["content"][0]["text"] == "None"
    assert told == [
        notification("notifications/progress", {"progressToken": 0, "progress": 1, "total": 2}),
        notification("x/note", {"a": 1}),
    ]


async def test_handle_keeps_the_lifespan_until_it_is_closed() -> None:
    moments: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server[str]) -> AsyncGenerator[str, None]:
        moments.append("entered")
        yield "state"
        moments.append("left")

    server: Server[str] = Server("alive", lifespan=lifespan, on_call_tool=echo_now)  # type: ignore[arg-type]
    request = line(modern(1, "tools/call", CALL))
    await server.handle(request)
    await server.handle(request)
    assert moments == ["entered"]
    await server.aclose()
    assert moments == ["entered", "left"]
    await server.aclose()
    async with server.running() as state:
        assert state == "state"
        await server.handle(request)
    assert moments == ["entered", "left"] * 2


async def test_handle_enters_the_lifespan_once_for_calls_side_by_side() -> None:
    moments: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server[None]) -> AsyncGenerator[None, None]:
        moments.append("entered")
        await anyio.lowlevel.checkpoint()
        yield
        moments.append("left")

    server: Server[None] = Server("alive", lifespan=lifespan)
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(server.handle, line(modern(1, "server/discover")))
    assert moments == ["entered"]
    await server.aclose()
    assert moments == ["entered", "left"]


async def test_cancelling_handle_cancels_the_request() -> None:
    seen: list[str] = []

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("ended")
        raise AssertionError("unreachable")

    server = Server("slow", on_call_tool=call)
    with anyio.move_on_after(0.05) as scope:
        await server.handle(line(modern(1, "tools/call", CALL)))
    assert seen == ["ended"]
    assert scope.cancelled_caught


async def test_a_context_of_handle_cannot_ask_the_client() -> None:
    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await ctx.list_roots()
        raise AssertionError("unreachable")

    answer = await Server("asks", on_call_tool=call).handle(line(modern(1, "tools/call", CALL)))
    assert answer is not None
    assert code_of(json.loads(answer)) == -32603


async def test_secrets_stay_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def crash(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        password = "hunter" + "2"
        raise RuntimeError(f"cannot log in with {password}")

    server = Server("leaky", on_call_tool=crash)
    with caplog.at_level(logging.ERROR, logger="mcp_core"):
        answer = await server.handle(line(modern(1, "tools/call", CALL)))
        flush_logs()
    assert answer is not None
    assert b"hunter" not in answer
    assert "hunter2" in caplog.text
    assert "Traceback" in caplog.text
    assert all(record.name.startswith("mcp_core") for record in caplog.records)


async def test_modern_meta_is_what_the_kit_says() -> None:
    assert modern_meta({"roots": {}}, x=1) == {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
        "x": 1,
    }


async def test_reading_a_resource_in_both_eras() -> None:
    on: dict[str, Any] = {"on_read_resource": returning(ReadResourceResult(contents=[]))}
    for answer in await both_eras(Server("read", **on), "resources/read", {"uri": "u://x"}):
        assert answer["result"]["contents"] == []

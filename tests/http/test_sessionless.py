"""The handshake era without sessions: calls that wait, clients that go, messages that are not answered, arrays."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from mcp_core import LocalProtocolError, RequestContext, Server
from mcp_core.errors import InvalidParams
from mcp_core.testing import flush_logs
from mcp_core.transports.streamable_http import HTTPOptions, StreamableHTTP
from mcp_core.types import CallToolRequestParams, CallToolResult, SamplingMessage, TextContent
from tests.http.asgi import SECONDS, HandshakeClient, Headers

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
FORM: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}
EVERYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
JSON: Headers = {"accept": "application/json"}
STREAM: Headers = {"accept": "text/event-stream"}


def result(text: str = "done") -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)])


def text_of(answer: Any) -> str:
    """The text of a tool's result."""
    (block,) = answer["result"]["content"]
    return str(block["text"])


async def soon(event: anyio.Event) -> None:
    """Wait for the event, or fail."""
    with anyio.fail_after(SECONDS):
        await event.wait()


class Waiting:
    """A tool that waits to be let on, once for each id; it remembers how each call ended."""

    def __init__(self, *, before: Callable[[RequestContext], Awaitable[None]] | None = None) -> None:
        self.started: dict[Any, anyio.Event] = {}
        self.let_on: dict[Any, anyio.Event] = {}
        self.ends: list[str] = []
        self._before = before

    def start(self, request_id: Any = 1) -> anyio.Event:
        return self.started.setdefault(request_id, anyio.Event())

    def gate(self, request_id: Any = 1) -> anyio.Event:
        return self.let_on.setdefault(request_id, anyio.Event())

    async def __call__(self, ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        try:
            if self._before is not None:
                await self._before(ctx)
            self.start(ctx.request_id).set()
            await self.gate(ctx.request_id).wait()
            self.ends.append("finished")
        except anyio.get_cancelled_exc_class():
            self.ends.append("cancelled")
            raise
        return result(params.name)


async def reports(ctx: RequestContext) -> None:
    await ctx.report_progress(1)


async def yields(ctx: RequestContext) -> None:
    await anyio.lowlevel.checkpoint()


def served(call: Any, **options: Any) -> StreamableHTTP:
    server = Server("lone", on_call_tool=call)
    return StreamableHTTP(server, HTTPOptions(stateless_http=True, **options))


# --- a call that waits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("before", [None, yields], ids=["first step", "later"])
@pytest.mark.parametrize("options", [{}, {"json_response": True}, {"cancel_on_disconnect": True}], ids=str)
async def test_a_call_that_waits_is_answered(revision: str, before: Any, options: dict[str, Any]) -> None:
    waiting = Waiting(before=before)
    client = HandshakeClient(served(waiting, **options), revision=revision)
    async with client.post(client.calling("t")) as exchange:
        await soon(waiting.start())
        assert not exchange.has_started
        waiting.gate().set()
        response = await exchange.response()
    assert (response.status, response.header("mcp-session-id")) == (200, None)
    assert response.json == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"content": [{"type": "text", "text": "t"}], "isError": False},
    }
    assert waiting.ends == ["finished"]


@pytest.mark.parametrize(
    ("headers", "before", "messages"),
    [(JSON, reports, 0), (JSON, None, 0), (STREAM, None, 1), (STREAM, reports, 2), ({}, None, 0), ({}, reports, 2)],
)
async def test_a_call_that_waits_is_answered_in_a_form_that_is_accepted(
    headers: Headers, before: Any, messages: int
) -> None:
    waiting = Waiting(before=before)
    client = HandshakeClient(served(waiting))
    async with client.post(client.calling("t", token="p"), headers=headers) as exchange:
        await soon(waiting.start())
        waiting.gate().set()
        response = await exchange.response()
    assert (len(response.messages) if messages else 0) == messages
    assert text_of(response.messages[-1] if messages else response.json) == "t"


@pytest.mark.case("C051")
async def test_calls_with_one_id_wait_side_by_side() -> None:
    waiting = {"a": Waiting(), "b": Waiting()}

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        return await waiting[params.name](ctx, params)

    client = HandshakeClient(served(call))
    async with client.post(client.calling("a")) as a, client.post(client.calling("b")) as b:
        await soon(waiting["a"].start())
        await soon(waiting["b"].start())
        waiting["b"].gate().set()
        assert text_of((await b.response()).json) == "b"
        assert not a.has_started
        waiting["a"].gate().set()
        assert text_of((await a.response()).json) == "a"


@pytest.mark.parametrize("before", [None, yields], ids=["first step", "later"])
@pytest.mark.parametrize(
    ("failure", "code", "message"),
    [(RuntimeError("secret"), -32603, "Internal server error"), (InvalidParams("no"), -32602, "no")],
)
async def test_a_call_that_fails_is_answered(before: Any, failure: Exception, code: int, message: str) -> None:
    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        if before is not None:
            await before(ctx)
        raise failure

    response = await HandshakeClient(served(call)).call("t", request_id="x")
    assert response.status == 200
    assert response.json == {"jsonrpc": "2.0", "id": "x", "error": {"code": code, "message": message}}


async def test_a_stream_that_waits_is_kept_alive() -> None:
    waiting = Waiting(before=reports)
    client = HandshakeClient(served(waiting, keep_alive=0.01))
    async with client.post(client.calling("t", token=1)) as exchange:
        await exchange.next_message()
        await exchange.until(lambda exchange: exchange.comments >= 2)
        waiting.gate().set()
        assert text_of((await exchange.response()).answer) == "t"


# --- a client that goes ---------------------------------------------------------------------------------------

steps = pytest.mark.parametrize("before", [None, yields, reports], ids=["first step", "later", "stream"])
forms = pytest.mark.parametrize("headers", [{}, JSON, STREAM], ids=["any form", "json", "stream"])
gone = pytest.mark.parametrize("raises_when_gone", [False, True], ids=["silent", "raising"])


@pytest.mark.case("C073")
@steps
@forms
@gone
async def test_going_away_cancels_where_that_is_wanted(before: Any, headers: Headers, raises_when_gone: bool) -> None:
    waiting = Waiting(before=before)
    client = HandshakeClient(served(waiting, cancel_on_disconnect=True))
    message = client.calling("t", token="p")
    async with client.post(message, headers=headers, raises_when_gone=raises_when_gone) as exchange:
        await soon(waiting.start())
        exchange.disconnect()
        await exchange.returned()
        assert waiting.ends == ["cancelled"]
        assert exchange.error is None
    # Who calls next is served.
    waiting.gate().set()
    assert text_of((await client.call("t")).answer) == "t"


@pytest.mark.requirement("R-HTTPL-06")
@steps
@forms
@gone
async def test_going_away_cancels_nothing_otherwise(before: Any, headers: Headers, raises_when_gone: bool) -> None:
    waiting = Waiting(before=before)
    client = HandshakeClient(served(waiting))
    message = client.calling("t", token="p")
    async with client.post(message, headers=headers, raises_when_gone=raises_when_gone) as exchange:
        await soon(waiting.start())
        exchange.disconnect()
        await anyio.wait_all_tasks_blocked()
        assert waiting.ends == []
        assert not exchange.has_returned
        waiting.gate().set()
        await exchange.returned()
        assert waiting.ends == ["finished"]
        assert exchange.error is None


async def test_what_is_sent_after_a_cancellation_goes_nowhere() -> None:
    started = anyio.Event()
    ends: list[str] = []

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        started.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await ctx.report_progress(1)
                await ctx.notify("notifications/custom", {})
            ends.append("cancelled")
            raise
        return result()

    client = HandshakeClient(served(call, cancel_on_disconnect=True))
    async with client.post(client.calling("t", token="p")) as exchange:
        await soon(started)
        exchange.disconnect()
        await exchange.returned()
        assert b"".join(message.get("body", b"") for message in exchange.sent_late) == b""
    assert ends == ["cancelled"]


# --- nothing can be asked ---------------------------------------------------------------------------------------


async def elicit(ctx: RequestContext) -> Any:
    return await ctx.elicit("Who?", FORM)


async def elicit_url(ctx: RequestContext) -> Any:
    return await ctx.elicit_url("Who?", "https://example.com", "e1")


async def sample(ctx: RequestContext) -> Any:
    message = SamplingMessage(role="user", content=TextContent(text="hi"))
    return await ctx.create_message([message], max_tokens=5)


async def roots(ctx: RequestContext) -> Any:
    return await ctx.list_roots()


async def ping(ctx: RequestContext) -> Any:
    return await ctx.ping()


@pytest.mark.parametrize("ask", [elicit, elicit_url, sample, roots, ping], ids=lambda ask: ask.__name__)
@pytest.mark.parametrize("before", [None, yields], ids=["first step", "later"])
async def test_a_handler_that_asks_is_told_that_there_are_no_sessions(ask: Any, before: Any) -> None:
    told: list[Exception] = []

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        if before is not None:
            await before(ctx)
        try:
            await ask(ctx)
        except Exception as exc:
            told.append(exc)
        return result()

    client = HandshakeClient(served(call))
    await client.initialize(EVERYTHING)
    response = await client.call("t")
    assert text_of(response.json) == "done"
    (error,) = told
    assert isinstance(error, LocalProtocolError), error
    assert "this server keeps none" in str(error)
    assert "session" in str(error)


async def test_an_error_of_that_kind_is_not_told_to_the_client() -> None:
    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await ctx.ping()
        return result()

    response = await HandshakeClient(served(call)).call("t")
    assert response.json["error"] == {"code": -32603, "message": "Internal server error"}


# --- what is not answered ---------------------------------------------------------------------------------------

RESPONSES: list[dict[str, Any]] = [
    {"jsonrpc": "2.0", "id": 1, "result": {}},
    {"jsonrpc": "2.0", "id": "x", "error": {"code": -1, "message": "no"}},
    {"jsonrpc": "2.0", "error": {"code": -1, "message": "no"}},
]


@pytest.mark.requirement("R-HS-14")
@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/cancelled", "notifications/unknown"])
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_notification_is_accepted(method: str, revision: str) -> None:
    client = HandshakeClient(served(Waiting()), revision=revision)
    for params in (None, {}, {"requestId": 1}):
        response = await client.notify(method, params)
        assert (response.status, response.body, response.header("content-length")) == (202, b"", "0")


@pytest.mark.requirement("R-HS-13")
@pytest.mark.requirement("R-HTTPL-02")
@pytest.mark.parametrize("message", RESPONSES, ids=["result", "error", "error without id"])
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_response_is_accepted(message: dict[str, Any], revision: str) -> None:
    client = HandshakeClient(served(Waiting()), revision=revision)
    response = await client.answer(message)
    assert (response.status, response.body, response.header("content-length")) == (202, b"", "0")


@pytest.mark.requirement("R-HTTPL-13")
@pytest.mark.parametrize("version", ["1999-01-01", "latest", "", "2025-06-18, 2025-06-18"])
async def test_what_is_of_no_revision_is_not_accepted(version: str) -> None:
    client = HandshakeClient(served(Waiting()))
    notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    for message in (notification, *RESPONSES):
        response = await client.answer(message, headers={"mcp-protocol-version": version})
        assert (response.status, response.json["error"]["code"]) == (400, -32600)
        assert "id" not in response.json


async def test_a_notification_has_been_handled_when_it_is_accepted() -> None:
    seen: list[Any] = []
    let_on = anyio.Event()

    async def told(ctx: RequestContext, params: dict[str, Any]) -> None:
        seen.append((ctx.method, ctx.request_id, params, ctx.protocol_version))
        await let_on.wait()
        seen.append("handled")

    app = served(Waiting())
    app.server.add_notification_handler("notifications/own", dict[str, Any], told)
    client = HandshakeClient(app, revision="2025-06-18")
    async with client.post({"jsonrpc": "2.0", "method": "notifications/own", "params": {"a": 1}}) as exchange:
        await anyio.wait_all_tasks_blocked()
        assert not exchange.has_started
        let_on.set()
        assert (await exchange.response()).status == 202
    assert seen == [("notifications/own", None, {"a": 1}, "2025-06-18"), "handled"]


async def test_a_notification_whose_handler_fails_is_accepted(caplog: pytest.LogCaptureFixture) -> None:
    async def told(ctx: RequestContext, params: dict[str, int]) -> None:
        raise RuntimeError("secret")

    app = served(Waiting())
    app.server.add_notification_handler("notifications/own", dict[str, int], told)
    client = HandshakeClient(app)
    with caplog.at_level(logging.WARNING, logger="mcp_core"):
        assert (await client.notify("notifications/own", {"a": 1})).status == 202
        assert (await client.notify("notifications/own", {"a": "x"})).status == 202  # does not fit, and is dropped
        flush_logs()
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


async def test_a_notification_cancels_no_call_of_another_request() -> None:
    waiting = Waiting()
    client = HandshakeClient(served(waiting))
    async with client.post(client.calling("t")) as exchange:
        await soon(waiting.start())
        assert (await client.notify("notifications/cancelled", {"requestId": 1})).status == 202
        await anyio.wait_all_tasks_blocked()
        assert waiting.ends == []
        waiting.gate().set()
        assert text_of((await exchange.response()).json) == "t"


# --- arrays -----------------------------------------------------------------------------------------------------

NOTIFICATION: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def old(call: Any, **options: Any) -> HandshakeClient:
    return HandshakeClient(served(call, **options), revision="2025-03-26")


versions = pytest.mark.parametrize("version", ["2025-03-26", None], ids=["named", "assumed"])


@pytest.mark.requirement("R-HTTPL-03")
@pytest.mark.requirement("R-BASE-13")
@versions
@pytest.mark.parametrize("json_response", [False, True])
async def test_an_array_is_answered_by_an_array(version: str | None, json_response: bool) -> None:
    waiting = Waiting()
    client = old(waiting, json_response=json_response)
    batch = [
        client.calling("first", request_id=1),
        NOTIFICATION,
        client.message("p", "ping"),
        RESPONSES[0],
        client.message(2, "tools/unknown"),
        {"jsonrpc": "2.0", "id": 3, "method": 5},
        client.opening(4),
        client.calling("last", request_id=5),
    ]
    async with client.post(batch, headers={"mcp-protocol-version": version}) as exchange:
        for request_id in (1, 5):
            await soon(waiting.start(request_id))
            assert not exchange.has_started
            waiting.gate(request_id).set()
        response = await exchange.response()
    assert (response.status, response.header("mcp-session-id")) == (200, None)
    answers = {answer["id"]: answer for answer in response.json}
    assert len(response.json) == 6
    assert [text_of(answers[request_id]) for request_id in (1, 5)] == ["first", "last"]
    assert answers["p"]["result"] == {}
    assert [answers[request_id]["error"]["code"] for request_id in (2, 3, 4)] == [-32601, -32600, -32600]


@pytest.mark.requirement("R-HTTPL-03")
@pytest.mark.requirement("R-HTTPL-02")
@pytest.mark.parametrize(
    "batch", [[NOTIFICATION], RESPONSES, [NOTIFICATION, RESPONSES[1]]], ids=["notifications", "responses", "both"]
)
async def test_an_array_without_requests_is_accepted(batch: Any) -> None:
    response = await old(Waiting()).answer(batch, headers={"mcp-protocol-version": "2025-03-26"})
    assert (response.status, response.body) == (202, b"")


@pytest.mark.requirement("R-BASE-08")
@pytest.mark.requirement("R-BASE-13")
@pytest.mark.parametrize("stateless", [True, False], ids=["no sessions", "sessions"])
@pytest.mark.parametrize(
    "element",
    [
        {"jsonrpc": "2.0", "method": "notifications/unknown", "params": [1]},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "both"}},
        {"jsonrpc": "2.0", "id": 1, "error": "no object"},
        {"jsonrpc": "2.0", "result": {}},
    ],
    ids=str,
)
async def test_a_broken_notification_or_response_in_an_array_is_not_answered(
    element: dict[str, Any], stateless: bool
) -> None:
    app = StreamableHTTP(Server("x", on_call_tool=Waiting()), HTTPOptions(stateless_http=stateless))
    client = HandshakeClient(app, revision="2025-03-26")
    await client.initialize()
    beside = await client.answer([element, client.message(5, "ping")])
    assert beside.json == [{"jsonrpc": "2.0", "id": 5, "result": {}}]
    assert (await client.answer([element])).body == b""


@pytest.mark.requirement("R-BASE-14")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25"])
async def test_other_revisions_know_no_arrays(revision: str) -> None:
    waiting = Waiting()
    client = HandshakeClient(served(waiting), revision=revision)
    headers = {"mcp-protocol-version": revision}
    for batch in ([client.calling("t")], [], [NOTIFICATION]):
        response = await client.answer(batch, headers=headers)
        assert (response.status, response.json["error"]["code"]) == (400, -32600)
    assert waiting.started == {}


@pytest.mark.requirement("R-HTTPL-03")
@pytest.mark.parametrize(
    ("body", "code"), [(b"[]", -32600), (b" [ ] ", -32600), (b'[{"jsonrpc":"2.0","id":1,"method":"ping"},', -32700)]
)
async def test_an_array_that_is_empty_or_broken_is_refused(body: bytes, code: int) -> None:
    response = await old(Waiting()).answer(body)
    assert (response.status, response.json["error"]["code"]) == (400, code)


@pytest.mark.requirement("R-HTTPL-03")
async def test_progress_of_an_array_comes_before_its_answers() -> None:
    waiting = Waiting(before=reports)
    client = old(waiting)
    async with client.post([client.calling("a", token="a"), client.calling("b", request_id=2, token="b")]) as exchange:
        for token, request_id in (("a", 1), ("b", 2)):
            assert (await exchange.next_message())["params"] == {"progressToken": token, "progress": 1}
            waiting.gate(request_id).set()
        response = await exchange.response()
    assert [answer["id"] for answer in response.messages[-1]] == [1, 2]


@pytest.mark.case("C073")
@steps
async def test_a_client_that_goes_amid_an_array_cancels_where_that_is_wanted(before: Any) -> None:
    waiting = Waiting(before=before)
    client = old(waiting, cancel_on_disconnect=True)
    batch = [client.calling("a", token=1), client.calling("b", request_id=2, token=2), client.message(3, "ping")]
    async with client.post(batch) as exchange:
        await soon(waiting.start())
        exchange.disconnect()
        await exchange.returned()
        assert set(waiting.ends) == {"cancelled"}
    assert (await client.answer([client.message(4, "ping")])).json == [{"jsonrpc": "2.0", "id": 4, "result": {}}]


@pytest.mark.requirement("R-HTTPL-06")
@steps
async def test_a_client_that_goes_amid_an_array_cancels_nothing_otherwise(before: Any) -> None:
    waiting = Waiting(before=before)
    client = old(waiting)
    async with client.post([client.calling("a", token=1), client.calling("b", request_id=2, token=2)]) as exchange:
        await soon(waiting.start())
        exchange.disconnect()
        for request_id in (1, 2):
            await soon(waiting.start(request_id))
            waiting.gate(request_id).set()
        await exchange.returned()
        assert waiting.ends == ["finished", "finished"]

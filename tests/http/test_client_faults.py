"""Our client over HTTP when something goes wrong: refusals, responses that are no answers,
streams that break off, sessions that are forgotten, servers that are not there.
"""

from __future__ import annotations

import itertools
import json
import sys
from typing import Any, Final, TypeAlias

import anyio
import pytest

from mcp_core import Client, ConnectionClosed, MCPError, RequestContext, Server
from mcp_core import types as t
from mcp_core.client import Mode
from mcp_core.errors import InvalidParams, InvalidResult, MethodNotFound, MissingClientCapability
from mcp_core.subscriptions import ToolsListChanged
from mcp_core.testing import flush_logs
from mcp_core.transports.http_client import StreamableHTTPParameters
from mcp_core.transports.streamable_http import InMemoryEventStore, StreamableHTTP
from tests.conformance.server import make_server
from tests.http.client_servers import (
    Act,
    Notices,
    Patient,
    Steps,
    Turn,
    acting,
    agreeing,
    changing,
    event,
    fail,
    no_stream,
    no_tools,
    replying,
    said,
    streaming,
    text_of,
)
from tests.http.client_wire import URL, Wire, wired
from tests.http.serving import free_port

JSON: TypeAlias = dict[str, Any]

MODES: Final = ["auto", "legacy"]
CLIENT: Final = "mcp_core.transports.http_client"

both_modes = pytest.mark.parametrize("mode", MODES)


# --- errors ------------------------------------------------------------------------------------------------


async def test_what_our_server_refuses_is_raised_as_what_it_is() -> None:
    async with wired(make_server()) as wire, wire.client() as client:
        with pytest.raises(MethodNotFound):
            await client.request("unknown/method")
        assert wire.exchanges[-1].status == 404
        with pytest.raises(MissingClientCapability) as missing:
            await client.call_tool("test_missing_capability")
        assert missing.value.data == {"requiredCapabilities": {"sampling": {}}}
        assert wire.exchanges[-1].status == 400
        with pytest.raises(InvalidParams, match=r"^Unknown tool: nope$"):
            await client.call_tool("nope")
        assert wire.exchanges[-1].status == 200


ERROR: Final = {"code": -32099, "message": "no", "data": {"why": "because"}}


@both_modes
@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 500, 503])
@pytest.mark.parametrize("ids", ["ours", "none", "null", "its own"])
async def test_a_json_rpc_error_is_raised_whatever_its_status_and_id(mode: Mode, status: int, ids: str) -> None:
    async def refuse(turn: Turn) -> None:
        given = {"ours": {"id": turn.message["id"]}, "none": {}, "null": {"id": None}, "its own": {"id": "server"}}
        await turn.reply(status, {"jsonrpc": "2.0", **given[ids], "error": ERROR})

    async with wired(acting({"tools/list": refuse})) as wire, wire.client(mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.list_tools()
    assert (caught.value.code, caught.value.message, caught.value.data) == (-32099, "no", {"why": "because"})
    assert wire.exchanges[-1].status == status


STRANGER: Final = b'{"jsonrpc":"2.0","id":"another","result":{"tools":[]}}'


@both_modes
@pytest.mark.parametrize(
    ("status", "kind", "body", "told"),
    [
        (500, "text/html", b"<h1>oops</h1>", "HTTP status 500 Internal Server Error"),
        (401, "application/json", b'{"error":"invalid_token"}', "HTTP status 401 Unauthorized"),
        (403, "text/plain", b"", "HTTP status 403 Forbidden"),
        (404, "text/html", b"nothing here", "HTTP status 404 Not Found"),
        (405, "application/json", b"null", "HTTP status 405 Method Not Allowed"),
        (503, "text/event-stream", b"data: {}\n\n", "HTTP status 503 Service Unavailable"),
        (599, "text/html", b"", "HTTP status 599"),
        (307, "text/plain", b"", "HTTP status 307 Temporary Redirect to http://127.0.0.1:8000/mcp/"),
        (200, "text/html", b"<p>Welcome</p>", "HTTP status 200 OK, and no JSON-RPC answer to it"),
        (200, "application/json", b'{"jsonrpc":"2.0","id":', "HTTP status 200 OK, and no JSON-RPC answer to it"),
        (200, "application/json", b"", "HTTP status 200 OK, and no JSON-RPC answer to it"),
        (200, "application/json", STRANGER, "HTTP status 200 OK, and no JSON-RPC answer to it"),
        (200, "application/json", b"[%b]" % STRANGER, "HTTP status 200 OK, and no JSON-RPC answer to it"),
        (202, "application/json", b"", "HTTP status 202 Accepted, and no JSON-RPC answer to it"),
    ],
)
async def test_a_response_that_is_no_answer_is_told_by_its_status(
    mode: Mode, status: int, kind: str, body: bytes, told: str
) -> None:
    async def respond(turn: Turn) -> None:
        headers = {"location": "http://me:secret@127.0.0.1:8000/mcp/?token=secret"} if status == 307 else {}
        await turn.reply(status, body, kind, **headers)

    async with wired(acting({"tools/list": respond})) as wire, wire.client(mode) as client:
        with pytest.raises(InvalidResult) as caught:
            await client.list_tools()
        assert str(caught.value) == f"the server answered tools/list with {told}"
        await client.notify("notifications/custom")
    assert wire.log.count("POST tools/list") == 1


@pytest.mark.requirement("R-VER-17")
@pytest.mark.requirement("R-VER-18")
@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (400, "application/json", b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"no session"}}'),
        (400, "text/plain", b"Bad Request"),
        (404, "text/html", b"nothing here"),
        (405, "text/plain", b""),
        (500, "text/plain", b""),
        (200, "application/json", b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}'),
        (200, "application/json", b'{"jsonrpc":"2.0","id":1,"result":{}}'),
        (200, "text/event-stream", b""),
    ],
)
async def test_a_server_that_does_not_know_the_probe_is_asked_to_shake_hands(
    status: int, kind: str, body: bytes
) -> None:
    async def respond(turn: Turn) -> None:
        await turn.reply(status, body, kind)

    async with wired(acting({"server/discover": respond})) as wire, wire.client() as client:
        assert client.protocol_version == "2025-11-25"
        await client.list_tools()
    assert wire.log == [
        "POST server/discover",
        "POST initialize",
        "POST notifications/initialized",
        "GET",
        "POST tools/list",
    ]
    assert [exchange.headers.get("mcp-protocol-version") for exchange in wire.exchanges] == [
        "2026-07-28",
        None,
        *["2025-11-25"] * 3,
    ]


@pytest.mark.requirement("R-VER-10")
async def test_a_server_that_names_no_revision_of_ours_is_not_asked_again() -> None:
    async def refuse(turn: Turn) -> None:
        data = {"supported": ["2030-01-01"], "requested": "2026-07-28"}
        await turn.reply(400, turn.refusal(-32022, "Unsupported protocol version", data=data))

    async with wired(acting({"server/discover": refuse})) as wire:
        with pytest.raises(MCPError, match=r"^Unsupported protocol version$"):
            async with wire.client():
                pytest.fail("it is not open")
    assert wire.log == ["POST server/discover"]


@pytest.mark.requirement("R-HTTP-12")
async def test_a_stateless_stream_that_ends_without_an_answer_is_not_taken_up() -> None:
    async def call(turn: Turn) -> None:
        await turn.stream("id: 1\nretry: 0\ndata: ")

    async with wired(acting({"tools/call": call})) as wire, wire.client() as client:
        with pytest.raises(InvalidResult) as caught:
            await client.call_tool("x")
    assert str(caught.value) == "the stream of tools/call ended before its answer"
    assert wire.log == ["POST server/discover", "POST tools/call"]


@pytest.mark.requirement("R-HTTP-10")
@both_modes
async def test_what_is_no_message_on_a_stream_is_overlooked(mode: Mode) -> None:
    async def call(turn: Turn) -> None:
        await turn.stream(
            ": keep-alive",
            "event: ping\ndata: {}",
            f"event: ping\ndata: {json.dumps(turn.complete(content=[{'type': 'text', 'text': 'not this'}]))}",
            "id: 7\ndata: ",
            "retry: never\ndata: no JSON",
            event({"jsonrpc": "2.0", "id": "another", "result": {}}),
            "event: message\r\ndata: " + json.dumps(turn.complete(content=[]), indent=1).replace("\n", "\r\ndata: "),
        )

    async with wired(acting({"tools/call": call})) as wire, wire.client(mode) as client:
        assert (await client.call_tool("x")).content == []


@both_modes
async def test_a_stream_that_stays_open_after_the_answer_is_closed(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{CLIENT}.streams.RESPONSE_ENDS", 0.01)
    heard = Notices()

    async def call(turn: Turn) -> None:
        await turn.open(event(turn.complete(content=[])))
        await turn.write(event({"jsonrpc": "2.0", "method": "notifications/late"}))
        await turn.gone()

    app = acting({"tools/call": call})
    async with wired(app) as wire, wire.client(mode, message_handler=heard.notification) as client:
        assert (await client.call_tool("x")).content == []
        await heard.count(1)
        await wire.until(lambda: wire.exchanges[-1].is_gone)
    assert heard.methods == ["notifications/late"]


# httpx2 leaves its generators to the garbage collector when an event is too large, which trio remarks on.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@both_modes
@pytest.mark.parametrize("streamed", [True, False])
async def test_an_answer_may_be_large_but_not_without_limit(
    mode: Mode, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def call(turn: Turn) -> None:
        answer = turn.complete(content=[{"type": "text", "text": "x" * 2_000_000}])
        await (turn.stream(event(answer, "id: 1")) if streamed else turn.reply(200, answer))

    async with wired(acting({"tools/call": call})) as wire, wire.client(mode) as client:
        assert text_of(await client.call_tool("x")) == "x" * 2_000_000
        monkeypatch.setattr(f"{CLIENT}.{'streams' if streamed else 'endpoint'}.MAX_MESSAGE", 1_000_000)
        with pytest.raises(InvalidResult, match=r"1000000 byte"):
            await client.call_tool("x")
    assert wire.log.count("POST tools/call") == 2
    assert wire.log.count("GET") == (mode == "legacy")


@pytest.mark.requirement("R-BASE-13")
async def test_2025_03_26_may_send_several_messages_in_one() -> None:
    def progress(turn: Turn, done: int) -> JSON:
        token = turn.message["params"]["_meta"]["progressToken"]
        params = {"progressToken": token, "progress": done}
        return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}

    async def call(turn: Turn) -> None:
        answer = turn.result({"content": []})
        if turn.message["params"]["name"] == "streamed":
            await turn.stream(event([progress(turn, 1), progress(turn, 2)]), event([progress(turn, 3), answer]))
        else:
            await turn.reply(200, [answer])

    heard = Steps()
    app = acting({"initialize": agreeing("2025-03-26"), "tools/call": call})
    async with wired(app) as wire, wire.client("legacy") as client:
        assert client.protocol_version == "2025-03-26"
        streamed = await client.call_tool("streamed", progress_callback=heard.progress)
        assert streamed.content == []
        assert (await client.call_tool("whole")).content == []
        assert await heard.count(3) == [1, 2, 3]


# --- streams that break off -----------------------------------------------------------------------------


@pytest.mark.requirement("R-HTTPL-07")
@pytest.mark.requirement("R-HTTPL-08")
async def test_a_client_that_is_sent_away_comes_back_for_the_rest_in_time() -> None:
    async def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        await ctx.report_progress(1)
        await ctx.close_stream(retry=0.1)
        await ctx.report_progress(2)
        return said("done")

    heard = Steps()
    app = Server("x", on_call_tool=call).streamable_http_app(event_store=InMemoryEventStore())
    async with wired(app) as wire, wire.client("legacy") as client:
        result = await client.call_tool("x", progress_callback=heard.progress)
        assert text_of(result) == "done"
        assert await heard.count(2) == [1, 2]
    (posted,) = wire.all("POST tools/call")
    taken_up = wire.all("GET")[-1]
    assert taken_up.headers["last-event-id"] != ""
    assert posted.ended is not None
    assert taken_up.began - posted.ended >= 0.099


async def test_a_connection_that_fails_amid_an_answer_loses_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{CLIENT}.streams._RETRY", 0.01)
    steps = [anyio.Event() for _ in range(4)]

    async def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        for number, step in enumerate(steps):
            await step.wait()
            await ctx.report_progress(number)
        return said("done")

    heard = Steps()
    results: list[str] = []
    app = Server("x", on_call_tool=call).streamable_http_app(event_store=InMemoryEventStore())

    async with wired(app) as wire, wire.client("legacy") as client, anyio.create_task_group() as tasks:

        async def run() -> None:
            results.append(text_of(await client.call_tool("x", progress_callback=heard.progress)))

        tasks.start_soon(run)
        await wire.nth("POST tools/call")
        steps[0].set()
        await heard.count(1)
        wire.all("POST tools/call")[0].break_off()
        steps[1].set()  # nobody listens now
        await heard.count(2)
        wire.exchanges[-1].break_off()
        steps[2].set()
        await heard.count(3)
        steps[3].set()
    assert (results, heard.items) == (["done"], [0, 1, 2, 3])
    # One GET is the session's own; the others each began after what had been heard.
    ids = [exchange.headers.get("last-event-id") for exchange in wire.all("GET")]
    assert ids[0] is None
    assert len(set(ids[1:])) == len(ids[1:]) == 2


async def pending(turn: Turn) -> None:
    """The beginning of an answer that is to be taken up."""
    await turn.stream("id: first\nretry: 10\ndata: ")


class Resumed:
    """Answers GETs in turn with what it is given; the session's own stream gets none."""

    def __init__(self, *acts: Act) -> None:
        self._acts = list(acts)
        self.ids: list[str] = []

    async def __call__(self, turn: Turn) -> None:
        last = turn.headers.get("last-event-id")
        if last is None:
            await no_stream(turn)
            return
        self.ids.append(last)
        await self._acts.pop(0)(turn)


def answered(*lines: str) -> Act:
    answer: JSON = {"jsonrpc": "2.0", "id": 2, "result": {"content": []}}
    return streaming(event(answer, *lines))


@pytest.mark.parametrize(
    ("acts", "ids"),
    [
        ([answered()], ["first"]),
        ([pending, answered()], ["first", "first"]),
        (
            [streaming("id: second\ndata: "), streaming("id: third\ndata: "), answered()],
            ["first", "second", "third"],
        ),
        ([replying(503), fail, replying(500), answered()], ["first"] * 4),
        # As long as something comes, there is no end to it.
        ([pending] * 12 + [answered()], ["first"] * 13),
        ([fail, fail, pending, fail, fail, fail, fail, answered()], ["first"] * 8),
    ],
    ids=["at-once", "again", "ids-move-on", "failures", "patience", "failures-in-a-row-count"],
)
async def test_an_answer_is_come_back_for_until_it_is_there(
    acts: list[Act], ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{CLIENT}.streams._LONGEST_PAUSE", 0.0)
    resumed = Resumed(*acts)
    async with wired(acting({"tools/call": pending, "GET": resumed})) as wire, wire.client("legacy") as client:
        assert (await client.call_tool("x")).content == []
    assert resumed.ids == ids
    times = [wire.all("POST tools/call")[0], *wire.all("GET")[1:]]
    assert all(later.began - earlier.began >= 0.0099 for earlier, later in itertools.pairwise(times))


@pytest.mark.parametrize(
    ("acts", "told"),
    [
        ([replying(404)], "the server refused the stream of tools/call: HTTP status 404"),
        ([replying(405)], "the server refused the stream of tools/call: HTTP status 405"),
        ([replying(200)], "the server refused the stream of tools/call: HTTP status 200"),
        ([fail] * 5, "the stream of tools/call was disconnected, and could not be resumed"),
        (
            [streaming(": nothing")] * 5,
            "the stream of tools/call was disconnected, and could not be resumed",
        ),
    ],
    ids=["404", "405", "no-stream", "failures", "empty"],
)
async def test_an_answer_that_cannot_be_come_back_for_is_given_up(
    acts: list[Act], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{CLIENT}.streams._LONGEST_PAUSE", 0.0)
    resumed = Resumed(*acts)
    async with wired(acting({"tools/call": pending, "GET": resumed})) as wire, wire.client("legacy") as client:
        with pytest.raises(ConnectionClosed) as caught:
            await client.call_tool("x")
        assert str(caught.value) == told
        await client.list_tools()
    assert len(resumed.ids) == len(acts)


async def test_without_an_event_id_there_is_nothing_to_come_back_with() -> None:
    async def call(turn: Turn) -> None:
        await turn.stream("retry: 0\ndata: ")

    async with wired(acting({"tools/call": call})) as wire, wire.client("legacy") as client:
        with pytest.raises(InvalidResult) as caught:
            await client.call_tool("x")
    assert str(caught.value) == "the stream of tools/call ended before its answer"
    assert wire.log.count("GET") == 1


async def break_stream(wire: Wire) -> None:
    """Break the stream of a session, and wait for one that takes its place."""
    number = len(wire.all("GET")) + 1
    wire.all("GET")[-1].break_off()
    while True:
        await wire.nth("GET", number)
        await anyio.wait_all_tasks_blocked()
        if wire.all("GET")[-1].ended is None:
            return
        number = len(wire.all("GET")) + 1  # it brought what was missed, and ended


@pytest.mark.parametrize("with_store", [True, False])
async def test_the_stream_of_a_session_is_opened_again(with_store: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{CLIENT}.streams._RETRY", 0.01)
    monkeypatch.setattr(f"{CLIENT}.streams._LONGEST_PAUSE", 0.01)
    server = changing()
    heard = Notices()
    app = server.streamable_http_app(event_store=InMemoryEventStore() if with_store else None)
    async with wired(app) as wire, wire.client("legacy", message_handler=heard.notification) as client:
        await client.list_tools()
        for number in range(1, 8):
            await server.publish(ToolsListChanged())
            await heard.count(number)
            await break_stream(wire)
    assert heard.methods == ["notifications/tools/list_changed"] * 7


@pytest.mark.parametrize(
    ("acts", "taken_up_with"),
    [
        ([], ["1"]),
        ([fail, replying(503), fail], ["1"] * 4),
        # Its events are gone.
        ([replying(400)], ["1", None]),
        # It brought what was missed, and is at its end.
        ([streaming(": nothing")], ["1", None]),
    ],
    ids=["at-once", "after-failures", "gone", "ended"],
)
async def test_the_stream_of_a_session_is_taken_up_where_it_broke_off(
    acts: list[Act], taken_up_with: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{CLIENT}.streams._RETRY", 0.01)
    monkeypatch.setattr(f"{CLIENT}.streams._LONGEST_PAUSE", 0.01)
    heard = Notices()
    ids: list[str | None] = []

    async def last(turn: Turn) -> None:
        await turn.open(event({"jsonrpc": "2.0", "method": "notifications/b"}))
        await turn.gone()

    steps = [streaming(event({"jsonrpc": "2.0", "method": "notifications/a"}, "id: 1")), *acts, last]

    async def get(turn: Turn) -> None:
        ids.append(turn.headers.get("last-event-id"))
        await steps.pop(0)(turn)

    app = acting({"GET": get})
    async with wired(app) as wire, wire.client("legacy", message_handler=heard.notification):
        await heard.count(2)
    assert heard.methods == ["notifications/a", "notifications/b"]
    assert ids == [None, *taken_up_with]


# --- sessions that end --------------------------------------------------------------------------------------


@pytest.mark.requirement("R-HTTPL-10")
async def test_a_session_that_the_server_has_forgotten_is_begun_anew(caplog: pytest.LogCaptureFixture) -> None:
    server = changing()
    app = server.streamable_http_app()
    assert isinstance(app, StreamableHTTP)
    heard = Notices()
    async with wired(app) as wire, wire.client("legacy", message_handler=heard.notification) as client:
        await client.list_tools()
        app.sessions.end_all()
        results: list[str] = []

        async def call(number: int) -> None:
            results.append(text_of(await client.call_tool("x", {"number": number})))

        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(call, number)
        await server.publish(ToolsListChanged())
        await heard.count(1)
    assert heard.methods == ["notifications/tools/list_changed"]
    assert sorted(results) == [f'{{"number": {number}}}' for number in range(5)]
    first, second = wire.all("POST initialize")
    assert "mcp-session-id" not in second.headers
    assert first.message == second.message
    old, new = (dict(exchange.fields)[b"mcp-session-id"].decode() for exchange in (first, second))
    calls = wire.all("POST tools/call")
    assert [(call.status, call.headers["mcp-session-id"]) for call in calls] == [(404, old)] * 5 + [(200, new)] * 5
    assert [exchange.headers["mcp-session-id"] for exchange in wire.all("POST notifications/initialized")] == [old, new]
    assert wire.exchanges[-1].what == "DELETE"
    assert wire.exchanges[-1].headers["mcp-session-id"] == new
    flush_logs()
    assert [record.getMessage() for record in caplog.records] == [
        "the session had ended; in the new one, what was subscribed to must be so again"
    ]


class Forgetful:
    """Gives out sessions of which it forgets the first, and shakes hands in turn as it is told."""

    def __init__(self, *handshakes: Act) -> None:
        self._handshakes = [agreeing(mcp_session_id="first"), *handshakes]
        self.acts: dict[str, Act] = {"initialize": self._initialize, "tools/list": self._list}

    async def _initialize(self, turn: Turn) -> None:
        await self._handshakes.pop(0)(turn)

    async def _list(self, turn: Turn) -> None:
        if turn.headers["mcp-session-id"] in ("first", "lost"):
            await turn.reply(404, b"", "text/plain")
        else:
            await no_tools(turn)


@pytest.mark.parametrize(
    ("handshake", "told"),
    [
        (
            agreeing("2025-06-18", mcp_session_id="second"),
            "the session has ended, and a new one could not be begun: the server does not agree to the same as before",
        ),
        (
            replying(503),
            "the session has ended, and a new one could not be begun: "
            "the server answered initialize with HTTP status 503 Service Unavailable",
        ),
        (
            fail,
            "the session has ended, and a new one could not be begun: "
            "RemoteProtocolError: the server disconnected without a response",
        ),
        (Turn.gone, "the session has ended, and a new one could not be begun: TimeoutError"),
        (agreeing(mcp_session_id="lost"), "the session has ended, and a new one does not last; connect again"),
    ],
    ids=["another-revision", "refused", "failing", "unanswered", "lost-again"],
)
async def test_a_session_that_cannot_be_begun_anew_fails_the_request(handshake: Act, told: str) -> None:
    forgetful = Forgetful(handshake, agreeing(mcp_session_id="third"))
    async with wired(acting(forgetful.acts)) as wire, wire.client("legacy", timeout=0.5) as client:
        with pytest.raises(ConnectionClosed) as caught:
            await client.list_tools()
        assert str(caught.value) == told
        # The next request tries again.
        assert (await client.list_tools()).tools == []
    assert wire.log.count("POST initialize") == 3


async def test_a_method_that_is_unknown_is_no_end_of_the_session() -> None:
    async def refuse(turn: Turn) -> None:
        await turn.reply(404, turn.refusal(-32601, "Method not found"))

    acts = {"initialize": agreeing(mcp_session_id="a"), "prompts/list": refuse}
    async with wired(acting(acts)) as wire, wire.client("legacy") as client:
        with pytest.raises(MethodNotFound):
            await client.list_prompts()
    assert wire.log.count("POST initialize") == 1


# --- servers that are not there -----------------------------------------------------------------------------


@both_modes
async def test_a_server_that_goes_fails_what_waits_and_may_come_back(mode: Mode) -> None:
    patient = Patient()
    async with wired(patient.server) as wire, wire.client(mode) as client:
        failures: list[str] = []

        heard = Steps()

        async def call() -> None:
            with pytest.raises(ConnectionClosed) as caught:
                await client.call_tool("wait", progress_callback=heard.progress)
            failures.append(str(caught.value))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await heard.count(1)
            wire.unplug()
        assert failures == ["the stream of tools/call ended before its answer"]
        with pytest.raises(ConnectionClosed) as caught:
            await client.call_tool("wait")
        assert str(caught.value) == f"tools/call got no answer from {URL}: ConnectError: All connection attempts failed"
        wire.plugged = True
        patient.go_on.set()
        assert text_of(await client.call_tool("wait")) == "done"


@pytest.mark.parametrize("mode", [*MODES, "2026-07-28"])
async def test_nobody_listens(mode: Mode) -> None:
    port = free_port()

    async def use() -> None:
        async with Client(f"http://ann:secret@127.0.0.1:{port}/mcp?token=secret", mode=mode) as client:
            assert mode == "2026-07-28"  # which needs no word with the server before the first request
            await client.list_tools()

    with pytest.raises(ConnectionClosed) as caught:
        await use()
    told = str(caught.value)
    assert f" got no answer from http://127.0.0.1:{port}/mcp: ConnectError" in told
    assert "secret" not in told


@pytest.mark.parametrize("url", ["nonsense", "ftp://127.0.0.1/mcp", "http://", "http://[/mcp"])
async def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ConnectionClosed, match=r"^initialize got no answer from "):
        async with Client(url, mode="legacy"):
            pytest.fail("it is not open")


@pytest.mark.parametrize("target", ["http://127.0.0.1/mcp", StreamableHTTPParameters(url="http://127.0.0.1/mcp")])
async def test_without_httpx2_it_says_what_to_install(target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(RuntimeError) as caught:
        async with Client(target):
            pytest.fail("it is not open")
    assert str(caught.value) == 'a client over HTTP needs httpx2; install it with: pip install "mcpcore[client]"'

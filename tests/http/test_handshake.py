"""The handshake era over HTTP: sessions, streams, requests to the client, cancellation, streams taken up again."""

from __future__ import annotations

import string
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from mcp_core import ConnectionClosed, LocalProtocolError, MCPError, RequestContext, RequestTimeout, Server
from mcp_core.subscriptions import ResourceUpdated, ToolsListChanged
from mcp_core.transports.streamable_http import HTTPOptions, InMemoryEventStore, StreamableHTTP
from mcp_core.types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitResult,
    EmptyResult,
    ListResourcesResult,
    ListToolsResult,
    PaginatedRequestParams,
    SamplingMessage,
    SetLevelRequestParams,
    TextContent,
    Tool,
)
from tests.http.asgi import BOTH, SECONDS, Exchange, HandshakeClient, Response

Call = Callable[[RequestContext, CallToolRequestParams], Awaitable[CallToolResult]]
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
ELICITS: dict[str, Any] = {"elicitation": {"form": {}}}


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


class Desk:
    """A server whose tools a test lets on when it wants.

    `wait` (or `wait b`) waits for its gate, `talk` sends progress before that, `ask` asks
    the user, `retire` closes its stream and then waits.
    """

    def __init__(self, *, protocol_versions: list[str] | None = None, **options: Any) -> None:
        self.started: dict[str, anyio.Event] = {}
        self.gates: dict[str, anyio.Event] = {}
        self.ends: dict[str, str] = {}
        self.ended: dict[str, anyio.Event] = {}
        self.server = Server(
            "desk",
            protocol_versions=protocol_versions,
            subscriptions=True,
            on_call_tool=self.call,
            on_list_tools=self.list_tools,
            on_list_resources=self.list_resources,
            on_set_logging_level=self.set_level,
        )
        self.app = StreamableHTTP(self.server, HTTPOptions(**options))

    async def client(
        self, revision: str = "2025-11-25", capabilities: dict[str, Any] | None = None, **options: Any
    ) -> HandshakeClient:
        """A client that has shaken hands."""
        client = HandshakeClient(self.app, revision=revision)
        response = await client.initialize(capabilities, **options)
        assert response.answer["result"]["protocolVersion"] == revision
        return client

    def gate(self, name: str) -> anyio.Event:
        return self.gates.setdefault(name, anyio.Event())

    async def has_started(self, name: str) -> None:
        await soon(self.started.setdefault(name, anyio.Event()))

    async def has_ended(self, name: str) -> str:
        """How the tool ended, once it has."""
        await soon(self.ended.setdefault(name, anyio.Event()))
        return self.ends[name]

    def list_tools(self, ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="wait", input_schema={"type": "object"})])

    def list_resources(self, ctx: RequestContext, params: PaginatedRequestParams) -> ListResourcesResult:
        return ListResourcesResult(resources=[])

    def set_level(self, ctx: RequestContext, params: SetLevelRequestParams) -> EmptyResult:
        return EmptyResult()

    async def call(self, ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        name = params.name
        try:
            self.started.setdefault(name, anyio.Event())
            await self.steps(ctx, name)
            self.ends[name] = "finished"
        except anyio.get_cancelled_exc_class():
            self.ends[name] = "cancelled"
            raise
        except Exception as exc:
            self.ends[name] = f"{type(exc).__name__}: {exc}"
            raise
        finally:
            self.ended.setdefault(name, anyio.Event()).set()
        return result(name)

    async def steps(self, ctx: RequestContext, name: str) -> None:
        what = name.split(" ", 1)[0]
        if what == "talk":
            await ctx.report_progress(1)
        elif what == "retire":
            await ctx.close_stream(retry=0.25)
        elif what == "log":
            await ctx.log("info", "hello")
            await ctx.log("error", "help")
        elif what == "ask":
            self.started[name].set()
            answer = await ctx.elicit("Who?", FORM)
            assert isinstance(answer, ElicitResult)
            self.ends["answer"] = f"{answer.action} {answer.content}"
        if what in ("wait", "talk", "retire"):
            self.started[name].set()
            await self.gate(name).wait()
            await ctx.report_progress(2)


def custom(call: Call, **options: Any) -> StreamableHTTP:
    return StreamableHTTP(Server("custom", on_call_tool=call), HTTPOptions(**options))


def is_progress(message: Any, token: Any, progress: float) -> bool:
    """Whether the message is this report of progress."""
    return bool(
        message["method"] == "notifications/progress"
        and message["params"] == {"progressToken": token, "progress": progress}
    )


# --- sessions ------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-HTTPL-09")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_initialize_gives_a_session_and_nothing_else_does(revision: str) -> None:
    desk = Desk()
    client = HandshakeClient(desk.app, revision=revision)
    opened = await client.initialize()
    assert opened.status == 200
    assert opened.json["result"]["protocolVersion"] == revision
    assert client.session_id is not None
    assert (await client.notify("notifications/initialized")).header("mcp-session-id") is None
    ping = await client.answer(client.message(1, "ping"))
    assert (ping.status, ping.json) == (200, {"jsonrpc": "2.0", "id": 1, "result": {}})
    assert ping.header("mcp-session-id") is None


@pytest.mark.requirement("R-HTTPL-09")
async def test_session_ids_are_visible_ascii_and_not_to_be_guessed() -> None:
    desk = Desk()
    ids = [(await desk.client()).session_id or "" for _ in range(50)]
    assert len(set(ids)) == 50
    visible = {character for character in string.printable if 0x21 <= ord(character) <= 0x7E}
    assert all(set(session_id) <= visible and len(session_id) >= 32 for session_id in ids)
    assert all(len({session_id[place] for session_id in ids}) > 10 for place in range(32))


@pytest.mark.requirement("R-HTTPL-09")
async def test_initialize_that_is_refused_gives_no_session() -> None:
    desk = Desk(max_sessions=1)
    client = HandshakeClient(desk.app)
    response = await client.answer(client.message(1, "initialize", {"protocolVersion": 5}))
    assert (response.status, response.json["error"]["code"]) == (200, -32602)
    assert response.header("mcp-session-id") is None
    await desk.client()  # and takes no room


async def test_initialize_may_be_answered_by_a_stream() -> None:
    client = HandshakeClient(Desk().app)
    response = await client.initialize(headers={"accept": "text/event-stream"})
    assert [message["id"] for message in response.messages] == [0]
    assert client.session_id is not None
    assert (await client.answer(client.message(1, "ping"))).json["result"] == {}


@pytest.mark.requirement("R-HTTPL-09")
async def test_sessions_know_nothing_of_each_other() -> None:
    async def about(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        return CallToolResult(content=[TextContent(text=ctx.protocol_version)], structured_content={})

    app = custom(about)
    clients = [HandshakeClient(app, revision=revision) for revision in ("2025-03-26", "2025-06-18", "2025-11-25")]
    for client in clients:
        await client.initialize()
    for client in reversed(clients):
        answer = (await client.call("x")).json
        assert text_of(answer) == client.revision
        assert ("structuredContent" in answer["result"]) == (client.revision >= "2025-06-18")


@pytest.mark.requirement("R-HTTPL-13")
async def test_a_session_knows_its_version_without_the_header() -> None:
    async def about(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        return result(ctx.protocol_version)

    client = HandshakeClient(custom(about), revision="2025-11-25")
    await client.initialize()
    response = await client.call("x", headers={"mcp-protocol-version": None})
    assert text_of(response.json) == "2025-11-25"


async def test_a_session_keeps_its_level_of_logging() -> None:
    desk = Desk()
    loud, quiet = await desk.client(), await desk.client()
    await quiet.answer(quiet.message(1, "logging/setLevel", {"level": "error"}))
    told = {
        name: [m["params"]["data"] for m in (await client.call("log")).messages if "method" in m]
        for name, client in (("loud", loud), ("quiet", quiet))
    }
    assert told == {"loud": ["hello", "help"], "quiet": ["help"]}


@pytest.mark.requirement("R-HTTPL-10")
@pytest.mark.requirement("R-HTTPL-11")
@pytest.mark.requirement("R-HS-06")
async def test_delete_ends_a_session_and_no_other() -> None:
    desk = Desk()
    client, other = await desk.client(), await desk.client()
    deleted = await client.delete()
    assert (deleted.status, deleted.body) == (200, b"")
    for response in (
        await client.answer(client.message(1, "ping")),
        await client.notify("notifications/initialized"),
        await client.request("GET", headers={"accept": "text/event-stream", **client.own_headers}),
        await client.delete(),
    ):
        assert (response.status, response.json["error"]["code"]) == (404, -32600)
    assert (await other.answer(other.message(1, "ping"))).status == 200
    await client.initialize()
    assert (await client.answer(client.message(1, "ping"))).status == 200


async def test_delete_ends_everything_that_goes_on_in_the_session() -> None:
    desk = Desk()
    client = await desk.client(capabilities=ELICITS)
    async with (
        client.get() as stream,
        client.post(client.calling("wait", request_id=1)) as waiting,
        client.post(client.calling("talk", request_id=2, token=1)) as talking,
        client.post(client.calling("ask", request_id=3)) as asking,
    ):
        await stream.started()
        await desk.has_started("wait")
        await talking.next_message()
        await asking.next_message()
        assert (await client.delete()).status == 200
        for exchange in (stream, waiting, talking, asking):
            await exchange.response()
            await exchange.returned()
    assert (desk.ends["wait"], desk.ends["talk"]) == ("cancelled", "cancelled")
    assert desk.ends["ask"] in ("cancelled", f"{ConnectionClosed.__name__}: the session ended before the answer came")


# --- room and time ---------------------------------------------------------------------------------------


class Clock:
    """Stands in for the `time` of the sessions."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("mcp_core.transports.streamable_http.sessions.time", clock)
    return clock


async def is_known(client: HandshakeClient) -> bool:
    """Whether the client's session still stands. This uses it."""
    response = await client.answer(client.message(1, "ping"))
    assert response.status in (200, 404)
    return response.status == 200


async def test_there_are_no_more_sessions_than_allowed() -> None:
    desk = Desk(max_sessions=2)
    first, second = await desk.client(), await desk.client()
    assert await is_known(first)  # what nobody came back to makes room for others
    assert await is_known(second)
    third = HandshakeClient(desk.app)
    refused = await third.initialize()
    assert (refused.status, refused.header("mcp-session-id")) == (503, None)
    assert refused.header("retry-after") == "10"
    assert (refused.json["id"], refused.json["error"]["code"]) == (0, -32600)
    assert "max_sessions" in refused.json["error"]["message"]
    assert await is_known(first)
    assert await is_known(second)
    await first.delete()
    assert (await third.initialize()).status == 200
    assert await is_known(third)


async def test_a_session_that_is_not_used_ends(clock: Clock) -> None:
    desk = Desk(session_idle_timeout=60.0)
    used, idle = await desk.client(), await desk.client()
    clock.now += 59
    assert await is_known(used)
    clock.now += 2
    assert not await is_known(idle)
    assert await is_known(used)
    clock.now += 61
    assert not await is_known(used)


async def test_sessions_that_are_not_used_make_room(clock: Clock) -> None:
    desk = Desk(session_idle_timeout=60.0, max_sessions=2)
    old, young = await desk.client(), await desk.client()
    clock.now += 40
    assert await is_known(young)
    clock.now += 40
    new = await desk.client()
    assert not await is_known(old)
    assert await is_known(young)
    assert await is_known(new)
    assert len(desk.app.sessions) == 2


async def test_sessions_last_for_ever_where_that_is_wanted(clock: Clock) -> None:
    desk = Desk(session_idle_timeout=None)
    client = await desk.client()
    clock.now += 1e9
    assert await is_known(client)


@pytest.mark.parametrize("what", ["GET", "POST"])
async def test_a_session_with_an_open_request_is_in_use(clock: Clock, what: str) -> None:
    desk = Desk(session_idle_timeout=60.0, max_sessions=1)
    client = await desk.client()
    async with client.get() if what == "GET" else client.post(client.calling("talk", token=1)) as exchange:
        await exchange.started()
        clock.now += 1000
        assert (await HandshakeClient(desk.app).initialize()).status == 503
        desk.gate("talk").set()
    # The idle time begins with the end of the request.
    clock.now += 59
    assert await is_known(client)


# --- the session's own stream ----------------------------------------------------------------------------


@pytest.mark.requirement("R-HTTPL-01")
@pytest.mark.requirement("R-HTTPL-04")
@pytest.mark.requirement("R-HTTP-10")
async def test_get_opens_a_stream_for_what_belongs_to_no_request() -> None:
    desk = Desk()
    client = await desk.client()
    await client.answer(client.message(1, "resources/subscribe", {"uri": "memo://1"}))
    async with client.get() as stream:
        head = await stream.started()
        assert (head.status, head.header("content-type")) == (200, "text/event-stream")
        assert head.header("x-accel-buffering") == "no"
        assert head.header("cache-control") == "no-cache, no-transform"
        await desk.server.publish(ResourceUpdated("memo://2"))
        await desk.server.publish(ResourceUpdated("memo://1"))
        await desk.server.publish(ToolsListChanged())
        assert await stream.next_message() == {
            "jsonrpc": "2.0",
            "method": "notifications/resources/updated",
            "params": {"uri": "memo://1"},
        }
        assert await stream.next_message() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        assert not stream.is_complete


@pytest.mark.requirement("R-HTTPL-01")
@pytest.mark.parametrize("accept", ["text/event-stream", "TEXT/EVENT-STREAM;q=0.5", "text/*", BOTH])
async def test_get_looks_at_what_the_client_accepts(accept: str) -> None:
    client = await Desk().client()
    async with client.get(headers={"accept": accept}) as stream:
        assert (await stream.started()).status == 200


@pytest.mark.requirement("R-HTTPL-04")
@pytest.mark.requirement("R-HTTPL-05")
async def test_what_belongs_to_a_request_goes_on_its_stream_alone() -> None:
    desk = Desk()
    client, other = await desk.client(), await desk.client()
    async with (
        client.get() as own,
        other.get() as others,
        client.post(client.calling("talk a", request_id=1, token="a")) as a,
        client.post(client.calling("talk b", request_id=2, token="b")) as b,
    ):
        await own.started()
        await others.started()
        for name, exchange in (("a", a), ("b", b)):
            assert is_progress(await exchange.next_message(), name, 1)
            desk.gate(f"talk {name}").set()
            messages = (await exchange.response()).messages
            assert [message.get("id") for message in messages] == [None, None, 1 if name == "a" else 2]
            assert all(is_progress(message, name, n) for n, message in enumerate(messages[:2], 1))
        await desk.server.publish(ToolsListChanged())
        for stream in (own, others):
            assert (await stream.next_message())["method"] == "notifications/tools/list_changed"


@pytest.mark.requirement("R-HTTPL-05")
async def test_a_second_get_takes_the_place_of_the_first() -> None:
    desk = Desk()
    client = await desk.client()
    async with client.get() as first:
        await first.started()
        async with client.get() as second:
            await first.response()
            await desk.server.publish(ToolsListChanged())
            assert (await second.next_message())["method"] == "notifications/tools/list_changed"
            assert first.so_far.messages == []


async def test_a_stream_that_broke_off_can_be_opened_again() -> None:
    desk = Desk()
    client = await desk.client()
    async with client.get() as first:
        await first.started()
        first.disconnect()
        await first.returned()
        assert [message["type"] for message in first.sent_late if message.get("more_body")] == []
    async with client.get() as second:
        await second.started()
        await desk.server.publish(ToolsListChanged())
        assert (await second.next_message())["method"] == "notifications/tools/list_changed"


@pytest.mark.requirement("R-HTTP-10")
async def test_streams_are_kept_alive_by_comments() -> None:
    desk = Desk(keep_alive=0.01)
    client = await desk.client()
    async with client.get() as stream, client.post(client.calling("talk", token=1)) as talking:
        await stream.until(lambda stream: stream.comments >= 3)
        await talking.until(lambda talking: talking.comments >= 2)
        desk.gate("talk").set()
        assert text_of((await talking.response()).answer) == "talk"


async def test_the_end_of_the_app_ends_the_streams_of_sessions() -> None:
    desk = Desk(event_store=InMemoryEventStore())
    client = await desk.client()
    async with client.get() as stream:
        await stream.started()
        await desk.server.publish(ToolsListChanged())
        desk.app.close()
        await stream.response()
        await stream.returned()
        # What had been told before is not lost.
        assert [message["method"] for message in stream.so_far.messages] == ["notifications/tools/list_changed"]


async def test_a_client_that_does_not_read_loses_the_oldest_changes_only() -> None:
    desk = Desk()
    client = await desk.client()
    await client.answer(client.message(1, "resources/subscribe", {"uri": "memo://1"}))
    async with client.get() as stream:
        await stream.started()
        await anyio.wait_all_tasks_blocked()
        stream.stop_reading()
        for _ in range(1000):
            await desk.server.publish(ResourceUpdated("memo://1"))
        await desk.server.publish(ToolsListChanged())
        stream.read_on()
        await stream.until(lambda stream: b"list_changed" in stream.so_far.body)
        methods = [message["method"] for message in stream.so_far.messages]
        assert 0 < methods.count("notifications/resources/updated") < 300
        assert methods[-1] == "notifications/tools/list_changed"


# --- arrays ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-HTTPL-03")
@pytest.mark.requirement("R-BASE-13")
@pytest.mark.parametrize("json_response", [False, True])
async def test_an_array_is_answered_by_an_array(json_response: bool) -> None:
    desk = Desk(json_response=json_response)
    client = await desk.client("2025-03-26")
    ping = client.message("p", "ping")
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    strange = {"jsonrpc": "2.0", "id": 9, "method": 5}
    batch = [client.calling("one", request_id=1), told, ping, strange, client.message(2, "tools/unknown")]
    response = await client.answer(batch)
    assert response.status == 200
    answers = {answer["id"]: answer for answer in response.json}
    assert len(response.json) == 4
    assert text_of(answers[1]) == "one"
    assert answers["p"] == {"jsonrpc": "2.0", "id": "p", "result": {}}
    assert answers[9]["error"]["code"] == -32600
    assert answers[2]["error"]["code"] == -32601


@pytest.mark.requirement("R-HTTPL-03")
@pytest.mark.requirement("R-HTTPL-02")
@pytest.mark.parametrize(
    "batch",
    [
        [{"jsonrpc": "2.0", "method": "notifications/initialized"}] * 2,
        [{"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": 2, "error": {"code": 1, "message": ""}}],
        [{"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "method": "notifications/initialized"}],
    ],
    ids=["notifications", "responses", "both"],
)
async def test_an_array_without_requests_gets_no_body(batch: Any) -> None:
    client = await Desk().client("2025-03-26")
    response = await client.answer(batch)
    assert (response.status, response.body) == (202, b"")


@pytest.mark.requirement("R-HTTPL-03")
async def test_an_empty_array_is_refused() -> None:
    client = await Desk().client("2025-03-26")
    response = await client.answer(b"[]")
    assert (response.status, response.json["error"]["code"]) == (400, -32600)


async def test_initialize_is_no_part_of_an_array() -> None:
    desk = Desk()
    client = await desk.client("2025-03-26")
    response = await client.answer([client.opening(5), client.message(6, "ping")])
    assert {answer["id"]: answer.get("error", {}).get("code") for answer in response.json} == {5: -32600, 6: None}
    assert response.header("mcp-session-id") is None
    assert len(desk.app.sessions) == 1


@pytest.mark.requirement("R-HTTPL-03")
@pytest.mark.requirement("R-HTTPL-04")
async def test_progress_of_an_array_comes_before_its_answers() -> None:
    desk = Desk()
    client = await desk.client("2025-03-26")
    desk.gate("talk").set()
    response = await client.answer([client.calling("talk", token="t"), client.message(2, "ping")])
    first, second, answers = response.messages
    assert is_progress(first, "t", 1)
    assert is_progress(second, "t", 2)
    assert sorted(answer["id"] for answer in answers) == [1, 2]


async def test_an_array_is_answered_by_json_alone_where_that_is_wanted() -> None:
    desk = Desk(json_response=True)
    client = await desk.client("2025-03-26")
    desk.gate("talk").set()
    response = await client.answer([client.calling("talk", token="t")])
    assert [text_of(answer) for answer in response.json] == ["talk"]


@pytest.mark.parametrize("tool", ["wait", "talk"])
async def test_a_cancelled_request_of_an_array_leaves_the_others_alone(tool: str) -> None:
    desk = Desk()
    client = await desk.client("2025-03-26")
    batch = [client.calling(tool, request_id=1, token=1), client.message(2, "ping")]
    async with client.post(batch) as exchange:
        await desk.has_started(tool)
        await client.notify("notifications/cancelled", {"requestId": 1})
        response = await exchange.response()
    assert [answer["id"] for answer in response.answer] == [2]


@pytest.mark.parametrize("tool", ["wait", "talk"])
async def test_an_array_ends_when_all_of_it_is_cancelled(tool: str) -> None:
    desk = Desk()
    client = await desk.client("2025-03-26")
    async with client.post([client.calling(tool, request_id=1, token=1)]) as exchange:
        await desk.has_started(tool)
        await client.notify("notifications/cancelled", {"requestId": 1})
        assert await desk.has_ended(tool) == "cancelled"
        await exchange.response()


@pytest.mark.requirement("R-BASE-14")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25"])
async def test_other_revisions_know_no_arrays(revision: str) -> None:
    desk = Desk()
    client = await desk.client(revision)
    response = await client.answer([client.calling("one")])
    assert (response.status, response.json["error"]["code"]) == (400, -32600)
    assert desk.ends == {}


@pytest.mark.requirement("R-HTTPL-03")
@pytest.mark.requirement("R-BASE-13")
async def test_an_array_is_answered_without_a_session_where_the_revision_is_named() -> None:
    desk = Desk(stateless_http=True)
    client = HandshakeClient(desk.app, revision="2025-03-26")
    batch = [client.calling("one", request_id=1), client.message(2, "ping")]
    response = await client.answer(batch, headers={"mcp-protocol-version": "2025-03-26"})
    assert sorted(answer["id"] for answer in response.json) == [1, 2]
    refused = await client.answer(batch, headers={"mcp-protocol-version": "2025-06-18"})
    assert (refused.status, refused.json["error"]["code"]) == (400, -32600)


# --- the server asks ---------------------------------------------------------------------------------------


def answered(request: Any, **members: Any) -> dict[str, Any]:
    """The response to a request of the server's."""
    return {"jsonrpc": "2.0", "id": request["id"], **members}


@pytest.mark.requirement("R-HTTPL-02")
@pytest.mark.requirement("R-HTTPL-04")
async def test_a_request_of_the_server_comes_on_the_stream_and_is_answered_by_another_post() -> None:
    desk = Desk()
    client = await desk.client(capabilities=ELICITS)
    async with client.get() as own, client.post(client.calling("ask", request_id=8)) as exchange:
        await own.started()
        request = await exchange.next_message()
        assert request["method"] == "elicitation/create"
        assert request["params"] == {"mode": "form", "message": "Who?", "requestedSchema": FORM}
        reply = answered(request, result={"action": "accept", "content": {"name": "me"}})
        response = await client.answer(reply)
        assert (response.status, response.body) == (202, b"")
        answer = await exchange.next_message()
        assert (answer["id"], text_of(answer)) == (8, "ask")
        await exchange.response()
        assert own.so_far.messages == []
    assert desk.ends["answer"] == "accept {'name': 'me'}"


async def test_a_client_that_refuses_is_heard() -> None:
    desk = Desk()
    client = await desk.client(capabilities=ELICITS)
    async with client.post(client.calling("ask")) as exchange:
        request = await exchange.next_message()
        await client.answer(answered(request, error={"code": -1, "message": "not now"}))
        answer = (await exchange.response()).answer
    assert desk.ends["ask"] == f"{MCPError.__name__}: not now"
    assert answer["error"] == {"code": -1, "message": "not now"}


async def test_only_its_own_session_answers_a_request() -> None:
    desk = Desk()
    client, stranger = await desk.client(capabilities=ELICITS), await desk.client(capabilities=ELICITS)
    async with client.post(client.calling("ask")) as exchange:
        request = await exchange.next_message()
        forged = answered(request, result={"action": "accept", "content": {"name": "stranger"}})
        assert (await stranger.answer(forged)).status == 202
        await anyio.wait_all_tasks_blocked()
        assert "answer" not in desk.ends
        await client.answer(answered(request, result={"action": "decline"}))
        await exchange.response()
        # Who answers twice is not heard twice.
        assert (await client.answer(forged)).status == 202
    assert desk.ends["answer"] == "decline None"


async def test_requests_of_one_session_have_ids_of_their_own() -> None:
    desk = Desk()
    client = await desk.client(capabilities=ELICITS)
    async with (
        client.post(client.calling("ask a", request_id=1)) as a,
        client.post(client.calling("ask b", request_id=2)) as b,
    ):
        first, second = await a.next_message(), await b.next_message()
        assert first["id"] != second["id"]
        for request in (second, first):
            await client.answer(answered(request, result={"action": "cancel"}))
        assert [text_of((await exchange.response()).answer) for exchange in (a, b)] == ["ask a", "ask b"]


@pytest.mark.parametrize(
    ("options", "headers"),
    [({"json_response": True}, {}), ({}, {"accept": "application/json"}), ({"stateless_http": True}, {})],
    ids=["json_response", "json only", "stateless"],
)
async def test_where_nothing_can_be_asked_the_handler_is_told_at_once(options: Any, headers: Any) -> None:
    seen: list[Exception] = []

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        try:
            await ctx.ping()
        except LocalProtocolError as exc:
            seen.append(exc)
        return result()

    client = HandshakeClient(custom(call, **options))
    await client.initialize(ELICITS)
    assert text_of((await client.call("x", headers=headers)).json) == "done"
    assert len(seen) == 1


async def test_a_client_that_does_not_answer_in_time_is_told_to_stop() -> None:
    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        try:
            await ctx.elicit("Who?", FORM, timeout=0.01)
        except RequestTimeout:
            return result("nobody answered")
        return result()

    client = HandshakeClient(custom(call))
    await client.initialize(ELICITS)
    request, cancelled, answer = (await client.call("x")).messages
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"]["requestId"] == request["id"]
    assert text_of(answer) == "nobody answered"
    assert (await client.answer(answered(request, result={"action": "cancel"}))).status == 202


async def test_sampling_in_an_array_is_answered_by_another_post() -> None:
    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        message = SamplingMessage(role="user", content=TextContent(text="hi"))
        made = await ctx.create_message([message], max_tokens=5)
        return result(made.model)

    client = HandshakeClient(custom(call), revision="2025-03-26")
    await client.initialize({"sampling": {}})
    async with client.post([client.calling("x")]) as exchange:
        request = await exchange.next_message()
        assert request["method"] == "sampling/createMessage"
        made = {"role": "assistant", "content": {"type": "text", "text": "ho"}, "model": "m"}
        await client.answer(answered(request, result=made))
        (answer,) = (await exchange.response()).answer
    assert text_of(answer) == "m"


# --- cancelling, and going away -----------------------------------------------------------------------------


@pytest.mark.requirement("R-HTTPL-06")
@pytest.mark.parametrize(
    "options",
    [{}, {"json_response": True}, {"event_store": InMemoryEventStore()}],
    ids=["session", "json", "event store"],
)
@pytest.mark.parametrize("tool", ["wait", "talk"])
async def test_a_notification_cancels(tool: str, options: dict[str, Any]) -> None:
    desk = Desk(**options)
    client = await desk.client()
    async with client.post(client.calling(tool, request_id="c", token=1)) as exchange:
        await desk.has_started(tool)
        told = await client.notify("notifications/cancelled", {"requestId": "c", "reason": "enough"})
        assert (told.status, told.body) == (202, b"")
        assert await desk.has_ended(tool) == "cancelled"
        response = await exchange.response()
        await exchange.returned()
    # Nothing answers a cancelled request.
    assert b'"id":"c"' not in response.body
    assert (await client.answer(client.message("c", "ping"))).answer["result"] == {}


@pytest.mark.parametrize(
    "params", [{"requestId": 99}, {"requestId": "1"}, {"requestId": None}, {"requestId": [1]}, {}, None], ids=str
)
async def test_a_notification_that_names_no_request_cancels_nothing(params: Any) -> None:
    desk = Desk()
    client, other = await desk.client(), await desk.client()
    async with client.post(client.calling("wait", request_id=1)) as exchange:
        await desk.has_started("wait")
        assert (await client.notify("notifications/cancelled", params)).status == 202
        # Nor does one that names a request of somebody else's.
        assert (await other.notify("notifications/cancelled", {"requestId": 1})).status == 202
        desk.gate("wait").set()
        assert text_of((await exchange.response()).json) == "wait"


@pytest.mark.requirement("R-HTTPL-06")
@pytest.mark.parametrize(
    "options",
    [{}, {"stateless_http": True}, {"json_response": True}, {"event_store": InMemoryEventStore()}],
    ids=["session", "stateless", "json", "event store"],
)
@pytest.mark.parametrize("tool", ["wait", "talk"])
@pytest.mark.parametrize("raises_when_gone", [False, True], ids=["silent", "raising"])
async def test_going_away_does_not_cancel(tool: str, options: dict[str, Any], raises_when_gone: bool) -> None:
    desk = Desk(**options)
    client = await desk.client()
    async with client.post(client.calling(tool, token=1), raises_when_gone=raises_when_gone) as exchange:
        await desk.has_started(tool)
        exchange.disconnect()
        await anyio.wait_all_tasks_blocked()
        assert not desk.ended
        desk.gate(tool).set()
        assert await desk.has_ended(tool) == "finished"
        await exchange.returned()
        assert exchange.error is None
    assert (await client.answer(client.message(2, "ping"))).status == 200


@pytest.mark.parametrize("raises_when_gone", [False, True], ids=["silent", "raising"])
async def test_going_away_does_not_cancel_what_is_kept_alive(raises_when_gone: bool) -> None:
    desk = Desk(keep_alive=0.01)
    client = await desk.client()
    async with client.post(client.calling("talk", token=1), raises_when_gone=raises_when_gone) as exchange:
        await desk.has_started("talk")
        exchange.disconnect()
        await anyio.sleep(0.05)  # several comments
        assert not desk.ended
        desk.gate("talk").set()
        assert await desk.has_ended("talk") == "finished"


@pytest.mark.case("C073")
@pytest.mark.parametrize("options", [{}, {"stateless_http": True}, {"json_response": True}], ids=str)
@pytest.mark.parametrize("tool", ["wait", "talk"])
async def test_going_away_cancels_where_that_is_wanted(tool: str, options: dict[str, Any]) -> None:
    desk = Desk(cancel_on_disconnect=True, **options)
    client = await desk.client()
    async with client.post(client.calling(tool, token=1)) as exchange:
        await desk.has_started(tool)
        exchange.disconnect()
        assert await desk.has_ended(tool) == "cancelled"
        await exchange.returned()
    assert (await client.answer(client.message(2, "ping"))).status == 200


@pytest.mark.case("C051")
@pytest.mark.requirement("R-BASE-04")
async def test_one_id_twice_at_once_is_answered_twice() -> None:
    desk = Desk()
    client = await desk.client()
    async with client.post(client.calling("wait", request_id=1)) as slow:
        await desk.has_started("wait")
        assert text_of((await client.call("echo", request_id=1)).json) == "echo"
        assert not slow.has_started
        async with client.post(client.calling("talk", request_id=1, token="t")) as second:
            assert is_progress(await second.next_message(), "t", 1)
            desk.gate("wait").set()
            assert text_of((await slow.response()).json) == "wait"
            desk.gate("talk").set()
            assert text_of((await second.response()).answer) == "talk"
    assert text_of((await client.call("echo", request_id=1)).json) == "echo"


# --- without sessions, and by JSON alone -----------------------------------------------------------------------


@pytest.mark.requirement("R-HTTPL-09")
@pytest.mark.requirement("R-HTTPL-13")
async def test_without_sessions_every_request_stands_for_itself() -> None:
    desk = Desk(stateless_http=True)
    client = HandshakeClient(desk.app)
    opened = await client.initialize()
    assert (opened.status, opened.header("mcp-session-id")) == (200, None)
    assert opened.json["result"]["protocolVersion"] == "2025-11-25"
    assert (await client.notify("notifications/initialized")).status == 202
    assert text_of((await client.call("echo")).json) == "echo"
    # An id that somebody brings along means nothing, and nothing is kept.
    assert text_of((await client.call("echo", headers={"mcp-session-id": "x"})).json) == "echo"
    assert len(desk.app.sessions) == 0


async def test_without_sessions_progress_still_streams() -> None:
    desk = Desk(stateless_http=True)
    client = HandshakeClient(desk.app)
    desk.gate("talk").set()
    first, second, answer = (await client.call("talk", token=0)).messages
    assert is_progress(first, 0, 1)
    assert is_progress(second, 0, 2)
    assert text_of(answer) == "talk"


@pytest.mark.requirement("R-HTTP-07")
@pytest.mark.parametrize("options", [{"json_response": True}, {"json_response": True, "stateless_http": True}], ids=str)
async def test_by_json_alone_nothing_comes_before_the_answer(options: dict[str, Any]) -> None:
    desk = Desk(**options)
    client = await desk.client()
    desk.gate("talk").set()
    response = await client.call("talk", token=1)
    assert text_of(response.json) == "talk"


# --- streams that are taken up again ----------------------------------------------------------------------------


async def primed(exchange: Exchange) -> str:
    """The id of the event that opens a stream: it holds nothing else."""
    event = await exchange.next_event()
    assert (event.data, event.event, event.retry) == ("", None, None)
    assert event.id
    return event.id


def ids_of(response: Response) -> list[str]:
    """The ids of all events, each of which has one."""
    ids = [event.id for event in response.events if event.comment is None]
    assert None not in ids
    return [event_id for event_id in ids if event_id is not None]


@pytest.mark.requirement("R-HTTPL-07")
@pytest.mark.requirement("R-HTTPL-08")
async def test_with_an_event_store_streams_are_primed_and_events_have_ids() -> None:
    desk = Desk(event_store=InMemoryEventStore())
    client = await desk.client()
    seen: list[str] = []
    async with client.get() as own:
        seen.append(await primed(own))
        await desk.server.publish(ToolsListChanged())
        event = await own.next_event()
        assert event.message["method"] == "notifications/tools/list_changed"
        seen.append(event.id or "")
    desk.gate("talk").set()
    for response in (await client.call("talk", token=1), await client.call("echo")):
        assert response.events[0].data == ""
        seen += ids_of(response)
    assert len(seen) == 2 + 4 + 2
    assert len(set(seen)) == len(seen)


@pytest.mark.requirement("R-HTTPL-07")
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
async def test_a_revision_without_priming_gets_no_event_without_a_message(revision: str) -> None:
    desk = Desk(event_store=InMemoryEventStore())
    client = await desk.client(revision)
    desk.gate("talk").set()
    response = await client.call("talk", token=1)
    assert [event.data for event in response.events if not event.data] == []
    assert all(event.id for event in response.events)


@pytest.mark.requirement("R-HTTPL-07")
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
async def test_a_revision_that_would_not_come_back_is_not_closed_early(revision: str) -> None:
    desk = Desk(event_store=InMemoryEventStore())
    client = await desk.client(revision)
    desk.gate("retire").set()
    response = await client.call("retire", token=1)
    assert text_of(response.answer) == "retire"


async def test_a_client_of_json_alone_gets_no_stream_from_an_event_store_either() -> None:
    desk = Desk(event_store=InMemoryEventStore())
    client = await desk.client()
    response = await client.call("echo", headers={"accept": "application/json"})
    assert text_of(response.json) == "echo"


@pytest.mark.requirement("R-HTTPL-06")
@pytest.mark.requirement("R-HTTPL-08")
async def test_a_client_that_broke_off_comes_back_for_the_answer() -> None:
    desk = Desk(event_store=InMemoryEventStore())
    client = await desk.client()
    async with client.post(client.calling("talk", request_id="r", token=1)) as exchange:
        opening = await primed(exchange)
        progress = await exchange.next_event()
        exchange.disconnect()
        desk.gate("talk").set()
        assert await desk.has_ended("talk") == "finished"
        await exchange.returned()
    async with client.get(last_event_id=progress.id) as stream:
        response = await stream.response()
        assert response.header("x-accel-buffering") == "no"
        assert [m.get("method", m.get("id")) for m in response.messages] == ["notifications/progress", "r"]
        assert is_progress(response.messages[0], 1, 2)
        assert text_of(response.messages[1]) == "talk"
        answer_id = ids_of(response)[-1]
    # From the opening on there is one message more, and after the answer there is none.
    async with client.get(last_event_id=opening) as stream:
        assert [is_progress(m, 1, n) for n, m in enumerate((await stream.response()).messages[:2], 1)] == [True, True]
    async with client.get(last_event_id=answer_id) as stream:
        assert (await stream.response()).events == []


@pytest.mark.requirement("R-HTTPL-08")
async def test_a_stream_is_taken_up_while_its_request_goes_on() -> None:
    desk = Desk(event_store=InMemoryEventStore())
    client = await desk.client()
    async with client.post(client.calling("talk", token=1)) as exchange:
        opening = await primed(exchange)
        await exchange.next_event()
        exchange.disconnect()
        async with client.get(last_event_id=opening) as stream:
            assert is_progress(await stream.next_message(), 1, 1)
            desk.gate("talk").set()
            assert is_progress(await stream.next_message(), 1, 2)
            assert text_of(await stream.next_message()) == "talk"
            response = await stream.response()
            await stream.returned()
        await exchange.returned()
    assert len(set(ids_of(response))) == 3


@pytest.mark.requirement("R-HTTPL-08")
async def test_a_stream_is_taken_up_again_and_again() -> None:
    desk = Desk(event_store=InMemoryEventStore())
    client = await desk.client()
    async with client.post(client.calling("talk", token=1)) as exchange:
        last: str | None = await primed(exchange)
        exchange.disconnect()
        for _ in range(3):
            async with client.get(last_event_id=last) as stream:
                event = await stream.next_event()
                assert is_progress(event.message, 1, 1)
        desk.gate("talk").set()
        await exchange.returned()
        async with client.get(last_event_id=last) as stream:
            assert text_of((await stream.response()).answer) == "talk"


@pytest.mark.requirement("R-HTTPL-05")
@pytest.mark.requirement("R-HTTPL-08")
async def test_a_stream_that_is_taken_up_elsewhere_ends_where_it_was() -> None:
    desk = Desk(event_store=InMemoryEventStore())
    client = await desk.client()
    async with client.post(client.calling("talk", token=1)) as exchange:
        await primed(exchange)
        progress = await exchange.next_event()
        async with client.get(last_event_id=progress.id) as stream:
            await stream.started()
            await anyio.wait_all_tasks_blocked()
            desk.gate("talk").set()
            assert text_of((await stream.response()).answer) == "talk"
        before = await exchange.response()
        assert len(before.messages) == 1


@pytest.mark.requirement("R-HTTPL-07")
async def test_a_handler_closes_its_stream_and_the_client_comes_back() -> None:
    desk = Desk(event_store=InMemoryEventStore())
    client = await desk.client()
    async with client.post(client.calling("retire", token=1)) as exchange:
        response = await exchange.response()
        first, last = response.events
        assert first.data == ""
        assert (last.retry, last.data, last.id) == (250, None, None)
        assert not exchange.has_returned or desk.ends
        async with client.get(last_event_id=first.id) as stream:
            await stream.started()
            desk.gate("retire").set()
            assert is_progress(await stream.next_message(), 1, 2)
            assert text_of(await stream.next_message()) == "retire"
            await stream.response()
    # It may come back as late as it likes.
    async with client.get(last_event_id=first.id) as stream:
        assert text_of((await stream.response()).answer) == "retire"


async def test_a_handler_that_closes_its_stream_twice_closes_it_once() -> None:
    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await ctx.report_progress(1)
        await ctx.close_stream()
        await ctx.close_stream()
        await ctx.report_progress(2)
        return result()

    client = HandshakeClient(custom(call, event_store=InMemoryEventStore()))
    await client.initialize()
    response = await client.call("x", token=1)
    opening, progress, closing = response.events
    assert (opening.data, progress.message["params"]["progress"], closing.retry) == ("", 1, 1000)
    async with client.get(last_event_id=progress.id) as stream:
        messages = (await stream.response()).messages
    assert is_progress(messages[0], 1, 2)
    assert text_of(messages[1]) == "done"


@pytest.mark.parametrize(
    "options",
    [{}, {"stateless_http": True, "event_store": InMemoryEventStore()}],
    ids=["no event store", "no session"],
)
async def test_a_stream_that_cannot_be_taken_up_is_not_closed(options: dict[str, Any]) -> None:
    desk = Desk(**options)
    client = await desk.client()
    desk.gate("retire").set()
    response = await client.call("retire", token=1)
    assert is_progress(response.messages[0], 1, 2)
    assert text_of(response.messages[1]) == "retire"


async def test_a_request_to_the_client_is_kept_like_any_other_message() -> None:
    desk = Desk(event_store=InMemoryEventStore())
    client = await desk.client(capabilities=ELICITS)
    async with client.post(client.calling("ask")) as exchange:
        opening = await primed(exchange)
        await exchange.next_event()
        exchange.disconnect()
        async with client.get(last_event_id=opening) as stream:
            request = await stream.next_message()
            assert request["method"] == "elicitation/create"
            await client.answer(answered(request, result={"action": "decline"}))
            assert text_of(await stream.next_message()) == "ask"


@pytest.mark.requirement("R-HTTPL-08")
async def test_events_are_those_of_one_stream_and_of_ones_own_session() -> None:
    desk = Desk(event_store=InMemoryEventStore())
    client, stranger = await desk.client(), await desk.client()
    one, other = await client.call("one"), await client.call("other")
    async with client.get(last_event_id=one.events[0].id) as stream:
        assert [text_of(message) for message in (await stream.response()).messages] == ["one"]
    async with client.get(last_event_id=other.events[0].id) as stream:
        assert [text_of(message) for message in (await stream.response()).messages] == ["other"]
    headers = {"accept": "text/event-stream", "last-event-id": one.events[0].id, **stranger.own_headers}
    refused = await stranger.request("GET", headers=headers)
    assert refused.json["error"]["code"] == -32600
    assert refused.json.keys() == {"jsonrpc", "error"}


@pytest.mark.requirement("R-HTTPL-11")
async def test_an_event_that_is_gone_is_not_taken_for_a_session_that_is_gone() -> None:
    # To 404 a client must answer with a new session; this one still stands.
    desk = Desk(event_store=InMemoryEventStore())
    client = await desk.client()
    headers = {"accept": "text/event-stream", "last-event-id": "e999", **client.own_headers}
    async with client.open("GET", headers=headers) as stream:
        head = await stream.started()
        assert head.status != 404
    assert await is_known(client)


@pytest.mark.requirement("R-HTTPL-01")
async def test_without_an_event_store_the_last_event_is_not_looked_at() -> None:
    desk = Desk()
    client = await desk.client()
    async with client.get(last_event_id="e1") as stream:
        assert (await stream.started()).status == 200
        await desk.server.publish(ToolsListChanged())
        assert (await stream.next_message())["method"] == "notifications/tools/list_changed"


@pytest.mark.requirement("R-HTTPL-08")
async def test_the_sessions_own_stream_goes_on_when_it_is_taken_up() -> None:
    desk = Desk(event_store=InMemoryEventStore())
    client = await desk.client()
    async with client.get() as first:
        opening = await primed(first)
        await desk.server.publish(ToolsListChanged())
        last = await first.next_event()
        first.disconnect()
        await first.returned()
    for event_id, replayed in ((opening, 1), (last.id, 0)):
        async with client.get(last_event_id=event_id) as stream:
            await stream.started()
            for _ in range(replayed):
                assert (await stream.next_message())["method"] == "notifications/tools/list_changed"
            await anyio.wait_all_tasks_blocked()
            assert not stream.is_complete
            await client.answer(client.message(1, "resources/subscribe", {"uri": "memo://1"}))
            await desk.server.publish(ResourceUpdated("memo://1"))
            event = await stream.next_event()
            assert event.message["params"] == {"uri": "memo://1"}
            assert event.id


@pytest.mark.requirement("R-HTTPL-08")
async def test_what_came_while_the_sessions_own_stream_was_broken_is_not_lost() -> None:
    desk = Desk(event_store=InMemoryEventStore())
    client = await desk.client()
    async with client.get() as first:
        opening = await primed(first)
        first.disconnect()
        await first.returned()
    await desk.server.publish(ToolsListChanged())
    async with client.get(last_event_id=opening) as stream:
        assert (await stream.next_message())["method"] == "notifications/tools/list_changed"


async def taken_up(
    desk: Desk, client: HandshakeClient, stream: Exchange, finish: Callable[[], Awaitable[Any]]
) -> Response:
    """A stream that was taken up, after this has happened to its request."""
    await stream.started()
    await anyio.wait_all_tasks_blocked()
    assert not stream.is_complete
    await finish()
    response = await stream.response()
    await stream.returned()
    return response


@pytest.mark.parametrize("tool", ["talk", "retire"])
@pytest.mark.parametrize("how", ["cancelled", "deleted", "closed"])
async def test_a_stream_that_was_taken_up_ends_with_its_request(tool: str, how: str) -> None:
    desk = Desk(event_store=InMemoryEventStore())
    client = await desk.client()

    async def finish() -> None:
        if how == "cancelled":
            await client.notify("notifications/cancelled", {"requestId": 1})
        elif how == "deleted":
            await client.delete()
        else:
            desk.app.close()

    async with client.post(client.calling(tool, token=1)) as exchange:
        opening = await primed(exchange)
        await desk.has_started(tool)
        exchange.disconnect()
        async with client.get(last_event_id=opening) as stream:
            response = await taken_up(desk, client, stream, finish)
        assert await desk.has_ended(tool) == "cancelled"
        assert [message for message in response.messages if "id" in message] == []


async def test_an_answer_that_comes_while_old_events_are_replayed_is_sent() -> None:
    desk = Desk(event_store=InMemoryEventStore())
    client = await desk.client()
    async with client.post(client.calling("talk", token=1)) as exchange:
        opening = await primed(exchange)
        await exchange.next_event()
        exchange.disconnect()
        async with client.get(last_event_id=opening) as stream:
            stream.stop_reading()  # the head of the response waits
            await anyio.wait_all_tasks_blocked()
            desk.gate("talk").set()
            assert await desk.has_ended("talk") == "finished"
            await exchange.returned()
            stream.read_on()
            messages = (await stream.response()).messages
    assert [is_progress(m, 1, n) for n, m in enumerate(messages[:2], 1)] == [True, True]
    assert text_of(messages[2]) == "talk"


class SlowStore(InMemoryEventStore):
    """A store in some database: what it keeps is there for others before its caller goes on."""

    async def store_event(self, stream_id: str, message: bytes) -> str:
        event_id = await super().store_event(stream_id, message)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        return event_id

    async def replay_events_after(self, event_id: str) -> tuple[str, list[tuple[str, bytes]]] | None:
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        return await super().replay_events_after(event_id)


@pytest.mark.requirement("R-HTTPL-08")
@pytest.mark.parametrize("turns", range(0, 24, 2))
async def test_events_come_once_and_in_order_however_a_stream_is_taken_up(turns: int) -> None:
    count = 12

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        for number in range(count):
            await ctx.notify("notifications/custom", {"number": number})
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
        return result()

    client = HandshakeClient(custom(call, event_store=SlowStore()))
    await client.initialize()
    async with client.post(client.calling("x")) as exchange:
        opening = await primed(exchange)
        exchange.disconnect()
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        async with client.get(last_event_id=opening) as stream:
            response = await stream.response()
        await exchange.returned()
    assert [m["params"]["number"] for m in response.messages if "params" in m] == list(range(count))
    assert text_of(response.messages[-1]) == "done"
    assert len(response.messages) == count + 1
    assert len(set(ids_of(response))) == count + 1


async def test_events_come_in_order_to_a_client_that_reads_slowly() -> None:
    said, heard = anyio.create_memory_object_stream[int](100)

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        with heard:
            async for number in heard:
                await ctx.notify("notifications/custom", {"number": number})
        return result()

    client = HandshakeClient(custom(call, event_store=InMemoryEventStore()))
    await client.initialize()
    with said:
        async with client.post(client.calling("x")) as exchange:
            opening = await primed(exchange)
            exchange.disconnect()
            said.send_nowait(0)
            await anyio.wait_all_tasks_blocked()
            async with client.get(last_event_id=opening) as stream:
                stream.stop_reading()
                for number in range(1, 9):
                    await anyio.wait_all_tasks_blocked()
                    if number > 3:
                        stream.read_on(1)
                    said.send_nowait(number)
                await anyio.wait_all_tasks_blocked()
                stream.read_on()
                said.close()
                messages = (await stream.response()).messages
            await exchange.returned()
    assert [m["params"]["number"] for m in messages[:-1]] == list(range(9))
    assert text_of(messages[-1]) == "done"


# --- the event store in memory ---------------------------------------------------------------------------------


async def test_the_store_replays_later_events_of_the_same_stream() -> None:
    store = InMemoryEventStore()
    ids = [
        await store.store_event(stream, message)
        for stream, message in (("a", b""), ("b", b""), ("a", b"1"), ("b", b"2"), ("a", b"3"))
    ]
    assert len(set(ids)) == 5
    assert await store.replay_events_after(ids[0]) == ("a", [(ids[2], b"1"), (ids[4], b"3")])
    assert await store.replay_events_after(ids[2]) == ("a", [(ids[4], b"3")])
    assert await store.replay_events_after(ids[4]) == ("a", [])
    assert await store.replay_events_after(ids[1]) == ("b", [(ids[3], b"2")])
    assert await store.replay_events_after("nothing") is None
    assert await store.replay_events_after("") is None


async def test_the_store_forgets_the_oldest_events_beyond_its_bounds() -> None:
    store = InMemoryEventStore(max_bytes=100_000)
    ids = [await store.store_event(f"s{number % 3}", b"x" * 1000) for number in range(1000)]
    kept = [event_id for event_id in ids if await store.replay_events_after(event_id) is not None]
    assert kept == ids[-len(kept) :]
    # What an entry takes besides its message counts as well.
    assert 70 <= len(kept) < 100
    found = await store.replay_events_after(kept[0])
    assert found is not None
    assert [event_id for event_id, _ in found[1]] == kept[3::3]


async def test_the_store_bounds_events_without_messages_too() -> None:
    store = InMemoryEventStore(max_bytes=10_000)
    ids = [await store.store_event("s", b"") for _ in range(1000)]
    assert sum([await store.replay_events_after(event_id) is not None for event_id in ids]) <= 100


async def test_the_store_keeps_one_event_of_any_size() -> None:
    store = InMemoryEventStore(max_bytes=1000)
    small = await store.store_event("s", b"x")
    large = await store.store_event("s", b"x" * 5000)
    assert await store.replay_events_after(small) is None
    assert await store.replay_events_after(large) == ("s", [])
    again = await store.store_event("s", b"y")
    assert await store.replay_events_after(large) is None
    assert await store.replay_events_after(again) == ("s", [])


async def test_a_stream_whose_events_were_forgotten_goes_on_for_who_reads_it() -> None:
    desk = Desk(event_store=InMemoryEventStore(max_bytes=1))
    client = await desk.client()
    desk.gate("talk").set()
    response = await client.call("talk", token=1)
    assert is_progress(response.messages[0], 1, 1)
    assert text_of(response.answer) == "talk"

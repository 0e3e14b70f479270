"""Stores, buses, observers and verifiers that raise or hang, and loops that end: the rest goes on."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import time
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcp_core import Client, RequestContext, Server
from mcp_core import types as t
from mcp_core.announcer import MAX_WAITING, Announcer
from mcp_core.auth import AccessToken, AuthSettings
from mcp_core.subscriptions import Event, InProcessBus, ResourceUpdated, ToolsListChanged
from mcp_core.testing import flush_logs
from mcp_core.transports.streamable_http import HTTPOptions, InMemoryEventStore, StreamableHTTP, tool_headers
from mcp_core.transports.streamable_http import event_store as event_store_module
from mcp_core.transports.streamable_http import resumable as stored_module
from mcp_core.transports.streamable_http.sessions import SessionTable
from tests.http.asgi import HTTP, HandshakeClient, ModernClient, line


def ok(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(text=params.name)])


def served(*, call: Any = ok, bus: Any = True, **options: Any) -> StreamableHTTP:
    server = Server(
        "s", subscriptions=bus, on_call_tool=call, on_list_tools=lambda ctx, params: t.ListToolsResult(tools=[])
    )
    return StreamableHTTP(server, HTTPOptions(**options))


CHANGED = "notifications/tools/list_changed"
OPTIONS = ["sessions", "no sessions", "an event store"]


# --- event stores ---------------------------------------------------------------------------------------------


class Away(InMemoryEventStore):
    """A store that does not do what it should, while `fault` says so."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: Callable[[], Any] | None = None

    async def store_event(self, stream_id: str, message: bytes) -> str:
        if self.fault is not None:
            found = self.fault()
            return await found if hasattr(found, "__await__") else found  # type: ignore[no-any-return]
        return await super().store_event(stream_id, message)

    async def replay_events_after(self, event_id: str) -> Any:
        if self.fault is not None:
            found = self.fault()
            return await found if hasattr(found, "__await__") else found
        return await super().replay_events_after(event_id)


def raising(exc: BaseException) -> Callable[[], Any]:
    def fault() -> Any:
        raise exc

    return fault


FAULTS: dict[str, Callable[[], Any]] = {
    "raises": raising(ConnectionError("away")),
    "exits": raising(SystemExit(3)),
    "ends a generator": raising(GeneratorExit()),
    "is cancelled by nobody": raising(asyncio.CancelledError()),
    "hangs": anyio.sleep_forever,
    "gives a number": lambda: 5,
    "gives a line break": lambda: "e1\nid: 2",
    "gives nothing of use": lambda: ("s", [("e1",)]),
}


@pytest.mark.fault("S-09")
@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
async def test_a_store_that_fails_for_a_moment_harms_nothing_for_longer(
    fault: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_module, "STORE_SECONDS", 0.02)
    store = Away()
    app = served(event_store=store)
    client = HandshakeClient(app)
    await client.initialize()
    async with client.get() as stream:
        await stream.next_event()
        store.fault = fault
        await app.server.publish(ToolsListChanged())
        # It goes out, though it cannot be kept.
        assert (await stream.next_message())["method"] == CHANGED
        answered = await client.call("x")
        assert answered.answer["result"]["content"][0]["text"] == "x"
        resumed = await client.request(
            "GET", headers={**client.own_headers, "accept": "text/event-stream", "last-event-id": "e1"}
        )
        assert resumed.status in (503, 400)
        store.fault = None
        for _ in range(3):
            await app.server.publish(ToolsListChanged())
        for _ in range(3):
            event = await stream.next_event()
            assert event.id is not None
            assert event.message["method"] == CHANGED
        assert (await client.call("y")).answer["result"]["content"][0]["text"] == "y"


async def test_a_store_that_is_away_is_logged_at_length_once(caplog: pytest.LogCaptureFixture) -> None:
    store = Away()
    store.fault = raising(ConnectionError("away"))
    client = HandshakeClient(served(event_store=store))
    await client.initialize()
    for _ in range(5):
        await client.call("x")
    flush_logs()
    assert [record.levelno for record in caplog.records].count(logging.ERROR) == 1


class Forgetful(InMemoryEventStore):
    """Forgets every event when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.forgets = False
        self.reads = 0
        self.last = anyio.Event()
        """Set when the answer to a call is kept."""

    async def store_event(self, stream_id: str, message: bytes) -> str:
        event_id = await super().store_event(stream_id, message)
        if b'"result":{"content"' in message:
            self.last.set()
        return event_id

    async def replay_events_after(self, event_id: str) -> Any:
        self.reads += 1
        return None if self.forgets else await super().replay_events_after(event_id)


@pytest.mark.parametrize("forgets", [False, True])
async def test_what_is_sent_while_a_stream_is_taken_up_comes_once(forgets: bool) -> None:
    """Though the store has forgotten by then after which event the client comes back."""
    go = anyio.Event()
    store = Forgetful()

    async def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        await go.wait()
        await ctx.report_progress(1)
        return t.CallToolResult(content=[])

    inner = served(call=call, event_store=store)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def send_slowly(message: Any) -> None:
            if scope.get("method") == "GET" and message["type"] == "http.response.start":
                go.set()
                await store.last.wait()
                store.forgets = forgets
            await send(message)

        await inner(scope, receive, send_slowly)

    client = HandshakeClient(app)
    await client.initialize()
    async with client.post(client.calling("x", token="p")) as broken:
        last = (await broken.next_event()).id
        async with client.get(last_event_id=last) as resumed:
            response = await resumed.response()
    methods = [message.get("method", "answer") for message in response.messages]
    assert methods == ["notifications/progress", "answer"]
    assert [event.id for event in response.events] == ["e2", "e3"]


async def test_a_stream_that_is_forgotten_while_it_is_looked_for_is_not_known() -> None:
    """An empty stream would say that nothing has come."""

    class Full(Forgetful):
        async def replay_events_after(self, event_id: str) -> Any:
            found = await super().replay_events_after(event_id)
            self.forgets = True
            return found

    client = HandshakeClient(served(event_store=Full()))
    await client.initialize()
    first = (await client.call("x")).events[0].id
    response = await client.request(
        "GET", headers={**client.own_headers, "accept": "text/event-stream", "last-event-id": first}
    )
    assert (response.status, response.answer["error"]["code"]) == (400, -32600)


@pytest.mark.fault("S-08")
@pytest.mark.parametrize("again", [1, 3])
@pytest.mark.parametrize("own", [False, True])
async def test_whoever_takes_a_stream_up_does_not_wait_for_whoever_had_it(again: int, own: bool) -> None:
    go = anyio.Event()

    async def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        await go.wait()
        return t.CallToolResult(content=[t.TextContent(text="x" * 1000)])

    app = served(call=call, event_store=InMemoryEventStore())
    client = HandshakeClient(app)
    await client.initialize()
    broken_stream = client.get() if own else client.post(client.calling("x"))
    async with broken_stream as broken:
        last = (await broken.next_event()).id
        broken.stop_reading()
        go.set()
        await app.server.publish(ToolsListChanged())
        for turn in range(again):
            async with client.get(last_event_id=last) as resumed:
                if turn < again - 1:
                    resumed.stop_reading()
                    await anyio.lowlevel.checkpoint()
                    continue
                message = await resumed.next_message()
                assert message.get("method") == CHANGED if own else message["id"] == 1
        broken.read_on()


@pytest.mark.fault("S-33")
async def test_a_noisy_session_does_not_take_the_events_of_others() -> None:
    store = InMemoryEventStore(max_bytes=100_000, max_session_bytes=60_000)
    mine = await store.store_event("quiet/1", b"")
    answer = await store.store_event("quiet/1", b"the answer")
    for number in range(500):
        for noisy in ("a", "b", "c"):
            await store.store_event(f"{noisy}/{number}", b"x" * 10_000)
    assert await store.replay_events_after(mine) == ("quiet/1", [(answer, b"the answer")])


@pytest.mark.fault("S-33")
async def test_a_session_has_a_budget_of_its_own() -> None:
    store = InMemoryEventStore(max_session_bytes=50_000)
    ids = [await store.store_event(f"one/{number}", b"x" * 1000) for number in range(200)]
    kept = [event_id for event_id in ids if await store.replay_events_after(event_id) is not None]
    assert kept == ids[-len(kept) :]
    assert 30 < len(kept) <= 50


async def test_among_many_small_sessions_the_oldest_event_goes() -> None:
    """Those that nobody comes back to any more do not leave others without room."""
    store = InMemoryEventStore(max_bytes=200_000)
    for number in range(2000):
        await store.store_event(f"gone-{number}/1", b"")
        first = await store.store_event(f"here-{number}/1", b"")
        answer = await store.store_event(f"here-{number}/1", b"the answer")
        assert await store.replay_events_after(first) == (f"here-{number}/1", [(answer, b"the answer")])


async def test_events_are_kept_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(event_store_module, "time", SimpleNamespace(monotonic=lambda: now))
    store = InMemoryEventStore(max_age=60)
    old = await store.store_event("a/1", b"old")
    now = 50.0
    young = await store.store_event("a/1", b"young")
    assert await store.replay_events_after(old) == ("a/1", [(young, b"young")])
    now = 70.0
    await store.store_event("b/1", b"")
    assert await store.replay_events_after(old) is None
    assert await store.replay_events_after(young) == ("a/1", [])


async def test_a_full_store_costs_no_more_the_more_sessions_it_has() -> None:
    store = InMemoryEventStore(max_bytes=20_000 * 200)
    for number in range(20_000):
        await store.store_event(f"{number}/1", b"")
    began = time.process_time()
    for number in range(10_000):
        await store.store_event(f"{number}/2", b"x" * 50)
    assert time.process_time() - began < 1  # 30 ms; to look at all sessions each time takes 7 s


# --- buses ----------------------------------------------------------------------------------------------------


class BadBus(InProcessBus):
    """A bus whose `subscribe` raises, or gives nothing, or gives what raises."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def subscribe(self, listener: Callable[[Event], None]) -> Any:
        if self.how == "raises":
            raise ConnectionError("away")
        remove = super().subscribe(listener)
        if self.how == "gives nothing":
            return None

        def end() -> None:
            remove()
            raise ConnectionError("away")

        return end


@pytest.mark.parametrize("how", ["raises", "gives nothing", "raises at the end"])
async def test_a_bus_that_fails_ends_no_session(how: str, caplog: pytest.LogCaptureFixture) -> None:
    app = served(bus=BadBus(how))
    client = HandshakeClient(app)
    assert (await client.initialize()).status == 200
    assert (await client.call("x")).status == 200
    assert (await client.delete()).status == 200
    modern = ModernClient(app)
    async with modern.post(
        modern.message(1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    ) as stream:
        assert (await stream.next_message())["method"] == "notifications/subscriptions/acknowledged"
    assert len(app.sessions) == 0
    flush_logs()
    assert any(record.levelno == logging.ERROR for record in caplog.records)


# --- loops that end -------------------------------------------------------------------------------------------


def run_on_a_new_loop(main: Callable[[], Any], *, closes: bool = True) -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    if closes:
        loop.close()
    return loop


async def hear(app: StreamableHTTP) -> list[str]:
    """What two clients hear of one change that is announced."""
    modern, older = ModernClient(app), HandshakeClient(app)
    await older.initialize()
    asked = {"notifications": {"toolsListChanged": True}}
    async with modern.post(modern.message(1, "subscriptions/listen", asked)) as listening, older.get() as stream:
        await listening.next_message()
        await stream.started()
        app.server.announce(ToolsListChanged())
        return [(await each.next_message())["method"] for each in (listening, stream)]


@pytest.mark.fault("X-22")
@pytest.mark.parametrize("closes", [True, False])
def test_changes_are_heard_of_on_the_next_loop(closes: bool) -> None:
    app = served()
    for _ in range(3):
        heard: list[str] = []

        async def main(heard: list[str] = heard) -> None:
            heard += await hear(app)

        loop = run_on_a_new_loop(main, closes=closes)
        assert heard == [CHANGED] * 2
        app.server.announce(ToolsListChanged())  # between two loops, to nobody
        loop.close()


@pytest.mark.fault("X-22")
def test_no_loop_is_kept_that_has_ended() -> None:
    app = served()

    async def main() -> None:
        await hear(app)

    loop = weakref.ref(run_on_a_new_loop(main))
    app.sessions = SessionTable(10, None)  # they are the clients', and last
    gc.collect()
    assert loop() is None


@pytest.mark.fault("X-22")
async def test_an_app_that_is_gone_is_told_of_nothing() -> None:
    server = Server("s", subscriptions=True, on_list_tools=lambda ctx, params: t.ListToolsResult(tools=[]))
    bus: Any = server._bus  # pyright: ignore[reportPrivateUsage]

    async def use() -> None:
        client = ModernClient(server.streamable_http_app())
        await client.answer(client.message(1, "tools/list"))

    for _ in range(3):
        await use()
    gc.collect()
    assert len(bus._listeners) == 0


@pytest.mark.fault("X-22")
def test_what_waits_to_be_announced_is_bounded() -> None:
    calls: list[Any] = []

    class Stopped:
        def call_threadsafe(self, call: Callable[[], None]) -> None:
            calls.append(call)

    announcer = Announcer(InProcessBus())
    announcer.attach(Stopped())
    for number in range(10 * MAX_WAITING):
        announcer.announce(ResourceUpdated(f"u://{number}"))
    assert len(calls) == 1  # a loop that has stopped is not given more and more to do
    assert len(announcer._waiting) == MAX_WAITING  # pyright: ignore[reportPrivateUsage]


# --- observers ------------------------------------------------------------------------------------------------


class Watcher:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.started: list[tuple[str, Any]] = []
        self.finished: list[tuple[str, Any]] = []
        self.received: list[Any] = []
        self.sent: list[Any] = []

    def message_received(self, data: bytes) -> None:
        self.received.append(json.loads(data))

    def message_sent(self, data: bytes) -> None:
        self.sent.append(json.loads(data))

    def request_started(self, ctx: RequestContext) -> None:
        self.started.append((ctx.method, ctx.request_id))

    def request_finished(self, ctx: RequestContext, answer: bytes | None) -> None:
        self.finished.append((ctx.method, None if answer is None else json.loads(answer)["id"]))


def watched(app: StreamableHTTP) -> Watcher:
    watcher = Watcher()
    app.server.observers.add(watcher)
    return watcher


@pytest.mark.fault("X-25")
@pytest.mark.parametrize("options", [{}, {"stateless_http": True}, {"event_store": InMemoryEventStore()}], ids=OPTIONS)
async def test_observers_see_every_message_over_http(options: dict[str, Any]) -> None:
    async def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        await ctx.report_progress(1)
        return t.CallToolResult(content=[])

    app = served(call=call, **options)
    watcher = watched(app)
    older, modern = HandshakeClient(app), ModernClient(app)
    responses = [
        await older.initialize(),
        await older.call("a", request_id=2, token="p"),
        await older.answer(older.message(3, "no/such")),
        await modern.call("b", request_id=4, meta={"progressToken": "q"}),
        await modern.call("b", request_id=5, headers={"mcp-name": "other"}),
    ]
    wire = [
        message
        for response in responses
        for message in (
            response.messages if response.header("content-type") == "text/event-stream" else [response.json]
        )
    ]
    assert watcher.sent == wire
    assert [message["id"] for message in watcher.received] == [0, 2, 3, 4, 5]
    assert watcher.started == [
        ("initialize", 0),
        ("tools/call", 2),
        ("no/such", 3),
        ("tools/call", 4),
        ("tools/call", 5),
    ]
    assert watcher.finished == watcher.started


@pytest.mark.fault("X-25")
async def test_what_goes_on_the_stream_of_a_get_is_a_message_too() -> None:
    for store in (None, InMemoryEventStore()):
        app = served(event_store=store)
        client = HandshakeClient(app)
        await client.initialize()
        watcher = watched(app)
        async with client.get() as stream:
            await stream.started()
            await app.server.publish(ToolsListChanged())
            assert watcher.sent == [await stream.next_message()]


@pytest.mark.fault("X-25")
@pytest.mark.parametrize("how", ["gone", "cancelled", "ended"])
async def test_a_request_that_nobody_gets_an_answer_to_has_an_end(how: str) -> None:
    begun = anyio.Event()

    async def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        begun.set()
        await anyio.sleep_forever()
        return t.CallToolResult(content=[])

    app = served(call=call)
    watcher = watched(app)
    client: Any = ModernClient(app) if how == "gone" else HandshakeClient(app)
    if how != "gone":
        await client.initialize()
        message = client.calling("x")
    else:
        message = client.message(1, "tools/call", {"name": "x"})
    async with client.post(message) as exchange:
        with anyio.fail_after(5):
            await begun.wait()
        if how == "gone":
            exchange.disconnect()
        elif how == "cancelled":
            await client.notify("notifications/cancelled", {"requestId": 1})
        else:
            await client.delete()
        await exchange.returned()
    assert watcher.started[-1] == ("tools/call", 1)
    assert watcher.finished[-1] == ("tools/call", None)
    assert len(watcher.started) == len(watcher.finished)


@pytest.mark.fault("X-25")
async def test_over_a_connection_as_well() -> None:
    begun = anyio.Event()

    async def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        begun.set()
        await anyio.sleep_forever()
        return t.CallToolResult(content=[])

    server = Server("s", on_call_tool=call)
    watcher = Watcher()
    server.observers.add(watcher)
    async with Client(server) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "x")
        with anyio.fail_after(5):
            await begun.wait()
        tasks.cancel_scope.cancel()
    assert [method for method, _ in watcher.started] == [method for method, _ in watcher.finished]
    assert watcher.finished[-1] == ("tools/call", None)


@pytest.mark.fault("X-25")
async def test_requests_that_are_refused_by_their_head_have_an_end() -> None:
    app = served()
    watcher = watched(app)
    client = HandshakeClient(app)
    client.session_id = "unknown"
    assert (await client.answer(client.message(7, "ping"))).status == 404
    assert (watcher.started, watcher.finished) == ([("ping", 7)], [("ping", 7)])


class Plain:
    """An observer whose hooks are plain functions, which do not know whose they are."""

    def __init__(self, calls: list[str], exc: BaseException) -> None:
        def hook(*what: Any) -> None:
            calls.append("told")
            raise exc

        self.request_started = hook
        self.request_finished = hook


@pytest.mark.fault("X-27")
@pytest.mark.parametrize("exc", [ValueError(), SystemExit(1), GeneratorExit(), asyncio.CancelledError()], ids=repr)
async def test_an_observer_of_plain_functions_is_removed(exc: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    app = served()
    calls: list[str] = []
    app.server.observers.add(Plain(calls, exc))
    watcher = watched(app)
    for _ in range(3):
        assert (await ModernClient(app).call("x")).status == 200
    assert calls == ["told"]
    assert len(watcher.finished) == 3
    flush_logs()
    assert [record.getMessage().startswith("observer ") for record in caplog.records] == [True]


def test_an_observer_is_looked_at_when_it_is_added() -> None:
    class Waiting:
        async def request_started(self, ctx: Any) -> None: ...

    class Number:
        request_started = 5

    for observer in (Waiting(), Number()):
        with pytest.raises(TypeError, match="request_started of an observer must be a plain function"):
            Server("s").observers.add(observer)


# --- verifiers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["raises", "gives a number"])
async def test_a_verifier_that_fails_is_logged_at_length_once(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    class Verifier:
        async def verify_token(self, token: str) -> Any:
            if fault == "raises":
                raise KeyError(token)
            return 5

    auth = AuthSettings(issuer_url="https://a", resource_server_url="https://b/mcp")
    app = served(auth=auth, token_verifier=Verifier())
    for _ in range(5):
        response = await HTTP(app).request(headers={"authorization": "Bearer x\x1b[31m"})
        assert response.status == 500
        assert "x" not in response.json["error"]["message"]
    flush_logs()
    assert [bool(record.exc_text) for record in caplog.records] == [True] + [False] * 4


# --- marks ----------------------------------------------------------------------------------------------------


class Tokens:
    """A token says who its bearer is, as JSON."""

    async def verify_token(self, token: str) -> AccessToken:
        return AccessToken(token=token, **json.loads(token))


MARKED = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
BASE: dict[str, Any] = {"client_id": "c", "subject": "u", "scopes": ["small"], "claims": {"tier": "free"}}


@pytest.mark.fault("S-13")
@pytest.mark.parametrize(
    "other", [{"client_id": "d"}, {"subject": "v"}, {"subject": None}, {"scopes": ["small", "admin"]}, {"claims": {}}]
)
async def test_marks_are_of_one_caller(other: dict[str, Any]) -> None:
    admin = {**BASE, **other}

    def tools(ctx: RequestContext, params: Any) -> t.ListToolsResult:
        mine = {name: getattr(ctx.auth, name) for name in BASE}
        return t.ListToolsResult(tools=[t.Tool(name="x", input_schema=MARKED)] if mine == admin else [])

    server = Server("s", on_list_tools=tools, on_call_tool=ok)
    auth = AuthSettings(issuer_url="https://a", resource_server_url="https://b/mcp", check_resource=False)
    app = server.streamable_http_app(auth=auth, token_verifier=Tokens())

    def client(who: dict[str, Any]) -> ModernClient:
        token = json.dumps(who, separators=(",", ":"))
        return ModernClient(app, headers={"authorization": f"Bearer {token}"})

    for _ in range(2):
        assert (await client(BASE).call("x", {"region": "us"}, headers={"mcp-param-region": "eu"})).status == 200
        assert (await client(admin).call("x", {"region": "us"}, headers={"mcp-param-region": "eu"})).status == 400
        assert (await client(admin).call("x", {"region": "us"}, headers={"mcp-param-region": "us"})).status == 200


@pytest.mark.fault("S-13")
async def test_marks_are_of_what_a_request_declares() -> None:
    lists: list[str] = []

    def tools(ctx: RequestContext, params: Any) -> t.ListToolsResult:
        lists.append("read")
        sees = ctx.client_capabilities.elicitation is not None or "com.example/tenant" in ctx.meta
        return t.ListToolsResult(tools=[t.Tool(name="x", input_schema=MARKED)] if sees else [])

    client = ModernClient(Server("s", on_list_tools=tools, on_call_tool=ok).streamable_http_app())

    async def status(**options: Any) -> int:
        return (await client.call("x", {"region": "us"}, headers={"mcp-param-region": "eu"}, **options)).status

    for turn in range(3):
        assert await status(meta={"progressToken": turn, "traceparent": f"00-{turn}"}) == 200
        assert await status(capabilities={"elicitation": {}}) == 400
        assert await status(meta={"com.example/tenant": "a"}) == 400
    assert len(lists) == 3


@pytest.mark.fault("X-26")
async def test_the_list_is_read_aside() -> None:
    seen: list[str] = []

    async def middleware(ctx: RequestContext, call_next: Any) -> Any:
        seen.append(ctx.method)
        return await call_next(ctx)

    app = served()
    app.server.middleware.append(middleware)
    watcher = watched(app)
    for number in range(2):
        assert (await ModernClient(app).call("x", request_id=number + 1)).status == 200
    assert seen == ["tools/call"] * 2
    assert watcher.started == watcher.finished == [("tools/call", 1), ("tools/call", 2)]


async def test_many_callers_of_one_list_are_each_read_once() -> None:
    tools = [t.Tool(name=f"t{number}", input_schema=MARKED) for number in range(1000)]
    reads = 0

    def list_tools(ctx: RequestContext, params: Any) -> t.Prepared[t.ListToolsResult]:
        nonlocal reads
        reads += 1
        return prepared

    prepared = t.Prepared(t.ListToolsResult(tools=tools))
    app = StreamableHTTP(Server("s", on_list_tools=list_tools, on_call_tool=ok), HTTPOptions())
    client = ModernClient(app)
    for _ in range(2):
        for number in range(600):
            response = await client.call("t7", {"region": "eu"}, headers={"mcp-param-region": "eu"}, meta={"u": number})
            assert response.status == 200
    assert reads == 600
    cache: Any = app.header_parameters
    assert len(cache._lists) == 1


async def test_a_list_that_is_the_same_for_all_is_read_once() -> None:
    """Every page has to say so, and a change is heard of all the same."""
    marked = [t.Tool(name="x", input_schema=MARKED)]
    pages: dict[str | None, Any] = {}
    reads: list[str | None] = []

    def list_tools(ctx: RequestContext, params: t.PaginatedRequestParams) -> Any:
        reads.append(params.cursor)
        return pages[params.cursor]

    app = StreamableHTTP(Server("s", on_list_tools=list_tools, on_call_tool=ok), HTTPOptions())
    client = ModernClient(app)
    cache: Any = app.header_parameters

    async def statuses() -> list[int]:
        """One call each, with a header that is wrong, of five callers."""
        wrong: dict[str, Any] = {"headers": {"mcp-param-region": "eu"}}
        cache.forget(ToolsListChanged())
        reads.clear()
        return [(await client.call("x", {"region": "us"}, meta={"u": user}, **wrong)).status for user in range(5)]

    pages[None] = t.Prepared(t.ListToolsResult(tools=marked), same_for_all=True)
    assert (await statuses(), reads) == ([400] * 5, [None])
    pages[None] = t.Prepared(t.ListToolsResult(tools=[]), same_for_all=True)
    assert (await statuses(), reads) == ([200] * 5, [None])
    pages[None] = t.Prepared(t.ListToolsResult(tools=[], next_cursor="2"), same_for_all=True)
    pages["2"] = t.Prepared(t.ListToolsResult(tools=marked))
    assert (await statuses(), reads) == ([400] * 5, [None, "2"] * 5)
    assert len(cache._callers) == 5


@pytest.mark.parametrize(("callers", "size"), [(3, 10**9), (10**9, 2500)])
async def test_callers_whose_marks_are_kept_are_bounded(
    callers: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_headers, "MAX_CALLERS", callers)
    monkeypatch.setattr(tool_headers, "MAX_HEADER_PARAMETER_BYTES", size)

    def tools(ctx: RequestContext, params: Any) -> t.ListToolsResult:
        mine = str(ctx.meta["u"]) + "x" * 500
        return t.ListToolsResult(tools=[t.Tool(name=name, input_schema=MARKED) for name in ("x", mine)])

    app = StreamableHTTP(Server("s", on_list_tools=tools, on_call_tool=ok), HTTPOptions())
    client = ModernClient(app)
    cache: Any = app.header_parameters
    for number in range(20):
        meta = {"u": number % 7, "long": "y" * 1000}
        assert (await client.call("x", {"region": "us"}, headers={"mcp-param-region": "eu"}, meta=meta)).status == 400
        assert 1 <= len(cache._callers) <= 3
        assert cache._bytes == sum(each.size for each in cache._lists.values())
        assert sum(each.users for each in cache._lists.values()) == len(cache._callers)
        assert all(len(key) <= 256 for key in cache._callers)
    cache.forget(ToolsListChanged())
    assert (len(cache._callers), len(cache._lists), cache._bytes) == (0, 0, 0)


# --- what is said late ----------------------------------------------------------------------------------------


@pytest.mark.fault("X-76")
@pytest.mark.parametrize("store", [None, InMemoryEventStore()], ids=["no store", "store"])
async def test_what_is_sent_once_a_request_is_answered_goes_on_the_stream_of_the_session(store: Any) -> None:
    kept: list[RequestContext] = []

    def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        kept.append(ctx)
        return t.CallToolResult(content=[])

    app = served(call=call, event_store=store)
    client = HandshakeClient(app)
    await client.initialize()
    async with client.get() as stream:
        await stream.started()
        await client.call("x", token="p")
        await kept[0].report_progress(1)
        await kept[0].notify("notifications/progress", {"progressToken": "p", "progress": 2})
        await kept[0].notify("notifications/elicitation/complete", {"elicitationId": "e"})
        message = await stream.next_message()
        assert (message["method"], message["params"]) == ("notifications/elicitation/complete", {"elicitationId": "e"})


async def test_where_nothing_is_left_to_send_it_on_it_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    kept: list[RequestContext] = []

    def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        kept.append(ctx)
        return t.CallToolResult(content=[])

    await ModernClient(served(call=call)).call("x")
    await kept[0].notify("notifications/elicitation/complete", {"elicitationId": "e"})
    flush_logs()
    assert ["notifications/elicitation/complete was not sent" in r.getMessage() for r in caplog.records] == [True]


@pytest.mark.fault("X-77")
@pytest.mark.parametrize("how", ["time", "scope"])
async def test_a_client_hears_at_once_that_a_question_is_withdrawn(how: str) -> None:
    go = anyio.Event()

    async def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        if how == "time":
            with pytest.raises(Exception, match="was not answered within"):
                await ctx.elicit("Who?", {"type": "object", "properties": {}}, timeout=0.01)
        else:
            with anyio.move_on_after(0.01):
                await ctx.elicit("Who?", {"type": "object", "properties": {}})
        await go.wait()
        return t.CallToolResult(content=[])

    client = HandshakeClient(served(call=call))
    await client.initialize({"elicitation": {}})
    async with client.post(client.calling("x")) as exchange:
        asked = await exchange.next_message()
        withdrawn = await exchange.next_message()
        assert (withdrawn["method"], withdrawn["params"]) == ("notifications/cancelled", {"requestId": asked["id"]})
        go.set()
        assert (await exchange.next_message())["id"] == 1


@pytest.mark.fault("X-51")
@pytest.mark.parametrize("options", [{}, {"stateless_http": True}, {"event_store": InMemoryEventStore()}], ids=OPTIONS)
@pytest.mark.parametrize("reads", [True, False])
async def test_a_quiet_call_of_a_handshake_is_kept_alive(options: dict[str, Any], reads: bool) -> None:
    go = anyio.Event()

    async def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        await go.wait()
        return t.CallToolResult(content=[])

    client = HandshakeClient(served(call=call, keep_alive=0.01, **options))
    await client.initialize()
    async with client.post(client.calling("x")) as exchange:
        if not reads:
            exchange.stop_reading()
            await anyio.sleep(0.05)
            go.set()
            exchange.read_on()
        else:
            await exchange.until(lambda exchange: exchange.comments >= 2)
            go.set()
        assert (await exchange.response()).answer["id"] == 1


@pytest.mark.fault("X-24")
async def test_without_sessions_nobody_is_promised_to_hear_of_changes() -> None:
    server = Server(
        "s",
        subscriptions=True,
        on_list_tools=lambda ctx, params: t.ListToolsResult(tools=[]),
        on_list_prompts=lambda ctx, params: t.ListPromptsResult(prompts=[]),
        on_list_resources=lambda ctx, params: t.ListResourcesResult(resources=[]),
    )
    for stateless in (True, False):
        app = server.streamable_http_app(stateless_http=stateless)
        for revision in ("2025-03-26", "2025-06-18", "2025-11-25"):
            client = HandshakeClient(app, revision=revision)
            offered = (await client.initialize()).answer["result"]["capabilities"]
            assert [offered[kind]["listChanged"] for kind in ("tools", "prompts", "resources")] == [not stateless] * 3
            assert offered["resources"]["subscribe"] == (not stateless)
            for method in ("resources/subscribe", "resources/unsubscribe"):
                answer = (await client.answer(client.message(1, method, {"uri": "u://a"}))).answer
                assert answer.get("error", {}).get("code") == (-32601 if stateless else None)
        modern = ModernClient(app)
        offered = (await modern.answer(modern.message(1, "server/discover"))).answer["result"]["capabilities"]
        assert offered["tools"]["listChanged"] is True  # it can listen


# --- lifespans ------------------------------------------------------------------------------------------------


def living(events: list[str]) -> Server[Any]:
    @asynccontextmanager
    async def lifespan(server: Any) -> AsyncGenerator[dict[str, Any], None]:
        events.append("entered")
        yield {}
        await anyio.lowlevel.checkpoint()
        events.append("left")

    return Server("living", lifespan=lifespan, on_call_tool=ok)


@pytest.mark.fault("X-50")
def test_the_lifespan_is_left_with_the_loop_that_nobody_told_of_it(caplog: pytest.LogCaptureFixture) -> None:
    events: list[str] = []
    app = living(events).streamable_http_app()

    async def main() -> None:
        for _ in range(2):
            assert (await ModernClient(app).call("x")).status == 200

    asyncio.run(main())
    assert events == ["entered", "left"]
    flush_logs()
    assert ["lifespan=app.lifespan" in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.fault("X-50")
async def test_a_host_is_given_the_lifespan_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    from tests.http.asgi import living as lives

    events: list[str] = []
    app = living(events).streamable_http_app()
    host = Starlette(routes=[Mount("/api", app)], lifespan=app.lifespan)
    for turn in range(2):
        async with lives(host):
            assert events == ["entered", "left"] * turn + ["entered"]
            client = ModernClient(host)
            assert (await client.answer(client.message(1, "server/discover"), path="/api/mcp")).status == 200
        assert events == ["entered", "left"] * (turn + 1)
    flush_logs()
    assert caplog.records == []


@pytest.mark.fault("X-52")
@pytest.mark.parametrize("resource", ["https://tides.example/api/mcp", "https://tides.example/mcp"])
async def test_what_the_challenge_names_is_served_by_the_host(resource: str) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    auth = AuthSettings(issuer_url="https://login.example", resource_server_url=resource)
    app = Server("s").streamable_http_app(auth=auth, token_verifier=Tokens())
    host = Starlette(routes=[Mount("/.well-known/oauth-protected-resource", app.metadata), Mount("/api", app)])
    client = HTTP(host)
    refused = await client.request(path="/api/mcp")
    challenge = refused.header("www-authenticate") or ""
    named = challenge.partition('resource_metadata="https://tides.example')[2].rstrip('"')
    found = await client.request("GET", named)
    assert (found.status, found.json["resource"]) == (200, resource)
    assert (await client.request("GET", "/.well-known/oauth-protected-resource/other")).status == 404


@pytest.mark.fault("X-52")
async def test_the_metadata_may_be_below_a_prefix_that_a_proxy_takes_off() -> None:
    auth = AuthSettings(
        issuer_url="https://login.example",
        resource_server_url="https://tides.example/api/mcp",
        resource_metadata_url="https://tides.example/api/.well-known/oauth-protected-resource",
    )
    app = Server("s").streamable_http_app(auth=auth, token_verifier=Tokens())
    refused = await HTTP(app).request()
    assert auth.resource_metadata_url is not None
    assert auth.resource_metadata_url in (refused.header("www-authenticate") or "")
    for client, path in (
        (HTTP(app), "/.well-known/oauth-protected-resource"),
        (HTTP(app, root_path="/api"), "/api/.well-known/oauth-protected-resource"),
    ):
        assert (await client.request("GET", path)).json["resource"] == "https://tides.example/api/mcp"


# --- below middleware -----------------------------------------------------------------------------------------


@pytest.mark.fault("X-63")
@pytest.mark.parametrize("era", ["modern", "handshake", "amid the body"])
async def test_a_client_that_goes_away_below_middleware_is_no_fault(era: str) -> None:
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.routing import Mount

    begun = anyio.Event()

    async def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        begun.set()
        await anyio.sleep_forever()
        return t.CallToolResult(content=[])

    class Passing(BaseHTTPMiddleware):
        async def dispatch(self, request: Any, call_next: Any) -> Any:
            return await call_next(request)

    app = served(call=call, cancel_on_disconnect=True)
    host = Starlette(routes=[Mount("/", app)], middleware=[Middleware(Passing)])
    client: Any = ModernClient(host) if era != "handshake" else HandshakeClient(host)
    if era == "handshake":
        await client.initialize()
        message = client.calling("x")
    else:
        message = client.message(1, "tools/call", {"name": "x"})
    options = {"cut_short": True} if era == "amid the body" else {}
    async with client.post(message, **options) as exchange:
        if era != "amid the body":
            with anyio.fail_after(5):
                await begun.wait()
            exchange.disconnect()
        await exchange.returned()
        assert exchange.error is None


@pytest.mark.fault("X-72")
@pytest.mark.parametrize("size", [50_000, 5_000_000])
async def test_a_body_that_is_too_large_is_read_before_it_is_refused(size: int) -> None:
    client = ModernClient(served(max_request_body_size=10_000))
    pieces = [b"x" * 10_000] * (size // 10_000)
    headers = {"content-type": "application/json", "content-length": str(size)}
    async with client.open(headers=headers, body=pieces) as exchange:
        assert (await exchange.response()).status == 413
        assert exchange.pieces_taken == len(pieces)


async def test_of_a_body_that_is_not_worth_it_nothing_is_read() -> None:
    client = ModernClient(served(max_request_body_size=10_000))
    for headers in ({"content-length": "100000000"}, {"content-length": "20000", "expect": "100-continue"}):
        async with client.open(headers={"content-type": "application/json", **headers}, body=[line({})]) as exchange:
            assert (await exchange.response()).status == 413
            assert exchange.pieces_taken == 0

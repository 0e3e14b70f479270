"""What a client of the HTTP server can make it do, keep or say has a bound, and costs little to refuse."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcp_core import RequestContext, Server
from mcp_core import types as t
from mcp_core.errors import LocalProtocolError
from mcp_core.server import MAX_IDENTITY
from mcp_core.subscriptions import MAX_SUBSCRIPTIONS, MAX_URI, ResourceUpdated, ToolsListChanged
from mcp_core.testing import flush_logs
from mcp_core.transports.streamable_http import HTTPOptions, InMemoryEventStore, StreamableHTTP, peers
from mcp_core.transports.streamable_http import legacy_sessions as handshake_module
from mcp_core.transports.streamable_http import sessions as sessions_module
from mcp_core.transports.streamable_http.guards import MAX_HEADER_BYTES, MAX_HEADERS, MAX_MEDIA_TYPES
from mcp_core.transports.streamable_http.media_types import accepted, is_json
from mcp_core.transports.streamable_http.sessions import BACKLOG, HTTPSession, Outbox
from tests.http.asgi import HTTP, HandshakeClient, ModernClient, Response, line


def ok(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(text=params.name)])


def served(**options: Any) -> StreamableHTTP:
    server = Server(
        "bounded",
        subscriptions=True,
        on_call_tool=options.pop("on_call_tool", ok),
        on_list_tools=lambda ctx, params: t.ListToolsResult(tools=[]),
        on_list_resources=lambda ctx, params: t.ListResourcesResult(resources=[]),
    )
    return StreamableHTTP(server, HTTPOptions(**options))


def spent(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


# --- headers --------------------------------------------------------------------------------------------------


@pytest.mark.fault("S-07")
@pytest.mark.parametrize("host", ["127.0.0.1:8000", "evil.example"])
@pytest.mark.parametrize(
    "name", ["accept", "content-type", "origin", "x-any", "mcp-session-id", "mcp-protocol-version", "mcp-param-a"]
)
async def test_long_headers_are_refused_and_not_kept(host: str, name: str) -> None:
    client = HTTP(served(), headers={"host": host})
    accepted.cache_clear()
    is_json.cache_clear()
    await client.request(headers={name: "warm up"})
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(10):
            response = await client.request(headers={name: f"{number}/" + "x," * 500_000})
            assert response.status == (421 if host == "evil.example" else 403 if name == "origin" else 431)
            assert len(response.body) < 1000
        assert tracemalloc.get_traced_memory()[0] - before < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.fault("S-07")
@pytest.mark.parametrize("name", ["accept", "content-type"])
@pytest.mark.parametrize("lines", [1, 4])
async def test_media_types_have_a_length(name: str, lines: int) -> None:
    client = ModernClient(served())
    room = MAX_MEDIA_TYPES - len("application/json" if name == "content-type" else "*/*")
    value = "application/json" if name == "content-type" else "*/*"
    good = await client.call("t", headers={name: value + " " * room})
    assert good.status == 200
    long = {name: value + ";x=" + "y" * room} if lines == 1 else {}
    repeated = [(name, "y" * (MAX_MEDIA_TYPES // lines + 1))] * lines if lines > 1 else []
    refused = await client.call("t", headers=long, repeated=repeated)
    assert (refused.status, refused.json["error"]["code"]) == (431, -32600)
    assert str(MAX_MEDIA_TYPES) in refused.json["error"]["message"]


@pytest.mark.fault("S-07")
async def test_headers_are_bounded_in_number_and_in_all() -> None:
    client = ModernClient(served())
    assert (await client.call("t", repeated=[("x-a", "y")] * (MAX_HEADERS - 10))).status == 200
    many = await client.call("t", repeated=[("x-a", "y")] * MAX_HEADERS)
    assert (many.status, str(MAX_HEADERS) in many.json["error"]["message"]) == (431, True)
    assert (await client.call("t", headers={"x-a": "y" * (MAX_HEADER_BYTES - 1000)})).status == 200
    large = await client.call("t", headers={"x-a": "y" * MAX_HEADER_BYTES})
    assert (large.status, str(MAX_HEADER_BYTES) in large.json["error"]["message"]) == (431, True)


@pytest.mark.fault("S-18")
@pytest.mark.parametrize(
    "origin", ["http://[", "http://[evil]", "http://[::1", "[", "://", "http://", "//127.0.0.1:8000", "null", "\x00"]
)
async def test_no_origin_makes_a_fault_of_ours(origin: str, caplog: pytest.LogCaptureFixture) -> None:
    for app in (served(), served(host="0.0.0.0")):
        assert (await HTTP(app).request(headers={"origin": origin})).status == 403
    flush_logs()
    assert caplog.records == []


@pytest.mark.fault("S-29")
@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mcp-session-id", "other"),
        ("mcp-protocol-version", "2025-06-18"),
        ("last-event-id", "e1"),
        ("content-type", "application/json"),
        ("content-length", "3"),
    ],
)
async def test_what_is_sent_once_is_refused_twice_whatever_it_says(verb: str, name: str, value: str) -> None:
    client = HandshakeClient(served(event_store=InMemoryEventStore()))
    await client.initialize()
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "last-event-id": "e1",
        "content-length": "10",
        **client.own_headers,
    }
    same = headers[name]
    assert isinstance(same, str)
    for twice in (value, same):
        body = line(client.message(1, "ping"))
        response = await client.request(verb, headers=headers, repeated=[(name, twice)], body=body)
        assert (response.status, "once" in response.json["error"]["message"]) == (400, True)
    assert (await client.answer(client.message(1, "ping"))).status == 200


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate, gzip", "GZIP", "x"])
async def test_bodies_that_are_compressed_are_refused(coding: str) -> None:
    client = ModernClient(served())
    response = await client.call("t", headers={"content-encoding": coding})
    assert (response.status, response.header("accept-encoding")) == (415, "identity")
    assert "Content-Encoding" in response.json["error"]["message"]
    assert (await client.call("t", headers={"content-encoding": "identity"})).status == 200


# --- what a message says of itself ----------------------------------------------------------------------------


@pytest.mark.fault("S-15")
@pytest.mark.parametrize("options", [{}, {"stateless_http": True}, {"json_response": True}], ids=str)
@pytest.mark.parametrize(
    "spelt", [rb"\/protocolVersion", rb"/protocol\u0056ersion", rb"\u002fprotocolVersion", rb"\/protocol\u0056ersion"]
)
@pytest.mark.parametrize("version", [None, "2025-11-25"])
async def test_a_message_of_the_stateless_era_is_known_however_it_is_spelt(
    options: dict[str, Any], spelt: bytes, version: str | None
) -> None:
    client = HandshakeClient(served(**options))
    await client.initialize()
    body = line(ModernClient.message(1, "tools/call", {"name": "x"})).replace(b"/protocolVersion", spelt)
    headers = {"mcp-protocol-version": version, "mcp-method": "tools/list"}
    response = await client.answer(body, headers=headers)
    assert (response.status, response.json["error"]["code"]) == (400, -32020)


@pytest.mark.fault("S-15")
async def test_nor_does_it_run_as_part_of_a_batch() -> None:
    client = HandshakeClient(served(), revision="2025-03-26")
    await client.initialize()
    body = b"[" + line(ModernClient.message(1, "tools/call", {"name": "x"})) + b"]"
    response = await client.answer(body)
    assert [answer["error"]["code"] for answer in response.answer] == [-32020]


@pytest.mark.fault("X-84")
@pytest.mark.parametrize(
    ("header", "claimed", "status", "code"),
    [
        ("2026-07-28", "2026-07-28", 202, None),
        ("2026-07-28", None, 202, None),
        ("2027-01-01", None, 400, -32022),
        ("2027-01-01", "2027-01-01", 400, -32022),
        (None, "2027-01-01", 400, -32022),
        ("2026-07-28", "2027-01-01", 400, -32020),
        ("2026-07-28", 5, 400, -32020),
    ],
)
async def test_a_notification_is_of_a_revision_that_is_served(
    header: str | None, claimed: Any, status: int, code: int | None
) -> None:
    meta = {} if claimed is None else {"io.modelcontextprotocol/protocolVersion": claimed}
    message = {"jsonrpc": "2.0", "method": "notifications/any", "params": {"_meta": meta}}
    headers = {"mcp-protocol-version": header, "content-type": "application/json", "mcp-method": "notifications/any"}
    response = await HTTP(served()).request(headers=headers, body=line(message))
    assert response.status == status
    assert code is None or response.json["error"]["code"] == code


@pytest.mark.fault("S-14")
@pytest.mark.parametrize(
    ("given", "header", "agrees"),
    [
        (2**53 + 1, str(2**53), False),
        (2**53 + 1, f"{2**53}.0", False),
        (2**53 + 1, f"{2**53 + 1}.0", True),
        (2**53 + 1, "9007199254740993", True),
        (10**30, "1e30", True),
        (10**30 + 1, "1e30", False),
        (1, "1e400", False),
        (10**400, "1e400", True),
        (1, "1e99999999999999999999", False),
        (1, "0." + "9" * 1000, False),
        (1, "1" * 60_000, False),
        (1.0, "1", True),
        (0.1, "0.1", True),
        (0.1, "0.10000000000000001", True),
        (0.1, "0.2", False),
        (1, "1_0", False),
        (True, "1", False),
        (0, "-0", True),
    ],
)
async def test_numbers_in_headers_are_compared_exactly(given: Any, header: str, agrees: bool) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}}
    server = Server(
        "s",
        on_call_tool=ok,
        on_list_tools=lambda ctx, params: t.ListToolsResult(tools=[t.Tool(name="t", input_schema=schema)]),
    )
    client = ModernClient(server.streamable_http_app())
    begun = time.process_time()
    response = await client.call("t", {"n": given}, headers={"mcp-param-n": header})
    assert (response.status == 200) == agrees
    assert time.process_time() - begun < 0.5


# --- batches --------------------------------------------------------------------------------------------------


@pytest.mark.fault("S-05")
@pytest.mark.parametrize("options", [{}, {"stateless_http": True}], ids=str)
async def test_others_have_a_turn_between_the_messages_of_a_batch(options: dict[str, Any]) -> None:
    client = HandshakeClient(served(**options), revision="2025-03-26")
    await client.initialize()
    turns, responses = 0, list[Response]()
    body = line([client.message(number, "ping") for number in range(100)])

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        responses.append(await client.answer(body))
        tasks.cancel_scope.cancel()
    assert len(responses[0].answer) == 100
    assert turns >= 50


@pytest.mark.fault("S-05")
async def test_the_answers_to_a_batch_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake_module, "MAX_BATCH_ANSWER", 10_000)
    called: list[str] = []

    def large(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        called.append(params.name)
        return t.CallToolResult(content=[t.TextContent(text="x" * 4000)])

    client = HandshakeClient(served(on_call_tool=large), revision="2025-03-26")
    await client.initialize()
    answers = (await client.answer([client.calling("t", request_id=number) for number in range(10)])).answer
    assert [answer["id"] for answer in answers] == list(range(10))
    assert len(called) == 3
    assert ["error" in answer for answer in answers] == [False] * 3 + [True] * 7


# --- sessions -------------------------------------------------------------------------------------------------


@pytest.mark.fault("S-11")
async def test_what_a_session_keeps_of_its_client_is_bounded() -> None:
    app = served()
    client = HandshakeClient(app)
    said: list[tuple[str, Any]] = [
        ("clientInfo", {"name": "n" * 100_000, "version": "1"}),
        ("clientInfo", {"name": "n", "version": "1" * 100_000}),
        ("capabilities", {"experimental": {"x": {"y": "z" * MAX_IDENTITY}}}),
        ("capabilities", {"experimental": {str(number): {} for number in range(500)}}),
    ]
    for member, value in said:
        opening = client.opening()
        opening["params"][member] = value
        response = await client.answer(opening)
        assert (response.status, response.answer["error"]["code"]) == (200, -32602)
        assert member in response.answer["error"]["message"]
        assert len(response.body) < 1000
    assert len(app.sessions) == 0


@pytest.mark.fault("S-11")
async def test_of_a_long_introduction_the_name_is_kept() -> None:
    app = served()
    client = HandshakeClient(app)
    opening = client.opening()
    opening["params"]["clientInfo"] = {
        "name": "painter",
        "version": "7",
        "title": "The Painter",
        "icons": [{"src": "data:image/png;base64," + "x" * 100_000}],
    }
    assert (await client.answer(opening)).status == 200
    (session,) = app.sessions._sessions.values()  # pyright: ignore[reportPrivateUsage]
    assert session.handshake is not None
    info = session.handshake.client_info
    assert (info.name, info.version, info.title, info.icons) == ("painter", "7", "The Painter", None)


@pytest.mark.fault("S-11")
async def test_a_client_subscribes_to_so_many_resources() -> None:
    client = HandshakeClient(served())
    await client.initialize()

    async def code(uri: str) -> int | None:
        answer = (await client.answer(client.message(1, "resources/subscribe", {"uri": uri}))).answer
        return answer.get("error", {}).get("code")  # type: ignore[no-any-return]

    assert await code("u://" + "x" * MAX_URI) == -32602
    for number in range(MAX_SUBSCRIPTIONS):
        assert await code(f"u://{number}") is None
    assert await code("u://more") == -32602
    assert await code("u://0") is None  # the same again is no more
    await client.answer(client.message(1, "resources/unsubscribe", {"uri": "u://1"}))
    assert await code("u://more") is None


@pytest.mark.fault("S-11")
async def test_one_subscription_of_the_stateless_era_names_so_many_resources() -> None:
    client = ModernClient(served())
    asked = {"notifications": {"resourceSubscriptions": [f"u://{n}" for n in range(MAX_SUBSCRIPTIONS + 1)]}}
    response = await client.answer(client.message(1, "subscriptions/listen", asked))
    assert response.answer["error"]["code"] == -32602


@pytest.mark.fault("S-12")
async def test_sessions_that_nobody_came_back_to_make_room() -> None:
    app = served(max_sessions=10)
    honest = HandshakeClient(app)
    await honest.initialize()
    assert (await honest.answer(honest.message(1, "ping"))).status == 200
    for _ in range(50):
        assert (await HandshakeClient(app).initialize()).status == 200
    assert len(app.sessions) == 10
    assert (await honest.answer(honest.message(1, "ping"))).status == 200


@pytest.mark.fault("S-12")
async def test_sessions_that_rest_make_room_where_all_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("mcp_core.transports.streamable_http.sessions.time.monotonic", lambda: now)
    app = served(max_sessions=2)
    clients = [HandshakeClient(app) for _ in range(3)]
    for client in clients[:2]:
        await client.initialize()
        await client.answer(client.message(1, "ping"))
    assert (await clients[2].initialize()).status == 503
    now += sessions_module.UNUSED_FOR
    await clients[1].answer(clients[1].message(1, "ping"))
    assert (await clients[2].initialize()).status == 200
    assert [(await client.answer(client.message(1, "ping"))).status for client in clients] == [404, 200, 200]


@pytest.mark.fault("S-12")
async def test_one_caller_has_a_part_of_the_sessions_at_most() -> None:
    sessions = sessions_module.SessionTable(40, None)

    def add(subject: Any) -> HTTPSession:
        session = HTTPSession(sessions.new_id())
        session.principal = subject
        assert sessions.add(session)
        assert sessions.find(session.session_id, subject) is session
        return session

    others = [add(("b", str(number), None)) for number in range(30)]
    greedy = [add(("a", "a", None)) for _ in range(100)]
    assert len(sessions) == 40
    assert all(sessions.find(each.session_id, each.principal) is each for each in others)
    assert sum(sessions.find(each.session_id, ("a", "a", None)) is not None for each in greedy) == 10
    assert all(sessions.find(each.session_id, ("b", "0", None)) is None for each in greedy)


@pytest.mark.fault("X-29")
async def test_a_session_that_was_idle_is_gone_when_that_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("mcp_core.transports.streamable_http.sessions.time.monotonic", lambda: now)
    app = served(session_idle_timeout=60.0)
    first, second = HandshakeClient(app), HandshakeClient(app)
    await first.initialize()
    await second.initialize()
    now += 61
    assert (await first.answer(first.message(1, "ping"))).status == 404
    assert len(app.sessions) == 0
    assert listeners_of(app) == 1  # the app's own


def listeners_of(app: StreamableHTTP) -> int:
    bus: Any = app.server._bus  # pyright: ignore[reportPrivateUsage]
    return len(bus._listeners)


def test_a_new_session_costs_the_same_however_many_there_are() -> None:
    def add(number: int) -> float:
        sessions = sessions_module.SessionTable(50_000, 1800.0)
        for _ in range(number):
            sessions.add(HTTPSession(sessions.new_id()))
        for session in sessions._sessions.values():  # pyright: ignore[reportPrivateUsage]
            session.__enter__()
        more = [HTTPSession(sessions.new_id()) for _ in range(1000)]
        return spent(lambda: [sessions.add(session) for session in more])

    assert add(20_000) < 20 * add(1000) + 0.05


async def test_a_session_has_so_many_requests_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake_module, "MAX_IN_USE", 3)
    gate = anyio.Event()

    async def wait(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        await gate.wait()
        return t.CallToolResult(content=[])

    app = served(on_call_tool=wait)
    client, other = HandshakeClient(app), HandshakeClient(app)
    await client.initialize()
    await other.initialize()
    async with client.get() as stream, client.post(client.calling("a")) as a, client.post(client.calling("b")) as b:
        await stream.started()
        session = app.sessions._sessions[str(client.session_id)]  # pyright: ignore[reportPrivateUsage]
        with anyio.fail_after(5):
            while session.users < 3:
                await anyio.lowlevel.checkpoint()
        refused = await client.answer(client.message(9, "ping"))
        assert (refused.status, refused.json["id"], refused.header("retry-after")) == (429, 9, "10")
        assert (await client.notify("notifications/initialized")).status == 202  # and answers to requests of ours
        assert (await other.answer(other.message(9, "ping"))).status == 200
        gate.set()
        assert [(await each.response()).status for each in (a, b)] == [200, 200]


async def test_a_client_leaves_so_many_questions_unanswered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "MAX_ASKED", 3)
    refused: list[str] = []

    async def ask(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        async def once() -> None:
            try:
                await ctx.ping()
            except LocalProtocolError as exc:
                refused.append(str(exc))
                tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(once)
        return t.CallToolResult(content=[])

    client = HandshakeClient(served(on_call_tool=ask))
    await client.initialize()
    await client.call("x")
    assert refused == ["ping cannot be sent: the client has left 3 requests unanswered"]


# --- what waits for a client that does not read ---------------------------------------------------------------


def test_what_waits_is_bounded_in_number_and_in_bytes() -> None:
    outbox = Outbox()
    for number in range(10_000):
        outbox.put(b"%d" % number)
    assert (len(outbox), outbox.take()) == (BACKLOG, b"%d" % (10_000 - BACKLOG))
    large = Outbox()
    for number in range(1000):
        large.put(b"%d" % number * 100_000)
    assert 1 <= len(large) <= 11
    alone = Outbox()
    alone.put(b"x" * 5_000_000)
    assert len(alone) == 1


@pytest.mark.fault("S-10")
@pytest.mark.parametrize("with_store", [False, True])
async def test_a_client_that_does_not_read_makes_nothing_grow(with_store: bool) -> None:
    app = served(event_store=InMemoryEventStore(max_bytes=100_000) if with_store else None)
    client = HandshakeClient(app)
    await client.initialize()
    uri = "u://" + "x" * 1000
    await client.answer(client.message(1, "resources/subscribe", {"uri": uri}))
    (session,) = app.sessions._sessions.values()  # pyright: ignore[reportPrivateUsage]
    async with client.get() as stream:
        await stream.started()
        stream.stop_reading()
        for number in range(3000):
            await app.server.publish(ResourceUpdated(uri) if number % 2 else ToolsListChanged())
            if number % 100 == 0:
                await anyio.lowlevel.checkpoint()
        waiting: Any = session._outbox if with_store else session.get_stream._waiting  # type: ignore[union-attr]
        assert len(waiting) <= BACKLOG
        stream.read_on()


@pytest.mark.fault("S-10")
async def test_a_client_that_reads_again_is_given_what_was_kept() -> None:
    app = served(event_store=InMemoryEventStore())
    client = HandshakeClient(app)
    await client.initialize()
    async with client.get() as stream:
        first = await stream.next_event()
        stream.stop_reading()
        for _ in range(200):
            await app.server.publish(ToolsListChanged())
            await anyio.lowlevel.checkpoint()
        async with client.get(last_event_id=first.id) as again:
            for _ in range(200):
                assert (await again.next_message())["method"] == "notifications/tools/list_changed"
            stream.read_on()

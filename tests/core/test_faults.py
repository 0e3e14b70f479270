"""Whatever goes wrong at whichever moment, every wait ends: sessions, channels, the client and streams over HTTP.

Each scenario runs again and again, with one fault at the first operation, then at the second,
and so on until none fires; or cancelled at its first await, its second, and so on.
"""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Literal

import anyio
import pytest

from mcp_core import Client, MCPError, RequestContext, Server
from mcp_core import types as t
from mcp_core.backend import Backend, current_backend, open_backend
from mcp_core.client import Mode
from mcp_core.connection import Connection
from mcp_core.errors import ConnectionClosed, MCPCoreError
from mcp_core.testing import Fault, FaultyApp, Inbox, Schedule, cancelled_at, check_channel, faulty_pair, modern_meta
from mcp_core.transports.lines import HIGH_WATER, LineChannel
from mcp_core.transports.streamable_http import InMemoryEventStore
from tests.http.asgi import HandshakeClient, ModernClient
from tests.pace import paced

PATIENCE: Final = 60.0
Over = Literal["memory", "descriptors"]

over_both = pytest.mark.parametrize("over", ["memory", "descriptors"])
both_modes = pytest.mark.parametrize("mode", ["auto", "legacy"])
fatal = pytest.mark.parametrize("fault", ["fail", "close"])


async def call_tool(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
    """Tools that take several awaits."""
    if params.name == "wait":
        await anyio.sleep_forever()
    if params.name == "roots" and ctx.protocol_version != "2026-07-28":
        await ctx.list_roots()
    if params.name == "refuse":
        raise MCPError(1, "no")
    await ctx.report_progress(1, 2)
    await anyio.lowlevel.checkpoint()
    await ctx.log("info", "x" * 100)
    return t.CallToolResult(content=[t.TextContent(text=params.name)])


def list_tools(ctx: RequestContext, params: t.PaginatedRequestParams) -> t.ListToolsResult:
    return t.ListToolsResult(tools=[t.Tool(name="x", input_schema={"type": "object"})])


def make_server() -> Server:
    return Server("faulty", subscriptions=True, on_call_tool=call_tool, on_list_tools=list_tools)


class Line:
    """A client and a server with a faulty channel between them."""

    def __init__(self, client: Client, connection: Connection, schedule: Schedule) -> None:
        self.client = client
        self.connection = connection
        self.schedule = schedule


@asynccontextmanager
async def connected(server: Server, schedule: Schedule, over: Over, **options: Any) -> AsyncGenerator[Line, None]:
    """A client that is not open yet; at the end nothing may be left of what the server was asked."""
    async with server.running() as state, open_backend() as backend:  # noqa: SIM117
        async with faulty_pair(backend, schedule, over) as (ours, theirs):
            with server.connect(backend, theirs, state) as connection:
                theirs.start(connection)
                client = Client(server, probe_timeout_seconds=PATIENCE, **options)

                @asynccontextmanager
                async def opened(_: Backend) -> AsyncGenerator[Any, None]:
                    def start(connect: Callable[[Any], Connection]) -> Connection:
                        made = connect(ours)
                        ours.start(made)
                        return made

                    try:
                        yield start
                    finally:
                        ours.close()

                client._open = opened  # pyright: ignore[reportPrivateUsage]
                yield Line(client, connection, schedule)
                with anyio.fail_after(PATIENCE):
                    await connection.drain(0)


async def ends(call: Callable[[], Awaitable[object]]) -> Exception | None:
    """Make a call, which must end: with a result, or with an exception of the library's."""
    with anyio.fail_after(PATIENCE):
        try:
            await call()
        except MCPCoreError as exc:
            return exc
    return None


def ignore(*_: object) -> None:
    """A callback."""


async def talk(client: Client) -> None:
    """One of everything that a client asks, some of it at once."""
    async with client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ends, client.list_tools)
            tasks.start_soon(ends, lambda: client.call_tool("x", progress_callback=ignore))
            tasks.start_soon(ends, lambda: client.call_tool("roots"))
        await ends(lambda: client.call_tool("refuse"))
        await ends(lambda: client.call_tool("wait", read_timeout_seconds=0.001))


def roots(ctx: Any) -> t.ListRootsResult:
    return t.ListRootsResult(roots=[])


# --- one fault, at every point ------------------------------------------------------------------


@fatal
@both_modes
@over_both
async def test_a_channel_may_end_at_any_point(over: Over, mode: Mode, fault: Fault, anyio_backend_name: str) -> None:
    server, point = make_server(), 0
    while True:
        schedule = Schedule({point: fault})
        async with connected(server, schedule, over, mode=mode, list_roots_callback=roots) as line:
            await ends(lambda line=line: talk(line.client))  # type: ignore[misc]
        if not schedule.fired:
            break
        point += 1
    assert point > (8 if over == "memory" else 3)


@both_modes
@over_both
async def test_a_call_after_the_end_says_so(over: Over, mode: Mode) -> None:
    """From whichever message on the connection is gone, the client says that it is, or goes on."""
    server, closed = make_server(), 0
    for point in range(4, 10):
        schedule = Schedule({point: "close"})
        failures: list[Exception | None] = []

        async def calls(client: Client, failures: list[Exception | None] = failures) -> None:
            async with client:
                for _ in range(6):
                    failures += [await ends(lambda: client.call_tool("x"))]

        async with connected(server, schedule, over, mode=mode) as line:
            await ends(lambda line=line, calls=calls: calls(line.client))  # type: ignore[misc]
        assert all(failure is None or isinstance(failure, ConnectionClosed) for failure in failures)
        closed += any(failures)
    assert closed


@pytest.mark.parametrize("fault", ["delay", "split", "stall"])
@both_modes
@over_both
async def test_what_is_only_late_arrives(over: Over, mode: Mode, fault: Fault) -> None:
    """With a delay at every other point, everything is answered as if there were none."""
    server = make_server()
    schedule = Schedule.random(1, 0.5, (fault,))
    async with connected(server, schedule, over, mode=mode, list_roots_callback=roots) as line:  # noqa: SIM117
        async with line.client as client:
            got: list[str] = []

            async def call(number: int) -> None:
                result = await client.call_tool("x" if number % 2 else "late")
                assert isinstance(result.content[0], t.TextContent)
                got.append(result.content[0].text)

            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as tasks:
                    for number in range(20):
                        tasks.start_soon(call, number)
    assert sorted(got) == ["late"] * 10 + ["x"] * 10
    assert schedule.fired


@both_modes
async def test_a_lost_message_is_a_timeout(mode: Mode) -> None:
    """Whichever message is lost: the call that waits for it ends in time, and others go on."""
    server, point, late = make_server(), 4, 0
    while True:
        schedule = Schedule({point: "drop"})
        async with connected(server, schedule, "memory", mode=mode) as line, line.client as client:
            call = partial(client.call_tool, "x", read_timeout_seconds=paced(0.05))
            for _ in range(3):
                failure = await ends(call)
                late += failure is not None
            if schedule.fired:
                assert await ends(client.list_tools) is None
        if not schedule.fired:
            break
        point += 1
    assert late


@over_both
@pytest.mark.parametrize("seed", range(5))
async def test_a_channel_with_harmless_faults_keeps_the_contract(seed: int, over: Over) -> None:
    @asynccontextmanager
    async def opened(backend: Backend, left: Any, right: Any) -> AsyncGenerator[tuple[Any, Any], None]:
        async with faulty_pair(backend, Schedule.random(seed, 0.02), over) as (a, b):
            a.start(left)
            b.start(right)
            yield a, b

    await check_channel(opened)


# --- cancellation, at every await ---------------------------------------------------------------


@both_modes
@over_both
@pytest.mark.fault("S-04")
async def test_a_call_may_be_cancelled_at_any_await(over: Over, mode: Mode) -> None:
    server = make_server()
    async with connected(server, Schedule(), over, mode=mode, list_roots_callback=roots) as line:  # noqa: SIM117
        async with line.client as client:
            calls: list[Callable[[], Any]] = [client.list_tools, lambda: client.call_tool("roots")]
            for call in calls:
                point = 0
                while await cancelled_at(point, call):
                    with anyio.fail_after(PATIENCE):
                        result = await client.call_tool("x")
                    assert not result.is_error
                    point += 1
                assert point


@both_modes
@over_both
async def test_opening_may_be_cancelled_at_any_await(over: Over, mode: Mode) -> None:
    server, point = make_server(), 0
    while True:
        async with connected(server, Schedule(), over, mode=mode) as line:

            async def used(client: Client = line.client) -> None:
                async with client:
                    await client.call_tool("x")

            with anyio.fail_after(PATIENCE):
                reached = await cancelled_at(point, used)
        if not reached:
            break
        point += 1
    assert point > 1


# --- lines --------------------------------------------------------------------------------------


@asynccontextmanager
async def full_channel(waiting: int = 6) -> AsyncGenerator[tuple[LineChannel, socket.socket, Backend], None]:
    """A channel that is congested, and the end that could read from it."""
    near, far = socket.socketpair()
    with near, far:
        async with open_backend() as backend:
            channel = LineChannel(backend, near.fileno(), near.fileno(), back_pressure=True)
            backend.spawn(channel.run(Inbox()))
            for _ in range(waiting):
                channel.send(b"x" * HIGH_WATER)
            assert channel.congested
            yield channel, far, backend
            channel.release()


async def read_all(end: socket.socket) -> None:
    """Read until nothing more comes for now, so that there is room."""
    end.setblocking(False)
    while True:
        with anyio.move_on_after(0.05):
            await anyio.wait_readable(end)
            if not end.recv(1 << 20):
                return
            continue
        return


@pytest.mark.fault("S-04")
@pytest.mark.requirement("R-BASE-05")
@pytest.mark.parametrize("cancelled", range(32))
async def test_no_wake_up_is_lost_with_those_who_are_cancelled(cancelled: int) -> None:
    """Whichever of five who wait for room are cancelled as it comes, the others go on."""
    went_on: list[int] = []
    async with full_channel() as (channel, far, _):

        async def waits(number: int) -> None:
            with scopes[number]:
                await channel.drained()
                went_on.append(number)

        scopes = [anyio.CancelScope() for _ in range(5)]
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                for number in range(5):
                    tasks.start_soon(waits, number)
                await anyio.wait_all_tasks_blocked()
                tasks.start_soon(read_all, far)
                while channel.congested:
                    await anyio.lowlevel.checkpoint()
                for number in range(5):
                    if cancelled >> number & 1:
                        scopes[number].cancel()
    assert {number for number in range(5) if not cancelled >> number & 1} <= set(went_on)


@pytest.mark.parametrize("how", ["reader closes", "release", "stop and release"])
async def test_everybody_goes_on_when_there_is_nobody_to_write_to(how: str) -> None:
    async with full_channel() as (channel, far, _):
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(channel.drained)
                tasks.start_soon(channel.flush, PATIENCE)
                await anyio.wait_all_tasks_blocked()
                if how == "reader closes":
                    far.close()
                else:
                    if how == "stop and release":
                        channel.stop()
                    channel.release()
        assert not channel.congested


@pytest.mark.parametrize("waiters", [2, 3])
async def test_several_may_wait_until_all_is_written(waiters: int) -> None:
    told: list[int] = []
    async with full_channel() as (channel, far, _):

        async def waits(number: int) -> None:
            await channel.flush(PATIENCE)
            told.append(number)

        with anyio.move_on_after(paced(1)):
            async with anyio.create_task_group() as tasks:
                for number in range(waiters):
                    tasks.start_soon(waits, number)
                await anyio.wait_all_tasks_blocked()
                tasks.start_soon(read_all, far)
    assert sorted(told) == list(range(waiters)), "one was not told that all is written"


async def test_flush_may_be_cancelled_at_any_await() -> None:
    point = 0
    while True:
        reached = False
        async with full_channel() as (channel, far, _):  # noqa: SIM117
            async with anyio.create_task_group() as tasks:
                if point:
                    tasks.start_soon(read_all, far)
                with anyio.fail_after(PATIENCE):
                    reached = await cancelled_at(point, lambda channel=channel: channel.flush(PATIENCE))  # type: ignore[misc]
                    if not point:
                        tasks.start_soon(read_all, far)
                    await channel.flush(PATIENCE)
        if not reached:
            break
        point += 1
    assert point


@over_both
@fatal
async def test_draining_ends_at_any_point(over: Over, fault: Fault) -> None:
    """A connection that is drained while handlers wait for room, for their client, or for ever."""
    server, point = make_server(), 0
    request: dict[str, Any] = {"jsonrpc": "2.0", "method": "tools/call"}
    while True:
        schedule = Schedule({point: fault})
        async with server.running() as state, open_backend() as backend:  # noqa: SIM117
            async with faulty_pair(backend, schedule, over) as (ours, theirs):
                with server.connect(backend, theirs, state) as connection:
                    theirs.start(connection)
                    ours.start(Inbox())
                    for number, name in enumerate(["x", "roots", "wait", "refuse", "x"]):
                        params = {"name": name, "arguments": {}, "_meta": modern_meta()}
                        ours.send(t_encode({**request, "id": number, "params": params}))
                    for _ in range(5):
                        await anyio.lowlevel.checkpoint()
                    with anyio.fail_after(PATIENCE):
                        async with anyio.create_task_group() as tasks:
                            tasks.start_soon(connection.drain, 0.001)
                            tasks.start_soon(connection.drain, 0.001)
        if not schedule.fired:
            break
        point += 1
    assert point > (4 if over == "memory" else 1)


def t_encode(message: dict[str, Any]) -> bytes:
    from mcp_core import codec

    return codec.encode(message)


# --- HTTP ---------------------------------------------------------------------------------------


APPS: Final[dict[str, dict[str, Any]]] = {"plain": {}, "stateless": {"stateless_http": True}, "stored": {}}


def app_of(kind: str, server: Server) -> Any:
    more: dict[str, Any] = {"event_store": InMemoryEventStore()} if kind == "stored" else {}
    return server.streamable_http_app(keep_alive=0.005, **APPS[kind], **more)


@pytest.mark.parametrize("fault", ["fail", "close", "drop", "delay"])
@pytest.mark.parametrize("kind", APPS)
@pytest.mark.parametrize("era", ["modern", "handshake"])
async def test_a_request_ends_whatever_becomes_of_its_client(era: str, kind: str, fault: Fault) -> None:
    """At each of the app's messages the network fails, or the client reads no more; the next request is answered."""
    app = app_of(kind, make_server())
    point = 0
    while True:
        honest: Any = ModernClient(app) if era == "modern" else HandshakeClient(app)
        schedule = Schedule({point: fault})
        faulty: Any = (
            ModernClient(FaultyApp(app, schedule)) if era == "modern" else HandshakeClient(FaultyApp(app, schedule))
        )
        if era == "handshake" and kind != "stateless":
            await honest.initialize()
            faulty.session_id = honest.session_id
        message = faulty.message(1, "tools/call", {"name": "x", "arguments": {}, "_meta": {"progressToken": 1}})
        if era == "modern":
            message["params"]["_meta"] = {**modern_meta(), "progressToken": 1}
        async with faulty.post(message) as exchange:
            with anyio.move_on_after(0.02):  # a client that reads nothing goes some time
                await exchange.returned()
        response = await honest.call("x", request_id=2)
        assert response.status == 200
        if not schedule.fired:
            break
        point += 1
    assert point >= 2


@pytest.mark.fault("S-08")
@pytest.mark.fault("S-09")
@pytest.mark.requirement("R-HTTPL-08")
@pytest.mark.parametrize("fault", ["fail", "close", "drop"])
async def test_a_stream_that_breaks_off_at_any_point_is_taken_up(fault: Fault) -> None:
    """Whatever the old connection does, be it that it stays and takes nothing, the new one gets the answer."""
    app = app_of("stored", make_server())
    point = taken_up = 0
    while True:
        honest = HandshakeClient(app)
        await honest.initialize()
        schedule = Schedule({point: fault})
        faulty = HandshakeClient(FaultyApp(app, schedule))
        faulty.session_id = honest.session_id
        async with faulty.post(faulty.calling("x", token=1)) as exchange:
            # The app says all that it will say to this client; one whose client takes nothing waits.
            with anyio.move_on_after(0.02):
                await exchange.returned()
            events = exchange.so_far.body.decode().split("\n") if exchange.has_started else []
            ids = [line[4:] for line in events if line.startswith("id: ")]
            has_answer = any('"id":1,' in line for line in events)
            if ids and schedule.fired and not has_answer:
                async with honest.get(last_event_id=ids[-1]) as again:
                    while (event := await again.next_message()).get("id") != 1:
                        assert "method" in event
                    assert event["result"]["content"][0]["text"] == "x"
                taken_up += 1
        if not schedule.fired:
            break
        point += 1
    assert taken_up


# --- the tool itself ----------------------------------------------------------------------------


@pytest.mark.parametrize("points", range(4))
async def test_cancellation_comes_at_the_await_that_is_named(points: int) -> None:
    passed: list[int] = []

    async def work() -> None:
        for number in range(3):
            await anyio.lowlevel.checkpoint()
            passed.append(number)

    reached = await cancelled_at(points, work)
    assert reached == (len(passed) < 3)
    assert len(passed) <= points


async def test_descriptors_are_not_left_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    async with open_backend() as backend, faulty_pair(backend, Schedule(), "descriptors") as (left, right):
        assert current_backend() is not None
        inbox = Inbox()
        left.start(Inbox())
        right.start(inbox)
        left.send(b"1")
        await inbox.until(lambda inbox: inbox.messages == [b"1"])
    assert len(os.listdir("/proc/self/fd")) == before

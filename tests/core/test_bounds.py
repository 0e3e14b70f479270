"""What waits for somebody is bounded: notifications, changes, requests, subscriptions."""

# pyright: reportPrivateUsage=false
# What waits is to be counted, and is nobody's business otherwise.

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

from mcp_core import Client, RequestContext, Server, connection, listening
from mcp_core.backend import open_backend
from mcp_core.connection import MAX_NOTIFICATION_BYTES, MAX_NOTIFICATIONS, Connection
from mcp_core.subscriptions import (
    MAX_SUBSCRIPTIONS,
    MAX_URI,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp_core.testing import Inbox, RawPeer, flush_logs
from mcp_core.transports import lines, memory
from mcp_core.transports.lines import LineChannel
from mcp_core.transports.memory import MemoryChannel, memory_pair
from mcp_core.types import CallToolResult, ListResourcesResult, ListToolsResult
from tests.core.peers import code_of, legacy, line, modern, notification

SECONDS: Final = 15.0


async def until(holds: Callable[[], Any]) -> None:
    """Wait until this holds, turn by turn of the loop."""
    with anyio.fail_after(SECONDS):
        while not holds():  # noqa: ASYNC110 - of states that tell nobody
            await anyio.sleep(0.001)


class Ends:
    """A server's connection, and the client's end of it in bytes."""

    def __init__(self, served: Connection, inbox: Inbox, channel: MemoryChannel | LineChannel) -> None:
        self.served = served
        self.inbox = inbox
        self.send = channel.send
        self._channel = channel

    def stop_reading(self) -> None:
        self.inbox.is_full = True
        if isinstance(self._channel, LineChannel):
            self._channel._hold()

    def read_on(self) -> None:
        self.inbox.is_full = False
        self._channel.resume()

    def changes(self, start: int) -> list[tuple[str, str | None]]:
        """The changes that came since, in order."""
        told = [json.loads(m) for m in self.inbox.messages[start:]]
        changes = [m for m in told if m.get("method", "").endswith(("list_changed", "updated"))]
        return [(m["method"], m.get("params", {}).get("uri")) for m in changes]

    def notice(self, n: int, **params: Any) -> None:
        self.send(line(notification("notifications/x", {"n": n, **params})))

    async def answered(self, request_id: Any) -> Any:
        found: list[Any] = []

        def is_there() -> bool:
            found[:] = [m for m in map(json.loads, self.inbox.messages) if m.get("id") == request_id]
            return bool(found)

        await until(is_there)
        return found[0]


@asynccontextmanager
async def in_memory(server: Server) -> AsyncGenerator[Ends, None]:
    async with server.running() as state, open_backend() as backend:
        ours, theirs = memory_pair(backend)
        inbox = Inbox()
        with server.connect(backend, theirs, state) as served:
            theirs.start(served)
            ours.start(inbox)
            yield Ends(served, inbox, ours)
            ours.close()


@asynccontextmanager
async def over_lines(server: Server) -> AsyncGenerator[Ends, None]:
    (server_in, client_out), (client_in, server_out) = os.pipe(), os.pipe()
    async with server.running() as state, open_backend() as backend, anyio.create_task_group() as tasks:
        theirs = LineChannel(backend, server_in, server_out, back_pressure=True)
        ours = LineChannel(backend, client_in, client_out)
        inbox = Inbox()
        with server.connect(backend, theirs, state) as served:
            tasks.start_soon(theirs.run, served)
            tasks.start_soon(ours.run, inbox)
            yield Ends(served, inbox, ours)
            theirs.stop()
            ours.stop()
    for fd in (server_in, client_out, client_in, server_out):
        os.close(fd)


TRANSPORTS = [pytest.param(in_memory, id="memory"), pytest.param(over_lines, id="lines")]


def shake(**capabilities: Any) -> bytes:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "c", "version": "1"},
    }
    return line(legacy(0, "initialize", params))


class Slow:
    """A server whose handler of a notification waits to be let on."""

    def __init__(self) -> None:
        self.gate = anyio.Event()
        self.seen: list[int] = []
        self.server = Server("s")
        self.server.add_notification_handler("notifications/x", dict[str, Any], self.handle)

    async def handle(self, ctx: RequestContext, params: dict[str, Any]) -> None:
        await self.gate.wait()
        self.seen.append(params["n"])


@pytest.mark.fault("S-34")
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(("count", "size"), [(5000, 10), (200, 100_000)], ids=["many", "large"])
async def test_reading_stops_while_notifications_wait_and_goes_on(transport: Any, count: int, size: int) -> None:
    slow = Slow()
    async with transport(slow.server) as ends:
        for n in range(count):
            ends.notice(n, pad="y" * size)
        ends.send(line(modern("last", "server/discover")))
        await until(lambda: ends.served.is_full)
        await anyio.sleep(0.05)
        assert len(ends.served._notices) <= MAX_NOTIFICATIONS
        assert ends.served._notification_bytes <= MAX_NOTIFICATION_BYTES + size + 200
        assert not ends.inbox.messages
        slow.gate.set()
        assert "result" in await ends.answered("last")
        await until(lambda: len(slow.seen) == count)
        assert slow.seen == list(range(count))
        await until(lambda: not ends.served.is_full)
        assert (ends.served._notification_bytes, len(ends.served._notices)) == (0, 0)


@pytest.mark.fault("S-34")
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("how", ["itself", "a child task", "a worker thread", "wait_for"])
async def test_a_handler_that_asks_the_client_is_answered_while_full(
    transport: Any, how: str, anyio_backend_name: str
) -> None:
    asked: list[int] = []

    async def handle(ctx: RequestContext, params: dict[str, Any]) -> None:
        async def ask() -> None:
            asked.append(len((await ctx.list_roots()).roots))

        if params["n"]:
            return
        if how == "itself":
            await ask()
        elif how == "a worker thread":
            await anyio.to_thread.run_sync(lambda: anyio.from_thread.run(ask))
        elif how == "wait_for" and anyio_backend_name == "asyncio":
            await asyncio.wait_for(ask(), SECONDS)
        else:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)

    server = Server("s")
    server.add_notification_handler("notifications/x", dict[str, Any], handle)
    async with transport(server) as ends:
        ends.send(shake(roots={}))
        await ends.answered(0)
        for n in range(MAX_NOTIFICATIONS + 50):
            ends.notice(n)
        await until(lambda: b"roots/list" in ends.inbox.messages[-1])
        request_id = json.loads(ends.inbox.messages[-1])["id"]
        ends.send(line({"jsonrpc": "2.0", "id": request_id, "result": {"roots": [{"uri": "file:///a"}]}}))
        await until(lambda: asked == [1])
        await until(lambda: not ends.served._notices)


@pytest.mark.fault("S-34")
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_handler_that_never_ends_does_not_stop_the_reading_for_ever(
    transport: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "NOTIFICATION_TIMEOUT", 0.01)
    slow = Slow()
    async with transport(slow.server) as ends:
        for n in range(4 * MAX_NOTIFICATIONS + 100):
            ends.notice(n)
        ends.send(line(modern("last", "server/discover")))
        assert "result" in await ends.answered("last")
        assert len(ends.served._notices) == 4 * MAX_NOTIFICATIONS
    flush_logs()
    assert "was dropped: too many wait" in caplog.text


def client_connection(client: Client) -> Connection:
    found = client._connection
    assert found is not None
    return found


# --- changes --------------------------------------------------------------------------------------


def changing() -> Server:
    return Server(
        "s",
        subscriptions=True,
        on_list_tools=lambda ctx, params: ListToolsResult(tools=[]),
        on_list_resources=lambda ctx, params: ListResourcesResult(resources=[]),
    )


@pytest.mark.fault("S-10")
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_changes_that_a_client_does_not_read_wait_once_each(transport: Any) -> None:
    server = changing()
    async with transport(server) as ends:
        ends.send(shake())
        await ends.answered(0)
        for uri in ("a://1", "a://2"):
            ends.send(line(legacy(uri, "resources/subscribe", {"uri": uri})))
            await ends.answered(uri)
        ends.stop_reading()
        filler = line(notification("notifications/message", {"level": "info", "data": "y" * memory.HIGH_WATER}))
        while not ends.served._channel.congested:
            ends.served.notify(filler)
            await anyio.lowlevel.checkpoint()
        for n in range(10_000):
            await server.publish(ToolsListChanged())
            await server.publish(ResourceUpdated("a://1"))
            await server.publish(ResourceUpdated("a://2"))
            await server.publish(ResourcesListChanged())
            await server.publish(ResourceUpdated(f"a://not-asked-for/{n}"))
        assert len(ends.served._changes) == 4
        before = len(ends.inbox.messages)
        ends.read_on()
        await until(lambda: not ends.served._changes)
        await until(lambda: len(ends.changes(before)) == 4)
        assert ends.changes(before) == [
            ("notifications/tools/list_changed", None),
            ("notifications/resources/updated", "a://1"),
            ("notifications/resources/updated", "a://2"),
            ("notifications/resources/list_changed", None),
        ]
        await server.publish(ToolsListChanged())
        await until(lambda: len(ends.changes(before)) == 5)


# --- requests -------------------------------------------------------------------------------------


@pytest.mark.fault("S-05")
@pytest.mark.parametrize("in_batch", [False, True])
async def test_requests_in_progress_have_so_many_bytes_together(
    monkeypatch: pytest.MonkeyPatch, in_batch: bool
) -> None:
    monkeypatch.setattr(connection, "MAX_IN_FLIGHT_BYTES", 100_000)
    gate = anyio.Event()

    async def call(ctx: RequestContext, params: Any) -> CallToolResult:
        await gate.wait()
        return CallToolResult(content=[])

    def request(n: int) -> dict[str, Any]:
        return legacy(n, "tools/call", {"name": "x", "arguments": {"a": "y" * 40_000}})

    async with RawPeer.of(Server("s", on_call_tool=call)) as peer:
        await peer.initialize("2025-03-26")
        if in_batch:
            peer.send([request(n) for n in range(3)])
            gate.set()
            answers = sorted(await peer.receive_batch(), key=lambda answer: int(answer["id"]))
        else:
            for n in range(3):
                peer.send(request(n))
            refused = await peer.receive_next()
            gate.set()
            answers = [await peer.receive_next(), await peer.receive_next(), refused]
        assert ["result" in answer for answer in answers] == [True, True, False]
        assert code_of(answers[2]) == -32603
        assert "bytes" in answers[2]["error"]["message"]
        # When they are answered, there is room again.
        assert "result" in await peer.answer(request(9))


async def test_requests_in_progress_are_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_IN_FLIGHT", 3)

    async def call(ctx: RequestContext, params: Any) -> CallToolResult:
        await anyio.sleep_forever()
        raise AssertionError

    async with RawPeer.of(Server("s", on_call_tool=call)) as peer:
        for n in range(4):
            peer.send(modern(n, "tools/call", {"name": "x"}))
        answer = await peer.receive_next()
        assert (answer["id"], code_of(answer)) == (3, -32603)
        peer.send(notification("notifications/cancelled", {"requestId": 0}))
        answer = await peer.answer(modern(5, "server/discover"))
        assert answer["id"] == 5


# --- subscriptions --------------------------------------------------------------------------------


@pytest.mark.fault("S-11")
async def test_a_client_subscribes_to_so_many_resources() -> None:
    async with RawPeer.of(changing()) as peer:
        await peer.initialize()
        for n in range(MAX_SUBSCRIPTIONS):
            assert "result" in await peer.call(n, "resources/subscribe", {"uri": f"a://{n}"})
        assert "result" in await peer.call("again", "resources/subscribe", {"uri": "a://0"})
        answer = await peer.call("one more", "resources/subscribe", {"uri": "a://more"})
        assert answer["error"] == {
            "code": -32602,
            "message": "a client may subscribe to 1000 resources at a time; unsubscribe first",
        }
        assert "result" in await peer.call("less", "resources/unsubscribe", {"uri": "a://0"})
        assert "result" in await peer.call("one more", "resources/subscribe", {"uri": "a://more"})


@pytest.mark.fault("S-11")
async def test_the_uri_of_a_subscription_has_so_many_characters() -> None:
    longest = "a://" + "x" * (MAX_URI - 4)
    async with RawPeer.of(changing()) as peer:
        await peer.initialize()
        assert "result" in await peer.call(1, "resources/subscribe", {"uri": longest})
        answer = await peer.call(2, "resources/subscribe", {"uri": longest + "x"})
        assert code_of(answer) == -32602


@pytest.mark.fault("S-11")
@pytest.mark.parametrize(
    ("uris", "fits"),
    [
        ([f"a://{n}" for n in range(MAX_SUBSCRIPTIONS)], True),
        ([f"a://{n}" for n in range(MAX_SUBSCRIPTIONS + 1)], False),
        (["a://" + "x" * (MAX_URI - 4)], True),
        (["a://" + "x" * (MAX_URI - 3)], False),
    ],
    ids=range(4),
)
async def test_a_listener_asks_for_so_many_resources(uris: list[str], fits: bool) -> None:
    async with RawPeer.of(changing()) as peer:
        answer = await peer.modern(1, "subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
        if fits:
            assert answer["method"] == "notifications/subscriptions/acknowledged"
        else:
            assert code_of(answer) == -32602


async def test_a_subscription_that_is_not_read_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "BACKLOG", 8)
    server = changing()
    async with RawPeer.of(server) as peer:
        await peer.modern(1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        for _ in range(20):  # more than may wait, in one turn of the loop
            await server.publish(ToolsListChanged())
        messages = [await peer.receive_next() for _ in range(8)]
        assert {m.get("method") for m in messages} <= {"notifications/tools/list_changed"}
        with anyio.fail_after(SECONDS):
            while "result" not in (answer := await peer.receive_next()):
                pass
        assert answer["id"] == 1


# --- room on a channel ----------------------------------------------------------------------------


@asynccontextmanager
async def congested(transport: str) -> AsyncGenerator[tuple[Any, Callable[[], None], Callable[[], None]], None]:
    """A channel that waits for its peer; a call that lets the peer read, and one that ends the channel."""
    async with open_backend() as backend:
        if transport == "memory":
            ours, theirs = memory_pair(backend)
            inbox = Inbox()
            inbox.is_full = True
            ours.start(inbox)
            theirs.send(b"y" * (memory.HIGH_WATER + 1))

            def read() -> None:
                inbox.is_full = False
                ours.resume()

            yield theirs, read, theirs.close
            return
        read_fd, write_fd = os.pipe()
        channel = LineChannel(backend, read_fd, write_fd)
        channel.send(b"y" * (2 * lines.HIGH_WATER), last=True)

        def read_all() -> None:
            os.set_blocking(read_fd, False)
            try:
                while os.read(read_fd, 1 << 20):
                    pass
            except BlockingIOError:
                channel._backend.call_soon(lambda: read_all() if channel._waiting else None)

        try:
            yield channel, read_all, channel._discard_output
        finally:
            channel.release()
            os.close(read_fd)
            os.close(write_fd)


@pytest.mark.fault("S-04")
@pytest.mark.parametrize("transport", ["memory", "lines"])
@pytest.mark.parametrize("end", ["read", "close"])
@pytest.mark.parametrize("cancelled", [(), (0,), (1,), (0, 1, 2), (4,), (1, 2, 3, 4), (0, 1, 2, 3, 4)])
@pytest.mark.parametrize("when", ["before", "as it is woken", "one turn later"])
async def test_no_wake_up_is_lost(transport: str, end: str, cancelled: tuple[int, ...], when: str) -> None:
    through: set[int] = set()
    scopes = [anyio.CancelScope() for _ in range(5)]

    async def wait(channel: Any, n: int) -> None:
        with scopes[n]:
            await channel.drained()
            through.add(n)

    async with congested(transport) as (channel, read, close):
        assert channel.congested
        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                for n in range(5):
                    tasks.start_soon(wait, channel, n)
                    await anyio.sleep(0.001)
                if when == "before":
                    for n in cancelled:
                        scopes[n].cancel()
                (read if end == "read" else close)()
                if when == "one turn later":
                    await anyio.lowlevel.checkpoint()
                for n in cancelled:
                    scopes[n].cancel()
        assert through >= set(range(5)) - set(cancelled)
        waiters: Any = channel._other._waiters if transport == "memory" else channel._drain_waiters
        assert not waiters


@pytest.mark.fault("S-04")
@pytest.mark.parametrize("transport", ["memory", "lines"])
async def test_who_waits_for_room_and_is_cancelled_leaves_nothing(transport: str) -> None:
    async with congested(transport) as (channel, _, close):
        for _ in range(100):
            with anyio.move_on_after(0):
                await channel.drained()
        waiters: Any = channel._other._waiters if transport == "memory" else channel._drain_waiters
        assert len(waiters) <= 1
        close()

"""What tests of servers and transports need, shipped.

- `Client(server)` (from `mcp_core`) is the typed peer; `RawPeer` is one that sends any
  bytes and sees every message.
- `WireRecorder` is an observer that keeps what went over the wire.
- `check_channel` runs the contract between a transport and a connection.
- `faulty_pair` connects two channels with the faults of a `Schedule` between them, `FaultyApp`
  does the same to an ASGI app, and `cancelled_at` cancels a coroutine at a chosen await: with one
  fault at the k-th point, for k = 0, 1, 2, ... until none fires, a test goes through every
  moment at which something can go wrong.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self, cast

import anyio

from mcp_core import queue_logger
from mcp_core.backend import Backend, open_backend
from mcp_core.channel import Channel, Receiver
from mcp_core.codec import JSONObject
from mcp_core.faults import Fault, FaultyApp, Schedule, StartedChannel, cancelled_at, faulty_pair
from mcp_core.request_meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from mcp_core.revisions import V2025_11_25, V2026_07_28
from mcp_core.server import Server
from mcp_core.transports.memory import memory_pair

__all__ = [
    "Fault",
    "FaultyApp",
    "Inbox",
    "RawPeer",
    "Schedule",
    "StartedChannel",
    "WireRecorder",
    "cancelled_at",
    "check_channel",
    "faulty_pair",
    "flush_logs",
    "modern_meta",
]


def modern_meta(capabilities: JSONObject | None = None, **extra: Any) -> JSONObject:
    """Return the `_meta` of a 2026-07-28 request."""
    return {PROTOCOL_VERSION: V2026_07_28, CLIENT_CAPABILITIES: capabilities or {}, **extra}


def flush_logs(timeout: float = 60.0) -> None:
    """Wait until the library's log records so far have reached the loggers.

    Raises:
        TimeoutError: A log handler is stuck.
    """
    if not queue_logger.flush(timeout):
        raise TimeoutError("the log records were not handed over in time")


class WireRecorder:
    """Keeps each message as `> ...` (received by the server) or `< ...` (sent by it).

    Add it with `server.observers.add(recorder)`.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    def message_received(self, data: bytes) -> None:
        """Keep an inbound message."""
        self.lines.append("> " + data.decode("utf-8", "backslashreplace"))

    def message_sent(self, data: bytes) -> None:
        """Keep an outbound message."""
        self.lines.append("< " + data.decode())


class Inbox:
    """A `Receiver` that keeps what it gets, to be waited for."""

    is_full = False

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.refused: list[bytes] = []
        self.failed: list[tuple[int | str, Exception]] = []
        self.has_ended: bool = False
        self._news = anyio.Event()

    def receive(self, message: bytes) -> None:
        """Keep a message."""
        self.messages.append(message)
        self._news.set()

    def refuse(self, head: bytes, limit: int) -> None:
        """Keep the head of a message that was too large."""
        self.refused.append(head)
        self._news.set()

    def fail(self, request_id: int | str, error: Exception) -> None:
        """Keep what became of a request that nothing answers."""
        self.failed.append((request_id, error))
        self._news.set()

    def ended(self) -> None:
        """Keep in mind that no more will come."""
        self.has_ended = True
        self._news.set()

    async def until(self, ready: Callable[[Self], bool], seconds: float = 60.0) -> None:
        """Wait until this holds. Raises `TimeoutError` after so many seconds."""
        with anyio.fail_after(seconds):
            while not ready(self):
                self._news = anyio.Event()
                await self._news.wait()


class RawPeer(Inbox):
    """A client of bytes: sends anything, sees every message of the server.

    Use it as `async with RawPeer.of(server) as peer`.
    """

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel
        self._read = 0

    @classmethod
    @asynccontextmanager
    async def of(cls, server: Server[Any]) -> AsyncGenerator[Self, None]:
        """A peer connected to the server, in memory."""
        async with server.running() as state, open_backend() as backend:
            ours, theirs = memory_pair(backend)
            peer = cls(ours)
            with server.connect(backend, theirs, state) as connection:
                theirs.start(connection)
                ours.start(peer)
                undo = server.on_lifespan_failure(ours.close)
                yield peer
                undo()
                ours.close()

    def send(self, message: Any) -> None:
        """Send bytes as they are, anything else as JSON."""
        self._channel.send(message if isinstance(message, bytes) else json.dumps(message).encode())

    async def receive_next(self, seconds: float = 60.0) -> JSONObject:
        """Return the next message, decoded. Raises `TimeoutError` when none comes."""
        await self.until(lambda inbox: len(inbox.messages) > self._read, seconds)
        self._read += 1
        return cast("JSONObject", json.loads(self.messages[self._read - 1]))

    async def receive_batch(self, seconds: float = 60.0) -> list[JSONObject]:
        """Return the next message, which is an array of them (2025-03-26), decoded. Raises as `receive_next`."""
        batch: object = await self.receive_next(seconds)
        return cast("list[JSONObject]", batch)

    async def answer_batch(self, messages: list[JSONObject]) -> list[JSONObject]:
        """Send an array of messages, and return the array that comes next."""
        self.send(messages)
        return await self.receive_batch()

    async def answer(self, message: Any) -> JSONObject:
        """Send a message, and give the next one that comes."""
        self.send(message)
        return await self.receive_next()

    async def call(self, request_id: Any, method: str, params: Any = None) -> JSONObject:
        """Make a request in the era of its params, and give the next message that comes."""
        request = {"jsonrpc": "2.0", "id": request_id, "method": method}
        return await self.answer(request if params is None else {**request, "params": params})

    async def modern(self, request_id: Any, method: str, params: JSONObject | None = None, **extra: Any) -> JSONObject:
        """Make a 2026-07-28 request, and give the next message that comes."""
        return await self.call(request_id, method, {**(params or {}), "_meta": modern_meta(**extra)})

    async def initialize(self, revision: str = V2025_11_25, capabilities: JSONObject | None = None) -> JSONObject:
        """Shake hands, and give the result."""
        params = {
            "protocolVersion": revision,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        answer = await self.call("init", "initialize", params)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return cast("JSONObject", answer["result"])


OpenChannels = Callable[[Backend, Receiver, Receiver], AbstractAsyncContextManager[tuple[Channel, Channel]]]
"""Opens two connected channels that deliver to these receivers: what the first sends, the second gets."""


async def check_channel(open_channels: OpenChannels) -> None:
    """Hold a transport to what a connection relies on.

    Messages arrive whole, in order, both ways at once, whatever is in them; the end is
    called once; sending after it does nothing.

    Raises:
        AssertionError, TimeoutError: The transport does not.
    """
    for check in (_carries_anything, _keeps_order, _carries_much, _tells_the_end):
        left, right = Inbox(), Inbox()
        async with open_backend() as backend, open_channels(backend, left, right) as (a, b):
            await check(a, b, left, right)
        await left.until(lambda inbox: inbox.has_ended)
        await right.until(lambda inbox: inbox.has_ended)


async def _carries_anything(a: Channel, b: Channel, left: Inbox, right: Inbox) -> None:
    texts = ["é \u2028 \u2029 \u0085", '"\\n\\u0000"', "{}", "x" * 70_000]
    for text in texts:
        a.send(json.dumps(text, ensure_ascii=False).encode())
    await right.until(lambda inbox: len(inbox.messages) == len(texts))
    _same([json.loads(m) for m in right.messages], texts)


async def _keeps_order(a: Channel, b: Channel, left: Inbox, right: Inbox) -> None:
    numbers = [b"%d" % n for n in range(2000)]
    for number in numbers:
        a.send(number)
        b.send(number)
    await right.until(lambda inbox: len(inbox.messages) == len(numbers))
    await left.until(lambda inbox: len(inbox.messages) == len(numbers))
    _same(right.messages, numbers)
    _same(left.messages, numbers)


async def _carries_much(a: Channel, b: Channel, left: Inbox, right: Inbox) -> None:
    message = b'"' + b"y" * 5_000_000 + b'"'
    a.send(message)
    b.send(message)
    await right.until(lambda inbox: inbox.messages == [message])
    await left.until(lambda inbox: inbox.messages == [message])


async def _tells_the_end(a: Channel, b: Channel, left: Inbox, right: Inbox) -> None:
    a.send(b"1")
    await right.until(lambda inbox: inbox.messages == [b"1"])
    _same([left.has_ended, right.has_ended], [False, False])


def _same(got: object, wanted: object) -> None:
    if got != wanted:
        raise AssertionError(f"got {str(got)[:200]}, wanted {str(wanted)[:200]}")

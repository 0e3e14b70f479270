"""The answer to one POST: JSON, or an event stream once something comes before the result.

Knows streams and event stores; nothing of what the messages say.
Spec: basic/transports/streamable-http, "Receiving Messages"; 2025-11-25/basic/transports,
"Resumability and Redelivery".
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

import anyio

from mcp_core.transports.streamable_http.event_store import EventStore
from mcp_core.transports.streamable_http.exchange import Exchange, event
from mcp_core.transports.streamable_http.heads import Header

__all__ = ["KEEP_ALIVE", "Answer", "Stored"]

KEEP_ALIVE: Final = b": keep-alive\n\n"


class Stored:
    """One stream of a session: what is sent on it is kept too, and whoever takes it up gets the rest.

    One reader at a time. What is kept and what is written go by one lock, so that nobody
    who takes the stream up misses, repeats or reorders anything, however slow store and
    reader are.
    """

    def __init__(self, store: EventStore, stream_id: str, *, primes: bool) -> None:
        self._store = store
        self.stream_id = stream_id
        self.primes = primes
        self._lock = anyio.Lock()
        self._reader: Exchange | None = None
        self._released = anyio.Event()
        self._has_ended = False

    async def put(self, message: bytes) -> None:
        """Keep a message (empty: a priming event), and send it to whoever reads."""
        async with self._lock:
            await self._put(message)

    async def _put(self, message: bytes) -> None:
        event_id = await self._store.store_event(self.stream_id, message)
        if self._reader is not None:
            await self._reader.write(event(message, event_id))

    async def open(self, reader: Exchange) -> None:
        """Give the stream to a reader from here on, with an event to come back with where one is known."""
        async with self._lock:
            await self._give(reader)
            if self.primes:
                await self._put(b"")

    async def take_up(self, reader: Exchange, last_event_id: str) -> None:
        """Give it to a reader from after this event on."""
        async with self._lock:
            known = await self._store.replay_events_after(last_event_id)
            for event_id, message in [] if known is None else known[1]:
                await reader.write(event(message, event_id))
            if self._has_ended:
                await reader.end_stream()
            else:
                await self._give(reader)

    async def _give(self, reader: Exchange) -> None:
        before, self._reader = self._reader, reader
        self._released.set()
        self._released = anyio.Event()
        if before is not None:
            await before.end_stream()  # a message must not go out twice

    async def let_go(self, reader: Exchange, data: bytes = b"") -> None:
        """End the response of this reader, if it still has the stream."""
        async with self._lock:
            if self._reader is reader:
                self._reader = None
                self._released.set()
                await reader.end_stream(data)

    async def held(self) -> None:
        """Wait until the reader of this moment has the stream no more."""
        await self._released.wait()

    async def end(self, message: bytes = b"") -> None:
        """Put the last message, if there is one, and end the stream for good."""
        async with self._lock:
            if self._has_ended:
                return
            self._has_ended = True
            if message:
                await self._put(message)
            reader, self._reader = self._reader, None
            self._released.set()
            if reader is not None:
                await reader.end_stream()


class Answer:
    """What a client gets for one request."""

    __slots__ = ("_accepts", "_exchange", "_lock", "_stored", "_streams", "_waiting", "closed", "headers")

    def __init__(
        self,
        exchange: Exchange,
        *,
        json_only: bool = False,
        stored: Stored | None = None,
    ) -> None:
        self._exchange = exchange
        self._accepts = exchange.head.accepts
        self.headers: tuple[Header, ...] = ()
        self._streams = self._accepts.stream and not json_only
        self._stored = stored if self._streams else None
        self._waiting: list[bytes] = []
        self._lock: anyio.Lock | None = None
        self.closed = False

    @property
    def can_stream(self) -> bool:
        """Whether anything can be sent before the result."""
        return self._streams

    def put(self, message: bytes) -> None:
        """Take a message that comes before the result; dropped where none can be sent."""
        if self._streams:
            self._waiting.append(message)

    async def flush(self) -> None:
        """Send what was put. Whoever comes while another sends waits its turn."""
        if not self._waiting and (self._lock is None or not self._lock.locked()):
            return
        if self._lock is None:
            self._lock = anyio.Lock()
        async with self._lock:
            while self._waiting:
                message = self._waiting.pop(0)
                await self.prime()
                if self._stored is not None:
                    await self._stored.put(message)
                elif not self.closed:
                    await self._exchange.write(event(message))

    async def prime(self) -> None:
        """Open the stream, if it is not open, with an event to come back to where that is possible."""
        if self._exchange.started:
            return
        await self._exchange.open_stream(self.headers)
        if self._stored is not None:
            await self._stored.open(self._exchange)

    async def keep_alive(self) -> None:
        """Write a comment, if the stream is open."""
        if self._exchange.started and not self.closed:
            await self._exchange.write(KEEP_ALIVE)

    async def close_early(self, retry: float) -> None:
        """End the HTTP response; the rest is kept for whoever comes back for it."""
        if self._stored is None or not self._stored.primes or self.closed:
            return
        await self.flush()
        await self.prime()
        self.closed = True
        await self._stored.let_go(self._exchange, b"retry: %d\n\n" % int(retry * 1000))

    def result(self, message: bytes, status: int = 200) -> Awaitable[None]:
        """Send the result, or the error, and end."""
        unsaid = not self._exchange.started and not self._waiting
        if unsaid and (status != 200 or (self._accepts.json and self._stored is None)):
            return self._exchange.reply(status, message, self.headers)
        return self._last(message)

    async def _last(self, message: bytes) -> None:
        await self.flush()
        await self.prime()
        self.closed = True
        if self._stored is not None:
            await self._stored.end(message)
        else:
            await self._exchange.end_stream(event(message))

    async def nothing(self) -> None:
        """End without a result: the request was cancelled."""
        if not self._exchange.started:
            await self._exchange.reply(202, b"", self.headers)
        self.closed = True
        if self._stored is not None:
            await self._stored.end()
        else:
            await self._exchange.end_stream()

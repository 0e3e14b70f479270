"""The answer to one POST: JSON, or an event stream once something comes before the result.

Knows streams and event stores; nothing of what the messages say.
Spec: basic/transports/streamable-http, "Receiving Messages"; 2025-11-25/basic/transports,
"Resumability and Redelivery".
"""

from __future__ import annotations

from typing import Final

from mcp_core.transports.streamable_http.event_store import EventStore
from mcp_core.transports.streamable_http.exchange import Exchange, Header, event
from mcp_core.transports.streamable_http.guards import Accepted

__all__ = ["KEEP_ALIVE", "Answer", "Stored"]

KEEP_ALIVE: Final = b": keep-alive\n\n"


class Stored:
    """One stream of a session: what is sent on it is kept too, and whoever takes it up gets the rest."""

    def __init__(self, store: EventStore, stream_id: str) -> None:
        self._store = store
        self.stream_id = stream_id
        self.sink: Exchange | None = None
        self.ended = False

    async def put(self, message: bytes, *, retry: float | None = None) -> None:
        """Keep a message (empty: a priming event), and send it to whoever reads."""
        event_id = await self._store.store_event(self.stream_id, message)
        if self.sink is not None:
            await self.sink.write(event(message, event_id, retry))


class Answer:
    """What a client gets for one request."""

    def __init__(
        self,
        exchange: Exchange,
        accepts: Accepted,
        *,
        headers: tuple[Header, ...] = (),
        json_only: bool = False,
        stored: Stored | None = None,
    ) -> None:
        self._exchange = exchange
        self._accepts = accepts
        self._headers = headers
        self._streams = accepts.stream and not json_only
        self._stored = stored if self._streams else None
        self._waiting: list[bytes] = []
        self._flushing = False
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
        """Send what was put."""
        if self._flushing:
            return  # whoever flushes takes it along
        self._flushing = True
        try:
            while self._waiting:
                message = self._waiting.pop(0)
                await self.prime()
                if self._stored is not None:
                    await self._stored.put(message)
                elif not self.closed:
                    await self._exchange.write(event(message))
        finally:
            self._flushing = False

    async def prime(self) -> None:
        """Open the stream, if it is not open, with an event to come back to where that is possible."""
        if self._exchange.started:
            return
        await self._exchange.open_stream(self._headers)
        if self._stored is not None:
            self._stored.sink = self._exchange
            await self._stored.put(b"")

    async def keep_alive(self) -> None:
        """Write a comment, if the stream is open."""
        if self._exchange.started and not self.closed:
            await self._exchange.write(KEEP_ALIVE)

    async def close_early(self, retry: float) -> None:
        """End the HTTP response; the rest is kept for whoever comes back for it."""
        if self._stored is None or self.closed:
            return
        await self.flush()
        await self.prime()
        self.closed = True
        self._stored.sink = None
        await self._exchange.end_stream(b"retry: %d\n\n" % int(retry * 1000))

    async def result(self, message: bytes, status: int = 200) -> None:
        """Send the result, or the error, and end."""
        if not self._exchange.started and not self._waiting and self._stored is None and self._accepts.json:
            await self._exchange.reply(status, message, self._headers)
            return
        await self.flush()
        await self.prime()
        if self._stored is not None:
            await self._stored.put(message)
            self._stored.ended = True
            if self._stored.sink is not None:
                sink, self._stored.sink = self._stored.sink, None
                await sink.end_stream()
        elif not self.closed:
            await self._exchange.end_stream(event(message))
        self.closed = True

    async def nothing(self) -> None:
        """End without a result: the request was cancelled."""
        if not self._exchange.started:
            await self._exchange.reply(202, b"", self._headers)
        elif not self.closed:
            self.closed = True
            await self._exchange.end_stream()

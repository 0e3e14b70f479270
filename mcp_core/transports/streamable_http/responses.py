"""The response to one POST: JSON, or an SSE stream once something comes before the result.

Knows streams; nothing of what the messages say.
Spec: basic/transports/streamable-http, "Receiving Messages"; 2025-11-25/basic/transports,
"Resumability and Redelivery".
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

import anyio

from mcp_core.backend import spawn_detached
from mcp_core.queue_logger import QueueLogger
from mcp_core.transports.streamable_http.exchange import Exchange, event
from mcp_core.transports.streamable_http.parsed_headers import Header
from mcp_core.transports.streamable_http.resumable import ResumableStream

__all__ = ["KEEP_ALIVE", "HTTPResponse"]

# Theory of operation
#
# The status of an HTTP response cannot be taken back, and an SSE stream cannot become JSON: so nothing is sent until
# it is known which of the two the response is.
#
#     put(message)      before the result: kept in `_waiting`
#     flush()           the sender waits for room: the stream is opened, `_waiting` goes out
#     result(message)   nothing sent or waiting: one JSON body, with its own status
#                       else: the rest of `_waiting`, then the result as the last event, with status 200
#     nothing()         cancelled: 202 without a body, or the end of the stream
#
# With an event store the stream is a `ResumableStream`, which stores each event before it writes it, and outlives this
# response: `close_early` ends the HTTP response and leaves the rest of the events to a client that comes back.
#
# Invariants. `_lock` is held while anything is written, so that a keep-alive comment never stands inside an event; it
# is made by the first one who may have to share. `closed` is set before the last write begins: what a handler still
# sends then is dropped, as MCP demands (nothing after the response).

KEEP_ALIVE: Final = b": keep-alive\n\n"

_log = QueueLogger(__name__)


class HTTPResponse:
    """What a client gets for one request."""

    __slots__ = (
        "_accepts",
        "_exchange",
        "_is_commenting",
        "_lock",
        "_stored",
        "_streams",
        "_waiting",
        "closed",
        "headers",
    )

    def __init__(
        self,
        exchange: Exchange,
        *,
        json_only: bool = False,
        stored: ResumableStream | None = None,
    ) -> None:
        self._exchange = exchange
        self._accepts = exchange.parsed_headers.accepts
        self.headers: tuple[Header, ...] = ()  # of the HTTP response, added to before it starts (a challenge)
        # Whether the response may become an SSE stream; else what comes before the result is dropped.
        self._streams = self._accepts.stream and not json_only
        # Stores events and writes them in its own order; then nothing is written here.
        self._stored = stored if self._streams else None
        # Messages before the result, not yet written: `flush` and the result take them along.
        self._waiting: list[bytes] = []
        self._lock: anyio.Lock | None = None  # orders writers (handler, keep-alive); made when a second one comes
        self._is_commenting = False  # at most one keep-alive comment is being written
        self.closed: bool = False  # the response is on its way, or the client reads the rest elsewhere

    @property
    def can_stream(self) -> bool:
        """Whether anything can be sent before the result."""
        return self._streams

    def put(self, message: bytes) -> None:
        """Take a message that comes before the result; dropped where none can be sent."""
        if self._streams and (self._stored is not None or not self.closed):
            self._waiting.append(message)
            self._exchange.observe(message)

    async def flush(self) -> None:
        """Send what was put. Concurrent callers wait for their turn."""
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

    def keep_alive(self) -> None:
        """Show that the request is worked on: open the stream, and write a comment.

        In a task of its own. The one that reckons the time is cancelled when the result is there, and
        cancelled amid the head of the response it would leave a stream without one.
        """
        if self._streams and not self.closed and not self._is_commenting:
            self._is_commenting = True
            spawn_detached(self._comment)

    async def _comment(self) -> None:
        if self._lock is None:
            self._lock = anyio.Lock()
        try:
            async with self._lock:
                if not self.closed:
                    await self.prime()
                    await self._exchange.write(KEEP_ALIVE)
        except Exception as exc:
            _log.debug("a comment could not be sent: %s", type(exc).__name__)
        finally:
            self._is_commenting = False

    async def close_early(self, retry: float) -> None:
        """End the HTTP response; the rest is stored for a client that resumes the stream."""
        if self._stored is None or not self._stored.primes or self.closed:
            return
        await self.flush()
        await self.prime()
        self.closed = True
        has_it = self._stored.detach(self._exchange)
        await self._exchange.end_stream(b"retry: %d\n\n" % int(retry * 1000) if has_it else b"")

    def result(self, message: bytes, status: int = 200) -> Awaitable[None]:
        """Send the result, or the error, and end."""
        unsaid = not self._exchange.started and not self._waiting
        if unsaid and (status != 200 or (self._accepts.json and self._stored is None)):
            self.closed = True
            return self._exchange.reply(status, message, self.headers)
        return self._last(message)

    async def _last(self, message: bytes) -> None:
        self._exchange.observe(message)
        await self.flush()
        await self.prime()
        self.closed = True
        if self._stored is not None:
            await self._stored.end(message)
            await self._exchange.end_stream()
        else:
            await self._exchange.end_stream(event(message))

    async def nothing(self) -> None:
        """End without a result: the request was cancelled."""
        self.closed = True
        if self._lock is not None:
            async with self._lock:  # a write in progress comes to its end first
                pass
        if not self._exchange.started:
            await self._exchange.reply(202, b"", self.headers)
        if self._stored is not None:
            await self._stored.end()
        await self._exchange.end_stream()

"""One HTTP request and its response, over ASGI.

Reads the body, writes JSON or an SSE stream. Knows HTTP and ASGI; nothing of
sessions or methods.
Spec: basic/transports/streamable-http, "Sending Messages", "Receiving Messages".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from inspect import ismethod
from typing import Any, Final, TypeAlias

import anyio
import anyio.lowlevel

from mcp_core.codec import MAX_DIGITS, ValueCounter
from mcp_core.errors import InvalidRequest, MCPError
from mcp_core.messages import Request, RequestId, encode_error
from mcp_core.observers import Observers
from mcp_core.transports.streamable_http.parsed_headers import Header, ParsedHeaders

__all__ = [
    "UNWATCHED",
    "ASGIReceive",
    "ASGISend",
    "Exchange",
    "ClientDisconnected",
    "Header",
    "Refused",
    "Scope",
    "event",
]

Scope: TypeAlias = MutableMapping[str, Any]
ASGIReceive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
ASGISend: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_PIECE: Final = 128 * 1024
"""Bytes of a body that are counted in one turn of the event loop."""

UNWATCHED: Final = 0.01
"""Seconds that a handler may take before anybody looks whether its client is still there."""

MAX_DISCARDED: Final = 67_108_864
"""Bytes of a body that is too large which are read all the same, so that its sender reads the refusal."""

DISCARD_SECONDS: Final = 5.0
"""Seconds that this may take."""

_QUIET_SECONDS: Final = 0.5
"""Seconds without a piece of it, after which its sender is taken to wait for the refusal."""

_CLIENT_CLOSED: Final = 499
"""The status of a response whose client has disconnected."""

_JSON: Final[Header] = (b"content-type", b"application/json")
_EVENT_STREAM: Final[list[Header]] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # R-HTTP-10: proxies pass each event on at once
]


class Refused(Exception):
    """The request is answered with this status and JSON-RPC error."""

    def __init__(
        self, status: int, error: MCPError, *, request_id: RequestId | None = None, headers: Iterable[Header] = ()
    ) -> None:
        super().__init__(str(error))
        self.status = status
        self.error = error
        self.request_id = request_id
        self.headers: tuple[Header, ...] = tuple(headers)


class ClientDisconnected(Exception):
    """The client went away before its request was whole."""


class Exchange:
    """One request, and the response to it, which is written once."""

    __slots__ = ("_asgi_send", "_ended", "_observers", "_receive", "asked", "parsed_headers", "scope", "started")

    parsed_headers: ParsedHeaders
    """The header lines, once the request is let in."""

    def __init__(self, scope: Scope, receive: ASGIReceive, send: ASGISend, observers: Observers) -> None:
        self.scope: Scope = scope
        self._receive = receive  # ASGI's; read for the body, then for the disconnect, never by two at once
        self._asgi_send = send
        self._observers = observers
        self._ended = False  # the client has disconnected, or the response is complete: further writes are dropped
        self.started: bool = False  # status and headers are out: an error can no longer have a status of its own
        self.asked: Request | None = None
        """The JSON-RPC request in the body that no handler has been found for yet."""

    @property
    def method(self) -> str:
        """The method of HTTP, in capitals."""
        return self.scope["method"]  # type: ignore[no-any-return]

    # --- the request -----------------------------------------------------------------------

    async def body(self, limit: int, most_values: int | None) -> bytes:
        """Return the whole body.

        Raises:
            Refused: It is larger than `limit` bytes, or holds more than so many JSON values (413).
            ClientDisconnected: The client went away before its end.
        """
        length = self.parsed_headers.length
        if length is not None and length > limit:
            # A client that asks first has sent nothing yet, and one that sends more than that is not worth it.
            if b"expect" not in self.parsed_headers.fields and length <= MAX_DISCARDED:
                await self._discard()
            raise _too_large(limit)
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            body: bytes = message.get("body", b"")
            if len(body) > limit:
                raise _too_large(limit)
            if most_values is not None and len(body) > most_values:
                await _check_values(body, most_values)
            return body
        gathered = bytearray()  # bounded by bytes, whatever the number of pieces
        while True:
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            gathered += message.get("body", b"")
            if len(gathered) > limit:
                if length is not None and message.get("more_body"):
                    await self._discard()
                raise _too_large(limit)
            if not message.get("more_body"):
                break
            message = await self._receive()
        whole = bytes(gathered)
        if most_values is not None and len(whole) > most_values:
            await _check_values(whole, most_values)
        return whole

    async def _discard(self) -> None:
        """Read the rest of a body. Most clients send all of it before they read the refusal.

        Where a server closes a connection on which something is left to be read, TCP resets it, and
        the refusal with it.
        """
        left = MAX_DISCARDED
        with anyio.move_on_after(DISCARD_SECONDS) as quiet:
            end = quiet.deadline
            while left > 0:
                quiet.deadline = min(end, anyio.current_time() + _QUIET_SECONDS)
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnected
                if not message.get("more_body"):
                    return
                left -= len(message.get("body", b""))

    async def gone(self) -> None:
        """Wait until the client goes away. Only after the body was read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if self._ended:
            return
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self._ended = True
        try:
            await self._asgi_send(message)
        except OSError:
            self._ended = True  # the client has disconnected; `gone` says so to the handler's watcher

    # --- the response ----------------------------------------------------------------------

    def observe(self, message: bytes) -> None:
        """Tell observers of a message that goes out."""
        self._observers.sent(message)

    async def reply(self, status: int, body: bytes = b"", headers: Iterable[Header] = ()) -> None:
        """Answer with one JSON-RPC message, or none."""
        self.started = self._ended = True
        if body and self._observers.message_sent:
            self.observe(body)
        length = (b"content-length", b"%d" % len(body))
        fields = [_JSON, length, *headers] if body else [length, *headers]
        try:
            await self._asgi_send({"type": "http.response.start", "status": status, "headers": fields})
            await self._asgi_send({"type": "http.response.body", "body": body})
        except OSError:
            return  # the client has disconnected

    async def publish(self, status: int, body: bytes, headers: Iterable[Header]) -> None:
        """Answer with JSON that is not a message."""
        self.started = self._ended = True
        fields = [_JSON, (b"content-length", b"%d" % len(body)), *headers]
        await self._asgi_send({"type": "http.response.start", "status": status, "headers": fields})
        await self._asgi_send({"type": "http.response.body", "body": body})

    async def refuse(self, refused: Refused) -> bytes:
        """Answer with an error that says what to change; the response."""
        answer = encode_error(refused.request_id, refused.error)
        if not self.started:
            await self.reply(refused.status, answer, refused.headers)
        elif not self._ended:  # the stream was opened before the refusal was known
            self.observe(answer)
            await self.end_stream(event(answer))
        return answer

    async def abandon(self) -> None:
        """End without a response: the client has gone.

        Below middleware a response is owed all the same: Starlette's `BaseHTTPMiddleware` raises where
        there is none. A server's own `send` is a method, and is left alone.
        """
        if not self.started and not ismethod(self._asgi_send):
            await self.reply(_CLIENT_CLOSED)

    async def open_stream(self, headers: Iterable[Header] = ()) -> None:
        """Begin to answer with an SSE stream."""
        self.started = True
        await self._send({"type": "http.response.start", "status": 200, "headers": [*_EVENT_STREAM, *headers]})

    async def write(self, data: bytes) -> None:
        """Write to the SSE stream."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end_stream(self, data: bytes = b"") -> None:
        """Write the last of the SSE stream; if it has ended, nothing happens."""
        await self._send({"type": "http.response.body", "body": data})


async def _check_values(body: bytes, most: int) -> None:
    """Refuse a body that takes long to decode, a piece and a turn of the event loop at a time."""
    counter = ValueCounter()
    for start in range(0, len(body), _PIECE):
        counter.feed(body[start : start + _PIECE])
        if counter.values > most:
            reason = f"the body holds more than {most} JSON values (max_json_values)"
            raise Refused(413, InvalidRequest(reason))
        if counter.longest_number:
            raise Refused(413, InvalidRequest(f"the body holds a number of more than {MAX_DIGITS} digits"))
        await anyio.lowlevel.checkpoint()


def _too_large(limit: int) -> Refused:
    return Refused(413, InvalidRequest(f"the body is larger than {limit} bytes (max_request_body_size)"))


def event(message: bytes, event_id: str | None = None) -> bytes:
    """Return one SSE event; a message of no bytes is a priming event."""
    head = b""
    if event_id is not None:
        head += b"id: %b\n" % event_id.encode()
    if not message:
        return head + b"data: \n\n"
    if b"\n" in message or b"\r" in message:
        # Ready bytes of an author's: a line break would end the event. In JSON it is a space.
        message = message.translate(_ONE_LINE)
    return b"%bevent: message\ndata: %b\n\n" % (head, message)


_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")

"""SSE streams: read to their end, and resumed in the handshake era when the connection is lost.

Hands on what they bring. Knows the session and whose answer is awaited; nothing of what
else messages say.
Spec: basic/transports/streamable-http, "Receiving Messages"; 2025-11-25/basic/transports,
"Listening for Messages from the Server", "Resumability and Redelivery"; R-HTTP-10,
R-HTTPL-04, R-HTTPL-07, R-HTTPL-08.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio

from mcp_core.errors import ConnectionClosed, InvalidResult
from mcp_core.messages import ErrorResponse, Request, Response, decode_frame, encode_error
from mcp_core.queue_logger import QueueLogger
from mcp_core.session import our_request_id
from mcp_core.transports.http_client.endpoint import RESPONSE_ENDS, Endpoint, abandon, describe, is_stream
from mcp_core.transports.http_client.session import SessionState
from mcp_core.transports.http_client.task_set import TaskSet
from mcp_core.transports.lines import MAX_MESSAGE

if TYPE_CHECKING:
    import httpx2

__all__ = ["Awaited", "StandaloneStream", "Stream", "Take"]

_log = QueueLogger(__name__)

_RETRY: Final = 1.0
"""Seconds after which a stream is resumed, unless the server says otherwise."""

_LONGEST_PAUSE: Final = 30.0
"""Seconds beyond which the pause between attempts that give no stream does not grow by itself."""

_SHORT: Final = 5.0
"""Seconds within which a stream that ends empty was none."""

LONGEST_RETRY: Final = 300.0
"""Seconds that a server may have us wait before a stream is resumed."""

_SHORTEST_PAUSE: Final = 0.05
"""Seconds between two attempts at least, or a server could keep us at it without a pause."""

MAX_EVENT_ID: Final = 1024
"""Characters of an event's id that is sent back; a stream with a longer one cannot be resumed."""

Take: TypeAlias = Callable[[bytes], None]
"""Takes a message."""


class _NoStream(ConnectionClosed):
    """The server refuses a GET: asking again is of no use."""


class Awaited:
    """A request, and what takes its response."""

    def __init__(self, request: Request, take: Take) -> None:
        self.method: Final = request.method
        self._id = request.id
        self._take = take  # given the response as bytes, once

    def takes(self, message: bytes) -> bool:
        """Take a message if it is the response; whether it is."""
        frame = decode_frame(message)
        if not isinstance(frame, Response | ErrorResponse):
            return False
        if isinstance(frame, ErrorResponse) and frame.id is None:
            message = encode_error(self._id, frame.error)  # on its own stream it can be of no other (C097)
        elif frame.id != self._id and our_request_id(frame.id) != self._id:
            return False
        self._take(message)
        return True


class Stream:
    """One stream: that of a request whose answer is awaited, or the session's own."""

    def __init__(
        self, endpoint: Endpoint, session: SessionState, hand_on: Take, awaited: Awaited | None = None
    ) -> None:
        self._endpoint = endpoint
        self._session = session
        self._hand_on = hand_on
        self._awaited = awaited  # the request whose response the stream brings; `None` on the standalone stream
        self.last_event_id: str | None = None
        """What to come back with if it breaks off."""
        self.retry: float = _RETRY  # seconds before reconnecting; the server may set it with a `retry:` line
        self.broke_off: bool = False
        """Whether it was the connection that ended it."""
        self._was_given = False  # whether the response has come: then the end of the stream is no loss
        self._has_brought = False
        """Whether anything came since it was last resumed."""

    async def read(self, response: httpx2.Response) -> bool:
        """Hand on what comes until the stream ends; whether the response was among it.

        Raises:
            InvalidResult: An event is too large.
        """
        import httpx2

        answered = False
        source: Any = _Text(response)
        # Without an end to the stream, the connection is closed and serves no other request.
        with anyio.CancelScope() as rest:
            try:
                async for event in httpx2.EventSource(source, MAX_MESSAGE):
                    self._note(event)
                    if event.event == "message" and event.data and self._answered_by(event.data.encode()):
                        answered = True
                        rest.deadline = anyio.current_time() + RESPONSE_ENDS
            except httpx2.SSEError as exc:
                await abandon(response, source.text)
                raise InvalidResult(str(exc)) from None
            except httpx2.HTTPError as exc:
                self.broke_off = True
                _log.debug("a stream was disconnected: %s", describe(exc))
        return answered

    def _note(self, event: httpx2.ServerSentEvent) -> None:
        self._has_brought = True
        if event.id:
            can_be_sent = len(event.id) <= MAX_EVENT_ID and event.id.isascii() and event.id.isprintable()
            self.last_event_id = event.id if can_be_sent else None
        if event.retry is not None and event.retry >= 0:
            self.retry = min(event.retry, LONGEST_RETRY * 1000) / 1000  # compared as an integer: it may be no float

    def _answered_by(self, text: bytes) -> bool:
        """Hand on what an event brings; whether the response was among it."""
        answered = False
        for message in self._session.messages_in(text):
            if self._awaited is not None and self._awaited.takes(message):
                answered = True
            else:
                self._hand_on(message)
        return answered

    async def resume_until_answered(self, tries: float, opened: Callable[[], None] = lambda: None) -> None:
        """Reconnect with `Last-Event-ID` until the response has come (handshake era).

        Raises:
            ConnectionClosed: The server gives no stream, or gave none so many times in a row.
        """
        failures = 0
        while True:
            began = anyio.current_time()
            if await self._resume(opened):
                return
            lasted = self._has_brought or anyio.current_time() - began > _SHORT
            failures = 0 if lasted else failures + 1
            if self._was_given and failures and self._awaited is None:
                self.last_event_id = None  # nothing was missed, and the stream goes no further: have another
            if failures >= tries:
                raise ConnectionClosed(f"the stream of {self._whose} was disconnected, and could not be resumed")
            await anyio.sleep(max(self.retry, _SHORTEST_PAUSE, min(2.0 ** min(failures, 10) - 1, _LONGEST_PAUSE)))

    async def _resume(self, opened: Callable[[], None]) -> bool:
        """Ask once for what is left of it; whether the response was among that.

        Raises:
            _NoStream: The server gives none.
        """
        import httpx2

        self._was_given = self._has_brought = False
        try:
            async with self._endpoint.exchange("GET", self._headers()) as response:
                if response.status_code < 500 and not (response.is_success and is_stream(response)):
                    status = response.status_code
                    raise _NoStream(f"the server refused the stream of {self._whose}: HTTP status {status}")
                if response.is_success:
                    self._was_given = True
                    opened()
                    return await self.read(response)
        except httpx2.TransportError as exc:
            _log.debug("a stream could not be resumed: %s", describe(exc))
        return False

    def _headers(self) -> dict[str, str]:
        headers = {**self._session.headers(), "accept": "text/event-stream"}
        if self.last_event_id is not None:
            headers["last-event-id"] = self.last_event_id
        return headers

    @property
    def _whose(self) -> str:
        return "the session" if self._awaited is None else self._awaited.method


class _Text:
    """A response as `EventSource` reads it: UTF-8 whatever it says, without a byte order mark (HTML, 9.2.5).

    What the server calls the encoding could be anything that Python knows. And what comes
    compressed may be a thousand times as much in one piece: others have their turn in between.
    """

    def __init__(self, response: httpx2.Response) -> None:
        self.request = response.request
        self.headers = response.headers
        self._response = response
        self.text = self._read()  # one iterator for the life of the response: httpx reads a body once

    def aiter_text(self) -> AsyncGenerator[str, None]:
        return self.text

    async def _read(self) -> AsyncGenerator[str, None]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        async with aclosing(self._response.aiter_bytes()) as pieces:
            async for piece in pieces:
                yield decoder.decode(piece)
                # Not to be cancelled here: httpx2 leaves generators behind that do not end in a read.
                with anyio.CancelScope(shield=True):
                    await anyio.lowlevel.checkpoint()
        yield decoder.decode(b"", final=True)


class StandaloneStream:
    """The stream for what belongs to no request, held open where the server gives one (handshake era)."""

    def __init__(self, endpoint: Endpoint, session: SessionState, hand_on: Take, tasks: TaskSet) -> None:
        self._endpoint = endpoint
        self._session = session
        self._hand_on = hand_on
        self._tasks = tasks

    def start(self) -> anyio.Event:
        """Open the stream, in the place of the one before; set when it is open, or known not to be given."""
        opened = anyio.Event()
        self._tasks.cancel_all()
        self._tasks.spawn(self._listen(opened))
        return opened

    async def _listen(self, opened: anyio.Event) -> None:
        try:
            stream = self._new()
            while True:
                try:
                    await stream.resume_until_answered(math.inf, opened.set)
                except _NoStream as exc:
                    if stream.last_event_id is None:
                        _log.debug("no stream besides those of requests: %s", str(exc))
                        return
                    stream = self._new()  # its events are gone; what comes from now on is not
        except Exception as exc:
            _log.warning("what belongs to no request is not received any more: %s", describe(exc))
        finally:
            opened.set()

    def _new(self) -> Stream:
        return Stream(self._endpoint, self._session, self._hand_on)

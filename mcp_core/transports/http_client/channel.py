"""The channel to a server at a URL: the order of what is sent, and whom what comes in belongs to.

Knows which messages wait for which; nothing of HTTP requests and their responses.
Spec: basic/transports/streamable-http, "Sending Messages", "Cancellation"; R-HTTP-22,
R-HTTP-26, R-CANC-05, R-HTTPL-06, R-HTTPL-10.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio

from mcp_core import codec
from mcp_core.backend import Backend
from mcp_core.channel import Receiver
from mcp_core.errors import ConnectionClosed, HeaderMismatch, MCPCoreError
from mcp_core.messages import ErrorResponse, Notification, Request, RequestId, decode_frame
from mcp_core.queue_logger import QueueLogger, RateLimitedWarnings
from mcp_core.transports.http_client.endpoint import Endpoint, StreamableHTTPParameters, describe
from mcp_core.transports.http_client.headers import Headers
from mcp_core.transports.http_client.initializer import INITIALIZED, SessionInitializer
from mcp_core.transports.http_client.posts import Posts, SessionEnded
from mcp_core.transports.http_client.session import SessionState
from mcp_core.transports.http_client.streams import StandaloneStream, Take
from mcp_core.transports.http_client.task_set import TaskSet
from mcp_core.transports.http_client.tool_headers import ListedHeaderParameters

__all__ = ["HTTPChannel", "open_http"]

_log = QueueLogger(__name__)

_CANCELLED: Final = "notifications/cancelled"

MAX_POSTS: Final = 100
"""Answers to requests of the server's that may be on their way at a time; those beyond are dropped."""

MAX_NOTIFICATIONS: Final = 100
"""Notifications that may wait to be sent before who sends them has to wait."""

_GRACE: Final = 2.0
"""Seconds that messages without a waiting caller may still take when the client closes."""


@asynccontextmanager
async def open_http(backend: Backend, parameters: StreamableHTTPParameters) -> AsyncGenerator[HTTPChannel, None]:
    """The channel to the server; leaving it ends the session.

    Raises:
        RuntimeError: httpx2 is not installed.
    """
    endpoint = Endpoint(parameters)
    channel = HTTPChannel(backend, endpoint)
    try:
        yield channel
    finally:
        with anyio.move_on_after(5, shield=True):
            await channel.aclose()
            await endpoint.aclose()


class HTTPChannel:
    """Takes messages out, each by a POST, and brings in what comes back."""

    def __init__(self, backend: Backend, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._receiver: Receiver | None = None  # the connection; set by `start`, which attaches it once
        self._requests = TaskSet(backend)  # one task for each request that awaits its response, by request id
        self._messages = TaskSet(backend)  # responses and notifications on their way to the server
        self._listening = TaskSet(backend)  # the GET stream; ends last but one, since responses may come on it
        # Sent one at a time, since their order means something; more than a bound: congested.
        self._notifications: deque[tuple[Notification, bytes]] = deque()
        self._session = session = SessionState()
        self._header_parameters = ListedHeaderParameters(endpoint.timeout)
        self._warnings = RateLimitedWarnings(_log)
        self._room = anyio.Event()  # replaced each time the channel becomes congested, set when it no longer is
        self._posts = Posts(endpoint, session, Headers(session, self._header_parameters), self._hand_on)
        listener = StandaloneStream(endpoint, session, self._hand_on, self._listening)
        self._handshake = SessionInitializer(self._posts, session, listener, self._messages, endpoint.timeout)
        self._closed = False  # from `aclose` on: nothing more is sent, nothing more is handed on

    def start(self, receiver: Receiver) -> None:
        """Say who takes what comes in."""
        self._receiver = receiver

    # --- out -----------------------------------------------------------------------------------

    def send(self, message: bytes, *, last: bool = False) -> None:
        """Send one message. Notifications keep their order; every other goes by itself."""
        if self._closed:
            return
        frame = decode_frame(message)
        if isinstance(frame, Request):
            self._requests.spawn(self._request(frame, message), frame.id)
        elif not isinstance(frame, Notification):
            if len(self._messages) < MAX_POSTS:
                self._messages.spawn(self._posts.one_way(frame, message))
            else:
                self._warnings.warning("an answer was dropped: the server asks faster than it takes answers")
        elif frame.method == _CANCELLED:
            self._cancel(frame, message)
        else:
            if frame.method == INITIALIZED:
                self._handshake.hold_up()
            self._notifications.append((frame, message))
            if len(self._notifications) == 1:
                self._messages.spawn(self._send_in_order())

    @property
    def congested(self) -> bool:
        """Whether notifications wait for those before them."""
        return len(self._notifications) > MAX_NOTIFICATIONS

    async def drained(self) -> None:
        """Wait until fewer do. Each has a bounded time, so that this has an end."""
        while self.congested and not self._closed:
            if self._room.is_set():  # or the caller that waits for this one would never wake
                self._room = anyio.Event()
            await self._room.wait()

    def resume(self) -> None:
        """Streams are read on their own: what comes is bounded where it waits for callbacks."""

    def _cancel(self, frame: Notification, message: bytes) -> None:
        """A request is not wanted any more: in the stateless era, closing its stream says so (R-CANC-05)."""
        if self._session.version is not None:
            self._messages.spawn(self._posts.one_way(frame, message))
        params: Any = codec.decode_any(frame.params)
        self._requests.cancel(params.get("requestId"))

    async def _send_in_order(self) -> None:
        """Send notifications one after the other: their order means something (R-PROG-02)."""
        while self._notifications:
            frame, message = self._notifications[0]
            if frame.method == INITIALIZED:
                await self._handshake.confirm(frame, message)
            else:
                await self._posts.one_way(frame, message)
            self._notifications.popleft()
            self._room.set()

    # --- requests --------------------------------------------------------------------------------

    async def _request(self, request: Request, message: bytes) -> None:
        try:
            if request.method == "initialize":
                self._handshake.begin(request, message)
            else:
                await self._handshake.ready()
            await self._ask(request, message, lambda answer: self._deliver(request, answer))
        except MCPCoreError as exc:
            self._fail(request.id, exc)
        except Exception as exc:
            _log.debug("%s over HTTP failed: %s", request.method, describe(exc))
            reason = f"{request.method} got no answer from {self._endpoint.redacted_url}: {describe(exc)}"
            self._fail(request.id, ConnectionClosed(reason))

    async def _ask(self, request: Request, message: bytes, take: Take) -> None:
        """Post a request; once more where the server has not looked at it, and it may now."""
        session_id = self._session.session_id
        try:
            answer = await self._posts.request(request, message, take)
        except SessionEnded:
            await self._handshake.reinitialize(session_id)
            answer = await self._posts.request(request, message, take)
        except HeaderMismatch:
            if not await self._header_parameters.reread(request, self._posts.answer):
                raise
            answer = await self._posts.request(request, message, take)
        if answer is None:
            return
        # The same, with a status of success.
        if _is_header_mismatch(answer) and await self._header_parameters.reread(request, self._posts.answer):
            answer = await self._posts.request(request, message, take)
        if answer is not None:
            take(answer)

    # --- in ----------------------------------------------------------------------------------------

    def _hand_on(self, message: bytes) -> None:
        if self._receiver is not None:
            self._receiver.receive(message)

    def _deliver(self, request: Request, answer: bytes) -> None:
        if request.method == "initialize":
            self._session.settle(answer)
        elif request.method == "tools/list" and self._session.is_modern(request):
            answer = self._header_parameters.read(answer)
        self._hand_on(answer)

    def _fail(self, request_id: RequestId, error: MCPCoreError) -> None:
        if self._receiver is not None:
            self._receiver.fail(request_id, error)

    # --- the end -----------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Close what is open, and the session. Requests in flight fail."""
        self._closed = True
        self._room.set()
        with anyio.move_on_after(_GRACE):
            await self._messages.ended()
        everything = (self._requests, self._messages, self._listening)
        for tasks in everything:
            tasks.cancel_all()
        for tasks in everything:
            await tasks.ended()
        if self._receiver is not None:
            self._receiver.ended()
        if self._session.session_id is not None:
            try:
                await self._endpoint.delete(self._session.headers())
            except Exception as exc:
                _log.debug("the session could not be ended: %s", describe(exc))


def _is_header_mismatch(answer: bytes) -> bool:
    frame = decode_frame(answer)
    return isinstance(frame, ErrorResponse) and isinstance(frame.error, HeaderMismatch)

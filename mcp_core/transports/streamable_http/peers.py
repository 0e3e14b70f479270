"""The client of one HTTP request, as handlers see it: `Peer` for each era, with and without a session.

Knows the request, its session and its response; nothing of what messages say.
Spec: basic/transports/streamable-http; 2025-11-25/basic/transports, "Streamable HTTP".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio
from msgspec import Raw

from mcp_core.auth import AccessToken
from mcp_core.backend import Future, current_backend
from mcp_core.backend.interruptible import Interruptible
from mcp_core.dispatch import Failure
from mcp_core.errors import (
    HeaderMismatch,
    LocalProtocolError,
    MethodNotFound,
    MissingClientCapability,
    RequestTimeout,
    UnsupportedProtocolVersion,
)
from mcp_core.messages import RequestId, encode_notification, encode_request
from mcp_core.session import Handshake
from mcp_core.transports.streamable_http.exchange import Exchange
from mcp_core.transports.streamable_http.responses import HTTPResponse
from mcp_core.transports.streamable_http.service import HTTPService
from mcp_core.transports.streamable_http.sessions import HTTPSession

__all__ = ["ModernPeer", "SessionPeer", "SessionlessPeer", "SilentPeer", "challenge_status"]


def challenge_status(service: HTTPService, answer: HTTPResponse, failure: Failure) -> int:
    """Return the status that a response with this error has; a challenge is put in its headers (R-AUTH-06)."""
    if service.bearer is None or not failure.scopes:
        return 200
    answer.headers = (*answer.headers, service.bearer.step_up(failure.scopes))
    return 403


class _RequestPeer:
    """What both eras have in common.

    Most clients get no more than a result: what it takes to send more is made when it is
    first needed.
    """

    __slots__ = ("_answer", "_exchange", "_service", "auth", "gone", "lifespan_context")

    json_only = False
    reaches_client = False
    hears_changes = True

    def __init__(self, service: HTTPService, exchange: Exchange, state: object, auth: AccessToken | None) -> None:
        self.lifespan_context: object = state
        self.auth: AccessToken | None = auth
        self.gone: bool = False
        self._service = service
        self._exchange = exchange
        self._answer: HTTPResponse | None = (
            None  # made when more than the result is sent, which most requests never need
        )

    @property
    def server(self) -> Any:
        return self._service.server

    @property
    def headers(self) -> Mapping[str, str]:
        return self._exchange.parsed_headers.texts

    @property
    def answer(self) -> HTTPResponse:
        """How this client is answered."""
        if self._answer is None:
            self._answer = HTTPResponse(self._exchange, json_only=self.json_only)
        return self._answer

    @property
    def exchange(self) -> Exchange:
        """The HTTP request."""
        return self._exchange

    @property
    def can_stream(self) -> bool:
        """Whether the response may be an SSE stream."""
        return self._exchange.parsed_headers.accepts.stream and not self.json_only

    def notify(self, message: bytes) -> None:
        self.answer.put(message)

    async def wait_writable(self) -> None:
        if self._answer is not None:
            await self._answer.flush()

    async def close_stream(self, retry: float) -> None:
        """A stream without a session cannot be resumed."""

    def notify_session(self, message: bytes) -> bool:
        return False

    def on_close(self, call: Callable[[], None]) -> Callable[[], None]:
        return self._service.close_callbacks.add(call)

    def result(self, message: bytes, status: int = 200) -> Awaitable[None]:
        """Send the response."""
        if self._answer is None and (self._exchange.parsed_headers.accepts.json or status != 200):
            return self._exchange.reply(status, message)
        return self.answer.result(message, status)


_STATUS: Final = {
    MethodNotFound.CODE: 404,
    HeaderMismatch.CODE: 400,
    MissingClientCapability.CODE: 400,
    UnsupportedProtocolVersion.CODE: 400,
}
"""Errors that have a status of their own in 2026-07-28; all others go out with 200."""


class ModernPeer(_RequestPeer):
    """A client of 2026-07-28."""

    __slots__ = ()

    handshake = None
    shakes_hands = False

    async def request(self, method: str, params: Any, timeout: float | None) -> Raw:
        raise LocalProtocolError(f"{method} cannot be sent to a 2026-07-28 client")

    def is_cancelled(self, request_id: RequestId) -> bool:
        return self.gone

    def take(self, work: Interruptible, request_id: RequestId) -> None:
        """Let the server interrupt it when it shuts down."""
        self._service.running.add(work)

    def leave(self, work: Interruptible, request_id: RequestId) -> None:
        """The work has ended."""
        self._service.running.discard(work)

    def outcome(self, message: bytes, failure: Failure | None) -> Awaitable[None]:
        """Send the response, which has this error in it if that is not `None`."""
        if failure is None:
            plain = self._answer is None and self._exchange.parsed_headers.accepts.json
            return self._exchange.reply(200, message) if plain else self.answer.result(message)
        if failure.scopes:
            return self.answer.result(message, challenge_status(self._service, self.answer, failure))
        return self.result(message, _STATUS.get(failure.code, 200))


class SilentPeer(ModernPeer):
    """The same client, for requests made on its behalf: drops all notifications."""

    __slots__ = ()

    def notify(self, message: bytes) -> None:
        """Drop it."""


class SessionlessPeer(_RequestPeer):
    """A client of the handshake era, of which nothing is kept from one request to the next."""

    __slots__ = ("failure", "handshake", "json_only", "work")

    shakes_hands = True
    hears_changes = False

    def __init__(
        self,
        service: HTTPService,
        exchange: Exchange,
        state: Any,
        auth: AccessToken | None,
        handshake: Handshake | None,
        answer: HTTPResponse | None = None,
    ) -> None:
        # Not by way of the base: one call more for each request.
        self.lifespan_context = state
        self.auth = auth
        self.gone: bool = False
        self._service = service
        self._exchange = exchange
        self._answer = answer
        self.handshake: Handshake | None = handshake
        self.json_only: bool = service.options.json_response
        self.work: Interruptible | None = None  # the suspended handler, while there is one: what `cancel` interrupts
        self.failure: Failure | None = None  # decides the status of the response

    async def request(self, method: str, params: Any, timeout: float | None) -> Raw:
        raise LocalProtocolError(f"{method} cannot be sent: it takes a session, and this server keeps none")

    def is_cancelled(self, request_id: RequestId) -> bool:
        return self.gone if self.work is None else self.work.interrupted

    def take(self, work: Interruptible, request_id: RequestId) -> None:
        """Know the call that waits."""
        self.work = work

    def leave(self, work: Interruptible, request_id: RequestId) -> None:
        """The call waits no more, nor is it to be kept alive by the peer that it knows."""
        self.gone = work.interrupted
        self.work = None

    def cancel(self, request_id: RequestId | None) -> None:
        """Nothing outlasts a request that another could cancel."""

    def future(self, request_id: RequestId | None) -> Future | None:
        """Return `None`: there are no requests of ours to be answered."""
        return None


MAX_ASKED: Final = 256
"""Requests of ours that one client may leave unanswered."""

_CANCEL_SECONDS: Final = 1.0
"""Seconds that it may take to tell a client that a request of ours is cancelled."""


class SessionPeer:
    """The client of one request, or of one notification, of a session."""

    __slots__ = ("answer", "auth", "exchange", "failure", "gone", "lifespan_context", "server", "session", "work")

    shakes_hands = True
    reaches_client = True
    hears_changes = True

    def __init__(
        self,
        server: object,
        session: HTTPSession,
        exchange: Exchange,
        answer: HTTPResponse | None,
        state: object,
        auth: AccessToken | None,
    ) -> None:
        self.server: Any = server
        self.lifespan_context: object = state
        self.auth: AccessToken | None = auth
        self.work: Interruptible | None = None
        self.gone: bool = False
        self.failure: Failure | None = None
        self.session: HTTPSession = session
        self.exchange: Exchange = exchange
        self.answer: HTTPResponse | None = answer

    @property
    def handshake(self) -> Handshake | None:
        return self.session.handshake

    @handshake.setter
    def handshake(self, handshake: Handshake) -> None:
        self.session.handshake = handshake

    @property
    def headers(self) -> Mapping[str, str]:
        return self.exchange.parsed_headers.texts

    @property
    def can_stream(self) -> bool:
        """Whether the response may be an SSE stream."""
        return self.answer is not None and self.answer.can_stream

    def notify(self, message: bytes) -> None:
        if self.answer is not None:
            self.answer.put(message)

    async def wait_writable(self) -> None:
        if self.answer is not None:
            await self.answer.flush()

    async def close_stream(self, retry: float) -> None:
        if self.answer is not None:
            await self.answer.close_early(retry)

    # `Connection.request` does the same over a channel. Only the order of the steps is shared: here the request goes on
    # the stream of this POST and has to be flushed, the time limit is a scope, and a cancellation must reach the stream
    # before the response ends it.
    async def request(self, method: str, params: Any, timeout: float | None) -> Raw:
        answer, session = self.answer, self.session
        if answer is None or not answer.can_stream:
            raise LocalProtocolError(f"{method} cannot be sent: it takes a client that accepts text/event-stream")
        if len(session.requests.outgoing) >= MAX_ASKED:
            raise LocalProtocolError(f"{method} cannot be sent: the client has left {MAX_ASKED} requests unanswered")
        future = current_backend().create_future()
        request_id = session.requests.register(future)
        try:
            answer.put(encode_request(request_id, method, params))
            await answer.flush()
            if timeout is None:
                return await future.wait()  # type: ignore[no-any-return]
            with anyio.move_on_after(timeout):
                return await future.wait()  # type: ignore[no-any-return]
            raise RequestTimeout(f"{method} was not answered within {timeout} seconds")
        finally:
            if session.requests.resolve(request_id) is not None:
                answer.put(encode_notification("notifications/cancelled", {"requestId": request_id}))
                # At once, or the client goes on asking its user; but a cancelled task does not wait long.
                with anyio.move_on_after(_CANCEL_SECONDS, shield=True):
                    await answer.flush()

    def notify_session(self, message: bytes) -> bool:
        return self.session.notify(message)

    def is_cancelled(self, request_id: RequestId) -> bool:
        return self.gone if self.work is None else self.work.interrupted

    def on_close(self, call: Callable[[], None]) -> Callable[[], None]:
        return self.session.close_callbacks.add(call)

    def take(self, work: Interruptible, request_id: RequestId) -> None:
        """Let the call that waits be cancelled by others of the client's requests."""
        self.work = work
        self.session.running.setdefault(request_id, []).append(work)

    def leave(self, work: Interruptible, request_id: RequestId) -> None:
        """The call waits no more, nor is it to be kept alive by the peer that it knows."""
        self.gone = work.interrupted
        self.work = None
        works = self.session.running[request_id]
        works.remove(work)
        if not works:
            del self.session.running[request_id]

    def cancel(self, request_id: RequestId | None) -> None:
        """The client wants no response to an earlier request."""
        if request_id is not None:
            self.session.cancel(request_id)

    def future(self, request_id: RequestId | None) -> Future | None:
        """Who waits for the client's answer to this request of ours."""
        return self.session.requests.resolve(request_id)

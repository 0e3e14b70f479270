"""The client of one HTTP request that belongs to no session, as handlers see it.

Knows the request and its answer; nothing of what messages say.
Spec: basic/transports/streamable-http.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from msgspec import Raw

from mcp_core.auth import AccessToken
from mcp_core.backend import Waiter
from mcp_core.backend.interruptible import Interruptible
from mcp_core.dispatch import Failure
from mcp_core.errors import (
    HeaderMismatch,
    LocalProtocolError,
    MethodNotFound,
    MissingClientCapability,
    UnsupportedProtocolVersion,
)
from mcp_core.messages import RequestId
from mcp_core.session import Handshake
from mcp_core.transports.streamable_http.answers import Answer
from mcp_core.transports.streamable_http.exchange import Exchange
from mcp_core.transports.streamable_http.service import HTTPService

__all__ = ["LonePeer", "challenged", "ModernPeer", "UnheardPeer"]


def challenged(service: HTTPService, answer: Answer, failure: Failure) -> int:
    """The status that an answer with this error has; a challenge is put in its headers (R-AUTH-06)."""
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

    def __init__(self, service: HTTPService, exchange: Exchange, state: Any, auth: AccessToken | None) -> None:
        self.lifespan_context: Any = state
        self.auth: AccessToken | None = auth
        self.gone: bool = False
        self._service = service
        self._exchange = exchange
        self._answer: Answer | None = None

    @property
    def server(self) -> Any:
        return self._service.server

    @property
    def headers(self) -> Mapping[str, str]:
        return self._exchange.head.texts

    @property
    def answer(self) -> Answer:
        """How this client is answered."""
        if self._answer is None:
            self._answer = Answer(self._exchange, json_only=self.json_only)
        return self._answer

    def notify(self, message: bytes) -> None:
        self.answer.put(message)

    async def flow(self) -> None:
        if self._answer is not None:
            await self._answer.flush()

    async def close_stream(self, retry: float) -> None:
        """A stream without a session cannot be taken up again."""

    def notify_late(self, message: bytes) -> bool:
        return False

    def on_end(self, call: Callable[[], None]) -> Callable[[], None]:
        return self._service.endings.add(call)

    def result(self, message: bytes, status: int = 200) -> Awaitable[None]:
        """Send the answer."""
        if self._answer is None and (self._exchange.head.accepts.json or status != 200):
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

    def abandoned(self, request_id: RequestId) -> bool:
        return self.gone

    def outcome(self, message: bytes, failure: Failure | None) -> Awaitable[None]:
        """Send the answer, which has this error in it if that is not `None`."""
        if failure is None:
            plain = self._answer is None and self._exchange.head.accepts.json
            return self._exchange.reply(200, message) if plain else self.answer.result(message)
        if failure.scopes:
            return self.answer.result(message, challenged(self._service, self.answer, failure))
        return self.result(message, _STATUS.get(failure.code, 200))


class UnheardPeer(ModernPeer):
    """The same client, for requests made on its behalf: drops all notifications."""

    __slots__ = ()

    def notify(self, message: bytes) -> None:
        """Drop it."""


class LonePeer(_RequestPeer):
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
        answer: Answer | None = None,
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
        self.work: Interruptible | None = None
        self.failure: Failure | None = None

    async def request(self, method: str, params: Any, timeout: float | None) -> Raw:
        raise LocalProtocolError(f"{method} cannot be sent: it takes a session, and this server keeps none")

    def abandoned(self, request_id: RequestId) -> bool:
        return self.gone if self.work is None else self.work.interrupted

    @property
    def exchange(self) -> Exchange:
        """The HTTP request."""
        return self._exchange

    def take(self, work: Interruptible, request_id: RequestId) -> None:
        """Know the call that waits."""
        self.work = work

    def leave(self, work: Interruptible, request_id: RequestId) -> None:
        """The call waits no more, nor is it to be kept alive by the peer that it knows."""
        self.gone = work.interrupted
        self.work = None

    def cancel(self, request_id: RequestId | None) -> None:
        """Nothing outlasts a request that another could cancel."""

    def waiter(self, request_id: RequestId | None) -> Waiter | None:
        """Return `None`: there are no requests of ours to be answered."""
        return None

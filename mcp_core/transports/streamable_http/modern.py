"""POST in the 2026-07-28 revision: one request, one response, nothing kept.

Decides what must be refused before anything runs, since a status cannot be taken back;
a client that goes away cancels. Knows the dispatcher; nothing of sessions.
Spec: basic/transports/streamable-http; R-HTTP-08 to R-HTTP-27, R-HS-13 to R-HS-29.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw

from mcp_core import codec, envelope
from mcp_core.backend.interruptible import WAITS, beside, interruptible
from mcp_core.errors import (
    HeaderMismatch,
    InternalError,
    InvalidParams,
    InvalidRequest,
    LocalProtocolError,
    MethodNotFound,
)
from mcp_core.handlers import read_meta
from mcp_core.messages import Notification, Request, RequestId, id_bytes
from mcp_core.revisions import is_modern
from mcp_core.transports.streamable_http.answers import Answer
from mcp_core.transports.streamable_http.exchange import Exchange, Refused
from mcp_core.transports.streamable_http.guards import Accepted
from mcp_core.transports.streamable_http.mirrored import VERSION, check_parameters, check_routing

if TYPE_CHECKING:
    from mcp_core.transports.streamable_http.app import StreamableHTTP

__all__ = ["claims_modern", "post_modern", "states_modern"]

_STATUS: Final = {b"-32601": 404, b"-32020": 400, b"-32021": 400, b"-32022": 400}
"""Errors that have a status of their own; all others go out with 200."""


class ModernPeer:
    """The client of one request."""

    __slots__ = ("_answer", "_endings", "_exchange", "auth", "gone", "lifespan_context", "server")

    handshake = None
    shakes_hands = False

    def __init__(self, app: StreamableHTTP, exchange: Exchange, answer: Answer, state: Any, auth: Any) -> None:
        self.server = app.server
        self.lifespan_context = state
        self.auth = auth
        self.gone = False
        self._exchange = exchange
        self._answer = answer
        self._endings = app.endings

    @property
    def headers(self) -> Mapping[str, str]:
        return self._exchange.headers

    def notify(self, message: bytes) -> None:
        self._answer.put(message)

    async def flow(self) -> None:
        await self._answer.flush()

    async def request(self, method: str, params: Any, timeout: float | None) -> Raw:
        raise LocalProtocolError(f"{method} cannot be sent to a 2026-07-28 client")

    async def close_stream(self, retry: float) -> None:
        """A stream of this era cannot be taken up again."""

    def abandoned(self, request_id: RequestId) -> bool:
        return self.gone

    def on_end(self, call: Callable[[], None]) -> Callable[[], None]:
        return self._endings.add(call)


def states_modern(exchange: Exchange) -> bool:
    """Whether the version header names a revision of the stateless era, known or not."""
    stated = exchange.text(VERSION)
    return stated is not None and _REVISION.fullmatch(stated) is not None and is_modern(stated)


_REVISION: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def claims_modern(exchange: Exchange, params: Raw) -> bool:
    """Whether a message is of the stateless era, by its header or by its own word."""
    if states_modern(exchange):
        return True
    try:
        meta = read_meta(params)
    except (codec.Misfit, codec.Undecodable):
        return False
    return meta is not None and envelope.PROTOCOL_VERSION in meta


async def post_modern(
    app: StreamableHTTP, exchange: Exchange, frame: Request | Notification, accepts: Accepted, auth: Any
) -> None:
    """Answer one message.

    Raises:
        Refused: It must not run at all.
    """
    state = await app.state()
    if isinstance(frame, Notification):
        await _notified(app, exchange, frame, accepts, state, auth)
        return
    if frame.method == "initialize" and not claims_modern(exchange, frame.params):
        served = ", ".join(app.server.protocol_versions)
        error = HeaderMismatch(f"Mcp-Protocol-Version is missing; this server has no handshake, and serves {served}")
        raise Refused(400, error, request_id=frame.id)
    _check(exchange, frame)
    if frame.method == "subscriptions/listen" and not accepts.stream:
        needed = InvalidRequest("a subscription needs Accept: text/event-stream")
        raise Refused(406, needed, request_id=frame.id)
    if frame.method == "initialize":  # a method of the other era, whoever sends it
        raise Refused(404, MethodNotFound("Method not found", frame.method), request_id=frame.id)
    answer = Answer(exchange, accepts)
    peer = ModernPeer(app, exchange, answer, state, auth)
    if frame.method == "tools/call" and app.has_marks(auth):
        # What the list has to say on its way, this call's client is not told.
        unheard = ModernPeer(app, exchange, Answer(exchange, accepts, json_only=True), state, auth)
        marked = await app.marked_parameters(frame, unheard)
        if marked:
            _check_marked(exchange, frame, marked)
    begun = app.server.dispatcher.begin(frame, peer)
    if isinstance(begun, bytes):
        await answer.result(begun, _status(frame, begun))
        return
    work = interruptible(begun)
    message = work.begin()
    if message is WAITS:
        message = await _watched(app, exchange, answer, peer, work)
    if message is None and peer.gone:
        return
    if message is None:
        raise Refused(503, InternalError("the server is shutting down"), request_id=frame.id)
    await answer.result(message, _status(frame, message))


async def _watched(app: StreamableHTTP, exchange: Exchange, answer: Answer, peer: ModernPeer, work: Any) -> Any:
    """The answer to a request that waits, unless its client goes away first (R-HTTP-11)."""

    async def watch() -> None:
        await exchange.gone()
        peer.gone = True
        work.interrupt()

    app.running.add(work)
    try:
        return await _unless_interrupted(app, answer, work, watch)
    finally:
        app.running.discard(work)


async def _unless_interrupted(app: StreamableHTTP, answer: Answer, work: Any, watch: Any) -> Any:
    async with beside(watch, *([lambda: app.keep_alive(answer)] if answer.can_stream else [])):
        message = await work.finish()
    # A handler may go on after its cancellation; nobody wants its answer.
    return None if work.interrupted else message


def _check(exchange: Exchange, request: Request) -> None:
    """
    Raises:
        Refused: `_meta` is missing or incomplete, or headers do not fit it.
    """
    try:
        meta = read_meta(request.params)
    except (codec.Misfit, codec.Undecodable) as exc:
        raise Refused(400, InvalidParams(f"params: {exc}"), request_id=request.id) from None
    version = None if meta is None else meta.get(envelope.PROTOCOL_VERSION)
    if meta is None or not isinstance(version, str) or not codec.is_object(meta.get(envelope.CLIENT_CAPABILITIES)):
        reason = (
            f"params._meta needs {envelope.PROTOCOL_VERSION}, a string, and {envelope.CLIENT_CAPABILITIES}, an object"
        )
        raise Refused(400, InvalidParams(reason), request_id=request.id)
    try:
        check_routing(exchange, request, version)
    except HeaderMismatch as exc:
        raise Refused(400, exc, request_id=request.id) from None


def _check_marked(exchange: Exchange, request: Request, marked: Mapping[tuple[str, ...], str]) -> None:
    try:
        check_parameters(exchange, request, marked)
    except HeaderMismatch as exc:
        raise Refused(400, exc, request_id=request.id) from None


def _status(request: Request, answer: bytes) -> int:
    start = _AHEAD + len(id_bytes(request.id))
    if answer[start : start + len(_ERROR)] != _ERROR:
        return 200
    code, _, _ = answer[start + len(_ERROR) : start + len(_ERROR) + 8].partition(b",")
    return _STATUS.get(code, 200)


_AHEAD: Final = len(b'{"jsonrpc":"2.0","id":')
_ERROR: Final = b',"error":{"code":'


async def _notified(
    app: StreamableHTTP, exchange: Exchange, frame: Notification, accepts: Accepted, state: Any, auth: Any
) -> None:
    peer = ModernPeer(app, exchange, Answer(exchange, accepts, json_only=True), state, auth)
    work = app.server.dispatcher.notify(frame, peer)
    if work is not None:
        await work
    await exchange.reply(202)

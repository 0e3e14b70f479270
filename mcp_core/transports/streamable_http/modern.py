"""POST in the 2026-07-28 revision: one request, one response, nothing kept.

Decides what must be refused before anything runs, since a status cannot be taken back;
a client that goes away cancels. Knows the dispatcher; nothing of sessions.
Spec: basic/transports/streamable-http; R-HTTP-08 to R-HTTP-27, R-HS-13 to R-HS-29.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Raw

from mcp_core import codec, request_meta
from mcp_core.auth import AccessToken
from mcp_core.backend.interruptible import start_eagerly, supports_eager_start
from mcp_core.context import AnyContext
from mcp_core.dispatch import InboundCall, Refusal
from mcp_core.errors import (
    HeaderMismatch,
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ParseError,
    UnsupportedProtocolVersion,
)
from mcp_core.handlers import read_meta
from mcp_core.messages import Frame, Malformed, Notification, Request, RequestId, decode_frame, encode_error
from mcp_core.transports.streamable_http.disconnect_watch import Interrupted, await_watched
from mcp_core.transports.streamable_http.exchange import ClientDisconnected, Exchange, Refused
from mcp_core.transports.streamable_http.header_checks import (
    PARAMETER,
    check_notification,
    check_parameters,
    check_routing,
)
from mcp_core.transports.streamable_http.parsed_headers import ParsedHeaders
from mcp_core.transports.streamable_http.peers import ModernPeer, SilentPeer
from mcp_core.transports.streamable_http.service import HTTPService
from mcp_core.transports.streamable_http.tool_headers import HeaderParameters

__all__ = ["CLAIM", "claims_modern", "malformed", "post_modern"]

CLAIM: Final = request_meta.PROTOCOL_VERSION.encode()
"""Without it in a body, and no escape in which it may hide, nothing `claims_modern`."""


def claims_modern(params: Raw) -> bool:
    """Return whether a message is of the stateless era by its own word."""
    try:
        meta = read_meta(params)
    except (codec.ValidationError, codec.DecodeError):
        return False
    return meta is not None and request_meta.PROTOCOL_VERSION in meta


def malformed(frame: Malformed, body: bytes) -> Refused:
    """Return the refusal of a body that is not a message."""
    if not body.strip():
        return Refused(400, ParseError("the body is empty; it must be one JSON-RPC message"))
    return Refused(400, frame.error, request_id=frame.id)


async def post_modern(service: HTTPService, exchange: Exchange, body: bytes, auth: AccessToken | None) -> None:
    """Answer one message.

    Raises:
        Refused: It must not run at all.
    """
    state = service.server.lifespan_state if service.is_ready else None
    if state is None:
        state = await service.state()
    head, dispatcher = exchange.parsed_headers, service.server.dispatcher
    peer = ModernPeer(service, exchange, state, auth)
    call = dispatcher.open_single_pass(body, peer)
    if call is None or not _is_routed(head, call):
        frame = decode_frame(body)
        if isinstance(frame, Notification):
            await _notified(service, exchange, frame, state, auth)
            return
        if isinstance(frame, Request):
            exchange.asked = frame
        request = _checked(service, exchange, frame, body)
        exchange.asked = None  # from here on its owner tells observers of its end
        opened = dispatcher.open(request, peer)
        if isinstance(opened, Refusal):
            await peer.outcome(opened.answer, opened.failure)
            return
        call = opened
    if call.request.method == "tools/call":
        known = service.header_parameters.known(call.ctx)
        if known is None or known:
            await _check_parameters(service, exchange, peer, call)
    answer = dispatcher.start(call)
    if isinstance(answer, InboundCall):
        first = call.start_eagerly() if supports_eager_start() else None
        answer = await _watched(service, peer, call, call.request.id) if first is None else first
    await peer.outcome(answer, call.failure)


async def _check_parameters(service: HTTPService, exchange: Exchange, peer: ModernPeer, call: InboundCall) -> None:
    """Compare the headers that repeat parameters with the parameters.

    Raises:
        Refused: They differ, or it is unknown which parameters are repeated.
        ClientDisconnected: The client has gone meanwhile.
    """
    parameters: Any = service.header_parameters.of(
        call.ctx, SilentPeer(service, exchange, peer.lifespan_context, peer.auth)
    )
    try:
        known, parameters = start_eagerly(parameters) if supports_eager_start() else (False, parameters)
        if not known:
            parameters = await _watched(service, peer, parameters, call.request.id)
        _check_marked(exchange.parsed_headers, call.ctx, parameters)
    except Refused as refused:
        call.dispatcher.refused(call.ctx, encode_error(refused.request_id, refused.error))
        raise
    except BaseException:
        call.dispatcher.refused(call.ctx, None)
        raise


def _is_routed(head: ParsedHeaders, call: InboundCall) -> bool:
    """Return whether the headers repeat plainly what the body says. Those that do not need a closer look."""
    handler = call.handler
    if head.version != call.ctx.protocol_version or head.method != call.request.method:
        return False
    if handler is None or handler.row is None or handler.row.name_field is None:
        return head.method not in _SPECIAL
    return (
        handler.carries_name and call.params is not None and getattr(call.params, handler.row.name_field) == head.name
    )


_SPECIAL: Final = ("subscriptions/listen", "initialize")


async def _watched(service: HTTPService, peer: ModernPeer, waiting: Any, request_id: RequestId) -> Any:
    """Return what is awaited for a call, unless its client disconnects first (R-HTTP-11).

    Raises:
        ClientDisconnected: It has.
        Refused: The server is shutting down.
    """
    try:
        return await await_watched(service, peer, waiting, request_id, cancel_on_disconnect=True)
    except Interrupted:
        if peer.gone:
            raise ClientDisconnected from None
        ending = InternalError("the server is shutting down")
        raise Refused(503, ending, request_id=request_id) from None


def _checked(service: HTTPService, exchange: Exchange, frame: Frame, body: bytes) -> Request:
    """Return the request, if it may run.

    Raises:
        Refused: The body is not a message or a response, the request is of the other era, `_meta`
            is missing or incomplete, headers do not fit it, or it asks for a stream and
            accepts none.
    """
    if isinstance(frame, Malformed):
        raise malformed(frame, body)
    if not isinstance(frame, Request):
        raise Refused(400, InvalidRequest("a response answers nothing here"))
    request = frame
    try:
        meta = read_meta(request.params)
    except (codec.ValidationError, codec.DecodeError) as exc:
        raise Refused(400, InvalidParams(f"params: {exc}"), request_id=request.id) from None
    version = None if meta is None else meta.get(request_meta.PROTOCOL_VERSION)
    if request.method == "initialize" and version is None and not exchange.parsed_headers.states_modern:
        served = ", ".join(service.server.protocol_versions)
        error = HeaderMismatch(f"Mcp-Protocol-Version is missing; this server has no handshake, and serves {served}")
        raise Refused(400, error, request_id=request.id)
    if meta is None or not isinstance(version, str) or not codec.is_object(meta.get(request_meta.CLIENT_CAPABILITIES)):
        version_key, capabilities_key = request_meta.PROTOCOL_VERSION, request_meta.CLIENT_CAPABILITIES
        reason = f"params._meta needs {version_key}, a string, and {capabilities_key}, an object"
        raise Refused(400, InvalidParams(reason), request_id=request.id)
    try:
        check_routing(exchange.parsed_headers, request, version)
    except HeaderMismatch as exc:
        raise Refused(400, exc, request_id=request.id) from None
    if request.method == "subscriptions/listen" and not exchange.parsed_headers.accepts.stream:
        needed = InvalidRequest("a subscription needs Accept: text/event-stream")
        raise Refused(406, needed, request_id=request.id)
    if request.method == "initialize":  # a method of the other era
        raise Refused(404, MethodNotFound("Method not found", request.method), request_id=request.id)
    return request


def _check_marked(head: ParsedHeaders, ctx: AnyContext, parameters: HeaderParameters | None) -> None:
    if parameters is None:
        # Proxies trust these headers, so they are never accepted unchecked.
        if any(name.startswith(PARAMETER) for name in head.fields):
            unknown = InternalError("Mcp-Param headers cannot be checked: the list of tools could not be read")
            raise Refused(500, unknown, request_id=ctx.request_id)
        return
    if not parameters:
        return
    try:
        check_parameters(head, ctx.raw_params, parameters)
    except HeaderMismatch as exc:
        raise Refused(400, exc, request_id=ctx.request_id) from None


async def _notified(
    service: HTTPService, exchange: Exchange, frame: Notification, state: Any, auth: AccessToken | None
) -> None:
    """Take a notification.

    Raises:
        Refused: It is of a revision that is not served, or the headers say something else than the body.
    """
    try:
        meta = read_meta(frame.params) or {}
        check_notification(
            exchange.parsed_headers, frame, meta.get(request_meta.PROTOCOL_VERSION), service.server.protocol_versions
        )
    except (codec.ValidationError, codec.DecodeError) as exc:
        raise Refused(400, InvalidParams(f"params: {exc}")) from None
    except (HeaderMismatch, UnsupportedProtocolVersion) as exc:
        raise Refused(400, exc) from None
    work = service.server.dispatcher.notify(frame, SilentPeer(service, exchange, state, auth))
    if work is not None:
        await work
    await exchange.reply(202)

"""One message of a handshake-era client, with or without a session.

Knows the dispatcher; nothing of headers, or of which stream a response goes on.
Spec: 2025-11-25/basic/transports, "Streamable HTTP"; basic/utilities/cancellation.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, TypeAlias

from mcp_core import codec
from mcp_core import types as t
from mcp_core.backend.interruptible import supports_eager_start
from mcp_core.dispatch import InboundCall, Refusal
from mcp_core.errors import HeaderMismatch, InvalidRequest, MCPError, MethodNotFound
from mcp_core.messages import ErrorResponse, Frame, Notification, Request, RequestId, Response, encode_error
from mcp_core.revisions import HANDSHAKE_REVISIONS, is_modern
from mcp_core.transports.streamable_http.disconnect_watch import Interrupted, await_watched
from mcp_core.transports.streamable_http.exchange import Exchange, Refused
from mcp_core.transports.streamable_http.parsed_headers import VERSION
from mcp_core.transports.streamable_http.peers import SessionlessPeer, SessionPeer, challenge_status
from mcp_core.transports.streamable_http.responses import HTTPResponse
from mcp_core.transports.streamable_http.service import HTTPService

__all__ = [
    "LegacyPeer",
    "await_call",
    "handle_notification",
    "handle_request",
    "send_response",
    "start_call",
    "stated_revision",
]

LegacyPeer: TypeAlias = SessionPeer | SessionlessPeer

_cancelled: codec.Decoder[t.CancelledNotificationParams] = codec.decoder(t.CancelledNotificationParams)


def stated_revision(service: HTTPService, exchange: Exchange, request_id: RequestId | None) -> str | None:
    """Return what the version header says, if it is sent.

    Raises:
        Refused: It names a revision that is not served.
    """
    head = exchange.parsed_headers
    if VERSION in head.repeated:
        raise Refused(400, InvalidRequest("MCP-Protocol-Version may be sent once"), request_id=request_id)
    stated = head.version or head.text(VERSION)
    if stated is not None and (stated not in HANDSHAKE_REVISIONS or stated not in service.server.protocol_versions):
        served = ", ".join(service.server.protocol_versions)
        wrong = InvalidRequest(f"MCP-Protocol-Version {stated[:40]!r} is not served; served are {served}")
        raise Refused(400, wrong, request_id=request_id)
    return stated


def start_call(peer: LegacyPeer, call: InboundCall) -> bytes | InboundCall:
    """Return the response, or the call if its handler suspends. Sets `peer.failure` where the response is an error."""
    answer = call.dispatcher.start(call)
    if isinstance(answer, InboundCall) and supports_eager_start():
        answer = call.start_eagerly() or call
    # Not the call itself: it knows the peer, and the two would wait for the garbage collector.
    peer.failure = call.failure
    return answer


async def await_call(service: HTTPService, peer: LegacyPeer, call: InboundCall) -> bytes | None:
    """Return the response to a request whose handler is suspended; `None` if its client cancelled it."""
    cancel = service.options.cancel_on_disconnect
    try:
        message: bytes = await await_watched(service, peer, call, call.request.id, cancel_on_disconnect=cancel)
    except Interrupted:
        return None
    peer.failure = call.failure
    return message


async def handle_request(service: HTTPService, peer: LegacyPeer, frame: Request) -> bytes | None:
    """Return the response to a request; `None` if its client cancelled it.

    Raises:
        Refused: Its `_meta` says that it is of the stateless era, whose headers have not been compared with it.
    """
    if not peer.hears_changes and frame.method in _NOTIFIED_OF_CHANGES:
        return _refused(peer, frame, MethodNotFound("Method not found", frame.method))
    call = peer.server.dispatcher.open(frame, peer)
    if isinstance(call, Refusal):
        return call.answer
    if is_modern(call.ctx.protocol_version):
        stated = call.ctx.protocol_version
        raise Refused(400, HeaderMismatch(f"Mcp-Protocol-Version is missing; _meta says {stated}"), request_id=frame.id)
    started = start_call(peer, call)
    return started if isinstance(started, bytes) else await await_call(service, peer, started)


_NOTIFIED_OF_CHANGES: Final = ("resources/subscribe", "resources/unsubscribe")


def _refused(peer: LegacyPeer, frame: Request, error: MCPError) -> bytes:
    answer = encode_error(frame.id, error)
    peer.server.dispatcher.refused_request(frame, peer, answer)
    return answer


# `Connection.receive` sorts frames too, with a deadline for notifications and its own way to spawn: a POST has neither,
# and what it takes in is done before its 202.
async def handle_notification(peer: LegacyPeer, frame: Frame) -> None:
    """Take in a notification, or the response to a request of ours."""
    if isinstance(frame, Response | ErrorResponse):
        future = peer.future(frame.id)
        if future is None:
            return
        if isinstance(frame, Response):
            future.set_result(frame.result)
        else:
            future.set_exception(frame.error)
    elif isinstance(frame, Notification):
        if frame.method == "notifications/cancelled":
            try:
                peer.cancel(_cancelled(frame.params).request_id)
            except (codec.ValidationError, codec.DecodeError):
                return  # R-CANC-03: malformed ones are ignored
        work = peer.server.dispatcher.notify(frame, peer)
        if work is not None:
            await work


def send_response(
    service: HTTPService, peer: LegacyPeer, answer: HTTPResponse, message: bytes | None
) -> Awaitable[None]:
    """Send the answer to the peer's call, or end without one."""
    if message is None:
        return answer.nothing()
    return answer.result(message, 200 if peer.failure is None else challenge_status(service, answer, peer.failure))

"""One message of a handshake-era client, with or without a session.

Knows the dispatcher; nothing of headers, or of which stream an answer goes on.
Spec: 2025-11-25/basic/transports, "Streamable HTTP"; basic/utilities/cancellation.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final, TypeAlias

from mcp_core import codec
from mcp_core import types as t
from mcp_core.backend.interruptible import beside, interruptible, steps_by_hand
from mcp_core.dispatch import Call, Refusal
from mcp_core.errors import HeaderMismatch, InvalidRequest, MCPError, MethodNotFound
from mcp_core.messages import ErrorResponse, Frame, Notification, Request, RequestId, Response, encode_error
from mcp_core.revisions import HANDSHAKE_REVISIONS, is_modern
from mcp_core.transports.streamable_http.answers import Answer
from mcp_core.transports.streamable_http.exchange import UNWATCHED, Exchange, Refused
from mcp_core.transports.streamable_http.heads import VERSION
from mcp_core.transports.streamable_http.peers import LonePeer, challenged
from mcp_core.transports.streamable_http.service import HTTPService
from mcp_core.transports.streamable_http.sessions import HandshakePeer

__all__ = ["AnyPeer", "answered", "begun", "notified", "sent", "stated_revision", "waited"]

AnyPeer: TypeAlias = HandshakePeer | LonePeer

_cancelled: codec.Decoder[t.CancelledNotificationParams] = codec.decoder(t.CancelledNotificationParams)


def stated_revision(service: HTTPService, exchange: Exchange, request_id: RequestId | None) -> str | None:
    """What the version header says, if it is sent.

    Raises:
        Refused: It names a revision that is not served.
    """
    head = exchange.head
    if VERSION in head.repeated:
        raise Refused(400, InvalidRequest("MCP-Protocol-Version may be sent once"), request_id=request_id)
    stated = head.version or head.text(VERSION)
    if stated is not None and (stated not in HANDSHAKE_REVISIONS or stated not in service.server.protocol_versions):
        served = ", ".join(service.server.protocol_versions)
        wrong = InvalidRequest(f"MCP-Protocol-Version {stated[:40]!r} is not served; served are {served}")
        raise Refused(400, wrong, request_id=request_id)
    return stated


def begun(peer: AnyPeer, call: Call) -> bytes | Call:
    """The answer, or the call if its handler waits. `peer.failure` is the error in the answer, if it is one."""
    answer = call.dispatcher.start(call)
    if isinstance(answer, Call) and steps_by_hand():
        answer = call.step() or call
    # Not the call itself: it knows the peer, and the two would wait for the garbage collector.
    peer.failure = call.failure
    return answer


async def waited(service: HTTPService, peer: AnyPeer, call: Call) -> bytes | None:
    """The answer to a request whose handler waits; `None` if its client cancelled it."""
    work = interruptible(call)

    async def watch() -> None:
        await peer.exchange.gone()
        work.interrupt()

    beside_it: list[Any] = [watch] if service.options.cancel_on_disconnect else []
    answer = peer.answer
    if answer is not None and answer.can_stream:
        beside_it.append(lambda: service.keep_alive(lambda: answer))
    peer.take(work, call.request.id)
    try:
        async with beside(*beside_it, delay=UNWATCHED):
            message = await work.finish()
    finally:
        peer.leave(work, call.request.id)
    peer.failure = call.failure
    # A handler may go on after its cancellation; its result is dropped.
    return None if work.interrupted else message


async def answered(service: HTTPService, peer: AnyPeer, frame: Request) -> bytes | None:
    """The answer to a request; `None` if its client cancelled it.

    Raises:
        Refused: It is of the stateless era by its own word, however that is spelt: its headers were not compared
            headers with it.
    """
    if not peer.hears_changes and frame.method in _TOLD_OF_CHANGES:
        return _refused(peer, frame, MethodNotFound("Method not found", frame.method))
    call = peer.server.dispatcher.open(frame, peer)
    if isinstance(call, Refusal):
        return call.answer
    if is_modern(call.ctx.protocol_version):
        stated = call.ctx.protocol_version
        raise Refused(400, HeaderMismatch(f"Mcp-Protocol-Version is missing; _meta says {stated}"), request_id=frame.id)
    started = begun(peer, call)
    return started if isinstance(started, bytes) else await waited(service, peer, started)


_TOLD_OF_CHANGES: Final = ("resources/subscribe", "resources/unsubscribe")


def _refused(peer: AnyPeer, frame: Request, error: MCPError) -> bytes:
    answer = encode_error(frame.id, error)
    peer.server.dispatcher.refused_request(frame, peer, answer)
    return answer


async def notified(peer: AnyPeer, frame: Frame) -> None:
    """Take in a notification, or the answer to a request of ours."""
    if isinstance(frame, Response | ErrorResponse):
        waiter = peer.waiter(frame.id)
        if waiter is None:
            return
        if isinstance(frame, Response):
            waiter.set(frame.result)
        else:
            waiter.fail(frame.error)
    elif isinstance(frame, Notification):
        if frame.method == "notifications/cancelled":
            try:
                peer.cancel(_cancelled(frame.params).request_id)
            except (codec.Misfit, codec.Undecodable):
                return  # R-CANC-03: malformed ones are ignored
        work = peer.server.dispatcher.notify(frame, peer)
        if work is not None:
            await work


def sent(service: HTTPService, peer: AnyPeer, answer: Answer, message: bytes | None) -> Awaitable[None]:
    """Send the answer to the peer's call, or end without one."""
    if message is None:
        return answer.nothing()
    return answer.result(message, 200 if peer.failure is None else challenged(service, answer, peer.failure))

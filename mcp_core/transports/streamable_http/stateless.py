"""POST in the handshake-era revisions where no sessions are kept.

Every request stands for itself; the version header says what it is of. Knows the
dispatcher; nothing of streams that last.
Spec: 2025-11-25/basic/transports, "Session Management".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_core import types as t
from mcp_core.errors import InvalidRequest
from mcp_core.messages import Frame, Request
from mcp_core.revisions import V2025_03_26
from mcp_core.session import Handshake
from mcp_core.transports.streamable_http.exchange import Exchange, Refused
from mcp_core.transports.streamable_http.handshake_calls import answered, begun, notified, sent, stated_revision, waited
from mcp_core.transports.streamable_http.peers import LonePeer

if TYPE_CHECKING:
    from mcp_core.transports.streamable_http.app import StreamableHTTP

__all__ = ["assumed_handshake", "post_frame", "post_stateless"]

_NO_CAPABILITIES: Final = t.ClientCapabilities()
_NOBODY: Final = t.Implementation(name="", version="")
_SPECIAL: Final = ("initialize", "resources/subscribe", "resources/unsubscribe")
"""Methods that are not served like the others where nothing is kept."""


def assumed_handshake(app: StreamableHTTP, exchange: Exchange, request_id: Any) -> Handshake:
    """What a client must have agreed on, with whomever.

    Raises:
        Refused: The revision is not served: the one that it states, or the one that not
            stating any is taken for (R-HTTPL-12).
    """
    revision = stated_revision(app, exchange, request_id)
    if revision is None:
        revision = V2025_03_26
        if revision not in app.server.protocol_versions:
            served = ", ".join(app.server.protocol_versions)
            raise Refused(
                400, InvalidRequest(f"MCP-Protocol-Version is missing; served are {served}"), request_id=request_id
            )
    return Handshake(revision, _NO_CAPABILITIES, _NOBODY)


async def post_stateless(app: StreamableHTTP, exchange: Exchange, body: bytes, auth: Any) -> bool:
    """Answer a request that is plainly one of this era; whether it was.

    What else may come as well, `post_frame` knows.
    """
    version = exchange.head.version
    if version is None or version not in app.handshakes:
        return False
    state = app.server.entered if app.is_ready else None
    if state is None:
        state = await app.state()
    peer = LonePeer(app, exchange, state, auth, Handshake(version, _NO_CAPABILITIES, _NOBODY))
    call = app.server.dispatcher.open_whole(body, peer)
    if call is None or call.request.method in _SPECIAL or call.ctx.protocol_version != version:
        return False
    started = begun(peer, call)
    message = started if isinstance(started, bytes) else await waited(app, peer, started)
    if message is None or peer.failure is not None:
        await sent(app, peer, peer.answer, message)
    else:
        await peer.result(message)
    return True


async def post_frame(app: StreamableHTTP, exchange: Exchange, frame: Frame, auth: Any) -> None:
    """Answer any other message.

    Raises:
        Refused: The version is wrong.
    """
    state = await app.state()
    if not isinstance(frame, Request):
        await notified(LonePeer(app, exchange, state, auth, assumed_handshake(app, exchange, None)), frame)
        await exchange.reply(202)
        return
    handshake = None if frame.method == "initialize" else assumed_handshake(app, exchange, frame.id)
    peer = LonePeer(app, exchange, state, auth, handshake)
    message = await answered(app, peer, frame)
    await sent(app, peer, peer.answer, message)

"""POST in the handshake-era revisions where no sessions are kept.

Every request stands for itself; the version header says what it is of. Knows the
dispatcher; nothing of streams that last.
Spec: 2025-11-25/basic/transports, "Session Management".
"""

from __future__ import annotations

from typing import Any, Final

from mcp_core import types as t
from mcp_core.auth import AccessToken
from mcp_core.errors import InvalidRequest
from mcp_core.messages import Frame, Request
from mcp_core.revisions import V2025_03_26
from mcp_core.session import Handshake
from mcp_core.transports.streamable_http.exchange import Exchange, Refused
from mcp_core.transports.streamable_http.legacy_calls import (
    await_call,
    handle_notification,
    handle_request,
    send_response,
    start_call,
    stated_revision,
)
from mcp_core.transports.streamable_http.peers import SessionlessPeer
from mcp_core.transports.streamable_http.service import HTTPService

__all__ = ["assumed_handshake", "post_frame", "post_sessionless"]

_NO_CAPABILITIES: Final = t.ClientCapabilities()
_NOBODY: Final = t.Implementation(name="", version="")
_SPECIAL: Final = ("initialize", "resources/subscribe", "resources/unsubscribe")
"""Methods that are not served like the others where nothing is kept."""


def assumed_handshake(service: HTTPService, exchange: Exchange, request_id: Any) -> Handshake:
    """Return the handshake that a client without a session must have made earlier.

    Raises:
        Refused: The revision is not served: the one that it states, or the one that not
            stating any is taken for (R-HTTPL-12).
    """
    revision = stated_revision(service, exchange, request_id)
    if revision is None:
        revision = V2025_03_26
        if revision not in service.server.protocol_versions:
            served = ", ".join(service.server.protocol_versions)
            raise Refused(
                400, InvalidRequest(f"MCP-Protocol-Version is missing; served are {served}"), request_id=request_id
            )
    return Handshake(revision, _NO_CAPABILITIES, _NOBODY)


async def post_sessionless(service: HTTPService, exchange: Exchange, body: bytes, auth: AccessToken | None) -> bool:
    """Answer a request that is plainly one of this era; whether it was.

    What else may come as well, `post_frame` knows.
    """
    version = exchange.parsed_headers.version
    if version is None or version not in service.handshakes:
        return False
    state = service.server.lifespan_state if service.is_ready else None
    if state is None:
        state = await service.state()
    peer = SessionlessPeer(service, exchange, state, auth, Handshake(version, _NO_CAPABILITIES, _NOBODY))
    call = service.server.dispatcher.open_single_pass(body, peer)
    if call is None or call.request.method in _SPECIAL or call.ctx.protocol_version != version:
        return False
    started = start_call(peer, call)
    message = started if isinstance(started, bytes) else await await_call(service, peer, started)
    if message is None or peer.failure is not None:
        await send_response(service, peer, peer.answer, message)
    else:
        await peer.result(message)
    return True


async def post_frame(service: HTTPService, exchange: Exchange, frame: Frame, auth: AccessToken | None) -> None:
    """Answer any other message.

    Raises:
        Refused: The version is wrong.
    """
    state = await service.state()
    if not isinstance(frame, Request):
        await handle_notification(
            SessionlessPeer(service, exchange, state, auth, assumed_handshake(service, exchange, None)), frame
        )
        await exchange.reply(202)
        return
    handshake = None if frame.method == "initialize" else assumed_handshake(service, exchange, frame.id)
    peer = SessionlessPeer(service, exchange, state, auth, handshake)
    message = await handle_request(service, peer, frame)
    await send_response(service, peer, peer.answer, message)

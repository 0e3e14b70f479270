"""POST, GET and DELETE in the handshake-era revisions, in sessions.

One POST brings one message (2025-03-26: or an array); answers go on the stream of the
POST they belong to, everything else on the stream of a GET. A client that goes away
cancels nothing (P-31). Knows sessions and their streams.
Spec: 2025-11-25/basic/transports, "Streamable HTTP"; R-HTTPL-01 to R-HTTPL-13.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Final

import anyio.lowlevel

from mcp_core.auth import AccessToken, principal_of
from mcp_core.backend.interruptible import background_tasks
from mcp_core.errors import InternalError, InvalidRequest
from mcp_core.messages import (
    Frame,
    Malformed,
    Request,
    decode_batch,
    encode_error,
)
from mcp_core.revisions import V2025_03_26, V2025_11_25
from mcp_core.session import initialize_in_batch
from mcp_core.transports.streamable_http.exchange import Exchange, Refused, event
from mcp_core.transports.streamable_http.legacy_calls import (
    LegacyPeer,
    handle_notification,
    handle_request,
    send_response,
    stated_revision,
)
from mcp_core.transports.streamable_http.legacy_sessionless import assumed_handshake
from mcp_core.transports.streamable_http.parsed_headers import Header
from mcp_core.transports.streamable_http.peers import SessionlessPeer, SessionPeer
from mcp_core.transports.streamable_http.responses import HTTPResponse
from mcp_core.transports.streamable_http.resumable import GuardedStore, ResumableStream, StoreFailed
from mcp_core.transports.streamable_http.service import HTTPService
from mcp_core.transports.streamable_http.sessions import MAX_IN_USE, GetStream, HTTPSession

__all__ = ["delete_session", "listen", "post_batch", "post_handshake"]

SESSION_ID: Final = b"mcp-session-id"
LAST_EVENT_ID: Final = b"last-event-id"


async def post_handshake(service: HTTPService, exchange: Exchange, frame: Frame, auth: AccessToken | None) -> None:
    """Answer one message.

    Raises:
        Refused: There is no such session, or no room for one, or the version is wrong.
    """
    if isinstance(frame, Request) and frame.method == "initialize":
        await _initialize(service, exchange, frame, auth)
        return
    session = _session(service, exchange, auth, request_id=frame.id if isinstance(frame, Request) else None)
    if isinstance(frame, Request):
        _check_room(session, frame.id)
    state = await service.state()
    with session:
        if not isinstance(frame, Request):
            await handle_notification(SessionPeer(service.server, session, exchange, None, state, auth), frame)
            await exchange.reply(202)
            return
        store, stored = service.store, None
        if store is not None:
            stored = ResumableStream(store, session.next_stream_id(), primes=_primes(session))
        answer = HTTPResponse(exchange, json_only=service.options.json_response, stored=stored)
        peer = SessionPeer(service.server, session, exchange, answer, state, auth)
        if stored is None:
            await send_response(service, peer, answer, await handle_request(service, peer, frame))
        else:
            await _send_kept(service, peer, frame, stored, answer)


async def _send_kept(
    service: HTTPService, peer: SessionPeer, frame: Request, stored: ResumableStream, answer: HTTPResponse
) -> None:
    """Answer on a stream that can be resumed."""
    peer.session.streams[stored.stream_id] = stored
    try:
        if stored.primes and answer.can_stream:
            await answer.prime()
        await send_response(service, peer, answer, await handle_request(service, peer, frame))
    finally:
        peer.session.streams.pop(stored.stream_id, None)


async def post_batch(service: HTTPService, exchange: Exchange, body: bytes, auth: AccessToken | None) -> None:
    """Answer an array, which only 2025-03-26 knows (P-29), in a session or without.

    Raises:
        Refused: The client has agreed on another revision, or the array is empty.
    """
    session = None if service.options.stateless_http else _session(service, exchange, auth, request_id=None)
    handshake = assumed_handshake(service, exchange, None) if session is None else session.handshake
    if handshake is None or handshake.revision != V2025_03_26:
        raise Refused(400, InvalidRequest("the body must be a single JSON-RPC message; 2025-03-26 alone knows arrays"))
    frames = decode_batch(body)
    if isinstance(frames, Malformed):
        raise Refused(400, frames.error, request_id=frames.id)
    answer = HTTPResponse(exchange, json_only=service.options.json_response)
    state = await service.state()
    with nullcontext() if session is None else session:
        answers: list[bytes] = []
        size = 0
        for frame in frames:
            peer = (
                SessionlessPeer(service, exchange, state, auth, handshake, answer)
                if session is None
                else SessionPeer(service.server, session, exchange, answer, state, auth)
            )
            if size > MAX_BATCH_ANSWER and isinstance(frame, Request):
                message: bytes | None = encode_error(frame.id, _TOO_MUCH)
            else:
                message = await _element(service, peer, frame)
            if message is not None:
                answers.append(message)
                size += len(message)
            await anyio.lowlevel.checkpoint()  # each is a request's worth of work: others have a turn
        if answers:
            await answer.result(b"[%b]" % b",".join(answers))
        else:
            await answer.nothing()


async def _element(service: HTTPService, peer: LegacyPeer, frame: Frame) -> bytes | None:
    """Return the response to one message of an array, if it has one."""
    if isinstance(frame, Malformed):
        return encode_error(frame.id, frame.error) if frame.answerable else None
    if not isinstance(frame, Request):
        await handle_notification(peer, frame)
        return None
    try:
        if frame.method == "initialize":
            raise Refused(400, initialize_in_batch())
        return await handle_request(service, peer, frame)
    except Refused as refused:
        message = encode_error(frame.id, refused.error)
        service.server.dispatcher.refused_request(frame, peer, message)
        return message


MAX_BATCH_ANSWER: Final = 16_777_216
"""Bytes of responses to one array; what would come after them is not done."""

_TOO_MUCH: Final = InternalError(
    f"the answers to this batch are larger than {MAX_BATCH_ANSWER} bytes; send fewer at once"
)


async def listen(service: HTTPService, exchange: Exchange, auth: AccessToken | None) -> None:
    """GET: the stream for what belongs to no request, or the rest of one whose connection was lost.

    Raises:
        Refused: There is no stream to give (405), no such session (404).
    """
    if (
        service.options.stateless_http
        or SESSION_ID not in exchange.parsed_headers.fields
        or not exchange.parsed_headers.accepts.stream
    ):
        raise service.method_not_allowed(exchange)
    session = _session(service, exchange, auth, request_id=None)
    _check_room(session, None)
    with session:
        store = service.store
        last = exchange.parsed_headers.text(LAST_EVENT_ID)
        if store is None:
            await _hold_open(service, exchange, session)
        elif last is not None:
            await _resume(service, exchange, session, store, last)
        else:
            await _open_get_stream(service, exchange, session, store)


async def delete_session(service: HTTPService, exchange: Exchange, auth: AccessToken | None) -> None:
    """DELETE: the client is done.

    Raises:
        Refused: There are no sessions (405), or not this one (404).
    """
    if service.options.stateless_http:
        raise service.method_not_allowed(exchange)
    session = _session(service, exchange, auth, request_id=None)
    service.sessions.remove(session)
    await exchange.reply(200)


# --- sessions ---------------------------------------------------------------------------------------


def _session(service: HTTPService, exchange: Exchange, auth: AccessToken | None, *, request_id: Any) -> HTTPSession:
    """Return the session that a request belongs to."""
    stated_revision(service, exchange, request_id)
    session_id = exchange.parsed_headers.text(SESSION_ID)
    if session_id is None:
        raise Refused(
            400,
            InvalidRequest("Mcp-Session-Id is missing; initialize gives one, every later request sends it"),
            request_id=request_id,
        )
    found = service.sessions.find(session_id, None if auth is None else principal_of(auth))
    if found is None:
        raise Refused(404, InvalidRequest("Session not found; start again with initialize"), request_id=request_id)
    return found


def _check_room(session: HTTPSession, request_id: Any) -> None:
    """Refuse what would be one request of a session too many (429)."""
    if session.users >= MAX_IN_USE:
        busy = InternalError(f"more than {MAX_IN_USE} requests of this session are in progress; wait for answers")
        raise Refused(429, busy, request_id=request_id, headers=[_RETRY])


async def _initialize(service: HTTPService, exchange: Exchange, frame: Request, auth: AccessToken | None) -> None:
    session = HTTPSession(service.sessions.new_id())
    session.principal = None if auth is None else principal_of(auth)
    answer = HTTPResponse(exchange, json_only=service.options.json_response)
    peer = SessionPeer(service.server, session, exchange, answer, await service.state(), auth)
    message = await handle_request(service, peer, frame)
    if session.handshake is None:  # refused: there is no id to give out
        await send_response(service, peer, answer, message)
        return
    if not service.sessions.add(session):
        raise Refused(
            503, InvalidRequest("there are too many sessions (max_sessions)"), request_id=frame.id, headers=[_RETRY]
        )
    session.forget = service.follow(session)
    session.observe = service.server.observers.sent
    answer.headers = ((SESSION_ID, session.session_id.encode()),)
    await send_response(service, peer, answer, message)


_RETRY: Final[Header] = (b"retry-after", b"10")


def _primes(session: HTTPSession) -> bool:
    """Return whether the client knows events without a message, which came with 2025-11-25."""
    return session.handshake is not None and session.handshake.revision >= V2025_11_25


# --- the GET stream -----------------------------------------------------------------------------------


async def _hold_open(service: HTTPService, exchange: Exchange, session: HTTPSession) -> None:
    """Without a store: what comes while the client listens, and no more."""
    if session.get_stream is not None:
        session.get_stream.close()  # one stream at a time: a message must not go out twice
    listener = session.get_stream = GetStream(exchange)
    await exchange.open_stream()
    await exchange.write(b": open\n\n")

    async def watch() -> None:
        await exchange.gone()
        listener.close()

    try:
        async with background_tasks(watch, lambda: service.comment(exchange)):
            await listener.run()
    finally:
        if session.get_stream is listener:
            session.get_stream = None


async def _open_get_stream(service: HTTPService, exchange: Exchange, session: HTTPSession, store: GuardedStore) -> None:
    """The client's own stream from here on; what comes while it is away is kept for it."""
    if session.stored_get_stream is None:
        session.stored_get_stream = ResumableStream(store, session.next_stream_id(), primes=_primes(session))
        session.streams[session.stored_get_stream.stream_id] = session.stored_get_stream
    await exchange.open_stream()
    await session.stored_get_stream.open(exchange)
    await _read(service, exchange, session.stored_get_stream)


async def _resume(
    service: HTTPService, exchange: Exchange, session: HTTPSession, store: GuardedStore, last: str
) -> None:
    """Send what came on a stream after this event, and go on with it if it has not ended.

    Raises:
        Refused: The event is not known (no 404: that would say that the session is gone, R-HTTPL-11), or the
            store does not say.
    """
    try:
        known = await store.later(last) if len(last) <= _LONGEST_EVENT_ID else None
        if known is None or not session.owns(known[0]):
            raise _unknown_event()
        stream_id, events = known
        stored = session.streams.get(stream_id)
        if stored is None:  # it has ended, and what came last on it may have been kept meanwhile
            known = await store.later(last)
            if known is None:
                raise _unknown_event()
            await exchange.open_stream()
            for event_id, message in known[1]:
                await exchange.write(event(message, event_id))
        else:
            await stored.resume(exchange, last, events)
            await _read(service, exchange, stored)
            return
    except StoreFailed:
        if not exchange.started:
            away = InternalError("the events of this stream cannot be read at the moment; come back later")
            raise Refused(503, away, headers=[_RETRY]) from None
    await exchange.end_stream()


def _unknown_event() -> Refused:
    return Refused(400, InvalidRequest("Last-Event-ID is not known here; GET without it opens a new stream"))


_LONGEST_EVENT_ID: Final = 1024


async def _read(service: HTTPService, exchange: Exchange, stored: ResumableStream) -> None:
    """Hold a response open for as long as it has the stream."""

    async def watch() -> None:
        await exchange.gone()
        stored.detach(exchange)

    async with background_tasks(watch, lambda: service.comment(exchange)):
        await stored.wait_detached(exchange)
    await exchange.end_stream()

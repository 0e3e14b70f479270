"""Handshake-era sessions: what lasts from one HTTP request of a client to its next.

Knows what is in flight and which stream a message goes on; nothing of headers or bodies.
Spec: 2025-11-25/basic/transports, "Session Management"; R-HTTPL-04, R-HTTPL-05,
R-HTTPL-09 to R-HTTPL-11.
"""

from __future__ import annotations

import enum
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final

import anyio

from mcp_core.auth import Principal
from mcp_core.backend import Future, Work, current_backend, spawn_detached
from mcp_core.backend.interruptible import Interruptible
from mcp_core.close_callbacks import CloseCallbacks
from mcp_core.errors import ConnectionClosed
from mcp_core.messages import RequestId
from mcp_core.queue_logger import QueueLogger
from mcp_core.session import Handshake, JSONRPCSession
from mcp_core.transports.streamable_http.exchange import Exchange, event
from mcp_core.transports.streamable_http.resumable import ResumableStream

__all__ = ["SESSION_TRANSITIONS", "HTTPSession", "SessionLife", "SessionTable"]

BACKLOG: Final = 256
"""Messages that wait for a client's own stream; then the oldest are dropped."""

BACKLOG_BYTES: Final = 1_048_576
"""Bytes of such messages."""

MAX_IN_USE: Final = 512
"""Requests of one session that may be in progress, GETs included."""

UNUSED_FOR: Final = 60.0
"""Seconds without use after which a session makes room for another, where there is no room."""

_SHARE: Final = 4
"""One caller, known by its token, has at most this part of all sessions: one in so many."""

_SWEPT: Final = 4
"""Sessions that are looked at, at the most, each time that one is asked for."""

_log = QueueLogger(__name__)


class Outbox:
    """Messages that wait to be sent; where they are too many, the oldest are dropped."""

    def __init__(self) -> None:
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._has_dropped = False  # one record in the log for all that are dropped

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, message: bytes) -> None:
        """Take a message."""
        self._messages.append(message)
        self._bytes += len(message)
        while len(self._messages) > BACKLOG or (self._bytes > BACKLOG_BYTES and len(self._messages) > 1):
            self.take()
            if not self._has_dropped:
                self._has_dropped = True
                _log.warning("messages to a client were dropped: it does not read its own stream")

    def take(self) -> bytes:
        """Give the oldest."""
        message = self._messages.popleft()
        self._bytes -= len(message)
        return message


class SessionLife(enum.Enum):
    """Life of a session, as the table of sessions sees it."""

    IDLE = "idle"
    """No request of the client's is in progress; it is removed after the idle timeout, or to make room."""
    IN_USE = "in use"
    """Requests are in progress, a GET stream included; it is not removed for being idle."""
    CLOSED = "closed"
    """Removed: its id is unknown, what waits for the client has failed, suspended handlers are cancelled."""


SESSION_TRANSITIONS: Final[Mapping[SessionLife, Mapping[str, SessionLife]]] = {
    SessionLife.IDLE: {"enter": SessionLife.IN_USE, "close": SessionLife.CLOSED},
    SessionLife.IN_USE: {
        "enter": SessionLife.IN_USE,
        "last exit": SessionLife.IDLE,
        "close": SessionLife.CLOSED,
    },
    SessionLife.CLOSED: {"enter": SessionLife.CLOSED, "last exit": SessionLife.CLOSED, "close": SessionLife.CLOSED},
}
"""Where each event leads."""


class HTTPSession:
    """One client.

    A context manager: entered by each request of the client's, it is in use, and not idle.
    """

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        # Of ours to the client; its own requests are in `running`, since each POST is answered by itself.
        self.requests: JSONRPCSession[object, Future] = JSONRPCSession()
        self.handshake: Handshake | None = None
        self.principal: Principal | None = None  # who began it: no other token opens it. `None`: no token is asked for
        # Suspended handlers by request id; several, since a client may use one id twice at once.
        self.running: dict[RequestId, list[Interruptible]] = {}
        # Stored streams by id; one is dropped when it has ended and was read.
        self.streams: dict[str, ResumableStream] = {}
        self.get_stream: GetStream | None = None  # the client's GET, without an event store: gone with its connection
        # The same with a store: stays while the client is away, and is resumed.
        self.stored_get_stream: ResumableStream | None = None
        self._outbox = Outbox()
        self._is_pumping = False  # one task empties the outbox at a time
        self._pumping = anyio.Lock()  # held while it is emptied; the end of the session waits for it
        self.close_callbacks: CloseCallbacks = CloseCallbacks()
        self.forget: Callable[[], None] = lambda: None  # unsubscribes from change events; set by what subscribed
        self.observe: Callable[[bytes], None] = lambda message: None
        """Called with each message that goes on the client's own stream."""
        self.last_used: float = time.monotonic()  # monotonic seconds, set at the end of each request
        self.users: int = 0
        """Requests in progress."""
        self.life: SessionLife = SessionLife.IDLE
        self._stream_number = 0  # of the newest stream, in its id

    def __enter__(self) -> None:
        self.users += 1
        self.life = SESSION_TRANSITIONS[self.life]["enter"]

    def __exit__(self, *_: object) -> None:
        self.users -= 1
        self.last_used = time.monotonic()
        if not self.users:
            self.life = SESSION_TRANSITIONS[self.life]["last exit"]

    def touch(self) -> None:
        """Note that it is in use."""
        self.last_used = time.monotonic()

    def next_stream_id(self) -> str:
        """Return an id for a stream: this session's, and no other's."""
        self._stream_number += 1
        return f"{self.session_id}/{self._stream_number}"

    def owns(self, stream_id: str) -> bool:
        """Return whether a stream is one of this session's."""
        return stream_id.rpartition("/")[0] == self.session_id

    def notify(self, message: bytes) -> bool:
        """Send what belongs to no request, on the client's own stream; whether there is one.

        Kept for it where there is a store.
        """
        if self.stored_get_stream is not None:
            self.observe(message)
            self._outbox.put(message)
            if self.stored_get_stream.is_stuck and len(self._outbox) >= BACKLOG // 2:
                self.stored_get_stream.displace()  # it takes nothing: what comes is kept until it comes back
            if not self._is_pumping:
                self._is_pumping = True
                spawn_detached(self._pump)
        elif self.get_stream is not None:
            self.observe(message)
            self.get_stream.put(message)
        else:
            return False
        return True

    async def _pump(self) -> None:
        """Work off what waits. Lets no failure out: on trio it would end the program."""
        try:
            async with self._pumping:
                while self._outbox:
                    message = self._outbox.take()
                    if self.stored_get_stream is not None:
                        await self.stored_get_stream.put(message)
        except Exception as exc:
            _log.error("a message could not be sent to a session", exc=exc)
        finally:
            self._is_pumping = False

    def cancel(self, request_id: RequestId) -> None:
        """The client wants no response to this request any more."""
        for work in self.running.get(request_id, ()):
            work.interrupt()

    def end_streams(self) -> None:
        """Close long-lived streams; requests in flight go on."""
        self.close_callbacks.run()
        if self.get_stream is not None:
            self.get_stream.close()
        if self.stored_get_stream is not None:
            spawn_detached(self._end_get_stream)

    async def _end_get_stream(self) -> None:
        await self._pump()
        if self.stored_get_stream is not None:
            await _quietly(self.stored_get_stream.end())

    def end(self) -> None:
        """Close the session: what waits for the client's responses fails, its handlers are cancelled."""
        self.life = SESSION_TRANSITIONS[self.life]["close"]
        self.forget()
        for future in self.requests.resolve_all():
            future.set_exception(ConnectionClosed("the session ended before the answer came"))
        self.close_callbacks.run()
        for works in list(self.running.values()):
            for work in list(works):
                work.interrupt()
        if self.get_stream is not None:
            self.get_stream.close()
        spawn_detached(self._cut_off_streams)

    async def _cut_off_streams(self) -> None:
        with anyio.move_on_after(_END_SECONDS):
            await self._pump()
        for stored in list(self.streams.values()):
            await _quietly(stored.cut_off())


_END_SECONDS: Final = 1.0
"""Seconds that what waits for a client may still take when its session ends."""


async def _quietly(work: Work) -> None:
    try:
        await work
    except Exception as exc:
        _log.error("a stream could not be ended", exc=exc)


class GetStream:
    """The stream that a client holds open for what belongs to no request; without a store, as long as it does."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._waiting = Outbox()
        self._woken: Future | None = None  # what `run` waits on while there is nothing to send
        self._closed = False  # `run` ends the stream once the outbox is empty

    def put(self, message: bytes) -> None:
        """Take a message, to be sent soon."""
        self._waiting.put(message)
        self._wake()

    def close(self) -> None:
        """End the stream, after what waits."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        if self._woken is not None:
            self._woken.set_result(None)

    async def run(self) -> None:
        """Send what comes until it is closed."""
        while True:
            while self._waiting:
                await self._exchange.write(event(self._waiting.take()))
            if self._closed:
                break
            self._woken = current_backend().create_future()
            await self._woken.wait()
            self._woken = None
        await self._exchange.end_stream()


class SessionTable:
    """The sessions of one server, bounded in number and in idle time.

    No client can lock others out cheaply. Where there is no room, one goes that its client never came back
    to; else one that was not used for a while. A caller that is known by its token has a part of them at most.
    """

    def __init__(self, max_sessions: int, idle_timeout: float | None) -> None:
        self._max = max_sessions
        self._idle_timeout = idle_timeout
        self._sessions: OrderedDict[str, HTTPSession] = OrderedDict()
        """The least recently used come first."""
        # Sessions that no request has come back to: the first to make room.
        self._unused: OrderedDict[str, HTTPSession] = OrderedDict()
        # So that one caller has a part of all sessions at most.
        self._by_principal: dict[Principal, OrderedDict[str, HTTPSession]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @staticmethod
    def new_id() -> str:
        """Return an id that cannot be guessed."""
        return secrets.token_urlsafe(32)

    def add(self, session: HTTPSession) -> bool:
        """Keep a session; whether there is room for it."""
        self._sweep()
        own: Mapping[str, HTTPSession] = (
            {} if session.principal is None else self._by_principal.get(session.principal, {})
        )
        if session.principal is not None and len(own) >= max(1, self._max // _SHARE):
            self._make_room(own, 0.0)
        if len(self._sessions) >= self._max and not self._make_room(self._unused, 0.0):
            self._make_room(self._sessions, UNUSED_FOR)
        if len(self._sessions) >= self._max:
            return False
        self._sessions[session.session_id] = self._unused[session.session_id] = session
        if session.principal is not None:
            self._by_principal.setdefault(session.principal, OrderedDict())[session.session_id] = session
        return True

    def _make_room(self, candidates: Mapping[str, HTTPSession], idle_for: float) -> bool:
        """End the first of these that is not in use, if it was idle for so long; few are looked at."""
        now = time.monotonic()
        for session in list(islice(candidates.values(), _SWEPT)):
            if session.life is SessionLife.IDLE and now - session.last_used >= idle_for:
                self.remove(session)
                return True
        return False

    def find(self, session_id: str, principal: Principal | None = None) -> HTTPSession | None:
        """Return the session of this id, if it is this caller's; finding it is using it."""
        self._sweep()
        session = self._sessions.get(session_id) if len(session_id) == _ID_LENGTH else None
        if session is None or session.principal != principal:
            return None
        if self._is_idle(session, time.monotonic()):
            self.remove(session)
            return None
        session.touch()
        self._sessions.move_to_end(session_id)
        self._unused.pop(session_id, None)
        if session.principal is not None:
            self._by_principal[session.principal].move_to_end(session_id)
        return session

    def remove(self, session: HTTPSession) -> None:
        """End a session."""
        if self._sessions.pop(session.session_id, None) is None:
            return
        self._unused.pop(session.session_id, None)
        own = None if session.principal is None else self._by_principal.get(session.principal)
        if own is not None and session.principal is not None:
            own.pop(session.session_id, None)
            if not own:
                del self._by_principal[session.principal]
        session.end()

    def end_streams(self) -> None:
        """End the streams that belong to no request."""
        for session in list(self._sessions.values()):
            session.end_streams()

    def end_all(self) -> None:
        """End every session."""
        for session in list(self._sessions.values()):
            self.remove(session)

    def _is_idle(self, session: HTTPSession, now: float) -> bool:
        if self._idle_timeout is None or session.life is SessionLife.IN_USE:
            return False
        return now - session.last_used > self._idle_timeout

    def _sweep(self) -> None:
        """End some of those that were not used for long; one that is in use is looked at later again."""
        if not self._sessions or self._idle_timeout is None:
            return
        now = time.monotonic()
        first = next(iter(self._sessions.values()))
        if first.life is SessionLife.IDLE and not self._is_idle(first, now):
            return  # and so are all others
        for session in list(islice(self._sessions.values(), _SWEPT)):
            if self._is_idle(session, now):
                self.remove(session)
            elif session.life is SessionLife.IN_USE:
                self._sessions.move_to_end(session.session_id)
            else:
                return


_ID_LENGTH: Final = len(SessionTable.new_id())

"""Events kept for clients that come back for them.

Knows streams and messages as opaque; nothing of HTTP or sessions.
Spec: 2025-11-25/basic/transports, "Resumability and Redelivery"; R-HTTPL-07, R-HTTPL-08.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from typing import Final, Protocol

from mcp_core.transports.streamable_http.checks import positive, seconds

__all__ = ["EventStore", "InMemoryEventStore"]


class EventStore(Protocol):
    """Keeps the events of streams for a while, here or in a database."""

    async def store_event(self, stream_id: str, message: bytes) -> str:
        """Keep a message, empty for a priming event; its id, unique over all streams."""
        ...

    async def replay_events_after(self, event_id: str) -> tuple[str, list[tuple[str, bytes]]] | None:
        """Return the stream of this event, and its later events in order; `None` if it is not known."""
        ...


class _Session:
    """What is kept for one session."""

    __slots__ = ("bytes", "ids", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.bytes = 0  # of the session's events; the oldest go first where they are too many
        self.ids: deque[str] = deque()  # of its events, the oldest first; may hold ids that are gone already


class _Event:
    """One message that is kept."""

    __slots__ = ("kept_at", "message", "session", "stream_id")

    def __init__(self, stream_id: str, session: _Session, message: bytes, now: float) -> None:
        self.stream_id = stream_id
        self.session = session
        self.message = message
        self.kept_at = now

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        return len(self.message) + 200


class InMemoryEventStore:
    """Keeps up to `max_bytes` of messages, `max_session_bytes` of them for each session, for `max_age` seconds.

    Where there is no room for all, the session that has most gives way: none makes the store forget what
    others will come back for. Among sessions that have about the same, the oldest event goes. What stands
    before the last slash of a stream id is the session.

    Raises:
        TypeError, ValueError: A bound is not a positive number.
    """

    def __init__(
        self, max_bytes: int = 16_777_216, max_session_bytes: int = 4_194_304, max_age: float = 3600.0
    ) -> None:
        self._max_bytes = positive("max_bytes", max_bytes, "bytes")
        self._max_session_bytes = positive("max_session_bytes", max_session_bytes, "bytes")
        seconds("max_age", max_age)
        self._max_age = max_age
        self._bytes = 0  # of all events together
        self._number = 0  # of the newest event; ids are this number, so later ones are greater
        self._events: OrderedDict[str, _Event] = OrderedDict()
        """The oldest come first."""
        # Ids of each stream's events, in order: a resumption reads on from its own.
        self._streams: dict[str, deque[str]] = {}
        # What each session has stored, so that one cannot push out the events of others.
        self._sessions: dict[str, _Session] = {}
        self._largest: _Session | None = None
        """The session that had most when all were looked at; that is done again once it has a quarter less."""
        self._enough = 0
        self._until_search = 0
        """How many events go before all sessions are looked at again, where there are many."""

    async def store_event(self, stream_id: str, message: bytes) -> str:
        """Keep a message."""
        now = time.monotonic()
        self._number += 1
        event_id = f"e{self._number}"
        name = _session_of(stream_id)
        session = self._sessions.setdefault(name, _Session(name))
        self._events[event_id] = kept = _Event(stream_id, session, message, now)
        self._streams.setdefault(stream_id, deque()).append(event_id)
        session.ids.append(event_id)
        session.bytes += kept.size
        self._bytes += kept.size
        while session.bytes > self._max_session_bytes and len(session.ids) > 1:
            self._forget_oldest(session)
        while self._bytes > self._max_bytes and len(self._events) > 1:
            self._forget_oldest(self._giving_way())
        while (oldest := self._oldest()).kept_at < now - self._max_age:
            self._forget_oldest(oldest.session)
        return event_id

    def _oldest(self) -> _Event:
        return next(iter(self._events.values()))

    def _giving_way(self) -> _Session:
        """Return the session whose oldest event goes."""
        oldest = self._oldest().session
        if self._largest is None or self._largest.bytes < self._enough:
            if self._until_search > 0:
                self._until_search -= 1
            else:
                self._largest = max(self._sessions.values(), key=lambda session: session.bytes)
                self._enough = max(1, self._largest.bytes * 3 // 4)
                self._until_search = len(self._sessions) - _FEW
        largest = self._largest
        return largest if largest is not None and largest.bytes > 2 * oldest.bytes else oldest

    def _forget_oldest(self, session: _Session) -> None:
        event = self._events.pop(session.ids.popleft())
        session.bytes -= event.size
        self._bytes -= event.size
        if not session.ids:
            del self._sessions[session.name]
        kept = self._streams[event.stream_id]
        kept.popleft()
        if not kept:
            del self._streams[event.stream_id]

    async def replay_events_after(self, event_id: str) -> tuple[str, list[tuple[str, bytes]]] | None:
        """Return the stream of this event, and its later events."""
        known = self._events.get(event_id)
        if known is None:
            return None
        ids = list(self._streams[known.stream_id])
        later = ids[ids.index(event_id) + 1 :]
        return known.stream_id, [(later_id, self._events[later_id].message) for later_id in later]


_FEW: Final = 64
"""Sessions that can be looked at each time."""


def _session_of(stream_id: str) -> str:
    return stream_id.rpartition("/")[0]

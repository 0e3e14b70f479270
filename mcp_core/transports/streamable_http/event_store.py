"""Events kept for clients that come back for them.

Knows streams and messages as opaque; nothing of HTTP or sessions.
Spec: 2025-11-25/basic/transports, "Resumability and Redelivery"; R-HTTPL-07, R-HTTPL-08.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from mcp_core.transports.streamable_http.checks import positive

__all__ = ["EventStore", "InMemoryEventStore"]


class EventStore(Protocol):
    """Keeps the events of streams for a while, here or in a database."""

    async def store_event(self, stream_id: str, message: bytes) -> str:
        """Keep a message, empty for a priming event; its id, unique over all streams."""
        ...

    async def replay_events_after(self, event_id: str) -> tuple[str, list[tuple[str, bytes]]] | None:
        """The stream of this event, and its later events in order; `None` if it is not known."""
        ...


class _Session:
    """What is kept for one session."""

    __slots__ = ("bytes", "ids")

    def __init__(self) -> None:
        self.bytes = 0
        self.ids: deque[str] = deque()


class InMemoryEventStore:
    """Keeps up to `max_bytes` of messages, `max_session_bytes` of them for each session; the oldest go first.

    Where there is no room for all, the session that has most gives way: none makes the store forget what
    others will come back for. What stands before the last slash of a stream id is the session.

    Raises:
        TypeError, ValueError: A bound is no positive number of bytes.
    """

    def __init__(self, max_bytes: int = 16_777_216, max_session_bytes: int = 4_194_304) -> None:
        self._max_bytes = positive("max_bytes", max_bytes, "bytes")
        self._max_session_bytes = positive("max_session_bytes", max_session_bytes, "bytes")
        self._bytes = 0
        self._number = 0
        self._events: dict[str, tuple[str, bytes]] = {}
        self._streams: dict[str, deque[str]] = {}
        self._sessions: dict[str, _Session] = {}

    async def store_event(self, stream_id: str, message: bytes) -> str:
        """Keep a message."""
        self._number += 1
        event_id = f"e{self._number}"
        self._events[event_id] = (stream_id, message)
        self._streams.setdefault(stream_id, deque()).append(event_id)
        session = self._sessions.setdefault(_session_of(stream_id), _Session())
        session.ids.append(event_id)
        session.bytes += _size(message)
        self._bytes += _size(message)
        while session.bytes > self._max_session_bytes and len(session.ids) > 1:
            self._forget_oldest(session)
        while self._bytes > self._max_bytes and len(self._events) > 1:
            # The largest has at least its share; to look for it each time would be work for nothing.
            has_its_share = session.ids and session.bytes * len(self._sessions) >= self._bytes
            self._forget_oldest(session if has_its_share else self._largest())
        return event_id

    def _largest(self) -> _Session:
        return max(self._sessions.values(), key=lambda session: session.bytes)

    def _forget_oldest(self, session: _Session) -> None:
        stream_id, message = self._events.pop(session.ids.popleft())
        session.bytes -= _size(message)
        self._bytes -= _size(message)
        if not session.ids:
            del self._sessions[_session_of(stream_id)]
        kept = self._streams[stream_id]
        kept.popleft()
        if not kept:
            del self._streams[stream_id]

    async def replay_events_after(self, event_id: str) -> tuple[str, list[tuple[str, bytes]]] | None:
        """The stream of this event, and its later events."""
        known = self._events.get(event_id)
        if known is None:
            return None
        stream_id = known[0]
        ids = list(self._streams[stream_id])
        later = ids[ids.index(event_id) + 1 :]
        return stream_id, [(later_id, self._events[later_id][1]) for later_id in later]


def _size(message: bytes) -> int:
    return len(message) + 200  # what an entry takes besides


def _session_of(stream_id: str) -> str:
    return stream_id.rpartition("/")[0]

"""Events kept for clients that come back for them.

Knows streams and messages as opaque; nothing of HTTP or sessions.
Spec: 2025-11-25/basic/transports, "Resumability and Redelivery"; R-HTTPL-07, R-HTTPL-08.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Protocol

__all__ = ["EventStore", "InMemoryEventStore"]


class EventStore(Protocol):
    """Keeps the events of streams for a while, here or in a database."""

    async def store_event(self, stream_id: str, message: bytes) -> str:
        """Keep a message, empty for a priming event; its id, unique over all streams."""
        ...

    async def replay_events_after(self, event_id: str) -> tuple[str, list[tuple[str, bytes]]] | None:
        """The stream of this event, and its later events in order; `None` if it is not known."""
        ...


class InMemoryEventStore:
    """Keeps up to `max_bytes` of messages; the oldest go first."""

    def __init__(self, max_bytes: int = 16 * 2**20) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._number = 0
        self._events: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self._streams: dict[str, deque[str]] = {}

    async def store_event(self, stream_id: str, message: bytes) -> str:
        """Keep a message."""
        self._number += 1
        event_id = f"e{self._number}"
        self._events[event_id] = (stream_id, message)
        self._streams.setdefault(stream_id, deque()).append(event_id)
        self._bytes += _size(message)
        while self._bytes > self._max_bytes and len(self._events) > 1:
            self._forget_oldest()
        return event_id

    def _forget_oldest(self) -> None:
        _, (stream_id, message) = self._events.popitem(last=False)
        self._bytes -= _size(message)
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

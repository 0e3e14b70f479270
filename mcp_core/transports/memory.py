"""Two connections in one process, through real bytes.

Each message is handed over in a later turn of the loop, in order, as a transport
would: who sends is never called back from inside its own call.
"""

from __future__ import annotations

from collections import deque

from mcp_core.backend import Backend
from mcp_core.channel import Receiver

__all__ = ["MemoryChannel", "memory_pair"]


class MemoryChannel:
    """One end. What it sends, the other end's receiver gets."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._receiver: Receiver | None = None
        self._other: MemoryChannel | None = None
        self._queue: deque[bytes] = deque()
        self._planned = False
        self._closed = False

    def join(self, other: MemoryChannel) -> None:
        """Send to this end from now on."""
        self._other = other

    def start(self, receiver: Receiver) -> None:
        """Take messages from now on; those that came before are handed over first."""
        self._receiver = receiver
        self._plan()

    def send(self, message: bytes, *, last: bool = False) -> None:
        """Hand a message to the other end."""
        other = self._other
        if other is not None and not self._closed and not other._closed:
            other._queue.append(message)
            other._plan()

    @property
    def congested(self) -> bool:
        """Never: what is sent is taken in the next turn of the loop."""
        return False

    async def drained(self) -> None:
        """Return at once."""

    def close(self) -> None:
        """Send and take no more; both ends are told, once."""
        for end in (self._other, self):
            if end is not None and not end._closed:
                end._closed = True
                if end._receiver is not None:
                    end._receiver.ended()

    def _plan(self) -> None:
        if not self._planned and self._receiver is not None and self._queue:
            self._planned = True
            self._backend.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._planned = False
        receiver = self._receiver
        while self._queue and receiver is not None and not self._closed:
            receiver.receive(self._queue.popleft())


def memory_pair(backend: Backend) -> tuple[MemoryChannel, MemoryChannel]:
    """Two ends of one connection."""
    left, right = MemoryChannel(backend), MemoryChannel(backend)
    left.join(right)
    right.join(left)
    return left, right

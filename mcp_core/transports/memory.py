"""Two connections in one process, through real bytes.

Each message is handed over in a later turn of the loop, in order, as a transport
would: who sends is never called back from inside its own call.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from mcp_core.backend import Backend, Future
from mcp_core.channel import Receiver

__all__ = ["HIGH_WATER", "MemoryChannel", "memory_pair"]

HIGH_WATER: Final = 256 * 1024
"""Bytes that may wait for the other end before senders that can wait do so."""


class MemoryChannel:
    """One end. What it sends, the other end's receiver gets."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._receiver: Receiver | None = None
        self._other: MemoryChannel | None = None  # the other end; `join` sets both
        self._queue: deque[bytes] = deque()  # messages for the other end that it has not been given yet
        self._size = 0  # bytes in the queue; above the high-water mark the channel is congested
        self._waiters: list[Future] = []
        """Those of the other end, who wait for room in this queue."""
        self._planned = False  # whether a delivery is scheduled: one call for all messages of a turn
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
            other._size += len(message)
            other._plan()

    @property
    def congested(self) -> bool:
        """Whether much waits for the other end, whose receiver is full."""
        other = self._other
        return other is not None and other._size > HIGH_WATER and not self._closed

    async def drained(self) -> None:
        """Wait until the other end has taken most of it, or either end is closed."""
        while self.congested and self._other is not None:
            future = self._backend.create_future()
            waiters = self._other._waiters
            waiters.append(future)
            try:
                await future.wait()
            finally:
                if future in waiters:  # cancelled before its turn came
                    waiters.remove(future)

    def resume(self) -> None:
        """Hand over what waited for the receiver to have room."""
        self._plan()

    def close(self) -> None:
        """Close both ends. Idempotent; `ended` is called once on each."""
        for end in (self._other, self):
            if end is not None and not end._closed:
                end._closed = True
                end._queue.clear()
                end._size = 0
                end._wake()
                if end._receiver is not None:
                    end._receiver.ended()

    def _plan(self) -> None:
        if not self._planned and self._receiver is not None and self._queue:
            self._planned = True
            self._backend.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._planned = False
        receiver = self._receiver
        while self._queue and receiver is not None and not receiver.is_full:
            message = self._queue.popleft()
            self._size -= len(message)
            receiver.receive(message)
        if self._waiters and self._size <= HIGH_WATER:
            self._wake()

    def _wake(self) -> None:
        waiters = list(self._waiters)
        self._waiters.clear()
        for future in waiters:
            future.set_result(None)


def memory_pair(backend: Backend) -> tuple[MemoryChannel, MemoryChannel]:
    """Two ends of one connection."""
    left, right = MemoryChannel(backend), MemoryChannel(backend)
    left.join(right)
    right.join(left)
    return left, right

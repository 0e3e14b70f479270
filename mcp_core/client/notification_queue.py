"""Notifications on their way to the author's callbacks: one at a time, in order, and not without end.

A callback may take its time, and may make requests of its own, whose answers come over the
same connection. So nothing here holds up the reading of messages: up to a bound they wait,
beyond it they are dropped, with a record in the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import anyio

from mcp_core.backend import Backend, settled
from mcp_core.client.callbacks import pass_on
from mcp_core.queue_logger import QueueLogger

__all__ = ["MAX_WAITING", "MAX_WAITING_BYTES", "NotificationQueue"]

MAX_WAITING: Final = 10_000
"""Notifications that may wait for the callbacks; more are dropped."""

MAX_WAITING_BYTES: Final = 16 * 2**20
"""Bytes that they may have together. One of any size may wait alone."""

_log = QueueLogger(__name__)


class NotificationQueue:
    """Callbacks that are still to be called, in the order in which notifications came."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._waiting: deque[tuple[int, Callable[..., object], tuple[object, ...]]] = deque()
        self._bytes = 0
        self._dropped = 0
        self._is_under_way = False
        self._idle = anyio.Event()

    def put(self, size: int, sink: Callable[..., object], *values: object) -> None:
        """Call a callback soon, after those before it; `size` is that of the message that says so."""
        waiting = self._waiting
        if waiting and (len(waiting) >= MAX_WAITING or self._bytes + size > MAX_WAITING_BYTES):
            self._dropped += 1
            if self._dropped == 1:
                _log.warning("notifications are dropped: the callbacks do not keep up with what the server sends")
            return
        waiting.append((size, sink, values))
        self._bytes += size
        if not self._is_under_way:
            self._is_under_way = True
            self._backend.spawn(self._work_off(), self._ended)

    async def _work_off(self) -> None:
        while self._waiting:
            # It stays in the queue, and counts, until it has been taken.
            size, sink, values = self._waiting[0]
            await _called(sink, *values)
            self._waiting.popleft()
            self._bytes -= size

    def _ended(self) -> None:
        if self._dropped > 1:
            _log.warning("%d notifications were dropped", self._dropped)
        self._dropped = 0
        self._waiting.clear()  # only if it was cancelled is there anything left
        self._bytes = 0
        self._is_under_way = False
        self._idle.set()

    async def settled(self, seconds: float) -> None:
        """Wait until all callbacks were called, so many seconds at most."""
        with anyio.move_on_after(seconds):
            while self._is_under_way:
                self._idle = anyio.Event()
                await self._idle.wait()


async def _called(sink: Callable[..., object], *values: object) -> None:
    try:
        await settled(sink(*values))
    except BaseException as exc:
        pass_on(exc)
        _log.error("a callback raised %s", type(exc).__name__, exc=exc)

"""Announcing changes from code that cannot wait: registrations, worker threads.

Brings events onto a loop that serves connections, and there onto the bus. Knows the bus
and loops; nothing of connections.

Theory of operation. `announce` may be called from any thread, so it only queues the event, under a
lock, and asks every attached loop to flush. Which of them is alive cannot be known: a loop may end, or
stop, without notice (test clients, notebooks). So all are asked, each at most once until it has answered,
and the first that runs takes the whole queue and publishes it in a detached task of its own: the
connection that attached the loop may close meanwhile.

Who attaches: each connection for as long as it is open, and each HTTP app for each loop that serves it.
Who detaches: the same; a loop that is over is dropped at the next call. While none is attached the
queue is empty: an event without a listener is dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Protocol

from mcp_core.backend import is_cancellation, spawn_detached
from mcp_core.queue_logger import QueueLogger
from mcp_core.subscriptions import Event, SubscriptionBus

__all__ = ["MAX_WAITING", "PUBLISH_SECONDS", "Announcer", "Loop"]

MAX_WAITING: Final = 1024
"""Events that wait to be published; then the oldest are dropped."""

PUBLISH_SECONDS: Final = 30.0
"""Seconds that a bus may take for one event; then the next has its turn."""

_log = QueueLogger(__name__)


class Loop(Protocol):
    """A loop that can be asked to make a call, from any thread; it need not come to it."""

    def call_threadsafe(self, call: Callable[[], None]) -> None:
        """Make a call on the loop. Does nothing once the loop has ended."""
        ...


class _Attached:
    """A loop that publishes, and whether it was asked to and has not come to it yet."""

    __slots__ = ("asked", "loop")

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.asked = False

    @property
    def is_over(self) -> bool:
        is_over = getattr(self.loop, "is_over", None)
        return is_over is not None and is_over()


class Announcer:
    """Publishes events on an attached loop; while none is attached, events are dropped.

    A loop may end, or stop, without a word. So every one is asked, and whichever comes to it first
    publishes what waits. Publishing belongs to none of them: it goes on when the one whose loop it uses leaves.
    """

    def __init__(self, bus: SubscriptionBus) -> None:
        self._bus = bus
        self._lock = threading.Lock()
        self._attached: list[_Attached] = []
        self._waiting: dict[Event, None] = {}

    def attach(self, loop: Loop) -> Callable[[], None]:
        """Attach a loop to publish on. Returns an idempotent function that detaches it."""
        with self._lock:
            self._attached = [known for known in self._attached if not known.is_over]
            if not self._attached:
                self._waiting.clear()  # nothing listened
            attached = _Attached(loop)
            self._attached.append(attached)
            self._ask()

        def detach() -> None:
            with self._lock:
                if attached in self._attached:
                    self._attached.remove(attached)
                if not self._attached:
                    self._waiting.clear()

        return detach

    def announce(self, event: Event) -> None:
        """Publish an event soon. The same event again, before that, is the same announcement."""
        with self._lock:
            self._attached = [known for known in self._attached if not known.is_over]
            if not self._attached:
                return
            self._waiting.setdefault(event)
            if len(self._waiting) > MAX_WAITING:
                del self._waiting[next(iter(self._waiting))]
            self._ask()

    def _ask(self) -> None:
        """Have one of the loops publish what waits."""
        if not self._waiting:
            return
        for attached in self._attached:
            if not attached.asked:  # a loop that has stopped must not be given more and more to do
                attached.asked = True
                attached.loop.call_threadsafe(lambda attached=attached: self._flush(attached))  # type: ignore[misc]

    def _flush(self, attached: _Attached) -> None:
        with self._lock:
            attached.asked = False
            events = list(self._waiting)
            self._waiting.clear()
        if events:
            spawn_detached(lambda: self._publish(events))

    async def _publish(self, events: list[Event]) -> None:
        import anyio  # which nothing else that announces needs

        for event in events:
            try:
                with anyio.fail_after(PUBLISH_SECONDS):
                    await self._bus.publish(event)
            except BaseException as exc:
                if isinstance(exc, KeyboardInterrupt) or is_cancellation(exc):
                    raise
                _log.error("a change could not be announced", exc=exc)

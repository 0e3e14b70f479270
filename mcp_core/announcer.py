"""Announcing changes from code that cannot wait: registrations, worker threads.

Brings events onto a loop that serves connections, and there onto the bus. Knows the bus
and loops; nothing of connections.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from mcp_core.backend import Backend, spawn_detached
from mcp_core.journal import Journal
from mcp_core.subscriptions import Event, SubscriptionBus

__all__ = ["Announcer"]

_journal = Journal(__name__)


class Announcer:
    """Publishes events on the loop of whoever is attached; with nobody attached there is nobody to tell.

    Publishing belongs to none of them: it goes on when the one whose loop it uses leaves.
    """

    def __init__(self, bus: SubscriptionBus) -> None:
        self._bus = bus
        self._lock = threading.Lock()
        self._backends: list[Backend] = []
        self._waiting: list[Event] = []
        self._asked: Backend | None = None

    def attach(self, backend: Backend) -> Callable[[], None]:
        """Offer a loop to publish on; the returned call takes it back."""
        with self._lock:
            self._backends.append(backend)

        def detach() -> None:
            with self._lock:
                self._backends.remove(backend)
                # Its loop may be over before it has come to what it was asked for.
                if self._asked is backend and self._waiting and backend not in self._backends:
                    self._ask()

        return detach

    def announce(self, event: Event) -> None:
        """Publish an event soon. The same event again, before that, is the same announcement."""
        with self._lock:
            if not self._backends or event in self._waiting:
                return
            self._waiting.append(event)
            if len(self._waiting) == 1:
                self._ask()

    def _ask(self) -> None:
        """Have one of the loops publish what waits."""
        if not self._backends:
            self._waiting.clear()
            return
        self._asked = self._backends[-1]
        self._asked.call_threadsafe(self._flush)

    def _flush(self) -> None:
        with self._lock:
            events, self._waiting = self._waiting, []
        if events:
            spawn_detached(lambda: self._publish(events))

    async def _publish(self, events: list[Event]) -> None:
        for event in events:
            try:
                await self._bus.publish(event)
            except Exception as exc:
                _journal.error("a change could not be announced", exc=exc)

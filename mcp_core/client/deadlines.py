"""How long requests that name no limit of their own may go unanswered.

Knows the ids of requests and the time; nothing of what is asked. All limits are equally
long, so one timer serves every request: it is set for the oldest, and looks at the rest
when it goes off.
Spec: basic/lifecycle, "Timeouts".
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from mcp_core.backend import Backend, Timer
from mcp_core.messages import RequestId

__all__ = ["LONGEST", "READ_TIMEOUT", "RequestDeadlines"]

READ_TIMEOUT: Final = 300.0
"""Seconds without a sign of life after which a request is given up by default."""

LONGEST: Final = 12.0
"""How many times as long a request may take in all, however much progress it makes."""


class RequestDeadlines:
    """The limits of the requests of one client.

    `give_up` is called with the id and the method of one that is too late.
    """

    def __init__(self, backend: Backend, seconds: float, give_up: Callable[[RequestId, str], None]) -> None:
        self._backend = backend
        self._seconds = seconds
        self._give_up = give_up
        self._begun: dict[RequestId, tuple[str, float]] = {}
        """The method of each request that waits, and when it was made."""
        self._signs: dict[RequestId, float] = {}
        """When there was the last sign of life, where there was any."""
        self._latest_start = 0.0
        """When it was last the server that waited for us: requests count as made then at the earliest."""
        self._timer: Timer | None = None
        self.answering = 0
        """How many requests of the server's are being answered: while some are, it is not the server that is late."""

    def start(self, request_id: RequestId, method: str) -> None:
        """Note that a request is about to be made."""
        self._begun[request_id] = method, time.monotonic()
        if self._timer is None:
            self._set(self._seconds)

    def extend(self, request_id: RequestId) -> None:
        """Note a sign of life: progress."""
        if request_id in self._begun:
            self._signs[request_id] = time.monotonic()

    def end(self, request_id: RequestId) -> None:
        """Note that the request is answered, or its caller has stopped waiting."""
        self._begun.pop(request_id, None)
        if self._signs:
            self._signs.pop(request_id, None)

    def close(self) -> None:
        """Wait for nothing."""
        self._begun.clear()
        self._signs.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, seconds: float) -> None:
        self._timer = self._backend.call_later(seconds, self._went_off)

    def _went_off(self) -> None:
        self._timer = None
        now = time.monotonic()
        if self.answering:
            self._latest_start = now
        for request_id, (method, _) in list(self._begun.items()):
            if self._ends(request_id) <= now:
                self.end(request_id)
                self._give_up(request_id, method)
        if self._begun:
            self._set(max(min(map(self._ends, self._begun)) - now, 0.0))

    def _ends(self, request_id: RequestId) -> float:
        """When a request is too late, as things stand."""
        begun = max(self._begun[request_id][1], self._latest_start)
        last = max(begun, self._signs.get(request_id, 0.0))
        return min(last + self._seconds, begun + LONGEST * self._seconds)

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

__all__ = ["LONGEST", "READ_TIMEOUT", "Patience"]

READ_TIMEOUT: Final = 300.0
"""Seconds without a sign of life after which a request is given up by default."""

LONGEST: Final = 12.0
"""How many times as long a request may take in all, however much progress it makes."""


class _Limit:
    __slots__ = ("last", "latest", "method")

    def __init__(self, method: str, now: float, seconds: float) -> None:
        self.method = method
        self.last = now
        """When there was the last sign of life."""
        self.latest = now + LONGEST * seconds


class Patience:
    """The limits of the requests of one client.

    `give_up` is called with the id and the method of one that is too late.
    """

    def __init__(self, backend: Backend, seconds: float, give_up: Callable[[RequestId, str], None]) -> None:
        self._backend = backend
        self._seconds = seconds
        self._give_up = give_up
        self._limits: dict[RequestId, _Limit] = {}
        self._timer: Timer | None = None
        self.answering = 0
        """How many requests of the server's are being answered: while some are, it is not the server that is late."""

    def begin(self, request_id: RequestId, method: str) -> None:
        """Note that a request is about to be made."""
        self._limits[request_id] = _Limit(method, time.monotonic(), self._seconds)
        if self._timer is None:
            self._set(self._seconds)

    def sign(self, request_id: RequestId) -> None:
        """Note a sign of life: progress."""
        limit = self._limits.get(request_id)
        if limit is not None:
            limit.last = time.monotonic()

    def end(self, request_id: RequestId) -> None:
        """Note that nobody waits for the request any more."""
        self._limits.pop(request_id, None)

    def close(self) -> None:
        """Wait for nothing."""
        self._limits.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, seconds: float) -> None:
        self._timer = self._backend.call_later(seconds, self._went_off)

    def _went_off(self) -> None:
        self._timer = None
        now = time.monotonic()
        for request_id, limit in list(self._limits.items()):
            if self.answering:
                limit.last, limit.latest = now, max(limit.latest, now + self._seconds)
            elif min(limit.last + self._seconds, limit.latest) <= now:
                del self._limits[request_id]
                self._give_up(request_id, limit.method)
        if self._limits:
            ends = min(min(limit.last + self._seconds, limit.latest) for limit in self._limits.values())
            self._set(max(ends - now, 0.0))

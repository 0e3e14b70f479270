"""How fast this machine is just now, for the few tests that are about time.

Everything else waits for events, with bounds that only a fault reaches. What a test asserts of
time is meant for a quiet machine: on one that is shared by twenty it takes as many times
as long as any piece of work does, and `slowness` tells how many.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final, Self

__all__ = ["Stopwatch", "paced", "slowness"]

_WORK: Final = 0.02
"""Seconds of CPU time that are measured."""


def slowness() -> float:
    """Return how many times as long as on a quiet machine a piece of work takes; 1 at least."""
    begun, used = time.monotonic(), time.process_time()
    while time.process_time() - used < _WORK:
        pass
    # A little more than its share is taken from everybody now and then, on a quiet machine too.
    factor = (time.monotonic() - begun) / _WORK
    return 1.0 if factor < 1.3 else 2 * factor


def paced(seconds: float) -> float:
    """Return a time that is as long on this machine, now, as so many seconds on a quiet one."""
    return seconds * slowness()


class Stopwatch:
    """Measures what is done in its block: `elapsed` by the clock, `seconds` as if the machine were quiet."""

    elapsed: float = 0.0
    seconds: float = 0.0

    def __enter__(self) -> Self:
        self._before = slowness()
        self._begun = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.elapsed = time.monotonic() - self._begun
        self.seconds = self.elapsed / max(self._before, slowness())

    def lap(self) -> float:
        """Return the seconds up to now, as if the machine were quiet."""
        elapsed = time.monotonic() - self._begun
        return elapsed / max(self._before, slowness())

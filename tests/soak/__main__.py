"""The command line: `python -m tests.soak --minutes 1`, or `--transport http --calls 500000`."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from typing import Final

from tests.soak.watch import Counts, Watch

SAMPLES: Final = 60
"""How often figures are taken in a run."""

Soak = Callable[[Callable[[Counts], bool], Callable[[Counts], bool], int, str], tuple[Watch, Counts]]


class _Pace:
    """When a run is over, and when figures are due."""

    def __init__(self, seconds: float, calls: int | None) -> None:
        self._begun = time.monotonic()
        self._seconds = seconds
        self._calls = calls
        self._sampled = 0

    def done(self, counts: Counts) -> float:
        """The share that is done."""
        if self._calls is not None:
            return counts.calls / self._calls
        return (time.monotonic() - self._begun) / self._seconds

    def more(self, counts: Counts) -> bool:
        """Whether there is to be more."""
        return self.done(counts) < 1 and not counts.faults

    def sample(self, counts: Counts) -> bool:
        """Whether figures are due."""
        due = self.done(counts) * SAMPLES >= self._sampled
        self._sampled += due
        return due


def soak(transport: str, seconds: float, calls: int | None, seed: int, loop: str) -> bool:
    """Run one transport, and say what came of it; whether all was well."""
    if transport == "stdio":
        from tests.soak.stdio import soak_stdio as run
    else:
        from tests.soak.http import soak_http as run
    pace = _Pace(seconds, calls)
    begun = time.monotonic()
    chosen: Soak = run
    watch, counts = chosen(pace.more, pace.sample, seed, loop)
    took = time.monotonic() - begun
    out = sys.stdout
    out.write(f"{transport} on {loop}, {took:.0f} s, {counts.calls / took:,.0f} calls/s: {counts}\n")
    if watch.samples:
        out.write(watch.table() + "\n")
    wrong = [*counts.faults, *watch.grown()]
    out.writelines(f"FAILED: {text}\n" for text in wrong)
    out.flush()
    return not wrong


def main() -> int:
    """Run from the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long, shared by the transports")
    parser.add_argument("--calls", type=int, help="how many calls of each transport, however long it takes")
    parser.add_argument("--transport", choices=["stdio", "http", "all"], default="all")
    parser.add_argument("--loop", choices=["asyncio", "uvloop", "trio"], default="asyncio")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    given = parser.parse_args()
    transports = ["stdio", "http"] if given.transport == "all" else [given.transport]
    sys.stdout.write(f"seed {given.seed}\n")
    seconds = given.minutes * 60 / len(transports)
    passed = [soak(transport, seconds, given.calls, given.seed, given.loop) for transport in transports]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Plays targets for a time or a number of messages, in one process or several, and says what came of it."""

from __future__ import annotations

import argparse
import importlib
import logging
import multiprocessing
import random
import re
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import anyio

from mcp_core import MCPDeprecationWarning
from tests.fuzz.oracle import Tally, Violation, shown

__all__ = ["Options", "Report", "TARGETS", "main", "play"]

SLICE: Final = 10.0
"""Seconds after which the next target has its turn."""


class Target(Protocol):
    """Something that is fuzzed."""

    async def play(self, rng: random.Random, count: int) -> None:
        """One round of at most so many messages. Raises `Violation`."""
        ...


Opener = Callable[[Tally], AbstractAsyncContextManager[Target]]


def _lazily(module: str, name: str) -> Opener:
    """What opens a target, from a module that is loaded when it is played."""

    def opener(tally: Tally) -> AbstractAsyncContextManager[Target]:
        found: Any = getattr(importlib.import_module(f"tests.fuzz.{module}"), name)
        opened: AbstractAsyncContextManager[Target] = found.open(tally)
        return opened

    return opener


TARGETS: Final[dict[str, Opener]] = {
    "messages": _lazily("messages", "Messages"),
    "heads": _lazily("heads", "RequestHeads"),
    "client": _lazily("client", "Hostile"),
    "typed": _lazily("typed", "Typed"),
    "state": _lazily("state", "Sealed"),
    "lines": _lazily("streams", "Lines"),
    "sse": _lazily("streams", "Sse"),
}
"""What is fuzzed in this process."""

REAL: Final[dict[str, Opener]] = {
    "messages": _lazily("real", "Pipe"),
    "heads": _lazily("real", "Sockets"),
}
"""What is fuzzed as a process of its own, through pipes and sockets."""


@dataclass(frozen=True)
class Options:
    """What to play."""

    targets: tuple[str, ...]
    seed: int
    seconds: float
    messages: int | None
    loop: str
    real: bool = False
    first: int = 0
    """The round to begin with."""
    failures: int = 1
    """How many violations to put up with before it ends; one of each kind is told."""


@dataclass(frozen=True)
class Failure:
    """A violation, how to have it again, and what was sent last."""

    text: str
    where: str
    sent: tuple[bytes, ...]


@dataclass
class Report:
    """What came of it, for each target."""

    tallies: dict[str, Tally]
    failures: list[Failure]


class _Unhandled(logging.Handler):
    """Takes what the event loop reports as an error that nobody handled."""

    def __init__(self, found: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        self._found.append(self.format(record))


def watch(found: list[str]) -> None:
    """Collect the errors that Python and the event loop would only print."""
    logging.getLogger("asyncio").addHandler(_Unhandled(found))
    logging.getLogger("mcp_core").addHandler(logging.NullHandler())
    logging.getLogger("mcp_core").propagate = False
    warnings.simplefilter("error", RuntimeWarning)
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    sys.unraisablehook = lambda what: found.append(f"{what.exc_value!r} in {what.object!r}")
    sys.set_int_max_str_digits(0)  # the oracle reads numbers of any length


class _Player:
    """Plays one target after the other until time or messages are used up."""

    def __init__(self, options: Options, unhandled: list[str]) -> None:
        self._options = options
        self._unhandled = unhandled
        self._begun = time.monotonic()
        self._kinds: set[str] = set()
        self._failed = 0
        self.report = Report({name: Tally() for name in options.targets}, [])
        self._round = options.first

    async def play(self) -> None:
        """Play them all."""
        names = self._options.targets
        slices = max(1, round(self._options.seconds / (SLICE * len(names))))
        for turn in range(slices):
            for index, name in enumerate(names):
                share = (turn * len(names) + index + 1) / (slices * len(names))
                end = self._begun + self._options.seconds * share
                while self._is_wanted(name, end):
                    await self._target(name, end)
            if self._options.messages is not None:
                return

    def _is_wanted(self, name: str, end: float) -> bool:
        limit = self._options.messages
        more = time.monotonic() < end if limit is None else self.report.tallies[name].messages < limit
        return more and self._failed < self._options.failures

    async def _target(self, name: str, end: float) -> None:
        """Play one until its time is up, or it has failed."""
        tally = self.report.tallies[name]
        limit = self._options.messages
        opener = (REAL if self._options.real else TARGETS)[name]
        try:
            async with opener(tally) as target:
                while self._is_wanted(name, end):
                    tally.begin()
                    left = 1_000_000 if limit is None else limit - tally.messages
                    self._round += 1
                    await target.play(random.Random(self._options.seed * 1_000_003 + self._round), left)
                    if self._unhandled:
                        raise Violation(f"an error that nobody handled: {self._unhandled}")
        except (Exception, SystemExit) as exc:
            self._fails(name, tally, exc)

    def _fails(self, name: str, tally: Tally, exc: BaseException) -> None:
        self._unhandled.clear()
        self._failed += 1
        text = f"{type(exc).__name__}: {exc}"
        if not isinstance(exc, Violation):
            tally.exceptions += 1
            text = "".join(traceback.format_exception(exc))
        kind = re.sub(r"[\d.]+", "", text.partition("'")[0])[:60] if isinstance(exc, Violation) else text[-60:]
        if kind not in self._kinds:
            self._kinds.add(kind)
            where = f"--target {name} --seed {self._options.seed} --round {self._round - 1}"
            self.report.failures.append(Failure(text, where, tuple(tally.sent[-20:])))


def play(options: Options) -> Report:
    """Play in this process."""
    unhandled: list[str] = []
    watch(unhandled)
    player = _Player(options, unhandled)
    anyio.run(player.play, backend=options.loop)
    return player.report


def play_all(options: Options, jobs: int) -> list[Report]:
    """Play in so many processes."""
    if jobs == 1:
        return [play(options)]
    shares = [
        replace(
            options,
            seed=options.seed + number * 7919,
            messages=None if options.messages is None else -(-options.messages // jobs),
        )
        for number in range(jobs)
    ]
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(play, shares))


def parse(given: Sequence[str] | None = None) -> tuple[Any, Options]:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="how long, shared by the targets")
    parser.add_argument("--messages", type=int, help="how many for each target, however long it takes")
    parser.add_argument("--target", choices=[*TARGETS, "all"], default="all")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--round", type=int, default=0, help="begin with this round of the seed")
    parser.add_argument("--jobs", type=int, default=1, help="in so many processes")
    parser.add_argument("--loop", choices=["asyncio", "trio"], default="asyncio")
    parser.add_argument("--real", action="store_true", help="to a process, through its pipes or sockets")
    parser.add_argument("--violations", type=int, default=1, help="end after so many; one of each kind is shown")
    parser.add_argument("--guided", type=float, help="so many seconds led by coverage or by cost, in place of rounds")
    chosen = parser.parse_args(given)
    known = REAL if chosen.real else TARGETS
    if chosen.target != "all" and chosen.target not in known:
        parser.error(f"--real knows the targets {', '.join(known)}; got {chosen.target}")
    targets = tuple(known) if chosen.target == "all" else (chosen.target,)
    return chosen, Options(
        targets,
        chosen.seed,
        chosen.seconds,
        chosen.messages,
        chosen.loop,
        chosen.real,
        chosen.round,
        chosen.violations,
    )


def main(given: Sequence[str] | None = None) -> int:
    """Run from the command line; the exit code."""
    chosen, options = parse(given)
    out = sys.stdout
    if chosen.guided is not None:
        from tests.fuzz.guided import run_guided

        return run_guided(chosen.guided, None if chosen.target == "all" else chosen.target, options.seed)
    begun = time.monotonic()
    reports = play_all(options, chosen.jobs)
    took = time.monotonic() - begun
    for name in options.targets:
        total = Tally()
        for report in reports:
            total.add(report.tallies[name])
        out.write(f"{name}: {total.summary()}\n{total.worst()}")
    messages = sum(tally.messages for report in reports for tally in report.tallies.values())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    out.write(
        f"{messages} messages in {took:.0f} s ({messages / took:,.0f}/s) from seed {options.seed} on {options.loop}, "
        f"{chosen.jobs} process(es), at most {peak} MB in this one\n"
    )
    failures = [failure for report in reports for failure in report.failures]
    for failure in failures:
        out.write(f"VIOLATION: {failure.text[:4000]}\nrepeat it with {failure.where}\n")
        for data in failure.sent[:-1]:
            out.write(f"  {shown(data)}\n")
        for data in failure.sent[-1:]:
            out.write(f"  {data[:20_000]!r}\n")
    return 1 if failures else 0

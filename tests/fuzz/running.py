"""Plays targets for a time or a number of messages, in one process or several, and says what came of it."""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import random
import resource
import sys
import time
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


def _messages(tally: Tally) -> AbstractAsyncContextManager[Target]:
    from tests.fuzz.messages import Messages

    return Messages.open(tally)


TARGETS: Final[dict[str, Opener]] = {"messages": _messages}
REAL: Final[dict[str, Opener]] = {}


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


@dataclass
class Report:
    """What came of it, for each target."""

    tallies: dict[str, Tally]
    rounds: int = 0
    failure: str = ""
    where: str = ""
    sent: tuple[bytes, ...] = ()


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
        self.report = Report({name: Tally() for name in options.targets})
        self.round = options.first
        self.target = ""

    async def play(self) -> None:
        """Play them all. Raises `Violation`, or what the library should not have let out."""
        names = self._options.targets
        slices = max(1, round(self._options.seconds / (SLICE * len(names))))
        for turn in range(slices):
            for index, name in enumerate(names):
                self.target = name
                share = (turn * len(names) + index + 1) / (slices * len(names))
                await self._target(name, self._begun + self._options.seconds * share)
            if self._options.messages is not None:
                return

    async def _target(self, name: str, end: float) -> None:
        tally = self.report.tallies[name]
        limit = self._options.messages
        opener = (REAL if self._options.real else TARGETS)[name]
        async with opener(tally) as target:
            while (tally.messages < limit) if limit is not None else (time.monotonic() < end):
                tally.begin()
                left = 1_000_000 if limit is None else limit - tally.messages
                try:
                    await target.play(random.Random(self._options.seed * 1_000_003 + self.round), left)
                    if self._unhandled:
                        raise Violation(f"an error that nobody handled: {self._unhandled}")
                except Violation:
                    raise
                except Exception:
                    tally.exceptions += 1
                    raise
                self.round += 1
                self.report.rounds += 1


def play(options: Options) -> Report:
    """Play in this process."""
    unhandled: list[str] = []
    watch(unhandled)
    player = _Player(options, unhandled)
    report = player.report
    try:
        anyio.run(player.play, backend=options.loop)
    except KeyboardInterrupt:
        raise
    except BaseException as exc:
        report.failure = f"{type(exc).__name__}: {exc}"
        report.where = f"--target {player.target} --seed {options.seed} --round {player.round}"
        report.sent = tuple(report.tallies[player.target].sent[-20:])
        if not isinstance(exc, Violation):
            logging.getLogger("tests.fuzz").error("not a violation", exc_info=exc)
    return report


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
    parser.add_argument("--guided", type=float, help="so many seconds led by coverage or by cost, in place of rounds")
    chosen = parser.parse_args(given)
    known = REAL if chosen.real else TARGETS
    if chosen.target != "all" and chosen.target not in known:
        parser.error(f"--real knows the targets {', '.join(known)}; got {chosen.target}")
    targets = tuple(known) if chosen.target == "all" else (chosen.target,)
    return chosen, Options(
        targets, chosen.seed, chosen.seconds, chosen.messages, chosen.loop, chosen.real, chosen.round
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
    failed = [report for report in reports if report.failure]
    for report in failed:
        out.write(f"VIOLATION: {report.failure[:4000]}\nrepeat it with {report.where}\n")
        for data in report.sent:
            out.write(f"  {shown(data)}\n")
    return 1 if failed else 0

"""`python -m bench [ROW ...]`: the figures, interleaved in one run, held to their bounds.

Rows: stdio, handle, import, start, memory. Exit status 1 when a bound is missed.
Single times mean nothing on a shared machine; what counts is the ratio in one run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from bench.load import ROOT, Server, call_line, running


class Contender(NamedTuple):
    """A server to be measured; `weight` scales how many calls a round has."""

    module: str
    arguments: tuple[str, ...] = ()
    weight: float = 1.0

    @property
    def label(self) -> str:
        """Its name in the table."""
        return " ".join((self.module, *self.arguments))


CORE, TYPED = Contender("core"), Contender("typed")
TASKS = Contender("floor_tasks")
OFFICIAL = Contender("mcp_mcpserver", weight=0.1)
CONTENDERS = [
    Contender("floor_blocking"),
    TASKS,
    Contender("floor_tasks", ("uvloop",)),
    CORE,
    TYPED,
    Contender("core", ("uvloop",)),
    OFFICIAL,
    Contender("mcp_lowlevel", weight=0.1),
]
if importlib.util.find_spec("fastmcp") is not None:
    CONTENDERS.append(Contender("fast_mcp", weight=0.1))


class Report:
    """Prints figures and bounds, and remembers what was missed."""

    def __init__(self) -> None:
        self.missed = 0

    def table(self, title: str, figures: dict[str, float], unit: str) -> None:
        """Print one figure a contender."""
        print(f"\n{title} ({unit})")
        for label, value in figures.items():
            print(f"  {label:<24}{value:>12,.1f}")

    def bound(self, text: str, value: float, least: float | None = None, most: float | None = None) -> None:
        """Print a figure with its bound, and count it if it is missed."""
        good = (least is None or value >= least) and (most is None or value <= most)
        sign, limit = (">=", least) if least is not None else ("<=", most)
        print(f"  {'ok    ' if good else 'MISSED'} {text}: {value:.3g} (bound {sign} {limit:g})")
        self.missed += not good


def median_of(samples: dict[Contender, list[float]]) -> dict[Contender, float]:
    return {contender: statistics.median(values) for contender, values in samples.items()}


def labelled(figures: dict[Contender, float]) -> dict[str, float]:
    return {contender.label: value for contender, value in figures.items()}


def stdio(report: Report, rounds: int) -> None:
    """Echo over stdio, one at a time and with 64 in flight."""
    single: dict[Contender, list[float]] = {c: [] for c in CONTENDERS}
    many: dict[Contender, list[float]] = {c: [] for c in CONTENDERS}
    with contextlib.ExitStack() as stack:
        servers: list[tuple[Contender, Server]] = [
            (c, stack.enter_context(running(c.module, *c.arguments))) for c in CONTENDERS
        ]
        for contender, server in servers:
            server.run(int(500 * contender.weight), 8)
        for _ in range(rounds):
            for contender, server in servers:
                single[contender].append(server.run(int(2000 * contender.weight), 1))
                many[contender].append(server.run(int(6000 * contender.weight), 64))
    one, pipelined = median_of(single), median_of(many)
    report.table("stdio echo, one at a time", labelled(one), "calls/s")
    report.table("stdio echo, 64 in flight", labelled(pipelined), "calls/s")
    for ours in (CORE, TYPED):
        report.bound(f"{ours.label}, one at a time, of the task-per-request floor", one[ours] / one[TASKS], least=0.7)
        ratio = pipelined[ours] / pipelined[OFFICIAL]
        report.bound(f"{ours.label}, 64 in flight, times MCPServer", ratio, least=35)


def in_process(report: Report, rounds: int) -> None:
    """`handle()`, bytes to bytes, and a call through `Client` in memory."""
    from bench.servers.core import server
    from bench.servers.typed import mcp
    from mcp_core import Client

    line = call_line(1)

    async def measure() -> dict[str, float]:
        samples: dict[str, list[float]] = {"core handle": [], "typed handle": [], "core Client": [], "typed Client": []}
        async with Client(server) as core, Client(mcp) as typed:
            for _ in range(rounds):
                for name, target in (("core handle", server), ("typed handle", mcp.server)):
                    started = time.perf_counter()
                    for _ in range(2000):
                        await target.handle(line)
                    samples[name].append((time.perf_counter() - started) / 2000 * 1e6)
                for name, client in (("core Client", core), ("typed Client", typed)):
                    started = time.perf_counter()
                    for _ in range(500):
                        await client.call_tool("echo", {"text": "hello"})
                    samples[name].append((time.perf_counter() - started) / 500 * 1e6)
        return {name: statistics.median(values) for name, values in samples.items()}

    figures = asyncio.run(measure())
    report.table("in process", figures, "us a call")
    report.bound("core handle, us", figures["core handle"], most=20)
    report.bound("typed handle, us", figures["typed handle"], most=28)
    report.bound("core Client, us", figures["core Client"], most=70)


IMPORT = """
import sys, time, json
count, started = len(sys.modules), time.perf_counter()
__import__(sys.argv[1])
print(json.dumps([(time.perf_counter() - started) * 1000, len(sys.modules) - count]))
"""


def imports(report: Report, rounds: int) -> None:
    """Import time and modules, each in a fresh interpreter."""
    names = ["msgspec", "mcp_core", "mcp_typed", "mcp.server.mcpserver"]
    times: dict[str, list[float]] = {name: [] for name in names}
    modules: dict[str, float] = {}
    for _ in range(rounds):
        for name in names:
            out = subprocess.run([sys.executable, "-c", IMPORT, name], capture_output=True, check=True, cwd=ROOT)
            took, modules[name] = json.loads(out.stdout)
            times[name].append(took)
    figures = {name: statistics.median(values) for name, values in times.items()}
    report.table("import", figures, "ms")
    report.table("import", modules, "new modules")
    official = figures["mcp.server.mcpserver"]
    report.bound("mcp_core import, of MCPServer's", figures["mcp_core"] / official, most=0.1)
    report.bound("mcp_core modules", modules["mcp_core"], most=120)
    report.bound("mcp_typed import, of MCPServer's", figures["mcp_typed"] / official, most=0.25)
    report.bound("mcp_typed modules", modules["mcp_typed"], most=260)


def start(report: Report, rounds: int) -> None:
    """From spawning a server to its first answer."""
    samples: dict[Contender, list[float]] = {c: [] for c in CONTENDERS}
    for _ in range(rounds):
        for contender in CONTENDERS:
            started = time.perf_counter()
            with running(contender.module, *contender.arguments) as server:
                samples[contender].append(server.first_answer(started))
    figures = median_of(samples)
    report.table("spawn to first answer", labelled(figures), "ms")
    report.bound("core start, of MCPServer's", figures[CORE] / figures[OFFICIAL], most=0.15)
    report.bound("typed start, of MCPServer's", figures[TYPED] / figures[OFFICIAL], most=0.3)


def memory(report: Report, rounds: int) -> None:
    """Resident memory after a first answer, and its growth over 20,000 calls."""
    figures: dict[Contender, float] = {}
    for contender in CONTENDERS:
        with running(contender.module, *contender.arguments) as server:
            server.first_answer(time.perf_counter())
            figures[contender] = server.memory()
    report.table("resident memory, 1 tool", labelled(figures), "MB")
    report.bound("core memory, MB", figures[CORE], most=26)
    report.bound("typed memory, MB", figures[TYPED], most=38)
    for contender in (CORE, TYPED):
        with running(contender.module) as server:
            server.run(5000, 64)
            before = server.memory()
            server.run(20000, 64)
            report.bound(f"{contender.label} growth over 20,000 calls, MB", server.memory() - before, most=2)


ROWS: dict[str, Callable[[Report, int], None]] = {
    "stdio": stdio,
    "handle": in_process,
    "import": imports,
    "start": start,
    "memory": memory,
}


def main() -> None:
    """Run the rows asked for, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"one of {', '.join(ROWS)}")
    parser.add_argument("--rounds", type=int, default=7, help="samples a figure, interleaved")
    options = parser.parse_args()
    report = Report()
    for row in options.rows or ROWS:
        ROWS[row](report, options.rounds)
    print(f"\n{report.missed} bounds missed" if report.missed else "\nevery bound is met")
    sys.exit(1 if report.missed else 0)


main()

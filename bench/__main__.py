"""`python -m bench [ROW ...]`: the figures, interleaved in one run, held to their bounds.

Rows: stdio, handle, import, start, memory; of typed tools: typed, records, sync, list,
cost; and over HTTP: http, asgi, http-records, http-text, http-sync, http-list. Exit status
1 when a bound is missed.
Single times mean nothing on a shared machine; what counts is the ratio in one run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from bench.http_rows import HTTP_ROWS
from bench.in_process import handled, processes, repeat
from bench.load import ARGUMENTS, LIST, ROOT, Server, call_line, right, running
from bench.report import HAS_FASTMCP, Contender, Report, labelled, median_of, medians, times

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
if HAS_FASTMCP:
    CONTENDERS.append(Contender("fast_mcp", weight=0.1))


def with_tools(*arguments: str) -> dict[str, Contender]:
    """Those with all tools, by the names that the bounds know them under."""
    names = {"core": 1.0, "typed": 1.0, "mcp_lowlevel": 0.1, "mcp_mcpserver": 0.1, "fast_mcp": 0.05}
    if not HAS_FASTMCP:
        del names["fast_mcp"]
    return {name: Contender(f"{name}_tools", arguments, weight) for name, weight in names.items()}


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
        floor = times(single[ours], single[TASKS])
        report.bound(f"{ours.label}, one at a time, of the task-per-request floor", floor, least=0.7)
        ratio = times(many[ours], many[OFFICIAL])
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


def typed(report: Report, rounds: int) -> None:
    """`add(a: int, b: int) -> int` called in process, by each way that a contender has."""
    contenders = with_tools()
    samples: dict[str, list[float]] = {}
    with processes(*(c.module for c in contenders.values())) as started:
        # A hand-built server has no other function than the one on the loop.
        ways = [
            (name, way, tool)
            for name, contender in contenders.items()
            for way in started[contender.module].ways
            for tool in (("add",) if "lowlevel" in name or name == "core" else ("add", "add_def"))
        ]
        for turn in range(3 * rounds + 1):
            for name, way, tool in ways:
                took = started[contenders[name].module].sample(way, tool)
                if turn:  # the first is for warming up
                    samples.setdefault(f"{name} {way}{' def' if tool == 'add_def' else ''}", []).append(took)
    report.table("add(a: int, b: int) -> int, in process", medians(samples), "us of CPU a call")
    ours, official = "typed Client", "mcp_mcpserver Client"
    report.bound("typed, client and server, times MCPServer's", times(samples[official], samples[ours]), least=3)
    report.ratio("of a plain def", times(samples[f"{official} def"], samples[f"{ours} def"]))
    report.ratio(
        "core, client and server, times mcp low-level's", times(samples["mcp_lowlevel Client"], samples["core Client"])
    )
    report.ratio("typed handle, of the hand-built", times(samples["typed handle"], samples["core handle"]))


def records(report: Report, rounds: int) -> None:
    """100 pydantic models in one result, in process and over stdio."""
    contenders = with_tools()
    samples: dict[str, list[float]] = {}
    with processes(*(c.module for c in contenders.values())) as started:
        for turn in range(rounds + 1):
            for name, contender in contenders.items():
                took = started[contender.module].sample("Client", "records")
                if turn:
                    samples.setdefault(name, []).append(took)
    report.table("100 records, client and server in process", medians(samples), "us of CPU a call")
    report.ratio("typed, client and server, times MCPServer's", times(samples["mcp_mcpserver"], samples["typed"]))
    rates = stdio_rates(contenders, {"": "records"}, rounds, 160, 8)
    report.table("100 records over stdio, 8 in flight", medians(rates), "calls/s")
    report.bound("typed, 100 records, times MCPServer", times(rates["typed"], rates["mcp_mcpserver"]), least=5)


def stdio_rates(
    contenders: dict[str, Contender], tools: dict[str, str], rounds: int, count: int, in_flight: int
) -> dict[str, list[float]]:
    """Calls per second of every tool of every contender that has it, under name and suffix."""
    samples: dict[str, list[float]] = {}
    with contextlib.ExitStack() as stack:
        servers = {n: stack.enter_context(running(c.module, *c.arguments)) for n, c in contenders.items()}
        for turn in range(rounds + 1):
            for name, server in servers.items():
                for suffix, tool in tools.items():
                    if tool == "echo_inline" and name != "typed":
                        continue
                    calls = max(in_flight, int(count * contenders[name].weight))
                    rate = server.run(calls, in_flight, tool)  # each answer is checked
                    if turn:
                        samples.setdefault(f"{name}{suffix}", []).append(rate)
    return samples


def sync(report: Report, rounds: int) -> None:
    """A plain `def` in a worker thread, and in line, beside an `async def`."""
    contenders = with_tools()
    contenders = {name: c for name, c in contenders.items() if name not in ("core", "mcp_lowlevel")}
    tools = {" async": "echo", " def": "echo_def", " inline": "echo_inline"}
    rates = stdio_rates(contenders, tools, 2 * rounds, 1500, 64)
    report.table("echo over stdio, 64 in flight", medians(rates), "calls/s")
    report.bound("typed def, times MCPServer's", times(rates["typed def"], rates["mcp_mcpserver def"]), least=4)
    report.bound("typed inline, of async", times(rates["typed inline"], rates["typed async"]), least=0.9)


def list_tools(report: Report, rounds: int) -> None:
    """`tools/list` of 1,000 tools over stdio, one at a time."""
    rates = stdio_rates(with_tools("1000"), {"": LIST}, rounds, 20, 1)
    report.table("tools/list of 1,000 tools over stdio", medians(rates), "calls/s")
    report.bound("typed, 1,000 tools, times MCPServer", times(rates["typed"], rates["mcp_mcpserver"]), least=50)


def cost(report: Report, rounds: int) -> None:
    """What the typed layer adds to a result that is built by hand, the bytes being the same."""
    from bench.servers.core_tools import server
    from bench.servers.typed_tools import mcp

    async def measure(tool: str) -> tuple[float, float]:
        calls = [handled(target)(tool, ARGUMENTS[tool](1)) for target in (server, mcp.server)]
        answers = [await call() for call in calls]
        if answers[0] != answers[1] or not right(tool, 1, json.loads(answers[0])["result"]):
            raise RuntimeError(f"the answers differ: {answers!r}")
        took: list[list[float]] = [[], []]
        for _ in range(60 * rounds):
            for call, samples in zip(calls, took, strict=True):
                samples.append(await repeat(call, 50) * 1e6)
        return statistics.median(took[0]), statistics.median(b - a for a, b in zip(*took, strict=True))

    for tool in ("echo", "add"):
        by_hand, more = asyncio.run(measure(tool))
        report.table(
            f"{tool} through handle(), the same bytes", {"core": by_hand, "typed adds": more}, "us of CPU a call"
        )
        report.bound(f"typed {tool} costs more than hand-built by, us", more, most=10)


ROWS: dict[str, Callable[[Report, int], None]] = {
    "stdio": stdio,
    "handle": in_process,
    "import": imports,
    "start": start,
    "memory": memory,
    "typed": typed,
    "records": records,
    "sync": sync,
    "list": list_tools,
    "cost": cost,
    **HTTP_ROWS,
}


def main() -> None:
    """Run the rows asked for, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"one of {', '.join(ROWS)}")
    parser.add_argument("--rounds", type=int, default=7, help="samples a figure, interleaved")
    options = parser.parse_args()
    # Or whatever was edited a moment ago would be compiled at each start that is measured.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    report = Report()
    for row in options.rows or ROWS:
        ROWS[row](report, options.rounds)
    print(f"\n{report.missed} bounds missed" if report.missed else "\nevery bound is met")
    sys.exit(1 if report.missed else 0)


main()

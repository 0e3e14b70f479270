"""The rows of `python -m bench` that go over HTTP, or into an ASGI app.

All on the same uvicorn, 16 connections, each with one request at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from bench.http_load import HANDSHAKE, MODERN, HTTPServer, serving
from bench.in_process import processes
from bench.load import LIST
from bench.report import HAS_FASTMCP, Report, medians, times

FLOOR = "floor_asgi"
WEIGHTS = {"mcp_lowlevel": 0.1, "mcp_mcpserver": 0.1, "fast_mcp": 0.05}
"""How many of the calls of a sample a rival makes; the rest make all."""

GENERATIONS = 2
"""Times that the servers are started: where a process happens to lie in memory shows in its speed."""

Rates = dict[str, list[float]]


def measured(
    contenders: list[str], kinds: dict[str, tuple[str, str]], count: int, rounds: int, *arguments: str
) -> tuple[Rates, Rates]:
    """Requests per second, and CPU of the server for one in microseconds, by contender and kind.

    A kind is a suffix of the name, with the tool and the era it stands for.
    """
    rates: Rates = {}
    used: Rates = {}
    for _ in range(GENERATIONS):
        with contextlib.ExitStack() as stack:
            servers: dict[str, HTTPServer] = {c: stack.enter_context(serving(c, *arguments)) for c in contenders}
            for turn in range(rounds // GENERATIONS + 2):
                for name, server in servers.items():
                    for suffix, (tool, era) in kinds.items():
                        calls = max(16, int(count * WEIGHTS.get(name.removesuffix("_tools"), 1.0)))
                        server.run(max(16, calls // 4), tool, era)  # others have just had core and caches
                        rate, cpu = server.run(calls, tool, era)
                        if turn:  # the first round is for warming up
                            rates.setdefault(name + suffix, []).append(rate)
                            used.setdefault(name + suffix, []).append(cpu)
    return rates, used


def http(report: Report, rounds: int) -> None:
    """Echo, in both eras."""
    contenders = [FLOOR, "core", "typed", "mcp_lowlevel", "mcp_mcpserver", *(["fast_mcp"] if HAS_FASTMCP else [])]
    for era, core, typed in ((MODERN, 0.75, 0.7), (HANDSHAKE, 0.7, 0.66)):
        rates, used = measured(contenders, {"": ("echo", era)}, 5000, 2 * rounds)
        report.table(f"HTTP echo, {era}, 16 connections", medians(rates), "req/s")
        report.table(f"HTTP echo, {era}, the whole server", medians(used), "us of CPU a request")
        report.bound(f"core, {era}, of the floor", times(rates["core"], rates[FLOOR]), least=core)
        report.bound(f"typed, {era}, of the floor", times(rates["typed"], rates[FLOOR]), least=typed)
        if era == MODERN:
            report.bound("core, times mcp low-level", times(rates["core"], rates["mcp_lowlevel"]), least=5)
            report.bound("typed, times mcp low-level", times(rates["typed"], rates["mcp_lowlevel"]), least=5)


def asgi(report: Report, rounds: int) -> None:
    """The ASGI app alone: what it does between being asked and having sent the answer."""
    names = [FLOOR, "core", "typed", "mcp_lowlevel", "mcp_mcpserver"]
    samples: dict[str, list[float]] = {}
    with processes(*(f"asgi:{name}" for name in names)) as started:
        for turn in range(3 * rounds + 1):
            for name in names:
                for era in (MODERN, HANDSHAKE):
                    took = started[f"asgi:{name}"].sample(era, "echo")
                    if turn:
                        samples.setdefault(f"{name} {era}", []).append(took)
    figures = medians(samples)
    report.table("echo in the ASGI app", figures, "us of CPU a call")
    for name, modern, handshake in (("core", 25, 32), ("typed", 32, 38)):
        report.bound(f"{name} app, modern, us", figures[f"{name} {MODERN}"], most=modern)
        report.bound(f"{name} app, handshake, us", figures[f"{name} {HANDSHAKE}"], most=handshake)


def records(report: Report, rounds: int) -> None:
    """100 records: as models, and as data that is ready."""
    typed, _ = measured([FLOOR, "typed_tools", "mcp_mcpserver_tools"], {"": ("records", MODERN)}, 300, rounds)
    report.table("100 models over HTTP", medians(typed), "req/s")
    ratio = times(typed["typed_tools"], typed["mcp_mcpserver_tools"])
    report.bound("typed, 100 models, times MCPServer", ratio, least=5)
    ready, _ = measured([FLOOR, "core_tools", "mcp_lowlevel_tools"], {"": ("ready", MODERN)}, 600, rounds)
    report.table("100 records of ready data over HTTP", medians(ready), "req/s")
    ratio = times(ready["core_tools"], ready["mcp_lowlevel_tools"])
    report.bound("core, 100 ready records, times mcp low-level", ratio, least=4)


def text(report: Report, rounds: int) -> None:
    """A text of 1 MB."""
    rivals = ["mcp_lowlevel_tools", "mcp_mcpserver_tools"]
    rates, _ = measured([FLOOR, "core_tools", "typed_tools", *rivals], {"": ("big", MODERN)}, 160, rounds)
    report.table("1 MB of text over HTTP", medians(rates), "req/s")
    for name in ("core_tools", "typed_tools"):
        ratio = times(rates[name], rates["mcp_mcpserver_tools"])
        report.bound(f"{name.removesuffix('_tools')}, 1 MB, times MCPServer", ratio, least=4)


def sync(report: Report, rounds: int) -> None:
    """A plain `def` in a worker thread, and in line, beside an `async def`."""
    kinds = {" async": ("echo", MODERN), " def": ("echo_def", MODERN)}
    rates, _ = measured(["mcp_mcpserver_tools"], kinds, 2000, rounds)
    ours, _ = measured(["typed_tools"], {**kinds, " inline": ("echo_inline", MODERN)}, 2000, rounds)
    report.table("echo over HTTP", medians({**ours, **rates}), "req/s")
    ratio = times(ours["typed_tools def"], rates["mcp_mcpserver_tools def"])
    report.bound("typed def, times MCPServer's", ratio, least=4)
    report.bound("typed inline, of async", times(ours["typed_tools inline"], ours["typed_tools async"]), least=0.9)


def list_tools(report: Report, rounds: int) -> None:
    """`tools/list` of 1,000 tools."""
    contenders = [FLOOR, "core_tools", "typed_tools", "mcp_lowlevel_tools", "mcp_mcpserver_tools"]
    rates, _ = measured(contenders, {"": (LIST, MODERN)}, 160, rounds, "1000")
    report.table("tools/list of 1,000 tools over HTTP", medians(rates), "req/s")
    for name in ("core_tools", "typed_tools"):
        ratio = times(rates[name], rates[FLOOR])
        report.bound(f"{name.removesuffix('_tools')}, 1,000 tools, of the floor", ratio, least=1.3)


HTTP_ROWS: dict[str, Callable[[Report, int], None]] = {
    "http": http,
    "asgi": asgi,
    "http-records": records,
    "http-text": text,
    "http-sync": sync,
    "http-list": list_tools,
}

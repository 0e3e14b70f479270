"""Processes end, whatever a handler does, and the program gets its turn after `run`."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_core.transports import signals
from tests.core.peers import legacy, line, modern
from tests.core.test_stdio import LOOPS, ROOT, Process

BOUND = 20.0
"""Seconds that an end may take on a busy machine; what it is held against took for ever."""

# The library's own bounds, a tenth of what they are, for processes that do wait until one has passed. What
# ends within its bound keeps the whole of it. `tests/test_limits.py` holds what they are.
SOON_LEFT: Final = (
    "mcp_core.process_exit.PATIENCE=0.1",
    "mcp_core.running.PATIENCE=0.1",
    "mcp_core.backend.asyncio.PATIENCE=0.1",
)
SOON_ENDED: Final = ("mcp_core.transports.signals.PATIENCE=0.1",)
SOON_GIVEN_UP: Final = ("mcp_core.transports.lines.HANG_UP=0.5", "mcp_core.transports.stdio.WRITE_TIMEOUT=0.5")


@contextmanager
def process(tmp_path: Path, loop: str, setting: str = "plain", *bounds: str) -> Generator[Process, None, None]:
    with (tmp_path / "stderr").open("w+b") as errors:
        running = subprocess.Popen(
            [sys.executable, "-m", "tests.core.ending_server", loop, setting, *bounds],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        with running:
            try:
                yield Process(running, errors)
            finally:
                running.kill()


def call(tool: str) -> bytes:
    return line(modern(1, "tools/call", {"name": tool})) + b"\n"


def wait_for(said: str, running: Process) -> None:
    until = time.monotonic() + BOUND
    while said not in running.stderr:
        assert time.monotonic() < until, f"{said!r} is not in {running.stderr!r}"
        time.sleep(0.02)


@pytest.mark.timeout(60)
@pytest.mark.fault("S-22")
@pytest.mark.parametrize("tool", ["stubborn", "thread", "anyio_thread", "forever"])
@pytest.mark.parametrize("loop", LOOPS)
def test_the_end_of_input_ends_the_process_whatever_a_handler_does(tmp_path: Path, loop: str, tool: str) -> None:
    if loop == "trio" and tool == "stubborn":
        tool = "forever"  # of asyncio alone: in trio nobody can swallow a cancellation and go on waiting
    with process(tmp_path, loop, "plain", *(() if tool == "forever" else SOON_LEFT)) as running:
        running.send(call(tool))
        wait_for("started", running)
        _, status = running.finish(BOUND)
        assert status == 0
        # trio waits for threads, so that there the process can only be ended.
        assert ("after run" in running.stderr) == (loop != "trio" or tool == "forever")


@pytest.mark.timeout(60)
@pytest.mark.fault("S-22")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_tool_that_blocks_in_a_worker_thread_does_not_keep_the_process(tmp_path: Path, loop: str) -> None:
    with process(tmp_path, loop, "typed") as running:
        running.send(call("blocks"))
        wait_for("started", running)
        _, status = running.finish(BOUND)
        assert status == 0
        assert "after run" in running.stderr


@pytest.mark.timeout(60)
@pytest.mark.fault("S-32")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("tool", ["blocks", "computes"])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_signal_ends_a_process_whose_loop_is_blocked(
    tmp_path: Path, loop: str, tool: str, number: signal.Signals
) -> None:
    with process(tmp_path, loop, "plain", *SOON_ENDED) as running:
        running.send(call(tool))
        wait_for("started", running)
        running.running.send_signal(number)
        _, status = running.rest(BOUND)
        assert status == (1 if tool == "computes" else 128 + number)


@pytest.mark.timeout(60)
@pytest.mark.fault("S-32")
@pytest.mark.parametrize("tool", ["stubborn", "thread", "blocks"])
def test_a_second_signal_ends_the_process_at_once(tmp_path: Path, tool: str) -> None:
    with process(tmp_path, "asyncio", "patient") as running:
        running.send(call(tool))
        wait_for("started", running)
        for _ in range(2):
            running.running.send_signal(signal.SIGTERM)
            time.sleep(0.1)  # signals that come together are one
        _, status = running.rest(BOUND)
        assert status in (0, 128 + signal.SIGTERM, -signal.SIGTERM)  # as it was, once serving is over


@pytest.mark.timeout(60)
@pytest.mark.fault("S-32")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_signal_that_the_loop_hears_ends_it_in_order(tmp_path: Path, loop: str, number: signal.Signals) -> None:
    with process(tmp_path, loop) as running:
        assert running.ask(line(legacy(1, "ping")) + b"\n")["id"] == 1
        running.running.send_signal(number)
        _, status = running.rest(BOUND)
        assert status == 0
        assert "after run" in running.stderr


@pytest.mark.timeout(60)
@pytest.mark.fault("S-32")
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_other_signals_go_to_the_loop_as_ever(tmp_path: Path, loop: str) -> None:
    with process(tmp_path, loop, "own_signal") as running:
        for _ in range(2):
            assert running.ask(line(legacy(1, "ping")) + b"\n")["id"] == 1
            running.running.send_signal(signal.SIGUSR1)
        wait_for("usr1", running)
        assert running.ask(line(legacy(1, "ping")) + b"\n")["id"] == 1
        running.running.terminate()
        _, status = running.rest(BOUND)
        assert status == 0
        assert "after run" in running.stderr


@pytest.mark.fault("S-32")
async def test_a_signal_that_comes_as_serving_ends_does_not_end_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf:
        def call_threadsafe(self, call: Any) -> None:
            return

    monkeypatch.setattr(signals, "PATIENCE", BOUND)
    stopped: list[None] = []
    begun = time.monotonic()
    before = signal.getsignal(signal.SIGTERM)
    with signals.stopped_by_signals(Deaf(), lambda: stopped.append(None)):  # type: ignore[arg-type]
        signal.raise_signal(signal.SIGTERM)
    assert time.monotonic() - begun < BOUND
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.timeout(60)
@pytest.mark.fault("S-22")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_client_that_does_not_read_the_last_answer_does_not_keep_the_process(tmp_path: Path, loop: str) -> None:
    with process(tmp_path, loop, "plain", *SOON_GIVEN_UP) as running:
        running.send(call("big"))
        wait_for("started", running)
        assert running.running.stdin is not None
        running.running.stdin.close()
        assert running.running.wait(BOUND) == 0
        assert "after run" in running.stderr


# --- lifespans ------------------------------------------------------------------------------------


@pytest.mark.timeout(60)
@pytest.mark.fault("S-21")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_process_ends_with_its_lifespan(tmp_path: Path, loop: str) -> None:
    with process(tmp_path, loop, "failing") as running:
        running.send(line(modern(1, "x/fail")) + b"\n")
        _, status = running.rest(BOUND)
        assert status == 1
        assert "the pool is gone" in running.stderr
        assert "after run" not in running.stderr


@pytest.mark.timeout(60)
@pytest.mark.fault("S-21")
@pytest.mark.parametrize(
    ("setting", "reason"), [("fails_at_entry", "there is no pool"), ("fails_at_exit", "the pool does not close")]
)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_lifespan_that_fails_at_either_end_fails_the_process(
    tmp_path: Path, loop: str, setting: str, reason: str
) -> None:
    with process(tmp_path, loop, setting) as running:
        _, status = running.finish(BOUND)
        assert status == 1
        assert reason in running.stderr

"""Leaving in time: the end of a process which something in it keeps from ending.

trio leaves nothing behind: who leaves a nursery waits for its tasks, and they for their threads. There
the process can only be ended, before `run` returns; on asyncio `run` goes without them (`running`).

Knows processes; nothing of servers.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Final

from mcp_core.queue_logger import QueueLogger, flush

__all__ = ["PATIENCE", "exit_process", "leaving", "run_trio"]

PATIENCE: Final = 1.0
"""Seconds that tasks and threads have to end when what started them has; then they are left behind."""

_log = QueueLogger(__name__)

_runs_trio = False


def run_trio(main: Callable[[], Coroutine[object, object, None]]) -> None:
    """Run a coroutine on trio, as `trio.run` does. What is `leaving` in it must have left in time."""
    import trio

    global _runs_trio
    _runs_trio = True
    try:
        trio.run(main)
    finally:
        _runs_trio = False


@contextmanager
def leaving() -> Generator[Callable[[], None], None, None]:
    """Give a function that says: from now on this block has nothing to do but to end.

    Where `run_trio` runs it, the process is ended when that takes more than a second. In
    trio the end of a run waits for every task and every thread, so that one which blocks would keep
    the process for ever.
    """
    timer = threading.Timer(PATIENCE, _end_process)
    timer.daemon = True
    try:
        yield timer.start if _runs_trio else (lambda: None)
    finally:
        timer.cancel()


def _end_process() -> None:
    _log.error("the process is ended amid a task, or a thread, that goes on after its end")
    flush()
    exit_process(0)


def exit_process(status: int) -> None:
    """End the process now; what was printed is still written."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            continue  # there is none, or it is closed
    os._exit(status)

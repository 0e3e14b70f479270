"""The MCP Inspector as a process: started, watched, and ended with all that it has started.

Knows no server. The Inspector is a program for Node.js that npm fetches.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from mcp_core.transports.process import signal_group

__all__ = ["INSPECTOR", "NoNode", "run_inspector"]

INSPECTOR: Final = "@modelcontextprotocol/inspector@2.12.0"
"""The version that `dev` starts: the one that the tests run."""

GRACE: Final = 5.0
"""Seconds that the Inspector has to end by itself once a signal has come."""


class NoNode(Exception):
    """There is no `npx`."""


class _Signalled(Exception):
    def __init__(self, number: int) -> None:
        self.number = number


def run_inspector(arguments: Sequence[str]) -> int:
    """Run the Inspector until it ends or SIGINT, SIGTERM or SIGHUP comes; return an exit status.

    What npx starts is in a process group of its own, and ends with it.

    Raises:
        NoNode: npx is not installed.
    """
    npx = shutil.which("npx")
    if npx is None:
        raise NoNode("the Inspector needs Node.js: npx was not found")
    with _signals_raise():
        process = subprocess.Popen([npx, "--yes", INSPECTOR, *arguments], start_new_session=sys.platform != "win32")
        try:
            return process.wait()
        except _Signalled as exc:
            return 128 + exc.number
        finally:
            _end(process)


@contextmanager
def _signals_raise() -> Generator[None, None, None]:
    """Have the first signal end what is waited for; later ones change nothing."""
    raised = False

    def raise_once(number: int, _frame: FrameType | None) -> None:
        nonlocal raised
        if not raised:
            raised = True
            raise _Signalled(number)

    numbers = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if sys.platform != "win32" else [])]
    before: dict[int, Any] = {number: signal.signal(number, raise_once) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the whole group, if some of it is left."""
    signal_group(process, signal.SIGTERM)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        pass
    signal_group(process, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
    process.wait()

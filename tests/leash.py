"""Starts a program that ends with whoever started it: `python -m tests.leash COMMAND ...`.

A test run that is killed cannot end its server processes, so each asks the kernel to be told
when its parent dies (Linux only; elsewhere the program is just started). `leashed` makes
the command; the program takes the place of the interpreter that runs this.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

__all__ = ["leashed"]

_SET_PDEATHSIG: Final = 1


def leashed(command: Sequence[str]) -> list[str]:
    """Return a command that starts this one, to be ended by SIGTERM when the parent dies."""
    return [sys.executable, "-IS", __file__, str(os.getpid()), *command]


def _main(parent: str, *command: str) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != int(parent):
            return  # it died before it could be asked for
    os.execv(command[0], command)


if __name__ == "__main__":
    _main(*sys.argv[1:])

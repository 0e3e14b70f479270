"""A server as a child process, seen from the client.

Starts it, speaks to it over its standard streams, and ends it in the order that the
specification gives: close its input, wait, terminate, kill.
Spec: basic/transports/stdio, "Shutdown".
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import IO, Final

import anyio
import anyio.to_thread
import msgspec

from mcp_core.backend import Backend
from mcp_core.errors import ConnectionClosed
from mcp_core.transports.lines import MAX_MESSAGE, LineChannel

__all__ = ["StdioServerParameters", "open_process"]

GRACE: Final = 2.0
"""Seconds that the process has after each step of its shutdown."""

_INHERITED: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER") + (
    ("APPDATA", "COMSPEC", "LOCALAPPDATA", "PATHEXT", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE")
    if sys.platform == "win32"
    else ()
)


class StdioServerParameters(msgspec.Struct, kw_only=True):
    """How to start a server.

    Of the caller's environment only what a program needs to run is passed on; `env` adds
    to it. `errlog` takes the server's stderr: a file or descriptor, by default the
    caller's own.
    """

    command: str
    args: list[str] = []
    env: dict[str, str] | None = None
    cwd: str | os.PathLike[str] | None = None
    errlog: IO[bytes] | IO[str] | int | None = None


@asynccontextmanager
async def open_process(
    backend: Backend, parameters: StdioServerParameters, *, max_message: int = MAX_MESSAGE
) -> AsyncGenerator[LineChannel, None]:
    """The running server's channel; leaving it ends the process.

    Raises:
        ConnectionClosed: The command cannot be started.
    """
    process = _start(parameters)
    assert process.stdin is not None
    assert process.stdout is not None
    channel = LineChannel(backend, process.stdout.fileno(), process.stdin.fileno(), max_message=max_message)
    try:
        yield channel
    finally:
        with anyio.CancelScope(shield=True):
            await channel.flush(GRACE)
            channel.stop()
            channel.release()
            process.stdin.close()
            await _end(process)
            process.stdout.close()


def _start(parameters: StdioServerParameters) -> subprocess.Popen[bytes]:
    environment = {key: os.environ[key] for key in _INHERITED if key in os.environ}
    environment.update(parameters.env or {})
    try:
        return subprocess.Popen(
            [parameters.command, *parameters.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=parameters.errlog,
            env=environment,
            cwd=parameters.cwd,
            bufsize=0,
            # A terminal's Ctrl-C is the client's to act on, and a server's children end with it.
            start_new_session=sys.platform != "win32",
        )
    except OSError as exc:
        raise ConnectionClosed(f"the server {parameters.command!r} cannot be started: {exc}") from exc


async def _end(process: subprocess.Popen[bytes]) -> None:
    if await _ended(process):
        return
    _send(process, signal.SIGTERM)
    if await _ended(process):
        return
    _send(process, signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
    await _ended(process)


def _send(process: subprocess.Popen[bytes], number: int) -> None:
    """Signal the process and its children."""
    try:
        if sys.platform == "win32":
            process.terminate()
        else:
            os.killpg(process.pid, number)
    except (OSError, ValueError):
        return  # it has ended by itself


async def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process ends within the grace period."""

    def wait() -> bool:
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return False
        return True

    return await anyio.to_thread.run_sync(wait)

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
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import IO, Any, Final, cast

import anyio
import msgspec

from mcp_core.backend import Backend
from mcp_core.channel import Receiver
from mcp_core.codec import type_of
from mcp_core.errors import ConnectionClosed
from mcp_core.queue_logger import printable
from mcp_core.transports.lines import MAX_MESSAGE, LineChannel

__all__ = ["StdioServerParameters", "open_process", "signal_group"]

GRACE: Final = 2.0
"""Seconds that the process has after each step of its shutdown."""

STDERR_KEPT: Final = 4096
"""Bytes that are kept of what a process writes to its stderr: the last ones."""

STDERR_LINES: Final = 10
"""Of these, the lines that an error shows."""

_SETTLES: Final = 0.5
"""Seconds that a process may take from closing its output to its end, and its last words to be read."""

_SIGNALS: Final = (signal.SIGTERM, signal.SIGKILL) if sys.platform != "win32" else (signal.SIGTERM,)

_INHERITED: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER") + (
    ("APPDATA", "COMSPEC", "LOCALAPPDATA", "PATHEXT", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE")
    if sys.platform == "win32"
    else ()
)


class StdioServerParameters(msgspec.Struct, kw_only=True):
    """How to start a server.

    Of the caller's environment only what a program needs to run is passed on; `env` adds
    to it. `errlog` takes the server's stderr: a file or descriptor. By default it goes to
    the caller's own, and its last lines are part of the error if the server ends early.

    Raises:
        TypeError: A field is of the wrong type.
        ValueError: A text in it is empty where it may not be, or holds a null character.
    """

    command: str
    args: list[str] = []
    env: dict[str, str] | None = None
    cwd: str | os.PathLike[str] | None = None
    errlog: IO[bytes] | IO[str] | int | None = None

    def __post_init__(self) -> None:
        if type_of(self.command) is not str:
            raise TypeError(f"command must be a text, the program to run; got {self.command!r}")
        given: Any = self.args
        if not isinstance(given, list | tuple):
            raise TypeError(f"args must be a list of texts; got {given!r}")
        for arg in self.args:
            if type_of(arg) is not str:
                raise TypeError(f"args must be a list of texts; got {arg!r} in it")
        _check_environment(self.env)
        if not self.command or any("\0" in text for text in (self.command, *self.args)):
            raise ValueError(
                f"command must not be empty, and no text may hold a null character; got {[self.command, *self.args]!r}"
            )
        place: Any = self.cwd
        if not (place is None or isinstance(place, str | os.PathLike)):
            raise TypeError(f"cwd must be a path; got {place!r}")
        log: object = self.errlog
        if not (log is None or isinstance(log, int) or hasattr(log, "fileno")):
            raise TypeError(f"errlog must be a file or a descriptor; got {log!r}")


def _check_environment(env: object) -> None:
    if env is None:
        return
    if not isinstance(env, Mapping):
        raise TypeError(f"env must be a dict of texts; got {env!r}")
    for name, value in cast("Mapping[Any, Any]", env).items():
        # Its values are often secrets, and not shown.
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"env must be a dict of texts; the value of {name!r} is of type {type(value).__name__}")
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"env must be a dict of texts without null characters; the entry {name!r} is not possible")


class ProcessChannel(LineChannel):
    """The streams of a child process; if it ends by itself, waiting requests fail with how."""

    def __init__(
        self, backend: Backend, process: subprocess.Popen[bytes], command: str, errors: _Tee | None, max_message: int
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        super().__init__(backend, process.stdout.fileno(), process.stdin.fileno(), max_message=max_message)
        self._process = process
        self._command = command
        self._errors = errors  # copies stderr, whose last lines explain why the process ended
        self.closing = False
        """Whether it is we who end the process."""

    async def run(self, receiver: Receiver) -> None:
        """Hand every message to the receiver until the output of the process ends, then tell it so, and why."""
        why = ""
        try:
            await super().run(_UntilTheEnd(receiver))
            if not self.closing:
                why = await self._why()
        finally:
            inner: Any = receiver
            inner.ended(why)

    async def _why(self) -> str:
        """Return how the process has ended, for the text of an error. It closes its output a moment before it does."""
        if not await _comes_true(lambda: self.closing or _has_ended(self._process), _SETTLES):
            return f"the server {self._command!r} closed its output, and runs on"
        status = _exit_status(self._process)
        if self.closing or status is None:
            return ""
        said = "" if self._errors is None else await self._errors.said()
        return f"the server {self._command!r} {_ended_how(status)}{said}"


class _UntilTheEnd:
    """A receiver whose `ended` is held back until it is known how the process ended."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self.receive = receiver.receive  # bound once: every message comes this way
        self.refuse = receiver.refuse
        self.fail = receiver.fail

    @property
    def is_full(self) -> bool:
        """Whether nothing more is to be brought in."""
        return self._receiver.is_full

    def ended(self) -> None:
        """Do nothing."""


class _Tee:
    """Copies the stderr of a process to the caller's, and keeps how it ends.

    By a thread: writing to the caller's stderr may block, and must not block the event loop.
    The thread ends, and closes the descriptor, when its write end is closed.
    """

    def __init__(self) -> None:
        read_fd, write_fd = os.pipe()
        self._fd = read_fd
        self.write_fd: int = write_fd
        self._tail = bytearray()  # the last bytes of stderr, bounded
        self._thread = threading.Thread(target=self._copy, name="mcp_core.stderr", daemon=True)

    def start(self) -> None:
        """Begin, once the process has its end."""
        os.close(self.write_fd)
        self._thread.start()

    def close(self) -> None:
        """Give up: there is no process."""
        os.close(self.write_fd)
        os.close(self._fd)

    def _copy(self) -> None:
        while chunk := os.read(self._fd, 65536):
            self._tail += chunk[-STDERR_KEPT:]
            del self._tail[:-STDERR_KEPT]
            try:
                _write_all(2, chunk)
            except OSError:
                continue  # the caller has no stderr: the process must not block for that
        os.close(self._fd)

    async def said(self) -> str:
        """Return the last lines, as the end of a sentence."""
        await self.settled()
        lines = bytes(self._tail).decode("utf-8", "replace").splitlines()
        last = [printable(line, 500) for line in lines if line.strip()][-STDERR_LINES:]
        return "; its last words on stderr:\n  " + "\n  ".join(last) if last else ", and said nothing on stderr"

    async def settled(self) -> None:
        """Wait until everything is copied, but not for long: something that outlives the process may hold its end."""
        await _comes_true(lambda: not self._thread.is_alive(), _SETTLES)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


@asynccontextmanager
async def open_process(
    backend: Backend, parameters: StdioServerParameters, *, max_message: int = MAX_MESSAGE
) -> AsyncGenerator[ProcessChannel, None]:
    """The running server's channel; leaving it ends the process, and those that it has started.

    Raises:
        ConnectionClosed: The command cannot be started.
    """
    errors = _Tee() if parameters.errlog is None else None
    process = _start(parameters, errors)
    assert process.stdin is not None
    assert process.stdout is not None
    channel = ProcessChannel(backend, process, parameters.command, errors, max_message)
    try:
        yield channel
    finally:
        channel.closing = True
        with anyio.CancelScope(shield=True):
            await channel.flush(GRACE)
            channel.stop()
            channel.release()
            process.stdin.close()
            await _end(process)
            process.stdout.close()
            if errors is not None:
                await errors.settled()


def _start(parameters: StdioServerParameters, errors: _Tee | None) -> subprocess.Popen[bytes]:
    environment = {key: os.environ[key] for key in _INHERITED if key in os.environ}
    environment.update(parameters.env or {})
    try:
        process = subprocess.Popen(
            [parameters.command, *parameters.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=parameters.errlog if errors is None else errors.write_fd,
            env=environment,
            cwd=parameters.cwd,
            bufsize=0,
            # A terminal's Ctrl-C is the client's to act on, and a server's children end with it.
            start_new_session=sys.platform != "win32",
        )
    except OSError as exc:
        if errors is not None:
            errors.close()
        raise ConnectionClosed(f"the server {parameters.command!r} cannot be started: {exc}") from exc
    if errors is not None:
        errors.start()
    return process


# --- the end ------------------------------------------------------------------------------


async def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and what it has started: its group, which may outlive it (C090).

    A wrapper (`sh -c`, `npx`, `uvx`) may end with its input while what it has started does
    not. The process is not waited for before its group has gone: until then its number,
    which is the group's, cannot be reused.
    """
    await _comes_true(lambda: _has_ended(process), GRACE)
    for number in _SIGNALS:
        if not _is_alive(process):
            break
        signal_group(process, number)
        await _comes_true(lambda: not _is_alive(process), GRACE)
    if _has_ended(process):
        process.wait()


def signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Signal a process that leads a session of its own, and its children; on Windows, end the process.

    If none of them is left, nothing happens.
    """
    try:
        if sys.platform == "win32":
            process.terminate()
        else:
            os.killpg(process.pid, number)
    except (OSError, ValueError):
        return  # the group has ended


async def _comes_true(what: Callable[[], bool], seconds: float) -> bool:
    pause = 0.001
    until = anyio.current_time() + seconds
    while not what():
        if anyio.current_time() >= until:
            return False
        await anyio.sleep(pause)
        pause = min(2 * pause, 0.05)
    return True


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the process has ended. It stays a zombie, or its number could become another's."""
    if process.returncode is not None:
        return True
    if sys.platform == "win32" or not hasattr(os, "waitid"):
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return process.poll() is not None  # somebody else has waited for it


def _is_alive(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the process runs, or anything in its group. A zombie does not, and may stay for ever."""
    if not _has_ended(process):
        return True
    if sys.platform == "win32":
        return False
    try:
        os.killpg(process.pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    try:
        return any(_runs_in_group(entry, process.pid) for entry in os.listdir("/proc") if entry.isdecimal())
    except FileNotFoundError:  # no such place on this system
        return False


def _runs_in_group(entry: str, group: int) -> bool:
    try:
        with open(f"/proc/{entry}/stat", "rb") as file:
            state, _parent, its_group = file.read().rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):
        return False
    return int(its_group) == group and state not in (b"Z", b"X")


def _exit_status(process: subprocess.Popen[bytes]) -> int | None:
    """Return the status of a process that has ended: negative for a signal."""
    if process.returncode is not None or sys.platform == "win32" or not hasattr(os, "waitid"):
        return process.poll()
    try:
        found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return process.poll()
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def _ended_how(status: int) -> str:
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"

"""Servers as processes of their own: started on a free port, waited for, stopped by a signal.

Knows how a server is started; nothing of what it serves. One fixture a kind of server,
kept for the whole run; what a test breaks or measures it starts for itself with `serving`.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import pytest

from tests.leash import leashed

__all__ = [
    "ROOT",
    "Served",
    "asking_server",
    "conformance_server",
    "core_server",
    "free_port",
    "json_server",
    "run_command",
    "serving",
    "started",
    "stateless_server",
    "typed_server",
    "weather_server",
]

ROOT: Final = Path(__file__).resolve().parents[2]

START_SECONDS: Final = 90.0
STOP_SECONDS: Final = 60.0

_RUN: Final = """
import importlib, json, runpy, sys
place, _, name = sys.argv[1].rpartition(":")
names = runpy.run_path(place) if place.endswith(".py") else vars(importlib.import_module(place))
server = names[name] if hasattr(names[name], "run") else names[name]()
options = json.loads(sys.argv[2])
if options.pop("keeps_events", False):
    from mcp_core.transports.streamable_http import InMemoryEventStore
    options["event_store"] = InMemoryEventStore()
server.run("streamable-http", **options)
print("run returned")
"""


class Served:
    """A server process and where it listens."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, output: IO[bytes], errors: IO[bytes]) -> None:
        self.process = process
        self.port = port
        self._output = output
        self._errors = errors

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def output(self) -> str:
        """What it wrote to stdout so far."""
        return _text(self._output)

    @property
    def errors(self) -> str:
        """What it wrote to stderr so far."""
        return _text(self._errors)

    def stop(self, number: int = signal.SIGTERM, seconds: float = STOP_SECONDS) -> int:
        """Send a signal and wait for the end: the exit code.

        Raises:
            subprocess.TimeoutExpired: It goes on.
        """
        self.process.send_signal(number)
        return self.process.wait(seconds)


def _text(file: IO[bytes]) -> str:
    # By `pread`: the process writes at the offset that it shares with us.
    return os.pread(file.fileno(), 10_000_000, 0).decode(errors="replace")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def run_command(target: str, port: int, **options: Any) -> list[str]:
    """The command that runs a server over HTTP.

    `target` is `module:name` or `file.py:name` of a server, or of a function that makes one.
    `keeps_events=True` gives it an event store.
    """
    return [sys.executable, "-c", _RUN, target, json.dumps({"host": "127.0.0.1", "port": port, **options})]


@contextmanager
def started(command: Callable[[int], Sequence[str]]) -> Generator[Served, None, None]:
    """A process that has begun to answer HTTP on the port it was given; ended afterwards, if it has not."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        port = free_port()
        with subprocess.Popen(
            leashed(command(port)), stdin=subprocess.DEVNULL, stdout=output, stderr=errors, cwd=ROOT
        ) as process:
            served = Served(process, port, output, errors)
            try:
                _wait_until_it_answers(served)
                yield served
            finally:
                if process.poll() is None:
                    process.terminate()
                try:
                    process.wait(STOP_SECONDS)
                finally:
                    process.kill()


def serving(target: str, **options: Any) -> Any:
    """`started` with the command of `run_command`."""
    return started(lambda port: run_command(target, port, **options))


def _wait_until_it_answers(served: Served) -> None:
    end = time.monotonic() + START_SECONDS
    while not _answers(served.port):
        if served.process.poll() is not None:
            raise RuntimeError(f"the server ended with {served.process.returncode}: {served.errors}")
        if time.monotonic() > end:
            raise TimeoutError(f"the server does not answer: {served.errors}")
        time.sleep(0.01)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/")
        connection.getresponse().read()
    except OSError:
        return False
    finally:
        connection.close()
    return True


# --- one process a kind, for all tests -------------------------------------------------------


@pytest.fixture(scope="session")
def core_server() -> Generator[Served, None, None]:
    """The low-level bookshop."""
    with serving("tests.interop.core_server:build") as served:
        yield served


@pytest.fixture(scope="session")
def json_server() -> Generator[Served, None, None]:
    """The same, never streaming to handshake-era clients."""
    with serving("tests.interop.core_server:build", json_response=True) as served:
        yield served


@pytest.fixture(scope="session")
def stateless_server() -> Generator[Served, None, None]:
    """The same, without sessions."""
    with serving("tests.interop.core_server:build", stateless_http=True) as served:
        yield served


@pytest.fixture(scope="session")
def typed_server() -> Generator[Served, None, None]:
    """The typed bookshop."""
    with serving("tests.interop.typed_server:mcp") as served:
        yield served


@pytest.fixture(scope="session")
def asking_server() -> Generator[Served, None, None]:
    """The typed server whose tools ask and change."""
    with serving("tests.http.asking_server:mcp") as served:
        yield served


@pytest.fixture(scope="session")
def weather_server() -> Generator[Served, None, None]:
    """The example of the README."""
    with serving("docs/examples/weather.py:mcp") as served:
        yield served


@pytest.fixture(scope="session")
def conformance_server() -> Generator[Served, None, None]:
    """The fixture server of the conformance suite, which keeps events."""
    module = [sys.executable, "-m", "tests.conformance.server", "--port"]
    with started(lambda port: [*module, str(port)]) as served:
        yield served

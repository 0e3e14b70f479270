"""Fixtures for all tests: every async test runs on asyncio and on trio, and no process outlives the run."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_core.testing import flush_logs
from tests.pace import paced

# Hundreds of processes are started here: they, and the next run, are to find the modules compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

BACKENDS = [pytest.param("asyncio", id="asyncio"), pytest.param("trio", id="trio")]

TO_END: Final = 10.0
"""Seconds in which processes that tests have let go of must have ended."""


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="session", autouse=True)
def _without_certificates(tmp_path_factory: pytest.TempPathFactory) -> Generator[None, None, None]:
    """No test speaks TLS: clients of HTTP need not read the certificates of this system, each for 20 ms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SSL_CERT_FILE", raising=False)
        patch.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("certificates")))
        yield


@pytest.fixture(autouse=True)
def _earlier_records_have_come(request: pytest.FixtureRequest) -> None:
    """The library's records leave by a thread: what an earlier test has caused is not to come amid one that counts."""
    if "caplog" in request.fixturenames:
        flush_logs()


def pytest_collection_finish() -> None:
    """What is there before the first test stays: the garbage collector need not walk it time and again.

    Hypothesis is there by then: as it is loaded it looks for what holds trio's randomness, and would not find it.
    """
    importlib.import_module("hypothesis")
    gc.collect()
    gc.freeze()


# --- processes ------------------------------------------------------------------------------

_BEFORE: Final = pytest.StashKey[dict[int, str]]()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remember what this process has started before any test: that is not the tests'."""
    session.config.stash[_BEFORE] = children()


@pytest.fixture(scope="session", autouse=True)
def _no_process_is_left(request: pytest.FixtureRequest) -> Generator[None, None, None]:
    """The first to be set up and so the last to be torn down: after the servers that are kept for a whole run."""
    yield
    before = request.config.stash[_BEFORE]
    end = time.monotonic() + paced(TO_END)
    while (left := {pid: name for pid, name in children().items() if pid not in before}) and time.monotonic() < end:
        time.sleep(0.05)
    assert not left, f"processes outlive the tests that started them: {left}"


def children() -> dict[int, str]:
    """Return the command of each process that this one has started and that has not ended; none but on Linux."""
    found: dict[int, str] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = place.joinpath("stat").read_text().rpartition(")")[2].split()[:2]
            command = place.joinpath("cmdline").read_bytes()
        except OSError:
            continue  # it has just ended
        if int(parent) == os.getpid() and state != "Z":
            found[int(place.name)] = command.replace(b"\0", b" ").decode(errors="replace").strip()
    return found

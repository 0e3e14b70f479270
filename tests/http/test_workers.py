"""`run("streamable-http", workers=...)`: several processes behind one port."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

from mcp_core import Server
from mcp_core.request_state import RequestStateSigner
from mcp_core.transports.streamable_http import InMemoryEventStore
from tests.http import worker_server
from tests.http.serving import ROOT, Served, free_port, run_command, serving
from tests.http.sockets import Connection, stateless, text_of
from tests.pace import Stopwatch

CREW = "tests.http.worker_server:mcp"
SECONDS = 90.0


@pytest.fixture
def crew() -> Generator[Served, None, None]:
    """Two workers."""
    with serving(CREW, workers=2, stateless_http=True) as served:
        yield served


def found(served: Served, count: int, *, but: frozenset[int] = frozenset()) -> frozenset[int]:
    """As many processes as answer, none of them one of those."""
    caller, pids = stateless(served.port), set[int]()
    end = time.monotonic() + SECONDS
    while len(pids) < count:
        if time.monotonic() > end:
            raise TimeoutError(f"only {pids} answer: {served.errors}")
        try:
            pid = int(caller.call("pid"))
        except OSError:  # cut off with the process that was to answer
            continue
        if pid not in but:
            pids.add(pid)
    return frozenset(pids)


def test_all_of_them_answer_and_one_that_dies_is_replaced(crew: Served) -> None:
    pids = found(crew, 2)
    assert crew.process.pid not in pids
    died = min(pids)
    os.kill(died, signal.SIGKILL)
    assert found(crew, 1, but=pids)
    with pytest.raises(ProcessLookupError):
        os.kill(died, 0)


def test_what_one_seals_the_other_opens(crew: Served) -> None:
    caller = stateless(crew.port)
    assert caller.call("inherited") == "[]"
    state = caller.call("keep")
    by: set[int] = set()
    end = time.monotonic() + SECONDS
    while len(by) < 2 and time.monotonic() < end:
        with Connection(crew.port) as connection:
            by.add(int(text_of(connection.send(caller.calling("pid")).answer().json)))
            asked = caller.request("tools/call", {"name": "keep", "arguments": {}, "requestState": state})
            assert text_of(connection.send(asked).answer().json) == "kept"
    assert len(by) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ends_soon_though_a_client_listens(crew: Served, number: signal.Signals) -> None:
    caller = stateless(crew.port)
    pids = found(crew, 2)
    with Connection(crew.port) as stream:
        asked = caller.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        assert stream.send(asked).head().status == 200
        with Stopwatch() as watch:
            assert (crew.stop(number), crew.output) == (0, "run returned\n")
        assert watch.seconds < 4  # uvicorn would give a stream five seconds
        assert b"Traceback" not in crew.errors.encode()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_workers_that_cannot_start_end_the_run() -> None:
    command = run_command(CREW, free_port(), workers=2, stateless_http=True)
    environment = {**os.environ, "CREW_IS_ILL": "yes"}
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False, env=environment)
    assert ended.returncode == 1
    assert "RuntimeError: the workers could not start; the log says why" in ended.stderr
    assert "the crew is ill" in ended.stderr


IN_A_FUNCTION = """
import sys
from mcp_core import Server
from mcp_core.request_state import RequestStateSigner

def main():
    server = Server("hidden")
    try:
        server.run("streamable-http", port=int(sys.argv[1]), workers=2, stateless_http=True)
    except ValueError as exc:
        print(exc)

main()
"""


def test_a_server_that_no_worker_can_find_is_refused() -> None:
    command = [sys.executable, "-c", IN_A_FUNCTION, str(free_port())]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "a global of a module" in ended.stdout


def test_options_that_cannot_travel_are_refused() -> None:
    class Elsewhere(InMemoryEventStore):
        """A class that no other process knows."""

    with pytest.raises(ValueError, match=r"by pickle, which cannot take these: .*Elsewhere"):
        worker_server.mcp.run(
            "streamable-http", port=free_port(), workers=2, stateless_http=True, event_store=Elsewhere()
        )


def test_sessions_are_refused() -> None:
    with pytest.raises(ValueError, match="no sessions in common: pass stateless_http=True"):
        worker_server.mcp.run("streamable-http", port=free_port(), workers=2)


@pytest.mark.parametrize("workers", [0, -1])
def test_there_is_at_least_one(workers: int) -> None:
    with pytest.raises(ValueError, match="workers must be at least 1"):
        Server("bare").run("streamable-http", workers=workers)


@pytest.mark.fault("S-24")
def test_the_key_is_in_no_environment(crew: Served) -> None:
    for pid in [crew.process.pid, *found(crew, 2)]:
        with open(f"/proc/{pid}/environ", "rb") as environment:
            assert b"MCPCORE" not in environment.read()


@pytest.mark.fault("S-24")
def test_a_key_of_the_users_own_is_used_and_left_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPCORE_STATE_KEY", "ab" * 32)
    with serving(CREW, workers=2, stateless_http=True) as crew:
        caller = stateless(crew.port)
        state = caller.call("keep")
        assert caller.call("inherited") == "[]"
        for pid in found(crew, 2):
            with open(f"/proc/{pid}/environ", "rb") as environment:
                assert b"MCPCORE" not in environment.read()
    params: dict[str, Any] = {"name": "keep", "arguments": {}}
    crew_again = SimpleNamespace(name="crew")
    ctx: Any = SimpleNamespace(method="tools/call", params=params, peer=object(), auth=None, server=crew_again)
    assert RequestStateSigner().verify(ctx, state) == "kept"
    assert os.environ["MCPCORE_STATE_KEY"] == "ab" * 32


@pytest.mark.fault("S-24")
@pytest.mark.parametrize("key", ["xyz", "ab", "ab" * 31, "secret" * 20])
def test_a_key_that_is_none_is_refused_without_being_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPCORE_STATE_KEY", key)
    with pytest.raises(
        ValueError, match=f"must be at least 64 hexadecimal digits; got {len(key)} characters"
    ) as caught:
        RequestStateSigner()
    assert key not in str(caught.value)


@pytest.mark.fault("X-58")
def test_a_worker_that_was_asked_to_end_before_its_import_does_not_import() -> None:
    code = """
import signal
from mcp_core.transports.streamable_http import workers

class Server:
    should_exit = False

    def handle_exit(self, number, frame):
        self.should_exit = True

server = Server()
signal.signal(signal.SIGTERM, server.handle_exit)
with workers._ended_at_once():
    print("imports", flush=True)
assert signal.getsignal(signal.SIGTERM) == server.handle_exit
signal.raise_signal(signal.SIGTERM)
with workers._ended_at_once():
    print("imports after all")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "imports\n", "")

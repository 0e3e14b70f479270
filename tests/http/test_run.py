"""`run("streamable-http")`: what a process does that serves over HTTP, from its start to a signal."""

from __future__ import annotations

import gc
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mcp_core import Server
from mcp_typed import MCPServer
from tests.http.serving import ROOT, Served, free_port, run_command, serving, started
from tests.http.sockets import Connection, handshake, stateless, text_of
from tests.pace import Stopwatch

CORE = "tests.http.harbour_server:server"
TYPED = "tests.http.asking_server:mcp"


# --- serving -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "number"),
    [
        pytest.param(CORE, signal.SIGINT, id="core-SIGINT"),
        pytest.param(TYPED, signal.SIGTERM, id="typed-SIGTERM"),
        pytest.param(CORE, signal.SIGTERM, id="core-SIGTERM", marks=pytest.mark.slow),
        pytest.param(TYPED, signal.SIGINT, id="typed-SIGINT", marks=pytest.mark.slow),
    ],
)
def test_serves_both_eras_says_where_and_ends_with_the_signal(target: str, number: signal.Signals) -> None:
    with serving(target) as served:
        modern, older = stateless(served.port), handshake(served.port)
        for caller in (modern, older):
            with Connection(served.port) as connection:
                listed = connection.send(caller.request("tools/list")).answer()
            assert listed.status == 200
            assert listed.json["id"] == 1
            assert listed.json["result"]["tools"]
        where = served.errors
        assert served.output == ""
        assert where.endswith(f" is served at http://127.0.0.1:{served.port}/mcp\n")
        code = served.stop(number)
        # `run` returns, so that the rest of the program is done, and its exit code is its own.
        assert (code, served.output, served.errors) == (0, "run returned\n", where)


def test_ends_soon_though_clients_are_connected() -> None:
    with serving(CORE) as served:
        caller = handshake(served.port)
        with Connection(served.port) as idle, Connection(served.port) as stream:
            idle.send(caller.request("ping")).answer()
            assert stream.send(caller.get()).head().status == 200
            with Stopwatch() as watch:
                served.stop(signal.SIGINT)
            assert watch.seconds < 2
            assert idle.rest() == b""


def test_a_second_signal_is_no_traceback_either() -> None:
    """Whoever waits for the end of a call that takes long presses the keys again."""
    with serving(CORE) as served:
        caller = stateless(served.port)
        with Connection(served.port) as busy:
            busy.send(caller.calling("linger_stubbornly", name="second"))
            caller.call("wait_for", name="second started")
            served.process.send_signal(signal.SIGINT)
            _until_it_refuses(served)
            served.stop(signal.SIGINT)
            assert "Traceback" not in served.errors


def _until_it_refuses(served: Served) -> None:
    """Wait until the server takes no connections any more: the signal has come."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", served.port), 1).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.01)
    raise TimeoutError("the server still listens")


def test_the_command_line_of_a_file_serves(weather_server: Served) -> None:
    caller = stateless(weather_server.port)
    with Connection(weather_server.port) as connection:
        answer = connection.send(caller.calling("get_weather", city="Kyiv")).answer()
    assert answer.json["result"]["structuredContent"] == {
        "temperature": 16.2,
        "humidity": 0.83,
        "conditions": "Overcast in Kyiv",
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_the_command_serves_a_file(workers: int) -> None:
    def command(port: int) -> list[str]:
        options = ["--http", "--port", str(port), "--workers", str(workers)]
        return [sys.executable, "-m", "mcp_typed", "run", "docs/examples/weather.py", *options]

    with started(command) as served:
        caller = stateless(served.port)
        with Connection(served.port) as connection:
            answer = connection.send(caller.calling("get_weather", city="Kyiv")).answer()
        assert answer.json["result"]["structuredContent"]["conditions"] == "Overcast in Kyiv"
        assert served.stop() == 0
        assert served.errors.count("\n") == 1  # where it is served, and no more
        assert f"http://127.0.0.1:{served.port}/mcp" in served.errors


def test_the_command_says_what_is_wrong() -> None:
    command = [sys.executable, "-m", "mcp_typed", "run", "docs/examples/weather.py", "--http", "--loop", "trio"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "Error: HTTP is served on asyncio or uvloop, not on 'trio'\n"


def test_options_reach_the_app_and_uvicorn() -> None:
    options: dict[str, Any] = {
        "streamable_http_path": "/api",
        "health_path": "/health",
        "max_request_body_size": 1000,
        "uvicorn": {"headers": [["X-Served-By", "test"]]},
    }
    with serving(CORE, **options) as served, Connection(served.port) as connection:
        health = connection.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").answer()
        assert (health.status, health.json, health.headers["x-served-by"]) == (200, {"status": "ok"}, "test")
        caller = stateless(served.port)
        asked = caller.calling("echo", text="x" * 1000).replace(b"POST /mcp", b"POST /api")
        assert connection.send(asked).answer().status == 413
        asked = caller.calling("echo", text="x").replace(b"POST /mcp", b"POST /api")
        assert text_of(connection.send(asked).answer().json) == "x"


def test_on_the_loop_of_asyncio() -> None:
    with serving(CORE, loop="asyncio") as served:
        assert stateless(served.port).call("echo", text="slower") == "slower"
        assert served.errors.count("\n") == 1  # where it is served, and no more
        assert f"http://127.0.0.1:{served.port}/mcp" in served.errors


def test_without_uvloop_and_httptools(tmp_path: Path) -> None:
    """The extra brings both, but uvicorn alone is enough."""
    for name in ("uvloop", "httptools"):
        (tmp_path / f"{name}.py").write_text("raise ImportError\n")
    block = f"import sys; sys.modules.update(uvloop=None, httptools=None); sys.path[:0] = [{str(ROOT)!r}]; "

    def command(port: int) -> list[str]:
        python, flag, code, *rest = run_command(CORE, port)
        return [python, flag, block + code, *rest]

    with started(command) as served:
        assert stateless(served.port).call("echo", text="plain") == "plain"
        assert served.errors.count("\n") == 1  # where it is served, and no more
        assert f"http://127.0.0.1:{served.port}/mcp" in served.errors


# --- not serving -------------------------------------------------------------------------------


@pytest.mark.parametrize("server", [Server("bare"), MCPServer("bare")], ids=["core", "typed"])
def test_without_uvicorn_it_says_what_to_install(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(RuntimeError) as caught:
        server.run("streamable-http")
    assert str(caught.value) == 'serving HTTP needs uvicorn; install it with: pip install "mcpcore[http]"'


@pytest.mark.parametrize("server", [Server("bare"), MCPServer("bare")], ids=["core", "typed"])
def test_a_transport_that_does_not_exist(server: Any) -> None:
    with pytest.raises(ValueError, match="unknown transport 'sse'; known are 'stdio' and 'streamable-http'"):
        server.run("sse")


def test_an_option_that_does_not_exist_is_named() -> None:
    with pytest.raises(TypeError, match="prot"):
        Server("bare").run("streamable-http", prot=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


def run_code(code: str) -> subprocess.CompletedProcess[str]:
    """What a program does that fails to serve, warnings and all."""
    command = [sys.executable, "-W", "error", "-c", code, str(free_port())]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)


IN_A_LOOP = """
import asyncio, sys
from mcp_core import Server

async def main():
    try:
        Server("bare").run("streamable-http", port=int(sys.argv[1]))
    except RuntimeError as exc:
        print(exc)

asyncio.run(main())
"""


def test_a_running_loop_is_refused() -> None:
    """In words that help, and without a coroutine that nobody awaits."""
    ended = run_code(IN_A_LOOP)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "running" in ended.stdout


ON_TRIO = """
import sys
from mcp_core import Server

try:
    Server("bare").run("streamable-http", port=int(sys.argv[1]), loop="trio")
except ValueError as exc:
    print(exc)
"""


def test_a_loop_that_uvicorn_does_not_have_is_refused() -> None:
    ended = run_code(ON_TRIO)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "'trio'" in ended.stdout


def test_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = subprocess.run(run_command(CORE, port), capture_output=True, cwd=ROOT, timeout=60, check=False)
    assert ended.returncode not in (0, None)
    assert b"address already in use" in ended.stderr
    assert b"Traceback" not in ended.stderr
    assert ended.stdout == b""


BROKEN = """
from contextlib import asynccontextmanager
from mcp_core import Server

@asynccontextmanager
async def lifespan(server):
    {before}
    yield {{}}
    {after}

server = Server("broken", lifespan=lifespan)
"""


def test_a_lifespan_that_cannot_start_ends_the_process(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text(BROKEN.format(before="raise RuntimeError('no database')", after="pass"))
    command = run_command(f"{file}:server", free_port())
    ended = subprocess.run(command, capture_output=True, cwd=ROOT, timeout=60, check=False)
    assert ended.returncode not in (0, None)
    assert b"no database" in ended.stderr
    assert ended.stdout == b""


def test_the_lifespan_is_left_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "closing.py"
    file.write_text(BROKEN.format(before="pass", after="print('closed', flush=True)"))
    with serving(f"{file}:server") as served:
        served.stop()
        assert served.output.splitlines()[0] == "closed"


PORT_OF_THE_SYSTEM = """
from mcp_core import Server

server = Server("anywhere", protocol_versions=["2026-07-28"])
if __name__ == "__main__":
    server.run("streamable-http", port=0, workers={workers})
"""


@pytest.mark.fault("X-31")
@pytest.mark.parametrize("workers", [1, 2])
def test_it_says_which_port_it_was_given(tmp_path: Path, workers: int) -> None:
    file = tmp_path / "anywhere.py"
    file.write_text(PORT_OF_THE_SYSTEM.format(workers=workers))
    with subprocess.Popen([sys.executable, str(file)], stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stderr is not None
        try:
            said = re.match(r"anywhere is served at http://127\.0\.0\.1:([0-9]+)/mcp", process.stderr.readline())
            assert said is not None
            assert int(said[1]) > 0
            socket.create_connection(("127.0.0.1", int(said[1])), 20).close()
        finally:
            process.terminate()


@pytest.mark.fault("X-33")
@pytest.mark.parametrize(
    ("transport", "options", "said"),
    [
        ("stdio", {"port": 1}, "run('stdio') has no option 'port'; it is one of run('streamable-http')"),
        ("stdio", {"prot": 1}, "run('stdio') has no option 'prot'; its options are drain_timeout, max_message_size"),
        ("streamable-http", {"drain_timeout": 1}, "has no option 'drain_timeout'; it is one of run('stdio')"),
        ("streamable-http", {"prot": 1}, "run('streamable-http') has no option 'prot'; its options are auth, "),
    ],
)
def test_an_option_of_another_transport_is_said_to_be_one(transport: Any, options: Any, said: str) -> None:
    with pytest.raises(TypeError) as caught:
        Server("bare").run(transport, **options)
    assert said in str(caught.value)


@pytest.mark.fault("X-33")
@pytest.mark.parametrize("loop", [None, "asyncio", "trio", "uvloop"])
async def test_run_within_a_loop_leaves_no_coroutine_behind(loop: Any, recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(RuntimeError, match="run_stdio_async"):
        Server("bare").run("stdio", loop=loop)
    with pytest.raises(RuntimeError, match="streamable_http_app"):
        Server("bare").run("streamable-http")
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []


@pytest.mark.fault("X-67")
@pytest.mark.parametrize("name", ["trio", "uvloop"])
def test_a_loop_that_is_not_installed_says_what_to_install(name: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)  # as if it could not be imported
    with pytest.raises(RuntimeError, match=f"loop='{name}' needs {name}; install it with: pip install "):
        Server("bare").run("stdio", loop=name)

"""The commands: their options, their exit statuses, and what they say of a wrong line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mcp_core import Server
from mcp_core.types import ListToolsResult, Tool
from mcp_typed import cli
from tests.cli.conftest import Run, Write, process
from tests.http.serving import Served, serving, started

ECHO = """
import os
from mcp_typed import MCPServer

mcp = MCPServer("echo")

@mcp.tool
def echo(x: str) -> str:
    "Say it."
    return x

@mcp.tool
def variable(name: str) -> str | None:
    "Look it up."
    return os.environ.get(name)
"""


@pytest.fixture
def echo(write: Write) -> Path:
    return write("echo.py", ECHO)


def usage(*arguments: str) -> str:
    """What is said of a line that is refused before anything is started."""
    done = CliRunner().invoke(cli.main, arguments)
    assert done.exit_code == 2, done.output
    return done.output.splitlines()[-1]


# --- the environment -----------------------------------------------------------------------------


@pytest.mark.fault("X-53")
@pytest.mark.usefixtures("echo")
def test_call_hands_the_environment_on_and_more(run: Run) -> None:
    environment = {**os.environ, "KEY": "inherited", "OTHER": "inherited"}
    for name, value in (("KEY", "inherited"), ("OTHER", "a=b"), ("EMPTY", "")):
        given = ["--env", "OTHER=a=b", "--env", "EMPTY="]
        done = run("call", "echo.py", "variable", json.dumps({"name": name}), "--json", *given, env=environment)
        assert json.loads(done.stdout)["structuredContent"] == {"result": value}


@pytest.mark.fault("X-53")
@pytest.mark.parametrize("command", ["list", "list --lint"])
def test_list_hands_the_environment_on(write: Write, run: Run, command: str) -> None:
    write("x.py", ECHO + "assert os.environ['KEY'] + os.environ['OTHER'] == 'ab'\n")
    name, *options = command.split()
    assert run(name, "x.py", *options, "--env", "OTHER=b", env={**os.environ, "KEY": "a"}).stderr == ""


@pytest.mark.fault("X-53")
@pytest.mark.parametrize("text", ["KEY", "=value", ""])
def test_a_variable_without_a_name_or_a_value(text: str) -> None:
    assert usage("call", "x.py", "echo", "--env", text) == (
        f"Error: Invalid value for '--env': must be NAME=VALUE; got {text!r}"
    )


@pytest.mark.case("C092")
@pytest.mark.parametrize("name", ["types", "click", "json", "mcp_core", "mcp_typed", "asyncio"])
def test_a_module_in_the_working_directory_is_not_pythons_own(write: Write, run: Run, name: str) -> None:
    write("servers/echo.py", ECHO)
    write(f"{name}.py", "raise RuntimeError('somebody else')\n")
    done = run("call", "servers/echo.py", "echo", '{"x": "hello"}')
    assert (done.returncode, done.stderr) == (0, "")


# --- options that exclude each other -------------------------------------------------------------


@pytest.mark.fault("X-54")
@pytest.mark.parametrize("port", ["99999", "65536", "-1", "http"])
def test_a_port_is_one(port: str) -> None:
    told = usage("run", "x.py", "--http", "--port", port)
    assert told.startswith("Error: Invalid value for '--port': ")
    assert told.endswith("is not a valid integer range." if port == "http" else "is not in the range 0<=x<=65535.")


@pytest.mark.fault("X-54")
@pytest.mark.parametrize(("option", "value"), [("port", "8000"), ("host", "127.0.0.1"), ("workers", "1")])
def test_what_belongs_to_http_needs_it(option: str, value: str) -> None:
    assert usage("run", "x.py", f"--{option}", value) == f"Error: --{option} needs --http"


@pytest.mark.fault("X-54")
def test_there_is_at_least_one_worker() -> None:
    assert usage("run", "x.py", "--http", "--workers", "0").endswith("0 is not in the range x>=1.")


@pytest.mark.fault("X-57")
def test_a_url_is_no_file_and_a_file_no_url() -> None:
    url = "http://localhost:8000/mcp"
    assert usage("run", url) == f"Error: {url} runs already; `mcp-typed call` and `mcp-typed list` take its URL"
    assert "name its file" in usage("list", url, "--lint")
    assert usage("list", url, "--env", "A=1").startswith("Error: --env is for a server that is started here")
    assert usage("dev", url, "--env", "A=1").startswith("Error: --env is for a server that is started here")
    assert usage("call", "x.py", "echo", "--header", "A:1").startswith("Error: --header is for a server at a URL")


@pytest.mark.fault("X-67")
@pytest.mark.parametrize("loop", ["uvloop", "trio"])
@pytest.mark.usefixtures("echo")
def test_a_loop_that_is_not_installed(write: Write, loop: str, tmp_path: Path) -> None:
    write(f"missing/{loop}.py", "raise ImportError\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "missing")}
    command = [sys.executable, "-P", "-m", "mcp_typed", "run", "echo.py", "--loop", loop]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, stdin=subprocess.DEVNULL, env=environment, check=False
    )
    install = {"uvloop": 'pip install "mcpcore[http]"', "trio": "pip install trio"}[loop]
    assert done.returncode == 1
    assert done.stderr == f"Error: loop='{loop}' needs {loop}; install it with: {install}\n"


# --- the arguments of a call ---------------------------------------------------------------------


@pytest.mark.fault("X-67")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '{"city": "Lon" x}',
            "the arguments are no JSON: Expecting ',' delimiter at column 16\n"
            '  {"city": "Lon" x}\n'
            "                 ^",
        ),
        (
            '{"a": 1,\n "b": }',
            'the arguments are no JSON: Expecting value at line 2, column 7\n   "b": }\n        ^',
        ),
        (
            "{city: London}",
            "the arguments are no JSON: Expecting property name enclosed in double quotes at column 2\n"
            "  {city: London}\n   ^\nNames and texts need double quotes; most shells want single ones around it all.",
        ),
        ("[1]", 'the arguments must be a JSON object, as {"city": "London"}'),
        ('{"a": NaN}', "the arguments are no JSON: JSON has no NaN"),
        ('{"a": -Infinity}', "the arguments are no JSON: JSON has no -Infinity"),
        ('{"a": 1e999}', "the arguments are no JSON: JSON has no 1e999"),
    ],
    ids=["comma", "second-line", "quotes", "array", "nan", "infinity", "overflow"],
)
def test_arguments_that_are_no_object(text: str, told: str) -> None:
    done = CliRunner().invoke(cli.main, ["call", "x.py", "echo", text])
    assert (done.exit_code, done.output) == (1, f"Error: {told}\n")


@pytest.mark.fault("X-67")
@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": "\udcff"}', "", '{"x": "' + "y" * 100_000], ids=lambda t: t[:8])
def test_arguments_that_are_none_at_all(text: str) -> None:
    done = CliRunner().invoke(cli.main, ["call", "x.py", "echo", text])
    assert done.exit_code == 1
    assert done.output.startswith("Error: the arguments are no JSON: ")
    assert len(done.output) < 500


@pytest.mark.fault("X-67")
@pytest.mark.usefixtures("echo")
def test_a_tool_that_is_not_there(run: Run) -> None:
    done = run("call", "echo.py", "ehco")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: Unknown tool: ehco; echo.py has 'echo', 'variable'; did you mean 'echo'?\n"


def test_of_many_tools_some_are_named(write: Write, run: Run) -> None:
    write("x.py", ECHO + "for n in range(100):\n    mcp.add_tool(echo, name=f'echo{n}')\n")
    done = run("call", "x.py", "ecoh42")
    assert done.stderr.endswith(", 'echo17' and 82 more; did you mean 'echo42'?\n")


def test_a_list_that_does_not_end(write: Write, run: Run) -> None:
    write(
        "x.py",
        "from mcp_core import Server\nfrom mcp_core.types import ListToolsResult\n"
        "server = Server('x', on_list_tools=lambda ctx, p: ListToolsResult(tools=[], next_cursor='more'))\n",
    )
    done = run("list", "x.py")
    assert (done.returncode, done.stderr) == (1, "Error: the list of tools does not end: 1,000 pages were read\n")


# --- a server at a URL ---------------------------------------------------------------------------


@pytest.mark.fault("X-57")
def test_call_and_list_of_a_url(run: Run) -> None:
    with serving("docs/examples/weather.py:mcp") as served:
        check_url(served.url, run)


def check_url(url: str, run: Run) -> None:
    listed = run("list", url)
    assert [tool["name"] for tool in json.loads(listed.stdout)] == ["get_weather"]
    called = run("call", url, "get_weather", '{"city": "Oslo"}', "--json", "--header", "X-Trace: 5")
    assert json.loads(called.stdout)["structuredContent"]["conditions"] == "Overcast in Oslo"
    wrong = run("call", url, "get_wether")
    assert wrong.stderr == (f"Error: Unknown tool: get_wether; {url} has 'get_weather'; did you mean 'get_weather'?\n")


@pytest.mark.fault("X-57")
@pytest.mark.parametrize("url", ["http://127.0.0.1:1/mcp", "https://127.0.0.1:1/mcp"])
def test_a_url_where_nobody_listens(run: Run, url: str) -> None:
    done = run("list", url)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr


# --- signals -------------------------------------------------------------------------------------


def signalled(served: Served, number: signal.Signals, *, group: bool) -> int:
    """Send a signal, to all processes as a terminal does or to the first one; the exit code."""
    if group:
        os.killpg(served.process.pid, number)
    else:
        served.process.send_signal(number)
    return served.process.wait(30)


@pytest.mark.fault("X-58")
@pytest.mark.parametrize(("number", "group"), [(signal.SIGINT, True), (signal.SIGINT, False), (signal.SIGTERM, False)])
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.usefixtures("echo")
def test_a_signal_ends_one_process_as_it_ends_several(
    workers: str, number: signal.Signals, group: bool, tmp_path: Path
) -> None:
    def command(port: int) -> list[str]:
        options = ["--http", "--port", str(port), "--workers", workers]
        # A session of its own, so that there is a group to send to.
        start = "import os, sys; os.setsid(); os.execv(sys.executable, [sys.executable, '-m', *sys.argv[1:]])"
        return [sys.executable, "-c", start, "mcp_typed", "run", str(tmp_path / "echo.py"), *options]

    with started(command) as served:
        code = signalled(served, number, group=group)
        assert (code, served.output) == (0, "")
        assert "Traceback" not in served.errors
        assert "Aborted" not in served.errors


@pytest.mark.fault("X-58")
@pytest.mark.parametrize("command", ["run", "call"])
def test_ctrl_c_before_it_serves_ends_it_without_a_word(write: Write, tmp_path: Path, command: str) -> None:
    ready = tmp_path / "ready"
    write("slow.py", f"import time, pathlib\npathlib.Path({str(ready)!r}).touch()\ntime.sleep(60)\n")
    arguments = [sys.executable, "-P", "-m", "mcp_typed", command, "slow.py", *(["tool"] if command == "call" else [])]
    with process(arguments, cwd=tmp_path) as slow:
        end = time.monotonic() + 30
        while not ready.exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        slow.send_signal(signal.SIGINT)
        assert slow.communicate(timeout=30) == ("", "")
        assert slow.returncode == 130


@pytest.mark.fault("X-58")
def test_workers_that_import_are_not_interrupted(write: Write, tmp_path: Path) -> None:
    """A terminal's Ctrl-C reaches them too; their supervisor is to end them."""
    text = (
        "import multiprocessing, pathlib, time\n"
        "if multiprocessing.parent_process() is not None:\n"
        f"    pathlib.Path({str(tmp_path / 'importing')!r}).touch()\n"
        "    time.sleep(60)\n"
    )
    write("slow.py", ECHO + text)
    command = [sys.executable, "-P", "-m", "mcp_typed", "run", "slow.py", "--http", "--port", "0", "--workers", "2"]
    with process(command, cwd=tmp_path, start_new_session=True) as slow:
        end = time.monotonic() + 30
        while not (tmp_path / "importing").exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        os.killpg(slow.pid, signal.SIGINT)
        output, errors = slow.communicate(timeout=30)
        assert (slow.returncode, output) == (0, "")
        assert "KeyboardInterrupt" not in errors


# --- the rest ------------------------------------------------------------------------------------


def test_the_help_says_what_a_target_may_be() -> None:
    told = CliRunner().invoke(cli.main, ["--help"]).output
    for word in ("package.module", ":NAME", "URL"):
        assert word in told
    for hidden in ("--failure-file", "--env-file"):
        assert hidden not in CliRunner().invoke(cli.main, ["run", "--help"]).output


def test_a_list_of_several_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    def page(_ctx: Any, params: Any) -> ListToolsResult:
        number = int(params.cursor or 0)
        tool = Tool(name=f"t{number}", input_schema={"type": "object"})
        return ListToolsResult(tools=[tool], next_cursor=str(number + 1) if number < 2 else None)

    def in_memory(_target: Any, _failure: Any) -> Server[Any]:
        return Server("x", on_list_tools=page)

    monkeypatch.setattr(cli, "_parameters", in_memory)
    done = CliRunner().invoke(cli.main, ["list", "x.py"])
    assert [tool["name"] for tool in json.loads(done.output)] == ["t0", "t1", "t2"]

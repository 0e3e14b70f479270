"""`dev`: what is checked before, what is started, and that all of it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcp_typed import cli
from mcp_typed.inspector import INSPECTOR
from tests.cli.conftest import Write, process
from tests.http import test_inspector

pytestmark = [
    pytest.mark.fault("X-59"),
    pytest.mark.skipif(sys.platform == "win32", reason="the program that stands for npx is a script"),
]

GRACE = 0.5
"""Seconds for what is ended here, which mostly does as it is told."""

SERVER = 'from mcp_typed import MCPServer\nmcp = MCPServer("x")\n'

# Stands for npx, which starts node: it notes its arguments, and has a child that outlives it.
NPX = """#!{python}
import json, os, pathlib, subprocess, sys, time
{first}
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
read = sys.argv[sys.argv.index("--env-file") + 1] if "--env-file" in sys.argv else None
variables = json.loads(pathlib.Path(read).read_text()) if read else {{}}
note = {{"arguments": sys.argv[1:], "pids": [os.getpid(), child.pid], "variables": variables}}
pathlib.Path({note!r} + ".part").write_text(json.dumps(note))
os.rename({note!r} + ".part", {note!r})
{then}
"""


class Dev:
    """A run of `dev` with the program in the place of npx."""

    def __init__(self, folder: Path, then: str, first: str = "") -> None:
        self.folder = folder
        self.note = folder / "note.json"
        npx = folder / "bin" / "npx"
        npx.parent.mkdir()
        npx.write_text(NPX.format(python=sys.executable, note=str(self.note), then=then, first=first))
        npx.chmod(0o755)

    def start(self, *arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
        environment = {**os.environ, "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "KEY": "secret"}
        code = f"from mcp_typed import cli, inspector; inspector.GRACE = {GRACE}; cli.main()"
        command = [sys.executable, "-P", "-c", code, "dev", *arguments]
        return process(command, cwd=self.folder, env=environment)

    def noted(self, running: subprocess.Popen[str]) -> dict[str, list[str]]:
        """What the program has noted, once it runs."""
        end = time.monotonic() + 30
        while not self.note.exists():
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < end
            time.sleep(0.01)
        found: dict[str, list[str]] = json.loads(self.note.read_text())
        return found


def is_left(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has waited for does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


def wait_until_gone(pids: list[str]) -> None:
    end = time.monotonic() + 30
    while any(is_left(int(pid)) for pid in pids):
        assert time.monotonic() < end, f"{pids} are left"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)], ids=lambda n: str(n)
)
def test_a_signal_ends_all_that_was_started(write: Write, tmp_path: Path, number: signal.Signals, status: int) -> None:
    write("x.py", SERVER)
    dev = Dev(tmp_path, "time.sleep(60)")
    with dev.start("x.py") as running:
        pids = dev.noted(running)["pids"]
        running.send_signal(number)
        assert running.communicate(timeout=30) == ("", "")
        assert running.returncode == status
    wait_until_gone(pids)


def test_one_that_does_not_listen_is_killed(write: Write, tmp_path: Path) -> None:
    write("x.py", SERVER)
    dev = Dev(tmp_path, "time.sleep(60)", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    with dev.start("x.py") as running:
        pids = dev.noted(running)["pids"]
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=30)
        assert running.returncode == 143
    wait_until_gone(pids)


def test_it_ends_with_what_it_has_started_and_with_its_status(write: Write, tmp_path: Path) -> None:
    write("x.py", SERVER)
    dev = Dev(tmp_path, "sys.exit(3)")
    with dev.start("x.py") as running:
        running.communicate(timeout=30)
        assert running.returncode == 3
    wait_until_gone(json.loads(dev.note.read_text())["pids"])


def test_the_inspector_is_pinned_and_given_the_environment(write: Write, tmp_path: Path) -> None:
    write("x.py", SERVER)
    dev = Dev(tmp_path, "")
    with dev.start("x.py", "--env", "OTHER=more") as running:
        running.communicate(timeout=30)
    note = json.loads(dev.note.read_text())
    assert INSPECTOR == test_inspector.PACKAGE
    assert note["arguments"][:3] == ["--yes", INSPECTOR, sys.executable]
    assert note["arguments"][-1] == "x.py"
    assert (note["variables"]["KEY"], note["variables"]["OTHER"]) == ("secret", "more")
    # Everybody can see the arguments of a process.
    assert not any("secret" in argument for argument in note["arguments"])
    assert not Path(note["arguments"][note["arguments"].index("--env-file") + 1]).exists()


def test_a_url_is_handed_on(tmp_path: Path) -> None:
    dev = Dev(tmp_path, "")
    with dev.start("http://127.0.0.1:1/mcp") as running:
        running.communicate(timeout=30)
    arguments = json.loads(dev.note.read_text())["arguments"]
    assert arguments[2:] == ["--transport", "http", "--server-url", "http://127.0.0.1:1/mcp"]


@pytest.mark.parametrize("text", ["import nothing_here\n", "", SERVER + "mcp.run()\n"], ids=["import", "none", "runs"])
def test_a_file_that_cannot_be_served_is_told_of_before(write: Write, tmp_path: Path, text: str) -> None:
    write("x.py", text)
    dev = Dev(tmp_path, "")
    with dev.start("x.py") as running:
        output, errors = running.communicate(timeout=30)
        assert (running.returncode, output) == (1, "")
    assert errors.startswith("Error: x.py")
    assert not dev.note.exists(), "the Inspector was started"


def test_without_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(cli.main, ["dev", "http://127.0.0.1:1/mcp"])
    assert (done.exit_code, done.output) == (1, "Error: the Inspector needs Node.js: npx was not found\n")

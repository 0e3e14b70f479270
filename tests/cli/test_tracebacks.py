"""What is told of a failure: the author's own lines, the cause last, once, and shortly."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_typed import tracebacks
from mcp_typed.loading import NoServer, load_server
from tests.cli.conftest import Run, Write

pytestmark = pytest.mark.fault("X-56")

LIFESPAN = """
from contextlib import asynccontextmanager
from mcp_typed import MCPServer

@asynccontextmanager
async def lifespan(server):
    raise RuntimeError("no database")
    yield {}

mcp = MCPServer("x", lifespan=lifespan)
"""


def told(path: Path) -> str:
    with pytest.raises(NoServer) as caught:
        load_server(str(path))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("import nothing_here", ["    import nothing_here", "ModuleNotFoundError: No module named 'nothing_here'"]),
        ("import json\njson.loads('{')", ["    json.loads('{')", "json.decoder.JSONDecodeError: "]),
        (
            "from mcp_typed import MCPServer\nmcp = MCPServer('x')\n@mcp.tool\ndef f(*a: int) -> int: ...",
            ["    @mcp.tool", "mcp_typed.errors.InvalidSignature: tool 'f': parameter *a has no place in a schema"],
        ),
        ("def f(:", ["    def f(:", "SyntaxError: invalid syntax"]),
        (
            "try:\n    {}['KEY']\nexcept KeyError as exc:\n    raise RuntimeError('no config') from exc",
            ["KeyError: 'KEY'", "was the direct cause", "    raise RuntimeError('no config') from exc", "no config"],
        ),
        (
            "raise ExceptionGroup('two', [ValueError('a'), KeyError('b')])",
            ["ExceptionGroup: two (2 sub-exceptions)", "  ValueError: a", "  KeyError: 'b'"],
        ),
        ("def f(): g()\ndef g(): f()\nf()", ["RecursionError: maximum recursion depth exceeded"]),
    ],
    ids=["import", "library", "registration", "syntax", "cause", "group", "recursion"],
)
def test_only_the_authors_lines_are_shown(write: Write, loads_apart: None, text: str, shown: list[str]) -> None:
    path = write("x.py", text)
    lines = told(path).splitlines()
    assert lines[0] == f"{path} cannot be loaded"
    places = [line for line in lines if line.startswith("  File ")]
    assert all(f'"{path}"' in line for line in places)
    assert 1 <= len(places) <= tracebacks.FRAMES
    assert len(lines) < 30
    at = 0
    for part in shown:  # in this order, the cause of all last
        at = next(number for number, line in enumerate(lines[at:], at) if part in line)
    assert shown[-1] in lines[-1] or "syntax" in lines[-1]


def test_the_exception_that_a_library_has_translated_is_left_out(write: Write, loads_apart: None) -> None:
    """It came and went inside of the library, and its text is about something else."""
    path = write("x.py", "import importlib.resources\nimport decimal\ndecimal.Decimal('x')\n")
    assert "During handling" not in told(path)


def test_a_text_that_is_long_is_cut(write: Write, loads_apart: None) -> None:
    text = told(write("x.py", "raise ValueError('x' * 100_000)"))
    assert len(text) < tracebacks.TEXT + 500
    assert text.endswith("(100,012 characters)")


def test_code_of_the_authors_that_is_installed_is_theirs(write: Write, loads_apart: None, tmp_path: Path) -> None:
    write("site-packages/bikes/__init__.py", "")
    write("site-packages/bikes/inner.py", "1 / 0\n")
    write("site-packages/bikes/server.py", "from . import inner\n")
    text = told(tmp_path / "site-packages" / "bikes" / "server.py")
    assert "server.py" in text
    assert "inner.py" in text


@pytest.mark.fault("X-32")
@pytest.mark.parametrize("command", ["run", "list", "call"])
def test_a_failure_is_told_once(write: Write, run: Run, command: str) -> None:
    path = write("x.py", "import nothing_here\n")
    done = run(command, "x.py", *(["tool"] if command == "call" else []))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f'Error: x.py cannot be loaded\n  File "{path}", line 1, in <module>\n    import nothing_here\n'
        "ModuleNotFoundError: No module named 'nothing_here'\n"
    )


@pytest.mark.fault("X-32")
@pytest.mark.parametrize("command", ["run", "list", "call", "dev"])
def test_so_is_that_of_a_lifespan(write: Write, run: Run, command: str) -> None:
    path = write("x.py", LIFESPAN)
    done = run(command, "x.py", *(["tool"] if command == "call" else []))
    assert done.returncode == 1
    assert done.stderr == (
        f'Error: x.py has failed\n  File "{path}", line 7, in lifespan\n    raise RuntimeError("no database")\n'
        "RuntimeError: no database\n"
    )


@pytest.mark.fault("X-32")
@pytest.mark.parametrize("command", ["run", "list", "call"])
def test_so_is_a_file_without_a_server(write: Write, run: Run, command: str) -> None:
    write("x.py", "")
    done = run(command, "x.py", *(["tool"] if command == "call" else []))
    assert done.returncode == 1
    assert done.stderr == 'Error: x.py has no server; make one in it, as in: mcp = MCPServer("name")\n'


@pytest.mark.fault("X-32")
def test_a_process_that_dies_without_a_word_is_told_of(write: Write, run: Run) -> None:
    write("x.py", "import os\nos._exit(7)\n")
    done = run("list", "x.py")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("Error: ") == 1


def test_what_is_raised_later_is_shown_likewise() -> None:
    def failing() -> None:
        raise ValueError("here")

    with pytest.raises(ValueError, match="here") as caught:
        failing()
    assert tracebacks.has_own_lines(caught.value)
    assert tracebacks.format_own_lines(caught.value).endswith("ValueError: here")
    assert tracebacks.module_line(caught.value) is None, "it went through functions only"
    with pytest.raises(ValueError, match="invalid literal") as caught:
        int("x")
    caught.value.__traceback__ = None
    assert not tracebacks.has_own_lines(caught.value)

"""Tools that ask: on a terminal their user answers, elsewhere it is said that nobody could."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from mcp_core import MCPError
from mcp_core.types import ElicitRequestFormParams, ElicitRequestURLParams, ElicitResult
from mcp_typed.terminal import Questions
from tests.cli.conftest import Run, Write, process

if sys.platform != "win32":
    import pty

pytestmark = pytest.mark.fault("X-67")

ASKS = """
from typing import Annotated, Literal
from pydantic import BaseModel, Field
from mcp_core.types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from mcp_typed import Elicit, ElicitationResult, ListRoots, MCPServer, Resolve, Sample

mcp = MCPServer("asks")

class Order(BaseModel):
    count: int
    size: Literal["small", "large"] = "small"

def how_many() -> Elicit[Order]:
    return Elicit("How many?", Order)

def thought() -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(text="hi"))], max_tokens=5)

def roots() -> ListRoots:
    return ListRoots()

@mcp.tool
def order(order: Annotated[Order, Resolve(how_many)]) -> Order:
    return order

@mcp.tool
def perhaps(order: Annotated[ElicitationResult[Order], Resolve(how_many)]) -> str:
    return order.action

@mcp.tool
def think(thought: Annotated[CreateMessageResult, Resolve(thought)]) -> str:
    return "thought"

@mcp.tool
def look(roots: Annotated[ListRootsResult, Resolve(roots)]) -> str:
    return "looked"
"""

ASKED = "Error: the tool asks 'How many?' (count: integer, size: string): answers are read from a terminal only\n"


def test_without_a_terminal_it_is_said_that_the_tool_asks(write: Write, run: Run) -> None:
    write("asks.py", ASKS)
    refused = run("call", "asks.py", "order")
    assert (refused.returncode, refused.stderr) == (1, ASKED)
    # A tool that can do without an answer goes on.
    without = run("call", "asks.py", "perhaps", "--json")
    assert (without.returncode, without.stderr) == (0, ASKED)
    assert json.loads(without.stdout)["structuredContent"] == {"result": "cancel"}


@pytest.mark.parametrize(("tool", "word"), [("think", "(sampling)"), ("look", "(roots)")])
def test_what_the_command_line_does_not_have(write: Write, run: Run, tool: str, word: str) -> None:
    write("asks.py", ASKS)
    done = run("call", "asks.py", tool)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: the tool asks for ")
    assert word in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="terminals are Unix's")
@pytest.mark.parametrize(
    ("typed", "result"),
    [
        (b"many\n3\nlarge\n", {"count": 3, "size": "large"}),
        (b"2\n\n", {"count": 2, "size": "small"}),
        (b"\x04", None),
    ],
    ids=["again", "default", "end"],
)
def test_on_a_terminal_it_is_asked(write: Write, tmp_path: Path, typed: bytes, result: Any) -> None:
    write("asks.py", ASKS)
    main, child = pty.openpty()
    shown: list[bytes] = []

    def read() -> None:
        try:
            while data := os.read(main, 4096):
                shown.append(data)
        except OSError:
            return  # the other end is closed

    reader = threading.Thread(target=read)
    reader.start()
    command = [sys.executable, "-P", "-m", "mcp_typed", "call", "asks.py", "order", "--json"]
    try:
        with process(command, stdin=child, cwd=tmp_path) as asking:
            os.write(main, typed)
            output, errors = asking.communicate(timeout=60)
    finally:
        os.close(child)
        reader.join(10)
        os.close(main)
    assert "How many?" in errors
    if result is None:
        assert asking.returncode == 1
        assert json.loads(output)["isError"] is True
    else:
        assert asking.returncode == 0
        assert json.loads(output)["structuredContent"] == result


def test_ctrl_c_cancels_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """It interrupts what is read, which an event loop's own handler of the signal does not."""
    handlers: list[Any] = []

    def interrupted(_text: str) -> str:
        handlers.append(signal.getsignal(signal.SIGINT))
        raise KeyboardInterrupt

    monkeypatch.setattr(click.termui, "visible_prompt_func", interrupted)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        context: Any = None
        answer = Questions(on_terminal=True).elicit(context, form(["a"], a={"type": "string"}))
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN, "it is given back"
    finally:
        signal.signal(signal.SIGINT, before)
    assert answer == ElicitResult(action="cancel")
    assert handlers == [signal.default_int_handler]


# --- one form ------------------------------------------------------------------------------------


def answered(params: Any, typed: str) -> tuple[ElicitResult, str]:
    """The answer to a question, and what was shown; in this process."""
    found: list[ElicitResult] = []

    @click.command()
    def ask() -> None:
        context: Any = None
        found.append(Questions(on_terminal=True).elicit(context, params))

    done = CliRunner().invoke(ask, input=typed)
    assert done.exit_code == 0, done.output
    return found[0], done.output


def form(required: list[str], **properties: Any) -> ElicitRequestFormParams:
    schema = {"type": "object", "properties": properties, "required": required}
    return ElicitRequestFormParams(message="Well?", requested_schema=schema)


@pytest.mark.parametrize(
    ("schema", "needed", "typed", "value"),
    [
        ({"type": "string"}, True, "text\n", "text"),
        ({"type": "string"}, False, "\n", None),
        ({"type": "integer"}, True, "x\n7\n", 7),
        ({"type": "integer"}, False, "\n", None),
        ({"type": "number", "default": 1.5}, False, "\n", 1.5),
        ({"type": "boolean"}, True, "yes\n", True),
        ({"type": "boolean", "default": False}, False, "\n", False),
        ({"type": "string", "enum": ["a", "b"]}, True, "c\nb\n", "b"),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}, False, "a\n", "a"),
        ({"type": "array", "items": {"enum": ["x", "y"]}}, True, "x, y\n", ["x", "y"]),
        ({"type": "array", "items": {"enum": ["x", "y"]}, "default": ["y"]}, False, "\n", ["y"]),
        (True, True, "anything\n", "anything"),
    ],
)
def test_a_field_is_asked_for_until_it_fits(schema: Any, needed: bool, typed: str, value: Any) -> None:
    result, shown = answered(form(["field"] if needed else [], field=schema), typed)
    assert "Well?" in shown
    assert result == ElicitResult(action="accept", content={} if value is None else {"field": value})


@pytest.mark.parametrize(("typed", "action"), [("y\n", "accept"), ("n\n", "decline"), ("", "cancel")])
def test_an_address_is_to_be_visited(typed: str, action: Any) -> None:
    result, shown = answered(ElicitRequestURLParams(message="Pay", url="https://example.org/pay"), typed)
    assert "https://example.org/pay" in shown
    assert result == ElicitResult(action=action)


def test_what_cannot_be_answered_is_noted() -> None:
    questions = Questions(on_terminal=False)
    context: Any = None
    assert questions.elicit(context, form([], a={"type": "string"})).action == "cancel"
    with pytest.raises(MCPError, match="no model"):
        questions.sample(context, None)
    with pytest.raises(MCPError, match="no roots"):
        questions.list_roots(context)
    assert len(questions.unanswered) == 3

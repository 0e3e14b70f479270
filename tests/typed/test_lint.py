"""What `lint()` finds about tools that work, and what the command line makes of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from mcp_core import Client
from mcp_core.types import TextContent
from mcp_typed import Context, MCPServer, Resolve, Result

ROOT = Path(__file__).parent.parent.parent


class Book(BaseModel):
    """A book in the catalog."""

    title: str


class Undescribed(BaseModel):
    title: str


class Opaque:
    """Nothing says what is in it."""


def found(function: Callable[..., Any], **options: Any) -> list[tuple[str, str, str]]:
    """The findings about a server with this one tool."""
    mcp = MCPServer("linted")
    mcp.add_tool(function, **options)
    return [(finding.tool, finding.code, finding.text) for finding in mcp.lint()]


# --- nothing to find --------------------------------------------------------------------------------


NO_TAGS: Any = Field(default_factory=list)


def clean(
    query: Annotated[str, "What to look for"],
    book: Book,
    ctx: Context,
    user: Annotated[str, Resolve(lambda: "ann")],
    like: Book | None = None,
    limit: Annotated[int, Field(description="How many", ge=1)] = 5,
    tags: Annotated[list[str], "Any of them"] = NO_TAGS,
) -> Book:
    """Search the catalog."""
    return book


def sectioned(query: str, limit: int = 5) -> Result[list[Book]]:
    """Search the catalog.

    Args:
        query: What to look for.
        limit: How many.
    """
    return Result([])


def told() -> None:
    """Be told."""


def test_there_is_nothing_to_say_about_a_tool_that_says_all() -> None:
    for tool in (clean, sectioned, told):
        assert found(tool) == []


def test_nor_about_a_server_without_tools() -> None:
    assert MCPServer("empty").lint() == []


# --- each code ----------------------------------------------------------------------------------------


def undocumented() -> int:
    return 1


def unreturning(query: Annotated[str, "What to look for"]):  # type: ignore[no-untyped-def]
    """Search."""
    return query


def opaque() -> Opaque:
    """Look into it."""
    return Opaque()


def untyped(value: Annotated[Any, "Anything"], other: Any) -> int:  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]
    """Take anything.

    Args:
        other: Anything else.
    """
    return 1


del untyped.__annotations__["other"]


def undescribed(query: str, book: Undescribed, books: list[Book], like: Undescribed | None = None) -> int:
    """Search."""
    return 1


def misfit(limit: Annotated[int, "How many"] = "five") -> int:  # type: ignore[assignment] # pyright: ignore[reportArgumentType]
    """Search."""
    return limit


def endless(limit: Annotated[float, "How many"] = float("inf")) -> float:
    """Search."""
    return 1.0


def misfit_field(limit: Annotated[int, "How many"] = Field("five")) -> int:  # type: ignore[assignment] # pyright: ignore[reportArgumentType]
    """Search."""
    return limit


def large(choice: Annotated[str, Field(description="x" * 8_192)]) -> int:
    """Choose."""
    return 1


UNDESCRIBED = [
    ("undescribed", "undescribed-parameter", f"parameter {name!r} has no description")
    for name in ("query", "book", "books", "like")
]
UNSHOWN = "the default of 'limit' does not fit its type, or JSON; it is not shown"


@pytest.mark.parametrize(
    ("tool", "findings"),
    [
        (
            undocumented,
            [("undocumented", "no-description", "no description: write a docstring, or pass description=")],
        ),
        (
            unreturning,
            [("unreturning", "no-return-annotation", "no return annotation: the result has text only")],
        ),
        (
            opaque,
            [
                (
                    "opaque",
                    "unstructured-return",
                    f"{Opaque!r} has no schema: the result has text only, its str() at worst; annotate another type, "
                    "or say structured_output=False",
                )
            ],
        ),
        (
            untyped,
            [("untyped", "untyped-parameter", "parameter 'other' has no annotation: any value is let through")],
        ),
        (undescribed, UNDESCRIBED),
        (misfit, [("misfit", "unshown-default", UNSHOWN)]),
        (endless, [("endless", "unshown-default", UNSHOWN)]),
        (misfit_field, [("misfit_field", "unshown-default", UNSHOWN)]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_finding_says_what_to_do(tool: Callable[..., Any], findings: Any) -> None:
    assert found(tool) == findings


def test_a_name_that_some_clients_refuse() -> None:
    text = "some clients refuse names that are not 1 to 128 letters, digits, '_', '-' or '.'"
    for name in ("look up", "été", "a/b", "x" * 129):
        assert found(told, name=name) == [(name, "name", text)]
    for name in ("look-up", "look.up_2", "x" * 128):
        assert found(told, name=name) == []


def test_a_schema_that_costs_a_model_much_to_read() -> None:
    ((tool, code, text),) = found(large)
    assert (tool, code) == ("large", "large-schema")
    assert text.startswith("its schemas take 8,")
    assert text.endswith(" bytes (more than 8,192)")


def test_what_the_decorator_says_counts() -> None:
    assert found(undocumented, description="Count.") == []
    assert found(opaque, structured_output=False) == []


async def test_what_is_found_is_said_of_tools_that_work() -> None:
    mcp = MCPServer("linted")
    for tool in (undocumented, misfit, opaque):
        mcp.add_tool(tool)
    assert [finding.code for finding in mcp.lint()] == ["no-description", "unshown-default", "unstructured-return"]
    for mode in ("auto", "legacy"):
        async with Client(mcp, mode=mode) as client:
            shown = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert (await client.call_tool("undocumented")).content == [TextContent(text="1")]
        assert shown["undocumented"].description is None
        assert shown["misfit"].input_schema["properties"] == {
            "limit": {"title": "Limit", "type": "integer", "description": "How many"}
        }
        assert shown["opaque"].output_schema is None


def test_findings_come_tool_by_tool_in_the_order_of_registration() -> None:
    mcp = MCPServer("linted")
    for tool in (undescribed, clean, undocumented):
        mcp.add_tool(tool)
    assert [finding.tool for finding in mcp.lint()] == ["undescribed"] * 4 + ["undocumented"]
    assert str(mcp.lint()[0]) == "undescribed: parameter 'query' has no description [undescribed-parameter]"
    mcp.remove_tool("undescribed")
    assert [str(finding) for finding in mcp.lint()] == [
        "undocumented: no description: write a docstring, or pass description= [no-description]"
    ]


# --- the command line ------------------------------------------------------------------------------------

CLEAN = '''
from mcp_typed import MCPServer

mcp = MCPServer("clean")


@mcp.tool()
def now() -> str:
    """The time."""
    return "12:00"
'''

UNCLEAN = '''
from mcp_typed import MCPServer

mcp = MCPServer("unclean")
other = MCPServer("other")


@mcp.tool()
def now(zone) -> str:
    return "12:00"


@mcp.tool("look up")
def look(zone: str) -> str:
    """Look."""
    return zone
'''


def cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line, as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "mcp_typed", *arguments], capture_output=True, text=True, cwd=ROOT, timeout=30
    )


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A clean server and one that is not."""
    clean, unclean = tmp_path / "clean.py", tmp_path / "unclean.py"
    clean.write_text(CLEAN)
    unclean.write_text(UNCLEAN)
    return str(clean), str(unclean)


def test_the_command_says_nothing_of_a_clean_server(files: tuple[str, str]) -> None:
    done = cli("list", "--lint", files[0])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_command_prints_a_line_for_each_finding(files: tuple[str, str]) -> None:
    done = cli("list", files[1], "--lint")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "now: no description: write a docstring, or pass description= [no-description]",
        "now: parameter 'zone' has no annotation: any value is let through [untyped-parameter]",
        "now: parameter 'zone' has no description [undescribed-parameter]",
        "look up: some clients refuse names that are not 1 to 128 letters, digits, '_', '-' or '.' [name]",
        "look up: parameter 'zone' has no description [undescribed-parameter]",
    ]


def test_the_server_may_be_named(files: tuple[str, str]) -> None:
    done = cli("list", "--lint", f"{files[1]}:other")
    assert (done.returncode, done.stdout) == (0, "")
    done = cli("list", "--lint", f"{files[1]}:mcp")
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 5)


def test_without_lint_the_command_lists_and_judges_nothing(files: tuple[str, str]) -> None:
    done = cli("list", files[1])
    assert done.returncode == 0
    assert '"name": "look up"' in done.stdout
    assert "no-description" not in done.stdout


def test_what_cannot_be_linted(files: tuple[str, str]) -> None:
    done = cli("list", "--lint", "nothing.py")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: there is no file 'nothing.py'\n"
    # A low-level server has no signatures to look at.
    done = cli("list", "--lint", "docs/examples/bookshop.py:server")
    assert (done.returncode, done.stdout) == (1, "")
    assert "has no server called 'server'" in done.stderr

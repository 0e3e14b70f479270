"""The documentation's page on tools: each example and each statement, in both protocol eras."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final, Literal

import anyio
import anyio.lowlevel
import pytest
from click.testing import CliRunner
from pydantic import BaseModel, Field

from mcp_core import Client
from mcp_core.client import Mode
from mcp_core.testing import RawPeer, flush_logs
from mcp_core.types import CallToolResult, TextContent, ToolAnnotations
from mcp_typed import MCPServer
from mcp_typed.cli import main

Ask = Callable[[str, dict[str, Any]], Awaitable[Any]]
both_eras = pytest.mark.parametrize("era", ["modern", "legacy"])
both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


@pytest.fixture
def anyio_backend() -> str:
    """One backend, except where threads and tasks are what a test is about."""
    return "asyncio"


# --- the examples of the page -----------------------------------------------------------


def first_tool() -> MCPServer:
    mcp = MCPServer("Bookshop")

    @mcp.tool()
    def search_books(query: str, limit: int) -> str:
        """Search the catalog by title or author."""
        return f"Found 3 books matching {query!r} (showing up to {limit})."

    return mcp


def optional_argument() -> MCPServer:
    mcp = MCPServer("Bookshop")

    @mcp.tool()
    def search_books(query: str, limit: int = 10) -> str:
        """Search the catalog by title or author."""
        return f"Found 3 books matching {query!r} (showing up to {limit})."

    return mcp


def described_arguments() -> MCPServer:
    mcp = MCPServer("Bookshop")

    @mcp.tool()
    def search_books(
        query: Annotated[str, Field(description="Title or author to search for.")],
        limit: Annotated[int, Field(ge=1, le=50, description="Maximum number of results.")] = 10,
        genre: Literal["fiction", "non-fiction", "poetry"] | None = None,
    ) -> str:
        """Search the catalog by title or author."""
        where = f" in {genre}" if genre else ""
        return f"Found 3 books matching {query!r}{where} (showing up to {limit})."

    return mcp


class Book(BaseModel):
    title: str
    author: str
    year: int = Field(ge=1450, description="Year of first publication.")


def model_argument() -> MCPServer:
    mcp = MCPServer("Bookshop")

    @mcp.tool()
    def add_book(book: Book) -> str:
        """Add a book to the catalog."""
        assert type(book) is Book
        return f"Added {book.title!r} by {book.author} ({book.year})."

    return mcp


def titled_and_annotated() -> MCPServer:
    mcp = MCPServer("Bookshop")

    @mcp.tool(
        title="Search the catalog",
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )
    def search_books(query: str) -> str:
        """Search the catalog by title or author."""
        return f"Found 3 books matching {query!r}."

    return mcp


# --- what goes over the wire ------------------------------------------------------------

STAMP: Final = {"io.modelcontextprotocol/serverInfo": {"name": "Bookshop", "version": ""}}
TEXT_RESULT: Final = {
    "properties": {"result": {"title": "Result", "type": "string"}},
    "required": ["result"],
    "type": "object",
}
BOOK: Final = {
    "properties": {
        "title": {"title": "Title", "type": "string"},
        "author": {"title": "Author", "type": "string"},
        "year": {"description": "Year of first publication.", "minimum": 1450, "title": "Year", "type": "integer"},
    },
    "required": ["title", "author", "year"],
    "title": "Book",
    "type": "object",
}


@asynccontextmanager
async def asking(mcp: MCPServer, era: str) -> AsyncGenerator[Ask, None]:
    """Requests of one era, answered as they stand on the wire."""
    ids = itertools.count(1)
    async with RawPeer.of(mcp.server) as peer:
        if era == "legacy":
            await peer.initialize("2025-11-25")

        async def ask(method: str, params: dict[str, Any]) -> Any:
            request_id = next(ids)
            answer = await (peer.modern if era == "modern" else peer.call)(request_id, method, params)
            assert (answer.pop("jsonrpc"), answer.pop("id")) == ("2.0", request_id)
            return answer

        yield ask


def stamped(era: str, result: dict[str, Any]) -> dict[str, Any]:
    """The result as it is in that era."""
    return {"result": {**result, "resultType": "complete", "_meta": STAMP} if era == "modern" else result}


def listed(era: str, *tools: dict[str, Any]) -> dict[str, Any]:
    cache = {"cacheScope": "private", "ttlMs": 0} if era == "modern" else {}
    return stamped(era, {"tools": list(tools), **cache})


def succeeded(era: str, text: str) -> dict[str, Any]:
    blocks = [{"text": text, "type": "text"}]
    return stamped(era, {"content": blocks, "isError": False, "structuredContent": {"result": text}})


def failed(era: str, text: str) -> dict[str, Any]:
    return stamped(era, {"content": [{"text": text, "type": "text"}], "isError": True})


def found(limit: int, where: str = "") -> str:
    return f"Found 3 books matching 'dune'{where} (showing up to {limit})."


def refused(*errors: str, tool: str = "search_books") -> str:
    count = f"{len(errors)} validation error{'s' if len(errors) > 1 else ''}"
    return "\n".join([f"Error executing tool {tool}: {count} for {tool}Arguments", *errors])


def search_books(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """`search_books` in `tools/list`, with these parameters."""
    return {
        "name": "search_books",
        "description": "Search the catalog by title or author.",
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "title": "search_booksArguments",
        },
        "outputSchema": {**TEXT_RESULT, "title": "search_booksOutput"},
    }


# Property titles are the names in words; the root's is the function's name; no dialect is named.
LISTS: Final = [
    pytest.param(
        first_tool,
        search_books(
            {"query": {"title": "Query", "type": "string"}, "limit": {"title": "Limit", "type": "integer"}},
            ["query", "limit"],
        ),
        marks=pytest.mark.observed("S-014", "S-015", "S-016"),
        id="first_tool",
    ),
    pytest.param(
        optional_argument,
        search_books(
            {
                "query": {"title": "Query", "type": "string"},
                "limit": {"default": 10, "title": "Limit", "type": "integer"},
            },
            ["query"],
        ),
        marks=pytest.mark.observed("S-025"),
        id="optional_argument",
    ),
    pytest.param(
        described_arguments,
        search_books(
            {
                "query": {"description": "Title or author to search for.", "title": "Query", "type": "string"},
                "limit": {
                    "default": 10,
                    "description": "Maximum number of results.",
                    "maximum": 50,
                    "minimum": 1,
                    "title": "Limit",
                    "type": "integer",
                },
                "genre": {
                    "anyOf": [{"enum": ["fiction", "non-fiction", "poetry"], "type": "string"}, {"type": "null"}],
                    "default": None,
                    "title": "Genre",
                },
            },
            ["query"],
        ),
        marks=pytest.mark.observed("S-027"),
        id="described_arguments",
    ),
    pytest.param(
        model_argument,
        {
            "name": "add_book",
            "description": "Add a book to the catalog.",
            "inputSchema": {
                "type": "object",
                "$defs": {"Book": BOOK},
                "properties": {"book": {"$ref": "#/$defs/Book"}},
                "required": ["book"],
                "title": "add_bookArguments",
            },
            "outputSchema": {**TEXT_RESULT, "title": "add_bookOutput"},
        },
        marks=pytest.mark.observed("S-030"),
        id="model_argument",
    ),
    pytest.param(
        titled_and_annotated,
        {
            **search_books({"query": {"title": "Query", "type": "string"}}, ["query"]),
            "title": "Search the catalog",
            "annotations": {"openWorldHint": False, "readOnlyHint": True},
        },
        marks=pytest.mark.observed("S-036"),
        id="titled_and_annotated",
    ),
]


@both_eras
@pytest.mark.parametrize(("example", "tool"), LISTS)
async def test_the_list_of_tools(example: Callable[[], MCPServer], tool: dict[str, Any], era: str) -> None:
    async with asking(example(), era) as ask:
        assert await ask("tools/list", {}) == listed(era, tool)


MISSING: Final = "\n  Field required [type=missing, input_value="
BESIDE: Final = "\n  Field required [type=missing, input_type=dict]"
NO_INTEGER: Final = (
    "limit\n  Input should be a valid integer, unable to parse string as an integer"
    " [type=int_parsing, input_value='ten', input_type=str]"
)
TOO_MANY: Final = (
    "limit\n  Input should be less than or equal to 50 [type=less_than_equal, input_value=999, input_type=int]"
)
NO_GENRE: Final = (
    "genre\n  Input should be 'fiction', 'non-fiction' or 'poetry'"
    " [type=literal_error, input_value='drama', input_type=str]"
)
DUNE: Final = {"title": "Dune", "author": "Frank Herbert", "year": 1965}
ADDED: Final = "Added 'Dune' by Frank Herbert (1965)."


def calls_of(
    example: Callable[[], MCPServer],
    tool: str,
    *calls: tuple[str, str, dict[str, Any], str, Callable[[str, str], dict[str, Any]]],
) -> list[Any]:
    return [
        pytest.param(
            example,
            tool,
            arguments,
            outcome,
            text,
            marks=pytest.mark.observed(*observed.split()),
            id=f"{example.__name__}-{case}",
        )
        for case, observed, arguments, text, outcome in calls
    ]


CALLS: Final = [
    *calls_of(
        first_tool,
        "search_books",
        ("as_declared", "S-017", {"query": "dune", "limit": 5}, found(5), succeeded),
        ("wrong_type", "S-018 S-019", {"query": "dune", "limit": "ten"}, refused(NO_INTEGER), failed),
        (
            "one_missing",
            "S-020",
            {"query": "dune"},
            refused(f"limit{BESIDE}"),
            failed,
        ),
        (
            "all_missing",
            "S-020",
            {},
            refused(f"query{MISSING}{{}}, input_type=dict]", f"limit{MISSING}{{}}, input_type=dict]"),
            failed,
        ),
        ("unknown_one", "S-021", {"query": "dune", "limit": 5, "extra": 1}, found(5), succeeded),
        ("number_as_text", "S-022", {"query": "dune", "limit": "5"}, found(5), succeeded),
        ("whole_float", "S-022", {"query": "dune", "limit": 5.0}, found(5), succeeded),
        ("true_as_number", "S-022", {"query": "dune", "limit": True}, found(1), succeeded),
        (
            "fraction",
            "S-022",
            {"query": "dune", "limit": 5.5},
            refused(
                "limit\n  Input should be a valid integer, got a number with a fractional part"
                " [type=int_from_float, input_value=5.5, input_type=float]"
            ),
            failed,
        ),
        (
            "number_for_text",
            "S-022",
            {"query": 1, "limit": 5},
            refused("query\n  Input should be a valid string [type=string_type, input_value=1, input_type=int]"),
            failed,
        ),
        (
            "null_for_text",
            "S-022",
            {"query": None, "limit": 5},
            refused(
                "query\n  Input should be a valid string [type=string_type, input_value=None, input_type=NoneType]"
            ),
            failed,
        ),
    ),
    *calls_of(
        optional_argument,
        "search_books",
        ("left_out", "S-026", {"query": "dune"}, found(10), succeeded),
        ("given", "S-026", {"query": "dune", "limit": 3}, found(3), succeeded),
    ),
    *calls_of(
        described_arguments,
        "search_books",
        ("left_out", "S-029", {"query": "dune"}, found(10), succeeded),
        ("allowed_value", "S-029", {"query": "dune", "genre": "poetry"}, found(10, " in poetry"), succeeded),
        ("null", "S-029", {"query": "dune", "genre": None}, found(10), succeeded),
        ("too_large", "S-028", {"query": "dune", "limit": 999}, refused(TOO_MANY), failed),
        (
            "too_small",
            "S-028",
            {"query": "dune", "limit": 0},
            refused(
                "limit\n  Input should be greater than or equal to 1"
                " [type=greater_than_equal, input_value=0, input_type=int]"
            ),
            failed,
        ),
        ("other_value", "S-028", {"query": "dune", "genre": "drama"}, refused(NO_GENRE), failed),
        (
            "two_errors",
            "S-028",
            {"query": "dune", "limit": 999, "genre": "drama"},
            refused(TOO_MANY, NO_GENRE),
            failed,
        ),
    ),
    *calls_of(
        model_argument,
        "add_book",
        ("object", "S-031", {"book": DUNE}, ADDED, succeeded),
        (
            "object_as_text",
            "S-032",
            {"book": '{"title":"Dune","author":"Frank Herbert","year":1965}'},
            ADDED,
            succeeded,
        ),
        (
            "no_json",
            "S-032",
            {"book": "notjson"},
            refused(
                "book\n  Input should be an object [type=model_type, input_value='notjson', input_type=str]",
                tool="add_book",
            ),
            failed,
        ),
        (
            "member_out_of_bounds",
            "S-031",
            {"book": {**DUNE, "year": 1000}},
            refused(
                "book.year\n  Input should be greater than or equal to 1450"
                " [type=greater_than_equal, input_value=1000, input_type=int]",
                tool="add_book",
            ),
            failed,
        ),
        (
            "members_missing",
            "S-031",
            {"book": {"title": "Dune"}},
            refused(
                f"book.author{BESIDE}",
                f"book.year{BESIDE}",
                tool="add_book",
            ),
            failed,
        ),
    ),
    *calls_of(
        titled_and_annotated,
        "search_books",
        ("as_declared", "S-036", {"query": "dune"}, "Found 3 books matching 'dune'.", succeeded),
    ),
]


@both_eras
@pytest.mark.parametrize(("example", "tool", "arguments", "outcome", "text"), CALLS)
async def test_a_call(
    example: Callable[[], MCPServer],
    tool: str,
    arguments: dict[str, Any],
    outcome: Callable[[str, str], dict[str, Any]],
    text: str,
    era: str,
) -> None:
    async with asking(example(), era) as ask:
        assert await ask("tools/call", {"name": tool, "arguments": arguments}) == outcome(era, text)


@both_eras
@pytest.mark.observed("S-020")
@pytest.mark.parametrize("params", [{}, {"arguments": None}], ids=["absent", "null"])
async def test_no_arguments_are_empty_arguments(params: dict[str, Any], era: str) -> None:
    async with asking(first_tool(), era) as ask:
        got = await ask("tools/call", {"name": "search_books", **params})
        assert got == await ask("tools/call", {"name": "search_books", "arguments": {}})
    assert got["result"]["isError"] is True


@both_eras
@pytest.mark.observed("S-023")
@pytest.mark.requirement("R-TOOL-10")
async def test_an_unknown_tool_is_a_protocol_error(era: str) -> None:
    async with asking(first_tool(), era) as ask:
        answer = await ask("tools/call", {"name": "nope", "arguments": {}})
    assert set(answer) == {"error"}
    assert (answer["error"]["code"], answer["error"]["message"]) == (-32602, "Unknown tool: nope")


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
@pytest.mark.observed("S-017")
async def test_both_parts_of_a_result_as_a_client_reads_them(mode: Mode) -> None:
    async with Client(first_tool(), mode=mode) as client:
        result = await client.call_tool("search_books", {"query": "dune", "limit": 5})
    assert result.content == [TextContent(text=found(5))]
    assert result.structured_content == {"result": found(5)}
    assert result.is_error is False


@pytest.mark.observed("S-018", "S-028")
async def test_bad_arguments_never_reach_the_function() -> None:
    mcp = MCPServer("Bookshop")
    reached: list[int] = []

    @mcp.tool()
    def reach(limit: Annotated[int, Field(le=50)]) -> None:
        reached.append(limit)

    async with Client(mcp) as client:
        for limit in ("ten", 51, None, 5.5):
            assert (await client.call_tool("reach", {"limit": limit})).is_error
        await client.call_tool("reach", {"limit": 50})
    assert reached == [50]


@pytest.mark.observed("S-024")
async def test_the_log_names_rejected_arguments_and_no_values(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with Client(first_tool()) as client:
            await client.call_tool("search_books", {"query": "a secret", "limit": "hunter2"})
        flush_logs()
    told = [record.getMessage() for record in caplog.records if record.name.startswith("mcp_")]
    assert any("search_books" in message and "limit" in message and "query" in message for message in told)
    assert not any("secret" in message or "hunter2" in message for message in told)


# --- models as parameters ---------------------------------------------------------------


class Shelf(BaseModel):
    room: str
    books: list[Book]


@pytest.mark.observed("S-033")
async def test_plain_and_model_parameters_mix() -> None:
    mcp = MCPServer("Bookshop")
    got: list[Any] = []

    @mcp.tool()
    def arrange(shelf: Shelf, note: str, more: list[Book], best: Book | None = None) -> None:
        got.append((shelf, note, more, best))

    async with Client(mcp) as client:
        (tool,) = (await client.list_tools()).tools
        await client.call_tool("arrange", {"shelf": {"room": "r", "books": [DUNE]}, "note": "n", "more": [DUNE, DUNE]})
    dune = Book(title="Dune", author="Frank Herbert", year=1965)
    assert got == [(Shelf(room="r", books=[dune]), "n", [dune, dune], None)]
    assert tool.input_schema == {
        "type": "object",
        "$defs": {
            "Book": BOOK,
            "Shelf": {
                "properties": {
                    "room": {"title": "Room", "type": "string"},
                    "books": {"items": {"$ref": "#/$defs/Book"}, "title": "Books", "type": "array"},
                },
                "required": ["room", "books"],
                "title": "Shelf",
                "type": "object",
            },
        },
        "properties": {
            "shelf": {"$ref": "#/$defs/Shelf"},
            "note": {"title": "Note", "type": "string"},
            "more": {"items": {"$ref": "#/$defs/Book"}, "title": "More", "type": "array"},
            "best": {"anyOf": [{"$ref": "#/$defs/Book"}, {"type": "null"}], "default": None},
        },
        "required": ["shelf", "note", "more"],
        "title": "arrangeArguments",
    }


# --- where functions run ----------------------------------------------------------------


@both_backends
@pytest.mark.observed("S-034")
@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_async_functions_run_on_the_loop_and_plain_ones_in_a_thread(mode: Mode) -> None:
    mcp = MCPServer("Bookshop")
    loop = threading.current_thread()

    @mcp.tool()
    async def later() -> bool:
        await anyio.lowlevel.checkpoint()
        return threading.current_thread() is loop

    @mcp.tool()
    def now() -> bool:
        return threading.current_thread() is loop

    async with Client(mcp, mode=mode) as client:
        assert (await client.call_tool("later")).structured_content == {"result": True}
        assert (await client.call_tool("now")).structured_content == {"result": False}


@both_backends
@pytest.mark.observed("S-034", "S-035")
async def test_answers_leave_as_they_are_ready_and_a_blocking_function_blocks_nobody() -> None:
    mcp = MCPServer("Bookshop")
    go = threading.Event()

    @mcp.tool()
    def slow() -> str:
        return "slow" if go.wait(60) else "never told"

    @mcp.tool()
    def quick() -> str:
        return "quick"

    @mcp.tool()
    async def on_the_loop() -> str:
        return "on the loop"

    async with RawPeer.of(mcp.server) as peer:
        await peer.initialize()
        try:
            peer.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow"}})
            for request_id, name in ((2, "quick"), (3, "on_the_loop")):
                answer = await peer.call(request_id, "tools/call", {"name": name})
                assert answer["id"] == request_id
        finally:
            go.set()
        answer = await peer.receive_next()
    assert (answer["id"], answer["result"]["structuredContent"]) == (1, {"result": "slow"})


@both_backends
@pytest.mark.observed("S-035")
async def test_forty_plain_functions_run_at_a_time() -> None:
    mcp = MCPServer("Bookshop")
    together = threading.Barrier(40, timeout=60)

    @mcp.tool()
    def meet() -> None:
        together.wait()

    async with Client(mcp) as client:
        results: list[CallToolResult] = []

        async def call() -> None:
            results.append(await client.call_tool("meet"))

        async with anyio.create_task_group() as tasks:
            for _ in range(40):
                tasks.start_soon(call)
    assert [result.is_error for result in results] == [False] * 40


# --- names, titles, descriptions, hints ---------------------------------------------------


async def listing(mcp: MCPServer) -> dict[str, Any]:
    """The one tool of the server, as it stands in the list."""
    async with asking(mcp, "modern") as ask:
        (tool,) = (await ask("tools/list", {}))["result"]["tools"]
    return dict(tool)


@pytest.mark.observed("S-037")
@pytest.mark.parametrize(
    ("options", "name", "description"),
    [
        ({}, "look_up", "From the docstring."),
        ({"name": "lookup"}, "lookup", "From the docstring."),
        ({"name": ""}, "look_up", "From the docstring."),
        ({"description": "From the decorator."}, "look_up", "From the decorator."),
        ({"description": ""}, "look_up", "From the docstring."),
    ],
)
@pytest.mark.parametrize("way", ["decorator", "add_tool"])
async def test_name_and_description_may_be_given(
    options: dict[str, Any], name: str, description: str, way: str
) -> None:
    mcp = MCPServer("Bookshop")

    def look_up(query: str) -> str:
        """From the docstring."""
        return query

    if way == "decorator":
        assert mcp.tool(**options)(look_up) is look_up
    else:
        mcp.add_tool(look_up, **options)
    tool = await listing(mcp)
    assert (tool["name"], tool["description"]) == (name, description)
    assert (tool["inputSchema"]["title"], tool["outputSchema"]["title"]) == ("look_upArguments", "look_upOutput")
    async with Client(mcp) as client:
        refused = await client.call_tool(name)
        assert (await client.call_tool(name, {"query": "x"})).content == [TextContent(text="x")]
    (block,) = refused.content
    assert isinstance(block, TextContent)
    assert block.text.startswith(f"Error executing tool {name}: 1 validation error for look_upArguments\n")


@pytest.mark.observed("S-037")
async def test_the_name_may_be_the_first_argument() -> None:
    mcp = MCPServer("Bookshop")

    @mcp.tool("lookup")
    def look_up(query: str) -> str:
        return query

    assert look_up("x") == "x"
    assert (await listing(mcp))["name"] == "lookup"


@pytest.mark.observed("S-038")
async def test_without_a_docstring_there_is_no_description() -> None:
    mcp = MCPServer("Bookshop")

    @mcp.tool()
    def silent(query: str) -> str:
        return query

    assert set(await listing(mcp)) == {"name", "inputSchema", "outputSchema"}


@pytest.mark.observed("S-038")
async def test_a_docstring_is_dedented_and_its_parameters_leave_it() -> None:
    mcp = MCPServer("Bookshop")

    @mcp.tool()
    def documented(query: str, limit: int = 5) -> str:
        """Summary line.

        A second paragraph,
            indented on purpose.

        Args:
            query: What to look for,
                over two lines.
            limit: How many.
        """
        return query

    tool = await listing(mcp)
    assert tool["description"] == "Summary line.\n\nA second paragraph,\n    indented on purpose."
    assert tool["inputSchema"]["properties"] == {
        "query": {"description": "What to look for, over two lines.", "title": "Query", "type": "string"},
        "limit": {"default": 5, "description": "How many.", "title": "Limit", "type": "integer"},
    }


@both_eras
@pytest.mark.observed("S-039")
async def test_hints_are_sent_as_they_are_given_and_enforce_nothing(era: str) -> None:
    mcp = MCPServer("Bookshop")
    sold: list[str] = []

    @mcp.tool(
        annotations=ToolAnnotations(
            title="Sell", read_only_hint=True, destructive_hint=True, idempotent_hint=False, open_world_hint=True
        )
    )
    def sell(book: str) -> None:
        sold.append(book)

    async with asking(mcp, era) as ask:
        (tool,) = (await ask("tools/list", {}))["result"]["tools"]
        await ask("tools/call", {"name": "sell", "arguments": {"book": "dune"}})
    assert tool["annotations"] == {
        "title": "Sell",
        "readOnlyHint": True,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    }
    assert sold == ["dune"]


@pytest.mark.observed("S-040")
def test_the_command_line_starts_a_server_in_the_inspector() -> None:
    told = CliRunner().invoke(main, ["dev", "--help"])
    assert told.exit_code == 0
    assert "FILE" in told.output
    assert "Inspector" in told.output

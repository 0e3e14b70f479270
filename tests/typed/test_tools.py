"""Tools from functions: schemas, both channels of a result, and every way to fail."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from typing import Any

import pytest
from pydantic import BaseModel, Field

from mcp_core import Client, MCPError
from mcp_core.testing import flush_logs
from mcp_core.types import CallToolResult, TextContent
from mcp_typed import Context, MCPServer, ToolError
from mcp_typed.errors import InvalidSignature


class Book(BaseModel):
    """A book."""

    title: str
    pages: int = Field(ge=1)


async def call(mcp: MCPServer, tool: str, arguments: dict[str, Any] | None = None) -> CallToolResult:
    async with Client(mcp) as client:
        return await client.call_tool(tool, arguments)


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


@pytest.mark.observed("S-014")
async def test_schemas_are_those_of_the_function() -> None:
    mcp = MCPServer("Bookshop")

    @mcp.tool()
    def search_books(query: str, limit: int) -> str:
        """Search the catalog by title or author."""
        return f"Found 3 books matching {query!r} (showing up to {limit})."

    async with Client(mcp) as client:
        (tool,) = (await client.list_tools()).tools
    assert (tool.name, tool.description) == ("search_books", "Search the catalog by title or author.")
    assert tool.input_schema == {
        "type": "object",
        "properties": {"query": {"title": "Query", "type": "string"}, "limit": {"title": "Limit", "type": "integer"}},
        "required": ["query", "limit"],
        "title": "search_booksArguments",
    }
    assert tool.output_schema == {
        "properties": {"result": {"title": "Result", "type": "string"}},
        "required": ["result"],
        "title": "search_booksOutput",
        "type": "object",
    }


@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [
        ("été", "été", {"result": "été"}),
        (5, "5", {"result": 5}),
        (True, "true", {"result": True}),
        (0.5, "0.5", {"result": 0.5}),
    ],
)
@pytest.mark.parametrize("colour", ["async", "plain"])
async def test_scalars_fill_both_channels(value: Any, text: str, structured: Any, colour: str) -> None:
    mcp = MCPServer("scalars")

    async def later() -> Any:
        return value

    def now() -> Any:
        return value

    for function in (later, now):
        function.__annotations__["return"] = type(value)
        mcp.add_tool(function)
    result = await call(mcp, "later" if colour == "async" else "now")
    assert (text_of(result), result.structured_content) == (text, structured)


async def test_models_go_in_and_out() -> None:
    mcp = MCPServer("models")

    @mcp.tool()
    def longer(book: Book, by: int = 1) -> Book:
        return Book(title=book.title, pages=book.pages + by)

    result = await call(mcp, "longer", {"book": {"title": "Dune", "pages": 2}})
    assert result.structured_content == {"title": "Dune", "pages": 3}
    assert json.loads(text_of(result)) == result.structured_content
    assert text_of(result).startswith('{\n  "title"')


@pytest.mark.observed("S-018")
async def test_arguments_that_do_not_fit_are_told_to_the_model() -> None:
    mcp = MCPServer("arguments")

    @mcp.tool()
    def count(limit: int) -> int:
        raise AssertionError("must not run")

    result = await call(mcp, "count", {"limit": "ten"})
    assert result.is_error
    assert text_of(result) == (
        "Error executing tool count: 1 validation error for countArguments\nlimit\n"
        "  Input should be a valid integer, unable to parse string as an integer"
        " [type=int_parsing, input_value='ten', input_type=str]"
    )


async def test_parameters_may_be_called_anything() -> None:
    mcp = MCPServer("names")

    @mcp.tool()
    def odd(copy: int, json: int, schema: int, model_config: int, self: int) -> int:
        return copy + json + schema + model_config + self

    result = await call(mcp, "odd", {"copy": 1, "json": 2, "schema": 3, "model_config": 4, "self": 5})
    assert result.structured_content == {"result": 15}


@pytest.mark.case("C039")
@pytest.mark.parametrize("masked", [True, False])
async def test_what_the_model_hears_of_an_exception(masked: bool, caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("errors", mask_errors=masked)

    @mcp.tool()
    def deliberate() -> str:
        raise ToolError("no such ticket 7")

    @mcp.tool()
    def crashing() -> str:
        raise ValueError("secret detail")

    assert text_of(await call(mcp, "deliberate")) == "Error executing tool deliberate: no such ticket 7"
    with caplog.at_level(logging.ERROR, "mcp_typed"):
        result = await call(mcp, "crashing")
        flush_logs()
    text = text_of(result)
    assert result.is_error
    assert result.structured_content is None
    assert ("secret detail" in text) is not masked
    assert "Traceback" not in text
    assert "secret detail" in caplog.text
    if masked:
        error_id = text.removeprefix("Error executing tool crashing (error id ").removesuffix(")")
        assert f"error id {error_id}" in caplog.text


@pytest.mark.case("C043")
@pytest.mark.parametrize(
    "error", [SystemExit(3), asyncio.CancelledError(), BaseExceptionGroup("g", [ValueError()]), StopIteration()]
)
@pytest.mark.parametrize("colour", ["async", "plain"])
async def test_whatever_a_tool_raises_ends_that_call_only(error: BaseException, colour: str) -> None:
    mcp = MCPServer("hostile")

    async def later() -> str:
        raise error

    def now() -> str:
        raise error

    mcp.add_tool(later if colour == "async" else now, name="hostile")
    mcp.add_tool(lambda: "alive", name="other")
    async with Client(mcp) as client:
        assert (await client.call_tool("hostile")).is_error
        assert text_of(await client.call_tool("other")) == "alive"


async def test_an_mcp_error_is_the_protocols() -> None:
    mcp = MCPServer("errors")

    @mcp.tool()
    async def refuse() -> str:
        raise MCPError(1234, "custom", {"d": 1})

    async with Client(mcp) as client:
        with pytest.raises(MCPError, match="custom") as caught:
            await client.call_tool("refuse")
        assert (caught.value.code, caught.value.data) == (1234, {"d": 1})
        with pytest.raises(MCPError, match="Unknown tool: nothing") as caught:
            await client.call_tool("nothing")
        assert caught.value.code == -32602


async def test_a_return_value_that_does_not_fit_names_its_field() -> None:
    mcp = MCPServer("returns")

    @mcp.tool()
    def broken() -> Book:
        return Book.model_construct(title="x", pages="many")

    result = await call(mcp, "broken")
    assert result.is_error
    assert "pages" in text_of(result)


async def test_the_context_is_injected_and_unseen() -> None:
    mcp = MCPServer("context")

    @mcp.tool()
    async def who(name: str, ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half")
        return f"{name} {ctx.protocol_version}"

    told: list[Any] = []

    def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with Client(mcp) as client:
        (tool,) = (await client.list_tools()).tools
        assert set(tool.input_schema["properties"]) == {"name"}
        result = await client.call_tool("who", {"name": "x"}, progress_callback=tell)
    assert text_of(result) == "x 2026-07-28"
    assert told == [(1, 2, "half")]


@pytest.mark.case("C065")
async def test_plain_functions_run_in_threads_of_the_servers_own() -> None:
    mcp = MCPServer("threads", threads=2)

    @mcp.tool()
    def where() -> str:
        return threading.current_thread().name

    assert text_of(await call(mcp, "where")) == "mcp_core.worker"


@pytest.mark.case("C005")
def test_what_cannot_be_a_tool_is_refused_at_registration() -> None:
    mcp = MCPServer("signatures")

    def variadic(x: int, **kw: str) -> int:
        return x

    def unresolved(x: int) -> int:
        return x

    unresolved.__annotations__["x"] = "Nowhere"

    with pytest.raises(InvalidSignature, match=r"tool 'variadic': parameter \*\*kw"):
        mcp.add_tool(variadic)
    with pytest.raises(InvalidSignature, match="Nowhere"):
        mcp.add_tool(unresolved)
    mcp.add_tool(lambda: 1, name="taken")
    with pytest.raises(ValueError, match="there is a tool 'taken' already"):
        mcp.add_tool(lambda: 1, name="taken")

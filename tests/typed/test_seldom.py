"""What happens seldom with typed tools, and must be right then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Protocol

import anyio
import pytest
from pydantic import Field

from mcp_core import Client
from mcp_core.client import Mode
from mcp_core.types import ClientCapabilities, InputRequiredResult, TextContent
from mcp_typed import Context, InvalidSignature, MCPServer, Resolve, Result, ToolError
from mcp_typed.plain import ITEMS

both_modes = pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])


def text_of(result: Any) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def test_a_server_says_who_it_is() -> None:
    mcp = MCPServer(
        "shop", version="2", title="Shop", description="Sells", website_url="https://shop.example", instructions="Ask."
    )
    said = (mcp.name, mcp.version, mcp.title, mcp.description, mcp.website_url, mcp.instructions)
    assert said == ("shop", "2", "Shop", "Sells", "https://shop.example", "Ask.")


@both_modes
async def test_a_context_has_what_the_client_declares_and_logs_at_every_level(mode: Mode) -> None:
    mcp, heard = MCPServer("s"), list[tuple[str, Any]]()

    @mcp.tool
    async def speak(ctx: Context) -> str:
        await ctx.debug("a")
        await ctx.info("b")
        await ctx.warning("c")
        await ctx.error("d")
        await ctx.notify_prompts_changed()
        await ctx.notify_resources_changed()
        await ctx.notify_resource_updated("a://b")
        assert isinstance(ctx.client_capabilities, ClientCapabilities)
        return f"{ctx.input_responses} {ctx.request_state}"

    logged = anyio.Event()

    def log(params: Any) -> None:
        heard.append((params.level, params.data))
        if params.level == "error":
            logged.set()

    mcp.server.add_request_handler("logging/setLevel", dict[str, Any], lambda ctx, params: None)
    async with Client(mcp, mode=mode, log_level="debug", logging_callback=log) as client:
        assert text_of(await client.call_tool("speak")) == "None None"
        with anyio.fail_after(60):
            await logged.wait()
    assert heard == [("debug", "a"), ("info", "b"), ("warning", "c"), ("error", "d")]


async def test_a_tool_that_asks_has_nobody_to_ask_when_python_calls_it() -> None:
    mcp = MCPServer("s")

    @mcp.tool
    def ask() -> str | InputRequiredResult:
        return InputRequiredResult(request_state="x")

    with pytest.raises(ToolError, match="asks for input, and there is no client to give it"):
        await mcp.call_tool("ask")


class Closeable(Protocol):
    """A Protocol that isinstance() has no use for."""

    def close(self) -> None: ...


class Grumpy(list[int]):
    """A list that cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError

    __hash__ = None  # pyright: ignore[reportAssignmentType]


class File:
    """Something that can be closed."""

    def close(self) -> None:
        """Nothing to do."""


async def test_what_a_resolver_gives_is_passed_on_where_it_cannot_be_checked() -> None:
    mcp, seen = MCPServer("s"), list[Any]()
    file, numbers = File(), Grumpy([1])

    def give_file() -> File:
        return file

    def give_numbers() -> list[int]:
        return numbers

    @mcp.tool
    def use(
        file: Annotated[Closeable, Resolve(give_file)], numbers: Annotated[list[int], Resolve(give_numbers)]
    ) -> str:
        seen.extend([file, numbers])
        return "used"

    async with Client(mcp) as client:
        assert text_of(await client.call_tool("use")) == "used"
    assert seen[0] is file
    assert list(seen[1]) == [1]


def test_a_result_says_text_or_nothing() -> None:
    with pytest.raises(TypeError, match="text must be a str; got 5"):
        Result(1, text=5)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def test_a_function_without_a_signature_is_no_tool() -> None:
    with pytest.raises(InvalidSignature, match="has no signature to read"):
        MCPServer("s").add_tool(type, name="x")


def test_annotations_that_cannot_be_read_are_said_to_be_so() -> None:
    def broken(a: int) -> str:
        return "x"

    broken.__annotations__["a"] = "1 +"
    with pytest.raises(InvalidSignature, match="its annotations cannot be read"):
        MCPServer("s").add_tool(broken)


async def test_an_iterator_gives_so_many_items() -> None:
    mcp = MCPServer("s")

    @mcp.tool(run="inline")
    def many() -> Iterator[int]:
        yield from range(ITEMS + 1)

    async with Client(mcp) as client:
        result = await client.call_tool("many")
    assert result.is_error
    assert text_of(result) == f"Error executing tool many: it gives more than {ITEMS:,} items"


async def test_the_progress_of_an_item_without_json_has_no_text() -> None:
    mcp, heard = MCPServer("s"), list[tuple[float, str | None]]()

    class Odd:
        def __str__(self) -> str:
            raise ZeroDivisionError

        __repr__ = __str__

    @mcp.tool(structured_output=False)
    def odd() -> Iterator[Any]:
        yield "first"
        yield Odd()

    async with Client(mcp) as client:
        await client.call_tool("odd", progress_callback=lambda progress, total, text: heard.append((progress, text)))
    assert heard[0] == (1.0, "first")
    assert heard[1:] in ([], [(2.0, None)])


def test_bounds_of_bytes_are_those_of_their_base64() -> None:
    mcp = MCPServer("s")

    @mcp.tool
    def take(data: Annotated[bytes, Field(min_length=3, max_length=4)]) -> str:
        return str(len(data))

    (tool,) = [each.listed for each in mcp._tools.values()]  # pyright: ignore[reportPrivateUsage]
    shown = tool.input_schema["properties"]["data"]
    assert (shown["minLength"], shown["maxLength"], shown["contentEncoding"]) == (4, 8, "base64")

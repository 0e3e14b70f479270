"""A server of the official SDK's typed layer, for our client to try."""

from __future__ import annotations

import warnings
from typing import Annotated, Any, Literal

import anyio
import mcp_types as t
from mcp import MCPDeprecationWarning, MCPError
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import AssistantMessage, Message, UserMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field

from tests.interop import bookshop as b

LEVELS: tuple[Literal["debug", "info", "error"], ...] = ("debug", "info", "error")

mcp = MCPServer("official-typed-bookshop", version="1.0.0", instructions="Buy books.")

_milestones = b.Milestones()


class Book(BaseModel):
    """A book on a shelf."""

    title: str
    pages: int = Field(ge=1)
    authors: list[str] = []


class Receipt(BaseModel):
    """What a sale comes to."""

    title: str
    copies: int
    total: float


class Edition(BaseModel):
    """What the user chooses."""

    edition: str
    copies: int = 1


@mcp.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool(title="Sell a book", meta={"bookshop/department": "sales"})
def sell(book: Book, copies: Annotated[int, Field(description="How many.", ge=1)] = 1) -> Receipt:
    """Sell copies of a book."""
    return Receipt(title=book.title, copies=copies, total=copies * 9.5)


@mcp.tool()
def titles(shelf: str) -> list[str]:
    """The titles on a shelf."""
    return [f"{shelf} 1", f"{shelf} 2"]


@mcp.tool()
def cover() -> Image:
    """An image."""
    return Image(data=b"\x89PNG", format="png")


@mcp.tool()
def refuse(reason: str) -> str:
    """Fail in a way that the model should read."""
    raise ToolError(reason)


@mcp.tool()
def protocol_error() -> str:
    """Fail with an error of the protocol."""
    raise MCPError(b.SHELF_ERROR, "No such shelf", {"shelf": "Z"})


@mcp.tool()
def crash() -> str:
    """Fail in a way that nobody foresaw."""
    raise ValueError(b.SECRET)


@mcp.tool()
async def count(steps: int, ctx: Context[Any, Any]) -> str:
    """Report progress at each step."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return f"counted to {steps}"


@mcp.tool()
async def log(text: str, ctx: Context[Any, Any]) -> str:
    """Send a message at each of three levels."""
    for level in LEVELS:
        await ctx.log(level, {"text": text, "level": level}, logger_name="bookshop")  # pyright: ignore[reportDeprecated]
    return "logged"


@mcp.tool()
async def choose(text: str, ctx: Context[Any, Any]) -> t.CallToolResult | t.InputRequiredResult:
    """Ask the user for an edition."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        chosen = await ctx.elicit(text, Edition)
        shown = chosen.data.model_dump() if chosen.action == "accept" else None
        return t.CallToolResult(content=[t.TextContent(text=f"{chosen.action}: {shown}")])
    if ctx.input_responses is None:
        form = t.ElicitRequestFormParams(message=text, requested_schema=b.EDITION_SCHEMA)
        return t.InputRequiredResult(input_requests={"question": t.ElicitRequest(params=form)})
    answer = ctx.input_responses["question"]
    assert isinstance(answer, t.ElicitResult)
    return t.CallToolResult(content=[t.TextContent(text=f"{answer.action}: {answer.content}")])


@mcp.tool()
async def slow(name: str) -> str:
    """Go on until it is cancelled."""
    _milestones.reach(f"{name} started")
    try:
        await anyio.sleep_forever()
    finally:
        _milestones.reach(f"{name} cancelled")
    return "slept"


@mcp.tool()
async def milestone(name: str) -> str:
    """Wait until another call has come so far."""
    await _milestones.wait(name)
    return f"{name}: reached"


@mcp.resource("book://dune", mime_type="text/plain")
def dune() -> str:
    """A book."""
    return b.BOOKS["book://dune"]


@mcp.resource("cover://dune", mime_type="image/png")
def dune_cover() -> bytes:
    """Its cover."""
    return b"\x89PNG"


@mcp.resource("shelf://{number}")
def shelf(number: str) -> str:
    """A shelf by its number."""
    return f"shelf {number}"


@mcp.prompt()
def recommend(genre: str) -> list[Message]:
    """Recommend a book."""
    return [UserMessage(f"Recommend a {genre} book."), AssistantMessage("Gladly.")]


@mcp.completion()  # type: ignore[no-untyped-call, untyped-decorator]
async def complete(
    ref: t.PromptReference | t.ResourceTemplateReference,
    argument: t.CompletionArgument,
    context: t.CompletionContext | None,
) -> t.Completion | None:
    values = [value for value in ("poetry", "popular science", "drama") if value.startswith(argument.value)]
    return t.Completion(values=values, total=len(values), has_more=False)


if __name__ == "__main__":
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    mcp.run()

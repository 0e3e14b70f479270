"""A typed server of this library: tools that are functions, for clients to try."""

from __future__ import annotations

from typing import Annotated, Any, cast

import anyio
from pydantic import BaseModel, Field

from mcp_core import MCPError
from mcp_typed import Context, MCPServer, ToolError
from tests.interop import bookshop as b

mcp = MCPServer("typed-bookshop", version="1.0.0", instructions="Buy books.")

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


@mcp.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool()
async def shout(text: str, times: int = 1) -> str:
    """Say it loud."""
    return " ".join([text.upper()] * times)


@mcp.tool(title="Sell a book", meta={"bookshop/department": "sales"})
def sell(book: Book, copies: Annotated[int, Field(description="How many.", ge=1)] = 1) -> Receipt:
    """Sell copies of a book."""
    return Receipt(title=book.title, copies=copies, total=copies * 9.5)


@mcp.tool()
def titles(shelf: str) -> list[str]:
    """The titles on a shelf."""
    return [f"{shelf} 1", f"{shelf} 2"]


@mcp.tool()
def broken_receipt() -> Receipt:
    """Return what the annotation does not allow."""
    unfit: Any = {"title": "Dune", "copies": 1}
    return cast("Receipt", unfit)


@mcp.tool()
def unchecked_receipt() -> Receipt:
    """Return an instance that was never validated."""
    return Receipt.model_construct(title="Dune", copies="many", total=1.0)


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
async def count(steps: int, ctx: Context) -> str:
    """Report progress at each step."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return f"counted to {steps}"


@mcp.tool()
async def log(text: str, ctx: Context) -> str:
    """Send a message at each of three levels."""
    for level in ("debug", "info", "error"):
        await ctx.log(level, {"text": text, "level": level}, logger_name="bookshop")
    return "logged"


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


if __name__ == "__main__":
    mcp.run()

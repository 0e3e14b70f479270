"""A typed server whose tools ask their user, and come and go: for clients to try over HTTP."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from mcp_typed import AcceptedElicitation, Elicit, ElicitationResult, MCPServer, Resolve

mcp = MCPServer("Bakery", version="1.0.0")


class Order(BaseModel):
    """What is wanted."""

    loaves: int = Field(ge=1)
    sliced: bool = False


def ask_for_order(flour: str) -> Elicit[Order]:
    """The question."""
    return Elicit(f"How much {flour} bread?", Order)


@mcp.tool
async def bake(flour: str, order: Annotated[ElicitationResult[Order], Resolve(ask_for_order)]) -> str:
    """Bake bread."""
    if isinstance(order, AcceptedElicitation):
        return f"{order.data.loaves} of {flour}{', sliced' if order.data.sliced else ''}"
    return f"none ({order.action})"


@mcp.tool
def teach() -> str:
    """Have one tool more."""
    mcp.add_tool(ice_cake)
    return "learned"


@mcp.tool
def forget() -> str:
    """Have one tool less."""
    mcp.remove_tool("ice_cake")
    return "forgotten"


@mcp.tool
def whisper(text: str) -> str:
    """A plain function: it runs in a worker thread."""
    return text.lower()


def ice_cake(colour: str) -> str:
    """Ice a cake."""
    return f"a {colour} cake"

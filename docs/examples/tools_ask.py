"""A tool that asks its user, in both protocol eras. Run it to see the question answered."""

from typing import Annotated, Literal

import anyio
from pydantic import BaseModel, Field

from mcp_core import Client
from mcp_core.client import Mode
from mcp_core.types import ElicitRequestParams, ElicitResult, TextContent
from mcp_typed import AcceptedElicitation, Elicit, ElicitationResult, MCPServer, Resolve

mcp = MCPServer("Bikes")


class Ride(BaseModel):
    minutes: int = Field(ge=5, le=120, description="How long you want to ride.")
    helmet: bool = False


def ask_for_ride(station: str) -> Elicit[Ride]:
    return Elicit(f"Your ride from {station}?", Ride)


@mcp.tool
def hire(station: str, ride: Annotated[Ride, Resolve(ask_for_ride)]) -> str:
    """Hire a bike."""
    return f"Bike 17 at {station} for {ride.minutes} minutes"


@mcp.tool
def enquire(station: str, ride: Annotated[ElicitationResult[Ride], Resolve(ask_for_ride)]) -> str:
    """Ask what a ride would cost."""
    if isinstance(ride, AcceptedElicitation):
        return f"{ride.data.minutes / 10:.2f} euros"
    return f"from 1.50 euros (the user chose to {ride.action})"


async def answered(tool: str, action: Literal["accept", "decline"], mode: Mode = "auto") -> str:
    """The text of a call whose user answers like this."""

    def answer(ctx: object, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action=action, content={"minutes": 45} if action == "accept" else None)

    async with Client(mcp, mode=mode, elicitation_callback=answer) as client:
        (block,) = (await client.call_tool(tool, {"station": "Canal"})).content
    assert isinstance(block, TextContent)
    return block.text


if __name__ == "__main__":
    anyio.run(answered, "hire", "accept", "legacy")

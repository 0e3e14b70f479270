"""A server of the official SDK, moved: nothing but its imports differs."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mcp_core.types import ToolAnnotations
from mcp_typed import Context, MCPServer, ToolError

mcp = MCPServer("Bikes", instructions="Ask for a station first.")


class Station(BaseModel):
    name: str
    bikes: int = Field(description="Ready to be taken.")


@mcp.tool(title="Look up", annotations=ToolAnnotations(read_only_hint=True))
async def look_up(name: Annotated[str, Field(description="Name of the station.")], ctx: Context) -> Station:
    """How full a station is."""
    await ctx.report_progress(1, 1)
    if name != "Canal":
        raise ToolError(f"there is no station {name}")
    return Station(name=name, bikes=7)


@mcp.tool()
def tariff(minutes: int = 30, kind: Literal["city", "cargo"] = "city") -> dict[str, float]:
    """What a ride costs."""
    return {kind: minutes / 10}


if __name__ == "__main__":
    mcp.run()

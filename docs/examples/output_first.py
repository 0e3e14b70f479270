"""One value, two channels: text for the model, data for the application."""

from pydantic import BaseModel, Field

from mcp_typed import MCPServer

mcp = MCPServer("Bikes")


class Station(BaseModel):
    name: str
    bikes: int = Field(ge=0, description="Ready to be taken.")
    docks: int


@mcp.tool
def look_up(station: str) -> Station:
    """How full a station is."""
    return Station(name=station, bikes=7, docks=12)


@mcp.tool
def stations() -> list[Station]:
    """All stations."""
    return [look_up("Canal"), look_up("Market")]

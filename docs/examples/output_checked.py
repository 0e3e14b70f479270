"""What comes from elsewhere is checked before it leaves."""

import json
from typing import cast

from pydantic import BaseModel

from mcp_typed import MCPServer

mcp = MCPServer("Bikes")

FEED = '{"name": "Canal", "bikes": "seven"}'


class Station(BaseModel):
    name: str
    bikes: int
    docks: int


@mcp.tool
def look_up() -> Station:
    """How full a station is."""
    return cast("Station", json.loads(FEED))


@mcp.tool
def guess() -> Station:
    """How full a station might be."""
    return cast("Station", {"name": "Canal", "bikes": "7", "docks": 12, "note": "a guess"})

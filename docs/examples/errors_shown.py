"""Exceptions whose text the model may read."""

from mcp_typed import MCPServer

mcp = MCPServer("Bikes", mask_errors=False)

STATIONS = {"Canal": 7}


@mcp.tool
def free_bikes(station: str) -> int:
    """How many bikes can be taken."""
    if station not in STATIONS:
        raise LookupError(f"no station {station!r}")
    return STATIONS[station]

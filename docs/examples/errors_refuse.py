"""A refusal that says what to do, to the model and to the application."""

from mcp_core.types import ResourceLink
from mcp_typed import MCPServer, ToolError

mcp = MCPServer("Bikes")


@mcp.tool
def hire(station: str) -> str:
    """Hire a bike."""
    raise ToolError(
        f"no bike is free at {station}",
        data={"next": "Market", "metres": 300},
        content=[ResourceLink(uri="bikes://map", name="Map")],
        meta={"bikes.example/queue": 4},
        retry_after=90,
    )

"""What a client shows and decides by: name, title, hints, icons."""

from mcp_core.types import Icon, ToolAnnotations
from mcp_typed import MCPServer

mcp = MCPServer("Bikes")


@mcp.tool(
    "station.clear",
    title="Clear a station",
    description="Send a van to take all bikes away.",
    annotations=ToolAnnotations(destructive_hint=True, idempotent_hint=True, open_world_hint=False),
    icons=[Icon(src="https://bikes.example/van.svg", mime_type="image/svg+xml")],
    meta={"bikes.example/role": "staff"},
)
def clear(station: str) -> None: ...

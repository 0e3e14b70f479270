"""A server over HTTP: as an ASGI app of its own, or inside another."""

from mcp_core.transports.streamable_http import InMemoryEventStore, TransportSecuritySettings
from mcp_typed import MCPServer

mcp = MCPServer("Tides")


@mcp.tool
async def high_water(harbour: str) -> str:
    """When the water is highest today."""
    return f"06:12 at {harbour}"


app = mcp.streamable_http_app(
    transport_security=TransportSecuritySettings(allowed_hosts=["tides.example"]),
    event_store=InMemoryEventStore(),
    health_path="/health",
)

if __name__ == "__main__":
    mcp.run("streamable-http", port=8000)

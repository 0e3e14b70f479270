"""A server in four processes behind one port."""

from mcp_typed import MCPServer

mcp = MCPServer("Tides")


@mcp.tool
def range_of(heights: list[float]) -> float:
    """How far the water rises."""
    return max(heights) - min(heights)


if __name__ == "__main__":
    mcp.run("streamable-http", port=8000, workers=4, stateless_http=True)

"""The shortest typed server: one function, one tool."""

from mcp_typed import MCPServer

mcp = MCPServer("Bikes")


@mcp.tool
def free_bikes(station: str, electric: bool = False) -> int:
    """How many bikes can be taken at a station right now."""
    return 2 if electric else 7


if __name__ == "__main__":
    mcp.run()

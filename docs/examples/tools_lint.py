"""A tool that works, and that a model will still get wrong."""

from mcp_typed import MCPServer

mcp = MCPServer("Bikes")


@mcp.tool
def swap(old: int, new: int) -> str:
    return f"{old} for {new}"

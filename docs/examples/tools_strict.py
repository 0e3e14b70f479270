"""Arguments that a tool does not have, refused by name."""

from mcp_typed import MCPServer

mcp = MCPServer("Bikes", unknown_arguments="reject")


@mcp.tool
def lock(bike: int) -> str:
    """Lock a bike."""
    return f"Bike {bike} is locked."


@mcp.tool(unknown_arguments="ignore")
def unlock(bike: int) -> str:
    """Unlock a bike."""
    return f"Bike {bike} is unlocked."

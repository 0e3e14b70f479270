"""Text only, and structured data or nothing."""

from collections.abc import Callable

from mcp_typed import MCPServer

mcp = MCPServer("Bikes")


@mcp.tool(structured_output=False)
def slogan() -> str:
    """Something for a poster."""
    return "Two wheels, no queue."


def make_bell() -> Callable[[], str]:
    return lambda: "ring"


def insist() -> None:
    """Raises: nothing in JSON stands for a function."""
    mcp.add_tool(make_bell, structured_output=True)

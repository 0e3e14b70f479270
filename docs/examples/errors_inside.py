"""Tools called from Python."""

from mcp_core import MCPError
from mcp_typed import MCPServer, ToolError

mcp = MCPServer("Bikes")


@mcp.tool
def ring() -> str:
    """Ring the bell."""
    return "ding"


@mcp.tool
def brake() -> str:
    """Brake."""
    raise ToolError("worn")


async def attempt(tool: str) -> str:
    try:
        return str((await mcp.call_tool(tool)).structured_content)
    except ToolError as exc:
        return f"ToolError: {exc}"
    except MCPError as exc:
        return f"MCPError: {exc}"

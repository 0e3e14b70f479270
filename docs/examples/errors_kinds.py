"""One tool for each way to fail."""

from typing import cast

import anyio

from mcp_core import MCPError
from mcp_typed import MCPServer, ToolError

mcp = MCPServer("Bikes")


@mcp.tool
def hire(bike: int) -> str:
    """Hire a bike."""
    return f"Bike {bike} is yours."


@mcp.tool
def refuse() -> str:
    """A refusal that the model should know of."""
    raise ToolError("bike 17 has a flat tyre")


@mcp.tool
def crash() -> str:
    """A fault of the server's own."""
    raise OSError("db.internal:5432 refused user bikes")


@mcp.tool
def miscount() -> int:
    """A value that is not what was promised."""
    return cast("int", "seven")


@mcp.tool
def average() -> dict[str, float]:
    """A number that JSON does not have."""
    return {"Canal": 7.5, "Market": float("nan")}


@mcp.tool(timeout=0.1)
async def dawdle() -> str:
    """A call that takes too long."""
    await anyio.sleep(60)
    return "never said"


@mcp.tool
def unpaid() -> str:
    """An error of the protocol, code and all."""
    raise MCPError(-32001, "Subscription ended", {"since": "2026-06"})

"""Arguments with descriptions, bounds and choices."""

from typing import Annotated, Literal

from pydantic import Field

from mcp_typed import MCPServer

mcp = MCPServer("Bikes")


@mcp.tool
def plan_ride(
    start: Annotated[str, "Station to set out from."],
    minutes: Annotated[int, Field(ge=5, le=240, description="Time to spend.")] = 30,
    surface: Literal["road", "gravel"] | None = None,
) -> str:
    """Suggest a round trip."""
    return f"{start}, {minutes} minutes on {surface or 'any surface'}"


@mcp.tool
def report_fault(bike: int, fault: str, urgent: bool = False) -> str:
    """Take a bike out of service.

    The workshop sees it at once.

    Args:
        bike: Number on the frame.
        fault: What is wrong, in one sentence.
    """
    return f"Bike {bike} is out of service."

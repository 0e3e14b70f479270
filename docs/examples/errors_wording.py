"""Bad arguments, told in the server's own words."""

from pydantic import ValidationError

from mcp_typed import MCPServer


def told(tool: str, error: ValidationError) -> str:
    names = sorted({str(fault["loc"][0]) for fault in error.errors()})
    return f"check {', '.join(names)} and call {tool} again"


mcp = MCPServer("Bikes", on_invalid_arguments=told)


@mcp.tool
def hire(bike: int, minutes: int) -> str:
    """Hire a bike."""
    return f"Bike {bike} for {minutes} minutes"

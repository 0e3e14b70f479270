"""Two plain classes, of which one says what it holds."""

from mcp_typed import MCPServer

mcp = MCPServer("Bikes")


class Depot:
    city: str
    bikes: int

    def __init__(self, city: str, bikes: int) -> None:
        self.city = city
        self.bikes = bikes


class Van:
    def __init__(self, plate: str) -> None:
        self.plate = plate


@mcp.tool
def depot() -> Depot:
    """Where bikes spend the night."""
    return Depot("Delft", 120)


@mcp.tool
def van() -> Van:
    """What brings them there."""
    return Van("XK-11-B")

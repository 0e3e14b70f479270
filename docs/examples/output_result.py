"""The value with a say in what surrounds it."""

from pydantic import BaseModel

from mcp_core.types import ResourceLink
from mcp_typed import MCPServer, Result

mcp = MCPServer("Bikes")


class Trip(BaseModel):
    bike: int
    km: float


@mcp.tool
def last_trip(bike: int) -> Result[Trip]:
    """Where a bike has been."""
    return Result(
        Trip(bike=bike, km=3.2),
        text=f"Bike {bike} went 3.2 km.",
        content=[ResourceLink(uri="bikes://17/map", name="Map")],
        meta={"bikes.example/source": "gps"},
    )

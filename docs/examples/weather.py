"""A typed server with one tool: run it with `mcp-typed run docs/examples/weather.py`."""

from typing import Annotated

from pydantic import BaseModel, Field

from mcp_core.types import ToolAnnotations
from mcp_typed import MCPServer

mcp = MCPServer("Weather")


class WeatherData(BaseModel):
    """The weather at one place."""

    temperature: float = Field(description="Degrees Celsius.")
    humidity: float
    conditions: str


@mcp.tool(title="Weather now", annotations=ToolAnnotations(read_only_hint=True))
def get_weather(city: Annotated[str, Field(description="City name.")]) -> WeatherData:
    """Current weather for a city."""
    return WeatherData(temperature=16.2, humidity=0.83, conditions=f"Overcast in {city}")


if __name__ == "__main__":
    mcp.run()

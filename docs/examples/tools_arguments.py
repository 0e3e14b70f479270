"""How arguments are read: each tool says what it got."""

from typing import Annotated

from pydantic import Field

from mcp_typed import MCPServer

mcp = MCPServer("Bikes")


@mcp.tool
def number(bike: int) -> str:
    return repr(bike)


@mcp.tool
def several(bikes: list[int]) -> str:
    return repr(bikes)


@mcp.tool
def either(bikes: str | list[int]) -> str:
    return repr(bikes)


@mcp.tool
def key(code: bytes) -> str:
    return repr(code)


@mcp.tool
def perhaps(gear: int = None) -> str:  # type: ignore  # noqa: PGH003, RUF013
    return repr(gear)


@mcp.tool
def renamed(bike: Annotated[int, Field(alias="bikeNumber")]) -> str:
    return repr(bike)


def many(*bikes: int) -> str:
    return repr(bikes)


def refused() -> None:
    """Raises: a schema has no place for as many parameters as there may be."""
    mcp.add_tool(many)

"""Tools that answer differently here than in the official SDK; each names the decision."""

import enum
from typing import cast

import msgspec
from pydantic import BaseModel, Field

from mcp_typed import MCPServer

mcp = MCPServer("Bikes")


class Kind(enum.Enum):
    CITY = "city"


class Depot:
    city: str

    def __init__(self, city: str) -> None:
        self.city = city


class Bell(msgspec.Struct):
    loud: bool


class Named(BaseModel):
    number: int = Field(serialization_alias="no")


@mcp.tool()
def wheels(count: int) -> int:
    """P-02"""
    return count


@mcp.tool()
def spokes() -> int:
    """P-03"""
    return cast("int", "many")


@mcp.tool()
def crash() -> int:
    """P-04"""
    raise OSError("db.internal")


@mcp.tool()
def half() -> float:
    """P-05"""
    return 2


@mcp.tool()
def none() -> list[int]:
    """P-06"""
    return []


@mcp.tool()
def kind() -> Kind:
    """P-07"""
    return Kind.CITY


@mcp.tool()
def bell() -> Bell:
    """P-08"""
    return Bell(loud=True)


@mcp.tool()
def alias() -> Named:
    """P-09"""
    return Named(number=7)


@mcp.tool()
def depot() -> Depot:
    """P-10"""
    return Depot("Delft")


@mcp.tool()
def nan() -> float:
    """P-12"""
    return float("nan")


@mcp.tool()
def lone() -> str:
    """P-13"""
    return "a\ud800b"


@mcp.tool()
def key() -> bytes:
    """P-14"""
    return b"\xfb\xff"


@mcp.tool()
def note(text: str | list[int]) -> str:
    """P-15"""
    return repr(text)


@mcp.tool()
def optional(gear: int = None) -> str:  # type: ignore  # noqa: PGH003, RUF013
    """P-17"""
    return repr(gear)

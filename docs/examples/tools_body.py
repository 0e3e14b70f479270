"""Arguments that are objects: four kinds of classes, one kind of schema."""

from dataclasses import dataclass

import attrs
import msgspec
from pydantic import BaseModel, Field

from mcp_typed import MCPServer

mcp = MCPServer("Bikes")


class Rider(BaseModel):
    name: str
    age: int = Field(ge=14)


@dataclass
class Address:
    street: str
    city: str = "Delft"


class Bike(msgspec.Struct):
    number: int
    electric: bool = False


@attrs.define
class Helmet:
    size: str = "M"


@mcp.tool
def sign_up(rider: Rider, address: Address, bike: Bike, helmets: list[Helmet]) -> str:
    """Make a rider a member."""
    kinds = [type(each).__name__ for each in (rider, address, bike, *helmets)]
    return f"{rider.name}, {address.city}, bike {bike.number}; got {', '.join(kinds)}"

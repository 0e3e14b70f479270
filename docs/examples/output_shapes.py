"""What may be returned: one tool for each shape."""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

import attrs
import msgspec
from pydantic import BaseModel, RootModel

from mcp_typed import MCPServer

mcp = MCPServer("Bikes")


class Bike(BaseModel):
    number: int


class Tyre(TypedDict):
    size: int


@dataclass
class Lock:
    code: str


class Bell(msgspec.Struct):
    loud: bool


@attrs.define
class Lamp:
    watts: float


class Basket:
    litres: int

    def __init__(self, litres: int) -> None:
        self.litres = litres


class Kind(enum.Enum):
    CITY = "city"
    CARGO = "cargo"


class Place(NamedTuple):
    x: int
    y: int


class Fleet(RootModel[list[int]]):
    pass


# Objects: sent as they are.


@mcp.tool
def model() -> Bike:
    return Bike(number=7)


@mcp.tool
def typed_dict() -> Tyre:
    return {"size": 28}


@mcp.tool
def data_class() -> Lock:
    return Lock("1234")


@mcp.tool
def struct() -> Bell:
    return Bell(True)


@mcp.tool
def attrs_class() -> Lamp:
    return Lamp(2.5)


@mcp.tool
def annotated_class() -> Basket:
    return Basket(20)


@mcp.tool
def mapping() -> dict[str, int]:
    return {"Canal": 7}


@mcp.tool
def any_mapping() -> Mapping[str, int]:
    return {"Canal": 7}


# Everything else that has a schema: wrapped.


@mcp.tool
def integer() -> int:
    return 7


@mcp.tool
def text() -> str:
    return "seven"


@mcp.tool
def nothing() -> None:
    return None


@mcp.tool
def optional() -> Bike | None:
    return None


@mcp.tool
def numbers() -> list[int]:
    return [7, 8]


@mcp.tool
def no_numbers() -> list[int]:
    return []


@mcp.tool
def bikes() -> list[Bike]:
    return [Bike(number=7), Bike(number=8)]


@mcp.tool
def pair() -> tuple[int, str | None]:
    return (7, None)


@mcp.tool
def one_by_one() -> Iterator[int]:
    yield from (7, 8)


@mcp.tool
def unordered() -> set[int]:
    return {7}


@mcp.tool
def named_tuple() -> Place:
    return Place(4, 52)


@mcp.tool
def root() -> Fleet:
    return Fleet([7, 8])


@mcp.tool
def by_number() -> dict[int, str]:
    return {17: "Canal"}


@mcp.tool
def choice() -> Kind:
    return Kind.CITY


@mcp.tool
def day() -> date:
    return date(2026, 7, 28)


@mcp.tool
def span() -> timedelta:
    return timedelta(minutes=90)


@mcp.tool
def identity() -> UUID:
    return UUID(int=7)


@mcp.tool
def price() -> Decimal:
    return Decimal("1.50")


@mcp.tool
def path() -> PurePosixPath:
    return PurePosixPath("a/b")


@mcp.tool
def raw() -> bytes:
    return b"\xfb\xff"


# Nothing is said of what it is: text only.


@mcp.tool
def anything() -> Any:
    return {"number": 7}


@mcp.tool
def something() -> object:
    return [7, {"number": 8}, None]

"""Classes that tools of the tests take as parameters, and functions that live elsewhere than those tools."""

from __future__ import annotations

import enum
import functools
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Generic, Literal, NamedTuple, NewType, ParamSpec, TypeVar

import attrs
import msgspec
import typing_extensions
from pydantic import BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass as pydantic_dataclass

from mcp_typed import MCPServer

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Item(BaseModel):
    """An item."""

    a: int
    b: str = "x"


class ClosedItem(BaseModel):
    model_config = ConfigDict(extra="forbid")

    a: int


@dataclass
class DataItem:
    a: int
    b: str = "q"


class OpenDict(typing_extensions.TypedDict, total=False):
    a: int


@pydantic_dataclass
class PydanticItem:
    a: int
    b: str = "x"


class StructItem(msgspec.Struct):
    a: int
    b: str = "x"


@attrs.define
class AttrsItem:
    a: int
    b: str = "x"


UserId = NewType("UserId", int)
Numbers = typing_extensions.TypeAliasType("Numbers", list[int])


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    n: int


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    m: str


class Config(BaseModel):
    model_config = ConfigDict(title="Nice", json_schema_extra={"examples": [{"a": 1}]})

    a: int


class Plain:
    """Annotated, but made by hand: nothing says how to make one from JSON."""

    a: int

    def __init__(self, a: int) -> None:
        self.a = a


# --- what the standard library, msgspec and attrs offer ---------------------------------


@dataclass
class Address:
    city: str
    zip_codes: list[int] = field(default_factory=list[int])


@dataclass
class Person:
    name: str
    address: Address
    nick: str | None = None


# On 3.11 pydantic refuses this kind, and asks for the one of typing_extensions.
class Point(typing.TypedDict):
    x: int
    y: typing.NotRequired[int]


class Place(typing.TypedDict):
    name: str
    at: Point


class Loose(typing.TypedDict, total=False):
    a: typing.Required[int]
    b: int


class LooseChild(Point, total=False):
    z: int


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Inner(msgspec.Struct):
    n: int


class Outer(msgspec.Struct):
    inner: Inner
    many: list[Inner] = []
    labels: dict[str, Inner] = {}


class RenamedStruct(msgspec.Struct, rename="camel"):
    page_size: int
    sort_key: str = "id"


class FieldRenamed(msgspec.Struct):
    page_size: int = msgspec.field(name="pageSize", default=10)


class ClosedStruct(msgspec.Struct, forbid_unknown_fields=True):
    a: int


class Circle(msgspec.Struct, tag="circle"):
    radius: int


class Square(msgspec.Struct, tag="square"):
    side: int


class Started(msgspec.Struct, tag_field="event", tag=True):
    at: int


class Stopped(msgspec.Struct, tag_field="event", tag=True):
    code: int = 0


class FactoryStruct(msgspec.Struct):
    names: list[str] = msgspec.field(default_factory=list[str])


class FrozenStruct(msgspec.Struct, frozen=True, kw_only=True):
    b: str = "x"
    a: int


@attrs.frozen
class AttrsOuter:
    inner: AttrsItem
    many: list[AttrsItem] = attrs.field(factory=list[AttrsItem])


class Node(BaseModel):
    value: int
    children: list[Node] = []


@dataclass
class DataNode:
    value: int
    children: list[DataNode] = field(default_factory=list["DataNode"])


class StructNode(msgspec.Struct):
    value: int
    children: list[StructNode] = []


class Page(BaseModel, Generic[T]):
    items: list[T]
    following: str | None = None


class StructPage(msgspec.Struct, Generic[T]):
    items: list[T]


@dataclass
class DataPage(Generic[T]):
    items: list[T]


class User(BaseModel):
    name: str


class Patch(msgspec.Struct):
    """What to change; a member that is left out stays as it is."""

    n: int | msgspec.UnsetType = msgspec.UNSET


class Limited(msgspec.Struct):
    n: Annotated[int, msgspec.Meta(ge=1, description="How many.")]


class Checked(msgspec.Struct):
    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError("below zero")


class Mixed(BaseModel):
    """A model that has classes of other libraries as members."""

    data: DataItem
    pair: Pair


class AliasedItem(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    page_size: int = Field(alias="pageSize")


class BytesItem(BaseModel):
    data: bytes


@dataclass
class BytesData:
    data: bytes


class BytesStruct(msgspec.Struct):
    data: bytes


# --- functions of another module ----------------------------------------------------------


def logged(function: Callable[P, R]) -> Callable[P, R]:
    """A wrapper as many modules have one; it is no coroutine function, whatever it wraps."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    return wrapper


def logged_async(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """The same as a coroutine function."""

    @functools.wraps(function)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        return await function(*args, **kwargs)

    return wrapper


def register_with_local_class(mcp: MCPServer) -> None:
    """A tool whose parameter is of a class that only this call knows."""

    class Local(BaseModel):
        n: int

    @mcp.tool
    def take_local(value: Local) -> int:
        return value.n

    @mcp.tool
    def take_locals(values: list[Local]) -> list[int]:
        return [value.n for value in values]


def function_with_local_class() -> Callable[..., int]:
    """A function of a local class, which it mentions in its body."""

    class Local(BaseModel):
        n: int

    def take_closure(value: Local) -> int:
        assert type(value) is Local
        return value.n

    return take_closure


def function_with_lost_class() -> Callable[..., int]:
    """A function of a local class that nothing can find any more."""

    class Lost(BaseModel):
        n: int

    def take_lost(value: Lost) -> int:
        return value.n

    return take_lost

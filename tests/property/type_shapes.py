"""The type shapes that a tool may take and return, each with values to try.

A value is always drawn together with the JSON that it must become. The two are made
side by side here, by hand, so that no library vouches for itself.
"""

from __future__ import annotations

import base64
import re
import typing
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from ipaddress import IPv4Address
from pathlib import Path, PurePosixPath
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    TypeAlias,
    TypeVar,
    Union,
    cast,
)
from typing import TypedDict as StdTypedDict
from uuid import UUID

import attrs
import msgspec
import typing_extensions as te
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    HttpUrl,
    PlainSerializer,
    PositiveInt,
    RootModel,
    StrictInt,
    Tag,
    computed_field,
    field_serializer,
    model_serializer,
)
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass as pydantic_dataclass

from tests.property.strategies import json_objects, json_values, unicode_text

__all__ = ["BASIC", "SHAPES", "Shape", "Unordered", "same_json"]

T = TypeVar("T")

Pair: TypeAlias = tuple[Any, Any]
"""A Python value, and the JSON that it must become."""

Pairs: TypeAlias = st.SearchStrategy[Pair]


class Unordered(list[Any]):
    """A JSON array made from a set: its order is nobody's promise."""


class Shape(msgspec.Struct, frozen=True):
    """A type, values of it, and what is to become of them."""

    name: str
    annotation: Any
    pairs: Pairs
    example: Pair
    """One fixed value that says more than the simplest one."""

    bare: bool = False
    """Its JSON is the structured content itself, with no `result` around it."""

    takes: bool = True
    """It may be a parameter too."""

    faithful: bool = True
    """As a parameter it accepts what it becomes as a result, and is equal to it afterwards."""

    arguments: st.SearchStrategy[Any] | None = None
    """Further JSON that a parameter of it must accept."""

    stream: Literal["iterator", "async iterator"] | None = None
    """The function hands its elements out one by one."""

    def __repr__(self) -> str:
        return f"<shape {self.name}>"


def same_json(got: Any, wanted: Any) -> bool:
    """Equal as JSON: `true` is not 1, but 1.0 is."""
    match wanted:
        case list():
            items = cast("list[Any]", wanted)
            if not isinstance(got, list) or len(cast("list[Any]", got)) != len(items):
                return False
            rest = list(cast("list[Any]", got))
            if not isinstance(wanted, Unordered):
                return all(map(same_json, rest, items))
            return all(_take_out(rest, item) for item in items)
        case dict():
            members = cast("dict[str, Any]", wanted)
            if not isinstance(got, dict):
                return False
            others = cast("dict[str, Any]", got)
            return others.keys() == members.keys() and all(same_json(others[key], members[key]) for key in members)
        case _:
            return isinstance(got, bool) == isinstance(wanted, bool) and bool(got == wanted)


def _take_out(rest: list[Any], wanted: Any) -> bool:
    """Remove one that is the same; whether there was one."""
    for index, item in enumerate(rest):
        if same_json(item, wanted):
            del rest[index]
            return True
    return False


# --- values beside their JSON --------------------------------------------------------------------


def as_is(values: st.SearchStrategy[Any]) -> Pairs:
    """Values that are JSON already."""
    return values.map(lambda value: (value, value))


def written(values: st.SearchStrategy[Any], write: Callable[[Any], Any]) -> Pairs:
    """Values that JSON has to write in its own way."""
    return values.map(lambda value: (value, write(value)))


def same(value: Any) -> Pair:
    """A value that is its own JSON."""
    return value, value


def many(pairs: Pairs, least: int = 0, most: int = 3, make: Callable[[list[Any]], Any] = list) -> Pairs:
    """A container, made from a list of values, that JSON writes as an array."""

    def join(items: list[Pair]) -> Pair:
        return make([value for value, _ in items]), [json for _, json in items]

    return st.lists(pairs, min_size=least, max_size=most).map(join)


def distinct(pairs: Pairs, make: Callable[[list[Any]], Any]) -> Pairs:
    """A set of values."""

    def join(items: list[Pair]) -> Pair:
        return make([value for value, _ in items]), Unordered(json for _, json in items)

    return st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0]).map(join)


def by_key(keys: Pairs, pairs: Pairs, make: Callable[[dict[Any, Any]], Any] = dict) -> Pairs:
    """A mapping. The JSON of a key is a string."""

    def join(items: list[tuple[Pair, Pair]]) -> Pair:
        return (make({key[0]: item[0] for key, item in items}), {key[1]: item[1] for key, item in items})

    return st.lists(st.tuples(keys, pairs), max_size=3, unique_by=lambda item: item[0][0]).map(join)


def in_turn(*pairs: Pairs, make: Callable[..., Any] = lambda *values: values) -> Pairs:
    """A fixed number of values that JSON writes as an array."""

    def join(items: tuple[Pair, ...]) -> Pair:
        return make(*(value for value, _ in items)), [json for _, json in items]

    return st.tuples(*pairs).map(join)


def built(
    make: Callable[..., Any],
    fields: dict[str, Pairs],
    *,
    write: Callable[[dict[str, Any]], Any] = lambda json: json,
    **optional: Pairs,
) -> Pairs:
    """An object, made from keywords. `write` turns the JSON of its fields into its own.

    Fields that are optional are left out now and then, from the value and its JSON alike.
    """

    def join(items: dict[str, Pair]) -> Pair:
        return (
            make(**{name: value for name, (value, _) in items.items()}),
            write({name: json for name, (_, json) in items.items()}),
        )

    return st.fixed_dictionaries(fields, optional=optional).map(join)


def renamed(**names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Writes fields under other names."""
    return lambda json: {names.get(name, name): item for name, item in json.items()}


def with_members(**members: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Writes members that the fields do not hold."""
    return lambda json: {**members, **json}


def without(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Keeps fields to itself."""
    return lambda json: {name: item for name, item in json.items() if name not in names}


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def json_of_time(value: date | time) -> str:
    """ISO 8601; a moment in UTC ends in Z."""
    return value.isoformat().replace("+00:00", "Z")


_DURATIONS: Final[list[Pair]] = [
    (timedelta(), "PT0S"),
    (timedelta(seconds=90), "PT1M30S"),
    (timedelta(days=1), "P1D"),
    (timedelta(days=2, seconds=3661, microseconds=500_000), "P2DT1H1M1.5S"),
    (timedelta(seconds=-90), "-PT1M30S"),
    (timedelta(microseconds=1), "PT0.000001S"),
]

_zones = st.sampled_from([None, UTC, timezone(timedelta(hours=2)), timezone(timedelta(hours=-3, minutes=-30))])
_decimals = st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-1000, max_value=1000) | (
    st.sampled_from([Decimal("1E+2"), Decimal("1E-10"), Decimal("1.10"), Decimal("123456789012345678901234567890.5")])
)
_paths = st.from_regex(r"/?[a-z]{1,3}(/[a-z .]{0,2}[a-z]){0,2}", fullmatch=True)

booleans = as_is(st.booleans())
integers = as_is(st.integers() | st.integers(-(2**80), 2**80))
floats = as_is(st.floats(allow_nan=False, allow_infinity=False))
strings = as_is(unicode_text | st.sampled_from(["null", "5", "true", '{"a": 1}', "[1]", '"q"', ""]))
nothing = as_is(st.none())
binaries = written(st.binary(max_size=8) | st.just(b"\xff\xfe\xfb"), base64_of)
decimals = written(_decimals, str)
dates = written(st.dates(), json_of_time)
datetimes = written(st.datetimes(timezones=st.none()) | st.datetimes(timezones=_zones), json_of_time)
times = written(st.times(), json_of_time)
durations: Pairs = st.sampled_from(_DURATIONS)
uuids = written(st.uuids(), str)
paths = written(_paths.map(Path), str)
small = as_is(st.integers(-5, 99))
names = as_is(st.text("abcdefé ", min_size=1, max_size=4))

NO_ITEMS: Final[list[Any]] = []
DAY: Final[Pair] = (date(2024, 2, 29), "2024-02-29")
MOMENT: Final[Pair] = (datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), "2024-01-02T03:04:05Z")
ID: Final[Pair] = (UUID(int=0xA1), "00000000-0000-0000-0000-0000000000a1")
RAW: Final[Pair] = (b"\xfb\xff\x00", "+/8A")
PRICE: Final[Pair] = (Decimal("1.10"), "1.10")


# --- enumerations --------------------------------------------------------------------------------


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 10


class Size(StrEnum):
    S = "small"
    L = "large"


class Grade(Enum):
    """Values of more than one type."""

    ONE = 1
    HALF = 0.5
    NONE = "none"


def members(kind: type[Enum]) -> Pairs:
    return written(st.sampled_from(list(kind)), lambda member: member.value)


# --- pydantic models -----------------------------------------------------------------------------


class Point(BaseModel):
    x: int
    y: float


class Book(BaseModel):
    """A book on a shelf."""

    title: str = Field(description="As on the cover.")
    pages: int = Field(default=1, ge=1)
    authors: list[str] = []
    isbn: str | None = None


class Shelf(BaseModel):
    name: str
    first: Book
    rest: list[Book] = Field(default_factory=list[Book])
    by_place: dict[str, Book] = {}


class Aliased(BaseModel):
    temp_c: float = Field(alias="tempC")
    station: str = Field(default="", alias="$station")


class TwoNames(BaseModel):
    """It is read under one name and written under another."""

    amount: int = Field(validation_alias="in", serialization_alias="out")


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)

    first_name: str
    last_name: str = "Doe"


class Area(BaseModel):
    width: int
    height: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def area(self) -> int:
        return self.width * self.height


class Secretive(BaseModel):
    shown: int
    hidden: str = Field(default="s", exclude=True)


class HidesNothing(BaseModel):
    kept: int
    note: str | None = Field(default=None, exclude_if=lambda value: value is None)


class Node(BaseModel):
    value: int
    children: list[Node] = []


class Husband(BaseModel):
    name: str
    wife: Wife | None = None


class Wife(BaseModel):
    name: str
    husband: Husband | None = None


class Page(BaseModel, Generic[T]):
    items: list[T]
    cursor: str | None = None


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    a: int


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    a: int


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)

    a: int
    b: str = "x"


class Stamped(BaseModel):
    day: date
    moment: datetime
    lasts: timedelta
    id: UUID
    price: Decimal
    place: Path
    level: Level
    color: Color


class Blob(BaseModel):
    raw: bytes
    parts: list[bytes] = [b"\xff"]


class HexBlob(BaseModel):
    """It writes bytes in a way of its own."""

    model_config = ConfigDict(ser_json_bytes="hex", val_json_bytes="hex")

    raw: bytes


class BlobNode(BaseModel):
    raw: bytes
    next: BlobNode | None = None


class Digest(BaseModel):
    text: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def raw(self) -> bytes:
        return self.text.encode()


class Timer(BaseModel):
    model_config = ConfigDict(ser_json_timedelta="float")

    lasts: timedelta


class Named(BaseModel):
    """Its field has the name of the wrapper's."""

    result: int


class Child(Point):
    label: str = "p"


class Written(BaseModel):
    """Its fields are written as what they are not."""

    number: int
    steps: Annotated[int, PlainSerializer(lambda value: [value] * 2, return_type=list[int])]

    @field_serializer("number")
    def _number(self, value: int) -> str:
        return f"no. {value}"


class AsText(BaseModel):
    a: int

    @model_serializer
    def _whole(self) -> str:
        return f"a{self.a}"


class AsCounts(BaseModel):
    a: int

    @model_serializer
    def _whole(self) -> dict[str, int]:
        return {"count": self.a}


class Titled(BaseModel):
    model_config = ConfigDict(title="A title: of its own", json_schema_extra={"examples": [{"a": 1}]})

    a: int


class Empty(BaseModel):
    pass


class Odd(BaseModel):
    """Names that mean something to JSON Schema, to Python, or to pydantic."""

    ref: str = Field(alias="$ref")
    default: int
    type: str = "t"
    class_: int = Field(default=1, alias="class")
    discriminator: str = "d"


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    bark: int


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    meow: str


Numbers = RootModel[list[int]]
Scores = RootModel[dict[str, int]]
Answer = RootModel[int]
Bytes = RootModel[list[bytes]]


class Library(RootModel[list[Book]]):
    pass


class Nested(RootModel["list[Nested]"]):
    pass


points = built(Point, {"x": small, "y": floats})
books = built(
    Book, {"title": names, "pages": as_is(st.integers(1, 9)), "authors": many(strings), "isbn": nothing | strings}
)
dogs = built(Dog, {"bark": small}, write=with_members(kind="dog"))
cats = built(Cat, {"meow": strings}, write=with_members(kind="cat"))
nodes: Pairs = st.recursive(
    built(Node, {"value": small}, write=with_members(children=NO_ITEMS)),
    lambda inner: built(Node, {"value": small, "children": many(inner, most=2)}),
    max_leaves=4,
)
nests: Pairs = st.recursive(
    many(nothing, most=0, make=Nested), lambda inner: many(inner, most=2, make=Nested), max_leaves=4
)
stamps = built(
    Stamped,
    {
        "day": dates,
        "moment": datetimes,
        "lasts": durations,
        "id": uuids,
        "price": decimals,
        "place": paths,
        "level": members(Level),
        "color": members(Color),
    },
)

POINT: Final[Pair] = (Point(x=1, y=0.5), {"x": 1, "y": 0.5})
BOOK: Final[Pair] = (
    Book(title="Dune", pages=412, authors=["Frank", "Brian"]),
    {"title": "Dune", "pages": 412, "authors": ["Frank", "Brian"], "isbn": None},
)
DOG: Final[Pair] = (Dog(bark=3), {"kind": "dog", "bark": 3})
CAT: Final[Pair] = (Cat(meow="prr"), {"kind": "cat", "meow": "prr"})


def kind_of(value: Any) -> str:
    """Tells the members of a union apart by what they have."""
    if isinstance(value, dict):
        return "point" if "x" in value else "book"
    return "point" if isinstance(value, Point) else "book"


# --- dataclasses ---------------------------------------------------------------------------------


@dataclass
class Track:
    name: str
    length: int = 3


@dataclass
class Album:
    title: str
    tracks: list[Track] = field(default_factory=list[Track])
    cover: bytes | None = None
    released: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slotted:
    a: int
    b: str = "x"


@dataclass
class Branch:
    name: str
    sub: list[Branch] = field(default_factory=list["Branch"])


@dataclass
class Box(Generic[T]):
    item: T


@dataclass
class Single(Track):
    b_side: str | None = None


@pydantic_dataclass
class Checked:
    a: Annotated[int, Field(ge=0)]
    b: str = Field(default="x", alias="B")


tracks = built(Track, {"name": names, "length": small})
albums = built(
    Album, {"title": names, "tracks": many(tracks), "cover": nothing | binaries, "released": nothing | dates}
)
branches: Pairs = st.recursive(
    built(Branch, {"name": names}, write=lambda json: {**json, "sub": NO_ITEMS}),
    lambda inner: built(Branch, {"name": names, "sub": many(inner, most=2)}),
    max_leaves=4,
)

TRACK: Final[Pair] = (Track("So What", 9), {"name": "So What", "length": 9})


# --- typed dictionaries and named tuples ---------------------------------------------------------


class Movie(te.TypedDict):
    title: str
    year: int


class MaybeMovie(te.TypedDict, total=False):
    title: str
    year: int


class DatedMovie(te.TypedDict):
    title: str
    seen: te.NotRequired[date]
    raw: te.NotRequired[bytes]


class NeedsTitle(te.TypedDict, total=False):
    title: te.Required[str]
    year: int


class Cinema(te.TypedDict):
    now: Movie
    soon: list[DatedMovie]


class HeldItem(te.TypedDict, Generic[T]):
    item: T


class StdMovie(StdTypedDict):
    title: str
    year: int


class StdMaybeMovie(StdTypedDict, total=False):
    title: str
    point: Point


class StdDatedMovie(StdTypedDict):
    title: str
    seen: te.NotRequired[date]


class StdCinema(StdTypedDict):
    now: StdMovie
    soon: list[StdDatedMovie]


class Purse(te.TypedDict):
    coins: list[Coin]
    ticket: te.NotRequired[Ticket]


class StdPurse(StdTypedDict):
    coins: dict[str, Coin]
    raw: bytes


class Pixel(NamedTuple):
    x: int
    color: Color
    note: str = "q"


class Line(NamedTuple):
    start: Pixel
    ends: list[int]


movies = built(dict, {"title": names, "year": small})
dated_movies = built(dict, {"title": names}, seen=dates, raw=binaries)
std_dated_movies = built(dict, {"title": names}, seen=dates)
pixels = in_turn(small, members(Color), names, make=Pixel)

MOVIE: Final[Pair] = same({"title": "Heat", "year": 1995})
PIXEL: Final[Pair] = (Pixel(1, Color.RED), [1, "red", "q"])


# --- msgspec structs and attrs classes -----------------------------------------------------------


class Coin(msgspec.Struct):
    name: str
    value: int = 1


class Wallet(msgspec.Struct):
    owner: str
    coins: list[Coin] = []
    best: Coin | None = None
    by_name: dict[str, Coin] = {}


class CamelStruct(msgspec.Struct, rename="camel"):
    first_name: str
    last_name: str = "Doe"


class FieldNames(msgspec.Struct):
    kind: str = msgspec.field(name="$kind")
    note: str = msgspec.field(default="n", name="the note")


class Disc(msgspec.Struct, tag=True):
    radius: int


class Square(msgspec.Struct, tag=True):
    side: int


class Deposit(msgspec.Struct, tag_field="op", tag="deposit"):
    amount: int


class Withdrawal(msgspec.Struct, tag_field="op", tag="withdraw"):
    amount: int
    fee: int = 0


class FrozenStruct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    a: int
    b: str = "x"


class Terse(msgspec.Struct, omit_defaults=True):
    a: int
    b: str = "x"
    c: list[int] = []


class Rope(msgspec.Struct):
    value: int
    next: Rope | None = None


class Sealed(msgspec.Struct, Generic[T]):
    item: T


class StampedStruct(msgspec.Struct):
    day: date
    moment: datetime
    id: UUID
    price: Decimal
    raw: bytes
    level: Level
    color: Color
    tags: set[str]


class LimitedStruct(msgspec.Struct):
    age: Annotated[int, msgspec.Meta(ge=0, le=120)]
    name: Annotated[str, msgspec.Meta(min_length=1)] = "n"


class StructWithDataclass(msgspec.Struct):
    track: Track
    pixel: Pixel | None = None


class Circle(msgspec.Struct, tag=1):
    r: int


class Ring(msgspec.Struct, tag=2, rename="upper"):
    inner: Circle


class Loose(msgspec.Struct):
    x: int
    y: int | msgspec.UnsetType = msgspec.UNSET


@attrs.define
class Ticket:
    seat: str
    price: int = 5


@attrs.define
class Order:
    tickets: list[Ticket] = attrs.field(factory=list[Ticket])
    first: Ticket | None = None
    when: date | None = None
    raw: bytes = b"\xff"


@attrs.frozen(kw_only=True)
class FrozenOrder:
    a: int
    b: str = "x"


@attrs.define
class Twig:
    name: str
    sub: list[Twig] = attrs.field(factory=list["Twig"])


class Everything(msgspec.Struct):
    """It holds what other libraries have made."""

    point: Point
    movie: StdMovie
    order: Order
    either: Disc | Square
    boxed: Box[int]


@dataclass
class Safe:
    """A dataclass of structs and attrs classes."""

    coins: list[Coin]
    best: Disc | Square | None = None
    tickets: dict[str, Ticket] = field(default_factory=dict[str, Ticket])


@attrs.define
class Mixed:
    coin: Coin
    track: Track
    point: Point | None = None


class Deal(NamedTuple):
    coin: Coin
    raw: bytes = b""


coins = built(Coin, {"name": names, "value": small})
ropes: Pairs = st.recursive(
    built(Rope, {"value": small}, write=lambda json: {**json, "next": None}),
    lambda inner: built(Rope, {"value": small, "next": inner}),
    max_leaves=3,
)
discs = built(Disc, {"radius": small}, write=with_members(type="Disc"))
squares = built(Square, {"side": small}, write=with_members(type="Square"))
deposits = built(Deposit, {"amount": small}, write=with_members(op="deposit"))
withdrawals = built(Withdrawal, {"amount": small, "fee": small}, write=with_members(op="withdraw"))
tickets = built(Ticket, {"seat": names, "price": small})
twigs: Pairs = st.recursive(
    built(Twig, {"name": names}, write=lambda json: {**json, "sub": NO_ITEMS}),
    lambda inner: built(Twig, {"name": names, "sub": many(inner, most=2)}),
    max_leaves=4,
)

circles = built(Circle, {"r": small}, write=with_members(type=1))
rings = built(Ring, {"inner": circles}, write=lambda json: {"type": 2, "INNER": json["inner"]})

COIN: Final[Pair] = (Coin("dime", 10), {"name": "dime", "value": 10})
DISC: Final[Pair] = (Disc(2), {"type": "Disc", "radius": 2})
TICKET: Final[Pair] = (Ticket("A1"), {"seat": "A1", "price": 5})


# --- plain classes -------------------------------------------------------------------------------


class Weather:
    """Annotations, and nothing that a library would know."""

    degrees: float
    wind: str = "calm"

    def __init__(self, degrees: float, wind: str = "calm") -> None:
        self.degrees = degrees
        self.wind = wind


class Forecast(Weather):
    day: date

    def __init__(self, degrees: float, wind: str, day: date) -> None:
        super().__init__(degrees, wind)
        self.day = day


# --- names for types -----------------------------------------------------------------------------

UserId = NewType("UserId", int)
Ids = te.TypeAliasType("Ids", list[int])
Bookings = te.TypeAliasType("Bookings", dict[str, Point])


# --- the shapes ----------------------------------------------------------------------------------

_whole_floats = st.integers(-(2**53), 2**53).map(float)
_url_safe = st.binary(max_size=8).map(lambda data: base64.urlsafe_b64encode(data).decode())

SCALARS: Final = [
    Shape("none", None, nothing, (None, None)),
    Shape("bool", bool, booleans, (True, True)),
    Shape("int", int, integers, (2**70, 2**70), arguments=_whole_floats),
    Shape("float", float, floats, (1e-07, 1e-07), arguments=st.integers(-(2**60), 2**60)),
    Shape("str", str, strings, ('é "q"\n\u2028 𝄞', 'é "q"\n\u2028 𝄞')),
    Shape("bytes", bytes, binaries, RAW, arguments=_url_safe),
    Shape("decimal", Decimal, decimals, PRICE, arguments=st.integers() | st.floats(-1e6, 1e6)),
    Shape("date", date, dates, DAY),
    Shape("datetime", datetime, datetimes, MOMENT),
    Shape("time", time, times, (time(23, 59, 1, 500), "23:59:01.000500")),
    Shape("timedelta", timedelta, durations, (timedelta(days=1, seconds=90), "P1DT1M30S")),
    Shape("uuid", UUID, uuids, ID),
    Shape("path", Path, paths, (Path("/srv/books"), "/srv/books")),
    Shape("pure_path", PurePosixPath, written(_paths.map(PurePosixPath), str), (PurePosixPath("a/b"), "a/b")),
    Shape("ipv4", IPv4Address, written(st.ip_addresses(v=4), str), (IPv4Address("10.0.0.1"), "10.0.0.1")),
    Shape(
        "pattern",
        re.Pattern[str],
        written(st.sampled_from([re.compile(""), re.compile("a+|\\d")]), lambda pattern: pattern.pattern),
        (re.compile("^a*$"), "^a*$"),
    ),
    Shape("complex", complex, st.just((1 + 2j, "1+2j")), (1j, "1j")),
    Shape("enum", Color, members(Color), (Color.BLUE, "blue")),
    Shape("int_enum", Level, members(Level), (Level.HIGH, 10)),
    Shape("str_enum", Size, members(Size), (Size.L, "large")),
    Shape("mixed_enum", Grade, members(Grade), (Grade.HALF, 0.5)),
    Shape("literal_str", Literal["a", "b"], as_is(st.sampled_from(["a", "b"])), ("b", "b")),
    Shape("literal_int", Literal[1, 2], as_is(st.sampled_from([1, 2])), (2, 2)),
    Shape("literal_one", Literal["only"], as_is(st.just("only")), ("only", "only")),
    Shape("literal_mixed", Literal["a", 2, None, True], as_is(st.sampled_from(["a", 2, None, True])), (None, None)),
    Shape(
        "literal_enum",
        Literal[Color.RED, Level.LOW],
        st.sampled_from([(Color.RED, "red"), (Level.LOW, 1)]),
        (Color.RED, "red"),
    ),
    Shape(
        "url",
        HttpUrl,
        written(st.sampled_from(["http://a.b/c", "https://x.y/"]).map(HttpUrl), str),
        (HttpUrl("http://a.b/"), "http://a.b/"),
    ),
    Shape("newtype", UserId, integers, (UserId(4), 4)),
    Shape("strict_int", StrictInt, integers, (5, 5)),
]

CONSTRAINED: Final = [
    Shape("positive", PositiveInt, as_is(st.integers(1)), (7, 7)),
    Shape("bounded_int", Annotated[int, Field(ge=-3, le=3, description="A step.")], as_is(st.integers(-3, 3)), (3, 3)),
    Shape(
        "even",
        Annotated[int, Field(multiple_of=2, gt=0, lt=100)],
        as_is(st.integers(1, 49).map(lambda n: n * 2)),
        (4, 4),
    ),
    Shape("ratio", Annotated[float, Field(ge=0, lt=1)], as_is(st.floats(0, 1, exclude_max=True)), (0.25, 0.25)),
    Shape(
        "short_text",
        Annotated[str, Field(min_length=1, max_length=4)],
        as_is(st.text("aé𝄞 ", min_size=1, max_size=4)),
        same("𝄞𝄞𝄞𝄞"),
    ),
    Shape(
        "isbn",
        Annotated[str, Field(pattern=r"^[0-9]{3}-[a-z]+$")],
        as_is(st.from_regex(r"[0-9]{3}-[a-z]{1,4}", fullmatch=True)),
        same("978-abc"),
    ),
    Shape("some_ints", Annotated[list[int], Field(min_length=1, max_length=3)], many(small, least=1), same([1, 2])),
    Shape(
        "few_tags", Annotated[set[str], Field(max_length=3)], distinct(names, set), ({"x", "y"}, Unordered(["x", "y"]))
    ),
    Shape(
        "some_scores",
        Annotated[dict[str, int], Field(min_length=1, description="By name.")],
        by_key(names, small).filter(lambda pair: bool(pair[0])),
        same({"ann": 1}),
        bare=True,
    ),
    Shape(
        "money",
        Annotated[Decimal, Field(ge=0, max_digits=6, decimal_places=2)],
        written(st.decimals(0, 9999, places=2), str),
        PRICE,
    ),
    Shape(
        "recent", Annotated[date, Field(gt=date(2000, 1, 1))], written(st.dates(date(2000, 1, 2)), json_of_time), DAY
    ),
    Shape("noted", Annotated[str, "just a note"], strings, ("x", "x")),
    Shape("twice", Annotated[Annotated[int, Field(ge=1)], Field(description="outer")], as_is(st.integers(1)), (1, 1)),
    Shape("described_model", Annotated[Point, Field(description="Where.")], points, POINT, bare=True),
    Shape("list_bounded", list[Annotated[int, Field(ge=0)]], many(as_is(st.integers(0))), same([0, 2**60])),
    Shape(
        "dict_bounded",
        dict[str, Annotated[str, Field(max_length=2)]],
        by_key(strings, as_is(st.text("ab", max_size=2))),
        same({"": "ab"}),
        bare=True,
    ),
    Shape(
        "written_int",
        Annotated[int, PlainSerializer(lambda value: f"no. {value}", return_type=str)],
        written(st.integers(), lambda value: f"no. {value}"),
        (3, "no. 3"),
        faithful=False,
        arguments=st.integers(),
    ),
    Shape(
        "summed",
        Annotated[list[int], PlainSerializer(sum, return_type=int)],
        written(st.lists(st.integers(), max_size=3), sum),
        ([1, 2], 3),
        faithful=False,
        arguments=st.lists(st.integers(), max_size=3),
    ),
]

CONTAINERS: Final = [
    Shape("list_str", list[str], many(strings), same(["", "a\nb", "null"])),
    Shape("typing_list", typing.List[int], many(integers), same([1, 2])),  # noqa: UP006
    Shape("list_optional", list[int | None], many(integers | nothing), same([1, None])),
    Shape("list_list", list[list[int]], many(many(small)), same([[1, 2], []])),
    Shape("list_any", list[Any], as_is(st.lists(json_values, max_size=3)), same(["a", None, [1, {"b": False}]])),
    Shape("list_union", list[int | str], many(integers | strings), same([1, "1"])),
    Shape("tuple_two", tuple[int, str], in_turn(integers, strings), ((1, "a"), [1, "a"])),
    Shape("tuple_many", tuple[int, ...], many(integers, make=tuple), ((1, 2, 3), [1, 2, 3])),
    Shape("tuple_none", tuple[()], st.just(((), [])), ((), [])),
    Shape(
        "tuple_mixed",
        tuple[date, list[UUID], bytes],
        in_turn(dates, many(uuids), binaries),
        ((DAY[0], [ID[0]], RAW[0]), [DAY[1], [ID[1]], RAW[1]]),
    ),
    Shape("set_int", set[int], distinct(integers, set), ({1, 2}, Unordered([1, 2])), arguments=st.just([2, 1])),
    Shape("frozenset_str", frozenset[str], distinct(strings, frozenset), (frozenset("ab"), Unordered("ab"))),
    Shape("deque_int", deque[int], many(integers, make=deque), (deque([1, 2]), [1, 2])),
    Shape("sequence_int", Sequence[int], many(integers), same([1, 2])),
    Shape("dict_str_int", dict[str, int], by_key(strings, integers), same({"a": 1, "": 2}), bare=True),
    Shape("typing_dict", typing.Dict[str, int], by_key(strings, integers), same({"a": 1}), bare=True),  # noqa: UP006
    Shape("mapping", Mapping[str, int], by_key(strings, integers), same({"a": 1}), bare=True),
    Shape("mutable_mapping", MutableMapping[str, int], by_key(strings, integers), same({"a": 1}), bare=True),
    Shape(
        "ordered_dict",
        OrderedDict[str, int],
        by_key(strings, integers, OrderedDict),
        (OrderedDict[str, int](b=1, a=2), {"b": 1, "a": 2}),
        bare=True,
    ),
    Shape(
        "default_dict",
        defaultdict[str, int],
        by_key(strings, integers, lambda items: defaultdict(int, items)),
        (defaultdict(int, a=1), {"a": 1}),
        bare=True,
    ),
    Shape("counter", Counter[str], by_key(strings, integers, Counter), (Counter("aab"), {"a": 2, "b": 1}), bare=True),
    Shape("dict_any", dict[str, Any], as_is(json_objects), same({"a": [1, {"b": None}], "é": "x"}), bare=True),
    Shape("dict_optional", dict[str, int | None], by_key(strings, integers | nothing), same({"a": None}), bare=True),
    Shape(
        "dict_of_lists",
        dict[str, list[date]],
        by_key(strings, many(dates)),
        ({"a": [DAY[0]]}, {"a": [DAY[1]]}),
        bare=True,
    ),
    Shape("dict_int_float", dict[int, float], by_key(written(st.integers(), str), floats), ({1: 2.5}, {"1": 2.5})),
    Shape("dict_date", dict[date, int], by_key(dates, small), ({DAY[0]: 1}, {DAY[1]: 1})),
    Shape("dict_uuid", dict[UUID, str], by_key(uuids, strings), ({ID[0]: "a"}, {ID[1]: "a"})),
    Shape("dict_enum", dict[Color, int], by_key(members(Color), small), ({Color.RED: 1}, {"red": 1})),
    Shape("dict_str_enum", dict[Size, int], by_key(members(Size), small), ({Size.S: 1}, {"small": 1})),
    Shape(
        "dict_int_enum",
        dict[Level, str],
        by_key(written(st.sampled_from(Level), lambda level: str(level.value)), strings),
        ({Level.LOW: "x"}, {"1": "x"}),
    ),
    Shape(
        "dict_bool",
        dict[bool, int],
        st.sampled_from([({}, {}), ({True: 1, False: 0}, {"true": 1, "false": 0})]),
        ({True: 1}, {"true": 1}),
    ),
    Shape("type_alias", Ids, many(integers), same([1, 2])),
    Shape("dict_alias", Bookings, by_key(names, points), ({"a": POINT[0]}, {"a": POINT[1]}), bare=True),
]

UNIONS: Final = [
    Shape("int_or_str", int | str, integers | strings, ("5", "5")),
    Shape("int_none_str", Union[int, None, str], integers | nothing | strings, (None, None)),  # noqa: UP007
    Shape("bool_or_int", bool | int, booleans | integers, (True, True)),
    Shape("str_or_list", str | list[str], strings | many(strings), same(["a", "b"])),
    Shape("int_or_dict", int | dict[str, int], integers | by_key(strings, integers), same({"a": 1})),
    Shape("model_or_model", Point | Book, points | books, BOOK),
    Shape("model_or_str", Book | str, books | strings, BOOK),
    Shape("model_or_list", Book | list[Book], books | many(books), ([BOOK[0]], [BOOK[1]])),
    Shape("dataclass_or_model", Track | Point, tracks | points, TRACK),
    Shape("date_or_int", date | int, dates | integers, DAY),
    Shape("enum_or_int", Color | int, members(Color) | integers, (Color.RED, "red")),
    Shape("pets", Annotated[Dog | Cat, Field(discriminator="kind")], dogs | cats, CAT),
    Shape(
        "list_pets",
        list[Annotated[Dog | Cat, Field(discriminator="kind")]],
        many(dogs | cats),
        ([DOG[0], CAT[0]], [DOG[1], CAT[1]]),
    ),
    Shape(
        "told_apart",
        Annotated[Annotated[Point, Tag("point")] | Annotated[Book, Tag("book")], Discriminator(kind_of)],
        points | books,
        POINT,
    ),
    Shape("discs_or_squares", Disc | Square, discs | squares, DISC),
    Shape("optional_structs", Disc | Square | None, discs | squares | nothing, (None, None)),
    Shape(
        "list_structs",
        list[Disc | Square],
        many(discs | squares),
        ([DISC[0], Square(1)], [DISC[1], {"type": "Square", "side": 1}]),
    ),
    Shape(
        "operations",
        Deposit | Withdrawal,
        deposits | withdrawals,
        (Withdrawal(5), {"op": "withdraw", "amount": 5, "fee": 0}),
    ),
    Shape("struct_or_str", Coin | str, coins | strings, COIN),
    Shape("struct_or_model", Disc | Point, discs | points, DISC),
    Shape("ticket_or_int", Ticket | int, tickets | integers, TICKET),
    Shape("movie_or_none_or_int", Movie | None | int, movies | nothing | integers, MOVIE),
]

MODELS: Final = [
    Shape("point", Point, points, POINT, bare=True, arguments=st.just({"x": 1, "y": 2, "z": "more"})),
    Shape("book", Book, books, BOOK, bare=True, arguments=st.just({"title": "t"})),
    Shape(
        "shelf",
        Shelf,
        built(Shelf, {"name": names, "first": books, "rest": many(books), "by_place": by_key(names, books)}),
        (
            Shelf(name="s", first=BOOK[0], by_place={"left": BOOK[0]}),
            {"name": "s", "first": BOOK[1], "rest": [], "by_place": {"left": BOOK[1]}},
        ),
        bare=True,
    ),
    Shape(
        "aliased",
        Aliased,
        built(Aliased, {"tempC": floats, "$station": strings}),
        (Aliased.model_validate({"tempC": 1.5}), {"tempC": 1.5, "$station": ""}),
        bare=True,
    ),
    Shape(
        "two_names",
        TwoNames,
        written(st.integers().map(lambda n: TwoNames.model_validate({"in": n})), lambda model: {"out": model.amount}),
        (TwoNames.model_validate({"in": 3}), {"out": 3}),
        bare=True,
        faithful=False,
        arguments=st.fixed_dictionaries({"in": st.integers()}),
    ),
    Shape(
        "camel",
        Camel,
        built(
            Camel,
            {"first_name": names, "last_name": names},
            write=renamed(first_name="firstName", last_name="lastName"),
        ),
        (Camel(first_name="Ann"), {"firstName": "Ann", "lastName": "Doe"}),
        bare=True,
    ),
    Shape(
        "computed",
        Area,
        built(
            Area, {"width": small, "height": small}, write=lambda json: {**json, "area": json["width"] * json["height"]}
        ),
        (Area(width=2, height=3), {"width": 2, "height": 3, "area": 6}),
        bare=True,
    ),
    Shape(
        "excluded",
        Secretive,
        built(Secretive, {"shown": small, "hidden": names}, write=without("hidden")),
        (Secretive(shown=1, hidden="never"), {"shown": 1}),
        bare=True,
        faithful=False,
        arguments=st.just({"shown": 1, "hidden": "h"}),
    ),
    Shape(
        "excluded_if",
        HidesNothing,
        built(HidesNothing, {"kept": small}, note=names),
        (HidesNothing(kept=1), {"kept": 1}),
        bare=True,
        arguments=st.just({"kept": 1, "note": None}),
    ),
    Shape(
        "recursive",
        Node,
        nodes,
        (Node(value=1, children=[Node(value=2)]), {"value": 1, "children": [{"value": 2, "children": NO_ITEMS}]}),
        bare=True,
    ),
    Shape(
        "mutually_recursive",
        Husband,
        built(
            Husband,
            {
                "name": names,
                "wife": nothing | built(Wife, {"name": names}, write=lambda json: {**json, "husband": None}),
            },
        ),
        (Husband(name="a", wife=Wife(name="b")), {"name": "a", "wife": {"name": "b", "husband": None}}),
        bare=True,
    ),
    Shape(
        "page_int",
        Page[int],
        built(Page[int], {"items": many(integers), "cursor": nothing | strings}),
        (Page[int](items=[1]), {"items": [1], "cursor": None}),
        bare=True,
    ),
    Shape(
        "page_models",
        Page[Point],
        built(Page[Point], {"items": many(points), "cursor": nothing | strings}),
        (Page[Point](items=[POINT[0]], cursor="c"), {"items": [POINT[1]], "cursor": "c"}),
        bare=True,
    ),
    Shape("closed", Closed, built(Closed, {"a": small}), (Closed(a=1), {"a": 1}), bare=True),
    Shape(
        "open",
        Open,
        built(Open, {"a": small, "more": as_is(json_values), "c d": strings}),
        (Open.model_validate({"a": 1, "more": [1]}), {"a": 1, "more": [1]}),
        bare=True,
    ),
    Shape("frozen", Frozen, built(Frozen, {"a": small, "b": names}), (Frozen(a=1), {"a": 1, "b": "x"}), bare=True),
    Shape(
        "stamped",
        Stamped,
        stamps,
        (
            Stamped(
                day=DAY[0],
                moment=MOMENT[0],
                lasts=timedelta(seconds=90),
                id=ID[0],
                price=PRICE[0],
                place=Path("/x"),
                level=Level.HIGH,
                color=Color.RED,
            ),
            {
                "day": DAY[1],
                "moment": MOMENT[1],
                "lasts": "PT1M30S",
                "id": ID[1],
                "price": "1.10",
                "place": "/x",
                "level": 10,
                "color": "red",
            },
        ),
        bare=True,
    ),
    Shape(
        "blob",
        Blob,
        built(Blob, {"raw": binaries, "parts": many(binaries)}),
        (Blob(raw=RAW[0]), {"raw": RAW[1], "parts": ["/w=="]}),
        bare=True,
        arguments=_url_safe.map(lambda raw: {"raw": raw}),
    ),
    Shape(
        "hex_blob",
        HexBlob,
        written(st.binary(max_size=4).map(lambda raw: HexBlob(raw=raw)), lambda model: {"raw": model.raw.hex()}),
        (HexBlob(raw=b"\xff"), {"raw": "ff"}),
        bare=True,
    ),
    Shape(
        "blob_chain",
        BlobNode,
        built(
            BlobNode,
            {"raw": binaries, "next": nothing | built(BlobNode, {"raw": binaries}, write=with_members(next=None))},
        ),
        (BlobNode(raw=RAW[0], next=BlobNode(raw=b"")), {"raw": RAW[1], "next": {"raw": "", "next": None}}),
        bare=True,
    ),
    Shape(
        "digest",
        Digest,
        written(
            unicode_text.map(lambda text: Digest(text=text)),
            lambda model: {"text": model.text, "raw": base64_of(model.raw)},
        ),
        (Digest(text="?>?"), {"text": "?>?", "raw": "Pz4/"}),
        bare=True,
    ),
    Shape(
        "timer",
        Timer,
        written(
            st.integers(0, 9999).map(lambda n: Timer(lasts=timedelta(seconds=n))),
            lambda model: {"lasts": model.lasts.total_seconds()},
        ),
        (Timer(lasts=timedelta(seconds=1.5)), {"lasts": 1.5}),
        bare=True,
        faithful=False,
        arguments=durations.map(lambda pair: {"lasts": pair[1]}),
    ),
    Shape("named_result", Named, built(Named, {"result": small}), (Named(result=5), {"result": 5}), bare=True),
    Shape(
        "inheriting",
        Child,
        built(Child, {"x": small, "y": floats, "label": names}),
        (Child(x=1, y=2.0), {"x": 1, "y": 2.0, "label": "p"}),
        bare=True,
    ),
    Shape(
        "written_fields",
        Written,
        written(
            st.integers(-5, 5).map(lambda n: Written(number=n, steps=n)),
            lambda model: {"number": f"no. {model.number}", "steps": [model.steps] * 2},
        ),
        (Written(number=1, steps=2), {"number": "no. 1", "steps": [2, 2]}),
        bare=True,
        faithful=False,
        arguments=st.just({"number": 1, "steps": 2}),
    ),
    Shape(
        "model_as_text",
        AsText,
        written(st.integers().map(lambda n: AsText(a=n)), lambda model: f"a{model.a}"),
        (AsText(a=5), "a5"),
        faithful=False,
        arguments=st.just({"a": 5}),
    ),
    Shape(
        "model_as_counts",
        AsCounts,
        written(st.integers().map(lambda n: AsCounts(a=n)), lambda model: {"count": model.a}),
        (AsCounts(a=5), {"count": 5}),
        bare=True,
        faithful=False,
        arguments=st.just({"a": 5}),
    ),
    Shape("titled", Titled, built(Titled, {"a": small}), (Titled(a=1), {"a": 1}), bare=True),
    Shape("empty", Empty, built(Empty, {}), (Empty(), {}), bare=True),
    Shape(
        "odd_names",
        Odd,
        built(Odd, {"$ref": strings, "default": integers, "class": integers, "type": names, "discriminator": names}),
        (
            Odd.model_validate({"$ref": "#", "default": 1}),
            {"$ref": "#", "default": 1, "type": "t", "class": 1, "discriminator": "d"},
        ),
        bare=True,
    ),
    Shape("root_list", Numbers, many(integers, make=Numbers), (Numbers([1, 2]), [1, 2])),
    Shape("root_dict", Scores, by_key(strings, integers, Scores), (Scores({"a": 1}), {"a": 1}), bare=True),
    Shape("root_int", Answer, written(st.integers().map(Answer), lambda model: model.root), (Answer(42), 42)),
    Shape("root_bytes", Bytes, many(binaries, make=Bytes), (Bytes([RAW[0]]), [RAW[1]])),
    Shape("root_models", Library, many(books, make=Library), (Library([BOOK[0]]), [BOOK[1]])),
    Shape("root_recursive", Nested, nests, (Nested([Nested([]), Nested([])]), [[], []])),
]

CLASSES: Final = [
    Shape("track", Track, tracks, TRACK, bare=True, arguments=st.just({"name": "n"})),
    Shape(
        "album",
        Album,
        albums,
        (
            Album("Blue", [TRACK[0]], b"\xff"),
            {"title": "Blue", "tracks": [TRACK[1]], "cover": "/w==", "released": None},
        ),
        bare=True,
    ),
    Shape("slotted", Slotted, built(Slotted, {"a": small, "b": names}), (Slotted(a=1), {"a": 1, "b": "x"}), bare=True),
    Shape(
        "recursive_dataclass",
        Branch,
        branches,
        (Branch("a", [Branch("b")]), {"name": "a", "sub": [{"name": "b", "sub": NO_ITEMS}]}),
        bare=True,
    ),
    Shape("box_int", Box[int], built(Box, {"item": integers}), (Box(1), {"item": 1}), bare=True),
    Shape(
        "box_models",
        Box[list[Point]],
        built(Box, {"item": many(points)}),
        (Box([POINT[0]]), {"item": [POINT[1]]}),
        bare=True,
    ),
    Shape(
        "inheriting_dataclass",
        Single,
        built(Single, {"name": names, "length": small, "b_side": nothing | names}),
        (Single("n"), {"name": "n", "length": 3, "b_side": None}),
        bare=True,
    ),
    Shape(
        "pydantic_dataclass",
        Checked,
        built(Checked, {"a": as_is(st.integers(0)), "B": strings}),
        (Checked(a=1), {"a": 1, "B": "x"}),
        bare=True,
    ),
    Shape("movie", Movie, movies, MOVIE, bare=True),
    Shape("maybe_movie", MaybeMovie, built(dict, {}, title=names, year=small), same({"year": 1}), bare=True),
    Shape(
        "dated_movie",
        DatedMovie,
        dated_movies,
        ({"title": "t", "raw": RAW[0]}, {"title": "t", "raw": RAW[1]}),
        bare=True,
    ),
    Shape("needs_title", NeedsTitle, built(dict, {"title": names}, year=small), same({"title": "t"}), bare=True),
    Shape(
        "cinema",
        Cinema,
        built(dict, {"now": movies, "soon": many(dated_movies)}),
        (
            {"now": MOVIE[0], "soon": [{"title": "t", "seen": DAY[0]}]},
            {"now": MOVIE[1], "soon": [{"title": "t", "seen": DAY[1]}]},
        ),
        bare=True,
    ),
    Shape("held_item", HeldItem[UUID], built(dict, {"item": uuids}), ({"item": ID[0]}, {"item": ID[1]}), bare=True),
    Shape("std_movie", StdMovie, movies, MOVIE, bare=True),
    Shape(
        "std_maybe_movie",
        StdMaybeMovie,
        built(dict, {}, title=names, point=points),
        ({"point": POINT[0]}, {"point": POINT[1]}),
        bare=True,
    ),
    Shape(
        "std_dated_movie",
        StdDatedMovie,
        std_dated_movies,
        ({"title": "t", "seen": DAY[0]}, {"title": "t", "seen": DAY[1]}),
        bare=True,
    ),
    Shape(
        "std_cinema",
        StdCinema,
        built(dict, {"now": movies, "soon": many(std_dated_movies)}),
        (
            {"now": MOVIE[0], "soon": [{"title": "t", "seen": DAY[0]}]},
            {"now": MOVIE[1], "soon": [{"title": "t", "seen": DAY[1]}]},
        ),
        bare=True,
    ),
    Shape("pixel", Pixel, pixels, PIXEL),
    Shape("line", Line, in_turn(pixels, many(integers), make=Line), (Line(PIXEL[0], [1, 2]), [PIXEL[1], [1, 2]])),
    Shape("coin", Coin, coins, COIN, bare=True, arguments=st.just({"name": "n"})),
    Shape(
        "wallet",
        Wallet,
        built(Wallet, {"owner": names, "coins": many(coins), "best": nothing | coins, "by_name": by_key(names, coins)}),
        (
            Wallet("me", [COIN[0]], by_name={"d": COIN[0]}),
            {"owner": "me", "coins": [COIN[1]], "best": None, "by_name": {"d": COIN[1]}},
        ),
        bare=True,
    ),
    Shape(
        "camel_struct",
        CamelStruct,
        built(
            CamelStruct,
            {"first_name": names, "last_name": names},
            write=renamed(first_name="firstName", last_name="lastName"),
        ),
        (CamelStruct("Ann"), {"firstName": "Ann", "lastName": "Doe"}),
        bare=True,
    ),
    Shape(
        "field_names",
        FieldNames,
        built(FieldNames, {"kind": names, "note": names}, write=renamed(kind="$kind", note="the note")),
        (FieldNames("k"), {"$kind": "k", "the note": "n"}),
        bare=True,
    ),
    Shape("tagged", Disc, discs, DISC, bare=True),
    Shape("tag_field", Deposit, deposits, (Deposit(5), {"op": "deposit", "amount": 5}), bare=True),
    Shape(
        "frozen_struct",
        FrozenStruct,
        built(FrozenStruct, {"a": small, "b": names}),
        (FrozenStruct(a=1), {"a": 1, "b": "x"}),
        bare=True,
    ),
    Shape(
        "terse_struct",
        Terse,
        built(Terse, {"a": small}, b=st.just(("y", "y")), c=many(small, least=1)),
        (Terse(1, c=[2]), {"a": 1, "c": [2]}),
        bare=True,
    ),
    Shape("rope", Rope, ropes, (Rope(1, Rope(2)), {"value": 1, "next": {"value": 2, "next": None}}), bare=True),
    Shape("signed", Sealed[date], built(Sealed, {"item": dates}), (Sealed(DAY[0]), {"item": DAY[1]}), bare=True),
    Shape(
        "stamped_struct",
        StampedStruct,
        built(
            StampedStruct,
            {
                "day": dates,
                "moment": datetimes,
                "id": uuids,
                "price": decimals,
                "raw": binaries,
                "level": members(Level),
                "color": members(Color),
                "tags": distinct(names, set),
            },
        ),
        (
            StampedStruct(DAY[0], MOMENT[0], ID[0], PRICE[0], RAW[0], Level.LOW, Color.BLUE, {"t"}),
            {
                "day": DAY[1],
                "moment": MOMENT[1],
                "id": ID[1],
                "price": "1.10",
                "raw": RAW[1],
                "level": 1,
                "color": "blue",
                "tags": ["t"],
            },
        ),
        bare=True,
    ),
    Shape(
        "limited_struct",
        LimitedStruct,
        built(LimitedStruct, {"age": as_is(st.integers(0, 120)), "name": names}),
        (LimitedStruct(44), {"age": 44, "name": "n"}),
        bare=True,
    ),
    Shape(
        "struct_with_others",
        StructWithDataclass,
        built(StructWithDataclass, {"track": tracks, "pixel": nothing | pixels}),
        (StructWithDataclass(TRACK[0], PIXEL[0]), {"track": TRACK[1], "pixel": PIXEL[1]}),
        bare=True,
    ),
    Shape("int_tag", Ring, rings, (Ring(Circle(1)), {"type": 2, "INNER": {"type": 1, "r": 1}}), bare=True),
    Shape("int_tags", Circle | Ring, circles | rings, (Circle(1), {"type": 1, "r": 1})),
    Shape("unset", Loose, built(Loose, {"x": small}, y=small), (Loose(1), {"x": 1}), bare=True),
    Shape(
        "everything",
        Everything,
        built(
            Everything,
            {
                "point": points,
                "movie": movies,
                "order": built(
                    Order, {"tickets": many(tickets)}, write=with_members(first=None, when=None, raw="/w==")
                ),
                "either": discs | squares,
                "boxed": built(Box[int], {"item": integers}),
            },
        ),
        (
            Everything(POINT[0], MOVIE[0], Order(raw=RAW[0]), DISC[0], Box(1)),
            {
                "point": POINT[1],
                "movie": MOVIE[1],
                "order": {"tickets": NO_ITEMS, "first": None, "when": None, "raw": RAW[1]},
                "either": DISC[1],
                "boxed": {"item": 1},
            },
        ),
        bare=True,
    ),
    Shape(
        "safe",
        Safe,
        built(Safe, {"coins": many(coins), "best": nothing | discs | squares, "tickets": by_key(names, tickets)}),
        (Safe([COIN[0]], DISC[0]), {"coins": [COIN[1]], "best": DISC[1], "tickets": {}}),
        bare=True,
    ),
    Shape(
        "mixed_attrs",
        Mixed,
        built(Mixed, {"coin": coins, "track": tracks, "point": nothing | points}),
        (Mixed(COIN[0], TRACK[0]), {"coin": COIN[1], "track": TRACK[1], "point": None}),
        bare=True,
    ),
    Shape("deal", Deal, in_turn(coins, binaries, make=Deal), (Deal(COIN[0], RAW[0]), [COIN[1], RAW[1]])),
    Shape(
        "purse",
        Purse,
        built(dict, {"coins": many(coins)}, ticket=tickets),
        ({"coins": [COIN[0]], "ticket": TICKET[0]}, {"coins": [COIN[1]], "ticket": TICKET[1]}),
        bare=True,
    ),
    Shape(
        "std_purse",
        StdPurse,
        built(dict, {"coins": by_key(names, coins), "raw": binaries}),
        ({"coins": {"a": COIN[0]}, "raw": RAW[0]}, {"coins": {"a": COIN[1]}, "raw": RAW[1]}),
        bare=True,
    ),
    Shape(
        "sealed_coins",
        Sealed[list[Coin]],
        built(Sealed, {"item": many(coins)}),
        (Sealed([COIN[0]]), {"item": [COIN[1]]}),
        bare=True,
    ),
    Shape("described_struct", Annotated[Coin, Field(description="Money.")], coins, COIN, bare=True),
    Shape("ticket", Ticket, tickets, TICKET, bare=True, arguments=st.just({"seat": "s"})),
    Shape(
        "order",
        Order,
        built(Order, {"tickets": many(tickets), "first": nothing | tickets, "when": nothing | dates, "raw": binaries}),
        (Order([TICKET[0]]), {"tickets": [TICKET[1]], "first": None, "when": None, "raw": "/w=="}),
        bare=True,
    ),
    Shape(
        "frozen_order",
        FrozenOrder,
        built(FrozenOrder, {"a": small, "b": names}),
        (FrozenOrder(a=1), {"a": 1, "b": "x"}),
        bare=True,
    ),
    Shape(
        "recursive_attrs",
        Twig,
        twigs,
        (Twig("a", [Twig("b")]), {"name": "a", "sub": [{"name": "b", "sub": NO_ITEMS}]}),
        bare=True,
    ),
]

RETURNED_ONLY: Final = [
    Shape(
        "weather",
        Weather,
        built(Weather, {"degrees": floats, "wind": strings}),
        (Weather(16.5), {"degrees": 16.5, "wind": "calm"}),
        bare=True,
        takes=False,
    ),
    Shape(
        "forecast",
        Forecast,
        written(
            st.dates().map(lambda day: Forecast(1.5, "calm", day)),
            lambda value: {"degrees": 1.5, "wind": "calm", "day": value.day.isoformat()},
        ),
        (Forecast(1.5, "strong", DAY[0]), {"degrees": 1.5, "wind": "strong", "day": DAY[1]}),
        bare=True,
        takes=False,
    ),
    Shape("iterable", Iterable[int], many(integers), same([1, 2]), takes=False),
    Shape("iterator", Iterator[Point], many(points), ([POINT[0]], [POINT[1]]), takes=False, stream="iterator"),
    Shape("generator", Generator[str, None, None], many(strings), same(["a", "b"]), takes=False, stream="iterator"),
    Shape(
        "async_iterator", AsyncIterator[date], many(dates), ([DAY[0]], [DAY[1]]), takes=False, stream="async iterator"
    ),
]


# --- shapes made of shapes -----------------------------------------------------------------------

_ORIGINS: Final[dict[str, Any]] = {
    "list": list,
    "dict": dict,
    "set": set,
    "frozenset": frozenset,
    "deque": deque,
    "sequence": Sequence,
    "mapping": Mapping,
    "tuple": tuple,
    "optional": Optional,
    "page": Page,
}


def of(origin: str, inner: Shape, pairs: Pairs, example: Pair, *, bare: bool = False, key: Any = None) -> Shape:
    """A shape whose annotation is another's in brackets, its values and example given."""
    annotation: Any = inner.annotation
    if key is not None:
        annotation = (key, annotation)
    return msgspec.structs.replace(
        inner,
        name=f"{origin}_of_{inner.name}",
        annotation=_ORIGINS[origin][annotation],
        pairs=pairs,
        example=example,
        bare=bare,
        arguments=None,
    )


def list_of(inner: Shape, origin: str = "list") -> Shape:
    value, json = inner.example
    return of(origin, inner, many(inner.pairs), ([value, value], [json, json]))


def deque_of(inner: Shape) -> Shape:
    value, json = inner.example
    return of("deque", inner, many(inner.pairs, make=deque), (deque([value]), [json]))


def dict_of(inner: Shape, origin: str = "dict") -> Shape:
    value, json = inner.example
    return of(origin, inner, by_key(strings, inner.pairs), ({"k": value}, {"k": json}), bare=True, key=str)


def optional_of(inner: Shape) -> Shape:
    return of("optional", inner, inner.pairs | nothing, inner.example)


def set_of(inner: Shape, origin: str = "set") -> Shape:
    make: Callable[[list[Any]], Any] = _ORIGINS[origin]
    value, json = inner.example
    return of(origin, inner, distinct(inner.pairs, make), (make([value]), Unordered([json])))


def pair_of(inner: Shape) -> Shape:
    """With a number, in a tuple of two."""
    value, json = inner.example
    shape = of("tuple", inner, in_turn(inner.pairs, small), ((value, 1), [json, 1]), key=inner.annotation)
    return msgspec.structs.replace(shape, annotation=_ORIGINS["tuple"][inner.annotation, int])


def page_of(inner: Shape) -> Shape:
    """In the list of a generic model."""
    value, json = inner.example
    make: Any = _ORIGINS["page"][inner.annotation]
    return of(
        "page",
        inner,
        built(make, {"items": many(inner.pairs)}, write=with_members(cursor=None)),
        (make(items=[value]), {"items": [json], "cursor": None}),
        bare=True,
    )


BASIC: Final = [*SCALARS, *CONSTRAINED, *CONTAINERS, *UNIONS, *MODELS, *CLASSES]
_BY_NAME: Final = {shape.name: shape for shape in BASIC}


def bases(text: str) -> list[Shape]:
    return [_BY_NAME[name] for name in text.split()]


COMPOSED: Final = [
    *map(
        list_of,
        bases(
            "bool float bytes decimal date datetime timedelta uuid path enum int_enum literal_mixed isbn"
            " tuple_two dict_str_int set_int point aliased computed recursive root_list track album movie"
            " std_dated_movie pixel coin camel_struct tagged stamped_struct ticket order"
        ),
    ),
    *map(
        dict_of,
        bases(
            "bytes decimal datetime enum list_str tuple_two book excluded recursive track std_movie pixel coin wallet"
            " ticket"
        ),
    ),
    *map(
        optional_of,
        bases(
            "int str bytes date enum decimal path list_str dict_str_int set_int tuple_two point book camel recursive"
            " root_list track movie std_movie pixel coin tagged ticket literal_str pets"
        ),
    ),
    *(list_of(shape, "sequence") for shape in bases("point track coin ticket date")),
    *(dict_of(shape, "mapping") for shape in bases("point track coin ticket uuid std_movie")),
    *map(set_of, bases("date uuid enum decimal literal_int")),
    *(set_of(shape, "frozenset") for shape in bases("uuid str_enum slotted frozen frozen_struct")),
    *map(deque_of, bases("point date coin")),
    *map(pair_of, bases("book date bytes track coin ticket std_movie")),
    *map(page_of, bases("date decimal bytes enum track movie pixel list_str pets")),
    *map(list_of, map(optional_of, bases("point coin ticket date"))),
    *map(dict_of, map(list_of, bases("point coin ticket std_movie bytes"))),
    *map(optional_of, map(list_of, bases("book coin"))),
    *map(list_of, map(dict_of, bases("coin ticket blob"))),
    *map(list_of, bases("hex_blob int_tags safe purse deal everything unset")),
]

SHAPES: Final[list[Shape]] = [*BASIC, *RETURNED_ONLY, *COMPOSED]

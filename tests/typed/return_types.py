"""Types that the tools of the return table give back, one for each way to declare a value.

Names are short, because they stand in schemas and error reports that the table spells out.
"""

import dataclasses
import datetime
import enum
from typing import Annotated, Generic, Literal, NamedTuple, NewType, NotRequired, Protocol, TypedDict, TypeVar

import attrs
import msgspec
import pydantic.dataclasses
import typing_extensions
from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field

T = TypeVar("T")

# --- pydantic models ------------------------------------------------------------------------


class M(BaseModel):
    a: int
    b: str = "x"


class Sub(M):
    c: float = 1.5


class Al(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    temp_c: float = Field(alias="tempC")


class AlSer(BaseModel):
    temp_c: float = Field(serialization_alias="tempC")


class Cmp(BaseModel):
    w: int
    h: int

    @computed_field  # type: ignore[prop-decorator]  # mypy knows decorated properties only by themselves
    @property
    def area(self) -> int:
        return self.w * self.h


class Rec(BaseModel):
    v: int
    kids: "list[Rec]" = []


class Extra(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Forb(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int


class Doc(BaseModel):
    """Doc of the model."""

    a: int = Field(description="an a", examples=[1])


class Cfg(BaseModel):
    model_config = ConfigDict(title="Nice", json_schema_extra={"examples": [{"a": 1}]})
    a: int


class Excl(BaseModel):
    a: int = 1
    secret: str = Field(default="s", exclude=True)


class NoneM(BaseModel):
    a: int | None = None
    b: str | None = None


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    n: int


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    m: str


class Page(BaseModel, Generic[T]):
    items: list[T]
    next: str | None = None


class Root(RootModel[list[int]]):
    pass


# --- typed dicts: both modules make them, and before 3.12 they are not the same -----------------


class TD(TypedDict):
    a: int
    b: str


class TDf(TypedDict, total=False):
    a: int
    b: str


class TDn(typing_extensions.TypedDict):
    """A described TD."""

    a: Annotated[int, Field(description="first")]
    b: typing_extensions.NotRequired[str]


class TTD(TypedDict):
    """A described TTD."""

    a: Annotated[int, Field(description="first")]
    b: NotRequired[str]


# --- dataclasses, and what is like them ------------------------------------------------------------


@dataclasses.dataclass
class DC:
    a: int
    b: str = "x"
    c: list[int] = dataclasses.field(default_factory=list[int])


@dataclasses.dataclass
class DCo:
    a: int
    b: int | None = None


@dataclasses.dataclass
class DCn:
    d: DC
    when: datetime.datetime


@pydantic.dataclasses.dataclass
class PDC:
    a: int
    b: str = "x"


class St(msgspec.Struct):
    a: int
    b: str = "x"


@attrs.define
class At:
    a: int
    b: str = "x"


class NT(NamedTuple):
    a: int
    b: str


# --- plain classes ---------------------------------------------------------------------------------


class Ann:
    a: int
    b: str = "q"

    def __init__(self, a: int) -> None:
        self.a = a


class AnnMethod:
    x: int

    def __init__(self) -> None:
        self.x = 1

    def double(self) -> int:
        return 2 * self.x


class Base:
    x: int

    def __init__(self) -> None:
        self.x = 1

    def __repr__(self) -> str:
        # The default holds an address, of which pydantic's reports keep as much as fits.
        return f"{type(self).__name__}()"


class Child(Base):
    y: str

    def __init__(self) -> None:
        super().__init__()
        self.y = "b"


class Proto(Protocol):
    a: int


class NoAnn:
    def __init__(self) -> None:
        self.x = 1


class Slots:
    __slots__ = ("x",)

    def __init__(self) -> None:
        self.x = 1


# --- the rest ---------------------------------------------------------------------------------------


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class IE(enum.IntEnum):
    A = 1
    B = 2


UserId = NewType("UserId", int)

Alias = typing_extensions.TypeAliasType("Alias", list[int])

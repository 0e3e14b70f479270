"""Parameters of tools: the schema of each kind, and what a call makes of its arguments.

A row is a function with the input schema that it must have, and calls with what they
must come to: the `repr` of what the function got, or the report that the model reads.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import json
import logging
import pathlib
import re
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

import jsonschema
import pytest
from pydantic import AfterValidator, BaseModel, Field, Json, SecretStr, StrictInt

from mcp_core import Client
from mcp_core.testing import flush_logs
from mcp_core.types import CallToolResult, TextContent
from mcp_typed import Context, InvalidSignature, MCPServer, ToolError
from tests.typed.input_types import (
    AttrsItem,
    Cat,
    ClosedItem,
    Colour,
    Config,
    DataItem,
    Dog,
    Item,
    Numbers,
    OpenDict,
    Plain,
    PydanticItem,
    StructItem,
    UserId,
)

F = TypeVar("F", bound=Callable[..., Any])


@pytest.fixture
def anyio_backend() -> str:
    """One backend: what is held here happens before any task is started."""
    return "asyncio"


class Refused(NamedTuple):
    """The call never reached the function: what pydantic says of it, below its headline."""

    report: str
    errors: int = 1


class Crashed(NamedTuple):
    """Something else went wrong, and the model gets an id instead of an explanation."""


class Row(NamedTuple):
    observed: str
    function: Callable[..., Any]
    properties: dict[str, Any]
    required: list[str] | None
    defs: dict[str, Any] | None
    calls: list[tuple[Any, str | Refused | Crashed]]

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "object", "properties": self.properties, "title": f"{self.name}Arguments"}
        if self.required is not None:
            schema["required"] = self.required
        if self.defs is not None:
            schema["$defs"] = self.defs
        return schema


ROWS: Final[list[Row]] = []

server = MCPServer("inputs")


@functools.cache
def registered(function: Callable[..., Any]) -> str:
    """The name of the tool. Registered when first asked for: one that is refused fails its own tests only."""
    server.add_tool(function)
    return function.__name__


def row(
    observed: str,
    properties: dict[str, Any],
    calls: list[tuple[Any, str | Refused | Crashed]],
    *,
    required: list[str] | None = None,
    defs: dict[str, Any] | None = None,
) -> Callable[[F], F]:
    def keep(function: F) -> F:
        ROWS.append(Row(observed, function, properties, required, defs, calls))
        return function

    return keep


def annotated(**annotations: Any) -> Callable[[F], F]:
    """Replace annotations by ones that type checkers refuse; `None` removes one."""

    def change(function: F) -> F:
        for name, annotation in annotations.items():
            del function.__annotations__[name]
            if annotation is not None:
                function.__annotations__[name] = annotation
        return function

    return change


def identity(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function itself; tells type checkers what a lambda takes."""
    return function


ITEM: Final = {
    "Item": {
        "description": "An item.",
        "properties": {
            "a": {"title": "A", "type": "integer"},
            "b": {"default": "x", "title": "B", "type": "string"},
        },
        "required": ["a"],
        "title": "Item",
        "type": "object",
    }
}


def like_a_dataclass(name: str, b: str = "x") -> dict[str, Any]:
    """`$defs` with a class of that name, which has the fields `a: int` and `b: str`."""
    return {
        name: {
            "properties": {
                "a": {"title": "A", "type": "integer"},
                "b": {"default": b, "title": "B", "type": "string"},
            },
            "required": ["a"],
            "title": name,
            "type": "object",
        }
    }


# --- presence, absence, null -----------------------------------------------------------


@row("S-123", {}, [({}, "x"), (None, "x")])
def no_arguments() -> str:
    return "x"


@row(
    "S-124",
    {"a": {"title": "A"}, "b": {"default": 3, "title": "B"}},
    [
        ({"a": 1}, "1 3 int"),
        ({"a": "[1,2]"}, "'[1,2]' 3 str"),
        ({"a": "x", "b": None}, "'x' None str"),
        ({"a": [1, {"k": None}]}, "[1, {'k': None}] 3 list"),
    ],
    required=["a"],
)
@annotated(a=None, b=None)
def unannotated(a: Any, b: Any = 3) -> str:
    return f"{a!r} {b!r} {type(a).__name__}"


@row(
    "S-125",
    {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "A"}},
    [
        ({}, "None"),
        ({"a": None}, "None"),
        ({"a": 5}, "5"),
    ],
)
def default_of_none(a: int = None) -> str:  # type: ignore[assignment]  # noqa: RUF013
    return repr(a)


@row(
    "S-126",
    {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}], "title": "A"}},
    [
        ({}, Refused("a\n  Field required [type=missing, input_value={}, input_type=dict]")),
        ({"a": None}, "None"),
    ],
    required=["a"],
)
def optional(a: int | None) -> str:
    return repr(a)


@row(
    "S-127",
    {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "A"}},
    [({}, "None"), ({"a": "null"}, "None"), ({"a": "5"}, "5")],
)
def optional_with_default(a: int | None = None) -> str:
    return repr(a)


@row(
    "S-128",
    {"a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "title": "A"}},
    [
        ({"a": "null"}, "'null'"),
        ({"a": '{"k":1}'}, "'{\"k\":1}'"),
        ({"a": "[1]"}, "'[1]'"),
        ({"a": "5"}, "'5'"),
        ({"a": "true"}, "'true'"),
        ({"a": None}, "None"),
    ],
)
def optional_string(a: str | None = None) -> str:
    return repr(a)


# --- scalars ---------------------------------------------------------------------------


@row(
    "S-129",
    {"a": {"title": "A", "type": "string"}},
    [({"a": "null"}, "'null'"), ({"a": '{"k":1}'}, "'{\"k\":1}'")],
    required=["a"],
)
def string(a: str) -> str:
    return repr(a)


@row(
    "S-130",
    {"a": {"title": "A"}},
    [({"a": '{"k":1}'}, "'{\"k\":1}'"), ({"a": "5"}, "'5'"), ({"a": "null"}, "'null'"), ({"a": None}, "None")],
    required=["a"],
)
def anything(a: Any) -> str:
    return repr(a)


@row(
    "S-131",
    {"a": {"title": "A", "type": "boolean"}},
    [
        ({"a": "true"}, "True"),
        ({"a": "yes"}, "True"),
        ({"a": 1}, "True"),
        (
            {"a": 2},
            Refused(
                "a\n  Input should be a valid boolean, unable to interpret input"
                " [type=bool_parsing, input_value=2, input_type=int]"
            ),
        ),
    ],
    required=["a"],
)
def boolean(a: bool) -> str:
    return repr(a)


@row(
    "S-132",
    {"a": {"title": "A", "type": "number"}},
    [({"a": 1}, "1.0"), ({"a": "1.5"}, "1.5"), ({"a": "NaN"}, "nan")],
    required=["a"],
)
def number(a: float) -> str:
    return repr(a)


@row(
    "S-133",
    {"a": {"contentEncoding": "base64", "format": "binary", "title": "A", "type": "string"}},
    [
        ({"a": "aGk="}, "b'hi'"),
        ({"a": ""}, "b''"),
        ({"a": "/+8="}, r"b'\xff\xef'"),
        ({"a": "_-8="}, r"b'\xff\xef'"),
        ({"a": 5}, Refused("a\n  Input should be a valid bytes [type=bytes_type, input_value=5, input_type=int]")),
    ],
    required=["a"],
)
def binary(a: bytes) -> str:
    return repr(a)


@row(
    "S-134",
    {"a": {"$ref": "#/$defs/Colour"}},
    [
        ({"a": "red"}, "<Colour.RED: 'red'>"),
        (
            {"a": "RED"},
            Refused("a\n  Input should be 'red' or 'blue' [type=enum, input_value='RED', input_type=str]"),
        ),
    ],
    required=["a"],
    defs={"Colour": {"enum": ["red", "blue"], "title": "Colour", "type": "string"}},
)
def enumeration(a: Colour) -> str:
    return repr(a)


@row(
    "S-135",
    {"a": {"format": "date-time", "title": "A", "type": "string"}},
    [
        ({"a": "2024-01-02T03:04:05Z"}, "datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=TzInfo(0))"),
        ({"a": 0}, "datetime.datetime(1970, 1, 1, 0, 0, tzinfo=TzInfo(0))"),
        (
            {"a": "x"},
            Refused(
                "a\n  Input should be a valid datetime or date, input is too short"
                " [type=datetime_from_date_parsing, input_value='x', input_type=str]"
            ),
        ),
    ],
    required=["a"],
)
def moment(a: datetime.datetime) -> str:
    return repr(a)


# --- containers ------------------------------------------------------------------------


@row(
    "S-136",
    {"a": {"items": {"type": "integer"}, "title": "A", "type": "array"}},
    [
        ({"a": [1, "2"]}, "[1, 2]"),
        ({"a": "[1,2]"}, "[1, 2]"),
        (
            {"a": "1,2"},
            Refused("a\n  Input should be a valid array [type=list_type, input_value='1,2', input_type=str]"),
        ),
        ({"a": 1}, Refused("a\n  Input should be a valid array [type=list_type, input_value=1, input_type=int]")),
    ],
    required=["a"],
)
def integers(a: list[int]) -> str:
    return repr(a)


@row(
    "S-137",
    {"a": {"items": {"type": "integer"}, "title": "A", "type": "array", "uniqueItems": True}},
    [({"a": [1, 1, 2]}, "{1, 2}")],
    required=["a"],
)
def unique(a: set[int]) -> str:
    return repr(a)


@row(
    "S-138",
    {
        "a": {
            "maxItems": 2,
            "minItems": 2,
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "title": "A",
            "type": "array",
        }
    },
    [
        ({"a": [1, "x"]}, "(1, 'x')"),
        ({"a": [1]}, Refused("a.1\n  Field required [type=missing, input_type=list]")),
    ],
    required=["a"],
)
def pair(a: tuple[int, str]) -> str:
    return repr(a)


@row(
    "S-139",
    {"a": {"additionalProperties": {"type": "integer"}, "title": "A", "type": "object"}},
    [({"a": {"k": 1}}, "{'k': 1}"), ({"a": '{"k":1}'}, "{'k': 1}")],
    required=["a"],
)
def mapping(a: dict[str, int]) -> str:
    return repr(a)


@row(
    "S-140",
    {"a": {"additionalProperties": True, "title": "A", "type": "object"}},
    [({"a": {"k": 1}}, "{'k': 1}")],
    required=["a"],
)
@annotated(a=dict)
def bare_dict(a: Any) -> str:
    return repr(a)


@row("S-141", {"a": {"items": {}, "title": "A", "type": "array"}}, [({"a": [1]}, "[1]")], required=["a"])
@annotated(a=list)
def bare_list(a: Any) -> str:
    return repr(a)


# --- classes ---------------------------------------------------------------------------


@row(
    "S-142",
    {"a": {"$ref": "#/$defs/Item"}},
    [({"a": {"a": 1, "zz": 2}}, "Item(a=1, b='x')"), ({"a": '{"a":1}'}, "Item(a=1, b='x')")],
    required=["a"],
    defs=ITEM,
)
def model(a: Item) -> str:
    return repr(a)


@row(
    "S-143",
    {"a": {"items": {"$ref": "#/$defs/Item"}, "title": "A", "type": "array"}},
    [({"a": [{"a": 1}]}, "[Item(a=1, b='x')]"), ({"a": '[{"a":1}]'}, "[Item(a=1, b='x')]")],
    required=["a"],
    defs=ITEM,
)
def models(a: list[Item]) -> str:
    return repr(a)


@row(
    "S-144",
    {"a": {"$ref": "#/$defs/ClosedItem"}},
    [
        (
            {"a": {"a": 1, "z": 2}},
            Refused("a.z\n  Extra inputs are not permitted [type=extra_forbidden, input_value=2, input_type=int]"),
        )
    ],
    required=["a"],
    defs={
        "ClosedItem": {
            "additionalProperties": False,
            "properties": {"a": {"title": "A", "type": "integer"}},
            "required": ["a"],
            "title": "ClosedItem",
            "type": "object",
        }
    },
)
def closed_model(a: ClosedItem) -> str:
    return repr(a)


@row(
    "S-145",
    {"a": {"anyOf": [{"$ref": "#/$defs/Item"}, {"type": "null"}], "default": None}},
    [({}, "None"), ({"a": '{"a":1}'}, "Item(a=1, b='x')")],
    defs=ITEM,
)
def optional_model(a: Item | None = None) -> str:
    return repr(a)


@row(
    "S-146",
    {"a": {"$ref": "#/$defs/DataItem"}},
    [({"a": {"a": 1}}, "DataItem(a=1, b='q')")],
    required=["a"],
    defs=like_a_dataclass("DataItem", b="q"),
)
def data_class(a: DataItem) -> str:
    return repr(a)


@row(
    "S-147",
    {"a": {"$ref": "#/$defs/OpenDict"}},
    [({"a": {"a": 1, "z": 3}}, "{'a': 1}")],
    required=["a"],
    defs={"OpenDict": {"properties": {"a": {"title": "A", "type": "integer"}}, "title": "OpenDict", "type": "object"}},
)
def typed_dict(a: OpenDict) -> str:
    return repr(a)


# --- unions, strictness, Field -----------------------------------------------------------


@row(
    "S-148",
    {"a": {"anyOf": [{"type": "integer"}, {"type": "string"}], "title": "A"}},
    [
        ({"a": "5"}, "'5'"),
        ({"a": 5}, "5"),
        (
            {"a": 5.5},
            Refused(
                "a.int\n  Input should be a valid integer, got a number with a fractional part"
                " [type=int_from_float, input_value=5.5, input_type=float]\n"
                "a.str\n  Input should be a valid string [type=string_type, input_value=5.5, input_type=float]",
                errors=2,
            ),
        ),
    ],
    required=["a"],
)
def union(a: int | str) -> str:
    return repr(a)


@row(
    "S-149",
    {"a": {"title": "A", "type": "integer"}},
    [
        (
            {"a": "5"},
            Refused("a\n  Input should be a valid integer [type=int_type, input_value='5', input_type=str]"),
        ),
        ({"a": 5}, "5"),
    ],
    required=["a"],
)
def strict(a: StrictInt) -> str:
    return repr(a)


@row(
    "S-150",
    {"a": {"default": 4, "description": "d", "minimum": 1, "title": "A", "type": "integer"}},
    [
        ({}, "4"),
        (
            {"a": 0},
            Refused(
                "a\n  Input should be greater than or equal to 1"
                " [type=greater_than_equal, input_value=0, input_type=int]"
            ),
        ),
    ],
)
def field_twice(a: Annotated[int, Field(description="d")] = Field(default=4, ge=1)) -> str:
    return repr(a)


@row(
    "S-151",
    {"a": {"description": "d", "exclusiveMinimum": 0, "title": "A", "type": "integer"}},
    [
        ({"a": 1}, "1"),
        ({}, Refused("a\n  Field required [type=missing, input_value={}, input_type=dict]")),
    ],
    required=["a"],
)
def field_as_default(a: int = Field(description="d", gt=0)) -> str:
    return repr(a)


@row("S-152", {"a": {"items": {"type": "integer"}, "title": "A", "type": "array"}}, [({}, "[9]")])
def field_with_factory(a: Annotated[list[int], Field(default_factory=lambda: [9])]) -> str:
    return repr(a)


@row(
    "S-153",
    {"aA": {"title": "Aa", "type": "integer"}},
    [
        ({"aA": 1}, "1"),
        ({"a": 1}, Refused("aA\n  Field required [type=missing, input_type=dict]")),
    ],
    required=["aA"],
)
def field_with_alias(a: Annotated[int, Field(alias="aA")]) -> str:
    return repr(a)


@row(
    "S-154",
    {"a": {"description": "plain description", "title": "A", "type": "string"}},
    [({"a": "x"}, "'x'")],
    required=["a"],
)
def described_by_a_string(a: Annotated[str, "plain description"]) -> str:
    return repr(a)


@row(
    "S-155",
    {
        "a": {"description": "the a", "title": "A", "type": "integer"},
        "b": {"description": "the b", "title": "B", "type": "string"},
    },
    [({"a": 1, "b": "x"}, "1 'x'")],
    required=["a", "b"],
)
def described_by_the_docstring(a: int, b: str) -> str:
    """Summary line.

    Args:
        a: the a
        b: the b

    Returns:
        stuff
    """
    return f"{a!r} {b!r}"


# --- names and kinds of parameters -------------------------------------------------------


@row(
    "S-156",
    {
        "json": {"title": "Json", "type": "string"},
        "copy": {"default": 1, "title": "Copy", "type": "integer"},
        "schema": {"default": "s", "title": "Schema", "type": "string"},
        "dict": {"default": "d", "title": "Dict", "type": "string"},
        "model_dump": {"default": 2, "title": "Model Dump", "type": "integer"},
    },
    [
        ({"json": "J"}, "J 1 s d 2"),
        ({"json": "J", "copy": 4, "schema": "S", "dict": "D", "model_dump": 3}, "J 4 S D 3"),
    ],
    required=["json"],
)
def names_of_pydantic(json: str, copy: int = 1, schema: str = "s", dict: str = "d", model_dump: int = 2) -> str:
    return f"{json} {copy} {schema} {dict} {model_dump}"


@row(
    "S-157",
    {"model_name": {"title": "Model Name", "type": "string"}},
    [({"model_name": "x"}, "x")],
    required=["model_name"],
)
def name_with_prefix(model_name: str) -> str:
    return model_name


@row("S-160", {"a": {"title": "A", "type": "integer"}}, [({"a": 1}, "1")], required=["a"])
def positional_only(a: int, /) -> str:
    return repr(a)


@row(
    "S-161",
    {"a": {"title": "A", "type": "integer"}, "b": {"default": 2, "title": "B", "type": "integer"}},
    [({"a": 1}, "12")],
    required=["a"],
)
def keyword_only(*, a: int, b: int = 2) -> str:
    return f"{a}{b}"


@row(
    "S-162",
    {"a": {"enum": [1, "x", None], "title": "A"}},
    [
        ({"a": 1}, "1"),
        ({"a": "x"}, "'x'"),
        ({"a": None}, "None"),
        (
            {"a": "z"},
            Refused("a\n  Input should be 1, 'x' or None [type=literal_error, input_value='z', input_type=str]"),
        ),
    ],
    required=["a"],
)
def literal(a: Literal[1, "x", None]) -> str:
    return repr(a)


@row(
    "S-163",
    {
        "a": {
            "anyOf": [{"items": {"type": "string"}, "type": "array"}, {"type": "null"}],
            "default": None,
            "title": "A",
        },
        "b": {
            "anyOf": [{"additionalProperties": True, "type": "object"}, {"type": "null"}],
            "default": None,
            "title": "B",
        },
    },
    [({"a": '["x"]', "b": '{"k":[1]}'}, "['x'] {'k': [1]}")],
)
def optional_containers(a: list[str] | None = None, b: dict[str, Any] | None = None) -> str:
    return f"{a!r} {b!r}"


@row(
    "S-164",
    {"region": {"title": "Region", "type": "string", "x-mcp-header": "Region"}},
    [({"region": "eu"}, "eu")],
    required=["region"],
)
def mirrored_in_a_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    return region


def no_bad_luck(value: int) -> int:
    if value == 13:
        raise RuntimeError("not what a validator should raise")
    if value == 14:
        raise ValueError("bad luck")
    return value


@row(
    "S-165",
    {"a": {"title": "A", "type": "integer"}},
    [
        ({"a": 12}, "12"),
        ({"a": 13}, Crashed()),
        ({"a": 14}, Refused("a\n  Value error, bad luck [type=value_error, input_value=14, input_type=int]")),
    ],
    required=["a"],
)
def validated(a: Annotated[int, AfterValidator(no_bad_luck)]) -> str:
    return repr(a)


# --- further types -----------------------------------------------------------------------


@row(
    "S-176",
    {"a": {"$ref": "#/$defs/StructItem"}},
    [
        ({"a": {"a": 1}}, "StructItem(a=1, b='x')"),
        ({"a": '{"a":1,"b":"y"}'}, "StructItem(a=1, b='y')"),
        ({"a": {"a": "1", "zz": 2}}, "StructItem(a=1, b='x')"),
        ({"a": {}}, Refused("a.a\n  Field required [type=missing, input_value={}, input_type=dict]")),
        (
            {"a": {"a": "y"}},
            Refused(
                "a.a\n  Input should be a valid integer, unable to parse string as an integer"
                " [type=int_parsing, input_value='y', input_type=str]"
            ),
        ),
    ],
    required=["a"],
    defs=like_a_dataclass("StructItem"),
)
def struct(a: StructItem) -> str:
    return repr(a)


@row(
    "S-177",
    {"a": {"$ref": "#/$defs/AttrsItem"}},
    [
        ({"a": {"a": 1}}, "AttrsItem(a=1, b='x')"),
        ({"a": '{"a":1,"b":"y"}'}, "AttrsItem(a=1, b='y')"),
        ({"a": {"a": "1", "zz": 2}}, "AttrsItem(a=1, b='x')"),
        ({"a": {}}, Refused("a.a\n  Field required [type=missing, input_value={}, input_type=dict]")),
    ],
    required=["a"],
    defs=like_a_dataclass("AttrsItem"),
)
def attrs_class(a: AttrsItem) -> str:
    return repr(a)


@row(
    "S-178",
    {"a": {"$ref": "#/$defs/PydanticItem"}},
    [({"a": {"a": 1}}, "PydanticItem(a=1, b='x')")],
    required=["a"],
    defs=like_a_dataclass("PydanticItem"),
)
def pydantic_dataclass(a: PydanticItem) -> str:
    return repr(a)


@row("S-179", {"a": {"title": "A", "type": "integer"}}, [({"a": 1}, "1")], required=["a"])
def new_type(a: UserId) -> str:
    return repr(a)


@row(
    "S-180",
    {"a": {"$ref": "#/$defs/Numbers"}},
    [({"a": [1]}, "[1]")],
    required=["a"],
    defs={"Numbers": {"items": {"type": "integer"}, "type": "array"}},
)
def type_alias(a: Numbers) -> str:
    return repr(a)


@row(
    "S-181",
    {
        "a": {
            "discriminator": {"mapping": {"cat": "#/$defs/Cat", "dog": "#/$defs/Dog"}, "propertyName": "kind"},
            "oneOf": [{"$ref": "#/$defs/Dog"}, {"$ref": "#/$defs/Cat"}],
            "title": "A",
        }
    },
    [
        ({"a": {"kind": "cat", "m": "z"}}, "Cat(kind='cat', m='z')"),
        ({"a": '{"kind":"dog","n":1}'}, "Dog(kind='dog', n=1)"),
        (
            {"a": {"kind": "cow"}},
            Refused(
                "a\n  Input tag 'cow' found using 'kind' does not match any of the expected tags: 'dog', 'cat'"
                " [type=union_tag_invalid, input_value={'kind': 'cow'}, input_type=dict]"
            ),
        ),
        (
            {"a": {"m": "z"}},
            Refused(
                "a\n  Unable to extract tag using discriminator 'kind'"
                " [type=union_tag_not_found, input_value={'m': 'z'}, input_type=dict]"
            ),
        ),
    ],
    required=["a"],
    defs={
        "Cat": {
            "properties": {
                "kind": {"const": "cat", "default": "cat", "title": "Kind", "type": "string"},
                "m": {"title": "M", "type": "string"},
            },
            "required": ["m"],
            "title": "Cat",
            "type": "object",
        },
        "Dog": {
            "properties": {
                "kind": {"const": "dog", "default": "dog", "title": "Kind", "type": "string"},
                "n": {"title": "N", "type": "integer"},
            },
            "required": ["n"],
            "title": "Dog",
            "type": "object",
        },
    },
)
def told_apart_by_kind(a: Annotated[Dog | Cat, Field(discriminator="kind")]) -> str:
    return repr(a)


@row(
    "S-182",
    {"a": {"format": "password", "title": "A", "type": "string", "writeOnly": True}},
    [
        ({"a": "pw"}, "SecretStr('**********')"),
        ({"a": 5}, Refused("a\n  Input should be a valid string [type=string_type, input_value=5, input_type=int]")),
    ],
    required=["a"],
)
def secret(a: SecretStr) -> str:
    return repr(a)


@row(
    "S-183",
    {
        "a": {
            "contentMediaType": "application/json",
            "contentSchema": {"items": {"type": "integer"}, "type": "array"},
            "title": "A",
            "type": "string",
        }
    },
    [
        ({"a": "[1,2]"}, "[1, 2]"),
        (
            {"a": [1]},
            Refused(
                "a\n  JSON input should be string, bytes or bytearray"
                " [type=json_type, input_value=[1], input_type=list]"
            ),
        ),
    ],
    required=["a"],
)
def json_text(a: Json[list[int]]) -> str:
    return repr(a)


@row(
    "S-184",
    {"a": {"format": "uuid", "title": "A", "type": "string"}},
    [
        ({"a": "00000000-0000-0000-0000-000000000001"}, "UUID('00000000-0000-0000-0000-000000000001')"),
        (
            {"a": "zz"},
            Refused(
                "a\n  Input should be a valid UUID, invalid character: found `z` at 0"
                " [type=uuid_parsing, input_value='zz', input_type=str]"
            ),
        ),
    ],
    required=["a"],
)
def unique_id(a: uuid.UUID) -> str:
    return repr(a)


@row(
    "S-185",
    {"a": {"format": "path", "title": "A", "type": "string"}},
    [({"a": "/x"}, repr(pathlib.Path("/x")))],
    required=["a"],
)
def path(a: pathlib.Path) -> str:
    return repr(a)


@row(
    "S-186",
    {"a": {"anyOf": [{"type": "number"}, {"type": "string"}], "title": "A"}},
    [({"a": "1.10"}, "Decimal('1.10')"), ({"a": 1.1}, "Decimal('1.1')")],
    required=["a"],
)
def exact_decimal(a: decimal.Decimal) -> str:
    return repr(a)


@row(
    "S-187",
    {"a": {"format": "duration", "title": "A", "type": "string"}},
    [({"a": "PT90S"}, "datetime.timedelta(seconds=90)"), ({"a": 90}, "datetime.timedelta(seconds=90)")],
    required=["a"],
)
def duration(a: datetime.timedelta) -> str:
    return repr(a)


@row(
    "S-188",
    {"a": {"title": "A", "type": "null"}},
    [
        ({"a": None}, "None"),
        ({"a": 1}, Refused("a\n  Input should be null [type=none_required, input_value=1, input_type=int]")),
    ],
    required=["a"],
)
def only_null(a: None) -> str:
    return repr(a)


@row(
    "S-189",
    {"a": {"title": "A"}},
    [({"a": {"k": 1}}, "{'k': 1}"), ({"a": "[1]"}, "'[1]'")],
    required=["a"],
)
def any_object(a: object) -> str:
    return repr(a)


# --- defaults ------------------------------------------------------------------------------


@row(
    "S-190",
    {"a": {"default": [], "items": {"type": "integer"}, "title": "A", "type": "array"}},
    [({}, "[1]"), ({}, "[1]")],
)
def changed_default(a: list[int] = []) -> str:  # noqa: B006 - whether calls share it is the question
    a.append(1)
    return repr(a)


@row(
    "S-191",
    {"a": {"$ref": "#/$defs/Config", "default": {"a": 7}}},
    [({}, "Config(a=7)")],
    defs={
        "Config": {
            "examples": [{"a": 1}],
            "properties": {"a": {"title": "A", "type": "integer"}},
            "required": ["a"],
            "title": "Nice",
            "type": "object",
        }
    },
)
def model_as_default(a: Config = Config(a=7)) -> str:  # noqa: B008
    return repr(a)


@row("S-192", {"a": {"title": "A", "type": "integer"}}, [({}, "'x'"), ({"a": 3}, "3")])
def misfitting_default(a: int = "x") -> str:  # type: ignore[assignment]
    return repr(a)


@row("S-193", {"a": {"title": "A"}}, [({}, "x")])
def default_without_json(a: Any = object()) -> str:  # noqa: B008
    return "x"


@row(
    "S-194",
    {"a": {"title": "A", "type": "integer"}},
    [
        ({"a": 10**30}, "1000000000000000000000000000000"),
        ({"a": 1000.0}, "1000"),
        ({"a": "1_000"}, "1000"),
        ({"a": " 5 "}, "5"),
        (
            {"a": ""},
            Refused(
                "a\n  Input should be a valid integer, unable to parse string as an integer"
                " [type=int_parsing, input_value='', input_type=str]"
            ),
        ),
        (
            {"a": "0x10"},
            Refused(
                "a\n  Input should be a valid integer, unable to parse string as an integer"
                " [type=int_parsing, input_value='0x10', input_type=str]"
            ),
        ),
    ],
    required=["a"],
)
def integer(a: int) -> str:
    return repr(a)


@row(
    "S-195",
    {
        "a": {"title": "A", "type": "integer"},
        "b": {"default": 2, "title": "B", "type": "integer"},
        "c": {"default": 3, "title": "C", "type": "integer"},
    },
    [({"a": 1}, "123"), ({"a": 1, "b": 5, "c": 6}, "156")],
    required=["a"],
)
def positional_and_keyword(a: int, b: int = 2, /, *, c: int = 3) -> str:
    return f"{a}{b}{c}"


@row(
    "S-198",
    {
        "a": {
            "examples": ["ab"],
            "maxLength": 3,
            "minLength": 2,
            "pattern": "^[a-z]+$",
            "title": "A",
            "type": "string",
        }
    },
    [
        (
            {"a": "abcd"},
            Refused(
                "a\n  String should have at most 3 characters"
                " [type=string_too_long, input_value='abcd', input_type=str]"
            ),
        ),
        (
            {"a": "A1"},
            Refused(
                "a\n  String should match pattern '^[a-z]+$'"
                " [type=string_pattern_mismatch, input_value='A1', input_type=str]"
            ),
        ),
        ({"a": "ab"}, "ab"),
    ],
    required=["a"],
)
def constrained(
    a: Annotated[str, Field(min_length=2, max_length=3, pattern="^[a-z]+$", examples=["ab"])],
) -> str:
    return a


@row(
    "S-199",
    {"a": {"deprecated": True, "title": "Custom T", "type": "integer", "x-foo": 1}},
    [({"a": 1}, "1")],
    required=["a"],
)
def told_more_of(
    a: Annotated[int, Field(deprecated=True, title="Custom T", json_schema_extra={"x-foo": 1})],
) -> str:
    return repr(a)


@row(
    "S-200",
    {
        "text": {
            "anyOf": [{"type": "string"}, {"items": {"type": "string"}, "type": "array"}],
            "title": "Text",
        },
        "scores": {
            "anyOf": [{"items": {"type": "integer"}, "type": "array"}, {"type": "boolean"}],
            "title": "Scores",
        },
    },
    [
        ({"text": '["a"]', "scores": "[1]"}, "'[\"a\"]' [1]"),
        ({"text": ["a"], "scores": "true"}, "['a'] True"),
        ({"text": "a", "scores": [2]}, "'a' [2]"),
    ],
    required=["text", "scores"],
)
def parsed_only_where_no_string_fits(text: str | list[str], scores: list[int] | bool) -> str:
    return f"{text!r} {scores!r}"


# --- the rows, held ------------------------------------------------------------------------


async def input_schema(mcp: MCPServer, name: str) -> dict[str, Any]:
    async with Client(mcp) as client:
        return {tool.name: tool for tool in (await client.list_tools()).tools}[name].input_schema


async def call(mcp: MCPServer, name: str, arguments: Any = None) -> CallToolResult:
    async with Client(mcp) as client:
        return await client.call_tool(name, arguments)


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def each_row() -> list[Any]:
    return [pytest.param(row, marks=pytest.mark.observed(row.observed), id=row.name) for row in ROWS]


def each_call() -> list[Any]:
    return [
        pytest.param(
            row.function,
            arguments,
            outcome,
            marks=pytest.mark.observed(row.observed),
            id=f"{row.name}-{json.dumps(arguments, separators=(',', ':'))}",
        )
        for row in ROWS
        for arguments, outcome in row.calls
    ]


@pytest.mark.parametrize("row", each_row())
async def test_the_schema_of(row: Row) -> None:
    assert await input_schema(server, registered(row.function)) == row.schema


@pytest.mark.parametrize(("function", "arguments", "outcome"), each_call())
async def test_a_call_of(function: Callable[..., Any], arguments: Any, outcome: str | Refused | Crashed) -> None:
    name = registered(function)
    result = await call(server, name, arguments)
    failed = f"Error executing tool {name}"
    match outcome:
        case Refused(report, errors):
            headline = f"{errors} validation error{'s' if errors > 1 else ''} for {name}Arguments"
            assert text_of(result) == f"{failed}: {headline}\n{report}"
        case Crashed():
            assert re.fullmatch(failed + r" \(error id [0-9a-f]{8}\)", text_of(result))
        case _:
            assert text_of(result) == outcome
    assert result.is_error is not isinstance(outcome, str)
    assert result.structured_content == ({"result": outcome} if isinstance(outcome, str) else None)


@pytest.mark.observed("S-133")
@pytest.mark.parametrize("text", ["not base64!", "é", "a", "aGk=aGk="])
async def test_text_that_is_no_base64_is_refused(text: str) -> None:
    result = await call(server, registered(binary), {"a": text})
    assert result.is_error
    assert text_of(result).startswith("Error executing tool binary: 1 validation error for binaryArguments\na\n  ")
    assert "base64" in text_of(result)


@pytest.mark.requirement("R-JS-02")
async def test_all_of_them_on_one_server_in_the_order_of_registration() -> None:
    mcp = MCPServer("all")
    for one in ROWS:
        mcp.add_tool(one.function)
    async with Client(mcp) as client:
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == [one.name for one in ROWS]
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)


@pytest.mark.parametrize("row", each_row())
async def test_a_published_default_fits_its_own_schema(row: Row) -> None:
    schema = await input_schema(server, registered(row.function))
    for described in schema["properties"].values():
        if "default" in described:
            jsonschema.validate(described["default"], {**described, "$defs": schema.get("$defs", {})})


# --- names ---------------------------------------------------------------------------------


@pytest.mark.requirement("R-TOOL-05")
@pytest.mark.observed("S-166")
async def test_a_name_against_advice_works_and_is_told_to_the_author(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("names")
    with caplog.at_level(logging.WARNING, "mcp_typed"):
        mcp.add_tool(no_arguments, name="bad name!")
        mcp.add_tool(no_arguments, name="good_name-1.2")
        flush_logs()
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == 1
    assert "bad name!" in told[0]
    assert text_of(await call(mcp, "bad name!")) == "x"


@pytest.mark.observed("S-167")
async def test_a_name_may_be_in_any_script() -> None:
    mcp = MCPServer("names")
    mcp.add_tool(no_arguments, name="ünïcode")
    assert text_of(await call(mcp, "ünïcode")) == "x"
    assert (await input_schema(mcp, "ünïcode"))["title"] == "no_argumentsArguments"


@pytest.mark.observed("S-168")
async def test_a_lambda_with_a_name() -> None:
    mcp = MCPServer("names")
    mcp.add_tool(identity(lambda x: x), name="named_lambda")
    result = await call(mcp, "named_lambda", {"x": 1})
    assert (text_of(result), result.structured_content) == ("1", None)
    assert await input_schema(mcp, "named_lambda") == {
        "type": "object",
        "properties": {"x": {"title": "X"}},
        "required": ["x"],
        "title": "<lambda>Arguments",
    }


@pytest.mark.observed("S-175")
def test_a_lambda_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^You must provide a name for lambda functions$"):
        MCPServer("names").add_tool(lambda: 1)


# --- methods and other callables -----------------------------------------------------------


class Keeper:
    step = 1

    def method(self, a: int) -> int:
        """Adds one."""
        return a + self.step

    @classmethod
    def of_class(cls, a: int) -> int:
        return a + 2 * cls.step

    @staticmethod
    def static(a: int) -> int:
        return a + 3

    async def later(self, a: int) -> int:
        return a + 5 * self.step

    def __call__(self, a: int) -> int:
        return a + 4


def add(a: int, b: int) -> int:
    return a + b


ONE_INTEGER: Final = {"a": {"title": "A", "type": "integer"}}


@pytest.mark.parametrize(
    ("function", "options", "tool", "title", "value"),
    [
        pytest.param(Keeper().method, {}, "method", "method", 2, marks=pytest.mark.observed("S-169"), id="bound"),
        pytest.param(Keeper.of_class, {}, "of_class", "of_class", 3, marks=pytest.mark.observed("S-170"), id="class"),
        pytest.param(Keeper.static, {}, "static", "static", 4, marks=pytest.mark.observed("S-171"), id="static"),
        pytest.param(Keeper().later, {}, "later", "later", 6, marks=pytest.mark.observed("S-172"), id="async"),
        pytest.param(
            functools.partial(add, b=5), {}, "add", "add", 6, marks=pytest.mark.observed("S-175"), id="partial"
        ),
        pytest.param(
            functools.partial(add, b=5),
            {"name": "named"},
            "named",
            "add",
            6,
            marks=pytest.mark.observed("S-175"),
            id="partial_with_a_name",
        ),
    ],
)
async def test_methods_and_partial_functions(
    function: Callable[..., Any], options: dict[str, Any], tool: str, title: str, value: int
) -> None:
    mcp = MCPServer("callables")
    mcp.add_tool(function, **options)
    assert await input_schema(mcp, tool) == {
        "type": "object",
        "properties": ONE_INTEGER,
        "required": ["a"],
        "title": f"{title}Arguments",
    }
    result = await call(mcp, tool, {"a": 1})
    assert (text_of(result), result.structured_content) == (str(value), {"result": value})


@pytest.mark.observed("S-175")
async def test_an_object_that_can_be_called() -> None:
    mcp = MCPServer("callables")
    mcp.add_tool(Keeper(), name="callable_object")
    schema = await input_schema(mcp, "callable_object")
    assert (schema["properties"], schema["required"]) == (ONE_INTEGER, ["a"])
    result = await call(mcp, "callable_object", {"a": 1})
    assert (text_of(result), result.structured_content) == ("5", {"result": 5})


@pytest.mark.observed("S-175")
async def test_what_a_partial_function_has_already_is_not_taken_from_the_model() -> None:
    mcp = MCPServer("callables")
    mcp.add_tool(functools.partial(add, b=5), name="partial")
    assert text_of(await call(mcp, "partial", {"a": 1, "b": 7})) == "6"


# --- refused at registration ---------------------------------------------------------------


def takes_more(x: int, *args: int) -> int:
    return x + sum(args)


def takes_keywords(x: int, **kwargs: int) -> int:
    return x + sum(kwargs.values())


def takes_plain(thing: Plain) -> int:
    return thing.a


def takes_callable(act: Callable[[int], int]) -> int:
    return act(1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        pytest.param(takes_more, r"takes_more.*\*args", marks=pytest.mark.observed("S-158"), id="args"),
        pytest.param(takes_keywords, r"takes_keywords.*\*\*kwargs", marks=pytest.mark.observed("S-159"), id="kwargs"),
        pytest.param(Keeper.method, r"method.*self", marks=pytest.mark.observed("S-173"), id="unbound_method"),
        pytest.param(takes_plain, r"takes_plain.*thing.*Plain", marks=pytest.mark.observed("S-196"), id="plain_class"),
        pytest.param(takes_callable, r"takes_callable.*act", marks=pytest.mark.observed("S-197"), id="callable"),
    ],
)
def test_what_no_call_could_satisfy_is_refused(function: Callable[..., Any], message: str) -> None:
    mcp = MCPServer("refuses")
    with pytest.raises(InvalidSignature, match=f"(?s){message}"):
        mcp.add_tool(function)


@pytest.mark.observed("S-158", "S-159", "S-196")
async def test_a_refused_tool_leaves_nothing_behind() -> None:
    mcp = MCPServer("refuses")
    mcp.add_tool(no_arguments)
    for function in (takes_more, takes_keywords, takes_plain):
        with pytest.raises(InvalidSignature):
            mcp.add_tool(function)
    async with Client(mcp) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["no_arguments"]


@pytest.mark.observed("S-175")
async def test_a_parameter_may_start_with_an_underscore() -> None:
    mcp = MCPServer("names")

    @mcp.tool
    def private(__a: int, _b: int = 2, _: str = "c") -> str:
        return f"{__a} {_b} {_}"

    schema = await input_schema(mcp, "private")
    assert list(schema["properties"]) == ["__a", "_b", "_"]
    assert schema["required"] == ["__a"]
    assert text_of(await call(mcp, "private", {"__a": 1, "_": "d"})) == "1 2 d"


@pytest.mark.observed("S-175")
async def test_the_decorator_needs_no_parentheses() -> None:
    mcp = MCPServer("bare")

    @mcp.tool
    def bare(a: int) -> int:
        return a

    assert bare(3) == 3
    assert text_of(await call(mcp, "bare", {"a": 1})) == "1"


@pytest.mark.observed("S-175")
def test_a_tool_that_is_not_there_cannot_be_removed() -> None:
    mcp = MCPServer("removes")
    with pytest.raises(ToolError, match=r"^Unknown tool: zzz$"):
        mcp.remove_tool("zzz")


@pytest.mark.observed("S-175")
def test_an_option_that_does_not_exist_is_refused() -> None:
    options: dict[str, Any] = {"output_schema": {}}
    mcp = MCPServer("options")
    with pytest.raises(TypeError, match="output_schema"):
        mcp.tool(**options)(no_arguments)


# --- the same name twice -----------------------------------------------------------------


@pytest.mark.observed("S-174")
@pytest.mark.parametrize(("on_duplicate", "kept"), [("ignore", "first"), ("replace", "second")])
async def test_a_name_given_twice(on_duplicate: Literal["ignore", "replace"], kept: str) -> None:
    mcp = MCPServer("twice", on_duplicate=on_duplicate)
    mcp.add_tool(lambda: "first", name="dup")
    mcp.add_tool(lambda: "second", name="dup")
    async with Client(mcp) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["dup"]
        assert text_of(await client.call_tool("dup")) == kept


@pytest.mark.requirement("R-TOOL-05")
@pytest.mark.observed("S-174")
async def test_a_name_given_twice_is_refused_unless_told_otherwise() -> None:
    mcp = MCPServer("twice")
    mcp.add_tool(lambda: "first", name="dup")
    with pytest.raises(ValueError, match="dup"):
        mcp.add_tool(lambda: "second", name="dup")
    assert text_of(await call(mcp, "dup")) == "first"


# --- the context ---------------------------------------------------------------------------


def context_last(a: int, ctx: Context) -> str:
    return f"{a} {ctx.protocol_version} {ctx.headers}"


def context_first(whatever: Context, a: int) -> str:
    return f"{a} {whatever.protocol_version} {whatever.headers}"


def context_optional(a: int, ctx: Context | None = None) -> str:
    assert ctx is not None
    return f"{a} {ctx.protocol_version} {ctx.headers}"


def context_by_keyword(a: int, *, ctx: Context) -> str:
    return f"{a} {ctx.protocol_version} {ctx.headers}"


def context_positional(ctx: Context, a: int, /) -> str:
    return f"{a} {ctx.protocol_version} {ctx.headers}"


def context_of_a_lifespan(a: int, ctx: Context[dict[str, Any]]) -> str:
    return f"{a} {ctx.protocol_version} {ctx.headers}"


async def context_async(a: int, ctx: Context) -> str:
    return f"{a} {ctx.protocol_version} {ctx.headers}"


@pytest.mark.observed("S-201", "S-202")
@pytest.mark.parametrize(
    "function",
    [
        context_last,
        context_first,
        context_optional,
        context_by_keyword,
        context_positional,
        context_of_a_lifespan,
        context_async,
    ],
    ids=lambda function: function.__name__,
)
async def test_the_context_is_given_and_not_seen(function: Callable[..., Any]) -> None:
    mcp = MCPServer("context")
    mcp.add_tool(function)
    assert await input_schema(mcp, function.__name__) == {
        "type": "object",
        "properties": ONE_INTEGER,
        "required": ["a"],
        "title": f"{function.__name__}Arguments",
    }
    sent: list[dict[str, Any]] = [{"a": 1}, {"a": 1, "ctx": "evil", "whatever": {"headers": {}}}]
    for arguments in sent:
        assert text_of(await call(mcp, function.__name__, arguments)) == "1 2026-07-28 None"


@pytest.mark.observed("S-201")
async def test_a_parameter_called_ctx_is_like_any_other() -> None:
    mcp = MCPServer("context")
    mcp.add_tool(identity(lambda ctx: ctx), name="plain")
    assert (await input_schema(mcp, "plain"))["properties"] == {"ctx": {"title": "Ctx"}}
    assert text_of(await call(mcp, "plain", {"ctx": 1})) == "1"


@pytest.mark.observed("S-202")
async def test_two_contexts_are_both_given() -> None:
    mcp = MCPServer("context")

    @mcp.tool
    def both(first: Context, second: Context) -> bool:
        return first.request_id == second.request_id

    assert (await input_schema(mcp, "both"))["properties"] == {}
    assert (await call(mcp, "both")).structured_content == {"result": True}


# --- x-mcp-header ---------------------------------------------------------------------------


def header(value: Any) -> Any:
    return Field(json_schema_extra={"x-mcp-header": value})


def header_on_array(r: Annotated[list[int], header("Region")]) -> str:
    return repr(r)


def header_on_object(r: Annotated[dict[str, int], header("Region")]) -> str:
    return repr(r)


def header_on_number(r: Annotated[float, header("Region")]) -> str:
    return repr(r)


def header_below_an_array(r: list[Annotated[str, header("Region")]]) -> str:
    return repr(r)


class Marked(BaseModel):
    region: Annotated[str, header("Region")]


def header_behind_a_reference(r: Marked) -> str:
    return repr(r)


def header_on_either(r: Annotated[str | int, header("Region")]) -> str:
    return repr(r)


def header_empty(r: Annotated[str, header("")]) -> str:
    return r


def header_with_space(r: Annotated[str, header("My Region")]) -> str:
    return r


def header_with_line_break(r: Annotated[str, header("A\r\nB")]) -> str:
    return r


def header_beyond_ascii(r: Annotated[str, header("Région")]) -> str:
    return r


def header_no_string(r: Annotated[str, header(1)]) -> str:
    return r


def header_twice(q: Annotated[str, header("Region")], r: Annotated[str, header("rEGION")]) -> str:
    return q + r


@pytest.mark.requirement("R-HTTP-21")
@pytest.mark.observed("S-203")
@pytest.mark.parametrize(
    "function",
    [
        pytest.param(header_on_array, marks=pytest.mark.observed("S-175")),
        header_on_object,
        header_on_number,
        header_below_an_array,
        header_behind_a_reference,
        header_on_either,
        header_empty,
        header_with_space,
        header_with_line_break,
        header_beyond_ascii,
        header_no_string,
        header_twice,
    ],
)
def test_a_header_that_no_client_could_send_is_refused(function: Callable[..., Any]) -> None:
    mcp = MCPServer("headers")
    with pytest.raises(InvalidSignature, match=rf"(?s){function.__name__}.*x-mcp-header"):
        mcp.add_tool(function)


@pytest.mark.requirement("R-HTTP-21")
@pytest.mark.observed("S-203")
def test_a_misplaced_header_is_refused_by_the_name_of_its_property() -> None:
    mcp = MCPServer("headers")
    with pytest.raises(InvalidSignature, match=r"'r'.*integer.*string.*boolean|'r'.*string.*integer.*boolean"):
        mcp.add_tool(header_on_array)


@pytest.mark.requirement("R-HTTP-20")
@pytest.mark.observed("S-203")
async def test_headers_on_scalars_are_published() -> None:
    mcp = MCPServer("headers")

    @mcp.tool
    def mirrored(
        s: Annotated[str, header("S-1")], i: Annotated[int, header("I!2")], b: Annotated[bool, header("B~3")] = True
    ) -> str:
        return f"{s} {i} {b}"

    properties = (await input_schema(mcp, "mirrored"))["properties"]
    assert {name: described["x-mcp-header"] for name, described in properties.items()} == {
        "s": "S-1",
        "i": "I!2",
        "b": "B~3",
    }
    assert text_of(await call(mcp, "mirrored", {"s": "x", "i": 1})) == "x 1 True"

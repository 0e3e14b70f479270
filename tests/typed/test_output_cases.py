"""Reported troubles with what tools return: schema and result must agree, and both with the text."""

from __future__ import annotations

import base64
import datetime
import decimal
import enum
import json
import math
import pathlib
import threading
import typing
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NotRequired, TypeAlias, TypeVar, cast

import jsonschema
import pytest
import typing_extensions as te
from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field, field_serializer

from mcp_core import Client, RequestContext, Server
from mcp_core.client import Mode
from mcp_core.testing import RawPeer
from mcp_core.types import (
    CallToolRequestParams,
    CallToolResult,
    ImageContent,
    ListToolsResult,
    TextContent,
    Tool,
)
from mcp_typed import InvalidSignature, MCPServer

T = TypeVar("T")
Wrap: TypeAlias = Callable[[float], Any]
MODES = ["auto", "legacy"]


def returning(annotation: Any, value: Any, **options: Any) -> MCPServer:
    """A server whose one tool, `f`, is annotated with this and returns that."""

    def f() -> Any:
        return value() if isinstance(value, Later) else value

    if annotation is MISSING:
        del f.__annotations__["return"]
    else:
        f.__annotations__["return"] = annotation
    mcp = MCPServer("returns")
    mcp.add_tool(f, **options)
    return mcp


class Later:
    """A value that is made anew for each call."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __call__(self) -> Any:
        return self._make()


MISSING = object()


async def seen(mcp: MCPServer, mode: Mode = "auto") -> tuple[Tool, CallToolResult]:
    """The tool as it is listed, and what a call of it gives."""
    async with Client(mcp, mode=mode) as client:
        (tool,) = (await client.list_tools()).tools
        return tool, await client.call_tool(tool.name)


def texts(result: CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, TextContent)]


def strict_json(text: str) -> Any:
    """Decode JSON as the RFC has it: without NaN and infinities."""

    def refuse(token: str) -> Any:
        raise ValueError(token)

    return json.loads(text, parse_constant=refuse)


def agree(tool: Tool, result: CallToolResult) -> None:
    """Structured content fits its schema, and the text says the same."""
    assert not result.is_error
    assert tool.output_schema is not None
    assert tool.output_schema["type"] == "object"
    jsonschema.validate(result.structured_content, tool.output_schema, cls=jsonschema.Draft202012Validator)
    wanted = result.structured_content
    if set(tool.output_schema.get("properties", {})) == {"result"}:
        wanted = wanted["result"]
    if isinstance(wanted, str):
        assert texts(result) == [wanted]
    elif isinstance(wanted, list) and len(texts(result)) == len(items := cast("list[Any]", wanted)):
        shown = [
            text if isinstance(item, str) else strict_json(text)
            for text, item in zip(texts(result), items, strict=True)
        ]
        # A set of one element is one text too, and that is the whole.
        assert shown in (items, [items])
    else:
        assert strict_json(texts(result)[0]) == wanted
    assert len(texts(result)) >= 1


# --- schemas that describe what is sent -------------------------------------------------------------


class Aliased(BaseModel):
    mode: str = Field(validation_alias="inMode", serialization_alias="outMode")


@pytest.mark.case("C018")
@pytest.mark.parametrize("mode", MODES)
async def test_the_schema_has_the_names_that_are_sent(mode: Mode) -> None:
    tool, result = await seen(returning(Aliased, Aliased.model_validate({"inMode": "x"})), mode)
    agree(tool, result)
    assert tool.output_schema == {
        "properties": {"outMode": {"title": "Outmode", "type": "string"}},
        "required": ["outMode"],
        "title": "Aliased",
        "type": "object",
    }
    assert result.structured_content == {"outMode": "x"}
    assert texts(result) == ['{\n  "outMode": "x"\n}']


class Doubled(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def dbl(self) -> int:
        return self.a * 2


class Stamped(BaseModel):
    a: datetime.datetime

    @field_serializer("a")
    def _seconds(self, v: datetime.datetime) -> int:
        return int(v.timestamp())


class Secretive(BaseModel):
    a: int
    secret: str = Field(exclude=True)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


NOON = datetime.datetime(2024, 1, 2, 12, tzinfo=datetime.UTC)
NOON_SECONDS = 1704196800


@pytest.mark.case("C019")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("value", "properties", "required", "sent"),
    [
        pytest.param(
            Doubled(a=2),
            {"a": {"title": "A", "type": "integer"}, "dbl": {"readOnly": True, "title": "Dbl", "type": "integer"}},
            ["a", "dbl"],
            {"a": 2, "dbl": 4},
            id="computed",
        ),
        pytest.param(
            Stamped(a=NOON), {"a": {"title": "A", "type": "integer"}}, ["a"], {"a": NOON_SECONDS}, id="serializer"
        ),
        pytest.param(
            Secretive(a=1, secret="x"), {"a": {"title": "A", "type": "integer"}}, ["a"], {"a": 1}, id="excluded"
        ),
        pytest.param(
            Open.model_validate({"a": 1, "z": 3}),
            {"a": {"title": "A", "type": "integer"}},
            ["a"],
            {"a": 1, "z": 3},
            id="open",
        ),
    ],
)
async def test_the_schema_has_the_fields_that_are_sent(
    value: BaseModel, properties: Any, required: list[str], sent: Any, mode: Mode
) -> None:
    for annotation, given, whole in (
        (type(value), value, sent),
        (list[type(value)], [value], {"result": [sent]}),  # type: ignore[misc]
    ):
        tool, result = await seen(returning(annotation, given), mode)
        agree(tool, result)
        assert result.structured_content == whole
    tool, _ = await seen(returning(type(value), value), mode)
    assert tool.output_schema is not None
    assert (tool.output_schema["properties"], tool.output_schema["required"]) == (properties, required)


class Person(te.TypedDict):
    name: str
    age: te.NotRequired[int]


class Partial(te.TypedDict, total=False):
    x: int
    y: str


class StdPerson(typing.TypedDict):
    name: str
    age: NotRequired[int]


class StdPartial(typing.TypedDict, total=False):
    x: int
    y: str


@pytest.mark.case("C021")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("kind", "value", "required", "sent"),
    [
        (Person, {"name": "d"}, ["name"], {"name": "d"}),
        (StdPerson, {"name": "d"}, ["name"], {"name": "d"}),
        (Partial, {"x": 1}, None, {"x": 1}),
        (StdPartial, {"x": 1}, None, {"x": 1}),
        (Partial, {}, None, {}),
        (Person, {"name": "d", "age": 3, "zzz": 1}, ["name"], {"name": "d", "age": 3}),
        (StdPerson, {"name": "d", "zzz": 1}, ["name"], {"name": "d"}),
    ],
)
async def test_keys_that_are_not_required_stay_out(
    kind: Any, value: Any, required: Any, sent: dict[str, Any], mode: Mode
) -> None:
    tool, result = await seen(returning(kind, value), mode)
    agree(tool, result)
    assert tool.output_schema is not None
    assert tool.output_schema.get("required") == required
    assert result.structured_content == sent
    assert len(texts(result)) == 1
    assert strict_json(texts(result)[0]) == sent


@dataclass
class Holder:
    who: StdPerson
    others: list[StdPerson]


PERSON_SCHEMA = {
    "properties": {"name": {"title": "Name", "type": "string"}, "age": {"title": "Age", "type": "integer"}},
    "required": ["name"],
    "title": "StdPerson",
    "type": "object",
}


@pytest.mark.case("C022")
async def test_the_typed_dict_of_the_standard_library_works_anywhere() -> None:
    tool, result = await seen(returning(StdPerson, {"name": "d"}))
    assert tool.output_schema == PERSON_SCHEMA
    agree(tool, result)
    tool, result = await seen(returning(list[StdPerson], [{"name": "d"}, {"name": "e", "age": 3}]))
    assert tool.output_schema == {
        "$defs": {"StdPerson": PERSON_SCHEMA},
        "properties": {"result": {"items": {"$ref": "#/$defs/StdPerson"}, "title": "Result", "type": "array"}},
        "required": ["result"],
        "title": "fOutput",
        "type": "object",
    }
    agree(tool, result)
    for kind, value, sent in (
        (dict[str, StdPerson], {"k": {"name": "d"}}, {"k": {"name": "d"}}),
        (StdPerson | None, {"name": "d"}, {"result": {"name": "d"}}),
        (Holder, Holder({"name": "d"}, [{"name": "e"}]), {"who": {"name": "d"}, "others": [{"name": "e"}]}),
    ):
        tool, result = await seen(returning(kind, value))
        agree(tool, result)
        assert result.structured_content == sent


class Node(BaseModel):
    v: int
    kids: list[Node] = []


@dataclass
class DataNode:
    v: int
    kids: list[DataNode] = field(default_factory=list["DataNode"])


class DictNode(te.TypedDict):
    v: int
    kids: te.NotRequired[list[DictNode]]


SELVES: list[tuple[Any, Any, Any]] = [
    (Node, Node(v=1, kids=[Node(v=2)]), {"v": 1, "kids": [{"v": 2, "kids": []}]}),
    (DataNode, DataNode(1, [DataNode(2)]), {"v": 1, "kids": [{"v": 2, "kids": []}]}),
    (DictNode, {"v": 1, "kids": [{"v": 2}]}, {"v": 1, "kids": [{"v": 2}]}),
]


@pytest.mark.case("C023")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("kind", "value", "sent"),
    SELVES,
    ids=["model", "dataclass", "typed dict"],
)
async def test_a_type_that_holds_itself_is_an_object_at_its_root(kind: Any, value: Any, sent: Any, mode: Mode) -> None:
    tool, result = await seen(returning(kind, value), mode)
    agree(tool, result)
    assert result.structured_content == sent
    assert tool.output_schema is not None
    assert list(tool.output_schema["properties"]) == ["v", "kids"]
    assert tool.output_schema["required"] == ["v"]
    assert tool.output_schema["properties"]["kids"]["items"] == {"$ref": f"#/$defs/{kind.__name__}"}


# --- values that JSON cannot hold, or holds in its own way ----------------------------------------------


class Ratio(BaseModel):
    of: float


NUMBERS_IN: list[tuple[Any, Wrap, str]] = [
    (float, lambda v: v, ""),
    (float | None, lambda v: v, ""),
    (dict[str, float], lambda v: {"ok": 1.0, "bad": v}, " at bad"),
    (list[float], lambda v: [1.0, v], " at 1"),
    (Ratio, lambda v: Ratio(of=v), " at of"),
    (dict[str, Any], lambda v: {"a": [{"deep": v}]}, " at a.0.deep"),
]


@pytest.mark.case("C025")
@pytest.mark.parametrize(("value", "named"), [(math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf")])
@pytest.mark.parametrize(
    ("kind", "wrap", "where"),
    NUMBERS_IN,
    ids=["float", "optional", "dict", "list", "model", "Any"],
)
async def test_what_is_no_number_in_json_fails_the_call(
    kind: Any, wrap: Wrap, where: str, value: float, named: str
) -> None:
    tool, result = await seen(returning(kind, wrap(value)))
    assert tool.output_schema is not None
    assert result.is_error
    assert result.structured_content is None
    (text,) = texts(result)
    assert text == f"Error executing tool f: {named}{where} is not a number that JSON can hold"


@pytest.mark.case("C026")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("value", [{"a": math.nan, "b": math.inf}, math.nan, [1.0, -math.inf], {"deep": [math.inf]}])
async def test_what_is_no_number_in_json_never_leaves_as_text(value: Any, mode: Mode) -> None:
    tool, result = await seen(returning(MISSING, value), mode)
    assert tool.output_schema is None
    assert result.is_error
    (text,) = texts(result)
    assert not text.startswith("Error executing tool f (error id")
    assert "nan" in text or "inf" in text


class Blob(BaseModel):
    data: bytes


PNG = b"\x89PNG\xff"


@pytest.mark.case("C027")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("raw", [PNG, b"abc", b"\xfb\xff\xfe", b""])
async def test_bytes_are_base64_in_both_channels(raw: bytes, mode: Mode) -> None:
    coded = base64.b64encode(raw).decode()
    tool, result = await seen(returning(bytes, raw), mode)
    assert (result.structured_content, texts(result)) == ({"result": coded}, [coded])
    for kind, value, sent in (
        (Blob, Blob(data=raw), {"data": coded}),
        (list[Blob], [Blob(data=raw), Blob(data=raw)], {"result": [{"data": coded}, {"data": coded}]}),
        (dict[str, bytes], {"k": raw}, {"k": coded}),
    ):
        tool, result = await seen(returning(kind, value), mode)
        agree(tool, result)
        assert result.structured_content == sent
    tool, result = await seen(returning(MISSING, {"k": [raw]}), mode)
    assert strict_json(texts(result)[0]) == {"k": [coded]}


class Hue(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@pytest.mark.case("C038")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("kind", "value", "sent", "text"),
    [
        (datetime.datetime, datetime.datetime(2024, 1, 2, 3, 4, 5), "2024-01-02T03:04:05", "2024-01-02T03:04:05"),
        (datetime.date, datetime.date(2024, 1, 2), "2024-01-02", "2024-01-02"),
        (datetime.time, datetime.time(3, 4), "03:04:00", "03:04:00"),
        (datetime.timedelta, datetime.timedelta(seconds=90), "PT1M30S", "PT1M30S"),
        (decimal.Decimal, decimal.Decimal("1.10"), "1.10", "1.10"),
        (uuid.UUID, uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000001"),
        (pathlib.PurePosixPath, pathlib.PurePosixPath("/tmp/x"), "/tmp/x", "/tmp/x"),
        (Hue, Hue.RED, "red", "red"),
        (Level, Level.HIGH, 3, "3"),
    ],
)
async def test_values_that_are_strings_in_json_are_wrapped_and_unquoted(
    kind: Any, value: Any, sent: Any, text: str, mode: Mode
) -> None:
    tool, result = await seen(returning(kind, value), mode)
    agree(tool, result)
    assert (result.structured_content, texts(result)) == ({"result": sent}, [text])
    tool, result = await seen(returning(dict[str, Any], {"k": value, "l": [value]}), mode)
    agree(tool, result)
    assert result.structured_content == {"k": sent, "l": [sent]}


# --- text against structured content --------------------------------------------------------------------


@pytest.mark.case("C029")
@pytest.mark.parametrize("mode", MODES)
async def test_a_list_is_a_block_an_element(mode: Mode) -> None:
    tool, result = await seen(returning(list[dict[str, int]], [{"a": 1}, {"b": 2}]), mode)
    agree(tool, result)
    assert result.structured_content == {"result": [{"a": 1}, {"b": 2}]}
    assert [strict_json(text) for text in texts(result)] == [{"a": 1}, {"b": 2}]
    tool, result = await seen(returning(tuple[int, str], (1, "a")), mode)
    agree(tool, result)
    assert (result.structured_content, texts(result)) == ({"result": [1, "a"]}, ["1", "a"])
    picture = ImageContent(data="QQ==", mime_type="image/png")
    tool, result = await seen(returning(list, ["a", TextContent(text="t"), picture, [picture]]), mode)
    assert tool.output_schema is None
    assert result.content == [TextContent(text="a"), TextContent(text="t"), picture, picture]


class Annotated:
    x: int
    y: str = "d"

    def __init__(self) -> None:
        self.x = 1


class Unannotated:
    def __init__(self) -> None:
        self.x = 1


@pytest.mark.case("C031")
@pytest.mark.parametrize("mode", MODES)
async def test_an_annotated_class_is_shown_as_its_data(mode: Mode) -> None:
    tool, result = await seen(returning(Annotated, Annotated()), mode)
    agree(tool, result)
    assert result.structured_content == {"x": 1, "y": "d"}
    assert texts(result) == ['{\n  "x": 1,\n  "y": "d"\n}']
    # A class that declares nothing has nothing to show but its repr; `lint` says so.
    value = Unannotated()
    mcp = returning(Unannotated, value)
    tool, result = await seen(mcp, mode)
    assert tool.output_schema is None
    assert not result.is_error
    assert (result.structured_content, texts(result)) == (None, [json.dumps(repr(value))])
    assert [finding.tool for finding in mcp.lint() if finding.code == "unstructured-return"] == ["f"]


class Base(BaseModel):
    a: int


class Extended(Base):
    extra: str = "x"


@dataclass
class DataBase:
    a: int


@dataclass
class DataExtended(DataBase):
    extra: str = "x"


@pytest.mark.case("C033")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("kind", "value"), [(Base, Extended(a=1)), (DataBase, DataExtended(a=1))], ids=["model", "dataclass"]
)
async def test_a_subclass_shows_the_same_fields_everywhere(kind: Any, value: Any, mode: Mode) -> None:
    for annotation, given, sent in (
        (kind, value, {"a": 1}),
        (list[kind], [value, value], {"result": [{"a": 1}, {"a": 1}]}),
        (dict[str, kind], {"k": value}, {"k": {"a": 1}}),
        (kind | None, value, {"result": {"a": 1}}),
    ):
        tool, result = await seen(returning(annotation, given), mode)
        agree(tool, result)
        assert result.structured_content == sent


class Page(BaseModel, Generic[T]):
    items: list[T]
    next: str | None = None


class Texts(list[str]):
    """A list of a class of its own."""


class Word(str):
    __slots__ = ()


Root = RootModel[list[int]]


@pytest.mark.case("C034")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("kind", "value", "sent"),
    [
        (int, "5", {"result": 5}),
        (int, True, {"result": 1}),
        (int, 3.0, {"result": 3}),
        (float, 3, {"result": 3.0}),
        (str, Word("q"), {"result": "q"}),
        (None, None, {"result": None}),
        (Base, {"a": "7", "zz": 3}, {"a": 7}),
        (Person, {"name": "d", "zz": 3}, {"name": "d"}),
        (DataBase, {"a": "7"}, {"a": 7}),
        (dict[str, int], {"a": "7"}, {"a": 7}),
        (list[str], Texts(["a", "b"]), {"result": ["a", "b"]}),
        (list[int], Later(lambda: (n for n in (1, 2))), {"result": [1, 2]}),
        (list[int | None], [1, None, 2], {"result": [1, None, 2]}),
        (list[list[int]], [[1, 2], [3]], {"result": [[1, 2], [3]]}),
        (list[str], [], {"result": []}),
        (set[int], {1}, {"result": [1]}),
        (Base | None, Base(a=1), {"result": {"a": 1}}),
        (Base | DataBase, DataBase(a=1), {"result": {"a": 1}}),
        (Page[int], Page[int](items=[1]), {"items": [1], "next": None}),
        (Root, Root([1, 2]), {"result": [1, 2]}),
        (Literal["a", 1], 1, {"result": 1}),
        (
            dict[str, Any],
            {"n": None, "big": 2**70, "t": (1, {"s": {2}})},
            {"n": None, "big": 2**70, "t": [1, {"s": [2]}]},
        ),
    ],
)
async def test_text_and_structured_content_say_the_same(kind: Any, value: Any, sent: Any, mode: Mode) -> None:
    tool, result = await seen(returning(kind, value), mode)
    agree(tool, result)
    assert result.structured_content == sent


# --- what has no schema ------------------------------------------------------------------------------------


class ThirdParty:
    """A class of somebody else's, of which nothing is known."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __str__(self) -> str:
        return "third party"

    __repr__ = __str__


@pytest.mark.case("C030")
@pytest.mark.parametrize("mode", MODES)
async def test_an_iterator_is_a_list(mode: Mode) -> None:
    def plain() -> Iterator[int]:
        yield from (1, 2)

    async def later() -> AsyncIterator[int]:
        for n in (1, 2):
            yield n

    for function in (plain, later):
        for structured in (None, True):
            mcp = MCPServer("returns")
            mcp.add_tool(function, name="f", structured_output=structured)
            tool, result = await seen(mcp, mode)
            agree(tool, result)
            assert (result.structured_content, texts(result)) == ({"result": [1, 2]}, ["1", "2"])
        mcp = MCPServer("returns")
        mcp.add_tool(function, name="f", structured_output=False)
        tool, result = await seen(mcp, mode)
        assert (tool.output_schema, result.structured_content, texts(result)) == (None, None, ["1", "2"])


@pytest.mark.case("C030")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [ThirdParty, ThirdParty | None, list[ThirdParty]], ids=str)
async def test_a_class_that_nobody_knows_has_no_schema(kind: Any, mode: Mode) -> None:
    value: Any = [ThirdParty()] if kind == list[ThirdParty] else ThirdParty()
    for structured in (None, False):
        tool, result = await seen(returning(kind, value, structured_output=structured), mode)
        assert (tool.output_schema, result.structured_content) == (None, None)
        assert texts(result) == ['"third party"']
    with pytest.raises(InvalidSignature) as caught:
        returning(kind, value, structured_output=True)
    assert str(caught.value) == f"Function f: return type {kind!r} is not serializable for structured output"


# --- results made by hand -----------------------------------------------------------------------------------

MADE = CallToolResult(
    content=[TextContent(text="hi", _meta={"tm": 2})], structured_content={"n": 1}, _meta={"k": {"deep": [1, None]}}
)


@pytest.mark.case("C035")
@pytest.mark.parametrize("layer", ["typed", "low-level"])
async def test_meta_survives_at_every_level(layer: str) -> None:
    if layer == "typed":
        mcp = MCPServer("meta")

        @mcp.tool(meta={"x": 1, "y": None})
        def a() -> CallToolResult:
            return MADE

        server = mcp.server
    else:

        def list_tools(ctx: RequestContext[Any], params: Any) -> ListToolsResult:
            return ListToolsResult(tools=[Tool(name="a", input_schema={"type": "object"}, _meta={"x": 1, "y": None})])

        def call_tool(ctx: RequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
            return MADE

        server = Server("meta", on_list_tools=list_tools, on_call_tool=call_tool)
    async with RawPeer.of(server) as peer:
        await peer.initialize()
        (tool,) = (await peer.call(1, "tools/list"))["result"]["tools"]
        result = (await peer.call(2, "tools/call", {"name": "a"}))["result"]
        new = (await peer.modern(3, "tools/call", {"name": "a"}))["result"]
    assert tool["_meta"] == {"x": 1, "y": None}
    assert result == {
        "content": [{"type": "text", "text": "hi", "_meta": {"tm": 2}}],
        "structuredContent": {"n": 1},
        "isError": False,
        "_meta": {"k": {"deep": [1, None]}},
    }
    new["_meta"].pop("io.modelcontextprotocol/serverInfo")
    assert new.pop("resultType") == "complete"
    assert new == result


class Count(BaseModel):
    a: int


@pytest.mark.case("C037")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"a": "notint"}, "a\n  Input should be a valid integer, unable to parse string as an integer"),
        ({"b": 1}, "a\n  Field required"),
        (None, ""),
    ],
    ids=["wrong", "incomplete", "none"],
)
async def test_a_result_made_by_hand_must_fit_its_schema(given: Any, reason: str, mode: Mode) -> None:
    mcp = returning(
        typing.Annotated[CallToolResult, Count],
        CallToolResult(content=[TextContent(text="made by hand")], structured_content=given),
    )
    tool, result = await seen(mcp, mode)
    assert tool.output_schema is not None
    assert tool.output_schema["title"] == "Count"
    assert result.is_error
    assert result.structured_content is None
    (text,) = texts(result)
    assert text.startswith("Error executing tool f: ")
    assert "error id" not in text
    assert "Count" in text
    assert reason in text


@pytest.mark.case("C037")
@pytest.mark.parametrize("mode", MODES)
async def test_a_result_made_by_hand_that_fits_is_sent_as_made(mode: Mode) -> None:
    kind = typing.Annotated[CallToolResult, Count]
    made = CallToolResult(content=[TextContent(text="made by hand")], structured_content={"a": 1})
    _, result = await seen(returning(kind, made), mode)
    assert (result.is_error, result.structured_content, texts(result)) == (False, {"a": 1}, ["made by hand"])
    refused = CallToolResult(content=[TextContent(text="no")], is_error=True)
    _, result = await seen(returning(kind, refused), mode)
    assert (result.is_error, result.structured_content, texts(result)) == (True, None, ["no"])


@pytest.mark.case("C037")
@pytest.mark.parametrize("mode", MODES)
async def test_the_low_level_layer_passes_on_what_is_made_by_hand(mode: Mode) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

    def list_tools(ctx: RequestContext[Any], params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="f", input_schema={"type": "object"}, output_schema=schema)])

    def call_tool(ctx: RequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        return CallToolResult(content=[TextContent(text="x")], structured_content=params.arguments)

    server = Server("low", on_list_tools=list_tools, on_call_tool=call_tool)
    # A client that looks would refuse it (X-30); what the server sends is what the author said.
    async with Client(server, mode=mode, validate_structured_content=False) as client:
        for given in (None, {"a": "notint"}):
            result = await client.call_tool("f", given)
            assert (result.is_error, result.structured_content, texts(result)) == (False, given, ["x"])

"""Arguments: reported cases, classes of every library, odd names, odd callables, broken text."""

from __future__ import annotations

import datetime
import decimal
import functools
import json
import math
import pathlib
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import jsonschema
import msgspec
import pytest
from pydantic import BaseModel, Field, ValidationError

from mcp_core import Client
from mcp_core.testing import RawPeer, modern_meta
from mcp_core.types import CallToolResult, TextContent
from mcp_typed import Context, InvalidSignature, MCPServer
from tests.typed.input_types import (
    Address,
    AliasedItem,
    AttrsItem,
    AttrsOuter,
    BytesData,
    BytesItem,
    BytesStruct,
    Cat,
    Checked,
    Circle,
    ClosedStruct,
    DataItem,
    DataNode,
    DataPage,
    Dog,
    FactoryStruct,
    FieldRenamed,
    FrozenStruct,
    Inner,
    Item,
    Limited,
    Loose,
    LooseChild,
    Mixed,
    Node,
    Outer,
    Page,
    Pair,
    Patch,
    Person,
    Place,
    Plain,
    Point,
    RenamedStruct,
    Square,
    Started,
    Stopped,
    StructItem,
    StructNode,
    StructPage,
    User,
    function_with_local_class,
    function_with_lost_class,
    logged,
    logged_async,
    register_with_local_class,
)


@pytest.fixture
def anyio_backend() -> str:
    """One backend: what is held here happens before any task is started."""
    return "asyncio"


async def listed(mcp: MCPServer) -> dict[str, dict[str, Any]]:
    """The input schemas by tool."""
    async with Client(mcp) as client:
        return {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}


async def call(mcp: MCPServer, name: str, arguments: dict[str, Any] | None = None) -> CallToolResult:
    async with Client(mcp) as client:
        return await client.call_tool(name, arguments)


def short(value: Any) -> str:
    """A name for a test that is the same in every process."""
    name = value.__name__ if isinstance(value, type) else str(value)
    return re.sub(r"tests\.typed\.\w+\.|typing\.| at 0x[0-9a-f]+", "", name)[:40]


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def text(mcp: MCPServer, name: str, arguments: dict[str, Any] | None = None) -> str:
    """The text of a call that must succeed."""
    result = await call(mcp, name, arguments)
    assert not result.is_error, result
    return text_of(result)


async def error(mcp: MCPServer, name: str, arguments: dict[str, Any] | None = None) -> str:
    """The text of a call that must fail."""
    result = await call(mcp, name, arguments)
    assert result.is_error, result
    return text_of(result)


_REQUIRED: Final = object()


class Taker:
    """A server with one tool, `take(value)`, that keeps what it gets."""

    def __init__(self, annotation: Any, default: Any = _REQUIRED, **options: Any) -> None:
        self.mcp = MCPServer("takes", **options)
        self.got: list[Any] = []

        def take(value: Any) -> None:
            self.got.append(value)

        take.__annotations__["value"] = annotation
        if default is not _REQUIRED:
            take.__defaults__ = (default,)
        self.mcp.add_tool(take)

    async def schema(self) -> dict[str, Any]:
        return (await listed(self.mcp))["take"]

    async def property(self) -> dict[str, Any]:
        shown: dict[str, Any] = (await self.schema())["properties"]["value"]
        return shown

    async def receives(self, value: Any) -> Any:
        """What the function gets for this argument."""
        return await self.receives_of({"value": value})

    async def receives_of(self, arguments: dict[str, Any]) -> Any:
        result = await call(self.mcp, "take", arguments)
        assert not result.is_error, result
        return self.got.pop()

    async def refuses(self, value: Any) -> str:
        """The report for this argument, below its headline; the function must not have run."""
        text = await error(self.mcp, "take", {"value": value})
        assert self.got == []
        headline, _, report = text.partition("\n")
        assert headline == "Error executing tool take: 1 validation error for takeArguments"
        return report


# --- a string that fits is never parsed, one that cannot fit is -----------------------------

JSON_TEXTS: Final = ['{"a":1}', "[1,2]", "null", "123", '"x"', "true", "1e5", "[1,", ""]


@pytest.mark.case("C001")
@pytest.mark.parametrize("sent", JSON_TEXTS)
@pytest.mark.parametrize(
    "annotation",
    [str, str | None, Annotated[str | None, Field(description="d")], str | list[str], str | int, Any, object],
    ids=short,
)
async def test_a_string_that_fits_arrives_as_it_is(annotation: Any, sent: str) -> None:
    got = await Taker(annotation, None if annotation == str | None else _REQUIRED).receives(sent)
    assert (type(got), got) == (str, sent)


@pytest.mark.case("C001", "C003")
@pytest.mark.parametrize(
    ("annotation", "sent", "value"),
    [
        (list[int] | None, "[1,2]", [1, 2]),
        (list[int], "[1,2]", [1, 2]),
        (list[int], " [1, 2]\n", [1, 2]),
        (list[str], '["[1]"]', ["[1]"]),
        (User, '{"name":"a"}', User(name="a")),
        (User | None, '{"name":"a"}', User(name="a")),
        (dict[str, Any], '{"a":{}}', {"a": {}}),
        (dict[str, Any], '{"a":"[1]"}', {"a": "[1]"}),
        (tuple[int, str], '[1,"a"]', (1, "a")),
        (set[int], "[1,1]", {1}),
        (list[User], '[{"name":"a"}]', [User(name="a")]),
        (DataItem, '{"a":1}', DataItem(1)),
        (StructItem, '{"a":1}', StructItem(1)),
        (AttrsItem, '{"a":1}', AttrsItem(1)),
        (Point, '{"x":1}', {"x": 1}),
        (Dog | Cat, '{"kind":"cat","m":"z"}', Cat(m="z")),
        (int | None, "null", None),
        (bool | list[int], "[1]", [1]),
    ],
    ids=short,
)
async def test_json_text_is_parsed_where_no_string_fits(annotation: Any, sent: str, value: Any) -> None:
    got = await Taker(annotation).receives(sent)
    assert (type(got), got) == (type(value), value)


@pytest.mark.case("C003")
@pytest.mark.parametrize(
    "sent",
    ["1", "[1,", "1,2", "", "null", '["a"]', '{"a":1}', '"[1,2]"', "NaN", "[1] [2]"],
)
async def test_the_error_is_about_the_text_that_was_sent(sent: str) -> None:
    assert await Taker(list[int]).refuses(sent) == (
        f"value\n  Input should be a valid array [type=list_type, input_value={sent!r}, input_type=str]"
    )


@pytest.mark.case("C003")
async def test_the_schema_does_not_tell_that_text_is_taken_too() -> None:
    assert await Taker(list[int]).schema() == {
        "type": "object",
        "properties": {"value": {"items": {"type": "integer"}, "title": "Value", "type": "array"}},
        "required": ["value"],
        "title": "takeArguments",
    }


@pytest.mark.case("C001", "C003")
async def test_only_the_parameters_that_need_it_are_parsed() -> None:
    mcp = MCPServer("mixed")

    @mcp.tool
    def mixed(xs: list[int], note: str, more: dict[str, str], free: Any = None) -> str:
        return repr((xs, note, more, free))

    sent = {"xs": "[1]", "note": "[2]", "more": '{"k":"[3]"}', "free": "[4]"}
    assert await text(mcp, "mixed", sent) == repr(([1], "[2]", {"k": "[3]"}, "[4]"))


@pytest.mark.case("C003")
async def test_text_below_the_top_level_is_not_parsed() -> None:
    assert await Taker(list[list[int]]).refuses(["[1]"]) == (
        "value.0\n  Input should be a valid array [type=list_type, input_value='[1]', input_type=str]"
    )


@pytest.mark.case("C003")
async def test_when_both_attempts_fail_the_first_is_reported_whole() -> None:
    mcp = MCPServer("fails")

    @mcp.tool
    def count(xs: list[int], n: int) -> int:
        return n + len(xs)

    assert await error(mcp, "count", {"xs": "[1]", "n": "many"}) == (
        "Error executing tool count: 2 validation errors for countArguments\n"
        "xs\n  Input should be a valid array [type=list_type, input_value='[1]', input_type=str]\n"
        "n\n  Input should be a valid integer, unable to parse string as an integer"
        " [type=int_parsing, input_value='many', input_type=str]"
    )


@pytest.mark.case("C003")
async def test_numbers_in_json_text_are_exact() -> None:
    assert await Taker(list[int]).receives(f"[{2**70}]") == [2**70]


# --- conversions ---------------------------------------------------------------------------


@pytest.mark.case("C002")
@pytest.mark.parametrize(
    ("annotation", "sent", "value"),
    [(str, "123", "123"), (int, "7", 7), (int, 7.0, 7), (bool, "true", True)],
    ids=short,
)
async def test_numbers_and_truth_may_come_as_text(annotation: Any, sent: Any, value: Any) -> None:
    got = await Taker(annotation).receives(sent)
    assert (type(got), got) == (type(value), value)


@pytest.mark.case("C002")
async def test_a_fraction_is_no_integer() -> None:
    assert await Taker(int).refuses(7.5) == (
        "value\n  Input should be a valid integer, got a number with a fractional part"
        " [type=int_from_float, input_value=7.5, input_type=float]"
    )


@pytest.mark.case("C014")
@pytest.mark.parametrize("sent", [5, 0.1, True, None, "[1]", "", {"a": 1}, [1, None, {"b": []}], 2**70], ids=repr)
async def test_what_is_not_annotated_takes_any_value_unchanged(sent: Any) -> None:
    mcp = MCPServer("untyped")
    got: list[Any] = []

    def keep(value: Any) -> None:
        got.append(value)

    keep.__annotations__.clear()
    mcp.add_tool(keep)
    assert await listed(mcp) == {
        "keep": {
            "type": "object",
            "properties": {"value": {"title": "Value"}},
            "required": ["value"],
            "title": "keepArguments",
        }
    }
    assert not (await call(mcp, "keep", {"value": sent})).is_error
    assert got == [sent]
    assert type(got[0]) is type(sent)


@pytest.mark.case("C017")
@pytest.mark.parametrize(
    ("sent", "number"),
    [
        ("1234567890123456789", 1234567890123456789),
        ('"9007199254740993"', 9007199254740993),
        ("12345678901234567890123", 12345678901234567890123),
        ("-12345678901234567890123", -12345678901234567890123),
    ],
)
@pytest.mark.parametrize("annotation", [int, Any], ids=["int", "any"])
async def test_integers_are_exact_in_both_directions(sent: str, number: int, annotation: Any) -> None:
    mcp = MCPServer("exact")

    def same(n: Any) -> Any:
        assert n == (sent.strip('"') if annotation is Any and sent.startswith('"') else number)
        return number

    same.__annotations__.update(n=annotation, **{"return": int})
    mcp.add_tool(same)
    request = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"same","arguments":{"n":%b},"_meta":%b}}'
    answer = await mcp.server.handle(request % (sent.encode(), json.dumps(modern_meta()).encode()))
    assert answer is not None
    result = json.loads(answer)["result"]
    assert result["structuredContent"] == {"result": number}
    assert result["content"] == [{"type": "text", "text": str(number)}]


@pytest.mark.case("C017")
async def test_a_returned_integer_has_no_limit() -> None:
    mcp = MCPServer("exact")

    @mcp.tool
    def large() -> int:
        return 2**70

    result = await call(mcp, "large")
    assert (text_of(result), result.structured_content) == (str(2**70), {"result": 2**70})


# --- kinds of parameters -------------------------------------------------------------------


@pytest.mark.case("C005")
def test_variadic_parameters_are_refused_by_name() -> None:
    mcp = MCPServer("variadic")

    def with_keywords(x: int, **kw: str) -> str:
        return f"{x}{kw}"

    def with_more(x: int, *a: int) -> str:
        return f"{x}{a}"

    with pytest.raises(InvalidSignature, match=r"with_keywords.*\*\*kw"):
        mcp.add_tool(with_keywords)
    with pytest.raises(InvalidSignature, match=r"with_more.*\*a"):
        mcp.add_tool(with_more)


@pytest.mark.case("C006")
async def test_positional_only_parameters_work() -> None:
    mcp = MCPServer("positional")

    @mcp.tool
    def joined(a: int, b: int = 2, /) -> int:
        return 10 * a + b

    @mcp.tool
    def mixed(a: int, /, b: int = 2) -> str:
        return f"{a} {b}"

    assert await text(mcp, "joined", {"a": 3}) == "32"
    assert await text(mcp, "joined", {"a": 3, "b": 3}) == "33"
    assert await text(mcp, "mixed", {"a": 1, "b": 3}) == "1 3"
    assert await text(mcp, "mixed", {"a": 1}) == "1 2"


# --- unknown arguments ---------------------------------------------------------------------


def topics(mcp: MCPServer, **options: Any) -> MCPServer:
    """The server, with a tool that has a default for all it takes."""

    def about(topic: str = "d") -> str:
        return topic

    mcp.add_tool(about, **options)
    return mcp


@pytest.mark.case("C007")
@pytest.mark.parametrize(
    "mcp",
    [
        topics(MCPServer("default")),
        topics(MCPServer("tolerant", unknown_arguments="ignore")),
        topics(MCPServer("strict", unknown_arguments="reject"), unknown_arguments="ignore"),
    ],
    ids=["by_default", "by_server", "by_tool"],
)
async def test_unknown_arguments_are_ignored(mcp: MCPServer) -> None:
    assert await text(mcp, "about", {"path": "x"}) == "d"
    assert "additionalProperties" not in (await listed(mcp))["about"]


@pytest.mark.case("C007")
@pytest.mark.parametrize(
    "mcp",
    [
        topics(MCPServer("strict", unknown_arguments="reject")),
        topics(MCPServer("tolerant"), unknown_arguments="reject"),
    ],
    ids=["by_server", "by_tool"],
)
async def test_unknown_arguments_are_refused(mcp: MCPServer) -> None:
    assert (await listed(mcp))["about"] == {
        "type": "object",
        "properties": {"topic": {"default": "d", "title": "Topic", "type": "string"}},
        "additionalProperties": False,
        "title": "aboutArguments",
    }
    told = await error(mcp, "about", {"topik": "x"})
    assert told.startswith("Error executing tool about: 1 validation error for aboutArguments\ntopik\n")
    assert "topic" in told
    assert "'path'" in await error(mcp, "about", {"path": "x"})
    assert await text(mcp, "about", {"topic": "x"}) == "x"


async def test_refusing_unknown_arguments_does_not_close_what_is_inside_them() -> None:
    mcp = MCPServer("strict", unknown_arguments="reject")

    @mcp.tool
    def keep(item: Item, free: dict[str, int]) -> str:
        return f"{item!r} {free!r}"

    assert await text(mcp, "keep", {"item": {"a": 1, "zz": 2}, "free": {"k": 1}}) == "Item(a=1, b='x') {'k': 1}"


async def test_all_that_is_wrong_is_told_beside_an_unknown_argument() -> None:
    mcp = MCPServer("strict", unknown_arguments="reject")

    @mcp.tool
    def search(query: str, limit: Annotated[int, Field(le=50)] = 10) -> str:
        return f"{query} {limit}"

    told = await error(mcp, "search", {"limt": 1, "limit": 99})
    assert told.startswith("Error executing tool search: 3 validation errors for searchArguments\n")
    assert "query\n  Field required [type=missing, input_type=dict]" in told
    assert "limit\n  Input should be less than or equal to 50 [type=less_than_equal, input_value=99" in told
    assert "'limit'" in told.partition("\nlimt\n")[2]


async def test_json_text_is_parsed_where_unknown_arguments_are_refused() -> None:
    mcp = MCPServer("strict", unknown_arguments="reject")

    @mcp.tool
    def count(xs: list[int]) -> int:
        return len(xs)

    assert await text(mcp, "count", {"xs": "[1,2]"}) == "2"


# --- the renderer of bad arguments ---------------------------------------------------------


async def test_bad_arguments_may_be_told_in_the_authors_words() -> None:
    seen: list[Any] = []

    def render(tool: str, fault: ValidationError) -> str:
        seen.append((tool, [one["loc"] for one in fault.errors()]))
        return "Please send a whole number."

    mcp = MCPServer("words", on_invalid_arguments=render)

    @mcp.tool
    def square(limit: int) -> int:
        return limit * limit

    told = await error(mcp, "square", {"limit": "ten"})
    assert told.endswith("Please send a whole number.")
    assert "validation error" not in told
    assert seen == [("square", [("limit",)])]
    assert await text(mcp, "square", {"limit": 3}) == "9"
    assert len(seen) == 1


async def test_bad_arguments_may_be_answered_with_a_result() -> None:
    answer = CallToolResult(
        content=[TextContent(text="no")], structured_content={"n": 1}, is_error=True, _meta={"example/k": [None]}
    )

    def render(tool: str, fault: ValidationError) -> CallToolResult:
        return answer

    mcp = MCPServer("result", on_invalid_arguments=render)

    @mcp.tool
    def square(limit: int) -> int:
        return limit * limit

    got = await call(mcp, "square", {})
    assert (got.content, got.structured_content, got.is_error) == ([TextContent(text="no")], {"n": 1}, True)
    assert got.meta is not None
    assert got.meta["example/k"] == [None]


# --- annotations that are text --------------------------------------------------------------


class OnlyHere(BaseModel):
    n: int


def logged_twice(function: Callable[..., Any]) -> Callable[..., Any]:
    return logged(logged(function))


def logged_both_ways(function: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    return logged(logged_async(function))


@pytest.mark.case("C009")
@pytest.mark.parametrize("wrap", [logged, logged_twice], ids=["once", "twice"])
async def test_a_wrapper_of_another_module_leaves_annotations_to_the_function(wrap: Any) -> None:
    mcp = MCPServer("wrapped")

    def first(only: OnlyHere, ctx: Context, by: int = 1) -> str:
        return f"{only.n * by} {ctx.protocol_version}"

    def second(ctx: Context | None = None, *, only: OnlyHere) -> str:
        assert ctx is not None
        return f"{only.n} {ctx.protocol_version}"

    mcp.add_tool(wrap(first))
    mcp.add_tool(wrap(second))
    schemas = await listed(mcp)
    assert list(schemas["first"]["properties"]) == ["only", "by"]
    assert list(schemas["second"]["properties"]) == ["only"]
    assert schemas["first"]["title"] == "firstArguments"
    assert await text(mcp, "first", {"only": {"n": 2}, "by": 3}) == "6 2026-07-28"
    assert await text(mcp, "second", {"only": {"n": 2}}) == "2 2026-07-28"


@pytest.mark.case("C009")
@pytest.mark.parametrize("wrap", [logged, logged_async, logged_both_ways])
async def test_a_wrapped_coroutine_function_is_awaited(wrap: Any) -> None:
    mcp = MCPServer("wrapped")

    async def later(only: OnlyHere, ctx: Context) -> str:
        return f"{only.n} {ctx.protocol_version}"

    mcp.add_tool(wrap(later))
    result = await call(mcp, "later", {"only": {"n": 2}})
    assert (text_of(result), result.structured_content) == ("2 2026-07-28", {"result": "2 2026-07-28"})


@pytest.mark.case("C010")
async def test_a_class_that_is_local_to_a_function_of_another_module() -> None:
    mcp = MCPServer("local")
    register_with_local_class(mcp)
    mcp.add_tool(function_with_local_class())
    for name in ("take_local", "take_closure"):
        assert (await listed(mcp))[name]["properties"] == {"value": {"$ref": "#/$defs/Local"}}
        assert await text(mcp, name, {"value": {"n": 4}}) == "4"
    assert (await call(mcp, "take_locals", {"values": [{"n": 4}, {"n": 5}]})).structured_content == {"result": [4, 5]}


@pytest.mark.case("C010")
def test_a_class_that_nothing_can_find_is_named() -> None:
    mcp = MCPServer("lost")
    with pytest.raises(InvalidSignature, match=r"'take_lost'.*'value'.*'Lost'"):
        mcp.add_tool(function_with_lost_class())


@pytest.mark.case("C010")
async def test_a_class_that_is_local_to_this_test() -> None:
    mcp = MCPServer("local")

    class Near(BaseModel):
        n: int

    @mcp.tool
    def take_near(value: Near | None = None) -> int:
        return 0 if value is None else value.n

    assert await text(mcp, "take_near", {"value": {"n": 4}}) == "4"


# --- defaults ------------------------------------------------------------------------------


class NamedOnly:
    """Has a text, and no JSON."""

    def __repr__(self) -> str:
        return "NamedOnly()"


MOMENT: Final = datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)  # noqa: UP017
ID: Final = uuid.UUID(int=1)


@pytest.mark.case("C011")
async def test_an_integer_that_defaults_to_none_may_be_null() -> None:
    taker = Taker(int, None)
    assert await taker.schema() == {
        "type": "object",
        "properties": {"value": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "Value"}},
        "title": "takeArguments",
    }
    assert await taker.receives_of({}) is None
    assert await taker.receives(None) is None
    assert await taker.receives(5) == 5


@pytest.mark.case("C011")
@pytest.mark.parametrize(
    ("annotation", "shown", "sent", "value"),
    [
        (str, {"type": "string"}, "null", "null"),
        (list[int], {"items": {"type": "integer"}, "type": "array"}, "[1]", [1]),
        (Annotated[int, Field(ge=1)], {"minimum": 1, "type": "integer"}, 2, 2),
        (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}, "b", "b"),
        (datetime.date, {"format": "date", "type": "string"}, "2024-01-02", datetime.date(2024, 1, 2)),
        (User, {"$ref": "#/$defs/User"}, {"name": "a"}, User(name="a")),
        (StructItem, {"$ref": "#/$defs/StructItem"}, {"a": 1}, StructItem(1)),
    ],
    ids=short,
)
async def test_whatever_defaults_to_none_may_be_null(
    annotation: Any, shown: dict[str, Any], sent: Any, value: Any
) -> None:
    taker = Taker(annotation, None)
    published = await taker.property()
    assert published.pop("title", "Value") == "Value"
    assert published == {"anyOf": [shown, {"type": "null"}], "default": None}
    assert await taker.receives_of({}) is None
    assert await taker.receives(None) is None
    assert await taker.receives(sent) == value


@pytest.mark.case("C011")
async def test_a_bound_holds_for_what_is_not_null() -> None:
    assert (await Taker(Annotated[int, Field(ge=1)], None).refuses(0)).startswith(
        "value\n  Input should be greater than or equal to 1 [type=greater_than_equal, input_value=0, input_type=int]"
    )


@pytest.mark.case("C011", "C013")
@pytest.mark.parametrize("default", [math.inf, -math.inf, math.nan], ids=short)
async def test_a_default_without_json_is_kept_and_not_published(default: float) -> None:
    taker = Taker(float, default)
    assert await taker.schema() == {
        "type": "object",
        "properties": {"value": {"title": "Value", "type": "number"}},
        "title": "takeArguments",
    }
    assert repr(await taker.receives_of({})) == repr(default)


@pytest.mark.case("C011", "C013")
@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (int, "x"),
        (str, 5),
        (list[int], ["x"]),
        (Any, object()),
        (Any, Plain(1)),
        (Any, NamedOnly()),
        (list[float], [math.inf]),
        (dict[str, float], {"k": math.nan}),
        (Annotated[int, Field(ge=1)], 0),
        (list[int], "[1]"),
        (Item, {"b": "no a"}),
    ],
    ids=short,
)
async def test_a_default_that_does_not_fit_is_given_and_not_published(annotation: Any, default: Any) -> None:
    taker = Taker(annotation, default)
    schema = await taker.schema()
    assert "default" not in schema["properties"]["value"]
    assert "required" not in schema
    assert repr(await taker.receives_of({})) == repr(default)


@pytest.mark.case("C013")
@pytest.mark.parametrize(
    ("annotation", "default", "shown", "sent", "value"),
    [
        (datetime.datetime, MOMENT, "2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z", MOMENT),
        (datetime.date, datetime.date(2024, 1, 2), "2024-01-02", "2025-01-02", datetime.date(2025, 1, 2)),
        (decimal.Decimal, decimal.Decimal("1.10"), "1.10", 0.1, decimal.Decimal("0.1")),
        (decimal.Decimal, decimal.Decimal("1.10"), "1.10", "2.50", decimal.Decimal("2.50")),
        (uuid.UUID, ID, str(ID), str(ID), ID),
        (pathlib.Path, pathlib.Path("a/b"), str(pathlib.Path("a/b")), "c", pathlib.Path("c")),
        (datetime.timedelta, datetime.timedelta(seconds=90), "PT1M30S", "PT2S", datetime.timedelta(seconds=2)),
        (bytes, b"hi", "aGk=", "aG8=", b"ho"),
        (bytes, b"\xff\xef", "/+8=", "_-8=", b"\xff\xef"),
        (set[int], {1}, [1], [2, 2], {2}),
        (tuple[int, str], (1, "x"), [1, "x"], [2, "y"], (2, "y")),
        (Item, Item(a=7), {"a": 7, "b": "x"}, {"a": 8}, Item(a=8)),
        (DataItem, DataItem(7), {"a": 7, "b": "q"}, {"a": 8}, DataItem(8)),
        (StructItem, StructItem(7), {"a": 7, "b": "x"}, {"a": 8}, StructItem(8)),
        (AttrsItem, AttrsItem(7), {"a": 7, "b": "x"}, {"a": 8}, AttrsItem(8)),
        (RenamedStruct, RenamedStruct(7), {"pageSize": 7, "sortKey": "id"}, {"pageSize": 8}, RenamedStruct(8)),
        (list[StructItem], [StructItem(7)], [{"a": 7, "b": "x"}], [{"a": 8}], [StructItem(8)]),
        (list[bytes], [b"hi"], ["aGk="], ["aG8="], [b"ho"]),
        (BytesItem, BytesItem(data=b"\xff"), {"data": "/w=="}, {"data": "aG8="}, BytesItem(data=b"ho")),
    ],
    ids=short,
)
async def test_a_default_is_published_as_json_and_given_as_it_is(
    annotation: Any, default: Any, shown: Any, sent: Any, value: Any
) -> None:
    taker = Taker(annotation, default)
    schema = await taker.schema()
    published = schema["properties"]["value"]
    assert published["default"] == shown
    jsonschema.validate(shown, {**published, "$defs": schema.get("$defs", {})})
    for got, wanted in ((await taker.receives_of({}), default), (await taker.receives(sent), value)):
        assert (type(got), got) == (type(wanted), wanted)
    # What is published must be acceptable when it is sent back.
    got = await taker.receives(shown)
    assert (type(got), got) == (type(default), default)


@pytest.mark.parametrize(
    ("annotation", "default", "shown"),
    [
        (int, Field(5, ge=1, description="d"), {"default": 5, "description": "d", "minimum": 1, "type": "integer"}),
        (Annotated[int, Field(default=3)], _REQUIRED, {"default": 3, "type": "integer"}),
        (Annotated[int, Field(ge=0)], 3, {"default": 3, "minimum": 0, "type": "integer"}),
        (int, Field(default=3, title="Three"), {"default": 3, "title": "Three", "type": "integer"}),
    ],
)
async def test_a_default_may_come_from_field(annotation: Any, default: Any, shown: dict[str, Any]) -> None:
    taker = Taker(annotation, default)
    assert await taker.schema() == {
        "type": "object",
        "properties": {"value": {"title": "Value", **shown}},
        "title": "takeArguments",
    }
    assert await taker.receives_of({}) == shown["default"]
    assert await taker.receives("7") == 7


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (list[int], Field(default_factory=lambda: [9])),
        (Annotated[list[int], Field(default_factory=lambda: [9])], _REQUIRED),
    ],
    ids=["as_default", "in_annotated"],
)
async def test_a_factory_makes_a_new_default_for_each_call(annotation: Any, default: Any) -> None:
    taker = Taker(annotation, default)
    assert await taker.schema() == {
        "type": "object",
        "properties": {"value": {"items": {"type": "integer"}, "title": "Value", "type": "array"}},
        "title": "takeArguments",
    }
    first = await taker.receives_of({})
    first.append(1)
    assert await taker.receives_of({}) == [9]


# --- no arguments --------------------------------------------------------------------------


async def answer_to(arguments: Any) -> Any:
    mcp = MCPServer("none")

    @mcp.tool
    def nothing() -> str:
        return "ran"

    params: dict[str, Any] = {"name": "nothing"}
    if arguments is not _REQUIRED:
        params["arguments"] = arguments
    async with RawPeer.of(mcp.server) as peer:
        modern = await peer.modern(7, "tools/call", params)
        await peer.initialize()
        legacy = await peer.call(7, "tools/call", params)
    assert ("error" in modern) == ("error" in legacy)
    assert modern["id"] == legacy["id"] == 7
    return modern


@pytest.mark.case("C015")
@pytest.mark.parametrize("arguments", [_REQUIRED, None, {}], ids=["absent", "null", "empty"])
async def test_a_tool_without_parameters_needs_no_arguments(arguments: Any) -> None:
    assert (await answer_to(arguments))["result"]["structuredContent"] == {"result": "ran"}


@pytest.mark.case("C015")
@pytest.mark.parametrize("arguments", [[], "", "{}", 5, True], ids=repr)
async def test_arguments_that_are_no_object_are_the_protocols_error(arguments: Any) -> None:
    assert (await answer_to(arguments))["error"]["code"] == -32602


# --- classes of every library -----------------------------------------------------------------

WIDE: Final = {"inner": {"n": 1}, "many": [{"n": 2}], "labels": {"k": {"n": 3}}}


@pytest.mark.parametrize(
    ("annotation", "sent", "value"),
    [
        # dataclasses
        (Person, {"name": "a", "address": {"city": "c"}}, Person("a", Address("c"))),
        (
            Person,
            {"name": "a", "address": {"city": "c", "zip_codes": ["1"]}, "nick": "n"},
            Person("a", Address("c", [1]), "n"),
        ),
        (list[DataItem], [{"a": 1}], [DataItem(1)]),
        (dict[str, DataItem], {"k": {"a": 1}}, {"k": DataItem(1)}),
        (DataItem | None, None, None),
        # TypedDict, the standard library's on every version
        (Point, {"x": 1}, {"x": 1}),
        (Point, {"x": "1", "y": 2, "z": 3}, {"x": 1, "y": 2}),
        (Place, {"name": "n", "at": {"x": 1}}, {"name": "n", "at": {"x": 1}}),
        (list[Place], [{"name": "n", "at": {"x": 1}}], [{"name": "n", "at": {"x": 1}}]),
        (dict[str, Point], {"k": {"x": 1}}, {"k": {"x": 1}}),
        (Point | None, {"x": 1}, {"x": 1}),
        (Annotated[Point, Field(description="d")], {"x": 1}, {"x": 1}),
        (Loose, {"a": 1}, {"a": 1}),
        (LooseChild, {"x": 1, "z": "2"}, {"x": 1, "z": 2}),
        (LooseChild, {"x": 1}, {"x": 1}),
        # NamedTuple
        (Pair, [1], Pair(1)),
        (Pair, [1, "x"], Pair(1, "x")),
        (Pair, {"left": 1}, Pair(1)),
        (list[Pair], [[1], {"left": 2, "right": "y"}], [Pair(1), Pair(2, "y")]),
        # msgspec
        (StructItem, {"a": 1}, StructItem(1)),
        (StructItem, {"a": "1", "b": "y", "zz": 2}, StructItem(1, "y")),
        (list[StructItem], [{"a": 1}, {"a": 2}], [StructItem(1), StructItem(2)]),
        (dict[str, StructItem], {"k": {"a": 1}}, {"k": StructItem(1)}),
        (tuple[StructItem, ...], [{"a": 1}], (StructItem(1),)),
        (Sequence[StructItem], [{"a": 1}], [StructItem(1)]),
        (Mapping[str, StructItem], {"k": {"a": 1}}, {"k": StructItem(1)}),
        (StructItem | None, {"a": 1}, StructItem(1)),
        (StructItem | None, None, None),
        (Annotated[StructItem, Field(description="d")], {"a": 1}, StructItem(1)),
        (Outer, {"inner": {"n": 1}}, Outer(Inner(1))),
        (Outer, WIDE, Outer(Inner(1), [Inner(2)], {"k": Inner(3)})),
        (FactoryStruct, {}, FactoryStruct([])),
        (FrozenStruct, {"a": 1}, FrozenStruct(a=1)),
        (RenamedStruct, {"pageSize": 5}, RenamedStruct(5)),
        (RenamedStruct, {"pageSize": 5, "sortKey": "n"}, RenamedStruct(5, "n")),
        (FieldRenamed, {"pageSize": 5}, FieldRenamed(5)),
        (FieldRenamed, {}, FieldRenamed()),
        (ClosedStruct, {"a": 1}, ClosedStruct(1)),
        (Patch, {}, Patch()),
        (Patch, {"n": 5}, Patch(5)),
        (Limited, {"n": 1}, Limited(1)),
        (Checked, {"n": 0}, Checked(0)),
        (Circle | Square, {"type": "square", "side": 2}, Square(2)),
        (list[Circle | Square], [{"type": "circle", "radius": 1}], [Circle(1)]),
        (Started | Stopped, {"event": "Stopped", "code": 3}, Stopped(3)),
        (Started | Stopped | None, {"event": "Started", "at": 3}, Started(3)),
        (StructItem | str, '{"a":1}', '{"a":1}'),
        (StructItem | str, {"a": 1}, StructItem(1)),
        (StructItem | int, 5, 5),
        # attrs
        (AttrsItem, {"a": 1}, AttrsItem(1)),
        (list[AttrsItem], [{"a": "1", "zz": 2}], [AttrsItem(1)]),
        (AttrsItem | None, None, None),
        (AttrsOuter, {"inner": {"a": 1}}, AttrsOuter(AttrsItem(1))),
        (AttrsOuter, {"inner": {"a": 1}, "many": [{"a": 2}]}, AttrsOuter(AttrsItem(1), [AttrsItem(2)])),
        # recursive
        (Node, {"value": 1, "children": [{"value": 2}]}, Node(value=1, children=[Node(value=2)])),
        (DataNode, {"value": 1, "children": [{"value": 2}]}, DataNode(1, [DataNode(2)])),
        (StructNode, {"value": 1, "children": [{"value": 2}]}, StructNode(1, [StructNode(2)])),
        (list[StructNode], [{"value": 1}], [StructNode(1)]),
        # generic
        (Page[int], {"items": ["1"]}, Page[int](items=[1])),
        (Page[User], {"items": [{"name": "a"}]}, Page[User](items=[User(name="a")])),
        (DataPage[int], {"items": ["1"]}, DataPage([1])),
        (StructPage[int], {"items": ["1"]}, StructPage([1])),
        (StructPage[StructItem], {"items": [{"a": 1}]}, StructPage([StructItem(1)])),
        # told apart
        (
            list[Annotated[Dog | Cat, Field(discriminator="kind")]],
            [{"kind": "cat", "m": "z"}, {"kind": "dog", "n": 1}],
            [Cat(m="z"), Dog(n=1)],
        ),
        # pydantic
        (AliasedItem, {"pageSize": 3}, AliasedItem(pageSize=3)),
        (Mixed, {"data": {"a": 1}, "pair": [1]}, Mixed(data=DataItem(1), pair=Pair(1))),
        # bytes, at every depth
        (list[bytes], ["aGk="], [b"hi"]),
        (dict[str, bytes], {"k": "_-8="}, {"k": b"\xff\xef"}),
        (bytes | None, "aGk=", b"hi"),
        (BytesItem, {"data": "aGk="}, BytesItem(data=b"hi")),
        (list[BytesItem], [{"data": "/+8="}], [BytesItem(data=b"\xff\xef")]),
        (BytesData, {"data": "aGk="}, BytesData(b"hi")),
        (BytesStruct, {"data": "aGk="}, BytesStruct(b"hi")),
    ],
    ids=short,
)
async def test_a_class_is_made_of_its_json(annotation: Any, sent: Any, value: Any) -> None:
    taker = Taker(annotation)
    schema = await taker.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    got = await taker.receives(sent)
    assert (type(got), got) == (type(value), value)


MISFITS: Final[list[tuple[Any, Any, str]]] = [
    (Person, {"name": "a", "address": {}}, "value.address.city\n  Field required"),
    (Point, {"y": 2}, "value.x\n  Field required"),
    (Loose, {"b": 1}, "value.a\n  Field required"),
    (LooseChild, {"z": 1}, "value.x\n  Field required"),
    (Place, {"name": "n", "at": {"x": "y"}}, "value.at.x\n  Input should be a valid integer"),
    (Pair, ["x"], "value.0\n  Input should be a valid integer"),
    (StructItem, {"b": "x"}, "value.a\n  Field required"),
    (list[StructItem], [{"a": 1}, {"a": "y"}], "value.1.a\n  Input should be a valid integer"),
    (Outer, {"inner": {}}, "value.inner.n\n  Field required"),
    (RenamedStruct, {"page_size": 5}, "value.pageSize\n  Field required"),
    (
        ClosedStruct,
        {"a": 1, "z": 2},
        "value.z\n  Extra inputs are not permitted [type=extra_forbidden, input_value=2, input_type=int]",
    ),
    (
        Limited,
        {"n": 0},
        "value.n\n  Input should be greater than or equal to 1"
        " [type=greater_than_equal, input_value=0, input_type=int]",
    ),
    (Checked, {"n": -1}, "value\n  Value error, below zero [type=value_error"),
    (AttrsOuter, {"inner": {"a": "y"}}, "value.inner.a\n  Input should be a valid integer"),
    (StructNode, {"value": 1, "children": [{}]}, "value.children.0.value\n  Field required"),
    (DataPage[int], {"items": ["x"]}, "value.items.0\n  Input should be a valid integer"),
    (StructPage[int], {"items": ["x"]}, "value.items.0\n  Input should be a valid integer"),
]


@pytest.mark.parametrize(("annotation", "sent", "report"), MISFITS, ids=short)
async def test_what_does_not_fit_is_named_by_its_path(annotation: Any, sent: Any, report: str) -> None:
    assert (await Taker(annotation).refuses(sent)).startswith(report)


async def test_an_unknown_tag_is_refused() -> None:
    taker = Taker(Circle | Square)
    result = await call(taker.mcp, "take", {"value": {"type": "triangle", "side": 2}})
    assert (result.is_error, taker.got) == (True, [])
    assert text_of(result).startswith("Error executing tool take: ")


@pytest.mark.parametrize(
    ("annotation", "shown", "definitions"),
    [
        (
            Outer,
            {"$ref": "#/$defs/Outer"},
            {
                "Inner": {
                    "properties": {"n": {"title": "N", "type": "integer"}},
                    "required": ["n"],
                    "title": "Inner",
                    "type": "object",
                },
                "Outer": {
                    "properties": {
                        "inner": {"$ref": "#/$defs/Inner"},
                        "many": {"items": {"$ref": "#/$defs/Inner"}, "title": "Many", "type": "array"},
                        "labels": {
                            "additionalProperties": {"$ref": "#/$defs/Inner"},
                            "title": "Labels",
                            "type": "object",
                        },
                    },
                    "required": ["inner"],
                    "title": "Outer",
                    "type": "object",
                },
            },
        ),
        (
            RenamedStruct,
            {"$ref": "#/$defs/RenamedStruct"},
            {
                "RenamedStruct": {
                    "properties": {
                        "pageSize": {"title": "Pagesize", "type": "integer"},
                        "sortKey": {"default": "id", "title": "Sortkey", "type": "string"},
                    },
                    "required": ["pageSize"],
                    "title": "RenamedStruct",
                    "type": "object",
                }
            },
        ),
        (
            ClosedStruct,
            {"$ref": "#/$defs/ClosedStruct"},
            {
                "ClosedStruct": {
                    "additionalProperties": False,
                    "properties": {"a": {"title": "A", "type": "integer"}},
                    "required": ["a"],
                    "title": "ClosedStruct",
                    "type": "object",
                }
            },
        ),
        (
            Patch,
            {"$ref": "#/$defs/Patch"},
            {
                "Patch": {
                    "description": "What to change; a member that is left out stays as it is.",
                    "properties": {"n": {"title": "N", "type": "integer"}},
                    "title": "Patch",
                    "type": "object",
                }
            },
        ),
        (
            Limited,
            {"$ref": "#/$defs/Limited"},
            {
                "Limited": {
                    "properties": {"n": {"description": "How many.", "minimum": 1, "title": "N", "type": "integer"}},
                    "required": ["n"],
                    "title": "Limited",
                    "type": "object",
                }
            },
        ),
        (
            Point,
            {"$ref": "#/$defs/Point"},
            {
                "Point": {
                    "properties": {
                        "x": {"title": "X", "type": "integer"},
                        "y": {"title": "Y", "type": "integer"},
                    },
                    "required": ["x"],
                    "title": "Point",
                    "type": "object",
                }
            },
        ),
        (
            Pair,
            {"$ref": "#/$defs/Pair"},
            {
                "Pair": {
                    "maxItems": 2,
                    "minItems": 1,
                    "prefixItems": [
                        {"title": "Left", "type": "integer"},
                        {"default": "r", "title": "Right", "type": "string"},
                    ],
                    "type": "array",
                }
            },
        ),
        (
            list[StructNode],
            {"items": {"$ref": "#/$defs/StructNode"}, "title": "Value", "type": "array"},
            {
                "StructNode": {
                    "properties": {
                        "value": {"title": "Value", "type": "integer"},
                        "children": {
                            "items": {"$ref": "#/$defs/StructNode"},
                            "title": "Children",
                            "type": "array",
                        },
                    },
                    "required": ["value"],
                    "title": "StructNode",
                    "type": "object",
                }
            },
        ),
        (
            AttrsItem | None,
            {"anyOf": [{"$ref": "#/$defs/AttrsItem"}, {"type": "null"}]},
            {
                "AttrsItem": {
                    "properties": {
                        "a": {"title": "A", "type": "integer"},
                        "b": {"default": "x", "title": "B", "type": "string"},
                    },
                    "required": ["a"],
                    "title": "AttrsItem",
                    "type": "object",
                }
            },
        ),
    ],
    ids=short,
)
async def test_the_schema_of_a_class_is_that_of_the_same_dataclass(
    annotation: Any, shown: dict[str, Any], definitions: dict[str, Any]
) -> None:
    assert await Taker(annotation).schema() == {
        "type": "object",
        "$defs": definitions,
        "properties": {"value": shown},
        "required": ["value"],
        "title": "takeArguments",
    }


async def test_the_schema_of_tagged_structs_tells_them_apart() -> None:
    schema = await Taker(Circle | Square).schema()
    validator: Any = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"value": {"type": "circle", "radius": 1}})
    assert validator.is_valid({"value": {"type": "square", "side": 1}})
    assert not validator.is_valid({"value": {"type": "square", "radius": 1}})
    assert not validator.is_valid({"value": {"type": "triangle", "radius": 1}})
    assert schema["$defs"]["Circle"]["properties"]["type"]["const"] == "circle"


async def test_the_schema_of_bytes_is_the_same_at_every_depth() -> None:
    binary = {"contentEncoding": "base64", "format": "binary", "type": "string"}
    assert await Taker(list[bytes]).property() == {"items": binary, "title": "Value", "type": "array"}
    for annotation in (BytesItem, BytesData, BytesStruct):
        schema = await Taker(annotation).schema()
        assert schema["$defs"][annotation.__name__]["properties"]["data"] == {"title": "Data", **binary}


@pytest.mark.parametrize("annotation", [Plain, list[Plain], dict[str, Plain], Plain | None], ids=short)
def test_a_class_that_says_nothing_of_its_making_is_no_parameter(annotation: Any) -> None:
    with pytest.raises(InvalidSignature, match=r"(?s)'take'.*'value'.*Plain"):
        Taker(annotation)


# --- one schema without references -----------------------------------------------------------

ITEM: Final = {
    "description": "An item.",
    "properties": {
        "a": {"title": "A", "type": "integer"},
        "b": {"default": "x", "title": "B", "type": "string"},
    },
    "required": ["a"],
    "title": "Item",
    "type": "object",
}


async def test_references_may_be_replaced_by_what_they_refer_to() -> None:
    mcp = MCPServer("inline", inline_refs=True)

    @mcp.tool
    def keep(
        one: Item,
        many: list[Item],
        told: Annotated[Item, Field(description="Told.")],
        maybe: Item | None = None,
        given: Item = Item(a=7),  # noqa: B008
    ) -> str:
        return repr((one, many, told, maybe, given))

    assert (await listed(mcp))["keep"] == {
        "type": "object",
        "properties": {
            "one": ITEM,
            "many": {"items": ITEM, "title": "Many", "type": "array"},
            "told": {**ITEM, "description": "Told."},
            "maybe": {"anyOf": [ITEM, {"type": "null"}], "default": None},
            "given": {**ITEM, "default": {"a": 7, "b": "x"}},
        },
        "required": ["one", "many", "told"],
        "title": "keepArguments",
    }
    sent = {"one": {"a": 1}, "many": '[{"a":2}]', "told": {"a": 3}}
    one, two, three, seven = (Item(a=n) for n in (1, 2, 3, 7))
    assert await text(mcp, "keep", sent) == repr((one, [two], three, None, seven))


async def test_a_class_that_contains_itself_keeps_its_reference() -> None:
    mcp = MCPServer("inline", inline_refs=True)

    @mcp.tool
    def keep(node: Node, item: Item) -> str:
        return repr((node, item))

    schema = (await listed(mcp))["keep"]
    assert schema["properties"] == {"node": {"$ref": "#/$defs/Node"}, "item": ITEM}
    assert list(schema["$defs"]) == ["Node"]
    jsonschema.validate({"node": {"value": 1, "children": [{"value": 2}]}, "item": {"a": 1}}, schema)


async def test_references_stay_unless_told_otherwise() -> None:
    assert await Taker(Item).property() == {"$ref": "#/$defs/Item"}


# --- names of parameters -----------------------------------------------------------------------

NAMES: Final = [
    "copy",
    "json",
    "schema",
    "dict",
    "construct",
    "validate",
    "model_config",
    "model_dump",
    "model_fields",
    "model_validate",
    "model_name",
    "self",
    "cls",
    "_a",
    "__b",
    "_",
    "__c__",
    "p0",
    "p1",
    "field_0",
    "name",
    "arguments",
    "result",
    "ctx",
    "args",
    "kwargs",
    "größe",
    "type",
    "id",
    "__doc__",
    "__dict__",
    "__class__",
]


def taking(parameter: str) -> Callable[..., Any]:
    """A function with an integer parameter of this name."""
    scope: dict[str, Any] = {}
    exec(f"def take({parameter}: int) -> int:\n    return {parameter}", scope)
    function: Callable[..., Any] = scope["take"]
    return function


@pytest.mark.parametrize("parameter", NAMES)
async def test_a_parameter_may_have_any_name(parameter: str) -> None:
    mcp = MCPServer("names")
    mcp.add_tool(taking(parameter))
    schema = (await listed(mcp))["take"]
    assert list(schema["properties"]) == [parameter]
    assert schema["required"] == [parameter]
    assert schema["properties"][parameter]["type"] == "integer"
    assert await text(mcp, "take", {parameter: 5}) == "5"
    assert (await error(mcp, "take", {})).split("\n")[1] == parameter


async def test_all_those_names_at_once() -> None:
    mcp = MCPServer("names")
    scope: dict[str, Any] = {}
    exec(
        f"def take({', '.join(f'{name}: int' for name in NAMES)}) -> list[int]:\n    return [{', '.join(NAMES)}]",
        scope,
    )
    mcp.add_tool(scope["take"])
    sent = {name: number for number, name in enumerate(NAMES)}
    assert (await call(mcp, "take", sent)).structured_content == {"result": list(range(len(NAMES)))}


async def test_aliases_may_be_any_text_and_cross() -> None:
    mcp = MCPServer("aliases")

    @mcp.tool
    def cross(a: Annotated[int, Field(alias="b")], b: Annotated[int, Field(alias="a")]) -> str:
        return f"a={a} b={b}"

    @mcp.tool
    def odd(
        since: Annotated[int, Field(alias="from")],
        kind: Annotated[str, Field(alias="@type", description="Kind.")] = "k",
    ) -> str:
        return f"{since} {kind}"

    schemas = await listed(mcp)
    assert list(schemas["cross"]["properties"]) == ["b", "a"]
    assert schemas["odd"]["properties"] == {
        "from": {"title": "From", "type": "integer"},
        "@type": {"default": "k", "description": "Kind.", "title": "@Type", "type": "string"},
    }
    assert schemas["odd"]["required"] == ["from"]
    assert await text(mcp, "cross", {"a": 1, "b": 2}) == "a=2 b=1"
    assert await text(mcp, "odd", {"from": 3, "@type": "t"}) == "3 t"
    assert await text(mcp, "odd", {"from": 3, "kind": "ignored"}) == "3 k"


def test_two_parameters_cannot_share_a_name_on_the_wire() -> None:
    mcp = MCPServer("aliases")

    def clash(a: Annotated[int, Field(alias="b")], b: int) -> str:
        return f"{a} {b}"

    with pytest.raises(InvalidSignature, match=r"clash.*'b'"):
        mcp.add_tool(clash)


async def test_an_alias_may_be_given_with_the_default() -> None:
    taker = Taker(int, Field(5, alias="aA"))
    assert (await taker.schema())["properties"] == {"aA": {"default": 5, "title": "Aa", "type": "integer"}}
    assert await taker.receives_of({"aA": 7}) == 7
    assert await taker.receives_of({}) == 5


async def test_json_text_for_an_alias_is_parsed_too() -> None:
    assert await Taker(Annotated[list[int], Field(alias="aA")]).receives_of({"aA": "[1]"}) == [1]


# --- callables ----------------------------------------------------------------------------------


def greet(greeting: str, name: str, mark: str = "!") -> str:
    """Says hello."""
    return f"{greeting} {name}{mark}"


async def greet_later(greeting: str, name: str, mark: str = "!") -> str:
    return f"{greeting} {name}{mark}"


class Greeter:
    """Holds what to say."""

    def __init__(self, greeting: str) -> None:
        self.greeting = greeting

    def say(self, name: str, mark: str = "!") -> str:
        """Says it."""
        return f"{self.greeting} {name}{mark}"

    @logged
    def say_logged(self, name: str) -> str:
        return f"{self.greeting} {name}!"

    @classmethod
    def hello(cls, name: str) -> str:
        return cls("hello").say(name)

    @staticmethod
    def bye(name: str) -> str:
        return f"bye {name}!"

    def __call__(self, name: str) -> str:
        return self.say(name)


class LateGreeter:
    async def __call__(self, name: str) -> str:
        return f"late {name}!"


@pytest.mark.parametrize(
    ("function", "told", "properties"),
    [
        (functools.partial(greet, "hi"), "hi Ann!", ["name", "mark"]),
        (functools.partial(greet, "hi", mark="?"), "hi Ann?", ["name"]),
        (functools.partial(greet, greeting="hi", mark="?"), "hi Ann?", ["name"]),
        (functools.partial(functools.partial(greet, "hi"), mark="?"), "hi Ann?", ["name"]),
        (functools.partial(greet_later, "hi"), "hi Ann!", ["name", "mark"]),
        (functools.partial(Greeter("hey").say, mark="?"), "hey Ann?", ["name"]),
        (functools.partial(logged(greet), "hi"), "hi Ann!", ["name", "mark"]),
        (Greeter("hey").say, "hey Ann!", ["name", "mark"]),
        (Greeter("hey").say_logged, "hey Ann!", ["name"]),
        (Greeter.hello, "hello Ann!", ["name"]),
        (Greeter("x").hello, "hello Ann!", ["name"]),
        (Greeter.bye, "bye Ann!", ["name"]),
        (Greeter("hey"), "hey Ann!", ["name"]),
        (LateGreeter(), "late Ann!", ["name"]),
    ],
    ids=[
        "partial",
        "partial_with_keyword",
        "partial_by_keyword",
        "partial_of_partial",
        "partial_of_async",
        "partial_of_method",
        "partial_of_wrapped",
        "method",
        "wrapped_method",
        "class_method",
        "class_method_of_object",
        "static_method",
        "object",
        "async_object",
    ],
)
async def test_whatever_can_be_called_can_be_a_tool(
    function: Callable[..., Any], told: str, properties: list[str]
) -> None:
    mcp = MCPServer("callables")
    mcp.add_tool(function, name="tool")
    schema = (await listed(mcp))["tool"]
    assert list(schema["properties"]) == properties
    assert schema["required"] == ["name"]
    result = await call(mcp, "tool", {"name": "Ann"})
    assert (text_of(result), result.structured_content) == (told, {"result": told})


async def test_a_partial_function_is_named_and_described_by_the_inner_one() -> None:
    mcp = MCPServer("callables")
    mcp.add_tool(functools.partial(greet, "hi"))
    mcp.add_tool(functools.partial(functools.partial(greet_later, "hi"), mark="?"))
    async with Client(mcp) as client:
        tools = (await client.list_tools()).tools
    assert [(tool.name, tool.description) for tool in tools] == [("greet", "Says hello."), ("greet_later", None)]


async def test_a_closure_keeps_what_it_closes_over() -> None:
    mcp = MCPServer("closures")

    def make(factor: int) -> Callable[[int], int]:
        def times(n: int) -> int:
            return n * factor

        return times

    mcp.add_tool(make(2), name="double")
    mcp.add_tool(make(3), name="triple")
    assert await text(mcp, "double", {"n": 5}) == "10"
    assert await text(mcp, "triple", {"n": 5}) == "15"


async def test_a_plain_function_that_gives_an_awaitable() -> None:
    mcp = MCPServer("awaitable")

    @mcp.tool
    def start(name: str) -> Awaitable[str]:
        return greet_later("hi", name)

    result = await call(mcp, "start", {"name": "Ann"})
    assert (text_of(result), result.structured_content) == ("hi Ann!", {"result": "hi Ann!"})


# --- descriptions from docstrings ------------------------------------------------------------


def google(query: str, limit: int = 5, flag: bool = False) -> str:
    """Find books.

    The catalog is searched as a whole.

    Args:
        query: What to look for.
        limit (int, optional): How many to give
            at most.
    """
    return f"{query} {limit} {flag}"


def numpy(query: str, limit: int = 5, flag: bool = False) -> str:
    """Find books.

    The catalog is searched as a whole.

    Parameters
    ----------
    query : str
        What to look for.
    limit : int, optional
        How many to give
        at most.
    """
    return f"{query} {limit} {flag}"


def sphinx(query: str, limit: int = 5, flag: bool = False) -> str:
    """Find books.

    The catalog is searched as a whole.

    :param query: What to look for.
    :param int limit: How many to give
        at most.
    """
    return f"{query} {limit} {flag}"


@pytest.mark.parametrize("function", [google, numpy, sphinx], ids=lambda function: function.__name__)
async def test_parameter_sections_become_descriptions(function: Callable[..., Any]) -> None:
    mcp = MCPServer("docs")
    mcp.add_tool(function)
    async with Client(mcp) as client:
        (tool,) = (await client.list_tools()).tools
    assert tool.description == "Find books.\n\nThe catalog is searched as a whole."
    assert tool.input_schema["properties"] == {
        "query": {"description": "What to look for.", "title": "Query", "type": "string"},
        "limit": {"default": 5, "description": "How many to give at most.", "title": "Limit", "type": "integer"},
        "flag": {"default": False, "title": "Flag", "type": "boolean"},
    }


async def test_what_the_annotation_says_goes_before_the_docstring() -> None:
    mcp = MCPServer("docs")

    @mcp.tool
    def find(
        a: Annotated[str, Field(description="By Field.")],
        b: Annotated[str, "By a string."],
        c: str,
        ctx: Context,
        d: str = Field("x", description="As the default."),
        e: Annotated[str, Field(min_length=1)] = "e",
    ) -> str:
        """Find.

        Args:
            a: By the docstring.
            b: By the docstring.
            c: By the docstring.
            ctx: Not for the model.
            d: By the docstring.
            e: By the docstring.
            f: There is none.
        """
        return a + b + c + d + e

    shown = (await listed(mcp))["find"]["properties"]
    assert {name: described["description"] for name, described in shown.items()} == {
        "a": "By Field.",
        "b": "By a string.",
        "c": "By the docstring.",
        "d": "As the default.",
        "e": "By the docstring.",
    }


async def test_a_description_goes_beside_a_reference() -> None:
    mcp = MCPServer("docs")

    @mcp.tool
    def keep(item: Item) -> str:
        """Keep it.

        Args:
            item: What to keep.
        """
        return repr(item)

    assert (await listed(mcp))["keep"]["properties"] == {
        "item": {"$ref": "#/$defs/Item", "description": "What to keep."}
    }


async def test_a_description_by_the_author_leaves_the_sections_to_the_parameters() -> None:
    mcp = MCPServer("docs")
    mcp.add_tool(google, description="By hand.")
    async with Client(mcp) as client:
        (tool,) = (await client.list_tools()).tools
    assert tool.description == "By hand."
    assert tool.input_schema["properties"]["query"]["description"] == "What to look for."


# --- broken text, odd text, deep values -------------------------------------------------------


def request(arguments: bytes, request_id: bytes = b"7") -> bytes:
    """A call of `take` with these arguments, which need not be JSON."""
    return b'{"jsonrpc":"2.0","id":%b,"method":"tools/call","params":{"name":"take","arguments":%b,"_meta":%b}}' % (
        request_id,
        arguments,
        json.dumps(modern_meta()).encode(),
    )


async def answer(taker: Taker, arguments: bytes, request_id: bytes = b"7") -> Any:
    answered = await taker.mcp.server.handle(request(arguments, request_id))
    assert answered is not None
    return json.loads(answered)


@pytest.mark.parametrize(
    "arguments",
    [
        b'{"value":"\xff"}',
        b'{"value":"a\x97b"}',
        b'{"value":"\xed\xa0\x80"}',
        b'{"value":"\xc0\xaf"}',
        b'{"value":"cut \xe2\x82"}',
        b'{"value":{"deep":["\xff"]}}',
        b'{"\xff":1,"value":1}',
    ],
    ids=repr,
)
@pytest.mark.parametrize("request_id", [b"7", b'"seven"'])
@pytest.mark.parametrize("annotation", [str, Any, list[str], Item], ids=short)
async def test_wrong_utf_8_is_a_parse_error_with_the_id(annotation: Any, arguments: bytes, request_id: bytes) -> None:
    taker = Taker(annotation)
    got = await answer(taker, arguments, request_id)
    assert got["error"]["code"] == -32700
    assert got["id"] == json.loads(request_id)
    assert taker.got == []


@pytest.mark.case("C054")
@pytest.mark.parametrize(
    ("sent", "value"),
    [
        (rb'"a\ud800b"', "a\ufffdb"),
        (rb'"\udfff"', "\ufffd"),
        (rb'"\ud800\ud800"', "\ufffd\ufffd"),
        (rb'"\udc00\ud800"', "\ufffd\ufffd"),
        (rb'"\ud83d\ude00 \ud83d"', "\U0001f600 \ufffd"),
        (rb'"\\ud800 \ud800"', "\\ud800 \ufffd"),
        (b'"\\\\\\ud800 \xc3\xa9"', "\\\ufffd é"),
        (rb'["\ud800", {"k\ud800": "\ud800"}]', ["\ufffd", {"k\ufffd": "\ufffd"}]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("annotation", [Any, object, str | list[Any]], ids=short)
async def test_a_lone_surrogate_arrives_as_the_replacement_character(annotation: Any, sent: bytes, value: Any) -> None:
    taker = Taker(annotation)
    got = await answer(taker, b'{"value":%b}' % sent)
    assert got["id"] == 7
    assert got["result"]["isError"] is False
    assert taker.got == [value]


@pytest.mark.case("C054")
async def test_a_lone_surrogate_does_not_hide_what_else_is_wrong() -> None:
    taker = Taker(int)
    got = await answer(taker, rb'{"value":"\ud800"}')
    assert got["result"]["content"][0]["text"] == (
        "Error executing tool take: 1 validation error for takeArguments\nvalue\n"
        "  Input should be a valid integer, unable to parse string as an integer"
        " [type=int_parsing, input_value='\ufffd', input_type=str]"
    )


@pytest.mark.case("C054", "C003")
async def test_json_text_with_a_lone_surrogate_is_still_parsed() -> None:
    taker = Taker(list[str])
    await answer(taker, rb'{"value":"[\"\\ud800\"]"}')
    assert taker.got == [["\ufffd"]]


@pytest.mark.case("C054")
async def test_integers_beside_a_lone_surrogate_stay_exact() -> None:
    taker = Taker(Any)
    await answer(taker, rb'{"value":["\ud800", 12345678901234567890123, 0.1, null]}')
    assert taker.got == [["\ufffd", 12345678901234567890123, 0.1, None]]


@pytest.mark.parametrize("depth", [1000, 5000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")], ids=["arrays", "objects"])
async def test_too_deep_arguments_are_invalid_params_with_the_id(depth: int, opening: bytes, closing: bytes) -> None:
    taker = Taker(Any)
    got = await answer(taker, b'{"value":%b1%b}' % (opening * depth, closing * depth))
    assert got["id"] == 7
    assert got["error"]["code"] == -32602
    assert taker.got == []
    assert (await answer(taker, b'{"value":1}'))["result"]["isError"] is False


@pytest.mark.parametrize("depth", [10, 100, 180, 190, 200, 210, 250, 300, 500])
async def test_depth_is_never_the_models_fault(depth: int) -> None:
    taker = Taker(Any)
    got = await answer(taker, b'{"value":%b1%b}' % (b"[" * depth, b"]" * depth))
    assert got["id"] == 7
    if "error" in got:
        assert got["error"]["code"] == -32602
        assert depth > 100
    else:
        assert got["result"]["isError"] is False, got["result"]["content"]
        value: Any = 1
        for _ in range(depth):
            value = [value]
        assert taker.got == [value]


@pytest.mark.parametrize("depth", [300, 1000, 5000])
async def test_json_text_that_is_too_deep_is_text(depth: int) -> None:
    sent = "[" * depth + "]" * depth
    result = await call(Taker(list[int]).mcp, "take", {"value": sent})
    assert result.is_error
    assert "Input should be a valid array [type=list_type" in text_of(result)


@pytest.mark.parametrize("number", ["1e400", "-1e400"])
async def test_a_number_beyond_floats_is_told_to_the_model_or_the_protocol(number: str) -> None:
    got = await answer(Taker(int), b'{"value":%b}' % number.encode())
    assert got["id"] == 7
    assert got.get("error", {"code": -32602})["code"] == -32602
    assert "result" not in got or got["result"]["isError"] is True


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x10"])
@pytest.mark.parametrize("annotation", [float, Any], ids=short)
async def test_what_is_no_number_of_json_is_a_parse_error(annotation: Any, number: str) -> None:
    taker = Taker(annotation)
    got = await answer(taker, b'{"value":%b}' % number.encode())
    assert (got["id"], got["error"]["code"]) == (7, -32700)
    assert taker.got == []


async def test_msgspec_values_are_those_of_the_function_not_of_the_message() -> None:
    """Nothing that a tool keeps may change when the buffer of the message is used again."""
    taker = Taker(StructItem)
    await answer(taker, b'{"value":{"a":1,"b":"kept"}}')
    await answer(taker, b'{"value":{"a":2,"b":"next"}}')
    assert [msgspec.structs.asdict(value) for value in taker.got] == [{"a": 1, "b": "kept"}, {"a": 2, "b": "next"}]

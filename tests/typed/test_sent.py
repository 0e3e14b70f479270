"""What is sent is what was validated, and fits what is published: whatever class, serializer or alias made it."""

# ruff: noqa: UP045 - both notations are tried

from __future__ import annotations

import dataclasses
import enum
import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Annotated, Any, Literal, Optional, cast

import attrs
import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    AnyUrl,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    RootModel,
    WrapSerializer,
    computed_field,
    field_serializer,
    field_validator,
    model_serializer,
)
from typing_extensions import TypedDict

from mcp_core import Client
from mcp_core.testing import flush_logs
from mcp_core.types import CallToolResult, InputRequiredResult, TextContent
from mcp_typed import Audio, Image, InvalidSignature, MCPServer
from mcp_typed.plain import CLASSES, ITEMS, _serializer_of, to_builtins  # pyright: ignore[reportPrivateUsage]
from tests.property.strategies import fast


@dataclasses.dataclass
class D:
    a: int


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    a: int
    tags: list[str] = dataclasses.field(default_factory=list[str])


class M(BaseModel):
    a: int


class Sub(M):
    b: int = 0


class Bounded(BaseModel):
    n: Annotated[int, Field(ge=0)]
    kind: Literal["x", "y"] = "x"
    names: Annotated[list[str], Field(max_length=2)] = []


class Item(TypedDict):
    k: int


class Outer(BaseModel):
    m: M
    d: D | None = None
    many: list[M] = []
    by_name: dict[str, M] = {}
    item: Item = {"k": 1}


class Root(RootModel[list[int]]):
    pass


class Optionals(BaseModel):
    a: str | None
    b: int | None = None
    c: Any = None


@attrs.define
class Attrs:
    a: int

    def __attrs_post_init__(self) -> None:
        if self.a == 99:
            self.a = "99"  # type: ignore[assignment] # pyright: ignore[reportAttributeAccessIssue]


class Struct(msgspec.Struct):
    a: int
    b: str | None = None

    def __post_init__(self) -> None:
        if self.a == 99:
            self.a = "99"  # type: ignore[assignment] # pyright: ignore[reportAttributeAccessIssue]


class Perm(enum.IntFlag):
    READ = 1
    WRITE = 2


class Mode(enum.Flag):
    A = 1
    B = 2


made = M.model_construct


def given_as(value: Any) -> Any:
    """A value, past what type checkers say of it."""
    return value


def returning(annotation: Any, value: Any, **options: Any) -> MCPServer:
    def f() -> Any:
        return value() if callable(value) and getattr(value, "__name__", "") == "<lambda>" else value

    f.__annotations__["return"] = annotation
    server = MCPServer("sent", mask_errors=False)
    server.add_tool(f, **options)
    return server


async def sent(annotation: Any, value: Any) -> tuple[dict[str, Any], CallToolResult]:
    """The output schema, and the result, which fits it and says the same in its text."""
    async with Client(returning(annotation, value, structured_output=True)) as client:
        (tool,) = (await client.list_tools()).tools
        result = await client.call_tool("f")
    assert tool.output_schema is not None
    if not result.is_error:
        jsonschema.validate(result.structured_content, tool.output_schema)
    return tool.output_schema, result


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


@pytest.mark.fault("X-01")
@pytest.mark.parametrize(
    ("annotation", "value", "data"),
    [
        (D, D(given_as("7")), {"a": 7}),
        (D, D(given_as(7.0)), {"a": 7}),
        (D | None, D(given_as("7")), {"result": {"a": 7}}),
        (list[D], [D(1), D(given_as("7"))], {"result": [{"a": 1}, {"a": 7}]}),
        (dict[str, D], {"x": D(given_as("7"))}, {"x": {"a": 7}}),
        (tuple[M, D], (made(a="7"), D(given_as("8"))), {"result": [{"a": 7}, {"a": 8}]}),
        (M | D, D(given_as("8")), {"result": {"a": 8}}),
        (Frozen, Frozen(given_as("7"), given_as(("x",))), {"a": 7, "tags": ["x"]}),
        (M, made(a="7"), {"a": 7}),
        (M, Sub.model_construct(a="7", b=1), {"a": 7}),
        (list[M], [M(a=1), made(a="7")], {"result": [{"a": 1}, {"a": 7}]}),
        (Outer, Outer.model_construct(m=made(a="7")), None),
        (Outer, Outer(m=M(a=1), d=D(given_as("7"))), None),
        (Outer, Outer.model_construct(m={"a": "7"}, many=[{"a": "8"}], by_name={"x": made(a="9")}), None),
        (Root, Root.model_construct(given_as(["1", 2])), {"result": [1, 2]}),
        (Attrs, Attrs(given_as("7")), {"a": 7}),
        (list[Struct], [Struct(given_as("7"), "x")], {"result": [{"a": 7, "b": "x"}]}),
        (Optionals, Optionals(a=None, c=[None, {"k": None}]), {"a": None, "b": None, "c": [None, {"k": None}]}),
        (Optionals, Optionals(a="null", c="null"), {"a": "null", "b": None, "c": "null"}),
        (Annotated[int, AfterValidator(str)], 3, {"result": 3}),
    ],
)
async def test_what_is_sent_is_what_was_validated(annotation: Any, value: Any, data: Any) -> None:
    _, result = await sent(annotation, value)
    assert not result.is_error, text_of(result)
    if data is not None:
        assert result.structured_content == data
    whole: Any = result.structured_content
    inner = whole["result"] if list(whole) == ["result"] else whole
    if isinstance(inner, dict):
        assert json.loads(text_of(result)) == inner


@pytest.mark.fault("X-01")
@pytest.mark.parametrize(
    ("annotation", "value", "place"),
    [
        (D, D(given_as("x")), "a"),
        (D, D(given_as(None)), "a"),
        (D, D(given_as([])), "a"),
        (M, made(a=None), "a"),
        (M, made(), "a"),
        (list[M], [M(a=1), made()], "result.1.a"),
        (Outer, Outer.model_construct(m=made(a=None)), "m.a"),
        (Outer, Outer.model_construct(m=M(a=1), item={}), "item.k"),
        (Outer, Outer.model_construct(m=M(a=1), many=[None]), "many.0"),
        (Bounded, Bounded.model_construct(n=-1), "n"),
        (Bounded, Bounded.model_construct(n=1, kind="z"), "kind"),
        (Bounded, Bounded.model_construct(n=1, names=["a", "b", "c"]), "names"),
        (Annotated[int, AfterValidator(lambda _: None)], 3, "result"),
    ],
)
async def test_what_does_not_fit_is_not_sent(annotation: Any, value: Any, place: str) -> None:
    _, result = await sent(annotation, value)
    assert result.is_error
    assert f"\n{place}\n" in text_of(result)


@pytest.mark.fault("X-01")
async def test_a_valid_value_is_not_validated_again() -> None:
    class Doubled(BaseModel):
        n: int
        note: str | None = None

        @field_validator("n")
        @classmethod
        def double(cls, n: int) -> int:
            return 2 * n

    value = [Doubled(n=1, note="null"), Doubled(n=2), Doubled.model_construct(n="5")]
    _, result = await sent(list[Doubled], value)
    numbers = [item["n"] for item in given_as(result.structured_content)["result"]]
    assert numbers == [2, 4, 5]


@pytest.mark.fault("X-01")
async def test_what_a_dataclass_does_when_it_is_made_is_done_once() -> None:
    @dataclasses.dataclass
    class Counted:
        n: int
        start: dataclasses.InitVar[int]
        made: int = dataclasses.field(init=False, default=0)

        def __post_init__(self, start: int) -> None:
            self.made += start

    _, result = await sent(Counted, Counted(given_as("7"), 1))
    assert result.structured_content == {"n": 7, "made": 1}


@pytest.mark.fault("X-01")
@pytest.mark.parametrize("value", [Attrs(99), Struct(99)])
async def test_what_a_class_makes_of_itself_is_looked_at(value: Any) -> None:
    _, result = await sent(type(value), value)
    assert result.is_error
    assert "(a)" in text_of(result)


# --- what has no end, and other returns -------------------------------------------------------------


class Node(BaseModel):
    c: Any = None


@dataclasses.dataclass
class DNode:
    c: Any = None


def in_itself(make: Callable[[], Any], put: Callable[[Any, Any], Any]) -> Any:
    value = make()
    put(value, value)
    return value


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


ENDLESS = [
    in_itself(list, lambda value, item: value.append(item)),
    in_itself(dict, lambda value, item: value.update(a=item)),
    in_itself(Node, lambda value, item: setattr(value, "c", item)),
    in_itself(DNode, lambda value, item: setattr(value, "c", item)),
    nested(100_000),
]


@pytest.mark.parametrize("annotation", [Any, None, "own"])
@pytest.mark.parametrize("value", ENDLESS, ids=["list", "dict", "model", "dataclass", "deep"])
async def test_a_value_without_end_is_an_error(value: Any, annotation: Any) -> None:
    server = returning(type(value) if annotation == "own" else annotation, value)
    if annotation is None:
        server = MCPServer("sent", mask_errors=False)
        server.add_tool(lambda: value, name="f")
    begun = time.process_time()
    async with Client(server) as client:
        result = await client.call_tool("f")
    assert result.is_error
    assert text_of(result).endswith("the returned value is nested too deeply, or contains itself")
    assert time.process_time() - begun < 10, "it was tried again at each level"


async def test_an_iterator_without_end_is_an_error() -> None:
    def for_ever() -> Iterator[int]:
        while True:
            yield 0

    async with Client(returning(list[int], lambda: for_ever())) as client:
        result = await client.call_tool("f")
    assert f"more than {ITEMS:,} items" in text_of(result)


def test_serializers_of_classes_are_kept_up_to_a_number() -> None:
    for number in range(CLASSES + 10):
        to_builtins(dataclasses.make_dataclass(f"Made{number}", [("x", int)])(1))
    assert _serializer_of.cache_info().currsize == CLASSES


@pytest.mark.fault("X-13")
@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (dict[str, str], {"k\ud800": "v"}),
        (dict[str, Any], {"k\ud800": "v"}),
        (Node, Node(c={"k\ud800": "v"})),
        (list[dict[str, str]], [{"k\ud800": "v\ud800"}]),
    ],
)
async def test_a_lone_surrogate_in_a_key_is_one_replacement(
    annotation: Any, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    _, result = await sent(annotation, value)
    flush_logs()
    assert json.dumps(result.structured_content).count('k\\ufffd"') == 1
    assert sum("not valid Unicode" in record.message for record in caplog.records) == 1


@pytest.mark.fault("X-61")
async def test_a_result_where_a_text_was_promised_says_what_to_annotate() -> None:
    _, result = await sent(str, CallToolResult(content=[TextContent(text="x")]))
    assert result.is_error
    assert "-> CallToolResult" in text_of(result)


@pytest.mark.fault("X-20")
@pytest.mark.parametrize(
    "annotation",
    [dict[str, Image], list[dict[str, Image]], set[Audio], Optional[dict[str, Image]], DNode | dict[str, Audio]],
)
def test_media_inside_json_are_refused_when_registered(annotation: Any) -> None:
    with pytest.raises(InvalidSignature, match=r"(Image|Audio) is content of a result"):
        returning(annotation, None)


def test_media_in_members_are_refused_when_registered() -> None:
    with pytest.raises(InvalidSignature, match="Image is content of a result"):
        returning(dataclasses.make_dataclass("Page", [("picture", Image)]), None)


class Asking(InputRequiredResult):
    pass


@pytest.mark.fault("X-73")
@pytest.mark.parametrize("annotation", [CallToolResult | InputRequiredResult, CallToolResult | Asking, Asking])
async def test_a_request_for_input_promises_nothing(annotation: Any) -> None:
    async with Client(returning(annotation, CallToolResult(content=[TextContent(text="x")]))) as client:
        (tool,) = (await client.list_tools()).tools
        assert tool.output_schema is None
        assert text_of(await client.call_tool("f")) == "x"


@pytest.mark.fault("X-08")
@pytest.mark.parametrize(
    ("media", "mime_type"),
    [
        (Audio(data=b"", format="mp3"), "audio/mpeg"),
        (Audio(data=b"", format="m4a"), "audio/mp4"),
        (Audio(data=b"", format="audio/wav"), "audio/wav"),
        (Image(data=b"", format="jpg"), "image/jpeg"),
        (Image(data=b"", format="svg"), "image/svg+xml"),
        (Image(data=b"", format=".PNG"), "image/png"),
        (Image(data=b"", format="image/png"), "image/png"),
        (Image(data=b"", format="image/jpg"), "image/jpeg"),
        (Image(data=b"", format="webp"), "image/webp"),
    ],
)
def test_a_format_is_a_suffix_or_a_media_type(media: Image | Audio, mime_type: str) -> None:
    assert media.mime_type == mime_type


@pytest.mark.fault("X-08")
@pytest.mark.parametrize("format", ["", "audio/wav", "a b", "png\n"])
def test_a_format_that_is_none_is_refused(format: str) -> None:
    with pytest.raises(ValueError, match="format must be a suffix"):
        Image(data=b"", format=format)


@pytest.mark.fault("X-74")
def test_a_url_has_a_text() -> None:
    assert to_builtins({"uri": AnyUrl("file:///a")}) == {"uri": "file:///a"}


@pytest.mark.fault("X-09")
async def test_a_text_in_the_return_annotation_describes_the_result() -> None:
    schema, _ = await sent(Annotated[int, "How many."], 4)
    assert schema["properties"]["result"]["description"] == "How many."


@pytest.mark.fault("X-19")
async def test_raw_and_arrays_of_msgspec_are_written_as_msgspec_does() -> None:
    class Pair(msgspec.Struct, array_like=True):
        a: int
        b: str = "x"

    class Holder(msgspec.Struct):
        pair: Pair
        raw: msgspec.Raw

    globals().update(Pair=Pair, Holder=Holder)
    value = Holder(Pair(1), msgspec.Raw(b'{"q": [1]}'))
    _, result = await sent(Holder, value)
    assert result.structured_content == {"pair": [1, "x"], "raw": {"q": [1]}}
    _, result = await sent(Pair, Pair(2))
    assert result.structured_content == {"result": [2, "x"]}


# --- serializers ----------------------------------------------------------------------------------


class Field_(BaseModel):
    x: int

    @field_serializer("x")
    def s(self, v: int):  # type: ignore[no-untyped-def]
        return f"#{v}"


class Slim(BaseModel):
    x: int | None

    @model_serializer(mode="wrap")
    def s(self, write: Any):  # type: ignore[no-untyped-def]
        written: dict[str, Any] = write(self)
        return {k: v for k, v in written.items() if v is not None}


class Listed(BaseModel):
    x: int

    @model_serializer
    def s(self):  # type: ignore[no-untyped-def]
        return [self.x]


class Lies(BaseModel):
    @computed_field  # type: ignore[prop-decorator]
    @property
    def z(self) -> int:
        return cast("int", "zz")


class Nothing(BaseModel):
    @model_serializer
    def s(self) -> dict[str, int]:
        return {"a": given_as(None)}


class Words(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="strings")
    f: float = float("nan")


class Nulls(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="null")
    f: float = float("nan")


class Encoded(BaseModel):
    model_config = ConfigDict(json_encoders={datetime: lambda v: v.timestamp()})
    t: datetime


def nothing(value: Any) -> Any:
    return None


@pytest.mark.case("C094")
@pytest.mark.parametrize(
    ("annotation", "value", "data"),
    [
        (Field_, Field_(x=1), {"x": "#1"}),
        (Slim, Slim(x=None), {"result": {}}),
        (Slim, Slim(x=1), {"result": {"x": 1}}),
        (Listed, Listed(x=1), {"result": [1]}),
        (Lies, Lies(), None),
        (Nothing, Nothing(), None),
        (Words, Words(), {"f": "NaN"}),
        (Nulls, Nulls(), {"f": None}),
        (Encoded, Encoded(t=datetime.fromtimestamp(5)), {"t": 5.0}),
        (Annotated[int, PlainSerializer(lambda v: f"<{v}>")], 1, {"result": "<1>"}),
        (Annotated[int, PlainSerializer(str)], 1, {"result": "1"}),
        (Annotated[int, PlainSerializer(lambda _: "x", return_type=int)], 1, None),
        (Annotated[int, PlainSerializer(nothing, return_type=int)], 1, None),
        (Annotated[int, WrapSerializer(lambda _, __: None, return_type=int)], 1, None),
        (Annotated[int | None, PlainSerializer(lambda v: "x", when_used="unless-none")], None, {"result": None}),
        (Annotated[Struct, PlainSerializer(lambda s: s.a, return_type=int)], Struct(4), {"result": 4}),
    ],
)
async def test_what_serializers_give_fits_what_is_published(annotation: Any, value: Any, data: Any) -> None:
    _, result = await sent(annotation, value)
    assert result.structured_content == data
    assert result.is_error == (data is None)
    if data is None:
        assert "returned value" in text_of(result)


# --- flags ----------------------------------------------------------------------------------------


@pytest.mark.case("C083")
@pytest.mark.parametrize(
    ("annotation", "value", "data"),
    [
        (Perm, Perm.READ | Perm.WRITE, {"result": 3}),
        (Perm, Perm(0), {"result": 0}),
        (Mode, Mode.A | Mode.B, {"result": 3}),
        (Mode | None, Mode.A | Mode.B, {"result": 3}),
        (list[Mode], [Mode.A | Mode.B], {"result": [3]}),
        (dict[str, Perm], {"x": Perm(3)}, {"x": 3}),
        (dict[Mode, int], {Mode.A | Mode.B: 5}, {"result": {"3": 5}}),
    ],
)
async def test_flags_are_integers(annotation: Any, value: Any, data: Any) -> None:
    _, result = await sent(annotation, value)
    assert result.structured_content == data


@pytest.mark.case("C083")
@pytest.mark.parametrize(
    ("annotation", "argument", "value"),
    [
        (Perm, 3, Perm(3)),
        (Perm, 0, Perm(0)),
        (Mode, 3, Mode.A | Mode.B),
        (dict[Mode, int], {"3": 5}, {Mode.A | Mode.B: 5}),
        (list[Perm], [1, 2, 3], [Perm(1), Perm(2), Perm(3)]),
    ],
)
async def test_combined_flags_are_taken_and_published(annotation: Any, argument: Any, value: Any) -> None:
    taken: list[Any] = []

    def take(p: Any, q: Any = Perm.READ | Perm.WRITE) -> None:
        taken.append(p)

    take.__annotations__ |= {"p": annotation, "q": Perm}
    server = MCPServer("flags")
    server.add_tool(take)
    async with Client(server) as client:
        (tool,) = (await client.list_tools()).tools
        jsonschema.validate({"p": argument}, tool.input_schema)
        assert tool.input_schema["properties"]["q"]["default"] == 3
        assert not (await client.call_tool("take", {"p": argument})).is_error
    assert taken == [value]


# --- any type, any value ---------------------------------------------------------------------------

scalars = st.sampled_from([None, True, False, 7, -7, 7.5, "7", "a", "x", "null", b"a", D(1), M(a=1), object, Perm(3)])
junk = scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.sampled_from(["a", "k", "x"]), scalars, max_size=2)
generic = given_as  # a type made of a value is none to type checkers
member_types: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(
        [
            *(int, str, float, bool, bytes, Any, Perm, M, D, Item, Struct, Attrs, Optionals),
            *given_as((Literal["a", "x"], Annotated[int, Field(ge=0)], Annotated[str, Field(max_length=1)])),
        ]
    ),
    lambda inner: st.one_of(
        inner.map(lambda kind: generic(list)[kind]),
        inner.map(lambda kind: generic(dict)[str, kind]),
        inner.map(lambda kind: generic(Optional)[kind]),
        inner.map(lambda kind: generic(tuple)[kind, int]),
    ),
    max_leaves=3,
)


@st.composite
def instances(draw: st.DrawFn) -> tuple[Any, Any]:
    """A class with one member, and an instance that nobody validated; perhaps in a container."""
    kind = draw(member_types)
    member = draw(junk)
    if draw(st.booleans()):
        cls: Any = dataclasses.make_dataclass("Made", [("v", kind)])
        value = cls(member)
    else:
        namespace = {"__annotations__": {"v": kind}, "__module__": __name__}
        config = {"model_config": ConfigDict(arbitrary_types_allowed=True)}
        try:
            cls = type("Made", (BaseModel,), {**namespace, **config})
        except Exception:  # a foreign class in a model is pydantic's business
            cls = type("Made", (BaseModel,), {**namespace, "__annotations__": {"v": int}})
        value = cls.model_construct(v=member)
    cases: list[tuple[Any, Any]] = [
        (cls, value),
        (list[cls], [value]),
        (dict[str, cls], {"x": value}),
        (Optional[cls], value),
    ]
    case: tuple[Any, Any] = draw(st.sampled_from(cases))
    return case


@pytest.mark.fault("X-01")
@settings(fast, max_examples=25)  # each makes classes, and a server
@given(case=instances())
def test_nothing_that_is_sent_breaks_its_schema(case: tuple[Any, Any]) -> None:
    annotation, value = case
    server = returning(annotation, value)

    async def ask() -> None:
        # The official client checks structured content against the schema, and raises.
        async with Client(server) as client:
            (tool,) = (await client.list_tools()).tools
            result = await client.call_tool("f")
        if result.is_error or tool.output_schema is None:
            return
        jsonschema.validate(result.structured_content, tool.output_schema)
        data: Any = result.structured_content
        data = data["result"] if list(data) == ["result"] else data
        told = text_of(result)
        if isinstance(data, dict):
            assert json.loads(told) == data

    import anyio

    anyio.run(ask)

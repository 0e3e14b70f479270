"""`ctx.elicit`: classes as forms, and answers as their instances, on clients of the handshake era."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict, assert_never
from uuid import UUID

import attrs
import jsonschema
import msgspec
import pytest
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, RootModel, SecretStr, create_model

from mcp_core import Client, MCPError, RequestContext, RequestTimeout, Server
from mcp_core.client import Mode
from mcp_core.errors import InvalidParams
from mcp_core.testing import RawPeer, WireRecorder, flush_logs
from mcp_core.types import CallToolResult, ElicitRequestFormParams, ElicitResult, TextContent
from mcp_typed import (
    AcceptedElicitation,
    CancelledElicitation,
    Context,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    InvalidSignature,
    MCPServer,
    Resolve,
    ToolError,
)


class Colour(Enum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    """A choice of numbers."""

    LOW = 1
    HIGH = 2


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


class Asked:
    """What a tool asked by one `ctx.elicit`, and what it was told.

    `refused` is what `ctx.elicit` raised instead; `failure` is what the call failed with.
    """

    def __init__(self) -> None:
        self.params: list[ElicitRequestFormParams] = []
        self.outcome: Any = None
        self.refused: Exception | None = None
        self.failure: str | None = None

    @property
    def schema(self) -> dict[str, Any]:
        (params,) = self.params
        return params.requested_schema


async def ask(form: Any, given: Any = None, *, mode: Mode = "legacy") -> Asked:
    """Have a tool ask for a form; `given` is the content of an accepted answer, or the answer itself."""
    asked = Asked()
    mcp = MCPServer("asking")

    @mcp.tool()
    async def tool(ctx: Context) -> str:
        try:
            asked.outcome = await ctx.elicit("Please fill this in.", form)
        except InvalidSignature as exc:
            asked.refused = exc
        return "done"

    def answer(ctx: Any, params: Any) -> ElicitResult:
        asked.params.append(params)
        return given if isinstance(given, ElicitResult) else ElicitResult(action="accept", content=given)

    async with Client(mcp, mode=mode, elicitation_callback=answer) as client:
        result = await client.call_tool("tool")
    if result.is_error:
        asked.failure = text_of(result)
    return asked


# --- members ---------------------------------------------------------------------------------------


def form_of(annotation: Any, default: Any = ...) -> Any:
    """A form with one member."""
    return create_model("Form", x=(annotation, default))


CHOICES = {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "title": "X"}
COLOURS = {"type": "string", "enum": ["red", "blue"], "description": "A choice.", "title": "Hue"}

Choice = Literal["a", "b"]
Hue = Annotated[Colour, Field(title="Hue")]

MEMBERS: list[Any] = [
    # id, annotation, what is asked for, an answer, the value
    ("str", str, {"type": "string", "title": "X"}, "été", "été"),
    ("int", int, {"type": "integer", "title": "X"}, 5, 5),
    ("float", float, {"type": "number", "title": "X"}, 0.5, 0.5),
    ("float as int", float, {"type": "number", "title": "X"}, 2, 2.0),
    ("bool", bool, {"type": "boolean", "title": "X"}, True, True),
    ("Literal", Choice, {"type": "string", "enum": ["a", "b"], "title": "X"}, "b", "b"),
    ("Literal of one", Literal["a"], {"type": "string", "enum": ["a"], "title": "X"}, "a", "a"),
    ("Enum", Hue, COLOURS, "blue", Colour.BLUE),
    (
        "Literal of Enum members",
        Literal[Colour.RED, Colour.BLUE],
        {"type": "string", "enum": ["red", "blue"], "title": "X"},
        "blue",
        Colour.BLUE,
    ),
    ("list of Literals", list[Choice], CHOICES, ["b", "a"], ["b", "a"]),
    (
        "list of one Literal",
        list[Literal["a"]],
        {"type": "array", "items": {"type": "string", "enum": ["a"]}, "title": "X"},
        ["a"],
        ["a"],
    ),
    (
        "list of Enum",
        list[Colour],
        {"type": "array", "items": {**COLOURS, "title": "Colour"}, "title": "X"},
        ["blue"],
        [Colour.BLUE],
    ),
    ("set of Literals", set[Choice], {**CHOICES, "uniqueItems": True}, ["a"], {"a"}),
    ("tuple of Literals", tuple[Choice, ...], CHOICES, ["a"], ("a",)),
    ("date", date, {"type": "string", "format": "date", "title": "X"}, "2026-07-28", date(2026, 7, 28)),
    (
        "datetime",
        datetime,
        {"type": "string", "format": "date-time", "title": "X"},
        "2026-07-28T10:00:00",
        datetime(2026, 7, 28, 10),
    ),
    (
        "uri",
        AnyUrl,
        {"type": "string", "format": "uri", "minLength": 1, "title": "X"},
        "https://x/",
        AnyUrl("https://x/"),
    ),
    (
        "length and pattern",
        Annotated[str, Field(min_length=1, max_length=3, pattern="^a")],
        {"type": "string", "minLength": 1, "maxLength": 3, "title": "X"},
        "ab",
        "ab",
    ),
    (
        "bounds",
        Annotated[int, Field(ge=1, le=9)],
        {"type": "integer", "minimum": 1, "maximum": 9, "title": "X"},
        9,
        9,
    ),
    (
        "how many choices",
        Annotated[list[Choice], Field(min_length=1, max_length=2)],
        {**CHOICES, "minItems": 1, "maxItems": 2},
        ["a"],
        ["a"],
    ),
]


@pytest.mark.requirement("R-ELIC-02")
@pytest.mark.requirement("R-MRTR-11")
@pytest.mark.parametrize(
    ("annotation", "shown", "given", "value"), [pytest.param(*row[1:], id=row[0]) for row in MEMBERS]
)
async def test_members_that_are_required(annotation: Any, shown: Any, given: Any, value: Any) -> None:
    form = form_of(annotation)
    asked = await ask(form, {"x": given})
    assert asked.schema == {"type": "object", "properties": {"x": shown}, "required": ["x"]}
    assert asked.failure is None
    assert asked.outcome == AcceptedElicitation(form(x=value))
    assert type(asked.outcome.data.x) is type(value)


@pytest.mark.requirement("R-ELIC-02")
@pytest.mark.parametrize(
    ("annotation", "shown", "given", "value"), [pytest.param(*row[1:], id=row[0]) for row in MEMBERS]
)
async def test_the_same_members_where_they_may_be_left_out(annotation: Any, shown: Any, given: Any, value: Any) -> None:
    form = form_of(annotation | None, None)
    asked = await ask(form, {"x": given})
    # JSON's null is no answer that a form knows: what may be None may be left out.
    assert asked.schema == {"type": "object", "properties": {"x": shown}}
    assert asked.failure is None
    assert asked.outcome == AcceptedElicitation(form(x=value))
    assert (await ask(form, {})).outcome == AcceptedElicitation(form(x=None))


SURE = Field(title="Sure", description="Whether you are sure")


@pytest.mark.requirement("R-ELIC-02")
@pytest.mark.parametrize(
    ("annotation", "default", "shown", "value"),
    [
        pytest.param(
            Annotated[bool, SURE],
            True,
            {"type": "boolean", "title": "Sure", "description": "Whether you are sure", "default": True},
            True,
            id="title and description",
        ),
        pytest.param(
            Annotated[bool | None, SURE],
            None,
            {"type": "boolean", "title": "Sure", "description": "Whether you are sure"},
            None,
            id="title and description of an optional",
        ),
        pytest.param(str, "x", {"type": "string", "default": "x", "title": "X"}, "x", id="str"),
        pytest.param(int, 5, {"type": "integer", "default": 5, "title": "X"}, 5, id="int"),
        pytest.param(bool, False, {"type": "boolean", "default": False, "title": "X"}, False, id="bool"),
        pytest.param(int | None, 5, {"type": "integer", "default": 5, "title": "X"}, 5, id="optional"),
        pytest.param(
            Choice, "b", {"type": "string", "enum": ["a", "b"], "default": "b", "title": "X"}, "b", id="Literal"
        ),
        pytest.param(Hue, Colour.RED, {**COLOURS, "default": "red"}, Colour.RED, id="Enum"),
        pytest.param(list[Choice], ["a"], {**CHOICES, "default": ["a"]}, ["a"], id="list"),
        pytest.param(
            date,
            date(2026, 7, 28),
            {"type": "string", "format": "date", "default": "2026-07-28", "title": "X"},
            date(2026, 7, 28),
            id="date",
        ),
        pytest.param(list[Choice], Field(default_factory=list), CHOICES, [], id="factory"),
        pytest.param(
            str, Field("x", title="Name"), {"type": "string", "default": "x", "title": "Name"}, "x", id="Field"
        ),
    ],
)
async def test_defaults_are_shown_and_stand_in(annotation: Any, default: Any, shown: Any, value: Any) -> None:
    form = form_of(annotation, default)
    asked = await ask(form, {})
    assert asked.schema == {"type": "object", "properties": {"x": shown}}
    assert asked.outcome == AcceptedElicitation(form(x=value))


# --- classes -----------------------------------------------------------------------------------------


class Booking(BaseModel):
    """A table at a restaurant."""

    guests: int = Field(description="How many", ge=1)
    name: str = Field(alias="onName")
    outside: bool = False


@dataclass
class Trip:
    """Where to."""

    place: str
    days: int = 1
    how: Literal["train", "plane"] | None = None
    wishes: list[Choice] = field(default_factory=list[Choice])


class Person(TypedDict):
    """Who."""

    name: str
    age: NotRequired[int]


class Mood(msgspec.Struct):
    """How."""

    word: str
    strength: float = 0.5


@attrs.define
class Place:
    """Where."""

    city: str
    near: bool = True


class Nothing(BaseModel):
    """A question by its text alone."""


@pytest.mark.requirement("R-ELIC-02")
@pytest.mark.parametrize(
    ("form", "properties", "required", "given", "value"),
    [
        (
            Booking,
            {
                "guests": {"type": "integer", "minimum": 1, "description": "How many", "title": "Guests"},
                "onName": {"type": "string", "title": "Onname"},
                "outside": {"type": "boolean", "default": False, "title": "Outside"},
            },
            ["guests", "onName"],
            {"guests": 2, "onName": "Ann"},
            Booking(guests=2, onName="Ann"),
        ),
        (
            Trip,
            {
                "place": {"type": "string", "title": "Place"},
                "days": {"type": "integer", "default": 1, "title": "Days"},
                "how": {"type": "string", "enum": ["train", "plane"], "title": "How"},
                "wishes": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "title": "Wishes"},
            },
            ["place"],
            {"place": "Rome", "how": "train", "wishes": ["b"]},
            Trip("Rome", how="train", wishes=["b"]),
        ),
        (
            Person,
            {"name": {"type": "string", "title": "Name"}, "age": {"type": "integer", "title": "Age"}},
            ["name"],
            {"name": "Ann"},
            {"name": "Ann"},
        ),
        (
            Mood,
            {
                "word": {"type": "string", "title": "Word"},
                "strength": {"type": "number", "default": 0.5, "title": "Strength"},
            },
            ["word"],
            {"word": "fine", "strength": 1},
            Mood("fine", 1.0),
        ),
        (
            Place,
            {
                "city": {"type": "string", "title": "City"},
                "near": {"type": "boolean", "default": True, "title": "Near"},
            },
            ["city"],
            {"city": "Rome", "near": False},
            Place("Rome", near=False),
        ),
    ],
    ids=["model", "dataclass", "TypedDict", "Struct", "attrs"],
)
async def test_classes_of_every_kind_are_forms(
    form: Any, properties: Any, required: list[str], given: Any, value: Any
) -> None:
    asked = await ask(form, given)
    assert asked.schema == {"type": "object", "properties": properties, "required": required}
    assert asked.outcome == AcceptedElicitation(value)
    assert type(asked.outcome.data) is type(value)


async def test_a_class_without_members_asks_by_the_message_alone() -> None:
    asked = await ask(Nothing, None)
    assert asked.schema == {"type": "object", "properties": {}}
    assert asked.outcome == AcceptedElicitation(Nothing())


async def test_what_is_asked_is_the_message_and_the_form() -> None:
    asked = await ask(Person, {"name": "Ann"})
    (params,) = asked.params
    assert (params.message, params.mode, params.meta) == ("Please fill this in.", "form", None)


# --- what cannot be a form ------------------------------------------------------------------------------


class Inner(BaseModel):
    """Nested."""

    a: int = 1


class Chain(BaseModel):
    """Contains itself."""

    x: Chain | None = None


NO_MEMBER = "Form.x cannot be asked for in a form: it must be a string, number, boolean or a choice of strings"


@pytest.mark.requirement("R-ELIC-02")
@pytest.mark.parametrize(
    "annotation",
    [
        pytest.param(Inner, id="model"),
        pytest.param(Inner | None, id="optional model"),
        pytest.param(dict[str, str], id="dict"),
        pytest.param(list[str], id="list of anything"),
        pytest.param(list[int], id="list of numbers"),
        pytest.param(list[Inner], id="list of models"),
        pytest.param(list[Literal[1, 2]], id="list of numbers to choose from"),
        pytest.param(list[Level], id="list of an IntEnum"),
        pytest.param(list[Colour | None], id="list of choices or None"),
        pytest.param(tuple[Choice, Choice], id="pair"),
        pytest.param(int | str, id="union"),
        pytest.param(Colour | bool, id="union with a choice"),
        pytest.param(Literal["a", 1], id="choice of several types"),
        pytest.param(Decimal, id="Decimal"),
        pytest.param(Any, id="Any"),
        pytest.param(None, id="None"),
    ],
)
async def test_members_that_cannot_be_asked_for(annotation: Any) -> None:
    asked = await ask(form_of(annotation), {"x": 1})
    assert isinstance(asked.refused, InvalidSignature)
    assert str(asked.refused) == NO_MEMBER
    assert asked.params == []


@pytest.mark.requirement("R-ELIC-06")
@pytest.mark.parametrize("annotation", [SecretStr, SecretStr | None], ids=["SecretStr", "optional"])
async def test_secrets_are_not_asked_for_in_a_form(annotation: Any) -> None:
    asked = await ask(form_of(annotation), {"x": "1"})
    assert isinstance(asked.refused, InvalidSignature)
    assert asked.params == []


class Pair(NamedTuple):
    """Members, but in JSON an array."""

    x: int


class Plain:
    """Nothing says how it is made."""

    x: int


@pytest.mark.requirement("R-ELIC-02")
@pytest.mark.parametrize(
    ("form", "reason"),
    [
        pytest.param(int, "int cannot be a form: it is no class with members", id="int"),
        pytest.param(Colour, "Colour cannot be a form: it is no class with members", id="Enum"),
        pytest.param(list[int], "list cannot be a form: it is no class with members", id="list"),
        pytest.param(dict, "dict cannot be a form: it is no class with members", id="dict"),
        pytest.param(dict[str, int], "dict cannot be a form: it is no class with members", id="dict of numbers"),
        pytest.param(RootModel[int], "RootModel[int] cannot be a form: it is no class with members", id="RootModel"),
        pytest.param(Pair, "Pair cannot be a form: it is no class with members", id="NamedTuple"),
        pytest.param(Plain, "Plain cannot be a form: Unable to generate pydantic-core schema", id="plain class"),
        pytest.param(Chain, "Chain.x cannot be asked for in a form", id="recursive model"),
        pytest.param(5, "5 cannot be a form", id="no class"),
    ],
)
async def test_classes_that_cannot_be_forms(form: Any, reason: str) -> None:
    asked = await ask(form, {"x": 1})
    assert isinstance(asked.refused, InvalidSignature)
    assert str(asked.refused).startswith(reason)
    assert asked.params == []


async def test_a_tool_that_does_not_look_fails_without_a_question() -> None:
    mcp = MCPServer("asking")
    questions: list[Any] = []

    @mcp.tool()
    async def tool(ctx: Context) -> str:
        return str(await ctx.elicit("Where?", Inner | None))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]

    async with Client(mcp, mode="legacy", elicitation_callback=lambda ctx, params: questions.append(params)) as client:
        text = text_of(await client.call_tool("tool"))
    assert re.fullmatch(r"Error executing tool tool \(error id [0-9a-f]{8}\)", text)
    assert questions == []


# What a member of a form may be, in the specification's own terms. Members that it does
# not name are let through: clients ignore what they do not know.
_TEXTS = {"title": {"type": "string"}, "description": {"type": "string"}}
_STRINGS = {"type": "array", "items": {"type": "string"}}
PRIMITIVE: dict[str, Any] = {
    "anyOf": [
        {
            "required": ["type"],
            "properties": {
                **_TEXTS,
                "type": {"const": "string"},
                "format": {"enum": ["date", "date-time", "email", "uri"]},
                "minLength": {"type": "integer"},
                "maxLength": {"type": "integer"},
                "default": {"type": "string"},
                "enum": _STRINGS,
            },
        },
        {
            "required": ["type"],
            "properties": {
                **_TEXTS,
                "type": {"enum": ["integer", "number"]},
                "minimum": {"type": "number"},
                "maximum": {"type": "number"},
                "default": {"type": "number"},
            },
        },
        {
            "required": ["type"],
            "properties": {**_TEXTS, "type": {"const": "boolean"}, "default": {"type": "boolean"}},
        },
        {
            "required": ["type", "items"],
            "properties": {
                **_TEXTS,
                "type": {"const": "array"},
                "items": {
                    "anyOf": [
                        {"required": ["type", "enum"], "properties": {"type": {"const": "string"}, "enum": _STRINGS}},
                        {
                            "required": ["anyOf"],
                            "properties": {
                                "anyOf": {
                                    "type": "array",
                                    "items": {
                                        "required": ["const", "title"],
                                        "properties": {"const": {"type": "string"}, "title": {"type": "string"}},
                                    },
                                }
                            },
                        },
                    ]
                },
                "minItems": {"type": "integer"},
                "maxItems": {"type": "integer"},
                "default": _STRINGS,
            },
        },
    ]
}

ODD: list[Any] = [
    pytest.param(form_of(UUID), id="UUID"),
    pytest.param(form_of(time), id="time"),
    pytest.param(form_of(timedelta), id="timedelta"),
    pytest.param(form_of(Path), id="Path"),
    pytest.param(form_of(bytes), id="bytes"),
    pytest.param(form_of(SecretStr), id="SecretStr"),
    pytest.param(form_of(Level), id="IntEnum"),
    pytest.param(form_of(list[Level]), id="list of an IntEnum"),
    pytest.param(form_of(list[Colour | None]), id="list of choices or None"),
    pytest.param(form_of(Annotated[int, Field(gt=0, lt=5)]), id="exclusive bounds"),
    pytest.param(form_of(Annotated[int, Field(ge=0, multiple_of=5)]), id="steps"),
    pytest.param(form_of(int, None), id="int or None in fact"),
    pytest.param(form_of(int, "five"), id="a default of another type"),
    pytest.param(form_of(float, float("nan")), id="a default that JSON does not have"),
    pytest.param(form_of(Colour, Colour.RED), id="an Enum with a default"),
]


@pytest.mark.requirement("R-ELIC-02")
@pytest.mark.parametrize("form", [*(pytest.param(form_of(row[1]), id=row[0]) for row in MEMBERS), *ODD])
async def test_a_form_is_one_that_the_specification_knows_or_it_is_refused(form: Any) -> None:
    asked = await ask(form, ElicitResult(action="decline"))
    if asked.refused is not None:
        assert str(asked.refused).startswith("Form.x cannot be asked for in a form")
        return
    assert asked.schema["type"] == "object"
    for member in asked.schema["properties"].values():
        jsonschema.validate(member, PRIMITIVE, cls=jsonschema.Draft202012Validator)


# --- outcomes ------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-ELIC-05")
@pytest.mark.parametrize(
    ("given", "outcome", "action"),
    [
        (ElicitResult(action="decline"), DeclinedElicitation(), "decline"),
        (ElicitResult(action="cancel"), CancelledElicitation(), "cancel"),
        # What comes with a refusal is no answer.
        (ElicitResult(action="decline", content={"name": "Ann"}), DeclinedElicitation(), "decline"),
        (ElicitResult(action="accept", content={"name": "Ann"}), AcceptedElicitation({"name": "Ann"}), "accept"),
    ],
    ids=["decline", "cancel", "decline with content", "accept"],
)
async def test_what_the_user_did(given: ElicitResult, outcome: Any, action: str) -> None:
    asked = await ask(Person, given)
    assert asked.outcome == outcome
    assert type(asked.outcome) is type(outcome)
    assert asked.outcome.action == action


@pytest.mark.requirement("R-ELIC-05")
@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (
            {"guests": 0, "onName": "Ann"},
            "1 validation error for Booking\nguests\n  Input should be greater than or equal to 1 "
            "[type=greater_than_equal, input_value=0, input_type=int]",
        ),
        (
            {"guests": 1, "onName": 5},
            "1 validation error for Booking\nonName\n  Input should be a valid string "
            "[type=string_type, input_value=5, input_type=int]",
        ),
        (
            None,
            "2 validation errors for Booking\nguests\n  Field required [type=missing, input_value={}, input_type=dict]"
            "\nonName\n  Field required [type=missing, input_value={}, input_type=dict]",
        ),
    ],
    ids=["out of bounds", "another type", "no content"],
)
async def test_an_answer_that_does_not_fit_ends_the_call(content: Any, fault: str) -> None:
    asked = await ask(Booking, content)
    assert asked.failure == f"Error executing tool tool: the user's answer does not fit the form: {fault}"


async def test_a_tool_may_ask_again_until_the_answer_fits() -> None:
    mcp = MCPServer("patient")
    answers: list[dict[str, Any]] = [{"guests": 0, "onName": "Ann"}, {"guests": 3, "onName": "Ann"}]
    messages: list[str] = []

    @mcp.tool()
    async def book(ctx: Context) -> str:
        message = "For how many?"
        while True:
            try:
                outcome: ElicitationResult[Booking] = await ctx.elicit(message, Booking)
            except ToolError:
                message = "Again, please: for how many?"
                continue
            match outcome:
                case AcceptedElicitation():
                    return f"{outcome.data.name}: {outcome.data.guests}"
                case DeclinedElicitation():
                    return "declined"
                case CancelledElicitation():
                    return "cancelled"
                case _:
                    assert_never(outcome)

    def answer(ctx: Any, params: Any) -> ElicitResult:
        messages.append(params.message)
        return ElicitResult(action="accept", content=answers[len(messages) - 1])

    async with Client(mcp, mode="legacy", elicitation_callback=answer) as client:
        assert text_of(await client.call_tool("book")) == "Ann: 3"
    assert messages == ["For how many?", "Again, please: for how many?"]


# --- clients that are not asked ---------------------------------------------------------------------------


def asking(action: Callable[[Context], Any]) -> tuple[MCPServer, WireRecorder]:
    """A server with one tool, which does this with its context."""
    mcp, recorder = MCPServer("asking"), WireRecorder()
    mcp.server.observers.add(recorder)

    @mcp.tool()
    async def tool(ctx: Context) -> str:
        return str(await action(ctx))

    return mcp, recorder


def was_sent(recorder: WireRecorder, method: str) -> bool:
    return any(line.startswith("< ") and f'"{method}"' in line for line in recorder.lines)


@pytest.mark.requirement("R-ELIC-01")
@pytest.mark.requirement("R-MRTR-11")
async def test_a_client_that_declared_no_forms_is_not_asked() -> None:
    mcp, recorder = asking(lambda ctx: ctx.elicit("Who?", Person))
    async with Client(mcp, mode="legacy") as client:
        with pytest.raises(InvalidParams, match="the client did not declare what elicitation/create needs"):
            await client.call_tool("tool")
    assert not was_sent(recorder, "elicitation/create")


@pytest.mark.requirement("R-MRTR-01")
async def test_a_modern_client_is_asked_by_resolve_alone(caplog: pytest.LogCaptureFixture) -> None:
    mcp, recorder = asking(lambda ctx: ctx.elicit("Who?", Person))
    questions: list[Any] = []
    async with Client(mcp, elicitation_callback=lambda ctx, params: questions.append(params)) as client:
        text = text_of(await client.call_tool("tool"))
    assert "elicitation/create cannot be sent in 2026-07-28" in text
    assert "Resolve" in text
    assert questions == []
    assert not was_sent(recorder, "elicitation/create")
    # The author is told where.
    flush_logs()
    (record,) = [record for record in caplog.records if "elicitation/create cannot be sent" in record.getMessage()]
    assert "elicitation/create cannot be sent in 2026-07-28" in (record.exc_text or "")


async def test_a_client_that_refuses_is_an_error_that_the_tool_may_catch() -> None:
    async def careful(ctx: Context) -> str:
        try:
            return str(await ctx.elicit("Who?", Person))
        except MCPError as exc:
            return f"{exc.code} {exc.message}"

    def refuse(ctx: Any, params: Any) -> Any:
        raise MCPError(-1, "not now")

    mcp, _ = asking(careful)
    async with Client(mcp, mode="legacy", elicitation_callback=refuse) as client:
        assert text_of(await client.call_tool("tool")) == "-1 not now"
    mcp, _ = asking(lambda ctx: ctx.elicit("Who?", Person))
    async with Client(mcp, mode="legacy", elicitation_callback=refuse) as client:
        with pytest.raises(MCPError, match="not now") as caught:
            await client.call_tool("tool")
    assert caught.value.code == -1


async def test_a_user_who_takes_too_long() -> None:
    import anyio

    async def impatient(ctx: Context) -> str:
        try:
            return str(await ctx.elicit("Who?", Person, timeout=0.05))
        except RequestTimeout:
            return "no answer in time"

    async def think(ctx: Any, params: Any) -> ElicitResult:
        await anyio.sleep_forever()
        raise AssertionError("must not get here")

    mcp, _ = asking(impatient)
    async with Client(mcp, mode="legacy", elicitation_callback=think) as client:
        assert text_of(await client.call_tool("tool")) == "no answer in time"


@pytest.mark.requirement("R-ELIC-03")
async def test_a_page_to_visit() -> None:
    seen: list[Any] = []

    def visit(ctx: Any, params: Any) -> ElicitResult:
        seen.append((params.mode, params.message, params.url, params.elicitation_id))
        return ElicitResult(action="accept")

    async def send(ctx: Context) -> str:
        return (await ctx.elicit_url("Sign in.", "https://example.com/in?id=7", "7")).action

    mcp, _ = asking(send)
    async with Client(mcp, mode="legacy", elicitation_callback=visit) as client:
        assert text_of(await client.call_tool("tool")) == "accept"
    assert seen == [("url", "Sign in.", "https://example.com/in?id=7", "7")]


# --- forms per revision --------------------------------------------------------------------------------


TITLED: dict[str, Any] = {"oneOf": [{"const": "a", "title": "First"}, {"const": "b", "title": "Second"}]}


class Everything(BaseModel):
    """All that a form has."""

    model_config = ConfigDict(title="A form")
    name: str = "x"
    count: Annotated[int, Field(gt=0, lt=9)] = 5
    ratio: Annotated[float, Field(gt=0, le=1, multiple_of=0.5)] = 0.5
    sure: bool = True
    mail: Annotated[str, Field(pattern="@", min_length=3)]
    kind: Choice = "a"
    titled: Annotated[str, Field(json_schema_extra=TITLED)] = "a"


async def asked_in(revision: str, form: Any) -> tuple[Any, Any]:
    """What a client of this revision is asked with, and the answer to the call."""
    mcp = MCPServer("asks")

    @mcp.tool()
    async def tool(ctx: Context) -> str:
        return str(await ctx.elicit("q", form))

    async with RawPeer.of(mcp.server) as peer:
        await peer.initialize(revision, {"elicitation": {}})
        message = await peer.call(1, "tools/call", {"name": "tool", "arguments": {}})
        if message.get("method") != "elicitation/create":
            return None, message
        return message["params"]["requestedSchema"], await peer.answer(
            {"jsonrpc": "2.0", "id": message["id"], "result": {"action": "decline"}}
        )


ALLOWED: dict[str, set[str]] = {
    "string": {"type", "title", "description", "minLength", "maxLength", "format", "enum", "enumNames"},
    "number": {"type", "title", "description", "minimum", "maximum"},
    "integer": {"type", "title", "description", "minimum", "maximum"},
    "boolean": {"type", "title", "description", "default"},
}


@pytest.mark.case("C089")
@pytest.mark.requirement("R-ELIC-02")
async def test_a_form_for_the_first_revision_with_forms_has_what_that_knows() -> None:
    schema, answer = await asked_in("2025-06-18", Everything)
    assert answer["result"]["isError"] is False
    for name, member in schema["properties"].items():
        assert set(member) <= ALLOWED[member["type"]], name
    assert schema["properties"]["titled"] == {
        "type": "string",
        "title": "Titled",
        "enum": ["a", "b"],
        "enumNames": ["First", "Second"],
    }
    assert schema["properties"]["sure"]["default"] is True
    assert schema["required"] == ["mail"]


@pytest.mark.case("C089")
async def test_a_form_for_later_revisions_has_defaults_and_titles() -> None:
    schema, _ = await asked_in("2025-11-25", Everything)
    members = schema["properties"]
    for name, member in members.items():
        assert set(member) <= ALLOWED[member["type"]] | {"default", "oneOf"}, name
    assert members["titled"] == {"type": "string", "title": "Titled", "default": "a", **TITLED}
    assert members["count"] == {"type": "integer", "title": "Count", "default": 5, "minimum": 1, "maximum": 8}
    assert members["ratio"] == {"type": "number", "title": "Ratio", "default": 0.5, "maximum": 1}


@pytest.mark.case("C089")
@pytest.mark.parametrize("annotation", [list[Choice], set[Choice], list[Colour]], ids=["list", "set", "list of Enum"])
async def test_a_member_that_the_revision_lacks_ends_the_call_by_its_name(annotation: Any) -> None:
    form = create_model("Form", picks=(annotation, ...))
    schema, answer = await asked_in("2025-06-18", form)
    assert schema is None
    text = answer["result"]["content"][0]["text"]
    assert answer["result"]["isError"] is True
    assert "'picks'" in text
    assert "2025-06-18" in text
    schema, answer = await asked_in("2025-11-25", form)
    assert schema["properties"]["picks"]["type"] == "array"


@pytest.mark.case("C089")
async def test_a_resolver_s_question_is_projected_alike() -> None:
    form = create_model("Form", picks=(list[Choice], ["a"]))
    mcp = MCPServer("asks")

    def asks() -> Any:
        return Elicit("q", form)

    @mcp.tool()
    def tool(answer: Annotated[Any, Resolve(asks)]) -> str:
        return str(answer)

    async with RawPeer.of(mcp.server) as peer:
        await peer.initialize("2025-06-18", {"elicitation": {}})
        answer = await peer.call(1, "tools/call", {"name": "tool", "arguments": {}})
    assert answer["result"]["isError"] is True
    assert "'picks'" in answer["result"]["content"][0]["text"]


@pytest.mark.fault("X-86")
@pytest.mark.case("C089")
@pytest.mark.parametrize(
    "annotation", [Literal[1, 2], Literal[1], Level, Level | None, list[Level], Literal["a", 1], Literal[1.5]], ids=str
)
def test_choices_that_are_no_strings_are_refused_at_registration(annotation: Any) -> None:
    form = create_model("Form", x=(annotation, ...))

    def asks() -> Any:
        return Elicit("q", form)

    asks.__annotations__["return"] = Elicit[form]  # type: ignore[valid-type]

    def tool(answer: Annotated[Any, Resolve(asks)]) -> str:
        return str(answer)

    with pytest.raises(InvalidSignature, match=r"Form\.x cannot be asked for in a form: .*a choice of strings"):
        MCPServer("asks").add_tool(tool)


@pytest.mark.fault("X-86")
async def test_a_title_that_is_the_form_s_own_is_for_the_user() -> None:
    schema, _ = await asked_in("2025-11-25", Everything)
    assert (schema["title"], schema["description"]) == ("A form", "All that a form has.")
    # A class's name and docstring are for readers of the code.
    schema, _ = await asked_in("2025-11-25", Booking)
    assert not {"title", "description"} & set(schema)


async def test_forms_made_by_hand_are_projected_too() -> None:
    async def call_tool(ctx: RequestContext[Any], params: Any) -> CallToolResult:
        members = {"kind": {"type": "string", **TITLED, "default": "a"}, "odd": True}
        answer = await ctx.elicit("q", {"type": "object", "properties": members})
        return CallToolResult(content=[TextContent(text=answer.action)])

    async with RawPeer.of(Server("low", on_call_tool=call_tool)) as peer:
        await peer.initialize("2025-06-18", {"elicitation": {}})
        asked = await peer.call(1, "tools/call", {"name": "t", "arguments": {}})
        assert asked["params"]["requestedSchema"]["properties"] == {
            "kind": {"type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"]},
            "odd": True,
        }

"""Parameters that other functions fill in, and what those may ask the client, in both eras.

A 2026-07-28 client is asked by results and calls again, a handshake-era client by
requests while its call waits; what a tool is given is the same.
"""

from __future__ import annotations

import functools
import json
import re
import secrets
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import date
from typing import Annotated, Any, Literal, Protocol, assert_never, cast

import anyio
import pytest
from pydantic import BaseModel, Field

from mcp_core import Client, MCPError, RequestContext
from mcp_core.auth import AccessToken, AuthSettings
from mcp_core.client import Mode
from mcp_core.errors import InternalError, InvalidParams, MissingClientCapability
from mcp_core.request_state import RequestStateSigner
from mcp_core.testing import RawPeer, WireRecorder, flush_logs
from mcp_core.types import (
    CallToolResult,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    ListRootsResult,
    Root,
    SamplingCapability,
    SamplingMessage,
    TextContent,
    Tool,
)
from mcp_typed import (
    AcceptedElicitation,
    Cancellation,
    CancelledElicitation,
    Context,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    InvalidSignature,
    ListRoots,
    MCPServer,
    Resolve,
    Result,
    Sample,
    ToolError,
)
from tests.http.asgi import ModernClient
from tests.pace import paced

either_era = pytest.mark.parametrize("mode", ["auto", "legacy"])


class Confirm(BaseModel):
    """A form with one question."""

    sure: bool


class Seats(BaseModel):
    """A form whose answer has bounds."""

    number: int = Field(ge=1, le=9)


class Shelf(BaseModel):
    """No form: a list of anything cannot be asked for."""

    books: list[str]


YES = {"sure": True}
NO = {"sure": False}
DECLINED = ElicitResult(action="decline")
CANCELLED = ElicitResult(action="cancel")
SAID = CreateMessageResult(role="assistant", content=TextContent(text="a poem"), model="m-1", stop_reason="endTurn")
ROOTS = ListRootsResult(roots=[Root(uri="file:///home/ann", name="home")])


class User:
    """Who sits at the client: has an answer to each question, and remembers what was asked."""

    def __init__(self, **answers: Any) -> None:
        self._answers = {message.replace("_", " ") + "?": answer for message, answer in answers.items()}
        self.asked: list[str] = []
        self.sampled: list[CreateMessageRequestParams] = []

    def elicit(self, ctx: Any, params: Any) -> ElicitResult:
        self.asked.append(params.message)
        given = self._answers[params.message]
        answer: Any = given() if callable(given) else given
        return answer if isinstance(answer, ElicitResult) else ElicitResult(action="accept", content=answer)

    def sample(self, ctx: Any, params: CreateMessageRequestParams) -> CreateMessageResult:
        self.asked.append("sample")
        self.sampled.append(params)
        return SAID

    def roots(self, ctx: Any) -> ListRootsResult:
        self.asked.append("roots")
        return ROOTS

    def client(self, mcp: MCPServer, mode: Mode = "auto") -> Client:
        return Client(
            mcp,
            mode=mode,
            elicitation_callback=self.elicit,
            sampling_callback=self.sample,
            list_roots_callback=self.roots,
        )


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def answer(
    mcp: MCPServer, tool: str, arguments: dict[str, Any] | None = None, *, mode: Mode, user: User | None = None
) -> CallToolResult:
    async with (user or User()).client(mcp, mode) as client:
        return await client.call_tool(tool, arguments)


async def success(
    mcp: MCPServer, tool: str, arguments: dict[str, Any] | None = None, *, mode: Mode = "auto", user: User | None = None
) -> str:
    result = await answer(mcp, tool, arguments, mode=mode, user=user)
    assert not result.is_error, text_of(result)
    return text_of(result)


async def failure(
    mcp: MCPServer, tool: str, arguments: dict[str, Any] | None = None, *, mode: Mode = "auto", user: User | None = None
) -> str:
    result = await answer(mcp, tool, arguments, mode=mode, user=user)
    assert result.is_error
    assert result.structured_content is None
    return text_of(result)


def recorded(mcp: MCPServer) -> WireRecorder:
    recorder = WireRecorder()
    mcp.server.observers.add(recorder)
    return recorder


def calls(recorder: WireRecorder) -> list[dict[str, Any]]:
    """The params of every `tools/call` that reached the server."""
    heard = [json.loads(line[2:]) for line in recorder.lines if line.startswith("> ")]
    return [message["params"] for message in heard if message.get("method") == "tools/call"]


def requests_of_the_server(recorder: WireRecorder) -> list[str]:
    """The methods by which the server asked the client."""
    said = [json.loads(line[2:]) for line in recorder.lines if line.startswith("< ")]
    return [message["method"] for message in said if "method" in message and "id" in message]


def server_of(*tools: Callable[..., Any], **options: Any) -> MCPServer:
    mcp = MCPServer("resolving", **options)
    for tool in tools:
        mcp.add_tool(tool)
    return mcp


# --- parameters that functions fill in -------------------------------------------------------------


def seven() -> int:
    return 7


async def eight() -> int:
    await anyio.lowlevel.checkpoint()
    return 8


class Nine:
    """A callable object."""

    def __call__(self) -> int:
        return 9


def add(left: int, right: int) -> int:
    return left + right


def product(
    factor: int,
    plain: Annotated[int, Resolve(seven)],
    later: Annotated[int, Resolve(eight)],
    called: Annotated[int, Resolve(Nine())],
    inline: Annotated[int, Resolve(lambda: 10)],
    bound: Annotated[int, Resolve(functools.partial(add, left=5, right=6))],
) -> list[int]:
    """Multiply."""
    return [factor * value for value in (plain, later, called, inline, bound)]


@either_era
async def test_functions_of_every_kind_fill_parameters_in(mode: Mode) -> None:
    async with Client(server_of(product), mode=mode) as client:
        result = await client.call_tool("product", {"factor": 2})
    assert result.structured_content == {"result": [14, 16, 18, 20, 22]}


@either_era
async def test_the_model_does_not_see_resolved_parameters(mode: Mode) -> None:
    async with Client(server_of(product), mode=mode) as client:
        (tool,) = (await client.list_tools()).tools
    assert tool.input_schema == {
        "type": "object",
        "properties": {"factor": {"title": "Factor", "type": "integer"}},
        "required": ["factor"],
        "title": "productArguments",
    }


@either_era
async def test_the_model_cannot_fill_them_in(mode: Mode) -> None:
    given = {"factor": 1, "plain": 100, "later": 100, "called": 100, "inline": 100, "bound": 100}
    async with Client(server_of(product), mode=mode) as client:
        assert (await client.call_tool("product", given)).structured_content == {"result": [7, 8, 9, 10, 11]}


@pytest.mark.parametrize(("run", "on_the_loop"), [("thread", [False, True]), ("inline", [True, True])])
async def test_plain_resolvers_run_where_plain_tools_run(run: Any, on_the_loop: list[bool]) -> None:
    loop = threading.get_ident()

    def plain() -> bool:
        return threading.get_ident() == loop

    async def later() -> bool:
        return threading.get_ident() == loop

    async def where(one: Annotated[bool, Resolve(plain)], other: Annotated[bool, Resolve(later)]) -> list[bool]:
        return [one, other]

    async with Client(server_of(where, run=run)) as client:
        assert (await client.call_tool("where")).structured_content == {"result": on_the_loop}


def base(start: int) -> int:
    return start * 10


def middle(lower: Annotated[int, Resolve(base)]) -> int:
    return lower + 1


async def top(lower: Annotated[int, Resolve(middle)], start: int) -> list[int]:
    return [start, lower]


def tower(start: int, built: Annotated[list[int], Resolve(top)]) -> list[int]:
    return [*built, start]


@either_era
async def test_resolvers_have_resolvers(mode: Mode) -> None:
    async with Client(server_of(tower), mode=mode) as client:
        assert (await client.call_tool("tower", {"start": 4})).structured_content == {"result": [4, 41, 4]}


def weekday(day: date, /) -> int:
    return day.isoweekday()


def doubled(count: int) -> int:
    return 2 * count


def plan(
    on: Annotated[int, Resolve(weekday)],
    day: Annotated[date, Field(alias="on-day")],
    /,
    twice: Annotated[int, Resolve(doubled)],
    count: int = 3,
) -> list[int]:
    return [on, day.year, twice]


@either_era
async def test_resolvers_take_the_tool_s_arguments_by_their_python_names(mode: Mode) -> None:
    async with Client(server_of(plan), mode=mode) as client:
        (tool,) = (await client.list_tools()).tools
        left_out = await client.call_tool("plan", {"on-day": "2026-07-28"})
        given = await client.call_tool("plan", {"on-day": "2026-07-28", "count": 5})
    assert list(tool.input_schema["properties"]) == ["on-day", "count"]
    # Validated values, and defaults of what was left out.
    assert left_out.structured_content == {"result": [2, 2026, 6]}
    assert given.structured_content == {"result": [2, 2026, 10]}


@either_era
async def test_bad_arguments_are_refused_before_any_resolver_runs(mode: Mode) -> None:
    ran: list[int] = []

    def note(count: int) -> Elicit[Confirm]:
        ran.append(count)
        return Elicit("sure?", Confirm)

    def tool(count: int, noted: Annotated[Confirm, Resolve(note)]) -> str:
        return "called"

    user = User(sure=YES)
    text = await failure(server_of(tool), "tool", {"count": "many"}, mode=mode, user=user)
    assert text.startswith("Error executing tool tool: 1 validation error for toolArguments\ncount\n")
    assert (ran, user.asked) == ([], [])


@either_era
async def test_resolvers_may_have_the_context(mode: Mode) -> None:
    def who(ctx: Context) -> str:
        return ctx.protocol_version

    def below(request: RequestContext[Any], ctx: Context[Any] | None) -> bool:
        return ctx is not None and ctx.request_context is request

    def tool(
        ctx: Context, revision: Annotated[str, Resolve(who)], same: Annotated[bool, Resolve(below)]
    ) -> tuple[str, bool, bool]:
        return revision, same, ctx.protocol_version == revision

    async with Client(server_of(tool), mode=mode) as client:
        result = await client.call_tool("tool")
    assert result.structured_content == {"result": ["2026-07-28" if mode == "auto" else "2025-11-25", True, True]}


@either_era
async def test_a_resolver_learns_that_nobody_waits_any_more(mode: Mode) -> None:
    seen: list[bool] = []
    ended = threading.Event()

    def slow(token: Cancellation) -> int:
        seen.append(token.requested)
        seen.append(token.wait(60))
        ended.set()
        return 1

    mcp = MCPServer("slow")

    @mcp.tool(timeout=0.05)
    def tool(value: Annotated[int, Resolve(slow)]) -> int:
        return value

    assert await failure(mcp, "tool", mode=mode) == "Error executing tool tool: timed out after 0.05 s"
    assert ended.wait(60)
    assert seen == [False, True]


@either_era
async def test_a_resolver_runs_once_in_a_call_however_many_need_it(mode: Mode) -> None:
    runs: list[str] = []

    def account(name: str) -> str:
        runs.append(name)
        return f"account of {name}"

    def balance(of: Annotated[str, Resolve(account)]) -> str:
        return f"balance of {of}"

    def tool(
        name: str,
        first: Annotated[str, Resolve(account)],
        second: Annotated[str, Resolve(account)],
        money: Annotated[str, Resolve(balance)],
    ) -> list[str]:
        return [first, second, money]

    async with Client(server_of(tool), mode=mode) as client:
        result = await client.call_tool("tool", {"name": "Ann"})
        assert runs == ["Ann"]
        # Another call starts anew.
        await client.call_tool("tool", {"name": "Bob"})
    assert result.structured_content == {
        "result": ["account of Ann", "account of Ann", "balance of account of Ann"],
    }
    assert runs == ["Ann", "Bob"]


class Shop:
    """Has a resolver as a method."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.runs = 0

    def open(self, ctx: Context) -> str:
        self.runs += 1
        return f"{self.name} {self.runs}"

    async def ask(self) -> Elicit[Confirm]:
        return Elicit(f"{self.name}?", Confirm)


@either_era
async def test_a_bound_method_is_one_resolver_for_each_object(mode: Mode) -> None:
    ours, theirs = Shop("ours"), Shop("theirs")

    def tool(
        one: Annotated[str, Resolve(ours.open)],
        two: Annotated[str, Resolve(ours.open)],
        three: Annotated[str, Resolve(theirs.open)],
        four: Annotated[Confirm, Resolve(ours.ask)],
        five: Annotated[Confirm, Resolve(theirs.ask)],
        six: Annotated[Confirm, Resolve(ours.ask)],
    ) -> list[Any]:
        return [one, two, three, four.sure, five.sure, six.sure]

    user = User(ours=YES, theirs=NO)
    async with user.client(server_of(tool), mode) as client:
        result = await client.call_tool("tool")
    assert user.asked == ["ours?", "theirs?"]
    # One that asks nothing runs once a round, and a 2026-07-28 client took two.
    runs = 2 if mode == "auto" else 1
    shown = [f"ours {runs}", f"ours {runs}", f"theirs {runs}", True, False, True]
    assert result.structured_content == {"result": shown}


@either_era
async def test_calls_at_the_same_time_keep_their_values_apart(mode: Mode) -> None:
    def ask(name: str) -> Elicit[Confirm]:
        return Elicit(f"{name}?", Confirm)

    def tool(name: str, sure: Annotated[Confirm, Resolve(ask)]) -> str:
        return f"{name} {sure.sure}"

    got: dict[str, str] = {}
    async with User(Ann=YES, Bob=NO).client(server_of(tool), mode) as client:

        async def call(name: str) -> None:
            got[name] = text_of(await client.call_tool("tool", {"name": name}))

        async with anyio.create_task_group() as group:
            group.start_soon(call, "Ann")
            group.start_soon(call, "Bob")
    assert got == {"Ann": "Ann True", "Bob": "Bob False"}


@either_era
async def test_the_rest_of_a_tool_is_as_ever(mode: Mode) -> None:
    mcp = MCPServer("all", unknown_arguments="reject")

    @mcp.tool("renamed", max_concurrency=1, timeout=60)
    def tool(count: int, twice: Annotated[int, Resolve(doubled)]) -> Result[int]:
        return Result(twice, text=f"{count} and {count}")

    assert await success(mcp, "renamed", {"count": 2}, mode=mode) == "2 and 2"
    assert "There is no argument 'twice'" in await failure(mcp, "renamed", {"count": 2, "twice": 9}, mode=mode)


# --- questions to the user ---------------------------------------------------------------------------


def ask_sure() -> Elicit[Confirm]:
    return Elicit("sure?", Confirm)


def book(place: str, sure: Annotated[Confirm, Resolve(ask_sure)]) -> str:
    return f"{place}: {sure!r}"


@pytest.mark.requirement("R-MRTR-01")
@pytest.mark.requirement("R-MRTR-02")
@pytest.mark.requirement("R-MRTR-11")
@either_era
async def test_an_accepted_answer_is_an_instance_of_the_form(mode: Mode) -> None:
    user = User(sure=YES)
    assert await success(server_of(book), "book", {"place": "Rome"}, mode=mode, user=user) == "Rome: Confirm(sure=True)"
    assert user.asked == ["sure?"]


@pytest.mark.requirement("R-MRTR-01")
@pytest.mark.requirement("R-MRTR-02")
@pytest.mark.requirement("R-MRTR-03")
@pytest.mark.requirement("R-ELIC-02")
async def test_a_modern_client_is_asked_by_a_result() -> None:
    async with User().client(server_of(book)) as client:
        got = await client.request("tools/call", {"name": "book", "arguments": {"place": "Rome"}})
    assert set(got) == {"resultType", "inputRequests", "requestState", "_meta"}
    assert got["resultType"] == "input_required"
    assert got["inputRequests"] == {
        "ask_sure": {
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "sure?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"sure": {"title": "Sure", "type": "boolean"}},
                    "required": ["sure"],
                },
            },
        }
    }


@pytest.mark.requirement("R-ELIC-05")
@either_era
@pytest.mark.parametrize(
    ("given", "reason"),
    [(DECLINED, "the user declined to answer: sure?"), (CANCELLED, "the user did not answer: sure?")],
    ids=["decline", "cancel"],
)
async def test_no_and_no_answer_end_a_call_that_needs_the_answer(given: ElicitResult, reason: str, mode: Mode) -> None:
    called: list[Confirm] = []

    def tool(sure: Annotated[Confirm, Resolve(ask_sure)]) -> str:
        called.append(sure)
        return "called"

    user = User(sure=given)
    assert await failure(server_of(tool), "tool", mode=mode, user=user) == f"Error executing tool tool: {reason}"
    assert (called, user.asked) == ([], ["sure?"])


def told(outcome: ElicitationResult[Confirm]) -> str:
    match outcome:
        case AcceptedElicitation():
            return f"accepted {outcome.data!r}"
        case DeclinedElicitation():
            return "declined"
        case CancelledElicitation():
            return "cancelled"
        case _:
            assert_never(outcome)


def as_outcome(sure: Annotated[ElicitationResult[Confirm], Resolve(ask_sure)]) -> str:
    return told(sure)


def as_accepted(sure: Annotated[AcceptedElicitation[Confirm], Resolve(ask_sure)]) -> str:
    return told(sure)


def as_refused(sure: Annotated[DeclinedElicitation | CancelledElicitation, Resolve(ask_sure)]) -> str:
    return told(sure)


@pytest.mark.requirement("R-ELIC-05")
@either_era
@pytest.mark.parametrize("tool", [as_outcome, as_accepted, as_refused])
@pytest.mark.parametrize(
    ("given", "outcome"),
    [(YES, "accepted Confirm(sure=True)"), (DECLINED, "declined"), (CANCELLED, "cancelled")],
    ids=["accept", "decline", "cancel"],
)
async def test_who_asks_for_the_outcome_gets_it_whatever_it_is(
    tool: Callable[..., str], given: Any, outcome: str, mode: Mode
) -> None:
    assert await success(server_of(tool), tool.__name__, mode=mode, user=User(sure=given)) == outcome


@pytest.mark.requirement("R-ELIC-05")
@either_era
async def test_one_question_serves_those_who_want_the_outcome_and_those_who_want_the_answer(mode: Mode) -> None:
    def describe(sure: Annotated[ElicitationResult[Confirm], Resolve(ask_sure)]) -> str:
        return told(sure)

    def tool(described: Annotated[str, Resolve(describe)], sure: Annotated[Confirm, Resolve(ask_sure)]) -> str:
        return f"{described}, {sure.sure}"

    user = User(sure=YES)
    assert await success(server_of(tool), "tool", mode=mode, user=user) == "accepted Confirm(sure=True), True"
    assert user.asked == ["sure?"]
    declined = await failure(server_of(tool), "tool", mode=mode, user=User(sure=DECLINED))
    assert declined == "Error executing tool tool: the user declined to answer: sure?"


@either_era
@pytest.mark.parametrize(("total", "asked"), [(5, []), (500, ["sure?"])])
async def test_a_resolver_asks_only_when_it_must(total: int, asked: list[str], mode: Mode) -> None:
    def ask_if_much(total: int) -> Confirm | Elicit[Confirm]:
        return Confirm(sure=True) if total < 100 else Elicit("sure?", Confirm)

    def pay(total: int, sure: Annotated[Confirm, Resolve(ask_if_much)]) -> str:
        return f"{total} {sure.sure}"

    user = User(sure=YES)
    assert await success(server_of(pay), "pay", {"total": total}, mode=mode, user=user) == f"{total} True"
    assert user.asked == asked


@either_era
async def test_a_value_that_nobody_was_asked_for_is_an_accepted_outcome(mode: Mode) -> None:
    def known() -> Confirm | Elicit[Confirm]:
        return Confirm(sure=True)

    def tool(sure: Annotated[ElicitationResult[Confirm], Resolve(known)]) -> str:
        return told(sure)

    assert await success(server_of(tool), "tool", mode=mode) == "accepted Confirm(sure=True)"


@pytest.mark.requirement("R-ELIC-05")
@either_era
@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (
            {"number": 12},
            "number\n  Input should be less than or equal to 9 [type=less_than_equal, input_value=12, input_type=int]",
        ),
        ({}, "number\n  Field required [type=missing, input_value={}, input_type=dict]"),
        (None, "number\n  Field required [type=missing, input_value={}, input_type=dict]"),
        (
            {"number": ["2", "3"]},
            "number\n  Input should be a valid integer [type=int_type, input_value=['2', '3'], input_type=list]",
        ),
    ],
    ids=["out of bounds", "empty", "absent", "another type"],
)
async def test_an_answer_that_does_not_fit_the_form_is_told_to_the_model(content: Any, fault: str, mode: Mode) -> None:
    def ask() -> Elicit[Seats]:
        return Elicit("seats?", Seats)

    def tool(seats: Annotated[ElicitationResult[Seats], Resolve(ask)]) -> str:
        raise AssertionError("must not get here")

    user = User(seats=ElicitResult(action="accept", content=content))
    text = await failure(server_of(tool), "tool", mode=mode, user=user)
    assert text == (
        f"Error executing tool tool: the user's answer does not fit the form: 1 validation error for Seats\n{fault}"
    )
    assert user.asked == ["seats?"]


# --- questions to the model and for roots ---------------------------------------------------------------


def ask_for_a_poem(topic: str) -> Sample:
    asked = SamplingMessage(role="user", content=TextContent(text=f"A poem about {topic}"))
    return Sample([asked], max_tokens=50, system_prompt="You are a poet.", temperature=0.5)


def write(topic: str, poem: Annotated[CreateMessageResult, Resolve(ask_for_a_poem)]) -> str:
    (block,) = poem.content_as_list
    assert isinstance(block, TextContent)
    return f"{poem.model}, {poem.role}, {poem.stop_reason}: {block.text}"


@pytest.mark.requirement("R-SAMP-02")
@pytest.mark.requirement("R-MRTR-03")
@pytest.mark.requirement("R-MRTR-11")
@either_era
async def test_the_client_s_model_can_be_asked(mode: Mode) -> None:
    user = User()
    text = await success(server_of(write), "write", {"topic": "rain"}, mode=mode, user=user)
    assert text == "m-1, assistant, endTurn: a poem"
    assert user.sampled == [
        CreateMessageRequestParams(
            messages=[SamplingMessage(role="user", content=TextContent(text="A poem about rain"))],
            max_tokens=50,
            system_prompt="You are a poet.",
            temperature=0.5,
        )
    ]


async def ask_for_roots() -> ListRoots:
    return ListRoots()


def where(roots: Annotated[ListRootsResult, Resolve(ask_for_roots)]) -> str:
    return ", ".join(f"{root.name} {root.uri}" for root in roots.roots)


@pytest.mark.requirement("R-MRTR-03")
@pytest.mark.requirement("R-MRTR-11")
@either_era
async def test_the_client_can_be_asked_for_its_roots(mode: Mode) -> None:
    assert await success(server_of(where), "where", mode=mode) == "home file:///home/ann"


# --- rounds ------------------------------------------------------------------------------------------------


def travel(
    topic: str,
    sure: Annotated[Confirm, Resolve(ask_sure)],
    poem: Annotated[CreateMessageResult, Resolve(ask_for_a_poem)],
    roots: Annotated[ListRootsResult, Resolve(ask_for_roots)],
) -> str:
    return f"{topic}: {sure.sure}, {poem.model}, {len(roots.roots)}"


@pytest.mark.requirement("R-MRTR-01")
@pytest.mark.requirement("R-MRTR-02")
@pytest.mark.requirement("R-MRTR-11")
@either_era
async def test_one_body_asks_all_three_in_either_era(mode: Mode) -> None:
    mcp, user = server_of(travel), User(sure=YES)
    recorder = recorded(mcp)
    assert await success(mcp, "travel", {"topic": "rain"}, mode=mode, user=user) == "rain: True, m-1, 1"
    assert user.asked == ["sure?", "sample", "roots"]
    if mode == "auto":
        # All open questions go out together.
        first, second = calls(recorder)
        assert "inputResponses" not in first
        assert set(second["inputResponses"]) == {"ask_sure", "ask_for_a_poem", "ask_for_roots"}
        assert requests_of_the_server(recorder) == []
    else:
        assert len(calls(recorder)) == 1
        assert requests_of_the_server(recorder) == ["elicitation/create", "sampling/createMessage", "roots/list"]


def ask_for_seats(sure: Annotated[Confirm, Resolve(ask_sure)], place: str) -> int | Elicit[Seats]:
    return Elicit(f"seats in {place}?", Seats) if sure.sure else 0


def reserve(
    place: str,
    seats: Annotated[Seats | int, Resolve(ask_for_seats)],
    sure: Annotated[Confirm, Resolve(ask_sure)],
    roots: Annotated[ListRootsResult, Resolve(ask_for_roots)],
) -> str:
    return f"{place}: {seats!r} {sure!r} {len(roots.roots)}"


@pytest.mark.requirement("R-MRTR-07")
@either_era
async def test_a_question_that_needs_an_answer_comes_after_it(mode: Mode) -> None:
    mcp, user = server_of(reserve), User(sure=YES, seats_in_Rome={"number": 2})
    recorder = recorded(mcp)
    text = await success(mcp, "reserve", {"place": "Rome"}, mode=mode, user=user)
    assert text == "Rome: Seats(number=2) Confirm(sure=True) 1"
    if mode == "legacy":
        assert user.asked == ["sure?", "seats in Rome?", "roots"]
        assert len(calls(recorder)) == 1
        return
    # What was answered is not asked again, nor do its answers come again.
    assert user.asked == ["sure?", "roots", "seats in Rome?"]
    assert [set(call.get("inputResponses", ())) for call in calls(recorder)] == [
        set(),
        {"ask_sure", "ask_for_roots"},
        {"ask_for_seats"},
    ]


@either_era
async def test_an_answer_may_leave_nothing_more_to_ask(mode: Mode) -> None:
    mcp, user = server_of(reserve), User(sure=NO)
    text = await success(mcp, "reserve", {"place": "Rome"}, mode=mode, user=user)
    assert text == "Rome: 0 Confirm(sure=False) 1"
    assert sorted(user.asked) == ["roots", "sure?"]


@either_era
async def test_no_to_the_first_question_ends_the_call_before_the_second(mode: Mode) -> None:
    user = User(sure=DECLINED)
    text = await failure(server_of(reserve), "reserve", {"place": "Rome"}, mode=mode, user=user)
    assert text == "Error executing tool reserve: the user declined to answer: sure?"
    assert "seats in Rome?" not in user.asked


@either_era
async def test_the_tool_itself_runs_once_after_all_rounds(mode: Mode) -> None:
    ran: list[str] = []

    def note(ctx: Context) -> str:
        ran.append("resolver")
        return "noted"

    def tool(
        noted: Annotated[str, Resolve(note)], seats: Annotated[Seats | int, Resolve(ask_for_seats)], place: str
    ) -> str:
        ran.append("tool")
        return noted

    user = User(sure=YES, seats_in_Rome={"number": 2})
    assert await success(server_of(tool), "tool", {"place": "Rome"}, mode=mode, user=user) == "noted"
    rounds = 3 if mode == "auto" else 1
    assert ran == ["resolver"] * rounds + ["tool"]


@either_era
async def test_resolvers_of_one_name_ask_questions_of_their_own(mode: Mode) -> None:
    def asking(message: str) -> Callable[[], Elicit[Confirm]]:
        def ask() -> Elicit[Confirm]:
            return Elicit(message, Confirm)

        return ask

    one, two = asking("one?"), asking("two?")

    def tool(first: Annotated[Confirm, Resolve(one)], second: Annotated[Confirm, Resolve(two)]) -> list[bool]:
        return [first.sure, second.sure]

    user = User(one=YES, two=NO)
    result = await answer(server_of(tool), "tool", mode=mode, user=user)
    assert result.structured_content == {"result": [True, False]}
    assert user.asked == ["one?", "two?"]


class Till:
    """Its price may change while somebody thinks about it."""

    def __init__(self) -> None:
        self.price = 10

    def ask(self) -> Elicit[Confirm]:
        return Elicit(f"pay {self.price}?", Confirm)

    def raised(self, content: dict[str, Any]) -> Callable[[], dict[str, Any]]:
        """An answer that comes when the price has risen already."""

        def answering() -> dict[str, Any]:
            self.price = 12
            return content

        return answering


@pytest.mark.requirement("R-MRTR-08")
@either_era
async def test_an_answer_is_not_taken_for_another_question(mode: Mode) -> None:
    till = Till()

    def buy(sure: Annotated[Confirm, Resolve(till.ask)]) -> str:
        return f"{till.price} {sure.sure}"

    user = User(pay_10=till.raised(YES), pay_12=NO)
    text = await success(server_of(buy), "buy", mode=mode, user=user)
    if mode == "legacy":  # the resolver has run once, and that was the question
        assert (text, user.asked) == ("12 True", ["pay 10?"])
    else:
        assert (text, user.asked) == ("12 False", ["pay 10?", "pay 12?"])


@pytest.mark.requirement("R-MRTR-08")
async def test_nor_is_an_answer_that_was_recorded_in_an_earlier_round() -> None:
    till = Till()

    def ask_again(first: Annotated[Confirm, Resolve(till.ask)]) -> Elicit[Confirm]:
        return Elicit("really?", Confirm)

    def buy(first: Annotated[Confirm, Resolve(till.ask)], second: Annotated[Confirm, Resolve(ask_again)]) -> str:
        return f"{till.price} {first.sure} {second.sure}"

    user = User(pay_10=YES, really=till.raised(YES), pay_12=NO)
    assert await success(server_of(buy), "buy", mode="auto", user=user) == "12 False True"
    assert user.asked[:3] == ["pay 10?", "really?", "pay 12?"]


@either_era
async def test_time_to_think_counts_only_while_the_call_waits(mode: Mode) -> None:
    patience = paced(0.3)
    mcp = MCPServer("impatient", timeout=patience)
    mcp.add_tool(book)

    async def think(ctx: Any, params: Any) -> ElicitResult:
        await anyio.sleep(2 * patience)
        return ElicitResult(action="accept", content={"sure": True})

    async with Client(mcp, mode=mode, elicitation_callback=think) as client:
        result = await client.call_tool("book", {"place": "Rome"})
    in_time = mode == "auto"  # between two rounds no call is under way
    wanted = "Rome: Confirm(sure=True)" if in_time else f"Error executing tool book: timed out after {patience:g} s"
    assert (text_of(result), result.is_error) == (wanted, not in_time)


# --- what a client may send by itself -----------------------------------------------------------------------

ANSWERS: dict[str, Any] = {"ask_sure": {"action": "accept", "content": {"sure": True}}, "ask_for_roots": {"roots": []}}
SEATS_ANSWER = {"ask_for_seats": {"action": "accept", "content": {"number": 9}}}
REFUSED = {"reason": "invalid_request_state"}


async def raw_call(
    client: Client,
    tool: str = "reserve",
    arguments: dict[str, Any] | None = None,
    *,
    state: str | None = None,
    responses: Any = None,
) -> dict[str, Any]:
    """One round of a call, and its result as JSON."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments or {"place": "Rome"}}
    if state is not None:
        params["requestState"] = state
    if responses is not None:
        params["inputResponses"] = responses
    got: dict[str, Any] = await client.request("tools/call", params)
    return got


def open_questions(result: dict[str, Any]) -> list[str]:
    assert result["resultType"] == "input_required"
    return sorted(result["inputRequests"])


@pytest.mark.requirement("R-MRTR-05")
@pytest.mark.requirement("R-MRTR-08")
async def test_answers_that_nobody_asked_for_count_for_nothing() -> None:
    async with User().client(server_of(reserve)) as client:
        # No state: nothing was asked yet.
        first = await raw_call(client, responses={**ANSWERS, **SEATS_ANSWER})
        assert open_questions(first) == ["ask_for_roots", "ask_sure"]
        # A state, but of a round that did not ask for seats.
        second = await raw_call(client, state=first["requestState"], responses={**ANSWERS, **SEATS_ANSWER, "x": 1})
        assert open_questions(second) == ["ask_for_seats"]
        third = await raw_call(client, state=second["requestState"], responses=SEATS_ANSWER)
    assert third["content"] == [{"type": "text", "text": "Rome: Seats(number=9) Confirm(sure=True) 0"}]


@pytest.mark.requirement("R-MRTR-07")
@pytest.mark.requirement("R-MRTR-08")
async def test_only_what_is_missing_is_asked_again() -> None:
    async with User().client(server_of(reserve)) as client:
        first = await raw_call(client)
        again = await raw_call(client, state=first["requestState"])
        assert open_questions(again) == ["ask_for_roots", "ask_sure"]
        partly: dict[str, Any] = {"ask_for_roots": ANSWERS["ask_for_roots"], "unknown": {"action": "accept"}}
        second = await raw_call(client, state=again["requestState"], responses=partly)
        assert open_questions(second) == ["ask_sure"]
        rest = {"ask_sure": {"action": "accept", "content": {"sure": False}}}
        third = await raw_call(client, state=second["requestState"], responses=rest)
    assert third["content"] == [{"type": "text", "text": "Rome: 0 Confirm(sure=False) 0"}]


@pytest.mark.requirement("R-MRTR-08")
@pytest.mark.parametrize(
    "responses",
    [
        {"ask_sure": {"action": "perhaps"}},
        {"ask_sure": {"content": {"sure": True}}},
        {"ask_sure": "yes"},
        {"ask_sure": None},
        {"ask_sure": {"action": "accept", "content": {"sure": {"a": 1}}}},
        {"ask_sure": {"action": "accept", "content": [True]}},
        {"ask_for_roots": {"roots": "none"}},
        {"ask_for_roots": {"action": "accept"}},
        [],
        "yes",
    ],
    ids=str,
)
async def test_answers_that_are_no_results_are_a_protocol_error(responses: Any) -> None:
    async with User().client(server_of(reserve)) as client:
        first = await raw_call(client)
        with pytest.raises(InvalidParams):
            await raw_call(client, state=first["requestState"], responses=responses)


@pytest.mark.requirement("R-MRTR-05")
@pytest.mark.requirement("R-MRTR-06")
async def test_a_state_of_other_arguments_or_of_another_tool_is_refused() -> None:
    mcp = server_of(reserve)
    mcp.add_tool(reserve, name="other")
    async with User().client(mcp) as client:
        state = (await raw_call(client))["requestState"]
        for tool, arguments in (("reserve", {"place": "Oslo"}), ("other", {"place": "Rome"})):
            with pytest.raises(InvalidParams) as caught:
                await raw_call(client, tool, arguments, state=state, responses=ANSWERS)
            assert caught.value.data == REFUSED


@pytest.mark.requirement("R-MRTR-05")
@pytest.mark.parametrize("position", [0, 50, 100, -1])
async def test_a_state_that_was_tampered_with_is_refused(position: int) -> None:
    async with User().client(server_of(reserve)) as client:
        state = list((await raw_call(client))["requestState"])
        state[position] = "A" if state[position] != "A" else "z"
        with pytest.raises(InvalidParams) as caught:
            await raw_call(client, state="".join(state), responses=ANSWERS)
    assert caught.value.data == REFUSED


@pytest.mark.requirement("R-MRTR-05")
@pytest.mark.parametrize("state", ["", "x", "é", "A" * 500])
async def test_nonsense_for_a_state_is_refused(state: str) -> None:
    async with User().client(server_of(reserve)) as client:
        with pytest.raises(InvalidParams) as caught:
            await raw_call(client, state=state, responses=ANSWERS)
    assert caught.value.data == REFUSED


@pytest.mark.requirement("R-MRTR-06")
async def test_a_state_expires() -> None:
    now = [1000.0]
    mcp = server_of(reserve, request_state=RequestStateSigner(ttl=60, clock=lambda: now[0]))
    async with User().client(mcp) as client:
        state = (await raw_call(client))["requestState"]
        now[0] += 59
        assert open_questions(await raw_call(client, state=state, responses=ANSWERS)) == ["ask_for_seats"]
        now[0] += 2
        with pytest.raises(InvalidParams) as caught:
            await raw_call(client, state=state, responses=ANSWERS)
    assert caught.value.data == REFUSED


@pytest.mark.requirement("R-MRTR-05")
async def test_servers_with_the_same_keys_continue_each_other_s_calls() -> None:
    key, newer = secrets.token_bytes(32), secrets.token_bytes(32)
    one, two = (server_of(reserve, request_state=RequestStateSigner([key])) for _ in range(2))
    ahead = server_of(reserve, request_state=RequestStateSigner([newer, key]))
    stranger = server_of(reserve)
    async with (
        User().client(one) as first,
        User().client(two) as second,
        User().client(ahead) as third,
        User().client(stranger) as other,
    ):
        asked = await raw_call(first)
        asked_again = await raw_call(second, state=asked["requestState"], responses=ANSWERS)
        assert open_questions(asked_again) == ["ask_for_seats"]
        done = await raw_call(third, state=asked_again["requestState"], responses=SEATS_ANSWER)
        assert done["content"] == [{"type": "text", "text": "Rome: Seats(number=9) Confirm(sure=True) 0"}]
        with pytest.raises(InvalidParams) as caught:
            await raw_call(other, state=asked["requestState"], responses=ANSWERS)
        assert caught.value.data == REFUSED
        # One that knows the old key alone cannot read what the new one signed.
        signed = (await raw_call(third))["requestState"]
        with pytest.raises(InvalidParams):
            await raw_call(first, state=signed, responses=ANSWERS)


# --- clients that cannot be asked -----------------------------------------------------------------------------


def ask_with_tools() -> Sample:
    asked = SamplingMessage(role="user", content=TextContent(text="hi"))
    return Sample([asked], max_tokens=5, tools=[Tool(name="look", input_schema={"type": "object"})])


def with_tools(said: Annotated[CreateMessageResult, Resolve(ask_with_tools)]) -> str:
    return said.model


@pytest.mark.requirement("R-MRTR-04")
@pytest.mark.requirement("R-MRTR-11")
@either_era
@pytest.mark.parametrize(
    ("tool", "arguments", "method", "required"),
    [
        (book, {"place": "Rome"}, "elicitation/create", {"elicitation": {"form": {}}}),
        (write, {"topic": "rain"}, "sampling/createMessage", {"sampling": {}}),
        (with_tools, {}, "sampling/createMessage", {"sampling": {}}),
        (where, {}, "roots/list", {"roots": {}}),
        (travel, {"topic": "rain"}, "elicitation/create", {"elicitation": {"form": {}}}),
    ],
    ids=["form", "sampling", "sampling with tools", "roots", "the first of several"],
)
async def test_a_client_that_cannot_be_asked_gets_a_protocol_error(
    tool: Callable[..., Any], arguments: dict[str, Any], method: str, required: Any, mode: Mode
) -> None:
    mcp = server_of(tool)
    recorder = recorded(mcp)
    async with Client(mcp, mode=mode) as client:
        with pytest.raises(MCPError, match=f"the client did not declare what {method} needs") as caught:
            await client.call_tool(tool.__name__, arguments)
    assert requests_of_the_server(recorder) == []
    if mode == "auto":
        assert isinstance(caught.value, MissingClientCapability)
        assert (caught.value.code, caught.value.data) == (-32021, {"requiredCapabilities": required})
    else:
        assert caught.value.code == -32602


@pytest.mark.requirement("R-MRTR-04")
@pytest.mark.requirement("R-SAMP-01")
@either_era
async def test_sampling_with_tools_is_a_capability_of_its_own(mode: Mode) -> None:
    user, mcp = User(), server_of(with_tools)
    async with user.client(mcp, mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("with_tools")
    assert caught.value.code == (-32021 if mode == "auto" else -32602)
    assert user.asked == []
    able = SamplingCapability(tools={})
    async with Client(mcp, mode=mode, sampling_callback=user.sample, sampling_capabilities=able) as client:
        assert text_of(await client.call_tool("with_tools")) == "m-1"


@pytest.mark.requirement("R-MRTR-04")
async def test_nothing_is_asked_of_a_client_that_cannot_answer_all_of_a_round() -> None:
    asked: list[Any] = []

    def elicit(ctx: Any, params: Any) -> ElicitResult:
        asked.append(params)
        return ElicitResult(action="decline")

    async with Client(server_of(travel), elicitation_callback=elicit) as client:
        with pytest.raises(MissingClientCapability) as caught:
            await client.call_tool("travel", {"topic": "rain"})
    assert caught.value.data == {"requiredCapabilities": {"sampling": {}}}
    assert asked == []


@either_era
async def test_who_is_asked_nothing_needs_no_capability(mode: Mode) -> None:
    def never(place: str) -> Confirm | Elicit[Confirm]:
        return Confirm(sure=False)

    def tool(place: str, sure: Annotated[Confirm, Resolve(never)]) -> str:
        return f"{place} {sure.sure}"

    async with Client(server_of(tool), mode=mode) as client:
        assert text_of(await client.call_tool("tool", {"place": "Rome"})) == "Rome False"


async def test_a_call_from_python_has_nobody_to_ask() -> None:
    mcp = server_of(product, book)
    assert (await mcp.call_tool("product", {"factor": 1})).structured_content == {"result": [7, 8, 9, 10, 11]}
    with pytest.raises(MCPError, match="the client did not declare what elicitation/create needs"):
        await mcp.call_tool("book", {"place": "Rome"})


@either_era
async def test_a_tool_that_is_called_by_another_asks_where_the_era_lets_it(mode: Mode) -> None:
    mcp = server_of(book)

    @mcp.tool()
    async def outer(ctx: Context) -> str:
        return text_of(await mcp.call_tool("book", {"place": "Rome"}, ctx))

    user = User(sure=YES)
    if mode == "legacy":
        assert await success(mcp, "outer", mode=mode, user=user) == "Rome: Confirm(sure=True)"
    else:
        text = await failure(mcp, "outer", mode=mode, user=user)
        assert text == (
            "Error executing tool outer: book asks the client for input, which a call from another tool cannot pass on"
        )


# --- what goes wrong --------------------------------------------------------------------------------------------


@either_era
@pytest.mark.parametrize("depth", ["the resolver", "a resolver of it"])
@pytest.mark.parametrize("colour", ["async", "plain"])
async def test_a_tool_error_of_a_resolver_is_the_tool_s(colour: str, depth: str, mode: Mode) -> None:
    def plain() -> int:
        raise ToolError("sold out", data={"left": 0})

    async def later() -> int:
        raise ToolError("sold out", data={"left": 0})

    fails = plain if colour == "plain" else later

    def above(value: Annotated[int, Resolve(fails)]) -> int:
        return value

    def direct(value: Annotated[int, Resolve(fails)]) -> int:
        return value

    def indirect(value: Annotated[int, Resolve(above)]) -> int:
        return value

    mcp = server_of(direct if depth == "the resolver" else indirect)
    name = "direct" if depth == "the resolver" else "indirect"
    result = await answer(mcp, name, mode=mode)
    assert result.is_error
    assert result.content[0] == TextContent(text=f"Error executing tool {name}: sold out")
    assert (result.meta or {})["mcpcore/error"] == {"data": {"left": 0}}


def secret() -> int:
    raise ValueError("the secret")


def leaks(value: Annotated[int, Resolve(secret)]) -> int:
    return value


@either_era
async def test_any_other_exception_of_a_resolver_is_masked(mode: Mode, caplog: pytest.LogCaptureFixture) -> None:
    text = await failure(server_of(leaks), "leaks", mode=mode)
    found = re.fullmatch(r"Error executing tool leaks \(error id ([0-9a-f]{8})\)", text)
    assert found is not None
    flush_logs()
    (record,) = [record for record in caplog.records if found[1] in record.getMessage()]
    assert record.levelname == "ERROR"
    assert "ValueError: the secret" in (record.exc_text or "")


@either_era
async def test_an_author_may_show_it(mode: Mode) -> None:
    shown = await failure(server_of(leaks, mask_errors=False), "leaks", mode=mode)
    assert shown == "Error executing tool leaks: ValueError: the secret"


@either_era
async def test_a_protocol_error_of_a_resolver_goes_out_as_it_is(mode: Mode) -> None:
    def refuse() -> int:
        raise MCPError(-32050, "not here", {"why": "closed"})

    def tool(value: Annotated[int, Resolve(refuse)]) -> int:
        return value

    async with Client(server_of(tool), mode=mode) as client:
        with pytest.raises(MCPError, match="not here") as caught:
            await client.call_tool("tool")
    assert (caught.value.code, caught.value.data) == (-32050, {"why": "closed"})


@either_era
async def test_a_form_that_nobody_announced_fails_when_it_is_asked(mode: Mode) -> None:
    def ask() -> Any:
        return Elicit("books?", Shelf)

    def tool(books: Annotated[Shelf, Resolve(ask)]) -> str:
        raise AssertionError("must not get here")

    user = User(books={"books": []})
    text = await failure(server_of(tool), "tool", mode=mode, user=user)
    assert re.fullmatch(r"Error executing tool tool \(error id [0-9a-f]{8}\)", text)
    assert user.asked == []


def ping(other: Annotated[int, Resolve(pong)]) -> int:  # pyright: ignore[reportUndefinedVariable, reportUnknownArgumentType]
    return other


def pong(other: Annotated[int, Resolve(ping)]) -> int:
    return other


def oneself(other: Annotated[int, Resolve(oneself)]) -> int:  # pyright: ignore[reportUndefinedVariable, reportUnknownArgumentType]
    return other


def lost(nowhere: int) -> int:
    return nowhere


def deeply_lost(found: Annotated[int, Resolve(lost)]) -> int:
    return found


def ask_two_kinds() -> Elicit[Confirm] | Sample:
    return ask_sure()


def ask_two_forms() -> Elicit[Confirm] | Elicit[Seats] | None:
    return None


async def ask_for_a_shelf() -> Elicit[Shelf]:
    return Elicit("books?", Shelf)


def many(*numbers: int) -> int:
    return sum(numbers)


def half(other: Annotated[int, Resolve(seven)] | None) -> int:
    return other or 0


def in_a_circle(value: Annotated[int, Resolve(ping)]) -> int:
    return value


def in_itself(value: Annotated[int, Resolve(oneself)]) -> int:
    return value


def with_a_stranger(value: Annotated[int, Resolve(lost)]) -> int:
    return value


def with_a_stranger_below(value: Annotated[int, Resolve(deeply_lost)]) -> int:
    return value


def of_two_kinds(value: Annotated[Any, Resolve(ask_two_kinds)]) -> int:
    return 1


def of_two_forms(value: Annotated[Any, Resolve(ask_two_forms)]) -> int:
    return 1


def of_no_form(value: Annotated[Shelf, Resolve(ask_for_a_shelf)]) -> int:
    return 1


def in_a_union(value: Annotated[int, Resolve(seven)] | None) -> int:
    return value or 0


def in_an_annotated_union(value: Annotated[Annotated[int, Resolve(seven)] | None, "a value"]) -> int:
    return value or 0


def in_a_list(value: list[Annotated[int, Resolve(seven)]]) -> int:
    return sum(value)


def in_a_union_below(value: Annotated[int, Resolve(half)]) -> int:
    return value


def with_a_round_of_its_own(value: Annotated[int, Resolve(seven)]) -> str | InputRequiredResult:
    return str(value)


def with_starred(value: Annotated[int, Resolve(many)]) -> int:
    return value


@pytest.mark.parametrize(
    ("tool", "parameter", "reason"),
    [
        (in_a_circle, "value", "depends on itself"),
        (in_itself, "value", "depends on itself"),
        (with_a_stranger, "nowhere", "is no argument of the tool"),
        (with_a_stranger_below, "nowhere", "is no argument of the tool"),
        (of_two_kinds, "value", "may ask several things"),
        (of_two_forms, "value", "may ask several things"),
        (of_no_form, "value", "Shelf.books cannot be asked for in a form"),
        (in_a_union, "value", "Resolve(...) must be around the whole type"),
        (in_an_annotated_union, "value", "Resolve(...) must be around the whole type"),
        (in_a_list, "value", "Resolve(...) must be around the whole type"),
        (in_a_union_below, "other", "Resolve(...) must be around the whole type"),
        (with_a_round_of_its_own, "value", "InputRequiredResult"),
        (with_starred, "numbers", "has no place in a schema"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_what_cannot_be_resolved_is_refused_when_it_is_registered(
    tool: Callable[..., Any], parameter: str, reason: str
) -> None:
    mcp = server_of(product)
    with pytest.raises(InvalidSignature) as caught:
        mcp.add_tool(tool)
    text = str(caught.value)
    assert reason in text
    assert f"tool {tool.__name__!r}" in text
    assert re.search(rf"parameter '?\*?{parameter}\b", text), text
    # The others are none the worse for it.
    async with Client(mcp) as client:
        assert [listed.name for listed in (await client.list_tools()).tools] == ["product"]


# --- rounds made by hand -------------------------------------------------------------------------------------------


def greet(ctx: Context, greeting: str = "Hello") -> str | InputRequiredResult:
    params = ctx.request_context.params
    if "inputResponses" not in params:
        name = {"type": "object", "properties": {"name": {"type": "string"}}}
        form = ElicitRequestFormParams(message="name?", requested_schema=name)
        return InputRequiredResult(
            input_requests={"who": InputRequest(method="elicitation/create", params=form)}, request_state="kept"
        )
    return f"{greeting}, {params['inputResponses']['who']['content']['name']} ({params['requestState']})"


@pytest.mark.requirement("R-MRTR-01")
@pytest.mark.requirement("R-MRTR-02")
async def test_a_tool_may_return_its_questions_by_hand() -> None:
    user = User(name={"name": "Ann"})
    async with user.client(server_of(greet)) as client:
        result = await client.call_tool("greet", {"greeting": "Hi"})
    assert text_of(result) == "Hi, Ann (kept)"
    assert result.structured_content == {"result": "Hi, Ann (kept)"}
    assert user.asked == ["name?"]


def of_model(ctx: Context) -> Confirm | InputRequiredResult:
    return Confirm(sure=True)


def of_three(ctx: Context) -> int | InputRequiredResult | None:
    return None


@either_era
@pytest.mark.parametrize(
    ("tool", "schema"),
    [
        (
            greet,
            {
                "type": "object",
                "properties": {"result": {"title": "Result", "type": "string"}},
                "required": ["result"],
                "title": "greetOutput",
            },
        ),
        (
            of_model,
            {
                "type": "object",
                "description": "A form with one question.",
                "properties": {"sure": {"title": "Sure", "type": "boolean"}},
                "required": ["sure"],
                "title": "Confirm",
            },
        ),
        (
            of_three,
            {
                "type": "object",
                "properties": {"result": {"title": "Result", "anyOf": [{"type": "integer"}, {"type": "null"}]}},
                "required": ["result"],
                "title": "of_threeOutput",
            },
        ),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_the_schema_of_such_a_tool_is_that_of_what_else_it_returns(
    tool: Callable[..., Any], schema: Any, mode: Mode
) -> None:
    async with Client(server_of(tool), mode=mode) as client:
        (listed,) = (await client.list_tools()).tools
    assert listed.output_schema == schema


async def test_what_else_such_a_tool_returns_is_still_validated() -> None:
    def tool() -> int | InputRequiredResult:
        return "many"  # type: ignore[return-value] # pyright: ignore[reportReturnType]

    text = await failure(server_of(tool), "tool", mode="auto")
    assert text.startswith("Error executing tool tool: 1 validation error for toolOutput\nresult\n")


async def test_a_tool_that_only_asks_promises_nothing() -> None:
    def tool() -> InputRequiredResult:
        return InputRequiredResult(request_state="once")

    async with Client(server_of(tool)) as client:
        (listed,) = (await client.list_tools()).tools
        got = await client.request("tools/call", {"name": "tool"})
    assert listed.output_schema is None
    assert (got["resultType"], got["requestState"]) == ("input_required", "once")


@pytest.mark.requirement("R-MRTR-01")
async def test_a_handshake_era_client_cannot_be_asked_by_hand() -> None:
    user = User(name={"name": "Ann"})
    async with user.client(server_of(greet), "legacy") as client:
        with pytest.raises(InternalError):
            await client.call_tool("greet")
    assert user.asked == []


@pytest.mark.requirement("R-MRTR-04")
async def test_a_client_is_asked_by_hand_only_for_what_it_declared() -> None:
    async with Client(server_of(greet)) as client:
        with pytest.raises(MissingClientCapability) as caught:
            await client.call_tool("greet")
    assert caught.value.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}


# --- who may use a state ----------------------------------------------------------------------------


class Verifier:
    """Takes every token for that of the client it names."""

    async def verify_token(self, token: str) -> AccessToken:
        return AccessToken(token=token, client_id=token, subject=token)


@pytest.mark.fault("S-16")
@pytest.mark.fault("X-21")
@pytest.mark.requirement("R-MRTR-06")
@pytest.mark.parametrize("who", ["alice", "bob"])
async def test_a_state_is_good_for_the_caller_it_was_given_to(who: str) -> None:
    def tool(ctx: Context, sure: Annotated[Confirm, Resolve(ask_sure)]) -> str:
        assert ctx.auth is not None
        return f"wiped for {ctx.auth.client_id}"

    settings = AuthSettings(issuer_url="http://a", resource_server_url="http://127.0.0.1/mcp", check_resource=False)
    app = server_of(tool).streamable_http_app(auth=settings, token_verifier=Verifier())

    async def call(who: str, **more: Any) -> Any:
        client = ModernClient(app, headers={"authorization": f"Bearer {who}"})
        params: dict[str, Any] = {"name": "tool", "arguments": {}, **more}
        message = client.message(1, "tools/call", params, capabilities={"elicitation": {"form": {}}})
        return json.loads((await client.answer(message)).body)

    asked = (await call("alice"))["result"]
    (key,) = asked["inputRequests"]
    responses = {key: {"action": "accept", "content": YES}}
    answer = await call(who, requestState=asked["requestState"], inputResponses=responses)
    if who == "alice":
        assert answer["result"]["content"][0]["text"] == "wiped for alice"
    else:
        assert answer["error"]["message"] == "Invalid or expired requestState"


async def test_answers_that_are_too_long_for_the_state_end_the_call() -> None:
    def second(first: Annotated[CreateMessageResult, Resolve(ask_for_poem)]) -> Sample:
        return Sample([], max_tokens=5)

    def tool(last: Annotated[CreateMessageResult, Resolve(second)]) -> str:
        return "never"

    mcp = server_of(tool, request_state=RequestStateSigner(max_size=500))
    long = CreateMessageResult(role="assistant", content=TextContent(text="x" * 1000), model="m")
    async with Client(mcp, sampling_callback=lambda ctx, params: long) as client:
        result = await client.call_tool("tool")
    assert result.is_error
    assert "too long to be kept for the next round" in text_of(result)


def ask_for_poem() -> Sample:
    return Sample([], max_tokens=5)


async def test_a_state_of_the_author_s_own_has_no_answers_of_ours() -> None:
    signer, states = RequestStateSigner(), list[str]()
    mcp = server_of(book, request_state=signer)

    async def around(ctx: RequestContext[Any], call_next: Any) -> Any:
        states.extend(signer.sign(ctx, odd) for odd in ({"asked": 5, "answers": [1]}, [1], "x", None))
        return await call_next(ctx)

    mcp.middleware.append(around)
    call: dict[str, Any] = {"name": "book", "arguments": {"place": "Rome"}}
    async with RawPeer.of(mcp.server) as peer:
        await peer.modern(1, "tools/call", call, capabilities={"elicitation": {"form": {}}})
        for number, state in enumerate(states[:4]):
            again = {
                **call,
                "requestState": state,
                "inputResponses": {"ask_sure": {"action": "accept", "content": YES}},
            }
            answer = await peer.modern(number + 2, "tools/call", again, capabilities={"elicitation": {"form": {}}})
            assert answer["result"]["resultType"] == "input_required", "an answer to what was never asked"


# --- resolvers that open something ---------------------------------------------------------------------


@contextmanager
def noted(moments: list[Any]) -> Generator[None]:
    """Notes that it is opened, what is raised in it, and that it is closed."""
    moments.append("open")
    try:
        yield
    except BaseException as exc:
        moments.append(type(exc).__name__)
        raise
    finally:
        moments.append("closed")


def opener(colour: str, moments: list[Any]) -> Callable[..., Any]:
    """A resolver of a kind that has an end."""

    def plain() -> Generator[int]:
        with noted(moments):
            yield 5

    async def later() -> AsyncGenerator[int]:
        with noted(moments):
            yield 5

    kinds: dict[str, Callable[..., Any]] = {
        "generator": plain,
        "async generator": later,
        "context manager": contextmanager(plain),
        "async context manager": asynccontextmanager(later),
    }
    return kinds[colour]


KINDS = ["generator", "async generator", "context manager", "async context manager"]


@pytest.mark.fault("X-09")
@either_era
@pytest.mark.parametrize("colour", KINDS)
@pytest.mark.parametrize("run", ["thread", "inline"])
async def test_what_a_resolver_opens_is_closed_after_the_call(colour: str, run: Any, mode: Mode) -> None:
    moments: list[Any] = []

    def tool(value: Annotated[int, Resolve(opener(colour, moments))]) -> int:
        moments.append(value)
        return value

    assert await success(server_of(tool, run=run), "tool", mode=mode) == "5"
    assert moments == ["open", 5, "closed"]


@pytest.mark.fault("X-09")
@pytest.mark.parametrize("colour", KINDS)
async def test_it_is_closed_after_a_call_that_failed_and_learns_how(colour: str) -> None:
    moments: list[Any] = []

    def tool(value: Annotated[int, Resolve(opener(colour, moments))]) -> int:
        raise ToolError("no")

    assert await failure(server_of(tool), "tool") == "Error executing tool tool: no"
    assert moments == ["open", "ToolError", "closed"]


@pytest.mark.fault("X-09")
@pytest.mark.parametrize("colour", KINDS)
async def test_it_is_closed_after_a_call_that_was_given_up(colour: str) -> None:
    moments: list[Any] = []
    begun = anyio.Event()

    async def tool(value: Annotated[int, Resolve(opener(colour, moments))]) -> int:
        begun.set()
        await anyio.sleep_forever()
        return value

    async with Client(server_of(tool)) as client, anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "tool")
        await begun.wait()
        group.cancel_scope.cancel()
    with anyio.fail_after(30):
        while "closed" not in moments:  # noqa: ASYNC110 - a thread closes it
            await anyio.sleep(0.001)
    assert moments[0] == "open"


@pytest.mark.fault("X-09")
async def test_it_is_closed_after_each_round_and_in_reverse_order() -> None:
    moments: list[str] = []

    def first() -> Iterator[str]:
        moments.append("first")
        yield "one"
        moments.append("/first")

    def second(one: Annotated[str, Resolve(first)]) -> Iterator[str]:
        moments.append(f"second of {one}")
        yield "two"
        moments.append("/second")

    def tool(two: Annotated[str, Resolve(second)], sure: Annotated[Confirm, Resolve(ask_sure)]) -> str:
        return f"{two} {sure.sure}"

    assert await success(server_of(tool), "tool", user=User(sure=YES)) == "two True"
    assert moments == ["first", "second of one", "/second", "/first"] * 2


@pytest.mark.fault("X-09")
async def test_a_generator_may_ask() -> None:
    moments: list[str] = []

    def asks() -> Iterator[Elicit[Confirm]]:
        yield Elicit("sure?", Confirm)
        moments.append("closed")

    def tool(sure: Annotated[Confirm, Resolve(asks)]) -> str:
        return str(sure.sure)

    assert await success(server_of(tool), "tool", user=User(sure=YES)) == "True"
    assert moments == ["closed", "closed"]


@pytest.mark.fault("X-09")
async def test_a_resolver_that_hides_the_tool_s_exception_does_not_make_it_a_success() -> None:
    def hides() -> Iterator[int]:
        try:
            yield 5
        except ToolError:
            pass

    def tool(value: Annotated[int, Resolve(hides)]) -> None:
        raise ToolError("no")

    text = await failure(server_of(tool, mask_errors=False), "tool")
    assert "a resolver suppressed the exception" in text


async def test_a_connection_is_its_owner_s_to_close() -> None:
    class Connection:
        entered = False

        def __enter__(self) -> Connection:
            self.entered = True
            return self

        def __exit__(self, *how: Any) -> None:
            self.entered = False

    connection = Connection()

    def owned() -> Connection:
        return connection

    def tool(db: Annotated[Connection, Resolve(owned)]) -> str:
        return f"{db is connection} {db.entered}"

    assert await success(server_of(tool), "tool") == "True False"


# --- values and their parameters -------------------------------------------------------------------------


class Repository:
    """A class that pydantic knows nothing of."""


class Reader(Protocol):
    def read(self) -> str: ...


SHARED: dict[str, int] = {"a": 1}
CONFIRMED = Confirm(sure=True)

FITS: list[Any] = [
    (int, 5, 5),
    (float, 5, 5.0),
    (str | None, None, None),
    (list[int], [1, 2], [1, 2]),
    (Confirm, CONFIRMED, CONFIRMED),
    (dict[str, int], SHARED, SHARED),
    (Literal["a", "b"], "a", "a"),
    (Any, Repository, Repository),
    (Reader, 5, 5),  # that cannot be checked
    (int, "7", 7),
    (list[int], (1, 2), [1, 2]),
    (Confirm, {"sure": True}, CONFIRMED),
]

DOES_NOT_FIT: list[Any] = [
    (int, "seven", "a str"),
    (int, None, "a NoneType"),
    (Confirm, 5, "a int"),
    (Repository, "text", "a str"),
    (list[int], ["x"], "a list"),
    (Literal["a"], "b", "a str"),
]


def filled(annotation: Any, value: Any, got: list[Any]) -> MCPServer:
    def resolver() -> Any:
        return value

    def tool(x: Any) -> str:
        got.append(x)
        return "called"

    tool.__annotations__["x"] = Annotated[annotation, Resolve(resolver)]
    return server_of(tool, mask_errors=False)


@pytest.mark.fault("X-09")
@pytest.mark.parametrize(("annotation", "value", "expected"), FITS, ids=[f"{row[0]} {row[1]!r}"[:50] for row in FITS])
async def test_a_value_that_fits_is_passed_on(annotation: Any, value: Any, expected: Any) -> None:
    got: list[Any] = []
    assert await success(filled(annotation, value, got), "tool") == "called"
    assert got == [expected]
    if value is expected:
        assert got[0] is value, "not a copy"


@pytest.mark.fault("X-09")
@pytest.mark.parametrize(
    ("annotation", "value", "kind"), DOES_NOT_FIT, ids=[f"{row[0]} {row[1]!r}"[:50] for row in DOES_NOT_FIT]
)
async def test_a_value_that_does_not_fit_its_parameter_is_a_failure(annotation: Any, value: Any, kind: str) -> None:
    got: list[Any] = []
    text = await failure(filled(annotation, value, got), "tool")
    assert f"TypeError: resolver 'resolver' gave {kind}, which parameter 'x' does not take" in text
    assert got == []


@pytest.mark.fault("X-09")
def test_a_resolver_as_a_default_is_refused() -> None:
    def tool(value: int = cast("int", Resolve(seven))) -> int:
        return value

    def resolver(value: int = cast("int", Resolve(seven))) -> int:
        return value

    def outer(value: Annotated[int, Resolve(resolver)]) -> int:
        return value

    for function in (tool, outer):
        with pytest.raises(InvalidSignature, match=r"Resolve\(\.\.\.\) is no default; write it into the annotation"):
            MCPServer("x").add_tool(function)


@pytest.mark.fault("X-09")
@pytest.mark.parametrize("given", [3, None, "seven"], ids=str)
def test_what_is_no_function_resolves_nothing(given: Any) -> None:
    with pytest.raises(TypeError, match="Resolve takes a function; got "):
        Resolve(given)

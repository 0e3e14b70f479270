"""Code as users write it, checked by both type checkers; `assert_type` holds what they see."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict, assert_never, assert_type

from msgspec import Struct
from pydantic import BaseModel

from mcp_core import Client, RequestContext, Server
from mcp_core.request_state import RequestStateSigner
from mcp_core.types import (
    AudioContent,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    CreateMessageResult,
    ImageContent,
    InputRequiredResult,
    ListRootsResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prepared,
    SamplingMessage,
    TextContent,
    Tool,
    ToolAnnotations,
)
from mcp_typed import (
    AcceptedElicitation,
    Audio,
    Cancellation,
    CancelledElicitation,
    Context,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    Image,
    ListRoots,
    MCPServer,
    Resolve,
    Result,
    Sample,
    ToolError,
)


@dataclass
class State:
    """What a lifespan yields."""

    books: int


@asynccontextmanager
async def lifespan(server: Server[State]) -> AsyncGenerator[State, None]:
    yield State(3)


async def list_tools(ctx: RequestContext[State], params: PaginatedRequestParams | None) -> ListToolsResult:
    assert_type(ctx.lifespan_context, State)
    assert_type(ctx.protocol_version, str)
    return ListToolsResult(tools=[Tool(name="x", input_schema={"type": "object"})])


async def call_tool(ctx: RequestContext[State], params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
    assert_type(params.arguments, dict[str, Any] | None)
    if params.request_state is None:
        return InputRequiredResult(request_state="s")
    return CallToolResult(content=[TextContent(type="text", text="x")], _meta={"a/b": 1})


def list_inline(ctx: RequestContext, params: PaginatedRequestParams) -> Prepared[ListToolsResult]:
    assert_type(ctx.lifespan_context, dict[str, Any])
    return Prepared(ListToolsResult(tools=[]))


stateful = Server("a", lifespan=lifespan, on_list_tools=list_tools, on_call_tool=call_tool)
assert_type(stateful, Server[State])

plain = Server("b", on_list_tools=list_inline)
assert_type(plain, Server[dict[str, Any]])


async def as_a_client() -> None:
    async with Client(stateful) as client:
        result = await client.call_tool("x", {"a": 1})
        assert_type(result, CallToolResult)
        assert_type(result.content, list[ContentBlock])
        assert_type(result.is_error, bool)
        assert_type(result.meta, dict[str, Any] | None)
        assert_type(await client.list_tools(), ListToolsResult)


mcp = MCPServer("typed")


@mcp.tool()
async def add(a: int, b: int, ctx: Context) -> int:
    return a + b


@mcp.tool
def double(a: int) -> int:
    return 2 * a


@mcp.tool("renamed", title="Renamed")
def named(a: int) -> int:
    return a


assert_type(double(1), int)
assert_type(named(1), int)


# --- decorators keep what they decorate ---------------------------------------------------------------


@mcp.tool
async def later(name: str, /, count: int = 1, *, loud: bool = False) -> list[str]:
    """Greet."""
    return [name] * count


@mcp.tool(title="Stop", annotations=ToolAnnotations(read_only_hint=True), structured_output=False, timeout=5)
def stop(token: Cancellation) -> None:
    """Stop."""
    assert_type(token.requested, bool)
    assert_type(token.wait(1), bool)
    token.check()


class Catalog:
    """Has tools as methods."""

    def size(self, of: str = "") -> int:
        return len(of)


mcp.add_tool(Catalog().size, "size", description="How many.")
mcp.add_tool(lambda: 1, name="one", run="inline", max_concurrency=1, unknown_arguments="reject")


async def calls_what_it_decorated(ctx: Context[State]) -> None:
    assert_type(await later("Ann", 2, loud=True), list[str])
    stop(Cancellation())
    # The parameters are known, not only the result.
    await later(name="Ann")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    double("two")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    assert_type(await add(1, 2, ctx), int)


# --- contexts -------------------------------------------------------------------------------------------


shop = MCPServer("shop", lifespan=lifespan, request_state=RequestStateSigner([b"k" * 32]), run="inline")
assert_type(shop.server, Server[Any])
assert_type(shop.name, str)


@shop.tool()
async def stock(ctx: Context[State], core: RequestContext[State]) -> int:
    assert_type(ctx.lifespan_context, State)
    assert_type(ctx.lifespan_context.books, int)
    assert_type(ctx.request_context, RequestContext[State])
    assert_type(core.lifespan_context, State)
    assert_type(ctx.session.lifespan_context, State)
    await ctx.report_progress(1, 2, "half")
    await ctx.info({"said": 1}, logger_name="shop")
    return ctx.lifespan_context.books


@shop.tool()
def untold(ctx: Context) -> str:
    # Who names no lifespan may do as with any value.
    assert_type(ctx.lifespan_context, Any)
    assert_type(ctx.protocol_version, str)
    assert_type(ctx.meta, dict[str, Any])
    return ctx.protocol_version


# --- questions ------------------------------------------------------------------------------------------


class Confirm(BaseModel):
    """A form."""

    sure: bool


class Wish(TypedDict):
    """A form that is no class of pydantic's."""

    seat: str


def describe(outcome: ElicitationResult[Confirm]) -> str:
    if isinstance(outcome, AcceptedElicitation):
        assert_type(outcome, AcceptedElicitation[Confirm])
        assert_type(outcome.data, Confirm)
        return str(outcome.data.sure)
    assert_type(outcome, DeclinedElicitation | CancelledElicitation)
    return outcome.action


def describe_by_action(outcome: ElicitationResult[Confirm]) -> str:
    if outcome.action == "accept":
        assert_type(outcome.data, Confirm)
        return str(outcome.data.sure)
    assert_type(outcome, DeclinedElicitation | CancelledElicitation)
    return outcome.action


def describe_by_match(outcome: ElicitationResult[Confirm]) -> str:
    match outcome:
        case AcceptedElicitation(data=data):
            assert_type(data, Confirm)
            return str(data.sure)
        case DeclinedElicitation():
            return "no"
        case CancelledElicitation():
            return "nothing"
        case _:
            assert_never(outcome)


@shop.tool()
async def order(ctx: Context[State]) -> str:
    outcome = await ctx.elicit("Sure?", Confirm)
    assert_type(outcome, AcceptedElicitation[Confirm] | DeclinedElicitation | CancelledElicitation)
    wish = await ctx.elicit("Which seat?", Wish, timeout=60)
    if isinstance(wish, AcceptedElicitation):
        assert_type(wish.data, Wish)
        return wish.data["seat"]
    return describe(outcome)


def ask_sure(book: str) -> Elicit[Confirm]:
    elicit = Elicit(f"Order {book}?", Confirm)
    assert_type(elicit, Elicit[Confirm])
    assert_type(elicit.schema, type[Confirm])
    return elicit


async def ask_if_needed(book: str, sure: Annotated[Confirm, Resolve(ask_sure)]) -> Confirm | Elicit[Confirm]:
    return sure if sure.sure else Elicit("Really?", Confirm)


def ask_model(book: str) -> Sample:
    message = SamplingMessage(role="user", content=TextContent(text=book))
    return Sample([message], max_tokens=50, temperature=0.5)


def ask_roots() -> ListRoots:
    return ListRoots()


@shop.tool()
def buy(
    book: str,
    sure: Annotated[Confirm, Resolve(ask_sure)],
    really: Annotated[ElicitationResult[Confirm], Resolve(ask_if_needed)],
    blurb: Annotated[CreateMessageResult, Resolve(ask_model)],
    roots: Annotated[ListRootsResult, Resolve(ask_roots)],
    count: Annotated[int, Resolve(lambda: 1)],
) -> str:
    assert_type(sure, Confirm)
    assert_type(really, AcceptedElicitation[Confirm] | DeclinedElicitation | CancelledElicitation)
    assert_type(blurb.model, str)
    assert_type(count, int)
    return book + describe_by_action(really) + describe_by_match(really) + str(len(roots.roots))


# A resolved parameter is an ordinary one to whoever calls the function in Python.
assert_type(ask_sure("Dune"), Elicit[Confirm])


# --- results --------------------------------------------------------------------------------------------


@shop.tool()
def dressed(a: int) -> Result[int]:
    result = Result(a, text="said", content=[TextContent(text="x"), Image(data=b"x")], meta={"x": 1})
    assert_type(result, Result[int])
    assert_type(result.value, int)
    return result


@shop.tool()
def dressed_list() -> Result[list[Confirm]]:
    return Result([Confirm(sure=True)], text="sure")


@shop.tool()
def wrongly_dressed() -> Result[int]:
    return Result("one")  # type: ignore[arg-type] # pyright: ignore[reportReturnType]


assert_type(dressed(1), Result[int])
assert_type(dressed_list().value, list[Confirm])


@shop.tool()
def asks_by_hand(ctx: Context) -> str | InputRequiredResult:
    return "answered" if "inputResponses" in ctx.request_context.params else InputRequiredResult(request_state="s")


@shop.tool()
def media() -> list[str | Image | Audio]:
    image, audio = Image(path="a.png"), Audio(data=b"x", format="mp3")
    assert_type(image.to_image_content(), ImageContent)
    assert_type(audio.to_audio_content(), AudioContent)
    return ["look", image, audio]


async def from_python() -> None:
    try:
        assert_type(await shop.call_tool("dressed", {"a": 1}), CallToolResult)
    except ToolError as exc:
        assert_type(exc.message, str)
    assert_type(await shop.list_tools(), list[Tool])
    assert_type([str(finding) + finding.code for finding in shop.lint()], list[str])


# --- options ----------------------------------------------------------------------------------------------


class Query(Struct):
    """Params of a method of the author's."""

    text: str


def serve(server: Server, fast: MCPServer) -> None:
    server.run("stdio", drain_timeout=5, loop="trio")
    server.run("streamable-http", port=0, workers=2, max_sessions=10)
    fast.run("streamable-http", json_response=True)
    server.run(prot=1)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue]
    server.run("stdio", port=1)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType]
    fast.run("streamable-http", loop="trio")  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType]
    server.streamable_http_app(health_path="/health")
    server.streamable_http_app(health="/health")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    fast.streamable_http_app(keep_alive="5")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def register(server: Server, fast: MCPServer) -> None:
    def search(ctx: RequestContext, params: Query) -> dict[str, int]:
        return {"hits": len(params.text)}

    def echo(x: str) -> str:
        return x

    server.add_request_handler("acme/search", Query, search)
    server.add_request_handler("acme/search", int, search)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    server.add_notification_handler("notifications/acme", Query, search)
    fast.add_tool(echo, timeout=5, title="Echo")
    fast.add_tool(echo, timeuot=5)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    fast.tool("echo", structured_output=False)(echo)
    fast.tool("echo", structured="no")(echo)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue]


async def connect(server: Server, fast: MCPServer) -> None:
    Client(server, mode="modern")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    Client(5)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    async with Client(fast, mode="legacy") as client:
        assert_type(await client.request("acme/search"), dict[str, Any])
        assert_type(await client.request("acme/search", Query("x"), Query), Query)
        assert_type(await client.request("acme/search", result_type=list[int]), list[int])


def who_calls(ctx: RequestContext[dict[str, int]]) -> str:
    assert_type(ctx.server, Server[dict[str, int]])
    assert_type(ctx.lifespan_context, dict[str, int])
    return "anonymous" if ctx.auth is None else ctx.auth.client_id

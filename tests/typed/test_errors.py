"""Every way in which a tool can fail, and what runs a tool: threads, limits, time, cancellation, change."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest
from pydantic import BaseModel

from mcp_core import Client, MCPError, RequestContext, ResourceNotFound, StdioServerParameters
from mcp_core.client import Mode
from mcp_core.errors import UrlElicitationRequired
from mcp_core.subscriptions import ToolsListChanged
from mcp_core.testing import RawPeer, flush_logs
from mcp_core.types import (
    CallToolResult,
    ElicitRequestURLParams,
    ImageContent,
    Implementation,
    LoggingMessageNotificationParams,
    TextContent,
)
from mcp_typed import Cancellation, Context, MCPServer, ToolError
from tests.core.peers import answers, code_of, legacy, line, modern, notification

MODES = ["auto", "legacy"]
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
STAMP_KEY = "io.modelcontextprotocol/serverInfo"


def masked(name: str) -> str:
    """A pattern of the text by which a crash is told."""
    return rf"Error executing tool {name} \(error id ([0-9a-f]{{8}})\)"


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def call(
    mcp: MCPServer, name: str, arguments: dict[str, Any] | None = None, mode: Mode = "auto"
) -> CallToolResult:
    async with Client(mcp, mode=mode) as client:
        return await client.call_tool(name, arguments)


async def failure(mcp: MCPServer, name: str, arguments: dict[str, Any] | None = None, mode: Mode = "auto") -> str:
    """The text of a call that must fail, and carry nothing else."""
    result = await call(mcp, name, arguments, mode)
    assert result.is_error
    assert result.structured_content is None
    return text_of(result)


def raising(error: BaseException, colour: str, name: str = "fails", **options: Any) -> MCPServer:
    """A server whose tool raises this; another one says that it lives."""
    mcp = MCPServer("errors", **options)

    async def later() -> str:
        raise error

    def now() -> str:
        raise error

    mcp.add_tool(later if colour == "async" else now, name=name)
    mcp.add_tool(lambda: "alive", name="alive")
    return mcp


class ShelfError(ToolError):
    """A refusal of the author's own kind."""


# --- what the model reads ---------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("error", "colour"),
    [
        pytest.param(ValueError("secret"), "plain", id="ValueError", marks=pytest.mark.observed("S-437")),
        pytest.param(ValueError("secret"), "async", id="ValueError, async", marks=pytest.mark.observed("S-438")),
        pytest.param(KeyError("secret"), "plain", id="KeyError"),
        pytest.param(
            BaseExceptionGroup("secret", [ValueError("secret")]),
            "plain",
            id="group",
            marks=pytest.mark.observed("S-446"),
        ),
        pytest.param(
            ExceptionGroup("secret", [ValueError("secret"), KeyError("secret")]), "async", id="group of exceptions"
        ),
        pytest.param(GeneratorExit("secret"), "async", id="GeneratorExit", marks=pytest.mark.fault("X-11")),
        pytest.param(GeneratorExit("secret"), "plain", id="GeneratorExit, plain", marks=pytest.mark.fault("X-11")),
        pytest.param(KeyboardInterrupt("secret"), "plain", id="KeyboardInterrupt of a thread"),
        pytest.param(
            BaseExceptionGroup("secret", [asyncio.CancelledError("secret")]), "async", id="group of stray cancellation"
        ),
        pytest.param(StopIteration("secret"), "plain", id="StopIteration", marks=pytest.mark.observed("S-447")),
        pytest.param(StopIteration("secret"), "async", id="StopIteration, async", marks=pytest.mark.observed("S-447")),
        pytest.param(StopAsyncIteration("secret"), "async", id="StopAsyncIteration"),
        pytest.param(SystemExit("secret"), "plain", id="SystemExit", marks=pytest.mark.case("C043")),
        pytest.param(SystemExit(3), "async", id="SystemExit, async", marks=pytest.mark.case("C043")),
        pytest.param(asyncio.CancelledError("secret"), "async", id="stray cancellation"),
        pytest.param(asyncio.CancelledError("secret"), "plain", id="stray cancellation, plain"),
        pytest.param(RecursionError("secret"), "plain", id="RecursionError"),
    ],
)
async def test_a_crash_is_told_by_an_id_and_ends_its_call_only(error: BaseException, colour: str, mode: Mode) -> None:
    async with Client(raising(error, colour), mode=mode) as client:
        result = await client.call_tool("fails")
        assert result.is_error
        assert result.structured_content is None
        assert re.fullmatch(masked("fails"), text_of(result))
        assert text_of(await client.call_tool("alive")) == "alive"


@pytest.mark.case("C039")
@pytest.mark.parametrize("colour", ["async", "plain"])
async def test_the_log_has_what_the_text_has_the_id_of(colour: str, caplog: pytest.LogCaptureFixture) -> None:
    mcp = raising(ValueError("secret detail"), colour)
    flush_logs()  # what earlier tests have logged is not looked at here
    with caplog.at_level(logging.DEBUG, "mcp_typed"):
        first = re.fullmatch(masked("fails"), await failure(mcp, "fails"))
        second = re.fullmatch(masked("fails"), await failure(mcp, "fails"))
        flush_logs()
    assert first is not None
    assert second is not None
    assert first[1] != second[1]
    records = [
        record for record in caplog.records if record.levelno == logging.ERROR and record.name == "mcp_typed.tools"
    ]
    assert [match[1] in record.getMessage() for match, record in zip((first, second), records, strict=True)] == [
        True,
        True,
    ]
    for record in records:
        assert "fails" in record.getMessage()
        assert record.exc_text is not None
        assert record.exc_text.startswith("Traceback (most recent call last):")
        assert record.exc_text.endswith("ValueError: secret detail")


@pytest.mark.parametrize("colour", ["async", "plain"])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad luck"), "Error executing tool fails: ValueError: bad luck"),
        (KeyError("k"), "Error executing tool fails: KeyError: 'k'"),
        (RuntimeError(), "Error executing tool fails: RuntimeError"),
        (ToolError("told"), "Error executing tool fails: told"),
    ],
    ids=["ValueError", "KeyError", "no text", "ToolError"],
)
@pytest.mark.fault("X-18")
async def test_what_is_not_masked_is_shown(error: Exception, text: str, colour: str) -> None:
    assert await failure(raising(error, colour, mask_errors=False), "fails") == text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("colour", ["async", "plain"])
@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        pytest.param(
            "e_tool",
            ToolError("told you"),
            "Error executing tool e_tool: told you",
            id="text",
            marks=[pytest.mark.observed("S-439"), pytest.mark.case("C039")],
        ),
        pytest.param(
            "e_tool_empty",
            ToolError(),
            "Error executing tool e_tool_empty: ",
            id="no text",
            marks=pytest.mark.observed("S-440"),
        ),
        pytest.param(
            "e_res",
            ShelfError("res err"),
            "Error executing tool e_res: res err",
            id="own class",
            marks=pytest.mark.observed("S-441"),
        ),
    ],
)
async def test_a_tool_error_reaches_the_model(name: str, error: ToolError, text: str, colour: str, mode: Mode) -> None:
    assert await failure(raising(error, colour, name), name, mode=mode) == text


async def test_a_tool_error_is_no_incident(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        await failure(raising(ToolError("told you"), "async"), "fails")
        flush_logs()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("mode", MODES)
async def test_a_tool_error_carries_more_than_a_text(mode: Mode) -> None:
    mcp = MCPServer("errors")
    plot = ImageContent(data="QQ==", mime_type="image/png")

    @mcp.tool()
    def busy() -> int:
        raise ToolError(
            "too many", data={"limit": [3, None]}, content=[plot], meta={"shop/queue": None}, retry_after=1.5
        )

    result = await call(mcp, "busy", mode=mode)
    assert result.is_error
    # It would have to fit the output schema.
    assert result.structured_content is None
    assert result.content == [
        TextContent(text="Error executing tool busy: too many (retry after 1.5 s)"),
        TextContent(text='{\n  "limit": [\n    3,\n    null\n  ]\n}'),
        plot,
    ]
    meta = result.meta or {}
    meta.pop(STAMP_KEY, None)
    assert meta == {"shop/queue": None, "mcpcore/error": {"data": {"limit": [3, None]}, "retryAfter": 1.5}}


async def test_a_tool_error_with_a_text_only_carries_nothing_more() -> None:
    async with RawPeer.of(raising(ToolError("no"), "plain").server) as peer:
        await peer.initialize()
        answer = await peer.call(1, "tools/call", {"name": "fails"})
    assert answer["result"] == {
        "content": [{"type": "text", "text": "Error executing tool fails: no"}],
        "isError": True,
    }


# --- errors of the protocol ---------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("colour", ["async", "plain"])
@pytest.mark.parametrize(
    ("error", "code", "message", "data"),
    [
        pytest.param(
            MCPError(-32602, "proto bad", {"d": 1}),
            -32602,
            "proto bad",
            {"d": 1},
            id="data",
            marks=pytest.mark.observed("S-443"),
        ),
        pytest.param(MCPError(1234, "custom"), 1234, "custom", None, id="code", marks=pytest.mark.observed("S-444")),
    ],
)
async def test_an_mcp_error_is_an_error_of_the_protocol(
    error: MCPError, code: int, message: str, data: Any, colour: str, mode: Mode
) -> None:
    async with Client(raising(error, colour), mode=mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("fails")
        assert (caught.value.code, caught.value.message, caught.value.data) == (code, message, data)
        assert text_of(await client.call_tool("alive")) == "alive"


@pytest.mark.observed("S-442")
@pytest.mark.parametrize(("mode", "code"), [("auto", -32602), ("legacy", -32002)])
async def test_a_missing_resource_is_an_error_of_the_protocol_too(mode: Mode, code: int) -> None:
    async with Client(raising(ResourceNotFound("x://y"), "plain"), mode=mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("fails")
    assert (caught.value.code, caught.value.message) == (code, "Unknown resource: x://y")
    assert caught.value.data == {"uri": "x://y"}


@pytest.mark.observed("S-445")
async def test_a_page_to_visit_first_is_an_error_of_its_revision() -> None:
    visit = ElicitRequestURLParams(message="m", url="https://x", elicitation_id="e1")
    async with RawPeer.of(raising(UrlElicitationRequired([visit]), "async").server) as peer:
        await peer.initialize("2025-11-25", {"elicitation": {"url": {}}})
        answer = await peer.call(1, "tools/call", {"name": "fails"})
    assert answer["error"] == {
        "code": -32042,
        "message": "URL elicitation required",
        "data": {"elicitations": [{"mode": "url", "message": "m", "url": "https://x", "elicitationId": "e1"}]},
    }


@pytest.mark.observed("S-460")
@pytest.mark.parametrize("mode", MODES)
async def test_a_tool_that_nobody_knows_is_minus_32602(mode: Mode) -> None:
    async with Client(MCPServer("errors"), mode=mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("nope")
    assert (caught.value.code, caught.value.message) == (-32602, "Unknown tool: nope")


@pytest.mark.observed("S-450")
@pytest.mark.observed("S-460")
@pytest.mark.case("C041")
@pytest.mark.parametrize("mode", MODES)
async def test_what_a_server_of_tools_does_not_have_is_minus_32601(mode: Mode) -> None:
    mcp = MCPServer("tools only")
    mcp.add_tool(lambda: "x", name="x")
    async with Client(mcp, mode=mode) as client:
        for ask in (
            lambda: client.request("totally/bogus", {}),
            lambda: client.request("totally/bogus"),
            client.list_prompts,
            lambda: client.get_prompt("nope"),
            lambda: client.read_resource("nope://x"),
        ):
            with pytest.raises(MCPError) as caught:
                await ask()
            assert caught.value.code == -32601
        assert text_of(await client.call_tool("x")) == "x"


@pytest.mark.case("C041")
async def test_a_level_of_logging_is_set_where_that_is_declared() -> None:
    mcp = MCPServer("tools only")
    async with RawPeer.of(mcp.server) as peer:
        assert code_of(await peer.modern(1, "logging/setLevel", {"level": "info"})) == -32601
        declared = (await peer.initialize())["capabilities"]
        answer = await peer.call(2, "logging/setLevel", {"level": "info"})
        assert answer.get("result") == ({} if "logging" in declared else None)


@pytest.mark.case("C042")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_method_of_the_author_s_own_tells_nothing_either(era: str) -> None:
    mcp = MCPServer("errors")

    async def fail(ctx: RequestContext[Any], params: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("secret")

    mcp.server.add_request_handler("shop/fail", dict[str, Any], fail)
    async with RawPeer.of(mcp.server) as peer:
        if era == "modern":
            answer = await peer.modern(1, "shop/fail")
        else:
            await peer.initialize("2025-06-18")
            answer = await peer.call(1, "shop/fail", {})
    assert answer["error"] == {"code": -32603, "message": "Internal server error"}


# --- requests that are hardly JSON ---------------------------------------------------------------------


async def answer_to(arguments: bytes) -> Any:
    """The answer to a call of a tool that shows what it got, with arguments in just these bytes."""
    mcp = MCPServer("bytes")

    @mcp.tool()
    def show(text: str = "", number: int | None = None) -> str:
        return f"{text!r} {number}"

    message = line(modern(7, "tools/call", {"name": "show", "arguments": "HERE"}))
    answer = json.loads(await mcp.server.handle(message.replace(b'"HERE"', arguments)) or b"")
    assert answer["id"] == 7
    return answer


@pytest.mark.observed("S-432")
@pytest.mark.parametrize(
    ("arguments", "got"),
    [
        (rb'{"text":"a\ud800b"}', "'a\ufffdb' None"),
        (rb'{"text":"\ud83d\ude00","unknown":"\udc00"}', "'😀' None"),
        (b'{"number":123456789012345678901234567890}', "'' 123456789012345678901234567890"),
        (b'{"number":1,"number":2}', "'' 2"),
    ],
    ids=["surrogate", "surrogate nobody reads", "long integer", "key twice"],
)
async def test_what_json_allows_is_read(arguments: bytes, got: str) -> None:
    assert (await answer_to(arguments))["result"]["structuredContent"] == {"result": got}


@pytest.mark.observed("S-432")
@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity"])
async def test_what_json_does_not_have_is_minus_32700(number: bytes) -> None:
    assert code_of(await answer_to(b'{"number":%b}' % number)) == -32700


@pytest.mark.observed("S-432")
@pytest.mark.parametrize("arguments", [b'{"number":1e400}', b'{"text":1e400}'])
async def test_a_number_beyond_all_floats_is_no_failure_of_the_server(arguments: bytes) -> None:
    answer = await answer_to(arguments)
    if "error" in answer:
        assert code_of(answer) == -32602
    else:
        assert answer["result"]["isError"] is True
        text = answer["result"]["content"][0]["text"]
        assert text.startswith("Error executing tool show: 1 validation error for showArguments\n")


# --- tools that call tools -------------------------------------------------------------------------


class Book(BaseModel):
    title: str
    pages: int


def nested() -> MCPServer:
    mcp = MCPServer("nested")

    @mcp.tool()
    def e_value() -> str:
        raise ValueError("secret")

    @mcp.tool()
    def e_tool() -> str:
        raise ToolError("told you")

    @mcp.tool()
    def book() -> Book:
        return cast("Book", {"title": "Dune"})

    @mcp.tool()
    def double(number: int) -> int:
        return 2 * number

    @mcp.tool()
    async def e_nested(inner: str) -> str:
        await mcp.call_tool(inner, {})
        raise AssertionError("must not get here")

    return mcp


@pytest.mark.observed("S-448")
async def test_a_crash_below_a_tool_is_masked_once() -> None:
    text = await failure(nested(), "e_nested", {"inner": "e_value"})
    assert re.fullmatch(f"Error executing tool e_nested: {masked('e_value')}", text)


@pytest.mark.observed("S-449")
async def test_a_refusal_below_a_tool_goes_up() -> None:
    text = await failure(nested(), "e_nested", {"inner": "e_tool"})
    assert text == "Error executing tool e_nested: Error executing tool e_tool: told you"


async def test_a_server_calls_its_own_tools() -> None:
    mcp = nested()
    result = await mcp.call_tool("double", {"number": "21"})
    assert (text_of(result), result.structured_content, result.is_error) == ("42", {"result": 42}, False)
    with pytest.raises(ToolError, match=r"\AError executing tool e_tool: told you\Z"):
        await mcp.call_tool("e_tool", {})
    with pytest.raises(ToolError, match=r"\AError executing tool double: 1 validation error for doubleArguments\n"):
        await mcp.call_tool("double", {"number": "x"})
    with pytest.raises(ToolError, match=rf"\A{masked('e_value')}\Z"):
        await mcp.call_tool("e_value", {})


@pytest.mark.observed("S-453")
async def test_a_bad_return_value_is_not_told_like_a_crash() -> None:
    assert await failure(nested(), "book") == (
        "Error executing tool book: 1 validation error for Book\npages\n"
        "  Field required [type=missing, input_type=dict]"
    )
    assert re.fullmatch(masked("e_value"), await failure(nested(), "e_value"))


# --- what a tool says besides ------------------------------------------------------------------------


@pytest.mark.observed("S-451")
async def test_print_does_not_reach_the_wire() -> None:
    program = (
        "from mcp_typed import MCPServer\n"
        "mcp = MCPServer('prints')\n"
        "@mcp.tool()\n"
        "def e_print() -> str:\n"
        "    print('to nobody')\n"
        "    return 'printed'\n"
        "mcp.run()\n"
    )
    async with Client(
        StdioServerParameters(command=sys.executable, args=["-c", program]), probe_timeout_seconds=60
    ) as client:
        for _ in range(2):
            assert text_of(await client.call_tool("e_print")) == "printed"


@pytest.mark.observed("S-452")
@pytest.mark.parametrize("request_id", [100, 0, "a", "7"])
async def test_the_id_of_a_request_is_as_it_was_sent(request_id: int | str) -> None:
    mcp = MCPServer("ids")
    seen: list[Any] = []

    @mcp.tool()
    def whose(ctx: Context) -> str:
        seen.append(ctx.request_id)
        return "x"

    answer = await mcp.server.handle(line(modern(request_id, "tools/call", {"name": "whose"})))
    assert json.loads(answer or b"")["id"] == request_id
    assert [(value, type(value)) for value in seen] == [(request_id, type(request_id))]


@pytest.mark.observed("S-454")
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_progress_is_sent_as_it_is_reported(era: str) -> None:
    mcp = MCPServer("progress")

    @mcp.tool()
    async def work(ctx: Context) -> str:
        await ctx.report_progress(1)
        await ctx.report_progress(2, 4, "half")
        return "done"

    async with RawPeer.of(mcp.server) as peer:
        if era == "modern":
            peer.send(modern(1, "tools/call", {"name": "work"}, progressToken="tok"))
        else:
            await peer.initialize()
            peer.send(legacy(1, "tools/call", {"name": "work", "_meta": {"progressToken": "tok"}}))
        heard = [await peer.receive_next() for _ in range(3)]
        if era == "modern":
            peer.send(modern(2, "tools/call", {"name": "work"}))
        else:
            peer.send(legacy(2, "tools/call", {"name": "work"}))
        assert (await peer.receive_next())["id"] == 2
    assert heard[:2] == [
        notification("notifications/progress", {"progressToken": "tok", "progress": 1}),
        notification("notifications/progress", {"progressToken": "tok", "progress": 2, "total": 4, "message": "half"}),
    ]
    assert [type(message["params"]["progress"]) for message in heard[:2]] == [int, int]
    assert heard[2]["id"] == 1


@pytest.mark.observed("S-455")
async def test_log_messages_go_to_who_wants_them() -> None:
    mcp = MCPServer("logs")

    @mcp.tool()
    async def hello(ctx: Context) -> str:
        await ctx.log("info", "hello")
        return "done"

    logged = notification("notifications/message", {"level": "info", "data": "hello"})
    async with RawPeer.of(mcp.server) as peer:
        assert (await peer.modern(1, "tools/call", {"name": "hello"}))["id"] == 1
        peer.send(modern(2, "tools/call", {"name": "hello"}, **{LOG_LEVEL: "info"}))
        assert [await peer.receive_next(), (await peer.receive_next())["id"]] == [logged, 2]
        await peer.initialize()
        peer.send(legacy(3, "tools/call", {"name": "hello"}))
        assert [await peer.receive_next(), (await peer.receive_next())["id"]] == [logged, 3]

    heard: list[LoggingMessageNotificationParams] = []
    came = anyio.Event()

    def keep(params: LoggingMessageNotificationParams) -> None:
        heard.append(params)
        came.set()

    async with Client(mcp, log_level="info", logging_callback=keep) as client:
        await client.call_tool("hello")
        with anyio.fail_after(60):
            await came.wait()
    assert [(params.level, params.data) for params in heard] == [("info", "hello")]


class Choice(BaseModel):
    shelf: str


@pytest.mark.observed("S-456")
@pytest.mark.fault("X-86")
async def test_a_modern_client_is_asked_nothing_by_request() -> None:
    mcp = MCPServer("asks")

    @mcp.tool()
    async def asks(ctx: Context) -> str:
        return (await ctx.elicit("Which?", Choice)).action

    declared: dict[str, Any] = {"elicitation": {}}
    async with RawPeer.of(mcp.server) as peer:
        answer = await peer.modern(1, "tools/call", {"name": "asks"}, capabilities=declared)
        assert answer["result"]["isError"] is True
        text = answer["result"]["content"][0]["text"]
        assert text.startswith("Error executing tool asks: elicitation/create cannot be sent in 2026-07-28")
        assert "InputRequiredResult" in text
        assert "Resolve" in text
        # A handshake-era client is asked what it can answer, and nothing else.
        await peer.initialize("2025-11-25", {})
        assert code_of(await peer.call(2, "tools/call", {"name": "asks"})) == -32602
        assert await answers(peer) == []
    async with RawPeer.of(mcp.server) as peer:
        await peer.initialize("2025-11-25", declared)
        asked = await peer.call(3, "tools/call", {"name": "asks"})
        assert asked["method"] == "elicitation/create"
        answer = await peer.answer({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}})
        assert answer["result"]["structuredContent"] == {"result": "decline"}


# --- what a tool is told of its call -----------------------------------------------------------------


@pytest.mark.parametrize(("mode", "revision"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
@pytest.mark.parametrize("colour", ["async", "plain"])
async def test_a_tool_may_know_its_request_and_its_client(mode: Mode, revision: str, colour: str) -> None:
    @asynccontextmanager
    async def lifespan(server: Any) -> AsyncGenerator[dict[str, str], None]:
        yield {"shop": "open"}

    mcp = MCPServer("context", lifespan=lifespan)
    seen: list[Any] = []

    def note(ctx: Context) -> str:
        seen.extend([ctx.protocol_version, ctx.client_info, ctx.headers, ctx.lifespan_context, ctx.meta])
        return "noted"

    async def note_later(ctx: Context | None, number: int) -> str:
        assert ctx is not None
        return note(ctx) * number

    def note_now(number: int, c: Context) -> str:
        return note(c) * number

    mcp.add_tool(note_later if colour == "async" else note_now, name="note")
    me = Implementation(name="me", version="3")
    async with Client(mcp, mode=mode, client_info=me) as client:
        (tool,) = (await client.list_tools()).tools
        assert list(tool.input_schema["properties"]) == ["number"]
        result = await client.call_tool("note", {"number": 2, "ctx": "x", "c": "x"}, meta={"a/b": 1})
    assert text_of(result) == "notednoted"
    assert seen[:4] == [revision, me, None, {"shop": "open"}]
    assert seen[4]["a/b"] == 1


async def test_headers_reach_a_tool() -> None:
    mcp = MCPServer("headers")

    @mcp.tool()
    def tenant(ctx: Context) -> str:
        return (ctx.headers or {})["x-tenant"]

    message = line(modern(1, "tools/call", {"name": "tenant"}))
    answer = await mcp.server.handle(message, headers={"x-tenant": "north"})
    assert json.loads(answer or b"")["result"]["structuredContent"] == {"result": "north"}


async def test_every_parameter_that_is_a_context_gets_it() -> None:
    mcp = MCPServer("two")
    same: list[bool] = []

    @mcp.tool()
    def both(first: Context, number: int, second: Context) -> int:
        same.append(first.request_id == second.request_id)
        return number

    async with Client(mcp) as client:
        (tool,) = (await client.list_tools()).tools
        assert list(tool.input_schema["properties"]) == ["number"]
        assert text_of(await client.call_tool("both", {"number": 3})) == "3"
    assert same == [True]


# --- threads and the loop --------------------------------------------------------------------------------


def whereabouts() -> str:
    """Where a tool runs: on the loop's own thread, or on a worker."""
    return "loop" if threading.current_thread() is threading.main_thread() else threading.current_thread().name


@pytest.mark.parametrize(
    ("server", "tool", "where"),
    [
        ({}, {}, "mcp_core.worker"),
        ({}, {"run": "inline"}, "loop"),
        ({}, {"run": "thread"}, "mcp_core.worker"),
        ({"run": "inline"}, {}, "loop"),
        ({"run": "inline"}, {"run": "thread"}, "mcp_core.worker"),
        ({"run": "thread"}, {"run": "inline"}, "loop"),
    ],
    ids=str,
)
async def test_a_plain_function_runs_where_it_is_told_to(server: Any, tool: Any, where: str) -> None:
    mcp = MCPServer("threads", **server)

    @mcp.tool(**tool)
    def plain() -> str:
        return whereabouts()

    @mcp.tool()
    async def later() -> str:
        return whereabouts()

    async with Client(mcp) as client:
        assert text_of(await client.call_tool("plain")) == where
        assert text_of(await client.call_tool("later")) == "loop"


@pytest.mark.parametrize("error", [ValueError("secret"), SystemExit(3), StopIteration("secret")], ids=repr)
async def test_a_crash_on_the_loop_ends_its_call_only(error: BaseException) -> None:
    async with Client(raising(error, "plain", run="inline")) as client:
        assert re.fullmatch(masked("fails"), text_of(await client.call_tool("fails")))
        assert text_of(await client.call_tool("alive")) == "alive"


# --- time ----------------------------------------------------------------------------------------------------


def timed(colour: str, released: threading.Event, **options: Any) -> MCPServer:
    """A server with a tool that takes too long, and one that does not."""
    mcp = MCPServer("slow", **options)

    async def later() -> str:
        await anyio.sleep_forever()
        raise AssertionError("must not get here")

    def now() -> str:
        released.wait(60)
        return "too late for anybody"

    mcp.add_tool(later if colour == "async" else now, name="slow", timeout=None if options else 0.05)
    mcp.add_tool(lambda: "alive", name="alive", timeout=60)
    return mcp


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("colour", ["async", "plain"])
@pytest.mark.parametrize("options", [{}, {"timeout": 0.05}], ids=["of the tool", "of the server"])
async def test_a_tool_that_takes_too_long_is_given_up(colour: str, options: Any, mode: Mode) -> None:
    released = threading.Event()
    try:
        async with Client(timed(colour, released, **options), mode=mode) as client:
            with anyio.fail_after(60):
                result = await client.call_tool("slow")
                assert text_of(await client.call_tool("alive")) == "alive"
    finally:
        released.set()
    assert result.is_error
    assert result.structured_content is None
    assert text_of(result) == "Error executing tool slow: timed out after 0.05 s"


async def test_a_tool_that_is_in_time_is_not_disturbed() -> None:
    mcp = MCPServer("fast", timeout=60)

    @mcp.tool()
    async def later() -> str:
        await anyio.lowlevel.checkpoint()
        return "in time"

    @mcp.tool()
    def now() -> str:
        return "in time"

    async with Client(mcp) as client:
        assert text_of(await client.call_tool("later")) == "in time"
        assert text_of(await client.call_tool("now")) == "in time"


async def test_a_timeout_of_the_tool_s_own_making_is_a_crash() -> None:
    mcp = MCPServer("fast", timeout=60)

    @mcp.tool()
    async def impatient() -> str:
        raise TimeoutError("secret")

    assert re.fullmatch(masked("impatient"), await failure(mcp, "impatient"))


async def test_time_that_is_up_cancels_the_tool() -> None:
    mcp = MCPServer("slow")
    seen: list[str] = []
    ended = threading.Event()

    @mcp.tool(timeout=0.05)
    async def later() -> str:
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("cancelled")
        raise AssertionError("must not get here")

    @mcp.tool(timeout=0.05)
    def now(cancellation: Cancellation) -> str:
        if cancellation.wait(60):
            seen.append("asked to end")
        ended.set()
        return "too late for anybody"

    assert "timed out" in await failure(mcp, "later")
    assert "timed out" in await failure(mcp, "now")
    assert ended.wait(60)
    assert seen == ["cancelled", "asked to end"]


# --- how many at once ----------------------------------------------------------------------------------------


class Room:
    """Counts who is inside, and keeps them there until it is opened."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self._lock = threading.Lock()
        self._enough = threading.Semaphore(0)
        self.open = threading.Event()

    def enter(self) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self._enough.release()

    def leave(self) -> None:
        with self._lock:
            self.inside -= 1

    def have_entered(self, count: int) -> bool:
        return all(self._enough.acquire(timeout=60) for _ in range(count))


def crowded(room: Room, colour: str, server: dict[str, Any], tool: dict[str, Any]) -> MCPServer:
    mcp = MCPServer("crowd", **server)

    async def later() -> str:
        room.enter()
        while not room.open.is_set():
            await anyio.lowlevel.checkpoint()
        room.leave()
        return "served"

    def now() -> str:
        room.enter()
        room.open.wait(60)
        room.leave()
        return "served"

    mcp.add_tool(later if colour == "async" else now, name="busy", **tool)
    mcp.add_tool(lambda: "alive", name="alive", run="inline", max_concurrency=None)
    return mcp


@pytest.mark.parametrize("colour", ["async", "plain"])
@pytest.mark.parametrize(
    ("server", "tool", "most"),
    [
        ({}, {"max_concurrency": 2}, 2),
        ({}, {"max_concurrency": 1}, 1),
        ({"max_concurrency": 2}, {}, 2),
        ({"threads": 8}, {}, 5),
    ],
    ids=["two", "one", "two on the server", "no limit"],
)
async def test_no_more_run_at_once_than_allowed(colour: str, server: Any, tool: Any, most: int) -> None:
    room = Room()
    said: list[str] = []

    async with Client(crowded(room, colour, server, tool)) as client, anyio.create_task_group() as tasks:

        async def one() -> None:
            said.append(text_of(await client.call_tool("busy")))

        try:
            for _ in range(5):
                tasks.start_soon(one)
            with anyio.fail_after(60):
                while room.inside < most:
                    await anyio.lowlevel.checkpoint()
                # All five requests were sent before this one, which waits for nobody.
                for _ in range(3):
                    assert text_of(await client.call_tool("alive")) == "alive"
            assert room.inside == most
        finally:
            room.open.set()
    assert said == ["served"] * 5
    assert (room.most, room.inside) == (most, 0)


async def test_who_waits_for_a_turn_may_be_cancelled() -> None:
    room = Room()
    mcp = crowded(room, "async", {}, {"max_concurrency": 1})
    call_busy = {"name": "busy"}
    async with RawPeer.of(mcp.server) as peer:
        peer.send(modern(1, "tools/call", call_busy))
        with anyio.fail_after(60):
            while room.inside < 1:
                await anyio.lowlevel.checkpoint()
        peer.send(modern(2, "tools/call", call_busy))
        assert (await peer.modern("alive", "tools/call", {"name": "alive"}))["id"] == "alive"
        assert room.inside == 1
        assert await answers(peer, notification("notifications/cancelled", {"requestId": 2})) == []
        peer.send(modern(3, "tools/call", call_busy))
        room.open.set()
        assert [(await peer.receive_next())["id"] for _ in range(2)] == [1, 3]
        assert await answers(peer) == []
    assert room.most == 1


# --- cancellation -------------------------------------------------------------------------------------------


class Milestones:
    """Events that both a thread and the loop can wait for."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.ended = threading.Event()
        self.seen: list[str] = []

    @staticmethod
    async def reached(event: threading.Event) -> None:
        with anyio.fail_after(60):
            while not event.is_set():
                await anyio.lowlevel.checkpoint()


@pytest.mark.observed("S-459")
@pytest.mark.case("C045")
@pytest.mark.parametrize("swallows", [False, True])
async def test_an_async_tool_is_cancelled_and_not_answered(swallows: bool) -> None:
    mcp = MCPServer("cancel")
    stones = Milestones()

    @mcp.tool()
    async def slow() -> str:
        stones.started.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            stones.seen.append("cancelled")
            if not swallows:
                raise
        finally:
            stones.ended.set()
        return "for nobody"

    @mcp.tool()
    def echo(x: str) -> str:
        return x

    async with RawPeer.of(mcp.server) as peer:
        peer.send(modern(610, "tools/call", {"name": "slow"}))
        await stones.reached(stones.started)
        peer.send(notification("notifications/cancelled", {"requestId": 610, "reason": "x"}))
        await stones.reached(stones.ended)
        assert await answers(peer) == []
        for params in ({"requestId": 99999}, {}):
            peer.send(notification("notifications/cancelled", params))
        answer = await peer.modern(611, "tools/call", {"name": "echo", "arguments": {"x": "e"}})
        assert answer["result"]["content"] == [{"type": "text", "text": "e"}]
        assert await answers(peer, notification("notifications/cancelled", {"requestId": 611})) == []
    assert stones.seen == ["cancelled"]


@pytest.mark.observed("S-459")
@pytest.mark.case("C045")
@pytest.mark.parametrize("way", ["wait", "requested", "check"])
async def test_a_plain_tool_learns_that_its_client_cancelled(way: str, caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("cancel")
    stones = Milestones()

    @mcp.tool()
    def slow(steps: int, token: Cancellation) -> str:
        stones.seen.append(f"{token.requested} {token.wait(0)}")
        stones.started.set()
        try:
            if way == "wait":
                stones.seen.append(f"{token.wait(60)}")
            while way == "requested" and not token.requested:
                token.wait(0.001)
            while way == "check":
                token.check()
        finally:
            stones.seen.append(f"{token.requested}")
            stones.ended.set()
        return "for nobody"

    async with Client(mcp) as client:
        (tool,) = (await client.list_tools()).tools
        assert list(tool.input_schema["properties"]) == ["steps"]
    async with RawPeer.of(mcp.server) as peer:
        peer.send(modern(1, "tools/call", {"name": "slow", "arguments": {"steps": 1}}))
        await stones.reached(stones.started)
        peer.send(notification("notifications/cancelled", {"requestId": 1}))
        await stones.reached(stones.ended)
        assert await answers(peer) == []
    assert stones.seen == ["False False", *(["True"] if way == "wait" else []), "True"]
    flush_logs()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_call_that_ends_by_itself_was_not_cancelled() -> None:
    mcp = MCPServer("cancel")
    kept: list[Cancellation] = []

    @mcp.tool()
    async def later(token: Cancellation) -> str:
        kept.append(token)
        token.check()
        return "done"

    @mcp.tool()
    def now(token: Cancellation) -> str:
        kept.append(token)
        token.check()
        return "done"

    async with Client(mcp) as client:
        assert text_of(await client.call_tool("later")) == "done"
        assert text_of(await client.call_tool("now")) == "done"
    assert [token.requested for token in kept] == [False, False]


# --- tools that come and go ---------------------------------------------------------------------------------


def late() -> str:
    """Not there from the start."""
    return "late"


CHANGES: list[tuple[str, Callable[[MCPServer], None], list[str]]] = [
    ("add", lambda mcp: mcp.add_tool(late), ["first", "late"]),
    ("remove", lambda mcp: mcp.remove_tool("first"), []),
]


def one_tool() -> MCPServer:
    mcp = MCPServer("changes")
    mcp.add_tool(lambda: "first", name="first")
    return mcp


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.observed("S-458")
@pytest.mark.parametrize(("change", "tools"), [pytest.param(c, t, id=name) for name, c, t in CHANGES])
async def test_a_modern_client_that_listens_is_told_of_a_change(
    change: Callable[[MCPServer], None], tools: list[str]
) -> None:
    mcp = one_tool()
    async with Client(mcp) as client, client.listen(tools_list_changed=True) as events:
        assert await names(client) == ["first"]
        change(mcp)
        with anyio.fail_after(60):
            assert await anext(aiter(events)) == ToolsListChanged()
        assert await names(client) == tools


@pytest.mark.observed("S-458")
@pytest.mark.parametrize(("change", "tools"), [pytest.param(c, t, id=name) for name, c, t in CHANGES])
async def test_a_handshake_client_is_told_of_a_change(change: Callable[[MCPServer], None], tools: list[str]) -> None:
    mcp = one_tool()
    told: list[tuple[str, Any]] = []
    came = anyio.Event()

    def keep(method: str, params: dict[str, Any]) -> None:
        told.append((method, params))
        came.set()

    async with Client(mcp, mode="legacy", message_handler=keep) as client:
        assert await names(client) == ["first"]
        change(mcp)
        with anyio.fail_after(60):
            await came.wait()
        assert await names(client) == tools
    assert told == [("notifications/tools/list_changed", {})]


@pytest.mark.observed("S-458")
async def test_a_tool_may_add_a_tool_from_its_thread() -> None:
    mcp = one_tool()

    @mcp.tool()
    def grow() -> str:
        mcp.add_tool(late)
        return "grown"

    async with Client(mcp) as client, client.listen(tools_list_changed=True) as events:
        assert text_of(await client.call_tool("grow")) == "grown"
        assert text_of(await client.call_tool("late")) == "late"
        with anyio.fail_after(60):
            assert await anext(aiter(events)) == ToolsListChanged()


@pytest.mark.observed("S-457")
async def test_a_tool_may_announce_a_change_itself() -> None:
    mcp = MCPServer("changes")

    @mcp.tool()
    async def announce(ctx: Context) -> str:
        await ctx.notify_tools_changed()
        return "told"

    async with RawPeer.of(mcp.server) as listener, RawPeer.of(mcp.server) as caller:
        await listener.answer(modern(9, "subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
        assert "result" in await caller.modern(1, "tools/call", {"name": "announce"})
        assert await answers(caller) == []
        told = await listener.receive_next()
        assert (told["method"], told["params"]["_meta"]) == (
            "notifications/tools/list_changed",
            {"io.modelcontextprotocol/subscriptionId": 9},
        )
        await caller.initialize()
        caller.send(legacy(2, "tools/call", {"name": "announce"}))
        heard = [await caller.receive_next(), await caller.receive_next()]
        assert [message.get("method", message.get("id")) for message in heard] == [
            "notifications/tools/list_changed",
            2,
        ]


async def test_a_tool_that_is_removed_is_unknown() -> None:
    mcp = one_tool()
    mcp.remove_tool("first")
    async with Client(mcp) as client:
        assert await names(client) == []
        with pytest.raises(MCPError, match="Unknown tool: first"):
            await client.call_tool("first")
    with pytest.raises(ToolError, match=r"\AUnknown tool: zzz\Z"):
        mcp.remove_tool("zzz")


@pytest.mark.parametrize(("policy", "said"), [("replace", "second"), ("ignore", "first")])
async def test_a_second_tool_of_one_name(policy: str, said: str) -> None:
    mcp = MCPServer("twice", on_duplicate=cast("Any", policy))
    mcp.add_tool(lambda: "first", name="dup")
    mcp.add_tool(lambda: "other", name="other")
    mcp.add_tool(lambda: "second", name="dup")
    async with Client(mcp) as client:
        assert await names(client) == ["dup", "other"]
        assert text_of(await client.call_tool("dup")) == said


@pytest.mark.parametrize("options", [{}, {"on_duplicate": "error"}], ids=str)
async def test_a_second_tool_of_one_name_is_refused(options: Any) -> None:
    mcp = MCPServer("twice", **options)
    mcp.add_tool(lambda: "first", name="dup")
    with pytest.raises(ValueError, match="'dup'"):
        mcp.add_tool(lambda: "second", name="dup")
    assert text_of(await call(mcp, "dup")) == "first"


# --- tools that give their result piece by piece -------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("colour", ["async", "plain"])
async def test_items_are_told_while_they_come(colour: str, mode: Mode) -> None:
    mcp = MCPServer("items")

    async def later(count: int) -> AsyncIterator[str]:
        for n in range(count):
            yield f"item {n}"

    def now(count: int) -> Iterator[str]:
        for n in range(count):
            yield f"item {n}"

    function = later if colour == "async" else now
    mcp.add_tool(function, name="items")
    told: list[tuple[float, float | None, str | None]] = []
    everything = anyio.Event()

    def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))
        if len(told) == 3:
            everything.set()

    async with Client(mcp, mode=mode) as client:
        (tool,) = (await client.list_tools()).tools
        result = await client.call_tool("items", {"count": 3}, progress_callback=tell)
        with anyio.fail_after(60):
            await everything.wait()
        quiet = await client.call_tool("items", {"count": 2})
        none = await client.call_tool("items", {"count": 0})
    assert tool.output_schema == {
        "properties": {"result": {"items": {"type": "string"}, "title": "Result", "type": "array"}},
        "required": ["result"],
        "title": f"{function.__name__}Output",
        "type": "object",
    }
    assert told == [(1, None, "item 0"), (2, None, "item 1"), (3, None, "item 2")]
    assert result.structured_content == {"result": ["item 0", "item 1", "item 2"]}
    assert result.content == [TextContent(text=f"item {n}") for n in range(3)]
    assert quiet.structured_content == {"result": ["item 0", "item 1"]}
    assert (none.structured_content, none.content) == ({"result": []}, [TextContent(text="[]")])


@pytest.mark.parametrize("colour", ["async", "plain"])
async def test_an_item_that_does_not_fit_fails_the_call(colour: str) -> None:
    mcp = MCPServer("items")

    async def later() -> AsyncIterator[int]:
        yield 1
        yield cast("int", "x")

    def now() -> Iterator[int]:
        yield 1
        yield cast("int", "x")

    function = later if colour == "async" else now
    mcp.add_tool(function, name="items")
    assert await failure(mcp, "items") == (
        f"Error executing tool items: 1 validation error for {function.__name__}Output\nresult.1\n"
        "  Input should be a valid integer, unable to parse string as an integer"
        " [type=int_parsing, input_type=str]"
    )


@pytest.mark.parametrize("colour", ["async", "plain"])
@pytest.mark.parametrize("error", [ValueError("secret"), ToolError("told you")], ids=["crash", "refusal"])
async def test_a_failure_between_items_fails_the_call(colour: str, error: Exception) -> None:
    mcp = MCPServer("items")

    async def later() -> AsyncIterator[int]:
        yield 1
        raise error

    def now() -> Iterator[int]:
        yield 1
        raise error

    mcp.add_tool(later if colour == "async" else now, name="items")
    text = await failure(mcp, "items")
    wanted = "Error executing tool items: told you" if isinstance(error, ToolError) else masked("items")
    assert re.fullmatch(wanted, text)

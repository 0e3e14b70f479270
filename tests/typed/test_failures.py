"""What becomes of a failure: who gets hold of the exception, and what reaches the model in every case."""

from __future__ import annotations

import copy
import logging
import pickle
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest
from pydantic import ValidationError

from mcp_core import Client, MCPDeprecationWarning, MCPError, RequestContext, Server
from mcp_core.client import Mode
from mcp_core.testing import RawPeer, flush_logs
from mcp_core.types import CallToolResult, TextContent
from mcp_typed import Context, InvalidSignature, MCPServer, ToolError
from mcp_typed.errors import InvalidOption
from mcp_typed.failures import MAX_REPORT
from tests.typed.test_errors import call, failure, raising, text_of

COLOURS = ["async", "plain", "inline"]


def raiser(error: BaseException, colour: str, **options: Any) -> MCPServer:
    run = "inline" if colour == "inline" else "thread"
    return raising(error, colour, run=run, **options)


class Watcher:
    """An observer of failures."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, BaseException]] = []

    def handler_failed(self, ctx: RequestContext[Any], exc: BaseException) -> None:
        self.seen.append((ctx.method, exc))


# --- the author gets hold of it ------------------------------------------------------------------


@pytest.mark.fault("X-06")
@pytest.mark.parametrize("colour", COLOURS)
async def test_observers_get_the_exception_itself(colour: str) -> None:
    error = KeyError("k")
    mcp, watcher = raiser(error, colour), Watcher()
    mcp.server.observers.add(watcher)
    await failure(mcp, "fails")
    assert watcher.seen == [("tools/call", error)]


@pytest.mark.fault("X-06")
@pytest.mark.parametrize("error", [ToolError("told"), MCPError(-32050, "m")], ids=["ToolError", "MCPError"])
async def test_what_a_tool_raises_on_purpose_is_no_failure_of_it(error: Exception) -> None:
    mcp, watcher = raising(error, "async"), Watcher()
    mcp.server.observers.add(watcher)
    with pytest.raises((ToolError, MCPError)):
        await mcp.call_tool("fails")
    assert watcher.seen == []


@pytest.mark.fault("X-06")
async def test_observers_get_what_is_wrong_with_a_returned_value() -> None:
    mcp, watcher = MCPServer("returns"), Watcher()
    mcp.server.observers.add(watcher)

    @mcp.tool
    def number() -> int:
        return cast("int", "many")

    await failure(mcp, "number")
    ((_, error),) = watcher.seen
    assert isinstance(error, ValidationError)


@pytest.mark.fault("X-06")
async def test_an_observer_that_raises_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def handler_failed(self, ctx: Any, exc: BaseException) -> None:
            raise RuntimeError("observer")

    mcp = raising(ValueError("x"), "async")
    mcp.server.observers.add(Broken())
    assert "error id" in await failure(mcp, "fails")


@pytest.mark.fault("X-06")
@pytest.mark.parametrize("colour", COLOURS)
async def test_the_log_record_has_the_exception_and_the_tool(colour: str, caplog: pytest.LogCaptureFixture) -> None:
    error = ValueError("detail")
    with caplog.at_level(logging.ERROR, "mcp_typed"):
        text = await failure(raiser(error, colour), "fails")
        flush_logs()
    (record,) = [record for record in caplog.records if record.name == "mcp_typed.tools"]
    assert record.exc_info is not None
    assert record.exc_info[:2] == (ValueError, error)
    assert record.exc_info[2] is not None
    said = vars(record)
    assert said["tool"] == "fails"
    assert f"(error id {said['error_id']})" in text


async def test_the_text_of_an_exception_is_cut_in_the_log_and_for_the_model(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("long", mask_errors=False)

    @mcp.tool
    def echo(text: str) -> str:
        raise ValueError(text)

    with caplog.at_level(logging.ERROR, "mcp_typed"):
        text = await failure(mcp, "echo", {"text": "x" * 1_000_000})
        flush_logs()
    assert len(text) < MAX_REPORT + 100
    (record,) = [record for record in caplog.records if record.name == "mcp_typed.tools"]
    assert record.exc_text is not None
    assert len(record.exc_text) < 40_000


@pytest.mark.fault("X-06")
@pytest.mark.parametrize("colour", COLOURS)
async def test_a_call_from_python_has_the_exception_as_its_cause(colour: str) -> None:
    error = KeyError("k")
    with pytest.raises(ToolError, match=r"\AError executing tool fails \(error id ") as caught:
        await raiser(error, colour).call_tool("fails")
    assert caught.value.__cause__ is error
    with pytest.raises(ToolError, match="told") as caught:
        await raiser(ToolError("told"), colour).call_tool("fails")
    assert isinstance(caught.value.__cause__, ToolError)
    mcp = MCPServer("arguments")
    mcp.add_tool(lambda: 1, name="nothing")

    @mcp.tool
    def double(number: int) -> int:
        return 2 * number

    with pytest.raises(ToolError) as caught:
        await mcp.call_tool("double", {"number": "x"})
    assert isinstance(caught.value.__cause__, ValidationError)


@pytest.mark.fault("X-06")
async def test_a_call_from_another_tool_has_the_exception_as_its_cause() -> None:
    error, causes = KeyError("k"), list[Any]()
    mcp = raising(error, "async")

    @mcp.tool
    async def outer(ctx: Context) -> str:
        try:
            await mcp.call_tool("fails", {}, ctx)
        except ToolError as exc:
            causes.append(exc.__cause__)
        return "caught"

    assert text_of(await call(mcp, "outer")) == "caught"
    assert causes == [error]


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("no text")


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("error", [MuteError(), ToolError(cast("str", Mute()))], ids=["exception", "ToolError"])
async def test_an_exception_without_a_text_is_answered(error: Exception, masked: bool) -> None:
    assert (await failure(raising(error, "async", mask_errors=masked), "fails")).startswith(
        "Error executing tool fails"
    )


# --- groups --------------------------------------------------------------------------------------


def grouped(*errors: BaseException, deep: bool = False) -> MCPServer:
    mcp = MCPServer("groups")

    async def fail(error: BaseException) -> None:
        raise error

    async def spawn(deeper: bool) -> None:
        async with anyio.create_task_group() as group:
            if deeper:
                group.start_soon(spawn, False)
            else:
                for error in errors:
                    group.start_soon(fail, error)

    @mcp.tool
    async def fails() -> str:
        await spawn(deep)
        return "not reached"

    return mcp


@pytest.mark.fault("X-12")
@pytest.mark.parametrize("deep", [False, True])
async def test_a_refusal_in_a_group_reaches_the_model(deep: bool) -> None:
    assert await failure(grouped(ToolError("told"), deep=deep), "fails") == "Error executing tool fails: told"


@pytest.mark.fault("X-12")
@pytest.mark.parametrize("deep", [False, True])
async def test_a_protocol_error_in_a_group_goes_out_as_it_is(deep: bool) -> None:
    with pytest.raises(MCPError, match="closed") as caught:
        await call(grouped(MCPError(-32050, "closed", {"a": 1}), deep=deep), "fails")
    assert (caught.value.code, caught.value.data) == (-32050, {"a": 1})


@pytest.mark.fault("X-12")
async def test_what_failed_beside_a_refusal_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("both")

    @mcp.tool
    async def fails() -> str:
        raise ExceptionGroup("both", [KeyError("lost"), ToolError("told")])

    with caplog.at_level(logging.ERROR, "mcp_typed"):
        assert await failure(mcp, "fails") == "Error executing tool fails: told"
        flush_logs()
    assert any("KeyError: 'lost'" in (record.exc_text or "") for record in caplog.records)


# --- what a ToolError carries -----------------------------------------------------------------------


@pytest.mark.fault("X-04")
@pytest.mark.parametrize(
    ("carried", "fault"),
    [
        ({"content": ["text"]}, r"\$\.content\[1\]"),
        ({"content": [TextContent(text=cast("str", 5))]}, r"\$\.content\[1\]\.text"),
        ({"meta": [1]}, "list"),
        ({"meta": {"a": object()}}, "object"),
        ({"data": object()}, "object"),
        ({"retry_after": object()}, "object"),
        ({"retry_after": float("nan")}, "nan"),
    ],
    ids=["text", "text that is a number", "a list as meta", "no JSON in meta", "no JSON", "no number", "NaN"],
)
async def test_the_message_of_a_refusal_reaches_the_model_whatever_it_carries(
    carried: dict[str, Any], fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    mcp = raising(ToolError("told", **carried), "async")
    async with RawPeer.of(mcp.server) as peer:
        answer = await peer.modern(1, "tools/call", {"name": "fails"})
        assert answer["result"]["content"][0]["text"].startswith("Error executing tool fails: told")
        assert answer["result"]["isError"] is True
        assert (await peer.modern(2, "tools/call", {"name": "alive"}))["result"]["isError"] is False


class Broken(ToolError):
    """A refusal with an `__init__` of its own."""

    def __init__(self, bike: int) -> None:
        super().__init__(f"bike {bike} is broken", data={"bike": bike}, retry_after=3)
        self.bike = bike


def pickled(error: Exception) -> Exception:
    return cast("Exception", pickle.loads(pickle.dumps(error)))


class BadTool(InvalidSignature):
    def __init__(self, tool: str, why: str) -> None:
        super().__init__(f"{tool}: {why}")
        self.why = why


@pytest.mark.case("C087")
@pytest.mark.parametrize(
    "error",
    [
        ToolError("x", retry_after=2, meta={"a": [1]}),
        Broken(7),
        InvalidSignature("x"),
        BadTool("t", "w"),
        InvalidOption("o"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("again", [pickled, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_errors_come_back_as_what_they_were(error: Exception, again: Callable[[Exception], Exception]) -> None:
    back = again(error)
    assert (type(back), str(back), back.args, vars(back)) == (type(error), str(error), error.args, vars(error))
    # Twice, as from a pool within a pool.
    assert (type(again(back)), str(again(back))) == (type(error), str(error))


# --- own words for arguments that do not fit ----------------------------------------------------------


def worded(hook: Any, **options: Any) -> MCPServer:
    mcp = MCPServer("worded", on_invalid_arguments=hook, **options)

    @mcp.tool
    def double(number: int) -> int:
        return 2 * number

    return mcp


@pytest.mark.fault("X-10")
async def test_own_words_may_be_awaited() -> None:
    async def text(tool: str, error: ValidationError) -> str:
        await anyio.lowlevel.checkpoint()
        return f"{tool} takes a number"

    async def result(tool: str, error: ValidationError) -> CallToolResult:
        return CallToolResult(content=[TextContent(text="all mine")], is_error=True)

    bad = {"number": "x"}
    assert await failure(worded(text), "double", bad) == "Error executing tool double: double takes a number"
    assert await failure(worded(result), "double", bad) == "all mine"


@pytest.mark.fault("X-10")
@pytest.mark.parametrize("said", [None, 5, ["a"]], ids=str)
@pytest.mark.parametrize("later", [False, True])
async def test_own_words_that_are_none_are_the_author_s_fault(
    said: Any, later: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def wait(tool: str, error: ValidationError) -> Any:
        return said

    def at_once(tool: str, error: ValidationError) -> Any:
        return said

    hook: Any = wait if later else at_once
    with caplog.at_level(logging.ERROR, "mcp_typed"):
        assert "error id" in await failure(worded(hook), "double", {"number": "x"})
        flush_logs()
    expected = f"on_invalid_arguments must return a str or a CallToolResult; got {said!r}"
    assert any(expected in (record.exc_text or "") for record in caplog.records)
    assert expected in await failure(worded(hook, mask_errors=False), "double", {"number": "x"})


@pytest.mark.fault("X-10")
async def test_own_words_may_fail_or_refuse() -> None:
    async def fails(tool: str, error: ValidationError) -> str:
        raise KeyError("k")

    async def refuses(tool: str, error: ValidationError) -> str:
        raise MCPError(-32602, "no")

    assert "error id" in await failure(worded(fails), "double", {"number": "x"})
    with pytest.raises(MCPError, match="no"):
        await call(worded(refuses), "double", {"number": "x"})


# --- calls from Python --------------------------------------------------------------------------------


@pytest.mark.fault("X-34")
async def test_an_unknown_tool_is_one_exception_from_python() -> None:
    mcp = MCPServer("empty")
    with pytest.raises(ToolError, match=r"\AUnknown tool: nobody\Z"):
        mcp.remove_tool("nobody")
    with pytest.raises(ToolError, match=r"\AUnknown tool: nobody\Z"):
        await mcp.call_tool("nobody")


async def test_an_unknown_name_is_not_sent_back_at_any_length() -> None:
    async with Client(MCPServer("empty")) as client:
        with pytest.raises(MCPError, match=r"Unknown tool: x{200}\.\.\.\Z") as caught:
            await client.call_tool("x" * 100_000)
    assert len(str(caught.value)) < 300


@pytest.mark.fault("X-60")
async def test_the_lifespan_stays_entered_between_calls_from_python() -> None:
    moments: list[str] = []

    @asynccontextmanager
    async def database(server: Server[Any]) -> AsyncGenerator[dict[str, int]]:
        moments.append("open")
        yield {}
        moments.append("closed")

    mcp = MCPServer("stateful", lifespan=database)

    @mcp.tool
    async def add(ctx: Context) -> int:
        rows = ctx.lifespan_context
        rows["count"] = rows.get("count", 0) + 1
        return cast("int", rows["count"])

    assert (await mcp.call_tool("add")).structured_content == {"result": 1}
    assert (await mcp.call_tool("add")).structured_content == {"result": 2}
    assert moments == ["open"]
    await mcp.aclose()
    assert moments == ["open", "closed"]
    await mcp.aclose()
    assert (await mcp.call_tool("add")).structured_content == {"result": 1}
    await mcp.aclose()


@pytest.mark.fault("X-75")
async def test_a_call_from_python_has_no_stamp() -> None:
    mcp = MCPServer("unstamped")

    @mcp.tool
    def plain() -> int:
        return 1

    @mcp.tool
    def labelled() -> CallToolResult:
        return CallToolResult(content=[], _meta={"a": 1})

    assert (await mcp.call_tool("plain")).meta is None
    assert (await mcp.call_tool("labelled")).meta == {"a": 1}


@pytest.mark.case("C095")
@pytest.mark.requirement("R-PAGE-03")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("cursor", ["bogus", "", "2"])
async def test_a_cursor_that_was_never_given_is_refused(mode: Mode, cursor: str) -> None:
    mcp = raising(ValueError(), "async")
    async with Client(mcp, mode=mode) as client:
        with pytest.raises(MCPError, match="Unknown cursor") as caught:
            await client.list_tools(cursor=cursor)
        assert caught.value.code == -32602
        assert [tool.name for tool in (await client.list_tools()).tools] == ["fails", "alive"]


# --- bounds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["threads", "max_concurrency"])
async def test_only_so_many_calls_wait_and_the_others_are_told(option: str) -> None:
    options: dict[str, Any] = {option: 1}
    mcp, blocked, begun = MCPServer("busy", max_waiting=2, **options), threading.Event(), threading.Event()

    @mcp.tool
    def block() -> str:
        begun.set()
        blocked.wait(30)
        return "done"

    results: list[str] = []

    async def call_it(client: Client) -> None:
        results.append(text_of(await client.call_tool("block")))

    async with Client(mcp) as client, anyio.create_task_group() as group:
        group.start_soon(call_it, client)
        await anyio.to_thread.run_sync(begun.wait)
        group.start_soon(call_it, client)
        group.start_soon(call_it, client)
        await anyio.wait_all_tasks_blocked()
        refusal = await client.call_tool("block")
        assert refusal.is_error
        assert text_of(refusal).startswith("Error executing tool block: the server is busy: 1 calls")
        assert refusal.meta is not None
        assert refusal.meta["mcpcore/error"] == {"retryAfter": 1}
        blocked.set()
    assert results == ["done"] * 3


# --- a context in a plain function ------------------------------------------------------------------------


@pytest.mark.fault("X-05")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_plain_tool_reports_progress_and_logs(mode: Mode) -> None:
    mcp, told, logged = MCPServer("plain"), list[Any](), list[Any]()

    @mcp.tool
    def work(rounds: int, ctx: Context) -> str:
        for done in range(rounds):
            ctx.report_progress(done + 1, rounds, f"round {done + 1}")
        with pytest.warns(MCPDeprecationWarning):
            ctx.warning("nearly done")
        anyio.from_thread.run(ctx.report_progress, rounds + 1, rounds + 1)
        return threading.current_thread().name

    async def on_log(params: Any) -> None:
        logged.append(params.data)

    async with Client(mcp, mode=mode, logging_callback=on_log) as client:
        if mode == "legacy":
            await client.set_logging_level("info")
        result = await client.call_tool("work", {"rounds": 2}, progress_callback=lambda p, t, m: told.append((p, t, m)))
        assert text_of(result) == "mcp_core.worker"
    assert told == [(1, 2, "round 1"), (2, 2, "round 2"), (3, 3, None)]
    assert logged == (["nearly done"] if mode == "legacy" else [])


@pytest.mark.fault("X-05")
async def test_a_plain_tool_asks_the_user() -> None:
    from mcp_core.types import ElicitResult
    from tests.typed.test_errors import Choice

    mcp = MCPServer("plain")

    @mcp.tool
    def ask(ctx: Context) -> str:
        outcome: Any = anyio.from_thread.run(ctx.elicit, "Which?", Choice)
        return str(outcome.data.shelf)

    async def answer(ctx: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"shelf": "top"})

    async with Client(mcp, mode="legacy", elicitation_callback=answer) as client:
        assert text_of(await client.call_tool("ask")) == "top"


@pytest.mark.fault("X-86")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("level", ["loud", "", None, 5, "WARNING"], ids=str)
async def test_a_level_that_there_is_not_is_refused(mode: Mode, level: Any) -> None:
    mcp = MCPServer("loud", mask_errors=False)

    @mcp.tool
    async def shout(ctx: Context) -> str:
        await ctx.log(level, "x")
        return "sent"

    text = await failure(mcp, "shout", mode=mode)
    assert "ValueError: level must be one of debug, info, notice, warning, error, critical" in text


@pytest.mark.fault("X-86")
@pytest.mark.parametrize(
    "numbers", [(float("nan"), None), (1, float("inf")), (float("-inf"), 1), ("1", None), (1, "2")], ids=str
)
async def test_progress_that_json_does_not_have_is_refused(numbers: Any) -> None:
    mcp = MCPServer("progress", mask_errors=False)

    @mcp.tool
    async def work(ctx: Context) -> str:
        await ctx.report_progress(*numbers)
        return "sent"

    assert "must be a finite number; got " in await failure(mcp, "work")


@pytest.mark.fault("X-86")
@pytest.mark.parametrize("ask", ["elicit", "create_message", "list_roots"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_a_question_that_the_revision_does_not_have_says_what_to_do(ask: str) -> None:
    from tests.typed.test_errors import Choice

    mcp = MCPServer("asks")

    @mcp.tool
    async def tool(ctx: Context) -> str:
        asking: dict[str, Callable[[], Any]] = {
            "elicit": lambda: ctx.elicit("Which?", Choice),
            "create_message": lambda: ctx.session.create_message([], max_tokens=5),
            "list_roots": ctx.session.list_roots,
        }
        return str(await asking[ask]())

    text = await failure(mcp, "tool")
    assert "cannot be sent in 2026-07-28: return InputRequiredResult" in text
    assert "Resolve" in text

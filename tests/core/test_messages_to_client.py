"""What a server sends besides answers: progress, log messages, requests, changes; and cancellation."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from mcp_core import LocalProtocolError, MCPError, RequestContext, RequestTimeout, Server
from mcp_core.backend import open_backend
from mcp_core.errors import ConnectionClosed, InvalidResult, MissingClientCapability
from mcp_core.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged
from mcp_core.testing import RawPeer, flush_logs
from mcp_core.transports.memory import memory_pair
from mcp_core.types import (
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    ProgressNotificationParams,
    SamplingMessage,
    SetLevelRequestParams,
    TextContent,
)
from tests.core.peers import answers, code_of, echo_now, legacy, modern, notification

HANDSHAKE = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
CALL = {"name": "x"}
EMPTY = CallToolResult(content=[])

Tool = Callable[[RequestContext, CallToolRequestParams], Any]


def set_level(ctx: RequestContext, params: SetLevelRequestParams) -> EmptyResult:
    return EmptyResult()


async def until_answer(peer: RawPeer, request_id: Any) -> list[Any]:
    """All messages up to the answer to this request."""
    heard: list[Any] = []
    while not heard or heard[-1].get("id") != request_id or "method" in heard[-1]:
        heard.append(await peer.receive_next())
    return heard


# --- progress ---------------------------------------------------------------------------


@pytest.mark.requirement("R-PROG-02")
@pytest.mark.requirement("R-META-12")
@pytest.mark.case("C050")
@pytest.mark.observed("S-454")
@pytest.mark.parametrize("token", [0, 1, -5, 2**70, "", "tok", "é"])
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_progress_comes_under_its_token_and_before_the_answer(token: int | str, era: str) -> None:
    async def work(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await ctx.report_progress(1)
        await ctx.report_progress(1.5, 3, "half")
        return EMPTY

    async with RawPeer.of(Server("progress", on_call_tool=work)) as peer:
        if era == "handshake":
            await peer.initialize()
            peer.send(legacy(0, "tools/call", {**CALL, "_meta": {"progressToken": token}}))
        else:
            peer.send(modern(0, "tools/call", CALL, progressToken=token))
        heard = await until_answer(peer, 0)
    assert [m.get("method") for m in heard] == ["notifications/progress", "notifications/progress", None]
    assert [m["params"] for m in heard[:2]] == [
        {"progressToken": token, "progress": 1},
        {"progressToken": token, "progress": 1.5, "total": 3, "message": "half"},
    ]
    assert all(type(m["params"]["progressToken"]) is type(token) for m in heard[:2])
    assert all("id" not in m for m in heard[:2])


@pytest.mark.requirement("R-PROG-02")
async def test_progress_without_a_token_is_not_sent() -> None:
    async def work(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await ctx.report_progress(1, 2)
        return EMPTY

    async with RawPeer.of(Server("progress", on_call_tool=work)) as peer:
        assert (await peer.modern(1, "tools/call", CALL))["id"] == 1
        await peer.initialize()
        assert (await peer.call(2, "tools/call", {**CALL, "_meta": {"progressToken": None}}))["id"] == 2
        assert await answers(peer) == []


@pytest.mark.requirement("R-PROG-02")
async def test_progress_that_does_not_grow_is_not_sent() -> None:
    async def work(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        for step in (0, 0, 2, 1, 2, 2.5):
            await ctx.report_progress(step)
        return EMPTY

    async with RawPeer.of(Server("progress", on_call_tool=work)) as peer:
        peer.send(modern(1, "tools/call", CALL, progressToken="t"))
        heard = await until_answer(peer, 1)
    assert [m["params"]["progress"] for m in heard[:-1]] == [0, 2, 2.5]


async def test_the_message_of_progress_is_unknown_to_2024_11_05() -> None:
    async def work(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await ctx.report_progress(1, message="half")
        return EMPTY

    for revision, wanted in (("2024-11-05", None), ("2025-03-26", "half")):
        async with RawPeer.of(Server("progress", on_call_tool=work)) as peer:
            await peer.initialize(revision)
            peer.send(legacy(1, "tools/call", {**CALL, "_meta": {"progressToken": "t"}}))
            heard = await until_answer(peer, 1)
        assert heard[0]["params"].get("message") == wanted


@pytest.mark.requirement("R-PROG-02")
@pytest.mark.requirement("R-LOG-02")
@pytest.mark.parametrize("replaced", [False, True], ids=["plain", "through a middleware that replaces params"])
@pytest.mark.parametrize("ending", ["result", "error"])
async def test_nothing_is_sent_for_a_request_after_its_answer(replaced: bool, ending: str) -> None:
    kept: list[RequestContext] = []

    async def work(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        kept.append(ctx)
        await ctx.report_progress(1)
        if ending == "error":
            raise ValueError
        return EMPTY

    async def replace(ctx: RequestContext[Any], call_next: Any) -> Any:
        return await call_next(ctx.replace(params=ctx.params))

    server = Server("late", on_call_tool=work, on_set_logging_level=set_level)
    if replaced:
        server.middleware.append(replace)
    async with RawPeer.of(server) as peer:
        peer.send(modern(1, "tools/call", CALL, progressToken="t", **{LOG_LEVEL: "debug"}))
        assert len(await until_answer(peer, 1)) == 2
        await kept[0].report_progress(2)
        await kept[0].log("error", "late")
        await kept[0].notify("x/late")
        assert (await peer.modern(2, "server/discover"))["id"] == 2


async def test_progress_of_the_client_reaches_its_hook() -> None:
    seen: list[Any] = []
    came = anyio.Event()

    def note(ctx: RequestContext, params: ProgressNotificationParams) -> None:
        seen.append((params.progress_token, params.progress, params.total))
        came.set()

    async with RawPeer.of(Server("progress", on_progress=note)) as peer:
        await peer.initialize()
        peer.send(notification("notifications/progress", {"progressToken": 1, "progress": "no number"}))
        peer.send(notification("notifications/progress", {"progressToken": 1, "progress": 0.5, "total": 1}))
        with anyio.fail_after(60):
            await came.wait()
    assert seen == [(1, 0.5, 1)]


# --- logging ------------------------------------------------------------------------------


async def log_all(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    """Log once at each level."""
    for level in LEVELS:
        await ctx.log(level, {"said": [level, None]}, logger="l" if level == "alert" else None)  # type: ignore[arg-type]
    return EMPTY


def levels(heard: list[Any]) -> list[str]:
    assert all(m["method"] == "notifications/message" and m["jsonrpc"] == "2.0" for m in heard[:-1])
    return [m["params"]["level"] for m in heard[:-1]]


@pytest.mark.requirement("R-LOG-01")
@pytest.mark.requirement("R-LOG-02")
@pytest.mark.observed("S-455")
@pytest.mark.parametrize("level", [None, *LEVELS])
async def test_a_modern_request_gets_the_levels_it_asks_for(level: str | None) -> None:
    async with RawPeer.of(Server("logs", on_call_tool=log_all, on_set_logging_level=set_level)) as peer:
        asked = {} if level is None else {LOG_LEVEL: level}
        peer.send(modern(1, "tools/call", CALL, **asked))
        heard = await until_answer(peer, 1)
        # The wish of one request is none of another.
        assert len(await until_answer_of(peer, modern(2, "tools/call", CALL))) == 1
    assert levels(heard) == ([] if level is None else LEVELS[LEVELS.index(level) :])


async def until_answer_of(peer: RawPeer, request: dict[str, Any]) -> list[Any]:
    peer.send(request)
    return await until_answer(peer, request["id"])


@pytest.mark.requirement("R-LOG-01")
@pytest.mark.requirement("R-LOG-04")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_session_gets_the_levels_it_set(revision: str) -> None:
    async with RawPeer.of(Server("logs", on_call_tool=log_all, on_set_logging_level=set_level)) as peer:
        await peer.initialize(revision)
        heard = await until_answer_of(peer, legacy(1, "tools/call", CALL))
        assert levels(heard) == LEVELS
        assert heard[0]["params"] == {"level": "debug", "data": {"said": ["debug", None]}}
        assert heard[6]["params"]["logger"] == "l"
        for level in ("emergency", "warning", "debug"):
            assert (await peer.call(2, "logging/setLevel", {"level": level}))["result"] == {}
            heard = await until_answer_of(peer, legacy(3, "tools/call", CALL))
            assert levels(heard) == LEVELS[LEVELS.index(level) :]


@pytest.mark.requirement("R-LOG-04")
@pytest.mark.parametrize("params", [None, {}, {"level": "loud"}, {"level": "INFO"}, {"level": 3}, {"level": []}])
async def test_a_bad_level_is_minus_32602_and_changes_nothing(params: Any) -> None:
    async with RawPeer.of(Server("logs", on_call_tool=log_all, on_set_logging_level=set_level)) as peer:
        await peer.initialize()
        await peer.call(1, "logging/setLevel", {"level": "alert"})
        assert code_of(await peer.call(2, "logging/setLevel", params)) == -32602
        assert levels(await until_answer_of(peer, legacy(3, "tools/call", CALL))) == ["alert", "emergency"]


@pytest.mark.requirement("R-LOG-04")
async def test_the_level_is_one_session_s_own() -> None:
    server = Server("logs", on_call_tool=log_all, on_set_logging_level=set_level)
    async with RawPeer.of(server) as one, RawPeer.of(server) as two:
        for peer in (one, two):
            await peer.initialize()
        await one.call(1, "logging/setLevel", {"level": "emergency"})
        assert levels(await until_answer_of(one, legacy(2, "tools/call", CALL))) == ["emergency"]
        assert levels(await until_answer_of(two, legacy(2, "tools/call", CALL))) == LEVELS


@pytest.mark.requirement("R-LOG-01")
async def test_a_server_that_declares_no_logging_sends_none(caplog: pytest.LogCaptureFixture) -> None:
    async with RawPeer.of(Server("mute", on_call_tool=log_all)) as peer:
        assert len(await until_answer_of(peer, modern(1, "tools/call", CALL, **{LOG_LEVEL: "debug"}))) == 1
        await peer.initialize()
        assert len(await until_answer_of(peer, legacy(2, "tools/call", CALL))) == 1
    flush_logs()
    assert "on_set_logging_level" in caplog.text


# --- cancellation ---------------------------------------------------------------------------


class Waiting:
    """A tool that waits to be cancelled, and keeps what it saw."""

    def __init__(self, *, swallows: bool = False) -> None:
        self.seen: list[str] = []
        self.started = anyio.Event()
        self.ended = anyio.Event()
        self._swallows = swallows

    async def __call__(self, ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        if params.name == "echo":
            return CallToolResult(content=[TextContent(text="e")])
        self.started.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.seen.append("cancelled")
            # Whatever it tries to say now is for nobody.
            await self._say(ctx)
            if not self._swallows:
                raise
        finally:
            self.ended.set()
        return EMPTY

    @staticmethod
    async def _say(ctx: RequestContext) -> None:
        with anyio.CancelScope(shield=True):
            await ctx.report_progress(9)
            await ctx.log("error", "cancelled")
            await ctx.notify("x/cancelled")


@pytest.mark.requirement("R-CANC-03")
@pytest.mark.requirement("R-STD-07")
@pytest.mark.case("C045")
@pytest.mark.observed("S-459")
@pytest.mark.parametrize("swallows", [False, True])
@pytest.mark.parametrize("request_id", [0, 610, "", "é", 2**70])
async def test_a_running_request_is_cancelled_and_not_answered(request_id: int | str, swallows: bool) -> None:
    tool = Waiting(swallows=swallows)
    async with RawPeer.of(Server("waits", on_call_tool=tool, on_set_logging_level=set_level)) as peer:
        peer.send(modern(request_id, "tools/call", CALL, progressToken=1, **{LOG_LEVEL: "debug"}))
        with anyio.fail_after(60):
            await tool.started.wait()
            peer.send(notification("notifications/cancelled", {"requestId": request_id, "reason": "x"}))
            await tool.ended.wait()
        assert await answers(peer) == []
        # Malformed and unknown ones are ignored (R-CANC-03), the next call is answered.
        for params in ({"requestId": 99999}, {}, None, {"requestId": None}, {"requestId": [1]}, {"requestId": 1.5}, 7):
            peer.send(notification("notifications/cancelled", params))
        again = await peer.modern(request_id, "tools/call", {"name": "echo"})
        assert again["result"]["content"][0]["text"] == "e"
        assert await answers(peer) == []
    assert tool.seen == ["cancelled"]


@pytest.mark.requirement("R-CANC-03")
@pytest.mark.case("C045")
async def test_a_cancellation_that_comes_too_late_is_ignored() -> None:
    async with RawPeer.of(Server("fast", on_call_tool=echo_now)) as peer:
        peer.send(modern(1, "tools/call", CALL))
        peer.send(notification("notifications/cancelled", {"requestId": 1}))
        assert len(await until_answer(peer, 1)) == 1
        peer.send(notification("notifications/cancelled", {"requestId": 1}))
        assert await answers(peer) == []


@pytest.mark.requirement("R-CANC-03")
async def test_the_type_of_the_id_counts() -> None:
    tool = Waiting()
    async with RawPeer.of(Server("waits", on_call_tool=tool)) as peer:
        peer.send(modern(1, "tools/call", CALL))
        with anyio.fail_after(60):
            await tool.started.wait()
            assert await answers(peer, notification("notifications/cancelled", {"requestId": "1"})) == []
            assert tool.seen == []
            peer.send(notification("notifications/cancelled", {"requestId": 1}))
            await tool.ended.wait()


@pytest.mark.requirement("R-CANC-03")
async def test_a_request_that_has_not_started_never_does(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Waiting()
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    async with RawPeer.of(Server("waits", on_call_tool=tool)) as peer:
        for i in range(10):
            peer.send(modern(i, "tools/call", CALL))
            peer.send(notification("notifications/cancelled", {"requestId": i}))
        assert await answers(peer) == []
        # The ids are free again.
        assert (await peer.modern(3, "tools/call", {"name": "echo"}))["id"] == 3
        gc.collect()
    assert tool.seen in ([], ["cancelled"] * 10)
    assert unraisable == []


@pytest.mark.requirement("R-BASE-03")
async def test_the_id_of_a_cancelled_request_is_taken_until_its_handler_ends() -> None:
    started, gate = anyio.Event(), anyio.Event()

    async def stubborn(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        started.set()
        with anyio.CancelScope(shield=True):
            await gate.wait()
        return EMPTY

    async with RawPeer.of(Server("stubborn", on_call_tool=stubborn)) as peer:
        peer.send(modern(1, "tools/call", CALL))
        with anyio.fail_after(60):
            await started.wait()
        peer.send(notification("notifications/cancelled", {"requestId": 1}))
        assert code_of(await peer.modern(1, "tools/call", CALL)) == -32600
        gate.set()
        heard = [await peer.modern(1, "server/discover")]
        while code_of_or_none(heard[-1]) == -32600:
            await anyio.lowlevel.checkpoint()
            heard.append(await peer.modern(1, "server/discover"))
        assert "supportedVersions" in heard[-1]["result"]


def code_of_or_none(answer: Any) -> int | None:
    return code_of(answer) if "error" in answer else None


async def test_a_cancelled_request_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    tool = Waiting()
    failed: list[Any] = []

    class Watcher:
        def handler_failed(self, ctx: RequestContext[Any], exc: BaseException) -> None:
            failed.append(exc)

    server = Server("waits", on_call_tool=tool)
    server.observers.add(Watcher())
    async with RawPeer.of(server) as peer:
        peer.send(modern(1, "tools/call", CALL))
        with anyio.fail_after(60):
            await tool.started.wait()
            peer.send(notification("notifications/cancelled", {"requestId": 1}))
            await tool.ended.wait()
        assert await answers(peer) == []
    flush_logs()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert failed == []


@pytest.mark.requirement("R-CANC-03")
async def test_cancelling_a_request_cancels_what_it_asked_of_the_client() -> None:
    async def ask(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await ctx.list_roots()
        return EMPTY

    async with RawPeer.of(Server("asks", on_call_tool=ask)) as peer:
        await peer.initialize("2025-06-18", {"roots": {}})
        asked = await peer.answer(legacy(1, "tools/call", CALL))
        assert asked["method"] == "roots/list"
        cancelled = await peer.answer(notification("notifications/cancelled", {"requestId": 1}))
        assert cancelled == notification("notifications/cancelled", {"requestId": asked["id"]})
        assert await answers(peer, {"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}}) == []


# --- requests to the client -------------------------------------------------------------------


async def ask_by_name(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    """Ask the client what the tool's name says, and give the answer or the failure."""
    timeout = (params.arguments or {}).get("timeout")
    try:
        if params.name == "roots":
            got: Any = (await ctx.list_roots(timeout=timeout)).roots
        elif params.name == "elicit":
            got = await ctx.elicit("Which?", {"type": "object", "properties": {}}, timeout=timeout)
        elif params.name == "url":
            got = await ctx.elicit_url("Go", "https://x", "e1", timeout=timeout)
        elif params.name == "sample":
            message = SamplingMessage(role="user", content=TextContent(text="hi"))
            got = await ctx.create_message([message], max_tokens=9, timeout=timeout)
        else:
            await ctx.ping(timeout=timeout)
            got = "pong"
    except (RequestTimeout, InvalidResult, LocalProtocolError, ConnectionClosed) as exc:
        return CallToolResult(content=[TextContent(text=type(exc).__name__)])
    except MissingClientCapability:
        raise
    except MCPError as exc:
        return CallToolResult(content=[TextContent(text=f"{type(exc).__name__} {exc.code} {exc.message} {exc.data}")])
    return CallToolResult(content=[TextContent(text=str(got))])


def said(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


EVERYTHING: dict[str, Any] = {"roots": {}, "elicitation": {"form": {}, "url": {}}, "sampling": {}}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "yo"}, "model": "m"}


@pytest.mark.requirement("R-MRTR-11")
@pytest.mark.requirement("R-ELIC-02")
@pytest.mark.requirement("R-ELIC-03")
@pytest.mark.requirement("R-SAMP-02")
@pytest.mark.requirement("R-BASE-05")
@pytest.mark.parametrize(
    ("name", "method", "params", "result", "text"),
    [
        ("roots", "roots/list", None, {"roots": [{"uri": "file:///x"}]}, "file:///x"),
        (
            "elicit",
            "elicitation/create",
            {"mode": "form", "message": "Which?", "requestedSchema": {"type": "object", "properties": {}}},
            {"action": "accept", "content": {"a": 1}},
            "accept",
        ),
        (
            "url",
            "elicitation/create",
            {"mode": "url", "message": "Go", "url": "https://x", "elicitationId": "e1"},
            {"action": "decline"},
            "decline",
        ),
        (
            "sample",
            "sampling/createMessage",
            {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 9},
            SAMPLED,
            "yo",
        ),
        ("ping", "ping", None, {}, "pong"),
    ],
)
async def test_a_client_of_the_handshake_era_is_asked_by_requests(
    name: str, method: str, params: Any, result: Any, text: str
) -> None:
    async with RawPeer.of(Server("asks", on_call_tool=ask_by_name)) as peer:
        await peer.initialize("2025-11-25", EVERYTHING)
        asked = await peer.answer(legacy("call", "tools/call", {"name": name}))
        assert type(asked["id"]) in (int, str)
        assert {k: v for k, v in asked.items() if k != "id"} == (
            {"jsonrpc": "2.0", "method": method} if params is None else notification(method, params)
        )
        # A second one at the same time has an id of its own.
        other = await peer.answer(legacy("other", "tools/call", {"name": name}))
        assert other["id"] != asked["id"]
        done = await peer.answer({"jsonrpc": "2.0", "id": other["id"], "result": result})
        assert (done["id"], text in said(done)) == ("other", True)
        done = await peer.answer({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        assert (done["id"], text in said(done)) == ("call", True)
        # An answer that comes twice is ignored.
        assert await answers(peer, {"jsonrpc": "2.0", "id": asked["id"], "result": result}) == []


@pytest.mark.requirement("R-ELIC-02")
async def test_the_mode_of_a_form_is_unknown_to_2025_06_18() -> None:
    async with RawPeer.of(Server("asks", on_call_tool=ask_by_name)) as peer:
        await peer.initialize("2025-06-18", {"elicitation": {}})
        asked = await peer.answer(legacy(1, "tools/call", {"name": "elicit"}))
    assert asked["params"] == {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}}


@pytest.mark.requirement("R-MRTR-11")
@pytest.mark.requirement("R-ELIC-01")
@pytest.mark.requirement("R-VER-07")
@pytest.mark.parametrize(
    ("name", "revision", "declared"),
    [
        ("roots", "2025-11-25", {}),
        ("sample", "2025-11-25", {"roots": {}, "elicitation": {}}),
        ("elicit", "2025-11-25", {"roots": {}}),
        ("elicit", "2025-11-25", {"elicitation": {"url": {}}}),
        ("url", "2025-11-25", {"elicitation": {}}),
        ("url", "2025-11-25", {"elicitation": {"form": {}}}),
        ("elicit", "2025-03-26", {"elicitation": {}}),
        ("elicit", "2024-11-05", {"elicitation": {}}),
        ("url", "2025-06-18", {"elicitation": {"url": {}}}),
    ],
)
async def test_a_client_is_not_asked_for_what_it_did_not_declare(name: str, revision: str, declared: Any) -> None:
    async with RawPeer.of(Server("asks", on_call_tool=ask_by_name)) as peer:
        await peer.initialize(revision, declared)
        answer = await peer.answer(legacy(1, "tools/call", {"name": name}))
        assert await answers(peer) == []
    assert answer["id"] == 1
    assert code_of(answer) == -32602


@pytest.mark.requirement("R-BASE-11")
@pytest.mark.requirement("R-MRTR-01")
@pytest.mark.observed("S-456")
@pytest.mark.parametrize("name", ["roots", "elicit", "url", "sample", "ping"])
async def test_a_modern_client_gets_no_request(name: str) -> None:
    async with RawPeer.of(Server("asks", on_call_tool=ask_by_name)) as peer:
        # Not even where the connection has shaken hands.
        await peer.initialize("2025-11-25", EVERYTHING)
        answer = await peer.modern(1, "tools/call", {"name": name}, capabilities=EVERYTHING)
        assert said(answer) == "LocalProtocolError"
        assert await answers(peer) == []


@pytest.mark.requirement("R-BASE-19")
@pytest.mark.requirement("R-CANC-04")
async def test_a_client_that_does_not_answer_in_time_is_told_to_stop() -> None:
    async with RawPeer.of(Server("asks", on_call_tool=ask_by_name)) as peer:
        await peer.initialize("2025-11-25", EVERYTHING)
        asked = await peer.answer(legacy(1, "tools/call", {"name": "roots", "arguments": {"timeout": 0.05}}))
        cancelled = await peer.receive_next()
        answer = await peer.receive_next()
        assert cancelled == notification("notifications/cancelled", {"requestId": asked["id"]})
        assert said(answer) == "RequestTimeout"
        late: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}}
        assert await answers(peer, late) == []


@pytest.mark.requirement("R-SAMP-04")
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"error": {"code": -1, "message": "User rejected", "data": [1]}}, "MCPError -1 User rejected [1]"),
        ({"error": {"code": -32601, "message": "no roots"}}, "MethodNotFound -32601 no roots None"),
        ({"result": {"roots": "none"}}, "InvalidResult"),
        ({"result": {}}, "InvalidResult"),
        ({"result": None}, "InvalidResult"),
        ({"result": [], "error": {}}, "InvalidRequest -32600"),
        ({"error": "no object"}, "InvalidRequest -32600"),
    ],
    ids=str,
)
@pytest.mark.parametrize("batched", [False, True])
async def test_a_refusal_or_nonsense_is_raised_to_who_asked(answer: Any, text: str, batched: bool) -> None:
    async with RawPeer.of(Server("asks", on_call_tool=ask_by_name)) as peer:
        await peer.initialize("2025-03-26", EVERYTHING)
        asked = await peer.answer(legacy(1, "tools/call", {"name": "roots"}))
        message = {"jsonrpc": "2.0", "id": asked["id"], **answer}
        done = await peer.answer([message] if batched else message)
        assert await answers(peer) == []
    assert said(done).startswith(text)


async def test_who_waits_when_the_client_leaves_is_let_go() -> None:
    heard: list[str] = []
    done = anyio.Event()

    async def ask(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        # The second one is not even sent.
        heard.extend([text_of(await ask_by_name(ctx, params)) for _ in range(2)])
        done.set()
        return EMPTY

    server = Server("asks", on_call_tool=ask)
    async with server.running() as state, open_backend() as backend:
        ours, theirs = memory_pair(backend)
        peer = RawPeer(ours)
        with server.connect(backend, theirs, state) as connection:
            theirs.start(connection)
            ours.start(peer)
            await peer.initialize("2025-11-25", EVERYTHING)
            assert (await peer.answer(legacy(1, "tools/call", {"name": "roots"})))["method"] == "roots/list"
            ours.close()
            with anyio.fail_after(60):
                await done.wait()
    assert heard == ["ConnectionClosed"] * 2


def text_of(result: CallToolResult) -> str:
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


# --- subscriptions --------------------------------------------------------------------------------


def nothing(ctx: RequestContext, params: Any) -> Any:
    """A list that nobody reads here: it is only offered."""
    return EmptyResult()


def changing(**more: Any) -> Server:
    """A server that tells of changes to everything."""
    on: dict[str, Any] = dict.fromkeys(["on_list_tools", "on_list_prompts", "on_list_resources"], nothing)
    return Server("changes", subscriptions=True, **{**on, **more})


def listen(request_id: Any, **asked: Any) -> dict[str, Any]:
    return modern(request_id, "subscriptions/listen", {"notifications": asked})


async def publish_all(server: Server) -> None:
    for event in (
        ToolsListChanged(),
        PromptsListChanged(),
        ResourcesListChanged(),
        ResourceUpdated("u://a"),
        ResourceUpdated("u://b"),
    ):
        await server.publish(event)


ALL = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["u://a"],
}


@pytest.mark.requirement("R-SUB-02")
@pytest.mark.requirement("R-SUB-03")
@pytest.mark.requirement("R-SUB-04")
@pytest.mark.requirement("R-META-07")
@pytest.mark.observed("S-470")
@pytest.mark.parametrize("request_id", [0, 9, "", "nine", 2**70])
@pytest.mark.parametrize(
    ("asked", "acknowledged", "methods"),
    [
        (ALL, ALL, ["tools/list_changed", "prompts/list_changed", "resources/list_changed", "resources/updated"]),
        ({"toolsListChanged": True}, {"toolsListChanged": True}, ["tools/list_changed"]),
        (
            {"toolsListChanged": False, "promptsListChanged": True},
            {"promptsListChanged": True},
            ["prompts/list_changed"],
        ),
        ({"resourceSubscriptions": ["u://a"]}, {"resourceSubscriptions": ["u://a"]}, ["resources/updated"]),
        ({"resourceSubscriptions": []}, {}, []),
        ({}, {}, []),
        ({"unknownChanged": True}, {}, []),
    ],
    ids=["all", "tools", "prompts", "resource", "no resource", "nothing", "unknown"],
)
async def test_a_subscription_is_acknowledged_and_gets_what_it_asked_for(
    request_id: int | str, asked: Any, acknowledged: Any, methods: list[str]
) -> None:
    server = changing()
    meta = {SUBSCRIPTION_ID: request_id}
    async with RawPeer.of(server) as peer:
        ack = await peer.answer(listen(request_id, **asked))
        assert ack == notification(
            "notifications/subscriptions/acknowledged", {"notifications": acknowledged, "_meta": meta}
        )
        await publish_all(server)
        for method in methods:
            told = await peer.receive_next()
            uri = {"uri": "u://a"} if method == "resources/updated" else {}
            assert told == notification(f"notifications/{method}", {**uri, "_meta": meta})
            assert type(told["params"]["_meta"][SUBSCRIPTION_ID]) is type(request_id)
        assert await answers(peer) == []


@pytest.mark.requirement("R-SUB-03")
async def test_only_what_the_server_offers_is_acknowledged() -> None:
    server = Server("tools only", subscriptions=True, on_list_tools=nothing)
    async with RawPeer.of(server) as peer:
        ack = await peer.answer(listen(1, **ALL))
        assert ack["params"]["notifications"] == {"toolsListChanged": True}
        await publish_all(server)
        assert (await peer.receive_next())["method"] == "notifications/tools/list_changed"
        assert await answers(peer) == []


@pytest.mark.requirement("R-SUB-06")
@pytest.mark.requirement("R-SUB-07")
@pytest.mark.requirement("R-SUB-08")
async def test_the_server_ends_subscriptions_with_a_result() -> None:
    server = changing()
    async with RawPeer.of(server) as peer:
        for request_id in (1, "two"):
            await peer.answer(listen(request_id, toolsListChanged=True))
        await server.publish(ToolsListChanged())
        told = [await peer.receive_next(), await peer.receive_next()]
        assert {m["params"]["_meta"][SUBSCRIPTION_ID] for m in told} == {1, "two"}
        server.end_subscriptions()
        heard = [await peer.receive_next() for _ in range(4)]
        await server.publish(ToolsListChanged())
        assert await answers(peer) == []
        # And may be asked for anew.
        assert (await peer.answer(listen(1, toolsListChanged=True)))["params"]["notifications"] == {
            "toolsListChanged": True
        }
    for request_id in (1, "two"):
        result, cancelled = [
            m for m in heard if m.get("id") == request_id or m.get("params", {}).get("requestId") == request_id
        ]
        assert result["result"]["resultType"] == "complete"
        assert result["result"]["_meta"][SUBSCRIPTION_ID] == request_id
        assert cancelled["method"] == "notifications/cancelled"


@pytest.mark.requirement("R-SUB-10")
@pytest.mark.requirement("R-STD-07")
async def test_nothing_comes_for_a_subscription_that_its_client_cancelled() -> None:
    server = changing()
    async with RawPeer.of(server) as peer:
        for request_id in (1, 2):
            await peer.answer(listen(request_id, toolsListChanged=True))
        assert await answers(peer, notification("notifications/cancelled", {"requestId": 1})) == []
        await server.publish(ToolsListChanged())
        told = await peer.receive_next()
        assert told["params"]["_meta"][SUBSCRIPTION_ID] == 2
        assert await answers(peer) == []
        server.end_subscriptions()
        heard = [await peer.receive_next(), await peer.receive_next()]
        assert [m.get("id") or m["params"]["requestId"] for m in heard] == [2, 2]
        assert await answers(peer) == []


@pytest.mark.requirement("R-SUB-10")
async def test_a_change_and_a_cancellation_at_once_end_in_silence() -> None:
    server = changing()
    async with RawPeer.of(server) as peer:
        await peer.answer(listen(1, toolsListChanged=True))
        peer.send(notification("notifications/cancelled", {"requestId": 1}))
        await server.publish(ToolsListChanged())
        heard = await answers(peer)
    assert [m["method"] for m in heard] in ([], ["notifications/tools/list_changed"])


@pytest.mark.requirement("R-SUB-01")
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": None},
        {"notifications": []},
        {"notifications": {"toolsListChanged": "yes"}},
        {"notifications": {"resourceSubscriptions": "u://a"}},
        {"notifications": {"resourceSubscriptions": [1]}},
    ],
    ids=str,
)
async def test_a_bad_filter_is_minus_32602(params: Any) -> None:
    async with RawPeer.of(changing()) as peer:
        assert code_of(await peer.modern(1, "subscriptions/listen", params)) == -32602
        assert await answers(peer) == []


@pytest.mark.requirement("R-ERR-02")
@pytest.mark.observed("S-470")
async def test_a_server_without_subscriptions_offers_none() -> None:
    server = Server("still", on_list_tools=nothing)
    async with RawPeer.of(server) as peer:
        assert code_of(await peer.answer(listen(1, toolsListChanged=True))) == -32601
    with pytest.raises(LocalProtocolError):
        await server.publish(ToolsListChanged())


# --- changes in the handshake era -----------------------------------------------------------------------


@pytest.mark.requirement("R-TOOL-14")
@pytest.mark.requirement("R-RES-10")
@pytest.mark.requirement("R-RES-11")
@pytest.mark.requirement("R-PROMPT-05")
@pytest.mark.observed("S-457")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_session_hears_of_lists_and_of_what_it_subscribed_to(revision: str) -> None:
    server = changing()
    async with RawPeer.of(server) as peer, RawPeer.of(server) as modern_peer:
        await peer.initialize(revision)
        await publish_all(server)
        heard = await answers(peer)
        lists = [notification(f"notifications/{kind}/list_changed") for kind in ("tools", "prompts", "resources")]
        assert heard == lists
        assert (await peer.call(1, "resources/subscribe", {"uri": "u://a"}))["result"] == {}
        await publish_all(server)
        assert await answers(peer) == [*lists, notification("notifications/resources/updated", {"uri": "u://a"})]
        assert (await peer.call(2, "resources/unsubscribe", {"uri": "u://a"}))["result"] == {}
        assert (await peer.call(3, "resources/unsubscribe", {"uri": "u://never"}))["result"] == {}
        await publish_all(server)
        assert await answers(peer) == lists
        for method in ("resources/subscribe", "resources/unsubscribe"):
            assert code_of(await peer.call(4, method, {"uri": 5})) == -32602
        # Who has neither shaken hands nor listens hears nothing.
        assert await answers(modern_peer) == []


@pytest.mark.requirement("R-RES-11")
async def test_subscriptions_belong_to_one_session() -> None:
    server = changing()
    async with RawPeer.of(server) as one, RawPeer.of(server) as two:
        for peer, uri in ((one, "u://a"), (two, "u://b")):
            await peer.initialize()
            await peer.call(1, "resources/subscribe", {"uri": uri})
        await server.publish(ResourceUpdated("u://a"))
        await server.publish(ResourceUpdated("u://b"))
        assert [m["params"]["uri"] for m in await answers(one)] == ["u://a"]
        assert [m["params"]["uri"] for m in await answers(two)] == ["u://b"]


async def test_a_list_that_is_not_offered_is_not_announced() -> None:
    server = Server("tools only", subscriptions=True, on_list_tools=nothing)
    async with RawPeer.of(server) as peer:
        await peer.initialize()
        await publish_all(server)
        assert [m["method"] for m in await answers(peer)] == ["notifications/tools/list_changed"]


async def test_handlers_announce_changes_through_their_context() -> None:
    async def change(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await ctx.notify_tools_changed()
        await ctx.notify_prompts_changed()
        await ctx.notify_resources_changed()
        await ctx.notify_resource_updated("u://a")
        return EMPTY

    server = changing(on_call_tool=change)
    async with RawPeer.of(server) as listener, RawPeer.of(server) as caller:
        await listener.answer(listen("l", **ALL))
        assert "result" in await caller.modern(1, "tools/call", CALL)
        told = [await listener.receive_next() for _ in range(4)]
        assert await answers(caller) == []
    assert [m["method"].removeprefix("notifications/") for m in told] == [
        "tools/list_changed",
        "prompts/list_changed",
        "resources/list_changed",
        "resources/updated",
    ]

"""Our client and a server on stdio that breaks the rules: what it sends costs it its answers, and no more.

The server is a real process (`hostile_script`), so that what it writes goes the whole way.
"""

from __future__ import annotations

import gc
import json
import logging
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

from mcp_core import (
    Client,
    ConnectionClosed,
    LocalProtocolError,
    MCPError,
    RequestContext,
    RequestTimeout,
    Server,
    StdioServerParameters,
)
from mcp_core import types as t
from mcp_core.client import Mode, listening, notification_queue
from mcp_core.client import client as client_module
from mcp_core.client.reading import read_result
from mcp_core.errors import InputRoundsExceeded, InvalidRequest, InvalidResult
from mcp_core.queue_logger import MAX_WARNINGS
from mcp_core.subscriptions import Event, ResourceUpdated, ToolsListChanged
from mcp_core.testing import flush_logs
from tests.interop.watching import Heard

SCRIPT: Final = str(Path(__file__).parent / "hostile_script.py")
SECONDS: Final = 25.0
"""Far beyond what anything here takes: what is wrong waits for ever."""

ANSWER: Final = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}'
DISCOVERED: Final = (
    '{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],'
    '"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}'
)


def notice(method: str, params: str) -> str:
    return '{"jsonrpc":"2.0","method":"%s","params":%s}' % (method, params)  # noqa: UP031 - braces


@asynccontextmanager
async def hostile(script: dict[str, list[str]], mode: Mode = "legacy", **options: Any) -> AsyncGenerator[Client, None]:
    """A client of a server with this script."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "script.json"
        path.write_text(json.dumps(script))
        target = StdioServerParameters(command=sys.executable, args=["-E", "-s", SCRIPT, str(path)])
        with anyio.fail_after(SECONDS):
            async with Client(target, mode=mode, **options) as client:
                yield client


# --- messages of any shape --------------------------------------------------------------------

SHAPES: Final = ["[1]", '"x"', "5", "null", "true", "{}", "[[]]", '{"a":[]}']
METHODS: Final = ["notifications/x", "notifications/progress", "notifications/message", "notifications/cancelled"]

MALFORMED: Final = [
    *(notice("notifications/x", '{"_meta":%s}' % shape) for shape in SHAPES),  # noqa: UP031
    *(
        notice("notifications/x", '{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}' % shape)  # noqa: UP031
        for shape in SHAPES
    ),
    *(notice(method, shape) for method in METHODS for shape in SHAPES),
    *(notice("notifications/progress", '{"progressToken":%s,"progress":1}' % shape) for shape in SHAPES),  # noqa: UP031
    *(notice("notifications/progress", '{"progressToken":2,"progress":%s}' % shape) for shape in SHAPES),  # noqa: UP031
    *(notice("notifications/cancelled", '{"requestId":%s}' % shape) for shape in SHAPES),  # noqa: UP031
    *(notice("notifications/message", '{"level":%s,"data":1}' % shape) for shape in SHAPES),  # noqa: UP031
    *('{"jsonrpc":"2.0","id":%s,"method":"ping"}' % shape for shape in SHAPES),  # noqa: UP031
    *('{"jsonrpc":"2.0","id":9,"method":"roots/list","params":%s}' % shape for shape in SHAPES),  # noqa: UP031
    *('{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{"_meta":%s}}' % shape for shape in SHAPES),  # noqa: UP031
    *(shape for shape in SHAPES),
    "no JSON at all",
    '{"jsonrpc":"2.0"',
    '{"level":"info","error":"a log record that is JSON"}',
    '{"error":{"code":5,"message":"one that is a JSON-RPC error by chance"}}',
    '{"id":null,"result":"another"}',
    '{"jsonrpc":"2.0","id":"\\ud800","result":{}}',
    "[" * 5000,
    '{"jsonrpc":"2.0","method":"notifications/x","params":' + '{"a":' * 3000 + "1" + "}" * 3000 + "}",
    "\x00\x01\x02",
    "\x1b[2J",
]


@pytest.mark.fault("S-03")
@pytest.mark.case("C106")
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_malformed_messages_are_overlooked(mode: Mode) -> None:
    script = {"tools/call": [*MALFORMED, ANSWER]}
    heard: list[str] = []

    def note(method: str, params: dict[str, Any]) -> None:
        heard.append(method)

    def log(params: t.LoggingMessageNotificationParams) -> None:
        heard.append("log")

    def step(progress: float, total: float | None, message: str | None) -> None:
        heard.append("progress")

    def roots(ctx: Any) -> t.ListRootsResult:
        return t.ListRootsResult(roots=[])

    async def elicit(ctx: Any, params: t.ElicitRequestParams) -> t.ElicitResult:
        return t.ElicitResult(action="decline")

    async with hostile(
        script,
        mode,
        message_handler=note,
        logging_callback=log,
        elicitation_callback=elicit,
        list_roots_callback=roots,
    ) as client:
        for _ in range(2):
            assert (await client.call_tool("x", progress_callback=step)).content == []
    assert "notifications/x" in heard


# --- answers that do not match ------------------------------------------------------------------


@pytest.mark.case("C093")
@pytest.mark.parametrize("spelt", ['"$ID"', "$ID.0", "$IDe0", '"0$ID"', "$ID.000"])
async def test_an_id_of_ours_is_known_in_another_spelling(spelt: str) -> None:
    script = {"tools/call": ['{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}' % spelt]}  # noqa: UP031
    async with hostile(script) as client:
        assert (await client.call_tool("x")).content == []
        script_error = await client.call_tool("x")
        assert script_error.is_error is False


@pytest.mark.case("C093")
@pytest.mark.parametrize("spelt", ['"$ID"', "$ID.0"])
async def test_so_it_is_in_a_refusal(spelt: str) -> None:
    script = {"tools/call": ['{"jsonrpc":"2.0","id":%s,"error":{"code":-32050,"message":"no"}}' % spelt]}  # noqa: UP031
    async with hostile(script) as client:
        with pytest.raises(MCPError, match=r"^no$"):
            await client.call_tool("x")
        await client.ping()


@pytest.mark.case("C097")
@pytest.mark.parametrize(
    "answer",
    [
        '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}',
        '{"jsonrpc":"2.0","error":{"code":-32700,"message":"parse error"}}',
        '{"jsonrpc":"2.0","id":null,"result":{"content":[]}}',
        '{"jsonrpc":"2.0","result":{"content":[]}}',
        '{"jsonrpc":"2.0","id":1.5,"result":{"content":[]}}',
        '{"jsonrpc":"2.0","id":true,"error":{"code":1,"message":"x"}}',
        '{"jsonrpc":"2.0","id":{},"error":{"code":1,"message":"x"}}',
        '{"jsonrpc":"2.0","id":null,"error":"broken"}',
    ],
)
async def test_an_answer_without_a_usable_id_ends_the_only_request(answer: str) -> None:
    async with hostile({"tools/call": [answer]}) as client:
        with pytest.raises(MCPError):
            await client.call_tool("x")
        await client.ping()


@pytest.mark.case("C097")
async def test_of_two_requests_none_is_ended_by_it() -> None:
    error = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}'
    script = {"tools/call": [error, *[notice("notifications/here", "{}")]], "resources/list": [ANSWER]}
    here = Heard[str]()

    def note(method: str, params: dict[str, Any]) -> None:
        here.tell(method)

    async with (
        hostile(script, message_handler=note) as client,
        anyio.create_task_group() as tasks,
    ):

        async def wait() -> None:
            await client.request("nobody/answers")

        tasks.start_soon(wait)
        tasks.start_soon(client.call_tool, "x")
        await here.count(1)
        await client.ping()
        tasks.cancel_scope.cancel()


@pytest.mark.case("C093")
async def test_an_answer_to_nothing_is_said_so(caplog: pytest.LogCaptureFixture) -> None:
    strangers = [f'{{"jsonrpc":"2.0","id":{number},"result":{{}}}}' for number in ('"\\u001b[2Jx"', '"a\\nb"', 999, -1)]
    async with hostile({"tools/call": [*strangers, ANSWER]}) as client:
        await client.call_tool("x")
    flush_logs()
    records = [record.getMessage() for record in caplog.records]
    assert len(records) == 4
    assert all(record.startswith("an answer to no request of ours came, under the id ") for record in records)
    assert all(record.isprintable() for record in records)


async def test_a_late_answer_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    answer = '{"jsonrpc":"2.0","id":$ID,"result":{}}'
    async with hostile({"tools/call": [ANSWER, answer]}) as client:
        await client.call_tool("x")
        await client.ping()
    flush_logs()
    assert [record.getMessage() for record in caplog.records] == []


# --- floods --------------------------------------------------------------------------------------


async def test_what_is_logged_about_a_server_has_an_end(caplog: pytest.LogCaptureFixture) -> None:
    flood = ['{"jsonrpc":"2.0","id":"%s","result":{}}' % ("x" * 5000)] * 1000
    async with hostile({"tools/call": [*flood, ANSWER]}) as client:
        await client.call_tool("x")
    flush_logs()
    records = [record.getMessage() for record in caplog.records]
    assert len(records) == MAX_WARNINGS + 1
    assert max(map(len, records)) < 400


async def test_notifications_that_nobody_takes_are_bounded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(notification_queue, "MAX_WAITING", 50)
    release = anyio.Event()
    heard: list[int] = []

    async def take(method: str, params: dict[str, Any]) -> None:
        await release.wait()
        heard.append(params["n"])

    flood = [notice("notifications/x", '{"n":%d}' % number) for number in range(2000)]  # noqa: UP031
    async with hostile({"tools/call": [*flood, ANSWER]}, message_handler=take) as client:
        await client.call_tool("x")
        release.set()
    assert heard == list(range(50))
    flush_logs()
    assert "notifications are dropped" in caplog.records[0].getMessage()
    assert caplog.records[-1].getMessage() == "1950 notifications were dropped"


async def test_so_are_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notification_queue, "MAX_WAITING_BYTES", 10_000)
    release = anyio.Event()
    heard: list[int] = []

    async def take(method: str, params: dict[str, Any]) -> None:
        await release.wait()
        heard.append(params["n"])

    flood = [notice("notifications/x", '{"n":%d,"x":"%s"}' % (number, "x" * 4000)) for number in range(20)]  # noqa: UP031
    async with hostile({"tools/call": [*flood, ANSWER]}, message_handler=take) as client:
        await client.call_tool("x")
        release.set()
    assert heard == [0, 1]


async def test_the_requests_of_a_server_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_ANSWERING", 5)
    asked = Heard[Any]()
    release = anyio.Event()

    async def roots(ctx: Any) -> t.ListRootsResult:
        asked.tell(ctx.request_id)
        await release.wait()
        return t.ListRootsResult(roots=[])

    flood = ['{"jsonrpc":"2.0","id":"r%d","method":"roots/list"}' % number for number in range(100)]  # noqa: UP031
    async with hostile({"tools/call": [*flood, ANSWER]}, list_roots_callback=roots) as client:
        await client.call_tool("x")
        await asked.count(5)
        await client.ping()
        assert len(asked.items) == 5
        release.set()


async def test_inputs_that_are_asked_for_at_once_are_bounded() -> None:
    requests = {str(number): {"method": "roots/list"} for number in range(client_module.MAX_INPUTS + 1)}
    result = {"resultType": "input_required", "inputRequests": requests, "requestState": "s"}
    answer = '{"jsonrpc":"2.0","id":$ID,"result":%s}' % json.dumps(result)  # noqa: UP031
    asked: list[Any] = []

    def roots(ctx: Any) -> t.ListRootsResult:
        asked.append(ctx)
        return t.ListRootsResult(roots=[])

    async with hostile({"tools/call": [answer]}, "2026-07-28", list_roots_callback=roots) as client:
        with pytest.raises(InvalidResult, match=r"^the server asks for 101 inputs at once"):
            await client.call_tool("x")
    assert asked == []


async def test_rounds_of_input_are_bounded() -> None:
    result = {"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list"}}, "requestState": "s"}
    asked: list[Any] = []

    def roots(ctx: Any) -> t.ListRootsResult:
        asked.append(ctx)
        return t.ListRootsResult(roots=[])

    script = {"tools/call": ['{"jsonrpc":"2.0","id":$ID,"result":%s}' % json.dumps(result)]}  # noqa: UP031
    async with hostile(script, "2026-07-28", list_roots_callback=roots) as client:
        with pytest.raises(InputRoundsExceeded, match=r"^tools/call asked for input more than 10 times$"):
            await client.call_tool("x")
    assert len(asked) == 11


async def test_a_line_without_end_is_not_kept() -> None:
    script = "import sys; sys.stdin.readline(); [sys.stdout.write('x' * 2**20) for _ in range(80)]; sys.stdout.close()"
    target = StdioServerParameters(command=sys.executable, args=["-c", script])
    with anyio.fail_after(SECONDS), pytest.raises((ConnectionClosed, InvalidResult)):
        async with Client(target, mode="legacy"):
            pytest.fail("it is not open")


async def test_unknown_blocks_are_put_back_in_linear_time() -> None:
    def seconds(number: int) -> float:
        unknown: dict[str, Any] = {}
        raw = t_raw({"content": [unknown] * number + [{"type": "text", "text": ""}] * number})
        gc.disable()  # what it does depends on what else there is
        began = time.process_time()
        result: Any = read_result(raw, t.CallToolResult, "tools/call")
        spent = time.process_time() - began
        gc.enable()
        assert [type(block).__name__ for block in (result.content[0], result.content[-1])] == [
            "UnknownContent",
            "TextContent",
        ]
        return spent

    # In linear time 8 times as much, in quadratic time 64 times.
    assert seconds(100_000) < 30 * seconds(12_500) + 0.5


def t_raw(value: Any) -> Any:
    from msgspec import Raw

    return Raw(json.dumps(value).encode())


# --- results that do not quite fit -----------------------------------------------------------------


def listed(*tools: dict[str, Any], **members: Any) -> list[str]:
    result = {"resultType": "complete", "tools": list(tools), "ttlMs": 0, "cacheScope": "private", **members}
    return ['{"jsonrpc":"2.0","id":$ID,"result":%s}' % json.dumps(result)]  # noqa: UP031


GOOD: Final = {"name": "good", "inputSchema": {"type": "object"}}


@pytest.mark.fault("X-83")
@pytest.mark.parametrize("ttl", ["soon", None, 1.5, "1000", True, [], {}, -1, 10**30])
async def test_a_hint_that_is_none_fails_nothing(ttl: Any) -> None:
    discovered = DISCOVERED.replace('"ttlMs":0', f'"ttlMs":{json.dumps(ttl)}')
    script = {"server/discover": [discovered], "tools/list": listed(GOOD, ttlMs=ttl)}
    async with hostile(script, "auto") as client:
        assert client.protocol_version == "2026-07-28"
        assert [tool.name for tool in (await client.list_tools()).tools] == ["good"]


@pytest.mark.fault("X-83")
@pytest.mark.parametrize("scope", ["everybody", None, 1, []])
async def test_so_with_a_scope(scope: Any) -> None:
    async with hostile({"tools/list": listed(GOOD, cacheScope=scope, ttlMs=1000)}, "2026-07-28") as client:
        result = await client.list_tools()
    assert (result.cache_scope, result.ttl_ms) == ("private", 1000)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_one_bad_tool_does_not_hide_the_others(mode: Mode, caplog: pytest.LogCaptureFixture) -> None:
    hinted = {**GOOD, "name": "hinted", "annotations": {"readOnlyHint": "yes"}}
    bad: list[Any] = [{**GOOD, "name": 5}, {"name": "x"}, 7, None, {**GOOD, "title": []}]
    async with hostile({"tools/list": listed(GOOD, *bad, hinted)}, mode) as client:
        tools = (await client.list_tools()).tools
    assert [(tool.name, tool.annotations) for tool in tools] == [("good", None), ("hinted", None)]
    flush_logs()
    (record,) = caplog.records
    assert record.getMessage() == "5 entries of the answer to tools/list are left out: they are none"


async def test_is_error_may_be_null() -> None:
    answer = ANSWER.replace('"content":[]', '"content":[{"type":"text","text":"a"}],"isError":null')
    async with hostile({"tools/call": [answer]}) as client:
        result = await client.call_tool("x")
    assert result.is_error is False
    assert len(result.content) == 1


@pytest.mark.fault("S-26")
@pytest.mark.parametrize("supported", ["null", "5", '"2026-07-28"', "{}", "[]", "[null, 5, []]", "true"])
@pytest.mark.parametrize("whole", [True, False])
async def test_a_refusal_of_the_probe_may_say_anything(supported: str, whole: bool) -> None:
    data = '{"supported":%s}' % supported if whole else supported  # noqa: UP031
    refusal = '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"x","data":%s}}' % data  # noqa: UP031
    names_some = whole and supported == "[null, 5, []]"
    with pytest.raises(MCPError, match=r"^x$") if names_some else nullcontext():
        async with hostile({"server/discover": [refusal]}, "auto") as client:
            assert client.protocol_version == "2025-11-25"


# --- subscriptions ------------------------------------------------------------------------------------


def about(params: str) -> str:
    meta = '"_meta":{"io.modelcontextprotocol/subscriptionId":$ID}'
    return f"{{{meta},{params}}}" if params else f"{{{meta}}}"


def ack(**honoured: Any) -> str:
    shown = '"notifications":' + json.dumps(honoured)
    return notice("notifications/subscriptions/acknowledged", about(shown))


ENDED: Final = notice("notifications/cancelled", '{"requestId":$ID,"reason":"going away"}')
TOOLS: Final = notice("notifications/tools/list_changed", about(""))
PROMPTS: Final = notice("notifications/prompts/list_changed", about(""))


def updated(uri: Any) -> str:
    return notice("notifications/resources/updated", about(f'"uri":{json.dumps(uri)}'))


async def events(script: list[str], **asked: Any) -> list[Event]:
    async with (
        hostile({"subscriptions/listen": script, "server/discover": [DISCOVERED]}, "2026-07-28") as client,
        client.listen(**asked) as subscription,
    ):
        await client.discover()  # what was sent before its answer has come
        return [event async for event in subscription]


@pytest.mark.fault("X-78")
@pytest.mark.parametrize("spelt", ["$ID", '"$ID"'])
async def test_a_subscription_that_the_server_cancels_ends(spelt: str) -> None:
    ended = notice("notifications/cancelled", '{"requestId":%s}' % spelt)  # noqa: UP031
    assert await events([ack(toolsListChanged=True), TOOLS, ended], tools_list_changed=True) == [ToolsListChanged()]


@pytest.mark.fault("X-78")
@pytest.mark.parametrize("mess", [[], [TOOLS]])
async def test_so_does_one_that_was_not_acknowledged(mess: list[str]) -> None:
    with pytest.raises(ConnectionClosed, match="ended the subscription before it acknowledged it"):
        await events([*mess, ENDED], tools_list_changed=True)


@pytest.mark.fault("X-79")
@pytest.mark.parametrize("seconds", [0.05, 1000])
async def test_an_acknowledgement_is_not_waited_for_without_end(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "LISTEN_TIMEOUT", 0.2)
    async with hostile({}, "2026-07-28", read_timeout_seconds=seconds) as client:
        with pytest.raises(RequestTimeout, match="subscriptions/listen was not acknowledged within 0"):
            async with client.listen(tools_list_changed=True):
                pytest.fail("it is not open")


@pytest.mark.fault("X-80")
async def test_events_that_were_not_acknowledged_are_dropped() -> None:
    script = [
        updated("x:before"),
        TOOLS,
        ack(toolsListChanged=True, promptsListChanged=True, resourceSubscriptions=["x:a", "x:unasked"]),
        ack(resourcesListChanged=True),  # the first one counts
        notice("notifications/resources/list_changed", about("")),
        PROMPTS,
        updated("x:b"),
        updated("x:unasked"),
        updated("x:ab"),
        updated(5),
        updated("x:a"),
        updated("x:a/within"),
        TOOLS,
        ENDED,
    ]
    wanted: list[Event] = [ResourceUpdated("x:a"), ResourceUpdated("x:a/within"), ToolsListChanged()]
    assert await events(script, tools_list_changed=True, resource_subscriptions=["x:a", "x:c"]) == wanted


@pytest.mark.fault("X-81")
async def test_events_that_are_equal_are_one_and_different_ones_are_bounded() -> None:
    number = listening.MAX_UNREAD
    same = [ack(resourceSubscriptions=["x:/"]), *[updated("x:/a")] * 5000, ENDED]
    assert await events(same, resource_subscriptions=["x:/"]) == [ResourceUpdated("x:/a")]
    different = [ack(resourceSubscriptions=["x:/"]), *[updated(f"x:/{n}") for n in range(number + 100)]]
    read: list[Event] = []
    async with (
        hostile({"subscriptions/listen": different, "server/discover": [DISCOVERED]}, "2026-07-28") as client,
        client.listen(resource_subscriptions=["x:/"]) as subscription,
    ):
        await client.discover()
        read += [await anext(subscription) for _ in range(number)]
        with pytest.raises(ConnectionClosed, match=r"^more than 1024 events were not read"):
            await anext(subscription)
    assert read[-1] == ResourceUpdated(f"x:/{number - 1}")


@pytest.mark.fault("X-82")
async def test_after_its_block_a_subscription_has_no_more_events() -> None:
    script = {"subscriptions/listen": [ack(toolsListChanged=True), TOOLS]}
    async with hostile(script, "2026-07-28") as client:
        async with client.listen(tools_list_changed=True) as subscription:
            assert await anext(subscription) == ToolsListChanged()
        assert [event async for event in subscription] == []


@pytest.mark.fault("X-82")
async def test_who_iterates_while_the_block_is_left_is_let_go() -> None:
    async with (
        hostile({"subscriptions/listen": [ack(toolsListChanged=True)]}, "2026-07-28") as client,
        anyio.create_task_group() as tasks,
        client.listen(tools_list_changed=True) as subscription,
    ):

        async def read() -> None:
            assert [event async for event in subscription] == []

        for _ in range(3):
            tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()


# --- waits ----------------------------------------------------------------------------------------------


async def test_a_request_is_given_up_in_the_end() -> None:
    stopped = Heard[str]()

    async def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        try:
            await anyio.sleep_forever()
        finally:
            stopped.tell(params.name)
        raise AssertionError

    with anyio.fail_after(SECONDS):
        async with Client(Server("s", on_call_tool=call), read_timeout_seconds=0.5) as client:
            with pytest.raises(RequestTimeout, match=r"^tools/call was not answered within 0\.5 seconds$"):
                await client.call_tool("x")
            await stopped.count(1)
            with pytest.raises(RequestTimeout, match=r"^tools/call was not answered within 0\.1 seconds$"):
                await client.call_tool("y", read_timeout_seconds=0.1)
            await stopped.count(2)
        async with Client(Server("s", on_call_tool=call), read_timeout_seconds=None) as client:
            with anyio.move_on_after(0.7) as scope:
                await client.call_tool("z")
            assert scope.cancelled_caught
    assert stopped.items == ["x", "y", "z"]


async def test_progress_is_a_sign_of_life_up_to_a_limit() -> None:
    from mcp_core.backend import open_backend
    from mcp_core.client.deadlines import LONGEST, RequestDeadlines

    given_up: list[tuple[Any, str]] = []
    async with open_backend() as backend:
        patience = RequestDeadlines(backend, 0.1, lambda request_id, method: given_up.append((request_id, method)))
        patience.start(1, "quiet")
        patience.start(2, "busy")
        with anyio.fail_after(SECONDS):
            began = time.monotonic()
            while len(given_up) < 2:
                patience.extend(2)
                await anyio.sleep(0.005)
            assert time.monotonic() - began >= 0.1 * LONGEST
        patience.close()
    assert given_up == [(1, "quiet"), (2, "busy")]


async def test_nobody_is_late_while_we_are_asked() -> None:
    release = anyio.Event()
    asked = Heard[Any]()
    ended = Heard[str]()

    async def roots(ctx: Any) -> t.ListRootsResult:
        asked.tell(ctx)
        await release.wait()
        return t.ListRootsResult(roots=[])

    async def ask(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        await ctx.list_roots()
        await anyio.sleep_forever()
        raise AssertionError

    client = Client(Server("s", on_call_tool=ask), mode="legacy", list_roots_callback=roots, read_timeout_seconds=0.5)
    with anyio.fail_after(SECONDS):
        async with client, anyio.create_task_group() as tasks:

            async def call() -> None:
                with pytest.raises(RequestTimeout):
                    await client.call_tool("x")
                ended.tell("late")

            tasks.start_soon(call)
            await asked.count(1)
            await anyio.sleep(1)  # twice the limit: nothing is to happen in it
            assert ended.items == []
            release.set()
            await ended.count(1)


# --- callbacks -------------------------------------------------------------------------------------------


@pytest.mark.case("C091")
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_what_came_before_the_answer_reaches_slow_callbacks_in_order(mode: Mode) -> None:
    seen: list[Any] = []

    async def step(progress: float, total: float | None, message: str | None) -> None:
        await anyio.sleep(0.01)
        seen.append(progress)

    async def log(params: t.LoggingMessageNotificationParams) -> None:
        await anyio.sleep(0.01)
        seen.append(params.data)

    async def handle(method: str, params: dict[str, Any]) -> None:
        await anyio.sleep(0.01)
        seen.append(method)

    script = {
        "tools/call": [
            *(notice("notifications/progress", '{"progressToken":$ID,"progress":%d}' % n) for n in (1, 2)),  # noqa: UP031
            notice("notifications/message", '{"level":"info","data":"logged"}'),
            notice("notifications/x", "{}"),
            notice("notifications/progress", '{"progressToken":$ID,"progress":3}'),
            ANSWER,
        ]
    }
    async with hostile(script, mode, logging_callback=log, message_handler=handle) as client:
        await client.call_tool("x", progress_callback=step)
    assert seen == [1, 2, "logged", "notifications/x", 3]


async def test_a_callback_that_never_ends_does_not_keep_the_client_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CALLBACKS_END", 0.1)
    cancelled: list[str] = []

    async def handle(method: str, params: dict[str, Any]) -> None:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            cancelled.append(method)
            raise

    async with hostile({"tools/call": [notice("notifications/x", "{}"), ANSWER]}, message_handler=handle) as client:
        await client.call_tool("x")
    assert cancelled == ["notifications/x"]


class Odd(BaseException):
    """An exception of the author's that is no `Exception`."""


def cancelled_error() -> BaseException:
    import asyncio

    return asyncio.CancelledError("nobody asked for it")


RAISED: Final = {
    "ValueError": ValueError("oops"),
    "SystemExit": SystemExit(3),
    "GeneratorExit": GeneratorExit(),
    "BaseException": Odd("odd"),
    "StopIteration": StopIteration(),
    "StopAsyncIteration": StopAsyncIteration(),
    "group": BaseExceptionGroup("several", [SystemExit(1), ValueError()]),
    "CancelledError": cancelled_error(),
}


@pytest.mark.parametrize("raised", list(RAISED))
@pytest.mark.parametrize("waits", [False, True])
async def test_whatever_a_callback_raises_ends_only_itself(raised: str, waits: bool) -> None:
    async def handle(method: str, params: dict[str, Any]) -> None:
        if waits:
            await anyio.lowlevel.checkpoint()
        raise RAISED[raised]

    def plain(*values: Any) -> None:
        raise RAISED[raised]

    async def roots(ctx: Any) -> t.ListRootsResult:
        if waits:
            await anyio.lowlevel.checkpoint()
        raise RAISED[raised]

    script = {
        "tools/call": [
            notice("notifications/x", "{}"),
            notice("notifications/progress", '{"progressToken":$ID,"progress":1}'),
            notice("notifications/message", '{"level":"info","data":"logged"}'),
            '{"jsonrpc":"2.0","id":"r","method":"roots/list"}',
            ANSWER,
        ]
    }
    logging.disable(logging.CRITICAL)
    try:
        async with hostile(script, message_handler=handle, logging_callback=plain, list_roots_callback=roots) as client:
            for _ in range(3):
                assert (await client.call_tool("x", progress_callback=plain)).content == []
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize("raised", list(RAISED))
async def test_one_that_fails_in_a_round_of_a_call_ends_that_call(raised: str) -> None:
    result = {"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list"}}}
    script = {"tools/call": ['{"jsonrpc":"2.0","id":$ID,"result":%s}' % json.dumps(result)]}  # noqa: UP031

    async def roots(ctx: Any) -> t.ListRootsResult:
        await anyio.lowlevel.checkpoint()
        raise RAISED[raised]

    logging.disable(logging.CRITICAL)
    try:
        async with hostile(script, "2026-07-28", list_roots_callback=roots) as client:
            with pytest.raises(MCPError, match=r"^Internal client error$"):
                await client.call_tool("x")
            with pytest.raises(MCPError):
                await client.discover()
    finally:
        logging.disable(logging.NOTSET)


async def test_a_malformed_answer_is_told_by_its_fault() -> None:
    async with hostile({"tools/call": ['{"jsonrpc":"2.0","id":$ID,"result":{},"error":null}']}) as client:
        with pytest.raises(InvalidRequest):
            await client.call_tool("x")


async def test_a_client_that_is_cancelled_while_callbacks_finish_is_closed_all_the_same() -> None:
    begun = Heard[str]()
    clients: list[Client] = []

    async def handle(method: str, params: dict[str, Any]) -> None:
        begun.tell(method)
        await anyio.sleep_forever()

    with anyio.CancelScope() as scope:
        async with hostile({"tools/call": [notice("notifications/x", "{}"), ANSWER]}, message_handler=handle) as client:
            clients.append(client)
            await client.call_tool("x")
            await begun.count(1)
            scope.deadline = anyio.current_time() + 0.05
    assert scope.cancelled_caught
    with pytest.raises(LocalProtocolError, match="is not open"):
        await clients[0].ping()

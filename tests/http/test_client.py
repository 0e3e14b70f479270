"""Our client over HTTP: what it sends, and what comes of it.

Most servers here are ours, at the other end of a wire in the process; some are scripts. At
the end some run behind real sockets.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from functools import partial
from typing import Any, Final, TypeAlias

import anyio
import httpx2
import pytest

from mcp_core import Client, ConnectionClosed, RequestContext, RequestTimeout, Server
from mcp_core import types as t
from mcp_core.client import ClientRequestContext, Mode, Subscription
from mcp_core.errors import HeaderMismatch, InvalidResult, MethodNotFound
from mcp_core.subscriptions import Event, ResourceUpdated, ToolsListChanged
from mcp_core.testing import flush_logs
from mcp_core.transports.http_client import StreamableHTTPParameters
from mcp_core.transports.streamable_http import InMemoryEventStore
from tests.conformance.server import make_server
from tests.http.client_servers import (
    WEATHER,
    WEATHER_AS_JSON,
    Act,
    Notices,
    Patient,
    Steps,
    Turn,
    acting,
    changing,
    echoing,
    event,
    no_tools,
    replying,
    said,
    text_of,
)
from tests.http.client_wire import SECONDS, URL, wired
from tests.http.serving import Served, serving
from tests.interop.watching import Heard

JSON: TypeAlias = dict[str, Any]

MODES: Final[list[Mode]] = ["auto", "legacy"]
REVISIONS: Final = {"auto": "2026-07-28", "legacy": "2025-11-25"}
CLIENT: Final = "mcp_core.transports.http_client"

both_modes = pytest.mark.parametrize("mode", MODES)


# --- the whole protocol -------------------------------------------------------------------------


@pytest.mark.requirement("R-HTTP-07")
@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("auto", {}),
        ("2026-07-28", {}),
        ("legacy", {}),
        ("legacy", {"json_response": True}),
        ("legacy", {"stateless_http": True}),
        ("legacy", {"event_store": True}),
    ],
    ids=["auto", "modern", "legacy", "legacy-json", "legacy-stateless", "legacy-events"],
)
async def test_every_primitive_is_served(mode: Mode, options: JSON) -> None:
    if "event_store" in options:
        options = {"event_store": InMemoryEventStore()}
    async with wired(make_server().streamable_http_app(**options)) as wire, wire.client(mode) as client:
        assert client.protocol_version == REVISIONS.get(mode, mode)
        assert len((await client.list_tools()).tools) == 28
        assert len((await client.list_resources()).resources) == 3
        assert len((await client.list_resource_templates()).resource_templates) == 1
        assert len((await client.list_prompts()).prompts) == 5
        called = await client.call_tool("test_simple_text")
        assert text_of(called) == "This is a simple text response for testing."
        (contents,) = (await client.read_resource("test://template/7/data")).contents
        assert isinstance(contents, t.TextResourceContents)
        assert json.loads(contents.text)["id"] == "7"
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
        assert prompt.messages[0].content == t.TextContent(text="Prompt with arguments: arg1='a', arg2='b'")
        ref = t.PromptReference(name="test_prompt_with_arguments")
        completed = await client.complete(ref, {"name": "arg1", "value": "test"})
        assert completed.completion.values == ["test", "testValue1"]
    assert all(exchange.status in (200, 202, 405) for exchange in wire.exchanges)


@both_modes
async def test_who_serves_is_known_when_the_client_is_open(mode: Mode) -> None:
    async with wired(make_server()) as wire, wire.client(mode) as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("mcpcore-conformance", "1.0.0")
        assert client.server_capabilities.completions == {}
        assert client.instructions == "A server to run the conformance suite against."
    assert wire.log[0] == {"auto": "POST server/discover", "legacy": "POST initialize"}[mode]


@both_modes
async def test_requests_do_not_wait_for_each_other(mode: Mode) -> None:
    patient = Patient()
    results: list[str] = []
    async with wired(patient.server) as wire, wire.client(mode) as client, anyio.create_task_group() as tasks:

        async def call() -> None:
            results.append(text_of(await client.call_tool("wait")))

        for _ in range(20):
            tasks.start_soon(call)
        await wire.nth("POST tools/call", 20)
        with pytest.raises(MethodNotFound):
            await client.list_prompts()
        patient.go_on.set()
    assert results == ["done"] * 20


# --- what it sends: 2026-07-28 -------------------------------------------------------------------


@pytest.mark.requirement("R-HTTP-04")
@pytest.mark.requirement("R-HTTP-13")
@pytest.mark.requirement("R-HTTP-14")
@pytest.mark.requirement("R-HTTP-15")
@pytest.mark.requirement("R-VER-08")
@pytest.mark.requirement("R-HTTP-05")
async def test_stateless_requests_say_in_headers_what_they_are() -> None:
    async with wired(make_server()) as wire, wire.client() as client:
        await client.list_tools()
        await client.call_tool("test_simple_text")
        await client.read_resource("test://static-text")
        await client.get_prompt("test_simple_prompt")
        await client.notify("notifications/custom", {"a": 1})
    assert {exchange.http_method for exchange in wire.exchanges} == {"POST"}
    for exchange in wire.exchanges:
        assert exchange.headers["content-type"] == "application/json"
        assert exchange.headers["accept"] == "application/json, text/event-stream"
        assert exchange.headers["mcp-protocol-version"] == "2026-07-28"
        assert exchange.headers["mcp-method"] == exchange.message["method"]
        assert "mcp-session-id" not in exchange.headers
        assert exchange.status == (200 if "id" in exchange.message else 202)
    assert [(exchange.what[5:], exchange.headers.get("mcp-name")) for exchange in wire.exchanges] == [
        ("server/discover", None),
        ("tools/list", None),
        ("tools/call", "test_simple_text"),
        ("resources/read", "test://static-text"),
        ("prompts/get", "test_simple_prompt"),
        ("notifications/custom", None),
    ]


@pytest.mark.requirement("R-HTTP-18")
@pytest.mark.requirement("R-HTTP-19")
@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("plain", "plain"),
        ("two words", "two words"),
        ("a\tb", "a\tb"),
        ("", ""),
        ("größe", "=?base64?Z3LDtsOfZQ==?="),
        ("日本", "=?base64?5pel5pys?="),
        (" edge", "=?base64?IGVkZ2U=?="),
        ("edge ", "=?base64?ZWRnZSA=?="),
        ("\tedge", "=?base64?CWVkZ2U=?="),
        ("a\r\nb: c", "=?base64?YQ0KYjogYw==?="),
        ("a\x7fb", "=?base64?YX9i?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ("=?base64?unfinished", "=?base64?unfinished"),
    ],
)
async def test_a_name_that_no_header_can_hold_is_encoded(name: str, header: str) -> None:
    async with wired(echoing()) as wire, wire.client() as client:
        assert text_of(await client.call_tool(name, {"x": 1})) == '{"x": 1}'
    (call,) = wire.all("POST tools/call")
    assert call.headers["mcp-name"] == header
    assert call.message["params"]["name"] == name


def parameters(headers: dict[str, str]) -> dict[str, str]:
    return {name.removeprefix("mcp-param-"): value for name, value in headers.items() if name.startswith("mcp-param-")}


@pytest.mark.requirement("R-HTTP-23")
@pytest.mark.requirement("R-HTTP-24")
@pytest.mark.requirement("R-HTTP-25")
@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"city": "Oslo", "days": 3, "metric": True, "note": "x"}, {"city": "Oslo", "days": "3", "metric": "true"}),
        ({"city": "", "days": -0, "metric": False}, {"city": "", "days": "0", "metric": "false"}),
        ({"city": None, "days": None}, {}),
        ({}, {}),
        ({"city": "Tromsø"}, {"city": "=?base64?VHJvbXPDuA==?="}),
        ({"days": 9007199254740991}, {"days": "9007199254740991"}),
        ({"days": 42.0}, {"days": "42"}),
        ({"place": {"zone": "CET"}}, {"zone": "CET"}),
        ({"place": {"zone": None}}, {}),
        ({"place": "CET"}, {}),
    ],
)
async def test_marked_arguments_are_sent_in_headers_too(arguments: JSON, headers: dict[str, str]) -> None:
    async with wired(echoing(WEATHER)) as wire, wire.client() as client:
        await client.list_tools()
        assert json.loads(text_of(await client.call_tool("weather", arguments))) == arguments
    (call,) = wire.all("POST tools/call")
    assert parameters(call.headers) == headers


async def test_a_tool_without_arguments_has_no_parameters_in_headers() -> None:
    async with wired(echoing(WEATHER)) as wire, wire.client() as client:
        await client.list_tools()
        assert text_of(await client.call_tool("weather")) == "{}"
    assert parameters(wire.all("POST tools/call")[0].headers) == {}


async def test_only_calls_of_tools_have_parameters_in_headers() -> None:
    def get_prompt(ctx: RequestContext, params: t.GetPromptRequestParams) -> t.GetPromptResult:
        return t.GetPromptResult(messages=[])

    async with wired(echoing(WEATHER, on_get_prompt=get_prompt)) as wire, wire.client() as client:
        await client.list_tools()
        await client.get_prompt("weather", {"city": "Oslo"})
    assert parameters(wire.all("POST prompts/get")[0].headers) == {}


@pytest.mark.requirement("R-HTTP-26")
async def test_a_tool_that_was_never_listed_is_called_again_with_its_headers() -> None:
    async with wired(echoing(WEATHER)) as wire, wire.client() as client:
        called = await client.call_tool("weather", {"city": "Oslo"}, progress_callback=Steps().progress)
        assert text_of(called) == '{"city": "Oslo"}'
        assert text_of(await client.call_tool("weather", {"city": "Bergen"})) == '{"city": "Bergen"}'
    assert wire.log[1:] == ["POST tools/call", "POST tools/list", "POST tools/call", "POST tools/call"]
    refused, first, second = wire.all("POST tools/call")
    assert (refused.status, parameters(refused.headers)) == (400, {})
    assert parameters(first.headers) == {"city": "Oslo"}
    assert parameters(second.headers) == {"city": "Bergen"}
    (listed,) = wire.all("POST tools/list")
    assert "progressToken" not in listed.message["params"]["_meta"]


@pytest.mark.requirement("R-HTTP-26")
async def test_the_list_is_read_anew_page_by_page_until_the_tool_is_found() -> None:
    pages: dict[str | None, JSON] = {
        None: {"tools": [{"name": "other", "inputSchema": {"type": "object"}}], "nextCursor": "2"},
        "2": {"tools": [WEATHER_AS_JSON], "nextCursor": "3"},
    }

    async def list_tools(turn: Turn) -> None:
        page = pages[turn.message["params"].get("cursor")]
        # A list may come on a stream as well.
        await turn.stream(event(turn.complete(**page, ttlMs=0, cacheScope="private")))

    async def call(turn: Turn) -> None:
        if parameters(turn.headers) == {"city": "Oslo"}:
            await turn.reply(200, turn.complete(content=[]))
        else:
            await turn.reply(400, turn.refusal(-32020, "Mcp-Param-City header is missing"))

    async with wired(acting({"tools/list": list_tools, "tools/call": call})) as wire, wire.client() as client:
        assert (await client.call_tool("weather", {"city": "Oslo"})).content == []
    assert wire.log[1:] == ["POST tools/call", "POST tools/list", "POST tools/list", "POST tools/call"]
    ids = [exchange.message["id"] for exchange in wire.exchanges if exchange.what != "POST tools/call"]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param(no_tools, id="nothing-new"),
        pytest.param(replying(500, b"oops"), id="no-list"),
    ],
)
async def test_a_refusal_that_no_list_explains_is_raised(listed: Act) -> None:
    async def call(turn: Turn) -> None:
        await turn.reply(400, turn.refusal(-32020, "Mcp-Name is missing"))

    async with wired(acting({"tools/list": listed, "tools/call": call})) as wire, wire.client() as client:
        with pytest.raises(HeaderMismatch, match=r"^Mcp-Name is missing$"):
            await client.call_tool("weather", {"city": "Oslo"})
    assert wire.log[1:] == ["POST tools/call", "POST tools/list"]


BROKEN: Final = [
    {"name": "empty", "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": ""}}}},
    {"name": "number", "inputSchema": {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}},
    {
        "name": "twice",
        "inputSchema": {
            "type": "object",
            "properties": {
                "a": {"type": "string", "x-mcp-header": "A"},
                "b": {"type": "string", "x-mcp-header": "a"},
            },
        },
    },
]


@pytest.mark.requirement("R-HTTP-22")
@both_modes
async def test_a_tool_whose_marks_break_the_rules_is_left_out(mode: Mode, caplog: pytest.LogCaptureFixture) -> None:
    async def list_tools(turn: Turn) -> None:
        tools = [BROKEN[0], WEATHER_AS_JSON, *BROKEN[1:]]
        extra = {"x-kept": [1, 2.5, None]}
        await turn.reply(200, turn.complete(tools=tools, ttlMs=0, cacheScope="private", _meta=extra))

    async with wired(acting({"tools/list": list_tools})) as wire, wire.client(mode) as client:
        listed = await client.list_tools()
    flush_logs()
    records = [record.getMessage() for record in caplog.records]
    assert listed.meta == {"x-kept": [1, 2.5, None]}
    names = [tool.name for tool in listed.tools]
    if mode == "legacy":  # where nobody knows the mark
        assert (names, records) == (["empty", "weather", "number", "twice"], [])
        return
    assert names == ["weather"]
    assert [record.partition(":")[0] for record in records] == [
        "tool empty was left out",
        "tool number was left out",
        "tool twice was left out",
    ]


@pytest.mark.parametrize("tools", [None, "many", [5], [{"inputSchema": 5, "name": "a"}]])
async def test_a_list_that_is_none_is_an_invalid_result(tools: Any) -> None:
    async def list_tools(turn: Turn) -> None:
        await turn.reply(200, turn.complete(tools=tools, ttlMs=0, cacheScope="private"))

    async with wired(acting({"tools/list": list_tools})) as wire, wire.client() as client:
        with pytest.raises(InvalidResult, match="tools/list"):
            await client.list_tools()


# --- what it sends: the handshake era ---------------------------------------------------------------


@pytest.mark.requirement("R-HTTPL-10")
@pytest.mark.requirement("R-HTTPL-12")
@pytest.mark.requirement("R-VER-05")
async def test_a_session_from_its_handshake_to_its_end() -> None:
    async with wired(make_server()) as wire, wire.client("legacy") as client:
        await client.list_tools()
        await client.ping()
    assert wire.log == [
        "POST initialize",
        "POST notifications/initialized",
        "GET",
        "POST tools/list",
        "POST ping",
        "DELETE",
    ]
    first, *others = wire.exchanges
    assert "mcp-session-id" not in first.headers
    assert "mcp-protocol-version" not in first.headers
    session_id = dict(first.fields)[b"mcp-session-id"].decode()
    for exchange in others:
        assert exchange.headers["mcp-session-id"] == session_id
        assert exchange.headers["mcp-protocol-version"] == "2025-11-25"
        assert "mcp-method" not in exchange.headers
        assert (
            exchange.headers["accept"]
            == {
                "GET": "text/event-stream",
                "POST": "application/json, text/event-stream",
                "DELETE": "*/*",
            }[exchange.http_method]
        )
    assert [exchange.status for exchange in wire.exchanges] == [200, 202, 200, 200, 200, 200]


async def test_a_server_without_sessions_is_left_without_a_word() -> None:
    async with (
        wired(make_server().streamable_http_app(stateless_http=True)) as wire,
        wire.client("legacy") as client,
    ):
        await client.list_tools()
    assert wire.log == ["POST initialize", "POST notifications/initialized", "GET", "POST tools/list"]
    assert [exchange.status for exchange in wire.exchanges] == [200, 202, 405, 200]


async def test_no_request_overtakes_the_confirmation_of_the_handshake() -> None:
    release = anyio.Event()

    async def initialized(turn: Turn) -> None:
        await release.wait()
        await turn.reply(202)

    acts = {"notifications/initialized": initialized, "tools/list": no_tools}
    async with (
        wired(acting(acts)) as wire,
        wire.client("legacy") as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(client.list_tools)
        await wire.nth("POST notifications/initialized")
        await anyio.wait_all_tasks_blocked()
        assert wire.log == ["POST initialize", "POST notifications/initialized"]
        release.set()
    assert wire.log == ["POST initialize", "POST notifications/initialized", "GET", "POST tools/list"]


async def test_a_stream_that_does_not_open_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{CLIENT}.initializer._STREAM_OPENS", 0.01)

    async with wired(acting({"GET": Turn.gone})) as wire, wire.client("legacy") as client:
        assert (await client.list_tools()).tools == []
        assert wire.all("GET")[0].status is None


@both_modes
async def test_notifications_keep_their_order(mode: Mode) -> None:
    release = anyio.Event()
    heard: list[int] = []

    async def take(turn: Turn) -> None:
        await release.wait()
        heard.append(turn.message["params"]["number"])
        await turn.reply(202)

    async with wired(acting({"notifications/custom": take})) as wire, wire.client(mode) as client:
        for number in range(10):
            await client.notify("notifications/custom", {"number": number})
        await wire.nth("POST notifications/custom")
        await anyio.wait_all_tasks_blocked()
        assert len(wire.all("POST notifications/custom")) == 1
        release.set()
        # Whoever leaves at once is not cut off.
    assert heard == list(range(10))


@both_modes
async def test_a_message_that_is_refused_or_streamed_at_holds_up_nothing(
    mode: Mode, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{CLIENT}.posts.RESPONSE_ENDS", 0.01)

    async def stream(turn: Turn) -> None:
        await turn.open(": a stream that nobody asked for")
        await turn.gone()

    async def refuse(turn: Turn) -> None:
        await turn.reply(500, b"oops", "text/plain")

    acts = {"notifications/a": stream, "notifications/b": refuse}
    async with wired(acting(acts)) as wire, wire.client(mode) as client:
        for name in "abc":
            await client.notify(f"notifications/{name}")
        await wire.nth("POST notifications/c")
    flush_logs()
    assert [record.getMessage() for record in caplog.records] == ["a message was refused with HTTP status 500"]


@pytest.mark.requirement("R-AUTH-09")
async def test_own_headers_go_with_everything_and_break_nothing() -> None:
    own = {"X-Trace": "42", "Accept": "text/plain", "content-TYPE": "text/plain", "Authorization": "Bearer abc"}
    async with wired(make_server()) as wire, wire.client("legacy", headers=own) as client:
        await client.list_tools()
    for exchange in wire.exchanges:
        assert exchange.headers["x-trace"] == "42"
        assert exchange.headers["authorization"] == "Bearer abc"
        names = [name.lower() for name, _ in exchange.raw_headers]
        assert len(set(names)) == len(names)
    assert [exchange.status for exchange in wire.exchanges] == [200, 202, 200, 200, 200]
    assert own["Accept"] == "text/plain"


async def test_a_client_of_httpx_that_is_given_stays_open_and_keeps_its_settings() -> None:
    async with wired(make_server()) as wire:
        wire.http.headers["x-team"] = "blue"
        wire.http.auth = ("ann", "secret")
        for mode in MODES:
            async with wire.client(mode) as client:
                await client.list_tools()
        assert not wire.http.is_closed
    assert {exchange.headers["x-team"] for exchange in wire.exchanges} == {"blue"}
    assert {exchange.headers["authorization"] for exchange in wire.exchanges} == {"Basic YW5uOnNlY3JldA=="}


async def test_it_works_over_the_asgi_transport_of_httpx_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{CLIENT}.initializer._STREAM_OPENS", 0.01)
    transport = httpx2.ASGITransport(echoing(WEATHER).streamable_http_app())
    for mode in MODES:
        async with (
            httpx2.AsyncClient(transport=transport) as http,
            Client(StreamableHTTPParameters(url=URL, http_client=http), mode=mode) as client,
        ):
            assert text_of(await client.call_tool("weather", {"city": "Oslo"})) == '{"city": "Oslo"}'


# --- before the answer: progress, log messages -------------------------------------------------------


@both_modes
async def test_progress_comes_in_order_and_to_the_call_that_it_is_of(mode: Mode) -> None:
    async def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        for step in range(3):
            await ctx.report_progress(step, 3, f"{params.name} {step}")
        return said("done")

    heard: dict[str, list[tuple[float, float | None, str | None]]] = {"a": [], "b": []}

    def hear(name: str, done: float, total: float | None, message: str | None) -> None:
        heard[name].append((done, total, message))

    async with wired(Server("x", on_call_tool=call)) as wire, wire.client(mode) as client:
        async with anyio.create_task_group() as tasks:
            for name in heard:
                tasks.start_soon(partial(client.call_tool, name, progress_callback=partial(hear, name)))
        # What is heard is handled in order: with the next answer, all of it was.
        last = Steps()
        await client.call_tool("c", progress_callback=last.progress)
        await last.count(3)
    assert heard == {name: [(step, 3, f"{name} {step}") for step in range(3)] for name in "ab"}
    assert dict(wire.all("POST tools/call")[0].fields)[b"content-type"] == b"text/event-stream"


@both_modes
async def test_log_messages_come_if_they_are_asked_for(mode: Mode) -> None:
    heard = Heard[t.LoggingMessageNotificationParams]()
    asked: JSON = {"log_level": "info"} if mode == "auto" else {}
    async with wired(make_server()) as wire, wire.client(mode, logging_callback=heard.tell, **asked) as client:
        if mode == "legacy":
            await client.set_logging_level("info")
        await client.call_tool("test_tool_with_logging")
        messages = await heard.count(3)
    assert [(message.level, message.data) for message in messages] == [
        ("info", "Tool execution started"),
        ("info", "Tool processing data"),
        ("info", "Tool execution completed"),
    ]


# --- questions -----------------------------------------------------------------------------------------


class User:
    """Answers all that a client can be asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def elicit(self, ctx: ClientRequestContext, params: t.ElicitRequestParams) -> t.ElicitResult:
        self.asked.append(params.message)
        return t.ElicitResult(action="accept", content={"username": "ann", "email": "ann@example.com"})

    async def sample(self, ctx: ClientRequestContext, params: t.CreateMessageRequestParams) -> t.CreateMessageResult:
        self.asked.append(f"at most {params.max_tokens}")
        return t.CreateMessageResult(role="assistant", content=t.TextContent(text="Paris."), model="m")

    async def list_roots(self, ctx: ClientRequestContext) -> t.ListRootsResult:
        self.asked.append("roots")
        return t.ListRootsResult(roots=[t.Root(uri="file:///a"), t.Root(uri="file:///b")])

    @property
    def callbacks(self) -> JSON:
        return {
            "elicitation_callback": self.elicit,
            "sampling_callback": self.sample,
            "list_roots_callback": self.list_roots,
        }


@both_modes
@pytest.mark.parametrize(
    ("tool", "arguments", "asked", "answer"),
    [
        (
            "test_elicitation",
            {"message": "Who are you?"},
            "Who are you?",
            'User response: action=accept, content={"username": "ann", "email": "ann@example.com"}',
        ),
        ("test_sampling", {"prompt": "Capital?"}, "at most 100", "LLM response: Paris."),
        ("test_input_required_result_list_roots", {}, "roots", "file:///a, file:///b"),
    ],
    ids=["elicitation", "sampling", "roots"],
)
async def test_questions_are_answered(mode: Mode, tool: str, arguments: JSON, asked: str, answer: str) -> None:
    user = User()
    async with wired(make_server()) as wire, wire.client(mode, **user.callbacks) as client:
        assert text_of(await client.call_tool(tool, arguments)) == answer
    assert user.asked == [asked]
    # The handshake era answers by a message of its own, 2026-07-28 by calling again (R-BASE-12).
    assert len(wire.all("POST result")) == (1 if mode == "legacy" else 0)
    assert len(wire.all("POST tools/call")) == (1 if mode == "legacy" else 2)
    assert [exchange.status for exchange in wire.all("POST result")] == [202] * (mode == "legacy")


async def test_a_question_may_come_on_the_stream_of_the_session() -> None:
    answered = anyio.Event()
    answers: list[Any] = []

    async def ask(turn: Turn) -> None:
        await turn.open()
        params: JSON = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
        await turn.write(event({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params}))
        await turn.gone()

    async def call(turn: Turn) -> None:
        await answered.wait()
        await turn.reply(200, turn.result({"content": []}))

    async def take(turn: Turn) -> None:
        if turn.message is not None and "result" in turn.message:
            answers.append(turn.message)
            answered.set()
        await turn.reply(202)

    user = User()
    app = acting({"GET": ask, "tools/call": call, "POST": take})
    async with wired(app) as wire, wire.client("legacy", **user.callbacks) as client:
        await client.call_tool("x")
    content = {"username": "ann", "email": "ann@example.com"}
    assert answers == [{"jsonrpc": "2.0", "id": "q", "result": {"action": "accept", "content": content}}]


@pytest.mark.requirement("R-BASE-12")
@pytest.mark.requirement("R-HTTP-05")
async def test_a_request_of_a_stateless_server_goes_unanswered() -> None:
    async def call(turn: Turn) -> None:
        await turn.stream(event({"jsonrpc": "2.0", "id": 9, "method": "ping"}), event(turn.complete(content=[])))

    async with wired(acting({"tools/call": call})) as wire, wire.client() as client:
        assert (await client.call_tool("x")).content == []
    assert wire.log == ["POST server/discover", "POST tools/call"]


# --- changes -------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-SUB-01")
@pytest.mark.requirement("R-SUB-02")
@pytest.mark.requirement("R-SUB-10")
async def test_a_subscription_gives_what_was_asked_for_until_it_is_left() -> None:
    server = changing()
    got: list[Event] = []
    async with wired(server) as wire, wire.client() as client:
        async with client.listen(tools_list_changed=True, resource_subscriptions=["x:a"]) as subscription:
            assert subscription.honoured == t.SubscriptionFilter(
                tools_list_changed=True, resource_subscriptions=["x:a"]
            )
            for announced in (ToolsListChanged(), ResourceUpdated("x:b"), ResourceUpdated("x:a")):
                await server.publish(announced)
            with anyio.fail_after(SECONDS):
                async for change in subscription:
                    got.append(change)
                    if len(got) == 2:
                        break
        # The server sees the stream close, and is told nothing more.
        (listening,) = wire.all("POST subscriptions/listen")
        await wire.until(lambda: listening.has_returned)
        assert listening.is_gone
        await client.list_tools()
    assert got == [ToolsListChanged(), ResourceUpdated("x:a")]
    assert wire.log == ["POST server/discover", "POST subscriptions/listen", "POST tools/list"]


@pytest.mark.requirement("R-SUB-06")
@pytest.mark.requirement("R-SUB-07")
async def test_subscriptions_end_when_the_server_ends_them() -> None:
    server = changing()
    async with (
        wired(server) as wire,
        wire.client() as client,
        client.listen(tools_list_changed=True) as tools,
        client.listen(resource_subscriptions=["x:a"]) as resources,
    ):
        await server.publish(ToolsListChanged())
        await server.publish(ResourceUpdated("x:a"))
        server.end_subscriptions()
        with anyio.fail_after(SECONDS):
            assert [change async for change in tools] == [ToolsListChanged()]
            assert [change async for change in resources] == [ResourceUpdated("x:a")]
    assert not any(exchange.is_gone for exchange in wire.exchanges)


@pytest.mark.requirement("R-SUB-09")
async def test_a_subscription_that_breaks_off_says_so_and_can_be_had_again() -> None:
    server = changing()

    async def first(subscription: Subscription) -> Event:
        with anyio.fail_after(SECONDS):
            return await anext(subscription)

    async with wired(server) as wire, wire.client() as client:
        async with client.listen(tools_list_changed=True) as subscription:
            await server.publish(ToolsListChanged())
            assert await first(subscription) == ToolsListChanged()
            wire.exchanges[-1].break_off()
            with pytest.raises(ConnectionClosed) as caught:
                await first(subscription)
        assert str(caught.value) == "the stream of subscriptions/listen ended before its answer"
        async with client.listen(tools_list_changed=True) as subscription:
            await server.publish(ToolsListChanged())
            assert await first(subscription) == ToolsListChanged()
    first_id, second_id = (exchange.message["id"] for exchange in wire.all("POST subscriptions/listen"))
    assert first_id != second_id


async def test_a_subscription_that_is_refused_is_raised() -> None:
    async with wired(echoing(WEATHER)) as wire, wire.client() as client:
        with pytest.raises(MethodNotFound):
            async with client.listen(tools_list_changed=True):
                pytest.fail("it is not open")
    assert wire.exchanges[-1].status == 404


async def test_a_session_hears_of_changes_on_its_own_stream() -> None:
    server = changing()
    heard = Notices()
    async with (
        wired(server) as wire,
        wire.client("legacy", message_handler=heard.notification) as client,
    ):
        await client.subscribe_resource("x:a")
        for change in (ToolsListChanged(), ResourceUpdated("x:b"), ResourceUpdated("x:a")):
            await server.publish(change)
        told = await heard.count(2)
    assert told == [
        ("notifications/tools/list_changed", {}),
        ("notifications/resources/updated", {"uri": "x:a"}),
    ]


# --- cancellation, and the end --------------------------------------------------------------------------


@pytest.mark.requirement("R-CANC-05")
@pytest.mark.requirement("R-HTTP-11")
@pytest.mark.requirement("R-HTTPL-06")
@both_modes
async def test_a_call_that_is_cancelled_ends_on_the_server_too(mode: Mode) -> None:
    patient = Patient()
    async with wired(patient.server) as wire, wire.client(mode) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "wait")
        with anyio.fail_after(SECONDS):
            await patient.started.wait()
            tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True), anyio.fail_after(SECONDS):
            await patient.cancelled.wait()
            (call,) = wire.all("POST tools/call")
            await wire.until(lambda: call.has_returned)
            assert [notice.message["params"] for notice in wire.all("POST notifications/cancelled")] == (
                [{"requestId": call.message["id"]}] if mode == "legacy" else []
            )
            patient.go_on.set()
            assert text_of(await client.call_tool("again")) == "done"


@pytest.mark.requirement("R-BASE-19")
@both_modes
async def test_a_call_that_takes_too_long_ends_on_the_server_too(mode: Mode) -> None:
    patient = Patient()
    async with wired(patient.server) as wire, wire.client(mode) as client:
        with pytest.raises(RequestTimeout, match=r"^tools/call was not answered within 0.05 seconds$"):
            await client.call_tool("wait", read_timeout_seconds=0.05)
        with anyio.fail_after(SECONDS):
            await patient.cancelled.wait()
    assert len(wire.all("POST notifications/cancelled")) == (1 if mode == "legacy" else 0)


@pytest.mark.requirement("R-CANC-02")
async def test_a_handshake_that_takes_too_long_is_given_up_without_a_word() -> None:
    app = acting({"initialize": Turn.gone})
    async with wired(app) as wire:
        with pytest.raises(RequestTimeout, match=r"^initialize was not answered within 0.05 seconds$"):
            async with wire.client("legacy", read_timeout_seconds=0.05):
                pytest.fail("it is not open")
    assert wire.log == ["POST initialize"]
    assert wire.exchanges[0].is_gone


async def test_a_server_that_ignores_the_probe_is_asked_to_shake_hands() -> None:
    app = acting({"server/discover": Turn.gone})
    async with wired(app) as wire, wire.client(probe_timeout_seconds=0.05) as client:
        assert client.protocol_version == "2025-11-25"
    assert wire.log[:2] == ["POST server/discover", "POST initialize"]
    assert wire.exchanges[0].is_gone
    assert "POST notifications/cancelled" not in wire.log


@both_modes
async def test_whoever_waits_when_the_client_is_left_is_told(mode: Mode) -> None:
    patient = Patient()
    failures: list[Exception] = []

    async def call(client: Client) -> None:
        try:
            await client.call_tool("wait")
        except ConnectionClosed as exc:
            failures.append(exc)

    async with wired(patient.server) as wire, anyio.create_task_group() as tasks:
        async with wire.client(mode) as client:
            tasks.start_soon(call, client)
            with anyio.fail_after(SECONDS):
                await patient.started.wait()
        with anyio.fail_after(SECONDS):
            await patient.cancelled.wait()
    assert [str(failure) for failure in failures] == ["the connection ended before the answer came"]


@both_modes
async def test_a_client_that_was_left_can_be_opened_again(mode: Mode) -> None:
    async with wired(make_server()) as wire:
        client = wire.client(mode)
        for _ in range(2):
            async with client:
                assert len((await client.list_prompts()).prompts) == 5
    opening = {"auto": "POST server/discover", "legacy": "POST initialize"}[mode]
    assert len(wire.all(opening)) == 2


# --- real sockets -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def harbour() -> Generator[Served, None, None]:
    """A server whose tools wait for each other."""
    with serving("tests.http.harbour_server:server") as served:
        yield served


async def reached(client: Client, name: str) -> None:
    with anyio.fail_after(SECONDS):
        await client.call_tool("wait_for", {"name": name})


@both_modes
async def test_sockets_cancellation(mode: Mode, harbour: Served, anyio_backend_name: str) -> None:
    name = f"{mode} {anyio_backend_name}"
    async with Client(harbour.url, mode=mode) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "linger", {"name": name})
        await reached(client, f"{name} started")
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await reached(client, f"{name} cancelled")


@both_modes
async def test_sockets_more_requests_than_a_pool_has_by_default(
    mode: Mode, harbour: Served, anyio_backend_name: str
) -> None:
    name = f"all {mode} {anyio_backend_name}"
    results: list[str] = []
    async with Client(harbour.url, mode=mode) as client, anyio.create_task_group() as tasks:

        async def wait() -> None:
            results.append(text_of(await client.call_tool("wait_for", {"name": name})))

        for _ in range(150):
            tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert text_of(await client.call_tool("reach", {"name": name})) == "reached"
    assert results == ["reached"] * 150


@both_modes
async def test_sockets_large_events_and_one_connection_for_all(mode: Mode, harbour: Served) -> None:
    addresses: set[Any] = set()

    async def note(response: httpx2.Response) -> None:
        addresses.add(response.extensions["network_stream"].get_extra_info("client_addr"))

    async with httpx2.AsyncClient(event_hooks={"response": [note]}, timeout=60) as http:
        parameters = StreamableHTTPParameters(url=harbour.url, http_client=http)
        heard = Steps()
        async with Client(parameters, mode=mode) as client:
            for size in (10, 100_000, 3_000_000):
                result = await client.call_tool("large", {"size": size}, progress_callback=heard.progress)
                assert len(text_of(result)) == size
                await heard.count(1)
                heard.items.clear()
                # The answer came on a stream, whose end comes a moment later.
                await anyio.wait_all_tasks_blocked()
    # In the handshake era one more is the session's own.
    assert len(addresses) <= (3 if mode == "legacy" else 1)


async def test_sockets_changes(harbour: Served) -> None:
    async with Client(harbour.url) as client, client.listen(tools_list_changed=True) as subscription:
        await client.call_tool("change_tools")
        with anyio.fail_after(SECONDS):
            async for change in subscription:
                assert change == ToolsListChanged()
                break


@both_modes
async def test_sockets_a_server_that_is_killed(mode: Mode) -> None:
    with serving("tests.http.harbour_server:server") as served:
        failures: list[str] = []
        async with Client(served.url, mode=mode) as client, anyio.create_task_group() as tasks:

            async def call() -> None:
                with pytest.raises(ConnectionClosed) as caught:
                    await client.call_tool("linger_stubbornly", {"name": "it"})
                failures.append(str(caught.value))

            tasks.start_soon(call)
            await reached(client, "it started")
            served.process.kill()
        (told,) = failures
        assert told.startswith(f"tools/call got no answer from {served.url}: ")

"""2026-07-28 over HTTP, as the server does it: forms of the answer, cancellation, subscriptions, mirrored headers."""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import anyio
import pytest
from pydantic import Field

from mcp_core import LocalProtocolError, RequestContext, Server
from mcp_core.errors import InvalidParams
from mcp_core.subscriptions import Event as Change
from mcp_core.subscriptions import (
    InProcessBus,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp_core.testing import flush_logs
from mcp_core.transports.streamable_http import HTTPOptions, StreamableHTTP
from mcp_core.types import (
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    SetLevelRequestParams,
    TextContent,
    TextResourceContents,
    Tool,
)
from mcp_typed import Cancellation, MCPServer
from tests.http.asgi import BOTH, SECONDS, Exchange, ModernClient, Response, Value, living, modern_headers

Handler = Callable[[RequestContext, CallToolRequestParams], Awaitable[CallToolResult]]
JSON = "application/json"
STREAM = "text/event-stream"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def result(text: str = "done", structured: Any = None) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], structured_content=structured)


def text_of(response: Response) -> str:
    """The text of a tool's result, in whichever form the answer came."""
    (block,) = response.answer["result"]["content"]
    return str(block["text"])


def served(on_call_tool: Any, *, options: dict[str, Any] | None = None, **server: Any) -> StreamableHTTP:
    return StreamableHTTP(Server("modern", on_call_tool=on_call_tool, **server), HTTPOptions(**(options or {})))


def calling(client: ModernClient, name: str = "t", *, request_id: Any = 1, token: Any = "p") -> dict[str, Any]:
    """A call that asks for progress."""
    return client.message(request_id, "tools/call", {"name": name}, meta={"progressToken": token})


class Gate:
    """A handler that says when it has started, and waits to be let on; it remembers how it ended."""

    def __init__(self, *, progress: bool = False) -> None:
        self.started = anyio.Event()
        self.let_on = anyio.Event()
        self.ended = anyio.Event()
        self.how = "running"
        self._progress = progress

    async def __call__(self, ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        try:
            if self._progress:
                await ctx.report_progress(1)
            self.started.set()
            await self.let_on.wait()
            self.how = "finished"
        except anyio.get_cancelled_exc_class():
            self.how = "cancelled"
            raise
        finally:
            self.ended.set()
        return result()


async def soon(event: anyio.Event) -> None:
    """Wait for the event, or fail."""
    with anyio.fail_after(SECONDS):
        await event.wait()


# --- one answer, in two forms --------------------------------------------------------------------------


@pytest.mark.requirement("R-HTTP-01")
@pytest.mark.requirement("R-HTTP-07")
async def test_an_answer_with_nothing_before_it_is_json() -> None:
    def at_once(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        return result("at once")

    async def in_a_while(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await anyio.lowlevel.checkpoint()
        return result("in a while")

    async def without_waiting(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        return result("without waiting")

    for handler in (at_once, in_a_while, without_waiting):
        response = await ModernClient(served(handler)).call("t")
        assert response.status == 200
        assert response.json == {
            "jsonrpc": "2.0",
            "id": 1,
            "result": {
                "content": [{"type": "text", "text": handler.__name__.replace("_", " ")}],
                "isError": False,
                "resultType": "complete",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": ""}},
            },
        }


@pytest.mark.requirement("R-HTTP-07")
@pytest.mark.requirement("R-HTTP-08")
@pytest.mark.requirement("R-HTTP-09")
@pytest.mark.requirement("R-HTTP-10")
async def test_an_answer_becomes_a_stream_with_the_first_message_before_it() -> None:
    gate = Gate(progress=True)
    client = ModernClient(served(gate))
    async with client.post(calling(client, request_id="r", token=7)) as exchange:
        progress = await exchange.next_message()
        head = exchange.so_far
        assert head.status == 200
        assert dict(head.fields) == {
            "content-type": STREAM,
            "cache-control": "no-cache, no-transform",
            "x-accel-buffering": "no",
        }
        assert not exchange.is_complete
        gate.let_on.set()
        response = await exchange.response()
    assert progress == {
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": 7, "progress": 1},
    }
    assert [event.event for event in response.events] == ["message", "message"]
    assert [event.id for event in response.events] == [None, None]  # no stream of this era is taken up again
    assert response.messages[0] == progress
    assert response.messages[1]["id"] == "r"
    assert text_of(response) == "done"


async def test_each_message_before_the_answer_leaves_at_once() -> None:
    steps = [anyio.Event() for _ in range(3)]

    async def stepwise(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        for number, step in enumerate(steps):
            await ctx.notify("notifications/custom", {"number": number})
            await step.wait()
        return result()

    client = ModernClient(served(stepwise))
    async with client.post(calling(client)) as exchange:
        for number, step in enumerate(steps):
            assert (await exchange.next_message())["params"] == {"number": number}
            step.set()
        assert text_of(await exchange.response()) == "done"


@pytest.mark.requirement("R-HTTP-07")
@pytest.mark.case("C066")
@pytest.mark.parametrize(
    ("accept", "quiet", "talking"),
    [
        (None, JSON, STREAM),
        ("", JSON, STREAM),
        ("*/*", JSON, STREAM),
        (BOTH, JSON, STREAM),
        ("text/event-stream,application/json", JSON, STREAM),
        ("APPLICATION/JSON, Text/Event-Stream", JSON, STREAM),
        ("application/*, text/*", JSON, STREAM),
        ("application/json;q=0.1, text/event-stream;q=0.9", JSON, STREAM),
        ("application/json ; charset=utf-8 , text/event-stream ; q=1.000", JSON, STREAM),
        ("text/html, */*;q=0.1", JSON, STREAM),
        ("application/json", JSON, JSON),
        ("application/*", JSON, JSON),
        ("application/json, text/event-stream;q=0", JSON, JSON),
        ("*/*, text/event-stream;q=0", JSON, JSON),
        ("*/*;q=0.8, text/*;q=0", JSON, JSON),
        ("text/event-stream", STREAM, STREAM),
        ("text/*", STREAM, STREAM),
        ("text/event-stream, application/json;q=0.0", STREAM, STREAM),
        ("*/*, application/*;q=0", STREAM, STREAM),
    ],
)
async def test_the_form_of_an_answer_is_one_that_the_client_takes(accept: str | None, quiet: str, talking: str) -> None:
    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        if params.name == "talk":
            await ctx.report_progress(1)
        return result()

    client = ModernClient(served(call))
    for name, form in (("quiet", quiet), ("talk", talking)):
        response = await client.answer(calling(client, name), headers={"accept": accept})
        assert (response.status, response.header("content-type")) == (200, form)
        assert text_of(response) == "done"
        if form == STREAM:
            assert len(response.messages) == (2 if name == "talk" else 1)
            assert response.header("x-accel-buffering") == "no"


@pytest.mark.requirement("R-HTTP-08")
@pytest.mark.requirement("R-PROG-04")
async def test_what_a_request_sends_goes_on_its_own_stream_only() -> None:
    gates = {"a": Gate(progress=True), "b": Gate(progress=True)}

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        return await gates[params.name](ctx, params)

    client = ModernClient(served(call))
    async with (
        client.post(calling(client, "a", request_id=1, token="for a")) as first,
        client.post(calling(client, "b", request_id=1, token="for b")) as second,
    ):
        for name, exchange in (("a", first), ("b", second)):
            assert (await exchange.next_message())["params"]["progressToken"] == f"for {name}"
            gates[name].let_on.set()
            response = await exchange.response()
            assert len(response.messages) == 2


@pytest.mark.requirement("R-HTTP-08")
@pytest.mark.requirement("R-BASE-11")
async def test_no_request_is_sent_to_the_client() -> None:
    refused: list[str] = []

    async def asks(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await ctx.report_progress(1)
        try:
            await ctx.elicit("Who?", {"type": "object", "properties": {}})
        except LocalProtocolError as exc:
            refused.append(str(exc))
        return result()

    client = ModernClient(served(asks))
    response = await client.answer(calling(client))
    assert [message.get("method") for message in response.messages] == ["notifications/progress", None]
    assert len(refused) == 1


@pytest.mark.case("C050")
@pytest.mark.parametrize("request_id", [0, "1", "", -3, 2**70, "é", 'a"b\\c\n', "\u2028", "x" * 5000])
async def test_an_id_is_given_back_as_it_came(request_id: Any) -> None:
    async def talk(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await ctx.report_progress(1)
        return result()

    client = ModernClient(served(talk))
    streamed = (await client.answer(calling(client, request_id=request_id, token=request_id))).messages
    assert streamed[0]["params"]["progressToken"] == request_id
    assert (streamed[1]["id"], type(streamed[1]["id"])) == (request_id, type(request_id))
    # The status of an error is found whatever the id looks like.
    unknown = await client.answer(client.message(request_id, "tools/unknown"))
    assert (unknown.status, unknown.json["id"], unknown.json["error"]["code"]) == (404, request_id, -32601)


@pytest.mark.case("C053")
@pytest.mark.case("C054")
async def test_lone_surrogates_harm_nobody() -> None:
    async def echo(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        arguments = params.arguments or {}
        return result("a\ud800b", arguments)

    client = ModernClient(served(echo))
    message = client.message(1, "tools/call", {"name": "t", "arguments": {"x": "a\ud800b"}})
    response = await client.answer(message)
    assert text_of(response) == "a\ufffdb"
    assert response.json["result"]["structuredContent"] == {"x": "a\ufffdb"}
    assert text_of(await client.call("t")) == "a\ufffdb"


async def test_other_methods_are_answered_alike() -> None:
    async def get_prompt(ctx: RequestContext, params: GetPromptRequestParams) -> GetPromptResult:
        return GetPromptResult(messages=[], description=params.name)

    async def read(ctx: RequestContext, params: ReadResourceRequestParams) -> ReadResourceResult:
        await ctx.report_progress(1)
        return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, text="memo")])

    client = ModernClient(served(Gate(), on_get_prompt=get_prompt, on_read_resource=read))
    prompt = await client.answer(client.message(1, "prompts/get", {"name": "hello"}))
    assert prompt.json["result"]["description"] == "hello"
    resource = client.message(2, "resources/read", {"uri": "memo://1"}, meta={"progressToken": 1})
    assert (await client.answer(resource)).messages[1]["result"]["contents"] == [{"uri": "memo://1", "text": "memo"}]
    discovered = await client.answer(client.message(3, "server/discover"))
    assert discovered.json["result"]["supportedVersions"][0] == "2026-07-28"


async def test_a_handler_sees_the_headers_of_its_request() -> None:
    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        headers = ctx.headers or {}
        return result(structured={"tenant": headers["x-tenant"], "many": headers["x-many"]})

    message = ModernClient.message(1, "tools/call", {"name": "t"})
    repeated = [("x-tenant", "blue"), ("x-many", "a"), ("x-many", "b")]
    response = await ModernClient(served(call)).answer(message, repeated=repeated)
    assert response.json["result"]["structuredContent"] == {"tenant": "blue", "many": "a, b"}


# --- comments ------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-HTTP-10")
async def test_a_quiet_stream_is_kept_alive_by_comments() -> None:
    gate = Gate(progress=True)
    client = ModernClient(served(gate, options={"keep_alive": 0.01}))
    async with client.post(calling(client)) as exchange:
        await exchange.next_message()
        await exchange.until(lambda exchange: exchange.comments >= 3)
        gate.let_on.set()
        response = await exchange.response()
    comments = [event for event in response.events if event.comment is not None]
    assert all(event.data is None and event.event is None for event in comments)
    assert len(response.messages) == 2
    assert response.events[-1].message["id"] == 1


@pytest.mark.requirement("R-HTTP-10")
@pytest.mark.requirement("R-HTTP-07")
@pytest.mark.fault("X-51")
@pytest.mark.fault("X-85")
async def test_a_quiet_call_opens_its_stream_and_is_kept_alive() -> None:
    gate = anyio.Event()

    async def slow(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await gate.wait()
        return result()

    client = ModernClient(served(slow, options={"keep_alive": 0.01}))
    async with client.post(calling(client)) as exchange:
        await exchange.until(lambda exchange: exchange.comments >= 2)
        assert exchange.so_far.header("content-type") == "text/event-stream"
        gate.set()
        assert (await exchange.response()).answer["result"]["content"][0]["text"] == "done"


@pytest.mark.requirement("R-HTTP-10")
@pytest.mark.fault("X-51")
async def test_a_client_that_takes_json_only_is_sent_no_comments() -> None:
    async def slow(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await anyio.sleep(0.05)  # several times the interval
        return result()

    client = ModernClient(served(slow, options={"keep_alive": 0.01}))
    response = await client.call("t", headers={"accept": JSON})
    assert response.json["result"]["content"][0]["text"] == "done"


# --- the client goes away ------------------------------------------------------------------------------

forms = pytest.mark.parametrize(
    ("accept", "progress"),
    [(BOTH, True), (BOTH, False), (STREAM, False), (JSON, False), (JSON, True)],
    ids=["stream", "not yet a stream", "streams only", "json only", "json only, dropped progress"],
)


@pytest.mark.requirement("R-HTTP-11")
@pytest.mark.case("C073")
@forms
@pytest.mark.parametrize("options", [{}, {"stateless_http": True}, {"json_response": True}], ids=str)
async def test_a_client_that_goes_away_cancels(accept: str, progress: bool, options: dict[str, Any]) -> None:
    gate = Gate(progress=progress)
    client = ModernClient(served(gate, options=options))
    async with client.post(calling(client), headers={"accept": accept}) as exchange:
        await soon(gate.started)
        exchange.disconnect()
        await soon(gate.ended)
        assert gate.how == "cancelled"
        await exchange.returned()
        assert exchange.sent_late == []
    # Who calls next is served.
    gate.let_on.set()
    assert text_of(await client.call("t")) == "done"


@pytest.mark.requirement("R-HTTP-11")
@forms
async def test_nothing_is_sent_to_a_client_that_has_gone(accept: str, progress: bool) -> None:
    started, ended = anyio.Event(), anyio.Event()

    async def stubborn(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        if progress:
            await ctx.report_progress(1)
        started.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await ctx.report_progress(2)
                await ctx.notify("notifications/custom", {})
                await anyio.lowlevel.checkpoint()
            ended.set()
            raise
        return result()

    client = ModernClient(served(stubborn))
    async with client.post(calling(client), headers={"accept": accept}) as exchange:
        await soon(started)
        exchange.disconnect()
        await exchange.returned()
        assert ended.is_set()
        assert exchange.sent_late == []


@pytest.mark.requirement("R-HTTP-11")
@pytest.mark.parametrize("progress", [True, False])
async def test_an_answer_in_spite_of_it_is_not_sent(progress: bool) -> None:
    started = anyio.Event()

    async def unmoved(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        if progress:
            await ctx.report_progress(1)
        started.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            pass
        return result("all the same")

    client = ModernClient(served(unmoved))
    async with client.post(calling(client)) as exchange:
        await soon(started)
        exchange.disconnect()
        await exchange.returned()
        assert exchange.sent_late == []


@pytest.mark.requirement("R-HTTP-11")
async def test_work_inside_of_task_groups_and_timeouts_is_cancelled() -> None:
    started, ended = anyio.Event(), anyio.Event()
    children: list[str] = []

    async def child() -> None:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            children.append("cancelled")
            raise

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        try:
            with anyio.move_on_after(60):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(child)
                    tasks.start_soon(child)
                    await anyio.lowlevel.checkpoint()
                    started.set()
            return result("timed out")
        finally:
            ended.set()

    client = ModernClient(served(call))
    async with client.post(calling(client)) as exchange:
        await soon(started)
        exchange.disconnect()
        await exchange.returned()
        assert ended.is_set()
        assert exchange.sent_late == []
    assert children == ["cancelled", "cancelled"]


@pytest.mark.requirement("R-HTTP-11")
async def test_a_request_that_waits_in_middleware_is_cancelled() -> None:
    gate = Gate()
    app = served(gate)
    ends: list[str] = []

    async def around(ctx: RequestContext, call_next: Any) -> Any:
        try:
            return await call_next(ctx)
        except anyio.get_cancelled_exc_class():
            ends.append(ctx.method)
            raise

    app.server.middleware.append(around)
    client = ModernClient(app)
    async with client.post(calling(client)) as exchange:
        await soon(gate.started)
        exchange.disconnect()
        await exchange.returned()
    assert (ends, gate.how) == (["tools/call"], "cancelled")


@pytest.mark.requirement("R-HTTP-11")
async def test_a_tool_in_a_thread_is_told() -> None:
    mcp = MCPServer("threads")
    started, told = threading.Event(), threading.Event()

    @mcp.tool()
    def slow(cancellation: Cancellation) -> str:
        started.set()
        if cancellation.wait(SECONDS) and cancellation.requested:
            told.set()
        return "never read"

    client = ModernClient(mcp.server.streamable_http_app())
    async with client.post(client.message(1, "tools/call", {"name": "slow"})) as exchange:
        assert await anyio.to_thread.run_sync(started.wait, SECONDS)
        exchange.disconnect()
        await exchange.returned()
        assert exchange.sent_late == []
    assert await anyio.to_thread.run_sync(told.wait, SECONDS)


@pytest.mark.requirement("R-HTTP-11")
async def test_a_client_that_does_not_read_holds_the_handler_and_may_still_go() -> None:
    sent = 0
    ended = anyio.Event()

    async def endless(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        nonlocal sent
        try:
            while True:
                await ctx.notify("notifications/custom", {"number": sent})
                sent += 1
                await anyio.lowlevel.checkpoint()
        finally:
            ended.set()

    client = ModernClient(served(endless))
    async with client.post(calling(client)) as exchange:
        await exchange.next_message()
        exchange.stop_reading()
        await anyio.wait_all_tasks_blocked()
        held_at = sent
        await anyio.wait_all_tasks_blocked()
        assert sent == held_at
        exchange.read_on()
        for number in range(1, held_at + 3):
            assert (await exchange.next_message())["params"] == {"number": number}
        exchange.stop_reading()
        await anyio.wait_all_tasks_blocked()
        exchange.disconnect()
        await soon(ended)


async def test_two_senders_wait_while_the_client_does_not_read() -> None:
    sent = {"one": 0, "two": 0}

    async def endless(ctx: RequestContext, name: str) -> None:
        while True:
            await ctx.notify("notifications/custom", {"name": name})
            sent[name] += 1
            if sum(sent.values()) > 1000:
                return
            await anyio.lowlevel.checkpoint()

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        async with anyio.create_task_group() as tasks:
            for name in sent:
                tasks.start_soon(endless, ctx, name)
        return result()

    client = ModernClient(served(call))
    async with client.post(calling(client)) as exchange:
        await exchange.next_message()
        exchange.stop_reading()
        await anyio.wait_all_tasks_blocked()
        assert sum(sent.values()) < 100


async def test_a_client_that_goes_amid_its_body_gets_nothing() -> None:
    gate = Gate()
    client = ModernClient(served(gate))
    message = client.message(1, "tools/call", {"name": "t"})
    async with client.open(headers=modern_headers(message), body=[b'{"jsonrpc":'], cut_short=True) as exchange:
        await exchange.returned()
        assert not exchange.has_started
        assert exchange.sent_late == []
    assert gate.how == "running"


# --- subscriptions --------------------------------------------------------------------------------------


class CountingBus(InProcessBus):
    """A bus that knows how many listen."""

    def __init__(self) -> None:
        super().__init__()
        self.listeners = 0

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        remove = super().subscribe(listener)
        self.listeners += 1

        def counted() -> None:
            self.listeners -= 1
            remove()

        return counted


def no_tools(ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
    return ListToolsResult(tools=[])


def no_prompts(ctx: RequestContext, params: PaginatedRequestParams) -> ListPromptsResult:
    return ListPromptsResult(prompts=[])


def no_resources(ctx: RequestContext, params: PaginatedRequestParams) -> ListResourcesResult:
    return ListResourcesResult(resources=[])


def changing(bus: Any = True, **options: Any) -> StreamableHTTP:
    """A server that lists everything, and tells of changes."""
    return served(
        Gate(),
        options=options,
        subscriptions=bus,
        on_list_tools=no_tools,
        on_list_prompts=no_prompts,
        on_list_resources=no_resources,
    )


EVERYTHING = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["memo://1"],
}


def listening(request_id: Any, **asked: Any) -> dict[str, Any]:
    return ModernClient.message(request_id, "subscriptions/listen", {"notifications": asked})


def told(request_id: Any, method: str, **params: Any) -> dict[str, Any]:
    """A notification of a subscription."""
    return {"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": {SUBSCRIPTION: request_id}}}


async def acknowledged(exchange: Exchange, request_id: Any, **honoured: Any) -> None:
    """The acknowledgement is the first message."""
    method = "notifications/subscriptions/acknowledged"
    assert await exchange.next_message() == told(request_id, method, notifications=honoured)


def end_of(request_id: Any) -> dict[str, Any]:
    """The result of a subscription."""
    meta = {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": ""}, SUBSCRIPTION: request_id}
    return {"jsonrpc": "2.0", "id": request_id, "result": {"resultType": "complete", "_meta": meta}}


@pytest.mark.requirement("R-SUB-03")
@pytest.mark.requirement("R-SUB-04")
@pytest.mark.requirement("R-SUB-07")
@pytest.mark.requirement("R-META-07")
@pytest.mark.requirement("R-HTTP-10")
@pytest.mark.parametrize("request_id", [0, "s", -1])
async def test_a_subscription_is_acknowledged_served_and_ended(request_id: Any) -> None:
    app = changing()
    async with ModernClient(app).post(listening(request_id, **EVERYTHING)) as exchange:
        await acknowledged(exchange, request_id, **EVERYTHING)
        assert exchange.so_far.header("x-accel-buffering") == "no"
        for change, wanted in (
            (ToolsListChanged(), told(request_id, "notifications/tools/list_changed")),
            (PromptsListChanged(), told(request_id, "notifications/prompts/list_changed")),
            (ResourcesListChanged(), told(request_id, "notifications/resources/list_changed")),
            (ResourceUpdated("memo://1"), told(request_id, "notifications/resources/updated", uri="memo://1")),
        ):
            await app.server.publish(change)
            assert await exchange.next_message() == wanted
        app.close()
        assert await exchange.next_message() == end_of(request_id)
        assert len((await exchange.response()).messages) == 6


@pytest.mark.requirement("R-SUB-02")
@pytest.mark.requirement("R-SUB-03")
@pytest.mark.parametrize(
    ("asked", "honoured", "method"),
    [
        ({"toolsListChanged": True}, {"toolsListChanged": True}, "notifications/tools/list_changed"),
        (
            {"promptsListChanged": True, "toolsListChanged": False},
            {"promptsListChanged": True},
            "notifications/prompts/list_changed",
        ),
        ({"resourcesListChanged": True}, {"resourcesListChanged": True}, "notifications/resources/list_changed"),
        (
            {"resourceSubscriptions": ["memo://2"]},
            {"resourceSubscriptions": ["memo://2"]},
            "notifications/resources/updated",
        ),
    ],
)
async def test_only_what_was_asked_for_is_told(asked: Any, honoured: Any, method: str) -> None:
    app = changing()
    async with ModernClient(app).post(listening(1, **asked)) as exchange:
        await acknowledged(exchange, 1, **honoured)
        for change in (
            ToolsListChanged(),
            PromptsListChanged(),
            ResourcesListChanged(),
            ResourceUpdated("memo://1"),
            ResourceUpdated("memo://2"),
        ):
            await app.server.publish(change)
        assert (await exchange.next_message())["method"] == method
        app.close()
        assert await exchange.next_message() == end_of(1)


@pytest.mark.requirement("R-SUB-03")
async def test_what_the_server_does_not_offer_is_left_out_of_the_acknowledgement() -> None:
    app = served(Gate(), subscriptions=True, on_list_tools=no_tools)
    async with ModernClient(app).post(listening(1, **EVERYTHING)) as exchange:
        await acknowledged(exchange, 1, toolsListChanged=True)


@pytest.mark.requirement("R-SUB-04")
@pytest.mark.requirement("R-SUB-06")
async def test_subscriptions_are_served_side_by_side() -> None:
    app = changing()
    client = ModernClient(app)
    async with (
        client.post(listening("a", toolsListChanged=True)) as a,
        client.post(listening(1, toolsListChanged=True)) as one,
    ):
        await acknowledged(a, "a", toolsListChanged=True)
        await acknowledged(one, 1, toolsListChanged=True)
        await app.server.publish(ToolsListChanged())
        assert await a.next_message() == told("a", "notifications/tools/list_changed")
        assert await one.next_message() == told(1, "notifications/tools/list_changed")
        a.disconnect()
        await a.returned()
        await app.server.publish(ToolsListChanged())
        assert await one.next_message() == told(1, "notifications/tools/list_changed")
        assert a.sent_late == []


@pytest.mark.requirement("R-SUB-05")
async def test_what_requests_report_is_not_told_to_subscriptions() -> None:
    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await ctx.report_progress(1)
        await ctx.log("error", "help")
        return result()

    def set_level(ctx: RequestContext, params: SetLevelRequestParams) -> EmptyResult:
        return EmptyResult()

    app = served(call, subscriptions=True, on_list_tools=no_tools, on_set_logging_level=set_level)
    client = ModernClient(app)
    meta = {"progressToken": "p", "io.modelcontextprotocol/logLevel": "debug"}
    asked = {"notifications": {"toolsListChanged": True}}
    async with client.post(client.message(1, "subscriptions/listen", asked, meta=meta)) as exchange:
        await acknowledged(exchange, 1, toolsListChanged=True)
        called = await client.call("t", meta=meta)
        methods = [message.get("method") for message in called.messages]
        assert methods == ["notifications/progress", "notifications/message", None]
        app.close()
        assert await exchange.next_message() == end_of(1)


@pytest.mark.requirement("R-SUB-10")
@pytest.mark.requirement("R-HTTP-11")
async def test_a_subscription_ends_with_its_client() -> None:
    bus = CountingBus()
    app = changing(bus)
    client = ModernClient(app)
    await client.answer(client.message(1, "server/discover"))
    before = bus.listeners
    async with client.post(listening(1, toolsListChanged=True)) as exchange:
        await acknowledged(exchange, 1, toolsListChanged=True)
        assert bus.listeners == before + 1
        exchange.disconnect()
        await exchange.returned()
        assert bus.listeners == before
        assert exchange.sent_late == []


@pytest.mark.requirement("R-HTTP-10")
async def test_a_quiet_subscription_is_kept_alive() -> None:
    app = changing(keep_alive=0.01)
    async with ModernClient(app).post(listening(1, toolsListChanged=True)) as exchange:
        await acknowledged(exchange, 1, toolsListChanged=True)
        await exchange.until(lambda exchange: exchange.comments >= 2)
        await app.server.publish(ToolsListChanged())
        assert await exchange.next_message() == told(1, "notifications/tools/list_changed")


@pytest.mark.requirement("R-SUB-07")
async def test_the_end_of_the_lifespan_ends_subscriptions() -> None:
    app = changing()
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            ended = anyio.Event()

            async def listen(*, task_status: anyio.abc.TaskStatus[None]) -> None:
                async with ModernClient(app).post(listening(1, toolsListChanged=True)) as exchange:
                    await acknowledged(exchange, 1, toolsListChanged=True)
                    task_status.started()
                    assert await exchange.next_message() == end_of(1)
                    await exchange.response()
                ended.set()

            async with living(app) as lifespan:
                await tasks.start(listen)
            await ended.wait()
            assert lifespan.sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_closing_the_app_lets_other_requests_end_as_they_are() -> None:
    gate = Gate(progress=True)
    app = served(gate, subscriptions=True)
    client = ModernClient(app)
    async with client.post(calling(client)) as exchange:
        await exchange.next_message()
        app.close()
        await anyio.wait_all_tasks_blocked()
        assert not exchange.is_complete
        gate.let_on.set()
        assert text_of(await exchange.response()) == "done"


# --- standard headers that do not say it as the body does -----------------------------------------------


def sentinel(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@pytest.mark.requirement("R-HTTP-15")
@pytest.mark.requirement("R-HTTP-17")
@pytest.mark.requirement("R-HTTP-18")
@pytest.mark.requirement("R-HTTP-19")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("plain", "plain"),
        ("plain", "  plain\t"),
        ("plain", sentinel("plain")),
        ("two words\tand a tab", "two words\tand a tab"),
        ("wörter", sentinel("wörter")),
        ("\N{SNOWMAN} \N{GRINNING FACE}", sentinel("\N{SNOWMAN} \N{GRINNING FACE}")),
        (" edges ", sentinel(" edges ")),
        ("line\nbreak", sentinel("line\nbreak")),
        ("=?base64?cGxhaW4=?=", sentinel("=?base64?cGxhaW4=?=")),
        ("=?BASE64?cGxhaW4=?=", "=?BASE64?cGxhaW4=?="),
        ("=?base64?cGxhaW4=", "=?base64?cGxhaW4="),
        ("", ""),
        ("", sentinel("")),
    ],
)
async def test_a_name_is_read_from_its_header_as_it_was_encoded(name: str, value: str) -> None:
    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        return result(params.name)

    message = ModernClient.message(1, "tools/call", {"name": name})
    response = await ModernClient(served(call)).answer(message, headers={"mcp-name": value})
    assert (response.status, text_of(response)) == (200, name)


@pytest.mark.requirement("R-HTTP-15")
async def test_only_three_methods_are_named_by_a_header() -> None:
    client = ModernClient(changing())
    for name in ("anything", "=?base64?**?=", "\xe9"):
        response = await client.answer(client.message(1, "tools/list"), headers={"mcp-name": name})
        assert response.status == 200


# --- parameters in headers ------------------------------------------------------------------------------

LARGE = 2**53 - 1


def marked(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": name}


SCHEMA = {
    "type": "object",
    "properties": {
        "region": marked("string", "Region"),
        "count": marked("integer", "COUNT"),
        "dry": marked("boolean", "dry-run"),
        "place": {"type": "object", "properties": {"city": marked("string", "City"), "zip": {"type": "string"}}},
        "note": {"type": "string"},
    },
}


class Listed:
    """A server with a list of tools that can be changed, and that knows how often it was read."""

    def __init__(self, **tools: dict[str, Any]) -> None:
        self.tools = tools
        self.reads = 0
        self.during: Callable[[], Awaitable[None]] | None = None
        self.failures: list[Exception] = []
        self.page_size = 100
        self.app = served(self.call, subscriptions=True, on_list_tools=self.list)
        self.client = ModernClient(self.app)

    async def list(self, ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
        self.reads += 1
        if self.failures:
            raise self.failures.pop(0)
        tools = [Tool(name=name, input_schema=schema) for name, schema in self.tools.items()]
        if self.during is not None:
            during, self.during = self.during, None
            await during()
        start = int(params.cursor or 0)
        end = start + self.page_size
        return ListToolsResult(tools=tools[start:end], next_cursor=str(end) if end < len(tools) else None)

    async def call(self, ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        return result(structured=params.arguments)

    async def is_checked(self, name: str = "query") -> bool:
        """Whether a call without the header of its region is refused."""
        response = await self.client.call(name, {"region": "eu"})
        if response.status == 200:
            assert response.json["result"]["structuredContent"] == {"region": "eu"}
            return False
        assert (response.status, response.json["error"]["code"]) == (400, -32020)
        return True


@pytest.mark.requirement("R-HTTP-16")
@pytest.mark.requirement("R-HTTP-19")
@pytest.mark.requirement("R-HTTP-20")
@pytest.mark.requirement("R-HTTP-23")
@pytest.mark.requirement("R-HTTP-24")
@pytest.mark.requirement("R-HTTP-25")
@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, {"mcp-param-region": "eu"}),
        ({"region": "eu"}, {"MCP-PARAM-REGION": " eu\t"}),
        ({"region": "eu"}, {"mcp-param-region": sentinel("eu")}),
        ({"region": "Zürich"}, {"mcp-param-region": sentinel("Zürich")}),
        ({"region": " eu "}, {"mcp-param-region": sentinel(" eu ")}),
        ({"region": "=?base64?ZXU=?="}, {"mcp-param-region": sentinel("=?base64?ZXU=?=")}),
        ({"region": ""}, {"mcp-param-region": ""}),
        ({"region": "null"}, {"mcp-param-region": "null"}),
        ({"region": "42"}, {"mcp-param-region": "42"}),
        ({"count": 42}, {"mcp-param-count": "42"}),
        ({"count": 42}, {"mcp-param-count": "42.0"}),
        ({"count": 42.0}, {"mcp-param-count": "42"}),
        ({"count": 42}, {"mcp-param-count": "4.2e1"}),
        ({"count": 42}, {"mcp-param-count": sentinel("42")}),
        ({"count": 0}, {"mcp-param-count": "0"}),
        ({"count": 0}, {"mcp-param-count": "-0"}),
        ({"count": -7}, {"mcp-param-count": "-7"}),
        ({"count": LARGE}, {"mcp-param-count": str(LARGE)}),
        ({"count": -LARGE}, {"mcp-param-count": str(-LARGE)}),
        ({"dry": True}, {"mcp-param-dry-run": "true"}),
        ({"dry": False}, {"mcp-param-dry-run": "false"}),
        ({"place": {"city": "Rome", "zip": "1"}}, {"mcp-param-city": "Rome"}),
        ({"region": "eu", "count": 1, "dry": True, "place": {"city": "x"}}, ...),
        ({}, {}),
        ({"region": None, "count": None, "dry": None, "place": {"city": None}}, {}),
        ({"place": None}, {}),
        ({"place": {}}, {}),
        ({"note": "x"}, {"mcp-param-note": "y", "mcp-param-unknown": "z", "mcp-param-": "\xe9"}),
    ],
)
async def test_a_call_whose_headers_say_what_its_arguments_say_is_served(arguments: Any, headers: Any) -> None:
    everything = {
        "mcp-param-region": "eu",
        "mcp-param-count": "1",
        "mcp-param-dry-run": "true",
        "mcp-param-city": "x",
    }
    client = Listed(query=SCHEMA).client
    response = await client.call("query", arguments, headers=everything if headers is ... else headers)
    assert response.status == 200
    assert response.json["result"]["structuredContent"] == arguments


@pytest.mark.requirement("R-HTTP-24")
@pytest.mark.requirement("R-HTTP-25")
@pytest.mark.requirement("R-ERR-03")
@pytest.mark.parametrize(
    ("arguments", "header", "value", "says"),
    [
        ({"count": 42}, "mcp-param-count", "42.5", "'count'"),
        ({"count": LARGE}, "mcp-param-count", str(LARGE - 1), "'count'"),
        ({"count": 42}, "mcp-param-count", "", "'count'"),
        ({"place": {"city": "Rome"}}, "mcp-param-city", "rome", "'place.city'"),
        ({"place": {"city": "Rome"}}, "mcp-param-city", None, "'place.city'"),
        ({"place": {}}, "mcp-param-city", "Rome", "'place.city'"),
        ({"place": None}, "mcp-param-city", "Rome", "'place.city'"),
        ({"place": "Rome"}, "mcp-param-city", "Rome", "'place.city'"),
        ({"region": ["eu"]}, "mcp-param-region", "eu", "'region'"),
        ({"dry": 1}, "mcp-param-dry-run", "true", "'dry'"),
    ],
)
async def test_a_call_whose_headers_say_something_else_is_refused(
    arguments: Any, header: str, value: Value | None, says: str
) -> None:
    listed = Listed(query=SCHEMA)
    response = await listed.client.call("query", arguments, headers={header: value})
    error = response.json["error"]
    assert (response.status, error["code"], response.json["id"]) == (400, -32020, 1)
    assert says in error["message"]
    assert header in error["message"].lower()


@pytest.mark.requirement("R-HTTP-24")
@pytest.mark.requirement("R-HTTP-28")
async def test_tools_without_marks_have_no_headers_to_check() -> None:
    listed = Listed(query=SCHEMA, plain={"type": "object", "properties": {"region": {"type": "string"}}})
    for name in ("plain", "unlisted"):
        response = await listed.client.call(name, {"region": "eu"}, headers={"mcp-param-region": "us"})
        assert response.json["result"]["structuredContent"] == {"region": "eu"}
    assert await listed.is_checked()


@pytest.mark.requirement("R-HTTP-20")
async def test_without_a_list_there_are_no_marks() -> None:
    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        return result(structured=params.arguments)

    response = await ModernClient(served(call)).call("t", {"a": 1}, headers={"mcp-param-a": "2"})
    assert response.json["result"]["structuredContent"] == {"a": 1}


async def test_the_list_is_read_once_for_any_number_of_calls() -> None:
    listed = Listed(query=SCHEMA, other=SCHEMA)
    for _ in range(3):
        assert await listed.is_checked()
        assert await listed.is_checked("other")
    assert listed.reads == 1


async def test_the_list_is_read_to_its_end() -> None:
    listed = Listed(one={"type": "object"}, two={"type": "object"}, three={"type": "object"}, query=SCHEMA)
    listed.page_size = 1
    assert await listed.is_checked()
    assert listed.reads == 4


@pytest.mark.requirement("R-HTTP-24")
async def test_a_change_of_the_list_makes_marks_be_read_anew() -> None:
    listed = Listed(query={"type": "object"})
    assert not await listed.is_checked()
    listed.tools["query"] = SCHEMA
    assert not await listed.is_checked()  # nobody has said that it changed
    for other in (PromptsListChanged(), ResourcesListChanged(), ResourceUpdated("memo://1")):
        await listed.app.server.publish(other)
    assert not await listed.is_checked()
    await listed.app.server.publish(ToolsListChanged())
    assert await listed.is_checked()
    listed.tools["query"] = {"type": "object"}
    await listed.app.server.publish(ToolsListChanged())
    assert not await listed.is_checked()
    assert listed.reads == 3


async def test_a_change_while_marks_are_read_is_not_missed() -> None:
    listed = Listed(query={"type": "object"})

    async def change() -> None:
        listed.tools["query"] = SCHEMA
        await listed.app.server.publish(ToolsListChanged())

    listed.during = change
    await listed.is_checked()  # decided by the list before or after the change
    assert await listed.is_checked()


async def test_a_call_that_cannot_read_the_list_does_not_switch_checks_off() -> None:
    listed = Listed(query=SCHEMA)
    strange = listed.client.message(1, "tools/call", {"name": "query", "arguments": {"region": "eu"}})
    strange["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01"
    refused = await listed.client.answer(strange, headers={"mcp-protocol-version": "2099-01-01"})
    assert (refused.status, refused.json["error"]["code"]) == (400, -32022)
    assert await listed.is_checked()


@pytest.mark.parametrize("meta", [{"io.modelcontextprotocol/logLevel": "loud"}, {"progressToken": 1.5}], ids=str)
async def test_a_call_with_a_bad_envelope_does_not_switch_checks_off(meta: dict[str, Any]) -> None:
    listed = Listed(query=SCHEMA)
    headers = {"mcp-param-region": "eu"}
    refused = await listed.client.call("query", {"region": "eu"}, meta=meta, headers=headers)
    assert refused.json["error"]["code"] == -32602
    assert await listed.is_checked()


async def test_a_list_that_fails_once_does_not_switch_checks_off() -> None:
    listed = Listed(query=SCHEMA)
    listed.failures.append(InvalidParams("not now"))
    await listed.client.call("query", {"region": "eu"}, headers={"mcp-param-region": "eu"})
    assert await listed.is_checked()


async def test_the_list_is_read_as_the_client_who_calls_would_see_it() -> None:
    tenants: list[str | None] = []

    def list_tools(ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
        tenants.append((ctx.headers or {}).get("x-tenant"))
        return ListToolsResult(tools=[Tool(name="query", input_schema=SCHEMA)])

    client = ModernClient(served(Gate(), on_list_tools=list_tools), headers={"x-tenant": "blue"})
    assert (await client.call("query", {"region": "eu"})).status == 400
    assert tenants == ["blue"]


@pytest.mark.requirement("R-HTTP-24")
@pytest.mark.requirement("R-HTTP-08")
async def test_reading_the_list_sends_the_client_nothing() -> None:
    async def list_tools(ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
        await ctx.report_progress(1)
        return ListToolsResult(tools=[Tool(name="query", input_schema=SCHEMA)])

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        return result()

    client = ModernClient(served(call, on_list_tools=list_tools))
    refused = await client.call("query", {"region": "eu"}, meta={"progressToken": 1})
    assert (refused.status, refused.json["error"]["code"]) == (400, -32020)
    client = ModernClient(served(call, on_list_tools=list_tools))
    given = {"mcp-param-region": "eu"}
    response = await client.call("query", {"region": "eu"}, meta={"progressToken": 1}, headers=given)
    assert response.json["result"]["content"][0]["text"] == "done"


@pytest.mark.requirement("R-HTTP-21")
async def test_a_tool_whose_marks_break_the_rules_is_not_checked(caplog: pytest.LogCaptureFixture) -> None:
    twice = {"type": "object", "properties": {"region": marked("string", "R"), "other": marked("string", "r")}}
    listed = Listed(broken=twice, query=SCHEMA)
    with caplog.at_level(logging.WARNING, logger="mcp_core"):
        assert not await listed.is_checked("broken")
        assert await listed.is_checked()
        flush_logs()
    (record,) = caplog.records
    assert "tool broken: property 'other': x-mcp-header 'r' is taken by another property" in record.getMessage()


@pytest.mark.requirement("R-HTTP-20")
async def test_the_marks_of_typed_tools_are_checked() -> None:
    mcp = MCPServer("typed")

    @mcp.tool()
    def query(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})], count: int = 1) -> str:
        return region * count

    client = ModernClient(mcp.server.streamable_http_app())
    missing = await client.call("query", {"region": "eu"})
    assert (missing.status, missing.json["error"]["code"]) == (400, -32020)
    given = await client.call("query", {"region": "eu", "count": 2}, headers={"mcp-param-region": "eu"})
    assert given.json["result"]["structuredContent"] == {"result": "eueu"}


@pytest.mark.requirement("R-HTTP-24")
@pytest.mark.parametrize("is_wired", [True, False], ids=["lifespan", "no lifespan"])
async def test_a_typed_tool_that_is_added_later_is_checked(is_wired: bool) -> None:
    mcp = MCPServer("typed")

    def query(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
        return region

    app = StreamableHTTP(mcp.server, HTTPOptions())
    client = ModernClient(app)

    async def scenario() -> None:
        async with client.post(listening(1, toolsListChanged=True)) as exchange:
            await acknowledged(exchange, 1, toolsListChanged=True)
            unknown = await client.call("query", {"region": "eu"})
            assert unknown.json["error"]["code"] == -32602
            mcp.add_tool(query)
            assert await exchange.next_message() == told(1, "notifications/tools/list_changed")
            missing = await client.call("query", {"region": "eu"})
            assert (missing.status, missing.json["error"]["code"]) == (400, -32020)

    if is_wired:
        async with living(app):
            await scenario()
    else:
        await scenario()

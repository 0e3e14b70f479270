"""What the client puts on the wire, and what it makes of what comes back."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcp_core import Client, MCPError, RequestContext, ResourceNotFound, Server, errors
from mcp_core.client import Mode
from mcp_core.subscriptions import Event, ResourceUpdated, ToolsListChanged
from mcp_core.testing import WireRecorder
from mcp_core.types import (
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    ElicitResult,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    Implementation,
    InputRequest,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListToolsResult,
    PaginatedRequestParams,
    PromptReference,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
    TextResourceContents,
)

Asked = CallToolRequestParams | GetPromptRequestParams | ReadResourceRequestParams

ASK = {"name": InputRequest(method="elicitation/create", params={"message": "?", "requestedSchema": {}})}


def asks(params: Asked) -> InputRequiredResult | None:
    """The first round of a request that wants to know a name."""
    if params.input_responses is None:
        return InputRequiredResult(input_requests=ASK, request_state="opaque \u2028 é==")
    assert params.request_state == "opaque \u2028 é=="
    assert params.input_responses == {"name": {"action": "accept", "content": {"name": "Ann"}}}
    return None


async def call_tool(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
    return asks(params) or CallToolResult(content=[TextContent(text="called")])


async def read(ctx: RequestContext, params: ReadResourceRequestParams) -> ReadResourceResult | InputRequiredResult:
    if params.uri == "x:missing":
        raise ResourceNotFound(params.uri)
    return asks(params) or ReadResourceResult(contents=[TextResourceContents(uri=params.uri, text="read")])


async def get_prompt(ctx: RequestContext, params: GetPromptRequestParams) -> GetPromptResult | InputRequiredResult:
    return asks(params) or GetPromptResult(messages=[], description="got")


async def complete(ctx: RequestContext, params: CompleteRequestParams) -> CompleteResult:
    if params.argument.value == "many":
        return CompleteResult(completion=Completion(values=[str(n) for n in range(101)]))
    if isinstance(params.ref, PromptReference) and params.ref.name != "known":
        raise errors.InvalidParams(f"Unknown prompt: {params.ref.name}")
    return CompleteResult(completion=Completion(values=["a"], total=1, has_more=False))


def everything(**more: Any) -> tuple[Server, WireRecorder]:
    """A server of every primitive, and what goes over its wire."""
    server = Server(
        "everything",
        on_list_tools=lambda ctx, params: ListToolsResult(tools=[]),
        on_call_tool=call_tool,
        on_list_resources=lambda ctx, params: ListResourcesResult(resources=[]),
        on_read_resource=read,
        on_list_prompts=lambda ctx, params: ListPromptsResult(prompts=[]),
        on_get_prompt=get_prompt,
        on_completion=complete,
        **more,
    )
    recorder = WireRecorder()
    server.observers.add(recorder)
    return server, recorder


def sent(recorder: WireRecorder, arrow: str = ">") -> list[dict[str, Any]]:
    return [json.loads(line[2:]) for line in recorder.lines if line.startswith(arrow)]


def accept(ctx: object, params: object) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ann"})


@pytest.mark.requirement("R-VER-01")
@pytest.mark.requirement("R-VER-05")
async def test_the_handshake_comes_first_and_is_confirmed() -> None:
    server, recorder = everything()
    async with Client(server, mode="legacy", client_info=Implementation(name="me", version="3")) as client:
        await client.list_tools()
    first, second, third = sent(recorder)[:3]
    assert (first["method"], first["params"]["protocolVersion"]) == ("initialize", "2025-11-25")
    assert first["params"]["clientInfo"] == {"name": "me", "version": "3"}
    assert second == {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert third["method"] == "tools/list"


@pytest.mark.requirement("R-VER-08")
@pytest.mark.requirement("R-META-01")
@pytest.mark.requirement("R-META-03")
async def test_every_modern_request_says_who_and_what_version() -> None:
    server, recorder = everything()
    async with Client(server, elicitation_callback=accept, log_level="error") as client:
        await client.list_tools()
        await client.call_tool("x", meta={"mine/key": None})
    requests = [message for message in sent(recorder) if "id" in message]
    assert len(requests) == 4  # discover, list, and two rounds of the call
    for request in requests:
        meta = request["params"]["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        assert meta["io.modelcontextprotocol/clientCapabilities"] == {"elicitation": {"form": {}, "url": {}}}
        assert meta["io.modelcontextprotocol/clientInfo"] == {"name": "mcp_core", "version": ""}
        assert meta["io.modelcontextprotocol/logLevel"] == "error"
    assert requests[-1]["params"]["_meta"]["mine/key"] is None


@pytest.mark.requirement("R-TOOL-17")
@pytest.mark.requirement("R-RES-07")
@pytest.mark.requirement("R-PROMPT-06")
@pytest.mark.requirement("R-MRTR-09")
@pytest.mark.requirement("R-MRTR-10")
async def test_questions_are_answered_and_the_state_comes_back_unread() -> None:
    server, recorder = everything()
    async with Client(server, elicitation_callback=accept) as client:
        assert (await client.call_tool("x")).content == [TextContent(text="called")]
        assert (await client.read_resource("x:a")).contents == [TextResourceContents(uri="x:a", text="read")]
        assert (await client.get_prompt("p")).description == "got"
    ids = [message["id"] for message in sent(recorder)]
    assert len(set(ids)) == len(ids) == 7


@pytest.mark.requirement("R-ERR-07")
@pytest.mark.requirement("R-RES-06")
@pytest.mark.parametrize(("mode", "code"), [("auto", -32602), ("legacy", -32002)])
async def test_a_missing_resource_is_told_in_the_code_of_the_era(mode: Mode, code: int) -> None:
    server, recorder = everything()
    async with Client(server, mode=mode) as client:
        with pytest.raises(errors.InvalidParams, match="x:missing") as caught:
            await client.read_resource("x:missing")
    assert sent(recorder, "<")[-1]["error"]["code"] == code
    assert caught.value.data == {"uri": "x:missing"}
    assert isinstance(caught.value, ResourceNotFound) is (code == -32002)


@pytest.mark.requirement("R-ERR-06")
@pytest.mark.requirement("R-ERR-09")
def test_the_library_has_no_codes_of_its_own() -> None:
    codes = {value for name, value in vars(errors).items() if name.isupper() and isinstance(value, int)}
    assert codes == {-32700, -32600, -32601, -32602, -32603, -32002, -32020, -32021, -32022, -32042}
    local = (errors.RequestTimeout, errors.ConnectionClosed, errors.InvalidResult, errors.LocalProtocolError)
    assert not any(issubclass(kind, MCPError) for kind in local)


@pytest.mark.requirement("R-TOOL-01")
@pytest.mark.requirement("R-RES-01")
@pytest.mark.requirement("R-PROMPT-01")
@pytest.mark.requirement("R-BASE-21")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_what_is_declared_is_served_even_when_it_is_empty(mode: Mode) -> None:
    server, _ = everything()
    async with Client(server, mode=mode) as client:
        offered = client.server_capabilities
        assert offered.tools is not None
        assert offered.resources is not None
        assert offered.prompts is not None
        assert (await client.list_tools()).tools == []
        assert (await client.list_resources()).resources == []
        assert (await client.list_prompts()).prompts == []
    async with Client(Server("nothing"), mode=mode) as client:
        with pytest.raises(errors.MethodNotFound):
            await client.list_tools()


@pytest.mark.requirement("R-COMP-03")
@pytest.mark.requirement("R-COMP-04")
async def test_completion() -> None:
    server, _ = everything()
    async with Client(server) as client:
        result = await client.complete(PromptReference(name="known"), {"name": "a", "value": ""})
        assert result.completion == Completion(values=["a"], total=1, has_more=False)
        with pytest.raises(errors.InvalidParams, match="Unknown prompt: other"):
            await client.complete(PromptReference(name="other"), {"name": "a", "value": ""})
        with pytest.raises(errors.InvalidResult, match="length <= 100"):
            await client.complete(PromptReference(name="known"), {"name": "a", "value": "many"})


@pytest.mark.requirement("R-STD-05")
@pytest.mark.requirement("R-SUB-01")
@pytest.mark.requirement("R-SUB-06")
async def test_subscriptions_get_their_own_events_only() -> None:
    server, _ = everything(subscriptions=True)
    async with (
        Client(server) as client,
        client.listen(tools_list_changed=True) as tools,
        client.listen(resource_subscriptions=["x:a"]) as resources,
    ):
        assert tools.honoured is not None
        assert tools.honoured.tools_list_changed is True
        for event in (ResourceUpdated("x:a"), ToolsListChanged(), ResourceUpdated("x:b")):
            await server.publish(event)
        server.end_subscriptions()
        got: list[list[Event]] = []
        with anyio.fail_after(60):
            got += [[event async for event in tools]]
            got += [[event async for event in resources]]
    assert got == [[ToolsListChanged()], [ResourceUpdated("x:a")]]


@pytest.mark.requirement("R-SUB-05")
async def test_a_subscription_carries_neither_progress_nor_logs() -> None:
    done = anyio.Event()

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await ctx.report_progress(1)
        await ctx.log("error", "x")
        await ctx.notify_tools_changed()
        return CallToolResult(content=[])

    def told_progress(progress: float, total: float | None, message: str | None) -> None:
        done.set()

    recorder = WireRecorder()

    async def tools(ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
        return ListToolsResult(tools=[])

    def level(ctx: RequestContext, params: object) -> EmptyResult:
        return EmptyResult()

    server = Server("x", subscriptions=True, on_list_tools=tools, on_call_tool=call, on_set_logging_level=level)
    server.observers.add(recorder)
    async with Client(server, log_level="debug") as client, client.listen(tools_list_changed=True) as events:
        await client.call_tool("x", progress_callback=told_progress)
        with anyio.fail_after(60):
            await done.wait()
            async for _ in events:
                break
    told = [m for m in sent(recorder, "<") if "method" in m and "id" not in m]
    with_id = {
        m["method"] for m in told if "io.modelcontextprotocol/subscriptionId" in m.get("params", {}).get("_meta", {})
    }
    assert with_id == {"notifications/subscriptions/acknowledged", "notifications/tools/list_changed"}
    assert {m["method"] for m in told} - with_id >= {"notifications/progress", "notifications/message"}


async def test_undeclared_means_unasked() -> None:
    server, _ = everything()
    async with Client(server) as client:
        with pytest.raises(errors.MissingClientCapability) as caught:
            await client.call_tool("x")
    assert caught.value.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    assert ClientCapabilities().elicitation is None

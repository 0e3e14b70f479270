"""The fixture server offers what the public suite asks for, in both eras.

One test an item, each asserting what the suite checks and the values it documents.
"""

from __future__ import annotations

import base64
import io
import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
import wave
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from mcp_core import Client, MCPError
from mcp_core import types as t
from mcp_core.client import ClientRequestContext, Mode
from mcp_core.subscriptions import Event, PromptsListChanged, ResourceUpdated, ToolsListChanged
from mcp_core.testing import RawPeer, modern_meta
from tests.conformance.media import PNG, WAV
from tests.conformance.server import TOOLS, make_server
from tests.leash import leashed

ROOT = Path(__file__).parent.parent.parent
STATELESS: Final = "2026-07-28"
ERAS = [pytest.param("legacy", id="2025"), pytest.param(STATELESS, id="2026")]
both_eras = pytest.mark.parametrize("era", ERAS)

JSON = dict[str, Any]


class Suite:
    """What the suite answers when it is asked, and a note of what that was."""

    def __init__(self, content: JSON | None = None) -> None:
        self.content = content or {}
        self.asked: list[Any] = []

    def elicit(self, ctx: ClientRequestContext, params: t.ElicitRequestParams) -> t.ElicitResult:
        self.asked.append(params)
        return t.ElicitResult(action="accept", content=self.content)

    def sample(self, ctx: ClientRequestContext, params: t.CreateMessageRequestParams) -> t.CreateMessageResult:
        self.asked.append(params)
        said = t.TextContent(text="This is a test response from the client")
        return t.CreateMessageResult(role="assistant", content=said, model="test-model", stop_reason="endTurn")

    def list_roots(self, ctx: ClientRequestContext) -> t.ListRootsResult:
        self.asked.append("roots/list")
        return t.ListRootsResult(roots=[t.Root(uri="file:///test/root", name="Test Root")])

    def client(self, era: Mode, **options: Any) -> Client:
        """A client with the capabilities of the suite's."""
        return Client(
            make_server(),
            mode=era,
            elicitation_callback=self.elicit,
            sampling_callback=self.sample,
            list_roots_callback=self.list_roots,
            **options,
        )


def texts(result: t.CallToolResult) -> str:
    assert not result.is_error
    assert result.content
    assert all(isinstance(block, t.TextContent) for block in result.content)
    return "".join(block.text for block in result.content if isinstance(block, t.TextContent))


async def call(client: Client, name: str, **params: Any) -> JSON:
    """A tool's result as it is on the wire, without answering what it asks."""
    result: JSON = await client.request("tools/call", {"name": name, **params})
    return result


# --- what is listed -----------------------------------------------------------------------

TOOL_NAMES = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "json_schema_2020_12_tool",
    "test_x_mcp_header",
    "test_tool_with_progress",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_reconnection",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_streaming_elicitation",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_missing_capability",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_capabilities",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
    "test_input_required_result_multi_round",
]
WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


@both_eras
async def test_tools_are_listed_in_the_same_order_each_time(era: Mode) -> None:
    async with Client(make_server(), mode=era) as client:
        lists = [(await client.list_tools()).tools for _ in range(3)]
    assert [[tool.name for tool in tools] for tools in lists] == [TOOL_NAMES] * 3
    for tool in lists[0]:
        assert 1 <= len(tool.name) <= 128
        assert set(tool.name) <= WORD
        assert tool.description
        assert tool.input_schema["type"] == "object"


def test_no_name_is_given_twice() -> None:
    assert len({entry.listed.name for entry in TOOLS}) == len(TOOLS)


@pytest.mark.requirement("R-PROMPT-02")
@both_eras
async def test_prompts_are_listed(era: Mode) -> None:
    async with Client(make_server(), mode=era) as client:
        prompts = (await client.list_prompts()).prompts
    assert [prompt.name for prompt in prompts] == [
        "test_simple_prompt",
        "test_prompt_with_arguments",
        "test_prompt_with_embedded_resource",
        "test_prompt_with_image",
        "test_input_required_result_prompt",
    ]
    assert all(prompt.description for prompt in prompts)
    required = {prompt.name: [a.name for a in prompt.arguments or () if a.required] for prompt in prompts}
    assert required["test_prompt_with_arguments"] == ["arg1", "arg2"]
    assert required["test_prompt_with_embedded_resource"] == ["resourceUri"]


@pytest.mark.requirement("R-RES-02")
@both_eras
async def test_resources_are_listed_without_templates(era: Mode) -> None:
    async with Client(make_server(), mode=era) as client:
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
    assert [r.uri for r in resources] == ["test://static-text", "test://static-binary", "test://watched-resource"]
    assert all(r.name for r in resources)
    assert [template.uri_template for template in templates] == ["test://template/{id}/data"]
    assert all(template.name for template in templates)


LISTS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]


@pytest.mark.parametrize("method", LISTS)
async def test_lists_are_cacheable_and_never_ask(method: str) -> None:
    async with Suite().client(STATELESS) as client:
        result = await client.request(method)
    assert result["resultType"] == "complete"
    assert type(result["ttlMs"]) is int
    assert result["ttlMs"] >= 0
    assert result["cacheScope"] in ("public", "private")


@both_eras
@pytest.mark.parametrize("method", LISTS)
async def test_a_cursor_that_was_never_given_is_refused(era: Mode, method: str) -> None:
    async with Client(make_server(), mode=era) as client:
        with pytest.raises(MCPError, match="Unknown cursor") as caught:
            await client.request(method, {"cursor": "further"})
    assert caught.value.code == -32602


# --- tools: content -----------------------------------------------------------------------


@both_eras
async def test_simple_text(era: Mode) -> None:
    async with Client(make_server(), mode=era) as client:
        result = await client.call_tool("test_simple_text")
        # Some scenarios call the first tool of the list with an empty object.
        assert await client.call_tool("test_simple_text", {}) == result
    assert texts(result) == "This is a simple text response for testing."


@both_eras
async def test_image_content(era: Mode) -> None:
    async with Client(make_server(), mode=era) as client:
        result = await client.call_tool("test_image_content")
    assert result.content == [t.ImageContent(data=PNG, mime_type="image/png")]


@both_eras
async def test_audio_content(era: Mode) -> None:
    async with Client(make_server(), mode=era) as client:
        result = await client.call_tool("test_audio_content")
    assert result.content == [t.AudioContent(data=WAV, mime_type="audio/wav")]


@both_eras
async def test_embedded_resource(era: Mode) -> None:
    async with Client(make_server(), mode=era) as client:
        (block,) = (await client.call_tool("test_embedded_resource")).content
    assert isinstance(block, t.EmbeddedResource)
    assert block.resource == t.TextResourceContents(
        uri="test://embedded-resource", mime_type="text/plain", text="This is an embedded resource content."
    )


@both_eras
async def test_multiple_content_types(era: Mode) -> None:
    async with Client(make_server(), mode=era) as client:
        words, image, embedded = (await client.call_tool("test_multiple_content_types")).content
    assert words == t.TextContent(text="Multiple content types test:")
    assert image == t.ImageContent(data=PNG, mime_type="image/png")
    assert isinstance(embedded, t.EmbeddedResource)
    assert embedded.resource == t.TextResourceContents(
        uri="test://mixed-content-resource", mime_type="application/json", text='{"test":"data","value":123}'
    )


@both_eras
async def test_error_handling(era: Mode) -> None:
    async with Client(make_server(), mode=era) as client:
        result = await client.call_tool("test_error_handling")
    assert result.is_error
    assert result.content == [t.TextContent(text="This tool intentionally returns an error for testing")]


def test_the_image_and_the_sound_are_valid() -> None:
    image = base64.b64decode(PNG, validate=True)
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, list[bytes]()
    while at < len(image):
        size = int.from_bytes(image[at : at + 4])
        chunk = image[at + 4 : at + 8 + size]
        assert zlib.crc32(chunk) == int.from_bytes(image[at + 8 + size : at + 12 + size])
        chunks.append(chunk[:4])
        at += 12 + size
    assert chunks == [b"IHDR", b"IDAT", b"IEND"]
    with wave.open(io.BytesIO(base64.b64decode(WAV, validate=True))) as sound:
        assert (sound.getnchannels(), sound.getframerate(), sound.getnframes()) == (1, 8000, 0)


# --- tools: schemas, and wrong calls ------------------------------------------------------


@both_eras
async def test_keywords_of_json_schema_2020_12_pass(era: Mode) -> None:
    async with Client(make_server(), mode=era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        called = await client.call_tool("json_schema_2020_12_tool", {"name": "x", "phone": "1"})
    schema = tools["json_schema_2020_12_tool"].input_schema
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$defs"]["address"]["$anchor"] == "addressDef"
    assert schema["properties"]["address"] == {"$ref": "#/$defs/address"}
    assert schema["additionalProperties"] is False
    assert schema["allOf"] == [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}]
    assert schema["if"]["properties"]["contactMethod"] == {"const": "phone"}
    assert schema["then"] == {"required": ["phone"]}
    assert schema["else"] == {"required": ["email"]}
    assert texts(called) == 'Arguments: {"name": "x", "phone": "1"}'


async def test_a_parameter_is_marked_to_travel_in_a_header() -> None:
    async with Client(make_server(), mode=STATELESS) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        with_region = await client.call_tool("test_x_mcp_header", {"region": "Hello"})
        without = await client.call_tool("test_x_mcp_header", {})
    schema = tools["test_x_mcp_header"].input_schema
    assert schema["properties"]["region"] == {"type": "string", "x-mcp-header": "Region"}
    assert "required" not in schema
    assert texts(with_region) == 'Arguments: {"region": "Hello"}'
    assert texts(without) == "Arguments: {}"


@both_eras
async def test_an_unknown_tool_is_an_error_of_the_protocol(era: Mode) -> None:
    async with Client(make_server(), mode=era) as client:
        with pytest.raises(MCPError, match="Unknown tool: nonsense") as caught:
            await client.call_tool("nonsense")
    assert caught.value.code == -32602


@both_eras
@pytest.mark.parametrize(
    ("arguments", "told"),
    [({}, "Missing arguments: prompt"), ({"prompt": 7}, "Not a string: prompt"), (None, "Missing arguments: prompt")],
)
async def test_wrong_arguments_are_a_failure_that_the_model_reads(era: Mode, arguments: Any, told: str) -> None:
    async with Suite().client(era) as client:
        result = await client.call_tool("test_sampling", arguments)
    assert result.is_error
    assert result.content == [t.TextContent(text=told)]


# --- tools: notices -----------------------------------------------------------------------


@both_eras
async def test_progress_comes_three_times_under_its_token(era: Mode) -> None:
    heard: list[tuple[float, float | None]] = []
    async with Client(make_server(), mode=era) as client:
        result = await client.call_tool(
            "test_tool_with_progress", progress_callback=lambda done, total, _message: heard.append((done, total))
        )
    assert heard == [(0, 100), (50, 100), (100, 100)]
    assert texts(result)


THREE = ["Tool execution started", "Tool processing data", "Tool execution completed"]


async def test_log_messages_after_a_level_was_set() -> None:
    heard: list[t.LoggingMessageNotificationParams] = []
    async with Client(make_server(), mode="legacy", logging_callback=heard.append) as client:
        await client.set_logging_level("debug")
        assert texts(await client.call_tool("test_tool_with_logging"))
    assert [(message.level, message.data) for message in heard] == [("info", message) for message in THREE]


async def test_log_messages_that_a_request_asks_for() -> None:
    heard: list[t.LoggingMessageNotificationParams] = []
    async with Client(make_server(), mode=STATELESS, log_level="info", logging_callback=heard.append) as client:
        await client.call_tool("test_tool_with_logging")
        await client.call_tool("test_logging_tool")
    assert [message.data for message in heard] == [*THREE, "Logged by test_logging_tool"]


async def test_no_log_message_that_no_request_asks_for() -> None:
    heard: list[Any] = []
    async with Client(make_server(), mode=STATELESS, logging_callback=heard.append) as client:
        assert texts(await client.call_tool("test_logging_tool"))
    assert heard == []


@both_eras
async def test_reconnection_answers_in_the_end(era: Mode) -> None:
    async with Client(make_server(), mode=era) as client:
        result = await client.call_tool("test_reconnection")
    assert texts(result) == "Reconnection test completed"


# --- prompts ------------------------------------------------------------------------------


async def prompt(era: Mode, name: str, **arguments: str) -> list[t.ContentBlock]:
    """The blocks of a prompt's messages, all of them the user's."""
    async with Client(make_server(), mode=era) as client:
        result = await client.get_prompt(name, arguments or None)
    assert {message.role for message in result.messages} == {"user"}
    return [message.content for message in result.messages]


@both_eras
async def test_simple_prompt(era: Mode) -> None:
    assert await prompt(era, "test_simple_prompt") == [t.TextContent(text="This is a simple prompt for testing.")]


@both_eras
async def test_prompt_with_arguments(era: Mode) -> None:
    blocks = await prompt(era, "test_prompt_with_arguments", arg1="testValue1", arg2="testValue2")
    assert blocks == [t.TextContent(text="Prompt with arguments: arg1='testValue1', arg2='testValue2'")]


@both_eras
async def test_prompt_with_embedded_resource(era: Mode) -> None:
    embedded, words = await prompt(era, "test_prompt_with_embedded_resource", resourceUri="test://example-resource")
    assert isinstance(embedded, t.EmbeddedResource)
    assert embedded.resource == t.TextResourceContents(
        uri="test://example-resource", mime_type="text/plain", text="Embedded resource content for testing."
    )
    assert words == t.TextContent(text="Please process the embedded resource above.")


@both_eras
async def test_prompt_with_image(era: Mode) -> None:
    assert await prompt(era, "test_prompt_with_image") == [
        t.ImageContent(data=PNG, mime_type="image/png"),
        t.TextContent(text="Please analyze the image above."),
    ]


@both_eras
@pytest.mark.parametrize(
    ("name", "told"),
    [("nonsense", "Unknown prompt: nonsense"), ("test_prompt_with_arguments", "Missing arguments: arg1, arg2")],
)
async def test_prompts_that_cannot_be_filled_in(era: Mode, name: str, told: str) -> None:
    with pytest.raises(MCPError, match=told) as caught:
        await prompt(era, name)
    assert caught.value.code == -32602


# --- resources and completion -------------------------------------------------------------


async def read(era: Mode, uri: str) -> t.ReadResourceResult:
    async with Client(make_server(), mode=era) as client:
        return await client.read_resource(uri)


@both_eras
async def test_static_text(era: Mode) -> None:
    assert (await read(era, "test://static-text")).contents == [
        t.TextResourceContents(
            uri="test://static-text", mime_type="text/plain", text="This is the content of the static text resource."
        )
    ]


@both_eras
async def test_static_binary(era: Mode) -> None:
    assert (await read(era, "test://static-binary")).contents == [
        t.BlobResourceContents(uri="test://static-binary", mime_type="image/png", blob=PNG)
    ]


@both_eras
async def test_resource_of_a_template(era: Mode) -> None:
    (contents,) = (await read(era, "test://template/123/data")).contents
    assert isinstance(contents, t.TextResourceContents)
    assert (contents.uri, contents.mime_type) == ("test://template/123/data", "application/json")
    assert contents.text == '{"id":"123","templateTest":true,"data":"Data for ID: 123"}'


async def test_what_was_read_may_be_kept() -> None:
    static, watched = [await read(STATELESS, f"test://{name}") for name in ("static-text", "watched-resource")]
    assert (static.ttl_ms, static.cache_scope) == (60_000, "public")
    assert (watched.ttl_ms, watched.cache_scope) == (0, "public")


@pytest.mark.parametrize(("era", "code"), [("legacy", -32002), (STATELESS, -32602)], ids=["2025", "2026"])
@pytest.mark.parametrize(
    "uri", ["test://nonexistent-resource-for-conformance-testing", "test://template//data", "test://template/{id}"]
)
async def test_an_unknown_resource_is_an_error(era: Mode, code: int, uri: str) -> None:
    with pytest.raises(MCPError) as caught:
        await read(era, uri)
    assert (caught.value.code, caught.value.data) == (code, {"uri": uri})


async def test_a_watched_resource_is_watched_until_it_is_not() -> None:
    heard: list[Any] = []
    server = make_server()
    uri = "test://watched-resource"
    async with Client(
        server, mode="legacy", message_handler=lambda method, params: heard.append((method, params))
    ) as client:
        assert client.server_capabilities.resources == t.ResourcesCapability(subscribe=True, list_changed=True)
        await client.subscribe_resource(uri)
        await server.publish(ResourceUpdated(uri))
        await client.unsubscribe_resource(uri)
        await server.publish(ResourceUpdated(uri))
        await client.ping()
    assert heard == [("notifications/resources/updated", {"uri": uri})]


@both_eras
@pytest.mark.parametrize(
    ("ref", "argument", "typed", "values"),
    [
        (t.PromptReference(name="test_prompt_with_arguments"), "arg1", "test", ["test", "testValue1"]),
        (t.PromptReference(name="test_prompt_with_arguments"), "arg1", "par", ["paris", "park", "party"]),
        (t.PromptReference(name="test_prompt_with_arguments"), "arg3", "", []),
        (t.PromptReference(name="nonsense"), "arg1", "", []),
        (t.ResourceTemplateReference(uri="test://template/{id}/data"), "id", "12", ["12", "123"]),
    ],
)
async def test_completion(era: Mode, ref: Any, argument: str, typed: str, values: list[str]) -> None:
    async with Client(make_server(), mode=era) as client:
        result = await client.complete(ref, {"name": argument, "value": typed})
    assert result.completion == t.Completion(values=values, total=len(values), has_more=False)


# --- the protocol's own methods -----------------------------------------------------------


async def test_what_the_handshake_era_declares() -> None:
    async with Client(make_server(), mode="legacy") as client:
        assert client.protocol_version == "2025-11-25"
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("mcpcore-conformance", "1.0.0")
        assert client.server_capabilities.logging == {}
        assert client.server_capabilities.completions == {}
        await client.ping()
        await client.set_logging_level("info")


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_handshake_revision_is_served(revision: str) -> None:
    async with RawPeer.of(make_server()) as peer:
        assert (await peer.initialize(revision))["protocolVersion"] == revision
        assert len((await peer.call(1, "tools/list"))["result"]["tools"]) == len(TOOL_NAMES)
        answer = await peer.call(2, "tools/call", {"name": "test_simple_text"})
        assert answer["result"]["content"][0]["text"]


async def test_discovery() -> None:
    async with Client(make_server(), mode=STATELESS) as client:
        found = await client.discover()
    assert STATELESS in found.supported_versions
    assert found.server_info is not None
    assert found.server_info["name"] == "mcpcore-conformance"
    assert found.server_info["version"] == "1.0.0"
    offered = found.capabilities
    assert offered.tools == t.ToolsCapability(list_changed=True)
    assert offered.prompts == t.PromptsCapability(list_changed=True)
    assert offered.resources == t.ResourcesCapability(subscribe=True, list_changed=True)


@pytest.mark.parametrize(
    "method",
    ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "unknown/method"],
)
async def test_what_2026_07_28_does_not_have(method: str) -> None:
    async with Client(make_server(), mode=STATELESS) as client:
        with pytest.raises(MCPError) as caught:
            await client.request(method, {"uri": "test://watched-resource", "level": "info"})
    assert caught.value.code == -32601


# --- over HTTP ----------------------------------------------------------------------------


@pytest.fixture
def url() -> Iterator[str]:
    """The address of the server, started as the suite's users start it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.conformance.server", "--port", str(port)]
    with subprocess.Popen(leashed(command), cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            for _attempt in range(2000):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
        _, errors = process.communicate(timeout=60)
    assert re.fullmatch(r"\S+ is served at http://\S+\n", errors)


def post(url: str, message: JSON, **headers: str) -> JSON:
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, json.dumps(message).encode(), sent)
    with urllib.request.urlopen(request, timeout=60) as response:
        body: str = response.read().decode()
    (data,) = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith(("data: {", "{"))]
    answer: JSON = json.loads(data)
    return answer


def test_the_command_serves_both_eras_on_one_path(url: str) -> None:
    shake = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    opened = post(url, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": shake})
    assert opened["result"]["protocolVersion"] == "2025-11-25"
    found = post(
        url,
        {"jsonrpc": "2.0", "id": 2, "method": "server/discover", "params": {"_meta": modern_meta()}},
        MCP_Protocol_Version=STATELESS,
        Mcp_Method="server/discover",
    )
    assert STATELESS in found["result"]["supportedVersions"]


# --- changes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "event"), [("tool", ToolsListChanged()), ("prompt", PromptsListChanged())], ids=["tools", "prompts"]
)
async def test_a_change_is_told_to_who_asked(kind: str, event: Event) -> None:
    server = make_server()
    async with (
        Client(server, mode=STATELESS) as listener,
        Client(server, mode=STATELESS) as other,
        listener.listen(tools_list_changed=kind == "tool", prompts_list_changed=kind == "prompt") as subscription,
    ):
        before = (await other.list_tools(), await other.list_prompts())
        assert texts(await other.call_tool(f"test_trigger_{kind}_change"))
        with anyio.fail_after(60):
            assert await anext(subscription) == event
        assert (await other.list_tools(), await other.list_prompts()) == before


async def test_a_change_is_not_told_to_who_asked_for_another() -> None:
    server = make_server()
    async with (
        Client(server, mode=STATELESS) as listener,
        Client(server, mode=STATELESS) as other,
        listener.listen(prompts_list_changed=True) as subscription,
    ):
        await other.call_tool("test_trigger_tool_change")
        await other.call_tool("test_trigger_prompt_change")
        with anyio.fail_after(60):
            assert await anext(subscription) == PromptsListChanged()


async def test_a_session_hears_of_changes_by_itself() -> None:
    heard: list[str] = []
    async with Client(make_server(), mode="legacy", message_handler=lambda method, _: heard.append(method)) as client:
        await client.call_tool("test_trigger_tool_change")
        await client.call_tool("test_trigger_prompt_change")
    assert heard == ["notifications/tools/list_changed", "notifications/prompts/list_changed"]


# --- tools that ask: once -----------------------------------------------------------------


@both_eras
async def test_sampling(era: Mode) -> None:
    suite = Suite()
    async with suite.client(era) as client:
        result = await client.call_tool("test_sampling", {"prompt": "Test prompt"})
    assert texts(result) == "LLM response: This is a test response from the client"
    (asked,) = suite.asked
    assert asked.messages == [t.SamplingMessage(role="user", content=t.TextContent(text="Test prompt"))]
    assert asked.max_tokens == 100


@both_eras
async def test_elicitation(era: Mode) -> None:
    suite = Suite({"username": "testuser", "email": "test@example.com"})
    async with suite.client(era) as client:
        result = await client.call_tool("test_elicitation", {"message": "Please provide your information"})
    assert texts(result) == f"User response: action=accept, content={json.dumps(suite.content)}"
    (asked,) = suite.asked
    assert asked.message == "Please provide your information"
    assert asked.requested_schema == {
        "type": "object",
        "properties": {"username": {"type": "string"}, "email": {"type": "string"}},
        "required": ["username", "email"],
    }


@both_eras
async def test_a_form_with_defaults(era: Mode) -> None:
    suite = Suite({"name": "Jane Smith", "age": 25, "score": 88, "status": "inactive", "verified": False})
    async with suite.client(era) as client:
        result = await client.call_tool("test_elicitation_sep1034_defaults")
    assert texts(result) == f"Elicitation completed: action=accept, content={json.dumps(suite.content)}"
    shown = suite.asked[0].requested_schema["properties"]
    assert {name: (field["type"], field["default"]) for name, field in shown.items()} == {
        "name": ("string", "John Doe"),
        "age": ("integer", 30),
        "score": ("number", 95.5),
        "status": ("string", "active"),
        "verified": ("boolean", True),
    }
    assert shown["status"]["enum"] == ["active", "inactive", "pending"]


@both_eras
async def test_a_form_with_every_kind_of_choice(era: Mode) -> None:
    suite = Suite(
        {
            "untitledSingle": "option1",
            "titledSingle": "value1",
            "legacyEnum": "opt1",
            "untitledMulti": ["option1", "option2"],
            "titledMulti": ["value1", "value2"],
        }
    )
    async with suite.client(era) as client:
        result = await client.call_tool("test_elicitation_sep1330_enums")
    assert texts(result) == f"Elicitation completed: action=accept, content={json.dumps(suite.content)}"
    shown = suite.asked[0].requested_schema["properties"]
    options = ["option1", "option2", "option3"]
    values = ["value1", "value2", "value3"]
    assert shown["untitledSingle"] == {"type": "string", "enum": options}
    assert shown["titledSingle"].keys() == {"type", "oneOf"}
    assert [choice["const"] for choice in shown["titledSingle"]["oneOf"]] == values
    assert shown["legacyEnum"]["enum"] == ["opt1", "opt2", "opt3"]
    assert len(shown["legacyEnum"]["enumNames"]) == 3
    assert "oneOf" not in shown["legacyEnum"]
    assert shown["untitledMulti"] == {"type": "array", "items": {"type": "string", "enum": options}}
    assert shown["titledMulti"]["items"].keys() == {"anyOf"}
    assert [choice["const"] for choice in shown["titledMulti"]["items"]["anyOf"]] == values
    assert all(choice["title"] for choice in shown["titledMulti"]["items"]["anyOf"])


@both_eras
async def test_progress_and_a_question(era: Mode) -> None:
    heard: list[float] = []
    async with Suite({"ok": True}).client(era) as client:
        result = await client.call_tool(
            "test_streaming_elicitation", progress_callback=lambda done, _total, _message: heard.append(done)
        )
    assert texts(result) == 'User response: action=accept, content={"ok": true}'
    # In 2026-07-28 the call was made twice.
    assert heard == ([0, 1] if era == "legacy" else [0, 0, 1])


async def test_nothing_but_notices_and_the_result_comes_to_a_stateless_client() -> None:
    async with RawPeer.of(make_server()) as peer:
        first = await peer.modern(
            1, "tools/call", {"name": "test_streaming_elicitation"}, capabilities={"elicitation": {}}, progressToken="p"
        )
        second = await peer.receive_next()
    assert first["method"] == "notifications/progress"
    assert (second["id"], second["result"]["resultType"]) == (1, "input_required")


@both_eras
@pytest.mark.parametrize("action", ["decline", "cancel"])
@pytest.mark.parametrize(
    ("tool", "told"),
    [
        ("elicitation_sep1034_defaults", "Elicitation completed: action={}, content={{}}"),
        ("input_required_result_elicitation", "Hello, whoever you are!"),
        ("input_required_result_request_state", "state-ok, ok=False"),
        ("input_required_result_multi_round", "whoever you are likes no color"),
    ],
)
async def test_a_user_may_refuse(era: Mode, action: t.ElicitAction, tool: str, told: str) -> None:
    async with Client(
        make_server(), mode=era, elicitation_callback=lambda _ctx, _params: t.ElicitResult(action=action)
    ) as client:
        assert texts(await client.call_tool(f"test_{tool}")) == told.format(action)


# --- tools that ask: in rounds ------------------------------------------------------------

ALICE: JSON = {"action": "accept", "content": {"name": "Alice"}}
SAMPLED: JSON = {
    "role": "assistant",
    "content": {"type": "text", "text": "Paris."},
    "model": "test-model",
    "stopReason": "endTurn",
}
ROOTS: JSON = {"roots": [{"uri": "file:///test/root", "name": "Test Root"}]}
NAME_SCHEMA: JSON = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def asked(result: JSON, *keys: str) -> JSON:
    """The questions of a result that asks exactly these."""
    assert result["resultType"] == "input_required"
    questions: JSON = result["inputRequests"]
    assert [*questions] == [*keys]
    return questions


def said(result: JSON) -> str:
    """The text of a result that is complete."""
    assert result["resultType"] == "complete"
    text: str = result["content"][0]["text"]
    return text


async def test_it_asks_for_a_name_and_greets() -> None:
    name = "test_input_required_result_elicitation"
    async with Suite().client(STATELESS) as client:
        question = asked(await call(client, name), "user_name")["user_name"]
        greeting = await call(client, name, inputResponses={"user_name": ALICE})
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "What is your name?"
    assert question["params"]["requestedSchema"] == NAME_SCHEMA
    assert said(greeting) == "Hello, Alice!"


@pytest.mark.parametrize(
    "responses",
    [None, {}, {"wrong_key": ALICE}, {"user_name": 12345}, {"user_name": {"action": "perhaps"}}],
)
async def test_it_asks_again_after_no_answer(responses: Any) -> None:
    async with Suite().client(STATELESS) as client:
        again = await call(client, "test_input_required_result_elicitation", inputResponses=responses)
    asked(again, "user_name")


async def test_it_overlooks_what_it_did_not_ask() -> None:
    responses = {"user_name": ALICE, "extra_1": ALICE, "extra_2": {"any": "thing"}}
    async with Suite().client(STATELESS) as client:
        greeting = await call(client, "test_input_required_result_elicitation", inputResponses=responses)
    assert said(greeting) == "Hello, Alice!"


async def test_it_asks_the_model() -> None:
    name = "test_input_required_result_sampling"
    async with Suite().client(STATELESS) as client:
        question = asked(await call(client, name), "capital_question")["capital_question"]
        answer = await call(client, name, inputResponses={"capital_question": SAMPLED})
    assert question["method"] == "sampling/createMessage"
    assert question["params"]["messages"][0]["content"]["text"] == "What is the capital of France?"
    assert question["params"]["maxTokens"] == 100
    assert said(answer) == "Paris."


async def test_it_asks_for_the_roots() -> None:
    name = "test_input_required_result_list_roots"
    async with Suite().client(STATELESS) as client:
        question = asked(await call(client, name), "client_roots")["client_roots"]
        answer = await call(client, name, inputResponses={"client_roots": ROOTS})
    assert question["method"] == "roots/list"
    assert said(answer) == "file:///test/root"


async def test_it_asks_three_things_at_once() -> None:
    name = "test_input_required_result_multiple_inputs"
    responses = {"user_name": ALICE, "greeting": SAMPLED, "client_roots": ROOTS}
    async with Suite().client(STATELESS) as client:
        first = await call(client, name)
        questions = asked(first, "user_name", "greeting", "client_roots")
        state = first["requestState"]
        answer = await call(client, name, inputResponses=responses, requestState=state)
        del responses["greeting"]
        asked(await call(client, name, inputResponses=responses, requestState=state), *questions)
    assert questions["greeting"]["params"]["maxTokens"] == 50
    assert questions["greeting"]["params"]["messages"][0]["content"]["text"] == "Generate a greeting"
    assert said(answer) == "Paris., Alice! You work in file:///test/root"


CONFIRMED: JSON = {"confirm": {"action": "accept", "content": {"ok": True}}}


@pytest.mark.parametrize("kind", ["request", "tampered"])
async def test_an_answer_counts_with_its_state_only(kind: str) -> None:
    name = f"test_input_required_result_{kind}_state"
    async with Suite().client(STATELESS) as client:
        first = await call(client, name)
        question = asked(first, "confirm")["confirm"]
        state = first["requestState"]
        answer = await call(client, name, inputResponses=CONFIRMED, requestState=state)
        asked(await call(client, name, inputResponses=CONFIRMED), "confirm")
        for wrong in (f"{state}-TAMPERED", state[:-1], "", "nonsense"):
            with pytest.raises(MCPError) as caught:
                await call(client, name, inputResponses=CONFIRMED, requestState=wrong)
            assert caught.value.code == -32602
    assert question["params"]["message"] == "Please confirm"
    assert question["params"]["requestedSchema"]["properties"] == {"ok": {"type": "boolean"}}
    assert said(answer) == "state-ok, ok=True"


async def test_the_state_of_one_tool_is_none_of_another() -> None:
    async with Suite().client(STATELESS) as client:
        state = (await call(client, "test_input_required_result_request_state"))["requestState"]
        with pytest.raises(MCPError) as caught:
            await call(client, "test_input_required_result_tampered_state", requestState=state)
    assert caught.value.code == -32602


async def test_the_state_holds_what_was_answered_before() -> None:
    name = "test_input_required_result_multi_round"
    step_1 = {"step1": ALICE}
    step_2 = {"step2": {"action": "accept", "content": {"color": "blue"}}}
    async with Suite().client(STATELESS) as client:
        first = await call(client, name)
        question_1 = asked(first, "step1")["step1"]
        second = await call(client, name, inputResponses=step_1, requestState=first["requestState"])
        question_2 = asked(second, "step2")["step2"]
        third = await call(client, name, inputResponses=step_2, requestState=second["requestState"])
    assert question_1["params"]["message"] == "Step 1: What is your name?"
    assert question_2["params"]["message"] == "Step 2: What is your favorite color?"
    assert first["requestState"] != second["requestState"]
    assert said(third) == "Alice likes blue"


@pytest.mark.parametrize(
    ("capabilities", "keys"),
    [
        ({"sampling": {}}, ["capital_question"]),
        ({"elicitation": {}}, ["user_name"]),
        ({"roots": {}, "sampling": {}, "elicitation": {}}, ["user_name", "capital_question", "client_roots"]),
    ],
)
async def test_it_asks_for_nothing_that_was_not_declared(capabilities: JSON, keys: list[str]) -> None:
    params = {"name": "test_input_required_result_capabilities"}
    async with RawPeer.of(make_server()) as peer:
        answer = await peer.modern(1, "tools/call", params, capabilities=capabilities)
    asked(answer["result"], *keys)


@pytest.mark.parametrize("name", ["test_missing_capability", "test_input_required_result_capabilities"])
async def test_a_client_that_declares_nothing_is_told_what_is_missing(name: str) -> None:
    async with Client(make_server(), mode=STATELESS) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool(name)
    assert caught.value.code == -32021
    assert caught.value.data == {"requiredCapabilities": {"sampling": {}}}


async def test_a_client_with_sampling_is_served() -> None:
    async with Suite().client(STATELESS) as client:
        result = await client.call_tool("test_missing_capability")
    assert texts(result) == "This is a test response from the client"


async def test_a_prompt_may_ask_as_well() -> None:
    params: JSON = {"name": "test_input_required_result_prompt"}
    responses: JSON = {"user_context": {"action": "accept", "content": {"context": "test context"}}}
    async with Suite().client(STATELESS) as client:
        question = asked(await client.request("prompts/get", params), "user_context")["user_context"]
        answer = await client.request("prompts/get", {**params, "inputResponses": responses})
    assert question["params"]["message"] == "What context should the prompt use?"
    assert question["params"]["requestedSchema"]["required"] == ["context"]
    assert answer["resultType"] == "complete"
    assert answer["messages"][0]["content"]["text"] == "Use this context: test context"


EVERYTHING: JSON = {"name": "Alice", "color": "blue", "ok": True, "context": "test context"}


@both_eras
@pytest.mark.parametrize(
    ("tool", "told"),
    [
        ("elicitation", "Hello, Alice!"),
        ("sampling", "This is a test response from the client"),
        ("list_roots", "file:///test/root"),
        ("multiple_inputs", "This is a test response from the client, Alice! You work in file:///test/root"),
        ("request_state", "state-ok, ok=True"),
        ("tampered_state", "state-ok, ok=True"),
        ("multi_round", "Alice likes blue"),
        ("capabilities", "Asked for: user_name, capital_question, client_roots"),
    ],
)
async def test_either_era_gets_through_all_rounds(era: Mode, tool: str, told: str) -> None:
    async with Suite(EVERYTHING).client(era) as client:
        assert texts(await client.call_tool(f"test_input_required_result_{tool}")) == told
        filled = await client.get_prompt("test_input_required_result_prompt")
    assert filled.messages[0].content == t.TextContent(text="Use this context: test context")

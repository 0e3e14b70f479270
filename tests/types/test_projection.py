"""What a client of each revision is sent, and what a server takes from it.

One test for each row of the mapping between revisions: a member or value that a
revision lacks is left out or replaced, in results, requests and notifications.
"""

from __future__ import annotations

import json
from typing import Any, Final

import anyio
import pytest

from mcp_core import MCPError, RequestContext, Server
from mcp_core import types as t
from mcp_core.errors import MissingClientCapability
from mcp_core.revisions import (
    ALL_REVISIONS,
    HANDSHAKE_REVISIONS,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
)
from mcp_core.testing import RawPeer, modern_meta
from tests.wire_server import META, SITE, TODAY, make_server

EVERY: Final = pytest.mark.parametrize("revision", ALL_REVISIONS)
HANDSHAKE: Final = pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
STAMP: Final = "io.modelcontextprotocol/serverInfo"
ALL_CAPABILITIES: Final[dict[str, Any]] = {
    "roots": {},
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
}
Call = tuple[str, dict[str, Any]]
CACHEABLE: Final[tuple[Call, ...]] = (
    ("tools/list", {}),
    ("prompts/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": TODAY}),
)
OTHERS: Final[tuple[Call, ...]] = (
    ("tools/call", {"name": "fails"}),
    ("prompts/get", {"name": "compare"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}),
)
Context = RequestContext[Any]


async def _first(
    revision: str,
    method: str,
    params: dict[str, Any],
    *,
    server: Server[Any] | None = None,
    capabilities: dict[str, Any] | None = None,
    **meta: Any,
) -> Any:
    """The first message that a client of this revision gets for its request."""
    async with RawPeer.of(server or make_server()) as peer:
        if revision == V2026_07_28:
            return await peer.call(1, method, {**params, "_meta": modern_meta(capabilities, **meta)})
        await peer.initialize(revision=revision, capabilities=capabilities)
        return await peer.call(1, method, {**params, "_meta": meta})


async def _result(revision: str, method: str, params: dict[str, Any], **rest: Any) -> dict[str, Any]:
    result: dict[str, Any] = (await _first(revision, method, params, **rest))["result"]
    return result


async def _tool(revision: str, name: str, **rest: Any) -> dict[str, Any]:
    return await _result(revision, "tools/call", {"name": name}, **rest)


async def _blocks(revision: str) -> list[dict[str, Any]]:
    """The blocks of every kind: text, image, audio, link, resource with text, with blob."""
    blocks: list[dict[str, Any]] = (await _tool(revision, "blocks"))["content"]
    return blocks


async def _lists(revision: str) -> dict[str, dict[str, Any]]:
    """The first entry of each list."""
    found: dict[str, dict[str, Any]] = {}
    for method, key in (
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ):
        found[key] = (await _result(revision, method, {}))[key][0]
    found["arguments"] = found["prompts"]["arguments"][0]
    return found


def _with(member: str, found: dict[str, dict[str, Any]]) -> set[str]:
    return {key for key, entry in found.items() if member in entry}


# --- results --------------------------------------------------------------------------


@EVERY
@pytest.mark.requirement("R-BASE-09")
@pytest.mark.requirement("R-META-04")
@pytest.mark.parametrize(("method", "params"), CACHEABLE + OTHERS)
async def test_result_type_and_stamp(revision: str, method: str, params: dict[str, Any]) -> None:
    result = await _result(revision, method, params)
    if revision == V2026_07_28:
        assert result["resultType"] == "complete"
        assert result["_meta"][STAMP]["name"] == "tides"
    else:
        assert "resultType" not in result
        assert STAMP not in result.get("_meta", {})


@EVERY
@pytest.mark.requirement("R-CACHE-01")
@pytest.mark.parametrize(("method", "params"), CACHEABLE + OTHERS)
async def test_cache_hints(revision: str, method: str, params: dict[str, Any]) -> None:
    result = await _result(revision, method, params)
    hints = {key: result[key] for key in ("ttlMs", "cacheScope") if key in result}
    if revision != V2026_07_28 or (method, params) in OTHERS:
        assert hints == {}
    else:
        own = {"tools/list": 300000, "resources/read": 60000, "resources/templates/list": 1}
        scope = "public" if method in ("tools/list", "resources/read") else "private"
        assert hints == {"ttlMs": own.get(method, 0), "cacheScope": scope}


@pytest.mark.requirement("R-CACHE-01")
async def test_cache_hints_of_discovery() -> None:
    result = await _result(V2026_07_28, "server/discover", {})
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


@EVERY
async def test_meta_of_a_result_is_for_all(revision: str) -> None:
    meta = (await _tool(revision, "blocks"))["_meta"]
    meta.pop(STAMP, None)
    assert meta == META


# --- blocks ---------------------------------------------------------------------------


@EVERY
@pytest.mark.requirement("R-CONT-02")
async def test_audio(revision: str) -> None:
    audio = (await _blocks(revision))[2]
    if revision > V2024_11_05:
        assert (audio["type"], audio["data"], audio["mimeType"]) == ("audio", "AAAA", "audio/wav")
        return
    assert audio["type"] == "resource"
    assert set(audio["resource"]) == {"uri", "mimeType", "blob"}
    assert (audio["resource"]["mimeType"], audio["resource"]["blob"]) == ("audio/wav", "AAAA")
    assert ":" in audio["resource"]["uri"]
    assert audio["annotations"] == {"audience": ["user"], "priority": 0.5}


@EVERY
@pytest.mark.requirement("R-CONT-03")
async def test_resource_link(revision: str) -> None:
    link = (await _blocks(revision))[3]
    if revision > V2025_03_26:
        assert (link["type"], link["uri"], link["name"]) == ("resource_link", TODAY, "brest-today")
        return
    assert link["type"] == "text"
    assert TODAY in link["text"]
    assert "brest-today" in link["text"]
    assert set(link) == {"type", "text", "annotations"}
    assert link["annotations"] == {"audience": ["user"], "priority": 0.5}


@EVERY
async def test_blocks_of_prompts_are_replaced_too(revision: str) -> None:
    messages = (await _result(revision, "prompts/get", {"name": "compare"}))["messages"]
    kinds = [message["content"]["type"] for message in messages]
    audio = "resource" if revision == V2024_11_05 else "audio"
    link = "text" if revision <= V2025_03_26 else "resource_link"
    assert kinds == ["text", audio, link]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]


@EVERY
async def test_a_dict_result_is_projected_as_well(revision: str) -> None:
    block: dict[str, Any] = {
        "type": "resource_link",
        "uri": "u://x",
        "name": "n",
        "title": "T",
        "icons": [],
        "_meta": {"k": 1},
    }
    made: dict[str, Any] = {"content": [block], "structuredContent": [1]}
    link = (await _tool(revision, "x", server=Server("s", on_call_tool=lambda ctx, params: made)))["content"][0]
    if revision <= V2025_03_26:
        assert link["type"] == "text"
    else:
        assert link == {key: value for key, value in block.items() if key != "icons" or revision > V2025_06_18}
    assert made == {"content": [block], "structuredContent": [1]}


@pytest.mark.requirement("R-CONT-06")
@EVERY
async def test_last_modified(revision: str) -> None:
    annotations = [block["annotations"] for block in await _blocks(revision) if "annotations" in block]
    assert len(annotations) == 5
    assert all(("lastModified" in found) is (revision > V2025_03_26) for found in annotations)


@EVERY
@pytest.mark.requirement("R-CONT-07")
async def test_meta_of_blocks(revision: str) -> None:
    blocks = await _blocks(revision)
    having = [block for block in blocks if "_meta" in block]
    assert len(having) == (5 if revision > V2025_03_26 else 0)
    assert ("_meta" in blocks[4]["resource"]) is (revision > V2025_03_26)


@EVERY
async def test_meta_of_resource_contents(revision: str) -> None:
    contents = (await _result(revision, "resources/read", {"uri": TODAY}))["contents"]
    assert [part.get("_meta") for part in contents] == [META if revision > V2025_03_26 else None, None]


# --- structured output ----------------------------------------------------------------


@EVERY
@pytest.mark.requirement("R-OUT-03")
@pytest.mark.parametrize(
    ("name", "value", "since", "text"),
    [
        pytest.param("blocks", {"metres": 4.1, "at": None}, V2025_06_18, "größer als 4 m", id="object"),
        pytest.param("series", [4.1, 3.6], V2026_07_28, "[4.1,3.6]", id="array"),
        pytest.param("null", None, V2026_07_28, "null", id="null"),
    ],
)
async def test_structured_content(revision: str, name: str, value: Any, since: str, text: str) -> None:
    result = await _tool(revision, name)
    assert ("structuredContent" in result) is (revision >= since)
    assert result.get("structuredContent", value) == value
    assert result["content"][0]["text"] == text


@EVERY
@pytest.mark.requirement("R-OUT-04")
async def test_output_schema(revision: str) -> None:
    first, second = [(await _result(revision, "tools/list", params))["tools"][0] for params in ({}, {"cursor": "p2"})]
    assert ("outputSchema" in first) is (revision >= V2025_06_18)
    assert ("outputSchema" in second) is (revision == V2026_07_28)


# --- members of what is listed --------------------------------------------------------


@EVERY
async def test_titles(revision: str) -> None:
    found = await _lists(revision)
    assert _with("title", found) == (set(found) if revision >= V2025_06_18 else set())


@EVERY
@pytest.mark.requirement("R-ICON-01")
async def test_icons(revision: str) -> None:
    found = await _lists(revision)
    assert _with("icons", found) == (set(found) - {"arguments"} if revision >= V2025_11_25 else set())
    if revision >= V2025_06_18:
        assert ("icons" in (await _blocks(revision))[3]) is (revision >= V2025_11_25)


@EVERY
@pytest.mark.requirement("R-CONT-07")
async def test_meta_of_what_is_listed(revision: str) -> None:
    found = await _lists(revision)
    assert _with("_meta", found) == (set(found) - {"arguments"} if revision >= V2025_06_18 else set())


@EVERY
async def test_tool_annotations(revision: str) -> None:
    tool = (await _lists(revision))["tools"]
    shown = {"title": "Tide", "readOnlyHint": True, "openWorldHint": False}
    assert tool.get("annotations") == (None if revision == V2024_11_05 else shown)


@pytest.mark.requirement("R-CONT-06")
@EVERY
async def test_annotations_of_resources_are_for_all(revision: str) -> None:
    found = await _lists(revision)
    shown: dict[str, Any] = {"audience": ["user"], "priority": 0.5}
    if revision >= V2025_06_18:
        shown["lastModified"] = "2026-01-02T03:04:05Z"
    assert found["resources"]["annotations"] == found["resourceTemplates"]["annotations"] == shown


@EVERY
async def test_execution(revision: str) -> None:
    tool = (await _lists(revision))["tools"]
    assert tool.get("execution") == ({"taskSupport": "optional"} if revision == V2025_11_25 else None)


@EVERY
async def test_what_every_revision_has_of_a_tool(revision: str) -> None:
    tool = (await _lists(revision))["tools"]
    assert (tool["name"], tool["description"]) == ("blocks", "Tide height at a port")
    assert tool["inputSchema"]["required"] == ["port"]


# --- identity and capabilities --------------------------------------------------------


@HANDSHAKE
@pytest.mark.requirement("R-VER-03")
async def test_the_handshake_names_the_server_as_its_revision_can(revision: str) -> None:
    async with RawPeer.of(make_server()) as peer:
        result = await peer.initialize(revision=revision)
    members = {"name", "version"}
    if revision >= V2025_06_18:
        members |= {"title"}
    if revision >= V2025_11_25:
        members |= {"description", "websiteUrl", "icons"}
    assert set(result["serverInfo"]) == members
    assert result["instructions"] == "Heights are metres above chart datum."


@HANDSHAKE
async def test_capabilities_of_the_handshake(revision: str) -> None:
    async with RawPeer.of(make_server()) as peer:
        capabilities = (await peer.initialize(revision=revision))["capabilities"]
    expected: dict[str, Any] = {
        "experimental": {"example.org/x": {"on": True}},
        "logging": {},
        "prompts": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "tools": {"listChanged": True},
    }
    if revision >= V2025_03_26:
        expected["completions"] = {}
    assert capabilities == expected


@pytest.mark.requirement("R-VER-13")
@pytest.mark.requirement("R-EXT-01")
async def test_capabilities_of_discovery() -> None:
    result = await _result(V2026_07_28, "server/discover", {})
    assert result["capabilities"] == {
        "experimental": {"example.org/x": {"on": True}},
        "logging": {},
        "completions": {},
        "prompts": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "tools": {"listChanged": True},
        "extensions": {"example.org/ext": {"level": 3}},
    }


# --- while a request is handled -------------------------------------------------------


@EVERY
@pytest.mark.requirement("R-PROG-02")
async def test_the_message_of_progress(revision: str) -> None:
    first = await _first(revision, "tools/call", {"name": "progresses"}, progressToken="t")
    params: dict[str, Any] = {"progressToken": "t", "progress": 0.5, "total": 1}
    if revision >= V2025_03_26:
        params["message"] = "harmonics"
    assert first == {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


@EVERY
@pytest.mark.requirement("R-LOG-02")
@pytest.mark.requirement("R-LOG-04")
async def test_log_lines(revision: str) -> None:
    async with RawPeer.of(make_server()) as peer:
        if revision == V2026_07_28:
            unasked = await peer.modern(1, "tools/call", {"name": "logs"})
            assert "result" in unasked
            meta = {**modern_meta(), "io.modelcontextprotocol/logLevel": "warning"}
            first = await peer.call(2, "tools/call", {"name": "logs", "_meta": meta})
        else:
            await peer.initialize(revision=revision)
            await peer.call(1, "logging/setLevel", {"level": "warning"})
            first = await peer.call(2, "tools/call", {"name": "logs"})
        last = await peer.receive_next()
    assert first["method"] == "notifications/message"
    assert first["params"] == {"level": "warning", "data": "station list is 2 days old", "logger": "harmonics"}
    assert last["id"] == 2


# --- the client is asked --------------------------------------------------------------


async def _asked(revision: str, name: str) -> Any:
    return await _first(revision, "tools/call", {"name": name}, capabilities=ALL_CAPABILITIES)


@EVERY
@pytest.mark.requirement("R-MRTR-01")
@pytest.mark.requirement("R-MRTR-11")
async def test_a_form(revision: str) -> None:
    message = await _asked(revision, "asks")
    if revision <= V2025_03_26:
        assert message["error"]["code"] == -32602
        assert "elicitation/create" in message["error"]["message"]
    elif revision == V2026_07_28:
        assert message["result"]["resultType"] == "input_required"
        assert message["result"]["inputRequests"]["confirm"]["params"]["mode"] == "form"
        assert set(message["result"]["inputRequests"]["confirm"]) == {"method", "params"}
    else:
        assert message["method"] == "elicitation/create"
        assert message["params"].get("mode") == ("form" if revision == V2025_11_25 else None)
        assert set(message["params"]) - {"mode"} == {"message", "requestedSchema"}


@EVERY
@pytest.mark.requirement("R-ELIC-03")
async def test_a_visit(revision: str) -> None:
    message = await _asked(revision, "visits")
    if revision <= V2025_06_18:
        assert message["error"]["code"] == -32602
        assert "elicitation/create" in message["error"]["message"]
    elif revision == V2025_11_25:
        params = {"mode": "url", "message": "Link your account", "url": SITE, "elicitationId": "e-9"}
        assert (message["method"], message["params"]) == ("elicitation/create", params)
    else:
        params = {"mode": "url", "message": "Link your account", "url": SITE}
        assert message["result"]["inputRequests"]["link"] == {"method": "elicitation/create", "params": params}


@EVERY
@pytest.mark.requirement("R-ELIC-10")
@pytest.mark.requirement("R-ERR-08")
async def test_a_visit_that_an_error_asks_for(revision: str) -> None:
    message = await _asked(revision, "needs-url")
    if revision == V2025_11_25:
        visit = {"mode": "url", "message": "Link your account", "url": SITE, "elicitationId": "e-9"}
        assert message["error"] == {"code": -32042, "message": "Sign in first", "data": {"elicitations": [visit]}}
    else:
        # The code is that of one revision; the reason is for all.
        assert message.get("error", {}).get("code") != -32042
        assert "Sign in first" in json.dumps(message)


@EVERY
async def test_sampling(revision: str) -> None:
    message = await _asked(revision, "samples")
    if revision == V2026_07_28:
        request = message["result"]["inputRequests"]["sum"]
    else:
        request = {key: message[key] for key in ("method", "params")}
    asked: dict[str, Any] = {"role": "user", "content": {"type": "text", "text": "Sum up: 4.1"}}
    if revision >= V2025_06_18:
        asked["content"]["_meta"] = META
    if revision >= V2025_11_25:
        asked["_meta"] = META
    params = {"messages": [asked], "maxTokens": 80, "systemPrompt": "Be brief."}
    assert request == {"method": "sampling/createMessage", "params": params}


@EVERY
async def test_roots(revision: str) -> None:
    message = await _asked(revision, "roots")
    if revision == V2026_07_28:
        assert message["result"]["inputRequests"] == {"dirs": {"method": "roots/list"}}
    else:
        assert message["method"] == "roots/list"
        assert "params" not in message


@EVERY
@pytest.mark.requirement("R-ERR-04")
@pytest.mark.requirement("R-META-06")
@pytest.mark.parametrize(
    ("name", "required"),
    [
        ("asks", {"elicitation": {"form": {}}}),
        ("visits", {"elicitation": {"url": {}}}),
        ("samples", {"sampling": {}}),
        ("roots", {"roots": {}}),
    ],
)
async def test_what_the_client_did_not_declare(revision: str, name: str, required: dict[str, Any]) -> None:
    error = (await _first(revision, "tools/call", {"name": name}))["error"]
    if revision == V2026_07_28:
        assert error["code"] == -32021
        assert error["data"] == {"requiredCapabilities": required}
    else:
        assert error["code"] == -32602
        assert "data" not in error


@HANDSHAKE
async def test_a_handler_may_go_on_without_an_answer(revision: str) -> None:
    async def call_tool(ctx: Context, params: t.CallToolRequestParams) -> t.CallToolResult:
        try:
            await ctx.elicit("?", {"type": "object", "properties": {}})
        except MissingClientCapability as exc:
            return t.CallToolResult(content=[t.TextContent(text=exc.message)], is_error=True)
        return t.CallToolResult(content=[])

    result = await _tool(revision, "x", server=Server("s", on_call_tool=call_tool))
    assert result["isError"] is True


@HANDSHAKE
@pytest.mark.requirement("R-CONT-05")
@pytest.mark.parametrize("count", [1, 2])
async def test_several_blocks_in_a_sampling_message(revision: str, count: int) -> None:
    blocks: list[t.SamplingContent] = [t.TextContent(text=str(n)) for n in range(count)]

    async def call_tool(ctx: Context, params: t.CallToolRequestParams) -> t.CallToolResult:
        await ctx.create_message([t.SamplingMessage(role="user", content=blocks)], max_tokens=1)
        return t.CallToolResult(content=[])

    server = Server("s", on_call_tool=call_tool)
    message = await _first(revision, "tools/call", {"name": "x"}, server=server, capabilities={"sampling": {}})
    contents = [entry["content"] for entry in message["params"]["messages"]]
    shown = [{"type": "text", "text": str(n)} for n in range(count)]
    # A message of an older revision holds one block, so that several need several.
    assert contents == ([shown] if revision == V2025_11_25 else shown)


@pytest.mark.requirement("R-CONT-05")
async def test_audio_in_a_sampling_message_of_the_first_revision() -> None:
    async def call_tool(ctx: Context, params: t.CallToolRequestParams) -> t.CallToolResult:
        sound = t.AudioContent(data="AAAA", mime_type="audio/wav")
        await ctx.create_message([t.SamplingMessage(role="user", content=sound)], max_tokens=1)
        return t.CallToolResult(content=[])

    server = Server("s", on_call_tool=call_tool)
    message = await _first(V2024_11_05, "tools/call", {"name": "x"}, server=server, capabilities={"sampling": {}})
    assert message["params"]["messages"][0]["content"]["type"] in ("text", "image")


# --- errors ---------------------------------------------------------------------------


@EVERY
@pytest.mark.requirement("R-RES-04")
async def test_a_missing_resource(revision: str) -> None:
    error = (await _first(revision, "resources/read", {"uri": "tide://atlantis"}))["error"]
    assert error["code"] == (-32602 if revision == V2026_07_28 else -32002)
    assert error["data"] == {"uri": "tide://atlantis"}


@EVERY
@pytest.mark.requirement("R-ERR-08")
async def test_a_missing_resource_by_its_older_code(revision: str) -> None:
    def read(ctx: Context, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
        raise MCPError(-32002, "No such resource", {"uri": params.uri})

    server = Server("s", on_read_resource=read)
    error = (await _first(revision, "resources/read", {"uri": "u://x"}, server=server))["error"]
    assert error == {
        "code": -32602 if revision == V2026_07_28 else -32002,
        "message": "No such resource",
        "data": {"uri": "u://x"},
    }


@pytest.mark.requirement("R-ERR-08")
@pytest.mark.parametrize("code", [-32002, -32042])
async def test_a_returned_error_keeps_to_the_codes_of_the_revision_too(code: int) -> None:
    server = Server("s", on_call_tool=lambda ctx, params: t.ErrorData(code=code, message="m"))
    error = (await _first(V2026_07_28, "tools/call", {"name": "x"}, server=server))["error"]
    assert error["code"] != code


# --- changes --------------------------------------------------------------------------


def _change(*what: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/example/change", "params": {"what": [*what]}}


@HANDSHAKE
@pytest.mark.requirement("R-TOOL-14")
@pytest.mark.requirement("R-RES-11")
async def test_changes_are_told_on_the_channel(revision: str) -> None:
    async with RawPeer.of(make_server()) as peer:
        await peer.initialize(revision=revision)
        await peer.call(1, "resources/subscribe", {"uri": TODAY})
        peer.send(_change("tools", "other", "today", "prompts"))
        told = [await peer.receive_next() for _ in range(3)]
        await peer.call(2, "resources/unsubscribe", {"uri": TODAY})
        peer.send(_change("today", "resources"))
        told.append(await peer.receive_next())
    assert told == [
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
        {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": TODAY}},
        {"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"},
        {"jsonrpc": "2.0", "method": "notifications/resources/list_changed"},
    ]


@pytest.mark.requirement("R-SUB-02")
@pytest.mark.requirement("R-SUB-04")
async def test_changes_are_told_on_streams_that_asked() -> None:
    async with RawPeer.of(make_server()) as peer:
        asked = {"toolsListChanged": True, "resourceSubscriptions": [TODAY]}
        acknowledged = await peer.modern("L", "subscriptions/listen", {"notifications": asked})
        peer.send(_change("prompts", "resources", "other", "today", "tools"))
        told = [await peer.receive_next() for _ in range(2)]
    meta = {"io.modelcontextprotocol/subscriptionId": "L"}
    assert acknowledged["params"] == {"notifications": asked, "_meta": meta}
    assert told == [
        {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": TODAY, "_meta": meta}},
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}},
    ]


@pytest.mark.requirement("R-SUB-02")
async def test_changes_are_not_told_to_a_modern_client_that_did_not_ask() -> None:
    async with RawPeer.of(make_server()) as peer:
        await peer.modern(1, "tools/list")
        peer.send(_change("tools", "prompts", "resources", "today"))
        await anyio.wait_all_tasks_blocked()
        answer = await peer.modern(2, "tools/list")
        await anyio.wait_all_tasks_blocked()
    assert answer["id"] == 2
    assert len(peer.messages) == 2


# --- what clients send ----------------------------------------------------------------


@EVERY
@pytest.mark.requirement("R-META-02")
async def test_a_list_without_params(revision: str) -> None:
    async with RawPeer.of(make_server()) as peer:
        if revision == V2026_07_28:
            assert (await peer.call(1, "tools/list"))["error"]["code"] == -32602
            assert (await peer.call(2, "tools/list", {"_meta": {}}))["error"]["code"] == -32602
        else:
            await peer.initialize(revision=revision)
            assert "result" in await peer.call(1, "tools/list")
            assert "result" in await peer.call(2, "tools/list", {"_meta": {}})


@pytest.mark.requirement("R-META-01")
@pytest.mark.requirement("R-META-02")
async def test_an_envelope_without_capabilities() -> None:
    async with RawPeer.of(make_server()) as peer:
        meta = modern_meta()
        del meta["io.modelcontextprotocol/clientCapabilities"]
        assert (await peer.call(1, "tools/list", {"_meta": meta}))["error"]["code"] == -32602


@EVERY
@pytest.mark.requirement("R-EXT-10")
async def test_the_wish_for_a_task_is_ignored(revision: str) -> None:
    result = await _result(revision, "tools/call", {"name": "fails", "task": {"ttl": 1000}})
    assert result["isError"] is True


@EVERY
@pytest.mark.requirement("R-BASE-13")
@pytest.mark.requirement("R-BASE-14")
async def test_an_array(revision: str) -> None:
    batch: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "fails"}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}},
        {"jsonrpc": "2.0", "id": "8", "method": "ping"},
    ]
    async with RawPeer.of(make_server()) as peer:
        if revision == V2026_07_28:
            batch[0]["params"]["_meta"] = modern_meta()
        else:
            await peer.initialize(revision=revision)
        answer: Any = await peer.answer_batch(batch)
    if revision == V2025_03_26:
        assert sorted(str(entry["id"]) for entry in answer) == ["7", "8"]
        assert all("result" in entry for entry in answer)
    else:
        assert answer["error"]["code"] == -32600
        assert "id" not in answer


@EVERY
async def test_a_response_that_answers_nothing_is_dropped(revision: str) -> None:
    async with RawPeer.of(make_server()) as peer:
        if revision != V2026_07_28:
            await peer.initialize(revision=revision)
        peer.send({"jsonrpc": "2.0", "id": 99, "result": {}})
        peer.send({"jsonrpc": "2.0", "id": 99, "error": {"code": -1, "message": "no"}})
        answer = await peer.call(1, "tools/list", {"_meta": modern_meta()})
    assert answer["id"] == 1


async def test_notifications_of_the_handshake_era_are_dropped() -> None:
    async with RawPeer.of(make_server()) as peer:
        for method in ("notifications/initialized", "notifications/roots/list_changed"):
            peer.send({"jsonrpc": "2.0", "method": method, "params": {"_meta": modern_meta()}})
        assert (await peer.modern(1, "tools/list"))["id"] == 1


@EVERY
@pytest.mark.requirement("R-COMP-01")
@pytest.mark.requirement("R-ERR-02")
async def test_completion_that_is_not_offered(revision: str) -> None:
    params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
    assert (await _first(revision, "completion/complete", params, server=Server("s")))["error"]["code"] == -32601


@EVERY
async def test_methods_of_other_revisions_do_not_exist(revision: str) -> None:
    methods: dict[str, dict[str, Any]] = {
        "resources/subscribe": {"uri": TODAY},
        "resources/unsubscribe": {"uri": TODAY},
        "logging/setLevel": {"level": "info"},
        "ping": {},
    }
    if revision != V2026_07_28:
        methods = {"server/discover": {}, "subscriptions/listen": {"notifications": {}}}
    for method, params in methods.items():
        assert (await _first(revision, method, params))["error"]["code"] == -32601

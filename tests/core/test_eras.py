"""Revisions and eras: handshake, envelope, discovery, capabilities, what results carry."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import MCPError, RequestContext, Server
from mcp_core.testing import RawPeer, modern_meta
from mcp_core.types import (
    CallToolRequestParams,
    CallToolResult,
    CompleteResult,
    Completion,
    EmptyResult,
    ErrorData,
    GetPromptResult,
    Icon,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    RequestParams,
    TextResourceContents,
    Tool,
)
from tests.core.peers import answers, code_of, echo_now, echo_server, legacy, modern, notification, only_answer

HANDSHAKE = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"


def opening(version: Any = "2025-11-25", **members: Any) -> dict[str, Any]:
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}, **members}


def list_tools(ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name="t", input_schema={"type": "object"})])


# --- initialize ------------------------------------------------------------------------


@pytest.mark.requirement("R-VER-02")
@pytest.mark.requirement("R-VER-03")
@pytest.mark.observed("S-462")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_initialize_agrees_on_a_revision_it_serves(revision: str) -> None:
    async with RawPeer.of(echo_server(instructions="Ask.")) as peer:
        answer = await peer.call(0, "initialize", opening(revision))
    assert answer == {
        "jsonrpc": "2.0",
        "id": 0,
        "result": {
            "protocolVersion": revision,
            "capabilities": {},
            "serverInfo": {"name": "echo", "version": "1"},
            "instructions": "Ask.",
        },
    }


@pytest.mark.requirement("R-VER-02")
@pytest.mark.observed("S-462")
@pytest.mark.parametrize("asked", ["2099-01-01", "2026-07-28", "1.0", "", "2024-11-5"])
async def test_initialize_answers_its_newest_handshake_revision_to_any_other(asked: str) -> None:
    async with RawPeer.of(echo_server()) as peer:
        assert (await peer.initialize(asked))["protocolVersion"] == "2025-11-25"


@pytest.mark.observed("S-462")
@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        opening(5),
        {"protocolVersion": "2025-11-25"},
        opening(capabilities=[]),
        opening(clientInfo="me"),
        opening(clientInfo={"version": "1"}),
        opening(capabilities={"roots": 5}),
    ],
    ids=str,
)
async def test_initialize_with_bad_params_settles_nothing(params: Any) -> None:
    async with RawPeer.of(echo_server()) as peer:
        assert code_of(await peer.call(1, "initialize", params)) == -32602
        assert code_of(await peer.call(2, "tools/call", {"name": "x"})) == -32602


@pytest.mark.observed("S-462")
async def test_initialize_may_be_repeated_and_initialized_is_not_needed() -> None:
    async with RawPeer.of(echo_server()) as peer:
        first = await peer.call(1, "initialize", opening("2024-11-05"))
        assert "structuredContent" not in (await peer.call(2, "tools/call", {"name": "x", "arguments": {}}))["result"]
        second = await peer.call(3, "initialize", opening("2025-06-18"))
        after = await peer.call(4, "tools/call", {"name": "x", "arguments": {"a": 1}})
    assert [first["result"]["protocolVersion"], second["result"]["protocolVersion"]] == ["2024-11-05", "2025-06-18"]
    assert after["result"]["structuredContent"] == {"a": 1}


@pytest.mark.requirement("R-VER-07")
async def test_identity_is_told_as_the_revision_knows_it() -> None:
    server = Server(
        "full",
        version="2",
        title="Full",
        description="All of it",
        website_url="https://example.org",
        icons=[Icon(src="https://example.org/i.png")],
    )
    bare = {"name": "full", "version": "2"}
    titled = {**bare, "title": "Full"}
    whole = {
        **titled,
        "description": "All of it",
        "websiteUrl": "https://example.org",
        "icons": [{"src": "https://example.org/i.png"}],
    }
    for revision, wanted in zip(HANDSHAKE, (bare, bare, titled, whole), strict=True):
        async with RawPeer.of(server) as peer:
            assert (await peer.initialize(revision))["serverInfo"] == wanted
    async with RawPeer.of(server) as peer:
        answer = await peer.modern(1, "server/discover")
    assert answer["result"]["_meta"][SERVER_INFO] == whole


@pytest.mark.observed("S-461")
async def test_before_the_handshake_only_ping_is_answered() -> None:
    server = echo_server(on_list_tools=list_tools)
    async with RawPeer.of(server) as peer:
        ping = await peer.call(1, "ping")
        refused = [await peer.call(i, method) for i, method in ((2, "tools/list"), (3, "server/discover"))]
        unknown = await peer.call(4, "bogus")
        await peer.initialize()
        after = await peer.call(5, "tools/list")
    assert ping == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert [code_of(answer) for answer in refused] == [-32602, -32602]
    assert code_of(unknown) in (-32601, -32602)
    assert after["result"] == {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}


@pytest.mark.requirement("R-BASE-20")
@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_ping_is_answered_with_an_empty_result(revision: str) -> None:
    async with RawPeer.of(echo_server()) as peer:
        await peer.initialize(revision)
        assert await peer.call(1, "ping") == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert await peer.call("2", "ping", {"_meta": {"a": 1}}) == {"jsonrpc": "2.0", "id": "2", "result": {}}


async def test_ping_may_be_served_by_the_author() -> None:
    pinged: list[str] = []

    def on_ping(ctx: RequestContext, params: RequestParams) -> EmptyResult:
        pinged.append(ctx.protocol_version)
        return EmptyResult()

    async with RawPeer.of(Server("pinged", on_ping=on_ping)) as peer:
        await peer.initialize("2025-06-18")
        assert (await peer.call(1, "ping"))["result"] == {}
    assert pinged == ["2025-06-18"]


# --- the envelope ------------------------------------------------------------------------


@pytest.mark.requirement("R-META-02")
@pytest.mark.observed("S-464")
@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"_meta": None},
        {"_meta": {}},
        {"_meta": {CAPABILITIES: {}}},
        {"_meta": {VERSION: MODERN}},
        {"_meta": {VERSION: MODERN, CAPABILITIES: None}},
        {"_meta": {VERSION: MODERN, CAPABILITIES: []}},
        {"_meta": {VERSION: MODERN, CAPABILITIES: "all"}},
        {"_meta": {VERSION: 20260728, CAPABILITIES: {}}},
        {"_meta": {VERSION: None, CAPABILITIES: {}}},
        {"_meta": {VERSION: [MODERN], CAPABILITIES: {}}},
        {"_meta": {VERSION: {"a": 1}, CAPABILITIES: {}}},
        {"_meta": []},
        {"_meta": MODERN},
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["tools/call", "server/discover", "tools/list"])
async def test_a_request_without_its_envelope_is_minus_32602(method: str, params: Any) -> None:
    async with RawPeer.of(echo_server(on_list_tools=list_tools)) as peer:
        answer = await peer.call(5, method, params if params is None else {"name": "x", **params})
        assert await answers(peer) == []
    assert answer["id"] == 5
    assert code_of(answer) == -32602


@pytest.mark.requirement("R-META-01")
@pytest.mark.requirement("R-META-03")
@pytest.mark.parametrize("info", [{}, {CLIENT_INFO: {"name": "c", "version": "1"}}, {"other/key": None}])
async def test_client_info_is_optional(info: dict[str, Any]) -> None:
    async with RawPeer.of(echo_server()) as peer:
        answer = await peer.answer(modern(1, "tools/call", {"name": "x"}, **info))
    assert answer["result"]["content"][0]["text"] == "x"


@pytest.mark.requirement("R-META-12")
@pytest.mark.parametrize("token", [1.5, True, [], {}, ["a"]])
@pytest.mark.parametrize("handshake", [True, False])
async def test_a_progress_token_of_another_type_is_minus_32602(token: Any, handshake: bool) -> None:
    async with RawPeer.of(echo_server()) as peer:
        if handshake:
            await peer.initialize()
            answer = await peer.call(1, "tools/call", {"name": "x", "_meta": {"progressToken": token}})
        else:
            answer = await peer.answer(modern(1, "tools/call", {"name": "x"}, progressToken=token))
    assert code_of(answer) == -32602


@pytest.mark.requirement("R-LOG-03")
@pytest.mark.parametrize("level", ["loud", "INFO", "", 3, ["info"], {"level": "info"}, True])
async def test_an_unknown_log_level_is_minus_32602(level: Any) -> None:
    async with RawPeer.of(echo_server()) as peer:
        answer = await only_answer(peer, modern(1, "tools/call", {"name": "x"}, **{LOG_LEVEL: level}))
    assert code_of(answer) == -32602
    assert answer["id"] == 1


@pytest.mark.requirement("R-META-08")
@pytest.mark.requirement("R-META-10")
@pytest.mark.requirement("R-META-11")
async def test_other_meta_reaches_the_handler_untouched() -> None:
    seen: list[dict[str, Any]] = []

    def note(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        seen.append(ctx.meta)
        return CallToolResult(content=[])

    extra = {"traceparent": "00-a-b-01", "com.example/x": [1, None, {"deep": None}], "io.modelcontextprotocol/new": 1}
    async with RawPeer.of(Server("meta", on_call_tool=note)) as peer:
        await peer.answer(modern(1, "tools/call", {"name": "x"}, **extra))
        await peer.initialize()
        await peer.call(2, "tools/call", {"name": "x", "_meta": extra})
    assert seen == [{**modern_meta(), **extra}, extra]


@pytest.mark.requirement("R-VER-09")
@pytest.mark.requirement("R-ERR-05")
@pytest.mark.observed("S-465")
@pytest.mark.parametrize("asked", ["2099-01-01", "", "2025-11-25", "2024-11-05", "2026-07-29"])
@pytest.mark.parametrize("method", ["server/discover", "tools/call", "tools/list", "bogus"])
async def test_a_version_that_is_not_served_is_minus_32022(asked: str, method: str) -> None:
    async with RawPeer.of(echo_server()) as peer:
        answer = await peer.answer(modern(5, method, {"name": "x"}, **{VERSION: asked}))
    assert answer == {
        "jsonrpc": "2.0",
        "id": 5,
        "error": {
            "code": -32022,
            "message": "Unsupported protocol version",
            "data": {"supported": [MODERN, *reversed(HANDSHAKE)], "requested": asked},
        },
    }


@pytest.mark.requirement("R-VER-09")
async def test_a_wrong_version_is_told_before_bad_params() -> None:
    async with RawPeer.of(echo_server()) as peer:
        answer = await peer.answer(modern(5, "tools/call", {"name": 7}, **{VERSION: "2099-01-01"}))
        lacking = await peer.answer(legacy(6, "tools/call", {"name": 7, "_meta": {VERSION: "2099-01-01"}}))
    assert code_of(answer) == -32022
    assert code_of(lacking) == -32022


@pytest.mark.requirement("R-BASE-20")
@pytest.mark.requirement("R-ERR-01")
@pytest.mark.case("C041")
@pytest.mark.observed("S-466")
@pytest.mark.parametrize(
    "method",
    [
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "totally/bogus",
        "tasks/list",
        "é",
        "",
    ],
)
async def test_what_a_modern_client_may_not_call_is_minus_32601(method: str) -> None:
    old_hooks = ["on_set_logging_level", "on_subscribe_resource", "on_unsubscribe_resource"]
    without: dict[str, Any] = {}
    for hooks in (without, dict.fromkeys(old_hooks, handler)):
        async with RawPeer.of(echo_server(**hooks)) as peer:
            fitting = await peer.answer(modern(1, method, {"level": "info", "uri": "u://x"}))
            misfit = await peer.answer(modern(2, method, {"level": 5, "uri": 5}))
        wanted = {"code": -32601, "message": "Method not found", "data": method}
        assert fitting == {"jsonrpc": "2.0", "id": 1, "error": wanted}
        assert misfit == {"jsonrpc": "2.0", "id": 2, "error": wanted}


@pytest.mark.requirement("R-ERR-01")
@pytest.mark.requirement("R-ERR-02")
@pytest.mark.requirement("R-COMP-01")
@pytest.mark.case("C041")
@pytest.mark.parametrize(
    "method",
    ["totally/bogus", "prompts/list", "prompts/get", "resources/list", "completion/complete", "logging/setLevel"],
)
@pytest.mark.parametrize("params", [None, {}, {"level": "info", "name": 7}], ids=str)
async def test_a_method_that_is_not_served_is_minus_32601_in_either_era(method: str, params: Any) -> None:
    async with RawPeer.of(echo_server()) as peer:
        new = await peer.answer(modern(1, method, params))
        await peer.initialize()
        old = await peer.call(2, method, params)
    for answer in (new, old):
        assert answer["error"] == {"code": -32601, "message": "Method not found", "data": method}


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen"])
async def test_what_only_2026_07_28_has_is_minus_32601_before_it(method: str) -> None:
    server = echo_server(subscriptions=True)
    for revision in HANDSHAKE:
        async with RawPeer.of(server) as peer:
            await peer.initialize(revision)
            assert code_of(await peer.call(1, method, {"notifications": {}})) == -32601


# --- both at once ---------------------------------------------------------------------------


@pytest.mark.requirement("R-VER-14")
@pytest.mark.requirement("R-BASE-15")
@pytest.mark.requirement("R-BASE-17")
async def test_both_eras_mix_request_by_request() -> None:
    seen: list[tuple[str, bool]] = []

    def note(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        seen.append((ctx.protocol_version, ctx.client_capabilities.roots is not None))
        return CallToolResult(content=[])

    call = {"name": "x"}
    async with RawPeer.of(Server("both", on_call_tool=note)) as peer:
        await peer.modern(1, "tools/call", call)
        await peer.initialize("2025-06-18", {"roots": {}})
        old = await peer.call(2, "tools/call", call)
        new = await peer.modern(3, "tools/call", call)
        rooted = await peer.modern(4, "tools/call", call, capabilities={"roots": {}})
        await peer.call(5, "tools/call", call)
    assert "resultType" not in old["result"]
    assert new["result"]["resultType"] == rooted["result"]["resultType"] == "complete"
    assert seen == [(MODERN, False), ("2025-06-18", True), (MODERN, False), (MODERN, True), ("2025-06-18", True)]


async def test_initialize_with_an_envelope_is_the_handshake() -> None:
    async with RawPeer.of(echo_server()) as peer:
        answer = await peer.answer(modern(1, "initialize", opening("2025-06-18")))
        after = await peer.call(2, "tools/call", {"name": "x"})
    assert answer["result"]["protocolVersion"] == "2025-06-18"
    assert "resultType" not in answer["result"]
    assert after["result"]["content"][0]["text"] == "x"


@pytest.mark.requirement("R-BASE-15")
async def test_connections_of_one_server_know_nothing_of_each_other() -> None:
    server = echo_server()
    async with RawPeer.of(server) as one, RawPeer.of(server) as two:
        await one.initialize("2025-06-18")
        assert code_of(await two.call(1, "tools/call", {"name": "x"})) == -32602
        assert "result" in await one.call(1, "tools/call", {"name": "x"})


# --- narrowing -----------------------------------------------------------------------------------


@pytest.mark.requirement("R-VER-09")
@pytest.mark.requirement("R-VER-15")
async def test_a_modern_only_server_names_its_versions_to_initialize() -> None:
    async with RawPeer.of(echo_server(protocol_versions=[MODERN])) as peer:
        refused = await peer.call(1, "initialize", opening("2025-11-25"))
        old = await peer.call(2, "tools/call", {"name": "x"})
        ping = await peer.call(3, "ping")
        new = await peer.modern(4, "tools/call", {"name": "x"})
        discovered = await peer.modern(5, "server/discover")
    assert refused["error"] == {
        "code": -32022,
        "message": "Unsupported protocol version",
        "data": {"supported": [MODERN], "requested": "2025-11-25"},
    }
    assert code_of(old) == -32602
    assert code_of(ping) in (-32601, -32602)
    assert new["result"]["resultType"] == "complete"
    assert discovered["result"]["supportedVersions"] == [MODERN]


@pytest.mark.requirement("R-VER-09")
async def test_a_handshake_only_server_refuses_the_modern_revision() -> None:
    async with RawPeer.of(echo_server(protocol_versions=["2025-06-18", "2025-03-26"])) as peer:
        refused = [await peer.modern(1, method, {"name": "x"}) for method in ("tools/call", "server/discover")]
        agreed = [
            (await peer.initialize(asked))["protocolVersion"]
            for asked in ("2025-03-26", "2025-11-25", "2024-11-05", "2025-06-18")
        ]
    for answer in refused:
        assert answer["error"]["code"] == -32022
        assert answer["error"]["data"] == {"supported": ["2025-06-18", "2025-03-26"], "requested": MODERN}
    assert agreed == ["2025-03-26", "2025-06-18", "2025-06-18", "2025-06-18"]


@pytest.mark.parametrize("versions", [[], ["2099-01-01"], ["2025-06-18", "draft"]])
def test_unknown_versions_cannot_be_served(versions: list[str]) -> None:
    with pytest.raises(ValueError, match="protocol_versions"):
        Server("none", protocol_versions=versions)


# --- discovery and capabilities ---------------------------------------------------------------------


@pytest.mark.requirement("R-VER-11")
@pytest.mark.requirement("R-VER-13")
@pytest.mark.requirement("R-CACHE-01")
async def test_discover_tells_everything() -> None:
    async with RawPeer.of(echo_server(on_list_tools=list_tools, instructions="Ask.")) as peer:
        answer = await peer.modern(1, "server/discover")
    assert answer["result"] == {
        "resultType": "complete",
        "supportedVersions": [MODERN, *reversed(HANDSHAKE)],
        "capabilities": {"tools": {"listChanged": False}},
        "instructions": "Ask.",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {SERVER_INFO: {"name": "echo", "version": "1"}},
    }


def handler(ctx: RequestContext, params: Any) -> EmptyResult:
    return EmptyResult()


@pytest.mark.requirement("R-VER-13")
@pytest.mark.requirement("R-EXT-03")
@pytest.mark.observed("S-083")
@pytest.mark.parametrize(
    ("hooks", "old", "new"),
    [
        ([], {}, {}),
        (["on_call_tool"], {}, {}),
        (["on_list_tools"], {"tools": {"listChanged": False}}, {"tools": {"listChanged": False}}),
        (["on_list_prompts"], {"prompts": {"listChanged": False}}, {"prompts": {"listChanged": False}}),
        (["on_get_prompt"], {}, {}),
        (
            ["on_list_resources"],
            {"resources": {"subscribe": False, "listChanged": False}},
            {"resources": {"subscribe": False, "listChanged": False}},
        ),
        (["on_read_resource"], {}, {}),
        (
            ["on_list_resources", "on_subscribe_resource"],
            {"resources": {"subscribe": True, "listChanged": False}},
            {"resources": {"subscribe": False, "listChanged": False}},
        ),
        (["on_completion"], {"completions": {}}, {"completions": {}}),
        (["on_set_logging_level"], {"logging": {}}, {"logging": {}}),
    ],
)
async def test_capabilities_follow_the_hooks(hooks: list[str], old: dict[str, Any], new: dict[str, Any]) -> None:
    given: dict[str, Any] = dict.fromkeys(hooks, handler)
    async with RawPeer.of(Server("hooks", **given)) as peer:
        assert (await peer.initialize())["capabilities"] == old
        assert (await peer.modern(1, "server/discover"))["result"]["capabilities"] == new


async def test_subscriptions_declare_changes_in_both_eras() -> None:
    given: dict[str, Any] = dict.fromkeys(["on_list_tools", "on_list_prompts", "on_list_resources"], handler)
    wanted = {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
    }
    async with RawPeer.of(Server("changes", subscriptions=True, **given)) as peer:
        assert (await peer.initialize())["capabilities"] == wanted
        assert (await peer.modern(1, "server/discover"))["result"]["capabilities"] == wanted


@pytest.mark.requirement("R-EXT-01")
async def test_experimental_and_extensions_are_declared_as_given() -> None:
    server = Server("more", experimental={"x": {"a": 1}}, extensions={"com.example/ext": {}})
    async with RawPeer.of(server) as peer:
        old = (await peer.initialize())["capabilities"]
        new = (await peer.modern(1, "server/discover"))["result"]["capabilities"]
    assert old["experimental"] == new["experimental"] == {"x": {"a": 1}}
    assert new["extensions"] == {"com.example/ext": {}}
    assert "extensions" not in old


async def test_completions_are_no_capability_in_2024_11_05() -> None:
    on: dict[str, Any] = {"on_completion": handler}
    async with RawPeer.of(Server("old", **on)) as peer:
        assert (await peer.initialize("2024-11-05"))["capabilities"] == {}
        assert (await peer.initialize("2025-03-26"))["capabilities"] == {"completions": {}}


# --- what results carry -----------------------------------------------------------------------------


@pytest.mark.requirement("R-BASE-09")
@pytest.mark.requirement("R-META-04")
async def test_a_result_has_a_type_and_a_stamp_in_2026_07_28_only() -> None:
    async with RawPeer.of(echo_server()) as peer:
        new = await peer.modern(1, "tools/call", {"name": "x"})
        await peer.initialize()
        old = await peer.call(2, "tools/call", {"name": "x"})
    plain: dict[str, Any] = {"content": [{"type": "text", "text": "x"}], "structuredContent": {}, "isError": False}
    assert old["result"] == plain
    stamp = {SERVER_INFO: {"name": "echo", "version": "1"}}
    assert new["result"] == {**plain, "resultType": "complete", "_meta": stamp}


@pytest.mark.requirement("R-META-04")
@pytest.mark.observed("S-008")
@pytest.mark.parametrize(
    ("given", "new"),
    [
        (None, {SERVER_INFO: {"name": "stamp", "version": "1"}}),
        ({}, {SERVER_INFO: {"name": "stamp", "version": "1"}}),
        ({"a/b": [1, {"c": None}]}, {"a/b": [1, {"c": None}], SERVER_INFO: {"name": "stamp", "version": "1"}}),
        ({SERVER_INFO: {"name": "mine"}}, {SERVER_INFO: {"name": "mine"}}),
        ({SERVER_INFO: None}, {SERVER_INFO: {"name": "stamp", "version": "1"}}),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["struct", "dict"])
async def test_the_stamp_joins_the_meta_of_the_handler(given: Any, new: Any, form: str) -> None:
    def answer(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult | dict[str, Any]:
        if form == "struct":
            return CallToolResult(content=[], _meta=given)
        return {"content": []} if given is None else {"content": [], "_meta": given}

    async with RawPeer.of(Server("stamp", version="1", on_call_tool=answer)) as peer:
        modern_result = (await peer.modern(1, "tools/call", {"name": "x"}))["result"]
        await peer.initialize()
        old_result = (await peer.call(2, "tools/call", {"name": "x"}))["result"]
    assert modern_result["_meta"] == new
    assert old_result.get("_meta") == given
    assert ("_meta" in old_result) == (given is not None)


@pytest.mark.observed("S-008")
@pytest.mark.parametrize("meta", [None, {}, {"a": 1}])
async def test_the_stamp_can_be_switched_off(meta: Any) -> None:
    def answer(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        return CallToolResult(content=[], _meta=meta)

    async with RawPeer.of(Server("quiet", send_server_info=False, on_call_tool=answer)) as peer:
        result = (await peer.modern(1, "tools/call", {"name": "x"}))["result"]
        discovered = (await peer.modern(2, "server/discover"))["result"]
    assert result.get("_meta") == meta
    assert "_meta" not in discovered
    assert result["resultType"] == discovered["resultType"] == "complete"


LISTS = {
    "tools/list": ("on_list_tools", ListToolsResult, "tools"),
    "prompts/list": ("on_list_prompts", ListPromptsResult, "prompts"),
    "resources/list": ("on_list_resources", ListResourcesResult, "resources"),
    "resources/templates/list": ("on_list_resource_templates", ListResourceTemplatesResult, "resource_templates"),
}


@pytest.mark.requirement("R-CACHE-01")
@pytest.mark.requirement("R-CACHE-03")
@pytest.mark.parametrize("method", list(LISTS))
@pytest.mark.parametrize("form", ["default", "hinted", "dict", "hinted dict"])
async def test_lists_carry_cache_hints_in_2026_07_28_only(method: str, form: str) -> None:
    hook, kind, field = LISTS[method]
    wire = "resourceTemplates" if field == "resource_templates" else field
    empty: dict[str, Any] = {field: []}

    def listed(ctx: RequestContext, params: PaginatedRequestParams) -> Any:
        if form == "default":
            return kind(**empty)
        if form == "hinted":
            return kind(**empty, ttl_ms=5, cache_scope="public")
        return {wire: []} if form == "dict" else {wire: [], "ttlMs": 5, "cacheScope": "public"}

    on: dict[str, Any] = {hook: listed}
    async with RawPeer.of(Server("lists", **on)) as peer:
        new = (await peer.modern(1, method))["result"]
        await peer.initialize()
        old = (await peer.call(2, method))["result"]
    assert (new["ttlMs"], new["cacheScope"]) == ((5, "public") if "hinted" in form else (0, "private"))
    assert type(new["ttlMs"]) is int
    assert new["resultType"] == "complete"
    assert new[wire] == []
    assert old == {wire: []}


@pytest.mark.requirement("R-CACHE-01")
async def test_a_resource_that_is_read_carries_cache_hints() -> None:
    def read(ctx: RequestContext, params: ReadResourceRequestParams) -> ReadResourceResult:
        return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, text="t")], ttl_ms=7)

    async with RawPeer.of(Server("read", on_read_resource=read)) as peer:
        new = (await peer.modern(1, "resources/read", {"uri": "u://x"}))["result"]
        await peer.initialize()
        old = (await peer.call(2, "resources/read", {"uri": "u://x"}))["result"]
    assert (new["ttlMs"], new["cacheScope"]) == (7, "private")
    assert old == {"contents": [{"uri": "u://x", "text": "t"}]}


async def test_other_results_carry_no_cache_hints() -> None:
    def get_prompt(ctx: RequestContext, params: Any) -> GetPromptResult:
        return GetPromptResult(messages=[])

    def complete(ctx: RequestContext, params: Any) -> CompleteResult:
        return CompleteResult(completion=Completion(values=[]))

    server = echo_server(on_get_prompt=get_prompt, on_completion=complete)
    argument = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
    async with RawPeer.of(server) as peer:
        for method, params in (
            ("tools/call", {"name": "x"}),
            ("prompts/get", {"name": "p"}),
            ("completion/complete", argument),
        ):
            result = (await peer.modern(1, method, params))["result"]
            assert result["resultType"] == "complete"
            assert "ttlMs" not in result
            assert "cacheScope" not in result


@pytest.mark.requirement("R-PAGE-01")
@pytest.mark.observed("S-122")
@pytest.mark.parametrize("method", list(LISTS))
async def test_cursors_come_and_go_untouched(method: str) -> None:
    hook, kind, field = LISTS[method]
    nothing: dict[str, Any] = {field: []}
    cursors: list[str | None] = []

    def listed(ctx: RequestContext, params: PaginatedRequestParams) -> Any:
        cursors.append(params.cursor)
        return kind(**nothing, next_cursor="next é" if params.cursor is None else None)

    on: dict[str, Any] = {hook: listed}
    async with RawPeer.of(Server("pages", **on)) as peer:
        first = (await peer.modern(1, method))["result"]
        last = (await peer.modern(2, method, {"cursor": first["nextCursor"]}))["result"]
        empty = (await peer.modern(3, method, {"cursor": ""}))["result"]
        wrong = await peer.modern(4, method, {"cursor": 5})
        await peer.initialize()
        old = (await peer.call(5, method))["result"]
    assert first["nextCursor"] == old["nextCursor"] == "next é"
    assert "nextCursor" not in last
    assert "nextCursor" not in empty
    assert cursors == [None, "next é", "", None]
    assert code_of(wrong) == -32602


@pytest.mark.requirement("R-PAGE-03")
async def test_an_invalid_cursor_is_what_the_handler_says() -> None:
    def listed(ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult | ErrorData:
        if params.cursor == "raise":
            raise MCPError(-32602, "Invalid cursor")
        return ErrorData(code=-32602, message="Invalid cursor")

    async with RawPeer.of(Server("pages", on_list_tools=listed)) as peer:
        for cursor in ("raise", "return"):
            answer = await peer.modern(1, "tools/list", {"cursor": cursor})
            assert answer["error"] == {"code": -32602, "message": "Invalid cursor"}


# --- methods of the author's ---------------------------------------------------------------------------


@pytest.mark.requirement("R-BASE-09")
@pytest.mark.observed("S-085")
async def test_methods_of_ones_own_are_served_in_either_era() -> None:
    import msgspec

    class Reindex(msgspec.Struct):
        full: bool = False

    def reindex(ctx: RequestContext, params: Reindex) -> dict[str, Any]:
        return {"indexed": 3, "full": params.full}

    server = Server("Bookshop")
    server.add_request_handler("bookshop/reindex", Reindex, reindex)
    stamp = {SERVER_INFO: {"name": "Bookshop", "version": ""}}
    async with RawPeer.of(server) as peer:
        assert (await peer.modern(4, "bookshop/reindex", {"full": True}))["result"] == {
            "indexed": 3,
            "full": True,
            "resultType": "complete",
            "_meta": stamp,
        }
        assert (await peer.modern(5, "bookshop/reindex"))["result"]["full"] is False
        assert code_of(await peer.modern(6, "bookshop/reindex", {"full": "maybe"})) == -32602
        unknown = await peer.modern(7, "bookshop/burn")
        assert unknown["error"] == {"code": -32601, "message": "Method not found", "data": "bookshop/burn"}
        await peer.initialize()
        assert (await peer.call(8, "bookshop/reindex", {"full": True}))["result"] == {"indexed": 3, "full": True}
        assert code_of(await peer.call(9, "bookshop/reindex", {"full": "maybe"})) == -32602


@pytest.mark.parametrize("kind", [dict, dict[str, Any], Any, RequestParams])
async def test_params_types_of_any_kind_are_decoded(kind: Any) -> None:
    seen: list[Any] = []

    def note(ctx: RequestContext, params: Any) -> None:
        seen.append(params)

    server = Server("kinds")
    server.add_request_handler("x/note", kind, note)
    async with RawPeer.of(server) as peer:
        assert (await peer.modern(1, "x/note", {"a": 1}))["result"]["resultType"] == "complete"
        await peer.initialize()
        assert (await peer.call(2, "x/note"))["result"] == {}
    assert len(seen) == 2
    if kind is not RequestParams:
        assert seen == [{"a": 1, "_meta": modern_meta()}, {}]


async def test_notifications_of_ones_own_are_served() -> None:
    import anyio

    seen: list[Any] = []
    came = anyio.Event()

    async def note(ctx: RequestContext, params: dict[str, int]) -> None:
        seen.append((ctx.method, ctx.request_id, params))
        came.set()

    server = echo_server()
    server.add_notification_handler("x/told", dict[str, int], note)
    async with RawPeer.of(server) as peer:
        assert await answers(peer, notification("x/told", {"a": "no number"}), notification("x/told", {"a": 1})) == []
        with anyio.fail_after(60):
            await came.wait()
    assert seen == [("x/told", None, {"a": 1})]


@pytest.mark.observed("S-087")
def test_initialize_cannot_be_replaced() -> None:
    with pytest.raises(ValueError, match="initialize"):
        echo_server().add_request_handler("initialize", dict, handler)


@pytest.mark.observed("S-087")
@pytest.mark.parametrize("method", ["ping", "server/discover", "tools/call"])
async def test_the_other_methods_can_be_replaced(method: str) -> None:
    server = echo_server()
    server.add_request_handler(method, dict[str, Any], lambda ctx, params: {"content": [], "resultType": "mine/own"})
    async with RawPeer.of(server) as peer:
        if method == "ping":
            await peer.initialize()
            # A result type of its own is nothing that this era could be told of (S-110).
            assert code_of(await peer.call(1, "ping")) == -32603
        else:
            assert (await peer.modern(1, method))["result"]["resultType"] == "mine/own"


async def test_a_handler_added_while_serving_is_used_at_once() -> None:
    server = echo_server()
    async with RawPeer.of(server) as peer:
        assert code_of(await peer.modern(1, "x/late")) == -32601
        server.add_request_handler("x/late", dict, lambda ctx, params: {"late": True})
        assert (await peer.modern(2, "x/late"))["result"]["late"] is True


def test_an_unknown_hook_is_refused() -> None:
    unknown: dict[str, Any] = {"on_bogus": echo_now}
    with pytest.raises(TypeError, match="on_bogus"):
        Server("x", **unknown)
    not_callable: dict[str, Any] = {"on_call_tool": 5}
    with pytest.raises(TypeError, match="callable"):
        Server("x", **not_callable)

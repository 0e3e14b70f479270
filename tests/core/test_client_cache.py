"""The client's own cache: answers are kept while their server says that they hold, and no longer.

First the cache by itself under a clock that stands still, then through a client whose
server counts how often it is asked. Spec: server/utilities/caching.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
import pytest
from msgspec import Raw

from mcp_core import Client, MCPError, RequestContext, Server
from mcp_core.client import StdioServerParameters
from mcp_core.client.cache import ResponseCache
from mcp_core.subscriptions import (
    Event,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp_core.types import (
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    DiscoverResult,
    ElicitResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequest,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptReference,
    ReadResourceRequestParams,
    ReadResourceResult,
    RequestParams,
    Resource,
    ResourceTemplate,
    TextResourceContents,
    Tool,
)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


# --- the cache by itself ----------------------------------------------------------------------


def key(method: str = "tools/list", **params: Any) -> tuple[str, bytes]:
    found = ResponseCache.key(method, params)
    assert found is not None
    return found


ANSWER: Final = Raw(b'{"tools":[]}')


@pytest.mark.requirement("R-CACHE-06")
def test_an_answer_holds_until_its_time_is_up() -> None:
    clock = Clock()
    cache = ResponseCache(clock=clock)
    assert cache.get(key()) is None
    cache.put(key(), ANSWER, 1500)
    for now in (100.0, 101.0, 101.499):
        clock.now = now
        assert cache.get(key()) == ANSWER
    # Reading it does not make it younger.
    for now in (101.5, 200.0):
        clock.now = now
        assert cache.get(key()) is None


@pytest.mark.requirement("R-CACHE-06")
def test_the_time_of_a_newer_answer_counts() -> None:
    clock = Clock()
    cache = ResponseCache(clock=clock)
    cache.put(key(), ANSWER, 1000)
    clock.now += 0.5
    cache.put(key(), Raw(b'{"tools":[1]}'), 1000)
    clock.now += 0.75
    assert cache.get(key()) == Raw(b'{"tools":[1]}')
    clock.now += 0.25
    assert cache.get(key()) is None


@pytest.mark.requirement("R-CACHE-06")
@pytest.mark.parametrize("ttl_ms", [0, -1, -60_000])
def test_what_does_not_hold_is_not_kept(ttl_ms: int) -> None:
    cache = ResponseCache(clock=Clock())
    cache.put(key(), ANSWER, ttl_ms)
    assert cache.get(key()) is None


def test_what_does_not_hold_takes_no_room() -> None:
    cache = ResponseCache(size=1, clock=Clock())
    cache.put(key(cursor="a"), ANSWER, 1000)
    cache.put(key(cursor="b"), ANSWER, 0)
    assert cache.get(key(cursor="a")) == ANSWER


@pytest.mark.requirement("R-CACHE-05")
def test_requests_are_the_same_by_method_and_params() -> None:
    same = [
        ResponseCache.key("tools/list", None),
        key(),
        ResponseCache.key("tools/list", PaginatedRequestParams()),
        ResponseCache.key("tools/list", PaginatedRequestParams(_meta={"a": 1})),
        key(_meta={"b": 2}),
    ]
    assert len(set(same)) == 1
    assert key(a=1, b={"c": 2, "d": 3}) == key(b={"d": 3, "c": 2}, a=1)
    assert key(cursor="2") == ResponseCache.key("tools/list", PaginatedRequestParams(cursor="2"))
    different = [key(), key(cursor="1"), key(cursor="2"), key(cursor=""), key("prompts/list"), key(other="1")]
    assert len(set(different)) == len(different)


SPOILED: Final = {
    "notifications/tools/list_changed": {"tools/list"},
    "notifications/prompts/list_changed": {"prompts/list"},
    "notifications/resources/list_changed": {"resources/list", "resources/templates/list"},
    "notifications/resources/updated": {"resources/read"},
    "notifications/message": set[str](),
    "notifications/progress": set[str](),
    "notifications/of/another/kind": set[str](),
}

CACHEABLE: Final = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)


@pytest.mark.requirement("R-CACHE-06")
@pytest.mark.parametrize("notification", SPOILED)
def test_what_a_notification_spoils(notification: str) -> None:
    cache = ResponseCache(clock=Clock())
    for method in CACHEABLE:
        for page in ("1", "2"):
            cache.put(key(method, page=page), ANSWER, 1000)
    cache.spoil(notification)
    gone = {method for method in CACHEABLE for page in ("1", "2") if cache.get(key(method, page=page)) is None}
    left = {method for method in CACHEABLE for page in ("1", "2") if cache.get(key(method, page=page)) is not None}
    assert gone == SPOILED[notification]
    assert left == set(CACHEABLE) - gone


def test_the_least_recently_used_answers_go_first() -> None:
    cache = ResponseCache(size=3, clock=Clock())
    for page in "abc":
        cache.put(key(cursor=page), ANSWER, 1000)
    assert cache.get(key(cursor="a")) == ANSWER
    cache.put(key(cursor="d"), ANSWER, 1000)  # "b" was not used for longest
    assert [page for page in "abcd" if cache.get(key(cursor=page)) is not None] == ["a", "c", "d"]
    cache.put(key(cursor="d"), ANSWER, 1000)  # the same again takes no more room
    assert [page for page in "abcd" if cache.get(key(cursor=page)) is not None] == ["a", "c", "d"]


def test_there_is_room_for_256() -> None:
    cache = ResponseCache(clock=Clock())
    for number in range(257):
        cache.put(key(cursor=str(number)), ANSWER, 1000)
    assert [number for number in range(257) if cache.get(key(cursor=str(number))) is None] == [0]


# --- through a client ---------------------------------------------------------------------------


class Library:
    """A server that counts what it is asked for; its answers hold for `ttl_ms`."""

    def __init__(self, ttl_ms: int = 60_000) -> None:
        self.ttl_ms = ttl_ms
        self.asked: Counter[str] = Counter()
        self.server = Server(
            "library",
            subscriptions=True,
            on_list_tools=self._tools,
            on_call_tool=self._call,
            on_list_prompts=self._prompts,
            on_get_prompt=self._prompt,
            on_list_resources=self._resources,
            on_list_resource_templates=self._templates,
            on_read_resource=self._read,
            on_completion=self._complete,
        )
        self.server.add_request_handler("server/discover", RequestParams, self._discover)

    def _discover(self, ctx: RequestContext, params: RequestParams) -> DiscoverResult:
        self.asked["server/discover"] += 1
        return DiscoverResult(
            supported_versions=["2026-07-28"],
            capabilities=self.server.capabilities("2026-07-28"),
            ttl_ms=self.ttl_ms,
        )

    def _tools(self, ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
        self.asked["tools/list"] += 1
        tool = Tool(name=f"page {params.cursor}", input_schema={"type": "object", "properties": {"a": {}}})
        return ListToolsResult(tools=[tool], next_cursor="2" if params.cursor is None else None, ttl_ms=self.ttl_ms)

    def _call(self, ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        self.asked["tools/call"] += 1
        return CallToolResult(content=[])

    def _prompts(self, ctx: RequestContext, params: PaginatedRequestParams) -> ListPromptsResult:
        self.asked["prompts/list"] += 1
        return ListPromptsResult(prompts=[Prompt(name="p")], ttl_ms=self.ttl_ms)

    def _prompt(self, ctx: RequestContext, params: GetPromptRequestParams) -> GetPromptResult:
        self.asked["prompts/get"] += 1
        return GetPromptResult(messages=[])

    def _resources(self, ctx: RequestContext, params: PaginatedRequestParams) -> ListResourcesResult:
        self.asked["resources/list"] += 1
        return ListResourcesResult(resources=[Resource(uri="x:a", name="a")], ttl_ms=self.ttl_ms)

    def _templates(self, ctx: RequestContext, params: PaginatedRequestParams) -> ListResourceTemplatesResult:
        self.asked["resources/templates/list"] += 1
        template = ResourceTemplate(uri_template="x:{name}", name="t")
        return ListResourceTemplatesResult(resource_templates=[template], ttl_ms=self.ttl_ms)

    def _read(self, ctx: RequestContext, params: ReadResourceRequestParams) -> ReadResourceResult:
        self.asked["resources/read"] += 1
        contents = [TextResourceContents(uri=params.uri, text=f"the text of {params.uri}")]
        return ReadResourceResult(contents=list(contents), ttl_ms=self.ttl_ms)

    def _complete(self, ctx: RequestContext, params: CompleteRequestParams) -> CompleteResult:
        self.asked["completion/complete"] += 1
        return CompleteResult(completion=Completion(values=[]))


Ask = Callable[[Client], Awaitable[Any]]

ASKED: Final[dict[str, Ask]] = {
    "tools/list": lambda client: client.list_tools(),
    "prompts/list": lambda client: client.list_prompts(),
    "resources/list": lambda client: client.list_resources(),
    "resources/templates/list": lambda client: client.list_resource_templates(),
    "resources/read": lambda client: client.read_resource("x:a"),
}


async def all_asked(client: Client) -> None:
    for ask in ASKED.values():
        await ask(client)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of every client that is made from now on."""
    clock = Clock()
    monkeypatch.setattr("mcp_core.client.client.ResponseCache", lambda: ResponseCache(clock=clock))
    return clock


@pytest.mark.requirement("R-CACHE-06")
@pytest.mark.parametrize("method", ASKED)
async def test_an_answer_is_not_asked_for_again_while_it_holds(method: str, clock: Clock) -> None:
    library = Library(ttl_ms=5000)
    async with Client(library.server) as client:
        first = await ASKED[method](client)
        clock.now += 4.999
        assert await ASKED[method](client) == first
        assert library.asked[method] == 1
        clock.now += 0.001
        assert await ASKED[method](client) == first
        assert library.asked[method] == 2
        # Its time runs from when it came.
        clock.now += 4.999
        await ASKED[method](client)
        assert library.asked[method] == 2


@pytest.mark.requirement("R-CACHE-06")
async def test_what_the_server_is_is_kept_like_the_rest(clock: Clock) -> None:
    library = Library(ttl_ms=5000)
    async with Client(library.server) as client:
        assert library.asked["server/discover"] == 1  # to settle the era
        await client.discover()
        assert library.asked["server/discover"] == 1
        clock.now += 5
        await client.discover()
        assert library.asked["server/discover"] == 2


@pytest.mark.requirement("R-CACHE-06")
@pytest.mark.parametrize("method", ASKED)
async def test_an_answer_without_a_time_is_asked_for_each_time(method: str, clock: Clock) -> None:
    library = Library(ttl_ms=0)
    async with Client(library.server) as client:
        for times in (1, 2, 3):
            await ASKED[method](client)
            assert library.asked[method] == times


@pytest.mark.requirement("R-CACHE-06")
@pytest.mark.parametrize(
    ("hints", "times"),
    [
        pytest.param(b"", 2, id="none"),
        pytest.param(b',"ttlMs":0', 2, id="stale at once"),
        pytest.param(b',"ttlMs":-1', 2, id="negative"),
        pytest.param(b',"ttlMs":60000', 1, id="a minute"),
        pytest.param(b',"ttlMs":60000,"cacheScope":"private"', 1, id="private"),
        pytest.param(b',"ttlMs":60000,"cacheScope":"public"', 1, id="public"),
        pytest.param(b',"ttlMs":' + b"9" * 400, 1, id="for ever"),
    ],
)
async def test_the_hints_as_they_stand_on_the_wire(hints: bytes, times: int) -> None:
    asked: list[str] = []

    def tools(ctx: RequestContext, params: PaginatedRequestParams) -> Raw:
        asked.append(ctx.method)
        return Raw(b'{"tools":[]%b}' % hints)

    async with Client(Server("x", on_list_tools=tools)) as client:
        assert (await client.list_tools()).tools == []
        assert (await client.list_tools()).tools == []
    assert len(asked) == times


@pytest.mark.requirement("R-CACHE-05")
async def test_answers_are_kept_for_the_same_params_only() -> None:
    library = Library()
    async with Client(library.server) as client:
        for _ in range(2):
            assert (await client.list_tools()).tools[0].name == "page None"
            assert (await client.list_tools(cursor="2")).tools[0].name == "page 2"
            assert (await client.list_tools(cursor="")).tools[0].name == "page "
        assert library.asked["tools/list"] == 3
        for _ in range(2):
            for uri in ("x:a", "x:b"):
                (contents,) = (await client.read_resource(uri)).contents
                assert contents == TextResourceContents(uri=uri, text=f"the text of {uri}")
        assert library.asked["resources/read"] == 2
        # What goes along in `_meta` is not what is asked for.
        await client.list_tools(meta={"mine/trace": "1"})
        assert library.asked["tools/list"] == 3


async def test_a_request_by_hand_is_the_same_request() -> None:
    library = Library()
    async with Client(library.server) as client:
        first = await client.list_tools(cursor="2")
        assert await client.request("tools/list", {"cursor": "2"}, ListToolsResult) == first
        assert (await client.request("tools/list", {"cursor": "2"}))["tools"][0]["name"] == "page 2"
    assert library.asked["tools/list"] == 1


@pytest.mark.requirement("R-CACHE-05")
async def test_calls_prompts_and_completions_are_never_kept() -> None:
    library = Library()
    async with Client(library.server) as client:
        for _ in range(2):
            await client.call_tool("t")
            await client.get_prompt("p")
            await client.complete(PromptReference(name="p"), {"name": "a", "value": ""})
    assert [library.asked[method] for method in ("tools/call", "prompts/get", "completion/complete")] == [2, 2, 2]


async def test_errors_are_not_kept() -> None:
    asked: list[str] = []

    def tools(ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
        asked.append(ctx.method)
        if len(asked) == 1:
            raise MCPError(-31999, "not now")
        return ListToolsResult(tools=[], ttl_ms=60_000)

    async with Client(Server("x", on_list_tools=tools)) as client:
        with pytest.raises(MCPError, match="not now"):
            await client.list_tools()
        for _ in range(2):
            assert (await client.list_tools()).tools == []
    assert len(asked) == 2


@pytest.mark.requirement("R-CACHE-05")
async def test_what_was_answered_with_the_users_input_is_not_kept() -> None:
    rounds: list[bool] = []

    def read(ctx: RequestContext, params: ReadResourceRequestParams) -> ReadResourceResult | InputRequiredResult:
        rounds.append(params.input_responses is not None)
        if params.input_responses is None:
            question = InputRequest(method="elicitation/create", params={"message": "?", "requestedSchema": {}})
            return InputRequiredResult(input_requests={"q": question}, request_state="s")
        return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, text="read")], ttl_ms=60_000)

    def accept(ctx: object, params: object) -> ElicitResult:
        return ElicitResult(action="accept", content={})

    async with Client(Server("x", on_read_resource=read), elicitation_callback=accept) as client:
        for _ in range(2):
            (contents,) = (await client.read_resource("x:a")).contents
            assert contents == TextResourceContents(uri="x:a", text="read")
    assert rounds == [False, True, False, True]


# --- changes ----------------------------------------------------------------------------------

CHANGES: Final = [
    pytest.param(ToolsListChanged(), {"tools/list"}, id="tools"),
    pytest.param(PromptsListChanged(), {"prompts/list"}, id="prompts"),
    pytest.param(ResourcesListChanged(), {"resources/list", "resources/templates/list"}, id="resources"),
    pytest.param(ResourceUpdated("x:a"), {"resources/read"}, id="one resource"),
]


@pytest.mark.requirement("R-CACHE-06")
@pytest.mark.parametrize(("event", "spoiled"), CHANGES)
async def test_a_change_that_is_listened_for_spoils_what_it_is_about(
    event: Event, spoiled: set[str], clock: Clock
) -> None:
    library = Library()
    async with (
        Client(library.server) as client,
        client.listen(
            tools_list_changed=True,
            prompts_list_changed=True,
            resources_list_changed=True,
            resource_subscriptions=["x:a"],
        ) as changes,
    ):
        await all_asked(client)
        library.asked.clear()
        await library.server.publish(event)
        with anyio.fail_after(60):
            async for told in changes:
                assert told == event
                break
        await all_asked(client)
        assert library.asked == Counter(dict.fromkeys(spoiled, 1))
        # What was asked for anew is kept again.
        await all_asked(client)
        assert library.asked == Counter(dict.fromkeys(spoiled, 1))


@pytest.mark.requirement("R-CACHE-06")
async def test_a_change_spoils_every_page() -> None:
    library = Library()
    async with Client(library.server) as client, client.listen(tools_list_changed=True) as changes:
        await client.list_tools()
        await client.list_tools(cursor="2")
        await library.server.publish(ToolsListChanged())
        with anyio.fail_after(60):
            async for _ in changes:
                break
        await client.list_tools(cursor="2")
        await client.list_tools()
    assert library.asked["tools/list"] == 4


async def test_a_change_that_was_not_listened_for_spoils_nothing() -> None:
    library = Library()
    async with Client(library.server) as client, client.listen(prompts_list_changed=True) as changes:
        await all_asked(client)
        await library.server.publish(ToolsListChanged())
        await library.server.publish(PromptsListChanged())
        with anyio.fail_after(60):
            async for told in changes:
                assert told == PromptsListChanged()
                break
        await all_asked(client)
    assert (library.asked["tools/list"], library.asked["prompts/list"]) == (1, 2)


@pytest.mark.requirement("R-CACHE-06")
async def test_a_list_that_changed_while_it_was_asked_for_is_not_kept() -> None:
    # The change is announced after the list was read and before it arrives.
    names = ["old"]

    async def tools(ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
        found = [Tool(name=name, input_schema={"type": "object"}) for name in names]
        if names == ["old"]:
            names[:] = ["new"]
            await ctx.notify_tools_changed()
            await told.wait()
        return ListToolsResult(tools=found, ttl_ms=60_000)

    told = anyio.Event()
    server = Server("x", subscriptions=True, on_list_tools=tools)
    async with Client(server) as client, client.listen(tools_list_changed=True) as changes:
        listed: list[str] = []

        async def ask() -> None:
            listed.append((await client.list_tools()).tools[0].name)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(ask)
                async for _ in changes:
                    told.set()
                    break
            await ask()
    assert listed == ["old", "new"]


IN_ONE_WRITE: Final = """
import json, os, sys
names = ["old", "new"]
for line in sys.stdin:
    request = json.loads(line)
    if request.get("method") != "tools/list":
        continue
    tool = {"name": names.pop(0), "inputSchema": {"type": "object"}}
    result = {"resultType": "complete", "tools": [tool], "ttlMs": 60000, "cacheScope": "private"}
    messages = [{"jsonrpc": "2.0", "id": request["id"], "result": result}]
    if names:
        messages.append({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    os.write(1, "".join(json.dumps(message) + chr(10) for message in messages).encode())
"""
"""A server whose first list is followed by news of a change in the same breath."""


@pytest.mark.requirement("R-CACHE-06")
async def test_a_change_right_after_the_answer_spoils_it_too() -> None:
    target = StdioServerParameters(command=sys.executable, args=["-c", IN_ONE_WRITE])
    with anyio.fail_after(60):
        async with Client(target, mode="2026-07-28") as client:
            first = await client.list_tools()
            second = await client.list_tools()
    assert [tool.name for result in (first, second) for tool in result.tools] == ["old", "new"]


# --- who keeps nothing ----------------------------------------------------------------------------


async def test_without_a_cache_everything_is_asked_for() -> None:
    library = Library()
    async with Client(library.server, cache=False) as client:
        for _ in range(3):
            await all_asked(client)
            await client.discover()
    assert library.asked == Counter(dict.fromkeys(ASKED, 3)) + Counter({"server/discover": 4})


@pytest.mark.requirement("R-CACHE-06")
async def test_handshake_era_answers_are_never_kept() -> None:
    library = Library()
    async with Client(library.server, mode="legacy") as client:
        for _ in range(3):
            await all_asked(client)
    assert library.asked == Counter(dict.fromkeys(ASKED, 3))


FROM_THE_FUTURE: Final = """
import json, os, sys
asked = 0
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    if request["method"] == "initialize":
        info = {"name": "s", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    else:
        asked += 1
        tool = {"name": f"asked {asked}", "inputSchema": {"type": "object"}}
        result = {"tools": [tool], "ttlMs": 60000, "cacheScope": "public"}
    os.write(1, json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode() + b"\\n")
"""
"""A server of the handshake era whose lists carry what only the next era knows."""


async def test_hints_mean_nothing_in_the_handshake_era() -> None:
    target = StdioServerParameters(command=sys.executable, args=["-c", FROM_THE_FUTURE])
    with anyio.fail_after(60):
        async with Client(target, mode="legacy") as client:
            names = [(await client.list_tools()).tools[0].name for _ in range(2)]
    assert names == ["asked 1", "asked 2"]


@pytest.mark.requirement("R-CACHE-05")
async def test_each_client_has_a_cache_of_its_own() -> None:
    library = Library()
    for times in (1, 2):
        async with Client(library.server) as client:
            await client.list_tools()
            await client.list_tools()
        assert library.asked["tools/list"] == times


# --- what is kept ---------------------------------------------------------------------------------


async def test_the_client_keeps_so_many_answers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_core.client.client.ResponseCache", lambda: ResponseCache(size=2))
    library = Library()
    async with Client(library.server, mode="2026-07-28") as client:
        for uri, times in (("x:a", 1), ("x:b", 2), ("x:a", 2), ("x:c", 3), ("x:a", 3), ("x:b", 4)):
            await client.read_resource(uri)
            assert library.asked["resources/read"] == times


async def test_who_changes_an_answer_changes_it_for_nobody_else() -> None:
    library = Library()
    async with Client(library.server) as client:
        for _ in range(3):
            listed = await client.list_tools()
            assert listed == ListToolsResult(
                tools=[Tool(name="page None", input_schema={"type": "object", "properties": {"a": {}}})],
                next_cursor="2",
                ttl_ms=60_000,
                _meta=listed.meta,
            )
            assert listed.meta is not None
            assert listed.meta == {"io.modelcontextprotocol/serverInfo": {"name": "library", "version": ""}}
            listed.tools[0].name = "changed"
            listed.tools[0].input_schema["properties"].clear()
            listed.tools.clear()
            listed.next_cursor = None
            listed.ttl_ms = 0
            listed.meta.clear()

            read = await client.read_resource("x:a")
            assert read.contents == [TextResourceContents(uri="x:a", text="the text of x:a")]
            read.contents.clear()
    assert (library.asked["tools/list"], library.asked["resources/read"]) == (1, 1)

"""The official client against servers of this library, over HTTP and in both eras.

What both sides have to say to each other is the same as over stdio, and held by the same
tests; below them is what only HTTP has: streams, sessions, many calls at once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import mcp_types as t
import pytest
from mcp import Client, MCPDeprecationWarning, MCPError
from mcp.client.session import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged

from mcp_core.client import Mode
from tests.http.serving import Served, serving
from tests.http.sockets import filler
from tests.interop import bookshop as b
from tests.interop import test_official_client as over_stdio
from tests.interop.test_official_client import MODES, REVISIONS, Peer, text_of
from tests.interop.watching import Heard

modes = pytest.mark.parametrize("mode", MODES)
MB = 1_000_000


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def connect(served: Served, mode: Mode, **options: Any) -> AsyncGenerator[Peer, None]:
    """A client with all callbacks."""
    logs: Heard[t.LoggingMessageNotificationParams] = Heard()
    samplings: Heard[t.CreateMessageRequestParams] = Heard()

    async def hear(params: t.LoggingMessageNotificationParams) -> None:
        logs.tell(params)

    async def sample(context: ClientRequestContext, params: t.CreateMessageRequestParams) -> t.CreateMessageResult:
        samplings.tell(params)
        said = t.TextContent(text="Sand and spice.")
        return t.CreateMessageResult(role="assistant", content=said, model="tiny-1", stop_reason="endTurn")

    given: dict[str, Any] = {
        "elicitation_callback": over_stdio.elicit,
        "sampling_callback": sample,
        "list_roots_callback": over_stdio.list_roots,
        "logging_callback": hear,
        "log_level": "info",
        "read_timeout_seconds": 60,
    }
    async with Client(served.url, mode=mode, **{**given, **options}) as client:
        yield Peer(client, mode, logs, samplings)


@pytest.fixture(scope="module", params=MODES)
async def core(request: pytest.FixtureRequest, core_server: Served, anyio_backend: str) -> AsyncGenerator[Peer, None]:
    async with connect(core_server, request.param) as peer:
        yield peer


@pytest.fixture(scope="module", params=MODES)
async def typed(request: pytest.FixtureRequest, typed_server: Served, anyio_backend: str) -> AsyncGenerator[Peer, None]:
    async with connect(typed_server, request.param) as peer:
        yield peer


# --- as over stdio -------------------------------------------------------------------------------

# Each asks for `core` or `typed`, and so gets those of this module. One connects by itself.
globals().update(
    {
        name: test
        for name, test in vars(over_stdio).items()
        if name.startswith("test_") and name != "test_client_without_callbacks_is_not_asked"
    }
)


@pytest.mark.requirement("R-MRTR-04")
@modes
@pytest.mark.parametrize(
    ("tool", "missing"), [("choose", "elicitation"), ("summarize", "sampling"), ("places", "roots")]
)
async def test_client_without_callbacks_is_not_asked(core_server: Served, mode: Mode, tool: str, missing: str) -> None:
    async with Client(core_server.url, mode=mode, read_timeout_seconds=60) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool(tool, {"text": "accept"})
        error = caught.value.error
        if mode == "auto":
            assert error.code == t.MISSING_REQUIRED_CLIENT_CAPABILITY
            assert list(error.data["requiredCapabilities"]) == [missing]
        else:
            assert missing in f"{error.message} {error.data}"
        assert text_of(await client.call_tool("echo", {"text": "alive"})) == "alive"


# --- many calls at once --------------------------------------------------------------------------


async def test_concurrent_calls_get_their_own_answers(core: Peer) -> None:
    answers: dict[int, str] = {}

    async def call(number: int) -> None:
        answers[number] = text_of(await core.client.call_tool("echo", {"text": f"{number} {'x' * number}"}))

    async with anyio.create_task_group() as group:
        for number in range(100):
            group.start_soon(call, number)
    assert answers == {number: f"{number} {'x' * number}" for number in range(100)}


@pytest.mark.requirement("R-PROG-02")
async def test_concurrent_calls_hear_their_own_progress(typed: Peer) -> None:
    heard: dict[int, list[tuple[float, float | None]]] = {number: [] for number in range(1, 21)}

    async def call(steps: int) -> None:
        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard[steps].append((progress, total))

        result = await typed.client.call_tool("count", {"steps": steps}, progress_callback=hear)
        assert text_of(result) == f"counted to {steps}"

    async with anyio.create_task_group() as group:
        for steps in heard:
            group.start_soon(call, steps)
    assert heard == {steps: [(step, steps) for step in range(1, steps + 1)] for steps in heard}


async def test_questions_amid_concurrent_calls(core: Peer) -> None:
    answers: list[str] = []

    async def call(message: str) -> None:
        answers.append(text_of(await core.client.call_tool("choose", {"text": message})))

    async with anyio.create_task_group() as group:
        for message in ["accept", "decline", "cancel"] * 5:
            group.start_soon(call, message)
    assert sorted(answers) == sorted(
        ["accept: {'edition': 'second', 'copies': 2}", "decline: None", "cancel: None"] * 5
    )


@modes
async def test_many_clients_at_once(core_server: Served, mode: Mode) -> None:
    """What one asks for does not reach another."""
    answers: dict[int, list[str]] = {number: [] for number in range(6)}

    async def talk(number: int) -> None:
        async with connect(core_server, mode) as peer:
            for turn in range(3):
                echoed = await peer.client.call_tool("echo", {"text": f"{number}.{turn}"})
                answers[number].append(text_of(echoed))
            assert text_of(await peer.client.call_tool("progress")) == "done"

    async with anyio.create_task_group() as group:
        for number in answers:
            group.start_soon(talk, number)
    assert answers == {number: [f"{number}.{turn}" for turn in range(3)] for number in answers}


@modes
async def test_both_eras_on_one_server_at_once(core_server: Served, mode: Mode) -> None:
    other = MODES[1 - MODES.index(mode)]
    async with connect(core_server, mode) as one, connect(core_server, other) as two:
        for peer in (one, two, one, two):
            assert peer.client.protocol_version == REVISIONS[peer.mode]
            assert text_of(await peer.client.call_tool("echo", {"text": peer.mode})) == peer.mode


# --- large messages --------------------------------------------------------------------------------


async def test_a_large_argument_and_result(core: Peer) -> None:
    text = filler(3 * MB)
    assert text_of(await core.client.call_tool("echo", {"text": text})) == text


@pytest.mark.requirement("R-HS-09")
async def test_an_argument_over_the_limit_is_an_error_of_that_call(core: Peer) -> None:
    # The refusal has no id, since the body was not read; this client then words the error itself.
    with pytest.raises(MCPError, match="Server returned an error response"):
        await core.client.call_tool("echo", {"text": filler(5 * MB)})
    assert text_of(await core.client.call_tool("echo", {"text": "alive"})) == "alive"


# --- changes -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
async def harbour() -> AsyncGenerator[Served, None]:
    with serving("tests.http.harbour_server:server") as served:
        yield served


Changes = Heard[t.ServerNotification]


@asynccontextmanager
async def listening(served: Served) -> AsyncGenerator[tuple[Client, Changes], None]:
    """A handshake-era client, and the changes that it is told of on its own stream."""
    changes: Changes = Heard()

    async def hear(message: Any) -> None:
        if isinstance(message, t.ToolListChangedNotification | t.ResourceUpdatedNotification):
            changes.tell(message)

    async with Client(served.url, mode="legacy", message_handler=hear, read_timeout_seconds=60) as client:
        yield client, changes


async def heard_at_last(client: Client, changes: Changes, tool: str, **arguments: Any) -> None:
    """Make changes until one is heard: the client opens its stream when it comes to it."""
    while not changes.items:
        await client.call_tool(tool, arguments)
        with anyio.move_on_after(0.05):
            await changes.count(1)


@pytest.mark.requirement("R-HTTPL-04")
async def test_changes_reach_a_handshake_client_on_its_own_stream(harbour: Served) -> None:
    async with listening(harbour) as (client, changes):
        await heard_at_last(client, changes, "change_tools")
        uris = [f"tide://{number}" for number in range(3)]
        for uri in (*uris, "tide://none"):
            with pytest.warns(MCPDeprecationWarning):
                await client.subscribe_resource(uri)  # pyright: ignore[reportDeprecated]
        with pytest.warns(MCPDeprecationWarning):
            await client.unsubscribe_resource("tide://none")  # pyright: ignore[reportDeprecated]
        for uri in ("tide://none", *uris):
            await client.call_tool("change_resource", {"uri": uri})
        updates = await changes.until(lambda items: len(resources(items)) == 3)
        assert resources(updates) == uris


def resources(items: list[t.ServerNotification]) -> list[str]:
    """The resources that were updated, in the order heard."""
    return [str(item.params.uri) for item in items if isinstance(item, t.ResourceUpdatedNotification)]


@pytest.mark.requirement("R-SUB-02")
@pytest.mark.requirement("R-SUB-03")
async def test_changes_reach_a_stateless_client_that_listens(harbour: Served) -> None:
    async with (
        Client(harbour.url, read_timeout_seconds=60) as client,
        client.listen(tools_list_changed=True) as tools,
        client.listen(resource_subscriptions=["tide://a", "tide://b"]) as tides,
    ):
        assert tools.honored.tools_list_changed is True
        assert list(tides.honored.resource_subscriptions or ()) == ["tide://a", "tide://b"]
        await client.call_tool("change_tools")
        for uri in ("tide://b", "tide://c", "tide://a"):
            await client.call_tool("change_resource", {"uri": uri})
        with anyio.fail_after(60):
            assert await anext(tools) == ToolsListChanged()
            assert await anext(tides) == ResourceUpdated(uri="tide://b")
            assert await anext(tides) == ResourceUpdated(uri="tide://a")


@pytest.mark.requirement("R-SUB-03")
async def test_a_server_that_tells_of_no_changes_honours_none(core_server: Served) -> None:
    async with Client(core_server.url, read_timeout_seconds=60) as client:
        with pytest.raises(MCPError) as caught:
            async with client.listen(tools_list_changed=True):
                pytest.fail("it listens")
        assert caught.value.error.code == t.METHOD_NOT_FOUND


@pytest.mark.requirement("R-SUB-07")
async def test_a_subscription_ends_with_the_server() -> None:
    with serving("tests.http.harbour_server:server") as served:
        async with (
            Client(served.url, read_timeout_seconds=60) as client,
            client.listen(tools_list_changed=True) as tools,
        ):
            served.process.terminate()
            with anyio.fail_after(60):
                assert [event async for event in tools] == []


async def test_a_typed_tool_that_comes_and_goes(asking_server: Served) -> None:
    """Registering a tool is enough for clients to hear of it, in either era."""
    names = ["bake", "teach", "forget", "whisper"]
    async with (
        listening(asking_server) as (older, changes),
        Client(asking_server.url, read_timeout_seconds=60) as client,
        client.listen(tools_list_changed=True) as tools,
    ):
        while not changes.items:
            for tool in ("teach", "forget"):
                await older.call_tool(tool)
                with anyio.fail_after(60):
                    await anext(tools)
            with anyio.move_on_after(0.05):
                await changes.count(1)
        for tool, expected in (("teach", [*names, "ice_cake"]), ("forget", names)):
            before = len(changes.items)
            await client.call_tool(tool)
            with anyio.fail_after(60):
                assert await anext(tools) == ToolsListChanged()
            await changes.count(before + 1)
            for each in (client, older):
                assert [listed.name for listed in (await each.list_tools()).tools] == expected


# --- a typed tool that asks --------------------------------------------------------------------------


@pytest.mark.requirement("R-MRTR-11")
@modes
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (t.ElicitResult(action="accept", content={"loaves": 2, "sliced": True}), "2 of rye, sliced"),
        (t.ElicitResult(action="decline"), "none (decline)"),
        (t.ElicitResult(action="cancel"), "none (cancel)"),
    ],
    ids=["accept", "decline", "cancel"],
)
async def test_a_typed_tool_asks(asking_server: Served, mode: Mode, answer: t.ElicitResult, text: str) -> None:
    asked: list[str] = []

    async def elicit(context: ClientRequestContext, params: t.ElicitRequestParams) -> t.ElicitResult:
        asked.append(params.message)
        return answer

    async with Client(asking_server.url, mode=mode, elicitation_callback=elicit, read_timeout_seconds=60) as client:
        assert text_of(await client.call_tool("bake", {"flour": "rye"})) == text
    assert asked == ["How much rye bread?"]


@modes
async def test_typed_functions_in_threads_at_once(asking_server: Served, mode: Mode) -> None:
    async with Client(asking_server.url, mode=mode, read_timeout_seconds=60) as client:
        answers: set[str] = set()

        async def call(number: int) -> None:
            answers.add(text_of(await client.call_tool("whisper", {"text": f"LOUD {number}"})))

        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(call, number)
        assert answers == {f"loud {number}" for number in range(50)}


# --- sessions ----------------------------------------------------------------------------------------


@pytest.mark.requirement("R-HTTPL-11")
async def test_a_session_that_has_ended_is_known_to_have(core_server: Served) -> None:
    seen: list[httpx2.Request] = []

    async def note(request: httpx2.Request) -> None:
        seen.append(request)

    async with httpx2.AsyncClient(event_hooks={"request": [note]}, timeout=60) as http:
        transport = streamable_http_client(core_server.url, http_client=http)
        async with Client(transport, mode="legacy", read_timeout_seconds=60) as client:
            assert text_of(await client.call_tool("echo", {"text": "alive"})) == "alive"
            headers = {name: seen[-1].headers[name] for name in ("mcp-session-id", "mcp-protocol-version")}
            assert (await http.delete(core_server.url, headers=headers)).status_code == 200
            with pytest.raises(MCPError, match="Session not found"):
                await client.call_tool("echo", {"text": "gone"})


@modes
async def test_leaving_ends_the_session(core_server: Served, mode: Mode) -> None:
    seen: list[httpx2.Response] = []

    async def note(response: httpx2.Response) -> None:
        seen.append(response)

    async with httpx2.AsyncClient(event_hooks={"response": [note]}, timeout=60) as http:
        async with Client(streamable_http_client(core_server.url, http_client=http), mode=mode) as client:
            await client.list_tools()
        requests = [(each.request.method, each.status_code) for each in seen]
        sessions = {each.headers.get("mcp-session-id") for each in seen} - {None}
        if mode == "auto":
            assert {method for method, _ in requests} == {"POST"}
            assert sessions == set()
        else:
            assert ("DELETE", 200) in requests
            (session_id,) = sessions
            assert session_id is not None
            after = await http.get(
                core_server.url, headers={"mcp-session-id": session_id, "accept": "text/event-stream"}
            )
            assert after.status_code == 404


# --- other ways to serve -------------------------------------------------------------------------------


@modes
async def test_without_sessions(stateless_server: Served, mode: Mode) -> None:
    async with connect(stateless_server, mode) as peer:
        heard: list[float] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append(progress)

        assert peer.client.protocol_version == REVISIONS[mode]
        assert text_of(await peer.client.call_tool("echo", {"text": "x"})) == "x"
        assert text_of(await peer.client.call_tool("progress", progress_callback=hear)) == "done"
        assert heard == [1, 2, 3]
        if mode == "auto":
            answer = await peer.client.call_tool("choose", {"text": "decline"})
            assert text_of(answer) == "decline: None"
        else:
            with pytest.raises(MCPError):
                await peer.client.call_tool("choose", {"text": "decline"})
        assert text_of(await peer.client.call_tool("echo", {"text": "y"})) == "y"


@modes
async def test_without_streams(json_server: Served, mode: Mode) -> None:
    """`json_response` is for the handshake era: progress has no way to travel there."""
    async with connect(json_server, mode) as peer:
        heard: list[float] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append(progress)

        assert text_of(await peer.client.call_tool("progress", progress_callback=hear)) == "done"
        assert heard == ([1, 2, 3] if mode == "auto" else [])
        assert text_of(await peer.client.call_tool("echo", {"text": "y"})) == "y"


@pytest.mark.requirement("R-HTTPL-07")
@modes
async def test_a_tool_that_sends_its_client_away(conformance_server: Served, mode: Mode) -> None:
    """With an event store, a handshake-era client comes back for the rest."""
    async with Client(conformance_server.url, mode=mode, read_timeout_seconds=60) as client:
        assert text_of(await client.call_tool("test_reconnection")) == "Reconnection test completed"
        assert text_of(await client.call_tool("test_simple_text")) == "This is a simple text response for testing."


@modes
async def test_weather(weather_server: Served, mode: Mode) -> None:
    async with Client(weather_server.url, mode=mode, read_timeout_seconds=60) as client:
        result = await client.call_tool("get_weather", {"city": "Oslo"})
        assert result.structured_content == {"temperature": 16.2, "humidity": 0.83, "conditions": "Overcast in Oslo"}
        wrong = await client.call_tool("get_weather", {"town": "Oslo"})
        assert wrong.is_error
        assert text_of(wrong).startswith("Error executing tool get_weather: 1 validation error")
        with pytest.raises(MCPError) as caught:
            await client.call_tool("get_tides", {"city": "Oslo"})
        assert (caught.value.error.code, caught.value.error.message) == (t.INVALID_PARAMS, "Unknown tool: get_tides")


async def test_secrets_of_a_crash_stay_here(core: Peer) -> None:
    with pytest.raises(MCPError) as caught:
        await core.client.call_tool("crash")
    assert b.SECRET not in str(caught.value.error)

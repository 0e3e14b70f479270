"""What happens seldom, and must be right then: states a client or an author rarely gets into."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from msgspec import Raw

from mcp_core import Client, LocalProtocolError, MCPError, RequestContext, Server, request_state
from mcp_core import types as t
from mcp_core.auth import AccessToken
from mcp_core.codec import MAX_NAME
from mcp_core.request_state import SHARED_KEY, RequestStateSigner
from mcp_core.session import JSONRPCSession
from mcp_core.subscriptions import InProcessBus, ResourceUpdated, ToolsListChanged
from mcp_core.testing import Inbox, RawPeer, flush_logs, modern_meta
from mcp_core.threads import Called


def echo_server(**options: Any) -> Server:
    async def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        return t.CallToolResult(content=[t.TextContent(text=params.name)])

    return Server("echo", version="1.2", on_call_tool=call, **options)


async def test_a_client_is_opened_once() -> None:
    async with Client(echo_server()) as client:
        with pytest.raises(LocalProtocolError, match="open already"):
            await client.__aenter__()
        assert (await client.call_tool("x")).content == [t.TextContent(text="x")]


async def test_a_client_that_is_not_open_says_so() -> None:
    with pytest.raises(LocalProtocolError, match="the client is not open"):
        await Client(echo_server()).call_tool("x")


async def test_notifications_of_the_handshake_era_reach_their_handlers() -> None:
    heard: list[Any] = []
    done = anyio.Event()

    async def progressed(ctx: RequestContext, params: t.ProgressNotificationParams) -> None:
        heard.append((params.progress_token, params.progress))

    async def changed(ctx: RequestContext, params: t.NotificationParams | None) -> None:
        heard.append("roots")
        done.set()

    server = echo_server(on_progress=progressed, on_roots_list_changed=changed)
    async with Client(server, mode="legacy") as client:
        await client.send_progress_notification("token", 1.0)
        await client.send_roots_list_changed()
        with anyio.fail_after(60):
            await done.wait()
    assert heard == [("token", 1.0), "roots"]


async def test_a_subscription_takes_a_revision_that_has_it() -> None:
    async with Client(echo_server(subscriptions=True), mode="legacy") as client:
        with pytest.raises(LocalProtocolError, match="does not exist in 2025-11-25"):
            async with client.listen(tools_list_changed=True):
                pytest.fail("there is no such method")


async def test_a_server_that_is_called_as_a_function_has_no_connection() -> None:
    async def ask(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        await ctx.list_roots()
        raise AssertionError

    server = Server("s", version="3", on_call_tool=ask, subscriptions=True)
    assert server.version == "3"
    refused = await server.handle(json.dumps({"jsonrpc": "2.0", "id": 7, "result": {}}).encode())
    assert refused is not None
    assert b'"code":-32600' in refused
    listen = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen"}
    params = {"_meta": modern_meta(), "notifications": {"toolsListChanged": True}}
    answer = await server.handle(json.dumps({**listen, "params": params}).encode())
    assert answer is not None
    assert b"a subscription needs a transport" in answer


async def test_a_progress_token_may_be_so_long() -> None:
    async with RawPeer.of(echo_server()) as peer:
        for length, is_refused in ((MAX_NAME, False), (MAX_NAME + 1, True)):
            params = {"name": "x", "_meta": modern_meta(progressToken="t" * length)}
            answer = await peer.call(length, "tools/call", params)
            assert ("error" in answer) is is_refused


def test_an_id_that_came_back_as_a_float_is_ours_if_it_is_whole() -> None:
    session: JSONRPCSession[str, str] = JSONRPCSession()
    assert session.register("waiting") == 1
    floats: Any = [1.0, 1.5, 2.0]
    assert [session.was_asked(each) for each in floats] == [True, False, False]


def test_a_principal_is_client_subject_and_issuer() -> None:
    token = AccessToken(token="x", client_id="app", subject="ann", claims={"iss": "https://issuer.example"})
    assert token.principal == ("app", "ann", "https://issuer.example")
    assert AccessToken(token="x", client_id="app").principal == ("app", None, None)


def test_a_shared_key_is_taken_out_of_the_environment_and_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_state, "_shared", [])
    ctx: RequestContext[Any] = RequestContext(
        None,  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        1,
        "tools/call",
        Raw(b"{}"),
        "2026-07-28",
        {},
    )
    monkeypatch.setenv(SHARED_KEY, "ab" * 32)
    request_state.keep_shared_key()
    state = RequestStateSigner().sign(ctx, "kept")
    assert RequestStateSigner([bytes.fromhex("ab" * 32)]).verify(ctx, state) == "kept"
    request_state.keep_shared_key()  # there is none any more: the one that was taken stays
    assert RequestStateSigner().verify(ctx, state) == "kept"


async def test_a_listener_that_raises_keeps_no_event_from_the_others(caplog: pytest.LogCaptureFixture) -> None:
    bus, heard = InProcessBus(), list[Any]()

    def broken(event: Any) -> None:
        raise ZeroDivisionError

    bus.subscribe(broken)
    bus.subscribe(heard.append)
    await bus.publish(ResourceUpdated("a://b"))
    await bus.publish(ToolsListChanged())
    flush_logs()
    assert heard == [ResourceUpdated("a://b"), ToolsListChanged()]
    assert [record.getMessage() for record in caplog.records] == ["a subscription listener raised"] * 2


async def test_an_inbox_keeps_what_a_transport_refuses_and_fails() -> None:
    inbox, error = Inbox(), ValueError("x")
    inbox.refuse(b"{", 10)
    inbox.fail(1, error)
    await inbox.until(lambda found: len(found.failed) == 1)
    assert (inbox.refused, inbox.failed) == ([b"{"], [(1, error)])


async def test_a_call_that_is_done_can_be_awaited_closed_and_thrown_into() -> None:
    assert await Called(5) == 5
    Called(5).close()
    with pytest.raises(ZeroDivisionError):
        Called(5).throw(ZeroDivisionError())


def test_a_message_of_a_conversation_is_a_list_of_blocks_either_way() -> None:
    block = t.TextContent(text="x")
    assert t.SamplingMessage(role="user", content=block).content_as_list == [block]
    assert t.SamplingMessage(role="user", content=[block, block]).content_as_list == [block, block]


@pytest.mark.parametrize("meta", [{"a": 1}, {"a": {"mime_type": 1}}])
async def test_any_json_may_stand_in_meta(meta: Any) -> None:
    async def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        return t.CallToolResult(content=[], _meta=meta)

    async with Client(Server("s", on_call_tool=call)) as client:
        found = (await client.call_tool("x")).meta or {}
    assert {key: value for key, value in found.items() if "/" not in key} == meta


async def test_a_block_in_a_dict_is_as_on_the_wire_or_an_error() -> None:
    given: list[Any] = [
        {"type": "image", "data": "x", "mime_type": "image/png"},
        {"type": "text"},
        {"type": "text", "text": "x"},
    ]

    async def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        return t.CallToolResult(content=[given[int(params.name)]])

    async with Client(Server("s", on_call_tool=call)) as client:
        for number in (0, 1):
            with pytest.raises(MCPError, match="invalid result"):
                await client.call_tool(str(number))
        assert (await client.call_tool("2")).content == [t.TextContent(text="x")]

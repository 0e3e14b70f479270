"""Who is let in, and what ends with an app, where a small change of the code once went unseen."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any

import anyio
import pytest

from mcp_core import RequestContext, Server
from mcp_core.testing import RawPeer
from mcp_core.transports.streamable_http import HTTPOptions, StreamableHTTP
from mcp_core.transports.streamable_http.guards import MAX_HEADER_BYTES, MAX_HEADERS
from mcp_core.types import CallToolRequestParams, CallToolResult
from tests.core.test_announcer import LAST, TOOLS, Bus
from tests.http.asgi import ModernClient, living


def served(**options: Any) -> StreamableHTTP:
    """An app whose one tool says nothing."""
    server = Server("s", on_call_tool=lambda ctx, params: CallToolResult(content=[]))
    return StreamableHTTP(server, HTTPOptions(**options))


@pytest.mark.parametrize("scheme", ["ftp", "chrome-extension", "file", ""])
async def test_a_page_of_the_same_name_is_let_in_by_the_schemes_of_the_web_alone(scheme: str) -> None:
    client = ModernClient(served(host="0.0.0.0"))
    found = {
        name: (
            await client.call("x", headers={"host": "mcp.example.com", "origin": f"{name}://mcp.example.com"})
        ).status
        for name in ("http", "https", scheme)
    }
    assert found == {"http": 200, "https": 200, scheme: 403}


@pytest.mark.parametrize(("over", "wanted"), [(0, 200), (1, 431)])
@pytest.mark.parametrize("bound", ["number", "bytes"])
async def test_headers_may_be_as_many_and_as_long_as_is_said_and_no_more(bound: str, over: int, wanted: int) -> None:
    app = served()

    async def padded(scope: Any, receive: Any, send: Any) -> None:
        sent = list(scope["headers"])
        many = [(b"x-a", b"y")] * (MAX_HEADERS - len(sent) + over)
        room = MAX_HEADER_BYTES - sum(len(name) + len(value) for name, value in sent)
        long = [(b"x-a", b"y" * (room - len(b"x-a") + over))]
        await app({**scope, "headers": sent + (many if bound == "number" else long)}, receive, send)

    assert (await ModernClient(padded).call("x")).status == wanted


async def ends(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    """A handler that raises, in its first step, what closes coroutines."""
    raise GeneratorExit


async def test_a_handler_that_ends_like_a_coroutine_that_is_closed_is_an_internal_error() -> None:
    app = StreamableHTTP(Server("s", on_call_tool=ends), HTTPOptions())
    response = await ModernClient(app).call("x")
    error = {"code": -32603, "message": "Internal server error"}
    assert (response.status, response.json) == (200, {"jsonrpc": "2.0", "id": 1, "error": error})


class Later:
    """What can be awaited and is no coroutine."""

    def __init__(self, work: Coroutine[Any, Any, CallToolResult]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, Any, CallToolResult]:
        return self._work.__await__()


async def test_a_handler_may_return_anything_that_can_be_awaited() -> None:
    async def work() -> CallToolResult:
        await anyio.lowlevel.checkpoint()
        return CallToolResult(content=[], structured_content={"done": True})

    app = StreamableHTTP(Server("s", on_call_tool=lambda ctx, params: Later(work())), HTTPOptions())
    answer = (await ModernClient(app).call("x")).answer
    assert answer["result"]["structuredContent"] == {"done": True}


async def test_an_app_that_has_ended_publishes_no_changes_any_more() -> None:
    bus = Bus()
    server = Server("s", subscriptions=bus)
    async with living(server.streamable_http_app()):
        pass
    server.announce(TOOLS)  # to nothing that serves
    async with RawPeer.of(server):
        server.announce(LAST)
        assert await bus.until(LAST) == [LAST]

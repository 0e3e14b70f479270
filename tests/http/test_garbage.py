"""What an HTTP request leaves behind: nothing that only the garbage collector could take away."""

from __future__ import annotations

import gc
from collections import Counter
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcp_core import RequestContext, Server
from mcp_core.errors import InvalidParams
from mcp_core.types import CallToolRequestParams, CallToolResult, TextContent
from tests.http.asgi import HandshakeClient, ModernClient

OURS = ("mcp_core.", "mcp_typed.")
REQUESTS = 40


async def at_once(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    return CallToolResult(content=[TextContent(text="x")])


async def after_a_while(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    await anyio.lowlevel.checkpoint()
    return CallToolResult(content=[TextContent(text="x")])


async def at_length(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    await ctx.report_progress(1)
    return CallToolResult(content=[TextContent(text="x")])


def in_vain(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    raise InvalidParams("no")


@pytest.mark.parametrize("handler", [at_once, after_a_while, at_length, in_vain])
@pytest.mark.parametrize(
    "options",
    [{}, {"stateless_http": True}, {"json_response": True}],
    ids=["sessions", "no sessions", "json"],
)
@pytest.mark.parametrize("era", ["modern", "handshake"])
async def test_a_request_leaves_no_cycles(era: str, options: dict[str, Any], handler: Any) -> None:
    gc.collect()
    gc.freeze()  # what other tests have left is not looked at
    app = Server("garbage", on_call_tool=handler).streamable_http_app(**options)
    client: Any = ModernClient(app) if era == "modern" else HandshakeClient(app)
    if era == "handshake" and not options.get("stateless_http"):
        await client.initialize()
    for request_id in range(REQUESTS):
        await client.call("x", request_id=request_id)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for request_id in range(REQUESTS):
            await client.call("x", request_id=request_id)
        gc.collect()
        left = Counter(type(item).__qualname__ for item in gc.garbage if type(item).__module__.startswith(OURS))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert {name: count for name, count in left.items() if count >= REQUESTS} == {}

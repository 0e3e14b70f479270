"""What a call leaves behind: nothing that only the garbage collector could take away."""

from __future__ import annotations

import gc
from collections import Counter

import pytest

from mcp_core import RequestContext, Server
from mcp_core.testing import RawPeer
from mcp_core.types import CallToolRequestParams, CallToolResult, TextContent


async def answer_at_length(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    await ctx.report_progress(1)
    return CallToolResult(content=[TextContent(text="x")])


def answer_now(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    return CallToolResult(content=[TextContent(text="x")])


@pytest.mark.parametrize("handler", [answer_at_length, answer_now])
async def test_a_call_leaves_no_cycles(handler: object, anyio_backend: str) -> None:
    gc.collect()
    gc.freeze()  # what other tests have left is not looked at
    server = Server("garbage")
    server.add_request_handler("tools/call", CallToolRequestParams, handler)  # type: ignore[arg-type]
    async with RawPeer.of(server) as peer:
        for request_id in range(50):
            await peer.modern(request_id, "tools/call", {"name": "x"}, progressToken="t")
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            for request_id in range(50, 150):
                await peer.modern(request_id, "tools/call", {"name": "x"})
            gc.collect()
            left = Counter(type(item).__name__ for item in gc.garbage)
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
    ours = {"RequestContext", "Incoming", "Call", "_Job", "Request", "CallToolRequestParams", "CallToolResult"}
    assert {name: count for name, count in left.items() if name in ours} == {}

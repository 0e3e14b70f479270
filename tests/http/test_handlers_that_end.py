"""Handlers that raise what looks like the end of their coroutine: each request is answered, and the next one too."""

from __future__ import annotations

from typing import Any

import anyio.lowlevel
import pytest

from mcp_core import RequestContext, Server
from mcp_core import types as t
from tests.http.asgi import HandshakeClient, ModernClient


@pytest.mark.fault("S-20")
@pytest.mark.requirement("R-BASE-05")
@pytest.mark.parametrize("era", ["modern", "handshake", "stateless"])
@pytest.mark.parametrize("waits", [False, True])
async def test_a_handler_that_raises_generator_exit_is_answered(era: str, waits: bool) -> None:
    async def ends(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        if params.name == "fine":
            return t.CallToolResult(content=[])
        if waits:
            await anyio.lowlevel.checkpoint()
        raise GeneratorExit

    app = Server("s", on_call_tool=ends).streamable_http_app(stateless_http=era == "stateless")
    caller: Any = ModernClient(app) if era == "modern" else HandshakeClient(app)
    if era == "handshake":
        await caller.initialize()
    answer = await caller.call("x")
    assert answer.answer["error"] == {"code": -32603, "message": "Internal server error"}
    assert "result" in (await caller.call("fine")).answer

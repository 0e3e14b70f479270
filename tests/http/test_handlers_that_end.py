"""Handlers that end their own task, over HTTP: each request is answered, and the next one too."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcp_core import RequestContext, Server
from mcp_core import types as t
from tests.http.asgi import HandshakeClient, ModernClient


@pytest.mark.fault("S-20")
@pytest.mark.requirement("R-BASE-05")
@pytest.mark.parametrize("era", ["modern", "handshake", "stateless"])
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("how", ["exit", "cancel"])
async def test_a_handler_that_ends_its_own_task_is_answered(
    era: str, waits: bool, how: str, anyio_backend: str
) -> None:
    async def ends(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        if params.name == "fine":
            return t.CallToolResult(content=[])
        if waits:
            await anyio.lowlevel.checkpoint()
        if how == "cancel" and anyio_backend == "asyncio":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await anyio.sleep_forever()
        raise GeneratorExit

    app = Server("s", on_call_tool=ends).streamable_http_app(stateless_http=era == "stateless")
    caller: Any = ModernClient(app) if era == "modern" else HandshakeClient(app)
    if era == "handshake":
        await caller.initialize()
    answer = await caller.call("x")
    assert answer.answer["error"] == {"code": -32603, "message": "Internal server error"}
    assert "result" in (await caller.call("fine")).answer

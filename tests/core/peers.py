"""What the tests of the core share: a server to talk to, and ways to say and to hear nothing."""

from __future__ import annotations

import json
from typing import Any

from mcp_core import RequestContext, Server
from mcp_core.testing import RawPeer, modern_meta
from mcp_core.types import CallToolRequestParams, CallToolResult, TextContent

SENTINEL = "sentinel"


async def echo(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    """A tool that gives its arguments back, in a task of its own."""
    return CallToolResult(content=[TextContent(text=params.name)], structured_content=params.arguments or {})


def echo_now(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    """The same as a plain function."""
    return CallToolResult(content=[TextContent(text=params.name)], structured_content=params.arguments or {})


def echo_server(**options: Any) -> Server:
    """A server whose `tools/call` is answered at once."""
    return Server("echo", version="1", on_call_tool=echo_now, **options)


def modern(request_id: Any, method: str, params: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    """A 2026-07-28 request; `meta` are further members of its `_meta`."""
    carried = {**modern_meta(), **meta}
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**(params or {}), "_meta": carried}}


def legacy(request_id: Any, method: str, params: Any = None) -> dict[str, Any]:
    """A request without an envelope."""
    request = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return request if params is None else {**request, "params": params}


def notification(method: str, params: Any = None) -> dict[str, Any]:
    """A notification."""
    message = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


def line(message: Any) -> bytes:
    """The message as compact JSON."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


async def answers(peer: RawPeer, *messages: Any) -> list[Any]:
    """All that these messages are answered with, up to the answer to a request sent after them.

    For what is answered at once: a handler that waits may answer later than this looks.
    """
    for message in messages:
        peer.send(message)
    peer.send(modern(SENTINEL, "server/discover"))
    heard: list[Any] = []
    while True:
        answer: Any = await peer.receive_next()
        if not isinstance(answer, list) and answer.get("id") == SENTINEL:
            assert "result" in answer
            return heard
        heard.append(answer)


async def only_answer(peer: RawPeer, message: Any) -> Any:
    """The one answer to this message; there must be no other."""
    heard = await answers(peer, message)
    assert len(heard) == 1
    return heard[0]


def code_of(answer: Any) -> int:
    """The error code of an answer that must be a well-formed error (R-BASE-06)."""
    assert answer["jsonrpc"] == "2.0"
    assert "result" not in answer
    error = answer["error"]
    assert type(error["code"]) is int
    assert isinstance(error["message"], str)
    assert len(error["message"]) < 200
    return int(error["code"])

"""Servers for the tests of our client over HTTP, and lists of what its callbacks were told.

Some are ours; those that do as no server should are scripts: acts by the method of the
message, or of HTTP where there is none.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, TypeAlias

import anyio

from mcp_core import RequestContext, Server
from mcp_core import types as t
from tests.http.asgi import App
from tests.interop.watching import Heard

__all__ = [
    "WEATHER",
    "WEATHER_AS_JSON",
    "Act",
    "Notices",
    "Patient",
    "Steps",
    "Turn",
    "accept",
    "acting",
    "agreeing",
    "changing",
    "echoing",
    "event",
    "fail",
    "no_stream",
    "no_tools",
    "replying",
    "said",
    "streaming",
    "text_of",
]

JSON: TypeAlias = dict[str, Any]


# --- what is heard --------------------------------------------------------------------------


class Steps(Heard[float]):
    """Progress that was told."""

    def progress(self, done: float, _total: float | None, _message: str | None) -> None:
        """A progress callback."""
        self.tell(done)


class Notices(Heard[tuple[str, JSON]]):
    """Notifications that were told."""

    def notification(self, method: str, params: JSON) -> None:
        """A message handler."""
        self.tell((method, params))

    @property
    def methods(self) -> list[str]:
        """Their methods, in order."""
        return [method for method, _ in self.items]


def text_of(result: t.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, t.TextContent)
    return block.text


def said(text: str) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(text=text)])


# --- ours -----------------------------------------------------------------------------------


def echoing(*tools: t.Tool, **options: Any) -> Server:
    """A server whose every tool gives its arguments back."""

    def list_tools(ctx: RequestContext, params: t.PaginatedRequestParams) -> t.ListToolsResult:
        return t.ListToolsResult(tools=list(tools))

    def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        return said(json.dumps(params.arguments or {}))

    return Server("echo", version="1", on_list_tools=list_tools, on_call_tool=call, **options)


class Patient:
    """A server whose tools wait until they are told to go on, and what becomes of them."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.go_on = anyio.Event()
        self.cancelled = anyio.Event()
        self.server = Server("patient", version="1", on_call_tool=self._call)

    async def _call(self, ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
        await ctx.report_progress(1)
        self.started.set()
        try:
            await self.go_on.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled.set()
            raise
        return said("done")


def changing() -> Server:
    def list_resources(ctx: RequestContext, params: t.PaginatedRequestParams) -> t.ListResourcesResult:
        return t.ListResourcesResult(resources=[])

    return echoing(WEATHER, subscriptions=True, on_list_resources=list_resources)


def marked(name: str, **properties: JSON) -> t.Tool:
    """A tool with marked parameters, each a schema by its name."""
    return t.Tool(name=name, input_schema={"type": "object", "properties": properties})


WEATHER: Final = marked(
    "weather",
    city={"type": "string", "x-mcp-header": "City"},
    days={"type": "integer", "x-mcp-header": "Days"},
    metric={"type": "boolean", "x-mcp-header": "Metric"},
    place={"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}},
    note={"type": "string"},
)


WEATHER_AS_JSON: Final[JSON] = {"name": WEATHER.name, "inputSchema": WEATHER.input_schema}


# --- by script ------------------------------------------------------------------------------


class Turn:
    """A request as a scripted server sees it, and the ways to answer."""

    def __init__(self, scope: Any, message: Any, receive: Callable[[], Awaitable[Any]], send: Any) -> None:
        self.http_method: str = scope["method"]
        self.headers: dict[str, str] = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.message: Any = message
        self._receive = receive
        self._send = send

    @property
    def method(self) -> str | None:
        """The method of the message."""
        message: JSON = self.message or {}
        method: str | None = message.get("method")
        return method

    def result(self, result: JSON) -> JSON:
        """The message's answer."""
        return {"jsonrpc": "2.0", "id": self.message["id"], "result": result}

    def complete(self, **members: Any) -> JSON:
        """The message's answer in 2026-07-28."""
        return self.result({"resultType": "complete", **members})

    def refusal(self, code: int, text: str, **members: Any) -> JSON:
        """The message's answer, if it is refused."""
        return {"jsonrpc": "2.0", "id": self.message["id"], "error": {"code": code, "message": text, **members}}

    async def reply(self, status: int = 202, body: Any = b"", kind: str = "application/json", **headers: str) -> None:
        """A whole response; what is no bytes is sent as JSON."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        fields = {"content-type": kind, "content-length": str(len(raw)), **headers}
        await self._start(status, fields)
        await self._send({"type": "http.response.body", "body": raw})

    async def open(self, *events: str, **headers: str) -> None:
        """The beginning of an event stream."""
        await self._start(200, {"content-type": "text/event-stream", **headers})
        await self.write(*events)

    async def write(self, *events: str) -> None:
        """More of it. An event is its lines, or a message that is written as one."""
        for event in events:
            await self._send({"type": "http.response.body", "body": f"{event}\n\n".encode(), "more_body": True})

    async def close(self, *events: str) -> None:
        """The end of it."""
        await self.write(*events)
        await self._send({"type": "http.response.body", "body": b""})

    async def stream(self, *events: str, **headers: str) -> None:
        """A whole event stream."""
        await self.open(*events, **headers)
        await self.close()

    async def gone(self) -> None:
        """Wait until the client has gone."""
        await self._receive()

    async def _start(self, status: int, headers: dict[str, str]) -> None:
        fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": fields})


def event(message: Any, *lines: str) -> str:
    """An event that brings a message; further lines come before it."""
    return "\n".join([*lines, f"data: {json.dumps(message)}"])


def scripted(script: Callable[[Turn], Awaitable[None]]) -> App:
    """An app that does as the script says."""

    async def app(scope: MutableMapping[str, Any], receive: Callable[[], Awaitable[Any]], send: Any) -> None:
        body = (await receive())["body"]
        await script(Turn(scope, json.loads(body) if body else None, receive, send))

    return app


Act: TypeAlias = Callable[[Turn], Awaitable[None]]


def replying(status: int, body: Any = b"", kind: str = "text/plain", **headers: str) -> Act:
    """Gives this response."""
    return lambda turn: turn.reply(status, body, kind, **headers)


def streaming(*events: str) -> Act:
    """Gives this event stream."""
    return lambda turn: turn.stream(*events)


async def fail(turn: Turn) -> None:
    """Ends without a response."""


async def discover(turn: Turn) -> None:
    found: JSON = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0}
    await turn.reply(200, turn.complete(**found, cacheScope="private"))


def agreeing(revision: str = "2025-11-25", **headers: str) -> Act:
    """Shakes hands."""

    async def initialize(turn: Turn) -> None:
        result: JSON = {"protocolVersion": revision, "capabilities": {"tools": {}}}
        await turn.reply(200, turn.result({**result, "serverInfo": {"name": "script", "version": "1"}}), **headers)

    return initialize


async def accept(turn: Turn) -> None:
    await turn.reply(202)


async def no_stream(turn: Turn) -> None:
    await turn.reply(405, allow="POST")


async def no_tools(turn: Turn) -> None:
    await turn.reply(200, turn.complete(tools=[], ttlMs=0, cacheScope="private"))


POLITE: Final[Mapping[str, Act]] = {
    "server/discover": discover,
    "initialize": agreeing(),
    "tools/list": no_tools,
    "GET": no_stream,
    "DELETE": accept,
}


def acting(acts: Mapping[str, Act]) -> App:
    """A server that is polite, except in these acts; they go by the method of the message, or of HTTP."""

    async def script(turn: Turn) -> None:
        act = {**POLITE, **acts}.get(turn.method or turn.http_method, accept)
        await act(turn)

    return scripted(script)

"""A wire between a client of ours and an ASGI app in the same process, for httpx2.

Unlike httpx2's own ASGI transport it gives a response as it comes, lets the app see the
client go, and breaks when a test wants it to. It keeps every exchange, to be looked at and
waited for. Works on asyncio and on trio.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

import anyio
import httpx2
from anyio.abc import TaskGroup

from mcp_core import Client
from mcp_core.client import Mode
from mcp_core.transports.http_client import StreamableHTTPParameters
from tests.http.asgi import App, News

__all__ = ["SECONDS", "URL", "Exchange", "Wire", "wired"]

URL: Final = "http://127.0.0.1:8000/mcp"
SECONDS: Final = 5.0

JSON: TypeAlias = dict[str, Any]


class Exchange:
    """One request of the client's, and the response to it, from both ends."""

    def __init__(self, app: App, request: httpx2.Request, body: bytes, news: News) -> None:
        self.http_method = request.method
        self.headers: dict[str, str] = dict(request.headers)
        self.raw_headers: list[tuple[bytes, bytes]] = request.headers.raw
        self.message: Any = json.loads(body) if body else None
        self.status: int | None = None
        self.fields: list[tuple[bytes, bytes]] = []
        self.is_gone = False
        """Whether the client went away before the response was whole."""
        self.has_returned = False
        """Whether the app is done with it."""
        self.error: Exception | None = None
        self.began = anyio.current_time()
        self.ended: float | None = None
        """When the app had sent the whole response."""
        self._app = app
        self._scope = _scope(request)
        self._body: bytes | None = body
        self._news = news
        self._pieces: list[bytes] = []
        self._is_complete = False
        self._is_broken = False

    def __repr__(self) -> str:
        return f"<{self.what}, {self.status}>"

    @property
    def what(self) -> str:
        """The HTTP method, and the method of the message or the kind that it is."""
        if self.message is None:
            return self.http_method
        named = self.message.get("method")
        return f"{self.http_method} {named or ('result' if 'result' in self.message else 'error')}"

    # --- as the app sees it ---

    async def run(self) -> None:
        """Run the app."""
        try:
            await self._app(self._scope, self._receive, self._send)
        except Exception as exc:
            self.error = exc
        finally:
            self.has_returned = True
            self._news.tell()

    async def _receive(self) -> JSON:
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body}
        await self._news.until(lambda: self.is_gone or self._is_complete)
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        if self.is_gone:
            return
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.fields = message["headers"]
        else:
            self._pieces.append(message.get("body", b""))
            self._is_complete = not message.get("more_body", False)
            self.ended = anyio.current_time() if self._is_complete else None
        self._news.tell()

    # --- as the client sees it ---

    async def response(self, request: httpx2.Request) -> httpx2.Response:
        """The response, once it has begun. Raises `httpx2.RemoteProtocolError` if it never does."""
        try:
            await self._news.until(lambda: self.status is not None or self.has_returned or self._is_broken)
        except BaseException:
            self.leave()
            raise
        if self._is_broken or self.status is None:
            raise httpx2.RemoteProtocolError("the server disconnected without a response", request=request)
        return httpx2.Response(self.status, headers=self.fields, stream=_Stream(self), request=request)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises `httpx2.ReadError` where it breaks off."""
        while True:
            await self._news.until(lambda: bool(self._pieces) or self._is_complete or self._is_broken)
            if self._pieces:
                yield self._pieces.pop(0)
            elif self._is_complete:
                return
            else:
                raise httpx2.ReadError("the connection broke off")

    def leave(self) -> None:
        """Go away."""
        self.is_gone = self.is_gone or not self._is_complete
        self._news.tell()

    def break_off(self) -> None:
        """Let the connection fail: both ends find out."""
        self._is_broken = True
        self.leave()


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._exchange.pieces()

    async def aclose(self) -> None:
        self._exchange.leave()


def _scope(request: httpx2.Request) -> JSON:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.url.path,
        "raw_path": request.url.raw_path,
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
    }


class Wire(httpx2.AsyncBaseTransport):
    """Carries the requests of an `httpx2.AsyncClient` to an app. `plugged` tells whether it does."""

    def __init__(self, app: App, tasks: TaskGroup) -> None:
        self.app = app
        self.plugged = True
        self.exchanges: list[Exchange] = []
        self.http = httpx2.AsyncClient(transport=self)
        self._tasks = tasks
        self._news = News()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Take a request to the app."""
        body = await request.aread()
        if not self.plugged:
            raise httpx2.ConnectError("All connection attempts failed", request=request)
        exchange = Exchange(self.app, request, body, self._news)
        self.exchanges.append(exchange)
        self._news.tell()
        self._tasks.start_soon(exchange.run)
        return await exchange.response(request)

    def client(
        self, mode: Mode = "auto", *, headers: dict[str, str] | None = None, timeout: float = 30.0, **options: Any
    ) -> Client:
        """A client at this end of the wire."""
        parameters = StreamableHTTPParameters(url=URL, headers=headers or {}, timeout=timeout, http_client=self.http)
        return Client(parameters, mode=mode, **options)

    async def until(self, ready: Callable[[], object]) -> None:
        """Wait until this holds, looking again whenever something is sent either way. Fails after some seconds."""
        with anyio.fail_after(SECONDS):
            await self._news.until(lambda: bool(ready()))

    async def nth(self, what: str, number: int = 1) -> Exchange:
        """Wait for so many exchanges of this kind; the last of them."""
        await self.until(lambda: len(self.all(what)) >= number)
        return self.all(what)[number - 1]

    def all(self, what: str) -> list[Exchange]:
        """Every exchange of this kind, as `Exchange.what` tells it."""
        return [exchange for exchange in self.exchanges if exchange.what == what]

    @property
    def log(self) -> list[str]:
        """What was sent, in order."""
        return [exchange.what for exchange in self.exchanges]

    def unplug(self) -> None:
        """Break every connection that is open, and let no other be made."""
        self.plugged = False
        for exchange in self.exchanges:
            exchange.break_off()


@asynccontextmanager
async def wired(app: Any) -> AsyncGenerator[Wire, None]:
    """A wire to an app, or to the app of a server. At the end every exchange must come to its own."""
    if hasattr(app, "streamable_http_app"):
        app = app.streamable_http_app()
    failure: BaseException | None = None
    exchanges: list[Exchange] = []
    async with anyio.create_task_group() as tasks:
        wire = Wire(app, tasks)
        exchanges = wire.exchanges
        try:
            with anyio.fail_after(1.5 * SECONDS):  # within the time that a whole test has
                yield wire
                await wire.http.aclose()
                await wire.until(lambda: all(exchange.has_returned for exchange in exchanges))
        except BaseException as exc:
            failure = exc  # out of the group it would come in a group
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    assert [exchange.error for exchange in exchanges if exchange.error is not None] == []

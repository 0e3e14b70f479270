"""A client that calls an ASGI app in its own process, and plays the ASGI server to it.

`HTTP` sends requests and gives responses, whole or as they come. It can send a body in
any pieces, go away, and stop reading; it holds the app to the order of ASGI's messages,
and sees that every request ends. `ModernClient` and `HandshakeClient` speak MCP through it.
Works on asyncio and on trio.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import anyio

from mcp_core.testing import modern_meta

App: TypeAlias = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Any]], Callable[[MutableMapping[str, Any]], Awaitable[None]]],
    Awaitable[None],
]
Value: TypeAlias = str | bytes
Headers: TypeAlias = Mapping[str, Value | None]
"""Headers to send; `None` takes one away that would be sent otherwise."""

SECONDS: Final = 60.0
"""What anything may take before a test fails."""

BOTH: Final = "application/json, text/event-stream"
MODERN: Final = "2026-07-28"
NEWEST_HANDSHAKE: Final = "2025-11-25"


# --- what comes back -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """One block of an event stream; a comment is a block of its own."""

    data: str | None = None
    event: str | None = None
    id: str | None = None
    retry: int | None = None
    comment: str | None = None

    @classmethod
    def parse(cls, block: str) -> Event:
        """Read a block. Raises `AssertionError` for a line that no event stream has."""
        found: dict[str, Any] = {}
        for line in block.split("\n"):
            name, colon, value = line.partition(":")
            assert colon, f"a line without a field: {line!r}"
            name = name or "comment"
            assert name in ("data", "event", "id", "retry", "comment"), f"an unknown field: {line!r}"
            assert name not in found, f"a field twice in one event: {block!r}"
            found[name] = value.removeprefix(" ")
        if "retry" in found:
            found["retry"] = int(found["retry"])
        return cls(**found)

    @property
    def message(self) -> Any:
        """The JSON-RPC message that it brings."""
        assert self.event == "message"
        assert self.data
        return json.loads(self.data)


@dataclass(frozen=True)
class Response:
    """A response that has come to its end."""

    status: int
    fields: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The value of a header that is sent once at most."""
        found = [value for key, value in self.fields if key == name]
        assert len(found) < 2, f"{name} was sent {len(found)} times"
        return found[0] if found else None

    @property
    def json(self) -> Any:
        """The body, which must be JSON and say so."""
        assert self.header("content-type") == "application/json"
        assert self.header("content-length") == str(len(self.body))
        return json.loads(self.body)

    @property
    def events(self) -> list[Event]:
        """The body, which must be an event stream and say so; comments included."""
        assert self.header("content-type") == "text/event-stream"
        *blocks, rest = self.body.decode().split("\n\n")
        assert rest == "", f"the stream ends amid an event: {rest!r}"
        return [Event.parse(block) for block in blocks]

    @property
    def messages(self) -> list[Any]:
        """The JSON-RPC messages of the event stream."""
        return [event.message for event in self.events if event.data]

    @property
    def answer(self) -> Any:
        """The answer to the request, in whichever form it came."""
        return self.json if self.header("content-type") == "application/json" else self.messages[-1]


class News:
    """Something that others wait for to change."""

    def __init__(self) -> None:
        self._changed = anyio.Event()

    def tell(self) -> None:
        """Let those who wait look again."""
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def until(self, ready: Callable[[], bool]) -> None:
        """Wait until this holds."""
        while not ready():
            await self._changed.wait()


class Exchange:
    """One request under way, from both ends: the app's `receive` and `send`, and the client."""

    def __init__(
        self, app: App, scope: dict[str, Any], pieces: Iterable[bytes], *, cut_short: bool, raises_when_gone: bool
    ) -> None:
        self._app = app
        self._scope = scope
        self._pieces: Iterator[bytes] = iter(pieces)
        self._next_piece: bytes | None = next(self._pieces, b"")
        self._cut_short = cut_short
        self._raises_when_gone = raises_when_gone
        self._news = News()
        self._takes = math.inf
        self._is_gone = False
        self._has_returned = False
        self._is_complete = False
        self._read = 0
        self._body = bytearray()
        self._status: int | None = None
        self._fields: list[tuple[str, str]] = []
        self.error: Exception | None = None
        """What the app raised."""
        self.faults: list[str] = []
        """Where the app broke the rules of ASGI."""
        self.sent_late: list[MutableMapping[str, Any]] = []
        """What the app sent when the client had gone."""
        self.pieces_taken = 0

    # --- as the app sees it ---

    async def run(self) -> None:
        """Run the app."""
        try:
            await self._app(self._scope, self._receive, self._send)
        except Exception as exc:
            self.error = exc
        finally:
            self._has_returned = True
            self._news.tell()

    async def _receive(self) -> dict[str, Any]:
        if self._next_piece is not None and not self._is_gone:
            piece, self._next_piece = self._next_piece, next(self._pieces, None)
            self.pieces_taken += 1
            more = self._next_piece is not None or self._cut_short
            return {"type": "http.request", "body": piece, "more_body": more}
        if not self._cut_short:
            await self._news.until(lambda: self._is_gone or self._is_complete)
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        await self._news.until(lambda: self._takes > 0 or self._is_gone)
        self._takes -= 1
        if self._is_gone:
            self.sent_late.append(message)
            if self._raises_when_gone:
                raise OSError("the client is gone")
            return
        try:
            self._take(message)
        except AssertionError as exc:
            self.faults.append(f"{message['type']}: {exc}")
            raise
        finally:
            self._news.tell()

    def _take(self, message: MutableMapping[str, Any]) -> None:
        assert not self._is_complete, "sent after the response was complete"
        if message["type"] == "http.response.start":
            assert self._status is None, "a second response was started"
            self._status = message["status"]
            for name, value in message["headers"]:
                assert name == name.lower(), f"header name in upper case: {name!r}"
                self._fields.append((name.decode("ascii"), value.decode("latin-1")))
            return
        assert message["type"] == "http.response.body", "unknown"
        assert self._status is not None, "a body before the response was started"
        self._body += message.get("body", b"")
        self._is_complete = not message.get("more_body", False)

    # --- as the client sees it ---

    async def until(self, ready: Callable[[Exchange], bool]) -> None:
        """Wait until this holds, or fail."""
        with anyio.fail_after(SECONDS):
            await self._news.until(lambda: ready(self))

    @property
    def is_complete(self) -> bool:
        """Whether the whole response is here."""
        return self._is_complete

    @property
    def has_started(self) -> bool:
        """Whether the response has begun."""
        return self._status is not None

    @property
    def has_returned(self) -> bool:
        """Whether the app is done with the request."""
        return self._has_returned

    @property
    def so_far(self) -> Response:
        """What has come up to now."""
        assert self._status is not None
        return Response(self._status, list(self._fields), bytes(self._body))

    @property
    def comments(self) -> int:
        """How many comments have come on the stream."""
        return sum(1 for event in self._events if event.comment is not None)

    @property
    def _events(self) -> list[Event]:
        return [Event.parse(block) for block in self._body.decode().split("\n\n")[:-1]]

    async def started(self) -> Response:
        """Wait for the head of the response."""
        await self.until(lambda self: self.has_started or self._has_returned)
        return self.so_far

    async def next_event(self) -> Event:
        """Wait for the next event that is no comment."""

        def unread() -> list[Event]:
            return [event for event in self._events if event.comment is None][self._read :]

        await self.until(lambda self: bool(unread()) or self._is_complete or self._has_returned)
        event = next(iter(unread()), None)
        assert event is not None, "the response ended"
        self._read += 1
        return event

    async def next_message(self) -> Any:
        """Wait for the next JSON-RPC message, past events without one."""
        while not (event := await self.next_event()).data:
            pass
        return event.message

    async def response(self) -> Response:
        """Wait for the end of the response."""
        await self.until(lambda self: self._is_complete or self._has_returned)
        self.check()
        assert self._is_complete, "the app returned amid its response"
        return self.so_far

    async def returned(self) -> None:
        """Wait until the app is done with the request."""
        await self.until(lambda self: self._has_returned)

    def disconnect(self) -> None:
        """Go away."""
        self._is_gone = True
        self._news.tell()

    def stop_reading(self) -> None:
        """Take nothing more: whatever the app sends waits."""
        self._takes = 0

    def read_on(self, messages: float = math.inf) -> None:
        """Take what waits, and what comes; or so many of ASGI's messages only."""
        self._takes = messages
        self._news.tell()

    def check(self) -> None:
        """Raise what the app raised, and complain of what it did wrong."""
        assert not self.faults, self.faults
        if self.error is not None:
            raise self.error


# --- the client ------------------------------------------------------------------------------------------


class HTTP:
    """Sends requests to an app. `headers` go with every request, and `scope` into every scope."""

    def __init__(self, app: Any, *, headers: Headers | None = None, **scope: Any) -> None:
        self.app: App = app
        self.headers: dict[str, Value | None] = {"host": "127.0.0.1:8000", **(headers or {})}
        self.scope = scope

    @asynccontextmanager
    async def open(
        self,
        method: str = "POST",
        path: str = "/mcp",
        *,
        headers: Headers | None = None,
        repeated: Iterable[tuple[str, Value]] = (),
        body: bytes | Iterable[bytes] = b"",
        cut_short: bool = False,
        raises_when_gone: bool = False,
    ) -> AsyncGenerator[Exchange, None]:
        """A request whose response is read as it comes; at the end of the block the client goes away.

        Then the app must come to an end as well, or the block fails. `repeated` are headers
        that are sent besides, `cut_short` lets the client go amid its body, and
        `raises_when_gone` makes the app's `send` fail after that, as ASGI allows.
        """
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": _fields({**self.headers, **(headers or {})}, repeated),
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8000),
            **self.scope,
        }
        pieces = [body] if isinstance(body, bytes) else body
        exchange = Exchange(self.app, scope, pieces, cut_short=cut_short, raises_when_gone=raises_when_gone)
        failure: BaseException | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(exchange.run)
            try:
                yield exchange
                exchange.disconnect()
                await exchange.returned()
            except BaseException as exc:
                failure = exc  # out of the group it would come in a group
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        exchange.check()

    async def request(self, method: str = "POST", path: str = "/mcp", **options: Any) -> Response:
        """A request and its whole response. Options are those of `open`."""
        async with self.open(method, path, **options) as exchange:
            return await exchange.response()


def _fields(headers: Headers, repeated: Iterable[tuple[str, Value]]) -> list[tuple[bytes, bytes]]:
    given = [*((name, value) for name, value in headers.items() if value is not None), *repeated]
    return [
        (name.lower().encode("ascii"), value if isinstance(value, bytes) else value.encode("latin-1"))
        for name, value in given
    ]


# --- MCP through it ----------------------------------------------------------------------------------------


def line(message: Any) -> bytes:
    """A message as JSON; bytes as they are."""
    return message if isinstance(message, bytes) else json.dumps(message, separators=(",", ":")).encode()


NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def modern_headers(message: Any) -> dict[str, Value | None]:
    """The headers that a 2026-07-28 client sends with this message."""
    headers: dict[str, Value | None] = {
        "content-type": "application/json",
        "accept": BOTH,
        "mcp-protocol-version": MODERN,
        "mcp-method": message["method"],
    }
    named_by = NAMED_BY.get(message["method"])
    if named_by is not None:
        headers["mcp-name"] = message["params"][named_by]
    return headers


class ModernClient(HTTP):
    """A 2026-07-28 client."""

    @staticmethod
    def message(
        request_id: Any,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        capabilities: dict[str, Any] | None = None,
        meta: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """A request; `meta` are further members of its `_meta`."""
        carried = modern_meta(capabilities, **(meta or {}))
        return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**(params or {}), "_meta": carried}}

    def post(
        self, message: Any, *, headers: Headers | None = None, **options: Any
    ) -> AbstractAsyncContextManager[Exchange]:
        """Send a message, with its headers, and read the response as it comes."""
        return self.open(headers={**modern_headers(message), **(headers or {})}, body=line(message), **options)

    async def answer(self, message: Any, **options: Any) -> Response:
        """Send a message, with its headers; the whole response."""
        async with self.post(message, **options) as exchange:
            return await exchange.response()

    async def call(self, name: str, arguments: Any = None, *, request_id: Any = 1, **options: Any) -> Response:
        """Call a tool."""
        params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
        meta = options.pop("meta", None)
        capabilities = options.pop("capabilities", None)
        message = self.message(request_id, "tools/call", params, meta=meta, capabilities=capabilities)
        return await self.answer(message, **options)


class HandshakeClient(HTTP):
    """A client of the handshake era. Before `initialize`, or of a stateless server, it has no session."""

    def __init__(
        self, app: Any, *, revision: str = NEWEST_HANDSHAKE, headers: Headers | None = None, **scope: Any
    ) -> None:
        super().__init__(app, headers=headers, **scope)
        self.revision = revision
        self.session_id: str | None = None

    @property
    def own_headers(self) -> dict[str, Value | None]:
        """The headers of everything that comes after `initialize`."""
        with_version = self.revision if self.revision >= "2025-06-18" else None
        return {"mcp-session-id": self.session_id, "mcp-protocol-version": with_version}

    def opening(self, request_id: Any = 0, capabilities: dict[str, Any] | None = None) -> dict[str, Any]:
        """The `initialize` request."""
        params = {
            "protocolVersion": self.revision,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "c", "version": "1"},
        }
        return self.message(request_id, "initialize", params)

    async def initialize(self, capabilities: dict[str, Any] | None = None, **options: Any) -> Response:
        """Shake hands, and keep the session that is given."""
        self.session_id = None
        headers = {"mcp-protocol-version": None, **options.pop("headers", {})}
        response = await self.answer(self.opening(0, capabilities), headers=headers, **options)
        self.session_id = response.header("mcp-session-id")
        return response

    @staticmethod
    def message(request_id: Any, method: str, params: Any = None) -> dict[str, Any]:
        """A request."""
        message = {"jsonrpc": "2.0", "id": request_id, "method": method}
        return message if params is None else {**message, "params": params}

    @staticmethod
    def calling(name: str, arguments: Any = None, *, request_id: Any = 1, token: Any = None) -> dict[str, Any]:
        """A `tools/call`; `token` asks for progress."""
        params: dict[str, Any] = {"name": name, "arguments": arguments or {}}
        if token is not None:
            params["_meta"] = {"progressToken": token}
        return HandshakeClient.message(request_id, "tools/call", params)

    def post(
        self, message: Any, *, headers: Headers | None = None, **options: Any
    ) -> AbstractAsyncContextManager[Exchange]:
        """Send a message in the session, and read the response as it comes."""
        own: dict[str, Value | None] = {"content-type": "application/json", "accept": BOTH, **self.own_headers}
        return self.open(headers={**own, **(headers or {})}, body=line(message), **options)

    async def answer(self, message: Any, **options: Any) -> Response:
        """Send a message in the session; the whole response."""
        async with self.post(message, **options) as exchange:
            return await exchange.response()

    async def call(self, name: str, arguments: Any = None, *, request_id: Any = 1, **options: Any) -> Response:
        """Call a tool."""
        token = options.pop("token", None)
        return await self.answer(self.calling(name, arguments, request_id=request_id, token=token), **options)

    async def notify(self, method: str, params: Any = None) -> Response:
        """Send a notification."""
        message = {"jsonrpc": "2.0", "method": method}
        return await self.answer(message if params is None else {**message, "params": params})

    def get(
        self, *, last_event_id: str | None = None, headers: Headers | None = None
    ) -> AbstractAsyncContextManager[Exchange]:
        """Open the session's own stream, or take up one that broke off after this event."""
        own: dict[str, Value | None] = {
            "accept": "text/event-stream",
            "last-event-id": last_event_id,
            **self.own_headers,
        }
        return self.open("GET", headers={**own, **(headers or {})})

    async def delete(self, *, headers: Headers | None = None) -> Response:
        """End the session."""
        return await self.request("DELETE", headers={**self.own_headers, **(headers or {})})


# --- the app's lifespan ---------------------------------------------------------------------------------------


class Lifespan:
    """An app's lifespan, as an ASGI server tells it; `sent` are the types of what the app said."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.reasons: list[str] = []
        self._news = News()
        self._told = 0
        self._is_over = False

    async def run(self, app: App) -> None:
        """Run the app until it has ended."""
        await app({"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}}, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        self._told += 1
        if self._told == 1:
            return {"type": "lifespan.startup"}
        await self._news.until(lambda: self._is_over)
        return {"type": "lifespan.shutdown"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        self.sent.append(message["type"])
        self.reasons.append(message.get("message", ""))
        self._news.tell()

    async def has_sent(self, number: int) -> None:
        """Wait until the app has said so much."""
        with anyio.fail_after(SECONDS):
            await self._news.until(lambda: len(self.sent) >= number)

    def shut_down(self) -> None:
        """Tell the app to end."""
        self._is_over = True
        self._news.tell()


@asynccontextmanager
async def living(app: Any) -> AsyncGenerator[Lifespan, None]:
    """The app between the start and the end of its lifespan."""
    lifespan = Lifespan()
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lifespan.run, app)
        try:
            await lifespan.has_sent(1)
            yield lifespan
            lifespan.shut_down()
            await lifespan.has_sent(2)
        except BaseException as exc:
            failure = exc
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure

"""Target `client`: a hostile server against our client, over lines (a socket pair) and over HTTP (raw sockets).

The invariant: every call of the client ends within a bound, with a result or with an
exception of the library's; the client stays usable once the server is honest again, or says
that it is closed; it can be left within a bound; no task, descriptor or callback error is
left behind.
"""

from __future__ import annotations

import json
import os
import random
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import anyio
import anyio.lowlevel
from anyio.abc import SocketStream

from mcp_core import Client
from mcp_core import types as t
from mcp_core.backend import Backend, open_backend
from mcp_core.errors import ConnectionClosed, MCPCoreError
from mcp_core.testing import Inbox
from mcp_core.transports.http_client import StreamableHTTPParameters
from mcp_core.transports.lines import LineChannel
from tests.fuzz.generator import mutated
from tests.fuzz.hostile import honest, replies
from tests.fuzz.oracle import Tally, Violation

__all__ = ["Hostile"]

CLIENTS: Final = 10
"""Clients at a time: most of what they do is waiting for an answer that does not come."""

CALLS: Final = 12
PATIENCE: Final = 60.0
READ_TIMEOUT: Final = 0.1


class Behaviour:
    """What the server does, until it is made honest."""

    def __init__(self, seed: int, tally: Tally) -> None:
        self.rng = random.Random(seed)
        self.tally = tally
        self.is_honest = False

    def say(self, message: bytes) -> list[bytes]:
        """What is said to a message of the client's."""
        request: Any = json.loads(message)
        if "id" not in request or "method" not in request:
            return []
        said = [honest(request)] if self.is_honest else replies(self.rng, request)
        for data in said:
            self.tally.sends(data)
        return said


# --- over lines -----------------------------------------------------------------------------


class _LineServer(Inbox):
    """The other end of a line channel."""

    def __init__(self, behaviour: Behaviour, end: socket.socket) -> None:
        super().__init__()
        self._behaviour = behaviour
        self._end = end
        self.channel: LineChannel | None = None

    def receive(self, message: bytes) -> None:
        """Reply."""
        channel, rng = self.channel, self._behaviour.rng
        assert channel is not None
        for data in self._behaviour.say(message):
            channel.send(data)
        if not self._behaviour.is_honest and rng.random() < 0.01:
            how = rng.choice([socket.SHUT_WR, socket.SHUT_RD, socket.SHUT_RDWR])
            try:
                self._end.shutdown(how)
            except OSError:
                pass  # it was done before


@asynccontextmanager
async def _over_lines(behaviour: Behaviour) -> AsyncGenerator[Callable[..., Client], None]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        async with open_backend() as backend:
            server = _LineServer(behaviour, theirs)
            fd = theirs.fileno()
            server.channel = LineChannel(backend, fd, fd)
            backend.spawn(server.channel.run(server))

            def client(**options: Any) -> Client:
                made = Client("http://unused", **options)

                def opened(backend: Backend) -> Any:
                    return _opened(backend, ours.fileno())

                made._open = opened  # pyright: ignore[reportPrivateUsage]
                return made

            yield client
            server.channel.release()


@asynccontextmanager
async def _opened(backend: Backend, fd: int) -> AsyncGenerator[Any, None]:
    """As for a child process, without one."""
    channel = LineChannel(backend, fd, fd)

    def start(connect: Callable[[Any], Any]) -> Any:
        connection = connect(channel)
        backend.spawn(channel.run(connection))
        return connection

    try:
        yield start
    finally:
        with anyio.CancelScope(shield=True):
            await channel.flush(1.0)
            channel.stop()
            channel.release()


# --- over HTTP ------------------------------------------------------------------------------

STATUSES: Final = [200, 200, 200, 202, 204, 301, 302, 307, 308, 400, 401, 403, 404, 405, 429, 500, 502, 503, 100, 999]
TYPES: Final = [
    "application/json",
    "text/event-stream",
    "text/html",
    "application/json; charset=x",
    "",
    "\x00",
    "text/event-stream, x",
]
LOCATIONS: Final = ["/mcp", "/elsewhere", "http://[", "http://127.0.0.1:1/", "//", "file:///etc/passwd", ""]


class _HTTPServer:
    """Speaks HTTP, more or less."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour

    async def serve(self, stream: SocketStream) -> None:
        """Answer what comes on one connection."""
        try:
            async with stream:
                data = b""
                while True:
                    while b"\r\n\r\n" not in data:
                        data += await stream.receive()
                    head, _, data = data.partition(b"\r\n\r\n")
                    fields = {
                        line.partition(b":")[0].lower(): line.partition(b":")[2].strip()
                        for line in head.split(b"\r\n")[1:]
                    }
                    size = int(fields.get(b"content-length", b"0"))
                    while len(data) < size:
                        data += await stream.receive()
                    body, data = data[:size], data[size:]
                    if not await self._answer(stream, head.split(b" ")[0], body):
                        return
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, ValueError):
            return

    async def _answer(self, stream: SocketStream, method: bytes, body: bytes) -> bool:
        """Answer one request; whether there may be another on this connection."""
        behaviour, rng = self._behaviour, self._behaviour.rng
        said = behaviour.say(body) if body else []
        if behaviour.is_honest:
            await stream.send(response(200 if said else 202 if body else 405, "application/json", b"".join(said[:1])))
            return True
        if rng.random() < 0.4 and body:
            status, kind, payload = (200, "application/json", said[-1]) if said else (202, "", b"")
        else:
            status, kind, payload = rng.choice(STATUSES), rng.choice(TYPES), b" ".join(said[:2])
        if (kind == "text/event-stream") or (method == b"GET" and rng.random() < 0.3):
            kind, payload = "text/event-stream", b"".join(_event(rng, data) for data in said)
        whole = response(status, kind, payload, _fields(rng))
        return await self._spoilt(stream, whole)

    async def _spoilt(self, stream: SocketStream, whole: bytes) -> bool:
        rng = self._behaviour.rng
        how = rng.random()
        if how < 0.7:
            await stream.send(whole)
            return True
        if how < 0.8:
            await stream.send(mutated(rng, whole))
        elif how < 0.85:
            await stream.send(whole[: rng.randrange(len(whole))])
        elif how < 0.9:
            for at in range(0, min(len(whole), 40), 4):  # slowly
                await stream.send(whole[at : at + 4])
                await anyio.sleep(0.002)
            await stream.send(whole[40:] or b"\r\n")
            return True
        elif how < 0.95:
            await stream.send(whole + b"HTTP/1.1 200 OK\r\n\r\n" + whole)
        else:
            await stream.send(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * rng.choice([10, 3000]))
            await stream.send_eof()
        return False


def response(status: int, kind: str, body: bytes, more: list[str] | None = None) -> bytes:
    """One HTTP response."""
    lines = [f"HTTP/1.1 {status} x", f"content-length: {len(body)}", *(more or [])]
    if kind:
        lines.append(f"content-type: {kind}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def _fields(rng: random.Random) -> list[str]:
    return [
        field
        for field in (
            f"location: {rng.choice(LOCATIONS)}",
            f"mcp-session-id: {rng.choice(['s', '', 'é' * 20, 'x' * 5000, 'a b'])}",
            "content-encoding: gzip",
            "transfer-encoding: chunked",
            "www-authenticate: Bearer resource_metadata=",
            "content-length: 5",
            "connection: close",
            "retry-after: 1e9",
        )
        if rng.random() < 0.08
    ]


def _event(rng: random.Random, data: bytes) -> bytes:
    lines = [
        line
        for line in (
            b"id: 1",
            b"id: \0",
            b"retry: 1",
            b"retry: 99999999999999999999",
            b"event: message",
            b": x",
            b"id: " + b"x" * 3000,
        )
        if rng.random() < 0.15
    ]
    return b"\n".join([*lines, b"data: " + data]) + rng.choice([b"\n\n", b"\n\n", b"\n\n", b"\r\n\r\n", b"\n", b""])


@asynccontextmanager
async def _over_http(behaviour: Behaviour) -> AsyncGenerator[Callable[..., Client], None]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, _HTTPServer(behaviour).serve)

        def client(**options: Any) -> Client:
            return Client(StreamableHTTPParameters(url=f"http://127.0.0.1:{port}/mcp", timeout=2.0), **options)

        yield client
        tasks.cancel_scope.cancel()


# --- the client -----------------------------------------------------------------------------

Call = Callable[[Client], Awaitable[object]]


def _ignore(*_: Any) -> None:
    """A callback."""


CALLS_OF: Final[list[Call]] = [
    lambda client: client.list_tools(),
    lambda client: client.call_tool("x", {"a": "b"}),
    lambda client: client.call_tool("x", {"a": "b"}, progress_callback=_ignore),
    lambda client: client.list_resources(),
    lambda client: client.read_resource("u://x"),
    lambda client: client.list_prompts(cursor="c"),
    lambda client: client.get_prompt("p"),
    lambda client: client.request("bogus", {"x": 1}),
    lambda client: client.request("tools/list", {}, t.ListToolsResult),
]


def _accept(ctx: Any, params: Any) -> t.ElicitResult:
    return t.ElicitResult(action="accept", content={})


class Hostile:
    """Plays rounds of several clients at once."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    @classmethod
    @asynccontextmanager
    async def open(cls, tally: Tally) -> AsyncGenerator[Hostile, None]:
        """The target."""
        yield cls(tally)

    async def play(self, rng: random.Random, count: int) -> None:
        """A round of several clients. Raises `Violation`."""
        before = set(os.listdir("/proc/self/fd"))
        broken: list[Violation] = []

        async def one(seed: int) -> None:
            try:
                await self._client(random.Random(seed))
            except Exception as exc:
                found = _violation_in(exc)
                if found is None:
                    raise
                broken.append(found)

        async with anyio.create_task_group() as tasks:
            for _ in range(CLIENTS):
                tasks.start_soon(one, rng.randrange(2**32))
        if broken:
            raise broken[0]
        await anyio.lowlevel.checkpoint()
        left = len(set(os.listdir("/proc/self/fd")) - before)
        if left > 1:  # one may be that of the listing itself
            raise Violation(f"{left} descriptors were left open")

    async def _client(self, rng: random.Random) -> None:
        over = rng.choice([_over_lines, _over_http])
        behaviour = Behaviour(rng.randrange(2**32), self._tally)
        mode = rng.choice(["auto", "legacy", "2026-07-28"])
        options: dict[str, Any] = {
            "mode": mode,
            "read_timeout_seconds": READ_TIMEOUT,
            "probe_timeout_seconds": READ_TIMEOUT,
            "elicitation_callback": _accept,
            "logging_callback": _ignore,
            "message_handler": _ignore,
        }
        what = f"{over.__name__} {mode}"
        step = ["opening"]

        async def used() -> None:
            behaviour.is_honest = rng.random() < 0.5  # while it opens, or few would come to more
            async with make(**options) as client:
                step[0] = "using"
                behaviour.is_honest = False
                for _ in range(CALLS):
                    call = rng.choice(CALLS_OF)
                    await self._bounded(what, "a call", lambda call=call: call(client))  # type: ignore[misc]
                behaviour.is_honest = True
                await self._is_of_use(what, client)
                step[0] = "leaving"

        async with over(behaviour) as make:
            failure = await self._bounded(what, "the whole of it", used)
            if failure is not None and step[0] != "opening":
                raise Violation(f"{what}: {step[0]} raised {failure!r}")

    async def _is_of_use(self, what: str, client: Client) -> None:
        """Whether the client is, or says that it is closed. It may need a call to notice that a session is lost."""
        failure: Exception | None = None
        for _ in range(3):
            failure = await self._bounded(what, "a call at last", lambda: self._honest_call(client))
            if failure is None or isinstance(failure, ConnectionClosed):
                return
        raise Violation(f"{what}: the client is of no use any more, though the server is honest: {failure!r}")

    async def _honest_call(self, client: Client) -> None:
        """A call that an honest server answers; with time for a busy machine, and for a session to be begun anew."""
        await client.request("prompts/list", {}, t.ListPromptsResult, timeout=10.0)

    async def _bounded(self, what: str, step: str, call: Callable[[], Awaitable[object]]) -> Exception | None:
        """Make a call; the exception of the library that it ended with, if any."""
        with anyio.move_on_after(2 * PATIENCE if step == "the whole of it" else PATIENCE) as scope:
            try:
                await call()
            except MCPCoreError as exc:
                self._tally.answers += 1
                return exc
            except Violation:
                raise
            except Exception as exc:
                if (found := _violation_in(exc)) is not None:
                    raise found from None
                self._tally.exceptions += 1
                raise Violation(f"{what}: {step} raised {_chain(exc)}") from exc
            self._tally.answers += 1
        if scope.cancelled_caught:
            self._tally.lost += 1
            raise Violation(f"{what}: {step} did not end within {PATIENCE} s")
        return None


def _violation_in(exc: BaseException) -> Violation | None:
    """The violation that this is, or that is among others in this group."""
    if isinstance(exc, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", exc).exceptions
        return next((found for one in inner if (found := _violation_in(one)) is not None), None)
    return exc if isinstance(exc, Violation) else None


def _chain(exc: BaseException) -> str:
    """An exception and where it was raised."""
    import traceback

    if isinstance(exc, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", exc)
        return " | ".join(_chain(inner) for inner in group.exceptions)
    last = traceback.extract_tb(exc.__traceback__)[-3:]
    places = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(last))
    return f"{type(exc).__name__}: {str(exc)[:200]} at {places}"

"""Target `heads`: HTTP requests of any head and body, against the ASGI app, or (`--real`) uvicorn through sockets.

The invariant: the app keeps to ASGI's order of messages and raises nothing; every request
ends, soon after its client has gone at the latest; a status is one that a client's fault
explains; what is sent is JSON-RPC, as JSON or as events; no header costs more than in
proportion to its size.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, cast

import anyio

from mcp_core.backend import Backend, open_backend
from mcp_core.transports.streamable_http import InMemoryEventStore
from tests.fuzz.generator import Pool, mutated
from tests.fuzz.messages import PATIENCE, REVISIONS, handshake
from tests.fuzz.oracle import Tally, Violation, check_message
from tests.fuzz.program import make_server
from tests.http.asgi import BOTH, Exchange

__all__ = ["RequestHeads", "Request", "check_body", "request_of"]

ROUND: Final = 200
GOES_AFTER: Final = 0.02
"""Seconds after which a client whose request is not answered goes away."""

EXPLAINED: Final = {200, 202, 204, 400, 401, 403, 404, 405, 406, 409, 411, 413, 414, 415, 421, 422, 429, 431, 501, 503}
"""Statuses that say whose fault it was, or that the server is full."""

OPTIONS: Final[list[dict[str, Any]]] = [
    {},
    {"stateless_http": True},
    {"json_response": True},
    {"max_request_body_size": 5000, "host": "0.0.0.0"},
]
METHODS: Final = ["GET", "DELETE", "OPTIONS", "HEAD", "PUT", "PATCH", "post", "", "X" * 3000]
PATHS: Final = ["/mcp/", "/", "", "/mcp/x", "/health", "/.well-known/oauth-protected-resource/mcp", "/%2e", "/mc\udc80"]
VALUES: Final = [
    b"",
    b" ",
    b",",
    b"*/*",
    b"application/json",
    b"application/json;q=0",
    b"text/event-stream",
    b"text/event-stream;q=1e999, */*;q=x",
    b'application/json; charset="utf-8',
    b"2026-07-28",
    b"2025-11-25",
    b"1999-01-01",
    b"http://[",
    b"http://127.0.0.1:8000",
    b"null",
    b"127.0.0.1:99999",
    b"[::1]:80",
    b"Bearer " + b"a" * 50,
    b"=?base64?w6k=?=",
    b"=?base64?!?=",
    "é".encode(),
    b"\xff\xfe",
    b"\0",
    b"tools/call",
    b"x",
    b"-1",
    b"9" * 400,
    b"a,b;" * 1000,
    b";q=" * 2000,
    b'"' * 3000,
    b"=?base64?" + b"w6k=" * 1000 + b"?=",
]
NAMES: Final = [
    b"host",
    b"origin",
    b"accept",
    b"content-type",
    b"content-length",
    b"content-encoding",
    b"mcp-session-id",
    b"mcp-protocol-version",
    b"mcp-method",
    b"mcp-name",
    b"mcp-param-a",
    b"last-event-id",
    b"authorization",
    b"cookie",
    b"transfer-encoding",
    b"expect",
    b"",
]


class Request(NamedTuple):
    """One HTTP request."""

    method: str
    path: str
    fields: list[tuple[bytes, bytes]]
    pieces: list[bytes]
    cut_short: bool = False

    @property
    def size(self) -> bytes:
        """All that it says, in one."""
        lines = [f"{self.method} {self.path}".encode("utf-8", "replace"), *(b": ".join(field) for field in self.fields)]
        return b"\n".join([*lines, b"", *self.pieces])


def request_of(rng: random.Random, pool: Pool, sessions: list[bytes]) -> Request:
    """A request that is mostly legal."""
    method = "POST" if rng.random() < 0.9 else rng.choice(METHODS)
    path = "/mcp" if rng.random() < 0.95 else rng.choice(PATHS)
    body = b"" if method == "GET" else _body(rng, pool)
    fields = _fields(rng, body, sessions)
    if rng.random() < 0.4:
        _spoil(rng, fields)
    pieces = [body]
    if rng.random() < 0.1 and body:
        at = rng.randrange(len(body))
        pieces = [body[:at], b"", body[at:]]
    return Request(method, path, fields, pieces, cut_short=rng.random() < 0.02)


def _body(rng: random.Random, pool: Pool) -> bytes:
    kind = rng.random()
    if kind < 0.1:
        return handshake(rng.choice(REVISIONS))
    while True:
        given = pool.take(rng)
        # Such a call would last until its client goes, each of them some hundredths of a second.
        if not given.stalls or rng.random() < 0.02:
            return given.data


def _fields(rng: random.Random, body: bytes, sessions: list[bytes]) -> list[tuple[bytes, bytes]]:
    fields = [(b"host", b"127.0.0.1:8000"), (b"accept", BOTH.encode()), (b"content-type", b"application/json")]
    if rng.random() < 0.5:
        try:
            message: Any = json.loads(body)
        except (ValueError, RecursionError):
            message = None
        if isinstance(message, dict):
            said = cast("dict[str, Any]", message)
            fields += [(b"mcp-protocol-version", b"2026-07-28"), (b"mcp-method", _text(said.get("method")))]
            params: Any = said.get("params")
            if isinstance(params, dict):
                named = cast("dict[str, Any]", params)
                fields += [(b"mcp-name", _text(named[key])) for key in ("name", "uri") if key in named]
    elif sessions and rng.random() < 0.8:
        fields += [(b"mcp-session-id", rng.choice(sessions)), (b"mcp-protocol-version", rng.choice(REVISIONS).encode())]
    return fields


def _text(value: Any) -> bytes:
    return str(value).encode("utf-8", "replace")


def _spoil(rng: random.Random, fields: list[tuple[bytes, bytes]]) -> None:
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(fields))
        how = rng.random()
        if how < 0.2 and len(fields) > 1:
            del fields[at]
        elif how < 0.5:
            fields[at] = (fields[at][0], rng.choice(VALUES))
        elif how < 0.6:
            fields[at] = (fields[at][0], mutated(rng, fields[at][1])[:5000])
        elif how < 0.7:
            fields.append(fields[at])
        elif how < 0.95:
            fields.append((rng.choice(NAMES), rng.choice(VALUES)))
        else:
            fields += [(b"x-%d" % number, b"y" * 20) for number in range(300)]


def check_body(status: int, kind: str, body: bytes) -> int:
    """How many messages a response holds.

    Raises:
        Violation: They are none.
    """
    if status not in EXPLAINED:
        raise Violation(f"status {status}: {body[:300]!r}")
    if kind.startswith("text/event-stream"):
        blocks = body.decode().split("\n\n")
        data = [line[6:] for block in blocks[:-1] for line in block.split("\n") if line.startswith("data: ")]
        return sum(len(check_message(text.encode())) for text in data if text)
    if kind.startswith("application/json"):
        return len(check_message(body)) if b'"jsonrpc"' in body else 0
    return 0


class RequestHeads:
    """Plays rounds against apps in this process, one of each set of options."""

    def __init__(self, tally: Tally, backend: Backend) -> None:
        self._tally = tally
        self._backend = backend
        self._pool = Pool()
        options: list[dict[str, Any]] = [*OPTIONS, {"event_store": InMemoryEventStore()}]
        self._apps: list[Any] = [
            make_server().streamable_http_app(cancel_on_disconnect=True, max_sessions=300, **given) for given in options
        ]
        self._sessions: list[list[bytes]] = [[] for _ in options]

    @classmethod
    @asynccontextmanager
    async def open(cls, tally: Tally) -> AsyncGenerator[RequestHeads, None]:
        """The target."""
        async with open_backend() as backend:
            target = cls(tally, backend)
            yield target
            for app in target._apps:
                app.close()

    async def play(self, rng: random.Random, count: int) -> None:
        """A round of at most so many requests. Raises `Violation`."""
        at = rng.randrange(len(self._apps))
        for _ in range(min(ROUND, count)):
            request = request_of(rng, self._pool, self._sessions[at])
            said = request.size
            self._tally.sends(said)
            begun = time.process_time_ns()
            exchange = await self._send(at, request)
            took = time.process_time_ns() - begun
            self._check(at, exchange, said)
            if b"slow" not in said:
                await self._tally.took_async(said, took, lambda request=request: self._send(at, request))  # type: ignore[misc]
        answer = await self._send(at, Request("GET", "/nowhere", [(b"host", b"127.0.0.1:8000")], [b""]))
        if answer.so_far.status != 404:
            raise Violation(f"the app does not answer any more: {answer.so_far}")

    async def _send(self, at: int, request: Request) -> Exchange:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": "http",
            "path": request.path,
            "raw_path": request.path.encode("utf-8", "surrogateescape"),
            "query_string": b"",
            "root_path": "",
            "headers": request.fields,
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8000),
        }
        app = self._apps[at]
        exchange = Exchange(app, scope, request.pieces, cut_short=request.cut_short, raises_when_gone=False)
        timer = self._backend.call_later(GOES_AFTER, exchange.disconnect)
        try:
            with anyio.move_on_after(PATIENCE):
                await exchange.run()
        finally:
            timer.cancel()
        if not exchange.has_returned:
            raise Violation("the request did not end, though its client had gone")
        return exchange

    def _check(self, at: int, exchange: Exchange, said: bytes) -> None:
        if exchange.faults:
            raise Violation(f"against the rules of ASGI: {exchange.faults}")
        if exchange.error is not None:
            self._tally.exceptions += 1
            raise Violation(f"the app raised {exchange.error!r}")
        if not exchange.has_started:
            return
        response = exchange.so_far
        fields = dict(response.fields)
        self._tally.answers += check_body(response.status, fields.get("content-type", ""), response.body)
        self._tally.answered(said, len(response.body))
        session = fields.get("mcp-session-id")
        if session is not None and len(self._sessions[at]) < 50:
            self._sessions[at].append(session.encode())

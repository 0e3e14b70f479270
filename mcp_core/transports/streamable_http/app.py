"""Streamable HTTP as a plain ASGI app: both protocol eras on one path.

Takes each request through the guards, reads its body, and hands it to the era it is of.
Knows options, paths and the server; nothing of what messages mean.
Spec: basic/transports/streamable-http; R-HTTP-01, R-HS-01 to R-HS-12.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mcp_core.auth import AuthSettings, TokenVerifier
from mcp_core.backend import current_backend, is_cancellation, open_backend
from mcp_core.backend.interruptible import Interruptible
from mcp_core.endings import Endings
from mcp_core.errors import InternalError, InvalidRequest
from mcp_core.journal import Journal
from mcp_core.messages import Malformed, Notification, Request, decode_frame, is_batch
from mcp_core.revisions import is_modern
from mcp_core.starting import ServedWhileLoading, refuse_while_loading
from mcp_core.transports.streamable_http.answers import KEEP_ALIVE, Answer
from mcp_core.transports.streamable_http.bearer import BearerGuard
from mcp_core.transports.streamable_http.event_store import EventStore
from mcp_core.transports.streamable_http.exchange import ASGIReceive, ASGISend, Exchange, Gone, Refused, Scope
from mcp_core.transports.streamable_http.guards import Guard, TransportSecuritySettings, shown
from mcp_core.transports.streamable_http.handshake import delete_session, listen, post_batch, post_handshake
from mcp_core.transports.streamable_http.heads import Head, Header
from mcp_core.transports.streamable_http.marks import Marks
from mcp_core.transports.streamable_http.modern import CLAIM, claims_modern, malformed, post_modern
from mcp_core.transports.streamable_http.sessions import Session, Sessions
from mcp_core.transports.streamable_http.stateless import post_frame, post_stateless

if TYPE_CHECKING:
    from mcp_core.server import Server

__all__ = ["HTTPOptions", "StreamableHTTP"]

_journal = Journal(__name__)


class HTTPOptions(msgspec.Struct, kw_only=True, frozen=True):
    """How a server is served over HTTP.

    `host` is where it is bound: loopback lets in loopback names only, unless
    `transport_security` says more. `json_response` never streams to handshake-era
    clients, `stateless_http` keeps no sessions for them. With an `event_store` their
    streams can be taken up again. `cancel_on_disconnect` takes a handshake-era client
    that goes away for one that cancels, as a 2026-07-28 client always is.
    `max_request_body_size` is in bytes; `session_idle_timeout` and `keep_alive` (comments
    on open streams) in seconds. `health_path` answers GET with 200. With `auth` and a
    `token_verifier` every request needs a token, which handlers find as `ctx.auth`.
    """

    host: str = "127.0.0.1"
    streamable_http_path: str = "/mcp"
    json_response: bool = False
    stateless_http: bool = False
    event_store: EventStore | None = None
    transport_security: TransportSecuritySettings | None = None
    max_request_body_size: int = 4 * 2**20
    max_sessions: int = 10_000
    session_idle_timeout: float | None = 1800.0
    cancel_on_disconnect: bool = False
    keep_alive: float = 15.0
    health_path: str | None = None
    auth: AuthSettings | None = None
    token_verifier: TokenVerifier | None = None


class StreamableHTTP:
    """The ASGI app of one server. Mount it anywhere; its lifespan needs no wiring."""

    def __init__(self, server: Server[Any], options: HTTPOptions) -> None:
        self.server = server
        self.options = options
        self.sessions = Sessions(options.max_sessions, options.session_idle_timeout)
        self.endings = Endings()
        self._is_ending = False
        self.running: set[Interruptible] = set()
        self._guard = Guard(options.host, options.transport_security)
        if (options.auth is None) != (options.token_verifier is None):
            raise ValueError("auth and token_verifier go together: pass both")
        self.bearer: BearerGuard | None = None
        if options.auth is not None and options.token_verifier is not None:
            self.bearer = BearerGuard(options.auth, options.token_verifier)
        self.handshakes = frozenset(revision for revision in server.protocol_versions if not is_modern(revision))
        self._serves_handshakes = bool(self.handshakes)
        self._path = options.streamable_http_path.rstrip("/")
        self.marks = Marks(server)
        self.ready = False
        """Whether the server knows of the app."""

    async def __call__(self, scope: Scope, receive: ASGIReceive, send: ASGISend) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send)
        try:
            await self._routed(exchange)
        except Refused as refused:
            if not exchange.started:
                await exchange.refuse(refused)
        except Gone:
            return
        except BaseException as exc:
            if self._is_ending and is_cancellation(exc):
                return  # the server has no more time for it, which is no fault of it
            if not isinstance(exc, Exception):
                raise
            await self._failed(exchange, exc)

    async def _other(self, scope: Scope, receive: ASGIReceive, send: ASGISend) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    async def _failed(self, exchange: Exchange, exc: Exception) -> None:
        _journal.error("an HTTP request failed", exc=exc)
        if exchange.started:
            raise exc
        await exchange.refuse(Refused(500, InternalError("Internal server error")))

    # --- one request -----------------------------------------------------------------------------

    def _routed(self, exchange: Exchange) -> Awaitable[None]:
        """Whoever answers the request, to be awaited."""
        scope = exchange.scope
        if scope["path"] != self._path and not self._is_endpoint(scope):
            return self._elsewhere(exchange)
        exchange.head = self._guard.admit(scope)
        if self.bearer is not None:
            return self._proven(exchange, self.bearer)
        return self._post(exchange, None) if scope["method"] == "POST" else self._others(exchange, None)

    async def _proven(self, exchange: Exchange, bearer: BearerGuard) -> None:
        auth = await bearer.check(exchange.head)
        await (self._post if exchange.method == "POST" else self._others)(exchange, auth)

    def _others(self, exchange: Exchange, auth: Any) -> Awaitable[None]:
        if exchange.method in ("GET", "DELETE") and self._serves_handshakes and not exchange.head.states_modern:
            return (listen if exchange.method == "GET" else delete_session)(self, exchange, auth)
        raise self.method_not_allowed(exchange)

    def _is_endpoint(self, scope: Scope) -> bool:
        return _without_root(scope) == self._path

    async def _elsewhere(self, exchange: Exchange) -> None:
        health = self.options.health_path
        if health is not None and _without_root(exchange.scope) == health.rstrip("/"):
            await _published(exchange, b'{"status":"ok"}')
        elif self.bearer is not None and exchange.scope["path"].rstrip("/") in self.bearer.metadata_paths:
            await _published(exchange, self.bearer.metadata)
        else:
            raise Refused(404, InvalidRequest(f"nothing is served here; the endpoint is {self._path or '/'}"))

    async def _post(self, exchange: Exchange, auth: Any) -> None:
        head = exchange.head
        if not (head.is_json and head.accepts.json):
            self._check_media_types(head)
        body = await exchange.body(self.options.max_request_body_size)
        if head.states_modern or not self._serves_handshakes:
            await post_modern(self, exchange, body, auth)
            return
        # Members may be spelt with escapes.
        may_be_modern = CLAIM in body or b"\\u" in body
        stateless = self.options.stateless_http
        if stateless and not may_be_modern and await post_stateless(self, exchange, body, auth):
            return
        frame = decode_frame(body)
        if isinstance(frame, Malformed):
            if is_batch(body) and (stateless or b"mcp-session-id" in head.fields):
                await post_batch(self, exchange, body, auth)
                return
            raise malformed(frame, body)
        if may_be_modern and isinstance(frame, (Request, Notification)) and claims_modern(frame.params):
            await post_modern(self, exchange, body, auth)
        else:
            await (post_frame if stateless else post_handshake)(self, exchange, frame, auth)

    def _check_media_types(self, head: Head) -> None:
        if not head.is_json:
            declared = shown(head.fields.get(b"content-type"))
            raise Refused(415, InvalidRequest(f"Content-Type must be application/json; got {declared}"))
        accepts = head.accepts
        if not accepts.json and not accepts.stream:
            raise Refused(406, InvalidRequest("Accept must let in application/json or text/event-stream"))
        if self.options.json_response and not accepts.json and not head.states_modern:
            raise Refused(406, InvalidRequest("this server answers in JSON; Accept must let in application/json"))

    def method_not_allowed(self, exchange: Exchange) -> Refused:
        """405, for a method that is not served, or a stream that there is none of."""
        has_sessions = self._serves_handshakes and not self.options.stateless_http
        allowed = "GET, POST, DELETE" if has_sessions else "POST"
        why = f"Method Not Allowed: {exchange.method} is not served here; served are {allowed}"
        if has_sessions and exchange.method == "GET":
            why = "Method Not Allowed: GET takes Accept: text/event-stream and a Mcp-Session-Id; others use POST"

        return Refused(405, InvalidRequest(why), headers=[(b"allow", allowed.encode())])

    # --- streams -----------------------------------------------------------------------------------

    async def keep_alive(self, answer: Answer) -> None:
        """Write comments on the stream of an answer while there is one."""
        import anyio

        while True:
            await anyio.sleep(self.options.keep_alive)
            await answer.keep_alive()

    async def comment(self, exchange: Exchange) -> None:
        """Write comments on an open stream."""
        import anyio

        while True:
            await anyio.sleep(self.options.keep_alive)
            await exchange.write(KEEP_ALIVE)

    def follow(self, session: Session) -> Callable[[], None]:
        """Tell the client of a session of changes; the returned call ends that."""
        return self.server.follow(session)

    # --- life --------------------------------------------------------------------------------------

    async def state(self) -> Any:
        """What the server's lifespan yielded; it is entered by the first request if nobody did."""
        if not self.ready:
            self.ready = True
            self.server.on_change(self.marks.forget)
            self.server.attach(current_backend())
        return await self.server.state()

    async def _live(self, receive: ASGIReceive, send: ASGISend) -> None:
        """The lifespan as the ASGI server tells it."""
        await receive()
        try:
            refuse_while_loading("the HTTP app")
        except ServedWhileLoading as exc:
            await send({"type": "lifespan.startup.failed", "message": str(exc)})
            return
        part = "startup"
        try:
            async with open_backend() as backend, self.server.running():
                self.ready = True
                self.server.on_change(self.marks.forget)
                detach = self.server.attach(backend)
                await send({"type": "lifespan.startup.complete"})
                part = "shutdown"
                await receive()
                detach()
                self.close()
        except Exception as exc:
            _journal.error("the server's lifespan failed", exc=exc)
            await send({"type": f"lifespan.{part}.failed", "message": f"{type(exc).__name__}: {exc}"})
            return
        await send({"type": "lifespan.shutdown.complete"})

    def end_streams(self) -> None:
        """End what would go on for as long as its client likes; calls under way go on."""
        self._is_ending = True
        self.server.end_subscriptions()
        self.endings.come()
        self.sessions.end_streams()

    def close(self) -> None:
        """End streams and sessions; 2026-07-28 calls under way end as they are."""
        self.end_streams()
        self.sessions.end_all()

    def cut_off(self) -> None:
        """End everything now, calls under way too."""
        self.close()
        for work in list(self.running):
            work.interrupt()


def _without_root(scope: Scope) -> str:
    """Where a request goes, below the place that the app is mounted at, with or without a slash at the end.

    Clients and proxies do not follow redirects of a POST.
    """
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    if root and (path == root or path.startswith(f"{root.rstrip('/')}/")):
        path = path[len(root) :]
    return path.rstrip("/")


async def _published(exchange: Exchange, body: bytes) -> None:
    """Answer with what everybody may read, pages of any origin among them."""
    if exchange.method == "OPTIONS":
        await exchange.reply(204, b"", [_ANY_ORIGIN, *_PREFLIGHT])
    elif exchange.method in ("GET", "HEAD"):
        await exchange.reply(200, body, [_ANY_ORIGIN])
    else:
        raise Refused(405, InvalidRequest("Method Not Allowed"), headers=[(b"allow", b"GET, HEAD, OPTIONS")])


_PREFLIGHT: Final[list[Header]] = [
    (b"access-control-allow-methods", b"GET, HEAD, OPTIONS"),
    (b"access-control-allow-headers", b"*"),
]
_ANY_ORIGIN: Final[Header] = (b"access-control-allow-origin", b"*")

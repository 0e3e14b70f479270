"""Streamable HTTP as a plain ASGI app: both protocol eras on one path.

Takes each request through the guards, reads its body, and hands it to the era it is of.
Knows options, paths and the server; nothing of what messages mean.
Spec: basic/transports/streamable-http; R-HTTP-01, R-HS-01 to R-HS-12.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from mcp_core.auth import AccessToken
from mcp_core.backend import is_cancellation
from mcp_core.errors import InternalError, InvalidRequest
from mcp_core.messages import Malformed, Notification, Request, decode_frame, is_batch
from mcp_core.queue_logger import QueueLogger
from mcp_core.starting import ServedWhileLoading, refuse_while_loading
from mcp_core.transports.streamable_http.bearer import BearerGuard
from mcp_core.transports.streamable_http.exchange import (
    ASGIReceive,
    ASGISend,
    ClientDisconnected,
    Exchange,
    Refused,
    Scope,
)
from mcp_core.transports.streamable_http.guards import Guard, format_header
from mcp_core.transports.streamable_http.legacy_sessionless import post_frame, post_sessionless
from mcp_core.transports.streamable_http.legacy_sessions import delete_session, listen, post_batch, post_handshake
from mcp_core.transports.streamable_http.modern import CLAIM, claims_modern, malformed, post_modern
from mcp_core.transports.streamable_http.options import HTTPOptions
from mcp_core.transports.streamable_http.parsed_headers import ParsedHeaders
from mcp_core.transports.streamable_http.peers import SessionlessPeer
from mcp_core.transports.streamable_http.published import ProtectedResourceMetadata, publish, without_root
from mcp_core.transports.streamable_http.service import HTTPService

if TYPE_CHECKING:
    from mcp_core.server import Server

__all__ = ["StreamableHTTP"]

_log = QueueLogger(__name__)

ONCE: Final = frozenset((b"content-type", b"content-length", b"content-encoding", b"mcp-session-id", b"last-event-id"))
"""Headers of which a proxy may read the first and we the last: they are refused when sent twice, whatever they say.

Other headers are checked where they are read: `guards`, `bearer`, `mirrored`, `handshake_calls`.
"""


class StreamableHTTP(HTTPService):
    """The ASGI app of one server. Mount it anywhere.

    A host that passes the ASGI lifespan on need do no more. Others (Starlette, FastAPI and Quart do not pass it to what
    is mounted) are given `lifespan`, or the server's own lifespan ends with the event loop.
    """

    def __init__(self, server: Server[Any], options: HTTPOptions) -> None:
        super().__init__(server, options)
        self._guard = Guard(options.host, options.transport_security)
        self._path = options.streamable_http_path.rstrip("/")  # without the slash at its end: both spellings are served
        self._is_ending = False  # from `end_streams` on a cancelled request is the shutdown's doing, not an error

    @property
    def metadata(self) -> ProtectedResourceMetadata:
        """The protected resource metadata as an app of its own, where the host owns its path.

        Raises:
            LookupError: There is none without `auth`.
        """
        if self.bearer is None:
            raise LookupError("there is no protected resource metadata without auth= and token_verifier=")
        return ProtectedResourceMetadata(self.bearer)

    async def __call__(self, scope: Scope, receive: ASGIReceive, send: ASGISend) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send, self.server.observers)
        try:
            try:
                await self._routed(exchange)
            except Refused as refused:
                self._refused(exchange, await exchange.refuse(refused))
            except ClientDisconnected:
                self._refused(exchange, None)
                await exchange.abandon()
        except BaseException as exc:
            if self._is_ending and is_cancellation(exc):
                return  # the server has no more time for it, which is no fault of it
            if not isinstance(exc, Exception):
                raise
            await self._failed(exchange, exc)

    def _refused(self, exchange: Exchange, answer: bytes | None) -> None:
        """Tell observers of a request that was refused before anybody looked for its handler."""
        if exchange.asked is not None:
            peer = SessionlessPeer(self, exchange, self.server.lifespan_state, None, None)
            self.server.dispatcher.refused_request(exchange.asked, peer, answer)

    async def _other(self, scope: Scope, receive: ASGIReceive, send: ASGISend) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    async def _failed(self, exchange: Exchange, exc: Exception) -> None:
        _log.error("an HTTP request failed", exc=exc)
        if exchange.started:
            raise exc
        self._refused(exchange, await exchange.refuse(Refused(500, InternalError("Internal server error"))))

    # --- one request -----------------------------------------------------------------------------

    def _routed(self, exchange: Exchange) -> Awaitable[None]:
        """Return the coroutine that answers the request."""
        scope = exchange.scope
        if scope["path"] != self._path and not self._is_endpoint(scope):
            return self._elsewhere(exchange)
        exchange.parsed_headers = self._guard.admit(scope)
        if self.bearer is not None:
            return self._proven(exchange, self.bearer)
        return self._post(exchange, None) if scope["method"] == "POST" else self._others(exchange, None)

    async def _proven(self, exchange: Exchange, bearer: BearerGuard) -> None:
        auth = await bearer.check(exchange.parsed_headers)
        await (self._post if exchange.method == "POST" else self._others)(exchange, auth)

    def _others(self, exchange: Exchange, auth: AccessToken | None) -> Awaitable[None]:
        if exchange.parsed_headers.repeated:
            _check_once(exchange.parsed_headers)
        if (
            exchange.method in ("GET", "DELETE")
            and self.serves_handshakes
            and not exchange.parsed_headers.states_modern
        ):
            return (listen if exchange.method == "GET" else delete_session)(self, exchange, auth)
        raise self.method_not_allowed(exchange)

    def _is_endpoint(self, scope: Scope) -> bool:
        return without_root(scope) == self._path

    async def _elsewhere(self, exchange: Exchange) -> None:
        health = self.options.health_path
        if health is not None and without_root(exchange.scope) == health.rstrip("/"):
            await publish(exchange, b'{"status":"ok"}')
        elif self.bearer is not None and self.bearer.publishes_at(exchange.scope["path"], without_root(exchange.scope)):
            await publish(exchange, self.bearer.metadata)
        else:
            raise Refused(404, InvalidRequest(f"nothing is served here; the endpoint is {self._path or '/'}"))

    async def _post(self, exchange: Exchange, auth: AccessToken | None) -> None:
        head = exchange.parsed_headers
        if head.repeated:
            _check_once(head)
        if not (head.is_json and head.accepts.json):
            self._check_media_types(head)
        body = await exchange.body(self.options.max_request_body_size, self.options.max_json_values)
        observers = self.server.observers
        if observers.message_received:
            observers.call(observers.message_received, body)
        if head.states_modern or not self.serves_handshakes:
            await post_modern(self, exchange, body, auth)
            return
        # Members may be spelt with escapes: of a slash there are two.
        may_be_modern = CLAIM in body or (b"\\" in body and (b"\\u" in body or b"\\/" in body))
        sessionless = self.options.stateless_http
        if sessionless and not may_be_modern and await post_sessionless(self, exchange, body, auth):
            return
        frame = decode_frame(body)
        if isinstance(frame, Malformed):
            if is_batch(body) and (sessionless or b"mcp-session-id" in head.fields):
                await post_batch(self, exchange, body, auth)
                return
            raise malformed(frame, body)
        if isinstance(frame, Request):
            exchange.asked = frame
        if may_be_modern and isinstance(frame, (Request, Notification)) and claims_modern(frame.params):
            await post_modern(self, exchange, body, auth)
        else:
            await (post_frame if sessionless else post_handshake)(self, exchange, frame, auth)

    def _check_media_types(self, head: ParsedHeaders) -> None:
        if not head.is_plain:
            coding = format_header(head.fields.get(b"content-encoding"))
            wrong = InvalidRequest(f"Content-Encoding must be identity, or not sent; got {coding}")
            raise Refused(415, wrong, headers=[(b"accept-encoding", b"identity")])
        if not head.is_json:
            declared = format_header(head.fields.get(b"content-type"))
            raise Refused(415, InvalidRequest(f"Content-Type must be application/json; got {declared}"))
        accepts = head.accepts
        if not accepts.json and not accepts.stream:
            raise Refused(406, InvalidRequest("Accept must let in application/json or text/event-stream"))
        if self.options.json_response and not accepts.json and not head.states_modern:
            raise Refused(406, InvalidRequest("this server answers in JSON; Accept must let in application/json"))

    # --- life --------------------------------------------------------------------------------------

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncGenerator[None, None]:
        """The server's lifespan, for a host that does not pass ASGI's on to what is mounted.

        `Starlette(routes=[Mount("/", app)], lifespan=app.lifespan)`; in a lifespan of your own,
        `async with app.lifespan():`.
        """
        async with self.server.running():
            self._is_ending = False
            self.homes.add()
            try:
                yield
            finally:
                self.homes.remove()
                self.close()

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
            async with self.lifespan():
                await send({"type": "lifespan.startup.complete"})
                part = "shutdown"
                await receive()
        except Exception as exc:
            _log.error("the server's lifespan failed", exc=exc)
            await send({"type": f"lifespan.{part}.failed", "message": f"{type(exc).__name__}: {exc}"})
            return
        await send({"type": "lifespan.shutdown.complete"})

    def end_streams(self) -> None:
        """Close long-lived streams (GET streams, subscriptions); requests in flight go on."""
        self._is_ending = True
        self.server.end_subscriptions()
        self.close_callbacks.run()
        self.sessions.end_streams()

    def close(self) -> None:
        """End streams and sessions; 2026-07-28 requests in flight end by themselves."""
        self.end_streams()
        self.sessions.end_all()

    def cut_off(self) -> None:
        """End everything now, requests in flight included."""
        self.close()
        for work in list(self.running):
            work.interrupt()


def _check_once(head: ParsedHeaders) -> None:
    twice = ONCE & head.repeated
    if twice:
        raise Refused(400, InvalidRequest(f"{min(twice).decode().title()} may be sent once"))

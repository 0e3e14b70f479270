"""What all requests to one server over HTTP share: options, sessions, streams, and the server itself.

The modules of the eras are handed it, and `app` builds on it. Knows nothing of how a request is routed.
Spec: basic/transports/streamable-http.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio

from mcp_core.backend.home import Home, running_loop
from mcp_core.backend.interruptible import Interruptible
from mcp_core.close_callbacks import CloseCallbacks
from mcp_core.errors import InvalidRequest
from mcp_core.queue_logger import QueueLogger
from mcp_core.revisions import is_modern
from mcp_core.subscriptions import Event
from mcp_core.transports.streamable_http.bearer import BearerGuard
from mcp_core.transports.streamable_http.exchange import Exchange, Refused
from mcp_core.transports.streamable_http.options import HTTPOptions
from mcp_core.transports.streamable_http.responses import KEEP_ALIVE, HTTPResponse
from mcp_core.transports.streamable_http.resumable import GuardedStore
from mcp_core.transports.streamable_http.sessions import HTTPSession, SessionTable
from mcp_core.transports.streamable_http.tool_headers import HeaderParameterCache

if TYPE_CHECKING:
    from mcp_core.server import Server

__all__ = ["HTTPService"]

_log = QueueLogger(__name__)


class Homes:
    """The loops that an app is served on, each for as long as there is it: it announces changes there."""

    def __init__(self, server: Server[object]) -> None:
        self._server = server
        # By event loop, what undoes its attachment; a loop that is gone needs none.
        self._detach: weakref.WeakKeyDictionary[Any, Callable[[], None]] = weakref.WeakKeyDictionary()
        self._last: Callable[[], Any] = lambda: None

    def has_running(self) -> bool:
        """Return whether the one that was added last runs, in whatever thread: it publishes for all of them."""
        loop = self._last()
        try:
            return loop is not None and loop.is_running()
        except AttributeError:  # the token of trio's
            return loop is running_loop()

    def add(self) -> None:
        """Add the running loop, if it is not there."""
        loop = running_loop()
        if loop not in self._detach:
            self._detach[loop] = self._server.attach(Home())
        self._last = weakref.ref(loop)

    def remove(self) -> None:
        """Announce nothing on the running loop any more."""
        detach = self._detach.pop(running_loop(), None)
        self._last = lambda: None
        if detach is not None:
            detach()


class HTTPService:
    """One server over HTTP, as the modules of both eras know it."""

    def __init__(self, server: Server[Any], options: HTTPOptions) -> None:
        self.server = server
        self.options = options
        self.sessions: SessionTable = SessionTable(options.max_sessions, options.session_idle_timeout)
        self.store: GuardedStore | None = None if options.event_store is None else GuardedStore(options.event_store)
        # Of subscriptions that are open; run when the server shuts down.
        self.close_callbacks: CloseCallbacks = CloseCallbacks()
        # Suspended 2026-07-28 handlers, which the shutdown may interrupt; those of sessions are theirs.
        self.running: set[Interruptible] = set()
        self.bearer: BearerGuard | None = None
        if options.auth is not None and options.token_verifier is not None:
            self.bearer = BearerGuard(options.auth, options.token_verifier)
        self.handshakes: frozenset[str] = frozenset(r for r in server.protocol_versions if not is_modern(r))
        self.serves_handshakes: bool = bool(self.handshakes)
        self.header_parameters: HeaderParameterCache = HeaderParameterCache(server)
        self.homes: Homes = Homes(server)
        self._has_warned = False  # said once that no host passes the lifespan on
        self._follow_changes()

    def _follow_changes(self) -> None:
        """Have the header parameters forgotten when tools change; for as long as there is this app."""
        known = weakref.WeakMethod(self.header_parameters.forget)

        def changed(event: Event) -> None:
            forget = known()
            if forget is not None:
                forget(event)

        weakref.finalize(self.header_parameters, self.server.on_change(changed, anywhere=True))

    @property
    def is_ready(self) -> bool:
        """Whether changes that are announced are published."""
        return self.homes.has_running()

    def method_not_allowed(self, exchange: Exchange) -> Refused:
        """405, for a method that is not served, or a stream that there is none of."""
        has_sessions = self.serves_handshakes and not self.options.stateless_http
        allowed = "GET, POST, DELETE" if has_sessions else "POST"
        why = f"Method Not Allowed: {exchange.method} is not served here; served are {allowed}"
        if has_sessions and exchange.method == "GET":
            why = "Method Not Allowed: GET takes Accept: text/event-stream and a Mcp-Session-Id; others use POST"
        return Refused(405, InvalidRequest(why), headers=[(b"allow", allowed.encode())])

    # --- streams -----------------------------------------------------------------------------------

    async def keep_alive(self, answer: Callable[[], HTTPResponse]) -> None:
        """Show a client that its request is worked on: open the stream of the response, write comments."""
        while True:
            await anyio.sleep(self.options.keep_alive)
            answer().keep_alive()

    async def comment(self, exchange: Exchange) -> None:
        """Write comments on an open stream."""
        while True:
            await anyio.sleep(self.options.keep_alive)
            await exchange.write(KEEP_ALIVE)

    def follow(self, session: HTTPSession) -> Callable[[], None]:
        """Notify the client of a session of changes. Returns a function that ends that."""
        return self.server.follow(session)

    async def state(self) -> object:
        """Return what the server's lifespan yielded; it is entered by the first request if it was not before."""
        self.homes.add()
        if self.server.lifespan_state is None and not self._has_warned:
            self._has_warned = True
            _log.warning(
                "the lifespan of %r is entered by a request, and ends with the event loop: "
                "its host does not pass it on; give the host lifespan=app.lifespan",
                self.server.name,
            )
        return await self.server.enter_lifespan()

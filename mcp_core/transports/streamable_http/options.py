"""How a server is served over HTTP: the options, checked when they are set.

Knows what each option may be; nothing of what is done with it.
Spec: basic/transports/streamable-http; the options themselves are this library's.
"""

from __future__ import annotations

import msgspec

from mcp_core.auth import AuthSettings, TokenVerifier
from mcp_core.transports.streamable_http import checks
from mcp_core.transports.streamable_http.event_store import EventStore
from mcp_core.transports.streamable_http.guards import TransportSecuritySettings

__all__ = ["HTTPOptions"]


class HTTPOptions(msgspec.Struct, kw_only=True, frozen=True):
    """How a server is served over HTTP.

    `host` is where it is bound: loopback lets in loopback names only, unless
    `transport_security` says more. `json_response` never streams to handshake-era
    clients, `stateless_http` keeps no sessions for them. With an `event_store` their
    streams can be taken up again. `cancel_on_disconnect` takes a handshake-era client
    that goes away for one that cancels, as a 2026-07-28 client always is.
    `max_request_body_size` is in bytes; `max_json_values` are the elements, members, objects and
    arrays of a body, whose decoding holds up everybody else; `session_idle_timeout` and
    `keep_alive` in seconds: a call that is not answered by then opens its stream, and comments go
    on open streams. `health_path` answers GET with 200. With `auth` and a `token_verifier` every
    request needs a token, which handlers find as `ctx.auth`.

    Raises:
        TypeError, ValueError: An option is not what it must be; the text names it.
    """

    host: str = "127.0.0.1"
    streamable_http_path: str = "/mcp"
    json_response: bool = False
    stateless_http: bool = False
    event_store: EventStore | None = None
    transport_security: TransportSecuritySettings | None = None
    max_request_body_size: int = 4 * 2**20
    max_json_values: int | None = 50_000
    max_sessions: int = 10_000
    session_idle_timeout: float | None = 1800.0
    cancel_on_disconnect: bool = False
    keep_alive: float = 15.0
    health_path: str | None = None
    auth: AuthSettings | None = None
    token_verifier: TokenVerifier | None = None

    def __post_init__(self) -> None:
        checks.text("host", self.host, "a host name or an address")
        checks.path("streamable_http_path", self.streamable_http_path)
        checks.optional_path("health_path", self.health_path)
        for option in ("json_response", "stateless_http", "cancel_on_disconnect"):
            checks.flag(option, getattr(self, option))
        checks.offers("event_store", self.event_store, "an EventStore", "store_event", "replay_events_after")
        checks.offers("token_verifier", self.token_verifier, "a TokenVerifier", "verify_token")
        checks.instance("transport_security", self.transport_security, TransportSecuritySettings)
        checks.instance("auth", self.auth, AuthSettings)
        checks.positive("max_request_body_size", self.max_request_body_size, "bytes")
        if self.max_json_values is not None:
            checks.positive("max_json_values", self.max_json_values, "values")
        checks.positive("max_sessions", self.max_sessions, "sessions")
        checks.seconds("session_idle_timeout", self.session_idle_timeout, or_none=True)
        checks.seconds("keep_alive", self.keep_alive)
        if self.health_path is not None and self.health_path.rstrip("/") == self.streamable_http_path.rstrip("/"):
            raise ValueError(f"health_path must not be the streamable_http_path; got {self.health_path!r} for both")
        if (self.auth is None) != (self.token_verifier is None):
            raise ValueError("auth and token_verifier go together: pass both")
        if self.auth is not None:
            checks.url("issuer_url", self.auth.issuer_url)
            checks.url("resource_server_url", self.auth.resource_server_url)
            if self.auth.resource_metadata_url is not None:
                checks.url("resource_metadata_url", self.auth.resource_metadata_url)
            checks.strings("required_scopes", self.auth.required_scopes)

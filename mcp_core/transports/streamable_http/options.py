"""How a server is served over HTTP: the options, checked when they are set.

Knows what each option may be; nothing of what is done with it.
Spec: basic/transports/streamable-http; the options themselves are this library's.
"""

from __future__ import annotations

from typing import TypedDict

import msgspec

from mcp_core.auth import AuthSettings, TokenVerifier
from mcp_core.codec import ReadableObject
from mcp_core.transports.streamable_http import checks
from mcp_core.transports.streamable_http.event_store import EventStore
from mcp_core.transports.streamable_http.guards import TransportSecuritySettings

__all__ = ["HTTPKeywords", "HTTPOptions", "RunHTTPKeywords"]


class HTTPOptions(msgspec.Struct, kw_only=True, frozen=True):
    """How a server is served over HTTP.

    Raises:
        TypeError, ValueError: An option is not what it must be; the text names it.
    """

    host: str = "127.0.0.1"
    """Where the server is bound. On loopback only loopback names and pages are let in."""
    streamable_http_path: str = "/mcp"
    """Path of the endpoint."""
    json_response: bool = False
    """Never answer handshake-era clients with an SSE stream: what comes before the result is dropped."""
    stateless_http: bool = False
    """Keep no sessions for handshake-era clients: no requests of the server, no subscriptions."""
    event_store: EventStore | None = None
    """Stores sent events, so that handshake-era clients can resume a stream with `Last-Event-ID`. `None`: no
    resumption.
    """
    transport_security: TransportSecuritySettings | None = None
    """Further hosts and origins that are let in, or no such check. `None`: what `host` says."""
    max_request_body_size: int = 4 * 2**20
    """Bytes of a request body; a larger one is refused with 413."""
    max_json_values: int | None = 50_000
    """Elements, members, objects and arrays of a body, whose decoding holds up all other requests; more are refused
    with 413. `None`: any number.
    """
    max_sessions: int = 10_000
    """Sessions at a time; a further one is refused with 503 where no idle one can go."""
    session_idle_timeout: float | None = 1800.0
    """Seconds without a request after which a session is closed. `None`: never."""
    cancel_on_disconnect: bool = False
    """Cancel the request of a handshake-era client that disconnects. Those of 2026-07-28 always are."""
    keep_alive: float = 15.0
    """Seconds after which an unanswered request opens its stream, and between comments on open streams."""
    health_path: str | None = None
    """Path that answers GET with 200. `None`: none."""
    auth: AuthSettings | None = None
    """What a Bearer token must be valid for; every request needs one, which handlers find as `ctx.auth`. Goes with
    `token_verifier`.
    """
    token_verifier: TokenVerifier | None = None
    """Verifies Bearer tokens. Goes with `auth`."""

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


class HTTPKeywords(TypedDict, total=False):
    """The fields of `HTTPOptions`, as keywords of `streamable_http_app`."""

    host: str
    streamable_http_path: str
    json_response: bool
    stateless_http: bool
    event_store: EventStore | None
    transport_security: TransportSecuritySettings | None
    max_request_body_size: int
    max_json_values: int | None
    max_sessions: int
    session_idle_timeout: float | None
    cancel_on_disconnect: bool
    keep_alive: float
    health_path: str | None
    auth: AuthSettings | None
    token_verifier: TokenVerifier | None


class RunHTTPKeywords(HTTPKeywords, total=False):
    """The options of `run("streamable-http")`."""

    port: int
    """0 is any that is free. Default: 8000."""
    workers: int
    """Processes behind the port, each with a server of its own, made by importing the program again. Default: 1."""
    uvicorn: ReadableObject
    """Further settings of `uvicorn.Config`."""

"""Which hosts are served and which origins are let in: what is checked before anything else.

Knows HTTP headers; nothing of JSON-RPC.
Spec: basic/transports/streamable-http, "Security & Endpoint".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from mcp_core.errors import InvalidRequest
from mcp_core.transports.streamable_http import checks
from mcp_core.transports.streamable_http.exchange import Refused, Scope
from mcp_core.transports.streamable_http.parsed_headers import KEPT, Header, ParsedHeaders, ParsedHeadersCache

__all__ = [
    "LOOPBACK",
    "MAX_HEADERS",
    "MAX_HEADER_BYTES",
    "MAX_MEDIA_TYPES",
    "Guard",
    "TransportSecuritySettings",
    "format_header",
]

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")

MAX_HEADERS: Final = 1024
"""Header lines of one request."""

MAX_HEADER_BYTES: Final = 65_536
"""Bytes of all of them."""

MAX_MEDIA_TYPES: Final = 1024
"""Bytes of `Accept`, and of `Content-Type`: what they say is found out part by part, and kept."""


class TransportSecuritySettings(msgspec.Struct, kw_only=True, frozen=True):
    """Which `Host` and `Origin` headers are let in, against DNS rebinding.

    A host is `example.com` (with its scheme's port or none), `example.com:8000`, or
    `example.com:*`; an origin the same with its scheme before it. `"*"` lets all in.
    """

    enable_dns_rebinding_protection: bool = True
    allowed_hosts: list[str] = []
    allowed_origins: list[str] = []

    def __post_init__(self) -> None:
        checks.flag("enable_dns_rebinding_protection", self.enable_dns_rebinding_protection)
        checks.header_values("allowed_hosts", self.allowed_hosts, "example.com:*", has_scheme=False)
        checks.header_values("allowed_origins", self.allowed_origins, "https://example.com", has_scheme=True)


class Guard:
    """Checks `Host` and `Origin`.

    Without settings, a server bound to loopback serves loopback names only, and any other
    serves every host, but pages of its own origin only.
    """

    def __init__(self, host: str, settings: TransportSecuritySettings | None) -> None:
        loopback = host in LOOPBACK or host == "::1" or host.startswith("127.")
        # Headers that were let in, so that repeating them costs a lookup; refused ones never.
        self._admitted = ParsedHeadersCache()
        self._off = settings is not None and not settings.enable_dns_rebinding_protection
        given = settings or TransportSecuritySettings()
        own = [f"{name}:*" for name in {*LOOPBACK, host}] if loopback else []
        # `None`: every host is let in.
        self._hosts: list[str] | None = [*given.allowed_hosts, *own] if given.allowed_hosts or loopback else None
        self._origins = [
            *given.allowed_origins,
            *(f"{scheme}://{name}" for name in own for scheme in ("http", "https")),
        ]

    def admit(self, scope: Scope) -> ParsedHeaders:
        """Return the header lines of a request that is let in.

        Raises:
            Refused: The host (421) or the origin (403) is not let in, or the lines are too many or too
                long (431).
        """
        scheme: str = scope.get("scheme", "http")
        lines = tuple(scope["headers"])  # once: it may be an iterator
        try:
            head = self._admitted.get((scheme, lines))
        except TypeError:  # lines that are lists, which ASGI allows too
            head, lines = None, tuple([(bytes(name), bytes(value)) for name, value in lines])
        return self._read(scheme, lines) if head is None else head

    def _read(self, scheme: str, lines: tuple[Header, ...]) -> ParsedHeaders:
        """Return the head of lines that are not known as they are."""
        if len(lines) > MAX_HEADERS:
            raise Refused(431, InvalidRequest(f"there are more than {MAX_HEADERS} headers"))
        others = [line for line in lines if line[0] not in KEPT]
        if not others:
            return self._let_in(scheme, lines)
        lasting = tuple([line for line in lines if line[0] in KEPT])
        base = self._admitted.get((scheme, lasting)) or self._let_in(scheme, lasting)
        _check_bytes(others, base.size)
        return base.extended(lines, others) or ParsedHeaders(lines)

    def _let_in(self, scheme: str, lines: tuple[Header, ...]) -> ParsedHeaders:
        # Nothing of the lines is read, and nothing kept, before it is known who sends them.
        if not self._off:
            self._check(lines, scheme)
        _check_size(lines)
        head = ParsedHeaders(lines)
        self._admitted.keep(scheme, lines, head)
        return head

    def _check(self, lines: tuple[Header, ...], scheme: str) -> None:
        hosts = [value for name, value in lines if name == b"host"]
        origins = [value for name, value in lines if name == b"origin"]
        if len(hosts) > 1 or len(origins) > 1:
            raise Refused(400, InvalidRequest("Host and Origin may be sent once"))
        host, origin = next(iter(hosts), None), next(iter(origins), None)
        port = "443" if scheme == "https" else "80"
        if not self._lets_in(host, self._hosts, port):
            raise Refused(
                421,
                InvalidRequest(
                    f"Invalid Host header {format_header(host)}: add it to allowed_hosts (transport_security)"
                ),
            )
        if origin is not None and not self._lets_in(origin, self._origins, port) and not _is_same(origin, host):
            raise Refused(
                403,
                InvalidRequest(
                    f"Invalid Origin header {format_header(origin)}: add it to allowed_origins (transport_security)"
                ),
            )

    @staticmethod
    def _lets_in(value: bytes | None, allowed: list[str] | None, port: str) -> bool:
        if allowed is None:
            return True
        if value is None:
            return False
        text = value.decode("latin-1").strip().lower()
        return any(_matches(text, pattern.lower(), port) for pattern in allowed)


def _matches(value: str, pattern: str, port: str) -> bool:
    if pattern in ("*", value) or value == f"{pattern}:{port}":
        return True
    if not pattern.endswith(":*"):
        return False
    name = pattern[:-2]
    given = value.removeprefix(f"{name}:")
    return value == name or (given != value and given.isdigit())


def _is_same(origin: bytes, host: bytes | None) -> bool:
    """Return whether a page of this very server calls, under a host that has been let in.

    An origin has no path (RFC 6454, 7.1). No URL parser: those raise for some texts, and keep all they see.
    """
    scheme, _, name = origin.strip().lower().partition(b"://")
    return host is not None and scheme in (b"http", b"https") and name == host.strip().lower()


def _check_bytes(lines: Iterable[Header], already: int = 0) -> None:
    if already + sum([len(name) + len(value) for name, value in lines]) > MAX_HEADER_BYTES:
        raise Refused(431, InvalidRequest(f"the headers are larger than {MAX_HEADER_BYTES} bytes"))


def _check_size(lines: tuple[Header, ...]) -> None:
    _check_bytes(lines)
    for wanted in (b"accept", b"content-type"):
        if sum(len(value) for name, value in lines if name == wanted) > MAX_MEDIA_TYPES:
            header = wanted.decode().title()
            raise Refused(431, InvalidRequest(f"{header} is longer than {MAX_MEDIA_TYPES} bytes"))


_MOST_SHOWN: Final = 200


def format_header(value: bytes | None) -> str:
    """Return a header's value, for people to read; of a long one its beginning."""
    if value is None:
        return "(none)"
    text = value[: _MOST_SHOWN + 1].decode("latin-1").strip().lower()
    return repr(text) if len(value) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]!r}..."

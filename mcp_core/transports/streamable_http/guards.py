"""Who may call, and in which media types: what is checked before a body is read.

Knows HTTP headers; nothing of JSON-RPC.
Spec: basic/transports/streamable-http, "Security & Endpoint"; RFC 9110, sections 8.3 and 12.5.1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

import msgspec

from mcp_core.errors import InvalidRequest
from mcp_core.transports.streamable_http.exchange import Exchange, Refused

__all__ = ["LOOPBACK", "Accepted", "Guard", "TransportSecuritySettings", "accepted", "check_content_type"]

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


class TransportSecuritySettings(msgspec.Struct, kw_only=True, frozen=True):
    """Which `Host` and `Origin` headers are let in, against DNS rebinding.

    A host is `example.com` (with its scheme's port or none), `example.com:8000`, or
    `example.com:*`; an origin the same with its scheme before it. `"*"` lets all in.
    """

    enable_dns_rebinding_protection: bool = True
    allowed_hosts: list[str] = []
    allowed_origins: list[str] = []


_MOST_PASSED: Final = 256
"""Combinations remembered as let in: clients repeat theirs, and may not fill memory with others."""


class Guard:
    """Checks `Host` and `Origin`.

    Without settings, a server bound to loopback serves loopback names only, and any other
    serves every host, but pages of its own origin only.
    """

    def __init__(self, host: str, settings: TransportSecuritySettings | None) -> None:
        loopback = host in LOOPBACK or host == "::1" or host.startswith("127.")
        self._passed: set[tuple[str | None, bytes | None, bytes | None]] = set()
        self._off = settings is not None and not settings.enable_dns_rebinding_protection
        given = settings or TransportSecuritySettings()
        own = [f"{name}:*" for name in {*LOOPBACK, host}] if loopback else []
        self._hosts: list[str] | None = [*given.allowed_hosts, *own] if given.allowed_hosts or loopback else None
        self._origins = [
            *given.allowed_origins,
            *(f"{scheme}://{name}" for name in own for scheme in ("http", "https")),
        ]

    def check(self, exchange: Exchange) -> None:
        """
        Raises:
            Refused: The host (421) or the origin (403) is not let in.
        """
        if self._off:
            return
        host, origin = exchange.fields.get(b"host"), exchange.fields.get(b"origin")
        scheme = exchange.scope.get("scheme")
        if not exchange.repeated and (scheme, host, origin) in self._passed:
            return
        port = "443" if scheme == "https" else "80"
        if b"host" in exchange.repeated or b"origin" in exchange.repeated:
            raise Refused(400, InvalidRequest("Host and Origin may be sent once"))
        if not self._lets_in(host, self._hosts, port):
            raise Refused(
                421,
                InvalidRequest(f"Invalid Host header {_shown(host)}: add it to allowed_hosts (transport_security)"),
            )
        if origin is not None and not self._lets_in(origin, self._origins, port) and not _is_same(origin, host):
            raise Refused(
                403,
                InvalidRequest(
                    f"Invalid Origin header {_shown(origin)}: add it to allowed_origins (transport_security)"
                ),
            )
        if len(self._passed) < _MOST_PASSED:
            self._passed.add((scheme, host, origin))

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
    """Whether a page of this very server calls, under a host that has been let in."""
    if host is None:
        return False
    return urlsplit(origin.decode("latin-1")).netloc.lower() == host.decode("latin-1").strip().lower()


def _shown(value: bytes | None) -> str:
    return "(none)" if value is None else repr(value.decode("latin-1").strip().lower())


# --- media types ------------------------------------------------------------------------------


class Accepted(msgspec.Struct, frozen=True):
    """Which of the two forms of an answer the client takes."""

    json: bool
    stream: bool


_BOTH: Final = Accepted(True, True)


@lru_cache(maxsize=512)
def accepted(value: bytes | None) -> Accepted:
    """What an `Accept` header lets an answer be; without one, anything (RFC 9110, 12.5.1)."""
    if value is None or not value.strip():
        return _BOTH
    ranges = [_range(part) for part in value.decode("latin-1").lower().split(",") if part.strip()]
    return Accepted(_quality(ranges, "application/json") > 0, _quality(ranges, "text/event-stream") > 0)


def _range(part: str) -> tuple[str, float]:
    name, *parameters = (piece.strip() for piece in part.split(";"))
    quality = next((p[2:] for p in parameters if p.startswith("q=")), "1")
    try:
        return name, float(quality)
    except ValueError:
        return name, 0.0


def _quality(ranges: list[tuple[str, float]], wanted: str) -> float:
    """The weight of a type: the most specific range that matches it decides."""
    for name in (wanted, f"{wanted.partition('/')[0]}/*", "*/*"):
        found = [quality for pattern, quality in ranges if pattern == name]
        if found:
            return max(found)
    return 0.0


@lru_cache(maxsize=256)
def _is_json(value: bytes) -> bool:
    name, *parameters = (piece.strip().lower() for piece in value.decode("latin-1").split(";"))
    charset = next((p[8:].strip('"') for p in parameters if p.startswith("charset=")), "utf-8")
    return name == "application/json" and charset in ("utf-8", "utf8", "us-ascii")


def check_content_type(exchange: Exchange) -> None:
    """
    Raises:
        Refused: The body is not declared as JSON in UTF-8 (415).
    """
    value = exchange.fields.get(b"content-type")
    if value is None or not _is_json(value):
        raise Refused(415, InvalidRequest(f"Content-Type must be application/json; got {_shown(value)}"))

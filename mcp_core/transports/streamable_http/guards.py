"""Which hosts are served and which origins are let in: what is checked before anything else.

Knows HTTP headers; nothing of JSON-RPC.
Spec: basic/transports/streamable-http, "Security & Endpoint".
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

import msgspec

from mcp_core.errors import InvalidRequest
from mcp_core.transports.streamable_http.exchange import Refused, Scope
from mcp_core.transports.streamable_http.heads import Head, Heads

__all__ = ["LOOPBACK", "Guard", "TransportSecuritySettings", "shown"]

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


class TransportSecuritySettings(msgspec.Struct, kw_only=True, frozen=True):
    """Which `Host` and `Origin` headers are let in, against DNS rebinding.

    A host is `example.com` (with its scheme's port or none), `example.com:8000`, or
    `example.com:*`; an origin the same with its scheme before it. `"*"` lets all in.
    """

    enable_dns_rebinding_protection: bool = True
    allowed_hosts: list[str] = []
    allowed_origins: list[str] = []


class Guard:
    """Checks `Host` and `Origin`.

    Without settings, a server bound to loopback serves loopback names only, and any other
    serves every host, but pages of its own origin only.
    """

    def __init__(self, host: str, settings: TransportSecuritySettings | None) -> None:
        loopback = host in LOOPBACK or host == "::1" or host.startswith("127.")
        self._admitted = Heads()
        self._off = settings is not None and not settings.enable_dns_rebinding_protection
        given = settings or TransportSecuritySettings()
        own = [f"{name}:*" for name in {*LOOPBACK, host}] if loopback else []
        self._hosts: list[str] | None = [*given.allowed_hosts, *own] if given.allowed_hosts or loopback else None
        self._origins = [
            *given.allowed_origins,
            *(f"{scheme}://{name}" for name in own for scheme in ("http", "https")),
        ]

    def admit(self, scope: Scope) -> Head:
        """The header lines of a request that is let in.

        Raises:
            Refused: The host (421) or the origin (403) is not let in.
        """
        scheme: str = scope.get("scheme", "http")
        lines = tuple(scope["headers"])  # once: it may be an iterator
        try:
            head = self._admitted.get((scheme, lines))
        except TypeError:  # lines that are lists, which ASGI allows too
            head = None
        if head is None:
            lines = tuple((bytes(name), bytes(value)) for name, value in lines)
            head = Head(lines)
            if not self._off:
                self._check(head, scheme)
            self._admitted.keep(scheme, lines, head)
        return head

    def _check(self, head: Head, scheme: str) -> None:
        host, origin = head.fields.get(b"host"), head.fields.get(b"origin")
        port = "443" if scheme == "https" else "80"
        if b"host" in head.repeated or b"origin" in head.repeated:
            raise Refused(400, InvalidRequest("Host and Origin may be sent once"))
        if not self._lets_in(host, self._hosts, port):
            raise Refused(
                421,
                InvalidRequest(f"Invalid Host header {shown(host)}: add it to allowed_hosts (transport_security)"),
            )
        if origin is not None and not self._lets_in(origin, self._origins, port) and not _is_same(origin, host):
            raise Refused(
                403,
                InvalidRequest(
                    f"Invalid Origin header {shown(origin)}: add it to allowed_origins (transport_security)"
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
    """Whether a page of this very server calls, under a host that has been let in."""
    if host is None:
        return False
    return urlsplit(origin.decode("latin-1")).netloc.lower() == host.decode("latin-1").strip().lower()


def shown(value: bytes | None) -> str:
    """A header's value, for people to read."""
    return "(none)" if value is None else repr(value.decode("latin-1").strip().lower())

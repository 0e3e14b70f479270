"""The header lines of a request, and what they say of it.

Most clients send the same lines again and again, so that a head can be kept: nothing in
it changes, and nothing in it depends on the body. What differs from one request to the
next, is put on top of the cached head, and is not cached itself.
Spec: basic/transports/streamable-http, "Standard Request Headers".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from mcp_core.revisions import is_modern
from mcp_core.transports.streamable_http.media_types import Accepted, accepted, is_json

__all__ = ["KEPT", "METHOD", "NAME", "VERSION", "ParsedHeaders", "Header", "ParsedHeadersCache"]

Header = tuple[bytes, bytes]

VERSION: Final = b"mcp-protocol-version"
METHOD: Final = b"mcp-method"
NAME: Final = b"mcp-name"
_STANDARD: Final = (VERSION, METHOD, NAME)

_MOST_DIGITS: Final = 18
_REVISION: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class ParsedHeaders:
    """The header lines of one request, or of many that have the same.

    ASGI has the names in lower case. `fields` has the values by name, the last where a name was `repeated`.
    `version`, `method` and `name` are what the standard headers say as text; `None` as
    well where they take a closer look: one of them repeated, encoded, or not to be sent like that.
    """

    __slots__ = (
        "_lines",
        "_texts",
        "accepts",
        "fields",
        "is_json",
        "is_plain",
        "length",
        "method",
        "name",
        "repeated",
        "size",
        "states_modern",
        "version",
    )

    def __init__(self, lines: tuple[Header, ...]) -> None:
        self._lines = lines
        self._texts: Mapping[str, str] | None = None  # made when a handler asks for `ctx.headers`
        self.fields: dict[bytes, bytes] = {}  # by name in lower case; of a repeated one the last
        # Names that came more than once: whether that is allowed is decided where they are read.
        self.repeated: set[bytes] = set()
        for name, value in lines:
            if name in self.fields:
                self.repeated.add(name)
            self.fields[name] = value
        self.size: int = sum([len(name) + len(value) for name, value in lines])
        """Bytes of the names and values of the lines that it was made of; those that it is extended by not counted."""
        self.accepts: Accepted = accepted(self.every(b"accept"))
        announced = self.fields.get(b"content-length", b"")
        self.length: int | None = int(announced[:_MOST_DIGITS]) if announced.isdigit() else None
        """Bytes of the body, if a number is stated; of an absurd one its first digits, which are more than enough."""
        self.is_plain: bool = self.fields.get(b"content-encoding", b"identity").strip().lower() in (b"identity", b"")
        """Whether the body is sent as it is, without gzip and the like."""
        self.is_json: bool = self.is_plain and is_json(self.fields.get(b"content-type"))
        stated = self.text(VERSION)
        self.states_modern: bool = stated is not None and _REVISION.fullmatch(stated) is not None and is_modern(stated)
        """Whether the version header names a revision of the stateless era, known or not."""
        plain = self.repeated.isdisjoint(_STANDARD)
        version, method, named = (self._plain(header) if plain else None for header in _STANDARD)
        self.version: str | None = version
        self.method: str | None = method
        self.name: str | None = named

    def every(self, name: bytes) -> bytes | None:
        """One header, all its lines as one list."""
        if name not in self.repeated:
            return self.fields.get(name)
        return b", ".join(value for found, value in self._lines if found == name)

    def text(self, name: bytes) -> str | None:
        """One header as text."""
        value = self.fields.get(name)
        return None if value is None else value.decode("latin-1").strip(" \t")

    def _plain(self, name: bytes) -> str | None:
        text = self.text(name)
        return text if text is not None and text.isascii() and text.isprintable() and text[:2] != "=?" else None

    @property
    def texts(self) -> Mapping[str, str]:
        """All as text, for handlers; values of repeated names joined by commas."""
        if self._texts is None:
            found: dict[str, str] = {}
            for raw_name, raw_value in self._lines:
                name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
                found[name] = f"{found[name]}, {value}" if name in found else value
            self._texts = MappingProxyType(found)
        return self._texts

    def extended(self, lines: tuple[Header, ...], others: Sequence[Header]) -> ParsedHeaders | None:
        """Return the head of these lines, which are its own and `others`; `None` if a name of those is repeated.

        Nothing that a head says of itself depends on the others: see `KEPT`.
        """
        fields = {**self.fields, **dict(others)}
        if len(fields) != len(self.fields) + len(others):
            return None
        head: ParsedHeaders = ParsedHeaders.__new__(ParsedHeaders)
        head._lines, head._texts, head.fields = lines, None, fields
        head.repeated, head.accepts, head.is_json, head.length = (
            self.repeated,
            self.accepts,
            self.is_json,
            self.length,
        )
        head.is_plain, head.states_modern, head.size = self.is_plain, self.states_modern, self.size
        head.version, head.method, head.name = self.version, self.method, self.name
        return head


KEPT: Final = frozenset(
    (
        b"host",
        b"origin",
        b"accept",
        b"accept-encoding",
        b"accept-language",
        b"content-type",
        b"content-length",
        b"content-encoding",
        b"transfer-encoding",
        b"user-agent",
        b"connection",
        b"keep-alive",
        b"te",
        b"expect",
        b"cache-control",
        b"pragma",
        b"priority",
        b"sec-fetch-dest",
        b"sec-fetch-mode",
        b"sec-fetch-site",
        b"x-forwarded-host",
        b"x-forwarded-port",
        b"x-forwarded-proto",
        VERSION,
        METHOD,
        NAME,
    )
)
"""Headers that may outlast their request: they say what a client is and wants, not who it is.

Not a list of secrets: an API key, a session id or a parameter may go by any other name.
"""

_MOST_KEPT: Final = 512
_LONGEST_KEPT: Final = 4096
"""Bytes of header lines: what is kept is bounded, whatever clients send."""
_MOST_LINES: Final = 64

_TOOL_NAME: Final = re.compile(rb"[A-Za-z0-9_./-]{1,128}")
"""What a URI with something secret in it does not look like."""


class ParsedHeadersCache(dict[tuple[str, tuple[Header, ...]], ParsedHeaders]):
    """The heads that were let in, by scheme and lines, to be known again."""

    def keep(self, scheme: str, lines: tuple[Header, ...], head: ParsedHeaders) -> None:
        """Keep a head, unless it is long or has something in it that is not to be kept."""
        if len(lines) > _MOST_LINES or sum(len(n) + len(v) for n, v in lines) > _LONGEST_KEPT:
            return
        if not KEPT.issuperset(head.fields) or (NAME in head.fields and not _TOOL_NAME.fullmatch(head.fields[NAME])):
            return
        if len(self) >= _MOST_KEPT:
            self.clear()
        self[scheme, lines] = head

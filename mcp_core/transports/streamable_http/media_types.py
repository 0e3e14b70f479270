"""Media types in headers: which forms of a response a client takes, and whether a body is JSON.

Knows header values; nothing of requests.
Spec: RFC 9110, sections 8.3 and 12.5.1; basic/transports/streamable-http, "Sending Messages".
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

__all__ = ["Accepted", "accepted", "is_json"]


class Accepted(msgspec.Struct, frozen=True):
    """Which of the two forms of a response the client takes."""

    json: bool
    stream: bool


_BOTH: Final = Accepted(True, True)


@lru_cache(maxsize=128)
def accepted(value: bytes | None) -> Accepted:
    """Return what an `Accept` header lets a response be; without one, anything (RFC 9110, 12.5.1)."""
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
    """Return the weight of a type: the most specific range that matches it decides."""
    for name in (wanted, f"{wanted.partition('/')[0]}/*", "*/*"):
        found = [quality for pattern, quality in ranges if pattern == name]
        if found:
            return max(found)
    return 0.0


@lru_cache(maxsize=128)
def is_json(value: bytes | None) -> bool:
    """Return whether a `Content-Type` says JSON in UTF-8."""
    if value is None:
        return False
    name, *parameters = (piece.strip().lower() for piece in value.decode("latin-1").split(";"))
    charset = next((p[8:].strip('"') for p in parameters if p.startswith("charset=")), "utf-8")
    return name == "application/json" and charset in ("utf-8", "utf8", "us-ascii")

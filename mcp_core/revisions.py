"""The protocol revisions by name, and the two eras they belong to.

Knows no message. A revision is compared by its date string, so `>=` reads as
"from that revision on".
Spec: basic/versioning.
"""

from __future__ import annotations

from typing import Final

V2024_11_05: Final = "2024-11-05"
V2025_03_26: Final = "2025-03-26"
V2025_06_18: Final = "2025-06-18"
V2025_11_25: Final = "2025-11-25"
V2026_07_28: Final = "2026-07-28"

HANDSHAKE_REVISIONS: Final = (V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25)
"""Revisions negotiated by `initialize`, oldest first."""

MODERN_REVISIONS: Final = (V2026_07_28,)
"""Revisions named by each request in its `_meta`, oldest first."""

ALL_REVISIONS: Final = HANDSHAKE_REVISIONS + MODERN_REVISIONS
LATEST_REVISION: Final = ALL_REVISIONS[-1]


def is_modern(revision: str) -> bool:
    """Return whether the revision is a stateless one, carried by every request itself."""
    return revision >= V2026_07_28


def newest_first(revisions: tuple[str, ...] | list[str]) -> list[str]:
    """Return the revisions in the order in which they are offered on the wire."""
    return sorted(revisions, reverse=True)


def check_served(revisions: list[str] | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the revisions a server serves, oldest first; `None` means all.

    Raises:
        ValueError: A name is not a published revision, or none is given.
    """
    if revisions is None:
        return ALL_REVISIONS
    unknown = sorted(set(revisions) - set(ALL_REVISIONS))
    if unknown or not revisions:
        raise ValueError(f"protocol_versions must name some of {list(ALL_REVISIONS)}; got {list(revisions)}")
    return tuple(sorted(set(revisions)))

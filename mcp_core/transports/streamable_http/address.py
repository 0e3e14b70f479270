"""Where a server listens, printed for its user.

Knows sockets; nothing of who listens on them.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable

__all__ = ["addresses", "say_where"]


def addresses(sockets: Iterable[socket.socket], path: str, *, encrypted: bool) -> list[str]:
    """Return the URLs of what listens here, with the ports that the system chose."""
    found: list[str] = []
    for each in sockets:
        name = each.getsockname()
        if each.family not in (socket.AF_INET, socket.AF_INET6):
            found.append(f"unix:{name}")
            continue
        host = f"[{name[0]}]" if each.family == socket.AF_INET6 else name[0]
        found.append(f"{'https' if encrypted else 'http'}://{host}:{name[1]}{path}")
    return found


def say_where(name: str, sockets: Iterable[socket.socket], path: str, encrypted: bool, workers: int = 1) -> None:
    """Say it on stderr, in one line."""
    by = f" by {workers} workers" if workers > 1 else ""
    where = ", ".join(addresses(sockets, path, encrypted=encrypted))
    if sys.stderr is not None:  # a program without a console has none
        sys.stderr.write(f"{name} is served at {where}{by}\n")
        sys.stderr.flush()

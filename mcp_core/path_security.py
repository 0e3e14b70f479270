"""Whether text from a client may become part of a path, and a join that does not leave its base.

Knows texts and the file system; nothing of URIs, so values are looked at after they are decoded.
Spec: server/resources, "Security Considerations"; R-SEC-04.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

__all__ = ["PathEscapeError", "contains_path_traversal", "is_absolute_path", "safe_join"]

_SEPARATOR: Final = re.compile(r"[/\\]")
_DRIVE: Final = re.compile(r"[A-Za-z]:")


class PathEscapeError(ValueError):
    """A path would be outside of its base; the text is for the log, not for the client."""


def contains_path_traversal(value: str) -> bool:
    """Return whether a relative path leaves the place where it starts, by `..` between slashes or backslashes.

    `a/../b` stays inside, and so does `a..b`.
    """
    depth = 0
    for component in _SEPARATOR.split(value):
        if component == "..":
            depth -= 1
            if depth < 0:
                return True
        elif component not in ("", "."):
            depth += 1
    return False


def is_absolute_path(value: str, *, has_drives: bool = os.name == "nt") -> bool:
    """Return whether a path starts at a root, of this system or of another: `/x`, `\\x`, `C:\\x`, `C:/x`.

    `C:x` is one only where `has_drives`: elsewhere it is an ordinary name.
    """
    drive = _DRIVE.match(value)
    rest = value if drive is None else value[drive.end() :]
    return rest[:1] in ("/", "\\") or (drive is not None and has_drives)


def safe_join(base: str | Path, *parts: str) -> Path:
    """Return the path of these parts below `base`, resolved: without `..`, and with symbolic links followed.

    It need not exist. A process that changes the file system in between can still swap a directory for a link: open
    what must not follow one with `os.O_NOFOLLOW`.

    Raises:
        PathEscapeError: A part is absolute, has a NUL, or leads out of `base`, be it by a link.
    """
    for part in parts:
        if "\0" in part:
            raise PathEscapeError(f"Path component {part!r} contains a null byte; refusing to join onto {base}")
        if is_absolute_path(part):
            raise PathEscapeError(f"Path component {part!r} is absolute; refusing to join onto {base}")
        if contains_path_traversal(part):
            raise PathEscapeError(f"Path component {part!r} leaves its base {base}")
    root = Path(base).resolve()
    try:
        path = root.joinpath(*parts).resolve()
    except (OSError, RuntimeError) as exc:  # a loop of links, or a name that is too long
        raise PathEscapeError(f"Path {'/'.join(parts)!r} below {base} cannot be resolved: {exc}") from exc
    if not path.is_relative_to(root):
        raise PathEscapeError(f"Path {path} escapes base {root}")
    return path

"""An exception as its author reads it: their own lines, and the cause last.

Knows which files belong to libraries; nothing of servers.
"""

from __future__ import annotations

import sysconfig
import traceback
from functools import cache
from pathlib import Path
from typing import Final

import mcp_core

__all__ = ["has_own_lines", "module_line", "format_own_lines"]

FRAMES: Final = 8
"""Of so many calls, the last ones, the lines are shown."""

TEXT: Final = 4_000
"""So many characters of an exception's own text are shown."""

_PACKAGES: Final = {"site-packages", "dist-packages"}


def format_own_lines(error: BaseException, own: Path | None = None) -> str:
    """Return the author's lines of a traceback, then the exception, as Python writes both.

    `own` is the file, or the folder of the package, that is the author's wherever it is
    installed. Of the exceptions that led to this one those are left out that came and went
    inside of a library.
    """
    return "\n".join(_written(traceback.TracebackException.from_exception(error, compact=True), own))


def has_own_lines(error: BaseException, own: Path | None = None) -> bool:
    """Return whether the exception went through code of the author's."""
    return bool(_own_frames(traceback.extract_tb(error.__traceback__), own))


def module_line(error: BaseException, own: Path | None = None) -> str | None:
    """Return the file and line at which the author's innermost module was, as `server.py, line 7`."""
    frames = [f for f in _own_frames(traceback.extract_tb(error.__traceback__), own) if f.name == "<module>"]
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else None


def _own_frames(stack: list[traceback.FrameSummary], own: Path | None) -> list[traceback.FrameSummary]:
    return [frame for frame in stack if _is_own(frame.filename, own)]


def _is_own(filename: str, own: Path | None) -> bool:
    if filename.startswith("<"):
        return False  # frozen modules, and code that dataclasses and others make
    path = Path(filename)
    if own is not None and path.is_relative_to(own):
        return True
    return not _PACKAGES.intersection(path.parts) and not any(path.is_relative_to(home) for home in _libraries())


@cache
def _libraries() -> tuple[Path, ...]:
    ours = [Path(mcp_core.__file__).parent, Path(__file__).parent]
    return (*(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")), *ours)


def _written(error: traceback.TracebackException, own: Path | None) -> list[str]:
    lines: list[str] = []
    earlier, link = error.__cause__, "The above exception was the direct cause of the following exception:"
    if earlier is None and not error.__suppress_context__:
        earlier, link = error.__context__, "During handling of the above exception, another exception occurred:"
    if earlier is not None and _own_frames(earlier.stack, own):
        lines += [*_written(earlier, own), "", link, ""]
    frames = _own_frames(error.stack, own)
    lines += _text("".join(traceback.StackSummary.from_list(frames[-FRAMES:]).format()))
    lines += _text(_cut("".join(error.format_exception_only()).rstrip("\n")))
    for inner in error.exceptions or ():
        lines += ["  " + line for line in _written(inner, own)]
    return lines


def _text(text: str) -> list[str]:
    return text.rstrip("\n").split("\n") if text else []


def _cut(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[:TEXT]}... ({len(text):,} characters)"

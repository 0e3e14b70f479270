"""What the interop servers and their tests agree on: names, data, and moments to wait for.

Knows neither of the two libraries, so that a server of either can use it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Final, TypedDict

import anyio

__all__ = [
    "BOOKS",
    "BOOK_SCHEMA",
    "CONTENT_META",
    "EDITION_SCHEMA",
    "EMPTY_SCHEMA",
    "MATCHES_SCHEMA",
    "NAME_SCHEMA",
    "PIXEL",
    "RESULT_META",
    "SECRET",
    "SHELF_ERROR",
    "SOUND",
    "TEXT_SCHEMA",
    "Launch",
    "Milestones",
    "launch",
    "page",
]

ROOT: Final = Path(__file__).resolve().parents[2]

PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND: Final = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

SECRET: Final = "password is hunter2"
"""The text of an exception that no client may see."""

SHELF_ERROR: Final = 4010
"""The code of an error of the application's own."""

RESULT_META: Final[dict[str, Any]] = {"bookshop/record_ids": ["bk_17"], "bookshop/nothing": None}
CONTENT_META: Final[dict[str, Any]] = {"bookshop/source": {"shelf": 4, "verified": True}}

BOOKS: Final = {"book://dune": "Dune, by Frank Herbert", "book://emma": "Emma, by Jane Austen"}

EMPTY_SCHEMA: Final[dict[str, Any]] = {"type": "object", "properties": {}, "additionalProperties": False}
TEXT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}
NAME_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}
MATCHES_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"matches": {"type": "integer"}},
    "required": ["matches"],
}
BOOK_SCHEMA: Final[dict[str, Any]] = {"type": "array", "items": {"type": "string"}}
EDITION_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"edition": {"type": "string"}, "copies": {"type": "integer"}},
    "required": ["edition"],
}


def page(cursor: str | None, total: int, size: int) -> tuple[slice, str | None] | None:
    """The slice that a cursor stands for, and the next cursor; `None` for no cursor of ours."""
    start = 0
    if cursor is not None:
        head, _, number = cursor.partition(":")
        if head != "from" or not number.isdigit() or int(number) >= total:
            return None
        start = int(number)
    end = start + size
    return slice(start, end), f"from:{end}" if end < total else None


class Milestones:
    """Moments of a server that one request reaches and another waits for, by name."""

    def __init__(self) -> None:
        self._events: dict[str, anyio.Event] = {}

    def reach(self, name: str) -> None:
        """Let everybody who waits for it go on, now and later."""
        self._events.setdefault(name, anyio.Event()).set()

    async def wait(self, name: str) -> None:
        """Wait for it. Raises `TimeoutError` after a minute."""
        with anyio.fail_after(60):
            await self._events.setdefault(name, anyio.Event()).wait()


class Launch(TypedDict):
    """The keywords that start a server, the same for both libraries."""

    command: str
    args: list[str]
    env: dict[str, str]
    cwd: str


def launch(module: str, *args: str) -> Launch:
    """How to run a module of this package as a server."""
    return Launch(
        command=sys.executable,
        args=["-m", f"tests.interop.{module}", *args],
        # An environment variable that only some set-ups have must not be lost: a loader path, say.
        env={key: os.environ[key] for key in ("LD_LIBRARY_PATH", "PYTHONPATH") if key in os.environ},
        cwd=str(ROOT),
    )

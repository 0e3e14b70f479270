"""Answers kept for as long as their server says that they hold.

Knows methods and the time; nothing of connections. One client's own cache, so `private`
answers may be kept as well as `public` ones.
Spec: server/utilities/caching; `ttlMs` and `cacheScope` of 2026-07-28 results.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from msgspec import Raw

from mcp_core import codec

__all__ = ["ResponseCache"]

_SPOILED_BY: Final = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
    "notifications/resources/updated": ("resources/read",),
}


_LONGEST: Final = 10**12
"""Milliseconds: some thirty years, and small enough to reckon with."""


class ResponseCache:
    """Up to `size` answers; the least recently used go first. `clock` gives seconds."""

    def __init__(self, size: int = 256, clock: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._clock = clock
        self._kept: OrderedDict[tuple[str, bytes], tuple[float, Raw]] = OrderedDict()
        self._changes: dict[str, int] = {}

    @staticmethod
    def key(method: str, params: Any) -> tuple[str, bytes] | None:
        """What makes two requests the same: method and params, `_meta` aside.

        `None` for a round of a call that asks for input: its answer is nobody else's (R-CACHE-05).
        """
        shown: Any = {} if params is None else codec.to_json(params)
        if "inputResponses" in shown or "requestState" in shown:
            return None
        return method, codec.canonical({name: value for name, value in shown.items() if name != "_meta"})

    def get(self, key: tuple[str, bytes]) -> Raw | None:
        """An answer that still holds."""
        found = self._kept.get(key)
        if found is None:
            return None
        if found[0] <= self._clock():
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return found[1]

    def changes(self, method: str) -> int:
        """How often what the method answers has changed; to be asked before the request."""
        return self._changes.get(method, 0)

    def put(self, key: tuple[str, bytes], answer: Raw, ttl_ms: float, changes: int | None = None) -> None:
        """Keep an answer for its time, if it has one.

        With `changes` as they were when it was asked for, not if there was one since.
        """
        if ttl_ms <= 0 or (changes is not None and changes != self.changes(key[0])):
            return
        # The message it came in may be large, and is let go of.
        self._kept[key] = (self._clock() + min(ttl_ms, _LONGEST) / 1000, Raw(bytes(answer)))
        self._kept.move_to_end(key)
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)

    def clear(self) -> None:
        """Forget everything: nobody hears of changes any more."""
        self._kept.clear()

    def spoil(self, notification: str) -> None:
        """Forget what a notification says has changed."""
        methods = _SPOILED_BY.get(notification, ())
        for method in methods:
            self._changes[method] = self.changes(method) + 1
        for key in [key for key in self._kept if key[0] in methods]:
            del self._kept[key]

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


class ResponseCache:
    """Up to `size` answers; the least recently used go first. `clock` gives seconds."""

    def __init__(self, size: int = 256, clock: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._clock = clock
        self._kept: OrderedDict[tuple[str, bytes], tuple[float, Raw]] = OrderedDict()

    @staticmethod
    def key(method: str, params: Any) -> tuple[str, bytes]:
        """What makes two requests the same: method and params, `_meta` aside."""
        shown: Any = {} if params is None else codec.to_json(params)
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

    def put(self, key: tuple[str, bytes], answer: Raw, ttl_ms: float) -> None:
        """Keep an answer for its time, if it has one."""
        if ttl_ms <= 0:
            return
        # The message it came in may be large, and is let go of.
        self._kept[key] = (self._clock() + ttl_ms / 1000, Raw(bytes(answer)))
        self._kept.move_to_end(key)
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)

    def spoil(self, notification: str) -> None:
        """Forget what a notification says has changed."""
        methods = _SPOILED_BY.get(notification, ())
        for key in [key for key in self._kept if key[0] in methods]:
            del self._kept[key]

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

__all__ = ["CACHE_BYTES", "CACHE_SIZE", "ResponseCache"]

CACHE_SIZE: Final = 256
"""Answers that a client keeps by default."""

CACHE_BYTES: Final = 16 * 2**20
"""Bytes that they may have together by default; one that has more than an eighth of it is not kept."""

_SPOILED_BY: Final = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
    "notifications/resources/updated": ("resources/read",),
}


_LONGEST: Final = 10**12
"""Milliseconds: some thirty years, and small enough to reckon with."""


class ResponseCache:
    """Up to `size` answers of `max_bytes` together; the least recently used go first.

    The bytes of what was asked for count as well as those of the response: both are chosen by
    others. A response of more than an eighth of `max_bytes` would only push out the rest, and
    is not kept. `clock` gives seconds.
    """

    def __init__(
        self,
        size: int = CACHE_SIZE,
        clock: Callable[[], float] = time.monotonic,
        *,
        max_bytes: int = CACHE_BYTES,
    ) -> None:
        self._size = size
        self.max_bytes = max_bytes
        self._bytes = 0
        self._clock = clock
        self._kept: OrderedDict[tuple[str, bytes], tuple[float, Raw]] = OrderedDict()
        self._changes: dict[str, int] = {}

    @staticmethod
    def key(method: str, params: object) -> tuple[str, bytes] | None:
        """Return what makes two requests the same: method and params, `_meta` aside.

        `None` for a round of a call that asks for input: its result is for this call alone (R-CACHE-05).
        """
        shown: Any = {} if params is None else codec.to_json(params)
        if "inputResponses" in shown or "requestState" in shown:
            return None
        return method, codec.canonical({name: value for name, value in shown.items() if name != "_meta"})

    def get(self, key: tuple[str, bytes]) -> Raw | None:
        """Return a response that still holds."""
        found = self._kept.get(key)
        if found is None:
            return None
        if found[0] <= self._clock():
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return found[1]

    def changes(self, method: str) -> int:
        """Return how often what the method answers has changed; to be asked before the request."""
        return self._changes.get(method, 0)

    def put(self, key: tuple[str, bytes], answer: Raw, ttl_ms: float, changes: int | None = None) -> None:
        """Keep a response for its time, if it has one.

        With `changes` as they were when it was asked for, not if there was one since.
        """
        if ttl_ms <= 0 or (changes is not None and changes != self.changes(key[0])):
            return
        size = len(key[1]) + len(memoryview(answer))
        self._drop(key)  # what was kept does not hold any more, even if the new one is too large
        if size > self.max_bytes // 8:
            return
        # A copy: the message it came in may be large, and is freed.
        self._kept[key] = (self._clock() + min(ttl_ms, _LONGEST) / 1000, Raw(bytes(answer)))
        self._bytes += size
        while len(self._kept) > self._size or self._bytes > self.max_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: tuple[str, bytes]) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._bytes -= len(key[1]) + len(memoryview(found[1]))

    def clear(self) -> None:
        """Forget everything: changes are not announced any more."""
        self._kept.clear()
        self._bytes = 0

    def spoil(self, notification: str) -> None:
        """Forget what a notification says has changed."""
        methods = _SPOILED_BY.get(notification, ())
        for method in methods:
            self._changes[method] = self.changes(method) + 1
        for key in [key for key in self._kept if key[0] in methods]:
            self._drop(key)

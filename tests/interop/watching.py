"""A list that can be waited for: what callbacks were told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import anyio

__all__ = ["Heard"]

T = TypeVar("T")


class Heard(Generic[T]):
    """Keeps what it is told, in order."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self._news = anyio.Event()

    def tell(self, item: T) -> None:
        """Keep an item."""
        self.items.append(item)
        self._news.set()

    async def until(self, ready: Callable[[list[T]], bool], seconds: float = 60.0) -> list[T]:
        """The items, as soon as this holds of them. Raises `TimeoutError` after so many seconds."""
        with anyio.fail_after(seconds):
            while not ready(self.items):
                self._news = anyio.Event()
                await self._news.wait()
        return self.items

    async def count(self, number: int) -> list[T]:
        """The items, as soon as there are so many."""
        return await self.until(lambda items: len(items) >= number)

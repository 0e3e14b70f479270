"""A result whose bytes are kept.

Knows no encoder: who encodes keeps the bytes here, under a key of its own.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from mcp_core.types.base import Result

__all__ = ["Prepared"]

R = TypeVar("R", bound=Result)


class Prepared(Generic[R]):
    """A result that is encoded once per revision and sent many times.

    A handler that returns the same `Prepared` again costs no encoding. `value` must not
    be changed after the first use; make a new `Prepared` instead. Middleware sees
    `value`; a middleware that returns another object bypasses the kept bytes.
    """

    __slots__ = ("_bytes", "value")

    def __init__(self, value: R) -> None:
        self.value = value
        self._bytes: dict[Hashable, tuple[bytes, bytes]] = {}

    def kept(self, key: Hashable) -> tuple[bytes, bytes] | None:
        """The bytes kept under this key, if any: a result and its tail."""
        return self._bytes.get(key)

    def keep(self, key: Hashable, encoded: tuple[bytes, bytes]) -> None:
        """Keep bytes under this key."""
        self._bytes[key] = encoded

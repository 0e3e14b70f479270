"""Calls to be made when something ends: a connection, a session, an app.

Knows nothing of what ends.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["CloseCallbacks"]


class CloseCallbacks:
    """Takes calls until the end, and makes them then."""

    def __init__(self) -> None:
        self._calls: dict[object, Callable[[], None]] = {}

    def add(self, call: Callable[[], None]) -> Callable[[], None]:
        """Register a callback for the end. Returns an idempotent function that unregisters it."""
        token = object()
        self._calls[token] = call

        def undo() -> None:
            self._calls.pop(token, None)

        return undo

    def run(self) -> None:
        """Make the calls."""
        for call in list(self._calls.values()):
            call()

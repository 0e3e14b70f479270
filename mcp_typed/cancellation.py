"""A token by which a tool in a worker thread learns that its call was cancelled.

A thread cannot be stopped from outside; code that runs long asks now and then.
"""

from __future__ import annotations

import threading

from mcp_core import MCPCoreError

__all__ = ["Cancellation", "Cancelled"]


class Cancelled(MCPCoreError):
    """Raised in a tool that asked whether it was cancelled, and was."""


class Cancellation:
    """Annotate a parameter with it: set when the client cancels, goes away, or time is up."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def requested(self) -> bool:
        """Whether the call is to end."""
        return self._event.is_set()

    def check(self) -> None:
        """End the call here if it is to end.

        Raises:
            Cancelled: It is.
        """
        if self._event.is_set():
            raise Cancelled("the call was cancelled")

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the call is to end, at most `timeout` seconds; whether it is."""
        return self._event.wait(timeout)

    def request(self) -> None:
        """Ask the call to end."""
        self._event.set()

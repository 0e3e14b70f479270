"""A running loop as others know it who outlast it: weakly, and from any thread.

Knows loops; nothing of what is called on them.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

from mcp_core.queue_logger import QueueLogger

__all__ = ["Bus", "Home", "running_loop", "subscribed"]

_log = QueueLogger(__name__)


def running_loop() -> Any:
    """Return the loop that runs the caller: asyncio's, or the token of trio's.

    Raises:
        RuntimeError: Neither does.
    """
    trio = _loaded("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return trio.lowlevel.current_trio_token()
    asyncio = _loaded("asyncio")
    if asyncio is None:
        raise RuntimeError("no running event loop")
    return asyncio.get_running_loop()


_loaded: Final[Callable[[str], Any]] = sys.modules.get


class Home:
    """The running loop at the time it was made, held weakly."""

    __slots__ = ("_loop",)

    def __init__(self) -> None:
        self._loop = weakref.ref(running_loop())  # weak: a loop that ended is no reason to keep it

    def is_here(self) -> bool:
        """Return whether the caller runs on it."""
        try:
            return self._loop() is running_loop()
        except RuntimeError:
            return False

    def is_over(self) -> bool:
        """Return whether it will never make a call again, as far as anybody can tell."""
        loop = self._loop()
        return loop is None or (hasattr(loop, "is_closed") and loop.is_closed())

    def call_threadsafe(self, call: Callable[[], None]) -> None:
        """Make a call on it, from any thread. Does nothing once it has ended."""
        loop = self._loop()
        if loop is None:
            return
        try:
            (loop.call_soon_threadsafe if hasattr(loop, "call_soon_threadsafe") else loop.run_sync_soon)(call)
        except RuntimeError:  # closed, or trio's RunFinishedError
            return


class Bus(Protocol):
    """What events are listened for on; an author's, for all we know."""

    def subscribe(self, listener: Callable[[Any], None]) -> Callable[[], None]:
        """Add a listener. Returns a function that removes it."""
        ...


def subscribed(bus: Bus, listener: Callable[[Any], None], *, anywhere: bool = False) -> Callable[[], None]:
    """Listen to a bus. Returns an idempotent function that stops listening.

    The listener is called on the loop that runs the caller, whichever publishes, and not when that
    loop has ended; or `anywhere`. A bus that raises is logged, and affects nothing else.
    """
    home = None if anywhere else _home()
    ends: list[Callable[[], None]] = []
    is_over = False

    def remove() -> None:
        nonlocal is_over
        is_over = True
        while ends:
            try:
                ends.pop()()
            except Exception as exc:
                _log.error("the call that %s returned raised", type(bus).__name__, exc=exc)

    def call(event: Any) -> None:
        if not is_over:
            try:
                listener(event)
            except Exception as exc:  # on trio it would end the program
                _log.error("a subscription listener raised", exc=exc)

    def heard(event: Any) -> None:
        if home is None or home.is_here():
            call(event)
        elif home.is_over():
            remove()
        else:
            home.call_threadsafe(lambda: call(event))

    try:
        end: Any = bus.subscribe(heard)
    except Exception as exc:
        _log.error("%s.subscribe raised; changes are not announced", type(bus).__name__, exc=exc)
        return remove
    if callable(end):
        ends.append(cast("Callable[[], None]", end))
    else:
        _log.error("%s.subscribe returned %.100r; expected a call that ends it", type(bus).__name__, end)
    return remove


def _home() -> Home | None:
    try:
        return Home()
    except RuntimeError:  # no loop runs
        return None

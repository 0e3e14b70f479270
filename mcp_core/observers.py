"""Observers: who watches messages and requests without being able to change them.

Compiled when added; where there is none, a moment costs one truth test. An observer
that raises is logged and dropped. To change what happens, use middleware.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mcp_core.journal import Journal

__all__ = ["MOMENTS", "Observers"]

MOMENTS: Final = ("message_received", "message_sent", "request_started", "request_finished", "handler_failed")

_journal = Journal(__name__)


class Observers:
    """The observers of one server.

    An observer is any object with methods of these names, all optional and
    synchronous:

    - `message_received(data: bytes)`, `message_sent(data: bytes)`: one whole message
    - `request_started(ctx)`: before the handler
    - `request_finished(ctx, answer: bytes)`: with the encoded answer
    - `handler_failed(ctx, exc)`: an exception that is not an `MCPError`
    """

    __slots__ = ("_all", *MOMENTS)

    message_received: tuple[Callable[[bytes], Any], ...]
    message_sent: tuple[Callable[[bytes], Any], ...]
    request_started: tuple[Callable[[Any], Any], ...]
    request_finished: tuple[Callable[[Any, bytes], Any], ...]
    handler_failed: tuple[Callable[[Any, BaseException], Any], ...]

    def __init__(self) -> None:
        self._all: list[Any] = []
        self._compile()

    def add(self, observer: Any) -> None:
        """Watch from now on.

        Raises:
            TypeError: It has none of the methods.
        """
        if not any(hasattr(observer, moment) for moment in MOMENTS):
            raise TypeError(f"an observer needs at least one method of {', '.join(MOMENTS)}")
        self._all.append(observer)
        self._compile()

    def remove(self, observer: Any) -> None:
        """Watch no longer; one that does not watch is no error."""
        self._all = [known for known in self._all if known is not observer]
        self._compile()

    def _compile(self) -> None:
        for moment in MOMENTS:
            calls = tuple(getattr(o, moment) for o in self._all if hasattr(o, moment))
            setattr(self, moment, calls)

    def tell(self, calls: tuple[Callable[..., Any], ...], *what: Any) -> None:
        """Call all observers of one moment."""
        for call in calls:
            try:
                call(*what)
            except Exception as exc:
                _journal.error("observer %r raised and was removed", call, exc=exc)
                self.remove(getattr(call, "__self__", None))

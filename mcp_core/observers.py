"""Observers: who watches messages and requests without being able to change them.

Compiled when added; where there is none, a moment costs one truth test. An observer
that raises is logged and dropped. To change what happens, use middleware.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from mcp_core.queue_logger import QueueLogger

__all__ = ["MOMENTS", "Observers"]

MOMENTS: Final = ("message_received", "message_sent", "request_started", "request_finished", "handler_failed")

Hook: TypeAlias = tuple[Any, Callable[..., Any]]
"""An observer, and what it is to be called by: a plain function does not know whose it is."""

_log = QueueLogger(__name__)


class Observers:
    """The observers of one server.

    An observer is any object with methods of these names, all optional and
    synchronous:

    - `message_received(data: bytes)`, `message_sent(data: bytes)`: one whole message, on every
      transport; over HTTP the body of a POST, and what answers it or comes on a stream
    - `request_started(ctx)`: before the handler, or before the refusal of a request that does not
      get to one
    - `request_finished(ctx, answer: bytes | None)`: once for each request that was started, with the
      encoded answer; `None` where there is none, since the request was cancelled or its client went away
    - `handler_failed(ctx, exc)`: an exception that is not an `MCPError`
    """

    __slots__ = ("_all", *MOMENTS)

    message_received: tuple[Hook, ...]
    message_sent: tuple[Hook, ...]
    request_started: tuple[Hook, ...]
    request_finished: tuple[Hook, ...]
    handler_failed: tuple[Hook, ...]

    def __init__(self) -> None:
        self._all: list[object] = []
        self._compile()

    def add(self, observer: object) -> None:
        """Watch from now on.

        Raises:
            TypeError: It has none of the methods, or one that cannot be called, or is `async`.
        """
        hooks = {moment: getattr(observer, moment) for moment in MOMENTS if hasattr(observer, moment)}
        if not hooks:
            raise TypeError(f"an observer needs at least one method of {', '.join(MOMENTS)}")
        for moment, call in hooks.items():
            if not callable(call) or inspect.iscoroutinefunction(call):
                raise TypeError(f"{moment} of an observer must be a plain function; got {call!r}")
        self._all.append(observer)
        self._compile()

    def remove(self, observer: object) -> None:
        """Watch no longer; one that does not watch is not an error."""
        self._all = [known for known in self._all if known is not observer]
        self._compile()

    def _compile(self) -> None:
        for moment in MOMENTS:
            setattr(self, moment, tuple((o, getattr(o, moment)) for o in self._all if hasattr(o, moment)))

    def sent(self, message: bytes) -> None:
        """Tell of a message that goes out."""
        if self.message_sent:
            self.call(self.message_sent, message)

    def call(self, hooks: tuple[Hook, ...], *what: object) -> None:
        """Call all observers of one moment. None of them can harm what it watches."""
        for observer, call in hooks:
            try:
                call(*what)
            except KeyboardInterrupt:
                raise
            except BaseException as exc:
                if any(known is observer for known in self._all):  # or it has raised meanwhile, and was logged
                    self.remove(observer)
                    _log.error("observer %r raised and was removed", call, exc=exc)

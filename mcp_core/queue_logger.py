"""The library's own log records, taken off the event loop.

A handler of the user's that blocks (a full stderr pipe is enough) must not stall the
protocol. So records pass through a bounded queue to a thread, which hands them to
the loggers as they are configured; what does not fit is dropped, and counted.
Adds no handler, level or filter, and writes nothing by itself (P-24).
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from collections import deque
from collections.abc import Mapping
from typing import Final, cast

__all__ = ["DEPTH", "MAX_WARNINGS", "RateLimitedWarnings", "QueueLogger", "flush", "printable"]

DEPTH: Final = 1000
"""Records that may wait."""

WITH_TRACEBACK: Final = 20
"""Records that may wait with the exception itself, beside its text."""

MAX_WARNINGS: Final = 100
"""Warnings about one peer; what it does wrong after that is not logged."""

_SHOWN: Final = 200
"""Characters of a peer's text that a record shows."""

_records: deque[logging.LogRecord] = deque()
_news = threading.Condition()
_dropped = 0
_busy = False
_thread: threading.Thread | None = None


class QueueLogger:
    """The records of one module, under its name."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, message: str, *args: object) -> None:
        """Record what only a search for a fault needs."""
        self._put(logging.DEBUG, message, args, None)

    def warning(self, message: str, *args: object) -> None:
        """Record what the author of a server should look at."""
        self._put(logging.WARNING, message, args, None)

    def error(
        self,
        message: str,
        *args: object,
        exc: BaseException | None = None,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        """Record a failure, with the traceback of `exc`; `extra` are further attributes of the record."""
        self._put(logging.ERROR, message, args, exc, extra)

    def _put(
        self,
        level: int,
        message: str,
        args: tuple[object, ...],
        exc: BaseException | None,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        global _dropped
        logger = self._logger
        if not logger.isEnabledFor(level) or sys.is_finalizing():
            return  # a thread that is started while the interpreter ends would never run
        record = logger.makeRecord(
            logger.name, level, "(mcp_core)", 0, message, tuple(map(_printable, args)), None, extra=extra
        )
        if exc is not None:
            record.exc_text = _traceback(exc)
            # The object holds every frame of the request alive: for those who collect
            # exceptions, while few records wait.
            if len(_records) < WITH_TRACEBACK:
                record.exc_info = (type(exc), exc, exc.__traceback__)
        with _news:
            if len(_records) >= DEPTH:
                _dropped += 1
                return
            _records.append(record)
            _start()
            _news.notify_all()


MAX_ARGUMENT: Final = 1000
"""Characters of a text in a record; what is longer is cut."""

MAX_TRACEBACK: Final = 20_000
"""Characters of a traceback, likewise, from its end."""

# Line breaks look like a new record in the log, and escapes control a terminal.
_CONTROLS: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    0x0A: "\\n",
    0x0D: "\\r",
    0x09: "\\t",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}
_CONTROLS_IN_LINES: Final = {code: shown for code, shown in _CONTROLS.items() if code not in (0x09, 0x0A)}


def _printable(argument: object) -> object:
    """Return what a record may hold: numbers as they are, anything else as text on one line, cut."""
    if isinstance(argument, int | float):
        return argument
    try:
        text = str(argument)
    except Exception:
        text = f"a {type(argument).__name__}, which cannot be shown"
    cut = f"{text[:MAX_ARGUMENT]}... ({len(text)} characters)" if len(text) > MAX_ARGUMENT else text
    return cut.translate(_CONTROLS)


def _traceback(exc: BaseException) -> str:
    """Return a traceback as text, now: the object would hold every frame of the request alive.

    Messages of several lines are indented, so that no line of theirs looks like a record.
    """
    try:
        text = "".join(traceback.format_exception(exc)).rstrip("\n")
    except Exception as fault:
        text = f"{type(exc).__name__}, whose traceback cannot be shown: {type(fault).__name__}"
    for message in set(map(_message, _chain(exc))):
        if "\n" in message:
            text = text.replace(message, message.replace("\n", "\n    "))
    if len(text) > MAX_TRACEBACK:
        text = f"... {text[-MAX_TRACEBACK:]}"
    return text.translate(_CONTROLS_IN_LINES)


def _message(exc: BaseException) -> str:
    try:
        return str(exc)
    except Exception:  # Python shows a stand-in
        return ""


def _chain(exc: BaseException) -> list[BaseException]:
    """Return an exception and those that a traceback shows with it, a few of them."""
    found: list[BaseException] = []
    waiting = [exc]
    while waiting and len(found) < _MOST_IN_CHAIN:
        each = waiting.pop()
        found.append(each)
        inner: tuple[BaseException, ...] = ()
        if isinstance(each, BaseExceptionGroup):
            inner = cast("BaseExceptionGroup[BaseException]", each).exceptions
        waiting += [one for one in (each.__cause__, each.__context__, *inner) if one is not None and one not in found]
    return found


_MOST_IN_CHAIN: Final = 20


class RateLimitedWarnings:
    """Warnings about what one peer does: a bounded number, each on one line and of a bounded length.

    Without that, a peer could fill the log, or write records of its own choice into it.
    """

    def __init__(self, journal: QueueLogger) -> None:
        self._log = journal
        self._left = MAX_WARNINGS

    def warning(self, message: str, *args: object) -> None:
        """Record a warning. `args` may come from the peer."""
        if self._left <= 0:
            return
        self._left -= 1
        self._log.warning(message, *map(printable, args))
        if not self._left:
            self._log.warning("further warnings about this peer are not logged")


def printable(value: object, limit: int = _SHOWN) -> str:
    """Return what a peer may have written, on one line, without control characters, and cut."""
    text = value if isinstance(value, str) else str(value)
    cut = text[:limit]
    if not cut.isprintable():
        cut = repr(cut)[1:-1]
    return cut if len(text) <= limit else f"{cut}..."


def _start() -> None:
    global _thread
    if _thread is None or not _thread.is_alive():
        _thread = threading.Thread(target=_drain, name="mcp_core.queue_logger", daemon=True)
        _thread.start()


def _drain() -> None:
    global _busy, _dropped
    while True:
        with _news:
            _busy = False
            _news.notify_all()
            _news.wait_for(lambda: _records)
            _busy = True
            record = _records.popleft()
            dropped, _dropped = _dropped, 0
        _wait_for_stderr()
        _hand_over(record)
        if dropped:
            _hand_over(_note(dropped))


def _note(dropped: int) -> logging.LogRecord:
    logger = logging.getLogger(__name__)
    message = "%d log records were dropped: a log handler does not keep up"
    return logger.makeRecord(logger.name, logging.WARNING, "(mcp_core)", 0, message, (dropped,), None)


def _hand_over(record: logging.LogRecord) -> None:
    try:
        logging.getLogger(record.name).handle(record)
    except Exception:
        # A handler of the user's that raises loses its record and nothing else.
        if logging.raiseExceptions and sys.stderr is not None:
            traceback.print_exc()


def _wait_for_stderr() -> None:
    """Wait outside of any lock until stderr takes a record.

    A thread blocked inside `sys.stderr` would hold its lock, and the interpreter
    aborts when it cannot take that lock on its way out.
    """
    try:
        import select

        poll = select.poll()
        poll.register(2, select.POLLOUT)
        poll.poll()
    except (ImportError, AttributeError, OSError, ValueError):
        return  # no `poll` on this system, or no stderr: nothing to wait for


def flush(timeout: float = 1.0) -> bool:
    """Wait until the records so far are handed over, `timeout` seconds at most."""
    with _news:
        return _news.wait_for(lambda: not _records and not _busy, timeout)


def _after_fork() -> None:
    # The thread stayed in the parent, and with it whatever it held.
    global _busy, _news, _thread
    _thread, _busy, _news = None, False, threading.Condition()
    _records.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

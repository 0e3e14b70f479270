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
from typing import Any, Final

__all__ = ["DEPTH", "MAX_COMPLAINTS", "Complaints", "Journal", "flush", "shown"]

DEPTH: Final = 1000
"""Records that may wait."""

MAX_COMPLAINTS: Final = 100
"""Warnings about one peer; what it does wrong after that is not logged."""

_SHOWN: Final = 200
"""Characters of a peer's text that a record shows."""

_records: deque[logging.LogRecord] = deque()
_news = threading.Condition()
_dropped = 0
_busy = False
_thread: threading.Thread | None = None


class Journal:
    """The records of one module, under its name."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, message: str, *args: Any) -> None:
        """Record what only a search for a fault needs."""
        self._put(logging.DEBUG, message, args, None)

    def warning(self, message: str, *args: Any) -> None:
        """Record what the author of a server should look at."""
        self._put(logging.WARNING, message, args, None)

    def error(self, message: str, *args: Any, exc: BaseException | None = None) -> None:
        """Record a failure, with the traceback of `exc`."""
        self._put(logging.ERROR, message, args, exc)

    def _put(self, level: int, message: str, args: tuple[Any, ...], exc: BaseException | None) -> None:
        global _dropped
        logger = self._logger
        if not logger.isEnabledFor(level):
            return
        record = logger.makeRecord(logger.name, level, "(mcp_core)", 0, message, args, None)
        if exc is not None:
            # As text, now: the traceback would hold every frame of the request alive.
            record.exc_text = "".join(traceback.format_exception(exc)).rstrip("\n")
        with _news:
            if len(_records) >= DEPTH:
                _dropped += 1
                return
            _records.append(record)
            _start()
            _news.notify_all()


class Complaints:
    """Warnings about what one peer does: a bounded number, each on one line and of a bounded length.

    Without that, a peer could fill the log, or write records of its own choice into it.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._left = MAX_COMPLAINTS

    def warning(self, message: str, *args: object) -> None:
        """Record a warning. `args` may come from the peer."""
        if self._left <= 0:
            return
        self._left -= 1
        self._journal.warning(message, *map(shown, args))
        if not self._left:
            self._journal.warning("further warnings about this peer are not logged")


def shown(value: object, limit: int = _SHOWN) -> str:
    """What a peer may have written, on one line, without control characters, and cut."""
    text = value if isinstance(value, str) else str(value)
    cut = text[:limit]
    if not cut.isprintable():
        cut = repr(cut)[1:-1]
    return cut if len(text) <= limit else f"{cut}..."


def _start() -> None:
    global _thread
    if _thread is None or not _thread.is_alive():
        _thread = threading.Thread(target=_drain, name="mcp_core.journal", daemon=True)
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

"""SIGINT and SIGTERM while serving: a request to stop, and the end where the event loop cannot run it.

A handler that blocks keeps the event loop from running what a signal has called for. So the
signals are taken by a thread of their own: it asks the loop to stop, and ends the process when
the loop has not done so after a while, or when a second signal comes.

Knows signals and threads; nothing of what is served.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final

from mcp_core.backend import Backend

__all__ = ["PATIENCE", "stopped_by_signals"]

PATIENCE: Final = 1.0
"""Seconds that the event loop has to run what a signal asks for; then the process is ended."""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopped_by_signals(backend: Backend, stop: Callable[[], None]) -> Generator[None, None, None]:
    """Call `stop` on the event loop at SIGINT or SIGTERM, once at least.

    Does nothing outside of the main thread, which alone gets signals. What was there before is
    back when the block ends.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    watch = _SignalWatch(backend, stop)
    before = {number: signal.signal(number, watch.on_signal) for number in _SIGNALS}
    try:
        with watch.watching():
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


class _SignalWatch:
    """Waits for signals in a thread, by way of the descriptor that Python writes them to.

    That is written from inside the signal itself, whatever the main thread is at: even code in C
    that never comes back to the interpreter.
    """

    def __init__(self, backend: Backend, stop: Callable[[], None]) -> None:
        self._backend = backend
        self._stop = stop
        self._heard = threading.Event()  # set by the signal handler, which may run amid anything and does no more
        self._asked = False  # whether `stop` was called: the second signal ends the process

    def on_signal(self, number: int, _frame: object) -> None:
        """Ask the loop to stop, from the main thread: somebody else may have taken the descriptor since.

        Some code in C runs this and goes on (a regular expression that never ends): no other thread
        gets a turn then, so the process is ended by one that needs none.
        """
        self._backend.call_threadsafe(self._hear)
        if not self._heard.is_set():
            faulthandler.dump_traceback_later(PATIENCE + 0.5, exit=True, file=2)

    @contextmanager
    def watching(self) -> Generator[None, None, None]:
        """Watch while the block runs."""
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        thread = threading.Thread(target=self._run, args=(ours, before), name="mcp_core.signals", daemon=True)
        thread.start()
        try:
            yield
        finally:
            current = signal.set_wakeup_fd(-1)
            with suppress(ValueError, OSError):  # closed meanwhile
                # Code that has installed its own since keeps it.
                signal.set_wakeup_fd(before if current == theirs.fileno() else current, warn_on_full_buffer=False)
            theirs.close()
            if not self._heard.is_set():
                self._heard.set()  # a signal that came just now: the loop ends as it is
                faulthandler.cancel_dump_traceback_later()
            thread.join()
            ours.close()

    def _run(self, signals: socket.socket, before: int) -> None:
        while numbers := signals.recv(64):
            for number in numbers:
                if number in _SIGNALS:
                    self._take(number)
                elif before >= 0:
                    _pass_on(before, number)

    def _take(self, number: int) -> None:
        if self._asked:
            os._exit(128 + number)
        self._asked = True
        self._backend.call_threadsafe(self._hear)
        if not self._heard.wait(PATIENCE):
            os._exit(128 + number)

    def _hear(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        if not self._heard.is_set():
            self._heard.set()
            self._stop()


def _pass_on(descriptor: int, number: int) -> None:
    """Write a signal of no interest here to where it would have gone."""
    try:
        os.write(descriptor, bytes([number]))
    except OSError:
        return

"""Worker threads for code that blocks, apart from everybody else's.

The threads are daemons of their own pool: transport I/O never waits for one, and a
call that never ends does not keep the process from ending.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, Final, TypeVar, cast

from mcp_core.backend import Backend, Waiter, current_backend

__all__ = ["WorkerThreads"]

T = TypeVar("T")


class _Call:
    __slots__ = ("_backend", "_context", "_run", "abandoned", "waiter")

    def __init__(self, backend: Backend, run: Callable[[], Any], context: Context) -> None:
        self._backend = backend
        self._run = run
        self._context = context
        self.waiter: Waiter = backend.waiter()
        self.abandoned = False

    def make(self) -> None:
        if self.abandoned:
            return
        waiter = self.waiter
        try:
            value = self._context.run(self._run)
        except BaseException as exc:
            # A StopIteration cannot be raised into a coroutine; SystemExit ends this call only.
            error = RuntimeError(f"the call raised {type(exc).__name__}") if isinstance(exc, StopIteration) else exc
            error.__cause__ = exc if error is not exc else exc.__cause__
            self._backend.call_threadsafe(lambda: waiter.fail(error))
        else:
            self._backend.call_threadsafe(lambda: waiter.set(value))


class WorkerThreads:
    """At most `size` threads, started when they are needed; further calls wait their turn."""

    def __init__(self, size: int = 40) -> None:
        if size < 1:
            raise ValueError(f"size must be at least 1; got {size}")
        self.size: Final = size
        self._calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._idle = 0

    async def run(self, call: Callable[[], T]) -> T:
        """What the call returns or raises, made in a thread with the caller's context.

        A caller that is cancelled stops waiting at once. The call itself runs on to its
        end, unless it has not started: then it never does.
        """
        made = _Call(current_backend(), call, copy_context())
        self._start(made)
        try:
            return cast("T", await made.waiter.wait())
        finally:
            made.abandoned = True

    def _start(self, made: _Call) -> None:
        with self._lock:
            self._calls.put(made)
            if self._idle >= self._calls.qsize() or self._threads >= self.size:
                return
            self._threads += 1
        threading.Thread(target=self._work, name="mcp_core.worker", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            made = self._calls.get()
            with self._lock:
                self._idle -= 1
            made.make()
            del made  # or the last call's value lives until the next one

"""The backend on trio."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from mcp_core.backend import Work, current_task, holds, raise_cancelled
from mcp_core.queue_logger import QueueLogger

__all__ = ["TrioBackend"]

_log = QueueLogger(__name__)


class TrioBackend:
    """One running trio loop and a nursery in it. Open it with `open()`."""

    def __init__(self, nursery: trio.Nursery | None) -> None:
        self._own = nursery  # `None`: only futures and calls, no tasks
        self._token = trio.lowlevel.current_trio_token()  # for calls from other threads

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncGenerator[TrioBackend, None]:
        """The backend of the running loop."""
        failure: BaseException | None = None
        async with trio.open_nursery() as nursery:
            try:
                yield cls(nursery)
            except BaseException as exc:
                # Out of the nursery it would come in a group; it is the user's own.
                failure = exc
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    @property
    def _nursery(self) -> trio.Nursery:
        if self._own is None:
            raise RuntimeError("this backend has no tasks of its own")
        return self._own

    def spawn(self, work: Work, done: Callable[[], None] | None = None) -> _BackgroundTask:
        task = _BackgroundTask(done)
        try:
            self._nursery.start_soon(task.run, work)
        except RuntimeError:  # the nursery is closed: a message came while all ended
            work.close()
            if done is not None:
                done()
        return task

    def create_future(self) -> _Future:
        return _Future()

    def call_soon(self, call: Callable[[], None]) -> None:
        self._token.run_sync_soon(call)

    def call_later(self, seconds: float, call: Callable[[], None]) -> _Timer:
        timer = _Timer(call)
        self._nursery.start_soon(timer.run, seconds)
        return timer

    def call_threadsafe(self, call: Callable[[], None]) -> None:
        try:
            self._token.run_sync_soon(call)
        except trio.RunFinishedError:
            return

    def watch_readable(self, fd: int, call: Callable[[], None]) -> _Watch:
        if os.name == "posix" and not _watchable(fd):
            raise PermissionError("this descriptor cannot be watched")
        watch = _Watch(self._nursery, trio.lowlevel.wait_readable, fd, call)
        watch.resume()
        return watch

    def watch_writable(self, fd: int, call: Callable[[], None]) -> _Watch:
        return _Watch(self._nursery, trio.lowlevel.wait_writable, fd, call)


def _watchable(fd: int) -> bool:
    import stat

    mode = os.fstat(fd).st_mode
    return not stat.S_ISREG(mode) and (not stat.S_ISCHR(mode) or os.isatty(fd))


class _BackgroundTask:
    def __init__(self, done: Callable[[], None] | None) -> None:
        self._scope = trio.CancelScope()
        self._done = done
        self._task: trio.lowlevel.Task | None = None  # the task while it runs, to tell its own cancellation from others

    async def run(self, work: Work) -> None:
        self._task = trio.lowlevel.current_task()
        try:
            with self._scope:
                if self._scope.cancel_called:
                    work.close()
                    return
                try:
                    await work
                except Exception as exc:
                    # Out of here it would end the nursery, and everything else that goes on in it.
                    _log.error("a background task failed", exc=exc)
                except BaseExceptionGroup as group:
                    raise_cancelled(group, trio.Cancelled)
        finally:
            # The owner of the callback usually holds the task: leave no cycle behind.
            done, self._done = self._done, None
            if done is not None:
                done()

    def is_own(self, exc: BaseException) -> bool:
        if isinstance(exc, GeneratorExit):
            # Where the coroutine is closed from outside, no task runs, or one of another task.
            return self._task is not None and current_task() is self._task
        return not holds(exc, trio.Cancelled)

    def cancel(self) -> None:
        self._scope.cancel()


class _Timer:
    def __init__(self, call: Callable[[], None]) -> None:
        self._scope = trio.CancelScope()
        self._call = call

    async def run(self, seconds: float) -> None:
        with self._scope:
            await trio.sleep(seconds)
            self._call()

    def cancel(self) -> None:
        self._scope.cancel()


class _Future:
    def __init__(self) -> None:
        self._ready = trio.Event()  # set with the first value or error
        self._value: object = None
        self._error: BaseException | None = None

    def set_result(self, value: object) -> None:
        if not self._ready.is_set():
            self._value = value
            self._ready.set()

    def set_exception(self, error: BaseException) -> None:
        if not self._ready.is_set():
            self._error = error
            self._ready.set()

    async def wait(self) -> object:
        await self._ready.wait()
        if self._error is not None:
            raise self._error
        return self._value


class _Watch:
    """Watching is a task here: trio has no readiness callbacks."""

    def __init__(self, nursery: trio.Nursery, wait: Callable[[int], Any], fd: int, call: Callable[[], None]) -> None:
        self._nursery, self._wait, self._fd, self._call = nursery, wait, fd, call
        self._scope: trio.CancelScope | None = None

    def pause(self) -> None:
        if self._scope is not None:
            self._scope.cancel()
            self._scope = None

    def resume(self) -> None:
        if self._scope is None:
            self._scope = trio.CancelScope()
            self._nursery.start_soon(self._run, self._scope)

    async def _run(self, scope: trio.CancelScope) -> None:
        with scope:
            while self._scope is scope:
                await self._wait(self._fd)
                if self._scope is scope:
                    self._call()

"""The backend on asyncio (uvloop included)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from mcp_core.backend import Work, current_task, holds, raise_cancelled
from mcp_core.queue_logger import QueueLogger

__all__ = ["PATIENCE", "AsyncioBackend"]

PATIENCE: Final = 1.0
"""Seconds that cancelled work has to end when its backend is left."""

_log = QueueLogger(__name__)

# Python 3.12 can run a task's first step at once: a handler that never waits costs
# no turn of the loop.
_EAGER = sys.version_info >= (3, 12)


class AsyncioBackend:
    """One running asyncio loop. Open it with `open()`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks: set[_BackgroundTask] = set()  # tasks of this backend; asyncio itself holds only weak references
        # From 3.12 on it runs the first step at once: what is done by then is never scheduled.
        self._new_task = _task_maker(self._loop)
        self.call_soon: Callable[[Callable[[], None]], object] = self._loop.call_soon

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncGenerator[AsyncioBackend, None]:
        """The backend of the running loop."""
        backend = cls()
        try:
            yield backend
        finally:
            if backend._tasks:
                import anyio  # its asyncio side takes a while to load, and most ends need it not

                with anyio.CancelScope(shield=True):
                    await backend._end_tasks()

    async def _end_tasks(self) -> None:
        """Cancel what runs, and wait until it has ended, for a second at the most.

        A handler may swallow its cancellation: that must not delay the exit for ever.
        """
        until = self._loop.time() + PATIENCE
        while self._tasks and (left := until - self._loop.time()) > 0:
            for task in list(self._tasks):
                task.cancel()
            await asyncio.wait([task.task for task in self._tasks], timeout=left)
            await asyncio.sleep(0)  # the callbacks of those that never started
        if self._tasks:
            _log.error("%d handlers go on after their cancellation; they are left behind", len(self._tasks))

    def spawn(self, work: Work, done: Callable[[], None] | None = None) -> _BackgroundTask:
        task = _BackgroundTask(self._tasks, work, done)
        self._tasks.add(task)
        task.task = self._new_task(task.run())
        return task

    def create_future(self) -> _Future:
        return _Future(self._loop.create_future())

    def call_later(self, seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(seconds, call)

    def call_threadsafe(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the loop is closed
            return

    def watch_readable(self, fd: int, call: Callable[[], None]) -> _Watch:
        watch = _Watch(self._loop.add_reader, self._loop.remove_reader, fd, call)
        watch.resume()
        return watch

    def watch_writable(self, fd: int, call: Callable[[], None]) -> _Watch:
        return _Watch(self._loop.add_writer, self._loop.remove_writer, fd, call)


def _task_maker(loop: asyncio.AbstractEventLoop) -> Callable[[Work], asyncio.Task[None]]:
    """Return the cheapest way to a task: the loop's own only where somebody has made it another."""
    if loop.get_task_factory() is not None:
        return loop.create_task
    task: Any = asyncio.Task
    if _EAGER:  # pragma: no cover - from Python 3.12 on
        return partial(task, loop=loop, eager_start=True)
    return partial(task, loop=loop)


class _BackgroundTask:
    """A task, and what is to be done at its end.

    The end is noted by the task itself: a done callback would cost each request a turn
    of the loop. Only a task that is cancelled before its first step needs one.
    """

    __slots__ = ("_asked_to_end", "_done", "_started", "_tasks", "_work", "task")

    task: asyncio.Task[None]

    def __init__(self, tasks: set[_BackgroundTask], work: Work, done: Callable[[], None] | None) -> None:
        self._tasks = tasks
        self._work = work
        self._done = done
        self._started = False  # a coroutine that never started has to be closed by hand
        self._asked_to_end = False  # tells the cancellation that was asked for from one that the handler made itself

    async def run(self) -> None:
        self._started = True
        try:
            await self._work
        except Exception as exc:
            _log.error("a background task failed", exc=exc)
        except BaseExceptionGroup as group:
            raise_cancelled(group, asyncio.CancelledError)
        finally:
            self._end()

    def is_own(self, exc: BaseException) -> bool:
        task: Any = current_task()
        if isinstance(exc, GeneratorExit):
            # Where the coroutine is closed from outside, its task is not the one that runs. In its first
            # step, which may be made at once, it does not know its task yet.
            return task is not None and task is getattr(self, "task", task)
        if not holds(exc, asyncio.CancelledError):
            return True
        if self._asked_to_end or task is None:
            return False
        while task.cancelling():
            task.uncancel()
        return True

    def cancel(self) -> None:
        self._asked_to_end = True
        if not self._started:
            self._started = True
            self.task.add_done_callback(lambda _: self._never_started())
        self.task.cancel()

    def _never_started(self) -> None:
        self._work.close()
        self._end()

    def _end(self) -> None:
        self._tasks.discard(self)
        # The owner of the callback usually holds the task: drop it, or each request leaves
        # a cycle for the garbage collector.
        done, self._done = self._done, None
        if done is not None:
            done()


class _Future:
    __slots__ = ("_future",)

    def __init__(self, future: asyncio.Future[Any]) -> None:
        self._future = future

    def set_result(self, value: object) -> None:
        if not self._future.done():
            self._future.set_result(value)

    def set_exception(self, error: BaseException) -> None:
        if not self._future.done():
            self._future.set_exception(error)
            # The waiting task may be gone; asyncio would report the failure as never retrieved.
            self._future.exception()

    async def wait(self) -> object:
        return await self._future


class _Watch:
    def __init__(
        self, add: Callable[..., object], remove: Callable[[int], object], fd: int, call: Callable[[], None]
    ) -> None:
        self._add, self._remove, self._fd, self._call = add, remove, fd, call
        self._watching = False  # `add_reader` twice would replace the callback without a word

    def pause(self) -> None:
        if self._watching:
            self._watching = False
            self._remove(self._fd)

    def resume(self) -> None:
        if not self._watching:
            self._add(self._fd, self._call)
            self._watching = True

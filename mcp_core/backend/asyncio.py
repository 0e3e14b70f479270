"""The backend on asyncio (uvloop included)."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio

__all__ = ["AsyncioBackend"]

# Python 3.12 can run a task's first step at once: a handler that never waits costs
# no turn of the loop.
_EAGER = sys.version_info >= (3, 12)


class AsyncioBackend:
    """One running asyncio loop. Open it with `open()`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: set[asyncio.Task[None]] = set()
        self.call_soon: Callable[[Callable[[], None]], Any] = self._loop.call_soon

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncGenerator[AsyncioBackend, None]:
        """The backend of the running loop."""
        backend = cls()
        try:
            yield backend
        finally:
            with anyio.CancelScope(shield=True):
                await backend._end_jobs()

    async def _end_jobs(self) -> None:
        while self._jobs:
            for job in self._jobs:
                job.cancel()
            await asyncio.wait(self._jobs)

    def spawn(self, work: Coroutine[Any, Any, None], done: Callable[[], None] | None = None) -> asyncio.Task[None]:
        if _EAGER:
            eager: Any = asyncio.Task  # its stub for Python 3.11 lacks the argument
            job: asyncio.Task[None] = eager(work, loop=self._loop, eager_start=True)
            if job.done():
                if done is not None:
                    done()
                return job
        else:
            job = self._loop.create_task(work)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        if done is not None:
            job.add_done_callback(lambda _: done())
        return job

    def waiter(self) -> _Waiter:
        return _Waiter(self._loop.create_future())

    def call_later(self, seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(seconds, call)

    def call_threadsafe(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the loop is closed
            return

    def on_signal(self, number: int, call: Callable[[int], None]) -> Callable[[], None]:
        before = signal.getsignal(number)
        try:
            self._loop.add_signal_handler(number, call, number)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda n, _frame: self.call_threadsafe(lambda: call(n)))

        def undo() -> None:
            self._loop.remove_signal_handler(number)
            signal.signal(number, before)

        return undo

    def watch_readable(self, fd: int, call: Callable[[], None]) -> _Watch:
        watch = _Watch(self._loop.add_reader, self._loop.remove_reader, fd, call)
        watch.resume()
        return watch

    def watch_writable(self, fd: int, call: Callable[[], None]) -> _Watch:
        return _Watch(self._loop.add_writer, self._loop.remove_writer, fd, call)


class _Waiter:
    __slots__ = ("_future",)

    def __init__(self, future: asyncio.Future[Any]) -> None:
        self._future = future

    def set(self, value: Any) -> None:
        if not self._future.done():
            self._future.set_result(value)

    def fail(self, error: BaseException) -> None:
        if not self._future.done():
            self._future.set_exception(error)
            # Whoever waited may be gone; asyncio would report the failure as lost.
            self._future.exception()

    async def wait(self) -> Any:
        return await self._future


class _Watch:
    def __init__(
        self, add: Callable[..., Any], remove: Callable[[int], Any], fd: int, call: Callable[[], None]
    ) -> None:
        self._add, self._remove, self._fd, self._call = add, remove, fd, call
        self._watching = False

    def pause(self) -> None:
        if self._watching:
            self._watching = False
            self._remove(self._fd)

    def resume(self) -> None:
        if not self._watching:
            self._add(self._fd, self._call)
            self._watching = True

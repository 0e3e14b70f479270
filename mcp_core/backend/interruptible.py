"""Work that goes on in the task that began it, and that others may interrupt.

The first step may be made by hand, before anything else is set up: most handlers never
wait, and then there is nothing to interrupt. Interrupting is cancelling, distinguished from
the caller's own cancellation.

Theory of operation. To watch a handler (has its client disconnected?) takes a second task and a cancel
scope, which cost more than most handlers. So its coroutine is driven by hand first:

    start_eagerly(work)   send(None) -> StopIteration: done, nothing was set up
                       send(None) -> a future:      SuspendedCoroutine(work, future)
    interruptible(rest).finish()    yields that future as if it had come just now, then drives the rest

This works on asyncio because a coroutine may be resumed by any frame of the same task: the future that it
has yielded is yielded again by `SuspendedCoroutine.__await__`, and what is sent or thrown goes to the coroutine. The
task must be the same one throughout (`current_task`, `timeout` and anyio's scopes remember it).

On trio it does not: a scope must be opened before the scopes inside it, and the handler may have opened
one in its first step. There `supports_eager_start()` is false, and everything runs inside the scope.

On asyncio the interruption is `task.cancel()` without a scope, and `uncancel()` after it, so that an outer
cancellation that comes at the same time is not lost: `interrupted` says whose it was.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from mcp_core.backend import Work, running_library

__all__ = [
    "Interruptible",
    "SuspendedCoroutine",
    "background_tasks",
    "start_eagerly",
    "interruptible",
    "supports_eager_start",
]


class Interruptible(Protocol):
    """One piece of work."""

    @property
    def interrupted(self) -> bool:
        """Whether somebody asked it to end."""
        ...

    async def finish(self) -> object:
        """Do it, in the task that made it interruptible; the value, or `None` if it was interrupted."""
        ...

    def interrupt(self) -> None:
        """Ask it to end. From the loop's own thread."""
        ...


class SuspendedCoroutine:
    """The rest of a coroutine whose first step was made by hand: to be awaited in the same task."""

    __slots__ = ("_steps", "_waits_for")

    def __init__(self, steps: Any, waits_for: object) -> None:
        self._steps = steps  # the coroutine, suspended at its first await
        self._waits_for = waits_for  # what it has yielded: yielded again as if it had come just now

    def __await__(self) -> Generator[object, object, object]:
        waits_for = self._waits_for
        try:
            while True:
                try:
                    sent = yield waits_for
                except GeneratorExit:
                    self._steps.close()
                    raise
                except BaseException as exc:
                    waits_for = self._steps.throw(exc)
                else:
                    waits_for = self._steps.send(sent)
        except StopIteration as end:
            return end.value

    def close(self) -> None:
        """Close the coroutine."""
        self._steps.close()


def start_eagerly(work: Coroutine[object, object, object]) -> tuple[bool, object]:
    """Make the first step of a coroutine: `True` and its value, or `False` and what is to be awaited for it.

    In the task that awaits the rest, and only where `supports_eager_start()`.
    """
    try:
        waits_for = work.send(None)
    except StopIteration as end:
        return True, end.value
    return False, SuspendedCoroutine(work, waits_for)


def supports_eager_start() -> bool:
    """Return whether a first step may be made before the work becomes interruptible.

    On trio not: the scope that interrupts it has to be open before those of the work.
    """
    trio = sys.modules.get("trio")
    return trio is None or not trio.lowlevel.in_trio_run()


class _OnAsyncio:
    """Cancels its task by hand: a scope that opens amid the work would break the work's own scopes."""

    def __init__(self, work: Any) -> None:
        import asyncio

        self._work = work
        # `None` once finished: a late interrupt must not cancel what the task does next.
        self._task: Any = asyncio.current_task()
        self.interrupted = False

    async def finish(self) -> Any:
        import asyncio

        try:
            return await self._work
        except asyncio.CancelledError:
            if not self.interrupted:
                raise
            return None
        finally:
            task, self._task = self._task, None
            if self.interrupted:
                task.uncancel()

    def interrupt(self) -> None:
        if self._task is not None and not self.interrupted:
            self.interrupted = True
            self._task.cancel()


class _OnTrio:
    """Makes every step inside a cancel scope."""

    def __init__(self, work: Any) -> None:
        import trio

        self._work = work
        self._scope = trio.CancelScope()
        self.interrupted = False

    async def finish(self) -> Any:
        with self._scope:
            return await self._work
        return None

    def interrupt(self) -> None:
        self.interrupted = True
        self._scope.cancel()


@asynccontextmanager
async def background_tasks(*works: Callable[[], Work], delay: float = 0.0) -> AsyncGenerator[None, None]:
    """Other work while the body runs, ended with it.

    On asyncio without a scope around the body, whose own scopes may be open already; and
    there not before `delay` seconds have passed: a body that is done sooner is spared
    tasks, which cost more than a timer.
    """
    if running_library() == "trio":
        import trio

        async with trio.open_nursery() as nursery:
            for work in works:
                nursery.start_soon(work)
            yield
            nursery.cancel_scope.cancel()
        return
    import asyncio

    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[None]] = []

    def begin() -> None:
        tasks.extend(loop.create_task(work()) for work in works)

    timer: asyncio.Handle | None = None
    if delay:
        timer = loop.call_later(delay, begin)
    else:
        begin()
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()
        for task in tasks:
            task.cancel()


def interruptible(work: Any) -> Interruptible:
    """Awaitable work, to be finished in the running task."""
    return _OnTrio(work) if running_library() == "trio" else _OnAsyncio(work)

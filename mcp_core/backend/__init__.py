"""The few things that every request needs of an event loop, at their real price.

A task per request through anyio's task groups costs several times the task itself,
so the per-request path uses this small Protocol, implemented once for asyncio and
once for trio. What happens once per connection or less often uses anyio.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeAlias, cast

from mcp_core.queue_logger import QueueLogger

__all__ = [
    "Backend",
    "BackgroundTask",
    "Pollable",
    "Work",
    "Timer",
    "Future",
    "current_backend",
    "current_task",
    "has_running_loop",
    "holds",
    "is_cancellation",
    "open_backend",
    "raise_cancelled",
    "running_library",
    "settled",
    "spawn_detached",
]

_log = QueueLogger(__name__)


Work: TypeAlias = Coroutine[Any, Any, None]
"""A coroutine that is run for its effect."""


class BackgroundTask(Protocol):
    """A coroutine that is running."""

    def cancel(self) -> object:
        """Ask it to end. One that has not started never will."""
        ...

    def is_own(self, exc: BaseException) -> bool:
        """Return whether an exception that comes out of its coroutine has its cause in there.

        Not so are cancellation, unless the coroutine has cancelled its own task, and the closing
        of a coroutine that nothing runs any more. To be asked from inside the coroutine, about
        the exception that is being handled; a cancellation of its own is then done with.
        """
        ...


class Timer(Protocol):
    """A call to be made later."""

    def cancel(self) -> None:
        """Do not make it."""
        ...


class Pollable(Protocol):
    """A descriptor being watched."""

    def pause(self) -> None:
        """Stop watching; calling it again does nothing."""
        ...

    def resume(self) -> None:
        """Watch (again)."""
        ...


class Future(Protocol):
    """One task waiting for one value or failure. The first of them wins; later ones are ignored."""

    def set_result(self, value: object) -> None:
        """Wake the task with a value."""
        ...

    def set_exception(self, error: BaseException) -> None:
        """Wake the task with an exception."""
        ...

    async def wait(self) -> Any:
        """Return the value, once it is there."""
        ...


class Backend(Protocol):
    """One event loop, as the per-request path sees it.

    Used from the loop's own thread only, except for `call_threadsafe`.
    """

    def spawn(self, work: Work, done: Callable[[], None] | None = None) -> BackgroundTask:
        """Run a coroutine that lets no exception out.

        `done` is called when it has ended, even if it was cancelled before it started.
        """
        ...

    def create_future(self) -> Future:
        """Return a new future."""
        ...

    def call_soon(self, call: Callable[[], None], /) -> object:
        """Make a call in this turn of the loop or the next."""
        ...

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Make a call when this time has passed."""
        ...

    def call_threadsafe(self, call: Callable[[], None]) -> None:
        """Make a call on the loop, from any thread. Does nothing once the loop has ended."""
        ...

    def watch_readable(self, fd: int, call: Callable[[], None]) -> Pollable:
        """Make a call whenever the descriptor can be read.

        Raises:
            OSError: It cannot be watched (a regular file, say).
        """
        ...

    def watch_writable(self, fd: int, call: Callable[[], None]) -> Pollable:
        """Make a call whenever the descriptor can be written. Starts paused."""
        ...


async def settled(value: Any) -> Any:
    """Return a value, awaited if it can be: an author's function may be plain or async."""
    return await value if hasattr(value, "__await__") else value


def running_library() -> str:
    """`asyncio` or `trio`, whichever runs the caller.

    Raises:
        RuntimeError: Neither does.
    """
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return "trio"
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        return "asyncio"
    raise RuntimeError("no event loop is running: call this from async code, or use Server.run()")


def has_running_loop() -> bool:
    """Return whether an event loop runs the caller."""
    try:
        running_library()
    except RuntimeError:
        return False
    return True


def is_cancellation(exc: BaseException) -> bool:
    """Return whether the running task is being cancelled, and this is how.

    On asyncio a handler may raise `CancelledError` that was not requested;
    that is a failure of its own.
    """
    trio = sys.modules.get("trio")
    if trio is not None and holds(exc, trio.Cancelled):
        return True
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None or not holds(exc, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def holds(exc: BaseException, kind: type[BaseException]) -> bool:
    """Return whether an exception is of this kind, or a group with such a one in it."""
    if isinstance(exc, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", exc).subgroup(kind) is not None
    return isinstance(exc, kind)


def raise_cancelled(group: BaseExceptionGroup[BaseException], kind: type[BaseException]) -> None:
    """Raise the cancellation that is in a group. Everything else in it is logged.

    A group without a cancellation, or with a `KeyboardInterrupt`, is raised as it is.
    """
    cancelled, failures = group.split(kind)
    if cancelled is None or (failures is not None and holds(failures, KeyboardInterrupt)):
        raise group
    if failures is not None:
        _log.error("work failed while it was being cancelled", exc=failures)
    raise cancelled


def current_task() -> object:
    """Return the running task, to be compared; `None` where no task runs."""
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return trio.lowlevel.current_task() if trio.lowlevel.in_trio_task() else None
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:
        return None
    return asyncio.current_task()


def current_backend() -> Backend:
    """Return the running loop's backend for futures and calls, without tasks of its own."""
    if running_library() == "trio":
        from mcp_core.backend.trio import TrioBackend

        return TrioBackend(None)
    from mcp_core.backend.asyncio import AsyncioBackend

    return AsyncioBackend()


@asynccontextmanager
async def open_backend() -> AsyncGenerator[Backend, None]:
    """The backend of the running loop. Its tasks are cancelled and awaited at the end."""
    if running_library() == "trio":
        from mcp_core.backend.trio import TrioBackend

        async with TrioBackend.open() as backend:
            yield backend
    else:
        from mcp_core.backend.asyncio import AsyncioBackend

        async with AsyncioBackend.open() as backend:
            yield backend


_detached: set[Any] = set()
"""asyncio keeps only a weak reference to its tasks."""


def spawn_detached(run: Callable[[], Work]) -> None:
    """Run a coroutine that lets no exception out, detached, on the running loop."""
    if running_library() == "trio":
        import trio

        trio.lowlevel.spawn_system_task(run)
        return
    import asyncio

    _detached.add(task := asyncio.get_running_loop().create_task(run()))
    task.add_done_callback(_detached.discard)

"""Work that goes on in the task that began it, and that others may interrupt.

The first step is made at once, without a task of its own: most handlers never wait, and
then there is nothing to interrupt. Interrupting is cancelling, told apart from the
caller's own cancellation.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from mcp_core.backend import running_library

__all__ = ["WAITS", "Interruptible", "beside", "interruptible"]


class Interruptible(Protocol):
    """One piece of work."""

    @property
    def interrupted(self) -> bool:
        """Whether somebody asked it to end."""
        ...

    def begin(self) -> Any:
        """Make the first step: the value if that was all, else `WAITS`."""
        ...

    async def finish(self) -> Any:
        """Make the rest, in the same task; the value, or `None` if it was interrupted."""
        ...

    def interrupt(self) -> None:
        """Ask it to end. From the loop's own thread."""
        ...


class _Waits:
    def __repr__(self) -> str:
        return "WAITS"


WAITS: Any = _Waits()
"""The work has not ended with its first step."""


class _Rest:
    """An awaitable that has been started by hand: goes on where it waits."""

    def __init__(self, steps: Generator[Any, Any, Any], waits_for: Any) -> None:
        self._steps = steps
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, Any]:
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


class _OnAsyncio:
    """Cancels its task by hand: a scope that opens amid the work would break the work's own scopes."""

    def __init__(self, work: Any) -> None:
        self._work = work
        self._task: Any = None
        self._rest: _Rest | None = None
        self.interrupted = False

    def begin(self) -> Any:
        steps = self._work.__await__()
        try:
            waits_for = next(steps)
        except StopIteration as end:
            return end.value
        import asyncio

        self._task = asyncio.current_task()
        self._rest = _Rest(steps, waits_for)
        return WAITS

    async def finish(self) -> Any:
        import asyncio

        try:
            return await self._rest  # type: ignore[misc]
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

    def begin(self) -> Any:
        return WAITS

    async def finish(self) -> Any:
        with self._scope:
            return await self._work
        return None

    def interrupt(self) -> None:
        self.interrupted = True
        self._scope.cancel()


@asynccontextmanager
async def beside(*works: Callable[[], Coroutine[Any, Any, None]]) -> AsyncGenerator[None, None]:
    """Other work while the body runs, ended with it.

    On asyncio without a scope around the body, whose own scopes may be open already.
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

    tasks = [asyncio.get_running_loop().create_task(work()) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()


def interruptible(work: Any) -> Interruptible:
    """Awaitable work, to be begun in the running task."""
    return _OnTrio(work) if running_library() == "trio" else _OnAsyncio(work)

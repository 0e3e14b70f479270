"""Tasks in flight, to be cancelled or waited for.

Knows tasks; nothing of messages or HTTP.
"""

from __future__ import annotations

import anyio

from mcp_core.backend import Backend, BackgroundTask, Work

__all__ = ["TaskSet"]


class TaskSet:
    """Work of one kind, each piece by a key of its own."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        # `None` while `spawn` runs: the task may be over before there is a handle.
        self._tasks: dict[object, BackgroundTask | None] = {}
        self._empty = anyio.Event()  # set when the last task ends; `ended` replaces it before it waits

    def spawn(self, work: Work, key: object = None) -> None:
        """Run a coroutine that lets no exception out."""
        key = object() if key is None else key
        self._tasks[key] = None  # it may have ended when `spawn` returns
        task = self._backend.spawn(work, lambda: self._ended(key))
        if key in self._tasks:
            self._tasks[key] = task

    def _ended(self, key: object) -> None:
        self._tasks.pop(key, None)
        if not self._tasks:
            self._empty.set()

    def __len__(self) -> int:
        return len(self._tasks)

    def cancel(self, key: object) -> None:
        """Cancel the task that was spawned under this key, if it runs."""
        task = self._tasks.get(key)
        if task is not None:
            task.cancel()

    def cancel_all(self) -> None:
        """Cancel everything."""
        for key in list(self._tasks):
            self.cancel(key)

    async def ended(self) -> None:
        """Wait until no task is in flight."""
        while self._tasks:
            if self._empty.is_set():
                self._empty = anyio.Event()
            await self._empty.wait()

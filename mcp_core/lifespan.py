"""The lifespan of a server: entered when it is first used, left when the last user goes.

Entered and left in a task of its own, so that whatever task opens or closes a
connection, a lifespan may hold task groups and cancel scopes across its `yield`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio

from mcp_core.backend import spawn_detached

__all__ = ["Lifespan"]


class Lifespan:
    """Counts the users of one context manager, and keeps it entered while there are any."""

    def __init__(self, enter: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        self._enter = enter
        self._users = 0
        self._host: _Host | None = None

    @property
    def state(self) -> Any:
        """What it yielded.

        Raises:
            LookupError: It is not entered.
        """
        if self._host is None or not self._host.ready.is_set():
            raise LookupError("the lifespan is not entered")
        return self._host.state

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[Any, None]:
        """Use it. An exception of its start or its end comes out here."""
        state = await self.acquire()
        try:
            yield state
        finally:
            await self.release()

    async def acquire(self) -> Any:
        """Count one user more, and wait until it is entered."""
        self._users += 1
        if self._host is None:
            self._host = _Host(self._enter)
        host = self._host
        try:
            await host.started()
        except BaseException:
            await self.release()
            raise
        return host.state

    async def release(self) -> None:
        """Count one user less; the last one waits until it is left."""
        self._users -= 1
        if self._users == 0 and self._host is not None:
            host, self._host = self._host, None
            await host.ended()


class _Host:
    """The task that a lifespan lives in."""

    def __init__(self, enter: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        self._enter = enter
        self.ready = anyio.Event()
        self._stop = anyio.Event()
        self._left = anyio.Event()
        self._error: BaseException | None = None
        self.state: Any = None
        spawn_detached(self._run)

    async def _run(self) -> None:
        try:
            async with self._enter() as self.state:
                self.ready.set()
                await self._stop.wait()
        except BaseException as exc:
            self._error = exc
        finally:
            self.ready.set()
            self._left.set()

    async def started(self) -> None:
        await self.ready.wait()
        self._raise()

    async def ended(self) -> None:
        self._stop.set()
        with anyio.CancelScope(shield=True):
            await self._left.wait()
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

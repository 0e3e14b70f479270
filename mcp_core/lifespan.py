"""The lifespan of a server: entered when it is first used, left when the last user goes.

Entered and left in a task of its own, so that whatever task opens or closes a
connection, a lifespan may hold task groups and cancel scopes across its `yield`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio

from mcp_core.backend import is_cancellation, spawn_detached
from mcp_core.close_callbacks import CloseCallbacks
from mcp_core.queue_logger import QueueLogger

__all__ = ["Lifespan"]


_log = QueueLogger(__name__)


class Lifespan:
    """Counts the users of one context manager, and keeps it entered while there are any.

    One that ends by itself, because something in it failed, is logged at once and gives no
    state any more: who comes next has it entered again.
    """

    def __init__(self, enter: Callable[[], AbstractAsyncContextManager[object]]) -> None:
        self._enter = enter
        self._users = 0
        self._host: _Host | None = None

    @property
    def state(self) -> object:
        """What it yielded.

        Raises:
            LookupError: It is not entered, or has failed since.
        """
        host = self._host
        if host is None or not host.serves:
            raise LookupError("the lifespan is not entered")
        return host.state

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[object, None]:
        """Use it. An exception of its start, of its end or in between comes out here."""
        state = await self.acquire()
        host = self._host
        try:
            yield state
        finally:
            await self.release()
            if host is not None:
                host.check()

    async def acquire(self) -> object:
        """Count one user more, and wait until it is entered."""
        self._users += 1
        host = self._host
        if host is None or host.has_failed:
            host = self._host = _Host(self._enter)
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

    def on_failure(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when what is entered now fails. Returns an idempotent function that unregisters it."""
        return (lambda: None) if self._host is None else self._host.failures.add(callback)


class _Host:
    """The task that a lifespan lives in.

    starting -> serving -> stopping -> left, by `ended`; or, where something in it fails, straight
    from starting or serving to left, with `_error`, which comes out to one of those who wait.
    """

    def __init__(self, enter: Callable[[], AbstractAsyncContextManager[object]]) -> None:
        self._enter = enter
        self.failures = CloseCallbacks()
        self.serves = False
        self._ready = anyio.Event()
        self._stop = anyio.Event()
        self._left = anyio.Event()
        self._error: BaseException | None = None
        self.state: object = None
        spawn_detached(self._run)

    @property
    def has_failed(self) -> bool:
        """Whether it was left without being asked to."""
        return self._left.is_set()

    async def _run(self) -> None:
        try:
            async with self._enter() as self.state:
                self.serves = True
                self._ready.set()
                try:
                    await self._stop.wait()
                except BaseException as exc:
                    if not is_cancellation(exc):
                        raise
                    # Something in it failed, and is raised when it is left; or the loop ends without
                    # notice. It is left in order, as far as the loop lets it.
                else:
                    self.serves = False
            self.serves = False
        except BaseException as exc:
            self._error = exc
        finally:
            failed_while_serving, self.serves = self.serves, False
            self._ready.set()
            self._left.set()
            if failed_while_serving:
                _log.error("the lifespan has failed; what it gave is not used any more", exc=self._error)
                self.failures.run()

    async def started(self) -> None:
        await self._ready.wait()
        self.check()

    async def ended(self) -> None:
        self._stop.set()
        with anyio.CancelScope(shield=True):
            await self._left.wait()
        self.check()

    def check(self) -> None:
        """Raise what it has failed with, once."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error

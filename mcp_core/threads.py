"""Worker threads for code that blocks, apart from everybody else's.

The threads are daemons of their own pool: transport I/O never waits for one, and a
call that never ends does not keep the process from ending.

Code in such a thread can get back to the event loop: `call_on_loop` from this library, and
`anyio.from_thread` from anybody's (`_WorkerToken`).
"""

from __future__ import annotations

import queue
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Future as ThreadFuture
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, Final, TypeVar, cast

from mcp_core.backend import Backend, Future, current_backend, is_cancellation, spawn_detached
from mcp_core.errors import MCPCoreError

__all__ = ["MAX_WAITING", "Called", "PoolBusy", "WorkerThreads", "call_on_loop", "in_worker_thread"]

T = TypeVar("T")

MAX_WAITING: Final = 1000
"""Calls that may wait for a thread."""


class PoolBusy(MCPCoreError):
    """All threads are taken, and as many calls wait for one as may."""


class _ThreadCall:
    """One call, from `run` through a thread to its outcome."""

    __slots__ = ("_backend", "_context", "_held", "_run", "_scopes", "future", "is_cancelled", "taken")

    def __init__(self, run: Callable[[], object]) -> None:
        self._backend: Backend = current_backend()
        self._run = run
        self._context: Context = copy_context()
        self.future: Future = self._backend.create_future()
        self.taken = False
        """Whether a thread has it."""
        self.is_cancelled = False
        """Whether its caller has stopped waiting."""
        self._held: set[ThreadFuture[Any]] = set()
        """What its code waits for the event loop to do. Added to in the thread, failed on the loop."""
        self._scopes: set[Any] = set()
        """Cancel scopes of what the loop does for it. Used on the loop only."""

    def make(self) -> None:
        """Make the call, in a worker thread."""
        if self.is_cancelled:
            return
        future = self.future
        _thread.call = self
        try:
            value = self._context.run(self._run)
        except BaseException as exc:
            error = _as_failure(exc)
            self._backend.call_threadsafe(lambda: future.set_exception(error))
        else:
            self._backend.call_threadsafe(lambda: future.set_result(value))
        finally:
            _thread.call = None

    def abandon(self) -> None:
        """Wait no longer: what its code asks of the event loop is cancelled. On the loop."""
        self.is_cancelled = True
        if self._scopes:
            for scope in list(self._scopes):
                scope.cancel()
        if self._held:
            for held in list(self._held):
                _settle(held, _abandoned())

    # --- from the thread to the loop --------------------------------------------------------

    def on_loop(self, function: Callable[..., object], args: tuple[object, ...]) -> Any:
        """Call a function on the event loop, await what it returns, and wait here for the outcome."""
        held: ThreadFuture[Any] = ThreadFuture()
        # Whichever runs second sees the first: `abandon` sees what is held, this sees `is_cancelled`.
        self._held.add(held)
        try:
            if self.is_cancelled:
                raise _abandoned()
            context = copy_context()
            self._backend.call_threadsafe(
                lambda: context.run(spawn_detached, lambda: self._serve(function, args, held))
            )
            return held.result()
        finally:
            self._held.discard(held)

    async def _serve(
        self, function: Callable[..., object], args: tuple[object, ...], held: ThreadFuture[object]
    ) -> None:
        if self.is_cancelled:
            return
        import anyio

        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                value: Any = function(*args)
                _settle(held, value=await value if hasattr(value, "__await__") else value)
            except BaseException as exc:
                _settle(held, exc)
                if is_cancellation(exc):
                    raise
            finally:
                self._scopes.discard(scope)


def _as_failure(exc: BaseException) -> BaseException:
    """Return what a call's exception is for the coroutine that waits for it.

    Some cannot be raised into a coroutine, or mean something there that they do not mean in a
    thread: no signal and no closed generator reaches it. SystemExit ends this call only.
    """
    if not isinstance(exc, StopIteration | GeneratorExit | KeyboardInterrupt):
        return exc
    error = RuntimeError(f"the call raised {type(exc).__name__}")
    error.__cause__ = exc
    return error


def _settle(held: ThreadFuture[object], error: BaseException | None = None, value: object = None) -> None:
    with suppress(Exception):  # it has been settled already: the first outcome counts
        if error is not None:
            held.set_exception(error)
        else:
            held.set_result(value)


def _abandoned() -> BaseException:
    """Return what ends code whose caller has gone: not an `Exception`, which it might handle."""
    asyncio = sys.modules.get("asyncio")
    return _Abandoned() if asyncio is None else asyncio.CancelledError()


class _Abandoned(BaseException):
    """The caller has stopped waiting for this call."""


# --- what runs in this thread -------------------------------------------------------------------


class _Thread(threading.local):
    call: _ThreadCall | None = None


_thread: Final = _Thread()


def in_worker_thread() -> bool:
    """Return whether this code runs in a thread of a `WorkerThreads`."""
    return _thread.call is not None


class Called(Coroutine[Any, Any, T]):
    """What `call_on_loop` returns: to be awaited on the event loop, done already in a worker thread.

    A class of its own, so that checkers let it go un-awaited; on the event loop it is the
    coroutine itself. A coroutine that is over has nothing to send to or to close.
    """

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def __await__(self) -> Generator[object, object, T]:
        yield from ()
        return self._value

    def send(self, value: object, /) -> object:
        """Return the value, as a coroutine does at its end."""
        raise StopIteration(self._value)

    def throw(self, exc: Any, /, *_: object) -> object:
        """Raise the exception: there is no code that could handle it."""
        raise exc

    def close(self) -> None:
        """There is nothing to close."""


def call_on_loop(function: Callable[..., Awaitable[T]], *args: Any) -> Called[T]:
    """Make an awaitable call from wherever this is.

    In a worker thread the call is made on the event loop that waits for the thread, and has
    ended when this returns; what is returned need not be awaited. Anywhere else this is
    `function(*args)`, to be awaited.

    Raises:
        asyncio.CancelledError: In a worker thread: its caller has stopped waiting.
    """
    call = _thread.call
    if call is None:
        return cast("Called[T]", function(*args))
    return Called(call.on_loop(function, args))


# --- anyio --------------------------------------------------------------------------------------


class _WorkerToken:
    """Makes a worker thread one of anyio's, as `anyio.from_thread` sees it.

    `anyio.from_thread` looks for a token in a thread-local of its own (there is no public way
    to put one there) and calls three methods of the token's `backend_class`. The token is put
    there once per thread, and finds the call that runs when it is used, so that calls cost
    nothing for it.
    """

    native_token = None

    @property
    def backend_class(self) -> _WorkerToken:
        return self

    @staticmethod
    def run_async_from_thread(function: Callable[..., object], args: tuple[object, ...], token: object) -> object:
        return _running().on_loop(function, args)

    @staticmethod
    def run_sync_from_thread(function: Callable[..., object], args: tuple[object, ...], token: object) -> object:
        return _running().on_loop(_called_only, (function, *args))

    @staticmethod
    def check_cancelled() -> None:
        if _running().is_cancelled:
            raise _abandoned()


async def _called_only(function: Callable[..., object], *args: object) -> object:
    """Return what the function returns, even if that could be awaited."""
    return function(*args)


def _running() -> _ThreadCall:
    call = _thread.call
    if call is None:
        raise RuntimeError("no call runs in this thread")
    return call


def _make_known_to_anyio() -> None:
    try:
        from anyio._core._eventloop import threadlocals
    except ImportError:  # another layout of anyio: `anyio.from_thread` will say that it knows no token
        return
    threadlocals.current_token = _WorkerToken()


# --- the pool -------------------------------------------------------------------------------------


class WorkerThreads:
    """At most `size` threads, started when they are needed; further calls wait their turn.

    At most `max_waiting` calls wait. The threads end when the pool is garbage collected.
    """

    def __init__(self, size: int = 40, *, max_waiting: int = MAX_WAITING) -> None:
        """
        Raises:
            ValueError: There would be no thread.
        """
        if not _is_count(size) or size < 1:
            raise ValueError(f"size must be a positive number of threads; got {size!r}")
        if not _is_count(max_waiting) or max_waiting < 0:
            raise ValueError(f"max_waiting must be a number of calls, 0 or more; got {max_waiting!r}")
        self.size: Final = size
        self.max_waiting: Final = max_waiting
        self._pool = _Pool()
        weakref.finalize(self, self._pool.close).atexit = False

    async def run(self, call: Callable[[], T]) -> T:
        """Return what the call returns or raises, made in a thread with the caller's context.

        A caller that is cancelled stops waiting at once. The call itself runs on to its
        end, unless it has not started: then it never does.

        Raises:
            PoolBusy: All threads are taken, and `max_waiting` calls wait.
        """
        made = _ThreadCall(call)
        self._start(made)
        try:
            return cast("T", await made.future.wait())
        finally:
            made.abandon()
            if not made.taken:
                self._pool.forget(made)

    def _start(self, made: _ThreadCall) -> None:
        pool = self._pool
        with pool.lock:
            if pool.idle:
                # Counted down here, not by the thread that wakes: until it does, the next
                # call would take it for idle, and wait behind this one.
                pool.idle -= 1
                pool.handed.put(made)
                return
            if pool.threads >= self.size:
                if len(pool.waiting) >= self.max_waiting:
                    raise PoolBusy(f"{self.size} calls are in progress, and {len(pool.waiting)} wait")
                pool.waiting[made] = None
                return
            pool.threads += 1
        try:
            threading.Thread(target=pool.work, args=(made,), name="mcp_core.worker", daemon=True).start()
        except BaseException:  # the system has no thread left
            with pool.lock:
                pool.threads -= 1
            raise


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class _Pool:
    """What the threads of a pool share. They do not hold the pool itself, which may go.

    Every thread is idle (it waits for `handed`, and is counted in `idle`), or has a call. A
    call waits only while no thread is idle, so a thread that is done looks there first.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.threads = 0
        self.idle = 0
        self.waiting: OrderedDict[_ThreadCall, None] = OrderedDict()
        self.handed: queue.SimpleQueue[_ThreadCall | None] = queue.SimpleQueue()
        self._closed = False

    def work(self, made: _ThreadCall | None) -> None:
        """Make this call, and those that come after it."""
        _make_known_to_anyio()
        while made is not None:
            made.taken = True
            made.make()
            del made  # or the last call's value lives until the next one
            with self.lock:
                if self.waiting:
                    made, _ = self.waiting.popitem(last=False)
                    continue
                if self._closed:
                    return
                self.idle += 1
            made = self.handed.get()

    def forget(self, made: _ThreadCall) -> None:
        """Drop a call that waits for a thread, if it still does."""
        with self.lock:
            self.waiting.pop(made, None)

    def close(self) -> None:
        """Have the threads end, those that are busy after their call."""
        with self.lock:
            self._closed = True
            for _ in range(self.idle):
                self.handed.put(None)
            self.idle = 0

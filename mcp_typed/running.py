"""A function of the author's, run within its limits: the same for every kind of component.

Owns where it runs (the event loop, a worker thread), how long and how many at once, what is injected, what resolvers
give and have to be closed after it, and the items of an iterator. Knows no server, and not what becomes of the value
or of a failure: that is the component's business.

    run ── slot ── time limit ── resolvers ── injected parameters ── call ── value
           max_concurrency       may ask the client first            a thread, inline, or awaited
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, Final, cast

from mcp_core import types as t
from mcp_core.backend import spawn_detached
from mcp_core.codec import JSONObject
from mcp_core.context import AnyContext
from mcp_core.threads import PoolBusy
from mcp_typed.cancellation import Cancellation
from mcp_typed.context import Context
from mcp_typed.errors import InvalidOption, ToolError
from mcp_typed.plain import ITEMS, to_json
from mcp_typed.policy import Policy
from mcp_typed.resolve import Resolvers, ResumableParams
from mcp_typed.signature import MISSING, HandlerPlan, Injected

if TYPE_CHECKING:
    import anyio

__all__ = ["Runner"]


class Runner:
    """Runs one function."""

    def __init__(self, plan: HandlerPlan, policy: Policy) -> None:
        """
        Raises:
            InvalidOption: A time limit for what nothing can interrupt.
            InvalidSignature: A resolver cannot be called.
        """
        self._plan = plan
        self._policy = policy
        self._resolvers = Resolvers(plan, policy.signer) if plan.resolved else None
        self._slots: anyio.Semaphore | None = None
        """`max_concurrency` of them; made by the first call, since it belongs to an event loop."""
        if policy.timeout is not None and policy.run == "inline" and not plan.is_async:
            raise InvalidOption(
                f"{plan.kind} {plan.name!r}: timeout must be left out, or math.inf, where a plain function runs "
                f"inline, which nothing can interrupt; got {policy.timeout!r}: make it async, or let it run in a thread"
            )

    @property
    def is_plain_call(self) -> bool:
        """Whether running it is no more than calling the function with the arguments."""
        plan, policy = self._plan, self._policy
        has_more = plan.injected or plan.positional or self._resolvers
        return not has_more and policy.timeout is None and policy.max_concurrency is None

    @property
    def injects_cancellation(self) -> bool:
        """Whether the function, or maybe a resolver, wants the token: one for the whole call serves them all."""
        return self._resolvers is not None or "cancellation" in self._plan.injected.values()

    async def run(
        self,
        ctx: AnyContext,
        params: ResumableParams,
        keywords: JSONObject,
        *,
        collects: bool = False,
    ) -> object:
        """Return the function's value, or the `InputRequiredResult` by which its resolvers ask the client.

        With `collects` the items of an iterator are collected, each with a progress notification.

        Raises:
            PoolBusy: Too many calls wait for a slot, or for a thread.
            ToolError: The time limit has passed.
            BaseException: Whatever the function or a resolver raises.
        """
        async with self._slot():
            calling = _Calling(self, ctx)
            try:
                return await self._in_time(self._resolve_and_call(ctx, params, keywords, calling, collects))
            except BaseException:
                if calling.cancellation is not None:
                    calling.cancellation.request()
                raise

    async def _resolve_and_call(
        self,
        ctx: AnyContext,
        params: ResumableParams,
        keywords: JSONObject,
        calling: _Calling,
        collects: bool,
    ) -> object:
        if self._resolvers is None:
            return await self._value(ctx, keywords, calling, collects)
        async with calling.resources:
            resolved = await self._resolvers.resolve(ctx, params, keywords, calling)
            if isinstance(resolved, t.InputRequiredResult):
                return resolved
            keywords.update(resolved)
            return await self._value(ctx, keywords, calling, collects)
        raise RuntimeError("a resolver suppressed the exception that had ended the call")

    async def _value(self, ctx: AnyContext, keywords: JSONObject, calling: _Calling, collects: bool) -> object:
        keywords.update(calling.inject(self._plan.injected))
        value = await self.call(self._plan, keywords)
        return await self._collect(ctx, value) if collects else value

    async def call(self, plan: HandlerPlan, keywords: JSONObject) -> object:
        """Call a function by its plan, where such functions run; `keywords` are the call's own."""
        function = plan.function
        positional = [keywords.pop(name) for name in plan.positional]
        if plan.is_async or plan.is_generator or self._policy.run == "inline":
            value = function(*positional, **keywords)
        else:
            value = await self._policy.threads.run(lambda: function(*positional, **keywords))
        # What a wrapper of a coroutine function returns is found out by calling it.
        return await value if inspect.isawaitable(value) else value

    async def call_plain(self, function: Callable[[], object]) -> object:
        """Call a plain function of the author's where such functions run."""
        return function() if self._policy.run == "inline" else await self._policy.threads.run(function)

    async def _collect(self, ctx: AnyContext, value: object) -> object:
        """Collect the items of an iterator, each with a progress notification for a client that asked for it."""
        if isinstance(value, t.CallToolResult | str) or not isinstance(value, AsyncIterator | Iterable):
            return value
        reports = ctx.meta.get("progressToken") is not None
        items: list[object] = []
        async with contextlib.aclosing(self._items(value)) as each:
            async for item in each:
                items.append(item)
                if len(items) > ITEMS:
                    raise ToolError(f"it gives more than {ITEMS:,} items")
                if reports:
                    await ctx.report_progress(len(items), message=_text_of(item))
        return items if self._plan.returns is not MISSING else iter(items)

    async def _items(self, value: Any) -> AsyncGenerator[Any, None]:
        """Yield the items as they come. Those of a plain iterator are made where plain functions run."""
        if isinstance(value, AsyncIterator):
            try:
                async for item in cast("AsyncIterator[Any]", value):
                    yield item
            finally:
                close = getattr(cast("Any", value), "aclose", None)
                if close is not None:
                    await close()
            return
        iterator = iter(value)
        inline = self._policy.run == "inline" or isinstance(value, list | tuple)
        while True:
            item = next(iterator, _END) if inline else await self._policy.threads.run(lambda: next(iterator, _END))
            if item is _END:
                return
            yield item

    @contextlib.asynccontextmanager
    async def _slot(self) -> AsyncGenerator[None]:
        """Wait until fewer than `max_concurrency` calls run."""
        policy = self._policy
        if policy.max_concurrency is None:
            yield
            return
        if self._slots is None:
            import anyio

            self._slots = anyio.Semaphore(policy.max_concurrency)
        if self._slots.statistics().tasks_waiting >= policy.max_waiting:
            raise PoolBusy(
                f"{policy.max_concurrency} calls of {self._plan.name} are in progress, and {policy.max_waiting} wait"
            )
        async with self._slots:
            yield

    async def _in_time(self, call: Any) -> Any:
        timeout = self._policy.timeout
        if timeout is None:
            return await call
        import anyio

        with anyio.move_on_after(timeout):
            return await call
        raise ToolError(f"timed out after {timeout:g} s")


class _Calling:
    """One call: what its functions are given, and what has to be ended after it."""

    def __init__(self, runner: Runner, ctx: AnyContext) -> None:
        self._runner = runner
        self._ctx = ctx
        self.cancellation = Cancellation() if runner.injects_cancellation else None
        self.resources = contextlib.AsyncExitStack()
        """What resolvers have opened, ended in reverse order; it sees how the call ended."""

    def inject(self, wanted: dict[str, Injected]) -> JSONObject:
        """Return the injected parameters by name."""
        given: dict[Injected, Any] = {
            "context": Context(self._ctx),
            "core context": self._ctx,
            "cancellation": self.cancellation,
        }
        return {name: what(self._ctx) if isinstance(what, type) else given[what] for name, what in wanted.items()}

    async def invoke(self, plan: HandlerPlan, keywords: JSONObject) -> object:
        """Call a function by its plan, wherever such functions run."""
        return await self._runner.call(plan, keywords)

    async def enter(self, value: object) -> object:
        """Return what a generator or a context manager gives, and end it after the call; other values as they are.

        Only those that are made of a generator: a connection to a database is a context
        manager too, and it is its owner's to say when it is closed.
        """
        if isinstance(value, AsyncGenerator):
            return await self.resources.enter_async_context(_opened(cast("AsyncGenerator[Any]", value)))
        if isinstance(value, Generator):
            generator = cast("Generator[Any, None, None]", value)
            return await self._enter_plain(contextlib.contextmanager(lambda: generator)())
        if isinstance(value, _ASYNC_MANAGER):
            return await self.resources.enter_async_context(cast("contextlib.AbstractAsyncContextManager[Any]", value))
        if isinstance(value, _MANAGER):
            return await self._enter_plain(cast("contextlib.AbstractContextManager[Any]", value))
        return value

    async def _enter_plain(self, manager: contextlib.AbstractContextManager[object]) -> object:
        value = await self._runner.call_plain(manager.__enter__)

        async def leave(*how: Any) -> Any:
            return await _to_the_end(lambda: self._runner.call_plain(lambda: manager.__exit__(*how)))

        self.resources.push_async_exit(leave)
        return value


async def _to_the_end(work: Callable[[], Awaitable[Any]]) -> Any:
    """Do something that must not be left undone, whether or not this task is cancelled meanwhile.

    In a task of its own: a shield keeps off cancel scopes, not asyncio's own cancellation.
    """
    import anyio

    ended = anyio.Event()
    outcome: Any = None
    failure: BaseException | None = None

    async def run() -> None:
        nonlocal outcome, failure
        try:
            outcome = await work()
        except Exception as exc:
            failure = exc
        finally:
            ended.set()

    spawn_detached(run)
    with anyio.CancelScope(shield=True):
        await ended.wait()
    if failure is not None:
        raise failure
    return outcome


def _nothing() -> Generator[None, None, None]:
    yield


async def _nothing_async() -> AsyncGenerator[None]:
    yield


# The classes of the managers that `contextlib` makes of generator functions have no public names.
_MANAGER: Final[type] = type(contextlib.contextmanager(_nothing)())
_ASYNC_MANAGER: Final[type] = type(contextlib.asynccontextmanager(_nothing_async)())


def _opened(generator: AsyncGenerator[Any]) -> contextlib.AbstractAsyncContextManager[Any]:
    return contextlib.asynccontextmanager(lambda: generator)()


_END: Final = object()
"""What `next` gives after the last item."""


def _text_of(item: Any) -> str | None:
    """Return an item as the message of its progress; `None` where it has no JSON."""
    try:
        return item if isinstance(item, str) else to_json(item).decode()
    except Exception:
        return None

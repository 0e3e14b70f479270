"""A tool: a function made callable over the wire.

Registers nothing and knows no server; `MCPServer` hands it calls.
Spec: server/tools, "Calling Tools", "Error Handling".
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable
from typing import Any, Final, Literal, cast

import msgspec
from pydantic import ValidationError

from mcp_core import MCPError, RequestContext, codec
from mcp_core import types as t
from mcp_core.backend import spawn_detached
from mcp_core.queue_logger import QueueLogger
from mcp_core.request_state import RequestStateSigner
from mcp_core.revisions import is_modern
from mcp_core.threads import MAX_WAITING, PoolBusy, WorkerThreads
from mcp_typed.arguments import Arguments, Unknown
from mcp_typed.cancellation import Cancellation
from mcp_typed.context import Context
from mcp_typed.docstrings import doc_of_call, documented
from mcp_typed.errors import InvalidOption, InvalidSignature, ToolError
from mcp_typed.failures import Failures
from mcp_typed.options import (
    checked_listing,
    one_of,
    optional_text,
    positive_count,
    positive_seconds,
    refuse,
    switch,
)
from mcp_typed.plain import ITEMS, NonFinite, Unsendable, to_json
from mcp_typed.report import report_arguments
from mcp_typed.resolve import Resolvers
from mcp_typed.results import Returns, asks_for_input, scalar_result
from mcp_typed.signature import MISSING, HandlerPlan, Injected, inspect_function

__all__ = ["FunctionTool", "Policy"]

_log = QueueLogger(__name__)

Run = Literal["thread", "inline"]
InvalidArgumentsHook = Callable[[str, ValidationError], "str | t.CallToolResult | Awaitable[str | t.CallToolResult]"]

NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""Names that every client takes (server/tools, "Tool Names")."""


class Policy(msgspec.Struct, kw_only=True, frozen=True):
    """How tools are run: a server's defaults, with what one tool says instead.

    `timeout` is in seconds. `run` is where plain functions run. `max_waiting` is how many
    calls may wait for their turn, where `max_concurrency` lets no more run.
    """

    threads: WorkerThreads
    signer: RequestStateSigner
    mask_errors: bool = True
    run: Run = "thread"
    timeout: float | None = None
    max_concurrency: int | None = None
    max_waiting: int = MAX_WAITING
    unknown_arguments: Unknown = "ignore"
    inline_refs: bool = False
    on_invalid_arguments: InvalidArgumentsHook | None = None

    def but(self, **said: Any) -> Policy:
        """Return the policy with what is said, `None` saying nothing.

        Raises:
            InvalidOption: An option is of no use.
        """
        given = {key: value for key, value in said.items() if value is not None}
        for option, value in given.items():
            check = _CHECKS.get(option)
            if check is not None:
                check(option, value)
        if given.get("timeout") == math.inf:
            given["timeout"] = None
        return msgspec.structs.replace(self, **given)


def _check_hook(option: str, value: object) -> None:
    if not callable(value):
        refuse(option, "a function of the tool's name and the ValidationError", value)


_CHECKS: Final[dict[str, Callable[[str, Any], None]]] = {
    "mask_errors": switch,
    "run": lambda option, value: one_of(option, value, "thread", "inline"),
    "timeout": positive_seconds,
    "max_concurrency": lambda option, value: positive_count(option, value, "calls"),
    "max_waiting": lambda option, value: positive_count(option, value, "calls"),
    "unknown_arguments": lambda option, value: one_of(option, value, "ignore", "reject"),
    "inline_refs": switch,
    "on_invalid_arguments": _check_hook,
}


class FunctionTool:
    """One tool. `listed` is how `tools/list` shows it."""

    def __init__(
        self,
        function: Callable[..., Any],
        policy: Policy,
        *,
        name: str | None = None,
        description: str | None = None,
        structured_output: bool | None = None,
        **listed: Any,
    ) -> None:
        """`listed` are further options that `tools/list` shows: title, annotations, icons, meta.

        Raises:
            InvalidSignature: The function cannot be a tool.
            InvalidOption: An option is of no use.
            ValueError: It has no name.
        """
        if not callable(function):
            refuse("a tool", "a function", function)
        optional_text("name", name)
        optional_text("description", description)
        if structured_output is not None:
            switch("structured_output", structured_output)
        self.name: str = name or _name_of(function)
        self.plan: HandlerPlan = inspect_function(function, self.name)
        self.policy = policy
        self._failures = Failures(self.name, mask_errors=policy.mask_errors)
        self._check_timeout()
        said, described = documented(_documented_object(function))
        self._arguments = Arguments(
            self.plan, described, unknown=policy.unknown_arguments, inline_refs=policy.inline_refs
        )
        self._returns = Returns(self.plan, structured_output=structured_output, inline_refs=policy.inline_refs)
        self._validate, self._scalar = self._arguments.validate, self._returns.scalar
        self._mirrored = self._arguments.mirrored
        self._resolvers = Resolvers(self.plan, policy.signer) if self.plan.resolved else None
        if self._resolvers is not None and asks_for_input(self.plan.returns):
            names = ", ".join(map(repr, self.plan.resolved))
            raise InvalidSignature(
                f"tool {self.name!r}: parameter {names}: Resolve(...) cannot be where InputRequiredResult is returned"
            )
        self._limit: Any = None
        self._is_simple = self._needs_no_more()
        simple = self.plan.function if self._is_simple else None
        # Such a tool needs no coroutine; what a wrapper returns may still be one.
        self._inline = simple if policy.run == "inline" and not self.plan.is_async else None
        self._async = simple if self.plan.is_async else None
        if not NAME.fullmatch(self.name):
            _log.warning("tool name %r is not made of 1 to 128 letters, digits, '_', '-' and '.'", self.name)
        self.listed: t.Tool = t.Tool(
            name=self.name,
            description=description or said,
            input_schema=self._arguments.schema,
            output_schema=self._returns.schema,
            **checked_listing(listed),
        )

    def _check_timeout(self) -> None:
        plan, policy = self.plan, self.policy
        if policy.timeout is not None and policy.run == "inline" and not plan.is_async:
            raise InvalidOption(
                f"tool {self.name!r}: timeout must be left out, or math.inf, where a plain function runs inline, "
                f"which nothing can interrupt; got {policy.timeout!r}: make it async, or let it run in a thread"
            )

    def _needs_no_more(self) -> bool:
        """Whether a call is no more than calling the function with the arguments."""
        plan, policy = self.plan, self.policy
        has_more = plan.injected or plan.positional or self._resolvers or self._returns.streams
        return not has_more and policy.timeout is None and policy.max_concurrency is None

    @property
    def falls_back_to_text(self) -> bool:
        """Whether the return annotation has no schema, so that nothing structured is promised."""
        return self._returns.fell_back

    # --- a call ----------------------------------------------------------------------------------

    def call(self, ctx: RequestContext[Any], params: t.RawCallToolParams) -> Any:
        """Call it: the result, or what to await for it.

        Whatever goes wrong inside becomes a result that the model can read; only an
        `MCPError` leaves as a protocol error.
        """
        try:
            keywords = self._validate(bytes(params.arguments))
        except Exception as exc:
            keywords = self._second_look(ctx, params, exc)
            if not codec.is_object(keywords):
                return keywords
        if self._mirrored is not None and ctx.headers is not None and is_modern(ctx.protocol_version):
            self._mirrored.check(bytes(params.arguments), keywords)
        if self._async is not None:
            return self._awaited(ctx, self._async, keywords)
        if self._inline is None:
            return self._called(ctx, params, keywords)
        try:
            value = self._inline(**keywords)
        except BaseException as exc:
            return self._failures.raised(ctx, exc)
        return self._awaited(ctx, lambda: value, {}) if inspect.isawaitable(value) else self._sent(ctx, value)

    def _second_look(self, ctx: RequestContext[Any], params: t.RawCallToolParams, first: Exception) -> Any:
        """Return the arguments after all, or the result that says what is wrong with them, or what to await for it."""
        try:
            if not isinstance(first, ValidationError):
                raise first
            return self._arguments.second_look(bytes(params.arguments), first)
        except ValidationError as exc:
            return self._invalid(ctx, exc, params)
        except MCPError:
            raise
        except Exception as exc:  # a validator of the author's
            return self._failures.crashed(ctx, exc)

    async def _called(self, ctx: RequestContext[Any], params: t.RawCallToolParams, keywords: dict[str, Any]) -> Any:
        try:
            if self._is_simple:
                value = await self.call_plan(self.plan, keywords)
            else:
                value = await self._invoke_with_all(ctx, params, keywords)
        except BaseException as exc:
            return self._failures.raised(ctx, exc)
        return self._sent(ctx, value)

    async def _awaited(self, ctx: RequestContext[Any], function: Callable[..., Any], keywords: dict[str, Any]) -> Any:
        try:
            value = await function(**keywords)
            if type(value) is self._scalar:  # as `_sent` does, one call earlier
                return scalar_result(value)
        except BaseException as exc:
            return self._failures.raised(ctx, exc)
        return self._sent(ctx, value)

    def _sent(self, ctx: RequestContext[Any], value: Any) -> Any:
        """The result for a returned value, or what is wrong with it."""
        try:
            return scalar_result(value) if type(value) is self._scalar else self._returns.result(value)
        except ValidationError as exc:
            return self._failures.misfit(ctx, exc)
        except NonFinite as exc:
            return self._failures.non_finite(ctx, exc)
        except Unsendable as exc:
            return self._failures.unsendable(ctx, exc)
        except Exception as exc:  # it cannot be written: the author's business, not the model's
            return self._failures.crashed(ctx, exc)

    # --- arguments that do not fit --------------------------------------------------------------

    def _invalid(self, ctx: RequestContext[Any], exc: ValidationError, params: t.RawCallToolParams) -> Any:
        hook = self.policy.on_invalid_arguments
        _log.debug("tool %s refused its arguments: %s", self.name, _names_in(params.arguments))
        if hook is None:
            return self._failures.refused(exc, report_arguments(exc))
        try:
            said: Any = hook(self.name, exc)
            return self._said_later(ctx, exc, said) if inspect.isawaitable(said) else self._said(exc, said)
        except MCPError:
            raise
        except Exception as fault:
            return self._failures.crashed(ctx, fault)

    async def _said_later(self, ctx: RequestContext[Any], exc: ValidationError, said: Any) -> t.CallToolResult:
        try:
            return self._said(exc, await said)
        except BaseException as fault:
            return self._failures.raised(ctx, fault)

    def _said(self, exc: ValidationError, said: object) -> t.CallToolResult:
        if isinstance(said, t.CallToolResult):
            return said
        if not isinstance(said, str):
            raise TypeError(f"on_invalid_arguments must return a str or a CallToolResult; got {said!r}")
        return self._failures.refused(exc, said)

    # --- the function's value -------------------------------------------------------------------

    async def _invoke_with_all(
        self, ctx: RequestContext[Any], params: t.RawCallToolParams, keywords: dict[str, Any]
    ) -> Any:
        """The function's value, with limits, injected and resolved parameters."""
        async with self._turn():
            calling = _Calling(self, ctx)
            try:
                return await self._in_time(self._whole(ctx, params, keywords, calling))
            except BaseException:
                if calling.cancellation is not None:
                    calling.cancellation.request()
                raise

    async def _whole(
        self,
        ctx: RequestContext[Any],
        params: t.RawCallToolParams,
        keywords: dict[str, Any],
        calling: _Calling,
    ) -> Any:
        if self._resolvers is None:
            return await self._value(ctx, keywords, calling)
        async with calling.resources:
            resolved = await self._resolvers.resolve(ctx, params, keywords, calling)
            if isinstance(resolved, t.InputRequiredResult):
                return resolved
            keywords.update(resolved)
            return await self._value(ctx, keywords, calling)
        raise RuntimeError("a resolver suppressed the exception that had ended the call")

    async def _value(self, ctx: RequestContext[Any], keywords: dict[str, Any], calling: _Calling) -> Any:
        keywords.update(calling.inject(self.plan.injected))
        value = await self.call_plan(self.plan, keywords)
        return await self._collected(ctx, value) if self._returns.streams else value

    def asks_for_cancellation(self) -> bool:
        """Whether the function, or maybe a resolver, wants the token: one for the whole call serves them all."""
        return self._resolvers is not None or "cancellation" in self.plan.injected.values()

    async def in_its_place(self, call: Callable[[], Any]) -> Any:
        """Make a call of a plain function of the author's where such functions run."""
        return call() if self.policy.run == "inline" else await self.policy.threads.run(call)

    async def call_plan(self, plan: HandlerPlan, keywords: dict[str, Any]) -> Any:
        """Call a function by its plan, wherever such functions run."""
        function = plan.function
        positional = [keywords.pop(name) for name in plan.positional]
        if plan.is_async or plan.is_generator or self.policy.run == "inline":
            value = function(*positional, **keywords)
        else:
            value = await self.policy.threads.run(lambda: function(*positional, **keywords))
        # What a wrapper of a coroutine function returns is found out by calling it.
        return await value if inspect.isawaitable(value) else value

    async def _collected(self, ctx: RequestContext[Any], value: Any) -> Any:
        """Collect the items of an iterator, each with a progress notification for a client that asked for it."""
        if isinstance(value, t.CallToolResult | str) or not isinstance(value, AsyncIterator | Iterable):
            return value
        tells = ctx.meta.get("progressToken") is not None
        items: list[Any] = []
        async with contextlib.aclosing(self._each(value)) as each:
            async for item in each:
                items.append(item)
                if len(items) > ITEMS:
                    raise ToolError(f"it gives more than {ITEMS:,} items")
                if tells:
                    await ctx.report_progress(len(items), message=_shown(item))
        return items if self.plan.returns is not MISSING else iter(items)

    async def _each(self, value: Any) -> AsyncGenerator[Any, None]:
        """The items as they come. Those of a plain iterator are made where plain functions run."""
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
        inline = self.policy.run == "inline" or isinstance(value, list | tuple)
        while True:
            item = next(iterator, _END) if inline else await self.policy.threads.run(lambda: next(iterator, _END))
            if item is _END:
                return
            yield item

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncGenerator[None]:
        """Wait until fewer calls run than may."""
        policy = self.policy
        if policy.max_concurrency is None:
            yield
            return
        if self._limit is None:
            import anyio

            self._limit = anyio.Semaphore(policy.max_concurrency)
        if self._limit.statistics().tasks_waiting >= policy.max_waiting:
            raise PoolBusy(
                f"{policy.max_concurrency} calls of {self.name} are in progress, and {policy.max_waiting} wait"
            )
        async with self._limit:
            yield

    async def _in_time(self, call: Any) -> Any:
        timeout = self.policy.timeout
        if timeout is None:
            return await call
        import anyio

        with anyio.move_on_after(timeout):
            return await call
        raise ToolError(f"timed out after {timeout:g} s")


class _Calling:
    """One call: what its functions are given, and what has to be ended after it."""

    def __init__(self, tool: FunctionTool, ctx: RequestContext[Any]) -> None:
        self._tool = tool
        self._ctx = ctx
        self.cancellation = Cancellation() if tool.asks_for_cancellation() else None
        self.resources = contextlib.AsyncExitStack()
        """What resolvers have opened, ended in reverse order; it sees how the call ended."""

    def inject(self, wanted: dict[str, Injected]) -> dict[str, Any]:
        """Return the injected parameters by name."""
        given: dict[Injected, Any] = {
            "context": Context(self._ctx),
            "core context": self._ctx,
            "cancellation": self.cancellation,
        }
        return {name: what(self._ctx) if isinstance(what, type) else given[what] for name, what in wanted.items()}

    async def invoke(self, plan: HandlerPlan, keywords: dict[str, Any]) -> Any:
        """Call a function by its plan, wherever such functions run."""
        return await self._tool.call_plan(plan, keywords)

    async def entered(self, value: Any) -> Any:
        """Return what a generator or a context manager gives, and end it after the call; other values as they are.

        Only those that are made of a generator: a connection to a database is a context
        manager too, and it is its owner's to say when it is closed.
        """
        if isinstance(value, AsyncGenerator):
            return await self.resources.enter_async_context(_opened(cast("AsyncGenerator[Any]", value)))
        if isinstance(value, Generator):
            generator = cast("Generator[Any, None, None]", value)
            return await self._entered_in_place(contextlib.contextmanager(lambda: generator)())
        if isinstance(value, _ASYNC_MANAGER):
            return await self.resources.enter_async_context(cast("contextlib.AbstractAsyncContextManager[Any]", value))
        if isinstance(value, _MANAGER):
            return await self._entered_in_place(cast("contextlib.AbstractContextManager[Any]", value))
        return value

    async def _entered_in_place(self, manager: contextlib.AbstractContextManager[Any]) -> Any:
        value = await self._tool.in_its_place(manager.__enter__)

        async def leave(*how: Any) -> Any:
            return await _to_the_end(lambda: self._tool.in_its_place(lambda: manager.__exit__(*how)))

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


_NAMES: Final = 10
"""Names of arguments that a log record has."""


def _names_in(arguments: bytes | msgspec.Raw) -> str:
    """The names of the first arguments that were sent, without their values."""
    try:
        names = list(itertools.islice(_named(arguments), _NAMES + 1))
    except (codec.ValidationError, codec.DecodeError):
        return ""
    shown = [name[:_NAMES_LENGTH] for name in names[:_NAMES]]
    return ", ".join([*shown, "..."] if len(names) > _NAMES else shown)


_NAMES_LENGTH: Final = 100
_named: codec.Decoder[dict[str, msgspec.Raw]] = codec.decoder(dict[str, msgspec.Raw])


def _shown(item: Any) -> str | None:
    """An item as the message of its progress; `None` where it has no JSON."""
    try:
        return item if isinstance(item, str) else to_json(item).decode()
    except Exception:
        return None


def _name_of(function: Callable[..., Any]) -> str:
    inner = _documented_object(function)
    name = getattr(inner, "__name__", None) or type(inner).__name__
    if name == "<lambda>":
        raise ValueError("You must provide a name for lambda functions")
    return name


def _documented_object(function: Any) -> Any:
    """What has the name and the docstring: the function in a partial, a callable object's class."""
    while True:
        if hasattr(function, "func") and hasattr(function, "keywords"):
            function = function.func
        elif hasattr(function, "__wrapped__") and not getattr(function, "__name__", None):  # a decorator's object
            function = function.__wrapped__
        else:
            break
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return function if getattr(function, "__name__", None) else _Callable(function)


class _Callable:
    """A callable object as if it were a function: its class's name, its own docstring or `__call__`'s."""

    def __init__(self, instance: Any) -> None:
        self.__name__ = type(instance).__name__
        self.__doc__ = doc_of_call(instance)

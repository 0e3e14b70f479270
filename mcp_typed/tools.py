"""A tool: a function made callable over the wire.

Registers nothing and knows no server; `MCPServer` hands it calls.
Spec: server/tools, "Calling Tools", "Error Handling".
"""

from __future__ import annotations

import contextlib
import inspect
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from typing import Any, Final, Literal, cast

import msgspec
from pydantic import ValidationError

from mcp_core import MCPError, RequestContext, codec
from mcp_core import types as t
from mcp_core.backend import is_cancellation
from mcp_core.journal import Journal
from mcp_core.request_state import RequestStateSealer
from mcp_core.threads import WorkerThreads
from mcp_typed.arguments import Arguments, Unknown
from mcp_typed.cancellation import Cancellation
from mcp_typed.context import Context
from mcp_typed.docstrings import documented
from mcp_typed.errors import InvalidSignature, ToolError
from mcp_typed.plain import NonFinite, Unsendable, to_builtins, to_json, to_text, unwrapped
from mcp_typed.report import places, report_arguments, report_result
from mcp_typed.resolve import Resolvers
from mcp_typed.results import Returns, asks_for_input, scalar_result
from mcp_typed.signature import MISSING, Injected, Plan, inspect_function

__all__ = ["FunctionTool", "Policy"]

_journal = Journal(__name__)

Run = Literal["thread", "inline"]
InvalidArgumentsHook = Callable[[str, ValidationError], "str | t.CallToolResult"]

ERROR_META: Final = "mcpcore/error"
"""Where the data of a `ToolError` is in the `_meta` of the result."""

NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""Names that every client takes (server/tools, "Tool Names")."""


class Policy(msgspec.Struct, kw_only=True, frozen=True):
    """How tools are run: a server's defaults, with what one tool says instead.

    `timeout` is in seconds. `run` is where plain functions run.
    """

    threads: WorkerThreads
    sealer: RequestStateSealer
    mask_errors: bool = True
    run: Run = "thread"
    timeout: float | None = None
    max_concurrency: int | None = None
    unknown_arguments: Unknown = "ignore"
    inline_refs: bool = False
    on_invalid_arguments: InvalidArgumentsHook | None = None

    def but(self, **said: Any) -> Policy:
        """The policy with what is said, `None` saying nothing."""
        policy = msgspec.structs.replace(self, **{key: value for key, value in said.items() if value is not None})
        if policy.run not in ("thread", "inline"):
            raise ValueError(f'run must be "thread" or "inline"; got {policy.run!r}')
        if policy.unknown_arguments not in ("ignore", "reject"):
            raise ValueError(f'unknown_arguments must be "ignore" or "reject"; got {policy.unknown_arguments!r}')
        if policy.timeout is not None and policy.timeout <= 0:
            raise ValueError(f"timeout must be positive; got {policy.timeout!r}")
        if policy.max_concurrency is not None and policy.max_concurrency < 1:
            raise ValueError(f"max_concurrency must be at least 1; got {policy.max_concurrency!r}")
        return policy


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
        meta: dict[str, Any] | None = None,
        **listed: Any,
    ) -> None:
        """`listed` are further fields of `Tool`: title, annotations, icons.

        Raises:
            InvalidSignature: The function cannot be a tool.
            ValueError: It has no name.
        """
        self.name = name or _name_of(function)
        self.plan = inspect_function(function, self.name)
        self.policy = policy
        said, described = documented(_documented_object(function))
        self._arguments = Arguments(
            self.plan, described, unknown=policy.unknown_arguments, inline_refs=policy.inline_refs
        )
        self._returns = Returns(self.plan, structured_output=structured_output, inline_refs=policy.inline_refs)
        self._validate, self._scalar = self._arguments.validate, self._returns.scalar
        self._resolvers = Resolvers(self.plan, policy.sealer) if self.plan.resolved else None
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
            _journal.warning("tool name %r is not made of 1 to 128 letters, digits, '_', '-' and '.'", self.name)
        self.listed = t.Tool(
            name=self.name,
            description=description or said,
            input_schema=self._arguments.schema,
            output_schema=self._returns.schema,
            _meta=meta,
            **listed,
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
            keywords = self._second_look(params, exc)
            if isinstance(keywords, t.CallToolResult):
                return keywords
        if self._async is not None:
            return self._awaited(self._async, keywords)
        if self._inline is None:
            return self._called(ctx, params, keywords)
        try:
            value = self._inline(**keywords)
        except BaseException as exc:
            return self._raised(exc)
        return self._awaited(lambda: value, {}) if inspect.isawaitable(value) else self._sent(value)

    def _second_look(self, params: t.RawCallToolParams, first: Exception) -> Any:
        """The arguments after all, or what is wrong with them."""
        try:
            if not isinstance(first, ValidationError):
                raise first
            return self._arguments.second_look(bytes(params.arguments), first)
        except ValidationError as exc:
            return self._invalid(exc, params)
        except MCPError:
            raise
        except Exception as exc:  # a validator of the author's
            return self._crashed(exc)

    async def _called(self, ctx: RequestContext[Any], params: t.RawCallToolParams, keywords: dict[str, Any]) -> Any:
        try:
            if self._is_simple:
                value = await self._call_plan(self.plan, keywords)
            else:
                value = await self._invoke_with_all(ctx, params, keywords)
        except BaseException as exc:
            return self._raised(exc)
        return self._sent(value)

    async def _awaited(self, function: Callable[..., Any], keywords: dict[str, Any]) -> Any:
        try:
            value = await function(**keywords)
            if type(value) is self._scalar:  # as `_sent` does, one call earlier
                return scalar_result(value)
        except BaseException as exc:
            return self._raised(exc)
        return self._sent(value)

    def _raised(self, exc: BaseException) -> t.CallToolResult:
        """What the model reads of an exception; those that are not the model's go on."""
        if isinstance(exc, ToolError):
            return self._told(exc)
        if isinstance(exc, MCPError | KeyboardInterrupt | GeneratorExit) or is_cancellation(exc):
            raise exc
        return self._crashed(exc)

    def _sent(self, value: Any) -> Any:
        """The result for a returned value, or what is wrong with it."""
        try:
            return scalar_result(value) if type(value) is self._scalar else self._returns.result(value)
        except ValidationError as exc:
            _journal.warning("tool %s returned what its annotation does not allow: %s", self.name, places(exc))
            return self._failed(report_result(exc))
        except NonFinite as exc:
            _journal.warning("tool %s returned a number that JSON does not have: %s", self.name, str(exc))
            return self._failed(str(exc))
        except Unsendable as exc:
            _journal.warning("tool %s returned what cannot be sent: %s", self.name, str(exc))
            return self._failed(str(exc))
        except Exception as exc:  # it cannot be written: the author's business, not the model's
            return self._crashed(exc)

    async def _invoke_with_all(
        self, ctx: RequestContext[Any], params: t.RawCallToolParams, keywords: dict[str, Any]
    ) -> Any:
        """The function's value, with limits, injected and resolved parameters."""
        async with self._turn():
            cancellation = Cancellation() if "cancellation" in self._asked() else None

            def inject(wanted: dict[str, Injected]) -> dict[str, Any]:
                given: dict[Injected, Any] = {
                    "context": Context(ctx),
                    "core context": ctx,
                    "cancellation": cancellation,
                }
                return {name: what(ctx) if isinstance(what, type) else given[what] for name, what in wanted.items()}

            try:
                return await self._in_time(self._whole(ctx, params, keywords, inject))
            except BaseException:
                if cancellation is not None:
                    cancellation.request()
                raise

    def _asked(self) -> set[str]:
        # A resolver may ask for the token too; one for the whole call serves them all.
        return {"cancellation"} if self._resolvers is not None else set(self.plan.injected.values())

    async def _whole(
        self,
        ctx: RequestContext[Any],
        params: t.RawCallToolParams,
        keywords: dict[str, Any],
        inject: Callable[[dict[str, Injected]], dict[str, Any]],
    ) -> Any:
        if self._resolvers is not None:
            resolved = await self._resolvers.resolve(ctx, params, keywords, inject, self._call_plan)
            if isinstance(resolved, t.InputRequiredResult):
                return resolved
            keywords.update(resolved)
        keywords.update(inject(self.plan.injected))
        value = await self._call_plan(self.plan, keywords)
        return await self._collected(ctx, value) if self._returns.streams else value

    async def _call_plan(self, plan: Plan, keywords: dict[str, Any]) -> Any:
        function = plan.function
        positional = [keywords.pop(name) for name in plan.positional]
        if plan.is_async or plan.is_generator or self.policy.run == "inline":
            value = function(*positional, **keywords)
        else:
            value = await self.policy.threads.run(lambda: function(*positional, **keywords))
        # What a wrapper of a coroutine function returns is found out by calling it.
        return await value if inspect.isawaitable(value) else value

    async def _collected(self, ctx: RequestContext[Any], value: Any) -> Any:
        """All items of an iterator, each told to a client that asked for progress."""
        if isinstance(value, t.CallToolResult | str) or not isinstance(value, AsyncIterator | Iterable):
            return value
        tells = ctx.meta.get("progressToken") is not None
        items: list[Any] = []
        async with contextlib.aclosing(self._each(value)) as each:
            async for item in each:
                items.append(item)
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
    async def _turn(self) -> AsyncGenerator[None, None]:
        if self.policy.max_concurrency is None:
            yield
            return
        if self._limit is None:
            import anyio

            self._limit = anyio.Semaphore(self.policy.max_concurrency)
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

    # --- what went wrong -----------------------------------------------------------------------------

    def _invalid(self, exc: ValidationError, params: t.RawCallToolParams) -> t.CallToolResult:
        hook = self.policy.on_invalid_arguments
        _journal.debug("tool %s refused its arguments: %s", self.name, ", ".join(_names_in(params.arguments)))
        try:
            said = report_arguments(exc) if hook is None else hook(self.name, exc)
        except Exception as fault:
            return self._crashed(fault)
        return said if isinstance(said, t.CallToolResult) else self._failed(said)

    def _told(self, exc: ToolError) -> t.CallToolResult:
        hint = "" if exc.retry_after is None else f" (retry after {exc.retry_after:g} s)"
        result = self._failed(f"{exc.message}{hint}")
        try:
            details = {
                key: to_builtins(value)
                for key, value in (("data", exc.data), ("retryAfter", exc.retry_after))
                if value is not None
            }
            if exc.data is not None:
                result.content.append(t.text_block(to_text(exc.data)))
            result.content.extend(unwrapped(block) for block in exc.content)
        except Exception as fault:  # the message reaches the model, whatever came with it
            _journal.error("what a ToolError of tool %s carries cannot be sent", self.name, exc=fault)
            details = {}
        meta = {**(exc.meta or {}), **({ERROR_META: details} if details else {})}
        return msgspec.structs.replace(result, _meta=meta) if meta else result

    def _failed(self, reason: str) -> t.CallToolResult:
        return _error(f"Error executing tool {self.name}: {reason}")

    def _crashed(self, exc: BaseException) -> t.CallToolResult:
        """A failure whose text is nobody's business but the author's (P-04)."""
        error_id = secrets.token_hex(4)
        _journal.error("tool %s raised %s (error id %s)", self.name, type(exc).__name__, error_id, exc=exc)
        if not self.policy.mask_errors:
            return self._failed(str(exc))
        return _error(f"Error executing tool {self.name} (error id {error_id})")


_END: Final = object()


def _names_in(arguments: bytes | msgspec.Raw) -> list[str]:
    """The names of the arguments that were sent, without their values."""
    try:
        return list(_named(arguments))
    except (codec.Misfit, codec.Undecodable):
        return []


_named: codec.Decoder[dict[str, msgspec.Raw]] = codec.decoder(dict[str, msgspec.Raw])


def _shown(item: Any) -> str | None:
    """An item as the message of its progress; `None` where it has no JSON."""
    try:
        return item if isinstance(item, str) else to_json(item).decode()
    except Exception:
        return None


def _error(text: str) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(text=text)], is_error=True)


def _name_of(function: Callable[..., Any]) -> str:
    inner = _documented_object(function)
    name = getattr(inner, "__name__", None) or type(inner).__name__
    if name == "<lambda>":
        raise ValueError("You must provide a name for lambda functions")
    return name


def _documented_object(function: Any) -> Any:
    """What has the name and the docstring: the function in a partial, a callable object's class."""
    while hasattr(function, "func") and hasattr(function, "keywords"):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return function if getattr(function, "__name__", None) else _Callable(function)


class _Callable:
    """A callable object as if it were a function: its class's name, its own docstring or `__call__`'s."""

    def __init__(self, instance: Any) -> None:
        self.__name__ = type(instance).__name__
        kind = cast("Any", type(instance))
        self.__doc__ = inspect.getdoc(kind.__call__) or inspect.getdoc(kind)

"""What becomes of a call that failed: what the model reads, what goes to the log and to observers.

Whatever goes wrong inside becomes a result that the model can read; only an `MCPError`
leaves as a protocol error. The exception itself goes to the author: into the log, to the
observers' `handler_failed`, and to the Python code that called the tool.
Spec: server/tools, "Error Handling"; P-02 to P-04.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NoReturn, cast

import msgspec
from pydantic import ValidationError

from mcp_core import MCPError, codec
from mcp_core import types as t
from mcp_core.backend import current_task, is_cancellation
from mcp_core.context import AnyContext
from mcp_core.errors import LocalProtocolError
from mcp_core.queue_logger import QueueLogger
from mcp_core.threads import PoolBusy
from mcp_typed.errors import ToolError
from mcp_typed.plain import NonFinite, Unsendable, to_builtins, to_text, unwrapped
from mcp_typed.report import places, report_result

__all__ = ["ERROR_META", "MAX_REPORT", "Failures", "failures_kept"]

_log = QueueLogger("mcp_typed.tools")  # one name for all records of tools, whichever module writes them

ERROR_META: Final = "mcpcore/error"
"""Where the data of a `ToolError` is in the `_meta` of the result."""

MAX_REPORT: Final = 8192
"""Characters of a text that is made from what the caller sent, or from an exception."""

_kept: ContextVar[list[BaseException] | None] = ContextVar("mcp_typed.failures", default=None)


@contextmanager
def failures_kept() -> Generator[list[BaseException]]:
    """Keep the exceptions of the calls that are made in this task while the body runs, the last one last."""
    kept: list[BaseException] = []
    token = _kept.set(kept)
    try:
        yield kept
    finally:
        _kept.reset(token)


class Failures:
    """The failures of one component's calls; `kind` is what texts call it."""

    def __init__(self, name: str, *, mask_errors: bool, kind: str = "tool") -> None:
        self._kind = kind
        self._name = name
        self._mask_errors = mask_errors

    def raised(self, ctx: AnyContext, exc: BaseException) -> t.CallToolResult:
        """Return what the model reads of what a tool raised; what is not the model's goes on.

        Raises:
            MCPError: The tool raised it.
            BaseException: The call is being cancelled, or the program interrupted.
        """
        if is_cancellation(exc) or (isinstance(exc, GeneratorExit) and current_task() is None):
            raise exc  # the coroutine is closed from outside, by a loop or an interpreter that ends
        meant = _meant(exc)
        if isinstance(meant, ToolError):
            self._record_others(exc, meant)
            return self.reported(meant)
        if isinstance(meant, MCPError | KeyboardInterrupt):
            self._record_others(exc, meant)
            _leave(meant, exc)
        if isinstance(meant, PoolBusy):
            return self.reported(ToolError(f"the server is busy: {meant}", retry_after=1))
        if isinstance(meant, LocalProtocolError):
            return self._forbidden(ctx, meant)
        return self.crashed(ctx, exc)

    def reported(self, exc: ToolError) -> t.CallToolResult:
        """Return a `ToolError` as its author meant it; the message reaches the model, whatever came with it."""
        _keep(exc)
        try:
            hint = "" if exc.retry_after is None else f" (retry after {_seconds(exc.retry_after)} s)"
            result = self.failed(f"{exc.message}{hint}")
        except Exception as fault:  # a message that is not text, and cannot be made one
            _log.error("a ToolError of %s %s has no text", self._kind, self._name, exc=fault)
            return self.failed(type(exc).__name__)
        if exc.data is None and exc.meta is None and exc.retry_after is None and not exc.content:
            return result
        try:
            return _with_details(result, exc)
        except Exception as fault:
            _log.error(
                "what a ToolError of %s %s carries cannot be sent: %s", self._kind, self._name, str(fault), exc=fault
            )
            return result

    def crashed(self, ctx: AnyContext, exc: BaseException) -> t.CallToolResult:
        """Return what the model reads of a failure whose text is for the author alone (P-04)."""
        error_id = secrets.token_hex(4)
        self._reported(ctx, exc)
        _log.error(
            "%s %s raised %s (error id %s)",
            self._kind,
            self._name,
            type(exc).__name__,
            error_id,
            exc=exc,
            extra={self._kind: self._name, "error_id": error_id},
        )
        if self._mask_errors:
            return _error(f"Error executing {self._kind} {self._name} (error id {error_id})")
        return self.failed(_cut(_described(exc)))

    def misfit(self, ctx: AnyContext, exc: ValidationError) -> t.CallToolResult:
        """Return what the model reads of a returned value that its annotation does not allow (P-03)."""
        self._reported(ctx, exc)
        _log.warning("%s %s returned what its annotation does not allow: %s", self._kind, self._name, places(exc))
        return self.failed(_cut(report_result(exc)))

    def non_finite(self, ctx: AnyContext, exc: NonFinite) -> t.CallToolResult:
        """Return what the model reads of a returned number that JSON does not have (P-12)."""
        self._reported(ctx, exc)
        _log.warning("%s %s returned a number that JSON does not have: %s", self._kind, self._name, str(exc))
        return self.failed(str(exc))

    def unsendable(self, ctx: AnyContext, exc: Unsendable) -> t.CallToolResult:
        """Return what the model reads of a returned value that no message can carry."""
        self._reported(ctx, exc)
        _log.warning("%s %s returned what cannot be sent: %s", self._kind, self._name, str(exc))
        return self.failed(str(exc))

    def refused(self, exc: ValidationError, report: str) -> t.CallToolResult:
        """Return what the model reads of arguments that do not fit (P-02)."""
        _keep(exc)
        return self.failed(_cut(report))

    def failed(self, reason: str) -> t.CallToolResult:
        """Return the result of a call that failed for a reason that the model may know."""
        return _error(f"Error executing {self._kind} {self._name}: {reason}")

    def _forbidden(self, ctx: AnyContext, exc: LocalProtocolError) -> t.CallToolResult:
        """Return a tool that asked for what its client's revision does not have: the text is this library's own."""
        self._reported(ctx, exc)
        _log.error("%s %s: %s", self._kind, self._name, str(exc), exc=exc, extra={self._kind: self._name})
        return self.failed(str(exc))

    def _reported(self, ctx: AnyContext, exc: BaseException) -> None:
        _keep(exc)
        observers = ctx.server.observers
        if observers.handler_failed:
            observers.call(observers.handler_failed, ctx, exc)

    def _record_others(self, whole: BaseException, meant: BaseException) -> None:
        """What failed beside an exception that is answered would be lost."""
        if any(leaf is not meant and not isinstance(leaf, ToolError | MCPError) for leaf in _leaves(whole)):
            _log.error("%s %s raised more than what it is answered with", self._kind, self._name, exc=whole)


def _leave(meant: BaseException, whole: BaseException) -> NoReturn:
    if meant is whole:
        raise meant
    raise meant from whole


def _keep(exc: BaseException) -> None:
    kept = _kept.get()
    if kept is not None:
        kept.append(exc)


def _meant(exc: BaseException) -> BaseException:
    """Return the exception that an answer is made from: task groups put what they let out into groups."""
    if not isinstance(exc, BaseExceptionGroup):
        return exc
    leaves = list(_leaves(cast("BaseException", exc)))
    for kinds in ((KeyboardInterrupt,), (MCPError, ToolError), (PoolBusy, LocalProtocolError)):
        for leaf in leaves:
            if isinstance(leaf, kinds):
                return leaf
    return cast("BaseException", exc)


def _leaves(exc: BaseException) -> Iterator[BaseException]:
    waiting = [exc]
    while waiting:
        found = waiting.pop()
        if isinstance(found, BaseExceptionGroup):
            waiting.extend(reversed(cast("BaseExceptionGroup[BaseException]", found).exceptions))
        else:
            yield found


def _with_details(result: t.CallToolResult, exc: ToolError) -> t.CallToolResult:
    """
    Raises:
        Exception: A detail is not a content block, or has no JSON form; the text says which.
    """
    details = {
        key: to_builtins(value)
        for key, value in (("data", exc.data), ("retryAfter", exc.retry_after))
        if value is not None
    }
    blocks = [] if exc.data is None else [t.text_block(to_text(exc.data))]
    meta = {**(exc.meta or {}), **({ERROR_META: details} if details else {})}
    whole = msgspec.structs.replace(
        result,
        content=[*result.content, *blocks, *(unwrapped(block) for block in exc.content)],
        _meta=meta or None,
    )
    # Blocks that are made by hand are not checked by msgspec; a message that cannot be read
    # would be the end of the call for its client.
    codec.convert(codec.to_json(whole), t.CallToolResult)
    return whole


def _seconds(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _described(exc: BaseException) -> str:
    """Return the kind of an exception, and its text if it has one: a KeyError's is the key alone."""
    try:
        said = str(exc)
    except Exception:  # the author's own `__str__`
        said = "its text cannot be made"
    return f"{type(exc).__name__}: {said}" if said else type(exc).__name__


def _cut(text: str) -> str:
    return text if len(text) <= MAX_REPORT else f"{text[:MAX_REPORT]}..."


def _error(text: str) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(text=text)], is_error=True)

"""A tool: a function made callable over the wire.

Registers nothing and knows no server; `MCPServer` hands it calls. How the function runs is the business of
`running`; what is made of arguments, of its value and of its failures is decided here.
Spec: server/tools, "Calling Tools", "Error Handling".
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec
from pydantic import ValidationError

from mcp_core import MCPError, codec
from mcp_core import types as t
from mcp_core.codec import JSONObject
from mcp_core.context import AnyContext
from mcp_core.queue_logger import QueueLogger
from mcp_core.revisions import is_modern
from mcp_typed.arguments import Arguments
from mcp_typed.docstrings import documented, documented_object, name_of
from mcp_typed.errors import InvalidSignature
from mcp_typed.failures import Failures
from mcp_typed.options import (
    checked_listing,
    optional_text,
    refuse,
    switch,
)
from mcp_typed.plain import NonFinite, Unsendable
from mcp_typed.policy import Policy
from mcp_typed.report import report_arguments
from mcp_typed.results import Returns, asks_for_input, scalar_result
from mcp_typed.running import Runner
from mcp_typed.signature import HandlerPlan, inspect_function

__all__ = ["NAME", "FunctionTool"]

_log = QueueLogger(__name__)

NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""Names that every client takes (server/tools, "Tool Names")."""


class FunctionTool:
    """One tool. `listed` is how `tools/list` shows it."""

    def __init__(
        self,
        function: Callable[..., object],
        policy: Policy,
        *,
        name: str | None = None,
        description: str | None = None,
        structured_output: bool | None = None,
        **listed: object,
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
        self.name: str = name or name_of(function)
        self.plan: HandlerPlan = inspect_function(function, self.name)
        self.policy = policy
        self._failures = Failures(self.name, mask_errors=policy.mask_errors)
        self._runner = Runner(self.plan, policy)
        said, described = documented(documented_object(function))
        self._arguments = Arguments(
            self.plan, described, unknown=policy.unknown_arguments, inline_refs=policy.inline_refs
        )
        self._returns = Returns(self.plan, structured_output=structured_output, inline_refs=policy.inline_refs)
        self._validate, self._scalar = self._arguments.validate, self._returns.scalar
        self._header_arguments = self._arguments.header_arguments
        if self.plan.resolved and asks_for_input(self.plan.returns):
            names = ", ".join(map(repr, self.plan.resolved))
            raise InvalidSignature(
                f"tool {self.name!r}: parameter {names}: Resolve(...) cannot be where InputRequiredResult is returned"
            )
        self._is_plain_call = self._runner.is_plain_call and not self._returns.streams
        simple = self.plan.function if self._is_plain_call else None
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

    @property
    def falls_back_to_text(self) -> bool:
        """Whether the return annotation has no schema, so that nothing structured is promised."""
        return self._returns.fell_back

    # --- a call ----------------------------------------------------------------------------------

    def call(self, ctx: AnyContext, params: t.RawCallToolParams) -> object:
        """Call it: the result, or what to await for it.

        Whatever goes wrong inside becomes a result that the model can read; only an
        `MCPError` leaves as a protocol error.
        """
        try:
            keywords = self._validate(bytes(params.arguments))
        except Exception as exc:
            keywords = self._retry_leniently(ctx, params, exc)
            if not codec.is_object(keywords):
                return keywords
        if self._header_arguments is not None and ctx.headers is not None and is_modern(ctx.protocol_version):
            self._header_arguments.check(bytes(params.arguments), keywords)
        if self._async is not None:
            return self._awaited(ctx, self._async, keywords)
        if self._inline is None:
            return self._called(ctx, params, keywords)
        try:
            value = self._inline(**keywords)
        except BaseException as exc:
            return self._failures.raised(ctx, exc)
        return self._awaited(ctx, lambda: value, {}) if inspect.isawaitable(value) else self._sent(ctx, value)

    def _retry_leniently(self, ctx: AnyContext, params: t.RawCallToolParams, first: Exception) -> object:
        """Return the arguments after all, or the result that says what is wrong with them, or what to await for it."""
        try:
            if not isinstance(first, ValidationError):
                raise first
            return self._arguments.validate_lenient(bytes(params.arguments), first)
        except ValidationError as exc:
            return self._invalid(ctx, exc, params)
        except MCPError:
            raise
        except Exception as exc:  # a validator of the author's
            return self._failures.crashed(ctx, exc)

    async def _called(self, ctx: AnyContext, params: t.RawCallToolParams, keywords: JSONObject) -> object:
        try:
            if self._is_plain_call:
                value = await self._runner.call(self.plan, keywords)
            else:
                value = await self._runner.run(ctx, params, keywords, collects=self._returns.streams)
        except BaseException as exc:
            return self._failures.raised(ctx, exc)
        return self._sent(ctx, value)

    async def _awaited(self, ctx: AnyContext, function: Callable[..., Any], keywords: JSONObject) -> Any:
        try:
            value = await function(**keywords)
            if type(value) is self._scalar:  # as `_sent` does, one call earlier
                return scalar_result(value)
        except BaseException as exc:
            return self._failures.raised(ctx, exc)
        return self._sent(ctx, value)

    def _sent(self, ctx: AnyContext, value: Any) -> Any:
        """Return the result for a returned value, or what is wrong with it."""
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

    def _invalid(self, ctx: AnyContext, exc: ValidationError, params: t.RawCallToolParams) -> Any:
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

    async def _said_later(self, ctx: AnyContext, exc: ValidationError, said: Any) -> t.CallToolResult:
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


_NAMES: Final = 10
"""Names of arguments that a log record has."""


def _names_in(arguments: bytes | msgspec.Raw) -> str:
    """Return the names of the first arguments that were sent, without their values."""
    try:
        names = list(itertools.islice(_named(arguments), _NAMES + 1))
    except (codec.ValidationError, codec.DecodeError):
        return ""
    shown = [name[:_NAMES_LENGTH] for name in names[:_NAMES]]
    return ", ".join([*shown, "..."] if len(names) > _NAMES else shown)


_NAMES_LENGTH: Final = 100
_named: codec.Decoder[dict[str, msgspec.Raw]] = codec.decoder(dict[str, msgspec.Raw])

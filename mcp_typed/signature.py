"""A function inspected once: what it takes, what it gives, what is injected.

Knows Python's signatures; nothing of pydantic or MCP.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, get_origin, get_type_hints

import msgspec

from mcp_core import RequestContext
from mcp_typed.errors import InvalidSignature

__all__ = ["MISSING", "Parameter", "Plan", "inspect_tool"]

MISSING: Final = inspect.Parameter.empty
"""No annotation, or no default."""


class Parameter(msgspec.Struct, frozen=True):
    """One parameter that the model fills in."""

    name: str
    annotation: Any
    default: Any


class Plan(msgspec.Struct, frozen=True):
    """What calling the function takes. `context` names the parameter that gets the context."""

    name: str
    function: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    returns: Any
    context: str | None
    is_async: bool


def inspect_tool(function: Callable[..., Any], name: str) -> Plan:
    """The plan of a function.

    Raises:
        InvalidSignature: It takes `*args` or `**kwargs`, or an annotation cannot be
            resolved.
    """
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as exc:
        raise InvalidSignature(f"tool {name!r}: an annotation cannot be resolved: {exc}") from exc
    parameters: list[Parameter] = []
    context: str | None = None
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            star = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            raise InvalidSignature(
                f"tool {name!r}: parameter {star}{parameter.name} has no place in a schema; name each parameter"
            )
        annotation = hints.get(parameter.name, MISSING)
        if _is_context(annotation):
            context = parameter.name
        else:
            parameters.append(Parameter(parameter.name, annotation, parameter.default))
    return Plan(
        name=name,
        function=function,
        parameters=tuple(parameters),
        returns=hints.get("return", MISSING),
        context=context,
        is_async=inspect.iscoroutinefunction(function),
    )


def _is_context(annotation: Any) -> bool:
    return annotation is RequestContext or get_origin(annotation) is RequestContext

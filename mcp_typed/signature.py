"""A function inspected once: what it takes, what it gives, what is injected.

Knows Python's signatures and what the layer injects; nothing of pydantic or schemas.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin

import msgspec

from mcp_core import RequestContext
from mcp_typed.asking import Resolve
from mcp_typed.cancellation import Cancellation
from mcp_typed.context import Context
from mcp_typed.errors import InvalidSignature

__all__ = ["MISSING", "Injected", "Parameter", "Plan", "inspect_function", "type_hints", "union_arms"]

MISSING: Final = inspect.Parameter.empty
"""No annotation, or no default."""

Injected: TypeAlias = Literal["context", "core context", "cancellation"]


class Parameter(msgspec.Struct, frozen=True):
    """One parameter that the caller fills in."""

    name: str
    annotation: Any
    default: Any


class Plan(msgspec.Struct, frozen=True):
    """What calling the function takes.

    `name` is what callers know it by, `title` the function's own name; `positional` are the
    parameters of every kind that have to be passed by position, in order. `parameters` are
    the caller's; `injected` names those that the layer fills
    in, and with what; `resolved` those that other functions fill in, with what is wanted
    of them. `is_async` and `is_generator` say what a call gives at once.
    """

    name: str
    title: str
    function: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    positional: tuple[str, ...]
    returns: Any
    injected: dict[str, Injected]
    resolved: dict[str, tuple[Resolve, Any]]
    is_async: bool
    is_generator: bool


def inspect_function(function: Callable[..., Any], name: str, kind: str = "tool") -> Plan:
    """The plan of a function, method, partial or callable object.

    Raises:
        InvalidSignature: It takes `*args` or `**kwargs`, is a method without its object,
            or an annotation cannot be resolved.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as exc:
        raise InvalidSignature(f"{kind} {name!r}: {function!r} has no signature to read: {exc}") from exc
    hints = type_hints(function, f"{kind} {name!r}")
    bound = _bound_keywords(function)
    parameters: list[Parameter] = []
    injected: dict[str, Injected] = {}
    resolved: dict[str, tuple[Resolve, Any]] = {}
    for position, parameter in enumerate(signature.parameters.values()):
        annotation = hints.get(parameter.name, MISSING)
        what = _injected(annotation)
        if parameter.name in bound:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            star = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            raise InvalidSignature(
                f"{kind} {name!r}: parameter {star}{parameter.name} has no place in a schema; name each parameter"
            )
        if position == 0 and parameter.name in ("self", "cls") and annotation is MISSING:
            raise InvalidSignature(
                f"{kind} {name!r}: parameter {parameter.name!r} is left open: register the method of an object or class"
            )
        if what is not None:
            injected[parameter.name] = what
            continue
        if isinstance(parameter.default, Resolve):
            raise InvalidSignature(
                f"{kind} {name!r}: parameter {parameter.name!r}: Resolve(...) is no default; "
                "write it into the annotation: Annotated[T, Resolve(...)]"
            )
        marker = _resolver(annotation, f"{kind} {name!r}: parameter {parameter.name!r}")
        if marker is not None:
            resolved[parameter.name] = marker, get_args(annotation)[0]
            continue
        parameters.append(Parameter(parameter.name, annotation, parameter.default))
    called = _called(function)
    return Plan(
        name=name,
        title=getattr(_called(function), "__name__", name) if not _is_object(function) else type(function).__name__,
        function=function,
        parameters=tuple(parameters),
        positional=tuple(p.name for p in signature.parameters.values() if p.kind is p.POSITIONAL_ONLY),
        returns=hints.get("return", MISSING),
        injected=injected,
        resolved=resolved,
        is_async=inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called),
        is_generator=inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called),
    )


def union_arms(annotation: Any) -> tuple[Any, ...]:
    """The arms of a union; anything else is its own only arm."""
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _resolver(annotation: Any, owner: str) -> Resolve | None:
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        found = next((item for item in metadata if isinstance(item, Resolve)), None)
        if found is not None:
            return found
        annotation = inner
    if _hides_resolver(annotation):
        raise InvalidSignature(
            f"{owner}: Resolve(...) must be around the whole type: Annotated[T | None, Resolve(...)]"
        )
    return None


def _hides_resolver(annotation: Any) -> bool:
    """Whether a `Resolve` stands somewhere inside a type, where it means nothing."""
    if get_origin(annotation) is Annotated and any(isinstance(item, Resolve) for item in get_args(annotation)[1:]):
        return True
    return any(_hides_resolver(argument) for argument in get_args(annotation))


def _injected(annotation: Any) -> Injected | None:
    """What an annotation asks for; `Context | None` and `Context[T]` ask for a context."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        arms = [arm for arm in get_args(annotation) if arm is not type(None)]
        return _injected(arms[0]) if len(arms) == 1 else None
    if origin is Annotated:
        return _injected(get_args(annotation)[0])
    asked = origin or annotation
    return _injected_by(asked) if isinstance(asked, type) else None


def _injected_by(asked: object) -> Injected | None:
    if asked is Context:
        return "context"
    if asked is RequestContext:
        return "core context"
    return "cancellation" if asked is Cancellation else None


def _called(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose kind (async, generator) a call has."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function):
        return function
    return getattr(type(function), "__call__", function)  # noqa: B004 - its signature is wanted


def _is_object(function: Callable[..., Any]) -> bool:
    """Whether it is an object with `__call__`, which has its class's name only."""
    return not isinstance(function, functools.partial) and getattr(function, "__name__", None) is None


def _bound_keywords(function: Callable[..., Any]) -> set[str]:
    """Keywords that a partial has filled in: its author's, not the model's."""
    bound: set[str] = set()
    while isinstance(function, functools.partial):
        bound |= set(function.keywords)
        function = function.func
    return bound


# --- annotations ------------------------------------------------------------------------------


def type_hints(function: Callable[..., Any], owner: str) -> dict[str, Any]:
    """The annotations of a callable, resolved.

    Names that its module does not have are looked for in its closure and in the
    functions that are just running, where a local class may be.

    Raises:
        InvalidSignature: One cannot be resolved; the text names owner, parameter and name.
    """
    called = _called(function)
    try:
        return typing.get_type_hints(called, include_extras=True)
    except NameError:
        pass
    except Exception as exc:
        raise InvalidSignature(f"{owner}: its annotations cannot be read: {exc}") from exc
    local = _visible_names(called)
    try:
        return typing.get_type_hints(called, localns=local, include_extras=True)
    except NameError as exc:
        raise InvalidSignature(
            f"{owner}: the annotation of {_culprit(called, local)} cannot be resolved: "
            f"there is no {exc.name!r} where the function is defined"
        ) from exc


def _visible_names(function: Callable[..., Any]) -> dict[str, Any]:
    names: dict[str, Any] = {}
    frames: list[dict[str, Any]] = []
    frame: types.FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_code.co_name != "<module>" and frame.f_globals.get("__package__") != __package__:
            frames.append(frame.f_locals)
        frame = frame.f_back
    for local in reversed(frames):
        names.update(local)
    inner = inspect.unwrap(function)
    inner = getattr(inner, "__func__", inner)
    if isinstance(inner, types.FunctionType):
        names.update(inspect.getclosurevars(inner).nonlocals)
    return names


def _culprit(function: Callable[..., Any], local: dict[str, Any]) -> str:
    annotations: dict[str, Any] = getattr(inspect.unwrap(function), "__annotations__", {})
    for name, annotation in annotations.items():
        probe = types.FunctionType((lambda: None).__code__, getattr(inspect.unwrap(function), "__globals__", {}))
        probe.__annotations__ = {name: annotation}
        try:
            typing.get_type_hints(probe, localns=local)
        except NameError:
            return "the return value" if name == "return" else f"parameter {name!r}"
    return "a parameter"

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
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from mcp_core import RequestContext
from mcp_core.codec import JSONObject
from mcp_typed.annotations import arms, meaning
from mcp_typed.asking import Resolve
from mcp_typed.cancellation import Cancellation
from mcp_typed.context import Context
from mcp_typed.errors import InvalidSignature

__all__ = ["MISSING", "Injected", "Parameter", "HandlerPlan", "inspect_function", "type_hints"]

MISSING: Final = inspect.Parameter.empty
"""No annotation, or no default."""

Injected: TypeAlias = Literal["context", "core context", "cancellation"] | type[Context[Any]]
"""What is filled in; a class is the author's own kind of context, made of the core's."""


class Parameter(msgspec.Struct, frozen=True):
    """One parameter that the caller fills in."""

    name: str
    annotation: Any
    default: Any


class HandlerPlan(msgspec.Struct, frozen=True):
    """What calling the function takes.

    `kind` is what it is registered as ("tool", "resolver"), for texts; `name` is what callers know it by,
    `title` the function's own name. `parameters` are the caller's, and `positional` those of every kind that
    have to be passed by position, in order; `injected` names those that the layer fills in, and with what;
    `resolved` those that other functions fill in, with what is wanted of them. `is_async` and `is_generator`
    say what a call returns at once.
    """

    kind: str
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


def inspect_function(function: Callable[..., object], name: str, kind: str = "tool") -> HandlerPlan:
    """Return the plan of a function, method, partial or callable object.

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
    resolved: dict[str, tuple[Resolve, object]] = {}
    for position, parameter in enumerate(signature.parameters.values()):
        annotation = hints.get(parameter.name, MISSING)
        if parameter.name in bound:
            continue
        what, marker = _filled_in(annotation, f"{kind} {name!r}: parameter {parameter.name!r}")
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
        if marker is not None:
            resolved[parameter.name] = marker, _wanted(annotation)
            continue
        parameters.append(Parameter(parameter.name, annotation, parameter.default))
    called = _called(function)
    return HandlerPlan(
        kind=kind,
        name=name,
        title=type(function).__name__ if _is_object(function) else getattr(_described(function), "__name__", name),
        function=function,
        parameters=tuple(parameters),
        positional=tuple(p.name for p in signature.parameters.values() if p.kind is p.POSITIONAL_ONLY),
        returns=hints.get("return", MISSING),
        injected=injected,
        resolved=resolved,
        is_async=inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called),
        is_generator=inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called),
    )


def _filled_in(annotation: object, owner: str) -> tuple[Injected | None, Resolve | None]:
    """Return what fills a parameter in, if not the caller: something injected, or a resolver."""
    try:
        return _injected(annotation, owner), _resolver(annotation, owner)
    except NameError as exc:
        raise InvalidSignature(f"{owner}: its annotation cannot be resolved: there is no {exc.name!r}") from exc


def _resolver(annotation: object, owner: str) -> Resolve | None:
    meant = meaning(annotation)
    found = next((item for item in meant.said if isinstance(item, Resolve)), None)
    if found is None and _hides_resolver(meant.arguments, ()):
        raise InvalidSignature(
            f"{owner}: Resolve(...) must be around the whole type: Annotated[T | None, Resolve(...)]"
        )
    return found


def _wanted(annotation: object) -> object:
    """Return what a resolver has to give: the annotation without the `Resolve`."""
    meant = meaning(annotation)
    return meant._replace(said=tuple(item for item in meant.said if not isinstance(item, Resolve))).about(meant.bare)


def _hides_resolver(parts: tuple[object, ...], above: tuple[object, ...]) -> bool:
    """Return whether a `Resolve` stands somewhere inside a type, where it means nothing."""
    for part in parts:
        if part in above or len(above) > _DEEPEST:
            continue
        meant = meaning(part)
        if any(isinstance(item, Resolve) for item in meant.said):
            return True
        if _hides_resolver(meant.arguments, (*above, part)):
            return True
    return False


_DEEPEST: Final = 100
"""Levels of an annotation that are looked into."""


def _injected(annotation: object, owner: str) -> Injected | None:
    """Return what an annotation asks for; `Context | None` and `Context[T]` ask for a context."""
    asked = [arm for arm in arms(annotation) if meaning(arm).bare not in (None, types.NoneType)]
    cls = meaning(asked[0]).cls if len(asked) == 1 else None
    if cls is None:
        return None
    if issubclass(cls, Context):
        return "context" if cls is Context else _own_context(cast("type[Context[Any]]", cls), owner)
    if cls is RequestContext:
        return "core context"
    return "cancellation" if cls is Cancellation else None


def _own_context(cls: type[Context[object]], owner: str) -> type[Context[object]]:
    try:
        inspect.signature(cls).bind(None)
    except TypeError as exc:
        raise InvalidSignature(
            f"{owner}: a {cls.__name__} cannot be injected: {exc}; it must take the RequestContext and nothing more"
        ) from exc
    return cls


def _called(function: Callable[..., object]) -> Callable[..., object]:
    """Return the function whose kind (async, generator) a call has."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function):
        return function
    return getattr(type(function), "__call__", function)  # noqa: B004 - its signature is wanted


def _described(function: Callable[..., object]) -> Callable[..., object]:
    """Return the function whose parameters, annotations and name a call has.

    `inspect.signature` looks through the objects of class-based decorators, by their
    `__wrapped__`: what else describes the parameters has to come from the same function.
    """
    while isinstance(function, functools.partial) or _is_decorator(function):
        function = function.func if isinstance(function, functools.partial) else cast("Any", function).__wrapped__
    return _called(function)


def _is_decorator(function: Callable[..., object]) -> bool:
    """Return whether it is an object around a function; functions made by `wraps` have annotations of their own."""
    return not inspect.isfunction(function) and not inspect.ismethod(function) and hasattr(function, "__wrapped__")


def _is_object(function: Callable[..., object]) -> bool:
    """Return whether it is an object with `__call__`, which has its class's name only."""
    if isinstance(function, functools.partial) or _is_decorator(function):
        return False
    return getattr(function, "__name__", None) is None


def _bound_keywords(function: Callable[..., object]) -> set[str]:
    """Keywords that a partial has filled in: its author's, not the model's."""
    bound: set[str] = set()
    while isinstance(function, functools.partial):
        bound |= set(function.keywords)
        function = function.func
    return bound


# --- annotations ------------------------------------------------------------------------------


def type_hints(function: Callable[..., object], owner: str) -> JSONObject:
    """Return the annotations of a callable, resolved.

    Names that its module does not have are looked for in its closure and in the
    functions that are just running, where a local class may be.

    Raises:
        InvalidSignature: One cannot be resolved; the text names owner, parameter and name.
    """
    called = _described(function)
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


def _visible_names(function: Callable[..., object]) -> JSONObject:
    names: JSONObject = {}
    frames: list[JSONObject] = []
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


def _culprit(function: Callable[..., object], local: JSONObject) -> str:
    annotations: JSONObject = getattr(inspect.unwrap(function), "__annotations__", {})
    for name, annotation in annotations.items():
        probe = types.FunctionType((lambda: None).__code__, getattr(inspect.unwrap(function), "__globals__", {}))
        probe.__annotations__ = {name: annotation}
        try:
            typing.get_type_hints(probe, localns=local)
        except NameError:
            return "the return value" if name == "return" else f"parameter {name!r}"
    return "a parameter"

"""What an annotation means: aliases, new types and `Annotated` looked through, in one place.

An annotation can be written in many ways that mean the same: `type X = ...` (PEP 695,
with parameters too), `NewType`, `Annotated` around it or inside, `Optional`, `|`, a text.
Every question of what an annotation means is asked here; the parts of an annotation are to be asked
about in turn, since each may be an alias again. Knows types only; nothing of tools.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, ForwardRef, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin

import typing_extensions

from mcp_core.codec import JSONObject

__all__ = ["Meaning", "alias_value", "arms", "is_alias", "leaves", "meaning", "new_alias", "said_about"]

_DEEPEST: Final = 100
"""Aliases of aliases that are looked through: one that is its own value has no end."""


class Meaning(NamedTuple):
    """An annotation without what only names it or says more about it.

    `origin` is what is parametrised: a class, `Union` for a union in either notation,
    `Literal`; `None` for what has no parameters. `said` is what `Annotated` says, at all
    levels, the innermost first.
    """

    bare: Any
    origin: Any
    arguments: tuple[Any, ...]
    said: tuple[Any, ...]

    @property
    def cls(self) -> type[object] | None:
        """The class, with parameters or without; `None` where the annotation is not a class."""
        found = self.bare if self.origin is None else self.origin
        return cast("type[Any]", found) if isinstance(found, type) else None

    def about(self, annotation: object) -> Any:
        """Another annotation, with all that is said about this one."""
        return Annotated[(annotation, *self.said)] if self.said else annotation


def meaning(annotation: object) -> Meaning:
    """Return what an annotation means.

    Raises:
        NameError: An alias names what does not exist.
    """
    said: tuple[object, ...] = ()
    for _ in range(_DEEPEST):
        if is_alias(annotation):
            annotation = alias_value(annotation)
        elif isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            said = (*more, *said)
        else:
            break
    origin = get_origin(annotation)
    if origin is types.UnionType:
        origin = Union
    return Meaning(annotation, origin, get_args(annotation), said)


def said_about(annotation: object) -> tuple[object, ...]:
    """Return what `Annotated` says about an annotation, the innermost first."""
    return meaning(annotation).said


def arms(annotation: object) -> tuple[object, ...]:
    """Return the arms of a union, those of a union within it in its place; else the annotation itself.

    What is said about a union within is not said of its arms.
    """
    meant = meaning(annotation)
    if meant.origin is not Union:
        return (annotation,)
    return tuple(arm for part in meant.arguments for arm in arms(part))


def leaves(annotation: object, _seen: tuple[object, ...] = ()) -> Iterator[object]:
    """Give the types that an annotation is made of; an alias that contains itself is looked into once."""
    if annotation in _seen or len(_seen) == _DEEPEST:
        return
    meant = meaning(annotation)
    if meant.origin is None or meant.origin is Literal:
        yield meant.bare
        return
    inside = (*_seen, annotation) if is_alias(annotation) else _seen
    for argument in meant.arguments:
        for part in cast("list[Any]", argument) if isinstance(argument, list) else (argument,):
            yield from leaves(part, inside)


# --- aliases --------------------------------------------------------------------------------------

_ALIASES: Final[tuple[Any, ...]] = tuple(
    {typing_extensions.TypeAliasType, getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType)}
)


def is_alias(annotation: object) -> bool:
    """Return whether an annotation is a `type X = ...`, or one with its parameters filled in."""
    return isinstance(annotation, _ALIASES) or isinstance(get_origin(annotation), _ALIASES)


def alias_value(annotation: Any) -> Any:
    """Return what an alias stands for, with its parameters filled in.

    Raises:
        NameError: It names what does not exist.
    """
    alias = annotation if isinstance(annotation, _ALIASES) else get_origin(annotation)
    value = _without_texts(alias.__value__, getattr(alias, "__module__", None))
    parameters: tuple[object, ...] = alias.__type_params__
    if alias is annotation or not parameters:
        return value
    return _filled(value, dict(zip(parameters, get_args(annotation), strict=False)))


def _filled(value: Any, given: dict[object, object]) -> Any:
    """Return a type with its type variables replaced, which may stand in it in another order."""
    if isinstance(value, TypeVar):
        return given.get(value, value)
    wanted: tuple[Any, ...] = getattr(value, "__parameters__", ())
    return value[tuple(given.get(parameter, parameter) for parameter in wanted)] if wanted else value


def _without_texts(value: Any, module: str | None) -> Any:
    """Return an annotation with its parts that are texts read, by the names of a module."""
    if not _holds_text(value):
        return value

    class Probe:
        __annotations__ = {"value": value}

    names = vars(sys.modules[module]) if module in sys.modules else {}
    return typing.get_type_hints(Probe, globalns=names, include_extras=True)["value"]


def _holds_text(value: object) -> bool:
    if isinstance(value, str | ForwardRef):
        return True
    return get_origin(value) not in (None, Literal) and any(map(_holds_text, get_args(value)[: _parts(value)]))


def _parts(value: object) -> int | None:
    return 1 if get_origin(value) is Annotated else None


def new_alias(name: str, make_value: Callable[[object], object]) -> object:
    """Return an alias whose value may contain it: `make_value` is given the alias."""
    make: Any = typing_extensions.TypeAliasType
    alias = make(name, None)
    value = make_value(alias)
    if sys.version_info >= (3, 14):  # pragma: no cover - there it is written in C, and takes no other value once made
        names: JSONObject = {"value": value}
        exec(f"type {name} = value", names)
        return names[name]
    object.__setattr__(alias, "__value__", value)
    return alias

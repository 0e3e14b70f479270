"""Values built by hand, held to what their types say.

msgspec checks what it reads, not what it writes: a `TextContent(text=5)` would go out
as it is, and its client would refuse the whole message. Each type is looked at once; a value then
costs a look at the type of each member.

Knows wire types as types; nothing of methods or connections.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from msgspec import Raw, Struct

from mcp_core import codec
from mcp_core.codec import JSONObject
from mcp_core.types.content import AnyResourceContents, ResourceContents

__all__ = ["misfit"]

Check: TypeAlias = Callable[[Any], str | None]
"""What is wrong with a value, as the end of a sentence that begins with its place; `None` if nothing is."""

_LONGEST: Final = 100
"""Characters of a wrong value that are shown."""


def misfit(value: Struct) -> str | None:
    """Return what is wrong with a value of a wire type, and where; `None` if it is what its type says.

    What stands in members of any type, such as `structured_content`, is not looked at. Ready bytes
    (`msgspec.Raw`) are taken for whatever is wanted.
    """
    for name, check in _members(type(value)):
        wrong = check(getattr(value, name))
        if wrong is not None:
            return f"{name}{wrong}"
    return None


@lru_cache(maxsize=1024)
def _members(kind: type[Struct]) -> tuple[tuple[str, Check], ...]:
    """Return the members of a type that are checked."""
    hints = get_type_hints(kind)
    checks = ((name, _check(hints[name])) for name in kind.__struct_fields__ if name in hints)
    return tuple((name, check) for name, check in checks if check is not None)


def _check(hint: Any) -> Check | None:
    """Return the check for an annotation; `None` where anything goes."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or hint is object or hint is Raw:
        return None
    if origin in (Union, UnionType):
        return _one_of(arguments)
    if origin is Literal:
        return _literal(arguments)
    if hint is list or origin is list:
        return _list(_check(arguments[0]) if arguments else None)
    if hint is dict or origin is dict:
        return _dict(_check(arguments[1]) if arguments else None)
    if hint is AnyResourceContents:
        return _struct(ResourceContents)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _struct(hint)
    return _scalar(hint) if hint in _SCALARS else None  # pyright: ignore[reportUnknownArgumentType]


def _scalar(kind: type[Any]) -> Check:
    accepted = _SCALARS[kind]

    def check(value: Any) -> str | None:
        if type(value) is kind or (isinstance(value, accepted) and (kind is bool or not isinstance(value, bool))):
            return None
        if isinstance(value, Raw) or (kind is str and codec.url_text(value) is not None):
            return None
        return _wrong(kind.__name__, value)

    return check


_SCALARS: Final[dict[type[Any], tuple[type[Any], ...]]] = {
    str: (str,),
    bool: (bool,),
    int: (int,),
    float: (float, int),
    NoneType: (NoneType,),
}


def _literal(values: tuple[Any, ...]) -> Check:
    shown = " or ".join(map(repr, values))

    def check(value: Any) -> str | None:
        return None if isinstance(value, Raw) or value in values else _wrong(shown, value)

    return check


def _list(item: Check | None) -> Check:
    def check(value: Any) -> str | None:
        if not isinstance(value, list | tuple):
            return None if isinstance(value, Raw) else _wrong("list", value)
        if item is not None:
            for index, element in enumerate(value):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
                wrong = item(element)
                if wrong is not None:
                    return f"[{index}]{wrong}"
        return None

    return check


def _dict(member: Check | None) -> Check:
    def check(value: Any) -> str | None:
        if not codec.is_object(value):
            return None if isinstance(value, Raw) else _wrong("dict", value)
        if member is not None:
            for key, inner in value.items():
                wrong = member(inner)
                if wrong is not None:
                    return f"[{key!r}]{wrong}"
        return None

    return check


def _struct(kind: type[Struct]) -> Check:
    def check(value: Any) -> str | None:
        if isinstance(value, kind):
            wrong = misfit(value)
            return None if wrong is None else f".{wrong}"
        if isinstance(value, Raw) or hasattr(value, "__mcp_wire__"):
            return None
        return _json_form(value, kind) if codec.is_object(value) else _wrong(kind.__name__, value)

    return check


def _json_form(value: JSONObject, kind: type[Struct]) -> str | None:
    """Check a dict that stands for a value of a type: it goes out as it is, so it must be as on the wire."""
    for name, wire in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
        if name != wire and name in value:
            return f" has {name!r}; in a dict it is {wire!r}, as on the wire"
    try:
        codec.convert(codec.to_json(value), AnyResourceContents if kind is ResourceContents else kind)
    except (TypeError, ValueError) as exc:
        return f"{_MUST}{kind.__name__}, or a dict like one; {exc}"
    return None


def _one_of(arms: tuple[Any, ...]) -> Check | None:
    found = [_check(arm) for arm in arms]
    checks = [check for check in found if check is not None]
    if len(checks) < len(found):
        return None
    structs = tuple(arm for arm in arms if isinstance(arm, type) and issubclass(arm, Struct))
    names = " or ".join(getattr(arm, "__name__", str(arm)) for arm in arms if arm is not NoneType)

    def check(value: Any) -> str | None:
        if value is None and NoneType in arms:
            return None
        mine = next((index for index, arm in enumerate(arms) if arm in structs and isinstance(value, arm)), None)
        if mine is not None:
            return checks[mine](value)  # what is wrong inside says more
        wrongs = [check(value) for check in checks]
        if None in wrongs:
            return None
        inside = [wrong for wrong in wrongs if wrong is not None and not wrong.startswith(_MUST)]
        return inside[0] if inside else _wrong(names, value)

    return check


_MUST: Final = " must be "


def _wrong(wanted: str, value: Any) -> str:
    try:
        shown = repr(value)
    except Exception:
        shown = f"a value of {codec.type_of(value).__name__}, whose repr fails"
    return f"{_MUST}{wanted}; got {shown if len(shown) <= _LONGEST else shown[:_LONGEST] + '...'}"

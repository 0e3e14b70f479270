"""What authors set, checked where they set it.

One style for all: `timeout must be a positive number of seconds; got '3'`. What is found
wrong here would otherwise be found by each call, or by every client that reads the list
of tools.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, Final, NoReturn, TypeVar, cast

import msgspec

from mcp_core import codec
from mcp_core import types as t
from mcp_core.codec import JSONObject
from mcp_typed.errors import InvalidOption

__all__ = [
    "LISTED",
    "checked_icons",
    "checked_listing",
    "known_options",
    "one_of",
    "optional_text",
    "positive_count",
    "positive_seconds",
    "refuse",
    "switch",
    "taken_lifespan",
    "text",
]

S = TypeVar("S", bound=msgspec.Struct)

LISTED: Final = ("title", "annotations", "icons", "meta")
"""Options of a tool that are nothing but listed."""

_SHOWN: Final = 100
"""Characters of a wrong value that its refusal shows."""


def refuse(option: str, takes: str, got: object) -> NoReturn:
    """
    Raises:
        InvalidOption: Always; it says what the option takes, and what it got.
    """
    shown = repr(got)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
    raise InvalidOption(f"{option} must be {takes}; got {shown}")


def known_options(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse an option that there is not."""
    names = tuple(known)
    for name in given:
        if name not in names:
            raise InvalidOption(f"{what} has no option {name!r}; known are {', '.join(names)}")


def one_of(option: str, value: object, *choices: str) -> None:
    """Refuse what is none of these."""
    if not isinstance(value, str) or value not in choices:
        *others, last = (f'"{choice}"' for choice in choices)
        refuse(option, f"{', '.join(others)} or {last}", value)


def positive_seconds(option: str, value: object) -> None:
    """Refuse what is no time to wait for; infinity is one."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        refuse(option, "a positive number of seconds", value)


def positive_count(option: str, value: object, of: str) -> None:
    """Refuse what is not a number of something."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        refuse(option, f"a positive number of {of}", value)


def switch(option: str, value: object) -> None:
    """Refuse what is neither on nor off."""
    if not isinstance(value, bool):
        refuse(option, "True or False", value)


def text(option: str, value: object) -> None:
    """Refuse what is not a string."""
    if not isinstance(value, str):
        refuse(option, "a string", value)


def optional_text(option: str, value: object) -> None:
    """Refuse what is neither a string nor left out."""
    if value is not None:
        text(option, value)


def taken_lifespan(value: object) -> None:
    """Refuse what does not give an async context manager, as far as that can be seen."""
    if value is None:
        return
    takes = "a function of the server that returns an async context manager"
    if not callable(value):
        refuse("lifespan", takes, value)
    called = value if inspect.isroutine(value) else getattr(type(value), "__call__", None)  # noqa: B004
    if inspect.isasyncgenfunction(called) or inspect.iscoroutinefunction(called) or inspect.isgeneratorfunction(called):
        name = getattr(value, "__qualname__", repr(value))
        raise InvalidOption(f"lifespan must be {takes}; got {name}: decorate it with contextlib.asynccontextmanager")


# --- what tools/list shows -------------------------------------------------------------------------


def checked_listing(given: JSONObject) -> JSONObject:
    """Return the fields of `Tool` that options of a tool say: `title`, `annotations`, `icons`, `meta`."""
    known_options("a tool", given, LISTED)
    optional_text("title", given.get("title"))
    return {
        "title": given.get("title"),
        "annotations": _annotations(given.get("annotations")),
        "icons": checked_icons(given.get("icons")),
        "_meta": _meta(given.get("meta")),
    }


def _annotations(value: object) -> t.ToolAnnotations | None:
    """Return the annotations of a tool; a dict may name them as Python does, or as the wire does."""
    return None if value is None else _struct("annotations", value, t.ToolAnnotations)


def checked_icons(value: object) -> list[t.Icon] | None:
    """Return icons; each may be a dict that names its members as Python does, or as the wire does."""
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        refuse("icons", "a list of Icon", value)
    icons = cast("list[Any] | tuple[Any, ...]", value)
    return [_struct(f"icons[{index}]", icon, t.Icon) for index, icon in enumerate(icons)]


def _meta(value: object) -> JSONObject | None:
    """Return the `_meta` of a tool, as it is now: what the author changes later is not listed."""
    if value is None:
        return None
    if not codec.is_object(value):
        refuse("meta", "a dict of JSON values", value)
    try:
        shown: JSONObject = codec.to_json(value)
    except (TypeError, ValueError) as exc:
        raise InvalidOption(f"meta must be a dict of JSON values; {exc}") from exc
    return shown


def _struct(option: str, value: object, kind: type[S]) -> S:
    """Return a value as this type: msgspec does not check a Struct that is made by hand."""
    given = _by_wire_names(option, value, kind) if codec.is_object(value) else value
    if not codec.is_object(value) and not isinstance(value, kind):
        refuse(option, f"{_article(kind.__name__)} {kind.__name__}", value)
    try:
        return codec.convert(codec.to_json(given), kind)
    except (TypeError, ValueError) as exc:
        raise InvalidOption(f"{option} must be {_article(kind.__name__)} {kind.__name__}: {exc}") from exc


def _by_wire_names(option: str, given: JSONObject, kind: type[msgspec.Struct]) -> JSONObject:
    wire = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    unknown = [name for name in given if name not in wire and name not in wire.values()]
    if unknown:
        raise InvalidOption(f"{option} has no member {unknown[0]!r}; known are {', '.join(wire)}")
    return {wire.get(name, name): value for name, value in given.items()}


def _article(name: str) -> str:
    return "an" if name[0] in "AEIO" else "a"

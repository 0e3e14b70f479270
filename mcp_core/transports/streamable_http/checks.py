"""Options, looked at where they are given: each text says which one, what it must be, and what it got.

Knows values; nothing of what the options do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, cast

__all__ = [
    "flag",
    "header_values",
    "instance",
    "offers",
    "optional_path",
    "path",
    "positive",
    "seconds",
    "strings",
    "text",
    "url",
]

_MOST_SHOWN: Final = 200


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def positive(option: str, value: Any, unit: str) -> int:
    """Return a whole number of something, at least 1."""
    wanted = f"{option} must be a positive number of {unit}; got {_shortened(value)}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(wanted)
    if value < 1:
        raise ValueError(wanted)
    return value


def seconds(option: str, value: Any, *, or_none: bool = False) -> None:
    """A span of time; `None` as well for one that may have no end."""
    if value is None and or_none:
        return
    wanted = f"{option} must be a positive number of seconds{' or None' if or_none else ''}; got {_shortened(value)}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(wanted)
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(wanted)


def flag(option: str, value: Any) -> None:
    """A bool."""
    if not isinstance(value, bool):
        raise TypeError(f"{option} must be True or False; got {_shortened(value)}")


def text(option: str, value: Any, what: str) -> None:
    """A string that is not empty."""
    if not isinstance(value, str):
        raise TypeError(f"{option} must be {what}; got {_shortened(value)}")
    if not value.strip():
        raise ValueError(f"{option} must be {what}; got {_shortened(value)}")


def path(option: str, value: Any) -> None:
    """The path of a URL."""
    wanted = f"{option} must be a path that begins with a slash, such as '/mcp'; got {_shortened(value)}"
    if not isinstance(value, str):
        raise TypeError(wanted)
    if not value.startswith("/") or any(each in value for each in "?# \t\r\n"):
        raise ValueError(wanted)


def optional_path(option: str, value: Any) -> None:
    """The same, or `None`."""
    if value is not None:
        path(option, value)


def header_values(option: str, value: Any, example: str, *, has_scheme: bool) -> None:
    """A list of what a header may say: hosts, or origins, which have a scheme before the host."""
    if not isinstance(value, list | tuple | set | frozenset):
        raise TypeError(f"{option} must be a list of strings such as {example!r}; got {_shortened(value)}")
    for each in cast("Iterable[Any]", value):
        wanted = f"{option} must hold strings such as {example!r}; got {_shortened(each)}"
        if not isinstance(each, str):
            raise TypeError(wanted)
        if each == "*" or (has_scheme and each == "null"):
            continue
        scheme, _, name = each.rpartition("://")
        if not name.strip() or "/" in name or bool(scheme) != has_scheme:
            raise ValueError(wanted)


def url(option: str, value: Any) -> None:
    """The whole address of something on the web."""
    wanted = f"{option} must be a URL such as 'https://example.com/mcp'; got {_shortened(value)}"
    if not isinstance(value, str):
        raise TypeError(wanted)
    scheme, _, rest = value.partition("://")
    if scheme.lower() not in ("http", "https") or not rest.partition("/")[0] or not value.isprintable() or " " in value:
        raise ValueError(wanted)


def strings(option: str, value: Any) -> None:
    """A list of strings."""
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in cast("Iterable[Any]", value)):
        raise TypeError(f"{option} must be a list of strings; got {_shortened(value)}")


def instance(option: str, value: Any, kind: type) -> None:
    """One of a class, or `None`."""
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{option} must be a {kind.__name__}; got {_shortened(value)}")


def offers(option: str, value: Any, what: str, *methods: str) -> None:
    """An object of the author's with these methods, or `None`."""
    if value is None:
        return
    missing = [name for name in methods if not callable(getattr(value, name, None))]
    if missing or isinstance(value, type):
        raise TypeError(f"{option} must be {what}, with {_named(methods)}; got {_shortened(value)}")


def _named(methods: tuple[str, ...]) -> str:
    return " and ".join(f"{name}()" for name in methods)

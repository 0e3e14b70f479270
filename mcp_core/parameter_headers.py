"""Tool parameters that are mirrored in HTTP headers: which ones a schema marks.

Knows JSON Schema as data; nothing of HTTP. Annotations are read in one place, for whatever
writes a schema and for the transport that checks the headers.
Spec: server/tools, "x-mcp-header"; R-HTTP-20, R-HTTP-21.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from mcp_core.codec import JSONObject, is_array, is_object

__all__ = ["HeaderParameters", "MAX_NAME", "InvalidHeaderAnnotation", "argument_at", "parameter_headers"]

HeaderParameters: TypeAlias = Mapping[tuple[str, ...], str]
"""The names that headers have for parameters, by the path to the parameter."""

MARK: Final = "x-mcp-header"
_KINDS: Final = ("integer", "string", "boolean")
_DATA: Final = ("default", "const", "enum", "examples")
"""Keywords whose values are data, not schemas."""
_SHOWN: Final = 100
"""Characters of what a server has written that an error shows."""

MAX_NAME: Final = 128
"""Characters that the name of a header may have."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class InvalidHeaderAnnotation(ValueError):
    """A mark where none may be, or with no header name; the text says which."""


def parameter_headers(input_schema: JSONObject) -> dict[tuple[str, ...], str]:
    """Return the header name of each marked parameter, by its path of property names.

    Linear in the size of the schema, at any depth.

    Raises:
        InvalidHeaderAnnotation: A mark breaks the rules. Clients leave such a tool out.
    """
    marked: dict[tuple[str, ...], str] = {}
    taken: set[str] = set()
    for path, shown in _annotated_properties(input_schema):
        name = _name(path, shown)
        if name.lower() in taken:
            raise InvalidHeaderAnnotation(f"property {_dotted(path)}: {MARK} {name!r} is taken by another property")
        taken.add(name.lower())
        marked[path] = name
    if _count_annotations(input_schema) != len(marked):
        raise InvalidHeaderAnnotation(
            f"{MARK} is only permitted on properties reached from the root through properties alone"
        )
    return marked


def argument_at(arguments: object, path: tuple[str, ...]) -> object:
    """Return the argument of a marked parameter; `None` where there is none."""
    for name in path:
        if not is_object(arguments):
            return None
        arguments = arguments.get(name)
    return arguments


def _name(path: tuple[str, ...], shown: JSONObject) -> str:
    name = shown[MARK]
    if not isinstance(name, str) or len(name) > MAX_NAME or not _TOKEN.fullmatch(name):
        raise InvalidHeaderAnnotation(f"property {_dotted(path)}: {MARK} must be a header name (got {_brief(name)})")
    if shown.get("type") not in _KINDS:
        kinds = "/".join(_KINDS)
        got = _brief(shown.get("type"))
        raise InvalidHeaderAnnotation(
            f"property {_dotted(path)}: {MARK} is only permitted on {kinds} properties (got {got})"
        )
    return name


def _brief(value: object) -> str:
    """Return a value that a server has made, short enough for a line of a log."""
    if isinstance(value, str):
        return repr(value) if len(value) <= _SHOWN else f"{value[:_SHOWN]!r}..."
    return repr(value) if value is None or isinstance(value, bool | int | float) else f"a JSON {type(value).__name__}"


def _dotted(path: tuple[str, ...]) -> str:
    return _brief(".".join(name[:_SHOWN] for name in path))


def _annotated_properties(schema: object) -> Iterator[tuple[tuple[str, ...], JSONObject]]:
    """Yield the marked properties that are reached through `properties` alone, in the order of the schema.

    Not recursive, and without a path for each property: the depth may be a server's choice.
    """
    trail: list[str] = []
    levels = [_properties_of(schema)]
    while levels:
        for name, shown in levels[-1]:
            if not is_object(shown):
                continue
            if MARK in shown:
                yield (*trail, name), shown
            trail.append(name)
            levels.append(_properties_of(shown))
            break
        else:
            levels.pop()
            if trail:
                trail.pop()


def _properties_of(schema: object) -> Iterator[tuple[str, object]]:
    properties = schema.get("properties") if is_object(schema) else None
    return iter(properties.items() if is_object(properties) else ())


def _count_annotations(schema: object) -> int:
    """Return how many objects that may be schemas have a mark; properties named like the mark are not counted."""
    count = 0
    waiting: list[object] = [schema]
    while waiting:
        node = waiting.pop()
        if is_array(node):
            waiting.extend(node)
        elif is_object(node):
            count += MARK in node
            for key, value in node.items():
                if key == "properties" and is_object(value):
                    waiting.extend(value.values())
                elif key not in _DATA:
                    waiting.append(value)
    return count

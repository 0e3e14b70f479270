"""Tool parameters that are mirrored in HTTP headers: which ones a schema marks.

Knows JSON Schema as data; nothing of HTTP. Marks are read in one place, for whoever
writes a schema and for the transport that checks the headers.
Spec: server/tools, "x-mcp-header"; R-HTTP-20, R-HTTP-21.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from mcp_core.codec import is_array, is_object

__all__ = ["InvalidMark", "argument_at", "parameter_headers"]

MARK: Final = "x-mcp-header"
_KINDS: Final = ("integer", "string", "boolean")
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class InvalidMark(ValueError):
    """A mark where none may be, or with no header name; the text says which."""


def parameter_headers(input_schema: dict[str, Any]) -> dict[tuple[str, ...], str]:
    """The header name of each marked parameter, by its path of property names.

    Raises:
        InvalidMark: A mark breaks the rules. Clients leave such a tool out.
    """
    marked: dict[tuple[str, ...], str] = {}
    reached: list[dict[str, Any]] = []
    for path, shown in _properties(input_schema, ()):
        reached.append(shown)
        if MARK in shown:
            marked[path] = _name(".".join(path), shown, marked)
    if sum(1 for node in _nodes(input_schema) if MARK in node) != sum(1 for node in reached if MARK in node):
        raise InvalidMark(f"{MARK} is only permitted on properties reached from the root through properties alone")
    return marked


def argument_at(arguments: Any, path: tuple[str, ...]) -> Any:
    """The argument of a marked parameter; `None` where there is none."""
    for name in path:
        if not is_object(arguments):
            return None
        arguments = arguments.get(name)
    return arguments


def _name(path: str, shown: dict[str, Any], taken: dict[tuple[str, ...], str]) -> str:
    name = shown[MARK]
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise InvalidMark(f"property {path!r}: {MARK} must be a header name (got {name!r})")
    if shown.get("type") not in _KINDS:
        kinds = "/".join(_KINDS)
        raise InvalidMark(
            f"property {path!r}: {MARK} is only permitted on {kinds} properties (got {shown.get('type')!r})"
        )
    if name.lower() in map(str.lower, taken.values()):
        raise InvalidMark(f"property {path!r}: {MARK} {name!r} is taken by another property")
    return name


def _properties(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    properties = schema.get("properties") if is_object(schema) else None
    if not is_object(properties):
        return
    for name, shown in properties.items():
        if is_object(shown):
            yield (*path, name), shown
            yield from _properties(shown, (*path, name))


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object in the schema that may be a schema itself; properties named like the mark are not."""
    if is_array(schema):
        for item in schema:
            yield from _nodes(item)
    elif is_object(schema):
        yield schema
        for key, value in schema.items():
            if key == "properties" and is_object(value):
                for shown in value.values():
                    yield from _nodes(shown)
            elif key not in ("default", "const", "enum", "examples"):
                yield from _nodes(value)

"""JSON Schema as data: references put in place of what they name, and what a schema admits.

Knows JSON values and the keywords of JSON Schema 2020-12 that pydantic writes; nothing of pydantic, of Python types or
of tools.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final, TypeAlias, cast

from mcp_core.codec import is_array, is_object

__all__ = ["JSONSchema", "admits_string", "drop_impossible_names", "fits", "inlined", "rooted"]

JSONSchema: TypeAlias = dict[str, Any]
"""A schema that is an object; its subschemas may be booleans as well."""

_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "dependentSchemas"})
"""Members of a schema that hold schemas by names, which may be any."""

_DATA: Final = frozenset({"default", "const", "enum", "examples", "discriminator"})
"""Members that hold values, whatever these look like."""


def _subschemas(node: JSONSchema) -> Iterator[JSONSchema]:
    """Yield the schemas directly in a schema."""
    for key, value in node.items():
        if key in _DATA:
            continue
        if is_object(value):
            yield from (item for item in value.values() if is_object(item)) if key in _NAMED else (value,)
        elif is_array(value):
            yield from (item for item in value if is_object(item))


def drop_impossible_names(node: JSONSchema, definitions: JSONSchema) -> None:
    """Keys of objects are strings in JSON, whatever they are in Python: no rule may say otherwise."""
    names = node.get("propertyNames")
    if names is not None and not admits_string(names, definitions):
        del node["propertyNames"]
    for inner in _subschemas(node):
        drop_impossible_names(inner, definitions)


def rooted(schema: JSONSchema) -> JSONSchema:
    """Return a schema that is only a reference, with what it refers to in its place."""
    reference = schema.get("$ref")
    if reference is None:
        return schema
    definitions: JSONSchema = schema["$defs"]
    root = definitions[reference.removeprefix("#/$defs/")]
    merged = {**root, **{key: value for key, value in schema.items() if key not in ("$ref", "$defs")}}
    if reference not in {used for item in definitions.values() for used in _references(item)}:
        definitions = {name: item for name, item in definitions.items() if item is not root}
    return {**merged, "$defs": definitions} if definitions else merged


def _references(node: JSONSchema) -> Iterator[str]:
    if isinstance(node.get("$ref"), str):
        yield node["$ref"]
    for inner in _subschemas(node):
        yield from _references(inner)


def inlined(schema: JSONSchema) -> JSONSchema:
    """Return the schema with each `$ref` replaced by what it refers to (P-21).

    Definitions that contain themselves stay, with the references to them.
    """
    definitions: JSONSchema = schema.get("$defs", {})
    kept = {name for name in definitions if _reaches(definitions, name, name)}
    shown = _inline({key: value for key, value in schema.items() if key != "$defs"}, definitions, kept)
    if kept:
        shown["$defs"] = {name: _inline(definitions[name], definitions, kept) for name in definitions if name in kept}
    return cast("JSONSchema", shown)


_PREFIX: Final = "#/$defs/"


def _inline(node: object, definitions: JSONSchema, kept: set[str]) -> Any:
    if is_array(node):
        return [_inline(item, definitions, kept) for item in node]
    if not is_object(node):
        return node
    members = {
        key: value
        if key in _DATA
        else {name: _inline(item, definitions, kept) for name, item in value.items()}
        if key in _NAMED and is_object(value)
        else _inline(value, definitions, kept)
        for key, value in node.items()
    }
    discriminator = members.get("discriminator")
    if is_object(discriminator):  # what it maps to are references too; the name alone says enough
        members["discriminator"] = {key: value for key, value in discriminator.items() if key != "mapping"}
    reference = members.pop("$ref", None)
    if not isinstance(reference, str):
        return members
    name = reference.removeprefix(_PREFIX)
    if name in kept or name not in definitions:
        return {"$ref": reference, **members}
    return {**_inline(definitions[name], definitions, kept), **members}


def _reaches(definitions: JSONSchema, start: str, goal: str) -> bool:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for reference in _references(definitions[waiting.pop()]):
            name = reference.removeprefix(_PREFIX)
            if name == goal:
                return True
            if name in definitions and name not in seen:
                seen.add(name)
                waiting.append(name)
    return False


def admits_string(node: object, definitions: JSONSchema) -> bool:
    """Return whether a schema lets some string through."""
    if not is_object(node):
        return node is not False
    if "$ref" in node and not admits_string(definitions.get(node["$ref"].removeprefix(_PREFIX), {}), definitions):
        return False
    for arms in ("anyOf", "oneOf"):
        if arms in node and not any(admits_string(arm, definitions) for arm in node[arms]):
            return False
    values = [node["const"]] if "const" in node else node.get("enum")
    if values is not None:
        return any(isinstance(value, str) for value in values)
    kinds = node.get("type", "string")
    return kinds == "string" or (is_array(kinds) and "string" in kinds)


_KINDS: Final[dict[type[Any], tuple[str, ...]]] = {
    str: ("string",),
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    type(None): ("null",),
    list: ("array",),
    dict: ("object",),
}


def fits(node: object, value: Any, definitions: JSONSchema) -> bool:
    """Return whether a plain JSON value is of the kinds that a schema lets through, at every depth.

    No full validation: bounds, patterns and counts are left to pydantic.
    """
    if not is_object(node):
        return node is not False
    if "$ref" in node and not fits(definitions.get(node["$ref"].removeprefix(_PREFIX), {}), value, definitions):
        return False
    for arms in ("anyOf", "oneOf"):
        if arms in node and not any(fits(arm, value, definitions) for arm in node[arms]):
            return False
    if value not in node.get("enum", [value]) or value != node.get("const", value):
        return False
    kinds = node.get("type", _KINDS[type(value)])
    if set(_KINDS[type(value)]).isdisjoint([kinds] if isinstance(kinds, str) else kinds):
        return False
    if is_array(value):
        first: list[object] = node.get("prefixItems", [])
        rest: object = node.get("items", {})
        nodes = itertools.chain(first, itertools.repeat(rest))
        return all(fits(inner, item, definitions) for inner, item in zip(nodes, value, strict=False))
    if is_object(value):
        known: JSONSchema = node.get("properties", {})
        patterns: JSONSchema = node.get("patternProperties", {})
        rest = {"anyOf": list(patterns.values())} if patterns else node.get("additionalProperties", True)
        return all(fits(known.get(key, rest), item, definitions) for key, item in value.items())
    return True

"""What a reader of a tool's schema would trip over.

Looks at tools that work; what cannot work is refused when it is registered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from mcp_core import codec
from mcp_core.codec import JSONObject, is_object
from mcp_typed.signature import MISSING
from mcp_typed.tools import NAME, FunctionTool

__all__ = ["Finding", "findings"]

LARGE: Final = 8_192
"""Bytes of schema above which a tool is worth a look: a model reads them at every turn."""


class Finding(msgspec.Struct, frozen=True):
    """One thing to look at. `code` is stable; `text` says what to do."""

    tool: str
    code: str
    text: str

    def __str__(self) -> str:
        return f"{self.tool}: {self.text} [{self.code}]"


def findings(tool: FunctionTool) -> Iterator[Finding]:
    """Yield what is worth a look about one tool."""

    def found(code: str, text: str) -> Finding:
        return Finding(tool.name, code, text)

    listed, plan = tool.listed, tool.plan
    if not NAME.fullmatch(tool.name):
        yield found("name", "some clients refuse names that are not 1 to 128 letters, digits, '_', '-' or '.'")
    if not listed.description:
        yield found("no-description", "no description: write a docstring, or pass description=")
    if plan.returns is MISSING:
        yield found("no-return-annotation", "no return annotation: the result has text only")
    elif listed.output_schema is None and tool.falls_back_to_text:
        yield found(
            "unstructured-return",
            f"{plan.returns!r} has no schema: the result has text only, its str() at worst; annotate "
            "another type, or say structured_output=False",
        )
    properties: JSONObject = listed.input_schema["properties"]
    for parameter, shown in zip(plan.parameters, properties.items(), strict=True):
        name, schema = shown
        if parameter.annotation is MISSING:
            yield found("untyped-parameter", f"parameter {name!r} has no annotation: any value is let through")
        if "description" not in _resolved(schema, listed.input_schema):
            yield found("undescribed-parameter", f"parameter {name!r} has no description")
        if _has_default(parameter.default) and "default" not in schema:
            yield found("unshown-default", f"the default of {name!r} does not fit its type, or JSON; it is not shown")
    size = len(codec.encode(listed.input_schema)) + len(codec.encode(listed.output_schema))
    if size > LARGE:
        yield found("large-schema", f"its schemas take {size:,} bytes (more than {LARGE:,})")


def _resolved(schema: object, root: JSONObject) -> JSONObject:
    """Return a schema with what it refers to, as far as descriptions go."""
    seen: JSONObject = {}
    arms: list[object] = schema.get("anyOf", []) if is_object(schema) else []
    for node in (schema, *arms):
        if not is_object(node):
            continue
        reference = node.get("$ref")
        if isinstance(reference, str):
            seen.update(root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {}))
        seen.update(node)
    return seen


def _has_default(default: object) -> bool:
    """Return whether there is a default that could be shown."""
    if isinstance(default, FieldInfo):
        return default.default_factory is None and default.default is not PydanticUndefined
    return default is not MISSING

"""Return values: their schema, and the way from a value to both channels of a result.

The value is validated and serialized once; the text and the structured data are made
from the same bytes, so they cannot disagree (P-05).
"""

from __future__ import annotations

from types import NoneType
from typing import Any, Final

import msgspec
import pydantic_core
from msgspec import Raw
from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from mcp_core.types import CallToolResult, ContentBlock, TextContent, text_block
from mcp_typed.errors import InvalidSignature
from mcp_typed.signature import MISSING, Plan

__all__ = ["Returns"]


class Returns:
    """What one tool returns. `schema` is `None` where nothing structured is promised."""

    def __init__(self, plan: Plan) -> None:
        self.schema: dict[str, Any] | None = None
        self._adapter: TypeAdapter[Any] | None = None
        self._wrapped = False
        returns = NoneType if plan.returns is None else plan.returns
        if returns is MISSING or returns is Any or returns is CallToolResult:
            return
        try:
            self._adapter = TypeAdapter(returns)
            schema = self._adapter.json_schema(mode="serialization", by_alias=True)
        except Exception as exc:
            raise InvalidSignature(f"tool {plan.name!r}: its return annotation has no JSON schema: {exc}") from exc
        self._wrapped = schema.get("type") != "object"
        self.schema = _wrapped(schema, f"{plan.name}Output") if self._wrapped else schema

    def result(self, value: Any) -> CallToolResult:
        """The result of a call that returned this value.

        Raises:
            ValidationError: It is not what the annotation says.
        """
        if isinstance(value, CallToolResult):
            return value
        if self._adapter is None:
            return CallToolResult(content=[TextContent(text=_plain_text(value))])
        validated = self._adapter.validator.validate_python(value)
        data = _serialized(self._adapter, validated)
        structured = b'{"result":%b}' % data if self._wrapped else data
        return CallToolResult(content=_blocks(data), structured_content=Raw(structured))


def _wrapped(schema: dict[str, Any], title: str) -> dict[str, Any]:
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    wrapped: dict[str, Any] = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {
        **wrapped,
        "properties": {"result": {"title": "Result", **inner}},
        "required": ["result"],
        "title": title,
        "type": "object",
    }


_SCALARS: Final = frozenset({str, int, float, bool, NoneType})


def _serialized(adapter: TypeAdapter[Any], value: Any) -> bytes:
    """The value as JSON.

    A model may have been made without validation. The serializer notices; the validator
    says what is wrong, by its field.
    """
    if type(value) in _SCALARS:  # nothing in it to notice, and noticing costs a microsecond
        return adapter.serializer.to_json(value, by_alias=True)
    try:
        return adapter.serializer.to_json(value, by_alias=True, warnings="error")
    except PydanticSerializationError:
        data = adapter.serializer.to_json(value, by_alias=True, warnings=False)
        adapter.validator.validate_json(data)
        return data


def _blocks(data: bytes) -> list[ContentBlock]:
    """One text block, or one for each element of an array that is not empty (P-06)."""
    if data[:1] == b"[" and data != b"[]":
        return [text_block(_text(bytes(element))) for element in _array.decode(data)]
    return [text_block(_text(data))]


_array = msgspec.json.Decoder(list[Raw])
_string = msgspec.json.Decoder(str)


def _text(data: bytes) -> str:
    """JSON as a model reads it: strings without quotes, containers indented."""
    if data[:1] == b'"':
        return _string.decode(data)
    if data[:1] in (b"{", b"["):
        return msgspec.json.format(data, indent=2).decode()
    return data.decode()


def _plain_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return pydantic_core.to_json(value, indent=2, fallback=repr).decode()

"""Results as they come from a server, made into types.

Reads leniently where the specification asks for it: a missing `resultType` means
complete, blocks of unknown kinds are kept as they are.
Spec: basic, "ResultType".
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from mcp_core import codec
from mcp_core import types as t
from mcp_core.errors import InvalidResult
from mcp_core.types.tools import read_structured_null

__all__ = ["read_result"]

_KINDS = ("text", "image", "audio", "resource_link", "resource", "tool_use", "tool_result")


class _Probe(msgspec.Struct, rename="camel"):
    result_type: str = "complete"


def read_result(raw: Raw, kind: Any, method: str) -> Any:
    """The result of a method, or the `InputRequiredResult` in its place.

    Raises:
        InvalidResult: It is neither, or of a `resultType` that nobody announced.
    """
    try:
        result = codec.decoder(kind)(raw)
    except (codec.Misfit, codec.Undecodable) as exc:
        return _second_reading(raw, kind, method, exc)
    if isinstance(result, t.CallToolResult):
        read_structured_null(result, raw)
    result_type = getattr(result, "result_type", "complete")
    if result_type != "complete":
        return _second_reading(raw, kind, method, InvalidResult(f"unknown resultType {result_type!r}"))
    return result


def _second_reading(raw: Raw, kind: Any, method: str, fault: Exception) -> Any:
    try:
        result_type = codec.decoder(_Probe)(raw).result_type
        if result_type == "input_required":
            return codec.decoder(t.InputRequiredResult)(raw)
        if result_type == "complete":
            result = _with_unknown_blocks(codec.decode_any(raw), kind)
            return read_structured_null(result, raw) if isinstance(result, t.CallToolResult) else result
    except (codec.Misfit, codec.Undecodable, TypeError, KeyError, AttributeError) as exc:
        fault = exc
    raise InvalidResult(f"the server answered {method} with no {getattr(kind, '__name__', kind)}: {fault}")


def _with_unknown_blocks(data: dict[str, Any], kind: Any) -> Any:
    """Convert a result around the blocks whose kind is unknown, and put them back."""
    content = data.get("content")
    if codec.is_array(content):
        known, unknown = _apart(content)
        result = codec.convert({**data, "content": known}, kind)
        _put_back(result.content, unknown)
        return result
    messages = data.get("messages")
    if codec.is_array(messages):
        return _prompt(data, messages, kind)
    return codec.convert(data, kind)


def _apart(blocks: list[Any]) -> tuple[list[Any], list[tuple[int, t.UnknownContent]]]:
    unknown = [
        (index, t.UnknownContent(block)) for index, block in enumerate(blocks) if block.get("type") not in _KINDS
    ]
    positions = {index for index, _ in unknown}
    return [block for index, block in enumerate(blocks) if index not in positions], unknown


def _put_back(blocks: list[Any], unknown: list[tuple[int, t.UnknownContent]]) -> None:
    for index, block in unknown:
        blocks.insert(index, block)


def _prompt(data: dict[str, Any], messages: list[dict[str, Any]], kind: Any) -> Any:
    stand_in = {"type": "text", "text": ""}
    unknown = {
        index: t.UnknownContent(message["content"])
        for index, message in enumerate(messages)
        if message["content"].get("type") not in _KINDS
    }
    shown = [{**m, "content": stand_in} if i in unknown else m for i, m in enumerate(messages)]
    result = codec.convert({**data, "messages": shown}, kind)
    for index, block in unknown.items():
        result.messages[index].content = block
    return result

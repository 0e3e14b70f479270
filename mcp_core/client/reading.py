"""Results as they come from a server, made into types.

Reads leniently where the specification asks for it: a missing `resultType` means
complete, blocks of unknown kinds are kept as they are. And where a fault is about less
than the result: cache hints that are none count as absent, an entry of a list that cannot
be read is left out of it. Only a result that does not fit is looked at twice.
Spec: basic, "ResultType".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Raw

from mcp_core import codec
from mcp_core import types as t
from mcp_core.codec import JSONObject
from mcp_core.errors import InvalidResult
from mcp_core.methods import METHODS
from mcp_core.queue_logger import QueueLogger
from mcp_core.types.tools import read_structured_null

__all__ = ["read_result"]

_log = QueueLogger(__name__)

_KINDS = ("text", "image", "audio", "resource_link", "resource", "tool_use", "tool_result")


_HINTS: Final[dict[str, Callable[[Any], bool]]] = {
    "ttlMs": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "cacheScope": lambda value: value in ("public", "private"),
}
"""The cache hints, each with what it may be."""

_LISTED: Final = {
    "tools/list": ("tools", t.Tool),
    "prompts/list": ("prompts", t.Prompt),
    "resources/list": ("resources", t.Resource),
    "resources/templates/list": ("resourceTemplates", t.ResourceTemplate),
}


class _Probe(msgspec.Struct, rename="camel"):
    result_type: str = "complete"


def read_result(raw: Raw, kind: object, method: str) -> object:
    """Return the result of a method, or the `InputRequiredResult` in its place.

    Raises:
        InvalidResult: It is neither, or of an unknown `resultType`.
    """
    try:
        result = codec.decoder(kind)(raw)
    except (codec.ValidationError, codec.DecodeError) as exc:
        return _second_reading(raw, kind, method, exc)
    if isinstance(result, t.CallToolResult):
        read_structured_null(result, raw)
    result_type = getattr(result, "result_type", "complete")
    if result_type != "complete":
        return _second_reading(raw, kind, method, InvalidResult(f"unknown resultType {result_type!r}"))
    return result


def _second_reading(raw: Raw, kind: object, method: str, fault: Exception) -> object:
    try:
        result_type = codec.decoder(_Probe)(raw).result_type
        row = METHODS.get(method)
        if result_type == "input_required" and (row is None or row.may_ask):
            return codec.decoder(t.InputRequiredResult)(raw)
        if result_type == "complete":
            result = _with_unknown_blocks(_mended(codec.decode_any(raw), method), kind)
            return read_structured_null(result, raw) if isinstance(result, t.CallToolResult) else result
    except (ValueError, OverflowError, TypeError, KeyError, AttributeError) as exc:
        fault = exc
    raise InvalidResult(f"the server answered {method} with no {getattr(kind, '__name__', kind)}: {fault}")


def _mended(data: JSONObject, method: str) -> JSONObject:
    """Return a result without those of its faults that it can be read in spite of."""
    data = {name: value for name, value in data.items() if name not in _HINTS or _HINTS[name](value)}
    if "ttlMs" in data:
        data["ttlMs"] = int(data["ttlMs"])
    if data.get("isError", False) is None:
        del data["isError"]  # null is not a boolean, and says nothing
    listed = _LISTED.get(method)
    if listed is not None and codec.is_array(data.get(listed[0])):
        data[listed[0]] = _readable(data[listed[0]], listed[1], method)
    return data


def _readable(entries: list[object], kind: object, method: str) -> list[object]:
    """Return the entries of a list that can be read; a tool is so without hints that are none."""
    kept: list[object] = []
    for entry in entries:
        if _fits(entry, kind):
            kept.append(entry)
        elif codec.is_object(entry) and _fits(plain := _without_hints(entry), kind):
            kept.append(plain)
    if not kept:
        return entries  # a list of which nothing can be read is none
    if len(kept) < len(entries):
        # One record for them all: how many there are is the server's choice.
        _log.warning("%d entries of the answer to %s are left out: they are none", len(entries) - len(kept), method)
    return kept


def _without_hints(entry: JSONObject) -> JSONObject:
    return {name: value for name, value in entry.items() if name != "annotations"}


def _fits(entry: Any, kind: Any) -> bool:
    try:
        codec.convert(entry, kind)
    except codec.ValidationError:
        return False
    return True


def _with_unknown_blocks(data: JSONObject, kind: Any) -> Any:
    """Convert a result around the blocks whose kind is unknown, and put them back."""
    content = data.get("content")
    if codec.is_array(content):
        is_known = [block.get("type") in _KINDS for block in content]
        known = [block for block, known in zip(content, is_known, strict=True) if known]
        result = codec.convert({**data, "content": known}, kind)
        # In one pass: an insertion for each would move all that follow, and the server chooses their number.
        read = iter(result.content)
        result.content = [
            next(read) if known else t.UnknownContent(block) for block, known in zip(content, is_known, strict=True)
        ]
        return result
    messages = data.get("messages")
    if codec.is_array(messages):
        return _prompt(data, messages, kind)
    return codec.convert(data, kind)


def _prompt(data: JSONObject, messages: list[JSONObject], kind: Any) -> Any:
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

"""What a peer of an older revision is sent instead of what the author wrote.

Handlers always speak the newest revision. This module holds, as data, which member
of which type exists since (or only until) which revision, and the few rules that
replace a value instead of leaving it out. A value that the revision knows whole is
passed on untouched; only one that it does not is taken apart.
Spec: the schemas of each revision; the mapping is that of `docs/architecture.md`.
"""

from __future__ import annotations

import binascii
from functools import lru_cache
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from msgspec import Raw, Struct

from mcp_core import codec
from mcp_core import types as t
from mcp_core.codec import JSONObject
from mcp_core.errors import (
    RESOURCE_NOT_FOUND,
    URL_ELICITATION_REQUIRED,
    InternalError,
    InvalidParams,
    MCPError,
    MissingClientCapability,
    ResourceNotFound,
)
from mcp_core.revisions import (
    ALL_REVISIONS,
    HANDSHAKE_REVISIONS,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
    is_modern,
)

__all__ = [
    "FIELD_REVISIONS",
    "DowngradePlan",
    "knows",
    "plan_of",
    "project",
    "project_error",
    "project_json",
    "project_members",
]

# Theory of operation
#
# One class per shape, that of the newest revision, and a table of what other revisions lack:
#
#     FIELD_REVISIONS   which member exists in which revisions
#     _ruled            types for which leaving a member out is not enough (a block of a kind that does not exist yet,
#                       structured content that is not an object)
#
# From both `_plan` derives, once per class and revision, a `DowngradePlan`: members to drop, members with plans of
# their own below them, and whether there is a rule. Most plans are empty, and then values go out untouched.
#
#     apply(value)
#       touches(value)?  no   the value itself: it is encoded as it is, without a copy
#                        yes  to_json(value), then `_Projector` walks the JSON along the types and prunes it
#
# `touches` looks before anything is taken apart: at the dropped members by identity with their default object (as
# msgspec does when it encodes), at nested values recursively. Most results of new servers to old clients hold nothing
# that the client's revision lacks, and cost a few comparisons.
#
# Invariants. A projected value validates against the published schema of its revision (tests/types/test_schema.py
# holds the tables against the schemas, tests/types/test_projection.py the values). Projecting is idempotent, and never
# adds what the author did not write, but for the text that stands in for a dropped block or for structured content.

_Revisions = tuple[str, ...]


def _since(revision: str) -> _Revisions:
    return tuple(r for r in ALL_REVISIONS if r >= revision)


_FROM_2025_03_26, _FROM_2025_06_18, _FROM_2025_11_25, _FROM_2026_07_28 = (
    _since(r) for r in (V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28)
)
_ONLY_2025_11_25: Final = (V2025_11_25,)
_TITLED: Final = {"title": _FROM_2025_06_18, "icons": _FROM_2025_11_25, "_meta": _FROM_2025_06_18}
_BLOCK: Final = {"_meta": _FROM_2025_06_18}

FIELD_REVISIONS: Final[dict[type[Struct], dict[str, _Revisions]]] = {
    t.Result: {"result_type": _FROM_2026_07_28},
    t.GetTaskResult: {"result_type": _FROM_2026_07_28},
    t.CacheableResult: {"ttl_ms": _FROM_2026_07_28, "cache_scope": _FROM_2026_07_28},
    t.Implementation: {
        "title": _FROM_2025_06_18,
        "description": _FROM_2025_11_25,
        "website_url": _FROM_2025_11_25,
        "icons": _FROM_2025_11_25,
    },
    t.Annotations: {"last_modified": _FROM_2025_06_18},
    t.TextContent: _BLOCK,
    t.ImageContent: _BLOCK,
    t.EmbeddedResource: _BLOCK,
    t.AudioContent: _BLOCK,
    t.ResourceContents: _BLOCK,
    t.ResourceLink: {"icons": _FROM_2025_11_25},
    t.Tool: {
        **_TITLED,
        "annotations": _FROM_2025_03_26,
        "output_schema": _FROM_2025_06_18,
        "execution": _ONLY_2025_11_25,
    },
    t.CallToolResult: {"structured_content": _FROM_2025_06_18},
    t.Resource: _TITLED,
    t.ResourceTemplate: _TITLED,
    t.Prompt: _TITLED,
    t.PromptArgument: {"title": _FROM_2025_06_18},
    t.PromptReference: {"title": _FROM_2025_06_18},
    t.Root: {"_meta": _FROM_2025_06_18},
    t.CompleteRequestParams: {"context": _FROM_2025_06_18},
    t.ProgressNotificationParams: {"message": _FROM_2025_03_26},
    t.ServerCapabilities: {"completions": _FROM_2025_03_26, "tasks": _ONLY_2025_11_25, "extensions": _FROM_2026_07_28},
    t.ClientCapabilities: {"elicitation": _FROM_2025_06_18, "tasks": _ONLY_2025_11_25, "extensions": _FROM_2026_07_28},
    t.RootsCapability: {"list_changed": HANDSHAKE_REVISIONS},
    t.SamplingCapability: {"context": _FROM_2025_11_25, "tools": _FROM_2025_11_25},
    t.ElicitationCapability: {"form": _FROM_2025_11_25, "url": _FROM_2025_11_25},
    t.SamplingMessage: {"_meta": _FROM_2025_11_25},
    t.CreateMessageRequestParams: {
        "tools": _FROM_2025_11_25,
        "tool_choice": _FROM_2025_11_25,
        "task": _ONLY_2025_11_25,
    },
    t.CallToolRequestParams: {
        "task": _ONLY_2025_11_25,
        "input_responses": _FROM_2026_07_28,
        "request_state": _FROM_2026_07_28,
    },
    t.GetPromptRequestParams: {"input_responses": _FROM_2026_07_28, "request_state": _FROM_2026_07_28},
    t.ReadResourceRequestParams: {"input_responses": _FROM_2026_07_28, "request_state": _FROM_2026_07_28},
    t.ElicitRequestFormParams: {"mode": _FROM_2025_11_25, "task": _ONLY_2025_11_25},
    t.ElicitRequestURLParams: {"elicitation_id": _ONLY_2025_11_25, "task": _ONLY_2025_11_25},
}
"""The members that not every revision has, per type; a subclass has those of its bases.

The revisions are those in which the type itself exists and has the member.
"""

_BLOCKS: Final = (t.AudioContent, t.ResourceLink)
"""Blocks that are replaced where their kind does not exist yet."""


def knows(kind: type[Struct], field: str, revision: str) -> bool:
    """Return whether this member of the type exists in the revision."""
    for base in kind.__mro__:
        revisions = FIELD_REVISIONS.get(base, {}).get(field)
        if revisions is not None:
            return revision in revisions
    return True


def project(value: object, revision: str) -> object:
    """Return the value as a peer of this revision may be sent it.

    Returns `value` itself where nothing has to change, else its JSON form, changed.
    """
    return _plan(codec.type_of(value), revision).apply(value)


def plan_of(kind: type[Struct], revision: str) -> DowngradePlan | None:
    """Return how values of this type are shown to a peer of this revision; `None` if they may go out as they are."""
    plan = _plan(kind, revision)
    return plan if plan.lossy else None


def project_json(data: JSONObject, kind: type[Struct], revision: str) -> JSONObject:
    """Return the JSON form of a value of this type, as a peer of this revision may be sent it."""
    return _Projector(revision).struct(data, kind) if _plan(kind, revision).lossy else data


def project_members(members: dict[str, Raw], kind: type[Struct], revision: str) -> JSONObject:
    """Return the members of an encoded value of this type, as a peer of this revision may be sent it.

    Decodes those only that have to be looked into. Raises what decoding raises.
    """
    plan = _plan(kind, revision)
    if not plan.lossy:
        return dict(members)
    wire = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    opened = {wire[name]: codec.decode_any(members[wire[name]]) for name in plan.nested if wire[name] in members}
    return _Projector(revision).struct({**members, **opened}, kind)


class DowngradePlan:
    """What has to be looked at in values of one type, for one revision.

    `dropped` are the members to leave out, with their default objects; `nested` those
    whose values have plans of their own; `ruled` says that the type has a rule. Without
    any of them the plan is not `lossy`.
    """

    __slots__ = ("dropped", "lossy", "nested", "revision", "ruled")

    def __init__(self, revision: str, dropped: JSONObject, nested: list[str], *, ruled: bool) -> None:
        self.revision: str = revision
        self.dropped: tuple[tuple[str, object], ...] = tuple(dropped.items())
        self.nested: tuple[str, ...] = tuple(nested)
        self.ruled: bool = ruled
        self.lossy: bool = bool(dropped or nested or ruled)

    def apply(self, value: object) -> object:
        """Return a value of the type, itself where nothing has to change, else its JSON form, changed."""
        if not self.lossy or not self.touches(value):
            return value
        return _Projector(self.revision).struct(codec.to_json(value), codec.type_of(value))

    def touches(self, value: Any) -> bool:
        """Return whether anything in the value is unknown to the revision."""
        if self.ruled and _breaks_rule(value, self.revision):
            return True
        for name, default in self.dropped:
            if getattr(value, name) is not default:
                return True
        return bool(self.nested) and any(_touched(getattr(value, name), self.revision) for name in self.nested)


@lru_cache(maxsize=1024)
def _plan(kind: type[Any], revision: str) -> DowngradePlan:
    if not issubclass(kind, Struct):
        return DowngradePlan(revision, {}, [], ruled=False)
    return _make_plan(kind, revision, frozenset())


def _make_plan(kind: type[Struct], revision: str, above: frozenset[type]) -> DowngradePlan:
    dropped: JSONObject = {}
    nested: list[str] = []
    defaults = codec.field_defaults(kind)
    for name, hint in _hints(kind).items():
        if not knows(kind, name, revision):
            dropped[name] = defaults.get(name)
            continue
        below = [s for s in _structs(hint) if s not in above]
        if any(_make_plan(s, revision, above | {kind}).lossy for s in below):
            nested.append(name)
    return DowngradePlan(revision, dropped, nested, ruled=_ruled(kind, revision))


def _ruled(kind: type[Struct], revision: str) -> bool:
    if kind is t.CallToolResult or kind is t.Tool:
        return not is_modern(revision)
    if kind is t.SamplingMessage:
        return revision < V2025_11_25
    if kind is t.AudioContent:
        return revision < V2025_03_26
    if kind is t.ResourceLink:
        return revision < V2025_06_18
    return False


@lru_cache(maxsize=256)
def _hints(kind: type[Struct]) -> JSONObject:
    hints = get_type_hints(kind)
    return {name: hints[name] for name in kind.__struct_fields__ if name in hints}


def _structs(hint: Any) -> list[type[Struct]]:
    """Return the Structs that a value of this annotation may be or hold."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return [hint]
    if get_origin(hint) in (list, dict, Union, UnionType):
        return [s for argument in get_args(hint) for s in _structs(argument)]
    return []


def _touched(value: Any, revision: str) -> bool:
    if isinstance(value, Struct):
        return _plan(type(value), revision).touches(value)
    if codec.is_array(value):
        return any(_touched(item, revision) for item in value)
    if codec.is_object(value):
        return any(_touched(item, revision) for item in value.values())
    return False


def _breaks_rule(value: Struct, revision: str) -> bool:
    if isinstance(value, t.CallToolResult):
        structured = value.structured_content
        return structured is not None and type(structured) is not dict and not _is_object(structured)
    if isinstance(value, t.Tool):
        schema = value.output_schema
        return schema is not None and schema.get("type") != "object"
    if isinstance(value, t.SamplingMessage):
        return isinstance(value.content, list)
    return isinstance(value, _BLOCKS)


def _is_object(value: object) -> bool:
    if isinstance(value, Raw):
        return bytes(value).lstrip()[:1] == b"{"
    return isinstance(value, dict | Struct) or not isinstance(value, list | tuple | str | int | float | bool)


def _is_json_object(value: object) -> bool:
    """Return whether a value in JSON form, or still encoded, is an object."""
    return bytes(value).lstrip()[:1] == b"{" if isinstance(value, Raw) else isinstance(value, dict)


class _Projector:
    """Takes the JSON form of a typed value apart."""

    def __init__(self, revision: str) -> None:
        self.revision = revision

    def struct(self, data: JSONObject, kind: type[Struct]) -> JSONObject:
        plan = _plan(kind, self.revision)
        wire = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
        kept = dict(data.items())
        for name, _ in plan.dropped:
            kept.pop(wire[name], None)
        for name in plan.nested:
            if wire[name] in kept:
                kept[wire[name]] = self._value(kept[wire[name]], _hints(kind)[name])
        if kind is t.CreateMessageRequestParams and self.revision < V2025_11_25:
            kept["messages"] = _single_blocks(kept["messages"])
        if kind is t.CallToolResult and plan.ruled and not _is_json_object(kept.get("structuredContent", {})):
            del kept["structuredContent"]
        if kind is t.Tool and plan.ruled and kept.get("outputSchema", {"type": "object"}).get("type") != "object":
            del kept["outputSchema"]
        return kept

    def _value(self, value: object, hint: object) -> object:
        kinds = _structs(hint)
        if codec.is_array(value):
            return [self._value(item, hint) for item in value]
        if not codec.is_object(value) or not kinds:
            return value
        kind = self._kind(value, kinds)
        if kind is None:
            return {k: self._value(v, hint) for k, v in value.items()} if get_origin(hint) is dict else value
        if issubclass(kind, _BLOCKS) and _ruled(kind, self.revision):
            return _stand_in(value, self.revision, embed=t.EmbeddedResource in kinds)
        return self.struct(value, kind)

    @staticmethod
    def _kind(data: JSONObject, kinds: list[type[Struct]]) -> type[Struct] | None:
        for kind in kinds:
            config = kind.__struct_config__
            if config.tag_field is None or data.get(config.tag_field) == config.tag:
                return kind
        return None


def _stand_in(block: JSONObject, revision: str, *, embed: bool) -> JSONObject:
    """Return what takes the place of a block that the revision lacks.

    `embed` says that a resource may stand there; a sampling message has none.
    """
    kept: JSONObject = {}
    if "annotations" in block:
        kept["annotations"] = _Projector(revision).struct(block["annotations"], t.Annotations)
    if block["type"] == "resource_link":
        return {"type": "text", "text": f"{block['name']}: {block['uri']}", **kept}
    if not embed:
        return {"type": "text", "text": f"[{block['mimeType']}]", **kept}
    digest = binascii.b2a_hex(block["data"][:24].encode()).decode()
    resource = {"uri": f"audio:{digest}", "mimeType": block["mimeType"], "blob": block["data"]}
    return {"type": "resource", "resource": resource, **kept}


def _single_blocks(messages: list[JSONObject]) -> list[JSONObject]:
    """Return the messages with one block each, as before 2025-11-25."""
    return [
        {**message, "content": block}
        for message in messages
        for block in (message["content"] if codec.is_array(message["content"]) else [message["content"]])
    ]


def project_error(error: MCPError, revision: str) -> MCPError:
    """Return the error under the code that this revision has for it.

    A missing resource has one code in either era; codes that 2026-07-28 forbids are
    replaced there (R-ERR-08).
    """
    if not is_modern(revision):
        if isinstance(error, ResourceNotFound):
            return MCPError(RESOURCE_NOT_FOUND, error.message, error.data)
        if isinstance(error, MissingClientCapability):
            return InvalidParams(error.message)
        if error.code == URL_ELICITATION_REQUIRED and revision != V2025_11_25:
            return InternalError(error.message)
        return error
    if error.code == RESOURCE_NOT_FOUND:
        return InvalidParams(error.message, error.data)
    if error.code == URL_ELICITATION_REQUIRED:
        return InternalError(error.message)
    return error

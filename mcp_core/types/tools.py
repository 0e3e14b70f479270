"""Tools: their descriptions, calls and results.

Spec: server/tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec import Raw

from mcp_core import codec
from mcp_core.codec import JSONObject
from mcp_core.types.base import Icon, MetaObject, PaginatedResult, RequestParams, Result, Wire
from mcp_core.types.content import ContentBlock
from mcp_core.types.input_required import InputResponses

__all__ = [
    "CallToolRequestParams",
    "CallToolResult",
    "ListToolsResult",
    "RawCallToolParams",
    "TaskMetadata",
    "Tool",
    "ToolAnnotations",
    "ToolExecution",
]

TaskSupport: TypeAlias = Literal["forbidden", "optional", "required"]


class ToolAnnotations(Wire, kw_only=True):
    """Hints on what a tool does. Absent means: may write, may destroy, may reach out."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class ToolExecution(Wire, kw_only=True):
    """How a tool may be run as a task; revision 2025-11-25 only."""

    task_support: TaskSupport | None = None


class Tool(MetaObject, kw_only=True):
    """A tool as it is listed. The schemas are JSON Schema and go out as they are.

    `input_schema` has the root `type: object`; `output_schema` may have any root from
    2026-07-28 on, and earlier clients get it only where its root is an object.
    """

    name: str
    input_schema: JSONObject
    title: str | None = None
    description: str | None = None
    output_schema: JSONObject | None = None
    annotations: ToolAnnotations | None = None
    icons: list[Icon] | None = None
    execution: ToolExecution | None = None


class ListToolsResult(PaginatedResult, kw_only=True):
    """One page of the tools, in a stable order."""

    tools: list[Tool]


class TaskMetadata(Wire, kw_only=True):
    """The wish to run a call as a task; revision 2025-11-25 only. `ttl` is in milliseconds."""

    ttl: int | None = None


class CallToolRequestParams(RequestParams, kw_only=True):
    """A tool call. `arguments` is `None` when absent or null."""

    name: str
    arguments: JSONObject | None = None
    task: TaskMetadata | None = None
    input_responses: InputResponses | None = None
    request_state: str | None = None


class RawCallToolParams(RequestParams, kw_only=True):
    """A tool call whose arguments are still the bytes that arrived.

    Register it with `add_request_handler("tools/call", RawCallToolParams, ...)` to
    validate arguments by other means than this package's. They are an object, `{}`
    when absent or null; `arguments` that are anything else never reach a handler.
    """

    name: str
    arguments: Raw = Raw(b"{}")
    input_responses: InputResponses | None = None
    request_state: str | None = None

    def __post_init__(self) -> None:
        head = memoryview(self.arguments)[0]
        if head != _BRACE:
            if bytes(self.arguments) != b"null":
                raise ValueError("arguments must be an object")
            self.arguments = _EMPTY


_BRACE = ord("{")
_EMPTY = Raw(b"{}")


class CallToolResult(Result, kw_only=True):
    """What a tool says. `is_error` marks a failure that the model should read.

    `structured_content` is `None` when absent and `NULL` for a JSON `null`; ready bytes
    (`msgspec.Raw`) are taken as they are. Nothing in `structured_content` or `_meta`
    is changed on its way, except that floats which JSON lacks become `null`.
    """

    content: list[ContentBlock]
    structured_content: Any = None
    if TYPE_CHECKING:
        is_error: bool = False
    else:
        # A default made by a factory is never left out: `isError` is always sent.
        is_error: bool = msgspec.field(default_factory=bool)


def read_structured_null(result: CallToolResult, data: bytes | Raw) -> CallToolResult:
    """Tell a JSON `null` in `structuredContent` from its absence, after decoding `data`."""
    if result.structured_content is None and b'"structuredContent"' in bytes(data):
        probe = codec.decoder(_StructuredProbe)(data)
        if probe.structured_content is not msgspec.UNSET:
            result.structured_content = Raw(b"null")
    return result


class _StructuredProbe(msgspec.Struct, rename="camel"):
    structured_content: Raw | msgspec.UnsetType = msgspec.UNSET

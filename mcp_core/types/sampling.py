"""Sampling: the server asks the client's model.

Spec: client/sampling (deprecated from 2026-07-28 on).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mcp_core.types.base import BlockMeta, JSONObject, MetaObject, RequestParams, Result, Role, Wire
from mcp_core.types.content import AudioContent, ContentBlock, ImageContent, TextContent, UnknownContent
from mcp_core.types.tools import TaskMetadata, Tool

if not TYPE_CHECKING:
    from typing import ClassVar

__all__ = [
    "CreateMessageRequestParams",
    "CreateMessageResult",
    "ModelHint",
    "ModelPreferences",
    "SamplingContent",
    "SamplingMessage",
    "ToolChoice",
    "ToolResultContent",
    "ToolUseContent",
]


class ToolUseContent(MetaObject, metaclass=BlockMeta, tag_field="type", tag="tool_use", kw_only=True):
    """The model wants a tool called."""

    if TYPE_CHECKING:
        type: Literal["tool_use"] = "tool_use"
    else:
        type: ClassVar[str] = "tool_use"

    id: str
    name: str
    input: JSONObject


class ToolResultContent(MetaObject, metaclass=BlockMeta, tag_field="type", tag="tool_result", kw_only=True):
    """What the called tool said."""

    if TYPE_CHECKING:
        type: Literal["tool_result"] = "tool_result"
    else:
        type: ClassVar[str] = "tool_result"

    tool_use_id: str
    content: list[ContentBlock]
    structured_content: Any = None
    is_error: bool | None = None


if TYPE_CHECKING:
    SamplingContent: TypeAlias = (
        TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent | UnknownContent
    )
else:
    SamplingContent = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent


class SamplingMessage(MetaObject, kw_only=True):
    """One message of the conversation; from 2025-11-25 on it may hold several blocks."""

    role: Role
    content: SamplingContent | list[SamplingContent]

    @property
    def content_as_list(self) -> list[SamplingContent]:
        """The blocks, be they one or several."""
        return self.content if isinstance(self.content, list) else [self.content]


class ModelHint(Wire, kw_only=True):
    """Part of a model's name."""

    name: str | None = None


class ModelPreferences(Wire, kw_only=True):
    """Which kind of model would do. Priorities run from 0 to 1."""

    hints: list[ModelHint] | None = None
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None


class ToolChoice(Wire, kw_only=True):
    """Whether the model may, must or must not use tools."""

    mode: Literal["auto", "required", "none"] | None = None


class CreateMessageRequestParams(RequestParams, kw_only=True):
    """The conversation to continue, and how."""

    messages: list[SamplingMessage]
    max_tokens: int
    model_preferences: ModelPreferences | None = None
    system_prompt: str | None = None
    include_context: Literal["none", "thisServer", "allServers"] | None = None
    temperature: float | None = None
    stop_sequences: list[str] | None = None
    metadata: JSONObject | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    task: TaskMetadata | None = None


class CreateMessageResult(Result, kw_only=True):
    """What the model said. `stop_reason` is open; known: `endTurn`, `stopSequence`,
    `maxTokens`, `toolUse`.
    """

    role: Role
    content: SamplingContent | list[SamplingContent]
    model: str
    stop_reason: str | None = None

    @property
    def content_as_list(self) -> list[SamplingContent]:
        """The blocks, be they one or several."""
        return self.content if isinstance(self.content, list) else [self.content]

"""Prompts.

Spec: server/prompts.
"""

from __future__ import annotations

from mcp_core.types.base import Icon, MetaObject, PaginatedResult, RequestParams, Result, Role, Wire
from mcp_core.types.content import ContentBlock
from mcp_core.types.input_required import InputResponses

__all__ = [
    "GetPromptRequestParams",
    "GetPromptResult",
    "ListPromptsResult",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
]


class PromptArgument(Wire, kw_only=True):
    """An argument of a prompt; its value is always a string."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool | None = None


class Prompt(MetaObject, kw_only=True):
    """A prompt as it is listed."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: list[PromptArgument] | None = None
    icons: list[Icon] | None = None


class ListPromptsResult(PaginatedResult, kw_only=True):
    """One page of the prompts."""

    prompts: list[Prompt]


class GetPromptRequestParams(RequestParams, kw_only=True):
    """The prompt wanted, and what to fill it with."""

    name: str
    arguments: dict[str, str] | None = None
    input_responses: InputResponses | None = None
    request_state: str | None = None


class PromptMessage(Wire, kw_only=True):
    """One message, with one block."""

    role: Role
    content: ContentBlock


class GetPromptResult(Result, kw_only=True):
    """The prompt, filled in."""

    messages: list[PromptMessage]
    description: str | None = None

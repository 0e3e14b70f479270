"""The prompts: fixed ones, filled ones, and one that asks first.

Spec: server/prompts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeAlias

from mcp_core import RequestContext
from mcp_core import types as t
from mcp_core.errors import InvalidParams
from tests.conformance.asking import Form, ask, entered, form_schema
from tests.conformance.media import PNG

__all__ = ["PROMPTS", "get_prompt"]

Outcome: TypeAlias = t.GetPromptResult | t.InputRequiredResult
Fill: TypeAlias = Callable[[RequestContext, t.GetPromptRequestParams], Outcome | Awaitable[Outcome]]

CONTEXT: Final = Form("user_context", "What context should the prompt use?", form_schema(context={"type": "string"}))


class Entry(NamedTuple):
    """One prompt: how it is listed, and what fills it."""

    listed: t.Prompt
    fill: Fill


def _offer(name: str, description: str, fill: Fill, *required: str) -> Entry:
    arguments = [t.PromptArgument(name=argument, required=True) for argument in required]
    return Entry(t.Prompt(name=name, description=description, arguments=arguments or None), fill)


def _from_user(*blocks: t.ContentBlock) -> t.GetPromptResult:
    """One message of the user for each block."""
    return t.GetPromptResult(messages=[t.PromptMessage(role="user", content=block) for block in blocks])


def _simple(ctx: RequestContext, params: t.GetPromptRequestParams) -> t.GetPromptResult:
    return _from_user(t.TextContent(text="This is a simple prompt for testing."))


def _filled(ctx: RequestContext, params: t.GetPromptRequestParams) -> t.GetPromptResult:
    given = params.arguments or {}
    return _from_user(t.TextContent(text=f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))


def _with_resource(ctx: RequestContext, params: t.GetPromptRequestParams) -> t.GetPromptResult:
    resource = t.TextResourceContents(
        uri=(params.arguments or {})["resourceUri"],
        mime_type="text/plain",
        text="Embedded resource content for testing.",
    )
    return _from_user(
        t.EmbeddedResource(resource=resource), t.TextContent(text="Please process the embedded resource above.")
    )


def _with_image(ctx: RequestContext, params: t.GetPromptRequestParams) -> t.GetPromptResult:
    return _from_user(
        t.ImageContent(data=PNG, mime_type="image/png"), t.TextContent(text="Please analyze the image above.")
    )


async def _after_a_question(ctx: RequestContext, params: t.GetPromptRequestParams) -> Outcome:
    answers = await ask(ctx, params, CONTEXT)
    if isinstance(answers, t.InputRequiredResult):
        return answers
    return _from_user(t.TextContent(text=f"Use this context: {entered(answers[CONTEXT], 'context', 'none')}"))


_ENTRIES: Final = (
    _offer("test_simple_prompt", "A text.", _simple),
    _offer("test_prompt_with_arguments", "A text with two arguments in it.", _filled, "arg1", "arg2"),
    _offer("test_prompt_with_embedded_resource", "A resource by value.", _with_resource, "resourceUri"),
    _offer("test_prompt_with_image", "An image.", _with_image),
    _offer("test_input_required_result_prompt", "A text about what the user says.", _after_a_question),
)
_BY_NAME: Final = {entry.listed.name: entry for entry in _ENTRIES}

PROMPTS: Final = [entry.listed for entry in _ENTRIES]


def get_prompt(ctx: RequestContext, params: t.GetPromptRequestParams) -> Outcome | Awaitable[Outcome]:
    """Fill a prompt in; here, missing arguments are errors of the protocol."""
    entry = _BY_NAME.get(params.name)
    if entry is None:
        raise InvalidParams(f"Unknown prompt: {params.name}")
    given = params.arguments or {}
    missing = [each.name for each in entry.listed.arguments or () if each.required and each.name not in given]
    if missing:
        raise InvalidParams(f"Missing arguments: {', '.join(missing)}")
    return entry.fill(ctx, params)

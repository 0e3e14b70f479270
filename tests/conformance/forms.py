"""Tools that ask once: the model a question, the user a form of every shape there is.

The suite calls them in the handshake era; they serve both.
Spec: client/sampling; client/elicitation, "Requested Schema".
"""

from __future__ import annotations

import json
from typing import Any, Final

from mcp_core import RequestContext
from mcp_core import types as t
from tests.conformance.asking import Form, Sample, ask, form_schema, said
from tests.conformance.tools import Call, Entry, Outcome, offer, text, texts_schema

__all__ = ["TOOLS"]

STRING: Final = {"type": "string"}

# `default` fills the form in before the user sees it.
DEFAULTS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {
            "type": "string",
            "description": "User status",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "description": "Verification status", "default": True},
    },
    "required": [],
}


def _titled(prefix: str, *titles: str) -> list[dict[str, str]]:
    return [{"const": f"{prefix}{number}", "title": title} for number, title in enumerate(titles, 1)]


# The five ways to let a user choose: one or several, with titles or without, and the old way.
CHOICES: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": _titled("value", "First Option", "Second Option", "Third Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {
            "type": "array",
            "items": {"anyOf": _titled("value", "First Choice", "Second Choice", "Third Choice")},
        },
    },
    "required": [],
}

PROCEED: Final = Form("proceed", "Shall it go on?", form_schema(ok={"type": "boolean"}))


def _outcome(answer: t.ElicitResult) -> str:
    return f"action={answer.action}, content={json.dumps(answer.content or {}, ensure_ascii=False)}"


async def _sampling(ctx: RequestContext, params: t.CallToolRequestParams) -> Outcome:
    prompt = Sample("reply", (params.arguments or {})["prompt"], 100)
    answers = await ask(ctx, params, prompt)
    if isinstance(answers, t.InputRequiredResult):
        return answers
    return text(f"LLM response: {said(answers[prompt])}")


async def _elicitation(ctx: RequestContext, params: t.CallToolRequestParams) -> Outcome:
    form = Form("user", (params.arguments or {})["message"], form_schema(username=STRING, email=STRING))
    answers = await ask(ctx, params, form)
    if isinstance(answers, t.InputRequiredResult):
        return answers
    return text(f"User response: {_outcome(answers[form])}")


async def _streaming_elicitation(ctx: RequestContext, params: t.CallToolRequestParams) -> Outcome:
    """Both at once: progress on the stream of the answer, and a question in the answer."""
    await ctx.report_progress(0, 1, "About to ask")
    answers = await ask(ctx, params, PROCEED)
    if isinstance(answers, t.InputRequiredResult):
        return answers
    await ctx.report_progress(1, 1)
    return text(f"User response: {_outcome(answers[PROCEED])}")


def _filling(form: Form) -> Call:
    """A tool that has the user fill in a form."""

    async def fill_in(ctx: RequestContext, params: t.CallToolRequestParams) -> Outcome:
        answers = await ask(ctx, params, form)
        if isinstance(answers, t.InputRequiredResult):
            return answers
        return text(f"Elicitation completed: {_outcome(answers[form])}")

    return fill_in


TOOLS: Final[tuple[Entry, ...]] = (
    offer("test_sampling", "Asks the model.", _sampling, texts_schema("prompt")),
    offer("test_elicitation", "Asks the user for name and address.", _elicitation, texts_schema("message")),
    offer(
        "test_elicitation_sep1034_defaults",
        "Asks with a form that is filled in already.",
        _filling(Form("defaults", "Please review and update the form", DEFAULTS)),
    ),
    offer(
        "test_elicitation_sep1330_enums",
        "Asks with a form of choices.",
        _filling(Form("choices", "Please select options", CHOICES)),
    ),
    offer("test_streaming_elicitation", "Reports progress, then asks the user.", _streaming_elicitation),
)

"""Tools that are called again with the answers, once or several times.

Named after what 2026-07-28 has them return; clients of the handshake era are asked by
requests, and see one call.
Spec: basic/patterns/mrtr.
"""

from __future__ import annotations

from typing import Any, Final

from mcp_core import RequestContext
from mcp_core import types as t
from mcp_core.errors import MissingClientCapability
from tests.conformance.asking import Form, Question, Roots, Sample, ask, carried, entered, form_schema, said
from tests.conformance.tools import Entry, Outcome, offer, text

__all__ = ["TOOLS"]

STRANGER: Final = "whoever you are"
_NAME_FIELD: Final = form_schema(name={"type": "string"})

NAME: Final = Form("user_name", "What is your name?", _NAME_FIELD)
CAPITAL: Final = Sample("capital_question", "What is the capital of France?", 100)
GREETING: Final = Sample("greeting", "Generate a greeting", 50)
ROOTS: Final = Roots("client_roots")
CONFIRM: Final = Form("confirm", "Please confirm", form_schema(ok={"type": "boolean"}))
STEP_1: Final = Form("step1", "Step 1: What is your name?", _NAME_FIELD)
STEP_2: Final = Form("step2", "Step 2: What is your favorite color?", form_schema(color={"type": "string"}))


# --- one question -------------------------------------------------------------------------


async def _elicits(ctx: RequestContext, params: t.CallToolRequestParams) -> Outcome:
    answers = await ask(ctx, params, NAME)
    if isinstance(answers, t.InputRequiredResult):
        return answers
    return text(f"Hello, {entered(answers[NAME], 'name', STRANGER)}!")


async def _samples(ctx: RequestContext, params: t.CallToolRequestParams) -> Outcome:
    answers = await ask(ctx, params, CAPITAL)
    if isinstance(answers, t.InputRequiredResult):
        return answers
    return text(said(answers[CAPITAL]))


async def _lists_roots(ctx: RequestContext, params: t.CallToolRequestParams) -> Outcome:
    answers = await ask(ctx, params, ROOTS)
    if isinstance(answers, t.InputRequiredResult):
        return answers
    return text(_uris(answers[ROOTS]))


# --- several questions, and what a client declares -----------------------------------------


async def _asks_three(ctx: RequestContext, params: t.CallToolRequestParams) -> Outcome:
    answers = await ask(ctx, params, NAME, GREETING, ROOTS, state="three questions")
    if isinstance(answers, t.InputRequiredResult):
        return answers
    name = entered(answers[NAME], "name", STRANGER)
    return text(f"{said(answers[GREETING])}, {name}! You work in {_uris(answers[ROOTS])}")


async def _needs_sampling(ctx: RequestContext, params: t.CallToolRequestParams) -> Outcome:
    """Says so at once, before any work is done. `ask` would say the same."""
    if ctx.client_capabilities.sampling is None:
        raise MissingClientCapability("This tool asks the model of the client", {"sampling": {}})
    return await _samples(ctx, params)


async def _asks_what_it_may(ctx: RequestContext, params: t.CallToolRequestParams) -> Outcome:
    """A client is asked for nothing that it did not declare."""
    declared = ctx.client_capabilities
    possible: tuple[tuple[Question[Any], object], ...] = (
        (NAME, declared.elicitation),
        (CAPITAL, declared.sampling),
        (ROOTS, declared.roots),
    )
    questions = [question for question, capability in possible if capability is not None]
    if not questions:
        raise MissingClientCapability("This client can be asked for nothing", {"sampling": {}})
    answers = await ask(ctx, params, *questions)
    if isinstance(answers, t.InputRequiredResult):
        return answers
    return text(f"Asked for: {', '.join(question.key for question in questions)}")


# --- a state that the client carries ------------------------------------------------------


async def _confirms(ctx: RequestContext, params: t.CallToolRequestParams) -> Outcome:
    """Trusts an answer only with the state that went out with its question."""
    answers = await ask(ctx, params, CONFIRM, state="to be confirmed")
    if isinstance(answers, t.InputRequiredResult):
        return answers
    return text(f"state-ok, ok={entered(answers[CONFIRM], 'ok', False)}")


async def _asks_twice(ctx: RequestContext, params: t.CallToolRequestParams) -> Outcome:
    """Three rounds. The first answer is not sent again, so that the state has to hold it."""
    known: dict[str, Any] = carried(ctx, params) or {}
    name = known.get("name")
    if name is None:
        first = await ask(ctx, params, STEP_1, state={"step": 1})
        if isinstance(first, t.InputRequiredResult):
            return first
        name = entered(first[STEP_1], "name", STRANGER)
    second = await ask(ctx, params, STEP_2, state={"step": 2, "name": name})
    if isinstance(second, t.InputRequiredResult):
        return second
    return text(f"{name} likes {entered(second[STEP_2], 'color', 'no color')}")


def _uris(answer: t.ListRootsResult) -> str:
    return ", ".join(root.uri for root in answer.roots) or "nowhere"


TOOLS: Final[tuple[Entry, ...]] = (
    offer("test_input_required_result_elicitation", "Asks for a name.", _elicits),
    offer("test_input_required_result_sampling", "Asks the model for a capital.", _samples),
    offer("test_input_required_result_list_roots", "Asks for the roots.", _lists_roots),
    offer("test_missing_capability", "Refuses clients without sampling.", _needs_sampling),
    offer("test_input_required_result_multiple_inputs", "Asks three things at once.", _asks_three),
    offer("test_input_required_result_capabilities", "Asks what this client declares.", _asks_what_it_may),
    offer("test_input_required_result_request_state", "Gives the client a state to carry.", _confirms),
    offer("test_input_required_result_tampered_state", "Refuses a state that was changed.", _confirms),
    offer("test_input_required_result_multi_round", "Asks twice.", _asks_twice),
)

"""A question to the client, put as its revision wants it.

The handshake era asks by a request, and the call waits. 2026-07-28 asks by the result of the
call, which the client repeats with the answers. A tool is written once for both:

    answers = await ask(ctx, params, NAME)
    if isinstance(answers, InputRequiredResult):
        return answers
    ... answers[NAME] ...

Spec: basic/patterns/mrtr; client/elicitation, sampling, roots.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

import msgspec

from mcp_core import RequestContext
from mcp_core import types as t
from mcp_core.request_state import RequestStateSigner

__all__ = ["Answers", "Form", "Question", "Roots", "Sample", "ask", "carried", "entered", "form_schema", "said"]

STATELESS: Final = "2026-07-28"
"""The revision from which on a server asks by results. Revisions sort by their dates."""

Params: TypeAlias = t.CallToolRequestParams | t.GetPromptRequestParams | t.ReadResourceRequestParams
A = TypeVar("A", bound=t.Result)

_states: Final = RequestStateSigner()


# --- questions ----------------------------------------------------------------------------


class Question(ABC, Generic[A]):
    """One thing to ask for; its answer comes back under the same key."""

    key: str
    kind: type[A]

    @abstractmethod
    def as_input(self) -> t.InputRequest:
        """The question as part of a result."""

    @abstractmethod
    async def put(self, ctx: RequestContext) -> A:
        """Ask it by a request, and wait."""

    def read(self, given: Any) -> A | None:
        """The answer in what a client sent, `None` where it is none."""
        try:
            return msgspec.convert(given, self.kind)
        except msgspec.ValidationError:
            return None


@dataclass(frozen=True)
class Form(Question[t.ElicitResult]):
    """A form for the user."""

    key: str
    message: str
    schema: dict[str, Any]
    kind = t.ElicitResult

    def as_input(self) -> t.InputRequest:
        asked = t.ElicitRequestFormParams(message=self.message, requested_schema=self.schema, mode="form")
        return t.InputRequest(method="elicitation/create", params=asked)

    async def put(self, ctx: RequestContext) -> t.ElicitResult:
        return await ctx.elicit(self.message, self.schema)


@dataclass(frozen=True)
class Sample(Question[t.CreateMessageResult]):
    """A prompt for the client's model."""

    key: str
    prompt: str
    max_tokens: int
    kind = t.CreateMessageResult

    @property
    def messages(self) -> list[t.SamplingMessage]:
        """The conversation, of one message."""
        return [t.SamplingMessage(role="user", content=t.TextContent(text=self.prompt))]

    def as_input(self) -> t.InputRequest:
        asked = t.CreateMessageRequestParams(messages=self.messages, max_tokens=self.max_tokens)
        return t.InputRequest(method="sampling/createMessage", params=asked)

    async def put(self, ctx: RequestContext) -> t.CreateMessageResult:
        return await ctx.create_message(self.messages, max_tokens=self.max_tokens)


@dataclass(frozen=True)
class Roots(Question[t.ListRootsResult]):
    """Where the user works."""

    key: str
    kind = t.ListRootsResult

    def as_input(self) -> t.InputRequest:
        return t.InputRequest(method="roots/list")

    async def put(self, ctx: RequestContext) -> t.ListRootsResult:
        return await ctx.list_roots()


# --- asking -------------------------------------------------------------------------------


class Answers:
    """The answers, each found by its question and of its type."""

    def __init__(self, by_key: dict[str, t.Result]) -> None:
        self._by_key = by_key

    def __getitem__(self, question: Question[A]) -> A:
        return cast("A", self._by_key[question.key])


async def ask(
    ctx: RequestContext, params: Params, *questions: Question[Any], state: Any = None
) -> Answers | t.InputRequiredResult:
    """The answers to all the questions, or the result that asks them.

    `state` is any JSON value for the client to carry to the next round (`carried`). With one,
    answers count only if a state of this server comes with them.

    Raises:
        InvalidParams: The client carried something else.
        MissingClientCapability: It cannot be asked this.
    """
    if ctx.protocol_version < STATELESS:
        return Answers({question.key: await question.put(ctx) for question in questions})
    given = params.input_responses or {}
    if state is not None and carried(ctx, params) is None:
        given = {}
    answers = {question.key: question.read(given.get(question.key)) for question in questions}
    found = {key: answer for key, answer in answers.items() if answer is not None}
    if len(found) == len(questions):
        return Answers(found)
    return t.InputRequiredResult(
        input_requests={question.key: question.as_input() for question in questions},
        request_state=None if state is None else _states.sign(ctx, state),
    )


def carried(ctx: RequestContext, params: Params) -> Any:
    """The state that the client was given in the round before; `None` in the first.

    Raises:
        InvalidParams: It is not what this server gave out for this call.
    """
    return None if params.request_state is None else _states.verify(ctx, params.request_state)


# --- what is in a question, what is in an answer ------------------------------------------


def form_schema(**properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of a form in which everything is required."""
    return {"type": "object", "properties": properties, "required": [*properties]}


def entered(answer: t.ElicitResult, name: str, otherwise: Any) -> Any:
    """What the user entered, or something else where the form was refused or the field left out."""
    return (answer.content or {}).get(name, otherwise)


def said(answer: t.CreateMessageResult) -> str:
    """What the model said in words."""
    return "".join(block.text for block in answer.content_as_list if isinstance(block, t.TextContent))

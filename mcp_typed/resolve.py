"""Parameters that are resolved before a tool runs: the graph of resolvers, and asking.

One body serves both eras: a handshake-era client is asked while the call waits; a
2026-07-28 client gets all open questions in one result and calls again with the answers,
what it answered before riding in a signed state.
Spec: basic/patterns/mrtr; client/elicitation, sampling, roots. R-MRTR-04 to R-MRTR-06.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

import msgspec

from mcp_core import codec
from mcp_core import types as t
from mcp_core.codec import JSONObject, ReadableObject
from mcp_core.context import AnyContext
from mcp_core.errors import InvalidParams, InvalidResult
from mcp_core.request_state import RequestStateSigner
from mcp_core.revisions import is_modern
from mcp_typed.annotations import arms, meaning
from mcp_typed.asking import Elicit, ListRoots, Sample
from mcp_typed.elicitation import AcceptedElicitation, CancelledElicitation, DeclinedElicitation, Form, is_outcome
from mcp_typed.errors import InvalidSignature, ToolError
from mcp_typed.given import checker
from mcp_typed.signature import HandlerPlan, Injected, inspect_function

__all__ = ["Resolvers", "ResumableParams"]

Check = Callable[[str, Any], Any]
"""Returns the value of the resolver of this name as the parameter takes it."""


class Calling(Protocol):
    """How the functions of one call are called."""

    def inject(self, wanted: dict[str, Injected], /) -> JSONObject:
        """Return the injected parameters by name."""
        ...

    async def invoke(self, plan: HandlerPlan, keywords: JSONObject, /) -> object:
        """Call a function by its plan with these keywords, wherever such functions run."""
        ...

    async def enter(self, value: object, /) -> object:
        """Return what a generator or a context manager gives, and end it after the call; other values as they are."""
        ...


class ResumableParams(Protocol):
    """The params of a request that may come back with answers, as those of `tools/call` do."""

    @property
    def input_responses(self) -> ReadableObject | None:
        """The client's answers, by the keys of their questions."""
        ...

    @property
    def request_state(self) -> str | None:
        """What was sent with the questions."""
        ...


class _Node:
    """One resolver: what its parameters are filled with."""

    def __init__(self, key: str, plan: HandlerPlan) -> None:
        self.key = key
        self.plan = plan
        self.needs: dict[str, _Need] = {}
        self.arguments: tuple[str, ...] = ()


class _Need(msgspec.Struct, frozen=True):
    """A parameter that a resolver fills: what is wanted of it, and what checks what it gives."""

    node: _Node
    wants_outcome: bool
    check: Check


class _PendingQuestions(Exception):
    """The value waits for an answer of the client."""


class Resolvers:
    """The resolvers of one function's parameters, their graph checked."""

    def __init__(self, plan: HandlerPlan, signer: RequestStateSigner) -> None:
        """
        Raises:
            InvalidSignature: A resolver depends on itself, has a parameter that nothing
                fills, or may ask more than one thing.
        """
        self._plan = plan
        self._signer = signer
        self._nodes: dict[Any, _Node] = {}
        self._keys: set[str] = set()
        self._needs = self._needed(plan, (), lambda name: f"{plan.kind} {plan.name!r}: parameter {name!r}")

    def _needed(self, plan: HandlerPlan, above: tuple[Any, ...], owner: Callable[[str], str]) -> dict[str, _Need]:
        return {
            name: _Need(
                self._node(marker.function, above, owner(name)),
                is_outcome(wanted),
                checker(name, wanted),
            )
            for name, (marker, wanted) in plan.resolved.items()
        }

    def _node(self, function: Callable[..., object], above: tuple[object, ...], owner: str) -> _Node:
        identity = _identity(function)
        name = getattr(function, "__name__", type(function).__name__)
        if identity in above:
            raise InvalidSignature(f"{owner}: resolver {name!r} depends on itself")
        if identity in self._nodes:
            return self._nodes[identity]
        try:
            plan = inspect_function(function, name, kind="resolver")
        except InvalidSignature as exc:
            raise InvalidSignature(f"{owner}: {exc}") from exc
        node = self._nodes[identity] = _Node(self._free_key(name), plan)
        known = {parameter.name for parameter in self._plan.parameters}
        for parameter in plan.parameters:
            if parameter.name not in known:
                raise InvalidSignature(
                    f"{owner}: parameter {parameter.name!r} of resolver {name!r} is no argument of "
                    f"the {self._plan.kind}; annotate it with a Context or Annotated[..., Resolve(...)], "
                    "or name an argument"
                )
        node.arguments = tuple(parameter.name for parameter in plan.parameters)
        _check_questions(owner, name, plan.returns)
        node.needs = self._needed(plan, (*above, identity), lambda _: owner)
        return node

    def _free_key(self, name: str) -> str:
        """Return a key for the wire: the same in every process, and no other resolver's."""
        key, count = name, 1
        while key in self._keys:
            count += 1
            key = f"{name}-{count}"
        self._keys.add(key)
        return key

    async def resolve(
        self,
        ctx: AnyContext,
        params: ResumableParams,
        arguments: JSONObject,
        calling: Calling,
    ) -> JSONObject | t.InputRequiredResult:
        """Return the resolved parameters by name, or the questions that the client has to answer first.

        Raises:
            ToolError: The user declined, or answered what does not fit.
            InvalidParams: The state that came back is none of ours.
            MissingClientCapability: The client cannot be asked.
        """
        asking: _Live | _Rounds = _Rounds(ctx, params, self._signer) if is_modern(ctx.protocol_version) else _Live(ctx)
        call = _ResolverCall(asking, arguments, calling)
        filled: JSONObject = {}
        for name, need in self._needs.items():
            try:
                filled[name] = await call.value(need)
            except _PendingQuestions:
                continue  # the others may have questions for the same round
        return asking.questions() or filled


class _ResolverCall:
    """The values of one call; each resolver runs at most once in it."""

    def __init__(self, asking: _Live | _Rounds, arguments: JSONObject, calling: Calling) -> None:
        self._asking = asking
        self._arguments = arguments
        self._calling = calling
        self._values: JSONObject = {}
        self._pending: set[str] = set()

    async def value(self, need: _Need) -> object:
        """Return what a resolver gives to one who wants the outcome of its question, or the answer alone.

        Raises:
            TypeError: The parameter does not take it.
        """
        value = await self._value(need.node, wants_outcome=need.wants_outcome)
        if need.wants_outcome:  # which the user chooses, whatever the parameter says
            return value
        return need.check(need.node.plan.name, value)

    async def _value(self, node: _Node, *, wants_outcome: bool) -> object:
        if node.key in self._pending:
            raise _PendingQuestions
        if node.key not in self._values:
            try:
                self._values[node.key] = await self._run(node)
            except _PendingQuestions:
                self._pending.add(node.key)
                raise
        value = self._values[node.key]
        if not isinstance(value, _Outcome):
            return AcceptedElicitation(value) if wants_outcome and not _is_outcome_value(value) else value
        if wants_outcome:
            return value.outcome
        outcome = value.outcome
        if isinstance(outcome, AcceptedElicitation):
            return cast("Any", outcome.data)  # pyright: ignore[reportUnknownMemberType]
        did = "declined to answer" if outcome.action == "decline" else "did not answer"
        raise ToolError(f"the user {did}: {value.message}")

    async def _run(self, node: _Node) -> object:
        keywords: JSONObject = {}
        pending = False
        for name, need in node.needs.items():
            try:
                keywords[name] = await self.value(need)
            except _PendingQuestions:
                pending = True
        if pending:
            raise _PendingQuestions
        keywords.update(self._calling.inject(node.plan.injected))
        keywords.update({name: self._arguments[name] for name in node.arguments})
        value = await self._calling.invoke(node.plan, keywords)
        value = await self._calling.enter(value)
        if isinstance(value, Elicit):
            elicit = cast("Elicit[Any]", value)
            form: Form[object] = Form(elicit.schema)
            params = t.ElicitRequestFormParams(
                message=elicit.message, requested_schema=form.asked_of(self._asking.revision), mode="form"
            )
            answer = await self._asking.ask(node.key, "elicitation/create", params, t.ElicitResult)
            return _Outcome(form.read(answer), elicit.message)
        if isinstance(value, Sample):
            return await self._asking.ask(node.key, "sampling/createMessage", value.params, t.CreateMessageResult)
        if isinstance(value, ListRoots):
            return await self._asking.ask(node.key, "roots/list", None, t.ListRootsResult)
        return value


def _is_outcome_value(value: object) -> bool:
    return isinstance(value, AcceptedElicitation | DeclinedElicitation | CancelledElicitation)


class _Outcome:
    """What became of a question to the user."""

    def __init__(self, outcome: Any, message: str) -> None:
        self.outcome = outcome
        self.message = message


# --- the two ways to ask --------------------------------------------------------------------------


class _Live:
    """A handshake-era client: asked while the call waits."""

    def __init__(self, ctx: AnyContext) -> None:
        self._ctx = ctx
        self.revision = ctx.protocol_version

    async def ask(self, key: str, method: t.InputMethod, params: object, kind: object) -> Any:
        try:
            return await self._ctx.ask(method, params)
        except InvalidResult as exc:
            raise ToolError(str(exc)) from exc

    def questions(self) -> None:
        return None


class _Rounds:
    """A 2026-07-28 client: open questions go out together, answers come with the next call.

    An answer counts only for the question it was asked: the state says what that was.
    """

    def __init__(self, ctx: AnyContext, params: ResumableParams, signer: RequestStateSigner) -> None:
        self._ctx = ctx
        self.revision = ctx.protocol_version
        self._signer = signer
        self._given = params.input_responses or {}
        state: Any = {} if params.request_state is None else signer.verify(ctx, params.request_state)
        self._asked = _member(state, "asked")
        self._answers = _member(state, "answers")
        self._open: dict[str, t.InputRequest] = {}
        self._digests: dict[str, str] = {}

    async def ask(self, key: str, method: t.InputMethod, params: object, kind: object) -> Any:
        shown = None if params is None else codec.to_json(params)
        digest = hashlib.sha256(codec.canonical([method, shown])).hexdigest()[:_DIGEST]
        self._digests[key] = digest
        if self._asked.get(key) == digest:
            if key in self._given:
                self._answers[key] = self._given[key]
            if key in self._answers:
                return _typed_answer(key, self._answers[key], kind)
        self._answers.pop(key, None)
        self._open[key] = t.InputRequest(method=method, params=params)
        raise _PendingQuestions

    def questions(self) -> t.InputRequiredResult | None:
        """Return the result that asks what is open; `None` when nothing is."""
        if not self._open:
            return None
        answers = {key: answer for key, answer in self._answers.items() if key in self._digests}
        try:
            state = self._signer.sign(self._ctx, {"asked": self._digests, "answers": answers})
        except ValueError as exc:
            raise ToolError(f"the answers so far are too long to be kept for the next round: {exc}") from exc
        return t.InputRequiredResult(input_requests=self._open, request_state=state)


def _member(state: Any, name: str) -> JSONObject:
    """Return an object in a state; a state of the author's own, under the same keys, has none."""
    found = state.get(name) if codec.is_object(state) else None
    return found if codec.is_object(found) else {}


_DIGEST: Final = 32


def _typed_answer(key: str, answer: Any, kind: Any) -> Any:
    try:
        return codec.convert(answer, kind)
    except codec.ValidationError as exc:
        raise InvalidParams(f"inputResponses {key!r} cannot be read: {exc}") from None


# --- the graph --------------------------------------------------------------------------------------


def _identity(function: Callable[..., Any]) -> Any:
    """Return what makes two mentions of a resolver the same: bound methods are new objects each time."""
    owner = getattr(function, "__self__", None)
    return (id(getattr(function, "__func__", function)), id(owner)) if owner is not None else id(function)


def _check_questions(owner: str, name: str, returns: object) -> None:
    asked = [meant for arm in arms(returns) if (meant := meaning(arm)).cls in (Elicit, Sample, ListRoots)]
    if len(asked) > 1:
        raise InvalidSignature(f"{owner}: resolver {name!r} may ask several things; make it several resolvers")
    for arm in asked:
        if arm.origin is Elicit:
            try:
                Form(arm.arguments[0])
            except InvalidSignature as exc:
                raise InvalidSignature(f"{owner}: resolver {name!r}: {exc}") from exc

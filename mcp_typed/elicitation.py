"""Questions to the user as types: the form a class stands for, and the answer as its instance.

Knows elicitation; nothing of tools or of how a question travels.
Spec: client/elicitation, "Requested Schema", "Response Actions".
"""

from __future__ import annotations

import types
import typing
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast

import msgspec
from pydantic import TypeAdapter, ValidationError

from mcp_core import types as t
from mcp_core.codec import is_object
from mcp_typed.errors import InvalidSignature, ToolError
from mcp_typed.foreign import adapted
from mcp_typed.report import report
from mcp_typed.schema import inlined, json_schema

__all__ = [
    "AcceptedElicitation",
    "CancelledElicitation",
    "DeclinedElicitation",
    "ElicitationResult",
    "Form",
    "is_outcome",
]

T = TypeVar("T")


class AcceptedElicitation(msgspec.Struct, Generic[T], frozen=True):
    """The user answered; `data` is the answer, validated."""

    data: T
    action: Literal["accept"] = "accept"


class DeclinedElicitation(msgspec.Struct, frozen=True):
    """The user said no."""

    action: Literal["decline"] = "decline"


class CancelledElicitation(msgspec.Struct, frozen=True):
    """The user closed the question without an answer."""

    action: Literal["cancel"] = "cancel"


ElicitationResult: TypeAlias = AcceptedElicitation[T] | DeclinedElicitation | CancelledElicitation

_PRIMITIVES: Final = frozenset({"string", "number", "integer", "boolean"})


class Form(Generic[T]):
    """The form that a class with primitive members stands for."""

    def __init__(self, schema: type[T]) -> None:
        """
        Raises:
            InvalidSignature: A member is no string, number, boolean, choice or list of
                choices, which is all that a form can ask for.
        """
        name = getattr(schema, "__name__", repr(schema))
        try:
            self._adapter: TypeAdapter[T] = TypeAdapter(adapted(schema))
            shown = inlined(json_schema(self._adapter.core_schema, "validation"))
        except Exception as exc:
            raise InvalidSignature(f"{name} cannot be a form: {exc}") from exc
        if shown.get("type") != "object":
            raise InvalidSignature(f"{name} cannot be a form: it is no class with members")
        members = cast("dict[str, Any]", shown.get("properties", {}))
        self.requested_schema: dict[str, Any] = {
            "type": "object",
            "properties": {key: _asked(name, key, member) for key, member in members.items()},
            **({"required": shown["required"]} if "required" in shown else {}),
        }

    def read(self, answer: t.ElicitResult) -> ElicitationResult[T]:
        """The outcome that an answer means.

        Raises:
            ToolError: It was accepted with content that does not fit the form.
        """
        if answer.action == "decline":
            return DeclinedElicitation()
        if answer.action == "cancel":
            return CancelledElicitation()
        try:
            return AcceptedElicitation(self._adapter.validate_json(msgspec.json.encode(answer.content or {})))
        except ValidationError as exc:
            raise ToolError(f"the user's answer does not fit the form: {report(exc)}") from exc


def _asked(form: str, key: str, member: dict[str, Any]) -> dict[str, Any]:
    """One member as a form can ask for it; `X | None` asks for an X that may be left out."""
    arms = member.get("anyOf")
    if arms is not None:
        real = [arm for arm in arms if is_object(arm) and arm.get("type") != "null"]
        if len(real) == 1:
            rest = {name: value for name, value in member.items() if name != "anyOf"}
            member = {**real[0], **rest}
            if member.get("default", ...) is None:
                del member["default"]
    if "const" in member and "enum" not in member:
        member = {**{name: value for name, value in member.items() if name != "const"}, "enum": [member["const"]]}
    kind = member.get("type")
    choices = member.get("items")
    if kind in _PRIMITIVES or (kind == "array" and is_object(choices) and ("enum" in choices or "anyOf" in choices)):
        return member
    raise InvalidSignature(
        f"{form}.{key} cannot be asked for in a form: it must be a string, number, boolean or a choice of strings"
    )


def is_outcome(annotation: Any) -> bool:
    """Whether an annotation asks for the outcome of a question, not for the bare answer."""
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    arms = typing.get_args(annotation) if is_union else (annotation,)
    outcomes = (AcceptedElicitation, DeclinedElicitation, CancelledElicitation)
    return any((typing.get_origin(arm) or arm) in outcomes for arm in arms)

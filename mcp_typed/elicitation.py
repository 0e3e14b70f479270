"""Questions to the user as types: the form a class stands for, and the answer as its instance.

Knows elicitation; nothing of tools or of how a question travels.
Spec: client/elicitation, "Requested Schema", "Response Actions".
"""

from __future__ import annotations

from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast

import msgspec
from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from mcp_core import types as t
from mcp_core.codec import is_object
from mcp_typed.annotations import arms, meaning
from mcp_typed.errors import InvalidSignature, ToolError
from mcp_typed.foreign import adapted
from mcp_typed.report import report_arguments
from mcp_typed.schema import fits, inlined, json_schema, rewritten

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
_FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})
"""Formats that a form may name (R-ELIC-02)."""


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
            core = TypeAdapter(adapted(schema)).core_schema
            shown = inlined(json_schema(core, "validation"))
            self._read = SchemaValidator(rewritten(core), _use_prebuilt=False).validate_json
        except Exception as exc:
            raise InvalidSignature(f"{name} cannot be a form: {exc}") from exc
        if shown.get("type") != "object" or "properties" not in shown:
            raise InvalidSignature(f"{name} cannot be a form: it is no class with members")
        members = cast("dict[str, Any]", shown.get("properties", {}))
        # A form has no null: what may be null may be left out.
        needed: list[str] = shown.get("required", [])
        self._nullable = [key for key in needed if _without_null(members[key]) is not members[key]]
        required = [key for key in needed if key not in self._nullable]
        self.requested_schema: dict[str, Any] = {
            "type": "object",
            "properties": {key: _asked(name, key, member) for key, member in members.items()},
            **({"required": required} if required else {}),
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
        left_out = {key: None for key in self._nullable if key not in (answer.content or {})}
        try:
            return AcceptedElicitation(self._read(msgspec.json.encode({**left_out, **(answer.content or {})})))
        except ValidationError as exc:
            raise ToolError(f"the user's answer does not fit the form: {report_arguments(exc)}") from exc


def _without_null(member: dict[str, Any]) -> dict[str, Any]:
    """`X | None` as an X; anything else as it is."""
    choices: list[Any] = member.get("anyOf", [])
    real = [arm for arm in choices if is_object(arm) and arm.get("type") != "null"]
    if len(real) != 1 or len(choices) != 2:
        return member
    return {**real[0], **{name: value for name, value in member.items() if name != "anyOf"}}


def _asked(form: str, key: str, member: dict[str, Any]) -> dict[str, Any]:
    """One member as a form can ask for it.

    Raises:
        InvalidSignature: It cannot, or must not: forms are no place for secrets.
    """
    shown = dict(_without_null(member))
    if shown.get("format") == "password" or shown.get("writeOnly"):
        raise InvalidSignature(f"{form}.{key} cannot be asked for in a form: it is a secret; use ctx.elicit_url")
    if "contentEncoding" in shown:
        raise InvalidSignature(f"{form}.{key} cannot be asked for in a form: users do not write base64")
    if shown.get("format") not in _FORMATS:
        shown.pop("format", None)
    if "default" in shown and (shown["default"] is None or not fits(shown, shown["default"], {})):
        del shown["default"]
    _as_choice(shown)
    if is_object(shown.get("items")):
        shown["items"] = dict(shown["items"])
        _as_choice(shown["items"])
    if shown.get("type") in _PRIMITIVES or (shown.get("type") == "array" and _are_choices(shown.get("items"))):
        return shown
    raise InvalidSignature(
        f"{form}.{key} cannot be asked for in a form: it must be a string, number, boolean or a choice of strings"
    )


def _as_choice(shown: dict[str, Any]) -> None:
    if "const" in shown and "enum" not in shown:
        shown["enum"] = [shown.pop("const")]


def _are_choices(items: Any) -> bool:
    """Whether the items of a list are strings to choose from, which is all that clients can send."""
    if not is_object(items):
        return False
    choices = items.get("enum", [arm.get("const") for arm in items.get("anyOf", [])])
    return bool(choices) and all(isinstance(choice, str) for choice in choices)


def is_outcome(annotation: Any) -> bool:
    """Whether an annotation asks for the outcome of a question, not for the bare answer."""
    outcomes = (AcceptedElicitation, DeclinedElicitation, CancelledElicitation)
    return any(meaning(arm).cls in outcomes for arm in arms(annotation))

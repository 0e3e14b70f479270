"""Questions to the user as types: the form a class stands for, and the answer as its instance.

Knows elicitation; nothing of tools or of how a question travels.
Spec: client/elicitation, "Requested Schema", "Response Actions".
"""

from __future__ import annotations

import inspect
import math
from typing import Final, Generic, Literal, TypeAlias, TypeGuard, TypeVar, cast

import msgspec
from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from mcp_core import types as t
from mcp_core.codec import JSONObject, is_array, is_object
from mcp_core.revisions import is_modern
from mcp_typed.annotations import arms, meaning
from mcp_typed.errors import InvalidSignature, ToolError
from mcp_typed.foreign import adapted
from mcp_typed.json_schema import fits, inlined
from mcp_typed.report import report_arguments
from mcp_typed.schema import json_schema, rewritten

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

_FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})
"""Formats that a form may name (R-ELIC-02)."""


class Form(Generic[T]):
    """The form that a class with primitive members stands for."""

    def __init__(self, schema: type[T]) -> None:
        """
        Raises:
            InvalidSignature: A member is not a string, number, boolean, choice or list of
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
        members = cast("JSONObject", shown.get("properties", {}))
        # A form has no null: what may be null may be left out.
        needed: list[str] = shown.get("required", [])
        self._nullable = [key for key in needed if _without_null(members[key]) is not members[key]]
        required = [key for key in needed if key not in self._nullable]
        self.requested_schema: JSONObject = {
            "type": "object",
            "properties": {key: _asked(name, key, member) for key, member in members.items()},
            **({"required": required} if required else {}),
        }
        self._texts = _texts(schema, name, shown)

    def asked_of(self, revision: str) -> JSONObject:
        """Return the schema to ask a client of this revision with; what the revision lacks the core leaves out.

        Handshake-era clients get the form's title and description too, as from the official SDK.
        """
        return self.requested_schema if is_modern(revision) else {**self._texts, **self.requested_schema}

    def read(self, answer: t.ElicitResult) -> ElicitationResult[T]:
        """Return the outcome that an answer means.

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


def _texts(schema: object, name: str, shown: JSONObject) -> JSONObject:
    """Return the title and the description of a form, where its author gave it some.

    A class's own name and docstring are for readers of the code: they count only beside a
    title for the user.
    """
    title, description = shown.get("title", name), shown.get("description")
    if title != name:
        return {"title": title} if description is None else {"title": title, "description": description}
    return {} if description is None or description == inspect.getdoc(schema) else {"description": description}


def _without_null(member: JSONObject) -> JSONObject:
    """`X | None` as an X; anything else as it is."""
    choices: list[object] = member.get("anyOf", [])
    real = [arm for arm in choices if is_object(arm) and arm.get("type") != "null"]
    if len(real) != 1 or len(choices) != 2:
        return member
    return {**real[0], **{name: value for name, value in member.items() if name != "anyOf"}}


def _asked(form: str, key: str, member: JSONObject) -> JSONObject:
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
    shape = _list_of_choices(shown) if shown.get("type") == "array" else _choice(shown) or _primitive(shown)
    if shape is None:
        raise InvalidSignature(
            f"{form}.{key} cannot be asked for in a form: it must be a string, number, boolean or a choice of strings"
        )
    return {**{name: shown[name] for name in shown if name in _OF_ALL}, **shape}


# What may be said of a member, besides `_OF_ALL`; clients know no more (wire-differences,
# section 7), and what a form does not say the answer is still checked for.
_OF_ALL: Final = frozenset({"title", "description", "default"})
_OF: Final[dict[str, tuple[str, ...]]] = {
    "string": ("type", "minLength", "maxLength", "format"),
    "number": ("type", "minimum", "maximum"),
    "integer": ("type", "minimum", "maximum"),
    "boolean": ("type",),
}


def _primitive(shown: JSONObject) -> JSONObject | None:
    """Return what is said of a string, number or boolean; `None` for anything else."""
    kind = shown.get("type")
    if kind not in _OF or (kind != "boolean" and any(name in shown for name in ("enum", "const", "oneOf"))):
        return None
    shape = {name: shown[name] for name in _OF[kind] if name in shown}
    if kind == "integer":  # the next integer says the same as an exclusive bound
        if "exclusiveMinimum" in shown:
            shape.setdefault("minimum", math.floor(shown["exclusiveMinimum"]) + 1)
        if "exclusiveMaximum" in shown:
            shape.setdefault("maximum", math.ceil(shown["exclusiveMaximum"]) - 1)
    return shape


def _choice(shown: JSONObject) -> JSONObject | None:
    """Return a choice of strings, titled or not; `None` where it is none."""
    titled = shown.get("oneOf")
    if _are_titled(titled):
        return {"type": "string", "oneOf": titled}
    choices: object = shown.get("enum", [shown["const"]] if "const" in shown else None)
    if not _are_strings(choices):
        return None
    names = shown.get("enumNames")
    named = _are_strings(names) and len(names) == len(choices)
    return {"type": "string", "enum": choices, **({"enumNames": names} if named else {})}


def _list_of_choices(shown: JSONObject) -> JSONObject | None:
    """Return a list of strings to choose from, which is all that clients can send; `None` for another list."""
    items = shown.get("items")
    if not is_object(items):
        return None
    titled = items.get("anyOf", items.get("oneOf"))
    choice = {"anyOf": titled} if _are_titled(titled) else _choice(items)
    if choice is None:
        return None
    choice.pop("enumNames", None)  # single choices alone have it
    texts = {name: items[name] for name in ("title", "description") if name in items}
    counts: JSONObject = {name: shown[name] for name in ("minItems", "maxItems", "uniqueItems") if name in shown}
    return {"type": "array", "items": {**texts, **choice}, **counts}


def _are_strings(choices: object) -> TypeGuard[list[str]]:
    return is_array(choices) and bool(choices) and all(isinstance(choice, str) for choice in choices)


def _are_titled(arms: object) -> bool:
    """Return whether these are choices of strings, each with its title."""
    return (
        is_array(arms)
        and bool(arms)
        and all(is_object(arm) and _are_strings([arm.get("const"), arm.get("title")]) for arm in arms)
    )


def is_outcome(annotation: object) -> bool:
    """Return whether an annotation asks for the outcome of a question, not for the bare answer."""
    outcomes = (AcceptedElicitation, DeclinedElicitation, CancelledElicitation)
    return any(meaning(arm).cls in outcomes for arm in arms(annotation))

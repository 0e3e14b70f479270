"""What a tool asks its user, asked on the terminal; or noted, where there is no terminal.

Knows forms as JSON Schema, as clients are sent them; nothing of the tool.
Spec: client/elicitation, "Requested Schema", "Response Actions".
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, cast

import click

from mcp_core import MCPError
from mcp_core.client import ClientRequestContext
from mcp_core.codec import JSONObject, is_object
from mcp_core.types import ElicitRequestFormParams, ElicitResult

__all__ = ["Questions"]

_KINDS: Final[JSONObject] = {"integer": int, "number": float, "boolean": bool}


class Questions:
    """The callbacks of a client for one call. `unanswered` says what could not be answered, and why.

    On a terminal the user answers forms, one field after the other, and says whether an
    address was visited; Ctrl-C or Ctrl-D there cancels the question. Prompts go to stderr:
    stdout is for the result.
    """

    def __init__(self, *, on_terminal: bool) -> None:
        self._on_terminal = on_terminal
        self.unanswered: list[str] = []

    def elicit(self, _ctx: ClientRequestContext, params: Any) -> ElicitResult:
        """Answer an elicitation."""
        schema: JSONObject = params.requested_schema if isinstance(params, ElicitRequestFormParams) else {}
        fields: JSONObject = schema.get("properties", {})
        asked = f"{params.message!r}" + (f" ({', '.join(map(_described, fields.items()))})" if fields else "")
        if not self._on_terminal:
            self.unanswered.append(f"the tool asks {asked}: answers are read from a terminal only")
            return ElicitResult(action="cancel")
        try:
            with _interrupted():
                click.echo(params.message, err=True)
                if not isinstance(params, ElicitRequestFormParams):
                    return _visited(params.url)
                return _filled(fields, schema.get("required", []))
        except click.Abort:
            click.echo(err=True)
            return ElicitResult(action="cancel")

    def sample(self, _ctx: ClientRequestContext, _params: Any) -> Any:
        """Refuse to continue a conversation: there is no model here.

        Raises:
            MCPError: Always.
        """
        self.unanswered.append("the tool asks for a model's answer (sampling), and mcp-typed has no model")
        raise MCPError(-1, "there is no model here")

    def list_roots(self, _ctx: ClientRequestContext) -> Any:
        """Refuse to name folders: whose they are to see is not known.

        Raises:
            MCPError: Always.
        """
        self.unanswered.append("the tool asks for folders to work in (roots), and mcp-typed names none")
        raise MCPError(-1, "there are no roots here")


@contextmanager
def _interrupted() -> Generator[None, None, None]:
    """Let Ctrl-C interrupt what is read: an event loop makes it cancel a task, once the reading is over."""
    before: Any = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _described(field: tuple[str, object]) -> str:
    name, schema = field
    kind = schema.get("type", "string") if is_object(schema) else "string"
    return f"{name}: {kind}"


def _visited(url: str) -> ElicitResult:
    click.echo(f"Visit {url}", err=True)
    agreed = click.confirm("Done?", default=True, err=True)
    return ElicitResult(action="accept" if agreed else "decline")


def _filled(fields: JSONObject, required: list[str]) -> ElicitResult:
    content: JSONObject = {}
    for name, schema in fields.items():
        answer = _asked(name, schema if is_object(schema) else {}, needed=name in required)
        if answer is not None:
            content[name] = answer
    return ElicitResult(action="accept", content=content)


def _asked(name: str, schema: JSONObject, *, needed: bool) -> object:
    """Ask for one field until the answer fits; an empty one leaves an optional field out."""
    described = schema.get("description") or schema.get("title")
    text = f"{name} ({described})" if described and described != name else name
    default = schema.get("default")
    if schema.get("type") == "array":
        given = click.prompt(f"{text}, separated by commas", default=_joined(default), err=True, show_default=True)
        return [part.strip() for part in given.split(",") if part.strip()]
    choices = _choices(schema)
    kind: Any = click.Choice(choices) if choices else _KINDS.get(str(schema.get("type")), str)
    if default is None and not needed:
        given = click.prompt(f"{text} [optional]", default="", show_default=False, type=_optional(kind), err=True)
        return None if given == "" else given
    return click.prompt(text, default=default, type=kind, err=True)


def _joined(default: Any) -> str:
    return ", ".join(str(one) for one in default or ())


def _choices(schema: JSONObject) -> list[str]:
    titled: list[object] = schema.get("oneOf") or schema.get("anyOf") or []
    given: list[object] = schema.get("enum") or [one["const"] for one in titled if is_object(one) and "const" in one]
    return [str(choice) for choice in given]


def _optional(kind: object) -> Any:
    """Return the same, with nothing at all let through."""
    convert = cast("Callable[[str], Any]", click.types.convert_type(kind))

    def read(text: str) -> Any:
        return convert(text) if text else ""

    return read

"""What a tool of this server is: its listing and its function, one entry of a table.

Also the two ways in which a call can go wrong. A name that nobody knows is an error of the
protocol; arguments that do not fit are a result that the model reads and can learn from.
Spec: server/tools, "Error Handling".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, NamedTuple, TypeAlias

from mcp_core import RequestContext
from mcp_core import types as t
from mcp_core.errors import InvalidParams

__all__ = ["NO_ARGUMENTS", "Call", "Entry", "Outcome", "always", "calling", "failure", "offer", "text", "texts_schema"]

Outcome: TypeAlias = t.CallToolResult | t.InputRequiredResult
Call: TypeAlias = Callable[
    [RequestContext, t.CallToolRequestParams], Outcome | t.Prepared[t.CallToolResult] | Awaitable[Outcome]
]

NO_ARGUMENTS: Final[dict[str, Any]] = {"type": "object", "additionalProperties": False}


class Entry(NamedTuple):
    """One tool: how it is listed, and what is called."""

    listed: t.Tool
    call: Call


def offer(name: str, description: str, call: Call, input_schema: dict[str, Any] = NO_ARGUMENTS) -> Entry:
    """An entry in one line of a table."""
    return Entry(t.Tool(name=name, description=description, input_schema=input_schema), call)


def texts_schema(*required: str) -> dict[str, Any]:
    """The schema of arguments that are all texts, and all required."""
    return {"type": "object", "properties": {name: {"type": "string"} for name in required}, "required": [*required]}


def always(result: t.CallToolResult) -> Call:
    """A tool that gives the same result each time: encoded once, sent many times."""
    prepared: t.Prepared[t.CallToolResult] = t.Prepared(result)
    return lambda _ctx, _params: prepared


def text(text: str) -> t.CallToolResult:
    """A result of one block of text."""
    return t.CallToolResult(content=[t.TextContent(text=text)])


def failure(text: str) -> t.CallToolResult:
    """A failure that the model reads."""
    return t.CallToolResult(content=[t.TextContent(text=text)], is_error=True)


def calling(entries: Iterable[Entry]) -> Call:
    """The `on_call_tool` of these entries.

    A plain function: what only looks something up is answered without a task, and what an
    entry's `async def` gives is awaited by the server.
    """
    by_name = {entry.listed.name: entry for entry in entries}

    def call_tool(
        ctx: RequestContext, params: t.CallToolRequestParams
    ) -> Outcome | t.Prepared[t.CallToolResult] | Awaitable[Outcome]:
        entry = by_name.get(params.name)
        if entry is None:
            raise InvalidParams(f"Unknown tool: {params.name}")
        wrong = _misfits(entry.listed.input_schema, params.arguments or {})
        return failure(wrong) if wrong else entry.call(ctx, params)

    return call_tool


def _misfits(schema: dict[str, Any], arguments: dict[str, Any]) -> str:
    """What is wrong with arguments, as far as this server needs it: texts, and required ones."""
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    if missing:
        return f"Missing arguments: {', '.join(missing)}"
    shown: dict[str, dict[str, Any]] = schema.get("properties", {})
    no_texts = [
        name
        for name, value in arguments.items()
        if shown.get(name, {}).get("type") == "string" and not isinstance(value, str)
    ]
    return f"Not a string: {', '.join(no_texts)}" if no_texts else ""

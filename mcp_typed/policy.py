"""How an author's functions are run: the options of a server, and what one component says instead.

Data and its checks only; `running` acts on it.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal, TypedDict

import msgspec
from pydantic import ValidationError

from mcp_core import types as t
from mcp_core.codec import JSONObject
from mcp_core.request_state import RequestStateSigner
from mcp_core.threads import MAX_WAITING, WorkerThreads
from mcp_typed.arguments import Unknown
from mcp_typed.options import one_of, positive_count, positive_seconds, refuse, switch

__all__ = ["POLICY_OPTIONS", "InvalidArgumentsHook", "Policy", "Run", "ToolKeywords"]

Run = Literal["thread", "inline"]
InvalidArgumentsHook = Callable[[str, ValidationError], "str | t.CallToolResult | Awaitable[str | t.CallToolResult]"]


class ToolKeywords(TypedDict, total=False):
    """The options of `MCPServer.tool` and `add_tool`; `None` is as if it were left out."""

    title: str | None
    """The name for people."""
    description: str | None
    """What the model reads of it. Default: the docstring."""
    annotations: t.ToolAnnotations | JSONObject | None
    """Hints for the client: read only, destructive, idempotent, open world."""
    icons: Sequence[t.Icon | JSONObject] | None
    """Icons for people."""
    meta: JSONObject | None
    """`_meta` of the tool in `tools/list`."""
    structured_output: bool | None
    """True: a return annotation without a schema is an error. False: the result is text only. Default: structured
    where the annotation has a schema."""
    run: Run | None
    """Where a plain function runs: in a worker thread, or inline on the event loop, where it must not block."""
    timeout: float | None
    """Seconds that a call may take, waiting for its slot not included; `math.inf` is none."""
    max_concurrency: int | None
    """Calls that run at a time; further ones wait, up to `max_waiting` of the server."""
    unknown_arguments: Unknown | None
    """Whether arguments that the tool does not have are ignored or refused."""


POLICY_OPTIONS: Final = ("run", "timeout", "max_concurrency", "unknown_arguments")
"""Those that say how the tool is run; the others are what `tools/list` has."""


class Policy(msgspec.Struct, kw_only=True, frozen=True):
    """How tools are run: a server's defaults, with what one tool says instead.

    `timeout` is in seconds. `run` is where plain functions run. `max_waiting` is how many
    calls may wait for their turn, where `max_concurrency` lets no more run.
    """

    threads: WorkerThreads
    signer: RequestStateSigner
    mask_errors: bool = True
    run: Run = "thread"
    timeout: float | None = None
    max_concurrency: int | None = None
    max_waiting: int = MAX_WAITING
    unknown_arguments: Unknown = "ignore"
    inline_refs: bool = False
    on_invalid_arguments: InvalidArgumentsHook | None = None

    def override(self, **options: object) -> Policy:
        """Return a copy with the options that are given; `None` keeps the current one.

        Raises:
            InvalidOption: An option is of no use.
        """
        given = {key: value for key, value in options.items() if value is not None}
        for option, value in given.items():
            check = _CHECKS.get(option)
            if check is not None:
                check(option, value)
        if given.get("timeout") == math.inf:
            given["timeout"] = None
        return msgspec.structs.replace(self, **given)


def _check_hook(option: str, value: object) -> None:
    if not callable(value):
        refuse(option, "a function of the tool's name and the ValidationError", value)


_CHECKS: Final[dict[str, Callable[[str, Any], None]]] = {
    "mask_errors": switch,
    "run": lambda option, value: one_of(option, value, "thread", "inline"),
    "timeout": positive_seconds,
    "max_concurrency": lambda option, value: positive_count(option, value, "calls"),
    "max_waiting": lambda option, value: positive_count(option, value, "calls"),
    "unknown_arguments": lambda option, value: one_of(option, value, "ignore", "reject"),
    "inline_refs": switch,
    "on_invalid_arguments": _check_hook,
}

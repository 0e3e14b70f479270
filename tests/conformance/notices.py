"""Tools that say something before they answer: progress, log messages, changes.

Over HTTP all of it travels on the stream of the answer; one tool closes that early.
Spec: basic/patterns/progress; server/utilities/logging; basic/transports, "Resumability".
"""

from __future__ import annotations

from typing import Final

import anyio

from mcp_core import RequestContext
from mcp_core import types as t
from tests.conformance.tools import Entry, offer, text

__all__ = ["TOOLS"]

PAUSE: Final = 0.05
"""Seconds between two messages, so that a client can see them come one by one."""

AWAY: Final = 0.2
"""Seconds for which a client is sent away."""


async def _progress(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"Completed {done} of 100")
        await anyio.sleep(PAUSE)
    return text("Progress reported")


async def _logging(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
    await ctx.log("info", "Tool execution started")
    await anyio.sleep(PAUSE)
    await ctx.log("info", "Tool processing data")
    await anyio.sleep(PAUSE)
    await ctx.log("info", "Tool execution completed")
    return text("Logged three messages")


async def _log_once(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
    # Said whoever calls: whether the client hears it is for the client to say.
    await ctx.log("info", "Logged by test_logging_tool")
    return text("Logged one message")


async def _reconnection(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
    await ctx.close_stream(retry=AWAY)
    await anyio.sleep(AWAY)
    return text("Reconnection test completed")


# Nothing really changes: the lists have to be the same afterwards, and a client that reads
# one again without need has lost nothing.


async def _tools_changed(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
    await ctx.notify_tools_changed()
    return text("Announced a change of the tools")


async def _prompts_changed(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
    await ctx.notify_prompts_changed()
    return text("Announced a change of the prompts")


TOOLS: Final[tuple[Entry, ...]] = (
    offer("test_tool_with_progress", "Reports progress three times.", _progress),
    offer("test_tool_with_logging", "Logs three messages.", _logging),
    offer("test_logging_tool", "Logs one message, to clients that want it.", _log_once),
    offer("test_reconnection", "Closes the stream and answers on the next one.", _reconnection),
    offer("test_trigger_tool_change", "Announces a change of the tools.", _tools_changed),
    offer("test_trigger_prompt_change", "Announces a change of the prompts.", _prompts_changed),
)

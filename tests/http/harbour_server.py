"""A low-level server that is slow, large or loud on request: for tests of what HTTP does then.

Tools wait for milestones that other calls reach, so that a test can wait for the very
moment that it means.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from mcp_core import RequestContext, Server
from mcp_core import types as t
from mcp_core.errors import InvalidParams
from mcp_core.subscriptions import ResourceUpdated, ToolsListChanged
from tests.http.sockets import filler
from tests.interop.bookshop import Milestones

Context: TypeAlias = RequestContext[dict[str, Any]]
Arguments: TypeAlias = dict[str, Any]
Handler: TypeAlias = Callable[[Context, Arguments], Awaitable[Any]]

milestones: Final = Milestones()
reports: Final = {"sent": 0}


async def echo(ctx: Context, arguments: Arguments) -> str:
    return str(arguments["text"])


async def large(ctx: Context, arguments: Arguments) -> str:
    """So many characters; as an event, if it reports progress first."""
    await ctx.report_progress(1)
    return filler(arguments["size"])


async def flood(ctx: Context, arguments: Arguments) -> str:
    """So many reports of so many characters each."""
    message = filler(arguments["size"])
    reports["sent"] = 0
    for number in range(arguments["count"]):
        await ctx.report_progress(number, message=message)
        reports["sent"] += 1
    return "done"


async def reports_sent(ctx: Context, arguments: Arguments) -> str:
    return str(reports["sent"])


async def linger(ctx: Context, arguments: Arguments) -> str:
    """Goes on until it is told to end, or is cancelled."""
    name = arguments["name"]
    await ctx.report_progress(1)
    milestones.reach(f"{name} started")
    try:
        await milestones.wait(f"{name} go on")
    except asyncio.CancelledError:
        milestones.reach(f"{name} cancelled")
        raise
    milestones.reach(f"{name} ended")
    return f"{name} ended"


async def linger_stubbornly(ctx: Context, arguments: Arguments) -> str:
    """Nothing ends it but the end of the process."""
    name = arguments["name"]
    milestones.reach(f"{name} started")
    await asyncio.sleep(3600)
    return "slept"


async def send_away(ctx: Context, arguments: Arguments) -> str:
    """Closes the stream of its answer, and goes on until it is told to end."""
    await ctx.report_progress(1)
    await ctx.close_stream(retry=0.01)
    return await linger(ctx, arguments)


async def reach(ctx: Context, arguments: Arguments) -> str:
    milestones.reach(arguments["name"])
    return "reached"


async def go_on(ctx: Context, arguments: Arguments) -> str:
    """Tell calls that linger to end."""
    for name in arguments["names"]:
        milestones.reach(f"{name} go on")
    return "told"


async def wait_for(ctx: Context, arguments: Arguments) -> str:
    await milestones.wait(arguments["name"])
    return "reached"


async def change_tools(ctx: Context, arguments: Arguments) -> str:
    await ctx.server.publish(ToolsListChanged())
    return "announced"


async def change_resource(ctx: Context, arguments: Arguments) -> str:
    await ctx.server.publish(ResourceUpdated(arguments["uri"]))
    return "announced"


async def peak_memory(ctx: Context, arguments: Arguments) -> str:
    """The most memory that the process ever had, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return str(peak if sys.platform == "darwin" else peak * 1024)


async def tasks(ctx: Context, arguments: Arguments) -> str:
    """How many tasks the loop has."""
    return str(len(asyncio.all_tasks()))


TOOLS: Final[dict[str, Handler]] = {
    call.__name__: call
    for call in (
        echo,
        large,
        flood,
        reports_sent,
        linger,
        linger_stubbornly,
        send_away,
        reach,
        go_on,
        wait_for,
        change_tools,
        change_resource,
        peak_memory,
        tasks,
    )
}
_LISTED: Final = [
    t.Tool(name=name, description=call.__doc__, input_schema={"type": "object"}) for name, call in TOOLS.items()
]


async def list_tools(ctx: Context, params: t.PaginatedRequestParams) -> t.ListToolsResult:
    return t.ListToolsResult(tools=_LISTED)


async def call_tool(ctx: Context, params: t.CallToolRequestParams) -> t.CallToolResult:
    if params.name not in TOOLS:
        raise InvalidParams(f"Unknown tool: {params.name}")
    text = await TOOLS[params.name](ctx, params.arguments or {})
    return t.CallToolResult(content=[t.TextContent(text=text)])


async def list_resources(ctx: Context, params: t.PaginatedRequestParams) -> t.ListResourcesResult:
    return t.ListResourcesResult(resources=[t.Resource(uri="tide://now", name="now")])


server: Server[dict[str, Any]] = Server(
    "harbour",
    version="1.0.0",
    subscriptions=True,
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
)

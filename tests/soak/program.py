"""The server that is soaked, one of whose tools tells its figures.

`python -m tests.soak.program stdio|http [PORT] [LOOP]` serves it.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Final, Literal

import anyio

from mcp_core import MCPError, RequestContext, Server
from mcp_core import types as t
from mcp_core.transports.streamable_http import InMemoryEventStore

__all__ = ["make_server"]


class Swept(InMemoryEventStore):
    """A store that can be emptied: how much it holds depends on how fast the load was of late."""

    def __init__(self) -> None:
        super().__init__(4_000_000)

    def sweep(self) -> None:
        """Forget all events: nothing is under way, so nobody comes back for them."""
        self.__init__()  # type: ignore[misc]


store: Final = Swept()


def figures() -> dict[str, int]:
    """What this process has of everything that could grow."""
    store.sweep()
    gc.collect()
    status = Path("/proc/self/status").read_text()
    return {
        "rss": int(status.split("VmRSS:")[1].split()[0]) * 1024,
        "tasks": _tasks(),
        "threads": threading.active_count(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "objects": len(gc.get_objects()),
    }


def _tasks() -> int:
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        tasks: int = trio.lowlevel.current_statistics().tasks_living
        return tasks
    return len(asyncio.all_tasks())


async def call_tool(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult | t.InputRequiredResult:
    """One of everything that a call can be."""
    name = params.name
    if name == "figures":
        return t.CallToolResult(content=[], structured_content=figures())
    if name == "fail":
        raise ValueError("as it should")
    if name == "refuse":
        raise MCPError(-32000, "no", {"n": 1})
    if name == "wait":
        await anyio.sleep_forever()
    if name == "progress":
        for step in range(3):
            await ctx.report_progress(step, 3)
        await ctx.log("info", "on the way")
    if name == "change":
        await ctx.notify_tools_changed()
        await ctx.notify_resource_updated("u://x")
    if name == "thread":
        await anyio.to_thread.run_sync(lambda: None, limiter=_few())
    if name == "again":
        return t.InputRequiredResult(request_state="s")
    if name == "step":
        await anyio.lowlevel.checkpoint()
    return t.CallToolResult(content=[t.TextContent(text=str((params.arguments or {}).get("x", "")))])


@cache
def _few() -> anyio.CapacityLimiter:
    """How many threads there are, however busy the machine is."""
    return anyio.CapacityLimiter(2)


def list_tools(ctx: RequestContext, params: t.PaginatedRequestParams) -> t.ListToolsResult:
    return t.ListToolsResult(tools=[t.Tool(name="echo", input_schema={"type": "object"})])


def list_resources(ctx: RequestContext, params: t.PaginatedRequestParams) -> t.ListResourcesResult:
    return t.ListResourcesResult(resources=[t.Resource(uri="u://x", name="x")])


def read_resource(ctx: RequestContext, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
    return t.ReadResourceResult(contents=[t.TextResourceContents(uri=params.uri, text="x")])


def make_server() -> Server:
    """The server."""
    return Server(
        "soaked",
        subscriptions=True,
        on_call_tool=call_tool,
        on_list_tools=list_tools,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )


def main(transport: str, port: str = "0", loop: Literal["asyncio", "uvloop", "trio"] = "asyncio") -> None:
    """Serve."""
    if transport == "stdio":
        make_server().run(loop=loop)
        return
    make_server().run(
        "streamable-http",
        port=int(port),
        loop=None if loop == "trio" else loop,
        event_store=store,
        max_sessions=1000,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]

"""This package's low-level server, every result built by hand. Argument: how many more tools there are to list."""

import sys
from typing import Any

import msgspec

from bench.servers.tools import by_hand, listed, listed_find
from mcp_core import RequestContext, Server
from mcp_core.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prepared,
    TextContent,
    Tool,
)

LISTED = [listed("echo", "text"), listed("add", "a", "b"), listed("records", "count"), listed("ready"), listed("big")]
TOOLS = [msgspec.convert(tool, Tool) for tool in LISTED]


# Encoded once: TOOLS has them all before the first request.
LISTING = Prepared(ListToolsResult(tools=TOOLS), same_for_all=True)


async def list_tools(ctx: RequestContext, params: PaginatedRequestParams) -> Prepared[ListToolsResult]:
    return LISTING


async def call_tool(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    texts, structured = by_hand(params.name, params.arguments or {})
    return CallToolResult(content=[TextContent(text=text) for text in texts], structured_content=structured)


server: Server[Any] = Server("bench", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


def list_more(count: int) -> None:
    """Have this many tools more to list."""
    TOOLS.extend(msgspec.convert(listed_find(number), Tool) for number in range(count))


if __name__ == "__main__":
    list_more(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    server.run()

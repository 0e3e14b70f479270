"""The official SDK's low-level server, every result built by hand. Argument: how many more tools there are to list."""

import sys
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

from bench.servers.tools import by_hand, listed, listed_find

LISTED = [listed("echo", "text"), listed("add", "a", "b"), listed("records", "count"), listed("ready"), listed("big")]
TOOLS = [Tool.model_validate(tool) for tool in LISTED]


async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
    return ListToolsResult(tools=TOOLS)


async def call_tool(ctx: Any, params: CallToolRequestParams) -> CallToolResult:
    texts, structured = by_hand(params.name, params.arguments or {})
    return CallToolResult(content=[TextContent(text=text) for text in texts], structured_content=structured)


server: Server[Any] = Server("bench", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def list_more(count: int) -> None:
    """Have this many tools more to list."""
    TOOLS.extend(Tool.model_validate(listed_find(number)) for number in range(count))


if __name__ == "__main__":
    list_more(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    anyio.run(main)

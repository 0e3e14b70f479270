"""This package's low-level server. Argument: the loop."""

import sys
from typing import Any

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

TOOL = Tool(
    name="echo",
    description="Say it again.",
    input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)


LISTING = Prepared(ListToolsResult(tools=[TOOL]), same_for_all=True)


async def list_tools(ctx: RequestContext, params: PaginatedRequestParams) -> Prepared[ListToolsResult]:
    return LISTING


async def call_tool(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=(params.arguments or {})["text"])])


server = Server("bench", version="1", on_list_tools=list_tools, on_call_tool=call_tool)

if __name__ == "__main__":
    loop: Any = sys.argv[1] if len(sys.argv) > 1 else "asyncio"
    server.run(loop=loop)

"""A low-level server: its author builds every result by hand, `_meta` included."""

from mcp_core import RequestContext, Server
from mcp_core.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

SEARCH = Tool(
    name="search_books",
    description="Search the catalog by title or author.",
    input_schema={
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["query", "limit"],
    },
)


async def list_tools(ctx: RequestContext, params: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(tools=[SEARCH])


async def call_tool(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    arguments = params.arguments or {}
    text = f"Found 3 books matching {arguments['query']!r} (showing up to {arguments['limit']})."
    return CallToolResult(
        content=[TextContent(text=text)],
        structured_content={"matches": 3},
        _meta={"bookshop/record_ids": ["bk_17"]},
    )


server = Server("Bookshop", version="2.0.0", on_list_tools=list_tools, on_call_tool=call_tool)

if __name__ == "__main__":
    server.run()

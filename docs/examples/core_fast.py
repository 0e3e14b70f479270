"""Results that cost little: encoded once, ready bytes, plain dicts."""

from typing import Any

from msgspec import Raw

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

OBJECT = {"type": "object"}
TOOLS = Prepared(
    ListToolsResult(tools=[Tool(name="stock", input_schema=OBJECT), Tool(name="hours", input_schema=OBJECT)]),
    same_for_all=True,
)
STOCK = Raw(b'{"dune": 3, "emma": 0}')


def list_tools(ctx: RequestContext, params: PaginatedRequestParams) -> Prepared[ListToolsResult]:
    return TOOLS


def call_tool(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult | dict[str, Any]:
    if params.name == "stock":
        return CallToolResult(content=[TextContent(text="3 of Dune")], structured_content=STOCK)
    return {"content": [{"type": "text", "text": "9 to 5"}], "_meta": {"bookshop/zone": "CET"}}


server = Server("Bookshop", on_list_tools=list_tools, on_call_tool=call_tool)

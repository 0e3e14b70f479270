"""What lives as long as the server does."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mcp_core import RequestContext, Server
from mcp_core.types import CallToolRequestParams, CallToolResult, TextContent


@dataclass
class Catalog:
    titles: list[str]


@asynccontextmanager
async def catalog(server: Server[Catalog]) -> AsyncGenerator[Catalog, None]:
    yield Catalog(["Dune", "Emma"])  # open before it, close after it


async def call_tool(ctx: RequestContext[Catalog], params: CallToolRequestParams) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=title) for title in ctx.lifespan_context.titles])


server = Server("Bookshop", lifespan=catalog, on_call_tool=call_tool)

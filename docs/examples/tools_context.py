"""A tool that knows its server's state and its client."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from mcp_core import Server
from mcp_typed import Context, MCPServer


@dataclass
class Depot:
    bikes: dict[int, str]


@asynccontextmanager
async def depot(server: Server[Any]) -> AsyncGenerator[Depot, None]:
    yield Depot({17: "Canal"})  # connect before it, disconnect after it


mcp = MCPServer("Bikes", lifespan=depot)


@mcp.tool
def find(bike: int, ctx: Context[Depot]) -> str:
    """Where a bike stands."""
    return f"{ctx.lifespan_context.bikes[bike]}, call {ctx.request_id}"

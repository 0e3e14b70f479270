"""Results that come item by item, and progress on the way. Run it to see both."""

from collections.abc import AsyncIterator
from typing import Any

import anyio

from mcp_core import Client
from mcp_typed import Context, MCPServer

mcp = MCPServer("Bikes")


@mcp.tool
async def inspect(stations: list[str]) -> AsyncIterator[str]:
    """Look at stations, one after the other."""
    for station in stations:
        await anyio.lowlevel.checkpoint()
        yield f"{station} is clean"


@mcp.tool
async def count(rounds: int, ctx: Context) -> int:
    """Count all bikes, several times."""
    for done in range(rounds):
        await ctx.report_progress(done + 1, rounds, f"round {done + 1}")
    return 9


async def watch(tool: str, arguments: dict[str, Any]) -> list[str]:
    """What a client is told before the result."""
    told: list[str] = []

    def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(f"{progress:g} of {total}: {message}")

    async with Client(mcp) as client:
        await client.call_tool(tool, arguments, progress_callback=on_progress)
    return told


if __name__ == "__main__":
    anyio.run(watch, "inspect", {"stations": ["Canal", "Market"]})

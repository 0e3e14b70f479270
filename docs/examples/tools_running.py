"""Where tools run, for how long, how many at once, and how they are stopped."""

import threading
import time

import anyio

from mcp_typed import Cancellation, MCPServer

mcp = MCPServer("Bikes")


@mcp.tool
async def forecast(city: str) -> str:
    """Awaits others: a task on the event loop."""
    await anyio.sleep(0.01)
    return f"dry in {city}, seen {where()}"


@mcp.tool
def invoice(month: int) -> str:
    """Blocks: a worker thread."""
    time.sleep(0.01)
    return f"invoice {month}, made {where()}"


@mcp.tool(run="inline")
def tariff(minutes: int) -> str:
    """Takes no time: called on the event loop."""
    return f"{1.5 + minutes / 10} euros, counted {where()}"


@mcp.tool(timeout=0.1, max_concurrency=2)
async def route(start: str, end: str) -> str:
    """Two at a time, and a tenth of a second for each."""
    await anyio.sleep(60)
    return f"{start} to {end}"


@mcp.tool(timeout=0.1)
def replay(days: int, cancellation: Cancellation) -> str:
    """A thread cannot be stopped from outside; it asks whether it should."""
    for _ in range(days):
        if cancellation.wait(0.01):  # or: cancellation.check(), which raises
            break
    return "read by nobody, if it was cancelled"


def where() -> str:
    return "on the loop" if threading.current_thread() is threading.main_thread() else "in a thread"

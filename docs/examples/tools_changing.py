"""Tools that come and go while clients are connected."""

from mcp_core import Client
from mcp_typed import MCPServer

mcp = MCPServer("Bikes")


@mcp.tool
def open_workshop() -> str:
    """Let repairs be booked."""
    mcp.add_tool(book_repair, title="Book a repair")
    return "The workshop is open."


@mcp.tool
def close_workshop() -> str:
    """Let repairs be booked no longer."""
    mcp.remove_tool("book_repair")
    return "The workshop is closed."


def book_repair(bike: int) -> str:
    """Book a repair."""
    return f"Bike {bike} is booked in."


async def watch() -> list[str]:
    """The names of the tools, each time that the client hears of a change."""
    seen: list[str] = []
    async with Client(mcp) as client, client.listen(tools_list_changed=True) as changes:
        for tool in ("open_workshop", "close_workshop"):
            await client.call_tool(tool)
            await anext(changes)
            seen.append(", ".join(each.name for each in (await client.list_tools()).tools))
    return seen

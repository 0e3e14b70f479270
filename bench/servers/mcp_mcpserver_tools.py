"""The official SDK's decorator server with all tools. Argument: how many more there are to list."""

import sys

from mcp.server.mcpserver import MCPServer

from bench.servers.tools import FUNCTIONS, big, find

mcp = MCPServer("bench", version="1", log_level="ERROR")
for function in FUNCTIONS:
    mcp.add_tool(function)
mcp.add_tool(big, structured_output=False)


def list_more(count: int) -> None:
    """Have this many tools more to list."""
    for number in range(count):
        mcp.add_tool(find, name=f"find_{number}")


if __name__ == "__main__":
    list_more(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    mcp.run("stdio")

"""This package's typed server with all tools. Argument: how many more there are to list."""

import sys

from bench.servers.tools import FUNCTIONS, big, echo_def, find
from mcp_typed import MCPServer

mcp = MCPServer("bench", version="1")
for function in FUNCTIONS:
    mcp.add_tool(function)
mcp.add_tool(echo_def, name="echo_inline", run="inline")
mcp.add_tool(big, structured_output=False)


def list_more(count: int) -> None:
    """Have this many tools more to list."""
    for number in range(count):
        mcp.add_tool(find, name=f"find_{number}")


if __name__ == "__main__":
    list_more(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    mcp.run()

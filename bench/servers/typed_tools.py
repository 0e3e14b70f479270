"""This package's typed server with all tools. Argument: how many more there are to list."""

import sys

from bench.servers.tools import FUNCTIONS, echo_def, find
from mcp_typed import MCPServer

mcp = MCPServer("bench", version="1")
for function in FUNCTIONS:
    mcp.add_tool(function)
mcp.add_tool(echo_def, name="echo_inline", run="inline")

if __name__ == "__main__":
    for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else 0):
        mcp.add_tool(find, name=f"find_{number}")
    mcp.run()

"""The official SDK's decorator server with all tools. Argument: how many more there are to list."""

import sys

from mcp.server.mcpserver import MCPServer

from bench.servers.tools import FUNCTIONS, find

mcp = MCPServer("bench", version="1", log_level="ERROR")
for function in FUNCTIONS:
    mcp.add_tool(function)

if __name__ == "__main__":
    for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else 0):
        mcp.add_tool(find, name=f"find_{number}")
    mcp.run("stdio")

"""FastMCP's server with all tools. Argument: how many more there are to list."""
# A rival that is measured where it is installed:
# pyright: basic, reportMissingImports=false

import sys
from typing import Any

from fastmcp import FastMCP

from bench.servers.tools import FUNCTIONS, big, find

mcp: Any = FastMCP("bench", version="1")
for function in FUNCTIONS:
    mcp.tool(function)
mcp.tool(big, output_schema=None)


def list_more(count: int) -> None:
    """Have this many tools more to list."""
    for number in range(count):
        mcp.tool(find, name=f"find_{number}")


if __name__ == "__main__":
    list_more(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    mcp.run(transport="stdio", show_banner=False, log_level="ERROR")

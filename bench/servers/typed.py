"""This package's typed server. Argument: the loop."""

import sys
from typing import Any

from mcp_typed import MCPServer

mcp = MCPServer("bench", version="1")


@mcp.tool()
async def echo(text: str) -> str:
    """Say it again."""
    return text


if __name__ == "__main__":
    loop: Any = sys.argv[1] if len(sys.argv) > 1 else "asyncio"
    mcp.run(loop=loop)

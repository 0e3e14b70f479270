"""A server in a process of its own. Run it from the root of the repository."""

import sys
from typing import Any

import anyio

from mcp_core import Client, StdioServerParameters


async def search() -> Any:
    parameters = StdioServerParameters(command=sys.executable, args=["docs/examples/bookshop.py"])
    async with Client(parameters) as client:
        return (await client.call_tool("search_books", {"query": "dune", "limit": 5})).structured_content


if __name__ == "__main__":
    anyio.run(search)

"""A client in memory, in either era."""

from typing import Any

from bookshop import server

from mcp_core import Client
from mcp_core.client import Mode


async def search(mode: Mode) -> dict[str, Any]:
    async with Client(server, mode=mode) as client:
        result = await client.call_tool("search_books", {"query": "dune", "limit": 5})
        return {
            "revision": client.protocol_version,
            "structured": result.structured_content,
            "is_error": result.is_error,
            "meta": result.meta,
        }

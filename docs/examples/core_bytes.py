"""One message in, one out: no transport, no connection."""

from bookshop import server

REQUEST = b"""{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
    "name": "search_books",
    "arguments": {"query": "dune", "limit": 5},
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}
    }
}}"""


async def answer() -> bytes | None:
    return await server.handle(REQUEST)

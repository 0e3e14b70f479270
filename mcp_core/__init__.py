"""A low-level core for MCP servers: raw JSON-RPC, results built by hand, both protocol eras.

`docs/versioning.md` lists the other modules whose names are public.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core.context import MCPDeprecationWarning, RequestContext
from mcp_core.dispatch import CallNext, Middleware
from mcp_core.errors import (
    ConnectionClosed,
    LocalProtocolError,
    MCPCoreError,
    MCPError,
    RequestTimeout,
    ResourceNotFound,
)
from mcp_core.server import Server

if TYPE_CHECKING:
    from mcp_core.client import Client, StdioServerParameters
    from mcp_core.transports.http_client import StreamableHTTPParameters

__all__ = [
    "CallNext",
    "Client",
    "ConnectionClosed",
    "LocalProtocolError",
    "MCPCoreError",
    "MCPDeprecationWarning",
    "MCPError",
    "Middleware",
    "RequestContext",
    "RequestTimeout",
    "ResourceNotFound",
    "Server",
    "StdioServerParameters",
    "StreamableHTTPParameters",
]

_CLIENT = ("Client", "StdioServerParameters")


if not TYPE_CHECKING:  # or type checkers would take every misspelt name for one that is made here

    def __getattr__(name: str) -> object:
        # A server does not need the client; it is loaded when it is asked for.
        if name in _CLIENT:
            from mcp_core import client

            return getattr(client, name)
        if name == "StreamableHTTPParameters":
            from mcp_core.transports.http_client import StreamableHTTPParameters

            return StreamableHTTPParameters
        raise AttributeError(f"module 'mcp_core' has no attribute {name!r}")

"""A server at a URL, seen from the client: Streamable HTTP, both eras.

Each message is a POST of its own; what its response brings is handed on as if it had come
over one channel. Needs the extra `client`.
"""

from __future__ import annotations

from mcp_core.transports.http_client.channel import open_http
from mcp_core.transports.http_client.endpoint import StreamableHTTPParameters

__all__ = ["StreamableHTTPParameters", "open_http"]

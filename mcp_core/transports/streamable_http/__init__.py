"""Streamable HTTP, both protocol eras, as a plain ASGI app.

Needs nothing beyond `mcp_core`; `run` needs the extra `http`.
"""

from __future__ import annotations

from mcp_core.transports.streamable_http.app import StreamableHTTP
from mcp_core.transports.streamable_http.event_store import EventStore, InMemoryEventStore
from mcp_core.transports.streamable_http.guards import TransportSecuritySettings
from mcp_core.transports.streamable_http.options import HTTPOptions

__all__ = ["EventStore", "HTTPOptions", "InMemoryEventStore", "StreamableHTTP", "TransportSecuritySettings"]

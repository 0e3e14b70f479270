"""Typed MCP servers: tools from annotated functions, on top of `mcp_core`.

Needs pydantic: install `mcpcore[typed]`.
"""

from __future__ import annotations

try:
    import pydantic as _pydantic
except ImportError as exc:  # pragma: no cover - shown by a test in an environment without it
    raise ImportError('mcp_typed needs pydantic; install it with: pip install "mcpcore[typed]"') from exc

from mcp_typed.context import Context
from mcp_typed.errors import ToolError
from mcp_typed.server import MCPServer

__all__ = ["Context", "MCPServer", "ToolError"]

del _pydantic

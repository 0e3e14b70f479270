"""The exceptions of the typed layer."""

from __future__ import annotations

from mcp_core import MCPCoreError

__all__ = ["InvalidSignature", "ToolError"]


class ToolError(MCPCoreError):
    """Raised by a tool to tell the model what went wrong; the text always reaches it."""


class InvalidSignature(MCPCoreError, TypeError):
    """A function cannot be a tool; the text names tool, parameter and reason."""

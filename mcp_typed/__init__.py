"""Typed MCP servers: tools from annotated functions, on top of `mcp_core`.

Needs pydantic: install `mcpcore[typed]`.
"""

from __future__ import annotations

try:
    import pydantic as _pydantic
except ImportError as _exc:  # pragma: no cover - shown by a test in an environment without it
    raise ImportError('mcp_typed needs pydantic; install it with: pip install "mcpcore[typed]"') from _exc

from mcp_typed.asking import Elicit, ListRoots, Resolve, Sample
from mcp_typed.cancellation import Cancellation
from mcp_typed.context import Context
from mcp_typed.elicitation import AcceptedElicitation, CancelledElicitation, DeclinedElicitation, ElicitationResult
from mcp_typed.errors import InvalidSignature, ToolError
from mcp_typed.media import Audio, Image
from mcp_typed.results import Result
from mcp_typed.server import MCPServer

__all__ = [
    "AcceptedElicitation",
    "Audio",
    "CancelledElicitation",
    "Cancellation",
    "Context",
    "DeclinedElicitation",
    "Elicit",
    "ElicitationResult",
    "Image",
    "InvalidSignature",
    "ListRoots",
    "MCPServer",
    "Resolve",
    "Result",
    "Sample",
    "ToolError",
]

del _pydantic

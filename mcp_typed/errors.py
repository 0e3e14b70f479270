"""The exceptions of the typed layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp_core import MCPCoreError
from mcp_core.types import ContentBlock
from mcp_typed.media import Audio, Image

__all__ = ["InvalidSignature", "ToolError"]


class ToolError(MCPCoreError):
    """Raised by a tool to tell the model what went wrong; the text always reaches it.

    `content` are further blocks after the text. `data`, any JSON value, and
    `retry_after`, seconds, are written out for the model and go to the application in
    `_meta`, beside `meta`, as `mcpcore/error`. They are not structured content, which has
    to fit the tool's output schema.
    """

    def __init__(
        self,
        message: str = "",
        *,
        data: Any = None,
        content: Sequence[ContentBlock | Image | Audio] = (),
        meta: dict[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.data = data
        self.content = list(content)
        self.meta = meta
        self.retry_after = retry_after


class InvalidSignature(MCPCoreError, TypeError):
    """A function cannot be a tool; the text names tool, parameter and reason."""

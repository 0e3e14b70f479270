"""What a tool may ask for by annotating a parameter: its request and its client."""

from __future__ import annotations

from typing import Any, TypeAlias

from mcp_core import RequestContext

__all__ = ["Context"]

Context: TypeAlias = RequestContext[Any]
"""Annotate a parameter with it; it is injected, and invisible in the schema."""

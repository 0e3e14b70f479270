"""Names for what JSON becomes in Python, where its shape is not known."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["JSONObject"]

JSONObject: TypeAlias = dict[str, Any]
"""A JSON object, decoded: str, int, float, bool, None, lists and such dicts."""

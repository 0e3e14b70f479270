"""Roots: the places in the file system that the client's user works in.

Spec: client/roots (deprecated from 2026-07-28 on).
"""

from __future__ import annotations

from mcp_core.types.base import MetaObject, Result

__all__ = ["ListRootsResult", "Root"]


class Root(MetaObject, kw_only=True):
    """One place; the URI is a `file://` one."""

    uri: str
    name: str | None = None


class ListRootsResult(Result, kw_only=True):
    """All of them."""

    roots: list[Root]

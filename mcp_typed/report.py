"""Validation errors as text for a model (P-02)."""

from __future__ import annotations

from pydantic import ValidationError

__all__ = ["report"]


def report(error: ValidationError) -> str:
    """pydantic's own report, without the lines that lead to its documentation."""
    lines = str(error).splitlines()
    return "\n".join(line for line in lines if not line.startswith("    For further information visit"))

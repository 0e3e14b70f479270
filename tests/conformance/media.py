"""The smallest image and the smallest sound there are, in Base64."""

from __future__ import annotations

from typing import Final

__all__ = ["PNG", "WAV"]

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""One pixel."""

WAV: Final = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
"""A header without samples: one channel, 8 bits, 8 kHz."""

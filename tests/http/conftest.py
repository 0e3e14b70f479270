"""The server processes, for every test here."""

from __future__ import annotations

from tests.http.serving import (
    asking_server,
    conformance_server,
    core_server,
    json_server,
    stateless_server,
    typed_server,
    weather_server,
)

__all__ = [
    "asking_server",
    "conformance_server",
    "core_server",
    "json_server",
    "stateless_server",
    "typed_server",
    "weather_server",
]

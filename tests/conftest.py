"""Fixtures for all tests: every async test runs on asyncio and on trio."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.testing import flush_logs

BACKENDS = [pytest.param("asyncio", id="asyncio"), pytest.param("trio", id="trio")]


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(autouse=True)
def _earlier_records_have_come(request: pytest.FixtureRequest) -> None:
    """The library's records leave by a thread: what an earlier test has caused is not to come amid one that counts."""
    if "caplog" in request.fixturenames:
        flush_logs()

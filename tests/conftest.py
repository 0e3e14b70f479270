"""Fixtures for all tests: every async test runs on asyncio and on trio."""

from __future__ import annotations

from typing import Any

import pytest

BACKENDS = [pytest.param("asyncio", id="asyncio"), pytest.param("trio", id="trio")]


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return request.param

"""Fixtures for all tests: every async test runs on asyncio and on trio."""

from __future__ import annotations

from typing import Any

import pytest

BACKENDS = [pytest.param("asyncio", id="asyncio"), pytest.param("trio", id="trio")]


@pytest.fixture(params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return request.param


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let async tests run without a marker on each."""
    for item in items:
        if isinstance(item, pytest.Function) and _is_async(item.obj):
            item.add_marker(pytest.mark.anyio)


def _is_async(function: Any) -> bool:
    return bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & 0x80)

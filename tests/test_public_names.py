"""What is public: each `__all__` is true, and every public thing is documented."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import mcp_core
import mcp_typed


def _all_modules() -> list[ModuleType]:
    found: list[ModuleType] = []
    for package in (mcp_core, mcp_typed):
        found.append(package)
        for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if not info.name.endswith("__main__"):
                found += [importlib.import_module(info.name)]
    return found


@pytest.mark.parametrize("module", _all_modules(), ids=lambda m: m.__name__)
def test_all_names_exist_and_are_documented(module: ModuleType) -> None:
    assert module.__doc__
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f"{module.__name__}.{name} has no docstring"


def test_the_top_level_names() -> None:
    assert set(mcp_core.__all__) >= {"Client", "MCPError", "RequestContext", "Server"}
    assert set(mcp_typed.__all__) >= {"Context", "MCPServer", "ToolError"}
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        getattr(mcp_core, "Nothing")  # noqa: B009 - the type checkers know that there is none

"""What is public: each `__all__` is true, and every public thing is documented."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from types import ModuleType

import pytest

import mcp_core
import mcp_typed
from tests.public_surface import LISTING, MODULES, surface


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


def test_the_public_surface_is_the_one_that_is_listed() -> None:
    """`python -m tests.public_surface` writes the listing; `docs/versioning.md` says what that means."""
    assert LISTING.read_text() == surface()


def test_the_versioning_page_names_the_public_modules() -> None:
    page = (LISTING.parent.parent / "docs/versioning.md").read_text()
    listed = page.split("## What is public")[1].split("## What is not")[0]
    assert set(re.findall(r"`(mcp_(?:core|typed)[a-z_.]*)`", listed)) == set(MODULES)

"""How often the types say nothing: `Any` per thousand lines, and public functions that return it bare."""

from __future__ import annotations

import importlib
import inspect
import io
import tokenize
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from tests.public_surface import MODULES
from tests.requirements_table import ROOT


@pytest.mark.parametrize(("package", "most"), [("mcp_core", 20.0), ("mcp_typed", 45.0)])
def test_any_is_rare(package: str, most: float) -> None:
    lines = found = 0
    for path in sorted((ROOT / package).rglob("*.py")):
        text = path.read_text()
        lines += text.count("\n")
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        found += sum(token.type == tokenize.NAME and token.string == "Any" for token in tokens)
    rate = 1000 * found / lines
    print(f"{package}: {found} times Any in {lines} lines, {rate:.1f} per 1,000")  # noqa: T201 - seen with `pytest -s`
    assert 0 < rate <= most


def public_functions() -> Iterator[tuple[str, Any]]:
    """The functions, methods and properties of the public surface, by name."""
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                yield f"{module.__name__}.{name}", value
            elif inspect.isclass(value) and value.__module__.startswith("mcp_"):
                for member, inner in vars(value).items():
                    plain = inner.fget if isinstance(inner, property) else getattr(inner, "__func__", inner)
                    if not member.startswith("_") and inspect.isfunction(plain):
                        yield f"{module.__name__}.{name}.{member}", plain


def returns(function: Any) -> object:
    """The annotation of what it returns; `None` where a name in it cannot be resolved at run time."""
    annotation = function.__annotations__.get("return")
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, {**vars(typing), **function.__globals__})
    except NameError:
        return None


def test_no_public_function_returns_it_bare() -> None:
    bare = [
        name for name, function in public_functions() if returns(function) is Any and not typing.get_overloads(function)
    ]
    assert bare == []


def test_the_test_finds_what_it_looks_for() -> None:
    assert len(dict(public_functions())) > 200
    assert returns(returns) is object
    assert returns(lookup) is Any


def lookup() -> Any:
    """A function of the kind that is looked for."""

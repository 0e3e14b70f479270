"""The page of limits: each row names a bound that exists, its default, and a test that holds it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "limits.md"
UNITS: Final = {"": 1, "KiB": 2**10, "MiB": 2**20, "s": 1, "ms": 1e-3, "min": 60}


def rows() -> Iterator[list[str]]:
    """The cells of every row: what, bound, default, at the bound, test."""
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] not in ("what", "---"):
            yield cells


ROWS: Final = list(rows())


def value_of(bound: str) -> Any:
    """The value of a constant, `module.NAME`, or the default of an option, `module.Class(option)`."""
    path, _, option = bound.removesuffix(")").partition("(")
    module, _, name = path.rpartition(".")
    found: Any = getattr(importlib.import_module(module), name)
    if not option:
        return found
    if hasattr(found, "__struct_fields__"):
        defaults = {field.name: field.default for field in msgspec.structs.fields(found)}
        return defaults[option]
    return inspect.signature(found).parameters[option].default


def number(shown: str) -> float | None:
    """What a default says: `4 MiB`, `10,000`, `30 s`, `none`."""
    if shown == "none":
        return None
    found = re.fullmatch(r"([0-9][0-9,.]*) ?([A-Za-z]*)", shown)
    assert found is not None, f"not a number with a unit: {shown!r}"
    return float(found[1].replace(",", "")) * UNITS[found[2]]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_limit_is_what_the_page_says(row: list[str]) -> None:
    assert len(row) == 5, f"a row has five cells: {row}"
    _, bound, default, answer, test = row
    value = value_of(bound.strip("`"))
    assert value == number(default) if value is None else float(value) == pytest.approx(number(default))
    assert answer, "what happens at the bound is not said"
    file, _, name = test.strip("`").partition("::")
    functions = {
        node.name
        for node in ast.walk(ast.parse((ROOT / file).read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert name in functions, f"{file} has no test {name}"


def test_the_page_lists_limits_of_every_part() -> None:
    assert len(ROWS) == len({row[0] for row in ROWS}), "a thing is listed twice"

"""Every observed row is held by a test, and the table of them is true."""

from __future__ import annotations

import re

from tests.observed_table import PAGE, SECTIONS, number, page, rows
from tests.requirements_table import marked


def test_every_row_is_on_a_test() -> None:
    tests = marked("observed")
    assert [name for name in rows() if name not in tests] == []


def test_the_rows_are_those_of_the_sections() -> None:
    wanted = [n for first, last in SECTIONS.values() for n in range(first, last + 1)]
    assert [number(name) for name in rows()] == wanted
    assert all(row["mark"] in ("", "=", "+", "?", "=/+") for row in rows().values())
    assert all(re.fullmatch(r"kept|better|P-\d\d(, P-\d\d)*", row["outcome"]) for row in rows().values())


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page()

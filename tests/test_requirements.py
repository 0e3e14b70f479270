"""The table of requirements is true and complete, and no marker names what does not exist."""

from __future__ import annotations

import pytest

from tests.requirements_table import PAGE, marked, page, requirements


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page()


@pytest.mark.parametrize(("member", "start"), [("text", ""), ("url", "https://modelcontextprotocol.io/")])
def test_each_has_its_sentence_and_its_place(member: str, start: str) -> None:
    given = {name: row.get(member, "") for name, row in requirements().items()}
    assert [name for name, text in given.items() if not text.strip() or not text.startswith(start)] == []


def test_either_a_test_holds_it_or_there_is_a_reason() -> None:
    tests = marked("requirement")
    assert [name for name, row in requirements().items() if bool(row.get("reason")) is (name in tests)] == []


@pytest.mark.parametrize("marker", ["requirement", "case", "observed"])
def test_markers_have_the_form_of_their_ids(marker: str) -> None:
    prefix = {"requirement": "R-", "case": "C", "observed": "S-"}[marker]
    assert [name for name in marked(marker) if not name.startswith(prefix)] == []

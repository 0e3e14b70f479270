"""The table of requirements is true, and no marker names what does not exist."""

from __future__ import annotations

import pytest

from tests.requirements_table import PAGE, marked, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page()


@pytest.mark.parametrize("marker", ["requirement", "case", "observed"])
def test_markers_have_the_form_of_their_ids(marker: str) -> None:
    prefix = {"requirement": "R-", "case": "C", "observed": "S-"}[marker]
    assert [name for name in marked(marker) if not name.startswith(prefix)] == []

"""Every id of a decision that is named anywhere has a row in `docs/decisions.md`."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ID = re.compile(r"\b[PDQ]-\d\d\b")
RANGE = re.compile(r"\b([PDQ])-(\d\d) to \1-(\d\d)\b")


def named() -> dict[str, set[str]]:
    """The ids that sources, docs and tests name, with the files that do."""
    found: dict[str, set[str]] = {}
    for folder in ("mcp_core", "mcp_typed", "docs", "tests"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md") and path.name not in ("decisions.md", Path(__file__).name):
                text = path.read_text()
                ids = set(ID.findall(text))
                for letter, first, last in RANGE.findall(text):
                    ids |= {f"{letter}-{number:02}" for number in range(int(first), int(last) + 1)}
                for each in ids:
                    found.setdefault(each, set()).add(str(path.relative_to(ROOT)))
    return found


def rows() -> list[str]:
    return re.findall(r"^\| ([PDQ]-\d\d) \|", (ROOT / "docs/decisions.md").read_text(), re.MULTILINE)


def test_every_id_that_is_named_has_a_row() -> None:
    known = set(rows())
    assert {each: sorted(files) for each, files in named().items() if each not in known} == {}


def test_no_decision_has_two_rows() -> None:
    assert len(rows()) == len(set(rows()))


def test_every_row_gives_a_reason() -> None:
    lines = [line for line in (ROOT / "docs/decisions.md").read_text().splitlines() if ID.match(line[2:6])]
    assert len(lines) == len(rows())
    assert [line for line in lines if len([cell for cell in line.strip("|").split(" | ") if cell.strip()]) != 4] == []

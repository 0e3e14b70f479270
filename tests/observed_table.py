"""Which observed behaviour is kept, which is better on purpose, and which tests hold it.

`python -m tests.observed_table` writes `docs/observed.md`, from the rows in
`tests/data/observed.json` and the markers on the tests; `--check` fails when the page
is not what it would write.
"""

from __future__ import annotations

import json
from typing import Final

from tests.requirements_table import ROOT, known_only, marked, table, write

PAGE: Final = ROOT / "docs" / "observed.md"
ROWS: Final = ROOT / "tests" / "data" / "observed.json"

SECTIONS: Final = {
    "The envelope of a result": (1, 13),
    "Tools": (14, 40),
    "Structured output": (41, 62),
    "Parameters": (123, 203),
    "Return values": (204, 436),
    "Errors, context, notifications": (437, 460),
}

HEAD = """# Observed behaviour

What the official SDK (`mcp` 2.3.0) does with typed tools, row by row, and which tests hold what
this library does there. `mark`: `=` to be kept, `+` to be done better, `?` to be decided; none where
nothing was said in advance. `outcome`: kept, or better, by the decision that says how (in a value, in
a text, or in both) where there is one. A row that begins with a name is a probe: the tool of that
name in the observation, with its parameters or its return annotation.

This page is written by `python -m tests.observed_table` from the markers on the tests.
"""


def rows() -> dict[str, dict[str, str]]:
    """The rows by their ids: mark, name, outcome."""
    known: dict[str, dict[str, str]] = json.loads(ROWS.read_text())
    return known


def number(name: str) -> int:
    """The number in an id."""
    return int(name.removeprefix("S-"))


def page() -> str:
    """The page as it should be."""
    known = rows()
    tests = marked("observed")
    # Rows about the low-level server and the transports are marked too; this table has none of them.
    listed = [range(first, last + 1) for first, last in SECTIONS.values()]
    known_only(known, [name for name in tests if any(number(name) in section for section in listed)])
    lines = [HEAD]
    for title, (first, last) in SECTIONS.items():
        section = {name: _shown(row) for name, row in known.items() if first <= number(name) <= last}
        lines += [f"## {title}\n", *table(section, ["mark", "row", "outcome"], tests), ""]
    return "\n".join(lines)


def _shown(row: dict[str, str]) -> dict[str, str]:
    outcome = row["outcome"]
    if outcome.startswith("P-"):
        outcome = f"better: {outcome}"
    return {"mark": row["mark"], "row": row["name"], "outcome": outcome}


if __name__ == "__main__":
    write(PAGE, page)

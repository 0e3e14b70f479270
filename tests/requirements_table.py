"""Which requirements of the specification are covered, by which tests.

`python -m tests.requirements_table` writes `docs/requirements.md`, from
`tests/data/requirements.json` (what each id requires, where the specification says so, and why no
test holds it if none does) and the markers on the tests; `--check` fails when the page is not what
it would write.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "requirements.md"
IDS = ROOT / "tests" / "data" / "requirements.json"

HEAD = """# Requirements

What the specification asks for, in words of our own, and which tests hold it. An id leads to the
page of the specification. `level`: MUST, SHOULD and MAY, with `!` for must not and should not.
`who`: S server, C client, B both, T transport, AS authorization server.

This page is written by `python -m tests.requirements_table` from the markers on the tests.
"""


def marked(marker: str) -> dict[str, list[str]]:
    """The tests of each id, by the markers that pytest itself would see.

    Markers stand on a module, on a test, or on one row of its parameters; they may be
    computed, so the tests are imported rather than parsed: those that name the marker
    somewhere, for some others take long to import.
    """
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if f"pytest.mark.{marker}" not in path.read_text():
            continue
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        given: Any = getattr(module, "pytestmark", [])
        everywhere = _ids([given] if isinstance(given, pytest.MarkDecorator) else given, marker)
        for name, test in vars(module).items():
            if name.startswith("test") and callable(test) and test.__module__ == module.__name__:
                own = _ids(getattr(test, "pytestmark", []), marker)
                for value in dict.fromkeys(everywhere + own):
                    found[value].append(f"{path.relative_to(ROOT / 'tests')}::{name}")
    return found


def _ids(marks: Iterable[Any], marker: str) -> list[str]:
    """The ids in these marks, and in those of the rows that they parametrize with."""
    ids: list[str] = []
    for given in marks:
        mark: pytest.Mark = given.mark if isinstance(given, pytest.MarkDecorator) else given
        if mark.name == marker:
            ids += [value for value in mark.args if isinstance(value, str)]
        elif mark.name == "parametrize":
            rows: Iterable[Any] = mark.args[1] if len(mark.args) > 1 else mark.kwargs["argvalues"]
            ids += [value for row in rows for value in _ids(getattr(row, "marks", ()), marker)]
    return ids


def table(known: dict[str, dict[str, str]], columns: list[str], tests: dict[str, list[str]]) -> list[str]:
    """The lines of a table: a row for each id (a link where it has a `url`), with its columns and its tests."""
    shown = [*columns, "tests"] if tests else columns
    lines = [f"| id | {' | '.join(shown)} |", f"| {' | '.join('---' for _ in ['id', *shown])} |"]
    for name, row in known.items():
        first = f"[{name}]({row['url']})" if "url" in row else name
        cells = [first, *(_cell(row[column]) for column in columns), *([_where(tests[name])] if tests else [])]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _where(tests: list[str]) -> str:
    more = [f"and {len(tests) - 3} more"] if len(tests) > 3 else []
    return "<br>".join([*(f"`{test}`" for test in tests[:3]), *more])


def known_only(known: Collection[str], tests: Collection[str]) -> None:
    """Raises `SystemExit` where a test carries an id that does not exist."""
    strangers = sorted(set(tests) - set(known))
    if strangers:
        raise SystemExit(f"no such ids: {', '.join(strangers)}")


def requirements() -> dict[str, dict[str, str]]:
    """The rows by their ids: level, revisions, who, text, url; a reason where no test holds it."""
    known: dict[str, dict[str, str]] = json.loads(IDS.read_text())
    return known


def page() -> str:
    """The page as it should be."""
    known = requirements()
    tests = marked("requirement")
    known_only(known, tests)
    covered = {name: {**row, "requirement": row["text"]} for name, row in known.items() if name in tests}
    rest = {
        name: {**row, "requirement": row["text"], "why not": row.get("reason", "")}
        for name, row in known.items()
        if name not in tests
    }
    columns = ["requirement", "level", "who", "revisions"]
    lines = [HEAD, f"{len(covered)} of {len(known)} are covered.\n"]
    lines += ["## Covered\n", *table(covered, columns, tests)]
    lines += ["\n## Not yet\n", *table(rest, [*columns, "why not"], {})]
    return "\n".join(lines) + "\n"


def write(target: Path, page: Callable[[], str]) -> None:
    """Write a page, or with `--check` on the command line see that it is written."""
    name = target.relative_to(ROOT)
    if "--check" not in sys.argv:
        target.write_text(page())
        print(f"{name} written")
    elif not target.exists() or target.read_text() != page():
        raise SystemExit(f"{name} is out of date: write it anew, without --check")


if __name__ == "__main__":
    write(PAGE, page)

"""Which requirements of the specification are covered, by which tests.

`python -m tests.requirements_table` writes `docs/requirements.md`, from the ids in
`tests/data/requirements.json` and the markers on the tests; `--check` fails when the
page is not what it would write.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "requirements.md"
IDS = ROOT / "tests" / "data" / "requirements.json"

HEAD = """# Requirements

What the specification asks for, and which tests hold it. `level`: MUST and SHOULD, with `!` for
must not and should not. `who`: S server, C client, B both, T transport, AS authorization server.

This page is written by `python -m tests.requirements_table` from the markers on the tests.
"""


def marked(marker: str) -> dict[str, list[str]]:
    """The tests of each id, by the markers in the sources of the tests."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        module = ast.parse(path.read_text())
        everywhere = [
            value
            for node in module.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
            for value in _ids(list(ast.walk(node)), marker)
        ]
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                own = [inner for decorator in node.decorator_list for inner in ast.walk(decorator)]
                for value in dict.fromkeys(everywhere + _ids(own, marker)):
                    found[value].append(f"{path.relative_to(ROOT / 'tests')}::{node.name}")
    return found


def _ids(nodes: list[ast.AST], marker: str) -> list[str]:
    return [
        argument.value
        for node in nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"pytest.mark.{marker}"
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def page() -> str:
    """The page as it should be."""
    known: dict[str, dict[str, str]] = json.loads(IDS.read_text())
    tests = marked("requirement")
    strangers = sorted(set(tests) - set(known))
    if strangers:
        raise SystemExit(f"no such requirements: {', '.join(strangers)}")
    covered = [name for name in known if name in tests]
    lines = [HEAD, f"{len(covered)} of {len(known)} are covered.\n"]
    lines += ["## Covered\n", "| id | level | who | revisions | tests |", "| --- | --- | --- | --- | --- |"]
    for name in covered:
        row = known[name]
        shown = tests[name][:3] + ([f"and {len(tests[name]) - 3} more"] if len(tests[name]) > 3 else [])
        where = "<br>".join(f"`{test}`" if "::" in test else test for test in shown)
        lines.append(f"| {name} | {row['level']} | {row['who']} | {row['revisions']} | {where} |")
    lines += ["\n## Not yet\n", "| id | level | who | revisions |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {name} | {row['level']} | {row['who']} | {row['revisions']} |"
        for name, row in known.items()
        if name not in tests
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page, or check it."""
    if "--check" in sys.argv:
        if not PAGE.exists() or PAGE.read_text() != page():
            raise SystemExit("docs/requirements.md is out of date: run python -m tests.requirements_table")
        return
    PAGE.write_text(page())
    print(f"{PAGE.relative_to(ROOT)} written")


if __name__ == "__main__":
    main()

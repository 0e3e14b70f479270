"""Counts of what makes the source easy or hard to read, one row for each package or folder.

`python -m tests.clarity_counts` prints them for the working tree, `python -m tests.clarity_counts FOLDER` for another
checkout. Nothing is bounded here: `test_any`, `test_words` and `test_layers` do that.
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent

ROWS: Final = {
    "mcp_core and mcp_typed": ("mcp_core", "mcp_typed"),
    "mcp_core": ("mcp_core",),
    "mcp_typed": ("mcp_typed",),
    "transports, backend, dispatch, connection, results": (
        "mcp_core/transports",
        "mcp_core/backend",
        "mcp_core/dispatch.py",
        "mcp_core/connection.py",
        "mcp_core/results.py",
    ),
}

IDIOM: Final = {
    "told": r"\btold\b",
    "nobody": r"\bnobody\b",
    "whoever": r"\bwhoever\b",
    "is/be told": r"\b(?:is|be) told\b",
    "the returned call": r"\bthe returned call\b",
    "taken up": r"\btaken up\b",
    "anew": r"\banew\b",
    "what is / comes / waits": r"\bwhat (?:is|comes|waits)\b",
    "docstring Whether": r'"""Whether\b',
    "is no X": r"\bis no\b",
    "idempotent": r"\b[Ii]dempotent\b",
    "back-pressure": r"\bback-pressure\b",
    "SSE": r"\bSSE\b",
}

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    """One file."""

    text: str
    tree: ast.Module
    comments: dict[int, str]
    """Comment lines, by their number."""
    code: set[int]
    """Numbers of the lines that have code: neither blank, nor a comment, nor of a docstring."""
    any: int


def modules(root: Path, *parts: str) -> Iterator[Module]:
    """Every module below these folders, or these files."""
    for part in parts:
        path = root / part
        for file in [path] if path.suffix else sorted(path.rglob("*.py")):
            text = file.read_text()
            tree = ast.parse(text)
            tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
            comments = {each.start[0]: each.string for each in tokens if each.type == tokenize.COMMENT}
            blank = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
            code = {
                line
                for each in tokens
                if each.type not in (*blank, tokenize.ENDMARKER)
                for line in range(each.start[0], each.end[0] + 1)
            }
            code -= {line for start, end in _docstrings(tree) for line in range(start, end + 1)}
            found = sum(each.type == tokenize.NAME and each.string == "Any" for each in tokens)
            yield Module(text, tree, comments, code, found)


def _docstrings(tree: ast.AST) -> Iterator[tuple[int, int]]:
    """First and last line of every text that stands alone: docstrings, those of attributes included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.end_lineno or node.lineno


def _functions(found: list[Module]) -> Iterator[_Function]:
    for module in found:
        yield from (node for node in ast.walk(module.tree) if isinstance(node, _Function))


def _public(found: list[Module]) -> Iterator[_Function | ast.ClassDef]:
    for module in found:
        for node in module.tree.body:
            if isinstance(node, _Function | ast.ClassDef) and not node.name.startswith("_"):
                yield node
                if isinstance(node, ast.ClassDef):
                    yield from (m for m in node.body if isinstance(m, _Function) and not m.name.startswith("_"))


def _attributes(found: list[Module]) -> tuple[int, int]:
    """Attributes set in `__init__`, and how many have a docstring or a comment of their own."""
    total = explained = 0
    for module in found:
        for method in (each for each in _functions([module]) if each.name == "__init__"):
            lines = module.text.splitlines()
            for number, statement in enumerate(method.body):
                target: ast.expr | None = statement.target if isinstance(statement, ast.AnnAssign) else None
                if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                    target = statement.targets[0]
                if not (isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"):
                    continue
                total += 1
                after = method.body[number + 1] if number + 1 < len(method.body) else None
                documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                above = lines[statement.lineno - 2].strip().startswith("#")
                explained += documented or above or statement.lineno in module.comments
    return total, explained


def row(root: Path, *parts: str) -> dict[str, str]:
    """The counts of these parts, by what they are called."""
    found = list(modules(root, *parts))
    lines = [module.text.count("\n") for module in found]
    lengths = sorted((node.end_lineno or node.lineno) - node.lineno + 1 for node in _functions(found))
    public = list(_public(found))
    texts = [text for node in public if (text := ast.get_docstring(node))]
    words = [len(text.split()) for text in texts]
    code = sum(len(module.code) for module in found)
    comments = [text for module in found for text in module.comments.values()]
    ignores = sum(bool(re.search(r"type: ignore|pyright: ignore|noqa", text)) for text in comments)
    defs = [node for node in public if isinstance(node, _Function)]
    bare = sum(node.returns is not None and ast.unparse(node.returns) == "Any" for node in defs)
    attributes, explained = _attributes(found)
    return {
        "modules / lines": f"{len(found)} / {sum(lines):,}",
        "longest file": f"{max(lines)}",
        "function median / p90 / max": f"{statistics.median(lengths):.0f} / {lengths[len(lengths) * 9 // 10]} / "
        f"{lengths[-1]}",
        "public with a docstring": f"{100 * len(texts) / len(public):.0f}%",
        "words of it, median / mean": f"{statistics.median(words):.0f} / {statistics.mean(words):.0f}",
        "comment lines per 100 lines of code": f"{100 * (len(comments) - ignores) / code:.1f}",
        "Any per 1,000 lines": f"{1000 * sum(module.any for module in found) / sum(lines):.1f}",
        "public functions that return bare Any": f"{bare} of {len(defs)}",
        "ignores per 1,000 lines": f"{1000 * ignores / sum(lines):.1f}",
        "attributes of __init__ explained": f"{explained} of {attributes}",
    }


def idiom(root: Path) -> dict[str, int]:
    """Lines of the two packages that have each of the words."""
    text = "\n".join(module.text for module in modules(root, "mcp_core", "mcp_typed"))
    return {name: sum(bool(re.search(word, line)) for line in text.splitlines()) for name, word in IDIOM.items()}


def main(root: Path) -> None:
    """Print both tables."""
    columns = {name: row(root, *parts) for name, parts in ROWS.items()}
    print(f"| | {' | '.join(columns)} |")
    print(f"|{' --- |' * (len(columns) + 1)}")
    for name in next(iter(columns.values())):
        print(f"| {name} | {' | '.join(each[name] for each in columns.values())} |")
    print()
    for name, number in idiom(root).items():
        print(f"{name}: {number}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)

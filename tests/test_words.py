"""Words that have no place in this tree: `CONTRIBUTING.md` has what is written in their stead."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WORDS = ("told", "nobody", "whoever", "anew", "come by", "under way", "the returned call", "broke off")
PATTERN = re.compile(r"\b(" + "|".join(WORDS) + r")\b", re.IGNORECASE)
GENERATED = ("observed.md", "requirements.md")


def prose_of(path: Path) -> list[tuple[int, str]]:
    """The numbered lines that people read: of a module its comments and strings, of a page all but its code."""
    text = path.read_text()
    if path.suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        # From Python 3.12 on an f-string is several tokens.
        kinds = (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))
        return [(token.start[0], token.string) for token in tokens if token.type in kinds]
    found: list[tuple[int, str]] = []
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        is_code ^= line.startswith("```")
        if not is_code:
            found.append((number, re.sub(r"`[^`]*`|<!--.*?-->", "", line)))
    return found


def pages() -> list[Path]:
    return [
        *(path for folder in ("mcp_core", "mcp_typed") for path in (ROOT / folder).rglob("*.py")),
        *(path for path in (ROOT / "docs").glob("*.md") if path.name not in GENERATED),
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "SECURITY.md")),
    ]


def test_words_that_have_a_better_one_are_not_used() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in pages()
        for number, text in prose_of(path)
        for match in PATTERN.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("name", "text"), [("a.py", "x = 1  # told\n"), ("b.py", '"""Nobody."""\n'), ("c.md", "Anew.\n")]
)
def test_they_are_seen_in_comments_strings_and_pages(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert [match[0] for _, line in prose_of(tmp_path / name) for match in PATTERN.finditer(line)] != []

"""Every link from one page to another leads to a file that is there, and to a heading in it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")
PAGES = [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md"), ROOT / "tests/README.md"]


def anchors(page: Path) -> set[str]:
    """The headings of a page, as they are linked to."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    found: list[str] = []
    for link in LINK.findall(re.sub(r"`[^`]*`", "", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(f"{page.name}: {link}")
    return found


def test_no_link_is_broken() -> None:
    assert [link for page in PAGES for link in broken(page)] == []


def test_links_that_lead_nowhere_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("# One: two\n[a](#one-two) [b](#none) [c](b.md) [d](a.md#one-two) [e](https://x/y)\n")
    assert broken(page) == ["a.md: #none", "a.md: b.md"]

"""Replays the golden wire files, and compares byte for byte.

A file `tests/wire/<revision>/<case>.jsonl` is one connection to the server of
`tests/wire_server.py`. A line that begins with `> ` is sent to it as it stands; one
that begins with `< ` is the next message it must send, before anything else is sent to
it; one that begins with `# ` is for readers. A line that changes is a change on the
wire, and wants a line in the changelog.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import pytest

from mcp_core.revisions import ALL_REVISIONS, V2025_03_26, V2026_07_28
from mcp_core.testing import Inbox, RawPeer, flush_logs
from tests.wire_server import make_server

FOLDER: Final = Path(__file__).parent.parent / "wire"
FILES: Final = sorted(FOLDER.glob("*/*.jsonl"))
CASES: Final = {
    "cancellation",
    "completion",
    "errors",
    "input",
    "lifecycle",
    "logging",
    "progress",
    "prompts",
    "resources",
    "subscription",
    "tools",
}
"""What there is of every revision."""


def read_lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """The lines to send (`>`) and to expect (`<`), in order."""
    for line in path.read_bytes().splitlines():
        mark, text = line[:2].decode(), line[2:]
        if mark in ("> ", "< "):
            yield mark[0], text
        elif mark != "# ":
            raise ValueError(f"{path}: a line begins with {mark!r}")


def _has(count: int, inbox: Inbox) -> bool:
    return len(inbox.messages) >= count


async def _replay(path: Path) -> None:
    async with RawPeer.of(make_server()) as peer:
        count = 0
        for mark, text in read_lines(path):
            if mark == ">":
                peer.send(text)
                continue
            count += 1
            await peer.until(partial(_has, count))
            assert peer.messages[count - 1].decode() == text.decode()
        await anyio.wait_all_tasks_blocked()
        assert peer.messages[count:] == []


@pytest.mark.parametrize("path", [pytest.param(path, id=f"{path.parent.name}-{path.stem}") for path in FILES])
async def test_the_wire_is_as_recorded(path: Path) -> None:
    await _replay(path)
    if path.stem == "cancellation":
        # What was dropped without being awaited says so here, and not in a later test.
        gc.collect()


@pytest.mark.requirement("R-CANC-03")
@pytest.mark.parametrize("case", ["cancellation", "subscription"])
async def test_a_cancelled_request_is_no_error_in_the_log(case: str, caplog: pytest.LogCaptureFixture) -> None:
    await _replay(FOLDER / V2026_07_28 / f"{case}.jsonl")
    flush_logs()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_every_revision_has_every_case() -> None:
    found = {revision: {path.stem for path in FILES if path.parent.name == revision} for revision in ALL_REVISIONS}
    assert {revision: CASES - cases for revision, cases in found.items() if not cases >= CASES} == {}
    assert {path.parent.name for path in FILES} == set(ALL_REVISIONS)
    assert [revision for revision, cases in found.items() if "batch" in cases] == [V2025_03_26]

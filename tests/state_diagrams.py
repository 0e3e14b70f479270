"""The life cycles that have named states, drawn from their tables.

`python -m tests.state_diagrams` writes the Mermaid blocks of `docs/architecture.md`; `--check` fails where the page
is not what it would write.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from mcp_core.connection import CONNECTION_TRANSITIONS
from mcp_core.session import REQUEST_TRANSITIONS
from mcp_core.transports.streamable_http.resumable import STREAM_TRANSITIONS
from mcp_core.transports.streamable_http.sessions import SESSION_TRANSITIONS
from tests.requirements_table import ROOT, write

PAGE: Final[Path] = ROOT / "docs" / "architecture.md"

Table: TypeAlias = Mapping[Any, Mapping[str, Any]]
"""The events of each state, a member of an enum, and the states that they lead to."""

TABLES: Final[Mapping[str, Table]] = {
    "an inbound request": REQUEST_TRANSITIONS,
    "a connection": CONNECTION_TRANSITIONS,
    "an HTTP session": SESSION_TRANSITIONS,
    "a stored stream": STREAM_TRANSITIONS,
}
"""The first state of each table is where a life begins."""


def diagram(table: Table) -> str:
    """A table as a Mermaid state diagram, without the events that change nothing."""
    lines = ["stateDiagram-v2", f"    [*] --> {next(iter(table)).name}"]
    for state, events in table.items():
        by_target: dict[str, list[str]] = defaultdict(list)
        for event, after in events.items():
            if after is not state:
                by_target[after.name].append(event)
        lines += [f"    {state.name} --> {target}: {', '.join(names)}" for target, names in by_target.items()]
        if all(after is state for after in events.values()):
            lines.append(f"    {state.name} --> [*]")
    return "\n".join(lines)


def page() -> str:
    """The page, with the diagrams as they should be."""
    text = PAGE.read_text()
    for name, table in TABLES.items():
        block = f"The life of {name}:\n\n```mermaid\n{diagram(table)}\n```"
        text, number = re.subn(rf"The life of {re.escape(name)}:\n\n```mermaid\n.*?```", block, text, flags=re.DOTALL)
        if number != 1:
            raise SystemExit(f"{PAGE.name} has no block for the life of {name}")
    return text


if __name__ == "__main__":
    write(PAGE, page)

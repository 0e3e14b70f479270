"""Figures of a server over time, and whether they are flat.

Knows numbers; nothing of how they were got. What comes before the warm-up is over does
not count: caches fill, threads start, the allocator takes what it will keep.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Final

__all__ = ["Counts", "Figures", "Watch"]

Figures = dict[str, int]

WARM_UP: Final = 0.4
"""The share of all samples that does not count."""

MAY_GROW: Final[Figures] = {"rss": 4_000_000, "tasks": 3, "threads": 1, "descriptors": 3, "objects": 3000}
"""By how much a figure may be larger at the end than after the warm-up."""

MAY_GROW_BY: Final = {"rss": 0.05, "objects": 0.02}
"""The same as a share of what it was."""


@dataclass
class Counts:
    """What was done and what came of it."""

    calls: int = 0
    answers: int = 0
    errors: int = 0
    cancelled: int = 0
    notifications: int = 0
    malformed: int = 0
    disconnects: int = 0
    streams: int = 0
    resumed: int = 0
    sessions: int = 0
    faults: list[str] = field(default_factory=list[str])
    """What should not have happened."""

    def fault(self, text: str) -> None:
        """Note something that should not have happened; the first are kept."""
        if len(self.faults) < 20:
            self.faults.append(text)

    def __str__(self) -> str:
        named = {name: value for name, value in vars(self).items() if name != "faults" and value}
        return ", ".join(f"{value:,} {name}" for name, value in named.items())


class Watch:
    """Samples of a server's figures."""

    def __init__(self) -> None:
        self.samples: list[Figures] = []

    def take(self, sample: Figures) -> None:
        """Keep a sample, taken while nothing was under way."""
        self.samples.append(sample)

    def grown(self) -> list[str]:
        """Tell which figures were not flat."""
        counted = self.samples[int(len(self.samples) * WARM_UP) :]
        if len(counted) < 6:
            return ["too few samples to tell"]
        third = len(counted) // 3
        found: list[str] = []
        for name, more in MAY_GROW.items():
            first = median(sample[name] for sample in counted[:third])
            last = median(sample[name] for sample in counted[-third:])
            allowed = more + MAY_GROW_BY.get(name, 0.0) * first
            if last > first + allowed:
                found.append(f"{name} grew from {first:,.0f} to {last:,.0f} after the warm-up")
        return found

    def table(self) -> str:
        """Say what the figures were at the start, after the warm-up, and at the end."""
        marks = {"start": 0, "warm": int(len(self.samples) * WARM_UP), "end": len(self.samples) - 1}
        lines = ["".join(f"{name:>14}" for name in ("", *MAY_GROW))]
        for mark, at in marks.items():
            lines.append(f"{mark:>14}" + "".join(f"{self.samples[at][name]:>14,}" for name in MAY_GROW))
        return "\n".join(lines)

"""What a run prints, and the arithmetic of its samples.

Single times mean nothing on a shared machine; what counts is the ratio in one run.
"""

from __future__ import annotations

import importlib.util
import statistics
from typing import NamedTuple

HAS_FASTMCP = importlib.util.find_spec("fastmcp") is not None


class Contender(NamedTuple):
    """A server to be measured; `weight` scales how many calls a round has."""

    module: str
    arguments: tuple[str, ...] = ()
    weight: float = 1.0

    @property
    def label(self) -> str:
        """Its name in the table."""
        return " ".join((self.module, *self.arguments))


class Report:
    """Prints figures and bounds, and remembers what was missed."""

    def __init__(self) -> None:
        self.missed = 0

    def table(self, title: str, figures: dict[str, float], unit: str) -> None:
        """Print one figure a contender."""
        print(f"\n{title} ({unit})")
        for label, value in figures.items():
            print(f"  {label:<28}{value:>12,.1f}")

    def ratio(self, text: str, value: float) -> None:
        """Print a figure that has no bound."""
        print(f"         {text}: {value:.3g}")

    def bound(self, text: str, value: float, least: float | None = None, most: float | None = None) -> None:
        """Print a figure with its bound, and count it if it is missed."""
        good = (least is None or value >= least) and (most is None or value <= most)
        sign, limit = (">=", least) if least is not None else ("<=", most)
        print(f"  {'ok    ' if good else 'MISSED'} {text}: {value:.3g} (bound {sign} {limit:g})")
        self.missed += not good


def median_of(samples: dict[Contender, list[float]]) -> dict[Contender, float]:
    return {contender: statistics.median(values) for contender, values in samples.items()}


def labelled(figures: dict[Contender, float]) -> dict[str, float]:
    return {contender.label: value for contender, value in figures.items()}


def medians(samples: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in samples.items()}


def times(one: list[float], other: list[float]) -> float:
    """How many times the other: the median over the rounds, each of which had its own weather."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True))

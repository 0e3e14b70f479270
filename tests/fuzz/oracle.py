"""What must hold whatever comes in: the form of answers, and what an input costs.

Knows JSON-RPC and clocks; nothing of how inputs are made. Costs are CPU time and bytes of
answer for each byte of input. CPU time is noisy, so a measurement beyond its bound is
repeated, and the least counts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

__all__ = [
    "ANSWER_BYTES",
    "ANSWER_RATIO",
    "CPU_NS",
    "CPU_NS_PER_BYTE",
    "Tally",
    "Violation",
    "check_message",
    "in_batch",
    "is_answer",
    "key_of",
    "shown",
]

CPU_NS: Final = 3_000_000
"""What any input may cost, however short: a full garbage collection among it."""

CPU_NS_PER_BYTE: Final = 150
"""What each byte of an input may cost where it is served: read, validated, run, answered."""

ANSWER_BYTES: Final = 24_000
"""What may come back for any input, however short."""

ANSWER_RATIO: Final = 8
"""Bytes that may come back for each byte that was sent."""

REPEATS: Final = 5
SHORT: Final = 2_000
"""An input counts as at least so many bytes when costs are told by the byte: each has a price of its own."""


class Violation(Exception):
    """The invariant does not hold."""


class Tally:
    """What was sent, what came back, and the worst that an input has cost."""

    def __init__(self) -> None:
        self.messages = 0
        self.answers = 0
        self.lost = 0
        self.doubled = 0
        self.exceptions = 0
        self.worst_ns = 0.0
        self.worst_ratio = 0.0
        self.slowest: bytes = b""
        self.loudest: bytes = b""
        self.sent: list[bytes] = []
        """The inputs of the round under way."""

    def begin(self) -> None:
        """Begin a round."""
        self.sent.clear()

    def sends(self, data: bytes) -> None:
        """Note an input before it goes in."""
        self.messages += 1
        self.sent.append(data)

    def answered(self, data: bytes, size: int) -> None:
        """Note how much came back for an input.

        Raises:
            Violation: Too much.
        """
        ratio = size / max(len(data), SHORT)
        if ratio > self.worst_ratio:
            self.worst_ratio, self.loudest = ratio, data
        if size > ANSWER_BYTES + ANSWER_RATIO * len(data):
            raise Violation(f"{size} bytes were answered to {len(data)}: {shown(data)}")

    def took(
        self, data: bytes, nanoseconds: float, again: Callable[[], object], *, per_byte: float | None = None
    ) -> None:
        """Note what an input took; `again` does the same once more, where it is to be looked at closely.

        Raises:
            Violation: Too long, in CPU time, at each of several tries.
        """
        allowed = CPU_NS + (CPU_NS_PER_BYTE if per_byte is None else per_byte) * len(data)
        if nanoseconds > allowed or nanoseconds / max(len(data), SHORT) > self.worst_ns:
            nanoseconds = least(again, allowed, nanoseconds)
            self._note(data, nanoseconds, allowed)

    async def took_async(
        self, data: bytes, nanoseconds: float, again: Callable[[], Awaitable[object]], *, per_byte: float | None = None
    ) -> None:
        """The same for what is awaited."""
        allowed = CPU_NS + (CPU_NS_PER_BYTE if per_byte is None else per_byte) * len(data)
        if nanoseconds > allowed or nanoseconds / max(len(data), SHORT) > self.worst_ns:
            for _ in range(REPEATS):
                begun = time.process_time_ns()
                await again()
                nanoseconds = min(nanoseconds, time.process_time_ns() - begun)
                if nanoseconds < allowed / 2:
                    break
            self._note(data, nanoseconds, allowed)

    def _note(self, data: bytes, nanoseconds: float, allowed: float) -> None:
        cost = nanoseconds / max(len(data), SHORT)
        if cost > self.worst_ns:
            self.worst_ns, self.slowest = cost, data
        if nanoseconds > allowed:
            raise Violation(f"{nanoseconds / 1e6:.1f} ms of CPU for {len(data)} bytes: {shown(data)}")

    def add(self, other: Tally) -> None:
        """Take in what another process has counted."""
        self.messages += other.messages
        self.answers += other.answers
        self.lost += other.lost
        self.doubled += other.doubled
        self.exceptions += other.exceptions
        if other.worst_ns > self.worst_ns:
            self.worst_ns, self.slowest = other.worst_ns, other.slowest
        if other.worst_ratio > self.worst_ratio:
            self.worst_ratio, self.loudest = other.worst_ratio, other.loudest

    def summary(self) -> str:
        """The counters in one line."""
        return (
            f"{self.messages} messages, {self.answers} answers, {self.lost} lost, {self.doubled} doubled, "
            f"{self.exceptions} exceptions; worst cost per byte: {self.worst_ns:.1f} ns, {self.worst_ratio:.2f} bytes"
        )

    def worst(self) -> str:
        """What the two worst inputs were."""
        return f"  slowest: {shown(self.slowest)}\n  loudest: {shown(self.loudest)}\n"


def least(again: Callable[[], object], enough: float, first: float = float("inf")) -> float:
    """The least CPU time in nanoseconds that this takes of several times; of fewer, once it is well within."""
    best = first
    for _ in range(REPEATS):
        begun = time.process_time_ns()
        again()
        best = min(best, time.process_time_ns() - begun)
        if best < enough / 2:
            break
    return best


def shown(data: bytes) -> str:
    """Bytes as they can be read, and how many more there are."""
    return repr(data) if len(data) <= 500 else f"{data[:150]!r}...{data[-40:]!r} ({len(data)} bytes)"


# --- answers -------------------------------------------------------------------------------


def check_message(data: bytes) -> list[Any]:
    """The messages in what was sent: one, or those of a batch.

    Raises:
        Violation: It is no JSON-RPC, or not on one line.
    """
    if b"\n" in data or b"\r" in data:
        raise Violation(f"a line break in {data!r}")
    try:
        value: Any = json.loads(data.decode())
    except ValueError as exc:
        raise Violation(f"no JSON ({exc}): {data!r}") from None
    if isinstance(value, list) and not value:
        raise Violation("an empty batch was sent")
    sent = in_batch(value)
    for message in sent:
        _check_one(message)
    return sent


def in_batch(value: Any) -> list[Any]:
    """The elements of a batch; else the value alone."""
    elements = cast("list[Any]", value) if isinstance(value, list) else [value]
    return elements


def _check_one(value: Any) -> None:
    if not isinstance(value, dict):
        raise Violation(f"no JSON-RPC message: {value!r}")
    message = cast("dict[str, Any]", value)
    if message.get("jsonrpc") != "2.0":
        raise Violation(f"no JSON-RPC message: {message!r}")
    if "id" in message and type(message["id"]) not in (int, str):
        raise Violation(f"an illegal id: {message!r}")
    if "method" in message:
        fine = isinstance(message["method"], str) and isinstance(message.get("params", {}), dict)
        fine = fine and "result" not in message and "error" not in message
    elif "error" in message:
        error = message["error"]
        fine = "result" not in message and type(error["code"]) is int and isinstance(error["message"], str)
    else:
        fine = isinstance(message.get("result"), dict) and "id" in message
    if not fine:
        raise Violation(f"an invalid message: {message!r}")


def is_answer(message: Any) -> bool:
    """Whether a message answers something."""
    return bool("method" not in message)


def key_of(request_id: Any) -> str:
    """An id as a key: 1, True, 1.0 and "1" are four."""
    return str(request_id) if type(request_id) is int else json.dumps(request_id)

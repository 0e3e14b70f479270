"""Target `typed`: arguments of any shape to typed tools, those that need repair (P-15) and unknown ones among them.

The invariant: each call has one answer; a tool that is no fault of its own is never a
crash ("error id"); what does not fit is told in less than it takes to say it, in time that
is proportional to its size.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Annotated, Any, Final, Literal, TypedDict
from uuid import UUID

import msgspec
from pydantic import BaseModel, Field

from mcp_core.testing import modern_meta
from mcp_typed import MCPServer
from tests.fuzz.corpus import TEXTS
from tests.fuzz.generator import mutated
from tests.fuzz.oracle import Tally, Violation, check_message

__all__ = ["Typed", "arguments_of", "make_typed"]

ROUND: Final = 500

REPORT_NS_PER_BYTE: Final = 1000
"""What each byte of arguments may cost in which every value is wrong: pydantic makes an error of each."""


BLOCK_BYTES: Final = 32
"""What is put around each element of a list, which is a content block of its own."""


class Colour(Enum):
    RED = "red"
    BLUE = 2


class Point(BaseModel):
    x: float
    y: float = 0.0


class Node(BaseModel):
    value: int
    children: list[Node] = []


class Row(msgspec.Struct):
    key: str
    values: list[int] = []


@dataclass
class Pair:
    left: Point
    right: Point | None = None


class Options(TypedDict, total=False):
    depth: int
    names: list[str]


def make_typed(unknown: Literal["ignore", "reject"]) -> MCPServer:
    """A server with tools of many types, none of which fails by itself."""
    mcp = MCPServer("typed", unknown_arguments=unknown, mask_errors=True)

    @mcp.tool(run="inline")
    def numbers(a: int, b: float = 0.0, c: bool = False, d: Decimal | None = None) -> str:
        return "done"

    @mcp.tool(run="inline")
    def containers(a: list[int], b: dict[str, int] | None = None, c: tuple[int, str] = (1, ""), d: Any = None) -> str:
        return "done"

    @mcp.tool(run="inline")
    def models(a: Point, b: Node | None = None, c: Pair | None = None, d: Row | None = None) -> str:
        return "done"

    @mcp.tool(run="inline")
    def texts(
        a: Annotated[str, Field(max_length=100)], b: bytes = b"", c: Literal["x", "y"] = "x", d: Colour = Colour.RED
    ) -> str:
        return "done"

    @mcp.tool(run="inline")
    def moments(a: date, b: datetime | None = None, c: UUID | None = None, d: Options | None = None) -> str:
        return "done"

    @mcp.tool(run="inline")
    def unions(a: int | str | Point, b: list[Point] | Point | None = None, c: set[int] = set(), d: None = None) -> str:  # noqa: B006
        return "done"

    @mcp.tool(run="inline")
    def echo(a: Any = None, b: list[Any] | None = None, c: dict[str, Any] | None = None) -> Any:
        return a

    return mcp


TOOLS: Final = ["numbers", "containers", "models", "texts", "moments", "unions", "echo"]
NAMES: Final = ["a", "b", "c", "d", "A", "aa", "", "__class__", "self", "\u00e9", "p0", "x" * 300]
VALUES: Final[list[Any]] = [
    None,
    True,
    0,
    -1,
    2**70,
    1e308,
    0.1,
    "",
    "x",
    "1",
    "true",
    "null",
    "[1, 2]",
    '{"x": 1}',
    '{"x": "1", "y": null}',
    "[" * 300,
    '"' * 100,
    "2020-01-01",
    "2020-01-01T00:00:00Z",
    "12345678-1234-5678-1234-567812345678",
    "\ud800",
    "\u2028\x00",
    "NaN",
    "red",
    [],
    {},
    [1, "2", 3.0],
    [1, "a"],
    {"x": 1},
    {"x": 1, "y": "2"},
    {"value": 1, "children": [{"value": "2"}]},
    {"left": {"x": 1}, "right": {"x": "q"}},
    {"key": "k", "values": [1, "2"]},
    {"depth": 1, "names": "n"},
    [[[[]]]],
    {"result": [{}]},
]


def arguments_of(rng: random.Random) -> bytes:
    """Arguments as JSON, or nearly."""
    kind = rng.random()
    if kind < 0.01:
        text = rng.choice(list(TEXTS.values()))(rng.choice([100, 3000, 20_000]))
        return b'{"%b":%b}' % (rng.choice([b"a", b"b", b"nobody"]), text)
    if kind < 0.02:
        count = rng.choice([20, 1000])
        wrong: Any = rng.choice(VALUES)
        many: Any = [wrong] * count if rng.random() < 0.7 else {f"k{number}": wrong for number in range(count)}
        return json.dumps(rng.choice([{"a": many}, {"b": many}, many, {"a": json.dumps(many)}])).encode()
    given: dict[str, Any] = {
        rng.choice(NAMES) if rng.random() < 0.3 else name: _value(rng) for name in "abcd"[: rng.randint(0, 4)]
    }
    data = json.dumps(given).encode()
    return mutated(rng, data) if rng.random() < 0.2 else data


def _value(rng: random.Random) -> Any:
    value = rng.choice(VALUES)
    kind = rng.random()
    if kind < 0.1:
        return json.dumps(value)  # a string that holds JSON
    if kind < 0.15:
        return json.dumps(json.dumps(value))
    if kind < 0.25:
        return [value, rng.choice(VALUES)]
    if kind < 0.3:
        return {rng.choice(NAMES): value}
    return value


class Typed:
    """Plays rounds against typed servers in this process."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._servers = [make_typed("ignore"), make_typed("reject")]

    @classmethod
    @asynccontextmanager
    async def open(cls, tally: Tally) -> AsyncGenerator[Typed, None]:
        """The target."""
        yield cls(tally)

    async def play(self, rng: random.Random, count: int) -> None:
        """A round of at most so many calls. Raises `Violation`."""
        for _ in range(min(ROUND, count)):
            server = rng.choice(self._servers).server
            name = rng.choice(TOOLS)
            params = b'"params":{"name":"%b","_meta":%b,"arguments":%b}' % (name.encode(), META, arguments_of(rng))
            message = b'{"jsonrpc":"2.0","id":1,"method":"tools/call",%b}' % params
            self._tally.sends(message)
            begun = time.process_time_ns()
            answer = await server.handle(message)
            took = time.process_time_ns() - begun
            self._check(message, answer)
            again = partial(server.handle, message)
            await self._tally.took_async(message, took, again, per_byte=REPORT_NS_PER_BYTE)

    def _check(self, message: bytes, answer: bytes | None) -> None:
        if answer is None:
            if b'"id":1' in message:
                self._tally.lost += 1
                raise Violation("no answer")
            return
        (said,) = check_message(answer)
        self._tally.answers += 1
        # How many elements a list has that a tool gives back is its author's business.
        blocks = len(said["result"]["content"]) if "result" in said else 0
        self._tally.answered(message, len(answer) - BLOCK_BYTES * blocks)
        if "error" in said:
            if said["error"]["code"] == -32603:
                raise Violation(f"an internal error: {answer!r}")
            return
        result = said["result"]
        text = "".join(block.get("text", "") for block in result["content"])
        if result.get("isError") and "error id" in text:
            raise Violation(f"a crash: {text[:300]}")


META: Final = json.dumps(modern_meta()).encode()

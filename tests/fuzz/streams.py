"""Targets `lines` and `sse`: byte streams cut anywhere, on either side's way in.

The invariant of `lines`: the same lines, and the same heads of those that are too long,
however the stream is cut. That of `sse`: the same messages however it is cut; whatever it
holds, reading comes to an end, with messages or an exception of the library's. Both in
time that is proportional to the size.
"""

from __future__ import annotations

import random
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import httpx2

from mcp_core.errors import MCPCoreError
from mcp_core.messages import Request
from mcp_core.transports.http_client.session import SessionState
from mcp_core.transports.http_client.streams import Awaited, Stream
from mcp_core.transports.lines import HEAD, LineSplitter
from tests.fuzz.corpus import TEXTS
from tests.fuzz.generator import Pool
from tests.fuzz.messages import PATIENCE
from tests.fuzz.oracle import Tally, Violation, shown

__all__ = ["Lines", "Sse", "events_of", "pieces_of", "read_events"]

ROUND: Final = 300
SSE_NS_PER_BYTE: Final = 3000
"""The parser is httpx2's, in Python, line by line."""


def pieces_of(rng: random.Random, stream: bytes) -> list[bytes]:
    """A stream in pieces, most of them longer than one byte."""
    sizes = rng.choice([[1, 2, 3], [7, 40], [1000, 1], [65536]]) if len(stream) < 5000 else [1000, 1, 65536]
    pieces: list[bytes] = []
    at = 0
    while at < len(stream):
        size = rng.choice(sizes)
        pieces.append(stream[at : at + size])
        at += size
    return pieces


class Lines:
    """Plays rounds against line splitters."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._pool = Pool(size=300)

    @classmethod
    @asynccontextmanager
    async def open(cls, tally: Tally) -> AsyncGenerator[Lines, None]:
        """The target."""
        yield cls(tally)

    async def play(self, rng: random.Random, count: int) -> None:
        """A round of at most so many streams. Raises `Violation`."""
        for _ in range(min(ROUND, count)):
            limit = rng.choice([0, 1, 20, 300, 5000, 10**6])
            ends = [b"\n", b"\n\n", b"\r\n", b" \n", b"\r", b"\x0b\n", b""]
            parts = [self._pool.take(rng).data + rng.choice(ends) for _ in range(rng.randint(0, 8))]
            stream = b"".join(parts)
            pieces = pieces_of(rng, stream)
            self._tally.sends(stream)
            begun = time.perf_counter_ns()
            got = split(pieces, limit)
            took = time.perf_counter_ns() - begun
            every = stream.split(b"\n")
            wanted = [part for part in every if len(part) <= limit and part.strip()]
            heads = [part[:HEAD] for part in every if len(part) > limit]
            if got != (wanted, heads):
                raise Violation(f"cut differently, with a limit of {limit}: {shown(stream)}")
            self._tally.answers += len(wanted)
            if len(pieces) < 50:
                self._tally.took(stream, took, lambda pieces=pieces, limit=limit: split(pieces, limit))  # type: ignore[misc]


def split(pieces: list[bytes], limit: int) -> tuple[list[bytes], list[bytes]]:
    """The lines of a stream in pieces, and the heads of those that were too long."""
    splitter = LineSplitter(limit)
    lines: list[bytes] = []
    heads: list[bytes] = []
    for piece in pieces:
        more, refused = splitter.feed(piece)
        lines += more
        heads += refused
    more, refused = splitter.end()
    return lines + more, heads + refused


# --- event streams ------------------------------------------------------------------------

FIELDS: Final = [b"data: ", b"data:", b"data", b"event: message", b"event: ", b"event: x", b"id: 1", b"id: \0", b"id"]
MORE: Final = [
    b"retry: 5",
    b"retry: -1",
    b"retry: 1e9",
    b"retry: " + b"9" * 400,
    b": comment",
    b":",
    b"unknown: x",
    b"\xef\xbb\xbf",
    b"\xff",
]
ENDS: Final = [b"\n", b"\n", b"\r\n", b"\r", b"\n\n", b"\r\n\r\n", b"\r\r", b"\n\n\n", b""]


def events_of(rng: random.Random, pool: Pool) -> bytes:
    """An event stream, or nearly."""
    if rng.random() < 0.02:
        text = rng.choice(list(TEXTS.values()))(rng.choice([300, 20_000]))
        return (
            rng.choice([b"data: %b\n\n", b"%b\n\n", b"id: %b\ndata: 1\n\n", b"event: %b\n", b"data: 1\n" * 50 + b"%b"])
            % text
        )
    parts: list[bytes] = []
    for _ in range(rng.randint(0, 10)):
        kind = rng.random()
        if kind < 0.5:
            parts.append(b"event: message\ndata: " + pool.take(rng).data + b"\n\n")
        else:
            line = rng.choice(FIELDS) if kind < 0.8 else rng.choice(MORE)
            if line.startswith(b"data"):
                line += pool.take(rng).data
            parts.append(line + rng.choice(ENDS))
    return b"".join(parts)


class _Pieces(httpx2.AsyncByteStream):
    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece

    async def aclose(self) -> None:
        """There is nothing to close."""


async def read_events(pieces: list[bytes]) -> tuple[list[bytes], str]:
    """The messages that our client takes from a stream, and the library's exception that ended it, if any."""
    taken: list[bytes] = []
    awaited = Awaited(Request(1, "tools/call", None), taken.append)  # type: ignore[arg-type]
    endpoint: Any = None
    stream = Stream(endpoint, SessionState(), taken.append, awaited)
    response = httpx2.Response(
        200,
        headers={"content-type": "text/event-stream"},
        stream=_Pieces(pieces),
        request=httpx2.Request("GET", "http://127.0.0.1/mcp"),
    )
    try:
        with anyio.fail_after(PATIENCE):
            await stream.read(response)
    except MCPCoreError as exc:
        return taken, type(exc).__name__
    return taken, ""


class Sse:
    """Plays rounds against the client's reading of event streams."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._pool = Pool(size=300)

    @classmethod
    @asynccontextmanager
    async def open(cls, tally: Tally) -> AsyncGenerator[Sse, None]:
        """The target."""
        yield cls(tally)

    async def play(self, rng: random.Random, count: int) -> None:
        """A round of at most so many streams. Raises `Violation`."""
        for _ in range(min(ROUND, count)):
            stream = events_of(rng, self._pool)
            self._tally.sends(stream)
            whole = [stream]
            begun = time.process_time_ns()
            wanted = await read_events(whole)
            took = time.process_time_ns() - begun
            self._tally.answers += len(wanted[0])
            got = await read_events(pieces_of(rng, stream))
            if got != wanted:
                raise Violation(f"read differently: {wanted} whole, {got} in pieces: {shown(stream)}")
            await self._tally.took_async(stream, took, lambda whole=whole: read_events(whole))  # type: ignore[misc]

"""Target `messages`: anything at all to `decode_frame`, to a connection, and to `Server.handle`.

Rounds alternate between a connection (both eras, batches included, as a byte stream cut
anywhere), a connection in memory, and `handle`. The invariant: no input stops the server. Every message it
sends is valid JSON-RPC, on one line; no id is answered more often than it was sent; every
legal request is answered; nothing is raised where nobody handles it; after each round a
valid request is still answered; nothing costs more than in proportion to its size.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import anyio.lowlevel

from mcp_core import Server
from mcp_core.backend import Backend, open_backend
from mcp_core.connection import Connection
from mcp_core.messages import decode_frame
from mcp_core.testing import RawPeer, modern_meta
from mcp_core.transports.lines import LineSplitter
from tests.fuzz.generator import Input, Pool
from tests.fuzz.oracle import Tally, Violation, check_message, is_answer, key_of, shown
from tests.fuzz.program import make_server

__all__ = ["Messages"]

ROUND: Final = 1500
"""Messages per round."""

PATIENCE: Final = 60.0
"""Seconds that an answer may take before it counts as lost."""

DECODE_NS_PER_BYTE: Final = 30
REVISIONS: Final = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
ALIVE: Final = json.dumps(
    {"jsonrpc": "2.0", "id": "alive", "method": "server/discover", "params": {"_meta": modern_meta()}}
).encode()


class Sink:
    """A channel that keeps what it is sent."""

    congested = False

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.size = 0
        self._waiting: Callable[[], bool] = lambda: False
        self._news = anyio.Event()

    def send(self, message: bytes, *, last: bool = False) -> None:
        """Keep a message."""
        self.messages.append(message)
        self.size += len(message)
        self._news.set()

    async def drained(self) -> None:
        """Return at once: there is always room."""

    def resume(self) -> None:
        """Nothing was held back."""

    async def until(self, ready: Callable[[], bool]) -> bool:
        """Wait until this holds; whether it came to that."""
        with anyio.move_on_after(PATIENCE):
            while not ready():
                self._news = anyio.Event()
                await self._news.wait()
        return ready()


def handshake(revision: str) -> bytes:
    """An `initialize` request."""
    params: dict[str, Any] = {
        "protocolVersion": revision,
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "fuzz", "version": "1"},
    }
    return json.dumps({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params}).encode()


class Ledger:
    """Who may be answered, who must be, and who has been."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self.may: Counter[str] = Counter({'"alive"': 1, '"init"': 1})
        self.must: set[str] = {'"alive"'}
        self._read = 0
        self._answered: Counter[str] = Counter()

    def note(self, given: Input) -> None:
        """Note what is about to be sent."""
        self._tally.sends(given.data)
        for key in given.may:
            self.may[key] += 1
        if given.must:
            self.must.add(given.may[0])

    def asks_whether_alive(self) -> None:
        """Note that `ALIVE` is about to be sent, once more."""
        self.may['"alive"'] += 1
        self.must.add('"alive"')

    def hear(self, messages: list[bytes]) -> None:
        """Check what has come since the last time.

        Raises:
            Violation: It is no message, or answers nothing.
        """
        for data in messages[self._read :]:
            for message in check_message(data):
                self._tally.answers += 1
                if is_answer(message) and "id" in message:
                    key = key_of(message["id"])
                    self._answered[key] += 1
                    self.must.discard(key)
                    if self._answered[key] > self.may[key]:
                        self._tally.doubled += 1
                        sent = self._with(message["id"])
                        raise Violation(
                            f"{self._answered[key]} answers to {self.may[key]} requests with the id {key}: {sent}"
                        )
        self._read = len(messages)

    def close(self) -> None:
        """Settle up.

        Raises:
            Violation: Somebody was not answered.
        """
        if self.must:
            self._tally.lost += len(self.must)
            first = min(self.must)
            raise Violation(
                f"{len(self.must)} requests were not answered, among them {first}: {self._with(json.loads(first))}"
            )

    def _with(self, request_id: Any) -> list[str]:
        """What was sent with this id in it, as far as that can be seen."""
        parts = str(request_id).split("\ufffd")
        return [shown(data) for data in self._tally.sent if all(part.encode() in data for part in parts)][-5:]


class Messages:
    """Plays rounds against one server."""

    def __init__(self, tally: Tally, server: Server, pool: Pool, state: Any) -> None:
        self._tally = tally
        self._server = server
        self._pool = pool
        self._state = state
        self._rounds = 0

    @classmethod
    @asynccontextmanager
    async def open(cls, tally: Tally) -> AsyncGenerator[Messages, None]:
        """The target, with its server running."""
        server = make_server()
        async with server.running() as state:
            yield cls(tally, server, Pool(), state)

    async def play(self, rng: random.Random, count: int) -> None:
        """A round of at most so many messages. Raises `Violation`."""
        kind = rng.random()
        if kind < 0.8:
            await self._to_a_connection(rng, min(ROUND, count))
        elif kind < 0.85:
            await self._in_memory(rng, min(ROUND // 5, count))
        else:
            await self._to_handle(rng, min(ROUND // 2, count))

    async def _to_a_connection(self, rng: random.Random, count: int) -> None:
        ledger, sink = Ledger(self._tally), Sink()
        async with open_backend() as backend:
            with self._server.connect(backend, sink, self._state) as connection:
                if rng.random() < 0.6:
                    connection.receive(handshake(rng.choice(REVISIONS)))
                sizes = [1, 7, 100] if rng.random() < 0.02 else [600, 5000, 200_000]
                inputs = [self._pool.take(rng) for _ in range(count if sizes[0] > 1 else count // 10)]
                for given in inputs:
                    ledger.note(given)
                for line in cut(rng, inputs, sizes):
                    self._receive(backend, connection, sink, line)
                    if rng.random() < 0.02:
                        await anyio.lowlevel.checkpoint()
                        ledger.hear(sink.messages)
                connection.receive(ALIVE)

                def settled() -> bool:
                    ledger.hear(sink.messages)
                    return not ledger.must

                await sink.until(settled)
                ledger.close()
                self._tally.answered(b"".join(self._tally.sent), sink.size)

    def _receive(self, backend: Backend, connection: Connection, sink: Sink, line: bytes) -> None:
        if len(line) > 250 and self._tally.messages % 5 == 0:
            begun = time.perf_counter_ns()
            decode_frame(line)
            took = time.perf_counter_ns() - begun
            self._tally.took(line, took, lambda: decode_frame(line), per_byte=DECODE_NS_PER_BYTE)
        before, begun = sink.size, time.perf_counter_ns()
        connection.receive(line)
        took = time.perf_counter_ns() - begun
        self._tally.answered(line, sink.size - before)

        def again() -> None:
            with self._server.connect(backend, Sink(), self._state) as other:
                if connection.handshake is not None:
                    other.handshake = connection.handshake
                other.receive(line)

        self._tally.took(line, took, again)

    async def _in_memory(self, rng: random.Random, count: int) -> None:
        ledger = Ledger(self._tally)
        async with RawPeer.of(self._server) as peer:
            if rng.random() < 0.6:
                peer.send(handshake(rng.choice(REVISIONS)))
            for _ in range(count):
                given = self._pool.take(rng)
                ledger.note(given)
                peer.send(given.data)
                if rng.random() < 0.05:
                    await anyio.lowlevel.checkpoint()
            peer.send(ALIVE)

            def settled(inbox: RawPeer) -> bool:
                ledger.hear(inbox.messages)
                return not ledger.must

            with anyio.move_on_after(PATIENCE):
                await peer.until(settled, PATIENCE)
            ledger.close()

    async def _to_handle(self, rng: random.Random, count: int) -> None:
        tally = self._tally
        for number in range(count):
            given = self._pool.take(rng)
            if given.stalls and number % 50:
                continue
            tally.sends(given.data)
            told: list[bytes] = []
            notify = told.append if rng.random() < 0.5 else None
            begun = time.perf_counter_ns()
            answer: bytes | None = None
            with anyio.move_on_after(0.02 if given.stalls else PATIENCE) as scope:
                answer = await self._server.handle(given.data, notify=notify)
            took = time.perf_counter_ns() - begun
            if not given.stalls and b"slow" not in given.data:
                if scope.cancelled_caught:
                    raise Violation("handle did not come to an end")
                await tally.took_async(given.data, took, lambda given=given: self._server.handle(given.data))  # type: ignore[misc]
            for notice in told:
                tally.answers += len(check_message(notice))
            if answer is not None:
                self._check_answer(given, answer)
            elif given.must:
                tally.lost += 1
                raise Violation("handle gave no answer")
        last = await self._server.handle(ALIVE)
        if last is None or "result" not in check_message(last)[0]:
            raise Violation(f"the server does not answer any more: {last!r}")

    def _check_answer(self, given: Input, answer: bytes) -> None:
        self._tally.answers += 1
        self._tally.answered(given.data, len(answer))
        messages = check_message(answer)
        if len(messages) != 1 or not is_answer(messages[0]):
            raise Violation(f"no answer: {answer!r}")
        if "id" in messages[0] and key_of(messages[0]["id"]) not in given.may:
            raise Violation(f"an answer under another id: {answer!r}")


def cut(rng: random.Random, inputs: list[Input], sizes: list[int]) -> list[bytes]:
    """The inputs as lines, by way of a stream that comes in pieces of these sizes."""
    stream = b"".join([given.data.replace(b"\n", b" ") + b"\n" for given in inputs])
    splitter, lines, at = LineSplitter(), list[bytes](), 0
    while at < len(stream):
        size = rng.choice(sizes)
        lines += splitter.feed(stream[at : at + size])[0]
        at += size
    wanted = sum(1 for given in inputs if given.data.strip())
    if len(lines) != wanted:
        raise Violation(f"{wanted} lines went in, {len(lines)} came out")
    return lines

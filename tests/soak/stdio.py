"""Mixed load on a server process over its pipes, many requests at a time."""

from __future__ import annotations

import json
import os
import random
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from mcp_core.testing import modern_meta
from tests.fuzz.oracle import in_batch
from tests.leash import leashed
from tests.soak.watch import Counts, Figures, Watch

__all__ = ["soak_stdio"]

ROOT: Final = Path(__file__).parents[2]
WINDOW: Final = 250
"""Requests that are sent before their answers are waited for."""

PATIENCE: Final = 60.0
META: Final = json.dumps(modern_meta()).encode()
BAD: Final = [
    b"{",
    b'{"jsonrpc":"2.0","id":1',
    b"[]",
    b"null",
    b'"' + b'\\"' * 2000,
    b"[" * 5000,
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    b"\xff\xfe",
    b"{" + b'"a":1,' * 500,
]


class _Server:
    """The process."""

    def __init__(self, loop: str) -> None:
        self.process = subprocess.Popen(
            leashed([sys.executable, "-m", "tests.soak.program", "stdio", "0", loop]),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self._in, False)
        self._rest = b""

    def exchange(self, data: bytes, done: Callable[[list[bytes]], bool]) -> None:
        """Send all of this, and read until it is done.

        Raises:
            TimeoutError: It never was.
        """
        unsent = memoryview(data)
        end = time.monotonic() + PATIENCE
        while True:
            readable, writable, _ = select.select([self._out], [self._in] if unsent else [], [], 5)
            if writable:
                try:
                    unsent = unsent[os.write(self._in, unsent[:65536]) :]
                except BlockingIOError:
                    pass  # a pipe may have room, but not for so much
            if readable:
                chunk = os.read(self._out, 1 << 20)
                if not chunk:
                    raise TimeoutError(f"the server ended with {self.process.wait()}")
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                if done(lines):
                    return
            if time.monotonic() > end:
                raise TimeoutError("not all was answered")

    def close(self) -> int:
        """End the input, and wait for the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(PATIENCE)


class _Window:
    """Some hundreds of messages, and who of them is to be answered."""

    def __init__(self, first: int, rng: random.Random, counts: Counts) -> None:
        self._next = first
        self._rng = rng
        self._counts = counts
        self.lines: list[bytes] = []
        self.waiting: set[Any] = set()
        self.may: set[Any] = set()
        self.figures: Figures | None = None

    def fill(self) -> int:
        """Make the messages; the number of the next request."""
        while len(self.waiting) < WINDOW:
            self._add(self._rng.random())
        return self._next

    def _request(self, method: str, params: bytes, *, modern: bool = True, answered: bool = True) -> int:
        self._next += 1
        members = params + (b"," if params and modern else b"") + (b'"_meta":' + META if modern else b"")
        self.lines.append(
            b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":{%b}}' % (self._next, method.encode(), members)
        )
        (self.waiting if answered else self.may).add(self._next)
        self._counts.calls += 1
        return self._next

    def call(self, tool: bytes, *, modern: bool = True, answered: bool = True) -> int:
        """A call of a tool."""
        return self._request(
            "tools/call", b'"name":"%b","arguments":{"x":"y"}' % tool, modern=modern, answered=answered
        )

    def _notify(self, method: bytes, params: bytes) -> None:
        self.lines.append(b'{"jsonrpc":"2.0","method":"%b","params":{%b}}' % (method, params))
        self._counts.notifications += 1

    def _add(self, kind: float) -> None:
        modern = self._rng.random() < 0.5
        if kind < 0.6:
            self.call(b"echo" if kind < 0.3 else b"step", modern=modern)
        elif kind < 0.68:
            self.call(self._rng.choice([b"fail", b"refuse", b"again"]), modern=modern)
        elif kind < 0.74:
            self._request("tools/call", b'"name":"progress","_meta":{"progressToken":%d}' % self._next, modern=False)
        elif kind < 0.80:
            waits = self.call(b"wait", modern=modern, answered=False)
            self._notify(b"notifications/cancelled", b'"requestId":%d' % waits)
            self._counts.cancelled += 1
        elif kind < 0.84:
            self.lines.append(self._rng.choice(BAD))
            self._counts.malformed += 1
        elif kind < 0.88:
            self._request(self._rng.choice(["tools/list", "resources/list", "server/discover"]), b"", modern=True)
        elif kind < 0.92:
            self._request(
                self._rng.choice(["resources/subscribe", "resources/unsubscribe"]), b'"uri":"u://x"', modern=False
            )
        elif kind < 0.94:
            self.call(b"change", modern=modern)
        elif kind < 0.96:
            self._listen()
        elif kind < 0.98:
            self._batch()
        else:
            self._request("bogus", b"", modern=modern)

    def _listen(self) -> None:
        """A subscription that is ended at once: answered, or told to have ended."""
        listens = self._request("subscriptions/listen", b'"notifications":{"toolsListChanged":true}', answered=False)
        self._notify(b"notifications/cancelled", b'"requestId":%d' % listens)
        self._counts.streams += 1

    def _batch(self) -> None:
        before = len(self.lines)
        for _ in range(5):
            self.call(b"echo", modern=False)
        self.lines[before:] = [b"[%b]" % b",".join(self.lines[before:])]

    def take(self, lines: list[bytes]) -> bool:
        """Take what came; whether everything has been answered."""
        for line in lines:
            value: Any = json.loads(line)
            for message in in_batch(value):
                self._one(message)
        return not self.waiting

    def _one(self, message: Any) -> None:
        if "method" in message:
            self._counts.notifications += 1
            return
        self._counts.answers += 1
        self._counts.errors += "error" in message
        number = message.get("id")
        if number in self.waiting:
            self.waiting.discard(number)
        elif number in self.may:
            self.may.discard(number)
        elif number not in (None, 1):
            self._counts.fault(f"answered twice, or never asked: {str(message)[:200]}")
        found = message.get("result", {}).get("structuredContent")
        if found and "rss" in found:
            self.figures = found


INITIALIZE: Final = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},'
    b'"clientInfo":{"name":"soak","version":"1"}}}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)


def soak_stdio(
    more: Callable[[Counts], bool], sample: Callable[[Counts], bool], seed: int, loop: str
) -> tuple[Watch, Counts]:
    """Load a server while there is to be more, and take its figures whenever it is time for it."""
    rng, watch, counts = random.Random(seed), Watch(), Counts()
    server = _Server(loop)
    server.exchange(INITIALIZE, lambda lines: b'"protocolVersion":"2025-03-26"' in b"".join(lines))
    number = 1000
    try:
        while more(counts):
            window = _Window(number, rng, counts)
            number = window.fill()
            server.exchange(b"\n".join(window.lines) + b"\n", window.take)
            if sample(counts):
                window = _Window(number, rng, counts)
                number = window.call(b"figures")
                server.exchange(window.lines[0] + b"\n", window.take)
                assert window.figures is not None
                watch.take(window.figures)
        if (code := server.close()) != 0:
            counts.fault(f"the server ended with {code}")
    except TimeoutError as exc:
        counts.fault(str(exc))
    finally:
        server.process.kill()
        server.process.wait()
    return watch, counts

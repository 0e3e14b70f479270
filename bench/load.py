"""A raw-wire load generator for stdio: bytes out, bytes in, every answer checked.

No SDK inside, so that what is measured is the server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}


def call_line(number: int) -> bytes:
    """One `tools/call` of the echo tool."""
    params = {"name": "echo", "arguments": {"text": f"hello {number}"}, "_meta": ENVELOPE}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class Server:
    """A server process at the other end of two pipes."""

    def __init__(self, module: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"bench.servers.{module}", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in = self.process.stdin.fileno()
        self._out = self.process.stdout.fileno()
        self._rest = b""
        self._number = 0

    def _read(self) -> list[bytes]:
        """The next lines, at least one."""
        while True:
            chunk = os.read(self._out, 1 << 18)
            if not chunk:
                raise RuntimeError("the server has ended")
            lines = (self._rest + chunk).split(b"\n")
            self._rest = lines.pop()
            if lines:
                return lines

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._in, data) :]

    def run(self, count: int, in_flight: int) -> float:
        """Calls per second, over this many calls, so many unanswered at a time."""
        first = self._number
        lines = [call_line(first + index) for index in range(count)]
        self._number += count
        started = time.perf_counter()
        self._write(b"".join(lines[:in_flight]))
        sent, answers = in_flight, list[bytes]()
        while len(answers) < count:
            got = self._read()
            answers += got
            if sent < count:
                self._write(b"".join(lines[sent : sent + len(got)]))
                sent += len(got)
        took = time.perf_counter() - started
        check(answers, first, count)
        return count / took

    def first_answer(self, started: float) -> float:
        """Milliseconds from `started` to the answer of a first call."""
        self._write(call_line(0))
        self._number = 1
        check(self._read(), 0, 1)
        return (time.perf_counter() - started) * 1000

    def memory(self) -> float:
        """Resident megabytes."""
        with open(f"/proc/{self.process.pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def check(answers: list[bytes], first: int, count: int) -> None:
    """Raise unless every call was answered once, with its own text."""
    seen: set[int] = set()
    for line in answers:
        answer: Any = json.loads(line)
        number = answer["id"]
        text = answer["result"]["content"][0]["text"]
        if text != f"hello {number}" or number in seen:
            raise RuntimeError(f"a wrong answer: {line!r}")
        seen.add(number)
    if seen != set(range(first, first + count)):
        raise RuntimeError("answers are missing")


@contextmanager
def running(module: str, *arguments: str) -> Generator[Server, None, None]:
    """A server process, ended at the end of the block."""
    server = Server(module, *arguments)
    try:
        yield server
    finally:
        server.close()

"""A raw-wire load generator for stdio: bytes out, bytes in, every answer checked.

No SDK inside, so that what is measured is the server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}


def message(number: int, method: str, params: dict[str, Any]) -> bytes:
    """One request of 2026-07-28, as a line."""
    return _line(number, method, {**params, "_meta": ENVELOPE})


def _line(number: int, method: str, params: dict[str, Any]) -> bytes:
    whole = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(whole, separators=(",", ":")).encode() + b"\n"


LIST = "tools/list"
"""In place of a tool's name: the list of tools itself."""

RECORDS = 100
TEXT_LENGTH = 2**20

ARGUMENTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "echo": lambda number: {"text": f"hello {number}"},
    "echo_def": lambda number: {"text": f"hello {number}"},
    "echo_inline": lambda number: {"text": f"hello {number}"},
    "add": lambda number: {"a": number, "b": 2},
    "add_def": lambda number: {"a": number, "b": 2},
    "records": lambda number: {"count": RECORDS},
    "ready": lambda number: {},
    "big": lambda number: {},
}


def handshake_line(number: int, tool: str = "echo") -> bytes:
    """The same call, as a client sends it that has shaken hands."""
    return _line(number, *_asked(number, tool))


def _asked(number: int, tool: str) -> tuple[str, dict[str, Any]]:
    """Method and params of a call."""
    return (LIST, {}) if tool == LIST else ("tools/call", {"name": tool, "arguments": ARGUMENTS[tool](number)})


def call_line(number: int, tool: str = "echo") -> bytes:
    """One `tools/call` of a tool, or one `tools/list`."""
    return message(number, *_asked(number, tool))


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
        self._rest: list[bytes] = []
        self._number = 0

    def _read(self) -> list[bytes]:
        """The next lines, at least one. No byte is looked at twice: what is measured is the server."""
        while True:
            chunk = os.read(self._out, 1 << 18)
            if not chunk:
                raise RuntimeError("the server has ended")
            first, *others = chunk.split(b"\n")
            self._rest.append(first)
            if others:
                lines = [b"".join(self._rest), *others]
                self._rest = [lines.pop()]
                return lines

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._in, data) :]

    def run(self, count: int, in_flight: int, tool: str = "echo") -> float:
        """Calls per second, over this many calls, so many unanswered at a time."""
        first = self._number
        lines = [call_line(first + index, tool) for index in range(count)]
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
        check(answers, first, count, tool)
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


def check(answers: list[bytes], first: int, count: int, tool: str = "echo") -> None:
    """Raise unless every call was answered once, with what is right for it."""
    seen: set[int] = set()
    for line in answers:
        answer: Any = json.loads(line)
        number = answer["id"]
        if number in seen or not right(tool, number, answer["result"]):
            raise RuntimeError(f"a wrong answer: {line[:2000]!r}")
        seen.add(number)
    if seen != set(range(first, first + count)):
        raise RuntimeError("answers are missing")


def right(tool: str, number: int, result: dict[str, Any]) -> bool:
    """Whether this is what a tool has to answer to the call of this number."""
    if tool == LIST:
        found = [tool for tool in result["tools"] if tool["name"].startswith("find_")]
        return len(found) >= 1000 and all("text" in tool["inputSchema"]["properties"] for tool in found)
    texts = [block["text"] for block in result["content"]]
    if tool in ("records", "ready"):
        records: list[Any] = result["structuredContent"]["result"]
        # One text for each, or one for all of them.
        said: Any = json.loads(texts[0]) if len(texts) == 1 else [json.loads(text) for text in texts]
        return [record["number"] for record in records] == list(range(RECORDS)) and said == records
    if tool == "big":
        return [len(text) for text in texts] == [TEXT_LENGTH]
    if tool.startswith("add"):
        return texts == [str(number + 2)] and result["structuredContent"] == {"result": number + 2}
    return texts == [f"hello {number}"]


@contextmanager
def running(module: str, *arguments: str) -> Generator[Server, None, None]:
    """A server process, ended at the end of the block."""
    server = Server(module, *arguments)
    try:
        yield server
    finally:
        server.close()

"""A raw-wire load generator for HTTP: so many connections kept open, one request at a time on each.

No HTTP library inside, so that what is measured is the server.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from bench.load import LIST, ROOT, call_line, check, handshake_line

MODERN, HANDSHAKE = "modern", "handshake"
CONNECTIONS: Final = 16


def headers_of(era: str, tool: str) -> list[tuple[bytes, bytes]]:
    """What a client of this era sends beside the body."""
    sent = [
        (b"host", b"127.0.0.1:8000"),  # loopback, which all let in
        (b"content-type", b"application/json"),
        (b"accept", b"application/json, text/event-stream"),
    ]
    if era == HANDSHAKE:
        return [*sent, (b"mcp-protocol-version", b"2025-11-25")]
    routing = [(b"mcp-protocol-version", b"2026-07-28"), (b"mcp-method", LIST.encode())]
    if tool != LIST:
        routing = [routing[0], (b"mcp-method", b"tools/call"), (b"mcp-name", tool.encode())]
    return [*sent, *routing]


def body_of(era: str, number: int, tool: str) -> bytes:
    """One call."""
    return (call_line if era == MODERN else handshake_line)(number, tool).rstrip()


def request_of(era: str, number: int, tool: str) -> bytes:
    """One call as it goes over the wire."""
    body = body_of(era, number, tool)
    fields = [*headers_of(era, tool), (b"content-length", b"%d" % len(body))]
    return b"POST /mcp HTTP/1.1\r\n" + b"".join(b"%b: %b\r\n" % field for field in fields) + b"\r\n" + body


class _Connection:
    """One socket, with the response that comes in on it."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pieces: list[bytes] = []
        self._missing = 0

    def send(self, request: bytes) -> None:
        self.socket.sendall(request)

    def receive(self) -> bytes | None:
        """The body of the response, once it is whole."""
        piece = self.socket.recv(1 << 20)
        if not piece:
            raise RuntimeError("the server has hung up")
        if not self._pieces:
            head, gap, piece = piece.partition(b"\r\n\r\n")
            if not gap or not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"not what was expected: {head!r}")
            self._missing = _length(head)
        self._pieces.append(piece)
        self._missing -= len(piece)
        if self._missing > 0:
            return None
        body = b"".join(self._pieces)
        self._pieces = []
        return body


def _length(head: bytes) -> int:
    start = head.lower().index(b"content-length:") + len(b"content-length:")
    end = head.find(b"\r\n", start)
    return int(head[start : end if end >= 0 else None])


class HTTPServer:
    """A server process, and the connections to it."""

    def __init__(self, module: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.http_server", module, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
        )
        assert self.process.stdout is not None
        port = int(self.process.stdout.readline())
        self._connections = {c.socket.fileno(): c for c in (_Connection(port) for _ in range(CONNECTIONS))}
        self._poll = select.epoll()
        for descriptor in self._connections:
            self._poll.register(descriptor, select.EPOLLIN)
        self._number = 0

    def run(self, count: int, tool: str = "echo", era: str = MODERN) -> tuple[float, float]:
        """Calls per second over this many calls, and microseconds of the server's CPU for one."""
        first = self._number
        requests = [request_of(era, first + index, tool) for index in range(count)]
        self._number += count
        answers: list[bytes] = []
        used, started = self._cpu(), time.perf_counter()
        waiting = iter(requests)
        for connection, request in zip(self._connections.values(), waiting, strict=False):
            connection.send(request)
        while len(answers) < count:
            for descriptor, _ in self._poll.poll():
                connection = self._connections[descriptor]
                body = connection.receive()
                if body is not None:
                    answers.append(body)
                    following = next(waiting, None)
                    if following is not None:
                        connection.send(following)
        took, used = time.perf_counter() - started, self._cpu() - used
        check(answers, first, count, tool)
        return count / took, used / count * 1e6

    def _cpu(self) -> float:
        """Seconds of CPU that the server's threads have had."""
        total = 0.0
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{thread}/schedstat") as schedstat:
                total += int(schedstat.read().split()[0]) / 1e9
        return total

    def close(self) -> None:
        """End the process."""
        self._poll.close()
        for connection in self._connections.values():
            connection.socket.close()
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def serving(module: str, *arguments: str) -> Generator[HTTPServer, None, None]:
    """A server process, ended at the end of the block."""
    server = HTTPServer(module, *arguments)
    try:
        yield server
    finally:
        server.close()

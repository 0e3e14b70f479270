"""Targets `messages` and `heads` against processes: a server on its pipes, and uvicorn on a socket.

The invariant is that of the targets in this process, as far as it can be seen from outside: what
comes back is legal, nothing is answered twice, what must be answered is; the process
lives on, without a traceback.
"""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Final

import anyio
from anyio.abc import SocketStream

from mcp_core.backend import open_backend
from mcp_core.testing import Inbox
from mcp_core.transports.lines import LineChannel
from tests.fuzz.generator import Pool
from tests.fuzz.heads import NAMES, VALUES, Request, check_body, request_of
from tests.fuzz.messages import ALIVE, PATIENCE, REVISIONS, Ledger, handshake
from tests.fuzz.oracle import Tally, Violation, shown
from tests.leash import leashed

__all__ = ["Pipe", "Sockets"]

ROOT: Final = Path(__file__).parents[2]
ROUND: Final = 1000
TRACEBACK: Final = "Traceback"


def _errors(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _blamed(text: str) -> str:
    """What was written of failures that are not the tools' own."""
    for chained in (
        "During handling of the above exception, another exception occurred:",
        "direct cause of the following exception:",
    ):
        text = text.replace(f"{chained}\n\n{TRACEBACK}", chained)
    parts = text.split(TRACEBACK)[1:]
    return next((TRACEBACK + part[:2000] for part in parts if "program.py" not in part), "")


class Pipe:
    """Plays rounds against servers on their pipes, each with a process of its own."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._pool = Pool()

    @classmethod
    @asynccontextmanager
    async def open(cls, tally: Tally) -> AsyncGenerator[Pipe, None]:
        """The target."""
        yield cls(tally)

    async def play(self, rng: random.Random, count: int) -> None:
        """As many rounds as one process stands: some twenty. Raises `Violation`."""
        loop = rng.choice(["asyncio", "asyncio", "trio"])
        command = leashed([sys.executable, "-m", "tests.fuzz.program", loop])
        with tempfile.TemporaryFile() as errors:
            pipe = subprocess.PIPE
            with subprocess.Popen(  # noqa: ASYNC220 - it is waited for in a thread
                command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=errors, bufsize=0
            ) as process:
                try:
                    await self._rounds(rng, process, count)
                    await anyio.to_thread.run_sync(lambda: process.wait(PATIENCE))
                finally:
                    process.kill()
            if process.returncode != 0:
                raise Violation(f"the server ended with {process.returncode}: {_errors(errors)[-2000:]}")
            if text := _blamed(_errors(errors)):
                raise Violation(f"a traceback: {text}")

    async def _rounds(self, rng: random.Random, process: subprocess.Popen[bytes], count: int) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        inbox, ledger = Inbox(), Ledger(self._tally)
        async with open_backend() as backend:
            channel = LineChannel(backend, process.stdout.fileno(), process.stdin.fileno())
            backend.spawn(channel.run(inbox))
            channel.send(handshake(rng.choice(REVISIONS)))
            for _ in range(20):
                self._tally.begin()
                for _ in range(min(ROUND, count // 20 + 1)):
                    given = self._pool.take(rng)
                    ledger.note(given)
                    channel.send(given.data)
                ledger.asks_whether_alive()
                channel.send(ALIVE)

                def settled(_: Inbox) -> bool:
                    ledger.hear(inbox.messages)
                    return inbox.has_ended or not ledger.must

                with anyio.move_on_after(PATIENCE):
                    await inbox.until(settled, PATIENCE)
                ledger.close()
            await channel.flush(PATIENCE)
            channel.release()
            process.stdin.close()


class Sockets:
    """Plays rounds against one uvicorn, over several connections at once."""

    def __init__(self, tally: Tally, port: int, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        self._tally = tally
        self._port = port
        self._process = process
        self._errors = errors
        self._pool = Pool()
        self._sessions: list[bytes] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, tally: Tally) -> AsyncGenerator[Sockets, None]:
        """The target, with its server running."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port: int = free.getsockname()[1]
        command = leashed([sys.executable, "-c", _SERVE, str(port)])
        with tempfile.TemporaryFile() as errors:  # noqa: SIM117
            # It is waited for in a thread.
            with subprocess.Popen(command, cwd=ROOT, stdout=errors, stderr=errors) as process:  # noqa: ASYNC220
                try:
                    await _listens(port)
                    yield cls(tally, port, process, errors)
                finally:
                    process.terminate()
                    try:
                        await anyio.to_thread.run_sync(lambda: process.wait(PATIENCE))
                    finally:
                        process.kill()

    async def play(self, rng: random.Random, count: int) -> None:
        """A round of several connections. Raises `Violation`."""
        broken: list[Violation] = []

        async def one(seed: int) -> None:
            try:
                own = random.Random(seed)
                left = max(1, min(200, count // 16))
                while left > 0:
                    left -= await self._connection(own, left)
            except Violation as exc:
                broken.append(exc)

        async with anyio.create_task_group() as tasks:
            for _ in range(16):
                tasks.start_soon(one, rng.randrange(2**32))
        if broken:
            raise broken[0]
        stream = await anyio.connect_tcp("127.0.0.1", self._port)
        async with stream:
            await stream.send(b"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            status, _, _ = await self._response(_Buffer(stream), "GET")
        if status != 404:
            raise Violation(f"the server does not answer any more: {status}")
        if self._process.poll() is not None:
            raise Violation(f"the server ended with {self._process.returncode}: {_errors(self._errors)[-3000:]}")
        if text := _blamed(_errors(self._errors)):
            raise Violation(f"a traceback: {text}")

    async def _connection(self, rng: random.Random, count: int) -> int:
        """Requests one after the other on a connection, for as long as it lasts; how many there were."""
        stream = await anyio.connect_tcp("127.0.0.1", self._port)
        async with stream:
            buffer = _Buffer(stream)
            for number in range(1, count + 1):
                request = request_of(rng, self._pool, self._sessions)
                legal = rng.random() < 0.9
                data = wire_of(rng, request) if legal else broken_wire_of(rng, request)
                self._tally.sends(data)
                try:
                    await stream.send(data)
                    if not legal and rng.random() < 0.5:
                        await stream.send_eof()
                    # What lasts until its client goes, and what waits for the rest of a request, ends this way.
                    with anyio.move_on_after(0.05 if legal else 0.02):
                        status, fields, body = await self._response(buffer, request.method)
                        self._check(data, status, fields, body)
                        if legal:
                            continue
                except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                    pass  # closed after what was no HTTP
                return number
        return count

    async def _response(self, buffer: _Buffer, method: str) -> tuple[int, dict[bytes, bytes], bytes]:
        head = await buffer.until(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        fields = {name.lower(): value for name, _, value in (line.partition(b": ") for line in lines[1:])}
        try:
            status = int(lines[0].split(b" ")[1])
        except (ValueError, IndexError):
            raise Violation(f"no HTTP response: {head[:300]!r}") from None
        if method == "HEAD" or status in (204, 304):
            return status, fields, b""
        if fields.get(b"transfer-encoding") == b"chunked":
            parts: list[bytes] = []
            while size := int(await buffer.until(b"\r\n"), 16):
                parts.append((await buffer.exactly(size + 2))[:-2])
            await buffer.exactly(2)
            return status, fields, b"".join(parts)
        return status, fields, await buffer.exactly(int(fields.get(b"content-length", b"0")))

    def _check(self, data: bytes, status: int, fields: dict[bytes, bytes], body: bytes) -> None:
        self._tally.answers += 1
        self._tally.answered(data, len(body))
        if not body.startswith((b"Invalid HTTP", b"Internal Server Error")):
            check_body(status, fields.get(b"content-type", b"").decode("latin-1"), body)
        elif status >= 500:
            raise Violation(f"status {status} to {shown(data)}")
        session = fields.get(b"mcp-session-id")
        if session is not None and len(self._sessions) < 50:
            self._sessions.append(session)


class _Buffer:
    """What has come of a connection and was not read."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._data = bytearray()

    async def until(self, end: bytes) -> bytes:
        """Everything up to this, which is dropped."""
        while (at := self._data.find(end)) < 0:
            self._data += await self._stream.receive()
        found = bytes(self._data[:at])
        del self._data[: at + len(end)]
        return found

    async def exactly(self, size: int) -> bytes:
        """So many bytes."""
        while len(self._data) < size:
            self._data += await self._stream.receive()
        found = bytes(self._data[:size])
        del self._data[:size]
        return found


def wire_of(rng: random.Random, request: Request) -> bytes:
    """A request as HTTP/1.1."""
    body = b"".join(request.pieces)
    path = request.path.encode("ascii", "replace").replace(b" ", b"") or b"/"
    method = (request.method or "POST").encode()[:20]
    lines = [b"%b %b HTTP/1.1" % (method, path)]
    lines += [
        b": ".join(field)
        for field in request.fields
        if field[0] not in (b"", b"content-length", b"transfer-encoding", b"expect")
    ]
    if rng.random() < 0.1 and body:
        at = rng.randrange(len(body))
        pieces = [piece for piece in (body[:at], body[at:]) if piece]
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        return b"\r\n".join([*lines, b"transfer-encoding: chunked"]) + b"\r\n\r\n" + chunks
    return b"\r\n".join([*lines, b"content-length: %d" % len(body)]) + b"\r\n\r\n" + body


def broken_wire_of(rng: random.Random, request: Request) -> bytes:
    """The same, wrong in a way that only HTTP can be."""
    data = wire_of(rng, request)
    how = rng.random()
    if how < 0.2:
        return data[: rng.randrange(1, len(data) + 1)]
    if how < 0.4:
        at = rng.randrange(len(data))
        return data[:at] + rng.choice([b"\r\n", b"\0", b"\n", b"\r\n\r\n", b":", b" "]) + data[at:]
    if how < 0.6:
        return data.replace(
            b"content-length: ", rng.choice([b"content-length: 9", b"content-length: -", b"content-length:"]), 1
        )
    if how < 0.8:
        return data.replace(b"\r\n", b"\r\n%b: %b\r\n" % (rng.choice(NAMES), rng.choice(VALUES)), 1)
    return data.replace(b"HTTP/1.1", rng.choice([b"HTTP/1.0", b"HTTP/2", b"HTTP/9.9", b""]), 1)


async def _listens(port: int) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            stream = await anyio.connect_tcp("127.0.0.1", port)
        except OSError:
            if time.monotonic() > end:
                raise
            await anyio.sleep(0.05)
        else:
            await stream.aclose()
            return


_SERVE: Final = """
import sys
from tests.fuzz.program import make_server
make_server().run("streamable-http", port=int(sys.argv[1]), cancel_on_disconnect=True, max_sessions=300)
"""

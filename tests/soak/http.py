"""Mixed load on a server process over sockets: raw HTTP, several requests in a write, streams that break off."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from mcp_core.testing import modern_meta
from tests.leash import leashed
from tests.soak.watch import Counts, Figures, Watch

__all__ = ["soak_http"]

ROOT: Final = Path(__file__).parents[2]
CONNECTIONS: Final = 16
TOGETHER: Final = 16
"""Requests in one write."""

PATIENCE: Final = 60.0
META: Final = json.dumps(modern_meta()).encode()
BOTH: Final = b"application/json, text/event-stream"
BAD: Final = [
    b"{",
    b"",
    b'"' + b'\\"' * 2000,
    b"[" * 5000,
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    b"\xff",
    b"[1,2,3]",
]


class Broken(Exception):
    """The server did not do as it should."""


def http(method: bytes, body: bytes, fields: list[bytes]) -> bytes:
    """One HTTP request."""
    head = [method + b" /mcp HTTP/1.1", b"Host: 127.0.0.1", b"Content-Length: %d" % len(body), *fields]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


POST_FIELDS: Final = [b"Accept: " + BOTH, b"Content-Type: application/json"]


class Wire:
    """One connection, and how responses are read from it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> Wire:
        """A new connection."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    def send(self, data: bytes) -> None:
        """Write, without waiting."""
        self._writer.write(data)

    def close(self, *, reset: bool = False) -> None:
        """Go away, politely or not."""
        if reset:
            self._writer.transport.abort()
        else:
            self._writer.close()

    async def head(self) -> tuple[int, dict[bytes, bytes]]:
        """The status and the header fields of the next response."""
        lines = (await self._reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        pairs = (line.partition(b": ") for line in lines[1:-2])
        return int(lines[0][9:12]), {name.lower(): value for name, _, value in pairs}

    async def body(self, fields: dict[bytes, bytes]) -> bytes:
        """The body that belongs to this head."""
        if b"content-length" in fields:
            return await self._reader.readexactly(int(fields[b"content-length"]))
        if fields.get(b"transfer-encoding") != b"chunked":
            return b""
        parts: list[bytes] = []
        while part := await self.chunk():
            parts.append(part)
        return b"".join(parts)

    async def chunk(self) -> bytes:
        """The next chunk of a stream; empty at its end."""
        size = int(await self._reader.readline(), 16)
        return (await self._reader.readexactly(size + 2))[:-2]

    async def response(self) -> tuple[int, dict[bytes, bytes], bytes]:
        """The next response, whole."""
        status, fields = await self.head()
        return status, fields, await self.body(fields)


class Peer:
    """One client: a connection, a session, and the ids that it uses."""

    def __init__(self, port: int, rng: random.Random, counts: Counts) -> None:
        self._port = port
        self._rng = rng
        self._counts = counts
        self._number = 0
        self._wire: Wire | None = None
        self._session: list[bytes] = []
        self._in_session = 0

    async def play(self) -> None:
        """One thing that clients do. Raises `Broken`."""
        if self._in_session <= 0:
            await self._new_session()
        self._in_session -= 1
        kind = self._rng.random()
        if kind < 0.86:
            await self._calls()
        elif kind < 0.9:
            await self._malformed()
        elif kind < 0.92:
            await self._stream()
        elif kind < 0.94:
            await self._goes_away()
        elif kind < 0.96:
            await self._listens()
        elif kind < 0.98:
            await self._subscribes()
        else:
            await self._resumes()

    async def figures(self) -> Figures:
        """What the server says of itself."""
        wire = await self._connected()
        wire.send(self._call(b"figures", modern=True)[0])
        _, _, body = await wire.response()
        found: Figures = json.loads(body)["result"]["structuredContent"]
        return found

    async def close(self) -> None:
        """End the session and the connection."""
        if self._session:
            wire = await self._connected()
            wire.send(http(b"DELETE", b"", self._session))
            await wire.response()
            self._session, self._in_session = [], 0
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    # --- what is sent ---

    async def _connected(self) -> Wire:
        if self._wire is None:
            self._wire = await Wire.open(self._port)
        return self._wire

    def _message(self, method: bytes, params: bytes, *, modern: bool) -> tuple[bytes, int]:
        self._number += 1
        members = params + (b"," if params and modern else b"") + (b'"_meta":' + META if modern else b"")
        return (
            b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":{%b}}' % (self._number, method, members),
            self._number,
        )

    def _call(self, tool: bytes, *, modern: bool, more: bytes = b"") -> tuple[bytes, int]:
        body, number = self._message(
            b"tools/call", b'"name":"%b","arguments":{"x":"y"}%b' % (tool, more), modern=modern
        )
        self._counts.calls += 1
        return http(b"POST", body, self._fields(b"tools/call", tool, modern=modern)), number

    def _fields(self, method: bytes, name: bytes | None = None, *, modern: bool) -> list[bytes]:
        if not modern:
            return [*POST_FIELDS, *self._session]
        named = [] if name is None else [b"Mcp-Name: " + name]
        return [*POST_FIELDS, b"MCP-Protocol-Version: 2026-07-28", b"Mcp-Method: " + method, *named]

    def _answers(self, status: int, body: bytes, number: int) -> None:
        """Take the answer to a request: there must be one, and no more."""
        if status != 200:
            raise Broken(f"status {status}: {body[:200]!r}")
        text = body
        if body[:1] != b"{":
            data = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: {")]
            self._counts.notifications += len(data) - 1
            text = data[-1] if data else b"null"
        answer: Any = json.loads(text)
        if answer is None or answer.get("id") != number:
            raise Broken(f"no answer to {number}: {body[:300]!r}")
        self._counts.answers += 1
        self._counts.errors += "error" in answer

    # --- what clients do ---

    async def _new_session(self) -> None:
        await self.close()
        wire = await self._connected()
        revision = self._rng.choice([b"2025-11-25", b"2025-06-18", b"2025-03-26"])
        params = b'"protocolVersion":"%b","capabilities":{},"clientInfo":{"name":"soak","version":"1"}' % revision
        body, number = self._message(b"initialize", params, modern=False)
        wire.send(http(b"POST", body, POST_FIELDS))
        status, fields, answer = await wire.response()
        self._answers(status, answer, number)
        self._session = [b"Mcp-Session-Id: " + fields[b"mcp-session-id"], b"MCP-Protocol-Version: " + revision]
        wire.send(
            http(b"POST", b'{"jsonrpc":"2.0","method":"notifications/initialized"}', [*POST_FIELDS, *self._session])
        )
        status, _, _ = await wire.response()
        if status != 202:
            raise Broken(f"status {status} for a notification")
        self._in_session = self._rng.randint(5, 50)
        self._counts.sessions += 1

    async def _calls(self) -> None:
        """Several at once on one connection, answered in turn."""
        wire = await self._connected()
        sent: list[bytes] = []
        numbers: list[int] = []
        for _ in range(TOGETHER):
            kind = self._rng.random()
            tool = (
                b"echo"
                if kind < 0.6
                else self._rng.choice([b"step", b"progress", b"fail", b"refuse", b"thread", b"again"])
            )
            modern = tool == b"again" or self._rng.random() < 0.6
            data, number = self._call(tool, modern=modern)
            sent.append(data)
            numbers.append(number)
        wire.send(b"".join(sent))
        for number in numbers:
            status, _, body = await wire.response()
            self._answers(status, body, number)

    async def _malformed(self) -> None:
        wire = await self._connected()
        fields = self._fields(b"ping", modern=self._rng.random() < 0.5)
        if self._rng.random() < 0.3:
            fields.append(
                self._rng.choice([b"Origin: http://evil", b"Accept: x", b"Mcp-Method: ping", b"Mcp-Session-Id: no"])
            )
        wire.send(http(b"POST", self._rng.choice(BAD), fields))
        status, _, body = await wire.response()
        self._counts.malformed += 1
        # A batch of junk is answered element by element.
        if not (400 <= status < 500 or (status == 200 and body.startswith(b"[") and b'"error"' in body)):
            raise Broken(f"status {status} for bad input: {body[:200]!r}")

    async def _stream(self) -> None:
        """A call with progress, answered as a stream."""
        wire = await self._connected()
        modern = self._rng.random() < 0.5
        if modern:
            meta = META[:-1] + b',"progressToken":1}'
            params = b'"name":"progress","arguments":{},"_meta":' + meta
        else:
            params = b'"name":"progress","arguments":{},"_meta":{"progressToken":1}'
        body, number = self._message(b"tools/call", params, modern=False)
        self._counts.calls += 1
        self._counts.streams += 1
        wire.send(http(b"POST", body, self._fields(b"tools/call", b"progress", modern=modern)))
        status, _, answer = await wire.response()
        self._answers(status, answer, number)

    async def _goes_away(self) -> None:
        """A client that leaves amid a call, or amid its request."""
        wire = await Wire.open(self._port)
        modern = self._rng.random() < 0.7
        # In the handshake era a call goes on though its client has gone.
        data, _ = self._call(b"wait" if modern else b"progress", modern=modern)
        wire.send(data if self._rng.random() < 0.7 else data[: self._rng.randrange(1, len(data))])
        await asyncio.sleep(self._rng.choice([0, 0, 0.005]))
        wire.close(reset=self._rng.random() < 0.5)
        self._counts.disconnects += 1

    async def _listens(self) -> None:
        """The session's own stream, a change, and the news of it."""
        wire = await Wire.open(self._port)
        wire.send(http(b"GET", b"", [b"Accept: text/event-stream", *self._session]))
        status, _ = await wire.head()
        if status != 200:
            raise Broken(f"status {status} for a stream")
        await self._change(wire)

    async def _subscribes(self) -> None:
        """A subscription of the stateless era, a change, and the news of it."""
        wire = await Wire.open(self._port)
        body, _ = self._message(b"subscriptions/listen", b'"notifications":{"toolsListChanged":true}', modern=True)
        wire.send(http(b"POST", body, self._fields(b"subscriptions/listen", modern=True)))
        status, _ = await wire.head()
        if status != 200:
            raise Broken(f"status {status} for a subscription")
        if b"acknowledged" not in await wire.chunk():
            raise Broken("a subscription was not acknowledged")
        await self._change(wire)

    async def _change(self, wire: Wire) -> None:
        own = await self._connected()
        data, number = self._call(b"change", modern=True)
        own.send(data)
        status, _, body = await own.response()
        self._answers(status, body, number)
        while b"tools/list_changed" not in await wire.chunk():
            pass
        wire.close(reset=self._rng.random() < 0.3)
        self._counts.streams += 1

    async def _resumes(self) -> None:
        """A stream that breaks off before its answer, and is taken up where it was."""
        if b"2025-11-25" not in self._session[1]:
            return
        wire = await Wire.open(self._port)
        params = b'"name":"progress","arguments":{},"_meta":{"progressToken":1}'
        body, number = self._message(b"tools/call", params, modern=False)
        self._counts.calls += 1
        wire.send(http(b"POST", body, self._fields(b"tools/call", modern=False)))
        await wire.head()
        first = await wire.chunk()
        wire.close(reset=True)
        event = next((line for line in first.split(b"\n") if line.startswith(b"id: ")), None)
        if event is None:
            raise Broken(f"no event id to come back with: {first!r}")
        again = await Wire.open(self._port)
        again.send(http(b"GET", b"", [b"Accept: text/event-stream", b"Last-Event-ID: " + event[4:], *self._session]))
        status, fields = await again.head()
        if status != 200:
            raise Broken(f"status {status} for a stream that was taken up")
        rest = b""
        while b'"id":%d,' % number not in rest:
            part = await again.chunk()
            if not part:
                raise Broken(f"a stream that was taken up ended without the answer: {rest!r}, {fields}")
            rest += part
        again.close()
        self._counts.answers += 1
        self._counts.resumed += 1


class _Load:
    """All peers."""

    def __init__(self, port: int, seed: int, counts: Counts, watch: Watch) -> None:
        self._peers = [Peer(port, random.Random(seed + number), counts) for number in range(CONNECTIONS)]
        self._counts = counts
        self._watch = watch
        self._fewest = 4
        """Tasks of a server that does nothing."""

    async def run(self, more: Callable[[Counts], bool], sample: Callable[[Counts], bool]) -> None:
        """Play while there is to be more."""
        try:
            while more(self._counts):
                await asyncio.wait_for(asyncio.gather(*(self._some(peer) for peer in self._peers)), PATIENCE)
                if sample(self._counts):
                    await self._sample()
        except (Broken, OSError, EOFError, ValueError, TimeoutError) as exc:
            self._counts.fault(f"{type(exc).__name__}: {exc}")

    async def _some(self, peer: Peer) -> None:
        for _ in range(10):
            await peer.play()

    async def _sample(self) -> None:
        """Figures, once what clients have left is noticed."""
        for peer in self._peers:
            await peer.close()
        found = await self._peers[0].figures()
        for _ in range(20):
            if found["tasks"] <= self._fewest:
                break
            await asyncio.sleep(0.02)
            figures = await self._peers[0].figures()
            found = {name: min(value, found[name]) for name, value in figures.items()}
        self._fewest = min(self._fewest, found["tasks"])
        self._watch.take(found)


def soak_http(
    more: Callable[[Counts], bool], sample: Callable[[Counts], bool], seed: int, loop: str
) -> tuple[Watch, Counts]:
    """Load a server while there is to be more, and take its figures whenever it is time for it."""
    watch, counts = Watch(), Counts()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.soak.program", "http", str(port), loop]
    with subprocess.Popen(leashed(command), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port)
            asyncio.run(_Load(port, seed, counts, watch).run(more, sample))
            process.terminate()
            if (code := process.wait(PATIENCE)) not in (0, -15):
                counts.fault(f"the server ended with {code}")
        except (TimeoutError, subprocess.TimeoutExpired) as exc:
            counts.fault(f"{type(exc).__name__}: {exc}")
        finally:
            process.kill()
    return watch, counts


def _wait_for(port: int) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
        except OSError:
            if time.monotonic() > end:
                raise TimeoutError("the server does not listen") from None
            time.sleep(0.02)
        else:
            return

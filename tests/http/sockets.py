"""HTTP by hand: requests as bytes, and a connection that reads answers and events one by one.

Blocking, so that a test decides what is sent when. Knows HTTP/1.1, and what the two eras
put into it; nothing of any server.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from functools import lru_cache
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from mcp_core.testing import modern_meta

__all__ = ["Answer", "Caller", "Connection", "filler", "handshake", "request", "stateless", "text_of"]

BOTH: Final = "application/json, text/event-stream"


@lru_cache
def filler(size: int) -> str:
    """So many characters, of which no two places look alike."""
    return "".join(f"{number:07d}," for number in range(size // 8 + 1))[:size]


class Answer(NamedTuple):
    """One HTTP response."""

    status: int
    headers: dict[str, str]
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The body, decoded."""
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)


def text_of(answer: Any) -> str:
    """The text of a tool's result that holds one block."""
    (block,) = answer["result"]["content"]
    text: str = block["text"]
    return text


def request(
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "POST",
    path: str = "/mcp",
    length: int | None = None,
) -> bytes:
    """One HTTP request; `length` is what it says of its body, -1 for nothing."""
    fields = {"Host": "127.0.0.1", "Accept": BOTH}
    if method == "POST":
        fields["Content-Type"] = "application/json"
    if length != -1:
        fields["Content-Length"] = str(len(body) if length is None else length)
    fields.update(headers or {})
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Connection:
    """A TCP connection to a server on this machine. Nothing it waits for may take over a minute."""

    def __init__(self, port: int, *, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(60)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self.socket.makefile("rb")
        self._lines = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Go away."""
        self._file.close()
        self.socket.close()

    def reset(self) -> None:
        """Go away with a reset, unread data or not."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.close()

    def send(self, data: bytes) -> Self:
        """Write all of this."""
        self.socket.sendall(data)
        return self

    def end_sending(self) -> None:
        """Close this half: the server reads its end, and may still write."""
        self.socket.shutdown(socket.SHUT_WR)

    def rest(self) -> bytes:
        """Everything until the server closes the connection."""
        return self._file.read()

    def head(self) -> Answer:
        """The status and the headers of the next response."""
        version, status, *_ = self._file.readline().split(b" ", 2)
        assert version == b"HTTP/1.1"
        headers: dict[str, str] = {}
        while (line := self._file.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return Answer(int(status), headers)

    def answer(self) -> Answer:
        """The next response, whole."""
        return self.body(self.head())

    def body(self, head: Answer) -> Answer:
        """The body that belongs to this head."""
        if head.headers.get("transfer-encoding") == "chunked":
            return head._replace(body=b"".join(iter(self.chunk, b"")))
        return head._replace(body=self._file.read(int(head.headers.get("content-length", "0"))))

    def chunk(self) -> bytes:
        """The next chunk of a body; empty at its end."""
        size = int(self._file.readline(), 16)
        data = self._file.read(size)
        assert self._file.read(2) == b"\r\n"
        return data

    def event(self) -> dict[str, str] | None:
        """The next event of an open stream by its fields, a comment under an empty name; `None` at the end."""
        while b"\n\n" not in self._lines:
            data = self.chunk()
            if not data:
                assert self._lines == b""
                return None
            self._lines += data
        raw, _, self._lines = self._lines.partition(b"\n\n")
        fields = (line.partition(": ") for line in raw.decode().split("\n"))
        return {name: value for name, _, value in fields}

    def message(self) -> Any:
        """The message of the next event that is no comment."""
        while (event := self.event()) is not None:
            if event.get("data"):
                return json.loads(event["data"])
        raise EOFError("the stream has ended")


class Caller:
    """What one client sends: requests of its era as bytes, and calls that are made at once."""

    def __init__(self, port: int, headers: Mapping[str, str], *, modern: bool) -> None:
        self.port = port
        self.headers = dict(headers)
        self.modern = modern

    def body(self, method: str, params: Mapping[str, Any] | None = None, request_id: Any = 1) -> bytes:
        """A JSON-RPC request."""
        given = dict(params or {})
        if self.modern:
            given["_meta"] = {**modern_meta(), **given.get("_meta", {})}
        return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": given}).encode()

    def headers_of(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, str]:
        """The headers that go with it."""
        if not self.modern:
            return self.headers
        named = {"Mcp-Name": (params or {})["name"]} if method == "tools/call" else {}
        return {**self.headers, "Mcp-Method": method, **named}

    def request(self, method: str, params: Mapping[str, Any] | None = None, request_id: Any = 1) -> bytes:
        """The same as HTTP."""
        return request(self.body(method, params, request_id), self.headers_of(method, params))

    def calling(self, tool: str, request_id: Any = 1, meta: Mapping[str, Any] | None = None, **arguments: Any) -> bytes:
        """A call of a tool as HTTP."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        return self.request("tools/call", {**params, "_meta": meta} if meta else params, request_id)

    def call(self, tool: str, **arguments: Any) -> str:
        """Call a tool, on a connection of its own: the text of its result."""
        with Connection(self.port) as connection:
            answer = connection.send(self.calling(tool, **arguments)).answer()
        assert answer.status == 200
        return text_of(answer.json)

    def get(self) -> bytes:
        """The request that opens a handshake-era client's own stream."""
        return request(headers={**self.headers, "Accept": "text/event-stream"}, method="GET", length=-1)


def stateless(port: int) -> Caller:
    """A 2026-07-28 client."""
    return Caller(port, {"MCP-Protocol-Version": "2026-07-28"}, modern=True)


def handshake(port: int, connection: Connection | None = None) -> Caller:
    """A 2025-11-25 client that has shaken hands, on this connection or one of its own."""
    if connection is None:
        with Connection(port) as own:
            return handshake(port, own)
    before = Caller(port, {}, modern=False)
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "sockets", "version": "1"},
    }
    answer = connection.send(before.request("initialize", params)).answer()
    assert answer.status == 200
    assert answer.json["result"]["protocolVersion"] == "2025-11-25"
    headers = {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    known = Caller(port, headers, modern=False)
    initialized = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
    assert connection.send(request(initialized, headers)).answer().status == 202
    return known

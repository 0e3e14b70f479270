"""Our client and an HTTP server that breaks the rules: over real sockets, answers byte by byte as given."""

from __future__ import annotations

import gc
import gzip
import json
import pickle
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

import anyio
import pytest
from anyio.abc import SocketStream

from mcp_core import Client, LocalProtocolError, MCPError
from mcp_core.client import Mode
from mcp_core.errors import ConnectionClosed, HTTPRefusal, InvalidRequest, InvalidResult, MCPCoreError
from mcp_core.parameter_headers import InvalidHeaderAnnotation, parameter_headers
from mcp_core.testing import flush_logs
from mcp_core.transports.http_client import (
    StreamableHTTPParameters,
    channel,
    endpoint,
    headers,
    session,
    streams,
    tool_headers,
)
from mcp_core.transports.http_client.endpoint import MAX_REDIRECTS

JSON: TypeAlias = dict[str, Any]
SECONDS: Final = 25.0


class Asked:
    """One HTTP request, as the server has read it."""

    def __init__(self, method: str, path: str, fields: dict[str, str], message: Any) -> None:
        self.http_method = method
        self.path = path
        self.headers = fields
        self.message = message

    @property
    def what(self) -> str:
        """The HTTP method, and that of the message."""
        return self.http_method if self.message is None else f"{self.http_method} {self.message.get('method')}"


Act: TypeAlias = Callable[[Asked, SocketStream], Awaitable[None]]


def response(status: str, body: bytes = b"", kind: str = "application/json", **fields: str) -> bytes:
    """A whole response; underscores in names are hyphens."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def answer(asked: Asked, result: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": asked.message["id"], "result": result}
    return json.dumps(message).encode()


def saying(status: str, body: bytes = b"", kind: str = "application/json", **fields: str) -> Act:
    """Gives this response; `$ID` in its body is the id of the request."""

    async def act(asked: Asked, stream: SocketStream) -> None:
        shown = b"" if asked.message is None else json.dumps(asked.message.get("id")).encode()
        await stream.send(response(status, body.replace(b"$ID", shown), kind, **fields))

    return act


def streaming(body: bytes, **fields: str) -> Act:
    """Gives this event stream, and closes the connection."""

    async def act(asked: Asked, stream: SocketStream) -> None:
        shown = json.dumps(asked.message.get("id")).encode() if asked.message else b""
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        await stream.send(f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{more}\r\n".encode())
        await stream.send(body.replace(b"$ID", shown))
        await stream.aclose()

    return act


async def _discover(asked: Asked, stream: SocketStream) -> None:
    found: JSON = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    await stream.send(response("200 OK", answer(asked, {**found, "ttlMs": 0, "cacheScope": "private"})))


async def _initialize(asked: Asked, stream: SocketStream) -> None:
    agreed: JSON = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
    server = {"name": "hostile", "version": "1"}
    await stream.send(response("200 OK", answer(asked, {**agreed, "serverInfo": server})))


POLITE: Final[Mapping[str, Act]] = {
    "POST server/discover": _discover,
    "POST initialize": _initialize,
    "GET": saying("405 Method Not Allowed"),
}


class Hostile:
    """A server that does as its acts say, and what it was asked."""

    def __init__(self, acts: Mapping[str, Act]) -> None:
        self.acts = {**POLITE, **acts}
        self.asked: list[Asked] = []
        self.url = ""

    async def serve(self, stream: SocketStream) -> None:
        """Serve one connection."""
        data = b""
        try:
            async with stream:
                while True:
                    while b"\r\n\r\n" not in data:
                        data += await stream.receive()
                    head, data = data.split(b"\r\n\r\n", 1)
                    first, *lines = head.decode("latin-1").split("\r\n")
                    method, path, _ = first.split(" ", 2)
                    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                    size = int(fields.get("content-length", "0"))
                    while len(data) < size:
                        data += await stream.receive()
                    body, data = data[:size], data[size:]
                    asked = Asked(method, path, fields, json.loads(body) if body else None)
                    self.asked.append(asked)
                    act = self.acts.get(f"{asked.what} {path}") or self.acts.get(asked.what) or saying("202 Accepted")
                    await act(asked, stream)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    def count(self, what: str) -> int:
        """How often it was asked this."""
        return sum(asked.what == what for asked in self.asked)


@asynccontextmanager
async def hostile(
    acts: Mapping[str, Act], mode: Mode = "2026-07-28", parameters: JSON | None = None, **options: Any
) -> AsyncGenerator[tuple[Client, Hostile], None]:
    """A client and the server that it is connected to."""
    async with serving(acts) as server:
        target = StreamableHTTPParameters(url=server.url, **(parameters or {}))
        async with Client(target, mode=mode, **options) as client:
            yield client, server


@asynccontextmanager
async def serving(acts: Mapping[str, Act]) -> AsyncGenerator[Hostile, None]:
    server = Hostile(acts)
    failure: BaseException | None = None
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        server.url = f"http://127.0.0.1:{port}/mcp"
        tasks.start_soon(listener.serve, server.serve)
        try:
            with anyio.fail_after(SECONDS):
                yield server
        except BaseException as exc:
            failure = exc
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


DONE: Final = b'{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[]}}'

# --- redirects --------------------------------------------------------------------------------------------


@pytest.mark.case("C086")
@pytest.mark.parametrize("status", ["307 Temporary Redirect", "308 Permanent Redirect"])
@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_redirect_within_the_origin_is_followed(status: str, absolute: bool, mode: Mode) -> None:
    methods = ("server/discover", "initialize", "notifications/initialized", "tools/call", "notifications/x")
    acts: dict[str, Act] = {"POST tools/call": saying("200 OK", DONE)}
    async with serving(acts) as server:
        place = server.url + "/" if absolute else "/mcp/"
        for what in (*(f"POST {method}" for method in methods), "GET", "DELETE"):
            server.acts[f"{what} /mcp"] = saying(status, b"moved", location=place)
        async with Client(server.url, mode=mode) as client:
            assert (await client.call_tool("x", {"a": 1})).content == []
            await client.notify("notifications/x")
    called = [asked for asked in server.asked if asked.what == "POST tools/call"]
    assert [asked.path for asked in called] == ["/mcp", "/mcp/"]
    assert called[0].message == called[1].message
    assert [asked.headers.get("mcp-protocol-version") for asked in called] == [client_version(mode)] * 2
    assert [a.path for a in server.asked if a.what == "POST notifications/x"] == ["/mcp", "/mcp/"]


def client_version(mode: Mode) -> str:
    return "2025-11-25" if mode == "legacy" else "2026-07-28"


@pytest.mark.case("C086")
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ("http://127.0.0.2:1/mcp", "http://127.0.0.2:1/mcp"),
        ("https://$HOST/mcp", "https://$HOST/mcp"),
        ("//other.example/mcp?token=secret", "//other.example/mcp"),
        ("http://me:secret@$HOST/mcp", "http://$HOST/mcp"),
        ("ftp://$HOST/mcp", "ftp://$HOST/mcp"),
        ("http://[", "an address that is none"),
        ("http://127.0.0.2:1/" + "x" * 5000, "http://127.0.0.2:1/" + "x" * 100),
    ],
)
async def test_any_other_is_refused_with_its_address(status: str, place: str, shown: str) -> None:
    async with hostile({}) as (client, server):
        host = server.url.split("/")[2]
        server.acts["POST tools/call"] = saying(status, location=place.replace("$HOST", host))
        with pytest.raises(InvalidResult, match=r"^the server answered tools/call with HTTP status 30") as caught:
            await client.call_tool("x")
    assert shown.replace("$HOST", host).replace("//", "", 0) in str(caught.value).replace("http:////", "//")
    assert "secret" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert isinstance(caught.value, HTTPRefusal)
    assert server.count("POST tools/call") == 1


@pytest.mark.case("C086")
async def test_redirects_in_a_row_are_bounded() -> None:
    async with hostile({"POST tools/call": saying("307 On and on", location="/mcp")}) as (client, server):
        with pytest.raises(HTTPRefusal) as caught:
            await client.call_tool("x")
        assert caught.value.status == 307
    assert server.count("POST tools/call") == MAX_REDIRECTS + 1


# --- refusals ---------------------------------------------------------------------------------------------

CHALLENGE: Final = 'Bearer resource_metadata="http://127.0.0.1/.well-known/x", scope="a b"'
REFUSAL: Final = b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"no","data":{"why":"because"}}}'


@pytest.mark.case("C098")
@pytest.mark.fault("X-62")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden", "429 Too Many Requests"])
@pytest.mark.parametrize("body", [b"", REFUSAL, b"<html>"])
async def test_a_refusal_carries_its_status_and_headers_and_is_met_once(mode: Mode, status: str, body: bytes) -> None:
    refuse = saying(status, body, WWW_Authenticate=CHALLENGE, Retry_After="17")
    async with serving({"POST server/discover": refuse, "POST initialize": refuse}) as server:
        with pytest.raises(HTTPRefusal) as caught:
            async with Client(server.url, mode=mode):
                pytest.fail("it is not open")
    exc: Any = caught.value
    assert exc.status == int(status[:3])
    assert exc.headers["www-authenticate"] == exc.headers["WWW-Authenticate"] == CHALLENGE
    assert exc.headers.get("Retry-After") == "17"
    assert isinstance(exc, InvalidRequest if body == REFUSAL else InvalidResult)
    if body == REFUSAL:
        assert isinstance(exc, MCPError)
        assert (exc.code, exc.message, exc.data) == (-32600, "no", {"why": "because"})
    assert len(server.asked) == 1


@pytest.mark.case("C098")
async def test_the_session_goes_on_after_a_refusal() -> None:
    async with hostile({"POST tools/call": saying("429 Wait", retry_after="1")}, "legacy") as (client, server):
        for _ in range(2):
            with pytest.raises(HTTPRefusal):
                await client.call_tool("x")
        server.acts["POST tools/call"] = saying("200 OK", DONE)
        assert (await client.call_tool("x")).content == []


@pytest.mark.case("C087")
@pytest.mark.parametrize("error", [InvalidResult("no"), InvalidRequest("no", [1]), MCPError(-32099, "no")])
def test_a_refusal_can_be_pickled(error: Any) -> None:
    refusal = HTTPRefusal.of(error, 401, {"www-authenticate": "Bearer"})
    again = pickle.loads(pickle.dumps(refusal))
    assert type(again) is type(refusal)
    assert isinstance(again, type(error))
    assert (str(again), again.status, again.headers) == ("no", 401, {"www-authenticate": "Bearer"})
    assert getattr(again, "data", None) == getattr(error, "data", None)


async def test_the_text_of_a_status_is_cut() -> None:
    async with hostile({"POST tools/call": saying("500 " + "\x1b[2J" + "x" * 5000)}) as (client, _):
        with pytest.raises(MCPCoreError) as caught:
            await client.call_tool("x")
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


# --- lists of tools ---------------------------------------------------------------------------------------------


def endless(repeat: bool) -> dict[str, Act]:
    count = 0

    async def tools(asked: Asked, stream: SocketStream) -> None:
        nonlocal count
        count += 1
        result: JSON = {"resultType": "complete", "tools": [], "nextCursor": "again" if repeat else str(count)}
        await stream.send(response("200 OK", answer(asked, {**result, "ttlMs": 0, "cacheScope": "private"})))

    return {"POST tools/list": tools}


MISMATCH: Final = b'{"jsonrpc":"2.0","id":$ID,"error":{"code":-32020,"message":"mismatch"}}'


@pytest.mark.fault("S-25")
@pytest.mark.parametrize("repeat", [False, True])
@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request"])
async def test_lists_without_end_are_not_read_to_it(repeat: bool, status: str) -> None:
    async with hostile({**endless(repeat), "POST tools/call": saying(status, MISMATCH)}) as (client, server):
        with pytest.raises(MCPError, match=r"^mismatch$"):
            await client.call_tool("x")
        assert server.count("POST tools/list") == (2 if repeat else tool_headers.MAX_REREAD_PAGES)


@pytest.mark.fault("X-30")
@pytest.mark.parametrize("repeat", [False, True])
async def test_so_for_the_sake_of_output_schemas(repeat: bool) -> None:
    result = DONE.replace(b'"content":[]', b'"content":[],"structuredContent":{}')
    async with hostile({**endless(repeat), "POST tools/call": saying("200 OK", result)}) as (client, server):
        for _ in range(2):
            await client.call_tool("x")
        assert server.count("POST tools/list") == (2 if repeat else 100)


@pytest.mark.fault("S-27")
@pytest.mark.parametrize("shape", ["wide", "deep", "nested"])
def test_marks_are_read_in_linear_time(shape: str) -> None:
    def schema(number: int) -> JSON:
        marked = {f"p{n}": {"type": "string", "x-mcp-header": f"H{n}"} for n in range(number)}
        if shape == "wide":
            return {"properties": marked}
        if shape == "nested":
            return {"properties": {"a": {"anyOf": [{"properties": marked}]}}}
        whole: JSON = {}
        for n in range(number):
            whole = {"properties": {"a": whole, f"p{n}": {"type": "string"}}}
        return whole

    def seconds(number: int) -> float:
        given = schema(number)
        gc.collect()
        gc.disable()  # it walks all that other tests have left
        began = time.process_time()
        if shape == "nested":
            with pytest.raises(InvalidHeaderAnnotation):
                parameter_headers(given)
        else:
            parameter_headers(given)
        spent = time.process_time() - began
        gc.enable()
        unwind(given)
        return spent

    assert seconds(40_000) < 40 * seconds(4000) + 0.2


def unwind(schema: Any) -> None:
    """Let go of a deep value level by level: Python may not do so by itself."""
    while schema:
        schema = schema.pop("properties", {}).pop("a", None)


async def test_tools_with_more_marks_than_headers_fit_are_left_out() -> None:
    many = {f"p{n}": {"type": "string", "x-mcp-header": f"H{n}"} for n in range(tool_headers.MAX_HEADER_PARAMETERS + 1)}
    tools = [{"name": "many", "inputSchema": {"type": "object", "properties": many}}]
    result = {"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"}

    async def serve(asked: Asked, stream: SocketStream) -> None:
        await stream.send(response("200 OK", answer(asked, result)))

    async with hostile({"POST tools/list": serve}) as (client, _):
        assert (await client.list_tools()).tools == []


def test_what_is_remembered_of_tools_is_bounded() -> None:
    kept = tool_headers.ListedHeaderParameters()
    schema = {"properties": {f"p{n}": {"type": "string", "x-mcp-header": f"H{n}"} for n in range(9)}}
    for number in range(4000):
        tools = [{"name": f"t{number}", "inputSchema": schema}]
        kept.read(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).encode())
    known = [number for number in range(4000) if kept.of(f"t{number}")]
    assert len(known) == tool_headers.MAX_KNOWN // 10


MARKED: Final = {
    "name": "x",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}},
}


@pytest.mark.parametrize("size", [headers.MAX_VALUE, headers.MAX_VALUE + 1])
async def test_an_argument_that_no_header_takes_is_not_sent(size: int) -> None:
    result = {"resultType": "complete", "tools": [MARKED], "ttlMs": 0, "cacheScope": "private"}

    async def serve(asked: Asked, stream: SocketStream) -> None:
        await stream.send(response("200 OK", answer(asked, result)))

    acts: dict[str, Act] = {"POST tools/list": serve, "POST tools/call": saying("200 OK", DONE)}
    async with hostile(acts) as (client, server):
        await client.list_tools()
        if size <= headers.MAX_VALUE:
            await client.call_tool("x", {"a": "v" * size})
            assert server.asked[-1].headers["mcp-param-a"] == "v" * size
            return
        with pytest.raises(LocalProtocolError, match=r"^the header 'mcp-param-a' takes 8000 bytes; got 8001$"):
            await client.call_tool("x", {"a": "v" * size})
        assert server.count("POST tools/call") == 0


async def test_so_are_arguments_together() -> None:
    properties = {f"p{n}": {"type": "string", "x-mcp-header": f"P{n}"} for n in range(5)}
    tools = [{"name": "x", "inputSchema": {"type": "object", "properties": properties}}]
    result = {"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"}

    async def serve(asked: Asked, stream: SocketStream) -> None:
        await stream.send(response("200 OK", answer(asked, result)))

    async with hostile({"POST tools/list": serve}) as (client, server):
        await client.list_tools()
        with pytest.raises(LocalProtocolError, match=r"^the headers that repeat arguments take 16000 bytes; got 20"):
            await client.call_tool("x", {f"p{n}": "v" * 4000 for n in range(5)})
        assert server.count("POST tools/call") == 0


# --- the session -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-HTTPL-09")
@pytest.mark.parametrize("session_id", ["a b", "é", "x" * 4097, "\x7f"])
async def test_a_session_id_that_cannot_be_sent_back_is_refused(session_id: str) -> None:
    async def initialize(asked: Asked, stream: SocketStream) -> None:
        agreed = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "h", "version": "1"}}
        await stream.send(response("200 OK", answer(asked, agreed), Mcp_Session_Id=session_id))

    async with serving({"POST initialize": initialize}) as server:
        with pytest.raises(InvalidResult, match=r"^the server gave a session id that is not visible ASCII") as caught:
            async with Client(server.url, mode="legacy"):
                pytest.fail("it is not open")
    assert len(str(caught.value)) < 400


async def test_cookies_do_not_pile_up() -> None:
    count = 0

    async def call(asked: Asked, stream: SocketStream) -> None:
        nonlocal count
        count += 1
        body = DONE.replace(b"$ID", json.dumps(asked.message["id"]).encode())
        await stream.send(response("200 OK", body, Set_Cookie=f"c{count}={'x' * 100}"))

    async with hostile({"POST tools/call": call}) as (client, server):
        for _ in range(2 * endpoint.MAX_COOKIES):
            await client.call_tool("x")
    sizes = [len(asked.headers.get("cookie", "")) for asked in server.asked]
    assert 0 < max(sizes) < 110 * (endpoint.MAX_COOKIES + 1)


# --- streams --------------------------------------------------------------------------------------------------------


def event(message: bytes, *lines: bytes) -> bytes:
    return b"\n".join([*lines, b"data: " + message, b"", b""])


@pytest.mark.case("C102")
@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + event(DONE),
        b"\xef\xbb\xbf: a comment\n\n" + event(DONE),
        event(DONE, b"retry: " + b"9" * 400),
        event(DONE, b"retry: -5"),
        event(DONE, b"id: " + b"x" * 100_000),
        event(DONE, b"id: \xff\xfe\x01"),
        event(b"[[[[[[") + event(b"\xff\xfe") + event(DONE),
        event(DONE.replace(b"$ID", b'"$ID"')),
        event(DONE.replace(b"$ID", b"$ID.0")),
    ],
)
@pytest.mark.parametrize("charset", ["", "; charset=utf-16", "; charset=punycode", "; charset=zlib"])
async def test_streams_of_all_kinds_are_read(body: bytes, charset: str) -> None:
    async with hostile({"POST tools/call": streaming(body)}) as (client, server):
        if charset:

            async def act(asked: Asked, stream: SocketStream) -> None:
                shown = json.dumps(asked.message["id"]).encode()
                head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream{charset}\r\n\r\n"
                await stream.send(head.encode() + body.replace(b"$ID", shown))
                await stream.aclose()

            server.acts["POST tools/call"] = act
        assert (await client.call_tool("x")).content == []


@pytest.mark.case("C097")
async def test_an_error_without_id_on_a_requests_own_stream_is_its_own() -> None:
    async with (
        hostile({"POST tools/call": streaming(event(REFUSAL))}) as (client, _),
        anyio.create_task_group() as tasks,
    ):

        async def call() -> None:
            with pytest.raises(InvalidRequest, match=r"^no$"):
                await client.call_tool("x")

        for _ in range(3):
            tasks.start_soon(call)


@pytest.mark.fault("X-78")
@pytest.mark.parametrize("acknowledged", [True, False])
async def test_a_subscription_that_is_cancelled_ends_though_its_stream_stays_open(acknowledged: bool) -> None:
    meta = b'"_meta":{"io.modelcontextprotocol/subscriptionId":$ID}'
    ack = b'{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{%b,"notifications":%b}}'
    changed = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{%b}}' % meta
    cancelled = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}'
    told = [ack % (meta, b'{"toolsListChanged":true}'), changed] if acknowledged else []
    left = anyio.Event()

    async def listen(asked: Asked, stream: SocketStream) -> None:
        await stream.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        body = b"".join(event(message) for message in [*told, cancelled])
        await stream.send(body.replace(b"$ID", json.dumps(asked.message["id"]).encode()))
        with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            await stream.receive()
        left.set()

    async with hostile({"POST subscriptions/listen": listen}) as (client, server):
        if acknowledged:
            async with client.listen(tools_list_changed=True) as subscription:
                assert [type(each).__name__ async for each in subscription] == ["ToolsListChanged"]
                await left.wait()
        else:
            with pytest.raises(ConnectionClosed, match="ended the subscription"):
                async with client.listen(tools_list_changed=True):
                    pytest.fail("it is not open")
            await left.wait()
    assert server.count("POST notifications/cancelled") == 0


async def test_a_stream_cannot_be_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LONGEST_RETRY", 0.01)
    first = event(b"", b"id: 1", b"retry: 99999999999999999999")
    acts: dict[str, Act] = {"POST tools/call": streaming(first), "GET": saying("405 No")}
    async with hostile(acts, "legacy") as (client, server):
        with pytest.raises(ConnectionClosed, match="refused the stream of tools/call"):
            await client.call_tool("x")
        assert server.asked[-1].headers["last-event-id"] == "1"


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip"])
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_what_unpacks_to_more_than_a_message_may_have_is_refused(encoding: str, kind: str) -> None:
    packed = gzip.compress(b"data: " + b"x" * (80 * 2**20), 9)
    for _ in range(encoding.count(",")):
        packed = gzip.compress(packed, 9)
    act = saying("200 OK", packed, kind, Content_Encoding=encoding)
    async with hostile({"POST tools/call": act}) as (client, _):
        with pytest.raises(InvalidResult, match=r"larger than|exceeded"):
            await client.call_tool("x")


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_malformed_bodies_are_told_at_once(mode: Mode) -> None:
    bodies = [b'{"id":"' + b'\\"' * 200_000, b"[" * 200_000, b'"' * 200_000, b"\xff" * 200_000, b"[1," * 100_000]
    async with hostile({}, mode) as (client, server):
        for body in bodies:
            server.acts["POST tools/call"] = saying("200 OK", body)
            with pytest.raises(InvalidResult):
                await client.call_tool("x")


async def test_an_array_of_messages_is_bounded() -> None:
    async def initialize(asked: Asked, stream: SocketStream) -> None:
        agreed = {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {"name": "h", "version": "1"}}
        await stream.send(response("200 OK", answer(asked, agreed)))

    junk = b"[%b%b]" % (DONE, b",1" * (session.MAX_BATCH // 2))
    acts: dict[str, Act] = {"POST initialize": initialize, "POST tools/call": saying("200 OK", b"[%b]" % DONE)}
    async with hostile(acts, "legacy") as (client, server):
        assert (await client.call_tool("x")).content == []
        server.acts["POST tools/call"] = saying("200 OK", junk)
        with pytest.raises(InvalidResult, match="no JSON-RPC answer to it"):
            await client.call_tool("x")


# --- what a server makes us send ------------------------------------------------------------------------------------


async def test_answers_on_their_way_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "MAX_POSTS", 5)
    release = anyio.Event()
    pings = b"".join(event(b'{"jsonrpc":"2.0","id":"p%d","method":"ping"}' % n) for n in range(500))

    async def hold(asked: Asked, stream: SocketStream) -> None:
        await release.wait()
        await stream.send(response("202 Accepted"))

    acts: dict[str, Act] = {"POST tools/call": streaming(pings + event(DONE)), "POST None": hold}
    async with hostile(acts, "legacy") as (client, server):
        await client.call_tool("x")
        release.set()
        await client.call_tool("x")
    assert 5 <= server.count("POST None") <= 15


async def test_a_notification_that_is_not_taken_holds_nothing_up_for_ever() -> None:
    async def hold(asked: Asked, stream: SocketStream) -> None:
        await anyio.sleep_forever()

    acts: dict[str, Act] = {"POST notifications/initialized": hold, "POST tools/call": saying("200 OK", DONE)}
    async with hostile(acts, "legacy", {"timeout": 1.0}) as (client, _):
        assert (await client.call_tool("x")).content == []


async def test_who_notifies_waits_for_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "MAX_NOTIFICATIONS", 5)
    release = anyio.Event()

    async def hold(asked: Asked, stream: SocketStream) -> None:
        await release.wait()
        await stream.send(response("202 Accepted"))

    sent: list[int] = []
    async with hostile({"POST notifications/x": hold}) as (client, server), anyio.create_task_group() as tasks:

        async def notify() -> None:
            for number in range(50):
                await client.notify("notifications/x")
                sent.append(number)

        tasks.start_soon(notify)
        await anyio.wait_all_tasks_blocked()
        assert len(sent) == 5
        release.set()
    assert server.count("POST notifications/x") == 50


async def test_what_is_logged_about_a_server_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    strangers = b"".join(event(b'{"jsonrpc":"2.0","id":"s%d","result":{}}' % n) for n in range(1000))
    async with hostile({"POST tools/call": streaming(strangers + event(DONE))}) as (client, _):
        await client.call_tool("x")
    flush_logs()
    assert len(caplog.records) == 101


async def test_a_text_that_is_no_url_is_told_by_what_there_is_instead() -> None:
    with pytest.raises(ConnectionClosed) as caught:
        async with Client("server.py", mode="legacy"):
            pytest.fail("it is not open")
    assert str(caught.value).startswith("initialize got no answer from server.py: UnsupportedProtocol: ")
    assert str(caught.value).endswith("give StdioServerParameters(command=..., args=[...]))")


def test_a_deep_answer_is_no_problem_for_the_marks() -> None:
    deep = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":' + b'{"properties":{"a":' * 400
    text = deep + b"{}" + b"}}" * 400 + b"}]}}"
    assert tool_headers.ListedHeaderParameters().read(text) == text

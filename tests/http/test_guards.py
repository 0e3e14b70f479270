"""What is decided before a message is read: who may call, in which media types, how much, where; and the app's life."""

from __future__ import annotations

import gc
import logging
import tracemalloc
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Host, Mount, Route

from mcp_core import RequestContext, Server
from mcp_core.subscriptions import ToolsListChanged
from mcp_core.testing import flush_logs
from mcp_core.transports.streamable_http import HTTPOptions, StreamableHTTP, TransportSecuritySettings
from mcp_core.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent
from mcp_typed import MCPServer
from tests.http.asgi import (
    HTTP,
    SECONDS,
    HandshakeClient,
    Headers,
    Lifespan,
    ModernClient,
    Response,
    line,
    living,
    modern_headers,
)


def echo(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(text="ran")], structured_content={"length": len((params.arguments or {}).get("x", ""))}
    )


def list_tools(ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
    return ListToolsResult(tools=[])


def served(**options: Any) -> StreamableHTTP:
    return StreamableHTTP(Server("guarded", on_call_tool=echo), HTTPOptions(**options))


def settings(*, hosts: list[str] | None = None, origins: list[str] | None = None, on: bool = True) -> Any:
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=on, allowed_hosts=hosts or [], allowed_origins=origins or []
    )


async def status(app: Any, headers: Headers | None = None, **options: Any) -> int:
    """How a good call is answered that comes with these headers besides."""
    response = await ModernClient(app).call("echo", headers=headers, **options)
    if response.status != 200:
        assert response.json["jsonrpc"] == "2.0"
        assert "id" not in response.json
    return response.status


# --- Host and Origin -----------------------------------------------------------------------------------


@pytest.mark.requirement("R-HS-02")
@pytest.mark.requirement("R-HTTP-03")
@pytest.mark.case("C074")
@pytest.mark.parametrize("bound", ["127.0.0.1", "localhost", "::1", "[::1]"])
@pytest.mark.parametrize(
    ("host", "wanted"),
    [
        ("localhost", 200),
        ("localhost:1", 200),
        ("LocalHost:8000", 200),
        ("127.0.0.1", 200),
        ("127.0.0.1:65535", 200),
        ("[::1]", 200),
        ("[::1]:8000", 200),
        ("evil.example", 421),
        ("evil.example:8000", 421),
        ("localhost.evil.example", 421),
        ("evil.example:localhost", 421),
        ("localhost:8000.evil.example", 421),
        ("localhost:", 421),
        ("localhost:80:80", 421),
        ("localhost:abc", 421),
        ("127.0.0.1@evil.example", 421),
        ("0.0.0.0:8000", 421),
        ("192.168.0.1:8000", 421),
        ("", 421),
        (None, 421),
    ],
)
async def test_a_server_on_loopback_is_called_by_loopback_names(bound: str, host: str | None, wanted: int) -> None:
    assert await status(served(host=bound), {"host": host}) == wanted


@pytest.mark.requirement("R-HS-01")
@pytest.mark.requirement("R-HTTP-02")
@pytest.mark.case("C074")
@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        (None, 200),
        ("http://localhost", 200),
        ("http://localhost:3000", 200),
        ("https://localhost:3000", 200),
        ("http://127.0.0.1:6274", 200),
        ("http://[::1]:6274", 200),
        ("HTTP://LOCALHOST:3000", 200),
        ("null", 403),
        ("", 403),
        ("http://evil.example", 403),
        ("https://evil.example:3000", 403),
        ("http://localhost.evil.example", 403),
        ("http://localhost:3000.evil.example", 403),
        ("http://evil.example/http://localhost", 403),
        ("http://localhost:3000/", 403),
        ("http://localhost@evil.example", 403),
        ("ftp://localhost", 403),
        ("localhost:3000", 403),
        ("chrome-extension://abcdef", 403),
    ],
)
async def test_a_server_on_loopback_is_called_by_pages_of_loopback(origin: str | None, wanted: int) -> None:
    assert await status(served(), {"origin": origin}) == wanted


@pytest.mark.parametrize("bound", ["127.0.0.2", "127.1.2.3"])
async def test_any_loopback_address_can_be_bound_and_called(bound: str) -> None:
    for host in (bound, f"{bound}:8000", "localhost:8000"):
        assert await status(served(host=bound), {"host": host}) == 200
    assert await status(served(host=bound), {"host": "evil.example"}) == 421


@pytest.mark.requirement("R-HTTP-02")
@pytest.mark.case("C074")
@pytest.mark.parametrize("bound", ["0.0.0.0", "::", "192.168.0.1", "mcp.example.com"])
@pytest.mark.parametrize(
    ("host", "origin", "wanted"),
    [
        ("mcp.example.com", None, 200),
        ("192.168.0.1:8000", None, 200),
        ("mcp.example.com", "https://mcp.example.com", 200),
        ("mcp.example.com:8000", "http://MCP.example.com:8000", 200),
        ("mcp.example.com", "https://evil.example", 403),
        ("mcp.example.com:8000", "http://mcp.example.com:3000", 403),
        ("mcp.example.com", "null", 403),
        ("mcp.example.com", "https://mcp.example.com.evil.example", 403),
        ("mcp.example.com", "https://mcp.example.com@evil.example", 403),
        ("localhost:8000", "http://localhost:3000", 403),
    ],
)
async def test_a_server_that_is_bound_elsewhere_works_at_once(
    bound: str, host: str, origin: str | None, wanted: int
) -> None:
    assert await status(served(host=bound), {"host": host, "origin": origin}) == wanted


@pytest.mark.parametrize(
    ("allowed", "host", "wanted"),
    [
        (["mcp.example.com"], "mcp.example.com", 200),
        (["mcp.example.com"], "MCP.Example.COM", 200),
        (["MCP.Example.COM"], "mcp.example.com", 200),
        (["mcp.example.com"], "mcp.example.com:80", 200),
        (["mcp.example.com"], "mcp.example.com:8000", 421),
        (["mcp.example.com"], "a.mcp.example.com", 421),
        (["mcp.example.com:8000"], "mcp.example.com:8000", 200),
        (["mcp.example.com:8000"], "mcp.example.com", 421),
        (["mcp.example.com:8000"], "mcp.example.com:8001", 421),
        (["mcp.example.com:*"], "mcp.example.com", 200),
        (["mcp.example.com:*"], "mcp.example.com:8001", 200),
        (["mcp.example.com:*"], "mcp.example.com:x", 421),
        (["mcp.example.com:*"], "mcp.example.com.evil:1", 421),
        (["a.example", "b.example"], "b.example", 200),
        (["*"], "anything.example:1", 200),
    ],
)
@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0"])
async def test_hosts_are_let_in_by_a_setting(bound: str, allowed: list[str], host: str, wanted: int) -> None:
    app = served(host=bound, transport_security=settings(hosts=allowed))
    assert await status(app, {"host": host}) == wanted


async def test_a_host_is_let_in_with_the_port_of_its_scheme() -> None:
    app = served(host="0.0.0.0", transport_security=settings(hosts=["mcp.example.com"]))
    wanted = {("http", 80): 200, ("http", 443): 421, ("https", 443): 200, ("https", 80): 421}
    got: dict[tuple[str, int], int] = {}
    for scheme, port in wanted:
        client = ModernClient(app, headers={"host": f"mcp.example.com:{port}"}, scheme=scheme)
        got[scheme, port] = (await client.call("echo")).status
    assert got == wanted


@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0"])
async def test_hosts_that_are_let_in_come_besides_those_of_loopback(bound: str) -> None:
    app = served(host=bound, transport_security=settings(hosts=["mcp.example.com"]))
    assert await status(app, {"host": "localhost:8000"}) == (200 if bound == "127.0.0.1" else 421)


@pytest.mark.requirement("R-HTTP-02")
@pytest.mark.parametrize(
    ("allowed", "origin", "wanted"),
    [
        (["https://app.example.com"], "https://app.example.com", 200),
        (["https://app.example.com"], "https://APP.example.com", 200),
        (["https://app.example.com"], "http://app.example.com", 403),
        (["https://app.example.com"], "https://app.example.com:8443", 403),
        (["https://app.example.com:*"], "https://app.example.com:8443", 200),
        (["https://app.example.com:*"], "https://app.example.com", 200),
        (["https://app.example.com:*"], "http://app.example.com:8443", 403),
        (["https://app.example.com"], "https://evil.example", 403),
        (["null"], "null", 200),
        (["*"], "https://evil.example", 200),
        (["*"], "null", 200),
    ],
)
@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0"])
async def test_origins_are_let_in_by_a_setting(bound: str, allowed: list[str], origin: str, wanted: int) -> None:
    app = served(host=bound, transport_security=settings(origins=allowed))
    assert await status(app, {"host": "127.0.0.1:8000", "origin": origin}) == wanted


@pytest.mark.case("C074")
async def test_one_setting_switches_the_checks_off() -> None:
    app = served(transport_security=settings(on=False))
    for host in ("evil.example", "", None):
        assert await status(app, {"host": host, "origin": "https://evil.example"}) == 200


@pytest.mark.requirement("R-HTTP-02")
@pytest.mark.parametrize("name", ["host", "origin"])
async def test_host_and_origin_are_sent_once(name: str) -> None:
    value = {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000"}[name]
    response = await ModernClient(served()).call("echo", repeated=[(name, value)], headers={name: value})
    assert (response.status, response.json["error"]["code"]) == (400, -32600)
    assert "Host and Origin may be sent once" in response.json["error"]["message"]


@pytest.mark.requirement("R-HTTP-02")
@pytest.mark.parametrize("verb", ["GET", "POST", "DELETE", "PUT"])
async def test_every_verb_is_guarded(verb: str) -> None:
    client = HTTP(served())
    assert (await client.request(verb, headers={"origin": "http://evil.example"})).status == 403
    assert (await client.request(verb, headers={"host": "evil.example"})).status == 421


async def test_what_is_refused_by_its_head_is_refused_before_its_body() -> None:
    client = ModernClient(served())
    message = client.message(1, "tools/call", {"name": "echo"})
    for headers in (
        {"origin": "http://evil.example"},
        {"host": "evil.example"},
        {"content-type": "text/plain"},
        {"accept": "text/html"},
        {"content-length": "99999999"},
    ):
        async with client.open(headers={**modern_headers(message), **headers}, body=[line(message)]) as exchange:
            assert (await exchange.response()).status >= 400
            assert exchange.pieces_taken == 0


# --- media types -----------------------------------------------------------------------------------------


@pytest.mark.requirement("R-HS-08")
@pytest.mark.parametrize(
    ("content_type", "wanted"),
    [
        ("application/json", 200),
        ("Application/JSON", 200),
        ("application/json; charset=utf-8", 200),
        ("application/json;charset=UTF-8", 200),
        ('application/json ; charset="utf-8"', 200),
        ("application/json; charset=us-ascii", 200),
        ("application/json; profile=x; charset=utf-8", 200),
        ("application/json;", 200),
        (" application/json ", 200),
        ("application/json; charset=utf-16", 415),
        ("application/json; charset=iso-8859-1", 415),
        ("application/json, text/plain", 415),
        ("text/plain; charset=application/json", 415),
        ("application", 415),
        ("*/*", 415),
        ("\xe9", 415),
        (None, 415),
    ],
)
async def test_a_body_is_json_in_utf_8(content_type: str | None, wanted: int) -> None:
    assert await status(served(), {"content-type": content_type}) == wanted


@pytest.mark.requirement("R-HS-10")
@pytest.mark.case("C066")
@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (None, 200),
        ("*/*", 200),
        ("application/json", 200),
        ("text/event-stream", 200),
        ("application/json, text/event-stream", 200),
        ("text/event-stream, application/json;q=0.001", 200),
        ("Application/Json;Q=1", 200),
        (",, application/json,,", 200),
        ("text/html, application/*;q=0.1", 200),
        ("application/json;q=0, */*", 200),  # an event stream is left
        ("text/html", 406),
        ("application/xml, image/*", 406),
        ("application/json;q=0", 406),
        ("application/json;q=0.000, text/event-stream;q=0", 406),
        ("*/*;q=0", 406),
        ("application/*;q=0, text/*;q=0, */*", 406),
        ("json", 406),
    ],
)
async def test_an_answer_is_of_a_type_that_is_accepted(accept: str | None, wanted: int) -> None:
    assert await status(served(), {"accept": accept}) == wanted


@pytest.mark.parametrize(
    "values",
    [("application/json", "text/event-stream"), ("text/event-stream", "application/json"), ("text/html", "*/*")],
)
async def test_accept_in_two_lines_is_one_list(values: tuple[str, str]) -> None:
    async def talk(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        if params.name == "talk":
            await ctx.report_progress(1)
        return CallToolResult(content=[])

    client = ModernClient(Server("two lines", on_call_tool=talk).streamable_http_app())
    forms: list[str | None] = []
    for name in ("quiet", "talk"):
        message = client.message(1, "tools/call", {"name": name}, meta={"progressToken": 1})
        response = await client.answer(message, headers={"accept": values[0]}, repeated=[("accept", values[1])])
        assert response.status == 200
        forms.append(response.header("content-type"))
    assert forms == ["application/json", "text/event-stream"]


# --- the size of a body -------------------------------------------------------------------------------------

LIMIT = 100_000


BARE = line(ModernClient.message(1, "tools/call", {"name": "echo", "arguments": {"x": ""}}))


def sized(size: int) -> bytes:
    """A call of exactly so many bytes."""
    body = BARE.replace(b'"x":""', b'"x":"%b"' % (b"a" * (size - len(BARE))))
    assert len(body) == size
    return body


def pieces(body: bytes, size: int) -> Iterator[bytes]:
    return (body[start : start + size] for start in range(0, len(body), size))


async def posted(app: Any, body: Any, **headers: str) -> Response:
    client = ModernClient(app)
    message = client.message(1, "tools/call", {"name": "echo"})
    return await client.request(headers={**modern_headers(message), **headers}, body=body)


@pytest.mark.requirement("R-HS-09")
@pytest.mark.case("C077")
@pytest.mark.parametrize("piece", [None, 65_536, 1000, 7])
@pytest.mark.parametrize("announced", [True, False], ids=["content-length", "chunked"])
@pytest.mark.parametrize(("over", "wanted"), [(-1, 200), (0, 200), (1, 413), (50_000, 413)])
async def test_a_body_is_as_large_as_the_limit_at_most(
    piece: int | None, announced: bool, over: int, wanted: int
) -> None:
    body = sized(LIMIT + over)
    headers = {"content-length": str(len(body))} if announced else {}
    app = served(max_request_body_size=LIMIT)
    response = await posted(app, body if piece is None else pieces(body, piece), **headers)
    assert response.status == wanted
    if wanted == 200:
        assert response.json["result"]["structuredContent"] == {"length": len(body) - len(BARE)}
    else:
        error = response.json["error"]
        assert error == {"code": -32600, "message": f"the body is larger than {LIMIT} bytes (max_request_body_size)"}


@pytest.mark.case("C077")
async def test_the_limit_is_4_mib_and_can_be_raised() -> None:
    body = sized(5_000_000)
    assert (await posted(served(), body)).status == 413
    assert (await posted(served(), sized(4 * 2**20))).status == 200
    assert (await posted(served(max_request_body_size=64 * 2**20), body)).status == 200


@pytest.mark.case("C077")
async def test_an_announced_length_is_believed_only_if_it_is_one() -> None:
    app = served(max_request_body_size=LIMIT)
    for length in ("", "-1", "abc", "1e9", "0x10", "9" * 5000):
        wanted = 413 if length.isdigit() else 200
        assert (await posted(app, sized(1000), **{"content-length": length})).status == wanted
    # One that is too small does not let more in.
    assert (await posted(app, pieces(sized(LIMIT + 1), 1000), **{"content-length": "10"})).status == 413


@pytest.mark.case("C077")
@pytest.mark.parametrize("with_empty_pieces", [False, True])
async def test_a_body_in_bytes_is_read_to_the_limit_and_no_further(with_empty_pieces: bool) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            if with_empty_pieces:
                yield b""
            yield b"x"

    client = ModernClient(served(max_request_body_size=20_000))
    message = client.message(1, "tools/call", {"name": "echo"})
    async with client.open(headers=modern_headers(message), body=endless()) as exchange:
        assert (await exchange.response()).status == 413
        assert exchange.pieces_taken == 20_001 * (2 if with_empty_pieces else 1)


@pytest.mark.case("C077")
async def test_memory_is_bounded_by_bytes_and_not_by_pieces() -> None:
    size = 100_000
    body = sized(size)
    app = served()
    assert (await posted(app, pieces(body, 1))).status == 200
    gc.collect()
    tracemalloc.start()
    try:
        assert (await posted(app, pieces(body, 1))).status == 200
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * size


# --- paths -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-HTTP-01")
@pytest.mark.case("C075")
@pytest.mark.parametrize("configured", ["/mcp", "/mcp/"])
@pytest.mark.parametrize(
    ("path", "wanted"),
    [("/mcp", 200), ("/mcp/", 200), ("/", 404), ("/MCP", 404), ("/mcp2", 404), ("/mcp/x", 404), ("/x/mcp", 404)],
)
async def test_the_endpoint_is_served_with_and_without_a_slash(configured: str, path: str, wanted: int) -> None:
    assert await status(served(streamable_http_path=configured), path=path) == wanted


@pytest.mark.case("C075")
@pytest.mark.parametrize("path", ["/", ""])
async def test_the_endpoint_may_be_the_root(path: str) -> None:
    assert await status(served(streamable_http_path="/"), path=path) == 200


async def test_a_path_that_is_not_served_says_which_one_is() -> None:
    response = await ModernClient(served(streamable_http_path="/api/mcp")).call("echo", path="/mcp")
    assert (response.status, response.json["error"]["code"]) == (404, -32600)
    assert "/api/mcp" in response.json["error"]["message"]


@pytest.mark.parametrize(
    ("root_path", "path", "wanted"),
    [
        ("", "/mcp", 200),
        ("/api", "/api/mcp", 200),
        ("/api", "/api/mcp/", 200),
        ("/api", "/mcp", 200),  # servers that leave the root out of the path
        ("/m", "/mcp", 200),
        ("/api", "/api", 404),
        ("/api", "/apix/mcp", 404),
        ("/api/v1", "/api/v1/mcp", 200),
    ],
)
async def test_a_root_path_is_not_part_of_the_endpoint(root_path: str, path: str, wanted: int) -> None:
    client = ModernClient(served(), root_path=root_path)
    assert (await client.call("echo", path=path)).status == wanted


async def test_a_health_path_answers_to_anybody() -> None:
    client = HTTP(served(health_path="/health"), headers={"host": "probe.example", "origin": "http://evil.example"})
    for path in ("/health", "/health/"):
        response = await client.request("GET", path)
        assert (response.status, response.json) == (200, {"status": "ok"})
    assert (await client.request("GET", "/healthy")).status == 404
    assert (await HTTP(served()).request("GET", "/health")).status == 404


@pytest.mark.requirement("R-HS-07")
@pytest.mark.parametrize("verb", ["POST", "DELETE"])
async def test_a_health_path_is_for_reading(verb: str) -> None:
    response = await HTTP(served(health_path="/health")).request(verb, "/health")
    assert response.status == 405


async def test_websockets_are_closed() -> None:
    received: list[str] = []
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        received.append("websocket.connect")
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await served()({"type": "websocket", "path": "/mcp", "headers": []}, receive, send)
    assert [message["type"] for message in sent] == ["websocket.close"]


# --- the lifespan ----------------------------------------------------------------------------------------------


class Life:
    """A lifespan that is watched: what it yields, how often it was entered and left, and how it fails."""

    def __init__(self) -> None:
        self.entered = 0
        self.left = 0
        self.failures: list[BaseException] = []
        self.failure_at_the_end: Exception | None = None
        self.slow = False
        self.server = Server("living", lifespan=self.span, on_call_tool=self.call, subscriptions=True)
        self.app = StreamableHTTP(self.server, HTTPOptions())

    @asynccontextmanager
    async def span(self, server: Server[Any]) -> AsyncGenerator[dict[str, int]]:
        if self.failures:
            raise self.failures.pop(0)
        self.entered += 1
        async with anyio.create_task_group() as tasks:  # as a lifespan may
            tasks.start_soon(anyio.sleep_forever)
            if self.slow:
                await anyio.sleep(0.01)
            yield {"number": self.entered}
            tasks.cancel_scope.cancel()
        self.left += 1
        if self.failure_at_the_end is not None:
            raise self.failure_at_the_end

    def call(self, ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        return CallToolResult(content=[], structured_content=ctx.lifespan_context)


async def number_of(app: Any) -> int:
    """What a handler finds of the lifespan, in either era."""
    modern = await ModernClient(app).call("x")
    client = HandshakeClient(app)
    await client.initialize()
    legacy = await client.call("x")
    found = {response.json["result"]["structuredContent"]["number"] for response in (modern, legacy)}
    assert len(found) == 1
    return int(found.pop())


async def test_the_lifespan_is_that_of_the_app() -> None:
    life = Life()
    async with living(life.app) as lifespan:
        assert lifespan.sent == ["lifespan.startup.complete"]
        assert life.entered == 1  # before the first request
        assert [await number_of(life.app) for _ in range(3)] == [1, 1, 1]
        assert life.left == 0
    assert lifespan.sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert (life.entered, life.left) == (1, 1)


async def test_without_lifespan_events_the_first_request_enters_it() -> None:
    life = Life()
    assert life.entered == 0
    assert [await number_of(life.app) for _ in range(3)] == [1, 1, 1]
    assert (life.entered, life.left) == (1, 0)
    await life.server.aclose()
    assert (life.entered, life.left) == (1, 1)


async def test_requests_that_come_first_together_enter_it_once() -> None:
    life = Life()
    life.slow = True
    numbers: list[int] = []

    async def ask() -> None:
        numbers.append(await number_of(life.app))

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(ask)
    assert numbers == [1] * 10
    assert life.entered == 1
    await life.server.aclose()
    assert life.left == 1


async def test_the_app_can_live_again() -> None:
    life = Life()
    for number in (1, 2):
        async with living(life.app):
            assert await number_of(life.app) == number
    assert (life.entered, life.left) == (2, 2)


async def test_a_server_without_a_lifespan_needs_none() -> None:
    app = served()
    assert await status(app) == 200
    async with living(app) as lifespan:
        assert await status(app) == 200
    assert lifespan.sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def lived(app: Any) -> Lifespan:
    """A lifespan from its start to its end, whatever happens in between."""
    lifespan = Lifespan()
    lifespan.shut_down()
    with anyio.fail_after(SECONDS):
        await lifespan.run(app)
    return lifespan


async def test_a_lifespan_that_cannot_start_stops_the_server(caplog: pytest.LogCaptureFixture) -> None:
    life = Life()
    life.failures.append(RuntimeError("no database"))
    with caplog.at_level(logging.ERROR, logger="mcp_core"):
        lifespan = await lived(life.app)
        flush_logs()
    assert lifespan.sent == ["lifespan.startup.failed"]
    assert "no database" in lifespan.reasons[0]
    (record,) = caplog.records
    assert "no database" in (record.exc_text or "")


async def test_a_lifespan_that_cannot_end_says_so_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    life = Life()
    life.failure_at_the_end = RuntimeError("the database is locked")
    with caplog.at_level(logging.ERROR, logger="mcp_core"):
        lifespan = await lived(life.app)
        flush_logs()
    assert lifespan.sent == ["lifespan.startup.complete", "lifespan.shutdown.failed"]
    assert "the database is locked" in lifespan.reasons[1]
    assert len(caplog.records) == 1


async def test_a_lifespan_that_fails_at_the_first_request_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    life = Life()
    life.failures = [RuntimeError("no database"), ValueError("not yet")]
    with caplog.at_level(logging.ERROR, logger="mcp_core"):
        for _ in range(2):
            response = await ModernClient(life.app).call("x")
            assert response.status == 500
            assert response.json["error"] == {"code": -32603, "message": "Internal server error"}
        flush_logs()
    assert ["no database" in (r.exc_text or "") for r in caplog.records] == [True, False]
    assert await number_of(life.app) == 1
    await life.server.aclose()


# --- inside of other apps ----------------------------------------------------------------------------------------


def typed_app(**options: Any) -> tuple[MCPServer, Any]:
    """A typed server with a lifespan, and its app; nothing wires the lifespan."""

    @asynccontextmanager
    async def span(server: Any) -> AsyncGenerator[dict[str, str]]:
        yield {"database": "open"}

    mcp = MCPServer("mounted", lifespan=span)

    @mcp.tool()
    async def greet(name: str) -> str:
        await anyio.lowlevel.checkpoint()
        return f"Hello {name}"

    return mcp, mcp.server.streamable_http_app(**options)


async def home(request: Request) -> PlainTextResponse:
    return PlainTextResponse("home")


def fastapi_around(app: Any) -> FastAPI:
    outer = FastAPI()
    outer.mount("/api", app)
    return outer


def fastapi_with_middleware(app: Any) -> FastAPI:
    outer = fastapi_around(app)

    @outer.middleware("http")
    async def mark(request: Request, call_next: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        response = await call_next(request)
        response.headers["x-marked"] = "yes"
        return response

    return outer


AROUND: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "starlette mount": ("/mcp", lambda app: Starlette(routes=[Route("/", home), Mount("/api", app)]), "/api/mcp"),
    "starlette mount at the root": ("/mcp", lambda app: Starlette(routes=[Mount("/", app)]), "/mcp"),
    "starlette mount in a mount": (
        "/mcp",
        lambda app: Starlette(routes=[Mount("/v1", routes=[Mount("/api", app)])]),
        "/v1/api/mcp",
    ),
    "starlette mount of the endpoint itself": ("/", lambda app: Starlette(routes=[Mount("/mcp", app)]), "/mcp/"),
    "starlette route": ("/mcp", lambda app: Starlette(routes=[Route("/mcp", app)]), "/mcp"),
    "starlette host": ("/mcp", lambda app: Starlette(routes=[Host("127.0.0.1", app)]), "/mcp"),
    "fastapi mount": ("/mcp", fastapi_around, "/api/mcp"),
    "fastapi mount behind middleware": ("/mcp", fastapi_with_middleware, "/api/mcp"),
}
"""The path that our app is told, the app around it, and the path of the endpoint there."""


@pytest.mark.parametrize("root_path", ["", "/proxied"])
@pytest.mark.parametrize("kind", AROUND)
async def test_a_mounted_app_serves_both_eras_without_wiring(kind: str, root_path: str) -> None:
    own_path, around, path = AROUND[kind]
    mcp, inner = typed_app(streamable_http_path=own_path)
    app, path = around(inner), root_path + path
    call = {"name": "greet", "arguments": {"name": "you"}}
    modern = ModernClient(app, root_path=root_path)
    answer = await modern.answer(modern.message(1, "tools/call", call), path=path)
    assert answer.json["result"]["structuredContent"] == {"result": "Hello you"}
    client = HandshakeClient(app, root_path=root_path)
    opened = await client.answer(client.opening(), path=path, headers={"mcp-protocol-version": None})
    client.session_id = opened.header("mcp-session-id")
    answer = await client.answer(client.message(1, "tools/call", call), path=path)
    assert answer.json["result"]["structuredContent"] == {"result": "Hello you"}
    headers = {"accept": "text/event-stream", **client.own_headers}
    async with client.open("GET", path, headers=headers) as stream:
        await stream.started()
        mcp.add_tool(no_op)
        assert (await stream.next_message())["method"] == "notifications/tools/list_changed"
    assert (await client.request("DELETE", path, headers=client.own_headers)).status == 200
    await mcp.server.aclose()


def no_op() -> None:
    """Do nothing."""


@pytest.mark.requirement("R-HTTP-11")
@pytest.mark.parametrize(
    ("around", "progress"),
    [
        pytest.param(fastapi_around, False, id="plain"),
        pytest.param(fastapi_around, True, id="plain, with a stream"),
        # Without a stream Starlette's own middleware complains of a response that nobody is there to read.
        pytest.param(fastapi_with_middleware, True, id="behind middleware, with a stream"),
    ],
)
async def test_a_mounted_app_sees_its_clients_go(around: Callable[[Any], Any], progress: bool) -> None:
    started, ended = anyio.Event(), anyio.Event()

    async def wait(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        if progress:
            await ctx.report_progress(1)
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return CallToolResult(content=[])

    client = ModernClient(around(Server("waiting", on_call_tool=wait).streamable_http_app()))
    message = client.message(1, "tools/call", {"name": "x"}, meta={"progressToken": 1})
    async with client.post(message, path="/api/mcp") as exchange:
        with anyio.fail_after(SECONDS):
            await started.wait()
            exchange.disconnect()
            await ended.wait()


async def test_the_outer_app_keeps_its_own_routes_and_its_own_lifespan() -> None:
    mcp, inner = typed_app()
    states: list[str] = []

    @asynccontextmanager
    async def own(app: FastAPI) -> AsyncGenerator[None]:
        states.append("started")
        yield
        states.append("ended")

    outer = FastAPI(lifespan=own)
    outer.add_api_route("/hello", lambda: {"hello": "there"})
    outer.mount("/api", inner)
    async with living(outer):
        assert (await HTTP(outer).request("GET", "/hello")).json == {"hello": "there"}
        modern = ModernClient(outer)
        call = {"name": "greet", "arguments": {"name": "you"}}
        response = await modern.answer(modern.message(1, "tools/call", call), path="/api/mcp")
        assert response.status == 200
        assert (await HTTP(outer).request("GET", "/nowhere")).status == 404
    assert states == ["started", "ended"]
    await mcp.server.aclose()


async def test_subscriptions_work_where_no_lifespan_is_wired() -> None:
    server = Server("changes", subscriptions=True, on_list_tools=list_tools)
    outer = Starlette(routes=[Mount("/api", server.streamable_http_app())])
    client = ModernClient(outer)
    message = client.message(1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    async with client.post(message, path="/api/mcp") as exchange:
        assert (await exchange.next_message())["method"] == "notifications/subscriptions/acknowledged"
        server.announce(ToolsListChanged())
        assert (await exchange.next_message())["method"] == "notifications/tools/list_changed"

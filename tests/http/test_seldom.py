"""What happens seldom over HTTP, and must be right then."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from mcp_core import RequestContext, Server
from mcp_core.auth import AuthSettings
from mcp_core.transports.streamable_http import HTTPOptions, StreamableHTTP
from mcp_core.transports.streamable_http.address import addresses
from mcp_core.transports.streamable_http.media_types import accepted
from tests.http.asgi import ModernClient


def app_of(**options: Any) -> StreamableHTTP:
    return StreamableHTTP(Server("s"), HTTPOptions(**options))


class Verifier:
    async def verify_token(self, token: str) -> None:
        return None


def test_there_is_no_metadata_without_authorization() -> None:
    with pytest.raises(LookupError, match="no protected resource metadata without auth="):
        app_of().metadata  # noqa: B018 - a property that raises


async def test_the_metadata_may_be_read_by_pages_of_every_origin() -> None:
    settings = AuthSettings(issuer_url="http://a", resource_server_url="http://127.0.0.1/mcp")
    metadata = app_of(auth=settings, token_verifier=Verifier()).metadata
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    scope: dict[str, Any] = {"type": "http", "method": "OPTIONS", "path": metadata.path, "headers": []}
    await metadata(scope, receive, send)
    headers = dict(sent[0]["headers"])
    assert (sent[0]["status"], headers[b"access-control-allow-origin"]) == (204, b"*")
    sent.clear()
    await metadata({"type": "lifespan"}, receive, send)
    assert sent == []


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"mcp-method": "notifications/other"}, "Mcp-Method does not match; the body's method is 'notifications/x'"),
        ({"mcp-protocol-version": "2025-11-25"}, None),
    ],
)
async def test_headers_of_a_notification_repeat_its_body(headers: dict[str, str], told: str | None) -> None:
    client = ModernClient(app_of())
    message = {
        **client.message(None, "notifications/x"),
        "params": {"_meta": client.message(1, "x")["params"]["_meta"]},
    }
    del message["id"]
    response = await client.answer(message, headers=headers)
    if told is not None:
        assert (response.status, response.json["error"]["message"]) == (400, told)
    else:
        assert response.status == 400


def test_a_quality_that_is_no_number_is_that_of_what_is_not_wanted() -> None:
    found = accepted(b"application/json;q=high, text/event-stream;q=1")
    assert (found.json, found.stream) == (False, True)


def test_a_unix_socket_is_said_by_its_path(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        assert addresses([listening], "/mcp", encrypted=False) == [f"unix:{tmp_path / 's'}"]


async def test_a_context_of_a_modern_request_asks_nothing() -> None:
    seen: list[str] = []

    async def call(ctx: RequestContext, params: Any) -> Any:
        try:
            await ctx.peer.request("roots/list", None, None)
        except Exception as exc:
            seen.append(str(exc))
        return {"content": []}

    await ModernClient(StreamableHTTP(Server("s", on_call_tool=call), HTTPOptions())).call("x")
    assert seen == ["roots/list cannot be sent to a 2026-07-28 client"]

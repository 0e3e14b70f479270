"""Bearer tokens: who is let in, what the others are told, and where a token comes from.

In process, one ASGI call a request. Spec: basic/authorization; RFC 6750, RFC 9728.
"""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import anyio
import anyio.lowlevel
import pytest

from mcp_core import Client, RequestContext, Server
from mcp_core.auth import AccessToken, AuthSettings
from mcp_core.client import Mode
from mcp_core.server import ASGIApp
from mcp_core.testing import flush_logs, modern_meta
from mcp_core.transports.streamable_http import bearer
from mcp_core.types import (
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from mcp_typed import Context, MCPServer

RESOURCE: Final = "https://mcp.example.com/mcp"
ISSUER: Final = "https://issuer.example.com"
METADATA: Final = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
ERAS: Final = ["modern", "handshake"]

# --- one request, in process ------------------------------------------------------------------


class Reply(NamedTuple):
    """One response; `read` is whether the app asked for the body of the request."""

    status: int
    headers: dict[str, str]
    body: bytes
    read: bool

    @property
    def json(self) -> Any:
        """The body, decoded."""
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)

    @property
    def challenge(self) -> str | None:
        """What the client is told about tokens."""
        return self.headers.get("www-authenticate")


async def ask(
    app: ASGIApp,
    message: Any = None,
    *headers: tuple[str, str],
    method: str = "POST",
    path: str = "/mcp",
    query: str = "",
    host: str = "127.0.0.1:8000",
    leaves: bool = False,
) -> Reply:
    """Make one request. The client stays until it has its response, unless it `leaves` after its body."""
    body = b"" if message is None else json.dumps(message).encode()
    fields = [
        ("Host", host),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        *headers,
    ]
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in fields],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
    }
    sent: list[MutableMapping[str, Any]] = []
    received: list[str] = []

    async def receive() -> dict[str, Any]:
        received.append(method)
        if len(received) == 1:
            return {"type": "http.request", "body": body, "more_body": False}
        if not leaves:
            await anyio.sleep_forever()
        return {"type": "http.disconnect"}

    async def send(event: MutableMapping[str, Any]) -> None:
        sent.append(event)

    with anyio.fail_after(60):
        await app(scope, receive, send)
    assert [event["type"] for event in sent[:1]] == ["http.response.start"]
    found = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
    return Reply(sent[0]["status"], found, b"".join(event.get("body", b"") for event in sent[1:]), bool(received))


def bearer_of(token: str) -> tuple[str, str]:
    """The header that carries a token."""
    return "Authorization", f"Bearer {token}"


def stateless(method: str, name: str | None = None, **params: Any) -> tuple[Any, list[tuple[str, str]]]:
    """A 2026-07-28 request and its headers."""
    params = {**params, "_meta": modern_meta()}
    headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)]
    if name is not None:
        params["name"] = name
        headers.append(("Mcp-Name", name))
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers


def shaking(revision: str = "2025-11-25") -> Any:
    """The request that opens a session."""
    client = {"name": "c", "version": "1"}
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": client}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


def first_of(era: str) -> tuple[Any, list[tuple[str, str]]]:
    """What a client of this era may send first."""
    return stateless("tools/call", "whoami") if era == "modern" else (shaking(), [])


async def opened(app: ASGIApp, token: str, revision: str = "2025-11-25") -> tuple[str, str]:
    """A session of this token, as the header that names it."""
    reply = await ask(app, shaking(revision), bearer_of(token))
    assert reply.status == 200
    return "Mcp-Session-Id", reply.headers["mcp-session-id"]


async def called(app: ASGIApp, era: str, token: str) -> Reply:
    """Call the tool, after a handshake where there is one."""
    if era == "modern":
        message, headers = stateless("tools/call", "whoami")
        return await ask(app, message, bearer_of(token), *headers)
    session = await opened(app, token)
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "whoami"}}
    return await ask(app, message, bearer_of(token), session)


# --- who is known -------------------------------------------------------------------------------


def access(token: str = "good", **fields: Any) -> AccessToken:
    """A token for this server."""
    given: dict[str, Any] = {"client_id": "app", "resource": RESOURCE, **fields}
    return AccessToken(token=token, **given)


class Tokens:
    """Knows some tokens, and what it was asked about."""

    def __init__(self, *known: AccessToken) -> None:
        self._known = {token.token: token for token in known}
        self.asked: list[str] = []

    async def verify_token(self, token: str) -> AccessToken | None:
        self.asked.append(token)
        return self._known.get(token)


class Heard:
    """A server, and the tokens that its handlers found."""

    def __init__(self) -> None:
        self.auth: list[Any] = []
        self.server = Server("guarded", on_call_tool=self._call, on_ping=self._ping)
        self.server.add_notification_handler("notifications/mine", dict, self._noted)

    async def _call(self, ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        self.auth.append(ctx.auth)
        return CallToolResult(content=[TextContent(text=params.name)])

    def _ping(self, ctx: RequestContext, params: object) -> EmptyResult:
        self.auth.append(ctx.auth)
        return EmptyResult()

    async def _noted(self, ctx: RequestContext, params: object) -> None:
        self.auth.append(ctx.auth)


def settings(**more: Any) -> AuthSettings:
    given: dict[str, Any] = {"resource_server_url": RESOURCE, **more}
    return AuthSettings(issuer_url=ISSUER, **given)


def guarded(*known: AccessToken, **more: Any) -> tuple[ASGIApp, Heard, Tokens]:
    """An app that lets in these tokens; what is given further are its settings."""
    heard, tokens = Heard(), Tokens(*known)
    return heard.server.streamable_http_app(auth=settings(**more), token_verifier=tokens), heard, tokens


def challenge(error: str | None = None, reason: str = "", scope: str | None = None, metadata: str = METADATA) -> str:
    """What a refused client is told."""
    parts = [] if error is None else [f'error="{error}"', f'error_description="{reason}"']
    parts += [] if scope is None else [f'scope="{scope}"']
    return "Bearer " + ", ".join([*parts, f'resource_metadata="{metadata}"'])


NEEDED: Final = "a Bearer token is needed"


def refusal(reason: str) -> Any:
    """The body of a refusal: an error that answers no request."""
    return {"jsonrpc": "2.0", "error": {"code": -32600, "message": f"Unauthorized: {reason}"}}


# --- the metadata ---------------------------------------------------------------------------------


@pytest.mark.requirement("R-AUTH-02")
@pytest.mark.requirement("R-AUTH-03")
@pytest.mark.parametrize("path", [WELL_KNOWN, f"{WELL_KNOWN}/", f"{WELL_KNOWN}/mcp", f"{WELL_KNOWN}/mcp/"])
async def test_the_metadata_is_at_both_places(path: str) -> None:
    app, _, tokens = guarded()
    reply = await ask(app, method="GET", path=path)
    assert reply.status == 200
    assert reply.json == {
        "resource": RESOURCE,
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
    }
    assert reply.headers["access-control-allow-origin"] == "*"
    assert tokens.asked == []


@pytest.mark.requirement("R-AUTH-02")
async def test_the_metadata_tells_of_scopes_and_of_documentation() -> None:
    app, _, _ = guarded(required_scopes=["read", "write"], service_documentation_url="https://docs.example.com/")
    reply = await ask(app, method="GET", path=f"{WELL_KNOWN}/mcp")
    assert reply.json == {
        "resource": RESOURCE,
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["read", "write"],
        "resource_documentation": "https://docs.example.com/",
    }


@pytest.mark.requirement("R-AUTH-02")
@pytest.mark.requirement("R-AUTH-03")
@pytest.mark.parametrize("address", ["https://mcp.example.com", "https://mcp.example.com/"])
async def test_a_server_at_the_root_has_one_place_for_its_metadata(address: str) -> None:
    heard = Heard()
    app = heard.server.streamable_http_app(
        auth=settings(resource_server_url=address), token_verifier=Tokens(), streamable_http_path="/"
    )
    assert (await ask(app, method="GET", path=WELL_KNOWN)).json["resource"] == address
    refused = await ask(app, shaking(), path="/")
    assert (refused.status, refused.challenge) == (401, challenge(metadata=f"https://mcp.example.com{WELL_KNOWN}"))


@pytest.mark.requirement("R-AUTH-02")
async def test_the_place_of_the_metadata_follows_the_address_that_clients_use() -> None:
    # Behind a proxy, that is another path than the one served here.
    heard = Heard()
    outside = settings(resource_server_url="https://mcp.example.com:8443/tenants/a/mcp")
    app = heard.server.streamable_http_app(auth=outside, token_verifier=Tokens())
    place = f"https://mcp.example.com:8443{WELL_KNOWN}/tenants/a/mcp"
    assert (await ask(app, shaking())).challenge == challenge(metadata=place)
    assert (await ask(app, method="GET", path=f"{WELL_KNOWN}/tenants/a/mcp")).status == 200
    assert (await ask(app, method="GET", path=f"{WELL_KNOWN}/mcp")).status == 404


@pytest.mark.requirement("R-AUTH-02")
async def test_metadata_and_health_are_open_to_all() -> None:
    heard, tokens = Heard(), Tokens()
    app = heard.server.streamable_http_app(auth=settings(), token_verifier=tokens, health_path="/health")
    for path in ("/health", "/health/", WELL_KNOWN, f"{WELL_KNOWN}/mcp"):
        # A load balancer asks by address, a web page from its own origin, some with a token that is no good.
        for headers in ([], [bearer_of("bad")], [("Origin", "https://elsewhere.example")]):
            reply = await ask(app, None, *headers, method="GET", path=path, host="10.0.0.7:9")
            assert (reply.status, reply.challenge) == (200, None)
    assert (await ask(app, method="GET", path="/health")).json == {"status": "ok"}
    assert tokens.asked == []


async def test_without_auth_there_is_no_metadata_and_no_token() -> None:
    heard = Heard()
    app = heard.server.streamable_http_app()
    assert (await ask(app, method="GET", path=WELL_KNOWN)).status == 404
    assert (await called(app, "modern", "any")).status == 200
    assert heard.auth == [None]


async def test_settings_without_a_verifier_are_refused_and_the_reverse() -> None:
    server = Server("x")
    with pytest.raises(ValueError, match="auth and token_verifier go together"):
        server.streamable_http_app(auth=settings())
    with pytest.raises(ValueError, match="auth and token_verifier go together"):
        server.streamable_http_app(token_verifier=Tokens())


# --- 401: no token, or none that is good -------------------------------------------------------------


@pytest.mark.requirement("R-HS-03")
@pytest.mark.requirement("R-AUTH-03")
@pytest.mark.requirement("R-AUTH-05")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([], id="none"),
        pytest.param([("Authorization", "Basic Z29vZDpnb29k")], id="another scheme"),
        pytest.param([("Authorization", "good")], id="no scheme"),
        pytest.param([("Authorization", "Bearerer good")], id="a longer scheme"),
        pytest.param([("Cookie", "access_token=good")], id="a cookie"),
    ],
)
async def test_without_a_token_the_client_is_told_where_one_comes_from(
    era: str, headers: list[tuple[str, str]]
) -> None:
    app, heard, tokens = guarded(access())
    message, own = first_of(era)
    reply = await ask(app, message, *own, *headers)
    # No error code: nothing was wrong with a token that was not sent (RFC 6750, 3.1).
    assert (reply.status, reply.challenge) == (401, challenge())
    assert reply.json == refusal(NEEDED)
    assert "mcp-session-id" not in reply.headers
    assert (heard.auth, tokens.asked) == ([], [])


@pytest.mark.requirement("R-AUTH-06")
async def test_the_first_challenge_names_all_scopes_that_are_needed() -> None:
    app, _, _ = guarded(access(), required_scopes=["read", "write"])
    assert (await ask(app, shaking())).challenge == challenge(scope="read write")
    bad = await ask(app, shaking(), bearer_of("bad"))
    assert (bad.status, bad.challenge) == (401, challenge("invalid_token", "the token is not valid", "read write"))


@pytest.mark.requirement("R-HS-03")
@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.requirement("R-AUTH-05")
@pytest.mark.parametrize("era", ERAS)
async def test_a_token_that_is_not_good_is_refused_before_anything_runs(era: str) -> None:
    app, heard, tokens = guarded(access())
    message, headers = first_of(era)
    reply = await ask(app, message, *headers, bearer_of("very-bad"))
    assert (reply.status, reply.challenge) == (401, challenge("invalid_token", "the token is not valid"))
    assert reply.json == refusal("the token is not valid")
    assert b"very-bad" not in reply.body
    assert (heard.auth, tokens.asked) == ([], ["very-bad"])


@pytest.mark.requirement("R-HS-03")
@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.parametrize("query", ["access_token=good", "token=good&bearer=good", "Authorization=Bearer%20good"])
async def test_a_token_in_the_query_is_no_token(query: str) -> None:
    app, heard, tokens = guarded(access())
    for era in ERAS:
        message, headers = first_of(era)
        reply = await ask(app, message, *headers, query=query)
        assert (reply.status, reply.challenge) == (401, challenge())
    assert (heard.auth, tokens.asked) == ([], [])


@pytest.mark.requirement("R-HS-03")
@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS"])
async def test_every_http_method_needs_a_token(method: str) -> None:
    app, _, _ = guarded(access())
    session = await opened(app, "good")
    reply = await ask(app, None, session, method=method)
    assert (reply.status, reply.challenge) == (401, challenge())
    reply = await ask(app, None, session, bearer_of("bad"), method=method)
    assert (reply.status, reply.challenge) == (401, challenge("invalid_token", "the token is not valid"))
    # The session has lived through it.
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    assert (await ask(app, ping, session, bearer_of("good"))).json["result"] == {}


@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.requirement("R-SEC-05")
async def test_a_session_is_no_substitute_for_a_token() -> None:
    app, heard, _ = guarded(access())
    session = await opened(app, "good")
    reply = await ask(app, {"jsonrpc": "2.0", "id": 2, "method": "ping"}, session)
    assert (reply.status, reply.challenge) == (401, challenge())
    assert heard.auth == []


@pytest.mark.requirement("R-HS-03")
@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("expires_at", "status"),
    [
        pytest.param(0, 401, id="epoch"),
        pytest.param(999, 401, id="past"),
        pytest.param(1000.0, 401, id="now"),
        pytest.param(1000.5, 200, id="soon"),
        pytest.param(None, 200, id="never"),
    ],
)
async def test_an_expired_token_is_refused(
    era: str, expires_at: float | None, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bearer, "time", SimpleNamespace(time=lambda: 1000.0))
    app, heard, _ = guarded(access(expires_at=expires_at))
    message, headers = first_of(era)
    reply = await ask(app, message, *headers, bearer_of("good"))
    assert reply.status == status
    if status == 401:
        assert reply.challenge == challenge("invalid_token", "the token has expired")
        assert reply.json == refusal("the token has expired")
        assert heard.auth == []


@pytest.mark.requirement("R-AUTH-04")
async def test_a_token_that_expires_within_a_session_ends_its_use(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(bearer, "time", SimpleNamespace(time=lambda: now[0]))
    app, _, _ = guarded(access(expires_at=1060))
    session = await opened(app, "good")
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    assert (await ask(app, ping, session, bearer_of("good"))).status == 200
    now[0] = 1060.0
    assert (await ask(app, ping, session, bearer_of("good"))).status == 401


# --- audience ------------------------------------------------------------------------------------------

OURS: Final = [
    pytest.param(RESOURCE, id="as it is"),
    pytest.param(f"{RESOURCE}/", id="slash at the end"),
    pytest.param("HTTPS://MCP.Example.COM/mcp", id="upper case"),
    pytest.param([RESOURCE], id="the only one"),
    pytest.param(["https://other.example.com/mcp", RESOURCE], id="one of two"),
    pytest.param(["api://other", "https://MCP.example.com/mcp/"], id="one of two, spelled otherwise"),
]

NOT_OURS: Final = [
    pytest.param(None, id="none"),
    pytest.param("", id="empty"),
    pytest.param([], id="no audiences"),
    pytest.param("https://other.example.com/mcp", id="another host"),
    pytest.param("https://mcp.example.com.evil.example/mcp", id="our host as a prefix"),
    pytest.param("https://mcp.example.com@evil.example/mcp", id="our host as a user"),
    pytest.param("http://mcp.example.com/mcp", id="another scheme"),
    pytest.param("https://mcp.example.com:8443/mcp", id="another port"),
    pytest.param("https://mcp.example.com", id="the whole host"),
    pytest.param("https://mcp.example.com/mcp/admin", id="below"),
    pytest.param("https://mcp.example.com/mcp2", id="our path as a prefix"),
    pytest.param("https://mcp.example.com/MCP", id="paths have a case"),
    pytest.param("https://mcp.example.com/mcp?tenant=b", id="another query"),
    pytest.param("https://mcp.example.com/mcp#b", id="a fragment"),
    pytest.param("mcp.example.com/mcp", id="no scheme"),
    pytest.param("https://[mcp.example.com/mcp", id="no URL"),
    pytest.param(["https://a.example/mcp", "https://b.example/mcp"], id="two others"),
]


@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.requirement("R-AUTH-19")
@pytest.mark.parametrize("resource", OURS)
async def test_a_token_for_this_server_is_let_in(resource: str | list[str]) -> None:
    app, heard, _ = guarded(access(resource=resource))
    assert (await called(app, "modern", "good")).status == 200
    assert [token.resource for token in heard.auth] == [resource]


@pytest.mark.requirement("R-HS-03")
@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.parametrize("resource", NOT_OURS)
async def test_a_token_for_somebody_else_is_refused(resource: str | list[str] | None) -> None:
    app, heard, _ = guarded(access(resource=resource))
    message, headers = first_of("modern")
    reply = await ask(app, message, *headers, bearer_of("good"))
    reason = f"the token was not issued for {RESOURCE}"
    assert (reply.status, reply.challenge) == (401, challenge("invalid_token", reason))
    assert reply.json == refusal(reason)
    assert heard.auth == []


@pytest.mark.requirement("R-AUTH-19")
@pytest.mark.parametrize("address", ["HTTPS://MCP.example.com/mcp", f"{RESOURCE}/"])
async def test_the_own_address_may_be_spelled_otherwise_too(address: str) -> None:
    app, _, _ = guarded(
        access(), access("other", resource="https://other.example.com/mcp"), resource_server_url=address
    )
    assert (await called(app, "modern", "good")).status == 200
    message, headers = first_of("modern")
    assert (await ask(app, message, *headers, bearer_of("other"))).status == 401


@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.parametrize("resource", [None, "api://somewhere", ["https://other.example.com/mcp"]])
async def test_the_audience_may_be_left_to_the_verifier(resource: str | list[str] | None) -> None:
    app, heard, _ = guarded(access(resource=resource), check_resource=False)
    for era in ERAS:
        assert (await called(app, era, "good")).status == 200
    assert [token.resource for token in heard.auth] == [resource, resource]


# --- 403: scopes -----------------------------------------------------------------------------------------


@pytest.mark.requirement("R-HS-04")
@pytest.mark.requirement("R-AUTH-05")
@pytest.mark.requirement("R-AUTH-06")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "scopes",
    [
        pytest.param([], id="none"),
        pytest.param(["read"], id="one of two"),
        pytest.param(["write"], id="the other of two"),
        pytest.param(["admin", "reader"], id="others"),
        pytest.param(["READ", "WRITE"], id="scopes have a case"),
        pytest.param(["read write"], id="two in one"),
    ],
)
async def test_too_small_a_scope_is_told_all_that_is_needed(era: str, scopes: list[str]) -> None:
    app, heard, _ = guarded(access(scopes=scopes), required_scopes=["read", "write"])
    message, headers = first_of(era)
    reply = await ask(app, message, *headers, bearer_of("good"))
    told = challenge("insufficient_scope", "the token's scope is too small", "read write")
    assert (reply.status, reply.challenge) == (403, told)
    assert reply.json["error"]["code"] == -32600
    assert "id" not in reply.json
    assert heard.auth == []


@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.requirement("R-AUTH-05")
async def test_a_token_that_is_not_good_is_not_asked_for_its_scope() -> None:
    known = [access("old", expires_at=1, scopes=[]), access("other", resource="https://a.example", scopes=[])]
    app, _, _ = guarded(*known, required_scopes=["read"])
    for token in ("old", "other", "unknown"):
        reply = await ask(app, shaking(), bearer_of(token))
        assert reply.status == 401
        assert 'error="invalid_token"' in (reply.challenge or "")


@pytest.mark.requirement("R-AUTH-07")
@pytest.mark.parametrize("era", ERAS)
async def test_more_than_the_scopes_needed_is_enough(era: str) -> None:
    app, heard, _ = guarded(access(scopes=["other", "write", "read"]), required_scopes=["read", "write"])
    assert (await called(app, era, "good")).status == 200
    assert [token.scopes for token in heard.auth] == [["other", "write", "read"]]


@pytest.mark.requirement("R-AUTH-07")
async def test_a_verifier_says_what_a_broad_scope_contains() -> None:
    contained = {"admin": ["admin", "write", "read"], "write": ["write", "read"], "read": ["read"]}

    class Broadening:
        async def verify_token(self, token: str) -> AccessToken | None:
            return access(token, scopes=contained[token])

    app = Heard().server.streamable_http_app(auth=settings(required_scopes=["write"]), token_verifier=Broadening())
    told = {token: (await ask(app, shaking(), bearer_of(token))).status for token in contained}
    assert told == {"admin": 200, "write": 200, "read": 403}


# --- 403: scopes that only one operation needs ------------------------------------------------------------

FOR_SELLING: Final = challenge("insufficient_scope", "the token's scope is too small", "read books:write books:sell")


def selling(*, reports: bool = False, waits: bool = False, **options: Any) -> ASGIApp:
    """A server with a tool that takes more than the server itself."""

    async def call_tool(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        if reports:
            await ctx.report_progress(1)
        if waits:
            await anyio.lowlevel.checkpoint()
        ctx.require_scopes("books:write", "books:sell")
        return CallToolResult(content=[])

    server = Server("shop", on_call_tool=call_tool)
    known = Tokens(
        access("reader", scopes=["read"]), access("seller", scopes=["read", "books:sell", "books:write", "more"])
    )
    return server.streamable_http_app(auth=settings(required_scopes=["read"]), token_verifier=known, **options)


@pytest.mark.requirement("R-AUTH-05")
@pytest.mark.requirement("R-AUTH-06")
@pytest.mark.parametrize("waits", [False, True], ids=["at once", "waits"])
@pytest.mark.parametrize("options", [{}, {"json_response": True}, {"stateless_http": True}], ids=str)
@pytest.mark.parametrize("era", ERAS)
async def test_a_handler_that_needs_more_says_all_that_it_needs(era: str, options: Any, waits: bool) -> None:
    app = selling(waits=waits, **options)
    if era == "handshake" and "stateless_http" in options:
        message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "whoami"}}
        reply = await ask(app, message, bearer_of("reader"), ("MCP-Protocol-Version", "2025-11-25"))
    else:
        reply = await called(app, era, "reader")
    assert (reply.status, reply.challenge) == (403, FOR_SELLING)
    assert reply.json["id"] == (1 if era == "modern" else 2)
    assert reply.json["error"] == {
        "code": -32600,
        "message": "the access token's scope is too small; needed: books:write books:sell",
    }


@pytest.mark.requirement("R-AUTH-06")
@pytest.mark.parametrize("era", ERAS)
async def test_a_handler_that_needs_no_more_than_there_is_goes_on(era: str) -> None:
    reply = await called(selling(), era, "seller")
    assert (reply.status, reply.challenge) == (200, None)
    assert "result" in reply.json


@pytest.mark.requirement("R-AUTH-06")
async def test_once_a_stream_is_open_the_error_is_in_it() -> None:
    message, headers = stateless("tools/call", "whoami")
    message["params"]["_meta"]["progressToken"] = 1
    reply = await ask(selling(reports=True), message, bearer_of("reader"), *headers)
    assert reply.status == 200
    assert b"notifications/progress" in reply.body
    assert b"needed: books:write books:sell" in reply.body


async def test_where_no_token_is_asked_for_no_scope_is() -> None:
    async def call_tool(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        ctx.require_scopes("books:write")
        return CallToolResult(content=[])

    message, headers = stateless("tools/call", "whoami")
    reply = await ask(Server("open", on_call_tool=call_tool).streamable_http_app(), message, *headers)
    assert (reply.status, "result" in reply.json) == (200, True)


@pytest.mark.requirement("R-AUTH-06")
async def test_a_typed_tool_asks_for_scopes_the_same_way() -> None:
    mcp = MCPServer("shop")

    @mcp.tool()
    async def whoami(ctx: Context) -> str:
        ctx.require_scopes("books:write", "books:sell")
        return "a seller"

    known = Tokens(access("reader", scopes=["read"]))
    app = mcp.streamable_http_app(auth=settings(required_scopes=["read"]), token_verifier=known)
    reply = await called(app, "modern", "reader")
    assert (reply.status, reply.challenge) == (403, FOR_SELLING)


# --- 400: no proper header ---------------------------------------------------------------------------------

FORM: Final = "Authorization must be: Bearer, a space, and the token"
ONCE: Final = "Authorization may be sent once"


@pytest.mark.requirement("R-HS-05")
@pytest.mark.requirement("R-AUTH-05")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("values", "reason"),
    [
        pytest.param(["Bearer"], FORM, id="no token"),
        pytest.param(["Bearer "], FORM, id="a space and no token"),
        pytest.param(["bearer"], FORM, id="no token, lower case"),
        pytest.param(["Bearer good good"], FORM, id="two tokens"),
        pytest.param(["Bearer good", "Bearer good"], ONCE, id="twice the same"),
        pytest.param(["Bearer bad", "Bearer good"], ONCE, id="the second is good"),
        pytest.param(["Bearer good", "Bearer bad"], ONCE, id="the first is good"),
        pytest.param(["Basic Z29vZDpnb29k", "Bearer good"], ONCE, id="two schemes"),
        pytest.param(["Bearer good", "Bearer good", "Bearer good"], ONCE, id="three times"),
    ],
)
async def test_a_malformed_header_is_told_its_form(era: str, values: list[str], reason: str) -> None:
    app, heard, tokens = guarded(access(scopes=["read"]), required_scopes=["read"])
    message, headers = first_of(era)
    reply = await ask(app, message, *headers, *(("Authorization", value) for value in values))
    assert (reply.status, reply.challenge) == (400, challenge("invalid_request", reason, "read"))
    assert reply.json == refusal(reason)
    assert (heard.auth, tokens.asked) == ([], [])


@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.parametrize(
    "value", ["Bearer good", "bearer good", "BEARER good", "bEaReR good", "Bearer   good", " Bearer good "]
)
async def test_the_scheme_has_no_case_and_the_token_has(value: str) -> None:
    app, heard, tokens = guarded(access())
    message, headers = first_of("modern")
    assert (await ask(app, message, *headers, ("Authorization", value))).status == 200
    assert (await ask(app, message, *headers, ("Authorization", value.replace("good", "GOOD")))).status == 401
    assert tokens.asked == ["good", "GOOD"]
    assert [token.token for token in heard.auth] == ["good"]


@pytest.mark.requirement("R-AUTH-04")
async def test_a_token_reaches_the_verifier_as_it_was_sent() -> None:
    token = "eyJ.A-Z_a~z0+9/.sig=="
    app, _, tokens = guarded(access(token))
    assert (await called(app, "modern", token)).status == 200
    assert tokens.asked == [token]


# --- the order of the guards -----------------------------------------------------------------------------


@pytest.mark.requirement("R-HS-01")
@pytest.mark.requirement("R-HS-02")
@pytest.mark.requirement("R-HS-03")
@pytest.mark.parametrize("headers", [[], [bearer_of("good")]])
async def test_host_and_origin_come_before_the_token(headers: list[tuple[str, str]]) -> None:
    app, heard, tokens = guarded(access())
    for method in ("POST", "GET", "DELETE"):
        message = shaking() if method == "POST" else None
        reply = await ask(app, message, *headers, method=method, host="evil.example")
        assert (reply.status, reply.challenge) == (421, None)
        reply = await ask(app, message, *headers, ("Origin", "https://evil.example"), method=method)
        assert (reply.status, reply.challenge) == (403, None)
    assert (heard.auth, tokens.asked) == ([], [])


@pytest.mark.requirement("R-AUTH-04")
async def test_the_token_comes_before_all_that_the_request_says() -> None:
    app, _, _ = guarded(access())
    faults: list[list[tuple[str, str]]] = [
        [("Content-Type", "text/plain")],
        [("Accept", "image/png")],
        [("Content-Length", str(10**9))],
        [("MCP-Protocol-Version", "1999-01-01")],
        [("Mcp-Session-Id", "unknown")],
    ]
    for fault in faults:
        reply = await ask(app, "no message", *fault)
        assert (reply.status, reply.read) == (401, False)
        reply = await ask(app, "no message", *fault, bearer_of("good"))
        assert 400 <= reply.status < 500
        assert reply.status != 401


async def test_what_is_not_served_needs_no_token() -> None:
    app, _, tokens = guarded(access())
    reply = await ask(app, shaking(), path="/elsewhere")
    assert (reply.status, reply.challenge) == (404, None)
    assert tokens.asked == []


@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
async def test_both_spellings_of_the_endpoint_are_guarded(path: str) -> None:
    app, _, _ = guarded(access())
    assert (await ask(app, shaking(), path=path)).status == 401
    assert (await ask(app, shaking(), bearer_of("good"), path=path)).status == 200


@pytest.mark.requirement("R-AUTH-04")
async def test_a_server_without_sessions_is_guarded_too() -> None:
    heard = Heard()
    app = heard.server.streamable_http_app(
        auth=settings(), token_verifier=Tokens(access()), stateless_http=True, json_response=True
    )
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    assert (await ask(app, ping)).challenge == challenge()
    assert (await ask(app, ping, bearer_of("good"))).json["result"] == {}
    assert [token.token for token in heard.auth] == ["good"]


# --- a verifier that fails -------------------------------------------------------------------------------


@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(RuntimeError("db-password"), id="RuntimeError"),
        pytest.param(KeyError("db-password"), id="KeyError"),
        # What asking another server raises when nobody is there; the client is.
        pytest.param(ConnectionRefusedError("db-password"), id="ConnectionRefusedError"),
        pytest.param(TimeoutError("db-password"), id="TimeoutError"),
    ],
)
async def test_a_verifier_that_fails_lets_nobody_in_and_nothing_out(
    era: str, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing:
        async def verify_token(self, token: str) -> AccessToken | None:
            raise failure

    heard = Heard()
    app = heard.server.streamable_http_app(auth=settings(), token_verifier=Failing())
    message, headers = first_of(era)
    reply = await ask(app, message, *headers, bearer_of("good"))
    assert (reply.status, reply.challenge) == (500, None)
    assert reply.json == {"jsonrpc": "2.0", "error": {"code": -32603, "message": "Internal server error"}}
    assert set(reply.headers) == {"content-type", "content-length"}
    assert heard.auth == []
    flush_logs()
    records = [record for record in caplog.records if record.name.startswith("mcp_core")]
    assert [record.levelname for record in records] == ["ERROR"]
    assert "db-password" in (records[0].exc_text or "")


# --- who called ---------------------------------------------------------------------------------------


@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.parametrize("era", ERAS)
async def test_a_handler_finds_the_token(era: str) -> None:
    token = access(scopes=["read"], subject="ann", expires_at=1e11, claims={"tenant": 7})
    app, heard, _ = guarded(token)
    assert (await called(app, era, "good")).json["result"]["content"] == [{"type": "text", "text": "whoami"}]
    assert heard.auth == [token]
    assert heard.auth[0] is token


@pytest.mark.parametrize("era", ERAS)
async def test_notifications_and_middleware_find_the_token_too(era: str) -> None:
    token = access()
    app, heard, _ = guarded(token)
    seen: list[tuple[str, Any]] = []

    async def watch(ctx: RequestContext, call_next: Any) -> Any:
        seen.append((ctx.method, ctx.auth))
        return await call_next(ctx)

    heard.server.middleware.append(watch)
    note: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/mine", "params": {}}
    headers = [("MCP-Protocol-Version", "2026-07-28")] if era == "modern" else [await opened(app, "good")]
    seen.clear()
    assert (await ask(app, note, bearer_of("good"), *headers)).status == 202
    assert seen == [("notifications/mine", token)]
    assert heard.auth == [token]


async def test_a_list_that_is_read_on_the_way_to_a_call_finds_the_token_too() -> None:
    # Which parameters are mirrored in headers, the list of tools says; it may be the caller's own.
    token = access(subject="ann")
    seen: list[Any] = []

    async def tools(ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
        seen.append(ctx.auth)
        return ListToolsResult(tools=[Tool(name="whoami", input_schema={"type": "object"})])

    heard = Heard()
    heard.server.add_request_handler("tools/list", PaginatedRequestParams, tools)
    app = heard.server.streamable_http_app(auth=settings(), token_verifier=Tokens(token))
    assert (await called(app, "modern", "good")).status == 200
    assert seen == [token]


@pytest.mark.parametrize("era", ERAS)
async def test_a_typed_tool_finds_the_token(era: str) -> None:
    mcp = MCPServer("typed")

    @mcp.tool("whoami")
    async def whoami(ctx: Context) -> str:
        assert ctx.auth is not None
        return f"{ctx.auth.client_id} for {ctx.auth.subject}: {' '.join(ctx.auth.scopes)}"

    app = mcp.streamable_http_app(
        auth=settings(required_scopes=["read"]), token_verifier=Tokens(access(subject="ann", scopes=["read"]))
    )
    assert (await ask(app, shaking())).challenge == challenge(scope="read")
    result = (await called(app, era, "good")).json["result"]
    assert result["structuredContent"] == {"result": "app for ann: read"}


async def test_a_typed_tool_in_a_worker_thread_finds_the_token() -> None:
    mcp = MCPServer("typed")

    @mcp.tool("whoami")
    def whoami(ctx: Context) -> str | None:
        return None if ctx.auth is None else ctx.auth.subject

    app = mcp.streamable_http_app(auth=settings(), token_verifier=Tokens(access(subject="ann")))
    assert (await called(app, "modern", "good")).json["result"]["structuredContent"] == {"result": "ann"}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_in_memory_nobody_is_asked_for_a_token(mode: Mode) -> None:
    heard = Heard()
    async with Client(heard.server, mode=mode) as client:
        await client.call_tool("whoami")
    assert heard.auth == [None]


@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.requirement("R-SEC-05")
async def test_callers_at_the_same_time_keep_their_own_tokens() -> None:
    known = [access(f"t{number}", subject=f"s{number}") for number in range(5)]
    everybody, seen = anyio.Event(), dict[Any, Any]()

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        before = ctx.auth
        assert before is not None
        seen[before.token] = None
        if len(seen) == len(known):
            everybody.set()
        await everybody.wait()
        seen[before.token] = ctx.auth
        return CallToolResult(content=[])

    app = Server("x", on_call_tool=call).streamable_http_app(auth=settings(), token_verifier=Tokens(*known))
    async with anyio.create_task_group() as group:
        for token in known:
            group.start_soon(called, app, "modern", token.token)
    assert seen == {token.token: token for token in known}


# --- whose session it is ----------------------------------------------------------------------------------

ANN: Final = access("ann", subject="ann")
ANN_AGAIN: Final = access("ann-renewed", subject="ann")
OTHERS: Final = [
    pytest.param(access("other", subject="bob"), id="another subject"),
    pytest.param(access("other", subject="ann", client_id="another-app"), id="another client"),
    pytest.param(access("other"), id="no subject"),
]

PING: Final = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


def _answer_to_nobody() -> Any:
    return {"jsonrpc": "2.0", "id": 99, "result": {}}


@pytest.mark.requirement("R-SEC-01")
@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.requirement("R-HS-30")
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(
    ("method", "message"),
    [
        pytest.param("POST", PING, id="request"),
        pytest.param("POST", {"jsonrpc": "2.0", "method": "notifications/mine"}, id="notification"),
        pytest.param("POST", _answer_to_nobody(), id="answer"),
        pytest.param("POST", [PING], id="batch"),
        pytest.param("GET", None, id="stream"),
        pytest.param("DELETE", None, id="end"),
    ],
)
async def test_another_callers_token_does_not_open_a_session(other: AccessToken, method: str, message: Any) -> None:
    app, heard, _ = guarded(ANN, other)
    session = await opened(app, "ann", "2025-03-26")
    reply = await ask(app, message, session, bearer_of("other"), method=method, leaves=True)
    # As if there was none: not even that it exists is told.
    assert reply.status == 404
    assert reply.json["error"] == {"code": -32600, "message": "Session not found; start again with initialize"}
    unknown = await ask(app, message, ("Mcp-Session-Id", "x" * 43), bearer_of("other"), method=method, leaves=True)
    assert (unknown.status, unknown.json, unknown.headers) == (reply.status, reply.json, reply.headers)
    assert heard.auth == []
    # Its owner has it still, and by every way.
    assert (await ask(app, PING, session, bearer_of("ann"))).json["result"] == {}
    assert (await ask(app, [PING], session, bearer_of("ann"))).json[0]["result"] == {}
    assert (await ask(app, None, session, bearer_of("ann"), method="GET", leaves=True)).status == 200
    assert (await ask(app, None, session, bearer_of("ann"), method="DELETE")).status == 200
    assert (await ask(app, PING, session, bearer_of("ann"))).status == 404


@pytest.mark.requirement("R-SEC-01")
async def test_a_renewed_token_opens_the_session_and_is_the_one_that_handlers_find() -> None:
    app, heard, _ = guarded(ANN, ANN_AGAIN)
    session = await opened(app, "ann")
    for token in ("ann", "ann-renewed", "ann"):
        assert (await ask(app, PING, session, bearer_of(token))).status == 200
    assert heard.auth == [ANN, ANN_AGAIN, ANN]

"""JWTs as access tokens: which ones prove something, and what is read from them.

Keys are made here and tokens by PyJWT, or by hand where it refuses to make them.
Spec: basic/authorization, "Token Handling"; RFC 7519, RFC 8725, RFC 9068.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import importlib
import json
import sys
import threading
import time
from collections.abc import Generator, Mapping, MutableMapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import anyio
import anyio.to_thread
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from mcp_core import RequestContext, Server
from mcp_core.auth import AccessToken, AuthSettings
from mcp_core.jwt_verifier import JWTVerifier
from mcp_core.testing import modern_meta
from mcp_core.types import CallToolRequestParams, CallToolResult

ISSUER: Final = "https://issuer.example.com"
AUDIENCE: Final = "https://mcp.example.com/mcp"
FAR: Final = 4102444800
"""The year 2100, in seconds since the epoch."""

RSA: Final = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA: Final = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC: Final = ec.generate_private_key(ec.SECP256R1())
OTHER_EC: Final = ec.generate_private_key(ec.SECP256R1())
ED: Final = ed25519.Ed25519PrivateKey.generate()
SECRET: Final = "a secret of more than thirty-two bytes, kept by both sides"


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    """The public half, as it is handed out."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


class _Absent:
    """In the place of a claim that is left out."""


ABSENT: Final = _Absent()


def claims(**changed: Any) -> dict[str, Any]:
    """The claims of a good token, with some changed or left out."""
    every = {"iss": ISSUER, "aud": AUDIENCE, "exp": FAR, "sub": "ann", "client_id": "app", "scope": "read write"}
    return {name: value for name, value in {**every, **changed}.items() if value is not ABSENT}


def signed(key: Any = RSA, algorithm: str = "RS256", headers: dict[str, Any] | None = None, **changed: Any) -> str:
    """A token that its key has signed."""
    return jwt.encode(claims(**changed), key, algorithm=algorithm, headers=headers)


def part(value: Any) -> str:
    """One part of a token that is made by hand."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def by_hand(header: Any, payload: Any, signature: bytes = b"") -> str:
    return f"{part(header)}.{part(payload)}.{part(signature)}"


def hmac_signed(header: Mapping[str, Any], secret: bytes) -> str:
    """A token with a symmetric signature, whatever its secret is."""
    text = f"{part(header)}.{part(claims())}"
    return f"{text}.{part(hmac.digest(secret, text.encode(), hashlib.sha256))}"


def tampered(token: str) -> str:
    """The same token with another subject under its signature."""
    head, _, signature = token.split(".")
    return f"{head}.{part(claims(sub='bob'))}.{signature}"


def verifier(key: Any = None, **more: Any) -> JWTVerifier:
    given: dict[str, Any] = {"issuer": ISSUER, "audience": AUDIENCE, **more}
    if "jwks_url" not in more:
        given["key"] = pem(RSA) if key is None else key
    return JWTVerifier(**given)


# --- what is good ---------------------------------------------------------------------------------


@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        pytest.param(RSA, "RS256", id="RS256"),
        pytest.param(RSA, "RS512", id="RS512"),
        pytest.param(RSA, "PS256", id="PS256"),
        pytest.param(EC, "ES256", id="ES256"),
        pytest.param(ED, "EdDSA", id="EdDSA"),
    ],
)
@pytest.mark.parametrize("form", ["pem", "text", "object"])
async def test_a_good_token_says_who_calls(key: Any, algorithm: str, form: str) -> None:
    public = {"pem": pem(key), "text": pem(key).decode(), "object": key.public_key()}[form]
    token = signed(key, algorithm)
    assert await verifier(public).verify_token(token) == AccessToken(
        token=token,
        client_id="app",
        scopes=["read", "write"],
        expires_at=FAR,
        resource=AUDIENCE,
        subject="ann",
        claims=claims(),
    )


async def test_all_claims_are_handed_on() -> None:
    access = await verifier().verify_token(signed(tenant=7, roles=["a"], nested={"deep": [None]}))
    assert access is not None
    assert access.claims == {**claims(), "tenant": 7, "roles": ["a"], "nested": {"deep": [None]}}


async def test_a_shared_secret_works_where_its_algorithm_is_named() -> None:
    named = verifier(SECRET, algorithms=["HS256"])
    good = await named.verify_token(signed(SECRET, "HS256"))
    assert good is not None
    assert good.subject == "ann"
    assert await named.verify_token(signed(SECRET + "!", "HS256")) is None
    assert await named.verify_token(signed()) is None


@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.parametrize(
    ("audience", "given", "good"),
    [
        pytest.param(AUDIENCE, [AUDIENCE], True, id="a list of one"),
        pytest.param(AUDIENCE, ["https://other.example.com", AUDIENCE], True, id="one of two"),
        pytest.param([AUDIENCE, "api://ours"], "api://ours", True, id="two that are ours"),
        pytest.param((AUDIENCE, "api://ours"), ["x", "api://ours"], True, id="two that are ours, one of two"),
        pytest.param(AUDIENCE, ["https://other.example.com"], False, id="another"),
        pytest.param([AUDIENCE, "api://ours"], "api://theirs", False, id="none of ours"),
        pytest.param(AUDIENCE, [], False, id="none"),
        pytest.param(AUDIENCE, "https://mcp.example.com", False, id="a part of ours"),
        pytest.param(AUDIENCE, f"{AUDIENCE}/more", False, id="more than ours"),
        pytest.param(AUDIENCE, 7, False, id="a number"),
        pytest.param(AUDIENCE, [AUDIENCE, 7], False, id="a number beside ours"),
        pytest.param(AUDIENCE, None, False, id="null"),
    ],
)
async def test_audiences(audience: Any, given: Any, good: bool) -> None:
    access = await verifier(audience=audience).verify_token(signed(aud=given))
    assert (access is not None) is good
    if access is not None:
        assert access.resource == given


@pytest.mark.parametrize(
    ("given", "scopes"),
    [
        pytest.param({"scope": "read write"}, ["read", "write"], id="text"),
        pytest.param({"scope": "  read   write "}, ["read", "write"], id="text with more spaces"),
        pytest.param({"scope": ["read", "write"]}, ["read", "write"], id="list"),
        pytest.param({"scope": ABSENT, "scp": "read write"}, ["read", "write"], id="scp text"),
        pytest.param({"scope": ABSENT, "scp": ["read", "write"]}, ["read", "write"], id="scp list"),
        pytest.param({"scope": "read", "scp": ["write"]}, ["read"], id="scope before scp"),
        pytest.param({"scope": ABSENT}, [], id="absent"),
        pytest.param({"scope": ""}, [], id="empty text"),
        pytest.param({"scope": []}, [], id="empty list"),
        pytest.param({"scope": None}, [], id="null"),
    ],
)
async def test_scopes(given: dict[str, Any], scopes: list[str]) -> None:
    access = await verifier().verify_token(signed(**given))
    assert access is not None
    assert access.scopes == scopes


@pytest.mark.parametrize(
    ("given", "client_id", "subject"),
    [
        pytest.param({"client_id": "a", "azp": "b", "sub": "c"}, "a", "c", id="client_id"),
        pytest.param({"client_id": ABSENT, "azp": "b", "sub": "c"}, "b", "c", id="azp"),
        pytest.param({"client_id": "", "azp": "b", "sub": "c"}, "b", "c", id="azp, client_id empty"),
        pytest.param({"client_id": ABSENT, "sub": "c"}, "c", "c", id="sub"),
        pytest.param({"client_id": "a", "sub": ABSENT}, "a", None, id="no subject"),
        pytest.param({"client_id": ABSENT, "sub": ABSENT}, "", None, id="nobody"),
    ],
)
async def test_who_the_client_is(given: dict[str, Any], client_id: str, subject: str | None) -> None:
    access = await verifier().verify_token(signed(**given))
    assert access is not None
    assert (access.client_id, access.subject) == (client_id, subject)


# --- what is not ----------------------------------------------------------------------------------------

RS256: Final = {"alg": "RS256", "typ": "JWT"}

REFUSED: Final = [
    pytest.param(signed(OTHER_RSA), id="another key"),
    pytest.param(tampered(signed()), id="other claims"),
    pytest.param(signed()[:-8] + "AAAAAAAA", id="another signature"),
    pytest.param(signed().rpartition(".")[0] + ".", id="no signature"),
    pytest.param(signed().rpartition(".")[0], id="two parts"),
    pytest.param(signed() + ".x", id="four parts"),
    pytest.param(signed(iss="https://evil.example.com"), id="another issuer"),
    pytest.param(signed(iss=f"{ISSUER}/"), id="issuer with a slash"),
    pytest.param(signed(iss=ABSENT), id="no issuer"),
    pytest.param(signed(aud="https://other.example.com/mcp"), id="another audience"),
    pytest.param(signed(aud=ABSENT), id="no audience"),
    pytest.param(signed(exp=1000), id="expired"),
    pytest.param(signed(exp=ABSENT), id="no expiry"),
    pytest.param(signed(exp=None), id="expiry null"),
    pytest.param(signed(exp="soon"), id="expiry in words"),
    pytest.param(signed(exp=str(FAR)), id="expiry as text"),
    pytest.param(signed(nbf=FAR - 1), id="not valid yet"),
    pytest.param(signed(nbf="later"), id="not-before in words"),
    pytest.param(signed(iat=FAR - 1), id="issued later than now"),
    pytest.param(signed(sub=7), id="a subject that is a number"),
    pytest.param(signed(headers={"crit": ["exp"]}), id="an extension that must be understood"),
    pytest.param(by_hand({"alg": "none", "typ": "JWT"}, claims()), id="alg none"),
    pytest.param(by_hand({"alg": "None"}, claims()), id="alg None"),
    pytest.param(by_hand({"alg": "none"}, claims(), b"signature"), id="alg none, with a signature"),
    pytest.param(by_hand({"typ": "JWT"}, claims(), b"signature"), id="no alg"),
    pytest.param(by_hand({"alg": None}, claims(), b"signature"), id="alg null"),
    pytest.param(by_hand({"alg": ["RS256"]}, claims(), b"signature"), id="alg a list"),
    pytest.param(by_hand({"alg": "XY999"}, claims(), b"signature"), id="alg unknown"),
    pytest.param(hmac_signed({"alg": "HS256"}, pem(RSA)), id="the public key as a secret"),
    pytest.param(hmac_signed({"alg": "HS256"}, pem(RSA).strip()), id="the public key as a secret, stripped"),
    pytest.param(hmac_signed({"alg": "HS256"}, b""), id="an empty secret"),
    pytest.param(hmac_signed({"alg": "RS256"}, pem(RSA)), id="a symmetric signature under RS256"),
    pytest.param(by_hand({**RS256, "kid": 7}, claims(), b"signature"), id="kid a number"),
    pytest.param(by_hand({**RS256, "b64": False}, claims(), b"signature"), id="detached payload"),
    pytest.param(by_hand(["RS256"], claims(), b"signature"), id="header a list"),
    pytest.param(by_hand(RS256, ["claims"], b"signature"), id="claims a list"),
    pytest.param(by_hand(b"{no JSON", claims(), b"signature"), id="header no JSON"),
    pytest.param(by_hand(b"\xff\xfe", claims(), b"signature"), id="header no UTF-8"),
    pytest.param(by_hand(b"[" * 40_000, claims(), b"signature"), id="header deep"),
    pytest.param("", id="empty"),
    pytest.param("opaque-token", id="no JWT"),
    pytest.param("..", id="three empty parts"),
    pytest.param("a.b.c", id="parts that are no Base64"),
    pytest.param("é.é.é", id="not ASCII"),
    pytest.param("\x00.\x00.\x00", id="control characters"),
    pytest.param("a.b.c.d.e", id="five parts, as of an encrypted one"),
]


@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.parametrize("token", REFUSED)
async def test_a_token_that_proves_nothing_is_refused(token: str) -> None:
    assert await verifier().verify_token(token) is None


@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.parametrize("claim", ["exp", "iss", "aud"])
@pytest.mark.parametrize(("key", "algorithm"), [(RSA, "RS256"), (EC, "ES256")])
async def test_claims_that_must_be_there(claim: str, key: Any, algorithm: str) -> None:
    assert await verifier(pem(key)).verify_token(signed(key, algorithm)) is not None
    without: dict[str, Any] = {claim: ABSENT}
    assert await verifier(pem(key)).verify_token(signed(key, algorithm, **without)) is None


@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.parametrize(
    "key", [pytest.param(RSA, id="RSA"), pytest.param(EC, id="EC"), pytest.param(ED, id="Ed25519")]
)
@pytest.mark.parametrize("form", ["pem", "object"])
async def test_whoever_names_another_kind_of_key_is_refused(key: Any, form: str) -> None:
    # The header is the sender's: it may name any algorithm, whatever key is kept here.
    checks = verifier(pem(key) if form == "pem" else key.public_key())
    kinds = {"RS256": OTHER_RSA, "PS384": OTHER_RSA, "ES256": OTHER_EC, "EdDSA": ed25519.Ed25519PrivateKey.generate()}
    for algorithm, other in kinds.items():
        assert await checks.verify_token(signed(other, algorithm)) is None


@pytest.mark.requirement("R-AUTH-04")
async def test_a_public_key_is_no_secret_even_where_both_kinds_are_named() -> None:
    mixed = verifier(algorithms=["RS256", "HS256"])
    assert await mixed.verify_token(signed()) is not None
    assert await mixed.verify_token(hmac_signed({"alg": "HS256"}, pem(RSA))) is None


@pytest.mark.requirement("R-AUTH-04")
async def test_an_algorithm_that_is_not_named_is_refused_though_its_key_fits() -> None:
    narrow = verifier(algorithms=["PS256"])
    assert await narrow.verify_token(signed(RSA, "PS256")) is not None
    assert await narrow.verify_token(signed(RSA, "RS256")) is None


@pytest.mark.parametrize("algorithms", [["none"], ["RS256", "none"], ["None"], ["NONE"]])
def test_tokens_without_signatures_cannot_be_allowed(algorithms: list[str]) -> None:
    with pytest.raises(ValueError, match="a token without a signature proves nothing"):
        verifier(algorithms=algorithms)


def test_there_is_one_place_for_the_key() -> None:
    with pytest.raises(ValueError, match="takes either key or jwks_url"):
        JWTVerifier(issuer=ISSUER, audience=AUDIENCE)
    with pytest.raises(ValueError, match="takes either key or jwks_url"):
        JWTVerifier(issuer=ISSUER, audience=AUDIENCE, key=pem(RSA), jwks_url="https://issuer.example.com/jwks")


@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.parametrize(
    ("late", "early", "leeway", "good"),
    [
        pytest.param(60, -60, 0.0, False, id="expired"),
        pytest.param(60, -60, 600.0, True, id="expired, within the leeway"),
        pytest.param(6000, -60, 600.0, False, id="expired, beyond the leeway"),
        pytest.param(-60, 60, 0.0, False, id="early"),
        pytest.param(-60, 60, 600.0, True, id="early, within the leeway"),
        pytest.param(-60, 6000, 600.0, False, id="early, beyond the leeway"),
    ],
)
async def test_clocks_may_differ_by_the_leeway(late: int, early: int, leeway: float, good: bool) -> None:
    now = int(time.time())
    access = await verifier(leeway=leeway).verify_token(signed(exp=now - late, nbf=now + early))
    assert (access is not None) is good


# --- keys that are looked up ---------------------------------------------------------------------------


class KeyServer:
    """Hands out public keys over HTTP, and counts how often it was asked."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}
        self.asked = 0
        self.has_been_asked = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()
        here = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                here.asked += 1
                here.has_been_asked.set()
                here.may_answer.wait(60)
                body = json.dumps({"keys": [jwk(name, key) for name, key in here.keys.items()]}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing to stderr."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/jwks.json"


def jwk(name: str, key: Any) -> dict[str, Any]:
    """A public key as it is published."""
    if isinstance(key, rsa.RSAPrivateKey):
        published = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        published = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**published, "kid": name, "use": "sig"}


@pytest.fixture
def key_server() -> Generator[KeyServer, None, None]:
    keys = KeyServer()
    keys.keys = {"first": RSA, "second": EC}
    thread = threading.Thread(target=keys.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield keys
    finally:
        keys.may_answer.set()
        keys.server.shutdown()
        thread.join()
        keys.server.server_close()


def named(kid: str) -> dict[str, Any]:
    return {"kid": kid}


@pytest.mark.requirement("R-AUTH-04")
async def test_a_key_is_looked_up_by_its_id_and_kept(key_server: KeyServer) -> None:
    checks = verifier(jwks_url=key_server.url)
    assert key_server.asked == 0
    for number in range(3):
        access = await checks.verify_token(signed(RSA, "RS256", named("first"), sub=f"s{number}"))
        assert access is not None
        assert access.subject == f"s{number}"
    assert key_server.asked == 1
    assert await checks.verify_token(signed(EC, "ES256", named("second"))) is not None
    assert key_server.asked == 1


@pytest.mark.requirement("R-AUTH-04")
@pytest.mark.parametrize(
    "token",
    [
        pytest.param(signed(RSA, "RS256", named("third")), id="an unknown id"),
        pytest.param(signed(RSA, "RS256", named("")), id="an empty id"),
        pytest.param(signed(RSA, "RS256"), id="no id"),
        pytest.param(signed(OTHER_RSA, "RS256", named("first")), id="another key under a known id"),
        pytest.param(tampered(signed(RSA, "RS256", named("first"))), id="other claims"),
        pytest.param(signed(RSA, "RS256", named("first"), exp=1000), id="expired"),
        pytest.param(signed(RSA, "RS256", named("first"), iss="https://evil.example.com"), id="another issuer"),
        pytest.param(signed(RSA, "RS256", named("first"), aud="https://a.example"), id="another audience"),
        pytest.param(signed(EC, "ES256", named("first")), id="an EC signature under the id of an RSA key"),
        pytest.param(signed(RSA, "RS256", named("second")), id="an RSA signature under the id of an EC key"),
        pytest.param(signed(ED, "EdDSA", named("first")), id="an EdDSA signature under the id of an RSA key"),
        pytest.param(by_hand({"alg": "none", "kid": "first"}, claims()), id="alg none"),
        pytest.param(hmac_signed({"alg": "HS256", "kid": "first"}, pem(RSA)), id="the public key as a secret"),
        pytest.param(by_hand({**RS256, "kid": ["first"]}, claims(), b"x"), id="an id that is a list"),
        pytest.param(by_hand({**RS256, "kid": "first"}, ["claims"], b"x"), id="claims a list"),
        pytest.param("opaque-token", id="no JWT"),
        pytest.param("", id="empty"),
    ],
)
async def test_with_looked_up_keys_the_same_is_refused(key_server: KeyServer, token: str) -> None:
    checks = verifier(jwks_url=key_server.url)
    assert await checks.verify_token(token) is None
    assert await checks.verify_token(signed(RSA, "RS256", named("first"))) is not None


async def test_the_loop_goes_on_while_keys_are_looked_up(key_server: KeyServer) -> None:
    key_server.may_answer.clear()
    checks, found = verifier(jwks_url=key_server.url), list[AccessToken | None]()

    async def verify() -> None:
        found.append(await checks.verify_token(signed(RSA, "RS256", named("first"))))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(verify)
            assert await anyio.to_thread.run_sync(key_server.has_been_asked.wait, 5)
            assert found == []
            key_server.may_answer.set()
    assert [access.subject for access in found if access is not None] == ["ann"]


# --- as the verifier of a server -------------------------------------------------------------------------


async def called(app: Any, token: str) -> tuple[int, str | None]:
    """Call a tool with a token: the status, and what the client is told about tokens."""
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "x", "_meta": modern_meta()},
    }
    headers = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "x",
        "authorization": f"Bearer {token}",
    }
    fields = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": fields}
    sent: list[MutableMapping[str, Any]] = []

    body = [json.dumps(message).encode()]

    async def receive() -> dict[str, Any]:
        if not body:
            await anyio.sleep_forever()
        return {"type": "http.request", "body": body.pop(), "more_body": False}

    async def send(event: MutableMapping[str, Any]) -> None:
        sent.append(event)

    await app(scope, receive, send)
    told = dict(sent[0]["headers"]).get(b"www-authenticate")
    return sent[0]["status"], None if told is None else told.decode()


class Guarded:
    """A server behind a verifier, and who called its tool."""

    def __init__(self, checks: JWTVerifier, **more: Any) -> None:
        self.subjects: list[str | None] = []
        settings = AuthSettings(issuer_url=ISSUER, resource_server_url=AUDIENCE, **more)
        self.app = Server("x", on_call_tool=self._call).streamable_http_app(auth=settings, token_verifier=checks)

    def _call(self, ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        assert ctx.auth is not None
        self.subjects.append(str(ctx.auth.subject))
        return CallToolResult(content=[])


TOLD: Final = 'resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"'


@pytest.mark.requirement("R-HS-03")
@pytest.mark.requirement("R-HS-04")
@pytest.mark.requirement("R-AUTH-04")
async def test_a_server_lets_in_good_tokens_only() -> None:
    guarded = Guarded(verifier(), required_scopes=["read"])
    assert await called(guarded.app, signed()) == (200, None)
    invalid = f'Bearer error="invalid_token", error_description="the token is not valid", scope="read", {TOLD}'
    bad = (signed(exp=1000), signed(OTHER_RSA), hmac_signed({"alg": "HS256"}, pem(RSA)), "opaque")
    for token in bad:
        assert await called(guarded.app, token) == (401, invalid)
    status, told = await called(guarded.app, signed(scope="write"))
    assert status == 403
    assert told is not None
    assert 'error="insufficient_scope"' in told
    assert guarded.subjects == ["ann"]


@pytest.mark.requirement("R-AUTH-04")
async def test_the_leeway_holds_for_the_whole_server() -> None:
    # A token whose time is up by a minute is good for whoever allows ten.
    token = signed(exp=int(time.time()) - 60)
    assert (await called(Guarded(verifier(leeway=600)).app, token))[0] == 200
    assert (await called(Guarded(verifier()).app, token))[0] == 401


@pytest.mark.requirement("R-AUTH-04")
async def test_a_server_looks_keys_up(key_server: KeyServer) -> None:
    guarded = Guarded(verifier(jwks_url=key_server.url))
    assert await called(guarded.app, signed(EC, "ES256", named("second"))) == (200, None)
    assert (await called(guarded.app, signed(EC, "ES256", named("first"))))[0] == 401
    assert (await called(guarded.app, signed(EC, "ES256", named("nobody's"))))[0] == 401
    assert guarded.subjects == ["ann"]


# --- without PyJWT -----------------------------------------------------------------------------------------


def test_without_pyjwt_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "mcp_core.jwt_verifier")
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(ImportError, match=r'pip install "mcpcore\[jwt\]"'):
        importlib.import_module("mcp_core.jwt_verifier")

"""Parsed headers that are known again: what is cached, what never is, and that nothing passes between requests."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

import pytest

from mcp_core import RequestContext, Server
from mcp_core.transports.streamable_http import HTTPOptions, StreamableHTTP, TransportSecuritySettings
from mcp_core.transports.streamable_http.exchange import Refused
from mcp_core.transports.streamable_http.guards import Guard
from mcp_core.transports.streamable_http.parsed_headers import KEPT, NAME, Header, ParsedHeaders, ParsedHeadersCache
from mcp_core.types import CallToolRequestParams, CallToolResult, TextContent
from tests.http.asgi import HTTP, App, HandshakeClient, ModernClient

MOST_KEPT = 512
LONGEST_KEPT = 4096


def lines_of(*headers: str) -> list[Header]:
    """Header lines, made anew at each call: nothing in them is the same object twice."""
    pairs = (header.partition(": ") for header in ("host: localhost", *headers))
    return [(name.encode(), value.encode()) for name, _, value in pairs]


def scope_of(*headers: str, scheme: str = "http") -> dict[str, Any]:
    return {"type": "http", "scheme": scheme, "headers": lines_of(*headers)}


def kept_by(guard: Guard) -> ParsedHeadersCache:
    """The heads that a guard has let in."""
    return guard._admitted  # pyright: ignore[reportPrivateUsage]


def guard_of(app: StreamableHTTP) -> Guard:
    return app._guard  # pyright: ignore[reportPrivateUsage]


def local() -> Guard:
    return Guard("127.0.0.1", None)


def length_of(lines: Iterable[Header]) -> int:
    return sum(len(name) + len(value) for name, value in lines)


# --- known again ------------------------------------------------------------------------------------------


def test_a_request_with_the_same_lines_has_the_same_head() -> None:
    guard = local()
    first = guard.admit(scope_of("accept: */*", "mcp-method: tools/list"))
    assert guard.admit(scope_of("accept: */*", "mcp-method: tools/list")) is first
    assert first.fields == {b"host": b"localhost", b"accept": b"*/*", b"mcp-method": b"tools/list"}


def test_a_scope_without_a_scheme_is_of_http() -> None:
    guard = local()
    scope = scope_of()
    del scope["scheme"]
    assert guard.admit(scope) is guard.admit(scope_of(scheme="http"))


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ("x-a: 1", "x-b: 3"),
        ("x-b: 2", "x-a: 1"),
        ("x-a: 1", "x-b: 2", "x-b: 2"),
        ("x-a: 1", "x-b: 2", "x-c: 3"),
        ("x-a: 1,2", "x-b: 2"),
        ("x-a: 1", "x-b: 2 "),
        ("x-a: 1x-b: 2",),
    ],
    ids=str,
)
def test_other_lines_have_a_head_of_their_own(headers: tuple[str, ...]) -> None:
    guard = local()
    known = guard.admit(scope_of("x-a: 1", "x-b: 2"))
    other = guard.admit(scope_of(*headers))
    assert other is not known
    assert other.fields == dict(lines_of(*headers))
    assert known.fields == dict(lines_of("x-a: 1", "x-b: 2"))


def test_lines_in_another_order_are_read_in_theirs() -> None:
    guard = local()
    there, back = scope_of("x-a: 1", "x-a: 2"), scope_of("x-a: 2", "x-a: 1")
    assert [guard.admit(scope).texts["x-a"] for scope in (there, back, there, back)] == ["1, 2", "2, 1"] * 2


def test_one_guard_does_not_know_whom_another_has_let_in() -> None:
    scope: dict[str, Any] = {"scheme": "http", "headers": [(b"host", b"mcp.example.com")]}
    assert Guard("0.0.0.0", None).admit(scope).fields == {b"host": b"mcp.example.com"}
    with pytest.raises(Refused):
        local().admit(scope)


# --- bounds -----------------------------------------------------------------------------------------------


SECRETS = [
    "authorization",
    "cookie",
    "proxy-authorization",
    "mcp-session-id",
    "last-event-id",
    "mcp-param-password",
    "x-api-key",
    "x-any-other-name",
    "traceparent",
    "referer",
]


@pytest.mark.fault("S-30")
@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("value", ["Bearer secret", ""])
def test_nothing_secret_is_kept(name: str, value: str) -> None:
    guard = local()
    scopes = [scope_of("accept: */*", f"{name}: {value}", "user-agent: 1") for _ in range(2)]
    first, second = (guard.admit(scope) for scope in scopes)
    assert first is not second
    assert first.fields[name.encode()] == second.fields[name.encode()] == value.encode()
    assert first.texts[name] == value
    assert all(name.encode() not in dict(lines) for _, lines in kept_by(guard))
    # Nor does it hinder what comes without it.
    assert guard.admit(scope_of("accept: */*", "user-agent: 1")) is guard.admit(
        scope_of("accept: */*", "user-agent: 1")
    )


@pytest.mark.fault("S-30")
@pytest.mark.parametrize("name", ["file:///etc/secret?token=1", "a b", "x" * 129])
def test_a_name_that_may_say_more_than_which_tool_is_not_kept(name: str) -> None:
    guard = local()
    first, second = (guard.admit(scope_of("mcp-method: resources/read", f"mcp-name: {name}")) for _ in range(2))
    assert first is not second
    assert first.name == second.name == name
    assert len(kept_by(guard)) == 0


@pytest.mark.fault("S-30")
async def test_no_session_id_is_kept_after_its_session() -> None:
    app = served()
    client = HandshakeClient(app)
    await client.initialize()
    assert client.session_id is not None
    for _ in range(2):
        assert (await client.answer(client.message(1, "ping"))).status == 200
    await client.delete()
    secret = client.session_id.encode()
    assert [lines for _, lines in kept_by(guard_of(app)) if secret in dict(lines).values()] == []
    assert [head for head in living_heads() if secret in head.fields.values()] == []


def test_what_a_head_says_of_itself_does_not_depend_on_the_headers_that_are_not_kept() -> None:
    lines = tuple(lines_of("accept: application/json", "content-type: application/json", "content-length: 7"))
    others = (("x-b", "2"), ("x-a", "1"))
    guard = local()
    plain = guard.admit({"headers": lines})
    for _ in range(2):
        mixed = (*((name.encode(), value.encode()) for name, value in others), *lines)
        head = guard.admit({"headers": mixed})
        assert head.fields == {**plain.fields, b"x-a": b"1", b"x-b": b"2"}
        assert list(head.texts) == ["x-b", "x-a", "host", "accept", "content-type", "content-length"]
        for name in ("accepts", "is_json", "is_plain", "length", "version", "method", "name", "states_modern"):
            assert getattr(head, name) == getattr(plain, name)


def test_a_header_that_is_not_kept_and_repeated_is_known_to_be() -> None:
    guard = local()
    for _ in range(2):
        head = guard.admit(scope_of("mcp-param-a: 1", "accept: */*", "mcp-param-a: 2"))
        assert head.repeated == {b"mcp-param-a"}
        assert head.every(b"mcp-param-a") == b"1, 2"


def test_no_secret_outlasts_its_request() -> None:
    guard = local()
    guard.admit(scope_of("authorization: Bearer of-this-test"))
    assert [head for head in living_heads() if head.fields.get(b"authorization") == b"Bearer of-this-test"] == []


@pytest.mark.parametrize(("length", "is_kept"), [(LONGEST_KEPT, True), (LONGEST_KEPT + 1, False), (60_000, False)])
@pytest.mark.parametrize("pieces", [1, 7], ids=["one long line", "many lines"])
def test_long_lines_are_not_kept(length: int, is_kept: bool, pieces: int) -> None:
    names = ["user-agent"] if pieces == 1 else sorted(KEPT - {b"host", b"accept", b"content-type", NAME})[:pieces]
    names = [name if isinstance(name, str) else name.decode() for name in names]
    room = length - length_of(lines_of(*(f"{name}: " for name in names)))
    values = ["v" * (room // pieces)] * (pieces - 1)
    values.append("v" * (room - sum(map(len, values))))
    headers = [f"{name}: {value}" for name, value in zip(names, values, strict=True)]
    assert length_of(lines_of(*headers)) == length
    guard = local()
    first, second = guard.admit(scope_of(*headers)), guard.admit(scope_of(*headers))
    assert (first is second) == is_kept
    assert first.fields == second.fields == dict(lines_of(*headers))


def living_heads() -> list[ParsedHeaders]:
    """All heads that somebody still holds, whoever it is."""
    gc.collect()
    return [each for each in gc.get_objects() if type(each) is ParsedHeaders]


def test_a_guard_keeps_a_bounded_number() -> None:
    before = len(living_heads())
    guard = local()
    for number in range(3 * MOST_KEPT + 7):
        assert guard.admit(scope_of(f"user-agent: {number}")).fields[b"user-agent"] == str(number).encode()
    assert len(living_heads()) - before <= MOST_KEPT
    # It goes on to know who comes again.
    first = guard.admit(scope_of("user-agent: 0"))
    assert guard.admit(scope_of("user-agent: 0")) is first


def test_heads_are_as_many_as_are_allowed_at_any_time() -> None:
    heads = ParsedHeadersCache()
    counts: list[int] = []
    for number in range(2 * MOST_KEPT + 1):
        lines = tuple(lines_of(f"user-agent: {number}"))
        heads.keep("http", lines, ParsedHeaders(lines))
        counts.append(len(heads))
        assert heads["http", lines].fields == dict(lines)
    assert counts[:MOST_KEPT] == list(range(1, MOST_KEPT + 1))
    assert max(counts) == MOST_KEPT


# --- who is refused stays refused ---------------------------------------------------------------------------

GOOD = {"host": "127.0.0.1:8000"}


@pytest.mark.requirement("R-HTTP-02")
@pytest.mark.requirement("R-HS-01")
@pytest.mark.requirement("R-HS-02")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": None}, 421),
        ({**GOOD, "origin": "http://evil.example"}, 403),
        ({**GOOD, "origin": "null"}, 403),
    ],
    ids=str,
)
async def test_a_host_or_origin_is_refused_each_time(headers: dict[str, str | None], status: int) -> None:
    client = ModernClient(served())
    for _ in range(3):
        assert (await client.call("t", headers=headers)).status == status
        assert (await client.call("t", headers=GOOD)).status == 200


@pytest.mark.requirement("R-HTTP-02")
def test_who_is_refused_is_not_kept() -> None:
    guard = local()
    before = len(living_heads())
    for _ in range(3):
        for scope in (scope_of("origin: http://evil.example"), {"headers": [(b"host", b"evil.example")]}):
            with pytest.raises(Refused):
                guard.admit(scope)
    assert len(living_heads()) == before


@pytest.mark.requirement("R-HTTP-02")
@pytest.mark.parametrize("order", [("https", "http"), ("http", "https")], ids="first {0[0]}".format)
def test_the_same_lines_are_checked_anew_for_another_scheme(order: tuple[str, str]) -> None:
    settings = TransportSecuritySettings(allowed_hosts=["mcp.example.com"])
    guard = Guard("0.0.0.0", settings)
    lines = [(b"host", b"mcp.example.com:443")]
    admitted: list[ParsedHeaders] = []
    for scheme in order * 2:
        scope: dict[str, Any] = {"scheme": scheme, "headers": lines}
        if scheme == "https":
            admitted.append(guard.admit(scope))
        else:
            with pytest.raises(Refused):
                guard.admit(scope)
    assert admitted[0] is admitted[1]


def test_the_same_lines_under_either_scheme_are_two_heads() -> None:
    guard = local()
    plain, secure = guard.admit(scope_of(scheme="http")), guard.admit(scope_of(scheme="https"))
    assert plain is not secure
    assert guard.admit(scope_of(scheme="http")) is plain
    assert guard.admit(scope_of(scheme="https")) is secure


# --- the forms in which lines come --------------------------------------------------------------------------

Lines = list[Header]


def as_lists(lines: Lines) -> Any:
    return [[name, value] for name, value in lines]


def as_iterator_of_lists(lines: Lines) -> Any:
    return ([name, value] for name, value in lines)


FORMS: list[Callable[[Lines], Any]] = [list, tuple, as_lists, iter, as_iterator_of_lists]
"""ASGI asks for an iterable of iterables; most servers give a list of tuples."""

forms = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)


@forms
def test_a_guard_reads_lines_of_any_form(form: Callable[[Lines], Any]) -> None:
    guard = local()
    for _ in range(2):
        head = guard.admit({"scheme": "http", "headers": form(lines_of("x-a: 1", "x-a: 2", "accept: */*"))})
        assert head.fields == dict(lines_of("x-a: 2", "accept: */*"))
        assert head.texts == {"host": "localhost", "x-a": "1, 2", "accept": "*/*"}
        with pytest.raises(Refused):
            guard.admit({"scheme": "http", "headers": form(lines_of("origin: http://evil.example"))})


def formed(app: Any, form: Callable[[Lines], Any]) -> App:
    """The app behind a server that gives header lines in another form."""

    async def run(
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        await app({**scope, "headers": form(scope["headers"])}, receive, send)

    return run


@forms
@pytest.mark.parametrize("options", [{}, {"stateless_http": True}], ids=["sessions", "no sessions"])
async def test_requests_whose_lines_are_of_any_form_are_served(
    form: Callable[[Lines], Any], options: dict[str, Any]
) -> None:
    app = served(**options)
    modern, legacy = ModernClient(formed(app, form)), HandshakeClient(formed(app, form))
    await legacy.initialize()
    for _ in range(2):
        for client in (modern, legacy):
            assert (await client.call("t", headers={"x-tenant": "blue"})).json["result"]["content"] == [
                {"type": "text", "text": "blue"}
            ]
            assert (await client.call("t", headers={"host": "evil.example"})).status == 421
    # Whoever gives the same lines in the usual form is the same client.
    assert (await ModernClient(app).call("t", headers={"x-tenant": "blue"})).status == 200


# --- what handlers see of it --------------------------------------------------------------------------------


def tenant(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=(ctx.headers or {}).get("x-tenant", "nobody"))])


def served(on_call_tool: Any = tenant, **options: Any) -> StreamableHTTP:
    return StreamableHTTP(Server("heads", on_call_tool=on_call_tool), HTTPOptions(**options))


def insert(headers: Any) -> None:
    headers["x-new"] = "green"


def replace(headers: Any) -> None:
    headers["x-tenant"] = "green"


def remove(headers: Any) -> None:
    del headers["x-tenant"]


CHANGES: list[Callable[[Any], Any]] = [
    insert,
    replace,
    remove,
    lambda headers: headers.clear(),
    lambda headers: headers.pop("x-tenant"),
    lambda headers: headers.popitem(),
    lambda headers: headers.update({"x-tenant": "green"}),
    lambda headers: headers.setdefault("x-new", "green"),
    lambda headers: headers.__setattr__("x_tenant", "green"),
]


@pytest.mark.parametrize("era", ["modern", "session", "no session"])
async def test_a_handler_cannot_change_headers_for_another_request(era: str) -> None:
    refused: list[str] = []
    seen: list[dict[str, str]] = []

    def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        headers: Any = ctx.headers
        seen.append(dict(headers))
        for change in CHANGES:
            try:
                change(headers)
            except (TypeError, AttributeError) as exc:
                refused.append(type(exc).__name__)
        merged = headers | {"x-tenant": "green"}
        copied = headers.copy()
        copied["x-tenant"] = "green"
        assert merged["x-tenant"] == copied["x-tenant"] == "green"
        return tenant(ctx, params)

    app = served(call, stateless_http=era == "no session")
    client = ModernClient(app) if era == "modern" else HandshakeClient(app)
    if isinstance(client, HandshakeClient):
        await client.initialize()
    for _ in range(3):
        response = await client.call("t", headers={"x-tenant": "blue"})
        assert response.answer["result"]["content"] == [{"type": "text", "text": "blue"}]
    assert seen[0]["x-tenant"] == "blue"
    assert seen[1] == seen[2] == seen[0]
    assert len(refused) == 3 * len(CHANGES)


async def test_headers_of_a_request_that_differ_are_its_own() -> None:
    client = ModernClient(served())
    for name in ("blue", "green", "blue", "red", "green"):
        response = await client.call("t", headers={"x-tenant": name})
        assert response.json["result"]["content"] == [{"type": "text", "text": name}]


async def test_what_is_kept_is_not_mistaken_for_the_body() -> None:
    client = ModernClient(served())
    headers = {"mcp-name": "a"}
    assert (await client.call("a", headers=headers)).status == 200
    other = await client.call("b", headers=headers)
    assert (other.status, other.json["error"]["code"]) == (400, -32020)
    assert (await client.call("a", headers=headers)).status == 200


async def test_the_same_lines_serve_any_verb() -> None:
    client = HTTP(served(), headers={"accept": "*/*", "content-type": "application/json"})
    assert [(await client.request(verb)).status for verb in ("PUT", "GET", "PUT", "GET")] == [405, 405, 405, 405]

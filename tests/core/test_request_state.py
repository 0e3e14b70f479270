"""Sealed request states: what comes back is what went out, from the same request, in time."""

from __future__ import annotations

import secrets
import time
from typing import Any, cast

import pytest
from msgspec import Raw

from mcp_core import Client, MCPDeprecationWarning, MCPError, RequestContext, Server, request_state
from mcp_core.auth import AccessToken
from mcp_core.errors import InvalidParams
from mcp_core.request_state import RequestStateSigner
from mcp_core.testing import RawPeer
from mcp_core.types import CallToolRequestParams, CallToolResult, InputRequiredResult, TextContent


class Clock:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def counting(signer: RequestStateSigner, principal: str = "") -> Server:
    """A server whose tool counts its rounds in the state, up to three."""

    async def call_tool(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        state = params.request_state
        known: Any = {"round": 0} if state is None else signer.verify(ctx, state, principal=principal)
        round_ = known["round"]
        if round_ == 3:
            return CallToolResult(content=[TextContent(text=f"after {round_}")])
        return InputRequiredResult(request_state=signer.sign(ctx, {"round": round_ + 1}, principal=principal))

    return Server("state", on_call_tool=call_tool)


CALL: dict[str, Any] = {"name": "count", "arguments": {"b": [1], "a": "é"}}


async def first_state(server: Server) -> str:
    async with RawPeer.of(server) as peer:
        answer = await peer.modern(1, "tools/call", CALL)
    state = answer["result"]["requestState"]
    assert isinstance(state, str)
    return state


async def second_answer(server: Server, state: str, **changes: Any) -> Any:
    async with RawPeer.of(server) as peer:
        return await peer.modern(2, "tools/call", {**CALL, "requestState": state, **changes})


@pytest.mark.requirement("R-MRTR-05")
@pytest.mark.requirement("R-MRTR-09")
async def test_a_client_carries_the_state_through_every_round() -> None:
    async with Client(counting(RequestStateSigner())) as client:
        result = await client.call_tool("count", {"a": 1})
    assert result.content == [TextContent(text="after 3")]


@pytest.mark.requirement("R-MRTR-06")
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="same"),
        pytest.param({"arguments": {"a": "é", "b": [1]}}, id="other order"),
        pytest.param({"inputResponses": {"x": {"action": "accept"}}}, id="with answers"),
    ],
)
async def test_the_same_request_may_use_it(changes: dict[str, Any]) -> None:
    server = counting(RequestStateSigner())
    answer = await second_answer(server, await first_state(server), **changes)
    assert answer["result"]["resultType"] == "input_required"


REFUSED = {"code": -32602, "message": "Invalid or expired requestState", "data": {"reason": "invalid_request_state"}}


@pytest.mark.requirement("R-MRTR-06")
@pytest.mark.parametrize(
    "changes", [{"arguments": {"a": "é", "b": [2]}}, {"name": "other"}, {"arguments": {}}, {"extra": 1}]
)
async def test_another_request_may_not(changes: dict[str, Any]) -> None:
    server = counting(RequestStateSigner())
    answer = await second_answer(server, await first_state(server), **changes)
    assert answer["error"] == REFUSED


@pytest.mark.requirement("R-MRTR-05")
@pytest.mark.parametrize("position", [0, 10, 60, -1])
async def test_a_changed_state_is_refused(position: int) -> None:
    server = counting(RequestStateSigner())
    state = await first_state(server)
    changed = list(state)
    changed[position] = "A" if changed[position] != "A" else "z"
    answer = await second_answer(server, "".join(changed))
    assert answer["error"] == REFUSED


@pytest.mark.requirement("R-MRTR-05")
@pytest.mark.parametrize("state", ["", "x", "é", "====", "A" * 43, "A" * 1000, "\x00"])
async def test_nonsense_is_refused(state: str) -> None:
    answer = await second_answer(counting(RequestStateSigner()), state)
    assert answer["error"] == REFUSED


@pytest.mark.requirement("R-MRTR-06")
async def test_it_expires() -> None:
    clock = Clock()
    server = counting(RequestStateSigner(ttl=60, clock=clock))
    state = await first_state(server)
    clock.now += 59
    assert "result" in await second_answer(server, state)
    clock.now += 2
    assert (await second_answer(server, state))["error"] == REFUSED


async def test_keys_can_be_changed() -> None:
    old, new = secrets.token_bytes(32), secrets.token_bytes(32)
    state = await first_state(counting(RequestStateSigner([old])))
    assert "result" in await second_answer(counting(RequestStateSigner([new, old])), state)
    assert (await second_answer(counting(RequestStateSigner([new])), state))["error"] == REFUSED


async def test_another_principal_is_refused() -> None:
    key = secrets.token_bytes(32)
    state = await first_state(counting(RequestStateSigner([key]), "ann"))
    assert "result" in await second_answer(counting(RequestStateSigner([key]), "ann"), state)
    assert (await second_answer(counting(RequestStateSigner([key]), "bob"), state))["error"] == REFUSED


def test_short_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 32 bytes"):
        RequestStateSigner([b"secret"])


async def test_a_client_sees_the_refusal_as_an_error() -> None:
    server = counting(RequestStateSigner())
    async with Client(server) as client:
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await client.request("tools/call", {**CALL, "requestState": "x"})


# --- attacks ------------------------------------------------------------------------------------------


class Peer:
    """The other side of a request: who it was authorised as, and the server it came to."""

    headers = handshake = lifespan_context = None

    def __init__(self, auth: Any = None, server: str = "one") -> None:
        self.auth = auth
        self.server = Server(server)


def request(
    arguments: bytes = b'{"n":1}',
    *,
    auth: Any = None,
    server: str = "one",
    name: bytes = b"wipe",
    method: str = "tools/call",
) -> RequestContext[Any]:
    raw = Raw(b'{"name":"' + name + b'","arguments":' + arguments + b"}")
    return RequestContext(cast("Any", Peer(auth, server)), 1, method, raw, "2026-07-28", {})


def token(client: str, subject: str | None = None, **claims: Any) -> AccessToken:
    return AccessToken(token=secrets.token_hex(4), client_id=client, subject=subject, claims=claims)


def opens(signer: RequestStateSigner, state: str, ctx: RequestContext[Any], **more: Any) -> bool:
    try:
        return bool(signer.verify(ctx, state, **more) == {"step": 1})
    except InvalidParams:
        return False


ALICE = token("alice", "a", iss="https://a")


@pytest.mark.fault("S-16")
@pytest.mark.fault("X-21")
@pytest.mark.requirement("R-MRTR-06")
@pytest.mark.parametrize(
    ("other", "opened"),
    [
        pytest.param({"auth": ALICE}, True, id="same"),
        pytest.param({"auth": token("alice", "a", iss="https://a")}, True, id="a fresh token of the same"),
        pytest.param({"auth": token("bob", "a", iss="https://a")}, False, id="client"),
        pytest.param({"auth": token("alice", "b", iss="https://a")}, False, id="subject"),
        pytest.param({"auth": token("alice", iss="https://a")}, False, id="no subject"),
        pytest.param({"auth": token("alice", "a", iss="https://b")}, False, id="issuer"),
        pytest.param({}, False, id="nobody"),
        pytest.param({"auth": ALICE, "server": "two"}, False, id="server"),
        pytest.param({"auth": ALICE, "name": b"look"}, False, id="tool"),
        pytest.param({"auth": ALICE, "method": "prompts/get"}, False, id="method"),
    ],
)
def test_a_state_is_good_for_whom_and_what_it_was_sealed_for(other: dict[str, Any], opened: bool) -> None:
    signer = RequestStateSigner()
    state = signer.sign(request(auth=ALICE), {"step": 1})
    assert opens(signer, state, request(**other)) is opened


def test_a_principal_that_is_given_goes_before_the_token() -> None:
    signer = RequestStateSigner()
    state = signer.sign(request(auth=ALICE), {"step": 1}, principal="team")
    assert opens(signer, state, request(auth=token("bob")), principal="team")
    assert not opens(signer, state, request(auth=ALICE))


def test_servers_of_one_name_and_key_may_have_audiences() -> None:
    keys = [secrets.token_bytes(32)]
    state = RequestStateSigner(keys, audience="https://a").sign(request(), {"step": 1})
    assert opens(RequestStateSigner(keys, audience="https://a"), state, request())
    assert not opens(RequestStateSigner(keys, audience="https://b"), state, request())


@pytest.mark.fault("S-17")
@pytest.mark.parametrize("size", range(6))
def test_a_state_has_one_spelling(size: int) -> None:
    signer = RequestStateSigner()
    ctx = request()
    state = signer.sign(ctx, "x" * size)
    assert signer.verify(ctx, state) == "x" * size
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    others = [
        *(state[:-1] + last for last in alphabet),  # the last bits of Base64 may mean nothing
        *(state + more for more in ("=", "==", "A", "\n", " ", "\0", "!", "\u0131")),
        state.replace("-", "+", 1).replace("_", "/", 1),
        " ".join(state),
        "!" + state,
        f"{state[:5]}\r\n{state[5:]}",
        state.translate({ord("A"): "\uff21"}),
    ]
    assert [other for other in others if other != state and _taken(signer, ctx, other)] == []


def _taken(signer: RequestStateSigner, ctx: RequestContext[Any], state: str) -> bool:
    try:
        signer.verify(ctx, state)
    except InvalidParams:
        return False
    return True


@pytest.mark.requirement("R-MRTR-06")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (b"1", b"2"),
        (b"18446744073709551617", b"18446744073709551618"),
        (b"9007199254740993", b"9007199254740992.0"),
        (b"1", b"true"),
        (b"1", b'"1"'),
        (b"null", b"0"),
        (b'"\xc3\xa9"', b'"e\xcc\x81"'),
        (b'{"a":1,"a":2}', b'{"a":1}'),
        (b'["a","b"]', b'["b","a"]'),
        (b'{"a":{"b":1}}', b'{"a":{"b":2}}'),
    ],
    ids=str,
)
def test_other_arguments_are_another_request(first: bytes, second: bytes) -> None:
    signer = RequestStateSigner()
    state = signer.sign(request(b'{"n":' + first + b"}"), {"step": 1})
    assert opens(signer, state, request(b'{"n":' + first + b"}"))
    assert not opens(signer, state, request(b'{"n":' + second + b"}"))


@pytest.mark.parametrize("arguments", [b'{"n":1e400}', b'{"n":-1e999}'], ids=str)
def test_arguments_that_cannot_be_told_apart_are_refused(arguments: bytes) -> None:
    with pytest.raises(InvalidParams, match="out of range"):
        RequestStateSigner().sign(request(arguments), 1)


@pytest.mark.parametrize(("now", "opened"), [(1000, True), (950, True), (900, False), (-1e9, False), (1601, False)])
def test_a_clock_that_is_set_back_gives_a_state_no_longer_life(now: float, opened: bool) -> None:
    clock = Clock()
    signer = RequestStateSigner(clock=clock)
    state = signer.sign(request(), {"step": 1})
    clock.now = now
    assert opens(signer, state, request()) is opened


def test_a_state_has_a_size() -> None:
    signer = RequestStateSigner(max_size=1000)
    assert opens(signer, signer.sign(request(), {"step": 1}), request())
    with pytest.raises(ValueError, match=r"the state takes \d+ characters, more than max_size=1000"):
        signer.sign(request(), "x" * 1000)
    keys = [secrets.token_bytes(32)]
    long = RequestStateSigner(keys).sign(request(), "x" * 1000)
    assert not _taken(RequestStateSigner(keys, max_size=1000), request(), long)


def test_a_state_that_is_too_long_is_not_read() -> None:
    signer, ctx, state = RequestStateSigner(), request(), "A" * 64_000_000
    begun = time.process_time()
    for _ in range(20):
        assert not _taken(signer, ctx, state)
    assert time.process_time() - begun < 1


@pytest.mark.fault("X-67")
@pytest.mark.parametrize(
    "options",
    [
        {"keys": b"x" * 32},
        {"keys": "x" * 32},
        {"keys": ["x" * 32]},
        {"ttl": 0},
        {"ttl": "600"},
        {"ttl": float("nan")},
        {"ttl": float("inf")},
        {"max_size": 0},
        {"max_size": 1.5},
        {"audience": 5},
    ],
    ids=str,
)
def test_options_of_no_use_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        RequestStateSigner(**options)


OLD_NAME = "RequestStateSealer"


def test_the_old_name_of_the_signer_works_with_a_warning() -> None:
    with pytest.warns(MCPDeprecationWarning, match="RequestStateSealer is now RequestStateSigner"):
        old: Any = getattr(request_state, OLD_NAME)
    sealer, ctx = old(), RequestContext[Any](cast("Any", None), 1, "tools/call", Raw(b"{}"), "2026-07-28", {})
    assert sealer.open(ctx, sealer.seal(ctx, {"step": 1})) == {"step": 1}
    assert not hasattr(request_state, "Sealer")

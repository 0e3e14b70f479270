"""Sealed request states: what comes back is what went out, from the same request, in time."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from mcp_core import Client, MCPError, RequestContext, Server
from mcp_core.request_state import RequestStateSealer
from mcp_core.testing import RawPeer
from mcp_core.types import CallToolRequestParams, CallToolResult, InputRequiredResult, TextContent


class Clock:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def counting(sealer: RequestStateSealer, principal: str = "") -> Server:
    """A server whose tool counts its rounds in the state, up to three."""

    async def call_tool(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        state = params.request_state
        round_ = 0 if state is None else sealer.open(ctx, state, principal=principal)["round"]
        if round_ == 3:
            return CallToolResult(content=[TextContent(text=f"after {round_}")])
        return InputRequiredResult(request_state=sealer.seal(ctx, {"round": round_ + 1}, principal=principal))

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
    async with Client(counting(RequestStateSealer())) as client:
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
    server = counting(RequestStateSealer())
    answer = await second_answer(server, await first_state(server), **changes)
    assert answer["result"]["resultType"] == "input_required"


REFUSED = {"code": -32602, "message": "Invalid or expired requestState", "data": {"reason": "invalid_request_state"}}


@pytest.mark.requirement("R-MRTR-06")
@pytest.mark.parametrize(
    "changes", [{"arguments": {"a": "é", "b": [2]}}, {"name": "other"}, {"arguments": {}}, {"extra": 1}]
)
async def test_another_request_may_not(changes: dict[str, Any]) -> None:
    server = counting(RequestStateSealer())
    answer = await second_answer(server, await first_state(server), **changes)
    assert answer["error"] == REFUSED


@pytest.mark.requirement("R-MRTR-05")
@pytest.mark.parametrize("position", [0, 10, 60, -1])
async def test_a_changed_state_is_refused(position: int) -> None:
    server = counting(RequestStateSealer())
    state = await first_state(server)
    changed = list(state)
    changed[position] = "A" if changed[position] != "A" else "z"
    answer = await second_answer(server, "".join(changed))
    assert answer["error"] == REFUSED


@pytest.mark.requirement("R-MRTR-05")
@pytest.mark.parametrize("state", ["", "x", "é", "====", "A" * 43, "A" * 1000, "\x00"])
async def test_nonsense_is_refused(state: str) -> None:
    answer = await second_answer(counting(RequestStateSealer()), state)
    assert answer["error"] == REFUSED


@pytest.mark.requirement("R-MRTR-06")
async def test_it_expires() -> None:
    clock = Clock()
    server = counting(RequestStateSealer(ttl=60, clock=clock))
    state = await first_state(server)
    clock.now += 59
    assert "result" in await second_answer(server, state)
    clock.now += 2
    assert (await second_answer(server, state))["error"] == REFUSED


async def test_keys_can_be_changed() -> None:
    old, new = secrets.token_bytes(32), secrets.token_bytes(32)
    state = await first_state(counting(RequestStateSealer([old])))
    assert "result" in await second_answer(counting(RequestStateSealer([new, old])), state)
    assert (await second_answer(counting(RequestStateSealer([new])), state))["error"] == REFUSED


async def test_another_principal_is_refused() -> None:
    key = secrets.token_bytes(32)
    state = await first_state(counting(RequestStateSealer([key]), "ann"))
    assert "result" in await second_answer(counting(RequestStateSealer([key]), "ann"), state)
    assert (await second_answer(counting(RequestStateSealer([key]), "bob"), state))["error"] == REFUSED


def test_short_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 32 bytes"):
        RequestStateSealer([b"secret"])


async def test_a_client_sees_the_refusal_as_an_error() -> None:
    server = counting(RequestStateSealer())
    async with Client(server) as client:
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await client.request("tools/call", {**CALL, "requestState": "x"})

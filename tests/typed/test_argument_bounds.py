"""Arguments that do not fit cost little to refuse, and the refusal is short, however many faults there are."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_core.testing import modern_meta
from mcp_typed import MCPServer
from mcp_typed.failures import MAX_REPORT

MANY = 100_000


class Point(BaseModel):
    """Two faults each."""

    x: int
    y: int


mcp = MCPServer("bounds")


@mcp.tool
def numbers(values: list[int]) -> int:
    return len(values)


@mcp.tool
def named(values: dict[str, int]) -> int:
    return len(values)


@mcp.tool
def lists(values: list[list[int]]) -> int:
    return len(values)


@mcp.tool
def points(values: list[Point]) -> int:
    return len(values)


@mcp.tool
def named_points(values: dict[str, Point]) -> int:
    return len(values)


@mcp.tool
def either(values: list[int | bool] | dict[str, int]) -> int:
    return len(values)


@mcp.tool
def sets(values: set[int], more: tuple[int, ...] = ()) -> int:
    return len(values)


@mcp.tool(unknown_arguments="reject")
def strict(alpha: int = 0, beta_value: int = 0) -> int:
    return alpha


def message(tool: str, arguments: Any) -> bytes:
    params = {"name": tool, "arguments": arguments, "_meta": modern_meta()}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(request, separators=(",", ":")).encode()


ATTACKS: list[Any] = [
    ("numbers", {"values": [""] * MANY}),
    ("numbers", {"values": json.dumps([""] * MANY)}),
    ("numbers", {"values": "x" * 2_000_000}),
    ("named", {"values": {f"{i}": "" for i in range(MANY)}}),
    ("named", {"values": {"k" * 2_000_000: ""}}),
    ("lists", {"values": [[""]] * MANY}),
    ("points", {"values": [{}] * MANY}),
    ("named_points", {"values": {f"{i}": {} for i in range(MANY // 3)}}),
    ("either", {"values": [""] * MANY}),
    ("sets", {"values": [""] * MANY, "more": [""] * MANY}),
    ("strict", {f"a{i}eta_valu": 1 for i in range(MANY // 3)}),
    ("strict", {"beta_valu" * 200_000: 1}),
    ("strict", {"alpha": "7" * 2_000_000}),
    ("nobody" * 300_000, {}),
]


@pytest.mark.fault("S-06")
@pytest.mark.parametrize(("tool", "arguments"), ATTACKS, ids=[f"{n} {row[0][:20]}" for n, row in enumerate(ATTACKS)])
async def test_refusing_arguments_costs_little(tool: str, arguments: dict[str, Any]) -> None:
    question = message(tool, arguments)
    begun = time.process_time()
    answer = await mcp.server.handle(question)
    spent = time.process_time() - begun
    assert answer is not None
    assert b'"isError":true' in answer or b'"code":-32602' in answer
    assert len(answer) < 2 * MAX_REPORT
    assert spent < 3, f"{len(question)} bytes"


@pytest.mark.fault("S-06")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("numbers", {"values": [""] * 20_000}),
        ("strict", {f"a{i}eta_valu": 1 for i in range(5000)}),
        ("strict", {"beta_valu" + "e" * 90: 1, **{f"beta_valu{i}": 1 for i in range(8)}}),
        ("named", {"values": {f"{i}": "" for i in range(20_000)}}),
    ],
    ids=["a list", "unknown names", "names like one that there is", "a dict"],
)
async def test_an_answer_is_not_much_larger_than_its_question(tool: str, arguments: dict[str, Any]) -> None:
    question = message(tool, arguments)
    answer = await mcp.server.handle(question)
    assert answer is not None
    assert len(answer) < 8 * len(question)
    assert len(answer) < 2 * MAX_REPORT


@pytest.mark.fault("S-06")
async def test_the_cost_grows_with_the_size_and_no_faster() -> None:
    async def cost(count: int) -> float:
        question = message("named", {"values": {f"{i}": "" for i in range(count)}})
        begun = time.process_time()
        await mcp.server.handle(question)
        return time.process_time() - begun

    await cost(1000)
    small = min([await cost(30_000) for _ in range(3)])
    large = min([await cost(240_000) for _ in range(3)])
    assert large < 8 * 5 * small


@pytest.mark.fault("S-06")
async def test_small_calls_are_told_all_their_first_faults() -> None:
    answer = await mcp.server.handle(message("numbers", {"values": ["a", 1, "b", "c"]}))
    assert answer is not None
    text: str = json.loads(answer)["result"]["content"][0]["text"]
    assert "3 validation errors for numbersArguments" in text
    assert [f"values.{place}" in text for place in range(4)] == [True, False, True, True]


async def test_an_unknown_argument_is_explained_once_and_shortly() -> None:
    answer = await mcp.server.handle(message("strict", {"beta_valeu": 1}))
    assert answer is not None
    text: str = json.loads(answer)["result"]["content"][0]["text"]
    assert "There is no argument 'beta_valeu'; did you mean 'beta_value'? (known: 'alpha', 'beta_value')" in text
    answer = await mcp.server.handle(message("strict", {"q" * 5000: 1}))
    assert answer is not None
    assert len(answer) < 1500

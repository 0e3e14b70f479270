"""What a body may hold: values that take long to decode hold up everybody else."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mcp_core import RequestContext, Server
from mcp_core import types as t
from mcp_core.codec import MAX_DIGITS, ValueCounter
from mcp_core.transports.streamable_http import HTTPOptions
from tests.http.asgi import ModernClient, line

MOST = 50_000
EMPTY: list[list[int]] = [[] for _ in range(MOST // 2 + 100)]


def call(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(text=str(len((params.arguments or {})["a"])))])


def client(**options: Any) -> ModernClient:
    return ModernClient(Server("s", on_call_tool=call).streamable_http_app(**options))


@pytest.mark.parametrize(
    ("value", "is_let_in"),
    [
        ([1] * (MOST - 100), True),
        ([1] * (MOST + 100), False),
        (EMPTY, False),
        ({str(n): n for n in range(MOST + 1)}, False),
        ("1,2," * MOST, True),
        ('{"\\' * MOST, True),
    ],
)
async def test_a_body_has_so_many_values(value: Any, is_let_in: bool) -> None:
    answer = await client().call("x", {"a": value})
    if is_let_in:
        assert answer.json["result"]["content"][0]["text"] == str(len(value))
    else:
        assert answer.status == 413
        assert answer.json["error"]["message"] == f"the body holds more than {MOST} JSON values (max_json_values)"


async def test_the_number_is_an_option() -> None:
    wanted = {"a": [1] * (2 * MOST)}
    assert (await client(max_json_values=3 * MOST).call("x", wanted)).status == 200
    assert (await client(max_json_values=None).call("x", wanted)).status == 200
    assert HTTPOptions().max_json_values == MOST


async def test_a_number_has_so_many_digits_in_a_large_body() -> None:
    filling = "x" * MOST
    assert (await client().call("x", {"a": filling, "b": 10**MAX_DIGITS - 1})).status == 200
    answer = await client().call("x", {"a": filling, "b": 10**MAX_DIGITS})
    assert answer.status == 413
    assert answer.json["error"]["message"] == f"the body holds a number of more than {MAX_DIGITS} digits"


async def test_what_is_too_much_is_not_decoded() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[%b]}}' % b",".join([b"[]"] * 1_000_000)
    before = time.process_time()
    answer = await client().request(
        headers={"content-type": "application/json", "mcp-protocol-version": "2026-07-28"}, body=body
    )
    assert answer.status == 413
    # Decoding it takes ten times as long, in one turn of the loop.
    assert time.process_time() - before < 0.1


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_values_are_counted_whatever_the_pieces(size: int) -> None:
    text = line({"a,[{": ['"', "\\", '\\"', "[1,2]", "é,"], "b": {"c": [1, [2], {}], "\\": "\\\\"}})
    counter = ValueCounter()
    for start in range(0, len(text), size):
        counter.feed(text[start : start + size])
    # Three objects and three arrays, and a comma less than members or elements in each.
    assert counter.values == 6 + (1 + 4 + 1 + 2)

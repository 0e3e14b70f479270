"""JSON-RPC as it is on the wire: ids, envelopes, batches, broken text, size."""

from __future__ import annotations

import gc
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from mcp_core import RequestContext, Server
from mcp_core.backend import open_backend
from mcp_core.connection import Connection
from mcp_core.testing import RawPeer, modern_meta
from mcp_core.transports.lines import LineSplitter
from mcp_core.transports.memory import memory_pair
from mcp_core.types import CallToolRequestParams, CallToolResult, TextContent
from tests.core.peers import answers, code_of, echo, echo_server, legacy, line, modern, notification, only_answer

IDS = [0, 1, "1", "", -3, 2**70, -(2**70), 2**63, "é", "\u2028", 'quote"back\\slash', "x" * 1000]
META = json.dumps(modern_meta()).encode()


def named(request_id: bytes, method: bytes = b"server/discover", params: bytes = b"") -> bytes:
    """A 2026-07-28 request from parts that need not be legal."""
    return b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":{%b"_meta":%b}}' % (request_id, method, params, META)


# --- ids -----------------------------------------------------------------------------


@pytest.mark.requirement("R-BASE-02")
@pytest.mark.requirement("R-BASE-05")
@pytest.mark.case("C050")
@pytest.mark.observed("S-469")
@pytest.mark.parametrize("request_id", IDS, ids=repr)
async def test_an_id_is_echoed_with_its_value_and_type(request_id: int | str) -> None:
    async with RawPeer.of(echo_server()) as peer:
        result = await peer.modern(request_id, "tools/call", {"name": "x"})
        error = await peer.modern(request_id, "bogus")
    assert result["id"] == error["id"] == request_id
    assert type(result["id"]) is type(error["id"]) is type(request_id)
    assert result["jsonrpc"] == error["jsonrpc"] == "2.0"
    assert set(result) == {"jsonrpc", "id", "result"}
    assert set(error) == {"jsonrpc", "id", "error"}


@pytest.mark.requirement("R-BASE-05")
@pytest.mark.parametrize("request_id", IDS, ids=repr)
async def test_the_id_is_echoed_by_a_handler_that_waits(request_id: int | str) -> None:
    async with RawPeer.of(Server("waits", on_call_tool=echo)) as peer:
        answer = await peer.modern(request_id, "tools/call", {"name": "x"})
    assert answer["id"] == request_id
    assert type(answer["id"]) is type(request_id)


@pytest.mark.requirement("R-BASE-02")
@pytest.mark.requirement("R-BASE-07")
@pytest.mark.case("C049")
@pytest.mark.parametrize("request_id", [b"null", b"1.5", b"1.0", b"1e2", b"true", b"false", b"[1]", b"[]", b"{}"])
async def test_an_id_of_another_type_is_refused_and_runs_nothing(request_id: bytes) -> None:
    calls: list[str] = []

    def count(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        calls.append(params.name)
        return CallToolResult(content=[])

    async with RawPeer.of(Server("strict", on_call_tool=count)) as peer:
        answer = await only_answer(peer, named(request_id, b"tools/call", b'"name":"count",'))
    assert code_of(answer) == -32600
    assert "id" not in answer
    assert calls == []


async def test_a_string_and_a_number_are_different_ids() -> None:
    gate = anyio.Event()

    async def wait(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await gate.wait()
        return CallToolResult(content=[TextContent(text=params.name)])

    async with RawPeer.of(Server("two", on_call_tool=wait)) as peer:
        peer.send(modern(1, "tools/call", {"name": "number"}))
        peer.send(modern("1", "tools/call", {"name": "string"}))
        assert await answers(peer) == []
        gate.set()
        got = [await peer.receive_next(), await peer.receive_next()]
    assert {type(a["id"]): a["result"]["content"][0]["text"] for a in got} == {int: "number", str: "string"}


@pytest.mark.requirement("R-BASE-03")
@pytest.mark.requirement("R-BASE-04")
async def test_an_id_in_use_is_refused_and_its_first_request_goes_on() -> None:
    gate = anyio.Event()
    calls: list[str] = []

    async def wait(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        calls.append(params.name)
        await gate.wait()
        return CallToolResult(content=[TextContent(text=params.name)])

    async with RawPeer.of(Server("dup", on_call_tool=wait)) as peer:
        peer.send(modern(7, "tools/call", {"name": "first"}))
        second = await peer.answer(modern(7, "tools/call", {"name": "second"}))
        assert second["id"] == 7
        assert code_of(second) == -32600
        gate.set()
        first = await peer.receive_next()
        assert first["id"] == 7
        assert first["result"]["content"][0]["text"] == "first"
        # Free again once answered.
        third = await peer.modern(7, "tools/call", {"name": "third"})
        assert third["result"]["content"][0]["text"] == "third"
        assert await answers(peer) == []
    assert calls == ["first", "third"]


# --- envelopes -----------------------------------------------------------------------


@pytest.mark.requirement("R-BASE-01")
@pytest.mark.requirement("R-ERR-01")
@pytest.mark.case("C047")
@pytest.mark.parametrize(
    ("message", "request_id"),
    [
        (b'{"id":5,"method":"ping"}', 5),
        (b'{"jsonrpc":"1.0","id":5,"method":"ping"}', 5),
        (b'{"jsonrpc":2.0,"id":5,"method":"ping"}', 5),
        (b'{"jsonrpc":null,"id":"a","method":"ping"}', "a"),
        (b'{"jsonrpc":"2.0","id":7}', 7),
        (b'{"jsonrpc":"2.0","id":7,"params":{}}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":5}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":null}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":["ping"]}', 7),
        (b'{"method":"ping","id":"\\u00e9"}', "é"),
        (b'{"hello":"world"}', None),
        (b'{"jsonrpc":"2.0"}', None),
        (b"{}", None),
        (b"42", None),
        (b'"ping"', None),
        (b"null", None),
        (b"true", None),
        (b"-1.5e3", None),
    ],
)
async def test_what_is_no_request_object_is_minus_32600(message: bytes, request_id: int | str | None) -> None:
    async with RawPeer.of(echo_server()) as peer:
        answer = await only_answer(peer, message)
    assert code_of(answer) == -32600
    assert answer.get("id", None) == request_id
    assert ("id" in answer) == (request_id is not None)


@pytest.mark.case("C047")
@pytest.mark.parametrize("params", [b"[]", b"[1,2]", b'"x"', b"5", b"true"])
async def test_params_that_are_no_object_are_minus_32602(params: bytes) -> None:
    async with RawPeer.of(echo_server()) as peer:
        answer = await only_answer(peer, b'{"jsonrpc":"2.0","id":7,"method":"ping","params":%b}' % params)
    assert code_of(answer) == -32602
    assert answer["id"] == 7


@pytest.mark.case("C047")
@pytest.mark.parametrize("params", [b"", b',"params":null', b',"params":{}', b',"params": {}', b',"params":\t{"x":1} '])
async def test_absent_null_and_empty_params_are_the_same(params: bytes) -> None:
    async with RawPeer.of(echo_server()) as peer:
        answer = await only_answer(peer, b'{"jsonrpc":"2.0","id":7,"method":"ping"%b}' % params)
    assert answer == {"jsonrpc": "2.0", "id": 7, "result": {}}


async def test_members_in_any_order_and_unknown_ones_are_read() -> None:
    message = b' {"params":{"a":[{"id":99}]},"x":{"id":98,"method":"no"},"method":"ping","id":1,"jsonrpc":"2.0"} \r'
    async with RawPeer.of(echo_server()) as peer:
        answer = await only_answer(peer, message)
    assert answer == {"jsonrpc": "2.0", "id": 1, "result": {}}


# --- what gets no answer --------------------------------------------------------------


@pytest.mark.requirement("R-CANC-04")
@pytest.mark.case("C047")
@pytest.mark.observed("S-469")
@pytest.mark.parametrize(
    "message",
    [
        b'{"jsonrpc":"2.0","id":99,"result":{}}',
        b'{"jsonrpc":"2.0","id":"99","result":{"a":[1]}}',
        b'{"jsonrpc":"2.0","id":99,"result":null}',
        b'{"jsonrpc":"2.0","id":99,"error":{"code":-32603,"message":"no"}}',
        b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":99,"error":"no object"}',
        b'{"jsonrpc":"2.0","id":99,"error":{"code":"no number"}}',
        b'{"jsonrpc":"2.0","id":null,"error":7}',
        b'{"jsonrpc":"2.0","id":99,"result":{},"error":{"code":1,"message":"both"}}',
        b'{"jsonrpc":"2.0","result":{}}',
        b'{"id":99,"result":{}}',
        b'{"jsonrpc":"2.0","id":1.5,"result":{}}',
    ],
)
async def test_a_response_to_nothing_is_never_answered(message: bytes) -> None:
    async with RawPeer.of(echo_server()) as peer:
        assert await answers(peer, message) == []


@pytest.mark.requirement("R-BASE-08")
@pytest.mark.observed("S-469")
@pytest.mark.parametrize(
    "message",
    [
        notification("notifications/initialized"),
        notification("notifications/unknown", {"a": 1}),
        notification("tools/call", {"name": "x"}),
        notification("initialize", {}),
        notification("ping"),
        notification("notifications/progress", {"progressToken": [], "progress": "x"}),
        notification("notifications/cancelled", {"requestId": {}}),
        notification("notifications/initialized", []),
        notification("notifications/initialized", {"_meta": 5}),
    ],
    ids=str,
)
async def test_a_notification_is_never_answered(message: Any) -> None:
    failing: list[str] = []

    def fail(ctx: RequestContext, params: Any) -> None:
        failing.append(ctx.method)
        raise ValueError("no answer to this either")

    server = echo_server()
    server.add_notification_handler("notifications/unknown", dict[str, Any], fail)
    async with RawPeer.of(server) as peer:
        assert await answers(peer, message) == []
    assert failing == ([message["method"]] if message["method"] == "notifications/unknown" else [])


@pytest.mark.parametrize("blank", [b"\n", b" \t\r\n", b"\r\n\r\n"])
def test_blank_lines_are_no_messages(blank: bytes) -> None:
    assert LineSplitter().feed(blank + b"{}\n" + blank) == ([b"{}"], [])


# --- text that is no JSON ---------------------------------------------------------------


@pytest.mark.requirement("R-ERR-01")
@pytest.mark.requirement("R-BASE-07")
@pytest.mark.case("C046")
@pytest.mark.case("C069")
@pytest.mark.parametrize(
    ("message", "request_id"),
    [
        (b"{bad json", None),
        (b"\xff\xfe", None),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping"', 3),
        (b'{"jsonrpc":"2.0","id":"s","method":"ping",}', "s"),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping"}}', 3),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping"}{}', 3),
        (b'{"jsonrpc":"2.0","method":"ping","id":3,nonsense}', 3),
        (b'{"a":{"id":9},"id":3,"b":[{"id":8}],"c":oops}', 3),
        (b'{"a":{"id":9},oops,"id":3}', 3),
        (b"{'id':3}", None),
        (b'{"id":1.5,bad', None),
        (b'{"id":[1],bad', None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\x97"}', 1),
        (b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}', None),
        (b"\x00", None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"} \x00', 1),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', 1),
        ('{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"), None),
        (b'{"jsonrpc":"2.0","id":1,"method":"a\nb"}', 1),
        (b"NaN", None),
        (b"[", None),
        (b'[{"id":1}', None),
    ],
)
async def test_unparsable_text_is_minus_32700(message: bytes, request_id: int | str | None) -> None:
    async with RawPeer.of(echo_server()) as peer:
        answer = await only_answer(peer, message)
    assert code_of(answer) == (-32600 if message.startswith(b"[") else -32700)
    assert answer.get("id", None) == request_id
    assert ("id" in answer) == (request_id is not None)


@pytest.mark.requirement("R-BASE-01")
@pytest.mark.case("C069")
@pytest.mark.parametrize(
    "params",
    [
        b'"name":"\xff",',
        b'"name":"x","arguments":{"a":"\xc3"},',
        b'"name":"x","arguments":{"a":[{"b":"\xed\xa0\x80"}]},',
        b'"name":"x","arguments":{"\xfe":1},',
    ],
)
async def test_wrong_utf_8_in_params_is_minus_32700_with_the_id(params: bytes) -> None:
    async with RawPeer.of(echo_server()) as peer:
        answer = await only_answer(peer, named(b"4", b"tools/call", params))
    assert code_of(answer) == -32700
    assert answer["id"] == 4


@pytest.mark.requirement("R-BASE-01")
@pytest.mark.parametrize(
    "message",
    [
        b'{"jsonrpc":"2.0","id":4,"method":"ping","params":{"unknown":"\xff"}}',
        b'{"jsonrpc":"2.0","id":4,"method":"ping","unknown":"\xff"}',
        b'{"jsonrpc":"2.0","id":4,"method":"ping","params":{"_meta":{"k":"\xff"}}}',
        b'{"jsonrpc":"2.0","id":4,"method":"ping","\xff":1}',
    ],
)
async def test_wrong_utf_8_in_what_nobody_reads_is_minus_32700_too(message: bytes) -> None:
    async with RawPeer.of(echo_server()) as peer:
        answer = await only_answer(peer, message)
    assert code_of(answer) == -32700
    assert answer["id"] == 4


# --- values at the edge ------------------------------------------------------------------


@pytest.mark.parametrize("depth", [50_000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
async def test_too_deep_nesting_is_minus_32602_with_the_id(depth: int, opening: bytes, closing: bytes) -> None:
    nested = opening * depth + b"1" + closing * depth
    async with RawPeer.of(echo_server()) as peer:
        in_params = await only_answer(
            peer, named(b"4", b"tools/call", b'"name":"x","arguments":{"deep":' + nested + b"},")
        )
        beside = await only_answer(peer, b'{"jsonrpc":"2.0","id":5,"method":"ping","x":' + nested + b"}")
    assert code_of(in_params) == code_of(beside) == -32602
    assert [in_params["id"], beside["id"]] == [4, 5]


async def test_deep_nesting_before_the_id_leaves_it_unread_or_right() -> None:
    nested = b"[" * 100_000 + b"]" * 100_000
    async with RawPeer.of(echo_server()) as peer:
        answer = await only_answer(peer, b'{"jsonrpc":"2.0","x":' + nested + b',"id":5,"method":"ping"}')
    assert code_of(answer) == -32602
    assert answer["id"] == 5


async def test_an_array_that_is_too_deep_is_refused() -> None:
    async with RawPeer.of(echo_server()) as peer:
        answer = await only_answer(peer, b"[" * 100_000 + b"]" * 100_000)
        await peer.initialize("2025-03-26")
        batched = await only_answer(peer, b"[" * 100_000 + b"]" * 100_000)
    assert code_of(answer) == -32600
    assert "id" not in answer
    assert code_of(batched) in (-32600, -32602)


async def test_moderate_nesting_passes() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = {"a": [deep]}
    async with RawPeer.of(echo_server()) as peer:
        answer = await peer.modern(1, "tools/call", {"name": "x", "arguments": {"deep": deep}})
    assert answer["result"]["structuredContent"] == {"deep": deep}


@pytest.mark.case("C017")
@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 12345678901234567890123, 2**70, 9007199254740993])
async def test_integers_of_any_size_pass_exactly(number: int) -> None:
    async with RawPeer.of(echo_server()) as peer:
        answer = await peer.modern(1, "tools/call", {"name": "x", "arguments": {"n": number}})
    assert answer["result"]["structuredContent"] == {"n": number}


@pytest.mark.parametrize("number", [b"1e400", b"-1e400"])
async def test_a_number_out_of_range_is_minus_32602_with_the_id(number: bytes) -> None:
    async with RawPeer.of(echo_server()) as peer:
        params = b'"name":"x","arguments":{"n":' + number + b"},"
        answer = await only_answer(peer, named(b"4", b"tools/call", params))
        as_id = await only_answer(peer, named(number))
    assert code_of(answer) == -32602
    assert answer["id"] == 4
    assert code_of(as_id) == -32600
    assert "id" not in as_id


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"01", b"+1", b".5", b"1.", b"0x10"])
async def test_what_is_no_json_number_is_minus_32700_with_the_id(number: bytes) -> None:
    async with RawPeer.of(echo_server()) as peer:
        params = b'"name":"x","arguments":{"n":' + number + b"},"
        answer = await only_answer(peer, named(b"4", b"tools/call", params))
    assert code_of(answer) == -32700
    assert answer["id"] == 4


@pytest.mark.case("C054")
@pytest.mark.parametrize(
    "escaped", [b"a\\ud800b", b"\\udfff", b"\\udc00\\ud800", b"\\ud800\\ud800", b"\\\\ud800\\ud800"]
)
async def test_an_escaped_lone_surrogate_is_read_as_a_replacement(escaped: bytes) -> None:
    wanted = json.loads(b'"' + escaped + b'"').encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    async with RawPeer.of(echo_server()) as peer:
        value = await only_answer(peer, named(b"4", b"tools/call", b'"name":"x","arguments":{"x":"' + escaped + b'"},'))
        key = await only_answer(peer, named(b"5", b"tools/call", b'"name":"x","arguments":{"' + escaped + b'":1},'))
        name = await only_answer(peer, named(b"6", b"tools/call", b'"name":"' + escaped + b'",'))
        method = await only_answer(peer, named(b"7", escaped))
    assert value["result"]["structuredContent"] == {"x": wanted}
    assert key["result"]["structuredContent"] == {wanted: 1}
    assert name["result"]["content"][0]["text"] == wanted
    assert method["id"] == 7
    assert code_of(method) == -32601


async def test_an_escaped_surrogate_pair_is_one_character() -> None:
    async with RawPeer.of(echo_server()) as peer:
        params = b'"name":"x","arguments":{"x":"\\ud83d\\ude00","y":"\\ud800"},'
        answer = await only_answer(peer, named(b"4", b"tools/call", params))
    assert answer["result"]["structuredContent"] == {"x": "\U0001f600", "y": "\ufffd"}


@pytest.mark.case("C053")
@pytest.mark.parametrize("size", [1, 5000])
@pytest.mark.parametrize("place", ["text", "value", "key", "meta", "error"])
async def test_a_lone_surrogate_in_a_result_is_sent_as_a_replacement(place: str, size: int) -> None:
    bad = "a\ud800b" * size
    good = "a\ufffdb" * size

    def answer(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        if place == "error":
            raise_error(bad)
        return CallToolResult(
            content=[TextContent(text=bad if place == "text" else "t")],
            structured_content={"key": {bad: 1}} if place == "key" else {"value": bad if place == "value" else "v"},
            _meta={"x/m": bad} if place == "meta" else None,
        )

    async with RawPeer.of(Server("surrogates", on_call_tool=answer)) as peer:
        got = await peer.modern(9, "tools/call", {"name": "x"})
        after = await peer.modern(10, "tools/call", {"name": "x"})
    assert got["id"] == 9
    assert after["id"] == 10
    if place == "error":
        assert got["error"] == {"code": 1, "message": good, "data": {"x": good}}
        return
    result = got["result"]
    assert result["content"][0] == {"type": "text", "text": good if place == "text" else "t"}
    wanted: dict[str, Any] = {"key": {good: 1}} if place == "key" else {"value": good if place == "value" else "v"}
    assert result["structuredContent"] == wanted
    assert result["_meta"].get("x/m") == (good if place == "meta" else None)
    assert result["isError"] is False
    assert result["resultType"] == "complete"


def raise_error(text: str) -> None:
    from mcp_core import MCPError

    raise MCPError(1, text, {"x": text})


@pytest.mark.requirement("R-STD-01")
@pytest.mark.case("C055")
async def test_a_message_is_one_line_whatever_is_in_it() -> None:
    text = '\U0001f600\u2028\u2029\u0085\x00 é \n\r\t"\\'
    message = line(modern(1, "tools/call", {"name": "x", "arguments": {"x": text}}))
    assert "\u2028\u2029\u0085".encode() in message
    async with RawPeer.of(echo_server()) as peer:
        answer = await peer.answer(message)
    assert answer["result"]["structuredContent"] == {"x": text}
    assert b"\n" not in peer.messages[0]
    assert b"\r" not in peer.messages[0]


# --- arrays --------------------------------------------------------------------------------


@pytest.mark.requirement("R-BASE-14")
@pytest.mark.case("C069")
@pytest.mark.parametrize("revision", [None, "2024-11-05", "2025-06-18", "2025-11-25"])
async def test_an_array_is_refused_where_the_revision_has_none(revision: str | None) -> None:
    async with RawPeer.of(echo_server()) as peer:
        if revision is not None:
            await peer.initialize(revision)
        for message in (b"[]", line([legacy(1, "ping")]), b' \t[{"id":1}]'):
            answer = await only_answer(peer, message)
            assert code_of(answer) == -32600
            assert "id" not in answer


@pytest.mark.requirement("R-BASE-13")
async def test_a_batch_is_answered_as_one_array() -> None:
    async with RawPeer.of(echo_server()) as peer:
        await peer.initialize("2025-03-26")
        answer = await only_answer(
            peer,
            [
                legacy(1, "ping"),
                legacy("two", "tools/call", {"name": "x", "arguments": {"a": 1}}),
                notification("notifications/unknown"),
                legacy(3, "bogus"),
                {"jsonrpc": "2.0", "id": 77, "result": {}},
            ],
        )
    assert {a["id"]: a.get("error", {}).get("code", "fine") for a in answer} == {1: "fine", "two": "fine", 3: -32601}


@pytest.mark.fault("X-71")
@pytest.mark.requirement("R-BASE-13")
async def test_the_answers_of_a_batch_have_the_same_order_everywhere() -> None:
    """Whichever handler is done first, on this loop and this Python."""
    opened = anyio.Event()

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        if params.name == "waits":
            await opened.wait()
        elif params.name == "opens":
            opened.set()
        return CallToolResult(content=[])

    async with RawPeer.of(Server("orders", on_call_tool=call)) as peer:
        await peer.initialize("2025-03-26")
        names = ["waits", "is done", "opens", "is done"]
        calls = [legacy(number, "tools/call", {"name": name}) for number, name in enumerate(names, 1)]
        peer.send(line([*calls, legacy(5, "ping"), 6, legacy(7, "bogus")]))
        answer: Any = await peer.receive_next()
    assert [one.get("id") for one in answer] == [5, None, 7, 1, 2, 3, 4]


@pytest.mark.fault("X-71")
async def test_a_cancelled_request_leaves_no_gap_in_a_batch() -> None:
    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        if params.name == "waits":
            await anyio.sleep_forever()
        return CallToolResult(content=[])

    async with RawPeer.of(Server("orders", on_call_tool=call)) as peer:
        await peer.initialize("2025-03-26")
        calls = [legacy(1, "tools/call", {"name": "waits"}), legacy(2, "tools/call", {"name": "is done"})]
        peer.send(line([*calls, notification("notifications/cancelled", {"requestId": 1})]))
        answer: Any = await peer.receive_next()
    assert [one["id"] for one in answer] == [2]


@pytest.mark.requirement("R-BASE-13")
async def test_a_batch_of_notifications_is_not_answered() -> None:
    async with RawPeer.of(echo_server()) as peer:
        await peer.initialize("2025-03-26")
        quiet = [notification("notifications/unknown"), notification("notifications/initialized")]
        assert await answers(peer, quiet, [notification("x")], [{"jsonrpc": "2.0", "id": 1, "result": {}}]) == []


@pytest.mark.requirement("R-BASE-08")
@pytest.mark.requirement("R-BASE-13")
@pytest.mark.parametrize(
    "element",
    [
        notification("notifications/unknown", [1]),
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "both"}},
        {"jsonrpc": "2.0", "id": 1, "error": "no object"},
        {"jsonrpc": "2.0", "result": {}},
    ],
    ids=str,
)
async def test_a_broken_notification_or_response_in_a_batch_is_not_answered(element: Any) -> None:
    async with RawPeer.of(echo_server()) as peer:
        await peer.initialize("2025-03-26")
        assert await answers(peer, [element]) == []
        beside = await only_answer(peer, [element, legacy(5, "ping")])
    assert beside == [{"jsonrpc": "2.0", "id": 5, "result": {}}]


@pytest.mark.requirement("R-BASE-13")
async def test_illegal_elements_of_a_batch_are_refused_one_by_one() -> None:
    async with RawPeer.of(echo_server()) as peer:
        await peer.initialize("2025-03-26")
        answer = await only_answer(peer, b'[1,{"id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"ping"},[]]')
    codes = [(a.get("id"), a.get("error", {}).get("code")) for a in answer]
    assert sorted(codes, key=str) == [(2, -32600), (3, None), (None, -32600), (None, -32600)]


@pytest.mark.requirement("R-BASE-13")
async def test_an_empty_or_broken_batch_is_one_error() -> None:
    async with RawPeer.of(echo_server()) as peer:
        await peer.initialize("2025-03-26")
        empty = await only_answer(peer, b"[]")
        broken = await only_answer(peer, b'[{"jsonrpc":"2.0","id":1,"method":"ping"},')
    # JSON-RPC 2.0 section 6: a single response object, not an array.
    assert code_of(empty) == -32600
    assert code_of(broken) == -32700


@pytest.mark.requirement("R-BASE-13")
async def test_initialize_in_a_batch_is_refused() -> None:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "n", "version": "1"}}
    async with RawPeer.of(echo_server()) as peer:
        await peer.initialize("2025-03-26")
        answer = await only_answer(peer, [legacy(1, "initialize", params), legacy(2, "ping")])
        assert {a["id"]: a.get("error", {}).get("code") for a in answer} == {1: -32600, 2: None}
        # Still the revision that has batches.
        assert await only_answer(peer, [legacy(3, "ping")]) == [{"jsonrpc": "2.0", "id": 3, "result": {}}]


@pytest.mark.requirement("R-BASE-13")
@pytest.mark.requirement("R-CANC-03")
async def test_a_batch_waits_for_its_slowest_and_leaves_out_the_cancelled() -> None:
    gate = anyio.Event()
    cancelled: list[str] = []

    async def wait(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        try:
            await gate.wait()
        except BaseException:
            cancelled.append(params.name)
            raise
        return CallToolResult(content=[TextContent(text=params.name)])

    async with RawPeer.of(Server("batch", on_call_tool=wait)) as peer:
        await peer.initialize("2025-03-26")
        peer.send([legacy(1, "ping"), *(legacy(i, "tools/call", {"name": f"t{i}"}) for i in (2, 3, 4))])
        assert await answers(peer) == []
        peer.send(notification("notifications/cancelled", {"requestId": 3}))
        assert await answers(peer) == []
        gate.set()
        answer = await peer.receive_batch()
        assert await answers(peer) == []
    assert sorted(a["id"] for a in answer) == [1, 2, 4]
    assert cancelled == ["t3"]


@pytest.mark.requirement("R-BASE-13")
async def test_a_batch_that_is_cancelled_as_a_whole_is_not_answered() -> None:
    async with RawPeer.of(Server("batch", on_call_tool=forever)) as peer:
        await peer.initialize("2025-03-26")
        peer.send([legacy(1, "tools/call", {"name": "a"}), legacy(2, "tools/call", {"name": "b"})])
        assert await answers(peer) == []
        peer.send([notification("notifications/cancelled", {"requestId": i}) for i in (1, 2)])
        assert await answers(peer) == []
        assert await only_answer(peer, legacy(1, "ping")) == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.requirement("R-CANC-03")
async def test_a_request_cancelled_within_its_own_batch_never_answers() -> None:
    async with RawPeer.of(Server("batch", on_call_tool=forever)) as peer:
        await peer.initialize("2025-03-26")
        batch = [
            legacy(1, "tools/call", {"name": "a"}),
            notification("notifications/cancelled", {"requestId": 1}),
            legacy(2, "ping"),
        ]
        peer.send(batch)
        assert await peer.receive_batch() == [{"jsonrpc": "2.0", "id": 2, "result": {}}]
        assert await answers(peer) == []
    gc.collect()  # a coroutine that was dropped unawaited would warn now


async def test_both_eras_may_share_a_batch() -> None:
    async with RawPeer.of(echo_server()) as peer:
        await peer.initialize("2025-03-26")
        answer = await only_answer(peer, [modern(1, "server/discover"), legacy(2, "ping")])
    assert {a["id"]: a["result"].get("resultType") for a in answer} == {1: "complete", 2: None}


async def test_the_same_id_twice_in_a_batch_is_answered_for_each() -> None:
    gate = anyio.Event()

    async def wait(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        await gate.wait()
        return CallToolResult(content=[])

    async with RawPeer.of(Server("batch", on_call_tool=wait)) as peer:
        await peer.initialize("2025-03-26")
        peer.send([legacy(1, "tools/call", {"name": "a"}), legacy(1, "tools/call", {"name": "b"})])
        assert await answers(peer) == []
        gate.set()
        answer = await peer.receive_batch()
    assert sorted(a.get("error", {}).get("code", 0) for a in answer) == [-32600, 0]
    assert [a["id"] for a in answer] == [1, 1]


async def forever(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    await anyio.sleep_forever()
    raise AssertionError("unreachable")


# --- size ------------------------------------------------------------------------------------


@asynccontextmanager
async def connection_and_peer(server: Server) -> AsyncGenerator[tuple[Connection, RawPeer], None]:
    """A connection to call directly, and the peer that hears what it sends."""
    async with server.running() as state, open_backend() as backend:
        ours, theirs = memory_pair(backend)
        peer = RawPeer(ours)
        with server.connect(backend, theirs, state) as connection:
            theirs.start(connection)
            ours.start(peer)
            yield connection, peer
            ours.close()


@pytest.mark.case("C063")
async def test_a_message_beyond_the_limit_is_refused_under_its_id() -> None:
    splitter = LineSplitter(limit=200)
    fits = line(modern(1, "server/discover"))
    large = line(modern(2, "server/discover", {"x": "y" * 500}))
    hidden = b'{"x":"' + b"y" * 5000 + b'","id":3}'
    assert len(fits) <= 200
    lines, refused = splitter.feed(b"\n".join([fits, large, hidden, fits, b""]))
    assert lines == [fits, fits]
    async with connection_and_peer(echo_server()) as (connection, peer):
        for head in refused:
            connection.refuse(head, 200)
        named_one, nameless = await peer.receive_next(), await peer.receive_next()
    assert named_one["id"] == 2
    assert "id" not in nameless
    assert code_of(named_one) == code_of(nameless) == -32602


@pytest.mark.parametrize("size", [199, 200, 201])
def test_the_limit_is_what_a_line_may_have_without_its_newline(size: int) -> None:
    body = b'"' + b"a" * (size - 2) + b'"'
    lines, refused = LineSplitter(limit=200).feed(body + b"\n{}\n")
    assert (lines, refused) == (([body, b"{}"], []) if size <= 200 else ([b"{}"], [body]))

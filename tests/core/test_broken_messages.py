"""Messages that are no messages: whose id they are answered under, and what reading them costs."""

from __future__ import annotations

import json
import re
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import Server, codec
from mcp_core.messages import MAX_BATCH, Malformed, Request, decode_batch, decode_frame
from mcp_core.testing import RawPeer
from tests.core.peers import code_of, echo_server, legacy, modern
from tests.core.test_stdio import PING, server

LEGAL_IDS: Final[list[tuple[str, Any]]] = [
    ("7", 7),
    ("-7", -7),
    ("0", 0),
    ("12345678901234567890123", 12345678901234567890123),
    ('"a"', "a"),
    ('""', ""),
    (r'"\"x\\"', '"x\\'),
    (r'"Aé"', "Aé"),
    ('"}{][,:"', "}{][,:"),
    (r'"\"id\":9"', '"id":9'),
    (json.dumps("y" * codec.MAX_NAME), "y" * codec.MAX_NAME),
]
ILLEGAL_IDS: Final = [
    "1.5",
    "1e3",
    "true",
    "null",
    "{}",
    "[1]",
    json.dumps("y" * (codec.MAX_NAME + 1)),
    "9" * 5000,
    "-",
    "+1",
    "",
]
NESTED: Final = r'"params":{"id":99,"a":[{"id":"in"}],"s":"\"id\":5,{","t":"\\"}'
BREAKS: Final = ['"x":}', '"x":tru', '"x":"unended', '"x":1 "y"', '"x":\x01', "]"]


@pytest.mark.fault("S-01")
@pytest.mark.fault("S-02")
@pytest.mark.parametrize("fault", BREAKS)
@pytest.mark.parametrize(("written", "wanted"), LEGAL_IDS, ids=[written[:12] for written, _ in LEGAL_IDS])
def test_a_legal_id_before_the_fault_is_found(written: str, wanted: Any, fault: str) -> None:
    for spaced in (f'"id":{written}', f'"id" \t: \r\n{written} '):
        for text in (
            f"{{{spaced},{fault}",
            f'{{"jsonrpc":"2.0",{spaced},"method":"m",{NESTED},{fault}}}',
            f'\n {{"jsonrpc":"2.0",{NESTED},"method":"m" , {spaced},{fault}}}',
            f"{{{NESTED},{spaced},{fault}",
        ):
            frame = decode_frame(text.encode())
            assert isinstance(frame, Malformed)
            assert frame.error.code == -32700
            assert (type(frame.id), frame.id) == (type(wanted), wanted), text


@pytest.mark.fault("S-01")
@pytest.mark.parametrize("written", ILLEGAL_IDS, ids=[written[:12] for written in ILLEGAL_IDS])
def test_an_id_that_is_not_legal_is_none(written: str) -> None:
    assert codec.recover_id(f'{{"id":{written},"x":}}'.encode()) is None


@pytest.mark.fault("S-01")
@pytest.mark.parametrize(
    "text",
    [
        '{"params":{"id":1},"x":}',
        '{"params":[{"id":1}],"x":}',
        '{"s":"\\"id\\":1","x":}',
        '{"s":"id","x":}',
        '{"x":"id":1}',
        '{"x":} {"id":1}',
        '[{"id":1},}',
        '{"x":},"id":1}',
        '"id":1',
        '{"id"',
        '{"id":',
        '{"id":"',
        '{"id":"a',
        '{"id" 1}',
        '{"id":12',
        '{"id":12x,',
        '{"x":}' + " " * 70_000 + '"id":1}',
        "",
        "\xff",
    ],
)
def test_what_is_no_id_of_the_message_is_not_taken_for_one(text: str) -> None:
    # What stands behind a closing brace that nothing opened, or in a string, belongs to nothing.
    assert codec.recover_id(text.encode()) is None


@given(st.text(alphabet='{}[]:,"\\ \n\tid0e-.x', max_size=60))
def test_a_recovered_id_is_always_one_that_stands_there(text: str) -> None:
    data = text.encode()
    for found in (codec.recover_id(data), codec.last_id(data)):
        assert found is None or str(found) in text or json.dumps(found)[1:-1] in text


DEEP: Final = "[" * 100_000 + "]" * 100_000


@pytest.mark.fault("S-02")
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f'{{"jsonrpc":"2.0","method":"m","params":{DEEP},"id":5}}', 5),
        (f'{{"jsonrpc":"2.0","method":"m","params":{{"a":{DEEP}}},"id":"x"}} \n', "x"),
        (f'{{"jsonrpc":"2.0","params":{DEEP},"id":5,"method":"m"}}', 5),
        (f'{{"jsonrpc":"2.0","id":4,"params":{DEEP},"x":5}}', 4),
        (f'{{"jsonrpc":"2.0","params":{DEEP},"id":1.5}}', None),
        (f'{{"jsonrpc":"2.0","params":{DEEP}],"id":5}}', None),
        (f'{{"jsonrpc":"2.0","params":{DEEP},"id":{{}}}}', None),
    ],
    ids=range(7),
)
def test_the_id_of_what_is_too_deep_is_found_first_or_last(text: str, wanted: Any) -> None:
    frame = decode_frame(text.encode())
    assert isinstance(frame, Malformed)
    assert frame.id == wanted


# --- what it costs ---------------------------------------------------------------------------

HOSTILE: Final[dict[str, Callable[[int], bytes]]] = {
    "escaped quotes without end": lambda n: b'{"a":"' + b'\\"' * (n // 2),
    "escaped backslashes without end": lambda n: b'{"a":"' + b"\\" * n,
    "one string without end": lambda n: b'{"a":"' + b"x" * n,
    "quotes": lambda n: b'{"' + b'"' * n,
    "empty strings": lambda n: b"{" + b'"",' * (n // 3),
    "keys id": lambda n: b"{" + b'"id",' * (n // 5),
    "id in values": lambda n: b'{"a":[' + b'"id":1,' * (n // 7),
    "id deep": lambda n: b'{"a":' + b'{"id":' * (n // 6),
    "opening braces": lambda n: b"{" * n,
    "opening brackets": lambda n: b"[" * n,
    "brackets, then wrong": lambda n: b"{" + b"[]," * (n // 3) + b"}",
    "blanks": lambda n: b"{" + b" " * n + b'"id"' + b" " * 100 + b"x",
    "blanks after the id": lambda n: b'{"id"' + b" " * n + b":1,}",
    "digits": lambda n: b'{"id":' + b"1" * n,
    "lone surrogates": lambda n: b'{"a":"' + b"\\ud800" * (n // 6),
    "half surrogates": lambda n: b'{"a":"' + b"\\ud8" * (n // 4),
    "backslashes before surrogates": lambda n: b'{"a":"' + b"\\\\\\ud800" * (n // 8),
    "lone surrogates in a legal message": lambda n: b'{"jsonrpc":"2.0","method":"' + b"\\ud800" * (n // 6) + b'"}',
    "wrong UTF-8": lambda n: b'{"a":"' + b"\xff" * n + b'"}',
    "carriage returns": lambda n: b"\r" * n + b"{",
    "many members": lambda n: b"{" + b",".join(b'"m%d":0' % i for i in range(n // 10)) + b"}",
    "id of an object": lambda n: b'{"id":{' + b'"id":{' * (n // 6),
    "long id": lambda n: b'{"jsonrpc":"2.0","method":"m","id":"' + b"i" * n + b'"}',
    "long method": lambda n: b'{"jsonrpc":"2.0","id":1,"method":"' + b"m" * n + b'"}',
    "deep, id last": lambda n: b'{"a":' + b"[" * (n // 2) + b"]" * (n // 2) + b',"id":1}',
}


def seconds(data: bytes, call: Callable[[bytes], Any] = decode_frame) -> float:
    """The least CPU time of some tries."""
    best = 60.0
    for _ in range(3):
        start = time.process_time()
        call(data)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.fault("S-01")
@pytest.mark.parametrize("shape", HOSTILE)
def test_reading_what_is_broken_takes_linear_time(shape: str) -> None:
    make = HOSTILE[shape]
    # 50 ns a byte are ten times what a broken message takes; the quadratic took seconds for 16 kB.
    assert seconds(make(16_000)) < 0.01
    assert seconds(make(1_000_000)) < 0.05 + 50e-9 * 1_000_000


@pytest.mark.fault("S-02")
@pytest.mark.parametrize("shape", HOSTILE)
def test_reading_what_is_broken_takes_little_memory(shape: str) -> None:
    data = HOSTILE[shape](1_000_000)
    decode_frame(b'{"x":}')
    tracemalloc.start()
    try:
        decode_frame(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * len(data)


@pytest.mark.fault("S-01")
@pytest.mark.parametrize("shape", HOSTILE)
async def test_a_server_without_a_transport_refuses_each_shape(shape: str) -> None:
    answer = await echo_server().handle(HOSTILE[shape](20_000))
    assert answer is None or len(answer) < 1500


@pytest.mark.fault("S-01")
def test_a_process_answers_broken_lines_under_their_ids(tmp_path: Path) -> None:
    with server(tmp_path) as process:
        for written, wanted in (("3", 3), (r'"\"q"', '"q')):
            answer = process.ask(f'{{"jsonrpc":"2.0","id":{written},"method":"m","params":{{"a":}}}}\n'.encode())
            assert (answer["id"], code_of(answer)) == (wanted, -32700)
        for make in HOSTILE.values():
            process.send(make(100_000).replace(b"\n", b" ") + b"\n")
        process.send(PING)
        while process.receive().get("id") != "ping":
            pass
        assert process.finish() == ([], 0) or process.running.returncode == 0


# --- lone surrogates ----------------------------------------------------------------------------


def slowly_mended(data: bytes) -> bytes:
    """JSON text with escaped lone surrogates replaced, token by token."""
    token = re.compile(
        rb"\\(?:u([dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.S
    )
    return token.sub(lambda found: b"\\ufffd" if found[2] else found[0], data)


PIECES: Final = st.sampled_from(
    [r"\ud800", r"\uDBFF", r"\udc00", r"\uDFFF", r"\ud83d\ude00", "\\\\", r"\"", r"\n", r"A", "u", "ud800", "x", "é"]
)


@pytest.mark.fault("S-02")
@given(st.lists(PIECES, max_size=12))
def test_lone_surrogates_are_replaced_as_ever(pieces: list[str]) -> None:
    data = '"{}"'.format("".join(pieces)).encode()
    mended = codec.replace_lone_surrogates(data)
    assert mended == slowly_mended(data)
    json.loads(mended).encode()  # valid Unicode


@pytest.mark.fault("S-02")
@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"\ud800", "\ufffd"),
        (r"a\udc00z", "a\ufffdz"),
        (r"\ud800\ud800\udc00", "\ufffd\U00010000"),
        (r"\ud800\udc00\udc00", "\U00010000\ufffd"),
        (r"\\ud800", r"\ud800"),
        (r"\\\ud800", "\\\ufffd"),
        (r"\\\\ud800", r"\\ud800"),
        (r"\ud800\\udc00", "\ufffd\\udc00"),
        (r"\ud83d\ude00", "\U0001f600"),
        (r"\uD800\n", "\ufffd\n"),
    ],
)
async def test_a_lone_surrogate_arrives_as_the_replacement_character(written: str, read: str) -> None:
    request = json.dumps(modern("W", "tools/call", {"name": "x", "arguments": {"a": "HERE"}}))
    async with RawPeer.of(echo_server()) as peer:
        answer = await peer.answer(request.replace("HERE", written).encode())
        assert answer["result"]["structuredContent"] == {"a": read}
        answer = await peer.answer(request.replace('"W"', f'"{written}"').encode())
        assert answer["id"] == read


@pytest.mark.fault("S-02")
def test_in_a_very_long_text_lone_surrogates_are_left_alone() -> None:
    data = b'"' + b"\\ud800" * (codec.MAX_MENDED // 6) + b"x" * 10 + b'"'
    assert len(data) > codec.MAX_MENDED
    assert codec.replace_lone_surrogates(data) is data
    with pytest.raises(codec.DecodeError):
        codec.decoder(str)(data)


# --- how long ids and names may be ------------------------------------------------------------


@pytest.mark.fault("S-05")
async def test_ids_and_method_names_have_so_many_characters_at_most() -> None:
    longest, longer = "é" * codec.MAX_NAME, "é" * (codec.MAX_NAME + 1)
    async with RawPeer.of(echo_server()) as peer:
        answer = await peer.answer(modern(longest, "server/discover"))
        assert answer["id"] == longest
        assert "result" in answer
        answer = await peer.answer(modern(longer, "server/discover"))
        assert answer == {
            "jsonrpc": "2.0",
            "error": {
                "code": -32600,
                "message": f"id must be a string or an integer of at most {codec.MAX_NAME} characters",
            },
        }
        answer = await peer.answer(modern(1, longest))
        assert code_of(answer) == -32601
        answer = await peer.answer(modern(1, longer))
        assert answer == {
            "jsonrpc": "2.0",
            "id": 1,
            "error": {"code": -32600, "message": f"method must be a string of at most {codec.MAX_NAME} characters"},
        }
        peer.send({"jsonrpc": "2.0", "method": longer})
        answer = await peer.receive_next()
        assert code_of(answer) == -32600


@pytest.mark.fault("S-05")
async def test_a_batch_has_100_messages_at_most() -> None:
    async with RawPeer.of(echo_server()) as peer:
        await peer.initialize("2025-03-26")
        answer = await peer.answer_batch([legacy(n, "ping") for n in range(MAX_BATCH)])
        assert sorted(each["id"] for each in answer) == list(range(MAX_BATCH))
        for batch in ([legacy(n, "ping") for n in range(MAX_BATCH + 1)], [1] * 50_000):
            refusal = await peer.answer(batch)
            assert refusal == {
                "jsonrpc": "2.0",
                "error": {"code": -32600, "message": "a batch may hold 100 messages at the most"},
            }


@pytest.mark.fault("S-05")
def test_a_process_refuses_a_long_batch_and_lives_on(tmp_path: Path) -> None:
    shake = legacy(
        0,
        "initialize",
        {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
    )
    with server(tmp_path) as process:
        assert process.ask(json.dumps(shake).encode() + b"\n")["result"]["protocolVersion"] == "2025-03-26"
        answer = process.ask(b"[" + b"1," * 100_000 + b"1]\n")
        assert code_of(answer) == -32600
        answer = process.ask(json.dumps([legacy(n, "ping") for n in range(100)]).encode() + b"\n")
        assert len(answer) == 100
        assert process.ask(PING)["id"] == "ping"


@pytest.mark.fault("S-05")
def test_a_long_batch_of_junk_takes_no_time() -> None:
    for junk in (b"[" + b"1," * 1_000_000 + b"1]", b"[" + b"[]," * 1_000_000 + b"[]]", b"[" * 1_000_000):
        assert seconds(junk, decode_batch) < 0.1
        assert isinstance(decode_batch(junk), Malformed)
    frames = decode_batch(b"[" + b"1," * 99 + b"1]")
    assert isinstance(frames, list)
    assert len(frames) == 100


@pytest.mark.fault("S-05")
async def test_a_fault_in_one_message_of_a_batch_is_not_that_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    served = Server("s")
    dispatcher = served.dispatcher
    begin = dispatcher.begin

    def failing(request: Request, peer: Any) -> Any:
        if request.id == 2:
            raise ZeroDivisionError
        return begin(request, peer)

    monkeypatch.setattr(dispatcher, "begin", failing)
    async with RawPeer.of(served) as peer:
        await peer.initialize("2025-03-26")
        answer = await peer.answer_batch([legacy(n, "ping") for n in (1, 2, 3)])
    assert sorted((each["id"], "result" in each) for each in answer) == [(1, True), (2, False), (3, True)]
    assert code_of(next(each for each in answer if each["id"] == 2)) == -32603

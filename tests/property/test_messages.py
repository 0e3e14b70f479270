"""Reading never raises, whatever the bytes; writing and reading are inverse."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcp_core import MCPError, codec
from mcp_core.messages import (
    ErrorResponse,
    Frame,
    Malformed,
    Notification,
    Request,
    Response,
    decode_batch,
    decode_frame,
    encode_error,
    encode_notification,
    encode_request,
    encode_response,
    is_batch,
)
from tests.property.strategies import fast, json_objects, json_values, messages, mutated, request_ids, unicode_text

FRAMES = (Request, Notification, Response, ErrorResponse, Malformed)


def check(frame: Frame) -> None:
    """What every frame must be, whatever it was read from."""
    assert isinstance(frame, FRAMES)
    if isinstance(frame, Request | Notification):
        assert bytes(frame.params)[:1] == b"{"
    if isinstance(frame, Request | Response):
        assert type(frame.id) in (int, str)
    if isinstance(frame, Malformed):
        assert frame.error.code in (-32700, -32600, -32602)
        assert frame.id is None or type(frame.id) in (int, str)
        # What its sender is told is a message itself.
        told = decode_frame(encode_error(frame.id, frame.error))
        assert isinstance(told, ErrorResponse)
        assert told.id == frame.id
        assert b"\n" not in encode_error(frame.id, frame.error)


def check_bytes(data: bytes) -> None:
    """No bytes are too much for any reader."""
    check(decode_frame(data))
    batch = decode_batch(data)
    for frame in [batch] if isinstance(batch, Malformed) else batch:
        check(frame)
    assert is_batch(data) == (data.lstrip()[:1] == b"[")
    codec.recover_id(data)


@fast
@given(st.binary(max_size=200))
def test_reading_arbitrary_bytes_never_raises(data: bytes) -> None:
    check_bytes(data)


@fast
@given(
    st.lists(st.sampled_from([b"{", b"}", b"[", b"]", b'"', b":", b",", b"id", b'"id"', b"\\", b"1", b"null", b" "]))
)
def test_reading_what_looks_like_json_never_raises(tokens: list[bytes]) -> None:
    check_bytes(b"".join(tokens))


@fast
@given(mutated(messages))
def test_reading_a_mutated_message_never_raises(data: bytes) -> None:
    check_bytes(data)


@fast
@given(json_values)
def test_reading_any_json_never_raises(value: Any) -> None:
    data = json.dumps(value).encode()
    check_bytes(data)
    if not isinstance(value, dict):
        frame = decode_frame(data)
        assert isinstance(frame, Malformed)
        assert frame.error.code == -32600


@fast
@given(st.lists(messages, min_size=1, max_size=5))
def test_a_batch_reads_as_its_elements(elements: list[bytes]) -> None:
    frames = decode_batch(b"[" + b",".join(elements) + b"]")
    assert not isinstance(frames, Malformed)
    assert [type(frame) for frame in frames] == [type(decode_frame(element)) for element in elements]


@fast
@given(request_ids, unicode_text, st.none() | json_objects)
def test_a_request_reads_as_it_was_written(request_id: int | str, method: str, params: dict[str, Any] | None) -> None:
    frame = decode_frame(encode_request(request_id, method, params))
    assert isinstance(frame, Request)
    assert (frame.id, type(frame.id), frame.method) == (request_id, type(request_id), method)
    assert json.loads(bytes(frame.params)) == (params or {})


@fast
@given(unicode_text, st.none() | json_objects)
def test_a_notification_reads_as_it_was_written(method: str, params: dict[str, Any] | None) -> None:
    frame = decode_frame(encode_notification(method, params))
    assert isinstance(frame, Notification)
    assert frame.method == method
    assert json.loads(bytes(frame.params)) == (params or {})


@fast
@given(request_ids, json_objects, st.booleans())
def test_a_response_reads_as_it_was_written(request_id: int | str, result: dict[str, Any], tailed: bool) -> None:
    body = codec.encode(result)
    if tailed and result:
        written = encode_response(request_id, body, b',"tail":[1]}')
        result = {**result, "tail": [1]}
    else:
        written = encode_response(request_id, body)
    frame = decode_frame(written)
    assert isinstance(frame, Response)
    assert (frame.id, type(frame.id)) == (request_id, type(request_id))
    assert json.loads(bytes(frame.result)) == result


@fast
@given(st.none() | request_ids, st.integers(-(2**63), 2**63), unicode_text, json_values)
def test_an_error_reads_as_it_was_written(request_id: int | str | None, code: int, message: str, data: Any) -> None:
    written = encode_error(request_id, MCPError(code, message, data))
    assert ("id" in json.loads(written)) == (request_id is not None)
    frame = decode_frame(written)
    assert isinstance(frame, ErrorResponse)
    assert (frame.id, type(frame.id)) == (request_id, type(request_id))
    assert (frame.error.code, frame.error.message, frame.error.data) == (code, message, data)


@fast
@given(request_ids, unicode_text, json_objects)
def test_the_id_before_a_fault_is_recovered(request_id: int | str, method: str, params: dict[str, Any]) -> None:
    whole = encode_request(request_id, method, params)
    frame = decode_frame(whole[:-1])
    assert isinstance(frame, Malformed)
    assert frame.error.code == -32700
    assert (frame.id, type(frame.id)) == (request_id, type(request_id))


@fast
@given(st.text(st.characters(exclude_categories=())), request_ids)
def test_lone_surrogates_never_stop_a_message(text: str, request_id: int | str) -> None:
    replaced = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    frame = decode_frame(encode_request(request_id, "m", {"x": text}))
    assert isinstance(frame, Request)
    assert json.loads(bytes(frame.params)) == {"x": replaced}
    # The escaped form is what other libraries send.
    escaped = json.dumps({"jsonrpc": "2.0", "id": request_id, "method": text, "params": {"x": text}}).encode()
    frame = decode_frame(escaped)
    assert isinstance(frame, Request)
    assert frame.id == request_id
    assert frame.method == replaced
    assert codec.decode_any(frame.params) == {"x": replaced}

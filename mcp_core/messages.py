"""JSON-RPC frames: the four kinds of message, read and written.

Knows the JSON-RPC envelope; nothing of MCP's methods. Params, results and error
data stay `Raw` bytes: who knows the method decodes them, once.
Spec: basic, "Messages"; JSON-RPC 2.0 sections 4 to 6.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, Final, Literal, TypeAlias, cast

from msgspec import UNSET, Raw, Struct, UnsetType, defstruct

from mcp_core import codec
from mcp_core.errors import InvalidParams, InvalidRequest, MCPError, ParseError

__all__ = [
    "ErrorResponse",
    "Frame",
    "Malformed",
    "Notification",
    "Request",
    "RequestId",
    "Response",
    "WholeRequest",
    "decode_batch",
    "decode_frame",
    "encode_error",
    "encode_notification",
    "encode_request",
    "encode_response",
    "is_batch",
    "raw_params",
    "whole_request",
]

RequestId: TypeAlias = int | str

NO_PARAMS: Final = Raw(b"{}")
"""What absent or null params are read as."""


class Request(Struct):
    """A call that wants an answer."""

    id: RequestId
    method: str
    params: Raw


class Notification(Struct):
    """A call that gets none."""

    method: str
    params: Raw


class Response(Struct):
    """The peer's result of our request."""

    id: RequestId
    result: Raw


class ErrorResponse(Struct):
    """The peer's refusal of our request; no id when it could not read ours.

    `is_stray` is true for what does not say that it is JSON-RPC: it may be a record of a log.
    """

    id: RequestId | None
    error: MCPError
    is_stray: bool = False


class Malformed(Struct):
    """What arrived was no legal message; `error` is what its sender is told.

    `id` is that of the broken message where it could be read (P-26).
    `answerable` is false for a broken response: answering one could start a loop.
    `is_response` is true for what says that it is JSON-RPC, and is a broken response.
    """

    error: MCPError
    id: RequestId | None = None
    answerable: bool = True
    is_response: bool = False


Frame: TypeAlias = Request | Notification | Response | ErrorResponse | Malformed


class _Envelope(Struct):
    jsonrpc: Literal["2.0"]
    method: str | UnsetType = UNSET
    id: int | str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class WholeRequest(Struct):
    """A request with its params decoded, by whoever knows what they must be."""

    jsonrpc: Literal["2.0"]
    id: RequestId

    method: ClassVar[str]
    params: Any


@lru_cache(maxsize=512)
def whole_request(method: str, params_type: Any) -> type[WholeRequest]:
    """The type of whole requests of one method. A union of such types decodes each as what its method says."""
    kind: Any = defstruct(
        "WholeRequest",
        [("params", params_type)],
        bases=(WholeRequest,),
        tag_field="method",
        tag=method,
        namespace={"method": method},
    )
    return kind  # type: ignore[no-any-return]


class _ErrorObject(Struct):
    code: int
    message: str
    data: Any = None


_LONGEST_ID: Final = 32
"""Bytes of a number that is read as an id of ours, however it is written."""

_BRACE = ord("{")
_envelope: codec.Decoder[_Envelope] = codec.decoder(_Envelope)
_members: codec.Decoder[dict[str, Raw]] = codec.decoder(dict[str, Raw])
_elements: codec.Decoder[list[Raw]] = codec.decoder(list[Raw])
_error_object: codec.Decoder[_ErrorObject] = codec.decoder(_ErrorObject)


def decode_frame(data: bytes) -> Frame:
    """The message in this JSON text. Never raises: what is no message is `Malformed`."""
    if not data.isascii() and not codec.is_utf8(data):
        return Malformed(ParseError("Parse error: the text is not UTF-8"), codec.recover_id(data))
    try:
        envelope = _envelope.plainly(data)
    except Exception:
        try:
            envelope = _envelope(data)
        except (codec.Undecodable, codec.Misfit) as exc:
            return _diagnose(data, exc)
    method, request_id = envelope.method, envelope.id
    if method is not UNSET:
        params = envelope.params
        if params is UNSET:
            params = NO_PARAMS
        elif memoryview(params)[0] != _BRACE:
            if bytes(params) != b"null":
                return _positional(None if request_id is UNSET else request_id)
            params = NO_PARAMS
        if request_id is UNSET:
            return Notification(method, params)
        return Request(request_id, method, params)
    return _answer(envelope)


def raw_params(data: bytes) -> Raw:
    """The params of a request that was decoded whole."""
    frame = decode_frame(data)
    return frame.params if isinstance(frame, Request) else NO_PARAMS


def _positional(request_id: RequestId | None) -> Malformed:
    return Malformed(InvalidParams("params must be an object"), request_id, answerable=request_id is not None)


def _answer(envelope: _Envelope) -> Frame:
    request_id, result, error = envelope.id, envelope.result, envelope.error
    readable = None if request_id is UNSET else request_id
    if (result is UNSET) == (error is UNSET):
        # An object with an id and nothing else was meant as a request: say so.
        fault = InvalidRequest("a message needs a method, a result or an error")
        return Malformed(fault, readable, answerable=result is UNSET, is_response=result is not UNSET)
    if error is not UNSET:
        return _refused(readable, error)
    if readable is None:
        fault = InvalidRequest("a response needs the id of its request")
        return Malformed(fault, answerable=False, is_response=True)
    return Response(readable, cast("Raw", result))


def _diagnose(data: bytes, fault: Exception) -> Malformed | Response | ErrorResponse:
    """What is wrong with a text that is no envelope, and whose it was."""
    if isinstance(fault, codec.Undecodable):
        return Malformed(ParseError("Parse error: " + str(fault)), codec.recover_id(data))
    if str(fault) == "nested too deeply":
        return Malformed(InvalidParams("the message is nested too deeply"), codec.recover_id(data))
    try:
        members = _members(data)
    except codec.Undecodable as exc:
        return Malformed(ParseError("Parse error: " + str(exc)), codec.recover_id(data))
    except codec.Misfit:
        return Malformed(InvalidRequest("a message must be a JSON object"))
    if "error" in members and "method" not in members and bytes(members.get("id", b"null")) == b"null":
        # JSON-RPC's form of an error without id (D-02)
        return _refused(None, members["error"], is_stray=bytes(members.get("jsonrpc", b"")) != b'"2.0"')
    raw_id = members.get("id")
    request_id = None if raw_id is None else codec.read_id(raw_id)
    is_answer = "method" not in members and ("result" in members or "error" in members)
    is_json_rpc = bytes(members.get("jsonrpc", b"")) == b'"2.0"'
    if is_answer and is_json_rpc and request_id is None and raw_id is not None and (mended := _whole(raw_id)):
        return decode_frame(codec.encode({**members, "id": mended}))  # type: ignore[return-value] # it has no method
    if not is_json_rpc:
        reason = 'jsonrpc must be "2.0"'
    elif raw_id is not None and request_id is None:
        reason = "id must be a string or an integer"
    else:
        reason = "method must be a string"
    return Malformed(
        InvalidRequest(reason), request_id, answerable=not is_answer, is_response=is_answer and is_json_rpc
    )


def _whole(raw_id: Raw) -> int | None:
    """The integer that an id of a response means, though it is written as another number: `1.0` for 1 (C093)."""
    text = bytes(raw_id)
    if len(text) > _LONGEST_ID or text[:1] not in b"-0123456789":
        return None
    number = float(text)
    return int(number) if number.is_integer() else None


def _refused(request_id: RequestId | None, error: Raw, *, is_stray: bool = False) -> Malformed | ErrorResponse:
    try:
        known = _error_object(error)
    except (codec.Undecodable, codec.Misfit) as exc:
        fault = InvalidRequest(f"malformed error object: {exc}")
        return Malformed(fault, request_id, answerable=False, is_response=not is_stray)
    return ErrorResponse(request_id, MCPError.of(known.code, known.message, known.data), is_stray)


def is_batch(data: bytes) -> bool:
    """Whether the text is an array, which only revision 2025-03-26 allows (P-29)."""
    return data.startswith(b"[") or data.lstrip().startswith(b"[")


def decode_batch(data: bytes) -> list[Frame] | Malformed:
    """The messages of a batch, each on its own, or what is wrong with the whole."""
    try:
        elements = _elements(data)
    except codec.Undecodable as exc:
        return Malformed(ParseError("Parse error: " + str(exc)))
    except codec.Misfit:
        return Malformed(InvalidParams("the message is nested too deeply"))
    if not elements:
        return Malformed(InvalidRequest("a batch must not be empty"))
    return [decode_frame(bytes(element)) for element in elements]


# --- writing ------------------------------------------------------------------------


def id_bytes(request_id: RequestId) -> bytes:
    """An id as it stands in a message."""
    return b"%d" % request_id if type(request_id) is int else codec.encode(request_id)


_LONG: Final = 4096
"""Bytes from which a copy costs more than the view that saves it."""


def encode_response(request_id: RequestId, result: bytes, tail: bytes = b"") -> bytes:
    """A response around a ready result.

    `tail` is put in place of the result's closing brace; it begins with a comma
    and ends with the brace. The result must not be empty then.
    """
    shown = b"%d" % request_id if type(request_id) is int else id_bytes(request_id)
    if tail:
        open_end = result[:-1] if len(result) < _LONG else memoryview(result)[:-1]
        return b"".join((b'{"jsonrpc":"2.0","id":', shown, b',"result":', open_end, tail, b"}"))
    return b"".join((b'{"jsonrpc":"2.0","id":', shown, b',"result":', result, b"}"))


def encode_error(request_id: RequestId | None, error: MCPError) -> bytes:
    """An error response; the id is left out when there is none (P-26)."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    member = b"" if request_id is None else b'"id":%b,' % id_bytes(request_id)
    return b'{"jsonrpc":"2.0",%b"error":%b}' % (member, codec.encode(body))


def encode_request(request_id: RequestId, method: str, params: Any) -> bytes:
    """A request; params that are `None` are left out."""
    return b'{"jsonrpc":"2.0","id":%b,%b' % (id_bytes(request_id), _call(method, params))


def encode_notification(method: str, params: Any) -> bytes:
    """A notification; params that are `None` are left out."""
    return b'{"jsonrpc":"2.0",%b' % _call(method, params)


def _call(method: str, params: Any) -> bytes:
    if params is None:
        return b'"method":%b}' % codec.encode(method)
    return b'"method":%b,"params":%b}' % (codec.encode(method), codec.encode(params))

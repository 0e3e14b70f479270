"""JSON-RPC frames: the four kinds of message, read and written.

Knows the JSON-RPC envelope; nothing of MCP's methods. Params, results and error
data stay `Raw` bytes: who knows the method decodes them, once.
Spec: basic, "Messages"; JSON-RPC 2.0 sections 4 to 6.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, cast

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, defstruct, structs

from mcp_core import codec
from mcp_core.codec import JSONObject
from mcp_core.errors import INTERNAL_ERROR, InvalidParams, InvalidRequest, MCPError, ParseError

__all__ = [
    "MAX_BATCH",
    "ErrorResponse",
    "Frame",
    "Malformed",
    "Notification",
    "Request",
    "RequestId",
    "Response",
    "SinglePassRequest",
    "decode_batch",
    "decode_frame",
    "encode_error",
    "encode_notification",
    "encode_request",
    "encode_response",
    "is_batch",
    "raw_params",
    "single_pass_type",
]

RequestId: TypeAlias = int | str

MAX_BATCH: Final = 100
"""Messages that one batch may hold: each of them, be it a single digit, is answered by a whole message."""

_Name: TypeAlias = Annotated[str, Meta(max_length=codec.MAX_NAME)]
_Id: TypeAlias = int | _Name

NO_PARAMS: Final = Raw(b"{}")
"""What absent or null params are read as."""


class Request(Struct):
    """A call that wants a response."""

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


class ErrorResponse:
    """The peer's refusal of our request; no id when it could not read ours.

    `is_stray` is true for what does not say that it is JSON-RPC: it may be a record of a log.
    """

    __slots__ = ("_object", "id", "is_stray")

    def __init__(self, request_id: RequestId | None, refusal: _ErrorObject, is_stray: bool = False) -> None:
        self.id: RequestId | None = request_id
        self.is_stray: bool = is_stray
        self._object = refusal

    @property
    def error(self) -> MCPError:
        """The error, decoded on demand: its data may be large and unused."""
        known = self._object
        try:
            data = codec.decode_any(known.data)
        except (codec.DecodeError, codec.ValidationError):
            data = None
        return MCPError.of(known.code, known.message, data)


class Malformed(Struct):
    """What arrived is not a legal message; `error` is the response for its sender.

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
    method: _Name | UnsetType = UNSET
    id: _Id | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class SinglePassRequest(Struct):
    """A request with its params decoded as those of its method."""

    jsonrpc: Literal["2.0"]
    id: _Id

    method: ClassVar[str]
    params: Any


@lru_cache(maxsize=512)
def single_pass_type(method: str, params_type: object) -> type[SinglePassRequest]:
    """Return the type of whole requests of one method. A union of such types decodes each as what its method says."""
    kind: Any = defstruct(
        "SinglePassRequest",
        [("params", params_type)],
        bases=(SinglePassRequest,),
        tag_field="method",
        tag=method,
        namespace={"method": method},
    )
    return kind  # type: ignore[no-any-return]


class _ErrorObject(Struct):
    code: int
    message: str
    data: Raw = Raw(b"null")


_NULL: Final = Raw(b"null")


class _Members(Struct):
    """What there is of a message that is not a legal one."""

    jsonrpc: Raw = _NULL
    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


# An array of so many elements at the most: a list would be decoded to its end before its length is looked at.
_Elements: Any = defstruct(
    "_Elements",
    [(f"e{index}", Raw | UnsetType, UNSET) for index in range(MAX_BATCH)],
    array_like=True,
    forbid_unknown_fields=True,
)

_LONGEST_ID: Final = 32
"""Bytes of a number that is read as an id of ours, however it is written."""

_BRACE = ord("{")
_envelope: codec.Decoder[_Envelope] = codec.decoder(_Envelope)
_members: codec.Decoder[_Members] = codec.decoder(_Members)
_elements: codec.Decoder[Any] = codec.decoder(_Elements)
_error_object: codec.Decoder[_ErrorObject] = codec.decoder(_ErrorObject)


def decode_frame(data: bytes) -> Frame:
    """Return the message in this JSON text. Never raises: what is not a message is `Malformed`."""
    if not data.isascii() and not codec.is_utf8(data):
        return Malformed(ParseError("Parse error: the text is not UTF-8"), codec.recover_id(data))
    try:
        envelope = _envelope.decode_raw(data)
    except Exception:
        data = codec.replace_lone_surrogates(data)
        try:
            envelope = _envelope.decode_unrepaired(data)
        except (codec.DecodeError, codec.ValidationError) as exc:
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
    """Return the params of a request that was decoded whole."""
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


def _diagnose(data: bytes, fault: Exception) -> Frame:
    """Return what is wrong with a text that is not an envelope, and whose it was."""
    if isinstance(fault, codec.DecodeError):
        return Malformed(ParseError("Parse error: " + str(fault)), codec.recover_id(data))
    if str(fault) == "nested too deeply":
        request_id = codec.recover_id(data)
        return Malformed(
            InvalidParams("the message is nested too deeply"),
            codec.last_id(data) if request_id is None else request_id,
        )
    try:
        members = _members.decode_unrepaired(data)
    except codec.DecodeError as exc:
        return Malformed(ParseError("Parse error: " + str(exc)), codec.recover_id(data))
    except codec.ValidationError:
        return Malformed(InvalidRequest(_NO_OBJECT))
    is_json_rpc = bytes(members.jsonrpc) == b'"2.0"'
    if members.error is not UNSET and members.method is UNSET and (members.id is UNSET or bytes(members.id) == b"null"):
        return _refused(None, members.error, is_stray=not is_json_rpc)  # JSON-RPC's form of an error without id (D-02)
    request_id = None if members.id is UNSET else codec.read_id(members.id)
    is_answer = members.method is UNSET and (members.result is not UNSET or members.error is not UNSET)
    if is_answer and is_json_rpc and request_id is None and members.id is not UNSET:
        mended = _whole(members.id)
        if mended is not None:
            return _answer(_Envelope("2.0", id=mended, result=members.result, error=members.error))
    return Malformed(
        InvalidRequest(_reason(members, request_id)),
        request_id,
        answerable=not is_answer,
        is_response=is_answer and is_json_rpc,
    )


def _reason(members: _Members, request_id: RequestId | None) -> str:
    """Return what is wrong with a JSON object that is not a message."""
    if bytes(members.jsonrpc) != b'"2.0"':
        return 'jsonrpc must be "2.0"'
    if members.id is not UNSET and request_id is None:
        return "id must be a string or an integer" + _if_long(members.id)
    return "method must be a string" + ("" if members.method is UNSET else _if_long(members.method))


def _if_long(given: Raw) -> str:
    """Return what there is to add where a string is wrong for its length alone."""
    return f" of at most {codec.MAX_NAME} characters" if len(bytes(given)) > codec.MAX_NAME else ""


def _whole(raw_id: Raw) -> int | None:
    """Return the integer that an id of a response means, though it is written as another number: `1.0` for 1 (C093)."""
    text = bytes(raw_id)
    if len(text) > _LONGEST_ID or text[:1] not in b"-0123456789":
        return None
    number = float(text)
    return int(number) if number.is_integer() else None


def _refused(request_id: RequestId | None, error: Raw, *, is_stray: bool = False) -> Malformed | ErrorResponse:
    try:
        known = _error_object(error)
    except (codec.DecodeError, codec.ValidationError) as exc:
        fault = InvalidRequest(f"malformed error object: {exc}")
        return Malformed(fault, request_id, answerable=False, is_response=not is_stray)
    return ErrorResponse(request_id, known, is_stray)


def is_batch(data: bytes) -> bool:
    """Return whether the text is an array, which only revision 2025-03-26 allows (P-29)."""
    return data.startswith(b"[") or data.lstrip().startswith(b"[")


def decode_batch(data: bytes) -> list[Frame] | Malformed:
    """Return the messages of a batch, each on its own, or what is wrong with the whole."""
    try:
        elements = structs.astuple(_elements(data))
    except codec.DecodeError as exc:
        return Malformed(ParseError("Parse error: " + str(exc)))
    except codec.ValidationError as exc:
        if str(exc) == "nested too deeply":
            return Malformed(InvalidParams("the message is nested too deeply"))
        return Malformed(InvalidRequest(f"a batch may hold {MAX_BATCH} messages at the most"))
    # What is not an object is JSON all the same, and need not be read again.
    frames = [
        decode_frame(text) if text.startswith(b"{") else Malformed(InvalidRequest(_NO_OBJECT))
        for element in elements
        if element is not UNSET and (text := bytes(element))
    ]
    return frames or Malformed(InvalidRequest("a batch must not be empty"))


# --- writing ------------------------------------------------------------------------


def id_bytes(request_id: RequestId) -> bytes:
    """Return an id as it stands in a message."""
    return b"%d" % request_id if type(request_id) is int else codec.encode(request_id)


_NO_OBJECT: Final = "a message must be a JSON object"

_LF, _CR = codec.LF, codec.CR

_LONG: Final = 4096
"""Bytes from which a copy costs more than the view that saves it."""


def encode_response(request_id: RequestId, result: bytes, tail: bytes = b"") -> bytes:
    """Return a response around a ready result.

    `tail` is put in place of the result's closing brace; it begins with a comma
    and ends with the brace. The result must not be empty then.

    A message is one line, whatever its transport: line breaks come with ready bytes that an
    author put somewhere into a result, and would end the message where they stand.

    Raises:
        codec.DecodeError: Ready bytes with line breaks in them are not JSON.
    """
    if _LF in result or _CR in result:
        result = codec.compact(result)
    shown = b"%d" % request_id if type(request_id) is int else id_bytes(request_id)
    if tail:
        open_end = result[:-1] if len(result) < _LONG else memoryview(result)[:-1]
        return b"".join((b'{"jsonrpc":"2.0","id":', shown, b',"result":', open_end, tail, b"}"))
    return b"".join((b'{"jsonrpc":"2.0","id":', shown, b',"result":', result, b"}"))


def encode_error(request_id: RequestId | None, error: MCPError) -> bytes:
    """Return an error response; the id is left out when there is none (P-26).

    Raises:
        TypeError, ValueError: The data have no JSON form.
        codec.DecodeError: There are ready bytes in them that are not JSON.
    """
    code: Any = error.code
    known = isinstance(code, int) and not isinstance(code, bool)
    body: JSONObject = {"code": code if known else INTERNAL_ERROR, "message": str(error.message)}
    if error.data is not None:
        body["data"] = error.data
    encoded = codec.encode(body)
    if error.data is not None:
        encoded = codec.compact(encoded)  # the author's data may have ready bytes in it
    member = b"" if request_id is None else b'"id":%b,' % id_bytes(request_id)
    return b'{"jsonrpc":"2.0",%b"error":%b}' % (member, encoded)


def encode_request(request_id: RequestId, method: str, params: Any) -> bytes:
    """Return a request; params that are `None` are left out."""
    return b'{"jsonrpc":"2.0","id":%b,%b' % (id_bytes(request_id), _call(method, params))


def encode_notification(method: str, params: Any) -> bytes:
    """Return a notification; params that are `None` are left out."""
    return b'{"jsonrpc":"2.0",%b' % _call(method, params)


def _call(method: str, params: Any) -> bytes:
    if params is None:
        return b'"method":%b}' % codec.encode(method)
    return b'"method":%b,"params":%b}' % (codec.encode(method), codec.encode_line(params))

"""What a handler returned, made into the bytes of its result.

Handlers return a Struct, a dict, ready bytes or a `Prepared`. Each is checked
against its method, completed with what the revision demands (`resultType`, cache
hints, the server's stamp), brought to the revision of its reader, and encoded once.
Knows no connection. Raises `WrongResult` for what the method cannot return.
Spec: basic, "ResultType", "`_meta`"; server/utilities/caching.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import msgspec
from msgspec import Raw, Struct

from mcp_core import codec, projection
from mcp_core import types as t
from mcp_core.checking import misfit
from mcp_core.codec import JSONObject
from mcp_core.errors import MissingClientCapability
from mcp_core.methods import Method
from mcp_core.queue_logger import QueueLogger
from mcp_core.revisions import is_modern

__all__ = ["MAX_ENCODINGS", "SERVER_INFO", "ResultEncoder", "WrongResult"]

# Theory of operation
#
# A result is encoded once, and completed without a second look at it:
#
#     {"content":[...],"isError":false      msgspec's encoding of the Struct, without members that hold their default
#     ,"resultType":"complete"              the tail, in place of the closing brace: what the revision demands and the
#     ,"_meta":{"io...serverInfo":{...}}}   encoding has left out
#
# For most results the tail is the same bytes each time, made with the `_Encoding` of their class, method and revision.
# A tail is assembled for a value only where the author has set one of the members that it may hold.
#
# What msgspec leaves out is decided by identity: a member is omitted while it holds the default *object* of its class.
# `_assembled` has to ask the same question with `is`, or a member is written twice or not at all: a `ttl_ms` of 0 that
# was computed is the same object (small integers are), a "private" that came out of JSON is not the default, and is
# encoded although it is equal.
#
# Invariants. Every form of a result (Struct, dict, Raw, Prepared) is brought to the reader's revision by `projection`,
# so that a new revision needs no rule here. Ready bytes are never decoded whole: members stay `Raw`, and those that
# projection does not touch are copied. `_encodings` and the bytes that a `Prepared` caches depend on class, method,
# revision and stamp alone, never on a caller.

SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"

_DEFAULT_TYPE: Final = codec.field_defaults(t.Result)["result_type"]
_DEFAULT_TTL: Final = 0
_DEFAULT_SCOPE: Final = "private"
MAX_ENCODINGS: Final = 1024
"""Types whose forms are kept: an author may make a class at each call."""

_log = QueueLogger(__name__)
_members: codec.Decoder[dict[str, Raw]] = codec.decoder(dict[str, Raw])


class WrongResult(Exception):
    """The handler returned what its method cannot return; the text is for its author."""


class ResultEncoder:
    """Encodes the results of one server.

    An encoded result is a pair: the JSON object, and a tail that stands in for its
    closing brace, or nothing. `messages.encode_response` joins the two around it.
    """

    def __init__(self, server_info: t.Implementation, *, stamped: bool = True) -> None:
        # The server's name and version for `_meta`; `None`: not sent.
        self._stamp = Raw(codec.encode(server_info)) if stamped else None
        # How results of a class are encoded, per method and revision; bounded, classes may be made per call.
        self._encodings: dict[tuple[type[object], str | None, str], _Encoding] = {}

    def encode(self, value: object, row: Method | None, revision: str) -> tuple[bytes, bytes]:
        """Return the result of this method (`None`: one that MCP does not define) for a reader.

        Raises:
            WrongResult: The method cannot return this.
            TypeError, ValueError: Something in it has no JSON form.
        """
        form = self._encodings.get((codec.type_of(value), None if row is None else row.name, revision))
        if form is not None:
            return form.encode(value)
        if isinstance(value, t.Prepared):
            return self._prepared(cast("t.Prepared[Any]", value), row, revision)
        if isinstance(value, Struct):
            return self._struct(value, row, revision)
        if isinstance(value, Raw):
            return self._raw(value, row, revision)
        if codec.is_object(value):
            return self._dict(value, row, revision)
        if value is None and (row is None or row.result is t.EmptyResult):
            return self._struct(t.EmptyResult(), row, revision)
        raise WrongResult(f"a handler of {_name(row)} returned {type(value).__name__}; expected {_expected(row)}")

    def _prepared(self, prepared: t.Prepared[Any], row: Method | None, revision: str) -> tuple[bytes, bytes]:
        key = (self, revision)
        kept = prepared.kept(key)
        if kept is None:
            body, tail = self._struct(prepared.value, row, revision)
            kept = (body[:-1] + tail, b"") if tail else (body, b"")
            prepared.keep(key, kept)
        return kept

    def _struct(self, value: Struct, row: Method | None, revision: str) -> tuple[bytes, bytes]:
        if row is not None and not _fits(value, row):
            raise WrongResult(f"a handler of {row.name} returned {type(value).__name__}; expected {_expected(row)}")
        form = _Encoding(type(value), row, revision, self._stamp)
        # Of others it depends on the value whether they fit.
        if row is None or isinstance(value, row.result):
            if len(self._encodings) >= MAX_ENCODINGS:
                self._encodings.clear()
            self._encodings[type(value), None if row is None else row.name, revision] = form
        return form.encode(value)

    # --- what authors wrote as JSON -------------------------------------------------

    def _dict(self, value: JSONObject, row: Method | None, revision: str) -> tuple[bytes, bytes]:
        kind = _type_of(value.get("resultType"), row)
        shown = value
        if kind is not None and row is not None:
            _check(value, kind, row)
            shown = {**({"isError": False} if kind is t.CallToolResult else {}), **value}
            shown = projection.project_json(shown, kind, revision)
        if not is_modern(revision):
            if value.get("resultType", "complete") != "complete":
                raise _unsupported_result_type(row, value["resultType"], revision)
            return codec.encode({k: v for k, v in shown.items() if k != "resultType"}), b""
        return codec.encode(self._completed(shown, row)), b""

    def _completed(self, value: JSONObject, row: Method | None) -> JSONObject:
        completed = dict(value)
        completed.setdefault("resultType", "complete")
        if row is not None and row.cacheable and completed["resultType"] == "complete":
            completed.setdefault("ttlMs", _DEFAULT_TTL)
            completed.setdefault("cacheScope", _DEFAULT_SCOPE)
        if self._stamp is not None:
            completed["_meta"] = _with_server_info(value.get("_meta") or {}, self._stamp)
        return completed

    def _raw(self, value: Raw, row: Method | None, revision: str) -> tuple[bytes, bytes]:
        """Ready bytes: scanned once for their members, which stay as they are."""
        try:
            body = codec.compact(value)
            members: JSONObject = _members(body)
        except (codec.DecodeError, codec.ValidationError) as exc:
            raise WrongResult(f"a handler of {_name(row)} returned bytes that are no JSON object: {exc}") from None
        result_type = codec.decode_any(members["resultType"]) if "resultType" in members else None
        if not is_modern(revision) and result_type not in (None, "complete"):
            raise _unsupported_result_type(row, result_type, revision)
        kind = _type_of(result_type, row)
        shown = members if kind is None else self._projected(members, kind, row, revision)
        if not is_modern(revision):
            shown.pop("resultType", None)
            return (body, b"") if shown == members else (codec.encode(shown), b"")
        if "_meta" in shown:
            shown["_meta"] = codec.decode_any(shown["_meta"])
        if result_type is not None:
            shown["resultType"] = result_type
        return codec.encode(self._completed(shown, row)), b""

    @staticmethod
    def _projected(members: JSONObject, kind: type[Struct], row: Method | None, revision: str) -> JSONObject:
        try:
            return projection.project_members(members, kind, revision)
        except (KeyError, TypeError, AttributeError, codec.ValidationError, codec.DecodeError) as exc:
            raise WrongResult(
                f"a handler of {_name(row)} returned bytes that are no {kind.__name__}: {exc!r}"
            ) from None


class _Encoding:
    """How Structs of one type go out as the results of one method, in one revision."""

    __slots__ = (
        "_caches",
        "_complete",
        "_has_meta",
        "_is_modern",
        "_is_result",
        "_plan",
        "_prepare",
        "_result_type",
        "_revision",
        "_row",
        "_stamp",
        "_tail",
    )

    def __init__(self, kind: type[Struct], row: Method | None, revision: str, stamp: Raw | None) -> None:
        self._row = row
        self._revision = revision
        self._stamp = stamp
        # Checks what msgspec does not: values built by hand are not validated.
        self._prepare = next((make() for base, make in _PREPARE.items() if issubclass(kind, base)), _checked)
        self._is_modern = is_modern(revision)
        self._is_result = issubclass(kind, t.Result)
        self._caches = issubclass(kind, t.CacheableResult)
        self._has_meta = issubclass(kind, t.MetaObject)
        self._plan = projection.plan_of(kind, revision)  # what this revision lacks of the class; `None`: nothing
        self._result_type = codec.field_defaults(kind)["result_type"] if self._is_result else _DEFAULT_TYPE
        # Written in place of the closing brace: resultType, cache hints and stamp, whatever is missing.
        self._tail = b"}" if stamp is None else b',"_meta":{"%b":%b}}' % (SERVER_INFO.encode(), bytes(stamp))
        self._complete = b"".join(
            (
                b',"resultType":"complete"',
                b',"ttlMs":0,"cacheScope":"private"' if self._caches else b"",
                self._tail,
            )
        )

    def encode(self, value: Any) -> tuple[bytes, bytes]:
        """Return the value, and the tail that completes it."""
        value = self._prepare(value)
        if not self._is_modern:
            if self._is_result and value.result_type != "complete":
                raise _unsupported_result_type(self._row, value.result_type, self._revision)
            return codec.encode(value if self._plan is None else self._plan.apply(value)), b""
        tail = self._complete
        if self._has_meta and value._meta is not None:
            if self._stamp is not None:
                value = msgspec.structs.replace(value, _meta=_with_server_info(value._meta, self._stamp))
            tail = self._assembled(value)
        elif self._is_result and (value.result_type is not _DEFAULT_TYPE or (self._caches and _has_hints(value))):
            tail = self._assembled(value)
        body = codec.encode(value if self._plan is None else self._plan.apply(value))
        # An empty object has no member for the tail's comma to follow.
        return (b"{" + tail[1:], b"") if body == b"{}" else (body, tail)

    def _assembled(self, value: Any) -> bytes:
        """Return what the encoding leaves out because it holds its default."""
        parts: list[bytes] = []
        if not self._is_result or value.result_type is self._result_type:
            parts.append(b',"resultType":' + codec.encode(self._result_type))
        if self._caches:
            if value.ttl_ms is _DEFAULT_TTL:
                parts.append(b',"ttlMs":0')
            if value.cache_scope is _DEFAULT_SCOPE:
                parts.append(b',"cacheScope":"private"')
        parts.append(self._tail if not self._has_meta or value._meta is None else b"}")
        return b"".join(parts)


def _has_hints(value: t.CacheableResult) -> bool:
    """Return whether the author has said how long a result may be kept."""
    return not (value.ttl_ms is _DEFAULT_TTL and value.cache_scope is _DEFAULT_SCOPE)


def _with_server_info(meta: JSONObject, stamp: Raw) -> JSONObject:
    return meta if meta.get(SERVER_INFO) is not None else {**meta, SERVER_INFO: stamp}


def _unsupported_result_type(row: Method | None, result_type: Any, revision: str) -> WrongResult:
    """Return the error: the handler returned a `resultType` that this revision cannot carry."""
    return WrongResult(f"a handler of {_name(row)} returned resultType {result_type!r} to a client of {revision}")


def _name(row: Method | None) -> str:
    return "a custom method" if row is None else row.name


def _expected(row: Method | None) -> str:
    if row is None:
        return "a Struct, a dict, msgspec.Raw or None"
    also = ", InputRequiredResult" if row.may_ask else ""
    return f"{row.result.__name__}{also}, a dict or msgspec.Raw"


def _fits(value: Struct, row: Method) -> bool:
    kind = row.result
    if isinstance(value, kind):
        return True
    if isinstance(value, t.InputRequiredResult):
        return row.may_ask
    # Results of extensions and tasks name their own type; a plain Result is empty.
    if isinstance(value, t.CreateTaskResult):
        return row.name == "tools/call"
    return isinstance(value, t.Result) and (value.result_type != "complete" or kind is t.EmptyResult)


def _type_of(result_type: Any, row: Method | None) -> type[Struct] | None:
    """Return the type to check a dict against: that of its method, or none if it names another."""
    if row is None:
        return None
    if result_type == "input_required" and row.may_ask:
        return t.InputRequiredResult
    return row.result if result_type in (None, "complete") else None


def _check(value: JSONObject, kind: type[Struct], row: Method) -> None:
    try:
        codec.convert(codec.to_json(value), kind)
    except codec.ValidationError as exc:
        raise WrongResult(f"a handler of {row.name} returned a dict that is no {kind.__name__}: {exc}") from None
    for name, wire in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
        # Left in, it would be sent under a name that no client reads (S-094).
        if name != wire and name in value:
            raise WrongResult(f"a handler of {row.name} returned a dict with {name!r}; on the wire it is {wire!r}")


def _checked(value: Any) -> Any:
    """Return a value that is what its type says.

    Raises:
        WrongResult: It is not; the text names the member.
    """
    wrong = misfit(value)
    if wrong is not None:
        raise WrongResult(f"a handler returned a {type(value).__name__} that is no such message: {wrong}")
    return value


class _Listing:
    """Makes a list ready: what would have a client refuse the whole list is left out, with a log record.

    An input schema whose root is not an object is such a thing (R-TOOL-04). Most lists are equal to the one
    before, and are not checked again then.
    """

    def __init__(self, field: str, noun: str) -> None:
        self._field = field
        self._noun = noun
        # The entries of the last list that was sound, to be compared with the next.
        self._sound: list[Any] = []

    def __call__(self, result: Any) -> Any:
        entries: object = getattr(result, self._field)
        if not codec.is_array(entries):
            return _checked(result)
        if entries == self._sound and entries:
            return result
        broken = {index: wrong for index, entry in enumerate(entries) if (wrong := _fault_of(entry)) is not None}
        if not broken:
            self._sound = list(entries)
            return _checked(result)
        for index, wrong in broken.items():
            name = getattr(entries[index], "name", f"number {index + 1}")
            _log.error("%s %r is not listed: %s", self._noun, name, wrong)
        sound = [entry for index, entry in enumerate(entries) if index not in broken]
        return _checked(msgspec.structs.replace(result, **{self._field: sound}))


def _fault_of(entry: Any) -> str | None:
    """Return why an entry of a list cannot be sent; `None` if it can."""
    if not isinstance(entry, Struct):
        return f"it is a {type(entry).__name__}"
    wrong = misfit(entry)
    if wrong is None and isinstance(entry, t.Tool) and entry.input_schema.get("type") != "object":
        return 'its input_schema needs "type": "object" at its root'
    if wrong is None:
        try:
            codec.encode(entry)  # what stands in a member of any type
        except (TypeError, ValueError) as exc:
            return str(exc)
    return wrong


def _call_result(result: t.CallToolResult) -> t.CallToolResult:
    """Return the result with its long strings as ready bytes, the result itself unchanged.

    Looks first at what most results are, text and nothing else, and in detail only at others.
    """
    raw = result.structured_content
    if isinstance(raw, Raw) and (line := _one_line(raw)) is not raw:
        result = msgspec.structs.replace(result, structured_content=line)
    looked_at: Any = result
    content: list[object] = looked_at.content
    meta = looked_at._meta
    plain = (
        type(content) is list
        and ((is_error := looked_at.is_error) is False or is_error is True)
        and (meta is None or type(meta) is dict)
        and ((result_type := looked_at.result_type) is _DEFAULT_TYPE or type(result_type) is str)
    )
    long = False
    for block in content if plain else ():
        if type(block) is not t.TextContent or block.annotations is not None or block._meta is not None:  # pyright: ignore[reportPrivateUsage]
            plain = False
            break
        text = block.text
        if type(text) is not str:
            plain = False
            break
        if len(text) >= codec.LONG_TEXT:
            long = True
    if not plain:
        _checked(result)
        long = any(map(_is_long, content))
    return msgspec.structs.replace(result, content=[_with_long_text(each) for each in content]) if long else result


def _is_long(block: Any) -> bool:
    name = _LONG_FIELDS.get(codec.type_of(block))
    return name is not None and len(getattr(block, name)) >= codec.LONG_TEXT


_LONG_FIELDS: Final[dict[type[Any], str]] = {t.TextContent: "text", t.ImageContent: "data", t.AudioContent: "data"}


_PREPARE: Final[dict[type[Any], Callable[[], Callable[[Any], Any]]]] = {
    t.CallToolResult: lambda: _call_result,
    t.ListToolsResult: lambda: _Listing("tools", "tool"),
    t.ListResourcesResult: lambda: _Listing("resources", "resource"),
    t.ListResourceTemplatesResult: lambda: _Listing("resource_templates", "resource template"),
    t.ListPromptsResult: lambda: _Listing("prompts", "prompt"),
}


def _with_long_text(block: Any) -> Any:
    name = _LONG_FIELDS.get(cast("type[Any]", type(block)))
    if name is None or not isinstance(text := getattr(block, name), str):
        return block
    return msgspec.structs.replace(block, **{name: codec.long_text(text)})


def _one_line(raw: Raw) -> Raw:
    data = bytes(raw)
    try:
        line = codec.compact(data)
    except codec.DecodeError as exc:
        raise WrongResult(f"structured_content is no JSON text: {exc}") from None
    return raw if line is data else Raw(line)


def opened(value: Any) -> Any:
    """Return a result as middleware sees it: plain Python values where its maker put ready bytes."""
    if isinstance(value, t.CallToolResult) and isinstance(value.structured_content, Raw):
        raw = bytes(value.structured_content)
        try:
            return value if raw == b"null" else msgspec.structs.replace(value, structured_content=codec.decode_any(raw))
        except (codec.ValidationError, codec.DecodeError):
            return value  # what is wrong with it, encoding will say
    return value


def asks_for_input(value: object) -> bool:
    """Return whether a result, in whatever form, asks its client for input."""
    if isinstance(value, t.Result):
        return isinstance(value, t.InputRequiredResult)
    if isinstance(value, Raw):
        return b'"input_required"' in bytes(value) and _raw_type(value) == "input_required"
    return codec.is_object(value) and value.get("resultType") == "input_required"


def _raw_type(value: Raw) -> object:
    try:
        return codec.decode_any(_members(value).get("resultType", b"null"))
    except (codec.ValidationError, codec.DecodeError):
        return None  # what is wrong with it, encoding will say


def check_input_required(value: object, row: Method | None, revision: str, capabilities: t.ClientCapabilities) -> None:
    """Check a result that asks for input against its method and what its client declared.

    Raises:
        WrongResult: The method or the revision does not allow it, it asks for nothing, or
            by a method that is not an input request.
        MissingClientCapability: The client did not declare what it takes (R-MRTR-04).
    """
    if row is None or not row.may_ask:
        raise WrongResult(f"a handler of {_name(row)} asked for input, which its method cannot")
    if not is_modern(revision):
        raise WrongResult(
            f"a handler of {row.name} asked for input by a result; "
            f"a client of {revision} is asked by ctx.elicit, ctx.create_message or ctx.list_roots"
        )
    plain = codec.decode_any(value) if isinstance(value, Raw) else codec.to_json(value)
    try:
        result = codec.convert(plain, t.InputRequiredResult)
    except codec.ValidationError as exc:
        raise WrongResult(f"a handler of {row.name} asked for input by no InputRequiredResult: {exc}") from None
    if not result.input_requests and result.request_state is None:
        raise WrongResult("InputRequiredResult needs input_requests or request_state")
    for request in (result.input_requests or {}).values():
        require_capability(request.method, request.params, capabilities)


def require_capability(method: str, params: object, capabilities: t.ClientCapabilities) -> None:
    """Raise `MissingClientCapability` if a client without these may not be asked this."""
    needed = _needed(method, params, capabilities)
    if needed is not None:
        raise MissingClientCapability(f"the client did not declare what {method} needs", needed)


def _needed(method: str, params: object, has: t.ClientCapabilities) -> JSONObject | None:
    if method == "roots/list":
        return {"roots": {}} if has.roots is None else None
    if method == "sampling/createMessage":
        if has.sampling is None:
            return {"sampling": {}}
        with_tools = _member(params, "tools", "tools") is not None or _member(params, "tool_choice", "toolChoice")
        return {"sampling": {"tools": {}}} if with_tools and has.sampling.tools is None else None
    mode = _member(params, "mode", "mode") or "form"
    elicitation = has.elicitation
    if elicitation is None:
        return {"elicitation": {mode: {}}}
    if mode == "url":
        return {"elicitation": {"url": {}}} if elicitation.url is None else None
    # Neither mode named means forms only (R-ELIC-01).
    return {"elicitation": {"form": {}}} if elicitation.form is None and elicitation.url is not None else None


def _member(params: object, name: str, wire: str) -> object:
    if codec.is_object(params):
        return params.get(wire)
    return getattr(params, name, None)

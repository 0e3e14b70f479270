"""JSON bytes to values and back: the one place that calls msgspec and orjson.

Knows types and bytes; nothing of JSON-RPC. Every failure leaves as one of two
exceptions: `DecodeError` (the text is not JSON, or not UTF-8) and `ValidationError` (it is
JSON, of another shape than asked for, or deeper than this process can hold).

Which library where, and why: envelopes and typed values are msgspec's (exact
integers, typed, `Raw`); long strings go out through orjson, several times faster
on them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import accumulate
from typing import Annotated, Any, Final, Generic, TypeAlias, TypeGuard, TypeVar, cast

import msgspec
import orjson
from msgspec import Raw

from mcp_core.queue_logger import QueueLogger

__all__ = [
    "JSONObject",
    "ReadableObject",
    "CR",
    "LARGE",
    "LF",
    "LONG_TEXT",
    "MAX_DIGITS",
    "MAX_MENDED",
    "MAX_NAME",
    "Decoder",
    "ValidationError",
    "DecodeError",
    "ValueCounter",
    "canonical",
    "compact",
    "convert",
    "decode_any",
    "decoder",
    "encode",
    "encode_line",
    "field_defaults",
    "is_array",
    "is_object",
    "is_utf8",
    "last_id",
    "long_text",
    "read_id",
    "replace_lone_surrogates",
    "recover_id",
    "scrub",
    "to_json",
    "type_of",
    "url_text",
]

JSONObject: TypeAlias = dict[str, Any]
"""A JSON object, decoded: str, int, float, bool, None, lists and such dicts."""

ReadableObject: TypeAlias = Mapping[str, Any]
"""The same, of any class, to be read only."""

T = TypeVar("T")

LONG_TEXT = 2048
"""Characters from which a string goes out through orjson.

Measured: below it the extra call costs more than the faster escaping saves.
"""


MAX_NAME: Final = 8192
"""Characters that an id, a progress token, or the name of a method may have: they are kept and sent back."""

LF: Final = 10
CR: Final = 13
"""Line breaks as numbers: looking for a byte is ten times as fast as looking for bytes."""

type_of: Final[Callable[[Any], Any]] = type
"""The type of a value that may be anything: checkers take that of `type` amiss."""


class DecodeError(ValueError):
    """The bytes are no JSON text in UTF-8."""


class ValidationError(ValueError):
    """The JSON value does not have the shape asked for; the text says where."""


def _foreign(value: object) -> object:
    """Return what a value that msgspec does not know looks like in JSON.

    Only wire types of this package say so themselves; the rest is an error of
    the author, who learns the type's name.
    """
    shape = getattr(value, "__mcp_wire__", None)
    if shape is None:
        text = url_text(value)
        if text is not None:
            return text
        raise TypeError(f"{type(value).__name__} is no JSON value; convert it before it goes into a message")
    return shape()


def url_text(value: object) -> str | None:
    """Return the text of a URL object, of pydantic or of another library; `None` for anything else."""
    return str(value) if hasattr(value, "scheme") and hasattr(value, "host") else None


_log = QueueLogger(__name__)
_encoder = msgspec.json.Encoder(enc_hook=_foreign)
_generic = msgspec.json.Decoder()


def encode(value: object) -> bytes:
    """Return the value as compact UTF-8 JSON.

    Lone surrogates become U+FFFD (no JSON text in UTF-8 can carry them).

    Raises:
        TypeError: A value in it has no JSON form.
        ValueError: It is nested deeper than can be encoded, or in itself.
    """
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        _log.warning("text that is not valid Unicode was sent with U+FFFD in the place of what is wrong")
        return _encode_scrubbed(value)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def encode_line(value: object) -> bytes:
    """Encode the value without line breaks, which ready bytes (`Raw`) in it may have.

    Raises as `encode`, and:
        DecodeError: There are line breaks in bytes that are not JSON.
    """
    data = encode(value)
    return compact(data) if LF in data or CR in data else data


_TOO_DEEP: Final = "the value is nested too deeply, or contains itself"


def _encode_scrubbed(value: object) -> bytes:
    try:
        return _encoder.encode(scrub(value))
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


_canonical = msgspec.json.Encoder(enc_hook=_foreign, order="sorted")


def canonical(value: object) -> bytes:
    """Return the value as JSON with the members of every object in one order, for digests."""
    return _canonical.encode(value)


def long_text(text: str) -> Raw | str:
    """Return a string ready for the encoder: as JSON bytes where that is faster."""
    if len(text) < LONG_TEXT:
        return text
    try:
        return Raw(orjson.dumps(text))
    except TypeError:  # lone surrogates: `encode` replaces them
        return text


class Decoder(Generic[T]):
    """A compiled decoder of one type."""

    __slots__ = ("_kind", "decode_bounded", "decode_raw")

    def __init__(self, kind: object) -> None:
        self._kind = kind
        self.decode_bounded: Callable[[bytes | Raw], T] = self._make_bounded
        """The same as `decode_raw`, for texts of `LARGE` bytes and more: linear with a small factor.

        msgspec takes a thousand times as long for a number above 1e288 as for any other, so that a
        text of such numbers would hold up the event loop. Python reads them as it reads others,
        but all of them slower.
        """
        self.decode_raw: Callable[[bytes | Raw], T] = msgspec.json.Decoder(kind).decode
        """The same, one call shorter, with exceptions of whatever kind: for those who then decode again."""

    def __call__(self, data: bytes | Raw) -> T:
        """Decode the whole of `data`.

        Escaped lone surrogates in strings are read as U+FFFD.

        Raises:
            DecodeError: No JSON, or wrong UTF-8.
            ValidationError: Another shape, a number out of range, or too deep.
        """
        try:
            return (self.decode_raw if len(data) < LARGE else self.decode_bounded)(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            fault = _fault(exc)
        if isinstance(fault, DecodeError):
            mended = replace_lone_surrogates(bytes(data))
            if mended != data:
                return self.decode_unrepaired(mended)
        raise fault

    def decode_unrepaired(self, data: bytes | Raw) -> T:
        """Decode `data` as `__call__` does, for texts in which lone surrogates have been replaced already."""
        try:
            return (self.decode_raw if len(data) < LARGE else self.decode_bounded)(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            fault = _fault(exc)
        raise fault

    def _make_bounded(self, data: bytes | Raw) -> T:
        """Decode, and be ready to do so from now on: most types never see such a text."""
        self.decode_bounded = msgspec.json.Decoder(self._kind, float_hook=_float).decode
        return self.decode_bounded(data)


def _fault(exc: Exception) -> ValidationError | DecodeError:
    """Return what a decoder of msgspec means by its exception."""
    if isinstance(exc, RecursionError):
        # The peer chooses the nesting depth, and msgspec reports too much of it so.
        return ValidationError("nested too deeply")
    # A ValidationError is a DecodeError, too.
    return (ValidationError if isinstance(exc, msgspec.ValidationError) else DecodeError)(str(exc))


LARGE: Final = 64
"""Bytes from which a text can hold so many numbers that it matters how each is read."""


def _float(text: str) -> float:
    value = float(text)
    if value - value != 0:  # infinite
        raise ValueError("Number out of range")
    return value


@lru_cache(maxsize=512)
def decoder(kind: object) -> Decoder[Any]:
    """Return the decoder of a type, compiled once."""
    return Decoder(kind)


def decode_any(data: bytes | Raw) -> Any:
    """Any JSON value, as plain Python values. Raises as `Decoder` does."""
    return decoder(Any)(data)


def convert(value: Any, kind: type[T]) -> T:
    """Return a plain JSON value as `kind`.

    Raises:
        ValidationError: It has another shape.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as exc:
        raise ValidationError(str(exc)) from None
    except RecursionError:
        raise ValidationError("nested too deeply") from None


@lru_cache(maxsize=512)
def field_defaults(kind: type[msgspec.Struct]) -> JSONObject:
    """Return the default objects of a Struct's fields; while a field holds its own it is left out."""
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    return dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))


def is_utf8(data: bytes) -> bool:
    """Return whether the whole text is UTF-8: decoding alone does not look at what it skips."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_object(value: object) -> TypeGuard[JSONObject]:
    """Return whether a plain JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Return whether a plain JSON value is an array."""
    return isinstance(value, list)


class ValueCounter:
    """Counts the values of a JSON text as it comes, in pieces: elements, members, objects and arrays.

    What a text takes to decode depends on them more than on its length: an empty array costs a
    hundred times as much as a byte of a string. Counted is what separates values outside of
    strings, a piece at a time and without a loop over bytes.
    """

    __slots__ = ("_escaped", "_in_string", "longest_number", "values")

    def __init__(self) -> None:
        self.values: int = 0
        self.longest_number: bool = False
        """Whether there was a number of more than `MAX_DIGITS` digits, outside of strings."""
        self._in_string = False
        self._escaped = False

    def feed(self, piece: bytes) -> None:
        """Count on."""
        if self._escaped:
            piece = piece[1:]
        if b"\\" in piece:
            piece = piece.replace(rb"\\", b"").replace(rb"\"", b"")
            # What is left of a backslash at the end escapes the first byte of the next piece.
            self._escaped = piece.endswith(b"\\")
        else:
            self._escaped = False
        parts = piece.split(b'"')
        outside = b" ".join(parts[self._in_string :: 2])
        self._in_string ^= len(parts) % 2 == 0
        self.values += sum(map(outside.count, _SEPARATORS))
        if len(outside) > MAX_DIGITS and not self.longest_number:
            self.longest_number = _MANY_DIGITS in outside.translate(_DIGITS)


MAX_DIGITS: Final = 400
"""Digits of a number in a large text: Python reads longer ones in quadratic time."""

_SEPARATORS: Final = (b",", b"[", b"{")
_MANY_DIGITS: Final = b"0" * (MAX_DIGITS + 1)
_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")


def to_json(value: Any) -> Any:
    """Return the plain JSON value (dicts, lists, scalars) that `value` is encoded to."""
    return _generic.decode(encode(value))


def compact(raw: Raw | bytes) -> bytes:
    """JSON text that its author made, checked and brought to one line.

    Raises:
        DecodeError: It is not JSON in UTF-8.
    """
    data = bytes(raw)  # the same object where it is bytes
    try:
        if not is_utf8(data):
            raise DecodeError("the text is not UTF-8")
        if LF in data or CR in data:
            data = msgspec.json.format(data, indent=-1)
        _skip.decode(data)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise DecodeError(str(exc)) from None
    return data


_skip = msgspec.json.Decoder(Raw)


# --- text that is not valid Unicode ---------------------------------------------

# A high surrogate without a low one behind it, or a low one without a high one before it. It
# begins with a literal, so that the search skips what is not an escape, and looks a fixed number of
# bytes to either side: linear.
_LONE = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F][0-9a-fA-F]{2})"
)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
# Two bytes that UTF-8 never has: they stand for an escaped backslash, so that each backslash
# which is left begins an escape.
_BACKSLASH: Final = b"\xff\xfe"


MAX_MENDED: Final = 512 * 1024
"""Bytes of a text in which lone surrogates are replaced; in a longer one it would hold up the event loop."""


def replace_lone_surrogates(data: bytes) -> bytes:
    """Return JSON text with every escaped lone surrogate replaced by U+FFFD; one of more than 512 KiB as it is."""
    if len(data) > MAX_MENDED or _SURROGATE.search(data) is None:
        return data
    if rb"\\" not in data:
        return _LONE.sub(rb"\\ufffd", data)
    plain = data.replace(rb"\\", _BACKSLASH)
    return _LONE.sub(rb"\\ufffd", plain).replace(_BACKSLASH, rb"\\")


def scrub(value: Any) -> Any:
    """Return the plain JSON form of a value, every lone surrogate replaced by U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if is_object(value):
        return {scrub(k): scrub(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [scrub(v) for v in cast("list[Any]", value)]
    if isinstance(value, msgspec.Struct):
        # One level at a time: the whole cannot be encoded, that is why we are here.
        return {k: scrub(v) for k, v in _wire_items(value)}
    return value


def _wire_items(struct: msgspec.Struct) -> list[tuple[str, Any]]:
    names = zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True)
    config = struct.__struct_config__
    defaults = field_defaults(type(struct))
    items: list[tuple[str, Any]] = [(config.tag_field, config.tag)] if config.tag_field else []
    for name, wire_name in names:
        value = getattr(struct, name)
        if value is msgspec.UNSET or (config.omit_defaults and name in defaults and value is defaults[name]):
            continue
        items.append((wire_name, value))
    return items


# --- messages that do not decode --------------------------------------------------

_RECOVERED: Final = 64 * 1024
"""Bytes of a broken message in which its id is looked for."""

_MOST_STRINGS: Final = 2000
_MOST_CANDIDATES: Final = 4
_BLANK: Final = b" \t\r\n"
# With what ends it: a text may be cut amid a number, which is another one then.
_NUMBER = re.compile(rb"(-?[0-9]+)[\s,}]")
# For each brace and bracket the step that it makes in depth, as a signed byte.
_STEPS: Final = bytes.maketrans(b"{[}]", b"\x01\x01\xff\xff")
_NO_STEPS: Final = bytes(set(range(256)) - set(b"{[}]"))
_id_decoder = msgspec.json.Decoder(int | Annotated[str, msgspec.Meta(max_length=MAX_NAME)])


class _IdOnly(msgspec.Struct):
    id: Raw


_id_only = msgspec.json.Decoder(_IdOnly)


def recover_id(data: bytes) -> int | str | None:
    """Return the id of a message that does not decode, if it stands before the fault.

    That is the first member `id` of the outermost object, within the first 64 KiB; `None`
    when there is none, or none that is legal.

    A broken text is whatever its sender wants it to be, so this must be cheap for all of
    them: no loop of Python's runs over bytes or tokens. With escapes blanked out, splitting at
    quotes leaves what is outside of strings at even places and their contents at odd ones; the
    depth of a place is then a count of braces.
    """
    try:
        return read_id(_id_only.decode(data).id)  # wrong in a place that is skipped
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    head = data[:_RECOVERED].removeprefix(b"\xef\xbb\xbf")
    if head.lstrip(_BLANK)[:1] != b"{":
        return None
    return _id_in_head(head) if b'"id"' in head else None


def last_id(data: bytes) -> int | str | None:
    """Return the id of a message that is nested too deeply to be read, if its last members are plain ones.

    Some clients write the id last. What is too deep to be read may be malformed as well: then
    braces and brackets are most likely not balanced.
    """
    text = data.rstrip(_BLANK)
    if _depth(text) != 0 or not text.endswith(b"}"):
        return None
    members = text[max(text.rfind(b"}", 0, -1), text.rfind(b"]")) + 1 : -1].lstrip(_BLANK)
    if len(members) > _LONGEST_VALUE or members[:1] != b",":
        return None
    try:
        return read_id(_id_only.decode(b"{" + members[1:] + b"}").id)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _id_in_head(head: bytes) -> int | str | None:
    blanked = head.replace(rb"\\", b"__").replace(rb"\"", b"__")
    parts = blanked.split(b'"', 2 * _MOST_STRINGS)
    depth = counted = 0
    found = -1
    for _ in range(_MOST_CANDIDATES):
        try:
            found = parts.index(b"id", found + 1)
        except ValueError:
            return None
        if not found % 2:
            continue  # no string
        depth += _depth(b"".join(parts[counted:found:2]))
        counted = found + 1
        if depth == 1 and parts[found - 1].rstrip(_BLANK).endswith((b"{", b",")):
            if _ends(b"".join(parts[:found:2])):
                return None
            start = sum(map(len, parts[: found + 1])) + found + 1  # behind the quote that ends it
            return _id_at(head, blanked, start)
    return None


def _depth(outside: bytes) -> int:
    """Return how many more objects and arrays this text opens than it closes."""
    opened = outside.count(b"{") + outside.count(b"[")
    return opened - outside.count(b"}") - outside.count(b"]")


def _ends(outside: bytes) -> bool:
    """Return whether the outermost object is closed in this text, which begins with it."""
    steps = memoryview(outside.translate(_STEPS, _NO_STEPS)).cast("b")
    return min(accumulate(steps)) < 1


def _id_at(head: bytes, blanked: bytes, start: int) -> int | str | None:
    """Return the legal id that stands behind the key which ends here."""
    rest = head[start : start + _LONGEST_VALUE].lstrip(_BLANK)
    if rest[:1] != b":":
        return None
    rest = rest[1:].lstrip(_BLANK)
    if rest[:1] == b'"':
        begin = blanked.index(b'"', start)
        end = blanked.find(b'"', begin + 1)
        return None if end < 0 else read_id(head[begin : end + 1])
    number = _NUMBER.match(rest)
    return None if number is None else read_id(number[1])


_LONGEST_VALUE: Final = 5000


def read_id(data: bytes | Raw) -> int | str | None:
    """Return the id in this JSON text, or `None` where it is not a legal one."""
    try:
        return _id_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None

"""Any Python value as plain JSON values: what happens to a value without a type.

Used where no annotation says how a value is written: results of tools without a
schema, `Any` inside one that has, published defaults. Knows values only; nothing of
tools. The rules are P-12 (no NaN), P-14 (bytes are base64) and P-34 of the design.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import functools
import itertools
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec
import pydantic_core
from pydantic import BaseModel

from mcp_core import codec
from mcp_core import types as t
from mcp_core.codec import is_array, is_object
from mcp_typed.media import Audio, Image

__all__ = [
    "NonFinite",
    "TooDeep",
    "Unsendable",
    "blocks_in",
    "find_non_finite",
    "is_block",
    "is_opaque",
    "items_of",
    "refuse",
    "struct_to_builtins",
    "text_of",
    "to_builtins",
    "to_json",
    "to_text",
    "unwrapped",
]

_BLOCKS: Final = (t.TextContent, t.ImageContent, t.AudioContent, t.ResourceLink, t.EmbeddedResource)
_SEQUENCES: Final = (list, tuple, set, frozenset, deque)


ITEMS: Final = 1_000_000
"""Items that are taken from an iterator, which may have no end."""

CLASSES: Final = 256
"""Classes whose serializer is kept, of values that no annotation describes."""


class Unsendable(ValueError):
    """A returned value cannot be sent; the text, which the model may read, says why."""


class TooDeep(ValueError):
    """A value that contains itself, or is nested deeper than can be written."""

    def __init__(self) -> None:
        super().__init__("the returned value is nested too deeply, or contains itself")


class NonFinite(Unsendable):
    """A number that JSON does not have; the text says which and where."""

    def __init__(self, value: float, path: str) -> None:
        where = f" at {path}" if path else ""
        super().__init__(f"{value!r}{where} is not a number that JSON can hold")


def is_block(value: object) -> bool:
    """Return whether the value is content of a result in itself."""
    return isinstance(value, (*_BLOCKS, Image, Audio))


def unwrapped(value: object) -> t.ContentBlock:
    """Return a content block; the helpers become theirs.

    Raises:
        OSError: The file of an image or a sound cannot be read.
    """
    if isinstance(value, Image):
        return value.to_image_content()
    if isinstance(value, Audio):
        return value.to_audio_content()
    return cast("t.ContentBlock", value)


def blocks_in(value: object) -> bool:
    """Return whether a list or tuple holds content blocks, at any depth."""
    return isinstance(value, list | tuple) and any(
        is_block(item) or blocks_in(item) for item in cast("list[object]", value)
    )


def items_of(iterator: Iterator[object]) -> list[object]:
    """Return what an iterator gives.

    Raises:
        Unsendable: It gives more than `ITEMS`.
    """
    items = list(itertools.islice(iterator, ITEMS + 1))
    if len(items) > ITEMS:
        raise Unsendable(f"the returned iterator gives more than {ITEMS:,} items")
    return items


def to_builtins(value: object, unknown: Callable[[object], object] = str) -> Any:
    """Return the value in terms of dict, list, str, int, float, bool and None.

    Models and dataclasses by their own serializers, Structs by msgspec, bytes as base64;
    what nothing is known about becomes its `str`, or what `unknown` makes of it.

    Raises:
        ValueError: There is an image or a sound in it: they are content, no JSON.
    """
    kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind in _AS_THEY_ARE:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(cast("bytes", value)).decode("ascii")
    if isinstance(value, enum.Enum):
        return to_builtins(value.value, unknown)
    if isinstance(value, str | int | float):  # of a subclass, which encoders may refuse
        return str.__str__(value) if isinstance(value, str) else int(value) if isinstance(value, int) else float(value)
    if isinstance(value, Mapping):
        return {_key(key): to_builtins(item, unknown) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, Iterator):
        value = items_of(cast("Iterator[Any]", value))
    if isinstance(value, _SEQUENCES):
        return [to_builtins(item, unknown) for item in cast("list[Any]", value)]
    return _object_to_builtins(value, kind, unknown)


def _object_to_builtins(value: Any, kind: type[object], unknown: Callable[[object], object]) -> Any:
    """Return an object that is none of Python's containers, by what knows its class."""
    if kind is msgspec.Raw:
        return codec.decode_any(bytes(value))
    if isinstance(value, os.PathLike):
        return to_builtins(os.fspath(cast("os.PathLike[Any]", value)), unknown)
    if isinstance(value, Image | Audio):
        name = kind.__name__
        raise ValueError(f"a value of {name} is content of a result, and cannot be inside other JSON; return a list")
    if isinstance(value, msgspec.Struct):
        return struct_to_builtins(value)
    if hasattr(kind, "__attrs_attrs__"):
        return {
            field.name: to_builtins(getattr(value, field.name), unknown) for field in cast("Any", kind).__attrs_attrs__
        }
    if isinstance(value, BaseModel) or dataclasses.is_dataclass(value):
        return pydantic_core.from_json(_serializer_of(cast("Any", kind))(value))
    return pydantic_core.to_jsonable_python(value, fallback=unknown)


_AS_THEY_ARE: Final = frozenset({str, int, float, bool, type(None)})


def struct_to_builtins(value: msgspec.Struct) -> Any:
    """Return a Struct as msgspec writes it; members that msgspec does not know as `to_builtins` does."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=to_builtins)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    plain = to_builtins(key)
    return plain if isinstance(plain, str) else str(key) if plain is None else to_json(plain).decode()


@functools.lru_cache(maxsize=CLASSES)
def _serializer_of(kind: type[Any]) -> Callable[[Any], bytes]:
    """Return the value's own serializer, as a typed return of that class would use it."""
    from mcp_typed.schema import Shape, core_schema  # they write values without a type through this module

    return Shape(core_schema(kind)).to_json


def find_non_finite(value: Any, path: str = "") -> NonFinite | None:
    """Return the first number in plain JSON values that JSON does not have."""
    if isinstance(value, float):
        return None if math.isfinite(value) else NonFinite(value, path)
    if is_object(value):
        found = (find_non_finite(item, f"{path}.{key}" if path else key) for key, item in value.items())
    elif is_array(value):
        found = (find_non_finite(item, f"{path}.{index}" if path else str(index)) for index, item in enumerate(value))
    else:
        return None
    return next((fault for fault in found if fault is not None), None)


def refuse(value: Any) -> object:
    """For `to_builtins`: take nothing for its `str`."""
    raise TypeError(f"{value!r} has no JSON")


def is_opaque(value: object) -> bool:
    """Return whether nothing is known about how the value is written, so that its `str` stands for it."""
    try:
        pydantic_core.to_jsonable_python(value)
    except Exception:
        known = (msgspec.Struct, bytes, bytearray, Mapping, Iterable, enum.Enum)
        return not isinstance(value, known) and not hasattr(value, "__attrs_attrs__")
    return False


def to_json(value: object) -> bytes:
    """Return a value without a declared type as JSON.

    Raises:
        NonFinite: There is a number in it that JSON does not have.
        TooDeep: It contains itself, or is nested too deep.
    """
    try:
        plain = to_builtins(value)
        fault = find_non_finite(plain)
    except RecursionError:
        raise TooDeep from None
    if fault is not None:
        raise fault
    return codec.encode(plain)


_string = msgspec.json.Decoder(str)


def text_of(data: bytes) -> str:
    """JSON as a model reads it: strings without quotes, containers indented.

    Raises:
        msgspec.DecodeError: There is a number in it that JSON does not have.
    """
    first = data[:1]
    if first == b'"':
        return _string.decode(data)
    if first in (b"{", b"["):
        return msgspec.json.format(data, indent=2).decode()
    if data in _CONSTANTS:
        raise msgspec.DecodeError("no number of JSON")
    return data.decode()


_CONSTANTS: Final = (b"NaN", b"Infinity", b"-Infinity")


def to_text(value: object) -> str:
    """Return a value without a declared type as text: what is known as its JSON, the rest as its quoted `str`.

    Raises as `to_json`.
    """
    if isinstance(value, str):
        return value
    data = to_json(value)
    return data.decode() if is_opaque(value) else text_of(data)

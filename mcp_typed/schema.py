"""One annotation: its JSON Schema, and the way between its values and JSON bytes.

Where JSON leaves a choice that pydantic makes differently, its core schema is rewritten
here and nowhere else: bytes are base64 (P-14), non-finite numbers do not turn into null
(P-12), and values without a type are written by `plain`. Knows types; nothing of tools.
"""

from __future__ import annotations

import base64
import binascii
import enum
import functools
import itertools
import re
from collections.abc import Callable
from typing import Any, Final, Literal, cast

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import (
    CoreSchema,
    PydanticCustomError,
    PydanticSerializationError,
    SchemaSerializer,
    SchemaValidator,
)
from pydantic_core import core_schema as cs

from mcp_core import codec
from mcp_core.codec import JSONObject, ReadableObject, is_array, is_object
from mcp_typed.foreign import adapted
from mcp_typed.json_schema import drop_impossible_names, fits, rooted
from mcp_typed.plain import TooDeep, Unsendable, find_non_finite, refuse, to_builtins
from mcp_typed.watching import MANY, SINGLE, is_of_author, is_sure, mending, nulls, watched, with_parts

__all__ = ["Shape", "core_schema", "json_schema", "rewritten", "wrapped"]

Mode = Literal["validation", "serialization"]


class Shape:
    """What the values of one core schema look like in JSON. `title` is what errors call it.

    What is sent is what was validated, and fits the published schema, at the cost of one
    validation and one serialization. pydantic alone does not see to that: an instance passes
    validation unread, however it was made and changed since. So it is looked at
    while it is written, by `watched`; only what does not fit is read once more, by `mending`.
    """

    def __init__(self, core: CoreSchema, title: str | None = None) -> None:
        self._core = core
        self._exact = rewritten(core)
        config: Any = {} if title is None else {"title": title}
        self._config: Any = config
        # Classes within keep validators and serializers of their own, made before the rewriting.
        validator = SchemaValidator(self._exact, config, _use_prebuilt=False)
        self.validate: Callable[[object], Any] = validator.validate_python
        self.validate_json: Callable[..., Any] = validator.validate_json
        self._title = validator.title
        self._is_sure = is_sure(self._exact)
        writing = self._exact if self._is_sure else watched(self._exact)
        serializer = SchemaSerializer(writing, cast("Any", {**self._config, **_FINITE}), _use_prebuilt=False)
        self._write = serializer.to_json

    @functools.cached_property
    def _mend(self) -> Callable[[object], object]:
        config: Any = {"title": self._title}
        return SchemaValidator(mending(self._exact), config, _use_prebuilt=False).validate_python

    def to_json(self, value: Any) -> bytes:
        """Return the value as JSON. Numbers that JSON does not have are written as `NaN` or `Infinity`.

        Raises:
            ValidationError: A part of the value is not what it was declared to be.
            Unsendable: What a serializer gives is not what it was declared to give.
            PydanticSerializationError: It cannot be written.
        """
        if self._is_sure:
            try:
                data = self._write(value, by_alias=True, warnings=False)
            except PydanticSerializationError as exc:
                data = self._tried_again(value, exc)
        else:
            outer, nulls.seen = nulls.seen, 0  # a serializer of the author's may write another value meanwhile
            try:
                data = self._write(value, by_alias=True, warnings="error")
                if data.count(b"null") != nulls.seen and not self._fits(data):
                    data = self._mended(value)
            except PydanticSerializationError as exc:
                data = self._tried_again(value, exc)
            finally:
                nulls.seen = outer
        return self._scrubbed(value) if _LOST_KEY in data else data

    def _tried_again(self, value: object, exc: PydanticSerializationError) -> bytes:
        """Return a value that could not be written as it was."""
        text = str(exc)
        if any(name in text for name in _DEPTH):  # to try again at each level would take for ever
            raise TooDeep from None
        return self._scrubbed(value) if "surrogates" in text else self._mended(value)

    def _mended(self, value: object) -> bytes:
        """Return a value that did not fit as it was, read once more."""
        mended = self._mend(value)
        nulls.seen = 0
        try:
            data = self._write(mended, by_alias=True, warnings="error")
        except PydanticSerializationError as exc:
            raise _fault_of_serializer(exc) from exc
        if data.count(b"null") != nulls.seen and not self._fits(data):
            raise Unsendable("the returned value does not fit the output schema: there is null where it is not allowed")
        return data

    def _fits(self, data: bytes) -> bool:
        """Return whether JSON is of the kinds that are published. Slow; for doubts that the count of `null` leaves."""
        try:
            plain = codec.decode_any(data)
        except (codec.ValidationError, codec.DecodeError):  # a number that JSON does not have, of which others tell
            return True
        return fits(self._published, plain, self._published.get("$defs", {}))

    @functools.cached_property
    def _published(self) -> JSONObject:
        return json_schema(self._core, "serialization")

    def _scrubbed(self, value: object) -> bytes:
        """Return a value with text in it that is not valid Unicode (P-13)."""
        try:
            plain = self._plain(self._mend(value))
        except PydanticSerializationError as exc:
            raise _fault_of_serializer(exc) from exc
        fault = find_non_finite(plain)
        if fault is not None:
            raise fault
        return codec.encode(plain)

    @functools.cached_property
    def _plain(self) -> Callable[[object], object]:
        """Like `_write`, to plain values; keys are still as they were, for pydantic writes them with loss."""
        schema = _with_marked_keys(self._exact if self._is_sure else watched(self._exact))
        serializer = SchemaSerializer(schema, cast("Any", {**self._config, **_FINITE}), _use_prebuilt=False)

        def plain(value: object) -> object:
            return _with_keys(serializer.to_python(value, mode="json", by_alias=True, warnings="error"))

        return plain


_DEPTH: Final = ("TooDeep", "RecursionError", "Circular reference detected")
"""What the text of an error has of a value that contains itself, or is nested too deep."""

_LOST_KEY: Final = "\ufffd\ufffd\ufffd".encode()
"""What pydantic writes for a lone surrogate in a key of an object, without a word."""


def _with_marked_keys(schema: ReadableObject) -> Any:
    """Return the schema with keys written in ASCII, from which `_with_keys` makes them again."""
    changed: JSONObject = with_parts(schema, lambda inner, _: _with_marked_keys(inner))
    own = changed.get("serialization")
    if changed["type"] == "dict" and changed.get("keys_schema", {}).get("type", "any") in ("str", "any"):
        keys = dict(changed.get("keys_schema") or cs.any_schema())
        keys["serialization"] = cs.plain_serializer_function_ser_schema(_marked)
        return {**changed, "keys_schema": keys}
    if own is not None and own["type"] in ("function-plain", "function-wrap") and "return_schema" not in own:
        changed["serialization"] = {**own, "function": _marking(own["function"])}
    return changed


def _marking(write: Callable[..., Any]) -> Callable[..., Any]:
    def marked(*given: Any) -> Any:
        return _all_marked(write(*given))

    return marked


def _marked(key: Any) -> object:
    return key.encode("utf-8", "surrogatepass").hex() + _MARK if isinstance(key, str) else key


_MARK: Final = ":mcp-typed-key"


def _all_marked(value: object) -> object:
    if is_object(value):
        return {_marked(key): _all_marked(item) for key, item in value.items()}
    return [_all_marked(item) for item in value] if is_array(value) else value


def _with_keys(value: object) -> object:
    if is_object(value):
        return {_unmarked(key): _with_keys(item) for key, item in value.items()}
    return [_with_keys(item) for item in value] if is_array(value) else value


def _unmarked(key: str) -> str:
    if not key.endswith(_MARK):
        return key
    return bytes.fromhex(key.removesuffix(_MARK)).decode("utf-8", "surrogatepass")


def _fault_of_serializer(exc: PydanticSerializationError) -> Exception:
    """Return what is wrong with a valid value that is not written as declared; other faults stay what they are."""
    text = str(exc)
    if "PydanticSerializationUnexpectedValue" not in text:
        return exc
    names = dict.fromkeys(_FIELD.findall(text))
    where = f" ({', '.join(itertools.islice(names, 10))})" if names else ""
    return Unsendable(f"the returned value is not written as its serializer declares{where}")


_FIELD: Final = re.compile(r"field_name='([^']{1,100})'")

_FINITE: Final = {"ser_json_inf_nan": "constants"}


def core_schema(annotation: object) -> CoreSchema:
    """Return the core schema of what leaves under this annotation.

    Raises:
        PydanticSchemaGenerationError: pydantic has none.
    """
    return TypeAdapter(adapted(annotation, plain_classes=True)).core_schema


# --- rewriting a core schema ----------------------------------------------------------------------


def rewritten(schema: ReadableObject, config: JSONObject | None = None) -> Any:
    """Return the core schema with bytes, untyped values and non-finite numbers as they are here.

    A model's own `ser_json_bytes`, `val_json_bytes` and `ser_json_inf_nan` stand.
    """
    kind = schema.get("type")
    own = schema.get("config")
    config = {**(config or {}), **(own or {})}
    changed: JSONObject = dict(schema)
    if own is not None:
        changed["config"] = {**_FINITE, **own}
    for name in SINGLE:
        inner = changed.get(name)
        if is_object(inner):
            changed[name] = rewritten(inner, config)
        elif is_array(inner):
            changed[name] = [rewritten(item, config) for item in inner]
    for name in MANY:
        inner = changed.get(name)
        if is_object(inner):
            changed[name] = {key: rewritten(item, config) if is_object(item) else item for key, item in inner.items()}
        elif is_array(inner):
            changed[name] = [_choice(item, config) for item in inner]
    if kind == "bytes":
        return _base64(changed, config)
    if kind == "literal":
        return _literal(changed)
    if kind == "enum" and issubclass(changed["cls"], enum.Flag):
        return _flag(changed)
    if kind == "any" and "serialization" not in changed:
        changed["serialization"] = _UNTYPED
    return changed


def _choice(item: Any, config: JSONObject) -> Any:
    if isinstance(item, tuple):
        schema, label = cast("tuple[Any, Any]", item)
        return rewritten(schema, config), label
    return rewritten(item, config) if is_object(item) else item


# A function of one argument: pydantic takes a second for one that wants to know the field.
_UNTYPED: Final = cs.plain_serializer_function_ser_schema(lambda value: to_builtins(value), when_used="json")


def _base64(schema: JSONObject, config: JSONObject) -> Any:
    read = "val_json_bytes" not in config
    write = "ser_json_bytes" not in config and "serialization" not in schema
    ref = schema.pop("ref", None)
    serialization = schema.pop("serialization", None)
    if write:
        serialization = cs.plain_serializer_function_ser_schema(_encoded, when_used="json")
    from_json: Any = cs.no_info_before_validator_function(_decoded, cast("Any", dict(schema))) if read else schema
    return cs.json_or_python_schema(
        json_schema=from_json, python_schema=cast("Any", schema), serialization=serialization, ref=ref
    )


def _literal(schema: JSONObject) -> Any:
    """Let a literal of enum members take their values from JSON, which pydantic refuses."""
    members = [item for item in schema["expected"] if isinstance(item, enum.Enum)]
    if not members:
        return schema

    def member(value: Any) -> Any:
        return next((item for item in members if item.value == value and type(item.value) is type(value)), value)

    from_json = cs.no_info_before_validator_function(member, cast("Any", schema))
    return cs.json_or_python_schema(json_schema=from_json, python_schema=cast("Any", schema))


def _flag(schema: JSONObject) -> Any:
    """Let a flag take its numbers from the keys of a JSON object too, where they are texts."""
    ref = schema.pop("ref", None)
    from_json: Any = cs.no_info_before_validator_function(_number_in, cast("Any", dict(schema)))
    return cs.json_or_python_schema(json_schema=from_json, python_schema=cast("Any", schema), ref=ref)


def _number_in(value: Any) -> Any:
    return int(value) if isinstance(value, str) and _INTEGER.fullmatch(value) else value


_INTEGER: Final = re.compile(r"-?[0-9]{1,20}")


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _decoded(value: Any) -> Any:
    """Return the bytes that a base64 text stands for, in either alphabet, with or without padding."""
    if not isinstance(value, str):
        return value
    text = value.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise PydanticCustomError("base64", "Input should be bytes in base64") from None


def wrapped(core: ReadableObject, title: str) -> Any:
    """Return an object with the title whose member `result` has this core schema."""
    if core["type"] == "definitions":
        return {**core, "schema": wrapped(core["schema"], title)}
    return cs.typed_dict_schema(
        {"result": cs.typed_dict_field(cast("CoreSchema", core))}, config=cast("Any", {"title": title})
    )


# --- JSON Schema -----------------------------------------------------------------------------------


class _Generator(GenerateJsonSchema):
    """pydantic's generator, with bytes as base64 and no defaults that JSON cannot hold."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as pydantic declares it

    def bytes_schema(self, schema: cs.BytesSchema) -> JSONObject:
        """Text that holds bytes."""
        shown = super().bytes_schema(schema)
        if self._config.ser_json_bytes == "utf8":
            shown["contentEncoding"] = "base64"
            if "minLength" in shown:  # with or without padding
                shown["minLength"] = -(-4 * shown["minLength"] // 3)
            if "maxLength" in shown:
                shown["maxLength"] = 4 * -(-shown["maxLength"] // 3)
        return shown

    def enum_schema(self, schema: cs.EnumSchema) -> JSONObject:
        """Return the values of an enum; those of a flag may be combined, so that no list has them all."""
        shown = super().enum_schema(schema)
        if issubclass(schema["cls"], enum.Flag):
            del shown["enum"]
            shown["type"] = "integer"
        return shown

    def float_schema(self, schema: cs.FloatSchema) -> JSONObject:
        """Return a number, or what the author's configuration writes for one that JSON does not have."""
        shown = super().float_schema(schema)
        instead = _INSTEAD.get(self._config.config_dict.get("ser_json_inf_nan", ""))
        if self.mode == "validation" or instead is None or schema.get("allow_inf_nan") is False:
            return shown
        return {"anyOf": [shown, instead]}

    def ser_schema(self, schema: ReadableObject) -> JSONObject | None:
        """Return what a serializer gives: anything, where its author did not declare it."""
        shown = super().ser_schema(cast("Any", schema))
        unknown = shown is None and schema["type"] in ("function-plain", "function-wrap")
        return {} if unknown and is_of_author(schema["function"]) else shown

    def encode_default(self, dft: object) -> object:
        """Return a default as the model reads it."""
        try:
            plain = to_builtins(dft, refuse)
        except Exception as exc:
            raise PydanticSerializationError(f"{dft!r} has no JSON") from exc
        # pydantic would look for what a `$ref` in a default refers to.
        if find_non_finite(plain) is not None or b'"$ref"' in codec.encode(plain):
            raise PydanticSerializationError(f"{dft!r} has no JSON")
        return plain


_INSTEAD: Final[dict[str, JSONObject]] = {
    "strings": {"type": "string", "enum": ["NaN", "Infinity", "-Infinity"]},
    "null": {"type": "null"},
}


def json_schema(core: CoreSchema, mode: Mode) -> JSONObject:
    """Return the JSON Schema of a core schema, by alias; a recursive root stands beside its `$defs`.

    Raises:
        PydanticInvalidForJsonSchema: There is none.
    """
    schema = rooted(_Generator(by_alias=True).generate(core, mode=mode))
    drop_impossible_names(schema, schema.get("$defs", {}))
    return schema

"""One annotation: its JSON Schema, and the way between its values and JSON bytes.

Where JSON leaves a choice that pydantic makes differently, its core schema is rewritten
here and nowhere else: bytes are base64 (P-14), non-finite numbers do not turn into null
(P-12), and what nobody described is written by `plain`. Knows types; nothing of tools.
"""

from __future__ import annotations

import base64
import binascii
import enum
import functools
import itertools
import re
from collections.abc import Callable, Iterator
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
from mcp_core.codec import is_array, is_object
from mcp_typed.foreign import adapted
from mcp_typed.plain import Unsendable, find_non_finite, refuse, to_builtins
from mcp_typed.watching import MANY, SINGLE, is_of_author, is_sure, mending, nulls, watched

__all__ = ["Shape", "admits_string", "core_schema", "fits", "inlined", "json_schema", "rewritten", "wrapped"]

Mode = Literal["validation", "serialization"]


class Shape:
    """What the values of one core schema look like in JSON. `title` is what errors call it.

    What is sent is what was validated, and fits the published schema, at the cost of one
    validation and one serialization. pydantic alone does not see to that: an instance passes
    validation unread, whoever made it and whatever was done to it since. So it is looked at
    while it is written, by `watched`; only what does not fit is read once more, by `mending`.
    """

    def __init__(self, core: CoreSchema, title: str | None = None) -> None:
        self._exact = rewritten(core)
        self._config: Any = {"title": title} if title is not None else {}
        # Classes within keep validators and serializers of their own, made before the rewriting.
        validator = SchemaValidator(self._exact, self._config, _use_prebuilt=False)
        self.validate: Callable[[Any], Any] = validator.validate_python
        self.validate_json: Callable[..., Any] = validator.validate_json
        self._title = validator.title
        self._is_sure = is_sure(self._exact)
        writing = self._exact if self._is_sure else watched(self._exact)
        serializer = SchemaSerializer(writing, cast("Any", {**self._config, **_FINITE}), _use_prebuilt=False)
        self._write = serializer.to_json
        self._plain = serializer.to_python

    @functools.cached_property
    def _mend(self) -> Callable[[Any], Any]:
        config: Any = {"title": self._title}
        return SchemaValidator(mending(self._exact), config, _use_prebuilt=False).validate_python

    def to_json(self, value: Any) -> bytes:
        """The value as JSON. Numbers that JSON does not have are written as `NaN` or `Infinity`.

        Raises:
            ValidationError: A part of the value is not what it was declared to be.
            Unsendable: What a serializer gives is not what it was declared to give.
            PydanticSerializationError: It cannot be written.
        """
        if self._is_sure:
            try:
                return self._write(value, by_alias=True, warnings=False)
            except PydanticSerializationError:
                return self._written(value)
        outer, nulls.seen = nulls.seen, 0  # a serializer of the author's may write another value meanwhile
        try:
            data = self._written(value)
            return data if data.count(b"null") == nulls.seen else self._mended(value)
        finally:
            nulls.seen = outer

    def _written(self, value: Any) -> bytes:
        try:
            return self._write(value, by_alias=True, warnings="error")
        except PydanticSerializationError as exc:
            return self._scrubbed(value) if "surrogates" in str(exc) else self._mended(value)

    def _mended(self, value: Any) -> bytes:
        """A value that did not fit as it was, read once more."""
        mended = self._mend(value)
        try:
            return self._write(mended, by_alias=True, warnings="error")
        except PydanticSerializationError as exc:
            raise _fault_of_serializer(exc) from exc

    def _scrubbed(self, value: Any) -> bytes:
        """A value with text in it that is not valid Unicode (P-13)."""
        try:
            plain = self._plain(self._mend(value), mode="json", by_alias=True, warnings="error")
        except PydanticSerializationError as exc:
            raise _fault_of_serializer(exc) from exc
        fault = find_non_finite(plain)
        if fault is not None:
            raise fault
        return codec.encode(plain)


def _fault_of_serializer(exc: PydanticSerializationError) -> Exception:
    """What is wrong with a valid value that is not written as declared; other faults stay what they are."""
    text = str(exc)
    if "PydanticSerializationUnexpectedValue" not in text:
        return exc
    names = dict.fromkeys(_FIELD.findall(text))
    where = f" ({', '.join(itertools.islice(names, 10))})" if names else ""
    return Unsendable(f"the returned value is not written as its serializer declares{where}")


_FIELD: Final = re.compile(r"field_name='([^']{1,100})'")

_FINITE: Final = {"ser_json_inf_nan": "constants"}


def core_schema(annotation: Any) -> CoreSchema:
    """The core schema of what leaves under this annotation.

    Raises:
        PydanticSchemaGenerationError: pydantic has none.
    """
    return TypeAdapter(adapted(annotation, plain_classes=True)).core_schema


# --- rewriting a core schema ----------------------------------------------------------------------


def rewritten(schema: Any, config: dict[str, Any] | None = None) -> Any:
    """The core schema with bytes, untyped values and non-finite numbers as they are here.

    A model's own `ser_json_bytes`, `val_json_bytes` and `ser_json_inf_nan` stand.
    """
    kind = schema.get("type")
    own = schema.get("config")
    config = {**(config or {}), **(own or {})}
    changed: dict[str, Any] = dict(schema)
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
    if kind == "any" and "serialization" not in changed:
        changed["serialization"] = _UNTYPED
    return changed


def _choice(item: Any, config: dict[str, Any]) -> Any:
    if isinstance(item, tuple):
        schema, label = cast("tuple[Any, Any]", item)
        return rewritten(schema, config), label
    return rewritten(item, config) if is_object(item) else item


# A function of one argument: pydantic takes a second for one that wants to know the field.
_UNTYPED: Final = cs.plain_serializer_function_ser_schema(lambda value: to_builtins(value), when_used="json")


def _base64(schema: dict[str, Any], config: dict[str, Any]) -> Any:
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


def _literal(schema: dict[str, Any]) -> Any:
    """A literal of enum members takes their values from JSON, which pydantic refuses."""
    members = [item for item in schema["expected"] if isinstance(item, enum.Enum)]
    if not members:
        return schema

    def member(value: Any) -> Any:
        return next((item for item in members if item.value == value and type(item.value) is type(value)), value)

    from_json = cs.no_info_before_validator_function(member, cast("Any", schema))
    return cs.json_or_python_schema(json_schema=from_json, python_schema=cast("Any", schema))


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _decoded(value: Any) -> Any:
    """The bytes that a base64 text stands for, in either alphabet, with or without padding."""
    if not isinstance(value, str):
        return value
    text = value.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise PydanticCustomError("base64", "Input should be bytes in base64") from None


def wrapped(core: Any, title: str) -> Any:
    """An object with the title whose member `result` has this core schema."""
    if core["type"] == "definitions":
        return {**core, "schema": wrapped(core["schema"], title)}
    return cs.typed_dict_schema({"result": cs.typed_dict_field(core)}, config=cast("Any", {"title": title}))


# --- JSON Schema -----------------------------------------------------------------------------------


class _Generator(GenerateJsonSchema):
    """pydantic's generator, with bytes as base64 and no defaults that JSON cannot hold."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as pydantic declares it

    def bytes_schema(self, schema: cs.BytesSchema) -> dict[str, Any]:
        """Text that holds bytes."""
        shown = super().bytes_schema(schema)
        if self._config.ser_json_bytes == "utf8":
            shown["contentEncoding"] = "base64"
        return shown

    def encode_default(self, dft: Any) -> Any:
        """A default as the model reads it."""
        try:
            plain = to_builtins(dft, refuse)
        except Exception as exc:
            raise PydanticSerializationError(f"{dft!r} has no JSON") from exc
        # pydantic would look for what a `$ref` in a default refers to.
        if find_non_finite(plain) is not None or b'"$ref"' in codec.encode(plain):
            raise PydanticSerializationError(f"{dft!r} has no JSON")
        return plain


def json_schema(core: CoreSchema, mode: Mode) -> dict[str, Any]:
    """The JSON Schema of a core schema, by alias; a recursive root stands beside its `$defs`.

    Raises:
        PydanticInvalidForJsonSchema: There is none.
    """
    schema = _rooted(_Generator(by_alias=True).generate(core, mode=mode))
    _drop_impossible_names(schema, schema.get("$defs", {}))
    return schema


_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "dependentSchemas"})
"""Members of a schema that hold schemas by names, which may be any."""

_DATA: Final = frozenset({"default", "const", "enum", "examples", "discriminator"})
"""Members that hold values, whatever these look like."""


def _subschemas(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schemas directly in a schema."""
    for key, value in node.items():
        if key in _DATA:
            continue
        if is_object(value):
            yield from (item for item in value.values() if is_object(item)) if key in _NAMED else (value,)
        elif is_array(value):
            yield from (item for item in value if is_object(item))


def _drop_impossible_names(node: dict[str, Any], definitions: dict[str, Any]) -> None:
    """Keys of objects are strings in JSON, whatever they are in Python: no rule may say otherwise."""
    names = node.get("propertyNames")
    if names is not None and not admits_string(names, definitions):
        del node["propertyNames"]
    for inner in _subschemas(node):
        _drop_impossible_names(inner, definitions)


def _rooted(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that is only a reference, with what it refers to in its place."""
    reference = schema.get("$ref")
    if reference is None:
        return schema
    definitions: dict[str, Any] = schema["$defs"]
    root = definitions[reference.removeprefix("#/$defs/")]
    merged = {**root, **{key: value for key, value in schema.items() if key not in ("$ref", "$defs")}}
    if reference not in {used for item in definitions.values() for used in _references(item)}:
        definitions = {name: item for name, item in definitions.items() if item is not root}
    return {**merged, "$defs": definitions} if definitions else merged


def _references(node: dict[str, Any]) -> Iterator[str]:
    if isinstance(node.get("$ref"), str):
        yield node["$ref"]
    for inner in _subschemas(node):
        yield from _references(inner)


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with each `$ref` replaced by what it refers to (P-21).

    Definitions that contain themselves stay, with the references to them.
    """
    definitions: dict[str, Any] = schema.get("$defs", {})
    kept = {name for name in definitions if _reaches(definitions, name, name)}
    shown = _inline({key: value for key, value in schema.items() if key != "$defs"}, definitions, kept)
    if kept:
        shown["$defs"] = {name: _inline(definitions[name], definitions, kept) for name in definitions if name in kept}
    return cast("dict[str, Any]", shown)


_PREFIX: Final = "#/$defs/"


def _inline(node: Any, definitions: dict[str, Any], kept: set[str]) -> Any:
    if is_array(node):
        return [_inline(item, definitions, kept) for item in node]
    if not is_object(node):
        return node
    members = {
        key: value
        if key in _DATA
        else {name: _inline(item, definitions, kept) for name, item in value.items()}
        if key in _NAMED and is_object(value)
        else _inline(value, definitions, kept)
        for key, value in node.items()
    }
    discriminator = members.get("discriminator")
    if is_object(discriminator):  # what it maps to are references too; the name alone says enough
        members["discriminator"] = {key: value for key, value in discriminator.items() if key != "mapping"}
    reference = members.pop("$ref", None)
    if not isinstance(reference, str):
        return members
    name = reference.removeprefix(_PREFIX)
    if name in kept or name not in definitions:
        return {"$ref": reference, **members}
    return {**_inline(definitions[name], definitions, kept), **members}


def _reaches(definitions: dict[str, Any], start: str, goal: str) -> bool:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for reference in _references(definitions[waiting.pop()]):
            name = reference.removeprefix(_PREFIX)
            if name == goal:
                return True
            if name in definitions and name not in seen:
                seen.add(name)
                waiting.append(name)
    return False


def admits_string(node: Any, definitions: dict[str, Any]) -> bool:
    """Whether a schema lets some string through."""
    if not is_object(node):
        return node is not False
    if "$ref" in node and not admits_string(definitions.get(node["$ref"].removeprefix(_PREFIX), {}), definitions):
        return False
    for arms in ("anyOf", "oneOf"):
        if arms in node and not any(admits_string(arm, definitions) for arm in node[arms]):
            return False
    values = [node["const"]] if "const" in node else node.get("enum")
    if values is not None:
        return any(isinstance(value, str) for value in values)
    kinds = node.get("type", "string")
    return kinds == "string" or (is_array(kinds) and "string" in kinds)


_KINDS: Final[dict[type[Any], tuple[str, ...]]] = {
    str: ("string",),
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    type(None): ("null",),
    list: ("array",),
    dict: ("object",),
}


def fits(node: Any, value: Any, definitions: dict[str, Any]) -> bool:
    """Whether a plain JSON value is of the kinds that a schema lets through, at every depth.

    No full validation: bounds, patterns and counts are left to pydantic.
    """
    if not is_object(node):
        return node is not False
    if "$ref" in node and not fits(definitions.get(node["$ref"].removeprefix(_PREFIX), {}), value, definitions):
        return False
    for arms in ("anyOf", "oneOf"):
        if arms in node and not any(fits(arm, value, definitions) for arm in node[arms]):
            return False
    if value not in node.get("enum", [value]) or value != node.get("const", value):
        return False
    kinds = node.get("type", _KINDS[type(value)])
    if set(_KINDS[type(value)]).isdisjoint([kinds] if isinstance(kinds, str) else kinds):
        return False
    if is_array(value):
        return all(fits(node.get("items", {}), item, definitions) for item in value)
    if is_object(value):
        known: dict[str, Any] = node.get("properties", {})
        rest = node.get("additionalProperties", True)
        return all(fits(known.get(key, rest), item, definitions) for key, item in value.items())
    return True

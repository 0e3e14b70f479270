"""Values looked at while they are written: what leaves fits what is published.

Three rewritings of a core schema, of which pydantic makes the parts that do the work:

- `watched`, for the serializer. pydantic's own serializers say when a value is not of their
  type, but take `None` for anything, an object without its required members, any value for
  a `Literal`, and know nothing of bounds. Where a value may not have been validated (in the
  members of an instance, behind a validator of the author's), these are looked at as well.
- `nulls`, for `None`: a look at every member would cost too much. The places that allow
  `None` count how often they write it; any other `null` shows in the number.
- `mending`, for a value that did not fit: a validator that reads the members of instances,
  as pydantic reads those of a dict, and calls no validator of the author's a second time.
"""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable, Sequence
from operator import attrgetter, itemgetter
from typing import Any, Final, cast

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationUnexpectedValue, SchemaValidator, ValidationError
from pydantic_core import core_schema as cs

from mcp_core.codec import JSONObject, ReadableObject, is_array, is_object
from mcp_typed.plain import to_builtins

__all__ = ["MANY", "SINGLE", "is_of_author", "is_sure", "mending", "nulls", "watched", "with_parts"]

SINGLE: Final = (
    "schema",
    "items_schema",
    "keys_schema",
    "values_schema",
    "extras_schema",
    "extras_keys_schema",
    "lax_schema",
    "strict_schema",
    "json_schema",
    "python_schema",
    "arguments_schema",
    "return_schema",
    "serialization",
)
"""Members of a core schema that are core schemas; `items_schema` may be a list of them."""

MANY: Final = ("fields", "choices", "steps", "definitions", "computed_fields", "arguments")
"""Members that hold several, in a list or a dict. A choice may carry a label."""


def with_parts(schema: ReadableObject, change: Callable[[ReadableObject, str], object]) -> JSONObject:
    """Return a copy of a core schema with its parts changed; `change` is given the member that a part stands in."""
    changed: JSONObject = dict(schema)

    def each(item: object, name: str) -> object:
        if isinstance(item, tuple):  # a choice and its label
            part, label = cast("tuple[Any, Any]", item)
            changed_part: object = change(part, name)
            return cast("Any", changed_part) if isinstance(changed_part, tuple) else (changed_part, label)
        return change(item, name) if is_object(item) else item

    for name in (*SINGLE, *MANY):
        inner = changed.get(name)
        if is_array(inner):
            changed[name] = [each(item, name) for item in inner]
        elif is_object(inner):
            many = name in MANY
            changed[name] = {key: each(item, name) for key, item in inner.items()} if many else change(inner, name)
    return changed


def is_of_author(function: object) -> bool:
    """Return whether a validator or serializer was written neither by pydantic nor here."""
    return not _module_of(function).startswith(("pydantic", "mcp_typed.")) and repr(function) != _OF_PATTERNS


def _module_of(function: object) -> str:
    function = getattr(function, "func", function)
    return str(getattr(function, "__module__", None) or type(function).__module__)


_OF_PATTERNS: Final = "operator.attrgetter('pattern')"
"""By what pydantic writes a `re.Pattern`."""


# --- written -----------------------------------------------------------------------------------------

_INSTANCES: Final = frozenset({"model", "dataclass"})
_GIVING: Final = frozenset({"function-after", "function-wrap", "function-plain"})
"""Validators whose own results are the value."""

_FIELDS: Final = frozenset({"model-field", "dataclass-field"})
_BOUNDS: Final = frozenset({"gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern"})
_COUNTED: Final = frozenset({"list", "set", "frozenset", "tuple", "dict"})


class Nulls(threading.local):
    """How many `None` were written where they are allowed."""

    seen = 0


nulls: Final = Nulls()


def is_sure(schema: ReadableObject) -> bool:
    """Return whether all values of a core schema are just what was validated, and are written by pydantic alone."""
    sure = not _is_source(schema)

    def look(inner: ReadableObject, name: str) -> ReadableObject:
        nonlocal sure
        sure = sure and not (_gives_anything(inner) if name == "serialization" else not is_sure(inner))
        return inner

    with_parts(schema, look)
    return sure


def _is_source(schema: ReadableObject) -> bool:
    """Return whether values that were not validated come from here."""
    kind = schema["type"]
    return kind in _INSTANCES or (kind in _GIVING and is_of_author(schema["function"]["function"]))


def watched(schema: ReadableObject, unsure: bool = False) -> Any:
    """Return the core schema for a serializer that refuses what does not fit what is published.

    `unsure` says that its values may not have been validated.
    """
    kind = schema["type"]
    below = unsure or _is_source(schema)

    def part(inner: ReadableObject, name: str) -> ReadableObject:
        if name == "keys_schema":
            return inner  # texts in JSON, whatever they are here
        if name == "serialization":
            watching = with_parts(inner, lambda each, _: watched(each, below or _gives_anything(inner)))
            counts = is_of_author(inner.get("function")) or _may_be_none(schema)
            return _counted_serialization(watching) if counts else watching
        seen: JSONObject = watched(inner, below or name in ("definitions", "computed_fields"))
        return seen

    if kind in _FIELDS and _is_nullable(schema):
        return {**schema, "schema": _uncounted(schema["schema"])}
    changed = with_parts(schema, part)
    return _looked_at(changed) if unsure or kind in _INSTANCES else changed


def _gives_anything(serialization: Any) -> bool:
    """Return whether what a serializer gives was not validated; pydantic's own are given what was."""
    function = serialization.get("function")
    return function is not None and not _module_of(function).startswith("pydantic")


def _counted_serialization(serialization: Any) -> Any:
    """Return a serializer whose result, where nothing is known of it, has its `None` counted."""
    function = serialization.get("function")
    if not _gives_anything(serialization) or (serialization["type"] == "function-wrap" and not is_of_author(function)):
        return serialization
    is_known, by_author = "return_schema" in serialization, is_of_author(function)

    def look(*arguments: Any) -> Any:
        before = nulls.seen
        given = function(*arguments)
        if is_known:  # what it has of the value is written, and counted, by what is declared
            nulls.seen = before
            return given
        given = to_builtins(given) if by_author else given
        nulls.seen = before + _count_none(given)
        return given

    return {**serialization, "function": look}


def _may_be_none(schema: ReadableObject) -> bool:
    """Return whether `None` may be somewhere in the values of a core schema."""
    found = schema["type"] in ("nullable", "none", "any", "literal", "definition-ref")

    def look(inner: Any, name: str) -> Any:
        nonlocal found
        found = found or (name != "serialization" and _may_be_none(inner))
        return inner

    with_parts(schema, look)
    return found


def _count_none(value: Any) -> int:
    if value is None:
        return 1
    if is_array(value):
        return sum(map(_count_none, value))
    return sum(map(_count_none, value.values())) if is_object(value) else 0


def _looked_at(schema: ReadableObject) -> Any:
    """Return the schema of a value that may not have been validated, with a look at what pydantic leaves out."""
    own = schema.get("serialization")
    if own is not None:
        via_list = getattr(own.get("function"), "__name__", "") == "serialize_sequence_via_list"
        return {**schema, "serialization": {**own, "function": _sequence(own["function"])}} if via_list else schema
    kind = schema["type"]
    bounds = {name: value for name, value in schema.items() if name in _BOUNDS}
    if kind in ("nullable", "none"):
        return _with_look(schema, _counted)
    if kind in _INSTANCES and not schema.get("root_model"):
        look = _look_at_instance(schema)
        return schema if look is None else _with_look(schema, look)
    if kind == "typed-dict":
        return _with_look(schema, _complete(_required(schema)))
    if kind == "literal":
        return _with_look(schema, _one_of(schema["expected"]))
    if kind in _COUNTED and bounds:
        return _with_look(schema, _of_length(bounds.get("min_length", 0), bounds.get("max_length")))
    if kind in ("int", "float", "str") and bounds:
        return _with_look(schema, _within({"type": kind, **bounds}))
    return schema


def _with_look(schema: ReadableObject, look: Callable[[object], object]) -> Any:
    """Return a schema whose values are given to a function before they are written."""
    rest = {name: value for name, value in schema.items() if name != "ref"}
    return {**schema, "serialization": cs.plain_serializer_function_ser_schema(look, return_schema=cast("Any", rest))}


def _refused(value: Any) -> PydanticSerializationUnexpectedValue:
    return PydanticSerializationUnexpectedValue(f"a value of type {type(value).__name__} does not fit")


def _counted(value: object) -> object:
    if value is None:
        nulls.seen += 1
    return value


def _look_at_instance(schema: ReadableObject) -> Callable[[object], object] | None:
    """Return a look for members that a model lacks, which `model_construct` allows, and for those that are `None`.

    The members of a dataclass are read one by one: it need not be asked whether they exist.
    """
    cls: Any = schema["cls"]
    fields = _fields_of(schema)
    names, count = frozenset(fields), len(fields)
    nullable = [name for name, field in fields.items() if _is_nullable(field)]
    if schema["type"] == "dataclass":
        return _counting(attrgetter(*nullable), len(nullable)) if nullable else None
    # What is cached in an instance stands among its members.
    mro: tuple[type[object], ...] = cls.__mro__
    defined: list[object] = [item for base in mro for item in vars(base).values()]
    caches = any(isinstance(item, functools.cached_property) for item in defined)

    def is_whole(value: object) -> bool:
        return isinstance(value, cls) and names <= value.__dict__.keys()

    # One call for each instance is what this costs, so what they have in common is written three times.
    # The first two questions are the cheap ones, and nearly always enough.

    def look(value: object) -> object:
        if (type(value) is not cls or len(value.__dict__) != count or caches) and not is_whole(value):
            raise _refused(value)
        return value

    def look_at_one(value: object) -> object:
        members = value.__dict__
        if (type(value) is not cls or len(members) != count or caches) and not is_whole(value):
            raise _refused(value)
        if members[nullable[0]] is None:
            nulls.seen += 1
        return value

    def look_at_several(value: object) -> object:
        members = value.__dict__
        if (type(value) is not cls or len(members) != count or caches) and not is_whole(value):
            raise _refused(value)
        found = read(members)
        if None in found:
            nulls.seen += found.count(None)
        return value

    if not nullable:
        return look
    read = itemgetter(*nullable)
    return look_at_one if len(nullable) == 1 else look_at_several


def _counting(read: Callable[[Any], Any], count: int) -> Callable[[object], object]:
    """Return a look that counts which of these members are `None`, cheaper than one at each member."""

    def look(value: object) -> object:
        members = read(value)
        if count == 1:
            nulls.seen += members is None
        elif None in members:
            nulls.seen += members.count(None)
        return value

    return look


def _is_nullable(field: Any) -> bool:
    """Return whether a member may be `None` and is written as it is."""
    schema = _without_default(field["schema"])
    excluded = field.get("serialization_exclude") or "serialization_exclude_if" in field
    return schema["type"] == "nullable" and not excluded and not {"serialization", "ref"} & schema.keys()


def _uncounted(schema: ReadableObject) -> Any:
    """Return a schema of what may be `None`, which its instance counts."""
    inner = schema["schema"]
    return {**schema, "schema": watched(inner, True) if schema["type"] == "nullable" else _uncounted(inner)}


def _required(schema: ReadableObject) -> frozenset[str]:
    total = schema.get("total", True)
    return frozenset(name for name, field in schema["fields"].items() if field.get("required", total))


def _complete(required: frozenset[str]) -> Callable[[object], object]:
    def look(value: object) -> object:
        if isinstance(value, dict) and not required <= value.keys():
            raise _refused(cast("Any", value))
        return cast("Any", value)

    return look


def _one_of(expected: list[object]) -> Callable[[object], object]:
    allowed: set[object] = {(cast("Any", type(item)), item) for item in expected}

    def look(value: object) -> object:
        try:
            fits = (type(value), value) in allowed
        except TypeError:
            fits = False
        if not fits:
            raise _refused(value)
        if value is None:
            nulls.seen += 1
        return value

    return look


def _of_length(least: int, most: int | None) -> Callable[[object], object]:
    def look(value: Any) -> object:
        if not hasattr(value, "__len__") or len(value) < least or (most is not None and len(value) > most):
            raise _refused(value)
        return value

    return look


def _within(bounds: Any) -> Callable[[object], object]:
    fits = SchemaValidator(bounds).isinstance_python

    def look(value: object) -> object:
        if not fits(value):
            raise _refused(value)
        return value

    return look


def _sequence(write: Callable[..., object]) -> Callable[..., object]:
    def look(value: object, handler: object, info: object) -> object:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise _refused(cast("Any", value))
        return write(cast("Any", value), handler, info)

    return look


# --- read once more -----------------------------------------------------------------------------------


def mending(schema: ReadableObject) -> Any:
    """Return the core schema for a validator that reads the members of instances, without the author's validators.

    A value that fits comes back as it is; of an instance that does not, a copy.
    """
    kind = schema["type"]
    changed = with_parts(schema, _mending_part)
    if kind in _INSTANCES:
        return _members_read(changed)
    if not kind.startswith("function-") or not is_of_author(schema["function"]["function"]):
        return changed
    if kind == "function-plain":
        return cs.any_schema(ref=schema.get("ref"))
    inner = changed["schema"]
    if kind == "function-before":
        return {"type": "nullable", "schema": inner, "ref": schema["ref"]} if "ref" in schema else inner
    # What the validator made of its input may be of another type; then the serializer says whether it fits.
    return cs.no_info_wrap_validator_function(_if_possible, inner, ref=schema.get("ref"))


def _mending_part(schema: ReadableObject, name: str) -> Any:
    if name == "serialization":
        return schema
    label: Any = schema.get("cls") if name == "choices" and schema["type"] in _INSTANCES else None
    return mending(schema) if label is None else (mending(schema), label.__name__)


def _if_possible(value: object, read: Callable[[object], object]) -> object:
    try:
        return read(value)
    except ValidationError:
        if value is None:  # which serializers take for anything
            raise
        return value


def _members_read(schema: ReadableObject) -> object:
    cls: object = schema["cls"]
    if schema.get("root_model"):
        inner = schema["schema"]
        read = _reader(cls, lambda value: value.root, lambda value, root: _with_members(value, {"root": root}))
    else:
        fields = {
            name: cs.typed_dict_field(_without_default(field["schema"])) for name, field in _fields_of(schema).items()
        }
        names = list(fields)
        inner = cs.typed_dict_schema(fields)
        read = _reader(cls, lambda value: _members(value, names), _with_members)
    return cs.no_info_wrap_validator_function(read, inner, ref=schema.get("ref"))


def _reader(
    cls: Any, take: Callable[[Any], Any], put: Callable[[Any, Any], object]
) -> Callable[[object, Callable[[object], object]], object]:
    def read(value: object, validate: Callable[[object], object]) -> object:
        if not isinstance(value, cls):
            value = _validator_of(cls).validate_python(value)
        return put(value, validate(take(value)))

    return read


def _validator_of(cls: Any) -> Any:
    """Return the class's own validator, for what stands where an instance of it should."""
    return getattr(cls, "__pydantic_validator__", None) or TypeAdapter(cls).validator


def _fields_of(schema: ReadableObject) -> JSONObject:
    """Return the members of an instance that are written, by the names of its attributes."""
    inner = schema["schema"]
    while "fields" not in inner:
        inner = inner["schema"]
    given: Any = inner["fields"]
    named = [(field["name"], field) for field in given] if is_array(given) else given.items()
    left_out = ("init_only", "serialization_exclude", "serialization_exclude_if")
    return {name: field for name, field in named if not any(field.get(reason) for reason in left_out)}


def _without_default(schema: ReadableObject) -> Any:
    return _without_default(schema["schema"]) if schema["type"] == "default" and "ref" not in schema else schema


def _members(value: Any, names: list[str]) -> JSONObject:
    missing = object()
    read = {name: getattr(value, name, missing) for name in names}
    return {name: member for name, member in read.items() if member is not missing}


def _with_members(value: Any, members: JSONObject) -> Any:
    """Return the instance, or a copy of it where a member has become another."""
    missing = object()
    changed = {name: member for name, member in members.items() if getattr(value, name, missing) is not member}
    if not changed:
        return value
    copied = copy.copy(value)
    for name, member in changed.items():
        object.__setattr__(copied, name, member)  # past what its class says: it may be frozen
    return copied

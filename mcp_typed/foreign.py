"""Classes that pydantic does not know, made known to it: Structs, attrs classes, plain ones.

Walks an annotation and replaces each such class by one with a mirror: a TypedDict of
the same members, which pydantic validates and describes, and the way from its values
to instances and back (P-08, P-10, P-34). Nothing of the author's is patched.
"""

from __future__ import annotations

import collections
import dataclasses
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Union, cast

import msgspec
import typing_extensions
from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema
from pydantic_core import core_schema as cs

from mcp_core.codec import JSONObject
from mcp_typed.annotations import Meaning, alias_value, arms, is_alias, meaning, new_alias
from mcp_typed.plain import refuse, struct_to_builtins, to_builtins, to_json

__all__ = ["Adapter", "adapted", "members_of"]

_MISSING: Final[Any] = object()


class _Member(msgspec.Struct, frozen=True):
    """One member: its name in Python and on the wire, and the keyword its class takes it by."""

    name: str
    wire: str
    keyword: str | None
    annotation: Any
    default: Any
    required: bool


def _empty_typed_dict(name: str) -> Any:
    make: Any = typing_extensions.TypedDict
    return make(name, {}, total=False)


def _fill_typed_dict(shown: Any, cls: type[object], annotations: JSONObject, required: set[str]) -> None:
    """Give an empty TypedDict its members; it goes by the name of the class that it stands for."""
    shown.__annotations__ = annotations
    shown.__required_keys__ = frozenset(required)
    shown.__optional_keys__ = frozenset(annotations) - required
    shown.__doc__, shown.__module__, shown.__qualname__ = _own_doc(cls), cls.__module__, cls.__qualname__


class _Mirror:
    """Makes pydantic treat a class as a TypedDict of its members."""

    def __init__(self, cls: type[Any], *, builds: bool) -> None:
        self._cls = cls
        self._builds = builds
        self._members: tuple[_Member, ...] = ()
        self._constants: JSONObject = {}
        self.shown = _empty_typed_dict(cls.__name__)

    def fill(self, members: tuple[_Member, ...], constants: JSONObject, *, closed: bool) -> None:
        """Say what the members are; apart from the constructor, for classes that contain themselves."""
        self._members, self._constants = members, constants
        annotations: JSONObject = {
            **{name: Literal[value] for name, value in constants.items()},
            **{member.wire: _with_default(member) for member in members},
        }
        required = {member.wire for member in members if member.required} | set(constants)
        _fill_typed_dict(self.shown, self._cls, annotations, required)
        if closed:
            self.shown.__pydantic_config__ = {"extra": "forbid"}

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        inner = handler.generate_schema(self.shown)
        if self._builds:
            inner = cs.no_info_after_validator_function(self._build, inner)
        if _is_written_by_msgspec(self._cls):
            serialization: Any = cs.plain_serializer_function_ser_schema(struct_to_builtins)
        else:
            serialization = cs.wrap_serializer_function_ser_schema(
                lambda value, write: write(self._read(value)), schema=handler.generate_schema(self.shown)
            )
        return cs.no_info_before_validator_function(self._read, inner, serialization=serialization)

    def _read(self, value: Any) -> Any:
        """Return the members of an instance; anything else as it is, for pydantic to judge."""
        if isinstance(value, Mapping) or not self._is_mine(value):
            return cast("Any", value)
        read = {m.wire: getattr(value, m.name) for m in self._members if hasattr(value, m.name)}
        return {**self._constants, **{wire: member for wire, member in read.items() if member is not msgspec.UNSET}}

    def _is_mine(self, value: Any) -> bool:
        if getattr(self._cls, "_is_protocol", False):
            return not isinstance(value, str | int | float | None)  # what it lacks, validation tells
        return isinstance(value, self._cls)

    def _build(self, values: JSONObject) -> object:
        given = {m.keyword: values[m.wire] for m in self._members if m.keyword is not None and m.wire in values}
        return _made_by(self._cls, given)


def _is_written_by_msgspec(cls: type[object]) -> bool:
    # What a `__post_init__` left in its members has to be looked at when it is written.
    return issubclass(cls, msgspec.Struct) and not hasattr(cls, "__post_init__")


def _with_default(member: _Member) -> object:
    if member.default is _MISSING:
        return member.annotation
    try:
        default = to_builtins(member.default, refuse)
    except Exception:  # a default that cannot be shown is not
        return member.annotation
    return Annotated[member.annotation, Field(json_schema_extra={"default": default})]


def _own_doc(cls: type[object]) -> str | None:
    doc = cls.__dict__.get("__doc__")
    # dataclasses write one where there is none
    return None if doc is None or doc.startswith(f"{cls.__name__}(") else doc


# --- the annotation tree ----------------------------------------------------------------------


def adapted(annotation: object, *, plain_classes: bool = False) -> Any:
    """Return the annotation with every class that pydantic does not know replaced; as `Adapter`."""
    return Adapter(plain_classes=plain_classes).adapt(annotation)


class Adapter:
    """Replaces the classes that pydantic does not know, in annotations that belong together.

    A class has one stand-in for all of them, so that their schemas share its definition; the
    next adapter makes its own, so that nothing depends on what came before and nothing stays.

    `plain_classes` takes classes whose body has annotations for what they declare: right
    for values that leave, impossible for those that come in. Generators of Structs and
    other unusual forms stay as they are.
    """

    def __init__(self, *, plain_classes: bool = False) -> None:
        self._plain_classes = plain_classes
        # What a class became, by the class with its type arguments. It stands here before its
        # members are looked at, in case it contains itself.
        self._made: dict[object, object] = {}
        self._kept: set[object] = set()

    def adapt(self, annotation: object, arguments: dict[object, object] | None = None) -> object:
        """Return the annotation with all such classes replaced, itself where there is none.

        `arguments` are the type arguments of the generic class that is being looked into.
        """
        given = arguments or {}
        if annotation in (None, Any) or isinstance(annotation, str | typing.ForwardRef):
            return annotation
        if isinstance(annotation, typing.TypeVar):
            return given.get(annotation, annotation)
        seen: set[object] = set()
        if not self._must_change(annotation, given, seen):
            self._kept |= seen  # nothing that can be reached from there has to be replaced
            return annotation
        if is_alias(annotation) and _contains_itself(annotation):
            return self._adapt_recursive_alias(annotation, given)
        meant = meaning(annotation)
        said = [item for item in meant.said if not isinstance(item, msgspec.Meta)]
        said += [field for item in meant.said if isinstance(item, msgspec.Meta) for field in _meta_fields(item)]
        changed = self._adapt_bare(meant, given)
        return Annotated[(changed, *said)] if said else changed

    def _adapt_bare(self, meant: Meaning, given: dict[object, object]) -> object:
        cls = meant.cls
        if isinstance(meant.bare, typing.TypeVar):
            return given.get(meant.bare, meant.bare)
        if cls is None and meant.origin is not Union:
            return meant.bare
        arguments = tuple(self._adapt_argument(argument, given) for argument in meant.arguments)
        if cls is not None and self._must_replace(cls, set()):
            parameters: tuple[object, ...] = getattr(cls, "__parameters__", ())
            return self._replaced(cls, {**_inherited(cls), **dict(zip(parameters, arguments, strict=False))})
        if all(new is old for new, old in zip(arguments, meant.arguments, strict=True)):
            return meant.bare
        return cast("Any", meant.origin)[arguments]

    def _adapt_argument(self, argument: Any, given: dict[object, object]) -> object:
        """One type argument; those of a callable stand in a list."""
        is_type = argument is not ... and not isinstance(argument, list)
        return self.adapt(cast("object", argument), given) if is_type else cast("Any", argument)

    def _adapt_recursive_alias(self, annotation: Any, given: dict[object, object]) -> Any:
        if annotation not in self._made:

            def value(alias: Any) -> Any:
                self._made[annotation] = alias
                return self.adapt(alias_value(annotation), given)

            self._made[annotation] = new_alias(annotation.__name__, value)
        return self._made[annotation]

    # --- what must change -----------------------------------------------------------------------

    def _must_change(self, annotation: object, given: dict[object, object], seen: set[object]) -> bool:
        """Return whether there is something in it, at any depth, that has to be replaced.

        Asked before anything is replaced: what is found in a class that contains itself must
        not depend on where the search began. `seen` are the classes and aliases that were
        looked into on the way, in vain so far.
        """
        if isinstance(annotation, typing.TypeVar):
            return annotation in given
        if isinstance(annotation, str | list | typing.ForwardRef):
            return False
        if is_alias(annotation):
            if annotation in seen or annotation in self._kept:
                return False
            seen.add(annotation)
        meant = meaning(annotation)
        if any(isinstance(item, msgspec.Meta) for item in meant.said):
            return True
        if meant.origin is Literal:
            return False
        cls = meant.cls
        return (cls is not None and self._must_replace(cls, seen)) or any(
            self._must_change(argument, given, seen) for argument in meant.arguments
        )

    def _must_replace(self, cls: type[object], seen: set[object]) -> bool:
        if cls is msgspec.Raw or _is_foreign(cls) or _is_refused(cls) or (self._plain_classes and _is_plain(cls)):
            return True
        if cls in seen or cls in self._kept or not _has_members(cls):
            return False
        seen.add(cls)
        try:
            hints = _hints(cls)
        except NameError:
            return False
        return any(self._must_change(_without_qualifiers(hint)[0], {}, seen) for hint in hints.values())

    # --- classes ---------------------------------------------------------------------------------

    def _replaced(self, cls: object, arguments: dict[object, object]) -> object:
        """Return the stand-in of a class with these type arguments."""
        if cls is msgspec.Raw:
            return Annotated[Any, _RawMirror()]
        key = (cls, tuple(arguments.items()))
        if key in self._made:
            return self._made[key]

        def adapt(annotation: object) -> object:
            return self.adapt(annotation, arguments)

        try:
            if typing_extensions.is_typeddict(cls):
                return self._replaced_typed_dict(key, adapt)
            if _is_named_tuple(cls):
                return self._replaced_named_tuple(key, adapt)
            return self._mirrored(key, adapt)
        except BaseException:
            self._made.pop(key, None)
            raise

    def _mirrored(self, key: Any, adapt: Callable[[object], object]) -> object:
        cls = key[0]
        read_members = _members_function(cls)
        if _is_array(cls):
            array = _ArrayMirror(cls)
            self._made[key] = Annotated[cls, array]
            array.fill(read_members(cls, adapt), _constants(cls))
            return self._made[key]
        mirror = _Mirror(cls, builds=read_members is not _members_of_plain)
        self._made[key] = Annotated[cls, mirror]
        mirror.fill(read_members(cls, adapt), _constants(cls), closed=_is_closed(cls))
        return self._made[key]

    def _replaced_typed_dict(self, key: Any, adapt: Callable[[object], object]) -> Any:
        """Return a `typing.TypedDict`, which pydantic refuses before Python 3.12, or one with foreign members."""
        cls = key[0]
        shown = self._made[key] = _empty_typed_dict(cls.__name__)
        bare = {name: _without_qualifiers(hint) for name, hint in _hints(cls).items()}
        required = {
            name for name, (_, said) in bare.items() if (name in cls.__required_keys__ if said is None else said)
        }
        _fill_typed_dict(shown, cls, {name: adapt(hint) for name, (hint, _) in bare.items()}, required)
        config = getattr(cls, "__pydantic_config__", None)
        if config is not None:
            shown.__pydantic_config__ = config
        return shown

    def _replaced_named_tuple(self, key: Any, adapt: Callable[[object], object]) -> Any:
        """Return a NamedTuple with foreign members, by way of one with theirs replaced."""
        cls = key[0]
        defaults = [cls._field_defaults[name] for name in cls._fields if name in cls._field_defaults]
        shown: Any = collections.namedtuple(cls.__name__, cls._fields, defaults=defaults)  # type: ignore[misc]
        shown.__module__, shown.__qualname__, shown.__doc__ = cls.__module__, cls.__qualname__, cls.__doc__
        self._made[key] = Annotated[cls, _TupleMirror(cls, shown)]
        hints = _hints(cls)
        shown.__annotations__ = {name: adapt(hints.get(name, Any)) for name in cls._fields}
        return self._made[key]


def _contains_itself(alias: Any) -> bool:
    waiting, seen = [alias_value(alias)], [alias]
    while waiting:
        part = waiting.pop()
        if part == alias:
            return True
        if part in seen or isinstance(part, list) or len(seen) > 1000:
            continue
        seen.append(part)
        meant = meaning(part) if not is_alias(part) else meaning(alias_value(part))
        waiting += [] if meant.origin is Literal else [*meant.arguments]
    return False


def _inherited(cls: Any) -> dict[object, object]:
    """Return the type arguments that a class gives to its generic bases."""
    given: dict[object, object] = {}
    for base in cls.__mro__:
        for written in base.__dict__.get("__orig_bases__", ()):
            meant = meaning(written)
            parameters: tuple[object, ...] = getattr(meant.cls, "__parameters__", ())
            for parameter, argument in zip(parameters, meant.arguments, strict=False):
                if argument is not parameter:
                    given[parameter] = given.get(argument, argument)
    return given


class _TupleMirror:
    """Makes pydantic read and write a NamedTuple as another with the same members."""

    def __init__(self, cls: Any, shown: Any) -> None:
        self._cls = cls
        self._shown = shown

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        shown = self._shown
        write = cs.wrap_serializer_function_ser_schema(
            lambda value, write: write(shown(*value)), schema=handler.generate_schema(shown)
        )
        return cs.no_info_after_validator_function(
            lambda value: self._cls(*value), handler.generate_schema(shown), serialization=write
        )


class _ArrayMirror:
    """Makes pydantic treat a Struct that msgspec writes as an array as a tuple of its members."""

    def __init__(self, cls: type[Any]) -> None:
        self._cls = cls
        self._members: tuple[_Member, ...] = ()
        self._constants = 0
        self._shown: Any = None

    def fill(self, members: tuple[_Member, ...], constants: JSONObject) -> None:
        """Say what the members are; a tag comes first. Apart, for classes that contain themselves."""
        self._members, self._constants = members, len(constants)
        names = [f"member_{index}" for index in range(len(constants) + len(members))]
        # A default counts only behind all members without one, as in msgspec.
        optional = len(members) - 1 - max((i for i, member in enumerate(members) if member.required), default=-1)
        cls = self._cls
        shown: Any = collections.namedtuple(cls.__name__, names, defaults=[msgspec.UNSET] * optional)  # type: ignore[misc]
        shown.__module__, shown.__qualname__, shown.__doc__ = cls.__module__, cls.__qualname__, _own_doc(cls)
        types_of = [*(Literal[value] for value in constants.values()), *map(_with_default, members)]
        shown.__annotations__ = dict(zip(names, types_of, strict=True))
        self._shown = shown

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        inner = cs.no_info_after_validator_function(self._build, handler.generate_schema(self._shown))
        write: Any = cs.plain_serializer_function_ser_schema(struct_to_builtins)
        return cs.no_info_before_validator_function(self._read, inner, serialization=write)

    def _read(self, value: Any) -> Any:
        if not isinstance(value, self._cls):
            return value
        config: Any = cast("Any", self._cls).__struct_config__
        return [*([config.tag] * self._constants), *(getattr(value, member.name) for member in self._members)]

    def _build(self, values: tuple[Any, ...]) -> Any:
        given = zip(self._members, values[self._constants :], strict=True)
        return _made_by(self._cls, {member.name: value for member, value in given if value is not msgspec.UNSET})


class _RawMirror:
    """Makes pydantic treat a `msgspec.Raw` as any value of JSON, which it holds."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        write: Any = cs.plain_serializer_function_ser_schema(to_builtins)
        return cs.no_info_after_validator_function(_raw, cs.any_schema(), serialization=write)


def _raw(value: Any) -> msgspec.Raw:
    return value if isinstance(value, msgspec.Raw) else msgspec.Raw(to_json(value))


def _made_by(cls: type[Any], given: JSONObject) -> Any:
    """Return the instance; what its class says against the values is a fault of the values."""
    try:
        return cls(**given)
    except (TypeError, ValueError) as exc:
        raise ValueError(str(exc)) from exc


def _without_qualifiers(hint: Any) -> tuple[Any, bool | None]:
    """Return a member's type, and whether `Required` or `NotRequired` says that it is required."""
    said: bool | None = None
    while True:
        meant = meaning(hint)
        if meant.origin is typing_extensions.Required:
            said = True
        elif meant.origin is typing_extensions.NotRequired:
            said = False
        elif meant.origin is not typing_extensions.ReadOnly:
            return hint, said
        hint = meant.about(meant.arguments[0])


def _meta_fields(meta: msgspec.Meta) -> list[Any]:
    """Return what a `msgspec.Meta` says, said to pydantic."""
    names = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length", "title", "description")
    said = {name: value for name in names if (value := getattr(meta, name)) is not None}
    if meta.examples is not None:
        said["examples"] = meta.examples
    if meta.extra_json_schema is not None:
        said["json_schema_extra"] = meta.extra_json_schema
    return [Field(**said)] if said else []


# --- what is foreign, and what its members are ---------------------------------------------------


def _is_foreign(cls: type[Any]) -> bool:
    if hasattr(cls, "__get_pydantic_core_schema__"):
        return False
    return issubclass(cls, msgspec.Struct) or hasattr(cls, "__attrs_attrs__")


def _is_array(cls: type[Any]) -> bool:
    """Return whether msgspec writes it as an array."""
    return issubclass(cls, msgspec.Struct) and bool(cls.__struct_config__.array_like)


def _is_refused(cls: type[object]) -> bool:
    """Return whether pydantic knows its kind, but refuses this one."""
    refuses = sys.version_info < (3, 12)
    return refuses and typing_extensions.is_typeddict(cls) and type(cls).__module__ == "typing"


def _is_named_tuple(cls: object) -> bool:
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cast("Any", cls), "_fields")


def _has_members(cls: object) -> bool:
    """Return whether pydantic knows its kind and takes its members as they are annotated: they may be foreign."""
    if typing_extensions.is_typeddict(cls) or _is_named_tuple(cls):
        return True
    return hasattr(cls, "__dataclass_fields__") and not hasattr(cls, "__pydantic_core_schema__")


def _is_plain(cls: type[object]) -> bool:
    """Return whether only its annotations say what the class is."""
    known = ("__get_pydantic_core_schema__", "__get_validators__", "__dataclass_fields__")
    if any(hasattr(cls, name) for name in known) or typing_extensions.is_typeddict(cls):
        return False
    if issubclass(cls, tuple | list | dict | set | frozenset | str | int | float | bytes | BaseException | type):
        return False
    bases = [base for base in cls.__mro__ if base.__module__ not in ("builtins", "typing", "abc", "enum")]
    if cls.__module__.partition(".")[0] in sys.stdlib_module_names - {"__main__"}:
        return False
    return any(inspect.get_annotations(base) for base in bases) and type(cls).__module__ != "enum"


_Members = Callable[[type[Any], Callable[[Any], Any]], tuple[_Member, ...]]


def _members_function(cls: type[object]) -> _Members:
    if issubclass(cls, msgspec.Struct):
        return _members_of_struct
    if hasattr(cls, "__attrs_attrs__"):
        return _members_of_attrs
    if dataclasses.is_dataclass(cls):
        return _members_of_dataclass
    return _members_of_plain


def members_of(cls: type[object]) -> tuple[object, ...]:
    """Return the types of the members of a class that is written member by member; none for any other."""
    if not (_has_members(cls) or _is_foreign(cls) or hasattr(cls, "__dataclass_fields__") or _is_plain(cls)):
        return ()
    try:
        return tuple(_without_qualifiers(hint)[0] for hint in _hints(cls).values())
    except NameError:
        return ()


def _hints(cls: type[object]) -> JSONObject:
    return typing_extensions.get_type_hints(cls, include_extras=True)


def _members_of_struct(cls: type[Any], adapt: Callable[[object], object]) -> tuple[_Member, ...]:
    hints = _hints(cls)
    return tuple(
        _Member(
            name=field.name,
            wire=field.encode_name,
            keyword=field.name,
            annotation=adapt(_without_unset(hints[field.name])),
            default=_MISSING if field.default in (msgspec.NODEFAULT, msgspec.UNSET) else field.default,
            required=field.required,
        )
        for field in msgspec.structs.fields(cls)
    )


def _without_unset(annotation: object) -> object:
    kept = tuple(arm for arm in arms(annotation) if arm is not msgspec.UnsetType)
    unset = len(kept) < len(arms(annotation))
    return meaning(annotation).about(Union[kept]) if unset else annotation  # noqa: UP007 - built at run time


def _members_of_attrs(cls: type[Any], adapt: Callable[[object], object]) -> tuple[_Member, ...]:
    hints = _hints(cls)
    fields: Any = cls.__attrs_attrs__
    return tuple(
        _Member(
            name=field.name,
            wire=field.name,
            keyword=field.alias if field.init else None,
            annotation=adapt(hints.get(field.name, Any)),
            default=_MISSING
            if _is_attrs_nothing(field.default) or hasattr(field.default, "factory")
            else field.default,
            required=field.init and _is_attrs_nothing(field.default),
        )
        for field in fields
    )


def _is_attrs_nothing(default: object) -> bool:
    return repr(default) == "NOTHING" and type(default).__module__.partition(".")[0] == "attr"


def _members_of_dataclass(cls: type[Any], adapt: Callable[[object], object]) -> tuple[_Member, ...]:
    hints = _hints(cls)
    missing = dataclasses.MISSING
    return tuple(
        _Member(
            name=field.name,
            wire=field.name,
            keyword=field.name if field.init else None,
            annotation=adapt(hints[field.name]),
            default=_MISSING if field.default is missing else field.default,
            required=field.init and field.default is missing and field.default_factory is missing,
        )
        for field in dataclasses.fields(cls)
    )


def _members_of_plain(cls: type[object], adapt: Callable[[object], object]) -> tuple[_Member, ...]:
    hints = {
        name: hint
        for name, hint in _hints(cls).items()
        if not name.startswith("_") and hint is not ClassVar and meaning(hint).origin is not ClassVar
    }
    return tuple(
        _Member(
            name=name,
            wire=name,
            keyword=None,
            annotation=adapt(hint),
            default=getattr(cls, name, _MISSING),
            required=not hasattr(cls, name),
        )
        for name, hint in hints.items()
    )


def _constants(cls: type[object]) -> JSONObject:
    if not issubclass(cls, msgspec.Struct):
        return {}
    config = cls.__struct_config__
    return {} if config.tag_field is None else {config.tag_field: config.tag}


def _is_closed(cls: type[object]) -> bool:
    return issubclass(cls, msgspec.Struct) and cls.__struct_config__.forbid_unknown_fields

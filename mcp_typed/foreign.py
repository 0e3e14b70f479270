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
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Union, cast, get_args, get_origin

import msgspec
import typing_extensions
from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema
from pydantic_core import core_schema as cs

from mcp_typed.plain import refuse, struct_to_builtins, to_builtins

__all__ = ["adapted"]

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


def _fill_typed_dict(shown: Any, cls: type[Any], annotations: dict[str, Any], required: set[str]) -> None:
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
        self._constants: dict[str, Any] = {}
        self.shown = _empty_typed_dict(cls.__name__)

    def fill(self, members: tuple[_Member, ...], constants: dict[str, Any], *, closed: bool) -> None:
        """Say what the members are; apart from the constructor, for classes that contain themselves."""
        self._members, self._constants = members, constants
        annotations: dict[str, Any] = {
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
        """The members of an instance; anything else as it is, for pydantic to judge."""
        if isinstance(value, Mapping) or not self._is_mine(value):
            return cast("Any", value)
        read = {m.wire: getattr(value, m.name) for m in self._members if hasattr(value, m.name)}
        return {**self._constants, **{wire: member for wire, member in read.items() if member is not msgspec.UNSET}}

    def _is_mine(self, value: Any) -> bool:
        if getattr(self._cls, "_is_protocol", False):
            return not isinstance(value, str | int | float | None)  # what it lacks, validation tells
        return isinstance(value, self._cls)

    def _build(self, values: dict[str, Any]) -> Any:
        given = {m.keyword: values[m.wire] for m in self._members if m.keyword is not None and m.wire in values}
        try:
            return self._cls(**given)
        except (TypeError, ValueError) as exc:
            raise ValueError(str(exc)) from exc


def _is_written_by_msgspec(cls: type[Any]) -> bool:
    # One that msgspec writes as an array would not fit its schema; it is an object here.
    return issubclass(cls, msgspec.Struct) and not cls.__struct_config__.array_like


def _with_default(member: _Member) -> Any:
    if member.default is _MISSING:
        return member.annotation
    try:
        default = to_builtins(member.default, refuse)
    except Exception:  # a default that cannot be shown is not
        return member.annotation
    return Annotated[member.annotation, Field(json_schema_extra={"default": default})]


def _own_doc(cls: type[Any]) -> str | None:
    doc = cls.__dict__.get("__doc__")
    # dataclasses write one where there is none
    return None if doc is None or doc.startswith(f"{cls.__name__}(") else doc


# --- the annotation tree ----------------------------------------------------------------------

_mirrors: dict[tuple[Any, bool], _Mirror] = {}
_rebuilt: dict[Any, Any] = {}


def adapted(annotation: Any, *, plain_classes: bool = False) -> Any:
    """The annotation with every class that pydantic does not know replaced.

    `plain_classes` takes classes whose body has annotations for what they declare: right
    for values that leave, impossible for those that come in. Generators of Structs and
    other unusual forms stay as they are.
    """
    return _Adapter(plain_classes).adapt(annotation)


class _Adapter:
    """One walk: `arguments` are the type arguments of the generic class being looked into."""

    def __init__(self, plain_classes: bool, arguments: dict[Any, Any] | None = None) -> None:
        self._plain_classes = plain_classes
        self._arguments = arguments or {}

    def adapt(self, annotation: Any) -> Any:
        if annotation in (None, Any) or isinstance(annotation, str | typing.ForwardRef):
            return annotation
        if isinstance(annotation, typing.TypeVar):
            return self._arguments.get(annotation, annotation)
        if isinstance(annotation, typing.NewType):
            inner = annotation.__supertype__
            changed = self.adapt(inner)
            return annotation if changed is inner else changed
        origin = get_origin(annotation)
        if origin is None:
            return self._adapt_class(annotation) if isinstance(annotation, type) else annotation
        return self._adapt_generic(annotation, origin)

    def _adapt_generic(self, annotation: Any, origin: Any) -> Any:
        arguments = get_args(annotation)
        if origin is Annotated:
            return self._adapt_annotated(annotation, arguments)
        if origin is Literal:
            return annotation
        if isinstance(origin, type) and _is_foreign(origin):
            parameters: tuple[Any, ...] = getattr(origin, "__parameters__", ())
            return self._mirrored(annotation, origin, dict(zip(parameters, map(self.adapt, arguments), strict=False)))
        changed = tuple(self.adapt(argument) if argument is not ... else ... for argument in arguments)
        if all(new is old for new, old in zip(changed, arguments, strict=True)):
            return annotation
        if origin in (Union, types.UnionType):
            return cast("Any", Union)[changed]
        if origin is typing.ClassVar or not isinstance(origin, type):
            return annotation
        return cast("Any", origin)[changed]

    def _adapt_annotated(self, annotation: Any, arguments: tuple[Any, ...]) -> Any:
        inner, *metadata = arguments
        changed = self.adapt(inner)
        fields = [field for item in metadata if isinstance(item, msgspec.Meta) for field in _meta_fields(item)]
        if changed is inner and not fields:
            return annotation
        return Annotated[(changed, *(item for item in metadata if not isinstance(item, msgspec.Meta)), *fields)]

    def _adapt_class(self, cls: Any) -> Any:
        if _is_foreign(cls):
            return self._mirrored(cls, cls, {})
        if typing_extensions.is_typeddict(cls):
            return self._adapt_typed_dict(cls)
        if hasattr(cls, "__dataclass_fields__"):
            return cls if hasattr(cls, "__pydantic_core_schema__") else self._adapt_dataclass(cls)
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):  # pyright: ignore[reportUnknownArgumentType]
            return self._adapt_named_tuple(cls)
        if self._plain_classes and _is_plain(cast("Any", cls)):
            return self._mirrored(cls, cast("Any", cls), {})
        return cast("Any", cls)

    def _mirrored(self, annotation: Any, cls: type[Any], arguments: dict[Any, Any]) -> Any:
        key = (annotation, self._plain_classes)
        mirror = _mirrors.get(key)
        if mirror is None:
            members_of = _members_function(cls)
            mirror = _mirrors[key] = _Mirror(cls, builds=members_of is not _members_of_plain)
            inside = _Adapter(self._plain_classes, arguments)
            try:
                mirror.fill(members_of(cls, inside.adapt), _constants(cls), closed=_is_closed(cls))
            except BaseException:
                del _mirrors[key]
                raise
        return Annotated[cls, mirror]

    def _adapt_typed_dict(self, cls: type[Any]) -> Any:
        """A `typing.TypedDict`, which pydantic refuses before Python 3.12, or one with foreign members."""
        refused = sys.version_info < (3, 12) and type(cls).__module__ == "typing"
        if cls in _rebuilt:
            return _rebuilt[cls]
        hints = typing_extensions.get_type_hints(cls, include_extras=True)
        shown = _empty_typed_dict(cls.__name__)
        _rebuilt[cls] = shown
        bare = {name: _without_qualifiers(hint) for name, hint in hints.items()}
        changed = {name: self.adapt(hint) for name, (hint, _) in bare.items()}
        if not refused and all(changed[name] is hint for name, (hint, _) in bare.items()):
            _rebuilt[cls] = cls
            return cls
        required = {
            name for name, (_, said) in bare.items() if (name in cls.__required_keys__ if said is None else said)
        }
        _fill_typed_dict(shown, cls, changed, required)
        config = getattr(cls, "__pydantic_config__", None)
        if config is not None:
            shown.__pydantic_config__ = config
        return shown

    def _adapt_dataclass(self, cls: type[Any]) -> Any:
        """A dataclass: pydantic knows it, but not the foreign classes in it."""
        if (cls, self._plain_classes) in _mirrors:
            return Annotated[cls, _mirrors[cls, self._plain_classes]]
        if cls in _rebuilt:
            return cls
        _rebuilt[cls] = cls  # stands while its members are looked at, in case it contains itself
        try:
            hints = typing.get_type_hints(cls, include_extras=True)
        except NameError:
            return cls
        names = [field.name for field in dataclasses.fields(cls)]
        if all(self.adapt(hints[name]) is hints[name] for name in names):
            return cls
        del _rebuilt[cls]
        return self._mirrored(cls, cls, {})

    def _adapt_named_tuple(self, cls: Any) -> Any:
        """A NamedTuple with foreign members, by way of one with theirs replaced."""
        if cls in _rebuilt:
            return _rebuilt[cls]
        _rebuilt[cls] = cls
        try:
            hints = _hints(cls)
        except NameError:
            return cls
        changed = {name: self.adapt(hints.get(name, Any)) for name in cls._fields}
        if all(changed[name] is hints.get(name, Any) for name in cls._fields):
            return cls
        defaults = [cls._field_defaults[name] for name in cls._fields if name in cls._field_defaults]
        shown: Any = collections.namedtuple(cls.__name__, cls._fields, defaults=defaults)  # type: ignore[misc]
        shown.__annotations__ = changed
        shown.__module__, shown.__qualname__, shown.__doc__ = cls.__module__, cls.__qualname__, cls.__doc__
        _rebuilt[cls] = Annotated[cls, _TupleMirror(cls, shown)]
        return _rebuilt[cls]


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


def _without_qualifiers(hint: Any) -> tuple[Any, bool | None]:
    """A member's type, and whether `Required` or `NotRequired` says that it is required."""
    said: bool | None = None
    while True:
        origin = get_origin(hint)
        if origin is typing_extensions.Required:
            said = True
        elif origin is typing_extensions.NotRequired:
            said = False
        elif origin is not typing_extensions.ReadOnly:
            return hint, said
        (hint,) = get_args(hint)


def _meta_fields(meta: msgspec.Meta) -> list[Any]:
    """What a `msgspec.Meta` says, said to pydantic."""
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


def _is_plain(cls: type[Any]) -> bool:
    """Whether only its annotations say what the class is."""
    if hasattr(cls, "__get_pydantic_core_schema__") or hasattr(cls, "__get_validators__"):
        return False
    if issubclass(cls, tuple | list | dict | set | frozenset | str | int | float | bytes | BaseException | type):
        return False
    bases = [base for base in cls.__mro__ if base.__module__ not in ("builtins", "typing", "abc", "enum")]
    if cls.__module__.partition(".")[0] in sys.stdlib_module_names - {"__main__"}:
        return False
    return any(inspect.get_annotations(base) for base in bases) and type(cls).__module__ != "enum"


_Members = Callable[[type[Any], Callable[[Any], Any]], tuple[_Member, ...]]


def _members_function(cls: type[Any]) -> _Members:
    if issubclass(cls, msgspec.Struct):
        return _members_of_struct
    if hasattr(cls, "__attrs_attrs__"):
        return _members_of_attrs
    if dataclasses.is_dataclass(cls):
        return _members_of_dataclass
    return _members_of_plain


def _hints(cls: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(cls, include_extras=True)


def _members_of_struct(cls: type[Any], adapt: Callable[[Any], Any]) -> tuple[_Member, ...]:
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


def _without_unset(annotation: Any) -> Any:
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation
    return Union[tuple(arm for arm in get_args(annotation) if arm is not msgspec.UnsetType)]  # noqa: UP007


def _members_of_attrs(cls: type[Any], adapt: Callable[[Any], Any]) -> tuple[_Member, ...]:
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


def _is_attrs_nothing(default: Any) -> bool:
    return repr(default) == "NOTHING" and type(default).__module__.partition(".")[0] == "attr"


def _members_of_dataclass(cls: type[Any], adapt: Callable[[Any], Any]) -> tuple[_Member, ...]:
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


def _members_of_plain(cls: type[Any], adapt: Callable[[Any], Any]) -> tuple[_Member, ...]:
    hints = {
        name: hint
        for name, hint in _hints(cls).items()
        if not name.startswith("_") and hint is not ClassVar and get_origin(hint) is not ClassVar
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


def _constants(cls: type[Any]) -> dict[str, Any]:
    if not issubclass(cls, msgspec.Struct):
        return {}
    config = cls.__struct_config__
    return {} if config.tag_field is None else {config.tag_field: config.tag}


def _is_closed(cls: type[Any]) -> bool:
    return issubclass(cls, msgspec.Struct) and cls.__struct_config__.forbid_unknown_fields

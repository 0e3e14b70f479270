"""Arguments: their schema, and the way from the bytes of a call to the call's arguments.

One pydantic model per function, its fields under names of its own, so that a parameter
may be called anything (P-37); its core schema is made that of a dict, which validates
straight to keywords. Strings that hold JSON: P-15. Unknown arguments: P-16.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable
from types import NoneType
from typing import Annotated, Any, Final, Literal, Optional, cast

from msgspec import Raw
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import InitErrorDetails, PydanticCustomError, SchemaValidator

from mcp_core import codec
from mcp_core.codec import JSONObject, is_array, is_object
from mcp_core.errors import InvalidParams, ParseError
from mcp_core.parameter_headers import InvalidHeaderAnnotation, parameter_headers
from mcp_typed.annotations import arms, meaning
from mcp_typed.errors import InvalidSignature
from mcp_typed.foreign import Adapter
from mcp_typed.header_arguments import HeaderArguments
from mcp_typed.json_schema import admits_string, fits, inlined
from mcp_typed.plain import find_non_finite, refuse, to_builtins
from mcp_typed.schema import json_schema, rewritten
from mcp_typed.signature import MISSING, HandlerPlan, Parameter

__all__ = ["Arguments"]

Unknown = Literal["ignore", "reject"]


class Arguments:
    """The arguments of one function. `described` are descriptions by parameter name."""

    def __init__(
        self, plan: HandlerPlan, described: dict[str, str], *, unknown: Unknown = "ignore", inline_refs: bool = False
    ) -> None:
        title = f"{plan.title}Arguments"
        fields: JSONObject = {}
        names: dict[str, str] = {}
        adapt = Adapter().adapt  # one for all of them: a class that two of them name is defined once
        for index, parameter in enumerate(plan.parameters):
            field = f"p{index}"
            fields[field] = _field(parameter, described.get(parameter.name), adapt)
            names[field] = parameter.name
        try:
            model: type[BaseModel] = create_model(
                title, __config__=ConfigDict(title=title, extra="forbid" if unknown == "reject" else None), **fields
            )
            core = model.__pydantic_core_schema__
            schema = json_schema(core, "validation")
        except Exception as exc:
            raise InvalidSignature(_reason(plan, fields, exc)) from exc
        keywords = _as_keywords(rewritten(core), names)
        self.validate: Callable[[bytes], Any] = _validator(_failing_fast(keywords), title)
        """The arguments of a call by parameter name; what it refuses deserves a second look.

        It looks no further than the first fault of a list: the peer chooses how many there are.
        """
        self._keywords = keywords
        self._validate_all: Callable[[bytes], object] | None = None
        schema.setdefault("properties", {})
        _check_names(plan, schema)
        self.names: list[str] = list(schema["properties"])
        self._title = title
        definitions: JSONObject = schema.get("$defs", {})
        self._no_strings = {
            name for name, shown in schema["properties"].items() if not admits_string(shown, definitions)
        }
        self._publish_defaults(plan, schema)
        self.schema: JSONObject = inlined(schema) if inline_refs else schema
        self.header_arguments: HeaderArguments | None = self._header_arguments(plan, keywords)
        """What compares the arguments that proxies read with what the tool gets; `None` where none is marked."""

    def validate_lenient(self, arguments: bytes, first: ValidationError) -> Any:
        """Return the arguments after all, where only their writing was unusual.

        Raises:
            ValidationError: They do not fit.
            ParseError: They are no text in UTF-8.
            InvalidParams: They are nested too deep.
        """
        if _is_unreadable(first):
            try:
                return self.validate(_mended(arguments))
            except ValidationError as exc:
                if _is_unreadable(exc):
                    raise InvalidParams("the arguments are nested too deeply") from None
                raise self._explained(arguments, exc) from None
        try:
            mended = self._with_parsed_strings(arguments)
        except (codec.ValidationError, codec.DecodeError):
            mended = None
        if mended is not None:
            try:
                return self.validate(mended)
            except ValidationError:
                pass
        raise self._explained(arguments, first) from None

    def _with_parsed_strings(self, arguments: bytes) -> bytes | None:
        """Return arguments with what stands in strings that cannot be meant as such; `None` if there are none (P-15).

        Nothing else is decoded: it may be large.
        """
        given = _members(arguments)
        parsed: JSONObject = {}
        for name in self._no_strings & given.keys():
            if bytes(memoryview(given[name])[:1]) == b'"':
                text = codec.decode_any(given[name])
                value = _parsed(text)
                if value is not text:
                    parsed[name] = value
        return codec.encode({**given, **parsed}) if parsed else None

    def _header_arguments(self, plan: HandlerPlan, keywords: Any) -> HeaderArguments | None:
        try:
            annotated = list(parameter_headers(self.schema))
        except InvalidHeaderAnnotation as exc:
            raise InvalidSignature(f"Tool {plan.name!r} has an invalid x-mcp-header annotation: {exc}") from exc
        if not annotated:
            return None
        parameters = dict(zip(self.names, (parameter.name for parameter in plan.parameters), strict=True))

        def alone(name: str) -> Callable[[bytes], JSONObject]:
            return _validator(_only(keywords, parameters[name]), self._title)

        return HeaderArguments(annotated, self.schema, parameters, alone, roams=_roams(keywords))

    def _explained(self, arguments: bytes, first: ValidationError) -> ValidationError:
        """Return the error, with what a misspelt argument was probably meant to be.

        An error with more faults than anybody reads is left as it is: taking it apart and
        putting it together again would be the peer's work done twice.
        """
        error = self._complete(arguments, first)
        if error.error_count() > _EXPLAINED:
            return error
        found = error.errors(include_url=False)
        if not any(fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1 for fault in found):
            return error
        lines: list[InitErrorDetails] = []
        for fault in found:
            kind: Any = fault["type"]
            if kind == "extra_forbidden" and len(fault["loc"]) == 1:
                kind = PydanticCustomError("extra_forbidden", "{text}", {"text": self._unknown(str(fault["loc"][0]))})
            elif "ctx" not in fault or kind in ("value_error", "assertion_error"):
                kind = PydanticCustomError(kind, "{text}", {"text": fault["msg"]})
            lines.append({"type": kind, "loc": fault["loc"], "input": fault["input"], "ctx": fault.get("ctx", {})})
        return ValidationError.from_exception_data(self._title, lines)

    def _complete(self, arguments: bytes, first: ValidationError) -> ValidationError:
        """Return the error with all faults that a small call has, and some of those of a large one.

        pydantic reads out all faults of an error or none: a million take seconds.
        """
        if len(arguments) > _SMALL:
            if first.error_count() <= _MANY:
                return first
            try:
                arguments = codec.encode(_trimmed(codec.decode_any(arguments)))
            except (ValueError, RecursionError):
                return first
        if self._validate_all is None:
            self._validate_all = _validator(self._keywords, self._title)
        try:
            self._validate_all(arguments)
        except ValidationError as exc:
            return exc if not _is_unreadable(exc) else first
        return first

    def _unknown(self, name: str) -> str:
        # Comparing takes the product of the lengths: implausibly long names are not compared.
        close = difflib.get_close_matches(name, self.names[:_KNOWN], n=1) if len(name) <= _NAME else []
        meant = f"; did you mean {close[0]!r}?" if close else ""
        known = ", ".join(map(repr, self.names[:_KNOWN])) or "none"
        more = ", ..." if len(self.names) > _KNOWN else ""
        shown = name if len(name) <= _NAME else f"{name[:_NAME]}..."
        return f"There is no argument {shown!r}{meant} (known: {known}{more})"

    def _publish_defaults(self, plan: HandlerPlan, schema: JSONObject) -> None:
        """Publish each default that the parameter itself would take from JSON, and no other (P-17)."""
        for parameter, (name, shown) in zip(plan.parameters, schema["properties"].items(), strict=True):
            default = shown.pop("default", parameter.default)
            if default is MISSING or isinstance(default, FieldInfo):
                continue
            if self._takes(name, default) and fits(shown, to_builtins(default), schema.get("$defs", {})):
                shown["default"] = to_builtins(default)

    def _takes(self, name: str, default: Any) -> bool:
        try:
            plain = to_builtins(default, refuse)
        except Exception:
            return False
        if find_non_finite(plain) is not None:
            return False
        try:
            self.validate(codec.encode({name: plain}))
        except ValidationError as exc:
            faults = exc.errors(include_url=False, include_input=False)
            return not any(fault["loc"][:1] == (name,) for fault in faults)
        return True


_members: codec.Decoder[dict[str, Raw]] = codec.decoder(dict[str, Raw])

_EXPLAINED: Final = 10
"""Faults up to which unknown names are explained."""

_NAME: Final = 100
"""Characters of an unknown argument's name that are looked at, and shown."""

_KNOWN: Final = 50
"""Known arguments that an unknown one is compared with, and that are listed."""


_SMALL: Final = 98_304
"""Bytes of arguments up to which all their faults are found."""

_MANY: Final = 1000
"""Faults that are read out of pydantic's error; of more, those of a part of the arguments are."""

_TRIMMED: Final = 20
"""Items of each container that are left in that part."""


def _trimmed(value: Any) -> Any:
    """Return the first items of each container in a plain JSON value."""
    if is_array(value):
        return [_trimmed(item) for item in value[:_TRIMMED]]
    if is_object(value):
        return {name: _trimmed(value[name]) for name in itertools.islice(value, _TRIMMED)}
    return value


_LISTS: Final = ("list", "set", "frozenset", "tuple")
_NO_SCHEMAS: Final = ("metadata", "default", "expected", "serialization")


def _failing_fast(core: Any) -> Any:
    """Return a core schema whose lists are given up at their first fault."""
    if isinstance(core, tuple):  # a choice of a union, with its label
        return tuple(map(_failing_fast, cast("tuple[Any, ...]", core)))
    if is_array(core):
        return [_failing_fast(item) for item in core]
    if not is_object(core):
        return core
    copy = {key: value if key in _NO_SCHEMAS else _failing_fast(value) for key, value in core.items()}
    if copy.get("type") in _LISTS:
        copy["fail_fast"] = True
    return copy


def _validator(keywords: Any, title: str) -> Callable[[bytes], Any]:
    return SchemaValidator(keywords, {"title": title}, _use_prebuilt=False).validate_json


def _only(keywords: Any, parameter: str) -> Any:
    """Return the core schema of keywords with one of them alone."""
    if keywords["type"] == "definitions":
        return {**keywords, "schema": _only(keywords["schema"], parameter)}
    return {**keywords, "fields": {parameter: keywords["fields"][parameter]}, "extra_behavior": "ignore"}


def _roams(core: Any) -> bool:
    """Return whether an alias somewhere in a core schema is a path, into another member for one."""
    if isinstance(core, list | tuple):
        return any(map(_roams, cast("list[Any] | tuple[Any, ...]", core)))
    if not is_object(core):
        return False
    alias = core.get("validation_alias")
    if is_array(alias) and any(is_array(path) and len(path) > 1 for path in (alias, *alias)):
        return True
    return any(_roams(value) for key, value in core.items() if key not in ("metadata", "default"))


def _as_keywords(core: Any, names: dict[str, str]) -> Any:
    """Return the core schema of a model as that of a dict, its fields under the parameters' names.

    Saves making an instance only to take it apart.
    """
    if core["type"] == "definitions":
        return {**core, "schema": _as_keywords(core["schema"], names)}
    inner = core["schema"]
    fields = {names[field]: {**shown, "type": "typed-dict-field"} for field, shown in inner["fields"].items()}
    config = core["config"]
    return {
        "type": "typed-dict",
        "fields": fields,
        "total": True,
        "config": config,
        "extra_behavior": config.get("extra_fields_behavior", "ignore"),
    }


def _is_unreadable(error: ValidationError) -> bool:
    """Return whether pydantic could not read the JSON at all: nothing a model could mend (P-35)."""
    # It is alone then; to ask others would read all of them out.
    return (
        error.error_count() == 1 and error.errors(include_input=False, include_url=False)[0]["type"] == "json_invalid"
    )


def _field(parameter: Parameter, described: str | None, adapt: Callable[[object], object]) -> object:
    """Return a parameter as a field of the model: its annotation with all that is said about it, and
    its default where the signature has one.
    """
    annotation = Any if parameter.annotation is MISSING else parameter.annotation
    default = parameter.default
    meant = meaning(annotation)
    said = list(meant.said)
    annotation = meant.bare if said else annotation  # an alias that says no more keeps its name
    if default is None and not _admits_none(annotation):
        annotation = Optional[annotation]  # noqa: UP045 - built at run time
    infos = [item for item in (*said, default) if isinstance(item, FieldInfo)]
    if not any(info.description for info in infos):
        text = next((item for item in said if isinstance(item, str)), described)
        said += [Field(description=text)] if text else []
    # An alias of the author's own, said after this one, takes its place.
    whole = adapt(Annotated[(annotation, Field(alias=parameter.name), *said)])
    return whole if default is MISSING else (whole, default)


def _admits_none(annotation: object) -> bool:
    return any(meaning(arm).bare in (Any, object, None, NoneType) for arm in arms(annotation))


def _reason(plan: HandlerPlan, fields: JSONObject, fault: Exception) -> str:
    """Why there is no model; the text names the parameter at fault."""
    for parameter, field in zip(plan.parameters, fields.values(), strict=True):
        annotation: Any = cast("tuple[Any, ...]", field)[0] if isinstance(field, tuple) else field
        try:
            json_schema(create_model("probe", p=(annotation, ...)).__pydantic_core_schema__, "validation")
        except Exception as exc:
            return (
                f"{plan.kind} {plan.name!r}: parameter {parameter.name!r}: "
                f"{_name_of_type(parameter.annotation)} has no JSON schema: {_short(exc)}"
            )
    return f"{plan.kind} {plan.name!r}: its parameters have no JSON schema: {_short(fault)}"


def _name_of_type(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else repr(annotation)


def _short(exc: Exception) -> str:
    return str(exc).partition("\n")[0]


def _mended(arguments: bytes) -> bytes:
    """Arguments that pydantic cannot read as JSON, read by the core and encoded again (P-35)."""
    try:
        return codec.encode(codec.decode_any(arguments))
    except codec.DecodeError as exc:
        error = ParseError if not codec.is_utf8(arguments) else InvalidParams
        raise error(f"the arguments cannot be read: {exc}") from exc
    except (ValueError, RecursionError) as exc:
        raise InvalidParams(f"the arguments cannot be read: {exc}") from exc


def _parsed(value: Any) -> Any:
    """Return what a string holds, where it is JSON for an object, an array or null (P-15)."""
    if not isinstance(value, str):
        return value
    try:
        held = codec.decode_any(value.encode("utf-8", "replace"))
    except (codec.DecodeError, codec.ValidationError):
        return value
    return value if isinstance(held, str | int | float) else held


def _check_names(plan: HandlerPlan, schema: JSONObject) -> None:
    if len(schema["properties"]) < len(plan.parameters):
        required: list[str] = schema.get("required", [])
        twice = next((name for name in required if required.count(name) > 1), None)
        which = f"two parameters are called {twice!r}" if twice else "two parameters have one name"
        raise InvalidSignature(f"{plan.kind} {plan.name!r}: {which} on the wire; give them other aliases")

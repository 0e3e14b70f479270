"""Arguments that a proxy reads in `Mcp-Param-*`: the tool must get what stands in the call.

The transport compares the headers with the arguments as they are written. Validation may
make another value of them: by another name, from a string, by reading "yes" as true. This
compares what the tool gets with what is written, at the marked places.
Spec: basic/transports/streamable-http, "Server Validation"; R-HTTP-23, R-HTTP-24.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import msgspec
from pydantic import AliasChoices, ValidationError

from mcp_core import codec
from mcp_core.codec import JSONObject
from mcp_core.errors import HeaderMismatch
from mcp_core.parameter_headers import argument_at

__all__ = ["HeaderArguments"]

Path = tuple[str, ...]

_SAFE: Final = 2**53 - 1
"""Beyond it, who reads the header as a double reads another integer."""

_MISSING: Final = object()


class HeaderArguments:
    """The marked places of one tool's arguments."""

    def __init__(
        self,
        annotated: list[Path],
        schema: JSONObject,
        parameters: dict[str, str],
        alone: Callable[[str], Callable[[bytes], JSONObject]],
        *,
        roams: bool,
    ) -> None:
        """`parameters` are the Python names by those on the wire; `alone` makes what validates
        one parameter for itself. `roams`: some alias reads a value out of another argument.
        """
        self._annotated = annotated
        self._schema = schema
        self._parameters = parameters
        self._alone = {path[0]: alone(path[0]) for path in annotated}
        self._roams = roams

    def check(self, arguments: bytes, keywords: JSONObject) -> None:
        """
        Raises:
            HeaderMismatch: The tool would get something else than what is written.
        """
        given: Any = codec.decode_any(arguments)
        for path in self._annotated:
            validated = keywords.get(self._parameters[path[0]], _MISSING)
            levels = list(self._levels(given, path))
            written = argument_at(given, path)
            if written is None:
                self._check_left_out(path, given, levels, validated)
            else:
                self._check_written(path, written, validated)

    def _levels(self, given: Any, path: Path) -> Iterator[tuple[JSONObject, JSONObject]]:
        """Yield each object along the path, with its schema."""
        node, schema = given, self._schema
        for name in path:
            if not codec.is_object(node):
                raise HeaderMismatch(f"the argument {_dotted(path)} is marked: what it is in must be sent as an object")
            yield node, schema
            node, schema = node.get(name), schema["properties"][name]
            if node is None:
                return

    def _check_written(self, path: Path, written: object, validated: object) -> None:
        kind = self._kind(path)
        if not _is_kind(written, kind):
            raise HeaderMismatch(f"the argument {_dotted(path)} is marked: it must be sent as a JSON {kind}")
        reached = validated
        for name in path[1:]:
            reached = _member(reached, name)
        # Types of the author's own, a date for one, have more spellings than one.
        if type(reached) in (str, int, float, bool) and (type(reached) is not type(written) or reached != written):
            raise HeaderMismatch(f"the argument {_dotted(path)} is marked: it must be sent as the tool takes it")

    def _check_left_out(
        self, path: Path, given: JSONObject, levels: list[tuple[JSONObject, JSONObject]], validated: object
    ) -> None:
        """Whether another name than the marked one has brought a value."""
        known = [{name: node[name] for name in node if name in schema["properties"]} for node, schema in levels]
        if not self._roams and all(len(kept) == len(node) for kept, (node, _) in zip(known, levels, strict=True)):
            return
        for outer, inner, name in zip(known[-2::-1], known[:0:-1], reversed(path[: len(known) - 1]), strict=True):
            outer[name] = inner
        only = {name: value for name, value in known[0].items() if name == path[0]}
        try:
            alone = self._alone[path[0]](codec.encode(only))
            same = bool(alone.get(self._parameters[path[0]], _MISSING) == validated)
        except Exception as exc:
            same = False
            if not isinstance(exc, ValidationError):
                raise
        if not same:
            raise HeaderMismatch(f"the argument {_dotted(path)} is marked: it must be sent by this name")

    def _kind(self, path: Path) -> str:
        schema = self._schema
        for name in path:
            schema = schema["properties"][name]
        return cast("str", schema["type"])


def _dotted(path: Path) -> str:
    return repr(".".join(path))


def _is_kind(value: object, kind: str) -> bool:
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _SAFE
    return isinstance(value, str)


def _member(value: object, name: str) -> object:
    """Return a member of a validated value by its name on the wire; `_MISSING` where it cannot be found."""
    if codec.is_object(value):
        return value.get(name, _MISSING)
    kind = codec.type_of(value)
    if issubclass(kind, msgspec.Struct):
        attributes = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    else:
        fields: Any = getattr(kind, "__pydantic_fields__", None)
        if fields is not None:
            attributes = {_name_of(attribute, field): attribute for attribute, field in fields.items()}
        elif dataclasses.is_dataclass(kind):
            attributes = {field.name: field.name for field in dataclasses.fields(kind)}
        else:
            return _MISSING
    return getattr(value, attributes.get(name, ""), _MISSING)


def _name_of(attribute: str, field: Any) -> str:
    """Return the name of a pydantic field in the schema of what it takes."""
    alias = field.validation_alias
    if isinstance(alias, AliasChoices):
        alias = next((choice for choice in alias.choices if isinstance(choice, str)), None)
    return alias if isinstance(alias, str) else attribute

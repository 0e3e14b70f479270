"""Return values: their schema, and the way from a value to both channels of a result.

The value is validated and serialized once; the text and the structured data are made
from mcp_core.codec import JSONObject, ReadableObject
from the same bytes, so they cannot disagree (P-05). Which annotations promise
structured data is decided here too (P-06 to P-11).
"""

from __future__ import annotations

import collections.abc
import functools
import json
import typing
from collections.abc import Sequence
from types import NoneType
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, Union, cast

import msgspec
from msgspec import Raw
from pydantic import Field, ValidationError
from pydantic.fields import FieldInfo

from mcp_core import codec
from mcp_core.codec import JSONObject, ReadableObject
from mcp_core.types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    TextContent,
    text_block,
    text_blocks,
)
from mcp_typed.annotations import arms, leaves, meaning
from mcp_typed.errors import InvalidSignature
from mcp_typed.foreign import members_of
from mcp_typed.json_schema import inlined
from mcp_typed.media import Audio, Image
from mcp_typed.plain import (
    CLASSES,
    TooDeep,
    Unsendable,
    blocks_in,
    find_non_finite,
    is_block,
    items_of,
    text_of,
    to_json,
    to_text,
    unwrapped,
)
from mcp_typed.schema import Shape, core_schema, json_schema, wrapped
from mcp_typed.signature import MISSING, HandlerPlan

__all__ = ["Result", "Returns", "asks_for_input", "scalar_result"]

T = TypeVar("T")


class Result(Generic[T]):
    """A return value plus explicit text, extra blocks or `_meta`; the value is validated as usual.

    Not `mcp_core.types.Result`, the base of all results on the wire. `text` takes the place of the text made
    from the value, `content` are blocks after it (or in its place where there is no `text`), `meta` is the
    `_meta` of the result.
    """

    __slots__ = ("content", "meta", "text", "value")

    def __init__(
        self,
        value: T,
        *,
        text: str | None = None,
        content: Sequence[ContentBlock | Image | Audio] | None = None,
        meta: JSONObject | None = None,
    ) -> None:
        if text is not None and not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"text must be a str; got {text!r}")
        self.value: T = value
        self.text: str | None = text
        self.content: Sequence[ContentBlock | Image | Audio] | None = content
        self.meta: JSONObject | None = meta


class Returns:
    """What one tool returns. `schema` is `None` where nothing structured is promised.

    `scalar` is the type whose values keep the promise by being of it. `streams` says that
    the value is what an iterator gives, one item after the other; `fell_back`, that there
    is an annotation which promises nothing because it has no schema.
    """

    def __init__(self, plan: HandlerPlan, *, structured_output: bool | None = None, inline_refs: bool = False) -> None:
        self.schema: JSONObject | None = None
        self._shape: Shape | None = None
        self._wrapped = False
        self.scalar: type[object] | None = None
        self.streams: bool = plan.is_generator
        self.fell_back: bool = False
        self._made_by_hand = False
        function = plan.title
        promised: Any = self._promised(plan.returns, function)
        self._may_be_media = _is_media(promised)
        self._may_be_anything = Any in leaves(promised)
        if structured_output is False or promised is CallToolResult:
            return
        if promised is MISSING:
            if structured_output:
                raise InvalidSignature(f"Function {function}: return annotation required for structured output")
            return
        if not structured_output and (_says_nothing(promised) or self._may_be_media):
            return
        try:
            if promised in (Any, object) or any(leaf is Image or leaf is Audio for leaf in leaves(promised)):
                raise TypeError("it says nothing of its JSON")
            self._describe(_with_description(promised), plan.title, inline_refs)
        except Exception as exc:
            self.fell_back = True
            if structured_output:
                raise InvalidSignature(
                    f"Function {function}: return type {promised!r} is not serializable for structured output"
                ) from exc

    def _promised(self, annotation: object, function: str) -> object:
        """Return what the annotation says about the value itself; notes whether it comes item by item.

        Raises:
            InvalidSignature: It says what no result can be.
        """
        try:
            promised = self._value(annotation, function)
            misplaced = _misplaced_media(promised, ())
        except NameError as exc:
            raise InvalidSignature(
                f"Function {function}: the return annotation cannot be resolved: there is no {exc.name!r}"
            ) from exc
        if misplaced is not None:
            raise InvalidSignature(
                f"Function {function}: {misplaced} is content of a result, and cannot be inside other JSON; "
                f"return it, or a list of it"
            )
        return promised

    def _value(self, annotation: object, function: str) -> object:
        """Return the type of the value in what surrounds it: `Awaitable`, `Result`, an iterator."""
        meant = meaning(annotation)
        if meant.bare is Result:
            return MISSING
        if meant.origin in (collections.abc.Awaitable, collections.abc.Coroutine, Result):
            return self._value(meant.about(meant.arguments[-1]), function)
        if meant.origin in _STREAMS:
            self.streams = True
            return self._value(meant.about(list[meant.arguments[0]]), function)  # type: ignore[name-defined]
        if _is_subclass(meant.cls, CallToolResult):
            self._made_by_hand = True
            return next((item for item in meant.said if not isinstance(item, str)), CallToolResult)
        given = arms(annotation)
        kept = tuple(_without_result(arm) for arm in given if not _is_subclass(meaning(arm).cls, InputRequiredResult))
        if not kept:
            return MISSING
        if kept != given:
            return self._value(meant.about(Union[kept]), function)  # noqa: UP007 - built at run time
        if any(_is_subclass(meaning(leaf).cls, CallToolResult) for leaf in leaves(annotation)):
            raise InvalidSignature(
                f"Function {function}: CallToolResult cannot be used in Union or Optional types. "
                "To return empty results, use: CallToolResult(content=[])"
            )
        return NoneType if meant.bare is None else annotation

    def _describe(self, annotation: object, name: str, inline_refs: bool) -> None:
        core = core_schema(annotation)
        schema = json_schema(core, "serialization")
        if schema.get("type") != "object" or _has_other_keys(core):
            self._wrapped = True
            self.scalar = _plain_scalar(core)
            core = wrapped(core, f"{name}Output")
            schema = json_schema(core, "serialization")
            schema["title"] = f"{name}Output"
        elif "title" not in schema:
            schema["title"] = f"{name}DictOutput"
        self._shape = Shape(core, schema["title"])
        self.schema = inlined(schema) if inline_refs else schema

    # --- a value -------------------------------------------------------------------------------

    def result(self, value: Any) -> CallToolResult:
        """Return the result of a call that returned this value.

        Raises:
            ValidationError: It is not what the annotation says.
            NonFinite: There is a number in it that JSON does not have.
            PydanticSerializationError: A part of it cannot be written.
        """
        kind = codec.type_of(value)
        if kind is CallToolResult:
            return self._checked(value)
        if kind is Result:
            return self._dressed(value)
        if kind is InputRequiredResult:  # the core sends it to clients that know it
            return value  # type: ignore[no-any-return]
        if kind is self.scalar:
            return scalar_result(value)
        in_turn = _is_iterator(kind)
        try:
            if in_turn:
                value = items_of(value)
            if self._shape is not None:
                return self._typed_result(self._shape, value)
            ready = _ready(value)
            return self._plain_result(value, came_in_turn=in_turn) if ready is None else ready
        except RecursionError:
            raise TooDeep from None

    def _plain_result(self, value: Any, *, came_in_turn: bool) -> CallToolResult:
        # What an iterator gives is one thing, unless it gives content.
        one = came_in_turn and not blocks_in(value)
        return CallToolResult(content=[_plain_block(value)] if one else _plain_blocks(value))

    def _typed_result(self, shape: Shape, value: Any) -> CallToolResult:
        try:
            validated = shape.validate({"result": value} if self._wrapped else value)
        except ValidationError:
            ready = _ready(value)
            if ready is None:
                raise
            return self._checked(ready)
        whole = shape.to_json(validated)
        if self._is_content(value):
            content = _plain_blocks(value)
        else:
            content = _blocks(validated["result"], whole[10:-1]) if self._wrapped else _blocks(validated, whole)
        return CallToolResult(content=content, structured_content=cast("Any", Raw(whole)))

    def _is_content(self, value: Any) -> bool:
        """Return whether the value is content blocks, which go out as they are, promise or not."""
        return self._may_be_media or (self._may_be_anything and (is_block(value) or blocks_in(value)))

    def _checked(self, result: CallToolResult) -> CallToolResult:
        """Return a result built by hand, which goes out as it is if it keeps the promise there is."""
        if self._shape is None or isinstance(result, InputRequiredResult) or result.is_error:  # pyright: ignore[reportUnnecessaryIsInstance]
            return result
        given = result.structured_content
        if given is None and not self._made_by_hand:
            raise Unsendable(
                "a CallToolResult without structured_content was returned, which the return annotation promises; "
                "annotate the function with -> CallToolResult"
            )
        data = bytes(given) if isinstance(given, Raw) else to_json(given)
        self._shape.validate_json(data)
        # It goes out as it is, not as it was validated: no text may stand for a number.
        self._shape.validate_json(data, strict=True)
        return result

    def _dressed(self, asked: Result[Any]) -> CallToolResult:
        result = self.result(asked.value)
        extra = [unwrapped(block) for block in asked.content or ()]
        if asked.text is not None:
            result.content = [text_block(asked.text), *extra]
        elif asked.content is not None:
            result.content = extra
        if asked.meta is not None:
            return msgspec.structs.replace(result, _meta={**(result.meta or {}), **asked.meta})
        return result


@functools.lru_cache(CLASSES)
def _is_iterator(kind: type[Any]) -> bool:
    return hasattr(kind, "__next__")


def _ready(value: Any) -> CallToolResult | None:
    """Return the value, if it is a result already; the core sends requests for input to clients that know them."""
    return value if isinstance(value, _READY) else None  # type: ignore[return-value] # pyright: ignore[reportReturnType]


def _plain_scalar(core: ReadableObject) -> type[object] | None:
    """Return the Python type of a core schema that says no more than that type."""
    return _EXACT.get(core["type"]) if set(core) <= {"type", "metadata"} else None


_EXACT: Final[dict[str, type[Any]]] = {"str": str, "int": int, "bool": bool}


def scalar_result(value: object) -> CallToolResult:
    """Return the result for a value that is exactly what was promised, and the same in JSON and as text."""
    if type(value) is str and len(value) < codec.LONG_TEXT:
        return CallToolResult(content=[text_block(value)], structured_content={"result": value})
    data = codec.encode(value)
    content: list[ContentBlock] = [text_block(value if type(value) is str else data.decode())]
    return CallToolResult(content=content, structured_content=cast("Any", Raw(b'{"result":%b}' % data)))


_READY: Final = (CallToolResult, InputRequiredResult)
_STREAMS: Final = frozenset(
    {
        collections.abc.Iterator,
        collections.abc.Iterable,
        collections.abc.Generator,
        collections.abc.AsyncIterator,
        collections.abc.AsyncIterable,
        collections.abc.AsyncGenerator,
    }
)
_BARE: Final = frozenset(
    {Any, object, list, dict, tuple, set, frozenset, collections.abc.Mapping, collections.abc.Sequence}
)
_MEDIA: Final = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource, Image, Audio)


def _with_description(annotation: object) -> object:
    """Return the annotation, a text in its `Annotated` made the description that it is for parameters."""
    said = meaning(annotation).said
    text = next((item for item in said if isinstance(item, str)), None)
    described = text is None or any(isinstance(item, FieldInfo) and item.description for item in said)
    return annotation if described else Annotated[annotation, Field(description=text)]


def _says_nothing(annotation: Any) -> bool:
    try:
        return annotation in _BARE or annotation in (typing.List, typing.Dict, typing.Tuple, typing.Set)  # noqa: UP006
    except TypeError:
        return False


def _is_subclass(cls: type[object] | None, of: type[object] | tuple[type[object], ...]) -> bool:
    return cls is not None and issubclass(cls, of)


def _without_result(arm: object) -> object:
    """Return the value's own type, where it may come in a `Result`."""
    meant = meaning(arm)
    return meant.arguments[0] if meant.origin is Result else arm


def _is_media(annotation: object) -> bool:
    """Return whether content blocks are among what the annotation lets be returned."""
    return any(_is_subclass(meaning(leaf).cls, _MEDIA) for leaf in leaves(annotation))


def _misplaced_media(annotation: object, above: tuple[object, ...], *, inside: bool = False) -> str | None:
    """Return the name of a class of images or sounds that stands where only JSON can be."""
    if annotation in above or isinstance(annotation, list | str) or len(above) > _DEEPEST:
        return None
    meant = meaning(annotation)
    above = (*above, annotation)
    cls = meant.cls
    if cls is not None and issubclass(cls, Image | Audio):
        return cls.__name__ if inside else None
    if meant.origin is Literal:
        return None
    inside = inside or not (meant.origin is Union or meant.origin in _LISTINGS)
    members = () if cls is None else members_of(cls)
    found = (_misplaced_media(part, above, inside=inside) for part in (*meant.arguments, *members))
    return next((name for name in found if name is not None), None)


_DEEPEST: Final = 100
"""Levels of an annotation that are looked into."""

_LISTINGS: Final = (list, tuple, collections.abc.Sequence)
"""What gives each of its elements as content of its own."""


def asks_for_input(annotation: object) -> bool:
    """Return whether the annotation lets a request for input be returned."""
    return any(_is_subclass(meaning(leaf).cls, InputRequiredResult) for leaf in leaves(annotation))


def _has_other_keys(core: ReadableObject) -> bool:
    """Return whether a dict has keys that are no strings: it is an object in JSON by conversion only."""
    if core["type"] in ("definitions", "default", "nullable", "lax-or-strict", "function-after"):
        inner = core.get("schema") or core.get("strict_schema")
        return inner is not None and _has_other_keys(inner)
    keys: JSONObject = core.get("keys_schema", {"type": "str"})
    return bool(core["type"] == "dict" and keys["type"] != "str")


# --- text -----------------------------------------------------------------------------------------

_array = msgspec.json.Decoder(list[Raw])


def _blocks(value: Any, data: bytes) -> list[ContentBlock]:
    """One text block, or one for each element of a list or tuple that is not empty (P-06)."""
    try:
        if _is_listing(value) and data[:1] == b"[" and data != b"[]":
            return _element_blocks(_array.decode(data))
        return [text_block(text_of(data))]
    except msgspec.DecodeError:
        fault = find_non_finite(json.loads(data))
        if fault is None:
            raise
        raise fault from None


def _element_blocks(elements: list[Raw]) -> list[ContentBlock]:
    """Return each element as `text_of` would have it, without a copy of its bytes."""
    texts = [_format(element, indent=2).decode() for element in elements]
    shown = [text if text[0] != '"' else text_of(bytes(e)) for text, e in zip(texts, elements, strict=True)]
    return cast("list[ContentBlock]", text_blocks(shown))


_format: Final = msgspec.json.format


def _is_listing(value: object) -> bool:
    """Return whether each element is content of its own; a NamedTuple is one value."""
    return isinstance(value, list | tuple) and not hasattr(cast("Any", value), "_fields")


def _plain_blocks(value: Any) -> list[ContentBlock]:
    """Return the content for a value of which nothing is promised."""
    if value is None:
        return []
    if _is_listing(value):
        return _plain_elements(cast("list[Any]", value))
    return [_plain_block(value)]


def _plain_elements(items: Sequence[Any]) -> list[ContentBlock]:
    blocks: list[ContentBlock] = []
    for item in items:
        if blocks_in(item):
            blocks += _plain_elements(item)
        else:
            blocks.append(_plain_block(item))
    return blocks


def _plain_block(value: Any) -> ContentBlock:
    return unwrapped(value) if is_block(value) else text_block(to_text(value))

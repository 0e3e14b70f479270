"""What a tool gives for what it returns: the table.

A row is a tool, with what a client must see of it written above. Each tool is a real
function; where a row is about an annotation that type checkers refuse, or about none at
all, `returns=` puts it in place of the one in the source.
"""

# `List`, `Dict`, `Optional` and `Union` are spelled as authors spell them: they are what is tested.
# ruff: noqa: UP006, UP007, UP035, UP045

import atexit
import dataclasses
import datetime
import decimal
import json
import pathlib
import tempfile
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Dict, Final, List, Literal, NoReturn, Optional, TypeAlias, TypeVar, Union, cast

from pydantic import Field, RootModel

from mcp_core.types import (
    Annotations,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from mcp_typed import Audio, Image
from tests.typed.return_types import (
    DC,
    IE,
    NT,
    PDC,
    TD,
    TTD,
    Al,
    Alias,
    AlSer,
    Ann,
    AnnMethod,
    At,
    Base,
    Cat,
    Cfg,
    Child,
    Cmp,
    Color,
    DCn,
    DCo,
    Doc,
    Dog,
    Excl,
    Extra,
    Forb,
    M,
    NoAnn,
    NoneM,
    Page,
    Proto,
    Rec,
    Root,
    Slots,
    St,
    Sub,
    T,
    TDf,
    TDn,
    UserId,
)

JSONObject: TypeAlias = dict[str, Any]
Schema: TypeAlias = JSONObject | Callable[[str], JSONObject] | None
Function = TypeVar("Function", bound=Callable[..., object])

ABSENT: Final[Any] = object()
"""No `structuredContent` at all; `None` is a JSON null."""
AS_WRITTEN: Final[Any] = object()
NOTHING: Final[Any] = object()
"""For `returns=`: the annotation in the source, or none."""


@dataclasses.dataclass(frozen=True)
class Row:
    """One tool, and what is expected of it.

    `content` holds the text of a text block that has nothing else, and whole blocks
    otherwise. In an error, `words` are what the text must name where its wording is
    free. A row with `refused` is never registered: registration raises that text, or
    one that names all `words`. `has_more_in_schema` is for a class of the protocol's:
    what its schema says besides is that class's business.
    """

    observed: str
    function: Callable[..., object]
    arguments: JSONObject
    structured_output: bool | None
    schema: JSONObject | None = None
    content: list[str | JSONObject] | None = None
    structured: Any = ABSENT
    structured_before_2026: Any = ABSENT
    is_error: bool = False
    has_more_in_schema: bool = False
    meta: JSONObject = dataclasses.field(default_factory=dict[str, Any])
    refused: str | None = None
    words: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def registers(self) -> bool:
        return self.content is not None or self.is_error


ROWS: list[Row] = []


@dataclasses.dataclass(frozen=True)
class Expectation:
    """The start of a row: which tool is called, and how it is declared."""

    ident: str
    returns: Any
    structured_output: bool | None
    arguments: JSONObject

    def gives(
        self,
        schema: Schema,
        content: Sequence[str | JSONObject],
        structured: Any = ABSENT,
        **more: Any,
    ) -> Callable[[Function], Function]:
        """A result."""
        more = {"structured_before_2026": structured, **more}
        return self._row(schema, content=list(content), structured=structured, **more)

    def fails(self, schema: Schema, report: str) -> Callable[[Function], Function]:
        """An error for the model, word by word."""
        return self._row(schema, content=[report], prefix=": ", is_error=True)

    def crashes(self, schema: Schema = None) -> Callable[[Function], Function]:
        """An error that says no more than where to look in the log."""
        return self._row(schema, content=[" (error id …)"], prefix="", is_error=True)

    def fails_naming(self, schema: Schema, *words: str) -> Callable[[Function], Function]:
        """An error for the model that names these; the wording is free."""
        return self._row(schema, words=words, is_error=True)

    def refused(self, message: str) -> Callable[[Function], Function]:
        """Registration raises `InvalidSignature` with this text."""
        return self._row(None, refused=message)

    def refused_naming(self, *words: str) -> Callable[[Function], Function]:
        """Registration raises `InvalidSignature` and names these; the wording is free."""
        return self._row(None, words=words)

    def _row(self, schema: Schema, *, prefix: str | None = None, **expected: Any) -> Callable[[Function], Function]:
        def add(function: Function) -> Function:
            if self.returns is NOTHING:
                function.__annotations__ = {}
            elif self.returns is not AS_WRITTEN:
                function.__annotations__ = {**function.__annotations__, "return": self.returns}
            if prefix is not None:
                expected["content"] = [f"Error executing tool {function.__name__}{prefix}{expected['content'][0]}"]
            published = schema(function.__name__) if callable(schema) else schema
            ROWS.append(Row(self.ident, function, self.arguments, self.structured_output, schema=published, **expected))
            return function

        return add


def observed(
    ident: str,
    *,
    returns: Any = AS_WRITTEN,
    structured_output: bool | None = None,
    arguments: JSONObject | None = None,
) -> Expectation:
    """Begin the row that answers this observation."""
    return Expectation(ident, returns, structured_output, arguments or {})


# --- schemas ---------------------------------------------------------------------------------------


def wrapped(result: JSONObject, **defs: JSONObject) -> Callable[[str], JSONObject]:
    """The schema of a value that travels as `{"result": value}`; the title has the tool's name."""

    def schema(name: str) -> JSONObject:
        members: JSONObject = {"$defs": defs} if defs else {}
        return {
            **members,
            "properties": {"result": result},
            "required": ["result"],
            "title": f"{name}Output",
            "type": "object",
        }

    return schema


def titled(**keywords: Any) -> JSONObject:
    """The property `result` of a type that has no title of its own."""
    return {"title": "Result", **keywords}


def mapping(values: JSONObject | Literal[True], **defs: JSONObject) -> Callable[[str], JSONObject]:
    """The schema of a mapping with string keys, which is an object already."""

    def schema(name: str) -> JSONObject:
        members: JSONObject = {"$defs": defs} if defs else {}
        return {**members, "additionalProperties": values, "title": f"{name}DictOutput", "type": "object"}

    return schema


def pretty(value: Any) -> str:
    """JSON as a model reads it."""
    return json.dumps(value, indent=2, ensure_ascii=False)


NULL: Final[JSONObject] = {"type": "null"}
STRING: Final[JSONObject] = {"type": "string"}
INTEGER: Final[JSONObject] = {"type": "integer"}
BASE64: Final[JSONObject] = {"type": "string", "format": "binary", "contentEncoding": "base64"}

A: Final[JSONObject] = {"title": "A", "type": "integer"}
A_AND_B: Final[JSONObject] = {
    "properties": {"a": A, "b": {"default": "x", "title": "B", "type": "string"}},
    "required": ["a"],
    "type": "object",
}
M_SCHEMA: Final[JSONObject] = {**A_AND_B, "title": "M"}
ST_SCHEMA: Final[JSONObject] = {**A_AND_B, "title": "St"}
AL_SCHEMA: Final[JSONObject] = {
    "properties": {"tempC": {"title": "Tempc", "type": "number"}},
    "required": ["tempC"],
    "title": "Al",
    "type": "object",
}
DOC_SCHEMA: Final[JSONObject] = {
    "description": "Doc of the model.",
    "properties": {"a": {"description": "an a", "examples": [1], "title": "A", "type": "integer"}},
    "required": ["a"],
    "title": "Doc",
    "type": "object",
}
REC_SCHEMA: Final[JSONObject] = {
    "properties": {
        "v": {"title": "V", "type": "integer"},
        "kids": {"default": [], "items": {"$ref": "#/$defs/Rec"}, "title": "Kids", "type": "array"},
    },
    "required": ["v"],
    "title": "Rec",
    "type": "object",
}
TD_SCHEMA: Final[JSONObject] = {
    "properties": {"a": A, "b": {"title": "B", "type": "string"}},
    "required": ["a", "b"],
    "title": "TD",
    "type": "object",
}
# A factory's value is not known to the schema, and a caller need not give it.
DC_SCHEMA: Final[JSONObject] = {
    "properties": {
        "a": A,
        "b": {"default": "x", "title": "B", "type": "string"},
        "c": {"items": {"type": "integer"}, "title": "C", "type": "array"},
    },
    "required": ["a"],
    "title": "DC",
    "type": "object",
}
COLOR_SCHEMA: Final[JSONObject] = {"enum": ["red", "blue"], "title": "Color", "type": "string"}
DOG_SCHEMA: Final[JSONObject] = {
    "properties": {
        "kind": {"const": "dog", "default": "dog", "title": "Kind", "type": "string"},
        "n": {"title": "N", "type": "integer"},
    },
    "required": ["n"],
    "title": "Dog",
    "type": "object",
}
CAT_SCHEMA: Final[JSONObject] = {
    "properties": {
        "kind": {"const": "cat", "default": "cat", "title": "Kind", "type": "string"},
        "m": {"title": "M", "type": "string"},
    },
    "required": ["m"],
    "title": "Cat",
    "type": "object",
}
NICE_SCHEMA: Final[JSONObject] = {
    "examples": [{"a": 1}],
    "properties": {"a": A},
    "required": ["a"],
    "title": "Nice",
    "type": "object",
}
NONEM_SCHEMA: Final[JSONObject] = {
    "properties": {
        "a": {"anyOf": [INTEGER, NULL], "default": None, "title": "A"},
        "b": {"anyOf": [STRING, NULL], "default": None, "title": "B"},
    },
    "title": "NoneM",
    "type": "object",
}
NEXT: Final[JSONObject] = {"anyOf": [STRING, NULL], "default": None, "title": "Next"}
PAIR: Final[JSONObject] = titled(maxItems=2, minItems=2, prefixItems=[INTEGER, STRING], type="array")

IN_UNION: Final = (
    "CallToolResult cannot be used in Union or Optional types. To return empty results, use: CallToolResult(content=[])"
)

# --- scalars ---------------------------------------------------------------------------------------


@observed("S-204").gives(wrapped(titled(type="null")), ["null"], {"result": None})
def r_none() -> None:
    return None


@observed("S-205").fails(
    wrapped(titled(type="null")),
    "1 validation error for r_none_valOutput\nresult\n  Input should be None [type=none_required, input_type=int]",
)
def r_none_val() -> None:
    return cast("None", 5)


@observed("S-206").gives(wrapped(titled(type="string")), ["hi"], {"result": "hi"})
def r_str() -> str:
    return "hi"


@observed("S-207").gives(
    wrapped(titled(type="string")), ['héllo \u2028 "q"\n\x00'], {"result": 'héllo \u2028 "q"\n\x00'}
)
def r_str_unicode() -> str:
    return 'héllo \u2028 "q"\n\x00'


@observed("S-208").fails(
    wrapped(titled(type="string")),
    "1 validation error for r_str_returns_intOutput\nresult\n"
    "  Input should be a valid string [type=string_type, input_type=int]",
)
def r_str_returns_int() -> str:
    return cast("str", 5)


@observed("S-209").gives(wrapped(titled(type="integer")), ["5"], {"result": 5})
def r_int_returns_str() -> int:
    return cast("int", "5")


@observed("S-210").fails(
    wrapped(titled(type="integer")),
    "1 validation error for r_int_returns_badOutput\nresult\n"
    "  Input should be a valid integer, unable to parse string as an integer"
    " [type=int_parsing, input_type=str]",
)
def r_int_returns_bad() -> int:
    return cast("int", "x")


@observed("S-211").fails(
    wrapped(titled(type="integer")),
    "1 validation error for r_int_returns_noneOutput\nresult\n"
    "  Input should be a valid integer [type=int_type, input_type=NoneType]",
)
def r_int_returns_none() -> int:
    return cast("int", None)


@observed("S-212").gives(
    wrapped(titled(type="integer")), ["1180591620717411303424"], {"result": 1180591620717411303424}
)
def r_int_big() -> int:
    return 2**70


@observed("S-213").gives(wrapped(titled(type="boolean")), ["true"], {"result": True})
def r_bool() -> bool:
    return True


@observed("S-214").gives(wrapped(titled(type="number")), ["1.0"], {"result": 1.0})
def r_float() -> float:
    return 1.0


@observed("S-215").fails_naming(wrapped(titled(type="number")), "nan")
def r_float_nan() -> float:
    return float("nan")


@observed("S-216").fails_naming(wrapped(titled(type="number")), "inf")
def r_float_inf() -> float:
    return float("inf")


@observed("S-217").gives(wrapped(titled(**BASE64)), ["YWJj"], {"result": "YWJj"})
def r_bytes() -> bytes:
    return b"abc"


@observed("S-218").gives(wrapped(titled(**BASE64)), ["//4="], {"result": "//4="})
def r_bytes_bad() -> bytes:
    return b"\xff\xfe"


@observed("S-219").gives(None, ["YWJj"])
def r_bytearray() -> bytearray:
    return bytearray(b"abc")


# --- unions ----------------------------------------------------------------------------------------


@observed("S-220").gives(
    wrapped({"anyOf": [{"$ref": "#/$defs/M"}, NULL]}, M=M_SCHEMA),
    [pretty({"a": 1, "b": "x"})],
    {"result": {"a": 1, "b": "x"}},
)
def r_opt_model() -> Optional[M]:
    return M(a=1)


@observed("S-221").gives(
    wrapped({"anyOf": [{"$ref": "#/$defs/M"}, NULL]}, M=M_SCHEMA),
    ["null"],
    {"result": None},
)
def r_opt_model_none() -> Optional[M]:
    return None


@observed("S-222").gives(wrapped(titled(anyOf=[STRING, NULL])), ["null"], {"result": None})
def r_opt_str_none() -> str | None:
    return None


@observed("S-223").gives(wrapped(titled(anyOf=[INTEGER, STRING])), ["z"], {"result": "z"})
def r_union() -> int | str:
    return "z"


@observed("S-224").gives(
    wrapped(titled(anyOf=[{"$ref": "#/$defs/M"}, {"$ref": "#/$defs/Doc"}]), Doc=DOC_SCHEMA, M=M_SCHEMA),
    [pretty({"a": 1})],
    {"result": {"a": 1}},
)
def r_union_models() -> M | Doc:
    return Doc(a=1)


# --- lists, tuples, sets ---------------------------------------------------------------------------


@observed("S-225").gives(wrapped(titled(items=STRING, type="array")), ["a", "b"], {"result": ["a", "b"]})
def r_list_str() -> list[str]:
    return ["a", "b"]


@observed("S-226").gives(wrapped(titled(items=STRING, type="array")), ["[]"], {"result": []})
def r_list_empty() -> list[str]:
    return []


@observed("S-227").gives(
    wrapped(titled(items={"items": INTEGER, "type": "array"}, type="array")),
    [pretty([1, 2]), pretty([3])],
    {"result": [[1, 2], [3]]},
)
def r_list_nested() -> list[list[int]]:
    return [[1, 2], [3]]


@observed("S-228", returns=list).gives(None, ["a", "1", pretty({"k": 2})])
def r_list_bare() -> list[object]:
    return ["a", 1, {"k": 2}]


@observed("S-229").gives(wrapped(titled(items=INTEGER, type="array")), ["1", "2"], {"result": [1, 2]})
def r_List_typing() -> List[int]:
    return [1, 2]


@observed("S-230").gives(wrapped(titled(items=INTEGER, type="array")), ["1", "2"], {"result": [1, 2]})
def r_seq() -> Sequence[int]:
    return [1, 2]


@observed("S-231").gives(
    wrapped(titled(items={"anyOf": [INTEGER, NULL]}, type="array")), ["1", "null", "2"], {"result": [1, None, 2]}
)
def r_list_opt() -> list[int | None]:
    return [1, None, 2]


@observed("S-232").gives(wrapped(PAIR), ["1", "a"], {"result": [1, "a"]})
def r_tuple() -> tuple[int, str]:
    return (1, "a")


@observed("S-233").gives(wrapped(titled(items=INTEGER, type="array")), ["1", "2", "3"], {"result": [1, 2, 3]})
def r_tuple_var() -> tuple[int, ...]:
    return (1, 2, 3)


@observed("S-234", returns=tuple).gives(None, ["1", "a"])
def r_tuple_bare() -> tuple[object, ...]:
    return (1, "a")


@observed("S-235").gives(
    wrapped(titled(items=INTEGER, type="array", uniqueItems=True)), [pretty([1, 2])], {"result": [1, 2]}
)
def r_set() -> set[int]:
    return {1, 2}


@observed("S-236").gives(
    wrapped(titled(items=STRING, type="array", uniqueItems=True)), [pretty(["a"])], {"result": ["a"]}
)
def r_frozenset() -> frozenset[str]:
    return frozenset(["a"])


# --- mappings --------------------------------------------------------------------------------------


@observed("S-237").gives(mapping(INTEGER), [pretty({"a": 1})], {"a": 1})
def r_dict_si() -> dict[str, int]:
    return {"a": 1}


@observed("S-238").gives(mapping(True), [pretty({"a": 1, "b": [1, {"c": None}]})], {"a": 1, "b": [1, {"c": None}]})
def r_dict_sany() -> dict[str, Any]:
    return {"a": 1, "b": [1, {"c": None}]}


@observed("S-239").gives(
    wrapped(titled(additionalProperties={"type": "number"}, type="object")),
    [pretty({"1": 2.5})],
    {"result": {"1": 2.5}},
)
def r_dict_if() -> dict[int, float]:
    return {1: 2.5}


@observed("S-240", returns=dict).gives(None, [pretty({"a": 1})])
def r_dict_bare() -> dict[str, int]:
    return {"a": 1}


@observed("S-241").gives(mapping(INTEGER), [pretty({"a": 1})], {"a": 1})
def r_Dict_typing() -> Dict[str, int]:
    return {"a": 1}


@observed("S-242").gives(mapping(INTEGER), [pretty({"a": 1})], {"a": 1})
def r_mapping() -> Mapping[str, int]:
    return {"a": 1}


@observed("S-243").fails(
    mapping(INTEGER),
    "1 validation error for r_dict_badDictOutput\na\n"
    "  Input should be a valid integer, unable to parse string as an integer"
    " [type=int_parsing, input_type=str]",
)
def r_dict_bad() -> dict[str, int]:
    return {"a": cast("int", "zz")}


@observed("S-244").gives(mapping(INTEGER), [pretty({"a": 7})], {"a": 7})
def r_dict_coerce() -> dict[str, int]:
    return {"a": cast("int", "7")}


# --- nothing promised ------------------------------------------------------------------------------


@observed("S-245").gives(None, [pretty({"a": 1})])
def r_any() -> Any:
    return {"a": 1}


@observed("S-246").gives(None, ["s"])
def r_any_str() -> Any:
    return "s"


@observed("S-247").gives(None, [pretty({"a": 1})])
def r_object() -> object:
    return {"a": 1}


@observed("S-248", returns=NOTHING).gives(None, [pretty({"a": 1})])
def r_noann() -> object:
    return {"a": 1}


@observed("S-249", returns=NOTHING).gives(None, ["hi"])
def r_noann_str() -> object:
    return "hi"


@observed("S-250", returns=NOTHING).gives(None, [])
def r_noann_none() -> object:
    return None


@observed("S-251", returns=NOTHING).gives(None, ["a", pretty(["b", 1])])
def r_noann_list() -> object:
    return ["a", ["b", 1]]


# --- what stands beside the type -------------------------------------------------------------------


@observed("S-252").gives(
    wrapped(titled(description="temp in C", minimum=0, type="integer")),
    ["4"],
    {"result": 4},
)
def r_annotated_int() -> Annotated[int, Field(description="temp in C", ge=0)]:
    return 4


@observed("S-253").fails(
    wrapped(titled(minimum=0, type="integer")),
    "1 validation error for r_annotated_int_badOutput\nresult\n"
    "  Input should be greater than or equal to 0 [type=greater_than_equal, input_type=int]",
)
def r_annotated_int_bad() -> Annotated[int, Field(ge=0)]:
    return -4


@observed("S-254").gives(
    wrapped(titled(description="ids", items=INTEGER, minItems=1, type="array")),
    ["1"],
    {"result": [1]},
)
def r_annotated_list() -> Annotated[list[int], Field(description="ids", min_length=1)]:
    return [1]


@observed("S-255").gives(lambda name: {**mapping(INTEGER)(name), "description": "dd"}, [pretty({"a": 1})], {"a": 1})
def r_annotated_dict() -> Annotated[dict[str, int], Field(description="dd")]:
    return {"a": 1}


@observed("S-256").gives({**M_SCHEMA, "description": "mm"}, [pretty({"a": 1, "b": "x"})], {"a": 1, "b": "x"})
def r_annotated_model() -> Annotated[M, Field(description="mm")]:
    return M(a=1)


@observed("S-257").gives(wrapped(titled(type="string", description="just a note")), ["x"], {"result": "x"})
def r_annotated_str_plain() -> Annotated[str, "just a note"]:
    return "x"


@observed("S-258").gives(wrapped(titled(enum=["a", "b"], type="string")), ["a"], {"result": "a"})
def r_literal() -> Literal["a", "b"]:
    return "a"


@observed("S-259").fails(
    wrapped(titled(enum=["a", "b"], type="string")),
    "1 validation error for r_literal_badOutput\nresult\n"
    "  Input should be 'a' or 'b' [type=literal_error, input_type=str]",
)
def r_literal_bad() -> Literal["a", "b"]:
    return cast('Literal["a"]', "c")


# --- models ----------------------------------------------------------------------------------------


@observed("S-260").gives(M_SCHEMA, [pretty({"a": 1, "b": "x"})], {"a": 1, "b": "x"})
def r_model() -> M:
    return M(a=1)


@observed("S-261").gives(M_SCHEMA, [pretty({"a": 1, "b": "x"})], {"a": 1, "b": "x"})
def r_model_dict() -> M:
    return cast("M", {"a": 1})


@observed("S-262").gives(M_SCHEMA, [pretty({"a": 1, "b": "x"})], {"a": 1, "b": "x"})
def r_model_dict_extra() -> M:
    return cast("M", {"a": 1, "zz": 3})


@observed("S-263").fails(
    M_SCHEMA,
    "1 validation error for M\n"
    "  Input should be a valid dictionary or instance of M [type=model_type, input_type=NoneType]",
)
def r_model_none() -> M:
    return cast("M", None)


@observed("S-264").fails(
    M_SCHEMA,
    "1 validation error for M\n  Input should be a valid dictionary or instance of M [type=model_type, input_type=str]",
)
def r_model_wrong() -> M:
    return cast("M", "str")


@observed("S-265").fails(
    M_SCHEMA,
    "1 validation error for M\n  Input should be a valid dictionary or instance of M [type=model_type, input_type=Doc]",
)
def r_model_other() -> M:
    return cast("M", Doc(a=1))


@observed("S-266").gives(M_SCHEMA, [pretty({"a": 1, "b": "x"})], {"a": 1, "b": "x"})
def r_model_sub() -> M:
    return Sub(a=1)


@observed("S-267").gives(AL_SCHEMA, [pretty({"tempC": 1.5})], {"tempC": 1.5})
def r_model_alias() -> Al:
    return Al(tempC=1.5)


@observed("S-268").gives(AL_SCHEMA, [pretty({"tempC": 1.5})], {"tempC": 1.5})
def r_model_alias_dict_name() -> Al:
    return cast("Al", {"temp_c": 1.5})


@observed("S-269").gives(AL_SCHEMA, [pretty({"tempC": 1.5})], {"tempC": 1.5})
def r_model_alias_dict_alias() -> Al:
    return cast("Al", {"tempC": 1.5})


@observed("S-270").gives({**AL_SCHEMA, "title": "AlSer"}, [pretty({"tempC": 2.0})], {"tempC": 2.0})
def r_model_seralias() -> AlSer:
    return AlSer(temp_c=2)


@observed("S-271").gives(
    {
        "properties": {
            "w": {"title": "W", "type": "integer"},
            "h": {"title": "H", "type": "integer"},
            "area": {"readOnly": True, "title": "Area", "type": "integer"},
        },
        "required": ["w", "h", "area"],
        "title": "Cmp",
        "type": "object",
    },
    [pretty({"w": 2, "h": 3, "area": 6})],
    {"w": 2, "h": 3, "area": 6},
)
def r_model_computed() -> Cmp:
    return Cmp(w=2, h=3)


@observed("S-272").gives(
    {**REC_SCHEMA, "$defs": {"Rec": REC_SCHEMA}},
    [pretty({"v": 1, "kids": [{"v": 2, "kids": []}]})],
    {"v": 1, "kids": [{"v": 2, "kids": []}]},
)
def r_model_rec() -> Rec:
    return Rec(v=1, kids=[Rec(v=2)])


@observed("S-273").gives(
    {
        "additionalProperties": True,
        "properties": {"a": A},
        "required": ["a"],
        "title": "Extra",
        "type": "object",
    },
    [pretty({"a": 1, "z": 2})],
    {"a": 1, "z": 2},
)
def r_model_extra() -> Extra:
    return Extra.model_validate({"a": 1, "z": 2})


@observed("S-274").fails(
    {"additionalProperties": False, "properties": {"a": A}, "required": ["a"], "title": "Forb", "type": "object"},
    "1 validation error for Forb\nz\n  Extra inputs are not permitted [type=extra_forbidden, input_type=int]",
)
def r_model_forbid_dict() -> Forb:
    return cast("Forb", {"a": 1, "z": 2})


@observed("S-275").gives(DOC_SCHEMA, [pretty({"a": 1})], {"a": 1})
def r_model_doc() -> Doc:
    return Doc(a=1)


@observed("S-276").gives(
    wrapped({"$ref": "#/$defs/Root"}, Root={"items": INTEGER, "title": "Root", "type": "array"}),
    [pretty([1, 2])],
    {"result": [1, 2]},
)
def r_root() -> Root:
    return Root([1, 2])


@observed("S-277").gives(
    wrapped(titled(items={"$ref": "#/$defs/M"}, type="array"), M=M_SCHEMA),
    [pretty({"a": 1, "b": "x"}), pretty({"a": 2, "b": "x"})],
    {"result": [{"a": 1, "b": "x"}, {"a": 2, "b": "x"}]},
)
def r_list_models() -> list[M]:
    return [M(a=1), Sub(a=2)]


@observed("S-278").gives(
    mapping({"$ref": "#/$defs/M"}, M=M_SCHEMA),
    [pretty({"k": {"a": 1, "b": "x"}})],
    {"k": {"a": 1, "b": "x"}},
)
def r_dict_models() -> dict[str, M]:
    return {"k": M(a=1)}


# --- typed dicts -----------------------------------------------------------------------------------


@observed("S-279").gives(TD_SCHEMA, [pretty({"a": 1, "b": "c"})], {"a": 1, "b": "c"})
def r_td() -> TD:
    return {"a": 1, "b": "c"}


@observed("S-280").fails(
    TD_SCHEMA,
    "1 validation error for TD\nb\n  Field required [type=missing, input_type=dict]",
)
def r_td_missing() -> TD:
    return cast("TD", {"a": 1})


@observed("S-281").gives(TD_SCHEMA, [pretty({"a": 1, "b": "c"})], {"a": 1, "b": "c"})
def r_td_extra() -> TD:
    return cast("TD", {"a": 1, "b": "c", "z": 9})


@observed("S-282").gives(
    {"properties": {"a": A, "b": {"title": "B", "type": "string"}}, "title": "TDf", "type": "object"},
    [pretty({"a": 1})],
    {"a": 1},
)
def r_tdf() -> TDf:
    return {"a": 1}


@observed("S-283").gives(
    {
        "description": "A described TD.",
        "properties": {
            "a": {"description": "first", "title": "A", "type": "integer"},
            "b": {"title": "B", "type": "string"},
        },
        "required": ["a"],
        "title": "TDn",
        "type": "object",
    },
    [pretty({"a": 1})],
    {"a": 1},
)
def r_tdn() -> TDn:
    return {"a": 1}


@observed("S-284").gives(
    {
        "description": "A described TTD.",
        "properties": {
            "a": {"description": "first", "title": "A", "type": "integer"},
            "b": {"title": "B", "type": "string"},
        },
        "required": ["a"],
        "title": "TTD",
        "type": "object",
    },
    [pretty({"a": 1})],
    {"a": 1},
)
def r_ttd() -> TTD:
    return {"a": 1}


# --- dataclasses and annotated classes -------------------------------------------------------------


@observed("S-285").gives(DC_SCHEMA, [pretty({"a": 1, "b": "x", "c": []})], {"a": 1, "b": "x", "c": []})
def r_dc() -> DC:
    return DC(a=1)


@observed("S-286").gives(DC_SCHEMA, [pretty({"a": 1, "b": "y", "c": []})], {"a": 1, "b": "y", "c": []})
def r_dc_dict() -> DC:
    return cast("DC", {"a": 1, "b": "y"})


@observed("S-287").gives(
    {
        "properties": {"a": A, "b": {"anyOf": [INTEGER, NULL], "default": None, "title": "B"}},
        "required": ["a"],
        "title": "DCo",
        "type": "object",
    },
    [pretty({"a": 1, "b": None})],
    {"a": 1, "b": None},
)
def r_dco() -> DCo:
    return DCo(a=1)


@observed("S-288").gives(
    {
        "$defs": {"DC": DC_SCHEMA},
        "properties": {
            "d": {"$ref": "#/$defs/DC"},
            "when": {"format": "date-time", "title": "When", "type": "string"},
        },
        "required": ["d", "when"],
        "title": "DCn",
        "type": "object",
    },
    [pretty({"d": {"a": 1, "b": "x", "c": []}, "when": "2024-01-02T03:04:05"})],
    {"d": {"a": 1, "b": "x", "c": []}, "when": "2024-01-02T03:04:05"},
)
def r_dcn() -> DCn:
    return DCn(DC(1), datetime.datetime(2024, 1, 2, 3, 4, 5))


@observed("S-289").gives(
    wrapped(titled(items={"$ref": "#/$defs/DC"}, type="array"), DC=DC_SCHEMA),
    [pretty({"a": 1, "b": "x", "c": []})],
    {"result": [{"a": 1, "b": "x", "c": []}]},
)
def r_list_dc() -> list[DC]:
    return [DC(1)]


@observed("S-290").gives(
    {
        "properties": {"a": A, "b": {"default": "q", "title": "B", "type": "string"}},
        "required": ["a"],
        "title": "Ann",
        "type": "object",
    },
    [pretty({"a": 3, "b": "q"})],
    {"a": 3, "b": "q"},
)
def r_ann() -> Ann:
    return Ann(3)


@observed("S-291").gives(
    {
        "properties": {"x": {"title": "X", "type": "integer"}},
        "required": ["x"],
        "title": "AnnMethod",
        "type": "object",
    },
    [pretty({"x": 1})],
    {"x": 1},
)
def r_annmethod() -> AnnMethod:
    return AnnMethod()


@observed("S-292").gives(
    wrapped(
        {"$ref": "#/$defs/NT"},
        NT={"maxItems": 2, "minItems": 2, "prefixItems": [A, {"title": "B", "type": "string"}], "type": "array"},
    ),
    [pretty([1, "x"])],
    {"result": [1, "x"]},
)
def r_nt() -> NT:
    return NT(1, "x")


# --- values whose JSON is a string, mostly ---------------------------------------------------------


@observed("S-293").gives(wrapped({"$ref": "#/$defs/Color"}, Color=COLOR_SCHEMA), ["red"], {"result": "red"})
def r_enum() -> Color:
    return Color.RED


@observed("S-294").gives(
    wrapped({"$ref": "#/$defs/IE"}, IE={"enum": [1, 2], "title": "IE", "type": "integer"}), ["1"], {"result": 1}
)
def r_intenum() -> IE:
    return IE.A


@observed("S-295").gives(
    wrapped(titled(items={"$ref": "#/$defs/Color"}, type="array"), Color=COLOR_SCHEMA),
    ["red"],
    {"result": ["red"]},
)
def r_list_enum() -> list[Color]:
    return [Color.RED]


@observed("S-296").gives(
    wrapped({"anyOf": [{"$ref": "#/$defs/Color"}, NULL]}, Color=COLOR_SCHEMA), ["red"], {"result": "red"}
)
def r_opt_enum() -> Optional[Color]:
    return Color.RED


@observed("S-297").gives(
    wrapped(titled(format="date-time", type="string")),
    ["2024-01-02T03:04:05"],
    {"result": "2024-01-02T03:04:05"},
)
def r_datetime() -> datetime.datetime:
    return datetime.datetime(2024, 1, 2, 3, 4, 5)


@observed("S-298").gives(wrapped(titled(format="date", type="string")), ["2024-01-02"], {"result": "2024-01-02"})
def r_date() -> datetime.date:
    return datetime.date(2024, 1, 2)


@observed("S-299").gives(
    wrapped(titled(anyOf=[{"format": "date-time", "type": "string"}, NULL])),
    ["2024-01-02T03:04:05Z"],
    {"result": "2024-01-02T03:04:05Z"},
)
def r_opt_datetime() -> Optional[datetime.datetime]:
    return datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)  # noqa: UP017


@observed("S-300").gives(
    wrapped(titled(format="uuid", type="string")),
    ["00000000-0000-0000-0000-000000000001"],
    {"result": "00000000-0000-0000-0000-000000000001"},
)
def r_uuid() -> uuid.UUID:
    return uuid.UUID(int=1)


@observed("S-301").gives(wrapped(titled(type="string")), ["1.10"], {"result": "1.10"})
def r_decimal() -> decimal.Decimal:
    return decimal.Decimal("1.10")


@observed("S-302").gives(wrapped(titled(format="path", type="string")), ["x"], {"result": "x"})
def r_path() -> pathlib.Path:
    return pathlib.Path("x")


@observed("S-303").gives(
    wrapped(titled(items={"format": "date", "type": "string"}, type="array")),
    ["2024-01-02"],
    {"result": ["2024-01-02"]},
)
def r_list_dt() -> list[datetime.date]:
    return [datetime.date(2024, 1, 2)]


# --- what has no schema ----------------------------------------------------------------------------


@observed("S-304").gives(None, ['"<tests.typed.return_types.NoAnn object at 0x…>"'])
def r_noannclass() -> NoAnn:
    return NoAnn()


@observed("S-305").gives(None, ['"<tests.typed.return_types.Slots object at 0x…>"'])
def r_slots() -> Slots:
    return Slots()


@observed("S-306").gives(wrapped(titled(items=INTEGER, type="array")), ["1", "2"], {"result": [1, 2]})
def r_gen() -> Iterator[int]:
    yield 1
    yield 2


@observed("S-307", returns=NOTHING).gives(None, [pretty([1, 2])])
def r_gen_noann() -> Iterator[int]:
    yield 1
    yield 2


@observed("S-308").gives(wrapped(titled(items=INTEGER, type="array")), ["1"], {"result": [1]})
async def r_agen() -> AsyncIterator[int]:
    yield 1


@observed("S-309").gives(wrapped(titled(items=INTEGER, type="array")), ["1"], {"result": [1]})
def r_generator_ann() -> Generator[int, None, None]:
    yield 1


@observed("S-310").gives(None, ['"<function r_callable.<locals>.<lambda> at 0x…>"'])
def r_callable() -> Callable[[int], int]:
    return lambda x: x


# --- content blocks, images, sounds ----------------------------------------------------------------


@observed("S-311").gives(None, ["t"])
def r_textcontent() -> TextContent:
    return TextContent(type="text", text="t")


@observed("S-312").gives(
    None,
    [{"_meta": {"k": 1}, "annotations": {"audience": ["user"], "priority": 0.5}, "text": "t", "type": "text"}],
)
def r_textcontent_meta() -> TextContent:
    return TextContent(type="text", text="t", annotations=Annotations(audience=["user"], priority=0.5), _meta={"k": 1})


@observed("S-313").gives(None, [{"data": "QQ==", "mimeType": "image/png", "type": "image"}])
def r_imagecontent() -> ImageContent:
    return ImageContent(type="image", data="QQ==", mime_type="image/png")


@observed("S-314").gives(None, ["t", {"data": "QQ==", "mimeType": "image/png", "type": "image"}])
def r_list_content() -> list[TextContent | ImageContent]:
    return [TextContent(type="text", text="t"), ImageContent(type="image", data="QQ==", mime_type="image/png")]


@observed("S-315").gives(None, [{"name": "n", "type": "resource_link", "uri": "a://b"}])
def r_resourcelink() -> ResourceLink:
    return ResourceLink(name="n", uri="a://b")


@observed("S-316").gives(
    None, [{"resource": {"mimeType": "text/plain", "text": "x", "uri": "a://b"}, "type": "resource"}]
)
def r_embedded() -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri="a://b", text="x", mime_type="text/plain"))


@observed("S-317").gives(None, ["plain"])
def r_contentblock_union() -> str | TextContent:
    return "plain"


@observed("S-318").gives(None, [])
def r_opt_content() -> Optional[TextContent]:
    return None


@observed("S-319").gives(None, [pretty({"a": {"type": "text", "text": "t"}})])
def r_dict_content() -> dict[str, TextContent]:
    return {"a": TextContent(type="text", text="t")}


@observed("S-320").gives(None, [{"data": "cG5n", "mimeType": "image/png", "type": "image"}])
def r_image() -> Image:
    return Image(data=b"png")


@observed("S-321").gives(None, [{"data": "ag==", "mimeType": "image/jpeg", "type": "image"}])
def r_image_jpeg() -> Image:
    return Image(data=b"j", format="JPEG")


@observed("S-322").gives(None, [{"data": "YQ==", "mimeType": "audio/wav", "type": "audio"}])
def r_audio() -> Audio:
    return Audio(data=b"a")


@observed("S-323").gives(None, [{"data": "YQ==", "mimeType": "audio/mpeg", "type": "audio"}])
def r_audio_mp3() -> Audio:
    return Audio(data=b"a", format="mp3")


@observed("S-324", returns=list).gives(
    None,
    [
        "text",
        {"data": "cA==", "mimeType": "image/png", "type": "image"},
        pretty({"a": 1}),
        "tc",
        "5",
        "null",
        {"data": "eg==", "mimeType": "audio/wav", "type": "audio"},
        pretty([1, [2]]),
    ],
)
def r_mixed_list() -> list[object]:
    return [
        "text",
        Image(data=b"p"),
        {"a": 1},
        TextContent(type="text", text="tc"),
        5,
        None,
        Audio(data=b"z"),
        [1, [2]],
    ]


@observed("S-325", returns=NOTHING).gives(
    None,
    ["text", {"data": "cA==", "mimeType": "image/png", "type": "image"}, pretty({"a": 1, "b": "x"}), "cmF3"],
)
def r_mixed_noann() -> object:
    return ["text", Image(data=b"p"), M(a=1), b"raw"]


@observed("S-326").gives(None, ["a", {"data": "cA==", "mimeType": "image/png", "type": "image"}])
def r_list_str_image() -> list[str | Image]:
    return ["a", Image(data=b"p", format="png")]


@observed("S-327").crashes()
def r_image_missing() -> Image:
    return Image(path="/nonexistent.png")


@observed("S-328").crashes(mapping(True))
def r_dict_with_image() -> dict[str, Any]:
    return {"img": Image(data=b"p")}


# --- results built by hand -------------------------------------------------------------------------


@observed("S-329").gives(None, ["x"], {"a": 1}, meta={"m": 1})
def r_ctr() -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text="x")], structured_content={"a": 1}, _meta={"m": 1})


@observed("S-330", returns=NOTHING).gives(None, [], {"a": 1}, is_error=True)
def r_ctr_noann() -> object:
    return CallToolResult(content=[], structured_content={"a": 1}, is_error=True)


# What is no object does not exist for the revisions that shake hands.
@observed("S-331").gives(None, [], [1, 2], structured_before_2026=ABSENT)
def r_ctr_list_structured() -> CallToolResult:
    return CallToolResult(content=[], structured_content=[1, 2])


@observed("S-332").gives(M_SCHEMA, ["x"], {"a": 1})
def r_ctr_ann_ok() -> Annotated[CallToolResult, M]:
    return CallToolResult(content=[TextContent(type="text", text="x")], structured_content={"a": 1})


@observed("S-333").fails(
    M_SCHEMA,
    "1 validation error for M\na\n  Field required [type=missing, input_type=dict]",
)
def r_ctr_ann_bad() -> Annotated[CallToolResult, M]:
    return CallToolResult(content=[], structured_content={"zz": 1})


@observed("S-334").gives(M_SCHEMA, ["boom"], is_error=True)
def r_ctr_ann_err() -> Annotated[CallToolResult, M]:
    return CallToolResult(content=[TextContent(type="text", text="boom")], is_error=True)


# What an author puts in by hand is JSON already, and is read as JSON.
@observed("S-335").fails(
    M_SCHEMA,
    "1 validation error for M\n  Input should be an object [type=model_type, input_type=NoneType]",
)
def r_ctr_ann_none() -> Annotated[CallToolResult, M]:
    return CallToolResult(content=[])


@observed("S-336").gives(wrapped(titled(type="integer")), [], {"result": 1})
def r_ctr_ann_int() -> Annotated[CallToolResult, int]:
    return CallToolResult(content=[], structured_content={"result": 1})


@observed("S-337").gives(wrapped(titled(items=INTEGER, type="array")), [], {"result": [1]})
def r_ctr_ann_list() -> Annotated[CallToolResult, list[int]]:
    return CallToolResult(content=[], structured_content={"result": [1]})


@observed("S-338").gives(M_SCHEMA, [pretty({"a": 1, "b": "x"})], {"a": 1, "b": "x"})
def r_ctr_ann_noncTR() -> Annotated[CallToolResult, M]:
    return cast("CallToolResult", M(a=1))


@observed("S-339").refused(f"Function r_ctr_opt: {IN_UNION}")
def r_ctr_opt() -> Optional[CallToolResult]:
    return None


@observed("S-340").refused(f"Function r_ctr_union: {IN_UNION}")
def r_ctr_union() -> CallToolResult | str:
    return "x"


@observed("S-341").refused(f"Function r_list_ctr: {IN_UNION}")
def r_list_ctr() -> list[CallToolResult]:
    return [CallToolResult(content=[])]


# --- annotations that stand for others -------------------------------------------------------------


@observed("S-342", returns=T, arguments={"x": 1}).gives(wrapped(titled()), ["1"], {"result": 1})
def r_typevar(x: int) -> int:
    return x


@observed("S-343", returns="M").gives(M_SCHEMA, [pretty({"a": 1, "b": "x"})], {"a": 1, "b": "x"})
def r_selfref() -> M:
    return M(a=1)


@observed("S-344", returns="Nope").refused_naming("r_badforward", "Nope")
def r_badforward() -> int:
    return 1


# --- structured output demanded, or switched off ---------------------------------------------------


@observed("S-345", returns=NOTHING, structured_output=True).refused(
    "Function so_noann: return annotation required for structured output"
)
def so_noann() -> object:
    return 1


@observed("S-346", structured_output=True).refused(
    "Function so_noannclass: return type <class 'tests.typed.return_types.NoAnn'>"
    " is not serializable for structured output"
)
def so_noannclass() -> NoAnn:
    return NoAnn()


@observed("S-347", structured_output=True).refused(
    f"Function so_image: return type {Image!r} is not serializable for structured output"
)
def so_image() -> Image:
    return Image(data=b"p")


# The block itself is the content; demanded, its members are the structured data as well.
@observed("S-348", structured_output=True).gives(
    {
        "properties": {"type": {"const": "text"}, "text": {"title": "Text", "type": "string"}},
        "title": "TextContent",
        "type": "object",
    },
    ["t"],
    {"type": "text", "text": "t"},
    has_more_in_schema=True,
)
def so_text() -> TextContent:
    return TextContent(type="text", text="t")


@observed("S-349", structured_output=True).refused(
    "Function so_any: return type typing.Any is not serializable for structured output"
)
def so_any() -> Any:
    return {"a": 1}


@observed("S-350", structured_output=True).gives(None, [])
def so_ctr() -> CallToolResult:
    return CallToolResult(content=[])


@observed("S-351", structured_output=True).refused(
    "Function so_callable: return type collections.abc.Callable[[int], int] is not serializable for structured output"
)
def so_callable() -> Callable[[int], int]:
    return lambda x: x


@observed("S-352", structured_output=True).gives(wrapped(titled(items=INTEGER, type="array")), ["1"], {"result": [1]})
def so_gen() -> Iterator[int]:
    yield 1


@observed("S-353", structured_output=False).gives(None, [pretty({"a": 1, "b": "x"})])
def sf_model() -> M:
    return M(a=1)


@observed("S-354", structured_output=False).gives(None, ["1", "2"])
def sf_list() -> list[int]:
    return [1, 2]


@observed("S-355", structured_output=False).gives(None, ["anything"])
def sf_wrong() -> M:
    return cast("M", "anything")


@observed("S-356", structured_output=False).gives(None, ['"<tests.typed.return_types.NoAnn object at 0x…>"'])
def sf_noannclass() -> NoAnn:
    return NoAnn()


@observed("S-357", structured_output=False).gives(None, [pretty({"a": 1})])
def sf_dict() -> dict[str, int]:
    return {"a": 1}


# --- more types ------------------------------------------------------------------------------------


@observed("S-358").gives(ST_SCHEMA, [pretty({"a": 1, "b": "x"})], {"a": 1, "b": "x"})
def x_struct() -> St:
    return St(1)


@observed("S-359").gives(
    wrapped(titled(items={"$ref": "#/$defs/St"}, type="array"), St=ST_SCHEMA),
    [pretty({"a": 1, "b": "x"})],
    {"result": [{"a": 1, "b": "x"}]},
)
def x_list_struct() -> list[St]:
    return [St(1)]


@observed("S-360").gives({**A_AND_B, "title": "At"}, [pretty({"a": 1, "b": "x"})], {"a": 1, "b": "x"})
def x_attrs() -> At:
    return At(1)


@observed("S-361").gives({**A_AND_B, "title": "PDC"}, [pretty({"a": 1, "b": "x"})], {"a": 1, "b": "x"})
def x_pdc() -> PDC:
    return PDC(1)


@observed("S-362").gives(
    {
        "properties": {"items": {"items": INTEGER, "title": "Items", "type": "array"}, "next": NEXT},
        "required": ["items"],
        "title": "Page[int]",
        "type": "object",
    },
    [pretty({"items": [1], "next": None})],
    {"items": [1], "next": None},
)
def x_generic() -> Page[int]:
    return Page[int](items=[1])


@observed("S-363").gives(
    {
        "$defs": {"Dog": DOG_SCHEMA},
        "properties": {"items": {"items": {"$ref": "#/$defs/Dog"}, "title": "Items", "type": "array"}, "next": NEXT},
        "required": ["items"],
        "title": "Page[Dog]",
        "type": "object",
    },
    [pretty({"items": [{"kind": "dog", "n": 1}], "next": None})],
    {"items": [{"kind": "dog", "n": 1}], "next": None},
)
def x_generic_m() -> Page[Dog]:
    return Page[Dog](items=[Dog(n=1)])


@observed("S-364").fails(
    {"properties": {"a": A}, "required": ["a"], "title": "Proto", "type": "object"},
    "1 validation error for Proto\na\n  Field required [type=missing, input_type=dict]",
)
def x_proto() -> Proto:
    return cast("Proto", Base())


@observed("S-365").gives(wrapped(titled(type="integer")), ["4"], {"result": 4})
def x_newtype() -> UserId:
    return UserId(4)


@observed("S-366").gives(
    wrapped({"$ref": "#/$defs/Alias"}, Alias={"items": INTEGER, "type": "array"}), ["1"], {"result": [1]}
)
def x_alias() -> Alias:
    return [1]


@observed("S-367").gives(
    wrapped(
        titled(
            discriminator={"mapping": {"cat": "#/$defs/Cat", "dog": "#/$defs/Dog"}, "propertyName": "kind"},
            oneOf=[{"$ref": "#/$defs/Dog"}, {"$ref": "#/$defs/Cat"}],
        ),
        Cat=CAT_SCHEMA,
        Dog=DOG_SCHEMA,
    ),
    [pretty({"kind": "cat", "m": "z"})],
    {"result": {"kind": "cat", "m": "z"}},
)
def x_disc() -> Annotated[Union[Dog, Cat], Field(discriminator="kind")]:
    return Cat(m="z")


@observed("S-368").gives(NICE_SCHEMA, [pretty({"a": 1})], {"a": 1})
def x_cfg() -> Cfg:
    return Cfg(a=1)


@observed("S-369").gives(
    {
        "properties": {"x": {"title": "X", "type": "integer"}, "y": {"title": "Y", "type": "string"}},
        "required": ["x", "y"],
        "title": "Child",
        "type": "object",
    },
    [pretty({"x": 1, "y": "b"})],
    {"x": 1, "y": "b"},
)
def x_child() -> Child:
    return Child()


@observed("S-370").gives(
    {"properties": {"a": {"default": 1, "title": "A", "type": "integer"}}, "title": "Excl", "type": "object"},
    [pretty({"a": 1})],
    {"a": 1},
)
def x_excl() -> Excl:
    return Excl()


@observed("S-371").gives(NONEM_SCHEMA, [pretty({"a": None, "b": None})], {"a": None, "b": None})
def x_nonem() -> NoneM:
    return NoneM()


@observed("S-372").gives(
    wrapped(titled(items={"$ref": "#/$defs/NoneM"}, type="array"), NoneM=NONEM_SCHEMA),
    [pretty({"a": 1, "b": None})],
    {"result": [{"a": 1, "b": None}]},
)
def x_nonem_list() -> list[NoneM]:
    return [NoneM(a=1)]


# --- containers in containers ----------------------------------------------------------------------


@observed("S-373").gives(mapping({"anyOf": [INTEGER, NULL]}), [pretty({"a": None})], {"a": None})
def x_dict_none() -> dict[str, Optional[int]]:
    return {"a": None}


@observed("S-374").gives(
    wrapped(titled(anyOf=[{"additionalProperties": INTEGER, "type": "object"}, NULL])),
    [pretty({"a": 1})],
    {"result": {"a": 1}},
)
def x_dict_opt() -> Optional[dict[str, int]]:
    return {"a": 1}


@observed("S-375").gives(
    wrapped(titled(items={"additionalProperties": INTEGER, "type": "object"}, type="array")),
    [pretty({"a": 1}), pretty({"b": 2})],
    {"result": [{"a": 1}, {"b": 2}]},
)
def x_list_dict() -> list[dict[str, int]]:
    return [{"a": 1}, {"b": 2}]


@observed("S-376").gives(
    wrapped(titled(items={"items": {"$ref": "#/$defs/Dog"}, "type": "array"}, type="array"), Dog=DOG_SCHEMA),
    [pretty([{"kind": "dog", "n": 1}]), pretty([{"kind": "dog", "n": 2}])],
    {"result": [[{"kind": "dog", "n": 1}], [{"kind": "dog", "n": 2}]]},
)
def x_list_list_model() -> list[list[Dog]]:
    return [[Dog(n=1)], [Dog(n=2)]]


@observed("S-377").gives(wrapped(titled(items=BASE64, type="array")), ["YQ=="], {"result": ["YQ=="]})
def x_list_bytes() -> list[bytes]:
    return [b"a"]


@observed("S-378").gives(mapping(BASE64), [pretty({"a": "YQ=="})], {"a": "YQ=="})
def x_dict_bytes() -> dict[str, bytes]:
    return {"a": b"a"}


@observed("S-379").gives(
    mapping({"format": "date-time", "type": "string"}),
    [pretty({"a": "2024-01-02T00:00:00"})],
    {"a": "2024-01-02T00:00:00"},
)
def x_dict_dt() -> dict[str, datetime.datetime]:
    return {"a": datetime.datetime(2024, 1, 2)}


# --- values that nearly fit ------------------------------------------------------------------------


@observed("S-380").gives(wrapped(titled(format="duration", type="string")), ["PT1M30S"], {"result": "PT1M30S"})
def x_timedelta() -> datetime.timedelta:
    return datetime.timedelta(seconds=90)


@observed("S-381").gives(wrapped(titled(type="string")), [""], {"result": ""})
def x_str_empty() -> str:
    return ""


@observed("S-382").gives(wrapped(titled(items=STRING, type="array")), ["", "a"], {"result": ["", "a"]})
def x_list_strempty() -> list[str]:
    return ["", "a"]


@observed("S-383").gives(wrapped(titled(type="string")), ["q"], {"result": "q"})
def x_str_subclass() -> str:
    class S(str):
        __slots__ = ()

    return S("q")


@observed("S-384").gives(wrapped(titled(type="integer")), ["1"], {"result": 1})
def x_boolint() -> int:
    return True


@observed("S-385").gives(wrapped(titled(type="number")), ["3.0"], {"result": 3.0})
def x_float_int() -> float:
    return 3


@observed("S-386").gives(wrapped(titled(type="integer")), ["3"], {"result": 3})
def x_int_float() -> int:
    return cast("int", 3.0)


@observed("S-387").gives(wrapped(titled(type="integer")), ["5"], {"result": 5})
def x_coro() -> Awaitable[int]:
    async def later() -> int:
        return 5

    return later()


@observed("S-388", returns=NOTHING).gives(None, ["5"])
def x_coro_noann() -> object:
    async def later() -> int:
        return 5

    return later()


@observed("S-389").fails(
    wrapped(titled(type="string")),
    "1 validation error for x_excOutput\nresult\n"
    "  Input should be a valid string [type=string_type, input_type=ValueError]",
)
def x_exc() -> str:
    return cast("str", ValueError("boom"))


@observed("S-390", returns=type).gives(None, ["\"<class 'int'>\""])
def x_type() -> type[int]:
    return int


@observed("S-391").gives(wrapped(titled(type="string")), ["a\ufffdb"], {"result": "a\ufffdb"})
def x_surrogate() -> str:
    return "a\ud800b"


@observed("S-392").fails_naming(wrapped(titled(type="number")), "inf")
def x_bigfloat() -> float:
    return 1e309


@observed("S-393").gives(wrapped(titled(type="number")), ["1e-7"], {"result": 1e-07})
def x_smallfloat() -> float:
    return 1e-07


@observed("S-394").gives(wrapped(titled(items=STRING, type="array")), ["1.10"], {"result": ["1.10"]})
def x_decimal_list() -> list[decimal.Decimal]:
    return [decimal.Decimal("1.10")]


@observed("S-395").gives(wrapped(titled(anyOf=[INTEGER, STRING, NULL])), ["null"], {"result": None})
def x_union_int_none_str() -> Union[int, None, str]:  # noqa: RUF036
    return None


@observed("S-396", returns=NoReturn).gives(None, ["1"])
def x_never() -> int:
    return 1


@observed("S-397").gives(
    wrapped(titled(description="outer", minimum=1, type="integer")),
    ["1"],
    {"result": 1},
)
def x_final() -> Annotated[Annotated[int, Field(ge=1)], Field(description="outer")]:
    return 1


@observed("S-398").gives(wrapped(titled(enum=[1, 2], type="integer")), ["1"], {"result": 1})
def x_literal_int() -> Literal[1, 2]:
    return 1


@observed("S-399").fails(
    wrapped(PAIR),
    "1 validation error for x_tuple_badOutput\nresult.1\n  Field required [type=missing, input_type=tuple]",
)
def x_tuple_bad() -> tuple[int, str]:
    return cast("tuple[int, str]", (1,))


@observed("S-400").gives(wrapped(PAIR), ["1", "a"], {"result": [1, "a"]})
def x_tuple_list() -> tuple[int, str]:
    return cast("tuple[int, str]", [1, "a"])


@observed("S-401").gives(wrapped(titled(items=INTEGER, type="array")), ["1", "2"], {"result": [1, 2]})
def x_list_tuple() -> list[int]:
    return cast("list[int]", (1, 2))


@observed("S-402").gives(wrapped(titled(items=INTEGER, type="array")), ["1", "2"], {"result": [1, 2]})
def x_list_gen() -> list[int]:
    return cast("list[int]", (i for i in (1, 2)))


@observed("S-403").fails(
    wrapped(titled(items=STRING, type="array")),
    "1 validation error for x_list_strinsteadOutput\nresult\n"
    "  Input should be a valid list [type=list_type, input_type=str]",
)
def x_list_strinstead() -> list[str]:
    return cast("list[str]", "abc")


@observed("S-404").fails(
    mapping(INTEGER),
    "1 validation error for x_dict_modelDictOutput\n"
    "  Input should be a valid dictionary [type=dict_type, input_type=Dog]",
)
def x_dict_model() -> dict[str, int]:
    return cast("dict[str, int]", Dog(n=1))


@observed("S-405").fails(
    mapping(INTEGER),
    "1 validation error for x_dict_intkeysDictOutput\n1.[key]\n"
    "  Input should be a valid string [type=string_type, input_type=int]",
)
def x_dict_intkeys() -> dict[str, int]:
    return cast("dict[str, int]", {1: 2})


@observed("S-406").fails(
    DOG_SCHEMA,
    "1 validation error for Dog\n"
    "  Input should be a valid dictionary or instance of Dog"
    " [type=model_type, input_type=str]",
)
def x_model_json() -> Dog:
    return cast("Dog", '{"n":1}')


@observed("S-407").gives(
    wrapped({"anyOf": [{"$ref": "#/$defs/Dog"}, NULL]}, Dog=DOG_SCHEMA),
    ["null"],
    {"result": None},
)
def x_model_none_block() -> Optional[Dog]:
    return None


# A report has the title that the class gives to its schema.
@observed("S-408").fails(
    NICE_SCHEMA,
    "1 validation error for Nice\n"
    "  Input should be a valid dictionary or instance of Cfg [type=model_type, input_type=Base]",
)
def x_model_attrs() -> Cfg:
    return cast("Cfg", Base())


@observed("S-409").gives(
    {"additionalProperties": INTEGER, "title": "RootModel[dict[str, int]]", "type": "object"},
    [pretty({"a": 1})],
    {"a": 1},
)
def x_rm_obj() -> RootModel[dict[str, int]]:
    return RootModel[dict[str, int]]({"a": 1})


# --- more of what is promised nowhere --------------------------------------------------------------


@observed("S-410").gives(None, [pretty({"kind": "dog", "n": 1})])
def x_any_model() -> Any:
    return Dog(n=1)


@observed("S-411").gives(None, ["1", "a"])
def x_any_list() -> Any:
    return [1, "a"]


@observed("S-412").gives(None, [])
def x_any_none() -> Any:
    return None


@observed("S-413", returns=NOTHING).gives(None, [pretty({"kind": "dog", "n": 1})])
def x_noann_model() -> object:
    return Dog(n=1)


@observed("S-414", returns=NOTHING).gives(None, ["/w=="])
def x_noann_bytes() -> object:
    return b"\xff"


@observed("S-415", returns=NOTHING).gives(None, ["2024-01-02T00:00:00"])
def x_noann_dt() -> object:
    return datetime.datetime(2024, 1, 2)


@observed("S-416", returns=NOTHING).gives(None, ["1.5"])
def x_noann_float() -> object:
    return 1.5


@observed("S-417", returns=NOTHING).gives(None, ["true"])
def x_noann_bool() -> object:
    return True


@observed("S-418", returns=NOTHING).gives(None, [pretty({"a": 1, "b": "x"})])
def x_noann_dc() -> object:
    return PDC(1)


@observed("S-419", returns=NOTHING).gives(None, [pretty([1])])
def x_noann_set() -> object:
    return {1}


@observed("S-420", returns=NOTHING).gives(None, [pretty({"1": 2, "None": 3})])
def x_noann_nonstrkeys() -> object:
    return {1: 2, None: 3}


@observed("S-421", returns=NOTHING).gives(None, ['"Base()"'])
def x_noann_obj() -> object:
    return Base()


@observed("S-422", returns=NOTHING).crashes()
def x_noann_cyc() -> object:
    a: list[object] = []
    a.append(a)
    return a


@observed("S-423", returns=NOTHING).crashes()
def x_noann_cycd() -> object:
    a: dict[str, object] = {}
    a["a"] = a
    return a


@observed("S-424", returns=NOTHING).crashes()
def x_deep() -> object:
    a: list[object] = []
    for _ in range(2000):
        a = [a]
    return a


# --- more content blocks ---------------------------------------------------------------------------


@observed("S-425").gives(None, [])
def x_text_list_meta() -> list[TextContent]:
    return []


@observed("S-426").gives(None, ["a"])
def x_seq_content() -> Sequence[TextContent]:
    return [TextContent(text="a")]


@observed("S-427").gives(None, ["a", {"data": "QQ==", "mimeType": "image/png", "type": "image"}])
def x_tuple_content() -> tuple[str, ImageContent]:
    return ("a", ImageContent(data="QQ==", mime_type="image/png"))


@observed("S-428").gives(None, ["a"])
def x_iter_content() -> Iterable[TextContent]:
    return [TextContent(text="a")]


@observed("S-429", returns=NOTHING).gives(None, ["a"])
def x_noann_block() -> object:
    return TextContent(text="a")


def file_named(name: str) -> pathlib.Path:
    """A file of one byte, gone when the interpreter ends."""
    folder = tempfile.mkdtemp()
    path = pathlib.Path(folder, name)
    path.write_bytes(b"w")

    def remove() -> None:
        path.unlink()
        pathlib.Path(folder).rmdir()

    atexit.register(remove)
    return path


@observed("S-430", returns=NOTHING).gives(None, [{"data": "dw==", "mimeType": "image/webp", "type": "image"}])
def x_img_path() -> object:
    return Image(path=file_named("picture.webp"))


@observed("S-431", returns=NOTHING).gives(
    None, [{"data": "dw==", "mimeType": "application/octet-stream", "type": "image"}]
)
def x_img_unknown() -> object:
    return Image(path=file_named("picture.zzz"))

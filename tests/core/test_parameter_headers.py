"""Which tool parameters are mirrored in HTTP headers: the marks in a schema, and marks that break the rules."""

from __future__ import annotations

import copy
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from mcp_core import Client, RequestContext, Server
from mcp_core.client import Mode
from mcp_core.parameter_headers import MAX_NAME, InvalidHeaderAnnotation, parameter_headers
from mcp_core.types import ListToolsResult, PaginatedRequestParams, Tool
from mcp_typed import InvalidSignature, MCPServer

either_era = pytest.mark.parametrize("mode", ["auto", "legacy"])


def marked(name: Any, kind: Any = "string", **more: Any) -> dict[str, Any]:
    """A property with a mark."""
    return {"type": kind, "x-mcp-header": name, **more}


def properties(**shown: Any) -> dict[str, Any]:
    """An object schema."""
    return {"type": "object", "properties": shown}


# --- what is marked ------------------------------------------------------------------------------------


@pytest.mark.requirement("R-HTTP-20")
@pytest.mark.requirement("R-HTTP-21")
@pytest.mark.parametrize(
    ("schema", "headers"),
    [
        pytest.param({}, {}, id="no properties"),
        pytest.param({"type": "object", "properties": {}}, {}, id="empty properties"),
        pytest.param({"type": "object", "properties": None}, {}, id="properties that are none"),
        pytest.param(properties(a={"type": "string"}), {}, id="nothing marked"),
        pytest.param(properties(region=marked("Region")), {("region",): "Region"}, id="one"),
        pytest.param(
            properties(a=marked("A"), b=marked("B", "integer"), c=marked("C", "boolean"), d={"type": "string"}),
            {("a",): "A", ("b",): "B", ("c",): "C"},
            id="each type that may be marked",
        ),
        pytest.param(
            properties(place=properties(city=marked("City"), deep=properties(x=marked("X")))),
            {("place", "city"): "City", ("place", "deep", "x"): "X"},
            id="properties of properties",
        ),
        pytest.param(
            properties(a=properties(x=marked("One")), b=properties(x=marked("Two"))),
            {("a", "x"): "One", ("b", "x"): "Two"},
            id="one property name in two places",
        ),
        pytest.param(
            properties(a=marked("!#$%&'*+-.^_`|~09azAZ")),
            {("a",): "!#$%&'*+-.^_`|~09azAZ"},
            id="every character of a header name",
        ),
        pytest.param(properties(a=marked("1")), {("a",): "1"}, id="one character"),
        pytest.param(properties(a=marked("A", enum=["x", "y"])), {("a",): "A"}, id="a choice"),
        pytest.param(
            properties(**{"x-mcp-header": marked("A")}), {("x-mcp-header",): "A"}, id="a property named like the mark"
        ),
        pytest.param(
            properties(properties=marked("A"), default=marked("B"), items=marked("C")),
            {("properties",): "A", ("default",): "B", ("items",): "C"},
            id="properties named like keywords",
        ),
        pytest.param(properties(a=True, b=marked("B")), {("b",): "B"}, id="beside a schema that is a boolean"),
    ],
)
def test_marks_are_found_by_the_path_of_their_property(schema: dict[str, Any], headers: Any) -> None:
    before = copy.deepcopy(schema)
    assert parameter_headers(schema) == headers
    assert schema == before


@pytest.mark.requirement("R-HTTP-21")
@pytest.mark.parametrize("keyword", ["default", "const", "enum", "examples"])
def test_values_in_a_schema_are_no_marks(keyword: str) -> None:
    value: Any = {"x-mcp-header": "", "properties": {"a": {"x-mcp-header": "B"}}}
    shown = {"type": "object", keyword: value if keyword in ("default", "const") else [value]}
    assert parameter_headers(properties(a=shown, b=marked("B"))) == {("b",): "B"}


# --- what may not be marked -------------------------------------------------------------------------------


@pytest.mark.requirement("R-HTTP-21")
@pytest.mark.parametrize(
    "name",
    ["", " ", "a b", "a:b", "a/b", "a(b)", "é", "a\n", "\na", "a\r\nX", "a\x00", "a\t", '"a"', "a,b", "[a]", "a="],
)
def test_a_mark_is_a_header_name(name: str) -> None:
    with pytest.raises(InvalidHeaderAnnotation, match=r"'place\.a': x-mcp-header must be a header name"):
        parameter_headers(properties(place=properties(a=marked(name))))


@pytest.mark.requirement("R-HTTP-21")
@pytest.mark.parametrize("name", [None, 5, True, ["A"], {"name": "A"}], ids=str)
def test_a_mark_is_text(name: Any) -> None:
    with pytest.raises(InvalidHeaderAnnotation, match="'a': x-mcp-header must be a header name"):
        parameter_headers(properties(a=marked(name)))


@pytest.mark.requirement("R-HTTP-21")
@pytest.mark.parametrize(
    "kind", ["number", "object", "array", "null", ["string"], ["string", "null"], "text", None], ids=str
)
def test_only_integers_strings_and_booleans_are_marked(kind: Any) -> None:
    with pytest.raises(
        InvalidHeaderAnnotation, match="'a': x-mcp-header is only permitted on integer/string/boolean properties"
    ):
        parameter_headers(properties(a=marked("A", kind)))


@pytest.mark.requirement("R-HTTP-21")
@pytest.mark.parametrize(
    "shown",
    [
        {"x-mcp-header": "A"},
        {"x-mcp-header": "A", "anyOf": [{"type": "string"}, {"type": "null"}]},
        {"x-mcp-header": "A", "enum": ["x"]},
        {"x-mcp-header": "A", "$ref": "#/$defs/A"},
    ],
    ids=["no type", "optional", "a choice without a type", "a reference"],
)
def test_a_property_without_a_type_is_not_marked(shown: dict[str, Any]) -> None:
    with pytest.raises(
        InvalidHeaderAnnotation, match="'a': x-mcp-header is only permitted on integer/string/boolean properties"
    ):
        parameter_headers({**properties(a=shown), "$defs": {"A": {"type": "string"}}})


@pytest.mark.requirement("R-HTTP-21")
@pytest.mark.parametrize(("one", "other"), [("Region", "Region"), ("Region", "REGION"), ("x-a", "X-A")])
def test_a_header_belongs_to_one_property(one: str, other: str) -> None:
    for schema in (
        properties(a=marked(one), b=marked(other)),
        properties(a=properties(b=marked(one)), b=marked(other, "integer")),
    ):
        with pytest.raises(InvalidHeaderAnnotation, match=f"'b': x-mcp-header '{other}' is taken by another property"):
            parameter_headers(schema)


MARKED = properties(a=marked("A"))
NOT_REACHED = "x-mcp-header is only permitted on properties reached from the root through properties alone"


@pytest.mark.requirement("R-HTTP-21")
@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({**properties(), "x-mcp-header": "A"}, id="the root"),
        pytest.param(properties(a={"type": "array", "items": marked("A")}), id="items"),
        pytest.param(properties(a={"type": "array", "prefixItems": [marked("A")]}), id="prefixItems"),
        pytest.param(properties(a={"anyOf": [marked("A"), {"type": "null"}]}), id="anyOf"),
        pytest.param({**properties(), "oneOf": [MARKED]}, id="oneOf"),
        pytest.param({**properties(), "allOf": [MARKED]}, id="allOf"),
        pytest.param({**properties(), "not": MARKED}, id="not"),
        pytest.param({**properties(), "if": MARKED, "then": {}}, id="if"),
        pytest.param({**properties(), "then": MARKED}, id="then"),
        pytest.param({**properties(), "else": MARKED}, id="else"),
        pytest.param({**properties(), "additionalProperties": marked("A")}, id="additionalProperties"),
        pytest.param({**properties(), "patternProperties": {"^a": marked("A")}}, id="patternProperties"),
        pytest.param({**properties(), "dependentSchemas": {"a": MARKED}}, id="dependentSchemas"),
        pytest.param({**properties(a={"$ref": "#/$defs/A"}), "$defs": {"A": MARKED}}, id="$defs"),
        pytest.param({**properties(a={"$ref": "#/definitions/A"}), "definitions": {"A": MARKED}}, id="definitions"),
        pytest.param(properties(a={"type": "array", "items": properties(b=marked("A"))}), id="properties below items"),
        pytest.param(properties(ok=marked("B"), a={"type": "array", "items": marked("A")}), id="beside one that may"),
    ],
)
def test_marks_are_reached_through_properties_alone(schema: dict[str, Any]) -> None:
    with pytest.raises(
        InvalidHeaderAnnotation, match="only permitted on properties reached from the root through properties alone"
    ):
        parameter_headers(schema)


# --- marks of tools ------------------------------------------------------------------------------------------


def header(name: Any) -> Any:
    """HeaderParameterCache a parameter."""
    return Field(json_schema_extra={"x-mcp-header": name})


@pytest.mark.requirement("R-HTTP-20")
@either_era
async def test_a_typed_tool_shows_its_marks(mode: Mode) -> None:
    mcp = MCPServer("marks")

    @mcp.tool()
    def query(
        region: Annotated[str, header("Region")],
        level: Annotated[Literal["low", "high"], header("Level")],
        limit: Annotated[int, header("Limit")] = 5,
        dry: Annotated[bool, header("Dry-Run")] = False,
        text: str = "",
    ) -> str:
        return region

    async with Client(mcp, mode=mode) as client:
        (tool,) = (await client.list_tools()).tools
        assert (await client.call_tool("query", {"region": "eu", "level": "low"})).structured_content == {
            "result": "eu"
        }
    marks = {name: shown.get("x-mcp-header") for name, shown in tool.input_schema["properties"].items()}
    assert marks == {"region": "Region", "level": "Level", "limit": "Limit", "dry": "Dry-Run", "text": None}
    assert parameter_headers(tool.input_schema) == {
        ("region",): "Region",
        ("level",): "Level",
        ("limit",): "Limit",
        ("dry",): "Dry-Run",
    }


@pytest.mark.requirement("R-HTTP-20")
@either_era
async def test_a_schema_made_by_hand_is_shown_as_it_is(mode: Mode) -> None:
    schema = properties(place=properties(city=marked("City")))

    async def list_tools(ctx: RequestContext, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="by_hand", input_schema=schema)])

    async with Client(Server("marks", on_list_tools=list_tools), mode=mode) as client:
        (tool,) = (await client.list_tools()).tools
    assert tool.input_schema == schema
    assert parameter_headers(tool.input_schema) == {("place", "city"): "City"}


class Place(BaseModel):
    """Where."""

    city: Annotated[str, header("City")]


def fraction(share: Annotated[float, header("Share")]) -> float:
    return share


def optional(region: Annotated[str | None, header("Region")] = None) -> None:
    return None


def unnamed(region: Annotated[str, header("")]) -> None:
    return None


def spaced(region: Annotated[str, header("The Region")]) -> None:
    return None


def taken(region: Annotated[str, header("Region")], place: Annotated[str, header("REGION")]) -> None:
    return None


def listed(regions: Annotated[list[Annotated[str, header("Region")]], "Several"]) -> None:
    return None


def referenced(place: Place) -> None:
    return None


@pytest.mark.requirement("R-HTTP-21")
@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        (
            fraction,
            "property 'share': x-mcp-header is only permitted on integer/string/boolean properties (got 'number')",
        ),
        (
            optional,
            "property 'region': x-mcp-header is only permitted on integer/string/boolean properties (got None)",
        ),
        (unnamed, "property 'region': x-mcp-header must be a header name (got '')"),
        (spaced, "property 'region': x-mcp-header must be a header name (got 'The Region')"),
        (taken, "property 'place': x-mcp-header 'REGION' is taken by another property"),
        (listed, NOT_REACHED),
        (referenced, NOT_REACHED),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_a_typed_tool_with_a_bad_mark_is_refused_when_it_is_registered(tool: Any, reason: str) -> None:
    mcp = MCPServer("marks")
    mcp.add_tool(lambda: 1, name="sound")
    with pytest.raises(InvalidSignature) as caught:
        mcp.add_tool(tool)
    assert str(caught.value) == f"Tool {tool.__name__!r} has an invalid x-mcp-header annotation: {reason}"
    async with Client(mcp) as client:
        assert [shown.name for shown in (await client.list_tools()).tools] == ["sound"]


@pytest.mark.requirement("R-HTTP-21")
async def test_a_mark_in_a_model_is_reached_where_the_schema_has_no_references() -> None:
    mcp = MCPServer("marks", inline_refs=True)
    mcp.add_tool(referenced)
    async with Client(mcp) as client:
        (tool,) = (await client.list_tools()).tools
    assert parameter_headers(tool.input_schema) == {("place", "city"): "City"}


def test_the_name_of_a_header_has_a_length() -> None:
    assert parameter_headers({"properties": {"a": {"type": "string", "x-mcp-header": "H" * MAX_NAME}}})
    with pytest.raises(InvalidHeaderAnnotation) as caught:
        parameter_headers({"properties": {"a\n" * 10_000: {"type": "string", "x-mcp-header": "H" * 10**6}}})
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()

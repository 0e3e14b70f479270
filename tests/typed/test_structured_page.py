"""Structured output, example by example: what is listed, what both channels carry, in both eras.

Annotations are real objects here, as in the programs that the examples stand for, so
that each example can have a class of its own.
"""

import json
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, Optional, TypedDict, cast

import pytest
from pydantic import BaseModel, Field

from mcp_core import Client, Server
from mcp_core.client import Mode
from mcp_core.testing import RawPeer, flush_logs
from mcp_core.types import (
    Annotations,
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from mcp_typed import Audio, Image, InvalidSignature, MCPServer
from tests.core.peers import line, modern

ERAS = ["modern", "legacy"]
STAMP_KEY = "io.modelcontextprotocol/serverInfo"
STAMP = {STAMP_KEY: {"name": "Weather", "version": ""}}
REVISIONS = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]

CITY = {"title": "City", "type": "string"}
NUMBER = {"type": "number"}
WEATHER: dict[str, Any] = {
    "properties": {
        "temperature": {"title": "Temperature", "type": "number"},
        "humidity": {"title": "Humidity", "type": "number"},
        "conditions": {"title": "Conditions", "type": "string"},
    },
    "required": ["temperature", "humidity", "conditions"],
    "title": "WeatherData",
    "type": "object",
}
OVERCAST = {"temperature": 16.2, "humidity": 0.83, "conditions": "Overcast"}
OVERCAST_TEXT = '{\n  "temperature": 16.2,\n  "humidity": 0.83,\n  "conditions": "Overcast"\n}'
WARMER = {**OVERCAST, "temperature": 17.2}
WARMER_TEXT = OVERCAST_TEXT.replace("16.2", "17.2")


async def ask(mcp: MCPServer, era: str, method: str, params: dict[str, Any] | None = None) -> Any:
    """The whole answer to a request, decoded from the bytes that were sent."""
    if era == "modern":
        return json.loads(await raw(mcp, method, params))
    async with RawPeer.of(mcp.server) as peer:
        await peer.initialize()
        return await peer.call(3, method, params)


async def raw(mcp: MCPServer, method: str, params: dict[str, Any] | None = None) -> bytes:
    """The bytes that answer a 2026-07-28 request."""
    answer = await mcp.server.handle(line(modern(3, method, params)))
    assert answer is not None
    return answer


async def call(mcp: MCPServer, era: str, name: str, arguments: dict[str, Any]) -> Any:
    """The result of a call, without what only one era has."""
    result = (await ask(mcp, era, "tools/call", {"name": name, "arguments": arguments}))["result"]
    if era == "modern":
        assert result.pop("resultType") == "complete"
        assert result.pop("_meta") == STAMP
    return result


def texts(*lines: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in lines]


def good(structured: Any, *lines: str) -> dict[str, Any]:
    return {"content": texts(*lines), "structuredContent": structured, "isError": False}


def listed(name: str, description: str, properties: dict[str, Any], output: Any) -> dict[str, Any]:
    """A tool as it is listed; all its parameters are required."""
    tool: dict[str, Any] = {
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "title": f"{name}Arguments",
        },
    }
    return tool if output is None else {**tool, "outputSchema": output}


def wrapped(name: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        **more,
        "properties": {"result": {"title": "Result", **schema}},
        "required": ["result"],
        "title": f"{name}Output",
        "type": "object",
    }


# --- the examples -----------------------------------------------------------------------------


def scalar() -> MCPServer:
    mcp = MCPServer("Weather")
    readings = {"London": 17, "Cairo": 34, "Reykjavik": 4}

    @mcp.tool()
    def get_temperature(city: str) -> int:
        """Degrees Celsius, rounded."""
        return readings[city]

    return mcp


def model() -> MCPServer:
    mcp = MCPServer("Weather")

    class WeatherData(BaseModel):
        temperature: float = Field(description="Degrees Celsius.")
        humidity: float = Field(description="Relative humidity, 0 to 1.")
        conditions: str

    @mcp.tool()
    def get_weather(city: str) -> WeatherData:
        """The weather in a city."""
        return WeatherData(temperature=16.2, humidity=0.83, conditions="Overcast")

    return mcp


def typed_dict() -> MCPServer:
    mcp = MCPServer("Weather")

    class WeatherData(TypedDict):
        temperature: float
        humidity: float
        conditions: str

    @mcp.tool()
    def get_weather(city: str) -> WeatherData:
        """The weather in a city."""
        return WeatherData(temperature=16.2, humidity=0.83, conditions="Overcast")

    return mcp


def data_class() -> MCPServer:
    mcp = MCPServer("Weather")

    @dataclass
    class WeatherData:
        temperature: float
        humidity: float
        conditions: str

    @mcp.tool()
    def get_weather(city: str) -> WeatherData:
        """The weather in a city."""
        return WeatherData(temperature=16.2, humidity=0.83, conditions="Overcast")

    return mcp


def annotated_class() -> MCPServer:
    mcp = MCPServer("Weather")

    class WeatherData:
        temperature: float
        humidity: float
        conditions: str

        def __init__(self) -> None:
            self.temperature, self.humidity, self.conditions = 16.2, 0.83, "Overcast"
            self.station = "not annotated, so nobody's business"

    @mcp.tool()
    def get_weather(city: str) -> WeatherData:
        """The weather in a city."""
        return WeatherData()

    return mcp


def models() -> MCPServer:
    mcp = MCPServer("Weather")

    class WeatherData(BaseModel):
        temperature: float
        humidity: float
        conditions: str

    @mcp.tool()
    def get_forecast(city: str, days: int) -> list[WeatherData]:
        """The weather of the coming days."""
        return [WeatherData(temperature=16.2 + day, humidity=0.83, conditions="Overcast") for day in range(days)]

    return mcp


def mapping() -> MCPServer:
    mcp = MCPServer("Weather")
    readings = {"London": 16.2, "Cairo": 34.1, "Reykjavik": 4.4}

    @mcp.tool()
    def get_temperatures(cities: list[str]) -> dict[str, float]:
        """Degrees Celsius, city by city."""
        return {city: readings[city] for city in cities}

    return mcp


def upstream() -> MCPServer:
    mcp = MCPServer("Weather")
    answers = {
        "London": '{"temperature": 16.2, "conditions": "Overcast"}',
        "Cairo": '{"temperature": 16.2, "humidity": 0.83, "conditions": "Overcast"}',
    }

    class WeatherData(BaseModel):
        temperature: float
        humidity: float
        conditions: str

    @mcp.tool()
    def get_weather(city: str) -> WeatherData:
        """The weather in a city."""
        return cast("WeatherData", json.loads(answers[city]))

    return mcp


def unstructured() -> MCPServer:
    mcp = MCPServer("Weather")

    @mcp.tool(structured_output=False)
    def weather_report(city: str) -> str:
        """The weather in a city, in a sentence."""
        return f"{city}: 17 degrees, overcast, light rain easing by evening."

    return mcp


class Station:
    def __init__(self, name: str, online: bool) -> None:
        self.name = name
        self.online = online

    def __repr__(self) -> str:
        return f'<a "station" called {self.name}>'


def unannotated_class() -> MCPServer:
    mcp = MCPServer("Weather")

    @mcp.tool()
    def get_station(name: str) -> Station:
        """A weather station."""
        return Station(name=name, online=True)

    return mcp


Example = Callable[[], MCPServer]
DESCRIBED = {
    **WEATHER,
    "properties": {
        **WEATHER["properties"],
        "temperature": {"description": "Degrees Celsius.", "title": "Temperature", "type": "number"},
        "humidity": {"description": "Relative humidity, 0 to 1.", "title": "Humidity", "type": "number"},
    },
}
REPORT = "London: 17 degrees, overcast, light rain easing by evening."
LONDON = {"city": "London"}

LONDON_AND: dict[str, Any] = {"cities": ["London", "Reykjavik"]}
NO_CITIES: dict[str, Any] = {"cities": []}

EXAMPLES = [
    pytest.param(
        scalar,
        listed(
            "get_temperature",
            "Degrees Celsius, rounded.",
            {"city": CITY},
            wrapped("get_temperature", {"type": "integer"}),
        ),
        [(LONDON, good({"result": 17}, "17"))],
        id="scalar",
        marks=pytest.mark.observed("S-041"),
    ),
    pytest.param(
        model,
        listed("get_weather", "The weather in a city.", {"city": CITY}, DESCRIBED),
        [(LONDON, good(OVERCAST, OVERCAST_TEXT))],
        id="model",
        marks=pytest.mark.observed("S-044"),
    ),
    pytest.param(
        typed_dict,
        listed("get_weather", "The weather in a city.", {"city": CITY}, WEATHER),
        [(LONDON, good(OVERCAST, OVERCAST_TEXT))],
        id="typed dict",
        marks=pytest.mark.observed("S-045"),
    ),
    pytest.param(
        data_class,
        listed("get_weather", "The weather in a city.", {"city": CITY}, WEATHER),
        [(LONDON, good(OVERCAST, OVERCAST_TEXT))],
        id="dataclass",
        marks=pytest.mark.observed("S-046"),
    ),
    pytest.param(
        annotated_class,
        listed("get_weather", "The weather in a city.", {"city": CITY}, WEATHER),
        [(LONDON, good(OVERCAST, OVERCAST_TEXT))],
        id="annotated class",
        marks=pytest.mark.observed("S-049"),
    ),
    pytest.param(
        models,
        listed(
            "get_forecast",
            "The weather of the coming days.",
            {"city": CITY, "days": {"title": "Days", "type": "integer"}},
            wrapped(
                "get_forecast",
                {"items": {"$ref": "#/$defs/WeatherData"}, "type": "array"},
                **{"$defs": {"WeatherData": WEATHER}},
            ),
        ),
        [
            ({**LONDON, "days": 2}, good({"result": [OVERCAST, WARMER]}, OVERCAST_TEXT, WARMER_TEXT)),
            ({**LONDON, "days": 0}, good({"result": []}, "[]")),
        ],
        id="list of models",
        marks=[pytest.mark.observed("S-050"), pytest.mark.observed("S-051")],
    ),
    pytest.param(
        mapping,
        listed(
            "get_temperatures",
            "Degrees Celsius, city by city.",
            {"cities": {"items": {"type": "string"}, "title": "Cities", "type": "array"}},
            {"additionalProperties": NUMBER, "title": "get_temperaturesDictOutput", "type": "object"},
        ),
        [
            (
                LONDON_AND,
                good({"London": 16.2, "Reykjavik": 4.4}, '{\n  "London": 16.2,\n  "Reykjavik": 4.4\n}'),
            ),
            (NO_CITIES, good({}, "{}")),
            ({"cities": '["London"]'}, good({"London": 16.2}, '{\n  "London": 16.2\n}')),
        ],
        id="dict",
        marks=[pytest.mark.observed("S-053"), pytest.mark.observed("S-054")],
    ),
    pytest.param(
        upstream,
        listed("get_weather", "The weather in a city.", {"city": CITY}, WEATHER),
        [
            ({"city": "Cairo"}, good(OVERCAST, OVERCAST_TEXT)),
            (
                LONDON,
                {
                    "content": texts(
                        "Error executing tool get_weather: 1 validation error for WeatherData\nhumidity\n"
                        "  Field required [type=missing, input_type=dict]"
                    ),
                    "isError": True,
                },
            ),
        ],
        id="plain dict for a model",
        marks=[pytest.mark.observed("S-056"), pytest.mark.observed("S-057")],
    ),
    pytest.param(
        unstructured,
        listed("weather_report", "The weather in a city, in a sentence.", {"city": CITY}, None),
        [(LONDON, {"content": texts(REPORT), "isError": False})],
        id="opted out",
        marks=pytest.mark.observed("S-058"),
    ),
    pytest.param(
        unannotated_class,
        listed("get_station", "A weather station.", {"name": {"title": "Name", "type": "string"}}, None),
        [({"name": "north"}, {"content": texts('"<a \\"station\\" called north>"'), "isError": False})],
        id="class without annotations",
        marks=pytest.mark.observed("S-062"),
    ),
]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("example", "tool", "calls"), EXAMPLES)
async def test_an_example_on_the_wire(example: Example, tool: dict[str, Any], calls: list[Any], era: str) -> None:
    mcp = example()
    listing = await ask(mcp, era, "tools/list")
    assert listing["result"]["tools"] == [tool]
    for arguments, result in calls:
        assert await call(mcp, era, tool["name"], arguments) == result


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(("example", "tool", "calls"), EXAMPLES)
async def test_an_example_as_its_client_sees_it(
    example: Example, tool: dict[str, Any], calls: list[Any], mode: Mode
) -> None:
    async with Client(example(), mode=mode) as client:
        (seen,) = (await client.list_tools()).tools
        assert (seen.name, seen.description) == (tool["name"], tool["description"])
        assert (seen.input_schema, seen.output_schema) == (tool["inputSchema"], tool.get("outputSchema"))
        for arguments, result in calls:
            got = await client.call_tool(tool["name"], arguments)
            assert got.content == [TextContent(text=block["text"]) for block in result["content"]]
            assert got.structured_content == result.get("structuredContent")
            assert got.is_error is result["isError"]


@pytest.mark.observed("S-043")
@pytest.mark.observed("S-054")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("example", "name", "arguments"),
    [(scalar, "get_temperature", {"city": "Atlantis"}), (mapping, "get_temperatures", {"cities": ["Atlantis"]})],
)
async def test_a_missing_key_is_a_crash_and_tells_nothing(
    example: Example, name: str, arguments: dict[str, Any], era: str
) -> None:
    result = await call(example(), era, name, arguments)
    (block,) = result.pop("content")
    assert result == {"isError": True}
    assert re.fullmatch(rf"Error executing tool {name} \(error id [0-9a-f]{{8}}\)", block["text"])


# --- scalars and text ---------------------------------------------------------------------------

BYTES = {"type": "string", "format": "binary", "contentEncoding": "base64"}


@pytest.mark.observed("S-042")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("kind", "value", "schema", "text", "sent"),
    [
        (str, "été", {"type": "string"}, "été", "été"),
        (int, -17, {"type": "integer"}, "-17", -17),
        (float, 0.5, NUMBER, "0.5", 0.5),
        (bool, False, {"type": "boolean"}, "false", False),
        (bytes, b"\xfb\xef\xff", BYTES, "++//", "++//"),
        (None, None, {"type": "null"}, "null", None),
    ],
    ids=["str", "int", "float", "bool", "bytes", "None"],
)
async def test_a_scalar_is_wrapped(kind: Any, value: Any, schema: Any, text: str, sent: Any, era: str) -> None:
    def scalar() -> Any:
        return value

    scalar.__annotations__["return"] = kind
    mcp = MCPServer("Weather")
    mcp.add_tool(scalar)
    (tool,) = (await ask(mcp, era, "tools/list"))["result"]["tools"]
    assert tool["outputSchema"] == wrapped("scalar", schema)
    result = await call(mcp, era, "scalar", {})
    assert result == good({"result": sent}, text)
    assert type(result["structuredContent"]["result"]) is type(sent)


class Gauge:
    def __str__(self) -> str:
        return "the gauge"


@pytest.mark.observed("S-047")
async def test_the_text_of_a_value_is_its_json() -> None:
    mcp = MCPServer("Weather")

    @mcp.tool()
    def measured() -> dict[str, Any]:
        return {"città": "Zürich", "small": 1e-7, "list": [1, {"nil": None}], "none": [], "no": {}}

    @mcp.tool()
    def unmeasured():  # type: ignore[no-untyped-def]  # no annotation is the point here
        return {"gauge": Gauge(), "città": "Zürich"}

    assert await call(mcp, "modern", "measured", {}) == good(
        {"città": "Zürich", "small": 1e-7, "list": [1, {"nil": None}], "none": [], "no": {}},
        '{\n  "città": "Zürich",\n  "small": 1e-7,\n  "list": [\n    1,\n    {\n      "nil": null\n    }\n  ],\n'
        '  "none": [],\n  "no": {}\n}',
    )
    assert await call(mcp, "modern", "unmeasured", {}) == {
        "content": texts('{\n  "gauge": "the gauge",\n  "città": "Zürich"\n}'),
        "isError": False,
    }


@pytest.mark.observed("S-048")
@pytest.mark.parametrize("era", ERAS)
async def test_a_typed_dict_may_be_described_and_leave_keys_out(era: str) -> None:
    class Reading(TypedDict):
        """One reading of one sensor."""

        value: Annotated[float, Field(description="In degrees.")]
        note: NotRequired[str]

    mcp = MCPServer("Weather")

    @mcp.tool()
    def read(note: bool) -> Reading:
        return {"value": 1.5, "note": "dry"} if note else {"value": 1.5}

    (tool,) = (await ask(mcp, era, "tools/list"))["result"]["tools"]
    assert tool["outputSchema"] == {
        "description": "One reading of one sensor.",
        "properties": {
            "value": {"description": "In degrees.", "title": "Value", "type": "number"},
            "note": {"title": "Note", "type": "string"},
        },
        "required": ["value"],
        "title": "Reading",
        "type": "object",
    }
    assert await call(mcp, era, "read", {"note": False}) == good({"value": 1.5}, '{\n  "value": 1.5\n}')
    assert await call(mcp, era, "read", {"note": True}) == good(
        {"value": 1.5, "note": "dry"}, '{\n  "value": 1.5,\n  "note": "dry"\n}'
    )


# --- wrapping ---------------------------------------------------------------------------------------


class Tide(BaseModel):
    height: float


TIDE = {"properties": {"height": {"title": "Height", "type": "number"}}, "required": ["height"]}
TIDE_DEF = {"$defs": {"Tide": {**TIDE, "title": "Tide", "type": "object"}}}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("kind", "value", "schema", "result"),
    [
        pytest.param(
            tuple[int, str],
            (1, "a"),
            wrapped(
                "shape",
                {
                    "maxItems": 2,
                    "minItems": 2,
                    "prefixItems": [{"type": "integer"}, {"type": "string"}],
                    "type": "array",
                },
            ),
            good({"result": [1, "a"]}, "1", "a"),
            id="tuple",
            marks=pytest.mark.observed("S-052"),
        ),
        pytest.param(
            int | str,
            "z",
            wrapped("shape", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
            good({"result": "z"}, "z"),
            id="union",
            marks=pytest.mark.observed("S-052"),
        ),
        pytest.param(
            Optional[str],  # noqa: UP045 - both spellings are meant
            None,
            wrapped("shape", {"anyOf": [{"type": "string"}, {"type": "null"}]}),
            good({"result": None}, "null"),
            id="Optional, None",
            marks=pytest.mark.observed("S-052"),
        ),
        pytest.param(
            Tide | None,
            Tide(height=2),
            {
                **TIDE_DEF,
                "properties": {"result": {"anyOf": [{"$ref": "#/$defs/Tide"}, {"type": "null"}]}},
                "required": ["result"],
                "title": "shapeOutput",
                "type": "object",
            },
            good({"result": {"height": 2.0}}, '{\n  "height": 2.0\n}'),
            id="model or None",
            marks=pytest.mark.observed("S-052"),
        ),
        pytest.param(
            dict[int, float],
            {1: 2.5},
            wrapped("shape", {"additionalProperties": NUMBER, "type": "object"}),
            good({"result": {"1": 2.5}}, '{\n  "1": 2.5\n}'),
            id="dict of int",
            marks=pytest.mark.observed("S-055"),
        ),
    ],
)
async def test_what_is_no_object_is_wrapped(kind: Any, value: Any, schema: Any, result: Any, era: str) -> None:
    def shape() -> Any:
        return value

    shape.__annotations__["return"] = kind
    mcp = MCPServer("Weather")
    mcp.add_tool(shape)
    (tool,) = (await ask(mcp, era, "tools/list"))["result"]["tools"]
    assert tool["outputSchema"] == schema
    assert await call(mcp, era, "shape", {}) == result


# --- opting in and out --------------------------------------------------------------------------------


@pytest.mark.observed("S-058")
async def test_what_is_opted_out_is_not_validated() -> None:
    mcp = MCPServer("Weather")

    @mcp.tool(structured_output=False)
    def report() -> int:
        return cast("int", "seventeen")

    assert await call(mcp, "modern", "report", {}) == {"content": texts("seventeen"), "isError": False}


@pytest.mark.observed("S-059")
def test_a_schema_that_is_required_must_be_possible() -> None:
    mcp = MCPServer("Weather")

    def get_station(name: str) -> Station:
        return Station(name, True)

    def get_anything(name: str):  # type: ignore[no-untyped-def]  # no annotation is the point here
        return name

    with pytest.raises(InvalidSignature) as caught:
        mcp.tool(structured_output=True)(get_station)
    assert str(caught.value) == (
        "Function get_station: return type <class 'tests.typed.test_structured_page.Station'>"
        " is not serializable for structured output"
    )
    with pytest.raises(InvalidSignature) as caught:
        mcp.tool(structured_output=True)(get_anything)
    assert str(caught.value) == "Function get_anything: return annotation required for structured output"


@pytest.mark.observed("S-062")
async def test_a_class_without_annotations_is_told_by_lint_only(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        mcp = unannotated_class()
        await call(mcp, "modern", "get_station", {"name": "north"})
        flush_logs()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert [finding.tool for finding in mcp.lint() if finding.code == "unstructured-return"] == ["get_station"]
    assert [finding.tool for finding in model().lint() if finding.code == "unstructured-return"] == []


# --- blocks -------------------------------------------------------------------------------------------------

TEXT = TextContent(text="t")
PICTURE = ImageContent(data="QQ==", mime_type="image/png")
IMAGE = Image(data=b"A", format="png")
SOUND = Audio(data=b"A", format="wav")
TEXT_JSON = {"type": "text", "text": "t"}
PICTURE_JSON = {"type": "image", "data": "QQ==", "mimeType": "image/png"}
SOUND_JSON = {"type": "audio", "data": "QQ==", "mimeType": "audio/wav"}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("kind", "value", "content"),
    [
        pytest.param(kind, value, content, id=str(kind), marks=pytest.mark.observed(row))
        for kind, value, content, row in [
            (TextContent, TEXT, [TEXT_JSON], "S-060"),
            (ImageContent, PICTURE, [PICTURE_JSON], "S-060"),
            (Image, IMAGE, [PICTURE_JSON], "S-060"),
            (Audio, SOUND, [SOUND_JSON], "S-060"),
            (list[TextContent | ImageContent], [TEXT, PICTURE], [TEXT_JSON, PICTURE_JSON], "S-060"),
            (list[str | Image], ["t", IMAGE], [TEXT_JSON, PICTURE_JSON], "S-060"),
            (tuple[str, Audio], ("t", SOUND), [TEXT_JSON, SOUND_JSON], "S-060"),
            (Sequence[TextContent], [TEXT], [TEXT_JSON], "S-060"),
            (str | TextContent, "t", [TEXT_JSON], "S-060"),
            (Image | None, None, [], "S-060"),
            (Iterable[TextContent], [TEXT, TEXT], [TEXT_JSON, TEXT_JSON], "S-061"),
        ]
    ],
)
async def test_blocks_pass_through_without_a_schema(kind: Any, value: Any, content: Any, era: str) -> None:
    def blocks() -> Any:
        return value

    blocks.__annotations__["return"] = kind
    mcp = MCPServer("Weather")
    mcp.add_tool(blocks)
    (tool,) = (await ask(mcp, era, "tools/list"))["result"]["tools"]
    assert "outputSchema" not in tool
    assert await call(mcp, era, "blocks", {}) == {"content": content, "isError": False}


@pytest.mark.observed("S-060")
@pytest.mark.parametrize("kind", [Image, Audio, list[Image]])
def test_media_have_no_schema_to_require(kind: Any) -> None:
    def media() -> Any:
        raise AssertionError("must not run")

    media.__annotations__["return"] = kind
    with pytest.raises(InvalidSignature) as caught:
        MCPServer("Weather").add_tool(media, structured_output=True)
    assert str(caught.value) == f"Function media: return type {kind!r} is not serializable for structured output"


@pytest.mark.observed("S-061")
async def test_no_schema_of_the_protocols_own_classes_is_published() -> None:
    mcp = MCPServer("Weather")

    @mcp.tool()
    def by_name() -> dict[str, TextContent]:
        return {"a": TEXT}

    def results() -> list[CallToolResult]:
        raise AssertionError("must not run")

    (tool,) = (await ask(mcp, "modern", "tools/list"))["result"]["tools"]
    assert "outputSchema" not in tool
    with pytest.raises(InvalidSignature) as caught:
        mcp.add_tool(results)
    assert str(caught.value) == (
        "Function results: CallToolResult cannot be used in Union or Optional types."
        " To return empty results, use: CallToolResult(content=[])"
    )


# --- the envelope of a result ---------------------------------------------------------------------------------


@pytest.mark.observed("S-001")
@pytest.mark.observed("S-002")
async def test_a_modern_result_has_two_members_more() -> None:
    plain = good({"result": 17}, "17")
    params = {"name": "get_temperature", "arguments": LONDON}
    assert await ask(scalar(), "modern", "tools/call", params) == {
        "jsonrpc": "2.0",
        "id": 3,
        "result": {**plain, "resultType": "complete", "_meta": STAMP},
    }
    assert await ask(scalar(), "legacy", "tools/call", params) == {"jsonrpc": "2.0", "id": 3, "result": plain}


@pytest.mark.observed("S-003")
async def test_json_is_compact_utf_8_on_one_line() -> None:
    mcp = MCPServer("Wetter, 天気")
    said = 'é 😀 \u2028\u2029\u0085 "\\\n\r\t\0/'

    @mcp.tool()
    def say(was: str) -> dict[str, Any]:
        """Grüße: sagt, was man will."""
        return {"è": was, "list": [1, 2.5, None, True]}

    for method, params in [("tools/call", {"name": "say", "arguments": {"was": said}}), ("tools/list", None)]:
        answer = await raw(mcp, method, params)
        decoded = json.loads(answer)
        assert answer.decode() == json.dumps(decoded, ensure_ascii=False, separators=(",", ":"))
        assert b"\n" not in answer
        assert b"\r" not in answer
        if method == "tools/call":
            assert decoded["result"]["structuredContent"]["è"] == said


@pytest.mark.observed("S-004")
@pytest.mark.parametrize("era", ERAS)
async def test_a_block_has_the_members_that_were_given(era: str) -> None:
    mcp = MCPServer("Weather")

    @mcp.tool()
    def blocks() -> Any:
        marked = TextContent(text="t", annotations=Annotations(audience=["user"], priority=0.5), _meta={"k": None})
        sound = AudioContent(data="QQ==", mime_type="audio/wav")
        link = ResourceLink(name="n", uri="a://b")
        note = EmbeddedResource(resource={"uri": "a://b", "text": "x"})  # type: ignore[arg-type]
        return [TEXT, PICTURE, marked, sound, link, note]

    result = await call(mcp, era, "blocks", {})
    assert result["content"] == [
        TEXT_JSON,
        PICTURE_JSON,
        {**TEXT_JSON, "annotations": {"audience": ["user"], "priority": 0.5}, "_meta": {"k": None}},
        SOUND_JSON,
        {"type": "resource_link", "name": "n", "uri": "a://b"},
        {"type": "resource", "resource": {"uri": "a://b", "text": "x"}},
    ]


@pytest.mark.observed("S-005")
@pytest.mark.parametrize("era", ERAS)
async def test_is_error_is_always_said_and_nulls_inside_stay(era: str) -> None:
    mcp = MCPServer("Weather")

    @mcp.tool()
    def bare() -> CallToolResult:
        return CallToolResult(content=[])

    @mcp.tool()
    def nulls() -> CallToolResult:
        return CallToolResult(content=[], structured_content={"a": None, "b": [None]}, _meta={"c": None})

    @mcp.tool()
    def typed() -> dict[str, Any]:
        return {"a": None, "b": [None]}

    answer = await call(mcp, era, "bare", {})
    assert answer == {"content": [], "isError": False}
    params = {"name": "nulls"}
    result = (await ask(mcp, era, "tools/call", params))["result"]
    assert (result["isError"], result["structuredContent"]) == (False, {"a": None, "b": [None]})
    assert result["_meta"] == {"c": None, **(STAMP if era == "modern" else {})}
    result = await call(mcp, era, "typed", {})
    assert (result["isError"], result["structuredContent"]) == (False, {"a": None, "b": [None]})


@pytest.mark.observed("S-006")
async def test_a_modern_list_has_cache_hints() -> None:
    tool = listed("get_temperature", "Degrees Celsius, rounded.", {"city": CITY}, None)
    tool["outputSchema"] = wrapped("get_temperature", {"type": "integer"})
    assert (await ask(scalar(), "modern", "tools/list"))["result"] == {
        "tools": [tool],
        "resultType": "complete",
        "cacheScope": "private",
        "ttlMs": 0,
        "_meta": STAMP,
    }
    assert (await ask(scalar(), "legacy", "tools/list"))["result"] == {"tools": [tool]}


@pytest.mark.observed("S-007")
@pytest.mark.observed("S-013")
@pytest.mark.parametrize(("given", "shown"), [({}, ""), ({"version": "2.0.0"}, "2.0.0")])
async def test_every_modern_result_names_its_server(given: dict[str, str], shown: str) -> None:
    mcp = MCPServer("Bookshop", **cast("dict[str, Any]", given))
    mcp.add_tool(lambda: "x", name="x")
    for method, params in [("server/discover", None), ("tools/list", None), ("tools/call", {"name": "x"})]:
        result = (await ask(mcp, "modern", method, params))["result"]
        assert result["_meta"] == {STAMP_KEY: {"name": "Bookshop", "version": shown}}


@pytest.mark.observed("S-008")
@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"a/b": 1}, {"a/b": 1, **STAMP}),
        ({STAMP_KEY: {"name": "mine"}}, {STAMP_KEY: {"name": "mine"}}),
        ({STAMP_KEY: None}, STAMP),
        ({}, STAMP),
    ],
    ids=["further keys", "own stamp", "null", "empty"],
)
async def test_the_stamp_joins_the_meta_of_a_tool(given: dict[str, Any], shown: dict[str, Any]) -> None:
    mcp = MCPServer("Weather")

    @mcp.tool()
    def marked() -> CallToolResult:
        return CallToolResult(content=[], _meta=given)

    params = {"name": "marked"}
    assert (await ask(mcp, "modern", "tools/call", params))["result"]["_meta"] == shown
    assert (await ask(mcp, "legacy", "tools/call", params))["result"]["_meta"] == given


@pytest.mark.observed("S-009")
async def test_a_middleware_settles_the_meta_and_a_switch_drops_the_stamp() -> None:
    async def rename(ctx: Any, call_next: Any) -> Any:
        result = await call_next(ctx)
        assert isinstance(result, CallToolResult)
        assert result.meta is None
        return CallToolResult(content=result.content, _meta={STAMP_KEY: {"name": "other"}})

    mcp = scalar()
    mcp.server.middleware.append(rename)
    params = {"name": "get_temperature", "arguments": LONDON}
    result = (await ask(mcp, "modern", "tools/call", params))["result"]
    assert (result["content"], result["_meta"]) == (texts("17"), {STAMP_KEY: {"name": "other"}})

    silent = Server("Weather", send_server_info=False, on_call_tool=lambda ctx, params: CallToolResult(content=[]))
    answer = await silent.handle(line(modern(3, "tools/call", {"name": "x"})))
    assert json.loads(answer or b"")["result"] == {"content": [], "isError": False, "resultType": "complete"}


@pytest.mark.observed("S-010")
async def test_schemas_are_the_same_values_in_both_eras() -> None:
    for example in (scalar, model, models, mapping):
        (new,) = (await ask(example(), "modern", "tools/list"))["result"]["tools"]
        (old,) = (await ask(example(), "legacy", "tools/list"))["result"]["tools"]
        assert new == old
        assert new["inputSchema"]["type"] == new["outputSchema"]["type"] == "object"


@pytest.mark.observed("S-011")
async def test_discover_says_what_a_server_of_tools_has() -> None:
    result = (await ask(scalar(), "modern", "server/discover"))["result"]
    assert result.pop("capabilities")["tools"] == {"listChanged": True}
    assert result == {
        "supportedVersions": REVISIONS,
        "resultType": "complete",
        "cacheScope": "private",
        "ttlMs": 0,
        "_meta": STAMP,
    }


@pytest.mark.observed("S-012")
async def test_the_handshake_says_what_a_server_of_tools_has() -> None:
    async with RawPeer.of(scalar().server) as peer:
        result = await peer.initialize()
    # Changes are announced in this era too (P-23), so they are promised.
    assert result.pop("capabilities")["tools"] == {"listChanged": True}
    assert result == {"protocolVersion": "2025-11-25", "serverInfo": {"name": "Weather", "version": ""}}


@pytest.mark.observed("S-013")
async def test_instructions_are_told_where_there_are_any() -> None:
    mcp = MCPServer("Weather", instructions="Ask for cities.")
    assert (await ask(mcp, "modern", "server/discover"))["result"]["instructions"] == "Ask for cities."
    async with RawPeer.of(mcp.server) as peer:
        assert (await peer.initialize())["instructions"] == "Ask for cities."
    assert "instructions" not in (await ask(scalar(), "modern", "server/discover"))["result"]

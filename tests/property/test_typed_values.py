"""Whatever the type: schemas are sound, results keep to them, and both channels say the same.

One server has two tools for each shape: `give_<shape>` returns a value, `take_<shape>`
returns the argument that it was given.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from typing import Any, Final, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mcp_core.testing import modern_meta
from mcp_typed import InvalidSignature, MCPServer
from tests.property.strategies import fast
from tests.property.type_shapes import BASIC, SHAPES, Shape, same_json

few = settings(fast, max_examples=5)  # for each of hundreds of shapes

TAKEN: Final = [shape for shape in SHAPES if shape.takes]

mcp = MCPServer("shapes", mask_errors=False)
to_give: dict[str, Any] = {}
"""What the `give_` tools return."""
taken: dict[str, Any] = {}
"""What the `take_` tools got."""
refused: dict[str, InvalidSignature] = {}
"""Tools that could not be registered: a failure of their own tests alone."""


def giver(shape: Shape) -> Callable[[], Any]:
    async def give() -> Any:
        return to_give[shape.name]

    def give_each() -> Iterator[Any]:
        yield from to_give[shape.name]

    async def give_each_later() -> AsyncIterator[Any]:
        for item in to_give[shape.name]:
            yield item

    function = {None: give, "iterator": give_each, "async iterator": give_each_later}[shape.stream]
    function.__annotations__ = {"return": shape.annotation}
    return function


def taker(shape: Shape) -> Callable[..., Any]:
    async def take(x: Any, y: Any = shape.example[0]) -> Any:
        taken[shape.name] = x
        return x

    take.__annotations__ = {"x": shape.annotation, "y": shape.annotation, "return": shape.annotation}
    return take


def register(name: str, function: Callable[..., Any]) -> None:
    try:
        mcp.add_tool(function, name=name)
    except InvalidSignature as exc:
        refused[name] = exc


for each in SHAPES:
    register(f"give_{each.name}", giver(each))
for each in TAKEN:
    register(f"take_{each.name}", taker(each))


class Tool:
    """A tool as clients see it."""

    def __init__(self, listed: dict[str, Any], peer: Peer) -> None:
        self.name: str = listed["name"]
        self.input_schema: dict[str, Any] = listed["inputSchema"]
        self.output_schema: dict[str, Any] = listed["outputSchema"]
        self._peer = peer
        self._accepts = Draft202012Validator(self.input_schema)
        self._promises = Draft202012Validator(self.output_schema)

    def call(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Its result, after checking what holds for all: allowed arguments are taken, and the promise is kept."""
        self._accepts.validate(arguments)  # pyright: ignore[reportUnknownMemberType]
        result = self._peer.request(mcp, "tools/call", {"name": self.name, "arguments": arguments})
        assert not result.get("isError"), result["content"]
        self._promises.validate(result["structuredContent"])  # pyright: ignore[reportUnknownMemberType]
        return result


class Peer:
    """Speaks to the server in bytes, on a loop that lasts for all tests: thousands of calls are to take seconds."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self._listed = {tool["name"]: tool for tool in self.list_tools(mcp)}
        self._tools: dict[str, Tool] = {}

    def request(self, server: MCPServer, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": modern_meta()}}
        answer = self._runner.run(server.server.handle(json.dumps(message).encode()))
        assert answer is not None
        return cast("dict[str, Any]", read_json(answer)["result"])

    def list_tools(self, server: MCPServer) -> list[dict[str, Any]]:
        """The tools of a server."""
        return cast("list[dict[str, Any]]", self.request(server, "tools/list", {})["tools"])

    def tool(self, name: str) -> Tool:
        """The tool of that name. Raises what its registration has raised."""
        if name in refused:
            raise refused[name]
        if name not in self._tools:
            self._tools[name] = Tool(self._listed[name], self)
        return self._tools[name]


def read_json(text: str | bytes) -> Any:
    """JSON, without the constants that only Python takes for it."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def peer() -> Generator[Peer, None, None]:
    with asyncio.Runner() as runner:
        yield Peer(runner)
        runner.run(mcp.server.aclose())


def of_each(shapes: list[Shape]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("shape", [pytest.param(shape, id=shape.name) for shape in shapes])


def check_text(result: dict[str, Any], data: Any, in_blocks: bool) -> None:
    """The text blocks say what `data` says: one each of its elements, or one for the whole."""
    assert {block["type"] for block in result["content"]} == {"text"}
    texts: list[str] = [block["text"] for block in result["content"]]
    parts: list[Any] = data if in_blocks and data else [data]
    assert len(texts) == len(parts)
    for text, part in zip(texts, parts, strict=True):
        if isinstance(part, str):
            assert text == part
        else:
            assert same_json(read_json(text), part)
            assert text == msgspec.json.format(text, indent=2)


def check_result(shape: Shape, result: dict[str, Any], value: object) -> Any:
    """The structured data, unwrapped, once the text has been held against it."""
    structured: dict[str, Any] = result["structuredContent"]
    if not shape.bare:
        assert list(structured) == ["result"]
    data: Any = structured if shape.bare else structured["result"]
    # A NamedTuple is one thing, and so is a list that has been written as something else.
    check_text(result, data, in_blocks=type(value) in (list, tuple) and type(data) is list)
    return data


# --- schemas -------------------------------------------------------------------------------------

SCHEMAS_BY_NAME: Final = ("properties", "$defs", "patternProperties")
LISTS_OF_SCHEMAS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
SCHEMAS: Final = ("items", "additionalProperties", "propertyNames", "contentSchema")


of_schemas: Final = Draft202012Validator(Draft202012Validator.META_SCHEMA)

ANYTHING: Final[list[Any]] = json.loads('[null, true, 5, "a", [], {}, [[]], [{}], {"k": null}, {"a": 1}]')


def subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """The schema and all that are in it; a property called `default` is not mistaken for one."""
    if not isinstance(schema, dict):
        return
    whole = cast("dict[str, Any]", schema)
    yield whole
    inner: list[Iterable[Any]] = [
        *(whole.get(key, {}).values() for key in SCHEMAS_BY_NAME),
        *(whole.get(key, []) for key in LISTS_OF_SCHEMAS),
        [whole.get(key) for key in SCHEMAS],
    ]
    for some in inner:
        for one in some:
            yield from subschemas(one)


def check_schema(schema: dict[str, Any]) -> None:
    """It is one, an object at its root, and its defaults fit where they stand."""
    of_schemas.validate(schema)  # pyright: ignore[reportUnknownMemberType]
    assert schema["type"] == "object"
    validator = Draft202012Validator(schema)
    for inner in subschemas(schema):
        if "default" in inner:
            # Beside a default, `$ref` still leads into the whole schema.
            validator.evolve(schema=inner).validate(inner["default"])  # pyright: ignore[reportUnknownMemberType]


@of_each(SHAPES)
def test_what_is_published_about_results_is_sound(shape: Shape, peer: Peer) -> None:
    tool = peer.tool(f"give_{shape.name}")
    check_schema(tool.output_schema)
    assert (tool.input_schema["type"], tool.input_schema["properties"]) == ("object", {})
    if not shape.bare:
        assert list(tool.output_schema["properties"]) == tool.output_schema["required"] == ["result"]


@of_each(TAKEN)
def test_what_is_published_about_arguments_is_sound(shape: Shape, peer: Peer) -> None:
    schema = peer.tool(f"take_{shape.name}").input_schema
    check_schema(schema)
    assert schema["required"] == ["x"]
    properties = schema["properties"]
    assert list(properties) == ["x", "y"]
    assert "default" not in properties["x"]
    if shape.faithful:
        assert same_json(properties["y"]["default"], shape.example[1])


@of_each(BASIC)
def test_a_schema_without_references_says_the_same(shape: Shape, peer: Peer) -> None:
    told = peer.tool(f"take_{shape.name}").input_schema
    inlining = MCPServer("inlining", inline_refs=True)
    inlining.add_tool(taker(shape), name="take")
    (tool,) = peer.list_tools(inlining)
    schema = tool["inputSchema"]
    # Those that contain themselves cannot do without.
    left = {inner["$ref"] for inner in subschemas(schema) if "$ref" in inner}
    assert left <= {f"#/$defs/{name}" for name in schema.get("$defs", {})}
    assert property_names(schema) == property_names(told)
    before, after = Draft202012Validator(told), Draft202012Validator(schema)
    for x in [shape.example[1], *ANYTHING]:
        accepted = before.is_valid({"x": x})  # pyright: ignore[reportUnknownMemberType]
        assert after.is_valid({"x": x}) == accepted  # pyright: ignore[reportUnknownMemberType]


def property_names(schema: dict[str, Any]) -> set[str]:
    return {name for inner in subschemas(schema) for name in inner.get("properties", {})}


# --- values --------------------------------------------------------------------------------------


@pytest.mark.requirement("R-OUT-01", "R-OUT-03")
@of_each(SHAPES)
@few
@given(data=st.data())
def test_results_keep_their_promise_in_both_channels(shape: Shape, peer: Peer, data: st.DataObject) -> None:
    value, wanted = data.draw(shape.pairs)
    to_give[shape.name] = value
    result = peer.tool(f"give_{shape.name}").call({})
    assert same_json(check_result(shape, result, value), wanted)


@of_each(TAKEN)
@few
@given(data=st.data())
def test_what_the_schema_accepts_is_accepted(shape: Shape, peer: Peer, data: st.DataObject) -> None:
    take = peer.tool(f"take_{shape.name}")
    if shape.arguments is not None:
        result = take.call({"x": data.draw(shape.arguments)})
        check_result(shape, result, taken[shape.name])
    if shape.faithful:
        value, wanted = data.draw(shape.pairs)
        result = take.call({"x": wanted, "y": wanted})
        assert taken[shape.name] == value
        assert type(taken[shape.name]) is type(value)
        assert same_json(check_result(shape, result, value), wanted)

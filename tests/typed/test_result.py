"""`Result`, a value with a say in what surrounds it; `Image` and `Audio`, from files and from bytes."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from mcp_core import Client
from mcp_core.client import Mode
from mcp_core.types import AudioContent, CallToolResult, ImageContent, ResourceLink, TextContent
from mcp_typed import Audio, Image, MCPServer, Resolve, Result

either_era = pytest.mark.parametrize("mode", ["auto", "legacy"])

STAMP = "io.modelcontextprotocol/serverInfo"
"""What 2026-07-28 results carry in their `_meta` besides."""


class Weather(BaseModel):
    """A model to return."""

    city: str
    degrees: float


ROME = Weather(city="Rome", degrees=21.5)
ROME_TEXT = '{\n  "city": "Rome",\n  "degrees": 21.5\n}'
ROME_DATA = {"city": "Rome", "degrees": 21.5}
LINK = ResourceLink(name="map", uri="file:///map.png")
PNG = Image(data=b"png")
PNG_BLOCK = ImageContent(data="cG5n", mime_type="image/png")


def meta_of(result: CallToolResult) -> dict[str, Any]:
    return {key: value for key, value in (result.meta or {}).items() if key != STAMP}


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def returning(value: Any, annotation: Any) -> Callable[[], Any]:
    """A tool called `tool` that promises the annotation and returns the value, or what a function gives."""

    def tool() -> Any:
        return value() if callable(value) else value

    tool.__annotations__["return"] = annotation
    return tool


async def answer(value: Any, annotation: Any, *, mode: Mode = "auto") -> CallToolResult:
    mcp = MCPServer("results")
    mcp.add_tool(returning(value, annotation))
    async with Client(mcp, mode=mode) as client:
        return await client.call_tool("tool")


async def output_schema(annotation: Any, *, mode: Mode = "auto", **options: Any) -> Any:
    mcp = MCPServer("results")
    mcp.add_tool(returning(None, annotation), **options)
    async with Client(mcp, mode=mode) as client:
        (tool,) = (await client.list_tools()).tools
    return tool.output_schema


# --- Result ------------------------------------------------------------------------------------------


def text(words: str) -> TextContent:
    return TextContent(text=words)


@either_era
@pytest.mark.parametrize("annotation", [Weather, Result[Weather]], ids=["T", "Result[T]"])
@pytest.mark.parametrize(
    ("returned", "content", "meta"),
    [
        pytest.param(ROME, [text(ROME_TEXT)], {}, id="the bare value"),
        pytest.param(Result(ROME), [text(ROME_TEXT)], {}, id="nothing said"),
        pytest.param(Result(ROME, text="Warm."), [text("Warm.")], {}, id="text"),
        pytest.param(Result(ROME, text=""), [text("")], {}, id="empty text"),
        pytest.param(Result(ROME, content=[LINK, PNG]), [LINK, PNG_BLOCK], {}, id="content"),
        pytest.param(Result(ROME, content=[]), [], {}, id="no content"),
        pytest.param(
            Result(ROME, text="Warm.", content=[text("And dry."), LINK]),
            [text("Warm."), text("And dry."), LINK],
            {},
            id="text and content",
        ),
        pytest.param(
            Result(ROME, meta={"mine/key": None, "x": [1]}),
            [text(ROME_TEXT)],
            {"mine/key": None, "x": [1]},
            id="meta",
        ),
        pytest.param(
            Result(ROME, text="Warm.", content=[PNG], meta={"x": {"y": 1}}),
            [text("Warm."), PNG_BLOCK],
            {"x": {"y": 1}},
            id="everything",
        ),
    ],
)
async def test_what_surrounds_a_value(returned: Any, content: Any, meta: Any, annotation: Any, mode: Mode) -> None:
    result = await answer(returned, annotation, mode=mode)
    assert not result.is_error
    assert result.content == content
    assert result.structured_content == ROME_DATA
    assert meta_of(result) == meta


@either_era
@pytest.mark.parametrize(
    ("annotation", "value", "shown", "structured"),
    [
        (int, 5, ["5"], {"result": 5}),
        (str, "été", ["été"], {"result": "été"}),
        (list[int], [1, 2], ["1", "2"], {"result": [1, 2]}),
        (dict[str, int], {"a": 1}, ['{\n  "a": 1\n}'], {"a": 1}),
        (int | None, None, ["null"], {"result": None}),
        (Iterator[int], lambda: Result(iter([1, 2])), ["1", "2"], {"result": [1, 2]}),
    ],
    ids=["int", "str", "list", "dict", "None", "iterator"],
)
async def test_the_value_is_written_as_ever(
    annotation: Any, value: Any, shown: list[str], structured: Any, mode: Mode
) -> None:
    result = await answer(value if callable(value) else Result(value), Result[annotation], mode=mode)
    assert result.content == [text(words) for words in shown]
    assert result.structured_content == structured
    dressed = await answer(value if callable(value) else Result(value, text="dressed"), Result[annotation], mode=mode)
    assert dressed.structured_content == structured


@either_era
@pytest.mark.parametrize(
    "annotation",
    [int, Weather, list[Weather], dict[str, int], Any, Image, CallToolResult, Iterator[int], None],
    ids=str,
)
async def test_the_schema_is_that_of_the_value(annotation: Any, mode: Mode) -> None:
    assert await output_schema(Result[annotation], mode=mode) == await output_schema(annotation, mode=mode)


async def test_the_schema_of_a_result() -> None:
    assert await output_schema(Result[int]) == {
        "type": "object",
        "properties": {"result": {"title": "Result", "type": "integer"}},
        "required": ["result"],
        "title": "toolOutput",
    }
    assert await output_schema(Result) is None


@either_era
@pytest.mark.parametrize(
    ("annotation", "returned", "fault"),
    [
        (
            Result[int],
            Result("many", text="five"),
            "1 validation error for toolOutput\nresult\n  Input should be a valid integer, unable to parse string as "
            "an integer [type=int_parsing, input_type=str]",
        ),
        (
            Result[Weather],
            Result({"city": "Rome"}, text="Warm.", content=[LINK], meta={"x": 1}),
            "1 validation error for Weather\ndegrees\n  Field required [type=missing, input_type=dict]",
        ),
        (
            int,
            Result(None, content=[]),
            "1 validation error for toolOutput\nresult\n  Input should be a valid integer "
            "[type=int_type, input_type=NoneType]",
        ),
        (Result[float], Result(float("nan"), text="0"), "nan is not a number that JSON can hold"),
    ],
    ids=["another type", "a field is missing", "None", "NaN"],
)
async def test_the_value_is_validated_whatever_surrounds_it(
    annotation: Any, returned: Any, fault: str, mode: Mode
) -> None:
    result = await answer(returned, annotation, mode=mode)
    assert result.is_error
    assert result.structured_content is None
    assert text_of(result) == f"Error executing tool tool: {fault}"
    assert meta_of(result) == {}


async def test_a_tool_may_return_the_bare_value_after_all() -> None:
    result = await answer(ROME, Result[Weather])
    assert (text_of(result), result.structured_content) == (ROME_TEXT, ROME_DATA)


@either_era
@pytest.mark.parametrize(
    ("annotation", "structured"),
    [(Weather | Result[Weather], ROME_DATA), (Result[Weather] | None, {"result": ROME_DATA})],
    ids=["or bare", "or None"],
)
async def test_a_result_may_be_one_of_several_things(annotation: Any, structured: Any, mode: Mode) -> None:
    result = await answer(Result(ROME, text="Warm."), annotation, mode=mode)
    assert (text_of(result), result.structured_content) == ("Warm.", structured)


@either_era
@pytest.mark.parametrize("annotation", [Result, Any, Result[Any]], ids=["Result", "Any", "Result[Any]"])
async def test_a_result_of_which_nothing_is_promised(annotation: Any, mode: Mode) -> None:
    result = await answer(Result({"a": 1}), annotation, mode=mode)
    assert (text_of(result), result.structured_content) == ('{\n  "a": 1\n}', None)
    result = await answer(Result({"a": 1}, text="one", content=[PNG], meta={"x": 1}), annotation, mode=mode)
    assert result.content == [text("one"), PNG_BLOCK]
    assert (result.structured_content, meta_of(result)) == (None, {"x": 1})


@either_era
async def test_a_result_around_content_that_was_made_by_hand(mode: Mode) -> None:
    made = CallToolResult(content=[text("made")], structured_content={"a": 1}, _meta={"kept": 1, "x": 1})
    result = await answer(Result(made, text="said", meta={"x": 2}), Result[CallToolResult], mode=mode)
    assert (text_of(result), result.structured_content) == ("said", {"a": 1})
    assert meta_of(result) == {"kept": 1, "x": 2}
    pictured = await answer(Result(PNG, meta={"x": 1}), Result[Image], mode=mode)
    assert (pictured.content, meta_of(pictured)) == ([PNG_BLOCK], {"x": 1})
    checked = Result(CallToolResult(content=[], structured_content={"city": "Rome"}), text="said")
    failed = await answer(checked, Result[Annotated[CallToolResult, Weather]], mode=mode)
    assert text_of(failed).startswith("Error executing tool tool: 1 validation error for Weather\ndegrees\n")


@either_era
async def test_what_a_tool_returns_is_not_changed(mode: Mode) -> None:
    content, meta = [PNG], {"x": 1}
    kept = Result(ROME, text="Warm.", content=content, meta=meta)
    mcp = MCPServer("results")
    mcp.add_tool(returning(kept, Weather))
    async with Client(mcp, mode=mode) as client:
        first = await client.call_tool("tool")
        second = await client.call_tool("tool")
    assert first == second
    assert (kept.value, kept.text, kept.content, kept.meta) == (ROME, "Warm.", content, meta)
    assert (content, meta) == ([PNG], {"x": 1})


@either_era
async def test_async_tools_and_tools_with_resolvers_return_results(mode: Mode) -> None:
    mcp = MCPServer("results")

    @mcp.tool()
    async def later(city: str, degrees: Annotated[float, Resolve(lambda: 21.5)]) -> Result[Weather]:
        return Result(Weather(city=city, degrees=degrees), text=f"{degrees} in {city}")

    async with Client(mcp, mode=mode) as client:
        result = await client.call_tool("later", {"city": "Rome"})
    assert (text_of(result), result.structured_content) == ("21.5 in Rome", ROME_DATA)


async def test_broken_unicode_in_the_text_is_replaced() -> None:
    assert text_of(await answer(Result(1, text="a\ud800b"), Result[int])) == "a\ufffdb"


async def test_a_result_from_python() -> None:
    mcp = MCPServer("results")
    mcp.add_tool(returning(Result(5, text="five", meta={"x": 1}), Result[int]))
    result = await mcp.call_tool("tool")
    assert (text_of(result), result.structured_content, meta_of(result)) == ("five", {"result": 5}, {"x": 1})


# --- Image and Audio ----------------------------------------------------------------------------------------


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


BYTES = bytes(range(256))


@either_era
@pytest.mark.parametrize(
    ("made", "block"),
    [
        (Image(data=BYTES), ImageContent(data=base64_of(BYTES), mime_type="image/png")),
        (Image(data=BYTES, format="jpeg"), ImageContent(data=base64_of(BYTES), mime_type="image/jpeg")),
        (Image(data=b"", format="WEBP"), ImageContent(data="", mime_type="image/webp")),
        (Audio(data=BYTES), AudioContent(data=base64_of(BYTES), mime_type="audio/wav")),
        (Audio(data=BYTES, format="ogg"), AudioContent(data=base64_of(BYTES), mime_type="audio/ogg")),
    ],
    ids=["image", "image of a format", "no bytes at all", "audio", "audio of a format"],
)
async def test_media_from_bytes(made: Any, block: Any, mode: Mode) -> None:
    for annotation in (type(made), Any, list[type(made)]):  # type: ignore[misc]
        result = await answer(made, annotation, mode=mode)
        assert result.content == [block]
        assert result.structured_content is None


@either_era
@pytest.mark.parametrize("as_text", [True, False], ids=["str", "Path"])
@pytest.mark.parametrize(
    ("kind", "name", "format", "mime_type"),
    [
        (Image, "a.png", None, "image/png"),
        (Image, "a.jpg", None, "image/jpeg"),
        (Image, "a.JPEG", None, "image/jpeg"),
        (Image, "a.gif", None, "image/gif"),
        (Image, "a.webp", None, "image/webp"),
        (Image, "a.svg", None, "image/svg+xml"),
        (Image, "a.png", "gif", "image/gif"),
        (Image, "a", None, "application/octet-stream"),
        (Image, "a.wav", None, "application/octet-stream"),
        (Audio, "a.wav", None, "audio/wav"),
        (Audio, "a.mp3", None, "audio/mpeg"),
        (Audio, "a.ogg", None, "audio/ogg"),
        (Audio, "a.flac", None, "audio/flac"),
        (Audio, "a.aac", None, "audio/aac"),
        (Audio, "a.m4a", None, "audio/mp4"),
        (Audio, "a.unknown", "opus", "audio/opus"),
        (Audio, "a.png", None, "application/octet-stream"),
    ],
)
async def test_media_from_a_file(
    kind: Any, name: str, format: str | None, mime_type: str, as_text: bool, mode: Mode, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(BYTES)
    result = await answer(kind(path=str(path) if as_text else path, format=format), kind, mode=mode)
    block = ImageContent if kind is Image else AudioContent
    assert result.content == [block(data=base64_of(BYTES), mime_type=mime_type)]


async def test_a_file_is_read_when_it_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    mcp = MCPServer("media")
    picture = Image(path=path)
    mcp.add_tool(returning(picture, Image))
    async with Client(mcp) as client:
        missing = await client.call_tool("tool")
        assert missing.is_error
        assert re.fullmatch(r"Error executing tool tool \(error id [0-9a-f]{8}\)", text_of(missing))
        for data in (b"one", b"two"):
            path.write_bytes(data)
            assert (await client.call_tool("tool")).content == [
                ImageContent(data=base64_of(data), mime_type="image/png")
            ]


async def test_a_file_that_is_missing_beside_a_value(tmp_path: Path) -> None:
    result = await answer(Result(1, text="one", content=[Image(path=tmp_path / "a.png")]), Result[int])
    assert re.fullmatch(r"Error executing tool tool \(error id [0-9a-f]{8}\)", text_of(result))


@pytest.mark.parametrize("kind", [Image, Audio])
def test_media_are_of_a_file_or_of_bytes(kind: Any) -> None:
    for given in ({}, {"path": "a.png", "data": b"a"}, {"format": "png"}):
        with pytest.raises(ValueError, match=f"{kind.__name__} takes either path or data"):
            kind(**given)


def test_media_may_be_made_blocks_by_hand() -> None:
    assert PNG.to_image_content() == PNG_BLOCK
    assert Audio(data=b"png", format="mpeg").to_audio_content() == AudioContent(data="cG5n", mime_type="audio/mpeg")

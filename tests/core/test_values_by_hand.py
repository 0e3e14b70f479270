"""Results that authors build by hand: what is wrong in them is told, what is right is sent alike in every form."""

# pyright: reportPrivateUsage=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import copy
import json
import math
import pickle
import time
from types import SimpleNamespace
from typing import Any, Final

import msgspec
import pytest
from pydantic import AnyUrl, FileUrl

from mcp_core import MCPError, RequestContext, ResourceNotFound, Server
from mcp_core import types as t
from mcp_core.checking import misfit
from mcp_core.codec import encode, encode_line
from mcp_core.messages import encode_notification, encode_request
from mcp_core.methods import METHODS
from mcp_core.results import MAX_ENCODINGS, ResultEncoder
from mcp_core.revisions import ALL_REVISIONS
from mcp_core.testing import RawPeer, flush_logs
from tests.core.peers import code_of, line, modern, notification
from tests.types.samples import RESULTS

TEXT: Final = t.TextContent(text="x")
SCHEMA: Final[dict[str, Any]] = {"type": "object"}

TOOLS_CALL = ("on_call_tool", "tools/call", {"name": "x"})
READ = ("on_read_resource", "resources/read", {"uri": "a://b"})
GET = ("on_get_prompt", "prompts/get", {"name": "x"})
COMPLETE = ("on_completion", "completion/complete", None)


def wrong_values() -> list[tuple[tuple[str, str, Any], Any, str]]:
    """Of each method: a result that is none, and the place that is to be named."""
    call, anything = t.CallToolResult, _wrong
    return [
        (TOOLS_CALL, call(content=anything("x")), "content must be list"),
        (TOOLS_CALL, call(content=anything(["x"])), "content[0]"),
        (TOOLS_CALL, call(content=[TEXT, anything(5)]), "content[1]"),
        (TOOLS_CALL, call(content=anything(None)), "content"),
        (TOOLS_CALL, call(content=[], is_error=anything("yes")), "is_error must be bool; got 'yes'"),
        (TOOLS_CALL, call(content=[], is_error=anything(1)), "is_error"),
        (TOOLS_CALL, call(content=[], _meta=anything([1])), "_meta"),
        (TOOLS_CALL, call(content=[], result_type=anything(5)), "result_type"),
        (TOOLS_CALL, call(content=[t.TextContent(text=anything(5))]), "content[0].text must be str; got 5"),
        (TOOLS_CALL, call(content=[t.TextContent(text=anything(None))]), "content[0].text"),
        (TOOLS_CALL, call(content=[t.TextContent(text="x", annotations=anything("a"))]), "content[0].annotations"),
        (TOOLS_CALL, call(content=[t.TextContent(text="x", _meta=anything(5))]), "content[0]._meta"),
        (
            TOOLS_CALL,
            call(content=[t.TextContent(text="x", annotations=t.Annotations(priority=anything("1")))]),
            "content[0].annotations.priority",
        ),
        (
            TOOLS_CALL,
            call(content=[t.TextContent(text="x", annotations=t.Annotations(audience=anything(["me"])))]),
            "content[0].annotations.audience[0]",
        ),
        (TOOLS_CALL, call(content=[t.ImageContent(data=anything(b"x"), mime_type="a/b")]), "content[0].data"),
        (TOOLS_CALL, call(content=[t.ImageContent(data="x", mime_type=anything(5))]), "content[0].mime_type"),
        (TOOLS_CALL, call(content=[t.AudioContent(data=anything(5), mime_type="a/b")]), "content[0].data"),
        (TOOLS_CALL, call(content=[t.ResourceLink(uri=anything(5), name="x")]), "content[0].uri"),
        (TOOLS_CALL, call(content=[t.ResourceLink(uri="a:b", name=anything(5))]), "content[0].name"),
        (TOOLS_CALL, call(content=[t.ResourceLink(uri="a:b", name="x", size=anything("5"))]), "content[0].size"),
        (TOOLS_CALL, call(content=[t.ResourceLink(uri="a:b", name="x", icons=anything("i"))]), "content[0].icons"),
        (
            TOOLS_CALL,
            call(content=[t.ResourceLink(uri="a:b", name="x", icons=[t.Icon(src=anything(5))])]),
            "content[0].icons[0].src",
        ),
        (TOOLS_CALL, call(content=[t.EmbeddedResource(resource=anything("x"))]), "content[0].resource"),
        (
            TOOLS_CALL,
            call(content=[t.EmbeddedResource(resource=t.TextResourceContents(uri="a:b", text=anything(5)))]),
            "content[0].resource.text",
        ),
        (READ, t.ReadResourceResult(contents=anything("x")), "contents"),
        (READ, t.ReadResourceResult(contents=anything(["x"])), "contents[0]"),
        (READ, t.ReadResourceResult(contents=[t.TextResourceContents(uri=anything(5), text="x")]), "contents[0].uri"),
        (
            READ,
            t.ReadResourceResult(contents=[t.BlobResourceContents(uri="a:b", blob=anything(b"x"))]),
            "contents[0].blob",
        ),
        (READ, t.ReadResourceResult(contents=[], ttl_ms=anything("1")), "ttl_ms"),
        (READ, t.ReadResourceResult(contents=[], cache_scope=anything("mine")), "cache_scope"),
        (GET, t.GetPromptResult(messages=anything("x")), "messages"),
        (GET, t.GetPromptResult(messages=anything(["x"])), "messages[0]"),
        (GET, t.GetPromptResult(messages=[], description=anything(5)), "description"),
        (GET, t.GetPromptResult(messages=[t.PromptMessage(role=anything("me"), content=TEXT)]), "messages[0].role"),
        (GET, t.GetPromptResult(messages=[t.PromptMessage(role="user", content=anything("x"))]), "messages[0].content"),
        (
            GET,
            t.GetPromptResult(messages=[t.PromptMessage(role="user", content=t.TextContent(text=anything(5)))]),
            "messages[0].content.text",
        ),
    ]


def _wrong(value: Any) -> Any:
    return value


WRONG: Final = wrong_values()


def serving(asked: tuple[str, str, Any], result: Any) -> Server:
    hooks: dict[str, Any] = {asked[0]: lambda ctx, params: result}
    return Server("s", **hooks)


@pytest.mark.fault("X-04")
@pytest.mark.parametrize(("asked", "result", "place"), WRONG, ids=[place for _, _, place in WRONG])
@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "middleware"])
async def test_a_wrong_member_is_an_error_of_its_request(
    asked: tuple[str, str, Any], result: Any, place: str, wrapped: bool, caplog: pytest.LogCaptureFixture
) -> None:
    server = serving(asked, result)
    if wrapped:

        async def through(ctx: RequestContext, call_next: Any) -> Any:
            return await call_next(ctx)

        server.middleware.append(through)
    answer = json.loads(await server.handle(line(modern(1, asked[1], asked[2]))) or b"")
    assert code_of(answer) == -32603
    flush_logs()
    assert place in caplog.text


@pytest.mark.fault("X-04")
def test_every_member_of_every_result_is_looked_at() -> None:
    class Foreign:
        """Nothing that any member may be."""

    for name, samples in RESULTS.items():
        for sample in samples:
            if not isinstance(sample, msgspec.Struct):
                continue
            assert misfit(sample) is None, name
            hints = {field.name: field.type for field in msgspec.structs.fields(sample)}
            for member in sample.__struct_fields__:
                spoiled = copy.copy(sample)
                setattr(spoiled, member, Foreign())
                told = misfit(spoiled)
                free = str(hints[member]) in ("typing.Any", "typing.Any | None", "typing.Optional[typing.Any]")
                assert free or (told is not None and told.startswith(member)), f"{name}: {member} of {hints[member]}"


@pytest.mark.fault("X-04")
def test_looking_at_a_plain_result_costs_little() -> None:
    result = t.CallToolResult(content=[t.TextContent(text="hello")])
    encoder, row, revision = (
        ResultEncoder(t.Implementation(name="s", version="1"), stamped=False),
        METHODS["tools/call"],
        ALL_REVISIONS[-1],
    )
    encoder.encode(result, row, revision)

    def least(call: Any) -> float:
        best = 60.0
        for _ in range(20):
            start = time.process_time()
            for _ in range(2000):
                call()
            best = min(best, time.process_time() - start)
        return best / 2000

    # Some 0.6 against 0.3 us; the rest of what encoding a result does is in it.
    assert least(lambda: encoder.encode(result, row, revision)) < 6 * least(lambda: encode(result)) + 1e-6


# --- lists ------------------------------------------------------------------------------------------

SOUND: Final = t.Tool(name="sound", input_schema=SCHEMA)
BROKEN_TOOLS: Final[dict[str, Any]] = {
    "title": t.Tool(name="broken", input_schema=SCHEMA, title=_wrong(5)),
    "description": t.Tool(name="broken", input_schema=SCHEMA, description=_wrong(5)),
    "icons": t.Tool(name="broken", input_schema=SCHEMA, icons=_wrong("https://x/i.png")),
    "annotations": t.Tool(name="broken", input_schema=SCHEMA, annotations=_wrong("x")),
    "annotations as a dict": t.Tool(name="broken", input_schema=SCHEMA, annotations=_wrong({"read_only_hint": True})),
    "meta": t.Tool(name="broken", input_schema=SCHEMA, _meta=_wrong([1])),
    "inside meta": t.Tool(name="broken", input_schema=SCHEMA, _meta={"p": object()}),
    "input_schema": t.Tool(name="broken", input_schema=_wrong(None)),
    "output_schema": t.Tool(name="broken", input_schema=SCHEMA, output_schema=_wrong("x")),
    "name": t.Tool(name=_wrong(5), input_schema=SCHEMA),
    "not a tool": "broken",
}


@pytest.mark.fault("X-02")
@pytest.mark.fault("X-64")
@pytest.mark.parametrize("broken", BROKEN_TOOLS)
async def test_a_broken_tool_is_left_out_of_the_list(broken: str, caplog: pytest.LogCaptureFixture) -> None:
    tools = [SOUND, BROKEN_TOOLS[broken], SOUND]
    server = Server("s", on_list_tools=lambda ctx, params: t.ListToolsResult(tools=tools))
    for _ in range(2):
        answer = json.loads(await server.handle(line(modern(1, "tools/list"))) or b"")
        assert [tool["name"] for tool in answer["result"]["tools"]] == ["sound", "sound"]
    flush_logs()
    assert "is not listed" in caplog.text
    assert broken not in ("title", "description", "icons", "annotations") or f"{broken} must be" in caplog.text


@pytest.mark.fault("X-02")
async def test_other_broken_entries_are_left_out_likewise() -> None:
    server = Server(
        "s",
        on_list_resources=lambda ctx, params: t.ListResourcesResult(
            resources=[t.Resource(name="a", uri="a:b"), t.Resource(name="b", uri=_wrong(5))]
        ),
        on_list_resource_templates=lambda ctx, params: t.ListResourceTemplatesResult(
            resource_templates=[
                t.ResourceTemplate(name="a", uri_template="a:{b}"),
                t.ResourceTemplate(name="b", uri_template=_wrong(None)),
            ]
        ),
        on_list_prompts=lambda ctx, params: t.ListPromptsResult(
            prompts=[t.Prompt(name="a"), t.Prompt(name="b", arguments=_wrong("x"))]
        ),
    )
    for method, member in (
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ):
        answer = json.loads(await server.handle(line(modern(1, method))) or b"")
        assert [entry["name"] for entry in answer["result"][member]] == ["a"]


# --- what middleware sees ---------------------------------------------------------------------------


@pytest.mark.fault("X-03")
@pytest.mark.parametrize("structured", [{"a": [1]}, msgspec.Raw(b'{"a":[1]}'), msgspec.Raw(b'{\n "a": [1]\n}')])
@pytest.mark.parametrize("change", ["nothing", "in place", "another"])
async def test_middleware_sees_plain_values_and_what_it_passes_on_is_sent(structured: Any, change: str) -> None:
    seen: list[Any] = []

    async def look(ctx: RequestContext, call_next: Any) -> Any:
        result = await call_next(ctx)
        if ctx.method == "tools/call":
            seen.append(copy.deepcopy(result.structured_content))
            if change == "in place":
                result.structured_content["a"].append(2)
            elif change == "another":
                return t.CallToolResult(content=[], structured_content={"b": 1})
        return result

    result = t.CallToolResult(content=[TEXT], structured_content=copy.deepcopy(structured))
    server = serving(TOOLS_CALL, result)
    server.middleware.append(look)
    answer = json.loads(await server.handle(line(modern(1, "tools/call", {"name": "x"}))) or b"")
    assert seen == [{"a": [1]}]
    wanted = {"nothing": {"a": [1]}, "in place": {"a": [1, 2]}, "another": {"b": 1}}[change]
    assert answer["result"]["structuredContent"] == wanted


# --- one meaning, whatever the form -------------------------------------------------------------------

FORMS: Final = ["dict", "raw", "pretty", "prepared"]


@pytest.mark.fault("X-28")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize("method", [m for m in RESULTS if METHODS[m].hook is not None])
def test_every_form_of_a_result_is_sent_alike(method: str, revision: str, form: str) -> None:
    row = METHODS[method]
    for sample in RESULTS[method]:
        if not isinstance(sample, row.result or ()) or revision not in row.revisions:
            continue
        encoder = ResultEncoder(t.Implementation(name="s", version="1"), stamped=False)
        shown = sent(encoder, sample, row, revision)
        plain = json.loads(encode(sample))
        value: Any = {
            "dict": plain,
            "raw": msgspec.Raw(json.dumps(plain).encode()),
            "pretty": msgspec.Raw(json.dumps(plain, indent=2).encode()),
            "prepared": t.Prepared(sample),
        }[form]
        assert sent(encoder, value, row, revision) == shown


def sent(encoder: ResultEncoder, value: Any, row: Any, revision: str) -> Any:
    body, tail = encoder.encode(value, row, revision)
    found = json.loads(body[:-1] + tail if tail else body)
    if not found.get("isError", True):
        del found["isError"]  # says the same as its absence
    return found


# --- URLs, pickles, levels ----------------------------------------------------------------------------


@pytest.mark.fault("X-74")
async def test_urls_of_other_libraries_are_taken_for_their_text() -> None:
    class Yarl(SimpleNamespace):
        scheme = "https"
        host = "x.example"

        def __str__(self) -> str:
            return "https://x.example/a"

    uris: list[Any] = [AnyUrl("https://x.example/a"), FileUrl("file:///a"), Yarl()]
    resources = [t.Resource(name="x", uri=uri) for uri in uris]
    server = Server("s", on_list_resources=lambda ctx, params: t.ListResourcesResult(resources=resources))
    answer = json.loads(await server.handle(line(modern(1, "resources/list"))) or b"")
    assert [entry["uri"] for entry in answer["result"]["resources"]] == [str(uri) for uri in uris]
    assert json.loads(encode({"roots": [t.Root(uri=_wrong(uris[1]))]})) == {"roots": [{"uri": "file:///a"}]}


class Quota(MCPError):
    def __init__(self, used: int) -> None:
        super().__init__(-32050, f"used {used}", {"used": used})
        self.used = used


class Keyword(MCPError):
    def __init__(self, *, why: str, code: int = -32051) -> None:
        super().__init__(code, why)
        self.why = why


@pytest.mark.case("C087")
@pytest.mark.parametrize(
    "error", [MCPError(-1, "m", {"a": 1}), ResourceNotFound("a://b"), Quota(3), Keyword(why="x")], ids=range(4)
)
def test_errors_survive_pickling_and_copying(error: MCPError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
        assert (again.code, again.message, again.data) == (error.code, error.message, error.data)


@pytest.mark.fault("X-86")
@pytest.mark.parametrize("progress", [(math.nan, None), (math.inf, None), (1, math.nan), (1, -math.inf)])
async def test_progress_is_a_finite_number(progress: tuple[float, float | None]) -> None:
    raised: list[str] = []

    async def call(ctx: RequestContext, params: Any) -> t.CallToolResult:
        with pytest.raises(ValueError, match=r"(progress|total) must be a finite number; got") as caught:
            await ctx.report_progress(*progress)
        raised.append(str(caught.value))
        return t.CallToolResult(content=[])

    async with RawPeer.of(Server("s", on_call_tool=call)) as peer:
        answer = await peer.modern(1, "tools/call", {"name": "x"}, progressToken=1)
        assert "result" in answer
    assert len(raised) == 1


@pytest.mark.fault("X-86")
async def test_a_level_of_a_log_message_is_one_that_there_is() -> None:
    async def call(ctx: RequestContext, params: Any) -> t.CallToolResult:
        with pytest.raises(ValueError, match=r"level must be one of debug, .*; got 'loud'"):
            await ctx.log(_wrong("loud"), "x")
        return t.CallToolResult(content=[])

    async with RawPeer.of(Server("s", on_call_tool=call)) as peer:
        assert "result" in await peer.modern(1, "tools/call", {"name": "x"})


# --- ready bytes with line breaks -----------------------------------------------------------------------

PRETTY: Final = msgspec.Raw(b'{\r\n  "a": "\\n",\n  "b": [1]\n}')
FORGED: Final = msgspec.Raw(b'{"a":1}\n{"jsonrpc":"2.0","id":2,"result":{}}')
PLAIN: Final = {"a": "\n", "b": [1]}

PLACES: Final[dict[str, Any]] = {
    "the whole": lambda raw: msgspec.Raw(b'{\n"content":[],\r"structuredContent":' + bytes(raw) + b"}"),
    "structured content": lambda raw: t.CallToolResult(content=[], structured_content=raw),
    "nested": lambda raw: t.CallToolResult(content=[], structured_content={"in": [raw]}),
    "meta": lambda raw: t.CallToolResult(content=[], _meta={"m": raw}),
    "meta of a block": lambda raw: t.CallToolResult(content=[t.TextContent(text="x", _meta={"m": raw})]),
    "dict": lambda raw: {"content": [], "structuredContent": {"in": raw}},
    "data of an error": lambda raw: MCPError(-32050, "m", {"in": raw}),
    "data alone": lambda raw: MCPError(-32050, "m", raw),
}


@pytest.mark.fault("S-19")
@pytest.mark.parametrize("place", PLACES)
async def test_line_breaks_in_ready_bytes_do_not_end_the_message(place: str) -> None:
    def call(ctx: RequestContext, params: t.CallToolRequestParams) -> Any:
        value = PLACES[place](PRETTY if params.name == "pretty" else FORGED)
        if isinstance(value, MCPError):
            raise value
        return value

    async with RawPeer.of(Server("s", on_call_tool=call)) as peer:
        answer = await peer.modern(1, "tools/call", {"name": "pretty"})
        assert "error" in answer or place not in ("data of an error", "data alone")
        assert json.dumps(PLAIN)[1:-1] in json.dumps(answer)
        answer = await peer.modern(1, "tools/call", {"name": "forged"})
        assert code_of(answer) in (-32603, -32050)
        assert all(b"\n" not in message and b"\r" not in message for message in peer.messages)


@pytest.mark.fault("S-19")
async def test_line_breaks_in_messages_of_a_handler_do_not_end_them() -> None:
    async def call(ctx: RequestContext, params: Any) -> t.CallToolResult:
        await ctx.log("info", {"in": PRETTY})
        await ctx.notify("notifications/x", {"in": PRETTY})
        return t.CallToolResult(content=[])

    async with RawPeer.of(Server("s", on_call_tool=call, on_set_logging_level=lambda ctx, params: None)) as peer:
        peer.send(modern(1, "tools/call", {"name": "x"}, **{"io.modelcontextprotocol/logLevel": "debug"}))
        heard = [await peer.receive_next() for _ in range(3)]
        assert all(b"\n" not in message and b"\r" not in message for message in peer.messages)
    assert heard[0]["params"]["data"] == {"in": PLAIN}
    assert heard[1]["params"] == {"in": PLAIN}
    assert "result" in heard[2]


@pytest.mark.fault("S-19")
@pytest.mark.parametrize("raw", [PRETTY, msgspec.Raw(b"\r{}\n")])
def test_messages_are_lines(raw: Any) -> None:
    for message in (
        encode_line({"a": raw}),
        encode_request(1, "m", {"a": raw}),
        encode_notification("m", {"a": raw}),
        encode_notification("m", raw),
    ):
        assert b"\n" not in message
        assert b"\r" not in message
        json.loads(message)


async def test_a_notification_with_forged_bytes_is_not_sent() -> None:
    async def call(ctx: RequestContext, params: Any) -> t.CallToolResult:
        await ctx.notify("notifications/x", {"in": FORGED})
        return t.CallToolResult(content=[])

    async with RawPeer.of(Server("s", on_call_tool=call)) as peer:
        peer.send(notification("notifications/x"))
        assert code_of(await peer.modern(1, "tools/call", {"name": "x"})) == -32603


def test_of_so_many_types_is_kept_how_they_are_encoded() -> None:
    encoder = ResultEncoder(t.Implementation(name="s", version="1"))
    for n in range(MAX_ENCODINGS + 10):
        kind = msgspec.defstruct(f"Mine{n}", [("a", int, 1)], bases=(t.CallToolResult,), kw_only=True)
        encoder.encode(kind(content=[]), METHODS["tools/call"], ALL_REVISIONS[-1])
        assert len(encoder._encodings) <= MAX_ENCODINGS

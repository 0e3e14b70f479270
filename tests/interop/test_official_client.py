"""The official client against servers of this library, over stdio and in both eras."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

import anyio
import mcp_types as t
import pytest
from mcp import Client, MCPDeprecationWarning, MCPError, StdioServerParameters
from mcp.client.session import ClientRequestContext

from mcp_core.client import Mode
from tests.interop import bookshop as b
from tests.interop.watching import Heard

MODES: list[Mode] = ["auto", "legacy"]
REVISIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Peer:
    """A connected client, and what its callbacks were told."""

    client: Client
    mode: Mode
    logs: Heard[t.LoggingMessageNotificationParams]
    samplings: Heard[t.CreateMessageRequestParams]

    async def list_all_tools(self) -> list[list[t.Tool]]:
        """All pages."""
        pages: list[list[t.Tool]] = []
        cursor: str | None = None
        while not pages or cursor is not None:
            listed = await self.client.list_tools(cursor=cursor)
            pages.append(listed.tools)
            cursor = listed.next_cursor
        return pages

    async def logs_of(self, text: str) -> list[t.LoggingMessageNotificationParams]:
        """The log messages of one call, once the last of them has come."""

        def of_call() -> list[t.LoggingMessageNotificationParams]:
            return [entry for entry in self.logs.items if entry.data["text"] == text]

        await self.logs.until(lambda _: any(entry.level == "error" for entry in of_call()))
        return of_call()


async def elicit(context: ClientRequestContext, params: t.ElicitRequestParams) -> t.ElicitResult | t.ErrorData:
    assert isinstance(params, t.ElicitRequestFormParams)
    assert params.requested_schema == b.EDITION_SCHEMA
    if params.message == "accept":
        return t.ElicitResult(action="accept", content={"edition": "second", "copies": 2})
    if params.message == "fail":
        return t.ErrorData(code=-1, message="User rejected the form")
    return t.ElicitResult(action="decline" if params.message == "decline" else "cancel")


async def list_roots(context: ClientRequestContext) -> t.ListRootsResult:
    return t.ListRootsResult(
        roots=[t.Root.model_validate({"uri": "file:///srv/books", "name": "books"}), t.Root(uri="file:///tmp")]  # type: ignore[arg-type]
    )


@asynccontextmanager
async def connect(module: str, mode: Mode) -> AsyncGenerator[Peer, None]:
    logs: Heard[t.LoggingMessageNotificationParams] = Heard()
    samplings: Heard[t.CreateMessageRequestParams] = Heard()

    async def hear(params: t.LoggingMessageNotificationParams) -> None:
        logs.tell(params)

    async def sample(context: ClientRequestContext, params: t.CreateMessageRequestParams) -> t.CreateMessageResult:
        samplings.tell(params)
        said = t.TextContent(text="Sand and spice.")
        return t.CreateMessageResult(role="assistant", content=said, model="tiny-1", stop_reason="endTurn")

    client = Client(
        StdioServerParameters(**b.launch(module)),
        mode=mode,
        elicitation_callback=elicit,
        sampling_callback=sample,
        list_roots_callback=list_roots,
        logging_callback=hear,
        log_level="info",
        read_timeout_seconds=60,
    )
    async with client:
        yield Peer(client, mode, logs, samplings)


@pytest.fixture(scope="module", params=MODES)
async def core(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncGenerator[Peer, None]:
    async with connect("core_server", request.param) as peer:
        yield peer


@pytest.fixture(scope="module", params=MODES)
async def typed(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncGenerator[Peer, None]:
    async with connect("typed_server", request.param) as peer:
        yield peer


def text_of(result: t.CallToolResult) -> str:
    """The text of a result that holds one block, a text."""
    (block,) = result.content
    assert isinstance(block, t.TextContent)
    return block.text


async def check_cancellation(peer: Peer) -> None:
    """Cancelling the caller cancels the tool, and nothing else."""
    async with anyio.create_task_group() as group:
        group.start_soon(peer.client.call_tool, "slow", {"name": "nap"})
        await peer.client.call_tool("milestone", {"name": "nap started"})
        group.cancel_scope.cancel()
    answer = await peer.client.call_tool("milestone", {"name": "nap cancelled"})
    assert not answer.is_error
    assert text_of(answer) == "nap cancelled: reached"


async def check_logging(peer: Peer, text: str) -> None:
    """Messages at and above the level that is set, and no others."""
    if peer.mode == "legacy":
        with pytest.warns(MCPDeprecationWarning):
            await peer.client.set_logging_level("info")  # pyright: ignore[reportDeprecated]
    await peer.client.call_tool("log", {"text": text})
    logs = await peer.logs_of(text)
    assert [entry.level for entry in logs] == ["info", "error"]
    assert logs[0].logger == "bookshop"
    assert logs[0].data == {"text": text, "level": "info"}


# --- the low-level server: who it is -----------------------------------------------------------


@pytest.mark.requirement("R-VER-14")
async def test_core_negotiates_the_era(core: Peer) -> None:
    client = core.client
    assert client.protocol_version == REVISIONS[core.mode]
    assert client.server_info is not None
    assert (client.server_info.name, client.server_info.version) == ("core-bookshop", "2.0.0")
    assert client.server_info.title == "Bookshop"
    assert client.instructions == "Buy books."


@pytest.mark.requirement("R-VER-13")
async def test_core_declares_what_it_serves(core: Peer) -> None:
    capabilities = core.client.server_capabilities
    assert capabilities.tools is not None
    assert capabilities.resources is not None
    assert capabilities.prompts is not None
    assert capabilities.completions is not None
    assert capabilities.logging is not None
    assert not capabilities.tools.list_changed
    assert not capabilities.resources.subscribe


async def test_ping_belongs_to_the_handshake_era(core: Peer) -> None:
    with pytest.warns(MCPDeprecationWarning):
        ping = core.client.send_ping()  # pyright: ignore[reportDeprecated]
    if core.mode == "legacy":
        assert isinstance(await ping, t.EmptyResult)
    else:
        with pytest.raises(MCPError) as caught:
            await ping
        assert caught.value.error.code == t.METHOD_NOT_FOUND


# --- lists ---------------------------------------------------------------------------------------


@pytest.mark.requirement("R-PAGE-01")
async def test_core_lists_tools_by_pages(core: Peer) -> None:
    pages = await core.list_all_tools()
    names = [tool.name for page in pages for tool in page]
    assert [len(page) for page in pages[:-1]] == [8] * (len(pages) - 1)
    assert len(pages) > 2
    assert len(set(names)) == len(names)
    assert names[0] == "echo"
    assert names[-1] == "places"
    echo = pages[0][0]
    assert echo.input_schema == b.TEXT_SCHEMA
    assert echo.description == "Give the text back."


@pytest.mark.requirement("R-OUT-04")
async def test_output_schema_that_is_no_object_is_for_the_modern_era(core: Peer) -> None:
    tools = {tool.name: tool for tool in (await core.client.list_tools()).tools}
    assert tools["search"].output_schema == b.MATCHES_SCHEMA
    assert tools["titles"].output_schema == (b.BOOK_SCHEMA if core.mode == "auto" else None)


@pytest.mark.requirement("R-PAGE-01")
@pytest.mark.requirement("R-RES-02")
@pytest.mark.requirement("R-PROMPT-02")
async def test_core_lists_resources_templates_and_prompts_by_pages(core: Peer) -> None:
    client = core.client
    resources = await client.list_resources()
    assert [str(item.uri) for item in resources.resources] == ["book://dune", "book://emma"]
    assert resources.resources[0].size == 22
    assert resources.resources[1].meta == b.CONTENT_META
    rest = await client.list_resources(cursor=resources.next_cursor)
    assert [item.name for item in rest.resources] == ["cover"]
    assert rest.next_cursor is None

    templates = await client.list_resource_templates()
    assert [item.uri_template for item in templates.resource_templates] == ["book://{title}"]
    more = await client.list_resource_templates(cursor=templates.next_cursor)
    assert [item.mime_type for item in more.resource_templates] == ["image/png"]

    prompts = await client.list_prompts()
    assert [item.name for item in prompts.prompts] == ["recommend", "apologize"]
    arguments = prompts.prompts[0].arguments
    assert arguments is not None
    assert (arguments[0].name, arguments[0].required) == ("genre", True)
    last = await client.list_prompts(cursor=prompts.next_cursor)
    assert [item.name for item in last.prompts] == ["illustrate"]


@pytest.mark.requirement("R-PAGE-03")
async def test_invalid_cursor_is_refused(core: Peer) -> None:
    with pytest.raises(MCPError) as caught:
        await core.client.list_tools(cursor="nowhere")
    assert caught.value.error.code == t.INVALID_PARAMS
    assert caught.value.error.data == {"cursor": "nowhere"}


# --- results -------------------------------------------------------------------------------------


@pytest.mark.requirement("R-CONT-01")
async def test_text(core: Peer) -> None:
    text = 'zwölf "Bücher"\n\u2028 𝄞 \x00'
    result = await core.client.call_tool("echo", {"text": text})
    assert text_of(result) == text
    assert result.is_error is False
    assert result.structured_content is None


@pytest.mark.requirement("R-CONT-02")
async def test_image_and_audio(core: Peer) -> None:
    (image,) = (await core.client.call_tool("image")).content
    assert isinstance(image, t.ImageContent)
    assert (image.data, image.mime_type) == (b.PIXEL, "image/png")
    (audio,) = (await core.client.call_tool("audio")).content
    assert isinstance(audio, t.AudioContent)
    assert (audio.data, audio.mime_type) == (b.SOUND, "audio/wav")


@pytest.mark.requirement("R-CONT-03")
async def test_resource_link(core: Peer) -> None:
    (link,) = (await core.client.call_tool("link")).content
    assert isinstance(link, t.ResourceLink)
    assert (str(link.uri), link.name, link.title) == ("book://dune", "dune", "Dune")
    assert (link.mime_type, link.size) == ("text/plain", 22)


@pytest.mark.requirement("R-CONT-04")
async def test_embedded_resources(core: Peer) -> None:
    book, cover = (await core.client.call_tool("embedded")).content
    assert isinstance(book, t.EmbeddedResource)
    assert isinstance(book.resource, t.TextResourceContents)
    assert (str(book.resource.uri), book.resource.text) == ("book://dune", b.BOOKS["book://dune"])
    assert isinstance(cover, t.EmbeddedResource)
    assert isinstance(cover.resource, t.BlobResourceContents)
    assert (cover.resource.mime_type, cover.resource.blob) == ("image/png", b.PIXEL)


@pytest.mark.requirement("R-CONT-07")
async def test_meta_of_result_and_content(core: Peer) -> None:
    result = await core.client.call_tool("tagged")
    assert result.meta is not None
    assert {key: result.meta[key] for key in b.RESULT_META} == b.RESULT_META
    (block,) = result.content
    assert isinstance(block, t.TextContent)
    assert block.meta == b.CONTENT_META
    assert block.annotations is not None
    assert (block.annotations.audience, block.annotations.priority) == (["user"], 0.5)


@pytest.mark.requirement("R-META-04")
async def test_modern_results_name_the_server(core: Peer) -> None:
    meta = (await core.client.call_tool("tagged")).meta or {}
    named = meta.get("io.modelcontextprotocol/serverInfo")
    if core.mode == "legacy":
        assert named is None
    else:
        assert named is not None
        assert named["name"] == "core-bookshop"


async def test_meta_of_the_request_arrives(core: Peer) -> None:
    meta: Any = {"bookshop/trace": ["a", None, {"b": 1.5}]}
    result = await core.client.call_tool("request_meta", meta=meta)
    assert result.structured_content == meta


@pytest.mark.requirement("R-OUT-01")
async def test_structured_content(core: Peer) -> None:
    result = await core.client.call_tool("search", {"text": "dune"})
    assert result.structured_content == {"matches": 3}
    assert json.loads(text_of(result)) == {"matches": 3}


@pytest.mark.requirement("R-OUT-02")
async def test_client_refuses_what_breaks_the_output_schema(core: Peer) -> None:
    with pytest.raises(RuntimeError, match="Invalid structured content returned by tool search_wrong"):
        await core.client.call_tool("search_wrong", {"text": "dune"})


@pytest.mark.requirement("R-OUT-05")
async def test_structured_content_that_is_no_object_is_for_the_modern_era(core: Peer) -> None:
    result = await core.client.call_tool("titles")
    assert result.structured_content == (["Dune", "Emma"] if core.mode == "auto" else None)
    assert json.loads(text_of(result)) == ["Dune", "Emma"]


# --- failures ------------------------------------------------------------------------------------


@pytest.mark.requirement("R-TOOL-11")
async def test_failure_for_the_model(core: Peer) -> None:
    result = await core.client.call_tool("refuse")
    assert result.is_error is True
    assert text_of(result) == "Out of stock"


@pytest.mark.requirement("R-ERR-09")
async def test_error_of_the_application(core: Peer) -> None:
    with pytest.raises(MCPError) as caught:
        await core.client.call_tool("protocol_error")
    error = caught.value.error
    assert (error.code, error.message, error.data) == (b.SHELF_ERROR, "No such shelf", {"shelf": "Z"})


@pytest.mark.requirement("R-LOG-05")
async def test_crash_tells_no_detail(core: Peer) -> None:
    with pytest.raises(MCPError) as caught:
        await core.client.call_tool("crash")
    error = caught.value.error
    assert (error.code, error.message, error.data) == (t.INTERNAL_ERROR, "Internal server error", None)


@pytest.mark.requirement("R-TOOL-10")
async def test_unknown_tool(core: Peer) -> None:
    with pytest.raises(MCPError) as caught:
        await core.client.call_tool("nothing")
    assert (caught.value.error.code, caught.value.error.message) == (t.INVALID_PARAMS, "Unknown tool: nothing")


# --- while a call runs -----------------------------------------------------------------------------


@pytest.mark.requirement("R-PROG-02")
async def test_progress(core: Peer) -> None:
    heard: Heard[tuple[float, float | None, str | None]] = Heard()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.tell((progress, total, message))

    result = await core.client.call_tool("progress", progress_callback=hear)
    assert text_of(result) == "done"
    assert await heard.count(3) == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_progress_that_nobody_asked_for(core: Peer) -> None:
    assert text_of(await core.client.call_tool("progress")) == "done"


@pytest.mark.requirement("R-CANC-03")
async def test_cancellation_reaches_the_tool(core: Peer) -> None:
    await check_cancellation(core)


@pytest.mark.requirement("R-LOG-02")
@pytest.mark.requirement("R-LOG-04")
async def test_log_messages(core: Peer) -> None:
    await check_logging(core, "core")


@pytest.mark.requirement("R-LOG-04")
async def test_level_is_raised_on_the_way(core: Peer) -> None:
    """In 2026-07-28 each request has its own level, before it is set by a request."""
    level: Any = {"io.modelcontextprotocol/logLevel": "error"}
    if core.mode == "legacy":
        with pytest.warns(MCPDeprecationWarning):
            await core.client.set_logging_level("error")  # pyright: ignore[reportDeprecated]
        await core.client.call_tool("log", {"text": "raised"})
    else:
        await core.client.call_tool("log", {"text": "raised"}, meta=level)
    assert [entry.level for entry in await core.logs_of("raised")] == ["error"]


# --- asking the client -----------------------------------------------------------------------------


@pytest.mark.requirement("R-MRTR-01")
@pytest.mark.requirement("R-MRTR-11")
@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("accept", "accept: {'edition': 'second', 'copies': 2}"),
        ("decline", "decline: None"),
        ("cancel", "cancel: None"),
    ],
)
async def test_elicitation(core: Peer, message: str, answer: str) -> None:
    assert text_of(await core.client.call_tool("choose", {"text": message})) == answer


@pytest.mark.requirement("R-ELIC-05")
async def test_elicitation_that_the_client_refuses(core: Peer) -> None:
    with pytest.raises(MCPError) as caught:
        await core.client.call_tool("choose", {"text": "fail"})
    assert (caught.value.error.code, caught.value.error.message) == (-1, "User rejected the form")


@pytest.mark.requirement("R-SAMP-02")
async def test_sampling(core: Peer) -> None:
    asked = len(core.samplings.items)
    assert text_of(await core.client.call_tool("summarize", {"text": "Dune?"})) == "tiny-1: Sand and spice."
    (params,) = core.samplings.items[asked:]
    assert (params.max_tokens, params.system_prompt) == (50, "Be brief.")
    assert params.messages[0].role == "user"
    assert params.messages[0].content == t.TextContent(text="Dune?")


@pytest.mark.requirement("R-ROOT-01")
async def test_roots(core: Peer) -> None:
    assert text_of(await core.client.call_tool("places")) == "books=file:///srv/books, None=file:///tmp"


@pytest.mark.requirement("R-MRTR-04")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("tool", "missing"), [("choose", "elicitation"), ("summarize", "sampling"), ("places", "roots")]
)
async def test_client_without_callbacks_is_not_asked(mode: Mode, tool: str, missing: str) -> None:
    async with Client(StdioServerParameters(**b.launch("core_server")), mode=mode, read_timeout_seconds=60) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool(tool, {"text": "accept"})
        error = caught.value.error
        if mode == "auto":
            assert error.code == t.MISSING_REQUIRED_CLIENT_CAPABILITY
            assert list(error.data["requiredCapabilities"]) == [missing]
        else:
            # The handshake era has no code for it; any error will do but one that hides the reason.
            assert missing in f"{error.message} {error.data}"
        assert text_of(await client.call_tool("echo", {"text": "alive"})) == "alive"


# --- resources, prompts, completion, methods of one's own --------------------------------------------


@pytest.mark.requirement("R-RES-03")
async def test_read_text_and_blob(core: Peer) -> None:
    (book,) = (await core.client.read_resource("book://emma")).contents
    assert isinstance(book, t.TextResourceContents)
    assert (str(book.uri), book.text, book.mime_type) == ("book://emma", b.BOOKS["book://emma"], "text/plain")
    assert book.meta == b.CONTENT_META
    (cover,) = (await core.client.read_resource("cover://dune")).contents
    assert isinstance(cover, t.BlobResourceContents)
    assert cover.blob == b.PIXEL


@pytest.mark.requirement("R-RES-04")
async def test_missing_resource(core: Peer) -> None:
    with pytest.raises(MCPError) as caught:
        await core.client.read_resource("book://none")
    error = caught.value.error
    assert error.code == (-32602 if core.mode == "auto" else -32002)
    assert error.data == {"uri": "book://none"}


@pytest.mark.requirement("R-PROMPT-03")
async def test_prompts(core: Peer) -> None:
    prompt = await core.client.get_prompt("recommend", {"genre": "short"})
    assert prompt.description == "A recommendation"
    assert [message.role for message in prompt.messages] == ["user", "assistant"]
    assert prompt.messages[0].content == t.TextContent(text="Recommend a short book.")
    (message,) = (await core.client.get_prompt("illustrate")).messages
    assert message.content == t.ImageContent(data=b.PIXEL, mime_type="image/png")


@pytest.mark.requirement("R-PROMPT-04")
@pytest.mark.parametrize(
    ("name", "message"),
    [("recommend", "Missing required argument: genre"), ("nothing", "Unknown prompt: nothing")],
)
async def test_prompts_that_cannot_be_got(core: Peer, name: str, message: str) -> None:
    with pytest.raises(MCPError) as caught:
        await core.client.get_prompt(name)
    assert (caught.value.error.code, caught.value.error.message) == (t.INVALID_PARAMS, message)


@pytest.mark.requirement("R-COMP-02")
async def test_completion(core: Peer) -> None:
    prompt = await core.client.complete(
        t.PromptReference(name="recommend"), {"name": "genre", "value": "po"}, {"language": "en"}
    )
    assert prompt.completion.values == ["poetry", "popular science"]
    assert (prompt.completion.total, prompt.completion.has_more) == (2, False)
    meta = prompt.meta or {}
    assert (meta["bookshop/source"], meta["bookshop/settled"]) == ("recommend", {"language": "en"})
    template = await core.client.complete(
        t.ResourceTemplateReference(uri="book://{title}"), {"name": "title", "value": "e"}
    )
    assert template.completion.values == ["emma"]


class ReindexParams(t.RequestParams):
    shelf: Any = None
    deep: bool | None = None


class ReindexRequest(t.Request[ReindexParams, Literal["bookshop/reindex"]]):
    method: Literal["bookshop/reindex"] = "bookshop/reindex"
    params: ReindexParams


class ReindexResult(t.Result):
    indexed: int
    shelf: str
    deep: bool


class UnknownRequest(t.Request[t.RequestParams, Literal["bookshop/burn"]]):
    method: Literal["bookshop/burn"] = "bookshop/burn"
    params: t.RequestParams


async def test_method_of_its_own(core: Peer) -> None:
    request = ReindexRequest(params=ReindexParams(shelf="A", deep=True))
    result = await core.client.session.send_request(request, ReindexResult)
    assert (result.indexed, result.shelf, result.deep) == (7, "A", True)


@pytest.mark.requirement("R-ERR-01")
async def test_method_of_its_own_with_wrong_params(core: Peer) -> None:
    with pytest.raises(MCPError) as caught:
        await core.client.session.send_request(ReindexRequest(params=ReindexParams(shelf=3)), ReindexResult)
    assert caught.value.error.code == t.INVALID_PARAMS
    assert "shelf" in caught.value.error.message


@pytest.mark.requirement("R-ERR-01")
async def test_unknown_method(core: Peer) -> None:
    with pytest.raises(MCPError) as caught:
        await core.client.session.send_request(UnknownRequest(params=t.RequestParams()), t.EmptyResult)
    assert caught.value.error.code == t.METHOD_NOT_FOUND


# --- the typed server --------------------------------------------------------------------------------


async def test_typed_server_says_who_it_is(typed: Peer) -> None:
    client = typed.client
    assert client.protocol_version == REVISIONS[typed.mode]
    assert client.server_info is not None
    assert client.server_info.name == "typed-bookshop"
    assert client.instructions == "Buy books."
    assert client.server_capabilities.tools is not None
    assert client.server_capabilities.tools.list_changed is True


@pytest.mark.requirement("R-TOOL-04")
async def test_typed_tools_are_listed_with_their_schemas(typed: Peer) -> None:
    (listed,) = await typed.list_all_tools()
    tools = {tool.name: tool for tool in listed}
    add = tools["add"]
    assert add.description == "Add two numbers."
    assert {name: schema["type"] for name, schema in add.input_schema["properties"].items()} == {
        "a": "integer",
        "b": "integer",
    }
    assert add.input_schema["required"] == ["a", "b"]
    assert add.output_schema is not None
    assert add.output_schema["properties"]["result"]["type"] == "integer"
    sell = tools["sell"]
    assert (sell.title, sell.meta) == ("Sell a book", {"bookshop/department": "sales"})
    assert sell.input_schema["properties"]["copies"]["description"] == "How many."
    assert sell.input_schema["$defs"]["Book"]["properties"]["pages"]["minimum"] == 1
    assert sell.output_schema is not None
    assert set(sell.output_schema["properties"]) == {"title", "copies", "total"}
    assert "ctx" not in tools["count"].input_schema["properties"]


@pytest.mark.requirement("R-OUT-03")
async def test_typed_scalars(typed: Peer) -> None:
    added = await typed.client.call_tool("add", {"a": 2, "b": 40})
    assert (text_of(added), added.structured_content) == ("42", {"result": 42})
    shouted = await typed.client.call_tool("shout", {"text": "né", "times": 2})
    assert (text_of(shouted), shouted.structured_content) == ("NÉ NÉ", {"result": "NÉ NÉ"})


@pytest.mark.requirement("R-OUT-01")
async def test_typed_models(typed: Peer) -> None:
    result = await typed.client.call_tool("sell", {"book": {"title": "Dune", "pages": 412}, "copies": 2})
    assert result.structured_content == {"title": "Dune", "copies": 2, "total": 19.0}
    assert json.loads(text_of(result)) == result.structured_content


@pytest.mark.requirement("R-OUT-01")
async def test_typed_list_has_a_block_for_each_element(typed: Peer) -> None:
    result = await typed.client.call_tool("titles", {"shelf": "A"})
    assert result.structured_content == {"result": ["A 1", "A 2"]}
    assert result.content == [t.TextContent(text="A 1"), t.TextContent(text="A 2")]


@pytest.mark.requirement("R-TOOL-12")
async def test_typed_arguments_that_do_not_fit(typed: Peer) -> None:
    result = await typed.client.call_tool("sell", {"book": {"title": "Dune", "pages": 0}})
    assert result.is_error is True
    text = text_of(result)
    assert text.startswith("Error executing tool sell: 1 validation error for sellArguments\nbook.pages\n")
    assert "greater than or equal to 1" in text
    assert "https://" not in text


@pytest.mark.requirement("R-OUT-01")
@pytest.mark.parametrize(("tool", "field"), [("broken_receipt", "total"), ("unchecked_receipt", "copies")])
async def test_typed_result_that_does_not_fit(typed: Peer, tool: str, field: str) -> None:
    result = await typed.client.call_tool(tool)
    assert result.is_error is True
    text = text_of(result)
    assert text.startswith(f"Error executing tool {tool}: 1 validation error for ")
    assert f"\n{field}\n" in text
    assert "https://" not in text


@pytest.mark.requirement("R-TOOL-11")
async def test_tool_error_reaches_the_model(typed: Peer) -> None:
    result = await typed.client.call_tool("refuse", {"reason": "Out of stock"})
    assert result.is_error is True
    assert text_of(result) == "Error executing tool refuse: Out of stock"


async def test_typed_protocol_error(typed: Peer) -> None:
    with pytest.raises(MCPError) as caught:
        await typed.client.call_tool("protocol_error")
    error = caught.value.error
    assert (error.code, error.message, error.data) == (b.SHELF_ERROR, "No such shelf", {"shelf": "Z"})


@pytest.mark.requirement("R-LOG-05")
async def test_typed_crash_tells_no_more_than_an_id(typed: Peer) -> None:
    result = await typed.client.call_tool("crash")
    assert result.is_error is True
    assert re.fullmatch(r"Error executing tool crash \(error id [0-9a-f]{8}\)", text_of(result))


@pytest.mark.requirement("R-TOOL-10")
async def test_typed_unknown_tool(typed: Peer) -> None:
    with pytest.raises(MCPError) as caught:
        await typed.client.call_tool("nothing")
    assert (caught.value.error.code, caught.value.error.message) == (t.INVALID_PARAMS, "Unknown tool: nothing")


@pytest.mark.requirement("R-PROG-02")
async def test_typed_progress(typed: Peer) -> None:
    heard: Heard[tuple[float, float | None, str | None]] = Heard()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.tell((progress, total, message))

    result = await typed.client.call_tool("count", {"steps": 2}, progress_callback=hear)
    assert result.structured_content == {"result": "counted to 2"}
    assert await heard.count(2) == [(1, 2, "step 1"), (2, 2, "step 2")]


async def test_typed_log_messages(typed: Peer) -> None:
    await check_logging(typed, "typed")


@pytest.mark.requirement("R-CANC-03")
async def test_typed_cancellation_reaches_the_tool(typed: Peer) -> None:
    await check_cancellation(typed)

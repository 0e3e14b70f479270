"""Our client against servers of the official SDK, over stdio, in both eras and on both loops."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from mcp_core import Client, LocalProtocolError, MCPError, StdioServerParameters
from mcp_core import types as t
from mcp_core.client import Mode
from mcp_core.client.callbacks import ClientRequestContext
from mcp_core.errors import InvalidParams, MethodNotFound
from mcp_core.testing import modern_meta
from tests.interop import bookshop as b
from tests.interop.watching import Heard
from tests.pace import paced

MODES = ["auto", "legacy"]
REVISIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return request.param


@dataclass
class Peer:
    """A connected client, and what its callbacks were told."""

    client: Client
    mode: Mode
    logs: Heard[t.LoggingMessageNotificationParams]
    samplings: Heard[t.CreateMessageRequestParams]

    async def logs_of(self, text: str) -> list[t.LoggingMessageNotificationParams]:
        """The log messages of one call, once the last of them has come."""

        def of_call() -> list[t.LoggingMessageNotificationParams]:
            return [entry for entry in self.logs.items if entry.data["text"] == text]

        await self.logs.until(lambda _: any(entry.level == "error" for entry in of_call()))
        return of_call()


def elicit(context: ClientRequestContext, params: t.ElicitRequestParams) -> t.ElicitResult | t.ErrorData:
    assert isinstance(params, t.ElicitRequestFormParams)
    assert set(params.requested_schema["properties"]) == {"edition", "copies"}
    if params.message == "accept":
        return t.ElicitResult(action="accept", content={"edition": "second", "copies": 2})
    if params.message == "fail":
        return t.ErrorData(code=-1, message="User rejected the form")
    return t.ElicitResult(action="decline" if params.message == "decline" else "cancel")


async def list_roots(context: ClientRequestContext) -> t.ListRootsResult:
    return t.ListRootsResult(roots=[t.Root(uri="file:///srv/books", name="books"), t.Root(uri="file:///tmp")])


@asynccontextmanager
async def connect(module: str, mode: Mode) -> AsyncGenerator[Peer, None]:
    logs: Heard[t.LoggingMessageNotificationParams] = Heard()
    samplings: Heard[t.CreateMessageRequestParams] = Heard()

    async def sample(context: ClientRequestContext, params: t.CreateMessageRequestParams) -> t.CreateMessageResult:
        samplings.tell(params)
        said = t.TextContent(text="Sand and spice.")
        return t.CreateMessageResult(role="assistant", content=said, model="tiny-1", stop_reason="endTurn")

    client = Client(
        StdioServerParameters(**b.launch(module)),
        mode=mode,
        client_info=t.Implementation(name="interop", version="1"),
        elicitation_callback=elicit,
        sampling_callback=sample,
        list_roots_callback=list_roots,
        logging_callback=logs.tell,
        log_level="info",
        read_timeout_seconds=60,
        probe_timeout_seconds=60,
    )
    async with client:
        yield Peer(client, mode, logs, samplings)


@pytest.fixture(scope="module", params=MODES)
async def lowlevel(request: pytest.FixtureRequest, anyio_backend: Any) -> AsyncGenerator[Peer, None]:
    async with connect("official_lowlevel_server", request.param) as peer:
        yield peer


@pytest.fixture(scope="module", params=MODES)
async def typed(request: pytest.FixtureRequest, anyio_backend: Any) -> AsyncGenerator[Peer, None]:
    async with connect("official_mcpserver", request.param) as peer:
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


# --- the low-level server: who it is -----------------------------------------------------------


@pytest.mark.requirement("R-VER-16")
async def test_era_is_settled(lowlevel: Peer) -> None:
    client = lowlevel.client
    assert client.protocol_version == REVISIONS[lowlevel.mode]
    assert client.server_info is not None
    assert (client.server_info.name, client.server_info.version) == ("official-bookshop", "2.0.0")
    assert client.instructions == "Buy books."
    assert client.server_capabilities.tools is not None
    assert client.server_capabilities.resources is not None
    assert client.server_capabilities.prompts is not None
    assert client.server_capabilities.completions is not None
    assert client.server_capabilities.logging is not None


async def test_discover_belongs_to_the_modern_era(lowlevel: Peer) -> None:
    if lowlevel.mode == "auto":
        found = await lowlevel.client.discover()
        assert "2026-07-28" in found.supported_versions
        assert found.capabilities.tools is not None
    else:
        with pytest.raises(MCPError):
            await lowlevel.client.discover()


@pytest.mark.requirement("R-BASE-20")
async def test_ping_belongs_to_the_handshake_era(lowlevel: Peer) -> None:
    if lowlevel.mode == "legacy":
        await lowlevel.client.ping()
    else:
        with pytest.raises(LocalProtocolError):
            await lowlevel.client.ping()


@pytest.mark.requirement("R-VER-12")
async def test_pinned_revision_needs_no_probe(anyio_backend: Any) -> None:
    parameters = StdioServerParameters(**b.launch("core_server"))
    async with Client(parameters, mode="2026-07-28", read_timeout_seconds=60) as client:
        assert client.protocol_version == "2026-07-28"
        assert client.server_info is None
        assert text_of(await client.call_tool("echo", {"text": "at once"})) == "at once"


# --- lists ---------------------------------------------------------------------------------------


@pytest.mark.requirement("R-PAGE-02")
async def test_lists_tools_by_pages(lowlevel: Peer) -> None:
    pages: list[list[t.Tool]] = []
    cursor: str | None = None
    while not pages or cursor is not None:
        listed = await lowlevel.client.list_tools(cursor=cursor)
        pages.append(listed.tools)
        cursor = listed.next_cursor
    tools = {tool.name: tool for page in pages for tool in page}
    assert len(pages) > 1
    assert len(tools) == sum(len(page) for page in pages)
    assert tools["echo"].input_schema == b.TEXT_SCHEMA
    assert tools["echo"].description == "Give the text back."
    assert tools["search"].output_schema == b.MATCHES_SCHEMA
    assert tools["echo"].output_schema is None


@pytest.mark.requirement("R-PAGE-02")
async def test_lists_resources_templates_and_prompts_by_pages(lowlevel: Peer) -> None:
    client = lowlevel.client
    resources = await client.list_resources()
    assert [item.uri for item in resources.resources] == ["book://dune", "book://emma"]
    assert (resources.resources[0].size, resources.resources[0].title) == (22, "Dune")
    assert resources.resources[1].meta == b.CONTENT_META
    rest = await client.list_resources(cursor=resources.next_cursor)
    assert ([item.name for item in rest.resources], rest.next_cursor) == (["cover"], None)

    templates = await client.list_resource_templates()
    assert [item.uri_template for item in templates.resource_templates] == ["book://{title}"]
    more = await client.list_resource_templates(cursor=templates.next_cursor)
    assert [item.mime_type for item in more.resource_templates] == ["image/png"]

    prompts = await client.list_prompts()
    assert [item.name for item in prompts.prompts] == ["recommend", "apologize"]
    assert prompts.prompts[0].arguments == [t.PromptArgument(name="genre", description="What kind", required=True)]
    last = await client.list_prompts(cursor=prompts.next_cursor)
    assert [item.name for item in last.prompts] == ["illustrate"]


async def test_invalid_cursor_is_refused(lowlevel: Peer) -> None:
    with pytest.raises(InvalidParams) as caught:
        await lowlevel.client.list_tools(cursor="nowhere")
    assert caught.value.data == {"cursor": "nowhere"}


# --- results -------------------------------------------------------------------------------------


async def test_text(lowlevel: Peer) -> None:
    text = 'zwölf "Bücher"\n\u2028 𝄞 \x00'
    result = await lowlevel.client.call_tool("echo", {"text": text})
    assert text_of(result) == text
    assert result.is_error is False
    assert result.structured_content is None


async def test_other_kinds_of_content(lowlevel: Peer) -> None:
    image = await lowlevel.client.call_tool("image")
    assert image.content == [t.ImageContent(data=b.PIXEL, mime_type="image/png")]
    audio = await lowlevel.client.call_tool("audio")
    assert audio.content == [t.AudioContent(data=b.SOUND, mime_type="audio/wav")]
    link = await lowlevel.client.call_tool("link")
    assert link.content == [
        t.ResourceLink(uri="book://dune", name="dune", mime_type="text/plain", size=22, title="Dune")
    ]
    embedded = await lowlevel.client.call_tool("embedded")
    book = t.TextResourceContents(uri="book://dune", mime_type="text/plain", text=b.BOOKS["book://dune"])
    cover = t.BlobResourceContents(uri="cover://dune", mime_type="image/png", blob=b.PIXEL)
    assert embedded.content == [t.EmbeddedResource(resource=book), t.EmbeddedResource(resource=cover)]


@pytest.mark.requirement("R-CONT-07")
async def test_meta_of_result_and_content(lowlevel: Peer) -> None:
    result = await lowlevel.client.call_tool("tagged")
    assert result.meta is not None
    # The official server leaves nulls out in 2026-07-28; `test_nulls_in_meta_are_kept` has them.
    assert result.meta["bookshop/record_ids"] == b.RESULT_META["bookshop/record_ids"]
    (block,) = result.content
    assert isinstance(block, t.TextContent)
    assert block.meta == b.CONTENT_META
    assert block.annotations == t.Annotations(audience=["user"], priority=0.5)


async def test_meta_of_the_request_arrives(lowlevel: Peer) -> None:
    meta = {"bookshop/trace": ["a", None, {"b": 1.5}]}
    result = await lowlevel.client.call_tool("request_meta", meta=meta)
    assert result.structured_content == meta


async def test_structured_content(lowlevel: Peer) -> None:
    result = await lowlevel.client.call_tool("search", {"text": "dune"})
    assert result.structured_content == {"matches": 3}
    assert json.loads(text_of(result)) == {"matches": 3}


# --- failures ------------------------------------------------------------------------------------


async def test_failure_for_the_model_is_returned(lowlevel: Peer) -> None:
    result = await lowlevel.client.call_tool("refuse")
    assert result.is_error is True
    assert text_of(result) == "Out of stock"


async def test_error_of_the_application(lowlevel: Peer) -> None:
    with pytest.raises(MCPError) as caught:
        await lowlevel.client.call_tool("protocol_error")
    error = caught.value
    assert (error.code, error.message, error.data) == (b.SHELF_ERROR, "No such shelf", {"shelf": "Z"})


async def test_errors_have_the_class_of_their_code(lowlevel: Peer) -> None:
    with pytest.raises(InvalidParams, match="Unknown tool: nothing"):
        await lowlevel.client.call_tool("nothing")
    with pytest.raises(MethodNotFound):
        await lowlevel.client.request("bookshop/burn")


# --- while a call runs -----------------------------------------------------------------------------


@pytest.mark.requirement("R-PROG-01")
async def test_progress(lowlevel: Peer) -> None:
    heard: Heard[tuple[float, float | None, str | None]] = Heard()

    def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.tell((progress, total, message))

    result = await lowlevel.client.call_tool("progress", progress_callback=hear)
    assert text_of(result) == "done"
    assert await heard.count(3) == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


@pytest.mark.requirement("R-PROG-01")
async def test_progress_of_calls_at_the_same_time_is_kept_apart(lowlevel: Peer) -> None:
    heard: dict[int, Heard[float]] = {number: Heard() for number in range(5)}

    async def call(number: int) -> None:
        await lowlevel.client.call_tool(
            "progress", progress_callback=lambda progress, total, message: heard[number].tell(progress)
        )

    async with anyio.create_task_group() as group:
        for number in heard:
            group.start_soon(call, number)
    for each in heard.values():
        assert await each.count(3) == [1, 2, 3]


@pytest.mark.requirement("R-STD-06")
@pytest.mark.requirement("R-CANC-01")
async def test_cancellation_reaches_the_tool(lowlevel: Peer) -> None:
    await check_cancellation(lowlevel)


async def test_log_messages(lowlevel: Peer) -> None:
    if lowlevel.mode == "legacy":
        await lowlevel.client.set_logging_level("info")
    else:
        with pytest.raises(LocalProtocolError):
            await lowlevel.client.set_logging_level("info")
    await lowlevel.client.call_tool("log", {"text": "lowlevel"})
    logs = await lowlevel.logs_of("lowlevel")
    # The official server sends every level in the handshake era, whatever was set.
    levels = ["info", "error"] if lowlevel.mode == "auto" else ["debug", "info", "error"]
    assert [entry.level for entry in logs] == levels
    assert logs[-1].logger == "bookshop"
    assert logs[-1].data == {"text": "lowlevel", "level": "error"}


# --- asking the client -----------------------------------------------------------------------------


@pytest.mark.requirement("R-MRTR-09")
@pytest.mark.requirement("R-ELIC-04")
@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("accept", "accept: {'edition': 'second', 'copies': 2}"),
        ("decline", "decline: None"),
        ("cancel", "cancel: None"),
    ],
)
async def test_elicitation(lowlevel: Peer, message: str, answer: str) -> None:
    assert text_of(await lowlevel.client.call_tool("choose", {"text": message})) == answer


async def test_elicitation_that_the_client_refuses(lowlevel: Peer) -> None:
    with pytest.raises(MCPError) as caught:
        await lowlevel.client.call_tool("choose", {"text": "fail"})
    assert (caught.value.code, caught.value.message) == (-1, "User rejected the form")


@pytest.mark.requirement("R-SAMP-04")
async def test_sampling(lowlevel: Peer) -> None:
    asked = len(lowlevel.samplings.items)
    assert text_of(await lowlevel.client.call_tool("summarize", {"text": "Dune?"})) == "tiny-1: Sand and spice."
    (params,) = lowlevel.samplings.items[asked:]
    assert (params.max_tokens, params.system_prompt) == (50, "Be brief.")
    assert params.messages == [t.SamplingMessage(role="user", content=t.TextContent(text="Dune?"))]


@pytest.mark.requirement("R-ROOT-01")
async def test_roots(lowlevel: Peer) -> None:
    assert text_of(await lowlevel.client.call_tool("places")) == "books=file:///srv/books, None=file:///tmp"


# --- resources, prompts, completion, methods of one's own --------------------------------------------


async def test_read_text_and_blob(lowlevel: Peer) -> None:
    book = await lowlevel.client.read_resource("book://emma")
    assert book.contents == [
        t.TextResourceContents(
            uri="book://emma", mime_type="text/plain", text=b.BOOKS["book://emma"], _meta=b.CONTENT_META
        )
    ]
    cover = await lowlevel.client.read_resource("cover://dune")
    assert cover.contents == [t.BlobResourceContents(uri="cover://dune", mime_type="image/png", blob=b.PIXEL)]


@pytest.mark.requirement("R-RES-06")
async def test_missing_resource(lowlevel: Peer) -> None:
    with pytest.raises(InvalidParams) as caught:
        await lowlevel.client.read_resource("book://none")
    assert caught.value.data == {"uri": "book://none"}


@pytest.mark.requirement("R-PROMPT-03")
async def test_prompts(lowlevel: Peer) -> None:
    prompt = await lowlevel.client.get_prompt("recommend", {"genre": "short"})
    assert prompt.description == "A recommendation"
    assert prompt.messages == [
        t.PromptMessage(role="user", content=t.TextContent(text="Recommend a short book.")),
        t.PromptMessage(role="assistant", content=t.TextContent(text="Gladly.")),
    ]
    (message,) = (await lowlevel.client.get_prompt("illustrate")).messages
    assert message.content == t.ImageContent(data=b.PIXEL, mime_type="image/png")
    with pytest.raises(InvalidParams, match="Missing required argument: genre"):
        await lowlevel.client.get_prompt("recommend")
    with pytest.raises(InvalidParams, match="Unknown prompt: nothing"):
        await lowlevel.client.get_prompt("nothing")


@pytest.mark.requirement("R-COMP-02")
async def test_completion(lowlevel: Peer) -> None:
    prompt = await lowlevel.client.complete(
        t.PromptReference(name="recommend"), {"name": "genre", "value": "po"}, {"language": "en"}
    )
    assert prompt.completion == t.Completion(values=["poetry", "popular science"], total=2, has_more=False)
    meta = prompt.meta or {}
    assert (meta["bookshop/source"], meta["bookshop/settled"]) == ("recommend", {"language": "en"})
    template = await lowlevel.client.complete(
        t.ResourceTemplateReference(uri="book://{title}"), t.CompletionArgument(name="title", value="e")
    )
    assert template.completion.values == ["emma"]


class Reindexed(msgspec.Struct):
    """What the server's own method answers."""

    indexed: int
    shelf: str
    deep: bool


async def test_method_of_its_own(lowlevel: Peer) -> None:
    params = {"shelf": "A", "deep": True}
    result = await lowlevel.client.request("bookshop/reindex", params, Reindexed)
    assert result == Reindexed(indexed=7, shelf="A", deep=True)
    as_dict = await lowlevel.client.request("bookshop/reindex", {"shelf": "B"})
    assert {key: as_dict[key] for key in ("indexed", "shelf", "deep")} == {"indexed": 7, "shelf": "B", "deep": False}
    with pytest.raises(InvalidParams):
        await lowlevel.client.request("bookshop/reindex", {"shelf": 3})


# --- the official typed server -----------------------------------------------------------------------


async def test_typed_lists(typed: Peer) -> None:
    client = typed.client
    assert client.protocol_version == REVISIONS[typed.mode]
    assert client.server_info is not None
    assert client.server_info.name == "official-typed-bookshop"
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools["add"].input_schema["properties"]) == {"a", "b"}
    assert (tools["sell"].title, tools["sell"].meta) == ("Sell a book", {"bookshop/department": "sales"})
    assert tools["sell"].output_schema is not None
    assert set(tools["sell"].output_schema["properties"]) == {"title", "copies", "total"}
    assert [item.uri for item in (await client.list_resources()).resources] == ["book://dune", "cover://dune"]
    templates = (await client.list_resource_templates()).resource_templates
    assert [item.uri_template for item in templates] == ["shelf://{number}"]
    assert [item.name for item in (await client.list_prompts()).prompts] == ["recommend"]


async def test_typed_results(typed: Peer) -> None:
    added = await typed.client.call_tool("add", {"a": 2, "b": 40})
    assert (text_of(added), added.structured_content) == ("42", {"result": 42})
    sold = await typed.client.call_tool("sell", {"book": {"title": "Dune", "pages": 412}, "copies": 2})
    assert sold.structured_content == {"title": "Dune", "copies": 2, "total": 19.0}
    listed = await typed.client.call_tool("titles", {"shelf": "A"})
    assert listed.structured_content == {"result": ["A 1", "A 2"]}
    assert listed.content == [t.TextContent(text="A 1"), t.TextContent(text="A 2")]
    (cover,) = (await typed.client.call_tool("cover")).content
    assert cover == t.ImageContent(data="iVBORw==", mime_type="image/png")


async def test_typed_failures(typed: Peer) -> None:
    refused = await typed.client.call_tool("refuse", {"reason": "Out of stock"})
    assert refused.is_error is True
    assert "Out of stock" in text_of(refused)
    crashed = await typed.client.call_tool("crash")
    assert crashed.is_error is True
    assert b.SECRET not in text_of(crashed)
    unfit = await typed.client.call_tool("sell", {"book": {"title": "Dune", "pages": 0}})
    assert unfit.is_error is True
    with pytest.raises(MCPError) as caught:
        await typed.client.call_tool("protocol_error")
    error = caught.value
    assert (error.code, error.message, error.data) == (b.SHELF_ERROR, "No such shelf", {"shelf": "Z"})


async def test_typed_progress_and_log(typed: Peer) -> None:
    heard: Heard[tuple[float, float | None, str | None]] = Heard()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.tell((progress, total, message))

    await typed.client.call_tool("count", {"steps": 2}, progress_callback=hear)
    assert await heard.count(2) == [(1, 2, "step 1"), (2, 2, "step 2")]
    await typed.client.call_tool("log", {"text": "typed"})
    logs = await typed.logs_of("typed")
    assert [entry.level for entry in logs][-2:] == ["info", "error"]
    assert logs[-1].data == {"text": "typed", "level": "error"}


@pytest.mark.parametrize(
    ("message", "answer"), [("accept", "accept: {'edition': 'second', 'copies': 2}"), ("decline", "decline: None")]
)
async def test_typed_elicitation(typed: Peer, message: str, answer: str) -> None:
    assert text_of(await typed.client.call_tool("choose", {"text": message})) == answer


async def test_typed_cancellation_reaches_the_tool(typed: Peer) -> None:
    await check_cancellation(typed)


async def test_typed_resources_prompts_and_completion(typed: Peer) -> None:
    client = typed.client
    book = await client.read_resource("book://dune")
    assert book.contents == [
        t.TextResourceContents(uri="book://dune", mime_type="text/plain", text=b.BOOKS["book://dune"])
    ]
    (cover,) = (await client.read_resource("cover://dune")).contents
    assert isinstance(cover, t.BlobResourceContents)
    (shelf,) = (await client.read_resource("shelf://7")).contents
    assert isinstance(shelf, t.TextResourceContents)
    assert shelf.text == "shelf 7"
    with pytest.raises(InvalidParams):
        await client.read_resource("book://none")
    prompt = await client.get_prompt("recommend", {"genre": "short"})
    assert [message.role for message in prompt.messages] == ["user", "assistant"]
    assert prompt.messages[0].content == t.TextContent(text="Recommend a short book.")
    completed = await client.complete(t.PromptReference(name="recommend"), {"name": "genre", "value": "d"})
    assert completed.completion.values == ["drama"]


# --- the end -------------------------------------------------------------------------------------------


def is_running(pid: int) -> bool:
    """Whether there is such a process, a zombie included."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.requirement("R-STD-08")
@pytest.mark.parametrize(
    ("behaviour", "grace", "end"),
    [
        ("polite", 5, ["input ended", "exited"]),
        ("deaf", 0.5, ["input ended", "terminated"]),
        ("immortal", 0.5, ["input ended", "terminated"]),
    ],
)
async def test_shutdown_asks_then_terminates_then_kills(
    anyio_backend: Any, behaviour: str, grace: float, end: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_core.transports.process.GRACE", paced(grace))
    journal = tmp_path / "journal"
    parameters = StdioServerParameters(**b.launch("script_server", behaviour, str(journal)))
    with anyio.fail_after(60):
        async with Client(parameters, probe_timeout_seconds=60) as client:
            pid = int(text_of(await client.call_tool("pid")))
            assert is_running(pid)
    assert not is_running(pid)
    assert journal.read_text(encoding="utf-8").split("\n")[:-1] == end


@pytest.mark.requirement("R-STD-08")
async def test_shutdown_happens_though_the_caller_is_cancelled(
    anyio_backend: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_core.transports.process.GRACE", paced(0.5))
    journal = tmp_path / "journal"
    parameters = StdioServerParameters(**b.launch("script_server", "deaf", str(journal)))
    pids: list[int] = []
    with anyio.fail_after(60), anyio.CancelScope() as scope:
        async with Client(parameters, probe_timeout_seconds=60) as client:
            pids.append(int(text_of(await client.call_tool("pid"))))
            scope.cancel()
            await client.call_tool("hold", {"number": 1})
    assert scope.cancelled_caught
    assert [is_running(pid) for pid in pids] == [False]
    assert journal.read_text(encoding="utf-8") == "input ended\nterminated\n"


@pytest.mark.requirement("R-STD-09")
@pytest.mark.parametrize("module", ["core_server", "typed_server"])
def test_our_servers_end_with_their_input(module: str) -> None:
    """They answer what they were asked, and go without a word."""
    started = b.launch(module)
    probe = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": modern_meta()}}
    ended = subprocess.run(
        [started["command"], *started["args"]],
        input=json.dumps(probe).encode() + b"\n",
        capture_output=True,
        cwd=started["cwd"],
        env={**os.environ, **started["env"]},
        timeout=60,
        check=False,
    )
    (line,) = ended.stdout.splitlines()
    assert json.loads(line)["id"] == 1
    assert (ended.returncode, ended.stderr) == (0, b"")


async def test_closed_client_refuses_to_be_used(anyio_backend: Any) -> None:
    client = Client(StdioServerParameters(**b.launch("script_server", "polite")))
    async with client:
        await client.call_tool("pid")
    with pytest.raises(LocalProtocolError):
        await client.call_tool("pid")

"""A low-level server of the official SDK with one of everything, for our client to try."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias

import anyio
import mcp_types as t
from mcp import MCPDeprecationWarning, MCPError, stdio_server
from mcp.server import Server, ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tests.interop import bookshop as b

Context: TypeAlias = ServerRequestContext[Any, Any]
Answer: TypeAlias = t.CallToolResult | t.InputRequiredResult
Handler: TypeAlias = Callable[[Context, t.CallToolRequestParams], Awaitable[Answer]]

LEVELS: tuple[Literal["debug", "info", "error"], ...] = ("debug", "info", "error")

_milestones = b.Milestones()
_tools: dict[str, tuple[t.Tool, Handler]] = {}


def tool(
    name: str, input_schema: dict[str, Any] = b.EMPTY_SCHEMA, output_schema: dict[str, Any] | None = None
) -> Callable[[Handler], Handler]:
    """Register a handler under a tool's name."""

    def register(handler: Handler) -> Handler:
        listed = t.Tool(name=name, description=handler.__doc__, input_schema=input_schema, output_schema=output_schema)
        _tools[name] = listed, handler
        return handler

    return register


def text(value: str) -> t.CallToolResult:
    """A result of one text."""
    return t.CallToolResult(content=[t.TextContent(text=value)])


def argument(params: t.CallToolRequestParams, name: str) -> str:
    """A string argument of a call."""
    return str((params.arguments or {})[name])


# --- kinds of results ----------------------------------------------------------------------


@tool("echo", b.TEXT_SCHEMA)
async def echo(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """Give the text back."""
    return text(argument(params, "text"))


@tool("image")
async def image(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """An image."""
    return t.CallToolResult(content=[t.ImageContent(data=b.PIXEL, mime_type="image/png")])


@tool("audio")
async def audio(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """A sound."""
    return t.CallToolResult(content=[t.AudioContent(data=b.SOUND, mime_type="audio/wav")])


@tool("link")
async def link(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """A resource by reference."""
    return t.CallToolResult(
        content=[t.ResourceLink(uri="book://dune", name="dune", mime_type="text/plain", size=22, title="Dune")]
    )


@tool("embedded")
async def embedded(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """Two resources by value, a text and a blob."""
    return t.CallToolResult(
        content=[
            t.EmbeddedResource(
                resource=t.TextResourceContents(uri="book://dune", mime_type="text/plain", text=b.BOOKS["book://dune"])
            ),
            t.EmbeddedResource(
                resource=t.BlobResourceContents(uri="cover://dune", mime_type="image/png", blob=b.PIXEL)
            ),
        ]
    )


@tool("search", b.TEXT_SCHEMA, b.MATCHES_SCHEMA)
async def search(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """Structured content that keeps to its schema."""
    return t.CallToolResult(content=[t.TextContent(text='{"matches": 3}')], structured_content={"matches": 3})


@tool("tagged")
async def tagged(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """`_meta` on the result and on its block, and annotations."""
    block = t.TextContent(
        text="tagged", annotations=t.Annotations(audience=["user"], priority=0.5), _meta=dict(b.CONTENT_META)
    )
    return t.CallToolResult(content=[block], _meta=dict(b.RESULT_META))


@tool("request_meta")
async def request_meta(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """The `_meta` that the author of the client gave."""
    own = {key: value for key, value in (ctx.meta or {}).items() if key.startswith("bookshop/")}
    return t.CallToolResult(content=[], structured_content=own)


# --- failures --------------------------------------------------------------------------------


@tool("refuse")
async def refuse(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """A failure for the model to read."""
    return t.CallToolResult(content=[t.TextContent(text="Out of stock")], is_error=True)


@tool("protocol_error")
async def protocol_error(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """An error of the protocol, with data."""
    raise MCPError(b.SHELF_ERROR, "No such shelf", {"shelf": "Z"})


# --- while a call runs -----------------------------------------------------------------------


@tool("progress")
async def progress(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """Three reports of progress."""
    for step in (1, 2, 3):
        await ctx.session.report_progress(step, 3, f"step {step}")
    return text("done")


@tool("log", b.TEXT_SCHEMA)
async def log(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """A message at each of three levels."""
    for level in LEVELS:
        await ctx.session.send_log_message(  # pyright: ignore[reportDeprecated]
            level, {"text": argument(params, "text"), "level": level}, "bookshop", ctx.request_id
        )
    return text("logged")


@tool("slow", b.NAME_SCHEMA)
async def slow(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """Goes on until it is cancelled."""
    name = argument(params, "name")
    _milestones.reach(f"{name} started")
    try:
        await anyio.sleep_forever()
    finally:
        _milestones.reach(f"{name} cancelled")
    return text("slept")


@tool("milestone", b.NAME_SCHEMA)
async def milestone(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """Wait until another call has come so far."""
    name = argument(params, "name")
    await _milestones.wait(name)
    return text(f"{name}: reached")


@tool("reach", b.NAME_SCHEMA)
async def reach(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """Let those go on who wait for a milestone."""
    _milestones.reach(argument(params, "name"))
    return text("ok")


# --- asking the client -------------------------------------------------------------------------


def is_modern(ctx: Context) -> bool:
    """Whether the client is to be asked by a result."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def asked(question: t.InputRequest) -> t.InputRequiredResult:
    """The result that asks one question."""
    return t.InputRequiredResult(input_requests={"question": question}, request_state="signed")


def answered(params: t.CallToolRequestParams) -> t.InputResponse | None:
    """The client's answer, once it has been asked."""
    if params.input_responses is None:
        return None
    if params.request_state != "signed":
        raise MCPError(t.INVALID_PARAMS, "the request state was not given back")
    return params.input_responses["question"]


@tool("choose", b.TEXT_SCHEMA)
async def choose(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """Ask the user for an edition."""
    message = argument(params, "text")
    if is_modern(ctx):
        answer = answered(params)
        if answer is None:
            form = t.ElicitRequestFormParams(message=message, requested_schema=b.EDITION_SCHEMA)
            return asked(t.ElicitRequest(params=form))
    else:
        answer = await ctx.session.elicit_form(message, b.EDITION_SCHEMA, ctx.request_id)
    assert isinstance(answer, t.ElicitResult)
    return text(f"{answer.action}: {answer.content}")


@tool("summarize", b.TEXT_SCHEMA)
async def summarize(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """Ask the model for a summary."""
    said = t.SamplingMessage(role="user", content=t.TextContent(text=argument(params, "text")))
    if is_modern(ctx):
        answer = answered(params)
        if answer is None:
            prompt = t.CreateMessageRequestParams(messages=[said], max_tokens=50, system_prompt="Be brief.")
            return asked(t.CreateMessageRequest(params=prompt))
    else:
        answer = await ctx.session.create_message(  # pyright: ignore[reportDeprecated]
            [said], max_tokens=50, system_prompt="Be brief.", related_request_id=ctx.request_id
        )
    assert isinstance(answer, t.CreateMessageResult)
    assert isinstance(answer.content, t.TextContent)
    return text(f"{answer.model}: {answer.content.text}")


@tool("places")
async def places(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    """Ask the client for its roots."""
    if is_modern(ctx):
        answer = answered(params)
        if answer is None:
            return asked(t.ListRootsRequest())
    else:
        answer = await ctx.session.list_roots()  # pyright: ignore[reportDeprecated]
    assert isinstance(answer, t.ListRootsResult)
    return text(", ".join(f"{root.name}={root.uri}" for root in answer.roots))


# --- the hooks -----------------------------------------------------------------------------------


def paged(params: t.PaginatedRequestParams | None, total: int, size: int) -> tuple[slice, str | None]:
    """The part of a list that is asked for."""
    cursor = None if params is None else params.cursor
    found = b.page(cursor, total, size)
    if found is None:
        raise MCPError(t.INVALID_PARAMS, "Invalid cursor", {"cursor": cursor})
    return found


async def list_tools(ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListToolsResult:
    part, cursor = paged(params, len(_tools), 8)
    return t.ListToolsResult(tools=[listed for listed, _ in _tools.values()][part], next_cursor=cursor)


async def call_tool(ctx: Context, params: t.CallToolRequestParams) -> Answer:
    found = _tools.get(params.name)
    if found is None:
        raise MCPError(t.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await found[1](ctx, params)


RESOURCES = [
    t.Resource(uri="book://dune", name="dune", title="Dune", mime_type="text/plain", size=22),
    t.Resource(uri="book://emma", name="emma", _meta=dict(b.CONTENT_META)),
    t.Resource(uri="cover://dune", name="cover", mime_type="image/png"),
]
TEMPLATES = [
    t.ResourceTemplate(uri_template="book://{title}", name="book", description="A book by its title"),
    t.ResourceTemplate(uri_template="cover://{title}", name="cover", mime_type="image/png"),
]
PROMPTS = [
    t.Prompt(
        name="recommend",
        description="Recommend a book",
        arguments=[t.PromptArgument(name="genre", description="What kind", required=True)],
    ),
    t.Prompt(name="apologize", title="Apologize"),
    t.Prompt(name="illustrate"),
]


async def list_resources(ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListResourcesResult:
    part, cursor = paged(params, len(RESOURCES), 2)
    return t.ListResourcesResult(resources=RESOURCES[part], next_cursor=cursor)


async def list_templates(ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListResourceTemplatesResult:
    part, cursor = paged(params, len(TEMPLATES), 1)
    return t.ListResourceTemplatesResult(resource_templates=TEMPLATES[part], next_cursor=cursor)


async def read_resource(ctx: Context, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
    uri = str(params.uri)
    if uri == "cover://dune":
        return t.ReadResourceResult(contents=[t.BlobResourceContents(uri=uri, mime_type="image/png", blob=b.PIXEL)])
    if uri not in b.BOOKS:
        raise MCPError(t.INVALID_PARAMS, f"Unknown resource: {uri}", {"uri": uri})
    contents = t.TextResourceContents(uri=uri, mime_type="text/plain", text=b.BOOKS[uri], _meta=dict(b.CONTENT_META))
    return t.ReadResourceResult(contents=[contents])


async def list_prompts(ctx: Context, params: t.PaginatedRequestParams | None) -> t.ListPromptsResult:
    part, cursor = paged(params, len(PROMPTS), 2)
    return t.ListPromptsResult(prompts=PROMPTS[part], next_cursor=cursor)


async def get_prompt(ctx: Context, params: t.GetPromptRequestParams) -> t.GetPromptResult:
    arguments = params.arguments or {}
    if params.name == "recommend":
        if "genre" not in arguments:
            raise MCPError(t.INVALID_PARAMS, "Missing required argument: genre")
        asked_for = t.TextContent(text=f"Recommend a {arguments['genre']} book.")
        said = t.TextContent(text="Gladly.")
        return t.GetPromptResult(
            description="A recommendation",
            messages=[t.PromptMessage(role="user", content=asked_for), t.PromptMessage(role="assistant", content=said)],
        )
    if params.name == "illustrate":
        picture = t.ImageContent(data=b.PIXEL, mime_type="image/png")
        return t.GetPromptResult(messages=[t.PromptMessage(role="user", content=picture)])
    raise MCPError(t.INVALID_PARAMS, f"Unknown prompt: {params.name}")


async def complete(ctx: Context, params: t.CompleteRequestParams) -> t.CompleteResult:
    if isinstance(params.ref, t.PromptReference):
        known = ["poetry", "popular science", "drama"]
        source = params.ref.name
    else:
        known = ["dune", "emma"]
        source = str(params.ref.uri)
    settled = params.context.arguments if params.context is not None else None
    values = [value for value in known if value.startswith(params.argument.value)]
    return t.CompleteResult(
        completion=t.Completion(values=values, total=len(values), has_more=False),
        _meta={"bookshop/source": source, "bookshop/settled": settled},
    )


async def set_level(ctx: Context, params: t.SetLevelRequestParams) -> t.EmptyResult:
    return t.EmptyResult()


class ReindexParams(t.RequestParams):
    """What to index anew."""

    shelf: str
    deep: bool = False


async def reindex(ctx: Context, params: ReindexParams) -> dict[str, Any]:
    return {"indexed": 7, "shelf": params.shelf, "deep": params.deep}


def build() -> Server[dict[str, Any]]:
    """The server with all its handlers."""
    server: Server[dict[str, Any]] = Server(  # pyright: ignore[reportDeprecated]
        "official-bookshop",
        version="2.0.0",
        title="Bookshop",
        instructions="Buy books.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=set_level,
    )
    server.add_request_handler("bookshop/reindex", ReindexParams, reindex)
    return server


async def main() -> None:
    """Serve stdin and stdout."""
    server = build()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    anyio.run(main)

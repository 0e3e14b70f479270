"""The server of the golden wire files: a bit of everything, the same in all revisions.

Handlers speak the newest revision; what reaches a client of another one is the
library's doing. The notification `notifications/example/change` makes the server
announce a change, so that nothing but the announcement answers it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio

from mcp_core import RequestContext, ResourceNotFound, Server
from mcp_core import types as t
from mcp_core.errors import InvalidParams, UrlElicitationRequired
from mcp_core.revisions import is_modern
from mcp_core.subscriptions import (
    Event,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)

__all__ = ["make_server"]

META: Final[dict[str, Any]] = {"example.org/id": [1, None]}
ICONS: Final = [t.Icon(src="https://tides.example/i.png", mime_type="image/png", sizes=["48x48"])]
NOTES: Final = t.Annotations(audience=["user"], priority=0.5, last_modified="2026-01-02T03:04:05Z")
TODAY: Final = "tide://brest/today"
PORT: Final[dict[str, Any]] = {"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]}
METRES: Final[dict[str, Any]] = {"type": "object", "properties": {"metres": {"type": "number"}}, "required": ["metres"]}
YES: Final[dict[str, Any]] = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
SITE: Final = "https://tides.example/link?t=9"

Context = RequestContext[Any]


# --- tools ----------------------------------------------------------------------------

TOOLS: Final = [
    t.Tool(
        name="blocks",
        title="Tide height",
        description="Tide height at a port",
        input_schema=PORT,
        output_schema=METRES,
        annotations=t.ToolAnnotations(title="Tide", read_only_hint=True, open_world_hint=False),
        icons=ICONS,
        execution=t.ToolExecution(task_support="optional"),
        _meta=META,
    ),
    t.Tool(
        name="series",
        input_schema={"type": "object"},
        output_schema={"type": "array", "items": {"type": "number"}},
    ),
]


def _list_tools(ctx: Context, params: t.PaginatedRequestParams) -> t.ListToolsResult:
    if params.cursor is None:
        return t.ListToolsResult(tools=TOOLS[:1], next_cursor="p2", ttl_ms=300000, cache_scope="public", _meta=META)
    if params.cursor != "p2":
        raise InvalidParams("Unknown cursor")
    return t.ListToolsResult(tools=TOOLS[1:])


def _text(text: str) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(text=text)])


def _blocks() -> t.CallToolResult:
    return t.CallToolResult(
        content=[
            t.TextContent(text="größer als 4 m", annotations=NOTES, _meta=META),
            t.ImageContent(data="AA==", mime_type="image/png", annotations=NOTES, _meta=META),
            t.AudioContent(data="AAAA", mime_type="audio/wav", annotations=NOTES, _meta=META),
            t.ResourceLink(
                uri=TODAY,
                name="brest-today",
                title="Brest",
                description="Today's tide",
                mime_type="text/csv",
                size=12,
                annotations=NOTES,
                icons=ICONS,
                _meta=META,
            ),
            t.EmbeddedResource(
                resource=t.TextResourceContents(uri=TODAY, mime_type="text/csv", text="0,4.1", _meta=META),
                annotations=NOTES,
                _meta=META,
            ),
            t.EmbeddedResource(resource=t.BlobResourceContents(uri="tide://b", blob="AA==")),
        ],
        structured_content={"metres": 4.1, "at": None},
        _meta=META,
    )


async def _asks(ctx: Context, params: t.CallToolRequestParams) -> t.CallToolResult | t.InputRequiredResult:
    if not is_modern(ctx.protocol_version):
        answer = await ctx.elicit("Book berth 12?", YES)
        return _text(f"{answer.action} {answer.content}")
    if params.input_responses is not None:
        answer = params.input_responses["confirm"]
        return _text(f"{answer['action']} {answer['content']} {params.request_state}")
    form = t.ElicitRequestFormParams(message="Book berth 12?", requested_schema=YES, mode="form")
    return t.InputRequiredResult(
        input_requests={"confirm": t.InputRequest(method="elicitation/create", params=form)},
        request_state="v1.aGVsbG8",
    )


async def _visits(ctx: Context, params: t.CallToolRequestParams) -> t.CallToolResult | t.InputRequiredResult:
    if not is_modern(ctx.protocol_version):
        return _text((await ctx.elicit_url("Link your account", SITE, "e-9")).action)
    if params.input_responses is not None:
        return _text(params.input_responses["link"]["action"])
    visit = t.ElicitRequestURLParams(message="Link your account", url=SITE)
    return t.InputRequiredResult(input_requests={"link": t.InputRequest(method="elicitation/create", params=visit)})


async def _samples(ctx: Context, params: t.CallToolRequestParams) -> t.CallToolResult | t.InputRequiredResult:
    messages = [t.SamplingMessage(role="user", content=t.TextContent(text="Sum up: 4.1", _meta=META), _meta=META)]
    if not is_modern(ctx.protocol_version):
        return _text((await ctx.create_message(messages, max_tokens=80, system_prompt="Be brief.")).model)
    if params.input_responses is not None:
        return _text(params.input_responses["sum"]["model"])
    asked = t.CreateMessageRequestParams(messages=messages, max_tokens=80, system_prompt="Be brief.")
    return t.InputRequiredResult(input_requests={"sum": t.InputRequest(method="sampling/createMessage", params=asked)})


async def _roots(ctx: Context, params: t.CallToolRequestParams) -> t.CallToolResult | t.InputRequiredResult:
    if not is_modern(ctx.protocol_version):
        return _text((await ctx.list_roots()).roots[0].uri)
    if params.input_responses is not None:
        return _text(params.input_responses["dirs"]["roots"][0]["uri"])
    return t.InputRequiredResult(input_requests={"dirs": t.InputRequest(method="roots/list")}, request_state="s")


async def _progresses(ctx: Context, params: t.CallToolRequestParams) -> t.CallToolResult:
    await ctx.report_progress(0.5, 1, "harmonics")
    await ctx.report_progress(0.5, 1, "does not grow")
    await ctx.report_progress(1)
    return _text("done")


async def _logs(ctx: Context, params: t.CallToolRequestParams) -> t.CallToolResult:
    await ctx.log("debug", {"step": 1, "of": None})
    await ctx.log("warning", "station list is 2 days old", logger="harmonics")
    return _text("logged")


async def _waits(ctx: Context, params: t.CallToolRequestParams) -> t.CallToolResult:
    await anyio.sleep_forever()
    raise AssertionError("it was woken")


async def _raises(ctx: Context, params: t.CallToolRequestParams) -> t.CallToolResult:
    raise RuntimeError("the secret is 42")


async def _needs_url(ctx: Context, params: t.CallToolRequestParams) -> t.CallToolResult:
    visit = t.ElicitRequestURLParams(message="Link your account", url=SITE, elicitation_id="e-9")
    raise UrlElicitationRequired([visit], "Sign in first")


RESULTS: Final[dict[str, Any]] = {
    "blocks": _blocks(),
    "series": t.CallToolResult(content=[t.TextContent(text="[4.1,3.6]")], structured_content=[4.1, 3.6]),
    "null": t.CallToolResult(content=[t.TextContent(text="null")], structured_content=t.NULL),
    "fails": t.CallToolResult(content=[t.TextContent(text="No port named Brset")], is_error=True),
    "no-result": [1],
}
CALLS: Final[dict[str, Callable[[Context, t.CallToolRequestParams], Awaitable[Any]]]] = {
    "progresses": _progresses,
    "logs": _logs,
    "waits": _waits,
    "asks": _asks,
    "visits": _visits,
    "samples": _samples,
    "roots": _roots,
    "raises": _raises,
    "needs-url": _needs_url,
}


async def _call_tool(ctx: Context, params: t.CallToolRequestParams) -> Any:
    if params.name in RESULTS:
        return RESULTS[params.name]
    if params.name in CALLS:
        return await CALLS[params.name](ctx, params)
    if params.name == "echo":
        return t.CallToolResult(content=[], structured_content=params.arguments)
    raise InvalidParams(f"Unknown tool: {params.name}")


# --- resources, prompts, completion ---------------------------------------------------


def _list_resources(ctx: Context, params: t.PaginatedRequestParams) -> t.ListResourcesResult:
    today = t.Resource(
        uri=TODAY,
        name="brest-today",
        title="Brest",
        description="Today's tide",
        mime_type="text/csv",
        size=12,
        annotations=NOTES,
        icons=ICONS,
        _meta=META,
    )
    return t.ListResourcesResult(resources=[today])


def _list_templates(ctx: Context, params: t.PaginatedRequestParams) -> t.ListResourceTemplatesResult:
    template = t.ResourceTemplate(
        uri_template="tide://{port}/today",
        name="today",
        title="Today",
        description="Today's tide",
        mime_type="text/csv",
        annotations=NOTES,
        icons=ICONS,
        _meta=META,
    )
    return t.ListResourceTemplatesResult(resource_templates=[template], ttl_ms=1)


def _read_resource(ctx: Context, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
    if params.uri != TODAY:
        raise ResourceNotFound(params.uri)
    return t.ReadResourceResult(
        contents=[
            t.TextResourceContents(uri=TODAY, mime_type="text/csv", text="00:00,4.1\n06:00,1.2", _meta=META),
            t.BlobResourceContents(uri="tide://b", blob="AA=="),
        ],
        ttl_ms=60000,
        cache_scope="public",
    )


def _list_prompts(ctx: Context, params: t.PaginatedRequestParams) -> t.ListPromptsResult:
    prompt = t.Prompt(
        name="compare",
        title="Compare",
        description="Compares two days",
        arguments=[
            t.PromptArgument(name="port", title="Port", description="Where", required=True),
            t.PromptArgument(name="day"),
        ],
        icons=ICONS,
        _meta=META,
    )
    return t.ListPromptsResult(prompts=[prompt])


def _get_prompt(ctx: Context, params: t.GetPromptRequestParams) -> t.GetPromptResult:
    if params.name != "compare":
        raise InvalidParams(f"Unknown prompt: {params.name}")
    port = (params.arguments or {}).get("port", "?")
    return t.GetPromptResult(
        messages=[
            t.PromptMessage(role="user", content=t.TextContent(text=f"Compare {port}", _meta=META)),
            t.PromptMessage(role="assistant", content=t.AudioContent(data="AAAA", mime_type="audio/wav")),
            t.PromptMessage(role="user", content=t.ResourceLink(uri=TODAY, name="brest-today")),
        ],
        description="Compares two days",
        _meta=META,
    )


def _complete(ctx: Context, params: t.CompleteRequestParams) -> t.CompleteResult:
    known = params.context.arguments if params.context is not None else None
    what = params.ref.name if isinstance(params.ref, t.PromptReference) else params.ref.uri
    values = [f"{what}:{params.argument.name}={params.argument.value}", str(known)]
    return t.CompleteResult(completion=t.Completion(values=values, total=9, has_more=True))


# --- changes --------------------------------------------------------------------------

EVENTS: Final[dict[str, Event]] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
    "today": ResourceUpdated(TODAY),
    "other": ResourceUpdated("tide://other"),
}


async def _change(ctx: Context, params: dict[str, Any]) -> None:
    for what in params["what"]:
        await ctx.server.publish(EVENTS[what])


async def _end(ctx: Context, params: dict[str, Any]) -> None:
    ctx.server.end_subscriptions()


def make_server() -> Server[Any]:
    """The server, new."""
    server: Server[Any] = Server(
        "tides",
        version="0.4.2",
        title="Tides",
        description="Heights of the sea",
        website_url="https://tides.example/",
        icons=ICONS,
        instructions="Heights are metres above chart datum.",
        subscriptions=True,
        experimental={"example.org/x": {"on": True}},
        extensions={"example.org/ext": {"level": 3}},
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read_resource,
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
        on_completion=_complete,
        on_set_logging_level=lambda ctx, params: t.EmptyResult(),
    )
    server.add_notification_handler("notifications/example/change", dict[str, Any], _change)
    server.add_notification_handler("notifications/example/end", dict[str, Any], _end)
    return server

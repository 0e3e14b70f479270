"""Sample params and results of every method, optional members filled in."""

from __future__ import annotations

from typing import Any, Final

from mcp_core import types as t
from mcp_core.testing import modern_meta

__all__ = ["BLOCKS", "PARAMS", "RESULTS", "UNFILLED", "request_meta"]

META: Final[dict[str, Any]] = {"example.org/trace": [1, {"deep": True}]}
SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"port": {"type": "string"}},
    "required": ["port"],
}
ICONS: Final = [t.Icon(src="https://tides.example/i.png", mime_type="image/png", sizes=["48x48"], theme="dark")]
NOTES: Final = t.Annotations(audience=["user", "assistant"], priority=0.5, last_modified="2026-01-02T03:04:05Z")
INFO: Final = t.Implementation(
    name="tides",
    version="0.4.2",
    title="Tides",
    description="Heights of the sea",
    website_url="https://tides.example/",
    icons=ICONS,
)
TEXT: Final = t.TextContent(text="4.1 m, größer als gestern", annotations=NOTES, _meta=META)
IMAGE: Final = t.ImageContent(data="AA==", mime_type="image/png", annotations=NOTES, _meta=META)
AUDIO: Final = t.AudioContent(data="AAAA", mime_type="audio/wav", annotations=NOTES, _meta=META)
LINK: Final = t.ResourceLink(
    uri="tide://brest/today",
    name="brest-today",
    title="Brest",
    description="Today's tide",
    mime_type="text/csv",
    size=12,
    annotations=NOTES,
    icons=ICONS,
    _meta=META,
)
TEXT_PART: Final = t.TextResourceContents(uri="tide://brest/a", mime_type="text/csv", text="0,1", _meta=META)
BLOB_PART: Final = t.BlobResourceContents(uri="tide://brest/b", mime_type="a/b", blob="AA==", _meta=META)
EMBEDDED_TEXT: Final = t.EmbeddedResource(resource=TEXT_PART, annotations=NOTES, _meta=META)
EMBEDDED_BLOB: Final = t.EmbeddedResource(resource=BLOB_PART)

BLOCKS: Final[list[t.ContentBlock]] = [TEXT, IMAGE, AUDIO, LINK, EMBEDDED_TEXT, EMBEDDED_BLOB]
"""A block of every kind."""

TOOL: Final = t.Tool(
    name="tide_at",
    input_schema=SCHEMA,
    title="Tide height",
    description="Tide height at a port",
    output_schema={"type": "object", "properties": {"metres": {"type": "number"}}, "required": ["metres"]},
    annotations=t.ToolAnnotations(
        title="Tide", read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    ),
    icons=ICONS,
    execution=t.ToolExecution(task_support="optional"),
    _meta=META,
)
TASK: Final = t.Task(
    task_id="t1",
    status="working",
    created_at="2026-01-02T03:04:05Z",
    last_updated_at="2026-01-02T03:04:06Z",
    ttl=60000,
    status_message="half way",
    poll_interval=500,
)
FORM: Final = t.ElicitRequestFormParams(
    message="Which datum?",
    requested_schema={"type": "object", "properties": {"datum": {"type": "string"}}, "required": ["datum"]},
    mode="form",
    task=t.TaskMetadata(ttl=1000),
)
VISIT: Final = t.ElicitRequestURLParams(
    message="Link your account",
    url="https://tides.example/link?e=9",
    elicitation_id="e-9",
    task=t.TaskMetadata(ttl=1000),
)
SAMPLING: Final = t.CreateMessageRequestParams(
    messages=[
        t.SamplingMessage(role="user", content=t.TextContent(text="Is Brest above 4 m now?"), _meta=META),
        t.SamplingMessage(
            role="assistant", content=[t.ToolUseContent(id="u1", name="height", input={"port": "Brest"}, _meta=META)]
        ),
        t.SamplingMessage(
            role="user",
            content=[
                t.ToolResultContent(
                    tool_use_id="u1",
                    content=[TEXT],
                    structured_content={"metres": 4.1},
                    is_error=False,
                    _meta=META,
                )
            ],
        ),
        t.SamplingMessage(role="user", content=[IMAGE, AUDIO]),
    ],
    max_tokens=200,
    model_preferences=t.ModelPreferences(
        hints=[t.ModelHint(name="m-1")], cost_priority=0.25, speed_priority=0.5, intelligence_priority=1.0
    ),
    system_prompt="Be brief.",
    include_context="thisServer",
    temperature=0.5,
    stop_sequences=["END"],
    metadata={"provider": {"seed": 7}},
    tools=[TOOL],
    tool_choice=t.ToolChoice(mode="required"),
    task=t.TaskMetadata(ttl=1000),
)
CLIENT: Final = t.ClientCapabilities(
    experimental={"example.org/x": {"on": True}},
    roots=t.RootsCapability(list_changed=True),
    sampling=t.SamplingCapability(context={}, tools={}),
    elicitation=t.ElicitationCapability(form={}, url={}),
    tasks={"list": {}, "cancel": {}},
    extensions={"example.org/ext": {"level": 3}},
)
SERVER: Final = t.ServerCapabilities(
    experimental={"example.org/x": {"on": True}},
    logging={},
    completions={},
    prompts=t.PromptsCapability(list_changed=True),
    resources=t.ResourcesCapability(subscribe=True, list_changed=True),
    tools=t.ToolsCapability(list_changed=True),
    tasks={"list": {}, "cancel": {}},
    extensions={"example.org/ext": {"level": 3}},
)
FILTER: Final = t.SubscriptionFilter(
    tools_list_changed=True,
    prompts_list_changed=False,
    resources_list_changed=True,
    resource_subscriptions=["tide://brest/today"],
)
ANSWERS: Final[dict[str, Any]] = {
    "form": {"action": "accept", "content": {"datum": "lat"}},
    "dirs": {"roots": [{"uri": "file:///srv/charts", "name": "charts"}]},
    "sum": {
        "role": "assistant",
        "content": {"type": "text", "text": "Falling tide."},
        "model": "m-1",
        "stopReason": "endTurn",
    },
}
ASKS: Final = t.InputRequiredResult(
    input_requests={
        "form": t.InputRequest(
            method="elicitation/create",
            params=t.ElicitRequestFormParams(
                message="Which?",
                requested_schema={"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]},
                # The official models always send the mode.
                mode="form",
            ),
        ),
        "link": t.InputRequest(
            method="elicitation/create", params=t.ElicitRequestURLParams(message="Go", url="https://tides.example/l")
        ),
        "sum": t.InputRequest(
            method="sampling/createMessage",
            params=t.CreateMessageRequestParams(
                messages=[t.SamplingMessage(role="user", content=t.TextContent(text="Sum up"))], max_tokens=80
            ),
        ),
        "dirs": t.InputRequest(method="roots/list"),
    },
    request_state="v1.cQ.77",
)
PLAIN: Final = t.NotificationParams(_meta=META)
PAGE: Final = t.PaginatedRequestParams(cursor="")

PARAMS: Final[dict[str, list[Any]]] = {
    "initialize": [t.InitializeRequestParams(protocol_version="2025-11-25", capabilities=CLIENT, client_info=INFO)],
    "server/discover": [t.RequestParams()],
    "ping": [t.RequestParams()],
    "tools/list": [t.PaginatedRequestParams(), PAGE],
    "tools/call": [
        t.CallToolRequestParams(name="tide_at"),
        t.CallToolRequestParams(
            name="tide_at",
            arguments={"port": "Brest", "hours": [1, 2.5], "deep": {"a": True}},
            task=t.TaskMetadata(ttl=1000),
            input_responses=ANSWERS,
            request_state="v1.cQ.77",
        ),
    ],
    "resources/list": [PAGE],
    "resources/templates/list": [PAGE],
    "resources/read": [
        t.ReadResourceRequestParams(uri="tide://brest/today", input_responses=ANSWERS, request_state="s")
    ],
    "resources/subscribe": [t.SubscribeRequestParams(uri="tide://brest/today")],
    "resources/unsubscribe": [t.UnsubscribeRequestParams(uri="tide://brest/today")],
    "subscriptions/listen": [t.SubscriptionsListenRequestParams(notifications=FILTER)],
    "prompts/list": [PAGE],
    "prompts/get": [
        t.GetPromptRequestParams(name="p", arguments={"port": "Brest"}, input_responses=ANSWERS, request_state="s")
    ],
    "completion/complete": [
        t.CompleteRequestParams(
            ref=t.PromptReference(name="p", title="P"),
            argument=t.CompletionArgument(name="port", value="Br"),
            context=t.CompletionContext(arguments={"country": "FR"}),
        ),
        t.CompleteRequestParams(
            ref=t.ResourceTemplateReference(uri="tide://{port}/today"),
            argument=t.CompletionArgument(name="port", value=""),
        ),
    ],
    "logging/setLevel": [t.SetLevelRequestParams(level="warning")],
    "sampling/createMessage": [SAMPLING],
    "roots/list": [t.RequestParams()],
    "elicitation/create": [FORM, VISIT],
    "tasks/get": [t.TaskParams(task_id="t1")],
    "tasks/cancel": [t.TaskParams(task_id="t1")],
    "tasks/result": [t.TaskParams(task_id="t1")],
    "tasks/list": [PAGE],
    "notifications/initialized": [PLAIN],
    "notifications/cancelled": [
        t.CancelledNotificationParams(request_id=3, reason="closed by user", _meta=META),
        t.CancelledNotificationParams(request_id="3"),
    ],
    "notifications/progress": [
        t.ProgressNotificationParams(progress_token="t-3", progress=2, total=5, message="harmonics", _meta=META),
        t.ProgressNotificationParams(progress_token=7, progress=0.5),
    ],
    "notifications/message": [
        t.LoggingMessageNotificationParams(level="error", data={"a": [1, 2]}, logger="harmonics", _meta=META),
        t.LoggingMessageNotificationParams(level="debug", data="plain"),
    ],
    "notifications/tools/list_changed": [PLAIN],
    "notifications/prompts/list_changed": [PLAIN],
    "notifications/resources/list_changed": [PLAIN],
    "notifications/resources/updated": [t.ResourceUpdatedNotificationParams(uri="tide://brest/today", _meta=META)],
    "notifications/subscriptions/acknowledged": [
        t.SubscriptionsAcknowledgedNotificationParams(notifications=FILTER, _meta=META)
    ],
    "notifications/roots/list_changed": [PLAIN],
    "notifications/elicitation/complete": [t.ElicitCompleteNotificationParams(elicitation_id="e-9")],
    "notifications/tasks/status": [
        t.TaskStatusNotificationParams(
            task_id="t1",
            status="completed",
            created_at="2026-01-02T03:04:05Z",
            last_updated_at="2026-01-02T03:04:06Z",
            ttl=60000,
            status_message="done",
            poll_interval=500,
        )
    ],
}
"""Params by method."""


def _task(kind: type[Any]) -> Any:
    return kind(
        task_id="t1",
        status="cancelled",
        created_at="2026-01-02T03:04:05Z",
        last_updated_at="2026-01-02T03:04:06Z",
        ttl=60000,
        status_message="stopped",
        poll_interval=500,
    )


RESULTS: Final[dict[str, list[Any]]] = {
    "initialize": [
        t.InitializeResult(
            protocol_version="2025-11-25",
            capabilities=SERVER,
            server_info=INFO,
            instructions="Heights are metres above chart datum.",
            _meta=META,
        )
    ],
    "server/discover": [
        t.DiscoverResult(
            supported_versions=["2026-07-28", "2025-11-25"],
            capabilities=SERVER,
            instructions="Heights are metres above chart datum.",
            ttl_ms=600000,
            cache_scope="public",
        )
    ],
    "ping": [t.EmptyResult(), t.EmptyResult(_meta=META)],
    "tools/list": [
        t.ListToolsResult(tools=[]),
        t.ListToolsResult(tools=[TOOL], next_cursor="p2", ttl_ms=5, cache_scope="public", _meta=META),
    ],
    "tools/call": [
        t.CallToolResult(content=[]),
        t.CallToolResult(content=BLOCKS, structured_content={"metres": 4.1, "at": [1, "x"]}, _meta=META),
        t.CallToolResult(content=[t.TextContent(text="No port named Brset")], is_error=True),
        ASKS,
    ],
    "resources/list": [
        t.ListResourcesResult(
            resources=[
                t.Resource(
                    uri="tide://brest/today",
                    name="brest-today",
                    title="Brest",
                    description="Today's tide",
                    mime_type="text/csv",
                    size=12,
                    annotations=NOTES,
                    icons=ICONS,
                    _meta=META,
                )
            ],
            next_cursor="p2",
            ttl_ms=5,
        )
    ],
    "resources/templates/list": [
        t.ListResourceTemplatesResult(
            resource_templates=[
                t.ResourceTemplate(
                    uri_template="tide://{port}/today",
                    name="today",
                    title="Today",
                    description="Today's tide",
                    mime_type="text/csv",
                    annotations=NOTES,
                    icons=ICONS,
                    _meta=META,
                )
            ],
            next_cursor="p2",
        )
    ],
    "resources/read": [
        t.ReadResourceResult(contents=[TEXT_PART, BLOB_PART], ttl_ms=60000, cache_scope="public", _meta=META),
        ASKS,
    ],
    "resources/subscribe": [t.EmptyResult()],
    "resources/unsubscribe": [t.EmptyResult()],
    "subscriptions/listen": [t.SubscriptionsListenResult(_meta={"io.modelcontextprotocol/subscriptionId": "L1"})],
    "prompts/list": [
        t.ListPromptsResult(
            prompts=[
                t.Prompt(
                    name="p",
                    title="P",
                    description="A prompt",
                    arguments=[
                        t.PromptArgument(name="port", title="Port", description="Which", required=True),
                        t.PromptArgument(name="day"),
                    ],
                    icons=ICONS,
                    _meta=META,
                )
            ],
            next_cursor="p2",
        )
    ],
    "prompts/get": [
        t.GetPromptResult(
            messages=[t.PromptMessage(role="user", content=block) for block in BLOCKS],
            description="Filled in",
            _meta=META,
        ),
        ASKS,
    ],
    "completion/complete": [
        t.CompleteResult(completion=t.Completion(values=["Brest", "Bremen"], total=9, has_more=True), _meta=META),
        t.CompleteResult(completion=t.Completion(values=[])),
    ],
    "logging/setLevel": [t.EmptyResult()],
    "sampling/createMessage": [
        t.CreateMessageResult(role="assistant", content=TEXT, model="m-1", stop_reason="endTurn", _meta=META),
        t.CreateMessageResult(
            role="assistant",
            content=[t.TextContent(text="Wait."), t.ToolUseContent(id="u1", name="height", input={"port": "Brest"})],
            model="m-1",
            stop_reason="toolUse",
        ),
    ],
    "roots/list": [t.ListRootsResult(roots=[t.Root(uri="file:///srv/charts", name="charts", _meta=META)], _meta=META)],
    "elicitation/create": [
        t.ElicitResult(
            action="accept", content={"s": "x", "i": 1, "f": 0.5, "b": True, "many": ["a", "b"]}, _meta=META
        ),
        t.ElicitResult(action="decline"),
    ],
    "tasks/get": [_task(t.GetTaskResult)],
    "tasks/cancel": [_task(t.CancelTaskResult)],
    "tasks/list": [t.ListTasksResult(tasks=[TASK], next_cursor="p2")],
    "tasks/result": [t.Result(_meta={"io.modelcontextprotocol/related-task": {"taskId": "t1"}})],
}
"""Results by method."""

UNFILLED: Final[dict[tuple[str, str], str]] = {
    ("Task", "_meta"): "not part of a task inside a result",
    ("GetTaskResult", "_meta"): "shared with `Task`",
    ("CancelTaskResult", "_meta"): "shared with `Task`",
    ("TaskStatusNotificationParams", "_meta"): "shared with `Task`",
}
"""Members that no sample fills, and why."""


def request_meta(revision: str) -> dict[str, Any]:
    """The `_meta` of a request of this revision, with some keys of one's own."""
    own = {"progressToken": "p-1", **META}
    return own if revision < "2026-07-28" else modern_meta({"elicitation": {"form": {}}}, **own)

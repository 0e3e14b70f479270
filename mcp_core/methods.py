"""The methods of MCP: one table of what each is, in which revisions, for whom.

A revision is a column here, never a second set of classes. Knows types; nothing of
connections or handlers.
Spec: the message pages of each revision; `docs/architecture.md` says how the table
is checked against the published schemas.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from mcp_core import types as t
from mcp_core.revisions import (
    ALL_REVISIONS,
    HANDSHAKE_REVISIONS,
    MODERN_REVISIONS,
    V2025_06_18,
    V2025_11_25,
)

__all__ = ["METHODS", "Direction", "Method", "hooks"]

Direction = Literal["to_server", "to_client", "both"]

_FROM_FORMS: Final = (V2025_06_18, V2025_11_25)


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """One row. `result` is `None` for a notification.

    `hook` is the `Server` keyword that serves it; `cacheable` results carry hints in
    2026-07-28; `may_ask` methods may be answered with `input_required` there.
    `name_field` is the member of the params that an HTTP client mirrors in `Mcp-Name`.
    """

    name: str
    direction: Direction
    params: Any
    result: Any = None
    revisions: tuple[str, ...] = ALL_REVISIONS
    hook: str | None = None
    cacheable: bool = False
    may_ask: bool = False
    name_field: str | None = None

    @property
    def is_notification(self) -> bool:
        """Whether the method gets no response."""
        return self.result is None


def _row(name: str, direction: Direction, params: Any, result: Any = None, **rest: Any) -> Method:
    return Method(name=name, direction=direction, params=params, result=result, **rest)


_TASKS: Final = (V2025_11_25,)

_ROWS: Final = (
    # Requests to the server.
    _row("initialize", "to_server", t.InitializeRequestParams, t.InitializeResult, revisions=HANDSHAKE_REVISIONS),
    _row("server/discover", "to_server", t.RequestParams, t.DiscoverResult, revisions=MODERN_REVISIONS, cacheable=True),
    _row("ping", "both", t.RequestParams, t.EmptyResult, revisions=HANDSHAKE_REVISIONS, hook="on_ping"),
    _row("tools/list", "to_server", t.PaginatedRequestParams, t.ListToolsResult, hook="on_list_tools", cacheable=True),
    _row(
        "tools/call",
        "to_server",
        t.CallToolRequestParams,
        t.CallToolResult,
        hook="on_call_tool",
        may_ask=True,
        name_field="name",
    ),
    _row(
        "resources/list",
        "to_server",
        t.PaginatedRequestParams,
        t.ListResourcesResult,
        hook="on_list_resources",
        cacheable=True,
    ),
    _row(
        "resources/templates/list",
        "to_server",
        t.PaginatedRequestParams,
        t.ListResourceTemplatesResult,
        hook="on_list_resource_templates",
        cacheable=True,
    ),
    _row(
        "resources/read",
        "to_server",
        t.ReadResourceRequestParams,
        t.ReadResourceResult,
        hook="on_read_resource",
        cacheable=True,
        may_ask=True,
        name_field="uri",
    ),
    _row(
        "resources/subscribe",
        "to_server",
        t.SubscribeRequestParams,
        t.EmptyResult,
        revisions=HANDSHAKE_REVISIONS,
        hook="on_subscribe_resource",
    ),
    _row(
        "resources/unsubscribe",
        "to_server",
        t.UnsubscribeRequestParams,
        t.EmptyResult,
        revisions=HANDSHAKE_REVISIONS,
        hook="on_unsubscribe_resource",
    ),
    _row(
        "subscriptions/listen",
        "to_server",
        t.SubscriptionsListenRequestParams,
        t.SubscriptionsListenResult,
        revisions=MODERN_REVISIONS,
        hook="on_subscriptions_listen",
    ),
    _row(
        "prompts/list",
        "to_server",
        t.PaginatedRequestParams,
        t.ListPromptsResult,
        hook="on_list_prompts",
        cacheable=True,
    ),
    _row(
        "prompts/get",
        "to_server",
        t.GetPromptRequestParams,
        t.GetPromptResult,
        hook="on_get_prompt",
        may_ask=True,
        name_field="name",
    ),
    _row("completion/complete", "to_server", t.CompleteRequestParams, t.CompleteResult, hook="on_completion"),
    _row(
        "logging/setLevel",
        "to_server",
        t.SetLevelRequestParams,
        t.EmptyResult,
        revisions=HANDSHAKE_REVISIONS,
        hook="on_set_logging_level",
    ),
    # Requests to the client; in 2026-07-28 they travel inside `input_required` results.
    _row(
        "sampling/createMessage",
        "to_client",
        t.CreateMessageRequestParams,
        t.CreateMessageResult,
    ),
    _row("roots/list", "to_client", t.RequestParams, t.ListRootsResult),
    _row(
        "elicitation/create",
        "to_client",
        t.ElicitRequestParams,
        t.ElicitResult,
        revisions=_FROM_FORMS + MODERN_REVISIONS,
    ),
    # Tasks of 2025-11-25: types only, served by handlers of the author.
    _row("tasks/get", "both", t.TaskParams, t.GetTaskResult, revisions=_TASKS),
    _row("tasks/cancel", "both", t.TaskParams, t.CancelTaskResult, revisions=_TASKS),
    _row("tasks/result", "both", t.TaskParams, t.Result, revisions=_TASKS),
    _row("tasks/list", "both", t.PaginatedRequestParams, t.ListTasksResult, revisions=_TASKS),
    # Notifications.
    _row("notifications/initialized", "to_server", t.NotificationParams, revisions=HANDSHAKE_REVISIONS),
    _row("notifications/cancelled", "both", t.CancelledNotificationParams),
    _row("notifications/progress", "both", t.ProgressNotificationParams, hook="on_progress"),
    _row("notifications/message", "to_client", t.LoggingMessageNotificationParams),
    _row("notifications/tools/list_changed", "to_client", t.NotificationParams),
    _row("notifications/prompts/list_changed", "to_client", t.NotificationParams),
    _row("notifications/resources/list_changed", "to_client", t.NotificationParams),
    _row("notifications/resources/updated", "to_client", t.ResourceUpdatedNotificationParams),
    _row(
        "notifications/subscriptions/acknowledged",
        "to_client",
        t.SubscriptionsAcknowledgedNotificationParams,
        revisions=MODERN_REVISIONS,
    ),
    _row(
        "notifications/roots/list_changed",
        "to_server",
        t.NotificationParams,
        revisions=HANDSHAKE_REVISIONS,
        hook="on_roots_list_changed",
    ),
    _row(
        "notifications/elicitation/complete",
        "to_client",
        t.ElicitCompleteNotificationParams,
        revisions=(V2025_11_25,),
    ),
    _row("notifications/tasks/status", "both", t.TaskStatusNotificationParams, revisions=_TASKS),
)

METHODS: Final[dict[str, Method]] = {row.name: row for row in _ROWS}
"""Every method by name."""


def hooks() -> dict[str, Method]:
    """Return the rows by the `Server` keyword that serves them."""
    return {row.hook: row for row in _ROWS if row.hook is not None}

"""Change notifications on request, from 2026-07-28 on.

Spec: basic/patterns/subscriptions.
"""

from __future__ import annotations

from mcp_core.types.base import NotificationParams, RequestParams, Result, Wire

__all__ = [
    "SubscriptionFilter",
    "SubscriptionsAcknowledgedNotificationParams",
    "SubscriptionsListenRequestParams",
    "SubscriptionsListenResult",
]


class SubscriptionFilter(Wire, kw_only=True):
    """Which changes are wanted; `resource_subscriptions` are URIs."""

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None


class SubscriptionsListenRequestParams(RequestParams, kw_only=True):
    """Opens a subscription."""

    notifications: SubscriptionFilter


class SubscriptionsAcknowledgedNotificationParams(NotificationParams, kw_only=True):
    """Says which of the wanted changes will be announced."""

    notifications: SubscriptionFilter


class SubscriptionsListenResult(Result, kw_only=True):
    """The graceful end of a subscription."""

"""Progress and cancellation.

Spec: basic/patterns/progress; basic/patterns/cancellation.
"""

from __future__ import annotations

from mcp_core.types.base import NotificationParams, ProgressToken, RequestId

__all__ = ["CancelledNotificationParams", "ProgressNotificationParams"]


class ProgressNotificationParams(NotificationParams, kw_only=True):
    """How far the request with this token has come; `progress` only grows."""

    progress_token: ProgressToken
    progress: int | float
    total: int | float | None = None
    message: str | None = None


class CancelledNotificationParams(NotificationParams, kw_only=True):
    """The request that its sender wants no response to any more."""

    request_id: RequestId | None = None
    reason: str | None = None

"""Log messages to the client.

Spec: server/utilities/logging (deprecated from 2026-07-28 on).
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

from mcp_core.types.base import NotificationParams, RequestParams

__all__ = ["LOGGING_LEVELS", "LoggingLevel", "LoggingMessageNotificationParams", "SetLevelRequestParams"]

LoggingLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

LOGGING_LEVELS: dict[str, int] = {level: rank for rank, level in enumerate(get_args(LoggingLevel))}
"""The levels by severity, least first."""


class SetLevelRequestParams(RequestParams, kw_only=True):
    """The least level wanted from now on; handshake era."""

    level: LoggingLevel


class LoggingMessageNotificationParams(NotificationParams, kw_only=True):
    """One log message; `data` is any JSON value."""

    level: LoggingLevel
    data: Any
    logger: str | None = None

"""Elicitation: the server asks the user, by a form or at a URL.

Spec: client/elicitation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from mcp_core.types.base import JSONObject, NotificationParams, RequestParams, Result
from mcp_core.types.tools import TaskMetadata

__all__ = [
    "ElicitAction",
    "ElicitCompleteNotificationParams",
    "ElicitRequestFormParams",
    "ElicitRequestParams",
    "ElicitRequestURLParams",
    "ElicitResult",
]

ElicitAction: TypeAlias = Literal["accept", "decline", "cancel"]


class ElicitRequestFormParams(RequestParams, kw_only=True):
    """A form: `requested_schema` is a flat object schema of strings, numbers, booleans
    and choices.
    """

    message: str
    requested_schema: JSONObject
    mode: Literal["form"] | None = None
    task: TaskMetadata | None = None


class ElicitRequestURLParams(RequestParams, kw_only=True):
    """A page to visit. `elicitation_id` belongs to revision 2025-11-25."""

    message: str
    url: str
    if TYPE_CHECKING:
        mode: Literal["url"] = "url"
    else:
        # Made by a factory it is always sent: a request without a mode is a form.
        mode: Literal["url"] = msgspec.field(default_factory=lambda: "url")
    elicitation_id: str | None = None
    task: TaskMetadata | None = None


ElicitRequestParams: TypeAlias = ElicitRequestFormParams | ElicitRequestURLParams


class ElicitResult(Result, kw_only=True):
    """What the user did; `content` only for an accepted form."""

    action: ElicitAction
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


class ElicitCompleteNotificationParams(NotificationParams, kw_only=True):
    """The visit is over; revision 2025-11-25 only."""

    elicitation_id: str

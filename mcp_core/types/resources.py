"""Resources, templates, and their subscriptions of the handshake era.

Spec: server/resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_core.types.base import CacheableResult, Icon, MetaObject, NotificationParams, PaginatedResult, RequestParams
from mcp_core.types.content import Annotations, AnyResourceContents, BlobResourceContents, TextResourceContents
from mcp_core.types.input_required import InputResponses

__all__ = [
    "ListResourceTemplatesResult",
    "ListResourcesResult",
    "ReadResourceRequestParams",
    "ReadResourceResult",
    "Resource",
    "ResourceTemplate",
    "ResourceUpdatedNotificationParams",
    "SubscribeRequestParams",
    "UnsubscribeRequestParams",
]


class Resource(MetaObject, kw_only=True):
    """A resource as it is listed. `size` is in bytes, before any encoding."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    icons: list[Icon] | None = None


class ResourceTemplate(MetaObject, kw_only=True):
    """A family of resources, its URI a template of RFC 6570."""

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    icons: list[Icon] | None = None


class ListResourcesResult(PaginatedResult, kw_only=True):
    """One page of the resources."""

    resources: list[Resource]


class ListResourceTemplatesResult(PaginatedResult, kw_only=True):
    """One page of the templates."""

    resource_templates: list[ResourceTemplate]


class ReadResourceRequestParams(RequestParams, kw_only=True):
    """The URI to read."""

    uri: str
    input_responses: InputResponses | None = None
    request_state: str | None = None


class ReadResourceResult(CacheableResult, kw_only=True):
    """What the resource holds; several parts are allowed."""

    if TYPE_CHECKING:
        contents: list[TextResourceContents | BlobResourceContents]
    else:
        contents: list[AnyResourceContents]

    def __post_init__(self) -> None:
        contents: list[Any] = self.contents
        for index, item in enumerate(contents):
            if isinstance(item, AnyResourceContents):
                contents[index] = item.settled()


class SubscribeRequestParams(RequestParams, kw_only=True):
    """The URI to be notified of; handshake era."""

    uri: str


class UnsubscribeRequestParams(RequestParams, kw_only=True):
    """The URI to be notified of no longer; handshake era."""

    uri: str


class ResourceUpdatedNotificationParams(NotificationParams, kw_only=True):
    """The resource that changed; it may lie below the one subscribed to."""

    uri: str

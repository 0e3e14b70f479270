"""Change events: the bus they travel on.

The bus carries events, not messages: who forwards them knows revisions, filters and
subscription ids. Knows nothing of connections.
Spec: basic/patterns/subscriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, Protocol, TypeAlias

import msgspec

from mcp_core import types as t
from mcp_core.errors import InvalidParams
from mcp_core.queue_logger import QueueLogger

__all__ = [
    "Event",
    "InProcessBus",
    "PromptsListChanged",
    "ResourceUpdated",
    "ResourcesListChanged",
    "MAX_SUBSCRIPTIONS",
    "MAX_URI",
    "SubscriptionBus",
    "ToolsListChanged",
    "check_subscriptions",
    "honoured",
    "method_of",
    "wanted",
]

MAX_SUBSCRIPTIONS: Final = 1000
"""Resources that a client may subscribe to at a time."""

MAX_URI: Final = 4096
"""Characters that the URI of one of them may have."""

_log = QueueLogger(__name__)


class ToolsListChanged(msgspec.Struct, frozen=True, tag="tools"):
    """The list of tools has changed."""


class PromptsListChanged(msgspec.Struct, frozen=True, tag="prompts"):
    """The list of prompts has changed."""


class ResourcesListChanged(msgspec.Struct, frozen=True, tag="resources"):
    """The list of resources or templates has changed."""


class ResourceUpdated(msgspec.Struct, frozen=True, tag="updated"):
    """A resource has changed."""

    uri: str


Event: TypeAlias = ToolsListChanged | PromptsListChanged | ResourcesListChanged | ResourceUpdated

_METHODS: dict[type[Event], str] = {
    ToolsListChanged: "notifications/tools/list_changed",
    PromptsListChanged: "notifications/prompts/list_changed",
    ResourcesListChanged: "notifications/resources/list_changed",
    ResourceUpdated: "notifications/resources/updated",
}


class SubscriptionBus(Protocol):
    """Carries events from who publishes them to who listens, across processes if it can.

    Events are msgspec Structs with a tag each: `msgspec.json.encode(event)` and
    `decode(data, type=Event)` bring them over a wire.
    """

    async def publish(self, event: Event) -> None:
        """Bring the event to every listener, here and elsewhere."""
        ...

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Add a listener, called on the server's event loop. Returns a function that removes it."""
        ...


class InProcessBus:
    """The bus of one process: listeners are called at once, in order."""

    def __init__(self) -> None:
        self._listeners: dict[object, Callable[[Event], None]] = {}

    async def publish(self, event: Event) -> None:
        """Call every listener. One that raises is logged; the others are called all the same."""
        for listener in list(self._listeners.values()):
            try:
                listener(event)
            except Exception as exc:
                _log.error("a subscription listener raised", exc=exc)

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Add a listener. Returns an idempotent function that removes it."""
        token = object()
        self._listeners[token] = listener

        def remove() -> None:
            self._listeners.pop(token, None)

        return remove


def check_subscriptions(uris: Collection[str], others: int = 0) -> None:
    """Check that a client may be subscribed to these resources at a time, and to so many others.

    Raises:
        InvalidParams: There are too many, or the URI of one is too long.
    """
    if len(uris) + others > MAX_SUBSCRIPTIONS:
        raise InvalidParams(f"a client may subscribe to {MAX_SUBSCRIPTIONS} resources at a time; unsubscribe first")
    if any(len(uri) > MAX_URI for uri in uris):
        raise InvalidParams(f"the URI of a resource to subscribe to may have {MAX_URI} characters")


def method_of(event: Event) -> str:
    """Return the notification that tells of the event."""
    return _METHODS[type(event)]


def wanted(event: Event, asked: t.SubscriptionFilter) -> bool:
    """Return whether this filter asks for the event."""
    if isinstance(event, ToolsListChanged):
        return bool(asked.tools_list_changed)
    if isinstance(event, PromptsListChanged):
        return bool(asked.prompts_list_changed)
    if isinstance(event, ResourcesListChanged):
        return bool(asked.resources_list_changed)
    return event.uri in (asked.resource_subscriptions or ())


def honoured(asked: t.SubscriptionFilter, capabilities: t.ServerCapabilities) -> t.SubscriptionFilter:
    """Return the part of the filter that a server with these capabilities will serve (R-SUB-03)."""
    resources = capabilities.resources
    return t.SubscriptionFilter(
        tools_list_changed=_both(asked.tools_list_changed, capabilities.tools),
        prompts_list_changed=_both(asked.prompts_list_changed, capabilities.prompts),
        resources_list_changed=_both(asked.resources_list_changed, resources),
        resource_subscriptions=(asked.resource_subscriptions or None)
        if resources is not None and resources.subscribe
        else None,
    )


def _both(
    asked: bool | None, capability: t.ToolsCapability | t.PromptsCapability | t.ResourcesCapability | None
) -> bool | None:
    return True if asked and capability is not None and capability.list_changed else None

"""A subscription as its subscriber sees it.

Spec: basic/patterns/subscriptions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import anyio

from mcp_core import types as t
from mcp_core.subscriptions import (
    Event,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)

__all__ = ["Subscription"]

_PLAIN: Final[dict[str, Event]] = {
    "notifications/tools/list_changed": ToolsListChanged(),
    "notifications/prompts/list_changed": PromptsListChanged(),
    "notifications/resources/list_changed": ResourcesListChanged(),
}


class Subscription:
    """The events of one `subscriptions/listen`, to iterate over.

    Iteration ends when the server ends the subscription. `honoured` is the part of the
    filter that the server will serve.
    """

    def __init__(self) -> None:
        self.honoured: t.SubscriptionFilter | None = None
        self._acknowledged = anyio.Event()
        self._send, self._events = anyio.create_memory_object_stream[Event](float("inf"))
        self._error: Exception | None = None

    def take(self, method: str, params: dict[str, object]) -> None:
        """Take a notification that carries the subscription's id."""
        if method == "notifications/subscriptions/acknowledged":
            from mcp_core import codec

            self.honoured = codec.convert(params.get("notifications"), t.SubscriptionFilter)
            self._acknowledged.set()
        elif method == "notifications/resources/updated":
            self._send.send_nowait(ResourceUpdated(str(params.get("uri"))))
        elif method in _PLAIN:
            self._send.send_nowait(_PLAIN[method])

    def end(self, error: Exception | None = None) -> None:
        """The server ended it, or refused it."""
        self._error = error
        self._acknowledged.set()
        self._send.close()

    async def opened(self) -> None:
        """Wait for the acknowledgement. Raises what the server refused with."""
        await self._acknowledged.wait()
        if self._error is not None:
            raise self._error

    async def __aiter__(self) -> AsyncIterator[Event]:
        with self._events:
            async for event in self._events:
                yield event
        if self._error is not None:
            raise self._error

"""A subscription as its subscriber sees it.

Spec: basic/patterns/subscriptions.
"""

from __future__ import annotations

from typing import Final, Self

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
            self._add(ResourceUpdated(str(params.get("uri"))))
        elif method in _PLAIN:
            self._add(_PLAIN[method])

    def _add(self, event: Event) -> None:
        try:
            self._send.send_nowait(event)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # nobody listens any more

    def end(self, error: Exception | None = None) -> None:
        """The server ended it, or refused it."""
        self._error = error
        self._acknowledged.set()
        self._send.close()

    def close(self) -> None:
        """Let go of what was not iterated over."""
        self._send.close()
        self._events.close()

    async def opened(self) -> None:
        """Wait for the acknowledgement. Raises what the server refused with."""
        await self._acknowledged.wait()
        if self._error is not None:
            raise self._error

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        try:
            return await self._events.receive()
        except anyio.EndOfStream:
            if self._error is not None:
                raise self._error from None
            raise StopAsyncIteration from None

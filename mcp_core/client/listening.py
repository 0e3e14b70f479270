"""A subscription as its subscriber sees it.

Spec: basic/patterns/subscriptions.
"""

from __future__ import annotations

from typing import Final, Self

import anyio

from mcp_core import codec
from mcp_core import types as t
from mcp_core.codec import JSONObject
from mcp_core.errors import ConnectionClosed, RequestTimeout
from mcp_core.subscriptions import (
    Event,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
    wanted,
)

__all__ = ["MAX_UNREAD", "Subscription"]

MAX_UNREAD: Final = 1024
"""Different events of one subscription that may wait to be read; one more ends it."""

_PLAIN: Final[dict[str, Event]] = {
    "notifications/tools/list_changed": ToolsListChanged(),
    "notifications/prompts/list_changed": PromptsListChanged(),
    "notifications/resources/list_changed": ResourcesListChanged(),
}


class Subscription:
    """The events of one `subscriptions/listen`, to iterate over.

    Iteration ends when the server ends the subscription, or when the block of
    `Client.listen` is left. Equal events that were not read yet are one. `honoured` is
    the part of the filter that the server will serve; other events are not handed on.

    A server that sends more than `MAX_UNREAD` different events before any is read ends it:
    the iteration raises `ConnectionClosed` once those that came are read.
    """

    def __init__(self, asked: t.SubscriptionFilter) -> None:
        self.honoured: t.SubscriptionFilter | None = None
        self._asked = asked
        self._acknowledged = anyio.Event()
        self._unread: dict[Event, None] = {}
        """In the order in which they came; a dict, so that equal ones are one."""
        self._news = anyio.Event()
        self._ended = False
        self._error: Exception | None = None

    # --- as the client sees it ----------------------------------------------------------

    def take(self, method: str, params: JSONObject) -> None:
        """Take a notification that carries the subscription's id.

        Raises:
            ValidationError: The acknowledgement names no filter.
        """
        if method == "notifications/subscriptions/acknowledged":
            self._acknowledge(params)
        elif method == "notifications/resources/updated":
            uri = params.get("uri")
            if isinstance(uri, str):
                self._add(ResourceUpdated(uri))
        elif method in _PLAIN:
            self._add(_PLAIN[method])

    def _acknowledge(self, params: JSONObject) -> None:
        if self.honoured is None:  # the first one counts
            self.honoured = codec.convert(params.get("notifications"), t.SubscriptionFilter)
            self._acknowledged.set()

    def _add(self, event: Event) -> None:
        if self._ended or event in self._unread or not self._is_wanted(event):
            return
        if len(self._unread) >= MAX_UNREAD:
            lost = f"more than {MAX_UNREAD} events were not read: listen again, and read again what they are about"
            self.end(ConnectionClosed(lost))
            return
        self._unread[event] = None
        self._news.set()

    def _is_wanted(self, event: Event) -> bool:
        """Return whether it was asked for and acknowledged. A resource within one that was counts, too (R-RES-11)."""
        if self.honoured is None:
            return False
        filters = (self._asked, self.honoured)
        if isinstance(event, ResourceUpdated):
            return all(_is_within(event.uri, each.resource_subscriptions or []) for each in filters)
        return all(wanted(event, each) for each in filters)

    def end(self, error: Exception | None = None) -> None:
        """Note that the server has ended it, or refused it. What came before can still be read."""
        if not self._ended:
            self._ended = True
            self._error = error
            self._acknowledged.set()
            self._news.set()

    def close(self) -> None:
        """Drop what was not read."""
        self.end()
        self._error = None
        self._unread.clear()

    @property
    def ended(self) -> bool:
        """Whether no more events will come."""
        return self._ended

    async def opened(self, seconds: float | None) -> None:
        """Wait for the acknowledgement.

        Raises:
            RequestTimeout: None came within `seconds`.
            ConnectionClosed: The server ended it instead.
            MCPCoreError: What the server refused with.
        """
        with anyio.move_on_after(seconds):
            await self._acknowledged.wait()
        if self.honoured is not None:
            return  # even if it has ended since: what came before can be read
        if self._error is not None:
            raise self._error
        if self._ended:
            raise ConnectionClosed("the server ended the subscription before it acknowledged it")
        raise RequestTimeout(f"subscriptions/listen was not acknowledged within {seconds} seconds")

    # --- as its subscriber sees it --------------------------------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while True:
            if self._unread:
                event = next(iter(self._unread))
                del self._unread[event]
                return event
            if self._ended:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            if self._news.is_set():
                self._news = anyio.Event()  # one for all who wait
            await self._news.wait()


def _is_within(uri: str, subscribed: list[str]) -> bool:
    """Return whether a resource is one of these, or below one of them."""
    return any(
        uri == known or (uri.startswith(known) and (known[-1:] in "/:#?" or uri[len(known)] in "/?#"))
        for known in subscribed
        if known
    )

"""The handler of `subscriptions/listen`: one call is one subscription.

Knows the bus and its request; nothing of how either travels.
Spec: basic/patterns/subscriptions.
"""

from __future__ import annotations

from typing import Any, Final

import anyio

from mcp_core import types as t
from mcp_core.backend.home import subscribed
from mcp_core.codec import JSONObject
from mcp_core.context import AnyContext
from mcp_core.queue_logger import QueueLogger
from mcp_core.request_meta import SUBSCRIPTION_ID
from mcp_core.subscriptions import (
    Event,
    ResourceUpdated,
    SubscriptionBus,
    check_subscriptions,
    honoured,
    method_of,
    wanted,
)

__all__ = ["BACKLOG", "ListenHandler"]

BACKLOG: Final = 1024
"""Events that may wait for a client that does not read; then its subscription ends."""

_log = QueueLogger(__name__)


class ListenHandler:
    """Serves `subscriptions/listen` from a bus.

    Acknowledges first, then forwards what the filter asks for and the server's
    capabilities offer, each message under the id of the request. Ends with a result
    when the client sends no more, when `close` is called, or when the client has left
    too much unread; it can ask again, and read the lists again.
    """

    def __init__(self, bus: SubscriptionBus) -> None:
        self._bus = bus
        self._open: dict[object, Any] = {}

    async def __call__(
        self, ctx: AnyContext, params: t.SubscriptionsListenRequestParams
    ) -> t.SubscriptionsListenResult:
        """Serve one subscription."""
        check_subscriptions(params.notifications.resource_subscriptions or ())
        asked = honoured(params.notifications, ctx.server.capabilities(ctx.protocol_version))
        # A set: events are many, and a client may have thousands of subscriptions to many resources.
        watched = frozenset(asked.resource_subscriptions or ())
        meta = {SUBSCRIPTION_ID: ctx.request_id}
        send, events = anyio.create_memory_object_stream[Event](BACKLOG)

        def deliver(event: Event) -> None:
            if not (event.uri in watched if isinstance(event, ResourceUpdated) else wanted(event, asked)):
                return
            try:
                send.send_nowait(event)
            except anyio.WouldBlock:
                _log.warning("subscription %r ended: its client does not read", ctx.request_id)
                send.close()
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return

        try:
            forget = ctx.peer.on_close(send.close)
        except BaseException:  # a peer that cannot be reached
            send.close()
            events.close()
            raise
        # Subscribed before the acknowledgement, so that no event falls between.
        unsubscribe = subscribed(self._bus, deliver)
        self._open[send] = send
        try:
            await ctx.notify(
                "notifications/subscriptions/acknowledged",
                t.SubscriptionsAcknowledgedNotificationParams(notifications=asked, _meta=meta),
            )
            with events:
                async for event in events:
                    await ctx.notify(method_of(event), _params(event, meta))
        finally:
            unsubscribe()
            forget()
            del self._open[send]
            send.close()
        return t.SubscriptionsListenResult(_meta=dict(meta))

    def close(self) -> None:
        """End every subscription gracefully."""
        for send in list(self._open.values()):
            send.close()


def _params(event: Event, meta: JSONObject) -> t.NotificationParams:
    if isinstance(event, ResourceUpdated):
        return t.ResourceUpdatedNotificationParams(uri=event.uri, _meta=meta)
    return t.NotificationParams(_meta=meta)

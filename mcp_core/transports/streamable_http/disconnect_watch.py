"""A suspended handler, awaited while its client is watched: the same for both eras.

A client that disconnects cancels its request; one that waits for long is sent comments, so that proxies keep the
connection. Knows the peer as a Protocol; nothing of what is awaited.
Spec: basic/transports/streamable-http; R-HTTP-11, R-HTTPL-13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from mcp_core.backend import Work
from mcp_core.backend.interruptible import Interruptible, background_tasks, interruptible
from mcp_core.messages import RequestId
from mcp_core.transports.streamable_http.exchange import UNWATCHED, Exchange
from mcp_core.transports.streamable_http.responses import HTTPResponse
from mcp_core.transports.streamable_http.service import HTTPService

__all__ = ["Interrupted", "WatchedPeer", "await_watched"]


class Interrupted(Exception):
    """The client has cancelled, or disconnected, or the server is shutting down."""


class WatchedPeer(Protocol):
    """The client of the request, as far as watching it goes."""

    gone: bool
    """Whether it has disconnected; set here."""

    @property
    def exchange(self) -> Exchange:
        """The HTTP request."""
        ...

    @property
    def answer(self) -> HTTPResponse | None:
        """How it is answered."""
        ...

    @property
    def can_stream(self) -> bool:
        """Whether comments can be sent to it."""
        ...

    def take(self, work: Interruptible, request_id: RequestId) -> None:
        """Make the work known to those that may interrupt it."""
        ...

    def leave(self, work: Interruptible, request_id: RequestId) -> None:
        """Forget it."""
        ...


async def await_watched(
    service: HTTPService,
    peer: WatchedPeer,
    waiting: object,
    request_id: RequestId,
    *,
    cancel_on_disconnect: bool,
) -> Any:
    """Return the value of an awaitable, awaited in the running task.

    The watching begins after `UNWATCHED` seconds: most handlers are done sooner, and two tasks for each would cost
    as much as the call.

    Raises:
        Interrupted: The response is of no use any more. What the handler returned all the same is dropped.
    """
    work = interruptible(waiting)

    async def watch() -> None:
        await peer.exchange.gone()
        peer.gone = True
        work.interrupt()

    def answer() -> HTTPResponse:
        found = peer.answer
        assert found is not None  # or it could not stream
        return found

    tasks: list[Callable[[], Work]] = [watch] if cancel_on_disconnect else []
    if peer.can_stream:
        tasks.append(lambda: service.keep_alive(answer))
    peer.take(work, request_id)
    try:
        async with background_tasks(*tasks, delay=UNWATCHED):
            value = await work.finish()
    finally:
        peer.leave(work, request_id)
    if work.interrupted:
        raise Interrupted
    return value

"""The handshake of a session: what requests wait for, and what is done again when the session is lost.

Knows posts, and the session's own stream; nothing of other requests.
Spec: 2025-11-25/basic/lifecycle; 2025-11-25/basic/transports, "Session Management";
R-HTTPL-10.
"""

from __future__ import annotations

from typing import Final

import anyio
from msgspec import Raw

from mcp_core.errors import ConnectionClosed, InvalidResult
from mcp_core.messages import Notification, Request, Response, decode_frame, encode_notification
from mcp_core.queue_logger import QueueLogger
from mcp_core.transports.http_client.endpoint import describe
from mcp_core.transports.http_client.posts import Posts
from mcp_core.transports.http_client.session import SessionState, agreed_version
from mcp_core.transports.http_client.streams import StandaloneStream
from mcp_core.transports.http_client.task_set import TaskSet

__all__ = ["INITIALIZED", "SessionInitializer"]

INITIALIZED: Final = "notifications/initialized"

_log = QueueLogger(__name__)

_STREAM_OPENS: Final = 0.5
"""Seconds that requests wait for the session's own stream to be open."""


class SessionInitializer:
    """The client's handshake, which is made again within `timeout` seconds, in one of `tasks`."""

    def __init__(
        self, posts: Posts, session: SessionState, listener: StandaloneStream, tasks: TaskSet, timeout: float
    ) -> None:
        self._posts = posts
        self._session = session
        self._listener = listener
        self._tasks = tasks
        self._timeout = timeout
        # The `initialize` that settled the session, sent again when the server forgets it.
        self._hello: tuple[Request, bytes] | None = None
        self._ready = anyio.Event()  # set while there is a session; requests await it, so none is sent with a dead id
        self._ready.set()
        self._lost: str | None = None
        """Why there is no session any more."""

    def begin(self, request: Request, message: bytes) -> None:
        """Note the `initialize` that is about to be posted."""
        self._hello = (request, message)
        self._session.begin()

    def hold_up(self) -> None:
        """Let requests wait for `confirm`."""
        self._ready = anyio.Event()

    async def ready(self) -> None:
        """Wait until requests may be posted."""
        await self._ready.wait()

    async def confirm(self, frame: Notification, message: bytes) -> None:
        """Confirm the handshake, and open the session's own stream. Requests wait for both:
        a server may refuse those that overtake the one, and may ask on the other what their
        handlers need to know. Not for longer than `timeout`, though: a server may never answer it.
        """
        try:
            with anyio.move_on_after(self._timeout):
                await self._posts.one_way(frame, message)
            opened = self._listener.start()
            with anyio.move_on_after(_STREAM_OPENS):
                await opened.wait()
        finally:
            self._ready.set()

    async def reinitialize(self, ended: str | None) -> None:
        """Have a session again in the place of one that the server has forgotten (R-HTTPL-10).

        Raises:
            ConnectionClosed: It gives none, or none like it.
        """
        if self._session.session_id == ended and self._ready.is_set():
            self.hold_up()
            # In a task of its own: the request that found out may be cancelled, others wait as well.
            self._tasks.spawn(self._shake_hands_again())
        await self._ready.wait()
        if self._lost is not None:
            raise ConnectionClosed(self._lost)

    async def _shake_hands_again(self) -> None:
        ended, self._lost = self._session.session_id, "the session has ended, and a new one could not be begun"
        try:
            assert self._hello is not None
            with anyio.fail_after(self._timeout):  # everything else waits for it
                frame = decode_frame(await self._posts.answer(*self._hello))
            if not isinstance(frame, Response) or agreed_version(frame) != self._session.version:
                raise InvalidResult("the server does not agree to the same as before")
            self._lost = None
            _log.warning("the session had ended; in the new one, what was subscribed to must be so again")
            await self.confirm(Notification(INITIALIZED, Raw(b"{}")), encode_notification(INITIALIZED, None))
        except Exception as exc:
            self._session.session_id = ended
            self._lost = f"the session has ended, and a new one could not be begun: {describe(exc)}"
        finally:
            self._ready.set()

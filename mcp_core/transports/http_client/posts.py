"""Messages, each by a POST of its own, and the JSON-RPC responses that the HTTP responses bring.

Knows sessions as an id that the server may have forgotten; nothing of what is done about that.
Spec: basic/transports/streamable-http, "Sending Messages"; 2025-11-25/basic/transports,
"Sending Messages to the Server"; R-HTTP-07, R-HTTP-12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from mcp_core.errors import ConnectionClosed, HTTPRefusal, InvalidResult, MethodNotFound
from mcp_core.messages import ErrorResponse, Frame, Request, Response, decode_frame, encode_error
from mcp_core.queue_logger import QueueLogger, RateLimitedWarnings, printable
from mcp_core.session import our_request_id
from mcp_core.transports.http_client.endpoint import (
    RESPONSE_ENDS,
    Endpoint,
    body_of,
    describe,
    discard,
    is_stream,
    without_secrets,
)
from mcp_core.transports.http_client.headers import Headers
from mcp_core.transports.http_client.session import SESSION_ID, SessionState, checked_session_id
from mcp_core.transports.http_client.streams import Awaited, Stream, Take

if TYPE_CHECKING:
    import httpx2

__all__ = ["Posts", "SessionEnded"]

_log = QueueLogger(__name__)

_TRIES: Final = 5
"""Attempts in a row, none of which gives a stream, after which a response is given up."""


class SessionEnded(ConnectionClosed):
    """The server has forgotten the session, and has not looked at the request."""


class Posts:
    """Posts messages; what comes besides answers is handed on."""

    def __init__(self, endpoint: Endpoint, session: SessionState, headers: Headers, hand_on: Take) -> None:
        self._endpoint = endpoint
        self._session = session
        self._headers = headers
        self._hand_on = hand_on
        self._warnings = RateLimitedWarnings(_log)

    async def one_way(self, frame: Frame, message: bytes) -> None:
        """Post what has no response. Raises nothing: who sent it does not wait.

        The response may take as long as the endpoint's timeout allows: what is
        sent later may have to wait for it.
        """
        try:
            with anyio.fail_after(self._endpoint.timeout):
                async with self._endpoint.exchange("POST", self._headers.of(frame), message) as response:
                    if not response.is_success:
                        self._warnings.warning("a message was refused with HTTP status %s", response.status_code)
                    await discard(
                        response, RESPONSE_ENDS
                    )  # there should be nothing; a stream would hold up what comes next
        except Exception as exc:
            self._warnings.warning("a message could not be sent: %s", describe(exc))

    async def request(self, request: Request, message: bytes, take: Take) -> bytes | None:
        """Post a request, and read on until its response is there.

        A response on a stream is given to `take` when it comes; any other is returned.

        Raises:
            InvalidResult: What came is none.
            HTTPRefusal: The status of the response is none of success.
            SessionEnded: There is no such session.
            ConnectionClosed: Its stream was disconnected.
        """
        async with self._endpoint.exchange("POST", self._headers.of(request), message) as response:
            if request.method == "initialize" and response.is_success:
                self._session.session_id = checked_session_id(response.headers.get(SESSION_ID))
            if not response.is_success or not is_stream(response):
                return self._answer_in(await body_of(response), request, response)
            stream = Stream(self._endpoint, self._session, self._hand_on, Awaited(request, take))
            if await stream.read(response):
                return None
        # A broken stream of the stateless era cannot be resumed (R-HTTP-12).
        if stream.last_event_id is None or self._session.is_modern(request):
            broke = f"the stream of {request.method} ended before its answer"
            raise ConnectionClosed(broke) if stream.broke_off else InvalidResult(broke)
        await anyio.sleep(stream.retry)
        await stream.resume_until_answered(_TRIES)
        return None

    async def answer(self, request: Request, message: bytes) -> bytes:
        """Post a request; its response, whichever way it comes. Raises as `request`."""
        taken: list[bytes] = []
        return await self.request(request, message, taken.append) or taken[-1]

    def _answer_in(self, body: bytes, request: Request, response: httpx2.Response) -> bytes:
        """Return the JSON-RPC response in an HTTP response that is not a stream.

        Raises:
            InvalidResult: It holds none.
            HTTPRefusal: Its status is none of success; also what it holds, if that is an error.
            SessionEnded: It says that there is no such session.
        """
        frames = [(message, decode_frame(message)) for message in self._session.messages_in(body)]
        for message, frame in frames:
            if isinstance(frame, Response) and (frame.id == request.id or our_request_id(frame.id) == request.id):
                return message
        refusal = next((frame for _, frame in frames if isinstance(frame, ErrorResponse)), None)
        unknown_method = refusal is not None and isinstance(refusal.error, MethodNotFound)
        if response.status_code == 404 and not unknown_method and SESSION_ID in response.request.headers:
            raise SessionEnded("the session has ended, and a new one does not last; connect again")
        if refusal is not None and response.is_success:
            # What the server could not read has no id, or one of the server's own.
            return encode_error(request.id, refusal.error)
        if refusal is not None:
            raise HTTPRefusal.of(refusal.error, response.status_code, response.headers)
        status = f"HTTP status {response.status_code} {printable(response.reason_phrase)}".rstrip()
        if response.is_success:
            raise InvalidResult(f"the server answered {request.method} with {status}, and no JSON-RPC answer to it")
        if response.has_redirect_location:
            status += f" to {without_secrets(response.headers['location'])}"
        error = InvalidResult(f"the server answered {request.method} with {status}")
        raise HTTPRefusal.of(error, response.status_code, response.headers)

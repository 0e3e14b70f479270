"""One URL, and the HTTP client that reaches it.

Knows requests and responses; nothing of what messages say, nor of sessions. The client
is httpx2, which is loaded when there is somewhere to go.
Spec: basic/transports/streamable-http, "Sending Messages".
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, aclosing
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from mcp_core.errors import InvalidResult, MCPCoreError
from mcp_core.transports.lines import MAX_MESSAGE

if TYPE_CHECKING:
    import httpx2

__all__ = ["RESPONSE_ENDS", "Endpoint", "StreamableHTTPParameters", "body_of", "is_stream", "told", "without_secrets"]

RESPONSE_ENDS: Final = 1.0
"""Seconds that a server has to end a response that brings nothing more; in time, its connection is used again."""

_KEPT: Final = 3.0
"""Seconds that an idle connection is kept: common servers close theirs after five."""


class StreamableHTTPParameters(msgspec.Struct, kw_only=True):
    """Where a server is, and how to speak to it.

    `headers` go with every request. `timeout` is in seconds, for connecting and writing, and
    for a new session in the place of one that was lost; how long an answer may take is the
    client's `read_timeout_seconds`. `http_client` is an
    `httpx2.AsyncClient` of your own (for authorization, proxies, certificates), which stays
    yours to close.
    """

    url: str
    headers: dict[str, str] = {}
    timeout: float = 30.0
    http_client: Any = None


class Endpoint:
    """Where requests go, with the headers and the timeout that all of them have.

    Raises:
        RuntimeError: httpx2 is not installed.
    """

    def __init__(self, parameters: StreamableHTTPParameters) -> None:
        try:
            import httpx2
        except ImportError as exc:
            raise RuntimeError(
                'a client over HTTP needs httpx2; install it with: pip install "mcpcore[client]"'
            ) from exc
        self.patience: Final = parameters.timeout
        self._url = parameters.url
        self._headers = {name.lower(): value for name, value in parameters.headers.items()}
        self._timeout = httpx2.Timeout(parameters.timeout, read=None)
        self._is_own = parameters.http_client is None
        self._http: httpx2.AsyncClient = parameters.http_client
        if self._is_own:
            # Streams stay open, so a limit on connections would be one on requests.
            self._http = httpx2.AsyncClient(limits=httpx2.Limits(max_connections=None, keepalive_expiry=_KEPT))

    def post(self, message: bytes, headers: dict[str, str]) -> AbstractAsyncContextManager[httpx2.Response]:
        """Send a message; entered, it is the response, whose body has not been read."""
        return self._http.stream(
            "POST", self._url, content=message, headers={**self._headers, **headers}, timeout=self._timeout
        )

    def get(self, headers: dict[str, str]) -> AbstractAsyncContextManager[httpx2.Response]:
        """Ask for a stream, likewise."""
        return self._http.stream("GET", self._url, headers={**self._headers, **headers}, timeout=self._timeout)

    async def delete(self, headers: dict[str, str]) -> None:
        """End the session that the headers name."""
        await self._http.delete(self._url, headers={**self._headers, **headers}, timeout=self._timeout)

    async def aclose(self) -> None:
        """Close the connections, unless the client is somebody else's."""
        if self._is_own:
            await self._http.aclose()

    @property
    def shown(self) -> str:
        """The URL without what may be secret in it."""
        return without_secrets(self._url)


def without_secrets(url: str) -> str:
    """A URL, possibly relative, without its user and its query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that is none"
    host = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else ""
    return f"{host}{parts.path}"


def is_stream(response: httpx2.Response) -> bool:
    """Whether it brings events."""
    content_type: str = response.headers.get("content-type", "")
    return content_type.partition(";")[0].strip().lower() == "text/event-stream"


async def body_of(response: httpx2.Response) -> bytes:
    """The whole body.

    Raises:
        InvalidResult: It is larger than any message may be.
    """
    body = bytearray()
    async with aclosing(response.aiter_bytes()) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > MAX_MESSAGE:
                raise InvalidResult(f"the answer is larger than {MAX_MESSAGE} bytes")
    return bytes(body)


def told(exc: Exception) -> str:
    """What went wrong, in one line."""
    return str(exc) if isinstance(exc, MCPCoreError) else f"{type(exc).__name__}: {exc}".removesuffix(": ")

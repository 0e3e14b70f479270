"""One URL, and the HTTP client that reaches it.

Knows requests and responses; nothing of what messages say, nor of sessions. The client
is httpx2, which is loaded when there is somewhere to go.
Spec: basic/transports/streamable-http, "Sending Messages".
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import anyio
import msgspec

from mcp_core.codec import type_of
from mcp_core.errors import InvalidResult, MCPCoreError
from mcp_core.queue_logger import printable
from mcp_core.transports.lines import MAX_MESSAGE

if TYPE_CHECKING:
    import httpx2

__all__ = [
    "MAX_COOKIES",
    "MAX_REDIRECTS",
    "RESPONSE_ENDS",
    "Endpoint",
    "StreamableHTTPParameters",
    "abandon",
    "body_of",
    "discard",
    "is_stream",
    "describe",
    "without_secrets",
]

MAX_REDIRECTS: Final = 5
"""Redirects in a row that one request follows."""

MAX_COOKIES: Final = 50
"""Cookies of a server that go with each request, as load balancers want it; with one more, all are forgotten."""

_DISCARDED: Final = 64 * 2**10
"""Bytes of an unwanted body that are read so that the connection can be used again."""

_ABANDONED: Final = 0.1
"""Seconds that what reads a closed response has to find that out."""

_FOLLOWED: Final = (307, 308)
"""Redirects that keep method and body."""

RESPONSE_ENDS: Final = 1.0
"""Seconds that a server has to end a response that brings nothing more; in time, its connection is used again."""

_KEPT: Final = 3.0
"""Seconds that an idle connection is kept: common servers close theirs after five."""


class StreamableHTTPParameters(msgspec.Struct, kw_only=True):
    """Where a server is, and how to speak to it.

    `headers` go with every request. `timeout` is in seconds, for connecting and writing, and
    for a new session in the place of one that was lost; how long a response may take is the
    client's `read_timeout_seconds`. `http_client` is an
    `httpx2.AsyncClient` of your own (for authorization, proxies, certificates), which stays
    yours to close.

    Redirects that keep method and body (307, 308) are followed within the same origin, five in
    a row at most; what is sent is not for anybody else.

    Raises:
        TypeError: A field is of the wrong type.
        ValueError: `timeout` is not positive, or a header would not be one.
    """

    url: str
    headers: dict[str, str] = {}
    timeout: float = 30.0
    http_client: Any = None

    def __post_init__(self) -> None:
        if type_of(self.url) is not str:
            raise TypeError(f"url must be a text, as in 'https://example.com/mcp'; got {self.url!r}")
        if type_of(self.timeout) not in (int, float):
            raise TypeError(f"timeout must be a positive number of seconds; got {self.timeout!r}")
        if not 0 < self.timeout < math.inf:
            raise ValueError(f"timeout must be a positive number of seconds; got {self.timeout!r}")
        given: Any = self.headers
        if not isinstance(given, Mapping):
            raise TypeError(f"headers must be a dict of texts, as in {{'authorization': '...'}}; got {given!r}")
        for name, value in self.headers.items():
            if type_of(name) is not str or type_of(value) is not str:
                kind = type(value).__name__
                raise TypeError(f"headers must be a dict of texts; the value of {name!r} is of type {kind}")
            if any(char in name + value for char in "\r\n\0") or not name.strip() or not (name + value).isascii():
                raise ValueError(f"headers must be ASCII texts without line breaks; the header {name!r} is not")


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
        self.timeout: Final = parameters.timeout
        self._url = parameters.url
        # Sent with each request, after those of the message.
        self._headers = {name.lower(): value for name, value in parameters.headers.items()}
        # Of connecting and writing; how long a response may take is not HTTP's business.
        self._timeout = httpx2.Timeout(parameters.timeout, read=None)
        # Whether `aclose` closes the HTTP client: never one that was given.
        self._is_own = parameters.http_client is None
        self._http: httpx2.AsyncClient = parameters.http_client
        if self._is_own:
            # Streams stay open, so a limit on connections would be one on requests.
            self._http = httpx2.AsyncClient(limits=httpx2.Limits(max_connections=None, keepalive_expiry=_KEPT))

    @asynccontextmanager
    async def exchange(
        self, method: str, headers: dict[str, str], message: bytes | None = None
    ) -> AsyncGenerator[httpx2.Response, None]:
        """Send a request; entered, it is the response, whose body has not been read.

        A redirect within the origin is followed; any other is the response.
        """
        url: Any = self._url
        for left in range(MAX_REDIRECTS, -1, -1):
            async with self._http.stream(
                method, url, content=message, headers={**self._headers, **headers}, timeout=self._timeout
            ) as response:
                self._bound_cookies()
                elsewhere = _elsewhere(response) if left else None
                if elsewhere is None:
                    yield response
                    return
                await discard(response)
            url = elsewhere

    def _bound_cookies(self) -> None:
        """Forget the cookies of a server that sets ever more of them."""
        if self._is_own and len(self._http.cookies.jar) > MAX_COOKIES:
            self._http.cookies.clear()

    async def delete(self, headers: dict[str, str]) -> None:
        """End the session that the headers name."""
        async with self.exchange("DELETE", headers) as response:
            await discard(response)

    async def aclose(self) -> None:
        """Close the connections, unless the client is somebody else's."""
        if self._is_own:
            await self._http.aclose()

    @property
    def redacted_url(self) -> str:
        """The URL without what may be secret in it."""
        return without_secrets(self._url)


def _elsewhere(response: httpx2.Response) -> httpx2.URL | None:
    """Return where a redirect that may be followed leads: to the same origin, with the same method and body."""
    request = response.next_request
    if response.status_code not in _FOLLOWED or request is None:
        return None
    here, there = response.request.url, request.url
    if here.origin != there.origin or here.userinfo != there.userinfo:
        return None
    return there


def without_secrets(url: str) -> str:
    """Return a URL, possibly relative, without its user and its query, cut at a length."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that is none"
    host = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else ""
    return printable(f"{host}{parts.path}")


def is_stream(response: httpx2.Response) -> bool:
    """Return whether it brings events."""
    content_type: str = response.headers.get("content-type", "")
    return content_type.partition(";")[0].strip().lower() == "text/event-stream"


async def body_of(response: httpx2.Response) -> bytes:
    """Return the whole body.

    Raises:
        InvalidResult: It is larger than any message may be.
    """
    body = bytearray()
    async with aclosing(response.aiter_bytes()) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > MAX_MESSAGE:
                await abandon(response, pieces)
                raise InvalidResult(f"the answer is larger than {MAX_MESSAGE} bytes")
    return bytes(body)


async def abandon(response: httpx2.Response, pieces: AsyncIterator[Any]) -> None:
    """Read a body no further.

    Closing the generator is not enough: httpx2 leaves those inside it unfinished. Over a closed
    connection all come to their end, or are cancelled where they wait.
    """
    await response.aclose()
    try:
        with anyio.move_on_after(_ABANDONED):
            async for _ in pieces:
                pass
    except Exception:
        return


async def discard(response: httpx2.Response, seconds: float = RESPONSE_ENDS) -> None:
    """Read an unwanted body, if it is short and comes soon: then the connection is used again."""
    size = 0
    with anyio.move_on_after(seconds):
        async with aclosing(response.aiter_raw()) as pieces:
            async for piece in pieces:
                size += len(piece)
                if size > _DISCARDED:
                    await abandon(response, pieces)
                    return


def describe(exc: Exception) -> str:
    """Return what went wrong, in one line."""
    if isinstance(exc, MCPCoreError):
        return str(exc)
    if type(exc).__name__ in ("UnsupportedProtocol", "InvalidURL"):
        return f"{_describe_error(exc)} {_TARGETS}"
    return _describe_error(exc)


def _describe_error(exc: Exception) -> str:
    return printable(f"{type(exc).__name__}: {exc}".removesuffix(": "), 1000)


_TARGETS: Final = (
    "(a text is taken for the URL of a server; for a program, give StdioServerParameters(command=..., args=[...]))"
)

"""A server at a URL, seen from the client: Streamable HTTP, both eras.

Each message is a POST of its own; what its response brings is handed on as if it had come
over one channel. What headers have to say is read from the messages themselves. Needs the
extra `client`.
Spec: basic/transports/streamable-http; 2025-11-25/basic/transports. R-HTTP-04 to
R-HTTP-26 and R-HTTPL-10 to R-HTTPL-12, client side.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec

from mcp_core import codec, envelope
from mcp_core.backend import Backend, Job
from mcp_core.channel import Receiver
from mcp_core.errors import InternalError, MCPError
from mcp_core.handlers import read_meta
from mcp_core.journal import Journal
from mcp_core.messages import (
    ErrorResponse,
    Notification,
    Request,
    RequestId,
    Response,
    decode_frame,
    encode_error,
    encode_request,
    encode_response,
)
from mcp_core.parameter_headers import InvalidMark, parameter_headers

if TYPE_CHECKING:
    import httpx2

__all__ = ["StreamableHTTPParameters", "open_http"]

_journal = Journal(__name__)

_NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_ACCEPT: Final = "application/json, text/event-stream"
_HEADER_MISMATCH: Final = -32020
_RETRIES: Final = 5
"""Attempts to take up a stream that broke off, each after the time that the server asked for."""


class StreamableHTTPParameters(msgspec.Struct, kw_only=True):
    """Where a server is, and how to speak to it.

    `headers` go with every request. `timeout` is in seconds, for connecting and writing;
    how long an answer may take is the client's `read_timeout_seconds`. `http_client` is an
    `httpx2.AsyncClient` of your own (for authorization, proxies, certificates), which stays
    yours to close.
    """

    url: str
    headers: dict[str, str] = {}
    timeout: float = 30.0
    http_client: Any = None


@asynccontextmanager
async def open_http(backend: Backend, parameters: StreamableHTTPParameters) -> AsyncGenerator[HTTPChannel, None]:
    """The channel to the server; leaving it ends the session.

    Raises:
        RuntimeError: httpx2 is not installed.
    """
    try:
        import httpx2
    except ImportError as exc:
        raise RuntimeError('a client over HTTP needs httpx2; install it with: pip install "mcpcore[client]"') from exc
    http: httpx2.AsyncClient = parameters.http_client or httpx2.AsyncClient()
    timeout = httpx2.Timeout(parameters.timeout, read=None)
    channel = HTTPChannel(backend, http, parameters, timeout)
    try:
        yield channel
    finally:
        with anyio.move_on_after(5, shield=True):
            await channel.aclose()
            if parameters.http_client is None:
                await http.aclose()


class _Stream:
    """Where a stream of events stands: what to come back with if it breaks off."""

    def __init__(self) -> None:
        self.last_event_id: str | None = None
        self.retry = 1.0


class HTTPChannel:
    """Takes messages out, each by a POST, and brings in what comes back."""

    congested = False

    def __init__(
        self, backend: Backend, http: httpx2.AsyncClient, parameters: StreamableHTTPParameters, timeout: httpx2.Timeout
    ) -> None:
        self._backend = backend
        self._http = http
        self._url = parameters.url
        self._own = parameters.headers
        self._timeout = timeout
        self._receiver: Receiver | None = None
        self._jobs: dict[RequestId, Job] = {}
        self._others: set[Job] = set()
        self._session_id: str | None = None
        self._version: str | None = None
        self._marks: dict[str, Mapping[tuple[str, ...], str]] = {}
        self._closed = False

    def start(self, receiver: Receiver) -> None:
        """Say who takes what comes in."""
        self._receiver = receiver

    # --- out -----------------------------------------------------------------------------------

    def send(self, message: bytes, *, last: bool = False) -> None:
        """Send one message."""
        if self._closed:
            return
        frame = decode_frame(message)
        if isinstance(frame, Request):
            self._jobs[frame.id] = self._backend.spawn(self._request(frame, message), lambda: self._done(frame.id))
        elif isinstance(frame, Notification) and frame.method == "notifications/cancelled":
            self._cancel(frame, message)
        else:
            self._spawn(self._one_way(frame, message))

    def _done(self, request_id: RequestId) -> None:
        self._jobs.pop(request_id, None)

    async def drained(self) -> None:
        """Nothing piles up here."""

    def _spawn(self, work: Any) -> None:
        held: list[Job] = []
        job = self._backend.spawn(work, lambda: self._others.discard(held[0]) if held else None)
        held.append(job)
        self._others.add(job)

    def _cancel(self, frame: Notification, message: bytes) -> None:
        """A request is not wanted any more: in the stateless era, closing its stream says so."""
        params: Any = codec.decode_any(frame.params)
        job = self._jobs.get(params.get("requestId"))
        if self._session_id is not None or self._version is not None:
            self._spawn(self._one_way(frame, message))
        if job is not None:
            job.cancel()

    # --- one POST --------------------------------------------------------------------------------

    async def _request(self, request: Request, message: bytes) -> None:
        try:
            await self._posted(request, message)
        except Exception as exc:
            _journal.debug("%s over HTTP failed: %s", request.method, str(exc))
            self._fail(request.id, f"{request.method} failed: {type(exc).__name__}: {exc}")

    async def _posted(self, request: Request, message: bytes, *, again: bool = True) -> None:
        async with self._http.stream(
            "POST", self._url, content=message, headers=self._headers(request), timeout=self._timeout
        ) as response:
            session_id = response.headers.get("mcp-session-id")
            if request.method == "initialize" and session_id is not None:
                self._session_id = session_id
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                await self._events(request, response)
                return
            body = await response.aread()
        answer = self._as_answer(request, response.status_code, body)
        frame = decode_frame(answer)
        if (
            isinstance(frame, ErrorResponse)
            and frame.error.code == _HEADER_MISMATCH
            and again
            and await self._learn(request)
        ):
            await self._posted(request, message, again=False)
            return
        self._deliver(request, answer)

    def _as_answer(self, request: Request, status: int, body: bytes) -> bytes:
        """What a response without a stream says, as the answer to its request."""
        frame = decode_frame(body) if body.strip() else None
        if isinstance(frame, Response) or (isinstance(frame, ErrorResponse) and frame.id is not None):
            return body
        if isinstance(frame, ErrorResponse):
            return encode_error(request.id, frame.error)
        if status == 404 and self._session_id is not None:
            return encode_error(request.id, InternalError("the session has ended; connect anew"))
        return encode_error(request.id, InternalError(f"the server answered with HTTP status {status}"))

    async def _events(self, request: Request, response: httpx2.Response) -> None:
        """Hand on the events of a response; take the stream up again if it ends before its answer."""
        stream = _Stream()
        if await self._read(request, response, stream):
            return
        for _ in range(_RETRIES):
            if stream.last_event_id is None or self._is_modern(request):
                break
            await anyio.sleep(stream.retry)
            headers = {**self._base_headers(), "accept": "text/event-stream", "last-event-id": stream.last_event_id}
            async with self._http.stream("GET", self._url, headers=headers, timeout=self._timeout) as resumed:
                if resumed.status_code == 200 and await self._read(request, resumed, stream):
                    return
        self._fail(request.id, f"the stream of {request.method} ended before its answer")

    async def _read(self, request: Request | None, response: httpx2.Response, stream: _Stream) -> bool:
        """Hand on what comes; whether the answer to the request was among it."""
        import httpx2

        try:
            async for event in httpx2.EventSource(response):
                if event.id:
                    stream.last_event_id = event.id
                if event.retry is not None:
                    stream.retry = event.retry / 1000
                if not event.data:
                    continue
                data = event.data.encode()
                if request is not None and _answers(data, request.id):
                    self._deliver(request, data)
                    return True
                self._hand_on(data)
        except httpx2.HTTPError as exc:
            _journal.debug("a stream broke off: %s", str(exc))
        return False

    async def _one_way(self, frame: Any, message: bytes) -> None:
        try:
            response = await self._http.post(
                self._url, content=message, headers=self._headers(frame), timeout=self._timeout
            )
            if response.status_code >= 400:
                _journal.warning("a message was refused with HTTP status %s", str(response.status_code))
        except Exception as exc:
            _journal.warning("a message could not be sent: %s", str(exc))
        if isinstance(frame, Notification) and frame.method == "notifications/initialized":
            await self._listen()

    # --- in ----------------------------------------------------------------------------------------

    def _hand_on(self, message: bytes) -> None:
        if self._receiver is not None:
            self._receiver.receive(message)

    def _deliver(self, request: Request, answer: bytes) -> None:
        if request.method == "initialize":
            self._agreed(answer)
        elif request.method == "tools/list":
            answer = self._without_impossible(answer)
        self._hand_on(answer)

    def _fail(self, request_id: RequestId, reason: str) -> None:
        self._hand_on(encode_error(request_id, MCPError(-32000, reason)))

    def _agreed(self, answer: bytes) -> None:
        frame = decode_frame(answer)
        if isinstance(frame, Response):
            result: Any = codec.decode_any(frame.result)
            self._version = result.get("protocolVersion") if codec.is_object(result) else None

    def _without_impossible(self, answer: bytes) -> bytes:
        """A list of tools without those whose marks break the rules (R-HTTP-22); the marks of the others are kept."""
        frame = decode_frame(answer)
        if not isinstance(frame, Response):
            return answer
        result: Any = codec.decode_any(frame.result)
        kept: list[Any] = []
        for tool in result.get("tools", []):
            try:
                self._marks[tool["name"]] = parameter_headers(tool.get("inputSchema", {}))
            except InvalidMark as exc:
                _journal.warning("tool %s was left out: %s", str(tool.get("name")), str(exc))
                continue
            kept.append(tool)
        if len(kept) == len(result.get("tools", [])):
            return answer
        return encode_response(frame.id, codec.encode({**result, "tools": kept}))

    async def _learn(self, request: Request) -> bool:
        """Read the list of tools anew after a refusal over headers (R-HTTP-26); whether that may help."""
        if request.method != "tools/call" or not self._is_modern(request):
            return False
        meta = read_meta(request.params)
        listing = encode_request("tools-again", "tools/list", {"_meta": meta})
        frame = decode_frame(listing)
        response = await self._http.post(
            self._url, content=listing, headers=self._headers(frame), timeout=self._timeout
        )
        before = dict(self._marks)
        self._without_impossible(response.content)
        return self._marks != before

    # --- the stream for what belongs to no request -----------------------------------------------------

    async def _listen(self) -> None:
        """Hold a GET stream open, where the server gives one (handshake era)."""
        stream = _Stream()
        for _ in range(_RETRIES):
            headers = {**self._base_headers(), "accept": "text/event-stream"}
            if stream.last_event_id is not None:
                headers["last-event-id"] = stream.last_event_id
            try:
                async with self._http.stream("GET", self._url, headers=headers, timeout=self._timeout) as response:
                    if response.status_code != 200:
                        return
                    await self._read(None, response, stream)
            except Exception as exc:
                _journal.debug("the GET stream failed: %s", str(exc))
            await anyio.sleep(stream.retry)

    # --- headers ---------------------------------------------------------------------------------------

    def _base_headers(self) -> dict[str, str]:
        headers = {**self._own}
        if self._session_id is not None:
            headers["mcp-session-id"] = self._session_id
        if self._version is not None:
            headers["mcp-protocol-version"] = self._version
        return headers

    def _headers(self, frame: Any) -> dict[str, str]:
        headers = {**self._base_headers(), "content-type": "application/json", "accept": _ACCEPT}
        if not isinstance(frame, Request | Notification):
            return headers
        meta = read_meta(frame.params) or {}
        version = meta.get(envelope.PROTOCOL_VERSION)
        if not isinstance(version, str):
            return headers
        headers["mcp-protocol-version"] = version
        headers["mcp-method"] = frame.method
        member = _NAMED_BY.get(frame.method)
        if member is not None:
            params: Any = codec.decode_any(frame.params)
            headers["mcp-name"] = _value(str(params.get(member, "")))
            for path, name in self._marks.get(str(params.get("name")), {}).items():
                given = _at(params.get("arguments"), path)
                if given is not None:
                    headers[f"mcp-param-{name.lower()}"] = _value(_text(given))
        return headers

    def _is_modern(self, request: Request) -> bool:
        return envelope.PROTOCOL_VERSION in (read_meta(request.params) or {})

    # --- the end -----------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """End what is open, and the session."""
        self._closed = True
        for job in [*self._jobs.values(), *self._others]:
            job.cancel()
        if self._session_id is not None:
            try:
                await self._http.delete(self._url, headers=self._base_headers(), timeout=self._timeout)
            except Exception as exc:
                _journal.debug("the session could not be ended: %s", str(exc))


def _answers(message: bytes, request_id: RequestId) -> bool:
    frame = decode_frame(message)
    return isinstance(frame, Response | ErrorResponse) and frame.id == request_id


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not codec.is_object(arguments):
            return None
        arguments = arguments.get(name)
    return arguments


def _text(given: Any) -> str:
    if isinstance(given, bool):
        return "true" if given else "false"
    return str(given)


def _value(text: str) -> str:
    """A value made fit for a header (R-HTTP-18)."""
    plain = all(char == "\t" or " " <= char <= "~" for char in text) and text == text.strip(" \t")
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode('ascii')}?="

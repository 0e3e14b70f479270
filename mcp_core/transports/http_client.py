"""A server at a URL, seen from the client: Streamable HTTP, both eras.

Each message is a POST of its own; what its response brings is handed on as if it had come
over one channel. What headers have to say is read from the messages themselves. Streams
of the handshake era are taken up again where they broke off, and a session that the server
has forgotten is begun anew. Needs the extra `client`.
Spec: basic/transports/streamable-http; 2025-11-25/basic/transports. R-HTTP-04 to
R-HTTP-26 and R-HTTPL-04 to R-HTTPL-12, client side.
"""

from __future__ import annotations

import base64
import math
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

import anyio
import msgspec
from msgspec import Raw

from mcp_core import codec, envelope
from mcp_core.backend import Backend, Job
from mcp_core.channel import Receiver
from mcp_core.errors import ConnectionClosed, HeaderMismatch, InvalidResult, MCPCoreError, MethodNotFound
from mcp_core.handlers import read_meta
from mcp_core.journal import Journal
from mcp_core.messages import (
    ErrorResponse,
    Frame,
    Notification,
    Request,
    RequestId,
    Response,
    decode_frame,
    encode_error,
    encode_notification,
    encode_request,
    encode_response,
    is_batch,
)
from mcp_core.methods import METHODS
from mcp_core.parameter_headers import InvalidMark, argument_at, parameter_headers
from mcp_core.revisions import V2025_03_26
from mcp_core.transports.lines import MAX_MESSAGE

if TYPE_CHECKING:
    import httpx2

__all__ = ["StreamableHTTPParameters", "open_http"]

_journal = Journal(__name__)

_NAMED_BY_EXTENSIONS: Final = {"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}
"""The same as `Method.name_field`, of methods that the core does not serve."""

_JSON: Final = {"content-type": "application/json", "accept": "application/json, text/event-stream"}

_RETRY: Final = 1.0
"""Seconds after which a stream is taken up again, unless the server says otherwise."""

_TRIES: Final = 5
"""Attempts in a row, none of which gives a stream, after which an answer is given up."""

_LONGEST_PAUSE: Final = 30.0
"""Seconds beyond which the pause between such attempts does not grow by itself."""

_SHORT: Final = 5.0
"""Seconds within which a stream that ends empty was none."""

_STREAM_OPENS: Final = 0.5
"""Seconds that requests wait for the session's own stream to be open."""

_STREAM_CLOSES: Final = 1.0
"""Seconds that a server has to end a response that brings nothing more; in time, its connection is used again."""

_GRACE: Final = 2.0
"""Seconds that messages which nobody waits for may still take when the client closes."""

_KEPT: Final = 3.0
"""Seconds that an idle connection is kept: common servers close theirs after five."""

_SESSION_ID: Final = "mcp-session-id"
_CANCELLED: Final = "notifications/cancelled"
_INITIALIZED: Final = "notifications/initialized"

Take: TypeAlias = Callable[[bytes], None]
"""Takes the answer to a request."""


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
    http: httpx2.AsyncClient | None = parameters.http_client
    if http is None:
        # Streams stay open, so a limit on connections would be one on requests.
        http = httpx2.AsyncClient(limits=httpx2.Limits(max_connections=None, keepalive_expiry=_KEPT))
    channel = HTTPChannel(backend, http, parameters, httpx2.Timeout(parameters.timeout, read=None))
    try:
        yield channel
    finally:
        with anyio.move_on_after(5, shield=True):
            await channel.aclose()
            if parameters.http_client is None:
                await http.aclose()


class _SessionEnded(ConnectionClosed):
    """The server has forgotten the session, and has not looked at the request."""


class _NoStream(ConnectionClosed):
    """The server refuses a GET: asking again is of no use."""


class _Stream:
    """Where a stream of events stands: what to come back with if it breaks off."""

    def __init__(self) -> None:
        self.last_event_id: str | None = None
        self.retry = _RETRY
        self.has_brought = False
        """Whether anything came since it was last taken up."""
        self.broke_off = False
        """Whether it was the connection that ended it."""

    def note(self, event: httpx2.ServerSentEvent) -> None:
        """Take from an event what it says of its stream."""
        self.has_brought = True
        if event.id:
            self.last_event_id = event.id
        if event.retry is not None and event.retry >= 0:
            self.retry = event.retry / 1000


class _Jobs:
    """Work under way, by a key of its own, to be cancelled or waited for."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._jobs: dict[object, Job | None] = {}
        self._empty = anyio.Event()

    def spawn(self, work: Coroutine[Any, Any, None], key: object = None) -> None:
        """Run a coroutine that lets no exception out."""
        key = object() if key is None else key
        self._jobs[key] = None  # it may have ended when `spawn` returns
        job = self._backend.spawn(work, lambda: self._ended(key))
        if key in self._jobs:
            self._jobs[key] = job

    def _ended(self, key: object) -> None:
        self._jobs.pop(key, None)
        if not self._jobs:
            self._empty.set()

    def cancel(self, key: object) -> None:
        """Cancel what was spawned under this key, if it is under way."""
        job = self._jobs.get(key)
        if job is not None:
            job.cancel()

    def cancel_all(self) -> None:
        """Cancel everything."""
        for key in list(self._jobs):
            self.cancel(key)

    async def ended(self) -> None:
        """Wait until nothing is under way."""
        while self._jobs:
            self._empty = anyio.Event()
            await self._empty.wait()


class HTTPChannel:
    """Takes messages out, each by a POST, and brings in what comes back."""

    congested = False

    def __init__(
        self, backend: Backend, http: httpx2.AsyncClient, parameters: StreamableHTTPParameters, timeout: httpx2.Timeout
    ) -> None:
        self._http = http
        self._url = parameters.url
        self._own = {name.lower(): value for name, value in parameters.headers.items()}
        self._timeout = timeout
        self._patience = parameters.timeout
        self._receiver: Receiver | None = None
        self._requests = _Jobs(backend)
        self._messages = _Jobs(backend)
        self._listener = _Jobs(backend)
        self._notices: deque[tuple[Notification, bytes]] = deque()
        self._hello: tuple[Request, bytes] | None = None
        self._session_id: str | None = None
        self._version: str | None = None
        """What the handshake settled; `None` in the stateless era."""
        self._modern: str | None = None
        """What the requests of the stateless era say, for notifications, which do not."""
        self._ready = anyio.Event()
        self._ready.set()
        self._lost: str | None = None
        """Why there is no session any more."""
        self._marks: dict[str, Mapping[tuple[str, ...], str]] = {}
        self._rereadings = 0
        self._closed = False

    def start(self, receiver: Receiver) -> None:
        """Say who takes what comes in."""
        self._receiver = receiver

    # --- out -----------------------------------------------------------------------------------

    def send(self, message: bytes, *, last: bool = False) -> None:
        """Send one message. Notifications keep their order; every other goes by itself."""
        if self._closed:
            return
        frame = decode_frame(message)
        if isinstance(frame, Request):
            self._requests.spawn(self._request(frame, message), frame.id)
        elif not isinstance(frame, Notification):
            self._messages.spawn(self._one_way(frame, message))
        elif frame.method == _CANCELLED:
            self._cancel(frame, message)
        else:
            if frame.method == _INITIALIZED:
                self._ready = anyio.Event()
            self._notices.append((frame, message))
            if len(self._notices) == 1:
                self._messages.spawn(self._work_off())

    async def drained(self) -> None:
        """Nothing piles up here."""

    def _cancel(self, frame: Notification, message: bytes) -> None:
        """A request is not wanted any more: in the stateless era, closing its stream says so (R-CANC-05)."""
        if self._version is not None:
            self._messages.spawn(self._one_way(frame, message))
        params: Any = codec.decode_any(frame.params)
        self._requests.cancel(params.get("requestId"))

    async def _work_off(self) -> None:
        """Send notifications one after the other: their order means something (R-PROG-02)."""
        while self._notices:
            frame, message = self._notices[0]
            if frame.method == _INITIALIZED:
                await self._open(frame, message)
            else:
                await self._one_way(frame, message)
            self._notices.popleft()

    async def _one_way(self, frame: Frame, message: bytes) -> None:
        try:
            async with self._http.stream(
                "POST", self._url, content=message, headers=self._headers(frame), timeout=self._timeout
            ) as response:
                if not response.is_success:
                    _journal.warning("a message was refused with HTTP status %s", str(response.status_code))
                with anyio.move_on_after(_STREAM_CLOSES):
                    await response.aread()  # there should be nothing; a stream would hold up what comes next
        except Exception as exc:
            _journal.warning("a message could not be sent: %s", _told(exc))

    async def _open(self, frame: Notification, message: bytes) -> None:
        """Confirm the handshake, and open the session's own stream. Requests wait for both:
        a server may refuse those that overtake the one, and may ask on the other what their
        handlers need to know.
        """
        try:
            await self._one_way(frame, message)
            opened = anyio.Event()
            self._listener.cancel_all()
            self._listener.spawn(self._listen(opened))
            with anyio.move_on_after(_STREAM_OPENS):
                await opened.wait()
        finally:
            self._ready.set()

    # --- requests --------------------------------------------------------------------------------

    async def _request(self, request: Request, message: bytes) -> None:
        try:
            if request.method == "initialize":
                self._hello = (request, message)
                self._modern = None
            else:
                await self._ready.wait()
            await self._ask(request, message, lambda answer: self._deliver(request, answer))
        except MCPCoreError as exc:
            self._fail(request.id, exc)
        except Exception as exc:
            _journal.debug("%s over HTTP failed: %s", request.method, _told(exc))
            reason = f"{request.method} got no answer from {_shown(self._url)}: {_told(exc)}"
            self._fail(request.id, ConnectionClosed(reason))

    async def _ask(self, request: Request, message: bytes, take: Take) -> None:
        """Post a request; once more where the server has not looked at it, and it may now."""
        session_id = self._session_id
        try:
            answer = await self._post(request, message, take)
        except _SessionEnded:
            await self._begin_anew(session_id)
            answer = await self._post(request, message, take)
        if answer is None:
            return
        if _is_header_mismatch(answer) and await self._reread_marks(request):
            answer = await self._post(request, message, take)
        if answer is not None:
            take(answer)

    async def _post(self, request: Request, message: bytes, take: Take) -> bytes | None:
        """Post a request, and read on until its answer is there.

        An answer on a stream is given to `take` when it comes; any other is returned.

        Raises:
            InvalidResult: What came is none.
            ConnectionClosed: Its stream broke off, or the session has ended.
        """
        async with self._http.stream(
            "POST", self._url, content=message, headers=self._headers(request), timeout=self._timeout
        ) as response:
            if request.method == "initialize" and response.is_success:
                self._session_id = response.headers.get(_SESSION_ID)
            if not response.is_success or not _is_stream(response):
                return self._answer_in(await _body(response), request, response)
            stream = _Stream()
            if await self._read(response, stream, request, take):
                return None
        # A broken stream of the stateless era cannot be taken up (R-HTTP-12).
        if stream.last_event_id is None or self._is_modern(request):
            broke = f"the stream of {request.method} ended before its answer"
            raise ConnectionClosed(broke) if stream.broke_off else InvalidResult(broke)
        await anyio.sleep(stream.retry)
        await self._follow(stream, _TRIES, request=request, take=take)
        return None

    def _answer_in(self, body: bytes, request: Request, response: httpx2.Response) -> bytes:
        """The answer to a request that a response without a stream holds.

        Raises:
            InvalidResult: It holds none.
            _SessionEnded: It says that there is no such session.
        """
        frames = [(message, decode_frame(message)) for message in self._messages_in(body)]
        for message, frame in frames:
            if isinstance(frame, Response) and frame.id == request.id:
                return message
        refusal = next((frame for _, frame in frames if isinstance(frame, ErrorResponse)), None)
        unknown_method = refusal is not None and isinstance(refusal.error, MethodNotFound)
        if response.status_code == 404 and not unknown_method and _SESSION_ID in response.request.headers:
            raise _SessionEnded("the session has ended, and a new one does not last; connect anew")
        if refusal is not None:
            # What the server could not read has no id, or one of the server's own.
            return encode_error(request.id, refusal.error)
        status = f"HTTP status {response.status_code} {response.reason_phrase}".rstrip()
        if response.is_success:
            raise InvalidResult(f"the server answered {request.method} with {status}, and no JSON-RPC answer to it")
        if response.has_redirect_location:
            status += f" to {response.headers['location']}"
        raise InvalidResult(f"the server answered {request.method} with {status}")

    async def _begin_anew(self, ended: str | None) -> None:
        """Have a session again in the place of one that the server has forgotten (R-HTTPL-10).

        Raises:
            ConnectionClosed: It gives none, or none like it.
        """
        if self._session_id == ended and self._ready.is_set():
            self._ready = anyio.Event()
            # In a job of its own: the request that found out may be cancelled, others wait as well.
            self._messages.spawn(self._shake_hands_again())
        await self._ready.wait()
        if self._lost is not None:
            raise ConnectionClosed(self._lost)

    async def _shake_hands_again(self) -> None:
        ended, self._lost = self._session_id, "the session has ended, and a new one could not be begun"
        try:
            assert self._hello is not None
            request, message = self._hello
            taken: list[bytes] = []
            with anyio.fail_after(self._patience):  # everything else waits for it
                answer = await self._post(request, message, taken.append) or taken[-1]
            frame = decode_frame(answer)
            if not isinstance(frame, Response) or _agreed(frame) != self._version:
                raise InvalidResult("the server does not agree to the same as before")
            self._lost = None
            _journal.warning("the session had ended; in the new one, what was subscribed to must be so again")
            await self._open(Notification(_INITIALIZED, Raw(b"{}")), encode_notification(_INITIALIZED, None))
        except Exception as exc:
            self._session_id = ended
            self._lost = f"the session has ended, and a new one could not be begun: {_told(exc)}"
        finally:
            self._ready.set()

    # --- streams -----------------------------------------------------------------------------------

    async def _read(
        self, response: httpx2.Response, stream: _Stream, request: Request | None = None, take: Take | None = None
    ) -> bool:
        """Hand on what comes until the stream ends; whether the answer to the request was among it.

        Raises:
            InvalidResult: An event is too large.
        """
        import httpx2

        answered = False
        # Without an end to the stream, the connection is closed and serves no other request.
        with anyio.CancelScope() as rest:
            try:
                async for event in httpx2.EventSource(response, MAX_MESSAGE):
                    stream.note(event)
                    if event.event != "message" or not event.data:
                        continue
                    for message in self._messages_in(event.data.encode()):
                        if request is not None and take is not None and _answers(message, request.id):
                            take(message)
                            answered = True
                            rest.deadline = anyio.current_time() + _STREAM_CLOSES
                        else:
                            self._hand_on(message)
            except httpx2.SSEError as exc:
                raise InvalidResult(str(exc)) from None
            except httpx2.HTTPError as exc:
                stream.broke_off = True
                _journal.debug("a stream broke off: %s", _told(exc))
        return answered

    async def _follow(
        self,
        stream: _Stream,
        tries: float,
        *,
        request: Request | None = None,
        take: Take | None = None,
        opened: Callable[[], None] = lambda: None,
    ) -> None:
        """Take up a stream by GET until the answer to the request has come (handshake era).

        Raises:
            ConnectionClosed: The server gives no stream, or gave none so many times in a row.
        """
        import httpx2

        what = "the session" if request is None else request.method
        failures = 0
        while True:
            began = anyio.current_time()
            given = stream.has_brought = False
            try:
                async with self._http.stream(
                    "GET", self._url, headers=self._stream_headers(stream), timeout=self._timeout
                ) as response:
                    if response.status_code < 500 and not (response.is_success and _is_stream(response)):
                        raise _NoStream(f"the server refused the stream of {what}: HTTP status {response.status_code}")
                    if response.is_success:
                        given = True
                        opened()
                        if await self._read(response, stream, request, take):
                            return
            except httpx2.TransportError as exc:
                _journal.debug("a stream could not be taken up: %s", _told(exc))
            lasted = stream.has_brought or anyio.current_time() - began > _SHORT
            failures = 0 if lasted else failures + 1
            if given and failures and request is None:
                stream.last_event_id = None  # nothing was missed, and the stream goes no further: have another
            if failures >= tries:
                raise ConnectionClosed(f"the stream of {what} broke off, and could not be taken up again")
            await anyio.sleep(max(stream.retry, min(2.0 ** min(failures, 10) - 1, _LONGEST_PAUSE)))

    async def _listen(self, opened: anyio.Event) -> None:
        """Hold open the stream for what belongs to no request, where the server gives one (handshake era)."""
        try:
            stream = _Stream()
            while True:
                try:
                    await self._follow(stream, math.inf, opened=opened.set)
                except _NoStream as exc:
                    if stream.last_event_id is None:
                        _journal.debug("no stream besides those of requests: %s", str(exc))
                        return
                    stream = _Stream()  # its events are gone; what comes from now on is not
        except Exception as exc:
            _journal.warning("what belongs to no request is not received any more: %s", _told(exc))
        finally:
            opened.set()

    def _messages_in(self, text: bytes) -> list[bytes]:
        """The messages of a body or an event: one, or in 2025-03-26 an array of them."""
        if self._version == V2025_03_26 and is_batch(text):
            try:
                return [bytes(message) for message in _array(text)]
            except (codec.Misfit, codec.Undecodable):
                return [text]
        return [text]

    # --- in ----------------------------------------------------------------------------------------

    def _hand_on(self, message: bytes) -> None:
        if self._receiver is not None:
            self._receiver.receive(message)

    def _deliver(self, request: Request, answer: bytes) -> None:
        if request.method == "initialize":
            frame = decode_frame(answer)
            self._version = _agreed(frame) if isinstance(frame, Response) else None
        elif request.method == "tools/list" and self._is_modern(request):
            answer = self._without_impossible(answer)
        self._hand_on(answer)

    def _fail(self, request_id: RequestId, error: MCPCoreError) -> None:
        if self._receiver is not None:
            self._receiver.fail(request_id, error)

    # --- parameters in headers -----------------------------------------------------------------------

    def _without_impossible(self, answer: bytes) -> bytes:
        """A list of tools without those whose marks break the rules (R-HTTP-22); the marks of the others are kept."""
        frame = decode_frame(answer)
        if not isinstance(frame, Response):
            return answer
        result: Any = codec.decode_any(frame.result)
        tools: Any = result.get("tools") if codec.is_object(result) else None
        if not codec.is_array(tools):
            return answer  # what is wrong with it, its reader says
        kept = [tool for tool in tools if self._is_possible(tool)]
        if len(kept) == len(tools):
            return answer
        return encode_response(frame.id, codec.encode({**result, "tools": kept}))

    def _is_possible(self, tool: Any) -> bool:
        if not codec.is_object(tool):
            return True
        name = str(tool.get("name"))
        try:
            self._marks[name] = parameter_headers(tool.get("inputSchema", {}))
        except InvalidMark as exc:
            self._marks.pop(name, None)
            _journal.warning("tool %s was left out: %s", name, str(exc))
            return False
        return True

    async def _reread_marks(self, request: Request) -> bool:
        """Read the list of tools anew after a refusal over headers (R-HTTP-26); whether that helps."""
        if request.method != "tools/call":
            return False
        params: Any = codec.decode_any(request.params)
        called = str(params.get("name"))
        before = self._marks.get(called)
        meta: dict[str, Any] = dict(params.get("_meta") or {})
        meta.pop("progressToken", None)
        page: dict[str, Any] = {"_meta": meta}
        try:
            while self._marks.get(called) == before:
                self._rereadings += 1
                message = encode_request(f"tools-{self._rereadings}", "tools/list", page)
                taken: list[bytes] = []
                listing = Request(f"tools-{self._rereadings}", "tools/list", Raw(codec.encode(page)))
                answer = await self._post(listing, message, taken.append) or taken[-1]
                self._without_impossible(answer)
                cursor = _cursor(answer)
                if cursor is None:
                    break
                page["cursor"] = cursor
        except Exception as exc:
            _journal.debug("the list of tools could not be read anew: %s", _told(exc))
        return self._marks.get(called) != before

    # --- headers ---------------------------------------------------------------------------------------

    def _session_headers(self) -> dict[str, str]:
        headers = dict(self._own)
        if self._session_id is not None:
            headers[_SESSION_ID] = self._session_id
        if self._version is not None:
            headers["mcp-protocol-version"] = self._version
        return headers

    def _stream_headers(self, stream: _Stream) -> dict[str, str]:
        headers = {**self._session_headers(), "accept": "text/event-stream"}
        if stream.last_event_id is not None:
            headers["last-event-id"] = stream.last_event_id
        return headers

    def _headers(self, frame: Frame) -> dict[str, str]:
        if isinstance(frame, Request) and frame.method == "initialize":
            return {**self._own, **_JSON}  # it begins a session, and settles the version
        headers = {**self._session_headers(), **_JSON}
        if not isinstance(frame, Request | Notification):
            return headers
        version = self._stated(frame)
        if version is None:
            return headers
        headers["mcp-protocol-version"] = version
        headers["mcp-method"] = frame.method
        row = METHODS.get(frame.method)
        member = (row.name_field if row is not None else None) or _NAMED_BY_EXTENSIONS.get(frame.method)
        if member is None:
            return headers
        params: Any = codec.decode_any(frame.params)
        named = params.get(member)
        if isinstance(named, str):
            headers["mcp-name"] = _value(named)
        if frame.method == "tools/call":
            headers.update(self._parameters(named, params.get("arguments")))
        return headers

    def _parameters(self, tool: Any, arguments: Any) -> dict[str, str]:
        """The marked arguments of a call (R-HTTP-23)."""
        headers: dict[str, str] = {}
        for path, name in self._marks.get(str(tool), {}).items():
            text = _text(argument_at(arguments, path))
            if text is not None:
                headers[f"mcp-param-{name.lower()}"] = _value(text)
        return headers

    def _stated(self, frame: Request | Notification) -> str | None:
        """The revision that a message of the stateless era is of; `None` in the handshake era."""
        version = (read_meta(frame.params) or {}).get(envelope.PROTOCOL_VERSION)
        if isinstance(version, str):
            self._modern = version
            return version
        return self._modern if self._version is None and isinstance(frame, Notification) else None

    def _is_modern(self, request: Request) -> bool:
        return self._stated(request) is not None

    # --- the end -----------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """End what is open, and the session. What waits for answers is told that none will come."""
        self._closed = True
        with anyio.move_on_after(_GRACE):
            await self._messages.ended()
        everything = (self._requests, self._messages, self._listener)
        for jobs in everything:
            jobs.cancel_all()
        for jobs in everything:
            await jobs.ended()
        if self._receiver is not None:
            self._receiver.ended()
        if self._session_id is not None:
            try:
                await self._http.delete(self._url, headers=self._session_headers(), timeout=self._timeout)
            except Exception as exc:
                _journal.debug("the session could not be ended: %s", _told(exc))


# --- responses ---------------------------------------------------------------------------------------------


def _is_stream(response: httpx2.Response) -> bool:
    content_type: str = response.headers.get("content-type", "")
    return content_type.partition(";")[0].strip().lower() == "text/event-stream"


async def _body(response: httpx2.Response) -> bytes:
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


_array: Final[codec.Decoder[list[Raw]]] = codec.decoder(list[Raw])


class _Page(msgspec.Struct, rename="camel"):
    next_cursor: str | None = None


_page: Final[codec.Decoder[_Page]] = codec.decoder(_Page)


def _cursor(answer: bytes) -> str | None:
    """Where a list goes on."""
    frame = decode_frame(answer)
    return _page(frame.result).next_cursor if isinstance(frame, Response) else None


def _answers(message: bytes, request_id: RequestId) -> bool:
    frame = decode_frame(message)
    return isinstance(frame, Response | ErrorResponse) and frame.id == request_id


def _agreed(frame: Response) -> str | None:
    """The revision that the answer to `initialize` settles."""
    result: Any = codec.decode_any(frame.result)
    version = result.get("protocolVersion") if codec.is_object(result) else None
    return version if isinstance(version, str) else None


def _is_header_mismatch(answer: bytes) -> bool:
    frame = decode_frame(answer)
    return isinstance(frame, ErrorResponse) and isinstance(frame.error, HeaderMismatch)


# --- texts -------------------------------------------------------------------------------------------------


def _told(exc: Exception) -> str:
    """What went wrong, in one line."""
    return str(exc) if isinstance(exc, MCPCoreError) else f"{type(exc).__name__}: {exc}".removesuffix(": ")


def _shown(url: str) -> str:
    """A URL without what may be secret in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that is none"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _text(given: Any) -> str | None:
    """An argument as a header says it; `None` for what no header says."""
    if isinstance(given, str):
        return given
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, float) and given.is_integer():
        return str(int(given))
    return str(given) if isinstance(given, int | float) else None


def _value(text: str) -> str:
    """A value made fit for a header (R-HTTP-18)."""
    plain = all(char == "\t" or " " <= char <= "~" for char in text) and text == text.strip(" \t")
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode('ascii')}?="

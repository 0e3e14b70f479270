"""The client: connects, settles the era, and makes typed requests.

Spec: basic/versioning, "Backward Compatibility"; basic/lifecycle;
basic/patterns/mrtr, "Client Requirements".
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, Literal, Self, TypeAlias, TypeVar, cast, overload

import anyio
import msgspec
from msgspec import Raw

from mcp_core import codec, projection
from mcp_core import types as t
from mcp_core.backend import Backend, Work, open_backend
from mcp_core.channel import Channel
from mcp_core.client.cache import CACHE_BYTES, ResponseCache
from mcp_core.client.callbacks import Callbacks, ClientRequestContext, Elicit, ListRoots, Sample
from mcp_core.client.deadlines import READ_TIMEOUT, RequestDeadlines
from mcp_core.client.listening import Subscription
from mcp_core.client.notification_queue import NotificationQueue
from mcp_core.client.options import check_callback, check_count, check_flag, check_instance, check_seconds
from mcp_core.client.outputs import OutputSchemas
from mcp_core.client.reading import read_result
from mcp_core.client.targets import Raised, Target, opener
from mcp_core.codec import JSONObject
from mcp_core.connection import Connection
from mcp_core.errors import (
    ConnectionClosed,
    HTTPRefusal,
    InputRoundsExceeded,
    InternalError,
    InvalidResult,
    LocalProtocolError,
    MCPCoreError,
    MCPError,
    RequestTimeout,
    UnsupportedProtocolVersion,
)
from mcp_core.messages import Notification, Request, RequestId, encode_error, encode_notification, encode_response
from mcp_core.methods import METHODS
from mcp_core.queue_logger import QueueLogger, RateLimitedWarnings, printable
from mcp_core.request_meta import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION, SUBSCRIPTION_ID
from mcp_core.revisions import HANDSHAKE_REVISIONS, MODERN_REVISIONS, is_modern, newest_first
from mcp_core.session import Handshake, our_request_id

__all__ = ["Client", "Mode"]

PROBE_TIMEOUT: Final = 5.0
"""Seconds after which a server that ignores `server/discover` is taken for an older one."""

_STATE_ONLY_PAUSE: Final = 0.05
"""Seconds before a call is repeated that only asked to be repeated; doubled each time."""

LISTEN_TIMEOUT: Final = 30.0
"""Seconds that the acknowledgement of a subscription may take at most."""

CALLBACKS_END: Final = 5.0
"""Seconds that callbacks have, when the client closes, for what came before."""

MAX_ANSWERING: Final = 100
"""Requests of the server's that may be with the callbacks at a time; more are refused."""

MAX_INPUTS: Final = 100
"""Inputs that a server may ask for in one round of a call."""

MAX_PAGES: Final = 100
"""Pages of a list that are read where the whole of it is wanted."""

_NOT_ABOUT_THE_ERA: Final = (401, 403, 407, 429)
"""HTTP statuses that the handshake would meet with as well: who may, and how often."""

_PROGRESS: Final = "progress_callback(progress, total, message)"

_NOT_OPEN: Final = "the client is not open: use `async with Client(...)`"

_log = QueueLogger(__name__)

T = TypeVar("T")

Mode: TypeAlias = Literal["auto", "legacy", "2026-07-28"]
"""How the era is found out: by asking, the handshake, or the stateless revision without asking."""

Progress: TypeAlias = Callable[[float, float | None, str | None], Any]
LogSink: TypeAlias = Callable[[t.LoggingMessageNotificationParams], Any]
MessageSink: TypeAlias = Callable[[str, JSONObject], Any]
_Begin: TypeAlias = Callable[[Request, Connection], "bytes | Coroutine[Any, Any, bytes] | None"]


class Client:
    """A connection to one server. Use it as an async context manager.

    Callbacks may be plain or async functions, and what they make possible is declared to the server. What came before
    the response to a call reaches them in order, before the client is closed, for which they have `CALLBACKS_END`
    seconds.

    Args:
        target: A `Server`, or anything with a `.server` that is one (in memory, through real bytes);
            `StdioServerParameters` (a child process); a URL or `StreamableHTTPParameters` (needs the extra `client`).
        mode: `"auto"` asks with `server/discover` and falls back to the handshake; `"legacy"` is the handshake;
            `"2026-07-28"` speaks that revision without asking.
        client_info: Name and version that the server sees.
        elicitation_callback: `(ctx, params) -> ElicitResult`: asks the user.
        sampling_callback: `(ctx, params) -> CreateMessageResult`: asks a model.
        sampling_capabilities: What of sampling is declared beyond the callback.
        list_roots_callback: `(ctx) -> ListRootsResult`: the folders that the server may look at.
        logging_callback: `(params)`: gets log messages. A 2026-07-28 server sends none without `log_level`.
        message_handler: `(method, params)`: gets every other notification.
        log_level: Least level of the log messages that a 2026-07-28 server is asked for, with each request.
        read_timeout_seconds: Seconds that a request may go without a sign of life (its progress is one), up to
            `LONGEST` times as long in all. A limit given with a call is one for the whole call. `None`: no limit.
        probe_timeout_seconds: Seconds after which a server that ignores `server/discover` is taken for an older one.
        input_required_max_rounds: Rounds of questions that one call may ask before it fails.
        cache: Do not ask again for lists and resources that still hold, by their `ttl_ms` and announced changes.
        cache_max_bytes: Bytes of such results.
        validate_structured_content: Compare structured content with the tool's output schema, where `jsonschema-rs`
            is installed; a tool that was not listed is looked up first.
        raise_exceptions: Raise what a handler of an in-memory server has raised, not the error that was sent for it.

    Raises:
        TypeError: An option is of the wrong type, or `target` is nothing to connect to.
        ValueError: An option is out of range.
    """

    def __init__(  # noqa: PLR0913 - all but the target are keywords
        self,
        target: Target,
        *,
        mode: Mode = "auto",
        client_info: t.Implementation | None = None,
        elicitation_callback: Elicit | None = None,
        sampling_callback: Sample | None = None,
        sampling_capabilities: t.SamplingCapability | None = None,
        list_roots_callback: ListRoots | None = None,
        logging_callback: LogSink | None = None,
        message_handler: MessageSink | None = None,
        log_level: t.LoggingLevel | None = None,
        read_timeout_seconds: float | None = READ_TIMEOUT,
        probe_timeout_seconds: float = PROBE_TIMEOUT,
        input_required_max_rounds: int = 10,
        cache: bool = True,
        cache_max_bytes: int = CACHE_BYTES,
        validate_structured_content: bool = True,
        raise_exceptions: bool = False,
    ) -> None:
        check_instance("client_info", client_info, t.Implementation)
        check_instance("sampling_capabilities", sampling_capabilities, t.SamplingCapability)
        check_callback("elicitation_callback", elicitation_callback, "elicitation_callback(ctx, params)")
        check_callback("sampling_callback", sampling_callback, "sampling_callback(ctx, params)")
        check_callback("list_roots_callback", list_roots_callback, "list_roots_callback(ctx)")
        check_callback("logging_callback", logging_callback, "logging_callback(params)")
        check_callback("message_handler", message_handler, "message_handler(method, params)")
        check_seconds("read_timeout_seconds", read_timeout_seconds)
        check_seconds("probe_timeout_seconds", probe_timeout_seconds, optional=False)
        check_count("input_required_max_rounds", input_required_max_rounds, "rounds")
        check_count("cache_max_bytes", cache_max_bytes, "bytes")
        for name, flag in (
            ("cache", cache),
            ("validate_structured_content", validate_structured_content),
            ("raise_exceptions", raise_exceptions),
        ):
            check_flag(name, flag)
        if log_level is not None and log_level not in t.LOGGING_LEVELS:
            raise ValueError(f"log_level must be one of {list(t.LOGGING_LEVELS)}; got {log_level!r}")
        if mode not in ("auto", "legacy", *MODERN_REVISIONS):
            raise ValueError(f"mode must be 'auto', 'legacy' or one of {list(MODERN_REVISIONS)}; got {mode!r}")
        self._raised = Raised() if raise_exceptions else None
        self._open = opener(target, self._raised)
        self._mode = mode
        self._info = client_info or t.Implementation(name="mcp_core", version="")
        self._callbacks = Callbacks(elicitation_callback, sampling_callback, list_roots_callback, sampling_capabilities)
        self._log_sink = logging_callback
        self._message_sink = message_handler
        self._log_level: t.LoggingLevel | None = log_level
        self._timeout = read_timeout_seconds
        self._probe_timeout = probe_timeout_seconds
        self._max_rounds = input_required_max_rounds
        self._cache = ResponseCache() if cache else None
        if self._cache is not None:
            self._cache.max_bytes = cache_max_bytes
        self._outputs = OutputSchemas(validate_structured_content)
        self._warnings = RateLimitedWarnings(_log)
        self._answering = 0
        self._notifications: NotificationQueue | None = None
        self._deadlines: RequestDeadlines | None = None
        self._stack: AsyncExitStack | None = None
        self._connection: Connection | None = None
        self._backend: Backend | None = None
        self._revision: str | None = None
        self._envelope: JSONObject = {}
        self._progress: dict[RequestId, Progress] = {}
        self._subscriptions: dict[RequestId, Subscription] = {}
        self.server_info: t.Implementation | None = None
        self.server_capabilities: t.ServerCapabilities = t.ServerCapabilities()
        self.instructions: str | None = None

    # --- opening and closing --------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._stack is not None:
            raise LocalProtocolError("the client is open already")
        async with AsyncExitStack() as stack:
            stack.callback(self._forget)
            self._backend = backend = await stack.enter_async_context(open_backend())
            self._notifications = NotificationQueue(backend)
            if self._timeout is not None:
                self._deadlines = RequestDeadlines(backend, self._timeout, self._too_late)
                stack.callback(self._deadlines.close)
            start = await stack.enter_async_context(self._open(backend))
            self._connection = start(self._connect)
            await self._negotiate()
            if self._log_sink is not None and self._log_level is None and is_modern(self.protocol_version):
                unasked = (
                    "logging_callback gets nothing from a 2026-07-28 server that is not asked: give log_level, too"
                )
                _log.warning(unasked)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        stack, self._stack = self._stack, None
        try:
            if self._notifications is not None and (kind is None or issubclass(kind, Exception)):
                await self._notifications.settled(CALLBACKS_END)
        finally:
            self._revision = None
            if self._cache is not None:
                self._cache.clear()
            self._outputs.forget()
            if stack is not None:
                await stack.aclose()

    def _forget(self) -> None:
        """Be closed, or not open after all."""
        self._revision = self._connection = self._backend = self._notifications = self._deadlines = None

    @property
    def protocol_version(self) -> str:
        """The revision in use."""
        if self._revision is None:
            raise LocalProtocolError(_NOT_OPEN)
        return self._revision

    def _connect(self, channel: Channel) -> Connection:
        return Connection(_Responder(self._begin, self._take_notification), self._loop, channel, answer_malformed=False)

    @property
    def _loop(self) -> Backend:
        if self._backend is None:
            raise LocalProtocolError(_NOT_OPEN)
        return self._backend

    # --- the era ------------------------------------------------------------------------------

    async def _negotiate(self) -> None:
        if self._mode == "legacy":
            await self._initialize()
        elif self._mode == "auto":
            await self._probe(MODERN_REVISIONS[-1])
        else:
            self._adopt(self._mode)

    def _adopt(self, revision: str) -> None:
        """Speak a modern revision from now on."""
        capabilities = projection.project(self._callbacks.capabilities(), revision)
        self._revision = revision
        self._envelope = {
            PROTOCOL_VERSION: revision,
            CLIENT_CAPABILITIES: Raw(codec.encode(capabilities)),
            CLIENT_INFO: Raw(codec.encode(self._info)),
        }
        if self._log_level is not None:
            self._envelope[LOG_LEVEL] = self._log_level

    async def _probe(self, revision: str, *, again: bool = True) -> None:
        """Ask which revisions there are; anything but a modern answer means the handshake."""
        self._adopt(revision)
        timeout = self._probe_timeout
        try:
            found: t.DiscoverResult = await self._request("server/discover", t.RequestParams(), timeout=timeout)
        except UnsupportedProtocolVersion as exc:
            await self._corrected(exc, again)
        except HTTPRefusal as exc:
            if exc.status in _NOT_ABOUT_THE_ERA:
                raise
            await self._initialize()
        except (MCPError, RequestTimeout, InvalidResult):
            await self._initialize()
        else:
            mutual = [r for r in newest_first(MODERN_REVISIONS) if r in found.supported_versions]
            if not mutual:
                await self._initialize()
                return
            self._adopt(mutual[0])
            self._learn(found.server_info, found.capabilities, found.instructions)

    async def _corrected(self, refusal: UnsupportedProtocolVersion, again: bool) -> None:
        data = refusal.data
        given: object = data.get("supported") if codec.is_object(data) else None
        supported: list[object] = given if codec.is_array(given) else []
        mutual = [r for r in newest_first(MODERN_REVISIONS) if r in supported]
        if mutual and again:
            await self._probe(mutual[0], again=False)
        elif not supported or any(r in supported for r in HANDSHAKE_REVISIONS):
            # A server that names none it serves may serve the others all the same.
            await self._initialize()
        else:
            raise refusal

    async def _initialize(self) -> None:
        self._revision, self._envelope = newest_first(HANDSHAKE_REVISIONS)[0], {}
        params = t.InitializeRequestParams(
            protocol_version=self._revision,
            capabilities=self._callbacks.capabilities(),
            client_info=self._info,
        )
        agreed: t.InitializeResult = await self._request("initialize", params)
        if agreed.protocol_version not in HANDSHAKE_REVISIONS:
            raise InvalidResult(f"the server speaks {agreed.protocol_version!r}, which this client does not")
        self._revision = agreed.protocol_version
        # What the connection goes by when the server sends several messages in one (R-BASE-13).
        self._require().handshake = Handshake(agreed.protocol_version, params.capabilities, self._info)
        self._learn(agreed.server_info, agreed.capabilities, agreed.instructions)
        self._notify("notifications/initialized", None)

    def _learn(self, info: Any, capabilities: t.ServerCapabilities, instructions: str | None) -> None:
        try:
            self.server_info = codec.convert(info, t.Implementation) if codec.is_object(info) else info
        except codec.ValidationError:
            self.server_info = None  # it may be missing, so it may be useless too
        self.server_capabilities = capabilities
        self.instructions = instructions

    # --- requests --------------------------------------------------------------------------------

    @overload
    async def request(
        self,
        method: str,
        params: object = None,
        result_type: None = None,
        *,
        timeout: float | None = None,
        progress_callback: Progress | None = None,
        meta: JSONObject | None = None,
    ) -> JSONObject: ...

    @overload
    async def request(
        self,
        method: str,
        params: object = None,
        *,
        result_type: type[T],
        timeout: float | None = None,
        progress_callback: Progress | None = None,
        meta: JSONObject | None = None,
    ) -> T: ...

    @overload
    async def request(
        self,
        method: str,
        params: object,
        result_type: type[T],
        *,
        timeout: float | None = None,
        progress_callback: Progress | None = None,
        meta: JSONObject | None = None,
    ) -> T: ...

    async def request(
        self,
        method: str,
        params: object = None,
        result_type: object = None,
        *,
        timeout: float | None = None,
        progress_callback: Progress | None = None,
        meta: JSONObject | None = None,
    ) -> object:
        """Make a request of any method; `params` is a Struct or a dict.

        The result is decoded to `result_type`, a dict by default. If the caller is
        cancelled, the server is asked to cancel.

        Raises:
            MCPError: The server refused.
            InvalidResult: It answered with something else.
            RequestTimeout: It did not answer within `timeout` seconds.
            ConnectionClosed: It is gone.
        """
        self.protocol_version  # noqa: B018 - raises when the client is not open
        check_seconds("timeout", timeout)
        check_callback("progress_callback", progress_callback, _PROGRESS)
        return await self._request(
            method, params, result_type or dict, timeout=timeout, progress=progress_callback, meta=meta
        )

    async def _request(
        self,
        method: str,
        params: object,
        kind: object = None,
        *,
        timeout: float | None = None,
        progress: Progress | None = None,
        meta: JSONObject | None = None,
    ) -> Any:
        connection = self._require()
        row = METHODS.get(method)
        cache = self._cache if row is not None and row.cacheable and is_modern(cast("str", self._revision)) else None
        key = None if cache is None else cache.key(method, params)
        if cache is not None and key is not None and (kept := cache.get(key)) is not None:
            return read_result(kept, kind or METHODS[method].result, method)
        changes = 0 if cache is None else cache.changes(method)
        own_request: RequestId = 0  # ours begin at 1
        limit = self._deadlines if timeout is None else None

        def prepare(request_id: RequestId, given: Any) -> Any:
            nonlocal own_request
            own_request = request_id
            own = dict(self._envelope)
            if limit is not None:
                limit.start(request_id, method)
            if progress is not None:
                own["progressToken"] = request_id
                self._progress[request_id] = progress
            return _with_meta(given, {**own, **meta} if meta else own, cast("str", self._revision))

        try:
            raw = await connection.request(method, params, timeout, prepare=prepare)
        except MCPCoreError:
            if self._raised is not None:
                self._raised.pass_on(own_request)
            raise
        finally:
            if progress is not None:
                self._progress.pop(own_request, None)
            if limit is not None:
                limit.end(own_request)
        if self._raised is not None:
            self._raised.pass_on(own_request)
        result = read_result(raw, kind or METHODS[method].result, method)
        if cache is not None and key is not None:
            ttl: Any = result.get("ttlMs") if codec.is_object(result) else getattr(result, "ttl_ms", None)
            cache.put(key, raw, ttl if isinstance(ttl, int | float) else 0, changes)
        return result

    def _too_late(self, request_id: RequestId, method: str) -> None:
        late = f"{method} was not answered within {self._timeout} seconds"
        self._require().expire(request_id, RequestTimeout(late))

    def _require(self) -> Connection:
        if self._connection is None:
            raise LocalProtocolError(_NOT_OPEN)
        return self._connection

    async def list_tools(self, *, cursor: str | None = None, meta: JSONObject | None = None) -> t.ListToolsResult:
        """One page of the tools. Raises as `request` does, like all that follow."""
        result = cast("t.ListToolsResult", await self._list("tools/list", cursor, meta))
        self._outputs.learn(result.tools)
        return result

    async def list_resources(
        self, *, cursor: str | None = None, meta: JSONObject | None = None
    ) -> t.ListResourcesResult:
        """One page of the resources."""
        return cast("t.ListResourcesResult", await self._list("resources/list", cursor, meta))

    async def list_resource_templates(
        self, *, cursor: str | None = None, meta: JSONObject | None = None
    ) -> t.ListResourceTemplatesResult:
        """One page of the resource templates."""
        return cast("t.ListResourceTemplatesResult", await self._list("resources/templates/list", cursor, meta))

    async def list_prompts(self, *, cursor: str | None = None, meta: JSONObject | None = None) -> t.ListPromptsResult:
        """One page of the prompts."""
        return cast("t.ListPromptsResult", await self._list("prompts/list", cursor, meta))

    async def _list(self, method: str, cursor: str | None, meta: JSONObject | None) -> Any:
        return await self._request(method, t.PaginatedRequestParams(cursor=cursor), meta=meta)

    async def call_tool(
        self,
        name: str,
        arguments: JSONObject | None = None,
        read_timeout_seconds: float | None = None,
        progress_callback: Progress | None = None,
        *,
        meta: JSONObject | None = None,
    ) -> t.CallToolResult:
        """Call a tool; what it asks for on the way, the callbacks answer.

        A result with `is_error` is returned, not raised.

        Raises:
            InvalidResult: Its structured content does not fit the tool's output schema.
            InputRoundsExceeded: It asks for input again and again.
        """
        if read_timeout_seconds is not None:
            check_seconds("read_timeout_seconds", read_timeout_seconds)
        if progress_callback is not None:
            check_callback("progress_callback", progress_callback, _PROGRESS)
        params = t.CallToolRequestParams(name=name, arguments=arguments)
        result: t.CallToolResult = await self._driven(
            "tools/call", params, read_timeout_seconds, progress_callback, meta
        )
        if result.structured_content is not None and not result.is_error:
            await self._outputs.check(name, result.structured_content, self._all_tools)
        return result

    async def _all_tools(self) -> AsyncGenerator[list[t.Tool], None]:
        """Yield the tools, page by page: `MAX_PAGES` at most, and none twice."""
        cursor: str | None = None
        seen: set[str | None] = set()
        while cursor not in seen and len(seen) < MAX_PAGES:
            seen.add(cursor)
            page = await self._list("tools/list", cursor, None)
            yield page.tools
            cursor = page.next_cursor
            if cursor is None:
                return

    async def read_resource(self, uri: str, *, meta: JSONObject | None = None) -> t.ReadResourceResult:
        """Read a resource. Raises `InputRoundsExceeded` too."""
        params = t.ReadResourceRequestParams(uri=uri)
        return cast("t.ReadResourceResult", await self._driven("resources/read", params, None, None, meta))

    async def get_prompt(
        self, name: str, arguments: dict[str, str] | None = None, *, meta: JSONObject | None = None
    ) -> t.GetPromptResult:
        """Get a prompt, filled in. Raises `InputRoundsExceeded` too."""
        params = t.GetPromptRequestParams(name=name, arguments=arguments)
        return cast("t.GetPromptResult", await self._driven("prompts/get", params, None, None, meta))

    async def complete(
        self,
        ref: t.PromptReference | t.ResourceTemplateReference,
        argument: dict[str, str] | t.CompletionArgument,
        context_arguments: dict[str, str] | None = None,
    ) -> t.CompleteResult:
        """Complete an argument of a prompt or a template."""
        if isinstance(argument, dict):
            argument = t.CompletionArgument(name=argument["name"], value=argument["value"])
        context = None if context_arguments is None else t.CompletionContext(arguments=context_arguments)
        params = t.CompleteRequestParams(ref=ref, argument=argument, context=context)
        return cast("t.CompleteResult", await self._request("completion/complete", params))

    async def ping(self) -> None:
        """Ask the server for a sign of life (handshake era).

        Raises:
            LocalProtocolError: 2026-07-28 has no `ping`; ask `discover` there.
        """
        if is_modern(self.protocol_version):
            raise LocalProtocolError(
                f"ping does not exist in {self.protocol_version}; await `client.discover()` instead"
            )
        await self._request("ping", None)

    async def discover(self) -> t.DiscoverResult:
        """Return what the server is and serves (2026-07-28)."""
        return cast("t.DiscoverResult", await self._request("server/discover", t.RequestParams()))

    async def set_logging_level(self, level: t.LoggingLevel) -> None:
        """Ask for log messages of this level and above (handshake era)."""
        self._only_handshake("logging/setLevel")
        await self._request("logging/setLevel", t.SetLevelRequestParams(level=level))

    async def subscribe_resource(self, uri: str) -> None:
        """Subscribe to changes of a resource (handshake era)."""
        self._only_handshake("resources/subscribe")
        await self._request("resources/subscribe", t.SubscribeRequestParams(uri=uri))

    async def unsubscribe_resource(self, uri: str) -> None:
        """Unsubscribe from changes of a resource (handshake era)."""
        self._only_handshake("resources/unsubscribe")
        await self._request("resources/unsubscribe", t.UnsubscribeRequestParams(uri=uri))

    def _only_handshake(self, method: str) -> None:
        if is_modern(self.protocol_version):
            raise LocalProtocolError(f"{method} does not exist in {self.protocol_version}")

    async def notify(self, method: str, params: object = None) -> None:
        """Send a notification of any method.

        Raises:
            RequestTimeout: The server does not read what it is sent.
        """
        self.protocol_version  # noqa: B018 - raises when the client is not open
        self._notify(method, params)
        with anyio.move_on_after(self._timeout) as scope:
            await self._require().wait_writable()
        if scope.cancelled_caught:
            raise RequestTimeout(f"{method} was not taken by the server within {self._timeout} seconds")

    def _notify(self, method: str, params: object) -> None:
        self._require().notify(encode_notification(method, params))

    async def send_progress_notification(
        self, progress_token: str | int, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the server how far a request of its own has come (handshake era)."""
        self._only_handshake("notifications/progress")
        await self.notify(
            "notifications/progress",
            t.ProgressNotificationParams(
                progress_token=progress_token, progress=progress, total=total, message=message
            ),
        )

    async def send_roots_list_changed(self) -> None:
        """Tell the server that the roots have changed (handshake era)."""
        self._only_handshake("notifications/roots/list_changed")
        await self.notify("notifications/roots/list_changed")

    # --- client input: the server asks by a result ---------------------------------------------------

    async def _driven(
        self,
        method: str,
        params: Any,
        timeout: float | None,
        progress: Progress | None,
        meta: JSONObject | None,
    ) -> Any:
        """Repeat a request with the inputs it asks for until its result is complete."""
        pause = _STATE_ONLY_PAUSE
        for _round in range(self._max_rounds + 1):
            result = await self._request(method, params, timeout=timeout, progress=progress, meta=meta)
            if not isinstance(result, t.InputRequiredResult):
                return result
            responses = None
            if result.input_requests:
                responses = await self._answers(result.input_requests)
            else:
                await anyio.sleep(pause)
                pause = min(2 * pause, 1.0)
            # Exactly what was given: nothing of an earlier round is carried on (R-MRTR-09).
            params = msgspec.structs.replace(params, input_responses=responses, request_state=result.request_state)
        raise InputRoundsExceeded(f"{method} asked for input more than {self._max_rounds} times")

    async def _answers(self, requests: t.InputRequests) -> JSONObject:
        """Return the inputs, asked for one after the other: a user sees one question at a time."""
        if len(requests) > MAX_INPUTS:
            raise InvalidResult(f"the server asks for {len(requests)} inputs at once; {MAX_INPUTS} is the most")
        answers: JSONObject = {}
        for key, request in requests.items():
            params: JSONObject = request.params or {}
            ctx = ClientRequestContext(self, key, request.method, _meta_of(params))
            answers[key] = await self._callbacks.answer(ctx, params)
        return answers

    # --- subscriptions --------------------------------------------------------------------------------

    @asynccontextmanager
    async def listen(
        self,
        *,
        tools_list_changed: bool = False,
        prompts_list_changed: bool = False,
        resources_list_changed: bool = False,
        resource_subscriptions: list[str] | None = None,
    ) -> AsyncGenerator[Subscription, None]:
        """Subscribe to changes (2026-07-28); leaving the block ends it.

        Raises:
            LocalProtocolError: The handshake era tells `message_handler` by itself.
            MCPError: The server refused.
            RequestTimeout: It acknowledged nothing within `read_timeout_seconds`, 30 at most.
            ConnectionClosed: It ended the subscription instead, or is gone.
        """
        if not is_modern(self.protocol_version):
            raise LocalProtocolError(f"subscriptions/listen does not exist in {self.protocol_version}")
        asked = t.SubscriptionFilter(
            tools_list_changed=tools_list_changed or None,
            prompts_list_changed=prompts_list_changed or None,
            resources_list_changed=resources_list_changed or None,
            resource_subscriptions=resource_subscriptions or None,
        )
        subscription = Subscription(asked)
        task = self._loop.spawn(self._listen(asked, subscription))
        try:
            await subscription.opened(LISTEN_TIMEOUT if self._timeout is None else min(self._timeout, LISTEN_TIMEOUT))
            yield subscription
        finally:
            task.cancel()
            subscription.close()

    async def _listen(self, asked: t.SubscriptionFilter, subscription: Subscription) -> None:
        ids: list[RequestId] = []

        def prepare(request_id: RequestId, params: Any) -> Any:
            ids.append(request_id)
            self._subscriptions[request_id] = subscription
            return _with_meta(params, dict(self._envelope), self.protocol_version)

        try:
            params = t.SubscriptionsListenRequestParams(notifications=asked)
            await self._require().request("subscriptions/listen", params, prepare=prepare)
            subscription.end()
        except Exception as exc:
            subscription.end(exc)
        finally:
            for request_id in ids:
                self._subscriptions.pop(request_id, None)

    # --- as the responder of its connection -----------------------------------------------------------

    def _begin(self, request: Request, peer: Connection) -> bytes | Coroutine[object, object, bytes] | None:
        """Answer a request of the server's (handshake era)."""
        if peer.congested:
            self._warnings.warning("a request %s goes unanswered: the server does not read answers", request.method)
            return None
        if self._revision is None or is_modern(self._revision):
            self._warnings.warning("a 2026-07-28 server sent the request %s; it is not answered", request.method)
            return None
        if request.method == "ping":
            return encode_response(request.id, b"{}")
        if peer.in_progress > MAX_ANSWERING:
            busy = f"more than {MAX_ANSWERING} requests to the client are in progress; wait for answers"
            return encode_error(request.id, InternalError(busy))
        return self._answer(request)

    async def _answer(self, request: Request) -> bytes:
        self._note_answering(1)
        try:
            params = codec.decode_any(request.params)
            ctx = ClientRequestContext(self, request.id, request.method, _meta_of(params))
            result = await self._callbacks.answer(ctx, params)
            shown = projection.project(result, cast("str", self._revision))
            return encode_response(request.id, codec.encode(shown))
        except MCPError as exc:
            return _error_answer(request.id, exc)
        except Exception as exc:
            _log.error("the answer to %s failed", printable(request.method), exc=exc)
            return _error_answer(request.id, InternalError("Internal client error"))
        finally:
            self._note_answering(-1)

    def _note_answering(self, step: int) -> None:
        self._answering += step
        if self._deadlines is not None:
            self._deadlines.answering = self._answering

    def _take_notification(self, notification: Notification) -> None:
        """Take a notification of the server's. Never raises: one that is malformed is dropped."""
        try:
            params: JSONObject = codec.decode_any(notification.params)
            self._handle_notification(notification, params)
        except Exception as exc:
            self._warnings.warning("a notification %s was dropped: %s", notification.method, exc)

    def _handle_notification(self, notification: Notification, params: JSONObject) -> None:
        method = notification.method
        if self._cache is not None:
            self._cache.spoil(method)
        if method == "notifications/tools/list_changed":
            self._outputs.forget()
        if method == "notifications/cancelled" and self._ended_subscription(params):
            return
        subscription = self._subscriptions.get(our_request_id((_meta_of(params) or {}).get(SUBSCRIPTION_ID)) or 0)
        if subscription is not None:
            subscription.take(method, params)
            return
        size = len(memoryview(notification.params))
        if method == "notifications/progress":
            self._progressed(size, params)
        elif method == "notifications/message" and self._log_sink is not None:
            self._deliver(size, self._log_sink, codec.convert(params, t.LoggingMessageNotificationParams))
        elif self._message_sink is not None:
            self._deliver(size, self._message_sink, method, params)

    def _progressed(self, size: int, params: JSONObject) -> None:
        token = our_request_id(params.get("progressToken"))
        sink = None if token is None else self._progress.get(token)
        if token is None or sink is None:
            return
        made = codec.convert(params, t.ProgressNotificationParams)
        if self._deadlines is not None:
            self._deadlines.extend(token)
        self._deliver(size, sink, made.progress, made.total, made.message)

    def _deliver(self, size: int, sink: Callable[..., object], *values: object) -> None:
        if self._notifications is not None:
            self._notifications.put(size, sink, *values)

    def _ended_subscription(self, params: JSONObject) -> bool:
        """Return whether the server has ended a subscription of ours (R-SUB-08)."""
        subscription = self._subscriptions.get(our_request_id(params.get("requestId")) or 0)
        if subscription is None:
            return False
        subscription.end()
        # Over HTTP its stream is still open, unless the server has closed it.
        self._require().expire(
            our_request_id(params.get("requestId")) or 0, ConnectionClosed("the server ended the subscription")
        )
        return True


class _Responder:
    """The client as its connection sees it: no part of what users see of it."""

    def __init__(self, begin: _Begin, take: Callable[[Notification], None]) -> None:
        self._begin = begin
        self._take = take

    def begin(self, request: Request, peer: Connection) -> bytes | Coroutine[object, object, bytes] | None:
        return self._begin(request, peer)

    def notify(self, notification: Notification, peer: Connection) -> Work | None:
        self._take(notification)
        return None


def _meta_of(params: object) -> JSONObject | None:
    """Return the `_meta` of params that a server has made, if it is one."""
    meta: object = params.get("_meta") if codec.is_object(params) else None
    return meta if codec.is_object(meta) else None


def _error_answer(request_id: RequestId, error: MCPError) -> bytes:
    """Return the error response; without its data where a callback put in what cannot be encoded."""
    try:
        return encode_error(request_id, error)
    except Exception as exc:
        _log.error("the error of a callback cannot be encoded", exc=exc)
        return encode_error(request_id, InternalError("Internal client error"))


def _with_meta(params: object, meta: JSONObject, revision: str) -> object:
    """Params with this `_meta` added to their own; `None` where nothing is left to send."""
    if isinstance(params, t.MetaObject):
        full = msgspec.structs.replace(params, _meta={**meta, **(params.meta or {})} or None)
        return projection.project(full, revision)
    given: JSONObject = dict(codec.to_json(params)) if params is not None else {}
    if meta or "_meta" in given:
        given["_meta"] = {**meta, **(given.get("_meta") or {})}
    return given or None

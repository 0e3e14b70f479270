"""The client: connects, settles the era, and makes typed requests.

Spec: basic/versioning, "Backward Compatibility"; basic/lifecycle;
basic/patterns/mrtr, "Client Requirements".
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Final, Self, TypeAlias, TypeVar, cast

import anyio
import msgspec
from msgspec import Raw

from mcp_core import codec, projection
from mcp_core import types as t
from mcp_core.backend import Backend, open_backend
from mcp_core.channel import Channel
from mcp_core.client.cache import ResponseCache
from mcp_core.client.callbacks import Callbacks, ClientRequestContext, Elicit, ListRoots, Sample
from mcp_core.client.listening import Subscription
from mcp_core.client.reading import read_result
from mcp_core.connection import Connection
from mcp_core.envelope import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION, SUBSCRIPTION_ID
from mcp_core.errors import (
    InputRoundsExceeded,
    InvalidResult,
    LocalProtocolError,
    MCPCoreError,
    MCPError,
    RequestTimeout,
    UnsupportedProtocolVersion,
)
from mcp_core.journal import Journal
from mcp_core.messages import Notification, Request, RequestId, encode_error, encode_notification, encode_response
from mcp_core.methods import METHODS
from mcp_core.revisions import HANDSHAKE_REVISIONS, MODERN_REVISIONS, is_modern, newest_first
from mcp_core.server import Server
from mcp_core.session import Handshake
from mcp_core.transports.process import StdioServerParameters, open_process

__all__ = ["Client"]

PROBE_TIMEOUT: Final = 5.0
"""Seconds after which a server that ignores `server/discover` is taken for an older one."""

_STATE_ONLY_PAUSE: Final = 0.05
"""Seconds before a call is repeated that only asked to be repeated; doubled each time."""

_NOT_OPEN: Final = "the client is not open: use `async with Client(...)`"

_journal = Journal(__name__)

Progress: TypeAlias = Callable[[float, float | None, str | None], Any]
LogSink: TypeAlias = Callable[[t.LoggingMessageNotificationParams], Any]
MessageSink: TypeAlias = Callable[[str, dict[str, Any]], Any]


class Client:
    """A connection to one server. Use it as an async context manager.

    `target` is a `Server` or anything with a `.server` that is one (in memory, through
    real bytes), `StdioServerParameters` (a child process), or a URL or
    `StreamableHTTPParameters` (Streamable HTTP; needs the extra `client`).

    `mode` is `auto` (ask with `server/discover`, fall back to the handshake), `legacy`
    (handshake), or a modern revision. The callbacks may be plain or async functions, and
    what they make possible is declared: `elicitation_callback(ctx, params)`,
    `sampling_callback(ctx, params)`, `list_roots_callback(ctx)`. `logging_callback(params)`
    gets log messages, `message_handler(method, params)` every other notification.
    `log_level` asks 2026-07-28 servers for log messages with each request.
    `read_timeout_seconds` is how long any answer may take. With `cache`, lists and resources
    are not asked for again while they hold by their `ttl_ms` and no change was announced.
    """

    def __init__(  # noqa: PLR0913 - all but the target are keywords
        self,
        target: Any,
        *,
        mode: str = "auto",
        client_info: t.Implementation | None = None,
        elicitation_callback: Elicit | None = None,
        sampling_callback: Sample | None = None,
        sampling_capabilities: t.SamplingCapability | None = None,
        list_roots_callback: ListRoots | None = None,
        logging_callback: LogSink | None = None,
        message_handler: MessageSink | None = None,
        log_level: t.LoggingLevel | None = None,
        read_timeout_seconds: float | None = None,
        probe_timeout_seconds: float = PROBE_TIMEOUT,
        input_required_max_rounds: int = 10,
        cache: bool = True,
    ) -> None:
        if mode not in ("auto", "legacy", *MODERN_REVISIONS):
            raise ValueError(f"mode must be 'auto', 'legacy' or one of {list(MODERN_REVISIONS)}; got {mode!r}")
        self._open = _opener(target)
        self._mode = mode
        self._info = client_info or t.Implementation(name="mcp_core", version="")
        self._callbacks = Callbacks(elicitation_callback, sampling_callback, list_roots_callback, sampling_capabilities)
        self._log_sink = logging_callback
        self._message_sink = message_handler
        self._log_level = log_level
        self._timeout = read_timeout_seconds
        self._probe_timeout = probe_timeout_seconds
        self._max_rounds = input_required_max_rounds
        self._cache = ResponseCache() if cache else None
        self._stack: AsyncExitStack | None = None
        self._connection: Connection | None = None
        self._backend: Backend | None = None
        self._revision: str | None = None
        self._envelope: dict[str, Any] = {}
        self._progress: dict[RequestId, Progress] = {}
        self._subscriptions: dict[RequestId, Subscription] = {}
        self.server_info: t.Implementation | None = None
        self.server_capabilities = t.ServerCapabilities()
        self.instructions: str | None = None

    # --- opening and closing --------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._stack is not None:
            raise LocalProtocolError("the client is open already")
        async with AsyncExitStack() as stack:
            stack.callback(self._forget)
            self._backend = await stack.enter_async_context(open_backend())
            start = await stack.enter_async_context(self._open(self._backend))
            self._connection = start(self._connect)
            await self._negotiate()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        stack, self._stack = self._stack, None
        self._revision = None
        if self._cache is not None:
            self._cache.clear()
        if stack is not None:
            await stack.aclose()

    def _forget(self) -> None:
        """Be closed, or not open after all."""
        self._revision = self._connection = self._backend = None

    @property
    def protocol_version(self) -> str:
        """The revision in use."""
        if self._revision is None:
            raise LocalProtocolError(_NOT_OPEN)
        return self._revision

    def _connect(self, channel: Channel) -> Connection:
        return Connection(_Responder(self), self._loop, channel, answer_malformed=False)

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
        supported: list[Any] = data.get("supported", []) if codec.is_object(data) else []
        mutual = [r for r in newest_first(MODERN_REVISIONS) if r in supported]
        if mutual and again:
            await self._probe(mutual[0], again=False)
        elif any(r in supported for r in HANDSHAKE_REVISIONS):
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
        except codec.Misfit:
            self.server_info = None  # it may be missing, so it may be useless too
        self.server_capabilities = capabilities
        self.instructions = instructions

    # --- requests --------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        params: Any = None,
        result_type: Any = None,
        *,
        timeout: float | None = None,
        progress_callback: Progress | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Any:
        """Make a request of any method; `params` is a Struct or a dict.

        The result is decoded to `result_type`, a dict by default. If the caller is
        cancelled, the server is told.

        Raises:
            MCPError: The server refused.
            InvalidResult: It answered with something else.
            RequestTimeout: It did not answer within `timeout` seconds.
            ConnectionClosed: It is gone.
        """
        self.protocol_version  # noqa: B018 - raises when the client is not open
        return await self._request(
            method, params, result_type or dict, timeout=timeout, progress=progress_callback, meta=meta
        )

    async def _request(
        self,
        method: str,
        params: Any,
        kind: Any = None,
        *,
        timeout: float | None = None,
        progress: Progress | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Any:
        connection = self._require()
        row = METHODS.get(method)
        cache = self._cache if row is not None and row.cacheable and is_modern(cast("str", self._revision)) else None
        key = None if cache is None else cache.key(method, params)
        if cache is not None and key is not None and (kept := cache.get(key)) is not None:
            return read_result(kept, kind or METHODS[method].result, method)
        changes = 0 if cache is None else cache.changes(method)
        token: list[RequestId] = []

        def prepare(request_id: RequestId, given: Any) -> Any:
            own = dict(self._envelope)
            if progress is not None:
                own["progressToken"] = request_id
                self._progress[request_id] = progress
                token.append(request_id)
            return _with_meta(given, {**own, **(meta or {})}, cast("str", self._revision))

        try:
            raw = await connection.request(
                method, params, self._timeout if timeout is None else timeout, prepare=prepare
            )
        finally:
            for request_id in token:
                del self._progress[request_id]
        result = read_result(raw, kind or METHODS[method].result, method)
        if cache is not None and key is not None:
            ttl: Any = result.get("ttlMs") if codec.is_object(result) else getattr(result, "ttl_ms", None)
            cache.put(key, raw, ttl if isinstance(ttl, int | float) else 0, changes)
        return result

    def _require(self) -> Connection:
        if self._connection is None:
            raise LocalProtocolError(_NOT_OPEN)
        return self._connection

    async def list_tools(self, *, cursor: str | None = None, meta: dict[str, Any] | None = None) -> t.ListToolsResult:
        """One page of the tools. Raises as `request` does, like all that follow."""
        return cast("t.ListToolsResult", await self._list("tools/list", cursor, meta))

    async def list_resources(
        self, *, cursor: str | None = None, meta: dict[str, Any] | None = None
    ) -> t.ListResourcesResult:
        """One page of the resources."""
        return cast("t.ListResourcesResult", await self._list("resources/list", cursor, meta))

    async def list_resource_templates(
        self, *, cursor: str | None = None, meta: dict[str, Any] | None = None
    ) -> t.ListResourceTemplatesResult:
        """One page of the resource templates."""
        return cast("t.ListResourceTemplatesResult", await self._list("resources/templates/list", cursor, meta))

    async def list_prompts(
        self, *, cursor: str | None = None, meta: dict[str, Any] | None = None
    ) -> t.ListPromptsResult:
        """One page of the prompts."""
        return cast("t.ListPromptsResult", await self._list("prompts/list", cursor, meta))

    async def _list(self, method: str, cursor: str | None, meta: dict[str, Any] | None) -> Any:
        return await self._request(method, t.PaginatedRequestParams(cursor=cursor), meta=meta)

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: float | None = None,
        progress_callback: Progress | None = None,
        *,
        meta: dict[str, Any] | None = None,
    ) -> t.CallToolResult:
        """Call a tool; what it asks for on the way, the callbacks answer.

        A result with `is_error` is returned, not raised.

        Raises:
            InputRoundsExceeded: It asks for input again and again.
        """
        params = t.CallToolRequestParams(name=name, arguments=arguments)
        return cast(
            "t.CallToolResult",
            await self._driven("tools/call", params, read_timeout_seconds, progress_callback, meta),
        )

    async def read_resource(self, uri: str, *, meta: dict[str, Any] | None = None) -> t.ReadResourceResult:
        """Read a resource. Raises `InputRoundsExceeded` too."""
        params = t.ReadResourceRequestParams(uri=uri)
        return cast("t.ReadResourceResult", await self._driven("resources/read", params, None, None, meta))

    async def get_prompt(
        self, name: str, arguments: dict[str, str] | None = None, *, meta: dict[str, Any] | None = None
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
        self._only_handshake("ping")
        await self._request("ping", None)

    async def discover(self) -> t.DiscoverResult:
        """What the server is and serves (2026-07-28)."""
        return cast("t.DiscoverResult", await self._request("server/discover", t.RequestParams()))

    async def set_logging_level(self, level: t.LoggingLevel) -> None:
        """Ask for log messages of this level and above (handshake era)."""
        self._only_handshake("logging/setLevel")
        await self._request("logging/setLevel", t.SetLevelRequestParams(level=level))

    async def subscribe_resource(self, uri: str) -> None:
        """Ask to be told when a resource changes (handshake era)."""
        self._only_handshake("resources/subscribe")
        await self._request("resources/subscribe", t.SubscribeRequestParams(uri=uri))

    async def unsubscribe_resource(self, uri: str) -> None:
        """Ask to be told no longer (handshake era)."""
        self._only_handshake("resources/unsubscribe")
        await self._request("resources/unsubscribe", t.UnsubscribeRequestParams(uri=uri))

    def _only_handshake(self, method: str) -> None:
        if is_modern(self.protocol_version):
            raise LocalProtocolError(f"{method} does not exist in {self.protocol_version}")

    async def notify(self, method: str, params: Any = None) -> None:
        """Send a notification of any method."""
        self.protocol_version  # noqa: B018 - raises when the client is not open
        self._notify(method, params)
        await self._require().flow()

    def _notify(self, method: str, params: Any) -> None:
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
        meta: dict[str, Any] | None,
    ) -> Any:
        """Repeat a request with answers until its result is complete."""
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

    async def _answers(self, requests: t.InputRequests) -> dict[str, Any]:
        """The answers, asked for one after the other: a user sees one question at a time."""
        answers: dict[str, Any] = {}
        for key, request in requests.items():
            params: dict[str, Any] = request.params or {}
            ctx = ClientRequestContext(self, key, request.method, params.get("_meta"))
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
        """Be told of changes (2026-07-28); leaving the block ends it.

        Raises:
            LocalProtocolError: The handshake era tells `message_handler` by itself.
            MCPError: The server refused.
        """
        if not is_modern(self.protocol_version):
            raise LocalProtocolError(f"subscriptions/listen does not exist in {self.protocol_version}")
        asked = t.SubscriptionFilter(
            tools_list_changed=tools_list_changed or None,
            prompts_list_changed=prompts_list_changed or None,
            resources_list_changed=resources_list_changed or None,
            resource_subscriptions=resource_subscriptions or None,
        )
        subscription = Subscription()
        job = self._loop.spawn(self._listen(asked, subscription))
        try:
            await subscription.opened()
            yield subscription
        finally:
            job.cancel()
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
        except MCPCoreError as exc:
            subscription.end(exc)
        finally:
            for request_id in ids:
                self._subscriptions.pop(request_id, None)

    # --- as the responder of its connection -----------------------------------------------------------

    def begin(self, request: Request, peer: Connection) -> bytes | Coroutine[Any, Any, bytes] | None:
        """Answer a request of the server's (handshake era)."""
        if self._revision is not None and is_modern(self._revision):
            _journal.warning("a 2026-07-28 server sent the request %s; it is not answered", request.method)
            return None
        if request.method == "ping":
            return encode_response(request.id, b"{}")
        return self._answer(request)

    async def _answer(self, request: Request) -> bytes:
        try:
            params = codec.decode_any(request.params)
            ctx = ClientRequestContext(self, request.id, request.method, params.get("_meta"))
            result = await self._callbacks.answer(ctx, params)
            shown = projection.project(result, cast("str", self._revision))
            return encode_response(request.id, codec.encode(shown))
        except MCPError as exc:
            return encode_error(request.id, exc)
        except Exception as exc:
            _journal.error("the answer to %s failed", request.method, exc=exc)
            return encode_error(request.id, MCPError(-32603, "Internal client error"))

    def told(self, notification: Notification) -> Coroutine[Any, Any, None] | None:
        """Take a notification of the server's."""
        try:
            params = cast("dict[str, Any]", codec.decode_any(notification.params))
            return self._told(notification.method, params)
        except (codec.Misfit, codec.Undecodable, TypeError) as exc:
            _journal.warning("a notification %s was dropped: %s", notification.method, exc)
            return None

    def _told(self, method: str, params: dict[str, Any]) -> Coroutine[Any, Any, None] | None:
        if self._cache is not None:
            self._cache.spoil(method)
        meta: dict[str, Any] = params.get("_meta") or {}
        subscription = self._subscriptions.get(meta.get(SUBSCRIPTION_ID, ""))
        if subscription is not None:
            subscription.take(method, params)
            return None
        if method == "notifications/progress":
            sink = self._progress.get(params.get("progressToken", ""))
            if sink is None:
                return None
            return _called(sink, params.get("progress"), params.get("total"), params.get("message"))
        if method == "notifications/message" and self._log_sink is not None:
            return _called(self._log_sink, codec.convert(params, t.LoggingMessageNotificationParams))
        if self._message_sink is not None:
            return _called(self._message_sink, method, params)
        return None


class _Responder:
    """The client as its connection sees it."""

    def __init__(self, client: Client) -> None:
        self.begin = client.begin
        self._told = client.told

    def notify(self, notification: Notification, peer: Connection) -> Coroutine[Any, Any, None] | None:
        return self._told(notification)


async def _called(sink: Callable[..., Any], *values: Any) -> None:
    try:
        value = sink(*values)
        if hasattr(value, "__await__"):
            await value
    except Exception as exc:
        _journal.error("a callback raised %s", type(exc).__name__, exc=exc)


def _with_meta(params: Any, meta: dict[str, Any], revision: str) -> Any:
    """Params with this `_meta` added to their own; `None` where nothing is left to send."""
    if isinstance(params, t.MetaObject):
        full = msgspec.structs.replace(params, _meta={**meta, **(params.meta or {})} or None)
        return projection.project(full, revision)
    given: dict[str, Any] = dict(codec.to_json(params)) if params is not None else {}
    if meta or "_meta" in given:
        given["_meta"] = {**meta, **(given.get("_meta") or {})}
    return given or None


# --- targets --------------------------------------------------------------------------------------

Start: TypeAlias = Callable[[Callable[[Channel], Connection]], Connection]
"""Makes the connection on a channel and lets messages in."""

_C = TypeVar("_C", bound=Channel)


def _opener(target: Any) -> Callable[[Backend], Any]:
    if isinstance(target, StdioServerParameters):
        return lambda backend: _over(
            open_process(backend, target), lambda channel, receiver: backend.spawn(channel.run(receiver))
        )
    server = _server_of(target)
    if server is not None:
        return lambda backend: _in_memory(backend, server)
    if isinstance(target, str) or type(target).__name__ == "StreamableHTTPParameters":
        from mcp_core.transports.http_client import StreamableHTTPParameters, open_http

        parameters = StreamableHTTPParameters(url=target) if isinstance(target, str) else target
        return lambda backend: _over(open_http(backend, parameters), lambda channel, receiver: channel.start(receiver))
    raise TypeError(f"a client connects to a Server, a URL, or the parameters of one, not to {target!r}")


def _server_of(target: Any) -> Server[Any] | None:
    """The server that this is, or has as its `server`."""
    for candidate in (target, getattr(target, "server", None)):
        if isinstance(candidate, Server):
            return cast("Server[Any]", candidate)
    return None


@asynccontextmanager
async def _over(
    opening: AbstractAsyncContextManager[_C], let_in: Callable[[_C, Connection], object]
) -> AsyncGenerator[Start, None]:
    async with opening as channel:

        def start(connect: Callable[[Channel], Connection]) -> Connection:
            connection = connect(channel)
            let_in(channel, connection)
            return connection

        yield start


@asynccontextmanager
async def _in_memory(backend: Backend, server: Server[Any]) -> AsyncGenerator[Start, None]:
    from mcp_core.transports.memory import memory_pair

    async with server.running() as state:
        ours, theirs = memory_pair(backend)
        with server.connect(backend, theirs, state) as connection:
            theirs.start(connection)
            undo = server.on_lifespan_failure(ours.close)

            def start(connect: Callable[[Channel], Connection]) -> Connection:
                client = connect(ours)
                ours.start(client)
                return client

            try:
                yield start
            finally:
                undo()
                ours.close()
                await connection.drain(0)

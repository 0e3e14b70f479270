"""The server: its identity, its handlers, and the ways to serve.

Registers what the author gives, answers the protocol's own methods, and derives the
capabilities. How a message is served is the dispatcher's business.
Spec: basic/lifecycle; server/discover; basic/versioning.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

import msgspec
from msgspec import Raw

from mcp_core import codec
from mcp_core import types as t
from mcp_core.announcer import Announcer, Loop
from mcp_core.backend import current_task
from mcp_core.codec import JSONObject
from mcp_core.connection import Connection
from mcp_core.context import AnyContext, L, Peer, RequestContext, warn_deprecated
from mcp_core.dispatch import Dispatcher, Middleware
from mcp_core.errors import InvalidParams, InvalidRequest, LocalProtocolError, UnsupportedProtocolVersion
from mcp_core.handlers import HandlerFunction, Handlers
from mcp_core.messages import (
    Malformed,
    Notification,
    Request,
    RequestId,
    decode_frame,
    encode_error,
    encode_notification,
)
from mcp_core.methods import hooks
from mcp_core.observers import Observers
from mcp_core.queue_logger import QueueLogger
from mcp_core.results import ResultEncoder
from mcp_core.revisions import HANDSHAKE_REVISIONS, check_served, is_modern, newest_first
from mcp_core.session import Handshake
from mcp_core.subscriptions import (
    Event,
    InProcessBus,
    ResourceUpdated,
    SubscriptionBus,
    check_subscriptions,
    method_of,
)

if TYPE_CHECKING:
    from mcp_core.backend import Backend
    from mcp_core.channel import Channel
    from mcp_core.lifespan import Lifespan
    from mcp_core.listening import ListenHandler
    from mcp_core.transports.stdio import StdioKeywords
    from mcp_core.transports.streamable_http.options import HTTPKeywords, RunHTTPKeywords

__all__ = ["Hooks", "Server"]

_log = QueueLogger(__name__)

R = TypeVar("R", bound=t.Result)

Answer: TypeAlias = R | t.Prepared[R] | JSONObject | Raw | t.ErrorData
Handled: TypeAlias = Answer[R] | Awaitable[Answer[R]]
"""What a handler gives: its result in any of the accepted forms, at once or awaited."""


Asking: TypeAlias = Handled[R | t.InputRequiredResult]
"""The same, of a method that may ask for input first."""

GotTool: TypeAlias = t.Tool | Awaitable[t.Tool | None] | None

Q = TypeVar("Q")
A = TypeVar("A")
S = TypeVar("S")
LoopName: TypeAlias = Literal["asyncio", "uvloop", "trio"]
HTTPLoop: TypeAlias = Literal["asyncio", "uvloop"]
Hook: TypeAlias = Callable[[RequestContext[S], Q], A]


class Hooks(TypedDict, Generic[L], total=False):
    """The keywords of `Server` that serve MCP's methods, one for each.

    All have the shape `(ctx, params) -> result`. An `async def` runs in a task of its
    own on stdio and in memory, in that of its HTTP request over HTTP, and in the caller's
    in `handle`. A plain `def` is called on the event loop and must not block; what it
    returns is awaited if it can be.
    """

    on_list_tools: Hook[L, t.PaginatedRequestParams, Handled[t.ListToolsResult]]
    on_call_tool: Callable[[RequestContext[L], t.CallToolRequestParams], Asking[t.CallToolResult]]
    on_list_resources: Hook[L, t.PaginatedRequestParams, Handled[t.ListResourcesResult]]
    on_list_resource_templates: Callable[
        [RequestContext[L], t.PaginatedRequestParams], Handled[t.ListResourceTemplatesResult]
    ]
    on_read_resource: Callable[[RequestContext[L], t.ReadResourceRequestParams], Asking[t.ReadResourceResult]]
    on_subscribe_resource: Hook[L, t.SubscribeRequestParams, Handled[t.EmptyResult] | None]
    on_unsubscribe_resource: Hook[L, t.UnsubscribeRequestParams, Handled[t.EmptyResult] | None]
    on_subscriptions_listen: Callable[
        [RequestContext[L], t.SubscriptionsListenRequestParams], Handled[t.SubscriptionsListenResult]
    ]
    on_list_prompts: Hook[L, t.PaginatedRequestParams, Handled[t.ListPromptsResult]]
    on_get_prompt: Callable[[RequestContext[L], t.GetPromptRequestParams], Asking[t.GetPromptResult]]
    on_completion: Hook[L, t.CompleteRequestParams, Handled[t.CompleteResult]]
    on_set_logging_level: Hook[L, t.SetLevelRequestParams, Handled[t.EmptyResult] | None]
    on_ping: Hook[L, t.RequestParams, Handled[t.EmptyResult] | None]
    on_roots_list_changed: Hook[L, t.NotificationParams, Any]
    on_progress: Hook[L, t.ProgressNotificationParams, Any]


_SET_LEVEL = "logging/setLevel"
_DEPRECATED = ("on_set_logging_level", "on_roots_list_changed", "on_progress")


class Server(Generic[L]):
    """An MCP server, built from handlers.

    One server serves any number of connections, and both protocol eras on each. Capabilities follow the handlers
    given.

    Args:
        name: What it is called on the wire.
        version: Its own version, for clients to show.
        title: The name for people.
        description: What it is for, in a sentence.
        instructions: How a model is to use it.
        website_url: Where people read more.
        icons: Icons for people.
        lifespan: A function of the server that returns an async context manager; what that yields is
            `ctx.lifespan_context`.
        subscriptions: `True`, or a `SubscriptionBus` that several processes share: clients are notified of what
            `publish` and `announce` say. Declares `listChanged` and `subscribe` in both eras, and serves
            `subscriptions/listen` and `resources/subscribe`.
        protocol_versions: The revisions served. `None`: all.
        send_server_info: Put name and version into the `_meta` of 2026-07-28 results.
        experimental: Declared as it is, among the capabilities.
        extensions: Declared as it is, by extension.
        on_get_tool: `(ctx, name) -> Tool | None`: the tool that is about to be called over HTTP. Saves reading
            `on_list_tools` for `x-mcp-header` annotations, where that list is long or differs by more than the token.
        on: The handlers, one for each method: the keywords of `Hooks`.
    """

    def __init__(  # noqa: PLR0913 - all but the name are keywords
        self,
        name: str,
        *,
        version: str = "",
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: list[t.Icon] | None = None,
        lifespan: Callable[[Server[L]], AbstractAsyncContextManager[L]] | None = None,
        subscriptions: bool | SubscriptionBus = False,
        protocol_versions: list[str] | None = None,
        send_server_info: bool = True,
        experimental: dict[str, JSONObject] | None = None,
        extensions: dict[str, JSONObject] | None = None,
        on_get_tool: Callable[[RequestContext[L], str], GotTool] | None = None,
        **on: Unpack[Hooks[L]],
    ) -> None:
        self.info: t.Implementation = t.Implementation(
            name=name, version=version, title=title, description=description, website_url=website_url, icons=icons
        )
        self.instructions = instructions
        self.experimental = experimental
        self.extensions = extensions
        self.protocol_versions: tuple[str, ...] = check_served(protocol_versions)
        self.on_get_tool = on_get_tool
        self.middleware: list[Middleware] = []
        self.observers: Observers = Observers()
        self._lifespan: Lifespan | None = None
        if lifespan is not None:
            from mcp_core.lifespan import Lifespan

            self._lifespan = Lifespan(lambda: lifespan(self))
        self._handlers = Handlers()
        self._results = ResultEncoder(self.info, stamped=send_server_info)
        self._compiled: tuple[int, list[Middleware], Dispatcher] | None = None
        self._bus = InProcessBus() if subscriptions is True else (subscriptions or None)
        self._announcer = None if self._bus is None else Announcer(self._bus)
        self._listen: ListenHandler | None = None
        self._held = False
        self._register_builtins()
        self._register_hooks(cast("dict[str, HandlerFunction]", on))

    @property
    def name(self) -> str:
        """The name it gives itself."""
        return self.info.name

    @property
    def version(self) -> str:
        """The version it gives itself."""
        return self.info.version

    # --- registration ----------------------------------------------------------------------

    def _register_builtins(self) -> None:
        put, requests = self._handlers.put, self._handlers.requests
        put(requests, "initialize", t.InitializeRequestParams, self._initialize)
        put(requests, "server/discover", t.RequestParams, self._discover)
        put(requests, "ping", t.RequestParams, lambda _ctx, _params: t.EmptyResult())
        if self._bus is not None:
            from mcp_core.listening import ListenHandler

            self._listen = ListenHandler(self._bus)
            put(requests, "subscriptions/listen", t.SubscriptionsListenRequestParams, self._listen)
            put(requests, "resources/subscribe", t.SubscribeRequestParams, _subscribe)
            put(requests, "resources/unsubscribe", t.UnsubscribeRequestParams, _unsubscribe)

    def _register_hooks(self, given: dict[str, HandlerFunction]) -> None:
        rows = hooks()
        for hook, call in given.items():
            row = rows.get(hook)
            if row is None:
                raise TypeError(f"Server has no handler {hook!r}; known are {', '.join(rows)}")
            if hook in _DEPRECATED:
                warn_deprecated(hook, above=4)
            if row.is_notification:
                self._handlers.add_notification(row.name, row.params, call)
            else:
                self.add_request_handler(row.name, row.params, call)

    def add_request_handler(
        self, method: str, params_type: type[Q], handler: Callable[[RequestContext[L], Q], object]
    ) -> None:
        """Serve a request method: one of MCP's in place of who serves it now, or one of your own.

        `params_type` is any type that msgspec decodes; params that do not fit it are
        answered with -32602. Takes effect for connections and requests that start later.

        Raises:
            ValueError: The method is `initialize`.
        """
        self._handlers.add_request(method, params_type, _level_kept(handler) if method == _SET_LEVEL else handler)

    def add_notification_handler(
        self, method: str, params_type: type[Q], handler: Callable[[RequestContext[L], Q], object]
    ) -> None:
        """Register the handler of a notification. Params that do not fit are dropped, with a log record."""
        self._handlers.add_notification(method, params_type, handler)

    def serves(self, method: str) -> bool:
        """Return whether a request of this method has a handler."""
        return method in self._handlers.requests

    @property
    def declares_logging(self) -> bool:
        """Whether the `logging` capability is declared."""
        return self.serves(_SET_LEVEL)

    def capabilities(self, revision: str, *, hears_changes: bool = True) -> t.ServerCapabilities:
        """Return the capabilities that a client of this revision is shown.

        One that `hears_changes` of nothing, since nothing lasts between its requests, is shown no capability for that.
        """
        serves = self.serves
        changes = serves("subscriptions/listen") if is_modern(revision) else self._bus is not None and hears_changes
        subscribe = changes if is_modern(revision) else serves("resources/subscribe") and hears_changes
        return t.ServerCapabilities(
            experimental=self.experimental,
            logging={} if self.declares_logging else None,
            completions={} if serves("completion/complete") else None,
            prompts=t.PromptsCapability(list_changed=changes) if serves("prompts/list") else None,
            resources=t.ResourcesCapability(subscribe=subscribe, list_changed=changes)
            if serves("resources/list")
            else None,
            tools=t.ToolsCapability(list_changed=changes) if serves("tools/list") else None,
            extensions=self.extensions,
        )

    # --- the protocol's own methods ----------------------------------------------------------

    def _initialize(self, ctx: AnyContext, params: t.InitializeRequestParams) -> t.InitializeResult:
        served = tuple(r for r in HANDSHAKE_REVISIONS if r in self.protocol_versions)
        peer: Any = ctx.peer
        if not served or not peer.shakes_hands:
            raise UnsupportedProtocolVersion(params.protocol_version, self._offered(with_handshake=False))
        handshake = peer.handshake = Handshake.negotiate(_of_bounded_size(params), served)
        hears_changes = getattr(peer, "hears_changes", True)
        return t.InitializeResult(
            protocol_version=handshake.revision,
            capabilities=self.capabilities(handshake.revision, hears_changes=hears_changes),
            server_info=self.info,
            instructions=self.instructions,
        )

    def _discover(self, ctx: AnyContext, _params: t.RequestParams) -> t.DiscoverResult:
        return t.DiscoverResult(
            supported_versions=self._offered(),
            capabilities=self.capabilities(ctx.protocol_version),
            instructions=self.instructions,
        )

    def _offered(self, *, with_handshake: bool = True) -> list[str]:
        return newest_first([r for r in self.protocol_versions if with_handshake or is_modern(r)])

    # --- change notifications ------------------------------------------------------------------

    async def publish(self, event: Event) -> None:
        """Announce a change to every client that has subscribed to it.

        Raises:
            LocalProtocolError: The server was made without `subscriptions`.
        """
        if self._bus is None:
            raise LocalProtocolError("this server tells of no changes; make it with subscriptions=True")
        await self._bus.publish(event)

    def announce(self, event: Event) -> None:
        """Announce a change from anywhere, a worker thread for one, without waiting.

        Does nothing while no client is connected, and on a server without `subscriptions`.
        """
        if self._announcer is not None:
            self._announcer.announce(event)

    def end_subscriptions(self) -> None:
        """End every `subscriptions/listen` with its result; clients may ask again."""
        if self._listen is not None:
            self._listen.close()

    def on_change(self, listener: Callable[[Event], None], *, anywhere: bool = False) -> Callable[[], None]:
        """Call back for each announced change, on the running loop or `anywhere`. Returns a function that ends that.

        For transports. What the bus does wrong is logged.
        """
        if self._bus is None:
            return lambda: None
        from mcp_core.backend.home import subscribed

        return subscribed(self._bus, listener, anywhere=anywhere)

    def attach(self, backend: Loop) -> Callable[[], None]:
        """Attach a loop for `announce` to publish on. Returns a function that detaches it. For transports."""
        return (lambda: None) if self._announcer is None else self._announcer.attach(backend)

    def follow(self, client: HandshakeClient) -> Callable[[], None]:
        """Notify a handshake-era client of changes. Returns a function that ends that. For transports."""
        return self.on_change(lambda event: self._forward(client, event))

    def _forward(self, client: HandshakeClient, event: Event) -> None:
        handshake = client.handshake
        if handshake is None:
            return
        if isinstance(event, ResourceUpdated):
            if event.uri not in handshake.subscriptions:
                return
            params: t.NotificationParams | None = t.ResourceUpdatedNotificationParams(uri=event.uri)
        else:
            if not _declared(event, self.capabilities(handshake.revision)):
                return
            params = None
        client.notify(encode_notification(method_of(event), params))

    # --- serving ---------------------------------------------------------------------------------

    @property
    def dispatcher(self) -> Dispatcher:
        """The request path, compiled from what is registered now."""
        compiled = self._compiled
        if compiled is None or compiled[0] != self._handlers.version or compiled[1] != self.middleware:
            middleware = list(self.middleware)
            dispatcher = Dispatcher(
                self._handlers, self._results, self.protocol_versions, tuple(middleware), self.observers
            )
            compiled = self._compiled = (self._handlers.version, middleware, dispatcher)
        return compiled[2]

    def running(self) -> AbstractAsyncContextManager[L]:
        """Keep the lifespan entered; it gives what `ctx.lifespan_context` is.

        Every way of serving does so by itself. Around `handle`, it decides when the
        lifespan ends.
        """
        if self._lifespan is None:
            nothing: JSONObject = {}
            return cast("AbstractAsyncContextManager[L]", nullcontext(nothing))
        return cast("AbstractAsyncContextManager[L]", self._lifespan.held())

    @contextmanager
    def connect(self, backend: Backend, channel: Channel, state: Any) -> Generator[Connection, None, None]:
        """A connection over a lasting channel, for transports. `state` is what `running` gave."""
        connection = Connection(
            _Current(self), backend, channel, server=self, lifespan_context=state, observers=self.observers
        )
        undo = (self.follow(_Changes(connection)), self.attach(backend))
        try:
            yield connection
        finally:
            for call in undo:
                call()

    def on_lifespan_failure(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when the lifespan, entered now, fails while it serves. For transports.

        Returns an idempotent function that unregisters the callback.
        """
        return (lambda: None) if self._lifespan is None else self._lifespan.on_failure(callback)

    async def handle(
        self,
        message: bytes,
        *,
        notify: Callable[[bytes], None] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes | None:
        """Answer one 2026-07-28 message, without transport or connection.

        Returns the response, or `None` where there is none to give. `notify` takes what
        the request sends before its response (progress, log messages); without it such
        messages are dropped. The lifespan is entered by the first call and kept until
        `aclose`, or as long as `running` is entered.

        Runs in the caller's task: cancel it to cancel the request.
        """
        frame = decode_frame(message)
        if isinstance(frame, Malformed):
            return encode_error(frame.id, frame.error) if frame.answerable else None
        state = self.lifespan_state
        peer = _Caller(self, await self.enter_lifespan() if state is None else state, headers, notify)
        if isinstance(frame, Request):
            call = self.dispatcher.begin(frame, peer)
            return call if isinstance(call, bytes) else await call
        if isinstance(frame, Notification):
            await self._notified(frame, peer)
            return None
        return encode_error(None, InvalidRequest("a response answers nothing here"))

    async def _notified(self, frame: Notification, peer: Peer) -> None:
        work = self.dispatcher.notify(frame, peer)
        task = current_task()
        try:
            if work is not None:
                await work
        except GeneratorExit as exc:
            if current_task() is not task:
                raise
            _log.error("the handler of %s raised GeneratorExit", frame.method, exc=exc)

    @property
    def lifespan_state(self) -> object:
        """What the lifespan yielded; `None` as well while it is not entered."""
        if self._lifespan is None:
            return {}
        try:
            return self._lifespan.state
        except LookupError:
            return None

    async def enter_lifespan(self) -> object:
        """Return what the lifespan yielded; entered by the first call, and kept until `aclose`, unless `running` is."""
        if self._lifespan is None:
            return {}
        try:
            return self._lifespan.state
        except LookupError:
            state = await self._lifespan.acquire()
            if self._held:
                await self._lifespan.release()  # another call has just done the same
            self._held = True
            return state

    async def aclose(self) -> None:
        """Leave the lifespan that `handle` entered."""
        if self._held and self._lifespan is not None:
            self._held = False
            await self._lifespan.release()

    @overload
    def run(
        self, transport: Literal["stdio"] = "stdio", *, loop: LoopName | None = None, **options: Unpack[StdioKeywords]
    ) -> None: ...

    @overload
    def run(
        self, transport: Literal["streamable-http"], *, loop: HTTPLoop | None = None, **options: Unpack[RunHTTPKeywords]
    ) -> None: ...

    def run(self, transport: str = "stdio", *, loop: Any = None, **options: Any) -> None:
        """Serve until the input ends, or SIGINT or SIGTERM comes. Blocks.

        Options of `stdio`: `max_message_size` in bytes, `drain_timeout` in seconds (what
        accepted requests may still take at the end of the input). Those of
        `streamable-http` are `host`, `port`, and the options of `streamable_http_app`; it
        needs the extra `http`.

        `loop` is asyncio's own for stdio and uvloop, where it is installed, for HTTP (P-36).

        Raises:
            TypeError, ValueError: The transport is unknown, or it has no such option; the text names what it has.
            RuntimeError: An event loop runs already (use `run_stdio_async` there), or what
                the loop or the transport needs is not installed.
            ServedWhileLoading: The file is being loaded, and `run` is not guarded by
                `if __name__ == "__main__":`.
        """
        from mcp_core.starting import check_loop, refuse_while_loading, run_blocking

        refuse_while_loading("run()")
        check_run_options(transport, options)
        if transport == "stdio":
            run_blocking(lambda: self.run_stdio_async(**options), loop or "asyncio")
        elif transport == "streamable-http":
            from mcp_core.transports.streamable_http.serving import serve

            if loop == "uvloop":
                check_loop(loop)
            serve(self, loop=loop, **options)

    def streamable_http_app(self, **options: Unpack[HTTPKeywords]) -> HTTPApp:
        """Return an ASGI app that serves both eras over Streamable HTTP.

        Options are the fields of `mcp_core.transports.streamable_http.HTTPOptions`. Serve it
        by itself, or mount it; a host that does not pass the ASGI lifespan on takes `app.lifespan`.
        """
        from mcp_core.transports.streamable_http import HTTPOptions, StreamableHTTP

        check_names("streamable_http_app", options, HTTPOptions.__struct_fields__)
        return StreamableHTTP(self, HTTPOptions(**options))

    async def run_stdio_async(self, **options: Unpack[StdioKeywords]) -> None:
        """Serve stdin and stdout from inside an event loop; the options are those of `run`."""
        from mcp_core.starting import refuse_while_loading
        from mcp_core.transports.stdio import serve_stdio

        refuse_while_loading("run_stdio_async()")
        check_run_options("stdio", options)
        await serve_stdio(self, **options)


ASGIApp: TypeAlias = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Any]], Callable[[MutableMapping[str, Any]], Awaitable[None]]],
    Awaitable[None],
]
"""What an ASGI server, or a framework, can serve."""


class HTTPApp(Protocol):
    """The ASGI app of a server, and what a framework that it is mounted in has to be given besides."""

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
        /,
    ) -> None:
        """Serve one ASGI connection."""

    def lifespan(self, app: object = None, /) -> AbstractAsyncContextManager[None]:
        """Return the server's lifespan, for a host that does not pass ASGI's on to what is mounted."""
        ...

    @property
    def metadata(self) -> ASGIApp:
        """The protected resource metadata as an app of its own, where the host owns its path."""
        ...


class HandshakeClient(Protocol):
    """A client that has shaken hands, as far as changes go."""

    @property
    def handshake(self) -> Handshake | None:
        """What `initialize` settled."""

    def notify(self, message: bytes) -> object:
        """Send a notification that belongs to no request."""


class _Changes:
    """A connection as a subscriber to changes: no more of them wait than it can ask for."""

    __slots__ = ("_connection", "notify")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.notify = connection.notify_change

    @property
    def handshake(self) -> Handshake | None:
        return self._connection.handshake


class _Current:
    """The server's dispatcher as it is when each message comes."""

    __slots__ = ("_server",)

    def __init__(self, server: Server[Any]) -> None:
        self._server = server

    def begin(self, request: Request, peer: Peer) -> Any:
        return self._server.dispatcher.begin(request, peer)

    def notify(self, notification: Notification, peer: Peer) -> Any:
        return self._server.dispatcher.notify(notification, peer)


class _Caller:
    """The caller of `handle`: a peer without a connection."""

    __slots__ = ("_notify", "headers", "lifespan_context", "server")

    auth = None
    handshake = None
    shakes_hands = False
    reaches_client = False

    def __init__(
        self,
        server: Server[Any],
        lifespan_context: object,
        headers: Mapping[str, str] | None,
        notify: Callable[[bytes], None] | None,
    ) -> None:
        self.server = server
        self.lifespan_context = lifespan_context
        self.headers = headers
        self._notify = notify

    def notify(self, message: bytes) -> None:
        if self._notify is not None:
            self._notify(message)

    async def wait_writable(self) -> None:
        """There is nothing to wait for."""

    async def request(self, method: str, params: object, timeout: float | None) -> Raw:
        raise LocalProtocolError(f"{method} cannot be sent: there is no connection")

    async def close_stream(self, retry: float) -> None:
        """There is no stream."""

    def notify_session(self, message: bytes) -> bool:
        return False

    def is_cancelled(self, request_id: RequestId) -> bool:
        return False

    def on_close(self, call: Callable[[], None]) -> Callable[[], None]:
        if self._notify is None:
            raise InvalidRequest("a subscription needs a transport that can send notifications")
        return lambda: None


def _level_kept(handler: HandlerFunction) -> HandlerFunction:
    """Return the handler of `logging/setLevel`, after the level has been noted for `ctx.log`."""

    def noted(ctx: AnyContext, params: t.SetLevelRequestParams) -> object:
        if ctx.peer.handshake is not None:
            ctx.peer.handshake.log_level = params.level
        return handler(ctx, params)

    return noted


def _subscribe(ctx: AnyContext, params: t.SubscribeRequestParams) -> t.EmptyResult:
    handshake = ctx.peer.handshake
    if handshake is not None and params.uri not in handshake.subscriptions:
        if params.uri not in handshake.subscriptions:
            check_subscriptions([params.uri], others=len(handshake.subscriptions))
        handshake.subscriptions.add(params.uri)
    return t.EmptyResult()


def _unsubscribe(ctx: AnyContext, params: t.UnsubscribeRequestParams) -> t.EmptyResult:
    handshake = ctx.peer.handshake
    if handshake is not None:
        handshake.subscriptions.discard(params.uri)
    return t.EmptyResult()


MAX_IDENTITY: Final = 8192
"""What a client may say of itself in `initialize`, which is kept for as long as it is connected.

In bytes of JSON, where each member counts 64 more: so much it takes in memory.
"""


def _of_bounded_size(params: t.InitializeRequestParams) -> t.InitializeRequestParams:
    """Return what a client says of itself; of a long one the icons and the like are left out.

    Raises:
        InvalidParams: It is too long all the same.
    """
    info = params.client_info
    if _weight(info) > MAX_IDENTITY:  # icons may be whole images
        info = t.Implementation(name=info.name, version=info.version, title=info.title)
    for what, value in (("clientInfo", info), ("capabilities", params.capabilities)):
        if _weight(value) > MAX_IDENTITY:
            raise InvalidParams(f"Invalid params: {what} is larger than {MAX_IDENTITY} bytes")
    return params if info is params.client_info else msgspec.structs.replace(params, client_info=info)


def _weight(value: object) -> int:
    data = codec.encode(value)
    return len(data) + 64 * data.count(b",")


def _declared(event: Event, capabilities: t.ServerCapabilities) -> bool:
    kind = method_of(event).split("/")[1]
    capability = getattr(capabilities, kind)
    return capability is not None and bool(capability.list_changed)


_ONLY_OF_RUN: Final = ("port", "workers", "uvicorn")


def check_names(where: str, given: Collection[str], known: Collection[str], others: str = "") -> None:
    """Raise `TypeError` for an option that there is not; its text says which there are."""
    for name in given:
        if name not in known:
            near = others or f"its options are {', '.join(sorted(known))}"
            raise TypeError(f"{where} has no option {name!r}; {near}")


def check_run_options(transport: str, given: Collection[str]) -> None:
    """
    Raises:
        ValueError: The transport is unknown.
        TypeError: It has no such option.
    """
    from mcp_core.transports.stdio import serve_stdio

    stdio = list(serve_stdio.__kwdefaults__ or ())
    http: list[str] = []
    if transport == "streamable-http" or not set(given) <= set(stdio):
        from mcp_core.transports.streamable_http import HTTPOptions

        http = [*HTTPOptions.__struct_fields__, *_ONLY_OF_RUN]
    known = {"stdio": stdio, "streamable-http": http}
    if transport not in known:
        raise ValueError(
            f"unknown transport {transport!r}; known are 'stdio' and 'streamable-http', which replaced SSE"
        )
    for name in given:
        other = next((t for t, names in known.items() if t != transport and name in names), None)
        hint = "" if other is None else f"it is one of run({other!r})"
        check_names(f"run({transport!r})", [name], known[transport], hint)

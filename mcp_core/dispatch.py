"""One message of one peer, taken to its response.

Finds the handler, decodes the params, settles the era, calls, encodes; maps every
exception to the wire, in one place. Knows the peer as a Protocol; spawns nothing
itself, so that each transport decides where a handler that waits is to run.

Theory of operation. A request passes four steps, each of which may end it:

    open    decode the params once, settle the revision     -> InboundCall, or Refusal with a response
    start   call the handler (through middleware)           -> response, or the call if it suspends
    eager   run a suspended handler up to its first await   -> response, or None (asyncio only)
    await   the rest, in a task that the transport chooses  -> response

`open_single_pass` is `open` for bytes that are still undecoded; see the comment in it.

Invariants. An `InboundCall` gives exactly one response, or none when its client cancelled it; `ctx.close()` runs
before the response is encoded, so that nothing is sent for the request after it. Observers see
`request_started` once, then `request_finished` once, whichever step ends it. Whatever a handler raises
becomes a response in `failed`; only cancellation, `KeyboardInterrupt` and a coroutine that is closed from
outside leave `InboundCall`.
Spec: basic, "Statelessness", "Error Codes".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from types import CoroutineType
from typing import Any, Union, cast

from msgspec import Raw, Struct

from mcp_core import codec, projection, request_meta
from mcp_core import types as t
from mcp_core.backend import Work, current_task, is_cancellation, settled
from mcp_core.backend.interruptible import start_eagerly
from mcp_core.codec import JSONObject
from mcp_core.context import AnyContext, Peer, RequestContext
from mcp_core.errors import InsufficientScope, InternalError, InvalidParams, MCPError, MethodNotFound, ParseError
from mcp_core.handlers import Handler, Handlers, read_meta
from mcp_core.messages import Notification, Request, SinglePassRequest, encode_error, encode_response, single_pass_type
from mcp_core.methods import METHODS
from mcp_core.observers import Observers
from mcp_core.queue_logger import QueueLogger
from mcp_core.results import ResultEncoder, WrongResult, asks_for_input, check_input_required, opened
from mcp_core.revisions import LATEST_REVISION, MODERN_REVISIONS, V2024_11_05, newest_first
from mcp_core.session import missing_protocol_version

__all__ = ["InboundCall", "CallNext", "Dispatcher", "Failure", "Middleware", "Refusal"]

CallNext = Callable[["AnyContext"], Awaitable[Any]]
Middleware = Callable[["AnyContext", CallNext], Awaitable[Any]]
"""`async (ctx, call_next) -> result`, around every request and notification.

Runs before the params are looked at (`ctx.params` is the plain dict); what
`call_next` returns is what the handler returned, before it is encoded.
"""

_log = QueueLogger(__name__)
_INTERNAL = InternalError("Internal server error")


class Dispatcher:
    """The request path of one server, compiled when serving starts."""

    def __init__(
        self,
        handlers: Handlers,
        results: ResultEncoder,
        served: tuple[str, ...],
        middleware: tuple[Middleware, ...],
        observers: Observers,
    ) -> None:
        self._requests = dict(handlers.requests)
        self._notifications = dict(handlers.notifications)
        # Made by the first message over HTTP: stdio and tests need none.
        self._decode_single_pass: codec.Decoder[Any] | None = None
        self._results = results
        self._modern = frozenset(served) & frozenset(MODERN_REVISIONS)  # the stateless revisions that are served
        self._shakes_hands = not self._modern.issuperset(served)  # whether any handshake revision is served
        self._offered = newest_first(served)
        self._middleware = middleware
        self._observers = observers

    # --- requests ----------------------------------------------------------------------

    def begin(self, request: Request, peer: Peer) -> bytes | InboundCall:
        """Start on a request: its response, or what to await for it.

        A plain `def` handler has run when this returns. Never raises; awaiting neither,
        except when the task that awaits is cancelled.
        """
        call = self.open(request, peer)
        return call.answer if isinstance(call, Refusal) else self.start(call)

    def open(self, request: Request, peer: Peer) -> InboundCall | Refusal:
        """Decode the params and settle the revision: a call to be started, or the refusal."""
        handler = self._requests.get(request.method)
        params: Any = None
        try:
            if self._middleware:
                ctx = self._open_undecoded(request, peer)
            elif handler is None:
                self._revision(request.method, read_meta(request.params), peer)
                raise _unknown(request.method)
            else:
                params = handler.decode(request.params)
                meta = params._meta if handler.carries_meta else read_meta(request.params)
                revision = self._revision(request.method, meta, peer)
                row = handler.row
                if row is not None and revision not in row.revisions:
                    raise _unknown(request.method)
                ctx = RequestContext(peer, request.id, request.method, request.params, revision, meta)
        except (MCPError, codec.ValidationError, codec.DecodeError) as exc:
            return self._refusal(request, peer, exc)
        except Exception as exc:  # the author's params type
            _log.error("the params of %s cannot be decoded", request.method, exc=exc)
            return self._refusal(request, peer, _INTERNAL)
        return InboundCall(self, ctx, request, handler, params)

    def open_single_pass(self, body: bytes, peer: Peer) -> InboundCall | None:
        """Decode a message in a single pass, as a request of its method; `None` where `open` has to look closer."""
        if self._middleware:
            return None
        # One decode by a union of one type per method, tagged by the `method` member: the params land in the handler's
        # own type, and neither the frame nor `_meta` is decoded by itself. Over HTTP that is half of what a call costs.
        # It is an optimistic path. Whatever is unusual (a batch, a response, a method that is not served, params of the
        # wrong shape, a revision that is not) raises or returns None here, and the caller decodes again, frame first
        # (`decode_frame`, `open`), which finds the words for the error. So nothing may be refused here, and nothing
        # accepted that `open` would refuse: tests/property/test_whole_requests.py holds the two together.
        decode = self._decode_single_pass
        if decode is None:
            decode = self._decode_single_pass = self._make_single_pass_decoder()
        try:
            # Bytes that are left as they are, are not looked at for wrong UTF-8.
            if not body.isascii() and not codec.is_utf8(body):
                return None
            request = (decode.decode_raw if len(body) < codec.LARGE else decode.decode_bounded)(body)
            handler = self._requests[request.method]
            meta = request.params._meta
            revision = self._revision(request.method, meta, peer)
        except Exception:
            return None
        row = handler.row
        if row is not None and revision not in row.revisions:
            return None
        ctx: AnyContext = RequestContext(peer, request.id, request.method, body, revision, meta)
        return InboundCall(self, ctx, request, handler, request.params)

    def _make_single_pass_decoder(self) -> codec.Decoder[Any]:
        kinds = [
            single_pass_type(method, handler.params_type)
            for method, handler in self._requests.items()
            if handler.carries_meta
        ]
        return codec.decoder(Union[tuple(kinds)])  # noqa: UP007 - built at run time

    def start(self, call: InboundCall) -> bytes | InboundCall:
        """Call the handler: the response, or the call itself if there is something to await."""
        ctx, handler = call.ctx, call.handler
        if self._observers.request_started:
            self._observers.call(self._observers.request_started, ctx)
        try:
            value: Any = (
                self._call_through_middleware(ctx, handler)
                if handler is None or self._middleware
                else handler.call(ctx, call.params)
            )
            waits = hasattr(value, "__await__")  # may be the author's own code, too
        except KeyboardInterrupt:
            raise
        except BaseException as exc:
            return self.failed(call, exc)
        if waits:
            call.awaitable = value
            return call
        return self.answer(call, value)

    def _revision(self, method: str, meta: JSONObject | None, peer: Peer) -> str:
        """Return the revision a request is of: its own word, or that of the handshake."""
        if meta is not None:
            token = meta.get("progressToken")
            if token is not None:
                request_meta.check_token(token)
            if request_meta.PROTOCOL_VERSION in meta and method != "initialize":
                return request_meta.check_meta(meta, self._modern, self._offered)
        handshake = peer.handshake
        if handshake is not None:
            return handshake.revision
        if method == "initialize" or (method == "ping" and self._shakes_hands):
            return V2024_11_05  # before a revision is agreed on, only what all share
        raise missing_protocol_version(method)

    def answer(self, call: InboundCall, value: Any) -> bytes:
        """Return the response to a request whose handler returned."""
        ctx, request, handler = call.ctx, call.request, call.handler
        row = None if handler is None else handler.row
        ctx.close()
        try:
            if row is None or type(value) is not row.result:
                if isinstance(value, t.ErrorData):
                    return self._error(call, MCPError.of(value.code, value.message, value.data))
                if asks_for_input(value):
                    check_input_required(value, row, ctx.protocol_version, ctx.client_capabilities)
            revision = ctx.protocol_version
            if request.method == "initialize" and ctx.peer.handshake is not None:
                revision = ctx.peer.handshake.revision  # agreed on just now
            body, tail = self._results.encode(value, row, revision)
            answer = encode_response(request.id, body, tail)
        except MCPError as exc:
            return self._error(call, exc)
        except WrongResult as exc:
            _log.error("%s", exc)
            return self._error(call, InternalError("Handler returned an invalid result"))
        except Exception as exc:
            _log.error("the result of %s cannot be encoded", request.method, exc=exc)
            return self._error(call, InternalError("The result cannot be encoded"))
        if self._observers.request_finished:
            self._finished(call, answer)
        return answer

    def call_internally(self, ctx: AnyContext, peer: Peer, method: str, params: JSONObject) -> Any:
        """Return what the handler of another method returns to the caller of this request, or what to await for it.

        No client has made that request: neither middleware nor observers see it. Raises what decoding and the
        handler raise.
        """
        handler = self._requests[method]
        raw = Raw(codec.encode(params))
        inner: AnyContext = RequestContext(peer, ctx.request_id, method, raw, ctx.protocol_version, ctx.meta)
        return handler.call(inner, handler.decode(raw))

    # --- what observers are called with -----------------------------------------------------------

    def _finished(self, call: InboundCall, answer: bytes | None) -> None:
        call.observed = True
        self._observers.call(self._observers.request_finished, call.ctx, answer)

    def finish_unanswered(self, call: InboundCall) -> None:
        """Note that a request which was started gets no response."""
        call.ctx.close()
        if self._observers.request_finished and not call.observed:
            self._finished(call, None)

    def refused(self, ctx: AnyContext, answer: bytes | None) -> None:
        """Note that a request was answered, or dropped, before it got to its handler."""
        ctx.close()
        observers = self._observers
        observers.call(observers.request_started, ctx)
        observers.call(observers.request_finished, ctx, answer)

    def refused_request(self, request: Request, peer: Peer, answer: bytes | None) -> None:
        """The same, of a request that was not even opened."""
        observers = self._observers
        if not (observers.request_started or observers.request_finished):
            return
        try:
            meta = read_meta(request.params)
        except (codec.ValidationError, codec.DecodeError):
            meta = None
        handshake = peer.handshake
        revision = self._claimed(request, handshake.revision if handshake else LATEST_REVISION)
        self.refused(RequestContext(peer, request.id, request.method, request.params, revision, meta), answer)

    # --- failures ------------------------------------------------------------------------

    def failed(self, call: InboundCall, exc: BaseException) -> bytes:
        """Return the response to a request whose handler raised."""
        ctx, request = call.ctx, call.request
        ctx.close()
        if isinstance(exc, MCPError):
            try:
                return self._error(call, exc)
            except Exception as fault:  # a subclass that lacks what the base's constructor sets
                exc = fault
        if self._observers.handler_failed:
            self._observers.call(self._observers.handler_failed, ctx, exc)
        _log.error("the handler of %s raised %s", request.method, type(exc).__name__, exc=exc)
        return self._error(call, _INTERNAL)

    def _refusal(self, request: Request, peer: Peer, exc: Exception) -> Refusal:
        """Return the response to a request that did not get to its handler."""
        if isinstance(exc, codec.ValidationError | codec.DecodeError):
            # Bad params, but of which era? A wrong version is reported first,
            # and a method that its revision does not have the second.
            try:
                revision = self._revision(request.method, read_meta(request.params), peer)
                _check_revision(request.method, revision)
            except MCPError as earlier:
                exc = earlier
            except (codec.ValidationError, codec.DecodeError):
                pass
        handshake = peer.handshake
        revision = self._claimed(request, handshake.revision if handshake else LATEST_REVISION)
        error = projection.project_error(_as_error(exc), revision)
        answer = _encode_error(request, error)
        self.refused_request(request, peer, answer)
        return Refusal(answer, Failure.of(error))

    def _claimed(self, request: Request, otherwise: str) -> str:
        """Return the revision in which a refusal is worded."""
        try:
            meta = read_meta(request.params) or {}
        except (codec.ValidationError, codec.DecodeError):
            return otherwise
        return LATEST_REVISION if request_meta.PROTOCOL_VERSION in meta else otherwise

    def _error(self, call: InboundCall, error: MCPError) -> bytes:
        ctx = call.ctx
        shown = projection.project_error(error, ctx.protocol_version)
        call.failure = Failure.of(shown)
        answer = _encode_error(call.request, shown)
        if self._observers.request_finished:
            self._finished(call, answer)
        return answer

    # --- middleware ------------------------------------------------------------------------

    def _open_undecoded(self, request: Request, peer: Peer) -> AnyContext:
        """Return a context from nothing but `_meta`: middleware comes before the params."""
        meta = read_meta(request.params)
        revision = self._revision(request.method, meta, peer)
        return RequestContext(peer, request.id, request.method, request.params, revision, meta)

    def _call_through_middleware(self, ctx: AnyContext, handler: Handler | None) -> Awaitable[Any]:
        kept: list[t.Prepared[Any]] = []

        async def handle(inner: AnyContext) -> object:
            value = await self._call(inner, handler)
            if isinstance(value, t.Prepared):
                kept.append(cast("t.Prepared[Any]", value))
                return kept[-1].value
            return opened(value)

        async def run() -> object:
            value = await self._wrapped(ctx, handle)
            # A result passed on as it is keeps its bytes.
            return next((p for p in kept if p.value is value), value)

        return run()

    def _wrapped(self, ctx: AnyContext, innermost: CallNext) -> Awaitable[object]:
        call = innermost
        for middleware in reversed(self._middleware):
            call = _around(middleware, call)
        return call(ctx)

    async def _call(self, ctx: AnyContext, handler: Handler | None) -> object:
        if handler is None:
            raise _unknown(ctx.method)
        _check_revision(ctx.method, ctx.protocol_version)
        try:
            params = handler.decode(ctx.raw_params)
        except (codec.ValidationError, codec.DecodeError) as exc:
            raise _as_error(exc) from None
        return await settled(handler.call(ctx, params))

    # --- notifications ---------------------------------------------------------------------

    def notify(self, notification: Notification, peer: Peer) -> Work | None:
        """Take a notification to its handler, if it has one. Never raises."""
        handler = self._notifications.get(notification.method)
        if handler is None and not self._middleware:
            return None
        try:
            meta = read_meta(notification.params)
            params = None if handler is None else handler.decode(notification.params)
        except (codec.ValidationError, codec.DecodeError) as exc:
            _log.warning("a notification %s was dropped: %s", notification.method, exc)
            return None
        except Exception as exc:  # the author's params type
            _log.error("the params of %s cannot be decoded", notification.method, exc=exc)
            return None
        handshake = peer.handshake
        revision = handshake.revision if handshake else LATEST_REVISION
        ctx: AnyContext = RequestContext(peer, None, notification.method, notification.params, revision, meta)
        return self._notified(ctx, handler, params)

    async def _notified(self, ctx: AnyContext, handler: Handler | None, params: object) -> None:
        async def handle(inner: AnyContext) -> None:
            if handler is not None:
                await settled(handler.call(inner, params))

        try:
            await self._wrapped(ctx, handle)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as exc:
            if is_cancellation(exc):
                raise
            _log.error("the handler of %s raised %s", ctx.method, type(exc).__name__, exc=exc)


class Failure(Struct):
    """The parts of an error that decide the HTTP status: its code, and the scopes that it asks for.

    The exception is not kept, because its traceback references every frame that it passed.
    """

    code: int
    scopes: tuple[str, ...] = ()

    @classmethod
    def of(cls, error: MCPError) -> Failure:
        """Return what there is to know of this error."""
        return cls(_int(error.code), error.scopes if isinstance(error, InsufficientScope) else ())


class Refusal(Struct):
    """The response to a request that did not get to its handler, and the error in it."""

    answer: bytes
    failure: Failure


class InboundCall:
    """A request on its way: opened, started, then awaited for the response if its handler waits.

    Not a coroutine, so that one which is never awaited can be closed together
    with the handler's own (`close`).
    """

    __slots__ = ("awaitable", "ctx", "dispatcher", "failure", "handler", "observed", "params", "request")

    def __init__(
        self,
        dispatcher: Dispatcher,
        ctx: AnyContext,
        request: Request | SinglePassRequest,
        handler: Handler | None,
        params: object,
    ) -> None:
        self.dispatcher: Dispatcher = dispatcher
        self.ctx: AnyContext = ctx
        self.request: Request | SinglePassRequest = request  # keeps the id, whatever the era
        self.handler: Handler | None = handler
        self.params: Any = params  # decoded; `None` with middleware, which sees the plain params first
        self.awaitable: Any = None  # the suspended handler, from `start` on; after an eager start what is left of it
        self.failure: Failure | None = None
        """The error that it was answered with, if it was."""
        self.observed: bool = False
        """Whether observers were called with its end."""

    def start_eagerly(self) -> bytes | None:
        """Make the first step of what is to be awaited: the response if that was all.

        In the task that awaits the rest, and only where `supports_eager_start()`. Raises what
        awaiting raises.
        """
        awaitable: Any = self.awaitable
        steps: Any = awaitable if codec.type_of(awaitable) is CoroutineType else settled(awaitable)
        try:
            done, value = start_eagerly(steps)
        except GeneratorExit as exc:  # raised by the handler: a coroutine is not closed in its first step
            return self.dispatcher.failed(self, exc)
        except BaseException as exc:
            return self._raised(exc)
        if done:
            return self.dispatcher.answer(self, value)
        self.awaitable = value
        return None

    def __await__(self) -> Generator[Any, Any, bytes]:
        return self._finish().__await__()

    async def _finish(self) -> bytes:
        try:
            value = await self.awaitable
        except BaseException as exc:
            return self._raised(exc)
        return self.dispatcher.answer(self, value)

    def _raised(self, exc: BaseException) -> bytes:
        """Return the response to a handler that raised; what is not about its request goes on."""
        # Where a coroutine is closed from outside, by a loop that ends, no task runs.
        closed = isinstance(exc, GeneratorExit) and current_task() is None
        if closed or isinstance(exc, KeyboardInterrupt) or is_cancellation(exc):
            self.dispatcher.finish_unanswered(self)
            raise exc
        return self.dispatcher.failed(self, exc)

    def close(self) -> None:
        """Close the handler's coroutine if it has not started. Idempotent."""
        close = getattr(self.awaitable, "close", None)
        if close is not None:
            close()
        self.dispatcher.finish_unanswered(self)


def _around(middleware: Middleware, call_next: CallNext) -> CallNext:
    return lambda ctx: middleware(ctx, call_next)


def _encode_error(request: Request | SinglePassRequest, error: MCPError) -> bytes:
    try:
        return encode_error(request.id, error)
    except Exception as exc:
        _log.error("the error of %s cannot be encoded", request.method, exc=exc)
    try:
        return encode_error(request.id, MCPError(_int(error.code), str(error.message)))
    except Exception:
        return encode_error(request.id, _INTERNAL)


def _unknown(method: str) -> MethodNotFound:
    return MethodNotFound("Method not found", method)


def _check_revision(method: str, revision: str) -> None:
    """Raise `MethodNotFound` for a method of MCP's that this revision does not have."""
    row = METHODS.get(method)
    if row is not None and revision not in row.revisions:
        raise _unknown(method)


def _as_error(exc: Exception) -> MCPError:
    """Return the JSON-RPC error that tells a client what its request suffers from."""
    if isinstance(exc, MCPError):
        return exc
    if isinstance(exc, codec.DecodeError):
        return ParseError(f"Parse error: {exc}")
    return InvalidParams(f"Invalid params: {exc}")


def _int(code: object) -> int:
    return code if isinstance(code, int) else _INTERNAL.code

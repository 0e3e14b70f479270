"""One peer over a lasting two-way channel: stdio, or memory.

Owns the requests in flight either way: spawns what waits, cancels, answers at most
once per id, and holds back when the peer does not read. What a request means is the
responder's business; how messages travel is the channel's.
Spec: basic, "Messages"; basic/patterns/cancellation; 2025-03-26/basic, "Batching".
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Generator, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from msgspec import Raw

from mcp_core import codec
from mcp_core import types as t
from mcp_core.backend import Work
from mcp_core.close_callbacks import CloseCallbacks
from mcp_core.errors import (
    ConnectionClosed,
    InternalError,
    InvalidParams,
    InvalidResult,
    MCPError,
    RequestTimeout,
)
from mcp_core.messages import (
    ErrorResponse,
    Frame,
    Malformed,
    Notification,
    Request,
    RequestId,
    Response,
    decode_batch,
    decode_frame,
    encode_error,
    encode_notification,
    encode_request,
    is_batch,
)
from mcp_core.observers import Observers
from mcp_core.queue_logger import QueueLogger, RateLimitedWarnings
from mcp_core.revisions import V2025_03_26
from mcp_core.session import Handshake, InboundRequest, JSONRPCSession, RequestState, initialize_in_batch

if TYPE_CHECKING:
    from contextvars import ContextVar

    from mcp_core.auth import AccessToken
    from mcp_core.backend import Backend, BackgroundTask, Future, Timer
    from mcp_core.channel import Channel

__all__ = [
    "MAX_IN_FLIGHT",
    "MAX_IN_FLIGHT_BYTES",
    "MAX_NOTIFICATIONS",
    "MAX_NOTIFICATION_BYTES",
    "CONNECTION_TRANSITIONS",
    "NOTIFICATION_TIMEOUT",
    "Connection",
    "ConnectionState",
    "PendingResponse",
    "Responder",
]

MAX_IN_FLIGHT: Final = 10_000
"""Requests of one peer that may be unanswered at a time; more are refused."""

MAX_IN_FLIGHT_BYTES: Final = 256 * 2**20
"""Bytes that the messages of these requests may have together; more are refused."""

MAX_NOTIFICATIONS: Final = 256
"""Notifications of one peer that may wait for their handlers; then nothing more is read, for `NOTIFICATION_TIMEOUT`."""

MAX_NOTIFICATION_BYTES: Final = 4 * 2**20
"""Bytes that their messages may have together."""

NOTIFICATION_TIMEOUT: Final = 10.0
"""Seconds that nothing is read for the sake of one notification; then more come in, and are dropped."""

_HARD_LIMIT_FACTOR: Final = 4
"""How many times more may wait while the connection is read all the same: after that time, or for the sake of a
handler that awaits a response of the peer's. Further ones are dropped."""


@cache
def _handling_notification_of() -> ContextVar[object]:
    """Return the connection whose notification is being handled, also in tasks and threads that its handler starts."""
    from contextvars import ContextVar  # comes with every event loop; the import of the package goes without

    return ContextVar("_handling_notification_of", default=None)


_LARGE: Final = 4096
"""Bytes from which a request is worth counting: 10,000 smaller ones take 40 MB."""

_log = QueueLogger(__name__)
_INTERNAL: Final = InternalError("Internal server error")
_cancelled: codec.Decoder[t.CancelledNotificationParams] = codec.decoder(t.CancelledNotificationParams)


class ConnectionState(enum.Enum):
    """Life of a connection. Requests of ours can be made while it is OPEN; responses leave until it is CLOSED."""

    OPEN = "open"
    """Messages come in and go out."""
    HALF_CLOSED = "half-closed"
    """The peer sends no more: what waits for its responses has failed, its own requests are still answered."""
    ABORTED = "aborted"
    """The drain, now or when it is called, waits for no request."""
    CLOSED = "closed"
    """Drained: every request is answered or cancelled."""


CONNECTION_TRANSITIONS: Final[Mapping[ConnectionState, Mapping[str, ConnectionState]]] = {
    ConnectionState.OPEN: {
        "input ends": ConnectionState.HALF_CLOSED,
        "abort drain": ConnectionState.ABORTED,
        "drained": ConnectionState.CLOSED,
    },
    ConnectionState.HALF_CLOSED: {
        "input ends": ConnectionState.HALF_CLOSED,
        "abort drain": ConnectionState.ABORTED,
        "drained": ConnectionState.CLOSED,
    },
    ConnectionState.ABORTED: {
        "input ends": ConnectionState.ABORTED,
        "abort drain": ConnectionState.ABORTED,
        "drained": ConnectionState.CLOSED,
    },
    ConnectionState.CLOSED: {
        "input ends": ConnectionState.CLOSED,
        "abort drain": ConnectionState.CLOSED,
        "drained": ConnectionState.CLOSED,
    },
}
"""Where each event leads: all are legal at any time, since signals and transports are not in step."""


class PendingResponse(Protocol):
    """A response to come. A coroutine that returns it is one.

    One with a method `failed(exc)` is asked what to answer where waiting for it raises.
    """

    def __await__(self) -> Generator[object, object, bytes]:
        """Wait for the response."""
        ...

    def close(self) -> None:
        """Close a response whose awaiting has not begun."""
        ...


class Responder(Protocol):
    """Who knows what the peer's messages mean."""

    def begin(self, request: Request, peer: Any) -> bytes | PendingResponse | None:
        """Return the response to a request, or what will give it. Never raises.

        `None` where a peer may not be answered at all.
        """
        ...

    def notify(self, notification: Notification, peer: Any) -> Work | None:
        """Return what is to be done about a notification, if anything. Never raises."""
        ...


class SendResponse(Protocol):
    """Where a response goes."""

    def __call__(self, message: bytes, /, *, last: bool = False) -> None:
        """Take it; `last` as for `Channel.send`."""
        ...


class _Batch:
    """The responses to one array, sent as one when the last is there.

    Those that were there at once come first, then those that were waited for, both in the
    order of their requests: which of them is ready first depends on the event loop, and on
    the version of Python (3.12 runs a task's first step at once).
    """

    def __init__(self, out: Callable[[bytes], None]) -> None:
        self._out = out
        self._answers: list[bytes] = []  # there at once, in the order of their requests
        self._awaited: list[bytes] = []  # a place for each that is awaited, filled when it comes; empty: not answered
        self._open = 1  # tasks still to end, and one for the array itself while it is read

    def add(self, answer: bytes) -> None:
        self._answers.append(answer)

    def open(self) -> SendResponse:
        """Return where the response that a task will give goes; `close` says that the task is over."""
        self._open += 1
        awaited, index = self._awaited, len(self._awaited)
        awaited.append(b"")

        def put(answer: bytes, *, last: bool = False) -> None:
            awaited[index] = answer

        return put

    def close(self) -> None:
        self._open -= 1
        if self._open:
            return
        answers = self._answers + [answer for answer in self._awaited if answer]
        if answers:
            self._out(b"[%b]" % b",".join(answers))


class Connection:
    """Messages in by `receive`, out by its channel. Also the `Peer` of its requests.

    A client overlooks what is not a message: it must not answer (R-BASE-12), and what it
    reads may be somebody's stray output.
    """

    headers: Mapping[str, str] | None = None
    auth: AccessToken | None = None
    shakes_hands: bool = True
    reaches_client: bool = True

    def __init__(
        self,
        responder: Responder,
        backend: Backend,
        channel: Channel,
        *,
        server: object = None,
        lifespan_context: object = None,
        observers: Observers | None = None,
        answer_malformed: bool = True,
    ) -> None:
        self._responder = responder
        self._backend = backend
        self._channel = channel
        self._observers = observers or Observers()
        # False in a client, which must not send responses to what is not a request.
        self._answer_malformed = answer_malformed
        self._session: JSONRPCSession[BackgroundTask, Future] = JSONRPCSession()  # ids in flight, both ways
        # Notifications whose handlers wait, with the bytes of each; the first is being handled.
        self._notices: deque[tuple[Work, int]] = deque()
        self._notification_bytes = 0
        self.is_full: bool = False
        """Whether nothing more is to be brought in until notifications have been handled."""
        # Handles `_notices` one by one; `None` while there are none.
        self._notification_task: BackgroundTask | None = None
        self._notification_timer: Timer | None = None  # set while reading is paused for the sake of a notification
        self._overdue = False
        """Whether one notification has been handled for so long that the others are not waited for."""
        self._requests_of_notification_handlers = 0
        """Requests of ours that handlers of notifications wait for."""
        self._bytes_in_flight = 0  # of large requests that are suspended; small ones are bounded by their number
        self._changes: dict[bytes, None] = {}
        """Notifications of changes that wait until the peer reads again, each once."""
        self._warnings = RateLimitedWarnings(_log)
        self._close_callbacks = CloseCallbacks()
        self.state: ConnectionState = ConnectionState.OPEN
        self._end_reason = "the connection has ended"  # for the errors of requests that can no longer be made
        self._idle: Future | None = None  # what `drain` waits on; resolved when the last request is settled
        self.server = server
        self.lifespan_context = lifespan_context

    # --- inbound -------------------------------------------------------------------------

    def receive(self, message: bytes) -> None:
        """Take one whole message. Never raises: an invalid one is answered with an error."""
        if self._observers.message_received:
            self._observers.call(self._observers.message_received, message)
        frame = decode_frame(message)
        try:
            if type(frame) is Request:
                self._serve(frame, len(message))
            elif type(frame) is Response:
                self._resolved(frame)
            elif type(frame) is Notification:
                self._notified(frame, len(message))
            elif type(frame) is ErrorResponse:
                self._failed(frame)
            else:
                self._malformed(message, cast("Malformed", frame))
        except Exception as exc:
            self._give_up(frame, exc, self._out)

    def _give_up(self, frame: Frame, exc: Exception, out: Callable[[bytes], None]) -> None:
        """Survive an exception of the responder; a request that failed is answered.

        The fault must not reach the transport, where it would end the reading, and with it
        everything else that the peer asks for.
        """
        _log.error("a message could not be handled", exc=exc)
        if not isinstance(frame, Request):
            return
        entry = self._session.incoming.get(frame.id)
        if entry is not None and self._session.settle(frame.id, entry):
            out(encode_error(frame.id, _INTERNAL))

    def _measure(self) -> None:
        """Find out whether there is room for more notifications, and go on if there is again.

        There is room as long as one of their handlers waits for a response of the peer's, which
        may be what comes next, and where one of them takes very long: it may wait for something
        else that stands behind them, and the end of the input does.
        """
        was_full = self.is_full
        full = len(self._notices) >= MAX_NOTIFICATIONS or self._notification_bytes > MAX_NOTIFICATION_BYTES
        self.is_full = full and not self._requests_of_notification_handlers and not self._overdue
        if self.is_full and not was_full:
            self._notification_timer = self._backend.call_later(
                NOTIFICATION_TIMEOUT, self._stop_waiting_for_notifications
            )
        elif was_full and not self.is_full:
            self._cancel_notification_timer()
            self._channel.resume()

    def _stop_waiting_for_notifications(self) -> None:
        self._overdue = True
        self._measure()

    def _cancel_notification_timer(self) -> None:
        timer, self._notification_timer = self._notification_timer, None
        if timer is not None:
            timer.cancel()

    def refuse(self, head: bytes, limit: int) -> None:
        """Answer a message beyond the size limit, under its id if its head shows it."""
        if self._answer_malformed:
            error = InvalidParams(f"the message is larger than {limit} bytes")
            self._out(encode_error(codec.recover_id(head), error))
        elif (future := self._session.resolve_lenient(codec.recover_id(head))) is not None:
            future.set_exception(InvalidResult(f"the answer is larger than {limit} bytes"))

    def fail(self, request_id: RequestId, error: Exception) -> None:
        """Fail a request of ours that nothing will answer; not as if the peer had refused it (R-ERR-09)."""
        future = self._session.resolve(request_id)
        if future is not None:
            future.set_exception(error)

    @property
    def in_progress(self) -> int:
        """How many requests of the peer's are not answered yet, one that has just come included."""
        return len(self._session.incoming)

    @property
    def congested(self) -> bool:
        """Whether the peer does not read what it was sent."""
        return self._channel.congested

    def expire(self, request_id: RequestId, error: Exception) -> None:
        """Fail a request of ours that the peer may still work on. `request`, which awaits it, asks it to cancel."""
        future = self._session.outgoing.get(request_id)
        if future is not None:
            future.set_exception(error)

    def _serve(self, request: Request, size: int, batch: _Batch | None = None) -> None:
        put: Callable[[bytes], None] = self._out if batch is None else batch.add
        session = self._session
        size = size if size > _LARGE else 0
        try:
            if len(session.incoming) >= MAX_IN_FLIGHT or self._bytes_in_flight + size > MAX_IN_FLIGHT_BYTES:
                raise InternalError(
                    f"more than {MAX_IN_FLIGHT} requests, or {MAX_IN_FLIGHT_BYTES} bytes of them, "
                    "are in progress; wait for answers"
                )
            entry = session.admit(request.id)
        except MCPError as exc:
            if not self._channel.congested:  # a peer that asks, and does not read responses, gets none for this
                put(encode_error(request.id, exc))
            return
        answer = self._responder.begin(request, self)
        if answer is None or isinstance(answer, bytes):
            if session.settle(request.id, entry) and answer is not None:
                put(answer)
            return
        out: SendResponse = self._out if batch is None else batch.open()
        self._bytes_in_flight += size
        entry.task = self._backend.spawn(
            self._run(request, entry, answer, out), partial(self._closed, request.id, entry, answer, size, batch)
        )

    async def _run(
        self, request: Request, entry: InboundRequest[BackgroundTask], work: PendingResponse, out: SendResponse
    ) -> None:
        if self._channel.congested:
            # The peer does not read: start nothing that would only add to the pile.
            await self._channel.drained()
        entry.start()
        try:
            answer = await work
        except BaseException as exc:
            if isinstance(exc, KeyboardInterrupt) or (entry.task is not None and not entry.task.is_own(exc)):
                raise
            # The request was not cancelled: its handler cancelled its own task, or raised what
            # looks as if it were being closed. It is answered like any other failure.
            answer = self._failed_answer(request, work, exc)
        if self._session.settle(request.id, entry):
            out(answer, last=not self._session.incoming)
            if request.method == "subscriptions/listen":
                # On such channels the end of a subscription is sent twice (R-SUB-08).
                self.notify(encode_notification("notifications/cancelled", {"requestId": request.id}))

    @staticmethod
    def _failed_answer(request: Request, work: PendingResponse, exc: BaseException) -> bytes:
        failed: Callable[[BaseException], bytes] | None = getattr(work, "failed", None)
        if failed is not None:
            return failed(exc)
        _log.error("the handler of %s ended its own task", request.method, exc=exc)
        return encode_error(request.id, _INTERNAL)

    def _closed(
        self,
        request_id: RequestId,
        entry: InboundRequest[BackgroundTask],
        work: PendingResponse,
        size: int,
        batch: _Batch | None,
    ) -> None:
        """A task has ended, be it that it never started."""
        if not entry.has_started and entry.state is not RequestState.DONE:
            work.close()
        self._bytes_in_flight -= size
        self._session.settle(request_id, entry)
        if batch is not None:
            batch.close()
        if not self._session.incoming and self._idle is not None:
            self._idle.set_result(None)

    def _notified(self, notification: Notification, size: int) -> None:
        if notification.method == "notifications/cancelled":
            self._cancel(notification)
        work = self._responder.notify(notification, self)
        if work is None:
            return
        most = _HARD_LIMIT_FACTOR
        if len(self._notices) >= most * MAX_NOTIFICATIONS or self._notification_bytes > most * MAX_NOTIFICATION_BYTES:
            # Read on for the sake of a handler that waits for what comes, but not for ever.
            _log.warning("a notification %s was dropped: too many wait for their handlers", notification.method)
            work.close()
            return
        self._notices.append((work, size))
        self._notification_bytes += size
        self._measure()
        if len(self._notices) == 1:
            self._notification_task = self._backend.spawn(self._handle_notifications())

    async def _handle_notifications(self) -> None:
        """Handle notifications one after the other: their order means something (R-PROG-02)."""
        _handling_notification_of().set(self)
        try:
            while self._notices:
                work, size = self._notices[0]
                try:
                    await work
                except BaseException as exc:
                    task = self._notification_task  # none while its first step is made at once (Python 3.12)
                    if isinstance(exc, KeyboardInterrupt) or (task is not None and not task.is_own(exc)):
                        raise
                    _log.error("the handler of a notification ended its own task", exc=exc)
                del self._notices[0]
                self._notification_bytes -= size
                self._overdue = False
                if self.is_full:
                    self._cancel_notification_timer()
                    self._notification_timer = self._backend.call_later(
                        NOTIFICATION_TIMEOUT, self._stop_waiting_for_notifications
                    )
                self._measure()
        finally:
            self._notification_task = None
            for work, _ in self._notices:
                work.close()
            self._notices.clear()
            self._notification_bytes = 0
            self._measure()

    def _cancel(self, notification: Notification) -> None:
        try:
            params = _cancelled(notification.params)
        except (codec.ValidationError, codec.DecodeError):
            return  # R-CANC-03: malformed ones are ignored
        entry = self._session.cancel(params.request_id)
        if entry is not None and entry.task is not None:
            entry.task.cancel()

    def _resolved(self, response: Response) -> None:
        future = self._session.resolve_lenient(response.id)
        if future is not None:
            future.set_result(response.result)
        else:
            self._unmatched(response.id)

    def _failed(self, response: ErrorResponse) -> None:
        # What the peer could not read has no id; of one request that waits, it is that one (C097).
        request_id = response.id
        if request_id is None and not response.is_stray:
            request_id = self._session.only_outgoing()
        future = self._session.resolve_lenient(request_id)
        if future is not None:
            future.set_exception(response.error)
        elif response.id is None:
            self._warnings.warning("the peer could not read a message: %s", str(response.error))
        else:
            self._unmatched(response.id)

    def _unmatched(self, request_id: RequestId) -> None:
        """Say so if a response is to no request of ours: the one that it is meant for waits on (C093)."""
        if not self._session.was_asked(request_id):  # a late response is no fault
            self._warnings.warning("an answer to no request of ours came, under the id %s", request_id)

    def _malformed(self, message: bytes, frame: Malformed) -> None:
        handshake = self._session.handshake
        if is_batch(message) and handshake is not None and handshake.revision == V2025_03_26:
            self._batch(message)
        else:
            self._reject_malformed(frame, self._out)

    def _reject_malformed(self, frame: Malformed, out: Callable[[bytes], None]) -> None:
        """Tell the sender of what is not a message, or the caller that it was to answer."""
        if frame.answerable and self._answer_malformed:
            out(encode_error(frame.id, frame.error))
            return
        # Our request was answered, though not legally: its caller must not wait on.
        request_id = self._session.only_outgoing() if frame.id is None and frame.is_response else frame.id
        if (future := self._session.resolve_lenient(request_id)) is not None:
            future.set_exception(frame.error)

    def _batch(self, message: bytes) -> None:
        """Take an array of messages, and answer with one (2025-03-26 only)."""
        frames = decode_batch(message)
        if isinstance(frames, Malformed):
            self._out(encode_error(frames.id, frames.error))
            return
        batch = _Batch(self._out)
        for frame in frames:
            try:
                self._take(frame, batch)
            except Exception as exc:
                self._give_up(frame, exc, batch.add)
        batch.close()

    def _take(self, frame: Frame, batch: _Batch) -> None:
        """Take one message of a batch."""
        if isinstance(frame, Request):
            if frame.method == "initialize":
                batch.add(encode_error(frame.id, initialize_in_batch()))
            else:
                self._serve(frame, memoryview(frame.params).nbytes, batch)
        elif isinstance(frame, Malformed):
            self._reject_malformed(frame, batch.add)
        elif isinstance(frame, Notification):
            self._notified(frame, memoryview(frame.params).nbytes)
        elif isinstance(frame, Response):
            self._resolved(frame)
        else:
            self._failed(frame)

    # --- outbound ---------------------------------------------------------------------------

    def _out(self, message: bytes, *, last: bool = False) -> None:
        if self._observers.message_sent:
            self._observers.call(self._observers.message_sent, message)
        self._channel.send(message, last=last)

    def notify(self, message: bytes) -> None:
        """Send a ready notification."""
        self._out(message)

    def notify_change(self, message: bytes) -> None:
        """Send a ready notification of a change; while the peer does not read, the same one waits once.

        There are no more of them than a client can ask for, however often things change.
        """
        if self._channel.congested or self._changes:
            self._changes[message] = None
            if len(self._changes) == 1:
                self._backend.spawn(self._send_changes())
        else:
            self._out(message)

    async def _send_changes(self) -> None:
        try:
            while self._changes:
                await self.wait_writable()
                message = next(iter(self._changes), None)
                if message is not None:
                    del self._changes[message]
                    self._out(message)
        finally:
            self._changes.clear()

    async def wait_writable(self) -> None:
        """Wait while the peer does not read."""
        if self._channel.congested:
            await self._channel.drained()

    async def request(
        self,
        method: str,
        params: object,
        timeout: float | None = None,
        *,
        prepare: Callable[[RequestId, object], object] | None = None,
    ) -> Raw:
        """Make a request and wait for its result, still encoded.

        `prepare` makes the params once the id is known. If the caller is cancelled, or
        `timeout` seconds pass, the peer is asked to cancel.

        Raises:
            MCPError: The peer refused.
            RequestTimeout: No response in time.
            ConnectionClosed: The peer is gone.
        """
        if self.state is not ConnectionState.OPEN:
            raise ConnectionClosed(f"{method} was not sent: {self._end_reason}")
        future = self._backend.create_future()
        request_id = self._session.register(future)
        in_notification = _handling_notification_of().get() is self
        timer = None
        was_sent = False
        try:
            self._out(encode_request(request_id, method, params if prepare is None else prepare(request_id, params)))
            was_sent = True
            if in_notification:
                self._requests_of_notification_handlers += 1
                self._measure()
            if timeout is not None:
                late = RequestTimeout(f"{method} was not answered within {timeout} seconds")
                timer = self._backend.call_later(timeout, lambda: future.set_exception(late))
            return cast("Raw", await future.wait())
        finally:
            if timer is not None:
                timer.cancel()
            if in_notification and was_sent:
                self._requests_of_notification_handlers -= 1
                self._measure()
            if self._session.resolve(request_id) is not None and was_sent and method != "initialize":
                # The caller has stopped waiting, and the peer has not answered.
                self.notify(encode_notification("notifications/cancelled", {"requestId": request_id}))

    # --- as the peer of a request ---------------------------------------------------------------

    @property
    def handshake(self) -> Handshake | None:
        """What `initialize` settled."""
        return self._session.handshake

    @handshake.setter
    def handshake(self, handshake: Handshake) -> None:
        self._session.handshake = handshake

    async def close_stream(self, retry: float) -> None:
        """There is one channel, and it stays."""

    def notify_session(self, message: bytes) -> bool:
        """Send a notification that belongs to no request, if the peer is still there."""
        is_open = self.state is ConnectionState.OPEN
        if is_open:
            self.notify(message)
        return is_open

    def is_cancelled(self, request_id: RequestId) -> bool:
        """Return whether the request was cancelled."""
        entry = self._session.incoming.get(request_id)
        return entry is not None and entry.is_cancelled

    def on_close(self, call: Callable[[], None]) -> Callable[[], None]:
        """Register a callback for the end of input. Returns an idempotent function that unregisters it."""
        return self._close_callbacks.add(call)

    # --- the end ------------------------------------------------------------------------------

    def ended(self, why: str = "") -> None:
        """The peer sends no more: what waits for its responses fails, subscriptions end.

        `why` is put behind the text of the failures.
        """
        self._advance("input ends")
        if why:
            self._end_reason = f"the connection has ended: {why}"
        reason = f": {why}" if why else ""
        for future in self._session.resolve_all():
            future.set_exception(ConnectionClosed(f"the connection ended before the answer came{reason}"))
        self._close_callbacks.run()

    def abort_drain(self) -> None:
        """Wait for nothing more: `drain` returns at once, now or when it is called."""
        self._advance("abort drain")
        if self._idle is not None:
            self._idle.set_result(None)

    async def drain(self, seconds: float) -> bool:
        """Wait until every accepted request is answered; whether that was so in time.

        What is still running then is cancelled, and goes unanswered.
        """
        if self._session.incoming and self.state is not ConnectionState.ABORTED:
            self._idle = idle = self._backend.create_future()
            timer = self._backend.call_later(seconds, lambda: idle.set_result(None))
            try:
                await idle.wait()
            finally:
                timer.cancel()
        unfinished = list(self._session.incoming)
        for request_id in unfinished:
            entry = self._session.cancel(request_id)
            if entry is not None and entry.task is not None:
                entry.task.cancel()
        self._advance("drained")
        return not unfinished

    def _advance(self, event: str) -> None:
        self.state = CONNECTION_TRANSITIONS[self.state][event]

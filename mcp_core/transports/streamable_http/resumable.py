"""Streams that can be resumed: what is sent on them is kept in the author's event store.

Holds up when the store fails or hangs, and when a reader takes nothing any more. Knows
streams and stores; nothing of what the messages say.
Spec: 2025-11-25/basic/transports, "Resumability and Redelivery"; R-HTTPL-07, R-HTTPL-08.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias, cast

import anyio

from mcp_core import codec
from mcp_core.backend import is_cancellation, spawn_detached
from mcp_core.queue_logger import QueueLogger
from mcp_core.transports.streamable_http.event_store import EventStore
from mcp_core.transports.streamable_http.exchange import Exchange, event

__all__ = ["STORE_SECONDS", "GuardedStore", "StoreFailed", "ResumableStream"]

STORE_SECONDS: Final = 10.0
"""Seconds that one call of an event store may take; a message is sent then without being kept."""

_log = QueueLogger(__name__)
_EVENT_ID: Final = re.compile(r"[^\x00-\x1f\x7f]{1,1024}")
"""What can stand in an SSE stream, and come back in a header."""

StoreCall: TypeAlias = Callable[[], Awaitable[Any]]
Events: TypeAlias = list[tuple[str, bytes]]
"""Messages by the ids of their events."""

Later: TypeAlias = tuple[str, Events]
"""A stream, and what came on it after one of its events."""


class StoreFailed(Exception):
    """The event store raised, took too long, or returned something else; the log has it."""


class GuardedStore:
    """An event store, whose failures end what they belong to and nothing else."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._is_away = False  # the store has failed: one record in the log until it works again

    async def keep(self, stream_id: str, message: bytes) -> str | None:
        """Keep a message: its id, or `None` if it could not be kept."""
        call: StoreCall = lambda: self._store.store_event(stream_id, message)  # noqa: E731
        try:
            kept: str = await self._asked("store_event", call, _is_event_id)
        except StoreFailed:
            return None
        return kept

    async def later(self, event_id: str) -> Later | None:
        """Return what came on the stream of an event after it; `None` if the event is not known.

        Raises:
            StoreFailed: The store does not say.
        """
        call: StoreCall = lambda: self._store.replay_events_after(event_id)  # noqa: E731
        found: Later | None = await self._asked("replay_events_after", call, _is_later)
        return found

    async def _asked(self, what: str, call: StoreCall, fits: Callable[[object], bool]) -> Any:
        try:
            with anyio.fail_after(STORE_SECONDS):
                value = await call()
        except BaseException as exc:
            if isinstance(exc, KeyboardInterrupt) or is_cancellation(exc):
                raise
            self._failed(f"{what} raised {type(exc).__name__}", exc)
            raise StoreFailed from None
        if not fits(value):
            self._failed(f"{what} returned {value!r:.100}")
            raise StoreFailed
        self._is_away = False
        return value

    def _failed(self, how: str, exc: BaseException | None = None) -> None:
        if self._is_away:
            _log.warning("the event store fails still: %s", how)
        else:
            _log.error("the event store failed: %s; what it does not keep cannot be sent again", how, exc=exc)
        self._is_away = True


def _is_event_id(value: object) -> bool:
    return isinstance(value, str) and _EVENT_ID.fullmatch(value) is not None


def _is_later(value: Any) -> bool:
    return value is None or (
        _is_pair(value)
        and isinstance(value[0], str)
        and codec.is_array(value[1])
        and all(_is_pair(each) and _is_event_id(each[0]) and isinstance(each[1], bytes) for each in value[1])
    )


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(cast("tuple[Any, ...]", value)) == 2


class StreamState(enum.Enum):
    """Life of a stream whose events are stored."""

    DETACHED = "detached"
    """No reader: what is sent is stored, for a client that resumes the stream."""
    ATTACHED = "attached"
    """One reader, which gets what is sent once it is stored."""
    ENDED = "ended"
    """Nothing more is sent; a reader that resumes the stream gets the rest, and is detached."""


STREAM_TRANSITIONS: Final[Mapping[StreamState, Mapping[str, StreamState]]] = {
    StreamState.DETACHED: {
        "attach": StreamState.ATTACHED,
        "detach": StreamState.DETACHED,
        "end": StreamState.ENDED,
    },
    StreamState.ATTACHED: {
        "attach": StreamState.ATTACHED,
        "detach": StreamState.DETACHED,
        "end": StreamState.ENDED,
    },
    StreamState.ENDED: {"attach": StreamState.ENDED, "detach": StreamState.ENDED, "end": StreamState.ENDED},
}
"""Where each event leads. Attaching detaches the reader before, if there is one."""


class ResumableStream:
    """One stream of a session whose events are stored, so that a client can resume it.

    One reader at a time, the newest: a client may resume the stream because its
    old connection is dead, which we cannot see. One lock orders storing and writing,
    so that a resuming reader misses, repeats and reorders nothing; a reader that
    takes nothing holds the lock until it is displaced, which needs no lock.
    """

    def __init__(self, store: GuardedStore, stream_id: str, *, primes: bool) -> None:
        self._store = store
        self.stream_id = stream_id
        self.primes = primes  # whether a reader gets an event id first, to resume by (2025-11-25)
        self._lock = anyio.Lock()  # held from storing an event until it is written, so no reader sees another order
        # Gets what is sent; attached under the lock, detached at any time without it.
        self._reader: Exchange | None = None
        # The reader that asked last, while it waits for the lock: earlier ones give up.
        self._newest: Exchange | None = None
        self._missed: Events | None = None
        """What was put while the newest reader waits for the stream; `None` while none does."""
        # Cancelled by `detach`, so that a reader which takes nothing does not keep the lock.
        self._writing: anyio.CancelScope | None = None
        self._released = anyio.Event()  # set, and replaced, each time a reader is detached
        self.state: StreamState = StreamState.DETACHED

    @property
    def is_stuck(self) -> bool:
        """Whether something is being written that the reader has not taken yet."""
        return self._writing is not None

    async def put(self, message: bytes) -> None:
        """Store a message (empty: a priming event), and send it to the reader."""
        async with self._lock:
            if self.state is not StreamState.ENDED:
                await self._put(message)

    async def _put(self, message: bytes) -> None:
        event_id = await self._store.keep(self.stream_id, message)
        if self._missed is not None and event_id is not None:
            self._missed.append((event_id, message))
        if message or event_id is not None:
            await self._write(event(message, event_id))

    async def _write(self, data: bytes) -> None:
        reader = self._reader
        if reader is None:
            return
        try:
            with anyio.CancelScope() as self._writing:
                await reader.write(data)
        finally:
            self._writing = None

    async def open(self, reader: Exchange) -> None:
        """Give the stream to a reader from here on, with an event to come back with where one is known."""
        self.displace()
        self._newest = reader
        async with self._lock:
            if self._newest is not reader or self.state is StreamState.ENDED:
                return
            self._reader = reader
            self._advance("attach")
            if self.primes:
                await self._put(b"")

    async def resume(self, reader: Exchange, last_event_id: str, events: Events) -> None:
        """Give it to a reader that has missed these events after its last; if it has ended, just the rest of it.

        The store is asked once more for what came meanwhile. It may have forgotten the last event by then,
        so what is put until the reader has the stream is noted here as well.

        Raises:
            StoreFailed: The store does not say.
        """
        self.displace()
        noted: Events = []
        self._newest, self._missed = reader, noted
        try:
            await reader.open_stream()
            async with self._lock:
                if self._newest is not reader:
                    return  # a newer one waits for the same
                known = await self._store.later(events[-1][0] if events else last_event_id)
                if self._newest is not reader:
                    return
                self._reader, self._missed = reader, None
                self._advance("attach")
                newer = known[1] if known is not None else [each for each in noted if each not in events]
                for event_id, message in (*events, *newer):
                    await self._write(event(message, event_id))
                    if self._reader is not reader:
                        return
                if self.state is StreamState.ENDED:
                    self.displace()
        finally:
            if self._missed is noted:
                self._missed = None

    def displace(self) -> None:
        """Detach the reader, even amid a message: the message is stored for the next."""
        before = self._reader
        if before is not None and self.detach(before) and before.method == "POST":
            spawn_detached(lambda: _end(before))  # the task of the request is busy with its handler

    def detach(self, reader: Exchange) -> bool:
        """Take the stream from this reader; whether it still had it."""
        if self._reader is not reader:
            return False
        self._reader = None
        self._advance("detach")
        released, self._released = self._released, anyio.Event()
        released.set()
        if self._writing is not None:
            self._writing.cancel()
        return True

    async def wait_detached(self, reader: Exchange) -> None:
        """Wait until this reader has the stream no more."""
        while self._reader is reader:
            await self._released.wait()

    def _advance(self, event: str) -> None:
        self.state = STREAM_TRANSITIONS[self.state][event]

    async def end(self, message: bytes = b"") -> None:
        """Put the last message, if there is one, and end the stream for good."""
        async with self._lock:
            if self.state is StreamState.ENDED:
                return
            if message:
                await self._put(message)
            self._advance("end")
            if self._reader is not None:
                self.detach(self._reader)

    async def cut_off(self) -> None:
        """End the stream for good, without waiting for the reader."""
        self.displace()
        await self.end()


async def _end(exchange: Exchange) -> None:
    try:
        await exchange.end_stream()
    except Exception as exc:
        _log.debug("a response could not be ended: %s", type(exc).__name__)

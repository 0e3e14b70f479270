"""Faults on purpose: channels, ASGI apps and awaits that go wrong at a chosen point. For tests; see `mcp_core.testing`.

Each operation of a faulty channel (a message sent, a chunk passed on) and each `receive` and
`send` of a faulty app is a *point*; a `Schedule` says what happens at each. With one fault at
the k-th point, for k = 0, 1, 2, ... until none fires, a test goes through every moment at
which a transport can fail; with `Schedule.random` it goes through many at once. `cancelled_at`
does the same with cancellation at every await.
"""

from __future__ import annotations

import random
import socket
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, MutableMapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import anyio
import anyio.lowlevel

from mcp_core.backend import Backend, Future, Pollable
from mcp_core.channel import Channel, Receiver
from mcp_core.transports.lines import LineChannel
from mcp_core.transports.memory import MemoryChannel, memory_pair

__all__ = ["Fault", "FaultyApp", "Schedule", "StartedChannel", "cancelled_at", "faulty_pair"]

Fault: TypeAlias = Literal["delay", "split", "drop", "stall", "fail", "close"]
"""What can happen at a point.

`delay`: it happens a few turns of the loop later, and what comes after it waits its turn.
`split`: it comes in pieces, a byte the smallest (descriptors only; a delay in memory).
`drop`: it is lost (on descriptors the stream ends with it, since half a line is none).
`stall`: nothing is passed on for a while, so that back-pressure builds up.
`fail`: the operation raises, or the connection breaks with data on its way.
`close`: the connection is closed, after what was sent before.
"""

HARMLESS: Final[tuple[Fault, ...]] = ("delay", "split", "stall")
"""Faults after which everything still arrives."""

TURNS: Final = 3
"""Turns of the loop that a delay takes."""

STALL: Final = 0.01
"""Seconds that a stall takes."""


class Schedule:
    """Says what happens at each point, and keeps what did.

    `faults` maps the number of a point, from 0, to a fault. After a `fail` or a `close` nothing
    else happens: the channel is no more.
    """

    def __init__(self, faults: dict[int, Fault] | None = None) -> None:
        self._faults: dict[int, Fault] = dict(faults or {})
        self._rng: random.Random | None = None
        self._rate = 0.0
        self._kinds: tuple[Fault, ...] = HARMLESS
        self.points: int = 0
        """How many points were passed."""
        self.fired: list[tuple[int, str, Fault]] = []
        """Which faults happened: point, operation, fault."""

    @classmethod
    def random(cls, seed: int, rate: float = 0.1, kinds: tuple[Fault, ...] = HARMLESS) -> Schedule:
        """Return a schedule of faults of these kinds at this share of all points, the same for the same seed."""
        schedule = cls()
        schedule._rng = random.Random(seed)
        schedule._rate = rate
        schedule._kinds = kinds
        return schedule

    def next(self, operation: str) -> Fault | None:
        """Pass a point: what happens at it, if anything."""
        point = self.points
        self.points += 1
        rng, kinds = self._rng, self._kinds
        fault: Fault | None = self._faults.get(point)
        if fault is None and rng is not None and rng.random() < self._rate:
            fault = kinds[rng.randrange(len(kinds))]
        if fault is not None:
            self.fired.append((point, operation, fault))
        return fault


# --- channels -------------------------------------------------------------------------------


class StartedChannel(Channel):
    """A channel that is started with its receiver, and can be closed from this side."""

    def start(self, receiver: Receiver) -> None:
        """Bring messages to this receiver from now on."""
        raise NotImplementedError

    def close(self) -> None:
        """Close both ends."""
        raise NotImplementedError


@asynccontextmanager
async def faulty_pair(
    backend: Backend, schedule: Schedule, over: Literal["memory", "descriptors"] = "memory"
) -> AsyncGenerator[tuple[StartedChannel, StartedChannel], None]:
    """Two connected channels with the faults of a schedule between them; closed at the end of the block.

    `start(receiver)` each of them. Over descriptors they are `LineChannel`s with a relay between
    them that passes chunks on. A message arrives at most once, and in order, whatever the schedule.
    """
    pair = _in_memory(backend, schedule) if over == "memory" else _over_descriptors(backend, schedule)
    try:
        yield pair
    finally:
        for channel in pair:
            channel.close()


def _in_memory(backend: Backend, schedule: Schedule) -> tuple[StartedChannel, StartedChannel]:
    left, right = memory_pair(backend)
    return _FaultyMemory(backend, schedule, left, "left"), _FaultyMemory(backend, schedule, right, "right")


class _FaultyMemory(StartedChannel):
    def __init__(self, backend: Backend, schedule: Schedule, inner: MemoryChannel, name: str) -> None:
        self._backend = backend
        self._schedule = schedule
        self._inner = inner
        self._name = name
        self._held: deque[bytes] = deque()
        self._holds = False
        self._stalled = False
        self._waiters: list[Future] = []

    def start(self, receiver: Receiver) -> None:
        """Bring messages to this receiver from now on."""
        self._inner.start(receiver)

    def resume(self) -> None:
        """Bring messages in again."""
        self._inner.resume()

    @property
    def congested(self) -> bool:
        """Whether it stalls, or the other end is full."""
        return self._stalled or self._inner.congested

    async def drained(self) -> None:
        """Wait until neither is so."""
        while self._stalled:
            future = self._backend.create_future()
            self._waiters.append(future)
            await future.wait()
        await self._inner.drained()

    def send(self, message: bytes, *, last: bool = False) -> None:
        """Hand a message to the other end, or what the schedule makes of it."""
        fault = self._schedule.next(f"{self._name} sends")
        if fault == "drop":
            return
        if fault in ("fail", "close"):
            if fault == "fail":
                self._held.clear()
            self._let_go()
            self._inner.close()
            return
        self._held.append(message)
        if fault is not None and not self._holds:
            self._holds = True
            self._stalled = fault == "stall"
            if self._stalled:
                self._backend.call_later(STALL, self._let_go)
            else:
                self._turn(TURNS)
        elif not self._holds:
            self._let_go()

    def _turn(self, left: int) -> None:
        self._backend.call_soon(partial(self._turn, left - 1) if left else self._let_go)

    def _let_go(self) -> None:
        """Hand over what was held back, and wake who waits."""
        self._holds = self._stalled = False
        while self._held:
            self._inner.send(self._held.popleft())
        waiters, self._waiters = self._waiters, []
        for future in waiters:
            future.set_result(None)

    def close(self) -> None:
        """Close both ends."""
        self._let_go()
        self._inner.close()


def _over_descriptors(backend: Backend, schedule: Schedule) -> tuple[StartedChannel, StartedChannel]:
    near_left, far_left = socket.socketpair()
    near_right, far_right = socket.socketpair()
    relay = _Relay(backend, schedule, far_left, far_right)
    left = _FaultyLines(backend, near_left, relay, back_pressure=False)
    right = _FaultyLines(backend, near_right, relay, back_pressure=True)
    return left, right


class _FaultyLines(StartedChannel):
    def __init__(self, backend: Backend, end: socket.socket, relay: _Relay, *, back_pressure: bool) -> None:
        self._backend = backend
        self._end = end
        self._relay = relay
        self._inner = LineChannel(backend, end.fileno(), end.fileno(), back_pressure=back_pressure)
        self._runs = False

    def start(self, receiver: Receiver) -> None:
        """Bring messages to this receiver from now on."""
        self._runs = True
        self._backend.spawn(self._run(receiver))

    async def _run(self, receiver: Receiver) -> None:
        try:
            await self._inner.run(receiver)
        finally:
            self._runs = False
            self._let_go()

    @property
    def congested(self) -> bool:
        """As of the channel itself."""
        return self._inner.congested

    async def drained(self) -> None:
        """As of the channel itself."""
        await self._inner.drained()

    async def flush(self, seconds: float) -> None:
        """As of the channel itself."""
        await self._inner.flush(seconds)

    def resume(self) -> None:
        """As of the channel itself."""
        self._inner.resume()

    def send(self, message: bytes, *, last: bool = False) -> None:
        """As of the channel itself; what goes wrong does so behind it."""
        self._inner.send(message, last=last)

    def close(self) -> None:
        """Close this end."""
        self._inner.stop()
        self._inner.release()
        self._relay.close()
        if not self._runs:
            self._let_go()

    def _let_go(self) -> None:
        self._inner.release()
        if self._end.fileno() >= 0:
            self._end.close()


class _Relay:
    """Passes chunks on between two sockets, both ways, as the schedule lets it."""

    def __init__(self, backend: Backend, schedule: Schedule, left: socket.socket, right: socket.socket) -> None:
        self._backend = backend
        self._schedule = schedule
        self._ends = (left, right)
        self._pending: list[bytearray] = [bytearray(), bytearray()]
        """What waits to be written to each end."""
        self._piece: list[int] = [65536, 65536]
        self._reading: list[Pollable] = []
        self._writing: list[Pollable] = []
        self._closed = False
        for at, end in enumerate(self._ends):
            end.setblocking(False)
            self._reading.append(backend.watch_readable(end.fileno(), partial(self._readable, at)))
            self._writing.append(backend.watch_writable(end.fileno(), partial(self._write, 1 - at)))

    def _readable(self, at: int) -> None:
        try:
            data = self._ends[at].recv(4096)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._end_after_rest()
            return
        fault = self._schedule.next(f"{'left' if at == 0 else 'right'} sends")
        if fault in ("fail", "drop"):
            self.close()
        elif fault == "close":
            self._pending[at] += data
            self._end_after_rest()
        else:
            self._pending[at] += data
            self._piece[at] = 1 + len(data) // 7 if fault == "split" else 65536
            self._reading[at].pause()  # one chunk at a time, so that order and points are the same each time
            if fault == "stall":
                self._backend.call_later(STALL, partial(self._write, at))
            elif fault == "delay":
                self._turn(at, TURNS)
            else:
                self._write(at)

    def _turn(self, at: int, left: int) -> None:
        self._backend.call_soon(partial(self._turn, at, left - 1) if left else partial(self._write, at))

    def _write(self, at: int) -> None:
        """Write what came from this end to the other one."""
        if self._closed:
            return
        to, pending = 1 - at, self._pending[at]
        try:
            written = self._ends[to].send(pending[: self._piece[at]]) if pending else 0
        except (BlockingIOError, InterruptedError):
            written = 0
        except OSError:
            self.close()
            return
        del pending[:written]
        if pending:
            self._writing[to].resume()
            return
        self._writing[to].pause()
        self._reading[at].resume()

    def _end_after_rest(self) -> None:
        """Write what can be written at once, and close."""
        for at in (0, 1):
            if self._pending[at]:
                try:
                    self._ends[1 - at].send(self._pending[at])
                except OSError:
                    pass  # the peer is closed
        self.close()

    def close(self) -> None:
        """Close both sides."""
        if self._closed:
            return
        self._closed = True
        for watched in (*self._reading, *self._writing):
            watched.pause()
        for end in self._ends:
            end.close()


# --- ASGI -----------------------------------------------------------------------------------

ASGIMessage: TypeAlias = MutableMapping[str, Any]
ASGIReceive: TypeAlias = Callable[[], Awaitable[ASGIMessage]]
ASGISend: TypeAlias = Callable[[ASGIMessage], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[MutableMapping[str, Any], ASGIReceive, ASGISend], Awaitable[None]]


class FaultyApp:
    """An ASGI app whose `receive` and `send` are faulty, as a network is.

    `delay`, `split` and `stall` let it happen later. `fail` makes `send` raise `OSError` and
    `receive` tell of a disconnect, as servers do whose client is gone; so does `close`, but for
    `send`, which does nothing. A `drop` hangs for as long as the client is there: that of one
    who is connected and reads nothing.
    """

    def __init__(self, app: ASGIApp, schedule: Schedule) -> None:
        self._app = app
        self._schedule = schedule

    async def __call__(self, scope: MutableMapping[str, Any], receive: ASGIReceive, send: ASGISend) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        wire = _FaultyWire(self._schedule, receive, send)
        await self._app(scope, wire.receive, wire.send)


class _FaultyWire:
    def __init__(self, schedule: Schedule, receive: ASGIReceive, send: ASGISend) -> None:
        self._schedule = schedule
        self._receive = receive
        self._send = send
        self._gone: Fault | None = None
        self._sending = anyio.Lock()
        """One message goes out at a time, as on a socket: what hangs holds up what comes after it."""

    async def receive(self) -> ASGIMessage:
        """Tell what the client sends, or that it has gone."""
        if self._gone is not None:
            return {"type": "http.disconnect"}
        await self._at(self._schedule.next("receive"))
        return {"type": "http.disconnect"} if self._gone is not None else await self._receive()

    async def send(self, message: ASGIMessage) -> None:
        """Send to the client, if it is there."""
        async with self._sending:
            if self._gone is None:
                await self._at(self._schedule.next("send"))
            if self._gone is None:
                await self._send(message)
            elif self._gone == "fail":
                raise OSError("the client is gone")

    async def _at(self, fault: Fault | None) -> None:
        if fault in ("fail", "close"):
            self._gone = fault
        elif fault == "drop":
            while (await self._receive())["type"] != "http.disconnect":
                pass
            self._gone = "close"
        elif fault == "stall":
            await anyio.sleep(STALL)
        elif fault is not None:
            for _ in range(TURNS):
                await anyio.lowlevel.checkpoint()


# --- cancellation ---------------------------------------------------------------------------


async def cancelled_at(point: int, call: Callable[[], Coroutine[object, object, object]]) -> bool:
    """Run a coroutine function, and cancel it at its `point`-th await, from 0, that really waits.

    Returns whether it came so far. Exceptions of the coroutine pass; its cancellation does not.
    """
    scope = anyio.CancelScope()
    cut = _Cut(call(), point, scope)
    with scope:
        await cut
    return cut.reached


class _Cut:
    """Awaits a coroutine, and cancels the scope around it when it waits for the n-th time."""

    def __init__(self, work: Coroutine[object, object, object], point: int, scope: anyio.CancelScope) -> None:
        self._work = work
        self._left = point
        self._scope = scope
        self.reached = False

    def __await__(self) -> Generator[object, object, object]:
        steps = self._work.__await__()
        result = yield from _watched(steps, self._waits)
        return result

    def _waits(self) -> None:
        if self._left == 0:
            self.reached = True
            self._scope.cancel()
        self._left -= 1


def _watched(steps: Generator[object, object, object], waits: Callable[[], None]) -> Generator[object, object, object]:
    """Yield the same steps, with a call before each of them is waited for."""
    try:
        step = next(steps)
    except StopIteration as done:
        return done.value
    while True:
        waits()
        try:
            sent = yield step
        except GeneratorExit:
            steps.close()
            raise
        except BaseException as exc:
            try:
                step = steps.throw(exc)
            except StopIteration as done:
                return done.value
        else:
            try:
                step = steps.send(sent)
            except StopIteration as done:
                return done.value

"""Newline framing over a pair of descriptors: what stdio is made of, on either side.

Reads large chunks and writes gathered ones, straight from the event loop, without a
thread hop per line. A descriptor that the loop cannot watch (a regular file, a
Windows pipe) is read by one thread instead.

Theory of operation. Two queues with one pump each, both in callbacks of the loop:

    read_fd -> splitter -> _lines -> receiver        _deliver, paused by _hold
    write_fd <- _unwritten <- _out <- send()         _write, once a turn or when writable

- `_waiting` counts the bytes of `_out` and `_unwritten`. Above `HIGH_WATER` the channel is
  congested: with back-pressure nothing more is read or delivered (a peer that does not read its
  responses must not have more of them made), and senders that await `drained` wait.
- Room wakes one future a turn: what it sends is counted before the next one is woken.
- While the kernel takes less than it was given, `_unwritten` holds the rest, and `_out` waits.
- A receiver that is full pauses delivery in the same way; `resume` continues it.
- Lifetimes: `run` attaches the reader and ends with the input, or by `stop`; `release` detaches the
  writer, drops what is unwritten, and wakes all waiters. Both are idempotent.
Spec: basic/transports/stdio.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from mcp_core.backend import Backend, Future, Pollable, Timer
from mcp_core.channel import Receiver

__all__ = ["HANG_UP", "HEAD", "MAX_MESSAGE", "LineChannel", "LineSplitter"]

MAX_MESSAGE: Final = 64 * 1024 * 1024
"""Bytes that one message may have by default."""

HEAD: Final = 4096
"""Bytes kept of a message that is too large, to find its id in."""

SMALL_CHUNK: Final = 64 * 1024
"""Bytes of one read, which is what a pipe holds by default."""

CHUNK: Final = 256 * 1024
HIGH_WATER: Final = 256 * 1024
"""Bytes that may wait to be written before reading stops and new handlers are held back."""

HANG_UP: Final = 5.0
"""Seconds that a peer which has closed its end may take nothing while much waits for it."""


class LineSplitter:
    """Cuts a byte stream into lines, whatever the chunks it comes in.

    Blank lines are dropped; `\\r\\n` ends a line as well as `\\n`. Of a line beyond the
    limit only the head is kept.
    """

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        self._limit = limit
        self._parts: list[bytes] = []  # chunks of the line that is not complete yet, joined when its end comes
        self._size = 0  # bytes in `_parts`, or read so far of a line that is too long
        self._head: bytes | None = None  # first bytes of a line over the limit, whose rest is dropped; else `None`

    def feed(self, chunk: bytes) -> tuple[list[bytes], list[bytes]]:
        """Return the lines that this chunk completes, and the heads of those that were too long."""
        if b"\n" not in chunk:
            self._append(chunk)
            return [], []
        first, *rest = chunk.split(b"\n")
        lines: list[bytes] = []
        refused: list[bytes] = []
        self._append(first)
        self._finish(lines, refused)
        for line in rest[:-1]:
            if len(line) > self._limit:
                refused.append(line[:HEAD])
            elif line and not line.isspace():
                lines.append(line)
        self._append(rest[-1])
        return lines, refused

    def end(self) -> tuple[list[bytes], list[bytes]]:
        """Return what stands after the last newline: a message too, if it is one."""
        lines: list[bytes] = []
        refused: list[bytes] = []
        self._finish(lines, refused)
        return lines, refused

    def _append(self, part: bytes) -> None:
        if not part:
            return
        self._size += len(part)
        if self._size > self._limit:
            before = b"".join(self._parts) if self._head is None else self._head
            self._head = before[:HEAD] + part[: max(0, HEAD - len(before))]
            self._parts.clear()
        else:
            self._parts.append(part)

    def _finish(self, lines: list[bytes], refused: list[bytes]) -> None:
        if self._head is not None:
            refused.append(self._head)
        elif self._parts:
            line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            if not line.isspace():
                lines.append(line)
        self._parts.clear()
        self._size = 0
        self._head = None


class LineChannel:
    """A `Channel` over two descriptors, which stay its opener's to close.

    `run` brings messages in until the input ends; `flush` waits until all are out. The
    output descriptor does not block between `LineChannel(...)` and `release`.

    With `back_pressure` nothing is read while much waits to be written. One end of a
    pair may do so, the server; if both did, two large messages could wait for each
    other for ever.
    """

    def __init__(
        self,
        backend: Backend,
        read_fd: int,
        write_fd: int,
        *,
        max_message: int = MAX_MESSAGE,
        back_pressure: bool = False,
    ) -> None:
        self._backend = backend
        self._back_pressure = back_pressure
        self._read_fd = read_fd
        self._read_size = SMALL_CHUNK  # `CHUNK` after a read that was full
        self._write_fd = write_fd
        self._max_message = max_message
        self._splitter = LineSplitter(max_message)
        self._receiver: Receiver | None = None  # the connection; attached by `run`, for as long as that runs
        self._lines: list[bytes] = []  # read and split, from `_next` on not delivered yet
        self._next = 0
        self._reading: Pollable | None = None  # `None` before `run`
        self._input_ended = False  # end of file; lines may still be undelivered
        self._stopped = False  # nothing more is delivered; `_done` is set
        self._done: Future = backend.create_future()  # resolved at the end of input or by `stop`: `run` returns
        self._out: list[bytes] = []  # sent since the last write, not joined yet
        self._waiting = 0  # bytes of `_out` and `_unwritten`
        self._written = 0  # bytes that the kernel has taken, ever: whether the peer reads
        self._looking: Timer | None = None  # set while reading is paused: looks for a hang-up
        self._unwritten = memoryview(b"")  # joined bytes that the kernel has not taken
        self._flush_planned = False  # at most one flush a turn
        self._delivering = False  # `receive` may send, which must not deliver again
        self._writing: Pollable | None = None  # made when the kernel first takes less than all
        self._drain_waiters: list[Future] = []  # woken one at a time, when there is room
        self._empty_waiters: list[Future] = []  # woken together, when all is written
        self._broken = False  # the read end is closed: what is sent is dropped
        # Restored by `release`: the descriptor may be shared with other processes (a terminal).
        self._was_blocking = _set_blocking(write_fd, False)

    def release(self) -> None:
        """Give the output descriptor back as it was; nothing more is written to it."""
        self._discard_output()
        if self._was_blocking:
            _set_blocking(self._write_fd, True)

    # --- in -------------------------------------------------------------------------------

    async def run(self, receiver: Receiver) -> None:
        """Hand every message to the receiver until the input ends, then tell it so."""
        self._receiver = receiver
        try:
            self._reading = self._backend.watch_readable(self._read_fd, self._readable)
        except (OSError, NotImplementedError):
            self._reading = _ThreadReader(self._backend, self._read_fd, self._took)
        try:
            await self._done.wait()
        finally:
            self.stop()
            receiver.ended()

    def stop(self) -> None:
        """Take no more messages; `run` returns."""
        self._stopped = True
        if self._looking is not None:
            self._looking.cancel()
        if self._reading is not None:
            self._reading.pause()
        self._done.set_result(None)

    def _readable(self) -> None:
        try:
            chunk = os.read(self._read_fd, self._read_size)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            chunk = b""  # the other side is gone, or a terminal hung up
        # A buffer beyond the allocator's threshold for memory of its own (128 KiB with glibc) costs three system calls
        # for each read, whatever comes: it is made only for a peer that fills the small one.
        self._read_size = CHUNK if len(chunk) >= SMALL_CHUNK else SMALL_CHUNK
        self._took(chunk)

    def _took(self, chunk: bytes) -> None:
        if self._stopped or self._input_ended:
            return
        if chunk:
            lines, refused = self._splitter.feed(chunk)
        else:
            lines, refused = self._splitter.end()
            self._input_ended = True
        receiver = self._receiver
        assert receiver is not None
        for head in refused:
            receiver.refuse(head, self._max_message)
        self._lines = self._lines[self._next :] + lines if self._lines else lines
        self._next = 0
        self._deliver()

    def _deliver(self) -> None:
        """Hand out lines while the peer reads what they are answered with, and the receiver has room."""
        receiver, lines = self._receiver, self._lines
        if receiver is None or self._stopped or self._delivering:
            return
        self._delivering = True
        try:
            while self._next < len(lines) and not self._holds_back and not self._stopped:
                self._next += 1
                receiver.receive(lines[self._next - 1])
                if self._out and (self._next == len(lines) or self._holds_back):
                    self._flush()  # what was answered at once
        finally:
            self._delivering = False
        if self._next < len(lines) or receiver.is_full:
            self._hold()
            return
        self._lines = []
        if self._input_ended:
            self.stop()
        elif not self._holds_back and self._reading is not None:
            self._reading.resume()

    def resume(self) -> None:
        """Go on with lines that waited for the receiver, in a turn of their own."""
        self._backend.call_soon(self._deliver)

    @property
    def _holds_back(self) -> bool:
        receiver = self._receiver
        return (self._back_pressure and self.congested) or (receiver is not None and receiver.is_full)

    def _hold(self) -> None:
        """Read no more until what was answered is taken.

        Who does not read does not see the end of the input either: it is looked for now and then.
        """
        if self._reading is not None:
            self._reading.pause()
        if self._back_pressure and self.congested and self._looking is None and not self._stopped:
            self._looking = self._backend.call_later(HANG_UP, partial(self._look_for_end, self._written))

    def _look_for_end(self, written: int) -> None:
        """Stop if the peer has closed its end, and has taken nothing since."""
        self._looking = None
        if self._stopped or not self.congested:
            return
        if written == self._written and _has_hung_up(self._read_fd):
            self.stop()
        else:
            self._hold()

    # --- out ------------------------------------------------------------------------------

    @property
    def congested(self) -> bool:
        """Whether more waits to be written than should be added to."""
        return self._waiting > HIGH_WATER

    def send(self, message: bytes, *, last: bool = False) -> None:
        """Take one message. Those of one turn of the loop leave in one write."""
        if self._broken:
            return
        self._out.append(message)
        self._waiting += len(message) + 1
        if last:
            self._flush()
        elif not self._flush_planned and not self._delivering:
            self._flush_planned = True
            self._backend.call_soon(self._planned_flush)

    async def drained(self) -> None:
        """Wait until the send buffer has room, or the read end is closed. Wakes one at a time."""
        while self.congested:
            future = self._backend.create_future()
            self._drain_waiters.append(future)
            try:
                await future.wait()
            except BaseException:
                # Its turn, if it has come already, must not be lost with it.
                self._backend.call_soon(self._wake_one)
                raise
            finally:
                if future in self._drain_waiters:
                    self._drain_waiters.remove(future)
        # What this one writes comes after its next step, so the next may be woken then.
        self._backend.call_soon(self._wake_one)

    def _wake_one(self) -> None:
        if self._drain_waiters and not self.congested:
            self._drain_waiters.pop(0).set_result(None)

    def _planned_flush(self) -> None:
        self._flush_planned = False
        self._flush()

    def _flush(self) -> None:
        if self._unwritten or not self._out:
            return  # what waits first goes first; `_write` continues with the rest
        self._gather()
        self._write()

    def _gather(self) -> None:
        self._out.append(b"")
        self._unwritten = memoryview(b"\n".join(self._out))
        self._out = []

    def _write(self) -> None:
        while self._unwritten:
            try:
                written = os.write(self._write_fd, self._unwritten)
            except BlockingIOError:
                self._await_room()
                return
            except InterruptedError:
                continue
            except OSError:
                self._discard_output()
                return
            self._unwritten = self._unwritten[written:]
            self._waiting -= written
            self._written += written
            if not self._unwritten and self._out:
                self._gather()
        if self._writing is not None:
            self._writing.pause()
        for future in self._empty_waiters:
            future.set_result(None)
        self._wake_one()
        self._deliver()  # and read on, if reading was held

    def _await_room(self) -> None:
        self._wake_one()  # does so only if there is room
        if self._holds_back:
            self._hold()
        else:
            self._deliver()
        if self._writing is None:
            self._writing = self._backend.watch_writable(self._write_fd, self._write)
        self._writing.resume()

    def _discard_output(self) -> None:
        """The read end is closed: discard buffered output and wake all waiters."""
        self._broken = True
        self._out.clear()
        self._unwritten = memoryview(b"")
        self._waiting = 0
        if self._writing is not None:
            self._writing.pause()
        for future in (*self._drain_waiters, *self._empty_waiters):
            future.set_result(None)
        self.stop()

    async def flush(self, seconds: float) -> None:
        """Wait until everything is written, this long at most."""
        self._flush()
        if not self._waiting:
            return
        future = self._backend.create_future()
        self._empty_waiters.append(future)
        timer = self._backend.call_later(seconds, lambda: future.set_result(None))
        try:
            await future.wait()
        finally:
            timer.cancel()
            self._empty_waiters.remove(future)


def _has_hung_up(fd: int) -> bool:
    """Return whether the other end of a descriptor is closed; false where that is unknown."""
    if not hasattr(select, "poll"):  # Windows
        return False
    poll = select.poll()
    poll.register(fd, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def _set_blocking(fd: int, blocking: bool) -> bool:
    """Change a descriptor's mode; what it was before."""
    try:
        before = os.get_blocking(fd)
        os.set_blocking(fd, blocking)
    except OSError:  # no such notion here (a Windows pipe before Python 3.12)
        return True
    return before


class _ThreadReader:
    """Reads a descriptor that cannot be watched, a chunk ahead at most."""

    def __init__(self, backend: Backend, fd: int, took: Callable[[bytes], None]) -> None:
        self._may_read = threading.Event()  # cleared while paused; the thread waits for it before each read
        self._taken = threading.Semaphore(0)  # released when the loop has taken a chunk: one is in flight at a time
        self._backend, self._fd, self._took = backend, fd, took
        self._may_read.set()
        threading.Thread(target=self._read, name="mcp_core.reader", daemon=True).start()

    def pause(self) -> None:
        self._may_read.clear()

    def resume(self) -> None:
        self._may_read.set()

    def _read(self) -> None:
        while True:
            self._may_read.wait()
            try:
                chunk = os.read(self._fd, CHUNK)
            except OSError:
                chunk = b""
            self._backend.call_threadsafe(partial(self._hand_over, chunk))
            if not chunk:
                return
            self._taken.acquire()

    def _hand_over(self, chunk: bytes) -> None:
        self._took(chunk)
        self._taken.release()

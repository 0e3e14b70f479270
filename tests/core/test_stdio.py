"""stdio on real processes: framing, shutdown, signals, back-pressure, memory."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO, Any

import anyio
import pytest

from mcp_core import Client, StdioServerParameters
from mcp_core.backend import Backend, open_backend
from mcp_core.channel import Channel, Receiver
from mcp_core.testing import Inbox, check_channel
from mcp_core.transports.lines import LineChannel
from mcp_core.transports.memory import memory_pair
from mcp_core.types import TextContent
from tests.core.peers import code_of, legacy, line, modern
from tests.leash import leashed
from tests.pace import Stopwatch

ROOT = Path(__file__).parents[2]
LOOPS = ["asyncio", "trio", "uvloop"]


def call(request_id: Any, tool: str, **arguments: Any) -> bytes:
    """A `tools/call` as a line."""
    return line(modern(request_id, "tools/call", {"name": tool, "arguments": arguments})) + b"\n"


PING = line(legacy("ping", "ping")) + b"\n"


class Process:
    """A server process. Everything that it is waited for has a deadline."""

    def __init__(self, running: subprocess.Popen[bytes], errors: IO[bytes] | None) -> None:
        self.running = running
        self._errors = errors
        self._lines: list[bytes] = []
        self._rest = b""

    def send(self, data: bytes) -> None:
        assert self.running.stdin is not None
        self.running.stdin.write(data)
        self.running.stdin.flush()

    def read(self, seconds: float = 60.0) -> bytes:
        """What stdout has next, of any length; empty at its end."""
        out = self.running.stdout
        assert out is not None
        ready, _, _ = select.select([out], [], [], seconds)
        if not ready:
            raise TimeoutError(f"nothing came within {seconds} seconds")
        return os.read(out.fileno(), 1 << 20)

    def receive_line(self, seconds: float = 60.0) -> bytes:
        parts = [self._rest]
        while not self._lines:
            chunk = self.read(seconds)
            assert chunk, "stdout ended"
            parts.append(chunk)
            if b"\n" in chunk:
                *self._lines, rest = b"".join(parts).split(b"\n")
                parts = [rest]
        self._rest = b"".join(parts)
        return self._lines.pop(0)

    def receive(self, seconds: float = 60.0) -> Any:
        return json.loads(self.receive_line(seconds))

    def ask(self, data: bytes) -> Any:
        self.send(data)
        return self.receive()

    def finish(self, seconds: float = 60.0) -> tuple[list[bytes], int]:
        """Close stdin and wait for the end: the lines that still came, and the exit code."""
        assert self.running.stdin is not None
        self.running.stdin.close()
        return self.rest(seconds)

    def rest(self, seconds: float = 60.0) -> tuple[list[bytes], int]:
        parts = [self._rest]
        while chunk := self.read(seconds):
            parts.append(chunk)
        lines = [*self._lines, *b"".join(parts).split(b"\n")]
        self._lines, self._rest = [], b""
        return [text for text in lines if text], self.running.wait(seconds)

    @property
    def stderr(self) -> str:
        assert self._errors is not None
        self._errors.seek(0)
        return self._errors.read().decode()

    def memory(self, name: str = "VmRSS") -> int:
        """Resident memory in bytes; `VmHWM` is the most that it ever was."""
        status = Path(f"/proc/{self.running.pid}/status").read_text()
        return int(status.split(name + ":")[1].split()[0]) * 1024


@contextmanager
def server(
    tmp_path: Path, *options: str, stdin: Any = subprocess.PIPE, stdout: Any = subprocess.PIPE, **more: Any
) -> Generator[Process, None, None]:
    """A server, running. Its stderr goes to a file unless `stderr` is given."""
    with (tmp_path / "stderr").open("w+b") as errors:
        running: Any = subprocess.Popen(
            leashed([sys.executable, "-m", "tests.core.stdio_server", *options]),
            cwd=ROOT,
            stdin=stdin,
            stdout=stdout,
            stderr=more.pop("stderr", errors),
            **more,
        )
        try:
            yield Process(running, errors)
        finally:
            running.kill()
            running.wait(60)
            for stream in (running.stdin, running.stdout, running.stderr):
                if stream is not None:
                    close(stream)


def close(stream: IO[bytes]) -> None:
    try:
        stream.close()
    except BrokenPipeError:
        return  # what was not written yet has nobody to go to


def texts(lines: Iterable[bytes]) -> dict[Any, str]:
    """The first text of each result, by id."""
    answers = [json.loads(text) for text in lines if text.startswith(b"{")]
    return {a["id"]: a["result"]["content"][0]["text"] for a in answers if "content" in a.get("result", {})}


# --- framing ----------------------------------------------------------------------------


@pytest.mark.requirement("R-BASE-01")
@pytest.mark.requirement("R-STD-01")
@pytest.mark.case("C055")
def test_any_text_passes_under_any_locale(tmp_path: Path) -> None:
    text = '\U0001f600\u2028\u2029\u0085\x00 é \n\r\t"\\'
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    with server(tmp_path, env=environment) as process:
        request = call("é", "echo", x=text)
        assert "\u2028\u2029\u0085".encode() in request
        process.send(request + b"\r\n \n" + PING.replace(b"\n", b"\r\n"))
        answer, ping = sorted([process.receive_line(), process.receive_line()], key=len, reverse=True)
        rest, code = process.finish()
    assert texts([answer]) == {"é": text}
    assert "\u2028\u2029\u0085".encode() in answer
    assert json.loads(ping)["result"] == {}
    assert (rest, code) == ([b"AFTER "], 0)


@pytest.mark.case("C063")
@pytest.mark.parametrize("loop", LOOPS)
def test_five_megabytes_fit_on_a_line(tmp_path: Path, loop: str) -> None:
    text = "é" * 2_500_000
    with server(tmp_path, "--loop", loop) as process:
        request = call(1, "echo", x=text)
        first, second, third = request[:100], request[100:3_000_000], request[3_000_000:]
        process.send(first)
        process.send(second)
        process.send(third + call(2, "big", size=5_000_000))
        got = texts([process.receive_line(), process.receive_line()])
        assert process.finish()[1] == 0
    assert got[1] == text
    assert got[2] == "y" * 5_000_000


def test_a_line_may_come_byte_by_byte_or_with_others(tmp_path: Path) -> None:
    with server(tmp_path) as process:
        for byte in call(1, "echo", x="slow"):
            process.send(bytes([byte]))
        assert texts([process.receive_line()]) == {1: "slow"}
        process.send(call(2, "echo", x="a") + call(3, "echo", x="b") + call(4, "echo", x="c")[:20])
        process.send(call(4, "echo", x="c")[20:])
        assert texts([process.receive_line() for _ in range(3)]) == {2: "a", 3: "b", 4: "c"}


@pytest.mark.requirement("R-STD-01")
@pytest.mark.case("C046")
def test_bad_lines_are_answered_and_serving_goes_on(tmp_path: Path) -> None:
    with server(tmp_path) as process:
        process.send(b"{bad json\n\xff\xfe\n\n \t\n" + b"[" * 100_000 + b"\n" + PING)
        got = [process.receive() for _ in range(4)]
        assert process.finish() == ([b"AFTER "], 0)
    assert [code_of(answer) for answer in got[:3]] == [-32700, -32700, -32600]
    assert all("id" not in answer for answer in got[:3])
    assert got[3] == {"jsonrpc": "2.0", "id": "ping", "result": {}}


@pytest.mark.case("C063")
def test_a_line_beyond_the_limit_is_refused_and_skipped(tmp_path: Path) -> None:
    with server(tmp_path, "--max-message-size", "10000") as process:
        large = process.ask(call(1, "echo", x="y" * 20_000))
        huge = process.ask(call(2, "echo", x="y" * 3_000_000))
        fits = process.ask(call(3, "echo", x="y" * 5_000))
        process.send(b'{"x":"' + b"y" * 20_000)
        rest, _ = process.finish()
    assert [code_of(answer) for answer in (large, huge)] == [-32602, -32602]
    assert [large["id"], huge["id"], fits["id"]] == [1, 2, 3]
    assert code_of(json.loads(rest[0])) == -32602


# --- the streams ----------------------------------------------------------------------------


@pytest.mark.requirement("R-STD-02")
@pytest.mark.requirement("R-STD-04")
@pytest.mark.case("C057")
@pytest.mark.parametrize("loop", LOOPS)
def test_stray_output_reaches_stderr_and_children_read_nothing(tmp_path: Path, loop: str) -> None:
    with server(tmp_path, "--loop", loop) as process:
        process.send(call(1, "stray") + call(2, "echo", x="later"))
        got = texts([process.receive_line(), process.receive_line()])
        rest, code = process.finish()
        errors = process.stderr
    assert got == {1: "0 bytes, ''", 2: "later"}
    assert (rest, code) == ([b"AFTER "], 0)
    for stray in ("stray print", "stray write", "stray descriptor", "stray child"):
        assert stray in errors


@pytest.mark.requirement("R-STD-09")
@pytest.mark.case("C058")
@pytest.mark.parametrize("loop", LOOPS)
def test_the_streams_are_the_programs_own_after_serving(tmp_path: Path, loop: str) -> None:
    with server(tmp_path, "--loop", loop, "--then-read") as process:
        assert process.ask(PING)["result"] == {}
        assert process.finish() == ([b"AFTER ''"], 0)
        assert process.stderr == ""


@pytest.mark.case("C058")
def test_what_comes_after_a_signal_is_the_programs_own(tmp_path: Path) -> None:
    with server(tmp_path, "--then-read") as process:
        assert process.ask(PING)["result"] == {}
        process.running.send_signal(signal.SIGTERM)
        with pytest.raises(TimeoutError):
            process.read(0.3)
        process.send(b"for the program")
        assert process.finish() == ([b"AFTER 'for the program'"], 0)


@pytest.mark.parametrize("loop", LOOPS)
def test_files_and_null_devices_serve_as_streams(tmp_path: Path, loop: str) -> None:
    requests, replies = tmp_path / "in", tmp_path / "out"
    requests.write_bytes(b"".join(call(i, "echo", x=str(i)) for i in range(200)))
    with (
        requests.open("rb") as given,
        replies.open("wb") as taken,
        server(tmp_path, "--loop", loop, stdin=given, stdout=taken) as process,
    ):
        assert process.running.wait(60) == 0
        assert process.stderr == ""
    assert texts(replies.read_bytes().splitlines()) == {i: str(i) for i in range(200)}


@pytest.mark.parametrize("loop", LOOPS)
def test_an_empty_input_is_the_end(tmp_path: Path, loop: str) -> None:
    with server(tmp_path, "--loop", loop, stdin=subprocess.DEVNULL) as process:
        assert process.rest() == ([b"AFTER "], 0)
        assert process.stderr == ""


@pytest.mark.parametrize("loop", LOOPS)
def test_a_client_that_closes_its_end_stops_the_server(tmp_path: Path, loop: str) -> None:
    with server(tmp_path, "--loop", loop, "--drain-timeout", "0.5") as process:
        assert process.ask(PING)["result"] == {}
        assert process.running.stdout is not None
        process.running.stdout.close()
        process.send(PING)
        process.running.wait(60)
        assert "mcp_core" not in process.stderr


# --- the end of input -----------------------------------------------------------------------------


@pytest.mark.requirement("R-STD-09")
@pytest.mark.case("C059")
@pytest.mark.parametrize("loop", LOOPS)
def test_everything_accepted_is_answered_at_the_end_of_input(tmp_path: Path, loop: str) -> None:
    with server(tmp_path, "--loop", loop) as process:
        process.send(b"".join(call(i, "echo", x=str(i)) for i in range(200)))
        process.send(b"".join(call(i, "sleep", t=0.3) for i in range(200, 205)))
        process.send(b"".join(call(i, "work", t=0.1) for i in range(205, 208)))
        process.send(call("last", "echo", x="no newline").rstrip(b"\n"))
        lines, code = process.finish()
        assert process.stderr == ""
    wanted: dict[Any, str] = {i: str(i) for i in range(200)}
    wanted |= dict.fromkeys(range(200, 205), "slept") | dict.fromkeys(range(205, 208), "worked")
    assert texts(lines) == {**wanted, "last": "no newline"}
    assert (lines[-1], code) == (b"AFTER ", 0)


@pytest.mark.case("C059")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_handler_that_never_ends_is_cut_off(tmp_path: Path, loop: str) -> None:
    with server(tmp_path, "--loop", loop, "--drain-timeout", "0.3") as process:
        assert process.ask(PING)["result"] == {}
        with Stopwatch() as watch:
            process.send(call(1, "forever") + call(2, "work", t=60) + call(3, "sleep", t=0.1))
            lines, code = process.finish()
    assert texts(lines) == {3: "slept"}
    assert (len(lines), lines[-1], code) == (2, b"AFTER ", 0)
    assert watch.elapsed >= 0.3
    assert watch.seconds < 2.5


# --- signals ------------------------------------------------------------------------------------------


@pytest.mark.case("C061")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("state", ["idle", "busy", "draining"])
def test_a_signal_ends_the_server_within_a_second(
    tmp_path: Path, loop: str, number: signal.Signals, state: str
) -> None:
    with server(tmp_path, "--loop", loop) as process:
        if state != "idle":
            process.send(call(1, "forever") + call(2, "work", t=60))
        assert process.ask(PING)["id"] == "ping"
        assert process.running.stdin is not None
        if state == "draining":
            process.send(call(3, "sleep", t=0.1))
            process.running.stdin.close()
            assert texts([process.receive_line()]) == {3: "slept"}
        with Stopwatch() as watch:
            process.running.send_signal(number)
            lines, code = process.rest()
        errors = process.stderr
    assert watch.seconds < 1.0
    assert "Traceback" not in errors
    assert texts(lines) == {}
    assert code in (0, 130, 143)


@pytest.mark.case("C061")
def test_a_terminal_interrupts_the_server_too(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    try:
        with server(tmp_path, stdin=theirs) as process:
            os.write(ours, PING)
            assert process.receive()["result"] == {}
            process.running.send_signal(signal.SIGINT)
            lines, code = process.rest()
            assert "Traceback" not in process.stderr
    finally:
        os.close(ours)
        os.close(theirs)
    assert lines == [b"AFTER "]
    assert code in (0, 130)


# --- who does not read -----------------------------------------------------------------------------------


@pytest.mark.case("C062")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_full_stderr_never_stalls_the_protocol(tmp_path: Path, loop: str) -> None:
    with server(tmp_path, "--loop", loop, stderr=subprocess.PIPE) as process:
        failed = 0
        for i in range(0, 3000, 20):
            process.send(b"".join(call(n, "fail" if n % 2 else "echo", x="x" * 20) for n in range(i, i + 20)))
            answers = [process.receive() for _ in range(20)]
            assert {answer["id"] for answer in answers} == set(range(i, i + 20))
            failed += sum(answer.get("error", {}).get("code") == -32603 for answer in answers)
        lines, code = process.finish()
    assert failed == 1500
    assert (lines, code) == ([b"AFTER "], 0)


@pytest.mark.parametrize("loop", LOOPS)
def test_answers_that_nobody_reads_do_not_pile_up(tmp_path: Path, loop: str) -> None:
    count, size = 10_000, 3000
    unsent = memoryview(b"".join(call(i, "big", size=size) for i in range(count)))
    with server(tmp_path, "--loop", loop) as process:
        process.send(b"".join(call(-i, "big", size=size) for i in range(1, 101)))
        assert len(texts([process.receive_line() for _ in range(100)])) == 100
        before = process.memory()
        assert process.running.stdin is not None
        assert process.running.stdout is not None
        into, out = process.running.stdin.fileno(), process.running.stdout.fileno()
        os.set_blocking(into, False)
        while select.select([], [into], [], 0.5)[1]:
            unsent = unsent[os.write(into, unsent[:65536]) :]
        assert len(unsent) > 100_000, "the server took it all"
        grown = process.memory("VmHWM") - before
        received: list[bytes] = []
        got = 0
        while got < count:
            readable, writable, _ = select.select([out], [into] if unsent else [], [], 10)
            assert readable or writable, "the server has stalled"
            if writable:
                unsent = unsent[os.write(into, unsent[:65536]) :]
            if readable:
                received.append(os.read(out, 1 << 20))
                got += received[-1].count(b"\n")
        os.set_blocking(into, True)
        assert process.finish() == ([b"AFTER "], 0)
    assert grown < 20_000_000
    assert set(texts(b"".join(received).split(b"\n"))) == set(range(count))


@pytest.mark.parametrize("loop", LOOPS)
def test_memory_stays_flat(tmp_path: Path, loop: str) -> None:
    def calls(rounds: int) -> None:
        for start in range(rounds):
            process.send(b"".join(call(f"{start}-{n}", "echo", x="x") for n in range(100)))
            assert len({process.receive_line() for _ in range(100)}) == 100

    with server(tmp_path, "--loop", loop) as process:
        calls(20)
        before = process.memory()
        calls(200)
        grown = process.memory() - before
        assert process.finish() == ([b"AFTER "], 0)
    assert grown < 5_000_000


# --- threads ------------------------------------------------------------------------------------------------


@pytest.mark.case("C065")
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
@pytest.mark.parametrize("kind", ["core", "typed"])
def test_threads_that_are_all_busy_do_not_block_a_ping(tmp_path: Path, loop: str, kind: str) -> None:
    with server(tmp_path, "--loop", loop, *(["--typed"] if kind == "typed" else [])) as process:
        assert process.ask(PING)["result"] == {}
        with Stopwatch() as watch:
            process.send(b"".join(call(i, "work", t=0.3) for i in range(6)) + PING)
            # It came before the first of those that came before it, in threads that are all busy.
            assert process.receive() == {"jsonrpc": "2.0", "id": "ping", "result": {}}
            got = texts([process.receive_line() for _ in range(6)])
        assert process.finish()[1] == 0
    assert got == dict.fromkeys(range(6), "worked")
    assert watch.elapsed > 0.85
    assert watch.seconds < 1.6


@pytest.mark.case("C063")
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
async def test_large_messages_may_cross_each_other(loop: str) -> None:
    text = "x" * 2_000_000
    got: list[str] = []
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "tests.core.stdio_server", "--loop", loop], cwd=str(ROOT)
    )

    async def echo() -> None:
        result = await client.call_tool("echo", {"x": text})
        assert isinstance(result.content[0], TextContent)
        got.append(result.content[0].text)

    async with Client(parameters, probe_timeout_seconds=60) as client:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(6):
                    tasks.start_soon(echo)
    assert got == [text] * 6


# --- the contract of a channel ---------------------------------------------------------------------------------


@pytest.mark.requirement("R-BASE-22")
async def test_memory_keeps_the_contract_of_a_channel() -> None:
    @asynccontextmanager
    async def channels(
        backend: Backend, left: Receiver, right: Receiver
    ) -> AsyncGenerator[tuple[Channel, Channel], None]:
        a, b = memory_pair(backend)
        a.start(left)
        b.start(right)
        yield a, b
        a.close()
        b.close()

    await check_channel(channels)


async def test_lines_over_pipes_keep_the_contract_of_a_channel() -> None:
    @asynccontextmanager
    async def channels(
        backend: Backend, left: Receiver, right: Receiver
    ) -> AsyncGenerator[tuple[Channel, Channel], None]:
        read_a, write_b = os.pipe()
        read_b, write_a = os.pipe()
        a, b = LineChannel(backend, read_a, write_a), LineChannel(backend, read_b, write_b)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(a.run, left)
                tasks.start_soon(b.run, right)
                yield a, b
                a.stop()
                b.stop()
        finally:
            a.release()
            b.release()
            for fd in (read_a, write_a, read_b, write_b):
                os.close(fd)

    await check_channel(channels)


async def test_reading_goes_on_when_a_large_message_is_out() -> None:
    read_fd, feed = os.pipe()
    taken, out = os.pipe()
    size = fcntl.fcntl(out, fcntl.F_SETPIPE_SZ, 1 << 20)
    message = b"x" * (size + 600_000)
    inbox = Inbox()
    try:
        async with open_backend() as backend, anyio.create_task_group() as tasks:
            channel = LineChannel(backend, read_fd, out)
            tasks.start_soon(channel.run, inbox)
            os.write(feed, b"[]\n")
            await inbox.until(lambda got: got.messages == [b"[]"])
            channel.send(message)
            # The pipe takes a part; then the whole rest at once.
            left = len(message) + 1
            while left:
                with anyio.fail_after(60):
                    await anyio.wait_readable(taken)
                left -= len(os.read(taken, size))
            os.write(feed, b"{}\n")
            await inbox.until(lambda got: got.messages == [b"[]", b"{}"])
            channel.stop()
            channel.release()
    finally:
        for fd in (read_fd, feed, taken, out):
            os.close(fd)


async def test_nothing_is_written_once_the_descriptors_are_given_back() -> None:
    read_fd, feed = os.pipe()
    taken, out = os.pipe()
    inbox = Inbox()
    try:
        async with open_backend() as backend:
            channel = LineChannel(backend, read_fd, out)
            os.close(feed)
            with anyio.fail_after(60):
                await channel.run(inbox)
            channel.release()
            channel.send(b"late")
            # A call planned after the write that must not happen.
            turned = anyio.Event()
            backend.call_soon(turned.set)
            with anyio.fail_after(60):
                await turned.wait()
        assert select.select([taken], [], [], 0)[0] == []
        assert os.get_blocking(out)
    finally:
        for fd in (read_fd, taken, out):
            os.close(fd)


async def test_the_end_of_a_pipe_is_the_end_of_its_messages() -> None:
    read_fd, write_fd = os.pipe()
    unused, out = os.pipe()
    inbox = Inbox()
    try:
        async with open_backend() as backend:
            channel = LineChannel(backend, read_fd, out)
            os.write(write_fd, b'{"a":1}\n\n{"b":2}')
            os.close(write_fd)
            with anyio.fail_after(60):
                await channel.run(inbox)
            channel.release()
    finally:
        for fd in (read_fd, unused, out):
            os.close(fd)
    assert inbox.messages == [b'{"a":1}', b'{"b":2}']
    assert inbox.has_ended

"""Bytes on sockets against a real server: what clients, proxies and broken networks do to it.

Whatever comes, that one connection may suffer and the server lives on.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.http.serving import Served, serving
from tests.http.sockets import Caller, Connection, filler, handshake, request, stateless, text_of
from tests.pace import Stopwatch

HARBOUR = "tests.http.harbour_server:server"
LIMIT = 4 * 2**20
MB = 1_000_000

TOO_LARGE = {
    "jsonrpc": "2.0",
    "error": {"code": -32600, "message": f"the body is larger than {LIMIT} bytes (max_request_body_size)"},
}


@pytest.fixture(scope="module")
def served() -> Generator[Served, None, None]:
    with serving(HARBOUR) as served:
        yield served
        # What uvicorn says when the app raises, and when it leaves a response unfinished.
        assert "ASGI" not in served.errors
        assert "Traceback" not in served.errors


@pytest.fixture
def port(served: Served) -> Iterator[int]:
    """The server's port; after each test it still answers."""
    yield served.port
    assert stateless(served.port).call("echo", text="alive") == "alive"


ERAS: dict[str, Callable[[int], Caller]] = {"modern": stateless, "handshake": handshake}


@pytest.fixture(params=ERAS)
def caller(request: pytest.FixtureRequest, port: int) -> Caller:
    return ERAS[request.param](port)


def settled(value: Callable[[], Any], wanted: Callable[[Any], bool], seconds: float = 60.0) -> Any:
    """A value of the server's, as soon as it is as it should be."""
    end = time.monotonic() + seconds
    while not wanted(found := value()):
        assert time.monotonic() < end, f"it is {found}"
        time.sleep(0.01)
    return found


# --- framing -----------------------------------------------------------------------------------

POST = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

FAULTS = {
    "no-http": b"hello\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(64)),
    "version": b"POST /mcp HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "lower-case-method": POST.replace(b"POST", b"post", 1) + b"Content-Length: 2\r\n\r\n{}",
    "space-in-target": b"POST /m cp HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "header-without-colon": POST + b"Nonsense\r\nContent-Length: 2\r\n\r\n{}",
    "space-before-colon": POST + b"Accept : */*\r\nContent-Length: 2\r\n\r\n{}",
    "empty-header-name": POST + b": x\r\nContent-Length: 2\r\n\r\n{}",
    "nul-in-header": POST + b"Accept: a\0b\r\nContent-Length: 2\r\n\r\n{}",
    "folded-header": POST + b"Accept: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
    "length-no-number": POST + b"Content-Length: two\r\n\r\n{}",
    "length-negative": POST + b"Content-Length: -2\r\n\r\n{}",
    "length-signed": POST + b"Content-Length: +2\r\n\r\n{}",
    "length-too-large": POST + b"Content-Length: 99999999999999999999999\r\n\r\n{}",
    "length-list": POST + b"Content-Length: 2, 2\r\n\r\n{}",
    "lengths-differ": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "length-and-chunks": POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunk-size": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "chunk-size-negative": POST + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
    "chunk-size-too-large": POST + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n",
    "chunk-end": POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}xx0\r\n\r\n",
}


@pytest.mark.parametrize("sent", [pytest.param(sent, id=name) for name, sent in FAULTS.items()])
def test_a_framing_fault_ends_the_connection(port: int, sent: bytes) -> None:
    with Connection(port) as connection:
        answer = connection.send(sent).answer()
        assert answer.status == 400
        assert answer.headers["connection"] == "close"
        assert connection.rest() == b""


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"PO", POST, POST + b"Content-Length: 50\r\n\r\n{", POST[:-1]])
def test_a_client_that_stops_halfway_is_let_go(port: int, sent: bytes) -> None:
    with Connection(port) as connection:
        connection.send(sent).end_sending()
        assert connection.rest() == b""


@pytest.mark.requirement("R-HS-07")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods(port: int, method: str) -> None:
    with Connection(port) as connection:
        answer = connection.send(request(b"{}", method=method)).answer()
        assert (answer.status, answer.headers["allow"]) == (405, "GET, POST, DELETE")
        reason = f"Method Not Allowed: {method} is not served here; served are GET, POST, DELETE"
        assert answer.json == {"jsonrpc": "2.0", "error": {"code": -32600, "message": reason}}


@pytest.mark.requirement("R-HS-07")
def test_head_has_no_body(port: int) -> None:
    with Connection(port) as connection:
        connection.send(request(method="HEAD", length=-1))
        assert connection.head().status == 405
        answer = connection.send(stateless(port).calling("echo", text="next")).answer()
        assert text_of(answer.json) == "next"


def test_http_1_0(port: int) -> None:
    """Some proxies speak no newer one to the server behind them."""
    sent = stateless(port).calling("echo", text="old").replace(b"HTTP/1.1", b"HTTP/1.0")
    with Connection(port) as connection:
        answer = connection.send(sent).answer()
        assert (answer.status, text_of(answer.json)) == (200, "old")
        assert answer.headers["connection"] == "close"
        assert connection.rest() == b""


def test_a_target_with_its_host(port: int) -> None:
    sent = stateless(port).calling("echo", text="proxied").replace(b" /mcp", f" http://127.0.0.1:{port}/mcp".encode())
    with Connection(port) as connection:
        assert text_of(connection.send(sent).answer().json) == "proxied"


def test_an_offer_of_http_2_is_declined() -> None:
    """The JDK's client makes it with each POST, and a server may take no notice (RFC 9110, 7.8)."""
    with serving(HARBOUR, uvicorn={"http": "h11"}) as served, Connection(served.port) as connection:
        caller = stateless(served.port)
        caller.headers |= {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAEAAEAA"}
        answers = [connection.send(caller.calling("echo", text=text)).answer() for text in ("one", "two")]
        assert [answer.status for answer in answers] == [200, 200]
        assert [text_of(answer.json) for answer in answers] == ["one", "two"]


def test_a_query_is_ignored(port: int) -> None:
    sent = stateless(port).calling("echo", text="q").replace(b" /mcp", b" /mcp?token=%C3%A9&x")
    with Connection(port) as connection:
        assert text_of(connection.send(sent).answer().json) == "q"


def test_many_headers(port: int) -> None:
    caller = stateless(port)
    caller.headers |= {f"X-Padding-{number}": "x" * 100 for number in range(300)}
    assert caller.call("echo", text="padded") == "padded"


@pytest.mark.fault("S-07")
@pytest.mark.parametrize("protocol", ["httptools", "h11"])
def test_a_header_that_does_not_end_is_cut_off(protocol: str) -> None:
    with serving(HARBOUR, uvicorn={"http": protocol}) as served:
        before = memory_of(served.process.pid)
        with socket.create_connection(("127.0.0.1", served.port), 10) as endless:
            endless.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Endless: ")
            with contextlib.suppress(ConnectionError):
                for _ in range(2000):
                    endless.sendall(b"x" * 65_536)
        assert stateless(served.port).call("echo", text="still here") == "still here"
        assert memory_of(served.process.pid) - before < 20_000_000
        assert "Traceback" not in served.errors


def memory_of(pid: int) -> int:
    """Bytes that a process has in memory."""
    with open(f"/proc/{pid}/statm") as sizes:
        return int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# --- bodies, slowly ------------------------------------------------------------------------------

chunked_or_not = pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunks"])


def in_chunks(sent: bytes, size: int) -> bytes:
    """A request of ours with its body in chunks, without a length."""
    head, _, body = sent.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.startswith(b"Content-Length")]
    parts = (body[at : at + size] for at in range(0, len(body), size))
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return b"\r\n".join([*lines, b"Transfer-Encoding: chunked"]) + b"\r\n\r\n" + chunks + b"0\r\n\r\n"


@pytest.mark.case("C077")
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_body_in_chunks(caller: Caller, size: int) -> None:
    text = "zwölf 𝄞 " * 10_000
    with Connection(caller.port) as connection:
        answer = connection.send(in_chunks(caller.calling("echo", text=text), size)).answer()
        assert (answer.status, text_of(answer.json)) == (200, text)


@chunked_or_not
def test_byte_by_byte(caller: Caller, chunked: bool) -> None:
    sent = caller.calling("echo", text="zwölf")
    with Connection(caller.port) as connection:
        for byte in in_chunks(sent, 1) if chunked else sent:
            connection.send(bytes([byte]))
        assert text_of(connection.answer().json) == "zwölf"


def test_a_slow_writer_holds_nobody_up(caller: Caller) -> None:
    sent = caller.calling("echo", text="slow")
    with Connection(caller.port) as in_head, Connection(caller.port) as in_body:
        in_head.send(sent[:30])
        in_body.send(sent[:-5])
        assert [caller.call("echo", text=str(number)) for number in range(20)] == [str(n) for n in range(20)]
        assert text_of(in_head.send(sent[30:]).answer().json) == "slow"
        assert text_of(in_body.send(sent[-5:]).answer().json) == "slow"


def test_a_client_that_asks_first_is_told_to_go_on(caller: Caller) -> None:
    caller.headers["Expect"] = "100-continue"
    head, _, body = caller.calling("echo", text="asked").partition(b"\r\n\r\n")
    with Connection(caller.port) as connection:
        assert connection.send(head + b"\r\n\r\n").head().status == 100
        assert text_of(connection.send(body).answer().json) == "asked"


# --- bodies that are too large -------------------------------------------------------------------


def call_of(caller: Caller, size: int) -> bytes:
    """A call whose body has so many bytes."""
    empty = caller.calling("echo", text="").partition(b"\r\n\r\n")[2]
    sent = caller.calling("echo", text="x" * (size - len(empty)))
    assert len(sent.partition(b"\r\n\r\n")[2]) == size
    return sent


@pytest.mark.case("C077")
@pytest.mark.requirement("R-HS-09")
@chunked_or_not
def test_a_body_of_5_mb_is_refused(caller: Caller, chunked: bool) -> None:
    sent = call_of(caller, 5 * MB)
    with Connection(caller.port) as connection:
        answer = connection.send(in_chunks(sent, 65_536) if chunked else sent).answer()
        assert (answer.status, answer.json) == (413, TOO_LARGE)
        # Nor is the connection lost: what was left of the body was read away.
        assert text_of(connection.send(caller.calling("echo", text="next")).answer().json) == "next"


@pytest.mark.case("C077")
@chunked_or_not
def test_the_limit_is_exact(caller: Caller, chunked: bool) -> None:
    def status(size: int) -> int:
        sent = call_of(caller, size)
        with Connection(caller.port) as connection:
            return connection.send(in_chunks(sent, 65_536) if chunked else sent).answer().status

    assert (status(LIMIT), status(LIMIT + 1)) == (200, 413)


@pytest.mark.requirement("R-HS-09")
@pytest.mark.parametrize("expect", [{}, {"Expect": "100-continue"}], ids=["plain", "asks-first"])
def test_a_length_over_the_limit_is_refused_unread(caller: Caller, expect: dict[str, str]) -> None:
    headers = {**caller.headers_of("tools/call", {"name": "echo"}), **expect}
    with Connection(caller.port) as connection:
        answer = connection.send(request(b"", headers, length=LIMIT + 1)).answer()
        assert (answer.status, answer.json) == (413, TOO_LARGE)


@pytest.mark.slow
@pytest.mark.case("C077")
def test_large_bodies_take_bounded_memory() -> None:
    """What has come of a body is kept up to the limit, and dropped with the refusal."""
    number, rounds = 8, 3
    with serving(HARBOUR) as served, ExitStack() as stack:
        caller = stateless(served.port)
        sent = in_chunks(call_of(caller, 5 * MB), 65_536)
        before = int(caller.call("peak_memory"))
        for _ in range(rounds):
            connections = [stack.enter_context(Connection(served.port)) for _ in range(number)]
            for connection in connections:
                connection.send(sent[: LIMIT - 100_000])
            for connection in connections:
                connection.send(sent[LIMIT - 100_000 :])
            assert [connection.answer().status for connection in connections] == [413] * number
        assert int(caller.call("peak_memory")) - before < number * 2 * LIMIT


@pytest.mark.slow
@pytest.mark.case("C077")
def test_a_body_takes_memory_by_its_bytes_not_by_its_chunks() -> None:
    with serving(HARBOUR) as served, Connection(served.port) as connection:
        caller = stateless(served.port)
        before = int(caller.call("peak_memory"))
        assert connection.send(in_chunks(call_of(caller, 500_000), 1)).answer().status == 200
        assert int(caller.call("peak_memory")) - before < 10 * MB


# --- answers that are large ----------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True], ids=["json", "event"])
def test_a_result_of_5_mb(caller: Caller, streamed: bool) -> None:
    meta = {"progressToken": "p"} if streamed else None
    with Connection(caller.port) as connection:
        connection.send(caller.calling("large", meta=meta, size=5 * MB))
        if streamed:
            assert connection.head().headers["content-type"] == "text/event-stream"
            assert connection.message()["params"] == {"progressToken": "p", "progress": 1}
            result = connection.message()
            assert connection.event() is None
        else:
            result = connection.answer().json
        assert text_of(result) == filler(5 * MB)


def test_a_slow_reader_of_a_large_result_holds_nobody_up(caller: Caller) -> None:
    with Connection(caller.port, receive_buffer=8192) as slow:
        slow.send(caller.calling("large", size=5 * MB))
        head = slow.head()
        assert head.status == 200
        assert [caller.call("echo", text=str(number)) for number in range(20)] == [str(n) for n in range(20)]
        assert text_of(slow.body(head).json) == filler(5 * MB)


def test_a_tool_waits_for_a_slow_reader(caller: Caller) -> None:
    """Reports that nobody reads are not gathered in memory: the tool that makes them is held up."""
    count, size = 1000, 50_000
    with Connection(caller.port, receive_buffer=8192) as slow:
        slow.send(caller.calling("flood", meta={"progressToken": "p"}, count=count, size=size))
        assert slow.head().status == 200
        assert [caller.call("echo", text=str(number)) for number in range(20)] == [str(n) for n in range(20)]
        assert int(caller.call("reports_sent")) < count / 2
        heard = [slow.message() for _ in range(count)]
        assert [message["params"]["progress"] for message in heard] == list(range(count))
        assert {message["params"]["message"] for message in heard} == {filler(size)}
        assert text_of(slow.message()) == "done"
        assert slow.event() is None


# --- pipelines -----------------------------------------------------------------------------------


def test_pipelined_requests_are_answered_in_order(caller: Caller) -> None:
    sent = [caller.calling("echo", request_id=f"r{number}", text=str(number)) for number in range(50)]
    with Connection(caller.port) as connection:
        connection.send(b"".join(sent))
        answers = [connection.answer().json for _ in sent]
    assert [answer["id"] for answer in answers] == [f"r{number}" for number in range(50)]
    assert [text_of(answer) for answer in answers] == [str(number) for number in range(50)]


def test_a_pipeline_with_faults_and_a_stream_in_it(caller: Caller) -> None:
    sent = [
        caller.calling("echo", text="first"),
        request(b"{}", {**caller.headers, "Content-Type": "text/plain"}),
        caller.calling("large", meta={"progressToken": "p"}, size=10),
        request(b"{}", path="/elsewhere"),
        request(b"", caller.headers),
        caller.calling("echo", text="last"),
    ]
    with Connection(caller.port) as connection:
        connection.send(b"".join(sent))
        answers = [connection.answer() for _ in sent]
    assert [answer.status for answer in answers] == [200, 415, 200, 404, 400, 200]
    assert (text_of(answers[0].json), text_of(answers[-1].json)) == ("first", "last")
    assert answers[2].headers["content-type"] == "text/event-stream"


def test_a_slow_call_comes_before_what_was_sent_after_it(caller: Caller) -> None:
    name = f"pipelined {caller.modern}"
    with Connection(caller.port) as connection:
        connection.send(caller.calling("linger", name=name) + caller.calling("echo", request_id=2, text="fast"))
        caller.call("wait_for", name=f"{name} started")
        caller.call("reach", name=f"{name} go on")
        answers = [connection.answer().json for _ in range(2)]
    assert [text_of(answer) for answer in answers] == [f"{name} ended", "fast"]


# --- clients that go away --------------------------------------------------------------------------

LEAVE: dict[str, Callable[[Connection], None]] = {
    "close": Connection.close,
    "reset": Connection.reset,
    "half": Connection.end_sending,
}
leaving = pytest.mark.parametrize("leave", [pytest.param(call, id=name) for name, call in LEAVE.items()])
before_result = pytest.mark.parametrize("streamed", [False, True], ids=["silent", "streaming"])


def begin(caller: Caller, connection: Connection, name: str, *, streamed: bool) -> None:
    """Start a call that lasts, and wait until it has begun."""
    connection.send(caller.calling("linger", meta={"progressToken": "p"} if streamed else None, name=name))
    stateless(caller.port).call("wait_for", name=f"{name} started")
    if streamed:
        assert connection.head().status == 200
        assert connection.message()["method"] == "notifications/progress"


@pytest.mark.case("C073")
@pytest.mark.requirement("R-HTTP-11")
@leaving
@before_result
def test_a_stateless_client_that_leaves_cancels(port: int, leave: Callable[[Connection], None], streamed: bool) -> None:
    caller, name = stateless(port), f"gone {leave.__name__} {streamed}"
    with Connection(port) as connection:
        begin(caller, connection, name, streamed=streamed)
        leave(connection)
        assert caller.call("wait_for", name=f"{name} cancelled") == "reached"
        if leave is Connection.end_sending:
            assert connection.rest() == b""


@pytest.mark.requirement("R-HTTPL-06")
@leaving
@before_result
def test_a_client_with_a_session_that_leaves_cancels_nothing(
    port: int, leave: Callable[[Connection], None], streamed: bool
) -> None:
    caller, name = handshake(port), f"left {leave.__name__} {streamed}"
    with Connection(port) as connection:
        begin(caller, connection, name, streamed=streamed)
        leave(connection)
        assert caller.call("reach", name=f"{name} go on") == "reached"
        assert caller.call("wait_for", name=f"{name} ended") == "reached"


def test_a_session_that_leaves_cancels_where_that_is_wanted() -> None:
    with serving(HARBOUR, cancel_on_disconnect=True) as served, Connection(served.port) as connection:
        caller = handshake(served.port)
        begin(caller, connection, "wanted", streamed=False)
        connection.close()
        assert caller.call("wait_for", name="wanted cancelled") == "reached"


@pytest.mark.case("C073")
def test_nothing_is_left_of_clients_that_went_away(port: int) -> None:
    caller = stateless(port)
    caller.call("echo", text="warm")
    before = int(caller.call("tasks"))
    for round_ in range(10):
        names = [f"many {round_}.{number}" for number in range(20)]
        with ExitStack() as stack:
            for name in names:
                begin(caller, stack.enter_context(Connection(port)), name, streamed=True)
        for name in names:
            assert caller.call("wait_for", name=f"{name} cancelled") == "reached"
    settled(lambda: int(caller.call("tasks")), lambda now: now <= before)


def test_clients_that_leave_amid_a_body_or_an_answer(port: int) -> None:
    caller = stateless(port)
    caller.call("echo", text="warm")
    before = int(caller.call("tasks"))
    sent = caller.calling("echo", text="x" * 100_000)
    for leave in (Connection.close, Connection.reset):
        for at in (10, 200, 50_000, len(sent) - 1):
            leave(Connection(port).send(sent[:at]))
        leave(Connection(port).send(caller.calling("large", size=5 * MB)))
        unread = Connection(port, receive_buffer=8192)
        unread.send(caller.calling("flood", meta={"progressToken": "p"}, count=1000, size=50_000))
        assert unread.head().status == 200
        leave(unread)
    settled(lambda: int(caller.call("tasks")), lambda now: now <= before)


@pytest.mark.requirement("R-HTTPL-11")
def test_a_deleted_session_ends_its_stream(port: int) -> None:
    caller = handshake(port)
    with Connection(port) as stream, Connection(port) as other:
        assert stream.send(caller.get()).head().status == 200
        deleted = other.send(request(headers=caller.headers, method="DELETE", length=-1)).answer()
        assert deleted.status == 200
        while stream.event() is not None:
            pass
        assert other.send(caller.request("ping")).answer().status == 404


# --- many streams ----------------------------------------------------------------------------------


def open_stream(caller: Caller, connection: Connection) -> None:
    """The stream that changes are told on, open."""
    if caller.modern:
        listen = {"notifications": {"toolsListChanged": True}}
        connection.send(caller.request("subscriptions/listen", listen, "watch"))
        assert connection.head().status == 200
        assert connection.message()["method"] == "notifications/subscriptions/acknowledged"
    else:
        assert connection.send(caller.get()).head().status == 200
        assert connection.event() is not None


@pytest.mark.parametrize("era", ["modern", pytest.param("handshake", marks=pytest.mark.slow)])
def test_500_idle_streams(era: str) -> None:
    count = 500
    with serving(HARBOUR) as served, ExitStack() as stack:
        port = served.port
        one = stateless(port)
        one.call("echo", text="warm")
        memory, tasks = int(one.call("peak_memory")), int(one.call("tasks"))
        with Connection(port) as first:
            callers = [handshake(port, first) if era == "handshake" else one for _ in range(count)]
        streams = [stack.enter_context(Connection(port)) for _ in range(count)]
        for caller, stream in zip(callers, streams, strict=True):
            open_stream(caller, stream)
        # A stream with its connection, its session and its tasks takes 30 KB at most when this is written.
        assert int(one.call("peak_memory")) - memory < count * 60_000
        assert [one.call("echo", text=str(number)) for number in range(50)] == [str(n) for n in range(50)]

        one.call("change_tools")
        heard = [stream.message() for stream in streams]
        assert {message["method"] for message in heard} == {"notifications/tools/list_changed"}

        stack.close()
        settled(lambda: int(one.call("tasks")), lambda now: now <= tasks)
        assert served.errors.count("\n") == 1  # where it is served


# --- streams that break off --------------------------------------------------------------------------


def resuming(caller: Caller, last: str) -> bytes:
    """The request that takes up a stream after this event."""
    return request(
        headers={**caller.headers, "Accept": "text/event-stream", "Last-Event-ID": last}, method="GET", length=-1
    )


def next_id(connection: Connection) -> str:
    """The id of the next event."""
    event = connection.event()
    assert event is not None
    return event["id"]


@pytest.fixture(scope="module")
def keeping() -> Generator[Served, None, None]:
    with serving(HARBOUR, keeps_events=True) as served:
        yield served
        assert "ASGI" not in served.errors


@pytest.mark.requirement("R-HTTPL-08")
@pytest.mark.parametrize("leave", [Connection.close, Connection.reset])
def test_a_broken_call_is_taken_up(keeping: Served, leave: Callable[[Connection], None]) -> None:
    caller, name = handshake(keeping.port), f"broken {leave.__name__}"
    first = Connection(keeping.port).send(
        caller.calling("linger", request_id="x", meta={"progressToken": "p"}, name=name)
    )
    assert first.head().status == 200
    last = next_id(first)
    stateless(keeping.port).call("wait_for", name=f"{name} started")
    leave(first)
    with Connection(keeping.port) as second:
        assert second.send(resuming(caller, last)).head().status == 200
        assert second.message()["method"] == "notifications/progress"
        stateless(keeping.port).call("reach", name=f"{name} go on")
        result = second.message()
        assert (result["id"], text_of(result)) == ("x", f"{name} ended")
        assert second.event() is None


@pytest.mark.requirement("R-HTTPL-07")
def test_a_call_that_sends_its_client_away_is_taken_up(keeping: Served) -> None:
    caller = handshake(keeping.port)
    with Connection(keeping.port) as connection:
        connection.send(caller.calling("send_away", meta={"progressToken": "p"}, name="away"))
        assert connection.head().status == 200
        events = list(iter(connection.event, None))
        assert events[-1] == {"retry": "10"}
        last = [event["id"] for event in events if "id" in event][-1]
        connection.send(resuming(caller, last))
        assert connection.head().status == 200
        stateless(keeping.port).call("reach", name="away go on")
        assert text_of(connection.message()) == "away ended"
        assert connection.event() is None


def test_a_cancelled_call_ends_the_stream_that_took_it_up(keeping: Served) -> None:
    caller = handshake(keeping.port)
    with Connection(keeping.port) as stream, Connection(keeping.port) as other:
        stream.send(caller.calling("send_away", request_id="c", meta={"progressToken": "p"}, name="cancelled away"))
        assert stream.head().status == 200
        last = [event["id"] for event in iter(stream.event, None) if "id" in event][-1]
        assert stream.send(resuming(caller, last)).head().status == 200
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}}
        assert other.send(request(json.dumps(cancelled).encode(), caller.headers)).answer().status == 202
        assert stateless(keeping.port).call("wait_for", name="cancelled away cancelled") == "reached"
        assert stream.event() is None


@pytest.mark.requirement("R-HTTPL-08")
def test_a_client_that_takes_up_its_own_stream_hears_what_it_missed_and_what_comes(keeping: Served) -> None:
    caller, other = handshake(keeping.port), stateless(keeping.port)
    for number in range(3):
        params = {"uri": f"tide://{number}"}
        with Connection(keeping.port) as connection:
            assert connection.send(caller.request("resources/subscribe", params)).answer().status == 200
    with Connection(keeping.port) as first:
        assert first.send(caller.get()).head().status == 200
        next_id(first)
        other.call("change_resource", uri="tide://0")
        heard = first.event()
    assert heard is not None
    assert "tide://0" in heard["data"]
    other.call("change_resource", uri="tide://1")  # nobody listens now
    with Connection(keeping.port) as second:
        assert second.send(resuming(caller, heard["id"])).head().status == 200
        assert second.message()["params"] == {"uri": "tide://1"}
        other.call("change_resource", uri="tide://2")
        assert second.message()["params"] == {"uri": "tide://2"}


def test_a_stream_that_is_full_when_it_is_closed_ends(port: int) -> None:
    """Its reader was slow: what was written before comes, and then the end."""
    caller, other = handshake(port), stateless(port)
    uri, number = "tide://" + "x" * 4000, 250
    with Connection(port) as connection, Connection(port, receive_buffer=8192) as slow:
        assert connection.send(caller.request("resources/subscribe", {"uri": uri})).answer().status == 200
        open_stream(caller, slow)
        for _ in range(number):
            other.call("change_resource", uri=uri)
        deleted = request(headers=caller.headers, method="DELETE", length=-1)
        assert connection.send(deleted).answer().status == 200
        heard = list(iter(slow.event, None))
        assert 0 < len(heard) <= number


def test_a_newer_stream_of_a_session_ends_the_older(port: int) -> None:
    caller = handshake(port)
    with Connection(port) as older, Connection(port) as newer:
        open_stream(caller, older)
        open_stream(caller, newer)
        assert older.event() is None
        stateless(port).call("change_tools")
        assert newer.message()["method"] == "notifications/tools/list_changed"


@pytest.mark.requirement("R-HTTP-10")
def test_quiet_streams_are_kept_alive() -> None:
    with serving(HARBOUR, keep_alive=0.05) as served, ExitStack() as stack:
        port = served.port
        streams: list[Connection] = []
        for caller in (stateless(port), handshake(port)):
            streams += [stack.enter_context(Connection(port)) for _ in range(2)]
            open_stream(caller, streams[-2])
            begin(caller, streams[-1], f"quiet {caller.modern}", streamed=True)
        for stream in streams:
            assert [stream.event() for _ in range(3)] == [{"": "keep-alive"}] * 3
        for modern in (True, False):
            stateless(port).call("reach", name=f"quiet {modern} go on")  # or the end would wait for them


@pytest.mark.case("C051")
def test_one_id_twice_at_once(caller: Caller) -> None:
    """Some clients use 1 for everything: each call gets its own answer."""
    name = f"twice {caller.modern}"
    with Connection(caller.port) as slow, Connection(caller.port) as fast:
        begin(caller, slow, name, streamed=False)
        assert text_of(fast.send(caller.calling("echo", text="second")).answer().json) == "second"
        caller.call("reach", name=f"{name} go on")
        assert text_of(slow.answer().json) == f"{name} ended"


# --- the end of the server -------------------------------------------------------------------------

AT_END: dict[str, Any] = {"uvicorn": {"timeout_graceful_shutdown": 1}}


@pytest.mark.requirement("R-SUB-07")
def test_streams_end_whole_with_the_server() -> None:
    with serving(HARBOUR) as served, ExitStack() as stack:
        port = served.port
        open_ones: list[tuple[Caller, Connection]] = []
        for _ in range(20):
            for caller in (stateless(port), handshake(port)):
                open_ones.append((caller, stack.enter_context(Connection(port))))
                open_stream(*open_ones[-1])
        idle = stack.enter_context(Connection(port))
        assert idle.send(handshake(port).request("ping")).answer().status == 200
        halfway = stack.enter_context(Connection(port)).send(b"POST /mcp HT")

        with Stopwatch() as watch:
            served.stop(signal.SIGTERM)
        assert watch.seconds < 3
        for caller, stream in open_ones:
            if caller.modern:
                ended = stream.message()
                assert (ended["id"], ended["result"]["resultType"]) == ("watch", "complete")
                assert ended["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "watch"
            assert stream.event() is None
            assert stream.rest() == b""
        assert (idle.rest(), halfway.rest()) == (b"", b"")
        assert served.errors.count("\n") == 1  # where it is served


@pytest.mark.parametrize("era", ERAS)
def test_calls_under_way_are_answered_before_the_end(era: str) -> None:
    """The signal comes amid calls that end in good time: their client gets the results."""
    with serving(HARBOUR) as served, ExitStack() as stack:
        silent, streaming, other = (stack.enter_context(Connection(served.port)) for _ in range(3))
        caller = ERAS[era](served.port)
        begin(caller, silent, "silent", streamed=False)
        begin(caller, streaming, "streaming", streamed=True)
        # Not an idle connection, which would be closed: the request is there but for its end.
        go_on = stateless(served.port).calling("go_on", names=["silent", "streaming"])
        other.send(go_on[:-1])
        assert stateless(served.port).call("echo", text="read") == "read"
        served.process.send_signal(signal.SIGTERM)
        _wait_until_refused(served.port)
        other.send(go_on[-1:])
        assert text_of(silent.answer().json) == "silent ended"
        assert text_of(streaming.message()) == "streaming ended"
        assert served.process.wait(60) is not None


def _wait_until_refused(port: int) -> None:
    def refused() -> bool:
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 1):
            return False
        return True

    settled(refused, bool)


def test_a_call_that_does_not_end_is_cut_off_at_the_end() -> None:
    with serving(HARBOUR, **AT_END) as served, ExitStack() as stack:
        modern, older = stateless(served.port), handshake(served.port)
        for caller in (modern, older):
            name = f"stubborn {caller.modern}"
            connection = stack.enter_context(Connection(served.port))
            connection.send(caller.calling("linger_stubbornly", name=name))
            modern.call("wait_for", name=f"{name} started")
        body = stack.enter_context(Connection(served.port))
        body.send(modern.calling("echo", text="never whole")[:-1])
        unread = stack.enter_context(Connection(served.port, receive_buffer=8192))
        unread.send(modern.calling("flood", meta={"progressToken": "p"}, count=1000, size=50_000))
        assert unread.head().status == 200
        with Stopwatch() as watch:
            served.stop(signal.SIGTERM)
        assert watch.seconds < 1 + 2
        assert "Traceback" not in served.errors

"""A lifespan that fails is told of at once, gives no state any more, and ends what it served."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcp_core import Client, ConnectionClosed, RequestContext, Server
from mcp_core.testing import RawPeer, flush_logs
from mcp_core.types import CallToolResult, TextContent
from tests.core.peers import line, modern


class Failing:
    """A server whose lifespan fails when it is told to."""

    def __init__(self) -> None:
        self.entered = 0
        self.left = 0
        self.fail = anyio.Event()
        self.server = Server("s", lifespan=self.lifespan, on_call_tool=self.call)

    @asynccontextmanager
    async def lifespan(self, server: Any) -> AsyncGenerator[int, None]:
        self.entered += 1
        self.fail = anyio.Event()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._background, self.fail)
                yield self.entered
                tasks.cancel_scope.cancel()
        finally:
            self.left += 1

    async def _background(self, fail: anyio.Event) -> None:
        await fail.wait()
        raise ConnectionError("the pool is gone")

    def call(self, ctx: RequestContext[Any], params: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(text=str(ctx.lifespan_context))])

    async def break_down(self) -> None:
        left = self.left
        self.fail.set()
        with anyio.fail_after(10):
            while self.left == left:  # noqa: ASYNC110 - a number tells nobody
                await anyio.sleep(0.001)
        await anyio.lowlevel.checkpoint()


CALL = modern(1, "tools/call", {"name": "x"})


def text(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


def causes(exc: BaseException) -> list[BaseException]:
    inside: tuple[BaseException, ...] = getattr(exc, "exceptions", ())
    if inside:
        return [cause for inner in inside for cause in causes(inner)]
    return [exc]


@pytest.mark.fault("S-21")
async def test_a_client_in_memory_is_told_that_the_connection_has_ended(caplog: pytest.LogCaptureFixture) -> None:
    failing = Failing()

    async def use() -> None:
        async with Client(failing.server) as client:
            await client.call_tool("x")
            await failing.break_down()
            flush_logs()
            assert "the lifespan has failed" in caplog.text
            assert "the pool is gone" in caplog.text
            with anyio.fail_after(10), pytest.raises(ConnectionClosed):
                await client.call_tool("x")

    with pytest.raises(BaseException) as raised:  # noqa: PT011 - a group on some backends
        await use()
    assert "the pool is gone" in [str(cause) for cause in causes(raised.value)]


@pytest.mark.fault("S-21")
async def test_every_connection_is_ended_and_the_next_has_it_entered_anew() -> None:
    failing = Failing()
    reasons: list[str] = []
    up, over = anyio.Event(), anyio.Event()

    async def other() -> None:
        try:
            async with RawPeer.of(failing.server) as peer:
                up.set()
                await peer.until(lambda inbox: inbox.has_ended, 10)
        except BaseException as exc:
            reasons.extend(str(cause) for cause in causes(exc))
        over.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        await up.wait()
        try:
            async with RawPeer.of(failing.server) as peer:
                assert text(await peer.answer(CALL)) == "1"
                await failing.break_down()
                await peer.until(lambda inbox: inbox.has_ended, 10)
                with anyio.fail_after(10):
                    await over.wait()
        except BaseException as exc:
            reasons.extend(str(cause) for cause in causes(exc))
    assert "the pool is gone" in reasons
    assert failing.entered == failing.left == 1
    async with RawPeer.of(failing.server) as peer:
        assert text(await peer.answer(CALL)) == "2"
    assert failing.entered == failing.left == 2


@pytest.mark.fault("S-21")
async def test_handle_has_it_entered_anew() -> None:
    failing = Failing()
    for n in (1, 2, 3):
        assert text(json.loads(await failing.server.handle(line(CALL)) or b"")) == str(n)
        await failing.break_down()
    reasons: list[str] = []
    try:
        await failing.server.aclose()
    except BaseException as exc:
        reasons.extend(str(cause) for cause in causes(exc))
    assert set(reasons) <= {"the pool is gone"}
    assert failing.entered == failing.left == 3


@pytest.mark.fault("S-21")
async def test_one_that_cannot_be_entered_fails_each_who_wants_it() -> None:
    tries = 0

    @asynccontextmanager
    async def lifespan(server: Any) -> AsyncGenerator[str, None]:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise ConnectionError(f"no pool {tries}")
        yield "up"

    server = Server("s", lifespan=lifespan)
    for n in (1, 2):
        with pytest.raises(ConnectionError, match=f"no pool {n}"):
            async with RawPeer.of(server):
                raise AssertionError("entered")
    async with RawPeer.of(server) as peer:
        assert "result" in await peer.modern(1, "server/discover")


@pytest.mark.fault("S-21")
async def test_one_that_ends_as_it_should_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    failing = Failing()
    async with RawPeer.of(failing.server) as first:
        async with RawPeer.of(failing.server) as second:
            assert text(await second.answer(CALL)) == "1"
        assert text(await first.answer(CALL)) == "1"
    await failing.server.handle(line(CALL))
    await failing.server.aclose()
    flush_logs()
    assert failing.entered == failing.left == 2
    assert caplog.text == ""


@pytest.mark.fault("S-21")
async def test_who_leaves_last_is_told_of_a_failure_at_the_end() -> None:
    @asynccontextmanager
    async def lifespan(server: Any) -> AsyncGenerator[str, None]:
        yield "up"
        raise ConnectionError("does not close")

    with pytest.raises(ConnectionError, match="does not close"):
        async with RawPeer.of(Server("s", lifespan=lifespan)) as peer:
            await peer.modern(1, "server/discover")


@pytest.mark.fault("S-21")
async def test_it_may_be_entered_in_one_task_and_left_in_another() -> None:
    failing = Failing()
    server = failing.server
    inner = server.running()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(inner.__aenter__)
    assert failing.entered == 1

    async def leave() -> None:
        await inner.__aexit__(None, None, None)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leave)
    assert failing.left == 1

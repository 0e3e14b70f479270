"""Handlers that end in an unusual way: each request is answered, and the server lives on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

import anyio
import anyio.lowlevel
import msgspec
import pytest

from mcp_core import MCPError, RequestContext, Server
from mcp_core.testing import RawPeer, flush_logs
from mcp_core.types import CallToolRequestParams, CallToolResult, TextContent
from tests.core.peers import code_of, line, modern, notification


class Odd(MCPError):
    """An error whose constructor leaves out that of the base."""

    def __init__(self) -> None:
        self.left_out = True


class Hostile(Exception):
    """An exception that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class HostileEnd(BaseException):
    """The same outside of `Exception`."""


ENDINGS: Final[dict[str, Callable[[], BaseException]]] = {
    "GeneratorExit": GeneratorExit,
    "SystemExit": lambda: SystemExit(3),
    "asyncio cancelled": asyncio.CancelledError,
    "a base exception": HostileEnd,
    "a group of base exceptions": lambda: BaseExceptionGroup("g", [SystemExit(1), GeneratorExit(), ValueError()]),
    "a group of cancellations": lambda: BaseExceptionGroup("g", [asyncio.CancelledError()]),
    "StopIteration": StopIteration,
    "StopAsyncIteration": StopAsyncIteration,
    "RecursionError": RecursionError,
    "MemoryError": MemoryError,
    "an exception without a text": Hostile,
    "a group of them": lambda: ExceptionGroup("g", [Hostile()]),
    "an error without code": Odd,
}


class Watcher:
    """An observer that keeps how requests ended."""

    def __init__(self) -> None:
        self.finished: list[bytes] = []
        self.failed: list[str] = []

    def request_finished(self, ctx: Any, answer: bytes) -> None:
        self.finished.append(answer)

    def handler_failed(self, ctx: Any, exc: BaseException) -> None:
        self.failed.append(type(exc).__name__)


def ends_at_once(make: Callable[[], BaseException]) -> Any:
    def handler(ctx: RequestContext, params: Any) -> Any:
        raise make()

    return handler


def ends_first(make: Callable[[], BaseException]) -> Any:
    async def handler(ctx: RequestContext, params: Any) -> Any:
        raise make()

    return handler


def ends_later(make: Callable[[], BaseException]) -> Any:
    async def handler(ctx: RequestContext, params: Any) -> Any:
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        raise make()

    return handler


KINDS: Final = [ends_at_once, ends_first, ends_later]


async def through(ctx: RequestContext, call_next: Any) -> Any:
    return await call_next(ctx)


@pytest.mark.fault("S-20")
@pytest.mark.fault("X-11")
@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "middleware"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_request_is_answered_however_its_handler_ends(
    ending: str, kind: Callable[[Any], Any], wrapped: bool
) -> None:
    server = Server("s", on_call_tool=kind(ENDINGS[ending]))
    if wrapped:
        server.middleware.append(through)
    watcher = Watcher()
    server.observers.add(watcher)
    async with RawPeer.of(server) as peer:
        for request_id in (1, 2):
            answer = await peer.modern(request_id, "tools/call", {"name": "x"})
            assert (answer["id"], code_of(answer)) == (request_id, -32603)
        assert "result" in await peer.modern(3, "server/discover")
    assert len(watcher.finished) == 3
    assert len(watcher.failed) == 2


@pytest.mark.fault("S-20")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ENDINGS)
async def test_handle_answers_however_a_handler_ends(ending: str, kind: Callable[[Any], Any]) -> None:
    server = Server("s", on_call_tool=kind(ENDINGS[ending]))
    for request_id in (1, 2):
        answer = await server.handle(line(modern(request_id, "tools/call", {"name": "x"})))
        assert answer is not None
        assert code_of(json.loads(answer)) == -32603
    assert b'"result"' in (await server.handle(line(modern(3, "server/discover"))) or b"")


@pytest.mark.fault("S-20")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ENDINGS)
async def test_notifications_go_on_however_the_handler_of_one_ends(ending: str, kind: Callable[[Any], Any]) -> None:
    seen: list[int] = []
    ends = kind(ENDINGS[ending])

    def handler(ctx: RequestContext, params: dict[str, Any]) -> Any:
        seen.append(params["n"])
        return ends(ctx, params) if params["n"] % 2 else None

    server = Server("s")
    server.add_notification_handler("notifications/x", dict[str, Any], handler)
    async with RawPeer.of(server) as peer:
        for n in range(4):
            peer.send(notification("notifications/x", {"n": n}))
        assert "result" in await peer.modern(3, "server/discover")
        with anyio.fail_after(10):
            while len(seen) < 4:  # noqa: ASYNC110 - of a list that tells nobody
                await anyio.sleep(0.001)
    assert seen == [0, 1, 2, 3]
    for n in (1, 2):
        assert await server.handle(line(notification("notifications/x", {"n": n}))) is None
    assert seen == [0, 1, 2, 3, 1, 2]


@pytest.mark.fault("S-20")
async def test_a_handler_that_cancels_its_own_task_is_answered(anyio_backend_name: str) -> None:
    if anyio_backend_name == "trio":
        return  # there, nobody can cancel a task

    async def cancels(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        task = asyncio.current_task()
        assert task is not None
        if params.name == "later":
            await anyio.lowlevel.checkpoint()
        task.cancel()
        await anyio.sleep(10)
        return CallToolResult(content=[])

    async with RawPeer.of(Server("s", on_call_tool=cancels)) as peer:
        for request_id, name in enumerate(("now", "later", "now")):
            answer = await peer.modern(request_id, "tools/call", {"name": name})
            assert (answer["id"], code_of(answer)) == (request_id, -32603)


@pytest.mark.fault("S-20")
@pytest.mark.parametrize("kind", KINDS)
async def test_keyboard_interrupt_is_not_answered(kind: Callable[[Any], Any]) -> None:
    server = Server("s", on_call_tool=kind(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        await server.handle(line(modern(1, "tools/call", {"name": "x"})))


@pytest.mark.fault("S-20")
@pytest.mark.parametrize("fails_alone", [False, True])
async def test_a_failure_amid_a_cancellation_ends_nothing_else(
    caplog: pytest.LogCaptureFixture, fails_alone: bool
) -> None:
    begun, cleaned = anyio.Event(), anyio.Event()

    async def child() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cleaned.set()
            raise ValueError("while cleaning up")

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        if params.name != "fails":
            return CallToolResult(content=[])
        begun.set()
        if fails_alone:
            await child()
        async with anyio.create_task_group() as group:
            group.start_soon(child)
            group.start_soon(anyio.sleep_forever)
            await anyio.sleep_forever()
        raise AssertionError

    async with RawPeer.of(Server("s", on_call_tool=call)) as peer:
        peer.send(modern(1, "tools/call", {"name": "fails"}))
        with anyio.fail_after(10):
            await begun.wait()
            await anyio.sleep(0.01)  # so that the children are under way
            peer.send(notification("notifications/cancelled", {"requestId": 1}))
            await cleaned.wait()
        answer = await peer.modern(2, "tools/call", {"name": "fine"})
        assert answer["id"] == 2
        assert "result" in answer
    flush_logs()
    assert "while cleaning up" in caplog.text


@pytest.mark.fault("S-20")
async def test_a_failure_while_the_server_ends_does_not_come_out_of_it() -> None:
    begun = anyio.Event()

    async def child() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise ValueError("while cleaning up")

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        async with anyio.create_task_group() as group:
            group.start_soon(child)
            begun.set()
        raise AssertionError

    async with RawPeer.of(Server("s", on_call_tool=call)) as peer:
        peer.send(modern(1, "tools/call", {"name": "fails"}))
        with anyio.fail_after(10):
            await begun.wait()


# --- values that fail when somebody looks at them -----------------------------------------------


class Unshown:
    """A value that fails in every way."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not to be compared")

    __hash__ = None  # type: ignore[assignment]


HOSTILE_VALUES: Final[dict[str, Callable[[], Any]]] = {
    "itself": Unshown,
    "content": lambda: CallToolResult(content=Unshown()),  # type: ignore[arg-type]
    "block": lambda: CallToolResult(content=[Unshown()]),  # type: ignore[list-item]
    "text": lambda: CallToolResult(content=[TextContent(text=Unshown())]),  # type: ignore[arg-type]
    "structured": lambda: CallToolResult(content=[], structured_content={"a": Unshown()}),
    "meta": lambda: CallToolResult(content=[], _meta={"a": Unshown()}),
    "is_error": lambda: CallToolResult(content=[], is_error=Unshown()),  # type: ignore[arg-type]
    "dict": lambda: {"content": Unshown()},
    "key": lambda: {"content": [], "structuredContent": {Key(): 1}},
    "raw": lambda: msgspec.Raw(b"\xff{"),
    "a number": lambda: 5,
    "a list": list[Any],
    "itself within": lambda: nested(),
}


class Key:
    def __repr__(self) -> str:
        raise RuntimeError("no text")

    __str__ = __repr__


def nested() -> dict[str, Any]:
    value: dict[str, Any] = {"content": []}
    value["structuredContent"] = {"a": value}
    return value


@pytest.mark.fault("X-04")
@pytest.mark.parametrize("raised", [False, True], ids=["returned", "as data of an error"])
@pytest.mark.parametrize("waits", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize("value", HOSTILE_VALUES)
async def test_a_value_that_cannot_be_sent_is_an_error_of_its_request(value: str, waits: bool, raised: bool) -> None:
    def give(ctx: RequestContext, params: Any) -> Any:
        if raised:
            raise MCPError(-32050, "m", {"data": HOSTILE_VALUES[value]()})
        return HOSTILE_VALUES[value]()

    async def give_later(ctx: RequestContext, params: Any) -> Any:
        await anyio.lowlevel.checkpoint()
        return give(ctx, params)

    async with RawPeer.of(Server("s", on_call_tool=give_later if waits else give)) as peer:
        answer = await peer.modern(1, "tools/call", {"name": "x"})
        assert answer["id"] == 1
        assert raised or code_of(answer) == -32603
        assert answer["error"]["code"] in (-32603, -32050)
        assert "result" in await peer.modern(2, "server/discover")


@pytest.mark.fault("X-04")
async def test_errors_with_odd_members_are_answered() -> None:
    class Untold:
        def __str__(self) -> str:
            raise RuntimeError

    odd: list[Any] = [("x", "m"), (True, "m"), (10**400, "m"), (None, 5), (-32050, Untold()), (1.5, None)]

    def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        code, message = odd[int(params.name)]
        raise MCPError(code, message)

    async with RawPeer.of(Server("s", on_call_tool=call)) as peer:
        for index in range(len(odd)):
            assert code_of(await peer.modern(index, "tools/call", {"name": str(index)})) is not None


class Picky(msgspec.Struct):
    """Params whose own check fails otherwise than as msgspec expects."""

    a: int = 0

    def __post_init__(self) -> None:
        raise KeyError(self.a)


@pytest.mark.fault("X-15")
async def test_params_types_that_fail_are_an_error_of_their_request() -> None:
    server = Server("s")
    server.add_request_handler("x/picky", Picky, lambda ctx, params: {})
    server.add_notification_handler("notifications/picky", Picky, lambda ctx, params: None)
    async with RawPeer.of(server) as peer:
        peer.send(notification("notifications/picky", {"a": 1}))
        assert code_of(await peer.modern(1, "x/picky", {"a": 1})) == -32603
        assert "result" in await peer.modern(2, "server/discover")
    assert b"-32603" in (await server.handle(line(modern(1, "x/picky", {"a": 1}))) or b"")
    assert await server.handle(line(notification("notifications/picky", {"a": 1}))) is None


@pytest.mark.fault("X-15")
@pytest.mark.parametrize("kind", [Unshown, object, type("Model", (), {}), 5, "x y"])
def test_params_types_that_cannot_be_decoded_are_refused_when_added(kind: Any) -> None:
    server = Server("s")
    for add in (server.add_request_handler, server.add_notification_handler):
        with pytest.raises(TypeError, match=r"params_type of 'x/y' must be a type that msgspec decodes"):
            add("x/y", kind, lambda ctx, params: {})


# --- a responder that raises --------------------------------------------------------------------


@pytest.mark.fault("S-03")
async def test_a_fault_of_the_responder_does_not_end_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server("s")
    dispatcher = server.dispatcher

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    async with RawPeer.of(server) as peer:
        with monkeypatch.context() as patched:
            patched.setattr(dispatcher, "begin", broken)
            patched.setattr(dispatcher, "notify", broken)
            peer.send(notification("notifications/x"))
            answer = await peer.modern(1, "server/discover")
            assert (answer["id"], code_of(answer)) == (1, -32603)
        assert "result" in await peer.modern(1, "server/discover")

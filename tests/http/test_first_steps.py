"""Handlers that wait: what their first step does counts as what the later ones do, whoever makes it.

The first step of a handler may be made before anything stands ready to interrupt it. It
must not be seen from inside: scopes, timeouts and tasks that are opened in it hold, and a
client that goes away cancels what waits, wherever that is.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, MutableMapping
from contextlib import suppress
from typing import Any

import anyio
import pytest

from mcp_core import RequestContext, Server
from mcp_core.errors import InvalidParams
from mcp_core.testing import flush_logs
from mcp_core.transports.streamable_http import HTTPOptions, StreamableHTTP
from mcp_core.types import CallToolRequestParams, CallToolResult, TextContent
from tests.http.asgi import SECONDS, Exchange, HandshakeClient, ModernClient, Response

Handler = Callable[[RequestContext], Awaitable[str]]
Wait = Callable[[], Coroutine[Any, Any, None]]

eras = pytest.mark.parametrize("era", ["modern", "session", "no session"])
steps = pytest.mark.parametrize("first", [True, False], ids=["first step", "later"])
on_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])


async def client_of(era: str, handler: Handler, *, around: Any = None) -> ModernClient | HandshakeClient:
    """A client of a server with this one tool, which cancels when its client goes; `around` is put around the app."""

    async def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        return CallToolResult(content=[TextContent(text=await handler(ctx))])

    server = Server("steps", on_call_tool=call)
    app: Any = StreamableHTTP(server, HTTPOptions(stateless_http=era == "no session", cancel_on_disconnect=True))
    if around is not None:
        app = around(app)
    if era == "modern":
        return ModernClient(app)
    client = HandshakeClient(app)
    await client.initialize()
    return client


def call_of(client: ModernClient | HandshakeClient, request_id: Any = 1) -> dict[str, Any]:
    """A call that asks for progress."""
    if isinstance(client, ModernClient):
        return client.message(request_id, "tools/call", {"name": "t"}, meta={"progressToken": "p"})
    return client.calling("t", request_id=request_id, token="p")


def text_of(response: Response) -> str:
    (block,) = response.answer["result"]["content"]
    return str(block["text"])


class Trace:
    """How far a handler has come, and what lets it go on."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.again = anyio.Event()
        self.gate = anyio.Event()
        self.ends: list[str] = []

    async def has_started(self) -> None:
        with anyio.fail_after(SECONDS):
            await self.started.wait()

    async def waits_again(self) -> None:
        with anyio.fail_after(SECONDS):
            await self.again.wait()

    async def wait(self) -> None:
        """Wait to be let on, and note it if the wait is cancelled."""
        self.started.set()
        try:
            await self.gate.wait()
        except anyio.get_cancelled_exc_class():
            self.ends.append("cancelled")
            raise


async def checkpoint_unless(first: bool) -> None:
    """Leave the first step, unless that is where things are to happen."""
    if not first:
        await anyio.lowlevel.checkpoint()


async def went_away(exchange: Exchange) -> None:
    """Go away, and see the request end without a fault."""
    exchange.disconnect()
    await exchange.returned()
    assert exchange.error is None


# --- raising ------------------------------------------------------------------------------------------------


class Ungrouped(BaseException):
    """Not even an `Exception`."""


FAILURES: list[tuple[BaseException, int, str]] = [
    (RuntimeError("secret"), -32603, "Internal server error"),
    (InvalidParams("no"), -32602, "no"),
    (StopIteration("secret"), -32603, "Internal server error"),
    (ExceptionGroup("secret", [ValueError("secret")]), -32603, "Internal server error"),
    (TimeoutError("secret"), -32603, "Internal server error"),
    (asyncio.CancelledError("secret"), -32603, "Internal server error"),
    (Ungrouped("secret"), -32603, "Internal server error"),
]


@eras
@steps
@pytest.mark.parametrize(("failure", "code", "message"), FAILURES, ids=[repr(failure) for failure, *_ in FAILURES])
@pytest.mark.parametrize("progress", [False, True], ids=["json", "stream"])
async def test_a_handler_that_raises_is_answered(
    era: str, first: bool, failure: BaseException, code: int, message: str, progress: bool
) -> None:
    async def handler(ctx: RequestContext) -> str:
        await checkpoint_unless(first)
        if progress:
            await ctx.report_progress(1)
        raise failure

    client = await client_of(era, handler)
    response = await client.answer(call_of(client, "x"))
    answer = response.messages[-1] if progress else response.json
    assert response.status == 200
    assert answer == {"jsonrpc": "2.0", "id": "x", "error": {"code": code, "message": message}}


@eras
@steps
async def test_what_a_handler_raises_is_logged_once(era: str, first: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(ctx: RequestContext) -> str:
        await checkpoint_unless(first)
        raise RuntimeError("secret")

    client = await client_of(era, handler)
    with caplog.at_level(logging.ERROR, logger="mcp_core"):
        await client.answer(call_of(client))
        flush_logs()
    (record,) = caplog.records
    assert record.getMessage() == "the handler of tools/call raised RuntimeError"
    assert "in handler" in (record.exc_text or "")


# --- waiting ------------------------------------------------------------------------------------------------


async def an_event(trace: Trace) -> None:
    await trace.wait()


async def a_turn_of_the_loop(trace: Trace) -> None:
    trace.started.set()
    while not trace.gate.is_set():
        await anyio.lowlevel.checkpoint()


async def a_moment(trace: Trace) -> None:
    trace.started.set()
    await anyio.sleep(0.001)
    await trace.wait()


async def a_thread(trace: Trace) -> None:
    trace.started.set()
    await anyio.to_thread.run_sync(lambda: None)
    await trace.wait()


async def a_lock(trace: Trace) -> None:
    lock = anyio.Lock()
    async with lock, anyio.create_task_group() as tasks:

        async def wants_it() -> None:
            async with lock:
                return

        tasks.start_soon(wants_it)
        await trace.wait()
        lock.release()
        await anyio.lowlevel.checkpoint()
        await lock.acquire()


async def a_stream(trace: Trace) -> None:
    send, receive = anyio.create_memory_object_stream[None]()
    async with send, receive, anyio.create_task_group() as tasks:

        async def feed() -> None:
            await trace.wait()
            await send.send(None)

        tasks.start_soon(feed)
        await receive.receive()


WAITS: list[Callable[[Trace], Awaitable[None]]] = [an_event, a_turn_of_the_loop, a_moment, a_thread, a_lock, a_stream]


@eras
@pytest.mark.parametrize("waits_for", WAITS, ids=lambda wait: wait.__name__)
async def test_a_handler_that_waits_is_answered(era: str, waits_for: Callable[[Trace], Awaitable[None]]) -> None:
    trace = Trace()
    tasks: set[int] = set()

    async def handler(ctx: RequestContext) -> str:
        tasks.add(anyio.get_current_task().id)
        await waits_for(trace)
        tasks.add(anyio.get_current_task().id)
        return "waited"

    client = await client_of(era, handler)
    async with client.post(call_of(client)) as exchange:
        await trace.has_started()
        await anyio.lowlevel.checkpoint()
        assert not exchange.has_started
        trace.gate.set()
        assert text_of(await exchange.response()) == "waited"
    assert len(tasks) == 1


@eras
@pytest.mark.parametrize("waits_for", WAITS, ids=lambda wait: wait.__name__)
async def test_a_client_that_goes_ends_the_wait(era: str, waits_for: Callable[[Trace], Awaitable[None]]) -> None:
    trace = Trace()
    ends: list[str] = []

    async def handler(ctx: RequestContext) -> str:
        try:
            await waits_for(trace)
        except BaseException as exc:
            ends.append(type(exc).__name__)
            raise
        return "waited"

    client = await client_of(era, handler)
    async with client.post(call_of(client)) as exchange:
        await trace.has_started()
        await went_away(exchange)
    (name,) = ends
    assert name in ("Cancelled", "CancelledError", "BaseExceptionGroup")


class Later:
    """Something that can be awaited, and is no coroutine."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __await__(self) -> Generator[Any, Any, CallToolResult]:
        yield from self._trace.wait().__await__()
        return CallToolResult(content=[TextContent(text="later")])


@pytest.mark.parametrize("goes", [False, True], ids=["stays", "goes"])
async def test_any_awaitable_that_a_handler_returns_is_awaited(goes: bool) -> None:
    trace = Trace()

    def call(ctx: RequestContext, params: CallToolRequestParams) -> Any:
        return Later(trace)

    client = ModernClient(Server("awaitable", on_call_tool=call).streamable_http_app())
    async with client.post(call_of(client)) as exchange:
        await trace.has_started()
        if goes:
            await went_away(exchange)
        else:
            trace.gate.set()
            assert text_of(await exchange.response()) == "later"
    assert trace.ends == (["cancelled"] if goes else [])


@on_asyncio
@pytest.mark.parametrize("is_done", [False, True], ids=["pending", "done"])
async def test_a_future_that_a_handler_returns_is_awaited(is_done: bool) -> None:
    future: asyncio.Future[CallToolResult] = asyncio.get_running_loop().create_future()
    result = CallToolResult(content=[TextContent(text="later")])

    def call(ctx: RequestContext, params: CallToolRequestParams) -> Any:
        if is_done:
            future.set_result(result)
        return future

    client = ModernClient(Server("future", on_call_tool=call).streamable_http_app())
    async with client.post(call_of(client)) as exchange:
        if not is_done:
            await anyio.wait_all_tasks_blocked()
            future.set_result(result)
        assert text_of(await exchange.response()) == "later"


@eras
async def test_context_variables_of_the_first_step_are_there_in_the_later_ones(era: str) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    seen: list[str] = []

    async def handler(ctx: RequestContext) -> str:
        seen.append(variable.get())
        token = variable.set("first")
        await anyio.lowlevel.checkpoint()
        seen.append(variable.get())
        await anyio.sleep(0.001)
        variable.reset(token)
        return variable.get()

    client = await client_of(era, handler)
    for _ in range(2):
        assert text_of(await client.answer(call_of(client))) == "unset"
    assert seen == ["unset", "first"] * 2


@eras
@steps
async def test_what_is_sent_before_a_wait_leaves_before_it(era: str, first: bool) -> None:
    trace = Trace()

    async def handler(ctx: RequestContext) -> str:
        await checkpoint_unless(first)
        await ctx.report_progress(1)
        await trace.wait()
        await ctx.report_progress(2)
        return "waited"

    client = await client_of(era, handler)
    async with client.post(call_of(client)) as exchange:
        assert (await exchange.next_message())["params"]["progress"] == 1
        trace.gate.set()
        assert (await exchange.next_message())["params"]["progress"] == 2
        assert text_of(await exchange.response()) == "waited"


# --- scopes and timeouts that hold --------------------------------------------------------------------------


async def move_on_after(wait: Wait) -> None:
    with anyio.move_on_after(60):
        await wait()


async def fail_after(wait: Wait) -> None:
    with anyio.fail_after(60):
        await wait()


async def a_scope(wait: Wait) -> None:
    with anyio.CancelScope():
        await wait()


async def scopes_in_scopes(wait: Wait) -> None:
    with anyio.CancelScope(), anyio.move_on_after(60):
        await anyio.lowlevel.checkpoint()
        with anyio.fail_after(60):
            await wait()


async def a_task_group(wait: Wait) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.sleep_forever)
        await wait()
        tasks.cancel_scope.cancel()


async def a_child(wait: Wait) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)


async def asyncio_timeout(wait: Wait) -> None:
    async with asyncio.timeout(60):
        await wait()


async def asyncio_wait_for(wait: Wait) -> None:
    await asyncio.wait_for(wait(), 60)


async def asyncio_task_group(wait: Wait) -> None:
    async with asyncio.TaskGroup() as tasks:
        sleeper = tasks.create_task(asyncio.sleep(60))
        await wait()
        sleeper.cancel()


async def asyncio_in_anyio(wait: Wait) -> None:
    with anyio.move_on_after(60):
        async with asyncio.timeout(60):
            await wait()


async def anyio_in_asyncio(wait: Wait) -> None:
    async with asyncio.timeout(60):
        with anyio.move_on_after(60):
            await wait()


Holding = Callable[[Wait], Awaitable[None]]
HOLDS: list[Holding] = [move_on_after, fail_after, a_scope, scopes_in_scopes, a_task_group, a_child]
ASYNCIO_HOLDS: list[Holding] = [
    asyncio_timeout,
    asyncio_wait_for,
    asyncio_task_group,
    asyncio_in_anyio,
    anyio_in_asyncio,
]

BOTH_BACKENDS = [
    *(
        pytest.param(hold, backend, id=f"{backend}-{hold.__name__}")
        for hold in HOLDS
        for backend in ("asyncio", "trio")
    ),
    *(pytest.param(hold, "asyncio", id=f"asyncio-{hold.__name__}") for hold in ASYNCIO_HOLDS),
]
holds = pytest.mark.parametrize(("hold", "anyio_backend"), BOTH_BACKENDS)


@eras
@steps
@holds
async def test_a_wait_in_a_scope_ends_by_itself(era: str, first: bool, hold: Holding) -> None:
    trace = Trace()

    async def handler(ctx: RequestContext) -> str:
        await checkpoint_unless(first)
        await hold(trace.wait)
        await anyio.lowlevel.checkpoint()
        return "waited"

    client = await client_of(era, handler)
    async with client.post(call_of(client)) as exchange:
        await trace.has_started()
        trace.gate.set()
        assert text_of(await exchange.response()) == "waited"
    assert trace.ends == []


@pytest.mark.requirement("R-HTTP-11")
@eras
@steps
@holds
async def test_a_client_that_goes_cancels_a_wait_in_a_scope(era: str, first: bool, hold: Holding) -> None:
    trace = Trace()
    went_on: list[str] = []

    async def handler(ctx: RequestContext) -> str:
        await checkpoint_unless(first)
        await hold(trace.wait)
        went_on.append("past the wait")
        return "waited"

    client = await client_of(era, handler)
    async with client.post(call_of(client)) as exchange:
        await trace.has_started()
        await went_away(exchange)
    assert trace.ends == ["cancelled"]
    assert went_on == []
    # Who calls next is served.
    trace.gate.set()
    assert text_of(await client.answer(call_of(client))) == "waited"


@pytest.mark.requirement("R-HTTP-11")
@eras
@holds
async def test_a_client_that_goes_cancels_a_wait_after_a_scope(era: str, hold: Holding) -> None:
    opened, trace = Trace(), Trace()

    async def handler(ctx: RequestContext) -> str:
        await hold(opened.wait)
        await trace.wait()
        return "waited"

    client = await client_of(era, handler)
    async with client.post(call_of(client)) as exchange:
        await opened.has_started()
        opened.gate.set()
        await trace.has_started()
        await went_away(exchange)
    assert (opened.ends, trace.ends) == ([], ["cancelled"])


# --- scopes and timeouts that end -----------------------------------------------------------------------------


async def moves_on(wait: Wait) -> None:
    with anyio.move_on_after(0.01) as scope:
        await wait()
    assert scope.cancelled_caught


async def moves_on_at_once(wait: Wait) -> None:
    with anyio.move_on_after(0) as scope:
        await wait()
    assert scope.cancelled_caught


async def fails(wait: Wait) -> None:
    with pytest.raises(TimeoutError), anyio.fail_after(0.01):
        await wait()


async def is_cancelled_by_a_child(wait: Wait) -> None:
    async with anyio.create_task_group() as tasks:

        async def cancel() -> None:
            tasks.cancel_scope.cancel()

        tasks.start_soon(cancel)
        await wait()


async def ends_the_outer_scope(wait: Wait) -> None:
    inner = anyio.CancelScope()
    with anyio.move_on_after(0.01) as outer, inner:
        await wait()
    assert (outer.cancelled_caught, inner.cancelled_caught) == (True, False)


async def ends_the_inner_scope(wait: Wait) -> None:
    with anyio.move_on_after(60) as outer:
        await moves_on(wait)
        await anyio.lowlevel.checkpoint()
    assert not outer.cancelled_caught


async def ends_twice(wait: Wait) -> None:
    await moves_on(wait)
    await moves_on(wait)


async def asyncio_times_out(wait: Wait) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await wait()


async def asyncio_times_out_in_a_scope(wait: Wait) -> None:
    with anyio.move_on_after(60) as scope:
        await asyncio_times_out(wait)
    assert not scope.cancelled_caught


async def a_scope_ends_before_asyncio_times_out(wait: Wait) -> None:
    async with asyncio.timeout(60):
        await moves_on(wait)


async def asyncio_child_fails(wait: Wait) -> None:
    async def fail() -> None:
        raise ValueError("on purpose")

    with suppress(ExceptionGroup):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail())
            await wait()


ENDS: list[Holding] = [
    moves_on,
    moves_on_at_once,
    fails,
    is_cancelled_by_a_child,
    ends_the_outer_scope,
    ends_the_inner_scope,
    ends_twice,
]
ASYNCIO_ENDS: list[Holding] = [
    asyncio_times_out,
    asyncio_times_out_in_a_scope,
    a_scope_ends_before_asyncio_times_out,
    asyncio_child_fails,
]
ends = pytest.mark.parametrize(
    ("end", "anyio_backend"),
    [
        *(
            pytest.param(end, backend, id=f"{backend}-{end.__name__}")
            for end in ENDS
            for backend in ("asyncio", "trio")
        ),
        *(pytest.param(end, "asyncio", id=f"asyncio-{end.__name__}") for end in ASYNCIO_ENDS),
    ],
)


def cancellations_of_this_task() -> int:
    """How many requests to cancel the running task are not settled; trio counts none."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return 0
    return 0 if task is None else task.cancelling()


@eras
@steps
@ends
async def test_a_scope_that_ends_ends_its_own_wait_alone(era: str, first: bool, end: Holding) -> None:
    inside, after = Trace(), Trace()

    async def handler(ctx: RequestContext) -> str:
        await checkpoint_unless(first)
        await end(inside.wait)
        assert cancellations_of_this_task() == 0
        await after.wait()
        return "went on"

    client = await client_of(era, handler)
    async with client.post(call_of(client)) as exchange:
        await after.has_started()
        assert set(inside.ends) == {"cancelled"}
        await anyio.wait_all_tasks_blocked()
        assert not exchange.has_started
        after.gate.set()
        assert text_of(await exchange.response()) == "went on"
    assert after.ends == []


@pytest.mark.requirement("R-HTTP-11")
@eras
@steps
@ends
async def test_a_client_that_goes_after_a_scope_has_ended_cancels(era: str, first: bool, end: Holding) -> None:
    inside, after = Trace(), Trace()

    async def handler(ctx: RequestContext) -> str:
        await checkpoint_unless(first)
        await end(inside.wait)
        await after.wait()
        return "went on"

    client = await client_of(era, handler)
    async with client.post(call_of(client)) as exchange:
        await after.has_started()
        await went_away(exchange)
    assert after.ends == ["cancelled"]


@pytest.mark.requirement("R-HTTP-11")
@eras
@steps
@pytest.mark.parametrize("turns", range(5))
@pytest.mark.parametrize("scope_first", [True, False], ids=["scope first", "client first"])
async def test_a_client_that_goes_as_a_scope_ends_cancels(era: str, first: bool, turns: int, scope_first: bool) -> None:
    inside, after = Trace(), Trace()
    scopes: list[anyio.CancelScope] = []

    async def handler(ctx: RequestContext) -> str:
        await checkpoint_unless(first)
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await inside.wait()
        await after.wait()
        return "went on"

    client = await client_of(era, handler)
    async with client.post(call_of(client)) as exchange:
        await inside.has_started()
        (scope,) = scopes
        for act in (scope.cancel, exchange.disconnect) if scope_first else (exchange.disconnect, scope.cancel):
            act()
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
        await exchange.returned()
        assert exchange.error is None
    assert inside.ends == ["cancelled"]
    assert after.ends in ([], ["cancelled"])


@pytest.mark.requirement("R-HTTP-11")
@on_asyncio
@eras
@steps
@pytest.mark.parametrize("turns", range(5))
async def test_a_client_that_goes_as_asyncio_times_out_cancels(era: str, first: bool, turns: int) -> None:
    inside, after = Trace(), Trace()
    timeouts: list[asyncio.Timeout] = []

    async def handler(ctx: RequestContext) -> str:
        await checkpoint_unless(first)
        try:
            async with asyncio.timeout(None) as timeout:
                timeouts.append(timeout)
                await inside.wait()
        except TimeoutError:
            await after.wait()
        return "went on"

    client = await client_of(era, handler)
    async with client.post(call_of(client)) as exchange:
        await inside.has_started()
        timeouts[0].reschedule(asyncio.get_running_loop().time())
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        await went_away(exchange)
    assert inside.ends == ["cancelled"]
    assert after.ends in ([], ["cancelled"])


# --- a client that goes amid a step ---------------------------------------------------------------------------


@pytest.mark.requirement("R-HTTP-11")
@eras
@steps
@pytest.mark.parametrize("hold", HOLDS, ids=lambda hold: hold.__name__)
async def test_a_client_that_goes_amid_a_step_cancels_the_next_wait(era: str, first: bool, hold: Holding) -> None:
    trace = Trace()
    exchanges: list[Exchange] = []

    async def handler(ctx: RequestContext) -> str:
        await checkpoint_unless(first)
        exchanges[0].disconnect()
        try:
            await hold(trace.wait)
        except anyio.get_cancelled_exc_class():
            trace.ends.append("out")
            raise
        return "waited"

    client = await client_of(era, handler)
    async with client.post(call_of(client)) as exchange:
        exchanges.append(exchange)
        await exchange.returned()
        assert exchange.error is None
    assert trace.ends[-1] == "out"


@eras
@steps
@pytest.mark.parametrize("raises_when_gone", [False, True], ids=["silent", "raising"])
@pytest.mark.parametrize("fails", [False, True], ids=["returns", "raises"])
async def test_a_client_that_goes_amid_the_last_step_harms_nobody(
    era: str, first: bool, raises_when_gone: bool, fails: bool
) -> None:
    exchanges: list[Exchange] = []

    async def handler(ctx: RequestContext) -> str:
        await checkpoint_unless(first)
        if exchanges:
            exchanges.pop().disconnect()
        if fails:
            raise InvalidParams("no")
        return "returned"

    client = await client_of(era, handler)
    async with client.post(call_of(client), raises_when_gone=raises_when_gone) as exchange:
        exchanges.append(exchange)
        await exchange.returned()
        assert exchange.error is None
    assert (await client.answer(call_of(client))).status == 200


@pytest.mark.requirement("R-HTTP-11")
@eras
@steps
async def test_a_client_that_goes_without_reading_cancels_who_sends(era: str, first: bool) -> None:
    trace = Trace()

    async def handler(ctx: RequestContext) -> str:
        await checkpoint_unless(first)
        trace.started.set()
        numbers = itertools.count()
        try:
            while True:
                await ctx.report_progress(next(numbers))
                await anyio.lowlevel.checkpoint()
        except anyio.get_cancelled_exc_class():
            trace.ends.append("cancelled")
            raise

    client = await client_of(era, handler)
    async with client.post(call_of(client)) as exchange:
        exchange.stop_reading()
        await trace.has_started()
        await anyio.wait_all_tasks_blocked()
        await went_away(exchange)
    assert trace.ends == ["cancelled"]


@eras
@steps
async def test_what_a_handler_does_at_its_end_is_done(era: str, first: bool) -> None:
    trace = Trace()
    cleaned: list[str] = []

    async def handler(ctx: RequestContext) -> str:
        await checkpoint_unless(first)
        try:
            await trace.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)
                cleaned.append("cleaned")
        return "waited"

    client = await client_of(era, handler)
    async with client.post(call_of(client)) as exchange:
        await trace.has_started()
        await went_away(exchange)
        assert cleaned == ["cleaned"]


@eras
@steps
async def test_a_handler_that_is_not_moved_by_it_is_not_heard(era: str, first: bool) -> None:
    trace = Trace()

    async def handler(ctx: RequestContext) -> str:
        await checkpoint_unless(first)
        try:
            await trace.wait()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await ctx.report_progress(1)
        return "all the same"

    client = await client_of(era, handler)
    async with client.post(call_of(client)) as exchange:
        await trace.has_started()
        await went_away(exchange)
        assert b"".join(message.get("body", b"") for message in exchange.sent_late) == b""


# --- the task of the request ------------------------------------------------------------------------------------

Scope = MutableMapping[str, Any]


def watching(states: list[int]) -> Callable[[Any], Any]:
    """Around an app: whether its task is as it was, when the app has returned."""

    def around(app: Any) -> Any:
        async def run(scope: Scope, receive: Any, send: Any) -> None:
            await app(scope, receive, send)
            states.append(cancellations_of_this_task())
            await anyio.lowlevel.checkpoint()

        return run

    return around


@eras
@steps
@pytest.mark.parametrize("goes", [False, True], ids=["stays", "goes"])
@holds
async def test_the_task_is_left_as_it_was(era: str, first: bool, goes: bool, hold: Holding) -> None:
    trace = Trace()
    states: list[int] = []

    async def handler(ctx: RequestContext) -> str:
        await checkpoint_unless(first)
        await hold(trace.wait)
        return "waited"

    client = await client_of(era, handler, around=watching(states))
    async with client.post(call_of(client)) as exchange:
        await trace.has_started()
        if goes:
            await went_away(exchange)
        else:
            trace.gate.set()
            assert text_of(await exchange.response()) == "waited"
    assert set(states) == {0}


@eras
@steps
@holds
async def test_who_serves_the_app_may_cancel_it(era: str, first: bool, hold: Holding) -> None:
    trace = Trace()
    scopes: list[anyio.CancelScope] = []
    caught: list[bool] = []

    def around(app: Any) -> Any:
        async def run(scope: Scope, receive: Any, send: Any) -> None:
            with anyio.CancelScope() as cancel_scope:
                scopes.append(cancel_scope)
                await app(scope, receive, send)
            caught.append(cancel_scope.cancelled_caught)

        return run

    async def handler(ctx: RequestContext) -> str:
        await checkpoint_unless(first)
        await hold(trace.wait)
        return "waited"

    client = await client_of(era, handler, around=around)
    async with client.post(call_of(client)) as exchange:
        await trace.has_started()
        scopes[-1].cancel()
        await exchange.returned()
        assert (exchange.error, exchange.has_started) == (None, False)
    assert trace.ends == ["cancelled"]
    assert caught[-1] is True


@pytest.mark.parametrize("hold", HOLDS, ids=lambda hold: hold.__name__)
@steps
async def test_a_server_that_has_no_more_time_ends_what_waits(first: bool, hold: Holding) -> None:
    trace = Trace()
    apps: list[StreamableHTTP] = []

    def around(app: StreamableHTTP) -> StreamableHTTP:
        apps.append(app)
        return app

    async def handler(ctx: RequestContext) -> str:
        await checkpoint_unless(first)
        await hold(trace.wait)
        return "waited"

    client = await client_of("modern", handler, around=around)
    async with client.post(call_of(client, "x")) as exchange:
        await trace.has_started()
        apps[0].cut_off()
        response = await exchange.response()
    assert (response.status, response.json["id"], response.json["error"]["code"]) == (503, "x", -32603)
    assert trace.ends == ["cancelled"]

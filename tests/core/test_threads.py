"""Worker threads: a call waits only where no thread is free, few may wait, and code in one reaches the event loop."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Generator
from typing import Any

import anyio
import anyio.from_thread
import pytest

from mcp_core.threads import PoolBusy, WorkerThreads, call_on_loop, in_worker_thread


def workers() -> int:
    """How many worker threads there are."""
    return sum(1 for thread in threading.enumerate() if thread.name == "mcp_core.worker")


async def until(ready: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not ready():  # noqa: ASYNC110 - what threads do sets no event of the loop's
            await anyio.sleep(0.001)


@pytest.fixture
def often_switched() -> Generator[None]:
    """Threads are switched as often as can be, which finds races."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.fault("S-28")
@pytest.mark.usefixtures("often_switched")
async def test_a_call_never_waits_behind_another_while_a_thread_is_free() -> None:
    for number in range(300):
        pool, blocked = WorkerThreads(3), threading.Event()
        await pool.run(int)  # one thread, idle
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(pool.run, blocked.wait)
                await anyio.lowlevel.checkpoint()
                until_then = time.perf_counter() + (number % 50) * 2e-6
                while time.perf_counter() < until_then:
                    pass
                with anyio.fail_after(20):
                    await pool.run(int)  # behind the one that blocks it would not come back
                blocked.set()
        finally:
            blocked.set()


async def test_so_many_calls_run_and_the_others_come_in_turn() -> None:
    pool, blocked = WorkerThreads(2), threading.Event()
    begun: list[int] = []
    order: list[int] = []

    def work(number: int) -> None:
        begun.append(number)
        blocked.wait(30)
        order.append(number)

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(pool.run, lambda number=number: work(number))
            await anyio.lowlevel.checkpoint()
        await until(lambda: len(begun) == 2)
        blocked.set()
    assert sorted(order) == list(range(6))


async def test_only_so_many_calls_may_wait() -> None:
    pool, blocked, begun = WorkerThreads(1, max_waiting=2), threading.Event(), threading.Event()

    def block() -> None:
        begun.set()
        blocked.wait(30)

    async with anyio.create_task_group() as group:
        group.start_soon(pool.run, block)
        await until(begun.is_set)
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(pool.run, int)
            waiting.start_soon(pool.run, int)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(PoolBusy, match="1 calls are in progress, and 2 wait"):
                await pool.run(int)
            # Who gives up makes room at once, though no thread has come to its call.
            waiting.cancel_scope.cancel()
        group.start_soon(pool.run, int)
        await anyio.wait_all_tasks_blocked()
        blocked.set()


@pytest.mark.parametrize("options", [{"size": 0}, {"size": 1.5}, {"size": True}, {"max_waiting": -1}], ids=str)
def test_options_of_no_use_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"\A{next(iter(options))} must be a .*; got "):
        WorkerThreads(**options)


async def test_threads_end_with_their_pool() -> None:
    before = workers()
    pool = WorkerThreads(4)
    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(pool.run, lambda: time.sleep(0.001))
    assert workers() > before
    del pool
    gc.collect()
    await until(lambda: workers() <= before)


@pytest.mark.parametrize("error", [StopIteration, GeneratorExit, KeyboardInterrupt])
async def test_what_means_something_else_in_a_coroutine_is_a_failure(error: type[BaseException]) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(RuntimeError, match=f"the call raised {error.__name__}") as caught:
        await WorkerThreads(1).run(fail)
    assert type(caught.value.__cause__) is error


# --- back to the event loop --------------------------------------------------------------------------


async def plus_one(number: int) -> int:
    await anyio.lowlevel.checkpoint()
    return number + 1


async def fails() -> None:
    raise KeyError("k")


@pytest.mark.fault("X-05")
@pytest.mark.case("C085")
async def test_a_thread_is_one_of_anyio_s() -> None:
    pool, loop = WorkerThreads(1), threading.current_thread()
    assert await pool.run(lambda: anyio.from_thread.run(plus_one, 1)) == 2
    assert await pool.run(lambda: anyio.from_thread.run_sync(threading.current_thread)) is loop
    await pool.run(anyio.from_thread.check_cancelled)
    with pytest.raises(KeyError):
        await pool.run(lambda: anyio.from_thread.run(fails))
    # What could be awaited is not, where it was not asked for.
    coroutine = await pool.run(lambda: anyio.from_thread.run_sync(plus_one, 1))
    assert await coroutine == 2


@pytest.mark.fault("X-05")
async def test_an_awaitable_call_is_made_where_it_can_be() -> None:
    def work() -> tuple[bool, int]:
        done = call_on_loop(plus_one, 1)
        with pytest.raises(StopIteration) as end:
            done.send(None)
        return in_worker_thread(), end.value.value

    assert await WorkerThreads(1).run(work) == (True, 2)
    assert not in_worker_thread()
    assert await call_on_loop(plus_one, 1) == 2


@pytest.mark.fault("X-05")
@pytest.mark.parametrize("how", ["run", "check_cancelled", "call_on_loop"])
async def test_code_that_nobody_waits_for_ends_where_it_asks(how: str) -> None:
    ended: list[BaseException] = []
    begun, gone = threading.Event(), threading.Event()

    async def forever() -> None:
        begun.set()
        await anyio.sleep_forever()

    def work() -> None:
        try:
            if how == "run":
                anyio.from_thread.run(forever)
            elif how == "call_on_loop":
                call_on_loop(forever)
            else:
                begun.set()
                gone.wait(30)
                anyio.from_thread.check_cancelled()
        except BaseException as exc:
            ended.append(exc)
            raise

    async with anyio.create_task_group() as group:
        group.start_soon(WorkerThreads(1).run, work)
        await until(begun.is_set)
        group.cancel_scope.cancel()
    gone.set()
    await until(lambda: bool(ended))
    assert not isinstance(ended[0], Exception)


async def test_a_thread_that_nobody_waits_for_asks_the_loop_for_nothing_more() -> None:
    calls: list[str] = []
    gone, ended = threading.Event(), threading.Event()

    def work() -> None:
        try:
            gone.wait(30)
            anyio.from_thread.run_sync(calls.append, "after the end")
        finally:
            ended.set()

    with anyio.move_on_after(0.01):
        await WorkerThreads(1).run(work)
    gone.set()
    await until(ended.is_set)
    assert calls == []

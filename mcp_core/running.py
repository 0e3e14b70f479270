"""Running a coroutine from plain code, and leaving although something does not end.

`asyncio.run` waits for every task and every thread that is left, and so does the interpreter on
its way out: one handler that swallows its cancellation, or blocks in a thread, would keep the
process for ever after its input has ended.

Knows asyncio; nothing of servers.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from mcp_core.backend import Work
from mcp_core.process_exit import PATIENCE, exit_process
from mcp_core.queue_logger import QueueLogger, flush

__all__ = ["PATIENCE", "run_asyncio"]

_log = QueueLogger(__name__)


def run_asyncio(
    main: Callable[[], Work],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> None:
    """Run a coroutine on a loop of its own, as `asyncio.run` does.

    Tasks that go on after their cancellation, and threads of the loop's executor that block, are
    left behind. The process then ends with its main thread, a second later at the most.
    """
    threads = ThreadPoolExecutor(thread_name_prefix="asyncio")
    runner = asyncio.Runner(loop_factory=loop_factory)
    loop = runner.get_loop()
    loop.set_default_executor(threads)
    try:
        runner.run(main())
    finally:
        tasks = _end_tasks(loop)
        if not tasks and _end_threads(threads):
            runner.close()
            if not _anyio_has_ended():
                _log.error("the process is left with a thread of anyio's that goes on after its end")
                flush()
                _end_process_with_main_thread()
        else:
            _leave(loop, tasks)


def _end_tasks(loop: asyncio.AbstractEventLoop) -> set[asyncio.Task[object]]:
    """Cancel all tasks of a loop that does not run; return those that did not end."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if not tasks:
        return tasks
    _, pending = loop.run_until_complete(asyncio.wait(tasks, timeout=PATIENCE))
    return pending


def _end_threads(threads: ThreadPoolExecutor) -> bool:
    """Return whether all threads of an executor end in time."""
    ending = threading.Thread(target=threads.shutdown, kwargs={"cancel_futures": True}, daemon=True)
    ending.start()
    ending.join(PATIENCE)
    return not ending.is_alive()


def _leave(loop: asyncio.AbstractEventLoop, tasks: set[asyncio.Task[object]]) -> None:
    """Close a loop that something still uses, and see to it that the process ends all the same."""
    _log.error("the process is left with %d tasks, or a thread, that go on after their end", len(tasks))
    flush()
    # What it would complain of at its end has just been said.
    loop.set_exception_handler(lambda _loop, _context: None)
    asyncio.set_event_loop(None)
    loop.close()
    _end_process_with_main_thread()


def _anyio_has_ended() -> bool:
    """Return whether the threads that anyio started for handlers end in time.

    A cancelled handler does not wait for its thread there, but the interpreter does.
    """
    until = time.monotonic() + PATIENCE
    workers = [thread for thread in threading.enumerate() if type(thread).__module__.startswith("anyio.")]
    for worker in workers:
        worker.join(max(0, until - time.monotonic()))
    return not any(worker.is_alive() for worker in workers)


def _end_process_with_main_thread() -> None:
    threading.Thread(target=_end_with_main_thread, name="mcp_core.exit", daemon=True).start()


def _end_with_main_thread() -> None:
    """End the process soon after the interpreter has begun to wait for its threads."""
    while not _is_shutting_down():
        time.sleep(0.05)
    time.sleep(PATIENCE)
    exit_process(1 if getattr(sys, "last_value", None) is not None else 0)


def _is_shutting_down() -> bool:
    """Return whether the main thread has come to where the interpreter waits for all others.

    There is no event for that: handlers of `atexit` run after it.
    """
    frame = sys._current_frames().get(threading.main_thread().ident or 0)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_back is not None:
        frame = frame.f_back
    return frame is None or (frame.f_code.co_name == "_shutdown" and frame.f_code.co_filename == threading.__file__)

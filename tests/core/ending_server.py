"""A process that does not want to end: `python -m tests.core.ending_server LOOP SETTING [BOUND=SECONDS ...]`.

`BOUND` is a constant of the library that is to be another here: `mcp_core.process_exit.PATIENCE=0.1`.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import re
import signal
import sys
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import anyio.to_thread
import sniffio

from mcp_core import RequestContext, Server
from mcp_core.types import CallToolRequestParams, CallToolResult, TextContent

LONG: Final = 600.0


async def stubborn() -> str:
    while True:
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            continue


async def thread() -> str:
    if sniffio.current_async_library() == "asyncio":
        await asyncio.to_thread(time.sleep, LONG)
    await anyio.to_thread.run_sync(time.sleep, LONG)
    return "never"


async def anyio_thread() -> str:
    await anyio.to_thread.run_sync(time.sleep, LONG)
    return "never"


async def blocks() -> str:
    time.sleep(LONG)  # noqa: ASYNC251 - the subject of a test
    return "never"


async def computes() -> str:
    return str(re.match(r"(a+)+$", "a" * 40 + "b"))  # one call of C, for hours


async def forever() -> str:
    await anyio.sleep_forever()
    return "never"


async def big() -> str:
    return "y" * 2_000_000


TOOLS = {tool.__name__: tool for tool in (stubborn, thread, anyio_thread, blocks, computes, forever, big)}


async def call_tool(ctx: RequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
    say("started")
    return CallToolResult(content=[TextContent(text=await TOOLS[params.name]())])


def say(text: str) -> None:
    os.write(2, text.encode() + b"\n")


@asynccontextmanager
async def failing(server: Server[Any]) -> AsyncGenerator[dict[str, Any], None]:
    failed = anyio.Event()

    async def background() -> None:
        await failed.wait()
        raise ConnectionError("the pool is gone")

    def fail(ctx: RequestContext[Any], params: dict[str, Any]) -> dict[str, Any]:
        failed.set()
        return {}

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(background)
        server.add_request_handler("x/fail", dict[str, Any], fail)
        yield {}


@asynccontextmanager
async def fails_at_entry(server: Server[Any]) -> AsyncGenerator[dict[str, Any], None]:
    if server.name:
        raise ConnectionError("there is no pool")
    yield {}


@asynccontextmanager
async def fails_at_exit(server: Server[Any]) -> AsyncGenerator[dict[str, Any], None]:
    yield {}
    raise ConnectionError("the pool does not close")


@asynccontextmanager
async def own_signal(server: Server[Any]) -> AsyncGenerator[dict[str, Any], None]:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, say, "usr1")
    yield {}
    loop.remove_signal_handler(signal.SIGUSR1)


LIFESPANS: Final[dict[str, Any]] = {
    "failing": failing,
    "fails_at_entry": fails_at_entry,
    "fails_at_exit": fails_at_exit,
    "own_signal": own_signal,
}


def typed() -> Server[Any]:
    from mcp_typed import MCPServer  # most of these processes can do without

    mcp = MCPServer("typed")

    @mcp.tool()
    def blocks() -> str:
        say("started")
        time.sleep(LONG)
        return "never"

    return mcp.server


def bound(setting: str) -> None:
    """Set a constant of the library, which must be there."""
    place, _, seconds = setting.partition("=")
    module, _, name = place.rpartition(".")
    constants = vars(importlib.import_module(module))
    assert type(constants[name]) is float, place
    constants[name] = float(seconds)


def main() -> None:
    loop: Any = sys.argv[1]
    setting = sys.argv[2]
    for other in sys.argv[3:]:
        bound(other)
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    server = typed() if setting == "typed" else Server("s", on_call_tool=call_tool, lifespan=LIFESPANS.get(setting))
    server.run(loop=loop, drain_timeout=30.0 if setting == "patient" else 0.2)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert signal.set_wakeup_fd(-1) == -1
    assert not [thread for thread in threading.enumerate() if thread.name == "mcp_core.signals"]
    say("after run")


if __name__ == "__main__":
    main()

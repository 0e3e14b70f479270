"""A contender called inside a process of its own, a sample at a time.

`python -m bench.in_process MODULE` reads `WAY TOOL` lines and answers each with the
microseconds of a call. Processes of their own, because a rival that is merely imported
slows the others: some patch each other, and the garbage collector walks all of them.
Samples are equally long, and in CPU time: neighbours on a busy machine would otherwise
fall into the long samples and spare the short ones. And on one core: between two, a call
that goes to a thread and back costs what the scheduler makes of it that day.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from bench.http_load import HANDSHAKE, MODERN, body_of, headers_of
from bench.http_server import app_of
from bench.load import ARGUMENTS, ROOT, message, right

Way = Callable[[str, dict[str, Any]], Callable[[], Awaitable[Any]]]


def handled(server: Any) -> Way:
    """Bytes to bytes, without a transport."""

    def prepare(tool: str, arguments: dict[str, Any]) -> Callable[[], Awaitable[Any]]:
        line = message(1, "tools/call", {"name": tool, "arguments": arguments})
        return lambda: server.handle(line)

    return prepare


def called(call: Callable[[str, dict[str, Any]], Awaitable[Any]]) -> Way:
    """A method that takes name and arguments."""
    return lambda tool, arguments: lambda: call(tool, arguments)


def requested(session: Any) -> Way:
    """A rival client's shortest way: its `call_tool` checks the result against the schema in addition."""
    from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

    def prepare(tool: str, arguments: dict[str, Any]) -> Callable[[], Awaitable[Any]]:
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
        return lambda: session.send_request(request, CallToolResult)

    return prepare


@asynccontextmanager
async def living(app: Any) -> AsyncGenerator[None, None]:
    """The lifespan of an ASGI app, if it has one."""
    inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    outbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    inbox.put_nowait({"type": "lifespan.startup"})
    scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": {}}
    life = asyncio.ensure_future(app(scope, inbox.get, outbox.put))
    said = asyncio.ensure_future(outbox.get())
    await asyncio.wait((life, said), return_when=asyncio.FIRST_COMPLETED)
    try:
        yield
    finally:
        inbox.put_nowait({"type": "lifespan.shutdown"})
        await asyncio.gather(life, return_exceptions=True)
        said.cancel()


def asked(app: Any, era: str) -> Way:
    """One HTTP request, as uvicorn would tell the app of it."""

    def prepare(tool: str, arguments: dict[str, Any]) -> Callable[[], Awaitable[Any]]:
        body = body_of(era, 1, tool)
        fields = [*headers_of(era, tool), (b"content-length", b"%d" % len(body))]

        async def call() -> bytes:
            sent: list[bytes] = []
            read = False

            async def receive() -> dict[str, Any]:
                nonlocal read
                if read:
                    await asyncio.sleep(60)
                read = True
                return {"type": "http.request", "body": body, "more_body": False}

            async def send(message: dict[str, Any]) -> None:
                if "body" in message:
                    sent.append(message["body"])

            await app({**_SCOPE, "headers": list(fields)}, receive, send)
            return b"".join(sent)

        return call

    return prepare


_SCOPE = {
    "type": "http",
    "asgi": {"version": "3.0", "spec_version": "2.3"},
    "http_version": "1.1",
    "method": "POST",
    "scheme": "http",
    "server": ("127.0.0.1", 8000),
    "client": ("127.0.0.1", 40000),
    "root_path": "",
    "path": "/mcp",
    "raw_path": b"/mcp",
    "query_string": b"",
    "state": {},
}


@asynccontextmanager
async def ways_of(name: str) -> AsyncGenerator[dict[str, Way]]:
    """Every way to call a contender without leaving its process; `asgi:NAME`: by its ASGI app."""
    if name.startswith("asgi:"):
        app = app_of(name.removeprefix("asgi:"))
        async with living(app):
            yield {MODERN: asked(app, MODERN), HANDSHAKE: asked(app, HANDSHAKE)}
        return
    module: Any = importlib.import_module(f"bench.servers.{name}")
    served = module.mcp if hasattr(module, "mcp") else module.server
    ways: dict[str, Way] = {"call_tool": called(served.call_tool)} if hasattr(served, "call_tool") else {}
    if name.startswith(("core", "typed")):
        from mcp_core import Client

        ways["handle"] = handled(getattr(served, "server", served))
        async with Client(served) as client:
            yield {**ways, "Client": called(client.call_tool)}
    elif name.startswith("fast_mcp"):
        fastmcp: Any = importlib.import_module("fastmcp")
        async with fastmcp.Client(served) as client:
            yield {**ways, "Client": requested(client.session)}
    else:
        from mcp import Client as OfficialClient

        async with OfficialClient(served) as client:
            yield {**ways, "Client": requested(client.session)}


def result_of(value: Any) -> dict[str, Any]:
    """A result as it is on the wire, of what any of them returns."""
    if isinstance(value, bytes):
        result: dict[str, Any] = json.loads(value)["result"]
        return result
    return {
        "content": [{"text": block.text} for block in value.content],
        "structuredContent": value.structured_content,
    }


SAMPLE = 0.01
"""Seconds that a sample takes, about."""


async def measure(name: str) -> None:
    """Answer the lines of standard input."""
    counts: dict[str, int] = {}
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    async with ways_of(name) as ways:
        print(" ".join(ways), flush=True)
        for line in sys.stdin:
            way, tool = line.split()
            call = ways[way](tool, ARGUMENTS[tool](1))
            if line not in counts:
                if not right(tool, 1, result_of(await call())):
                    raise RuntimeError(f"a wrong answer from {name} {way} {tool}")
                await repeat(call, 10)
                counts[line] = max(1, int(SAMPLE / await repeat(call, 10)))
            await call()  # another contender has just had the caches
            print(await repeat(call, counts[line]) * 1e6, flush=True)


async def repeat(call: Callable[[], Awaitable[Any]], count: int) -> float:
    """Seconds of CPU that a call takes."""
    started = time.process_time()
    for _ in range(count):
        await call()
    return (time.process_time() - started) / count


class Process:
    """The other end of such a process."""

    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.in_process", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            text=True,
        )
        self.ways = self._line().split()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the contender has ended")
        return line

    def sample(self, way: str, tool: str) -> float:
        """Microseconds of CPU a call."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{way} {tool}\n")
        self._process.stdin.flush()
        return float(self._line())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@contextmanager
def processes(*modules: str) -> Generator[dict[str, Process]]:
    """One process a contender, ended at the end of the block."""
    running: dict[str, Process] = {}
    try:
        for module in modules:
            running[module] = Process(module)
        yield running
    finally:
        for process in running.values():
            process.close()


if __name__ == "__main__":
    asyncio.run(measure(sys.argv[1]))

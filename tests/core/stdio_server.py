"""The server that the stdio tests run as a process: `python -m tests.core.stdio_server`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from typing import Any

import anyio

from mcp_core import RequestContext, Server
from mcp_core.threads import WorkerThreads
from mcp_core.types import CallToolRequestParams, CallToolResult, TextContent

threads = WorkerThreads(2)


async def echo(arguments: dict[str, Any]) -> str:
    await anyio.lowlevel.checkpoint()
    return str(arguments["x"])


async def big(arguments: dict[str, Any]) -> str:
    return "y" * int(arguments["size"])


async def sleep(arguments: dict[str, Any]) -> str:
    await anyio.sleep(arguments["t"])
    return "slept"


async def forever(arguments: dict[str, Any]) -> str:
    await anyio.sleep_forever()
    return "never"


async def work(arguments: dict[str, Any]) -> str:
    await threads.run(lambda: time.sleep(arguments["t"]))
    return "worked"


async def fail(arguments: dict[str, Any]) -> str:
    raise ValueError(f"the secret {arguments}")


async def stray(arguments: dict[str, Any]) -> str:
    print("stray print")  # noqa: T201 - the subject of a test
    sys.stdout.write("stray write\n")
    os.write(1, b"stray descriptor\n")
    subprocess.run(["echo", "stray child"], check=True)  # noqa: ASYNC221 - the subject of a test
    read = subprocess.run(["cat"], check=True, capture_output=True)  # noqa: ASYNC221 - the subject of a test
    return f"{len(read.stdout)} bytes, {sys.stdin.read()!r}"


TOOLS = {tool.__name__: tool for tool in (echo, big, sleep, forever, work, fail, stray)}


async def call_tool(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    text = await TOOLS[params.name](params.arguments or {})
    return CallToolResult(content=[TextContent(text=text)])


def core_server() -> Server:
    return Server("core", on_call_tool=call_tool)


def typed_server() -> Server[Any]:
    from mcp_typed import MCPServer  # most of these processes can do without

    mcp = MCPServer("typed", threads=2)

    @mcp.tool()
    def work(t: float) -> str:
        time.sleep(t)
        return "worked"

    @mcp.tool()
    def echo(x: str) -> str:
        return x

    return mcp.server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--loop", default="asyncio")
    parser.add_argument("--typed", action="store_true")
    parser.add_argument("--drain-timeout", type=float)
    parser.add_argument("--max-message-size", type=int)
    parser.add_argument("--then-read", action="store_true")
    given = parser.parse_args()
    options = {
        name: value
        for name, value in (("drain_timeout", given.drain_timeout), ("max_message_size", given.max_message_size))
        if value is not None
    }
    server = typed_server() if given.typed else core_server()
    server.run(loop=given.loop, **options)
    # Both streams are the program's own again.
    print("AFTER", repr(sys.stdin.read()) if given.then_read else "")  # noqa: T201


if __name__ == "__main__":
    main()

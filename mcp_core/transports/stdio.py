"""A server on the standard streams of its process.

Takes descriptors 0 and 1 for the protocol and puts others in their place while it
runs, so that `print`, `os.write(1, ...)` and child processes reach stderr or nothing.
At the end of input every accepted request is finished, within `drain_timeout`.
Spec: basic/transports/stdio.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import AsyncExitStack, contextmanager
from typing import Any, Final, TypedDict

from mcp_core.backend import open_backend
from mcp_core.process_exit import leaving
from mcp_core.transports.lines import MAX_MESSAGE, LineChannel
from mcp_core.transports.signals import stopped_by_signals

__all__ = ["DRAIN_TIMEOUT", "StdioKeywords", "serve_stdio", "taken_streams"]

DRAIN_TIMEOUT: Final = 10.0
"""Seconds that accepted requests may take to finish once the input has ended."""

WRITE_TIMEOUT: Final = 5.0
"""Seconds that a client has to read the last responses."""


class StdioKeywords(TypedDict, total=False):
    """The options of `run("stdio")`."""

    max_message_size: int
    """Bytes of one message; a larger one is refused, and the connection goes on. Default: `lines.MAX_MESSAGE`."""
    drain_timeout: float
    """Seconds that accepted requests may still take once the input has ended. Default: `DRAIN_TIMEOUT`."""


async def serve_stdio(
    server: Any, *, max_message_size: int = MAX_MESSAGE, drain_timeout: float = DRAIN_TIMEOUT
) -> None:
    """Serve one client on stdin and stdout until the input ends, or SIGINT or SIGTERM comes.

    The streams are the program's own again when this returns.
    """
    with taken_streams() as (read_fd, write_fd):
        async with AsyncExitStack() as stack:
            state = await stack.enter_async_context(server.running())
            leave = stack.enter_context(leaving())  # after what the handlers may take, before the lifespan's end
            backend = await stack.enter_async_context(open_backend())
            channel = LineChannel(backend, read_fd, write_fd, max_message=max_message_size, back_pressure=True)
            try:
                with server.connect(backend, channel, state) as connection:

                    def stop() -> None:
                        channel.release()
                        connection.abort_drain()

                    server.on_lifespan_failure(channel.stop)
                    with stopped_by_signals(backend, stop):
                        await channel.run(connection)
                        await connection.drain(drain_timeout)
                        await channel.flush(WRITE_TIMEOUT)
            finally:
                channel.release()
                leave()


@contextmanager
def taken_streams() -> Generator[tuple[int, int], None, None]:
    """Private copies of descriptors 0 and 1, which meanwhile lead to nothing and to stderr."""
    read_fd, write_fd = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(null, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # no stderr
            os.dup2(null, 1)
        yield read_fd, write_fd
    finally:
        if sys.stdout is not None:
            try:
                sys.stdout.flush()  # what was printed meanwhile belongs to stderr
            except (OSError, ValueError):
                pass
        os.dup2(read_fd, 0)
        os.dup2(write_fd, 1)
        for fd in (read_fd, write_fd, null):
            os.close(fd)

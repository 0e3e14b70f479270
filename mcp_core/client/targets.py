"""What a client connects to, and how the connection is opened."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, Union, cast

from mcp_core.backend import Backend
from mcp_core.channel import Channel
from mcp_core.connection import Connection
from mcp_core.server import Server
from mcp_core.transports.process import StdioServerParameters, open_process

if TYPE_CHECKING:
    from mcp_core.transports.http_client import StreamableHTTPParameters

__all__ = ["HasServer", "Raised", "Start", "Target", "opener", "server_of"]


class HasServer(Protocol):
    """What has a core server, as an `MCPServer` does."""

    @property
    def server(self) -> Server[object]:
        """The server."""
        ...


Target: TypeAlias = Union[Server[Any], HasServer, StdioServerParameters, "StreamableHTTPParameters", str]
"""What a client connects to: a server in memory, a child process, or a URL."""

Start: TypeAlias = Callable[[Callable[[Channel], Connection]], Connection]
"""Makes the connection on a channel and lets messages in."""

_C = TypeVar("_C", bound=Channel)

_TAKES = (
    "a client connects to a Server (or what has one as its `server`), to a URL (http://... or https://...), "
    "to StreamableHTTPParameters(url=...), or to StdioServerParameters(command=..., args=[...])"
)


class Raised:
    """The exceptions of an in-memory server's handlers, by the id of the request that they ended."""

    def __init__(self) -> None:
        self._peer: Connection | None = None
        self._by_id: dict[object, BaseException] = {}

    def of(self, peer: Connection) -> None:
        """Keep those of requests that this peer of the server makes."""
        self._peer = peer

    def handler_failed(self, ctx: Any, exc: BaseException) -> None:
        """As an observer: keep one."""
        if ctx.peer is self._peer:
            self._by_id[ctx.request_id] = exc

    def pass_on(self, request_id: Any) -> None:
        """Raise the one that ended this request, if one did."""
        exc = self._by_id.pop(request_id, None)
        if exc is not None:
            raise exc


def opener(target: Target, raised: Raised | None) -> Callable[[Backend], Any]:
    """Return what opens the connection to a target.

    Raises:
        TypeError: There is no way to connect to it.
    """
    if isinstance(target, StdioServerParameters):
        return lambda backend: _over(
            open_process(backend, target), lambda channel, receiver: backend.spawn(channel.run(receiver))
        )
    server = server_of(target)
    if server is not None:
        return lambda backend: _in_memory(backend, server, raised)
    if isinstance(target, str) or type(target).__name__ == "StreamableHTTPParameters":
        from mcp_core.transports.http_client import StreamableHTTPParameters, open_http

        parameters = StreamableHTTPParameters(url=target) if isinstance(target, str) else target
        if isinstance(parameters, StreamableHTTPParameters):
            return lambda backend: _over(
                open_http(backend, parameters), lambda channel, receiver: channel.start(receiver)
            )
    raise TypeError(f"{_TAKES}; got {target!r}")


def server_of(target: Any) -> Server[object] | None:
    """Return the server that this is, or has as its `server`."""
    for candidate in (target, getattr(target, "server", None)):
        if isinstance(candidate, Server):
            return cast("Server[Any]", candidate)
    return None


@asynccontextmanager
async def _over(
    opening: AbstractAsyncContextManager[_C], let_in: Callable[[_C, Connection], object]
) -> AsyncGenerator[Start, None]:
    async with opening as channel:

        def start(connect: Callable[[Channel], Connection]) -> Connection:
            connection = connect(channel)
            let_in(channel, connection)
            return connection

        yield start


@asynccontextmanager
async def _in_memory(backend: Backend, server: Server[object], raised: Raised | None) -> AsyncGenerator[Start, None]:
    from mcp_core.transports.memory import memory_pair

    async with server.running() as state:
        ours, theirs = memory_pair(backend)
        with server.connect(backend, theirs, state) as connection:
            if raised is not None:
                raised.of(connection)
                server.observers.add(raised)
            theirs.start(connection)
            undo = server.on_lifespan_failure(ours.close)

            def start(connect: Callable[[Channel], Connection]) -> Connection:
                client = connect(ours)
                ours.start(client)
                return client

            try:
                yield start
            finally:
                undo()
                if raised is not None:
                    server.observers.remove(raised)
                ours.close()
                await connection.drain(0)

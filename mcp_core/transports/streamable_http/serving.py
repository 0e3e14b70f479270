"""Serving the app on uvicorn, until a signal comes.

Knows uvicorn; loaded only by `run`. Needs the extra `http`.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import socket
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from mcp_core.backend import has_running_loop
from mcp_core.codec import JSONObject
from mcp_core.transports.streamable_http import checks
from mcp_core.transports.streamable_http.address import say_where
from mcp_core.transports.streamable_http.app import StreamableHTTP
from mcp_core.transports.streamable_http.options import HTTPOptions

if TYPE_CHECKING:
    from mcp_core.server import Server

__all__ = ["serve"]


def _has_httptools() -> bool:
    try:
        importlib.import_module("httptools")
    except ImportError:
        return False
    return True


def check_settings(host: object, port: object, workers: object, loop: object) -> None:
    """
    Raises:
        TypeError, ValueError: One of them is not what it must be.
    """
    checks.text("host", host, "a host name or an address")
    wanted = f"port must be a number from 0 (any that is free) to 65535; got {port!r}"
    if isinstance(port, bool) or not isinstance(port, int):
        raise TypeError(wanted)
    if not 0 <= port <= 65535:
        raise ValueError(wanted)
    if isinstance(workers, bool) or not isinstance(workers, int):
        raise TypeError(f"workers must be a number of processes; got {workers!r}")
    if workers < 1:
        raise ValueError(f"workers must be at least 1; got {workers!r}")
    if loop not in (None, "asyncio", "uvloop"):
        raise ValueError(f"HTTP is served on asyncio or uvloop, not on {loop!r}")
    if loop == "uvloop" and importlib.util.find_spec("uvloop") is None:
        raise RuntimeError("loop='uvloop' needs uvloop; install it with: pip install uvloop")


_SETTINGS: Final[JSONObject] = {"log_level": "warning", "access_log": False, "timeout_graceful_shutdown": 5}


def serve(
    server: Server[Any],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    loop: str | None = None,
    **options: Any,
) -> None:
    """Serve until SIGINT or SIGTERM; open streams are ended then, so that nothing holds it up.

    `workers` are processes behind the same port, each with the server of its own (see
    `workers`). `uvicorn` is a dict of further settings for `uvicorn.Config`.

    Raises:
        RuntimeError: uvicorn is not installed, an event loop runs already, or workers could
            not start.
        ValueError: uvicorn has no such loop, or the workers could not serve together.
    """
    check_settings(host, port, workers, loop)
    if has_running_loop():
        raise RuntimeError("an event loop is running already; serve streamable_http_app() there")
    try:
        import uvicorn
    except ImportError as exc:
        raise RuntimeError('serving HTTP needs uvicorn; install it with: pip install "mcpcore[http]"') from exc
    settings: JSONObject = options.pop("uvicorn", {})
    options["host"] = host
    app = StreamableHTTP(server, HTTPOptions(**options))
    chosen: object = loop or ("uvloop" if importlib.util.find_spec("uvloop") else "asyncio")
    settings = {**_SETTINGS, "host": host, "port": port, "loop": chosen, **settings}
    if settings.get("http", "auto") in ("auto", "httptools") and _has_httptools():
        from mcp_core.transports.streamable_http.protocol import BoundedProtocol

        settings["http"] = BoundedProtocol
    if workers != 1:
        from mcp_core.transports.streamable_http.workers import serve_with_workers

        serve_with_workers(server, options, settings, workers)
        return
    make: Any = uvicorn.Config
    config = make(app, **settings)

    class Serving(uvicorn.Server):
        """Ends when a signal comes, as if that were all the program was waiting for."""

        loop: asyncio.AbstractEventLoop | None = None

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            """Say where, once somebody listens there."""
            await super().startup(sockets)
            if self.started:
                listening = [each for part in self.servers for each in part.sockets]
                say_where(server.name, listening, app.options.streamable_http_path, config.is_ssl)

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            """Begin to end; a second signal cuts off what the first has left time for."""
            # uvicorn would raise the signal again at the end: `run` is to return.
            if self.should_exit and self.loop is not None:
                self.loop.call_soon_threadsafe(app.cut_off)
            self.should_exit = True

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            """End streams first, which uvicorn waits for; calls just before it would cut them off."""
            self.loop = asyncio.get_running_loop()
            app.end_streams()
            grace: float = config.timeout_graceful_shutdown or 0
            closing = self.loop.call_later(max(grace - 0.5, 0), app.cut_off) if grace else None
            await super().shutdown(sockets)
            if closing is not None:
                closing.cancel()

    Serving(config).run()

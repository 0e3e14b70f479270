"""Serving the app on uvicorn, until a signal comes.

Knows uvicorn; loaded only by `run`. Needs the extra `http`.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, Final

from mcp_core.transports.streamable_http.app import HTTPOptions, StreamableHTTP

if TYPE_CHECKING:
    from mcp_core.server import Server

__all__ = ["serve"]


_SETTINGS: Final[dict[str, Any]] = {"log_level": "warning", "access_log": False, "timeout_graceful_shutdown": 5}


def serve(
    server: Server[Any], *, host: str = "127.0.0.1", port: int = 8000, loop: str | None = None, **options: Any
) -> None:
    """Serve until SIGINT or SIGTERM; open streams are ended then, so that nothing holds it up.

    `uvicorn` is a dict of further settings for `uvicorn.Config`.

    Raises:
        RuntimeError: uvicorn is not installed.
    """
    try:
        import uvicorn
    except ImportError as exc:
        raise RuntimeError('serving HTTP needs uvicorn; install it with: pip install "mcpcore[http]"') from exc
    settings: dict[str, Any] = options.pop("uvicorn", {})
    app = StreamableHTTP(server, HTTPOptions(host=host, **options))
    chosen: Any = loop or ("uvloop" if importlib.util.find_spec("uvloop") else "asyncio")
    make: Any = uvicorn.Config
    config = make(app, **{**_SETTINGS, "host": host, "port": port, "loop": chosen, **settings})

    class Serving(uvicorn.Server):
        """Ends streams when the signal comes: uvicorn waits for them before it ends the lifespan."""

        async def shutdown(self, sockets: Any = None) -> None:
            app.close()
            await super().shutdown(sockets)

    Serving(config).run()

"""`python -m bench.http_server MODULE [MORE]`: a contender on uvicorn, all with the same settings.

Prints its port. MORE is how many more tools there are to list.
Answers are JSON and no sessions are kept, with every contender that can be asked for it.
"""

from __future__ import annotations

import importlib
import socket
import sys
from typing import Any

import uvicorn


def app_of(module: str, more: int = 0) -> Any:
    """The ASGI app of a contender."""
    contender: Any = importlib.import_module(f"bench.servers.{module}")
    if more:
        contender.list_more(more)
    if hasattr(contender, "app"):
        return contender.app
    served = contender.mcp if hasattr(contender, "mcp") else contender.server
    if hasattr(served, "http_app"):
        return served.http_app(json_response=True, stateless_http=True)
    return served.streamable_http_app(json_response=True, stateless_http=True)


def main() -> None:
    """Serve until the process is ended."""
    app = app_of(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(listening.getsockname()[1], flush=True)
    # A contender waits while the others are measured: its connections must not be closed for that.
    config = uvicorn.Config(
        app, http="httptools", loop="uvloop", access_log=False, log_level="critical", timeout_keep_alive=600
    )
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()

"""From a file to the server in it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from mcp_core import MCPCoreError, Server
from mcp_typed.server import MCPServer

__all__ = ["NoServer", "load_server", "load_typed_server"]

_NAMES = ("mcp", "server", "app")


class NoServer(MCPCoreError):
    """The file holds no server, or several of which none has a usual name."""


def load_server(target: str) -> Server[Any]:
    """The server in `FILE` or `FILE:NAME`.

    Without a name it is the one called `mcp`, `server` or `app`, or the only one.

    Raises:
        NoServer: There is no such file or server. The text says what to do.
    """
    return cast("Server[Any]", _as_server(_load(target, _as_server)))


def load_typed_server(target: str) -> MCPServer:
    """The `MCPServer` in `FILE` or `FILE:NAME`, found as `load_server` finds one.

    Raises:
        NoServer: There is none. The text says what to do.
    """
    return cast("MCPServer", _load(target, lambda value: value if isinstance(value, MCPServer) else None))


def _load(target: str, wanted: Callable[[Any], Any]) -> Any:
    path, _, name = target.rpartition(":") if not Path(target).exists() and ":" in target else (target, "", "")
    module = _import(Path(path))
    if name:
        found = getattr(module, name, None)
        if wanted(found) is None:
            raise NoServer(f"{path} has no server called {name!r}")
        return found
    members = cast("dict[str, Any]", vars(module))
    servers = {key: value for key, value in members.items() if wanted(value) is not None}
    for usual in _NAMES:
        if usual in servers:
            return servers[usual]
    if len({id(wanted(value)) for value in servers.values()}) != 1:
        raise NoServer(f"{path} has {len(servers) or 'no'} servers; name one as {path}:NAME")
    return next(iter(servers.values()))


def _as_server(value: Any) -> Server[Any] | None:
    server: Any = value.server if isinstance(value, MCPServer) else value
    return server if isinstance(server, Server) else None  # pyright: ignore[reportUnknownVariableType]


def _import(path: Path) -> Any:
    if not path.is_file():
        raise NoServer(f"there is no file {str(path)!r}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise NoServer(f"{str(path)!r} is no Python file")
    module = importlib.util.module_from_spec(spec)
    # As Python does for a script: its neighbours can be imported, and it finds itself.
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module

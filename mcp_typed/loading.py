"""From what a command line names to the server that it means.

A file is run for the server in it, and may not serve meanwhile. Knows how Python finds
modules; nothing of what the server is for.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple, TypeAlias, cast

from mcp_core import MCPCoreError, Server
from mcp_core.starting import ServedWhileLoading, loading
from mcp_typed import tracebacks
from mcp_typed.server import MCPServer

__all__ = ["NoServer", "did_you_mean", "is_url", "load_server", "load_typed_server"]

_USUAL: Final = ("mcp", "server", "app")
_MODULE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_NAME: Final = re.compile(rf"{_MODULE.pattern}(\(\))?")
_LOW_LEVEL: Final = "a low-level Server, and lint looks at the tools of an MCPServer"
_GUARD: Final = 'guard it with `if __name__ == "__main__":`'

Wanted: TypeAlias = Callable[[Any], Any]
"""What a value is as a server of the kind that is wanted; `None` if it is none."""


class NoServer(MCPCoreError):
    """The target gives no server. The text says why, and what to do."""


def is_url(target: str) -> bool:
    """Return whether the target is a server that runs already."""
    return target.lower().startswith(("http://", "https://"))


def load_server(target: str) -> Server[object]:
    """Return the server that `FILE`, `FILE:NAME`, `package.module` or `package.module:NAME` means.

    Without a name it is the one called `mcp`, `server` or `app`, or the only one. NAME may
    be dotted, and may be a function that makes the server, with `()` after it or without.
    A file whose folder has an `__init__.py` is loaded as a module of that package.

    Raises:
        NoServer: There is no such file or server, or loading it fails.
    """
    return cast("Server[Any]", _as_server(_load(target, _as_server)))


def load_typed_server(target: str) -> MCPServer:
    """Return the `MCPServer` that the target means, for lint; found as `load_server` finds one.

    Raises:
        NoServer: There is none, or loading it fails.
    """
    return cast("MCPServer", _load(target, _as_typed))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` where one of the known names is close, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _as_typed(value: Any) -> MCPServer | None:
    # By its type: a proxy among the globals may not take being asked for its `__class__`.
    return value if issubclass(type(value), MCPServer) else None


def _as_server(value: object) -> Server[object] | None:
    typed = _as_typed(value)
    server: Any = value if typed is None else typed.server
    return server if issubclass(type(server), Server) else None


def _load(target: str, wanted: Wanted) -> Any:
    place, name = _split(target)
    source = _find(place)
    with _failures_by_author_lines(place, source.own):
        module = _import(place, source)
        return _named(place, module, name, wanted) if name else _only(place, module, wanted)


def _split(target: str) -> tuple[str, str]:
    """Return the file or module, and the name behind its last colon."""
    place, colon, name = target.rpartition(":")
    # A path may have colons of its own, as one that begins with a drive.
    if not colon or Path(target).exists() or os.sep in name:
        return target, ""
    if not _NAME.fullmatch(name):
        raise NoServer(
            f"{name!r} is no name of a server; write {place}:mcp, {place}:app.mcp, or {place}:make() for a function"
        )
    return place, name


@contextmanager
def _failures_by_author_lines(place: str, own: Path | None) -> Generator[None, None, None]:
    """Run the author's code, which may not serve; what ends it is shown by the author's lines.

    Raises:
        NoServer: It failed, tried to serve, or would end the program.
    """
    try:
        with loading():
            yield
    except NoServer:
        raise
    except SystemExit as exc:
        text = f"{tracebacks.module_line(exc, own) or place} ends the program while it is loaded"
        if isinstance(exc.code, str):
            raise NoServer(f"{text}: {exc.code}") from exc
        raise NoServer(f"{text}, with exit status {exc.code or 0}; {_GUARD}") from exc
    except Exception as exc:
        served = _served(exc)
        if served is None:
            raise NoServer(
                f"{place} cannot be loaded\n{tracebacks.format_own_lines(exc, own)}{_hint(exc, own)}"
            ) from exc
        raise NoServer(f"{tracebacks.module_line(exc, own) or place}: {served}") from exc


def _served(error: BaseException) -> ServedWhileLoading | None:
    """Return the refusal to serve that led to this; an event loop of the author's may have wrapped it."""
    if isinstance(error, ServedWhileLoading):
        return error
    grouped: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    inner = (error.__cause__, error.__context__, *grouped)
    return next((found for one in inner if one is not None and (found := _served(one)) is not None), None)


def _hint(error: Exception, own: Path | None) -> str:
    if not isinstance(error, ImportError) or "no known parent package" not in str(error) or own is None:
        return ""
    return (
        f"\nA relative import needs a package: put an __init__.py into {own.parent.name}, or name the module, from "
        f"the folder above: {own.parent.name}.{own.stem}"
    )


# --- modules -------------------------------------------------------------------------------------


class _Source(NamedTuple):
    """A module to import: its dotted name, and where it is if that is known.

    `folder` is to be on `sys.path`. `own` is the author's file, or the folder of their package.
    """

    name: str
    folder: Path
    file: Path | None
    own: Path | None


def _find(place: str) -> _Source:
    path = Path(place)
    if not place:
        raise NoServer("no file and no module is named")
    if path.is_dir() and path.joinpath("__init__.py").is_file():
        path = path.joinpath("__init__.py")
    if path.is_file():
        if path.suffix not in (".py", ".pyw"):
            raise NoServer(f"{place!r} is no Python file")
        return _source_of_file(path.resolve())
    if _MODULE.fullmatch(place) and path.suffix != ".py":
        return _Source(place, Path.cwd(), None, None)
    if path.is_dir():
        raise NoServer(f"{place!r} is a folder; name a file in it")
    raise NoServer(f"there is no file {place!r}{_beside(path)}")


def _beside(path: Path) -> str:
    """Return a file that may have been meant."""
    folder = path.parent
    if not folder.is_dir():
        return ""
    return did_you_mean(str(path), (str(file) for file in sorted(folder.glob("*.py"))))


def _source_of_file(path: Path) -> _Source:
    is_package = path.stem == "__init__"
    names: list[str] = [] if is_package else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.name:
        names.insert(0, folder.name)
        folder = folder.parent
    alone = len(names) == 1 and not is_package
    if alone or any("." in name for name in names) or _is_another(names[0], folder):
        return _Source("", path.parent, path, path)
    return _Source(".".join(names), folder, path, folder / names[0])


def _is_another(package: str, folder: Path) -> bool:
    """Return whether a package of this name is loaded from elsewhere."""
    known = sys.modules.get(package)
    folders: Any = getattr(known, "__path__", ())
    return known is not None and str(folder / package) not in list(folders)


def _import(place: str, source: _Source) -> ModuleType:
    _put_on_path(source)
    if not source.name:
        assert source.file is not None
        return _import_file(source.file)
    try:
        module = importlib.import_module(source.name)
    except ModuleNotFoundError as exc:
        if exc.name is None or not f"{source.name}.".startswith(f"{exc.name}."):
            raise
        raise NoServer(_no_module(source.name, exc.name)) from exc
    if module.__file__ is None and hasattr(module, "__path__"):
        raise NoServer(f"{place!r} is a folder; name a file in it")
    if source.file is not None and Path(module.__file__ or "").resolve() != source.file:
        raise NoServer(f"{place} is {source.name}, but Python finds that in {module.__file__}")
    return module


def _no_module(name: str, missing: str) -> str:
    parent, _, last = name.rpartition(".")
    if missing == name and parent:
        return f"there is no module {name!r}; a server in a module is named as {parent}:{last}"
    return f"there is no file and no module {missing!r}{_beside(Path(missing))}"


def _put_on_path(source: _Source) -> None:
    """Let the module and its neighbours be found, as Python does for a script and for `-m`."""
    folder = str(source.folder)
    if source.file is None and ("" in sys.path or folder in sys.path):
        return
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)
    if source.file is not None and source.name and str(source.file.parent) not in sys.path:
        # A script in a package may name its neighbours as if there were none; the package goes first.
        sys.path.append(str(source.file.parent))


def _import_file(path: Path) -> ModuleType:
    """Run a file as a module that is in no package, each time again."""
    name = path.stem.replace(".", "_")
    while name in sys.modules and getattr(sys.modules[name], "__file__", None) != str(path):
        name += "_"  # `__main__`, or a module that somebody else has imported
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


# --- in a module ---------------------------------------------------------------------------------


def _only(place: str, module: ModuleType, wanted: Wanted) -> Any:
    """Return the server with a usual name, or the only one."""
    servers = {name: value for name, value in vars(module).items() if wanted(value) is not None}
    for usual in _USUAL:
        if usual in servers:
            return servers[usual]
    if len({id(wanted(value)) for value in servers.values()}) == 1:
        return next(iter(servers.values()))
    if servers:
        raise NoServer(f"{place} has {len(servers)} servers: {_listed(servers)}; name one as {place}:{min(servers)}")
    raise NoServer(_none(place, module))


def _none(place: str, module: ModuleType) -> str:
    """Why there is no server in a module, and what to do."""
    for name, value in vars(module).items():
        if _as_server(value) is not None:
            return f"{place}: {name!r} is {_LOW_LEVEL}"
        if _is_foreign(value):
            return f"{place}: {_foreign(name, value)}"
    for name, value in vars(module).items():
        if type(value) is FunctionType and value.__module__ == module.__name__ and _makes_a_server(value):
            return f"{place} has no server, but {name}() makes one; name it as '{place}:{name}()'"
    return f'{place} has no server; make one in it, as in: mcp = MCPServer("name")'


def _makes_a_server(function: Any) -> bool:
    returned = function.__annotations__.get("return")
    name = returned if isinstance(returned, str) else getattr(returned, "__name__", "")
    return name.partition("[")[0].rpartition(".")[2] in ("MCPServer", "Server")


def _named(place: str, module: ModuleType, name: str, wanted: Wanted) -> Any:
    value: object = module
    for part in name.removesuffix("()").split("."):
        holder, value = value, getattr(value, part, None)
        if value is None:
            known = [key for key, other in vars(module).items() if wanted(other) is not None]
            has = f"; it has {_listed(known)}" if known and holder is module else ""
            raise NoServer(f"{place} has no server called {name!r}{has}")
    if wanted(value) is None and callable(value):
        value = _made(f"{place}:{name}", value)
    if wanted(value) is not None:
        return value
    if _as_server(value) is not None:
        raise NoServer(f"{place} has no server called {name!r} for lint: it is {_LOW_LEVEL}")
    if _is_foreign(value):
        raise NoServer(f"{place}: {_foreign(name, value)}")
    raise NoServer(f"{place}:{name} is no server, but of the type {type(value).__qualname__}")


def _made(shown: str, make: Callable[..., object]) -> object:
    """Return what a function gives that is to make a server."""
    try:
        inspect.signature(make).bind()
    except TypeError as exc:
        raise NoServer(f"{shown} cannot be called without arguments: {exc}") from None
    except ValueError:
        pass  # a builtin does not say what it takes
    value = make()
    if inspect.iscoroutine(value):
        value.close()
        raise NoServer(f"{shown} is async; the function that makes a server must be a plain one")
    return value


def _is_foreign(value: object) -> bool:
    kind: Any = cast("Any", type(value))
    return kind.__module__.partition(".")[0] in ("mcp", "fastmcp") and kind.__name__ in (
        "FastMCP",
        "MCPServer",
        "Server",
    )


def _foreign(name: str, value: Any) -> str:
    package = type(value).__module__.partition(".")[0]
    here = "from mcp_core import Server" if type(value).__name__ == "Server" else "from mcp_typed import MCPServer"
    return f"{name!r} is a server of the package {package!r}; here it is: {here}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))

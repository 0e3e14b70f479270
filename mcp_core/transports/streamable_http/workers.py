"""Several processes behind one port: uvicorn starts, watches and replaces them.

Each finds the server by importing the module that it is a global of. Nothing is
common to them but the port: no sessions, and no changes that one of them announces.
Knows uvicorn; loaded only by `serve`.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import pickle
import secrets
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec
import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from mcp_core import queue_logger
from mcp_core.codec import JSONObject
from mcp_core.request_state import SHARED_KEY, share_key, take_shared_key
from mcp_core.revisions import is_modern
from mcp_core.transports.streamable_http.address import say_where
from mcp_core.transports.streamable_http.app import StreamableHTTP
from mcp_core.transports.streamable_http.options import HTTPOptions

if TYPE_CHECKING:
    from mcp_core.server import Server

__all__ = ["serve_with_workers"]

_log = queue_logger.QueueLogger(__name__)


class Located(msgspec.Struct, frozen=True):
    """Where a worker finds the server, and how it is to serve it: the factory of its app."""

    module: str
    name: str
    options: JSONObject
    grace: float
    key: bytes
    """What signs request states, the same in all workers. It comes by pickle, through a pipe: the
    environment of a process can be read by others, and is inherited by what it starts."""

    def __call__(self) -> StreamableHTTP:
        """The app; it ends its streams when the signal comes that ends the worker."""
        share_key(self.key)
        try:
            with _ended_at_once():
                found = getattr(importlib.import_module(self.module), self.name)
        except Exception as exc:
            # Of any other way to end, uvicorn thinks that the next worker may do better.
            _log.error("a worker cannot import the server from %s", self.module, exc=exc)
            queue_logger.flush()
            sys.exit(STARTUP_FAILURE)
        app = StreamableHTTP(getattr(found, "server", found), HTTPOptions(**self.options))
        _let_interrupt(through=True)  # uvicorn has its handlers in place
        loop = asyncio.get_running_loop()

        def end() -> None:
            app.end_streams()
            loop.call_later(max(self.grace - 0.5, 0), app.cut_off)

        for number in (signal.SIGINT, signal.SIGTERM):
            _tell_too(number, lambda: loop.call_soon_threadsafe(end))
        return app


@contextmanager
def _ended_at_once() -> Generator[None, None, None]:
    """Let SIGTERM end the process: uvicorn would only note it, and an import may take long."""
    before: Any = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if getattr(getattr(before, "__self__", None), "should_exit", False):
        signal.raise_signal(signal.SIGTERM)  # it came before this, and uvicorn has noted it
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _tell_too(number: int, call: Callable[[], object]) -> None:
    """Call back when a signal comes, after the handler that is installed now."""
    before: Any = signal.getsignal(number)

    def handle(number: int, frame: FrameType | None) -> None:
        if callable(before):
            before(number, frame)
        call()

    signal.signal(number, handle)


def locate(server: Server[Any]) -> tuple[str, str]:
    """Return the module and the name of the global that the server is, or is the `.server` of.

    Raises:
        ValueError: There is none.
    """
    program = sys.modules["__main__"]
    modules = {name: module for name, module in sys.modules.items() if module is not program}
    # What came by `python -c` and the like, no worker can run again.
    if getattr(program, "__spec__", None) is not None or hasattr(program, "__file__"):
        modules["__main__"] = program
    for module_name, module in modules.items():
        for name, value in list(vars(module).items()):
            if value is server or inspect.getattr_static(value, "server", None) is server:
                return module_name, name
    raise ValueError("workers=... needs a server that is a global of a module, where each worker can find it")


def serve_with_workers(server: Server[object], options: JSONObject, settings: JSONObject, workers: int) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        ValueError: The server or the options cannot be brought to a worker, or take sessions.
        RuntimeError: The workers could not start; what they said is in the log.
    """
    if not options.get("stateless_http") and not all(is_modern(revision) for revision in server.protocol_versions):
        raise ValueError(
            "workers have no sessions in common: pass stateless_http=True as well, "
            'or make the server with protocol_versions=["2026-07-28"]'
        )
    module, name = locate(server)
    HTTPOptions(**options)
    named = os.environ.get(SHARED_KEY)
    key = take_shared_key() or secrets.token_bytes(32)
    try:
        factory = Located(module, name, options, settings.get("timeout_graceful_shutdown") or 0, key)
        _supervise(server, factory, settings, workers)
    finally:
        if named is not None:  # it is the user's own
            os.environ[SHARED_KEY] = named


def _supervise(server: Server[object], factory: Located, settings: JSONObject, workers: int) -> None:
    try:
        pickle.dumps((factory, settings))
    except Exception as exc:
        raise ValueError(f"workers are given their options by pickle, which cannot take these: {exc}") from exc
    make: Any = uvicorn.Config
    config = make(factory, factory=True, workers=workers, **settings)
    with _signals_kept():
        listening = config.bind_socket()
        listening.listen(config.backlog)  # clients that come before the workers are there wait for them
        path = HTTPOptions(**factory.options).streamable_http_path
        say_where(server.name, [listening], path, config.is_ssl, workers)
        supervisor = _Supervisor(config, sockets=[listening])
        supervisor.run()
    if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
        raise RuntimeError("the workers could not start; the log says why")


class _Supervisor(Multiprocess):
    """Starts workers that a terminal's Ctrl-C does not interrupt while they import.

    The terminal sends it to every process of the group. A worker inherits the signals that
    are blocked where it is started, and lets SIGINT through once it can end in order.
    """

    def init_processes(self) -> None:
        """Start the first workers."""
        if sys.platform != "win32":
            # It would be started with the first of them, and lets SIGINT through afterwards.
            resource_tracker.ensure_running()
        with _interrupt_blocked():
            super().init_processes()

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have died."""
        with _interrupt_blocked():
            super().keep_subprocess_alive()


@contextmanager
def _interrupt_blocked() -> Generator[None, None, None]:
    _let_interrupt(through=False)
    try:
        yield
    finally:
        _let_interrupt(through=True)  # one that has come meanwhile comes now


def _let_interrupt(*, through: bool) -> None:
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK if through else signal.SIG_BLOCK, {signal.SIGINT})


@contextmanager
def _signals_kept() -> Generator[None, None, None]:
    """uvicorn's supervisor takes all signals, and does not give them back."""
    before = {number: signal.getsignal(number) for number in signal.valid_signals() if number != signal.SIGKILL}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)

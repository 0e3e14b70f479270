"""What `run` refuses before it serves, and the event loop that it starts.

Knows no transport; the caller says what is to run.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from mcp_core.backend import Work, has_running_loop
from mcp_core.errors import LocalProtocolError

__all__ = [
    "ServedWhileLoading",
    "check_loop",
    "loading",
    "refuse_inside_loop",
    "refuse_while_loading",
    "run_blocking",
]

_INSTALL: Final = {"uvloop": 'pip install "mcpcore[http]"', "trio": "pip install trio"}

_loading: ContextVar[bool] = ContextVar("mcp_core.loading", default=False)


class ServedWhileLoading(LocalProtocolError):
    """A file that is only loaded for its server began to serve it."""


@contextmanager
def loading() -> Generator[None, None, None]:
    """Refuse to serve in this context: code is run for the server that it makes, and no more.

    A context variable reaches the event loops that the code starts, and no other thread,
    where a server may rightly run.
    """
    token = _loading.set(True)
    try:
        yield
    finally:
        _loading.reset(token)


def refuse_while_loading(call: str) -> None:
    """Raise `ServedWhileLoading` inside of `loading`; `call` is what was called."""
    if _loading.get():
        raise ServedWhileLoading(
            f'{call} is called while the file is loaded; guard it with `if __name__ == "__main__":`'
        )


def refuse_inside_loop() -> None:
    """Raise `RuntimeError` where an event loop runs already."""
    if has_running_loop():
        raise RuntimeError(
            "run() starts an event loop, and one is running here already; use: await server.run_stdio_async()"
        )


def check_loop(loop: str) -> None:
    """Raise for a loop that does not exist (`ValueError`) or is not installed (`RuntimeError`)."""
    if loop not in ("asyncio", "uvloop", "trio"):
        raise ValueError(f"unknown loop {loop!r}; known are 'asyncio', 'uvloop' and 'trio'")
    if loop == "asyncio":
        return
    try:
        importlib.import_module(loop)
    except ImportError as exc:
        raise RuntimeError(f"loop={loop!r} needs {loop}; install it with: {_INSTALL[loop]}") from exc


def run_blocking(main: Callable[[], Work], loop: str) -> None:
    """Run until `main` returns, on a loop of its own.

    Raises:
        ValueError: There is no such loop.
        RuntimeError: It is not installed, or an event loop runs already.
    """
    check_loop(loop)
    refuse_inside_loop()  # before `main` makes a coroutine that would never be awaited
    if loop == "trio":
        from mcp_core.process_exit import run_trio

        run_trio(main)
        return
    from mcp_core.running import run_asyncio

    if loop == "uvloop":
        import uvloop

        run_asyncio(main, uvloop.new_event_loop)
    else:
        run_asyncio(main)

"""`run`: what it refuses before it serves, in words that say what to do instead."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from mcp_core import Server
from mcp_typed import MCPServer

SERVERS = pytest.mark.parametrize("server", [Server("bare"), MCPServer("bare")], ids=["core", "typed"])


@pytest.mark.fault("X-33")
@SERVERS
@pytest.mark.parametrize("loop", [None, "asyncio", "uvloop", "trio"])
async def test_inside_a_running_loop(server: Any, loop: Any) -> None:
    """Without a coroutine that was never awaited, which would be an error of this test."""
    with pytest.raises(RuntimeError) as caught:
        server.run(loop=loop)
    text = "run() starts an event loop, and one is running here already; use: await server.run_stdio_async()"
    assert str(caught.value) == text


@pytest.mark.fault("X-33")
@pytest.mark.parametrize("flag", ["asyncio", "trio"])
def test_inside_a_running_loop_nothing_is_left_unawaited(flag: str) -> None:
    code = (
        "import anyio\nfrom mcp_core import Server\n"
        "async def main():\n"
        "    try:\n        Server('x').run()\n    except RuntimeError as exc:\n        print(exc)\n"
        f"anyio.run(main, backend={flag!r})\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "await server.run_stdio_async()" in done.stdout


@pytest.mark.fault("X-33")
@SERVERS
@pytest.mark.parametrize(("option", "value"), [("port", 1), ("host", "::"), ("workers", 2), ("stateless_http", True)])
async def test_an_option_of_the_other_transport(server: Any, option: str, value: Any) -> None:
    with pytest.raises(TypeError) as caught:
        await server.run_stdio_async(**{option: value})
    assert str(caught.value) == f"run('stdio') has no option {option!r}; it is one of run('streamable-http')"


@pytest.mark.fault("X-33")
@SERVERS
def test_run_refuses_it_likewise(server: Any) -> None:
    with pytest.raises(TypeError, match=r"has no option 'port'; it is one of run\('streamable-http'\)"):
        server.run("stdio", port=1)
    with pytest.raises(TypeError) as caught:
        server.run(prot=1)
    assert str(caught.value) == "run('stdio') has no option 'prot'; its options are drain_timeout, max_message_size"


@pytest.mark.fault("X-33")
@SERVERS
@pytest.mark.parametrize("transport", ["sse", "http", "", None])
def test_a_transport_that_is_none(server: Any, transport: Any) -> None:
    with pytest.raises(ValueError, match="known are 'stdio' and 'streamable-http', which replaced SSE") as caught:
        server.run(transport)
    assert repr(transport) in str(caught.value)


@pytest.mark.fault("X-67")
@SERVERS
@pytest.mark.parametrize(("loop", "install"), [("uvloop", 'pip install "mcpcore[http]"'), ("trio", "pip install trio")])
def test_a_loop_that_is_not_installed(server: Any, loop: Any, install: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, loop, None)
    text = f"loop={loop!r} needs {loop}; install it with: {install}"
    for transport in ("stdio", "streamable-http") if loop == "uvloop" else ("stdio",):
        with pytest.raises(RuntimeError) as caught:
            server.run(transport, loop=loop)
        assert str(caught.value) == text


@pytest.mark.fault("X-67")
@SERVERS
def test_a_loop_that_does_not_exist(server: Any) -> None:
    with pytest.raises(ValueError, match="unknown loop 'curio'; known are 'asyncio', 'uvloop' and 'trio'"):
        server.run(loop="curio")


@pytest.mark.fault("X-33")
@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
def test_in_a_thread_beside_a_loop_it_serves(loop: str) -> None:
    code = (
        "import asyncio\nfrom mcp_core import Server\n"
        "async def main():\n"
        f"    await asyncio.to_thread(Server('x').run, loop={loop!r})\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, input="", capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

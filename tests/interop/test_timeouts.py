"""Our client when servers are slow, silent, dead, or not there at all."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import anyio
import pytest

from mcp_core import Client, ConnectionClosed, MCPError, RequestTimeout, StdioServerParameters
from mcp_core import types as t
from mcp_core.client import Mode
from mcp_core.errors import InvalidResult, UnsupportedProtocolVersion
from tests.interop import bookshop as b
from tests.interop.watching import Heard
from tests.pace import paced

MODES = ["auto", "legacy"]


def script(behaviour: str = "polite") -> StdioServerParameters:
    """The server of JSON lines."""
    return StdioServerParameters(**b.launch("script_server", behaviour))


def text_of(result: t.CallToolResult) -> str:
    """The text of a result that holds one block, a text."""
    (block,) = result.content
    assert isinstance(block, t.TextContent)
    return block.text


async def received(client: Client) -> list[dict[str, Any]]:
    """All messages that the script has received, the request for them last."""
    messages: list[dict[str, Any]] = (await client.call_tool("received")).structured_content["messages"]
    return messages


# --- no answer in time ---------------------------------------------------------------------------


@pytest.mark.requirement("R-BASE-19")
@pytest.mark.parametrize("mode", MODES)
async def test_timeout_cancels_the_request(mode: Mode) -> None:
    with anyio.fail_after(60):
        async with Client(script(), mode=mode, probe_timeout_seconds=60) as client:
            with pytest.raises(RequestTimeout, match=r"tools/call was not answered within 0\.1 seconds"):
                await client.call_tool("hold", {"number": 1}, read_timeout_seconds=0.1)
            messages = await received(client)
    (held,) = [m for m in messages if m["method"] == "tools/call" and m["params"]["name"] == "hold"]
    (cancelled,) = [m for m in messages if m["method"] == "notifications/cancelled"]
    assert cancelled["params"]["requestId"] == held["id"]
    assert "id" not in cancelled


@pytest.mark.requirement("R-BASE-19")
@pytest.mark.parametrize("mode", MODES)
async def test_timeout_stops_the_tool_on_a_real_server(mode: Mode) -> None:
    parameters = StdioServerParameters(**b.launch("core_server"))
    with anyio.fail_after(60):
        async with Client(parameters, mode=mode, probe_timeout_seconds=60) as client:
            with pytest.raises(RequestTimeout):
                await client.call_tool("slow", {"name": "nap"}, read_timeout_seconds=0.1)
            answer = await client.call_tool("milestone", {"name": "nap cancelled"})
    assert text_of(answer) == "nap cancelled: reached"


async def test_timeout_of_the_client_holds_for_every_request() -> None:
    with anyio.fail_after(60):
        async with Client(script(), read_timeout_seconds=paced(1), probe_timeout_seconds=60) as client:
            with pytest.raises(RequestTimeout):
                await client.call_tool("hold", {"number": 1})
            # A longer one for a single call goes before it.
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "hold", {"number": 2}, 60)
                await anyio.wait_all_tasks_blocked()
                assert text_of(await client.call_tool("release")) == "released 2"


@pytest.mark.requirement("R-CANC-04")
async def test_late_answer_is_ignored() -> None:
    with anyio.fail_after(60):
        async with Client(script(), probe_timeout_seconds=60) as client:
            with pytest.raises(RequestTimeout):
                await client.call_tool("hold", {"number": 1}, read_timeout_seconds=0.1)
            # The script answers the cancelled call all the same, and before this one.
            assert text_of(await client.call_tool("release")) == "released 1"
            assert text_of(await client.call_tool("release")) == "released 0"


@pytest.mark.requirement("R-CANC-01")
@pytest.mark.parametrize("mode", MODES)
async def test_cancelled_caller_tells_the_server_once(mode: Mode) -> None:
    with anyio.fail_after(60):
        async with Client(script(), mode=mode, probe_timeout_seconds=60) as client:
            with anyio.move_on_after(0.1):
                await client.call_tool("hold", {"number": 1})
            messages = await received(client)
    (held,) = [m for m in messages if m["method"] == "tools/call" and m["params"]["name"] == "hold"]
    (cancelled,) = [m for m in messages if m["method"] == "notifications/cancelled"]
    assert cancelled["params"]["requestId"] == held["id"]


@pytest.mark.requirement("R-CANC-02")
async def test_handshake_is_never_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that answers nothing is given up, not told to stop shaking hands."""
    echo = "import sys; [print(line, end='', file=sys.stderr) for line in sys.stdin]"
    # It has only just been started when its input ends.
    monkeypatch.setattr("mcp_core.transports.process.GRACE", paced(2))
    with open_scratch() as scratch, anyio.fail_after(60):
        parameters = StdioServerParameters(command=sys.executable, args=["-c", echo], errlog=scratch.fileno())
        with pytest.raises(RequestTimeout):
            async with Client(parameters, mode="legacy", read_timeout_seconds=0.2):
                pytest.fail("there was no handshake")
        scratch.seek(0)
        lines = scratch.read().decode().splitlines()
    assert len(lines) == 1
    assert '"initialize"' in lines[0]


def open_scratch() -> Any:
    """A file that a server's stderr can go to."""
    import tempfile

    return tempfile.TemporaryFile()


# --- answers out of order --------------------------------------------------------------------------


@pytest.mark.requirement("R-BASE-05")
@pytest.mark.parametrize("mode", MODES)
async def test_each_call_gets_its_own_answer(mode: Mode) -> None:
    answers: dict[int, str] = {}

    with anyio.fail_after(60):
        async with Client(script(), mode=mode, probe_timeout_seconds=60) as client:

            async def call(number: int) -> None:
                answers[number] = text_of(await client.call_tool("hold", {"number": number}))

            async with anyio.create_task_group() as group:
                for number in range(50):
                    group.start_soon(call, number)
                await anyio.wait_all_tasks_blocked()
                assert text_of(await client.call_tool("release")) == "released 50"
    assert answers == {number: f"held {number}" for number in range(50)}


@pytest.mark.parametrize("mode", MODES)
async def test_fast_call_overtakes_a_slow_one_on_a_real_server(mode: Mode) -> None:
    order: list[str] = []
    with anyio.fail_after(60):
        async with Client(
            StdioServerParameters(**b.launch("core_server")), mode=mode, probe_timeout_seconds=60
        ) as client:

            async def wait_for(name: str) -> None:
                assert text_of(await client.call_tool("milestone", {"name": name})) == f"{name}: reached"
                order.append(name)
                if name == "second":
                    await client.call_tool("reach", {"name": "first"})

            async with anyio.create_task_group() as group:
                group.start_soon(wait_for, "first")
                group.start_soon(wait_for, "second")
                await anyio.wait_all_tasks_blocked()
                await client.call_tool("reach", {"name": "second"})
    assert order == ["second", "first"]


@pytest.mark.requirement("R-BASE-04")
async def test_ids_are_never_used_twice() -> None:
    async with Client(script(), probe_timeout_seconds=60) as client:
        for _ in range(20):
            await client.call_tool("pid")
        ids = [message["id"] for message in await received(client)]
    assert len(set(ids)) == len(ids) == 22


@pytest.mark.requirement("R-PROG-02")
@pytest.mark.parametrize("mode", MODES)
async def test_callbacks_are_called_in_the_order_of_the_messages(mode: Mode) -> None:
    """Also of those that arrive in one read; a few times, since a loop may shuffle its tasks."""
    logs: Heard[int] = Heard()
    with anyio.fail_after(60):
        async with Client(
            script(), mode=mode, logging_callback=lambda entry: logs.tell(entry.data), probe_timeout_seconds=60
        ) as client:
            for turn in range(1, 9):
                steps: Heard[float] = Heard()

                async def hear(progress: float, total: float | None, message: str | None, to: Heard[float]) -> None:
                    to.tell(progress)

                await client.call_tool("burst", progress_callback=partial(hear, to=steps))
                assert await steps.count(20) == list(range(1, 21))
                assert await logs.count(20 * turn) == list(range(1, 21)) * turn


@pytest.mark.parametrize("mode", MODES)
async def test_noise_of_a_server_is_overlooked(mode: Mode) -> None:
    with anyio.fail_after(60):
        async with Client(script(), mode=mode, probe_timeout_seconds=60) as client:
            assert text_of(await client.call_tool("noise")) == "after the noise"
            assert text_of(await client.call_tool("pid")).isdigit()


@pytest.mark.requirement("R-BASE-12")
async def test_modern_client_never_sends_a_response() -> None:
    """Not even to say that it could not read a line, or to refuse a request."""
    with anyio.fail_after(60):
        async with Client(script(), probe_timeout_seconds=60) as client:
            await client.call_tool("noise")
            await client.call_tool("ask")
            messages = await received(client)
    assert [m for m in messages if "method" not in m] == []


@pytest.mark.requirement("R-BASE-20")
async def test_client_of_the_handshake_era_answers_requests() -> None:
    with anyio.fail_after(60):
        async with Client(script(), mode="legacy") as client:
            await client.call_tool("ask")
            messages = await received(client)
    answers = {m["id"]: m for m in messages if "method" not in m and "id" in m}
    assert answers["ask-1"]["result"] == {}
    assert answers["ask-2"]["error"]["code"] == -32601


async def test_nulls_in_meta_are_kept() -> None:
    meta = {"a/null": None, "a/list": [None, {"b": None}]}
    async with Client(script(), probe_timeout_seconds=60) as client:
        result = await client.call_tool("meta", meta=meta)
        messages = await received(client)
    assert result.meta == meta
    sent = messages[1]["params"]["_meta"]
    assert {key: sent[key] for key in meta} == meta


# --- servers that die ------------------------------------------------------------------------------


@pytest.mark.requirement("R-STD-10")
@pytest.mark.parametrize("mode", MODES)
async def test_server_that_dies_fails_every_call(mode: Mode) -> None:
    failures: list[str] = []

    with anyio.fail_after(60):
        async with Client(script(), mode=mode, probe_timeout_seconds=60) as client:

            async def call(name: str) -> None:
                with pytest.raises(ConnectionClosed):
                    await client.call_tool(name, {"number": 1})
                failures.append(name)

            async with anyio.create_task_group() as group:
                group.start_soon(call, "hold")
                await anyio.wait_all_tasks_blocked()
                group.start_soon(call, "die")
            with pytest.raises(ConnectionClosed):
                await client.call_tool("pid")
    assert sorted(failures) == ["die", "hold"]


@pytest.mark.parametrize("mode", [*MODES, "2026-07-28"])
async def test_server_that_ends_at_once(mode: Mode) -> None:
    parameters = StdioServerParameters(command=sys.executable, args=["-c", ""])
    with anyio.fail_after(60), pytest.raises(ConnectionClosed):
        async with Client(parameters, mode=mode, probe_timeout_seconds=60) as client:
            await client.call_tool("pid")


@pytest.mark.parametrize("mode", MODES)
async def test_server_that_cannot_be_started(mode: Mode) -> None:
    parameters = StdioServerParameters(command="no-such-server-anywhere", args=["--stdio"])
    with pytest.raises(ConnectionClosed, match="the server 'no-such-server-anywhere' cannot be started") as caught:
        async with Client(parameters, mode=mode, probe_timeout_seconds=60):
            pytest.fail("it was started")
    assert isinstance(caught.value.__cause__, OSError)


async def test_server_whose_directory_is_missing() -> None:
    parameters = StdioServerParameters(command=sys.executable, args=["-c", ""], cwd="no/such/directory")
    with pytest.raises(ConnectionClosed, match="no/such/directory"):
        async with Client(parameters, probe_timeout_seconds=60):
            pytest.fail("it was started")


async def test_exception_of_the_body_comes_out_as_it_is() -> None:
    """On no loop is it wrapped in a group: `except` around the client must catch it."""
    with pytest.raises(KeyError, match="of the body"):
        async with Client(script(), probe_timeout_seconds=60):
            raise KeyError("of the body")


# --- the probe -------------------------------------------------------------------------------------


@pytest.mark.requirement("R-VER-16")
async def test_silence_means_the_handshake() -> None:
    with anyio.fail_after(60):
        async with Client(script("mute"), probe_timeout_seconds=0.2) as client:
            assert client.protocol_version == "2025-11-25"
            assert client.server_info == t.Implementation(name="script", version="1")
            methods = [message["method"] for message in await received(client)]
    requests = [method for method in methods if method != "notifications/cancelled"]
    assert requests == ["server/discover", "initialize", "notifications/initialized", "tools/call"]


@pytest.mark.requirement("R-VER-17")
@pytest.mark.parametrize("behaviour", ["unknown-method", "odd-error"])
async def test_any_error_means_the_handshake(behaviour: str) -> None:
    with anyio.fail_after(60):
        async with Client(script(behaviour), probe_timeout_seconds=60) as client:
            assert client.protocol_version == "2025-11-25"
            messages = await received(client)
    assert [message["method"] for message in messages] == [
        "server/discover",
        "initialize",
        "notifications/initialized",
        "tools/call",
    ]
    assert messages[1]["params"]["protocolVersion"] == "2025-11-25"
    assert "_meta" not in messages[3]["params"]


@pytest.mark.requirement("R-VER-10")
async def test_refused_version_is_corrected() -> None:
    with anyio.fail_after(60):
        async with Client(script("corrects"), probe_timeout_seconds=60) as client:
            assert client.protocol_version == "2026-07-28"
            methods = [message["method"] for message in await received(client)]
    assert methods == ["server/discover", "server/discover", "tools/call"]


@pytest.mark.requirement("R-VER-16")
async def test_server_of_the_handshake_era_that_names_its_versions() -> None:
    with anyio.fail_after(60):
        async with Client(script("handshake-only"), probe_timeout_seconds=60) as client:
            assert client.protocol_version == "2025-06-18"


@pytest.mark.requirement("R-VER-10")
async def test_server_with_no_common_version_is_reported() -> None:
    with anyio.fail_after(60), pytest.raises(UnsupportedProtocolVersion) as caught:
        async with Client(script("future"), probe_timeout_seconds=60):
            pytest.fail("there is no common version")
    assert caught.value.data["supported"] == ["2030-01-01"]


@pytest.mark.requirement("R-VER-04")
async def test_unknown_version_in_the_handshake_is_refused() -> None:
    with anyio.fail_after(60), pytest.raises(InvalidResult, match="1999-01-01"):
        async with Client(script("ancient"), mode="legacy"):
            pytest.fail("there is no common version")


@pytest.mark.requirement("R-META-01")
@pytest.mark.requirement("R-META-03")
@pytest.mark.requirement("R-STD-03")
async def test_modern_requests_carry_their_envelope() -> None:
    async with Client(
        script(), client_info=t.Implementation(name="interop", version="7"), log_level="info", probe_timeout_seconds=60
    ) as client:
        messages = await received(client)
    for message in messages:
        meta = message["params"]["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        assert meta["io.modelcontextprotocol/clientCapabilities"] == {}
        assert meta["io.modelcontextprotocol/clientInfo"] == {"name": "interop", "version": "7"}
        assert meta["io.modelcontextprotocol/logLevel"] == "info"


async def test_error_of_a_call_leaves_the_connection_alive() -> None:
    async with Client(script(), probe_timeout_seconds=60) as client:
        with pytest.raises(MCPError, match="Unknown tool: nothing"):
            await client.call_tool("nothing")
        assert text_of(await client.call_tool("pid")).isdigit()

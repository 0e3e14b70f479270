"""A server as a child process: how it is told of that it has ended, and what is left of it when the client leaves."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from mcp_core import Client, ConnectionClosed, StdioServerParameters
from mcp_core.transports import process
from mcp_core.transports.process import STDERR_KEPT, STDERR_LINES

SECONDS: Final = 25.0
SERVER: Final = str(Path(__file__).parent / "hostile_script.py")
BEFORE: Final = "the connection ended before the answer came: the server "


def python(code: str, **fields: Any) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=["-S", "-E", "-c", code], **fields)


async def told(target: StdioServerParameters) -> str:
    """What a client says of a server that ends before it answers."""
    with anyio.fail_after(SECONDS), pytest.raises(ConnectionClosed) as caught:
        async with Client(target):
            pytest.fail("it is not open")
    return str(caught.value)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The client soon goes on to the next step where a server does not end; the signals that it has sent.

    After the last step there is no other: for that it has the time that it always has.
    """
    sent: list[int] = []
    whole, send = process.GRACE, process.signal_group

    def noted(child: Any, number: int) -> None:
        sent.append(number)
        if number == signal.SIGKILL:
            monkeypatch.setattr(process, "GRACE", whole)
        send(child, number)

    monkeypatch.setattr(process, "GRACE", 0.2)
    monkeypatch.setattr(process, "signal_group", noted)
    return sent


@pytest.mark.fault("X-67")
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("import sys; sys.exit(3)", "ended with exit status 3, and said nothing on stderr"),
        ("raise SystemExit(0)", "ended with exit status 0, and said nothing on stderr"),
        ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL, and said nothing on stderr"),
        ("import os; os.kill(os.getpid(), 64)", "was ended by "),
        ("import os, time; os.close(1); time.sleep(60)", "closed its output, and runs on"),
        (
            "import sys; sys.exit('no such option: é')",
            "ended with exit status 1; its last words on stderr:\n  no such op",
        ),
    ],
)
async def test_a_server_that_ends_is_told_by_its_status(code: str, how: str) -> None:
    assert (await told(python(code))).startswith(f"{BEFORE}{sys.executable!r} {how}")


@pytest.mark.fault("X-67")
async def test_its_last_lines_are_told_and_no_more(capfd: pytest.CaptureFixture[str]) -> None:
    code = "import sys\nfor n in range(5000): print('line', n, file=sys.stderr)\nsys.exit(2)"
    lines = (await told(python(code))).split("\n")
    assert lines[1:] == [f"  line {n}" for n in range(5000 - STDERR_LINES, 5000)]
    # It is all where it would have been without a client.
    assert capfd.readouterr().err.splitlines() == [f"line {n}" for n in range(5000)]


@pytest.mark.fault("X-67")
async def test_what_is_told_is_bounded_and_on_lines_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    code = r"import sys; sys.stderr.write('x' * 10**6 + '\x1b[2J\x07'); sys.stderr.flush(); sys.exit(2)"
    said = await told(python(code))
    assert len(said) < STDERR_KEPT
    assert "\x1b" not in said
    assert len(capfd.readouterr().err) == 10**6 + 5


@pytest.mark.fault("X-67")
async def test_stderr_goes_where_it_is_sent(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with (tmp_path / "log").open("wb") as log:
        said = await told(python("import sys; sys.exit('oops')", errlog=log))
    assert said == f"{BEFORE}{sys.executable!r} ended with exit status 1"
    assert (tmp_path / "log").read_text() == "oops\n"
    assert capfd.readouterr().err == ""


@pytest.mark.fault("X-67")
async def test_a_server_that_ends_in_between_is_told_then_and_later(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("{}")
    target = StdioServerParameters(command=sys.executable, args=["-S", "-E", SERVER, str(tmp_path / "script")])
    before = children()
    with anyio.fail_after(SECONDS):
        async with Client(target, mode="legacy") as client:
            await client.ping()
            (child,) = children() - before
            os.kill(child, signal.SIGTERM)
            with pytest.raises(ConnectionClosed, match="was ended by SIGTERM"):
                await client.request("nobody/answers")
            with pytest.raises(ConnectionClosed, match=r"^ping was not sent: the connection has ended: .*SIGTERM"):
                await client.ping()


def children() -> set[int]:
    """The processes that this one has started and that run."""
    found: set[int] = set()
    for entry in os.listdir("/proc"):
        try:
            fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] != "Z":
            found.add(int(entry))
    return found


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.case("C090")
@pytest.mark.parametrize(
    "helper",
    [
        "sleep 120 </dev/null >/dev/null 2>&1 &",
        "sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1; done' </dev/null >/dev/null 2>&1 &",
        "sleep 120 </dev/null >/dev/null &",
    ],
    ids=["plain", "ignores SIGTERM", "holds stderr"],
)
@pytest.mark.parametrize("how", ["left", "failed", "cancelled"])
async def test_nothing_that_a_server_has_started_outlives_the_client(
    helper: str, how: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if "trap" in helper:
        request.getfixturevalue("impatient")
    (tmp_path / "script").write_text("{}")
    pids = tmp_path / "pids"
    script = f'{helper} echo $! > {pids}; exec "$0" -S -E {SERVER} {tmp_path / "script"}'
    target = StdioServerParameters(command="sh", args=["-c", script, sys.executable])
    pid = 0
    with anyio.fail_after(SECONDS):
        with anyio.CancelScope() as scope:
            try:
                async with Client(target, mode="legacy") as client:
                    await client.ping()
                    pid = int(pids.read_text())
                    assert runs(pid)
                    if how == "failed":
                        raise ZeroDivisionError
                    if how == "cancelled":
                        scope.cancel()
            except ZeroDivisionError:
                assert how == "failed"
    assert not runs(pid)


@pytest.mark.case("C090")
async def test_a_server_that_ends_by_itself_leaves_nothing_either(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 120 </dev/null >/dev/null 2>&1 & echo $! > {pids}; exit 4"
    said = await told(StdioServerParameters(command="sh", args=["-c", script]))
    assert said.startswith(f"{BEFORE}'sh' ended with exit status 4")
    assert not runs(int(pids.read_text()))


async def test_a_server_that_ignores_everything_is_ended_in_time(impatient: list[int]) -> None:
    code = "import signal, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\ntime.sleep(60)"
    before = children()
    with anyio.fail_after(SECONDS), pytest.raises(Exception, match="initialize was not answered within"):
        async with Client(python(code), mode="legacy", read_timeout_seconds=0.5):
            pytest.fail("it is not open")
    assert children() <= before
    assert impatient[0] == signal.SIGTERM


async def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("{}")
    target = StdioServerParameters(command=sys.executable, args=["-S", "-E", SERVER, str(tmp_path / "script")])
    counts: list[int] = []
    for _ in range(4):
        async with Client(target, mode="legacy") as client:
            await client.ping()
        with pytest.raises(ConnectionClosed, match="cannot be started"):
            async with Client(StdioServerParameters(command="/no/such/program")):
                pytest.fail("it is not open")
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts[-1] <= counts[0]

"""Runs that are led: by coverage where `atheris` is installed, else by cost, with Hypothesis.

`python -m tests.fuzz --guided SECONDS` shares the time among the parts that read what a peer
sends; `--target` names one. Not part of any default run. Coverage finds branches that random
input seldom reaches; cost finds input that is slow or large for its size. The invariant
is the same either way: no exception but the library's, and cost in proportion to size.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import anyio
from hypothesis import HealthCheck, Phase, given, seed, settings, target
from hypothesis import strategies as st

from mcp_core.errors import InvalidParams
from mcp_core.messages import decode_frame
from mcp_core.request_state import RequestStateSigner
from mcp_core.testing import modern_meta
from tests.fuzz.corpus import SHAPES, TEXTS
from tests.fuzz.oracle import Tally, Violation, check_message
from tests.fuzz.running import watch

__all__ = ["PARTS", "run_guided"]

Part = Callable[[bytes], object]
_tally = Tally()


def _frame(data: bytes) -> object:
    return decode_frame(data)


_signer = RequestStateSigner([b"k" * 32])
_ctx: Any = SimpleNamespace(method="tools/call", params={"name": "x"}, auth=None, peer=None, server=None)


def _state(data: bytes) -> object:
    try:
        return _signer.verify(_ctx, data.decode("latin-1"))
    except InvalidParams:
        return None


class _Lazy:
    """What takes a while to make, made by the first input."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def get(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]


_lazy: Final = _Lazy()


def _arguments(data: bytes) -> object:
    from tests.fuzz.typed import TOOLS, make_typed

    server = _lazy.get("typed", lambda: make_typed("reject")).server
    name = TOOLS[data[0] % len(TOOLS)] if data else "echo"
    meta = _lazy.get("meta", lambda: __import__("json").dumps(modern_meta()).encode())
    params = b'{"name":"%b","_meta":%b,"arguments":%b}' % (name.encode(), meta, data[1:])
    answer = anyio.run(server.handle, b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % params)
    if answer is not None:
        _tally.answered(data, len(answer))
        check_message(answer)
    return answer


def _head(data: bytes) -> object:
    from mcp_core.transports.streamable_http.parsed_headers import ParsedHeaders

    lines = tuple(
        (name.strip().lower(), value.strip()) for name, _, value in (line.partition(b":") for line in data.split(b"\n"))
    )
    head = ParsedHeaders(lines)
    return head.accepts, head.is_json, head.states_modern


def _events(data: bytes) -> object:
    from tests.fuzz.streams import read_events

    return anyio.run(read_events, [data])


PARTS: Final[dict[str, Part]] = {
    "messages": _frame,
    "heads": _head,
    "sse": _events,
    "state": _state,
    "typed": _arguments,
}
"""What is led, by the name of its target."""


# --- by cost ----------------------------------------------------------------------------------

_pieces = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [b'"', b"\\", b"\\u", b"\\ud800", b"{", b"}", b"[", b"]", b":", b",", b'"id":', b"1e9", b"=", b";q=", b"\n"]
    ),
)
_repeated = st.tuples(_pieces, st.integers(1, 2000)).map(lambda pair: (pair[0] * pair[1])[:20_000])
_inputs = st.one_of(
    st.lists(st.one_of(_pieces, _repeated), max_size=12).map(b"".join),
    st.tuples(st.sampled_from(list({**TEXTS, **SHAPES}.values())), st.integers(1, 5000)).map(
        lambda pair: pair[0](pair[1])
    ),
)


def _led_by_cost(name: str, part: Part, seconds: float, first: int) -> int:
    """Play one part for a time; how many inputs there were."""
    end = time.monotonic() + seconds
    count = 0
    rounds = 0
    while time.monotonic() < end:

        @seed(first + rounds)
        @settings(
            max_examples=500,
            deadline=None,
            database=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
            phases=[Phase.generate, Phase.target, Phase.shrink],
        )
        @given(_inputs)
        def once(data: bytes) -> None:
            nonlocal count
            count += 1
            begun = time.process_time_ns()
            part(data)
            took = time.process_time_ns() - begun
            target(took / max(len(data), 2000), label="ns a byte")
            _tally.took(data, took, lambda: part(data))

        once()
        rounds += 1
    return count


# --- by coverage --------------------------------------------------------------------------------

_ATHERIS: Final = """
import sys, atheris
with atheris.instrument_imports(include=["mcp_core", "mcp_typed"]):
    from tests.fuzz.guided import PARTS
part = PARTS[sys.argv.pop(1)]
atheris.Setup(sys.argv, part)
atheris.Fuzz()
"""


def _led_by_coverage(name: str, seconds: float, first: int) -> int:
    """Play one part in a process of its own; its exit code."""
    options = [f"-max_total_time={max(1, int(seconds))}", f"-seed={first % 2**31}", "-max_len=20000", "-timeout=20"]
    return subprocess.run([sys.executable, "-c", _ATHERIS, name, *options], check=False).returncode


def run_guided(seconds: float, only: str | None, first: int) -> int:
    """Run each part, or one of them, for its share of the time; the exit code."""
    out = sys.stdout
    parts = PARTS if only is None else {only: PARTS[only]}
    by_coverage = importlib.util.find_spec("atheris") is not None
    unhandled: list[str] = []
    watch(unhandled)
    for name, part in parts.items():
        share = seconds / len(parts)
        if by_coverage:
            if (code := _led_by_coverage(name, share, first)) != 0:
                out.write(f"VIOLATION in {name}, seed {first}: atheris ended with {code}\n")
                return 1
            continue
        try:
            count = _led_by_cost(name, part, share, first)
        except (Violation, Exception) as exc:
            out.write(f"VIOLATION in {name}, seed {first}: {type(exc).__name__}: {exc}\n")
            out.writelines(f"  {note}\n" for note in getattr(exc, "__notes__", []))
            return 1
        out.write(f"{name}: {count} inputs led by cost, seed {first}\n")
    out.write(_tally.summary() + "\n" + _tally.worst())
    return 0

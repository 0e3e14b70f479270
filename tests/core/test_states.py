"""States and their tables: what the objects do, event by event, is what the tables say and the diagrams show."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any, Final, TypeVar, cast

import pytest

from mcp_core import Server
from mcp_core.backend import open_backend
from mcp_core.connection import CONNECTION_TRANSITIONS, ConnectionState
from mcp_core.session import REQUEST_TRANSITIONS, InboundRequest, JSONRPCSession, RequestState
from mcp_core.transports.memory import memory_pair
from mcp_core.transports.streamable_http import InMemoryEventStore
from mcp_core.transports.streamable_http.resumable import STREAM_TRANSITIONS, GuardedStore, ResumableStream, StreamState
from mcp_core.transports.streamable_http.sessions import SESSION_TRANSITIONS, HTTPSession, SessionLife
from tests import state_diagrams

S = TypeVar("S")


def paths(table: Mapping[S, Mapping[str, S]], length: int) -> Iterator[tuple[list[str], list[S]]]:
    """Every legal sequence of so many events, with the states that it leads through."""
    events = sorted({event for each in table.values() for event in each})
    for sequence in product(events, repeat=length):
        states = [next(iter(table))]
        for event in sequence:
            after = table[states[-1]].get(event)
            if after is None:
                break
            states.append(after)
        else:
            yield list(sequence), states


def test_the_diagrams_are_drawn_from_the_tables() -> None:
    assert state_diagrams.PAGE.read_text() == state_diagrams.page()


@pytest.mark.parametrize("table", state_diagrams.TABLES.values(), ids=state_diagrams.TABLES)
def test_every_state_is_in_its_table_and_can_be_reached(table: state_diagrams.Table) -> None:
    reached: list[Any] = [next(iter(table))]
    for state in reached:
        reached += [each for each in table[state].values() if each not in reached]
    assert set(reached) == set(table) == set(cast("Any", type(reached[0])))


ANSWERED: Final = (RequestState.ADMITTED, RequestState.RUNNING)


def test_a_request_goes_through_the_states_of_its_table() -> None:
    for length in range(1, 5):
        for events, states in paths(REQUEST_TRANSITIONS, length):
            session: JSONRPCSession[str, object] = JSONRPCSession()
            entry = session.admit(1)
            for event, before, after in zip(events, states, states[1:], strict=False):
                assert apply(session, entry, event) is (before in ANSWERED if event == "settle" else None)
                assert entry.state is after
            assert entry.is_cancelled is (states[-1] in (RequestState.WITHDRAWN, RequestState.CANCELLED))
            assert (1 in session.incoming) is (states[-1] is not RequestState.DONE)


def apply(session: JSONRPCSession[str, object], entry: InboundRequest[str], event: str) -> bool | None:
    if event == "start":
        entry.start()
    elif event == "cancel":
        assert session.cancel(1) is entry
    else:
        return session.settle(1, entry)
    return None


async def test_a_connection_goes_through_the_states_of_its_table() -> None:
    for events, states in paths(CONNECTION_TRANSITIONS, 4):
        async with open_backend() as backend:
            channel, _ = memory_pair(backend)
            with Server("s").connect(backend, channel, {}) as connection:
                act: dict[str, Callable[[], Any]] = {
                    "input ends": connection.ended,
                    "abort drain": connection.abort_drain,
                    "drained": lambda: connection.drain(0),
                }
                for event, after in zip(events, states[1:], strict=True):
                    pending = act[event]()
                    if pending is not None:
                        await cast("Awaitable[bool]", pending)
                    assert connection.state is after
                assert connection.notify_session(b"{}") is (states[-1] is ConnectionState.OPEN)


async def test_a_session_goes_through_the_states_of_its_table() -> None:
    for events, states in paths(SESSION_TRANSITIONS, 4):
        session = HTTPSession("x")
        act: dict[str, Callable[[], None]] = {
            "enter": session.__enter__,
            "last exit": partial(exit_all, session),
            "close": session.end,
        }
        for event, after in zip(events, states[1:], strict=True):
            act[event]()
            assert session.life is after


def exit_all(session: HTTPSession) -> None:
    session.users = max(session.users, 1)
    for _ in range(session.users):
        session.__exit__()


def test_a_session_is_in_use_until_its_last_request_is_over() -> None:
    session, lives = HTTPSession("x"), list[SessionLife]()
    with session:
        with session:
            lives.append(session.life)
        lives.append(session.life)
    assert [*lives, session.life] == [SessionLife.IN_USE, SessionLife.IN_USE, SessionLife.IDLE]


class Reader:
    """The little that a stream needs of an exchange."""

    method = "GET"

    def __init__(self) -> None:
        self.written: list[bytes] = []

    async def write(self, data: bytes) -> None:
        self.written.append(data)

    async def open_stream(self) -> None:
        """Nothing to open."""


async def test_a_stored_stream_goes_through_the_states_of_its_table() -> None:
    for events, states in paths(STREAM_TRANSITIONS, 3):
        stream = ResumableStream(GuardedStore(InMemoryEventStore()), "s/1", primes=False)
        for event, before, after in zip(events, states, states[1:], strict=False):
            reader = Reader()
            if event == "end":
                await stream.end()
            elif event == "detach":
                stream.displace()
            elif before is StreamState.ENDED:
                await stream.resume(cast("Any", reader), "1", [("2", b"{}")])
                assert reader.written == [b"id: 2\nevent: message\ndata: {}\n\n"]
            else:
                await stream.open(cast("Any", reader))
            assert stream.state is after
            if event == "attach" and before is not StreamState.ENDED:
                await stream.put(b"[]")
                assert len(reader.written) == 1

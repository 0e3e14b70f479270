"""A peer's requests in flight, driven at random: at most one answer per request, and never to a cancelled one."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from mcp_core.errors import InvalidRequest
from mcp_core.session import REQUEST_TRANSITIONS, InboundRequest, JSONRPCSession, RequestState

ids = st.sampled_from([0, 1, -1, "", "0", "1", 2**70])


class Peer(RuleBasedStateMachine):
    """Both directions of one session, against the simplest model of it."""

    admitted: Bundle[tuple[int | str, InboundRequest[str]]] = Bundle("admitted")
    settled: Bundle[tuple[int | str, InboundRequest[str]]] = Bundle("settled")
    registered: Bundle[int | str] = Bundle("registered")
    resolved: Bundle[int | str] = Bundle("resolved")

    def __init__(self) -> None:
        super().__init__()
        self.session: JSONRPCSession[str, object] = JSONRPCSession()
        self.open: dict[int | str, RequestState] = {}
        self.waiting: dict[int | str, object] = {}
        self.given: set[int | str] = set()

    @rule(target=admitted, request_id=ids)
    def admit(self, request_id: int | str) -> Any:
        try:
            entry = self.session.admit(request_id)
        except InvalidRequest:
            assert request_id in self.open
            return cast("Any", multiple())
        assert request_id not in self.open
        self.open[request_id] = RequestState.ADMITTED
        return request_id, entry

    @rule(target=settled, taken=consumes(admitted))
    def settle(self, taken: tuple[int | str, InboundRequest[str]]) -> tuple[int | str, InboundRequest[str]]:
        request_id, entry = taken
        before = self.open.pop(request_id)
        assert self.session.settle(request_id, entry) is (before in (RequestState.ADMITTED, RequestState.RUNNING))
        assert entry.state is REQUEST_TRANSITIONS[before]["settle"]
        return taken

    @rule(taken=settled)
    def settle_again(self, taken: tuple[int | str, InboundRequest[str]]) -> None:
        # Not even when a new request has the id by now.
        assert self.session.settle(*taken) is False

    @rule(request_id=ids)
    def start(self, request_id: int | str) -> None:
        entry = self.session.incoming.get(request_id)
        after = REQUEST_TRANSITIONS[self.open[request_id]].get("start") if entry is not None else None
        if entry is not None and after is not None:
            entry.start()
            self.open[request_id] = after

    @rule(request_id=ids)
    def cancel(self, request_id: int | str) -> None:
        entry = self.session.cancel(request_id)
        before = self.open.get(request_id)
        assert (entry is not None) == (before is not None and "cancel" in REQUEST_TRANSITIONS[before])
        if entry is not None and before is not None:
            self.open[request_id] = REQUEST_TRANSITIONS[before]["cancel"]
            assert self.session.incoming[request_id] is entry

    @rule()
    def cancel_nothing(self) -> None:
        assert self.session.cancel(None) is None

    @rule(target=registered)
    def register(self) -> int | str:
        waiter = object()
        request_id = self.session.register(waiter)
        assert request_id not in self.given
        self.given.add(request_id)
        self.waiting[request_id] = waiter
        return request_id

    @rule(target=resolved, request_id=consumes(registered))
    def resolve(self, request_id: int | str) -> int | str:
        assert self.session.resolve(request_id) is self.waiting.pop(request_id)
        return request_id

    @rule(request_id=resolved)
    def resolve_again(self, request_id: int | str) -> None:
        assert self.session.resolve(request_id) is None

    @rule(request_id=st.sampled_from([None, "", "1", -1, 0, 2**70]))
    def resolve_a_stranger(self, request_id: int | str | None) -> None:
        assert self.session.resolve(request_id) is None

    @invariant()
    def holds_what_is_open_and_no_more(self) -> None:
        assert {(type(key), key) for key in self.session.incoming} == {(type(key), key) for key in self.open}
        assert {key: entry.state for key, entry in self.session.incoming.items()} == self.open
        assert dict(self.session.outgoing) == self.waiting


TestPeer = Peer.TestCase
TestPeer.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)

"""State of one JSON-RPC peer: requests in flight either way, and the handshake.

Knows ids and names; nothing of bytes, tasks or time. What a connection keeps per
request (a task, a future) is opaque here.
Spec: basic, "Messages"; basic/lifecycle; basic/patterns/cancellation.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, Generic, TypeVar, cast

from mcp_core import types as t
from mcp_core.errors import InvalidParams, InvalidRequest
from mcp_core.messages import RequestId
from mcp_core.revisions import newest_first

__all__ = [
    "REQUEST_TRANSITIONS",
    "Handshake",
    "InboundRequest",
    "JSONRPCSession",
    "RequestState",
    "our_request_id",
]

_DIGITS: Final = 20
"""More than any id of ours has."""

J = TypeVar("J")
W = TypeVar("W")


class RequestState(enum.Enum):
    """Life of a request of the peer's. At most one response leaves per id, and none after a cancellation.

    The id stays reserved until DONE, however long a handler outlives its cancellation: the response of the old one
    would settle a new request with the same id.
    """

    ADMITTED = "admitted"
    """Taken in; its handler has not started, or was a plain function that is done."""
    RUNNING = "running"
    """Its handler is suspended."""
    WITHDRAWN = "withdrawn"
    """Cancelled before its handler started."""
    CANCELLED = "cancelled"
    """Cancelled, and its handler not yet done."""
    DONE = "done"
    """The id may be used again."""


REQUEST_TRANSITIONS: Final[Mapping[RequestState, Mapping[str, RequestState]]] = {
    RequestState.ADMITTED: {
        "start": RequestState.RUNNING,
        "cancel": RequestState.WITHDRAWN,
        "settle": RequestState.DONE,
    },
    RequestState.RUNNING: {"cancel": RequestState.CANCELLED, "settle": RequestState.DONE},
    # On trio a task that is cancelled before its first step makes that step all the same.
    RequestState.WITHDRAWN: {"start": RequestState.CANCELLED, "settle": RequestState.DONE},
    RequestState.CANCELLED: {"settle": RequestState.DONE},
    RequestState.DONE: {},
}
"""Which event is legal in which state, and where it leads."""

# Looking a member up, or a transition (an enum's hash is a Python function), costs more than the rest of what is done
# with a request here: the path of every request compares these, and tests/core/test_states.py holds it to the table.
_ADMITTED: Final = RequestState.ADMITTED
_RUNNING: Final = RequestState.RUNNING
_WITHDRAWN: Final = RequestState.WITHDRAWN
_CANCELLED: Final = RequestState.CANCELLED
_DONE: Final = RequestState.DONE


class InboundRequest(Generic[J]):
    """A request of the peer's that is not answered yet."""

    __slots__ = ("state", "task")

    def __init__(self) -> None:
        self.task: J | None = None
        """What runs its handler; the connection attaches it."""
        self.state: RequestState = _ADMITTED

    @property
    def is_cancelled(self) -> bool:
        """Whether no response is wanted any more."""
        return self.state is _CANCELLED or self.state is _WITHDRAWN

    @property
    def has_started(self) -> bool:
        """Whether its handler has made a step in a task."""
        return self.state is _RUNNING or self.state is _CANCELLED

    def start(self) -> None:
        """Note that the handler starts, in a task."""
        self.state = _RUNNING if self.state is _ADMITTED else _CANCELLED


class Handshake:
    """What `initialize` settled between the two sides."""

    __slots__ = ("capabilities", "client_info", "log_level", "revision", "subscriptions")

    def __init__(self, revision: str, capabilities: t.ClientCapabilities, client_info: t.Implementation) -> None:
        self.revision: str = revision
        self.capabilities: t.ClientCapabilities = capabilities
        self.client_info: t.Implementation = client_info
        self.log_level: t.LoggingLevel | None = None
        self.subscriptions: set[str] = set()

    @classmethod
    def negotiate(cls, params: t.InitializeRequestParams, served: tuple[str, ...]) -> Handshake:
        """Agree on the revision asked for if it is served, else on the newest that is.

        `served` are handshake revisions, at least one.
        """
        wanted = params.protocol_version
        revision = wanted if wanted in served else newest_first(served)[0]
        return cls(revision, params.capabilities, params.client_info)

    def wants_log(self, level: t.LoggingLevel) -> bool:
        """Return whether a message of this level is to be sent; before a level is set, all are."""
        least = self.log_level
        return least is None or t.LOGGING_LEVELS[level] >= t.LOGGING_LEVELS[least]


class JSONRPCSession(Generic[J, W]):
    """One peer's requests in flight. At most one response leaves per id."""

    __slots__ = ("_next_id", "handshake", "incoming", "outgoing")

    def __init__(self) -> None:
        self.handshake: Handshake | None = None
        self.incoming: Final[dict[RequestId, InboundRequest[J]]] = {}
        self.outgoing: Final[dict[RequestId, W]] = {}
        self._next_id = 0

    # --- the peer's requests ----------------------------------------------------------

    def admit(self, request_id: RequestId) -> InboundRequest[J]:
        """Take a request in.

        Raises:
            InvalidRequest: Its id is that of one still unanswered; that one goes on (D-14).
        """
        if request_id in self.incoming:
            raise InvalidRequest("a request with this id is still in progress")
        entry = self.incoming[request_id] = InboundRequest()
        return entry

    def settle(self, request_id: RequestId, entry: InboundRequest[J]) -> bool:
        """Give the id free; whether the request is still to be answered."""
        if self.incoming.get(request_id) is not entry:
            return False
        del self.incoming[request_id]
        state, entry.state = entry.state, _DONE
        return state is _ADMITTED or state is _RUNNING

    def cancel(self, request_id: RequestId | None) -> InboundRequest[J] | None:
        """Mark a request as cancelled; `None` where there is nothing to cancel.

        The id stays taken until the handler has ended, or the old one could settle a
        new request.
        """
        entry = None if request_id is None else self.incoming.get(request_id)
        if entry is None or entry.is_cancelled:
            return None
        entry.state = REQUEST_TRANSITIONS[entry.state]["cancel"]
        return entry

    # --- our requests ------------------------------------------------------------------

    def register(self, future: W) -> RequestId:
        """Take an id for a request of ours."""
        self._next_id += 1
        self.outgoing[self._next_id] = future
        return self._next_id

    def resolve(self, request_id: RequestId | None) -> W | None:
        """Remove and return the future for this response; `None` if there is none (any more)."""
        return None if request_id is None else self.outgoing.pop(request_id, None)

    def resolve_lenient(self, request_id: RequestId | None) -> W | None:
        """As `resolve`, where a peer may have sent our id back as text (C093)."""
        future = self.resolve(request_id)
        if future is None and isinstance(request_id, str):
            future = self.outgoing.pop(our_request_id(request_id) or 0, None)  # ours begin at 1
        return future

    def resolve_all(self) -> list[W]:
        """Remove and return the futures of all requests of ours: no response will come any more."""
        futures = list(self.outgoing.values())
        self.outgoing.clear()
        return futures

    def only_outgoing(self) -> RequestId | None:
        """Return the id of the request of ours that waits, if there is exactly one."""
        return next(iter(self.outgoing)) if len(self.outgoing) == 1 else None

    def was_asked(self, request_id: RequestId) -> bool:
        """Return whether there ever was a request of ours with this id."""
        given = our_request_id(request_id)
        return given is not None and 0 < given <= self._next_id


def our_request_id(given: object) -> int | None:
    """Return the id of ours that a peer means: ids are to come back as they are, and do not always.

    Ours are integers, so that the same as text or as a float can mean nothing else (C093).
    """
    if isinstance(given, bool):
        return None
    if isinstance(given, int):
        return given
    if isinstance(given, float):
        return int(given) if given.is_integer() else None
    is_number = isinstance(given, str) and len(given) < _DIGITS and given.isascii() and given.isdecimal()
    return int(cast("str", given)) if is_number else None


def initialize_in_batch() -> InvalidRequest:
    """Return the refusal of `initialize` as one of several messages (2025-03-26, "Initialization")."""
    return InvalidRequest("initialize must not be part of a batch")


def missing_protocol_version(method: str) -> InvalidParams:
    """Return the refusal of a request that is of neither era."""
    return InvalidParams(
        f"{method}: params._meta must carry io.modelcontextprotocol/protocolVersion and "
        "io.modelcontextprotocol/clientCapabilities, or initialize must come first"
    )

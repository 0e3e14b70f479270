"""Messages of every kind, mostly legal, and what is left of them when a few bytes have changed.

Making a message costs more than serving it, so a `Pool` makes some thousands at the start
and hands them out under ever new ids, whole or mutated.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any, Final, NamedTuple, cast

from mcp_core.testing import modern_meta
from tests.fuzz.corpus import BATCHES, SHAPES, Shape
from tests.fuzz.oracle import in_batch, key_of

__all__ = ["Input", "Pool", "message_of", "mutated", "requests_in"]

MARK: Final = 987_654_321_987
"""The id of a message in the pool that is given another each time."""

IDS: Final[list[Any]] = [0, 1, 2, 3, "", "1", "é", -1, 2**70, None, 1.5, True, [], {}]
TOOLS: Final = ["x", "plain", "slow", "stuck", "raise", "exit", "error", "wrong", "ask", "roots", "\ud800", ""]
VALUES: Final[list[Any]] = [None, True, 0, -1, 2**70, 0.5, "", "é\u2028", "\ud800", [], {}, [[]], {"a": {"b": None}}]
CAPABILITIES: Final[list[dict[str, Any]]] = [{}, {"roots": {}}]
METHODS: Final = [
    "tools/call",
    "tools/list",
    "ping",
    "initialize",
    "server/discover",
    "resources/read",
    "resources/subscribe",
    "logging/setLevel",
    "subscriptions/listen",
    "notifications/cancelled",
    "notifications/initialized",
    "notifications/progress",
    "bogus",
    "",
]
TOKENS: Final = [b"{", b"[", b"]", b"}", b'"', b",", b":", b"null", b"1e999", b"\\ud800", b"\\", b"\xef\xbb\xbf", b"\0"]


class Input(NamedTuple):
    """Bytes to send, the ids that they may be answered under, and whether the one must be."""

    data: bytes
    may: tuple[str, ...]
    must: bool = False
    stalls: bool = False
    """Whether the answer comes only when somebody ends it."""


def params_of(rng: random.Random, method: str) -> Any:
    """Params that mostly fit."""
    if rng.random() < 0.05:
        return rng.choice(VALUES)
    fitting: dict[str, dict[str, Any]] = {
        "tools/call": {"name": rng.choice(TOOLS), "arguments": {"a": rng.choice(VALUES)}},
        "tools/list": {"cursor": rng.choice([None, "", "c"])},
        "initialize": {
            "protocolVersion": rng.choice(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "x"]),
            "capabilities": rng.choice(CAPABILITIES),
            "clientInfo": {"name": "f", "version": "1"},
        },
        "resources/read": {"uri": "u://x"},
        "resources/subscribe": {"uri": "u://x"},
        "logging/setLevel": {"level": rng.choice(["debug", "error", "loud"])},
        "subscriptions/listen": {"notifications": {"toolsListChanged": True}},
        "notifications/cancelled": {"requestId": rng.choice(IDS)},
        "notifications/progress": {"progressToken": 1, "progress": rng.choice(VALUES)},
    }
    params = fitting.get(method, {})
    if rng.random() < 0.5:
        meta = modern_meta(rng.choice(CAPABILITIES))
        meta["progressToken"] = rng.choice([None, 0, "t", 1.5])
        meta["io.modelcontextprotocol/logLevel"] = rng.choice([None, "debug", "loud"])
        if rng.random() < 0.2:
            meta[rng.choice(list(meta))] = rng.choice(VALUES)
        params = {**params, "_meta": meta}
    if params and rng.random() < 0.1:
        params = {**params, rng.choice(list(params)): rng.choice(VALUES)}
    return params


def message_of(rng: random.Random) -> dict[str, Any]:
    """A message of any kind, mostly legal."""
    kind = rng.random()
    method = rng.choice(METHODS)
    if kind < 0.7 and not method.startswith("notifications/"):
        # Ids that are used again meet those in flight; an answer given twice shows on the others.
        request_id = MARK if rng.random() < 0.7 else rng.choice(IDS)
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params_of(rng, method)}
    elif kind < 0.9:
        message = {"jsonrpc": "2.0", "method": method, "params": params_of(rng, method)}
    elif kind < 0.95:
        message = {"jsonrpc": "2.0", "id": rng.choice(IDS), "result": rng.choice(VALUES)}
    else:
        error = rng.choice([{"code": 1, "message": "m"}, *VALUES])
        message = {"jsonrpc": "2.0", "id": rng.choice(IDS), "error": error}
    if rng.random() < 0.05:
        message.pop(rng.choice(list(message)))
    if rng.random() < 0.05:
        message[rng.choice([*message, "x"])] = rng.choice(VALUES)
    return message


def mutated(rng: random.Random, data: bytes) -> bytes:
    """The same with a few bytes cut out, put in, or changed."""
    for _ in range(rng.randint(1, 3)):
        at = int(rng.random() * (len(data) + 1))
        how = rng.random()
        if how < 0.3:
            data = data[:at] + data[at + rng.randint(1, 5) :]
        elif how < 0.6:
            data = data[:at] + rng.randbytes(rng.randint(1, 3)) + data[at:]
        elif how < 0.8:
            data = data[:at] + rng.choice(TOKENS) + data[at:]
        elif how < 0.83:
            data = data[:at] + b"[" * rng.choice([10, 3000]) + data[at:]
        elif how < 0.9:
            data = data[:at] + data[rng.randrange(len(data) + 1) :][:50] + data[at:]
        else:
            data = data[:at]
    return data.replace(b"\n", b" ")  # one line, or it would be two messages


# Looked at ahead, so that they may overlap: where quotes are missing, what one takes for a value another begins with.
_IDS: Final = re.compile(r'(?="id"\s*:\s*(-?[0-9]+|"(?:[^"\\]|\\.)*"))', re.S)


def requests_in(data: bytes) -> tuple[str, ...]:
    """The keys of the ids that this message may be answered under, as often as each.

    A text that is no JSON may be answered under any id that stands in it.
    """
    # An element of a batch that is no UTF-8 is refused by itself.
    text = data.decode(errors="replace")
    try:
        elements = in_batch(json.loads(text))
    except (ValueError, RecursionError):
        return tuple({key for found in _IDS.finditer(text) for key in _key_in(found[1])})
    found = [key_of(_read(element["id"])) for element in elements if isinstance(element, dict) and "id" in element]
    if len(found) != len(elements) or text.count('"id"') > len(found):
        # The one that is read of several, or what stands in an element that is not read whole.
        found += {key for match in _IDS.finditer(text) for key in _key_in(match[1])} - set(found)
    return tuple(found)


def _key_in(text: str) -> list[str]:
    try:
        return [key_of(_read(json.loads(text, strict=False)))]
    except ValueError:
        return []


def _read(request_id: Any) -> Any:
    """The id as it is read: lone surrogates become U+FFFD."""
    if not isinstance(request_id, str):
        return request_id
    return request_id.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Kept(NamedTuple):
    """A message of the pool, in two parts where an id goes between them."""

    before: bytes
    after: bytes | None
    may: tuple[str, ...]
    must: bool
    stalls: bool


def _kept(message: dict[str, Any]) -> _Kept:
    data = json.dumps(message).encode()
    params: Any = message.get("params")
    name: Any = cast("dict[str, Any]", params).get("name") if isinstance(params, dict) else None
    method: Any = message.get("method")
    stalls = (method == "tools/call" and name == "stuck") or method == "subscriptions/listen"
    before, mark, after = data.partition(b"%d" % MARK)
    if not mark or message.get("id") != MARK:
        return _Kept(data, None, requests_in(data), False, stalls)
    must = message.get("jsonrpc") == "2.0" and isinstance(method, str) and not stalls
    return _Kept(before, after, (), must, stalls)


class Pool:
    """Hands out inputs; the same ones for the same seed."""

    def __init__(self, seed: int = 0, size: int = 3000, mutations: float = 0.3) -> None:
        rng = random.Random(seed)
        self._mutations = mutations
        self._kept = [_kept(message_of(rng)) for _ in range(size)]
        self._broken = [data for kept in self._kept for data in [mutated(rng, kept.before + (kept.after or b""))]]
        self._broken_may = [requests_in(data) for data in self._broken]
        shapes: list[Shape] = [*SHAPES.values(), *BATCHES.values()]
        odd: list[bytes] = [shape(rng.choice([300, 2000, 10_000])) for shape in shapes for _ in range(2)]
        self._odd = [data.replace(b"\n", b" ") for data in odd]
        self._odd_may = [requests_in(data) for data in self._odd]
        self._next = 1_000_000

    def take(self, rng: random.Random) -> Input:
        """The next input."""
        kind = rng.random()
        if kind < 0.004:
            at = int(rng.random() * len(self._odd))
            return Input(self._odd[at], self._odd_may[at])
        if kind < 0.15:
            at = int(rng.random() * len(self._broken))
            return Input(self._broken[at], self._broken_may[at])
        if kind < 0.17:
            return self._batch(rng)
        kept = self._kept[int(rng.random() * len(self._kept))]
        if kept.after is None:
            whole = Input(kept.before, kept.may, stalls=kept.stalls)
        else:
            self._next += 1
            whole = Input(b"%b%d%b" % (kept.before, self._next, kept.after), (str(self._next),), kept.must, kept.stalls)
        if rng.random() < self._mutations:
            data = mutated(rng, whole.data)
            return Input(data, requests_in(data), stalls=whole.stalls)
        return whole

    def _batch(self, rng: random.Random) -> Input:
        members = [self._kept[int(rng.random() * len(self._kept))] for _ in range(rng.randint(0, 4))]
        parts: list[bytes] = []
        may: list[str] = []
        for kept in members:
            self._next += 1
            parts.append(kept.before if kept.after is None else b"%b%d%b" % (kept.before, self._next, kept.after))
            may.extend(kept.may if kept.after is None else (str(self._next),))
        data = b"[%b]" % b",".join(parts)
        if rng.random() < self._mutations:
            data = mutated(rng, data)
            return Input(data, requests_in(data), stalls=True)
        return Input(data, tuple(may), stalls=any(kept.stalls for kept in members))

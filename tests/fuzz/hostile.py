"""What a hostile server says: answers of every kind, legal, broken, of another shape, and much besides them.

Knows messages; nothing of how they travel. A reply is a list of bytes to be sent one after
the other, each one message, or what pretends to be one.
"""

from __future__ import annotations

import json
import random
from typing import Any, Final, cast

from tests.fuzz.corpus import TEXTS
from tests.fuzz.generator import VALUES, mutated

__all__ = ["honest", "replies"]

STAMP: Final = {"io.modelcontextprotocol/serverInfo": {"name": "hostile", "version": "1"}}
RESULTS: Final[dict[str, dict[str, Any]]] = {
    "server/discover": {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": True}, "resources": {}, "prompts": {}, "logging": {}},
    },
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "resources": {"subscribe": True}, "prompts": {}, "logging": {}},
        "serverInfo": {"name": "hostile", "version": "1"},
    },
    "tools/list": {
        "tools": [
            {
                "name": "x",
                "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}},
                "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
            }
        ]
    },
    "tools/call": {"content": [{"type": "text", "text": "x"}], "structuredContent": {"n": 1}},
    "resources/list": {"resources": [{"uri": "u://x", "name": "x"}]},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": [{"uri": "u://x", "text": "x"}]},
    "prompts/list": {"prompts": [{"name": "p"}]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}]},
    "completion/complete": {"completion": {"values": ["a"]}},
}
CODES: Final = [-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022, -32042, 1, 0, 2**70]
DATA: Final[list[Any]] = [
    *VALUES,
    {"supported": None},
    {"supported": 5},
    {"supported": [None, "2025-11-25", 1]},
    {"supported": ["2026-07-28"], "requested": []},
    {"supported": "2025-11-25"},
    {"elicitations": 5},
    {"requiredCapabilities": None},
]
TTLS: Final[list[Any]] = [*VALUES, 10, 1e300, "5"]
METAS: Final[list[Any]] = [None, [1], "x", 5, {}, {"progressToken": []}, {"io.modelcontextprotocol/subscriptionId": {}}]
NOTICES: Final = [
    "notifications/progress",
    "notifications/message",
    "notifications/cancelled",
    "notifications/tools/list_changed",
    "notifications/resources/updated",
    "notifications/subscriptions/acknowledged",
    "notifications/elicitation/complete",
    "bogus",
    "",
]
ASKED: Final = ["ping", "roots/list", "sampling/createMessage", "elicitation/create", "tools/call", "initialize", ""]


def honest(request: dict[str, Any]) -> bytes:
    """The legal answer to a request."""
    result = {**RESULTS.get(request["method"], {}), "resultType": "complete", "_meta": STAMP}
    return dumped({"jsonrpc": "2.0", "id": request["id"], "result": result})


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def replies(rng: random.Random, request: dict[str, Any]) -> list[bytes]:
    """What is said to a request; nothing where the list is empty."""
    said = [_besides(rng, request) for _ in range(rng.choice([0, 0, 0, 1, 1, 3]))]
    said += _answers(rng, request)
    said += [_besides(rng, request) for _ in range(rng.choice([0, 0, 1]))]
    return [data.replace(b"\n", b" ") for data in said]


def _answers(rng: random.Random, request: dict[str, Any]) -> list[bytes]:
    right = honest(request)
    kind = rng.random()
    if kind < 0.3:
        return [right]
    if kind < 0.45:
        return [mutated(rng, right)]
    if kind < 0.6:
        return [dumped({"jsonrpc": "2.0", "id": request["id"], "result": _spoilt(rng, request["method"])})]
    if kind < 0.75:
        error: Any = {
            "code": rng.choice(CODES),
            "message": rng.choice(["no", "\x1b[31m\n", *VALUES]),
            "data": rng.choice(DATA),
        }
        if rng.random() < 0.2:
            error = rng.choice(VALUES)
        return [dumped({"jsonrpc": "2.0", "id": request["id"], "error": error})]
    if kind < 0.8:
        return [dumped({"jsonrpc": "2.0", "id": rng.choice(VALUES), "result": {}}), right]
    if kind < 0.85:
        return [right, right, mutated(rng, right)]
    if kind < 0.88:
        return [b"[%b]" % b",".join([right, b"1", mutated(rng, right)])]
    if kind < 0.92:
        text = rng.choice(list(TEXTS.values()))(rng.choice([300, 20_000]))
        return [b'{"jsonrpc":"2.0","id":%b,"result":{"content":%b}}' % (dumped(request["id"]), text)]
    if kind < 0.97:
        asks: Any = {
            "resultType": "input_required",
            "requestState": rng.choice(VALUES),
            "inputRequests": rng.choice(ASKS),
        }
        return [dumped({"jsonrpc": "2.0", "id": request["id"], "result": asks})]
    return []


ASKS: Final[list[Any]] = [
    *VALUES,
    {"a": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object"}}}},
    {"a": {"method": "roots/list"}},
    {"a": {"method": "bogus"}, "b": 5},
    {"a": {"method": "sampling/createMessage", "params": {"messages": 5}}},
]


def _spoilt(rng: random.Random, method: str) -> Any:
    """A result with a member of another shape somewhere."""
    if rng.random() < 0.2:
        return rng.choice(VALUES)
    made = {**RESULTS.get(method, {}), "resultType": "complete", "_meta": STAMP, "ttlMs": rng.choice(TTLS)}
    if rng.random() < 0.3:
        made["nextCursor"] = rng.choice(VALUES)
    result: Any = json.loads(json.dumps(made))  # a copy, to be changed anywhere
    place: Any = result
    keys: list[Any] = [*result]
    for _ in range(rng.randint(0, 3)):
        inner = cast("list[Any]", [*cast("dict[str, Any]", place).values()] if isinstance(place, dict) else place)
        deeper: list[Any] = [value for value in inner if isinstance(value, dict | list) and value]
        if not deeper:
            break
        place = rng.choice(deeper)
        keys = [*cast("dict[str, Any]", place)] if isinstance(place, dict) else [*range(len(place))]
    if keys:
        place[rng.choice(keys)] = rng.choice(VALUES)
    return result


def _besides(rng: random.Random, request: dict[str, Any]) -> bytes:
    """A message that answers nothing."""
    token: Any = rng.choice([request["id"], *VALUES])
    params: Any = {
        "progressToken": token,
        "progress": rng.choice(VALUES),
        "level": rng.choice(["error", "loud", 5]),
        "data": rng.choice(VALUES),
        "requestId": token,
        "uri": rng.choice(VALUES),
        "_meta": rng.choice(METAS),
    }
    if rng.random() < 0.2:
        params = rng.choice(VALUES)
    kind = rng.random()
    if kind < 0.6:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": rng.choice(NOTICES), "params": params}
    elif kind < 0.9:
        message = {"jsonrpc": "2.0", "id": rng.choice(VALUES), "method": rng.choice(ASKED), "params": params}
    else:
        message = {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "x"}}
    data = dumped(message)
    return mutated(rng, data) if rng.random() < 0.3 else data

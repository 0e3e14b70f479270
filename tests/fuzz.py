"""Throw broken and hostile messages at a server: `python -m tests.fuzz --seconds 60`.

The invariant: no input stops the server. Every message it sends is valid JSON-RPC, on
one line; no id is answered more often than it was sent; nothing is raised where nobody
handles it; after each round a valid request is still answered.

Rounds alternate between a connection (both eras, batches included, messages with and
without mutations, whole and as a cut byte stream) and `Server.handle`. A violation is
printed with its seed and bytes, and the exit code is 1. `--seed` repeats a run.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, cast

import anyio

from mcp_core import MCPDeprecationWarning, MCPError, RequestContext, Server, codec
from mcp_core import types as t
from mcp_core.testing import RawPeer, modern_meta
from mcp_core.transports.lines import LineSplitter

__all__ = ["Violation", "fuzz", "main"]

ROUND: Final = 40
"""Messages per round."""


class Violation(Exception):
    """The invariant does not hold."""


# --- the server -------------------------------------------------------------------------


async def call_tool(ctx: RequestContext, params: t.CallToolRequestParams) -> Any:
    """Tools that do one of everything."""
    if params.name == "slow":
        await anyio.sleep(0.001)
    elif params.name == "stuck":
        await anyio.sleep_forever()
    elif params.name == "raise":
        raise ValueError("no")
    elif params.name == "exit":
        raise SystemExit(3)
    elif params.name == "error":
        raise MCPError(1, "one", params.arguments)
    elif params.name == "wrong":
        return ["no result"]
    elif params.name == "ask":
        return t.InputRequiredResult(request_state="s")
    elif params.name == "roots":
        await ctx.list_roots(timeout=0.01)
    await ctx.report_progress(1, 2, "half")
    await ctx.log("error", params.arguments)
    return t.CallToolResult(content=[t.TextContent(text=params.name)], structured_content=params.arguments or {})


def list_tools(ctx: RequestContext, params: t.PaginatedRequestParams) -> t.ListToolsResult:
    return t.ListToolsResult(tools=[t.Tool(name="x", input_schema={"type": "object"})], next_cursor=params.cursor)


def read_resource(ctx: RequestContext, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
    return t.ReadResourceResult(contents=[t.TextResourceContents(uri=params.uri, text=params.uri)])


def set_level(ctx: RequestContext, params: t.SetLevelRequestParams) -> t.EmptyResult:
    return t.EmptyResult()


def make_server() -> Server:
    """A server with a handler for most of it."""
    return Server(
        "fuzzed",
        subscriptions=True,
        on_call_tool=call_tool,
        on_list_tools=list_tools,
        on_read_resource=read_resource,
        on_set_logging_level=set_level,
    )


# --- the messages -------------------------------------------------------------------------

IDS: Final[list[Any]] = [0, 1, 2, 3, "", "1", "é", -1, 2**70, None, 1.5, True, [], {}]
TOOLS: Final = ["x", "slow", "stuck", "raise", "exit", "error", "wrong", "ask", "roots", "\ud800", ""]
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
        request_id = rng.randrange(10**9) if rng.random() < 0.6 else rng.choice(IDS)
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
        at = rng.randrange(len(data) + 1)
        how = rng.random()
        if how < 0.3:
            data = data[:at] + data[at + rng.randint(1, 5) :]
        elif how < 0.6:
            data = data[:at] + rng.randbytes(rng.randint(1, 3)) + data[at:]
        elif how < 0.8:
            token = rng.choice(
                [b"{", b"[", b"]", b"}", b'"', b",", b":", b"null", b"1e999", b"\\ud800", b"\xef\xbb\xbf"]
            )
            data = data[:at] + token + data[at:]
        elif how < 0.9:
            data = data[:at] + b"[" * rng.choice([10, 3000]) + data[at:]
        else:
            data = data[:at]
    return data


def bytes_of(rng: random.Random) -> bytes:
    """One message, or a batch, or what is left of one."""
    if rng.random() < 0.1:
        value: Any = [message_of(rng) for _ in range(rng.randint(0, 4))]
    else:
        value = message_of(rng)
    data = json.dumps(value).encode()
    return mutated(rng, data) if rng.random() < 0.4 else data


# --- the invariant ---------------------------------------------------------------------------


def check_message(data: bytes) -> list[Any]:
    """The messages in what the server sent: one, or those of a batch."""
    if b"\n" in data or b"\r" in data:
        raise Violation(f"a line break in {data!r}")
    try:
        value: Any = json.loads(data.decode())
    except ValueError as exc:
        raise Violation(f"no JSON ({exc}): {data!r}") from None
    if isinstance(value, list) and not value:
        raise Violation("an empty batch was sent")
    sent = in_batch(value)
    for message in sent:
        check_one(message)
    return sent


def in_batch(value: Any) -> list[Any]:
    """The elements of a batch; else the value alone."""
    elements = cast("list[Any]", value) if isinstance(value, list) else [value]
    return elements


def check_one(value: Any) -> None:
    """Whether this is a valid message of a server."""
    if not isinstance(value, dict):
        raise Violation(f"no JSON-RPC message: {value!r}")
    message = cast("dict[str, Any]", value)
    if message.get("jsonrpc") != "2.0":
        raise Violation(f"no JSON-RPC message: {message!r}")
    if "id" in message and type(message["id"]) not in (int, str):
        raise Violation(f"an illegal id: {message!r}")
    if "method" in message:
        fine = isinstance(message["method"], str) and isinstance(message.get("params", {}), dict)
        fine = fine and not {"result", "error"} & set(message)
    elif "error" in message:
        error = message["error"]
        fine = "result" not in message and type(error["code"]) is int and isinstance(error["message"], str)
    else:
        fine = isinstance(message.get("result"), dict) and "id" in message
    if not fine:
        raise Violation(f"an invalid message: {message!r}")


def requests_in(data: bytes) -> list[Any]:
    """The ids that this message may be answered under, once each."""
    recovered = codec.recover_id(data)
    ids = [] if recovered is None else [recovered]
    try:
        # An element of a batch that is no UTF-8 is refused by itself.
        elements = in_batch(json.loads(data.decode(errors="replace")))
    except (ValueError, RecursionError):
        return ids
    found = [replaced(element["id"]) for element in elements if isinstance(element, dict) and "id" in element]
    return found + [i for i in ids if key_of(i) not in map(key_of, found)]


def replaced(request_id: Any) -> Any:
    """The id as it is read: lone surrogates become U+FFFD."""
    if not isinstance(request_id, str):
        return request_id
    return request_id.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_answer(message: Any) -> bool:
    return bool("method" not in message)


def key_of(request_id: Any) -> str:
    """An id as a key: 1, True, 1.0 and "1" are four."""
    return json.dumps(request_id)


async def connection_round(rng: random.Random, server: Server, sent: list[bytes]) -> int:
    """Send a round to one connection; how many messages came back."""
    async with RawPeer.of(server) as peer:
        if rng.random() < 0.6:
            await peer.initialize(rng.choice(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]), {"roots": {}})
        read = len(peer.messages)
        stream = b"".join(bytes_of(rng).replace(b"\n", b" ") + b"\n" for _ in range(ROUND))
        splitter = LineSplitter()
        may_answer: Counter[str] = Counter()
        while stream:
            size = rng.choice([1, 7, 100, 5000, len(stream)])
            lines, _ = splitter.feed(stream[:size])
            stream = stream[size:]
            for line in lines:
                sent.append(line)
                may_answer.update(key_of(i) for i in requests_in(line))
                peer.send(line)
            if rng.random() < 0.1:
                await anyio.lowlevel.checkpoint()
        alive: dict[str, Any] = {"jsonrpc": "2.0", "id": "alive", "method": "server/discover"}
        peer.send({**alive, "params": {"_meta": modern_meta()}})
        try:
            await peer.until(lambda inbox: any(b'"alive"' in m for m in inbox.messages))
        except TimeoutError:
            raise Violation("the server does not answer any more") from None
        # What waits a moment is over by now, or never will be.
        await anyio.sleep(0.003)
        heard = [message for data in peer.messages[read:] for message in check_message(data)]
    answered = Counter(key_of(m["id"]) for m in heard if is_answer(m) and "id" in m)
    for key, count in answered.items():
        if key != '"alive"' and count > may_answer[key]:
            raise Violation(f"{count} answers to {may_answer[key]} requests with the id {key}")
    if answered['"alive"'] != 1:
        raise Violation("the valid request was not answered exactly once")
    return len(heard)


async def handle_round(rng: random.Random, server: Server, sent: list[bytes]) -> int:
    """Hand a round to `handle`; how many messages came back."""
    told: list[bytes] = []
    for _ in range(ROUND):
        data = bytes_of(rng)
        sent.append(data)
        answer: bytes | None = None
        with anyio.move_on_after(0.02):
            answer = await server.handle(data, notify=told.append if rng.random() < 0.5 else None)
        if answer is None:
            continue
        told.append(answer)
        messages = check_message(answer)
        if len(messages) != 1 or not is_answer(messages[0]):
            raise Violation(f"no answer: {answer!r}")
        ids = requests_in(data)
        if "id" in messages[0] and key_of(messages[0]["id"]) not in map(key_of, ids):
            raise Violation(f"an answer under another id: {answer!r}")
    request = {"jsonrpc": "2.0", "id": "alive", "method": "server/discover", "params": {"_meta": modern_meta()}}
    last = await server.handle(json.dumps(request).encode())
    if last is None or "result" not in check_message(last)[0]:
        raise Violation(f"the server does not answer any more: {last!r}")
    return sum(len(check_message(data)) for data in told)


# --- running -----------------------------------------------------------------------------------


class _Unhandled(logging.Handler):
    """Takes what the event loop reports as an error that nobody handled."""

    def __init__(self, found: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        self._found.append(self.format(record))


def watch(found: list[str]) -> None:
    """Collect the errors that Python and the event loop would only print."""
    logging.getLogger("asyncio").addHandler(_Unhandled(found))
    logging.getLogger("mcp_core").addHandler(logging.NullHandler())
    logging.getLogger("mcp_core").propagate = False
    warnings.simplefilter("error", RuntimeWarning)
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    sys.unraisablehook = lambda what: found.append(f"{what.exc_value!r} in {what.object!r}")


async def fuzz(seed: int, more: Callable[[int], bool], sent: list[bytes], unraised: list[str]) -> tuple[int, int]:
    """Rounds from this seed on while there are to be more: how many rounds, and messages back.

    `sent` holds the messages of the last round; `unraised` is where `watch` collects.
    Raises `Violation`.
    """
    rounds = heard = 0
    server = make_server()
    async with server.running():
        while more(rounds):
            rng = random.Random(seed + rounds)
            sent.clear()
            play = handle_round if (seed + rounds) % 4 == 3 else connection_round
            heard += await play(rng, server, sent)
            if unraised:
                raise Violation(f"an error that nobody handled: {unraised}")
            rounds += 1
    return rounds, heard


def main() -> int:
    """Run from the command line; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--loop", choices=["asyncio", "trio"], default="asyncio")
    given = parser.parse_args()
    out = sys.stdout
    end = time.monotonic() + given.seconds
    sent: list[bytes] = []
    unraised: list[str] = []
    watch(unraised)
    last = 0

    def more(rounds: int) -> bool:
        nonlocal last
        last = rounds
        return bool(time.monotonic() < end)

    try:
        rounds, heard = anyio.run(fuzz, given.seed, more, sent, unraised, backend=given.loop)
    except BaseException as exc:
        if isinstance(exc, KeyboardInterrupt):
            raise
        out.write(f"VIOLATION in round {last}: {type(exc).__name__}: {exc}\n")
        out.write(f"repeat it with --seed {given.seed + last} (round {last} of seed {given.seed})\n")
        for data in sent:
            out.write(f"  {data!r}\n")
        return 1
    out.write(
        f"{rounds} rounds of {ROUND} messages from seed {given.seed} on {given.loop}; {heard} messages came back\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A server of nothing but JSON lines, which misbehaves in the way that its argument names.

Needs neither library, so that it starts at once. Run as
`python -m tests.interop.script_server BEHAVIOUR`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any, Final

MODERN: Final = "2026-07-28"

received: list[dict[str, Any]] = []
held: list[dict[str, Any]] = []
asking: list[dict[str, Any]] = []


def send(message: dict[str, Any]) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(request: dict[str, Any], text: str, **more: Any) -> None:
    """Answer a call with a text."""
    result = {"resultType": "complete", "content": [{"type": "text", "text": text}], **more}
    send({"id": request["id"], "result": result})


def refuse(request: dict[str, Any], code: int, message: str, data: Any = None) -> None:
    """Answer with an error."""
    send({"id": request["id"], "error": {"code": code, "message": message, "data": data}})


def discover(request: dict[str, Any], behaviour: str) -> None:
    """Answer the probe, or whatever the behaviour does in place of that."""
    probes = sum(message.get("method") == "server/discover" for message in received)
    if behaviour == "mute":
        return
    if behaviour == "unknown-method":
        refuse(request, -32601, "Method not found")
    elif behaviour == "odd-error":
        refuse(request, -32000, "Server not initialized")
    elif behaviour == "future":
        refuse(request, -32022, "Unsupported protocol version", {"supported": ["2030-01-01"], "requested": MODERN})
    elif behaviour == "corrects" and probes == 1:
        refuse(request, -32022, "Unsupported protocol version", {"supported": [MODERN], "requested": MODERN})
    elif behaviour == "handshake-only":
        refuse(request, -32022, "Unsupported protocol version", {"supported": ["2025-06-18"], "requested": MODERN})
    else:
        send(
            {
                "id": request["id"],
                "result": {
                    "resultType": "complete",
                    "supportedVersions": [MODERN],
                    "capabilities": {"tools": {}},
                    "ttlMs": 0,
                    "cacheScope": "private",
                },
            }
        )


def initialize(request: dict[str, Any], behaviour: str) -> None:
    """Shake hands."""
    revision = "1999-01-01" if behaviour == "ancient" else request["params"]["protocolVersion"]
    if behaviour == "handshake-only":
        revision = "2025-06-18"
    send(
        {
            "id": request["id"],
            "result": {
                "protocolVersion": revision,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "script", "version": "1"},
            },
        }
    )


def call(request: dict[str, Any]) -> None:
    """Call a tool."""
    name = request["params"]["name"]
    if name == "pid":
        answer(request, str(os.getpid()))
    elif name == "die":
        os._exit(3)
    elif name == "hold":
        held.append(request)
    elif name == "release":
        # The last first, so that no answer comes in the order of the calls.
        for waiting in reversed(held):
            answer(waiting, f"held {waiting['params']['arguments']['number']}")
        answer(request, f"released {len(held)}")
        held.clear()
    elif name == "received":
        answer(request, "", structuredContent={"messages": received})
    elif name == "meta":
        answer(request, "", _meta={"a/null": None, "a/list": [None, {"b": None}]})
    elif name in ("ask", "burst", "noise"):
        say_more(request, name)
    else:
        refuse(request, -32602, f"Unknown tool: {name}")


def say_more(request: dict[str, Any], name: str) -> None:
    """Send more than an answer."""
    if name == "ask":
        send({"id": "ask-1", "method": "ping"})
        send({"id": "ask-2", "method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}})
        if "_meta" in request["params"]:
            answer(request, "asked")  # a 2026-07-28 client may not answer
        else:
            asking.append(request)
    elif name == "burst":
        token = request["params"]["_meta"]["progressToken"]
        for number in range(1, 21):
            progress = {"progressToken": token, "progress": number}
            message = {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}
            sys.stdout.write(json.dumps(message) + "\n")
            entry = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": number}}
            sys.stdout.write(json.dumps(entry) + "\n")
        answer(request, "all at once")  # which is when they are written
    else:
        sys.stdout.write("Starting up ...\n\n{not json}\n[]\n")
        send({"id": 987654321, "result": {}})
        send({"method": "notifications/unheard", "params": {"a": 1}})
        answer(request, "after the noise")


def serve(behaviour: str) -> None:
    """Read until the end of the input."""
    for line in sys.stdin:
        message = json.loads(line)
        received.append(message)
        method = message.get("method")
        if method is None:
            if asking and sum(m.get("id") in ("ask-1", "ask-2") for m in received) == 2:
                answer(asking.pop(), "asked")
        elif "id" not in message:
            continue
        elif method == "server/discover":
            discover(message, behaviour)
        elif method == "initialize":
            initialize(message, behaviour)
        elif method == "tools/call":
            call(message)
        else:
            refuse(message, -32601, "Method not found")


def main(behaviour: str, journal: str | None = None) -> None:
    """Serve, then end as the behaviour has it; `journal` is a file that tells how it ended."""

    def note(text: str) -> None:
        if journal is not None:
            with open(journal, "a", encoding="utf-8") as file:
                file.write(text + "\n")

    def terminated(number: int, frame: object) -> None:
        note("terminated")
        if behaviour != "immortal":
            os._exit(0)

    signal.signal(signal.SIGTERM, terminated)
    serve(behaviour)
    note("input ended")
    while behaviour in ("deaf", "immortal"):
        time.sleep(60)
    note("exited")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Floor: a bare ASGI app that decodes a call, does what it asks for and encodes the answer; no protocol work."""

from __future__ import annotations

from typing import Any

import msgspec

from bench.servers.tools import by_hand, listed_find

MORE: list[dict[str, Any]] = []


class Params(msgspec.Struct):
    name: str = ""
    arguments: dict[str, Any] = {}


class Message(msgspec.Struct):
    id: int
    method: str
    params: Params


decode = msgspec.json.Decoder(Message).decode
encode = msgspec.json.Encoder().encode


def result_of(message: Message) -> dict[str, Any]:
    """What the call asks for."""
    if message.method == "tools/list":
        return {"tools": MORE}
    name, arguments = message.params.name, message.params.arguments
    if name.startswith("echo"):
        return {"content": [{"type": "text", "text": arguments["text"]}]}
    texts, structured = by_hand(name, arguments)
    content = [{"type": "text", "text": text} for text in texts]
    return {"content": content} if structured is None else {"content": content, "structuredContent": structured}


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """One request."""
    if scope["type"] != "http":
        raise NotImplementedError
    body = b""
    while True:
        event = await receive()
        body += event["body"]
        if not event["more_body"]:
            break
    message = decode(body)
    answer = encode({"jsonrpc": "2.0", "id": message.id, "result": result_of(message)})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


def list_more(count: int) -> None:
    """Have this many tools to list."""
    MORE.extend(listed_find(number) for number in range(count))

"""Floor: a blocking msgspec loop that does no protocol work."""

import os
from typing import Any

import msgspec


class Message(msgspec.Struct):
    id: int
    params: dict[str, Any]


def main() -> None:
    decode = msgspec.json.Decoder(Message).decode
    encode = msgspec.json.Encoder().encode
    rest = b""
    while chunk := os.read(0, 262144):
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        out: list[bytes] = []
        for line in lines:
            message = decode(line)
            content = [{"type": "text", "text": message.params["arguments"]["text"]}]
            out.append(encode({"jsonrpc": "2.0", "id": message.id, "result": {"content": content}}))
        os.write(1, b"\n".join(out) + b"\n")


main()

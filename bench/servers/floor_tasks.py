"""Floor: asyncio pipes and a task per request, no protocol work. Argument: `uvloop`."""

import asyncio
import sys
from typing import Any

import msgspec


class Message(msgspec.Struct):
    id: int
    params: dict[str, Any]


decode = msgspec.json.Decoder(Message).decode
encode = msgspec.json.Encoder().encode


async def serve(line: bytes, write: Any) -> None:
    message = decode(line)
    content = [{"type": "text", "text": message.params["arguments"]["text"]}]
    write(encode({"jsonrpc": "2.0", "id": message.id, "result": {"content": content}}) + b"\n")


async def main() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout)
    tasks: set[asyncio.Task[None]] = set()
    while line := await reader.readline():
        task = loop.create_task(serve(line, transport.write))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


def new_loop() -> asyncio.AbstractEventLoop:
    if "uvloop" in sys.argv:
        import uvloop

        return uvloop.new_event_loop()
    return asyncio.new_event_loop()


with asyncio.Runner(loop_factory=new_loop) as runner:
    runner.run(main())

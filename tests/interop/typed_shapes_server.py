"""A typed server of this library with a tool for each type shape, for clients that check what they get."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from mcp_typed import MCPServer
from tests.property.type_shapes import SHAPES, Shape

mcp = MCPServer("typed-shapes", version="1.0.0", mask_errors=False)


def giver(shape: Shape) -> Callable[[], Any]:
    """A function that returns the shape's example."""
    value = shape.example[0]

    async def give() -> Any:
        return value

    def give_each() -> Iterator[Any]:
        yield from value

    async def give_each_later() -> AsyncIterator[Any]:
        for item in value:
            yield item

    function = {None: give, "iterator": give_each, "async iterator": give_each_later}[shape.stream]
    function.__annotations__ = {"return": shape.annotation}
    return function


for each in SHAPES:
    mcp.add_tool(giver(each), name=each.name)


if __name__ == "__main__":
    mcp.run()

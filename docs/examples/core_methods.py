"""Methods that MCP does not define."""

import msgspec

from mcp_core import Client, RequestContext, Server
from mcp_core.errors import InvalidParams
from mcp_core.types import Result


class Order(msgspec.Struct):
    isbn: str
    copies: int = 1


class Ordered(Result, kw_only=True):
    number: int


class Seen(msgspec.Struct):
    number: int


def place(ctx: RequestContext, order: Order) -> Ordered:
    if order.copies > 9:
        raise InvalidParams("nine copies at most", {"copies": order.copies})
    return Ordered(number=41)


def note(ctx: RequestContext, notification: Seen) -> None:
    seen.append(notification.number)


seen: list[int] = []
server = Server("Bookshop")
server.add_request_handler("bookshop/order", Order, place)
server.add_notification_handler("notifications/bookshop/seen", Seen, note)


async def order(copies: object) -> Ordered:
    async with Client(server) as client:
        answer: Ordered = await client.request("bookshop/order", {"isbn": "9780441", "copies": copies}, Ordered)
        await client.notify("notifications/bookshop/seen", {"number": answer.number})
        return answer

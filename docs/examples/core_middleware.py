"""Code around every message, and code that only watches."""

from collections.abc import Awaitable, Callable
from typing import Any

from bookshop import call_tool, list_tools

from mcp_core import RequestContext, Server
from mcp_core.types import CallToolResult

server = Server("Bookshop", on_list_tools=list_tools, on_call_tool=call_tool)


async def cap_limit(ctx: RequestContext[Any], call_next: Callable[[RequestContext[Any]], Awaitable[Any]]) -> Any:
    """Change what goes in and what comes out."""
    if ctx.method != "tools/call":
        return await call_next(ctx)
    params = ctx.params
    params["arguments"]["limit"] = min(params["arguments"]["limit"], 20)
    result = await call_next(ctx.replace(params=params))
    if isinstance(result, CallToolResult):
        result.structured_content["capped"] = True
    return result


class Watch:
    """Any of five methods, all optional and none awaited."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def request_started(self, ctx: RequestContext) -> None:
        self.seen.append(f"started {ctx.method}")

    def request_finished(self, ctx: RequestContext, answer: bytes) -> None:
        self.seen.append(f"finished {ctx.method}")


watch = Watch()
server.middleware.append(cap_limit)
server.observers.add(watch)

"""`MCPServer`: a registry of tools on a core server, and no protocol logic.

Plugs into the core's public hooks like any other user of the core.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

from mcp_core import RequestContext, Server
from mcp_core import types as t
from mcp_core.errors import InvalidParams
from mcp_core.subscriptions import ToolsListChanged
from mcp_core.threads import WorkerThreads
from mcp_typed.tools import FunctionTool

__all__ = ["MCPServer"]

P = ParamSpec("P")
R = TypeVar("R")


class MCPServer:
    """A server whose tools are functions.

    `server` is the core server beneath, with all that it can do: further handlers,
    middleware, observers. `lifespan` is a function of that server. `threads` is how many
    plain functions may run at a time. With `mask_errors=False` the model reads the text of
    any exception; by default it gets an id under which the log has it.
    """

    def __init__(  # noqa: PLR0913 - all but the name are keywords
        self,
        name: str = "mcp-typed",
        *,
        version: str = "",
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: list[t.Icon] | None = None,
        lifespan: Callable[[Server[Any]], Any] | None = None,
        threads: int = 40,
        mask_errors: bool = True,
    ) -> None:
        self._tools: dict[str, FunctionTool] = {}
        self._threads = WorkerThreads(threads)
        self._mask_errors = mask_errors
        self._list: t.Prepared[t.ListToolsResult] | None = None
        self.server: Server[Any] = Server(
            name,
            version=version,
            title=title,
            description=description,
            instructions=instructions,
            website_url=website_url,
            icons=icons,
            lifespan=lifespan,
            subscriptions=True,
            on_list_tools=self._on_list_tools,
        )
        self.server.add_request_handler("tools/call", t.RawCallToolParams, self._on_call_tool)
        self.server.add_request_handler("logging/setLevel", t.SetLevelRequestParams, _set_level)

    # --- registration -----------------------------------------------------------------------

    @overload
    def tool(self, function: Callable[P, R], /) -> Callable[P, R]: ...

    @overload
    def tool(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        annotations: t.ToolAnnotations | None = None,
        icons: list[t.Icon] | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    def tool(self, name: Any = None, **options: Any) -> Any:
        """Make a function a tool: `@mcp.tool`, `@mcp.tool()` or `@mcp.tool("name", ...)`.

        The function itself is returned unchanged.

        Raises:
            InvalidSignature: It cannot be one.
            ValueError: There is one of that name.
        """
        if callable(name):
            self.add_tool(name)
            return name

        def register(function: Callable[P, R]) -> Callable[P, R]:
            self.add_tool(function, name=name, **options)
            return function

        return register

    def add_tool(self, function: Callable[..., Any], *, name: str | None = None, **options: Any) -> None:
        """Make a function a tool; options and exceptions are those of `tool`."""
        tool = FunctionTool(function, self._threads, name=name, mask_errors=self._mask_errors, **options)
        if tool.name in self._tools:
            raise ValueError(f"there is a tool {tool.name!r} already")
        self._tools[tool.name] = tool
        self._list = None

    async def notify_tools_changed(self) -> None:
        """Tell all clients that asked that the list of tools has changed."""
        await self.server.publish(ToolsListChanged())

    # --- the core's hooks ---------------------------------------------------------------------

    def _on_list_tools(self, _ctx: RequestContext[Any], _params: Any) -> t.Prepared[t.ListToolsResult]:
        if self._list is None:
            self._list = t.Prepared(t.ListToolsResult(tools=[tool.listed for tool in self._tools.values()]))
        return self._list

    def _on_call_tool(self, ctx: RequestContext[Any], params: t.RawCallToolParams) -> Any:
        tool = self._tools.get(params.name)
        if tool is None:
            raise InvalidParams(f"Unknown tool: {params.name}")
        return tool.call(ctx, bytes(params.arguments))

    # --- serving -------------------------------------------------------------------------------

    def run(self, transport: Any = "stdio", **options: Any) -> None:
        """Serve until the input ends, or SIGINT or SIGTERM comes; options as `Server.run`."""
        self.server.run(transport, **options)

    async def run_stdio_async(self, **options: Any) -> None:
        """Serve stdin and stdout from inside an event loop; options as `Server.run`."""
        await self.server.run_stdio_async(**options)


def _set_level(ctx: RequestContext[Any], params: t.SetLevelRequestParams) -> t.EmptyResult:
    # The connection has taken note of the level; there is nothing else to do.
    return t.EmptyResult()

"""`MCPServer`: a registry of tools on a core server, and no protocol logic.

Plugs into the core's public hooks like any other user of the core.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload

from msgspec import Raw

from mcp_core import RequestContext, Server, codec
from mcp_core import types as t
from mcp_core.dispatch import Middleware
from mcp_core.errors import InvalidParams
from mcp_core.journal import Journal
from mcp_core.request_state import RequestStateSealer
from mcp_core.subscriptions import SubscriptionBus, ToolsListChanged
from mcp_core.threads import WorkerThreads
from mcp_typed.arguments import Unknown
from mcp_typed.context import Context
from mcp_typed.errors import ToolError
from mcp_typed.lint import Finding, findings
from mcp_typed.tools import FunctionTool, InvalidArgumentsHook, Policy, Run

if TYPE_CHECKING:
    from mcp_core.server import HTTPApp

__all__ = ["MCPServer"]

P = ParamSpec("P")
R = TypeVar("R")

_journal = Journal(__name__)


class MCPServer:
    """A server whose tools are functions.

    `server` is the core server beneath, with all that it can do: further handlers,
    middleware, observers.

    How tools are run, unless one says otherwise:

    - `run`: plain functions in worker `threads` (that many at a time), or `"inline"` on the
      event loop, where they must not block.
    - `timeout`: seconds a call may take. `max_concurrency`: how many calls of one tool may
      run at once; further ones wait.
    - `unknown_arguments`: whether arguments that a tool does not have are ignored or refused.
    - `mask_errors`: whether the model gets an error id (the log has it too) in place of the
      text of an exception that is no `ToolError`.
    - `on_invalid_arguments`: makes the text, or the whole result, for arguments that do not fit.
    - `inline_refs`: publish schemas without `$ref`, for clients that do not follow them.

    `on_duplicate` says what a second tool of the same name is: an error, the new one, or
    nothing. `request_state` seals what 2026-07-28 clients carry between the rounds of
    `Resolve`: several processes that serve the same clients need the same keys.
    """

    def __init__(  # noqa: PLR0913 - all but the name are keywords
        self,
        name: str = "mcp-server",
        *,
        version: str = "",
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: list[t.Icon] | None = None,
        lifespan: Callable[[Server[Any]], Any] | None = None,
        threads: int = 40,
        run: Run = "thread",
        timeout: float | None = None,
        max_concurrency: int | None = None,
        unknown_arguments: Unknown = "ignore",
        mask_errors: bool = True,
        on_invalid_arguments: InvalidArgumentsHook | None = None,
        inline_refs: bool = False,
        on_duplicate: Literal["error", "replace", "ignore"] = "error",
        request_state: RequestStateSealer | None = None,
        subscriptions: SubscriptionBus | None = None,
    ) -> None:
        if on_duplicate not in ("error", "replace", "ignore"):
            raise ValueError(f'on_duplicate must be "error", "replace" or "ignore"; got {on_duplicate!r}')
        self._tools: dict[str, FunctionTool] = {}
        self._on_duplicate = on_duplicate
        self._policy = Policy(
            threads=WorkerThreads(threads), sealer=request_state or RequestStateSealer(), inline_refs=inline_refs
        ).but(
            mask_errors=mask_errors,
            run=run,
            timeout=timeout,
            max_concurrency=max_concurrency,
            unknown_arguments=unknown_arguments,
            on_invalid_arguments=on_invalid_arguments,
        )
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
            subscriptions=True if subscriptions is None else subscriptions,
            on_list_tools=self._on_list_tools,
        )
        self.server.add_request_handler("tools/call", t.RawCallToolParams, self._on_call_tool)
        self.server.add_request_handler("logging/setLevel", t.SetLevelRequestParams, _set_level)

    @property
    def name(self) -> str:
        """The server's name."""
        return self.server.name

    @property
    def version(self) -> str:
        """The server's version."""
        return self.server.version

    @property
    def title(self) -> str | None:
        """The server's name for people."""
        return self.server.info.title

    @property
    def description(self) -> str | None:
        """What the server is for."""
        return self.server.info.description

    @property
    def website_url(self) -> str | None:
        """Where the server has a page."""
        return self.server.info.website_url

    @property
    def icons(self) -> list[t.Icon] | None:
        """The server's icons."""
        return self.server.info.icons

    @property
    def instructions(self) -> str | None:
        """How to use the server, for a model."""
        return self.server.instructions

    @property
    def middleware(self) -> list[Middleware]:
        """What is around every message, the first outermost; append to it before serving."""
        return self.server.middleware

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
        structured_output: bool | None = None,
        run: Run | None = None,
        timeout: float | None = None,
        max_concurrency: int | None = None,
        unknown_arguments: Unknown | None = None,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    def tool(self, name: Any = None, **options: Any) -> Any:
        """Make a function a tool: `@mcp.tool`, `@mcp.tool()` or `@mcp.tool("name", ...)`.

        The function itself is returned unchanged. With `structured_output=True` a return
        annotation without a schema is an error, with `False` it stays Python's own
        business. `run`, `timeout`, `max_concurrency` and `unknown_arguments` are as on the
        server, for this tool.

        Raises:
            InvalidSignature: It cannot be one.
            ValueError: There is one of that name, or it has no name.
        """
        if callable(name):
            self.add_tool(name)
            return name

        def register(function: Callable[P, R]) -> Callable[P, R]:
            self.add_tool(function, name=name, **options)
            return function

        return register

    def add_tool(
        self,
        function: Callable[..., Any],
        name: str | None = None,
        *,
        run: Run | None = None,
        timeout: float | None = None,
        max_concurrency: int | None = None,
        unknown_arguments: Unknown | None = None,
        **options: Any,
    ) -> None:
        """Make a function a tool; options and exceptions are those of `tool`.

        Clients that asked are told that the list has changed. May be called from any thread.
        """
        policy = self._policy.but(
            run=run, timeout=timeout, max_concurrency=max_concurrency, unknown_arguments=unknown_arguments
        )
        tool = FunctionTool(function, policy, name=name, **options)
        if tool.name in self._tools:
            if self._on_duplicate == "error":
                raise ValueError(f"there is a tool {tool.name!r} already")
            if self._on_duplicate == "ignore":
                _journal.warning("a second tool %r was ignored", tool.name)
                return
        self._tools[tool.name] = tool
        self._changed()

    def remove_tool(self, name: str) -> None:
        """Take a tool away. Calls that run go on; clients that asked are told.

        Raises:
            ToolError: There is none of that name.
        """
        if self._tools.pop(name, None) is None:
            raise ToolError(f"Unknown tool: {name}")
        self._changed()

    def _changed(self) -> None:
        self._list = None
        self.server.announce(ToolsListChanged())

    async def notify_tools_changed(self) -> None:
        """Tell all clients that asked that the list of tools has changed."""
        await self.server.publish(ToolsListChanged())

    def lint(self) -> list[Finding]:
        """What a reader of the tools' schemas would trip over; empty when nothing."""
        return [finding for tool in self._tools.values() for finding in findings(tool)]

    # --- use from Python ------------------------------------------------------------------------

    async def list_tools(self) -> list[t.Tool]:
        """The tools as clients see them, in the order of registration."""
        return [tool.listed for tool in self._tools.values()]

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any] | None = None
    ) -> t.CallToolResult:
        """Call a tool, for a test or from another tool (which then passes its context on).

        Raises:
            ToolError: It failed; the text is what the model would read.
            MCPError: There is no such tool, or it raised one.
        """
        result = await (self._call_alone(name, arguments) if context is None else self._call(name, arguments, context))
        if result.is_error:
            raise ToolError(next((block.text for block in result.content if isinstance(block, t.TextContent)), ""))
        return result

    async def _call(self, name: str, arguments: dict[str, Any] | None, context: Context[Any]) -> t.CallToolResult:
        raw = Raw(codec.encode(arguments or {}))
        result = self._on_call_tool(context.request_context, t.RawCallToolParams(name=name, arguments=raw))
        if inspect.isawaitable(result):
            result = await result
        if not isinstance(result, t.CallToolResult):
            raise ToolError(f"{name} asks the client for input, which a call from another tool cannot pass on")
        return result

    async def _call_alone(self, name: str, arguments: dict[str, Any] | None) -> t.CallToolResult:
        from mcp_core import Client

        async with Client(self.server) as client:
            return await client.call_tool(name, arguments)

    # --- the core's hooks ---------------------------------------------------------------------

    def _on_list_tools(self, _ctx: RequestContext[Any], _params: Any) -> t.Prepared[t.ListToolsResult]:
        if self._list is None:
            self._list = t.Prepared(t.ListToolsResult(tools=[tool.listed for tool in self._tools.values()]))
        return self._list

    def _on_call_tool(self, ctx: RequestContext[Any], params: t.RawCallToolParams) -> Any:
        tool = self._tools.get(params.name)
        if tool is None:
            raise InvalidParams(f"Unknown tool: {params.name}")
        return tool.call(ctx, params)

    # --- serving -------------------------------------------------------------------------------

    def run(self, transport: Any = "stdio", **options: Any) -> None:
        """Serve until the input ends, or SIGINT or SIGTERM comes; options as `Server.run`."""
        self.server.run(transport, **options)

    def streamable_http_app(self, **options: Any) -> HTTPApp:
        """An ASGI app that serves over Streamable HTTP; options as `HTTPOptions`."""
        return self.server.streamable_http_app(**options)

    async def run_stdio_async(self, **options: Any) -> None:
        """Serve stdin and stdout from inside an event loop; options as `Server.run`."""
        await self.server.run_stdio_async(**options)


def _set_level(ctx: RequestContext[Any], params: t.SetLevelRequestParams) -> t.EmptyResult:
    # The connection has taken note of the level; there is nothing else to do.
    return t.EmptyResult()

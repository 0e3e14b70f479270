"""`MCPServer`: a registry of tools on a core server, and no protocol logic.

Plugs into the core's public hooks like any other user of the core.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypeVar, Unpack, overload

from msgspec import Raw

from mcp_core import Server, codec, request_meta
from mcp_core import types as t
from mcp_core.codec import JSONObject
from mcp_core.context import AnyContext
from mcp_core.dispatch import Middleware
from mcp_core.errors import InvalidParams
from mcp_core.messages import ErrorResponse, Response, decode_frame
from mcp_core.queue_logger import QueueLogger
from mcp_core.request_state import RequestStateSigner
from mcp_core.results import SERVER_INFO
from mcp_core.revisions import LATEST_REVISION
from mcp_core.subscriptions import SubscriptionBus, ToolsListChanged
from mcp_core.threads import MAX_WAITING, WorkerThreads
from mcp_typed.arguments import Unknown
from mcp_typed.context import Context
from mcp_typed.errors import ToolError
from mcp_typed.failures import failures_kept
from mcp_typed.lint import Finding, findings
from mcp_typed.missing import missing
from mcp_typed.options import (
    checked_icons,
    known_options,
    one_of,
    optional_text,
    positive_count,
    refuse,
    switch,
    taken_lifespan,
    text,
)
from mcp_typed.policy import POLICY_OPTIONS, InvalidArgumentsHook, Policy, Run, ToolKeywords
from mcp_typed.tools import FunctionTool

if TYPE_CHECKING:
    from mcp_core.server import HTTPApp, HTTPLoop, LoopName
    from mcp_core.transports.stdio import StdioKeywords
    from mcp_core.transports.streamable_http.options import HTTPKeywords, RunHTTPKeywords

__all__ = ["MCPServer"]

P = ParamSpec("P")
R = TypeVar("R")

_log = QueueLogger(__name__)


class MCPServer:
    """A server whose tools are functions.

    `server` is the core server beneath, with all that it can do: further handlers, middleware, observers. `run`,
    `timeout`, `max_concurrency` and `unknown_arguments` hold for tools that do not say otherwise.

    Args:
        name: What it is called on the wire.
        version: Its own version, for clients to show.
        title: The name for people.
        description: What it is for, in a sentence.
        instructions: How a model is to use it.
        website_url: Where people read more.
        icons: Icons for people.
        lifespan: A function of the server that returns an async context manager; what that yields is
            `ctx.lifespan_context`.
        threads: Worker threads for plain functions, and so how many of them run at a time.
        run: Where plain functions run: `"thread"`, or `"inline"` on the event loop, where they must not block.
        timeout: Seconds that a call may take. `None`: no limit.
        max_concurrency: Calls of one tool that run at a time; further ones wait. `None`: no limit.
        max_waiting: Calls that may wait for a thread, and for their turn at one tool; further ones get an error that
            says that the server is busy.
        unknown_arguments: Whether arguments that a tool does not have are ignored, or refused (`"reject"`). Members
            of an argument that are unknown are its own type's business.
        mask_errors: Give the model an error id, which the log has too, in place of the text of an exception that is
            not a `ToolError`.
        on_invalid_arguments: `(tool name, ValidationError) -> str | CallToolResult`: words arguments that do not fit.
        inline_refs: Publish schemas without `$ref`, for clients that do not follow them.
        on_duplicate: What a second tool of one name is: an `"error"`, the new one (`"replace"`), or nothing
            (`"ignore"`).
        request_state: Signs what 2026-07-28 clients carry between the rounds of `Resolve`. Several processes that
            serve the same clients need the same keys.
        subscriptions: A bus that carries change notifications between processes. `None`: this process only.
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
        max_waiting: int = MAX_WAITING,
        unknown_arguments: Unknown = "ignore",
        mask_errors: bool = True,
        on_invalid_arguments: InvalidArgumentsHook | None = None,
        inline_refs: bool = False,
        on_duplicate: Literal["error", "replace", "ignore"] = "error",
        request_state: RequestStateSigner | None = None,
        subscriptions: SubscriptionBus | None = None,
    ) -> None:
        """
        Raises:
            InvalidOption: An option is of no use; the text says which, and what it takes.
        """
        text("name", name)
        text("version", version)
        for option, value in {
            "title": title,
            "description": description,
            "instructions": instructions,
            "website_url": website_url,
        }.items():
            optional_text(option, value)
        taken_lifespan(lifespan)
        positive_count("threads", threads, "threads")
        positive_count("max_waiting", max_waiting, "calls")
        one_of("on_duplicate", on_duplicate, "error", "replace", "ignore")
        switch("inline_refs", inline_refs)
        _check_signer(request_state)
        _check_bus(subscriptions)
        self._tools: dict[str, FunctionTool] = {}
        self._on_duplicate = on_duplicate
        self._policy = Policy(
            threads=WorkerThreads(threads, max_waiting=max_waiting),
            signer=request_state or RequestStateSigner(),
            inline_refs=inline_refs,
        ).override(
            mask_errors=mask_errors,
            run=run,
            timeout=timeout,
            max_concurrency=max_concurrency,
            max_waiting=max_waiting,
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
            icons=checked_icons(icons),
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

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Only for what is not there: an AttributeError is what `hasattr` expects.
            raise AttributeError(missing(name), name=name, obj=self)

    # --- registration -----------------------------------------------------------------------

    @overload
    def tool(self, function: Callable[P, R], /) -> Callable[P, R]: ...

    @overload
    def tool(
        self,
        name: str | None = None,
        **options: Unpack[ToolKeywords],
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    def tool(self, name: Any = None, **options: Any) -> Any:
        """Make a function a tool: `@mcp.tool`, `@mcp.tool()` or `@mcp.tool("name", ...)`.

        The function itself is returned unchanged. With `structured_output=True` a return
        annotation without a schema is an error, with `False` it stays Python's own
        business. `run`, `timeout`, `max_concurrency` and `unknown_arguments` are as on the
        server, for this tool; `timeout=math.inf` is none.

        Raises:
            InvalidSignature: It cannot be one.
            InvalidOption: An option is of no use; the text says which, and what it takes.
            ValueError: There is one of that name, or it has no name.
        """
        known_options("a tool", options, _TOOL_OPTIONS)
        if callable(name):
            self.add_tool(name, **options)
            return name
        optional_text("name", name)

        def register(function: Callable[P, R]) -> Callable[P, R]:
            self.add_tool(function, name=name, **options)
            return function

        return register

    def add_tool(
        self,
        function: Callable[..., object],
        name: str | None = None,
        **options: Unpack[ToolKeywords],
    ) -> None:
        """Make a function a tool; options and exceptions are those of `tool`.

        Clients that have subscribed are notified that the list has changed. May be called from any thread.
        """
        known_options("a tool", options, _TOOL_OPTIONS)
        given: JSONObject = {**options}
        policy = self._policy.override(**{key: given.pop(key, None) for key in POLICY_OPTIONS})
        tool = FunctionTool(function, policy, name=name, **given)
        if tool.name in self._tools:
            if self._on_duplicate == "error":
                raise ValueError(f"there is a tool {tool.name!r} already")
            if self._on_duplicate == "ignore":
                _log.warning("a second tool %r was ignored", tool.name)
                return
        self._tools[tool.name] = tool
        self._changed()

    def remove_tool(self, name: str) -> None:
        """Take a tool away. Calls that run go on; clients that have subscribed are notified.

        Raises:
            ToolError: There is none of that name.
        """
        if self._tools.pop(name, None) is None:
            raise ToolError(_unknown(name))
        self._changed()

    def _changed(self) -> None:
        self._list = None
        self.server.announce(ToolsListChanged())

    async def notify_tools_changed(self) -> None:
        """Tell all clients that asked that the list of tools has changed."""
        await self.server.publish(ToolsListChanged())

    def lint(self) -> list[Finding]:
        """Return what a reader of the tools' schemas would trip over; empty when nothing."""
        return [finding for tool in self._tools.values() for finding in findings(tool)]

    # --- use from Python ------------------------------------------------------------------------

    async def list_tools(self) -> list[t.Tool]:
        """Return the tools as clients see them, in the order of registration."""
        return [tool.listed for tool in self._tools.values()]

    async def call_tool(
        self, name: str, arguments: JSONObject | None = None, context: Context[Any] | None = None
    ) -> t.CallToolResult:
        """Call a tool, for a test or from another tool (which then passes its context on).

        Without a context the call goes through middleware and observers, as a client's does,
        and the lifespan is entered by the first such call and kept until `aclose`.

        Raises:
            ToolError: It failed, or there is none of that name; the text is what the model
                would read, and `__cause__` the exception that made it fail.
            MCPError: It raised one.
        """
        if name not in self._tools:
            raise ToolError(_unknown(name))
        with failures_kept() as failures:
            if context is None:
                result = await self._call_alone(name, arguments)
            else:
                result = await self._call(name, arguments, context)
        if result.is_error:
            text = next((block.text for block in result.content if isinstance(block, t.TextContent)), "")
            raise ToolError(text) from (failures[-1] if failures else None)
        return result

    async def _call(self, name: str, arguments: JSONObject | None, context: Context[object]) -> t.CallToolResult:
        raw = Raw(codec.encode(arguments or {}))
        result = self._on_call_tool(context.request_context, t.RawCallToolParams(name=name, arguments=raw))
        if inspect.isawaitable(result):
            result = await result
        if not isinstance(result, t.CallToolResult):
            raise ToolError(f"{name} asks the client for input, which a call from another tool cannot pass on")
        return result

    async def _call_alone(self, name: str, arguments: JSONObject | None) -> t.CallToolResult:
        params: JSONObject = {"name": name, "arguments": arguments or {}, "_meta": _META_OF_NOBODY}
        request: JSONObject = {"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": params}
        answer = await self.server.handle(codec.encode(request))
        response = decode_frame(answer or b"")
        if isinstance(response, ErrorResponse):
            raise response.error
        if not isinstance(response, Response):
            raise ToolError(f"{name} was not answered")
        shown: Any = codec.decode_any(response.result)
        # Who called is in the same process: the stamp tells clients what server they reached.
        meta = shown.get("_meta")
        if codec.is_object(meta):
            meta.pop(SERVER_INFO, None)
            if not meta:
                del shown["_meta"]
        if shown.get("resultType", "complete") != "complete":
            raise ToolError(f"{name} asks for input, and there is no client to give it")
        return codec.convert(shown, t.CallToolResult)

    async def aclose(self) -> None:
        """Leave the lifespan that `call_tool` entered."""
        await self.server.aclose()

    # --- the core's hooks ---------------------------------------------------------------------

    def _on_list_tools(self, _ctx: AnyContext, params: t.PaginatedRequestParams) -> t.Prepared[t.ListToolsResult]:
        if params.cursor is not None:
            raise InvalidParams("Unknown cursor: the list has one page")
        if self._list is None:
            tools = [tool.listed for tool in self._tools.values()]
            self._list = t.Prepared(t.ListToolsResult(tools=tools), same_for_all=True)
        return self._list

    def _on_call_tool(self, ctx: AnyContext, params: t.RawCallToolParams) -> Any:
        tool = self._tools.get(params.name)
        if tool is None:
            raise InvalidParams(_unknown(params.name))
        return tool.call(ctx, params)

    # --- serving -------------------------------------------------------------------------------

    @overload
    def run(
        self, transport: Literal["stdio"] = "stdio", *, loop: LoopName | None = None, **options: Unpack[StdioKeywords]
    ) -> None: ...

    @overload
    def run(
        self, transport: Literal["streamable-http"], *, loop: HTTPLoop | None = None, **options: Unpack[RunHTTPKeywords]
    ) -> None: ...

    def run(self, transport: Any = "stdio", **options: Any) -> None:
        """Serve until the input ends, or SIGINT or SIGTERM comes; options as `Server.run`."""
        self.server.run(transport, **options)

    def streamable_http_app(self, **options: Unpack[HTTPKeywords]) -> HTTPApp:
        """Return an ASGI app that serves over Streamable HTTP; options as `HTTPOptions`."""
        return self.server.streamable_http_app(**options)

    async def run_stdio_async(self, **options: Unpack[StdioKeywords]) -> None:
        """Serve stdin and stdout from inside an event loop; options as `Server.run`."""
        await self.server.run_stdio_async(**options)


_TOOL_OPTIONS: Final = tuple(ToolKeywords.__annotations__)

_META_OF_NOBODY: Final[JSONObject] = {
    request_meta.PROTOCOL_VERSION: LATEST_REVISION,
    request_meta.CLIENT_CAPABILITIES: {},
}
"""The `_meta` of a call that no client makes."""


def _check_signer(value: object) -> None:
    if value is not None and not isinstance(value, RequestStateSigner):
        refuse("request_state", "a RequestStateSigner", value)


def _check_bus(value: object) -> None:
    if value is not None and not all(callable(getattr(value, name, None)) for name in ("publish", "subscribe")):
        refuse("subscriptions", "a SubscriptionBus", value)


_NAME_SHOWN: Final = 200
"""Characters of an unknown name that are shown: the caller chose it."""


def _unknown(name: str) -> str:
    return f"Unknown tool: {name if len(name) <= _NAME_SHOWN else f'{name[:_NAME_SHOWN]}...'}"


def _set_level(ctx: AnyContext, params: t.SetLevelRequestParams) -> t.EmptyResult:
    # The connection has taken note of the level; there is nothing else to do.
    return t.EmptyResult()

"""What a tool may ask for by annotating a parameter: its request and its client.

The core's context with questions as types and log levels as methods; whatever it lacks
is on `request_context`.

Each method that is to be awaited may also be called from a plain function in a worker
thread, which cannot await: it has done its work there when it returns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mcp_core import RequestContext
from mcp_core import types as t
from mcp_core.auth import AccessToken
from mcp_core.codec import JSONObject
from mcp_core.messages import RequestId
from mcp_core.threads import Called, call_on_loop
from mcp_typed.elicitation import ElicitationResult, Form

__all__ = ["Context"]

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    L = DefaultTypeVar("L", default=Any)
else:
    L = TypeVar("L")


class Context(Generic[L]):
    """One call and its client. Annotate a parameter with it; the schema does not show it.

    In an `async def` tool, `await` its methods. In a plain one, which runs in a worker thread,
    call them: `ctx.report_progress(1, 2)`. Once the call is cancelled they end it there, by
    `asyncio.CancelledError`.
    """

    __slots__ = ("request_context",)

    def __init__(self, request_context: RequestContext[L]) -> None:
        self.request_context: RequestContext[L] = request_context
        """The core's context beneath."""

    # --- the request ------------------------------------------------------------------------

    @property
    def request_id(self) -> RequestId | None:
        """The id of the request, as the client sent it."""
        return self.request_context.request_id

    @property
    def meta(self) -> JSONObject:
        """The `_meta` of the request."""
        return self.request_context.meta

    @property
    def headers(self) -> Mapping[str, str] | None:
        """The HTTP headers of the request, names in lower case; `None` on other transports."""
        return self.request_context.headers

    @property
    def auth(self) -> AccessToken | None:
        """The caller's token, where the server asks for one."""
        return self.request_context.auth

    def require_scopes(self, *scopes: str) -> None:
        """Go on only if the caller's token has all of these scopes; as `RequestContext.require_scopes`."""
        self.request_context.require_scopes(*scopes)

    @property
    def protocol_version(self) -> str:
        """The revision that the client speaks."""
        return self.request_context.protocol_version

    @property
    def client_info(self) -> t.Implementation | None:
        """Who the client says it is. Not to be trusted."""
        return self.request_context.client_info

    @property
    def client_capabilities(self) -> t.ClientCapabilities:
        """What the client can do."""
        return self.request_context.client_capabilities

    @property
    def lifespan_context(self) -> L:
        """What the server's lifespan yielded."""
        return self.request_context.lifespan_context

    @property
    def session(self) -> RequestContext[L]:
        """The core's context: notifications and requests of any kind."""
        return self.request_context

    @property
    def input_responses(self) -> JSONObject | None:
        """The client's answers to an `InputRequiredResult` of this tool's own; `None` in the first round."""
        return self.request_context.params.get("inputResponses")

    @property
    def request_state(self) -> str | None:
        """The state that came back with the answers, from anybody: open it with a `RequestStateSigner`."""
        return self.request_context.params.get("requestState")

    # --- while it runs ------------------------------------------------------------------------

    def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> Called[None]:
        """Send progress to the client, if it asked for it.

        Raises:
            ValueError: A number is none that JSON has.
        """
        return call_on_loop(self.request_context.report_progress, progress, total, message)

    def log(self, level: t.LoggingLevel, data: object, *, logger_name: str | None = None) -> Called[None]:
        """Send the client a log message, if it wants messages of this level.

        Raises:
            ValueError: There is no such level.
        """
        return call_on_loop(self.request_context.log, level, data, logger_name)

    def debug(self, data: object, *, logger_name: str | None = None) -> Called[None]:
        """`log` at level debug."""
        return self.log("debug", data, logger_name=logger_name)

    def info(self, data: object, *, logger_name: str | None = None) -> Called[None]:
        """`log` at level info."""
        return self.log("info", data, logger_name=logger_name)

    def warning(self, data: object, *, logger_name: str | None = None) -> Called[None]:
        """`log` at level warning."""
        return self.log("warning", data, logger_name=logger_name)

    def error(self, data: object, *, logger_name: str | None = None) -> Called[None]:
        """`log` at level error."""
        return self.log("error", data, logger_name=logger_name)

    # --- changes ------------------------------------------------------------------------------

    def notify_tools_changed(self) -> Called[None]:
        """Tell all clients that asked that the list of tools has changed."""
        return call_on_loop(self.request_context.notify_tools_changed)

    def notify_prompts_changed(self) -> Called[None]:
        """Tell all clients that asked that the list of prompts has changed."""
        return call_on_loop(self.request_context.notify_prompts_changed)

    def notify_resources_changed(self) -> Called[None]:
        """Tell all clients that asked that the list of resources has changed."""
        return call_on_loop(self.request_context.notify_resources_changed)

    def notify_resource_updated(self, uri: str) -> Called[None]:
        """Tell all clients that asked that this resource has changed."""
        return call_on_loop(self.request_context.notify_resource_updated, uri)

    # --- asking the client (handshake era; `Resolve` asks in both) --------------------------------

    def elicit(self, message: str, schema: type[T], *, timeout: float | None = None) -> Called[ElicitationResult[T]]:
        """Ask the user to fill in the form that a class stands for, and wait for the outcome.

        Raises:
            InvalidSignature: The class cannot be a form.
            ToolError: The client's revision cannot ask for a member, or its answer does not fit.
            LocalProtocolError: A 2026-07-28 client: ask with `Resolve` instead.
            MissingClientCapability: The client declared no forms.
            RequestTimeout: No answer within `timeout` seconds.
        """
        return call_on_loop(self._elicit, message, Form(schema), timeout)

    async def _elicit(self, message: str, form: Form[T], timeout: float | None) -> ElicitationResult[T]:
        asked = form.asked_of(self.protocol_version)
        return form.read(await self.request_context.elicit(message, asked, timeout=timeout))

    def elicit_url(
        self, message: str, url: str, elicitation_id: str, *, timeout: float | None = None
    ) -> Called[t.ElicitResult]:
        """Ask the user to visit a page (2025-11-25), and wait for the consent. Raises as `elicit`."""

        def ask() -> Awaitable[t.ElicitResult]:
            return self.request_context.elicit_url(message, url, elicitation_id, timeout=timeout)

        return call_on_loop(ask)

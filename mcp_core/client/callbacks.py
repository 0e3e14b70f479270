"""What the client's author answers when the server asks, in either era.

In the handshake era the server asks by requests, in 2026-07-28 by results; the same
callbacks answer both. Knows no connection.
Spec: client/elicitation, sampling, roots; basic/patterns/mrtr.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from mcp_core import codec
from mcp_core import types as t
from mcp_core.backend import has_running_loop, is_cancellation, settled
from mcp_core.codec import JSONObject
from mcp_core.errors import InternalError, InvalidParams, MCPError, MethodNotFound
from mcp_core.queue_logger import QueueLogger

__all__ = ["Callbacks", "ClientRequestContext", "pass_on"]

_log = QueueLogger(__name__)


class ClientRequestContext(msgspec.Struct):
    """What a callback knows of the request it answers.

    `request_id` is the id of the server's request, or its key among the input requests.
    """

    client: Any
    request_id: t.RequestId
    method: str
    meta: JSONObject | None = None


Elicit: TypeAlias = Callable[[ClientRequestContext, t.ElicitRequestParams], Any]
Sample: TypeAlias = Callable[[ClientRequestContext, t.CreateMessageRequestParams], Any]
ListRoots: TypeAlias = Callable[[ClientRequestContext], Any]


class Callbacks(msgspec.Struct):
    """The three callbacks, each optional; what is missing is not declared."""

    elicit: Elicit | None = None
    sample: Sample | None = None
    list_roots: ListRoots | None = None
    sampling: t.SamplingCapability | None = None

    def capabilities(self) -> t.ClientCapabilities:
        """Return what the client declares because of them."""
        return t.ClientCapabilities(
            elicitation=None if self.elicit is None else t.ElicitationCapability(form={}, url={}),
            sampling=None if self.sample is None else (self.sampling or t.SamplingCapability()),
            roots=None if self.list_roots is None else t.RootsCapability(list_changed=True),
        )

    async def answer(self, ctx: ClientRequestContext, params: object) -> object:
        """Return the result of one of the three methods; `params` is its JSON form.

        Raises:
            MCPError: The client does not do this, the params are wrong, or a callback
                said so. Any other exception of a callback is an internal error.
        """
        try:
            value = await settled(self._call(ctx, params or {}))
        except MCPError:
            raise
        except BaseException as exc:
            pass_on(exc)
            _log.error("the callback for %s raised %s", ctx.method, type(exc).__name__, exc=exc)
            raise InternalError("Internal client error") from None
        if isinstance(value, t.ErrorData):
            raise MCPError.of(value.code, value.message, value.data)
        return value

    def _call(self, ctx: ClientRequestContext, params: Any) -> Any:
        if ctx.method == "elicitation/create" and self.elicit is not None:
            kind: Any = t.ElicitRequestURLParams if params.get("mode") == "url" else t.ElicitRequestFormParams
            return self.elicit(ctx, _typed(params, kind))
        if ctx.method == "sampling/createMessage" and self.sample is not None:
            return self.sample(ctx, _typed(params, t.CreateMessageRequestParams))
        if ctx.method == "roots/list" and self.list_roots is not None:
            return self.list_roots(ctx)
        raise MethodNotFound("Method not found", ctx.method)


def pass_on(exc: BaseException) -> None:
    """Re-raise what a callback is not to blame for: its task is being cancelled, or the user has had enough.

    Anything else that comes out of a callback ends what the callback was called for, be it
    `SystemExit`, `GeneratorExit` or a `CancelledError` that was not requested.
    """
    if isinstance(exc, KeyboardInterrupt) or is_cancellation(exc):
        raise exc
    if isinstance(exc, GeneratorExit) and not has_running_loop():
        raise exc  # the loop is gone, and the coroutine is being closed


def _typed(params: Any, kind: Any) -> Any:
    try:
        return codec.convert(params, kind)
    except codec.ValidationError as exc:
        raise InvalidParams(f"Invalid params: {exc}") from None

"""Who serves which method: the registry of one server.

Knows methods and types; nothing of connections. A registration says how params are
decoded, once, so that a request costs one look-up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Raw

from mcp_core import codec
from mcp_core import types as t
from mcp_core.methods import METHODS, Method

__all__ = ["Handler", "Handlers", "HandlerFunction"]

HandlerFunction: TypeAlias = Callable[[Any, Any], Any]
"""`(ctx, params) -> result`, or something awaitable that gives one."""

_RESERVED: Final = {
    "initialize": "the handshake is the server's own; wrap it with Server.middleware",
    "notifications/cancelled": "cancellation is the connection's own; observe it with Server.middleware",
}

_meta_only: codec.Decoder[t.RequestParams] = codec.decoder(t.RequestParams)


class Handler(msgspec.Struct):
    """One method served. `row` is `None` for a method that MCP does not define.

    `carries_meta` says that the decoded params have a `_meta` of their own.
    """

    method: str
    row: Method | None
    decode: codec.Decoder[Any]
    call: HandlerFunction
    carries_meta: bool

    def meta_of(self, params: Any, raw: Raw) -> dict[str, Any] | None:
        """The `_meta` of decoded params."""
        if self.carries_meta:
            return params._meta  # type: ignore[no-any-return]
        return read_meta(raw)


def read_meta(raw: Raw) -> dict[str, Any] | None:
    """The `_meta` of params of any shape.

    Raises:
        codec.Misfit, codec.Undecodable: It is no object.
    """
    return _meta_only(raw).meta


class Handlers:
    """The handlers of one server, requests and notifications apart."""

    def __init__(self) -> None:
        self.requests: Final[dict[str, Handler]] = {}
        self.notifications: Final[dict[str, Handler]] = {}
        self.version = 0

    def add_request(self, method: str, params_type: Any, call: HandlerFunction) -> None:
        """Serve a request method, in place of who served it before.

        Raises:
            ValueError: The method is the server's own.
        """
        self._refuse_reserved(method)
        self.put(self.requests, method, params_type, call)

    def add_notification(self, method: str, params_type: Any, call: HandlerFunction) -> None:
        """Be told of a notification, in place of who was told before. Raises as `add_request`."""
        self._refuse_reserved(method)
        self.put(self.notifications, method, params_type, call)

    def put(self, table: dict[str, Handler], method: str, params_type: Any, call: HandlerFunction) -> None:
        """Register without asking whether the method may be taken."""
        if not callable(call):
            raise TypeError(f"the handler of {method} is not callable: {call!r}")
        kind: Any = params_type
        carries_meta = isinstance(kind, type) and issubclass(kind, t.MetaObject)
        table[method] = Handler(method, METHODS.get(method), codec.decoder(params_type), call, carries_meta)
        self.version += 1

    @staticmethod
    def _refuse_reserved(method: str) -> None:
        if method in _RESERVED:
            raise ValueError(f"{method!r} cannot be replaced: {_RESERVED[method]}")

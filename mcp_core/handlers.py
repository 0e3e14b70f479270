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
from mcp_core.codec import JSONObject
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

    `carries_meta` says that the decoded params have a `_meta` of their own;
    `carries_name` that they have the member that `Mcp-Name` mirrors, as it is on the wire.
    """

    method: str
    row: Method | None
    params_type: Any
    decode: codec.Decoder[Any]
    call: HandlerFunction
    carries_meta: bool
    carries_name: bool


def read_meta(raw: Raw) -> JSONObject | None:
    """Return the `_meta` of params of any shape.

    Raises:
        codec.ValidationError, codec.DecodeError: It is not an object.
    """
    return _meta_only(raw).meta


class Handlers:
    """The handlers of one server, requests and notifications apart."""

    def __init__(self) -> None:
        self.requests: Final[dict[str, Handler]] = {}
        self.notifications: Final[dict[str, Handler]] = {}
        self.version: int = 0

    def add_request(self, method: str, params_type: Any, call: HandlerFunction) -> None:
        """Serve a request method, in place of who served it before.

        Raises:
            ValueError: The method is the server's own.
            TypeError: Messages cannot be decoded to `params_type`, or `call` cannot be called.
        """
        self._refuse_reserved(method)
        _check_params_type(method, params_type)
        self.put(self.requests, method, params_type, call)

    def add_notification(self, method: str, params_type: Any, call: HandlerFunction) -> None:
        """Register the handler of a notification, in place of an earlier one. Raises as `add_request`."""
        self._refuse_reserved(method)
        _check_params_type(method, params_type)
        self.put(self.notifications, method, params_type, call)

    def put(self, table: dict[str, Handler], method: str, params_type: Any, call: HandlerFunction) -> None:
        """Register without asking whether the method may be taken."""
        if not callable(call):
            raise TypeError(f"the handler of {method} is not callable: {call!r}")
        kind: Any = params_type
        carries_meta = isinstance(kind, type) and issubclass(kind, t.MetaObject) and not _is_positional(kind)
        row = METHODS.get(method)
        carries_name = row is not None and row.name_field is not None and _has_on_the_wire(kind, row.name_field)
        table[method] = Handler(method, row, params_type, codec.decoder(params_type), call, carries_meta, carries_name)
        self.version += 1

    @staticmethod
    def _refuse_reserved(method: str) -> None:
        if method in _RESERVED:
            raise ValueError(f"{method!r} cannot be replaced: {_RESERVED[method]}")


def _check_params_type(method: str, kind: Any) -> None:
    """Raise `TypeError` for a type that msgspec cannot decode: every request would be answered with an error."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return
    from msgspec import inspect  # loaded for this alone

    try:
        info = inspect.type_info(kind)
    except Exception as exc:
        raise TypeError(f"params_type of {method!r} must be a type that msgspec decodes; got {kind!r}: {exc}") from None
    if isinstance(info, inspect.CustomType):
        raise TypeError(
            f"params_type of {method!r} must be a type that msgspec decodes, such as a Struct, a TypedDict or dict; "
            f"got {kind!r}. To validate by other means, take dict[str, Any]"
        )


def _is_positional(kind: type[msgspec.Struct]) -> bool:
    """Return whether a type is an array on the wire, which no params are."""
    return kind.__struct_config__.array_like


def _has_on_the_wire(kind: Any, member: str) -> bool:
    """Return whether a type has a field that is called the same in Python and in JSON."""
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return False
    return (member, member) in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)

"""Everything the package raises on purpose, and the JSON-RPC error codes.

Owns the exception tree and nothing else: it knows no message, no transport.
Spec: basic, "Error Codes"; JSON-RPC 2.0 section 5.1.

    MCPCoreError
    ├── MCPError                  a JSON-RPC error: code, message, data
    │   ├── ParseError            -32700
    │   ├── InvalidRequest        -32600
    │   │   └── InsufficientScope -32600, and over HTTP a challenge with it
    │   ├── MethodNotFound        -32601
    │   ├── InvalidParams         -32602
    │   │   └── ResourceNotFound  -32602, or -32002 on handshake revisions
    │   ├── InternalError         -32603
    │   ├── HeaderMismatch        -32020
    │   ├── MissingClientCapability     -32021
    │   ├── UnsupportedProtocolVersion  -32022
    │   └── UrlElicitationRequired      -32042, 2025-11-25 only
    ├── LocalProtocolError        our caller asked for what the state forbids
    ├── InvalidResult             the peer's answer is not what its method returns
    ├── HTTPRefusal               an HTTP status that is none of success; always one of the others, too
    ├── RequestTimeout            no response in time; the request was cancelled
    ├── ConnectionClosed          the peer is gone
    └── InputRoundsExceeded       the server keeps asking for input
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

__all__ = [
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "MISSING_REQUIRED_CLIENT_CAPABILITY",
    "PARSE_ERROR",
    "RESOURCE_NOT_FOUND",
    "UNSUPPORTED_PROTOCOL_VERSION",
    "URL_ELICITATION_REQUIRED",
    "ConnectionClosed",
    "HTTPRefusal",
    "HeaderMismatch",
    "InputRoundsExceeded",
    "InsufficientScope",
    "InternalError",
    "InvalidParams",
    "InvalidRequest",
    "InvalidResult",
    "LocalProtocolError",
    "MCPCoreError",
    "MCPError",
    "MethodNotFound",
    "MissingClientCapability",
    "ParseError",
    "RequestTimeout",
    "ResourceNotFound",
    "UnsupportedProtocolVersion",
    "UrlElicitationRequired",
]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
MISSING_REQUIRED_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022
URL_ELICITATION_REQUIRED = -32042


def _restored(cls: type[MCPCoreError], args: tuple[Any, ...], state: dict[str, Any]) -> MCPCoreError:
    """Return an exception as it was, its constructor not called again."""
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class MCPCoreError(Exception):
    """Base of everything the package raises on purpose.

    Pickling and copying keep class, text and attributes, of subclasses as well: a
    constructor may take what it likes.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, dict(self.__dict__))


class MCPError(MCPCoreError):
    """A JSON-RPC error object.

    Raised by a handler it goes to the wire as it is; answered by the peer it is
    raised to the caller. `data` is any JSON value, `None` when absent. An error
    received from a peer has the subclass of its code (`MCPError.of`).
    """

    _by_code: ClassVar[dict[int, type[MCPError]]] = {}

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        data = "" if self.data is None else f", {self.data!r}"
        return f"{type(self).__name__}({self.code}, {self.message!r}{data})"

    @staticmethod
    def of(code: int, message: str, data: Any = None) -> MCPError:
        """Return the error of this code, in the most specific class there is for it."""
        cls = MCPError._by_code.get(code, MCPError)
        error = cls.__new__(cls)
        MCPError.__init__(error, code, message, data)
        return error


class _Coded(MCPError):
    """A subclass that fixes the code; the message stays free."""

    CODE: ClassVar[int]
    ALSO: ClassVar[tuple[int, ...]] = ()
    """Further codes by which a peer may mean the same."""

    def __init_subclass__(cls) -> None:
        for code in (cls.CODE, *cls.ALSO):
            MCPError._by_code.setdefault(code, cls)

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(self.CODE, message, data)


class ParseError(_Coded):
    """The bytes are no JSON text, or no UTF-8."""

    CODE: ClassVar[int] = PARSE_ERROR


class InvalidRequest(_Coded):
    """The JSON value is not a legal JSON-RPC message."""

    CODE: ClassVar[int] = INVALID_REQUEST


class InsufficientScope(InvalidRequest):
    """The caller's access token is good, but not for this.

    Over HTTP it is answered with 403 and a challenge that names `scopes`: all that the
    operation needs, so that the client has to ask for them once.
    Spec: basic/authorization, "Scope Challenge Handling".
    """

    def __init__(self, *scopes: str) -> None:
        super().__init__(f"the access token's scope is too small; needed: {' '.join(scopes)}")
        self.scopes = scopes


class MethodNotFound(_Coded):
    """The method does not exist here: unknown, removed, or not advertised."""

    CODE: ClassVar[int] = METHOD_NOT_FOUND


class InvalidParams(_Coded):
    """The params do not fit the method."""

    CODE: ClassVar[int] = INVALID_PARAMS


class ResourceNotFound(InvalidParams):
    """A resource that does not exist; `data.uri` names it.

    Goes out as -32602 in 2026-07-28 and as -32002 to every earlier revision.
    Spec: server/resources, "Error Handling".
    """

    ALSO: ClassVar[tuple[int, ...]] = (RESOURCE_NOT_FOUND,)

    def __init__(self, uri: str, message: str | None = None) -> None:
        super().__init__(message or f"Unknown resource: {uri}", {"uri": uri})


class InternalError(_Coded):
    """The receiver failed."""

    CODE: ClassVar[int] = INTERNAL_ERROR


class HeaderMismatch(_Coded):
    """A required HTTP header is missing, malformed, or differs from the body."""

    CODE: ClassVar[int] = HEADER_MISMATCH


class MissingClientCapability(_Coded):
    """The request needs a capability that its client did not declare.

    `required` is a `ClientCapabilities`, or its JSON form, naming what is missing.
    """

    CODE: ClassVar[int] = MISSING_REQUIRED_CLIENT_CAPABILITY

    def __init__(self, message: str, required: Any) -> None:
        super().__init__(message, {"requiredCapabilities": required})


class UnsupportedProtocolVersion(_Coded):
    """The named revision is not served; `data` lists those that are."""

    CODE: ClassVar[int] = UNSUPPORTED_PROTOCOL_VERSION

    def __init__(self, requested: str, supported: list[str]) -> None:
        super().__init__("Unsupported protocol version", {"supported": supported, "requested": requested})


class UrlElicitationRequired(_Coded):
    """The user must visit URLs first; revision 2025-11-25 only.

    `elicitations` holds `ElicitRequestURLParams`, each with its `elicitation_id`.
    """

    CODE: ClassVar[int] = URL_ELICITATION_REQUIRED

    def __init__(self, elicitations: list[Any], message: str = "URL elicitation required") -> None:
        super().__init__(message, {"elicitations": elicitations})


class LocalProtocolError(MCPCoreError):
    """Our caller asked for what the state of the connection forbids; nothing was sent."""


class InvalidResult(MCPCoreError):
    """The peer answered with a result that its method cannot return."""


class HTTPRefusal(MCPCoreError):
    """A server, or somebody on the way to it, answered with an HTTP status that is none of success.

    Always an `InvalidResult` as well, or the `MCPError` that the response holds. `headers`
    are those of the response, whatever the case of their names: a challenge is in
    `headers["www-authenticate"]`, how long to wait in `headers["retry-after"]`.
    Spec: basic/authorization, "Access Token Usage".
    """

    status: int
    headers: Mapping[str, str]

    @staticmethod
    def of(error: InvalidResult | MCPError, status: int, headers: Mapping[str, str]) -> HTTPRefusal:
        """Return the same error, with the status and the headers of the response that it came in."""
        refusal = _refusal_of(type(error)).__new__(_refusal_of(type(error)), *error.args)
        refusal.__dict__.update(error.__dict__, status=status, headers=headers)
        return refusal

    def __reduce__(self) -> tuple[Any, ...]:
        kind = next(base for base in type(self).__mro__ if base.__module__ == __name__ and base is not HTTPRefusal)
        members = {name: value for name, value in self.__dict__.items() if name not in ("status", "headers")}
        return (_refused_again, (kind, self.args, members, self.status, dict(self.headers)))


_refusals: dict[type[MCPCoreError], type[HTTPRefusal]] = {}
"""One for each class of errors that a response may hold: they are this module's, and few."""


def _refusal_of(kind: type[MCPCoreError]) -> type[HTTPRefusal]:
    """Return the class of refusals that are errors of this class, too."""
    if kind not in _refusals:
        _refusals[kind] = _new_refusal_of(kind)
    return _refusals[kind]


def _new_refusal_of(kind: type[MCPCoreError]) -> type[HTTPRefusal]:
    return type(kind.__name__, (HTTPRefusal, kind), {"__doc__": kind.__doc__, "__module__": f"{__name__} over HTTP"})


def _refused_again(
    kind: type[MCPCoreError], args: tuple[Any, ...], members: dict[str, Any], status: int, headers: dict[str, str]
) -> HTTPRefusal:
    refusal = _refusal_of(kind).__new__(_refusal_of(kind), *args)
    refusal.__dict__.update(members, status=status, headers=headers)
    return refusal


class RequestTimeout(MCPCoreError):
    """No response came in time. The peer was asked to cancel the request."""


class ConnectionClosed(MCPCoreError):
    """The connection ended before the response came, or before the message could be sent."""


class InputRoundsExceeded(MCPCoreError):
    """The server asked for more input than `input_required_max_rounds` allows."""

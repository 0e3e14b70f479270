"""What a 2026-07-28 request says about itself in `_meta`, checked.

Nothing of it is kept: the next request says it again.
Spec: basic, "`_meta`"; basic/versioning, "Protocol Version Negotiation".
"""

from __future__ import annotations

from typing import Final, TypeVar

from mcp_core import codec
from mcp_core import types as t
from mcp_core.codec import JSONObject
from mcp_core.errors import InvalidParams, UnsupportedProtocolVersion

__all__ = [
    "CLIENT_CAPABILITIES",
    "CLIENT_INFO",
    "LOG_LEVEL",
    "PROTOCOL_VERSION",
    "SUBSCRIPTION_ID",
    "check_meta",
    "read_capabilities",
    "read_client_info",
]

T = TypeVar("T")

_PREFIX: Final = "io.modelcontextprotocol/"
PROTOCOL_VERSION: Final = _PREFIX + "protocolVersion"
CLIENT_CAPABILITIES: Final = _PREFIX + "clientCapabilities"
CLIENT_INFO: Final = _PREFIX + "clientInfo"
LOG_LEVEL: Final = _PREFIX + "logLevel"
SUBSCRIPTION_ID: Final = _PREFIX + "subscriptionId"


def check_meta(meta: JSONObject, served: frozenset[str], offered: list[str]) -> str:
    """Return the revision this request is of, after checking what its `_meta` must hold.

    `served` are the modern revisions; `offered` is what an error lists (D-04).

    Raises:
        InvalidParams: A required key is missing, or one has the wrong type (-32602).
        UnsupportedProtocolVersion: The revision is not served (-32022).
    """
    version = meta[PROTOCOL_VERSION]
    if not isinstance(version, str):
        raise InvalidParams(f"_meta {PROTOCOL_VERSION} must be a string")
    if version not in served:
        raise UnsupportedProtocolVersion(version, offered)
    if not isinstance(meta.get(CLIENT_CAPABILITIES), dict):
        raise InvalidParams(f"params._meta needs {CLIENT_CAPABILITIES}, an object")
    level = meta.get(LOG_LEVEL)
    if level is not None and (not isinstance(level, str) or level not in t.LOGGING_LEVELS):
        raise InvalidParams(f"_meta {LOG_LEVEL} must be one of {', '.join(t.LOGGING_LEVELS)}")
    return version


def check_token(token: object) -> None:
    """Raise `InvalidParams` unless a progress token is a string or an integer."""
    if not isinstance(token, str | int) or isinstance(token, bool):
        raise InvalidParams("_meta progressToken must be a string or an integer")
    if isinstance(token, str) and len(token) > codec.MAX_NAME:
        raise InvalidParams(f"_meta progressToken may have {codec.MAX_NAME} characters")


def read_capabilities(meta: JSONObject) -> t.ClientCapabilities:
    """Return the client's capabilities for this request. Raises `InvalidParams` if malformed."""
    given: object = meta.get(CLIENT_CAPABILITIES) or {}
    return _typed(given, t.ClientCapabilities, CLIENT_CAPABILITIES)


def read_client_info(meta: JSONObject) -> t.Implementation | None:
    """Who the client says it is, if it does. Raises `InvalidParams` if malformed."""
    info = meta.get(CLIENT_INFO)
    return None if info is None else _typed(info, t.Implementation, CLIENT_INFO)


def _typed(value: object, kind: type[T], key: str) -> T:
    try:
        return codec.convert(value, kind)
    except codec.ValidationError as exc:
        raise InvalidParams(f"_meta {key}: {exc}") from None

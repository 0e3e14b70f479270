"""What the headers of a message say, read from the message itself.

Knows the session and the header parameters of tools; nothing of HTTP requests and their responses.
Spec: basic/transports/streamable-http, "Protocol Version Header", "Standard Request
Headers", "Value Encoding"; R-HTTP-04, R-HTTP-13 to R-HTTP-18, R-HTTP-23.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from mcp_core import codec
from mcp_core.errors import LocalProtocolError
from mcp_core.messages import Frame, Notification, Request
from mcp_core.methods import METHODS
from mcp_core.parameter_headers import argument_at
from mcp_core.transports.http_client.session import VERSION, SessionState
from mcp_core.transports.http_client.tool_headers import ListedHeaderParameters

__all__ = ["MAX_MIRRORED", "MAX_VALUE", "Headers"]

MAX_VALUE: Final = 8000
"""Bytes of a header that repeats what a message says: with more, common servers and proxies refuse the request."""

MAX_MIRRORED: Final = 16_000
"""Bytes of all of them together, names included."""

_JSON: Final = {"content-type": "application/json", "accept": "application/json, text/event-stream"}

_NAMED_BY_EXTENSIONS: Final = {"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}
"""The same as `Method.name_field`, of methods that the core does not serve."""


_BITS: Final = 4096
"""Of an integer in a header; Python refuses to write much longer ones."""


class Headers:
    """The headers of messages, with the session and the header parameters as they stand."""

    def __init__(self, session: SessionState, header_parameters: ListedHeaderParameters) -> None:
        self._session = session
        self._header_parameters = header_parameters

    def of(self, frame: Frame) -> dict[str, str]:
        """Return the headers of one message.

        Raises:
            LocalProtocolError: An argument does not fit into the header that repeats it.
        """
        if isinstance(frame, Request) and frame.method == "initialize":
            return dict(_JSON)  # it begins a session, and settles the version
        headers = {**self._session.headers(), **_JSON}
        if isinstance(frame, Request | Notification):
            version = self._session.stated(frame)
            if version is not None:
                headers |= {VERSION: version, "mcp-method": frame.method, **self._named(frame)}
        return headers

    def _named(self, frame: Request | Notification) -> dict[str, str]:
        """Return what is called, and for a tool the annotated arguments."""
        row = METHODS.get(frame.method)
        member = (row.name_field if row is not None else None) or _NAMED_BY_EXTENSIONS.get(frame.method)
        if member is None:
            return {}
        params: Any = codec.decode_any(frame.params)
        named = params.get(member)
        headers = {"mcp-name": _value(named)} if isinstance(named, str) else {}
        if frame.method == "tools/call":
            headers |= self._parameters(named, params.get("arguments"))
        _check_size(headers)
        return headers

    def _parameters(self, tool: object, arguments: object) -> dict[str, str]:
        """Return the annotated arguments of a call (R-HTTP-23)."""
        headers: dict[str, str] = {}
        for path, name in self._header_parameters.of(str(tool)).items():
            text = _text(argument_at(arguments, path))
            if text is not None:
                headers[f"mcp-param-{name.lower()}"] = _value(text)
        return headers


def _check_size(headers: dict[str, str]) -> None:
    total = 0
    for name, value in headers.items():
        total += len(name) + len(value)
        if len(value) > MAX_VALUE:
            raise LocalProtocolError(f"the header {name!r} takes {MAX_VALUE} bytes; got {len(value)}")
    if total > MAX_MIRRORED:
        raise LocalProtocolError(f"the headers that repeat arguments take {MAX_MIRRORED} bytes; got {total}")


def _text(given: object) -> str | None:
    """Return an argument as a header says it; `None` for what no header says."""
    if isinstance(given, str):
        return given
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, float) and given.is_integer():
        return str(int(given))
    if isinstance(given, int) and given.bit_length() > _BITS:
        raise LocalProtocolError(f"an integer of {given.bit_length()} bits does not fit into a header")
    return str(given) if isinstance(given, int | float) else None


def _value(text: str) -> str:
    """Return a value made fit for a header (R-HTTP-18)."""
    plain = all(char == "\t" or " " <= char <= "~" for char in text) and text == text.strip(" \t")
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode('ascii')}?="

"""uvicorn's HTTP protocol on httptools, which bounds no header, with a bound.

Knows uvicorn and httptools; loaded only by `serving`, where both are installed.
"""

from __future__ import annotations

from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mcp_core.errors import InvalidRequest
from mcp_core.messages import encode_error
from mcp_core.transports.streamable_http.guards import MAX_HEADER_BYTES

__all__ = ["BoundedProtocol"]

_MOST: Final = 4 * MAX_HEADER_BYTES
"""Bytes of a head and of what may come with it in one piece: the app refuses what is not far beyond its own bound."""

_BODY: Final = encode_error(None, InvalidRequest(f"the headers are larger than {MAX_HEADER_BYTES} bytes"))
_REFUSAL: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_BODY), _BODY)
)


class BoundedProtocol(HttpToolsProtocol):
    """Cuts a client off whose header does not end.

    Each piece of one header is joined to those before it, so that a long one would take memory without
    bounds, and time by the square of its length.
    """

    _is_in_head = False
    _seen = 0

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        if self._is_in_head:
            self._seen += len(data)
            if self._seen > _MOST:
                transport = cast("Any", self.transport)
                if not transport.is_closing():
                    transport.write(_REFUSAL)
                    transport.close()
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        """A head begins."""
        self._is_in_head, self._seen = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """It is whole."""
        self._is_in_head = False
        super().on_headers_complete()

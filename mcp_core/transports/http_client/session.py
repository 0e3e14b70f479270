"""What is agreed with the server: the session, and the revision.

Knows messages; nothing of HTTP requests, nor of how the agreement comes about.
Spec: 2025-11-25/basic/transports, "Session Management", "Protocol Version Header";
R-HTTPL-10, R-HTTPL-12.
"""

from __future__ import annotations

from typing import Final

from msgspec import Raw

from mcp_core import codec, request_meta
from mcp_core.errors import InvalidResult
from mcp_core.handlers import read_meta
from mcp_core.messages import Notification, Request, Response, decode_frame, is_batch
from mcp_core.queue_logger import printable
from mcp_core.revisions import V2025_03_26

__all__ = [
    "MAX_BATCH",
    "MAX_SESSION_ID",
    "SESSION_ID",
    "VERSION",
    "SessionState",
    "agreed_version",
    "checked_session_id",
]

MAX_SESSION_ID: Final = 4096
"""Characters that the id of a session may have: it goes with every request."""

MAX_BATCH: Final = 4 * 2**20
"""Bytes of an array of messages that is taken apart. Each element costs many times its bytes."""

SESSION_ID: Final = "mcp-session-id"
VERSION: Final = "mcp-protocol-version"

_array: Final[codec.Decoder[list[Raw]]] = codec.decoder(list[Raw])


class SessionState:
    """What is settled so far. In the stateless era, every request settles it for itself."""

    def __init__(self) -> None:
        # `None` before the handshake, with a server that keeps none, and in 2026-07-28.
        self.session_id: str | None = None
        self.version: str | None = None
        """What the handshake settled; `None` in the stateless era."""
        self._modern: str | None = None
        """What the requests of the stateless era say, for notifications, which do not."""

    def begin(self) -> None:
        """Note that a handshake begins: the era is that of sessions."""
        self._modern = None

    def settle(self, answer: bytes) -> None:
        """Take the revision that the response to `initialize` settles."""
        frame = decode_frame(answer)
        self.version = agreed_version(frame) if isinstance(frame, Response) else None

    def stated(self, frame: Request | Notification) -> str | None:
        """Return the revision that a message of the stateless era is of; `None` in the handshake era."""
        version = (read_meta(frame.params) or {}).get(request_meta.PROTOCOL_VERSION)
        if isinstance(version, str):
            self._modern = version
            return version
        return self._modern if self.version is None and isinstance(frame, Notification) else None

    def is_modern(self, request: Request) -> bool:
        """Return whether a request is one of the stateless era."""
        return self.stated(request) is not None

    def headers(self) -> dict[str, str]:
        """Return what every HTTP request in the session says (R-HTTPL-10, R-HTTPL-12)."""
        headers: dict[str, str] = {}
        if self.session_id is not None:
            headers[SESSION_ID] = self.session_id
        if self.version is not None:
            headers[VERSION] = self.version
        return headers

    def messages_in(self, text: bytes) -> list[bytes]:
        """Return the messages of a body or an event: one, or in 2025-03-26 an array of them."""
        if self.version == V2025_03_26 and len(text) <= MAX_BATCH and is_batch(text):
            try:
                return [bytes(message) for message in _array(text)]
            except (codec.ValidationError, codec.DecodeError):
                return [text]
        return [text]


def checked_session_id(given: str | None) -> str | None:
    """Return a session id as it may be sent back (R-HTTPL-09).

    Raises:
        InvalidResult: It is too long, or more than visible ASCII.
    """
    if given is None or (0 < len(given) <= MAX_SESSION_ID and all("!" <= char <= "~" for char in given)):
        return given
    what = f"visible ASCII of {MAX_SESSION_ID} characters at most"
    raise InvalidResult(f"the server gave a session id that is not {what}: {printable(given)!r}")


def agreed_version(frame: Response) -> str | None:
    """Return the revision that the response to `initialize` settles."""
    result: object = codec.decode_any(frame.result)
    version = result.get("protocolVersion") if codec.is_object(result) else None
    return version if isinstance(version, str) else None

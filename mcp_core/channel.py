"""What a transport and a connection are to each other.

A transport brings whole messages in and takes whole messages out; a connection makes
sense of them. Neither knows how the other does it.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Channel", "Receiver"]


class Channel(Protocol):
    """The way out. Used from the event loop's thread only."""

    def send(self, message: bytes, *, last: bool = False) -> None:
        """Take one message, to be written soon and in order. Never blocks, never raises.

        `last` says that none is to be expected soon: there is no use in waiting for more
        to write with it.
        """
        ...

    @property
    def congested(self) -> bool:
        """Whether more is waiting to be written than should be added to."""
        ...

    async def drained(self) -> None:
        """Wait until it is no longer congested, or closed."""
        ...

    def resume(self) -> None:
        """Bring messages in again: the receiver was full, and is not any more."""
        ...


class Receiver(Protocol):
    """The way in. Calls come one at a time and in order.

    While `is_full`, the transport is to bring nothing more in; `Channel.resume` says when to go on.
    """

    @property
    def is_full(self) -> bool:
        """Whether nothing more is to be brought in."""
        ...

    def receive(self, message: bytes) -> None:
        """Take one whole message. Never raises."""
        ...

    def refuse(self, head: bytes, limit: int) -> None:
        """Called for a message over the size limit; `head` is its first bytes, enough to recover the id."""
        ...

    def fail(self, request_id: int | str, error: Exception) -> None:
        """Called when nothing will answer this request, with the reason."""
        ...

    def ended(self) -> None:
        """Called when no more messages will come."""
        ...

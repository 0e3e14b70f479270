"""The exceptions of the typed layer."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_core import MCPCoreError
from mcp_core.codec import JSONObject
from mcp_core.types import ContentBlock
from mcp_typed.media import Audio, Image

__all__ = ["InvalidOption", "InvalidSignature", "ToolError"]


class _Copied(MCPCoreError):
    """Comes back from pickle and copy as what it was, whatever its `__init__` takes.

    `BaseException` calls the class again with `args`, which a subclass with an `__init__`
    of its own takes for something else.
    """

    def __reduce__(self) -> tuple[object, ...]:
        return _made_again, (type(self), self.args), self.__dict__ or None


def _made_again(cls: type[BaseException], args: tuple[object, ...]) -> BaseException:
    """Return an exception without calling its `__init__`: attributes follow by themselves."""
    return cls.__new__(cls, *args)


class ToolError(_Copied):
    """Raised by a tool to tell the model what went wrong; the text always reaches it.

    `content` are further blocks after the text. `data`, any JSON value, and
    `retry_after`, seconds, are written out for the model and go to the application in
    `_meta`, beside `meta`, as `mcpcore/error`. They are not structured content, which has
    to fit the tool's output schema.
    """

    def __init__(
        self,
        message: str = "",
        *,
        data: object = None,
        content: Sequence[ContentBlock | Image | Audio] = (),
        meta: JSONObject | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.data = data
        self.content: list[ContentBlock | Image | Audio] = list(content)
        self.meta = meta
        self.retry_after = retry_after


class InvalidSignature(_Copied, TypeError):
    """A function cannot be a tool; the text names tool, parameter and reason."""


class InvalidOption(_Copied, ValueError, TypeError):
    """An option of a server or a tool is of no use; the text says which, what it got and what it takes.

    Both a `ValueError` and a `TypeError`: whether a wrong option has a wrong type is a
    matter of taste.
    """

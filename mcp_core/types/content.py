"""Content blocks, and the contents of resources.

Spec: server/tools, "Tool Result"; server/resources, "Resource Contents",
"Annotations".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import msgspec

from mcp_core.codec import JSONObject
from mcp_core.types.base import BlockMeta, Icon, MetaObject, Role, Wire

if not TYPE_CHECKING:
    from typing import ClassVar

__all__ = [
    "Annotations",
    "AudioContent",
    "BlobResourceContents",
    "ContentBlock",
    "EmbeddedResource",
    "ImageContent",
    "ResourceContents",
    "ResourceLink",
    "TextContent",
    "TextResourceContents",
    "UnknownContent",
    "text_block",
    "text_blocks",
]


class Annotations(Wire, kw_only=True):
    """Hints for applications that show or rank a block. `priority` runs from 0 to 1.

    `last_modified` is an ISO 8601 time.
    """

    audience: list[Role] | None = None
    priority: float | None = None
    last_modified: str | None = None


class TextContent(MetaObject, metaclass=BlockMeta, tag_field="type", tag="text", kw_only=True):
    """Text."""

    if TYPE_CHECKING:
        type: Literal["text"] = "text"
    else:
        type: ClassVar[str] = "text"

    text: str
    annotations: Annotations | None = None


_construct = msgspec.StructMeta.__call__


def text_block(text: str) -> TextContent:
    """`TextContent(text=text)` without the look at `type=`, for code that makes many."""
    block: TextContent = _construct(TextContent, text=text)
    return block


def text_blocks(texts: Iterable[str]) -> list[TextContent]:
    """Return a text block for each of these, without a call of Python's for each."""
    return [_construct(TextContent, text=text) for text in texts]


class ImageContent(MetaObject, metaclass=BlockMeta, tag_field="type", tag="image", kw_only=True):
    """An image; `data` is Base64."""

    if TYPE_CHECKING:
        type: Literal["image"] = "image"
    else:
        type: ClassVar[str] = "image"

    data: str
    mime_type: str
    annotations: Annotations | None = None


class AudioContent(MetaObject, metaclass=BlockMeta, tag_field="type", tag="audio", kw_only=True):
    """Sound; `data` is Base64."""

    if TYPE_CHECKING:
        type: Literal["audio"] = "audio"
    else:
        type: ClassVar[str] = "audio"

    data: str
    mime_type: str
    annotations: Annotations | None = None


class ResourceLink(MetaObject, metaclass=BlockMeta, tag_field="type", tag="resource_link", kw_only=True):
    """A resource by reference. It need not be among those listed."""

    if TYPE_CHECKING:
        type: Literal["resource_link"] = "resource_link"
    else:
        type: ClassVar[str] = "resource_link"

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    icons: list[Icon] | None = None


class ResourceContents(MetaObject, kw_only=True):
    """What a resource holds: `text`, or `blob` in Base64; the subclasses say which."""

    uri: str
    mime_type: str | None = None


class TextResourceContents(ResourceContents, kw_only=True):
    """A resource that is text."""

    text: str


class BlobResourceContents(ResourceContents, kw_only=True):
    """A resource that is binary; `blob` is Base64."""

    blob: str


class AnyResourceContents(ResourceContents, kw_only=True):
    """Either kind, as it is read: the wire has no tag to tell them by.

    Never handed to a user; `settled` gives the kind that it is.
    """

    text: str | None = None
    blob: str | None = None

    def settled(self) -> TextResourceContents | BlobResourceContents:
        """Return the contents in the type of their kind; `ValueError` when they are of none."""
        common: JSONObject = {"uri": self.uri, "mime_type": self.mime_type, "_meta": self._meta}
        if self.blob is not None:
            return BlobResourceContents(blob=self.blob, **common)
        if self.text is None:
            raise ValueError("resource contents need `text` or `blob`")
        return TextResourceContents(text=self.text, **common)


class EmbeddedResource(MetaObject, metaclass=BlockMeta, tag_field="type", tag="resource", kw_only=True):
    """A resource by value."""

    if TYPE_CHECKING:
        type: Literal["resource"] = "resource"
        resource: TextResourceContents | BlobResourceContents
    else:
        type: ClassVar[str] = "resource"
        resource: AnyResourceContents

    annotations: Annotations | None = None

    def __post_init__(self) -> None:
        resource: object = self.resource
        if isinstance(resource, AnyResourceContents):
            self.resource = resource.settled()


class UnknownContent:
    """A block of a kind that this version does not know, as it was received.

    `type` is its kind, `data` the whole object. Only reading makes one.
    """

    __slots__ = ("data", "type")

    def __init__(self, data: JSONObject) -> None:
        self.data: JSONObject = data
        self.type: str = data.get("type", "")

    def __repr__(self) -> str:
        return f"UnknownContent({self.data!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnknownContent) and other.data == self.data

    __hash__: ClassVar[None] = None  # type: ignore[assignment] # pyright: ignore[reportIncompatibleMethodOverride]

    def __mcp_wire__(self) -> JSONObject:
        return self.data


if TYPE_CHECKING:
    ContentBlock: TypeAlias = (
        TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource | UnknownContent
    )
else:
    ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource

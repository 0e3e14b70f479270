"""What all wire types share: naming, `_meta`, tags, and the absent-or-null rule.

A wire type is a msgspec Struct: snake_case in Python, camelCase on the wire, built
by keyword, optional members left out while they hold their default object. Types
always describe the newest revision; what an older one lacks is listed in
`mcp_core.projection`.
Spec: basic, "General fields", "`_meta`".
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct

from mcp_core.codec import JSONObject

__all__ = [
    "NULL",
    "BlockMeta",
    "CacheScope",
    "CacheableResult",
    "EmptyResult",
    "ErrorData",
    "Icon",
    "Implementation",
    "JSONObject",
    "Meta",
    "MetaObject",
    "NotificationParams",
    "PaginatedRequestParams",
    "PaginatedResult",
    "Prepared",
    "ProgressToken",
    "RequestId",
    "RequestParams",
    "Result",
    "Role",
    "Wire",
]

RequestId: TypeAlias = int | str
ProgressToken: TypeAlias = int | str
Role: TypeAlias = Literal["user", "assistant"]
CacheScope: TypeAlias = Literal["public", "private"]
Meta: TypeAlias = JSONObject

NULL: Final[Any] = Raw(b"null")
"""A JSON `null` where `None` means that the member is absent (`structured_content`)."""


_construct = msgspec.StructMeta.__call__


class BlockMeta(msgspec.StructMeta):
    """Lets the tag of a tagged type be given as a keyword, as it stands on the wire.

    msgspec keeps a tag outside the fields and refuses it as an argument; authors
    write `TextContent(type="text", text=...)` all the same.
    """

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        # The tag is the exception: construct first, look for it when refused.
        try:
            return _construct(cls, *args, **fields)
        except TypeError:
            config = cls.__struct_config__
            if config.tag_field not in fields:
                raise
            given = fields.pop(config.tag_field)
            if given != config.tag:
                raise TypeError(f"{cls.__name__} has {config.tag_field}={config.tag!r}; got {given!r}") from None
            return _construct(cls, *args, **fields)


class Wire(Struct, rename="camel", omit_defaults=True, kw_only=True):
    """Base of every object on the wire.

    Keyword-only in every class, so that a subclass may add required members; msgspec
    wants that said each time.
    """


class MetaObject(Wire, kw_only=True):
    """An object that may carry `_meta`.

    Built with `_meta=`, as on the wire; read back as `.meta`. Keys and values pass
    untouched, nulls included.
    """

    _meta: Meta | None = None

    @property
    def meta(self) -> Meta | None:
        """The `_meta` object, or `None` when absent."""
        return self._meta


class RequestParams(MetaObject, kw_only=True):
    """Params of a request; from 2026-07-28 its `_meta` carries version and capabilities."""


class NotificationParams(MetaObject, kw_only=True):
    """Params of a notification."""


class PaginatedRequestParams(RequestParams, kw_only=True):
    """Params of a list method. The cursor is opaque; an empty string is one too."""

    cursor: str | None = None


class Result(MetaObject, kw_only=True):
    """What a request is answered with.

    `result_type` goes out from 2026-07-28 on: `complete`, `input_required`, or a
    value of an advertised extension.
    """

    result_type: str = "complete"


R_co = TypeVar("R_co", bound=Result, covariant=True)


class Prepared(Generic[R_co]):
    """A result that is encoded once per revision and sent many times.

    A handler that returns the same `Prepared` again costs no encoding. `value` must not
    be changed after the first use; make a new `Prepared` instead. Middleware sees
    `value`; a middleware that returns another object bypasses the kept bytes.

    With `same_for_all`, every caller gets this result. Over HTTP a list of tools
    is then looked through once for parameters that headers repeat, and not once for each caller.
    """

    __slots__ = ("_bytes", "_same_for_all", "_value")

    def __init__(self, value: R_co, *, same_for_all: bool = False) -> None:
        self._value = value
        self._same_for_all = same_for_all
        self._bytes: dict[Hashable, tuple[bytes, bytes]] = {}

    @property
    def value(self) -> R_co:
        """The result itself."""
        return self._value

    @property
    def same_for_all(self) -> bool:
        """Whether every caller gets it."""
        return self._same_for_all

    def kept(self, key: Hashable) -> tuple[bytes, bytes] | None:
        """Return the bytes kept under this key, if any: a result and its tail."""
        return self._bytes.get(key)

    def keep(self, key: Hashable, encoded: tuple[bytes, bytes]) -> None:
        """Keep bytes under this key."""
        self._bytes[key] = encoded


class EmptyResult(Result, kw_only=True):
    """An empty result."""


class CacheableResult(Result, kw_only=True):
    """A result that 2026-07-28 clients may keep.

    `ttl_ms` is in milliseconds from receipt; 0 means stale at once. A `public`
    result may be shared between users.
    Spec: server/utilities/caching.
    """

    ttl_ms: int = 0
    cache_scope: CacheScope = "private"


class PaginatedResult(CacheableResult, kw_only=True):
    """One page of a list; no `next_cursor` means that it is the last."""

    next_cursor: str | None = None


class ErrorData(Wire, kw_only=True):
    """A JSON-RPC error as a value: a handler may return it instead of raising."""

    code: int
    message: str
    data: Any = None


class Icon(Wire, kw_only=True):
    """An image to show beside a name. `src` is an http(s) or `data:` URI.

    `sizes` are `WxH` strings or `any`.
    """

    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


class Implementation(Wire, kw_only=True):
    """Name and version of a client or a server."""

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: list[Icon] | None = None

"""Completion of prompt and template arguments.

Spec: server/utilities/completion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta as Bound

from mcp_core.types.base import BlockMeta, RequestParams, Result, Wire

if not TYPE_CHECKING:
    from typing import ClassVar

__all__ = [
    "CompleteRequestParams",
    "CompleteResult",
    "Completion",
    "CompletionArgument",
    "CompletionContext",
    "PromptReference",
    "ResourceTemplateReference",
]


class PromptReference(Wire, metaclass=BlockMeta, tag_field="type", tag="ref/prompt", kw_only=True):
    """A prompt, by name."""

    if TYPE_CHECKING:
        type: Literal["ref/prompt"] = "ref/prompt"
    else:
        type: ClassVar[str] = "ref/prompt"

    name: str
    title: str | None = None


class ResourceTemplateReference(Wire, metaclass=BlockMeta, tag_field="type", tag="ref/resource", kw_only=True):
    """A resource template, by its URI."""

    if TYPE_CHECKING:
        type: Literal["ref/resource"] = "ref/resource"
    else:
        type: ClassVar[str] = "ref/resource"

    uri: str


class CompletionArgument(Wire, kw_only=True):
    """The argument being typed, and what has been typed of it."""

    name: str
    value: str


class CompletionContext(Wire, kw_only=True):
    """The arguments that are settled already."""

    arguments: dict[str, str] | None = None


class CompleteRequestParams(RequestParams, kw_only=True):
    """What to complete."""

    ref: PromptReference | ResourceTemplateReference
    argument: CompletionArgument
    context: CompletionContext | None = None


class Completion(Wire, kw_only=True):
    """At most 100 values, best first; `total` and `has_more` tell of those left out."""

    values: Annotated[list[str], Bound(max_length=100)]
    total: int | None = None
    has_more: bool | None = None


class CompleteResult(Result, kw_only=True):
    """The proposals."""

    completion: Completion

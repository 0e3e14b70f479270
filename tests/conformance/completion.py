"""Completion of the arguments of prompts and templates.

Spec: server/utilities/completion.
"""

from __future__ import annotations

from typing import Final

from mcp_core import RequestContext
from mcp_core import types as t

__all__ = ["complete"]

_KNOWN: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("test_prompt_with_arguments", "arg1"): ("test", "testValue1", "paris", "park", "party"),
    ("test_prompt_with_arguments", "arg2"): ("testValue2", "paper"),
    ("test_prompt_with_embedded_resource", "resourceUri"): ("test://example-resource", "test://static-text"),
    ("test://template/{id}/data", "id"): ("1", "12", "123"),
}
"""What may be proposed, by prompt or template and argument."""


def complete(ctx: RequestContext, params: t.CompleteRequestParams) -> t.CompleteResult:
    """The known values that begin with what has been typed; none for what is not known."""
    whose = params.ref.name if isinstance(params.ref, t.PromptReference) else params.ref.uri
    known = _KNOWN.get((whose, params.argument.name), ())
    values = [value for value in known if value.startswith(params.argument.value)]
    return t.CompleteResult(completion=t.Completion(values=values, total=len(values), has_more=False))

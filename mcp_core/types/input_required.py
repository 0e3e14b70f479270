"""Client input in 2026-07-28: the requests a result carries, and their answers.

Spec: basic/patterns/mrtr.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

from mcp_core.codec import JSONObject
from mcp_core.types.base import Result, Wire

__all__ = ["INPUT_METHODS", "InputMethod", "InputRequest", "InputRequests", "InputRequiredResult", "InputResponses"]

InputMethod: TypeAlias = Literal["elicitation/create", "sampling/createMessage", "roots/list"]
INPUT_METHODS: tuple[InputMethod, ...] = get_args(InputMethod)


class InputRequest(Wire, kw_only=True):
    """One thing the client is asked for: method and params, without `id` or `jsonrpc`.

    `params` is the params type of the method, or its JSON form.
    """

    method: InputMethod
    params: Any = None


InputRequests: TypeAlias = dict[str, InputRequest]
InputResponses: TypeAlias = JSONObject
"""The bare results by the keys of their requests, in JSON form."""


class InputRequiredResult(Result, kw_only=True):
    """The call needs input first. The client retries it with answers and state.

    At least one of the two members is given. `request_state` comes back as the client
    was given it, from anyone: sign it (`mcp_core.request_state`) if it steers anything.
    """

    result_type: str = "input_required"
    input_requests: InputRequests | None = None
    request_state: str | None = None

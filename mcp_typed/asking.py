"""What a tool's parameter is resolved by, and what a resolver may ask the client.

Data only: `resolve` does the asking.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from mcp_core import types as t

__all__ = ["Elicit", "ListRoots", "Question", "Resolve", "Sample"]

T = TypeVar("T")


class Resolve:
    """`Annotated[T, Resolve(function)]`: the parameter is what the function returns.

    The model never sees such a parameter. The function may take a context, parameters
    resolved in turn, and arguments of the tool by their names; it returns the value, or
    `Elicit`, `Sample` or `ListRoots` to have the client answer. It runs at most once per
    call, or once per round where a 2026-07-28 client is asked. A generator function yields the
    value, and goes on after the call.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., object]) -> None:
        if not callable(function):
            raise TypeError(f"Resolve takes a function; got {function!r}")
        self.function: Callable[..., object] = function


class Elicit(Generic[T]):
    """Have the user fill in the form that a class stands for.

    The parameter gets the instance, and no or no answer ends the call; annotated with
    `ElicitationResult[T]` it gets the outcome whatever it is.
    """

    __slots__ = ("message", "schema")

    def __init__(self, message: str, schema: type[T]) -> None:
        self.message: str = message
        self.schema: type[T] = schema


class Sample:
    """Have the client's model continue a conversation; the parameter gets a `CreateMessageResult`.

    Options are the fields of `CreateMessageRequestParams`.
    """

    __slots__ = ("params",)

    def __init__(self, messages: list[t.SamplingMessage], *, max_tokens: int, **options: Any) -> None:
        params = t.CreateMessageRequestParams(messages=messages, max_tokens=max_tokens, **options)
        self.params: t.CreateMessageRequestParams = params


class ListRoots:
    """Have the client list its roots; the parameter gets a `ListRootsResult`."""

    __slots__ = ()


Question = Elicit[Any] | Sample | ListRoots

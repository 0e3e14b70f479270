"""What the options of a client may be: looked at where they are given, in one style.

A wrong one that is only found when it is used fails in the middle of a call, with a text
about something else.
"""

from __future__ import annotations

import math

from mcp_core.codec import type_of

__all__ = ["check_callback", "check_count", "check_flag", "check_instance", "check_seconds"]


def check_seconds(name: str, value: object, *, optional: bool = True) -> None:
    """Refuse what is no time limit.

    Raises:
        TypeError: It is not a number.
        ValueError: It is not positive, or not finite.
    """
    takes = f"{name} must be a positive number of seconds" + (", or None for no limit" if optional else "")
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{takes}; got {value!r}")
    if not 0 < value < math.inf:
        raise ValueError(f"{takes}; got {value!r}")


def check_count(name: str, value: object, what: str, *, least: int = 0) -> None:
    """Refuse what is not a number of things.

    Raises:
        TypeError: It is not an integer.
        ValueError: It is less than `least`.
    """
    takes = f"{name} must be a number of {what}, {least} or more"
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{takes}; got {value!r}")
    if value < least:
        raise ValueError(f"{takes}; got {value!r}")


def check_callback(name: str, value: object, called: str) -> None:
    """Refuse what cannot be called; `called` shows how it will be.

    Raises:
        TypeError: It cannot be called.
    """
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be a function, called as {called}; got {value!r}")


def check_flag(name: str, value: object) -> None:
    """Refuse what is neither true nor false.

    Raises:
        TypeError: It is neither.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False; got {value!r}")


def check_instance(name: str, value: object, kind: type[object]) -> None:
    """Refuse what is of another type.

    Raises:
        TypeError: It is.
    """
    if value is not None and type_of(value) is not kind and not isinstance(value, kind):
        raise TypeError(f"{name} must be of mcp_core.types.{kind.__name__}; got {value!r}")

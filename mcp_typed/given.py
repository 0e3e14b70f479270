"""What authors' functions give to other functions of theirs, checked on the way.

The value of a resolver becomes an argument as it is, where its parameter takes it.
"""

from __future__ import annotations

from collections.abc import Callable

from pydantic import ConfigDict, TypeAdapter, ValidationError

from mcp_typed.foreign import adapted
from mcp_typed.report import report_result

__all__ = ["checker"]


def checker(parameter: str, wanted: object) -> Callable[[str, object], object]:
    """Return what checks the values of resolvers for a parameter of this type.

    A value of the type is passed on itself, not a copy; one that pydantic would convert is
    converted. A type that pydantic cannot check is not checked.
    """
    adapter = _adapter(wanted)

    def check(resolver: str, value: object) -> object:
        """
        Raises:
            TypeError: The parameter does not take the value.
        """
        if adapter is None:
            return value
        try:
            taken = adapter.validate_python(value)
        except ValidationError as exc:
            raise TypeError(
                f"resolver {resolver!r} gave a {type(value).__name__}, which parameter {parameter!r} does not take: "
                f"{report_result(exc)}"
            ) from None
        except Exception:  # isinstance() of a type that has no use for it, a Protocol for one
            return value
        return value if taken is value or _is_equal(taken, value) else taken

    return check


def _adapter(wanted: object) -> TypeAdapter[object] | None:
    kind = adapted(wanted)
    for config in (ConfigDict(arbitrary_types_allowed=True), None):  # models have a config of their own
        try:
            return TypeAdapter(kind, config=config)
        except Exception:
            continue
    return None


def _is_equal(taken: object, value: object) -> bool:
    """Return whether a container was copied and nothing else: its owner may go on with the original."""
    try:
        return bool(type(taken) is type(value) and taken == value)
    except Exception:
        return False

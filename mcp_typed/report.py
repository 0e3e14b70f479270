"""Validation errors as text for a model: pydantic's own report, with bounds (P-02, P-03).

Two texts, since they have two owners. Arguments are the caller's: the report shows the
value at fault, and nothing beside it. A returned value is the server's: the report says
where it does not fit and why, and shows no part of it, which may be a secret.

A peer chooses how many faults there are, and how large a value, a name and a place is, so
each of these has a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from pydantic import ValidationError

__all__ = ["places", "report_arguments", "report_result"]

LISTED: Final = 10
"""Faults that a report shows; it says how many more there are."""

SORTED_OUT: Final = 50_000
"""Faults above which a report shows none, only their number.

pydantic has no way to give the first ones: all are made Python objects, of 0.6 kB each.
"""

REASON_LENGTH: Final = 2000
"""Characters of one reason, which may list the values that are allowed, or quote one that is not."""

PLACE_LENGTH: Final = 200
"""Characters of the path to one fault, which has keys that the caller chose."""

VALUE_LENGTH: Final = 50
"""UTF-8 bytes of a value at fault, as in pydantic's own report."""

_INPUT_IS_PARENT: Final = frozenset(
    {"missing", "missing_argument", "missing_keyword_only_argument", "missing_positional_only_argument"}
)
"""Faults whose input is all that stands beside what is missing."""

_REASONS: Final = {
    "union_tag_invalid": "Input tag does not match any of the expected tags",
    "iteration_error": "Error iterating over object",
    "get_attribute_error": "Error extracting attribute",
    "mapping_type": "Input should be a valid mapping",
}
"""Reasons of pydantic that quote a part of the value, or an exception raised while it was read."""


def report_arguments(error: ValidationError) -> str:
    """Return the report on arguments: each fault with its value alone, cut in its middle."""
    return _report(error, _argument)


def report_result(error: ValidationError) -> str:
    """Return the report on a returned value: places and reasons, no values."""
    return _report(error, _result)


def places(error: ValidationError) -> str:
    """Return where the first faults are, in a line for the log."""
    return ", ".join(dict.fromkeys(_place(fault["loc"]) for fault in _first_faults(error)))


def _report(error: ValidationError, describe: Callable[[object], tuple[str, str]]) -> str:
    count = error.error_count()
    lines = [f"{count} validation error{'' if count == 1 else 's'} for {error.title}"]
    for fault in _first_faults(error):
        place = _place(fault["loc"])
        lines += [place] if place else []
        reason, about = describe(fault)
        lines.append(f"  {_cut_end(reason, REASON_LENGTH)} [type={fault['type']}, {about}]")
    left = count - (LISTED if count <= SORTED_OUT else 0)
    if left > 0:
        lines.append(f"and {left} more" if count <= SORTED_OUT else "too many to list")
    return "\n".join(lines)


def _first_faults(error: ValidationError) -> list[Any]:
    if error.error_count() > SORTED_OUT:
        return []
    return error.errors(include_url=False, include_context=False)[:LISTED]


def _argument(fault: Any) -> tuple[str, str]:
    """Return the reason, and what is shown of the value."""
    value = fault["input"]
    about = f"input_type={type(value).__name__}"
    # What is missing has no value; an empty parent has nothing to hide, and pydantic shows it.
    beside = fault["type"] in _INPUT_IS_PARENT and bool(value)
    return fault["msg"], about if beside else f"input_value={_shortened_repr(value)}, {about}"


def _result(fault: Any) -> tuple[str, str]:
    """Return the reason, and what is shown of the value: its type."""
    reason: Any = _REASONS.get(fault["type"], fault["msg"])
    return reason, f"input_type={type(fault['input']).__name__}"


def _place(path: tuple[int | str, ...]) -> str:
    """Return the path to a fault, as pydantic writes it."""
    place: str | None = None
    for item in path:
        name = _cut_end(str(item), PLACE_LENGTH)
        if isinstance(item, str) and "." in name:
            name = f"`{name}`"
        place = name if place is None else f"{place}.{name}"
        if len(place) > PLACE_LENGTH:
            return _cut_end(place, PLACE_LENGTH)
    return place or ""


def _cut_end(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}..."


# --- a value, cut in its middle -------------------------------------------------------------------


def _shortened_repr(value: Any) -> str:
    """Return the `repr` of a value of JSON, cut as pydantic cuts it; made from its ends only."""
    head = _taken(_pieces(value), VALUE_LENGTH)
    if len(head) <= VALUE_LENGTH:
        return head.decode("utf-8", "replace")
    tail = _taken(_pieces_from_end(value), VALUE_LENGTH, from_end=True)
    kept = VALUE_LENGTH // 2
    return f"{head[:kept].decode('utf-8', 'ignore')}...{tail[1 - kept :].decode('utf-8', 'ignore')}"


def _taken(pieces: Iterator[str], length: int, *, from_end: bool = False) -> bytes:
    """Just more bytes than the length, where there are as many."""
    taken = b""
    for piece in pieces:
        new = piece.encode("utf-8", "replace")
        taken = new + taken if from_end else taken + new
        if len(taken) > length:
            break
    return taken


def _pieces(value: Any) -> Iterator[str]:
    if type(value) is list:
        yield "["
        for index, item in enumerate(cast("list[Any]", value)):
            yield ", " if index else ""
            yield from _pieces(item)
        yield "]"
    elif type(value) is dict:
        yield "{"
        for index, (key, item) in enumerate(cast("dict[Any, Any]", value).items()):
            yield f"{', ' if index else ''}{_leaf(key)}: "
            yield from _pieces(item)
        yield "}"
    else:
        yield _leaf(value)


def _pieces_from_end(value: Any) -> Iterator[str]:
    if type(value) is list:
        yield "]"
        for index, item in enumerate(reversed(cast("list[Any]", value))):
            yield ", " if index else ""
            yield from _pieces_from_end(item)
        yield "["
    elif type(value) is dict:
        yield "}"
        for index, (key, item) in enumerate(reversed(cast("dict[Any, Any]", value).items())):
            yield ", " if index else ""
            yield from _pieces_from_end(item)
            yield f"{_leaf(key)}: "
        yield "{"
    else:
        yield _leaf(value)


def _leaf(value: Any) -> str:
    if type(value) is str and len(value) > 2 * VALUE_LENGTH:
        value = value[:VALUE_LENGTH] + value[-VALUE_LENGTH:]
    try:
        return repr(value)
    except Exception:  # an integer of more digits than Python writes
        return f"<unprintable {type(value).__name__} object>"

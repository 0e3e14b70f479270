"""What a docstring says: a description, and one for each parameter (P-20); and whose docstring and name it is.

Sections are read by `docstring_parser`, which is loaded when there are some.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, Final

__all__ = ["doc_of_call", "documented", "documented_object", "name_of"]

_SECTION: Final = re.compile(
    r"""^(?:
        (?:Args|Arguments|Parameters|Params|Keyword[ ]Args|Keyword[ ]Arguments):[ ]*$   # Google
        | (?:Other[ ])?Parameters[ ]*\n-{3,}[ ]*$                                          # NumPy
        | :(?:param|parameter|arg|argument|key|keyword|type)\b[^:\n]*:                     # Sphinx
    )""",
    re.MULTILINE | re.VERBOSE,
)
_UNDERLINED: Final = re.compile(r"^\S.*\n-{3,}[ ]*$", re.MULTILINE)


def documented(function: object) -> tuple[str | None, dict[str, str]]:
    """Return the description, and the descriptions of parameters by name.

    The sections about parameters leave the description; everything else stays in it as
    it was written.
    """
    doc = inspect.getdoc(function)
    if not doc or not doc.strip():
        return None, {}
    if _SECTION.search(doc) is None:
        return doc, {}
    import docstring_parser

    described = {
        parameter.arg_name.lstrip("*"): " ".join(parameter.description.split())
        for parameter in docstring_parser.parse(doc).params
        if parameter.description
    }
    return _without_sections(doc) or None, described


def doc_of_call(instance: object) -> str | None:
    """Return what is written about calling an object: at `__call__`, else at its class.

    Not what Python itself says of every `__call__`, nor of every class.
    """
    for owner in type(instance).__mro__:
        call = vars(owner).get("__call__")
        if owner is not object and call is not None and isinstance(call.__doc__, str):
            return inspect.cleandoc(call.__doc__)
    written = (vars(owner).get("__doc__") for owner in type(instance).__mro__ if owner is not object)
    return next((inspect.cleandoc(doc) for doc in written if isinstance(doc, str)), None)


def _without_sections(doc: str) -> str:
    kept: list[str] = []
    position = 0
    for found in _SECTION.finditer(doc):
        if found.start() < position:
            continue
        kept.append(doc[position : found.start()])
        position = _end_of_section(doc, found)
    kept.append(doc[position:])
    return re.sub(r"\n{3,}", "\n\n", "".join(kept)).strip()


def _end_of_section(doc: str, found: re.Match[str]) -> int:
    """Return where the section ends: at the next NumPy heading, or with the indented lines."""
    heading = found.group()
    if "\n" in heading:
        following = _UNDERLINED.search(doc, found.end())
        return len(doc) if following is None else following.start()
    end = doc.find("\n", found.end())
    while end != -1:
        line_end = doc.find("\n", end + 1)
        line = doc[end + 1 :] if line_end == -1 else doc[end + 1 : line_end]
        if line.strip() and not line.startswith((" ", "\t")):
            return end + 1
        end = line_end
    return len(doc)


def name_of(function: Callable[..., object]) -> str:
    """Return the name that a function is known by, if no other is given.

    Raises:
        ValueError: A lambda has none.
    """
    inner = documented_object(function)
    name = getattr(inner, "__name__", None) or type(inner).__name__
    if name == "<lambda>":
        raise ValueError("You must provide a name for lambda functions")
    return name


def documented_object(function: Any) -> Any:
    """Return what has the name and the docstring: the function in a partial, a callable object's class."""
    while True:
        if hasattr(function, "func") and hasattr(function, "keywords"):
            function = function.func
        elif hasattr(function, "__wrapped__") and not getattr(function, "__name__", None):  # a decorator's object
            function = function.__wrapped__
        else:
            break
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return function if getattr(function, "__name__", None) else _Callable(function)


class _Callable:
    """A callable object as if it were a function: its class's name, its own docstring or `__call__`'s."""

    def __init__(self, instance: object) -> None:
        self.__name__ = type(instance).__name__
        self.__doc__ = doc_of_call(instance)

"""The public surface as text: `python -m tests.public_surface` writes `tests/public_surface.txt`.

What is public is said in `docs/versioning.md`: the names in `__all__` of the modules below, with their
public methods, attributes and fields. A change of the listing is a change that users see.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import msgspec

__all__ = ["LISTING", "MODULES", "surface"]

MODULES: Final = (
    "mcp_core",
    "mcp_core.auth",
    "mcp_core.channel",
    "mcp_core.client",
    "mcp_core.errors",
    "mcp_core.jwt_verifier",
    "mcp_core.path_security",
    "mcp_core.request_state",
    "mcp_core.subscriptions",
    "mcp_core.testing",
    "mcp_core.threads",
    "mcp_core.transports.streamable_http",
    "mcp_core.types",
    "mcp_core.uri_templates",
    "mcp_typed",
)

LISTING: Final = Path(__file__).with_suffix(".txt")

_OURS: Final = ("mcp_core", "mcp_typed")


def surface() -> str:
    """The listing, a line for each public name."""
    lines = [line for module in MODULES for line in _of_module(module)]
    return "\n".join(lines) + "\n"


def _of_module(name: str) -> Iterator[str]:
    module = importlib.import_module(name)
    yield f"# {name}"
    for public in sorted(module.__all__):
        value: Any = getattr(module, public)
        if inspect.isclass(value):
            yield from _of_class(public, value)
        elif callable(value) and hasattr(value, "__code__"):
            yield f"{public}{_signature(value)}"
        else:
            yield f"{public}: {type(value).__name__}"
    yield ""


def _of_class(name: str, cls: type[Any]) -> Iterator[str]:
    bases = ", ".join(base.__name__ for base in cls.__bases__ if base is not object)
    yield f"class {name}({bases})"
    if issubclass(cls, msgspec.Struct):
        for field in msgspec.structs.fields(cls):
            yield f"  {name}.{field.name}{'' if field.required else ' = ...'}"
    elif "__init__" in vars(cls):
        yield f"  {name}.__init__{_signature(cls.__init__)}"
    for member, value in sorted(_members(cls).items()):
        if isinstance(value, property):
            yield f"  {name}.{member}"
        elif isinstance(value, classmethod | staticmethod):
            function = cast("Any", value).__func__
            yield f"  {name}.{member}{_signature(function)}"
        elif inspect.isfunction(value):
            yield f"  {name}.{member}{_signature(value)}"


def _members(cls: type[Any]) -> dict[str, Any]:
    """Public members that this library defines, those of bases included."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith(_OURS):
            found.update({name: value for name, value in vars(base).items() if not name.startswith("_")})
    return found


def _signature(function: Any) -> str:
    """Parameters without their annotations, which differ from one Python to the next in how they are shown."""
    shown: list[str] = []
    star = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            shown.append("*")
            star = True
        star = star or parameter.kind is parameter.VAR_POSITIONAL
        mark = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
        shown.append(mark + parameter.name + ("" if parameter.default is parameter.empty else "=..."))
    return f"({', '.join(shown)})"


if __name__ == "__main__":
    LISTING.write_text(surface())

"""How much work a JSON Schema can make of a value, known before anything is compared.

A schema comes from the server, and can ask for more than anybody has time for: a kilobyte of
references that double at each level takes hours. The library that compares cannot be interrupted,
so what it would do is counted first, by this rule:

    One subschema looks at one part of a value. It makes its own checks, hands the same part to
    the subschemas that apply *in place* (`allOf`, `$ref`, ...), and each member or item to those
    that *descend* (`properties`, `items`, ...). Members of different names, and members and items,
    are different parts: of those only the most expensive counts.

`checks(depth)` is then a bound on the checks for each value in a text that is nested so deep. It grows
with the depth where a schema refers back to itself: by a constant for a tree of models, and by a
factor where two ways lead back, so that it says by itself which recursion is affordable.

Knows JSON Schema as 2020-12 and its predecessors have it; nothing of tools. What it cannot count is
`Unaffordable`: other documents, dynamic references, `unevaluated...`, `patternProperties`. Regular
expressions cannot be counted either: a `pattern` is taken out of the schema.
Spec: JSON Schema 2020-12, core 7 to 11; server/tools, "Output Schema".
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from mcp_core.codec import JSONObject, is_array, is_object

__all__ = ["MAX_CHECKS", "MAX_STEPS", "MAX_SUBSCHEMAS", "SchemaCost", "Unaffordable"]

MAX_CHECKS: Final = 1_000_000
"""Checks that one comparison may take; about 20 ms."""

MAX_SUBSCHEMAS: Final = 2000
"""Subschemas that a schema may have: counting takes a while, too."""

MAX_STEPS: Final = 20_000
"""Subschemas that are counted, again for each level of a value, where a schema refers back to itself."""

_DIALECTS: Final = frozenset(
    {
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-06/schema",
    }
)
"""The schemas of schemas, which the library has with it. Without a `#` at their end."""

_CHECKS_OF_A_DIALECT: Final = 300
"""More than any of these makes at one place of a schema."""

_PARTS: Final = {
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"), "in_place"),
    **dict.fromkeys(("properties", "additionalProperties"), "members"),
    **dict.fromkeys(("items", "prefixItems", "additionalItems"), "items"),
    **dict.fromkeys(("contains", "propertyNames"), "everywhere"),
}
"""Keywords with subschemas, and what of a value those are handed; `everywhere` is what others are handed, too."""

_NAMED: Final = frozenset({"properties", "dependentSchemas"})
"""Keywords with an object of subschemas; the others have one, or a list."""

_UNKNOWN: Final = frozenset(
    {
        "$anchor",
        "$dynamicAnchor",
        "$dynamicRef",
        "$recursiveAnchor",
        "$recursiveRef",
        "patternProperties",
        "unevaluatedItems",
        "unevaluatedProperties",
        "dependencies",
    }
)
_LISTS: Final = frozenset({"enum", "const", "required", "dependentRequired", "type"})
"""Keywords that are checked against each of the values in them."""


class Unaffordable(Exception):
    """The cost of the schema cannot be counted, or is too much."""


class _Subschema:
    """What one subschema does: its own checks, and the numbers of those that it hands parts of a value to."""

    __slots__ = ("checks", "everywhere", "in_place", "items", "looks_through", "members")

    def __init__(self) -> None:
        self.checks = 1
        self.looks_through = False
        """Whether it looks at all that is in a value, whatever its subschemas do: `uniqueItems`."""
        self.in_place: list[int] = []
        self.members: list[int] = []
        self.items: list[int] = []
        self.everywhere: list[int] = []

    @property
    def all(self) -> list[int]:
        """The numbers of all of them."""
        return [*self.in_place, *self.members, *self.items, *self.everywhere]


class SchemaCost:
    """The cost of one schema, which loses its `pattern` keywords.

    Raises:
        Unaffordable: It cannot be counted.
    """

    def __init__(self, schema: object) -> None:
        self._root = schema
        self._all: list[_Subschema] = []
        self._numbers: dict[int, int] = {}
        self._waiting: list[tuple[int, Any]] = []
        self._number(schema)
        while self._waiting:
            number, node = self._waiting.pop()
            self._read(self._all[number], node, is_root=number == 0)
        self.is_recursive: bool = False
        """Whether it refers back to itself, so that its cost depends on how deep a value is."""
        try:
            self._order = list(TopologicalSorter(dict(enumerate(each.all for each in self._all))).static_order())
        except CycleError:
            self.is_recursive = True
            self._order = self._in_place_order()
        self._of_level = [(0, 0)] * len(self._all)
        """Of each subschema: the checks that it makes at one part of a value, and for each part below that."""
        self._levels: list[int] = []
        self._steps = 0

    def _in_place_order(self) -> list[int]:
        try:
            return list(TopologicalSorter(dict(enumerate(each.in_place for each in self._all))).static_order())
        except CycleError:
            raise Unaffordable("it applies to itself") from None

    def checks(self, depth: int) -> int:
        """Return the checks for each value in a text whose values are nested in so many others at the most.

        Raises:
            Unaffordable: There are too many for any value of this depth.
        """
        wanted = depth if self.is_recursive else 0
        while len(self._levels) <= wanted:
            self._add_level()
        return self._levels[wanted]

    def _add_level(self) -> None:
        """Count for values of one level more; all at once where nothing refers back to itself."""
        self._steps += len(self._order)
        if self._levels and self._steps > MAX_STEPS:
            raise Unaffordable("the value is nested too deeply for a schema that refers back to itself")
        after = list(self._of_level)
        parts = self._of_level if self.is_recursive else after

        def most(numbers: list[int]) -> int:
            return max((max(parts[number]) for number in numbers), default=0)

        for number in self._order:
            each = self._all[number]
            here = each.checks + sum(after[other][0] for other in each.in_place)
            below = max(most(each.members), most(each.items)) + sum(max(parts[other]) for other in each.everywhere)
            below += each.looks_through + sum(after[other][1] for other in each.in_place)
            after[number] = here, below
        checks = max(after[0])
        if checks > MAX_CHECKS:
            raise Unaffordable("it takes too many checks")
        self._of_level = after
        self._levels.append(checks)

    # --- what the subschemas are ------------------------------------------------------------------

    def _number(self, node: Any) -> int:
        """Return the number of a subschema, which is read later if it is new."""
        if not is_object(node):  # true, false, or an error that the library finds
            node = _ANYTHING
        number = self._numbers.get(id(node))
        if number is None:
            number = self._numbers[id(node)] = len(self._all)
            if number >= MAX_SUBSCHEMAS:
                raise Unaffordable(f"it has more than {MAX_SUBSCHEMAS} subschemas")
            self._all.append(_Subschema())
            self._waiting.append((number, node))
        return number

    def _read(self, subschema: _Subschema, node: JSONObject, *, is_root: bool) -> None:
        if isinstance(node.get("pattern"), str):
            del node["pattern"]
        for keyword, value in node.items():
            if keyword in _UNKNOWN or (keyword == "$id" and not is_root):
                raise Unaffordable(f"it has {keyword}")
            if keyword == "multipleOf" and not _is_small(value):
                raise Unaffordable("it has a multipleOf of many digits")
            subschema.checks += 1
            if keyword in _PARTS:
                inner = _subschemas(keyword, value)
                getattr(subschema, _PARTS[keyword]).extend(map(self._number, inner))
                subschema.checks += len(inner)
            elif keyword == "$ref":
                self._read_reference(subschema, value)
            elif keyword == "uniqueItems":
                subschema.looks_through = True
            elif keyword in _LISTS:
                subschema.checks += _size(value)

    def _read_reference(self, subschema: _Subschema, reference: Any) -> None:
        if not isinstance(reference, str):
            raise Unaffordable("it has a $ref that is not a string")
        if reference.removesuffix("#") in _DIALECTS:
            subschema.checks += _CHECKS_OF_A_DIALECT
            return
        if reference not in ("#", "") and not reference.startswith("#/"):
            raise Unaffordable("it refers to another document")
        node: Any = self._root
        for part in reference.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if "%" in name or (is_object(node) and node is not self._root and "$id" in node):
                raise Unaffordable(f"it has the reference {reference}")
            if is_object(node) and name in node:
                node = node[name]
            elif is_array(node) and name.isdecimal() and int(name) < len(node):
                node = node[int(name)]
            else:
                raise Unaffordable("it refers to nothing")
        subschema.in_place.append(self._number(node))


_ANYTHING: Final[JSONObject] = {}


def _subschemas(keyword: str, value: Any) -> list[Any]:
    if keyword in _NAMED:
        return list(value.values()) if is_object(value) else []
    return value if is_array(value) else [value]


def _is_small(number: object) -> bool:
    return isinstance(number, int | float) and abs(number) < 2**63


def _size(value: object) -> int:
    """Return how many values there are in a plain JSON value."""
    waiting, size = [value], 0
    while waiting:
        node = waiting.pop()
        size += 1
        if is_object(node):
            waiting.extend(node.values())
        elif is_array(node):
            waiting.extend(node)
    return size

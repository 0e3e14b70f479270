"""URI templates: expanded to URIs, and matched against them.

Owns the syntax, expansion up to level 4, and a match that undoes expansion. A template that can be expanded, but whose
variables cannot be distinguished in a URI, is refused when it is parsed, with the reason. Knows nothing of resources.
Spec: RFC 6570; server/resources, "Resource Templates".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, cast
from urllib.parse import unquote_to_bytes

__all__ = ["InvalidUriTemplate", "TemplateIndex", "UriTemplate", "expand"]

# Theory of operation
#
# A match reads a URI once, without backtracking. A template is flattened to literals and variables, of which one at the
# most may hold several segments (`{+path}`, `{/parts*}`):
#
#     docs://{area}/{+path}/{name}{.kind}
#     back:  "/" name "." kind      from the right, each variable up to the last place of the literal before it
#     front: "docs://" area "/"     from the left, each variable up to the first place of the literal after it
#     multi: path                   what is left between the two
#
# Without such a variable everything is `back`: the last places of the literals make the first variables as long as they
# can be, as a greedy regular expression would. A variable never holds a character at which its kind ends (`_ENDS`), so
# the place nearest to it is the only one worth trying.
#
# A `{?a,b}` at the end is a query in any order, and parsed as one. Values are percent-decoded once, after the split.

MAX_TEMPLATE: Final = 8192
"""Characters of a template."""

MAX_VARIABLES: Final = 256
"""Variables of a template."""

MAX_URI: Final = 65_536
"""Characters of a URI that is matched; a longer one matches nothing."""

Value: TypeAlias = str | Sequence[str]
Matched: TypeAlias = dict[str, str | list[str]]
T = TypeVar("T")


class InvalidUriTemplate(ValueError):
    """A template that has no meaning, or none that can be undone."""

    def __init__(self, message: str, template: str, position: int | None = None) -> None:
        super().__init__(message if position is None else f"{message} at position {position}")
        self.template: str = template
        self.position: int | None = position
        """Where in the template, from 0; `None` where it is about the whole."""


class _Operator(NamedTuple):
    """How an expression expands (RFC 6570, appendix A)."""

    first: str
    separator: str
    is_named: bool
    if_empty: str
    """What follows the name of an empty value."""
    allows_reserved: bool


_OPERATORS: Final = {
    "": _Operator("", ",", False, "", False),
    "+": _Operator("", ",", False, "", True),
    "#": _Operator("#", ",", False, "", True),
    ".": _Operator(".", ".", False, "", False),
    "/": _Operator("/", "/", False, "", False),
    ";": _Operator(";", ";", True, "", False),
    "?": _Operator("?", "&", True, "=", False),
    "&": _Operator("&", "&", True, "=", False),
}


class _Variable(NamedTuple):
    """One variable of an expression."""

    name: str
    explodes: bool
    prefix: int | None
    """Characters of its value that are expanded; `None`: all."""


class _Expression(NamedTuple):
    """What stands in one pair of braces."""

    operator: str
    variables: tuple[_Variable, ...]
    position: int


_NAME: Final = re.compile(r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*")


# --- syntax ---------------------------------------------------------------------------------------------


def _parse(template: str) -> list[str | _Expression]:
    """Return literals and expressions, in order.

    Raises:
        InvalidUriTemplate: Braces or names are wrong.
    """
    if len(template) > MAX_TEMPLATE:
        raise InvalidUriTemplate(f"Template exceeds maximum length of {MAX_TEMPLATE}", template[:100])
    parts: list[str | _Expression] = []
    position = number = 0
    while position < len(template):
        brace = template.find("{", position)
        literal = template[position:] if brace < 0 else template[position:brace]
        if "}" in literal:
            where = position + literal.index("}")
            raise InvalidUriTemplate("Unopened brace: write %7D for a literal one", template, where)
        if literal:
            parts.append(literal)
        if brace < 0:
            break
        end = template.find("}", brace)
        if end < 0:
            raise InvalidUriTemplate("Unclosed expression", template, brace)
        expression = _expression(template, template[brace + 1 : end], brace)
        number += len(expression.variables)
        if number > MAX_VARIABLES:
            raise InvalidUriTemplate(f"Template exceeds maximum of {MAX_VARIABLES} variables", template)
        parts.append(expression)
        position = end + 1
    return parts


def _expression(template: str, body: str, position: int) -> _Expression:
    if not body:
        raise InvalidUriTemplate("Empty expression", template, position)
    operator = body[0] if body[0] in "+#./;?&" else ""
    if not body[len(operator) :]:
        raise InvalidUriTemplate("Expression has operator but no variables", template, position)
    variables = [_variable(template, text, position) for text in body[len(operator) :].split(",")]
    return _Expression(operator, tuple(variables), position)


def _variable(template: str, text: str, position: int) -> _Variable:
    name, colon, limit = text.partition(":")
    explodes = name.endswith("*")
    name = name.removesuffix("*")
    if _NAME.fullmatch(name) is None:
        raise InvalidUriTemplate(f"Invalid variable name {name!r}", template, position)
    if not colon:
        return _Variable(name, explodes, None)
    if explodes or re.fullmatch(r"[1-9][0-9]{0,3}", limit) is None:
        hint = f"; write {{+{name}}} for a value with slashes"
        raise InvalidUriTemplate(f"Invalid modifier {colon + limit!r} of {name!r}{hint}", template, position)
    return _Variable(name, explodes, int(limit))


# --- expansion ------------------------------------------------------------------------------------------

_ESCAPED: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_RESERVED: Final = _UNRESERVED | frozenset(":/?#[]@!$&'()*+,;=")


def _encode(text: str, *, allows_reserved: bool) -> str:
    if not allows_reserved:
        return "".join(char if char in _UNRESERVED else _escape(char) for char in text)
    encoded: list[str] = []
    position = 0
    for escape in _ESCAPED.finditer(text):  # a triplet that is there already is kept (RFC 6570, 3.2.3)
        encoded += [c if c in _RESERVED else _escape(c) for c in text[position : escape.start()]]
        encoded.append(escape[0])
        position = escape.end()
    encoded += [c if c in _RESERVED else _escape(c) for c in text[position:]]
    return "".join(encoded)


def _escape(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "replace"))


def expand(template: str, variables: Mapping[str, Any]) -> str:
    """Return the URI that a template of level 4 stands for with these values.

    Values are strings, numbers, sequences of such, or mappings to such (associative arrays); `None`, an empty sequence
    and a missing variable are undefined. Literals stay as they are written.

    Raises:
        InvalidUriTemplate: Braces or names are wrong.
    """
    return "".join(part if isinstance(part, str) else _expanded(part, variables) for part in _parse(template))


def _expanded(expression: _Expression, variables: Mapping[str, Any]) -> str:
    operator = _OPERATORS[expression.operator]
    found = [
        text
        for variable in expression.variables
        if _is_defined(value := variables.get(variable.name))
        for text in _texts(operator, variable, value)
    ]
    return operator.first + operator.separator.join(found) if found else ""


def _is_defined(value: object) -> bool:
    """Return whether a value expands to anything: `None` and empty collections do not."""
    if isinstance(value, str):
        return True
    is_collection = isinstance(value, Mapping | Sequence)
    return value is not None and not (is_collection and not value)


def _texts(operator: _Operator, variable: _Variable, value: Any) -> Iterator[str]:
    """Yield what one variable gives to its expression: one text, or one for each element if it explodes."""

    def encode(text: object) -> str:
        return _encode(str(text), allows_reserved=operator.allows_reserved)

    def named(name: str, text: str) -> str:
        if not operator.is_named:
            return text
        return f"{name}={text}" if text else f"{name}{operator.if_empty}"

    if isinstance(value, Mapping):
        pairs = [(encode(key), encode(item)) for key, item in cast("Mapping[str, object]", value).items()]
        if variable.explodes:
            yield from (named(key, item) if operator.is_named else f"{key}={item}" for key, item in pairs)
        else:
            yield named(variable.name, ",".join(f"{key},{item}" for key, item in pairs))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        items = [encode(item) for item in cast("Sequence[object]", value)]
        if variable.explodes:
            yield from (named(variable.name, item) for item in items)
        else:
            yield named(variable.name, ",".join(items))
    else:
        yield named(variable.name, encode(str(value)[: variable.prefix]))


# --- matching -------------------------------------------------------------------------------------------

_ENDS: Final = "/?#&,"
"""Characters that a plain variable never holds."""


class _Segment(NamedTuple):
    """A variable that holds one segment."""

    name: str
    ends: str = _ENDS


class _Parameter(NamedTuple):
    """`;name` or `;name=value`."""

    name: str
    ends: str = f"{_ENDS};"


class _Segments(NamedTuple):
    """The variable that holds several segments: `separator` is what each begins with, empty for one text."""

    name: str
    separator: str
    ends: str


_Atom: TypeAlias = str | _Segment | _Parameter | _Segments


def _atoms(template: str, parts: list[str | _Expression]) -> Iterator[_Atom]:
    """Yield what a URI is read by, in order.

    Raises:
        InvalidUriTemplate: A modifier cannot be undone.
    """
    for part in parts:
        if isinstance(part, str):
            yield part
            continue
        operator = part.operator
        for number, (name, explodes, prefix) in enumerate(part.variables):
            if prefix is not None:
                text = f"Prefix modifier {{var:N}} is not supported (in '{name}:{prefix}' at position {part.position})"
                raise InvalidUriTemplate(text, template)
            if explodes and operator not in ("/", ".", ";"):
                raise InvalidUriTemplate(
                    f"Explode modifier on {{{operator}{name}*}} is not supported for matching", template
                )
            if operator == ";":
                yield _Segments(name, ";", ";/?#&,") if explodes else _Parameter(name)
            elif explodes:
                yield _Segments(name, operator, _ENDS if operator == "/" else "./?#&,")
            elif operator in ("+", "#"):
                before = "," if number else _OPERATORS[operator].first
                yield from (before,) if before else ()
                yield _Segments(name, "", "?#" if operator == "+" else "")
            else:
                symbol = _OPERATORS[operator]
                literal = (symbol.separator if number else symbol.first) + (f"{name}=" if symbol.is_named else "")
                yield from (literal,) if literal else ()
                yield _Segment(name, f"{_ENDS}." if operator == "." else _ENDS)


class UriTemplate:
    """One template, which can be expanded and matched: each is the other's inverse.

    `variables` are its names in order, `query` those of a `{?...}` at its end, which a URI may leave out.
    """

    __slots__ = ("_back", "_front", "_multi", "_parts", "prefix", "query", "specificity", "template", "variables")

    def __init__(self, template: str) -> None:
        """
        Raises:
            InvalidUriTemplate: It has no meaning, or its variables cannot be distinguished in a URI.
        """
        self.template: str = template
        self._parts = _parse(template)
        path, query = _split_query(template, self._parts)
        self.query: tuple[str, ...] = query
        atoms = _joined(_atoms(template, path))
        names = [atom.name for atom in atoms if not isinstance(atom, str)]
        self.variables: tuple[str, ...] = (*names, *self.query)
        _check(template, atoms, self.variables)
        where = next((at for at, atom in enumerate(atoms) if isinstance(atom, _Segments)), -1)
        self._front = tuple(atoms[:where]) if where >= 0 else ()
        self._multi = cast("_Segments", atoms[where]) if where >= 0 else None
        self._back = tuple(atoms[where + 1 :])
        self.prefix: str = atoms[0] if atoms and isinstance(atoms[0], str) else ""
        """What every URI that matches begins with."""
        self.specificity: tuple[tuple[int, int], ...] = tuple(map(_rank, atoms))
        """Orders templates: of those that match a URI the least one says most about it."""

    @classmethod
    def parse(cls, template: str) -> UriTemplate:
        """Return the template. Raises as the constructor."""
        return cls(template)

    @staticmethod
    def is_template(text: str) -> bool:
        """Return whether a text has an expression in braces, or begins one."""
        return "{" in text

    @property
    def variable_names(self) -> list[str]:
        """The names of all variables, in order."""
        return list(self.variables)

    @property
    def query_variable_names(self) -> list[str]:
        """Those that a URI may leave out."""
        return list(self.query)

    def __repr__(self) -> str:
        return f"UriTemplate({self.template!r})"

    def expand(self, variables: Mapping[str, Value]) -> str:
        """Return the URI with these values; missing ones are left out.

        Raises:
            TypeError: A value is neither a string nor a sequence of strings.
        """
        for name, value in variables.items():
            if not _is_expandable(value):
                raise TypeError(f"Variable {name!r} must be str or a sequence of str, got {type(value).__name__}")
        return "".join(part if isinstance(part, str) else _expanded(part, variables) for part in self._parts)

    def match(self, uri: str) -> Matched | None:
        """Return the values in a URI, percent-decoded once; `None` if it is not one of this template.

        The values of a query that is missing are missing. Cost is linear in the URI.
        """
        if len(uri) > MAX_URI:
            return None
        query = ""
        if self.query:
            uri, _, query = uri.partition("#")[0].partition("?")
        found = self._split(uri)
        if found is None:
            return None
        values: Matched = {}
        for name, value in found.items():
            decoded = _decoded(value)
            if decoded is None:
                return None
            values[name] = decoded
        return _with_query(values, self.query, query)

    def _split(self, uri: str) -> Matched | None:
        """Return the values as they are written."""
        found: Matched = {}
        end = _from_right(self._back, uri, found, is_all=self._multi is None)
        if end is None or self._multi is None:
            return found if end == 0 else None
        start = _from_left(self._front, uri[:end], self._multi, found)
        middle = None if start is None else _segments(self._multi, uri[start:end])
        if middle is None:
            return None
        found[self._multi.name] = middle
        return found


def _is_expandable(value: object) -> bool:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return all(isinstance(each, str) for each in cast("Sequence[object]", value))
    return isinstance(value, str)


def _split_query(template: str, parts: list[str | _Expression]) -> tuple[list[str | _Expression], tuple[str, ...]]:
    """Return the parts before a query at the end, and the names in that.

    Raises:
        InvalidUriTemplate: There are two, or something else comes after it.
    """
    at = [number for number, part in enumerate(parts) if isinstance(part, _Expression) and part.operator == "?"]
    if not at:
        return parts, ()
    if len(at) > 1:
        text = "Template contains more than one {?...} expression; use {?a,b} or {?a}{&b} for multiple query parameters"
        raise InvalidUriTemplate(text, template)
    names: list[str] = []
    for part in parts[at[0] :]:
        if isinstance(part, str) or part.operator not in "?&":
            raise InvalidUriTemplate("{?...} must end the template, for {&...} alone may follow it", template)
        for name, explodes, prefix in part.variables:
            if explodes or prefix is not None:
                text = f"Explode modifier on {{{part.operator}{name}*}} is not supported for matching"
                raise InvalidUriTemplate(text, template)
            names.append(name)
    return parts[: at[0]], tuple(names)


def _joined(atoms: Iterator[_Atom]) -> list[_Atom]:
    """Return the atoms with neighbouring literals made one."""
    joined: list[_Atom] = []
    for atom in atoms:
        if isinstance(atom, str) and joined and isinstance(joined[-1], str):
            joined[-1] += atom
        else:
            joined.append(atom)
    return joined


def _check(template: str, atoms: list[_Atom], names: tuple[str, ...]) -> None:
    """
    Raises:
        InvalidUriTemplate: Its variables cannot be distinguished in a URI.
    """
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise InvalidUriTemplate(
            f"Variable {twice!r} appears more than once; repeated variables are not supported", template
        )
    if sum(isinstance(atom, _Segments) for atom in atoms) > 1:
        text = "Template contains more than one multi-segment variable ({+var}, {#var}, or explode modifier)"
        raise InvalidUriTemplate(f"{text}; matching would be ambiguous", template)
    for before, after in pairwise(atoms):
        if isinstance(before, str) or isinstance(after, str | _Parameter):
            continue
        if isinstance(after, _Segments) and after.separator and after.separator in before.ends:
            continue  # the separator that it brings ends the variable before
        raise InvalidUriTemplate(
            f"Variables {before.name!r} and {after.name!r} are adjacent with no literal separator; matching cannot "
            "determine where one ends and the other begins. Add a literal between them or use a single variable.",
            template,
        )


def _rank(atom: _Atom) -> tuple[int, int]:
    if isinstance(atom, str):
        return 0, -len(atom)
    return (2, 0) if isinstance(atom, _Segments) else (1, 0)


def _from_left(atoms: tuple[_Atom, ...], uri: str, multi: _Segments, found: Matched) -> int | None:
    """Read what stands before the variable of several segments; return where that begins."""
    position = 0
    for at, atom in enumerate(atoms):
        if isinstance(atom, str):
            if not uri.startswith(atom, position):
                return None
            position += len(atom)
            continue
        begin = position + 1 if isinstance(atom, _Parameter) else position
        end = _end_of(uri, begin, atom.ends)
        known = _known_after(atoms, at)
        if known:
            # What is known up to the end of `atoms` has to be followed by the separator of `multi`: its last place
            # before that. Elsewhere other variables follow, which need room: the first place.
            find = uri.rfind if multi.separator and at + 2 == len(atoms) else uri.find
            end = find(known, begin, end + len(known))
        if end < 0 or not _is_value(cast("_Segment", atom), uri[position:end], found):
            return None
        position = end
    return position


def _known_after(atoms: tuple[_Atom, ...], at: int) -> str:
    """Return the text that has to follow a variable: a literal, and how a `;name` after it begins."""
    known = ""
    for atom in atoms[at + 1 : at + 3]:
        if isinstance(atom, _Parameter):
            return f"{known};{atom.name}"
        if known or not isinstance(atom, str):
            break
        known = atom
    return known


def _from_right(atoms: tuple[_Atom, ...], uri: str, found: Matched, *, is_all: bool) -> int | None:
    """Read from the end of a URI; return where the first of these atoms begins."""
    position = len(uri)
    waiting: _Segment | None = None
    for atom in reversed(atoms):
        if isinstance(atom, _Segment):
            waiting = atom
            continue
        if isinstance(atom, _Parameter):
            begin = uri.rfind(";", 0, position)
            end = position if waiting is None else _end_of(uri, begin + 1, atom.ends)
            if begin < 0 or not _is_value(atom, uri[begin:end], found):
                return None
        else:
            literal = cast("str", atom)
            begin = position - len(literal) if waiting is None else uri.rfind(literal, 0, position)
            end = begin + len(literal)
            if begin < 0 or not uri.startswith(literal, begin):
                return None
        if waiting is not None and not _is_value(waiting, uri[end:position], found):
            return None
        waiting, position = None, begin
    if waiting is not None:
        # Only the first of all variables may begin where the URI does.
        if not is_all or not _is_value(waiting, uri[:position], found):
            return None
        position = 0
    return position


def _is_value(atom: _Segment | _Parameter, text: str, found: Matched) -> bool:
    """Note the value in a text, if the variable can hold it."""
    value = text
    if isinstance(atom, _Parameter):
        name, _, value = text[1:].partition("=")
        if text[:1] != ";" or name != atom.name:
            return False
    found[atom.name] = value
    return _end_of(value, 0, atom.ends) == len(value)


def _end_of(text: str, start: int, ends: str) -> int:
    """Return where the first of these characters is, or the end of the text."""
    return min((at for char in ends if (at := text.find(char, start)) >= 0), default=len(text))


def _segments(atom: _Segments, text: str) -> str | list[str] | None:
    if not atom.separator:
        return text if _end_of(text, 0, atom.ends) == len(text) else None
    if not text:
        return []
    items = text.split(atom.separator)
    if items.pop(0):
        return None
    if atom.separator == ";":
        pairs = [item.partition("=") for item in items]
        if any(name != atom.name for name, _, _ in pairs):
            return None
        items = [value for _, _, value in pairs]
    if any(_end_of(item, 0, atom.ends) < len(item) for item in items):
        return None
    return items


_BROKEN: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def _decoded(value: str | list[str]) -> Any:
    """Return a value without its escapes; `None` where they are broken."""
    if isinstance(value, list):
        items = [_decoded(item) for item in value]
        return None if None in items else items
    if "%" not in value:
        return value
    if _BROKEN.search(value):
        return None
    try:
        return unquote_to_bytes(value).decode("utf-8")
    except UnicodeDecodeError:
        return None


def _with_query(values: Matched, names: tuple[str, ...], query: str) -> Matched | None:
    """Add the values of a query: in any order, the first of several, unknown ones ignored."""
    if not query:
        return values
    wanted = set(names)  # a URI has many pairs, and a template may have many names
    for pair in query.split("&"):
        name, _, text = pair.partition("=")
        if name in wanted:
            wanted.remove(name)
            value = _decoded(text)
            if value is None:
                return None
            values[name] = value
    return values


# --- many templates -----------------------------------------------------------------------------------------


class TemplateIndex(Generic[T]):
    """Templates with what belongs to each, found by URI: the most specific first, then the first added.

    A look-up reads the templates whose literal prefix the URI begins with, however many others there are.
    """

    def __init__(self) -> None:
        # By prefix; each list in the order in which its templates are tried.
        self._by_prefix: dict[str, list[tuple[UriTemplate, T]]] = {}
        # Lengths of these prefixes, ascending, each once.
        self._lengths: list[int] = []

    def __len__(self) -> int:
        return sum(map(len, self._by_prefix.values()))

    def add(self, template: UriTemplate, value: T) -> None:
        """Add a template, after those that are as specific."""
        entries = self._by_prefix.setdefault(template.prefix, [])
        at = bisect_right(entries, template.specificity, key=lambda entry: entry[0].specificity)
        entries.insert(at, (template, value))
        self._lengths = sorted({*self._lengths, len(template.prefix)})

    def remove(self, template: UriTemplate) -> None:
        """Remove a template by its text. Raises `KeyError` if it is not there."""
        entries = self._by_prefix.get(template.prefix, [])
        at = next((at for at, (each, _) in enumerate(entries) if each.template == template.template), None)
        if at is None:
            raise KeyError(template.template)
        del entries[at]
        if not entries:
            del self._by_prefix[template.prefix]
            self._lengths = sorted(set(map(len, self._by_prefix)))

    def match(self, uri: str) -> tuple[T, Matched] | None:
        """Return what belongs to the template that this URI is of, with the values of its variables."""
        for length in reversed(self._lengths[: bisect_right(self._lengths, len(uri))]):
            for template, value in self._by_prefix.get(uri[:length], ()):
                found = template.match(uri)
                if found is not None:
                    return value, found
        return None

"""Structured content compared with the output schema that its tool was listed with (R-OUT-02).

By `jsonschema`, where it is installed. Both the schema and the value come from the server, so
neither may choose how long the client is busy: both are bounded in size and the comparison in
time, no other schema is fetched, and regular expressions are not tried (`pattern` is left out;
a schema with `patternProperties` is not used). What cannot be compared passes.
Spec: server/tools, "Output Schema".
"""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, Final, Protocol

import anyio
import anyio.to_thread
from msgspec import Raw

from mcp_core import codec
from mcp_core import types as t
from mcp_core.errors import InvalidResult, MCPCoreError
from mcp_core.journal import Journal, shown

__all__ = ["LIST_SECONDS", "MAX_SCHEMA", "MAX_SCHEMAS", "MAX_SECONDS", "MAX_VALUE", "OutputSchemas"]

MAX_SCHEMA: Final = 256 * 2**10
"""Bytes that an output schema may have to be used."""

MAX_SCHEMAS: Final = 16 * 2**20
"""Bytes that those of one server may have together; of more tools, the content is not compared."""

MAX_VALUE: Final = 2**20
"""Bytes that structured content may have to be compared."""

MAX_SECONDS: Final = 0.25
"""CPU seconds that one comparison may take."""

LIST_SECONDS: Final = 10.0
"""Seconds that listing the tools may take, while the result of a call is held back for it."""

_journal = Journal(__name__)

Pages = Callable[[], AsyncGenerator[list[t.Tool], None]]
"""Lists the tools, page by page."""


class _Validator(Protocol):
    def iter_errors(self, instance: Any) -> Iterator[Any]: ...


class _TooLong(Exception):
    """The comparison has had its time."""


class OutputSchemas:
    """The output schemas of one server's tools, as far as they were listed."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._schemas: dict[str, bytes | None] = {}
        self._bytes = 0
        self._validators: dict[str, _Validator | None] = {}
        self._has_listed = False

    def learn(self, tools: Iterable[t.Tool]) -> None:
        """Note the schemas of tools that were listed."""
        if not self._enabled:
            return
        for tool in tools:
            schema = None if tool.output_schema is None else codec.encode(tool.output_schema)
            self._note(tool.name, schema if schema is None or len(schema) <= MAX_SCHEMA else None)

    def _note(self, name: str, schema: bytes | None) -> None:
        if name in self._schemas and self._schemas[name] == schema:
            return
        size = len(name) + len(schema or b"")
        if self._bytes + size > MAX_SCHEMAS:
            return
        self._bytes += size - len(self._schemas.get(name) or b"")
        self._schemas[name] = schema
        self._validators.pop(name, None)

    def forget(self) -> None:
        """Forget them all: the list has changed, or the server is another one."""
        self._schemas.clear()
        self._validators.clear()
        self._bytes = 0
        self._has_listed = False

    async def check(self, name: str, content: Any, pages: Pages) -> None:
        """Compare what a tool has given with its schema; the tools are listed once if it is not known.

        Raises:
            InvalidResult: It does not fit.
        """
        if not self._enabled:
            return
        make = await _library()
        if make is None:
            self._enabled = False
            return
        if name not in self._schemas and not self._has_listed:
            await self._list(pages)
        value = codec.decode_any(content) if isinstance(content, Raw) else codec.to_json(content)
        validator = self._validator(name, make)
        if validator is None or len(codec.encode(value)) > MAX_VALUE:
            return
        fault = self._fault(name, validator, value)
        if fault is not None:
            raise InvalidResult(f"the structured content of tool {name!r} does not fit its output schema: {fault}")

    async def _list(self, pages: Pages) -> None:
        self._has_listed = True  # once, whatever comes of it
        try:
            with anyio.move_on_after(LIST_SECONDS):
                async for page in pages():
                    self.learn(page)
        except MCPCoreError as exc:
            _journal.debug("the output schemas could not be listed: %s", shown(exc))

    def _validator(self, name: str, make: Callable[[Any], _Validator | None]) -> _Validator | None:
        schema = self._schemas.get(name)
        if schema is None:
            return None
        if name not in self._validators:
            self._validators[name] = make(codec.decode_any(schema))
        return self._validators[name]

    def _fault(self, name: str, validator: _Validator, value: Any) -> str | None:
        """What is wrong with a value, if anything is, and can be found out."""
        try:
            _clock.start()
            error = next(iter(validator.iter_errors(value)), None)
        except Exception as exc:
            # A schema that is none, one that refers to others, one that takes too long.
            self._validators[name] = None
            _journal.warning("the output schema of %s cannot be used: %s", shown(name), shown(repr(exc)))
            return None
        if error is None:
            return None
        return f"{shown(error.json_path)}: {shown(error.message)}"


class _Clock(threading.local):
    """The time that one comparison has, looked at with each keyword. CPU time: a busy machine is no fault."""

    def __init__(self) -> None:
        self._ends = 0.0

    def start(self) -> None:
        self._ends = time.thread_time() + MAX_SECONDS

    def look(self) -> None:
        if time.thread_time() > self._ends:
            raise _TooLong(f"the comparison takes longer than {MAX_SECONDS} s")


_clock: Final = _Clock()
"""One for each thread: a comparison is never interrupted by another on its event loop."""


async def _library() -> Callable[[Any], _Validator | None] | None:
    """What makes validators; `None` without `jsonschema`. It takes a while to load, so not on the event loop."""
    return await anyio.to_thread.run_sync(_load) if not _load.cache_info().currsize else _load()


@lru_cache(maxsize=1)
def _load() -> Callable[[Any], _Validator | None] | None:
    try:
        validators: Any = import_module("jsonschema.validators")
        # The dialects of JSON Schema themselves, from files; whatever else is referred to is not found.
        registry: Any = import_module("jsonschema_specifications").REGISTRY
    except ImportError:
        return None
    return partial(_made, validators, registry)


def _made(validators: Any, registry: Any, schema: Any) -> _Validator | None:
    """A validator of the schema, with its keywords under the clock; `None` if it is not to be used."""
    if _has_patterns(schema):
        return None
    base: Any = validators.validator_for(schema, default=validators.Draft202012Validator)
    validator: _Validator = _timed(validators, base)(schema, registry=registry)
    return validator


@lru_cache(maxsize=16)
def _timed(validators: Any, base: Any) -> Any:
    keywords = {name: _under_the_clock(check) for name, check in base.VALIDATORS.items()}
    keywords["pattern"] = _nothing
    keywords["uniqueItems"] = _unique
    return validators.extend(base, keywords)


def _under_the_clock(check: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    def timed(validator: Any, keyword: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _clock.look()
        yield from check(validator, keyword, instance, schema) or ()

    return timed


def _nothing(validator: Any, keyword: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Find no fault: the server's regular expression could take for ever."""
    return iter(())


def _unique(validator: Any, keyword: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """`uniqueItems` in linear time: the library compares every item with every other."""
    if keyword is True and isinstance(instance, list):
        texts = {codec.canonical(item) for item in instance}  # pyright: ignore[reportUnknownVariableType]
        if len(texts) < len(instance):  # pyright: ignore[reportUnknownArgumentType]
            from jsonschema.exceptions import ValidationError

            yield ValidationError("the items are not unique")


def _has_patterns(schema: Any) -> bool:
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if codec.is_object(node):
            if "patternProperties" in node:
                return True
            waiting.extend(node.values())
        elif codec.is_array(node):
            waiting.extend(node)
    return False

"""Structured content compared with the output schema that its tool was listed with (R-OUT-02).

By `jsonschema-rs`, where it is installed. Both the schema and the value come from the server, so
neither may choose how long the client is busy: both are bounded in size, what the comparison costs
is known before it is made (`schema_cost`), and no other schema is fetched. What cannot be compared
passes.
Spec: server/tools, "Output Schema".
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

import anyio
import anyio.to_thread
from msgspec import Raw

from mcp_core import codec
from mcp_core import types as t
from mcp_core.client.schema_cost import MAX_CHECKS, SchemaCost, Unaffordable
from mcp_core.errors import InvalidResult, MCPCoreError
from mcp_core.queue_logger import QueueLogger, printable

__all__ = ["LIST_SECONDS", "MAX_SCHEMA", "MAX_SCHEMAS", "MAX_VALUE", "OutputSchemas"]

MAX_SCHEMA: Final = 128 * 2**10
"""Bytes that an output schema may have to be used."""

MAX_SCHEMAS: Final = 16 * 2**20
"""Bytes that those of one server may have together; of more tools, the content is not compared."""

MAX_VALUE: Final = 2**20
"""Bytes that structured content may have to be compared."""

LIST_SECONDS: Final = 10.0
"""Seconds that listing the tools may take, while the result of a call is held back for it."""

_log = QueueLogger(__name__)

Pages = Callable[[], AsyncGenerator[list[t.Tool], None]]
"""Lists the tools, page by page."""


class OutputSchemas:
    """The output schemas of one server's tools, as far as they were listed."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._schemas: dict[str, bytes | None] = {}
        self._bytes = 0
        self._comparisons: dict[str, _Comparison | None] = {}
        """Made when a tool is called first; `None` where its schema is not used."""
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
        self._comparisons.pop(name, None)

    def forget(self) -> None:
        """Forget them all: the list has changed, or the server is another one."""
        self._schemas.clear()
        self._comparisons.clear()
        self._bytes = 0
        self._has_listed = False

    async def check(self, name: str, content: object, pages: Pages) -> None:
        """Compare what a tool has given with its schema; the tools are listed once if it is not known.

        Raises:
            InvalidResult: It does not fit.
        """
        if not self._enabled:
            return
        if name not in self._comparisons:
            await self._prepare(name, pages)
        comparison = self._comparisons.get(name)
        if comparison is None:
            return
        fault = comparison.fault(content)
        if fault is not None:
            raise InvalidResult(f"the structured content of tool {name!r} does not fit its output schema: {fault}")

    async def _prepare(self, name: str, pages: Pages) -> None:
        """Find out how the content of a tool is compared."""
        # The library takes a while to load, so not on the event loop.
        library = _load() if _load.cache_info().currsize else await anyio.to_thread.run_sync(_load)
        if library is None:
            self._enabled = False
            return
        if name not in self._schemas and not self._has_listed:
            await self._list(pages)
        if name not in self._schemas:
            return  # it may be listed later
        schema = self._schemas[name]
        self._comparisons[name] = None
        if schema is not None:
            try:
                self._comparisons[name] = _Comparison(library, name, codec.decode_any(schema))
            except Exception as exc:  # what the library raises for schemas that are none is not documented
                _log.warning("the output schema of %s cannot be used: %s", printable(name), printable(str(exc)))

    async def _list(self, pages: Pages) -> None:
        self._has_listed = True  # once, whatever comes of it
        try:
            with anyio.move_on_after(LIST_SECONDS):
                async for page in pages():
                    self.learn(page)
        except MCPCoreError as exc:
            _log.debug("the output schemas could not be listed: %s", printable(exc))


class _Comparison:
    """One schema, ready to be compared with values, as far as that is affordable."""

    __slots__ = ("_cost", "_has_said", "_invalid", "_name", "_validate")

    def __init__(self, library: Any, name: str, schema: object) -> None:
        """
        Raises:
            Unaffordable: Its cost cannot be counted, or is too much for any value.
        """
        self._name = name
        self._cost = SchemaCost(schema)
        self._has_said = False
        self._invalid: Any = library.ValidationError
        make: Any = library.validator_cls_for(schema)
        validator: Any = make(schema, validate_formats=False, offline=True)
        self._validate: Callable[[object], None] = validator.validate

    def fault(self, content: object) -> str | None:
        """Return what is wrong with a value, if anything is, and can be found out."""
        data = codec.encode(content)
        if len(data) > MAX_VALUE:
            return None
        value = codec.decode_any(content) if isinstance(content, Raw) else content
        try:
            checks = self._cost.checks(_depth(value) if self._cost.is_recursive else 0)
            if checks * _size(data) > MAX_CHECKS:
                raise Unaffordable("the comparison takes too many checks")
            self._validate(value)
        except self._invalid as exc:
            return f"{printable(_path(exc.instance_path))}: {printable(exc.message)}"
        except Exception as exc:  # the library's own limits, too
            if not self._has_said:
                self._has_said = True
                _log.warning("the content of %s is not compared: %s", printable(self._name), printable(str(exc)))
        return None


def _size(data: bytes) -> int:
    """At least how many values there are in a text; long strings count for several."""
    return 1 + data.count(b",") + data.count(b"[") + data.count(b"{") + len(data) // 16


def _depth(value: object) -> int:
    """In how many others a value of a plain JSON value is nested at the most."""
    depth, level = 0, [value]
    while level := [item for each in level for item in _within(each)]:
        depth += 1
    return depth


def _within(value: object) -> Iterable[object]:
    if codec.is_object(value):
        return value.values()
    return value if codec.is_array(value) else ()


def _path(steps: Iterable[str | int]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


@lru_cache(maxsize=1)
def _load() -> object:
    """Return the library; `None` where it is not installed."""
    try:
        return import_module("jsonschema_rs")
    except ImportError:
        return None

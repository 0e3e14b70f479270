"""Which parameters of the tools are mirrored in headers, as each caller sees them (P-33).

Asks the author for the tool where there is a hook for that, and reads the list of tools
otherwise, once for each caller until it changes. Knows the dispatcher; nothing of headers or responses.
Spec: basic/transports/streamable-http, "Custom Headers from Tool Parameters".
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from msgspec import Raw

from mcp_core import codec, envelope
from mcp_core.context import Peer, RequestContext
from mcp_core.errors import MCPError
from mcp_core.journal import Journal
from mcp_core.parameter_headers import InvalidMark, parameter_headers
from mcp_core.subscriptions import Event, ToolsListChanged
from mcp_core.transports.streamable_http.mirrored import name_in
from mcp_core.types import ListToolsResult, Prepared, Tool

if TYPE_CHECKING:
    from mcp_core.server import Server

__all__ = ["MAX_CALLERS", "MAX_MARK_BYTES", "Marked", "Marks"]

Marked: TypeAlias = Mapping[tuple[str, ...], str]
"""The names that headers have for parameters, by the path to the parameter."""

_journal = Journal(__name__)

_NONE: Final[Marked] = {}

MAX_CALLERS: Final = 16_384
"""Callers whose marks are kept; those that were not heard of for longest go first."""

MAX_MARK_BYTES: Final = 8_388_608
"""Bytes of marks that are kept, those that are the same for several callers once."""

_MOST_TOOLS: Final = 2048
"""Tools of which it is kept what they mark: most authors list the same objects to all callers."""

_MOST_PAGES: Final = 1000
_LONGEST_KEY: Final = 256

_PASSING: Final = frozenset(("progressToken", "traceparent", "tracestate", "baggage", envelope.LOG_LEVEL))
"""Members of `_meta` that are of one request, and say nothing of who makes it."""


class _List:
    """What one list of tools marks, and how many callers see that list."""

    __slots__ = ("key", "marked", "size", "users")

    def __init__(self, key: bytes, marked: dict[str, Marked]) -> None:
        self.key = key
        self.marked = marked
        self.size = len(key) + sum(
            len(tool) + sum(len(".".join(p)) + len(n) for p, n in marks.items()) + 200 for tool, marks in marked.items()
        )
        self.users = 0


class Marks:
    """The marks of one server's tools."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server
        self._callers: OrderedDict[bytes, _List] = OrderedDict()
        self._lists: dict[bytes, _List] = {}
        self._bytes = 0
        self._for_all: dict[str, Marked] | None = None
        """The marks that every caller sees, where the author says that the list is the same for all."""
        self._tools: dict[int, tuple[Tool, Marked]] = {}
        self._pages: dict[int, tuple[Any, dict[str, Marked]]] = {}
        self._changes = 0

    def known(self, ctx: RequestContext[Any]) -> Mapping[str, Marked] | None:
        """The marks of all tools that the caller of this request sees; `None` until that is known."""
        if self._for_all is not None:
            return self._for_all
        caller = _caller_of(ctx)
        if caller is None or caller not in self._callers:
            return None
        self._callers.move_to_end(caller)
        return self._callers[caller].marked

    async def of(self, ctx: RequestContext[Any], peer: Peer) -> Marked | None:
        """The marks of the tool that is called; `None` if they cannot be found out.

        `peer` stands for the caller, and drops what is sent to it.
        """
        name = name_in(ctx.raw_params, "name") or ""
        if self._server.on_get_tool is not None:
            return await self._asked(ctx, peer, name)
        marked = self.known(ctx)
        if marked is None:
            changes = self._changes
            read = await self._read(ctx, peer)
            if read is None:
                return None
            marked, same_for_all = read
            if changes == self._changes:  # otherwise what was read may be old already
                if same_for_all:
                    self._for_all = marked
                else:
                    self._keep(_caller_of(ctx), marked)
        return marked.get(name, _NONE)

    def forget(self, event: Event) -> None:
        """Take note of a change."""
        if isinstance(event, ToolsListChanged):
            self._changes += 1
            for kept in (self._callers, self._lists, self._tools, self._pages):
                kept.clear()
            self._bytes = 0
            self._for_all = None

    def _keep(self, caller: bytes | None, marked: dict[str, Marked]) -> None:
        if caller is None or caller in self._callers:
            return
        key = _digest(codec.encode([(tool, list(marks.items())) for tool, marks in sorted(marked.items())]))
        shared = self._lists.get(key)
        if shared is None:
            shared = self._lists[key] = _List(key, marked)
            self._bytes += shared.size
        shared.users += 1
        self._callers[caller] = shared
        while len(self._callers) > MAX_CALLERS or (self._bytes > MAX_MARK_BYTES and len(self._callers) > 1):
            _, old = self._callers.popitem(last=False)
            old.users -= 1
            if not old.users:
                del self._lists[old.key]
                self._bytes -= old.size

    async def _asked(self, ctx: RequestContext[Any], peer: Peer, name: str) -> Marked | None:
        """Ask the author for the tool; the client hears nothing of that."""
        unheard: RequestContext[Any] = RequestContext(
            peer, ctx.request_id, ctx.method, ctx.raw_params, ctx.protocol_version, ctx.meta
        )
        try:
            found: Any = self._server.on_get_tool(unheard, name)  # type: ignore[misc]
            tool = await found if hasattr(found, "__await__") else found
        except Exception as exc:
            _journal.error("on_get_tool raised %s", type(exc).__name__, exc=exc)
            return None
        if tool is not None and not isinstance(tool, Tool):
            _journal.error("on_get_tool returned %s; expected a Tool or None", type(tool).__name__)
            return None
        return _NONE if tool is None else _marked(tool.name, tool.input_schema)

    async def _read(self, ctx: RequestContext[Any], peer: Peer) -> tuple[dict[str, Marked], bool] | None:
        """Read the whole list, as the caller would see it: what it marks, and whether all callers see the same.

        Neither middleware nor observers see that.
        """
        marked: dict[str, Marked] = {}
        same_for_all = True
        cursor: str | None = None
        if not self._server.serves("tools/list"):
            return marked, same_for_all
        for _ in range(_MOST_PAGES):
            params: dict[str, Any] = {"_meta": ctx.meta} if cursor is None else {"_meta": ctx.meta, "cursor": cursor}
            try:
                begun = self._server.dispatcher.aside(ctx, peer, "tools/list", params)
                page = await begun if hasattr(begun, "__await__") else begun
                found, cursor = self._read_page(page)
            except MCPError:
                return None  # the caller would be refused the list, too
            except Exception as exc:
                _journal.error("the handler of tools/list raised %s", type(exc).__name__, exc=exc)
                return None
            marked.update(found)
            same_for_all = same_for_all and isinstance(page, Prepared) and page.same_for_all
            if cursor is None:
                return marked, same_for_all
        _journal.error("tools/list has more than %d pages", _MOST_PAGES)
        return None

    def _read_page(self, page: Any) -> tuple[dict[str, Marked], str | None]:
        if isinstance(page, Prepared):
            prepared = cast("Prepared[Any]", page)
            kept = self._pages.get(id(prepared))
            if kept is None:
                if len(self._pages) >= _MOST_PAGES:
                    self._pages.clear()
                # With the page, whose number may be another's once it is gone.
                kept = self._pages[id(prepared)] = (prepared, self._read_page(prepared.value)[0])
            return kept[1], prepared.value.next_cursor
        if isinstance(page, ListToolsResult):
            return {tool.name: marks for tool in page.tools if (marks := self._marked(tool))}, page.next_cursor
        value: Any = codec.decode_any(page) if isinstance(page, Raw | bytes) else codec.to_json(page)
        tools = value.get("tools") if codec.is_object(value) else None
        if not codec.is_array(tools) or not all(codec.is_object(tool) for tool in tools):
            raise TypeError(f"tools/list gave {type(page).__name__}, which is no list of tools")
        found = {tool.get("name"): _marked(tool.get("name"), tool.get("inputSchema", {})) for tool in tools}
        return {name: marks for name, marks in found.items() if marks}, value.get("nextCursor")

    def _marked(self, tool: Tool) -> Marked:
        kept = self._tools.get(id(tool))
        if kept is None:
            if len(self._tools) >= _MOST_TOOLS:
                self._tools.clear()
            kept = self._tools[id(tool)] = (tool, _marked(tool.name, tool.input_schema))
        return kept[1]


def _caller_of(ctx: RequestContext[Any]) -> bytes | None:
    """All that a list of tools may depend on; `None` where callers cannot be distinguished."""
    auth, meta = ctx.auth, ctx.meta
    who = None if auth is None else (auth.client_id, auth.subject, auth.scopes, auth.claims)
    if not _PASSING.isdisjoint(meta):
        meta = {name: value for name, value in meta.items() if name not in _PASSING}
    try:
        key = codec.encode((ctx.protocol_version, who, meta))
    except Exception:
        return None
    return key if len(key) <= _LONGEST_KEY else _digest(key)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _marked(name: Any, schema: Any) -> Marked:
    try:
        return parameter_headers(schema)
    except InvalidMark as exc:
        _journal.warning("tool %s: %s; clients over HTTP will leave it out", name, exc)
        return _NONE

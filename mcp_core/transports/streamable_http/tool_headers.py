"""Which parameters of the tools are mirrored in headers, as each caller sees them (P-33).

Asks the author for the tool where there is a hook for that, and reads the list of tools
otherwise, once for each caller until it changes. Knows the dispatcher; nothing of headers or responses.
Spec: basic/transports/streamable-http, "Custom Headers from Tool Parameters".
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Raw

from mcp_core import codec, request_meta
from mcp_core.codec import JSONObject
from mcp_core.context import AnyContext, Peer, RequestContext
from mcp_core.errors import MCPError
from mcp_core.parameter_headers import HeaderParameters, InvalidHeaderAnnotation, parameter_headers
from mcp_core.queue_logger import QueueLogger
from mcp_core.subscriptions import Event, ToolsListChanged
from mcp_core.transports.streamable_http.header_checks import name_in
from mcp_core.types import ListToolsResult, Prepared, Tool

if TYPE_CHECKING:
    from mcp_core.server import Server

__all__ = ["MAX_CALLERS", "MAX_HEADER_PARAMETER_BYTES", "HeaderParameters", "HeaderParameterCache"]

_log = QueueLogger(__name__)

_NONE: Final[HeaderParameters] = {}

MAX_CALLERS: Final = 16_384
"""Callers whose header parameters are kept; those that were not heard of for longest go first."""

MAX_HEADER_PARAMETER_BYTES: Final = 8_388_608
"""Bytes of header parameters that are kept, those that are the same for several callers once."""

_MOST_TOOLS: Final = 2048
"""Tools of which it is kept what they mark: most authors list the same objects to all callers."""

_MOST_PAGES: Final = 1000
_LONGEST_KEY: Final = 256

_PASSING: Final = frozenset(("progressToken", "traceparent", "tracestate", "baggage", request_meta.LOG_LEVEL))
"""Members of `_meta` that are of one request, and say nothing of who makes it."""


class _List:
    """The annotated parameters of one list of tools, and how many callers see that list."""

    __slots__ = ("key", "parameters", "size", "users")

    def __init__(self, key: bytes, parameters: dict[str, HeaderParameters]) -> None:
        self.key = key
        self.parameters = parameters
        self.size = len(key) + sum(
            len(tool) + sum(len(".".join(p)) + len(n) for p, n in header_parameters.items()) + 200
            for tool, header_parameters in parameters.items()
        )
        self.users = 0  # callers that see this list; dropped with the last


class HeaderParameterCache:
    """The header parameters of one server's tools."""

    def __init__(self, server: Server[object]) -> None:
        self._server = server
        # The list that each caller sees, the least recent first.
        self._callers: OrderedDict[bytes, _List] = OrderedDict()
        self._lists: dict[bytes, _List] = {}  # equal lists once, by digest: most callers see the same
        self._bytes = 0  # of `_lists`
        self._for_all: dict[str, HeaderParameters] | None = None
        """The header parameters that every caller sees, where the author says that the list is the same for all."""
        # By `id` of the author's object, which is held, so that the id stays its own.
        self._tools: dict[int, tuple[Tool, HeaderParameters]] = {}
        # The same for whole pages that are the same object each time.
        self._pages: dict[int, tuple[object, dict[str, HeaderParameters]]] = {}
        self._changes = 0  # announced so far: a list that was read before a change is not stored after it

    def known(self, ctx: AnyContext) -> Mapping[str, HeaderParameters] | None:
        """Return the header parameters of all tools that the caller sees; `None` until that is known."""
        if self._for_all is not None:
            return self._for_all
        caller = _caller_of(ctx)
        if caller is None or caller not in self._callers:
            return None
        self._callers.move_to_end(caller)
        return self._callers[caller].parameters

    async def of(self, ctx: AnyContext, peer: Peer) -> HeaderParameters | None:
        """Return the header parameters of the tool that is called; `None` if they cannot be found out.

        `peer` stands for the caller, and drops what is sent to it.
        """
        name = name_in(ctx.raw_params, "name") or ""
        if self._server.on_get_tool is not None:
            return await self._asked(ctx, peer, name)
        parameters = self.known(ctx)
        if parameters is None:
            changes = self._changes
            read = await self._read(ctx, peer)
            if read is None:
                return None
            parameters, same_for_all = read
            if changes == self._changes:  # otherwise what was read may be old already
                if same_for_all:
                    self._for_all = parameters
                else:
                    self._keep(_caller_of(ctx), parameters)
        return parameters.get(name, _NONE)

    def forget(self, event: Event) -> None:
        """Take note of a change."""
        if isinstance(event, ToolsListChanged):
            self._changes += 1
            for kept in (self._callers, self._lists, self._tools, self._pages):
                kept.clear()
            self._bytes = 0
            self._for_all = None

    def _keep(self, caller: bytes | None, parameters: dict[str, HeaderParameters]) -> None:
        if caller is None or caller in self._callers:
            return
        key = _digest(
            codec.encode(
                [(tool, list(header_parameters.items())) for tool, header_parameters in sorted(parameters.items())]
            )
        )
        shared = self._lists.get(key)
        if shared is None:
            shared = self._lists[key] = _List(key, parameters)
            self._bytes += shared.size
        shared.users += 1
        self._callers[caller] = shared
        while len(self._callers) > MAX_CALLERS or (self._bytes > MAX_HEADER_PARAMETER_BYTES and len(self._callers) > 1):
            _, old = self._callers.popitem(last=False)
            old.users -= 1
            if not old.users:
                del self._lists[old.key]
                self._bytes -= old.size

    async def _asked(self, ctx: AnyContext, peer: Peer, name: str) -> HeaderParameters | None:
        """Ask the author for the tool; the client hears nothing of that."""
        unheard: AnyContext = RequestContext(
            peer, ctx.request_id, ctx.method, ctx.raw_params, ctx.protocol_version, ctx.meta
        )
        try:
            found: Any = self._server.on_get_tool(unheard, name)  # type: ignore[misc]
            tool = await found if hasattr(found, "__await__") else found
        except Exception as exc:
            _log.error("on_get_tool raised %s", type(exc).__name__, exc=exc)
            return None
        if tool is not None and not isinstance(tool, Tool):
            _log.error("on_get_tool returned %s; expected a Tool or None", type(tool).__name__)
            return None
        return _NONE if tool is None else _parameters_of(tool.name, tool.input_schema)

    async def _read(self, ctx: AnyContext, peer: Peer) -> tuple[dict[str, HeaderParameters], bool] | None:
        """Read the whole list, as the caller would see it: its annotations, and whether all callers see the same.

        Neither middleware nor observers see that.
        """
        parameters: dict[str, HeaderParameters] = {}
        same_for_all = True
        cursor: str | None = None
        if not self._server.serves("tools/list"):
            return parameters, same_for_all
        for _ in range(_MOST_PAGES):
            params: JSONObject = {"_meta": ctx.meta} if cursor is None else {"_meta": ctx.meta, "cursor": cursor}
            try:
                begun = self._server.dispatcher.call_internally(ctx, peer, "tools/list", params)
                page = await begun if hasattr(begun, "__await__") else begun
                found, cursor = self._read_page(page)
            except MCPError:
                return None  # the caller would be refused the list, too
            except Exception as exc:
                _log.error("the handler of tools/list raised %s", type(exc).__name__, exc=exc)
                return None
            parameters.update(found)
            same_for_all = same_for_all and isinstance(page, Prepared) and page.same_for_all
            if cursor is None:
                return parameters, same_for_all
        _log.error("tools/list has more than %d pages", _MOST_PAGES)
        return None

    def _read_page(self, page: object) -> tuple[dict[str, HeaderParameters], str | None]:
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
            return {
                tool.name: header_parameters for tool in page.tools if (header_parameters := self._parameters_of(tool))
            }, page.next_cursor
        value: Any = codec.decode_any(page) if isinstance(page, Raw | bytes) else codec.to_json(page)
        tools = value.get("tools") if codec.is_object(value) else None
        if not codec.is_array(tools) or not all(codec.is_object(tool) for tool in tools):
            raise TypeError(f"tools/list gave {type(page).__name__}, which is no list of tools")
        found = {tool.get("name"): _parameters_of(tool.get("name"), tool.get("inputSchema", {})) for tool in tools}
        return {name: header_parameters for name, header_parameters in found.items() if header_parameters}, value.get(
            "nextCursor"
        )

    def _parameters_of(self, tool: Tool) -> HeaderParameters:
        kept = self._tools.get(id(tool))
        if kept is None:
            if len(self._tools) >= _MOST_TOOLS:
                self._tools.clear()
            kept = self._tools[id(tool)] = (tool, _parameters_of(tool.name, tool.input_schema))
        return kept[1]


def _caller_of(ctx: AnyContext) -> bytes | None:
    """Return all that a list of tools may depend on; `None` where callers cannot be distinguished."""
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


def _parameters_of(name: Any, schema: Any) -> HeaderParameters:
    try:
        return parameter_headers(schema)
    except InvalidHeaderAnnotation as exc:
        _log.warning("tool %s: %s; clients over HTTP will leave it out", name, exc)
        return _NONE

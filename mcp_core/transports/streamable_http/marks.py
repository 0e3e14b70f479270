"""Which parameters of the tools are mirrored in headers, as each caller sees them (P-33).

Asks the author for the tool where there is a hook for that, and reads the list of tools
otherwise, once until it changes. Knows the dispatcher; nothing of headers or responses.
Spec: basic/transports/streamable-http, "Custom Headers from Tool Parameters".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Raw

from mcp_core import codec
from mcp_core.context import Peer, RequestContext
from mcp_core.journal import Journal
from mcp_core.messages import Request
from mcp_core.parameter_headers import InvalidMark, parameter_headers
from mcp_core.subscriptions import Event, ToolsListChanged
from mcp_core.transports.streamable_http.mirrored import name_in
from mcp_core.transports.streamable_http.sessions import subject_of
from mcp_core.types import Tool

if TYPE_CHECKING:
    from mcp_core.server import Server

__all__ = ["Marked", "Marks"]

Marked: TypeAlias = Mapping[tuple[str, ...], str]
"""The names that headers have for parameters, by the path to the parameter."""

_journal = Journal(__name__)

_NONE: Final[Marked] = {}
_MOST_CALLERS: Final = 256
"""Callers whose marks are kept at a time: a list of tools may differ from one to another."""


class Marks:
    """The marks of one server's tools."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server
        self._kept: dict[Any, dict[str, Marked]] = {}
        self._changes = 0

    def may_exist(self, auth: Any) -> bool:
        """Whether there may be any for this caller: yes, until the list of tools was read."""
        kept = self._kept.get(None if auth is None else subject_of(auth))
        return kept is None or bool(kept)

    async def of(self, ctx: RequestContext[Any], peer: Peer) -> Marked | None:
        """The marks of the tool that is called; `None` if they cannot be found out.

        `peer` stands for the caller and is told nothing.
        """
        name = name_in(ctx.raw_params, "name") or ""
        if self._server.on_get_tool is not None:
            return await self._asked(ctx, peer, name)
        caller = subject_of(peer.auth)
        kept = self._kept.get(caller)
        if kept is None:
            changes = self._changes
            kept = await self._read(ctx, peer)
            if kept is None:
                return None
            if changes == self._changes:  # otherwise what was read may be old already
                if len(self._kept) >= _MOST_CALLERS:
                    self._kept.clear()
                self._kept[caller] = kept
        return kept.get(name, _NONE)

    def forget(self, event: Event) -> None:
        """Take note of a change."""
        if isinstance(event, ToolsListChanged):
            self._changes += 1
            self._kept.clear()

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
        return _NONE if tool is None else _marked(name, tool.input_schema)

    async def _read(self, ctx: RequestContext[Any], peer: Peer) -> dict[str, Marked] | None:
        """Read the whole list, as the caller would see it."""
        marked: dict[str, Marked] = {}
        cursor: str | None = None
        for _ in range(1000):
            page = await self._page(ctx, peer, cursor)
            if page is None:
                return None
            tools = page.get("tools")
            if not codec.is_array(tools) or not all(codec.is_object(tool) for tool in tools):
                _journal.error("tools/list was answered with what is no list of tools")
                return None
            for tool in tools:
                found = _marked(tool.get("name"), tool.get("inputSchema", {}))
                if found:
                    marked[tool["name"]] = found
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        return marked

    async def _page(self, ctx: RequestContext[Any], peer: Peer, cursor: str | None) -> dict[str, Any] | None:
        if not self._server.serves("tools/list"):
            return {"tools": []}
        params: dict[str, Any] = {"_meta": ctx.meta}
        if cursor is not None:
            params["cursor"] = cursor
        begun = self._server.dispatcher.begin(Request(0, "tools/list", Raw(codec.encode(params))), peer)
        page: Any = codec.decode_any(begun if isinstance(begun, bytes) else await begun)
        result = page.get("result")
        return result if codec.is_object(result) else None


def _marked(name: Any, schema: Any) -> Marked:
    try:
        return parameter_headers(schema)
    except InvalidMark as exc:
        _journal.warning("tool %s: %s; clients over HTTP will leave it out", name, exc)
        return _NONE

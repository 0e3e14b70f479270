"""Which parameters of the server's tools go in headers, as its lists of tools say.

Knows lists of tools and how to ask for one; nothing of headers.
Spec: server/tools, "x-mcp-header"; basic/transports/streamable-http, "Custom Headers from
Tool Parameters"; R-HTTP-22, R-HTTP-26.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import anyio
import msgspec
from msgspec import Raw

from mcp_core import codec
from mcp_core.journal import Complaints, Journal
from mcp_core.messages import Request, Response, decode_frame, encode_request, encode_response
from mcp_core.parameter_headers import InvalidMark, parameter_headers
from mcp_core.transports.http_client.endpoint import describe
from mcp_core.transports.lines import MAX_MESSAGE

__all__ = ["MAX_KNOWN", "MAX_MARKS", "MAX_REREAD_PAGES", "Ask", "Marked", "Marks"]

MAX_MARKS: Final = 256
"""Parameters of one tool that may be mirrored; a tool with more is left out."""

MAX_KNOWN: Final = 20_000
"""Tools and marks together that are remembered of one server."""

MAX_REREAD_PAGES: Final = 100
"""Pages of the list of tools that are read to find one tool's annotations again."""

_journal = Journal(__name__)

Ask: TypeAlias = Callable[[Request, bytes], Awaitable[bytes]]
"""Posts a request, and gives its answer."""

Marked: TypeAlias = Mapping[tuple[str, ...], str]
"""The names that headers have for parameters, by the path to the parameter."""

_NONE: Final[Marked] = {}


class Marks:
    """The marks of the tools that were listed, by name."""

    def __init__(self, patience: float = 30.0) -> None:
        self._marks: dict[str, Marked] = {}
        self._known = 0
        self._rereadings = 0
        self._patience = patience
        self._complaints = Complaints(_journal)

    def of(self, tool: str) -> Marked:
        """Those of one tool; none where it is not known."""
        return self._marks.get(tool, _NONE)

    def read(self, answer: bytes) -> bytes:
        """A list of tools without those whose marks break the rules (R-HTTP-22); the marks of the others are kept."""
        frame = decode_frame(answer)
        if not isinstance(frame, Response):
            return answer
        result: Any = codec.decode_any(frame.result)
        tools: Any = result.get("tools") if codec.is_object(result) else None
        if not codec.is_array(tools):
            return answer  # what is wrong with it, its reader says
        kept = [tool for tool in tools if self._is_possible(tool)]
        if len(kept) == len(tools):
            return answer
        return encode_response(frame.id, codec.encode({**result, "tools": kept}))

    def _is_possible(self, tool: Any) -> bool:
        if not codec.is_object(tool):
            return True
        given: Any = tool.get("name")
        if not isinstance(given, str):
            return True  # what is wrong with it, its reader says
        name = given
        try:
            marks = parameter_headers(tool.get("inputSchema", {}))
            if len(marks) > MAX_MARKS:
                raise InvalidMark(f"more than {MAX_MARKS} parameters are mirrored in headers")
        except InvalidMark as exc:
            self._forget(name)
            self._complaints.warning("tool %s was left out: %s", name, exc)
            return False
        self._forget(name)
        if self._known + 1 + len(marks) <= MAX_KNOWN:
            self._marks[name] = marks
            self._known += 1 + len(marks)
        return True

    def _forget(self, name: str) -> None:
        marks = self._marks.pop(name, None)
        if marks is not None:
            self._known -= 1 + len(marks)

    async def reread(self, request: Request, ask: Ask) -> bool:
        """Read the list of tools again after a refusal over headers (R-HTTP-26); whether that helps."""
        if request.method != "tools/call":
            return False
        params: Any = codec.decode_any(request.params)
        called = str(params.get("name"))
        before = self._marks.get(called)
        meta: dict[str, Any] = dict(params.get("_meta") or {})
        meta.pop("progressToken", None)
        try:
            with anyio.fail_after(self._patience):
                await self._read_pages(called, before, meta, ask)
        except Exception as exc:
            _journal.debug("the list of tools could not be read again: %s", describe(exc))
        return self._marks.get(called) != before

    async def _read_pages(self, called: str, before: Marked | None, meta: dict[str, Any], ask: Ask) -> None:
        """Read until the tool's marks are others than before: so many pages and bytes, and none twice."""
        page: dict[str, Any] = {"_meta": meta}
        seen: set[str] = set()
        size = 0
        while self._marks.get(called) == before and len(seen) < MAX_REREAD_PAGES and size <= MAX_MESSAGE:
            answer = await self._listed(page, ask)
            size += len(answer)
            self.read(answer)
            cursor = _cursor(answer)
            if cursor is None or cursor in seen:
                return
            seen.add(cursor)
            page["cursor"] = cursor

    async def _listed(self, page: dict[str, Any], ask: Ask) -> bytes:
        self._rereadings += 1
        request = Request(f"tools-{self._rereadings}", "tools/list", Raw(codec.encode(page)))
        return await ask(request, encode_request(request.id, request.method, page))


class _Page(msgspec.Struct, rename="camel"):
    next_cursor: str | None = None


_page: Final[codec.Decoder[_Page]] = codec.decoder(_Page)


def _cursor(answer: bytes) -> str | None:
    """Where a list goes on."""
    frame = decode_frame(answer)
    return _page(frame.result).next_cursor if isinstance(frame, Response) else None

"""Which parameters of the server's tools go in headers, as its lists of tools say.

Knows lists of tools and how to ask for one; nothing of headers.
Spec: server/tools, "x-mcp-header"; basic/transports/streamable-http, "Custom Headers from
Tool Parameters"; R-HTTP-22, R-HTTP-26.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Raw

from mcp_core import codec
from mcp_core.journal import Journal
from mcp_core.messages import Request, Response, decode_frame, encode_request, encode_response
from mcp_core.parameter_headers import InvalidMark, parameter_headers
from mcp_core.transports.http_client.endpoint import told

__all__ = ["Ask", "Marked", "Marks"]

_journal = Journal(__name__)

Ask: TypeAlias = Callable[[Request, bytes], Awaitable[bytes]]
"""Posts a request, and gives its answer."""

Marked: TypeAlias = Mapping[tuple[str, ...], str]
"""The names that headers have for parameters, by the path to the parameter."""

_NONE: Final[Marked] = {}


class Marks:
    """The marks of the tools that were listed, by name."""

    def __init__(self) -> None:
        self._marks: dict[str, Marked] = {}
        self._rereadings = 0

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
        name = str(tool.get("name"))
        try:
            self._marks[name] = parameter_headers(tool.get("inputSchema", {}))
        except InvalidMark as exc:
            self._marks.pop(name, None)
            _journal.warning("tool %s was left out: %s", name, str(exc))
            return False
        return True

    async def reread(self, request: Request, ask: Ask) -> bool:
        """Read the list of tools anew after a refusal over headers (R-HTTP-26); whether that helps."""
        if request.method != "tools/call":
            return False
        params: Any = codec.decode_any(request.params)
        called = str(params.get("name"))
        before = self._marks.get(called)
        meta: dict[str, Any] = dict(params.get("_meta") or {})
        meta.pop("progressToken", None)
        page: dict[str, Any] = {"_meta": meta}
        try:
            while self._marks.get(called) == before:
                answer = await self._listed(page, ask)
                self.read(answer)
                cursor = _cursor(answer)
                if cursor is None:
                    break
                page["cursor"] = cursor
        except Exception as exc:
            _journal.debug("the list of tools could not be read anew: %s", told(exc))
        return self._marks.get(called) != before

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

"""Which parameters of the server's tools go in headers, as its lists of tools say.

Knows lists of tools and how to ask for one; nothing of headers.
Spec: server/tools, "x-mcp-header"; basic/transports/streamable-http, "Custom Headers from
Tool Parameters"; R-HTTP-22, R-HTTP-26.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import anyio
import msgspec
from msgspec import Raw

from mcp_core import codec
from mcp_core.codec import JSONObject
from mcp_core.messages import Request, Response, decode_frame, encode_request, encode_response
from mcp_core.parameter_headers import HeaderParameters, InvalidHeaderAnnotation, parameter_headers
from mcp_core.queue_logger import QueueLogger, RateLimitedWarnings
from mcp_core.transports.http_client.endpoint import describe
from mcp_core.transports.lines import MAX_MESSAGE

__all__ = [
    "MAX_KNOWN",
    "MAX_HEADER_PARAMETERS",
    "MAX_REREAD_PAGES",
    "Ask",
    "HeaderParameters",
    "ListedHeaderParameters",
]

MAX_HEADER_PARAMETERS: Final = 256
"""Parameters of one tool that may be mirrored; a tool with more is left out."""

MAX_KNOWN: Final = 20_000
"""Tools and header parameters together that are remembered of one server."""

MAX_REREAD_PAGES: Final = 100
"""Pages of the list of tools that are read to find one tool's annotations again."""

_log = QueueLogger(__name__)

Ask: TypeAlias = Callable[[Request, bytes], Awaitable[bytes]]
"""Posts a request, and gives its response."""

_NONE: Final[HeaderParameters] = {}


class ListedHeaderParameters:
    """The header parameters of the tools that were listed, by name."""

    def __init__(self, timeout: float = 30.0) -> None:
        self._header_parameters: dict[str, HeaderParameters] = {}  # by tool; a tool without annotations has no entry
        self._known = 0  # tools and parameters remembered; at `MAX_KNOWN` no more are added
        self._rereadings = 0  # lists read again because a call was refused over its headers
        self._timeout = timeout
        self._warnings = RateLimitedWarnings(_log)

    def of(self, tool: str) -> HeaderParameters:
        """Return those of one tool; none where it is not known."""
        return self._header_parameters.get(tool, _NONE)

    def read(self, answer: bytes) -> bytes:
        """Return a list of tools without those whose annotations break the rules (R-HTTP-22); store the others."""
        frame = decode_frame(answer)
        if not isinstance(frame, Response):
            return answer
        result: Any = codec.decode_any(frame.result)
        tools: object = result.get("tools") if codec.is_object(result) else None
        if not codec.is_array(tools):
            return answer  # what is wrong with it, its reader says
        kept = [tool for tool in tools if self._is_possible(tool)]
        if len(kept) == len(tools):
            return answer
        return encode_response(frame.id, codec.encode({**result, "tools": kept}))

    def _is_possible(self, tool: object) -> bool:
        if not codec.is_object(tool):
            return True
        given: object = tool.get("name")
        if not isinstance(given, str):
            return True  # what is wrong with it, its reader says
        name = given
        try:
            header_parameters = parameter_headers(tool.get("inputSchema", {}))
            if len(header_parameters) > MAX_HEADER_PARAMETERS:
                raise InvalidHeaderAnnotation(f"more than {MAX_HEADER_PARAMETERS} parameters are mirrored in headers")
        except InvalidHeaderAnnotation as exc:
            self._forget(name)
            self._warnings.warning("tool %s was left out: %s", name, exc)
            return False
        self._forget(name)
        if self._known + 1 + len(header_parameters) <= MAX_KNOWN:
            self._header_parameters[name] = header_parameters
            self._known += 1 + len(header_parameters)
        return True

    def _forget(self, name: str) -> None:
        header_parameters = self._header_parameters.pop(name, None)
        if header_parameters is not None:
            self._known -= 1 + len(header_parameters)

    async def reread(self, request: Request, ask: Ask) -> bool:
        """Read the list of tools again after a refusal over headers (R-HTTP-26); whether that helps."""
        if request.method != "tools/call":
            return False
        params: Any = codec.decode_any(request.params)
        called = str(params.get("name"))
        before = self._header_parameters.get(called)
        meta: JSONObject = dict(params.get("_meta") or {})
        meta.pop("progressToken", None)
        try:
            with anyio.fail_after(self._timeout):
                await self._read_pages(called, before, meta, ask)
        except Exception as exc:
            _log.debug("the list of tools could not be read again: %s", describe(exc))
        return self._header_parameters.get(called) != before

    async def _read_pages(self, called: str, before: HeaderParameters | None, meta: JSONObject, ask: Ask) -> None:
        """Read until the tool's header parameters are others than before: so many pages and bytes, and none twice."""
        page: JSONObject = {"_meta": meta}
        seen: set[str] = set()
        size = 0
        while self._header_parameters.get(called) == before and len(seen) < MAX_REREAD_PAGES and size <= MAX_MESSAGE:
            answer = await self._listed(page, ask)
            size += len(answer)
            self.read(answer)
            cursor = _cursor(answer)
            if cursor is None or cursor in seen:
                return
            seen.add(cursor)
            page["cursor"] = cursor

    async def _listed(self, page: JSONObject, ask: Ask) -> bytes:
        self._rereadings += 1
        request = Request(f"tools-{self._rereadings}", "tools/list", Raw(codec.encode(page)))
        return await ask(request, encode_request(request.id, request.method, page))


class _Page(msgspec.Struct, rename="camel"):
    next_cursor: str | None = None


_page: Final[codec.Decoder[_Page]] = codec.decoder(_Page)


def _cursor(answer: bytes) -> str | None:
    """Return where a list goes on."""
    frame = decode_frame(answer)
    return _page(frame.result).next_cursor if isinstance(frame, Response) else None

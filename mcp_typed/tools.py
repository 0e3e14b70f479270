"""A tool: a function made callable over the wire.

Registers nothing and knows no server; `MCPServer` hands it calls.
"""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import ValidationError

from mcp_core import MCPError, RequestContext
from mcp_core import types as t
from mcp_core.backend import is_cancellation
from mcp_core.journal import Journal
from mcp_core.threads import WorkerThreads
from mcp_typed.arguments import Arguments, report
from mcp_typed.errors import ToolError
from mcp_typed.results import Returns
from mcp_typed.signature import inspect_tool

__all__ = ["FunctionTool"]

_journal = Journal(__name__)


class FunctionTool:
    """One tool. A plain function runs in a worker thread, an `async def` on the loop.

    `listed` are further fields of `Tool`: title, annotations, icons.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        threads: WorkerThreads,
        *,
        mask_errors: bool = True,
        name: str | None = None,
        description: str | None = None,
        meta: dict[str, Any] | None = None,
        **listed: Any,
    ) -> None:
        self.name = name or function.__name__
        self._plan = inspect_tool(function, self.name)
        self._threads = threads
        self._mask_errors = mask_errors
        self._arguments = Arguments(self._plan)
        self._returns = Returns(self._plan)
        self.listed = t.Tool(
            name=self.name,
            description=description or inspect.getdoc(function),
            input_schema=self._arguments.schema,
            output_schema=self._returns.schema,
            _meta=meta,
            **listed,
        )

    async def call(self, ctx: RequestContext[Any], arguments: bytes) -> t.CallToolResult:
        """Call it. Whatever goes wrong inside becomes a result that the model can read;
        only an `MCPError` leaves as a protocol error.
        """
        try:
            keywords = self._arguments.keywords(arguments)
        except ValidationError as exc:
            return self._failed(report(exc))
        function = self._plan.function
        if self._plan.context is not None:
            keywords[self._plan.context] = ctx
        try:
            value = await (function(**keywords) if self._plan.is_async else self._in_thread(keywords))
        except MCPError:
            raise
        except ToolError as exc:
            return self._failed(str(exc))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as exc:
            if is_cancellation(exc):
                raise
            return self._crashed(exc)
        try:
            return self._returns.result(value)
        except ValidationError as exc:
            return self._failed(report(exc))

    def _in_thread(self, keywords: dict[str, Any]) -> Awaitable[Any]:
        function = self._plan.function
        return self._threads.run(lambda: function(**keywords))

    def _failed(self, reason: str) -> t.CallToolResult:
        return _error(f"Error executing tool {self.name}: {reason}")

    def _crashed(self, exc: BaseException) -> t.CallToolResult:
        """A failure whose text is nobody's business but the author's (P-04)."""
        error_id = secrets.token_hex(4)
        _journal.error("tool %s raised %s (error id %s)", self.name, type(exc).__name__, error_id, exc=exc)
        if not self._mask_errors:
            return self._failed(str(exc))
        return _error(f"Error executing tool {self.name} (error id {error_id})")


def _error(text: str) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(text=text)], is_error=True)

"""A server that says which process serves it, and may refuse to be served by workers."""

from __future__ import annotations

import multiprocessing
import os

from mcp_core.request_state import RequestStateSigner
from mcp_typed import Context, MCPServer

mcp = MCPServer("crew")
signer = RequestStateSigner()


@mcp.tool(run="inline")
def pid() -> int:
    """The process."""
    return os.getpid()


@mcp.tool(run="inline")
def inherited() -> list[str]:
    """What programs that a tool starts would find in their environment."""
    return [name for name in os.environ if name.startswith("MCPCORE")]


@mcp.tool()
async def keep(ctx: Context) -> str:
    """A state, or what is in the one that comes back."""
    if ctx.request_state is None:
        return signer.sign(ctx.request_context, "kept")
    return str(signer.verify(ctx.request_context, ctx.request_state))


if os.environ.get("CREW_IS_ILL") and multiprocessing.parent_process() is not None:
    raise RuntimeError("the crew is ill")

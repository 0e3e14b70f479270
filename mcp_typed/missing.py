"""Members of the official SDK's `MCPServer` that are not here, and what is in their place.

For users who move a server over: one sentence where Python would only say that there is no
such attribute. The whole table is in docs/migration.md.
"""

from __future__ import annotations

from typing import Final

__all__ = ["missing"]

_HANDLERS: Final = "resources and prompts are handlers of the core server, mcp.server"
_CLIENT: Final = "use a client in memory, Client(mcp)"
_HTTP: Final = "use mcp.run('streamable-http', ...) or mcp.streamable_http_app(...)"

_INSTEAD: Final = {
    **dict.fromkeys(("resource", "add_resource", "prompt", "add_prompt", "remove_prompt", "completion"), _HANDLERS),
    **dict.fromkeys(
        ("list_resources", "list_resource_templates", "read_resource", "list_prompts", "get_prompt"), _CLIENT
    ),
    **dict.fromkeys(("run_streamable_http_async", "session_manager", "sse_app", "run_sse_async"), _HTTP),
    "custom_route": "mount mcp.streamable_http_app() in an app of Starlette or another framework",
    "get_context": "annotate a parameter with Context",
    "settings": "options are arguments of MCPServer(...), run(...) and streamable_http_app(...)",
}


def missing(name: str) -> str:
    """Return what an AttributeError says of this name."""
    plain = f"'MCPServer' object has no attribute {name!r}"
    instead = _INSTEAD.get(name)
    return plain if instead is None else f"{plain}: {instead}; see docs/migration.md"

"""The fixture server: every handler in one place, and the way to serve them over HTTP.

    python -m tests.conformance.server --port 3001

Handlers speak the newest revision; what reaches a client of another one is the library's
doing.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

from mcp_core import MCPDeprecationWarning, RequestContext, Server
from mcp_core import types as t
from mcp_core.errors import InvalidParams
from tests.conformance import content, forms, notices, rounds
from tests.conformance.completion import complete
from tests.conformance.prompts import PROMPTS, get_prompt
from tests.conformance.resources import RESOURCES, TEMPLATES, read_resource
from tests.conformance.tools import calling

__all__ = ["main", "make_server"]

TOOLS: Final = (*content.TOOLS, *notices.TOOLS, *forms.TOOLS, *rounds.TOOLS)

R = TypeVar("R", bound=t.PaginatedResult)
Listing: TypeAlias = Callable[[RequestContext, t.PaginatedRequestParams], t.Prepared[R]]


def _one_page(result: R) -> Listing[R]:
    """A list that is short enough for one page: encoded once, and no cursor leads further."""
    page = t.Prepared(result)

    def give(ctx: RequestContext, params: t.PaginatedRequestParams) -> t.Prepared[R]:
        if params.cursor is not None:
            raise InvalidParams("Unknown cursor")
        return page

    return give


def _set_logging_level(ctx: RequestContext, params: t.SetLevelRequestParams) -> t.EmptyResult:
    """To have this handler is to declare `logging`; the level is kept by the library."""
    return t.EmptyResult()


def make_server() -> Server:
    """The server, new."""
    return Server(
        "mcpcore-conformance",
        version="1.0.0",
        title="Conformance fixture",
        instructions="A server to run the conformance suite against.",
        subscriptions=True,
        on_list_tools=_one_page(t.ListToolsResult(tools=[tool.listed for tool in TOOLS], cache_scope="public")),
        on_call_tool=calling(TOOLS),
        on_list_resources=_one_page(t.ListResourcesResult(resources=RESOURCES, cache_scope="public")),
        on_list_resource_templates=_one_page(
            t.ListResourceTemplatesResult(resource_templates=TEMPLATES, cache_scope="public")
        ),
        on_read_resource=read_resource,
        on_list_prompts=_one_page(t.ListPromptsResult(prompts=PROMPTS, cache_scope="public")),
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=_set_logging_level,
    )


def main() -> None:
    """Serve over HTTP at `/mcp` on a loopback address, until a signal comes."""
    # Only those who serve over HTTP need it.
    from mcp_core.transports.streamable_http import InMemoryEventStore

    parser = argparse.ArgumentParser(prog="python -m tests.conformance.server", description=main.__doc__)
    parser.add_argument("--port", type=int, default=3001)
    port: int = parser.parse_args().port
    # Logging, sampling and roots are deprecated, and part of what is checked.
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    # With a store, a client that lost its stream, or was sent away, gets what it missed.
    make_server().run("streamable-http", host="127.0.0.1", port=port, event_store=InMemoryEventStore())


if __name__ == "__main__":
    main()

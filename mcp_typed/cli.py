"""`mcp-typed`: run a server, call its tools, list them.

`call` and `list` start the file as a real server process and speak to it over stdio,
as a host would. Needs the extra `cli`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

try:
    import click
except ImportError as exc:
    raise SystemExit('mcp-typed needs click; install it with: pip install "mcpcore[typed,cli]"') from exc

import anyio
import msgspec

from mcp_core import Client, MCPCoreError, StdioServerParameters
from mcp_core.codec import is_object
from mcp_core.types import CallToolResult, TextContent

__all__ = ["main"]

T = TypeVar("T")


@click.group()
@click.version_option(package_name="mcpcore")
def main() -> None:
    """Run MCP servers, and try them out.

    FILE is a Python file with a server in it, or FILE:NAME.
    """


@main.command()
@click.argument("file")
@click.option("--loop", type=click.Choice(["asyncio", "uvloop", "trio"]), help="The event loop to run on.")
@click.option("--http", "over_http", is_flag=True, help="Serve over HTTP instead. Needs the extra http.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen, with --http.")
@click.option("--port", default=8000, show_default=True, help="The port, with --http.")
@click.option("--workers", default=1, show_default=True, help="Processes, with --http; several keep no sessions.")
def run(file: str, loop: Any, over_http: bool, host: str, port: int, workers: int) -> None:
    """Serve FILE on stdin and stdout, or over HTTP."""
    from mcp_typed.loading import NoServer, load_server

    try:
        server = load_server(file)
    except NoServer as exc:
        raise click.ClickException(str(exc)) from exc
    if not over_http:
        server.run(loop=loop)
        return
    try:
        server.run("streamable-http", loop=loop, host=host, port=port, workers=workers, stateless_http=workers > 1)
    except (RuntimeError, ValueError) as exc:
        raise click.ClickException(str(exc)) from exc


@main.command()
@click.argument("file")
def dev(file: str) -> None:
    """Try FILE out in the MCP Inspector, in a browser. Needs Node.js (npx)."""
    npx = shutil.which("npx")
    if npx is None:
        raise click.ClickException("the Inspector needs Node.js: npx was not found")
    command = [npx, "--yes", "@modelcontextprotocol/inspector", sys.executable, "-m", "mcp_typed", "run", file]
    sys.exit(subprocess.run(command, check=False).returncode)


@main.command()
@click.argument("file")
@click.argument("tool")
@click.argument("arguments", default="{}")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as one JSON object.")
def call(file: str, tool: str, arguments: str, as_json: bool) -> None:
    """Call a TOOL of FILE with ARGUMENTS, a JSON object."""
    try:
        given: Any = json.loads(arguments)
    except ValueError as exc:
        raise click.ClickException(f"the arguments are no JSON: {exc}") from exc
    if not is_object(given):
        raise click.ClickException('the arguments must be a JSON object, as {"city": "London"}')
    result = _with_client(file, lambda client: client.call_tool(tool, given))
    click.echo(_indented(result) if as_json else _shown(tool, result))
    if result.is_error:
        sys.exit(1)


@main.command("list")
@click.argument("file")
@click.option("--lint", is_flag=True, help="Print what a reader of the schemas would trip over; exit 1 if anything.")
def list_(file: str, lint: bool) -> None:
    """List the tools of FILE with their schemas."""
    if lint:
        found = _loaded_typed(file).lint()
        for finding in found:
            click.echo(str(finding))
        sys.exit(1 if found else 0)
    click.echo(_indented(_with_client(file, _all_tools)))


def _loaded_typed(file: str) -> Any:
    from mcp_typed.loading import NoServer, load_typed_server

    try:
        return load_typed_server(file)
    except NoServer as exc:
        raise click.ClickException(str(exc)) from exc


async def _all_tools(client: Client) -> list[Any]:
    page = await client.list_tools()
    tools = list(page.tools)
    while page.next_cursor is not None:
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    return tools


def _with_client(file: str, use: Callable[[Client], Awaitable[T]]) -> T:
    """What `use` makes of a client of the running file."""
    parameters = StdioServerParameters(command=sys.executable, args=["-m", "mcp_typed", "run", file])

    async def session() -> T:
        async with Client(parameters) as client:
            return await use(client)

    try:
        return anyio.run(session)
    except MCPCoreError as exc:
        raise click.ClickException(str(exc)) from exc


def _shown(tool: str, result: CallToolResult) -> str:
    """Name, text and structured data, each under its own heading."""
    parts = [f"{tool} failed" if result.is_error else tool]
    for block in result.content:
        if isinstance(block, TextContent):
            parts.append(f"text:\n{block.text}")
        else:
            parts.append(f"{block.type}:\n{_indented(block)}")
    if result.structured_content is not None:
        parts.append(f"structured:\n{_indented(result.structured_content)}")
    return "\n\n".join(parts)


def _indented(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()

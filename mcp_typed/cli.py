"""`mcp-typed`: run a server, call its tools, list them.

`call` and `list` start the server as a process and speak to it over stdio, as a host
would, or connect to one that runs at a URL. Needs the extra `cli`.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from mcp_core.codec import JSONObject

try:
    import click
except ImportError as _exc:
    raise SystemExit('mcp-typed needs click; install it with: pip install "mcpcore[typed,cli]"') from _exc

import anyio
import msgspec

from mcp_core import Client, MCPCoreError, MCPError, StdioServerParameters
from mcp_core.codec import is_object
from mcp_core.types import CallToolResult, TextContent
from mcp_typed import tracebacks
from mcp_typed.loading import NoServer, did_you_mean, is_url, load_server, load_typed_server

__all__ = ["main"]

T = TypeVar("T")

MAX_PAGES: Final = 1_000
"""Pages of a list of tools that are asked for."""

NAMES: Final = 20
"""Names of tools that are said where one was not found."""


class _Commands(click.Group):
    """Commands that Ctrl-C ends without a word, with the status of a program that it has ended."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(130)


@click.group(cls=_Commands)
@click.version_option(package_name="mcpcore")
def main() -> None:
    """Run MCP servers, and try them out.

    FILE is a Python file with a server in it, or a module as package.module. Either may be
    followed by :NAME, the name of the server or of a function that makes it. `call`, `list`
    and `dev` take the URL of a server that runs as well.
    """


def _variables(_ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return what `--env` and `--header` give as a dict."""
    sign = "=" if parameter.name == "env" else ":"
    pairs = [(value, *value.partition(sign)) for value in values]
    for value, name, found, _ in pairs:
        if not found or not name.strip():
            raise click.BadParameter(f"must be NAME{sign}VALUE; got {value!r}")
    return {name.strip(): text.strip() if sign == ":" else text for _, name, _, text in pairs}


_env = click.option(
    "--env", multiple=True, metavar="NAME=VALUE", callback=_variables, help="Set a variable for the server; repeatable."
)
_header = click.option(
    "--header", multiple=True, metavar="NAME:VALUE", callback=_variables, help="Send a header to a URL; repeatable."
)


# --- run -----------------------------------------------------------------------------------------


@main.command()
@click.argument("file")
@click.option("--loop", type=click.Choice(["asyncio", "uvloop", "trio"]), help="The event loop to run on.")
@click.option("--http", "over_http", is_flag=True, help="Serve over HTTP instead. Needs the extra http.")
@click.option("--host", help="Where to listen, with --http.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="The port, with --http.  [default: 8000]")
@click.option(
    "--workers", type=click.IntRange(1), help="Processes, with --http; several keep no sessions.  [default: 1]"
)
@click.option("--failure-file", hidden=True, type=click.Path(dir_okay=False))
@click.option("--env-file", hidden=True, type=click.Path(dir_okay=False, exists=True))
def run(
    file: str,
    loop: object,
    over_http: bool,
    host: str | None,
    port: int | None,
    workers: int | None,
    failure_file: str | None,
    env_file: str | None,
) -> None:
    """Serve FILE on stdin and stdout, or over HTTP."""
    options = _given(host=host, port=port, workers=workers)
    if options and not over_http:
        raise click.UsageError(f"--{next(iter(options))} needs --http")
    if is_url(file):
        raise click.UsageError(f"{file} runs already; `mcp-typed call` and `mcp-typed list` take its URL")
    if over_http:
        options["stateless_http"] = (workers or 1) > 1
    if env_file is not None:
        os.environ.update(json.loads(Path(env_file).read_text(encoding="utf-8")))
    try:
        _serve(file, "streamable-http" if over_http else "stdio", loop, options)
    except click.ClickException as exc:
        if failure_file is None:
            raise
        # The parent process reports it; printed here as well, it would be shown twice.
        Path(failure_file).write_text(exc.message, encoding="utf-8")
        sys.exit(exc.exit_code)


def _given(**options: object) -> JSONObject:
    return {name: value for name, value in options.items() if value is not None}


def _serve(file: str, transport: Any, loop: Any, options: JSONObject) -> None:
    try:
        server = load_server(file)
        if transport == "stdio" and sys.stdin is not None and sys.stdin.isatty():
            click.echo(f"{file} is served on stdin and stdout, one JSON message a line; Ctrl-C ends it.", err=True)
        server.run(transport, loop=loop, **options)
    except NoServer as exc:
        raise click.ClickException(str(exc)) from exc
    except Exception as exc:
        if tracebacks.has_own_lines(exc):
            raise click.ClickException(f"{file} has failed\n{tracebacks.format_own_lines(exc)}") from exc
        if isinstance(exc, RuntimeError | ValueError | TypeError):
            raise click.ClickException(str(exc)) from exc
        raise


# --- dev -----------------------------------------------------------------------------------------


@main.command()
@click.argument("file")
@_env
def dev(file: str, env: dict[str, str]) -> None:
    """Try FILE out in the MCP Inspector, in a browser. Needs Node.js (npx)."""
    from mcp_typed.inspector import NoNode, run_inspector

    if is_url(file):
        _refuse_for_url("--env", env)
    else:
        _with_client(_Target(file, env, {}), _nothing)  # what is wrong with it is shown here, and not by a web page
    with tempfile.TemporaryDirectory() as folder:
        # The Inspector hands on a few variables only, and those in its arguments everybody can see.
        variables = Path(folder, "environment")
        variables.write_text(json.dumps({**os.environ, **env}), encoding="utf-8")
        server = _command(file, "--env-file", str(variables))
        try:
            status = run_inspector(["--transport", "http", "--server-url", file] if is_url(file) else server)
        except NoNode as exc:
            raise click.ClickException(str(exc)) from exc
    sys.exit(status)


# --- call and list -------------------------------------------------------------------------------


@main.command()
@click.argument("file")
@click.argument("tool")
@click.argument("arguments", default="{}")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as one JSON object.")
@_env
@_header
def call(file: str, tool: str, arguments: str, as_json: bool, env: dict[str, str], header: dict[str, str]) -> None:
    """Call a TOOL of FILE with ARGUMENTS, a JSON object."""
    from mcp_typed.terminal import Questions

    given = _object(arguments)
    questions = Questions(on_terminal=sys.stdin is not None and sys.stdin.isatty())

    async def called(client: Client) -> CallToolResult:
        try:
            result = await client.call_tool(tool, given)
        except MCPError as exc:
            if questions.unanswered:
                _fail("; ".join(questions.unanswered))
            await _check_tool(client, file, tool)
            raise exc
        if result.is_error:
            await _check_tool(client, file, tool)
        return result

    result = _with_client(
        _Target(file, env, header),
        called,
        elicitation_callback=questions.elicit,
        sampling_callback=questions.sample,
        list_roots_callback=questions.list_roots,
    )
    click.echo(_indented(result) if as_json else _formatted(tool, result))
    for question in questions.unanswered:
        click.echo(f"Error: {question}", err=True)
    if result.is_error:
        sys.exit(1)


def _object(arguments: str) -> JSONObject:
    """Return the arguments of a call.

    Raises:
        ClickException: They are no JSON object; the text shows where they stop being one.
    """

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"JSON has no {name}")

    def finite(text: str) -> float:
        number = float(text)
        return number if math.isfinite(number) else refuse(text)

    try:
        given: Any = json.loads(arguments, parse_constant=refuse, parse_float=finite)
        msgspec.json.encode(given)  # broken Unicode, which a shell may hand over
    except json.JSONDecodeError as exc:
        before = arguments[: exc.pos].rpartition("\n")[2][-60:]
        line = before + arguments[exc.pos : exc.pos + 20].partition("\n")[0]
        place = f"line {exc.lineno}, column {exc.colno}" if exc.lineno > 1 else f"column {exc.colno}"
        hint = (
            ""
            if '"' in arguments
            else "\nNames and texts need double quotes; most shells want single ones around it all."
        )
        raise click.ClickException(
            f"the arguments are no JSON: {exc.msg} at {place}\n  {line}\n  {' ' * len(before)}^{hint}"
        ) from exc
    except (ValueError, RecursionError, msgspec.MsgspecError) as exc:
        raise click.ClickException(f"the arguments are no JSON: {exc}") from exc
    if not is_object(given):
        raise click.ClickException('the arguments must be a JSON object, as {"city": "London"}')
    return given


async def _check_tool(client: Client, file: str, tool: str) -> None:
    """Raise a `ClickException` that lists the tools if there is none of this name."""
    try:
        names = [found.name for found in await _all_tools(client)]
    except MCPCoreError:
        return  # then what the call has said must do
    if tool in names:
        return
    has = ", ".join(map(repr, names[:NAMES])) or "none"
    if len(names) > NAMES:
        has += f" and {len(names) - NAMES:,} more"
    _fail(f"Unknown tool: {tool}; {file} has {has}{did_you_mean(tool, names)}")


@main.command("list")
@click.argument("file")
@click.option("--lint", is_flag=True, help="Print what a reader of the schemas would trip over; exit 1 if anything.")
@_env
@_header
def list_(file: str, lint: bool, env: dict[str, str], header: dict[str, str]) -> None:
    """List the tools of FILE with their schemas."""
    if lint:
        _lint(file, env)
    click.echo(_indented(_with_client(_Target(file, env, header), _all_tools)))


def _lint(file: str, env: dict[str, str]) -> NoReturn:
    if is_url(file):
        raise click.UsageError("--lint looks at the functions of a server, which a URL does not show; name its file")
    os.environ.update(env)
    try:
        found = load_typed_server(file).lint()
    except NoServer as exc:
        _fail(str(exc))
    for finding in found:
        click.echo(str(finding))
    sys.exit(1 if found else 0)


async def _all_tools(client: Client) -> list[Any]:
    tools: list[object] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return tools
    _fail(f"the list of tools does not end: {MAX_PAGES:,} pages were read")


async def _nothing(_client: Client) -> None:
    """Being connected is all."""


# --- a client ------------------------------------------------------------------------------------


class _Target(msgspec.Struct, frozen=True):
    """The server to talk to, and what it is given: variables of its process, or headers."""

    file: str
    env: dict[str, str]
    headers: dict[str, str]


def _with_client(target: _Target, use: Callable[[Client], Awaitable[T]], **callbacks: Any) -> T:
    """Return what `use` makes of a client of the server.

    Raises:
        ClickException: It cannot be started or reached, or refuses.
    """
    with tempfile.TemporaryDirectory() as folder:
        failure = Path(folder, "failure")

        async def session() -> T:
            async with Client(_parameters(target, failure), **callbacks) as client:
                return await use(client)

        try:
            return anyio.run(session)
        except (MCPCoreError, RuntimeError) as exc:
            if isinstance(exc, RuntimeError) and not is_url(target.file):
                raise
            text = failure.read_text(encoding="utf-8") if failure.exists() else str(exc)
            raise click.ClickException(text) from exc


def _parameters(target: _Target, failure: Path) -> Any:
    if is_url(target.file):
        from mcp_core import StreamableHTTPParameters

        _refuse_for_url("--env", target.env)
        return StreamableHTTPParameters(url=target.file, headers=target.headers)
    if target.headers:
        raise click.UsageError(f"--header is for a server at a URL; {target.file} is started as a process")
    command, *arguments = _command(target.file, "--failure-file", str(failure))
    return StdioServerParameters(command=command, args=arguments, env={**os.environ, **target.env})


def _command(file: str, *options: str) -> list[str]:
    """Return what starts a server. Without `-P` a `types.py` in the working directory would be Python's own."""
    named = ["--", file] if file.startswith("-") else [file]
    return [sys.executable, "-P", "-m", "mcp_typed", "run", *options, *named]


def _refuse_for_url(option: str, given: dict[str, str]) -> None:
    if given:
        raise click.UsageError(f"{option} is for a server that is started here, not for one at a URL")


def _fail(text: str) -> NoReturn:
    raise click.ClickException(text)


# --- output --------------------------------------------------------------------------------------


def _formatted(tool: str, result: CallToolResult) -> str:
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

"""The examples of the documentation, run as their readers would, and what its pages show of them.

What a page shows stands below (a code span: behind) a comment that says where it is from:

- `<!-- examples/NAME.py -->`: it is a part of that file, line by line.
- `<!-- examples/NAME.py: EXPRESSION -->`: it is what the expression gives, with the names
  of the file and those of `Asked`. Without a file, it is asked of the packages themselves.

A block of the language `console` is run, one of the language `diff` applied.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import itertools
import json
import logging
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar, cast

import anyio
import docstring_parser
import mcp
import msgspec
import pytest
from mcp.server import MCPServer as OfficialServer
from mcp.server import Server as OfficialCore
from mcp.server.mcpserver import Context as OfficialContext

from mcp_core import Client, MCPError, RequestContext, Server
from mcp_core.methods import hooks
from mcp_core.observers import MOMENTS
from mcp_core.testing import flush_logs
from mcp_core.transports.streamable_http import HTTPOptions
from mcp_typed import Context, MCPServer
from mcp_typed.cli import main as command_line
from mcp_typed.policy import ToolKeywords

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
PAGES = ("tools", "structured-output", "errors", "low-level", "http", "migration")

P = ParamSpec("P")
R = TypeVar("R")

Row = tuple["str | None", ...]
"""A row of a table; `None` where a page has words of its own."""


def cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line, as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "mcp_typed", *arguments], capture_output=True, text=True, cwd=ROOT, timeout=30
    )


def test_the_readme_shows_the_example_as_it_is() -> None:
    readme = (ROOT / "README.md").read_text()
    (shown,) = re.findall(r"```python\n(.*?)```", readme, re.S)
    example = (EXAMPLES / "weather.py").read_text()
    assert shown.strip() == example.split('"""', 2)[2].strip()


def test_the_quick_start_has_two_one_line_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    section = readme.split("## Quick start")[1].split("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.S)
    assert [len(block.strip().splitlines()) for block in blocks] == [1, 1]
    assert 'mcp-typed call docs/examples/weather.py get_weather \'{"city": "London"}\'' in blocks[0]


def test_call_prints_name_text_and_structured_data() -> None:
    done = cli("call", "docs/examples/weather.py", "get_weather", '{"city": "London"}')
    data = '{\n  "temperature": 16.2,\n  "humidity": 0.83,\n  "conditions": "Overcast in London"\n}'
    assert done.stdout == f"get_weather\n\ntext:\n{data}\n\nstructured:\n{data}\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_call_of_a_low_level_server() -> None:
    done = cli("call", "docs/examples/bookshop.py:server", "search_books", '{"query": "dune", "limit": 5}', "--json")
    assert '"bookshop/record_ids": [' in done.stdout
    assert done.returncode == 0


def test_call_that_fails() -> None:
    done = cli("call", "docs/examples/weather.py", "get_weather", "{}")
    assert done.returncode == 1
    assert "Field required" in done.stdout
    assert "errors.pydantic.dev" not in done.stdout


def test_call_of_an_unknown_tool() -> None:
    done = cli("call", "docs/examples/weather.py", "get_wether", "{}")
    path = "docs/examples/weather.py"
    text = f"Unknown tool: get_wether; {path} has 'get_weather'; did you mean 'get_weather'?"
    assert (done.returncode, done.stderr) == (1, f"Error: {text}\n")


def test_bad_command_lines_say_what_to_change() -> None:
    assert "the arguments are no JSON" in cli("call", "docs/examples/weather.py", "x", "{").stderr
    assert "must be a JSON object" in cli("call", "docs/examples/weather.py", "x", "[]").stderr
    assert "there is no file" in cli("run", "nothing.py").stderr
    assert "has no server called 'nothing'" in cli("run", "docs/examples/weather.py:nothing").stderr


def test_list_prints_the_tools() -> None:
    done = cli("list", "docs/examples/weather.py")
    assert '"name": "get_weather"' in done.stdout
    assert done.returncode == 0


# --- what the pages show ------------------------------------------------------------------------


class Shown(NamedTuple):
    """Something that a page shows: the line, the form, the thing, and where it is from."""

    page: str
    line: int
    form: str
    text: str
    source: str

    def __str__(self) -> str:
        return f"{self.page}-{self.line}-{self.form}"


COMMENT = r"<!-- (?P<source>[^>\n]*?) -->"
FENCE = re.compile(rf"^(?:{COMMENT}\n)?```(?P<form>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
TABLE = re.compile(rf"^(?:{COMMENT}\n\n?)?(?P<text>(?:\|.*\n)+)", re.M)
SPAN = re.compile(rf"{COMMENT}`(?P<text>[^`]*)`")


def shown_on(page: str) -> Iterator[Shown]:
    text = (DOCS / f"{page}.md").read_text()
    for form, pattern in (("", FENCE), ("table", TABLE), ("span", SPAN)):
        for found in pattern.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield Shown(page, line, form or found["form"], found["text"], found["source"] or "")
        # Nothing in a block is to be taken for something else.
        text = pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


ALL = [shown for page in PAGES for shown in shown_on(page)]


def of_form(*forms: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("shown", [shown for shown in ALL if shown.form in forms], ids=str)


def test_each_thing_shown_says_where_it_is_from() -> None:
    assert [str(shown) for shown in ALL if not shown.source and shown.form not in ("console", "diff")] == []
    assert {shown.form for shown in ALL} <= {"python", "json", "text", "console", "diff", "table", "span"}


def test_no_example_is_forgotten() -> None:
    pages = "".join((DOCS / f"{page}.md").read_text() for page in PAGES) + (ROOT / "README.md").read_text()
    assert [path.name for path in sorted(EXAMPLES.glob("*.py")) if f"examples/{path.name}" not in pages] == []


@pytest.mark.parametrize("page", [ROOT / "README.md", *(DOCS / f"{page}.md" for page in PAGES)], ids=lambda p: p.stem)
def test_links_lead_somewhere(page: Path) -> None:
    targets = [target.partition("#") for target in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text())]
    for path, _, heading in targets:
        target = page.parent / path if path else page
        assert target.exists(), path
        headings = re.findall(r"^#+ (.+)$", target.read_text(), re.M) if heading else []
        anchors = {re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in headings}
        assert not heading or heading in anchors, f"{path}#{heading}"


@of_form("python")
def test_code_is_a_part_of_its_file(shown: Shown) -> None:
    example = (DOCS / shown.source).read_text()
    assert f"\n{shown.text.strip()}\n" in f"\n{example}\n"


@of_form("console")
def test_a_command_prints_what_is_shown(shown: Shown) -> None:
    command, _, printed = shown.text.partition("\n")
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "mcp-typed"
    done = cli(*arguments)
    assert done.stdout + done.stderr == printed


# --- what an example gives ------------------------------------------------------------------------


def load(name: str, source: str) -> ModuleType:
    """A file of the examples as a module of its own, new each time."""
    spec = importlib.util.spec_from_loader(name, loader=None)
    assert spec is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    exec(compile(source, str(EXAMPLES / f"{name}.py"), "exec"), module.__dict__)
    return module


def as_json(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def attribute_docs(cls: type[Any]) -> dict[str, str]:
    """The docstrings of a class's attributes, each on one line."""
    (definition,) = ast.parse(inspect.getsource(cls)).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for attribute, docs in itertools.pairwise(definition.body):
        if isinstance(attribute, ast.AnnAssign) and isinstance(docs, ast.Expr) and isinstance(docs.value, ast.Constant):
            found[ast.unparse(attribute.target)] = " ".join(str(docs.value.value).split())
    return found


IDENTITY: Final = {f"`{name}`" for name in ("name", "version", "title", "description", "website_url", "icons")}


def cell_of(text: str) -> str:
    """A text on one line, as it can stand in a table."""
    return " ".join(text.split()).replace("|", "\\|")


def option_rows(cls: type[Any]) -> list[Row]:
    """The keywords of a constructor, their defaults, and what the class's docstring says of each."""
    described = {each.arg_name: each.description or "" for each in docstring_parser.parse(cls.__doc__ or "").params}
    keywords = [p for p in inspect.signature(cls).parameters.values() if p.kind is p.KEYWORD_ONLY]
    return [(code(p.name), code(written(p.default)), cell_of(described[p.name])) for p in keywords]


def unstamped(meta: dict[str, Any] | None) -> dict[str, Any]:
    return {key: value for key, value in (meta or {}).items() if key != "io.modelcontextprotocol/serverInfo"}


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def cell(text: str) -> str:
    """A text as a cell of a table: JSON on one line, other lines as code spans below each other."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        value = None
    lines = [compact(value)] if isinstance(value, dict | list) else text.splitlines()
    shown = "<br>".join(f"`{line.strip()}`" for line in lines)
    return shown.encode("utf-8", "backslashreplace").decode().replace("|", r"\|")


def code(text: str) -> str:
    escaped = text.replace("|", r"\|")
    return f"`{escaped}`"


def at_once(ask: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, R]:
    """A question with its answer, so that the pages need no `await`."""

    @functools.wraps(ask)
    def answer(*args: P.args, **kwargs: P.kwargs) -> R:
        return anyio.run(functools.partial(ask, *args, **kwargs))

    return answer


class Asked:
    """What can be asked about an example, in the words of the pages.

    A tool is called by clients of both eras, which have to be told the same.
    """

    def __init__(self, module: ModuleType | None, source: str, caplog: pytest.LogCaptureFixture) -> None:
        self._module = cast("Any", module)
        self._source = source
        self._caplog = caplog

    def names(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in dir(self) if not name.startswith("_")}
        return {**vars(self._module), **own} if self._module else own

    @property
    def _server(self) -> Any:
        return getattr(self._module, "mcp", None) or self._module.server

    # Tools

    @at_once
    async def listed(self, tool: str) -> Any:
        async with Client(self._server) as client:
            return next(as_json(each) for each in (await client.list_tools()).tools if each.name == tool)

    def schema(self, tool: str) -> Any:
        return self.listed(tool)["inputSchema"]

    def output(self, tool: str) -> Any:
        return self.listed(tool).get("outputSchema")

    def lint(self) -> str:
        return "\n".join(str(finding) for finding in self._server.lint())

    # Calls

    @at_once
    async def result(self, tool: str, /, **arguments: Any) -> Any:
        results: list[Any] = []
        for mode in ("auto", "legacy"):
            async with Client(self._server, mode=mode) as client:
                result = as_json(await client.call_tool(tool, arguments))
            meta = unstamped(result.pop("_meta", None))
            result.pop("resultType", None)
            results.append({**result, "_meta": meta} if meta else result)
        assert steady(compact(results[0])) == steady(compact(results[1]))
        return results[0]

    def content(self, tool: str, /, **arguments: Any) -> Any:
        return self.result(tool, **arguments)["content"]

    def text(self, tool: str, /, **arguments: Any) -> str:
        (block,) = self.content(tool, **arguments)
        return str(block["text"])

    def structured(self, tool: str, /, **arguments: Any) -> Any:
        return self.result(tool, **arguments).get("structuredContent")

    @at_once
    async def error(self, tool: str, /, **arguments: Any) -> Any:
        async with Client(self._server) as client:
            return await told(client.call_tool(tool, arguments))

    @at_once
    async def log(self, tool: str, /, **arguments: Any) -> str:
        """The records of a call, with the first and the last line of a traceback."""
        flush_logs()
        self._caplog.clear()
        with self._caplog.at_level(logging.DEBUG, "mcp_typed"), self._caplog.at_level(logging.DEBUG, "mcp_core"):
            async with Client(self._server) as client:
                try:
                    await client.call_tool(tool, arguments)
                except MCPError:
                    pass
            flush_logs()
        lines: list[str] = []
        for record in self._caplog.records:
            if record.name.startswith("mcp_"):
                lines.append(f"{record.levelname} {record.name}: {record.getMessage()}")
                trace = (record.exc_text or "").splitlines()
                lines += [trace[0], "  ...", trace[-1]] if trace else []
        return "\n".join(lines)

    @at_once
    async def refusal(self, function: Callable[..., Any], *args: Any) -> Any:
        """The protocol error by which a call of a function is refused."""
        return await told(function(*args))

    def raised(self, function: Callable[[], Any]) -> str:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the page says which
            function()
        return f"{caught.type.__name__}: {caught.value}"

    # Tables

    def received(self, *calls: tuple[str, Any]) -> list[Row]:
        """Parameter, what is sent, and what the function gets or the reason why it gets nothing."""
        rows: list[Row] = []
        for tool, value in calls:
            parameter = function_of(self._source, tool).args.args[0]
            (name,) = self.schema(tool)["properties"]
            default = self.schema(tool)["properties"][name].get("default", ...)
            shown = ast.unparse(parameter) + ("" if default is ... else f" = {default!r}")
            answer = self.result(tool, **{name: value})
            (block,) = answer["content"]
            got = block["text"].splitlines()[2].partition(" [")[0] if answer["isError"] else block["text"]
            rows.append((code(shown), code(compact(value)), got.strip() if answer["isError"] else code(got)))
        return rows

    def shapes(self, kind: str) -> list[Row]:
        """Annotation, value, structured content and text of the tools whose results are of this kind."""
        rows: list[Row] = []
        for function in ast.parse(self._source).body:
            if not isinstance(function, ast.FunctionDef):
                continue
            schema = self.output(function.name)
            if kind != (
                "text" if schema is None else "wrapped" if "result" in schema.get("properties", ()) else "object"
            ):
                continue
            returned = cast("Any", function.body[-1]).value
            value = returned.value if isinstance(returned, ast.YieldFrom) else returned
            result = self.result(function.name)
            texts = " ".join(cell(block["text"]) for block in result["content"])
            data = code(compact(result["structuredContent"])) if "structuredContent" in result else "none"
            annotation = ast.unparse(cast("Any", function.returns))
            rows.append((code(annotation), code(ast.unparse(value)), data, texts))
        return rows

    def failures(self, **calls: dict[str, Any]) -> list[Row]:
        """Tool, what happened, what the model reads, and what the log has."""
        rows: list[Row] = []
        for tool, arguments in calls.items():
            try:
                result = self.result(tool, **arguments)
            except MCPError as exc:
                read = f"nothing: protocol error `{exc.code}`, {code(exc.message)}"
            else:
                assert result["isError"]
                read = cell(result["content"][0]["text"])
            head, *trace = self.log(tool, **arguments).splitlines() or ["nothing"]
            level, _, rest = head.partition(" ")
            logged = head if head == "nothing" else f"{level}: {code(rest.partition(': ')[2])}"
            rows.append((code(tool), None, read, logged + (", traceback" if trace else "")))
        return rows

    def options(self) -> list[Row]:
        """The options of `MCPServer` that say how tools are run, with their defaults, as its docstring has them."""
        return [row for row in option_rows(MCPServer) if row[0] not in IDENTITY]

    def server_options(self) -> list[Row]:
        """The same of the core's server."""
        return [row for row in option_rows(Server) if row[0] not in IDENTITY]

    def client_options(self) -> list[Row]:
        """The same of the client."""
        return option_rows(Client)

    def tool_options(self) -> list[Row]:
        """The options of one tool, as `ToolKeywords` describes them."""
        return [(code(name), cell_of(text)) for name, text in attribute_docs(ToolKeywords).items()]

    def commands(self) -> list[Row]:
        return [(code(f"mcp-typed {name}"), None) for name in command_line.commands]

    def members(self) -> list[Row]:
        """What a context has, in the order of its class."""
        return [(code(name), None) for name in public(Context) if not of_http(name)]

    def hooks(self) -> list[Row]:
        """The keywords of the core's server, with method and result."""
        return [
            (code(hook), code(row.name), "no answer" if row.is_notification else code(row.result.__name__))
            for hook, row in hooks().items()
        ]

    def http_options(self) -> list[Row]:
        """The options of the HTTP app, in the order of their class, as it describes them."""
        described = attribute_docs(HTTPOptions)
        return [(code(name), described[name]) for name in HTTPOptions.__struct_fields__]

    def moments(self) -> list[Row]:
        return [(code(moment), None) for moment in MOMENTS]

    # Against the official SDK

    def imports(self, rows: list[list[str]]) -> list[Row]:
        """The rows of a table of imports, each run."""
        for statement in (statement for row in rows for statement in row):
            assert re.fullmatch(r"`from [\w.]+ import [\w, ]+`", statement)
            exec(statement.strip("`"), {})
        return [tuple(row) for row in rows]

    def constructor(self) -> list[Row]:
        """The parameters of the official `MCPServer`, and which of them there are here."""
        ours = inspect.signature(MCPServer).parameters
        theirs = inspect.signature(OfficialServer).parameters
        return [(code(name), "as it was" if name in ours else None) for name in theirs]

    def gone(self, what: str) -> list[Row]:
        """Public members of an official class that ours does not have."""
        theirs, ours = {
            "MCPServer": (OfficialServer, MCPServer),
            "Context": (OfficialContext, Context),
            "Server": (OfficialCore, Server),
            "ServerSession": (mcp.ServerSession, RequestContext),
        }[what]
        return [(code(name), None) for name in public(theirs) if not hasattr(ours, name)]

    def gone_options(self, what: str) -> list[Row]:
        """Options of an official call that ours does not take."""
        found: tuple[Any, set[str]] = {
            "Client": (mcp.Client, set(inspect.signature(Client).parameters)),
            "streamable_http_app": (OfficialServer.streamable_http_app, {"self", *HTTPOptions.__struct_fields__}),
        }[what]
        theirs, ours = found
        return [(code(name), None) for name in inspect.signature(theirs).parameters if name not in ours]

    def left_out(self, rows: list[list[str]]) -> list[Row]:
        """Public names of the official SDK that have no counterpart; each is there."""
        for names, _ in rows:
            for name in re.findall("`(.+?)`", names):
                module, _, member = name.rpartition(".")
                assert hasattr(importlib.import_module(module), member), name
        return [(names, None) for names, _ in rows]

    def unseen(self, rows: list[list[str]]) -> list[Row]:
        """Decisions that no value shows: none of them is in another table of the page."""
        tables = [rows_of(shown.text) for shown in ALL if shown.page == "migration" and shown.form == "table"]
        elsewhere = {row[0] for table in tables for row in table if table != rows}
        assert all(re.fullmatch(r"P-\d\d", row[0]) and row[0] not in elsewhere for row in rows)
        return [(row[0], None, None) for row in rows]

    @at_once
    async def crashes(self) -> list[Row]:
        """By revision, the error that a client of a low-level server gets for an exception, there and here."""

        async def crash(ctx: Any, params: Any) -> Any:
            raise ValueError("secret")

        rows: list[Row] = []
        for mode in ("auto", "legacy"):
            async with (
                mcp.Client(OfficialCore("x", on_call_tool=crash), mode=mode) as theirs,
                Client(Server("x", on_call_tool=crash), mode=mode) as ours,
            ):
                cells: list[str] = []
                for client in (theirs, ours):
                    with pytest.raises((MCPError, mcp.MCPError)) as caught:
                        await client.call_tool("x", {})
                    error: Any = caught.value
                    cells.append(f"`{error.code}`, {code(error.message)}")
                rows.append((ours.protocol_version, *cells))
        return rows

    @at_once
    async def registrations(self) -> list[Row]:
        """Decision, and what its functions give after they have registered something, there and here."""
        rows: list[Row] = []
        for name, function in cast("dict[str, Any]", vars(self._module)).items():
            if inspect.isfunction(function) and re.fullmatch(r"P-\d\d", function.__doc__ or ""):
                there = await given(getattr(load("migrate_registrations", officially(self._source)), name))
                here = await given(getattr(load("migrate_registrations", self._source), name))
                rows.append((function.__doc__, None, there, here, None))
        return rows

    @at_once
    async def differences(self) -> list[Row]:
        """Decision, what a tool does, what the official SDK makes of it, and what is made of it here."""
        other = load("migrate_differences", officially(self._source))
        sent: dict[str, dict[str, Any]] = {
            "wheels": {"count": "x"},
            "note": {"text": "[1]"},
            "optional": {"gear": None},
        }
        rows: list[Row] = []
        async with mcp.Client(other.mcp) as theirs, Client(self._server) as ours:
            known = (await ours.list_tools()).tools
            for name, decision in [("nobody", "P-01"), *((tool.name, tool.description) for tool in known)]:
                arguments = sent.get(name, {})
                told_there = await outcome(theirs.call_tool(name, arguments))
                told_here = await outcome(ours.call_tool(name, arguments))
                what = "a tool that is not there" if name == "nobody" else described(self._source, name, arguments)
                rows.append((decision, what, told_there, told_here, None))
        return rows


def function_of(source: str, name: str) -> ast.FunctionDef:
    return next(node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == name)


def described(source: str, name: str, arguments: dict[str, Any]) -> str:
    """What a tool is given, or else what it does, in its own code."""
    function = function_of(source, name)
    if function.args.args:
        return f"{code(ast.unparse(function.args))}, sent {code(compact(arguments))}"
    last = cast("Any", function.body[-1])
    done = ast.unparse(getattr(last, "value", last))
    return f"{code('-> ' + ast.unparse(cast('Any', function.returns)))}, {code(done)}"


def officially(source: str) -> str:
    """A file of the examples as it would be with the official SDK."""
    return source.replace("from mcp_typed import", "from mcp.server import")


async def given(function: Callable[[], Any]) -> str:
    """What a function gives or awaits, or raises."""
    try:
        value = function()
        return code(repr(await awaited(value) if inspect.isawaitable(value) else value))
    except Exception as exc:
        return code(f"{type(exc).__name__}: {exc}")


async def told(request: Any) -> Any:
    with pytest.raises(MCPError) as caught:
        await request
    error = {"code": caught.value.code, "message": caught.value.message}
    return error if caught.value.data is None else {**error, "data": as_json(caught.value.data)}


async def outcome(request: Any) -> str:
    """A result of either SDK, in short."""
    try:
        result = await request
    except MCPError as exc:
        return f"protocol error `{exc.code}`, {code(exc.message)}"
    except RuntimeError as exc:
        return "a result that its own client refuses" if "Invalid structured content" in str(exc) else repr(exc)
    texts = " ".join(cell(block.text) for block in result.content) or "no block"
    if result.is_error:
        return texts
    data = result.structured_content
    return f"{texts}; " + ("no data" if data is None else cell(compact(data)))


def public(kind: type[Any]) -> list[str]:
    return [name for name in vars(kind) if not name.startswith(("_", "model_"))]


def of_http(name: str) -> bool:
    """Whether it belongs to HTTP or to authorization, which these pages leave out."""
    return re.search("http|sse|stream|auth|token|session_manager|custom_route", name) is not None


def written(default: Any) -> str:
    return json.dumps(default) if isinstance(default, str) else repr(default)


# --- the comparison -----------------------------------------------------------------------------------


def steady(text: str) -> str:
    """A text with what differs from run to run, or from version to version, made the same."""
    text = re.sub(r"error id [0-9a-f]{8}", "error id 1f3a9c2e", text)
    text = re.sub(r" at 0x[0-9a-f]+", " at 0x7f0000000000", text)
    return re.sub(r"pydantic\.dev/[\d.]+/", "pydantic.dev/2/", text)


async def awaited(value: Any) -> Any:
    return await value


def rows_of(table: str) -> list[list[str]]:
    _head, _rule, *rows = table.strip().splitlines()
    return [[item.strip() for item in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def check_rows(shown: list[list[str]], given: list[Row]) -> None:
    """Every cell but those in the page's own words, which must not be empty."""
    filled = [
        tuple("..." if wanted is None and item else item for item, wanted in zip(row, known, strict=True))
        for row, known in zip(shown, given, strict=False)
    ]
    wanted = [tuple("..." if item is None else item for item in row) for row in given]
    assert [[steady(item) for item in row] for row in filled] == [[steady(item) for item in row] for row in wanted]
    assert len(shown) == len(given)


@of_form("json", "text", "span", "table")
def test_a_page_shows_what_is_given(
    shown: Shown, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    monkeypatch.chdir(ROOT)
    rows = rows_of(shown.text) if shown.form == "table" else []
    example, _, expression = shown.source.rpartition(".py: ")
    name = example.removeprefix("examples/")
    source = (EXAMPLES / f"{name}.py").read_text() if name else ""
    asked = Asked(load(name, source) if name else None, source, caplog)
    value: Any = eval(expression, {"anyio": anyio, "json": json, "rows": rows, **asked.names()})
    if inspect.iscoroutine(value):
        value = anyio.run(awaited, value)
    if shown.form == "table":
        check_rows(rows, value)
    elif isinstance(value, str):
        assert steady(shown.text.rstrip("\n")) == steady(value)
    else:
        assert json.loads(shown.text) == as_json(value)


def test_a_server_moves_by_its_imports() -> None:
    (change,) = [shown.text for shown in ALL if shown.form == "diff"]
    lines = change.splitlines()
    before = "\n".join(line[1:] for line in lines if line[0] in "- ")
    after = "\n".join(line[1:] for line in lines if line[0] in "+ ")
    source = (EXAMPLES / "migrate_server.py").read_text()
    assert source.count(after) == 1
    ours, theirs = load("migrate_server", source), load("migrate_server", source.replace(after, before))
    servers: list[Any] = [theirs.mcp, ours.mcp]
    assert [type(server) for server in servers] == [OfficialServer, MCPServer]
    anyio.run(compare, *servers)


async def compare(theirs: Any, ours: MCPServer) -> None:
    """List and call the tools of both, and get the same."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("look_up", {"name": "Canal"}),
        ("look_up", {"name": "Market"}),
        ("tariff", {}),
        ("tariff", {"minutes": 45, "kind": "cargo"}),
    ]
    async with mcp.Client(theirs) as there, Client(ours) as here:
        listed_there = [tool.model_dump(by_alias=True, exclude_none=True) for tool in (await there.list_tools()).tools]
        assert as_json((await here.list_tools()).tools) == listed_there
        assert here.instructions == there.instructions == "Ask for a station first."
        for name, arguments in calls:
            wanted = (await there.call_tool(name, arguments)).model_dump(by_alias=True, exclude_none=True)
            assert as_json(await here.call_tool(name, arguments)) == wanted

"""From a target to its server: files, packages, modules, names, functions; and what to do where there is none."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcp_core import LocalProtocolError, Server
from mcp_core.starting import ServedWhileLoading, loading
from mcp_typed import MCPServer
from mcp_typed.loading import NoServer, load_server, load_typed_server
from tests.cli.conftest import Run, Write

pytestmark = pytest.mark.usefixtures("loads_apart")

SERVER = """
from mcp_typed import MCPServer

mcp = MCPServer("bikes")

@mcp.tool
def echo(x: str) -> str:
    return x
"""


def refused(target: str) -> str:
    with pytest.raises(NoServer) as caught:
        load_server(target)
    return str(caught.value)


def refused_typed(target: str) -> str:
    with pytest.raises(NoServer) as caught:
        load_typed_server(target)
    return str(caught.value)


# --- packages and modules ------------------------------------------------------------------------


@pytest.fixture
def package(write: Write) -> Path:
    write("shop/__init__.py", "")
    write("shop/bikes/__init__.py", "")
    write("shop/names.py", "NAME = 'the shop'\n")
    write("shop/bikes/conf.py", "PRICE = 5\n")
    return write(
        "shop/bikes/server.py",
        "from ..names import NAME\nfrom .conf import PRICE\nfrom shop.bikes import conf\n"
        "from mcp_typed import MCPServer\nassert conf.PRICE is PRICE\nmcp = MCPServer(NAME)\n",
    )


@pytest.mark.case("C092")
@pytest.mark.parametrize("how", ["relative", "absolute", "inside"])
def test_a_file_of_a_package_is_a_module_of_it(package: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target = str(package) if how == "absolute" else "shop/bikes/server.py"
    if how == "inside":
        monkeypatch.chdir(package.parent)
        target = "server.py"
    server = load_server(target)
    assert server.name == "the shop"
    assert "shop.bikes.server" in sys.modules


@pytest.mark.case("C092")
@pytest.mark.parametrize("command", ["list", "call", "list --lint"])
def test_a_file_of_a_package_by_every_command(write: Write, run: Run, command: str) -> None:
    write("bikes/__init__.py", "")
    write("bikes/conf.py", "NAME = 'x'\n")
    write("bikes/server.py", "from .conf import NAME\n" + SERVER)
    name, *options = command.split()
    more = ["echo", '{"x": "hello"}'] if name == "call" else []
    done = run(name, "bikes/server.py", *more, *options)
    assert "echo" in done.stdout
    assert done.stderr == ""


@pytest.mark.case("C092")
def test_a_file_of_a_package_may_name_its_neighbours_as_a_script_does(write: Write) -> None:
    write("bikes/__init__.py", "")
    write("bikes/conf.py", "NAME = 'plain'\n")
    write("bikes/server.py", "from conf import NAME\nfrom mcp_typed import MCPServer\nmcp = MCPServer(NAME)\n")
    assert load_server("bikes/server.py").name == "plain"


@pytest.mark.case("C092")
def test_a_folder_that_is_no_package_is_said_to_be_none(write: Write) -> None:
    write("bikes/server.py", "from .conf import NAME\n" + SERVER)
    told = refused("bikes/server.py")
    assert "attempted relative import with no known parent package" in told
    assert "put an __init__.py into bikes, or name the module, from the folder above: bikes.server" in told


@pytest.mark.case("C092")
def test_a_package_that_is_named_as_another_is_no_package(write: Write) -> None:
    """Its file is still a script, as before."""
    write("msgspec/__init__.py", "raise RuntimeError('not to be loaded')")
    write("msgspec/server.py", SERVER)
    assert load_server("msgspec/server.py").name == "bikes"
    assert sys.modules["msgspec"] is msgspec


@pytest.mark.fault("X-57")
@pytest.mark.parametrize(
    "target",
    [
        "shop.bikes.server",
        "shop.bikes.server:mcp",
        "shop.bikes.server:make",
        "shop.bikes.server:make()",
        "shop.bikes.server:App.mcp",
        "shop.bikes.server:App.make()",
        "shop.bikes.server:core",
        "shop/bikes/server.py:make()",
        "shop/bikes/server.py:App.mcp",
    ],
)
def test_modules_dotted_names_and_functions(package: Path, target: str) -> None:
    package.write_text(
        package.read_text()
        + "def make() -> MCPServer:\n    return mcp\n\nclass App:\n    mcp = mcp\n    make = staticmethod(make)\n\n"
        "core = mcp.server\n"
    )
    assert load_server(target).name == "the shop"


@pytest.mark.fault("X-57")
@pytest.mark.parametrize("target", ["bikes", "bikes/"])
def test_a_package_may_hold_the_server_itself(write: Write, target: str) -> None:
    write("bikes/__init__.py", SERVER)
    assert load_server(target).name == "bikes"


@pytest.mark.fault("X-57")
def test_a_module_beside_a_file_of_its_name(write: Write) -> None:
    write("server.py", SERVER)
    assert load_server("server").name == "bikes"


@pytest.mark.fault("X-57")
@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("x.py:amake", "x.py:amake is async; the function that makes a server must be a plain one"),
        ("x.py:needs", "x.py:needs cannot be called without arguments: missing a required argument: 'a'"),
        ("x.py:other", "x.py:other is no server, but of the type int"),
        ("x.py:gives", "x.py:gives is no server, but of the type dict"),
        ("x.py:mpc", "x.py has no server called 'mpc'; it has 'mcp'"),
        ("x.py:mcp.nothing", "x.py has no server called 'mcp.nothing'"),
        ("x.py:a b", "'a b' is no name of a server; write x.py:mcp, x.py:app.mcp, or x.py:make() for a function"),
        ("x.py:", "'' is no name of a server; write x.py:mcp, x.py:app.mcp, or x.py:make() for a function"),
        ("y.py", "there is no file 'y.py'; did you mean 'x.py'?"),
        ("y", "there is no file and no module 'y'"),
        ("x.mcp", "there is no module 'x.mcp'; a server in a module is named as x:mcp"),
        ("notes.txt", "'notes.txt' is no Python file"),
        ("folder", "'folder' is a folder; name a file in it"),
        ("folder/", "'folder/' is a folder; name a file in it"),
        ("", "no file and no module is named"),
    ],
)
def test_a_target_that_names_no_server(write: Write, target: str, told: str) -> None:
    text = "async def amake(): ...\ndef needs(a): ...\nother = 5\ndef gives():\n    return {}\n"
    write("x.py", SERVER + text)
    write("notes.txt", "")
    write("folder/z.py", SERVER)
    assert refused(target) == told


@pytest.mark.fault("X-57")
def test_a_function_that_fails_is_told_by_the_authors_lines(write: Write) -> None:
    write("x.py", "def make():\n    raise ValueError('no config')\n")
    told = refused("x.py:make()")
    assert told.startswith("x.py cannot be loaded\n")
    assert told.endswith("line 2, in make\n    raise ValueError('no config')\nValueError: no config")


def test_an_import_that_is_missing_inside_of_a_module_is_not_the_module(write: Write) -> None:
    write("bikes/__init__.py", "")
    write("bikes/server.py", "import not_installed\n")
    told = refused("bikes.server")
    assert told.startswith("bikes.server cannot be loaded\n")
    assert told.endswith("ModuleNotFoundError: No module named 'not_installed'")


# --- which server --------------------------------------------------------------------------------


@pytest.mark.fault("X-32")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1", 'x.py has no server; make one in it, as in: mcp = MCPServer("name")'),
        (
            "from mcp_typed import MCPServer\na = MCPServer('a')\nb = MCPServer('b')",
            "x.py has 2 servers: 'a', 'b'; name one as x.py:a",
        ),
        (
            "from mcp_typed import MCPServer\ndef make() -> MCPServer:\n    return MCPServer('x')",
            "x.py has no server, but make() makes one; name it as 'x.py:make()'",
        ),
        (
            "from mcp.server import MCPServer\nmcp = MCPServer('x')",
            "x.py: 'mcp' is a server of the package 'mcp'; here it is: from mcp_typed import MCPServer",
        ),
        (
            "from mcp.server.lowlevel import Server\napp = Server('x')",
            "x.py: 'app' is a server of the package 'mcp'; here it is: from mcp_core import Server",
        ),
    ],
    ids=["none", "several", "function", "official", "official-lowlevel"],
)
def test_a_file_without_the_one_server(write: Write, text: str, told: str) -> None:
    write("x.py", text)
    assert refused("x.py") == told


@pytest.mark.fault("X-32")
@pytest.mark.parametrize("target", ["low.py", "low.py:server"])
def test_lint_says_what_it_is_for(write: Write, target: str) -> None:
    write("low.py", "from mcp_core import Server\nserver = Server('low')\n")
    assert "a low-level Server, and lint looks at the tools of an MCPServer" in refused_typed(target)
    assert load_server(target).name == "low"


def test_one_server_under_two_names_is_one(write: Write) -> None:
    write("x.py", "from mcp_typed import MCPServer\nbikes = MCPServer('x')\ncore = bikes.server\nother = bikes\n")
    assert load_server("x.py").name == "x"
    assert isinstance(load_typed_server("x.py"), MCPServer)


def test_a_proxy_among_the_globals_is_left_alone(write: Write) -> None:
    """As those of web frameworks, which may not be asked outside of a request."""
    proxy = (
        "class Proxy:\n    @property\n    def __class__(self):\n        raise RuntimeError('outside')\n\np = Proxy()\n"
    )
    write("x.py", SERVER + proxy)
    assert load_server("x.py").name == "bikes"


# --- how a file is loaded ------------------------------------------------------------------------


@pytest.mark.fault("X-55")
@pytest.mark.parametrize("name", ["click.py", "types.py", "__main__.py", "anyio.py", "server.v2.py"])
def test_a_file_may_be_named_as_a_module_that_is_loaded(write: Write, name: str) -> None:
    before = dict(sys.modules)
    write(name, SERVER + "class Here: ...\n\nif __name__ == '__main__':\n    raise RuntimeError('run')\n")
    assert load_server(name).name == "bikes"
    (module,) = (m for m in sys.modules.values() if getattr(m, "__file__", None) == str(Path(name).resolve()))
    assert all(sys.modules[n] is m for n, m in before.items()), "another module was replaced"
    here: Any = module.__dict__["Here"]
    assert pickle.loads(pickle.dumps(here)) is here, "a class finds its module by its name"


def test_a_file_that_fails_leaves_no_module(write: Write) -> None:
    write("half.py", SERVER + "1 / 0\n")
    refused("half.py")
    assert "half" not in sys.modules


def test_a_file_is_run_anew_each_time(write: Write) -> None:
    write("again.py", SERVER)
    first = load_server("again.py")
    write("again.py", SERVER.replace('"bikes"', '"changed"'))
    assert (first.name, load_server("again.py").name) == ("bikes", "changed")


# --- serving while it is loaded ------------------------------------------------------------------

UNGUARDED = {
    "typed": (SERVER, "mcp.run()"),
    "core": ("from mcp_core import Server\nserver = Server('x')\n", "server.run()"),
    "core-of-typed": (SERVER, "mcp.server.run('stdio')"),
    "trio": (SERVER, "mcp.run(loop='trio')"),
    "http": (SERVER, "mcp.run('streamable-http', port=1)"),
    "workers": (SERVER, "mcp.run('streamable-http', workers=2, stateless_http=True)"),
    "asyncio": (SERVER, "import asyncio; asyncio.run(mcp.run_stdio_async())"),
    "task-group": (
        SERVER + "import anyio\nasync def main():\n    async with anyio.create_task_group() as group:\n"
        "        group.start_soon(mcp.run_stdio_async)\n",
        "anyio.run(main, backend='trio')",
    ),
    "in-a-function": (SERVER + "def main():\n    mcp.run()\n", "main()"),
}


@pytest.mark.fault("X-55")
@pytest.mark.parametrize("kind", UNGUARDED)
def test_a_file_that_serves_while_it_is_loaded(write: Write, kind: str) -> None:
    before, call = UNGUARDED[kind]
    write("x.py", f"{before}\n{call}\n\n@mcp.tool\ndef late() -> None: ...\n")
    line = before.count("\n") + 2
    name = "run_stdio_async()" if kind in ("asyncio", "task-group") else "run()"
    guard = 'guard it with `if __name__ == "__main__":`'
    assert refused("x.py") == f"x.py, line {line}: {name} is called while the file is loaded; {guard}"


@pytest.mark.fault("X-55")
def test_the_line_is_that_of_the_module_that_serves(write: Write) -> None:
    write("x.py", "import y\n" + SERVER)
    write("y.py", SERVER + "mcp.run()\n")
    assert refused("x.py").startswith("y.py, line 9: run() is called")


@pytest.mark.fault("X-55")
def test_a_function_that_serves_instead_of_making(write: Write) -> None:
    write("x.py", SERVER + "def main():\n    mcp.run()\n")
    assert "guard it" in refused("x.py:main")


@pytest.mark.fault("X-55")
@pytest.mark.parametrize("command", ["run", "list", "list --lint", "call"])
def test_no_command_hangs_on_a_file_that_serves(write: Write, run: Run, command: str) -> None:
    write("x.py", SERVER + "mcp.run()\n@mcp.tool\ndef late() -> int:\n    return 1\n")
    name, *options = command.split()
    done = run(name, "x.py", *(["late"] if name == "call" else []), *options)
    assert (done.returncode, done.stdout) == (1, "")
    guard = 'guard it with `if __name__ == "__main__":`'
    assert done.stderr == f"Error: x.py, line 9: run() is called while the file is loaded; {guard}\n"


@pytest.mark.fault("X-55")
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("3", ', with exit status 3; guard it with `if __name__ == "__main__":`'),
        ("", ', with exit status 0; guard it with `if __name__ == "__main__":`'),
        ("'KEY is not set'", ": KEY is not set"),
    ],
)
def test_a_file_that_ends_the_program(write: Write, given: str, told: str) -> None:
    write("x.py", f"import sys\nsys.exit({given})\n")
    assert refused("x.py") == f"x.py, line 2 ends the program while it is loaded{told}"


@pytest.mark.fault("X-55")
@pytest.mark.parametrize("command", ["list", "list --lint"])
def test_a_file_that_has_an_asgi_server_serve_ends(write: Write, run: Run, command: str) -> None:
    write("x.py", SERVER + "import uvicorn\nuvicorn.run(mcp.streamable_http_app(), port=0)\n")
    name, *options = command.split()
    done = run(name, "x.py", *options)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the HTTP app is called while the file is loaded; guard it" in done.stderr
    assert "Error: x.py, line 10 ends the program while it is loaded, with exit status 3; guard it" in done.stderr


@pytest.mark.fault("X-55")
def test_what_is_refused_is_no_more_than_serving(write: Write) -> None:
    """Tools may be tried out; and afterwards the server can be served."""
    write("x.py", SERVER + "import asyncio\nresult = asyncio.run(mcp.call_tool('echo', {'x': 'tried'}))\n")
    server = load_server("x.py")
    assert sys.modules["x"].__dict__["result"].structured_content == {"result": "tried"}
    with pytest.raises(TypeError, match="has no option"):  # it gets as far as its options
        server.run(nothing=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


@pytest.mark.fault("X-55")
@pytest.mark.parametrize("server", [Server("x"), MCPServer("x")], ids=["core", "typed"])
async def test_the_refusal_is_an_error_of_ours_and_ends_with_the_loading(server: Any) -> None:
    with loading():
        for transport in ("stdio", "streamable-http"):
            with pytest.raises(ServedWhileLoading, match=r"run\(\) is called while the file is loaded"):
                server.run(transport)
        with pytest.raises(LocalProtocolError, match="run_stdio_async"):
            await server.run_stdio_async()
    with pytest.raises(TypeError, match="has no option"):
        await server.run_stdio_async(nothing=1)

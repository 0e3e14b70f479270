"""The layers: a module imports only from those above its own, and no more than it should."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_core.testing import modern_meta

ROOT = Path(__file__).parent.parent

CORE = (
    ("errors", "revisions", "journal", "channel", "auth", "endings"),
    ("codec", "leaving"),
    ("parameter_headers", "forms"),
    ("messages", "types"),
    ("methods", "envelope", "checking"),
    ("projection",),
    ("observers", "results", "subscriptions"),
    ("session",),
    ("backend",),
    ("context", "handlers", "threads", "lifespan", "running", "starting"),
    ("dispatch", "connection", "listening", "request_state", "announcer"),
    ("server",),
    ("transports", "jwt_verifier"),
    ("client", "faults"),
    ("testing",),
)
"""The layers of `mcp_core`, top first; those of one row do not import each other, except
for `types` inside itself."""

TYPED = (
    ("annotations", "asking", "cancellation", "inspector", "media", "report", "mirrored", "missing", "terminal"),
    ("tracebacks",),
    ("errors",),
    ("plain", "options"),
    ("foreign", "failures", "watching"),
    ("schema", "given"),
    ("elicitation",),
    ("context",),
    ("signature", "docstrings"),
    ("arguments", "results", "resolve"),
    ("tools",),
    ("lint",),
    ("server",),
    ("loading",),
    ("cli",),
    ("__main__",),
)

# An import inside a function, for what only some servers need, may point downwards.
LAZY = {
    ("server", "lifespan"),
    ("server", "running"),
    ("server", "listening"),
    ("server", "transports"),
    ("backend", "backend"),
}


def _modules(package: str) -> list[tuple[str, ast.Module]]:
    found: list[tuple[str, ast.Module]] = []
    for path in sorted((ROOT / package).rglob("*.py")):
        name = path.relative_to(ROOT / package).parts[0].removesuffix(".py")
        if name != "__init__":
            found.append((name, ast.parse(path.read_text())))
    return found


def _imports(tree: ast.Module, package: str) -> set[str]:
    """The modules of the package that are imported when this one is."""
    names: set[str] = set()
    lazy = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in lazy or not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        parts = node.module.split(".")
        if parts[0] == package:
            names |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return names


@pytest.mark.parametrize(("package", "layers"), [("mcp_core", CORE), ("mcp_typed", TYPED)])
def test_modules_import_only_from_layers_above(package: str, layers: tuple[tuple[str, ...], ...]) -> None:
    level = {name: row for row, names in enumerate(layers) for name in names}
    wrong: list[str] = []
    for name, tree in _modules(package):
        for imported in _imports(tree, package):
            above = level[imported] < level[name] or (imported == name)
            if imported in level and not above:
                wrong.append(f"{package}.{name} imports {imported}")
    assert wrong == []


def test_every_module_has_a_layer() -> None:
    for package, layers in (("mcp_core", CORE), ("mcp_typed", TYPED)):
        assert {name for name, _ in _modules(package)} == {name for row in layers for name in row}


def test_the_typed_layer_uses_public_names_only() -> None:
    private = [
        f"{name}: {node.module}.{alias.name}"
        for name, tree in _modules("mcp_typed")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mcp_core")
        for alias in node.names
        if alias.name.startswith("_") or "._" in (node.module or "")
    ]
    assert private == []


def test_only_the_codec_calls_a_json_library() -> None:
    callers = {
        name
        for name, tree in _modules("mcp_core")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith(("msgspec.json", "orjson."))
    }
    assert callers == {"codec"}


PROBE = """
import sys, json
def loaded(): return {name.partition(".")[0] for name in sys.modules}
for name in sys.argv[2:]: __import__(name)
before, count = loaded(), len(sys.modules)
__import__(sys.argv[1])
print(json.dumps([sorted(loaded() - before - set(sys.stdlib_module_names)), len(sys.modules), sorted(sys.modules)]))
"""


def _fresh(module: str, *before: str) -> tuple[set[str], int, set[str]]:
    """What importing a module adds in an interpreter that has imported these; all it has then."""
    out = subprocess.run(
        [sys.executable, "-c", PROBE, module, *before], capture_output=True, check=True, text=True, cwd=ROOT
    ).stdout
    added, count, every = json.loads(out)
    return set(added), count, set(every)


def _bare_modules() -> int:
    out = subprocess.run([sys.executable, "-c", "import sys; print(len(sys.modules))"], capture_output=True, check=True)
    return int(out.stdout)


@pytest.mark.case("C078")
def test_the_core_loads_its_three_dependencies_and_nothing_else() -> None:
    # What the three load themselves (typing_extensions, where it is installed) is theirs.
    added, _, every = _fresh("mcp_core", "msgspec", "anyio", "orjson")
    assert added == {"mcp_core"}
    assert every.isdisjoint({"pydantic", "asyncio", "trio", "mcp_core.client", "mcp_core.transports", "ssl", "socket"})
    alone, _, _ = _fresh("mcp_core")
    assert {"msgspec", "orjson"} <= alone
    assert alone <= {"mcp_core", "msgspec", "orjson", "anyio", "typing_extensions"}


@pytest.mark.case("C078")
def test_the_core_loads_few_modules() -> None:
    _, count, _ = _fresh("mcp_core")
    assert count - _bare_modules() <= 120


@pytest.mark.case("C078")
def test_the_typed_layer_adds_pydantic_only() -> None:
    added, count, every = _fresh("mcp_typed", "msgspec", "anyio", "orjson", "pydantic")
    pydantics = {"pydantic_core", "annotated_types", "typing_inspection", "typing_extensions"}
    assert {name for name in added - pydantics if not name.startswith("_")} == {"mcp_core", "mcp_typed"}
    assert every.isdisjoint({"click", "asyncio", "trio", "mcp_core.client"})
    assert count - _bare_modules() <= 260


def test_a_stdio_server_loads_only_what_it_uses() -> None:
    # anyio's own event loop support takes as long to load as the whole core.
    code = (
        "import sys, mcp_core\n"
        "from mcp_core.types import EmptyResult\n"
        "heavy = ('anyio._backends', 'mcp_core.client', 'mcp_core.lifespan', 'pydantic', 'trio', 'multiprocessing')\n"
        "server = mcp_core.Server('lean')\n"
        "server.add_request_handler('loaded', dict, lambda ctx, p: {'n': [m for m in sys.modules if m in heavy]})\n"
        "server.run()\n"
    )
    request = {"jsonrpc": "2.0", "id": 1, "method": "loaded", "params": {"_meta": modern_meta()}}
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(request), capture_output=True, text=True, cwd=ROOT
    )
    assert json.loads(done.stdout)["result"]["n"] == []


def test_importing_writes_nothing_and_configures_no_logging() -> None:
    code = (
        "import logging, mcp_core, mcp_typed, mcp_core.client, mcp_core.testing\n"
        "assert logging.root.handlers == []\n"
        "names = [n for n in logging.root.manager.loggerDict if not n.startswith(('mcp_', 'asyncio', 'concurrent'))]\n"
        "assert all(not logging.getLogger(n).handlers for n in logging.root.manager.loggerDict)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_without_pydantic_the_typed_layer_says_what_to_install() -> None:
    code = "import sys; sys.modules['pydantic'] = None\nimport mcp_typed"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    assert 'pip install "mcpcore[typed]"' in done.stderr

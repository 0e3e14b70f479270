"""The layers: a module imports only from those above its own, and no more than it should."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Container, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import pytest

from mcp_core.testing import modern_meta

ROOT = Path(__file__).parent.parent

UNTRACED: Final = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
"""The environment without what loads coverage into every process: its modules would be counted."""

SUBPACKAGES = (
    "mcp_core.backend",
    "mcp_core.client",
    "mcp_core.transports",
    "mcp_core.transports.http_client",
    "mcp_core.transports.streamable_http",
    "mcp_core.types",
)

CORE = (
    ("errors", "revisions", "queue_logger", "channel", "auth", "close_callbacks", "uri_templates", "path_security"),
    ("codec", "process_exit"),
    ("parameter_headers", "forms"),
    ("messages", "types"),
    ("methods", "request_meta", "checking"),
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
    (
        "annotations",
        "asking",
        "cancellation",
        "inspector",
        "json_schema",
        "media",
        "report",
        "header_arguments",
        "missing",
        "terminal",
    ),
    ("tracebacks",),
    ("errors",),
    ("plain", "options"),
    ("foreign", "failures", "watching"),
    ("schema", "given"),
    ("elicitation",),
    ("context",),
    ("signature", "docstrings"),
    ("arguments", "results", "resolve"),
    ("policy",),
    ("running",),
    ("tools",),
    ("lint",),
    ("server",),
    ("loading",),
    ("cli",),
    ("__main__",),
)

LAZY: Final = {
    # A server is run, or made an app, by what stands on it: loaded when it is asked for.
    ("mcp_core.server", "mcp_core.transports.stdio"),
    ("mcp_core.server", "mcp_core.transports.streamable_http"),
    ("mcp_core.server", "mcp_core.transports.streamable_http.serving"),
    ("mcp_core.starting", "mcp_core.running"),
    # Types of options and of members: only type checkers follow these.
    ("mcp_core.context", "mcp_core.server"),
    ("mcp_core.server", "mcp_core.transports.streamable_http.options"),
    # Schemas are made of types, and some types have schemas within.
    ("mcp_typed.plain", "mcp_typed.schema"),
}
"""Imports inside functions, and for types, that point down or sideways. Those that point up need no leave."""

ROWS: Final = {
    (package, name): row
    for package, layers in (("mcp_core", CORE), ("mcp_typed", TYPED))
    for row, names in enumerate(layers)
    for name in names
}

Kind: TypeAlias = Literal["at run time", "in a function", "for types"]


class Import(NamedTuple):
    """One import of a module of ours."""

    importer: str
    imported: str
    kind: Kind


@cache
def sources() -> dict[str, str]:
    """The text of every module, by its full name."""
    found: dict[str, str] = {}
    for package in ("mcp_core", "mcp_typed"):
        for path in sorted((ROOT / package).rglob("*.py")):
            found[".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")] = path.read_text()
    return found


def imports_of(texts: dict[str, str]) -> set[Import]:
    """What these modules import of ours, wherever the import stands."""
    known = sources()
    return {
        Import(name, imported, kind)
        for name, text in texts.items()
        for imported, kind in _imported(ast.parse(text), known, "at run time")
    }


def _imported(tree: ast.AST, known: Container[str], kind: Kind) -> Iterator[tuple[str, Kind]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            named = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else node.module for name in named]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            names = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        else:
            names = []
        for name in names:
            if name in known:
                yield name, kind
        yield from _imported(node, known, _kind_within(node, kind))


def _kind_within(node: ast.AST, kind: Kind) -> Kind:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return "in a function"
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return "for types"
    return kind


def faults(texts: dict[str, str]) -> list[str]:
    """What is wrong with the imports of these modules."""
    return [
        f"{each.importer} imports {each.imported} {each.kind}"
        for each in sorted(imports_of(texts))
        if not _is_allowed(each)
    ]


def _is_allowed(each: Import) -> bool:
    (package, *inner), (other, *outer) = each.importer.split("."), each.imported.split(".")
    if package != other:
        return package == "mcp_typed"
    if not inner or inner[:1] == outer[:1]:
        return True  # a package gathers the names of its modules; what is inside one room has a test of its own
    if not outer:
        return False
    above = ROWS[other, outer[0]] < ROWS[package, inner[0]]
    return above or (each.kind != "at run time" and (each.importer, each.imported) in LAZY)


def test_modules_import_only_from_layers_above() -> None:
    """Wherever the import stands."""
    assert faults(sources()) == []


def test_every_leave_to_import_is_used() -> None:
    used = {(each.importer, each.imported) for each in imports_of(sources()) if each.kind != "at run time"}
    assert used >= LAZY


@pytest.mark.parametrize("where", ["{}", "def probe():\n    {}", "if TYPE_CHECKING:\n    {}"])
def test_an_import_of_what_stands_below_is_seen_wherever_it_is(where: str) -> None:
    """The check can fail, in every module: none is so low that it may import the tests' own helpers."""
    for name, text in sources().items():
        lowest = "mcp_typed.__main__" if name.startswith("mcp_typed") else "mcp_core.testing"
        if "." in name and name != lowest:
            probe = where.format(f"from {lowest} import main")
            assert faults({name: f"{text}\n\n{probe}\n"}) != [], name


@pytest.mark.parametrize("inside", ["mcp_core", "mcp_typed", *SUBPACKAGES])
def test_no_modules_of_a_package_import_each_other_in_a_circle(inside: str) -> None:
    """Those of the same folder, for types and inside functions too."""
    graph: dict[str, set[str]] = {}
    for each in imports_of(sources()):
        pair = (each.importer, each.imported)
        parents = {name.rpartition(".")[0] for name in pair}
        if parents == {inside} and pair not in LAZY:
            graph.setdefault(each.importer, set()).add(each.imported)
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle


def test_every_module_has_a_layer() -> None:
    modules = {tuple(name.split(".")[:2]) for name in sources() if "." in name}
    assert modules == set(ROWS)


def test_the_typed_layer_uses_public_names_only() -> None:
    private = [
        f"{name}: {node.module}.{alias.name}"
        for name, text in sources().items()
        if name.startswith("mcp_typed")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mcp_core")
        for alias in node.names
        if alias.name.startswith("_") or "._" in (node.module or "")
    ]
    assert private == []


def test_only_the_codec_calls_a_json_library() -> None:
    callers = {
        name
        for name, text in sources().items()
        if name.startswith("mcp_core")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith(("msgspec.json", "orjson."))
    }
    assert callers == {"mcp_core.codec"}


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
        [sys.executable, "-c", PROBE, module, *before],
        capture_output=True,
        check=True,
        text=True,
        cwd=ROOT,
        env=UNTRACED,
    ).stdout
    added, count, every = json.loads(out)
    return set(added), count, set(every)


def _bare_modules() -> int:
    out = subprocess.run(
        [sys.executable, "-c", "import sys; print(len(sys.modules))"], capture_output=True, check=True, env=UNTRACED
    )
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
        [sys.executable, "-c", code],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=UNTRACED,
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

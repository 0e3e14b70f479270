"""Paths from a client: nothing leads out of the base that it is joined to."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_core.path_security import PathEscapeError, contains_path_traversal, is_absolute_path, safe_join
from tests.property.strategies import fast


@pytest.mark.parametrize(
    ("value", "leaves"),
    [
        ("..", True),
        ("../b", True),
        ("a/../../b", True),
        ("a\\..\\..", True),
        ("a/..\\../b", True),
        ("./..", True),
        ("a//../..", True),
        ("a/../b", False),
        ("a/..", False),
        ("a..b", False),
        ("...", False),
        (".", False),
        ("", False),
        ("%2e%2e", False),
        ("..;/x", False),
    ],
)
def test_dots_leave_where_they_outnumber_what_is_before_them(value: str, leaves: bool) -> None:
    assert contains_path_traversal(value) is leaves


@pytest.mark.parametrize(
    ("value", "here", "with_drives"),
    [
        ("/etc", True, True),
        ("\\x", True, True),
        ("\\\\server\\share", True, True),
        ("C:\\x", True, True),
        ("C:/x", True, True),
        ("C:x", False, True),
        ("a:b", False, True),
        ("1:b", False, False),
        ("~root", False, False),
        ("a/b", False, False),
        ("", False, False),
    ],
)
def test_a_drive_is_a_root_where_there_are_drives(value: str, here: bool, with_drives: bool) -> None:
    assert is_absolute_path(value, has_drives=False) is here
    assert is_absolute_path(value, has_drives=True) is with_drives


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base with a file, a folder, and links that lead in, out and in a circle."""
    root = tmp_path_factory.mktemp("tree")
    base = root / "base"
    (base / "folder").mkdir(parents=True)
    (base / "file").write_text("inside")
    (root / "secret").write_text("outside")
    (base / "inner").symlink_to(base / "folder")
    (base / "out").symlink_to(root)
    (base / "loop").symlink_to(base / "loop")
    return base


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        (("file",), "file"),
        (("folder", "new"), "folder/new"),
        (("folder/../file",), "file"),
        (("inner", "x"), "folder/x"),
        ((), ""),
    ],
)
def test_what_stays_inside_is_resolved(tree: Path, parts: tuple[str, ...], wanted: str) -> None:
    assert safe_join(tree, *parts) == tree / wanted


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (("/etc/passwd",), "Path component '/etc/passwd' is absolute; refusing to join onto"),
        (("C:\\x",), "is absolute"),
        (("..", "secret"), "Path component '..' leaves its base"),
        (("folder", "..\\..\\x"), "leaves its base"),
        (("a\0b",), "contains a null byte"),
        (("out", "secret"), "escapes base"),
    ],
)
def test_what_leads_out_is_refused(tree: Path, parts: tuple[str, ...], text: str) -> None:
    with pytest.raises(PathEscapeError) as caught:
        safe_join(tree, *parts)
    assert text in str(caught.value)


pieces = st.sampled_from(
    ["..", ".", "a", "folder", "out", "inner", "/", "\\", "//", "%2e%2e", "%2F", "C:", "\0", "~", " "]
)


@given(st.lists(st.lists(pieces, max_size=6).map("".join), max_size=3), st.booleans())
@example(["out/../secret"], False)
@fast
def test_no_text_becomes_a_path_outside_of_its_base(tree: Path, parts: list[str], is_encoded: bool) -> None:
    given_parts = [unquote(part) for part in parts] if is_encoded else parts
    try:
        path = safe_join(tree, *given_parts)
    except PathEscapeError:
        return
    assert Path(os.path.realpath(path)).is_relative_to(tree.resolve())

"""A folder to write servers in, and the command line run in it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest


class Run(Protocol):
    """The command line, as a process of its own in the folder."""

    def __call__(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        ...


@contextmanager
def process(command: Sequence[str], **options: Any) -> Generator[subprocess.Popen[str], None, None]:
    """A process that is watched, with its output as text; it does not outlive the block."""
    given: dict[str, Any] = {"stdin": subprocess.DEVNULL, **options}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **given) as started:
        try:
            yield started
        finally:
            started.kill()


class Write(Protocol):
    """Writes a file of the folder."""

    def __call__(self, name: str, text: str) -> Path:
        """Return its path."""
        ...


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return written


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def ran(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        # -P, as the console script: the working directory is not where Python looks for modules.
        command = [sys.executable, "-P", "-m", "mcp_typed", *arguments]
        given: dict[str, Any] = {"stdin": subprocess.DEVNULL, "cwd": tmp_path, **options}
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **given)

    return ran


@pytest.fixture
def loads_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[None, None, None]:
    """Loading in this process, from the folder, leaves nothing behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = dict(sys.modules)
    yield
    for name in sys.modules.keys() - before.keys():
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]

"""The public conformance suite, run by its script against the fixture server over HTTP.

Where the script is: the folder that the environment variable MCP_CONFORMANCE names, or
`shared/conformance` beside this repository. It needs Node, and fetches the suite once.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.http.serving import ROOT, Served, conformance_server

__all__ = ["conformance_server"]

SUITE: Final = Path(os.environ.get("MCP_CONFORMANCE") or ROOT.parent / "shared" / "conformance") / "run"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SUITE.exists(), reason="the conformance suite's script is not here"),
    pytest.mark.skipif(shutil.which("node") is None, reason="the conformance suite needs Node"),
    pytest.mark.timeout(600),
]

SCENARIOS: Final = {"2025-03-26": 1, "2025-06-18": 27, "2025-11-25": 33, "2026-07-28": 40}
"""How many scenarios the suite has for each revision: none may be left out unseen."""

_RESULT = re.compile(r"^(PASS|FAIL|SKIP) (\S+) \((\d+)/(\d+) checks\)", re.MULTILINE)


@pytest.mark.parametrize("revision", SCENARIOS)
def test_every_scenario_passes(conformance_server: Served, revision: str) -> None:
    ended = subprocess.run(
        [SUITE, conformance_server.url, revision], capture_output=True, text=True, timeout=590, check=False
    )
    results = _RESULT.findall(ended.stdout)
    assert [name for verdict, name, *_ in results if verdict != "PASS"] == [], ended.stdout
    assert [name for _, name, passed, checks in results if passed != checks or checks == "0"] == []
    assert len(results) == SCENARIOS[revision], ended.stdout + ended.stderr
    assert f"total: {len(results)} passed, 0 failed, 0 skipped" in ended.stdout
    assert ended.returncode == 0
    assert "Traceback" not in conformance_server.errors

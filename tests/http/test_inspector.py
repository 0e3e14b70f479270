"""The Inspector, as its users start it: `npx @modelcontextprotocol/inspector --cli`.

npm fetches it once and keeps it; offline it runs from that cache.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.http.serving import Served

PACKAGE: Final = "@modelcontextprotocol/inspector@2.12.0"

pytestmark = [
    pytest.mark.skipif(shutil.which("npx") is None, reason="the Inspector needs Node"),
    # The first run on a machine fetches the package.
    pytest.mark.timeout(300),
]

WEATHER: Final = {"temperature": 16.2, "humidity": 0.83, "conditions": "Overcast in London"}

MODERN: Final = pytest.param("modern", id="modern")
LEGACY: Final = pytest.param("legacy", id="legacy")


def slow(era: Any) -> Any:
    """One run takes a second or two; the default run of the tests has one of each kind."""
    return pytest.param(*era.values, id=era.id, marks=pytest.mark.slow)


Inspect = Callable[..., tuple[int, Any, Any]]


@pytest.fixture
def inspect(weather_server: Served, tmp_path: Path) -> Inspect:
    """Runs it once against the server: the exit code, what it printed, and the error it named."""
    command = ["npx", "--yes", "--prefer-offline", PACKAGE, "--cli", "--transport", "http"]
    command += ["--server-url", weather_server.url, "--format", "json", "--quiet"]
    # What it remembers between runs is not to be kept in the user's home.
    env = {**os.environ, "MCP_STORAGE_DIR": str(tmp_path), "MCP_CATALOG_PATH": str(tmp_path / "mcp.json")}

    def run(era: str, *arguments: str) -> tuple[int, Any, Any]:
        ended = subprocess.run(
            [*command, "--protocol-era", era, *arguments],
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
            env=env,
        )
        # npm may have things of its own to say before.
        error = ended.stderr.strip().rpartition("\n")[2]
        return (
            ended.returncode,
            json.loads(ended.stdout)["result"] if ended.stdout else None,
            json.loads(error)["error"] if error.startswith("{") else None,
        )

    return run


@pytest.mark.parametrize("era", [LEGACY, slow(MODERN)])
def test_tools_list(inspect: Inspect, era: str) -> None:
    # --strict: its exit code is not 0 if a schema is one that some clients cannot use.
    code, listed, error = inspect(era, "--method", "tools/list", "--strict")
    assert (code, error) == (0, None)
    (tool,) = listed["tools"]
    assert (tool["name"], tool["title"]) == ("get_weather", "Weather now")
    assert tool["description"] == "Current weather for a city."
    assert tool["inputSchema"]["properties"] == {
        "city": {"description": "City name.", "title": "City", "type": "string"}
    }
    assert tool["inputSchema"]["required"] == ["city"]
    assert tool["outputSchema"]["properties"]["temperature"] == {
        "description": "Degrees Celsius.",
        "title": "Temperature",
        "type": "number",
    }
    assert tool["outputSchema"]["required"] == ["temperature", "humidity", "conditions"]
    assert tool["annotations"] == {"readOnlyHint": True}


@pytest.mark.parametrize("era", [slow(LEGACY), MODERN])
def test_tools_call(inspect: Inspect, era: str) -> None:
    call = ("--method", "tools/call", "--tool-name", "get_weather", "--tool-arg", "city=London")
    code, called, error = inspect(era, *call)
    assert (code, error) == (0, None)
    assert called["structuredContent"] == WEATHER
    (block,) = called["content"]
    assert json.loads(block["text"]) == WEATHER
    assert called["isError"] is False


@pytest.mark.slow
def test_a_call_that_fails(inspect: Inspect) -> None:
    code, called, error = inspect("auto", "--method", "tools/call", "--tool-name", "get_weather")
    assert (code, error["code"]) == (5, "tool_is_error")
    assert called["isError"] is True
    (block,) = called["content"]
    assert block["text"].startswith("Error executing tool get_weather: 1 validation error")

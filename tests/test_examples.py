"""The examples of the documentation, run as their readers would."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "docs" / "examples"


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
    assert (done.returncode, done.stderr) == (1, "Error: Unknown tool: get_wether\n")


def test_bad_command_lines_say_what_to_change() -> None:
    assert "the arguments are no JSON" in cli("call", "docs/examples/weather.py", "x", "{").stderr
    assert "must be a JSON object" in cli("call", "docs/examples/weather.py", "x", "[]").stderr
    assert "there is no file" in cli("run", "nothing.py").stderr
    assert "has no server called 'nothing'" in cli("run", "docs/examples/weather.py:nothing").stderr


def test_list_prints_the_tools() -> None:
    done = cli("list", "docs/examples/weather.py")
    assert '"name": "get_weather"' in done.stdout
    assert done.returncode == 0

"""Runs the README's two commands exactly as they stand: `python -m tests.readme_commands`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Run both in this directory; the exit status is that of the first that fails."""
    section = (ROOT / "README.md").read_text().split("## Quick start")[1].split("\n## ")[0]
    commands = re.findall(r"```sh\n(.*?)```", section, re.S)
    for command in commands:
        print("$", command.strip(), flush=True)
        done = subprocess.run(["bash", "-c", command], cwd=ROOT)
        if done.returncode:
            sys.exit(done.returncode)


if __name__ == "__main__":
    main()

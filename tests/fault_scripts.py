"""Run scripts that each try one known fault from outside: `python -m tests.fault_scripts FOLDER`.

A script exits 0 when the project stands what it does. All below the folder are run, two
at a time, from the project's root; the last output of those that fail is printed, and the
exit code is 1 if any does. `--only` takes a part of a script's name.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
SECONDS: Final = 120.0


def outcome(script: Path) -> tuple[bool, str]:
    """Whether a script exits 0, and what it printed."""
    try:
        done = subprocess.run(
            [sys.executable, str(script)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False, f"no end after {SECONDS:g} s"
    return done.returncode == 0, (done.stdout + done.stderr).strip()


def main(arguments: list[str] | None = None) -> int:
    """Run them; 1 if one fails, 2 if there are none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="a part of the names of those to run")
    given = parser.parse_args(arguments)
    scripts = sorted(p.resolve() for p in given.folder.rglob("*.py") if given.only in p.name)
    if not scripts:
        print(f"no scripts below {given.folder}")
        return 2
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(outcome, scripts))
    for script, (passed, printed) in zip(scripts, outcomes, strict=True):
        if not passed:
            print(f"FAILED {script.name}\n    " + "\n    ".join(printed.splitlines()[-5:]))
    failed = sum(not passed for passed, _ in outcomes)
    print(f"{len(scripts) - failed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

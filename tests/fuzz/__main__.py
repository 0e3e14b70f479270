"""The command line: `python -m tests.fuzz --seconds 60 --target messages --jobs 2`."""

from __future__ import annotations

import sys

from tests.fuzz.running import main

sys.exit(main())

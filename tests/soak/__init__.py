"""A server under mixed load for a time or a number of calls: nothing grows, nothing is lost.

`python -m tests.soak --minutes 1` runs both transports; `--transport stdio --calls 1000000`
one of them for so many calls. See `tests/README.md`.
"""

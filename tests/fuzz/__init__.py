"""Broken and hostile input for every part that reads what a peer sends, with oracles of answers and of cost.

`python -m tests.fuzz --seconds 60` plays all targets in turn; `--target` names one, and
`--messages`, `--seed`, `--jobs` say how much, which, and in how many processes. See
`tests/README.md`.
"""

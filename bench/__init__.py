"""Figures: this package, its rivals and the floors, interleaved in one run.

`python -m bench` prints them; nothing here is imported by the package.
"""

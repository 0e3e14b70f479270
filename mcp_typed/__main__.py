"""`python -m mcp_typed`: the command line."""

from mcp_typed.cli import main

main()

"""`python -m mcp_typed`: the command line."""

from mcp_typed.cli import main

if __name__ == "__main__":
    main(prog_name="mcp-typed")

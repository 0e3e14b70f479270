"""FastMCP's server."""

from fastmcp import FastMCP

mcp = FastMCP("bench", version="1")


@mcp.tool
async def echo(text: str) -> str:
    """Say it again."""
    return text


if __name__ == "__main__":
    mcp.run(transport="stdio", show_banner=False, log_level="ERROR")

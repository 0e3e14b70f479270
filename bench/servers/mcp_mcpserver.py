"""The official SDK's decorator server."""

from mcp.server.mcpserver import MCPServer

mcp = MCPServer("bench", version="1", log_level="ERROR")


@mcp.tool()
async def echo(text: str) -> str:
    """Say it again."""
    return text


if __name__ == "__main__":
    mcp.run("stdio")

"""The whole result, built by hand."""

from typing import Annotated

from pydantic import BaseModel

from mcp_core.types import CallToolResult, TextContent
from mcp_typed import MCPServer

mcp = MCPServer("Bikes")


class Count(BaseModel):
    bikes: int


@mcp.tool
def count() -> CallToolResult:
    """Sent as it is; no schema is published."""
    return CallToolResult(
        content=[TextContent(text="Seven bikes.")],
        structured_content={"bikes": 7},
        _meta={"bikes.example/counted_by": "camera"},
    )


@mcp.tool
def recount(bikes: int | None = None) -> Annotated[CallToolResult, Count]:
    """Sent as it is, once its data fits the published schema."""
    return CallToolResult(content=[TextContent(text=f"{bikes} bikes.")], structured_content={"bikes": bikes})

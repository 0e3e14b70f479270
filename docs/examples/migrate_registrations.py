"""Registrations that go otherwise here than in the official SDK; each names the decision."""

from inspect import cleandoc

from pydantic import RootModel

from mcp_typed import MCPServer

mcp = MCPServer("Bikes")


class Fleet(RootModel[list[int]]):
    pass


def fleet() -> Fleet:
    return Fleet([7, 8])


def many(*bikes: int) -> int:
    return len(bikes)


def first(bike: int, /) -> int:
    return bike


def documented(bike: int) -> int:
    """Count.

    Args:
        bike: Number on the frame.
    """
    return bike


def silent() -> int:
    return 0


async def root() -> object:
    """P-11"""
    mcp.add_tool(fleet)
    (tool,) = await mcp.list_tools()
    return tool.output_schema and tool.output_schema["type"]


async def star() -> object:
    """P-18"""
    mcp.add_tool(many)
    (tool,) = await mcp.list_tools()
    return list(tool.input_schema["properties"])


async def positional() -> object:
    """P-18"""
    mcp.add_tool(first)
    return (await mcp.call_tool("first", {"bike": 7})).structured_content


async def again() -> object:
    """P-19"""
    mcp.add_tool(fleet)
    mcp.add_tool(first, name="fleet")
    return len(await mcp.list_tools())


async def sections() -> object:
    """P-20"""
    mcp.add_tool(documented)
    (tool,) = await mcp.list_tools()
    return cleandoc(tool.description or "")  # from 3.13 on, Python takes the indentation away itself


async def nothing_said() -> object:
    """P-20"""
    mcp.add_tool(silent)
    (tool,) = await mcp.list_tools()
    return tool.description

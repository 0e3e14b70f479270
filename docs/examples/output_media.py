"""Images and sounds, alone and among text."""

from mcp_core.types import ResourceLink
from mcp_typed import Audio, Image, MCPServer

mcp = MCPServer("Bikes")


@mcp.tool
def bell() -> Audio:
    """What a bell sounds like."""
    return Audio(data=b"RIFF", format="wav")


@mcp.tool
def damage(bike: int) -> list[str | Image | ResourceLink]:
    """A note, a picture, a link: one block for each."""
    return [
        f"Bike {bike}: bent wheel.",
        Image(data=b"\x89PNG", format="png"),
        ResourceLink(uri=f"bikes://{bike}", name=f"Bike {bike}"),
    ]

"""The shortest way through everything: one server, both eras, raw and typed."""

from __future__ import annotations

from mcp_core import Client, Server
from mcp_core.client import Mode
from mcp_core.testing import RawPeer
from mcp_core.types import CallToolRequestParams, CallToolResult, TextContent


async def call_tool(ctx: object, params: CallToolRequestParams) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=str(params.arguments))])


async def test_both_eras_on_one_connection() -> None:
    server = Server("smoke", on_call_tool=call_tool)
    async with RawPeer.of(server) as peer:
        agreed = await peer.initialize("2025-06-18")
        assert agreed["protocolVersion"] == "2025-06-18"
        old = await peer.call(1, "tools/call", {"name": "x", "arguments": {"a": 1}})
        new = await peer.modern(2, "tools/call", {"name": "x", "arguments": {"a": 1}})
    assert "resultType" not in old["result"]
    assert new["result"]["resultType"] == "complete"


async def test_typed_client_in_both_eras() -> None:
    server = Server("smoke", on_call_tool=call_tool)
    modes: dict[Mode, str] = {"auto": "2026-07-28", "legacy": "2025-11-25"}
    for mode, revision in modes.items():
        async with Client(server, mode=mode) as client:
            assert client.protocol_version == revision
            result = await client.call_tool("x", {"a": 1})
            assert result.content == [TextContent(text="{'a': 1}")]

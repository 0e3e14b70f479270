"""Arguments: what is refused, and in which words, where a small change of the code once went unseen."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import AliasPath, BaseModel, ConfigDict, Field

from mcp_core import Client
from mcp_core.testing import RawPeer, modern_meta
from mcp_core.types import TextContent
from mcp_typed import InvalidSignature, MCPServer
from tests.http.asgi import ModernClient


class Closed(BaseModel):
    """Takes one member and no other."""

    model_config = ConfigDict(extra="forbid")
    known: int = 0


async def test_only_an_unknown_argument_is_explained_as_one_not_a_member_further_down() -> None:
    mcp = MCPServer("s", unknown_arguments="reject")

    @mcp.tool
    def take(value: Closed) -> str:
        return str(value)

    async with Client(mcp) as client:
        result = await client.call_tool("take", {"value": {"knwon": 1}, "valeu": 2})
    assert result.is_error
    assert result.content == [
        TextContent(
            text="Error executing tool take: 2 validation errors for takeArguments\n"
            "value.knwon\n  Extra inputs are not permitted [type=extra_forbidden, input_value=1, input_type=int]\n"
            "valeu\n  There is no argument 'valeu'; did you mean 'value'? (known: 'value')"
            " [type=extra_forbidden, input_value=2, input_type=int]"
        )
    ]


def test_two_parameters_with_defaults_cannot_share_a_name_on_the_wire() -> None:
    def clash(a: Annotated[int, Field(alias="n")] = 1, b: Annotated[int, Field(alias="n")] = 2) -> str:
        return f"{a} {b}"

    with pytest.raises(InvalidSignature) as raised:
        MCPServer("s").add_tool(clash)
    wanted = "tool 'clash': two parameters have one name on the wire; give them other aliases"
    assert str(raised.value) == wanted


async def test_a_marked_parameter_that_is_read_out_of_another_is_compared_with_what_is_written() -> None:
    mcp, called = MCPServer("s"), list[str]()
    mark: Any = Field(validation_alias=AliasPath("more", "region"), json_schema_extra={"x-mcp-header": "Region"})

    @mcp.tool
    def take(region: Annotated[str, mark] = "none", more: dict[str, str] | None = None) -> str:
        called.append(region)
        return region

    client = ModernClient(mcp.server.streamable_http_app())
    response = await client.call("take", {"more": {"region": "us"}})
    assert (response.status, called) == (400, [])


def test_the_parameter_that_has_no_schema_is_named_not_the_one_before_it() -> None:
    def take(first: int, second: Callable[[int], int], third: str) -> str:
        return f"{first} {second} {third}"

    with pytest.raises(InvalidSignature) as raised:
        MCPServer("s").add_tool(take)
    assert str(raised.value).startswith("tool 'take': parameter 'second': ")


async def test_of_a_large_list_of_faults_the_first_is_reported() -> None:
    mcp = MCPServer("s")

    @mcp.tool
    def take(value: list[int]) -> str:
        return str(value)

    async with Client(mcp) as client:
        result = await client.call_tool("take", {"value": ["x"] * 50_000})
    assert result.content == [
        TextContent(
            text="Error executing tool take: 1 validation error for takeArguments\n"
            "value.0\n  Input should be a valid integer, unable to parse string as an integer"
            " [type=int_parsing, input_value='x', input_type=str]"
        )
    ]


async def test_an_argument_that_is_a_number_of_too_many_digits_cannot_be_read() -> None:
    mcp = MCPServer("s")

    @mcp.tool
    def take(value: Any) -> str:
        return str(value)

    meta = json.dumps(modern_meta()).encode()
    arguments = b'{"value":%b}' % (b"1" * 5000)
    params = b'{"name":"take","arguments":%b,"_meta":%b}' % (arguments, meta)
    async with RawPeer.of(mcp.server) as peer:
        answer = await peer.answer(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % params)
    text = "the arguments cannot be read: Integer value out of range - at `$[...]`"
    assert answer == {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": text}}


class Incomparable:
    """A default that takes part in no comparison."""

    def __eq__(self, other: object) -> bool:
        raise TypeError("not to be compared")

    __hash__ = None  # type: ignore[assignment]


async def test_a_default_need_not_be_comparable() -> None:
    mcp = MCPServer("s")
    default: Any = Incomparable()

    @mcp.tool
    def take(value: Any = default) -> bool:
        return isinstance(value, Incomparable)

    async with Client(mcp) as client:
        assert (await client.call_tool("take")).structured_content == {"result": True}

"""Arguments that a proxy reads in `Mcp-Param-*`: the tool gets what the header says, or is not called."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from typing_extensions import TypedDict

from mcp_core import Client
from mcp_core.client import Mode
from mcp_typed import MCPServer
from tests.http.asgi import ModernClient, Response
from tests.typed.test_errors import text_of


def mark(name: str = "Region") -> Any:
    return Field(json_schema_extra={"x-mcp-header": name})


class Where(BaseModel):
    region: Annotated[str, mark()]
    note: str = ""


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    region: Annotated[str, mark()] = Field("none", alias="area")


@dataclass
class Spot:
    region: Annotated[str, mark()]


class Place(TypedDict):
    region: Annotated[str, mark()]


class Site(msgspec.Struct):
    region: str


class Outer(BaseModel):
    inner: Where


CALLS: list[str] = []


def called(value: Any) -> str:
    CALLS.append(repr(value))
    return str(value)


def text(region: Annotated[str, mark()], limit: int = 5) -> str:
    return called(region)


def optional(region: Annotated[str, mark()] = "none") -> str:
    return called(region)


def made(region: Annotated[str, mark()] = Field(default_factory=lambda: uuid.uuid4().hex)) -> str:
    return called(len(region))


def alias(region: Annotated[str, Field(validation_alias=AliasChoices("region", "zone")), mark()] = "none") -> str:
    return called(region)


def roams(
    region: Annotated[
        str, Field(validation_alias=AliasChoices("region", AliasPath("more", "region"))), mark()
    ] = "none",
    more: dict[str, str] | None = None,
) -> str:
    return called(region)


def flag(admin: Annotated[bool, mark("Admin")]) -> str:
    return called(admin)


def count(number: Annotated[int, mark("Count")]) -> str:
    return called(number)


def stripped(region: Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True), mark()]) -> str:
    return called(region)


def swapped(region: Annotated[str, BeforeValidator(lambda v: "secret" if v == "public" else v), mark()]) -> str:
    return called(region)


def choice(region: Annotated[Literal["us", "eu"], mark()]) -> str:
    return called(region)


def when(at: Annotated[datetime, mark("At")]) -> str:
    return called(at.isoformat())


def nested(where: Where) -> str:
    return called(where.region)


def deep(outer: Outer) -> str:
    return called(outer.inner.region)


def aliased(where: Aliased) -> str:
    return called(where.region)


def spot(where: Spot) -> str:
    return called(where.region)


def place(where: Place) -> str:
    return called(where["region"])


TOOLS: list[Any] = [
    text,
    optional,
    made,
    alias,
    roams,
    flag,
    count,
    stripped,
    swapped,
    choice,
    when,
    nested,
    deep,
    aliased,
    spot,
    place,
]


def server() -> MCPServer:
    CALLS.clear()
    mcp = MCPServer("regions", inline_refs=True)
    for tool in TOOLS:
        mcp.add_tool(tool)
    return mcp


GOOD: list[Any] = [
    ("text", {"region": "us"}, {"Region": "us"}),
    ("text", {"region": "us", "limit": "7", "unknown": 1}, {"Region": "us"}),
    ("optional", {}, {}),
    ("optional", {"unknown": 1}, {}),
    ("made", {}, {}),
    ("alias", {"region": "us"}, {"Region": "us"}),
    ("alias", {"region": "us", "zone": "eu"}, {"Region": "us"}),
    ("alias", {}, {}),
    ("roams", {"more": {"other": "x"}}, {}),
    ("flag", {"admin": True}, {"Admin": "true"}),
    ("count", {"number": 2**53 - 1}, {"Count": str(2**53 - 1)}),
    ("count", {"number": -7}, {"Count": "-7"}),
    ("stripped", {"region": "us"}, {"Region": "us"}),
    ("choice", {"region": "us"}, {"Region": "us"}),
    ("when", {"at": "2026-07-28T10:00:00+00:00"}, {"At": "2026-07-28T10:00:00+00:00"}),
    ("nested", {"where": {"region": "us", "note": "x", "unknown": 1}}, {"Region": "us"}),
    ("deep", {"outer": {"inner": {"region": "us"}}}, {"Region": "us"}),
    ("aliased", {"where": {"area": "us"}}, {"Region": "us"}),
    ("aliased", {"where": {}}, {}),
    ("spot", {"where": {"region": "us"}}, {"Region": "us"}),
    ("place", {"where": {"region": "us"}}, {"Region": "us"}),
]

BAD: list[Any] = [
    ("alias", {"zone": "us"}, {}),
    ("roams", {"more": {"region": "us"}}, {}),
    ("flag", {"admin": "yes"}, {"Admin": "yes"}),
    ("flag", {"admin": "true"}, {"Admin": "true"}),
    ("flag", {"admin": 1}, {"Admin": "1"}),
    ("count", {"number": "7"}, {"Count": "7"}),
    ("count", {"number": 7.0}, {"Count": "7"}),
    ("count", {"number": 7.0}, {"Count": "7.0"}),
    ("count", {"number": True}, {"Count": "true"}),
    ("count", {"number": 2**53 + 1}, {"Count": str(2**53 + 1)}),
    ("count", {"number": -(2**60)}, {"Count": str(-(2**60))}),
    ("stripped", {"region": " US "}, {"Region": "=?base64?IFVTIA==?="}),
    ("swapped", {"region": "public"}, {"Region": "public"}),
    ("nested", {"where": json.dumps({"region": "us"})}, {}),
    ("deep", {"outer": json.dumps({"inner": {"region": "us"}})}, {}),
    ("aliased", {"where": {"region": "us"}}, {}),
]


async def answered(tool: str, arguments: dict[str, Any], headers: dict[str, str]) -> Response:
    """The response to a call with these headers for parameters."""
    client = ModernClient(server().streamable_http_app())
    return await client.call(tool, arguments, headers={f"mcp-param-{k.lower()}": v for k, v in headers.items()})


@pytest.mark.fault("S-14")
@pytest.mark.requirement("R-HTTP-23")
@pytest.mark.parametrize(("tool", "arguments", "headers"), GOOD, ids=[f"{row[0]} {row[1]}"[:70] for row in GOOD])
async def test_a_tool_that_gets_what_the_header_says_is_called(
    tool: str, arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    response = await answered(tool, arguments, headers)
    assert response.status == 200, response.body
    assert json.loads(response.body)["result"]["isError"] is False
    assert len(CALLS) == 1


@pytest.mark.fault("S-14")
@pytest.mark.requirement("R-HTTP-24")
@pytest.mark.parametrize(("tool", "arguments", "headers"), BAD, ids=[f"{row[0]} {row[1]} {row[2]}"[:70] for row in BAD])
async def test_a_tool_that_would_get_something_else_is_not(
    tool: str, arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    response = await answered(tool, arguments, headers)
    assert response.status == 400
    assert json.loads(response.body)["error"]["code"] == -32020
    assert CALLS == []


@pytest.mark.fault("S-14")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("row", [0, 2, 5, 11, 13], ids=lambda row: str(BAD[row][:2]))
async def test_where_no_header_is_read_nothing_is_compared(row: int, mode: Mode) -> None:
    tool, arguments, _ = BAD[row]
    async with Client(server(), mode=mode) as client:
        result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)


async def test_arguments_that_do_not_fit_are_reported_as_ever() -> None:
    client = ModernClient(server().streamable_http_app())
    response = await client.call("text", {"region": "us", "limit": "many"}, headers={"mcp-param-region": "us"})
    assert response.status == 200
    assert "validation error" in json.loads(response.body)["result"]["content"][0]["text"]

"""The fixture client: what the suite wants done in each of its client scenarios.

    python -m tests.conformance.client URL

The suite names the scenario and the revision in its environment variables, and judges what
its own server gets to see. What of a scenario is the library's own doing (headers, the
envelope, streams that are taken up again) does not show here.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import anyio

from mcp_core import Client
from mcp_core import types as t
from mcp_core.client import ClientRequestContext, Mode
from mcp_core.revisions import LATEST_REVISION, is_modern

__all__ = ["SCENARIOS", "Scenario", "main", "run"]

JSON: TypeAlias = dict[str, Any]
Play: TypeAlias = Callable[[Client, JSON], Awaitable[None]]
"""`(client, context)`: the client is open, the context is what the suite says besides."""


# --- what the client answers when it is asked ----------------------------------------------


def accept_defaults(_ctx: ClientRequestContext, params: t.ElicitRequestParams) -> t.ElicitResult:
    """Accept with nothing changed: what a form has defaults for is sent, the rest left out."""
    assert isinstance(params, t.ElicitRequestFormParams)
    fields: JSON = params.requested_schema["properties"]
    return t.ElicitResult(
        action="accept", content={name: field["default"] for name, field in fields.items() if "default" in field}
    )


def confirm(_ctx: ClientRequestContext, _params: t.ElicitRequestParams) -> t.ElicitResult:
    """Say yes."""
    return t.ElicitResult(action="accept", content={"confirmed": True})


def sample(_ctx: ClientRequestContext, _params: t.CreateMessageRequestParams) -> t.CreateMessageResult:
    """Stand in for a model."""
    return t.CreateMessageResult(role="assistant", content=t.TextContent(text="Yes."), model="fixture")


def no_roots(_ctx: ClientRequestContext) -> t.ListRootsResult:
    """Have nothing to show."""
    return t.ListRootsResult(roots=[])


# --- what it does ---------------------------------------------------------------------------


async def list_tools(client: Client, _context: JSON) -> None:
    await client.list_tools()


async def add_numbers(client: Client, _context: JSON) -> None:
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def fill_in_form(client: Client, _context: JSON) -> None:
    await client.list_tools()
    await client.call_tool("test_client_elicitation_defaults", {})


async def reconnect(client: Client, _context: JSON) -> None:
    await client.list_tools()
    await client.call_tool("test_reconnection", {})


async def echo_schema(client: Client, _context: JSON) -> None:
    schemas = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
    await client.call_tool("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})


async def use_every_primitive(client: Client, _context: JSON) -> None:
    """One request of every kind that has a header of its own."""
    for tool in (await client.list_tools()).tools:
        await client.call_tool(tool.name, {})
    for resource in (await client.list_resources()).resources:
        await client.read_resource(resource.uri)
    for prompt in (await client.list_prompts()).prompts:
        await client.get_prompt(prompt.name)


async def call_as_told(client: Client, context: JSON) -> None:
    await client.list_tools()
    for call in context["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


async def call_what_is_left(client: Client, _context: JSON) -> None:
    """Call every tool that the library did not take off the list."""
    for tool in (await client.list_tools()).tools:
        await client.call_tool(tool.name, _arguments(tool.input_schema))


def _arguments(schema: JSON) -> JSON:
    values: JSON = {"string": "x", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
    fields: JSON = schema.get("properties", {})
    return {name: values.get(field.get("type")) for name, field in fields.items()}


async def answer_in_rounds(client: Client, _context: JSON) -> None:
    await client.list_tools()
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        await client.call_tool(f"test_mrtr_{name}", {})


# --- the scenarios --------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """What is done in a scenario, and what the client can be asked for meanwhile."""

    play: Play
    options: Mapping[str, Any]

    @classmethod
    def of(cls, play: Play, **options: Any) -> Scenario:
        """The options are keywords of `Client`."""
        return cls(play, options)


SCENARIOS: Final[dict[str, Scenario]] = {
    "initialize": Scenario.of(list_tools),
    "tools_call": Scenario.of(add_numbers),
    "elicitation-sep1034-client-defaults": Scenario.of(fill_in_form, elicitation_callback=accept_defaults),
    "sse-retry": Scenario.of(reconnect),
    "json-schema-2020-12-preservation": Scenario.of(echo_schema),
    "json-schema-ref-no-deref": Scenario.of(list_tools),
    "request-metadata": Scenario.of(
        add_numbers, elicitation_callback=confirm, sampling_callback=sample, list_roots_callback=no_roots
    ),
    "http-standard-headers": Scenario.of(use_every_primitive),
    "http-custom-headers": Scenario.of(call_as_told),
    "http-invalid-tool-headers": Scenario.of(call_what_is_left),
    "sep-2322-client-request-state": Scenario.of(answer_in_rounds, elicitation_callback=confirm),
}


async def run(url: str, name: str, revision: str = LATEST_REVISION, context: JSON | None = None) -> None:
    """Play one scenario against the server at this address."""
    scenario = SCENARIOS[name]
    mode: Mode = "auto" if is_modern(revision) else "legacy"
    info = t.Implementation(name="mcpcore-conformance", version="1.0.0")
    async with Client(url, mode=mode, client_info=info, **scenario.options) as client:
        await scenario.play(client, context or {})


def main() -> None:
    """Play the scenario that the environment names."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.client", description=main.__doc__)
    parser.add_argument("url", help="the address of the suite's server")
    url: str = parser.parse_args().url
    name = os.environ["MCP_CONFORMANCE_SCENARIO"]
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", LATEST_REVISION)
    context: JSON = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    anyio.run(run, url, name, revision, context)


if __name__ == "__main__":
    main()

"""Options of servers and tools: what is of no use is refused where it is said, by a text that names it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from mcp_core import Client
from mcp_core.types import Icon, ToolAnnotations
from mcp_typed import MCPServer
from mcp_typed.errors import InvalidOption


def nothing() -> str:
    return ""


NAN = float("nan")

TOOL: list[Any] = [
    ({"title": 5}, r"title must be a string; got 5"),
    ({"description": 5}, r"description must be a string; got 5"),
    ({"name": 5}, r"name must be a string; got 5"),
    ({"icons": "https://x/i.png"}, r"icons must be a list of Icon; got 'https://x/i.png'"),
    ({"icons": [5]}, r"icons\[0\] must be an Icon; got 5"),
    ({"icons": [Icon(src="a"), Icon(src=cast("str", 5))]}, r"icons\[1\] must be an Icon: .*\$\.src"),
    ({"icons": [{"src": "a", "kind": "png"}]}, r"icons\[0\] has no member 'kind'; known are src, "),
    ({"annotations": "x"}, r"annotations must be a ToolAnnotations; got 'x'"),
    ({"annotations": ToolAnnotations(read_only_hint=cast("bool", "yes"))}, r"annotations must be .*\$\.readOnlyHint"),
    ({"annotations": {"read_only": True}}, r"annotations has no member 'read_only'; known are title, read_only_hint"),
    ({"annotations": {"readOnlyHint": "yes"}}, r"annotations must be a ToolAnnotations: .*\$\.readOnlyHint"),
    ({"meta": [1]}, r"meta must be a dict of JSON values; got \[1\]"),
    ({"meta": {"p": Path("/a")}}, r"meta must be a dict of JSON values; PosixPath"),
    ({"structured_output": "no"}, r"structured_output must be True or False; got 'no'"),
    ({"run": "process"}, r'run must be "thread" or "inline"; got \'process\''),
    ({"timeout": "3"}, r"timeout must be a positive number of seconds; got '3'"),
    ({"timeout": 0}, r"timeout must be a positive number of seconds; got 0"),
    ({"timeout": NAN}, r"timeout must be a positive number of seconds; got nan"),
    ({"timeout": True}, r"timeout must be a positive number of seconds; got True"),
    ({"max_concurrency": 1.5}, r"max_concurrency must be a positive number of calls; got 1\.5"),
    ({"max_concurrency": 0}, r"max_concurrency must be a positive number of calls; got 0"),
    ({"unknown_arguments": True}, r'unknown_arguments must be "ignore" or "reject"; got True'),
    ({"input_schema": {}}, r"a tool has no option 'input_schema'; known are title, description, "),
    ({"tags": ["a"]}, r"a tool has no option 'tags'"),
    ({"timeout": 3, "run": "inline"}, r"tool 't': timeout must be left out, or math\.inf, where a plain function"),
]

SERVER: list[Any] = [
    ({"name": 3}, r"name must be a string; got 3"),
    ({"version": 3}, r"version must be a string; got 3"),
    ({"title": 3}, r"title must be a string; got 3"),
    ({"instructions": 3}, r"instructions must be a string; got 3"),
    ({"website_url": 3}, r"website_url must be a string; got 3"),
    ({"icons": "x"}, r"icons must be a list of Icon; got 'x'"),
    ({"lifespan": 3}, r"lifespan must be a function of the server that returns an async context manager; got 3"),
    ({"threads": 0}, r"threads must be a positive number of threads; got 0"),
    ({"threads": "4"}, r"threads must be a positive number of threads; got '4'"),
    ({"max_waiting": 0}, r"max_waiting must be a positive number of calls; got 0"),
    ({"timeout": "3"}, r"timeout must be a positive number of seconds; got '3'"),
    ({"max_concurrency": 1.5}, r"max_concurrency must be a positive number of calls; got 1\.5"),
    ({"mask_errors": "no"}, r"mask_errors must be True or False; got 'no'"),
    ({"inline_refs": 1}, r"inline_refs must be True or False; got 1"),
    ({"on_invalid_arguments": "text"}, r"on_invalid_arguments must be a function of .*; got 'text'"),
    ({"on_duplicate": "skip"}, r'on_duplicate must be "error", "replace" or "ignore"; got \'skip\''),
    ({"request_state": b"k" * 32}, r"request_state must be a RequestStateSigner; got b'k"),
    ({"subscriptions": 5}, r"subscriptions must be a SubscriptionBus; got 5"),
    ({"name": "x" * 10, "title": ["y" * 1000]}, r"title must be a string; got \['y{98}\.\.\.\Z"),
]


def ids(rows: list[Any]) -> list[str]:
    return [", ".join(f"{name}={value!r}"[:40] for name, value in options.items()) for options, _ in rows]


@pytest.mark.fault("X-02")
@pytest.mark.fault("X-16")
@pytest.mark.fault("X-67")
@pytest.mark.parametrize(("options", "text"), TOOL, ids=ids(TOOL))
@pytest.mark.parametrize("way", ["tool", "add_tool"])
def test_an_option_of_a_tool_is_refused_by_name(options: dict[str, Any], text: str, way: str) -> None:
    mcp = MCPServer("options")
    given: dict[str, Any] = {"name": "t", **options}

    def register() -> None:
        if way == "add_tool":
            mcp.add_tool(nothing, **given)
        else:
            mcp.tool(**given)(nothing)

    with pytest.raises(InvalidOption, match=rf"\A{text}"):
        register()
    assert mcp._tools == {}  # pyright: ignore[reportPrivateUsage]


@pytest.mark.fault("X-67")
@pytest.mark.parametrize(("options", "text"), SERVER, ids=ids(SERVER))
def test_an_option_of_a_server_is_refused_by_name(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidOption, match=rf"\A{text}") as caught:
        MCPServer(**options)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, TypeError)


async def is_no_manager(server: Any) -> AsyncGenerator[int]:
    yield 1


async def is_a_coroutine(server: Any) -> int:
    return 1


def is_a_generator(server: Any) -> Generator[int]:
    yield 1


class CalledAsGenerator:
    async def __call__(self, server: Any) -> AsyncGenerator[int]:
        yield 1


@pytest.mark.fault("X-67")
@pytest.mark.parametrize(
    "lifespan", [is_no_manager, is_a_coroutine, is_a_generator, CalledAsGenerator()], ids=lambda given: repr(given)[:30]
)
def test_a_lifespan_that_gives_no_manager_is_refused_with_the_cure(lifespan: Any) -> None:
    with pytest.raises(InvalidOption, match=r"lifespan must be .*: decorate it with contextlib\.asynccontextmanager"):
        MCPServer("x", lifespan=lifespan)
    MCPServer("x", lifespan=asynccontextmanager(is_no_manager))


@pytest.mark.fault("X-64")
@pytest.mark.parametrize("spelling", ["read_only_hint", "readOnlyHint"])
async def test_annotations_and_icons_may_be_dicts_in_either_spelling(spelling: str) -> None:
    mcp = MCPServer("dicts", icons=cast("list[Icon]", [{"src": "https://x/i", "mime_type": "image/png"}]))
    mcp.add_tool(
        nothing, name="t", annotations={spelling: True}, icons=[{"src": "https://x/i", "mime_type": "image/png"}]
    )
    icon = Icon(src="https://x/i", mime_type="image/png")
    async with Client(mcp) as client:
        (tool,) = (await client.list_tools()).tools
    assert tool.annotations == ToolAnnotations(read_only_hint=True)
    assert tool.icons == [icon]
    assert mcp.icons == [icon]


async def test_meta_is_listed_as_it_was_when_it_was_said() -> None:
    mcp, meta = MCPServer("meta"), {"a": [1]}
    mcp.add_tool(nothing, name="t", meta=meta)
    meta["a"] = [cast("int", Path("/"))]
    async with Client(mcp) as client:
        assert (await client.list_tools()).tools[0].meta == {"a": [1]}


@pytest.mark.fault("X-09")
async def test_a_timeout_of_the_server_can_be_taken_back_for_a_tool() -> None:
    mcp = MCPServer("limits", timeout=3, run="inline")
    with pytest.raises(InvalidOption, match=r"timeout must be left out, or math\.inf"):
        mcp.add_tool(nothing)
    mcp.add_tool(nothing, timeout=float("inf"))
    assert (await mcp.call_tool("nothing")).is_error is False


OFFICIAL = [
    *("resource", "add_resource", "prompt", "add_prompt", "remove_prompt", "completion", "list_resources"),
    *("list_resource_templates", "read_resource", "list_prompts", "get_prompt", "custom_route", "session_manager"),
    *("run_streamable_http_async", "run_sse_async", "sse_app"),
]


@pytest.mark.fault("X-66")
@pytest.mark.parametrize("name", OFFICIAL)
def test_what_the_official_sdk_has_beside_says_where_to_look(name: str) -> None:
    mcp = MCPServer("x")
    assert not hasattr(mcp, name)
    with pytest.raises(AttributeError, match=rf"no attribute '{name}': .*; see docs/migration\.md\Z") as caught:
        getattr(mcp, name)
    assert "\n" not in str(caught.value)


@pytest.mark.fault("X-66")
def test_other_names_are_missing_as_ever() -> None:
    mcp = MCPServer("x")
    with pytest.raises(AttributeError, match=r"\A'MCPServer' object has no attribute 'nobody'\Z"):
        mcp.nobody  # type: ignore[attr-defined] # noqa: B018 # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    assert getattr(mcp, "nobody", 5) == 5


@pytest.mark.fault("X-16")
@pytest.mark.parametrize("given", [3, "text", None], ids=str)
def test_what_is_no_function_is_no_tool(given: Any) -> None:
    with pytest.raises(InvalidOption, match=r"\Aa tool must be a function; got "):
        MCPServer("x").add_tool(given)

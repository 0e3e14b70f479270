"""Options of the client: refused where they are given, in one style, with what they take and what they got."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import Client, Server, StdioServerParameters
from mcp_core import types as t
from mcp_core.client import Mode
from mcp_core.testing import flush_logs
from mcp_core.transports.http_client import StreamableHTTPParameters

SERVER = Server("s")


@pytest.mark.fault("X-67")
@pytest.mark.parametrize(
    ("options", "kind", "told"),
    [
        (
            {"read_timeout_seconds": "3"},
            TypeError,
            "read_timeout_seconds must be a positive number of seconds, or None for no limit; got '3'",
        ),
        (
            {"read_timeout_seconds": 0},
            ValueError,
            "read_timeout_seconds must be a positive number of seconds, or None for no limit; got 0",
        ),
        ({"read_timeout_seconds": -1.5}, ValueError, "got -1.5"),
        ({"read_timeout_seconds": float("nan")}, ValueError, "got nan"),
        ({"read_timeout_seconds": float("inf")}, ValueError, "got inf"),
        ({"read_timeout_seconds": True}, TypeError, "got True"),
        (
            {"probe_timeout_seconds": None},
            TypeError,
            "probe_timeout_seconds must be a positive number of seconds; got None",
        ),
        (
            {"input_required_max_rounds": 1.5},
            TypeError,
            "input_required_max_rounds must be a number of rounds, 0 or more; got 1.5",
        ),
        ({"input_required_max_rounds": -1}, ValueError, "got -1"),
        ({"cache_max_bytes": "4MB"}, TypeError, "cache_max_bytes must be a number of bytes, 0 or more; got '4MB'"),
        ({"cache": "yes"}, TypeError, "cache must be True or False; got 'yes'"),
        (
            {"validate_structured_content": None},
            TypeError,
            "validate_structured_content must be True or False; got None",
        ),
        ({"raise_exceptions": 1}, TypeError, "raise_exceptions must be True or False; got 1"),
        (
            {"logging_callback": "print"},
            TypeError,
            "logging_callback must be a function, called as logging_callback(params); got 'print'",
        ),
        (
            {"message_handler": 5},
            TypeError,
            "message_handler must be a function, called as message_handler(method, params); got 5",
        ),
        ({"elicitation_callback": {}}, TypeError, "elicitation_callback must be a function"),
        ({"sampling_callback": {}}, TypeError, "sampling_callback must be a function"),
        ({"list_roots_callback": []}, TypeError, "list_roots_callback must be a function"),
        ({"log_level": "loud"}, ValueError, "log_level must be one of ['debug', "),
        (
            {"client_info": {"name": "x"}},
            TypeError,
            "client_info must be of mcp_core.types.Implementation; got {'name': 'x'}",
        ),
        (
            {"sampling_capabilities": {}},
            TypeError,
            "sampling_capabilities must be of mcp_core.types.SamplingCapability; got {}",
        ),
        ({"mode": "modern"}, ValueError, "mode must be 'auto', 'legacy' or one of ['2026-07-28']; got 'modern'"),
        ({"mode": None}, ValueError, "got None"),
    ],
)
def test_an_option_is_refused_where_it_is_given(options: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind) as caught:
        Client(SERVER, **options)
    assert told in str(caught.value)
    assert type(caught.value) is kind


@pytest.mark.fault("X-67")
@pytest.mark.parametrize("target", [5, None, [], object(), b"http://x", Client, {"command": "x"}])
def test_a_target_that_is_none_is_told_by_those_that_are(target: Any) -> None:
    with pytest.raises(TypeError) as caught:
        Client(target)
    told = str(caught.value)
    assert told.endswith(f"; got {target!r}")
    for name in (
        "Server",
        "http://",
        "StreamableHTTPParameters(url=...)",
        "StdioServerParameters(command=..., args=[...])",
    ):
        assert name in told


@pytest.mark.fault("X-67")
@pytest.mark.parametrize(
    ("fields", "kind", "told"),
    [
        ({"command": ["python"]}, TypeError, "command must be a text, the program to run; got ['python']"),
        ({"command": ""}, ValueError, "command must not be empty"),
        ({"command": "a\0b"}, ValueError, "no text may hold a null character"),
        ({"command": "x", "args": "-c pass"}, TypeError, "args must be a list of texts; got '-c pass'"),
        ({"command": "x", "args": ["-c", 5]}, TypeError, "args must be a list of texts; got 5 in it"),
        ({"command": "x", "args": None}, TypeError, "args must be a list of texts; got None"),
        ({"command": "x", "env": ["A=b"]}, TypeError, "env must be a dict of texts; got ['A=b']"),
        (
            {"command": "x", "env": {"KEY": 5}},
            TypeError,
            "env must be a dict of texts; the value of 'KEY' is of type int",
        ),
        ({"command": "x", "env": {"": "5"}}, ValueError, "the entry '' is not possible"),
        ({"command": "x", "env": {"A": "secret\0"}}, ValueError, "the entry 'A' is not possible"),
        ({"command": "x", "cwd": 5}, TypeError, "cwd must be a path; got 5"),
        ({"command": "x", "errlog": "file"}, TypeError, "errlog must be a file or a descriptor; got 'file'"),
    ],
)
def test_how_to_start_a_server_is_looked_at(fields: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind) as caught:
        StdioServerParameters(**fields)
    assert told in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.fault("X-67")
@pytest.mark.parametrize(
    ("fields", "kind", "told"),
    [
        ({"url": 5}, TypeError, "url must be a text, as in 'https://example.com/mcp'; got 5"),
        ({"url": "http://x", "timeout": "3"}, TypeError, "timeout must be a positive number of seconds; got '3'"),
        ({"url": "http://x", "timeout": 0}, ValueError, "timeout must be a positive number of seconds; got 0"),
        ({"url": "http://x", "headers": ["a"]}, TypeError, "headers must be a dict of texts"),
        (
            {"url": "http://x", "headers": {"authorization": b"secret"}},
            TypeError,
            "the value of 'authorization' is of type bytes",
        ),
        (
            {"url": "http://x", "headers": {"a": "secret\r\nb: c"}},
            ValueError,
            "headers must be ASCII texts without line breaks; the header 'a' is not",
        ),
    ],
)
def test_so_is_how_to_reach_one(fields: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind) as caught:
        StreamableHTTPParameters(**fields)
    assert told in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.fault("X-67")
@pytest.mark.parametrize("seconds", ["3", 0, -1])
async def test_limits_of_one_call_are_looked_at_too(seconds: Any) -> None:
    async with Client(SERVER) as client:
        with pytest.raises((TypeError, ValueError), match="read_timeout_seconds must be"):
            await client.call_tool("x", read_timeout_seconds=seconds)
        with pytest.raises((TypeError, ValueError), match="timeout must be"):
            await client.request("x", timeout=seconds)
        with pytest.raises(TypeError, match=r"progress_callback must be a function, called as progress_callback\("):
            await client.call_tool("x", progress_callback=seconds)


@pytest.mark.fault("X-36")
async def test_a_ping_says_what_there_is_instead() -> None:
    async with Client(SERVER) as client:
        with pytest.raises(Exception, match=r"ping does not exist in 2026-07-28; await `client\.discover\(\)` instead"):
            await client.ping()
        assert (await client.discover()).supported_versions
    async with Client(SERVER, mode="legacy") as client:
        await client.ping()


@pytest.mark.fault("X-65")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("level", [None, "debug", "info"])
async def test_a_logging_callback_gets_what_is_asked_for_or_is_told(
    mode: Mode, level: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def tools(ctx: Any, params: t.PaginatedRequestParams) -> t.ListToolsResult:
        return t.ListToolsResult(tools=[])

    async def call(ctx: Any, params: t.CallToolRequestParams) -> t.CallToolResult:
        await ctx.log("debug", "a detail")
        await ctx.log("info", "news")
        return t.CallToolResult(content=[])

    seen: list[Any] = []
    server = Server("s", on_list_tools=tools, on_call_tool=call, on_set_logging_level=lambda ctx, params: None)

    def log(params: t.LoggingMessageNotificationParams) -> None:
        seen.append(params.data)

    async with Client(server, mode=mode, logging_callback=log, log_level=level) as client:
        await client.call_tool("x")
    flush_logs()
    records = [record.getMessage() for record in caplog.records]
    if mode == "auto" and level is None:
        assert seen == []
        assert records == [
            "logging_callback gets nothing from a 2026-07-28 server that is not asked: give log_level, too"
        ]
    else:
        assert seen == (["news"] if (mode, level) == ("auto", "info") else ["a detail", "news"])
        assert records == []


# --- exceptions of an in-memory server ------------------------------------------------------------------


class Own(Exception):
    """An exception of the author's."""


@pytest.mark.fault("X-06")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_what_a_handler_raises_comes_out_where_that_is_wanted(mode: Mode) -> None:
    raised = Own("mine")

    async def call(ctx: Any, params: t.CallToolRequestParams) -> t.CallToolResult:
        if params.name == "refused":
            raise t_error
        if params.name == "fails":
            raise raised
        return t.CallToolResult(content=[])

    from mcp_core import MCPError

    t_error = MCPError(-32050, "on purpose")
    server = Server("s", on_call_tool=call)
    async with Client(server, mode=mode, raise_exceptions=True) as client, Client(server, mode=mode) as other:
        for _ in range(2):
            with pytest.raises(Own) as caught:
                await client.call_tool("fails")
            assert caught.value is raised
            assert any(entry.name == "call" for entry in caught.traceback)
        with pytest.raises(MCPError, match="on purpose"):
            await client.call_tool("refused")
        assert (await client.call_tool("works")).content == []
        with pytest.raises(MCPError, match="Internal server error"):
            await other.call_tool("fails")
    async with Client(server, mode=mode) as client:
        with pytest.raises(MCPError):
            await client.call_tool("fails")

"""Every bad HTTP input, as either era sends it: status, error code, and what the client is told to change.

One row is one input. The id of a row begins with its number in the specification's table of
answers, so that the table can be read off the list of tests.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from mcp_core import RequestContext, Server
from mcp_core.errors import InvalidParams, MCPError, ResourceNotFound
from mcp_core.request_state import RequestStateSigner
from mcp_core.testing import modern_meta
from mcp_core.transports.streamable_http import HTTPOptions, StreamableHTTP
from mcp_core.types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequestFormParams,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequest,
    InputRequiredResult,
    ListResourcesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    SetLevelRequestParams,
    TextContent,
    TextResourceContents,
    Tool,
)
from tests.http.asgi import HandshakeClient, Headers, ModernClient, Response, Value, line, modern_headers

MODERN_ONLY: Final = ["2026-07-28"]
HANDSHAKE_ONLY: Final = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
LIMIT: Final = 20_000


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here: what is refused has not got to anything that waits."""
    return "asyncio"


# --- the server -----------------------------------------------------------------------------------------

FORM: Final = {"type": "object", "properties": {"name": {"type": "string"}}}
MARKED: Final = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
    },
}
signer = RequestStateSigner()


def list_tools(ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
    if params.cursor is not None:
        raise InvalidParams(f"Invalid cursor: {params.cursor}")
    plain = [Tool(name=name, input_schema={"type": "object"}) for name in TOOLS]
    return ListToolsResult(tools=[*plain, Tool(name="marked", input_schema=MARKED)])


async def echo(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    return CallToolResult(content=[TextContent(text="ran")], structured_content=params.arguments or {})


async def crash(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    raise RuntimeError("the password is 1234")


async def ask(ctx: RequestContext, params: CallToolRequestParams) -> InputRequiredResult | CallToolResult:
    if ctx.protocol_version < "2026":
        await ctx.elicit("Who?", FORM)
    if params.request_state is not None:
        signer.verify(ctx, params.request_state)
    form = ElicitRequestFormParams(message="Who?", requested_schema=FORM)
    return InputRequiredResult(input_requests={"who": InputRequest(method="elicitation/create", params=form)})


async def fail_late(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    await ctx.report_progress(1)
    raise InvalidParams("too late to say so by a status")


async def vanish_late(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    await ctx.report_progress(1)
    raise MCPError(-32601, "not found, as it turns out")


async def own_code(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
    raise MCPError(-320200, "an error of the application")


Call = Callable[[RequestContext, CallToolRequestParams], Awaitable[CallToolResult | InputRequiredResult]]
TOOLS: Final[dict[str, Call]] = {
    "echo": echo,
    "crash": crash,
    "ask": ask,
    "fail_late": fail_late,
    "vanish_late": vanish_late,
    "own_code": own_code,
}


async def call_tool(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
    call = echo if params.name == "marked" else TOOLS.get(params.name)
    if call is None:
        raise InvalidParams(f"Unknown tool: {params.name}")
    return await call(ctx, params)


async def get_prompt(ctx: RequestContext, params: GetPromptRequestParams) -> GetPromptResult:
    if params.name != "hello":
        raise InvalidParams(f"Unknown prompt: {params.name}")
    return GetPromptResult(messages=[])


async def read_resource(ctx: RequestContext, params: ReadResourceRequestParams) -> ReadResourceResult:
    if params.uri != "memo://1":
        raise ResourceNotFound(params.uri)
    return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, text="memo")])


def list_resources(ctx: RequestContext, params: PaginatedRequestParams) -> ListResourcesResult:
    return ListResourcesResult(resources=[])


def set_level(ctx: RequestContext, params: SetLevelRequestParams) -> EmptyResult:
    return EmptyResult()


def make_app(protocol_versions: list[str] | None, options: dict[str, Any]) -> StreamableHTTP:
    server = Server(
        "matrix",
        protocol_versions=protocol_versions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_get_prompt=get_prompt,
        on_read_resource=read_resource,
        on_list_resources=list_resources,
        on_set_logging_level=set_level,
    )
    return StreamableHTTP(server, HTTPOptions(max_request_body_size=LIMIT, **options))


# --- rows -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sent:
    """What is sent: a message (or a body in its place), with the headers that belong to it."""

    message: dict[str, Any]
    body: bytes | None = None
    headers: Headers = field(default_factory=dict[str, Value | None])
    repeated: tuple[tuple[str, Value], ...] = ()
    verb: str = "POST"
    path: str = "/mcp"
    versions: list[str] | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Refusal:
    """What comes back: status, error code, and words that tell what is wrong; `request_id` if it was read."""

    status: int
    code: int
    says: tuple[str, ...]
    request_id: Any = None
    headers: dict[str, str] = field(default_factory=dict[str, str])


def check(response: Response, refusal: Refusal) -> None:
    """The response is this refusal, in a form that any client reads."""
    answer = response.json
    assert (response.status, answer["error"]["code"]) == (refusal.status, refusal.code), answer
    assert answer.keys() == ({"jsonrpc", "error"} if refusal.request_id is None else {"jsonrpc", "error", "id"})
    assert answer["jsonrpc"] == "2.0"
    assert answer.get("id") == refusal.request_id
    assert type(answer.get("id")) is type(refusal.request_id)
    message = answer["error"]["message"]
    assert 0 < len(message) < 200
    told = (message + json.dumps(answer["error"].get("data"))).lower()
    assert [words for words in refusal.says if words.lower() not in told] == [], told
    assert {name: response.header(name) for name in refusal.headers} == refusal.headers


ID: Final = 7
CALL: Final = ModernClient.message(ID, "tools/call", {"name": "echo", "arguments": {"x": 1}})
LEGACY_CALL: Final = HandshakeClient.calling("echo", {"x": 1}, request_id=ID)


def calling(name: str, arguments: Any = ..., state: Any = ..., **options: Any) -> dict[str, Any]:
    """A modern call of a tool."""
    params = changed({"name": name}, arguments=arguments, requestState=state)
    return ModernClient.message(ID, "tools/call", params, **options)


def changed(message: dict[str, Any], **members: Any) -> dict[str, Any]:
    """The message with other members; `...` takes one away."""
    return {key: value for key, value in {**message, **members}.items() if value is not ...}


def with_meta(**members: Any) -> dict[str, Any]:
    """The modern call with other members of `_meta`, by the last part of their name; `...` takes one away."""
    named = {f"io.modelcontextprotocol/{key}": value for key, value in members.items()}
    return changed(CALL, params={**CALL["params"], "_meta": changed(modern_meta(), **named)})


def row(requirement: str, name: str, refusal: Refusal, message: dict[str, Any] = CALL, **sent: Any) -> Any:
    """A row of the table."""
    marks = [pytest.mark.requirement(requirement)]
    marks += [pytest.mark.case(case) for case in sent.pop("cases", ())]
    return pytest.param(Sent(message, **sent), refusal, id=f"{requirement} {name}", marks=marks)


def header(**headers: Value | None) -> dict[str, Value | None]:
    """Headers by name, with underscores for hyphens."""
    return {name.replace("_", "-"): value for name, value in headers.items()}


def sentinel(text: str) -> str:
    """A value as it is sent that may not be sent as it is."""
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


# --- what is the same in both eras ------------------------------------------------------------------------

NOT_ORIGIN: Final = Refusal(403, -32600, ("Origin", "allowed_origins"))
NOT_HOST: Final = Refusal(421, -32600, ("Host", "allowed_hosts"))
NOT_JSON: Final = Refusal(415, -32600, ("Content-Type", "application/json"))
TOO_LARGE: Final = Refusal(413, -32600, (str(LIMIT), "max_request_body_size"))
NOT_ACCEPTED: Final = Refusal(406, -32600, ("Accept", "application/json", "text/event-stream"))


def both_eras(message: dict[str, Any]) -> list[Any]:
    """The rows that do not depend on the era."""
    text = line(message)
    return [
        *(
            row("R-HS-01", f"origin {value}", NOT_ORIGIN, message, headers={"origin": value}, cases=("C074",))
            for value in ("http://evil.example", "null", "http://127.0.0.1.evil.example", "https://localhost.example:1")
        ),
        *(
            row("R-HS-02", f"host {value}", NOT_HOST, message, headers={"host": value}, cases=("C074",))
            for value in ("evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example:80")
        ),
        row("R-HS-02", "no host", NOT_HOST, message, headers={"host": None}),
        *(
            row("R-HS-08", f"content-type {value}", NOT_JSON, message, headers={"content-type": value})
            for value in (
                None,
                "",
                "text/plain",
                "text/json",
                "application/jsonp",
                "application/vnd.api+json",
                "application/x-www-form-urlencoded",
                "application/json; charset=utf-16",
            )
        ),
        row("R-HS-09", "announced", TOO_LARGE, message, headers={"content-length": str(LIMIT + 1)}, cases=("C077",)),
        row(
            "R-HS-09",
            "one byte too many",
            TOO_LARGE,
            message,
            body=text + b" " * (LIMIT + 1 - len(text)),
            cases=("C077",),
        ),
        *(
            row("R-HS-10", f"accept {value}", NOT_ACCEPTED, message, headers={"accept": value}, cases=("C067",))
            for value in (
                "text/html",
                "application/xml, text/plain",
                "application/json;q=0, text/event-stream;q=0",
                "*/*;q=0",
                "application/json;q=0, text/*;q=0.0",
            )
        ),
        *(
            row("R-HS-11", name, Refusal(400, -32700, (says,), request_id), message, body=body, cases=("C069",))
            for name, body, says, request_id in (
                ("half a message", text[:-1], "Parse error", ID),
                ("two messages", text + text, "Parse error", ID),
                ("a brace and more", b"{bad", "Parse error", None),
                ("words", b"tools/call", "Parse error", None),
                ("UTF-16", b"\xff\xfe{\x00}\x00", "UTF-8", None),
                ("empty", b"", "empty", None),
                ("blank", b" \r\n\t", "empty", None),
            )
        ),
        row(
            "R-HS-11",
            "wrong UTF-8 in a string",
            Refusal(400, -32700, ("UTF-8",), ID),
            message,
            body=text.replace(b'"echo"', b'"\x97"'),
            cases=("C069",),
        ),
        row(
            "R-HS-11",
            "wrong UTF-8 before the id",
            Refusal(400, -32700, ("UTF-8",)),
            message,
            body=b'{"\x97":1}',
            cases=("C069",),
        ),
        *(
            row("R-HS-12", name, Refusal(400, -32600, (says,)), message, body=body, cases=("C069",))
            for name, body, says in (
                ("an empty array", b"[]", "message"),
                ("an array", b"[" + text + b"]", "message"),
                ("a number", b"5", "a JSON object"),
                ("a string", b'"tools/call"', "a JSON object"),
                ("null", b"null", "a JSON object"),
                ("an empty object", b"{}", "jsonrpc"),
                ("something else", b'{"hello":"world"}', "jsonrpc"),
            )
        ),
        *(
            row("R-HS-12", name, Refusal(400, -32600, (says,), request_id), changed(message, **members))
            for name, members, says, request_id in (
                ("no jsonrpc", {"jsonrpc": ...}, "jsonrpc", ID),
                ("jsonrpc 1.0", {"jsonrpc": "1.0"}, "jsonrpc", ID),
                ("jsonrpc as a number", {"jsonrpc": 2.0}, "jsonrpc", ID),
                ("id null", {"id": None}, "id", None),
                ("id with a fraction", {"id": 1.5}, "id", None),
                ("id true", {"id": True}, "id", None),
                ("id an array", {"id": [1]}, "id", None),
            )
        ),
        *(
            row(
                "R-HS-12",
                name,
                Refusal(400, -32600, ("method",), ID),
                message,
                body=line(changed(message, method=method)),
            )
            for name, method in (("no method", ...), ("method null", None), ("method a number", 5))
        ),
        *(
            row("R-HS-12", f"params {value}", Refusal(400, -32602, ("params",), ID), message, body=line(body))
            for value in ([], [1], "x", 5, True)
            for body in [changed(message, params=value)]
        ),
    ]


# --- 2026-07-28 -------------------------------------------------------------------------------------------

NOT_ALLOWED: Final = Refusal(405, -32600, ("POST",), headers={"allow": "POST"})
NOT_ALLOWED_HERE: Final = Refusal(405, -32600, ("POST",), headers={"allow": "GET, POST, DELETE"})
REMOVED: Final = (
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "tasks/get",
    "roots/list",
    "sampling/createMessage",
    "elicitation/create",
)


def mismatch(*says: str) -> Refusal:
    return Refusal(400, -32020, says, ID)


MODERN_ROWS: Final = [
    *both_eras(CALL),
    *(
        row("R-HS-06", f"{verb} at a modern server", NOT_ALLOWED, verb=verb, versions=MODERN_ONLY)
        for verb in ("GET", "DELETE")
    ),
    *(row("R-HS-06", f"{verb} at a server of both eras", NOT_ALLOWED_HERE, verb=verb) for verb in ("GET", "DELETE")),
    *(
        row("R-HS-07", f"{verb} at a modern server", NOT_ALLOWED, verb=verb, versions=MODERN_ONLY)
        for verb in ("PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "QUERY")
    ),
    *(
        row("R-HS-13", f"{name} at {where}", Refusal(400, -32600, ("response",)), body=body, versions=versions)
        for where, versions in (("a modern server", MODERN_ONLY), ("a server of both eras", None))
        for name, body in (
            ("a response", b'{"jsonrpc":"2.0","id":1,"result":{}}'),
            ("an error", b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}'),
        )
    ),
    *(
        row(
            "R-HS-15",
            f"none at {where}",
            mismatch("MCP-Protocol-Version", "missing", "2026-07-28"),
            headers=header(mcp_protocol_version=None),
            versions=versions,
        )
        for where, versions in (("a server of both eras", None), ("a modern server", MODERN_ONLY))
    ),
    *(
        row("R-HS-16", name, Refusal(400, -32602, ("_meta", says), ID), message)
        for name, message, says in (
            ("no params", changed(CALL, method="tools/list", params=...), VERSION),
            ("no _meta", changed(CALL, params={"name": "echo"}), VERSION),
            ("_meta null", changed(CALL, params={"name": "echo", "_meta": None}), VERSION),
            ("empty _meta", changed(CALL, params={"name": "echo", "_meta": {}}), VERSION),
            ("no version", with_meta(protocolVersion=...), VERSION),
            ("version null", with_meta(protocolVersion=None), VERSION),
            ("version a number", with_meta(protocolVersion=20260728), VERSION),
            ("no capabilities", with_meta(clientCapabilities=...), CAPABILITIES),
            ("capabilities null", with_meta(clientCapabilities=None), CAPABILITIES),
            ("capabilities an array", with_meta(clientCapabilities=[]), CAPABILITIES),
        )
    ),
    *(
        row("R-HS-16", f"_meta {value}", Refusal(400, -32602, ("_meta",), ID), message)
        for value in ("[]", '"2026-07-28"', "5")
        for message in [changed(CALL, params={"name": "echo", "_meta": json.loads(value)})]
    ),
    *(
        row("R-HS-17", f"header {value!r}", mismatch("MCP-Protocol-Version", "2026-07-28"), **sent)
        for value in ("2025-11-25", "2099-01-01", "2026-07-28, 2026-07-28", "", "2026-7-28", "2026-07-28\xa0")
        for sent in [{"headers": header(mcp_protocol_version=value)}]
    ),
    row(
        "R-HS-17",
        "_meta of the handshake era",
        mismatch("MCP-Protocol-Version", "2025-11-25"),
        with_meta(protocolVersion="2025-11-25"),
    ),
    *(
        row("R-HS-18", f"header {value!r}", mismatch("Mcp-Method", "tools/call"), headers=header(mcp_method=value))
        for value in (None, "", "tools/list", "Tools/Call", "tools/call,tools/call", "tools/call\xa0")
    ),
    *(
        row("R-HS-19", f"tool {value!r}", mismatch("Mcp-Name", "echo"), headers=header(mcp_name=value))
        for value in (None, "", "crash", "ECHO", "echo, echo", '"echo"')
    ),
    *(
        row("R-HS-19", f"prompt {value!r}", mismatch("Mcp-Name", "hello"), message, headers=header(mcp_name=value))
        for value in (None, "bye")
        for message in [ModernClient.message(ID, "prompts/get", {"name": "hello"})]
    ),
    *(
        row("R-HS-19", f"resource {value!r}", mismatch("Mcp-Name", "memo://1"), message, headers=header(mcp_name=value))
        for value in (None, "memo://2", "MEMO://1")
        for message in [ModernClient.message(ID, "resources/read", {"uri": "memo://1"})]
    ),
    *(
        row("R-HS-20", name, mismatch("Mcp-Name", "base64"), headers=header(mcp_name=value))
        for name, value in (
            ("no Base64", "=?base64?e c h o?="),
            ("no Base64 alphabet", "=?base64?ZWNo****?="),
            ("half of Base64", "=?base64?ZWNobw?="),
            ("no UTF-8 in it", "=?base64?/w==?="),
            ("an accent as it is", "\xe9cho"),
            ("UTF-8 as it is", "écho".encode()),
            ("a control character", "echo\x01"),
            ("a deleted character", "echo\x7f"),
        )
    ),
    *(
        row("R-HS-20", name, mismatch("Mcp-Name", "echo"), headers=header(mcp_name=value))
        for name, value in (
            ("another name in Base64", sentinel("crash")),
            ("markers in upper case", sentinel("echo").replace("base64", "BASE64")),
            ("no end", sentinel("echo").removesuffix("?=")),
        )
    ),
    *(
        row("R-HS-21", f"{name} twice", mismatch(name, "once"), repeated=((name, value),))
        for name, value in (
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "echo"),
            ("Mcp-Name", "crash"),
        )
    ),
    *(
        row("R-HS-22", f"{version} at {name}", refusal, message, headers=headers, versions=versions)
        for version, name, versions, offered in (
            ("2099-01-01", "a server of both eras", None, ("2026-07-28", "2025-11-25", "2024-11-05")),
            ("2099-01-01", "a modern server", MODERN_ONLY, ("2026-07-28",)),
            ("2025-11-25", "a server of both eras", None, ("2026-07-28", "2025-11-25")),
            ("2025-11-25", "a modern server", MODERN_ONLY, ("2026-07-28",)),
            ("2026-07-28", "a server of the handshake era", HANDSHAKE_ONLY, ("2025-11-25", "2024-11-05")),
        )
        for refusal in [Refusal(400, -32022, ("Unsupported protocol version", version, *offered), ID)]
        for message in [with_meta(protocolVersion=version)]
        for headers in [header(mcp_protocol_version=version)]
    ),
    row(
        "R-HS-22",
        "server/discover in a version that is not served",
        Refusal(400, -32022, ("2026-07-28",), ID),
        changed(with_meta(protocolVersion="2099-01-01"), method="server/discover"),
        headers=header(mcp_protocol_version="2099-01-01", mcp_name=None),
    ),
    *(
        row("R-HS-23", method, Refusal(404, -32601, ("Method not found", method), ID), message)
        for method in (*REMOVED, "tools/unknown", "prompts/list", "completion/complete", "subscriptions/listen")
        for message in [ModernClient.message(ID, method, {"uri": "memo://1", "level": "info", "notifications": {}})]
    ),
    row(
        "R-HS-23",
        "an unknown method, event streams only",
        Refusal(404, -32601, ("Method not found", "tools/unknown"), ID),
        ModernClient.message(ID, "tools/unknown"),
        headers=header(accept="text/event-stream"),
    ),
    *(
        row("R-HS-24", name, mismatch(f"Mcp-Param-{param}", says), message, headers=headers)
        for name, param, says, arguments, headers in (
            ("missing", "Region", "missing", {"region": "eu"}, {}),
            ("different", "Region", "region", {"region": "eu"}, {"mcp-param-region": "us"}),
            ("in another case", "Region", "region", {"region": "eu"}, {"mcp-param-region": "EU"}),
            ("another number", "Count", "count", {"count": 42}, {"mcp-param-count": "43"}),
            ("no number", "Count", "count", {"count": 42}, {"mcp-param-count": "forty-two"}),
            ("a number of Python's", "Count", "count", {"count": 42}, {"mcp-param-count": "4_2"}),
            ("an endless number", "Count", "count", {"count": 42}, {"mcp-param-count": "1e999"}),
            ("not a number", "Count", "count", {"count": 42}, {"mcp-param-count": "nan"}),
            ("the other boolean", "Dry-Run", "dry", {"dry": True}, {"mcp-param-dry-run": "false"}),
            ("a boolean of Python's", "Dry-Run", "dry", {"dry": True}, {"mcp-param-dry-run": "True"}),
            ("a boolean as a number", "Dry-Run", "dry", {"dry": True}, {"mcp-param-dry-run": "1"}),
            ("broken Base64", "Region", "Base64", {"region": "eu"}, {"mcp-param-region": "=?base64?**?="}),
            ("an accent as it is", "Region", "base64", {"region": "é"}, {"mcp-param-region": "\xe9"}),
            ("missing for an empty text", "Region", "missing", {"region": ""}, {}),
            ("missing for a zero", "Count", "missing", {"count": 0}, {}),
            ("missing for false", "Dry-Run", "missing", {"dry": False}, {}),
        )
        for message in [calling("marked", arguments)]
    ),
    row(
        "R-HS-24",
        "twice",
        mismatch("Mcp-Param-Region", "region"),
        calling("marked", {"region": "eu"}),
        headers={"mcp-param-region": "eu"},
        repeated=(("mcp-param-region", "eu"),),
    ),
    *(
        row("R-HS-25", name, mismatch("Mcp-Param-Region", "region"), message, headers={"mcp-param-region": value})
        for name, arguments, value in (
            ("absent", {}, "eu"),
            ("null", {"region": None}, "eu"),
            ("null as a word", {"region": None}, "null"),
            ("null and empty", {"region": None}, ""),
            ("no arguments", ..., "eu"),
            ("arguments null", None, "eu"),
        )
        for message in [calling("marked", arguments)]
    ),
    row(
        "R-HS-26",
        "elicitation",
        Refusal(400, -32021, ("elicitation",), ID),
        calling("ask"),
    ),
    row(
        "R-HS-26",
        "elicitation, event streams only",
        Refusal(400, -32021, ("elicitation",), ID),
        calling("ask"),
        headers=header(accept="text/event-stream"),
    ),
    *(
        row("R-HS-27", name, Refusal(200, -32602, (says,), ID), message)
        for name, message, says in (
            ("an unknown tool", calling("nope"), "Unknown tool: nope"),
            ("an unknown prompt", ModernClient.message(ID, "prompts/get", {"name": "nope"}), "Unknown prompt: nope"),
            ("a missing resource", ModernClient.message(ID, "resources/read", {"uri": "memo://2"}), "memo://2"),
            ("a bad cursor", ModernClient.message(ID, "tools/list", {"cursor": "x"}), "cursor: x"),
            ("a bad log level", with_meta(logLevel="loud"), "logLevel"),
            ("a bad progress token", calling("echo", meta={"progressToken": 1.5}), "progressToken"),
            ("a bad request state", calling("ask", capabilities={"elicitation": {}}, state="forged"), "requestState"),
            ("arguments that are no object", calling("echo", [1]), "arguments"),
        )
    ),
    row("R-HS-28", "a crash", Refusal(200, -32603, ("Internal server error",), ID), calling("crash")),
    row(
        "R-HS-32",
        "initialize at a modern server",
        Refusal(400, -32020, ("MCP-Protocol-Version", "2026-07-28"), ID),
        HandshakeClient(None).opening(ID),
        headers=header(mcp_protocol_version=None, mcp_method=None),
        versions=MODERN_ONLY,
    ),
]


def body_of(sent: Sent) -> bytes:
    if sent.body is not None:
        return sent.body
    return line(sent.message) if sent.verb == "POST" else b""


@pytest.mark.parametrize(("sent", "refusal"), MODERN_ROWS)
async def test_2026_07_28(sent: Sent, refusal: Refusal) -> None:
    client = ModernClient(make_app(sent.versions, sent.options))
    method = sent.message.get("method")
    own = modern_headers(sent.message) if isinstance(method, str) else modern_headers(CALL)
    headers = {**own, **sent.headers}
    response = await client.request(sent.verb, sent.path, headers=headers, repeated=sent.repeated, body=body_of(sent))
    check(response, refusal)
    assert response.header("mcp-session-id") is None
    # Whatever was refused, the next request is served.
    assert (await client.call("echo", {"x": 1})).status == (200 if sent.versions != HANDSHAKE_ONLY else 400)


# --- the handshake era ------------------------------------------------------------------------------------

NO_SESSION: Final = Refusal(404, -32600, ("Session not found", "initialize"), ID)
SESSION_MISSING: Final = Refusal(400, -32600, ("Mcp-Session-Id", "initialize"), ID)
HERE: Final = {"allow": "GET, POST, DELETE"}

HANDSHAKE_ROWS: Final = [
    *both_eras(LEGACY_CALL),
    row(
        "R-HS-06",
        "GET without a session",
        Refusal(405, -32600, ("Mcp-Session-Id",), headers=HERE),
        LEGACY_CALL,
        verb="GET",
        headers=header(mcp_session_id=None, accept="text/event-stream"),
        cases=("C070",),
    ),
    row(
        "R-HS-06",
        "GET of JSON",
        Refusal(405, -32600, ("text/event-stream",), headers=HERE),
        LEGACY_CALL,
        verb="GET",
        headers=header(accept="application/json"),
        cases=("C070",),
    ),
    *(
        row(
            "R-HS-06",
            f"{verb} without sessions",
            Refusal(405, -32600, ("POST",), headers={"allow": "POST"}),
            LEGACY_CALL,
            verb=verb,
            headers=header(accept="text/event-stream"),
            options={"stateless_http": True},
            cases=("C071",),
        )
        for verb in ("GET", "DELETE")
    ),
    *(
        row("R-HS-07", verb, Refusal(405, -32600, ("POST",), headers=HERE), LEGACY_CALL, verb=verb)
        for verb in ("PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "QUERY")
    ),
    *(
        row(
            "R-HS-22",
            f"{version} in a session",
            Refusal(400, -32600, ("MCP-Protocol-Version", version, "2025-11-25"), ID),
            LEGACY_CALL,
            headers=header(mcp_protocol_version=version),
        )
        for version in ("1999-01-01", "1.0", "2025-11-26", "2025-06-18, 2025-06-18", "")
    ),
    row(
        "R-HS-22",
        "a word in a session",
        Refusal(400, -32600, ("MCP-Protocol-Version", "2025-11-25"), ID),
        LEGACY_CALL,
        headers=header(mcp_protocol_version="latest"),
    ),
    *(
        row(
            "R-HS-22",
            f"2025-06-18 at a server without it, {name}",
            Refusal(400, -32600, ("MCP-Protocol-Version", "2025-06-18", "2025-11-25"), ID),
            LEGACY_CALL,
            headers=header(mcp_protocol_version="2025-06-18"),
            versions=["2025-11-25", "2026-07-28"],
            options=options,
        )
        for name, options in (("in a session", {}), ("without sessions", {"stateless_http": True}))
    ),
    *(
        row("R-HS-23", method, Refusal(200, -32601, ("Method not found", method), ID), message)
        for method in ("tools/unknown", "prompts/list", "completion/complete", "server/discover", "roots/list")
        for message in [HandshakeClient.message(ID, method, {"uri": "memo://1"})]
    ),
    row(
        "R-HS-26",
        "elicitation",
        Refusal(200, -32602, ("elicitation",), ID),
        HandshakeClient.calling("ask", request_id=ID),
    ),
    *(
        row("R-HS-27", name, Refusal(200, code, (says,), ID), HandshakeClient.message(ID, method, params))
        for name, method, params, code, says in (
            ("an unknown tool", "tools/call", {"name": "nope"}, -32602, "Unknown tool: nope"),
            ("an unknown prompt", "prompts/get", {"name": "nope"}, -32602, "Unknown prompt: nope"),
            ("a missing resource", "resources/read", {"uri": "memo://2"}, -32002, "memo://2"),
            ("a bad cursor", "tools/list", {"cursor": "x"}, -32602, "cursor: x"),
            ("a bad log level", "logging/setLevel", {"level": "loud"}, -32602, "level"),
            ("arguments that are no object", "tools/call", {"name": "echo", "arguments": [1]}, -32602, "arguments"),
            ("no name", "tools/call", {}, -32602, "name"),
        )
    ),
    row(
        "R-HS-28",
        "a crash",
        Refusal(200, -32603, ("Internal server error",), ID),
        HandshakeClient.calling("crash", request_id=ID),
    ),
    row("R-HS-30", "an unknown session", NO_SESSION, LEGACY_CALL, headers=header(mcp_session_id="nobody")),
    row("R-HS-30", "an empty session id", NO_SESSION, LEGACY_CALL, headers=header(mcp_session_id="")),
    *(
        row(
            "R-HS-30",
            f"{verb} of an unknown session",
            Refusal(404, -32600, ("Session not found", "initialize")),
            LEGACY_CALL,
            verb=verb,
            headers=header(mcp_session_id="nobody", accept="text/event-stream"),
        )
        for verb in ("GET", "DELETE")
    ),
    row("R-HS-31", "a request", SESSION_MISSING, LEGACY_CALL, headers=header(mcp_session_id=None)),
    row(
        "R-HS-31",
        "ping",
        SESSION_MISSING,
        HandshakeClient.message(ID, "ping"),
        headers=header(mcp_session_id=None),
    ),
    *(
        row(
            "R-HS-31",
            name,
            Refusal(400, -32600, ("Mcp-Session-Id", "initialize")),
            LEGACY_CALL,
            body=body,
            headers=header(mcp_session_id=None),
        )
        for name, body in (
            ("a notification", b'{"jsonrpc":"2.0","method":"notifications/initialized"}'),
            ("a response", b'{"jsonrpc":"2.0","id":1,"result":{}}'),
        )
    ),
    row(
        "R-HS-31",
        "DELETE",
        Refusal(400, -32600, ("Mcp-Session-Id",)),
        LEGACY_CALL,
        verb="DELETE",
        headers=header(mcp_session_id=None),
    ),
]


@pytest.mark.parametrize(("sent", "refusal"), HANDSHAKE_ROWS)
async def test_the_handshake_era(sent: Sent, refusal: Refusal) -> None:
    client = HandshakeClient(make_app(sent.versions, sent.options))
    await client.initialize()
    assert (client.session_id is None) == sent.options.get("stateless_http", False)
    given: dict[str, Value | None] = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
    }
    headers = {**given, **client.own_headers, **sent.headers}
    response = await client.request(sent.verb, sent.path, headers=headers, repeated=sent.repeated, body=body_of(sent))
    check(response, refusal)
    # Whatever was refused, the session goes on.
    assert (await client.call("echo", {"x": 1})).json["result"]["structuredContent"] == {"x": 1}


# --- what one era refuses and the other does not look at --------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(headers, id=f"{requirement} {name}", marks=pytest.mark.requirement(requirement))
        for requirement, name, headers in (
            ("R-HS-15", "no version", header(mcp_protocol_version=None)),
            ("R-HS-18", "another method", header(mcp_method="tools/list")),
            ("R-HS-18", "no method", header(mcp_method="")),
            ("R-HS-19", "another name", header(mcp_name="crash")),
            ("R-HS-20", "broken Base64", header(mcp_name="=?base64?**?=")),
            ("R-HS-20", "an accent", header(mcp_name="\xe9")),
            ("R-HS-24", "another parameter", header(mcp_param_region="us")),
            ("R-HS-25", "a parameter that is not there", header(mcp_param_count="1")),
        )
    ],
)
@pytest.mark.parametrize("stateless", [False, True], ids=["session", "stateless"])
async def test_the_handshake_era_knows_no_mirrored_headers(headers: Headers, stateless: bool) -> None:
    client = HandshakeClient(make_app(None, {"stateless_http": stateless}))
    await client.initialize()
    response = await client.call("marked", {"region": "eu"}, headers=headers)
    assert response.status == 200
    assert response.json["result"]["content"] == [{"type": "text", "text": "ran"}]


@pytest.mark.requirement("R-HS-21")
async def test_the_handshake_era_does_not_count_mirrored_headers() -> None:
    client = HandshakeClient(make_app(None, {}))
    await client.initialize()
    response = await client.answer(LEGACY_CALL, repeated=(("mcp-method", "a"), ("mcp-method", "b")))
    assert response.status == 200


@pytest.mark.requirement("R-HS-15")
@pytest.mark.requirement("R-HTTPL-13")
async def test_without_a_version_and_a_session_2025_03_26_is_assumed() -> None:
    client = HandshakeClient(make_app(None, {"stateless_http": True}))
    calls = {
        version: (await client.call("echo", {"x": 1}, headers=header(mcp_protocol_version=version))).json["result"]
        for version in (None, "2025-03-26", "2025-06-18")
    }
    plain = {"content": [{"type": "text", "text": "ran"}], "isError": False}
    assert calls == {None: plain, "2025-03-26": plain, "2025-06-18": {**plain, "structuredContent": {"x": 1}}}


@pytest.mark.requirement("R-HS-30")
@pytest.mark.requirement("R-HS-31")
@pytest.mark.requirement("R-HTTP-27")
@pytest.mark.parametrize("session_id", ["nobody", ""])
@pytest.mark.parametrize("versions", [None, MODERN_ONLY], ids=["both eras", "modern"])
async def test_2026_07_28_does_not_look_at_session_ids(session_id: str, versions: list[str] | None) -> None:
    client = ModernClient(make_app(versions, {}))
    headers = header(mcp_session_id=session_id, last_event_id="e1")
    response = await client.call("echo", {"x": 1}, headers=headers)
    assert response.status == 200
    assert response.json["result"]["structuredContent"] == {"x": 1}
    assert response.header("mcp-session-id") is None


# --- responses and notifications --------------------------------------------------------------------------


@pytest.mark.requirement("R-HS-13")
@pytest.mark.requirement("R-HTTPL-02")
@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":"x","error":{"code":-1,"message":"no"}}',
        b'{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}',
    ],
    ids=["result", "error", "error without id"],
)
async def test_the_handshake_era_posts_responses(body: bytes) -> None:
    client = HandshakeClient(make_app(None, {}))
    await client.initialize()
    response = await client.request(
        headers={"content-type": "application/json", "accept": "*/*", **client.own_headers}, body=body
    )
    assert (response.status, response.body, response.header("content-type")) == (202, b"", None)


@pytest.mark.requirement("R-HS-14")
@pytest.mark.requirement("R-HTTP-06")
@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/cancelled", "notifications/unknown"])
async def test_a_notification_is_accepted_without_a_body(method: str) -> None:
    app = make_app(None, {})
    legacy, modern = HandshakeClient(app), ModernClient(app)
    await legacy.initialize()
    by_session = await legacy.notify(method)
    by_itself = await modern.answer({"jsonrpc": "2.0", "method": method, "params": {"_meta": modern_meta()}})
    for response in (by_session, by_itself):
        assert (response.status, response.body, response.header("content-type")) == (202, b"", None)
        assert response.header("content-length") == "0"


@pytest.mark.requirement("R-HS-14")
@pytest.mark.requirement("R-HTTP-06")
async def test_a_notification_that_is_refused_has_an_error_status() -> None:
    app = make_app(None, {})
    body = b'{"jsonrpc":"2.0","method":"notifications/progress","params":[1]}'
    for headers in (modern_headers({"method": "notifications/progress"}), header(content_type="application/json")):
        response = await ModernClient(app).request(headers=headers, body=body)
        check(response, Refusal(400, -32602, ("params",)))


# --- after the stream has begun ---------------------------------------------------------------------------


@pytest.mark.requirement("R-HS-29")
@pytest.mark.parametrize(("tool", "code"), [("fail_late", -32602), ("vanish_late", -32601)])
async def test_an_error_comes_as_the_last_event_once_a_stream_has_begun(tool: str, code: int) -> None:
    app = make_app(None, {})
    legacy = HandshakeClient(app)
    await legacy.initialize()
    modern = await ModernClient(app).call(tool, request_id=ID, meta={"progressToken": "p"})
    for response in (modern, await legacy.call(tool, request_id=ID, token="p")):
        assert response.status == 200
        progress, error = response.messages
        assert progress["method"] == "notifications/progress"
        assert (error["id"], error["error"]["code"]) == (ID, code)


@pytest.mark.requirement("R-HS-28")
async def test_an_error_of_the_application_is_not_taken_for_one_of_the_protocol() -> None:
    response = await ModernClient(make_app(None, {})).call("own_code")
    assert (response.status, response.json["error"]["code"]) == (200, -320200)


@pytest.mark.requirement("R-HS-10")
@pytest.mark.case("C067")
async def test_where_only_json_is_sent_a_client_must_take_json() -> None:
    client = HandshakeClient(make_app(None, {"json_response": True}))
    await client.initialize()
    accept = "application/json;q=0, text/event-stream"
    check(
        await client.call("echo", headers=header(accept=accept)), Refusal(406, -32600, ("Accept", "application/json"))
    )
    preferred = header(accept="application/json; q=0.5, text/event-stream;q=1")
    assert (await client.call("echo", {"x": 1}, headers=preferred)).json["result"]["structuredContent"] == {"x": 1}


@pytest.mark.requirement("R-HS-10")
async def test_a_subscription_is_refused_to_who_takes_no_stream() -> None:
    server = Server("changes", subscriptions=True, on_list_tools=list_tools, on_call_tool=call_tool)
    client = ModernClient(server.streamable_http_app())
    message = ModernClient.message(ID, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    response = await client.answer(message, headers=header(accept="application/json"))
    check(response, Refusal(406, -32600, ("Accept", "text/event-stream"), ID))

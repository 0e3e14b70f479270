"""A 2026-07-28 message that is decoded in one go is answered as one that is decoded step by step.

Two servers serve the same methods by the same handlers, and only one of them may decode
whole messages. Whatever is sent, both answer alike, and their handlers see the same.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_core import RequestContext, Server, codec
from mcp_core.context import Peer
from mcp_core.dispatch import InboundCall, Refusal
from mcp_core.messages import Request
from mcp_core.request_meta import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION
from mcp_core.transports.streamable_http import HTTPOptions, StreamableHTTP
from mcp_core.types import (
    CallToolRequestParams,
    GetPromptRequestParams,
    PaginatedRequestParams,
    RawCallToolParams,
    ReadResourceRequestParams,
    RequestParams,
    SubscriptionsListenRequestParams,
)
from tests.http.asgi import BOTH, HTTP, MODERN, NAMED_BY, Headers, Value
from tests.property.strategies import fast, json_values, mutated, request_ids, unicode_text

many = settings(fast, max_examples=300)


# --- what is served -----------------------------------------------------------------------------------------


class Renamed(RequestParams, rename={"label": "name", "place": "uri"}):
    """The members that `Mcp-Name` mirrors, under other names."""

    label: str
    place: str = ""


class Swapped(RequestParams, rename={"name": "label", "label": "name"}):
    """A field that is called like the mirrored member, and is another."""

    name: str
    label: str = ""


class Loose(RequestParams):
    """A name of any type."""

    name: Any = None


class Typed(RequestParams):
    """Fields of a method of one's own."""

    x: int
    names: tuple[str, ...] = ()
    rest: msgspec.Raw = msgspec.Raw(b"null")


class Strict(RequestParams, forbid_unknown_fields=True):
    """No other members."""

    x: int = 0


class Checked(RequestParams):
    """Fields that are checked by code."""

    x: int = 0

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x must not be negative")


class Tagged(RequestParams, tag_field="kind", tag="x"):
    """Told by a tag."""

    x: int = 0


class Positional(RequestParams, array_like=True):
    """An array where JSON-RPC of MCP has objects."""

    x: int = 0


class Plain(msgspec.Struct):
    """A Struct that has no `_meta`."""

    x: int = 0


OWN: Final[dict[str, Any]] = {
    "own/typed": Typed,
    "own/strict": Strict,
    "own/checked": Checked,
    "own/tagged": Tagged,
    "own/positional": Positional,
    "own/plain": Plain,
    "own/dict": dict,
    "own/any": Any,
    "own/raw": msgspec.Raw,
    "own/either": Typed | None,
}
"""Methods that MCP does not define, by the types of their params."""

NAMED: Final[list[dict[str, Any]]] = [
    {
        "tools/call": CallToolRequestParams,
        "prompts/get": GetPromptRequestParams,
        "resources/read": ReadResourceRequestParams,
    },
    {"tools/call": RawCallToolParams, "prompts/get": Loose, "resources/read": dict},
    {"tools/call": Renamed, "prompts/get": Swapped, "resources/read": Renamed},
    {"tools/call": dict, "prompts/get": Strict, "resources/read": Plain},
]
"""What the methods with names may be decoded as."""

REGION: Final = {"type": "string", "x-mcp-header": "Region"}
TOOLS: Final = [
    {"name": "plain", "inputSchema": {"type": "object"}},
    {"name": "marked", "inputSchema": {"type": "object", "properties": {"region": REGION}}},
]
RESULTS: Final[dict[str, Any]] = {
    "tools/call": {"content": []},
    "tools/list": {"tools": TOOLS},
    "prompts/get": {"messages": []},
    "resources/read": {"contents": []},
    "resources/list": {"resources": []},
}


def attempt(call: Callable[[], Any]) -> Any:
    """What a call gives, or what it raises, in a form that can be compared."""
    try:
        return call()
    except Exception as exc:
        return repr(exc)


class Side:
    """A server that notes what its handlers see."""

    def __init__(self, named: dict[str, Any], versions: list[str] | None, *, in_one_go: bool) -> None:
        self.seen: list[Any] = []
        server = Server("whole", protocol_versions=versions)
        lists = {"tools/list": PaginatedRequestParams, "resources/list": PaginatedRequestParams}
        others = {"ping": RequestParams, "subscriptions/listen": SubscriptionsListenRequestParams}
        for method, kind in {**OWN, **named, **lists, **others}.items():
            server.add_request_handler(method, kind, self.note)
        server.add_notification_handler("notifications/own", dict, self.note)
        server.observers.add(self)
        self.ways: list[tuple[str, str]] = []
        """How each request was decoded: its method, and `whole` or `steps`."""
        dispatcher = server.dispatcher  # which is the same from here on, as nothing more is registered
        open_single_pass, open_by_steps = dispatcher.open_single_pass, dispatcher.open

        def noted_open_whole(body: bytes, peer: Peer) -> InboundCall | None:
            call = open_single_pass(body, peer) if in_one_go else None
            if call is not None:
                self.ways.append((call.request.method, "whole"))
            return call

        def noted_open(request: Request, peer: Peer) -> InboundCall | Refusal:
            self.ways.append((request.method, "steps"))
            return open_by_steps(request, peer)

        vars(dispatcher).update(open_single_pass=noted_open_whole, open=noted_open)
        self.client = HTTP(StreamableHTTP(server, HTTPOptions()))

    def note(self, ctx: RequestContext, params: Any) -> Any:
        self.seen.append(
            (
                (ctx.method, ctx.request_id, type(ctx.request_id), ctx.protocol_version, dict(ctx.headers or {})),
                attempt(lambda: bytes(ctx.raw_params)),
                attempt(lambda: codec.encode(ctx.params)),
                codec.encode(ctx.meta),
                attempt(lambda: codec.encode(ctx.client_info)),
                attempt(lambda: codec.encode(ctx.client_capabilities)),
                (type(params), attempt(lambda: codec.encode(params))),
            )
        )
        return RESULTS.get(ctx.method, {})

    def request_started(self, ctx: RequestContext) -> None:
        self.seen.append(("started", ctx.method, ctx.request_id))

    def request_finished(self, ctx: RequestContext, answer: bytes) -> None:
        self.seen.append(("finished", ctx.method, ctx.request_id, answer))

    async def answer(self, sent: Sent) -> tuple[Any, list[Any]]:
        """The response, and what handlers and observers saw."""
        self.seen.clear()
        response = await self.client.request(headers=sent.headers, repeated=sent.repeated, body=sent.body)
        return (response.status, response.fields, response.body), list(self.seen)


@dataclass(frozen=True)
class Sent:
    """A request over HTTP."""

    headers: Headers
    body: bytes
    repeated: tuple[tuple[str, Value], ...] = ()


class Pair:
    """The same server twice, on a loop that lasts for all examples."""

    def __init__(self, runner: asyncio.Runner, named: dict[str, Any], versions: list[str] | None) -> None:
        self._runner = runner
        self.whole = Side(named, versions, in_one_go=True)
        self.stepwise = Side(named, versions, in_one_go=False)

    def check(self, sent: Sent) -> int:
        """Hold the two against each other; the status of the answer."""
        wanted, wanted_seen = self._runner.run(self.stepwise.answer(sent))
        got, seen = self._runner.run(self.whole.answer(sent))
        assert got == wanted
        assert seen == wanted_seen
        assert got[0] < 500
        return int(got[0])


VERSIONS: Final[list[list[str] | None]] = [None, [MODERN]]


@pytest.fixture(scope="module")
def pairs() -> Generator[list[Pair], None, None]:
    with asyncio.Runner() as runner:
        yield [Pair(runner, named, versions) for named in NAMED for versions in VERSIONS]


# --- messages -------------------------------------------------------------------------------------------------

Members: TypeAlias = "list[tuple[bytes, bytes | Members]]"
"""An object as the JSON texts of its members: they may come twice, and be spelt in any way."""


def text(value: str) -> bytes:
    return json.dumps(value).encode()


def escaped(value: str) -> bytes:
    """A string with each of its characters escaped."""
    units = memoryview(value.encode("utf-16-le", "surrogatepass")).cast("H")
    return b'"%b"' % "".join(f"\\u{unit:04x}" for unit in units).encode()


def any_spelling(value: str) -> st.SearchStrategy[bytes]:
    return st.sampled_from([text(value)] * 6 + [escaped(value), json.dumps(value, ensure_ascii=False).encode()])


def rendered(value: bytes | Members) -> bytes:
    if isinstance(value, bytes):
        return value
    return b"{%b}" % b",".join(b"%b:%b" % (key, rendered(member)) for key, member in value)


METHODS: Final = [*NAMED[0], "tools/list", "resources/list", "server/discover", "subscriptions/listen", *OWN]
FOREIGN: Final = ["ping", "initialize", "tools/unknown", "notifications/own", "logging/setLevel", "roots/list", ""]
"""Methods that are not served to 2026-07-28 clients, or are no requests."""

DEEP: Final = 20_000
ODD: Final = [
    *(b"null", b"true", b"0", b"-1", b"1.0", b"1.5", b"-0", b"1e3", b"1e400", b"9" * 40, b"[]", b"[1]", b"{}"),
    *(b'""', b'"x"', b'"2.0"', b'"1.0"', b'"\\u0032.0"', b'"a\\u0000b"', b'"\\ud83d\\ude00"', b'"marked"', b'"debug"'),
    *(text(version) for version in (MODERN, "2025-11-25", "2099-01-01")),
    *(text(method) for method in (*METHODS, *FOREIGN)),
    # Text that is not valid Unicode, or not JSON.
    *(b'"\\ud800"', b'{"\\ud800":1}', b'["\\udc00\\ud800"]', b'"\xff"', b'"\xed\xa0\x80"', b'{"a\xc3":1}'),
    *(b"NaN", b"-Infinity", b"", b"01", b"'x'", b'{"a":1,}', b'"\n"', b"\xef\xbb\xbf{}"),
    # Deeper than this process can hold, and not quite.
    *(b"[" * depth + b"]" * depth for depth in (50, DEEP)),
    *(b'{"a":' * depth + b"1" + b"}" * depth for depth in (50, DEEP)),
]
odd_values = st.sampled_from(ODD) | json_values.map(lambda value: json.dumps(value).encode())
odd_keys = st.sampled_from(
    ["jsonrpc", "id", "method", "params", "result", "error", "_meta", "name", "uri", "arguments", "cursor", "x", "kind"]
).flatmap(any_spelling) | st.sampled_from([b'"extra"', b'"\\ud800"', b'"\xff"', b"null", b'"label"', b'"ID"'])


@st.composite
def metas(draw: st.DrawFn) -> Members:
    meta: Members = [
        (draw(any_spelling(PROTOCOL_VERSION)), draw(any_spelling(MODERN))),
        (draw(any_spelling(CLIENT_CAPABILITIES)), draw(st.sampled_from([b"{}", b'{"elicitation":{"form":{}}}']))),
    ]
    further = [
        (text("progressToken"), draw(request_ids.map(lambda token: json.dumps(token).encode()))),
        (text(CLIENT_INFO), b'{"name":"c","version":"1"}'),
        (text(LOG_LEVEL), b'"error"'),
        (b'"own.example/key"', draw(odd_values)),
    ]
    meta += draw(st.lists(st.sampled_from(further), max_size=2))
    return draw(st.permutations(meta))


def params_of(draw: st.DrawFn, method: str, name: str) -> tuple[Members, list[Members]]:
    """Good params without `_meta`, and the objects in them."""
    arguments: Members = [(b'"region"', b'"eu"'), (b'"n"', b"1.0")]
    if method == "tools/call":
        return [(text("name"), draw(any_spelling(name))), (text("arguments"), arguments)], [arguments]
    if method == "prompts/get":
        strings: Members = [(b'"a"', b'"1"')]
        return [(text("name"), draw(any_spelling(name))), (text("arguments"), strings)], [strings]
    if method == "resources/read":
        return [(text("uri"), draw(any_spelling(name)))], []
    if method == "subscriptions/listen":
        return [(text("notifications"), b"{}")], []
    if method.startswith("own/"):
        found: Members = [(text("x"), b"1"), (text("kind"), b'"x"'), (text("names"), b'["a"]')]
        return found[: draw(st.integers(0, 3))] if method != "own/strict" else found[:1], []
    return [], []


Edit: TypeAlias = Callable[[Members], None]


@st.composite
def edits(draw: st.DrawFn) -> Edit:
    """A way to spoil an object."""
    place, value, key = draw(st.floats(0, 1)), draw(odd_values), draw(odd_keys)
    kinds = ["drop", "replace", "repeat", "repeat before", "repeat the same", "escape", "add", "reverse"]
    kind = draw(st.sampled_from(kinds))

    def edit(members: Members) -> None:
        at = min(int(place * len(members)), len(members) - 1)
        if kind == "add":
            members.insert(at + 1, (key, value))
        elif kind == "reverse":
            members.reverse()
        elif not members:
            return
        elif kind == "drop":
            del members[at]
        elif kind == "replace":
            members[at] = (members[at][0], value)
        elif kind == "repeat":
            members.append((members[at][0], value))
        elif kind == "repeat before":
            members.insert(0, (members[at][0], value))
        elif kind == "repeat the same":
            members.append(members[at])
        else:
            members[at] = (escaped(attempt(lambda: json.loads(members[at][0]))), members[at][1])

    return edit


def right_headers(method: str, name: str, *, region: bool) -> dict[str, Value | None]:
    plain = name.isascii() and name.isprintable() and name == name.strip() and not name.startswith("=?base64?")
    headers: dict[str, Value | None] = {
        "content-type": "application/json",
        "accept": BOTH,
        "mcp-protocol-version": MODERN,
        "mcp-method": method,
    }
    if method in NAMED_BY:
        headers["mcp-name"] = name if plain else sentinel(name)
    if region:
        headers["mcp-param-region"] = "eu"
    return headers


def sentinel(name: str) -> str:
    return f"=?base64?{base64.b64encode(name.encode()).decode()}?="


STANDARD: Final = ("mcp-protocol-version", "mcp-method", "mcp-name")
HEADER_VALUES: Final[list[Value | None]] = [
    *(
        None,
        "",
        "x",
        b"\xe9",
        b"\xff",
        "=?base64?**?=",
        "=?base64?cGxhaW4=?=",
        "plain",
        "marked",
        "PLAIN",
        "tools/call",
    ),
    *("2025-11-25", "2099-01-01", MODERN, f" {MODERN}\t", "Tools/InboundCall", *METHODS, *FOREIGN[:4]),
]


@st.composite
def header_edits(draw: st.DrawFn) -> Callable[[dict[str, Value | None], list[tuple[str, Value]]], None]:
    """A way to spoil headers."""
    name = draw(st.sampled_from([*STANDARD * 3, "accept", "mcp-param-region", "mcp-param-other"]))
    value = draw(st.sampled_from(HEADER_VALUES))
    kind = draw(st.sampled_from(["set", "repeat", "repeat the same", "pad", "encode"]))

    def edit(headers: dict[str, Value | None], repeated: list[tuple[str, Value]]) -> None:
        before = headers.get(name)
        if kind == "set" or not isinstance(before, str):
            headers[name] = value
        elif kind == "pad":
            headers[name] = f" \t{before} "
        elif kind == "encode":
            headers[name] = sentinel(before)
        elif kind == "repeat the same":
            repeated.append((name, before))
        elif value is not None:
            repeated.append((name, value))

    return edit


names = st.sampled_from(["plain", "marked", "", "wörter", "two words", " edges ", "=?base64?cGxhaW4=?="]) | unicode_text


@st.composite
def requests(draw: st.DrawFn, *, edited: bool) -> Sent:
    """A good request, or one that has been spoilt in a few places."""
    method = draw(st.sampled_from(METHODS * 2 + FOREIGN if edited else METHODS))
    name = draw(names)
    params, inner = params_of(draw, method, name)
    meta = draw(metas())
    params.insert(draw(st.integers(0, len(params))), (draw(any_spelling("_meta")), meta))
    message: Members = [
        (draw(any_spelling("jsonrpc")), draw(any_spelling("2.0"))),
        (draw(any_spelling("id")), draw(request_ids.map(lambda request_id: json.dumps(request_id).encode()))),
        (draw(any_spelling("method")), draw(any_spelling(method))),
        (draw(any_spelling("params")), params),
    ]
    message = draw(st.permutations(message))
    headers = right_headers(method, name, region=method == "tools/call" and name == "marked")
    repeated: list[tuple[str, Value]] = []
    if edited:
        levels = [message, message, params, params, meta, *inner]
        for level, edit in draw(st.lists(st.tuples(st.sampled_from(range(len(levels))), edits()), max_size=3)):
            edit(levels[level])
        for edit_headers in draw(st.lists(header_edits(), max_size=2)):
            edit_headers(headers, repeated)
    if method == "own/positional" and draw(st.booleans()):
        message = [(key, b"[1,%b]" % rendered(meta) if value is params else value) for key, value in message]
    space = draw(st.sampled_from([b""] * 4 + [b" ", b"\r\n\t"]))
    return Sent(headers, space + rendered(message) + space, tuple(repeated))


# --- messages one by one ----------------------------------------------------------------------------------------

Changes: TypeAlias = "dict[str, bytes | Members | None]"
"""Members to put in place of others, or besides; `None` takes one away."""


def changed(members: Members, changes: Changes) -> Members:
    given: dict[bytes, bytes | Members] = dict(members)
    for key, value in changes.items():
        given[text(key)] = b"" if value is None else value
    return [(key, value) for key, value in given.items() if value != b""]


def sending(
    method: str,
    params: Members,
    *,
    message: Changes | None = None,
    meta: Changes | None = None,
    before: Members | None = None,
    after: Members | None = None,
    **headers: Value | None,
) -> Sent:
    """A good request, but for these changes; `before` and `after` are further members of the message."""
    own_meta = changed([(text(PROTOCOL_VERSION), text(MODERN)), (text(CLIENT_CAPABILITIES), b"{}")], meta or {})
    whole: Members = [
        (text("jsonrpc"), text("2.0")),
        (text("id"), b"1"),
        (text("method"), text(method)),
        (text("params"), [*params, (text("_meta"), own_meta)]),
    ]
    own_headers = right_headers(method, "plain", region=False)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    body = rendered([*(before or []), *changed(whole, message or {}), *(after or [])])
    return Sent({**own_headers, **given}, body)


def calling(**changes: Any) -> Sent:
    """A tool call, but for these changes; `arguments` are JSON."""
    arguments = changes.pop("arguments", b'{"n":[1.0]}')
    return sending("tools/call", [(b'"name"', PLAIN), (b'"arguments"', arguments)], **changes)


def twice(sent: Sent, name: str, value: Value) -> Sent:
    """The same with one header once more."""
    return Sent(sent.headers, sent.body, ((name, value),))


PLAIN: Final = b'"plain"'
GOOD: Final[list[tuple[str, Members, bool]]] = [
    ("tools/call", [(b'"name"', PLAIN), (b'"arguments"', b'{"n":[1.0]}')], True),
    ("prompts/get", [(b'"name"', PLAIN)], True),
    ("resources/read", [(b'"uri"', PLAIN)], True),
    ("tools/list", [], True),
    ("resources/list", [(b'"cursor"', b'"1"')], True),
    ("server/discover", [], True),
    ("subscriptions/listen", [(b'"notifications"', b"{}")], False),
    ("own/typed", [(b'"x"', b"1"), (b'"rest"', b"[ 1 ]")], True),
    ("own/strict", [(b'"x"', b"1")], True),
    ("own/checked", [(b'"x"', b"1")], True),
    ("own/tagged", [(b'"kind"', b'"x"')], True),
    ("own/plain", [(b'"x"', b"1")], False),
    ("own/dict", [(b'"x"', b"1")], False),
    ("own/any", [(b'"x"', b"1")], False),
    ("own/raw", [(b'"x"', b"1")], False),
    ("own/either", [(b'"x"', b"1")], False),
]
ODD_IDS: Final = [b"null", b"true", b"1.0", b"1.5", b"[]", b"{}", b'"\\ud800"', b'"\\u0031"', b"9" * 40, b"-0"]
ODD_METAS: Final = [b"null", b"[]", b'"x"', b"1", b"{}", b'{"\\ud800":1}']
META: Final = rendered([(text(PROTOCOL_VERSION), text(MODERN)), (text(CLIENT_CAPABILITIES), b"{}")])
CASES: Final[dict[str, Sent]] = {
    **{f"jsonrpc {v!r}": calling(message={"jsonrpc": v}) for v in (b'"1.0"', b"2.0", b"null", b'"\\u0032.0"', None)},
    **{f"id {v!r}": calling(message={"id": v}) for v in ODD_IDS},
    **{f"params {v!r}": calling(message={"params": v}) for v in (b"null", b"[]", b"[{}]", b'"x"', b"{}", None)},
    **{f"arguments {v!r}": calling(arguments=v) for v in (b"[1]", b"null", b'"x"', b"1", b"NaN", b'{"a":1,}', b"")},
    **{f"meta {v!r}": sending("tools/list", [], message={"params": [(b'"_meta"', v)]}) for v in ODD_METAS},
    "two metas": calling(message={"params": [(b'"name"', PLAIN), *[(b'"_meta"', v) for v in (b"{}", META)]]}),
    "two metas, the second of which is empty": calling(
        message={"params": [(b'"name"', PLAIN), *[(b'"_meta"', v) for v in (META, b"{}")]]}
    ),
    **{f"token {v!r}": calling(meta={"progressToken": v}) for v in (b"1.0", b"1.5", b"true", b"null", b"{}", b'""')},
    **{f"version {v!r}": calling(meta={PROTOCOL_VERSION: v}) for v in (b'"2099-01-01"', b"1", b"null", None)},
    **{f"capabilities {v!r}": calling(meta={CLIENT_CAPABILITIES: v}) for v in (b"[]", b"null", b'{"roots":1}', None)},
    **{f"log level {v!r}": calling(meta={LOG_LEVEL: v}) for v in (b'"loud"', b"1", b"null")},
    **{f"client info {v!r}": calling(meta={CLIENT_INFO: v}) for v in (b'"me"', b'{"name":1}')},
    "an unknown member": calling(after=[(b'"extra"', b"[1]")]),
    "wrong UTF-8 in an unknown member": calling(after=[(b'"extra"', b'"\xff"')]),
    "a lone surrogate in an unknown member": calling(after=[(b'"extra"', b'"\\ud800"')]),
    "an unknown member that is no JSON": calling(after=[(b'"extra"', b"NaN")]),
    "a result besides": calling(after=[(b'"result"', b"{}"), (b'"error"', b"1")]),
    "two ids": calling(after=[(b'"id"', b'"b"')]),
    "two ids, the first of which is none": calling(before=[(b'"id"', b"null")]),
    "two ids, the second of which is none": calling(after=[(b'"id"', b"null")]),
    "two methods": calling(before=[(b'"method"', b'"tools/list"')]),
    "two methods, of which the header names the first": calling(after=[(b'"method"', b'"tools/list"')]),
    "two params": calling(before=[(b'"params"', b'{"name":"x"}')]),
    "two params, the second without a name": calling(after=[(b'"params"', b"{}")]),
    "escaped members": Sent(
        calling().headers,
        calling().body.replace(b'"method"', escaped("method")).replace(b'"_meta"', b'"_m\\u0065ta"'),
    ),
    "a lone surrogate in the arguments": calling(arguments=b'{"a":"\\ud800","\\udc00":1}'),
    "a pair of surrogates in the arguments": calling(arguments=b'{"a":"\\ud83d\\ude00"}'),
    "wrong UTF-8 in the arguments": calling(arguments=b'{"a":"\xed\xa0\x80"}'),
    "arguments that are deeply nested": calling(arguments=b'{"a":' * DEEP + b"1" + b"}" * DEEP),
    "an unknown member that is deeply nested": calling(after=[(b'"extra"', b"[" * DEEP + b"]" * DEEP)]),
    "more text": Sent(calling().headers, calling().body + b"{}"),
    "less text": Sent(calling().headers, calling().body[:-1]),
    "an array": Sent(calling().headers, b"[%b]" % calling().body),
    "no text": Sent(calling().headers, b""),
    "another method in the header": calling(mcp_method="tools/list"),
    "the method in capitals": calling(mcp_method="TOOLS/CALL"),
    "no method in the header": calling(mcp_method=None),
    "an unknown method in the header": calling(mcp_method="tools/unknown"),
    "another version in the header": calling(mcp_protocol_version="2025-11-25"),
    "an unknown version in the header": calling(mcp_protocol_version="2099-01-01"),
    "no version in the header": calling(mcp_protocol_version=None),
    "another name in the header": calling(mcp_name="other"),
    "no name in the header": calling(mcp_name=None),
    "the name in Base64": calling(mcp_name=sentinel("plain")),
    "the name in what is no Base64": calling(mcp_name="=?base64?**?="),
    "the name with an accent": calling(mcp_name=b"pl\xe4in"),
    "the name amid spaces": calling(mcp_name=" plain\t"),
    "the name twice": twice(calling(), "mcp-name", "plain"),
    "the method twice": twice(calling(), "mcp-method", "tools/call"),
    "the version twice": twice(calling(), "mcp-protocol-version", MODERN),
    "a name where none belongs": sending("tools/list", [], mcp_name="x"),
    "a name twice where none belongs": twice(sending("tools/list", [], mcp_name="x"), "mcp-name", "x"),
    "a method of one's own and a name twice": twice(
        sending("own/typed", [(b'"x"', b"1")], mcp_name=""), "mcp-name", ""
    ),
    "positional params": sending("own/positional", [], message={"params": b"[1,%b]" % META}),
    "a field that a check refuses": sending("own/checked", [(b'"x"', b"-1")]),
    "a member too many": sending("own/strict", [(b'"y"', b"1")]),
    "a subscription without a stream": sending(
        "subscriptions/listen", [(b'"notifications"', b"{}")], accept="application/json"
    ),
    "initialize": sending("initialize", []),
    "ping": sending("ping", []),
    "a notification": sending("notifications/own", [(b'"x"', b"1")], message={"id": None}),
    "a notification of a method that is a request's": calling(message={"id": None}),
}


@pytest.mark.parametrize(("method", "params", "in_one_go"), GOOD, ids=[method for method, *_ in GOOD])
def test_good_messages_are_decoded_in_one_go(method: str, params: Members, in_one_go: bool, pairs: list[Pair]) -> None:
    for pair in pairs[: len(VERSIONS)]:
        assert pair.check(sending(method, params)) == 200
        ways = {side: [way for name, way in side.ways if name == method] for side in (pair.whole, pair.stepwise)}
        assert ways[pair.whole][-1] == ("whole" if in_one_go else "steps")
        assert set(ways[pair.stepwise]) == {"steps"}


@pytest.mark.parametrize("case", CASES)
def test_what_takes_a_closer_look_is_answered_alike(case: str, pairs: list[Pair]) -> None:
    for pair in pairs:
        pair.check(CASES[case])


@many
@given(sent=requests(edited=False), data=st.data())
def test_any_good_message_is_answered_alike(sent: Sent, data: st.DataObject, pairs: list[Pair]) -> None:
    data.draw(st.sampled_from(pairs)).check(sent)


@many
@given(sent=requests(edited=True), data=st.data())
def test_a_message_that_was_spoilt_is_answered_alike(sent: Sent, data: st.DataObject, pairs: list[Pair]) -> None:
    data.draw(st.sampled_from(pairs)).check(sent)


@fast
@given(sent=requests(edited=False), data=st.data())
def test_a_message_whose_bytes_were_changed_is_answered_alike(
    sent: Sent, data: st.DataObject, pairs: list[Pair]
) -> None:
    changed = Sent(sent.headers, data.draw(mutated(st.just(sent.body))), sent.repeated)
    data.draw(st.sampled_from(pairs)).check(changed)

"""Whose parameters are mirrored in headers: `on_get_tool` says it, and nothing runs unchecked while nobody can."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import Any

import anyio
import pytest
from msgspec import Raw

from mcp_core import RequestContext, Server
from mcp_core.errors import InvalidParams
from mcp_core.subscriptions import ToolsListChanged
from mcp_core.testing import flush_logs
from mcp_core.transports.streamable_http import HTTPOptions, StreamableHTTP
from mcp_core.types import (
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
)
from tests.http.asgi import SECONDS, HandshakeClient, Headers, ModernClient, Response

REGION = {"type": "string", "x-mcp-header": "Region"}
MARKED: dict[str, Any] = {"type": "object", "properties": {"region": REGION}}
PLAIN: dict[str, Any] = {"type": "object", "properties": {"region": {"type": "string"}}}
EU = {"region": "eu"}
RIGHT: Headers = {"mcp-param-region": "eu"}
WRONG: Headers = {"mcp-param-region": "us"}


class Later:
    """Something that can be awaited, and is no coroutine."""

    def __init__(self, give: Callable[[], Any]) -> None:
        self._give = give

    def __await__(self) -> Generator[Any, Any, Any]:
        yield from anyio.lowlevel.checkpoint().__await__()
        return self._give()


Give = Callable[[RequestContext, str], Any]


def at_once(give: Give) -> Give:
    return give


def without_waiting(give: Give) -> Give:
    async def given(ctx: RequestContext, name: str) -> Any:
        return give(ctx, name)

    return given


def in_a_while(give: Give) -> Give:
    async def given(ctx: RequestContext, name: str) -> Any:
        await anyio.lowlevel.checkpoint()
        return give(ctx, name)

    return given


def by_an_awaitable(give: Give) -> Give:
    return lambda ctx, name: Later(lambda: give(ctx, name))


ways = pytest.mark.parametrize(
    "way", [at_once, without_waiting, in_a_while, by_an_awaitable], ids=lambda way: way.__name__
)


class Catalogue:
    """A server that knows its tools by name; what it gives can be changed, and made to fail."""

    def __init__(self, way: Callable[[Give], Give] = at_once, **server: Any) -> None:
        self.schema: dict[str, Any] | None = MARKED
        self.failure: Exception | None = None
        self.asked: list[tuple[RequestContext, str]] = []
        self.lists = 0
        self.called = 0
        hooks: dict[str, Any] = {"on_get_tool": way(self.get), "on_list_tools": self.list, **server}
        self.app = StreamableHTTP(Server("catalogue", on_call_tool=self.call, **hooks), HTTPOptions())
        self.client = ModernClient(self.app)

    def get(self, ctx: RequestContext, name: str) -> Tool | None:
        self.asked.append((ctx, name))
        if self.failure is not None:
            raise self.failure
        return None if self.schema is None else Tool(name=name, input_schema=self.schema)

    def list(self, ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
        self.lists += 1
        return ListToolsResult(tools=[])

    def call(self, ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        self.called += 1
        return CallToolResult(content=[], structured_content=params.arguments)

    async def status(self, headers: Headers | None = None, name: str = "query") -> int:
        """How a call with these headers is answered; whoever is refused has not run."""
        before = self.called
        response = await self.client.call(name, EU, headers=headers)
        if response.status == 200:
            assert response.json["result"]["structuredContent"] == EU
        assert self.called - before == (response.status == 200)
        return response.status


# --- the tool is given ------------------------------------------------------------------------------------


@pytest.mark.requirement("R-HTTP-24")
@ways
async def test_the_tool_that_is_given_is_checked_and_the_list_is_not_read(way: Any) -> None:
    catalogue = Catalogue(way)
    assert [await catalogue.status(headers) for headers in (RIGHT, WRONG, None, RIGHT)] == [200, 400, 400, 200]
    assert catalogue.lists == 0
    refused = await catalogue.client.call("query", EU, headers=WRONG, request_id="q")
    assert (refused.json["error"]["code"], refused.json["id"]) == (-32020, "q")
    assert "Mcp-Param-Region" in refused.json["error"]["message"]


@pytest.mark.requirement("R-HTTP-24")
@ways
async def test_where_no_tool_is_given_there_are_no_marks(way: Any) -> None:
    catalogue = Catalogue(way)
    catalogue.schema = None
    assert [await catalogue.status(headers) for headers in (RIGHT, WRONG, None)] == [200, 200, 200]
    catalogue.schema = PLAIN
    assert [await catalogue.status(headers) for headers in (RIGHT, WRONG, None)] == [200, 200, 200]
    assert catalogue.lists == 0


async def test_without_a_list_it_is_asked_all_the_same() -> None:
    catalogue = Catalogue()
    server = Server("unlisted", on_call_tool=catalogue.call, on_get_tool=catalogue.get)
    client = ModernClient(server.streamable_http_app())
    assert (await client.call("query", EU, headers=RIGHT)).status == 200
    assert (await client.call("query", EU)).status == 400


@ways
async def test_it_is_asked_at_each_call_about_that_call(way: Any) -> None:
    catalogue = Catalogue(way)
    for number, name in enumerate(("query", "other", "query")):
        headers = {**RIGHT, "x-number": str(number)}
        response = await catalogue.client.call(
            name, EU, request_id=number, meta={"a.example/n": number}, headers=headers
        )
        assert response.status == 200
        ctx, asked = catalogue.asked[-1]
        assert len(catalogue.asked) == number + 1
        assert (asked, ctx.method, ctx.request_id) == (name, "tools/call", number)
        assert ctx.protocol_version == "2026-07-28"
        assert ctx.params["arguments"] == EU
        assert ctx.meta["a.example/n"] == number
        assert (ctx.headers or {})["x-number"] == str(number)


@pytest.mark.requirement("R-HTTP-24")
async def test_what_it_gives_counts_at_once() -> None:
    catalogue = Catalogue()
    for schema, wanted in ((MARKED, 400), (PLAIN, 200), (None, 200), (MARKED, 400)):
        catalogue.schema = schema
        assert await catalogue.status() == wanted


@pytest.mark.requirement("R-HTTP-24")
async def test_what_it_gives_may_depend_on_the_caller() -> None:
    def get(ctx: RequestContext, name: str) -> Tool | None:
        tenant = (ctx.headers or {}).get("x-tenant")
        return Tool(name=name, input_schema=MARKED) if tenant == "blue" else None

    catalogue = Catalogue(on_get_tool=get)
    for _ in range(2):
        for tenant, wanted in (("blue", 400), ("green", 200), (None, 200)):
            assert await catalogue.status({"x-tenant": tenant}) == wanted


async def test_only_tool_calls_that_may_run_are_asked_about() -> None:
    catalogue = Catalogue()
    client = catalogue.client
    for method in ("tools/list", "server/discover", "tools/unknown"):
        await client.answer(client.message(1, method))
    assert (await client.call("query", EU, headers={"mcp-name": "other"})).status == 400
    assert (await client.call("query", EU, meta={"progressToken": 1.5})).json["error"]["code"] == -32602
    assert (await client.call("query", [1])).json["error"]["code"] == -32602
    legacy = HandshakeClient(catalogue.app)
    await legacy.initialize()
    assert (await legacy.call("query", EU, headers=WRONG)).status == 200
    assert catalogue.asked == []


@pytest.mark.requirement("R-HTTP-21")
async def test_marks_of_a_given_tool_that_break_the_rules_are_not_checked(caplog: pytest.LogCaptureFixture) -> None:
    catalogue = Catalogue()
    catalogue.schema = {"type": "object", "properties": {"region": {"type": "array", "x-mcp-header": "Region"}}}
    with caplog.at_level(logging.WARNING, logger="mcp_core"):
        assert await catalogue.status(WRONG) == 200
        flush_logs()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("tool query: property 'region': x-mcp-header")


@pytest.mark.requirement("R-HTTP-24")
@pytest.mark.parametrize("kind", [dict, Any])
async def test_params_of_any_type_have_the_name_that_is_asked_about(kind: Any) -> None:
    catalogue = Catalogue()
    called: list[Any] = []

    def call(ctx: RequestContext, params: Any) -> CallToolResult:
        called.append(params["name"])
        return CallToolResult(content=[])

    catalogue.app.server.add_request_handler("tools/call", kind, call)
    assert (await catalogue.client.call("query", EU)).status == 400
    assert (await catalogue.client.call("query", EU, headers=RIGHT)).status == 200
    assert [name for _, name in catalogue.asked] == ["query", "query"]
    assert called == ["query"]


@pytest.mark.requirement("R-HTTP-24")
async def test_middleware_does_not_keep_it_from_being_asked() -> None:
    catalogue = Catalogue()
    methods: list[str] = []

    async def around(ctx: RequestContext, call_next: Any) -> Any:
        methods.append(ctx.method)
        return await call_next(ctx)

    catalogue.app.server.middleware.append(around)
    assert [await catalogue.status(headers) for headers in (RIGHT, WRONG)] == [200, 400]
    assert [name for _, name in catalogue.asked] == ["query", "query"]
    assert methods == ["tools/call"]


@pytest.mark.requirement("R-HTTP-24")
@pytest.mark.requirement("R-HTTP-08")
async def test_looking_the_tool_up_sends_the_client_nothing() -> None:
    async def get(ctx: RequestContext, name: str) -> Tool:
        await ctx.report_progress(1)
        return Tool(name=name, input_schema=MARKED)

    client = Catalogue(on_get_tool=get).client
    refused = await client.call("query", EU, meta={"progressToken": 1})
    assert (refused.status, refused.json["error"]["code"]) == (400, -32020)
    given = await client.call("query", EU, meta={"progressToken": 1}, headers=RIGHT)
    assert given.json["result"]["structuredContent"] == EU


@pytest.mark.requirement("R-HTTP-11")
async def test_a_client_that_goes_while_the_tool_is_looked_up_cancels() -> None:
    started, ended = anyio.Event(), anyio.Event()

    async def get(ctx: RequestContext, name: str) -> Tool | None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return None

    catalogue = Catalogue(on_get_tool=get)
    message = catalogue.client.message(1, "tools/call", {"name": "query", "arguments": EU})
    async with catalogue.client.post(message) as exchange:
        with anyio.fail_after(SECONDS):
            await started.wait()
        exchange.disconnect()
        await exchange.returned()
        assert ended.is_set()
        assert exchange.sent_late == []
    assert catalogue.called == 0


# --- nobody can say ---------------------------------------------------------------------------------------


def check_unknown(response: Response, request_id: Any = 1) -> None:
    """The call is refused because its headers cannot be checked."""
    answer = response.json
    assert (response.status, answer["error"]["code"]) == (500, -32603)
    assert answer.keys() == {"jsonrpc", "id", "error"}
    assert (answer["id"], type(answer["id"])) == (request_id, type(request_id))
    assert "Mcp-Param" in answer["error"]["message"]
    assert b"secret" not in response.body


failures = pytest.mark.parametrize(
    "failure", [RuntimeError("the secret"), InvalidParams("the secret"), KeyError("secret")], ids=repr
)


@pytest.mark.requirement("R-HTTP-24")
@ways
@failures
async def test_headers_that_cannot_be_checked_are_refused(
    way: Any, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    catalogue = Catalogue(way)
    catalogue.failure = failure
    with caplog.at_level(logging.ERROR, logger="mcp_core"):
        for headers in (RIGHT, WRONG, {"mcp-param-other": "x"}, {"mcp-param-region": None, "mcp-param-": ""}):
            check_unknown(await catalogue.client.call("query", EU, headers=headers))
        assert catalogue.called == 0
        # Where there is nothing to check, nothing is lost.
        assert await catalogue.status() == 200
        flush_logs()
    assert [record.getMessage() for record in caplog.records] == [f"on_get_tool raised {type(failure).__name__}"] * 5
    assert all("Traceback" in (record.exc_text or "") for record in caplog.records)
    assert catalogue.lists == 0
    catalogue.failure = None
    assert [await catalogue.status(headers) for headers in (RIGHT, WRONG, None)] == [200, 400, 400]


@pytest.mark.parametrize("request_id", [0, "", "x", -1, 2**70, "é\n"])
async def test_a_call_that_cannot_be_checked_is_answered_by_its_id(request_id: Any) -> None:
    catalogue = Catalogue()
    catalogue.failure = RuntimeError("secret")
    check_unknown(await catalogue.client.call("query", EU, headers=RIGHT, request_id=request_id), request_id)


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream", None])
async def test_a_call_that_cannot_be_checked_is_answered_in_json(accept: str | None) -> None:
    catalogue = Catalogue()
    catalogue.failure = RuntimeError("secret")
    check_unknown(await catalogue.client.call("query", EU, headers={**RIGHT, "accept": accept}))


@pytest.mark.parametrize("tool", [{"name": "query", "inputSchema": MARKED}, "query", True], ids=["dict", "str", "bool"])
async def test_what_is_no_tool_says_nothing_of_headers(tool: Any) -> None:
    def get(ctx: RequestContext, name: str) -> Any:
        return tool

    catalogue = Catalogue(on_get_tool=get)
    check_unknown(await catalogue.client.call("query", EU, headers=RIGHT))
    assert await catalogue.status() == 200


class Listed(Catalogue):
    """The same server, which is asked for its list; `answers` come before the good one, exceptions as they are."""

    def __init__(self, way: Callable[[Give], Give] = at_once) -> None:
        self.answers: list[Any] = []
        self.page_size = 10

        def pages(ctx: RequestContext, params: PaginatedRequestParams) -> Any:
            return way(lambda ctx, cursor: self.page(cursor))(ctx, params.cursor or "")

        super().__init__(on_get_tool=None, on_list_tools=pages, subscriptions=True)

    def page(self, cursor: str) -> Any:
        self.lists += 1
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        return ListToolsResult(tools=[Tool(name="query", input_schema=MARKED)])


FIRST_PAGE = ListToolsResult(tools=[Tool(name="query", input_schema=MARKED)], next_cursor="2")


@pytest.mark.requirement("R-HTTP-24")
@ways
@pytest.mark.parametrize(
    "answers",
    [
        [RuntimeError("the secret")],
        [InvalidParams("the secret")],
        [ErrorData(code=-32000, message="the secret")],
        [FIRST_PAGE, RuntimeError("the secret")],
        [FIRST_PAGE, FIRST_PAGE, InvalidParams("the secret")],
        [object()],
        [{"tools": "secret"}],
    ],
    ids=["raises", "refuses", "returns an error", "second page", "third page", "no result", "another result"],
)
async def test_while_the_list_cannot_be_read_headers_are_refused(way: Any, answers: list[Any]) -> None:
    listed = Listed(way)
    for headers in (RIGHT, WRONG, {"mcp-param-other": "x"}):
        listed.answers = list(answers)
        check_unknown(await listed.client.call("query", EU, headers=headers, request_id="r"), "r")
        assert listed.answers == []
    assert listed.called == 0
    listed.answers = list(answers)
    assert await listed.status() == 200
    assert listed.answers == []
    # The list works again.
    assert [await listed.status(headers) for headers in (RIGHT, WRONG, None, RIGHT)] == [200, 400, 400, 200]


@pytest.mark.parametrize("listed", [b'{"tools":null}', b'{"tools":["secret"]}'], ids=str)
async def test_a_list_of_what_are_no_tools_says_nothing_of_headers(listed: bytes) -> None:
    catalogue = Listed()
    catalogue.answers = [Raw(listed)] * 2  # which is sent as it is, unread
    check_unknown(await catalogue.client.call("query", EU, headers=RIGHT))
    assert await catalogue.status() == 200


@pytest.mark.requirement("R-HTTP-24")
async def test_a_failure_to_read_the_list_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    listed = Listed()
    listed.answers = [RuntimeError("the secret")]
    with caplog.at_level(logging.ERROR, logger="mcp_core"):
        check_unknown(await listed.client.call("query", EU, headers=RIGHT))
        flush_logs()
    (record,) = caplog.records
    assert record.getMessage() == "the handler of tools/list raised RuntimeError"
    assert "the secret" in (record.exc_text or "")


@pytest.mark.requirement("R-HTTP-24")
async def test_a_list_that_fails_after_a_change_is_not_taken_for_the_old_one() -> None:
    listed = Listed()
    assert await listed.status(RIGHT) == 200
    await listed.app.server.publish(ToolsListChanged())
    listed.answers = [RuntimeError("secret")]
    check_unknown(await listed.client.call("query", EU, headers=RIGHT))
    assert await listed.status(WRONG) == 400
    assert await listed.status(RIGHT) == 200
    assert listed.lists == 3


@pytest.mark.requirement("R-HTTP-24")
async def test_where_the_list_is_known_it_is_not_asked_for_again() -> None:
    listed = Listed()
    assert await listed.status(RIGHT) == 200
    listed.answers = [RuntimeError("secret")]
    assert [await listed.status(headers) for headers in (RIGHT, WRONG, None)] == [200, 400, 400]
    assert listed.lists == 1


@pytest.mark.requirement("R-HTTP-11")
async def test_a_client_that_goes_while_the_list_is_read_cancels() -> None:
    started = anyio.Event()
    called: list[str] = []

    async def pages(ctx: RequestContext, params: PaginatedRequestParams) -> ListToolsResult:
        started.set()
        await anyio.sleep_forever()
        return ListToolsResult(tools=[])

    def call(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        called.append(params.name)
        return CallToolResult(content=[])

    client = ModernClient(Server("slow", on_list_tools=pages, on_call_tool=call).streamable_http_app())
    async with client.post(client.message(1, "tools/call", {"name": "query"})) as exchange:
        with anyio.fail_after(SECONDS):
            await started.wait()
        exchange.disconnect()
        await exchange.returned()
        assert exchange.sent_late == []
    assert called == []

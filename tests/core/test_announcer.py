"""Changes announced from code that cannot wait: once each, on a loop that serves, from any thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from mcp_core import Client, Server
from mcp_core import announcer as announcer_module
from mcp_core.announcer import Announcer
from mcp_core.backend import current_backend, open_backend
from mcp_core.client import Mode
from mcp_core.subscriptions import (
    Event,
    InProcessBus,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp_core.testing import flush_logs
from mcp_core.types import EmptyResult, ListToolsResult
from mcp_typed import MCPServer

either_era = pytest.mark.parametrize("mode", ["auto", "legacy"])

TOOLS, PROMPTS, RESOURCES = ToolsListChanged(), PromptsListChanged(), ResourcesListChanged()
LAST = ResourceUpdated("x:last")
"""Announced after the others, so that whoever has it has all of them."""


class Bus(InProcessBus):
    """A bus that keeps what was published, to be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.published: list[Event] = []
        self.threads: set[int] = set()
        self._news = anyio.Event()

    async def publish(self, event: Event) -> None:
        self.published.append(event)
        self.threads.add(threading.get_ident())
        self._news.set()
        await super().publish(event)

    async def until(self, event: Event) -> list[Event]:
        """All events up to this one."""
        with anyio.fail_after(60):
            while event not in self.published:
                self._news = anyio.Event()
                await self._news.wait()
        return self.published


class Broken(Bus):
    """A bus that fails for some events."""

    def __init__(self, *fails: Event) -> None:
        super().__init__()
        self._fails = fails

    async def publish(self, event: Event) -> None:
        if event in self._fails:
            raise ConnectionError("the broker is gone")
        await super().publish(event)


# --- on one loop --------------------------------------------------------------------------------------


async def test_the_same_event_before_it_is_published_is_the_same_announcement() -> None:
    bus = Bus()
    announcer = Announcer(bus)
    async with open_backend() as backend:
        announcer.attach(backend)
        for event in (TOOLS, PROMPTS, TOOLS, ResourceUpdated("x:a"), TOOLS, ResourceUpdated("x:b"), PROMPTS):
            announcer.announce(event)
        assert bus.published == []  # not yet: who announces does not wait
        announcer.announce(ResourceUpdated("x:a"))
        announcer.announce(LAST)
        assert await bus.until(LAST) == [TOOLS, PROMPTS, ResourceUpdated("x:a"), ResourceUpdated("x:b"), LAST]


async def test_after_it_was_published_it_is_another() -> None:
    bus = Bus()
    announcer = Announcer(bus)
    async with open_backend() as backend:
        announcer.attach(backend)
        for count in range(1, 4):
            announcer.announce(TOOLS)
            announcer.announce(ResourceUpdated(f"x:{count}"))
            await bus.until(ResourceUpdated(f"x:{count}"))
            assert bus.published.count(TOOLS) == count


async def test_a_listener_may_announce() -> None:
    bus = Bus()
    announcer = Announcer(bus)
    bus.subscribe(lambda event: announcer.announce(LAST) if event == TOOLS else None)
    async with open_backend() as backend:
        announcer.attach(backend)
        announcer.announce(TOOLS)
        assert await bus.until(LAST) == [TOOLS, LAST]


async def test_threads_announce_on_the_loop() -> None:
    bus = Bus()
    announcer = Announcer(bus)
    async with open_backend() as backend:
        announcer.attach(backend)
        threads = [threading.Thread(target=announcer.announce, args=(TOOLS,)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()  # which keeps the loop from publishing before all have announced
        announcer.announce(LAST)
        assert await bus.until(LAST) == [TOOLS, LAST]
    assert bus.threads == {threading.get_ident()}


async def test_threads_wake_a_loop_that_waits() -> None:
    bus = Bus()
    announcer = Announcer(bus)
    async with open_backend() as backend:
        announcer.attach(backend)
        thread = threading.Timer(0.05, announcer.announce, args=(LAST,))
        thread.start()
        assert await bus.until(LAST) == [LAST]
        thread.join()
    assert bus.threads == {threading.get_ident()}


async def test_with_nobody_attached_there_is_nobody_to_tell() -> None:
    bus = Bus()
    announcer = Announcer(bus)
    announcer.announce(TOOLS)
    async with open_backend() as backend:
        detach = announcer.attach(backend)
        # What was announced before is not made up for, nor in the way of anything.
        announcer.announce(PROMPTS)
        announcer.announce(LAST)
        assert await bus.until(LAST) == [PROMPTS, LAST]
        bus.published.clear()
        detach()
        announcer.announce(TOOLS)
        announcer.attach(backend)
        announcer.announce(LAST)
        assert await bus.until(LAST) == [LAST]


async def test_whoever_is_still_attached_publishes() -> None:
    bus = Bus()
    announcer = Announcer(bus)
    async with open_backend() as outer:
        detach_outer = announcer.attach(outer)
        async with open_backend() as inner:
            detach_inner = announcer.attach(inner)
            announcer.announce(TOOLS)
            await bus.until(TOOLS)
            detach_inner()
        announcer.announce(LAST)
        assert await bus.until(LAST) == [TOOLS, LAST]
        detach_outer()
        announcer.announce(PROMPTS)
    assert bus.published == [TOOLS, LAST]


async def test_a_bus_that_raises_is_logged_and_the_others_are_published(caplog: pytest.LogCaptureFixture) -> None:
    bus = Broken(PROMPTS)
    announcer = Announcer(bus)
    async with open_backend() as backend:
        announcer.attach(backend)
        for event in (TOOLS, PROMPTS, LAST):
            announcer.announce(event)
        assert await bus.until(LAST) == [TOOLS, LAST]
        announcer.announce(PROMPTS)
        announcer.announce(RESOURCES)
        assert await bus.until(RESOURCES) == [TOOLS, LAST, RESOURCES]
    flush_logs()
    records = [record for record in caplog.records if record.name == "mcp_core.announcer"]
    assert [record.getMessage() for record in records] == ["a change could not be announced"] * 2
    assert all("ConnectionError: the broker is gone" in (record.exc_text or "") for record in records)


async def test_a_loop_that_ended_at_the_wrong_moment_silences_nobody() -> None:
    bus = Bus()
    announcer = Announcer(bus)

    def come_and_go() -> None:
        async def backend() -> Any:
            return current_backend()

        loop = asyncio.new_event_loop()
        detach = announcer.attach(loop.run_until_complete(backend()))
        announcer.announce(TOOLS)
        loop.close()  # before it had a turn to publish
        detach()

    thread = threading.Thread(target=come_and_go)
    thread.start()
    thread.join()
    async with open_backend() as backend:
        announcer.attach(backend)
        announcer.announce(TOOLS)
        announcer.announce(LAST)
        assert await bus.until(LAST) == [TOOLS, LAST]


@pytest.mark.parametrize(
    "exc",
    [pytest.param(None, id="hangs"), SystemExit(1), GeneratorExit(), asyncio.CancelledError()],
    ids=repr,
)
async def test_a_bus_that_hangs_or_raises_what_ends_programs_holds_up_nothing(
    exc: BaseException | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if exc is None:
        monkeypatch.setattr(announcer_module, "PUBLISH_SECONDS", 0.01)

    class Failing(Bus):
        async def publish(self, event: Event) -> None:
            if event == TOOLS:
                if exc is None:
                    await anyio.sleep_forever()
                else:
                    raise exc
            await super().publish(event)

    bus = Failing()
    announcer = Announcer(bus)
    async with open_backend() as backend:
        announcer.attach(backend)
        announcer.announce(TOOLS)
        announcer.announce(LAST)
        assert await bus.until(LAST) == [LAST]


# --- clients ----------------------------------------------------------------------------------------------


def nothing(ctx: Any, params: Any) -> Any:
    """A list that nobody reads here: it is only offered."""
    return EmptyResult()


def no_tools(ctx: Any, params: Any) -> ListToolsResult:
    return ListToolsResult(tools=[])


def changing(bus: Any = True) -> Server:
    return Server(
        "changes", subscriptions=bus, on_list_tools=nothing, on_list_prompts=nothing, on_list_resources=nothing
    )


EVENTS: dict[str, Event] = {
    "notifications/tools/list_changed": TOOLS,
    "notifications/prompts/list_changed": PROMPTS,
    "notifications/resources/list_changed": RESOURCES,
}

Until = Callable[[Event], Any]


@asynccontextmanager
async def listening(server: Any, mode: Mode) -> AsyncGenerator[Until, None]:
    """A client that listens; what it gives waits for an event, and gives all that came up to that one."""
    send, receive = anyio.create_memory_object_stream[Event](100)

    def keep(method: str, params: dict[str, Any]) -> None:
        send.send_nowait(EVENTS[method])

    def all_until(next_event: Callable[[], Awaitable[Event]]) -> Until:
        async def until(event: Event) -> list[Event]:
            heard: list[Event] = []
            with anyio.fail_after(60):
                while not heard or heard[-1] != event:
                    heard.append(await next_event())
            return heard

        return until

    with send, receive:
        async with Client(server, mode=mode, message_handler=keep) as client:
            if mode == "legacy":
                yield all_until(receive.receive)
                return
            async with client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as events:
                yield all_until(events.__anext__)


@pytest.mark.requirement("R-TOOL-14")
@either_era
async def test_clients_are_told_once_of_changes_that_come_together(mode: Mode) -> None:
    server = changing()
    async with listening(server, mode) as until:
        for event in (TOOLS, TOOLS, PROMPTS, TOOLS, RESOURCES, PROMPTS):
            server.announce(event)
        assert await until(RESOURCES) == [TOOLS, PROMPTS, RESOURCES]
        server.announce(TOOLS)
        server.announce(TOOLS)
        server.announce(RESOURCES)
        assert await until(RESOURCES) == [TOOLS, RESOURCES]


@either_era
async def test_clients_are_told_of_changes_that_a_thread_announces(mode: Mode) -> None:
    server = changing()
    async with listening(server, mode) as until:
        await anyio.to_thread.run_sync(server.announce, TOOLS)
        assert await until(TOOLS) == [TOOLS]


@either_era
async def test_a_change_that_nobody_was_there_to_hear_is_no_news(mode: Mode) -> None:
    server = changing()
    server.announce(TOOLS)
    async with listening(server, mode) as until:
        server.announce(PROMPTS)
        assert await until(PROMPTS) == [PROMPTS]
    server.announce(TOOLS)
    async with listening(server, mode) as until:
        server.announce(RESOURCES)
        assert await until(RESOURCES) == [RESOURCES]


@either_era
async def test_the_first_client_is_told_when_the_second_has_left(mode: Mode) -> None:
    server = changing()
    async with listening(server, mode) as until:
        async with listening(server, mode) as other:
            server.announce(TOOLS)
            assert await other(TOOLS) == [TOOLS]
        server.announce(PROMPTS)
        assert await until(PROMPTS) == [TOOLS, PROMPTS]


@either_era
async def test_the_first_client_is_told_though_the_second_leaves_meanwhile(mode: Mode) -> None:
    server = changing()
    async with listening(server, mode) as until:
        async with listening(server, mode):
            server.announce(TOOLS)
        assert await until(TOOLS) == [TOOLS]


class Slow(InProcessBus):
    """A bus that takes its time, as one across processes does."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = anyio.Event()
        self.go = anyio.Event()

    async def publish(self, event: Event) -> None:
        self.asked.set()
        await self.go.wait()
        await super().publish(event)


@either_era
async def test_the_first_client_is_told_though_the_second_leaves_while_the_bus_is_slow(mode: Mode) -> None:
    bus = Slow()
    server = changing(bus)
    async with listening(server, mode) as until:
        async with listening(server, mode):
            server.announce(TOOLS)
            with anyio.fail_after(60):
                await bus.asked.wait()
        bus.go.set()
        assert await until(TOOLS) == [TOOLS]


@either_era
async def test_a_bus_that_raises_ends_no_connection(mode: Mode) -> None:
    server = changing(Broken(TOOLS))
    async with listening(server, mode) as until:
        server.announce(TOOLS)
        server.announce(PROMPTS)
        assert await until(PROMPTS) == [PROMPTS]
        server.announce(RESOURCES)
        assert await until(RESOURCES) == [RESOURCES]


@either_era
async def test_a_server_that_tells_of_no_changes_announces_none(mode: Mode) -> None:
    server = Server("still", on_list_tools=no_tools)
    heard: list[str] = []
    async with Client(server, mode=mode, message_handler=lambda method, params: heard.append(method)) as client:
        server.announce(TOOLS)
        await anyio.to_thread.run_sync(server.announce, TOOLS)
        for _ in range(3):
            assert (await client.list_tools()).tools == []
    assert heard == []


@pytest.mark.requirement("R-TOOL-14")
@either_era
async def test_tools_that_are_registered_together_are_one_change(mode: Mode) -> None:
    bus = Bus()
    mcp = MCPServer("growing", subscriptions=bus)
    for number in range(3):  # before anybody is there
        mcp.add_tool(lambda: 1, name=f"early{number}")
    async with listening(mcp, mode) as until:
        for number in range(3):
            mcp.add_tool(lambda: 1, name=f"late{number}")
        mcp.remove_tool("early0")
        assert await until(TOOLS) == [TOOLS]
        assert bus.published == [TOOLS]
        mcp.remove_tool("early1")
        assert await until(TOOLS) == [TOOLS]
    assert bus.published == [TOOLS, TOOLS]


@either_era
async def test_a_plain_tool_may_register_others_from_its_thread(mode: Mode) -> None:
    mcp = MCPServer("growing")

    @mcp.tool()
    def grow(name: str) -> str:
        mcp.add_tool(lambda: "grown", name=name)
        return name

    async with listening(mcp, mode) as until, Client(mcp, mode=mode) as client:
        await client.call_tool("grow", {"name": "new"})
        assert await until(TOOLS) == [TOOLS]
        assert [tool.name for tool in (await client.list_tools()).tools] == ["grow", "new"]

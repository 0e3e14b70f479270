"""Log records: one line each, whatever a peer writes, and bounded."""

# pyright: reportPrivateUsage=false
# What waits is to be counted, and is nobody's business otherwise.

from __future__ import annotations

import logging
from typing import Any

import pytest

from mcp_core import queue_logger
from mcp_core.queue_logger import DEPTH, MAX_ARGUMENT, MAX_TRACEBACK, QueueLogger
from mcp_core.testing import RawPeer, flush_logs
from tests.core.peers import echo_server, notification

log = QueueLogger("mcp_core.test_log_records")
HOSTILE = "x\n2026-12-01 CRITICAL root: forged\r\x1b[2J\x00\x07\x7f\x85\x9b\u2028\u2029\ttab"
CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)]


def message_of(caplog: pytest.LogCaptureFixture) -> str:
    flush_logs()
    return caplog.records[-1].getMessage()


@pytest.mark.fault("S-23")
@pytest.mark.parametrize("argument", [HOSTILE, HOSTILE.encode(), [HOSTILE], {HOSTILE: 1}, ValueError(HOSTILE)])
def test_what_a_peer_writes_stays_on_one_line(argument: Any, caplog: pytest.LogCaptureFixture) -> None:
    log.warning("a %s of the peer", argument)
    told = message_of(caplog)
    assert not any(control in told for control in CONTROLS)
    assert "forged" in told


@pytest.mark.fault("S-23")
def test_each_control_character_is_shown_as_an_escape(caplog: pytest.LogCaptureFixture) -> None:
    log.warning("%s", "".join(CONTROLS))
    told = message_of(caplog)
    assert told.startswith("\\x00\\x01")
    for shown in ("\\n", "\\r", "\\t", "\\x1b", "\\x7f", "\\x9b", "\\u2028"):
        assert shown in told


@pytest.mark.fault("S-23")
def test_a_long_text_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    log.warning("%s", "y" * 5_000_000)
    told = message_of(caplog)
    assert told == "y" * MAX_ARGUMENT + "... (5000000 characters)"


@pytest.mark.fault("S-23")
def test_numbers_stay_numbers(caplog: pytest.LogCaptureFixture) -> None:
    log.warning("%d %.1f %s %r", 5, 1.25, True, None)
    assert message_of(caplog) == "5 1.2 True 'None'"


class Unshown(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


@pytest.mark.fault("S-23")
def test_what_cannot_be_shown_is_said_to_be_so(caplog: pytest.LogCaptureFixture) -> None:
    log.error("%s went wrong", Unshown(), exc=Unshown())
    assert message_of(caplog) == "a Unshown, which cannot be shown went wrong"
    assert "Unshown" in str(caplog.records[-1].exc_text)


@pytest.mark.fault("S-23")
def test_no_line_of_a_traceback_looks_like_a_record(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError(HOSTILE)
    except ValueError as exc:
        log.error("failed", exc=exc)
    flush_logs()
    shown = str(caplog.records[-1].exc_text)
    first, *rest = shown.split("\n")
    assert first == "Traceback (most recent call last):"
    *frames, last = [text for text in rest if "forged" not in text]
    assert all(text.startswith("  ") for text in frames)
    assert last.startswith(("ValueError: ", " "))
    assert all(text.startswith("    ") for text in rest if "forged" in text)
    assert not any(control in shown for control in CONTROLS if control not in "\t\n")
    assert any("forged" in text for text in rest)


@pytest.mark.fault("S-23")
def test_a_long_traceback_is_cut_from_its_beginning(caplog: pytest.LogCaptureFixture) -> None:
    log.error("failed", exc=ValueError("y" * 1_000_000 + "the end"))
    flush_logs()
    shown = str(caplog.records[-1].exc_text)
    assert len(shown) < MAX_TRACEBACK + 1000
    assert shown.endswith("the end")


@pytest.mark.fault("S-23")
async def test_messages_of_a_peer_do_not_forge_records(caplog: pytest.LogCaptureFixture) -> None:
    server = echo_server()

    async def fails(ctx: Any, call_next: Any) -> Any:
        raise ValueError(HOSTILE)

    server.middleware.append(fails)
    async with RawPeer.of(server) as peer:
        peer.send(notification(HOSTILE))
        peer.send({"jsonrpc": "2.0", "error": {"code": 1, "message": HOSTILE}})
        await peer.modern(HOSTILE, "tools/call", {"name": HOSTILE})
    flush_logs()
    assert len(caplog.records) >= 3
    for record in caplog.records:
        assert not any(control in record.getMessage() for control in CONTROLS)


def test_so_many_records_wait_for_a_slow_handler(caplog: pytest.LogCaptureFixture) -> None:
    class Stuck(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            with queue_logger._news:  # the writer waits here, as in a handler that blocks
                return

    logger = logging.getLogger("mcp_core.test_log_records")
    stuck = Stuck()
    logger.addHandler(stuck)
    try:
        with queue_logger._news:
            for n in range(3 * DEPTH):
                log.warning("%d", n)
            assert len(queue_logger._records) <= DEPTH
        flush_logs()
    finally:
        logger.removeHandler(stuck)
    assert len(caplog.records) <= DEPTH + 100

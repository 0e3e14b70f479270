"""However a byte stream is cut, it holds the same messages."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from mcp_core.transports.lines import HEAD, LineSplitter
from tests.property.strategies import fast, messages

pieces = st.one_of(messages, st.binary(max_size=30), st.sampled_from([b"\n", b"\r\n", b"\n\n", b" ", b"\t\n", b"\r"]))
streams = st.lists(pieces, max_size=12).map(b"".join)
cuts = st.lists(st.floats(0, 1), max_size=12)


def split(stream: bytes, places: list[float], limit: int) -> tuple[list[bytes], list[bytes]]:
    """The lines and the refused heads of a stream that comes in these pieces."""
    at = sorted({int(place * len(stream)) for place in places} | {0, len(stream)})
    splitter = LineSplitter(limit)
    lines: list[bytes] = []
    refused: list[bytes] = []
    for start, end in pairwise(at):
        more_lines, more_refused = splitter.feed(stream[start:end])
        lines += more_lines
        refused += more_refused
    more_lines, more_refused = splitter.end()
    return lines + more_lines, refused + more_refused


def wanted(stream: bytes, limit: int) -> tuple[list[bytes], list[bytes]]:
    """The same, said as simply as it can be."""
    every = stream.split(b"\n")
    lines = [part for part in every if len(part) <= limit and part.strip()]
    return lines, [part[:HEAD] for part in every if len(part) > limit]


@fast
@given(streams, cuts)
@example(b"a\nb", [0.4, 0.7])
def test_any_split_gives_the_same_lines(stream: bytes, places: list[float]) -> None:
    assert split(stream, places, 1 << 20) == wanted(stream, 1 << 20)


@fast
@given(streams, cuts, st.integers(0, 40))
@example(b"abcdef\ngh\n", [0.0, 0.2, 0.4], 3)
def test_the_limit_refuses_the_same_lines(stream: bytes, places: list[float], limit: int) -> None:
    lines, refused = split(stream, places, limit)
    right, heads = wanted(stream, limit)
    assert lines == right
    assert len(refused) == len(heads)


@fast
@given(streams, cuts, st.integers(0, 40))
@example(b'{"jsonrpc":"2.0","id":5}\n', [0.0, 0.3, 0.5], 6)
def test_the_head_of_a_refused_line_is_the_same(stream: bytes, places: list[float], limit: int) -> None:
    # Or whether the sender is told which request failed would be a matter of chance.
    assert split(stream, places, limit)[1] == wanted(stream, limit)[1]


@fast
@given(st.integers(0, 3 * HEAD), st.lists(st.integers(0, 3 * HEAD), max_size=5), st.integers(0, 2 * HEAD))
def test_long_lines_are_cut_at_the_same_place(size: int, places: list[int], limit: int) -> None:
    stream = bytes(33 + i % 90 for i in range(size)) + b"\n{}\n"
    lines, refused = split(stream, [place / len(stream) for place in places if place < len(stream)], limit)
    right, heads = wanted(stream, limit)
    assert lines == right
    assert refused == heads

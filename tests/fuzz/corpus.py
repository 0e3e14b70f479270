"""Input that is expensive for a careless reader: shapes of any size, each malformed or odd in one way.

`SHAPES` maps a name to a function that makes about `n` bytes; a reader that is linear takes
four times as long for four times as many. `tests/core/test_cost.py` holds the core to that,
and the fuzzers mix smaller ones in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

__all__ = ["BATCHES", "SHAPES", "TEXTS", "Shape"]

Shape: TypeAlias = Callable[[int], bytes]
"""Makes about so many bytes."""

META: Final = (
    b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
)
CALL: Final = (
    b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","_meta":' + META + b',"arguments":{"a":'
)
END: Final = b"}}}"


def _many(piece: bytes, size: int) -> bytes:
    return piece * (size // len(piece) + 1)


def _numbered(piece: bytes, size: int) -> bytes:
    """A piece with `%d` in it, again and again with another number, and commas between."""
    return b",".join(piece % number for number in range(size // (len(piece) + 4) + 1))


def _argument(value: Shape) -> Shape:
    """A call of a tool with this as its argument."""
    return lambda size: CALL + value(size) + END


def _cut(value: Shape) -> Shape:
    """The same without an end."""
    return lambda size: CALL + value(size)


TEXTS: Final[dict[str, Shape]] = {
    "unterminated string": lambda n: b'"' + b"a" * n,
    "unterminated string of escaped quotes": lambda n: b'"' + _many(b'\\"', n),
    "unterminated string of backslashes": lambda n: b'"' + _many(b"\\\\", n),
    "string of escaped quotes": lambda n: b'"' + _many(b'\\"', n) + b'"',
    "string of backslashes": lambda n: b'"' + _many(b"\\\\", n) + b'"',
    "string of \\u escapes": lambda n: b'"' + _many(b"\\u00e9", n) + b'"',
    "string of surrogate pairs": lambda n: b'"' + _many(b"\\ud83d\\ude00", n) + b'"',
    "string of lone surrogates": lambda n: b'"' + _many(b"\\ud800", n) + b'"',
    "string of swapped surrogates": lambda n: b'"' + _many(b"\\ude00\\ud83d", n) + b'"',
    "string of half escapes": lambda n: b'"' + _many(b"\\ud83d\\u", n) + b'"',
    "string of NULs": lambda n: b'"' + b"\0" * n + b'"',
    "string of line breaks": lambda n: b'"' + _many(b"\r\n", n) + b'"',
    "string of broken UTF-8": lambda n: b'"' + b"\xff" * n + b'"',
    "string of cut UTF-8": lambda n: b'"' + _many(b"\xf0\x9f\x98", n) + b'"',
    "string of long UTF-8": lambda n: b'"' + _many("\U0001f600".encode(), n) + b'"',
    "open arrays": lambda n: b"[" * n,
    "open objects": lambda n: _many(b'{"a":', n),
    "closing brackets": lambda n: b"]" * n,
    "deep arrays": lambda n: b"[" * (n // 2) + b"]" * (n // 2),
    "deep objects": lambda n: _many(b'{"a":', n) + b"1" + b"}" * (n // 5 + 1),
    "digits": lambda n: b"1" * n,
    "negative digits": lambda n: b"-" + b"9" * n,
    "decimals": lambda n: b"0." + b"1" * n,
    "exponent of many digits": lambda n: b"1e" + b"9" * n,
    "many exponents": lambda n: b"[" + _numbered(b"1e%d", n) + b"]",
    # Not every reader of floats is quick with what is nearly too large.
    "large floats": lambda n: b"[" + _many(b"1e308,", n) + b"1]",
    "many keys": lambda n: b"{" + _numbered(b'"k%d":1', n) + b"}",
    "one key again and again": lambda n: b"{" + _many(b'"k":1,', n) + b'"k":1}',
    "one id again and again": lambda n: b"{" + _many(b'"id":1,', n) + b'"id":1}',
    "keys with escapes": lambda n: b"{" + _numbered(b'"\\u006b%d":1', n) + b"}",
    "keys of lone surrogates": lambda n: b"{" + _numbered(b'"\\ud800%d":1', n) + b"}",
    "array of junk": lambda n: b"[" + _many(b"1,null,", n) + b"{}]",
    "array of ids": lambda n: b"[" + _many(b'{"id":1},', n) + b"{}]",
    "empty objects": lambda n: b"[" + _many(b"{},", n) + b"{}]",
    "empty strings": lambda n: b"[" + _many(b'"",', n) + b'""]',
    "spaces": lambda n: b" " * n + b"1",
    "all kinds of white space": lambda n: _many(b" \t\r\n", n) + b"1",
    "commas": lambda n: b"[" + b"," * n + b"]",
    "colons": lambda n: b"{" + b":" * n + b"}",
    "quotes": lambda n: b'"' * n,
    "byte order marks": lambda n: _many(b"\xef\xbb\xbf", n),
    "NULs": lambda n: b"\0" * n,
    "letters": lambda n: b"n" * n,
    "slashes": lambda n: b"/" * n,
}
"""JSON texts, or what looks like one, by what they are made of."""


def _enveloped(name: str, value: Shape) -> dict[str, Shape]:
    return {
        f"{name}, alone": value,
        f"{name}, as an argument": _argument(value),
        f"{name}, as an argument without an end": _cut(value),
    }


def _envelope(text: bytes, value: Shape) -> Shape:
    """A message with this in the place of `@`."""
    before, _, after = text.partition(b"@")
    return lambda size: before + value(size) + after


_ENVELOPES: Final = {
    "as the id": b'{"jsonrpc":"2.0","id":@,"method":"ping"}',
    "as the method": b'{"jsonrpc":"2.0","id":7,"method":@}',
    "as the version": b'{"jsonrpc":@,"id":7,"method":"ping"}',
    "as the params": b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":@}',
    "as the result": b'{"jsonrpc":"2.0","id":7,"result":@}',
    "as the error": b'{"jsonrpc":"2.0","id":7,"error":@}',
    "as an unknown member before the id": b'{"x":@,"jsonrpc":"2.0","id":7,"method":"ping"}',
    "as an unknown member after the id": b'{"jsonrpc":"2.0","id":7,"x":@,"method":"ping"',
    "as _meta": b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":@}}',
    "before a message": b'@{"jsonrpc":"2.0","id":7,"method":"ping"}',
    "after a message": b'{"jsonrpc":"2.0","id":7,"method":"ping"}@',
}

SHAPES: Final[dict[str, Shape]] = {
    **{name: shape for text, value in TEXTS.items() for name, shape in _enveloped(text, value).items()},
    **{
        f"{text}, {place}": _envelope(message, value)
        for text, value in TEXTS.items()
        for place, message in _ENVELOPES.items()
    },
}
"""Every text, alone and in each place of a message."""

BATCHES: Final[dict[str, Shape]] = {
    "pings": lambda n: b"[" + _numbered(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}', n) + b"]",
    "notifications": lambda n: b"[" + _many(b'{"jsonrpc":"2.0","method":"x"},', n) + b'{"jsonrpc":"2.0","method":"x"}]',
    "answers": lambda n: b"[" + _numbered(b'{"jsonrpc":"2.0","id":%d,"result":{}}', n) + b"]",
    "numbers": lambda n: b"[" + _many(b"1,", n) + b"1]",
    "objects": lambda n: b"[" + _many(b"{},", n) + b"{}]",
    "arrays": lambda n: b"[" + _many(b"[],", n) + b"[]]",
    "strings": lambda n: b"[" + _many(b'"",', n) + b'""]',
    "calls of nothing": lambda n: b"[" + _numbered(b'{"jsonrpc":"2.0","id":%d,"method":"%%s"}', n) + b"]",
    "cancellations": lambda n: (
        b"[" + _many(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}},', n) + b"1]"
    ),
}
"""Arrays of messages, which 2025-03-26 answers one by one."""

"""Headers that repeat what a 2026-07-28 body says, for proxies that do not read it.

Checks that they say the same. Knows headers and parameters; nothing of responses.
Spec: basic/transports/streamable-http, "Standard Request Headers", "Server Validation";
R-HTTP-13 to R-HTTP-25, R-HS-15 to R-HS-25.
"""

from __future__ import annotations

import base64
import binascii
import decimal
import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Raw

from mcp_core import codec
from mcp_core.errors import HeaderMismatch, UnsupportedProtocolVersion
from mcp_core.messages import Notification, Request
from mcp_core.methods import METHODS
from mcp_core.parameter_headers import argument_at
from mcp_core.revisions import newest_first
from mcp_core.transports.streamable_http.parsed_headers import METHOD, NAME, VERSION, ParsedHeaders

__all__ = ["PARAMETER", "check_notification", "check_parameters", "check_routing", "cut", "name_in"]

PARAMETER: Final = b"mcp-param-"


class _Named(msgspec.Struct):
    name: Raw = Raw(b"null")
    uri: Raw = Raw(b"null")
    arguments: Raw = Raw(b"null")


_named: codec.Decoder[_Named] = codec.decoder(_Named)


def check_routing(head: ParsedHeaders, request: Request, version: str) -> None:
    """
    Raises:
        HeaderMismatch: A standard header is missing, sent twice, or says something else
            than the body.
    """
    fields = head.fields
    if head.repeated:
        for name in (VERSION, METHOD, NAME):
            if name in head.repeated:
                raise HeaderMismatch(f"{_title(name)} may be sent once")
    stated = fields.get(VERSION)
    if stated is None:
        raise HeaderMismatch(f"{_title(VERSION)} is missing; _meta says {cut(version)}")
    if stated.decode("latin-1").strip(" \t") != version:
        raise HeaderMismatch(f"{_title(VERSION)} does not match the protocol version in _meta, {cut(version)}")
    method = fields.get(METHOD)
    if method is None or method.decode("latin-1").strip(" \t") != request.method:
        raise HeaderMismatch(f"{_title(METHOD)} {_fault(method)}; the body's method is {cut(request.method)!r}")
    row = METHODS.get(request.method)
    member = None if row is None else row.name_field
    if member is not None:
        _check_name(fields.get(NAME), request, member)


def check_notification(head: ParsedHeaders, notification: Notification, claimed: object, served: Sequence[str]) -> None:
    """
    Raises:
        HeaderMismatch: A standard header is sent twice, or says something else than the body.
        UnsupportedProtocolVersion: The revision that it is of is not served.
    """
    for name in (VERSION, METHOD):
        if name in head.repeated:
            raise HeaderMismatch(f"{_title(name)} may be sent once")
    stated = head.text(VERSION)
    if claimed is not None and stated is not None and stated != claimed:
        raise HeaderMismatch(f"{_title(VERSION)} does not match the protocol version in _meta")
    version = stated if claimed is None else claimed
    if version is not None and version not in served:
        raise UnsupportedProtocolVersion(cut(str(version)), newest_first(tuple(served)))
    method = head.text(METHOD)
    if method is not None and method != notification.method:
        raise HeaderMismatch(f"{_title(METHOD)} does not match; the body's method is {cut(notification.method)!r}")


def cut(text: str) -> str:
    """Return a text of a client's, as long as a message of ours may repeat it."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


_MOST_SHOWN: Final = 200


def _check_name(value: bytes | None, request: Request, member: str) -> None:
    named = name_in(request.params, member)
    if named is None:
        return  # what is wrong with the params, their handler's decoder says
    if value is None or _decoded(NAME, value) != named:
        raise HeaderMismatch(f"{_title(NAME)} {_fault(value)}; the body's {member!r} is {cut(named)!r}")


def name_in(params: Raw, member: str) -> str | None:
    """Return what the params have in the member that `Mcp-Name` repeats; `None` if that is not text."""
    try:
        named = codec.decode_any(getattr(_named(params), member))
    except (codec.ValidationError, codec.DecodeError):
        return None
    return named if isinstance(named, str) else None


def check_parameters(head: ParsedHeaders, params: Raw, parameters: Mapping[tuple[str, ...], str]) -> None:
    """
    Raises:
        HeaderMismatch: The header of a parameters parameter is missing, malformed, or says
            something else than the arguments.
    """
    try:
        arguments: object = codec.decode_any(_named(params).arguments)
    except (codec.ValidationError, codec.DecodeError):
        return
    for path, name in parameters.items():
        field = PARAMETER + name.lower().encode()
        value = head.fields.get(field)
        given = argument_at(arguments, path)
        shown = f"Mcp-Param-{name}"
        what = ".".join(path)
        if given is None:
            if value is not None:
                raise HeaderMismatch(f"{shown} is sent, but the body has no {what!r} argument")
            continue
        if value is None:
            raise HeaderMismatch(f"{shown} header is missing but the body's {what!r} argument is present")
        if field in head.repeated or not _agrees(_decoded(field, value), given):
            raise HeaderMismatch(f"{shown} header does not match the body's {what!r} argument")


def _agrees(text: str, given: object) -> bool:
    """Return whether a header says exactly what the argument is."""
    if isinstance(given, bool):
        return text == ("true" if given else "false")
    if isinstance(given, int | float):
        return _NUMBER.fullmatch(text) is not None and len(text) <= _MOST_DIGITS and _is_number(text, given)
    return text == given


def _is_number(text: str, given: int | float) -> bool:
    """Return whether a decimal number is this one. As floats, integers beyond 2**53 would be their neighbours too."""
    if isinstance(given, float) and not given.is_integer():
        return math.isfinite(given) and float(text) == given
    if isinstance(given, int) and given.bit_length() > _MOST_BITS:
        return False
    # Decimals of any exponent are compared without being written out.
    try:
        return decimal.Decimal(text) == decimal.Decimal(given)
    except decimal.DecimalException:
        return False


_MOST_DIGITS: Final = 1024
_MOST_BITS: Final = 4096
"""Numbers beyond have no use in a header, and take work to compare."""

_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_BEGIN: Final = b"=?base64?"
_END: Final = b"?="


# The other direction is `http_client.headers`: neither side needs the other's half, nor the extra that it comes with.
def _decoded(name: bytes, value: bytes) -> str:
    """Return a value as it was before it was made fit for a header (R-HTTP-18, R-HTTP-19)."""
    value = value.strip(b" \t")
    if value.startswith(_BEGIN) and value.endswith(_END):
        try:
            return base64.b64decode(value[len(_BEGIN) : -len(_END)], validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise HeaderMismatch(f"{_title(name)} is no Base64 of UTF-8 between =?base64? and ?=") from None
    if any(byte != 9 and not 32 <= byte <= 126 for byte in value):
        raise HeaderMismatch(f"{_title(name)} has characters that must be sent as =?base64?...?=")
    return value.decode("ascii")


def _fault(value: bytes | None) -> str:
    return "is missing" if value is None else "does not match"


def _title(name: bytes) -> str:
    return "-".join(part.decode().capitalize() for part in name.split(b"-"))

"""Sealing `requestState`: what a server gives out and gets back from anybody.

A sealed state is signed (HMAC-SHA256), expires, and belongs to one request: its
method, its params and its principal. It is not encrypted: a client can read it, and
it may be used again until it expires.
Spec: basic/patterns/mrtr, "Server Requirements"; R-MRTR-05, R-MRTR-06.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from mcp_core import codec
from mcp_core.context import RequestContext
from mcp_core.errors import InvalidParams

__all__ = ["SHARED_KEY", "RequestStateSealer", "keep_shared_key", "share_key", "take_shared_key"]

_ROUND: Final = ("_meta", "inputResponses", "requestState")
"""Params that differ from round to round; all others must be the same."""


SHARED_KEY: Final = "MCPCORE_STATE_KEY"
"""The environment variable by which worker processes have one key in common, as hexadecimal digits."""


_shared: list[bytes] = []


def take_shared_key() -> bytes | None:
    """The key in the environment, taken out of it: programs that a tool starts would inherit it.

    Raises:
        ValueError: It is no key.
    """
    shared = os.environ.get(SHARED_KEY)
    if not shared:
        return None
    key = _read_key(shared)
    del os.environ[SHARED_KEY]
    return key


def share_key(key: bytes) -> None:
    """Have all sealers without keys of their own use this one, those that were made before as well."""
    _shared[:] = [key]


def keep_shared_key() -> None:
    """Take the common key out of the environment, and go on to use it."""
    key = take_shared_key()
    if key is not None:
        share_key(key)


def _read_key(shared: str) -> bytes:
    try:
        key = bytes.fromhex(shared)
    except ValueError:
        key = b""
    if len(key) < 32:
        raise ValueError(f"{SHARED_KEY} must be at least 64 hexadecimal digits; got {len(shared)} characters")
    return key


def _common_key() -> bytes | None:
    """The key that all processes of one `run` have, if this is one of them, or that the environment names."""
    if _shared:
        return _shared[0]
    named = os.environ.get(SHARED_KEY)
    return _read_key(named) if named else None


class _Sealed(msgspec.Struct, array_like=True):
    expires: float
    binding: str
    value: Any


_sealed: codec.Decoder[_Sealed] = codec.decoder(_Sealed)


class RequestStateSealer:
    """Seals and opens request states under a ring of keys.

    The first key seals, every key opens: to change keys, put the new one first and drop
    the old one after `ttl` seconds. Without keys a random one is made, which holds as
    long as the process, or is that of all workers of one `run`. `clock` gives seconds since the epoch.
    """

    def __init__(
        self, keys: Sequence[bytes] = (), *, ttl: float = 600.0, clock: Callable[[], float] = time.time
    ) -> None:
        if any(len(key) < 32 for key in keys):
            raise ValueError("each key needs at least 32 bytes, as secrets.token_bytes(32) gives them")
        self._given = tuple(keys)
        self._random = b"" if keys else secrets.token_bytes(32)
        _common_key()  # one that is none is to be told of now
        self._ttl = ttl
        self._clock = clock

    @property
    def _keys(self) -> tuple[bytes, ...]:
        # Not when it is made: a worker process makes its server before it is given the common key.
        return self._given or (_common_key() or self._random,)

    def seal(self, ctx: RequestContext[Any], value: Any, *, principal: str = "") -> str:
        """The state to give out for this request; `value` is any JSON value.

        `principal` is whom the request was authorised as.
        """
        payload = codec.encode(_Sealed(self._clock() + self._ttl, _binding(ctx, principal), value))
        return _text(_mac(self._keys[0], payload) + payload)

    def open(self, ctx: RequestContext[Any], state: str, *, principal: str = "") -> Any:
        """The value in a state that came back with this request.

        Raises:
            InvalidParams: It was not sealed here, has expired, or belongs to another
                request or principal. The text does not say which.
        """
        try:
            data = a2b_base64(state.encode("ascii").translate(_FROM_URL) + b"==")
            mac, payload = data[:32], data[32:]
            genuine = any(hmac.compare_digest(mac, _mac(key, payload)) for key in self._keys)
            sealed = _sealed(payload) if genuine else None
        except (UnicodeEncodeError, Base64Error, codec.Misfit, codec.Undecodable):
            sealed = None
        if (
            sealed is None
            or sealed.expires < self._clock()
            or not hmac.compare_digest(sealed.binding, _binding(ctx, principal))
        ):
            raise InvalidParams("Invalid or expired requestState", {"reason": "invalid_request_state"})
        return sealed.value


_TO_URL: Final = bytes.maketrans(b"+/", b"-_")
_FROM_URL: Final = bytes.maketrans(b"-_", b"+/")


def _text(data: bytes) -> str:
    return b2a_base64(data, newline=False).translate(_TO_URL).rstrip(b"=").decode("ascii")


def _mac(key: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, b"mcp requestState v1\0" + payload, "sha256")


def _binding(ctx: RequestContext[Any], principal: str) -> str:
    """A digest of what makes the request this request, whatever the order of its members."""
    params = {key: value for key, value in ctx.params.items() if key not in _ROUND}
    return hashlib.sha256(codec.canonical([ctx.method, principal, params])).hexdigest()

"""Signed `requestState`: what a server hands to a client, and may get back from anyone.

A state is signed with HMAC-SHA256, expires, and belongs to one request: its method, its
params, its principal and the server that signed it. It is not encrypted: a client can
read it, and may use it again until it expires. It has one spelling, so that a server can
remember the texts it has seen.
Spec: basic/patterns/mrtr, "Server Requirements"; R-MRTR-05, R-MRTR-06.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
import secrets
import time
import warnings
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mcp_core import codec
from mcp_core.auth import Principal, principal_of
from mcp_core.context import AnyContext, MCPDeprecationWarning
from mcp_core.errors import InvalidParams

__all__ = ["SHARED_KEY", "RequestStateSigner", "keep_shared_key", "share_key", "take_shared_key"]

_ROUND: Final = ("_meta", "inputResponses", "requestState")
"""Params that differ from round to round; all others must be the same."""


SHARED_KEY: Final = "MCPCORE_STATE_KEY"
"""The environment variable by which worker processes have one key in common, as hexadecimal digits."""


_shared: list[bytes] = []


def take_shared_key() -> bytes | None:
    """Return the key in the environment, taken out of it: programs that a tool starts would inherit it.

    Raises:
        ValueError: It is not a key.
    """
    shared = os.environ.get(SHARED_KEY)
    if not shared:
        return None
    key = _read_key(shared)
    del os.environ[SHARED_KEY]
    return key


def share_key(key: bytes) -> None:
    """Have all signers without keys of their own use this one, those that were made before as well."""
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
    """Return the key that all processes of one `run` have, if this is one of them, or that the environment names."""
    if _shared:
        return _shared[0]
    named = os.environ.get(SHARED_KEY)
    return _read_key(named) if named else None


class _SignedState(msgspec.Struct, array_like=True):
    expires: float
    binding: str
    value: Any


_decode_signed: codec.Decoder[_SignedState] = codec.decoder(_SignedState)


MAX_STATE: Final = 2**20
"""Characters of a signed state."""

_KEY_SIZE: Final = 32
_MAC_SIZE: Final = 32
_CLOCK_SKEW: Final = 60.0
"""Seconds by which the clocks of two servers, or of one before and after it is set, may differ."""


class RequestStateSigner:
    """Signs and verifies request states with a ring of keys.

    The first key signs, every key verifies: to rotate keys, put the new one first and drop
    the old one after `ttl` seconds. Without keys a random one is made, which lasts as long as
    the process, or is shared by all workers of one `run`. `clock` returns seconds since the epoch.

    A state is valid for the server that signed it: its name, and `audience` (any text, such as the
    server's URL) where servers of one name share keys. States longer than `max_size` characters
    are neither made nor read.
    """

    def __init__(
        self,
        keys: Sequence[bytes] = (),
        *,
        ttl: float = 600.0,
        clock: Callable[[], float] = time.time,
        audience: str = "",
        max_size: int = MAX_STATE,
    ) -> None:
        """
        Raises:
            ValueError: An option is of no use; the text names it.
        """
        self._given = _checked_keys(keys)
        self._random = b"" if self._given else secrets.token_bytes(32)
        _common_key()  # one that cannot be used is an error now
        _check_options(ttl, audience, max_size)
        self._ttl = ttl
        self._clock = clock
        self._audience = audience
        self._max_size = max_size

    @property
    def _keys(self) -> tuple[bytes, ...]:
        # Not when it is made: a worker process makes its server before it is given the common key.
        return self._given or (_common_key() or self._random,)

    def sign(self, ctx: AnyContext, value: object, *, principal: str | None = None) -> str:
        """Return the state to give out for this request; `value` is any JSON value.

        `principal` is whom the request was authorised as: by default the client and the
        subject of its access token, where there is one.

        Raises:
            ValueError: The state would be longer than `max_size`.
        """
        payload = codec.encode(_SignedState(self._clock() + self._ttl, self._binding(ctx, principal), value))
        state = _text(_mac(self._keys[0], payload) + payload)
        if len(state) > self._max_size:
            raise ValueError(f"the state takes {len(state)} characters, more than max_size={self._max_size}")
        return state

    def verify(self, ctx: AnyContext, state: str, *, principal: str | None = None) -> object:
        """Return the value in a state that came back with this request.

        Raises:
            InvalidParams: It was not signed here, has expired, or belongs to another
                request, principal or server. The text does not say which.
        """
        signed = self._genuine(state)
        if (
            signed is None
            # A clock that is set back must not make a state live longer.
            or not 0 <= signed.expires - self._clock() <= self._ttl + _CLOCK_SKEW
            or not hmac.compare_digest(signed.binding, self._binding(ctx, principal))
        ):
            raise InvalidParams("Invalid or expired requestState", {"reason": "invalid_request_state"})
        return signed.value

    def _genuine(self, state: object) -> _SignedState | None:
        """Return what is in a state that one of the keys has signed."""
        if not isinstance(state, str) or not state.isascii() or len(state) > self._max_size:
            return None
        try:
            data = a2b_base64(state.encode("ascii").translate(_FROM_URL) + b"==")
        except Base64Error:
            return None
        # Base64 is read leniently: only the text that is written is the state.
        if _text(data) != state:
            return None
        mac, payload = data[:_MAC_SIZE], data[_MAC_SIZE:]
        if not any(hmac.compare_digest(mac, _mac(key, payload)) for key in self._keys):
            return None
        try:
            return _decode_signed(payload)
        except (codec.ValidationError, codec.DecodeError):  # signed with this key for another purpose
            return None

    def _binding(self, ctx: AnyContext, principal: str | None) -> str:
        """Return a digest of what makes the request this request, whatever the order of its members."""
        try:
            given = ctx.params
        except (codec.ValidationError, codec.DecodeError) as exc:  # a number out of range, say
            raise InvalidParams(f"Invalid params: {exc}") from None
        params = {key: value for key, value in given.items() if key not in _ROUND}
        whom = _principal(ctx) if principal is None else principal
        return hashlib.sha256(codec.canonical([ctx.method, whom, _server(ctx), self._audience, params])).hexdigest()


def _checked_keys(keys: Any) -> tuple[bytes, ...]:
    """
    Raises:
        ValueError: They are no sequence of keys that are long enough.
    """
    if isinstance(keys, bytes | bytearray | str):
        raise ValueError("keys must be a sequence of keys; got a single one: put it into a list")
    ring: tuple[Any, ...] = tuple(keys)
    for key in ring:
        if not isinstance(key, bytes):
            raise ValueError(f"keys must be bytes, as secrets.token_bytes(32) gives them; got a {type(key).__name__}")
        if len(key) < _KEY_SIZE:
            raise ValueError("each key needs at least 32 bytes, as secrets.token_bytes(32) gives them")
    return ring


def _check_options(ttl: object, audience: object, max_size: object) -> None:
    """
    Raises:
        ValueError: One is of no use.
    """
    if not isinstance(ttl, int | float) or isinstance(ttl, bool) or not 0 < ttl < math.inf:
        raise ValueError(f"ttl must be a positive number of seconds; got {ttl!r}")
    if not isinstance(max_size, int) or isinstance(max_size, bool) or max_size < 1:
        raise ValueError(f"max_size must be a positive number of characters; got {max_size!r}")
    if not isinstance(audience, str):
        raise ValueError(f"audience must be a string; got {audience!r}")


def _principal(ctx: AnyContext) -> Principal | None:
    """Return whom the caller's access token stands for; `None` where no token is asked for."""
    auth = None if _peerless(ctx) else ctx.auth
    return None if auth is None else principal_of(auth)


def _server(ctx: AnyContext) -> str:
    """Return the name of the server that serves the request."""
    server = None if _peerless(ctx) else ctx.server
    return str(getattr(server, "name", ""))


def _peerless(ctx: AnyContext) -> bool:
    """Return whether the context was made by hand, without a peer."""
    return getattr(ctx, "peer", None) is None


_TO_URL: Final = bytes.maketrans(b"+/", b"-_")
_FROM_URL: Final = bytes.maketrans(b"-_", b"+/")


def _text(data: bytes) -> str:
    return b2a_base64(data, newline=False).translate(_TO_URL).rstrip(b"=").decode("ascii")


def _mac(key: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, b"mcp requestState v1\0" + payload, "sha256")


if not TYPE_CHECKING:  # the old name is for programs that run, not for new code

    def __getattr__(name: str) -> object:
        # Goes with the next minor version (docs/versioning.md).
        if name != "RequestStateSealer":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        message = "RequestStateSealer is now RequestStateSigner: seal() is sign(), open() is verify()"
        warnings.warn(message, MCPDeprecationWarning, stacklevel=2)
        members = {"seal": RequestStateSigner.sign, "open": RequestStateSigner.verify}
        return type("RequestStateSealer", (RequestStateSigner,), members)

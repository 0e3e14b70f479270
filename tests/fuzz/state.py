"""Target `state`: texts that may be signed request states, or nearly, to `RequestStateSigner.verify`.

The invariant: what was signed opens, for its own request and principal, in its one
spelling; anything else is `InvalidParams`, in time that is proportional to its size.
"""

from __future__ import annotations

import random
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, Final

from mcp_core import codec
from mcp_core.errors import InvalidParams
from mcp_core.request_state import RequestStateSigner
from tests.fuzz.corpus import TEXTS
from tests.fuzz.oracle import Tally, Violation

__all__ = ["Sealed", "spoilt"]

ROUND: Final = 1000
ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=!. \n\u00e9\u2028\0"
VALUES: Final[list[Any]] = [None, 0, "x", [1, 2], {"round": 1}, "\u00e9" * 50, ["a" * 5000]]


def spoilt(rng: random.Random, state: str) -> str:
    """A state with a few characters changed."""
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(state) + 1)
        how = rng.random()
        if how < 0.3:
            state = state[:at] + rng.choice(ALPHABET) + state[at:]
        elif how < 0.6:
            state = state[:at] + rng.choice(ALPHABET) + state[at + 1 :]
        elif how < 0.7:
            state = state[:at] + state[at + rng.randint(1, 3) :]
        elif how < 0.8:
            state += rng.choice(["=", "==", "A", "\n", " ", "!"])
        elif how < 0.9:
            state = state.replace("-", "+").replace("_", "/")
        else:
            state = state[:at]
    return state


class Sealed:
    """Plays rounds against two signers."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        keys = [bytes([number]) * 32 for number in range(2)]
        self._signers = [RequestStateSigner(keys), RequestStateSigner(keys[::-1])]

    @classmethod
    @asynccontextmanager
    async def open(cls, tally: Tally) -> AsyncGenerator[Sealed, None]:
        """The target."""
        yield cls(tally)

    async def play(self, rng: random.Random, count: int) -> None:
        """A round of at most so many states. Raises `Violation`."""
        for _ in range(min(ROUND, count)):
            params = {"name": "x", "arguments": {"n": rng.randint(0, 3)}}
            ctx: Any = SimpleNamespace(method="tools/call", params=params, auth=None, peer=None, server=None)
            value, principal = rng.choice(VALUES), rng.choice(["", "ann"])
            signed = rng.choice(self._signers).sign(ctx, value, principal=principal)
            given = signed
            kind = rng.random()
            if kind < 0.02:
                given = rng.choice(list(TEXTS.values()))(rng.choice([200, 20_000])).decode("latin-1")
            elif kind < 0.9:
                given = spoilt(rng, signed)
            other: Any = SimpleNamespace(method="tools/call", params={"name": "y"}, auth=None, peer=None, server=None)
            right = given == signed
            if right and rng.random() < 0.3:
                ctx, right = other, False
            elif right and rng.random() < 0.3:
                principal, right = principal + "x", False
            self._try(ctx, given, principal, value if right else _REFUSED)

    def _try(self, ctx: Any, given: str, principal: str, wanted: Any) -> None:
        data = given.encode("utf-8", "surrogatepass")
        self._tally.sends(data)

        def opened() -> Any:
            try:
                return self._signers[0].verify(ctx, given, principal=principal)
            except InvalidParams:
                return _REFUSED

        begun = time.process_time_ns()
        got = opened()
        took = time.process_time_ns() - begun
        self._tally.answers += got is not _REFUSED
        self._tally.took(data, took, opened)
        if got is _REFUSED or wanted is _REFUSED:
            if got is not wanted:
                raise Violation(f"{given!r} was {'refused' if got is _REFUSED else 'opened'}")
        elif codec.to_json(got) != codec.to_json(wanted):
            raise Violation(f"{wanted!r} was signed, {got!r} came out")


_REFUSED: Final = object()

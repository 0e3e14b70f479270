"""What the property tests draw from."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

__all__ = ["fast", "json_objects", "json_values", "messages", "mutated", "request_ids", "unicode_text"]

fast = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

unicode_text = st.text(st.characters(codec="utf-8"), max_size=20)
request_ids = st.integers() | st.integers(-(2**80), 2**80) | unicode_text

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | unicode_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(unicode_text, inner, max_size=4),
    max_leaves=12,
)
json_objects = st.dictionaries(unicode_text, json_values, max_size=4)

_methods = st.sampled_from(
    ["ping", "initialize", "tools/call", "tools/list", "server/discover", "notifications/cancelled", "é", ""]
)


def _encoded(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode()


_legal: list[st.SearchStrategy[dict[str, Any]]] = [
    st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": request_ids, "method": _methods, "params": json_objects}),
    st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "method": _methods}, optional={"params": json_objects}),
    st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": request_ids, "result": json_objects}),
    st.fixed_dictionaries(
        {
            "jsonrpc": st.just("2.0"),
            "id": request_ids,
            "error": st.fixed_dictionaries({"code": st.integers(), "message": unicode_text, "data": json_values}),
        }
    ),
]

messages: st.SearchStrategy[bytes] = st.one_of(*_legal).map(_encoded)
"""Legal messages, encoded."""


def mutated(source: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """The same with a few bytes cut out, put in, or changed."""

    def mutate(data: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
        for place, cut, put in edits:
            at = int(place * len(data))
            data = data[:at] + put + data[at + cut :]
        return data

    edit = st.tuples(
        st.floats(0, 1), st.integers(0, 3), st.binary(max_size=3) | st.sampled_from([b"null", b"{", b"[", b'"'])
    )
    return st.builds(mutate, source, st.lists(edit, min_size=1, max_size=4))

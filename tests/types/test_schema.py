"""Holds the wire types and the methods table against the published schemas.

`tests/data/schema_fields.json` is their content in brief. What deviates on purpose is
listed here with its reason; an entry that no longer deviates fails too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from mcp_core import projection
from mcp_core import types as t
from mcp_core.methods import METHODS, Direction
from mcp_core.revisions import (
    ALL_REVISIONS,
    HANDSHAKE_REVISIONS,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
)

_DATA: Final[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "data" / "schema_fields.json").read_text(encoding="utf-8")
)
_TYPES: Final[dict[str, dict[str, dict[str, list[str]]]]] = _DATA["types"]
_METHODS: Final[dict[str, dict[str, list[str]]]] = _DATA["methods"]

Kind = type[msgspec.Struct]

NO_SCHEMA_TYPE: Final[dict[str, str]] = {
    "MetaObject": "base of what carries `_meta`",
    "Wire": "base of all wire types",
    "InputRequest": "a union in the schema; its methods are checked with the table",
}
"""Exported Structs without a type of their own in any schema."""

SCHEMA_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "Annotations": ("Annotations", "Annotated/annotations"),
    "CompleteRequestParams": ("CompleteRequest/params",),
    "Completion": ("CompleteResult/completion",),
    "CompletionArgument": ("CompleteRequest/params/argument",),
    "CompletionContext": ("CompleteRequest/params/context",),
    "ElicitCompleteNotificationParams": ("ElicitationCompleteNotification/params",),
    "ElicitRequestFormParams": ("ElicitRequestFormParams", "ElicitRequest/params"),
    "ElicitationCapability": ("ClientCapabilities/elicitation",),
    "ErrorData": ("Error",),
    "NotificationParams": ("NotificationParams", "InitializedNotification/params"),
    "PaginatedRequestParams": ("PaginatedRequestParams", "ListToolsRequest/params"),
    "PromptsCapability": ("ServerCapabilities/prompts",),
    "RawCallToolParams": ("CallToolRequest/params",),
    "RequestParams": ("RequestParams", "PingRequest/params"),
    "ResourceTemplateReference": ("ResourceTemplateReference", "ResourceReference"),
    "ResourcesCapability": ("ServerCapabilities/resources",),
    "RootsCapability": ("ClientCapabilities/roots",),
    "SamplingCapability": ("ClientCapabilities/sampling",),
    "TaskParams": ("GetTaskRequest/params", "CancelTaskRequest/params", "GetTaskPayloadRequest/params"),
    "ToolsCapability": ("ServerCapabilities/tools",),
}
"""Schema types of Structs whose name is another one, tried in this order."""

SURPLUS: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "CreateMessageResult": (("resultType",), "a result like any other here; left out while it is `complete`"),
    "ElicitResult": (("resultType",), "a result like any other here; left out while it is `complete`"),
    "ListRootsResult": (("resultType",), "a result like any other here; left out while it is `complete`"),
    "CreateTaskResult": (("resultType",), "a result like any other here; 2025-11-25 is never sent it"),
    "ListTasksResult": (("resultType",), "a result like any other here; 2025-11-25 is never sent it"),
    "GetTaskResult": (("resultType",), "read where a server of any revision sends it; left out while `complete`"),
    "CancelTaskResult": (("resultType",), "read where a server of any revision sends it; left out while `complete`"),
    "InitializeResult": (("resultType",), "a result like any other here; the handshake era is never sent it"),
    "PaginatedResult": (("ttlMs", "cacheScope"), "every paginated result of 2026-07-28 is a cacheable one"),
    "Task": (("_meta",), "shared with the results and params that are a whole task"),
    "TaskParams": (("_meta",), "every request may carry `_meta`: the schema of `Request` says so"),
    "ElicitCompleteNotificationParams": (("_meta",), "every notification may carry `_meta`, as `Notification` says"),
}
"""Wire members that neither of the newest two schemas names, and why they are there."""

MISSING: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "RawCallToolParams": (("task",), "its handlers never run calls as tasks"),
}
"""Members of those schemas without a field, and why."""

OPTIONAL_HERE: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "CacheableResult": (("cacheScope", "resultType", "ttlMs"), "the encoder completes them"),
    "DiscoverResult": (("cacheScope", "resultType", "ttlMs"), "the encoder completes them"),
    "SubscriptionsListenResult": (("_meta", "resultType"), "the encoder and the handler of `listen` complete them"),
    "InputRequiredResult": (("resultType",), "fixed by the type"),
    "ElicitRequestURLParams": (("mode",), "fixed by the type, and always sent"),
    "SubscriptionsListenRequestParams": (("_meta",), "put in by whoever sends; checked by the envelope when read"),
}
"""Members that the schemas require and our types have a default for."""

GENERIC_META: Final = "schemas up to 2025-06-18 name `_meta` of params in `Request` and `Notification` only"
BARE: Final = (
    "2026-07-28 names none inside `inputRequests` and `inputResponses`; objects are open, an author's own passes"
)

KNOWN_ANYWAY: Final[dict[tuple[str, str], tuple[tuple[str, ...], str]]] = {
    ("CreateMessageResult", "result_type"): ((V2026_07_28,), "2026-07-28 has it on results that are answers"),
    ("ElicitResult", "result_type"): ((V2026_07_28,), "2026-07-28 has it on results that are answers"),
    ("ListRootsResult", "result_type"): ((V2026_07_28,), "2026-07-28 has it on results that are answers"),
    ("ElicitResult", "_meta"): ((V2026_07_28,), BARE),
    ("ListRootsResult", "_meta"): ((V2026_07_28,), BARE),
    ("ElicitRequestFormParams", "_meta"): ((V2026_07_28,), BARE),
    ("ElicitRequestURLParams", "_meta"): ((V2026_07_28,), BARE),
    ("CreateMessageRequestParams", "_meta"): ((V2026_07_28,), BARE),
    ("PaginatedResult", "ttl_ms"): ((V2026_07_28,), "every paginated result of 2026-07-28 is a cacheable one"),
    ("PaginatedResult", "cache_scope"): ((V2026_07_28,), "every paginated result of 2026-07-28 is a cacheable one"),
    ("RawCallToolParams", "input_responses"): (HANDSHAKE_REVISIONS, "only ever read, never sent"),
    ("RawCallToolParams", "request_state"): (HANDSHAKE_REVISIONS, "only ever read, never sent"),
    ("Task", "_meta"): ((V2025_11_25,), "used where the task is a whole result or params"),
    ("TaskParams", "_meta"): ((V2025_11_25,), GENERIC_META),
    ("ElicitCompleteNotificationParams", "_meta"): ((V2025_11_25,), GENERIC_META),
}
"""Members that `projection.knows` in revisions whose schema does not name them."""


def _exported() -> dict[str, Kind]:
    found = {name: value for name, value in vars(t).items() if isinstance(value, type) and name[0] != "_"}
    return {name: kind for name, kind in found.items() if issubclass(kind, msgspec.Struct)}


_KINDS: Final = {name: kind for name, kind in _exported().items() if name not in NO_SCHEMA_TYPE}


def _members(name: str, revision: str) -> dict[str, list[str]] | None:
    """What the schema of a revision says of our type; `None` where it has none such."""
    message = f"{name.removesuffix('Params')}/params"
    for candidate in SCHEMA_NAMES.get(name, (name, message)):
        found = _TYPES.get(candidate, {}).get(revision)
        if found is not None:
            return found
    return None


def _named(name: str, revision: str) -> set[str]:
    members = _members(name, revision)
    return set() if members is None else {*members["required"], *members["optional"]}


def _wire(kind: Kind) -> dict[str, str]:
    """Wire name to field name; the tag is its own field."""
    fields = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    tag = kind.__struct_config__.tag_field
    return {tag: tag, **fields} if tag is not None else fields


def _required(kind: Kind) -> set[str]:
    tag = kind.__struct_config__.tag_field
    plain = {field.encode_name for field in msgspec.structs.fields(kind) if field.required}
    return plain if tag is None else {tag, *plain}


def _revisions(name: str) -> list[str]:
    return [revision for revision in ALL_REVISIONS if _members(name, revision) is not None]


_IN = [pytest.param(name, revision, id=f"{name}-{revision}") for name in _KINDS for revision in _revisions(name)]


# --- members --------------------------------------------------------------------------


def test_every_exported_struct_is_held_against_a_schema() -> None:
    assert {name for name in _KINDS if not _revisions(name)} == set()
    assert set(NO_SCHEMA_TYPE) <= set(_exported())


def test_what_is_listed_as_a_deviation_exists() -> None:
    listed = {*SCHEMA_NAMES, *SURPLUS, *MISSING, *OPTIONAL_HERE, *(name for name, _ in KNOWN_ANYWAY)}
    assert listed - set(_KINDS) == set()


@pytest.mark.parametrize("name", _KINDS)
def test_wire_members_are_those_of_the_newest_two_schemas(name: str) -> None:
    published = _named(name, V2025_11_25) | _named(name, V2026_07_28)
    ours = set(_wire(_KINDS[name]))
    assert ours - published == set(SURPLUS.get(name, ((), ""))[0])
    assert published - ours == set(MISSING.get(name, ((), ""))[0])


@pytest.mark.parametrize("name", _KINDS)
def test_members_are_required_as_the_newest_two_schemas_require_them(name: str) -> None:
    # A member that one of the two lacks, or leaves open, cannot be required of both.
    having = [members for r in (V2025_11_25, V2026_07_28) if (members := _members(name, r)) is not None]
    published = {wire for wire in having[0]["required"] if all(wire in members["required"] for members in having)}
    ours = _required(_KINDS[name])
    assert ours - published == set()
    assert published - ours == set(OPTIONAL_HERE.get(name, ((), ""))[0])


@pytest.mark.parametrize(("name", "revision"), _IN)
def test_what_a_type_requires_every_revision_requires(name: str, revision: str) -> None:
    members = _members(name, revision)
    assert members is not None
    fields = _wire(_KINDS[name])
    known = {wire for wire in _required(_KINDS[name]) if projection.knows(_KINDS[name], fields[wire], revision)}
    assert known - set(members["required"]) == set()


# --- members by revision --------------------------------------------------------------


@pytest.mark.parametrize(("name", "revision"), _IN)
def test_a_member_is_known_in_the_revisions_that_have_it(name: str, revision: str) -> None:
    kind, published = _KINDS[name], _named(name, revision)
    tag = kind.__struct_config__.tag_field
    wrong: dict[str, bool] = {}
    for wire, field in _wire(kind).items():
        known = projection.knows(kind, field, revision)
        if known != (wire in published) and field != tag and not _excused(name, field, revision, known):
            wrong[field] = known
    assert wrong == {}


def _excused(name: str, field: str, revision: str, known: bool) -> bool:
    if field == "_meta" and name.endswith("Params") and revision <= V2025_06_18:
        return known  # GENERIC_META
    return known and revision in KNOWN_ANYWAY.get((name, field), ((), ""))[0]


@pytest.mark.parametrize(("name", "field"), KNOWN_ANYWAY)
def test_a_listed_exception_is_one(name: str, field: str) -> None:
    wire = {field: wire for wire, field in _wire(_KINDS[name]).items()}[field]
    for revision in KNOWN_ANYWAY[name, field][0]:
        assert projection.knows(_KINDS[name], field, revision)
        assert wire not in _named(name, revision)


def test_revisions_are_named_for_members_that_exist() -> None:
    unknown = {
        (kind.__name__, field)
        for kind, fields in projection.FIELD_REVISIONS.items()
        for field in fields
        if field not in kind.__struct_fields__
    }
    assert unknown == set()


# --- methods --------------------------------------------------------------------------

ONE_WAY: Final[dict[tuple[str, str], str]] = {
    (V2026_07_28, "notifications/progress"): "only the server sends it from 2026-07-28 on; the column is one for all",
}
"""Methods that the table allows towards the server, and the schema of a revision does not."""


def _ours(revision: str, towards: Direction, *, notifications: bool) -> set[str]:
    return {
        name
        for name, row in METHODS.items()
        if revision in row.revisions
        and row.direction in (towards, "both")
        and row.is_notification is notifications
        and not (towards == "to_server" and (revision, name) in ONE_WAY)
    }


@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize(
    ("towards", "notifications", "unions"),
    [
        pytest.param("to_server", False, ("ClientRequest",), id="requests-to-server"),
        pytest.param("to_server", True, ("ClientNotification",), id="notifications-to-server"),
        # 2026-07-28 has no requests to the client; the same methods are in its results.
        pytest.param("to_client", False, ("ServerRequest", "InputRequest"), id="requests-to-client"),
        pytest.param("to_client", True, ("ServerNotification",), id="notifications-to-client"),
    ],
)
def test_methods_are_those_of_the_schema(
    revision: str, towards: Direction, notifications: bool, unions: tuple[str, ...]
) -> None:
    published = {method for union in unions for method in _METHODS[revision][union]}
    assert _ours(revision, towards, notifications=notifications) == published


@pytest.mark.parametrize(("revision", "method"), ONE_WAY)
def test_a_listed_one_way_method_is_one(revision: str, method: str) -> None:
    assert METHODS[method].direction == "both"
    assert revision in METHODS[method].revisions
    assert method not in _METHODS[revision]["ClientNotification"]


def test_input_requests_are_those_of_the_schema() -> None:
    assert set(t.INPUT_METHODS) == set(_METHODS[V2026_07_28]["InputRequest"])
    assert all(_METHODS[revision]["InputRequest"] == [] for revision in HANDSHAKE_REVISIONS)
    assert set(_wire(t.InputRequest)) == {"method", "params"}


@pytest.mark.requirement("R-CACHE-01")
def test_cacheable_methods_are_those_whose_results_carry_hints() -> None:
    published = {
        name
        for name, members in _TYPES.items()
        if name.endswith("Result") and "ttlMs" in members.get(V2026_07_28, {}).get("required", [])
    }
    cacheable = {row.result.__name__ for row in METHODS.values() if row.cacheable}
    assert cacheable == published - {"CacheableResult"}
    assert {row.result.__name__ for row in METHODS.values() if not row.cacheable and row.result} & published == set()


@pytest.mark.requirement("R-MRTR-01")
def test_methods_that_may_ask_are_those_whose_params_carry_answers() -> None:
    published = {
        name
        for name, members in _TYPES.items()
        if "inputResponses" in members.get(V2026_07_28, {}).get("optional", []) and "/" not in name
    }
    may_ask = {row.params.__name__ for row in METHODS.values() if row.may_ask}
    assert may_ask == published - {"InputResponseRequestParams"}

"""The resources: two that stay as they are, one to be watched, and a family of them.

Subscriptions are the server's own doing (`Server(subscriptions=True)`); who changes a
resource says so with `server.publish(ResourceUpdated(uri))`.
Spec: server/resources.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple, TypeAlias

from mcp_core import RequestContext, ResourceNotFound
from mcp_core import types as t
from tests.conformance.media import PNG

__all__ = ["RESOURCES", "TEMPLATES", "read_resource"]

KEEP: Final = 60_000
"""Milliseconds for which a client may keep what does not change."""

Contents: TypeAlias = t.TextResourceContents | t.BlobResourceContents
Outcome: TypeAlias = t.ReadResourceResult | t.InputRequiredResult


class Entry(NamedTuple):
    """One resource: how it is listed, and what reading it gives."""

    listed: t.Resource
    read: t.Prepared[t.ReadResourceResult]


def _offer(name: str, description: str, contents: Contents, ttl_ms: int = KEEP) -> Entry:
    listed = t.Resource(uri=contents.uri, name=name, description=description, mime_type=contents.mime_type)
    result = t.ReadResourceResult(contents=[contents], ttl_ms=ttl_ms, cache_scope="public")
    return Entry(listed, t.Prepared(result))


_ENTRIES: Final = (
    _offer(
        "static-text",
        "A text that stays as it is.",
        t.TextResourceContents(
            uri="test://static-text", mime_type="text/plain", text="This is the content of the static text resource."
        ),
    ),
    _offer(
        "static-binary",
        "An image that stays as it is.",
        t.BlobResourceContents(uri="test://static-binary", mime_type="image/png", blob=PNG),
    ),
    _offer(
        "watched-resource",
        "A text to subscribe to.",
        t.TextResourceContents(
            uri="test://watched-resource", mime_type="text/plain", text="This is the content of the watched resource."
        ),
        ttl_ms=0,
    ),
)
_BY_URI: Final = {entry.listed.uri: entry for entry in _ENTRIES}
_RECORD: Final = re.compile(r"test://template/(?P<id>[^/]+)/data")

RESOURCES: Final = [entry.listed for entry in _ENTRIES]
TEMPLATES: Final = [
    t.ResourceTemplate(
        uri_template="test://template/{id}/data",
        name="record",
        description="A record for each id.",
        mime_type="application/json",
    )
]


def read_resource(
    ctx: RequestContext, params: t.ReadResourceRequestParams
) -> Outcome | t.Prepared[t.ReadResourceResult]:
    """What is at a URI. `ResourceNotFound` has the code that the client's revision wants."""
    entry = _BY_URI.get(params.uri)
    if entry is not None:
        return entry.read
    record = _RECORD.fullmatch(params.uri)
    if record is None:
        raise ResourceNotFound(params.uri)
    return _record(params.uri, record["id"])


def _record(uri: str, id_: str) -> t.ReadResourceResult:
    data = {"id": id_, "templateTest": True, "data": f"Data for ID: {id_}"}
    contents = t.TextResourceContents(
        uri=uri, mime_type="application/json", text=json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    )
    return t.ReadResourceResult(contents=[contents])

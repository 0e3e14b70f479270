"""Tools that give each kind of content, and tools that are there for their schemas.

A result that never changes is prepared once.
Spec: server/tools, "Tool Result", "Tool Names"; "x-mcp-header".
"""

from __future__ import annotations

import json
from typing import Any, Final

from mcp_core import RequestContext
from mcp_core import types as t
from tests.conformance.media import PNG, WAV
from tests.conformance.tools import Entry, always, failure, offer, text

__all__ = ["TOOLS"]

_IMAGE: Final = t.ImageContent(data=PNG, mime_type="image/png")
_SOUND: Final = t.AudioContent(data=WAV, mime_type="audio/wav")
_EMBEDDED: Final = t.EmbeddedResource(
    resource=t.TextResourceContents(
        uri="test://embedded-resource", mime_type="text/plain", text="This is an embedded resource content."
    )
)
_MIXED: Final[list[t.ContentBlock]] = [
    t.TextContent(text="Multiple content types test:"),
    _IMAGE,
    t.EmbeddedResource(
        resource=t.TextResourceContents(
            uri="test://mixed-content-resource", mime_type="application/json", text='{"test":"data","value":123}'
        )
    ),
]

EVERY_KEYWORD: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
"""Keywords of 2020-12 that a server must pass on as they are."""

MIRRORED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}
"""A parameter that HTTP clients repeat in `Mcp-Param-Region`, where the transport compares the two."""


async def _echo_arguments(ctx: RequestContext, params: t.CallToolRequestParams) -> t.CallToolResult:
    return text(f"Arguments: {json.dumps(params.arguments or {}, ensure_ascii=False)}")


# The first of the list is also called by scenarios that only need something to call.
TOOLS: Final[tuple[Entry, ...]] = (
    offer("test_simple_text", "Gives a text.", always(text("This is a simple text response for testing."))),
    offer("test_image_content", "Gives an image.", always(t.CallToolResult(content=[_IMAGE]))),
    offer("test_audio_content", "Gives a sound.", always(t.CallToolResult(content=[_SOUND]))),
    offer("test_embedded_resource", "Gives a resource by value.", always(t.CallToolResult(content=[_EMBEDDED]))),
    offer(
        "test_multiple_content_types",
        "Gives a text, an image and a resource.",
        always(t.CallToolResult(content=_MIXED)),
    ),
    offer("test_error_handling", "Fails.", always(failure("This tool intentionally returns an error for testing"))),
    offer("json_schema_2020_12_tool", "Has an elaborate input schema.", _echo_arguments, EVERY_KEYWORD),
    offer("test_x_mcp_header", "Has a parameter that travels in a header too.", _echo_arguments, MIRRORED),
)

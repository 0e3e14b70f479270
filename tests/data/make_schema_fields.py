"""Condenses the published schemas to what the tests compare with.

Usage: `python tests/data/make_schema_fields.py FOLDER`, where the folder holds one
`<revision>.json` a revision, as the specification publishes them. Writes
`schema_fields.json` beside this file:

- `types`: object type, then revision, to its required and optional members. An object
  written inside another is named by its path, as `CompleteResult/completion`; the params
  of a message are `<Message>/params`, be they written inside it or named.
- `methods`: revision, then union (`ClientRequest`, ...), to the methods in it. The three
  requests that 2026-07-28 puts into results are under `InputRequest`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

UNIONS = ("ClientRequest", "ServerRequest", "ClientNotification", "ServerNotification", "InputRequest")
ENVELOPES = ("Request", "Notification", "PaginatedRequest")


class Schema:
    """One published schema."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.definitions: dict[str, Any] = document.get("$defs") or document["definitions"]

    def resolved(self, node: dict[str, Any]) -> dict[str, Any]:
        """The node that this one refers to, `allOf` merged."""
        if "$ref" in node:
            return self.resolved(self.definitions[node["$ref"].rsplit("/", 1)[-1]])
        if "allOf" not in node:
            return node
        merged: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        for part in map(self.resolved, node["allOf"]):
            merged["properties"] |= part.get("properties", {})
            merged["required"] += part.get("required", [])
        return merged

    def types(self) -> dict[str, dict[str, list[str]]]:
        """The members of every object type, by name or path."""
        found: dict[str, dict[str, list[str]]] = {}
        for name, node in self.definitions.items():
            if name in ENVELOPES or name.startswith("JSONRPC") or name.endswith(("Response", "Schema")):
                continue
            if name.endswith("Error") and name != "Error":
                continue
            whole = self.resolved(node)
            if "method" in whole.get("properties", {}):
                self._collect(f"{name}/params", self.resolved(whole["properties"].get("params", {})), found)
            else:
                self._collect(name, whole, found)
        return found

    def _collect(self, name: str, node: dict[str, Any], found: dict[str, dict[str, list[str]]]) -> None:
        properties: dict[str, Any] = node.get("properties", {})
        if not properties:
            return
        required = sorted(node.get("required", []))
        found[name] = {"required": required, "optional": sorted(set(properties) - set(required))}
        for member, inner in properties.items():
            if member != "_meta":
                self._collect(f"{name}/{member}", inner, found)

    def methods(self) -> dict[str, list[str]]:
        """The methods of each union."""
        return {union: sorted(self._methods(self.definitions.get(union, {}))) for union in UNIONS}

    def _methods(self, node: dict[str, Any]) -> set[str]:
        if "anyOf" in node:
            return {method for option in node["anyOf"] for method in self._methods(self.resolved(option))}
        method = self.resolved(node).get("properties", {}).get("method")
        return set() if method is None else {method["const"]}


def condense(folder: Path) -> dict[str, Any]:
    """The contents of `schema_fields.json`, made of the schemas in this folder."""
    types: dict[str, dict[str, Any]] = {}
    methods: dict[str, Any] = {}
    for path in sorted(folder.glob("*.json")):
        schema = Schema(json.loads(path.read_text()))
        methods[path.stem] = schema.methods()
        for name, members in schema.types().items():
            types.setdefault(name, {})[path.stem] = members
    return {"types": dict(sorted(types.items())), "methods": methods}


def lines(condensed: dict[str, Any]) -> str:
    """The JSON text, one line a type and revision."""

    def block(rows: dict[str, Any]) -> str:
        return ",\n".join(
            f"    {json.dumps(name)}: {{\n"
            + ",\n".join(f"      {json.dumps(key)}: {json.dumps(value)}" for key, value in row.items())
            + "\n    }"
            for name, row in rows.items()
        )

    parts = (f"  {json.dumps(key)}: {{\n{block(rows)}\n  }}" for key, rows in condensed.items())
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    Path(__file__).with_name("schema_fields.json").write_text(lines(condense(Path(sys.argv[1]))))

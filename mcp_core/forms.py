"""Forms as older clients know them: what may be inside `requestedSchema`, per revision.

2025-06-18 has neither titled choices, but two lists side by side, nor lists of choices, nor
defaults other than those of booleans. The later revisions know the same forms.
Spec: client/elicitation, "Requested Schema"; P-27.
"""

from __future__ import annotations

from mcp_core.codec import JSONObject, is_array, is_object
from mcp_core.errors import LocalProtocolError
from mcp_core.revisions import V2025_06_18

__all__ = ["form_for"]


def form_for(schema: JSONObject, revision: str) -> JSONObject:
    """Return the schema of a form as a client of this revision knows it.

    Raises:
        LocalProtocolError: It has a member that the revision lacks; the text names it.
    """
    members = schema.get("properties")
    if revision != V2025_06_18 or not is_object(members):
        return schema
    return {**schema, "properties": {name: _first_form(name, member) for name, member in members.items()}}


def _first_form(name: str, member: object) -> object:
    """Return a member of a form as 2025-06-18 has it."""
    if not is_object(member):
        return member
    if member.get("type") == "array":
        raise LocalProtocolError(
            f"the form cannot ask a client of {V2025_06_18} for {name!r}: that revision has no lists of choices"
        )
    shown = {key: value for key, value in member.items() if key != "default" or member.get("type") == "boolean"}
    arms = shown.pop("oneOf", None)
    if is_array(arms):
        choices = [arm for arm in arms if is_object(arm)]
        shown["enum"] = [arm.get("const") for arm in choices]
        shown["enumNames"] = [arm.get("title", arm.get("const")) for arm in choices]
    return shown

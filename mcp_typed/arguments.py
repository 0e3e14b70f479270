"""Arguments: their schema, and the way from the bytes of a call to keywords.

One pydantic model per tool, its fields under names of its own, so that a parameter
may be called anything (P-37).
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from mcp_typed.errors import InvalidSignature
from mcp_typed.signature import MISSING, Plan

__all__ = ["Arguments", "report"]


class Arguments:
    """The arguments of one tool."""

    def __init__(self, plan: Plan) -> None:
        fields: dict[str, Any] = {}
        self._keywords: list[tuple[str, str]] = []
        for index, parameter in enumerate(plan.parameters):
            field = f"p{index}"
            annotation = Any if parameter.annotation is MISSING else parameter.annotation
            default: Any = ... if parameter.default is MISSING else parameter.default
            if isinstance(default, FieldInfo):
                raise InvalidSignature(
                    f"tool {plan.name!r}: parameter {parameter.name!r}: put Field(...) into Annotated[...]"
                )
            fields[field] = (annotation, Field(default, alias=parameter.name))
            self._keywords.append((parameter.name, field))
        try:
            self._model: type[BaseModel] = create_model(
                f"{plan.name}Arguments", __config__=ConfigDict(arbitrary_types_allowed=False), **fields
            )
            self.schema: dict[str, Any] = self._model.model_json_schema(by_alias=True)
        except Exception as exc:
            raise InvalidSignature(f"tool {plan.name!r}: its parameters have no JSON schema: {exc}") from exc
        self.schema.setdefault("properties", {})
        self._validate = self._model.__pydantic_validator__.validate_json

    def keywords(self, arguments: bytes) -> dict[str, Any]:
        """The keywords of a call.

        Raises:
            ValidationError: They do not fit.
        """
        values = self._validate(arguments).__dict__
        return {name: values[field] for name, field in self._keywords}


def report(error: ValidationError) -> str:
    """pydantic's own report, without the lines that lead to its documentation (P-02)."""
    lines = str(error).splitlines()
    return "\n".join(line for line in lines if not line.startswith("    For further information visit"))

"""The tools of the typed contenders: the same functions, registered with each.

What the low-level contenders put into a result by hand is made here too, so that
all of them do the same work.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Annotated, Any

from pydantic import BaseModel, Field, create_model


class Record(BaseModel):
    """A book in stock."""

    number: int
    title: str
    price: float
    in_stock: bool
    added: date


RECORDS = [
    Record(
        number=number,
        title=f"The {number}th book",
        price=number + 0.5,
        in_stock=number % 3 > 0,
        added=date(2026, 1 + number % 12, 1 + number % 28),
    )
    for number in range(100)
]


READY: tuple[list[str], Any] = (
    [record.model_dump_json(indent=2) for record in RECORDS],
    {"result": [record.model_dump(mode="json") for record in RECORDS]},
)
"""The same as texts and as plain data."""


async def echo(text: str) -> str:
    """Say it again."""
    return text


def echo_def(text: str) -> str:
    """Say it again, from a plain function."""
    return text


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def add_def(a: int, b: int) -> int:
    """Add two numbers, in a plain function."""
    return a + b


async def records(count: int) -> list[Record]:
    """The first records."""
    return RECORDS[:count]


TEXT = "This line has 64 characters, its end included; 16,384 make 1 MB\n" * 2**14
"""A text of about 1 MB."""


async def big() -> str:
    """A text of 1 MB."""
    return TEXT


async def find(text: Annotated[str, Field(description="Words of the title.")], limit: int = 10) -> Record:
    """Look for a record by its title."""
    # Registered under many names, for a list of many tools.
    return RECORDS[limit]


FUNCTIONS: list[Callable[..., Any]] = [echo, echo_def, add, add_def, records]


def listed(name: str, *parameters: str) -> dict[str, Any]:
    """A tool as the low-level contenders list it."""
    properties = {parameter: {"type": "string"} for parameter in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"name": name, "description": "Written by hand.", "inputSchema": schema}


def listed_find(number: int) -> dict[str, Any]:
    """One of many tools as the low-level contenders list it, no smaller than the typed one."""
    model = create_model("findArguments", text=(str, Field(description="Words of the title.")), limit=(int, 10))
    return {
        "name": f"find_{number}",
        "description": find.__doc__,
        "inputSchema": model.model_json_schema(),
        "outputSchema": Record.model_json_schema(mode="serialization"),
    }


def by_hand(name: str, arguments: dict[str, Any]) -> tuple[list[str], Any]:
    """The texts and the structured data of a call, as a careful author would write them."""
    if name == "echo":
        return [arguments["text"]], {"result": arguments["text"]}
    if name == "add":
        total = arguments["a"] + arguments["b"]
        return [str(total)], {"result": total}
    if name == "records":
        found = RECORDS[: arguments["count"]]
        texts = [record.model_dump_json(indent=2) for record in found]
        return texts, {"result": [record.model_dump(mode="json") for record in found]}
    if name == "ready":
        return READY
    if name == "big":
        return [TEXT], None
    raise ValueError(f"there is no tool {name!r}")

"""Reports on what does not fit: places, reasons, the value at fault alone, and a bound on each."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from mcp_typed.report import LISTED, SORTED_OUT, places, report_arguments, report_result


def error(annotation: Any, value: Any) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter[Any](annotation).validate_python(value)
    return caught.value


@pytest.mark.parametrize(
    "value",
    [
        "x",
        "x" * 47,
        "x" * 48,
        "x" * 49,
        "x" * 100,
        "x" * 101,
        "x" * 1000,
        "\u00e9" * 70,
        "it's",
        [],
        {},
        [1, "a", None, True, 1.5],
        {"a": [1, {"b": 2}], "c": {}},
        [["x" * 80]],
        list(range(1000)),
        {str(index): [index] * 30 for index in range(100)},
        [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]],
        5,
        1e300,
        True,
    ],
    ids=lambda value: repr(value)[:12],
)
def test_the_report_on_an_argument_is_that_of_pydantic(value: Any) -> None:
    fault = error(dict[str, dict[str, Literal["?"]]], {"a.b": {"c": value, "": value}})
    theirs = str(fault).splitlines()
    assert report_arguments(fault).splitlines() == [line for line in theirs if "For further information" not in line]


class Account(BaseModel):
    n: int
    name: str = ""
    password: str = ""


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


SECRET = "hunter2"


@pytest.mark.fault("X-07")
@pytest.mark.parametrize("report", [report_arguments, report_result])
def test_what_stands_beside_a_missing_value_is_not_shown(report: Callable[[ValidationError], str]) -> None:
    fault = error(Account, {"name": "x", "password": SECRET})
    assert report(fault) == "1 validation error for Account\nn\n  Field required [type=missing, input_type=dict]"


@pytest.mark.fault("X-07")
@pytest.mark.parametrize(
    ("annotation", "value", "reason"),
    [
        (Account, {"n": SECRET}, "n\n  Input should be a valid integer, unable to parse string as an integer"),
        (int, SECRET, "  Input should be a valid integer, unable to parse string as an integer"),
        (list[str], (character for character in "ab" if 1 / 0), "0\n  Error iterating over object"),
        (
            Annotated[Cat | Dog, Field(discriminator="kind")],
            {"kind": SECRET},
            "  Input tag does not match any of the expected tags",
        ),
        (Literal["a", "b"], SECRET, "  Input should be 'a' or 'b'"),
    ],
)
def test_a_report_on_a_result_has_places_and_reasons_and_no_values(annotation: Any, value: Any, reason: str) -> None:
    told = report_result(error(annotation, value)).partition("\n")[2]
    assert told.startswith(f"{reason} [type=")
    assert "input_value" not in told
    assert SECRET not in told


@pytest.mark.fault("X-07")
@pytest.mark.parametrize("count", [LISTED, LISTED + 1, 20_000])
def test_a_report_shows_the_first_faults_and_counts_the_others(count: int) -> None:
    told = report_arguments(error(list[int], ["x"] * count)).splitlines()
    assert told[0] == f"{count} validation errors for list[int]"
    assert told[1:21:2] == [str(index) for index in range(LISTED)]
    assert told[21:] == ([f"and {count - LISTED} more"] if count > LISTED else [])


@pytest.mark.fault("X-07")
@pytest.mark.fault("S-06")
def test_of_very_many_faults_only_the_number_is_told() -> None:
    fault = error(list[int], [""] * 20 * SORTED_OUT)
    begun = time.process_time()
    assert report_arguments(fault) == "1000000 validation errors for list[int]\ntoo many to list"
    assert report_result(fault) == "1000000 validation errors for list[int]\ntoo many to list"
    assert places(fault) == ""
    assert time.process_time() - begun < 0.1, "the faults were made Python objects"


@pytest.mark.fault("X-07")
@pytest.mark.parametrize("report", [report_arguments, report_result])
@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (dict[str, int], {"k" * 1_000_000: "x"}),
        (dict[str, dict[str, int]], {"k" * 1_000_000: {"k" * 1_000_000: "x"}}),
        (list[int], ["v" * 1_000_000]),
        (list[int], [[["v"] * 100_000] * 5]),
        (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "t" * 1_000_000}),
        (int, 10**5000),
        (list[str], [10**4000]),
        (str, 10**5000),
    ],
    ids=["key", "keys", "text", "list", "tag", "too large", "large number", "unprintable"],
)
def test_a_report_is_short_whatever_is_wrong(
    report: Callable[[ValidationError], str], annotation: Any, value: Any
) -> None:
    if annotation is int:
        annotation = Annotated[int, Field(lt=5)]
    fault = error(annotation, value)
    begun = time.process_time()
    assert len(report(fault)) < 3000
    assert len(places(fault)) < 3000
    assert time.process_time() - begun < 0.5

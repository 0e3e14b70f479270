"""An annotation means what it names: through aliases, new types, `Annotated`, decorators and subclasses."""

# ruff: noqa: UP007, UP045 - both notations are tried

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Generic, NewType, Optional, TypeVar, Union

import msgspec
import pytest
from typing_extensions import TypeAliasType as RealTypeAliasType
from typing_extensions import TypedDict

import mcp_typed
from mcp_core import Client
from mcp_core.types import CallToolResult, TextContent, Tool
from mcp_typed import Context, InvalidSignature, MCPServer
from mcp_typed.annotations import arms, leaves, meaning
from mcp_typed.foreign import adapted

T = TypeVar("T")
S = TypeVar("S")
TypeAliasType: Any = RealTypeAliasType
"""Type checkers do not follow what is done with aliases here."""

A: Any = T
B: Any = S
tuple_of: Any = tuple


class Bike(msgspec.Struct):
    n: int


Bikes: Any = TypeAliasType("Bikes", list[Bike])
Ctx: Any = TypeAliasType("Ctx", Context)
Made: Any = TypeAliasType("Made", CallToolResult)
Items: Any = TypeAliasType("Items", Iterator[int])
Pair: Any = TypeAliasType("Pair", tuple_of[A, A], type_params=(T,))
Swapped: Any = TypeAliasType("Swapped", tuple_of[B, A], type_params=(T, S))
Same: Any = TypeAliasType("Same", T, type_params=(T,))
Written: Any = TypeAliasType("Written", "list[Bike]")
Tree: Any = TypeAliasType("Tree", "Bike | list[Tree]")
Said: Any = TypeAliasType("Said", Annotated[A, "said"], type_params=(T,))
new_type: Any = NewType
NewBike: Any = new_type("NewBike", Bike)
NewContext: Any = new_type("NewContext", Context)


class Mine(Context[Any]):
    def twice(self, n: int) -> int:
        return 2 * n


async def called(function: Callable[..., Any], arguments: Any, name: str = "f") -> tuple[Tool, CallToolResult]:
    server = MCPServer("annotations", mask_errors=False)
    server.add_tool(function, name=name)
    async with Client(server) as client:
        (tool,) = (await client.list_tools()).tools
        return tool, await client.call_tool(name, arguments)


@pytest.mark.case("C082")
@pytest.mark.parametrize(
    ("annotation", "argument"),
    [
        (Bikes, [{"n": 1}]),
        (Pair[Bike], [{"n": 1}, {"n": 2}]),
        (Swapped[int, Bike], [{"n": 1}, 2]),
        (Same[Bike], {"n": 1}),
        (Written, [{"n": 1}]),
        (Tree, [{"n": 1}, [{"n": 2}]]),
        (Said[Bike], {"n": 1}),
        (Annotated[Pair[Said[Bike]], "more"], [{"n": 1}, {"n": 2}]),
        (NewBike, {"n": 1}),
        (list[NewBike], [{"n": 1}]),
        (Optional[Bikes], [{"n": 1}]),
        (Union[Bikes, None, int], 5),
        ("Bikes | None", None),
        (dict[str, Pair[Bike]], {"x": [{"n": 1}, {"n": 2}]}),
    ],
)
async def test_an_alias_means_what_it_names(annotation: Any, argument: Any) -> None:
    def f(x: Any) -> Any:
        return x

    f.__annotations__ |= {"x": annotation, "return": annotation}
    _, result = await called(f, {"x": argument})
    data: Any = result.structured_content
    assert data in (argument, {"result": argument})


@pytest.mark.case("C082")
@pytest.mark.case("C088")
@pytest.mark.fault("X-35")
@pytest.mark.parametrize(
    "annotation",
    [
        Context,
        Ctx,
        Optional[Ctx],
        Annotated[Ctx, "it"],
        Said[Ctx],
        NewContext,
        Mine,
        Optional[Mine],
        Same[Mine],
        Mine | None,
    ],
)
async def test_a_context_is_injected_however_it_is_called(annotation: Any) -> None:
    seen: list[Any] = []

    def f(x: int, c: Any) -> int:
        seen.append(c)
        return x

    f.__annotations__["c"] = annotation
    tool, result = await called(f, {"x": 1})
    assert list(tool.input_schema["properties"]) == ["x"]
    assert not result.is_error
    wants_own = Mine in leaves(annotation)
    assert type(seen[0]) is (Mine if wants_own else Context)
    assert seen[0].client_info is not None


@pytest.mark.fault("X-35")
def test_a_context_that_needs_more_than_a_request_is_refused() -> None:
    class Needy(Context[Any]):
        def __init__(self, request_context: Any, more: int) -> None:
            super().__init__(request_context)

    def f(c: Any) -> None: ...

    f.__annotations__["c"] = Needy
    with pytest.raises(InvalidSignature, match="a Needy cannot be injected"):
        MCPServer("needy").add_tool(f)


@pytest.mark.case("C082")
async def test_an_alias_of_a_result_promises_nothing() -> None:
    def f() -> Any:
        return CallToolResult(content=[TextContent(text="k")])

    f.__annotations__["return"] = Made
    tool, result = await called(f, {})
    assert tool.output_schema is None
    assert not result.is_error


@pytest.mark.case("C082")
async def test_an_alias_of_an_iterator_streams() -> None:
    def f(x: int) -> Iterator[int]:
        yield from range(x)

    f.__annotations__["return"] = Items
    _, result = await called(f, {"x": 2})
    assert result.structured_content == {"result": [0, 1]}


# --- decorators --------------------------------------------------------------------------------------


class Traced:
    def __init__(self, fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn

    def __call__(self, *args: Any, **kw: Any) -> Any:
        return self.fn(*args, **kw)


class OnlyWrapped:
    def __init__(self, fn: Callable[..., Any]) -> None:
        self.__wrapped__ = fn

    def __call__(self, *args: Any, **kw: Any) -> Any:
        return self.__wrapped__(*args, **kw)


class TracedLater(Traced):
    async def __call__(self, *args: Any, **kw: Any) -> Any:
        return self.fn(*args, **kw)


def base(x: int, ctx: Context) -> int:
    """Add one."""
    return x + 1


async def base_later(x: int, ctx: Context) -> int:
    """Add one."""
    return x + 1


@pytest.mark.case("C081")
@pytest.mark.parametrize(
    "function",
    [
        Traced(base),
        Traced(base_later),
        OnlyWrapped(base),
        OnlyWrapped(base_later),
        TracedLater(base),
        Traced(Traced(base)),
        OnlyWrapped(Traced(base)),
        functools.partial(Traced(base)),
        Traced(functools.partial(base)),
        functools.lru_cache(base),
    ],
    ids=[str(number) for number in range(10)],
)
async def test_the_object_of_a_decorator_is_what_it_decorates(function: Any) -> None:
    tool, result = await called(function, {"x": 1})
    assert tool.input_schema == {
        "properties": {"x": {"title": "X", "type": "integer"}},
        "required": ["x"],
        "title": tool.input_schema["title"],
        "type": "object",
    }
    assert tool.input_schema["title"] in ("fArguments", "baseArguments", "base_laterArguments")
    assert tool.output_schema is not None
    assert tool.description == "Add one."
    assert result.structured_content == {"result": 2}


class Silent:
    def __call__(self, x: int) -> int:
        return x


class Talking(Silent):
    """What the class says."""


class TalkingCall:
    """What the class says."""

    def __call__(self, x: int) -> int:
        """What the call says."""
        return x


@pytest.mark.fault("X-17")
@pytest.mark.parametrize(
    ("function", "description"),
    [(Silent(), None), (Talking(), "What the class says."), (TalkingCall(), "What the call says.")],
)
async def test_a_callable_object_is_described_by_its_own_words(function: Any, description: str | None) -> None:
    tool, _ = await called(function, {"x": 1})
    assert tool.description == description


# --- what a class becomes -----------------------------------------------------------------------------


@dataclasses.dataclass
class Left:
    right: Right | None
    n: int = 0


@dataclasses.dataclass
class Right:
    left: Left | None
    bike: Bike


class Page(TypedDict):
    bike: Bike
    own: Plain


class Plain:
    n: int = 1


@dataclasses.dataclass
class Box(Generic[T]):
    x: T
    bike: Bike


@pytest.mark.fault("X-23")
@pytest.mark.parametrize("first", [Left, Right, None])
@pytest.mark.parametrize("annotation", [Left, Right])
async def test_a_class_becomes_the_same_whatever_came_before(first: Any, annotation: Any) -> None:
    if first is not None:
        adapted(first)
        adapted(list[first], plain_classes=True)

    def f(x: Any) -> Any:
        return x

    f.__annotations__ |= {"x": annotation, "return": annotation}
    inner = {"left": None, "bike": {"n": 1}}
    argument = {"right": inner, "n": 1} if annotation is Left else {**inner, "left": {"right": None, "n": 2}}
    _, result = await called(f, {"x": argument})
    assert result.structured_content == argument


@pytest.mark.fault("X-23")
@pytest.mark.parametrize("plain_first", [True, False])
async def test_plain_classes_are_known_where_values_leave_only(plain_first: bool) -> None:
    for plain in (plain_first, not plain_first):
        adapted(Page, plain_classes=plain)

    def f() -> Page:
        return {"bike": Bike(1), "own": Plain()}

    _, result = await called(f, {})
    assert result.structured_content == {"bike": {"n": 1}, "own": {"n": 1}}


async def test_type_arguments_reach_members_of_generic_classes() -> None:
    def f(x: Box[int]) -> Box[int]:
        return x

    tool, result = await called(f, {"x": {"x": 1, "bike": {"n": 2}}})
    assert result.structured_content == {"x": 1, "bike": {"n": 2}}
    assert tool.output_schema is not None
    assert tool.output_schema["properties"]["x"]["type"] == "integer"


def test_the_look_for_foreign_classes_is_linear() -> None:
    made: Any = int
    for number in range(60):
        made = dataclasses.make_dataclass(f"Made{number}", [("a", made), ("b", made)])
    assert adapted(made) is made


def test_arms_and_leaves_are_those_of_the_meaning() -> None:
    assert arms(TypeAliasType("A", int | TypeAliasType("B", str | None))) == (int, str, type(None))
    assert list(leaves(Annotated[Pair[Same[int]], "x"])) == [int, int]
    assert meaning(Annotated[Said[int], "more"]).said == ("said", "more")


def test_nobody_else_takes_annotations_apart() -> None:
    private = {"get_origin", "get_args", "__value__", "__supertype__"}
    for path in Path(mcp_typed.__file__).parent.glob("*.py"):
        if path.name == "annotations.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
            assert name not in private, f"{path.name}:{getattr(node, 'lineno', 0)}: ask mcp_typed.annotations"

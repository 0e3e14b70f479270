"""What a client sees of a returned value: each row of the table, and the rules that hold for all.

One server has all the tools. A tool that cannot be registered is kept with its exception,
so that it fails its own row and no other.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, TypeAlias, cast

import msgspec
import pytest
from jsonschema import Draft202012Validator

from mcp_core import Client
from mcp_core.client import Mode
from mcp_core.types import CallToolResult
from mcp_typed import InvalidSignature, MCPServer
from tests.typed.return_rows import ABSENT, ROWS, Row
from tests.typed.return_types import Proto

STAMP = "io.modelcontextprotocol/serverInfo"
MODERN: Final = "2026-07-28"
LEGACY: Final = "legacy"

Tools: TypeAlias = tuple[MCPServer, dict[str, Exception]]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def tools() -> Tools:
    """The server, and what registration raised for the tools that it does not have."""
    mcp = MCPServer("shapes")
    refusals: dict[str, Exception] = {}
    for row in ROWS:
        try:
            mcp.add_tool(row.function, structured_output=row.structured_output)
        except Exception as exc:
            refusals[row.name] = exc
    return mcp, refusals


def rows(*chosen: Row) -> list[Any]:
    return [pytest.param(row, marks=pytest.mark.observed(row.observed), id=row.name) for row in chosen]


REGISTERED = [row for row in ROWS if row.registers]
REFUSED = [row for row in ROWS if not row.registers]
STRUCTURED = [row for row in REGISTERED if row.structured is not ABSENT and row.schema is not None]

both_eras = pytest.mark.parametrize("mode", [MODERN, LEGACY])


# --- reading what came ----------------------------------------------------------------------


def canonical(value: Any) -> str:
    """JSON by which `1`, `1.0` and `true` differ, and the order of members does not matter."""
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False)


def contents(result: CallToolResult) -> list[Any]:
    """The blocks as they are on the wire; one that is nothing but text as that text."""
    blocks: list[dict[str, Any]] = msgspec.to_builtins(result.content)
    return [steady(block["text"]) if block.keys() == {"type", "text"} else block for block in blocks]


def steady(text: str) -> str:
    """The text without what differs from run to run."""
    text = re.sub(r" at 0x[0-9A-Fa-f]+>", " at 0x…>", text)
    return re.sub(r" \(error id [0-9a-f]{8}\)$", " (error id …)", text)


async def called(tools: Tools, row: Row, mode: Mode) -> CallToolResult:
    mcp, refusals = tools
    if row.name in refusals:
        raise refusals[row.name]
    async with Client(mcp, mode=mode) as client:
        return await client.call_tool(row.name, row.arguments)


async def published(tools: Tools, mode: Mode) -> dict[str, dict[str, Any] | None]:
    mcp, refusals = tools
    async with Client(mcp, mode=mode) as client:
        listed = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
    assert listed.keys() == {row.name for row in ROWS} - refusals.keys()
    return listed


def part_of(expected: Any, value: Any) -> Any:
    """The value without the object members that are not expected."""
    if not isinstance(expected, dict) or not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    return {
        key: part_of(inner, members[key]) for key, inner in cast("dict[str, Any]", expected).items() if key in members
    }


# --- the rows -------------------------------------------------------------------------------


def test_each_observation_has_its_row() -> None:
    assert [row.observed for row in ROWS] == [f"S-{number}" for number in range(204, 432)]
    assert len({row.name for row in ROWS}) == len(ROWS)


@both_eras
@pytest.mark.parametrize("row", rows(*REGISTERED))
async def test_the_output_schema(tools: Tools, row: Row, mode: Mode) -> None:
    _, refusals = tools
    if row.name in refusals:
        raise refusals[row.name]
    schema: Any = (await published(tools, mode))[row.name]
    if row.has_more_in_schema:
        schema = part_of(row.schema, schema)
    assert canonical(schema) == canonical(row.schema)


@both_eras
@pytest.mark.parametrize("row", rows(*REGISTERED))
async def test_the_result(tools: Tools, row: Row, mode: Mode) -> None:
    result = await called(tools, row, mode)
    assert result.is_error is row.is_error
    if row.content is not None:
        assert contents(result) == row.content
    else:
        (text,) = contents(result)
        assert text.startswith(f"Error executing tool {row.name}: ")
        assert [word for word in row.words if not re.search(rf"\b{word}\b", text)] == []
    structured = row.structured if mode == MODERN else row.structured_before_2026
    if structured is ABSENT:
        assert result.structured_content is None
    else:
        assert canonical(result.structured_content) == canonical(structured)
    assert {key: value for key, value in (result.meta or {}).items() if key != STAMP} == row.meta


@pytest.mark.parametrize("row", rows(*REFUSED))
def test_what_registration_refuses(tools: Tools, row: Row) -> None:
    _, refusals = tools
    refusal = refusals.get(row.name)
    assert isinstance(refusal, InvalidSignature)
    if row.refused is not None:
        assert str(refusal) == row.refused
    assert [word for word in row.words if word not in str(refusal)] == []


@pytest.mark.observed("S-364")
async def test_a_protocol_is_read_from_whatever_has_its_attributes() -> None:
    class Other:
        def __init__(self) -> None:
            self.a = 1
            self.b = 2

    def other() -> Proto:
        return Other()

    mcp = MCPServer("protocols")
    mcp.add_tool(other)
    async with Client(mcp) as client:
        result = await client.call_tool("other")
    assert contents(result) == ['{\n  "a": 1\n}']
    assert result.structured_content == {"a": 1}


# --- the rules ------------------------------------------------------------------------------

# Arrays, but no lists of parts for the model to read one by one.
ONE_BLOCK = {"r_set", "r_frozenset", "r_nt", "r_root"}

# Results whose author built both channels.
BY_HAND = {"r_ctr", "r_ctr_noann", "r_ctr_list_structured", "r_ctr_ann_ok", "r_ctr_ann_int", "r_ctr_ann_list"}

# The block itself is content; the structured data are its members.
BLOCK = {"so_text"}

OBJECTS = {
    # models
    "r_annotated_model", "r_model", "r_model_dict", "r_model_dict_extra", "r_model_none", "r_model_wrong",
    "r_model_other", "r_model_sub", "r_model_alias", "r_model_alias_dict_name", "r_model_alias_dict_alias",
    "r_model_seralias", "r_model_computed", "r_model_rec", "r_model_extra", "r_model_forbid_dict", "r_model_doc",
    "r_ctr_ann_ok", "r_ctr_ann_bad", "r_ctr_ann_err", "r_ctr_ann_none", "r_ctr_ann_noncTR", "r_selfref", "x_generic",
    "x_generic_m", "x_cfg", "x_excl", "x_nonem", "x_model_json", "x_model_attrs", "x_rm_obj",
    # typed dicts, dataclasses and what is like them, annotated classes
    "r_td", "r_td_missing", "r_td_extra", "r_tdf", "r_tdn", "r_ttd", "r_dc", "r_dc_dict", "r_dco", "r_dcn", "x_pdc",
    "x_struct", "x_attrs", "r_ann", "r_annmethod", "x_proto", "x_child", "so_text",
    # mappings with string keys
    "r_dict_si", "r_dict_sany", "r_Dict_typing", "r_mapping", "r_dict_bad", "r_dict_coerce", "r_annotated_dict",
    "r_dict_models", "r_dict_with_image", "x_dict_none", "x_dict_bytes", "x_dict_dt", "x_dict_model",
    "x_dict_intkeys",
}  # fmt: skip

UNSTRUCTURED = {
    # nothing said, or nothing in particular
    "r_noann", "r_noann_str", "r_noann_none", "r_noann_list", "r_gen_noann", "r_mixed_noann", "r_ctr_noann",
    "r_any", "r_any_str", "r_object", "r_list_bare", "r_tuple_bare", "r_dict_bare", "r_mixed_list", "x_coro_noann",
    "x_any_model", "x_any_list", "x_any_none", "x_noann_model", "x_noann_bytes", "x_noann_dt", "x_noann_float",
    "x_noann_bool", "x_noann_dc", "x_noann_set", "x_noann_nonstrkeys", "x_noann_obj", "x_noann_cyc", "x_noann_cycd",
    "x_deep", "x_noann_block", "x_img_path", "x_img_unknown",
    # no schema for it
    "r_bytearray", "r_noannclass", "r_slots", "r_callable", "x_type", "x_never",
    # content as it is
    "r_textcontent", "r_textcontent_meta", "r_imagecontent", "r_list_content", "r_resourcelink", "r_embedded",
    "r_contentblock_union", "r_opt_content", "r_dict_content", "r_image", "r_image_jpeg", "r_audio", "r_audio_mp3",
    "r_list_str_image", "r_image_missing", "x_text_list_meta", "x_seq_content", "x_tuple_content", "x_iter_content",
    "r_ctr", "r_ctr_list_structured", "so_ctr",
    # switched off
    "sf_model", "sf_list", "sf_wrong", "sf_noannclass", "sf_dict",
}  # fmt: skip


def value_of(row: Row, structured: Any) -> Any:
    return structured if row.name in OBJECTS else structured["result"]


def says(text: str, value: Any) -> bool:
    """Whether the text is this value: a string as it is, everything else as JSON."""
    return text == value if isinstance(value, str) else canonical(json.loads(text)) == canonical(value)


@pytest.mark.observed("S-433", "S-436")
@both_eras
@pytest.mark.parametrize("row", rows(*(row for row in STRUCTURED if row.name not in BY_HAND | BLOCK)))
async def test_text_and_structured_data_say_the_same(tools: Tools, row: Row, mode: Mode) -> None:
    result = await called(tools, row, mode)
    value = value_of(row, result.structured_content)
    in_parts = isinstance(value, list) and value != [] and row.name not in ONE_BLOCK
    parts: list[Any] = cast("list[Any]", value) if in_parts else [value]
    texts = [text for text in contents(result) if isinstance(text, str)]
    assert len(result.content) == len(texts) == len(parts)
    assert [(text, part) for text, part in zip(texts, parts, strict=True) if not says(text, part)] == []


@pytest.mark.observed("S-434")
@both_eras
async def test_a_structured_result_is_never_without_content(tools: Tools, mode: Mode) -> None:
    silent = [
        row.name for row in STRUCTURED if row.name not in BY_HAND and not (await called(tools, row, mode)).content
    ]
    assert silent == []


@pytest.mark.observed("S-434")
@pytest.mark.parametrize("row", [row for row in REGISTERED if row.name in ONE_BLOCK], ids=lambda row: row.name)
async def test_what_is_no_list_of_parts_is_one_text(tools: Tools, row: Row) -> None:
    result = await called(tools, row, MODERN)
    (text,) = contents(result)
    assert text == json.dumps(result.structured_content["result"], indent=2)


@pytest.mark.observed("S-435")
@both_eras
async def test_what_is_wrapped_and_what_is_not(tools: Tools, mode: Mode) -> None:
    schemas = await published(tools, mode)
    unstructured = {name for name, schema in schemas.items() if schema is None}
    wrapped = {
        name
        for name, schema in schemas.items()
        if schema is not None
        and schema["title"] == f"{name}Output"
        and schema["properties"].keys() == {"result"}
        and schema["required"] == ["result"]
    }
    assert unstructured == UNSTRUCTURED
    assert schemas.keys() - unstructured - wrapped == OBJECTS


@pytest.mark.observed("S-435", "S-436")
@both_eras
async def test_every_output_schema_has_an_object_at_its_root(tools: Tools, mode: Mode) -> None:
    schemas = (await published(tools, mode)).items()
    assert [name for name, schema in schemas if schema is not None and schema.get("type") != "object"] == []


@pytest.mark.requirement("R-JS-02")
@pytest.mark.observed("S-436")
@both_eras
@pytest.mark.parametrize("row", rows(*STRUCTURED))
async def test_the_schema_describes_what_is_sent(tools: Tools, row: Row, mode: Mode) -> None:
    schema = (await published(tools, mode)).get(row.name)
    assert schema is not None
    Draft202012Validator.check_schema(schema)
    validator: Any = Draft202012Validator(schema)
    result = await called(tools, row, mode)
    assert [error.message for error in validator.iter_errors(result.structured_content)] == []

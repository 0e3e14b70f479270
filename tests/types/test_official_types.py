"""Holds what we encode and decode against the models of the official package, 2.3.0.

Its per-revision models ignore members they do not know, so acceptance alone says
little: what they read must also come out again as it went in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import mcp_types
import msgspec
import pytest
from mcp_types import methods as official
from pydantic import BaseModel, TypeAdapter

from mcp_core import codec, projection
from mcp_core import types as t
from mcp_core.messages import encode_response
from mcp_core.methods import METHODS
from mcp_core.results import ResultEncoder
from mcp_core.revisions import V2025_11_25, V2026_07_28
from tests.types.samples import PARAMS, RESULTS, UNFILLED, request_meta

_TASKS: Final = ("Task", "GetTaskResult", "CancelTaskResult", "TaskStatusNotificationParams")
ERAS: Final = (V2025_11_25, V2026_07_28)
_ENCODER: Final = ResultEncoder(t.Implementation(name="tides", version="0.4.2"))

TASK_REQUESTS: Final[dict[str, type[BaseModel]]] = {
    "tasks/get": mcp_types.GetTaskRequest,
    "tasks/cancel": mcp_types.CancelTaskRequest,
    "tasks/result": mcp_types.GetTaskPayloadRequest,
    "tasks/list": mcp_types.ListTasksRequest,
    "notifications/tasks/status": mcp_types.TaskStatusNotification,
}
TASK_RESULTS: Final[dict[str, type[BaseModel]]] = {
    "tasks/get": mcp_types.GetTaskResult,
    "tasks/cancel": mcp_types.CancelTaskResult,
    "tasks/list": mcp_types.ListTasksResult,
    "tasks/result": mcp_types.GetTaskPayloadResult,
}
"""The package models tasks once, and has no revision of them."""


def _cases(samples: Mapping[str, list[Any]]) -> Iterator[Any]:
    for method, values in samples.items():
        for revision in ERAS:
            for index, value in enumerate(values):
                if _exists(method, value, revision):
                    yield pytest.param(method, revision, value, id=f"{method}-{index}-{revision}")


def _exists(method: str, value: Any, revision: str) -> bool:
    if isinstance(value, t.InputRequiredResult) and revision != V2026_07_28:
        return False
    row = METHODS[method]
    # 2026-07-28 has the requests to the client inside results; `tools/call` shows them.
    return revision in row.revisions and (row.direction != "to_client" or row.is_notification or revision < V2026_07_28)


def _params(method: str, value: Any, revision: str) -> dict[str, Any]:
    """The params as they are sent."""
    if not METHODS[method].is_notification:
        value = msgspec.structs.replace(value, _meta=request_meta(revision))
    return cast("dict[str, Any]", codec.to_json(projection.project(value, revision)))


def _result(method: str, value: Any, revision: str) -> dict[str, Any]:
    """The result as it is sent."""
    if METHODS[method].direction == "to_client":
        return cast("dict[str, Any]", codec.to_json(projection.project(value, revision)))
    message = encode_response(1, *_ENCODER.encode(value, METHODS[method], revision))
    return cast("dict[str, Any]", codec.decode_any(message)["result"])


def _dump(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def _surface(method: str, revision: str) -> type[BaseModel]:
    tables = (
        official.CLIENT_REQUESTS,
        official.CLIENT_NOTIFICATIONS,
        official.SERVER_REQUESTS,
        official.SERVER_NOTIFICATIONS,
    )
    return next(table[method, revision] for table in tables if (method, revision) in table)


def _decoded(data: dict[str, Any], kind: Any) -> Any:
    return codec.decoder(kind)(codec.encode(data))


def _type(value: object) -> Any:
    return type(value)


def _parsed_params(method: str, revision: str, params: dict[str, Any]) -> dict[str, Any]:
    """The params as the package gives them to its users, dumped again."""
    body = {"method": method, "params": params}
    if method in TASK_REQUESTS:
        model: BaseModel = TASK_REQUESTS[method].model_validate(body)
    elif (method, revision) in official.CLIENT_REQUESTS:
        model = official.parse_client_request(method, revision, params)
    elif (method, revision) in official.CLIENT_NOTIFICATIONS:
        model = official.parse_client_notification(method, revision, params)
    elif (method, revision) in official.SERVER_REQUESTS:
        model = official.parse_server_request(method, revision, params)
    else:
        model = official.parse_server_notification(method, revision, params)
    return cast("dict[str, Any]", _dump(model)["params"])


def _parsed_result(method: str, revision: str, result: dict[str, Any]) -> dict[str, Any]:
    if method in TASK_RESULTS:
        return _dump(TASK_RESULTS[method].model_validate(result))
    if METHODS[method].direction == "to_client":
        return _dump(official.parse_client_result(method, revision, result))
    return _dump(official.parse_server_result(method, revision, result))


# --- the samples ----------------------------------------------------------------------


def _filled(value: Any) -> Iterator[tuple[type[msgspec.Struct], str]]:
    if isinstance(value, dict):
        for item in cast("dict[str, Any]", value).values():
            yield from _filled(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _filled(item)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            member = getattr(value, name)
            if member is not None:
                yield type(value), name
                yield from _filled(member)


def test_samples_fill_every_member() -> None:
    filled = {pair for samples in (PARAMS, RESULTS) for values in samples.values() for pair in _filled(values)}
    kinds = {kind for kind, _ in filled}
    empty = {(kind.__name__, name) for kind in kinds for name in kind.__struct_fields__ if (kind, name) not in filled}
    # `_meta` is one member of one base; that tasks share theirs is worth a line each.
    assert {(kind, name) for kind, name in empty if name != "_meta" or kind in _TASKS} == set(UNFILLED)


def test_there_are_samples_for_every_method() -> None:
    assert set(PARAMS) == set(METHODS)
    assert set(RESULTS) == {name for name, row in METHODS.items() if not row.is_notification}


# --- params ---------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "revision", "value"), list(_cases(PARAMS)))
def test_params_are_read_whole_by_the_official_models(method: str, revision: str, value: Any) -> None:
    params = _params(method, value, revision)
    if method in TASK_REQUESTS:
        assert _parsed_params(method, revision, params) == params
        return
    frame: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if not METHODS[method].is_notification:
        frame["id"] = 1
    assert _dump(_surface(method, revision).model_validate(frame, by_name=False)) == frame


@pytest.mark.parametrize(("method", "revision", "value"), list(_cases(PARAMS)))
def test_params_of_the_official_models_are_read_as_the_same(method: str, revision: str, value: Any) -> None:
    params = _params(method, value, revision)
    decoded = _decoded(_parsed_params(method, revision, params), _type(value))
    assert codec.to_json(decoded) == params


# --- results --------------------------------------------------------------------------


@pytest.mark.requirement("R-BASE-09")
@pytest.mark.requirement("R-CACHE-01")
@pytest.mark.parametrize(("method", "revision", "value"), list(_cases(RESULTS)))
def test_results_are_read_whole_by_the_official_models(method: str, revision: str, value: Any) -> None:
    result = _result(method, value, revision)
    if method in TASK_RESULTS:
        assert _parsed_result(method, revision, result) == result
        return
    table = official.CLIENT_RESULTS if METHODS[method].direction == "to_client" else official.SERVER_RESULTS
    kind: Any = table[method, revision]
    model: TypeAdapter[BaseModel] = TypeAdapter(kind)
    assert _dump(model.validate_python(result, by_name=False)) == result


@pytest.mark.parametrize(("method", "revision", "value"), list(_cases(RESULTS)))
def test_results_of_the_official_models_are_read_as_the_same(method: str, revision: str, value: Any) -> None:
    result = _result(method, value, revision)
    decoded = _decoded(_parsed_result(method, revision, result), _type(value))
    assert _result(method, decoded, revision) == result
    if isinstance(value, t.MetaObject):
        # The server's stamp apart, it is what the revision was to be told of the value.
        told = _decoded(codec.to_json(projection.project(value, revision)), _type(value))
        assert msgspec.structs.replace(decoded, _meta=value.meta) == told

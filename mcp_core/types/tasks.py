"""Tasks of revision 2025-11-25, as types: the core serves none by itself.

Spec: 2025-11-25/basic/utilities/tasks.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from mcp_core.types.base import MetaObject, RequestParams, Result

__all__ = [
    "CancelTaskResult",
    "CreateTaskResult",
    "GetTaskResult",
    "ListTasksResult",
    "Task",
    "TaskParams",
    "TaskStatus",
    "TaskStatusNotificationParams",
]

TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]


class Task(MetaObject, kw_only=True):
    """The state of a task. `ttl` and `poll_interval` are in milliseconds.

    `_meta` is used only where the task is a whole result or params.
    """

    task_id: str
    status: TaskStatus
    created_at: str
    last_updated_at: str
    ttl: int | None
    status_message: str | None = None
    poll_interval: int | None = None


class TaskParams(RequestParams, kw_only=True):
    """Params of `tasks/get`, `tasks/result` and `tasks/cancel`."""

    task_id: str


class CreateTaskResult(Result, kw_only=True):
    """A call was accepted as a task."""

    task: Task


class GetTaskResult(Task, kw_only=True):
    """The task as it stands."""

    result_type: str = "complete"


class CancelTaskResult(GetTaskResult, kw_only=True):
    """The task, cancelled."""


class ListTasksResult(Result, kw_only=True):
    """One page of the tasks."""

    tasks: list[Task]
    next_cursor: str | None = None


class TaskStatusNotificationParams(Task, kw_only=True):
    """The task changed."""

"""The wire types, one module a feature; all of them are importable from here."""

from mcp_core.types import (
    base,
    completion,
    content,
    elicitation,
    input_required,
    lifecycle,
    logging,
    notifications,
    prompts,
    resources,
    roots,
    sampling,
    subscriptions,
    tasks,
    tools,
)
from mcp_core.types.base import *
from mcp_core.types.completion import *
from mcp_core.types.content import *
from mcp_core.types.elicitation import *
from mcp_core.types.input_required import *
from mcp_core.types.lifecycle import *
from mcp_core.types.logging import *
from mcp_core.types.notifications import *
from mcp_core.types.prompts import *
from mcp_core.types.resources import *
from mcp_core.types.roots import *
from mcp_core.types.sampling import *
from mcp_core.types.subscriptions import *
from mcp_core.types.tasks import *
from mcp_core.types.tools import *

# Named, or `from mcp_core.types import *` would bring the modules too, `logging` among them.
__all__ = (  # pyright: ignore[reportUnsupportedDunderAll]
    base.__all__
    + completion.__all__
    + content.__all__
    + elicitation.__all__
    + input_required.__all__
    + lifecycle.__all__
    + logging.__all__
    + notifications.__all__
    + prompts.__all__
    + resources.__all__
    + roots.__all__
    + sampling.__all__
    + subscriptions.__all__
    + tasks.__all__
    + tools.__all__
)

"""The wire types, one module a feature; all of them are importable from here."""

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

"""The client: typed requests to any MCP server, in either era."""

from mcp_core.client.callbacks import ClientRequestContext
from mcp_core.client.client import Client, Mode
from mcp_core.client.listening import Subscription
from mcp_core.client.targets import Target
from mcp_core.transports.process import StdioServerParameters

__all__ = ["Client", "ClientRequestContext", "Mode", "StdioServerParameters", "Subscription", "Target"]

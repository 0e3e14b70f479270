"""Handshake, discovery, and the capabilities of either side.

Spec: basic/lifecycle (handshake era); server/discover; basic/versioning.
"""

from __future__ import annotations

from mcp_core.types.base import CacheableResult, Implementation, JSONObject, RequestParams, Result, Wire

__all__ = [
    "ClientCapabilities",
    "DiscoverResult",
    "ElicitationCapability",
    "InitializeRequestParams",
    "InitializeResult",
    "PromptsCapability",
    "ResourcesCapability",
    "RootsCapability",
    "SamplingCapability",
    "ServerCapabilities",
    "ToolsCapability",
]


class RootsCapability(Wire, kw_only=True):
    """`list_changed` belongs to the handshake era."""

    list_changed: bool | None = None


class SamplingCapability(Wire, kw_only=True):
    """What of sampling the client supports beyond plain messages."""

    context: JSONObject | None = None
    tools: JSONObject | None = None


class ElicitationCapability(Wire, kw_only=True):
    """The modes the client supports; neither named means forms only."""

    form: JSONObject | None = None
    url: JSONObject | None = None


class ClientCapabilities(Wire, kw_only=True):
    """What the client offers to the server."""

    experimental: JSONObject | None = None
    roots: RootsCapability | None = None
    sampling: SamplingCapability | None = None
    elicitation: ElicitationCapability | None = None
    tasks: JSONObject | None = None
    extensions: dict[str, JSONObject] | None = None


class PromptsCapability(Wire, kw_only=True):
    """Prompts are served."""

    list_changed: bool | None = None


class ResourcesCapability(Wire, kw_only=True):
    """Resources are served."""

    subscribe: bool | None = None
    list_changed: bool | None = None


class ToolsCapability(Wire, kw_only=True):
    """Tools are served."""

    list_changed: bool | None = None


class ServerCapabilities(Wire, kw_only=True):
    """What the server offers to the client."""

    experimental: JSONObject | None = None
    logging: JSONObject | None = None
    completions: JSONObject | None = None
    prompts: PromptsCapability | None = None
    resources: ResourcesCapability | None = None
    tools: ToolsCapability | None = None
    tasks: JSONObject | None = None
    extensions: dict[str, JSONObject] | None = None


class InitializeRequestParams(RequestParams, kw_only=True):
    """The opening of the handshake era: the revision wanted, and who asks."""

    protocol_version: str
    capabilities: ClientCapabilities
    client_info: Implementation


class InitializeResult(Result, kw_only=True):
    """The revision agreed on, and who answers."""

    protocol_version: str
    capabilities: ServerCapabilities
    server_info: Implementation
    instructions: str | None = None


class DiscoverResult(CacheableResult, kw_only=True):
    """What the server is and serves, asked without a handshake."""

    supported_versions: list[str]
    capabilities: ServerCapabilities
    instructions: str | None = None

    @property
    def server_info(self) -> JSONObject | None:
        """The server's `Implementation` in JSON form, where it gave one."""
        return (self.meta or {}).get("io.modelcontextprotocol/serverInfo")

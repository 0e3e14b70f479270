"""What everybody may read without a token, pages of any origin among them.

Knows HTTP; nothing of JSON-RPC.
Spec: RFC 9728, section 3.
"""

from __future__ import annotations

from typing import Final

from mcp_core.errors import InvalidRequest
from mcp_core.observers import Observers
from mcp_core.transports.streamable_http.bearer import BearerGuard
from mcp_core.transports.streamable_http.exchange import ASGIReceive, ASGISend, Exchange, Refused, Scope
from mcp_core.transports.streamable_http.parsed_headers import Header

__all__ = ["ProtectedResourceMetadata", "publish", "without_root"]


class ProtectedResourceMetadata:
    """The ASGI app of a server's protected resource metadata, for a host that owns its path.

    `app.mount("/.well-known/oauth-protected-resource", mcp_app.metadata)`, or one route at `path`.
    """

    def __init__(self, bearer: BearerGuard) -> None:
        self._bearer = bearer
        self.path: str = bearer.metadata_path
        """The path of the URL that challenges name."""

    async def __call__(self, scope: Scope, receive: ASGIReceive, send: ASGISend) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            return
        exchange = Exchange(scope, receive, send, Observers())
        try:
            if not self._bearer.publishes_at(scope["path"], without_root(scope), mounted=True):
                raise Refused(404, InvalidRequest(f"nothing is served here; the metadata is at {self.path}"))
            await publish(exchange, self._bearer.metadata)
        except Refused as refused:
            await exchange.refuse(refused)


def without_root(scope: Scope) -> str:
    """Return where a request goes, below the place that the app is mounted at, with or without a slash at the end.

    Clients and proxies do not follow redirects of a POST.
    """
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    if root and (path == root or path.startswith(f"{root.rstrip('/')}/")):
        path = path[len(root) :]
    return path.rstrip("/")


async def publish(exchange: Exchange, body: bytes) -> None:
    """Answer with what everybody may read.

    Raises:
        Refused: It is not asked for, but something else (405).
    """
    if exchange.method == "OPTIONS":
        await exchange.publish(204, b"", [_ANY_ORIGIN, *_PREFLIGHT])
    elif exchange.method in ("GET", "HEAD"):
        await exchange.publish(200, body, [_ANY_ORIGIN])
    else:
        raise Refused(405, InvalidRequest("Method Not Allowed"), headers=[(b"allow", b"GET, HEAD, OPTIONS")])


_PREFLIGHT: Final[list[Header]] = [
    (b"access-control-allow-methods", b"GET, HEAD, OPTIONS"),
    (b"access-control-allow-headers", b"*"),
]
_ANY_ORIGIN: Final[Header] = (b"access-control-allow-origin", b"*")

"""A server that wants a token with every request."""

from mcp_core.auth import AccessToken, AuthSettings
from mcp_typed import Context, MCPServer

mcp = MCPServer("Tides")


class Introspection:
    """Asks whoever issued the token; here a dict."""

    def __init__(self) -> None:
        self.known = {"t0k3n": ["tides:read"]}

    async def verify_token(self, token: str) -> AccessToken | None:
        scopes = self.known.get(token)
        if scopes is None:
            return None
        return AccessToken(token=token, client_id="app", scopes=scopes, resource="https://tides.example/mcp")


@mcp.tool
def who(ctx: Context) -> str:
    """Who is calling."""
    return ctx.auth.client_id if ctx.auth is not None else "nobody"


@mcp.tool
async def correct(ctx: Context, harbour: str, minutes: int) -> str:
    """Correct the tide table of a harbour."""
    ctx.require_scopes("tides:write")
    return f"{harbour} is {minutes} minutes later"


app = mcp.streamable_http_app(
    auth=AuthSettings(
        issuer_url="https://login.example",
        resource_server_url="https://tides.example/mcp",
        required_scopes=["tides:read"],
    ),
    token_verifier=Introspection(),
)

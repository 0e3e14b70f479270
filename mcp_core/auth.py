"""Who calls over HTTP: access tokens, and who can tell a good one.

A server is a resource server only: it checks tokens and says where to get them.
Spec: basic/authorization; RFC 6750, RFC 8707, RFC 9728. R-AUTH-02 to R-AUTH-08.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, cast

import msgspec

__all__ = ["AccessToken", "AuthSettings", "Principal", "TokenVerifier", "principal_of"]

Principal: TypeAlias = tuple[str, str | None, str | None]
"""Who a caller is: client id, subject, issuer."""


class AccessToken(msgspec.Struct, kw_only=True, frozen=True):
    """A verified access token. `expires_at` is in seconds since the epoch.

    `resource` is whom it was issued for (its audience), one URL or several; a token for
    another audience is refused. Never pass the token on to another service (R-AUTH-08).
    """

    token: str
    client_id: str
    scopes: list[str] = []
    expires_at: float | None = None
    resource: str | list[str] | None = None
    subject: str | None = None
    claims: dict[str, Any] = {}

    @property
    def principal(self) -> Principal:
        """Return who was authorized; scopes and lifetime of the token do not matter."""
        return principal_of(self)


def principal_of(token: object) -> Principal:
    """Return the principal of a token; `TokenVerifier` may have returned a class of its own."""
    subject: object = getattr(token, "subject", None)
    claims: object = getattr(token, "claims", None)
    issuer = cast("dict[str, object]", claims).get("iss") if isinstance(claims, dict) else None
    return (
        str(getattr(token, "client_id", None)),
        None if subject is None else str(subject),
        None if issuer is None else str(issuer),
    )


class TokenVerifier(Protocol):
    """Verifies Bearer tokens: by their signature, or by asking who issued them."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what the token stands for; `None` if it is not valid."""
        ...


class AuthSettings(msgspec.Struct, kw_only=True, frozen=True):
    """What clients learn about getting a token, and what a token must be valid for.

    `issuer_url` is the authorization server, `resource_server_url` this server's own
    address as clients see it: tokens must be issued for it, unless `check_resource` is
    off. `required_scopes` are needed by every request. `resource_metadata_url` is where clients find the protected
    resource metadata, if that is not at the root of this server's host, where RFC 9728 has it.
    """

    issuer_url: str
    resource_server_url: str
    required_scopes: list[str] = []
    check_resource: bool = True
    service_documentation_url: str | None = None
    resource_metadata_url: str | None = None

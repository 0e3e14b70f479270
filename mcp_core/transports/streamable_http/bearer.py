"""Bearer tokens: who may call, and where a client learns how to get a token.

Knows HTTP headers and `mcp_core.auth`; nothing of JSON-RPC beyond the form of an error.
Spec: basic/authorization; RFC 6750, section 3; RFC 9728. R-AUTH-02 to R-AUTH-07.
"""

from __future__ import annotations

import time
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_core import codec
from mcp_core.auth import AccessToken, AuthSettings, TokenVerifier
from mcp_core.codec import JSONObject
from mcp_core.errors import InternalError, InvalidRequest
from mcp_core.queue_logger import QueueLogger
from mcp_core.transports.streamable_http.exchange import Refused
from mcp_core.transports.streamable_http.parsed_headers import Header, ParsedHeaders

__all__ = ["BearerGuard"]

_log = QueueLogger(__name__)
_MOST_KINDS: Final = 16

_WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"


class BearerGuard:
    """Lets in requests with a good token only."""

    def __init__(self, settings: AuthSettings, verifier: TokenVerifier) -> None:
        self._settings = settings
        self._verifier = verifier
        self._resource = _canonical(settings.resource_server_url)  # what a token's audience is compared with (RFC 8707)
        own = urlsplit(settings.resource_server_url)
        self._path = own.path.rstrip("/")
        self._metadata_url = settings.resource_metadata_url or f"{own.scheme}://{own.netloc}{_WELL_KNOWN}{self._path}"
        self.metadata_path: Final = urlsplit(self._metadata_url).path.rstrip("/")
        """The path of the URL that challenges name."""
        self.metadata_paths: Final = frozenset({_WELL_KNOWN, f"{_WELL_KNOWN}{self._path}", self.metadata_path})
        """Where the metadata is served, without a slash at the end."""
        self._seen_to_raise: set[str] = set()  # kinds of exceptions that were logged with their traceback: one each

    def publishes_at(self, *paths: str, mounted: bool = False) -> bool:
        """Return whether the metadata is to be found at one of these, as they are seen here.

        A proxy may have taken a prefix off. What is `mounted` for nothing else is asked at the mount's own path, too.
        """
        shown = [path.rstrip("/") for path in paths]
        if any(path in self.metadata_paths for path in shown) or (mounted and ("" in shown or self._path in shown)):
            return True
        return any(path.startswith(_WELL_KNOWN) and self.metadata_path.endswith(path) for path in shown)

    @property
    def metadata(self) -> bytes:
        """The protected resource metadata (RFC 9728)."""
        settings = self._settings
        shown: JSONObject = {
            "resource": settings.resource_server_url,
            "authorization_servers": [settings.issuer_url],
            "bearer_methods_supported": ["header"],
        }
        if settings.required_scopes:
            shown["scopes_supported"] = settings.required_scopes
        if settings.service_documentation_url is not None:
            shown["resource_documentation"] = settings.service_documentation_url
        return codec.encode(shown)

    async def check(self, head: ParsedHeaders) -> AccessToken:
        """Return the caller's token.

        Raises:
            Refused: There is none (401), it is malformed (400), not good (401), or good for too
                little (403).
        """
        given = head.text(b"authorization")
        if given is None:
            raise self._challenge(401, "a Bearer token is needed")
        if b"authorization" in head.repeated:
            raise self._challenge(400, "Authorization may be sent once", "invalid_request")
        scheme, _, token = given.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer":
            raise self._challenge(401, "a Bearer token is needed")
        if not token or " " in token:
            raise self._challenge(400, "Authorization must be: Bearer, a space, and the token", "invalid_request")
        access = await self._verified(token)
        if access is None:
            raise self._challenge(401, "the token is not valid", "invalid_token")
        if access.expires_at is not None and access.expires_at <= time.time():
            raise self._challenge(401, "the token has expired", "invalid_token")
        if self._settings.check_resource and not self._is_for_us(access):
            ours = self._settings.resource_server_url
            raise self._challenge(401, f"the token was not issued for {ours}", "invalid_token")
        if not set(self._settings.required_scopes) <= set(access.scopes):
            raise self._challenge(403, "the token's scope is too small", "insufficient_scope")
        return access

    async def _verified(self, token: str) -> AccessToken | None:
        """Return what the author's verifier says of a token.

        Raises:
            Refused: It fails (500), which may be for what a stranger has sent: so it is logged at length once.
        """
        try:
            access: Any = await self._verifier.verify_token(token)
            if access is not None and not hasattr(access, "client_id"):
                raise TypeError(f"verify_token returned {type(access).__name__}; expected an AccessToken or None")
        except Exception as exc:
            kind = type(exc).__name__
            if kind not in self._seen_to_raise and len(self._seen_to_raise) < _MOST_KINDS:
                self._seen_to_raise.add(kind)
                _log.error("the token verifier raised %s", kind, exc=exc)
            else:
                _log.warning("the token verifier raised %s again", kind)
            raise Refused(500, InternalError("Internal server error")) from None
        return access  # type: ignore[no-any-return]

    def step_up(self, scopes: tuple[str, ...]) -> Header:
        """Return the challenge to a caller whose token is good, but not for what it asks for (R-AUTH-06)."""
        needed = [*self._settings.required_scopes, *scopes]
        return self._header("the token's scope is too small", "insufficient_scope", list(dict.fromkeys(needed)))

    def _is_for_us(self, access: AccessToken) -> bool:
        if access.resource is None:
            return False
        audiences = [access.resource] if isinstance(access.resource, str) else access.resource
        return any(_canonical(audience) == self._resource for audience in audiences) and self._resource is not None

    def _challenge(self, status: int, reason: str, error: str | None = None) -> Refused:
        header = self._header(reason, error, self._settings.required_scopes)
        return Refused(status, InvalidRequest(f"{_STATUS[status]}: {reason}"), headers=[header])

    def _header(self, reason: str, error: str | None, scopes: list[str]) -> Header:
        parts = [] if error is None else [f'error="{error}"', f'error_description="{reason}"']
        if scopes:
            parts.append(f'scope="{" ".join(scopes)}"')
        parts.append(f'resource_metadata="{self._metadata_url}"')
        return b"www-authenticate", f"Bearer {', '.join(parts)}".encode("latin-1")


_STATUS: Final = {400: "Unauthorized", 401: "Unauthorized", 403: "Forbidden"}


def _canonical(url: str) -> str | None:
    """Return a server's address as addresses are compared; `None` for what is none (R-AUTH-19).

    Scheme and host are in lower case, there is no slash at the end and never a fragment.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.fragment:
        return None
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path.rstrip('/')}{query}"

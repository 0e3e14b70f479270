"""Access tokens that are JSON Web Tokens, checked by signature.

Needs the extra `jwt`. Spec: RFC 9068; basic/authorization, "Token Handling".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from mcp_core.auth import AccessToken
from mcp_core.codec import JSONObject
from mcp_core.threads import WorkerThreads

try:
    import jwt
except ImportError as _exc:  # pragma: no cover - shown by a test in an environment without it
    raise ImportError('JWTVerifier needs PyJWT; install it with: pip install "mcpcore[jwt]"') from _exc

__all__ = ["JWTVerifier"]

_ASYMMETRIC: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


class JWTVerifier:
    """Checks signature, issuer, audience and time of a JWT.

    The key is `key` (a public key in PEM, or a shared secret with an HMAC algorithm named
    in `algorithms`), or it is looked up by its id at `jwks_url` and kept. `leeway` is in
    seconds.
    """

    def __init__(
        self,
        *,
        issuer: str,
        audience: str | Sequence[str],
        key: object = None,
        jwks_url: str | None = None,
        algorithms: Sequence[str] = _ASYMMETRIC,
        leeway: float = 0.0,
    ) -> None:
        if (key is None) == (jwks_url is None):
            raise ValueError("JWTVerifier takes either key or jwks_url")
        if "none" in map(str.lower, algorithms):
            raise ValueError("a token without a signature proves nothing")
        self._issuer = issuer
        self._audience = audience
        self._key = key
        self._jwks = None if jwks_url is None else jwt.PyJWKClient(jwks_url, cache_keys=False)
        self._algorithms = list(algorithms)
        self._leeway = leeway
        self._threads = WorkerThreads(4)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what the token stands for; `None` if it is not valid.

        Raises:
            PyJWKClientConnectionError: The keys cannot be fetched.
        """
        try:
            claims = self._claims(token, self._key) if self._jwks is None else await self._looked_up(token)
        except jwt.PyJWKClientConnectionError:
            raise  # whether the token is good is not known
        except (jwt.PyJWTError, TypeError, ValueError):
            return None  # TypeError: its header names an algorithm that the key is not for
        expires_at = claims["exp"]
        if not isinstance(expires_at, int | float):
            return None
        audience = claims.get("aud")
        scope: Any = claims.get("scope") or claims.get("scp") or ""
        subject = claims.get("sub")
        return AccessToken(
            token=token,
            client_id=str(claims.get("client_id") or claims.get("azp") or subject or ""),
            scopes=scope.split() if isinstance(scope, str) else [str(item) for item in scope],
            expires_at=expires_at + self._leeway,
            resource=audience,
            subject=None if subject is None else str(subject),
            claims=claims,
        )

    async def _looked_up(self, token: str) -> JSONObject:
        jwks = cast("jwt.PyJWKClient", self._jwks)
        # It fetches with blocking calls.
        return await self._threads.run(lambda: self._claims(token, jwks.get_signing_key_from_jwt(token).key))

    def _claims(self, token: str, key: Any) -> JSONObject:
        return jwt.decode(
            token,
            key,
            algorithms=self._algorithms,
            audience=self._audience,
            issuer=self._issuer,
            leeway=self._leeway,
            options={"require": ["exp", "iss", "aud"]},
        )

"""What a handler is given: its request, its client, and the ways to talk back.

Knows the peer as a Protocol only, so that a handler cannot tell which transport, or
which era, called it.
Spec: basic/patterns (progress, mrtr); server/utilities/logging; client/elicitation,
sampling, roots.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeAlias, cast

import msgspec
from msgspec import Raw

from mcp_core import codec, projection, request_meta
from mcp_core import types as t
from mcp_core.codec import JSONObject
from mcp_core.errors import InsufficientScope, InvalidResult, LocalProtocolError, MissingClientCapability
from mcp_core.messages import RequestId, encode_notification, raw_params
from mcp_core.methods import METHODS
from mcp_core.queue_logger import QueueLogger
from mcp_core.results import require_capability
from mcp_core.revisions import V2025_11_25, is_modern
from mcp_core.session import Handshake
from mcp_core.subscriptions import Event, PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged

__all__ = ["AnyContext", "MCPDeprecationWarning", "Peer", "RequestContext"]

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from mcp_core.auth import AccessToken
    from mcp_core.server import Server

    L = TypeVar("L", default=JSONObject)
else:
    from typing import TypeVar

    # The default, for contexts that name no lifespan, is for type checkers only: it
    # came to Python in 3.13.
    L = TypeVar("L")

_log = QueueLogger(__name__)


_OF_THE_SESSION: Final = frozenset(
    row.name
    for row in METHODS.values()
    if row.is_notification
    and row.direction != "to_server"
    and row.name not in ("notifications/progress", "notifications/message", "notifications/cancelled")
)
"""Notifications that are of use to a client whatever has become of the request in which they are sent."""


class MCPDeprecationWarning(DeprecationWarning):
    """A feature that the specification deprecates from 2026-07-28 on; it still works."""


def warn_deprecated(feature: str, *, above: int = 3) -> None:
    """Warn the author, whose code is so many frames above."""
    warnings.warn(f"{feature} is deprecated from revision 2026-07-28 on", MCPDeprecationWarning, stacklevel=above)


def _check_number(name: str, value: object) -> None:
    """
    Raises:
        ValueError: JSON has no such number.
    """
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number; got {value!r}")


def _check_level(level: object) -> None:
    """
    Raises:
        ValueError: There is no such level.
    """
    if not isinstance(level, str) or level not in t.LOGGING_LEVELS:
        raise ValueError(f"level must be one of {', '.join(t.LOGGING_LEVELS)}; got {level!r}")


class Peer(Protocol):
    """The other side of one request, as the transport sees it."""

    @property
    def handshake(self) -> Handshake | None:
        """What `initialize` settled; `None` where it was not called."""
        ...

    @property
    def headers(self) -> Mapping[str, str] | None:
        """The HTTP headers of the request, names in lower case; `None` elsewhere."""
        ...

    @property
    def auth(self) -> AccessToken | None:
        """The caller's verified token; `None` where the transport asks for none."""
        ...

    @property
    def shakes_hands(self) -> bool:
        """Whether `initialize` settles something here: then `handshake` can be set."""
        ...

    @property
    def reaches_client(self) -> bool:
        """Whether requests of ours could reach the client, whatever it has declared."""
        ...

    @property
    def server(self) -> Server[Any]:
        """The server that serves the request."""
        ...

    @property
    def lifespan_context(self) -> Any:
        """What the server's lifespan yielded."""
        ...

    def notify(self, message: bytes) -> None:
        """Send a notification that belongs to the request."""
        ...

    async def wait_writable(self) -> None:
        """Wait while the peer does not read what it was sent."""
        ...

    async def request(self, method: str, params: object, timeout: float | None) -> Raw:
        """Make a request of the client, and wait for its result."""
        ...

    async def close_stream(self, retry: float) -> None:
        """End the stream of the response early, if there is one that can be resumed."""
        ...

    def notify_session(self, message: bytes) -> bool:
        """Send a notification that belongs to no request; whether there is a way to."""
        ...

    def is_cancelled(self, request_id: RequestId) -> bool:
        """Return whether the client has cancelled this request, or disconnected."""
        ...

    def on_close(self, call: Callable[[], None]) -> Callable[[], None]:
        """Register a callback for the end of input. Returns an idempotent function that unregisters it."""
        ...


class RequestContext(Generic[L]):
    """One message of a client, and what can be done while it is handled.

    Belongs to its handler: after the answer nothing more is sent through it.
    """

    __slots__ = (
        "_answered",
        "_meta",
        "_origin",
        "_override",
        "_peer",
        "_progress",
        "_raw",
        "method",
        "protocol_version",
        "request_id",
    )

    def __init__(
        self,
        peer: Peer,
        request_id: RequestId | None,
        method: str,
        raw: Raw | bytes,
        protocol_version: str,
        meta: JSONObject | None,
    ) -> None:
        self._peer = peer
        self.request_id: RequestId | None = request_id
        self.method: str = method
        self._raw = raw
        self.protocol_version: str = protocol_version
        self._meta = meta
        self._override: JSONObject | None = None
        self._origin: RequestContext[L] | None = None
        self._answered = False
        self._progress: float | None = None

    # --- the request --------------------------------------------------------------------

    @property
    def params(self) -> JSONObject:
        """The params as a plain dict, as they arrived. Decoded at each call."""
        if self._override is not None:
            return self._override
        return cast("JSONObject", codec.decode_any(self.raw_params))

    @property
    def raw_params(self) -> Raw:
        """The params as the bytes they arrived in (or as a middleware replaced them)."""
        if not isinstance(self._raw, Raw):  # of the whole message: params are cut out on demand
            self._raw = raw_params(self._raw)
        return self._raw

    @property
    def meta(self) -> JSONObject:
        """The `_meta` of the params, with all its keys; empty when absent."""
        return self._meta or {}

    @property
    def headers(self) -> Mapping[str, str] | None:
        """The HTTP headers of the request, names in lower case; `None` on other transports."""
        return self._peer.headers

    @property
    def auth(self) -> AccessToken | None:
        """The caller's `AccessToken`, where the transport asks for one; otherwise `None`."""
        return self._peer.auth

    def require_scopes(self, *scopes: str) -> None:
        """Go on only if the caller's token has all of these scopes.

        Ask for all that the operation needs at once, before anything is sent. Where no
        token is asked for, nothing is required. A verifier that knows of broader scopes
        lists what they contain (R-AUTH-07).

        Raises:
            InsufficientScope: It has not; let it pass, and the client learns what it needs.
        """
        auth = self.auth
        if auth is not None and not set(scopes) <= set(auth.scopes):
            raise InsufficientScope(*scopes)

    @property
    def lifespan_context(self) -> L:
        """What the server's lifespan yielded."""
        return cast("L", self._peer.lifespan_context)

    @property
    def server(self) -> Server[L]:
        """The server."""
        return self._peer.server

    @property
    def peer(self) -> Peer:
        """The other side as the transport sees it; for handlers of protocol methods."""
        return self._peer

    @property
    def session(self) -> RequestContext[L]:
        """The context itself, which carries the methods that the official SDK has on its session."""
        return self

    @property
    def client_info(self) -> t.Implementation | None:
        """Who the client says it is. Not to be trusted, and no ground for other behaviour."""
        if self._is_modern:
            return request_meta.read_client_info(self.meta)
        handshake = self._peer.handshake
        return None if handshake is None else handshake.client_info

    @property
    def client_capabilities(self) -> t.ClientCapabilities:
        """What the client declared, for this request (modern) or in the handshake."""
        if self._is_modern:
            return request_meta.read_capabilities(self.meta)
        handshake = self._peer.handshake
        return t.ClientCapabilities() if handshake is None else handshake.capabilities

    @property
    def _is_modern(self) -> bool:
        return is_modern(self.protocol_version)

    def replace(self, *, params: JSONObject) -> RequestContext[L]:
        """Return the same context with other params, for a middleware to pass on."""
        other: RequestContext[L] = RequestContext(
            self._peer, self.request_id, self.method, Raw(codec.encode(params)), self.protocol_version, self._meta
        )
        other._override = params
        other._origin = self
        if isinstance(params.get("_meta"), dict):
            other._meta = params["_meta"]
        return other

    # --- while it is handled ---------------------------------------------------------------

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send progress to the client, if it asked for it.

        Nothing is sent after the response, nor a `progress` that does not grow (R-PROG-02).
        Waits while the client does not read.

        Raises:
            ValueError: `progress` or `total` is not a number, or none that JSON has.
        """
        _check_number("progress", progress)
        if total is not None:
            _check_number("total", total)
        token = self.meta.get("progressToken")
        if token is None or self._is_over:
            return
        if self._progress is not None and progress <= self._progress:
            _log.debug("progress %s of %s does not grow; not sent", progress, self.method)
            return
        self._progress = progress
        await self._send(
            "notifications/progress",
            t.ProgressNotificationParams(progress_token=token, progress=progress, total=total, message=message),
        )

    async def log(self, level: t.LoggingLevel, data: Any, logger: str | None = None) -> None:
        """Send the client a log message, if it wants messages of this level.

        A 2026-07-28 client wants those that its request asks for, an older one those at
        or above the level it set. A server that does not declare `logging` sends none.

        Raises:
            ValueError: There is no such level.
        """
        _check_level(level)
        warn_deprecated("logging")
        if self._is_over or not self._wants_log(level):
            return
        if not self._peer.server.declares_logging:
            _log.warning("a log message was not sent: the server declares no logging (on_set_logging_level)")
            return
        await self._send(
            "notifications/message", t.LoggingMessageNotificationParams(level=level, data=data, logger=logger)
        )

    def _wants_log(self, level: t.LoggingLevel) -> bool:
        if self._is_modern:
            least = self.meta.get(request_meta.LOG_LEVEL)
            return least is not None and t.LOGGING_LEVELS[level] >= t.LOGGING_LEVELS[least]
        handshake = self._peer.handshake
        return handshake is not None and handshake.wants_log(level)

    async def notify(self, method: str, params: Any = None) -> None:
        """Send a notification that belongs to this request, of any method.

        After the answer it is dropped, unless it belongs to the session as well, as
        `notifications/elicitation/complete` does: then it is sent all the same, over HTTP on the
        stream of the client's GET. Where there is none, it is dropped with a log record.
        """
        if not self._is_over:
            await self._send(method, params)
        elif method in _OF_THE_SESSION:
            message = encode_notification(method, projection.project(params, self.protocol_version))
            if not self._peer.notify_session(message):
                _log.warning("%s was not sent: its request is over, and its client has no other stream", method)

    async def close_stream(self, retry: float = 1.0) -> None:
        """End the HTTP stream of the response now; the client comes back for the rest after `retry` seconds.

        For long calls of handshake-era clients, on a server with an event store; elsewhere
        it does nothing.
        """
        await self._peer.close_stream(retry)

    async def _send(self, method: str, params: Any) -> None:
        self._peer.notify(encode_notification(method, projection.project(params, self.protocol_version)))
        await self._peer.wait_writable()

    @property
    def _is_over(self) -> bool:
        """Whether the request is answered or cancelled: nothing may be sent for it then."""
        if self._origin is not None and self._origin._is_over:
            return True
        return self._answered or (self.request_id is not None and self._peer.is_cancelled(self.request_id))

    def close(self) -> None:
        """Mark the request as answered. The dispatcher calls it."""
        self._answered = True

    # --- changes --------------------------------------------------------------------------

    async def notify_tools_changed(self) -> None:
        """Tell all clients that asked that the list of tools has changed."""
        await self._publish(ToolsListChanged())

    async def notify_prompts_changed(self) -> None:
        """Tell all clients that asked that the list of prompts has changed."""
        await self._publish(PromptsListChanged())

    async def notify_resources_changed(self) -> None:
        """Tell all clients that asked that the list of resources has changed."""
        await self._publish(ResourcesListChanged())

    async def notify_resource_updated(self, uri: str) -> None:
        """Tell all clients that asked that this resource has changed."""
        await self._publish(ResourceUpdated(uri))

    async def _publish(self, event: Event) -> None:
        await self._peer.server.publish(event)

    # --- asking the client (handshake era) ---------------------------------------------------

    async def elicit(
        self, message: str, requested_schema: JSONObject, *, timeout: float | None = None
    ) -> t.ElicitResult:
        """Ask the user to fill in a form, and wait for the answer.

        Raises:
            MissingClientCapability: The client declared no forms, or its revision has none.
            LocalProtocolError: A 2026-07-28 client: return `InputRequiredResult` instead. Or the
                client's revision has no such member of a form.
            MCPError: The client refused.
            RequestTimeout: It did not answer within `timeout` seconds.
        """
        params = t.ElicitRequestFormParams(message=message, requested_schema=requested_schema, mode="form")
        return cast("t.ElicitResult", await self.ask("elicitation/create", params, timeout=timeout))

    async def elicit_url(
        self, message: str, url: str, elicitation_id: str, *, timeout: float | None = None
    ) -> t.ElicitResult:
        """Ask the user to visit a page (2025-11-25), and wait for the consent. Raises as `elicit`."""
        params = t.ElicitRequestURLParams(message=message, url=url, elicitation_id=elicitation_id)
        return cast("t.ElicitResult", await self.ask("elicitation/create", params, timeout=timeout))

    async def create_message(
        self, messages: list[t.SamplingMessage], *, max_tokens: int, timeout: float | None = None, **options: Any
    ) -> t.CreateMessageResult:
        """Ask the client's model, and wait. Options are the fields of
        `CreateMessageRequestParams`. Raises as `elicit`.
        """
        warn_deprecated("sampling")
        params = t.CreateMessageRequestParams(messages=messages, max_tokens=max_tokens, **options)
        return cast("t.CreateMessageResult", await self.ask("sampling/createMessage", params, timeout=timeout))

    async def list_roots(self, *, timeout: float | None = None) -> t.ListRootsResult:
        """Ask the client for its roots, and wait. Raises as `elicit`."""
        warn_deprecated("roots")
        return cast("t.ListRootsResult", await self.ask("roots/list", None, timeout=timeout))

    async def ask(
        self,
        method: Literal["elicitation/create", "sampling/createMessage", "roots/list"],
        params: Any,
        *,
        timeout: float | None = None,
    ) -> object:
        """Make one of the three requests of the client, with typed params. Raises as `elicit`."""
        if self._is_modern:
            raise LocalProtocolError(
                f"{method} cannot be sent in {self.protocol_version}: return InputRequiredResult with it, "
                "or have a parameter of a typed tool filled in by Resolve"
            )
        row = METHODS[method]
        if self.protocol_version not in row.revisions:
            raise MissingClientCapability(f"{method} does not exist in {self.protocol_version}", {"elicitation": {}})
        if isinstance(params, t.ElicitRequestURLParams) and self.protocol_version < V2025_11_25:
            reason = f"elicitation/create knows forms only in {self.protocol_version}"
            raise MissingClientCapability(reason, {"elicitation": {"url": {}}})
        if self._peer.reaches_client:  # or the peer has a better reason to refuse
            require_capability(method, params, self.client_capabilities)
        if isinstance(params, t.ElicitRequestFormParams):
            from mcp_core.forms import form_for  # few servers ask

            asked = form_for(params.requested_schema, self.protocol_version)
            params = msgspec.structs.replace(params, requested_schema=asked)
        shown = None if params is None else projection.project(params, self.protocol_version)
        raw = await self._peer.request(method, shown, timeout)
        try:
            return codec.decoder(row.result)(raw)
        except (codec.ValidationError, codec.DecodeError) as exc:
            raise InvalidResult(f"the client answered {method} with no {row.result.__name__}: {exc}") from None

    async def ping(self, *, timeout: float | None = None) -> None:
        """Ask the client for a sign of life (handshake era). Raises as `elicit`."""
        if self._is_modern:
            raise LocalProtocolError("ping does not exist in 2026-07-28")
        await self._peer.request("ping", None, timeout)


AnyContext: TypeAlias = RequestContext[Any]
"""A context, whatever the server's lifespan yields."""

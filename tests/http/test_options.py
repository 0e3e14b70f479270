"""Options of the app: whatever is wrong with one is said where it is given, with its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

from mcp_core import Server
from mcp_core.auth import AccessToken, AuthSettings
from mcp_core.transports.stdio import StdioKeywords, serve_stdio
from mcp_core.transports.streamable_http import HTTPOptions, InMemoryEventStore, TransportSecuritySettings
from mcp_core.transports.streamable_http.options import HTTPKeywords, RunHTTPKeywords
from mcp_typed import MCPServer
from tests.http.asgi import ModernClient

pytestmark = pytest.mark.fault("X-14")


class Verifier:
    async def verify_token(self, token: str) -> AccessToken | None:
        return None


def settings(**changes: Any) -> AuthSettings:
    urls: dict[str, Any] = {"issuer_url": "https://login.example", "resource_server_url": "https://tides.example/mcp"}
    return AuthSettings(**{**urls, **changes})


WRONG: list[tuple[str, Any]] = [
    *(("host", value) for value in ("", 5, None, b"localhost")),
    *(("streamable_http_path", value) for value in ("mcp", "", None, 5, "/mcp?x", "http://a/mcp", "/m cp")),
    *(("health_path", value) for value in ("health", "", 5, "/mcp", "/mcp/")),
    *(("json_response", value) for value in (1, None, "yes")),
    *(("stateless_http", value) for value in (0, "no")),
    *(("cancel_on_disconnect", value) for value in ("false", 1)),
    *(("event_store", value) for value in (True, InMemoryEventStore, object())),
    *(("transport_security", value) for value in ({}, {"allowed_hosts": ["x"]}, False)),
    *(("max_request_body_size", value) for value in ("4MB", 0, -1, 4.5, True, None, float("nan"))),
    *(("max_sessions", value) for value in (0, -1, "10", 1e3, False)),
    *(("session_idle_timeout", value) for value in (0, -1, "30", float("nan"), float("inf"), True)),
    *(("keep_alive", value) for value in (0, -0.5, None, "15", float("nan"), float("inf"), True)),
    ("auth", {"issuer_url": "https://login.example"}),
    ("token_verifier", object()),
]


@pytest.mark.parametrize(("option", "value"), WRONG, ids=[f"{option}-{at}" for at, (option, _) in enumerate(WRONG)])
def test_a_wrong_option_is_named_with_what_it_got(option: str, value: Any) -> None:
    for make in (Server("s").streamable_http_app, MCPServer("s").streamable_http_app, HTTPOptions):
        call: Callable[..., Any] = make
        with pytest.raises((TypeError, ValueError)) as caught:
            call(**{option: value})
        assert str(caught.value).startswith(f"{option} must ")
        assert f"got {value!r}" in str(caught.value)


WRONG_SETTINGS: list[tuple[str, Any]] = [
    ("allowed_hosts", "my.host"),
    ("allowed_hosts", [5]),
    ("allowed_hosts", ["https://my.host"]),
    ("allowed_hosts", ["my.host/mcp"]),
    ("allowed_hosts", [""]),
    ("allowed_hosts", None),
    ("allowed_hosts", {}),
    ("allowed_origins", "https://a"),
    ("allowed_origins", ["my.host"]),
    ("allowed_origins", ["https://a/b"]),
    ("allowed_origins", ["https://"]),
    ("allowed_origins", [b"x"]),
    ("enable_dns_rebinding_protection", 0),
    ("enable_dns_rebinding_protection", "on"),
    ("enable_dns_rebinding_protection", None),
]


@pytest.mark.parametrize(("option", "value"), WRONG_SETTINGS, ids=lambda value: repr(value)[:40])
def test_a_wrong_setting_of_hosts_and_origins_is_named(option: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{option} must "):
        TransportSecuritySettings(**{option: value})


def test_all_that_hosts_and_origins_may_be_is_taken() -> None:
    TransportSecuritySettings(
        allowed_hosts=["my.host", "my.host:80", "my.host:*", "*", "[::1]:8000"],
        allowed_origins=["https://my.host", "http://my.host:*", "null", "*", "vscode-webview://abc"],
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("issuer_url", value) for value in ("login.example", "", None, "ftp://a", "https://")),
        *(("resource_server_url", value) for value in ("/mcp", "https:// a/mcp", 5)),
        ("resource_metadata_url", "/.well-known/x"),
        *(("required_scopes", value) for value in ("tides:read", [5], None)),
    ],
)
def test_a_wrong_setting_of_tokens_is_named(option: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{option} must "):
        Server("s").streamable_http_app(auth=settings(**{option: value}), token_verifier=Verifier())


@pytest.mark.parametrize("option", ["max_bytes", "max_session_bytes"])
@pytest.mark.parametrize("value", [0, -1, "16MB", 1.5, True, None])
def test_a_wrong_bound_of_the_event_store_is_named(option: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{option} must be a positive number of bytes; got "):
        InMemoryEventStore(**{option: value})


@pytest.mark.parametrize("value", [0, -1, "1h", True, None, float("inf")])
def test_a_wrong_age_of_events_is_named(value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^max_age must be a positive number of seconds; got "):
        InMemoryEventStore(max_age=value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"port": 70_000}, "port must be a number from 0 (any that is free) to 65535; got 70000"),
        ({"port": -1}, "port must be"),
        ({"port": "8000"}, "port must be"),
        ({"port": True}, "port must be"),
        ({"workers": 0}, "workers must be at least 1; got 0"),
        ({"workers": "2"}, "workers must be a number of processes; got '2'"),
        ({"workers": 2, "max_request_body_size": "4MB"}, "max_request_body_size must be"),
        ({"workers": 2, "streamable_http_path": "mcp"}, "streamable_http_path must be"),
    ],
)
def test_what_run_takes_besides_is_looked_at_before_anything_starts(options: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        Server("s").run("streamable-http", **options)
    assert said in str(caught.value)


def test_an_option_that_there_is_not_is_named_with_those_that_there_are() -> None:
    with pytest.raises(TypeError, match=r"streamable_http_app has no option 'path'; its options are .*max_sessions"):
        Server("s").streamable_http_app(path="/mcp")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def test_a_long_value_is_shown_in_part() -> None:
    with pytest.raises(TypeError) as caught:
        HTTPOptions(json_response="x" * 1_000_000)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 300


async def test_the_root_is_a_path() -> None:
    client = ModernClient(Server("s").streamable_http_app(streamable_http_path="/"))
    assert (await client.answer(client.message(1, "server/discover"), path="/")).status == 200


def test_the_keywords_of_the_app_are_the_fields_of_its_options() -> None:
    assert HTTPKeywords.__annotations__.keys() == set(HTTPOptions.__struct_fields__)
    options, keywords = get_type_hints(HTTPOptions), get_type_hints(HTTPKeywords)
    assert keywords == options
    assert set(get_type_hints(RunHTTPKeywords)) - set(options) == {"port", "workers", "uvicorn"}
    assert set(get_type_hints(StdioKeywords)) == set(serve_stdio.__kwdefaults__ or ())

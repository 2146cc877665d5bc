"""The MCP server over streamable HTTP: addresses, authentication, bounds, and an orderly end.

Above: `codemode serve --http`. Below: the SDK's Starlette application and uvicorn. An address that others can reach is
served with authentication or not at all; requests with a foreign `Host` or `Origin` are refused.
"""

from __future__ import annotations

import ipaddress
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import uvicorn
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.routing import Route

from broker.errors import ConfigError
from broker.server.challenge import challenge_with_reasons
from broker.server.connections import Connections, end_standing_streams
from broker.server.host_and_origin import HostAndOrigin
from broker.server.request_values import BoundedValues
from broker.server.slow_requests import TimedProtocol
from broker.server.stated_length import OneLength
from broker.server.tokens import AnyOf, IssuedTokens, StaticTokens
from broker.server.tools_api import tools_routes
from broker.server.unread_answers import hand_over_little

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp.server.auth.provider import TokenVerifier
    from starlette.applications import Starlette
    from starlette.requests import Request

    from broker.server.app import BrokerServer
    from broker.server.settings import ServeSettings

PATH = "/mcp"
CONNECTIONS = 4_000
"""Open connections at the same time; further ones get HTTP 503."""

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_EXTRA_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; port 0 is any free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read `HOST:PORT`, `[::1]:PORT` or `PORT`.

        Raises:
            ValueError: It has none of these forms.
        """
        host, _, port = text.rpartition(":")
        host = host.strip("[]") or "127.0.0.1"
        is_port = port.isascii() and port.isdigit() and int(port) <= 65_535  # noqa: PLR2004  # the largest one
        if "/" in host or not is_port:
            raise ValueError(f"{text!r} is not HOST:PORT, as in 127.0.0.1:8000")
        return cls(host, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def is_wildcard(self) -> bool:
        """Whether it stands for all addresses of this machine, which clients cannot use as a name."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False

    @property
    def in_urls(self) -> str:
        """The host as URLs have it, and the `Host` of requests for them."""
        try:
            ip = ipaddress.ip_address(self.host)
        except ValueError:
            return self.host
        return f"[{ip}]" if isinstance(ip, ipaddress.IPv6Address) else str(ip)

    def listen(self) -> socket.socket:
        """Return a listening socket.

        Raises:
            OSError: The address is in use or not ours.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.create_server((self.host, self.port), family=family, backlog=2_048)
        hand_over_little(listening)
        # Its connections have it too: asyncio sets it only where a socket names its protocol, and these do not. Without
        # it the end of each answer waits 40 ms for the client's system to confirm the beginning.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening


def check_guarded(settings: ServeSettings, address: Address) -> None:
    """Refuse an address that others can reach if there is no authentication.

    Raises:
        ConfigError: The address is one of those.
    """
    if not (settings.tokens or settings.oauth or address.is_loopback):
        remedy = "set CODEMODE_TOKEN, serve.tokens or serve.oauth, or use 127.0.0.1"
        raise ConfigError("serve", [f"{address.host} can be reached from other machines: {remedy}"])


def http_app(server: BrokerServer, address: Address) -> Starlette:
    """Return the application: `/mcp`, `/health`, `/api/v1/tools/…`.

    Raises:
        ConfigError: Others can reach the address, and there is no authentication.
    """
    settings = server.settings
    check_guarded(settings, address)
    verifier = _verifier(settings)

    async def health(_request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    security = _security(settings, address)
    scopes = None if verifier is None else _scopes(settings)
    app = server.mcp.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=settings.request_bytes,
        session_idle_timeout=settings.session_idle_seconds,
        max_sessions=None,  # the bound is that of `Connections`
        transport_security=security,
        host=address.host,
        auth=_auth(settings, address) if verifier is not None else None,
        token_verifier=verifier,
        custom_starlette_routes=[Route("/health", health), *tools_routes(server.broker, security, scopes)],
    )
    app.add_middleware(HostAndOrigin)
    app.add_middleware(OneLength)
    challenge_with_reasons(app)
    # Answered, not redirected: behind a proxy the address of a redirect would lack its path, and maybe its TLS.
    app.router.redirect_slashes = False
    endpoint = next(route.app for route in app.routes if isinstance(route, Route) and route.path == PATH)
    app.router.routes.append(Route(f"{PATH}/", endpoint=endpoint))
    manager = server.mcp.session_manager
    manager.asgi_app.app = BoundedValues(
        Connections(manager, server.sessions, server.open_requests, most=settings.sessions)
    )
    return app


def end_streams(server: BrokerServer) -> None:
    """End the streams on which clients wait for announcements."""
    server.end_announcing()
    end_standing_streams(server.mcp.session_manager)


def _scopes(settings: ServeSettings) -> tuple[str, ...]:
    return settings.oauth.scopes if settings.oauth is not None else ()


def _verifier(settings: ServeSettings) -> TokenVerifier | None:
    verifiers: list[TokenVerifier] = []
    if settings.tokens:
        verifiers.append(StaticTokens(settings.tokens, _scopes(settings)))
    if settings.oauth is not None:
        verifiers.append(IssuedTokens(settings.oauth))
    return AnyOf(verifiers) if verifiers else None


def _auth(settings: ServeSettings, address: Address) -> AuthSettings:
    oauth = settings.oauth
    # Without an authorization server the SDK wants one all the same, and shows it to nobody.
    issuer = oauth.issuer if oauth is not None else f"http://{address.in_urls}"
    # As texts: a URL made beforehand ends with a slash that the issuer's name has not, and clients compare them.
    return AuthSettings.model_validate(
        {
            "issuer_url": issuer,
            "resource_server_url": oauth.resource if oauth is not None else None,
            "required_scopes": list(oauth.scopes) if oauth is not None else None,
            "validate_token_resource": False,  # the verifier has
        }
    )


def _security(settings: ServeSettings, address: Address) -> TransportSecuritySettings:
    own = (*_LOOPBACK, address.in_urls)
    origins = [f"{scheme}://{host}:*" for scheme in ("http", "https") for host in own]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*(f"{host}:*" for host in own), *own, *settings.allowed_hosts],
        allowed_origins=[*origins, *settings.allowed_origins],
    )


class HttpServer(uvicorn.Server):
    """uvicorn without its own handling of signals: `codemode serve` drains the runs first."""

    def __init__(
        self, app: Starlette, settings: ServeSettings, *, end_streams: Callable[[], None] = lambda: None
    ) -> None:
        """Serve an application; `end_streams` ends the answers that would go on for ever."""
        self._end_streams = end_streams
        times = {"request_seconds": settings.request_seconds, "answer_seconds": settings.answer_seconds}
        config = uvicorn.Config(
            app,
            http=partial(TimedProtocol, **times),  # type: ignore[arg-type]  # is called
            ws="none",
            log_config=None,
            access_log=False,
            limit_concurrency=CONNECTIONS + 1,  # uvicorn refuses from this one on
            timeout_graceful_shutdown=_EXTRA_SECONDS,
            server_header=False,
            date_header=False,
        )
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nothing more, and wait for the open answers that come to an end by themselves."""
        self._end_streams()  # nothing is awaited between that and the end of accepting: no client comes back
        await super().shutdown(sockets)

    def end(self) -> None:
        """Accept nothing more, and end when what is open has been answered or two seconds are over."""
        self.should_exit = True

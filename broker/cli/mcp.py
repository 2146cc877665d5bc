"""`codemode mcp`: a person logs in to a server once, the broker keeps the tokens, and forgets them when told."""

from __future__ import annotations

import shlex
import webbrowser
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.authorization.shown import shown_text
from broker.cli.configured import load_config, server_of
from broker.cli.exit_codes import ExitCode
from broker.cli.next_command import whole
from broker.cli.terminal import Problem, note
from broker.errors import LoginError

if TYPE_CHECKING:
    from pathlib import Path

    from broker.upstreams.server_config import ServerConfig

_URL_CHARACTERS = 4_000


@dataclass(frozen=True)
class LoginRequest:
    """The arguments of `mcp login`."""

    server: str
    config: Path | None
    opens_browser: bool


@dataclass(frozen=True)
class LogoutRequest:
    """The arguments of `mcp logout`."""

    server: str
    config: Path | None


async def log_in(request: LoginRequest) -> ExitCode:
    """Show the authorization server's page and wait until the person comes back."""
    from broker.upstreams.login import login  # noqa: PLC0415  # loads the SDK

    settings = _settings(request.server, request.config)

    def show(url: str) -> None:
        note(f"Log in to {request.server} here: {shown_text(url, _URL_CHARACTERS)}")
        if request.opens_browser:
            webbrowser.open(url)

    try:
        await login(settings, show)
    except (LoginError, OSError) as error:
        raise Problem(f"{request.server}: {error}") from None
    forget = f"`codemode mcp logout {shlex.quote(request.server)}`"
    note(f"logged in to {request.server}; {whole(forget, request)} forgets it")
    return ExitCode.COMPLETED


async def log_out(request: LogoutRequest) -> ExitCode:
    """Forget the tokens of a server."""
    from broker.upstreams.kept_tokens import KeptTokens  # noqa: PLC0415  # loads the SDK

    settings = _settings(request.server, request.config)
    if KeptTokens(settings.url or "", client=settings.oauth).forget():
        note(f"logged out of {request.server}: its tokens are forgotten here; the server may still accept them")
    else:
        note(f"nobody was logged in to {request.server}")
    return ExitCode.COMPLETED


def _settings(server: str, path: Path | None) -> ServerConfig:
    """Return the settings of a server to which people log in.

    Raises:
        Problem: It is none.
    """
    settings = server_of(load_config(path), server)
    if settings.oauth is None:
        what = 'Write "oauth": {} beside its "url".' if settings.url else 'Servers with a "url" can have it.'
        raise Problem(f"{server} has no 'oauth' in the config", what)
    if settings.oauth.grant != "authorization_code":
        raise Problem(
            f"nobody logs in to {server}: the broker has an account of its own there ({settings.oauth.grant})"
        )
    return settings

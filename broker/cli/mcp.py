"""`codemode mcp login`: a person logs in to a server once, and the broker keeps the tokens."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.authorization.shown import shown_text
from broker.cli.configured import load_config
from broker.cli.exit_codes import ExitCode
from broker.cli.terminal import Problem, note
from broker.errors import LoginError

if TYPE_CHECKING:
    from pathlib import Path

_URL_CHARACTERS = 4_000


@dataclass(frozen=True)
class LoginRequest:
    """The arguments of `mcp login`."""

    server: str
    config: Path | None
    opens_browser: bool


async def log_in(request: LoginRequest) -> ExitCode:
    """Show the authorization server's page and wait until the person comes back."""
    from broker.oauth import login  # noqa: PLC0415  # loads the SDK

    config = load_config(request.config)
    settings = config.servers.get(request.server)
    if settings is None:
        known = ", ".join(config.servers) or "none"
        raise Problem(f"the config has no server {request.server!r}", f"It has {known}.")
    if settings.oauth is None:
        raise Problem(f"{request.server} has no 'oauth' in the config", 'Write "oauth": {} beside its "url".')
    if settings.oauth.grant != "authorization_code":
        raise Problem(f"nobody logs in to {request.server}: its grant is {settings.oauth.grant}")

    def show(url: str) -> None:
        note(f"Log in to {request.server} here: {shown_text(url, _URL_CHARACTERS)}")
        if request.opens_browser:
            webbrowser.open(url)

    try:
        await login(settings, show)
    except (LoginError, OSError) as error:
        raise Problem(f"{request.server}: {error}") from None
    note(f"logged in to {request.server}")
    return ExitCode.COMPLETED

"""Opens the broker that a command works with: finds the config, connects, reports the servers that are down."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import platformdirs

from broker import Broker, BrokerError, Config
from broker.cli.terminal import Problem, note
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

_PROBLEM_CHARACTERS = 300
_EXAMPLE = '{"mcpServers": {"git": {"command": "mcp-server-git", "args": ["--repository", "."]}}}'


def user_config() -> Path:
    """Return where a config is looked for when no `--config` is given."""
    return platformdirs.user_config_path("codemode-broker") / "mcp.json"


def find_config(given: Path | None) -> Path | None:
    """Return the config to read: `--config`, then the user's own.

    A file in the working directory is never taken by itself: a config names commands that are started, and the
    directory may be a clone of somebody else's repository.
    """
    if given is not None:
        return given
    return path if (path := user_config()).exists() else None


def load_config(given: Path | None, *, needed: bool = True) -> Config:
    """Read the config; without one, an empty config where none is needed.

    Raises:
        Problem: The config is missing or wrong.
    """
    path = find_config(given)
    if path is None:
        if not needed:
            return Config()
        raise Problem(
            "no config: nothing says which MCP servers there are",
            f"Pass --config FILE, set CODEMODE_CONFIG, or write {user_config()}. For example: {_EXAMPLE}",
        )
    try:
        return Config.load(path)
    except BrokerError as error:
        raise Problem(str(error)) from None


@asynccontextmanager
async def open_broker(config: Config, *, quiet: bool = False) -> AsyncIterator[Broker]:
    """Connect to the servers of a config; those that are down are named on stderr, the others are used."""
    async with Broker.from_config(config) as broker:
        for status in broker.server_statuses():
            if status.problem and not quiet:
                note(one_line(f"server {status.name}: {status.problem}", _PROBLEM_CHARACTERS))
        yield broker

"""Opens the broker that a command works with: finds the config, connects, reports the servers that are down."""

from __future__ import annotations

import os
from contextlib import ExitStack, asynccontextmanager
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING

from broker import Broker, BrokerError, Config, ConfigError
from broker.cli.compile_progress import compile_progress
from broker.cli.config_file import find_config, user_config
from broker.cli.next_command import whole
from broker.cli.options import CONFIG_VARIABLE
from broker.cli.terminal import Problem, note
from broker.errors import StoreError
from broker.store import Store
from broker.store_files import is_there, user_store
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from broker import ServerConfig
    from broker.tools.catalog import Catalog
    from sandbox import Isolation

LISTING_SECONDS = 35.0
"""How long a command that shows tools waits for slow servers: until one that does not come up has said why, if its
`connect_timeout_seconds` is one of the defaults."""

_PROBLEM_CHARACTERS = 400
_NO_CONFIG = "no config: nothing says which MCP servers there are"
_EXAMPLE = '{"mcpServers": {"git": {"command": "mcp-server-git", "args": ["--repository", "."]}}}'


def load_config(given: Path | None, *, needed: bool = True) -> Config:
    """Read the config; without one, an empty config where none is needed.

    Raises:
        Problem: The config is missing or wrong.
    """
    path = find_config(given)
    if path is None:
        if not needed:
            return Config()
        raise Problem(_NO_CONFIG, _write_one())
    try:
        return Config.load(path)
    except BrokerError as error:
        raise Problem(str(error), _named_by(path)) from None


def report_no_config(given: Path | None) -> None:
    """Say on stderr that there is no config, where there is none: scripts have no tools then."""
    if find_config(given) is None:
        note(f"{_NO_CONFIG}. {_write_one()}")


def server_of(config: Config, name: str, option: str = "") -> ServerConfig:
    """Return the settings of a server that a command names; `option` is what named it.

    Raises:
        Problem: The config has none of this name.
    """
    settings = config.servers.get(name)
    if settings is None:
        has = ", ".join(config.servers) or "none"
        raise Problem(f"{option}the config has no server {name!r}", f"It has {has}.")
    return settings


def refuse_disabled(catalog: Catalog, name: str) -> None:
    """Refuse a name or pattern that no tool has, where it can be of tools of disabled servers.

    Raises:
        Problem: It names these.
    """
    asked = catalog.server_before(name)
    disabled = [server for server in sorted(catalog.disabled) if fnmatchcase(server, asked)]
    if disabled:
        are = "is" if len(disabled) == 1 else "are"
        said = f"there is no tool {name!r}: {', '.join(disabled)} {are} disabled in the config"
        raise Problem(said, "Take `disabled` out of the server's settings.")


@asynccontextmanager
async def open_broker(
    config: Config, *, runs_scripts: bool = False, waits: bool = True, isolation: Isolation | None = None
) -> AsyncIterator[Broker]:
    """Start the servers of a config; for a command that only looks and `waits`, until each is ready or has failed.

    A command that runs scripts waits for the servers that they name, and for no other. The sandbox is opened beside
    them; `isolation` overrides the config's. Scripts need the user's store, where what they call is written down; a
    command that only looks does without.

    Raises:
        Problem: The config cannot be used, or scripts are to come and the store cannot be used.
    """
    sandbox = config.sandbox.open(config.image, isolation=isolation, compiling=compile_progress)
    make = partial(
        Broker,
        config,
        sandbox=sandbox,
        startup_seconds=LISTING_SECONDS if waits and not runs_scripts else 0,
        opens_sandbox=runs_scripts,
    )
    with ExitStack() as stack:
        try:
            broker = _with_store(make, stack, is_needed=runs_scripts)
        except (ConfigError, StoreError) as error:
            raise Problem(str(error)) from None
        async with broker:
            yield broker


def _with_store(make: Callable[..., Broker], stack: ExitStack, *, is_needed: bool) -> Broker:
    if not is_needed and not is_there(user_store()):
        return make()
    try:
        return make(store=stack.enter_context(Store.in_user_folder()))
    except StoreError as error:
        if is_needed:
            raise
        note(f"{error} Until then tools are ranked without what is known of their use.")
        return make()


def _named_by(path: Path) -> str:
    return f"{CONFIG_VARIABLE} names this file." if os.environ.get(CONFIG_VARIABLE) == str(path) else ""


def _write_one() -> str:
    named = f"Pass --config FILE, set {CONFIG_VARIABLE}, or write {user_config()}"
    return f"{named}, for example with `codemode mcp import`: {_EXAMPLE}"


def report_servers(broker: Broker, request: object) -> None:
    """Name the servers that are down on stderr, with what to do; the others are used all the same."""
    for status in broker.server_statuses():
        if status.problem and status.state != "stopped":  # by ourselves
            remedy = f". {status.what_to_do}" if status.what_to_do else ""
            said = one_line(f"server {status.name}: {status.problem}{remedy}", _PROBLEM_CHARACTERS)
            note(whole(said, request))

"""The names that Tab completes: recorded runs, kept grants, configured servers.

Above: the `*_commands.py`. Below: the store and config_file.py, loaded when Tab is pressed. Nothing is said of what
cannot be read. zsh evaluates what it is given: a server whose name cannot be one is left out, and what is shown
beside a name holds plain characters only.
"""

# Typer reads the annotations while the program runs.
# ruff: noqa: PLC0415, TC002

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from broker.cli.options import CONFIG_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.recordings.keeping.entries import RecordingEntry
    from broker.recordings.keeping.recordings import Recordings

Offered = list[tuple[str, str]]
"""What may stand in the place of an argument, each with what a shell shows beside it."""

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_MAX_RUNS = 30


def complete_run(incomplete: str) -> Offered:
    """Return the recorded runs, newest first."""
    found = _entries(lambda recordings: recordings.entries())
    return [("last", "the run begun last"), *_named(found, incomplete)] if found else []


def complete_open_run(incomplete: str) -> Offered:
    """Return the runs that `codemode resume` continues, newest first."""
    return _named(_entries(lambda recordings: recordings.entries(states=("interrupted", "parked"))), incomplete)


def complete_grant() -> Offered:
    """Return the permanent grants."""
    from broker.authorization.kept_grants import KeptGrants
    from broker.errors import StoreError
    from broker.store import Store

    with suppress(StoreError), Store.in_user_folder(for_reading=True) as store:
        return [(one.id, _plain(one.definition.qualified_name)) for one in KeptGrants(store).every()]
    return []


def complete_server(context: typer.Context) -> Offered:
    """Return the servers of the config that the command line names so far, or else of the user's own."""
    from broker.cli.config_file import find_config
    from broker.config.problems import name_problems
    from broker.config.text import decoded, read_text
    from broker.errors import ConfigError

    named = context.params.get("config") or os.environ.get(CONFIG_VARIABLE)  # `audit` takes none, and reads none
    servers = None
    with suppress(ConfigError):
        if path := find_config(Path(named) if named else None):
            servers = decoded(read_text(path), str(path)).get("mcpServers")
    return [(name, "") for name in servers if not name_problems([name])] if isinstance(servers, dict) else []


def complete_client() -> Offered:
    """Return the other MCP clients that have a config here."""
    from broker.config.clients.known_clients import CLIENTS, file_of

    return [(client, "") for client in CLIENTS if file_of(client) is not None]


def _entries(listed: Callable[[Recordings], list[RecordingEntry]]) -> list[RecordingEntry]:
    from broker.errors import StoreError
    from broker.recordings.keeping.recordings import Recordings
    from broker.store import Store

    with suppress(StoreError), Store.in_user_folder(for_reading=True) as store, Recordings(store) as recordings:
        return listed(recordings)
    return []


def _named(entries: list[RecordingEntry], incomplete: str) -> Offered:
    begun_so = [entry for entry in entries if entry.run_id.startswith(incomplete)]
    return [(entry.run_id, f"{entry.state} {_plain(entry.filename)}".strip()) for entry in begun_so[:_MAX_RUNS]]


def _plain(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else ""

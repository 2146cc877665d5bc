"""`codemode mcp import`: the servers that another MCP client is configured with.

Nothing is started or connected. No value is printed: those of `env`, `headers` and `args` may be secrets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from broker.authorization.shown import shown_name, shown_text
from broker.cli.exit_codes import ExitCode
from broker.cli.mcp_servers import open_config, save_config
from broker.cli.next_command import whole
from broker.cli.terminal import Problem, note, write_table
from broker.config.clients.client_file import servers_of
from broker.config.clients.entries import Folders, NotConvertedError, converted
from broker.config.clients.known_clients import CLIENTS, file_of
from broker.config.edit import entry_problems
from broker.config.problems import name_problems
from broker.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from broker.config.edit import ConfigEdit

_NOTE_CHARACTERS = 300
_NAME_CHARACTERS = 60
_OF_ENV_FILE = 'write the variables of that file under "env", each as "NAME": "${NAME}", and set them'


@dataclass(frozen=True)
class ImportRequest:
    """The arguments of `mcp import`."""

    source: str | None
    names: tuple[str, ...]
    replace: bool
    dry_run: bool
    config: Path | None


async def import_servers(request: ImportRequest) -> ExitCode:
    """Take the servers of a client over into the config; without a client, show which ones have some."""
    if request.source is None:
        return _show_clients(request)
    path = _file(request.source)
    try:
        servers = servers_of(path)
    except ConfigError as error:
        raise Problem(str(error)) from None
    edit = open_config(request.config)
    chosen = _chosen(servers, request.names, path)
    taking = _Taking(edit, _folders(path, request.source), request.replace)
    rows = [taking.row(name, new_name, servers[name]) for name, new_name in _new_names(chosen).items()]
    write_table(("server", "", ""), rows, whole={"server"})
    added = sum(row[1] in {"added", "replaced"} for row in rows)
    if added and not request.dry_run:
        save_config(edit)
    many = f"{added or 'no'} server{'s' if added != 1 else ''}"
    if request.dry_run:
        note(f"{many} would be written to {edit.path}")
    else:
        then = f"; `codemode tools servers` connects {'them' if added > 1 else 'it'}" if added else ""
        note(whole(f"{many} written to {edit.path}{then}", request))
    return ExitCode.COMPLETED


def _show_clients(request: ImportRequest) -> ExitCode:
    rows = []
    for client in CLIENTS:
        path = file_of(client)
        if path is None:
            continue
        try:
            names = ", ".join(map(shown_name, servers_of(path))) or "no servers"
        except ConfigError as error:
            names = "; ".join(error.problems)
        rows.append((client, shown_text(names, _NOTE_CHARACTERS), str(path)))
    if not rows:
        raise Problem("no other MCP client is configured here", "`codemode mcp add` adds a server.")
    write_table(("client", "servers", "file"), rows, whole={"client"})
    note(whole(f"`codemode mcp import --from {rows[0][0]}` takes its servers over", request))
    return ExitCode.COMPLETED


def _file(source: str) -> Path:
    """Return the file of a client that is named, or the file that is named itself.

    Raises:
        Problem: There is none.
    """
    if source not in CLIENTS:
        path = Path(source).expanduser()
        if path.exists():
            return path
        raise Problem(f"--from {source}: is no client that is known, and no file", f"Known are {', '.join(CLIENTS)}.")
    found = file_of(source)
    if found is None:
        raise Problem(f"{source} is not configured here", "--from also takes the path of its file.")
    return found


def _folders(path: Path, source: str) -> Folders:
    """Return what paths in a file count from: a file that a person names may be that of a project."""
    folder = path.resolve().parent
    if source in CLIENTS:
        return Folders(Path.home(), folder)
    return Folders(Path.home(), folder, folder.parent if folder.name.startswith(".") else folder)


def _chosen(servers: Mapping[str, Any], names: Collection[str], path: Path) -> Collection[str]:
    if unknown := [name for name in names if name not in servers]:
        has = ", ".join(map(shown_name, servers)) or "none"
        raise Problem(f"{path} has no server {', '.join(map(repr, unknown))}", f"It has {has}.")
    if not servers:
        raise Problem(f"{path} has no servers")
    return names or servers


@dataclass(frozen=True)
class _Taking:
    """One import: into which config, and what the entries count from."""

    edit: ConfigEdit
    folders: Folders
    replace: bool

    def row(self, name: str, new_name: str, written: object) -> tuple[str, str, str]:
        """Put a server into the config; return the line that says so, or why not."""
        try:
            made = converted(written, self.folders)
        except NotConvertedError as error:
            return shown_name(name), "left out", shown_text(str(error), _NOTE_CHARACTERS)
        if problems := entry_problems(new_name, made.entry):
            return shown_name(name), "left out", shown_text("; ".join(problems), _NOTE_CHARACTERS)
        before = self.edit.servers.get(new_name)
        if before == made.entry:
            return new_name, "is there", ""
        if before is not None and not self.replace:
            return new_name, "left out", "another server has this name; --replace puts this one in its place"
        self.edit.servers[new_name] = made.entry
        notes = [f"was {shown_text(name, _NOTE_CHARACTERS)!r}"] if new_name != name else []
        notes += [f"set {', '.join(map(shown_name, unset))}"] if (unset := self.edit.unset(new_name)) else []
        notes += [f"without {', '.join(map(shown_name, made.ignored))}"] if made.ignored else []
        notes += [_OF_ENV_FILE] if "envFile" in made.ignored else []
        return new_name, "added" if before is None else "replaced", "; ".join(notes)


def _new_names(names: Collection[str]) -> dict[str, str]:
    """Return by name one that scripts can import, as near to it as can be; no two are the same."""
    new_names: dict[str, str] = {}
    for name in names:
        legal = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:_NAME_CHARACTERS]
        if not legal or name_problems([legal]):
            legal = f"server_{legal}".rstrip("_")[:_NAME_CHARACTERS]
        numbered = (legal if number == 1 else f"{legal}_{number}" for number in count(1))
        new_names[name] = next(one for one in numbered if one not in new_names.values())
    return new_names

"""`codemode mcp add` and `remove`: the servers of a config, without an editor.

Nothing is started or connected. No value is printed: those of `env`, `headers` and `args` may be secrets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.authorization.shown import shown_name
from broker.cli.config_file import user_config
from broker.cli.exit_codes import ExitCode
from broker.cli.next_command import whole
from broker.cli.terminal import Problem, note
from broker.config.edit import ConfigEdit, entry_problems
from broker.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
"""RFC 3986, section 3.1, but for schemes of one letter, which are drives."""


@dataclass(frozen=True)
class AddRequest:
    """The arguments of `mcp add`."""

    name: str
    address: tuple[str, ...]
    env: tuple[str, ...]
    headers: tuple[str, ...]
    oauth: bool
    lazy: bool
    about: str | None
    replace: bool
    config: Path | None


@dataclass(frozen=True)
class RemoveRequest:
    """The arguments of `mcp remove`."""

    name: str
    config: Path | None


async def add_server(request: AddRequest) -> ExitCode:
    """Add a server to the config."""
    entry = _entry(request)
    if problems := entry_problems(request.name, entry):
        raise Problem("; ".join(problems))
    edit = open_config(request.config)
    if request.name in edit.servers and not request.replace:
        raise Problem(f"{edit.path} has a server {request.name} already", "--replace puts this one in its place.")
    edit.servers[request.name] = entry
    save_config(edit)
    wanted = "".join(f"; set {name}" for name in edit.unset(request.name))
    note(whole(f"added {request.name} to {edit.path}{wanted}; `codemode tools servers` connects it", request))
    return ExitCode.COMPLETED


async def remove_server(request: RemoveRequest) -> ExitCode:
    """Remove a server from the config."""
    edit = open_config(request.config)
    if not edit.path.exists():
        raise Problem(f"there is no config {edit.path}", "Name one with --config FILE.")
    if request.name not in edit.servers:
        has = ", ".join(map(shown_name, edit.servers)) or "none"
        raise Problem(f"{edit.path} has no server {request.name!r}", f"It has {has}.")
    entry = edit.servers.pop(request.name)
    save_config(edit)
    has_login = isinstance(entry, dict) and "oauth" in entry
    note(f"removed {request.name} from {edit.path}{'; tokens of a login are kept' if has_login else ''}")
    return ExitCode.COMPLETED


def open_config(given: Path | None) -> ConfigEdit:
    """Read the servers of the config that is named, or of the user's own, which need not be there yet.

    Raises:
        Problem: It cannot be read.
    """
    path = given or user_config()
    try:
        return ConfigEdit(path)
    except ConfigError as error:
        raise Problem(str(error)) from None
    except OSError as error:  # of a folder above it
        raise Problem(f"{path}: {error.strerror}") from None


def save_config(edit: ConfigEdit) -> None:
    """Write a config that was changed.

    Raises:
        Problem: It cannot be written.
    """
    try:
        edit.save()
    except FileExistsError:
        raise Problem(f"{edit.path}: {edit.path.parent} is not a folder") from None
    except OSError as error:
        raise Problem(f"{edit.path}: {error.strerror}") from None


def _entry(request: AddRequest) -> dict[str, Any]:
    first, *rest = request.address
    if _URL.match(first):
        if rest:
            raise Problem("nothing stands behind a URL", "Headers are given with --header; quote a URL with spaces.")
        entry: dict[str, Any] = {"url": first}
    else:
        entry = {"command": first} | ({"args": rest} if rest else {})
    if request.env:
        entry["env"] = dict(_variables(request.env))
    if request.headers:
        entry["headers"] = dict(_headers(request.headers))
    if request.oauth:
        entry["oauth"] = {}
    if request.lazy:
        entry["lazy"] = True
    if request.about is not None:
        entry["about"] = request.about
    return entry


def _variables(given: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for one in given:
        name, is_given, value = one.partition("=")
        yield name, value if is_given else f"${{{name}}}"


def _headers(given: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for one in given:
        name, is_given, value = one.partition(":")
        if not is_given:
            raise Problem("--header has no ':' in it", "Write --header 'Name: value'.")
        yield name.strip(), value.strip()

"""The entry of a server in another client's config, as one of ours.

Above: the commands that import servers. Below: pydantic, other_forms.py. What such an entry allows without asking is
not taken over: what may be called is decided here. Nothing is read or started.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from broker.config.other_forms import ALIASES, of_variable
from broker.config.value_faults import words_for
from broker.upstreams.server_config import ServerConfig


class NotConvertedError(Exception):
    """The entry cannot be one of ours; the text says why, as the end of a sentence that begins with the server."""


@dataclass(frozen=True)
class Converted:
    """An entry of ours.

    Attributes:
        entry: As it stands in a config.
        ignored: Keys of the other client that have no counterpart.
    """

    entry: dict[str, Any]
    ignored: tuple[str, ...]


@dataclass(frozen=True)
class Folders:
    """What variables of clients and relative paths stand for.

    Attributes:
        home: The user's folder.
        of_file: That of the file in which an entry stands.
        workspace: That of the project to which an entry belongs, if it belongs to one.
    """

    home: Path
    of_file: Path
    workspace: Path | None = None


def _as_text(value: Any) -> Any:
    """Return a number or a truth as the text that a program is given for it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


_Text = Annotated[str, BeforeValidator(_as_text)]


class _Program(BaseModel):
    path: str
    args: list[_Text] = []
    env: dict[str, _Text] = {}


class _Named(BaseModel):
    name: str


class _Written(BaseModel):
    """An entry with our keys where we have one, and what the clients of known_clients.py have beside them."""

    model_config = ConfigDict(extra="allow")

    type: str = ""
    command: str | list[str] | _Program | None = None
    args: list[_Text] = []
    env: dict[str, _Text] = {}
    env_vars: list[str | _Named] = []
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, _Text] = {}
    env_http_headers: dict[str, str] = {}
    bearer_token_env_var: str | None = None
    oauth: Any = None
    disabled: bool = False
    enabled: bool = True
    allow_tools: list[str] | None = None
    hide_tools: list[str] = []
    tools: Any = None
    connect_timeout_seconds: int | float | None = None
    call_timeout_seconds: int | float | None = None


_OF_EITHER_UNIT = frozenset({"timeout"})
"""Keys that stand for seconds in one client and for milliseconds in another."""
_OTHER_TRANSPORTS = frozenset({"sse", "ws", "websocket"})
_OF_FOLDERS = {
    "userHome": "home",
    "workspaceFolder": "workspace",
    "CLAUDE_PROJECT_DIR": "workspace",
    "CONFIG_DIR": "of_file",
}
"""Variables of clients, and of other configs of ours, by the field of `Folders` that they stand for."""
_BARE = re.compile(r"\$([A-Z_][A-Z0-9_]*)")
_ENV = re.compile(r"(?<!\$)\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_INPUT = re.compile(r"\$\{input:([^}]*)\}")
_REFERENCE = re.compile(r"\$\{([^}]*)\}")


def converted(given: object, folders: Folders) -> Converted:
    """Return an entry, as JSON or TOML has it, as one of ours.

    Raises:
        NotConvertedError: It is no entry, is codemode itself, or speaks what the broker does not.
    """
    if not isinstance(given, Mapping):
        raise NotConvertedError("is not an object")
    try:
        written = _Written.model_validate(_renamed(given))
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        raise NotConvertedError(f"{fault['loc'][0]!r} {words_for(fault)}") from None
    if written.type in _OTHER_TRANSPORTS:
        raise NotConvertedError(f"speaks {written.type}; the broker speaks stdio and streamable HTTP")
    entry = _command(written) | _address(written) | _common(written)
    if ("command" in entry) == ("url" in entry):
        raise NotConvertedError(
            "has both a command and a URL" if entry.get("url") else "has neither a command nor a URL"
        )
    entry = _rewritten(entry, folders)
    if "command" in entry and folders.workspace is not None:
        entry |= _in_workspace(entry, folders.workspace)
    extra = written.model_extra or {}
    ours = {key: value for key, value in extra.items() if key in ServerConfig.model_fields}
    return Converted(entry | ours, tuple(key for key in extra if key not in ours))


def _renamed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is given under our keys; of two for one thing, the other client's is the one it means."""
    ours = {key: key if key in _OF_EITHER_UNIT else ALIASES.get(key.lower(), key) for key in given}
    return {ours[key]: given[key] for key in sorted(given, key=lambda key: ours[key] != key) if given[key] is not None}


def _command(written: _Written) -> dict[str, Any]:
    """Return how a server is started; some clients write the program and its arguments under one key."""
    args, env = written.args, written.env
    match written.command:
        case _Program() as program:
            command, args, env = program.path, [*program.args, *args], program.env | env
        case [command, *first_args]:
            args = [*first_args, *args]
        case str() as command:
            pass
        case _:
            command = ""
    if not command:
        return {}
    names = {PurePath(word.replace("\\", "/")).name.removesuffix(".exe") for word in (command, *args)}
    if "serve" in args and names & {"codemode", "codemode-broker"}:
        raise NotConvertedError("is codemode itself")
    passed = (one if isinstance(one, str) else one.name for one in written.env_vars)
    env = {name: f"${{{name}}}" for name in passed} | env
    parts = {"command": command, "args": args, "env": env, "cwd": written.cwd}
    return {key: value for key, value in parts.items() if value}


def _address(written: _Written) -> dict[str, Any]:
    """Return where a server is reached over HTTP, and as whom."""
    if not written.url:
        return {}
    headers = written.headers | {name: f"${{{value}}}" for name, value in written.env_http_headers.items()}
    if written.bearer_token_env_var:
        headers["Authorization"] = f"Bearer ${{{written.bearer_token_env_var}}}"
    entry: dict[str, Any] = {"url": written.url} | ({"headers": headers} if headers else {})
    if written.oauth:
        client = written.oauth if isinstance(written.oauth, Mapping) else {}
        client_id = client.get("clientId", client.get("client_id"))
        entry["oauth"] = {"client_id": client_id} if isinstance(client_id, str) else {}
    return entry


def _common(written: _Written) -> dict[str, Any]:
    """Return what any server may have."""
    allowed = written.allow_tools
    if isinstance(written.tools, list) and "*" not in written.tools:
        allowed = written.tools
    parts = {
        "disabled": written.disabled or not written.enabled or None,
        "allow_tools": allowed,
        "hide_tools": written.hide_tools or None,
        "connect_timeout_seconds": written.connect_timeout_seconds,
        "call_timeout_seconds": written.call_timeout_seconds,
    }
    return {key: value for key, value in parts.items() if value is not None}


def _rewritten(value: Any, folders: Folders) -> Any:
    """Return a value with the variables of other clients as ours, or as what they stand for."""
    if isinstance(value, Mapping):
        return {key: _rewritten(item, folders) for key, item in value.items()}
    if isinstance(value, list):
        return [_rewritten(item, folders) for item in value]
    if not isinstance(value, str):
        return value
    if bare := _BARE.fullmatch(value):
        return f"${{{bare[1]}}}"
    for variable, folder in _OF_FOLDERS.items():
        value = value.replace(f"${{{variable}}}", str(getattr(folders, folder) or f"${{{variable}}}"))
    value = value.replace("${pathSeparator}", os.sep).replace("${/}", os.sep)
    value = _ENV.sub(r"${\1}", value)
    value = _INPUT.sub(lambda found: f"${{{_variable_name(found[1])}}}", value)
    for found in _REFERENCE.finditer(value):
        if of_variable(found[1]) or found[1] == "CLAUDE_PROJECT_DIR":
            raise NotConvertedError(f"uses {found[0]}, which only its client knows")
    return value


def _variable_name(of_input: str) -> str:
    """Return a name for what an editor asks for: `api-key` is `API_KEY`."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", of_input).strip("_").upper()
    return name if name[:1].isalpha() else f"INPUT_{name}"


def _in_workspace(entry: Mapping[str, Any], workspace: Path) -> dict[str, Any]:
    """Return what keeps the meaning of relative paths, which count from the project."""
    command = entry["command"]
    is_relative = command.startswith(("./", "../", ".\\", "..\\"))
    return {
        "command": str(workspace / command) if is_relative else command,
        "cwd": str(workspace / entry.get("cwd", "")),
    }

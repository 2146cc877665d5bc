"""The file of an MCP client: JSON, JSON with comments, or TOML; and the servers in it, as they are written there.

Above: the commands that import servers. Below: json5, for comments and commas that JSON does not have.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import json5

from broker.config.other_forms import ALIASES
from broker.config.text import read_text
from broker.errors import ConfigError
from codegen.plain_text import one_line
from sandbox.json_bounds import is_within_depth

_MAX_COMMENTED = 256 * 1024
"""Characters of a file with comments, which takes a second for every 40,000."""

_MAX_LEVELS = 100
_SAID_CHARACTERS = 200
_JSON5_PLACE = re.compile(r"^<string>:(\d+) ")
_SERVERS = frozenset({"mcpservers", *(alias for alias, key in ALIASES.items() if key == "mcpServers")})


def servers_of(path: Path) -> dict[str, Any]:
    """Return the servers in a client's file by name, each as it is written.

    Raises:
        ConfigError: The file cannot be read, or is no such file.
    """
    document = _decoded(read_text(path), path)
    if not isinstance(document, dict):
        raise ConfigError(str(path), ["has no servers: it is not an object"])
    return _servers_in(document) | _servers_of_folder(document)


def _decoded(text: str, path: Path) -> Any:
    """Return what a file holds.

    Raises:
        ConfigError: It is neither JSON nor TOML, or is too long or too deep for it.
    """
    source = str(path)
    try:
        if path.suffix == ".toml":
            return tomllib.loads(text)
        if not is_within_depth(text, _MAX_LEVELS):
            raise ConfigError(source, ["is nested too deep"])
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            if len(text) > _MAX_COMMENTED:
                raise
            return json5.loads(text)
    except (ValueError, RecursionError) as error:  # of the one that was tried last
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        said = one_line(_JSON5_PLACE.sub(r"line \1: ", str(error)), _SAID_CHARACTERS)
        raise ConfigError(source, [f"is not {kind}: {said}"]) from None


def _servers_in(document: dict[str, Any]) -> dict[str, Any]:
    """Return what stands under the key that clients have for it; one has another such key below the first."""
    found: dict[str, Any] = {}
    for key, value in document.items():
        if key.lower() in _SERVERS and isinstance(value, dict):
            found |= _servers_in(value) or value
    return found


def _servers_of_folder(document: dict[str, Any]) -> dict[str, Any]:
    """Return what Claude Code keeps for the folder that we are in, beside what it keeps for all."""
    projects = document.get("projects")
    project = projects.get(str(Path.cwd())) if isinstance(projects, dict) else None
    return _servers_in(project) if isinstance(project, dict) else {}

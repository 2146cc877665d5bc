"""Changes the servers of a config file, and nothing else in it.

Above: the commands that add and remove servers. Below: config.py, which judges each entry. A file that cannot be read
is left as it is. What people had written by hand keeps its order, though not its line breaks.
"""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from broker.config.config import Config
from broker.config.other_forms import with_servers_named
from broker.config.problems import data_problems
from broker.config.text import decoded, read_text
from broker.config.variables import references
from broker.errors import ConfigError
from broker.whole_file import PRIVATE, write_whole
from sandbox.private_folder import make_private_folder

_ANY_HOST = "http://localhost"
_SURROGATE = re.compile("[\ud800-\udfff]")


class ConfigEdit:
    """The servers of a config file, to be changed and saved.

    Attributes:
        path: The file.
        servers: The entries by name, as they stand in it.
    """

    def __init__(self, path: Path) -> None:
        """Read the file; one that is not there has no servers.

        Raises:
            ConfigError: It cannot be read, or is no config.
        """
        self.path = path
        document: dict[str, Any] = {}
        if path.exists():
            document = with_servers_named(decoded(read_text(path), str(path)))
        servers = document.setdefault("mcpServers", {})
        if not isinstance(servers, dict):
            raise ConfigError(str(path), ["'mcpServers' must be a JSON object"])
        self._document = document
        self.servers: dict[str, Any] = servers

    def save(self) -> None:
        """Write the file; a new one, and the folders above it, are for this user alone: it may hold secrets.

        Raises:
            OSError: It cannot be written.
        """
        make_private_folder(self.path.parent)
        mode = stat.S_IMODE(self.path.stat().st_mode) if self.path.exists() else PRIVATE
        write_whole(self.path, [_text(self._document), "\n"], mode=mode)

    def unset(self, name: str) -> list[str]:
        """Return the variables of the environment that an entry needs and that are not set now."""
        return [one for one in dict.fromkeys(references(self.servers[name])) if one not in os.environ]


def _text(document: dict[str, Any]) -> str:
    text = json.dumps(document, indent=2, ensure_ascii=False)
    # Half of a surrogate pair stands in JSON only as an escape.
    return text if text.isascii() or _SURROGATE.search(text) is None else json.dumps(document, indent=2)


def entry_problems(name: str, entry: dict[str, Any]) -> list[str]:
    """Return what is wrong with a server's name or entry; the variables of an entry need not be set yet."""
    environment = dict.fromkeys(references(entry), "1") | os.environ
    url = entry.get("url")
    if isinstance(url, str) and "${" in url:
        entry = entry | {"url": _ANY_HOST}
    document = {"mcpServers": {name: entry}}
    problems = list(data_problems(document))
    if not problems:
        try:
            Config.parse(json.dumps(document), source=name, folder=Path.cwd(), environment=environment)
        except ConfigError as error:
            problems = list(error.problems)
    return [problem.removeprefix(f"server {name!r}: ") for problem in problems]

"""Where MCP clients keep the servers of a user.

Above: the commands that import servers. Below: platformdirs. Files of a project are never among them: a config names
commands that are started, and the folder may be a clone of somebody else's repository.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

if TYPE_CHECKING:
    from collections.abc import Mapping


CLIENTS = (
    "claude-code",
    "claude-desktop",
    "codex",
    "copilot",
    "cursor",
    "gemini",
    "opencode",
    "vscode",
    "windsurf",
    "zed",
)
"""By the names that `codemode mcp import --from` takes."""


def client_files(environment: Mapping[str, str] = os.environ) -> dict[str, tuple[Path, ...]]:
    """Return by client where its file may be, whether or not it is there; the first that is there counts."""
    home = Path.home()
    of_programs = platformdirs.user_config_path(roaming=True)

    def folder(variable: str, default: Path) -> Path:
        return Path(environment[variable]) if environment.get(variable) else default

    dot_config = folder("XDG_CONFIG_HOME", home / ".config")
    opencode = dot_config / "opencode"
    zed = of_programs / "Zed" if sys.platform == "win32" else dot_config / "zed"
    return {
        "claude-code": (folder("CLAUDE_CONFIG_DIR", home) / ".claude.json",),
        "claude-desktop": (of_programs / "Claude" / "claude_desktop_config.json",),
        "codex": (folder("CODEX_HOME", home / ".codex") / "config.toml",),
        "copilot": (folder("COPILOT_HOME", home / ".copilot") / "mcp-config.json",),
        "cursor": (home / ".cursor" / "mcp.json",),
        "gemini": (home / ".gemini" / "settings.json",),
        "opencode": (opencode / "opencode.json", opencode / "opencode.jsonc"),
        "vscode": (of_programs / "Code" / "User" / "mcp.json",),
        "windsurf": (home / ".codeium" / "windsurf" / "mcp_config.json",),
        "zed": (zed / "settings.json",),
    }


def file_of(client: str) -> Path | None:
    """Return the file of a client; None if it is not there, or its folder cannot be entered."""
    return next((path for path in client_files()[client] if os.path.isfile(path)), None)  # noqa: PTH113  # Path raises

"""Which config a command reads.

Above: configured.py, completed_names.py, which Tab runs: nothing heavy is imported here. Below: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import platformdirs

if TYPE_CHECKING:
    from pathlib import Path


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

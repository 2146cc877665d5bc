"""The processes of stdio servers, started. Loads nothing of the SDK, so that servers start while it is loaded.

Above: upstreams.py, which starts all of them first, and stdio.py, which speaks to one. Below: anyio, process_tree.py.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from anyio.abc import Process

    from broker.upstreams.server_config import ServerConfig

# What a server is given beside its own `env`: what programs need to start, and nothing that may be a secret.
_INHERITED = (
    (
        "APPDATA",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "USERNAME",
        "USERPROFILE",
    )
    if sys.platform == "win32"
    else ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
)

_END_SECONDS = 1.0


async def start_process(config: ServerConfig) -> Process:
    """Starts the server of a config as the leader of a session, with pipes.

    Raises:
        OSError: The program cannot be started.
    """
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return await anyio.open_process(
        [config.command or "", *config.args],
        env=inherited | config.env,
        cwd=config.cwd,
        start_new_session=True,
    )


async def end_process(process: Process) -> None:
    """Ends a process that nobody came to speak to, with all that it started, and waits a second for its end."""
    from broker.upstreams.process_tree import ProcessTree  # noqa: PLC0415  # psutil is not waited for to start servers

    with anyio.move_on_after(_END_SECONDS, shield=True):
        await ProcessTree(process).kill()
        await process.aclose()

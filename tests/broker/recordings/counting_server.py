"""An MCP server that logs every call to a file, and kills the process that started it at a call it is told of.

KILL is `CALL:WHERE:MICROSECONDS`: at which of its calls, whether before that is logged, when it is logged, or so long
after it was answered. A second server waits until the first has ended, so that the log is complete when it is read.
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading
import time
from pathlib import Path

from mcp.server.mcpserver import MCPServer

LOG = Path(os.environ["CALL_LOG"])
AT, WHERE, MICROSECONDS = (os.environ.get("KILL") or "0:never:0").split(":")

server = MCPServer("counting")
calls = 0
lock = LOG.with_suffix(".lock").open("w")
fcntl.flock(lock, fcntl.LOCK_EX)


def kill() -> None:
    os.kill(os.getppid(), signal.SIGKILL)


def kill_later() -> None:
    time.sleep(int(MICROSECONDS) / 1e6)
    kill()


@server.tool()
def log(n: int) -> int:
    """Logs a number."""
    global calls  # noqa: PLW0603  # one process, one count
    calls += 1
    is_now = calls == int(AT)
    if is_now and WHERE == "before":
        kill()
    with LOG.open("a") as file:
        file.write(f"{n}\n")
    if is_now and WHERE == "logged":
        kill()
    if is_now and WHERE == "answered":
        threading.Thread(target=kill_later, daemon=True).start()
    return n


@server.tool()
def seen(n: int) -> bool:
    """Tells whether a number was logged."""
    return LOG.exists() and f"{n}\n" in LOG.open().readlines()


server.run()

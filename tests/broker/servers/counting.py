"""Tools that log every call to a file, and kill the process that started them at a call; served by `plain.py`.

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

LOG = Path(os.environ["CALL_LOG"])
AT, WHERE, MICROSECONDS = (os.environ.get("KILL") or "0:never:0").split(":")

calls = 0
lock = LOG.with_suffix(".lock").open("w")
fcntl.flock(lock, fcntl.LOCK_EX)


def _kill() -> None:
    os.kill(os.getppid(), signal.SIGKILL)


def _kill_later() -> None:
    time.sleep(int(MICROSECONDS) / 1e6)
    _kill()


def log(n: int) -> int:
    """Logs a number."""
    global calls  # noqa: PLW0603  # one process, one count
    calls += 1
    is_now = calls == int(AT)
    if is_now and WHERE == "before":
        _kill()
    with LOG.open("a") as file:
        file.write(f"{n}\n")
    if is_now and WHERE == "logged":
        _kill()
    if is_now and WHERE == "answered":
        threading.Thread(target=_kill_later, daemon=True).start()
    return n


def seen(n: int) -> bool:
    """Tells whether a number was logged."""
    return LOG.exists() and f"{n}\n" in LOG.open().readlines()

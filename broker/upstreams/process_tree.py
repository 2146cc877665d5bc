"""A server's process and all its descendants: found while it lives, and ended with it.

Above: server_process.py and stdio.py. Below: psutil, which knows a process by its pid and the time it was started: a
pid that was given to another process meanwhile is never signalled.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from anyio.abc import Process

_POLL_SECONDS = 0.01
_KILLED_SECONDS = 1.0
_STOPPED_SECONDS = 0.2
_ROUNDS = 20


class ProcessTree:
    """The processes of one server: the descendants of its process, and the session that this leads.

    The session holds those too whose parent has ended. A descendant that left the session (`setsid`) is known if its
    parent lived when `look` was called.
    """

    def __init__(self, process: Process) -> None:
        """Take a process that leads a session, best as soon as it was started."""
        self._leader_pid = process.pid
        self._known: dict[psutil.Process, None] = {}
        if process.returncode is None:  # else the pid may be another's
            with suppress(psutil.Error):
                self._known[psutil.Process(process.pid)] = None

    def look(self) -> bool:
        """Note processes that were started since; return whether there were any."""
        waiting = [*self._known, *self._session_members()]
        running: dict[psutil.Process, None] = {}
        while waiting:
            process = waiting.pop()
            if process not in running and process.is_running():
                running[process] = None
                waiting += _children(process)
        before = len(self._known)
        self._known |= running
        return len(self._known) > before

    def _session_members(self) -> Iterator[psutil.Process]:
        if sys.platform == "win32" or not self._owns_session():
            return
        for pid in psutil.pids():
            with suppress(psutil.Error, OSError):
                if os.getsid(pid) == self._leader_pid:
                    yield psutil.Process(pid)

    def _owns_session(self) -> bool:
        """Tell whether the session of the leader's pid can only be the server's: no other process has that pid."""
        return any(each.pid == self._leader_pid and each.is_running() for each in self._known) or not psutil.pid_exists(
            self._leader_pid
        )

    async def end(self, grace_seconds: float) -> None:
        """Tell what lives to end, and kill what has not after the grace."""
        self.look()
        if not any(map(_lives, self._known)):
            return
        if sys.platform != "win32":  # where ending is killing
            self._each(psutil.Process.terminate)
            if await self._has_ended(grace_seconds):
                return
        await self.kill()

    async def kill(self) -> None:
        """Kill what lives; everything is stopped first, so that it starts nothing more."""
        for _ in range(_ROUNDS):
            self._each(psutil.Process.suspend)
            await self._has_stopped()
            if not self.look():
                break
        self._each(psutil.Process.kill)
        await self._has_ended(_KILLED_SECONDS)

    def _each(self, signal: Callable[[psutil.Process], None]) -> None:
        for process in self._known:
            with suppress(psutil.Error):
                signal(process)

    async def _has_stopped(self) -> None:
        """Wait until nothing runs: what was told to stop on another core may still start a process before it does."""
        with anyio.move_on_after(_STOPPED_SECONDS):
            while any(map(_runs, self._known)):  # noqa: ASYNC110  # nothing signals that others' children stopped
                await anyio.sleep(_POLL_SECONDS)

    async def _has_ended(self, within_seconds: float) -> bool:
        with anyio.move_on_after(within_seconds):
            while any(map(_lives, self._known)) or self.look():  # noqa: ASYNC110  # nothing signals the end of others' children
                await anyio.sleep(_POLL_SECONDS)
            return True
        return False


def _children(process: psutil.Process) -> Iterator[psutil.Process]:
    """Yield the children of a process; on Linux from its own files, without a pass over all processes."""
    if sys.platform == "linux":
        with suppress(OSError):  # a thread has ended, or the kernel was built without the file
            for task in Path(f"/proc/{process.pid}/task").iterdir():
                for pid in (task / "children").read_text().split():
                    with suppress(psutil.Error):
                        yield psutil.Process(int(pid))
            return
    with suppress(psutil.Error):
        yield from process.children()


def _lives(process: psutil.Process) -> bool:
    """Tell whether a process runs; one that waits for its parent to note its end does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _runs(process: psutil.Process) -> bool:
    """Tell whether a process may still start another."""
    try:
        return _lives(process) and process.status() != psutil.STATUS_STOPPED
    except psutil.Error:
        return False

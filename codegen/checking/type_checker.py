"""The processes that check scripts: a few at once, each kept for the next script.

Above: check.py. Below: language_server.py, and finding_cache.py for what was asked before.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING

from codegen.checking.finding_cache import FindingCache
from codegen.checking.language_server import TIMEOUT_SECONDS, LanguageServer
from codegen.errors import CheckerError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

    from codegen.checking.language_server import Finding

MAX_CHECKERS = max(2, os.cpu_count() or 1)
_MAX_KEPT = 2
"""Processes of some 40 MB that wait for the next script; a check takes two milliseconds."""
_MAX_CHARACTERS = 2_000_000
"""What a process is given before another takes its place: a hundred megabytes stay in the memory of one by then."""
_IDLE_SECONDS = 600.0
"""After which a process is not asked again: another of ours may soon take its folder for one that was left behind."""
_PRACTICE = "import asyncio\nprint(await asyncio.gather())\n"
"""What most scripts share: learning it takes a process longer than to check a script afterwards."""

_RUNNING = threading.BoundedSemaphore(MAX_CHECKERS)


class TypeChecker:
    """`ty`, and what it said last. Safe to use from several threads.

    Inside of its `with` block a process is kept for the next script, and none outlives it; outside, each check starts
    and ends one.

    Example:
        with TypeChecker() as checker:
            check(script, stubs, checker=checker)
    """

    def __init__(self) -> None:
        """Start nothing yet."""
        self._cache = FindingCache(self._ask)
        self._lock = threading.Lock()
        self._idle: list[LanguageServer] = []
        self._working: set[LanguageServer] = set()
        self._keeps = False
        self._is_prepared = threading.Event()
        self._is_prepared.set()

    def __enter__(self) -> Self:
        """Keep processes from now on."""
        self._keeps = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End all processes; checks that go on fail."""
        with self._lock:
            self._keeps = False
            idle, self._idle = self._idle, []
            for server in self._working:
                server.kill()
        for server in idle:
            server.close()

    def prepare(self) -> None:
        """Start the process of the first script ahead of it, inside of the `with` block; a script that comes now waits.

        Does nothing if as many scripts are being checked as may be. If it fails, the first script starts another
        process and gets the error.
        """
        if not _RUNNING.acquire(blocking=False):
            return
        self._is_prepared.clear()
        try:
            with contextlib.suppress(CheckerError, OSError):
                self._asked(LanguageServer(), _PRACTICE, {})
        finally:
            self._is_prepared.set()
            _RUNNING.release()

    def findings(self, script: str, package: Mapping[str, str]) -> tuple[Finding, ...]:
        """Return what the checker says about `script` beside the files of `package`, in its order.

        Raises:
            CheckerError: If the checker cannot be started, takes too long or answers something else.
        """
        return self._cache.findings(script, package)

    def _ask(self, script: str, package: Mapping[str, str]) -> list[Finding]:
        self._is_prepared.wait(TIMEOUT_SECONDS)
        if not _RUNNING.acquire(timeout=TIMEOUT_SECONDS):
            raise CheckerError("too many scripts are being checked at once")
        try:
            kept = self._kept()
            if kept is not None:
                try:
                    return self._asked(kept, script, package)
                except (CheckerError, OSError):
                    # Perhaps through what it was asked before, or somebody killed it: a new one tells.
                    if kept.is_late or not self._keeps:
                        raise
            return self._asked(LanguageServer(), script, package)
        finally:
            _RUNNING.release()

    def _kept(self) -> LanguageServer | None:
        """Take the process that was used last, and end those that were not used for long."""
        with self._lock:
            recent = time.monotonic() - _IDLE_SECONDS
            stale = [server for server in self._idle if server.used_at < recent]
            self._idle = [server for server in self._idle if server.used_at >= recent]
            kept = self._idle.pop() if self._idle else None
        for server in stale:
            server.close()
        return kept

    def _asked(self, server: LanguageServer, script: str, package: Mapping[str, str]) -> list[Finding]:
        """Ask a process, and keep it for the next script if it may be asked again."""
        is_kept = False
        with self._lock:
            self._working.add(server)
        try:
            found = server.findings(script, package)
            is_kept = server.characters < _MAX_CHARACTERS and not server.is_late
            return found
        finally:
            with self._lock:
                self._working.remove(server)
                is_kept = is_kept and self._keeps and len(self._idle) < _MAX_KEPT
                if is_kept:
                    self._idle.append(server)
            if not is_kept:
                server.close()

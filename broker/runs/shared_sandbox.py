"""The sandbox of a broker, which all sessions share: entered when it is first needed, and left with the broker.

Above: broker.py, which may have it opened beside the servers, and sessions.py. Below: the sandbox.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

from sandbox import Sandbox, SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import TaskGroup, TaskStatus

    from sandbox import Limits


class SharedSandbox:
    """A sandbox that a task of its own holds open, from its first use until the broker ends."""

    def __init__(self, sandbox: Sandbox, tasks: Callable[[], TaskGroup]) -> None:
        """Take a sandbox, which others may have entered too; `tasks` returns where the task is started, or raises.

        Raises:
            TypeError: It is no `Sandbox`: only the first run would fail.
        """
        _check(sandbox)
        self._sandbox = sandbox
        self._tasks = tasks
        self._opening = anyio.Lock()
        self._is_open = False

    @property
    def limits(self) -> Limits:
        """Bounds of a run that brings none of its own."""
        return self._sandbox.limits

    async def opened(self) -> Sandbox:
        """Return the sandbox, entered.

        Raises:
            SandboxError: It cannot be opened.
            RuntimeError: The broker is closed.
        """
        return await self._opened(self._tasks())

    async def open_early(self, tasks: TaskGroup) -> None:
        """Open it ahead of the first run, which gets the error if that fails."""
        with suppress(SandboxError):
            await self._opened(tasks)

    async def _opened(self, tasks: TaskGroup) -> Sandbox:
        if not self._is_open:
            async with self._opening:
                if not self._is_open:
                    await tasks.start(self._hold)
        return self._sandbox

    async def _hold(self, *, task_status: TaskStatus[None]) -> None:
        # A task of its own: a context manager is left by the task that entered it.
        async with self._sandbox:
            self._is_open = True
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                self._is_open = False


def _check(given: object) -> None:
    if not isinstance(given, Sandbox):
        kind = type(given).__name__
        raise TypeError(f"a sandbox is a sandbox.Sandbox, as Sandbox(isolation='thread'), not a {kind}")

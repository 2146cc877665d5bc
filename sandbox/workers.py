"""The worker processes: more as runs come, at most one for each core; replaced when worn or lost."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from sandbox.errors import SandboxClosedError, WorkerError
from sandbox.pool import SPARE_BYTES
from sandbox.worker_line import WorkerLostError
from sandbox.worker_process import IN_PROCESS, WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sandbox.compiled import CompiledFile
    from sandbox.confinement import Confinement
    from sandbox.pool import Pool
    from sandbox.seat import Seat

RUNS_A_WORKER = 5_000
"""Runs after which a worker takes no more of them and ends with its last."""

IDLE_GROWTH_BYTES = 256 * 1024 * 1024
"""Memory that a worker without runs may have gained since it started, beside what its pool takes."""

MAX_ATTEMPTS = 8
"""Workers that may end under a run that looks for a place."""

_WITHOUT_PROCESSES = ("win32", "emscripten", "wasi", "ios")


class Workers:
    """Worker processes that map one compiled image."""

    def __init__(
        self, compiled: CompiledFile, pool: Pool | None, reload: Callable[[], Awaitable[CompiledFile]]
    ) -> None:
        """Take what to map, what each keeps ready, and how to get it again when the file is not the same any more."""
        self._compiled = compiled
        self._pool = pool
        self._reload = reload
        self._reloading = anyio.Lock()
        self._count = _cores()
        self._pool_bytes = 0 if pool is None else pool.size * SPARE_BYTES
        self._workers: list[WorkerProcess] = []
        self._first_bytes: dict[WorkerProcess, int] = {}
        self._is_closed = False

    async def start(self) -> None:
        """Start the first process and wait until it is ready.

        Raises:
            WorkerError: None can be started.
        """
        _check_platform()
        try:
            await self._choose_first()
        except BaseException:
            self._kill_all()
            raise

    async def close(self) -> None:
        """End all processes, and start no other for a run that goes on. Not to be cancelled."""
        self._is_closed = True
        await anyio.to_thread.run_sync(self._kill_all)

    @property
    def processes(self) -> tuple[WorkerProcess, ...]:
        """The processes that are alive."""
        return tuple(worker for worker in self._workers if not worker.is_lost)

    @property
    def confinement(self) -> Confinement | None:
        """What holds the workers; None before `start`."""
        return next((worker.confinement for worker in self._workers if worker.confinement is not None), None)

    async def open(self, on_output: Callable[[int, str], None]) -> tuple[WorkerProcess, Seat]:
        """Give an instance a place in the worker with the fewest of them.

        Raises:
            SandboxClosedError: They were closed.
            WorkerError: Workers end as fast as they are started.
            ImageError: The compiled image is gone from the cache, and cannot be made again.
        """
        for _ in range(MAX_ATTEMPTS):
            with contextlib.suppress(WorkerLostError, WorkerError):
                worker = await self._choose()
                return worker, worker.open(on_output)
        raise WorkerError("worker processes end as fast as they are started: is memory short?")

    def release(self, worker: WorkerProcess, seat: Seat) -> None:
        """End an instance's stay; a worker that has served its time ends with its last run."""
        worker.close_seat(seat)
        if worker.is_lost:
            return
        if not worker.is_retired and self._is_worn(worker):
            worker.is_retired = True
        if worker.is_retired and not worker.seats:
            worker.kill()

    async def _choose_first(self) -> None:
        try:
            await self._choose()
        except WorkerError:
            if self._compiled.is_unchanged():
                raise
            await self._choose()  # its file was replaced or removed meanwhile

    async def _choose(self) -> WorkerProcess:
        self._drop_lost()
        if self._is_without_worker():
            await self._put_in_place()
            if self._is_without_worker():
                self._begin()
        ready = [worker for worker in self._workers if worker.is_ready() and not worker.is_retired]
        if not ready:
            first = next(worker for worker in self._workers if not worker.is_retired)
            await first.ready()
            ready = [first]
        chosen = min(ready, key=lambda worker: len(worker.seats))
        if chosen not in self._first_bytes:
            self._first_bytes[chosen] = chosen.private_bytes
        are_few = sum(not worker.is_retired for worker in self._workers) < self._count
        if chosen.seats and are_few and self._compiled.is_unchanged():
            # Nobody waits for it; later runs find it ready.
            self._begin()
        return chosen

    def _begin(self) -> None:
        if self._is_closed:
            raise SandboxClosedError("the sandbox was closed while a script ran: let runs end inside its `async with`")
        self._workers.append(WorkerProcess(self._compiled, self._pool))

    def _is_without_worker(self) -> bool:
        return all(worker.is_retired for worker in self._workers)

    async def _put_in_place(self) -> None:
        """Get the image again for workers to come: somebody has emptied the cache, or compiled it anew."""
        async with self._reloading:
            if not self._compiled.is_unchanged():
                self._compiled = await self._reload()

    def _drop_lost(self) -> None:
        self._workers = [worker for worker in self._workers if not worker.is_lost]
        self._first_bytes = {worker: size for worker, size in self._first_bytes.items() if not worker.is_lost}

    def _is_worn(self, worker: WorkerProcess) -> bool:
        if worker.started_runs >= RUNS_A_WORKER:
            return True
        most = self._first_bytes.get(worker, 0) + self._pool_bytes + IDLE_GROWTH_BYTES
        return not worker.seats and worker.private_bytes > most

    def _kill_all(self) -> None:
        for worker in self._workers:
            worker.kill()


async def confinement_here(compiled: CompiledFile) -> Confinement:
    """Start a worker only to learn what confines it on this machine.

    Raises:
        WorkerError: None can be started.
    """
    _check_platform()
    worker = WorkerProcess(compiled)
    try:
        await worker.ready()
    finally:
        worker.kill()
    if worker.confinement is None:
        raise AssertionError("a worker that is ready has said what confines it")
    return worker.confinement


def _check_platform() -> None:
    if sys.platform in _WITHOUT_PROCESSES:
        raise WorkerError(f"there are no worker processes on {sys.platform}: {IN_PROCESS}")


def _cores() -> int:
    cores = os.cpu_count() or 1
    if sys.platform == "linux":
        cores = len(os.sched_getaffinity(0))
    return cores

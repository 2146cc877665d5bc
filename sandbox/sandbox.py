"""The sandbox as hosts use it: one object that runs any number of scripts, each in an instance of its own."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import anyio.to_thread

from sandbox.errors import SandboxClosedError
from sandbox.images import load_selected
from sandbox.kernel import Kernel
from sandbox.limits import Limits, check_limits
from sandbox.perform import check_conditions, check_script, perform, refuse_every_call
from sandbox.pool import Pool, Spares
from sandbox.process_isolate import ProcessIsolate
from sandbox.system_limits import check_address_space
from sandbox.terms import Terms, drop_output
from sandbox.thread_isolate import ThreadIsolate
from sandbox.threads import WasmThreads
from sandbox.workers import Workers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from sandbox.compiled import CompiledFile
    from sandbox.confinement import Confinement
    from sandbox.image import Image
    from sandbox.isolate import Isolate
    from sandbox.journal import Journal, Past
    from sandbox.outcome import Call, Completion, Raised, Reference, RunResult, Stopped
    from sandbox.stopwatch import Stopwatch

DEFAULT_POOL = Pool()

Isolation = Literal["process", "thread"]
"""Where guests run: in confined worker processes, or in the caller's own."""


class Sandbox:
    """Runs scripts in CPython 3.14 inside WebAssembly, with no network, files, processes or host clock.

    Use as an async context manager, on asyncio or trio; several may enter one at a time, and share it. Each `run` gets
    a new instance of the interpreter; nothing is shared between runs. A waiting script holds no thread.

    Example:
        async with Sandbox() as sandbox:
            result = await sandbox.run("print('hello'); 6 * 7")
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        component: Path | str | None = None,
        cache: Path | None = None,
        compiling: Callable[[str], AbstractContextManager[object]] = contextlib.nullcontext,
        isolation: Isolation = "process",
        pool: Pool | None = DEFAULT_POOL,
    ) -> None:
        """Take the settings; entering loads the image.

        Args:
            limits: Bounds of a run that brings none of its own.
            component: The guest image to run: a `.wasm` file, or the name of one that was built with packages; the
                installed one if not given.
            cache: Folder for compiled images; default is the user's cache folder.
            compiling: Makes a context manager that shows progress; it is entered, on a thread, while the image is
                compiled (5 to 15 s, once a machine). Gets the reason why the compiled image cannot be kept, so that
                each entering compiles it, or an empty text. Left on the event loop's thread if entering the sandbox is
                cancelled, which does not wait for the compiler.
            isolation: `"process"` runs guests in confined worker processes, at most one for each core; `"thread"` in
                this one, where a flaw in wasmtime gives a script what this process has.
            pool: How many instances are kept ready for runs; None makes each when its run begins.

        Raises:
            TypeError: `pool` is not a `Pool`, or `limits` is not a `Limits`.
            ValueError: `isolation` is not one of the two.
        """
        if isolation not in get_args(Isolation):
            raise ValueError(f'isolation must be "process" or "thread", not {isolation!r}')
        if not (pool is None or isinstance(pool, Pool)):
            raise TypeError(f"the pool is a Pool, as Pool(size=4), or None, not {pool!r}")
        check_limits(limits)
        self._isolation = isolation
        self._pool = pool
        self._workers: Workers | None = None
        self._spares: Spares | None = None
        self._limits = limits or Limits()
        self._load = partial(load_selected, component, cache=cache, compiling=compiling)
        self._image: Image | None = None
        self._users = 0
        self._changing = anyio.Lock()
        self._threads = WasmThreads(max(4, 2 * (os.cpu_count() or 1)))

    async def __aenter__(self) -> Self:
        """Load the image, unless others have entered and not left yet: they share it.

        Raises:
            ImageError: It is missing, damaged or cannot be compiled.
            SystemLimitError: An interpreter does not fit into the address space.
            WorkerError: No worker process can be started.
        """
        async with self._changing:
            if not self._users:
                await self._open()
            self._users += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the threads and processes when the last one leaves; runs must have ended before."""
        with anyio.CancelScope(shield=True):
            async with self._changing:
                self._users -= 1
                if not self._users:
                    await self._close()

    async def _open(self) -> None:
        check_address_space()
        image = await self._load()
        if self._isolation == "process":
            workers = Workers(image.file, self._pool, self._reload)
            await workers.start()
            self._workers = workers
        else:
            self._spares = Spares(image, self._pool)
        self._image = image

    async def _close(self) -> None:
        self._image = None
        if self._workers is not None:
            await self._workers.close()
            self._workers = None
        if self._spares is not None:
            await anyio.to_thread.run_sync(self._spares.close)
            self._spares = None
        self._threads.close()

    async def run(  # noqa: PLR0913  # a run's conditions; all but the script have defaults
        self,
        script: str,
        *,
        answer: Callable[[Call], Awaitable[Completion | None]] = refuse_every_call,
        manifest: Mapping[str, Any] | None = None,
        filename: str = "script.py",
        limits: Limits | None = None,
        seed: int | None = None,
        wall_ns: int | None = None,
        on_output: Callable[[str, str], None] | None = None,
        stopwatch: Stopwatch | None = None,
        journal: Journal | None = None,
        past: Past | None = None,
    ) -> RunResult:
        """Run one script to its outcome.

        Args:
            script: Python source. Top-level `await` and `return` work.
            answer: Awaited for each call of a stub, several at a time. What it raises, `run` raises. None leaves the
                call open; a run that waits for nothing but open calls is parked.
            manifest: The stubs the script may import from `tools`; shape in `sandbox/guest/stubs.py`.
            filename: How tracebacks call the script.
            limits: Bounds of this run.
            seed: Where the run's random numbers come from, of 64 bits; drawn if not given.
            wall_ns: Unix time at which the run's clock starts, in nanoseconds; now if not given.
            on_output: Receives ("stdout" or "stderr", text) as it is printed, on the event loop's thread: be quick.
                What it raises ends the run, and `run` raises it.
            stopwatch: The run's wall time, for an `answer` that pauses it while a person is asked.
            journal: Gets everything that is needed to run it again.
            past: What is known about this run if it is resumed; seed, time, script, manifest and limits are the same.

        Raises:
            SandboxClosedError: The sandbox is not entered.
            TypeError: The script or `filename` is no text, `limits` is no `Limits`, or `on_output` no plain function.
            ValueError: The script is longer than `MAX_SCRIPT_CHARACTERS`, or `seed` or `wall_ns` is out of its bounds.
        """
        check_script(script)
        check_limits(limits)
        check_conditions(filename, on_output, seed=seed, wall_ns=wall_ns)
        isolate = self._isolate()
        seed = secrets.randbits(64) if seed is None else seed
        terms = Terms(limits or self._limits, seed, time.time_ns() if wall_ns is None else wall_ns)
        try:
            return await perform(
                isolate,
                terms,
                script,
                answer=answer,
                manifest=manifest,
                filename=filename,
                on_output=on_output,
                stopwatch=stopwatch,
                journal=journal,
                past=past,
            )
        finally:
            isolate.close()

    @contextlib.asynccontextmanager
    async def kernel(self, *, limits: Limits | None = None, seed: int | None = None) -> AsyncIterator[Kernel]:
        """Keep one instance for the whole block: each script finds what those before it have defined.

        Args:
            limits: Bounds of each script that brings none of its own; default are the sandbox's.
            seed: Where the random numbers of all its scripts come from; drawn if not given.

        Raises:
            SandboxClosedError: The sandbox is not entered.
            TypeError: `limits` is not a `Limits`.
            ValueError: `seed` is out of its bounds.

        Example:
            async with sandbox.kernel() as kernel:
                await kernel.run("total = 6 * 7")
                result = await kernel.run("total")
        """
        check_limits(limits)
        check_conditions("", None, seed=seed)
        isolate = self._isolate()
        kernel = Kernel(isolate, limits or self._limits, secrets.randbits(64) if seed is None else seed)
        try:
            yield kernel
        finally:
            kernel.end()
            isolate.close()

    async def references(
        self, script: str, *, unimported: Iterable[str] = (), limits: Limits | None = None
    ) -> tuple[Reference, ...] | Raised | Stopped:
        """Return which tools a script names, parsed inside a guest: the host never parses a script.

        Args:
            script: Python source.
            unimported: Names that count as tools without an import: a namespace with an attribute, or what is called.
                One that the script binds itself is its own.
            limits: Bounds of the reading; the sandbox's if None.

        Raises:
            SandboxClosedError: The sandbox is not entered.
            TypeError: The script is no text, or `limits` is not a `Limits`.
            ValueError: The script is longer than `MAX_SCRIPT_CHARACTERS`.
        """
        check_script(script)
        check_limits(limits)
        isolate = self._isolate()
        isolate.take_on(Terms(limits or self._limits, seed=0, wall_ns=0), drop_output)
        try:
            return await isolate.references(script, unimported)
        finally:
            isolate.close()

    @property
    def limits(self) -> Limits:
        """Bounds of a run that brings none of its own."""
        return self._limits

    @property
    def image_digest(self) -> str:
        """sha256 of the guest image, in hex.

        Raises:
            SandboxClosedError: The sandbox is not entered.
        """
        return self._loaded().digest

    @property
    def confinement(self) -> Confinement | None:
        """What confines the worker processes; None in `"thread"` isolation and outside the `async with` block."""
        return None if self._workers is None else self._workers.confinement

    def _isolate(self) -> Isolate:
        self._loaded()
        if self._workers is not None:
            return ProcessIsolate(self._workers)
        if self._spares is None:
            raise AssertionError("an entered sandbox has workers or spares")
        return ThreadIsolate(self._spares.take(), self._threads, self._spares)

    async def _reload(self) -> CompiledFile:
        self._image = await self._load()
        return self._image.file

    def _loaded(self) -> Image:
        if self._image is None:
            raise SandboxClosedError("the sandbox is closed: use it inside `async with Sandbox() as sandbox:`")
        return self._image

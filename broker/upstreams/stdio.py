"""A server as a child process: started, spoken to on its pipes, and its end noticed.

Above: connecting.py. Below: child_messages.py and anyio's processes. The SDK's own stdio transport puts no bound on a
line and does not tell anyone that the child has gone.
"""

from __future__ import annotations

import itertools
import re
import signal
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio

from broker.texts.call_texts import last_words
from broker.upstreams.child_messages import Incoming, Outgoing
from broker.upstreams.process_tree import ProcessTree
from broker.upstreams.server_process import start_process
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from anyio.abc import Process

    from broker.upstreams.server_config import ServerConfig
    from broker.upstreams.server_process import ServerProcess

STDERR_BYTES = 8 * 1024
"""How much of a child's stderr is kept: its end, for diagnostics."""

_CHUNK_BYTES = 64 * 1024
_EXIT_SECONDS = 1.0
_KILL_SECONDS = 1.0
_LAST_WORDS_SECONDS = 0.25
_WORDS_CHARACTERS = 200
_LAUNCHER = re.compile(r"node:child_process:\d")
_ENDED_BADLY = "Error: Command failed"
"""What Node says of a program that it was to start: the program's own reason stands before."""
_NPM_REASON = re.compile(r"npm (?:error|ERR!) (?!code |errno |syscall |path |A complete log)\S")
_PLACE = re.compile(r"\s+at \S")
_TRACE_END = re.compile(r"Node\.js v\d|\s+at \S|[\s\]}),;]*\Z")
"""How what Node, Java or .NET write of an error ends: with a version, a place, or the brackets around its fields."""
_TRACE_REASON = re.compile(r"(?:.*\s)?[\w.$]*(?:Error|Exception)(?: \[\w+\])?: \S")


class Child:
    """One child process with the end of its stderr.

    Attributes:
        unanswered: How many of its requests wait for our answers.
        end: Takes the reason why the connection is of no further use.
    """

    def __init__(
        self,
        server: ServerProcess,
        on_end: Callable[[str], None],
        on_stray: Callable[[str], None],
        redact: Callable[[str], str],
    ) -> None:
        """Report the end of the connection, with its reason, to `on_end`; `redact` takes secrets out of its words.

        `on_stray` takes the first line of its stdout that is no message, made inert and short.
        """
        self.unanswered = 0
        self.end = on_end
        self._on_stray = on_stray
        self._redact = redact
        self._stray = b""
        self._process = server.process
        self._stdin = server.stdin
        self._stdout = server.stdout
        self._tree = ProcessTree(server.process)
        self._stderr = bytearray()
        self._stderr_ended = anyio.Event()
        self._is_stopping = False

    def take_stray(self, line: bytes) -> None:
        """Keep a line of its stdout that is no message: the last one may say why it ended."""
        if not self._stray:
            self._on_stray(one_line(self._redact(line.decode("utf-8", "replace")), _WORDS_CHARACTERS))
        self._stray = line

    def last_words(self) -> str:
        """Return the line that says why it ended, made inert and short; an empty text if it said nothing.

        That is the last one of stderr, but for what npm, traces and uv write behind the reason; where nothing came
        there, the last one of stdout that was no message.
        """
        # Redacted before a line is cut: of half a secret nobody could tell later that it is one.
        lines = self._redact(bytes(self._stderr or self._stray).decode("utf-8", "replace")).splitlines()
        if any(line.startswith(_ENDED_BADLY) for line in lines):
            lines = list(itertools.takewhile(lambda line: not _LAUNCHER.match(line), lines)) or lines
        of_npm = [line for line in lines if _NPM_REASON.match(line)]
        told = of_npm[:1] or _reason_of_trace(lines) or _text_of_box(lines) or lines
        said = [text for line in told if any(map(str.isalnum, text := one_line(line, _WORDS_CHARACTERS)))]
        return next((text for text in reversed(said) if not text.lower().startswith("hint:")), "")

    async def drain_stderr(self) -> None:
        """Read stderr to its end, so that the child never blocks on it."""
        assert self._process.stderr is not None  # noqa: S101  # it was opened as a pipe
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            while True:
                self._stderr += await self._process.stderr.receive(_CHUNK_BYTES)
                del self._stderr[:-STDERR_BYTES]
        self._stderr_ended.set()

    def look(self) -> None:
        """Report an exit that the pipes do not show, because something that the child started holds them."""
        if not self._is_stopping and self._process.returncode is not None:
            self._report("")

    async def report_exit(self, otherwise: str) -> None:
        """Say how the child ended, with its last words where there are any; `otherwise` if it still runs."""
        if self._is_stopping:
            return  # it ends because we are done with it, for a reason that stands elsewhere
        with anyio.move_on_after(_LAST_WORDS_SECONDS):
            await self._stderr_ended.wait()
        with anyio.move_on_after(_LAST_WORDS_SECONDS):
            await self._process.wait()
        self._report(otherwise)

    def _report(self, otherwise: str) -> None:
        words = self.last_words()
        code = self._process.returncode
        ended = otherwise if code is None else _how_it_ended(code)
        self.end(ended + last_words(words))

    async def stop(self) -> None:
        """Close stdin, wait, then end what is left of all that it started."""
        self._is_stopping = True
        self._tree.look()  # what it started is not found by it any more once it has exited
        await self._stdin.aclose()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._drain_stdout)
            with anyio.move_on_after(_EXIT_SECONDS):
                await _exited(self._process)
            # Also when it has exited: what it started may hold the pipes.
            await self._tree.end(_KILL_SECONDS)
            with anyio.move_on_after(_EXIT_SECONDS):
                await _exited(self._process)
            tasks.cancel_scope.cancel()
        await self._stdout.aclose()
        if self._process.stderr is not None:
            with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self._process.stderr.aclose()
        _close_transport(self._process)

    async def _drain_stdout(self) -> None:
        """Read stdout to its end and drop it: a child may write more at its end than the pipe holds."""
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            await self._stdout.receive(lambda _chunk: True)


@asynccontextmanager
async def stdio_streams(
    config: ServerConfig,
    on_end: Callable[[str], None],
    server: ServerProcess | None = None,
    *,
    on_stop: Callable[[str], None] = lambda _words: None,
    on_stray: Callable[[str], None] = lambda _line: None,
    redact: Callable[[str], str],
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """Start the server of a config and yield its message streams; all that it started is gone afterwards.

    `server` is that where it has been started already. `redact` takes secrets out of its last words, which `on_stop`
    takes when we are done with it, and the first line of its stdout that is no message, which `on_stray` takes.

    Raises:
        OSError: The program cannot be started.
    """
    if server is None:
        server = await start_process(config)
    # No await before the task group: a cancellation in between would leave the child behind.
    child = Child(server, on_end, on_stray, redact)
    incoming = Incoming(child, server.stdout)
    outgoing = Outgoing(child, server.stdin)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(child.drain_stderr)
        tasks.start_soon(outgoing.write_rests)
        try:
            yield incoming, outgoing
        finally:
            on_stop(child.last_words())
            with anyio.CancelScope(shield=True):
                await child.stop()
            tasks.cancel_scope.cancel()


def _reason_of_trace(lines: Sequence[str]) -> list[str]:
    """Return the last error of a trace, as one line without the places, where the lines end with a trace."""
    written = [line for line in lines if line.strip()]
    if not written or not _TRACE_END.match(written[-1]):
        return []
    begins = [number for number, line in enumerate(written) if _TRACE_REASON.match(line)]
    reason = itertools.takewhile(lambda line: not _PLACE.match(line), written[begins[-1] :] if begins else ())
    return [" ".join(reason)] if begins else []


def _text_of_box(lines: Sequence[str]) -> list[str]:
    """Return what stands in the box that Typer draws around an error, as one line, where the lines end with one."""
    *written, last = [line.strip() for line in lines if line.strip()] or [""]
    inside = itertools.takewhile(lambda line: line.startswith("│"), reversed(written))
    text = " ".join(line.strip("│ ") for line in reversed(list(inside)))
    return [text] if last.startswith("╰") and text else []


def _how_it_ended(code: int) -> str:
    if code < 0:
        with suppress(ValueError):
            return f"it was ended by {signal.Signals(-code).name}"
    return f"it exited with code {code}"


async def _exited(process: Process) -> None:
    """Wait for the process alone; `Process.wait` also waits for pipes that a grandchild may hold open."""
    while process.returncode is None:  # noqa: ASYNC110  # nothing signals the exit of the process alone
        await anyio.sleep(0.01)


def _close_transport(process: Process) -> None:
    """Close asyncio's transport, which a grandchild that holds a pipe would keep open; trio has none."""
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:
        with suppress(PermissionError, ProcessLookupError):
            transport.close()

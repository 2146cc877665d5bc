"""A server as a child process: JSON-RPC lines on its pipes, bounded, and its end noticed.

Above: connecting.py. Below: anyio's processes. The SDK's own stdio transport puts no bound on a line and does
not tell anyone that the child has gone. Everything read here was written by the server.
"""

from __future__ import annotations

import json
import re
import signal
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
from mcp.shared.message import SessionMessage
from mcp.types.jsonrpc import JSONRPCError, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter

from broker.upstreams.process_tree import ProcessTree
from broker.upstreams.server_process import start_process
from codegen.plain_text import one_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from anyio.abc import Process
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.types.jsonrpc import JSONRPCMessage

    from broker.upstreams.server_config import ServerConfig

LINE_BYTES = 8 * 1024 * 1024
"""The longest message a server may send."""

VALUES = 700_000
"""How many commas and brackets one message may hold: a list of empty lists takes sixty times its bytes in memory."""

REQUESTS = 1_000
"""Requests of a server that wait for our answers."""

STDERR_BYTES = 8 * 1024
"""How much of a child's stderr is kept: its end, for diagnostics."""

_CHUNK_BYTES = 64 * 1024
_QUEUED_MESSAGES = 64
_WRITE_SECONDS = 10.0
_EXIT_SECONDS = 1.0
_KILL_SECONDS = 1.0
_LAST_WORDS_SECONDS = 0.25
_WORDS_CHARACTERS = 200
_NPM_REASON = re.compile(r"npm (?:error|ERR!) (?!code |errno |syscall |path |A complete log)\S")
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


class Child:
    """One child process with the end of its stderr."""

    def __init__(self, process: Process, on_end: Callable[[str], None]) -> None:
        """Report the end of the connection, with its reason, to `on_end`."""
        self._process = process
        self._tree = ProcessTree(process)
        self._on_end = on_end
        self._stderr = bytearray()
        self._stderr_ended = anyio.Event()
        self._unanswered = 0
        self._is_stopping = False

    def last_words(self) -> str:
        """Return the line of stderr that says why it ended, made inert and short; an empty text if it said nothing.

        That is the last one, but for what npm and uv write behind the reason.
        """
        lines = self._stderr.decode("utf-8", "replace").splitlines()
        of_npm = [line for line in lines if _NPM_REASON.match(line)]
        said = [text for line in of_npm[:1] or lines if (text := one_line(line, _WORDS_CHARACTERS))]
        return next((text for text in reversed(said) if not text.lower().startswith("hint:")), "")

    async def drain_stderr(self) -> None:
        """Read stderr to its end, so that the child never blocks on it."""
        assert self._process.stderr is not None  # noqa: S101  # it was opened as a pipe
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            while True:
                self._stderr += await self._process.stderr.receive(_CHUNK_BYTES)
                del self._stderr[:-STDERR_BYTES]
        self._stderr_ended.set()

    async def read(self, messages: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Deliver the child's lines until it ends, breaks the protocol or sends a line beyond the bound."""
        assert self._process.stdout is not None  # noqa: S101  # it was opened as a pipe
        line = bytearray()
        async with messages:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
                while True:
                    try:
                        chunk = await self._process.stdout.receive(_CHUNK_BYTES)
                    except anyio.EndOfStream:
                        break
                    *ended, rest = chunk.split(b"\n")
                    for part in ended:
                        line += part
                        if not await self._deliver(bytes(line), messages):
                            return
                        line.clear()
                    line += rest
                    if len(line) > LINE_BYTES:
                        self._on_end(f"it sent a message over the bound of {LINE_BYTES} bytes")
                        return
            # Before the stream is closed: waiting calls then fail with this reason.
            await self._report_exit("it closed its output")

    async def _deliver(self, line: bytes, messages: MemoryObjectSendStream[SessionMessage | Exception]) -> bool:
        """Deliver one line; False when the connection is of no further use."""
        if len(line) > LINE_BYTES:
            self._on_end(f"it sent a message over the bound of {LINE_BYTES} bytes")
            return False
        if _values(line) > VALUES:
            self._on_end(f"it sent a message of more than {VALUES} values")
            return False
        try:
            message = _decoded(line)
        except (ValueError, RecursionError):
            # A banner or a log line on stdout is a common fault and harmless; a broken message loses an answer.
            if b'"jsonrpc"' not in line:
                return True
            self._on_end("it sent a message that is not JSON-RPC")
            return False
        if isinstance(message, JSONRPCRequest):
            self._unanswered += 1
            if self._unanswered > REQUESTS:
                self._on_end(f"it sent more than {REQUESTS} requests and did not wait for answers")
                return False
        await messages.send(SessionMessage(message))
        return True

    async def write(self, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Send to the child's stdin; a child that does not read for long is given up."""
        assert self._process.stdin is not None  # noqa: S101  # it was opened as a pipe
        async with messages:
            try:
                async for one in messages:
                    text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                    with anyio.fail_after(_WRITE_SECONDS):
                        await self._process.stdin.send(text.encode("utf-8", "replace") + b"\n")
                    if isinstance(one.message, JSONRPCResponse | JSONRPCError):
                        self._unanswered -= 1
            except TimeoutError:
                self._on_end("it does not read its input")
            except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
                await self._report_exit("it closed its input")

    async def _report_exit(self, otherwise: str) -> None:
        """Say how the child ended, with its last words where there are any; `otherwise` if it still runs."""
        if self._is_stopping:
            return  # it ends because we are done with it, for a reason that stands elsewhere
        with anyio.move_on_after(_LAST_WORDS_SECONDS):
            await self._stderr_ended.wait()
        with anyio.move_on_after(_LAST_WORDS_SECONDS):
            await self._process.wait()
        words = self.last_words()
        code = self._process.returncode
        ended = otherwise if code is None else _how_it_ended(code)
        self._on_end(ended + (f"; its last words: {words}" if words else ""))

    async def stop(self) -> None:
        """Close stdin, wait, then end what is left of all that it started."""
        self._is_stopping = True
        self._tree.look()  # what it started is not found by it any more once it has exited
        if self._process.stdin is not None:
            with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self._process.stdin.aclose()
        with anyio.move_on_after(_EXIT_SECONDS):
            await _exited(self._process)
        # Also when it has exited: what it started may hold the pipes.
        await self._tree.end(_KILL_SECONDS)
        with anyio.move_on_after(_EXIT_SECONDS):
            await _exited(self._process)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await stream.aclose()
        _close_transport(self._process)


@asynccontextmanager
async def stdio_streams(
    config: ServerConfig, on_end: Callable[[str], None], process: Process | None = None
) -> AsyncIterator[TransportStreams]:
    """Start the server of a config and yield its message streams; all that it started is gone afterwards.

    `process` is the server where it has been started already.

    Raises:
        OSError: The program cannot be started.
    """
    if process is None:
        process = await start_process(config)
    # No await before the task group: a cancellation in between would leave the child behind.
    child = Child(process, on_end)
    incoming_send, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_receive = anyio.create_memory_object_stream[SessionMessage](_QUEUED_MESSAGES)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(child.drain_stderr)
        tasks.start_soon(child.read, incoming_send)
        tasks.start_soon(child.write, outgoing_receive)
        try:
            yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                outgoing.close()
                incoming.close()
                await child.stop()
            tasks.cancel_scope.cancel()


def _values(line: bytes) -> int:
    """Return about how many values a message holds; its strings are left out of the count only when it matters."""
    count = _weight(line)
    return count if count <= VALUES else _weight(_STRING.sub(b"", line))


def _weight(line: bytes) -> int:
    return line.count(b",") + line.count(b"[") + line.count(b"{")


def _decoded(line: bytes) -> JSONRPCMessage:
    """Read a message. What the strict parser refuses for one bad character is read with that character replaced.

    Raises:
        ValueError: It is no message.
        RecursionError: It is nested too deep.
    """
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return jsonrpc_message_adapter.validate_python(json.loads(line.decode("utf-8", "replace")), by_name=False)


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

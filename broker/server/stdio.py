"""MCP over the process's own standard streams: one message a line.

Above: `codemode serve`. Below: anyio. Not the SDK's transport: that one reads in a thread which nothing can interrupt,
so that a server told to end would wait for its client's next line, and reads lines of any length.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)
from pydantic_core import from_json

from broker.logging import logger
from broker.server.request_ids import NO_ID, has_no_right_id, is_id

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

LINE_BYTES = 8 * 1024 * 1024
"""The longest message a client may send."""

_READ_BYTES = 65_536
# What a pipe takes whole once it is said to take anything.
_WRITE_BYTES = 4_096
_FIRST_PRIVATE = 3


@asynccontextmanager
async def standard_streams() -> AsyncIterator[
    tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
]:
    """Yield the messages of the client and a stream for ours. A client that reads no more is gone: its messages end.

    Meanwhile file descriptor 0 is empty and 1 is stderr, so that nothing else in this process or its children can read
    or write a message.
    """
    with ExitStack() as stack:
        reading, writing = _claim(stack)
        incoming_send, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, outgoing_receive = anyio.create_memory_object_stream[SessionMessage](0)
        listening = anyio.CancelScope()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, reading, incoming_send, outgoing.clone(), listening)
            tasks.start_soon(_write, writing, outgoing_receive, listening)
            yield incoming, outgoing
            tasks.cancel_scope.cancel()


def _claim(stack: ExitStack) -> tuple[int, int]:
    private = [_duplicate(number) for number in (0, 1)]
    for number, kept in enumerate(private):
        stack.callback(os.close, kept)
        stack.callback(os.dup2, kept, number)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return private[0], private[1]


def _duplicate(number: int) -> int:
    """Return another descriptor of the same, which no child is given, and which is none of the standard ones."""
    if sys.platform == "win32":
        private = os.dup(number)
    else:
        private = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE)
    return private


async def _read(
    number: int,
    messages: MemoryObjectSendStream[SessionMessage | Exception],
    answers: MemoryObjectSendStream[SessionMessage],
    listening: anyio.CancelScope,
) -> None:
    """Read until the end, or until `listening` is cancelled; what is no message is answered here."""
    waits = _can_be_waited_for(number)
    line = bytearray()
    async with messages, answers:
        with listening, suppress(ConnectionError, anyio.BrokenResourceError):
            while chunk := await _chunk(number, waits=waits):
                *ended, rest = chunk.split(b"\n")
                for part in ended:
                    line += part
                    if (message := _message(line)) is not None:
                        await messages.send(message)
                    elif (refusal := _refusal(line)) is not None:
                        await answers.send(SessionMessage(refusal))
                    line = bytearray()
                line += rest
                if len(line) > LINE_BYTES:
                    logger().error("the client sent a message over the bound", most_bytes=LINE_BYTES)
                    return


async def _chunk(number: int, *, waits: bool) -> bytes:
    if not waits:
        return await anyio.to_thread.run_sync(os.read, number, _READ_BYTES, abandon_on_cancel=True)
    await anyio.wait_readable(number)
    return os.read(number, _READ_BYTES)


def _can_be_waited_for(number: int) -> bool:
    """Tell a pipe, socket or terminal from a file or device, which is always ready. Windows can wait for no pipe."""
    if sys.platform == "win32":
        return False
    mode = os.fstat(number).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(number)


def _message(line: bytearray) -> SessionMessage | None:
    """Read a message; one that is refused for a bad character is read with that one replaced: it wants an answer."""
    with suppress(ValueError, RecursionError):
        return _validated(bytes(line))
    with suppress(ValueError, RecursionError):
        text = json.dumps(json.loads(line.decode("utf-8", "replace")), ensure_ascii=False)
        return _validated(text.encode("utf-8", "replace"))
    return None


def _validated(text: bytes) -> SessionMessage:
    message = jsonrpc_message_adapter.validate_json(text, by_name=False)
    if isinstance(message, JSONRPCNotification) and has_no_right_id(from_json(text)):
        raise ValueError(NO_ID)
    return SessionMessage(message)


def _refusal(line: bytearray) -> JSONRPCError | None:
    """Return the answer to a line that is no message; None to an empty one, and to what may be meant as an answer."""
    try:
        said = from_json(bytes(line))
    except ValueError:
        error = ErrorData(code=PARSE_ERROR, message="Parse error: a line is not JSON, and was left out")
        return JSONRPCError(jsonrpc="2.0", id=None, error=error) if line.strip() else None
    if isinstance(said, dict) and "method" not in said:
        return None  # its id would be one of ours, and the same one of the client's is of another request
    number = said.get("id") if isinstance(said, dict) else None
    what = NO_ID if has_no_right_id(said) else "Invalid request: a line is one JSON-RPC 2.0 message; not executed"
    error = ErrorData(code=INVALID_REQUEST, message=what)
    return JSONRPCError(jsonrpc="2.0", id=number if is_id(number) else None, error=error)


async def _write(
    number: int, messages: MemoryObjectReceiveStream[SessionMessage], listening: anyio.CancelScope
) -> None:
    waits = _can_be_waited_for(number)
    async with messages:
        async for one in messages:
            text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
            data = memoryview(text.encode("utf-8", "replace") + b"\n")
            while data:
                part = data[:_WRITE_BYTES]
                try:
                    if waits:
                        await anyio.wait_writable(number)
                        written = os.write(number, part)
                    else:
                        written = await anyio.to_thread.run_sync(os.write, number, part)
                except ConnectionError:
                    listening.cancel()  # whoever takes no answers is asked nothing more: calls have effects
                    return
                data = data[written:]

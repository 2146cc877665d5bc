"""The messages of a child process as the SDK reads and writes them: JSON-RPC lines, bounded.

Above: stdio.py, child_calls.py. Below: the child's pipes, message_bounds.py. The SDK's dispatcher reads and writes
these streams in the tasks that it has anyway: no task and no queue stands between it and the pipes. Everything read
here was written by the server.
"""

from __future__ import annotations

import json
import re
from collections import deque
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types.jsonrpc import (
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic_core import from_json

from broker.collector import collector_at_rest
from broker.upstreams.message_bounds import FLOODED, LINE_BYTES, MANY_VALUES, OVER_BOUND, REQUESTS, VALUES
from broker.upstreams.sdk_streams import ReadingStream, Stream
from broker.value_count import values_in

if TYPE_CHECKING:
    from mcp.types.jsonrpc import ErrorData, JSONRPCMessage, RequestId

    from broker.upstreams.input_pipe import Input
    from broker.upstreams.output_pipe import Output
    from broker.upstreams.stdio import Child

_BEGINS_MESSAGE = re.compile(rb"(?:\xef\xbb\xbf|\x1b\[[0-9;]*m|\s)*(?:\[\s*)?\{")
_MEMBERS = 3  # of a result: `jsonrpc`, `id`, `result`
_STRAY_BYTES = 8 * 1024
_LONG_BYTES = 256 * 1024
_WRITE_SECONDS = 10.0


@dataclass(slots=True, eq=False)
class AwaitedAnswer:
    """The answer to a request that is not the SDK's.

    Attributes:
        number: The id of the request.
        arrived: Set when it is there, or none will come any more.
        result: What the server has answered.
        error: What it has answered instead.
    """

    number: int
    arrived: anyio.Event = field(default_factory=anyio.Event)
    result: dict[str, Any] | None = None
    error: ErrorData | None = None


class Incoming(ReadingStream):
    """The messages of a child's stdout, until it ends, breaks the protocol or sends a line beyond the bound.

    Attributes:
        answers: Those that are waited for by others than the SDK, which is not given them, by the requests' ids.
    """

    def __init__(self, child: Child, stdout: Output) -> None:
        """Report the end of the connection, with its reason, to the child."""
        self._child = child
        self._stdout = stdout
        self.answers: dict[RequestId, AwaitedAnswer] = {}
        self._lines: deque[bytes] = deque()
        self._unended = bytearray()

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message.

        Raises:
            anyio.EndOfStream: The connection is of no further use; the child has the reason.
        """
        while True:
            if self._lines:
                await anyio.lowlevel.checkpoint()  # many lines at once hold up nobody else
            while not self._lines:
                await self._read()
            message = self._message(self._lines.popleft())
            if isinstance(message, JSONRPCRequest):
                return SessionMessage(message, ServerMessageMetadata(on_request_unanswered=self._settle))
            if message is not None and not self._is_taken(message):
                return SessionMessage(message)

    def _is_taken(self, message: JSONRPCMessage) -> bool:
        """Give an answer to whoever waits for it here; tell whether there was somebody."""
        match message:
            case JSONRPCResponse(id=number, result=result):
                return self._is_given(coerce_request_id(number), result, None)
            case JSONRPCError(id=int() | str() as number, error=error):
                return self._is_given(coerce_request_id(number), None, error)
        return False

    def _is_plainly_taken(self, decoded: Any) -> bool:
        """Do the same with JSON which is a result at first sight: to make a model of it takes longer."""
        match decoded:
            case {"jsonrpc": "2.0", "id": int(number), "result": dict(result)} if len(decoded) == _MEMBERS:
                return self._is_given(number, result, None)
        return False

    def _is_taken_whole(self, chunk: bytes) -> bool:
        """Do the same with a chunk that is one line; to count its values takes more of them than it has bytes."""
        if self._unended or not self.answers or chunk.find(b"\n") != len(chunk) - 1:
            return False
        try:
            return self._is_plainly_taken(from_json(chunk))
        except (ValueError, RecursionError):
            return False

    def _is_given(self, number: RequestId, result: dict[str, Any] | None, error: ErrorData | None) -> bool:
        answer = self.answers.pop(number, None)
        if answer is None:
            return False
        answer.result, answer.error = result, error
        answer.arrived.set()
        return True

    async def _settle(self) -> None:
        """Wait no more for the answer to a request: the server has cancelled it."""
        self._child.unanswered -= 1

    async def _read(self) -> None:
        try:
            chunk = await self._stdout.receive(self._is_taken_whole)
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            # Before the SDK hears of the end: waiting calls then fail with this reason.
            await self._child.report_exit("it closed its output")
            raise anyio.EndOfStream from None
        first, *others = chunk.split(b"\n")
        self._unended += first
        for part in others:
            self._lines.append(bytes(self._unended))
            self._unended[:] = part
        if len(self._unended) > LINE_BYTES:
            self._lines.append(bytes(self._unended))

    def _message(self, line: bytes) -> JSONRPCMessage | None:
        """Read one line; None for one that is no message, or is a result that whoever waits for it has got."""
        if len(line) > LINE_BYTES:
            raise self._broken(OVER_BOUND)
        if values_in(line, VALUES) > VALUES:
            raise self._broken(MANY_VALUES)
        decoded = None
        try:
            decoded = _decoded(line)
            if self._is_plainly_taken(decoded):
                return None
            # Not `validate_json`: that reads the text once for each kind of message that it may be.
            message = jsonrpc_message_adapter.validate_python(decoded, by_name=False)
        except (ValueError, RecursionError):
            # A banner or a log line on stdout is a common fault and harmless; a broken message loses an answer.
            if not _is_meant_as_message(line, decoded):
                if line.strip():
                    self._child.take_stray(line[:_STRAY_BYTES])
                return None
            raise self._broken("it sent a message that is not JSON-RPC") from None
        if isinstance(message, JSONRPCRequest):
            self._child.unanswered += 1
            if self._child.unanswered > REQUESTS:
                raise self._broken(FLOODED)
        return message

    def _broken(self, reason: str) -> anyio.EndOfStream:
        self._child.end(reason)
        return anyio.EndOfStream()


class Outgoing(Stream):
    """Messages to a child's stdin, each written whole, also when its sender has been cancelled.

    What the pipe takes of a message is written at once, and the rest is left to `write_rests`. Who comes meanwhile
    waits, but not with a notification: that a call was cancelled is told after its deadline.
    """

    def __init__(self, child: Child, stdin: Input) -> None:
        """Report to the child that it reads no more."""
        self._child = child
        self._stdin = stdin
        self._rest = b""
        self._behind: list[bytes] = []
        self._has_rest = anyio.Event()
        self._has_written = anyio.Event()
        self._is_broken = False

    async def send(self, one: SessionMessage) -> None:
        """Write a message.

        Raises:
            anyio.BrokenResourceError: The child reads no more; it has been told.
        """
        try:
            await self._write_message(one)
            if isinstance(one.message, JSONRPCNotification) and one.message.method == "notifications/cancelled":
                self._child.look()
        finally:
            # Also when it was cancelled while the answer waited for the pipe: there is no other.
            if isinstance(one.message, JSONRPCResponse | JSONRPCError):
                self._child.unanswered -= 1

    async def _write_message(self, one: SessionMessage) -> None:
        line = one.message.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8", "replace") + b"\n"
        if self._rest and not self._is_broken and isinstance(one.message, JSONRPCNotification):
            self._behind.append(line)
            return
        await self.write(line)

    async def write(self, line: bytes) -> None:
        """Write a message that is a line already.

        Raises:
            anyio.BrokenResourceError: The child reads no more; it has been told.
        """
        while self._rest and not self._is_broken:
            await self._has_written.wait()
        if self._is_broken:
            raise anyio.BrokenResourceError
        if not self.write_at_once(line):
            await self._child.report_exit("it closed its input")
            raise anyio.BrokenResourceError

    def write_at_once(self, line: bytes) -> bool:
        """Do the same without a wait; False is a message that was not written, as that takes one or cannot be done."""
        if self._rest or self._is_broken:
            return False
        try:
            written = self._stdin.write(line)
        except OSError:
            return False
        if written < len(line):
            self._rest = line[written:]
            self._has_written = anyio.Event()
            self._has_rest.set()
        return True

    async def write_rests(self) -> None:
        """Write what could not be written at once; a child that does not read for long is given up."""
        try:
            while True:
                await self._has_rest.wait()
                with anyio.fail_after(_WRITE_SECONDS):
                    await self._stdin.finish(self._rest)
                self._rest = b"".join(self._behind)
                self._behind.clear()
                if not self._rest:
                    self._has_rest = anyio.Event()
                    self._has_written.set()
        except TimeoutError:
            self._child.end("it does not read its input")
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            await self._child.report_exit("it closed its input")
        finally:
            self._is_broken = True
            self._has_written.set()


def _is_meant_as_message(line: bytes, decoded: Any) -> bool:
    """Tell a broken message from other output, such as a log line that quotes a message."""
    if isinstance(decoded, dict):
        return "jsonrpc" in decoded
    return b'"jsonrpc"' in line and _BEGINS_MESSAGE.match(line) is not None


def _decoded(line: bytes) -> Any:
    """Read JSON. What the strict parser refuses for one bad character is read with that character replaced.

    Raises:
        ValueError: It is none.
        RecursionError: It is nested too deep.
    """
    with collector_at_rest() if len(line) > _LONG_BYTES else nullcontext():
        try:
            return from_json(line)
        except ValueError:
            return json.loads(line.decode("utf-8", "replace"))

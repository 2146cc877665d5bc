"""Calls of a child process's tools: each answer goes from the pipe straight to whoever waits for it.

Above: connecting.py. Below: child_messages.py, and the SDK's dispatcher, which this is for all other messages. A
request of the SDK's takes a queue, a span, a clock and a turn of the event loop more, which are a quarter of a call.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import mcp.types as t
from mcp import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from pydantic_core import to_json

from broker.tracing import is_in_span
from broker.upstreams.child_messages import AwaitedAnswer
from sandbox.pace import PACE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.shared.dispatcher import CallOptions, OnNotify, OnNotifyIntercept, OnRequest

    from broker.upstreams.child_messages import Incoming, Outgoing

_FIRST_NUMBER = 1_000_000_000
"""Far from those of the SDK's own requests, and within 32 bits."""

_CANCEL_SECONDS = 5.0
_OF_THE_SDK = frozenset(("on_progress", "timeout", "request_id"))
"""Options of a request for which the SDK has the means."""


class ChildDispatcher(JSONRPCDispatcher[TransportContext]):
    """The client's end of a connection to a child process."""

    def __init__(self, incoming: Incoming, outgoing: Outgoing) -> None:
        """Take the messages of the child."""
        super().__init__(incoming, outgoing)
        self._answers = incoming.answers
        self._outgoing = outgoing
        self._numbers = itertools.count(_FIRST_NUMBER)
        self._is_over = False

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: t.RequestId | None = None,
    ) -> dict[str, Any]:
        """Send a request and return its answer; cancelled, the child is told.

        Raises:
            MCPError: It answered with an error, or the connection is closed.
        """
        if method != "tools/call" or _OF_THE_SDK & (opts or {}).keys() or is_in_span():
            return await super().send_raw_request(method, params, opts, _related_request_id=_related_request_id)
        await anyio.lowlevel.checkpoint_if_cancelled()
        if self._is_over:
            raise _closed()
        number, line = self._request(method, params)
        try:
            await self._outgoing.write(line)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise _closed() from None
        if self._is_over:  # while the pipe took nothing more
            raise _closed()
        return await self.answer(self._awaited(number))

    async def send_at_once(self, method: str, params: Mapping[str, Any]) -> AwaitedAnswer | None:
        """Send a request unless that takes a wait; what waits for its answer is made while the child computes.

        None is a request that has not been sent, and is to be sent by `send_raw_request`.
        """
        await anyio.lowlevel.checkpoint_if_cancelled()
        if self._is_over or is_in_span():
            return None
        number, line = self._request(method, params)
        return self._awaited(number) if self._outgoing.write_at_once(line) else None

    async def answer(self, awaited: AwaitedAnswer) -> dict[str, Any]:
        """Return the answer to a request that was sent; cancelled, the child is told.

        Raises:
            MCPError: It is an error, or the connection is closed.
        """
        try:
            await awaited.arrived.wait()
            PACE.note_wait()
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_CANCEL_SECONDS, shield=True):
                await self.notify(
                    "notifications/cancelled", {"requestId": awaited.number, "reason": "caller cancelled"}
                )
            raise
        finally:
            self._answers.pop(awaited.number, None)
        if awaited.error is not None:
            raise MCPError(code=awaited.error.code, message=awaited.error.message, data=awaited.error.data)
        if awaited.result is None:
            raise _closed()
        return awaited.result

    def _request(self, method: str, params: Mapping[str, Any] | None) -> tuple[int, bytes]:
        """Return a request's number and its line."""
        number = next(self._numbers)
        # Not a model of the SDK's: to make and write one costs several times as much where the caches have gone cold.
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
        return number, to_json(request, inf_nan_mode="null") + b"\n"

    def _awaited(self, number: int) -> AwaitedAnswer:
        """Wait for the answer to a request that was sent just now: nothing is read as long as this task goes on."""
        awaited = self._answers[number] = AwaitedAnswer(number)
        return awaited

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Drive the connection until it ends; calls that still wait fail then."""
        try:
            await super().run(on_request, on_notify, on_notify_intercept, task_status=task_status)
        finally:
            self._is_over = True
            for answer in self._answers.values():
                answer.arrived.set()


def _closed() -> MCPError:
    return MCPError(code=t.CONNECTION_CLOSED, message="Connection closed")

"""Stands between the SDK's session and the wire: bounds the wait for the probe, and refuses what is not offered.

Above: connecting.py. Below: child_calls.py, in_process.py and the SDK's dispatchers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
from mcp import MCPError
from mcp.shared.dispatcher import CallOptions, Dispatcher
from mcp.types import METHOD_NOT_FOUND

from broker.upstreams.child_calls import ChildDispatcher

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.shared.dispatcher import DispatchContext, OnNotify, OnNotifyIntercept, OnRequest

# Long enough for an interpreter that starts slowly; a server that stays silent is asked the older way after it.
_PROBE_SECONDS = 6.0


class ProbingDispatcher(Dispatcher[Any]):
    """Forwards requests; the one that asks for the protocol's revisions has a time of its own."""

    def __init__(self, inner: Dispatcher[Any], refused: frozenset[str] = frozenset()) -> None:
        """Forward to `inner`; `refused` are the requests of a server that are for nobody here.

        The SDK would answer those with -32600; the revision wants -32601 (2025-11-25, client/roots, error handling).
        """
        self.child = inner if isinstance(inner, ChildDispatcher) else None
        """The inner one, if it is that of a child process."""
        self._inner = inner
        self._refused = refused

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request and return the answer as it came."""
        if method == "server/discover":
            opts = {**(opts or {}), "timeout": _PROBE_SECONDS}
        return await self._inner.send_raw_request(method, params, opts)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Forward a notification."""
        await self._inner.notify(method, params, opts)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Drive the inner dispatcher."""

        async def answer(
            context: DispatchContext[Any], method: str, params: Mapping[str, Any] | None
        ) -> dict[str, Any]:
            if method in self._refused:
                raise MCPError(METHOD_NOT_FOUND, "Method not found")
            return await on_request(context, method, params)

        await self._inner.run(answer, on_notify, on_notify_intercept, task_status=task_status)

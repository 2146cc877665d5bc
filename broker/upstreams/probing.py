"""Stands between the SDK's session and the wire: listings of tools pass by the SDK's validation.

Above: connecting.py. Below: the SDK's dispatchers. The SDK refuses a whole listing for one malformed tool; what came
is kept here for whoever asked.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import anyio
import mcp.types as t
from mcp.shared.dispatcher import CallOptions, Dispatcher
from mcp.types.methods import validate_server_result
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.shared.dispatcher import OnNotify, OnNotifyIntercept, OnRequest

RAW = "codemode.raw"
"""Where in `_meta` the number is under which the true answer is kept."""

# Long enough for an interpreter that starts slowly; a server that stays silent is asked the older way after it.
_PROBE_SECONDS = 6.0


class RawDispatcher(Dispatcher[Any]):
    """Forwards requests, and keeps listings of tools away from the SDK's validation.

    The session still stamps requests, and still sees those tools that it can validate: it derives the headers
    of later calls from them.
    """

    def __init__(self, inner: Dispatcher[Any], version: Callable[[], str | None]) -> None:
        """Forward to `inner`; `version` tells the negotiated revision once there is one."""
        self._inner = inner
        self._version = version
        self._numbers = itertools.count()
        self._answers: dict[int, dict[str, Any]] = {}

    def take(self, number: int) -> dict[str, Any]:
        """Return a true answer, once."""
        return self._answers.pop(number)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request; the true answer of `tools/list` is kept, under the number in `_meta`."""
        if method == "server/discover":
            opts = {**(opts or {}), "timeout": _PROBE_SECONDS}
        raw = await self._inner.send_raw_request(method, params, opts)
        return self._listing(raw) if method == "tools/list" else raw

    def _listing(self, raw: dict[str, Any]) -> dict[str, Any]:
        tools = raw.get("tools")
        version = self._version() or HANDSHAKE_PROTOCOL_VERSIONS[-1]
        kept = [tool for tool in tools if _is_valid(tool, version)] if isinstance(tools, list) else []
        answer: dict[str, Any] = {"tools": kept, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        if isinstance(cursor := raw.get("nextCursor"), str):
            answer["nextCursor"] = cursor
        # Not in `_meta` itself: the SDK writes that out, and what came may be nested deeper than it can.
        number = next(self._numbers)
        self._answers[number] = raw
        answer["_meta"] = {RAW: number, "offered": [tool["name"] for tool in kept]}
        return answer

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
        await self._inner.run(on_request, on_notify, on_notify_intercept, task_status=task_status)


def _is_valid(tool: Any, version: str) -> bool:
    page = {"tools": [tool], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    try:
        validate_server_result("tools/list", version, page)
        t.Tool.model_validate(tool, by_name=False)
    except (ValueError, RecursionError):
        return False
    return True

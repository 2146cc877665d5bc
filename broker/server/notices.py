"""What a client hears while a script runs: progress as calls end, and printed text as log messages.

Above: app.py. Below: the request's session of the SDK. The script is never slowed down by a client that reads slowly:
progress is told as it stands when the client can take it, and text beyond the bound is dropped from the log alone.
"""

from __future__ import annotations

import collections
import warnings
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
from mcp import MCPError
from mcp.shared.exceptions import MCPDeprecationWarning

from broker.runs.watching import Watching
from broker.server.sampling import client_extractor

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext
    from mcp.types import LoggingLevel

    from broker.calls.attempts import CallRecord

BACKLOG_PIECES = 1_000
"""Printed pieces that wait for a slow client; older ones are dropped."""

_LOGGER = "script"


class Notices:
    """The notices of one run; `watching` takes what happens, on any thread, and `send` tells the client."""

    def __init__(self, ctx: ServerRequestContext[Any, Any], *, with_output: bool) -> None:
        """Tell of progress, which the SDK drops where nobody asked for it, and of output where wanted."""
        self._session = ctx.session
        self._request_id = ctx.request_id
        self._printed: collections.deque[tuple[str, str]] = collections.deque(maxlen=BACKLOG_PIECES)
        self._progress: tuple[int, int, str] | None = None
        self._news = anyio.Event()
        self._closed = False
        self._native = anyio.lowlevel.current_token().native_token
        self.watching = Watching(
            on_output=self._on_output if with_output else None,
            on_call=self._on_call,
            extractor=client_extractor(ctx),
        )

    def close(self) -> None:
        """Let `send` end when everything has been told."""
        self._closed = True
        self._news.set()

    async def send(self) -> None:
        """Tell the client until closed. A client that is not there any more ends it."""
        try:
            while not self._closed or self._printed or self._progress:
                await self._news.wait()
                self._news = anyio.Event() if not self._closed else self._news
                await self._tell()
        except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            return

    async def _tell(self) -> None:
        while self._printed:
            stream, text = self._printed.popleft()
            level: LoggingLevel = "info" if stream == "stdout" else "warning"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MCPDeprecationWarning)  # the older era has nothing else
                sending = self._session.send_log_message(level, text, _LOGGER, self._request_id)
            await sending
        if self._progress is not None:
            (ended, made, message), self._progress = self._progress, None
            await self._session.report_progress(ended, made, message)

    def _on_call(self, record: CallRecord, ended: int, made: int) -> None:
        self._progress = (ended, made, f"{record.server}.{record.tool} {record.status}"[:200])
        self._news.set()

    def _on_output(self, stream: str, text: str) -> None:
        self._printed.append((stream, text))
        schedule = getattr(self._native, "call_soon_threadsafe", None) or self._native.run_sync_soon  # type: ignore[attr-defined]  # trio's
        schedule(self._wake)

    def _wake(self) -> None:
        self._news.set()

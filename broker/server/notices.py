"""Tells a client of a running script: progress as calls end and time goes by, and printed text as log messages.

Above: app.py. Below: the request's session of the SDK. The script is never slowed down by a client that reads slowly:
progress is told as it stands when the client can take it, and text beyond the bound is dropped from the log alone.
"""

from __future__ import annotations

import collections
import warnings
from typing import TYPE_CHECKING, Any

import anyio
from mcp import MCPError
from mcp.shared.exceptions import MCPDeprecationWarning

from broker.runs.watching import Watching
from broker.server.sampling import client_extractor
from broker.server.way_to_client import latest_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server import ServerRequestContext
    from mcp.types import LoggingLevel

    from broker.calls.attempts import CallRecord

BACKLOG_PIECES = 1_000
"""Printed pieces that wait for a slow client; older ones are dropped."""

BEAT_SECONDS = 10.0
"""After how long without progress a client is told that the script still runs: some give up after a minute of none."""

_LOGGER = "script"


class Notices:
    """The notices of one run; `watching` takes what happens, on the event loop's thread; `send` tells the client."""

    def __init__(self, ctx: ServerRequestContext[Any, Any], *, wants_output: Callable[[], bool]) -> None:
        """Tell of progress, which the SDK drops where nobody asked for it, and of output while it is wanted."""
        self._latest_request = latest_request(ctx)
        self._wants_output = wants_output
        self._printed: collections.deque[tuple[str, str]] = collections.deque(maxlen=BACKLOG_PIECES)
        self._progress: tuple[float, float | None, str] | None = None
        self._ended = 0
        self._beats = 0
        self._told_at = 0.0
        self._news = anyio.Event()
        self._closed = False
        self.watching = Watching(
            on_output=self._on_output,
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
            began = self._told_at = anyio.current_time()
            while not self._closed or self._printed or self._progress:
                with anyio.CancelScope(deadline=self._told_at + BEAT_SECONDS) as silence:
                    await self._news.wait()
                    self._news = anyio.Event() if not self._closed else self._news
                if silence.cancelled_caught:
                    self._on_beat(anyio.current_time() - began)
                await self._tell()
        except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            return

    async def _tell(self) -> None:
        while self._printed:
            stream, text = self._printed.popleft()
            level: LoggingLevel = "info" if stream == "stdout" else "warning"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MCPDeprecationWarning)  # the older era has nothing else
                request = self._latest_request()
                sending = request.session.send_log_message(level, text, _LOGGER, request.request_id)
            await sending
        if self._progress is not None:
            (progress, total, message), self._progress = self._progress, None
            self._told_at = anyio.current_time()
            await self._latest_request().session.report_progress(progress, total, message)

    def _on_beat(self, seconds: float) -> None:
        """Tell of the time alone; progress has to grow, so it lies between those of the last call and of the next."""
        self._beats += 1
        self._progress = (self._ended + self._beats / (self._beats + 1), None, f"running for {seconds:.0f} s")

    def _on_call(self, record: CallRecord, ended: int, made: int) -> None:
        self._ended, self._beats = ended, 0
        self._progress = (ended, made, f"{record.server}.{record.tool} {record.status}"[:200])
        self._news.set()

    def _on_output(self, stream: str, text: str) -> None:
        if self._wants_output():  # a client may change its mind while the script runs
            self._printed.append((stream, text))
            self._news.set()

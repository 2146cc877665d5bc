"""Tells a client of a running script: progress as calls end and time goes by, and printed text as log messages.

Above: app.py, and beats.py for the time. Below: the request's session of the SDK. The script is never slowed down by a
client that reads slowly: progress is told as it stands when the client can take it, and text beyond the bound is
dropped from the log alone.
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

    from anyio.abc import TaskGroup
    from mcp.server import ServerRequestContext
    from mcp.types import LoggingLevel

    from broker.calls.attempts import CallRecord

BACKLOG_PIECES = 1_000
"""Printed pieces that wait for a slow client; older ones are dropped."""

BEAT_SECONDS = 10.0
"""After how long without progress a client is told that the script still runs: some give up after a minute of none."""

_LOGGER = "script"


class Notices:
    """The notices of one run: what happens is taken on the event loop's thread, and a task tells the client of it.

    The task begins with the first notice: most runs end without one.
    """

    def __init__(
        self, ctx: ServerRequestContext[Any, Any], tasks: TaskGroup, *, wants_output: Callable[[], bool]
    ) -> None:
        """Tell of progress, which the SDK drops where nobody asked for it, and of output while it is wanted.

        `tasks` are those of the request; close the notices before they are waited for.
        """
        self._ctx = ctx
        self._tasks = tasks
        self._latest_request = latest_request(ctx)
        self._wants_output = wants_output
        self._printed: collections.deque[tuple[str, str]] = collections.deque(maxlen=BACKLOG_PIECES)
        self._progress: tuple[float, float | None, str] | None = None
        self._ended = 0
        self._beats = 0
        self._began = self._told_at = anyio.current_time()
        self._news: anyio.Event | None = None
        self._closed = False

    def watching(self, stop: anyio.CancelScope) -> Watching:
        """Return who watches the run, which `stop` stops."""
        return Watching(self._on_output, self._on_call, stop, extractor=client_extractor(self._ctx))

    def close(self) -> None:
        """Let the task end when everything has been told."""
        self._closed = True
        if self._news is not None:
            self._news.set()

    @property
    def beat_at(self) -> float:
        """When the client is to be told of the time alone, on the event loop's clock."""
        return self._told_at + BEAT_SECONDS

    def beat(self, now: float) -> None:
        """Tell of the time alone; progress has to grow, so it lies between those of the last call and of the next."""
        self._told_at = now
        if self._progress is None:
            self._beats += 1
            progress = self._ended + self._beats / (self._beats + 1)
            self._progress = (progress, None, f"running for {now - self._began:.0f} s")
            self._tell_soon()

    def _tell_soon(self) -> None:
        if self._news is None:
            self._news = anyio.Event()
            self._tasks.start_soon(self._send, self._news)
        self._news.set()

    async def _send(self, news: anyio.Event) -> None:
        """Tell the client until closed. A client that is not there any more ends it."""
        try:
            while not self._closed:
                await news.wait()
                self._news = news = anyio.Event()
                await self._tell()
            await self._tell()  # of what came meanwhile
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

    def _on_call(self, record: CallRecord, ended: int, made: int) -> None:
        self._ended, self._beats = ended, 0
        self._progress = (ended, made, f"{record.server}.{record.tool} {record.status}"[:200])
        self._tell_soon()

    def _on_output(self, stream: str, text: str) -> None:
        if self._wants_output():  # a client may change its mind while the script runs
            self._printed.append((stream, text))
            self._tell_soon()

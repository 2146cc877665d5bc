"""What a server needs of a broker whose tools it passes on to clients: several at once, that come, go and reconnect.

Above: `broker.server`, through `Broker.serving`. Below: the shelf of tools, the connections, the journal of runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from broker.api_arguments import check_seconds, check_texts

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker.recordings.journal.recorder import Recorder
    from broker.tools.tool_shelf import ToolShelf
    from broker.upstreams.upstreams import Upstreams


class Serving:
    """The side of a broker that faces a server; programs that call their own tools need nothing of it."""

    def __init__(self, *, shelf: ToolShelf, upstreams: Upstreams, recorder: Recorder) -> None:
        """Take the parts of the broker."""
        self._shelf = shelf
        self._upstreams = upstreams
        self._recorder = recorder

    @property
    def may_describe_all(self) -> bool:
        """Whether the config says `auto`: whether all tools are described from the start then depends on their size."""
        return self._shelf.from_the_start is not None

    @property
    def lazy_servers(self) -> frozenset[str]:
        """The names of the servers that are connected only while they are needed."""
        return self._upstreams.lazy

    def rest_unused(self, names: Collection[str]) -> list[str]:
        """Disconnect those of these lazy servers that only clients have used, now that a client's session has ended.

        Those that have an open call are left alone; returns the names of the others.
        """
        return self._upstreams.rest(names, spares_own=True)

    def take_fetch(self, caller: str) -> float:
        """Take one of the fetches of descriptions that a caller has in all its sessions.

        Return 0, or the seconds to wait if none is left. Callers that nobody authenticated have the empty name.

        Raises:
            TypeError: The caller's name is no text.
        """
        check_texts(caller=caller)
        return self._shelf.fetch_rates.take(caller, anyio.current_time())

    def requested_runs(self, request: str, within_seconds: float | None = None) -> list[str]:
        """Return the recorded runs that a client can go on with by repeating its request.

        Args:
            request: What tells the request from others, as it was when the runs began.
            within_seconds: Return only runs that began that recently.

        Raises:
            TypeError: `request` is no text, or `within_seconds` no number.
            ValueError: `within_seconds` is negative or NaN.
        """
        check_texts(request=request)
        if within_seconds is not None:
            check_seconds(within_seconds=within_seconds)
        return self._recorder.unfinished.requested(request, within_seconds)

    def note_shutdown(self) -> None:
        """Say that this process is about to end: runs that are interrupted from now on are treated as crashed."""
        self._recorder.recordings.is_shutting_down = True

    def end_servers(self) -> None:
        """Begin to end the servers before leaving the broker does, which then waits for less; calls fail now."""
        self._upstreams.end()

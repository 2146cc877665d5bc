"""The state of a server: whether it can be used now, and who waits for it. No connection, no SDK.

Above: upstream.py, whose owner task moves it on. Below: nothing. A server that is not lazy is wanted always; a lazy one
from when somebody needs it until nobody has used it for a while.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from broker.upstreams.explain import Explanation
    from broker.upstreams.server_status import State

RETRY_SECONDS = 5.0
"""How long a lazy server that could not be connected is not tried again: whoever needs it is told at once."""


class Readiness:
    """The state of one server.

    Attributes:
        state: What it can be used for now.
        explanation: What ended the last connection or attempt; None once it is connected, or no longer needed.
    """

    def __init__(self, *, is_disabled: bool, is_lazy: bool) -> None:
        """Begin before the first attempt to connect."""
        self.state: State = "disabled" if is_disabled else "asleep" if is_lazy else "connecting"
        self.explanation: Explanation | None = None
        self._is_disabled = is_disabled
        self._is_lazy = is_lazy
        self._failed_at = -math.inf
        self._settled = anyio.Event()
        self._wanted = anyio.Event()
        if is_disabled or is_lazy:
            self._settled.set()
        if not is_lazy:
            self._wanted.set()

    @property
    def is_wanted(self) -> bool:
        """Whether it has to be connected."""
        return self._wanted.is_set()

    @property
    def is_settled(self) -> bool:
        """Whether no attempt to connect is running."""
        return self._settled.is_set()

    async def settled(self) -> None:
        """Wait until the running attempt to connect has succeeded or failed."""
        await self._settled.wait()

    def want(self) -> None:
        """Connect a lazy server from now on, unless it failed a moment ago."""
        is_failing = self.state == "down" and anyio.current_time() - self._failed_at < RETRY_SECONDS
        if not is_failing:
            self._wanted.set()
            if self._is_lazy and self.state in {"asleep", "down"}:
                self._unsettle()

    async def begin(self) -> None:
        """Wait until it is wanted, to connect then."""
        await self._wanted.wait()
        self.state = "connecting"

    def become_ready(self) -> None:
        """Say that it is connected and its tools are listed."""
        self.state, self.explanation = "ready", None
        self._settled.set()

    def lose(self) -> None:
        """Say that its connection has ended: who needs it waits for the next one."""
        self._unsettle()

    def fail(self, explanation: Explanation, *, was_ready: bool) -> None:
        """Say why a connection, or an attempt at one, has ended."""
        self.explanation = explanation
        if not was_ready:
            self.state = "down"
            self._settled.set()

    def rest(self) -> None:
        """Say that a lazy server is not needed now."""
        self._wanted = anyio.Event()

    def fall_asleep(self, *, was_ready: bool) -> bool:
        """Let a lazy server that has been disconnected sleep until it is needed again; return whether it does."""
        if not self._is_lazy:
            return False
        if not was_ready:
            self._failed_at, self._wanted = anyio.current_time(), anyio.Event()
        elif not self._wanted.is_set():
            self.state, self.explanation = "asleep", None
            self._settled.set()
        return not self._wanted.is_set()

    def end(self) -> None:
        """Say that it is not connected again."""
        self.state = "disabled" if self._is_disabled else "stopped"
        self._settled.set()

    def _unsettle(self) -> None:
        self.state, self._settled = "connecting", anyio.Event()

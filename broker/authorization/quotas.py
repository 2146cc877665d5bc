"""Counts calls against the quotas of the policy, for all sessions of a broker together.

Above: desk.py. Below: policy. A call beyond a quota per minute or per run is refused; one beyond `concurrent` waits.
"""

from __future__ import annotations

import math
import time
from collections import deque
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import anyio

from broker.authorization.patterns import matcher
from broker.texts import refusal_texts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    from broker.authorization.calls import PendingCall
    from broker.authorization.policy import Policy
    from broker.authorization.policy_config import Quota

_MINUTE = 60.0
_NO_LIMIT = nullcontext()
_Key: TypeAlias = tuple[int, str]


@dataclass(slots=True, eq=False)
class _Count:
    """The calls that one quota counts."""

    recent: deque[float] = field(default_factory=deque)
    by_run: dict[str, int] = field(default_factory=dict)
    slots: anyio.CapacityLimiter | None = None


class Quotas:
    """The counts of a broker."""

    def __init__(self, policy: Policy, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with nothing counted."""
        self._quotas = policy.config.quotas
        self._clock = clock
        self._counts: dict[_Key, _Count] = {}

    def used_up(self, call: PendingCall) -> str:
        """Say which quota leaves no room for a call; empty if all do."""
        for key, quota in self._of(call) if self._quotas else ():
            count = self._counts.get(key)
            if count is None:
                continue
            if quota.per_run is not None and count.by_run.get(call.caller.run, 0) >= quota.per_run:
                return refusal_texts.used_up_in_run(_title(quota, key), quota.per_run)
            if quota.per_minute is not None and len(self._recent(count)) >= quota.per_minute:
                seconds = math.ceil(_MINUTE - (self._clock() - count.recent[-quota.per_minute]))
                return refusal_texts.used_up_for_now(_title(quota, key), quota.per_minute, seconds)
        return ""

    def count(self, call: PendingCall) -> None:
        """Count a call that is about to be made."""
        for key, quota in self._of(call) if self._quotas else ():
            count = self._counts.setdefault(key, _Count())
            if quota.per_minute is not None:
                self._recent(count).append(self._clock())
            if quota.per_run is not None:
                count.by_run[call.caller.run] = count.by_run.get(call.caller.run, 0) + 1

    def count_again(self, call: PendingCall) -> None:
        """Count a call that was made before its run was resumed: for the run, not for the present minute."""
        for key, quota in self._of(call) if self._quotas else ():
            if quota.per_run is not None:
                count = self._counts.setdefault(key, _Count())
                count.by_run[call.caller.run] = count.by_run.get(call.caller.run, 0) + 1

    def end_run(self, run: str) -> None:
        """Forget the counts of a run."""
        for count in self._counts.values():
            count.by_run.pop(run, None)

    def slot(self, call: PendingCall) -> AbstractAsyncContextManager[None]:
        """Wait for the turn of a call, and hold it inside the block."""
        return self._slot(call) if self._quotas else _NO_LIMIT

    @asynccontextmanager
    async def _slot(self, call: PendingCall) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            # Always in the order of the policy: no two calls wait for each other.
            for key, quota in self._of(call):
                if quota.concurrent is not None:
                    count = self._counts.setdefault(key, _Count())
                    count.slots = count.slots or anyio.CapacityLimiter(quota.concurrent)
                    await stack.enter_async_context(count.slots)
            yield

    def _of(self, call: PendingCall) -> Iterator[tuple[_Key, Quota]]:
        name = call.qualified_name
        for number, quota in enumerate(self._quotas):
            if any(matcher(pattern)(name) for pattern in quota.tools):
                yield (number, name if quota.each_tool else ""), quota

    def _recent(self, count: _Count) -> deque[float]:
        since = self._clock() - _MINUTE
        while count.recent and count.recent[0] <= since:
            count.recent.popleft()
        return count.recent


def _title(quota: Quota, key: _Key) -> str:
    return refusal_texts.quota_title(quota.name, key[0] + 1, key[1])

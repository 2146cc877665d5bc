"""All servers of a broker: started at once, each with an owner task, and what is asked of all of them together.

Above: broker.py, and what waits for some of them. Below: server_process.py and upstream.py, which is loaded with the
SDK while the processes of the servers start.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import anyio.to_thread

from broker.upstreams.server_config import ServerConfig
from broker.upstreams.server_process import end_process, start_process

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from anyio.abc import TaskGroup

    from broker.redaction import Redactor
    from broker.upstreams.connecting import InProcessServer
    from broker.upstreams.listing import Listing
    from broker.upstreams.server_process import ServerProcess
    from broker.upstreams.server_status import ServerStatus
    from broker.upstreams.upstream import Upstream
    from broker.upstreams.upstream_requests import Sampler

    Target: TypeAlias = "ServerConfig | InProcessServer | Sequence[Callable[..., Any]]"


class Upstreams:
    """The servers of one broker.

    Attributes:
        by_name: Each server that was started, by its name in the config.
    """

    def __init__(self, targets: Mapping[str, Target], *, redact: Redactor, sampler: Sampler | None) -> None:
        """Take what to connect to, by name; lists of plain functions become the tools of a server.

        `redact` and `sampler` are those of `Upstream`.
        """
        self.by_name: dict[str, Upstream] = {}
        self._targets = targets
        self._redact = redact
        self._sampler = sampler

    async def start(
        self,
        tasks: TaskGroup,
        *,
        on_listing: Callable[[str, Listing], None],
        on_call: Callable[[str, str, bool, float], None],
    ) -> None:
        """Start the servers' processes, and load the SDK, which takes longer than most scripts, meanwhile.

        The owner tasks are tasks of `tasks`; `on_listing` and `on_call` are those of `Upstream`.
        """
        if not self._targets:
            return
        async with AsyncExitStack() as unclaimed:
            started = await self._start_processes(unclaimed)
            module = await anyio.to_thread.run_sync(import_module, "broker.upstreams.upstream")
            for name, target in self._targets.items():
                self.by_name[name] = module.Upstream(
                    name,
                    _server(name, target),
                    on_listing,
                    on_call=on_call,
                    redact=self._redact,
                    process=started.get(name),
                    sampler=self._sampler,
                )
            unclaimed.pop_all()
        for upstream in self.by_name.values():
            tasks.start_soon(upstream.run)

    async def _start_processes(self, unclaimed: AsyncExitStack) -> dict[str, ServerProcess]:
        """Start those that are needed at once; `unclaimed` ends them."""
        started: dict[str, ServerProcess] = {}
        for name, target in self._targets.items():
            if isinstance(target, ServerConfig) and _starts_at_once(target):
                with suppress(OSError):  # the upstream meets it again, and says so
                    started[name] = await start_process(target)
                    unclaimed.push_async_callback(end_process, started[name])
        return started

    @property
    def disabled(self) -> frozenset[str]:
        """The servers that the config keeps without using them."""
        return frozenset(
            name for name, target in self._targets.items() if isinstance(target, ServerConfig) and target.disabled
        )

    @property
    def lazy(self) -> frozenset[str]:
        """The servers that are connected only while they are needed."""
        return frozenset(name for name, upstream in self.by_name.items() if upstream.settings.lazy)

    def statuses(self) -> list[ServerStatus]:
        """Return how each server is doing now, in the order of the config."""
        return [upstream.status for upstream in self.by_name.values()]

    async def settled(self, timeout_seconds: float | None) -> bool:
        """Wait until each server is ready or has failed; tell whether that came about in time."""
        return await _all_settled(self.by_name.values(), timeout_seconds)

    def end(self) -> None:
        """Have each server disconnected for good, without waiting until it is."""
        for upstream in self.by_name.values():
            upstream.end()

    def rest(self, names: Collection[str] | None = None, *, spares_own: bool = False) -> list[str]:
        """Disconnect the lazy servers that have no open call, or those of these names; return their names.

        With `spares_own`, without those that this program has used itself.
        """
        asked = self.by_name if names is None else names
        return [
            name for name, upstream in self.by_name.items() if name in asked and upstream.rest(spares_own=spares_own)
        ]


async def all_needed(upstreams: Iterable[Upstream], timeout_seconds: float | None = None) -> bool:
    """Wait as `settled` does until each of these is ready or has failed; those that are asleep are connected."""
    waited_for = list(upstreams)
    for upstream in waited_for:
        upstream.want()
    return await _all_settled(waited_for, timeout_seconds)


async def _all_settled(upstreams: Iterable[Upstream], timeout_seconds: float | None) -> bool:
    connecting = [upstream for upstream in upstreams if not upstream.is_settled]
    if not connecting:
        return True
    with anyio.move_on_after(timeout_seconds):
        for upstream in connecting:
            await upstream.settled()
        return True
    return False


def _starts_at_once(target: ServerConfig) -> bool:
    return target.command is not None and not target.disabled and not target.lazy


def _server(name: str, target: Target) -> ServerConfig | InProcessServer:
    """Return a server; plain functions are the tools of one."""
    if not isinstance(target, Sequence):
        return target
    server: InProcessServer = import_module("broker.upstreams.functions").functions_server(name, target)
    return server

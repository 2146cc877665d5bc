"""One upstream server: a task that owns its connection, and the way to it for whoever calls its tools.

Above: upstreams.py starts the task; callees.py is the only caller of `call_tool`. Below: readiness.py, calls.py,
listed_tools.py, connection.py. The SDK wants a connection closed by the task that opened it, hence the owner task;
calls may come from any task.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from broker.errors import UnavailableError
from broker.logging import logger
from broker.texts import call_texts
from broker.upstreams.back_off import BackOff
from broker.upstreams.calls import Calls
from broker.upstreams.connecting import InProcessServer, connect
from broker.upstreams.connection import Connection
from broker.upstreams.explain import explain, explain_own
from broker.upstreams.listed_tools import ListedTools
from broker.upstreams.readiness import Readiness
from broker.upstreams.server_config import ServerConfig
from broker.upstreams.server_process import end_process
from broker.upstreams.server_status import ServerStatus
from broker.upstreams.upstream_requests import OpenCall, UpstreamRequests
from broker.upstreams.used_servers import note_use

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp.shared.dispatcher import ProgressFnT

    from broker.authorization.forms import Person
    from broker.redaction import Redactor
    from broker.upstreams.listing import Listing
    from broker.upstreams.server_process import ServerProcess
    from broker.upstreams.upstream_requests import Sampler
    from codegen import ToolSpec

_OWN_START_SECONDS = 30.0
"""How long a server of this process may take to be ready: its lifespan may load much."""
_STOPPED = "it is stopped"


class Upstream:
    """One configured server. `run` is its owner task."""

    def __init__(
        self,
        name: str,
        target: ServerConfig | InProcessServer,
        on_listing: Callable[[str, Listing], None],
        *,
        on_call: Callable[[str, str, bool, float], None] | None = None,
        redact: Redactor,
        process: ServerProcess | None = None,
        sampler: Sampler | None = None,
    ) -> None:
        """Call `on_listing` with the server's name whenever its tools have been listed.

        `on_call` is told of every call that was sent: server, tool, whether it succeeded, the seconds it took.
        `redact` takes secrets out of texts in which a server may have put them. `process` is the server where it
        has been started already. `sampler` answers its requests for a model.
        """
        self._process = process
        self._is_used_here = False
        self.name = name
        # A server of this process is the embedding program's own.
        self.settings = (
            target
            if isinstance(target, ServerConfig)
            else ServerConfig(command="in-process", elicitation=True, connect_timeout_seconds=_OWN_START_SECONDS)
        )
        self._target = target
        self._redact = redact
        self._learn = redact.learner()
        self._requests = UpstreamRequests(name, elicits=self.settings.elicitation, sampler=sampler, redact=redact.value)
        self._tools = ListedTools(name, self.settings, on_listing)
        self._calls = Calls(
            name, self.settings, self._requests, self._tools.descriptions, on_call=on_call, redact=redact
        )
        self._connection: Connection | None = None
        self._protocol_version: str | None = None
        self._readiness = Readiness(is_disabled=self.settings.disabled, is_lazy=self.settings.lazy)
        self._mode = self.settings.mode
        self._open_calls = 0
        self._has_told_stray = False
        self._used_at = -math.inf
        self._owner = anyio.CancelScope()

    @property
    def status(self) -> ServerStatus:
        """How the server is doing now."""
        version = self._protocol_version
        state = self._readiness.state
        explanation = self._readiness.explanation if state in {"down", "connecting"} else None
        return ServerStatus(
            name=self.name,
            state=state,
            protocol_version=version,
            era=None if version is None else "2026" if version in MODERN_PROTOCOL_VERSIONS else "2025",
            tool_count=len(self._tools.listing.tools),
            problem=explanation.problem if explanation else _STOPPED if state == "stopped" else None,
            what_to_do=explanation.what_to_do if explanation else None,
            warnings=self._tools.listing.problems,
            is_lazy=self.settings.lazy,
            about=self.settings.about,
        )

    @property
    def is_settled(self) -> bool:
        """Whether no attempt to connect is running."""
        return self._readiness.is_settled

    async def settled(self) -> None:
        """Wait until the running attempt to connect has succeeded or failed."""
        await self._readiness.settled()

    def want(self) -> None:
        """Connect a lazy server that is needed now."""
        self._note_use()
        self._used_at = anyio.current_time()
        self._readiness.want()

    async def needed(self) -> None:
        """Wait as `settled` does, for a server that is needed now: a lazy one is connected first."""
        self.want()
        await self.settled()

    def rest(self, *, spares_own: bool = False) -> bool:
        """Disconnect a lazy server that nobody uses now; tell whether that is done.

        With `spares_own`, one that this program has used itself, not for a client, is left alone.
        """
        is_spared = spares_own and self._is_used_here
        if not self.settings.lazy or self._open_calls or self._connection is None or is_spared:
            return False
        self._is_used_here = False
        self._readiness.rest()
        self._connection.end("it is not needed now")
        return True

    def end(self) -> None:
        """Disconnect for good; whoever waits for the server, or calls it later, is told that it is not available."""
        self._owner.cancel()

    async def run(self) -> None:
        """Keep the server connected until `end` or cancelled: the owner task. Never raises for the server's faults."""
        try:
            with self._owner:
                await self._keep_connected()
        finally:
            if self._process is not None:  # cancelled before it was spoken to
                await end_process(self._process)
            self._readiness.end()

    async def _keep_connected(self) -> None:
        back_off = BackOff()
        while not self.settings.disabled:
            await self._readiness.begin()
            began = anyio.current_time()
            was_ready = await self._attempt()
            if self._readiness.fall_asleep(was_ready=was_ready):
                back_off.reset()
                continue
            await back_off.wait(anyio.current_time() - began if was_ready else 0)

    async def _attempt(self) -> bool:
        """Connect and stay until the connection ends; tell whether it became ready."""
        ready = False
        connection = Connection(
            self._tools.note_change,
            self._lose_connection,
            self._learn,
            self._note_stray,
            self._requests,
            self._redact,
        )
        process, self._process = self._process, None
        error: Exception | None = None
        is_own = not isinstance(self._target, ServerConfig)
        # The deadline holds until the tools are listed; then the scope only frames the connection.
        with anyio.CancelScope(deadline=anyio.current_time() + self.settings.connect_timeout_seconds) as scope:
            try:
                async with connect(self._target, self._mode, connection, process):
                    await self._tools.refresh(connection)
                    scope.deadline = math.inf
                    ready = True
                    self._become_ready(connection)
                    await self._serve(connection)
            except* Exception as caught:  # noqa: BLE001  # one server's fault must not reach the others
                error = caught  # on trio it may come together with a cancellation, which goes on
                if is_own:
                    logger().exception("a server of this program failed", server=self.name)
            finally:
                self._lose_connection()
        timed_out = scope.cancelled_caught and not ready
        if is_own:
            explanation = explain_own(self.settings, connection, error, timed_out=timed_out)
        else:
            explanation = explain(self.name, self.settings, connection, error, timed_out=timed_out)
        explanation = replace(explanation, problem=self._redact(explanation.problem))
        self._protocol_version = None
        if self._readiness.is_wanted:
            logger().warning("server is down", server=self.name, problem=explanation.problem)
        self._readiness.fail(explanation, was_ready=ready)
        return ready

    def _note_stray(self, line: str) -> None:
        """Tell the operator once that the server prints where its messages go, which may break one of them."""
        if not self._has_told_stray:
            self._has_told_stray = True
            logger().info("a line on stdout is no message; logs belong on stderr", server=self.name, line=line)

    def _lose_connection(self) -> None:
        """Turn away from a connection that has ended: calls now wait for the next one, for a while."""
        if self._connection is not None:
            self._connection = None
            self._readiness.lose()

    async def _serve(self, connection: Connection) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.watch_tools)
            tasks.start_soon(self._tools.refresh_when_changed, connection)
            if self.settings.lazy:
                tasks.start_soon(self._rest_when_idle)
            await connection.ended.wait()
            tasks.cancel_scope.cancel()

    async def _rest_when_idle(self) -> None:
        seconds = self.settings.idle_seconds
        is_resting = False
        while not is_resting:
            await anyio.sleep(max(self._used_at + seconds - anyio.current_time(), seconds / 10))
            is_resting = anyio.current_time() >= self._used_at + seconds and self.rest()

    def _become_ready(self, connection: Connection) -> None:
        self._connection = connection
        self._used_at = anyio.current_time()
        self._protocol_version = connection.protocol_version
        if self._mode == "auto" and connection.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._mode = "legacy"  # asked once: some servers are silent to what they do not know
        logger().info("server is ready", server=self.name, protocol=connection.protocol_version)
        self._readiness.become_ready()

    async def read_descriptions(self, names: Sequence[str]) -> list[ToolSpec]:
        """Return the full definitions of tools that were listed with a line each, as far as they can be read.

        Raises:
            UpstreamError: The server could not be asked.
        """
        connection = await self._ready_connection()
        self._open_calls += 1
        try:
            return await self._tools.describe(connection, names)
        finally:
            self._open_calls -= 1
            self._used_at = anyio.current_time()

    async def connected(self) -> None:
        """Wait for a connection that is being made. What was listed is of this connection from then on.

        Raises:
            UnavailableError: There is none.
        """
        await self._ready_connection()

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        on_progress: ProgressFnT | None = None,
        run: str = "",
        person: Person | None = None,
    ) -> dict[str, Any]:
        """Send one call, at most once, and return the result as the server sent it.

        Waits first for a connection that is being made. Cancelling it cancels the call at the server. What the server
        asks meanwhile goes to `person`; one whose answer to the call is a question is told the answer to that.

        Raises:
            UpstreamError: One of its subclasses, by what is known about the call.
        """
        self._open_calls += 1
        try:
            connection = await self._ready_connection()
            call = OpenCall(run, person)
            return await self._calls.send(connection, call, name, arguments, on_progress)
        finally:
            self._open_calls -= 1
            if self.settings.lazy:
                self._used_at = anyio.current_time()

    def _note_use(self) -> None:
        if self.settings.lazy and not note_use(self.name):
            self._is_used_here = True

    async def _ready_connection(self) -> Connection:
        self._note_use()
        if self._connection is None:
            with anyio.move_on_after(self.settings.connect_timeout_seconds):
                await self.needed()
        connection = self._connection
        if connection is None or connection.reason:
            raise UnavailableError(self.name, self._why_unavailable())
        return connection

    def _why_unavailable(self) -> str:
        explanation = self._readiness.explanation
        problem = explanation.problem if explanation else f"it is {self._readiness.state}"
        return call_texts.unavailable(self.name, problem)

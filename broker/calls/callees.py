"""What a call of a script reaches, in the terms of tool_calls.py, and the tools of servers in these terms.

Above: tool_calls.py, which alone uses them. Below: catalog, disclosure, upstreams. The model behind `extract` is in
extraction.py. A callee is made for one call; nothing is sent before `send`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from broker.authorization.calls import PendingCall, ToolFacts
from broker.calls.argument_faults import fault_of
from broker.calls.call_failures import failed_at_server, needs_description, refused
from broker.calls.host_paths import HostPaths
from broker.errors import UpstreamError
from broker.texts import call_texts
from broker.tools.near_names import MAX_NAMES
from broker.tools.tool_changes import what_changed
from sandbox import Failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.shared.dispatcher import ProgressFnT

    from broker.authorization.calls import Caller
    from broker.authorization.forms import Person
    from broker.authorization.policy import Policy
    from broker.disclosure.disclosure import Disclosure
    from broker.tools.catalog import CatalogEntry
    from broker.upstreams.upstream import Upstream
    from sandbox import Call, Completion


class Callee(Protocol):
    """What one call reaches."""

    @property
    def pending(self) -> PendingCall:
        """The call as it is decided."""

    def fault(self) -> Failed | None:
        """Return why it cannot be called like this, whatever anybody allows."""

    def overtaken(self) -> Failed | None:
        """Return why it is not any more what was decided about."""

    def refused(self, reason: str) -> Failed:
        """Return the failure of a call that was not allowed, or could not be recorded."""

    async def reach(self) -> Failed | None:
        """Wait until it can be called; return why it cannot."""

    async def send(self, person: Person | None) -> Completion:
        """Send the call, once; `person` can be asked what the server wants to know meanwhile."""


@dataclass(frozen=True, slots=True)
class MissingTool:
    """What a call reaches that is not there: nothing, and `failed` says why."""

    pending: PendingCall
    failed: Failed


@dataclass(slots=True, eq=False)
class ServerTools:
    """The tools of the servers, as one run or one direct call reaches them.

    Attributes:
        disclosure: The tools that are described.
        policy: Says what may be believed of them.
        caller: On whose behalf they are called.
        convert: Makes the answer to a call from a server's result; must not raise.
        on_progress: Receives what a server reports of its progress.
    """

    disclosure: Disclosure
    policy: Policy
    caller: Caller
    convert: Callable[[dict[str, Any], CatalogEntry, HostPaths], Completion]
    on_progress: ProgressFnT | None = None
    # By the digest of a definition, which its server is part of; what the operator says of servers stays.
    _facts: dict[str, ToolFacts] = field(default_factory=dict)
    _unknown: int = 0

    def called(self, call: Call) -> Callee | MissingTool:
        """Return what a call reaches by its `namespace.function`."""
        entry = self.disclosure.catalog.by_python_name(call.function)
        if entry is not None:
            return CalledTool(self._pending(call, entry), entry, self)
        server, tool = self._as_written(call)
        pending = PendingCall(server, tool, "", call.arguments, caller=self.caller)
        return MissingTool(pending, self._not_found(call.function, server, tool))

    def received_from(self, call: Call) -> PendingCall:
        """Return a call whose answer is known without asking its server, for flow rules."""
        entry = self.disclosure.catalog.by_python_name(call.function)
        server, tool = self._as_written(call) if entry is None else (entry.spec.server, entry.spec.name)
        upstream = self.disclosure.upstreams.get(server)
        facts = ToolFacts(labels=self.policy.labels_of(None if upstream is None else upstream.settings.labels))
        return PendingCall(server, tool, "", call.arguments, facts, self.caller)

    def _not_found(self, function: str, server: str, tool: str) -> Failed:
        """Say why a tool is missing. The guest knows listed tools only, so its server is down, or it has gone."""
        details, catalog = {"server": server, "tool": tool}, self.disclosure.catalog
        upstream = self.disclosure.upstreams.get(server)
        if upstream is not None and (problem := upstream.status.problem) is not None:
            return Failed("ToolUnavailableError", call_texts.unavailable(server, problem), details)
        self._unknown += 1
        near = catalog.suggest(function) if self._unknown <= MAX_NAMES else ()
        said = call_texts.not_found(function, near, is_withdrawn=catalog.has_withdrawn(function))
        return Failed("ToolNotFoundError", said, details)

    def _as_written(self, call: Call) -> tuple[str, str]:
        """Return the names of server and tool as the script wrote them."""
        namespace, _, function = call.function.partition(".")
        return self.disclosure.catalog.server_of(namespace) or namespace, function

    def _pending(self, call: Call, entry: CatalogEntry) -> PendingCall:
        spec = entry.spec
        facts = self._facts.get(spec.digest)
        if facts is None:
            settings = self.disclosure.upstreams[spec.server].settings
            facts = self._facts[spec.digest] = self.policy.facts_of(spec, settings)
        return PendingCall(spec.server, spec.name, spec.digest, call.arguments, facts, self.caller)


@dataclass(frozen=True, slots=True, eq=False)
class CalledTool:
    """A listed tool, as one call reaches it. `Callee` says what each method is."""

    pending: PendingCall
    _entry: CatalogEntry
    _tools: ServerTools

    def fault(self) -> Failed | None:
        """Return why the tool cannot be called like this: it is not described, or does not take the arguments."""
        disclosure = self._tools.disclosure
        if not disclosure.is_described(self._entry):
            return needs_description(self._entry, disclosure.changed(self._entry))
        return fault_of(self.pending.arguments, self._entry)

    def overtaken(self) -> Failed | None:
        """Return that the tool's definition has changed since the call was decided, while it waited for its turn."""
        spec = self._entry.spec
        now = self._tools.disclosure.catalog.by_python_name(self._entry.python_name)
        if now is not None and now.spec.digest == spec.digest:
            return None
        return needs_description(self._entry, what_changed(spec, now.spec if now is not None else None))

    def refused(self, reason: str) -> Failed:
        """Return the failure of a call that was not allowed, or could not be recorded."""
        return refused(self._entry, reason)

    async def reach(self) -> Failed | None:
        """Wait for the server, which is started if it is not running."""
        try:
            await self._upstream.connected()
        except UpstreamError as error:
            return failed_at_server(self._entry, error, self._paths)
        return None

    async def send(self, person: Person | None) -> Completion:
        """Send `tools/call`, once, and convert the result."""
        pending = self.pending
        try:
            raw = await self._upstream.call_tool(
                pending.tool,
                pending.arguments,
                on_progress=self._tools.on_progress,
                run=pending.caller.run,
                person=person,
            )
        except UpstreamError as error:
            return failed_at_server(self._entry, error, self._paths)
        return self._tools.convert(raw, self._entry, self._paths)

    @property
    def _paths(self) -> HostPaths:
        return HostPaths(self.pending.arguments)

    @property
    def _upstream(self) -> Upstream:
        return self._tools.disclosure.upstreams[self.pending.server]

"""The data that a run has received, by label and source, for flow rules.

Above: decision.py reads, run_desk.py adds. Below: fingerprints.py. Labels say where data came from, whatever the
script made of it since; the fingerprints see copied text, and miss what was changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from broker.authorization.fingerprints import Fingerprints
from broker.authorization.shown import shown_name
from codegen.plain_text import counted

if TYPE_CHECKING:
    from broker.authorization.calls import PendingCall
    from broker.authorization.fingerprints import Copy

_MAX_SOURCES = 20


@dataclass(slots=True, eq=False)
class FlowState:
    """The labels that one run (or one session, where the policy says so) has received so far."""

    _sources: dict[str, dict[str, int]] = field(default_factory=dict)
    _fingerprints: Fingerprints = field(default_factory=Fingerprints)

    def receive(self, call: PendingCall, value: Any) -> None:
        """Note that the script received data from a server; the text of an error counts too."""
        for label in call.facts.labels:
            tools = self._sources.setdefault(label, {})
            tools[call.qualified_name] = tools.get(call.qualified_name, 0) + 1
        self._fingerprints.add(call.server, call.qualified_name, value)

    def sources(self, label: str, sink: str) -> tuple[str, ...]:
        """Return the tools from which a label came, as `server.tool (N calls)`, but for the sink itself.

        What a tool answers is not counted as input to the next call of the same tool: a loop of writes would ask
        again after the first one.
        """
        tools = self._sources.get(label, {})
        others = [(tool, count) for tool, count in tools.items() if tool != sink][:_MAX_SOURCES]
        return tuple(f"{shown_name(tool)} ({counted(count, 'call')})" for tool, count in others)

    def copies(self, call: PendingCall) -> tuple[Copy, ...]:
        """Return what the arguments of a call have in common with results of other servers."""
        return self._fingerprints.find(call.server, call.arguments)

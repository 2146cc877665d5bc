"""The calls of one run, each with who answers it: the servers of tools, functions of ours, what is known before.

Above: execution.py. Below: tool_calls.py, script_functions.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.authorization.model_calls import is_decided
from broker.calls.earlier_calls import count_earlier_calls
from sandbox.host_messages import check_completion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.authorization.run_desk import RunDesk
    from broker.calls.script_functions import ScriptFunctions
    from broker.calls.tool_calls import ToolCalls
    from broker.recordings.recording import Recording
    from broker.upstreams.upstream import Upstream
    from sandbox import Call, Completion


@dataclass(frozen=True, kw_only=True)
class RunCalls:
    """Answers the calls of one run.

    Attributes:
        tools: Answers those of tools and of `extract`.
        functions: Answers those of what concerns the run alone.
        known: Asked first about every call; what it answers is neither judged nor sent, and counts in the flows.
    """

    tools: ToolCalls
    functions: ScriptFunctions
    known: Callable[[Call], Completion | None] | None = None

    async def answer(self, call: Call) -> Completion | None:
        """Answer one call; None is no answer for now."""
        known = None if self.known is None else self.known(call)
        if known is None:
            return await self.tools.answer(call) if is_decided(call.function) else self.functions.answer(call)
        check_completion(known)
        if is_decided(call.function):
            self.tools.note_known(call, known)
        return known

    def restore(self, before: Recording, desk: RunDesk, upstreams: Mapping[str, Upstream]) -> None:
        """Bring back what the run had called before it was resumed."""
        earlier = count_earlier_calls(before, desk, upstreams)
        self.tools.restore(earlier, [number for number in earlier if before.calls[number].is_unknown])
        self.functions.restore(before)

"""The calls that a run made before it was resumed: their records, and their effect on quotas and flows.

Above: run_calls.py. Below: the recording, and the run's desk. What was sent counts in the quotas, and what the script
was given of it in the flows, as if the run had never ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.authorization.calls import PendingCall, ToolFacts
from broker.authorization.model_calls import SERVER, is_decided, model_call
from broker.calls.attempts import STATUS_OF_KIND, CallRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.authorization.run_desk import RunDesk
    from broker.calls.attempts import Status
    from broker.recordings.call_story import CallStory
    from broker.recordings.events import Sent
    from broker.recordings.recording import Recording
    from broker.upstreams.upstream import Upstream


def count_earlier_calls(before: Recording, desk: RunDesk, upstreams: Mapping[str, Upstream]) -> dict[int, CallRecord]:
    """Tell a run's desk what the run had sent and received; return the records of its calls, by number.

    A call that was neither sent nor ended has no record: the script is about to make it again.
    """
    records: dict[int, CallRecord] = {}
    for number, story in before.calls.items():
        if not is_decided(story.function):
            continue
        result = story.answer
        if story.is_over or story.is_unknown:
            records[number] = _record_of(story, result)
        if story.sent is not None:
            call = _call_of(story.sent, story.arguments, desk, upstreams)
            desk.count_again(call)
            if result is not None:
                desk.receive(call, result)
    return records


def _call_of(sent: Sent, arguments: dict[str, Any], desk: RunDesk, upstreams: Mapping[str, Upstream]) -> PendingCall:
    """Return a call that was sent, as far as quotas and flows look at it, also of a tool that is not listed now."""
    if sent.server == SERVER:
        return model_call(arguments, desk.policy, desk.caller)
    upstream = upstreams.get(sent.server)
    labels = desk.policy.labels_of(None if upstream is None else upstream.settings.labels)
    return PendingCall(sent.server, sent.tool, sent.digest, arguments, ToolFacts(labels=labels), desk.caller)


def _record_of(story: CallStory, result: dict[str, Any] | None) -> CallRecord:
    """Return the record of a call that was over, or of unknown outcome."""
    server, dot, tool = story.function.partition(".")
    server, tool = (server, tool) if dot else (SERVER, server)
    unanswered: Status = "cancelled" if story.cancelled is not None else "outcome_unknown"
    error = None if result is None else result.get("error")
    return CallRecord(
        server=story.sent.server if story.sent else server,
        tool=story.sent.tool if story.sent else tool,
        decision="allowed" if story.sent else "denied" if story.denied else "undecided",
        status=unanswered if result is None else STATUS_OF_KIND.get(error["kind"], "tool_error") if error else "ok",
        duration_ms=round((story.answered.at - story.made) / 1e6, 3) if story.answered else 0.0,
    )

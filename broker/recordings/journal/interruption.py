"""What was executed of a run that a fault of the store or the sandbox cut off, as far as its recording tells.

Above: recorded_run.py. Below: the recording.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.errors import RecordingError, RunInterruptedError, StoreError
from broker.recordings.keeping.transfer import load
from codegen.plain_text import counted, one_line

if TYPE_CHECKING:
    from broker.recordings.keeping.recordings import Recordings
    from broker.recordings.recording import Recording
    from sandbox import SandboxError

_MAX_NAMES = 3
_NAME_CHARACTERS = 80


def interrupted(recordings: Recordings, run_id: str, error: StoreError | SandboxError) -> RunInterruptedError:
    """Return how an interrupted run stands."""
    try:
        recording = load(recordings, recordings.find(run_id))
    except (RecordingError, StoreError):
        executed, can_resume = "What it had called is not known now.", True
    else:
        executed, can_resume = _executed(recording), recording.has_content
    problem = str(error).rstrip(".")
    return RunInterruptedError(run_id, f"{problem}.", executed=executed, can_resume=can_resume)


def _executed(recording: Recording) -> str:
    stories = recording.calls.values()
    answered = sum(1 for story in stories if story.sent is not None and story.is_over)
    unknown = [f"{story.function} (line {story.line})" for story in stories if story.is_unknown]
    if not answered and not unknown:
        return "No call was sent."
    said = [f"{counted(answered, 'call')} had been answered."] if answered else []
    if unknown:
        names = one_line(", ".join(unknown[:_MAX_NAMES]), _MAX_NAMES * _NAME_CHARACTERS)
        more = f" and {len(unknown) - _MAX_NAMES} more" if len(unknown) > _MAX_NAMES else ""
        said.append(f"Sent, with an outcome that is not known: {names}{more}.")
    return " ".join([*said, "Nothing else was sent."])
